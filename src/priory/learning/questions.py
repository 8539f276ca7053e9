"""Which rows to label next: those whose labels tell most, about themselves and about rows like them.

The information of a label is the entropy of the answer, in nats. It counts the more, the more rows are like the row
(the mean squared cosine with other rows, to the power 1/4), and the less, the more the row is like one that was chosen
already. What labels will gain follows from the learning curve: the error of left-out rows by the model, and by the
model of half of its rows, as a power of the number of rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy import ndarray as Array
from scipy import sparse

from priory.calibration.table_encoding import TableEncoding, make_one_hot
from priory.calibration.token_tables import MarkedTexts, scale_rows
from priory.core.logspace import log_normalise
from priory.core.sharding import space_evenly
from priory.errors import DataError
from priory.learning.learned import Learned, answer
from priory.learning.left_out_scores import count_left_out, judge_kept_rows, subtract_part
from priory.model.cells import Cells, TextCells
from priory.text.token_bags import TokenBags
from priory.text.token_features import MIN_FEATURE_COUNT

MAX_ROWS_COMPARED = 2000  # rows that each row is compared with
DENSITY_POWER = 0.25
MAX_UNLIKE = 100  # rows chosen to be unlike each other; more are in the order of their worth beside these
MIN_KEPT_ROWS = 20  # kept rows: with fewer the learning curve is not known
MAX_POWER = 1.0  # of the learning curve
MIN_ACCURACY_GAIN = 0.002  # of accuracy: for less, more labels are not worth while


@dataclass(frozen=True)
class Questions:
    """Rows to label, the most useful first.

    Attributes
    ----------
    rows : ndarray of shape (n,)
        Their positions.
    information : ndarray of shape (n,)
        The entropy of the answer to each, in nats: what its label would tell.
    accuracy, expected_accuracy : float or None
        Of rows left out now, and once these rows are labelled; None while there are too few rows to tell. They are
        computed when they are read.
    stop : bool
        Whether these labels are expected to gain less than .002 of accuracy.
    """

    rows: Array
    information: Array
    learned: Learned = field(repr=False)

    @cached_property
    def _expected(self) -> tuple[float | None, float | None]:
        return expect_accuracy(self.learned, len(self.rows))

    @property
    def accuracy(self) -> float | None:
        """The accuracy of rows left out."""
        return self._expected[0]

    @property
    def expected_accuracy(self) -> float | None:
        """The accuracy to expect once these rows are labelled."""
        return self._expected[1]

    @property
    def stop(self) -> bool:
        """Whether more labels are expected to gain too little."""
        if self.accuracy is None or self.expected_accuracy is None:
            return False
        return self.expected_accuracy - self.accuracy < MIN_ACCURACY_GAIN

    def __str__(self) -> str:
        if self.accuracy is None or self.expected_accuracy is None:
            return f"{len(self.rows)} rows to label; too few are labelled to tell what they will gain"
        gain = f"accuracy {self.accuracy:.3f} -> {self.expected_accuracy:.3f} expected"
        return f"{len(self.rows)} rows to label: {gain}" + ("; more labels gain little: stop" if self.stop else "")


def choose_questions(learned: Learned, X: object, n: int) -> Questions:
    """Choose n rows to label."""
    if n < 1:
        raise DataError(f"n is {n!r}; ask for at least one row.")
    log_p = answer(learned, X, log_normalise)
    information = -(np.exp(log_p) * np.where(np.isfinite(log_p), log_p, 0.0)).sum(axis=1)
    features = describe_rows(learned, X)
    others = features[space_evenly(features.shape[0], MAX_ROWS_COMPARED)]
    similar = (features @ others.T).power(2).sum(axis=1) / max(others.shape[0], 1)
    value = information * np.asarray(similar).ravel() ** DENSITY_POWER
    chosen: list[int] = []
    fresh = np.ones(len(value))  # 1 - the largest cosine with a chosen row
    for _ in range(min(n, len(value), MAX_UNLIKE)):
        worth = value * fresh
        worth[chosen] = -np.inf
        chosen.append(int(worth.argmax()))
        fresh = np.minimum(fresh, 1 - (features @ features[[chosen[-1]]].T).toarray()[:, 0])
    others = np.setdiff1d(np.arange(len(value)), chosen)
    others = others[np.argsort(-(value * fresh)[others], kind="stable")]
    rows = np.append(np.array(chosen, dtype=np.int64), others)[:n]
    return Questions(rows, information[rows], learned)


def describe_rows(learned: Learned, X: object) -> Any:
    """(rows, features): the words and values of each row as sparse rows of unit length."""
    cells = learned.rows.keep_cells(learned.rows.read_cells(learned.rows.read(X, "answer", learned.statistics)[1]))
    blocks = [describe_block(block) for block in cells]
    joined = sparse.csr_array(sparse.hstack(blocks))
    return scale_rows(joined, np.ones(joined.shape[1]))


def describe_block(block: Cells) -> Any:
    """(rows, features): a text by its words, by idf; other columns by their values or bins."""
    if isinstance(block, TextCells):
        bags = block.data
        assert isinstance(bags, TokenBags)
        shown = np.bincount(bags.ids)
        rows = sparse.csr_array((np.ones(len(bags.ids)), bags.ids, bags.indptr), shape=(len(bags), len(shown)))
        marked, none = rows[:, np.flatnonzero(shown >= MIN_FEATURE_COUNT)], np.zeros(0, dtype=np.int64)
        return MarkedTexts(marked, none, none, marked[:0], 1).read(scaled=True).labelled
    encoding = TableEncoding.of([block], np.ones(len(block)))
    one_hot = make_one_hot(encoding.encode([block]), encoding.starts)
    values = np.ones(len(one_hot.indices)), one_hot.indices, one_hot.ends
    return sparse.csr_array(values, shape=(len(block), one_hot.width))


def expect_accuracy(learned: Learned, n: int) -> tuple[float | None, float | None]:
    """The accuracy of left-out rows now, and with n more labelled rows, by the learning curve."""
    sample = learned.statistics.sample
    if sample is None or len(sample) < MIN_KEPT_ROWS:
        return None, None
    half = sample.take(pick_half(sample.group))
    fewer = subtract_part(learned, count_left_out(learned, half))
    error, error_of_half = (1 - float(judge_kept_rows(each).accuracy.value) for each in (learned, fewer))
    if error <= 0 or error_of_half <= 0:
        return 1 - error, 1 - error
    total = float(learned.statistics.n.sum())
    rows_of_half = float(fewer.statistics.n.sum())
    power = np.clip(np.log(error_of_half / error) / np.log(total / rows_of_half), 0.0, MAX_POWER)
    return 1 - error, float(1 - error * ((total + n) / total) ** -power)


def pick_half(group: Array) -> Array:
    """Every second row of each class, so that each class keeps a row."""
    return np.concatenate([np.flatnonzero(group == c)[1::2] for c in np.unique(group)])
