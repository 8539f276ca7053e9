/* Exact sums of x and x * x over runs of rows, in doubles.

   A cell is cut into up to four digits of 23 bits by adding and subtracting 1.5 * 2^(unit + 52). Digits are whole
   numbers of their unit, and all but the first are at most 2^22 in size. If the squares of the first digits of a run add
   up to at most 2^49, every sum of digits or of products of two digits stays below 2^53 (Cauchy and Schwarz), where
   doubles are exact. So a run is summed first and checked afterwards. Where the check fails (a cell is missing or too
   large) or bits were left below the last digit, the cells that do not fit are added in integers. */

#ifndef PRIORY_EXACT_RUNS_H
#define PRIORY_EXACT_RUNS_H

#include <float.h>
#include <math.h>

#include "exact_limbs.h"

#if defined(__FAST_MATH__)
#error "exact sums need IEEE arithmetic: build without -ffast-math"
#endif
#if defined(FLT_EVAL_METHOD) && FLT_EVAL_METHOD != 0
#define MAX_DIGITS 0 /* doubles are not computed as doubles here: everything in integers */
#else
#define MAX_DIGITS 4
#endif

#define RUN_ROWS 64 /* of 20 columns: half of a usual L1 cache; 128 would still be exact */
#define DIGIT_BITS 23
#define FIRST_DIGIT_BITS 21  /* of a cell that fits; 128 of them pass the check */
#define CHECK_BITS 49        /* of the sum of their squares */
#define MARGIN_BITS 1        /* cells may be so much larger than those that the unit was chosen by */
#define MAX_UNIT 400         /* with larger or smaller units products of digits might overflow or underflow */
#define MISFIT_SHARE 8       /* a unit may leave out one of so many cells as too large */
#define MIN_RUN_ROWS 6       /* fewer rows of a class are added in integers */
#define RARE_MISFIT_RUNS 16  /* runs between two that do not fit: the unit is good enough */
#define MAX_PATIENCE 255     /* runs that do not fit, at most, before another unit is tried */

#if defined(__GNUC__)
typedef double lanes __attribute__((vector_size(32)));
typedef int64_t lane_masks __attribute__((vector_size(32)));
#define ALWAYS_INLINE static inline __attribute__((always_inline))
#define PREFETCH(address) __builtin_prefetch(address, 0, 2)
#else
typedef double lanes;
typedef int64_t lane_masks;
#define ALWAYS_INLINE static inline
#define PREFETCH(address)
#endif
#define LANES ((int)(sizeof(lanes) / sizeof(double)))
#define MAX_LANES 4

/* What a run adds up to, in every lane: sums of digits and of products of digits. */
typedef struct {
    double digits[3][MAX_LANES];
    double products[9][MAX_LANES];
    int64_t inexact[MAX_LANES]; /* not 0: a cell has bits below the last digit */
    int64_t present[MAX_LANES]; /* minus the number of cells that are not missing, if they are counted */
} RunSums;

typedef struct {
    int unit;     /* the exponent of the unit of the first digit */
    int digits;   /* how many are cut; 0: every cell in integers */
    int calm;     /* runs since one did not fit */
    int patience; /* how many runs may not fit before another unit is tried; it doubles each time */
    int wait;     /* how many of them are left */
    int64_t digit_sums[4], product_sums[7]; /* of runs not yet in the windows; the k-th in units of 2^(-23 k) */
} Column;

/* Columns side by side, one in each lane, all cut into the same number of digits. */
typedef struct {
    int64_t start;
    int width, digits, has_gaps;
    double cuts[4][MAX_LANES];
    int64_t used[MAX_LANES]; /* -1 for a column that has digits */
} Block;

typedef struct {
    const char *data;
    int64_t row_stride, column_stride; /* in bytes */
    char type;                         /* d double, f float, q int64, i int32 */
} Table;

/* 2^exponent, for exponents of normal doubles. */
ALWAYS_INLINE double power_of_two(int exponent)
{
    uint64_t bits = (uint64_t)(exponent + 1023) << 52;
    double power;
    memcpy(&power, &bits, sizeof power);
    return power;
}

/* -- the loop ------------------------------------------------------------------------------------------------------- */

#define STORE(place, vector) memcpy(place, &vector, sizeof vector)

