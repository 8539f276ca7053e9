"""Export what was learned as JSON that a second implementation can recount: counts, exact sums, and kept rows.

    export_record(learned)    {"columns": how each is counted, "n": rows of each class, "sums": numbers by
                              [column, family, field, class (and value)], "kept": the sampled rows by their hashes}
    export_rows(...)          rows as the model has read them: {"class": ..., "cells": {column: cell}}

Every number is a fraction in lowest terms, such as "3" or "5/4", and what is zero is left out, so that equal records
are equal JSON. `priory.storage.receipt_verifier` adds rows to a record. Texts are shown with the tokens counted.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy import ndarray as Array

from priory.core.exact_sums import ExactSums
from priory.core.statistics import find_registration
from priory.errors import DataError
from priory.learning.learned import LabelEncoder, Learned, check_rows
from priory.learning.row_kind import RowKind
from priory.learning.table_rows import TableRows
from priory.learning.text_rows import TextRows
from priory.model.cells import Cells, LabelCells, NumberCells, RowSample, TextCells
from priory.model.schema import instantiate_family
from priory.text.sparse_counts import make_dense_counts
from priory.text.text_model import TextModel
from priory.text.token_bags import TokenBags, count_letters
from priory.text.token_counts import BagCounts, TokenCounts
from priory.text.tokenizer import decode_vocabulary

RECORD_SPEC = "priory record 1"
JsonObject = dict[str, Any]


def export_record(learned: Learned) -> JsonObject:
    """Export counts, exact sums and kept rows; raises DataError for models whose counts no one else can recount."""
    statistics, labels = learned.statistics, [format_label(label) for label in learned.classes.tolist()]
    columns, sums = dict[str, JsonObject](), dict[str, str]()
    for name, family, rule, record in _list_columns(learned):
        columns.setdefault(name, {})[family] = rule
        for field, cells in record:
            for path, number in _export_cells(cells, labels):
                sums[json.dumps([name, family, field, *path], separators=(",", ":"))] = number
    return {
        "spec": RECORD_SPEC,
        "columns": columns,
        "declared": [format_label(label) for label in statistics.declared.tolist()],
        "n": {label: n for (label,), n in _export_cells(statistics.n, labels)},
        "sums": sums,
        "kept": None if statistics.sample is None else export_sample(learned, statistics.sample),
    }


def export_rows(learned: Learned, X: object, encode: LabelEncoder, sample_weight: object = None) -> list[JsonObject]:
    """Export rows as the model counts them."""
    rows, batch = learned.rows.read(X, "forget", learned.statistics)
    labels, group = encode(learned.classes, False)
    weight, cells = check_rows(batch, group, sample_weight), rows.read_cells(batch)
    kept = rows.keep_cells(cells)
    found = _join_cells(rows, kept, labels, group)
    for names, block in zip(rows.column_names, cells, strict=True):
        if isinstance(block, TextCells) and not isinstance(block.data, TokenBags):
            for row, text in zip(found, block.data, strict=True):
                if names[0] in row["cells"]:
                    row["cells"][names[0]]["text"] = text.decode() if isinstance(text, bytes) else text
    if weight is not None:
        found = [row | {"weight": str(Fraction(w))} for row, w in zip(found, weight.tolist(), strict=True)]
    return found


def read_label(label: object) -> str | int | float:
    """A label as JSON; equal numbers are equal JSON."""
    label = label.item() if isinstance(label, np.generic) else label
    if isinstance(label, str):
        return label
    if isinstance(label, bool | int | float):
        return int(label) if label == label // 1 else label
    raise DataError(f"the label {label!r} is neither a string nor a number; receipts need one of them.")


def format_label(label: object) -> str:
    """A label as a key of JSON."""
    return str(read_label(label))


def _list_columns(learned: Learned) -> Iterator[tuple[str, str, JsonObject, Iterable[tuple[str, Any]]]]:
    """Yield each column with a family, how the family counts a cell, and its fields: sums, or counts of values."""
    rows = learned.rows
    if isinstance(rows, TextRows):
        [record] = learned.statistics.parts
        yield rows.column_names[0][0], "Text", _describe_texts(rows.text_model), _list_token_fields(record)
        return
    if not isinstance(rows, TableRows):
        raise DataError("receipts are for models of tables and texts; this model has learned arrays.")
    for block, records in zip(rows.schema.blocks, learned.statistics.parts, strict=True):
        for candidate, record in zip(block.candidates, records, strict=True):
            family = instantiate_family(candidate)
            for j, name in enumerate(block.names):
                if block.kind == "text":
                    rule = _describe_texts(block.text_family().build_model())
                    yield name, "Text", rule, _list_token_fields(record)
                else:
                    spell = format_label if block.kind == "label" else float.hex
                    yield name, type(family).__name__, family.describe_counting(), _list_fields(record, j, spell)


def _list_fields(record: Any, j: int, spell: Callable[[Any], str]) -> Iterator[tuple[str, Any]]:
    """The fields of column ``j``: sums (classes,), or values with their counts (classes, values)."""
    if isinstance(record, tuple):
        yield "counts", ([spell(value) for value in record[j].values.tolist()], record[j].counts)
        return
    declared = find_registration(type(record))
    axes = {} if declared is None else declared.axes
    for name, value in vars(record).items():
        if name == "_memo":
            continue
        if isinstance(value, ExactSums) or axes.get(name) in ("cd", "ce"):
            width = value.shape[1]
            yield name, value[:, j if width > 1 else 0]
        else:
            raise DataError(f"receipts cannot be issued for columns counted as {type(record).__name__}.")


def _list_token_fields(words: BagCounts) -> Iterator[tuple[str, Any]]:
    """The fields of a column of texts: documents of each class, and tokens with their counts (classes, tokens)."""
    if getattr(words, "missed", 0.0):
        raise DataError("rare words were dropped (max_tokens), so that nobody can recount them; train without it.")
    yield "n", words.n
    counts = np.asarray(make_dense_counts(words.counts)).T
    yield "counts", (words.tokens() if isinstance(words, TokenCounts) else [*map(str, range(len(words)))], counts)


def _describe_texts(model: TextModel) -> JsonObject:
    """How texts are counted; ``words`` is the least length of a word, or None if tokens are not plain words."""
    reader = model.vocabulary.tokenizer
    is_plain = (reader.lowercase, reader.analyzer, tuple(reader.ngram_range)) == (True, "word", (1, 1))
    rewrites = reader.stop_words or reader.stem or reader.extra_tokens
    words = reader.min_token_length if is_plain and not rewrites and model.vocabulary.grows else None
    return {"binary": model.binary, "words": words}


def _export_cells(cells: Any, labels: list[str]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Export sums of each class, or counts of each class and value; zeros are left out."""
    if not isinstance(cells, tuple):
        yield from (((label,), n) for label, n in zip(labels, _export_numbers(cells), strict=True) if n != "0")
        return
    values, counts = cells
    for label, row in zip(labels, counts, strict=True):
        shown = np.flatnonzero(row)
        numbers = zip(shown.tolist(), _export_numbers(row[shown]), strict=True)
        yield from (((label, values[i]), n) for i, n in numbers)


