/* Exact sums divided by counts, and rounded once to the nearest double.

   Everything is done in whole numbers of 32-bit digits, the lowest first. What is cut off below the digits that decide
   the rounding is remembered in one bit ("sticky"): whether it was zero. */

#ifndef PRIORY_EXACT_RATIOS_H
#define PRIORY_EXACT_RATIOS_H

#include <math.h>

#include "exact_limbs.h"

#define MAX_LIMBS 512       /* of a product; windows have at most 201 */
#define QUOTIENT_DIGITS 8   /* 225 bits or more: 64 are left after two divisions by up to 2^53 */

typedef struct {
    uint32_t digits[MAX_LIMBS];
    int width, base; /* the value is the sum of digits[j] * 2^(32 (base + j)), times the sign */
    int sign;
} Whole;

static void read_limbs(const int64_t *limbs, int width, int base, Whole *out)
{
    int j;
    uint64_t borrow = 1;
    out->width = width, out->base = base, out->sign = width && limbs[width - 1] < 0 ? -1 : 1;
    for (j = 0; j < width; j++) {
        out->digits[j] = (uint32_t)limbs[j];
        if (out->sign < 0) { /* two's complement */
            borrow += (uint32_t)~out->digits[j];
            out->digits[j] = (uint32_t)borrow;
            borrow >>= LIMB_BITS;
        }
    }
    while (out->width && !out->digits[out->width - 1]) out->width--;
}

/* A count as an odd number times a power of two. */
static Number read_count(double n)
{
    Number number = take_apart(n);
    if (!number.mantissa) return number;
    for (; !(number.mantissa & 0xFF); number.mantissa >>= 8) number.exponent += 8;
    for (; !(number.mantissa & 1); number.mantissa >>= 1) number.exponent++;
    return number;
}

static void multiply_whole(const Whole *a, const Whole *b, Whole *out)
{
    int i, j;
    out->width = a->width + b->width, out->base = a->base + b->base, out->sign = a->sign * b->sign;
    memset(out->digits, 0, (size_t)out->width * sizeof(uint32_t));
    for (i = 0; i < a->width; i++) {
        uint64_t carry = 0;
        for (j = 0; j < b->width; j++) {
            carry += (uint64_t)a->digits[i] * b->digits[j] + out->digits[i + j];
            out->digits[i + j] = (uint32_t)carry;
            carry >>= LIMB_BITS;
        }
        out->digits[i + j] = (uint32_t)carry;
    }
}

/* A count as digits at whole limbs. */
static void spread_count(Number n, Whole *out)
{
    int place = floor_limb(n.exponent), shift = n.exponent - LIMB_BITS * place;
    uint64_t low = (n.mantissa & LIMB_MASK) << shift, high = ((n.mantissa >> LIMB_BITS) << shift) + (low >> LIMB_BITS);
    out->digits[0] = (uint32_t)low, out->digits[1] = (uint32_t)high, out->digits[2] = (uint32_t)(high >> LIMB_BITS);
    out->base = place, out->sign = 1, out->width = 3;
    while (out->width && !out->digits[out->width - 1]) out->width--;
}

static uint32_t digit_at(const Whole *x, int place)
{
    return place >= x->base && place < x->base + x->width ? x->digits[place - x->base] : 0;
}

/* a - b, for two numbers that are not negative. */
static void subtract_whole(const Whole *a, const Whole *b, Whole *out)
{
    int top = a->base + a->width > b->base + b->width ? a->base + a->width : b->base + b->width, j;
    int64_t carry = 0;
    uint64_t borrow = 1;
    out->base = a->base < b->base ? a->base : b->base, out->width = top - out->base, out->sign = 1;
    for (j = 0; j < out->width; j++) {
        carry += (int64_t)digit_at(a, out->base + j) - (int64_t)digit_at(b, out->base + j);
        out->digits[j] = (uint32_t)carry;
        carry >>= LIMB_BITS;
    }
    for (j = 0; carry && j < out->width; j++) {
        out->sign = -1;
        borrow += (uint32_t)~out->digits[j];
        out->digits[j] = (uint32_t)borrow;
        borrow >>= LIMB_BITS;
    }
    while (out->width && !out->digits[out->width - 1]) out->width--;
}

