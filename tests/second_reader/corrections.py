"""Corrections: members, their pool, and rows with gaps: docs/format.md, "Corrections"."""

import math

import numpy as np

from second_reader.families import normalise


def encode(column, cells):
    """The code of each cell: of a number its bin, of a label its place; -1 if it is unknown, the last if missing."""
    if not column["is_number"]:
        place = {label: k for k, label in enumerate(column["edges_or_labels"].tolist())} | {None: len(column["levels"])}
        return np.array([place.get(cell, -1) for cell in cells], int)
    mantissa, power = np.frexp(cells)
    codes = np.searchsorted(column["edges_or_labels"], np.ldexp(np.round(mantissa * 1024), power - 10), side="right")
    return np.where(np.isnan(cells), len(column["levels"]), codes)


def look_up(table, codes, starts):
    """(rows, classes): the first line of a table (1 + codes, classes), and the lines of the codes of each row."""
    lines = [np.where(own[:, None] >= 0, table[start + own], 0.0) for start, own in zip(starts, codes, strict=True)]
    return sum(lines, table[0])


def pool(c, cells, texts, tokens):
    """(rows, classes): log p(c | x) by all members; ``texts`` (rows, classes) are the tempered evidence of texts."""
    e, columns = c["evidence"], [column for block in c["encoding"]["blocks"] for column in block]
    codes = [encode(*pair) for pair in zip(columns, cells, strict=True)]
    starts = np.cumsum([1, *(len(column["levels"]) + 1 for column in columns)])
    sizes, numbers = np.diff(starts), [(k, x) for k, x in zip(columns, cells, strict=True) if k["is_number"]]
    away = [np.clip((x / 2 - k["mean"] / 2) / (k["deviation"] / 2), -6, 6) for k, x in numbers]
    scores = [np.interp(x, k["knots"], k["scores"]) if len(k["knots"]) > 1 else 0 * x for k, x in numbers]
    away, scores = (np.nan_to_num(np.array(some).reshape(len(numbers), len(texts)).T) for some in (away, scores))

    def naive(prior, weights):
        table = np.concatenate([[prior * e["log_prior"]], (e["log_ratios"] * np.repeat(weights, sizes)).T])
        return look_up(table, codes, starts[:-1]) + texts

    w = e["weights"]
    tempered = naive(w[0], w[1:])

    def add_linear(m):
        table, logits = m["weights"], tempered + look_up(m["weights"][: starts[-1]], codes, starts[:-1])
        start, levels = (
            starts[-1],
            [np.append(k["levels"], [8, -1])[own] for k, own in zip(columns, codes, strict=True)],
        )
        for features, own in zip(c["tokens"] if m["with_tokens"] else (), tokens, strict=False):
            sums = [table[start + np.array(ids, int)].sum(axis=0) * max(len(ids), 1) ** -0.5 for ids in own]
            logits, start = (
                logits + np.array(sums),
                start + sum(len(features[own]) for own in ("ends", "pairs", "characters")),
            )
        for k, (a, b) in enumerate(m["pairs"].tolist()):
            known, cell = (levels[a] >= 0) & (levels[b] >= 0), start + 81 * k + 9 * levels[a] + levels[b]
            logits = logits + np.where(known[:, None], table[np.where(known, cell, 0)], 0.0)
        return logits

    def add_slopes(m):
        return look_up(m["weights"], codes, starts[:-1]) + (scores if m["of_scores"] else away) @ m["slopes"] + texts

    def add_gaussian(m):
        g, zeros = m["gaussian"], [0.0 if k["is_number"] else v for k, v in zip(columns, w[1:], strict=True)]
        whitened = [(scores - mean) @ root.T for mean, root in zip(g["means"], g["roots"], strict=True)]
        density = np.stack([k - (z * z).sum(axis=1) / 2 for k, z in zip(g["constants"], whitened, strict=True)], axis=1)
        return naive(w[0], zeros) + m["temperature"] * density

    def add_trees(m):
        own = iter(zip(m["cuts"], m["gaps"], strict=True))
        values = [
            find_cuts(x, *next(own)) if k["is_number"] else np.where(code < 0, len(k["levels"]) + 1, code)
            for k, x, code in zip(columns, cells, codes, strict=True)
        ]
        logits, values = np.zeros((len(texts), m["leaves"].shape[2])), np.minimum(values, 254)
        for tests, leaves in zip(m["tests"].tolist(), m["leaves"].astype(float), strict=True):
            leaf = 0
            for j, cut in tests:
                leaf = 2 * leaf + (values[j] > cut if columns[j]["is_number"] else values[j] == cut)
            logits += leaves[leaf]
        return m["start"] + texts + (np.concatenate([0 * logits, logits], axis=1) if logits.shape[1] == 1 else logits)

    members = {"LinearMember": add_linear, "SlopeMember": add_slopes, "GaussianMember": add_gaussian}
    members |= {"ObliviousTrees": add_trees}
    weighted = [w * members[m["class"]](m) for w, m in zip(c["pool"]["exponents"], c["members"], strict=True)]
    pooled = normalise(sum(weighted))  # the normalisers of members cancel
    share, base = c["pool"]["share"], normalise(e["log_prior"])
    return np.logaddexp(np.log(share) + pooled, np.log(1 - share) + base)


