/* The incomplete gamma functions and Hurwitz's zeta, in float64 whatever the result's type.
 *
 * With Q = 1 - P: P(a, x) by its power series below a + 1, Q by a continued fraction above, each in
 * a Loop until no element changes any more; their length grows with the square root of a, so that
 * from 1000 on an expansion that is uniform in x (DLMF 8.12) takes over.  Zeta is the sum of its
 * first terms and Euler and Maclaurin's series for the rest. */
#include "aten/lower.h"
#include "onnx/f64.h"

#include <math.h>

#define LOG_2PI 1.83787706640934548356
#define LARGE   1000                    /* a from here on */
#define NUM(f)  num(lo, DT_F64, f)

#define sum_of(lo, x, y)     emit(lo, ONNX_Add, x, y)
#define difference(lo, x, y) emit(lo, ONNX_Sub, x, y)
#define times(lo, x, y)      emit(lo, ONNX_Mul, x, y)
#define divided(lo, x, y)    emit(lo, ONNX_Div, x, y)

static Value *one_minus(Lower *lo, Value *x) { return emit(lo, ONNX_Sub, NUM(1), x); }

/* log(gamma(a + 1)) = (a + 1/2) log(a) - a + log(2 pi) / 2 + this, for a >= 10 */
static Value *stirling_rest(Lower *lo, Value *a)
{
    static const double coef[] = {
        0.00641025641025641, -0.0019175269175269176, 0.0008417508417508417, -0.0005952380952380953,
        0.0007936507936507937, -0.002777777777777778, 0.08333333333333333,
    };
    Value *q = emit(lo, ONNX_Reciprocal, a);
    return times(lo, q, polynomial(lo, times(lo, q, q), coef, COUNT_OF(coef)));
}

/* a (x / a - 1 - log(x / a)), which is 0 at x = a and grows to both sides. */
static Value *distance_from_a(Lower *lo, Value *a, Value *x)
{
    Value *mu = divided(lo, difference(lo, x, a), a);
    return times(lo, a, difference(lo, mu, log1p_of(lo, mu)));
}

/* log(x^a exp(-x) / gamma(a + 1)); below 10 by log(gamma(a + 11)) less the logarithms in
 * between. */
static Value *log_factor(Lower *lo, Value *a, Value *x)
{
    Value *high =
        difference(lo, emit(lo, ONNX_Neg, distance_from_a(lo, a, x)), stirling_rest(lo, a));
    high = difference(lo, high, times_num(lo, plus_num(lo, emit(lo, ONNX_Log, a), LOG_2PI), 0.5));
    Value *z = plus_num(lo, a, 10), *between = plus_num(lo, a, 1);
    for (int i = 2; i <= 10; i++)
        between = times(lo, between, plus_num(lo, a, i));
    Value *gamma = times(lo, plus_num(lo, z, 0.5), emit(lo, ONNX_Log, z));
    gamma = plus_num(lo, sum_of(lo, difference(lo, gamma, z), stirling_rest(lo, z)), LOG_2PI / 2);
    gamma = difference(lo, gamma, emit(lo, ONNX_Log, between));
    Value *low = difference(lo, difference(lo, times(lo, a, emit(lo, ONNX_Log, x)), x), gamma);
    return choose(lo, emit(lo, ONNX_Less, a, NUM(10)), low, high);
}

/* 1 + x / (a + 1) + x^2 / ((a + 1) (a + 2)) + ... */
static Value *power_series(Lower *lo, Value *a, Value *x)
{
    Value *one = full(lo, a->shape, DT_F64, 1), *out[2];
    Rounds r = open_rounds(lo, "series");
    Value *term = round_state(&r, one), *sum = round_state(&r, one);
    Value *k = plus_num(lo, cast(lo, r.round, DT_F64), 1);
    Value *next = times(lo, term, divided(lo, x, sum_of(lo, a, k))), *total = sum_of(lo, sum, next);
    Value *more = any_true(lo, emit(lo, ONNX_Greater, next, times_num(lo, total, 1e-17)));
    close_rounds(lo, &r, NULL, NULL, more, (Value *[]){ next, total }, out);
    return out[1];
}

