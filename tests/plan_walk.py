"""A walk of scoring plans in plain NumPy, one step after the other: what exports are checked against."""

import math

import numpy as np

from priory.core.logspace import gammaln, log_normalise
from priory.export import scoring_plan as steps
from priory.text.tokenizer import find_token_spans

LOWEST = -1e4


def answer(plan, rows):
    """(rows, classes): the probabilities of rows, dicts of the plan's columns."""
    cells = [[row.get(column.name) for row in rows] for column in plan.columns]
    cells = [[None if x is None or (isinstance(x, float) and math.isnan(x)) else x for x in column] for column in cells]
    return np.stack([_answer_row(plan, [column[i] for column in cells]) for i in range(len(rows))])


def _answer_row(plan, row):
    texts = [_text_logits(plan, term, row) for term in plan.terms if isinstance(term, steps.TextSum)]
    found = _log_probabilities(plan, row, texts)
    gaps = plan.gaps
    if gaps is not None:
        is_missing = [row[plan.codes[gaps.codes[j]].column] is None for j in gaps.columns]
        is_missing += [not row[t] for t in gaps.texts] if gaps.only_together else []
        if (all if gaps.only_together else any)(is_missing):
            found = _complete(plan, row, texts)
    if plan.limit is not None:
        found = _limit(plan.limit, log_normalise(found[None], plan.fallback)[0])
    with np.errstate(invalid="ignore"):
        return np.exp(log_normalise((found + plan.shift)[None], plan.prior)[0])


def _log_probabilities(plan, row, texts):
    codes = [_code(step, row[step.column]) for step in plan.codes]
    numbers = np.array([_number(step, row[step.column]) for step in plan.numbers])
    logits = plan.constant + sum(found for _, found in texts)
    for term in plan.terms:
        logits = logits + _term(plan, term, codes, numbers, row)
    logits = logits + sum(features for features, _ in texts)
    pooled = log_normalise(logits[None], plan.fallback)[0]
    return pooled if plan.share == 1 else np.log(plan.share * np.exp(pooled) + (1 - plan.share) * plan.base)


def _code(step, cell):
    if isinstance(step, steps.Bins):
        return step.missing if cell is None else int(np.searchsorted(step.cuts, float(cell), side="right"))
    if cell is None:
        return len(step.values)
    return step.values.index(cell) if cell in step.values else len(step.values) + 1


def _number(step, cell):
    if isinstance(step, steps.Polyline):
        return step.missing if cell is None else float(np.interp(float(cell), step.knots, step.heights))
    if cell is None:
        return 0.0
    return float(np.clip((cell / 2 - step.centre / 2) / (step.unit / 2), -step.limit, step.limit))


def _term(plan, term, codes, numbers, row):
    match term:
        case steps.CodeTerm(code, table):
            return table[codes[code]]
        case steps.PairTerm((a, b), (first, second), table):
            return table[first[codes[a]], second[codes[b]]]
        case steps.Linear(places, slopes):
            return numbers[places] @ slopes
        case steps.Quadratic(places, means, roots, constants, factor):
            away = (roots @ (numbers[places] - means)[:, :, None])[:, :, 0]
            return constants - factor / 2 * (away**2).sum(axis=1)
        case steps.Trees(tests, leaves):
            total = np.zeros(leaves.shape[2])
            for tree, table in zip(tests.tolist(), leaves, strict=True):
                leaf = 0
                for code, value in tree:
                    is_number = isinstance(plan.codes[code], steps.Bins)
                    leaf = 2 * leaf + (codes[code] > value if is_number else codes[code] == value)
                total += table[leaf]
            return total
        case steps.Density():
            return 0.0 if row[term.column] is None else _density(term, float(row[term.column]))
    return 0.0


def _density(term, x):
    p = term.parameters
    is_count = x >= 0 and x == np.floor(x) and x <= 2.0**53
    with np.errstate(over="ignore", divide="ignore"):
        match term.form:
            case "student" | "normal":
                z = np.clip(x / term.unit - p["centre"], -1e130, 1e140)
                square = p["precision"] * z**2
                value = p["constant"] - (p["power"] * np.log1p(square) if "power" in p else square / 2)
            case "gamma" if x > 0:
                nodes = p["constant"] + (p["shape"] - 1) * np.log(x) - p["power"] * np.log1p(x / p["scale"])
                value = np.logaddexp.reduce(nodes, axis=1)
            case "amount" if x > 0:
                value = (p["constant"] + (p["shape"] - 1) * np.log(x) - p["rate"] * x)[:, 0]
            case "events" if is_count:
                value = gammaln(p["shape"] + x) + p["constant"] - p["slope"] * x
            case "count" if is_count:
                value = p["constant"] + p["slope"] * x
            case _:
                value = np.full(len(next(iter(p.values()))), -np.inf)
    return term.weight * (np.maximum(value - value.max(), LOWEST) if term.is_relative else value)


