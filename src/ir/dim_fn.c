/* Functions of one Dim: a table of rows, each with its value, its bounds and its names.
 *
 * All but bit_length rise or fall with their operand, so their bounds are their values at the
 * operand's bounds.  Those of floats are Python's: the operand becomes a double, the product or
 * the quotient is rounded to one, and that is rounded to an integer.  A factor that is a short
 * binary fraction rounds nothing at sizes below 2^40, nor does a quotient by one reach a whole
 * number that the exact one does not: these are exact, and floordiv where that says it. */
#include <float.h>
#include <math.h>

#include "base/num.h"
#include "ir/dim_node.h"

_Static_assert(FLT_EVAL_METHOD == 0, "doubles are rounded after every operation");

typedef bool FnValue(double factor, int64_t a, int64_t *out);

static bool value_of_isqrt(double factor, int64_t a, int64_t *out)
{
    (void)factor;
    if (a < 0)
        return false;
    uint64_t n = (uint64_t)a, r = (uint64_t)sqrt((double)a);
    while (r * r > n)                           /* rounded up, past 2^52 */
        r--;
    while ((r + 1) * (r + 1) <= n)
        r++;
    *out = (int64_t)r;
    return true;
}

/* As Python's: of the magnitude. */
static bool value_of_bit_length(double factor, int64_t a, int64_t *out)
{
    (void)factor;
    uint64_t left = a < 0 ? 0 - (uint64_t)a : (uint64_t)a;
    for (*out = 0; left; left >>= 1)
        ++*out;
    return true;
}

static bool value_of_pow2(double factor, int64_t a, int64_t *out)
{
    (void)factor;
    if (a < 0 || a > 62)
        return false;
    *out = (int64_t)1 << a;
    return true;
}

static bool whole_value(double x, int64_t *out)
{
    if (!(x >= -0x1p63 && x < 0x1p63))
        return false;
    *out = (int64_t)x;
    return true;
}

/* rint: halves to even, as Python's round. */
#define VALUE_TIMES(name, round)                                                  \
    static bool value_of_##name(double factor, int64_t a, int64_t *out)           \
    {                                                                             \
        return whole_value(round(factor * (double)a), out);                       \
    }                                                                             \
    static bool value_of_##name##_over(double factor, int64_t a, int64_t *out)    \
    {                                                                             \
        return whole_value(round((double)a / factor), out);                       \
    }

VALUE_TIMES(trunc, trunc)
VALUE_TIMES(floor, floor)
VALUE_TIMES(ceil, ceil)
VALUE_TIMES(round, rint)

static const struct {
    const char *name;
    const char *python;         /* up to the operand */
    FnOperand   operand;
    FnValue    *value;
} rows[] = {
    [FN_ISQRT] = { "isqrt", "math.isqrt(", FN_ALONE, value_of_isqrt },
    [FN_BIT_LENGTH] = { "bit_length", "int.bit_length(", FN_ALONE, value_of_bit_length },
    [FN_POW2] = { "pow2", "pow(2, ", FN_ALONE, value_of_pow2 },
    [FN_TRUNC] = { "trunc", "math.trunc(", FN_TIMES, value_of_trunc },
    [FN_FLOOR] = { "floor", "math.floor(", FN_TIMES, value_of_floor },
    [FN_CEIL] = { "ceil", "math.ceil(", FN_TIMES, value_of_ceil },
    [FN_ROUND] = { "round", "round(", FN_TIMES, value_of_round },
    [FN_TRUNC_OVER] = { "trunc", "math.trunc(", FN_OVER, value_of_trunc_over },
    [FN_FLOOR_OVER] = { "floor", "math.floor(", FN_OVER, value_of_floor_over },
    [FN_CEIL_OVER] = { "ceil", "math.ceil(", FN_OVER, value_of_ceil_over },
    [FN_ROUND_OVER] = { "round", "round(", FN_OVER, value_of_round_over },
};

