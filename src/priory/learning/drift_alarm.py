"""Whether rows still come from where earlier rows came from: a Bayes factor for each column and each token.

A column is counted by its values, or by bins of its numbers, within each class if classes are known. With the same
Dirichlet prior, the odds that two tables of counts a and b come from different distributions are

    log factor  =  log evidence(a) + log evidence(b) - log evidence(a + b)

If nothing has changed, a factor of k or more has probability 1/k or less (Markov), so of m columns and tokens one
exceeds m / rate with at most the declared rate of false alarms. Along a stream the change may have begun at any block:
the factors of all beginnings s are averaged with the weights 1 / ((s + 1) (s + 2)), which sum to one, so that the rate
holds for the stream as a whole, however long it is (Ville). Older beginnings are thinned out, so that the blocks kept
grow with the logarithm of the rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
from numpy import ndarray as Array

from priory.calibration.table_encoding import TableEncoding
from priory.core.display_table import format_cell
from priory.core.logspace import betaln, gammaln, log_sum_exp
from priory.errors import DataError
from priory.learning.row_kind import Parameters
from priory.learning.table_rows import TableRows
from priory.model.cells import Cells, TextCells
from priory.text.sparse_counts import make_dense_counts
from priory.text.token_counts import TokenCounts

VIRTUAL_ROWS = 0.5  # of each value: Jeffreys' prior
ROWS_OF_A_BLOCK = 32  # of a stream: the resolution of a change
BLOCKS_OF_A_SIZE = 4  # neighbouring blocks are merged when there are more of a size
CLASS_COLUMN = "(class)"
TABLE_PARAMETERS = {"families": "auto", "alpha": None, "new_columns": "ignore"}


@dataclass(frozen=True, eq=False)
class Tally:
    """Counts of rows: of the codes of every column, and of the texts of every column that show each token."""

    n: Array  # (classes,)
    codes: Array  # (codes, classes)
    tokens: tuple[TokenCounts, ...]

    def __add__(self, other: Tally) -> Tally:
        tokens = tuple(a + b for a, b in zip(self.tokens, other.tokens, strict=True))
        return Tally(self.n + other.n, self.codes + other.codes, tokens)


@dataclass(frozen=True)
class DriftLine:
    """A column, or a token of a text, with the evidence that it has changed."""

    name: str
    token: str | None
    log_factor: float  # natural logarithm of the Bayes factor for a change
    value: str  # the value, bin or token whose share has changed most
    before: float  # its share
    after: float

    def __str__(self) -> str:
        where = f"{self.name}: {self.value}"
        return f"{where}  {self.before:.1%} -> {self.after:.1%}  {10 * self.log_factor / np.log(10):+.0f} decibans"


@dataclass(frozen=True)
class Drift:
    """What has changed, the strongest evidence first.

    Attributes
    ----------
    lines : list of DriftLine
        The columns and tokens with an alarm.
    n_compared : int
        The number of columns and tokens that were compared.
    since : int, optional
        Along a stream: the number of rows before the change.
    """

    lines: list[DriftLine]
    n_compared: int
    false_alarms: float
    since: int | None = None

    def __bool__(self) -> bool:
        return bool(self.lines)

    @property
    def names(self) -> list[str]:
        """The columns and tokens that have changed."""
        return [line.name if line.token is None else line.token for line in self.lines]

    def __str__(self) -> str:
        compared = f"{self.n_compared:,} columns and tokens, at most {self.false_alarms:.1%} false alarms"
        if not self:
            return f"no drift ({compared})"
        since = "" if self.since is None else f" after row {self.since:,}"
        return "\n".join([f"drift{since} ({compared})", *map(str, self.lines)])

    def to_dict(self) -> dict[str, Any]:
        """The same as values for JSON."""
        lines = [vars(line) for line in self.lines]
        return {"drift": bool(self), "since": self.since, "compared": self.n_compared, "changes": lines}


class DriftCounter:
    """Counts rows by the codes of a reference: its columns, bins and labels."""

    def __init__(self, X: object, y: Sequence[object] | None, more: object = None) -> None:
        families = {"text": "text"} if are_texts(X) else "auto"
        rows = TableRows(Parameters(**{**TABLE_PARAMETERS, "families": families}))
        self.rows, batch = rows.read(wrap_rows(X), "fit")
        self.cells = self.rows.read_cells(batch)
        both = self.cells if more is None else [a.append(b) for a, b in zip(self.cells, self.read(more), strict=True)]
        self.encoding = TableEncoding.of(both, np.ones(len(both[0])))
        self.classes: dict[object, int] | None = None if y is None else {}
        blocks = self.rows.schema.blocks
        self.names = [name for block in blocks if block.kind != "text" for name in block.names]
        self.texts = [(b, block.names[0]) for b, block in enumerate(blocks) if block.kind == "text"]
        # one more code for each column: labels that are rare or unknown
        self.starts = self.encoding.starts + np.arange(len(self.encoding.starts))

    def read(self, X: object) -> list[Cells]:
        """Read rows with the columns of the reference."""
        return self.rows.read_cells(self.rows.read(wrap_rows(X), "answer")[1])

    def count(self, cells: Sequence[Cells], y: Sequence[object] | None) -> Tally:
        """Count rows; the classes are numbered as they come."""
        n_rows = len(cells[0])
        if (y is None) != (self.classes is None) or (y is not None and len(y) != n_rows):
            raise DataError("give a class for each row of both tables, or for none.")
        group = np.zeros(n_rows, dtype=np.int64)
        if y is not None and self.classes is not None:
            known = self.classes
            group = np.array([known.setdefault(label, len(known)) for label in np.asarray(y).tolist()], dtype=np.int64)
        n_classes = 1 if self.classes is None else len(self.classes)
        codes = self.encoding.encode(cells)
        codes = np.where(codes < 0, np.diff(self.starts) - 1, codes) + self.starts[:-1]  # (rows, columns)
        cell = codes * n_classes + group[:, None]
        counts = np.bincount(cell.ravel(), minlength=int(self.starts[-1]) * n_classes).astype(float)
        n = np.bincount(group, minlength=n_classes).astype(float)
        return Tally(n, counts.reshape(-1, n_classes), tuple(self._count_texts(cells, group, n_classes)))

    def _count_texts(self, cells: Sequence[Cells], group: Array, n_classes: int) -> list[TokenCounts]:
        found = []
        for b, _ in self.texts:
            column, block = cells[b], self.rows.schema.blocks[b]
            assert isinstance(column, TextCells)
            record = block.text_family().build_model().count(column.data, group, n_classes)
            assert isinstance(record, TokenCounts)
            found.append(record)
        return found

    def widen(self, tally: Tally) -> Tally:
        """The tally over all classes known by now."""
        size, index = 1 if self.classes is None else len(self.classes), np.arange(len(tally.n))
        if len(tally.n) == size:
            return tally
        tokens = tuple(record.regroup_classes(index, size) for record in tally.tokens)
        codes = np.pad(tally.codes, ((0, 0), (0, size - len(tally.n))))
        return Tally(np.pad(tally.n, (0, size - len(tally.n))), codes, tokens)

    def log_evidence(self, tally: Tally) -> Array:
        """Log evidence of the classes if there are any, of each column, and of each token."""
        found = [] if self.classes is None else [log_dirichlet(tally.n[:, None], np.array([0, len(tally.n)]))]
        found += [log_dirichlet(tally.codes, self.starts), *(log_beta(record, tally.n) for record in tally.tokens)]
        return np.concatenate(found)

    def n_compared(self, tally: Tally) -> int:
        """The number of columns and tokens that are compared, the classes included."""
        return len(self.names) + int(self.classes is not None) + sum(map(len, tally.tokens))

    def compare(self, before: Tally, after: Tally, log_factor: Array, least: float) -> list[DriftLine]:
        """Name the columns and tokens whose log factor is at least ``least``, strongest first."""
        chosen = np.flatnonzero(log_factor >= least)
        chosen = chosen[np.argsort(-log_factor[chosen], kind="stable")]
        n_classes, lines = int(self.classes is not None), []
        for k in chosen.tolist():
            name, token, value, shares = self._describe(k - n_classes, before, after)
            lines.append(DriftLine(name, token, float(log_factor[k]), value, *shares))
        return lines

    def _describe(self, k: int, before: Tally, after: Tally) -> tuple[str, str | None, str, tuple[float, float]]:
        """Name column or token k (-1 for the classes), its value that changed most, and both shares of that value."""
        sides = before, after
        if k < 0:
            shares = np.array([side.n / max(side.n.sum(), 1) for side in sides])
            names = [format_cell(label) for label in self.classes or ()]
        elif k < len(self.names):
            part = slice(self.starts[k], self.starts[k + 1])
            shares = np.array([side.codes[part].sum(axis=1) / max(side.n.sum(), 1) for side in sides])
            names = name_codes(self.encoding, k)
        else:
            k -= len(self.names)
            for text, (_, column) in enumerate(self.texts):
                size = len(before.tokens[text])
                if k < size:
                    one, two = (side.tokens[text].take_tokens(np.array([k])) for side in sides)
                    [token] = one.tokens()
                    shown = float(one.counts.sum() / max(before.n.sum(), 1)), float(two.counts.sum() / after.n.sum())
                    return column, token, repr(token), shown
                k -= size
        at = int(np.abs(shares[1] - shares[0]).argmax())
        column = CLASS_COLUMN if k < 0 else self.names[k]
        return column, None, names[at], (float(shares[0, at]), float(shares[1, at]))


def are_texts(X: object) -> bool:
    """Whether rows are given as a list of texts."""
    return isinstance(X, list | tuple) and len(X) > 0 and isinstance(X[0], (str, bytes))


def is_single_row(X: object) -> bool:
    """Whether X is one text, or one dict of column to cell."""
    return isinstance(X, (str, bytes)) or (isinstance(X, Mapping) and not any(np.ndim(v) for v in X.values()))


def wrap_rows(X: object) -> Any:
    """Texts as a table of one column; other rows unchanged."""
    return {"text": X} if are_texts(X) else X


def name_codes(encoding: TableEncoding, column: int) -> list[str]:
    """Names of the codes of a column: labels or bins, then missing and other values."""
    codes = encoding.columns[column]
    known = [format_cell(value) for value in codes.edges_or_labels.tolist()]
    if codes.is_number:
        known = [f"up to {known[0]}", *(f"from {edge}" for edge in known)] if known else ["any number"]
    return [*known, "(missing)", "(other)"]


def log_dirichlet(counts: Array, starts: Array) -> Array:
    """(columns,): log evidence of counts (codes, classes); column j has the codes from starts[j] to starts[j + 1]."""
    width = VIRTUAL_ROWS * np.diff(starts)[:, None]
    each = gammaln(counts + VIRTUAL_ROWS) - gammaln(VIRTUAL_ROWS)
    columns = np.add.reduceat(each, starts[:-1], axis=0) if len(starts) > 1 else np.zeros((0, counts.shape[1]))
    total = np.add.reduceat(counts, starts[:-1], axis=0) if len(starts) > 1 else columns
    return np.asarray((columns + gammaln(width) - gammaln(width + total)).sum(axis=1))


def log_beta(record: TokenCounts, n: Array) -> Array:
    """(tokens,): log evidence of the number of texts of each class that show a token, of n (classes,)."""
    shown = make_dense_counts(record.counts)
    return np.asarray((betaln(shown + VIRTUAL_ROWS, n - shown + VIRTUAL_ROWS) - betaln(0.5, 0.5)).sum(axis=1))


def align_tokens(tallies: Sequence[Tally]) -> list[Tally]:
    """The same tallies over the union of their tokens."""
    *_, total = accumulate(tallies)
    wide = [tuple(t.align(every)[0] for t, every in zip(tally.tokens, total.tokens, strict=True)) for tally in tallies]
    return [Tally(tally.n, tally.codes, tokens) for tally, tokens in zip(tallies, wide, strict=True)]


def check_rate(false_alarms: float) -> None:
    """Raise an error unless the rate of false alarms is between 0 and 1."""
    if not 0 < false_alarms < 1:
        raise DataError(f"false_alarms is {false_alarms!r}; use a share between 0 and 1, such as 0.01.")


def find_drift(
    before: object,
    after: object,
    y_before: Sequence[object] | None = None,
    y_after: Sequence[object] | None = None,
    false_alarms: float = 0.01,
) -> Drift:
    """Compare two tables, or two lists of texts: which columns and tokens have changed?

    Parameters
    ----------
    before, after : tables with the same columns, or lists of texts
    y_before, y_after : sequences of classes, optional
        With them columns are compared within each class, and so are the shares of the classes.
    false_alarms : float
        The probability of naming any column or token if nothing has changed.

    Examples
    --------
    >>> print(find_drift({"size": ["S", "M"] * 50}, {"size": ["M", "L"] * 50}).names)
    ['size']
    """
    check_rate(false_alarms)
    counter = DriftCounter(before, y_before, after)
    first, second = counter.count(counter.cells, y_before), counter.count(counter.read(after), y_after)
    first, second = align_tokens([counter.widen(first), second])
    log_factor = sum(map(counter.log_evidence, (first, second))) - counter.log_evidence(first + second)
    lines = counter.compare(first, second, log_factor, np.log(len(log_factor) / false_alarms))
    return Drift(lines, len(log_factor), false_alarms)


@dataclass(frozen=True, eq=False)
class Block:
    """Neighbouring rows of a stream."""

    first: int  # the number of blocks before it
    size: int  # in blocks of the smallest size
    tally: Tally


class DriftMonitor:
    """Watch a stream for changes since a reference, at a declared rate of false alarms.

    Parameters
    ----------
    X, y : the rows before the stream, and their classes if the stream has classes
        A few hundred at least: their values and quantiles define what is counted.
    false_alarms : float
        The probability of ever giving an alarm if nothing changes.

    Attributes
    ----------
    n_rows : int
        The number of rows of the stream so far.

    Examples
    --------
    >>> monitor = DriftMonitor({"size": ["S", "M"] * 100})
    >>> monitor.update({"size": ["S", "M"] * 100}) is None
    True
    >>> monitor.update({"size": ["L", "M"] * 100}).names
    ['size']
    """

    def __init__(self, X: object, y: Sequence[object] | None = None, false_alarms: float = 0.01) -> None:
        check_rate(false_alarms)
        self.false_alarms = false_alarms
        self.counter = DriftCounter(X, y)
        self.reference = self.counter.count(self.counter.cells, y)
        self.n_rows, self._start, self._blocks, self._n_blocks = 0, 0, list[Block](), 0
        self._waiting: list[Cells] | None = None  # rows of a block that is not full yet
        self._single: list[object] = []  # the same, given one by one
        self._classes: list[object] = []  # of both

    def update(self, X: object, y: Any = None) -> Drift | None:
        """Count rows, or one row (a dict or a text) with its class; return the drift at the alarm, None before.

        After an alarm the rows since the change are the new reference.
        """
        has_classes = self.counter.classes is not None
        if (y is not None) != has_classes:
            raise DataError("give the classes of the rows if the reference has classes, otherwise none.")
        if is_single_row(X):
            self._single.append(X)
            self._classes += [y] if has_classes else []
            if len(self._single) < ROWS_OF_A_BLOCK:
                return None
            X, y, self._single = self._single, [] if has_classes else None, []
        return self._add_rows(self.counter.read(X), [] if y is None else list(y))

    def _add_rows(self, cells: list[Cells], labels: list[object]) -> Drift | None:
        """Add rows after those that wait; count full blocks until there is an alarm."""
        earlier = [] if self._waiting is None else [self._waiting]
        if self._single:
            earlier.append(self.counter.read(self._single))
            self._single = []
        for before in reversed(earlier):
            cells = [a.append(b) for a, b in zip(before, cells, strict=True)]
        classes = [*self._classes, *labels]
        if self.counter.classes is not None and len(classes) != len(cells[0]):
            raise DataError(f"there are {len(cells[0])} rows and {len(classes)} classes; give one for each row.")
        found = None
        while len(cells[0]) >= ROWS_OF_A_BLOCK and found is None:
            some, cells = ([x.take_rows(part) for x in cells] for part in (BLOCK_ROWS, LATER_ROWS))
            own, classes = classes[BLOCK_ROWS], classes[LATER_ROWS]
            found = self._add_block(self.counter.count(some, own if self.counter.classes is not None else None))
        self._waiting, self._classes = cells, classes
        return found

    def _add_block(self, tally: Tally) -> Drift | None:
        self._blocks = merge_blocks([*self._blocks, Block(self._n_blocks, 1, tally)])
        self._n_blocks += 1
        self.n_rows += ROWS_OF_A_BLOCK
        tallies = align_tokens([self.counter.widen(t) for t in (self.reference, *(b.tally for b in self._blocks))])
        before, after = list(accumulate(tallies)), list(accumulate(tallies[::-1]))[::-1]  # sums from both ends
        both, evidence = self.counter.log_evidence(before[-1]), self.counter.log_evidence
        # (beginnings, columns and tokens): log factors, with the log weights of the beginnings
        factors = np.array([evidence(a) + evidence(b) - both for a, b in zip(before, after[1:], strict=False)])
        first = np.array([block.first for block in self._blocks])
        weighted = factors - np.log((first + 1.0) * (first + 2.0))[:, None]
        total = log_sum_exp(weighted, axis=0)
        least = np.log(len(total) / self.false_alarms)
        if total.max() < least:
            return None
        best = int(weighted[:, int(total.argmax())].argmax())
        since = self._start + ROWS_OF_A_BLOCK * int(first[best])
        lines = self.counter.compare(before[best], after[best + 1], total, least)
        self.reference, self._blocks, self._n_blocks, self._start = after[best + 1], [], 0, self.n_rows
        return Drift(lines, len(total), self.false_alarms, since)


BLOCK_ROWS, LATER_ROWS = slice(ROWS_OF_A_BLOCK), slice(ROWS_OF_A_BLOCK, None)


def merge_blocks(blocks: list[Block]) -> list[Block]:
    """Merge the two oldest blocks of a size if there are too many of that size, the smallest size first."""
    size = 1
    while sum(block.size == size for block in blocks) > BLOCKS_OF_A_SIZE:
        k = next(k for k, block in enumerate(blocks) if block.size == size)
        merged = Block(blocks[k].first, 2 * size, blocks[k].tally + blocks[k + 1].tally)
        blocks = [*blocks[:k], merged, *blocks[k + 2 :]]
        size *= 2
    return blocks