def _export_numbers(numbers: Any) -> list[str]:
    """Exact fractions in lowest terms."""
    if isinstance(numbers, ExactSums):
        integers, exponent = numbers.to_integers()
        return [str(Fraction(int(i)) * Fraction(2) ** exponent) for i in integers.tolist()]
    return [str(int(n)) if n.is_integer() else str(Fraction(n)) for n in np.asarray(numbers, dtype=float).tolist()]


# -- rows --------------------------------------------------------------------------------------------------------------


def export_sample(learned: Learned, sample: RowSample) -> JsonObject:
    """Export kept rows by their hashes, with their weights."""
    rows = _join_cells(learned.rows, sample.blocks, learned.classes, sample.group)
    weights = _export_numbers(sample.weight)
    names = [f"{h:016x}" for h in sample.hashes.tolist()]
    kept = {name: row | {"weight": weight} for name, row, weight in zip(names, rows, weights, strict=True)}
    return {"memory": sample.memory, "limit": f"{sample.limit:016x}", "rows": kept}


def _join_cells(columns: RowKind[Any], blocks: Sequence[Cells], classes: Array, group: Array) -> list[JsonObject]:
    """Rows of cells: the class, and the cells that are not missing by the names of their columns."""
    labels, keeps_empty = (
        [*map(read_label, classes.tolist())],
        isinstance(columns, TextRows),
    )  # a text alone is a row even if it is empty
    rows: list[JsonObject] = [{"class": labels[c], "cells": {}} for c in group.tolist()]
    for names, block in zip(columns.column_names, blocks, strict=False):
        for name, cells in zip(names, _list_cell_columns(block, keeps_empty), strict=True):
            for row, cell in zip(rows, cells, strict=True):
                if cell is not None:
                    row["cells"][name] = cell
    return rows


def _list_cell_columns(block: Cells, keeps_empty: bool) -> Iterator[list[Any]]:
    """The cells of each column of a block; None where one is missing."""
    if isinstance(block, NumberCells):
        for column in (np.asarray(block.data, dtype=float) + 0.0).T.tolist():
            yield [None if x != x else x for x in column]
    elif isinstance(block, LabelCells):
        for codes, values in zip(block.data.codes.T.tolist(), block.data.values, strict=True):
            labels = [*map(read_label, values.tolist())]
            yield [None if code < 0 else labels[code] for code in codes]
    else:
        assert isinstance(block, TextCells)
        assert isinstance(block.data, TokenBags)
        yield [bag if bag["letters"] or keeps_empty else None for bag in _list_bags(block.data)]


def _list_bags(bags: TokenBags) -> Iterator[JsonObject]:
    """The tokens (or buckets) of each document with their occurrences, its letters, and its hashed pairs."""
    tokens = _split_tokens(bags)
    pairs = None if bags.pairs is None else _split_tokens(bags.pairs)
    for i, letters in enumerate(count_letters(bags).tolist()):
        yield {"letters": letters, "tokens": tokens[i]} | ({} if pairs is None else {"pairs": pairs[i]})


def _split_tokens(bags: TokenBags) -> list[JsonObject]:
    words = decode_vocabulary(bags.arena, bags.ends)
    ids, times, ends = bags.ids.tolist(), _export_numbers(bags.occurrences), bags.indptr.tolist()
    spell = words.__getitem__ if words else str
    spans = map(slice, ends[:-1], ends[1:])
    return [dict(zip(map(spell, ids[span]), times[span], strict=True)) for span in spans]
