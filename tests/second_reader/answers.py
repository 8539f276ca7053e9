"""Rows as a model reads them, and how it answers: docs/format.md, "Answers"."""

import math
import re
from datetime import datetime

import numpy as np

from second_reader.corrections import Members, normalise
from second_reader.families import choose_family
from second_reader.model_file import require
from second_reader.texts import RULE, score_texts


def read_cell(row, name, kind):
    """A cell as a model reads it; a part of a date is cut out of the date."""
    cell, part = row.get(name), re.fullmatch(r"(.*) \((hour|weekday|month|days since 2000)\)", name)
    if part and row.get(part[1]):
        when = datetime.fromisoformat(row[part[1]])
        cells = {"weekday": f"{when:%A}", "month": f"{when:%B}", "days since 2000": (when - datetime(2000, 1, 1)).days}
        cells["hour"] = f"{when.hour:02d}:00 to {when.hour + 1:02d}:00" if len(row[part[1]]) > 10 else None
        cell = cells[part[2]]
    return {"number": math.nan, "text": "", "label": None}[kind] if cell is None else cell


def read_columns(tree, rows):
    """The columns block by block: kind, part, cells, how texts are read, and a function to log p(x | c)."""
    records = tree["learned"]["statistics_"]["parts"]
    if tree["class"] == "TextClassifier":
        rule, options = tree["parameters"], tree["parameters"]
        return [("text", 1, rows, rule, lambda: score_texts(records[0], options, rule, rows))]
    schema = tree["learned"]["_schema"]
    listed = [(*own, j) for own in zip(schema["blocks"], records, strict=True) for j in range(len(own[0]["names"]))]
    return [read_column(block, own, j, schema["names"], rows) for block, own, j in listed]


def read_column(block, records, j, names, rows):
    kind, candidates, part = block["kind"], block["candidates"], 1 + names.index(block["names"][j])
    cells, is_declared = [read_cell(row, block["names"][j], kind) for row in rows], isinstance(candidates[0], dict)
    if kind == "text":
        options = {"model": "binary", "alpha": 1.0} | (candidates[0] if is_declared else {})
        rule, is_there = RULE | options.get("tokenizer", {}), np.array([[bool(text)] for text in cells])
        return kind, part, cells, rule, lambda: np.where(is_there, score_texts(records[0], options, rule, cells), 0.0)
    require(not is_declared, "a family with a declared prior")
    x = np.array(cells, float if kind == "number" else object)
    return kind, part, x, None, lambda: choose_family(records, candidates, j)(x)


@np.errstate(all="ignore")
def answer(tree, rows):
    """(rows, classes): log p(c | x)."""
    seen, p, columns = tree["learned"]["statistics_"], tree["parameters"], read_columns(tree, rows)
    n, prior = seen["n"], p["class_prior"]
    counts = np.where(n > 0, n, 0.5)
    estimated = np.log(counts / counts.sum())
    require(p.get("estimate", "predictive") == "predictive", "options not known here")
    if prior in ("estimated", "uniform"):
        prior = estimated if prior == "estimated" else np.full(len(n), -np.log(len(n)))
    else:
        prior = np.log([prior[c] for c in seen["classes"].tolist()] if isinstance(prior, dict) else prior)
    if not p["calibrate"]:
        return normalise(prior + sum(score() for *_, score in columns), prior)
    log_p = normalise(correct(tree["learned"]["corrections_"], columns, estimated))
    best, base = log_p.argmax(axis=1), normalise(estimated)
    least = base - (np.log(-np.expm1(base)) + np.log1p(n.sum()))[best][:, None]
    least[log_p == log_p.max(axis=1, keepdims=True)] = -np.inf  # Laplace's rule of succession
    log_p = np.where((log_p >= least).all(axis=1, keepdims=True), log_p, normalise(np.maximum(log_p, least)))
    return normalise(log_p + prior - estimated)


def correct(c, columns, estimated):
    """(rows, classes): log p(c | x) after the corrections, before the limit."""
    tempering, total, is_known = c["tempering"], np.zeros((len(columns[0][2]), len(estimated))), False
    for kind, part, cells, _, score in columns:
        if kind == "text" or not c["members"]:
            length = np.array([max(len(x), 50) / 1000 if kind == "text" else 1.0 for x in cells])
            weight, terms = tempering["weights"][part] * length ** -tempering["exponents"][part], score()
            is_known, best = is_known | terms.any(axis=1), terms.max(axis=1, keepdims=True)
            total += weight[:, None] * np.maximum(terms - np.where(np.isfinite(best), best, 0.0), -1e4)
    if not c["members"]:
        own = np.where(is_known, tempering["weights"][0], 1.0)[:, None]
        return total + own * np.maximum(estimated - estimated.max(), -1e4)
    texts = [(cells, rule) for kind, _, cells, rule, _ in columns if kind == "text"]
    return Members(c, texts).answer([x for kind, _, x, *_ in columns if kind != "text"], total, estimated)