/* Divides digits in place; returns whether something was left over. */
static int divide_digits(uint32_t *digits, int width, uint64_t divisor)
{
    uint64_t rest = 0;
    int j;
    for (j = width - 1; j >= 0; j--) {
        if (divisor <= LIMB_MASK) {
            uint64_t now = rest << LIMB_BITS | digits[j];
            digits[j] = (uint32_t)(now / divisor);
            rest = now % divisor;
        } else { /* bit by bit: the rest is below 2^53 */
            uint32_t digit = digits[j], quotient = 0;
            int bit;
            for (bit = LIMB_BITS - 1; bit >= 0; bit--) {
                rest = rest << 1 | (digit >> bit & 1);
                quotient <<= 1;
                if (rest >= divisor) rest -= divisor, quotient |= 1;
            }
            digits[j] = quotient;
        }
    }
    return rest != 0;
}

/* bits * 2^exponent, bits of 64 bits, rounded to the nearest double, to even in the middle. */
static double round_bits(uint64_t bits, int sticky, int64_t exponent)
{
    int drop = 11;
    uint64_t kept, below, half;
    if (exponent > 1100) return HUGE_VAL;
    if (exponent < -1074 - 11) drop = exponent < -1074 - 64 ? 64 : (int)(-1074 - exponent);
    if (drop == 64) {
        if (exponent < -1074 - 64) return 0.0;
        kept = 0, below = bits, half = (uint64_t)1 << 63;
    } else {
        kept = bits >> drop, below = bits & (((uint64_t)1 << drop) - 1), half = (uint64_t)1 << (drop - 1);
    }
    if (below > half || (below == half && (sticky || (kept & 1)))) kept++;
    return ldexp((double)kept, (int)exponent + drop);
}

/* The leading 64 bits of digits, the exponent of the lowest of them, and whether anything lies below. */
static uint64_t lead_bits(const uint32_t *digits, int width, int *position, int *sticky)
{
    uint64_t bits;
    uint32_t top, next;
    int shift = 0, j;
    while (width && !digits[width - 1]) width--;
    if (!width) return 0;
    top = digits[width - 1];
    while (!(top & 0x80000000u)) top <<= 1, shift++;
    bits = (uint64_t)digits[width - 1] << LIMB_BITS | (width > 1 ? digits[width - 2] : 0);
    next = width > 2 ? digits[width - 3] : 0;
    if (shift) bits = bits << shift | next >> (LIMB_BITS - shift);
    if ((uint32_t)(next << shift)) *sticky = 1;
    for (j = 0; j < width - 3; j++) *sticky |= digits[j] != 0;
    *position = LIMB_BITS * (width - 2) - shift;
    return bits;
}

/* The double nearest to x / n^power * 2^-exponent. Its mantissa and exponent apart, if ``apart`` is given. */
static double divide_whole(const Whole *x, Number n, int power, int64_t exponent, int64_t *apart)
{
    uint32_t digits[QUOTIENT_DIGITS];
    int start = x->width - QUOTIENT_DIGITS, sticky = 0, position = 0, j;
    uint64_t bits;
    double result;
    if (power && !n.mantissa) return NAN;
    if (apart) *apart = 0;
    if (!x->width) return 0.0;
    for (j = 0; j < QUOTIENT_DIGITS; j++) digits[j] = start + j >= 0 ? x->digits[start + j] : 0;
    for (j = 0; j < start; j++) sticky |= x->digits[j] != 0;
    for (j = 0; j < power && n.mantissa != 1; j++) sticky |= divide_digits(digits, QUOTIENT_DIGITS, n.mantissa);
    bits = lead_bits(digits, QUOTIENT_DIGITS, &position, &sticky);
    exponent = (int64_t)LIMB_BITS * (x->base + start) + position - (int64_t)power * (power ? n.exponent : 0) - exponent;
    if (apart) {
        int carried;
        result = frexp(round_bits(bits, sticky, 0), &carried);
        *apart = exponent + carried;
    } else {
        result = round_bits(bits, sticky, exponent);
    }
    return x->sign * result;
}

/* (n * second - first^2) / n^2 * 2^(-2 exponent), correctly rounded. */
static double divide_spread(Number n, const Whole *first, const Whole *second, int64_t exponent)
{
    Whole count, mine, squares, spread;
    if (!n.mantissa) return NAN;
    spread_count(n, &count);
    multiply_whole(second, &count, &mine);
    multiply_whole(first, first, &squares);
    subtract_whole(&mine, &squares, &spread);
    return divide_whole(&spread, n, 2, 2 * exponent, 0);
}

#endif
