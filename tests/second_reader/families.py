"""Families: their evidence, and log p(x | c), from the records: docs/format.md, "Families".

Each is a function of the fields of its record for one column, counts (classes,) and exact sums as fractions. It returns
the evidence, and a function from numbers (rows, 1) to log p(x | c), (rows, classes).
"""

import math
from fractions import Fraction

import numpy as np

log_gamma = np.vectorize(math.lgamma, otypes=[float])
BERNOULLI_NUMBERS = np.array([1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132])  # B_2k / 2k, of digamma


def take_column(record, j):
    """The fields of column j: counts (classes,), and exact sums as fractions; or a tally as it is."""

    def take(field):
        if isinstance(field, np.ndarray):
            return field[:, j % field.shape[1]]  # one column may stand for all
        unit = Fraction(2) ** (32 * field["base"])
        return [unit * sum(limb << 32 * k for k, limb in enumerate(own)) for own in take(field["limbs"]).tolist()]

    if isinstance(record, list):
        return {"values": record[j]["values"], "counts": record[j]["counts"]}
    return {name: take(field) for name, field in record.items() if name != "class"}


def first_best(scores, tolerance):
    """The first index of the largest score, up to a tolerance."""
    scores = np.nan_to_num(scores, nan=-np.inf, posinf=np.inf, neginf=-np.inf)
    return int(np.argmax(scores >= scores.max() - tolerance(scores.max())))


def dirichlet(alpha, counts):
    """Log evidence of counts (classes, values), with alpha virtual rows of each value."""
    mass = alpha * counts.shape[1]
    by_class = log_gamma(mass) - log_gamma(mass + counts.sum(axis=1))
    return float((log_gamma(counts + alpha) - log_gamma(alpha)).sum() + by_class.sum())


def smooth(counts):
    """The evidence of counts (classes, values) with the best alpha, and log p(value | c), (classes, values)."""
    grid = 2.0 ** np.arange(-6, 4)
    scores = [dirichlet(a, counts) - ((np.log2(a) - 1) / 2) ** 2 / 2 for a in grid]
    alpha = grid[first_best(scores, lambda best: 1e-9 * (1 + abs(best)))]
    return dirichlet(alpha, counts), np.log((counts + alpha) / (counts + alpha).sum(axis=1, keepdims=True))


def find_step(sums, bounds):
    """The largest of 1, 0.1, ... 1e-6 that divides all values, from sums of their powers (powers, classes); or 0."""
    for digits in range(7):
        scale = 10.0 ** (digits * np.arange(1, len(sums) + 1))[:, None]
        scaled, rounding = sums * scale, 2.0**-50 * np.array(bounds) * scale
        if ((np.abs(scaled - np.rint(scaled)) <= rounding) & (rounding < 0.01)).all():
            return 10.0**-digits
    return 0.0


def pool_spread(n, own, whole):
    """The spread within classes, with the one of all rows."""
    classes = max((n > 0).sum(), 1)
    return (np.nansum(n * own) + whole / classes**2) / max(n.sum() - classes + 1, 1.0)


def categorical(values, counts):
    place = {value: k for k, value in enumerate(values.tolist())}
    table = np.concatenate([smooth(counts)[1].T, np.zeros((1, len(counts)))])  # unknown values are no evidence
    return 0.0, lambda cells: table[[place.get(cell, -1) for cell in cells[:, 0]]]


def bernoulli(n, successes, outside):
    evidence, table = smooth(np.stack([n - successes, successes], axis=1))
    return evidence, lambda x: np.where(x == 1, table[:, 1], np.where(x == 0, table[:, 0], -np.inf))


def poisson(n, events, log_factorials, outside):
    a = max(float(sum(events)), 0.5) / max(n.sum(), 0.5)
    after, rate = a + np.array(events, float), 1.0 + n
    evidence = log_gamma(after) - after * np.log(rate) - math.lgamma(a) - np.array(log_factorials, float)
    mean, log_mean = (float(sum(sums) / Fraction(n.sum() or 1)) for sums in (events, log_factorials))
    varies = mean % 1 != 0 or log_mean - math.lgamma(mean + 1) > 1e-12 * (1 + abs(log_mean))

    def log_p(x):
        k = np.where((x >= 0) & (x <= 2.0**53) & (x % 1 == 0), x, np.nan)
        value = log_gamma(after + k) - log_gamma(after) - log_gamma(k + 1) + after * np.log(rate / (rate + 1))
        return np.where(np.isnan(k), -np.inf, value - k * np.log1p(rate))

    return evidence.sum() if varies else -np.inf, log_p