def find_cuts(x, cuts, gap):
    return np.where(np.isnan(x), gap, np.searchsorted(cuts, x))


def rank(column, cells):
    """Places from 0 to 256 of numbers among the kept rows, or codes of labels."""
    if not column["is_number"]:
        return encode(column, cells)
    ranks = [128 * math.erfc(-score / math.sqrt(2)) for score in column["scores"].tolist()]
    places = np.rint(np.interp(cells, column["knots"], ranks)) if len(ranks) else 0 * cells
    return np.where(np.isnan(cells), -128, np.nan_to_num(places)).astype(int)


def complete(c, i, cells, texts, tokens, missing, marked, estimated):
    """log p(c | x) of row i with gaps: the mean over the nearest kept rows, and tempered naive Bayes."""
    columns, gaps = [k for block in c["encoding"]["blocks"] for k in block], marked[i]
    kept, weight = [], c["gaps"]["weight"]
    for block in c["gaps"]["blocks"]:
        data = block["data"]
        if block["class"] == "NumberCells":
            kept += list(data.T)
        else:
            kept += [np.append(v, [None])[own] for v, own in zip(data["values"], data["codes"].T, strict=True)]
    varied = [len(k["levels"]) > 1 for k in columns] + [True] * (len(missing[i]) - len(columns))
    row, exponent = [x[i : i + 1] for x in cells], gaps.sum() / (gaps.sum() + (~missing[i] & varied).sum())
    if len(weight):
        key = np.zeros(len(weight), int)
        for gap, k, x, y in zip(gaps, columns, row, kept, strict=False):
            apart = rank(k, x) - rank(k, y)
            key += 0 if gap else apart**2 if k["is_number"] else 128**2 * (apart != 0)
        nearest = np.sort(np.argsort(key, kind="stable")[:10])
        row = [y[nearest] if gap else np.repeat(x, len(nearest)) for gap, x, y in zip(gaps, row, kept, strict=False)]
        shares, exponent = np.log(weight[nearest] / weight[nearest].sum()), exponent**3
    else:
        shares = np.zeros(1)
    n = len(shares)
    mean = pool(c, row, np.repeat(texts[i : i + 1], n, axis=0), [[own[i]] * n for own in tokens])
    mean = np.logaddexp.reduce(mean + shares[:, None], axis=0)
    e, own = c["evidence"], estimated + texts[i]
    starts = np.cumsum([0] + [len(k["levels"]) + 1 for k in columns])
    for start, k, x, w in zip(starts, columns, cells, e["weights"][1:], strict=False):
        code = encode(k, x[i : i + 1])[0]
        own = own + (w * e["log_ratios"][:, start + code] if code >= 0 else 0.0)
    return normalise((1 - exponent) * mean + exponent * own)
