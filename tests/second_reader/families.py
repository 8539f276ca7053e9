"""Families: their evidence, and log p(x | c), from the records: docs/format.md, "Families"."""

import math
from fractions import Fraction

import numpy as np

log_gamma = np.vectorize(math.lgamma, otypes=[float])


def sums_of(record, j):
    """The exact sums of column j: a Fraction for each class."""
    rows = record["limbs"][:, j if record["limbs"].shape[1] > 1 else 0].tolist()
    unit = Fraction(2) ** (32 * record["base"])
    return [sum((limb << 32 * k for k, limb in enumerate(row)), 0) * unit for row in rows]


def column_of(array, j):
    return array[:, j if array.shape[1] > 1 else 0]


def normalise(logits, otherwise=0.0):
    """log p(c | x) from logits (rows, classes); a row in which every class is impossible is answered otherwise."""
    logits = np.where(np.isneginf(logits).all(axis=-1, keepdims=True), otherwise, logits)
    logits = logits - logits.max(axis=-1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))


def first_best(scores, tolerance):
    """The first index of the largest score, up to a tolerance."""
    scores = np.nan_to_num(scores, nan=-np.inf, posinf=np.inf, neginf=-np.inf)
    return int(np.argmax(scores >= scores.max() - tolerance))


def dirichlet(alpha, counts):
    """Log evidence of counts (classes, values), with alpha virtual rows of each value."""
    mass = alpha * counts.shape[1]
    by_class = log_gamma(mass) - log_gamma(mass + counts.sum(axis=1))
    return float((log_gamma(counts + alpha) - log_gamma(alpha)).sum() + by_class.sum())


def choose_alpha(counts):
    grid = 2.0 ** np.arange(-6, 4)
    scores = [dirichlet(a, counts) - 0.5 * ((np.log2(a) - 1) / 2) ** 2 for a in grid]
    return float(grid[first_best(scores, 1e-9 * (1 + abs(max(scores))))]) if counts.size else 1.0


def find_step(sums):
    """The largest of 1, 0.1, ... 1e-6 that divides all values, by the sums (total, bound) of their powers; or 0."""
    step = 0.0
    for digits in range(6, -1, -1):
        fits = True
        for power, (total, bound) in enumerate(sums, start=1):
            scaled, rounding = total * 10.0 ** (power * digits), 2.0**-50 * bound * 10.0 ** (power * digits)
            fits &= bool(((np.abs(scaled - np.rint(scaled)) <= rounding) & (rounding < 0.01)).all())
        step = 10.0**-digits if fits else step
    return step


def categorical(tally):
    counts, place = tally["counts"], {value: k for k, value in enumerate(tally["values"].tolist())}
    alpha = choose_alpha(counts)
    table = np.log((counts + alpha) / (counts.sum(axis=1) + alpha * counts.shape[1])[:, None]).T
    table = np.concatenate([table, np.zeros((1, len(counts)))])  # a value that was never learned is no evidence
    return lambda cells: table[[place.get(cell, -1) for cell in cells]]


def bernoulli(record, j):
    n, yes = column_of(record["n"], j), column_of(record["successes"], j)
    counts = np.stack([yes, n - yes], axis=1)
    alpha = choose_alpha(counts)
    p = (alpha + yes) / (2 * alpha + n)
    return dirichlet(alpha, counts), lambda x: np.where(x == 1, np.log(p), np.where(x == 0, np.log(1 - p), -np.inf))


