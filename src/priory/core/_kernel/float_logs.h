/* Exponentials and logarithms in single precision, without branches, so that compilers compute several at a time.
   Both are right to 3e-7, relative to the larger of one and the result of the logarithm. */

#ifndef PRIORY_FLOAT_LOGS_H
#define PRIORY_FLOAT_LOGS_H

#include <stdint.h>
#include <string.h>

/* exp(x) for x <= 0, clipped at -87: 2^k by setting the exponent's bits, and e^rest by its series. */
static inline float exp_of_negative(float x) {
    const float shift = 12582912.0f; /* 3 * 2^22: what is added to it is rounded to a whole number */
    float held = x > -87.0f ? x : -87.0f;
    float shifted = held * 1.44269504f + shift;
    float whole = shifted - shift;
    float rest = (held - whole * 0.693359375f) + whole * 2.12194440e-4f; /* ln 2 in two parts */
    float series = 1.0f + rest * (1.0f + rest * (0.5f + rest * (1.0f / 6 + rest * (1.0f / 24 + rest * (1.0f / 120 + rest / 720)))));
    int32_t bits;
    float power;
    memcpy(&bits, &shifted, sizeof bits);
    bits = (int32_t)(((uint32_t)bits + 127u) << 23); /* the low bits of what was shifted are k */
    memcpy(&power, &bits, sizeof power);
    return series * power;
}

/* log(x) of x >= 1: the exponent's bits give k, and the rest, from 3/4 to 3/2, its odd series in (m - 1) / (m + 1). */
static inline float log_of_large(float x) {
    int32_t bits, k;
    float m, s, square;
    memcpy(&bits, &x, sizeof bits);
    k = (bits - 0x3f400000) >> 23;
    bits -= (int32_t)((uint32_t)k << 23);
    memcpy(&m, &bits, sizeof m);
    s = (m - 1.0f) / (m + 1.0f);
    square = s * s;
    s *= 2.0f + square * (2.0f / 3 + square * (2.0f / 5 + square * (2.0f / 7 + square * (2.0f / 9))));
    return (float)k * 0.693147181f + s;
}

#endif