ALWAYS_INLINE void sum_run(const char *start, const int32_t *rows, int64_t stride, int n, const Block *block,
                           const int digits, const int gaps, RunSums *out)
{
    const lanes zero = {0.0};
    lanes cut1, cut2, cut3, cut4, v, rest, d1, d2, d3, d4;
    lanes s1 = zero, s2 = zero, s3 = zero;
    lanes p11 = zero, p12 = zero, p13 = zero, p22 = zero, p23 = zero, p33 = zero, p24 = zero, p34 = zero, p44 = zero;
    lane_masks inexact = zero != zero, present = zero != zero, used, valid;
    int i;
    memcpy(&cut1, block->cuts[0], sizeof cut1);
    memcpy(&cut2, block->cuts[1], sizeof cut2);
    memcpy(&cut3, block->cuts[2], sizeof cut3);
    memcpy(&cut4, block->cuts[3], sizeof cut4);
    memcpy(&used, block->used, sizeof used);
    for (i = 0; i < n; i++) {
        memcpy(&v, start + rows[i] * stride, sizeof v);
        if (gaps) {
            valid = (v == v) & used;
            present += valid;
            {
                lane_masks bits;
                memcpy(&bits, &v, sizeof v);
                bits &= valid;
                memcpy(&v, &bits, sizeof v);
            }
        }
        d1 = (v + cut1) - cut1;
        p11 += d1 * d1;
        if (digits == 1) {
            s1 += d1;
            inexact |= d1 != v;
            continue;
        }
        rest = v - d1;
        d2 = (rest + cut2) - cut2;
        p12 += d1 * d2, p22 += d2 * d2;
        if (digits == 2) {
            s1 += v;
            inexact |= d2 != rest;
            continue;
        }
        s1 += d1;
        s2 += digits == 3 ? rest : d2;
        rest -= d2;
        d3 = (rest + cut3) - cut3;
        p13 += d1 * d3, p23 += d2 * d3, p33 += d3 * d3;
        if (digits == 3) {
            inexact |= d3 != rest;
            continue;
        }
        s3 += rest;
        rest -= d3;
        d4 = (rest + cut4) - cut4;
        p23 += d1 * d4, p24 += d2 * d4, p34 += d3 * d4, p44 += d4 * d4;
        inexact |= d4 != rest;
    }
    STORE(out->digits[0], s1), STORE(out->digits[1], s2), STORE(out->digits[2], s3);
    STORE(out->products[0], p11), STORE(out->products[1], p12), STORE(out->products[2], p13);
    STORE(out->products[3], p22), STORE(out->products[4], p23), STORE(out->products[5], p33);
    STORE(out->products[6], p24), STORE(out->products[7], p34), STORE(out->products[8], p44);
    STORE(out->inexact, inexact), STORE(out->present, present);
}

#define SUM_RUN_OF_ANY_KIND                                                          \
    {                                                                                \
        switch (2 * block->digits + block->has_gaps) {                               \
        case 2: sum_run(start, rows, stride, n, block, 1, 0, out); break;            \
        case 3: sum_run(start, rows, stride, n, block, 1, 1, out); break;            \
        case 4: sum_run(start, rows, stride, n, block, 2, 0, out); break;            \
        case 5: sum_run(start, rows, stride, n, block, 2, 1, out); break;            \
        case 6: sum_run(start, rows, stride, n, block, 3, 0, out); break;            \
        case 7: sum_run(start, rows, stride, n, block, 3, 1, out); break;            \
        case 8: sum_run(start, rows, stride, n, block, 4, 0, out); break;            \
        default: sum_run(start, rows, stride, n, block, 4, 1, out);                  \
        }                                                                            \
    }

static void sum_run_portable(const char *start, const int32_t *rows, int64_t stride, int n, const Block *block, RunSums *out)
SUM_RUN_OF_ANY_KIND

#if defined(__GNUC__) && defined(__x86_64__)
__attribute__((target("avx2,fma"))) static void
sum_run_avx2(const char *start, const int32_t *rows, int64_t stride, int n, const Block *block, RunSums *out)
SUM_RUN_OF_ANY_KIND
#define SUM_RUN (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? sum_run_avx2 : sum_run_portable)
#else
#define SUM_RUN sum_run_portable
#endif

/* -- the unit of a column -------------------------------------------------------------------------------------------- */

static int lowest_bit(Number x)
{
    for (; !(x.mantissa & 0xFF); x.mantissa >>= 8) x.exponent += 8;
    for (; !(x.mantissa & 1); x.mantissa >>= 1) x.exponent++;
    return x.exponent;
}