/* 1 / (x + 1 - a - 1 (1 - a) / (x + 3 - a - 2 (2 - a) / (x + 5 - a - ...))), after Lentz. */
static Value *continued_fraction(Lower *lo, Value *a, Value *x)
{
    Value *b0 = plus_num(lo, difference(lo, x, a), 1), *d0 = emit(lo, ONNX_Reciprocal, b0), *out[3];
    Value *c0 = full(lo, a->shape, DT_F64, 1e300);
    Rounds r = open_rounds(lo, "fraction");
    Value *c = round_state(&r, c0), *d = round_state(&r, d0), *h = round_state(&r, d0);
    Value *k = plus_num(lo, cast(lo, r.round, DT_F64), 1);
    Value *top = times(lo, k, difference(lo, a, k)), *b = sum_of(lo, b0, sum_of(lo, k, k));
    d = emit(lo, ONNX_Reciprocal, sum_of(lo, times(lo, top, d), b));
    c = sum_of(lo, b, divided(lo, top, c));
    Value *ratio = times(lo, c, d);
    Value *off = emit(lo, ONNX_Abs, plus_num(lo, ratio, -1));
    Value *more = any_true(lo, emit(lo, ONNX_Greater, off, NUM(4e-16)));
    close_rounds(lo, &r, NULL, NULL, more, (Value *[]){ c, d, times(lo, h, ratio) }, out);
    return out[2];
}

/* Of the smaller of P and Q, for large a: with n^2 / 2 = x / a - 1 - log(x / a), n < 0 below a, it
 * is exp(-a n^2 / 2) (erfcx(|n| sqrt(a / 2)) / 2 +- (c0(n) + c1(n) / a + ...) / sqrt(2 pi a)). */
static Value *uniform_expansion(Lower *lo, Value *a, Value *x, Value *below)
{
    static const double c0[] = {
        -1.392388722418162e-13,  3.371763262400985e-13,  1.1004392031956135e-13,
        -5.0276692801141755e-12, 2.4361948020667415e-11, -5.830772132550426e-11,
        -2.5514193994946248e-11, 9.14769958223679e-10,   -4.382036018453353e-09,
        1.0261809784240309e-08,  6.707853543401498e-09,  -1.7665952736826078e-07,
        8.296711340953087e-07,   -1.85406221071516e-06,  -2.185448510679992e-06,
        3.919263178522438e-05,   -0.0001787551440329218, 0.0003527336860670194,
        0.0011574074074074073,   -0.014814814814814815,  0.08333333333333333,
        -0.3333333333333333,
    };
    static const double c1[] = {
        4.162792991842583e-10,   -1.0091543710600413e-09, -1.7543241719747647e-11,
        1.1951628599778148e-08,  -5.752545603517705e-08,  1.378633446915721e-07,
        4.647127802807434e-09,   -1.6120900894563446e-06, 7.64916091608111e-06,
        -1.8098550334489977e-05, -4.018775720164609e-07,  0.00020576131687242798,
        -0.0009902263374485596,  0.0026455026455026454,   -0.003472222222222222,
        -0.001851851851851852,
    };
    static const double c2[] = {
        -2.0477098421990866e-10, 1.4280614206064242e-07, -6.298992138380055e-07,
        1.3721957309062934e-06,  3.423578734096138e-08,  -1.2760635188618728e-05,
        5.2923448829120125e-05,  -0.0001073665322636516, 2.0093878600823047e-06,
        0.0007716049382716049,   -0.0026813271604938273, 0.004133597883597883,
    };
    static const double c3[] = {
        -5.6749528269915965e-06, 1.1082654115347302e-05, -2.396505113867297e-07,
        -7.561801671883977e-05,  0.00026772063206283885, -0.0004691894943952557,
        0.00022947209362139917,  0.0006494341563786008,
    };
    Value *far = emit(lo, ONNX_Max, distance_from_a(lo, a, x), NUM(0)),
          *q = emit(lo, ONNX_Reciprocal, a);
    Value *n =
        emit(lo, ONNX_Min, emit(lo, ONNX_Sqrt, times_num(lo, times(lo, far, q), 2)), NUM(1.3));
    n = choose(lo, below, emit(lo, ONNX_Neg, n), n);
    Value *c = polynomial(lo, n, c3, COUNT_OF(c3));
    c = sum_of(lo, times(lo, c, q), polynomial(lo, n, c2, COUNT_OF(c2)));
    c = sum_of(lo, times(lo, c, q), polynomial(lo, n, c1, COUNT_OF(c1)));
    c = sum_of(lo, times(lo, c, q), polynomial(lo, n, c0, COUNT_OF(c0)));
    c = times(lo, c, emit(lo, ONNX_Sqrt, times_num(lo, q, exp(-LOG_2PI))));
    c = choose(lo, below, emit(lo, ONNX_Neg, c), c);
    Value *tail = times_num(lo, p2o_f64_erfcx(lo->b, emit(lo, ONNX_Sqrt, far)), 0.5);
    return times(lo, emit(lo, ONNX_Exp, emit(lo, ONNX_Neg, far)), sum_of(lo, tail, c));
}

