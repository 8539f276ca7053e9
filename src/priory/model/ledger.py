"""The ledger: the evidence of each column or token for one answer, which adds up to its log odds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple, overload

import numpy as np
from numpy import ndarray as Array

from priory.core.display_table import import_pandas
from priory.core.typing import Label
from priory.errors import DataError
from priory.model.ledger_output import (
    DECIBANS_PER_NAT,
    EVIDENCE_UNITS,
    UNITS_PER_NAT,
    JSONValue,
    ShapleyValues,
    compute_shapley_values,
    convert_ledger_to_dict,
    exp_or_infinity,
    format_ledger,
    format_ledger_html,
    mark_text,
)
from priory.text.document_models import BagOfWords, WeightTable, take_token_rows
from priory.text.normal_forms import Document
from priory.text.sparse_counts import make_dense_counts
from priory.text.token_counts import TokenCounts
from priory.text.token_features import TokenFeatures, make_pair_hasher, make_pair_tokenizer
from priory.text.tokenizer import Tokenizer, encode_vocabulary, find_token_spans
from priory.text.vocabulary import UNKNOWN_TOKEN

if TYPE_CHECKING:
    import pandas as pd


MIN_REFERENCE_TEXTS = 20  # of each class; fewer do not show what is usual
CONTRARY_SHARE = 0.8


@dataclass(frozen=True)
class LedgerLine:
    """One entry: a name, the value of the row, and its log probability under each class."""

    name: str
    value: object
    log_likelihood: tuple[float, ...]
    spans: tuple[tuple[int, int], ...] = ()  # positions of a token in the text
    columns: tuple[str, ...] = ()  # of a table: the columns that it is about, several if it is their interaction


class SideOfClass(NamedTuple):
    """The evidence of a text for and against a class in decibans, and how usual both are among texts of the class.

    ``share_for`` is the share of left-out texts of the class with at most as much evidence for it, ``share_against``
    of those with at least as much evidence against it; the text itself counts, so that neither is zero.
    """

    evidence_for: float
    evidence_against: float
    share_for: float
    share_against: float
    n_texts: int

    @property
    def typicality(self) -> float:
        """The share of texts of this class, at most, that are as unusual, on the one side or on the other.

        Four fifths of it are for evidence against the class, where attacks show.
        """
        return min(1.0, self.share_for / (1 - CONTRARY_SHARE), self.share_against / CONTRARY_SHARE)


@dataclass(frozen=True)
class Ledger:
    """The explanation of one row: log probabilities of each class in ``prior`` and ``lines``, which sum to ``total``.

    The *weight of evidence* of a line is its contribution to the log odds of the most probable class against the
    second. Of a corrected table, lines are compared to the average row, which is the name of the first entry. If the
    model is tempered (each part has a weight, fitted to held-out rows), the prior is the class prior times its weight,
    and its name is "prior (tempered)".
    """

    classes: tuple[Label, ...]
    prior: LedgerLine
    lines: tuple[LedgerLine, ...]
    text: str | None = None
    unit: str = "decibans"  # of the output: decibans, nats, bits, or probability
    corrections: tuple[str, ...] = ()  # names of the model's corrections to naive Bayes
    smoothing: str = ""  # describes the virtual rows, if they are many compared to the learned rows
    sides: Mapping[Label, SideOfClass] = field(default_factory=dict)  # of a text: evidence for and against each class

    def entries(self) -> tuple[LedgerLine, ...]:
        """The prior and all lines."""
        return (self.prior, *self.lines)

    @property
    def total(self) -> tuple[float, ...]:
        """log p(c, x) for each class: the sum of the entries, correctly rounded."""
        return tuple(_sum_exactly(line.log_likelihood[c] for line in self.entries()) for c in range(len(self.classes)))

    def ranked(self) -> list[int]:
        """The class numbers, most probable first."""
        total = self.total
        return sorted(range(len(total)), key=lambda c: -total[c])

    @property
    def no_evidence(self) -> bool:
        """Whether the prediction is based on the prior alone."""
        return not any(any(line.log_likelihood) for line in self.lines)

    @property
    def winner(self) -> Label:
        """The most probable class."""
        return self.classes[self.ranked()[0]]

    @property
    def doubt(self) -> str:
        """What speaks most against a clear answer, if anything does.

        "young": a class has too few texts to say what is usual; "contrary": unusually strong evidence against the
        answer; "unlike": unusually weak evidence for it. `SideOfClass.typicality` says how unusual.
        """
        own = self.sides.get(self.winner)
        if own is None:
            return ""
        if min(side.n_texts for side in self.sides.values()) < MIN_REFERENCE_TEXTS:
            return "young"
        return "contrary" if own.share_against / CONTRARY_SHARE == own.typicality else "unlike"

    def weights(self, for_class: Label | None = None, against: Label | None = None) -> list[float]:
        """Weight of evidence of each entry in nats, for one class (the winner) against another (the runner-up)."""
        ranked = self.ranked()
        a = ranked[0] if for_class is None else self.classes.index(for_class)
        if len(ranked) == 1:
            return [0.0 for _ in self.entries()]
        # the most probable other class
        b = next(c for c in ranked if c != a) if against is None else self.classes.index(against)
        return [_subtract_or_zero(line.log_likelihood[a], line.log_likelihood[b]) for line in self.entries()]

    def log_odds(self, for_class: Label | None = None, against: Label | None = None) -> float:
        """The sum of the weights of evidence."""
        return _sum_exactly(self.weights(for_class, against))

    def to_frame(self) -> pd.DataFrame:
        """The entries as rows of a data frame: a column for each class, and the weight of evidence.

        In the unit "probability" the columns are probabilities, and the weight is the factor of the odds.
        """
        is_probability = self.unit == "probability"
        head, name = ("p", "factor") if is_probability else ("log p", self.unit)
        rows = []
        for line, weight in zip(self.entries(), self.weights(), strict=True):
            logs = map(exp_or_infinity, line.log_likelihood) if is_probability else line.log_likelihood
            by_class = {f"{head}({label})": number for label, number in zip(self.classes, logs, strict=True)}
            gain = exp_or_infinity(weight) if is_probability else weight * UNITS_PER_NAT[self.unit]
            rows.append({"name": line.name, "value": line.value} | by_class | {name: gain})
        return import_pandas().DataFrame(rows)

    def __str__(self) -> str:
        return format_ledger(self)

    def __repr__(self) -> str:
        return str(self)

    def to_dict(self) -> dict[str, JSONValue]:
        """The ledger for JSON: the weight of each line for the winner against the runner-up, the largest first."""
        return convert_ledger_to_dict(self)

    def _repr_html_(self) -> str:
        return format_ledger_html(self)

    def probabilities(self) -> tuple[float, ...]:
        """p(c | row) for each class; NaN if every class is ruled out."""
        total = np.asarray(self.total)
        with np.errstate(invalid="ignore"):
            shares = np.exp(total - total.max())
        return tuple((shares / shares.sum()).tolist())

    def marked(
        self, for_class: Label | None = None, against: Label | None = None, max_characters: int | None = None
    ) -> str:
        """The text as HTML, with evidence for and against the most probable class marked by CSS classes.

        The text is cut after ``max_characters``.
        """
        weight = {}
        for line, w in zip(self.lines, self.weights(for_class, against)[1:], strict=True):
            weight.update(dict.fromkeys(line.spans, w))
        return mark_text(self.text or "", weight, max_characters)


class Ledgers(Sequence[Ledger]):
    """The ledgers of several rows."""

    def __init__(self, ledgers: Sequence[Ledger]) -> None:
        self._ledgers = list(ledgers)

    @classmethod
    def of(
        cls,
        classes: Array,
        first: Array,
        terms: Array,
        sources: Sequence[tuple[str, ...] | str],
        cells: Sequence[Sequence[object]],
        prior_name: str = "prior",
        unit: str = "decibans",
        corrections: tuple[str, ...] = (),
        smoothing: str = "",
    ) -> Ledgers:
        """Make a ledger for each row, with a first entry (rows, classes) and lines ``terms`` (rows, classes, lines).

        ``sources`` are the columns of each line, or its name if it is not about columns, and ``cells`` the displayed
        values.
        """
        # a line that is zero in all rows is left out, unless it is of a single column
        kept = [k for k, source in enumerate(sources) if len(source) == 1 or terms[:, :, k].any()]
        named = [_name_line(sources[k]) for k in kept]
        return cls(
            [
                Ledger(
                    tuple(classes.tolist()),
                    LedgerLine(prior_name, "", tuple(prior.tolist())),
                    tuple(
                        LedgerLine(name, values[k], tuple(row[:, k].tolist()), columns=columns)
                        for k, (name, columns) in zip(kept, named, strict=True)
                    ),
                    unit=unit,
                    corrections=corrections,
                    smoothing=smoothing,
                )
                for prior, row, values in zip(first, terms, cells, strict=True)
            ]
        )

    @overload
    def __getitem__(self, i: int) -> Ledger: ...

    @overload
    def __getitem__(self, i: slice) -> Ledgers: ...

    def __getitem__(self, i: int | slice) -> Ledger | Ledgers:
        return Ledgers(self._ledgers[i]) if isinstance(i, slice) else self._ledgers[i]

    def __len__(self) -> int:
        return len(self._ledgers)

    def __iter__(self) -> Iterator[Ledger]:
        return iter(self._ledgers)

    def convert_unit(self, unit: str) -> Ledgers:
        """The same ledgers, shown in another unit."""
        return Ledgers([replace(ledger, unit=check_unit(unit)) for ledger in self._ledgers])

    def __str__(self) -> str:
        return "\n\n".join(map(str, self._ledgers))

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return "".join(ledger._repr_html_() for ledger in self._ledgers)

    def shapley_values(self) -> ShapleyValues:
        """The evidence as Shapley values, which sum to the log-odds with the base value.

        The interaction of several columns is divided equally among them.
        """
        if not self._ledgers:
            raise DataError("there is no row to explain; give at least one.")
        first = self._ledgers[0]
        rows = [[entry for line in ledger.lines for entry in _share_line(line)] for ledger in self]
        base = np.array([ledger.prior.log_likelihood for ledger in self])
        return compute_shapley_values(first.classes, base, rows)

    def to_frame(self) -> pd.DataFrame:
        """All entries in one data frame, with a column for the row number."""
        pd = import_pandas()
        frames = [ledger.to_frame().assign(row=row) for row, ledger in enumerate(self._ledgers)]
        return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()


def _name_line(source: tuple[str, ...] | str) -> tuple[str, tuple[str, ...]]:
    """The name of a line, and the columns that it is about."""
    return (source, ()) if isinstance(source, str) else (" x ".join(source), source)


def _share_line(line: LedgerLine) -> list[tuple[str, object, Array]]:
    """Each column of a line with its value and its share of the evidence; the value is None if it has several."""
    evidence = np.array(line.log_likelihood)
    if len(line.columns) < 2:
        return [(line.name, line.value, evidence)]
    return [(name, None, evidence / len(line.columns)) for name in line.columns]


def _sum_exactly(terms: Iterable[float]) -> float:
    values = list(terms)
    # fsum raises an error for inf - inf
    return math.fsum(values) if all(map(math.isfinite, values)) else float(np.sum(values))


def _subtract_or_zero(a: float, b: float) -> float:
    # also for -inf - (-inf): two classes that a value rules out alike
    return 0.0 if a == b else a - b


def check_unit(unit: str) -> str:
    """Return the unit of evidence, or raise an error that lists the valid ones."""
    if unit not in EVIDENCE_UNITS:
        raise DataError(f"unit is {unit!r}; use one of {', '.join(EVIDENCE_UNITS)}.")
    return unit


class TokenEvidence(NamedTuple):
    """A token with its weight of evidence for a class against all others, in decibans, and its counts per class."""

    token: str
    decibans: float
    counts: dict[Label, float]


def make_token_lines(
    spans: Sequence[tuple[str, int, int]], row_of_token: Mapping[str, int], table: WeightTable, binary: bool
) -> list[LedgerLine]:
    """Make a line for each token of a text (with its start and end) that has a row in ``table`` (tokens, classes).

    Tokens that are counted in one row have one line, with the name of the first.
    """
    found: dict[str, list[tuple[int, int]]] = {}
    names: dict[int, str] = {}
    for token, start, end in spans:
        name = token if token in row_of_token else UNKNOWN_TOKEN
        if name in row_of_token:
            found.setdefault(names.setdefault(row_of_token[name], name), []).append((start, end))
    # (lines, classes); a multinomial model adds the weight once for each occurrence
    weights = take_token_rows(table, np.array([row_of_token[token] for token in found], dtype=np.int64))
    return [
        LedgerLine(token, len(at), tuple((row * (1 if binary else len(at))).tolist()), tuple(at))
        for (token, at), row in zip(found.items(), weights, strict=True)
    ]


def add_feature_lines(
    lines: Sequence[LedgerLine],
    document: Document,
    tokenizer: Tokenizer,
    row_of_token: Mapping[str, int],
    features: TokenFeatures,
    weights: Array,
) -> list[LedgerLine]:
    """Add the weights (features, classes) of words to their lines, and lines of pairs of neighbouring words.

    A text is a row of unit length, in which all features have the same value. The weights of characters are added to
    the lines of the words that they are in, in equal shares.
    """
    spelled = _weigh_characters(document, tokenizer, features, weights) if len(features.characters) else {}
    known = {line.name for line in lines}
    lines = [*lines, *(word.line for name, word in spelled.items() if name not in known)]
    columns = features.find_tokens([line.name for line in lines], row_of_token)
    pairs = find_pair_lines(document, tokenizer, features) if len(features.pairs) else {}
    n_ngrams = round(sum(word.ngrams for word in spelled.values()))
    scale = 1 / math.sqrt(max((columns >= 0).sum() + len(pairs) + n_ngrams, 1))
    found = []
    for line, column in zip([*lines, *pairs.values()], [*columns.tolist(), *pairs], strict=True):
        added = scale * weights[column] if column >= 0 else np.zeros(weights.shape[1])
        if column not in pairs and line.name in spelled:
            added = added + scale * spelled[line.name].weights
        evidence = np.array(line.log_likelihood or np.zeros(weights.shape[1])) + added
        found.append(replace(line, log_likelihood=tuple(evidence.tolist())))
    return found


class SpelledWord(NamedTuple):
    """A word of a text with its share of the n-grams of characters, and of their weights."""

    line: LedgerLine  # without evidence
    ngrams: float
    weights: Array  # (classes,)


def _weigh_characters(
    document: Document, tokenizer: Tokenizer, features: TokenFeatures, weights: Array
) -> dict[str, SpelledWord]:
    """The words of a text that have n-grams of characters with a weight."""
    spans: dict[str, list[tuple[int, int]]] = {}
    for word, start, end in find_token_spans(document, tokenizer):
        spans.setdefault(word, []).append((start, end))
    ends, columns = features.split_words(*encode_vocabulary(list(spans)))
    _, which, times = np.unique(columns, return_inverse=True, return_counts=True)
    shares = 1 / times[which]  # (n-grams,): of each word that has it
    return {
        word: SpelledWord(
            LedgerLine(word, len(at), (), tuple(at)), shares[a:b].sum(), shares[a:b] @ weights[columns[a:b]]
        )
        for (word, at), a, b in zip(spans.items(), ends[:-1].tolist(), ends[1:].tolist(), strict=True)
        if b > a
    }


def find_pair_lines(document: Document, tokenizer: Tokenizer, features: TokenFeatures) -> dict[int, LedgerLine]:
    """Map the columns of the pairs of neighbouring words in a text to lines without evidence."""
    spans: dict[str, list[tuple[int, int]]] = {}
    for pair, start, end in find_token_spans(document, make_pair_tokenizer(tokenizer)):
        spans.setdefault(pair, []).append((start, end))
    hasher, found = make_pair_hasher(tokenizer), {}
    for pair, at in spans.items():
        for column in features.find_pairs(hasher.list_buckets(pair)).tolist():
            if column >= 0 and column not in found:  # several pairs may share a bucket
                found[column] = LedgerLine(pair, len(at), (), tuple(at))
    return found


def move_absence(lines: Sequence[LedgerLine], constant: Array, shown: Array) -> tuple[list[LedgerLine], Array]:
    """Convert the lines of a Bernoulli text to log p(present | c), and the constant to the absent tokens only.

    Before, weights are log p(present) - log p(absent), and ``constant`` (classes,) is the score of a text without any
    token. ``shown`` (lines,) is whether any learned document contains the token; other tokens have weight zero.
    """
    # (lines, classes): the log-odds w = log p - log(1 - p), so log(1 - p) = -log(1 + e^w) and log p = w + log(1 - p)
    weights = np.array([line.log_likelihood for line in lines]).reshape(len(lines), len(constant))
    absent = np.where(shown[:, None], -np.logaddexp(0.0, weights), 0.0)
    present = [
        replace(line, log_likelihood=tuple((weight + shift).tolist()))
        for line, weight, shift in zip(lines, weights, absent, strict=True)
    ]
    return present, constant - absent.sum(axis=0)


def find_strongest_tokens(
    words: TokenCounts, bag: BagOfWords, c: int, classes: list[Label], max_tokens: int
) -> list[TokenEvidence]:
    """The tokens with the largest weight times count for class ``c``, against all other classes pooled."""
    two = _pool_other_classes(words, c)
    table = bag.compute_weights(two).table
    # (tokens,): log-odds of class c against the others; ranked by weight times occurrences in class c
    weight = take_token_rows(table, np.arange(len(words))) @ np.array([1.0, -1.0])
    best = np.argsort(-(weight * make_dense_counts(two.counts)[:, 0]), kind="stable")[:max_tokens]
    chosen = words.take_tokens(best)
    return [
        TokenEvidence(token, float(decibans), dict(zip(classes, counts, strict=True)))
        for token, decibans, counts in zip(
            chosen.tokens(), weight[best] * DECIBANS_PER_NAT, make_dense_counts(chosen.counts).tolist(), strict=True
        )
        if decibans > 0
    ]


def _pool_other_classes(words: TokenCounts, c: int) -> TokenCounts:
    """Counts of two classes: class ``c``, and all other classes pooled."""
    own = words.take_classes(np.array([c]))
    others = words.take_classes(np.flatnonzero(np.arange(len(words.n)) != c)).pool_classes()
    # (tokens, 2)
    counts = np.column_stack([make_dense_counts(part.counts) for part in (own, others)])
    return replace(words, n=np.append(own.n, others.n), counts=counts)
