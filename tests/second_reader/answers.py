"""Rows as a model reads them, and how it answers: docs/format.md, "Answers"."""

import math
import re
from datetime import date
from functools import partial

import numpy as np

from second_reader.corrections import complete, pool
from second_reader.families import categorical, choose_number_family, normalise
from second_reader.model_file import require
from second_reader.texts import find_features, score_texts

RULE = {"lowercase": True, "analyzer": "word", "min_token_length": 2, "ngram_range": [1, 1], "stop_words": None}
DEFAULT_TEXT = {
    "model": "binary",
    "alpha": 1.0,
    "tokenizer": RULE | {"stem": None, "extra_tokens": "", "reader": "text"},
}
WEEK = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = "January February March April May June July August September October November December"


def read_cell(row, name, kind):
    """A cell as a model reads it; a part of a date is cut out of the date."""
    cell, part = row.get(name), re.fullmatch(r"(.*) \((hour|weekday|month|days since 2000)\)", name)
    if part and name not in row and row.get(part[1]):
        day, hour = date.fromisoformat(row[part[1]][:10]), row[part[1]][11:13]
        cells = {"weekday": WEEK[day.weekday()], "month": MONTHS.split()[day.month - 1]}
        cells["hour"] = f"{int(hour):02d}:00 to {int(hour) + 1:02d}:00" if hour else None
        cell = cells.get(part[2], (day - date(2000, 1, 1)).days)
    return {"number": math.nan, "text": "", "label": None}[kind] if cell is None else cell


def read_rows(tree, rows):
    """For each block its kind, names, cells by column, how texts are read, and a function to the terms of each column.

    A term is log p(x | c) (rows, classes).
    """
    blocks, records = [], tree["learned"]["statistics_"]["parts"]
    if tree["class"] == "TextClassifier":
        options = tree["parameters"] | {"tokenizer": tree["parameters"]}
        return [("text", [None], [rows], options, lambda: [score_texts(records[0], options, rows)])]
    for block, own in zip(tree["learned"]["_schema"]["blocks"], records, strict=True):
        kind, cells = block["kind"], [[read_cell(row, name, block["kind"]) for row in rows] for name in block["names"]]
        options = DEFAULT_TEXT if block["candidates"][0] == "Text" else block["candidates"][0]
        score = partial(score_block, kind, block["candidates"], options, own, cells)
        blocks.append((kind, block["names"], cells, options, score))
    return blocks


def score_block(kind, candidates, options, records, cells):
    if kind == "text":
        return [np.where([[bool(text)] for text in cells[0]], score_texts(records[0], options, cells[0]), 0.0)]
    require(all(isinstance(name, str) for name in candidates), "a family with a declared prior")
    if kind == "label":
        return [categorical(tally)(x) for tally, x in zip(records[0], cells, strict=True)]
    fits = [choose_number_family(records, candidates, j) for j in range(len(cells))]
    return [log_p(np.array(x, float)) for log_p, x in zip(fits, cells, strict=True)]


def correct(tree, blocks, estimated):
    """(rows, classes): log p(c | x) after the corrections, before the limit."""
    c, names = tree["learned"]["corrections_"], tree["learned"].get("_schema", {"names": [None]})["names"]
    tempering, total, is_known = c["tempering"], np.zeros((1, len(estimated))), False
    for kind, own, cells, _, score in blocks:
        for name, x, terms in zip(own, cells, score() if kind == "text" or not c["members"] else (), strict=False):
            part = 1 + names.index(name)
            length = np.array([max(len(text), 50) / 1000 if kind == "text" else 1.0 for text in x])
            weight = tempering["weights"][part] * length ** -tempering["exponents"][part]
            is_known, best = is_known | terms.any(axis=1), terms.max(axis=1, keepdims=True)
            total = total + weight[:, None] * np.maximum(terms - np.where(np.isfinite(best), best, 0.0), -1e4)
    if not c["members"]:
        own = np.where(is_known, tempering["weights"][0], 1.0)[:, None]
        return normalise(total + own * np.maximum(estimated - estimated.max(), -1e4))
    coded = [(np.array(x, float if b[0] == "number" else object)) for b in blocks if b[0] != "text" for x in b[2]]
    texts = [(x, b[3]["tokenizer"]) for b in blocks if b[0] == "text" for x in b[2]]
    n_rows = len(blocks[0][2][0])
    tokens = [find_features(known, *given) for known, given in zip(c["tokens"], texts, strict=False)]
    logits = total + np.zeros((n_rows, 1))
    log_p = pool(c, coded, logits, tokens)
    if c["gaps"] is not None:
        missing = [[x is None or x != x for x in own] for own in coded] + [[not x for x in own] for own, _ in texts]
        missing = np.array(missing).reshape(-1, n_rows).T
        varied = [len(k["levels"]) > 1 for block in c["encoding"]["blocks"] for k in block]
        varied = np.array(varied + [True] * len(texts))
        marked = missing & (c["gaps"]["is_completed"] | varied & (missing | ~varied).all(axis=1, keepdims=True))
        for i in np.flatnonzero(marked[:, : len(coded)].any(axis=1)):
            log_p[i] = complete(c, i, coded, logits, tokens, missing, marked, estimated)
    return log_p


@np.errstate(all="ignore")
def answer(tree, rows):
    """(rows, classes): log p(c | x)."""
    seen, p = tree["learned"]["statistics_"], tree["parameters"]
    n, blocks = seen["n"], read_rows(tree, rows)
    counts = np.where(n > 0, n, 0.5)
    estimated, prior = np.log(counts / counts.sum()), p["class_prior"]
    if isinstance(prior, str):
        prior = estimated if prior == "estimated" else np.full(len(n), -np.log(len(n)))
    else:
        prior = np.log([prior[c] for c in seen["classes"].tolist()] if isinstance(prior, dict) else prior)
    require(p.get("estimate", "predictive") == "predictive" and p["class_weight"] is None, "options not known here")
    if not p["calibrate"]:
        return normalise(prior + sum(terms for *_, score in blocks for terms in score()), prior)
    log_p = normalise(correct(tree, blocks, estimated))
    best, base = log_p.argmax(axis=1), estimated - np.log(np.exp(estimated).sum())
    least = base - (np.log(-np.expm1(base)) + np.log1p(n.sum()))[best][:, None]
    least[log_p == log_p.max(axis=1, keepdims=True)] = -np.inf  # Laplace's rule of succession
    log_p = np.where((log_p >= least).all(axis=1, keepdims=True), log_p, normalise(np.maximum(log_p, least)))
    return normalise(log_p + prior - estimated)
