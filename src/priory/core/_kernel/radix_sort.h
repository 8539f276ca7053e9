/* Numbers from zero sorted, and values moved along with them: a few by insertion, many by their bytes from the lowest up. */

#ifndef PRIORY_RADIX_SORT_H
#define PRIORY_RADIX_SORT_H

#include <stdint.h>
#include <string.h>

#define FEW_NUMBERS 32

static inline void insert_sorted(int64_t *numbers, double *values, int64_t n) {
    for (int64_t i = 1; i < n; i++) {
        int64_t number = numbers[i], at = i;
        double value = values ? values[i] : 0;
        for (; at > 0 && numbers[at - 1] > number; at--) {
            numbers[at] = numbers[at - 1];
            if (values) values[at] = values[at - 1];
        }
        numbers[at] = number;
        if (values) values[at] = value;
    }
}

/* `more_numbers` and `more_values` are room for as many; equal numbers keep their order. Without values they are NULL. */
static inline void sort_numbers(int64_t *numbers, double *values, int64_t n, int64_t *more_numbers, double *more_values) {
    int64_t highest = 0, *from = numbers, *to = more_numbers, *other;
    double *from_values = values, *to_values = more_values, *other_values;
    if (n <= FEW_NUMBERS) {
        insert_sorted(numbers, values, n);
        return;
    }
    for (int64_t i = 0; i < n; i++) highest |= numbers[i];
    for (int shift = 0; shift < 64 && highest >> shift; shift += 8) {
        int64_t place[256] = {0}, sum = 0;
        for (int64_t i = 0; i < n; i++) place[from[i] >> shift & 255]++;
        for (int k = 0; k < 256; k++) {
            int64_t size = place[k];
            place[k] = sum;
            sum += size;
        }
        for (int64_t i = 0; i < n; i++) {
            int64_t at = place[from[i] >> shift & 255]++;
            to[at] = from[i];
            if (values) to_values[at] = from_values[i];
        }
        other = from, from = to, to = other;
        other_values = from_values, from_values = to_values, to_values = other_values;
    }
    if (from != numbers) {
        memcpy(numbers, from, n * sizeof *numbers);
        if (values) memcpy(values, from_values, n * sizeof *values);
    }
}

#endif