const char *p2o_fn_name(DimFn fn) { return rows[fn].name; }
FnOperand   p2o_fn_operand(DimFn fn) { return rows[fn].operand; }

const char *p2o_dim_fn_python(Str name)
{
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        if (str_is(name, rows[i].name))
            return rows[i].python;
    return NULL;
}

bool p2o_fn_value(DimFn fn, double factor, int64_t a, int64_t *out)
{
    return rows[fn].value(factor, a, out);
}

/* One end of a range: `beyond` where the operand's end is infinite or the value is too large. */
static int64_t end_value(Dim d, int64_t end, int64_t beyond)
{
    int64_t v;
    if (end == NO_LOWER || end == NO_UPPER || !p2o_fn_value(d->fn, d->factor, end, &v))
        return beyond;
    return v;
}

static Range bits_range(Range a)
{
    int64_t low = 0, high = 0;
    value_of_bit_length(0, a.lo, &low);
    value_of_bit_length(0, a.hi, &high);
    if (a.lo >= 0)
        return (Range){ low, high };
    return (Range){ a.hi < 0 ? high : 0, low > high ? low : high };
}

Range p2o_fn_range(Dim d)
{
    Range a = bounds_of(d->operand[0]);
    if (d->fn == FN_BIT_LENGTH)
        return bits_range(a);
    if (rows[d->fn].operand == FN_ALONE) {      /* no values below 0, pow2 none past 62 */
        a.lo = a.lo < 0 ? 0 : a.lo;
        a.hi = a.hi < a.lo ? a.lo : a.hi;
        if (d->fn == FN_POW2)
            a = (Range){ a.lo > 62 ? 62 : a.lo, a.hi > 62 ? 62 : a.hi };
    } else if (d->factor < 0) {
        return (Range){ end_value(d, a.hi, NO_LOWER), end_value(d, a.lo, NO_UPPER) };
    }
    return (Range){ end_value(d, a.lo, NO_LOWER), end_value(d, a.hi, NO_UPPER) };
}

bool p2o_fn_relates(Dim d, bool above, int64_t *offset)
{
    bool shrinks = rows[d->fn].operand == FN_OVER ? d->factor >= 1 : d->factor <= 1;
    bool grows = rows[d->fn].operand == FN_OVER ? d->factor <= 1 : d->factor >= 1;
    *offset = d->fn == FN_POW2;                 /* 2^a >= a + 1 */
    if (d->fn == FN_ISQRT)
        return above;
    if (d->fn == FN_POW2)
        return !above;
    if (bounds_of(d->operand[0]).lo < 0)
        return false;
    if (d->fn == FN_BIT_LENGTH)
        return above;
    return d->factor > 0 && (above ? shrinks : grows);
}

bool p2o_short_fraction(double x, int64_t *num, int64_t *den)
{
    for (int64_t d = 1; d <= 1024; d *= 2, x *= 2) {
        if (!(x > -1e16 && x < 1e16))           /* whole numbers printed without exponent */
            return false;
        if (x == (double)(int64_t)x) {
            *num = (int64_t)x;
            *den = d;
            return true;
        }
    }
    return false;
}

/* What rounds a / den, for a whole den > 0, exactly. */
static Dim rounded_over(Dims *t, DimFn over, Dim a, int64_t den)
{
    int64_t g = den, v;
    for (int i = 0; a && i < a->nterm; i++)
        g = p2o_gcd(g, a->part[i].coef);
    a = p2o_dim_exact_div(t, a, p2o_dim_int(t, g));
    den /= g;
    if (!a || den == 1)
        return a;
    if (p2o_dim_is_int(a, &v))
        return p2o_fn_value(over, (double)den, v, &v) ? p2o_dim_int(t, v) : NULL;
    Range r = bounds_of(a);
    if (over == FN_FLOOR_OVER || (over == FN_TRUNC_OVER && r.lo >= 0))
        return p2o_dim_floordiv(t, a, p2o_dim_int(t, den));
    if (over == FN_CEIL_OVER || (over == FN_TRUNC_OVER && r.hi <= 0))
        return p2o_dim_ceildiv(t, a, p2o_dim_int(t, den));
    return p2o_dim_fn_atom(t, over, (double)den, a);
}

