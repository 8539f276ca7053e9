/* Exact sums in integers: limbs of 32 bits in 64-bit words, carried only at the end.

   All cells of a block share one window of limbs, which grows as it has to. A cell is a class and a column. Between two
   carries a limb takes 2^29 numbers without overflowing: callers pass no more rows than that at a time. */

#ifndef PRIORY_EXACT_LIMBS_H
#define PRIORY_EXACT_LIMBS_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define LIMB_BITS 32
#define LIMB_MASK 0xFFFFFFFFu
#define HALF_BITS 27 /* a mantissa is cut into 26 high bits and 27 low ones, whose products fit into 64 bits */

typedef struct {
    int64_t *limbs; /* cells x width, of value limb * 2^(32 (base + j)) */
    int64_t cells;
    int base, width;
    int failed; /* whether memory ran out */
} Window;

typedef struct {
    uint64_t mantissa; /* below 2^53 */
    int exponent;      /* of its lowest bit */
    int sign;
} Number;

static int floor_limb(int exponent) { return exponent >= 0 ? exponent / LIMB_BITS : -((31 - exponent) / LIMB_BITS); }

static int window_reserve(Window *w, int low, int top)
{
    int base, width;
    int64_t *grown, cell;
    if (w->failed || (w->width && low >= w->base && top <= w->base + w->width)) return !w->failed;
    base = w->width && w->base < low ? w->base : low;
    width = (w->width && w->base + w->width > top ? w->base + w->width : top) - base;
    grown = (int64_t *)calloc((size_t)(w->cells * width + 1), sizeof(int64_t));
    if (!grown) return !(w->failed = 1);
    for (cell = 0; cell < w->cells && w->width; cell++)
        memcpy(grown + cell * width + (w->base - base), w->limbs + cell * w->width, (size_t)w->width * sizeof(int64_t));
    free(w->limbs);
    w->limbs = grown, w->base = base, w->width = width;
    return 1;
}

/* Adds size * 2^exponent, with a sign, to one cell. */
static void window_add(Window *w, int64_t cell, uint64_t size, int exponent, int sign)
{
    int place = floor_limb(exponent), shift = exponent - LIMB_BITS * place;
    uint64_t low = (size & LIMB_MASK) << shift, high = (size >> LIMB_BITS) << shift;
    int64_t *limb;
    if (!size || !window_reserve(w, place, place + 3)) return;
    limb = w->limbs + cell * w->width + (place - w->base);
    limb[0] += sign * (int64_t)(low & LIMB_MASK);
    limb[1] += sign * (int64_t)((low >> LIMB_BITS) + (high & LIMB_MASK));
    limb[2] += sign * (int64_t)(high >> LIMB_BITS);
}

static void window_add_signed(Window *w, int64_t cell, int64_t value, int exponent)
{
    window_add(w, cell, value < 0 ? 0 - (uint64_t)value : (uint64_t)value, exponent, value < 0 ? -1 : 1);
}

/* Adds a * b * 2^exponent; both are below 2^55. */
static void window_add_product(Window *w, int64_t cell, uint64_t a, uint64_t b, int exponent, int sign)
{
    uint64_t mask = ((uint64_t)1 << HALF_BITS) - 1, a1 = a >> HALF_BITS, a0 = a & mask, b1 = b >> HALF_BITS, b0 = b & mask;
    window_add(w, cell, a1 * b1, exponent + 2 * HALF_BITS, sign);
    window_add(w, cell, a1 * b0 + a0 * b1, exponent + HALF_BITS, sign);
    window_add(w, cell, a0 * b0, exponent, sign);
}

/* A finite double as a whole number times a power of two. */
static Number take_apart(double x)
{
    uint64_t bits;
    int field;
    Number number;
    memcpy(&bits, &x, sizeof bits);
    field = (int)(bits >> 52 & 0x7FF);
    number.mantissa = (bits & 0xFFFFFFFFFFFFFull) | (field ? 1ull << 52 : 0);
    number.exponent = (field ? field : 1) - 1075;
    number.sign = bits >> 63 ? -1 : 1;
    return number;
}

static void add_value(Window *first, int64_t cell, Number x) { window_add(first, cell, x.mantissa, x.exponent, x.sign); }

static void add_square(Window *second, int64_t cell, Number x)
{
    window_add_product(second, cell, x.mantissa, x.mantissa, 2 * x.exponent, 1);
}

static void add_weighted_value(Window *first, int64_t cell, Number x, Number weight)
{
    window_add_product(first, cell, x.mantissa, weight.mantissa, x.exponent + weight.exponent, x.sign);
}

static void add_weighted_square(Window *second, int64_t cell, Number x, Number weight)
{
    uint64_t mask = ((uint64_t)1 << HALF_BITS) - 1, high = x.mantissa >> HALF_BITS, low = x.mantissa & mask;
    int exponent = 2 * x.exponent + weight.exponent;
    window_add_product(second, cell, high * high, weight.mantissa, exponent + 2 * HALF_BITS, 1);
    window_add_product(second, cell, 2 * high * low, weight.mantissa, exponent + HALF_BITS, 1);
    window_add_product(second, cell, low * low, weight.mantissa, exponent, 1);
}

/* Carries the limbs of every cell; the last one keeps the sign and must have room for it. */
static void carry_limbs(int64_t *limbs, int64_t cells, int width)
{
    int64_t cell, *limb;
    int j;
    for (cell = 0; cell < cells; cell++)
        for (limb = limbs + cell * width, j = 0; j + 1 < width; j++) {
            limb[j + 1] += limb[j] >> LIMB_BITS; /* arithmetic: it rounds down */
            limb[j] &= LIMB_MASK;
        }
}

/* The smallest window, low .. top - 1, that holds carried limbs; top is low where all of them are zero. */
static void find_window(const int64_t *limbs, int64_t cells, int width, int *low, int *top)
{
    int64_t cell;
    int j, negative, bottom = width, end = 0;
    for (cell = 0; cell < cells; cell++) {
        const int64_t *limb = limbs + cell * width;
        for (j = 0; j < bottom && !limb[j]; j++) {}
        if (j == width) continue;
        bottom = j < bottom ? j : bottom;
        negative = limb[width - 1] < 0;
        for (j = width; j > 1 && j > end; j--) /* a limb that repeats the sign bit of the one before it can go */
            if ((limb[j - 1] & LIMB_MASK) != (negative ? LIMB_MASK : 0) || (limb[j - 2] >> 31 & 1) != negative) break;
        end = j;
    }
    *low = end ? bottom : 0;
    *top = end;
}

#endif
