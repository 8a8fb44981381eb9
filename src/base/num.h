/* Numbers to and from text, whatever the process's locale; arithmetic that cannot overflow. */
#ifndef P2O_BASE_NUM_H
#define P2O_BASE_NUM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

/* The whole of s must be the number; false leaves *out alone. */
bool p2o_parse_i64(Str s, int64_t *out);            /* decimal, optional '-' */
bool p2o_parse_f64(Str s, double *out);             /* decimal with optional fraction, exponent */

/* Shortest text that reads back as the same double; inf, -inf, nan.  buf holds 32. */
const char *p2o_format_f64(char *buf, double x);
/* The same for a float's value. */
const char *p2o_format_f32(char *buf, float x);

/* false on overflow; *out is then untouched. */
static inline bool add_i64(int64_t a, int64_t b, int64_t *out)
{
    return !__builtin_add_overflow(a, b, out);
}

static inline bool mul_i64(int64_t a, int64_t b, int64_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}

static inline bool add_u64(uint64_t a, uint64_t b, uint64_t *out)
{
    return !__builtin_add_overflow(a, b, out);
}

static inline bool mul_u64(uint64_t a, uint64_t b, uint64_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}

/* A double that is a whole number, below 2**53: all of these are themselves as doubles.  false
 * leaves *out alone: fractions, infinities, and what may have been another integer. */
bool p2o_whole(double v, int64_t *out);

/* Python's // and %: rounded towards minus infinity, remainder with the sign of b.  b is not 0. */
static inline int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - ((a % b != 0) & ((a < 0) != (b < 0)));
}

static inline int64_t floor_mod(int64_t a, int64_t b)
{
    return a % b + ((a % b != 0) & ((a < 0) != (b < 0))) * b;
}

float    p2o_f16_to_f32(uint16_t h);
float    p2o_bf16_to_f32(uint16_t h);
uint16_t p2o_f32_to_f16(float x);                       /* round to nearest even */
uint16_t p2o_f32_to_bf16(float x);

int64_t p2o_gcd(int64_t a, int64_t b);  /* not negative, but for INT64_MIN */

#endif
