"""Learning in parts: a model of some rows alone, with nothing derived from them, so that parts add to the whole.

    start = start_parts(model, names, profiles)   what was declared, and how columns are read
    part = learn_part(start, X, y)                statistics(rows), anywhere
    total = add_parts(parts)                      a tree of +
    finish_parts(model, total)                    corrections and whatever else follows from all rows, once

The result is that of ``fit`` with all rows, bit for bit: statistics are exact, and the rows that corrections are
derived from are chosen by their content.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from priory.core.atomic_state import copy_state
from priory.core.logspace import log_normalise
from priory.errors import DataError, KindError, NotLearnedError, StaleModelError
from priory.estimators.base import DECLARED_ATTRIBUTES, BaseClassifier
from priory.estimators.labels import encode_labels
from priory.estimators.naive_bayes import NaiveBayes
from priory.estimators.self_calibrating import SelfCalibratingClassifier
from priory.estimators.text_classifier import TextClassifier
from priory.evaluation.scores import Scores
from priory.models.column_profile import Profiles, make_example_table
from priory.models.row_sample import RowSample, choose_memory
from priory.models.schema import Schema
from priory.models.textbook_families import TextbookFamilies
from priory.regression.linear_regression import BayesianLinearRegression

MergeableModel = BaseClassifier[Any] | BayesianLinearRegression
ModelT = TypeVar("ModelT", bound=MergeableModel)
LEARNED_ATTRIBUTES = ("statistics_", "corrections_", "sample_changes_", "stale_", "clock_")
MAX_ROWS_JUDGED = 100_000  # distinct rows that `judge_sample` leaves out one by one


def check_mergeable_model(model: object) -> None:
    """Raise an error unless a model can be learned in parts."""
    if not isinstance(model, BaseClassifier | BayesianLinearRegression):
        raise KindError(
            f"a {type(model).__name__} cannot be learned in parts; use NaiveBayes, TextClassifier, "
            "BayesianLinearRegression or a class of priory.naive_bayes."
        )
    if getattr(model, "alpha", None) == "loo":
        raise DataError("alpha='loo' is chosen by fit, from all rows at once; give alpha a number.")


def find_open_columns(
    model: MergeableModel, names: Sequence[str], strings: Sequence[str], dates: Sequence[str]
) -> list[str]:
    """The columns whose schema only all rows can decide: dates, and strings without a declared family."""
    if not isinstance(model, NaiveBayes):
        return []
    if isinstance(model.families, TextbookFamilies):
        return list(names)
    declared = model.families if isinstance(model.families, Mapping) else dict.fromkeys(names, model.families)
    families = {name: declared.get(name, "auto") for name in strings}
    automatic = [name for name, family in families.items() if isinstance(family, str) and family == "auto"]
    return list(dict.fromkeys([*dates, *automatic]))


def start_parts(model: ModelT, names: Sequence[str], profiles: Profiles) -> ModelT:
    """A model that has learned nothing, and reads every part alike; ``profiles`` are those of the open columns."""
    start = copy_state(model)
    for name in vars(start).keys() - {*start.get_params(deep=False), *DECLARED_ATTRIBUTES}:
        del start.__dict__[name]
    if isinstance(start, SelfCalibratingClassifier) and start.memory == 0:
        start.memory = None  # until the corrections are derived
    if isinstance(start, NaiveBayes):
        start._check_parameters()
        example = make_example_table(names, profiles)
        start._check_columns(example, reset=True)
        start._schema = Schema.of(example, start.families, start._effective_alpha())
    return start


def forget_learned(model: ModelT) -> ModelT:
    """A model that has learned nothing, and reads parts as this one does."""
    check_is_fitted(model, "statistics_")
    start = copy_state(model)
    for name in LEARNED_ATTRIBUTES:
        start.__dict__.pop(name, None)
    return start


def learn_part(start: ModelT, X: object, y: ArrayLike | None, sample_weight: ArrayLike | None = None) -> ModelT | None:
    """A model of these rows alone; None if they weigh nothing, in which case they only declare classes, if anything."""
    weighs_nothing = sample_weight is not None and not np.any(np.asarray(sample_weight, dtype=float))
    if isinstance(start, BayesianLinearRegression):
        return None if weighs_nothing else clone(start).partial_fit(X, y, sample_weight)
    part = copy_state(start)
    table = part._read(X, reset="n_features_in_" not in vars(part))
    classes, group = encode_labels(y)
    learned = part._compute_statistics(table, classes, group, None if weighs_nothing else sample_weight)
    if weighs_nothing:
        learned = learned - learned
    part._set_statistics(learned.declare_classes(classes) if part._has_declared_class_prior() else learned)
    return part if "statistics_" in vars(part) else None


def add_parts(parts: Iterable[ModelT | None]) -> ModelT | None:
    """The parts as one; tokens beyond ``max_tokens`` are dropped, as they are while learning."""
    total: Any = None
    for part in parts:
        if part is not None:
            total = part if total is None else drop_rare_tokens(total.merge(part))
    return total


def drop_rare_tokens(model: ModelT) -> ModelT:
    """The model with at most ``max_tokens`` tokens; its records know how much may be missing."""
    if not isinstance(model, TextClassifier) or model.max_tokens is None:
        return model
    model.statistics_ = replace(
        model.statistics_, parts=model._build_vocabulary().drop_rare_tokens(model.statistics_.parts)
    )
    return model


def finish_parts(model: ModelT, total: ModelT | None) -> ModelT:
    """Let a model be one that has learned all parts, and derive from them whatever ``fit`` would."""
    if total is None:
        raise DataError("there are no rows to learn from; give rows with a weight above zero.")
    whole: Any = copy_state(total)
    if isinstance(whole, BayesianLinearRegression):
        whole.posterior_  # noqa: B018  # a prior that does not fit these rows is reported here
    if isinstance(whole, NaiveBayes):
        whole._check_learned()
    if isinstance(whole, SelfCalibratingClassifier) and isinstance(model, SelfCalibratingClassifier):
        whole.memory, sample = model.memory, whole.statistics_.sample
        if model.memory == 0 and sample is not None:  # nothing is kept: all that can be had is had now
            whole.statistics_ = replace(whole.statistics_, sample=None)
            whole._use_corrections(whole._fit_corrections(whole.statistics_, sample))
        else:
            whole._use_corrections(whole._derive_corrections(whole.statistics_))
    model.__dict__ = whole.__dict__
    return model


def subtract_part(model: ModelT, part: ModelT | None) -> ModelT:
    """Let a model forget the rows of a part, as if it had never learned them."""
    if part is None:
        return model
    left: Any = copy_state(model)
    try:
        if isinstance(part, BayesianLinearRegression):
            left.statistics_ = left.statistics_ - part.statistics_
        else:
            left._check_mergeable(part)
            left._set_statistics(left.statistics_ - left._align_statistics(part))
            if "statistics_" in vars(left):
                left._drop_derived()
    except NotLearnedError as error:
        reason = error.subject or "a row"
        raise NotLearnedError(
            f"{reason} was not learned, or not this often; forget only rows that were learned; the model is unchanged."
        ) from None
    model.__dict__ = left.__dict__
    return model


def check_undecayed(model: MergeableModel) -> None:
    """Raise an error if old rows weigh less than they did: parts do not know when their rows were learned."""
    if getattr(model, "clock_", 1.0) != 1.0:
        raise StaleModelError("the model has decayed; forget rows with its own method, which takes learned_at.")


def check_judgeable_model(model: object) -> SelfCalibratingClassifier[Any]:
    """The model, if its answers to rows that are left out can be scored."""
    if not isinstance(model, SelfCalibratingClassifier):
        raise KindError(f"a {type(model).__name__} has no scores of rows left out; use NaiveBayes or TextClassifier.")
    check_is_fitted(model, "statistics_")
    return model


def sample_part(model: SelfCalibratingClassifier[Any], X: object, y: ArrayLike | None) -> RowSample:
    """A fair sample of learned rows, which adds."""
    table, group, weight = model._read_learned_rows(X, y, None)
    size = choose_memory(None, model._is_refined()) if model.calibrate else MAX_ROWS_JUDGED
    return model._sample_rows(model._read_cells(table), model.classes_, group, weight, size)[0]


def judge_sample(model: SelfCalibratingClassifier[Any], sample: RowSample) -> Scores:
    """The scores of rows that were left out: each in its fold or, without corrections, one by one."""
    if model.calibrate:
        return model._judge_sample(sample, "auto")
    naive = model._model()
    answers = log_normalise(naive.leave_one_out(sample.blocks, sample.group), naive.leave_one_out_prior(sample.group))
    return Scores.of(model.classes_[sample.group], answers, model.classes_, sample.weight, logs=True)