def _text_logits(plan, term, row):
    tokens = plan.tokens[term.tokens]
    text = row[tokens.column] or ""
    place = {word: k for k, word in enumerate(tokens.words)}
    found = [token for token, _, _ in find_token_spans(text, tokens.tokenizer)]
    known = [place[token] for token in (dict.fromkeys(found) if term.is_binary else found) if token in place]
    score = term.table[known].sum(axis=0) + term.constant if text or not term.skips_empty else 0 * term.constant
    if term.is_relative:
        length = max(len(text), 50) / 1000
        score = term.weight * length**-term.exponent * np.maximum(score - score.max(), LOWEST)
    features = [place[token] for token in dict.fromkeys(found) if token in place and term.feature[place[token]]]
    if len(tokens.pairs):
        from priory.text.token_features import read_word_pairs

        buckets = read_word_pairs([text], tokens.tokenizer).ids
        at = np.searchsorted(tokens.pairs, buckets)
        hit = [
            k
            for k, b in zip(at.tolist(), buckets.tolist(), strict=True)
            if k < len(tokens.pairs) and tokens.pairs[k] == b
        ]
        features += [len(tokens.words) + k for k in hit]
    if len(tokens.characters):
        from priory.text.token_features import hash_characters

        spelled = [token.encode() for token in dict.fromkeys(found)]
        arena = np.frombuffer(b"".join(spelled), np.uint8)
        buckets = set(hash_characters(arena, np.cumsum([len(word) for word in spelled], dtype=np.int64))[1].tolist())
        start = len(tokens.words) + len(tokens.pairs)
        features += [start + k for k, bucket in enumerate(tokens.characters.tolist()) if bucket in buckets]
    return term.feature_table[features].sum(axis=0) / math.sqrt(max(len(features), 1)), score


def _complete(plan, row, texts):
    gaps = plan.gaps
    columns = [plan.codes[code].column for code in gaps.codes]
    missing = [j for j in gaps.columns if row[columns[j]] is None]
    if len(gaps.weight):
        key = np.zeros(len(gaps.weight), dtype=np.int64)
        for j, column in enumerate(columns):
            if j in missing:
                continue
            rank = plan.codes[gaps.ranks[j]]
            away = _code(rank, row[column]) - np.array([_code(rank, cell) for cell in gaps.cells[j]])
            key += away**2 if isinstance(rank, steps.Bins) else gaps.other_label * (away != 0)
        nearest = np.argsort(key, kind="stable")[: gaps.n_nearest]
        answers = []
        for k in nearest:
            filled = list(row)
            for j in missing:
                filled[columns[j]] = gaps.cells[j][k]
            answers.append(_log_probabilities(plan, filled, texts))
        share = gaps.weight[nearest] / gaps.weight[nearest].sum()
        mean = np.logaddexp.reduce(np.array(answers) + np.log(share)[:, None], axis=0)
    else:
        mean = _log_probabilities(plan, row, texts)
    tempered = gaps.constant + sum(
        t.table[_code(plan.codes[t.code], row[plan.codes[t.code].column])] for t in gaps.tables
    )
    tempered = tempered + sum(score for _, score in texts)
    n_gaps = len(missing) + sum(not row[t] for t in gaps.texts)
    text_columns = [tokens.column for tokens in plan.tokens]
    n_present = sum(row[columns[j]] is not None for j in gaps.counted) + sum(bool(row[t]) for t in text_columns)
    m = (n_gaps / (n_gaps + n_present)) ** gaps.power
    return (1 - m) * mean + m * tempered


def _limit(limit, log_p):
    best = int(np.argmax(log_p))
    least = np.log(limit.base) - np.log(1 - limit.base[best]) - np.log1p(limit.n_rows)
    least[log_p == log_p.max()] = -np.inf
    return log_p if (log_p >= least).all() else log_normalise(np.maximum(log_p, least)[None])[0]
