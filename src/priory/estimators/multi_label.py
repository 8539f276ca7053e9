"""`MultiLabelClassifier`: several labels for each row, from one record whose classes are sets of labels.

The rows with a label are the sum of all classes that hold it, and the rows without it are the rest:

    yes(label)  =  sum of the sets with the label,      no(label)  =  total - yes(label)

So every row is counted once, each label has a model of two classes with corrections of its own, and the record learns,
forgets and merges. Labels of a hierarchy, such as ``sport/tennis``, bring their parents along, so that a parent is the
sum of its children; a label is judged among the rows of its parent, and p(label) = p(parent) p(label | parent).
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Literal, Self, TypeAlias

import numpy as np
from numpy import ndarray as Array

from priory.core.logspace import normalise
from priory.errors import DataError, suggest_name
from priory.estimators.learned_classifier import CorrectedClassifier
from priory.estimators.scikit_learn import BaseEstimator, raise_not_fitted
from priory.estimators.text_classifier import TextClassifier
from priory.evaluation.label_scores import LabelScores, choose_f1_threshold
from priory.learning.learned import Learned
from priory.learning.left_out_scores import check_kept_rows, judge_sample
from priory.model.model_statistics import ModelStatistics

FOLDS = 3  # of rows that are left out: each derives the corrections of every label
NO_YES = np.array([0, 1])
PATH_SEPARATOR = "/"
Threshold: TypeAlias = float | Literal["f1"] | Mapping[str, float]


@dataclass(eq=False, repr=False)
class MultiLabelClassifier(BaseEstimator):
    """Any number of labels for each row.

    Parameters
    ----------
    estimator : TextClassifier or NaiveBayes, optional
        The model; by default ``TextClassifier(pairs=False, analyzer="word")``, which weighs single words: trying finer
        tokens for every label takes most of the time. ``TextClassifier(refine=False)`` answers several times faster,
        by tempered naive Bayes.
    threshold : float, "f1", or dict with the costs "fp" and "fn"
        A label is given from this probability on; "f1" chooses the probability with the largest F1 of left-out rows
        for each label, and with costs it is fp / (fp + fn).
    hierarchy : bool
        Whether labels are paths, such as ``sport/tennis``.
    separator : str
        The sign between the labels of a row where they are written as one string.

    Attributes
    ----------
    classes_ : ndarray of shape (n_labels,)
        The labels, sorted.
    estimator_ : TextClassifier or NaiveBayes
        The model, whose classes are sets of labels; it can be saved, and ``MultiLabelClassifier.of(model)`` reads it.
    thresholds_ : ndarray of shape (n_labels,)
        The thresholds in use.

    Examples
    --------
    >>> texts = ["win cash now", "cash for lunch", "lunch at noon", "see you at noon"] * 5
    >>> model = MultiLabelClassifier().fit(texts, [["money"], ["money", "food"], ["food"], []] * 5)
    >>> model.list_labels(["cash now", "lunch, and cash?"])
    [['money'], ['food', 'money']]
    """

    estimator: CorrectedClassifier | None = None
    _: KW_ONLY
    threshold: Threshold = 0.5
    hierarchy: bool = False
    separator: str = ";"

    @classmethod
    def of(cls, model: CorrectedClassifier, **parameters: Any) -> Self:
        """View a model whose classes are sets of labels, written with the separator."""
        view = cls(model, **parameters)
        view.estimator_ = model
        return view

    # -- learning ------------------------------------------------------------------------------------------------

    def fit(self, X: object, y: Any) -> Self:
        """Fit the model to all rows; ``y`` has the labels of each row, or is an indicator matrix."""
        base = TextClassifier(pairs=False, analyzer="word") if self.estimator is None else self.estimator
        model = type(base)(**base.get_params(deep=False))
        self.estimator_ = model.adopt(model.counter().count(X, self.join_labels(y)), finish=False)
        return self

    def partial_fit(self, X: object, y: Any) -> Self:
        """Learn from more rows."""
        if not hasattr(self, "estimator_"):
            return self.fit(X, y)
        part = self.estimator_.counter(known=True).count(X, self.join_labels(y))
        self.estimator_._change(lambda before: before if part is None else before + part)
        return self

    def forget(self, X: object, y: Any) -> Self:
        """Forget learned rows, as if the model had never seen them."""
        self._find_model().forget(X, self.join_labels(y))
        return self

    def merge(self, *others: Self) -> Self:
        """Add the statistics of all models into a new model."""
        total = copy.copy(self)
        total.estimator_ = self._find_model().merge(*(other._find_model() for other in others))
        return total

    def __add__(self, other: Self) -> Self:
        return self.merge(other)

    def _find_model(self) -> CorrectedClassifier:
        if not hasattr(self, "estimator_"):
            raise_not_fitted(self)
        return self.estimator_

    def join_labels(self, y: Any) -> Array:
        """(rows,): the labels of each row as one string, which is a class of the record."""
        rows = list_label_rows(y, self.separator)
        if self.hierarchy:
            rows = [[parent for label in labels for parent in list_parents(label)] for labels in rows]
        joined = np.empty(len(rows), dtype=object)
        joined[:] = [self.separator.join(sorted(set(labels))) for labels in rows]
        return joined

    # -- the labels ----------------------------------------------------------------------------------------------

    def _members(self, statistics: ModelStatistics) -> tuple[list[str], Array]:
        """The labels, sorted, and whether each set holds each label: (sets, labels)."""
        sets = [set(text.split(self.separator)) - {""} for text in statistics.classes.tolist()]
        labels = sorted(set().union(*sets))
        return labels, np.array([[label in held for label in labels] for held in sets], dtype=bool).reshape(
            len(sets), -1
        )

    def _models(self) -> list[Learned]:
        """The model of each label, of the classes no and yes; derived once from the statistics."""
        learned = self._find_model()._learned()
        key = repr(learned.rows.parameters), self.separator, self.hierarchy
        return learned.statistics.derive("labels", lambda _: self._split(learned), *key)

    def _split(self, learned: Learned) -> list[Learned]:
        labels, members = self._members(learned.statistics)
        place = {label: k for k, label in enumerate(labels)}
        models = []
        for k, label in enumerate(labels):
            parent = label.rpartition(PATH_SEPARATOR)[0] if self.hierarchy else ""
            among = members[:, place[parent]] if parent in place else np.ones(len(members), dtype=bool)
            models.append(Learned(learned.rows, split_classes(learned.statistics, members[:, k], among)))
        return models

    def model_of(self, label: str) -> CorrectedClassifier:
        """The model of a label, of the classes 0 (no) and 1 (yes): it explains, evaluates, and can be saved."""
        labels = self.classes_.tolist()
        if label not in labels:
            raise DataError(f"there is no label {label!r}{suggest_name(label, labels)}")
        return self._find_model()._with_learned(self._models()[labels.index(label)])

    @property
    def classes_(self) -> Array:
        """The labels, sorted."""
        return np.array(self._members(self._find_model().statistics_)[0], dtype=object)

    # -- answering -----------------------------------------------------------------------------------------------

    def predict_proba(self, X: object) -> Array:
        """(rows, labels): the probability of each label."""
        learned, models = self._find_model()._learned(), self._models()
        cells = learned.rows.keep_cells(learned.rows.read_cells(learned.rows.read(X, "answer", learned.statistics)[1]))
        answers = [normalise(model.calibrated().log_probabilities(cells))[:, 1] for model in models]
        return self._multiply_paths(np.array(answers).reshape(len(models), len(cells[0])).T)

    def _multiply_paths(self, probabilities: Array) -> Array:
        """(rows, labels): p(label) from p(label | parent), with hierarchies."""
        labels = self.classes_.tolist()
        place = {label: k for k, label in enumerate(labels)}
        for k, label in enumerate(labels) if self.hierarchy else ():  # sorted: a parent comes before its children
            parent = place.get(label.rpartition(PATH_SEPARATOR)[0])
            if parent is not None:
                probabilities[:, k] *= probabilities[:, parent]
        return probabilities

    def predict(self, X: object) -> Array:
        """(rows, labels): 1 for each label that is given."""
        return (self.predict_proba(X) >= self.thresholds_).astype(np.int64)

    def list_labels(self, X: object) -> list[list[str]]:
        """The labels that are given to each row."""
        labels = self.classes_
        return [labels[given].tolist() for given in self.predict(X).astype(bool)]

    @property
    def thresholds_(self) -> Array:
        """(labels,): the probability from which on a label is given."""
        chosen = self.threshold
        if isinstance(chosen, Mapping):
            if not {"fp", "fn"} == set(chosen) or min(chosen.values()) < 0 or not sum(chosen.values()):
                raise DataError(f"threshold is {dict(chosen)!r}; give the costs fp and fn, not negative.")
            return np.full(len(self.classes_), chosen["fp"] / (chosen["fp"] + chosen["fn"]))
        if chosen != "f1":
            if isinstance(chosen, str) or not 0 <= chosen <= 1:
                raise DataError(f"threshold is {chosen!r}; use a number from 0 to 1, 'f1', or costs fp and fn.")
            return np.full(len(self.classes_), float(chosen))
        truth, probabilities = self._answer_left_out()
        return np.array([choose_f1_threshold(t, p) for t, p in zip(truth.T, probabilities.T, strict=True)])

    def _answer_left_out(self) -> tuple[Array, Array]:
        """Truth and left-out probability of the rows that the model keeps, both (rows, labels); derived once."""
        learned = self._find_model()._learned()
        key = repr(learned.rows.parameters), self.separator, self.hierarchy
        return learned.statistics.derive("left-out labels", lambda _: self._leave_folds_out(learned), *key)

    def _leave_folds_out(self, learned: Learned) -> tuple[Array, Array]:
        sample, models = check_kept_rows(learned), self._models()
        found = np.empty((len(sample), len(models)))
        for k, model in enumerate(models):
            own = check_kept_rows(model)
            scores = judge_sample(model, own, FOLDS, np.arange(len(own)))
            answers = np.exp(scores.log_probabilities[:, 1])
            # rows without the parent are not among those judged: there the label is as probable as in its parent
            found[:, k] = answers.mean()
            found[np.searchsorted(sample.hashes, own.hashes[scores.positions]), k] = answers
        return self._members(learned.statistics)[1][sample.group], self._multiply_paths(found)

    def evaluate(self) -> LabelScores:
        """Score the rows that the model keeps, each by a model that has not seen it, at the thresholds in use."""
        truth, probabilities = self._answer_left_out()
        return LabelScores.of(truth, probabilities, self.thresholds_, self.classes_.tolist())

    def score_labels(self, X: object, y: Any) -> LabelScores:
        """Score new rows with known labels."""
        return LabelScores.of(self.mark_labels(y), self.predict_proba(X), self.thresholds_, self.classes_.tolist())

    def mark_labels(self, y: Any) -> Array:
        """(rows, labels): whether each row has each known label."""
        labels, held = self.classes_.tolist(), [set(text.split(self.separator)) for text in self.join_labels(y)]
        return np.array([[label in row for label in labels] for row in held], dtype=bool).reshape(len(held), -1)


def split_classes(statistics: ModelStatistics, yes: Array, among: Array) -> ModelStatistics:
    """Statistics of two classes, no and yes, from classes that are marked as either: (classes,)."""
    counts, parts, sample = replace(statistics, sample=None), [], statistics.sample
    for place, chosen in enumerate((among & ~yes, among & yes)):
        pooled = counts.take_classes(np.flatnonzero(chosen)).pool_classes()
        parts.append(replace(pooled.regroup_classes(np.array([place]), 2), classes=NO_YES))
    if sample is not None:  # the same rows, in the same order
        kept = sample if among.all() else sample.take(np.flatnonzero(among[sample.group]))
        sample = replace(kept, group=yes[kept.group].astype(np.int32))
    return replace(parts[0] + parts[1], sample=sample)


def list_label_rows(y: Any, separator: str) -> list[list[str]]:
    """The labels of each row, from lists or sets of labels, strings with a separator, or an indicator matrix."""
    shape = getattr(y, "shape", ())
    if len(shape) == 2:
        held = y.toarray() if hasattr(y, "toarray") else np.asarray(y)
        if not np.isin(held, (0, 1)).all():
            raise DataError("y is a matrix with other values than 0 and 1; give 1 where a row has a label.")
        names = [str(name) for name in getattr(y, "columns", range(held.shape[1]))]
        return [[names[k] for k in np.flatnonzero(row)] for row in held]
    return [_check_labels(labels, row, separator) for row, labels in enumerate(y)]


def _check_labels(labels: object, row: int, separator: str) -> list[str]:
    if isinstance(labels, str):
        return [label.strip() for label in labels.split(separator) if label.strip()]
    if not isinstance(labels, Iterable):
        raise DataError(f"y[{row}] is {labels!r}; give a list of labels for each row, or an indicator matrix.")
    found = [label if isinstance(label, str) else str(label) for label in labels]
    bad = next((label for label in found if separator in label or not label.strip()), None)
    if bad is not None:
        raise DataError(f"y[{row}]: the label {bad!r} is empty or contains {separator!r}; choose another separator.")
    return found


def list_parents(label: str) -> Sequence[str]:
    """A label with all its parents: ``a/b`` gives ``a`` and ``a/b``.

    >>> list_parents("a/b/c")
    ['a', 'a/b', 'a/b/c']
    """
    parts = label.split(PATH_SEPARATOR)
    return [PATH_SEPARATOR.join(parts[: k + 1]) for k in range(len(parts))]