/* P, or Q when upper, of 0 < a, x < inf; what is outside stands for 1 on the way. */
static Value *incomplete_gamma(Lower *lo, const Call *c, bool upper)
{
    Shape  s = out_shape(c, 0);
    Value *zero = NUM(0), *one = NUM(1), *infinite = NUM((double)INFINITY), *nan = NUM(NAN);
    Value *a0 = expand(lo, tensor_as(lo, c, "self", DT_F64), s),
          *x0 = expand(lo, tensor_as(lo, c, "other", DT_F64), s);
    Value *inside = emit(lo, ONNX_And, emit(lo, ONNX_Greater, emit(lo, ONNX_Min, a0, x0), zero),
                         emit(lo, ONNX_Less, emit(lo, ONNX_Max, a0, x0), infinite));
    Value *a = choose(lo, inside, a0, one), *x = choose(lo, inside, x0, one);
    Value *large = emit(lo, ONNX_GreaterOrEqual, a, NUM(LARGE)), *below = emit(lo, ONNX_Less, x, a);
    Value *uniform = uniform_expansion(lo, a, x, below);
    a = choose(lo, large, one, a);
    x = choose(lo, large, one, x);
    Value *by_series = emit(lo, ONNX_Less, x, plus_num(lo, a, 1));
    Value *factor = emit(lo, ONNX_Exp, log_factor(lo, a, x));
    Value *low = times(lo, factor, power_series(lo, a, choose(lo, by_series, x, zero)));
    Value *above = choose(lo, by_series, plus_num(lo, a, 50), x);
    Value *high = times(lo, times(lo, factor, a), continued_fraction(lo, a, above));
    Value *is_lower = choose(lo, large, below, by_series);
    Value *y = choose(lo, large, uniform, choose(lo, by_series, low, high));
    y = choose(lo, upper ? is_lower : emit(lo, ONNX_Not, is_lower), one_minus(lo, y), y);
    /* Where x is 0; infinite. */
    Value *at_least = upper ? one : zero, *at_most = upper ? zero : one;
    Value *a_infinite = emit(lo, ONNX_Equal, a0, infinite),
          *x_infinite = emit(lo, ONNX_Equal, x0, infinite);
    y = choose(lo, x_infinite, at_most, choose(lo, inside, y, nan));
    y = choose(lo, a_infinite, choose(lo, x_infinite, nan, at_least), y);
    y = choose(lo, emit(lo, ONNX_Equal, x0, zero), at_least, y);
    Value *positive = emit(lo, ONNX_Greater, x0, zero);
    y = choose(lo, emit(lo, ONNX_Equal, a0, zero), choose(lo, positive, at_most, nan), y);
    Value *undefined =
        emit(lo, ONNX_Or, emit(lo, ONNX_Less, a0, zero), emit(lo, ONNX_Less, x0, zero));
    return cast(lo, choose(lo, undefined, nan, y), out_dtype(c, 0));
}

static Value *lower_igamma(Lower *lo, const Call *c) { return incomplete_gamma(lo, c, false); }
static Value *lower_igammac(Lower *lo, const Call *c) { return incomplete_gamma(lo, c, true); }

/* The sum of (q + k)^-s over k >= 0, for q > 0: ten terms and the series for the rest, left out
 * where the last of the ten does not count any more. */
