/* Arguments are reduced to a range where a polynomial, fitted to the function there with an error
 * below the last place, does the rest.  What is added last is the larger term, so that its rounding
 * is the only one that counts. */
#include "onnx/f64.h"

#include <math.h>

#define HALF_PI     1.57079632679489661923
#define HALF_PI_LOW 6.123233995736766e-17       /* what float64 lacks of it */
#define LOG_2       0.69314718055994530942

static Value *fun(Builder *b, OnnxOp op, Value *x)
{
    return p2o_build(b, op, 0, NULL, 1, (Value *[]){ x });
}

/* Macros, so that nodes made for their arguments come in their order. */
#define fun2(b, op, x, y)      p2o_build(b, op, 0, NULL, 2, (Value *[]){ x, y })
#define add(b, x, y)           fun2(b, ONNX_Add, x, y)
#define sub(b, x, y)           fun2(b, ONNX_Sub, x, y)
#define mul(b, x, y)           fun2(b, ONNX_Mul, x, y)
#define quotient(b, x, y)      fun2(b, ONNX_Div, x, y)
#define either(b, cond, x, y)  p2o_build(b, ONNX_Where, 0, NULL, 3, (Value *[]){ cond, x, y })

static Value *number(Builder *b, double f) { return p2o_build_scalar(b, DT_F64, f); }
static Value *add_num(Builder *b, Value *x, double f) { return add(b, x, number(b, f)); }
static Value *mul_num(Builder *b, Value *x, double f) { return mul(b, x, number(b, f)); }
static Value *sub_from(Builder *b, double f, Value *x) { return sub(b, number(b, f), x); }
static Value *above(Builder *b, Value *x, double f)
{
    return fun2(b, ONNX_Greater, x, number(b, f));
}
static Value *below(Builder *b, Value *x, double f) { return fun2(b, ONNX_Less, x, number(b, f)); }

/* coef[0] * x^(n-1) + ... + coef[n-1] */
static Value *horner(Builder *b, Value *x, const double *coef, size_t n)
{
    Value *y = number(b, coef[0]);
    for (size_t i = 1; i < n; i++)
        y = add_num(b, mul(b, y, x), coef[i]);
    return y;
}

/* x + x z p(z) */
static Value *near_itself(Builder *b, Value *x, Value *z, const double *coef, size_t n)
{
    Value *p = mul(b, z, horner(b, z, coef, n));
    return add(b, x, mul(b, x, p));
}

/* An odd function from its values for |x|. */
static Value *odd(Builder *b, Value *x, Value *y)
{
    return either(b, below(b, x, 0), fun(b, ONNX_Neg, y), y);
}

/* atan(a) = pi/2 - atan(1/a) above 1; atan(z) = pi/4 + atan((z - 1) / (z + 1)) above tan(pi/8) */
static Value *f64_atan(Builder *b, Value *x)
{
    static const double coef[] = {
        -0.01917627151743336, 0.039231155619788405, -0.05085432337695831, 0.05858145587627499,
        -0.06664511064599278, 0.07692183163650886, -0.09090904576954116, 0.11111111015227572,
        -0.14285714284666184, 0.19999999999995519, -0.3333333333333333,
    };
    Value *a = fun(b, ONNX_Abs, x), *large = above(b, a, 1);
    Value *z = either(b, large, fun(b, ONNX_Reciprocal, a), a),
          *mid = above(b, z, 0.41421356237309504880);
    Value *low = add_num(b, z, -1);
    Value *w = either(b, mid, quotient(b, low, add_num(b, z, 1)), z);
    Value *y = near_itself(b, w, mul(b, w, w), coef, COUNT_OF(coef));
    Value *upper = add_num(b, add_num(b, y, HALF_PI_LOW / 2), HALF_PI / 2);
    y = either(b, mid, upper, y);
    upper = sub_from(b, HALF_PI, add_num(b, y, -HALF_PI_LOW));
    return odd(b, x, either(b, large, upper, y));
}