Dim p2o_dim_fn(Dims *t, DimFn fn, double factor, Dim a)
{
    int64_t v, num, den;
    if (!a)
        return NULL;
    if (rows[fn].operand == FN_ALONE)
        factor = 0;
    else if (!isfinite(factor) || (rows[fn].operand == FN_OVER && factor == 0))
        return NULL;
    if (p2o_dim_is_int(a, &v))
        return p2o_fn_value(fn, factor, v, &v) ? p2o_dim_int(t, v) : NULL;
    if (rows[fn].operand == FN_ALONE || !p2o_short_fraction(factor, &num, &den))
        return p2o_dim_fn_atom(t, fn, factor, a);
    if (rows[fn].operand == FN_TIMES) {
        a = p2o_dim_mul(t, a, p2o_dim_int(t, num));
        return rounded_over(t, (DimFn)(fn + FN_TRUNC_OVER - FN_TRUNC), a, den);
    }
    a = p2o_dim_mul(t, a, p2o_dim_int(t, num < 0 ? -den : den));
    return rounded_over(t, fn, a, num < 0 ? -num : num);
}

/* With r = isqrt(a): up is r + 1 unless a is r*r; to the nearest, unless a is at most r*r + r, for
 * (r + 1/2)^2 is no whole number. */
static Dim rounded_sqrt(Dims *t, DimFn how, Dim a)
{
    Dim r = p2o_dim_fn(t, FN_ISQRT, 0, a), one = p2o_dim_int(t, 1);
    if (how == FN_TRUNC || how == FN_FLOOR)
        return r;
    Dim over = p2o_dim_sub(t, a, p2o_dim_mul(t, r, r));
    if (how == FN_ROUND)
        over = p2o_dim_max(t, p2o_dim_sub(t, over, r), p2o_dim_int(t, 0));
    return p2o_dim_add(t, r, p2o_dim_min(t, over, one));
}

/* Below 2^47 no logarithm is rounded to a whole number that is none. */
static Dim rounded_log2(Dims *t, DimFn how, Dim a)
{
    Dim one = p2o_dim_int(t, 1);
    if (how == FN_ROUND || bounds_of(a).lo < 0)
        return NULL;
    if (how == FN_CEIL)
        return p2o_dim_fn(t, FN_BIT_LENGTH, 0, p2o_dim_sub(t, a, one));
    return p2o_dim_sub(t, p2o_dim_fn(t, FN_BIT_LENGTH, 0, a), one);
}

Dim p2o_dim_rounded(Dims *t, DimFn how, DimReal real)
{
    if (!real.a)
        return NULL;
    switch (real.kind) {
    case REAL_TIMES: return p2o_dim_fn(t, how, real.factor, real.a);
    case REAL_OVER:
        return p2o_dim_fn(t, (DimFn)(how + FN_TRUNC_OVER - FN_TRUNC), real.factor, real.a);
    case REAL_SQRT: return rounded_sqrt(t, how, real.a);
    case REAL_LOG2: return rounded_log2(t, how, real.a);
    }
    return NULL;
}

/* Bits i to j - 1 of a are a % 2^j - a % 2^i, whatever its sign. */
Dim p2o_dim_and(Dims *t, Dim a, int64_t mask)
{
    if (mask < 0)
        return p2o_dim_sub(t, a, p2o_dim_and(t, a, ~mask));
    Dim sum = p2o_dim_int(t, 0), below = sum;
    for (int64_t i = 0, left = mask; left; i++, left >>= 1) {
        Dim above = p2o_dim_mod(t, a, p2o_dim_fn(t, FN_POW2, 0, p2o_dim_int(t, i + 1)));
        if (left & 1)
            sum = p2o_dim_add(t, sum, p2o_dim_sub(t, above, below));
        below = above;
    }
    return sum;
}
