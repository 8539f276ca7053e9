"""Corrections: members, their pool, and rows with gaps: docs/format.md, "Corrections"."""

import math

import numpy as np

from second_reader.texts import find_features


def normalise(logits, otherwise=0.0):
    """log p(c | x) from logits (rows, classes); a row in which every class is impossible is answered otherwise."""
    logits = np.where(np.isneginf(logits).all(axis=-1, keepdims=True), otherwise, logits)
    logits = logits - logits.max(axis=-1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))


def look_up(table, codes):
    """(rows, classes): the sum of the lines of a table at codes (rows, columns); negative codes have none."""
    return np.where(codes[..., None] >= 0, table[codes], 0.0).sum(axis=1) if codes.size else 0.0


class Members:
    """The members of a model, which answer the cells of coded columns and the tempered evidence of texts."""

    def __init__(self, c, texts):
        self.c, self.columns = c, [column for block in c["encoding"]["blocks"] for column in block]
        self.is_number = np.array([column["is_number"] for column in self.columns], bool)
        common = [len(column["levels"]) + 1 for column in self.columns]  # codes but for rare labels
        sizes = [
            n if k["is_number"] else len(k["edges_or_labels"]) + 1 for k, n in zip(self.columns, common, strict=True)
        ]
        self.sizes, self.common_sizes = np.array(sizes, int), np.array(common, int)
        self.starts = np.cumsum([0, *common], dtype=int)
        self.levels = np.concatenate([np.zeros(0, int), *(np.append(k["levels"], 8) for k in self.columns)])
        self.is_text_missing, self.tokens = [[not x for x in cells] for cells, _ in texts], []
        self.end = 1 + self.starts[-1]  # of the weights of a `LinearMember` before those of pairs
        for known, (cells, rule) in zip(c["tokens"], texts, strict=False):
            own, self.end = find_features(known, cells, rule, self.end)
            self.tokens.append(own)

    def encode(self, j, x):
        """The code of each cell: of numbers bins, of labels places; -1 if it is unknown, the last if missing."""
        known, last = self.columns[j]["edges_or_labels"], self.sizes[j] - 1
        if not self.is_number[j]:
            place = {label: k for k, label in enumerate(known.tolist())} | {None: last}
            return np.array([place.get(cell, -1) for cell in x], int)
        mantissa, power = np.frexp(x)
        codes = np.searchsorted(known, np.ldexp(np.round(mantissa * 1024), power - 10), side="right")
        return np.where(np.isnan(x), last, codes)

    def naive(self, codes, prior, weights):
        """Tempered naive Bayes: the log prior, and weighted log ratios."""
        ratios = self.c["evidence"]["log_ratios"].T * np.repeat(weights, self.sizes)[:, None]
        return prior + look_up(ratios, np.where(codes < 0, -1, codes + np.cumsum(self.sizes) - self.sizes))

    def drop_rare(self, codes):
        """The codes without rare labels, which are unknown."""
        kept = np.where(codes < self.common_sizes - 1, codes, -1)
        return np.where(codes == self.sizes - 1, self.common_sizes - 1, kept)

    def weigh_rare(self, codes):
        is_rare = self.drop_rare(codes) < 0
        return self.naive(np.where(is_rare, codes, -1), 0.0, self.c["evidence"]["weights"][1:])

    def place(self, codes):
        """The codes of all columns one after the other, without rare labels."""
        codes = self.drop_rare(codes)
        return np.where(codes < 0, -1, codes + self.starts[:-1])

    def pool(self, cells, texts, tokens):
        """(rows, classes): log p(c | x) by all members."""
        c, shape = self.c, (len(self.columns), len(texts))
        codes = np.array([self.encode(j, x) for j, x in enumerate(cells)], int).reshape(shape).T
        logits = [MEMBERS[m["class"]](self, m, cells, codes, texts, tokens) for m in c["members"]]
        pooled, share = normalise(np.tensordot(c["pool"]["exponents"], logits, 1)), c["pool"]["share"]
        return np.logaddexp(np.log(share) + pooled, np.log(1 - share) + normalise(c["evidence"]["log_prior"]))

    def temper(self, codes, texts, labels_only=False):
        e = self.c["evidence"]
        weights = np.where(self.is_number & labels_only, 0.0, e["weights"][1:])
        return self.naive(codes, e["weights"][0] * e["log_prior"], weights) + texts

    def add_linear(self, m, cells, codes, texts, tokens):
        table, logits = m["weights"], self.temper(codes, texts)
        for own in tokens if m["with_tokens"] else ():
            logits = logits + [table[np.array(ids, int)].sum(axis=0) / max(len(ids), 1) ** 0.5 for ids in own]
        levels = np.where(self.place(codes) < 0, -1, self.levels[self.place(codes)])
        (a, b), start = levels.T[m["pairs"].reshape(-1, 2).T], self.end if m["with_tokens"] else 1 + self.starts[-1]
        at = 81 * np.arange(len(a))[:, None] + 9 * a + b  # (pairs, rows)
        pairs = look_up(table[start:], np.where((a < 0) | (b < 0), -1, at).T)
        return logits + table[0] + look_up(table[1:], self.place(codes)) + pairs

    def list_scores(self, cells, of_scores=True):
        """(rows, numbers): normal scores, or standardised numbers; 0 of a missing number."""

        def score(k, x):
            if of_scores:
                return np.interp(x, k["knots"], k["scores"]) if len(k["knots"]) > 1 else 0 * x
            return np.clip((x / 2 - k["mean"] / 2) / (k["deviation"] / 2), -6, 6)

        own = [score(k, x) for k, x in zip(self.columns, cells, strict=True) if k["is_number"]]
        return np.nan_to_num(np.array(own)).T

    def add_slopes(self, m, cells, codes, texts, tokens):
        slopes = self.list_scores(cells, m["of_scores"]) @ m["slopes"] if self.is_number.any() else 0.0
        own = look_up(m["weights"][1:], self.place(codes))
        return texts + m["weights"][0] + own + self.weigh_rare(codes) + slopes

    def add_gaussian(self, m, cells, codes, texts, tokens):
        g, scores = m["gaussian"], self.list_scores(cells)
        whitened = [(scores - mean) @ root.T for mean, root in zip(g["means"], g["roots"], strict=True)]
        density = g["constants"] - np.square(whitened).sum(axis=2).T / 2
        return self.temper(codes, texts, labels_only=True) + m["temperature"] * density

    def add_trees(self, m, cells, codes, texts, tokens):
        values, own = self.drop_rare(codes), iter(zip(m["cuts"], m["gaps"], strict=True))
        values = np.where(values < 0, self.common_sizes, values)
        for j in np.flatnonzero(self.is_number):
            cuts, gap = next(own)
            values[:, j] = np.where(np.isnan(cells[j]), gap, np.searchsorted(cuts, cells[j]))
        column, cut = np.moveaxis(m["tests"].astype(int), -1, 0)  # (trees, depth)
        value = np.minimum(values, 254)[:, column]
        passed = np.where(self.is_number[column], value > cut, value == cut)
        leaf = passed @ (1 << np.arange(column.shape[1])[::-1])
        logits = m["leaves"].astype(float)[np.arange(len(column)), leaf].sum(axis=1)
        own = m["start"] + texts + self.weigh_rare(codes)
        return own + (np.pad(logits, ((0, 0), (1, 0))) if logits.shape[1] == 1 else logits)

    def rank(self, j, x):
        """Places from 0 to 256 of numbers among the kept rows, or codes of labels."""
        if not self.is_number[j]:
            codes = self.encode(j, x)
            return np.where((codes >= self.common_sizes[j] - 1) & (codes < self.sizes[j] - 1), -1, codes)
        ranks = [128 * math.erfc(-score / math.sqrt(2)) for score in self.columns[j]["scores"].tolist()]
        places = np.rint(np.interp(x, self.columns[j]["knots"], ranks)) if ranks else 0 * x
        return np.where(np.isnan(x), -128, np.nan_to_num(places)).astype(int)

    def answer(self, cells, texts, estimated):
        """(rows, classes): log p(c | x); rows with gaps are completed by the nearest kept rows."""
        log_p, gaps, n = self.pool(cells, texts, self.tokens), self.c["gaps"], len(self.columns)
        if gaps is None:
            return log_p
        missing = [*([x is None or x != x for x in own] for own in cells), *self.is_text_missing]
        missing = np.array(missing).reshape(-1, len(texts)).T
        varied = np.array([size > 2 for size in self.sizes] + [True] * (missing.shape[1] - n))
        is_empty = (missing | ~varied).all(axis=1, keepdims=True)
        marked = missing & (gaps["is_completed"] | varied & is_empty)
        kept, weight = [column for block in gaps["blocks"] for column in list_cells(block)], gaps["weight"]
        for i in np.flatnonzero(marked[:, :n].any(axis=1)):
            row, m = [x[i : i + 1] for x in cells], marked[i].sum() / (marked[i] | ~missing[i] & varied).sum()
            codes = np.array([[self.encode(j, x)[0] for j, x in enumerate(row)]])
            tempered, mean = self.naive(codes, estimated, self.c["evidence"]["weights"][1:])[0] + texts[i], log_p[i]
            if len(weight):
                key = np.zeros(len(weight), int)
                for j in np.flatnonzero(~marked[i, :n]):
                    apart = self.rank(j, row[j]) - self.rank(j, kept[j])
                    key += apart**2 if self.is_number[j] else 128**2 * (apart != 0)
                near = np.argsort(key, kind="stable")[:10]
                row = [y[near] if gap else x.repeat(len(near)) for gap, x, y in zip(marked[i], row, kept, strict=False)]
                tokens = [[own[i]] * len(near) for own in self.tokens]
                shares, m = np.log(weight[near] / weight[near].sum())[:, None], m**3
                mean = np.logaddexp.reduce(shares + self.pool(row, texts[[i] * len(near)], tokens), axis=0)
            log_p[i] = (1 - m) * mean + m * tempered
        return log_p


MEMBERS = {"LinearMember": Members.add_linear, "SlopeMember": Members.add_slopes}
MEMBERS |= {"GaussianMember": Members.add_gaussian, "ObliviousTrees": Members.add_trees}


def list_cells(block):
    """The cells of kept rows by column."""
    if block["class"] == "NumberCells":
        return list(block["data"].T)
    return [np.append(v, [None])[own] for v, own in zip(block["data"]["values"], block["data"]["codes"].T, strict=True)]