/* asin(a) up to 1/2, above that asin(sqrt((1 - a) / 2)), which is pi/4 - asin(a)/2 = acos(a)/2. */
static Value *reduced_asin(Builder *b, Value *a, Value *large)
{
    static const double coef[] = {
        0.028778442612773937, -0.014881409393100096, 0.017419357965078285, 0.005450878187643825,
        0.010324318288763578, 0.011478952690254089, 0.013971235301124917, 0.0173523912659092,
        0.0223721730020056, 0.030381944137085216, 0.04464285714637338, 0.07499999999998425,
        0.16666666666666669,
    };
    Value *half = mul_num(b, sub_from(b, 1, a), 0.5);
    Value *w = either(b, large, fun(b, ONNX_Sqrt, half), a);
    return near_itself(b, w, either(b, large, half, mul(b, a, a)), coef, COUNT_OF(coef));
}

static Value *f64_asin(Builder *b, Value *x)
{
    Value *a = fun(b, ONNX_Abs, x), *large = above(b, a, 0.5), *y = reduced_asin(b, a, large);
    Value *upper = sub_from(b, HALF_PI, add_num(b, add(b, y, y), -HALF_PI_LOW));
    return odd(b, x, either(b, large, upper, y));
}

static Value *f64_acos(Builder *b, Value *x)
{
    Value *a = fun(b, ONNX_Abs, x), *large = above(b, a, 0.5), *y = reduced_asin(b, a, large);
    Value *twice = add(b, y, y), *negative = below(b, x, 0);
    Value *rest = sub_from(b, 2 * HALF_PI, add_num(b, twice, -2 * HALF_PI_LOW));
    Value *mid = sub_from(b, HALF_PI, add_num(b, odd(b, x, y), -HALF_PI_LOW));
    return either(b, large, either(b, negative, rest, twice), mid);
}

static Value *f64_tan(Builder *b, Value *x)
{
    Value *sine = fun(b, ONNX_Sin, x);
    return quotient(b, sine, fun(b, ONNX_Cos, x));
}

/* w^2 / 2 and 1 / (2 w^2) for w = exp(a / 2): exp(a) overflows before its half does. */
static void half_exps(Builder *b, Value *a, Value **up, Value **down)
{
    Value *w = fun(b, ONNX_Exp, mul_num(b, a, 0.5));
    *up = mul(b, mul_num(b, w, 0.5), w);
    *down = quotient(b, quotient(b, number(b, 0.5), w), w);
}

static Value *f64_cosh(Builder *b, Value *x)
{
    Value *up, *down;
    half_exps(b, fun(b, ONNX_Abs, x), &up, &down);
    return add(b, up, down);
}

static Value *f64_sinh(Builder *b, Value *x)
{
    static const double series[] = {
        8.22063524662433e-18, 2.8114572543455206e-15, 7.647163731819816e-13, 1.6059043836821613e-10,
        2.505210838544172e-08, 2.7557319223985893e-06, 0.0001984126984126984, 0.008333333333333333,
        0.16666666666666666,
    };
    Value *a = fun(b, ONNX_Abs, x), *up, *down;
    half_exps(b, a, &up, &down);
    Value *small = near_itself(b, x, mul(b, x, x), series, COUNT_OF(series));
    return either(b, below(b, a, 1), small, odd(b, x, sub(b, up, down)));
}

/* log(u) for u = 1 + x as it is rounded, plus what the rounding lost. */
static Value *f64_log1p(Builder *b, Value *x)
{
    Value *u = add_num(b, x, 1), *y = fun(b, ONNX_Log, u);
    Value *lost = quotient(b, sub(b, add_num(b, u, -1), x), u);
    return either(b, below(b, fun(b, ONNX_Abs, x), 0.5), sub(b, y, lost), y);
}

/* log1p(y), or where x is too large for y to be exact, log(2 x). */
static Value *log1p_or_far(Builder *b, Value *y, Value *x)
{
    Value *far = add_num(b, fun(b, ONNX_Log, x), LOG_2);
    return either(b, above(b, x, 0x1p28), far, f64_log1p(b, y));
}

