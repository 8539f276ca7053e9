"""A scoring plan as an ES module with types, and as one page that answers rows in a browser without a network."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from importlib.resources import files
from typing import Any

import numpy as np

from priory.export import scoring_plan as steps
from priory.export.scoring_plan import ScoringPlan
from priory.text.token_features import make_pair_tokenizer
from priory.text.tokenizer import Tokenizer, build_character_tables


def plan_as_json(plan: ScoringPlan) -> str:
    """The plan as JSON that is safe inside of a script element; arrays are doubles in base64."""
    text = json.dumps(_encode(plan), ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _encode(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        data = np.ascontiguousarray(value, dtype="<f8")
        return {"f8": base64.b64encode(data.tobytes()).decode(), "shape": list(value.shape)}
    if isinstance(value, Tokenizer):
        return None
    if isinstance(value, steps.Tokens):
        neighbours = _describe_tokenizer(make_pair_tokenizer(value.tokenizer)) if len(value.pairs) else None
        return {**_encode_fields(value), **_describe_tokenizer(value.tokenizer), "neighbours": neighbours}
    if is_dataclass(value):
        kind = {"kind": type(value).__name__} if isinstance(value, steps.PlanTerm) else {}
        return {**kind, **_encode_fields(value)}
    if isinstance(value, Mapping):
        return {name: _encode(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_encode(part) for part in value]
    if isinstance(value, np.generic):
        return _encode(value.item())
    return None if isinstance(value, float) and not np.isfinite(value) else value


def _encode_fields(value: Any) -> dict[str, Any]:
    return {f.name: _encode(getattr(value, f.name)) for f in fields(value) if f.name != "tokenizer"}


def _describe_tokenizer(tokenizer: Tokenizer) -> dict[str, Any]:
    """What a tokenizer declares, with the kinds of characters as runs, and the lower case of each."""
    kinds, lowered = build_character_tables(tokenizer)
    starts = np.flatnonzero(np.diff(kinds.astype(np.int64), prepend=-1))
    runs = [[int(start), int(kinds[start])] for start in starts] + [[len(kinds), 0]]
    changed = np.flatnonzero(lowered != np.arange(len(lowered)))
    return {
        "analyzer": tokenizer.analyzer,
        "lowercase": tokenizer.lowercase,
        "min_token_length": tokenizer.min_token_length,
        "ngram_range": list(tokenizer.ngram_range),
        "stop_words": sorted(tokenizer.stop_words or ()),
        "kinds": runs,
        "lowered": [[int(code), int(lowered[code])] for code in changed],
    }


def write_javascript(plan: ScoringPlan) -> str:
    """The scorer and the plan as an ES module, whose default export answers rows."""
    notes = "".join(f"// {note}\n" for note in plan.list_notes())
    scorer = _read_template("scorer.js")
    literal = json.dumps(plan_as_json(plan), ensure_ascii=True)
    return f"{notes}{scorer}\nexport default new Scorer(JSON.parse({literal}));\n"


def write_types() -> str:
    """The types of the module, for TypeScript."""
    return _read_template("scorer.d.ts")


def write_page(plan: ScoringPlan, title: str) -> str:
    """One page that answers rows offline, with forms, a ledger and files of rows."""
    shown = title.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    scorer = _read_template("scorer.js").replace("export class", "class")
    parts = {
        "@@TITLE@@": shown,
        "@@STYLE@@": _read_template("page.css"),
        "@@NOTES@@": " ".join(_escape(note) for note in plan.list_notes()),
        "@@PLAN@@": plan_as_json(plan),
        "@@SCRIPT@@": scorer + "\n" + _read_template("page.js"),
    }
    # in one pass, so that no text is taken for a mark
    return re.sub("|".join(parts), lambda mark: parts[mark[0]], _read_template("page.html"))


def _escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _read_template(name: str) -> str:
    return (files("priory.export") / "templates" / name).read_text(encoding="utf-8")