/* Chooses unit and digits by some finite cells: as many as possible fit, after the largest are left out. */
static void choose_unit(Column *column, const double *x, int n)
{
    int top[RUN_ROWS], low[RUN_ROWS], count = 0, best = 0, i, k, skip;
    for (i = 0; i < n; i++) { /* sorted, the largest first */
        Number number = take_apart(x[i]);
        if (!number.mantissa) continue;
        for (k = count++; k > 0 && top[k - 1] < number.exponent + 53; k--) top[k] = top[k - 1], low[k] = low[k - 1];
        top[k] = number.exponent + 53, low[k] = lowest_bit(number);
    }
    column->unit = 0, column->digits = count || !MAX_DIGITS ? 0 : 1;
    for (skip = 0; skip <= count / MISFIT_SHARE && skip < count; skip++) {
        int unit = top[skip] + MARGIN_BITS - FIRST_DIGIT_BITS, lowest = unit, fitting = 0;
        if ((skip && top[skip] == top[skip - 1]) || unit > MAX_UNIT || unit < -MAX_UNIT || !MAX_DIGITS) continue;
        for (k = skip; k < count; k++)
            if (low[k] >= unit - (MAX_DIGITS - 1) * DIGIT_BITS) {
                fitting++;
                lowest = low[k] < lowest ? low[k] : lowest;
            }
        if (fitting > best && 2 * fitting >= count) {
            best = fitting;
            column->unit = unit;
            column->digits = 1 + (unit - lowest + DIGIT_BITS - 1) / DIGIT_BITS;
        }
    }
}

static int fits_digits(double x, const Column *column)
{
    Number number = take_apart(x);
    int below = column->unit - (column->digits - 1) * DIGIT_BITS - number.exponent; /* bits under the last digit */
    if (!column->digits || fabs(x) > power_of_two(column->unit + FIRST_DIGIT_BITS)) return 0;
    return below <= 0 || !(below < 53 ? number.mantissa & (((uint64_t)1 << below) - 1) : number.mantissa);
}

/* Lays the columns of a block side by side. */
static void arrange_block(Block *block, const Column *columns)
{
    int lane, k;
    for (block->digits = MAX_DIGITS ? 1 : 0, lane = 0; lane < block->width; lane++)
        if (columns[lane].digits > block->digits) block->digits = columns[lane].digits;
    for (lane = 0; lane < MAX_LANES; lane++) {
        block->used[lane] = lane < block->width && columns[lane].digits ? -1 : 0;
        for (k = 0; k < 4; k++)
            block->cuts[k][lane] = 1.5 * power_of_two((block->used[lane] ? columns[lane].unit : 0) + 52 - k * DIGIT_BITS);
        if (lane < block->width && !block->used[lane]) block->has_gaps = 1;
    }
}

/* -- runs ------------------------------------------------------------------------------------------------------------ */

/* Add the sums of one lane to the sums of its column. */
static void keep_run(Column *column, const RunSums *run, int lane, int digits)
{
    double scale[7];
    int64_t d[3], p[9];
    int k;
    for (k = 0; k < 7; k++) scale[k] = power_of_two(k * DIGIT_BITS - 2 * column->unit);
#define DIGITS(k, place) (int64_t)(run->digits[k][lane] * power_of_two((place) * DIGIT_BITS - column->unit))
#define PRODUCTS(k, place) (int64_t)(run->products[k][lane] * scale[place])
    d[0] = DIGITS(0, digits == 2), d[1] = digits > 2 ? DIGITS(1, digits == 3 ? 2 : 1) : 0, d[2] = digits > 3 ? DIGITS(2, 3) : 0;
    column->digit_sums[digits == 2] += d[0];
    column->digit_sums[digits == 3 ? 2 : 1] += d[1];
    column->digit_sums[3] += d[2];
    for (k = 0; k < 9; k++) p[k] = 0;
    p[0] = PRODUCTS(0, 0);
    if (digits > 1) p[1] = PRODUCTS(1, 1), p[3] = PRODUCTS(3, 2);
    if (digits > 2) p[2] = PRODUCTS(2, 2), p[4] = PRODUCTS(4, 3), p[5] = PRODUCTS(5, 4);
    if (digits > 3) p[6] = PRODUCTS(6, 4), p[7] = PRODUCTS(7, 5), p[8] = PRODUCTS(8, 6);
    column->product_sums[0] += p[0];
    column->product_sums[1] += 2 * p[1];
    column->product_sums[2] += 2 * p[2] + p[3];
    column->product_sums[3] += 2 * p[4];
    column->product_sums[4] += 2 * p[6] + p[5];
    column->product_sums[5] += 2 * p[7];
    column->product_sums[6] += p[8];
#undef DIGITS
#undef PRODUCTS
}

/* -- a table --------------------------------------------------------------------------------------------------------- */