def gaussian(n, weight, first, second):
    exact, (rows, whole, square) = np.array([weight, first, second], object), map(sum, (weight, first, second))
    unit = Fraction(1)
    if square:
        power = square.numerator.bit_length() - square.denominator.bit_length()
        power += math.frexp(square / Fraction(2) ** power)[1]  # square = m 2^power, with m from 1/2 to 1
        unit = Fraction(2) ** max(-1000, min(-((math.frexp(rows)[1] - power) // 2), 1000))

    def describe(w, s, q):
        return (float(s / w / unit), float((q / w - (s / w) ** 2) / unit**2)) if w else (0.0, 0.0)

    means, variances = np.array([describe(*own) for own in exact.T]).T
    mean, variance = describe(rows, whole, square)
    within = pool_spread(n, variances, variance)
    strength = min(within / variance, 1.0) if variance else 1.0
    k, shape, unit = strength + n, 1 + n / 2, float(unit)
    means = np.where(n > 0, means, mean)
    centre = (strength * mean + n * means) / k
    scale = within + (n * variances + n * strength / k * (means - mean) ** 2) / 2
    _, sums, squares = exact.astype(float)
    step = find_step([sums, squares], [n * np.sqrt(squares / np.maximum(n, 1e-300)), squares])
    blur = min(step / unit, 1e100) ** 2 / 12
    evidence = log_gamma(shape) - shape * np.log(scale + n * blur / 2) - 0.5 * np.log(k)
    evidence += np.log(within) + 0.5 * np.log(strength) - n * (0.5 * np.log(2 * np.pi) + np.log(unit))
    spread = 2 * np.maximum(scale, shape * (max(1e-4 * within, blur) if within else 0.0)) * (k + 1) / k
    known, spread = spread > 0, np.where(spread > 0, spread, 1.0)
    constant = log_gamma(shape + 0.5) - log_gamma(shape) - 0.5 * np.log(np.pi * spread) - np.log(unit)

    def log_p(x):
        z = np.clip(x / unit - centre, -1e130, 1e130)
        return np.where(known, constant - (shape + 0.5) * np.log1p(z * z / spread), 0.0)

    return evidence.sum() if np.isfinite(evidence).all() else -np.inf, log_p


def histogram(values, counts):
    values, inner = values.astype(float), values[1:] / 2 + values[:-1] / 2
    far = np.array([-1, 1]) * 2.0**-11 * np.maximum(np.abs(values[[0, -1]]), 2.0**-1000)
    low, high = values[[0, -1]] + (values[[0, -1]] - inner[[0, -1]] if len(inner) else far)
    bounds, reached = np.array([low, *inner, high]), np.pad(np.cumsum(counts, axis=1), ((0, 0), (1, 0)))
    content, most = reached.sum(axis=0), int(counts.sum(axis=0).argmax())
    rows, value, whole = content[most + 1] - content[most], abs(values[most]), (values % 1 == 0).all()

    def judge(cuts, fit):
        binned, widths = np.diff(reached[:, cuts], axis=1), np.log(np.diff(bounds[cuts] / 2)) + np.log(2)
        if whole:
            gain = (rows - 1) * np.maximum(widths, 0)
        else:
            gain = rows * np.maximum(widths - (np.log(value) if value else np.inf), 0) + 10 * (rows - 1) * np.log(2)
        atom = gain[binned.sum(axis=0) == rows].sum() if len(values) > 1 and 2 * rows > content[-1] else 0.0
        evidence, table = fit(binned)
        return evidence - (binned * widths).sum() + atom, table - widths

    candidates = [np.arange(len(values) + 1)] if len(values) <= 128 else []
    for bins in (128, 96, 64, 48, 32, 24, 20, 16, 12, 10, 8, 6, 5, 4, 3, 2, 1):
        wanted = content[-1] * (np.arange(bins + 1) / bins)
        after = np.searchsorted(content, wanted)
        nearer = (after > 0) & (wanted - content[after - 1] < content[after] - wanted)
        candidates.insert(0, np.unique(after - nearer))
    scores = [judge(cuts, lambda binned: (dirichlet(0.5, binned), 0.0))[0] for cuts in candidates]
    cuts = candidates[first_best(scores, lambda best: 1e-9 * (1 + abs(best)))]
    evidence, table = judge(cuts, smooth)
    return evidence, lambda x: table.T[np.searchsorted(bounds[cuts][1:-1], x[:, 0], side="right")]


def psi(x, order=0):
    """The first (0) or second (1) derivative of log gamma."""
    steps, x, power = x[..., None] + np.arange(12), x + 12, 2 * np.arange(1, 6)
    tail = BERNOULLI_NUMBERS * x[..., None] ** -power
    if order:
        return 1 / x + 1 / (2 * x**2) + (tail * power).sum(axis=-1) / x + (steps**-2).sum(axis=-1)
    return np.log(x) - 1 / (2 * x) - tail.sum(axis=-1) - (1 / steps).sum(axis=-1)


def gamma(n, total, log_total, outside):
    rows, sums, log_sums = n.sum(), np.array(total, float), np.array(log_total, float)
    b, some = float(sum(total) / Fraction(rows or 1)), np.where(n > 0, n, np.nan)

    def excess(n, sums, log_sums):
        return np.maximum(np.log(sums / n) - log_sums / n, 1e-12)

    def inverse_shape(e):
        return 12 * e / (3 - e + np.sqrt((e - 3) ** 2 + 24 * e))

    pooled = excess(rows, float(sum(total)), float(sum(log_total)))
    within = pool_spread(n, inverse_shape(excess(some, sums, log_sums)), inverse_shape(pooled))
    largest = -np.log(np.maximum(1e-4, 1 / (n + 1) ** 2) * within)
    blurred = log_sums - n * np.nan_to_num(find_step(sums[None], sums[None]) * some / sums) ** 2 / 24
    s = np.nan_to_num(np.minimum(-np.log(inverse_shape(excess(some, sums, blurred))), 2 * np.maximum(n - 1, 0)))
    for _ in range(60):
        k = np.exp(s)
        after, share = 1 + k * n, sums / (b + k * sums)
        slope = blurred - n * (np.log(b) - s - 1 + np.log1p(k * sums / b) - psi(after) + psi(k)) - after * share
        bend = n * (1 / k - psi(k, 1) + n * psi(after, 1) - 2 * share) + after * share**2
        bend = np.maximum(0.25, 0.25 - k * slope - k**2 * bend)
        s = np.minimum(s + np.clip((k * slope - s / 4) / bend, -1, 1), np.minimum(largest, 25))
    at, share = np.polynomial.hermite_e.hermegauss(31)
    s = np.minimum(s[:, None] + at / np.sqrt(bend)[:, None], largest[:, None])  # (classes, nodes)
    k, rate, n, sums, blurred = np.exp(s), b / np.exp(s), n[:, None], sums[:, None], blurred[:, None]
    after, mass = 1 + k * n, np.log(rate + sums)
    given = (k - 1) * blurred - n * log_gamma(k) + log_gamma(after) + np.log(rate) - after * mass
    given += np.log(share) + at**2 / 2 - s**2 / 8 - np.log(2 * np.sqrt(2 * np.pi) * np.sqrt(bend))[:, None]
    evidence = np.logaddexp.reduce(given, axis=1)
    constant = given - evidence[:, None] + log_gamma(after + k) - log_gamma(after) - log_gamma(k) - k * mass

    def log_p(x):
        log_x = np.log(np.where((x >= 1e-300) & (x <= 1e300), x, np.nan))[:, :, None]  # (rows, 1, 1)
        terms = constant + (k - 1) * log_x - (after + k) * np.logaddexp(0.0, log_x - mass)
        return np.where(np.isnan(log_x[:, :, 0]), -np.inf, np.logaddexp.reduce(terms, axis=2))

    return evidence.sum() if pooled > 1e-12 else -np.inf, log_p


FAMILIES = {family.__name__.title(): family for family in (bernoulli, categorical, gamma, gaussian, histogram, poisson)}


def choose_family(records, candidates, j):
    """log p(x | c) of the family with the largest evidence; of equals the first. A missing cell is no evidence."""
    fits = []
    for name, record in zip(candidates, records, strict=True):
        fields = take_column(record, j)
        fits.append((-np.inf, None) if np.any(fields.get("outside", 0)) else FAMILIES[name](**fields))
    log_p = fits[first_best([evidence for evidence, _ in fits], lambda best: 1e-6)][1]
    return lambda x: np.where((x != x)[:, None], 0.0, log_p(np.where(x != x, 0.0, x)[:, None]))