static Value *f64_asinh(Builder *b, Value *x)
{
    Value *a = fun(b, ONNX_Abs, x), *z = mul(b, a, a);
    Value *root = add_num(b, fun(b, ONNX_Sqrt, add_num(b, z, 1)), 1);
    return odd(b, x, log1p_or_far(b, add(b, a, quotient(b, z, root)), a));
}

static Value *f64_acosh(Builder *b, Value *x)
{
    Value *t = add_num(b, x, -1), *root = fun(b, ONNX_Sqrt, mul(b, t, add_num(b, t, 2)));
    Value *y = log1p_or_far(b, add(b, t, root), x);
    return either(b, below(b, x, 1), number(b, NAN), y);
}

static Value *f64_atanh(Builder *b, Value *x)
{
    Value *a = fun(b, ONNX_Abs, x), *twice = add(b, a, a), *rest = sub_from(b, 1, a);
    Value *small = add(b, twice, quotient(b, mul(b, twice, a), rest));
    Value *y = either(b, below(b, a, 0.5), small, quotient(b, twice, rest));
    return odd(b, x, mul_num(b, f64_log1p(b, y), 0.5));
}

/* (1 + 2 a) erfcx(a) is a polynomial in y = (a - 3.5) / (a + 3.5), which maps [0, inf] to [-1,
 * 1]. */
Value *p2o_f64_erfcx(Builder *b, Value *a)
{
    static const double coef[] = {
        -9.949792055566233e-11, -1.163632784229848e-09,  6.575613605153602e-10,
        1.3612713967669728e-08, -9.028420857168798e-10,  -9.637104412674923e-08,
        -6.24625341844242e-09,  6.014404247191037e-07,   -4.5355091769274466e-08,
        -3.813974950544471e-06, 2.3287606647365007e-06,  2.4260278973350597e-05,
        -4.27823425897724e-05,  -0.00012151211247871033, 0.0005643844340807305,
        -0.0003022679555127862, -0.004215019909185659,   0.019099330953584254,
        -0.048823325827831644,  0.08798315382401058,     -0.11508959816019441,
        0.09751909515328808,    -0.010555596332218233,   -0.1400091801376197,
        1.2423492448711544,
    };
    Value *y = sub_from(b, 1, quotient(b, number(b, 7), add_num(b, a, 3.5)));
    y = horner(b, y, coef, COUNT_OF(coef));
    return quotient(b, y, add_num(b, add(b, a, a), 1));
}

static Value *f64_erf(Builder *b, Value *x)
{
    static const double coef[] = {
        /* erf(x) / x - 1, in x^2 */
        -7.795898827002106e-10, 1.3720064546777665e-08, -1.62084838018717e-07,
        1.6447424703317362e-06, -1.492473690741966e-05, 0.00012055294904839707,
        -0.0008548325975389692, 0.0052239776071164225,  -0.02686617064323777,
        0.11283791670945006,    -0.37612638903183543,   0.12837916709551256,
    };
    Value *z = mul(b, x, x), *a = fun(b, ONNX_Abs, x);
    Value *small = add(b, x, mul(b, x, horner(b, z, coef, COUNT_OF(coef))));
    Value *tail = mul(b, fun(b, ONNX_Exp, fun(b, ONNX_Neg, z)), p2o_f64_erfcx(b, a));
    return either(b, below(b, a, 1), small, odd(b, x, sub_from(b, 1, tail)));
}

Value *p2o_f64_build(Builder *b, const Node *n)
{
    Value *x = n->nin ? n->in[0] : NULL;
    if (!x || x->dtype != DT_F64)
        return NULL;
    switch (n->op) {
    case ONNX_Acos:  return f64_acos(b, x);
    case ONNX_Acosh: return f64_acosh(b, x);
    case ONNX_Asin:  return f64_asin(b, x);
    case ONNX_Asinh: return f64_asinh(b, x);
    case ONNX_Atan:  return f64_atan(b, x);
    case ONNX_Atanh: return f64_atanh(b, x);
    case ONNX_Cosh:  return f64_cosh(b, x);
    case ONNX_Erf:   return f64_erf(b, x);
    case ONNX_Sinh:  return f64_sinh(b, x);
    case ONNX_Tan:   return f64_tan(b, x);
    default:         return NULL;
    }
}