static Value *zeta_positive(Lower *lo, Value *s, Value *q)
{
    static const double coef[] = {
        /* B(2j) / (2j)! */
        0.08333333333333333,    -0.001388888888888889,   3.306878306878307e-05,
        -8.267195767195768e-07, 2.08767569878681e-08,    -5.284190138687493e-10,
        1.3382536530684679e-11, -3.3896802963225827e-13, 8.586062056277845e-15,
        -2.174868698558062e-16, 5.5090028283602295e-18,  -1.3954464685812522e-19,
    };
    Value *power = emit(lo, ONNX_Neg, s), *last = emit(lo, ONNX_Pow, q, power), *sum = last;
    for (int i = 1; i < 10; i++) {
        last = emit(lo, ONNX_Pow, plus_num(lo, q, i), power);
        sum = sum_of(lo, sum, last);
    }
    Value *w = plus_num(lo, q, 9), *r = emit(lo, ONNX_Reciprocal, w);
    Value *rest = plus_num(lo, divided(lo, w, plus_num(lo, s, -1)), -0.5),
          *factor = times(lo, s, r);
    for (int i = 0; i < (int)COUNT_OF(coef); i++) {
        rest = sum_of(lo, rest, times_num(lo, factor, coef[i]));
        factor = times(lo, factor, times(lo, plus_num(lo, s, 2 * i + 1), r));
        factor = times(lo, factor, times(lo, plus_num(lo, s, 2 * i + 2), r));
    }
    Value *counts = emit(lo, ONNX_Greater, last, times_num(lo, sum, 0x1p-53));
    return choose(lo, counts, sum_of(lo, sum, times(lo, last, rest)), sum);
}

/* For q < 0 not whole and s whole: with r the fraction of -q, the terms below 0 are those of r up
 * to -q, those above begin at 1 - r. */
static Value *zeta_negative(Lower *lo, Value *s, Value *q)
{
    Value *a = emit(lo, ONNX_Neg, q), *r = difference(lo, a, emit(lo, ONNX_Floor, a));
    Value *above = zeta_positive(lo, s, one_minus(lo, r));
    Value *under = zeta_positive(lo, s, r), *beyond = zeta_positive(lo, s, plus_num(lo, a, 1));
    Value *half = times_num(lo, s, 0.5);
    Value *even = emit(lo, ONNX_Equal, half, emit(lo, ONNX_Floor, half));
    Value *sum = difference(lo, sum_of(lo, above, under), beyond);
    return choose(lo, even, sum, sum_of(lo, difference(lo, above, under), beyond));
}

static Value *lower_zeta(Lower *lo, const Call *c)
{
    Value *s = tensor_as(lo, c, "self", DT_F64), *q = tensor_as(lo, c, "other", DT_F64);
    Value *one = NUM(1), *nan = NUM(NAN), *infinite = NUM((double)INFINITY), *zero = NUM(0);
    Value *below = emit(lo, ONNX_LessOrEqual, q, zero);
    Value *y = zeta_positive(lo, s, choose(lo, below, one, q));
    Value *negative = zeta_negative(lo, s, choose(lo, below, q, NUM(-0.5)));
    Value *whole_s = emit(lo, ONNX_Equal, s, emit(lo, ONNX_Floor, s));
    negative = choose(lo, whole_s, negative, nan);
    Value *whole_q = emit(lo, ONNX_Equal, q, emit(lo, ONNX_Floor, q));
    y = choose(lo, below, choose(lo, whole_q, infinite, negative), y);
    y = choose(lo, emit(lo, ONNX_Less, s, one), nan, y);
    return cast(lo, choose(lo, emit(lo, ONNX_Equal, s, one), infinite, y), out_dtype(c, 0));
}

#define ROW_GAMMA(name, fn)                                                                        \
    {                                                                                              \
        name "(Tensor self, Tensor other) -> Tensor", p2o_rule_binary_float, .lower = fn           \
    }

const AtenOp p2o_ops_gamma[] = {
    ROW_GAMMA("igamma", lower_igamma),
    ROW_GAMMA("special_gammainc", lower_igamma),
    ROW_GAMMA("igammac", lower_igammac),
    ROW_GAMMA("special_gammaincc", lower_igammac),
    ROW_GAMMA("special_zeta", lower_zeta),
    { "special_zeta.other_scalar(Tensor self, Scalar other) -> Tensor", p2o_rule_binary_float,
      .lower = lower_zeta },
    { "special_zeta.self_scalar(Scalar self, Tensor other) -> Tensor", p2o_rule_binary_float,
      .lower = lower_zeta },
    { 0 },
};