typedef struct {
    Table table;
    int64_t columns_count;
    Column *columns;
    Block *blocks;
    int squares;
    Window first, second; /* the sums of x and of x * x; a cell is class * columns_count + column */
    double *counts;       /* of the cells that are not missing */
    int64_t infinite;     /* the first column found to hold an infinite number, or -1 */
    int32_t in_order[RUN_ROWS];
    const char *ahead, *ahead_end; /* rows that will be added next */
} Summation;

static int64_t count_blocks(int64_t columns) { return (columns + LANES - 1) / LANES; }

static double read_cell(const Table *table, int64_t row, int64_t column)
{
    const char *at = table->data + row * table->row_stride + column * table->column_stride;
    switch (table->type) {
    case 'd': return *(const double *)at;
    case 'f': return *(const float *)at;
    case 'q': return (double)*(const int64_t *)at;
    default: return *(const int32_t *)at;
    }
}

static void commit_column(Summation *s, Column *column, int64_t cell)
{
    int k;
    for (k = 0; k < 4; k++) window_add_signed(&s->first, cell, column->digit_sums[k], column->unit - k * DIGIT_BITS);
    for (k = 0; s->squares && k < 7; k++)
        window_add_signed(&s->second, cell, column->product_sums[k], 2 * column->unit - k * DIGIT_BITS);
    memset(column->digit_sums, 0, sizeof column->digit_sums);
    memset(column->product_sums, 0, sizeof column->product_sums);
}

static void add_in_integers(Summation *s, double x, int64_t cell)
{
    Number number = take_apart(x);
    add_value(&s->first, cell, number);
    if (s->squares) add_square(&s->second, cell, number);
}

/* Adds a few rows of a class, cell by cell. */
static void add_rows_in_integers(Summation *s, const int32_t *rows, int64_t n, int64_t class_number)
{
    int64_t i, j, cell;
    for (i = 0; i < n; i++)
        for (j = 0, cell = class_number * s->columns_count; j < s->columns_count; j++, cell++) {
            double v = read_cell(&s->table, rows[i], j);
            if (v - v == 0.0) add_in_integers(s, v, cell), s->counts[cell] += 1.0;
            else if (v == v) s->infinite = j;
        }
}

/* Adds rows with weights, cell by cell. */
static void add_weighted_rows(Summation *s, const int32_t *group, const double *weight, int64_t n)
{
    int64_t i, j, cell;
    for (i = 0; i < n; i++) {
        Number w = take_apart(weight[i]);
        for (j = 0, cell = group[i] * s->columns_count; w.mantissa && j < s->columns_count; j++, cell++) {
            double v = read_cell(&s->table, i, j);
            if (v - v == 0.0) {
                Number x = take_apart(v);
                add_weighted_value(&s->first, cell, x, w);
                if (s->squares) add_weighted_square(&s->second, cell, x, w);
                s->counts[cell] += weight[i];
            } else if (v == v) {
                s->infinite = j;
            }
        }
    }
}

/* Chooses the unit of a column anew if runs have often not fitted it, but less and less often. */
static void reconsider_unit(Summation *s, Column *column, const double *x, int n, int64_t cell)
{
    int often = column->calm < RARE_MISFIT_RUNS;
    column->calm = 0;
    if (!often || --column->wait > 0) return;
    commit_column(s, column, cell);
    choose_unit(column, x, n);
    column->patience = column->patience < MAX_PATIENCE ? 2 * column->patience + 1 : MAX_PATIENCE;
    column->wait = column->patience;
}

/* Adds a run of one column of which some cells do not fit: those in integers, the others spread over the lanes. */
static void add_uneven_run(Summation *s, Block *block, Column *column, const int32_t *rows, int n, int64_t j, int64_t cell)
{
    double x[RUN_ROWS + MAX_LANES];
    Column spread[MAX_LANES];
    Block alone;
    RunSums run;
    int i, lane, present = 0, kept = 0;
    for (i = 0; i < n; i++) {
        double v = read_cell(&s->table, rows[i], j);
        x[present] = v;
        present += v - v == 0.0;
        if (v - v != 0.0) block->has_gaps = 1;
        if (v - v != 0.0 && v == v) s->infinite = j;
    }
    s->counts[cell] += present;
    reconsider_unit(s, column, x, present, cell);
    for (i = 0; i < present; i++) {
        if (fits_digits(x[i], column)) x[kept++] = x[i];
        else add_in_integers(s, x[i], cell);
    }
    if (kept) {
        for (; kept % LANES; kept++) x[kept] = 0.0;
        for (lane = 0; lane < LANES; lane++) spread[lane] = *column;
        memset(&alone, 0, sizeof alone);
        alone.width = LANES;
        arrange_block(&alone, spread);
        SUM_RUN((const char *)x, s->in_order, sizeof(lanes), kept / LANES, &alone, &run);
        for (lane = 0; lane < LANES; lane++) keep_run(column, &run, lane, alone.digits);
    }
    arrange_block(block, s->columns + block->start);
}

