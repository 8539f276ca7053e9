# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, freethreading_compatible=True
"""Loops of a regression on sparse rows. See `tests/reference_kernels/sparse.py`; `priory.core.sparse_rows` checks the input."""

import numpy as np

from libc.math cimport expf, fabsf, log
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memcpy

cdef extern from "float_logs.h" nogil:
    float exp_of_negative(float x)
    float log_of_large(float x)

cdef extern from "radix_sort.h" nogil:
    void sort_numbers(int64_t* numbers, double* values, int64_t n, int64_t* more_numbers, double* more_values)

ctypedef fused Column:
    int32_t
    int64_t

DEF LANE = 8  # columns summed in registers
DEF MAX_LOGITS = 1024  # of one row

ctypedef fused column_number:
    int32_t
    int64_t

ctypedef fused real:
    float
    double


def multiply_rows(const int64_t[::1] ends, const int32_t[::1] indices, data, const float[:, ::1] dense,
                  float[:, ::1] out, Py_ssize_t start, Py_ssize_t stop):
    cdef Py_ssize_t width = dense.shape[1], i, k, lane, w
    cdef const float[::1] value = data
    cdef bint weighted = data is not None
    cdef const float* row
    cdef float v
    cdef float total[LANE]
    with nogil:
        for i in range(start, stop):
            for lane in range(0, width, LANE):
                for w in range(LANE):
                    total[w] = 0.0
                if weighted:
                    for k in range(ends[i], ends[i + 1]):
                        row = &dense[indices[k], lane]
                        v = value[k]
                        for w in range(LANE):
                            total[w] += v * row[w]
                else:
                    for k in range(ends[i], ends[i + 1]):
                        row = &dense[indices[k], lane]
                        for w in range(LANE):
                            total[w] += row[w]
                for w in range(LANE):
                    out[i, lane + w] = total[w]


def add_products(const int64_t[::1] ends, const column_number[::1] indices, const real[::1] data,
                 const real[:, ::1] dense, real[:, ::1] out):
    cdef Py_ssize_t i, k, c
    with nogil:
        for i in range(out.shape[0]):
            for k in range(ends[i], ends[i + 1]):
                for c in range(dense.shape[1]):
                    out[i, c] += data[k] * dense[indices[k], c]


def add_transposed_products(const int64_t[::1] ends, const column_number[::1] indices, const real[::1] data,
                            const real[:, ::1] dense, real[:, ::1] out):
    cdef Py_ssize_t i, k, c
    with nogil:
        for i in range(dense.shape[0]):
            for k in range(ends[i], ends[i + 1]):
                for c in range(dense.shape[1]):
                    out[indices[k], c] += data[k] * dense[i, c]


def order_entries(const column_number[::1] indices, Py_ssize_t width):
    cdef int64_t[::1] order = np.empty(indices.shape[0], dtype=np.int64)
    cdef int64_t[::1] place = np.zeros(width + 1, dtype=np.int64)  # the position of the next entry of each column
    cdef Py_ssize_t k
    with nogil:
        for k in range(indices.shape[0]):
            place[indices[k] + 1] += 1
        for k in range(width):
            place[k + 1] += place[k]
        for k in range(indices.shape[0]):
            order[place[indices[k]]] = k
            place[indices[k]] += 1
    return np.asarray(order)


def unite_rows(const int64_t[::1] ends, const int64_t[::1] ids, const int64_t[::1] part_ends,
               const int32_t[::1] parts, int64_t[::1] seen, int32_t[::1] out, int64_t[::1] out_ends):
    cdef Py_ssize_t i, k, j
    cdef int64_t n = 0
    cdef int32_t column
    cdef bint writes = out is not None
    with nogil:
        for i in range(ends.shape[0] - 1):
            for k in range(ends[i], ends[i + 1]):
                for j in range(part_ends[ids[k]], part_ends[ids[k] + 1]):
                    column = parts[j]
                    if seen[column] != i:
                        seen[column] = i
                        if writes:
                            out[n] = column
                        n += 1
            out_ends[i + 1] = n


