# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, freethreading_compatible=True
"""Boosted oblivious trees: growing them and adding their leaves. See `tests/reference_kernels/trees.py`.

Rows of a leaf lie together, in their order: a histogram stays in the cache, and a sum does not depend on anything but
the rows. Only the smaller half of a leaf is counted, the other one is the difference. Of numbers with many codes, some
are counted together: the column of a test is found by the cuts between these, and its cut among all of the column.
"""

import numpy as np

from libc.math cimport fabs, floor
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t
from libc.string cimport memcpy, memset

MAX_COUNTED = 64  # codes of a number that are counted apart
cdef double MIN_CURVATURE = 1e-6
cdef float TIE = 1.000001  # a cut must be better than the best before it by this factor
cdef double LOG2_E = 1.4426950408889634, LOG_2_HIGH = 0.693147180369123816490, LOG_2_LOW = 1.90821492927058770002e-10

cdef struct Cut:
    float score
    Py_ssize_t code

cdef union Word:
    double number
    int64_t bits


def grow_trees(const uint8_t[:, ::1] codes, const int32_t[::1] n_codes, const uint8_t[::1] is_label,
               const int32_t[::1] group, const double[::1] weight, const int32_t[:, ::1] columns, double rate,
               double ridge, double[:, ::1] logits, int16_t[:, :, ::1] tests, float[:, :, ::1] leaves,
               float[:, ::1] cover):
    learned_rows = np.flatnonzero(np.asarray(weight) > 0).astype(np.int32)
    cdef const int32_t[::1] learned = learned_rows
    # (columns,): the bits of a code that do not count
    shift = np.array([0 if is_label[j] else max(0, int(n_codes[j] - 1) // MAX_COUNTED).bit_length() for j in range(codes.shape[0])], np.uint8)
    cdef const uint8_t[::1] hidden = shift
    cdef const uint8_t[:, ::1] own_codes = np.take(codes, learned_rows, axis=1)
    cdef const uint8_t[:, ::1] counted = np.asarray(own_codes) >> shift[:, None] if shift.any() else own_codes
    cdef const int32_t[::1] n_counted = ((np.asarray(n_codes) - 1 >> shift) + 1).astype(np.int32)
    cdef Py_ssize_t n = learned.shape[0], n_logits = logits.shape[1], depth = tests.shape[1], width = columns.shape[1]
    cdef Py_ssize_t n_leaves = 1 << depth, bins = max(n_codes), t, k, i, j, best_column
    cdef Py_ssize_t channels = 2 if n_logits == 1 else (n_logits + 4) // 4 * 4
    # slopes (rows, channels): the gradient of each logit, one curvature, and zeros up to whole lanes
    cdef float[:, ::1] slopes = np.zeros((n, channels), np.float32), moved = np.zeros((n, channels), np.float32)
    cdef double[:, ::1] probability = np.empty((n, n_logits))
    cdef int32_t[::1] order = np.empty(n, np.int32), spare = np.empty(n, np.int32)
    cdef int32_t[::1] starts = np.empty(n_leaves + 1, np.int32), new_starts = np.empty(n_leaves + 1, np.int32)
    cdef float[:, :, ::1] histograms = np.empty((width, max(1, n_leaves // 2), max(n_counted) * channels), np.float32)
    cdef float[:, ::1] finer = np.empty((max(1, n_leaves // 2), bins * channels), np.float32)
    cdef float[::1] half = np.empty(bins * channels, np.float32), scores = np.empty(bins, np.float32)
    cdef float[:, ::1] sums = np.empty((3, bins), np.float32)  # of a cut: |G|^2 and H of one side, and G . G_total
    cdef float[::1] total = np.empty(channels, np.float32)
    cdef uint8_t[::1] sides = np.empty(n, np.uint8)
    cdef double[::1] gradient = np.empty(n_logits), curvature = np.empty(n_logits)
    cdef Cut best, found
    with nogil:
        for t in range(tests.shape[0]):
            find_slopes(learned, group, weight, logits, probability, slopes)
            for i in range(n):
                order[i] = <int32_t>i
            starts[0], starts[1] = 0, <int32_t>n
            for k in range(depth):
                best.score, best.code, best_column = -1.0, 0, columns[t, 0]
                for j in range(width):
                    i = columns[t, j]
                    count_leaves(counted[i], order, slopes, starts, 1 << k, n_counted[i], half, histograms[j])
                    score_cuts(histograms[j], starts, 1 << k, n_counted[i], n_logits, is_label[i], ridge, total, sums, scores)
                    found = find_best_cut(scores, n_counted[i] - (0 if is_label[i] else 1), best)
                    if found.score > best.score:
                        best, best_column = found, i
                i = best_column
                if hidden[i]:
                    for j in range(1 << k):
                        memset(&finer[j, 0], 0, n_codes[i] * channels * sizeof(float))
                        add_rows(own_codes[i], order, slopes, starts[j], starts[j + 1], &finer[j, 0])
                    score_cuts(finer, starts, 1 << k, n_codes[i], n_logits, False, ridge, total, sums, scores)
                    best.score, best.code = -1.0, 0
                    best = find_best_cut(scores, n_codes[i] - 1, best)
                tests[t, k, 0], tests[t, k, 1] = <int16_t>i, <int16_t>best.code
                split_leaves(own_codes[i], best.code, is_label[i], 1 << k, order, spare, slopes, moved, sides, starts, new_starts)
            weigh_leaves(learned, group, weight, probability, order, starts, rate, ridge, gradient, curvature,
                         leaves[t], cover[t])
            add_tree(codes, is_label, tests[t], leaves[t], logits)


def add_trees(const uint8_t[:, ::1] codes, const uint8_t[::1] is_label, const int16_t[:, :, ::1] tests,
              const float[:, :, ::1] leaves, double[:, ::1] logits):
    cdef Py_ssize_t t
    with nogil:
        for t in range(tests.shape[0]):
            add_tree(codes, is_label, tests[t], leaves[t], logits)


cdef void find_slopes(const int32_t[::1] learned, const int32_t[::1] group, const double[::1] weight,
                      const double[:, ::1] logits, double[:, ::1] probability, float[:, ::1] slopes) noexcept nogil:
    """w (y - p) of each logit, and w Σ p (1 - p), at least w times a minimum."""
    cdef Py_ssize_t n_logits = logits.shape[1], i, c, row
    cdef double top, total, spread, w, p
    for i in range(learned.shape[0]):
        row, spread = learned[i], 0.0
        w = weight[row]
        if n_logits == 1:
            top = portable_exp(-fabs(logits[row, 0]))
            probability[i, 0] = (1.0 if logits[row, 0] >= 0 else top) / (1 + top)
        else:
            top, total = logits[row, 0], 0.0
            for c in range(1, n_logits):
                top = logits[row, c] if logits[row, c] > top else top
            for c in range(n_logits):
                probability[i, c] = portable_exp(logits[row, c] - top)
                total += probability[i, c]
            for c in range(n_logits):
                probability[i, c] /= total
        for c in range(n_logits):
            p = probability[i, c]
            spread += p * (1 - p)
            slopes[i, c] = <float>(w * ((1.0 if group[row] == c + (n_logits == 1) else 0.0) - p))
        slopes[i, n_logits] = <float>(w * (spread if spread > MIN_CURVATURE else MIN_CURVATURE))


cdef void add_rows(const uint8_t[::1] codes, const int32_t[::1] order, const float[:, ::1] slopes, Py_ssize_t start,
                   Py_ssize_t stop, float* histogram) noexcept nogil:
    cdef Py_ssize_t channels = slopes.shape[1], i, c
    cdef float* place
    cdef const float* own
    if channels == 2:
        for i in range(start, stop):
            place = histogram + 2 * codes[order[i]]
            place[0] += slopes[i, 0]
            place[1] += slopes[i, 1]
        return
    for i in range(start, stop):
        place, own = histogram + channels * codes[order[i]], &slopes[i, 0]
        for c in range(0, channels, 4):
            add_lane(place + c, own + c)


cdef inline void add_lane(float* place, const float* own) noexcept nogil:
    cdef float a = own[0], b = own[1], c = own[2], d = own[3]
    place[0] += a
    place[1] += b
    place[2] += c
    place[3] += d


cdef void count_leaves(const uint8_t[::1] codes, const int32_t[::1] order, const float[:, ::1] slopes,
                       const int32_t[::1] starts, Py_ssize_t n_leaves, Py_ssize_t n_codes, float[::1] half,
                       float[:, ::1] histograms) noexcept nogil:
    """Sums of slopes by leaf and code, (leaves, codes, channels); ``histograms`` has those of the level above."""
    cdef Py_ssize_t size = n_codes * slopes.shape[1], parent, left, middle, stop, b
    cdef float *whole
    cdef float *small
    cdef float *large
    if n_leaves == 1:
        memset(&histograms[0, 0], 0, size * sizeof(float))
        add_rows(codes, order, slopes, 0, starts[1], &histograms[0, 0])
        return
    for parent in range(n_leaves // 2 - 1, -1, -1):  # from the last: children take the place of later parents
        left, middle, stop = starts[2 * parent], starts[2 * parent + 1], starts[2 * parent + 2]
        if stop - left < 2:
            continue  # it has no cut, and its histogram is never read
        memset(&half[0], 0, size * sizeof(float))
        whole = &histograms[parent, 0]
        if middle - left <= stop - middle:
            small, large = &histograms[2 * parent, 0], &histograms[2 * parent + 1, 0]
            add_rows(codes, order, slopes, left, middle, &half[0])
        else:
            small, large = &histograms[2 * parent + 1, 0], &histograms[2 * parent, 0]
            add_rows(codes, order, slopes, middle, stop, &half[0])
        for b in range(size):
            large[b] = whole[b] - half[b]
        memcpy(small, &half[0], size * sizeof(float))


cdef void score_cuts(const float[:, ::1] histograms, const int32_t[::1] starts, Py_ssize_t n_leaves,
                     Py_ssize_t n_codes, Py_ssize_t n_logits, bint is_label, float ridge, float[::1] total,
                     float[:, ::1] sums, float[::1] scores) noexcept nogil:
    """Σ over leaves of |G|^2 / (H + ridge) of both sides of each cut; leaves of one row are the same for all cuts."""
    cdef Py_ssize_t leaf, b, c, channels = total.shape[0]
    cdef float whole, other
    cdef const float* own
    cdef float* squares = &sums[0, 0]
    cdef float* curvatures = &sums[1, 0]
    cdef float* products = &sums[2, 0]
    cdef float* found = &scores[0]
    cdef float* g = &total[0]
    for b in range(n_codes):
        found[b] = 0.0
    for leaf in range(n_leaves):
        if starts[leaf + 1] - starts[leaf] < 2:
            continue
        for c in range(channels):
            g[c] = 0.0
        for b in range(n_codes):
            own = &histograms[leaf, b * channels]
            for c in range(channels):
                g[c] += own[c]
        whole, other = 0.0, g[n_logits]
        for c in range(n_logits):
            whole += g[c] * g[c]
        if n_logits == 1:
            accumulate_two(&histograms[leaf, 0], n_codes, is_label, g[0], squares, curvatures, products)
        else:
            accumulate_many(&histograms[leaf, 0], n_codes, n_logits, channels, is_label, g, squares, curvatures, products)
        for b in range(n_codes):
            # |G_total - G|^2 = |G_total|^2 - 2 G . G_total + |G|^2
            found[b] += (squares[b] / (curvatures[b] + ridge)
                         + (whole - 2 * products[b] + squares[b]) / (other - curvatures[b] + ridge))


cdef Cut find_best_cut(const float[::1] scores, Py_ssize_t n_cuts, Cut best) noexcept nogil:
    """The first cut that is better than the best before it."""
    cdef Py_ssize_t cut
    for cut in range(n_cuts):
        if scores[cut] > best.score * TIE:
            best.score, best.code = scores[cut], cut
    return best


cdef void accumulate_two(const float* own, Py_ssize_t n_codes, bint is_label, float total, float* squares,
                         float* curvatures, float* products) noexcept nogil:
    cdef float g = 0.0, h = 0.0
    cdef Py_ssize_t b
    for b in range(n_codes):
        if is_label:
            g, h = 0.0, 0.0
        g += own[2 * b]
        h += own[2 * b + 1]
        squares[b], curvatures[b], products[b] = g * g, h, g * total


cdef void accumulate_many(const float* own, Py_ssize_t n_codes, Py_ssize_t n_logits, Py_ssize_t channels, bint is_label,
                          const float* total, float* squares, float* curvatures, float* products) noexcept nogil:
    """|G|^2, H and G . G_total of the side of each cut that has the lower codes, or the label."""
    cdef Py_ssize_t b, c
    cdef float square, product
    cdef float[256] running
    for c in range(channels):
        running[c] = 0.0
    for b in range(n_codes):
        square = product = 0.0
        if is_label:
            for c in range(channels):
                running[c] = own[b * channels + c]
        else:
            for c in range(channels):
                running[c] += own[b * channels + c]
        for c in range(n_logits):
            square += running[c] * running[c]
            product += running[c] * total[c]
        squares[b], curvatures[b], products[b] = square, running[n_logits], product


cdef void split_leaves(const uint8_t[::1] codes, Py_ssize_t cut, bint is_label, Py_ssize_t n_leaves,
                       int32_t[::1] order, int32_t[::1] spare, float[:, ::1] slopes, float[:, ::1] moved,
                       uint8_t[::1] sides, int32_t[::1] starts, int32_t[::1] new_starts) noexcept nogil:
    """Split every leaf, stably: rows that pass the test go to the right."""
    cdef Py_ssize_t channels = slopes.shape[1], leaf, i, c, place, passed, n = starts[n_leaves]
    cdef Py_ssize_t[2] places  # of the next row to the left, and to the right
    cdef int code
    for leaf in range(n_leaves):
        passed = 0
        for i in range(starts[leaf], starts[leaf + 1]):
            code = codes[order[i]]
            sides[i] = code == cut if is_label else code > cut
            passed += sides[i]
        places[0], places[1] = starts[leaf], starts[leaf + 1] - passed
        new_starts[2 * leaf], new_starts[2 * leaf + 1] = <int32_t>places[0], <int32_t>places[1]
        for i in range(starts[leaf], starts[leaf + 1]):
            place = places[sides[i]]
            places[sides[i]] += 1
            spare[place] = order[i]
            if channels == 2:
                moved[place, 0], moved[place, 1] = slopes[i, 0], slopes[i, 1]
            else:
                for c in range(channels):
                    moved[place, c] = slopes[i, c]
    new_starts[2 * n_leaves] = <int32_t>n
    if n:
        memcpy(&order[0], &spare[0], n * sizeof(int32_t))
        memcpy(&slopes[0, 0], &moved[0, 0], n * channels * sizeof(float))
    for leaf in range(2 * n_leaves + 1):
        starts[leaf] = new_starts[leaf]


cdef void weigh_leaves(const int32_t[::1] learned, const int32_t[::1] group, const double[::1] weight,
                       const double[:, ::1] probability, const int32_t[::1] order, const int32_t[::1] starts,
                       double rate, double ridge, double[::1] gradient, double[::1] curvature, float[:, ::1] leaves,
                       float[::1] cover) noexcept nogil:
    """A Newton step for each logit of each leaf, G / (H + ridge), times the rate."""
    cdef Py_ssize_t n_logits = leaves.shape[1], leaf, i, c, row
    cdef double p, w, covered, factor = rate if n_logits == 1 else rate * (n_logits - 1) / n_logits
    for leaf in range(leaves.shape[0]):
        covered = 0.0
        for c in range(n_logits):
            gradient[c] = curvature[c] = 0.0
        for i in range(starts[leaf], starts[leaf + 1]):
            row = learned[order[i]]
            w = weight[row]
            covered += w
            for c in range(n_logits):
                p = probability[order[i], c]
                gradient[c] += w * ((1.0 if group[row] == c + (n_logits == 1) else 0.0) - p)
                curvature[c] += w * (p * (1 - p))
        cover[leaf] = <float>covered
        for c in range(n_logits):
            leaves[leaf, c] = <float>(factor * gradient[c] / (curvature[c] + ridge))


cdef void add_tree(const uint8_t[:, ::1] codes, const uint8_t[::1] is_label, const int16_t[:, ::1] tests,
                   const float[:, ::1] leaves, double[:, ::1] logits) noexcept nogil:
    cdef Py_ssize_t row, k, c, leaf
    cdef int code
    for row in range(logits.shape[0]):
        leaf = 0
        for k in range(tests.shape[0]):
            code = codes[tests[k, 0], row]
            leaf = 2 * leaf + (code == tests[k, 1] if is_label[tests[k, 0]] else code > tests[k, 1])
        for c in range(logits.shape[1]):
            logits[row, c] += leaves[leaf, c]


cdef double portable_exp(double x) noexcept nogil:
    """e^x for x <= 0, with the same bits on every machine: a power of two times a polynomial."""
    cdef Word power
    cdef double k, r
    if not x > -700:
        return 0.0
    k = floor(x * LOG2_E + 0.5)
    r = (x - k * LOG_2_HIGH) - k * LOG_2_LOW
    power.bits = <int64_t>(1023 + <int>k) << 52
    r = 1 + r * (1 + r * (1.0 / 2 + r * (1.0 / 6 + r * (1.0 / 24 + r * (1.0 / 120 + r * (1.0 / 720 + r * (
        1.0 / 5040 + r * (1.0 / 40320 + r * (1.0 / 362880 + r * (1.0 / 3628800 + r * (1.0 / 39916800)))))))))))
    return r * power.number