/* Copies a block of a run to where its lanes lie side by side. */
static void copy_block(const Table *table, const int32_t *rows, int n, const Block *block, double *x)
{
    int i, lane;
#define COPY(TYPE)                                                                                        \
    for (lane = 0; lane < block->width; lane++) {                                                         \
        const char *start = table->data + (block->start + lane) * table->column_stride;                   \
        for (i = 0; i < n; i++) x[i * LANES + lane] = (double)*(const TYPE *)(start + rows[i] * table->row_stride); \
    }
    if (block->width < LANES) memset(x, 0, (size_t)n * sizeof(lanes));
    switch (table->type) {
    case 'd': COPY(double) break;
    case 'f': COPY(float) break;
    case 'q': COPY(int64_t) break;
    default: COPY(int32_t)
    }
#undef COPY
}

/* Prefetch as many rows as are being added, because the rows of one class are not contiguous. */
static void prefetch(Summation *s, int rows)
{
    const char *end = s->ahead + (int64_t)rows * (int64_t)sizeof(lanes);
    for (; s->ahead < end && s->ahead < s->ahead_end; s->ahead += 64) PREFETCH(s->ahead);
}

/* Adds a run of rows of one class. */
static void add_run(Summation *s, const int32_t *rows, int n, int64_t class_number)
{
    double copy[RUN_ROWS * MAX_LANES];
    RunSums run;
    int64_t b;
    int lane;
    for (b = 0; b < count_blocks(s->columns_count); b++) {
        Block *block = s->blocks + b;
        const Block summed = *block; /* a run that does not fit may change the block */
        prefetch(s, n);
        if (s->table.type == 'd' && s->table.column_stride == 8 && block->width == LANES) {
            SUM_RUN(s->table.data + 8 * block->start, rows, s->table.row_stride, n, block, &run);
        } else {
            copy_block(&s->table, rows, n, block, copy);
            SUM_RUN((const char *)copy, s->in_order, sizeof(lanes), n, block, &run);
        }
        for (lane = 0; lane < block->width; lane++) {
            int64_t j = block->start + lane, cell = class_number * s->columns_count + j;
            Column *column = s->columns + j;
            int fits = summed.used[lane] && !run.inexact[lane] &&
                       run.products[0][lane] <= power_of_two(2 * column->unit + CHECK_BITS);
            if (!fits) {
                add_uneven_run(s, block, column, rows, n, j, cell);
                continue;
            }
            column->calm++;
            keep_run(column, &run, lane, summed.digits);
            s->counts[cell] += summed.has_gaps ? (double)-run.present[lane] : (double)n;
        }
    }
}

/* Adds all rows of a class, given in the order in which they lie. */
static void add_class(Summation *s, const int32_t *rows, int64_t n, int64_t class_number)
{
    int64_t i, j;
    if (n < MIN_RUN_ROWS || !MAX_DIGITS) {
        add_rows_in_integers(s, rows, n, class_number);
        return;
    }
    for (i = 0; i < n && s->infinite < 0; i += RUN_ROWS) add_run(s, rows + i, (int)(n - i < RUN_ROWS ? n - i : RUN_ROWS), class_number);
    for (j = 0; j < s->columns_count; j++) commit_column(s, s->columns + j, class_number * s->columns_count + j);
}

/* Chooses the units of all columns by the first rows. */
static void start_columns(Summation *s, int64_t n)
{
    double x[RUN_ROWS];
    int64_t j, b;
    int i, count;
    for (i = 0; i < RUN_ROWS; i++) s->in_order[i] = i;
    for (j = 0; j < s->columns_count; j++) {
        for (count = 0, i = 0; i < n && i < RUN_ROWS; i++) {
            x[count] = read_cell(&s->table, i, j);
            count += x[count] - x[count] == 0.0;
        }
        choose_unit(s->columns + j, x, count);
    }
    for (b = 0; b < count_blocks(s->columns_count); b++) {
        Block *block = s->blocks + b;
        block->start = b * LANES;
        block->width = (int)(s->columns_count - block->start < LANES ? s->columns_count - block->start : LANES);
        arrange_block(block, s->columns + block->start);
    }
}

#endif