def judge_logits(const float[:, ::1] logits, const int32_t[::1] group, const float[:, ::1] weight,
                 Py_ssize_t n_logits, float[:, ::1] wrong, float[:, ::1] losses):
    cdef Py_ssize_t n = logits.shape[0], models = weight.shape[1], i, m, c, own
    cdef const float* z
    cdef const float* w
    cdef float* out
    cdef float* loss
    cdef float top, total, sign
    with nogil:
        for i in range(n):
            own = group[i]
            w, loss = &weight[i, 0], &losses[i, 0]
            if n_logits == 1:
                z, out = &logits[i, 0], &wrong[i, 0]
                sign = 1.0 if own == 1 else -1.0
                for m in range(models):
                    top = sign * z[m]  # the logit of the row's own class
                    total = exp_of_negative(-fabsf(top))
                    loss[m] = log_of_large(1.0 + total) + (0.0 if top > 0 else -top)
                    out[m] = -sign * w[m] * (total if top > 0 else <float>1.0) / (1.0 + total)
                continue
            for m in range(models):
                z, out = &logits[i, m * n_logits], &wrong[i, m * n_logits]
                top = z[0]
                for c in range(1, n_logits):
                    top = z[c] if z[c] > top else top
                loss[m] = top - z[own]
                for c in range(n_logits):
                    out[c] = z[c] - top
            out = &wrong[i, 0]
            for c in range(models * n_logits):
                out[c] = exp_of_negative(out[c])
            for m in range(models):
                out = &wrong[i, m * n_logits]
                total = 0.0
                for c in range(n_logits):
                    total += out[c]
                loss[m] += log_of_large(total)
                total = w[m] / total
                for c in range(n_logits):
                    out[c] *= total
                out[own] -= w[m]


def score_cells(const int32_t[:, ::1] levels, const int32_t[:, ::1] sets, Py_ssize_t n_levels,
                const float[:, ::1] wrong, const float[:, ::1] chance, float[:, :, ::1] sums,
                float[:, ::1] out, Py_ssize_t start, Py_ssize_t stop):
    cdef Py_ssize_t rows = levels.shape[1], order = sets.shape[1], width = wrong.shape[1], cells = sums.shape[1]
    cdef Py_ssize_t s, i, k, w, cell
    cdef int32_t level
    cdef float* residual
    cdef float* expected
    with nogil:
        for s in range(start, stop):
            for cell in range(cells):
                for w in range(width):
                    sums[0, cell, w] = 0.0
                    sums[1, cell, w] = 0.0
            for i in range(rows):
                cell = 0
                for k in range(order):
                    level = levels[sets[s, k], i]
                    if level < 0:
                        cell = -1
                        break
                    cell = cell * n_levels + level
                if cell >= 0:
                    residual = &sums[0, cell, 0]
                    expected = &sums[1, cell, 0]
                    for w in range(width):
                        residual[w] += wrong[i, w]
                        expected[w] += chance[i, w]
            for w in range(width):
                out[s, w] = 0.0
            for cell in range(cells):
                for w in range(width):
                    out[s, w] += (sums[0, cell, w] * sums[0, cell, w] - sums[1, cell, w]) / (1.0 + sums[1, cell, w])


def copy_rows(const int64_t[::1] ends, const uint8_t[::1] entries, Py_ssize_t size, const int64_t[::1] rows,
              uint8_t[::1] out):
    cdef Py_ssize_t j, n
    cdef uint8_t* to = &out[0] if out.shape[0] else NULL
    with nogil:
        for j in range(rows.shape[0]):
            n = size * (ends[rows[j] + 1] - ends[rows[j]])
            if n > 0:
                memcpy(to, &entries[size * ends[rows[j]]], n)
                to += n


def sort_rows(const int64_t[::1] ends, int64_t[::1] columns, double[::1] values, int64_t[::1] more_columns,
              double[::1] more_values, Py_ssize_t start, Py_ssize_t stop):
    cdef Py_ssize_t i, at
    with nogil:
        for i in range(start, stop):
            at = ends[i]
            if ends[i + 1] > at:
                sort_numbers(&columns[at], &values[at], ends[i + 1] - at, &more_columns[at], &more_values[at])


def count_entries(const int64_t[::1] ends, const Column[::1] indices, data, const int32_t[::1] group,
                  const double[::1] weight, double[:, ::1] counts):
    cdef Py_ssize_t i, k
    cdef const double[::1] value = data
    with nogil:
        for i in range(group.shape[0]):
            if weight[i] == 0:
                continue
            if value is None:
                for k in range(ends[i], ends[i + 1]):
                    counts[indices[k], group[i]] += weight[i]
            else:
                for k in range(ends[i], ends[i + 1]):
                    counts[indices[k], group[i]] += value[k] * weight[i]


