"""Base classes of the classifiers that count: scikit-learn's methods and attributes over `priory.learning`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias

import numpy as np
from numpy import ndarray as Array
from numpy.typing import ArrayLike

from priory.calibration.corrections import Corrections
from priory.core.content_hash import hash_content
from priory.core.display_table import DisplayTable, format_cell, join_words
from priory.core.estimator_methods import optional_attribute
from priory.core.input_guard import check_same_type
from priory.core.logspace import log_normalise, normalise
from priory.core.typing import Label
from priory.errors import DataError, NotAvailableError, NotLearnedError, StaleModelError
from priory.estimators.label_encoding import convert_to_numpy, encode_labels, sort_labels
from priory.estimators.scikit_learn import BaseEstimator, ClassifierMixin, raise_not_fitted
from priory.evaluation.prediction_sets import check_coverage, choose_sets
from priory.learning import learned as algebra
from priory.learning.classifier import CountingClassifier
from priory.learning.counting import PartCounter, check_total, describe_unlearned_part
from priory.learning.learned import Learned, answer, find_best
from priory.learning.left_out_scores import (
    answer_left_out,
    answer_without_folds,
    audit_membership,
    find_p_values,
    judge_sample,
    judge_splits,
    make_scores,
)
from priory.learning.row_kind import Parameters, RowKind
from priory.model.model_statistics import ModelStatistics

if TYPE_CHECKING:
    from sklearn.model_selection import BaseCrossValidator

    from priory.evaluation.membership import MembershipAudit
    from priory.evaluation.scores import Scores
    from priory.learning.questions import Questions


Folds: TypeAlias = "str | int | BaseCrossValidator"  # "auto", a number, or one of scikit-learn's splitters
LEARNED_ATTRIBUTES = {  # as model files and pickles name them: the field of `Learned`, and its value if it is left out
    "statistics_": ("statistics", None),
    "corrections_": ("corrections", None),
    "sample_changes_": ("changes", 0),
    "stale_": ("stale", ()),
    "clock_": ("clock", 1.0),
    "released_": ("released", ()),
    "unlabelled_statistics_": ("unlabelled", None),
}


class LearnedClassifier(ClassifierMixin, BaseEstimator):
    """Base class of classifiers that count; ``statistics_`` is everything learned.

    Several threads may use one model at once: see `priory.learning.classifier`.
    """

    __slots__ = ("_core",)  # not in ``vars``, which are the parameters and what was declared beside them

    _core: CountingClassifier
    _rows_class: ClassVar[type[RowKind[Any]]]
    _requires_all_classes: ClassVar[bool] = True  # before the first row of each is learned
    _supervised = _multiclass = True  # river's pipelines and evaluators read these

    target_: str  # the column of the labels, where the model was trained from files
    missing_: tuple[str, ...]  # the cells that counted as missing in these files
    separator_: str  # between the labels of a row, where a row may have several

    # -- the state -----------------------------------------------------------------------------------------------

    def __setattr__(self, name: str, value: object) -> None:
        """Set a parameter, after counting buffered rows, because it may change how rows are read."""
        if not hasattr(self, "_core"):  # the first parameter
            object.__setattr__(self, "_core", CountingClassifier())
        elif self._core.declared is not None:
            self._core.declare(None)
        super().__setattr__(name, value)

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(vars(self))
        learned = self._core.state
        if learned is None:
            return state
        values = {name: (getattr(learned, field), absent) for name, (field, absent) in LEARNED_ATTRIBUTES.items()}
        state |= {name: value for name, (value, absent) in values.items() if value != absent}
        return state | learned.rows.attributes

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        learned, attributes = None, dict(state)
        # the attributes of a model file are split into `Learned`, the columns, and the rest
        if "statistics_" in state:
            declared = Parameters(**{name: state[name] for name in self._get_param_names()})
            rows = self._rows_class(declared).with_attributes(state)
            fields = {field: state[name] for name, (field, _) in LEARNED_ATTRIBUTES.items() if name in state}
            learned = Learned(rows, **fields)
            for name in (*LEARNED_ATTRIBUTES, *rows.attributes):
                attributes.pop(name, None)
        object.__setattr__(self, "_core", CountingClassifier(learned))
        self.__dict__.update(attributes)

    def _declare(self) -> tuple[CountingClassifier, RowKind[Any]]:
        """Check the current parameters; return the core and its rows under them."""
        core, rows = self._core, self._core.declared
        if rows is None:
            rows = self._rows_class(Parameters(**self.get_params(deep=False)))
            rows.check()
            core.declare(rows)
        return core, rows

    def _learned(self) -> Learned:
        """What was learned, under the current parameters; raises NotFittedError before the first row."""
        learned = self._declare()[0].state
        if learned is None:
            raise_not_fitted(self)
        return learned

    @optional_attribute
    def learned_(self) -> Learned:
        """The statistics with their columns and parameters, as a value that adds."""
        return self._learned()

    @property
    def statistics_(self) -> ModelStatistics:
        """Everything learned; it adds, subtracts and scales."""
        learned = self._core.state
        if learned is None:
            raise AttributeError(f"{type(self).__name__!r} object has learned nothing yet; call fit first.")
        return learned.statistics

    @property
    def n_features_in_(self) -> int:
        """The number of columns."""
        return int(self._find_attribute("n_features_in_"))

    @property
    def feature_names_in_(self) -> Array:
        """The names of the columns, if they have any."""
        return np.asarray(self._find_attribute("feature_names_in_"))

    def _find_attribute(self, name: str) -> Any:
        """Get an attribute of the columns; AttributeError if there is none."""
        learned = self._core.state
        attributes = {} if learned is None else learned.rows.attributes
        if name not in attributes:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return attributes[name]

    def __sklearn_is_fitted__(self) -> bool:
        return self._core.state is not None

    # -- learning ------------------------------------------------------------------------------------------------

    def fit(self, X: object, y: ArrayLike | None, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the model to all rows, discarding earlier ones."""
        core, rows = self._declare()
        encode, weight = partial(encode_labels, y), convert_to_numpy(sample_weight)
        core.change(lambda _: algebra.fit(rows, X, encode, weight))
        return self

    def partial_fit(
        self, X: object, y: ArrayLike | None, classes: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Learn from more rows; all calls together give the same statistics as one ``fit``."""
        core, rows = self._declare()
        encode, weight = partial(encode_labels, y), convert_to_numpy(sample_weight)
        strict, declared = self._requires_all_classes, None if classes is None else sort_labels(classes)
        # as in scikit-learn: the first call sorts and deduplicates classes, later calls have to repeat them
        n_repeated = 0 if classes is None or declared is None else np.size(classes) - len(declared)
        if strict and n_repeated and (known := core.state) is not None:
            was = f"was: {known.classes}"
            raise DataError(f"`classes={classes!r}` is not the same as on last call to partial_fit, {was}")
        core.learn_batch(rows, X, encode, weight, declared, strict=strict)
        return self

    def forget(
        self, X: object, y: ArrayLike | None, sample_weight: ArrayLike | None = None, learned_at: float | None = None
    ) -> Self:
        """Forget learned rows, as if the model had never seen them.

        After ``decay`` a row weighs less than when it was learned: pass ``learned_at``, the value of ``clock_`` at that
        time.
        """
        self._find_core().forget_batch(X, partial(encode_labels, y), convert_to_numpy(sample_weight), learned_at)
        return self

    def decay(self, factor: float) -> Self:
        """Multiply the weight of everything learned so far by ``factor``: old rows fade."""
        self._change(lambda before: algebra.decay(before, factor))
        return self

    def _find_core(self) -> CountingClassifier:
        """The part that changes, under the current parameters; raises NotFittedError before the first row."""
        core, _ = self._declare()
        if not core.has_learned:
            raise_not_fitted(self)
        return core

    def _change(self, step: Any) -> None:
        """Apply a step to what was learned; raises NotFittedError before the first row."""
        self._find_core().change(step)

    def merge(self, *others: Self) -> Self:
        """Add the statistics of all models into a new model, as if it had learned all their rows."""
        total = self._learned()
        for other in others:
            check_same_type(self, other)
            total = total + other._learned()
        return self._with_learned(total.drop_corrections())

    def _with_learned(self, learned: Learned | None) -> Self:
        """A copy with another state."""
        # states are frozen, so both may share one
        twin = type(self).__new__(type(self))
        twin.__dict__.update(vars(self))
        object.__setattr__(twin, "_core", CountingClassifier(learned))
        return twin

    def __copy__(self) -> Self:
        return self._with_learned(self._core.state)

    def __add__(self, other: Self) -> Self:
        return self.merge(other)

    def __radd__(self, other: int) -> Self:
        return self  # the start of sum()

    # -- learning in parts ---------------------------------------------------------------------------------------

    def counter(self, known: bool = False, samples: bool = True) -> PartCounter:
        """A picklable counter of rows, for `adopt` or `subtract`; see `priory.learning.counting`.

        Parameters
        ----------
        known : bool
            Whether rows have the columns that the model has learned; if not, the first rows define them.
        samples : bool
            Whether rows are sampled even if the model keeps none, so that `adopt` can fit corrections to them.
        """
        rows = self._learned().rows if known else self._declare()[1]
        # with memory=0 `adopt` fits corrections to a sample and then drops it
        if samples and rows.is_calibrated and not rows.memory:
            declared = Parameters(**{**vars(rows.parameters), "memory": None})
            rows = rows.with_parameters(self._rows_class(declared)) if known else self._rows_class(declared)
        return PartCounter(rows, encode_labels)

    def adopt(self, total: Learned | None, finish: bool = True) -> Self:
        """Load the sum of all parts into the model and, with ``finish``, run the last steps of ``fit``."""
        core, declared = self._declare()
        whole = check_total(total).with_parameters(declared)
        core.change(lambda _: algebra.finish(whole) if finish else whole)
        return self

    def subtract(self, part: Learned | None) -> Self:
        """Forget the rows of a part, as if they had never been learned."""
        if part is None:
            return self
        try:
            self._change(lambda before: before - part)
        except NotLearnedError as error:
            raise describe_unlearned_part(error) from None
        return self

    # -- rows one at a time --------------------------------------------------------------------------------------

    def learn_one(self, x: Any, y: Label) -> Self:
        """Learn from one row: a dict of column to cell, or a text.

        The result equals ``partial_fit`` with the row, in time that does not depend on the rows learned before. Classes
        need not be declared.
        """
        core, rows = self._declare()
        core.learn_row(rows, x, y, encode_labels)
        return self

    def forget_one(self, x: Any, y: Label) -> Self:
        """Forget one learned row, as if the model had never seen it."""
        self._find_core().forget_row(x, y, encode_labels)
        return self

    def predict_proba_one(self, x: Any) -> dict[Label, float]:
        """The probability of each class for one row; empty before the first row was learned."""
        return self._declare()[0].answer_row(x)

    def predict_one(self, x: Any) -> Label | None:
        """The most probable class of one row; None before the first row was learned."""
        found = self.predict_proba_one(x)
        return max(found, key=found.__getitem__) if found else None

    # -- answering -----------------------------------------------------------------------------------------------

    def predict_joint_log_proba(self, X: object) -> Array:
        """log p(c, x) for each row and class."""
        return answer(self._learned(), X)

    def predict_log_proba(self, X: object) -> Array:
        """log p(c | x) for each row and class; the probabilities of a row sum to one."""
        return answer(self._learned(), X, log_normalise)

    def predict_proba(self, X: object) -> Array:
        """p(c | x) for each row and class."""
        return answer(self._learned(), X, normalise)

    def predict(self, X: object) -> Array:
        """The most probable class of each row."""
        learned = self._learned()
        return np.asarray(learned.classes[find_best(learned, X)])

    @property
    def classes_(self) -> Array:
        """The labels, sorted."""
        return self.statistics_.classes

    @property
    def class_count_(self) -> Array:
        """The weight of the rows learned of each class."""
        return self.statistics_.n

    @optional_attribute
    def class_prior_(self) -> Array:
        """P(class): the probability of each class before a row is read."""
        return np.asarray(np.exp(log_normalise(self._learned().model().log_prior()[None]))[0])

    @property
    def clock_(self) -> float:
        """The product of all decays so far: the current weight of a row learned at the start."""
        learned = self._core.state
        return 1.0 if learned is None else learned.clock

    def _html_repr(self) -> str:
        """Render for a notebook: the classes if the model is fitted, otherwise scikit-learn's diagram."""
        if not self.__sklearn_is_fitted__():
            return str(super()._html_repr())
        classes = map(format_cell, self.classes_.tolist())
        rows = tuple(zip(classes, self.class_count_.tolist(), self.class_prior_.tolist(), strict=True))
        return DisplayTable(repr(self), ("class", "rows", "P(class)"), rows)._repr_html_()


class CorrectedClassifier(LearnedClassifier):
    """Base class of classifiers with corrections: ``corrections_`` are in use, ``stale_`` names lost ones."""

    __slots__ = ()

    _requires_all_classes = False

    @optional_attribute
    def corrections_(self) -> Corrections:
        """The corrections in use."""
        corrections = self._learned().find_corrections()
        if corrections is None:
            raise NotAvailableError("the model has no corrections: they were switched off, or it has too few rows.")
        return corrections

    @optional_attribute
    def corrections_version_(self) -> str:
        """A hash of the corrections in use: equal hashes are equal corrections."""
        return hash_content(self.corrections_)

    @property
    def sample_changes_(self) -> int:
        """The number of kept rows that came or went since the corrections were derived."""
        learned = self._core.state
        return 0 if learned is None else learned.changes

    @property
    def stale_(self) -> tuple[str, ...]:
        """Names of corrections that were dropped because no rows are kept to derive them from; see ``refresh``."""
        learned = self._core.state
        return () if learned is None else learned.stale

    @property
    def released_(self) -> tuple[float, ...]:
        """The epsilons of a private release, one for each model that was merged; empty if the counts are exact."""
        learned = self._core.state
        return () if learned is None else learned.released

    def refresh(self, X: object = None, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Derive the corrections anew from the rows that the model keeps.

        Parameters
        ----------
        X, y, sample_weight : rows that the model has learned, optional
            For a model that keeps none (``memory=0``): all of them, or a fair sample.
        """
        encode, weight = partial(encode_labels, y), convert_to_numpy(sample_weight)
        self._change(lambda before: algebra.derive_anew(before, X, encode, weight))
        return self

    def prepare_standby(self) -> Self:
        """Derive corrections that can answer at once when a kept row is forgotten.

        Without them, the next answer after forgetting a kept row has to wait until the corrections are derived anew.
        With them it is given by corrections that have never seen a quarter of the kept rows, among them that row, until
        ``refresh`` derives new ones. It takes as long as four times ``refresh``; call it again after ``refresh``.
        """
        self._declare()[0].prepare_standby()
        return self

    def with_corrections(self) -> Self:
        """A copy with its corrections already derived, so that its copies and files need not derive them."""
        learned = self._core.state
        if learned is None or learned.corrections is not None:
            return self._with_learned(learned)
        corrections = self._learned().derive_corrections()
        return self._with_learned(learned.use_corrections(corrections) if corrections is not None else learned)

    def without_corrections(self) -> Self:
        """A copy that returns uncorrected probabilities, however few rows it has learned."""
        learned = self._core.state
        plain = self._with_learned(None if learned is None else learned.use_corrections(None))
        plain.calibrate = False
        return plain

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        learned = self._core.state
        kept = None if learned is None else learned.corrections  # a repr derives nothing
        corrections = join_words(kept.names) if kept is not None else ""
        return super().__repr__(N_CHAR_MAX) + (f" corrected by {corrections}" if corrections else "")

    # -- sets of classes -----------------------------------------------------------------------------------------

    def predict_set(self, X: object, coverage: float = 0.9, by_class: bool = False) -> Array:
        """(rows, classes): whether each class belongs to the prediction set of each row.

        A share ``coverage`` of the sets of new rows holds the true class; with ``by_class`` that holds for the rows of
        every class. The answers of models without a fold are compared with their answers to the rows of that fold. A
        set is empty where no class is as probable as that.

        Parameters
        ----------
        X : rows
        coverage : float
            The share of rows whose set holds the true class.
        by_class : bool
            Whether the coverage holds among the rows of each class; such sets are larger.
        """
        check_coverage(coverage)
        return choose_sets(answer_without_folds(self._learned(), X), coverage, by_class)

    def p_value(self, X: object) -> Array:
        """(rows,): the share of rows like those learned that are at least as unusual as each row.

        A small p-value says "none of these": the row is improbable under everything learned, or no class is certain,
        compared with the model's own rows, each left out. Of rows like those learned a share t has p-values up to t.
        """
        return find_p_values(self._learned(), X)

    def ask(self, X: object, n: int = 20) -> Questions:
        """Choose n of the rows to label next: uncertain, like many others, and unlike each other.

        The result also tells what accuracy to expect once they are labelled, and when to stop.
        """
        from priory.learning.questions import choose_questions

        return choose_questions(self._learned(), X, n)

    # -- judging -------------------------------------------------------------------------------------------------

    def evaluate(
        self,
        X: object = None,
        y: ArrayLike | None = None,
        folds: Folds = "auto",
        groups: ArrayLike | None = None,
        time: ArrayLike | None = None,
    ) -> Scores:
        """Cross-validate the model by subtraction: rows are scored by a model that has not seen them.

        The rows of a fold are subtracted from the statistics, and everything is derived from the rest: families, bins,
        vocabulary, smoothing and corrections.

        Parameters
        ----------
        X, y : rows that the model has learned, and their labels, optional
            Without them: the rows that the model keeps.
        folds : "auto", "loo", int or a scikit-learn splitter
            The folds of cross-validation. "auto" is ten, five for more than 1,000 rows, and leave-one-out ("loo") for a
            model without corrections.
        groups : array-like, optional
            Rows of one group are left out together.
        time : array-like, optional
            Rows are judged by a model of earlier rows only.

        Returns
        -------
        Scores
        """
        learned = self._learned()
        if X is None:
            if learned.statistics.sample is None:
                raise StaleModelError("the model keeps no rows; call evaluate(X, y) with rows that it has learned.")
            return judge_sample(learned, learned.statistics.sample, folds)
        batch, group, _ = algebra.read_learned_rows(learned, X, partial(encode_labels, y))
        if groups is not None or time is not None or not isinstance(folds, str):
            from priory.estimators.folds import split_learned_rows  # it imports scikit-learn

            return judge_splits(learned, batch, group, split_learned_rows(folds, group, groups, time))
        if not learned.rows.is_calibrated:
            return make_scores(learned, group, answer_left_out(learned, learned.rows.read_cells(batch), group))
        sample, positions = algebra.sample_learned_rows(learned, batch, group, None)
        return judge_sample(learned, sample, folds, positions)

    def audit_membership(self, X: object = None, y: ArrayLike | None = None) -> MembershipAudit:
        """Audit whether the answers give away which rows were learned: the attack by a threshold on p(true class).

        Parameters
        ----------
        X, y : rows that the model has learned, and their labels, optional
            Without them: the rows that the model keeps.
        """
        learned = self._learned()
        if X is not None:
            batch, group, _ = algebra.read_learned_rows(learned, X, partial(encode_labels, y))
            return audit_membership(learned, algebra.sample_learned_rows(learned, batch, group, None)[0])
        if learned.statistics.sample is None:
            raise StaleModelError("the model keeps no rows; call audit_membership(X, y) with rows that it has learned.")
        return audit_membership(learned, learned.statistics.sample)

    def leave_one_out(self, X: object, y: ArrayLike | None) -> Array:
        """(rows, classes): leave-one-out log p(c | x) of learned rows, without corrections."""
        learned = self._learned()
        batch, group, _ = algebra.read_learned_rows(learned, X, partial(encode_labels, y))
        return answer_left_out(learned, learned.rows.read_cells(batch), group)


def find_classifier_fault(model: LearnedClassifier) -> str | None:
    """Describe what is wrong with a loaded model, whose parameters and attributes are valid; None if nothing is."""
    learned = model._learned()
    learned.model().log_prior()  # raises if the declared probabilities do not match the classes
    for statistics in (learned.statistics, learned.unlabelled):
        if statistics is not None and (fault := learned.rows.find_fault(statistics)):
            return fault
    return None if learned.has_fitting_corrections() else "the corrections belong to another model"