def poisson(record, j):
    n, exact, logs = column_of(record["n"], j), sums_of(record["events"], j), sums_of(record["log_factorials"], j)
    a = max(float(sum(exact)), 0.5) / max(n.sum(), 0.5)
    after, rate = a + np.array(exact, float), 1.0 + n
    evidence = (log_gamma(after) - after * np.log(rate) - math.lgamma(a) - np.array(logs, float)).sum()
    mean, log_mean = (float(sum(s) / Fraction(n.sum() or 1)) for s in (exact, logs))
    varies = mean % 1 != 0 or log_mean - math.lgamma(mean // 1 + 1) > 1e-12 * (1 + abs(log_mean))

    def log_p(x):
        inside = (x >= 0) & (x <= 2.0**53) & (x % 1 == 0)
        k = np.where(inside, x, 0.0)
        value = log_gamma(after + k) - log_gamma(after) - log_gamma(k + 1) + after * np.log(rate / (rate + 1))
        return np.where(inside, value - k * np.log1p(rate), -np.inf)

    return evidence if varies else -np.inf, log_p


def gaussian(record, j):
    n, exact = column_of(record["n"], j), [sums_of(record[f], j) for f in ("weight", "first", "second")]
    (rows, whole, square), classes = map(sum, exact), max(int((n > 0).sum()), 1)
    size = 0
    if square > 0:
        power = square.numerator.bit_length() - square.denominator.bit_length()
        power += math.frexp(float(square / Fraction(2) ** power))[1]  # square = m 2^power, with m from 1/2 to 1
        size = max(-1000, min(-((math.frexp(float(rows))[1] - power) // 2), 1000))
    unit = Fraction(2) ** size

    def moments(w, s, q):
        return (float(s / w / unit), max(float((w * q - s * s) / w**2 / unit**2), 0.0)) if w else (math.nan, 0.0)

    means, variances = np.array([moments(*sums) for sums in zip(*exact, strict=True)]).T
    location, total = moments(rows, whole, square)
    location = 0.0 if math.isnan(location) else location
    within = ((n * variances).sum() + total / classes**2) / max(float(rows) - classes + 1, 1.0) if rows else 0.0
    strength = min(within / total, 1.0) if total > 0 else 1.0
    mean, k, shape = np.where(n > 0, means, location), strength + n, 1.0 + n / 2
    centre = (strength * location + n * mean) / k
    scale = within + (n * variances + n * strength / k * (mean - location) ** 2) / 2
    _, sums, squares = np.array(exact, float)
    step = find_step([(sums, n * np.sqrt(squares / np.where(n > 0, n, 1.0))), (squares, squares)])
    blur = min(step / float(unit), 1e100) ** 2 / 12
    grown = log_gamma(shape) - shape * np.log(scale + n * blur / 2) - 0.5 * np.log(k)
    evidence = (
        grown + np.log(within) + 0.5 * np.log(strength) - n * np.log(math.sqrt(2 * math.pi) * float(unit))
    ).sum()
    wide = 2 * np.maximum(scale, shape * (max(1e-4 * within, blur) if within > 0 else 0.0)) * (k + 1) / k
    some, wide = wide > 0, np.where(wide > 0, wide, 1.0)
    constant = log_gamma(shape + 0.5) - log_gamma(shape) - 0.5 * np.log(np.pi * wide) - math.log(unit)

    def log_p(x):
        z = np.clip(x / float(unit) - centre, -1e130, 1e140)
        return np.where(some, constant - (shape + 0.5) * np.log1p(z * z / wide), 0.0)

    return evidence if np.isfinite(evidence) else -np.inf, log_p


def histogram(tally):
    values, counts = tally["values"].astype(float), tally["counts"]
    by_class = np.concatenate([np.zeros((len(counts), 1)), np.cumsum(counts, axis=1)], axis=1)
    content, inner = by_class.sum(axis=0), values[1:] / 2 + values[:-1] / 2
    low, high = (max(abs(v), 2.0**-1000) * 2.0**-11 for v in (values[0], values[-1]))
    low = 2 * values[0] - inner[0] if len(inner) else values[0] - low
    bounds = np.array([low, *inner, 2 * values[-1] - inner[-1] if len(inner) else values[-1] + high])
    most = int(counts.sum(axis=0).argmax())
    rows, whole, size = (
        counts[:, most].sum(),
        (values % 1 == 0).all(),
        np.log(abs(values[most])) if values[most] else np.inf,
    )

    def judge(cuts, alpha):
        binned, widths = np.diff(by_class[:, cuts], axis=1), np.log(np.diff(bounds[cuts] / 2)) + np.log(2)
        alpha, found = alpha or choose_alpha(binned), binned.sum(axis=0) == rows
        gain = 0.0 if whole else np.maximum(widths - size, 0)
        gain = rows * gain + max(rows - 1, 0) * (np.maximum(widths, 0) if whole else 10 * math.log(2) + 0 * widths)
        atom = (gain * found).sum() if len(values) > 1 and 2 * rows > content[-1] else 0.0
        table = (np.log((binned + alpha) / (binned + alpha).sum(axis=1, keepdims=True)) - widths).T
        return dirichlet(alpha, binned) - (binned * widths).sum() + atom, table

    candidates = [np.arange(len(values) + 1)] if len(values) <= 128 else []
    for bins in (128, 96, 64, 48, 32, 24, 20, 16, 12, 10, 8, 6, 5, 4, 3, 2, 1):
        wanted = content[-1] * (np.arange(bins + 1) / bins)
        after = np.searchsorted(content, wanted)
        nearer = (after > 0) & (wanted - content[after - 1] < content[after] - wanted)
        candidates.insert(0, np.unique(after - nearer))
    scores = [judge(cuts, 0.5)[0] for cuts in candidates]
    cuts = candidates[first_best(scores, 1e-9 * (1 + abs(max(scores))))]
    evidence, table = judge(cuts, None)
    return evidence, lambda x: table[np.searchsorted(bounds[cuts][1:-1], x[:, 0], side="right")]


def psi(x, order=0):
    """The first (0) or second (1) derivative of log gamma."""
    steps = np.asarray(x, float)[..., None] + np.arange(12)
    x = np.asarray(x, float) + 12
    if order:
        tail = 1 / x + 1 / (2 * x**2) + 1 / (6 * x**3) - 1 / (30 * x**5) + 1 / (42 * x**7) - 1 / (30 * x**9)
        return tail + 5 / (66 * x**11) + (1 / steps**2).sum(axis=-1)
    tail = np.log(x) - 1 / (2 * x) - 1 / (12 * x**2) + 1 / (120 * x**4) - 1 / (252 * x**6) + 1 / (240 * x**8)
    return tail - 1 / (132 * x**10) - (1 / steps).sum(axis=-1)


def gamma(record, j):
    n, outside = column_of(record["n"], j), column_of(record["outside"], j)
    exact, logs = sums_of(record["total"], j), sums_of(record["log_total"], j)
    sums, rows, classes = np.array(list(map(float, exact))), n.sum(), max(int((n > 0).sum()), 1)
    log_sums = np.array(list(map(float, logs)))

    def excess(n, total, log_total):
        n = np.where(n > 0, n, np.nan)
        return np.maximum(np.log(total / n) - log_total / n, 1e-12)

    def inverse_shape(e):
        return 12 * e / (3 - e + np.sqrt((e - 3) ** 2 + 24 * e))

    pooled = excess(rows, float(sum(exact)), float(sum(logs)))
    step = find_step([(sums, sums)])
    spread = np.nansum(n * inverse_shape(excess(n, sums, log_sums))) + inverse_shape(pooled) / classes**2
    within = spread / max(rows - classes + 1, 1.0)
    largest = np.nan_to_num(-np.log(np.maximum(1e-4, 1 / (n + 1) ** 2) * within), nan=np.inf)
    blurred = log_sums - n * np.nan_to_num(step * np.where(n > 0, n, np.nan) / sums) ** 2 / 24
    b = float(sum(exact) / Fraction(rows)) if rows else 1.0
    e = excess(n, sums, blurred)
    s = np.minimum(np.nan_to_num(-np.log(inverse_shape(e))), 2 * np.maximum(n - 1, 0.0))
    for _ in range(60):
        k, total = np.exp(s), sums / b
        after, share = 1 + k * n, total / (1 + k * total)
        slope = blurred - n * (np.log(b) - s - 1 + np.log1p(k * total)) + n * (psi(after) - psi(k)) - after * share
        bend = n * (1 / k - psi(k, 1) + n * psi(after, 1) - 2 * share) + after * share**2
        bend = np.maximum(0.25, 0.25 - k * slope - k**2 * bend)
        s, before = np.clip(s + np.clip((k * slope - s / 4) / bend, -1, 1), -12, np.minimum(largest, 25)), s
        if np.abs(s - before).max() < 1e-10:
            break
    at, share = np.polynomial.hermite_e.hermegauss(31)
    width = 1 / np.sqrt(bend)
    node = np.minimum(s[:, None] + width[:, None] * at, largest[:, None])  # (classes, nodes)
    k, rate = np.exp(node), b / np.exp(node)
    after, mass = 1 + k * n[:, None], rate + sums[:, None]
    given = (k - 1) * blurred[:, None] - n[:, None] * log_gamma(k) + log_gamma(after) + np.log(rate)
    given = np.nan_to_num(given - after * np.log(mass), nan=-np.inf, posinf=-np.inf)
    given += (
        -0.5 * (node / 2) ** 2 - np.log(2 * np.sqrt(2 * np.pi)) + np.log(share) + at**2 / 2 + np.log(width)[:, None]
    )
    evidence, varies = np.logaddexp.reduce(given, axis=1), bool(pooled > 1e-12)
    constant = given - evidence[:, None] + log_gamma(after + k) - log_gamma(after) - log_gamma(k) - k * np.log(mass)

    def log_p(x):
        y = np.where((x >= 1e-300) & (x <= 1e300), x, np.nan)[:, :, None]  # (rows, 1, 1)
        terms = constant + (k - 1) * np.log(y) - (after + k) * np.logaddexp(0.0, np.log(y) - np.log(mass))
        value = np.logaddexp.reduce(terms, axis=2)
        return np.where(np.isnan(y[:, :, 0]) & ~np.isnan(x), -np.inf, value) if varies else 0 * x + np.zeros(len(n))

    return evidence.sum() if varies and not outside.any() else -np.inf, log_p


FAMILIES = {"Bernoulli": bernoulli, "Poisson": poisson, "Gaussian": gaussian, "Gamma": gamma}
FAMILIES["Histogram"] = lambda tallies, j: histogram(tallies[j])


def choose_number_family(records, candidates, j):
    """The family with the largest evidence; of equals the first."""
    fits = []
    for name, record in zip(candidates, records, strict=True):
        excluded = isinstance(record, dict) and "outside" in record and column_of(record["outside"], j).any()
        fits.append((-np.inf, None) if excluded else FAMILIES[name](record, j))
    log_p = fits[first_best([evidence for evidence, _ in fits], 1e-6)][1]
    return lambda x: np.where(np.isnan(x)[:, None], 0.0, log_p(np.nan_to_num(x)[:, None]))