def score_left_out(const int64_t[::1] ends, const int32_t[::1] indices, const int32_t[::1] group,
                   const double[::1] weight, double smoothing, const double[:, ::1] counts, const double[::1] totals,
                   const double[:, ::1] logs, double[:, ::1] scores, int64_t[::1] remaining, Py_ssize_t start,
                   Py_ssize_t stop):
    cdef Py_ssize_t classes = logs.shape[1], i, k, c, own
    cdef int64_t column
    cdef double left, product
    with nogil:
        for i in range(start, stop):
            own = group[i]
            product = 1.0
            for k in range(ends[i], ends[i + 1]):
                column = indices[k]
                if totals[column] <= weight[i]:
                    continue
                remaining[i] += 1
                for c in range(classes):
                    scores[i, c] += logs[column, c]
                left = counts[column, own] - weight[i]
                product *= ((left if left > 0 else 0.0) + smoothing) / (counts[column, own] + smoothing)
                if product < 1e-200:  # take one logarithm for many quotients
                    scores[i, own] += log(product)
                    product = 1.0
            scores[i, own] += log(product)


def ascend_rows(const int64_t[::1] ends, const int32_t[::1] indices, const float[::1] data, const float[::1] squares,
                const float[::1] common, const float[:, ::1] offset, const int32_t[::1] group, const float[::1] weight, float strength,
                const int32_t[::1] order, Py_ssize_t n_logits, float[:, ::1] answers, float[:, ::1] weights,
                float[::1] shift, float[::1] moved):
    cdef Py_ssize_t width = weights.shape[1], i, j, k, c, w, own
    cdef float curvature, top, total, along, below, step, change, value
    cdef float z[MAX_LOGITS]
    cdef float p[MAX_LOGITS]
    cdef float m[MAX_LOGITS]  # midpoint of the dual variables and the predicted probabilities, which avoids overshooting
    cdef float* row
    cdef float* q
    with nogil:
        for j in range(order.shape[0]):
            i = order[j]
            own = group[i]
            q = &answers[i, 0]
            curvature = weight[i] * squares[i] / strength  # effect of the row's dual variables on its own logits
            if n_logits == 1:
                total = offset[i, 0] - common[i] * shift[0]
                for k in range(ends[i], ends[i + 1]):
                    total += data[k] * weights[indices[k], 0]
                total = 1.0 / (1.0 + expf(-total)) if total > 0 else 1.0 - 1.0 / (1.0 + expf(total))
                value = 0.5 * (total + q[0])
                step = (total - q[0]) / (1.0 + curvature * value * (1.0 - value))
                moved[i] = fabsf(step)
                q[0] += step
                step *= -weight[i] / strength
                shift[0] += step * common[i]
                for k in range(ends[i], ends[i + 1]):
                    weights[indices[k], 0] += step * data[k]
                continue
            for c in range(width):
                z[c] = -common[i] * shift[c]
            for k in range(ends[i], ends[i + 1]):
                row = &weights[indices[k], 0]
                value = data[k]
                for c in range(0, width, LANE):
                    for w in range(LANE):
                        z[c + w] += value * row[c + w]
            for c in range(n_logits, width):
                z[c] = 0.0
            top = z[0] + offset[i, 0]
            for c in range(n_logits):
                z[c] += offset[i, c]
                top = z[c] if z[c] > top else top
            total = 0.0
            for c in range(n_logits):
                p[c] = expf(z[c] - top)
                total += p[c]
            along = 0.0  # solve (1 + curvature (diag m - m m')) step = p - q by the Sherman-Morrison formula
            below = 1.0
            for c in range(n_logits):
                p[c] /= total
                m[c] = 0.5 * (p[c] + q[c])
                z[c] = 1.0 / (1.0 + curvature * m[c])
                along += m[c] * (p[c] - q[c]) * z[c]
                below -= curvature * m[c] * m[c] * z[c]
            along *= curvature / below
            change = 0.0
            for c in range(n_logits):
                z[c] *= p[c] - q[c] + along * m[c]
                change += fabsf(z[c])
                q[c] += z[c]
                z[c] *= -weight[i] / strength
                shift[c] += common[i] * z[c]
            moved[i] = change
            for k in range(ends[i], ends[i + 1]):
                row = &weights[indices[k], 0]
                value = data[k]
                for c in range(0, width, LANE):
                    for w in range(LANE):
                        row[c + w] += value * z[c + w]
