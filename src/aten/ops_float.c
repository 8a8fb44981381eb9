/* Floating-point numbers taken apart: mantissa and exponent, the neighbouring number.
 *
 * ONNX sees no bits.  Both are exact all the same, in float64: the exponent is estimated by a
 * logarithm, the power of two divided out and the estimate put right by one where the mantissa
 * tells. */
#include "aten/lower.h"

#include <math.h>

#define NUM(f) num(lo, DT_F64, f)

/* 2^k for whole k of float64, in two factors: one of them alone may overflow where x 2^k does
 * not. */
static Value *times_power(Lower *lo, Value *x, Value *k)
{
    Value *half = emit(lo, ONNX_Floor, times_num(lo, k, 0.5)), *rest = emit(lo, ONNX_Sub, k, half);
    x = emit(lo, ONNX_Mul, x, emit(lo, ONNX_Pow, NUM(2), half));
    return emit(lo, ONNX_Mul, x, emit(lo, ONNX_Pow, NUM(2), rest));
}

typedef struct Parts {
    Value *mantissa, *exponent;         /* of float64; 0.5 <= |mantissa| < 1 */
    Value *plain;                       /* finite and not 0; else the parts are those of 1 */
} Parts;

static Parts parts_of(Lower *lo, Value *x)
{
    Parts  p;
    Value *a = emit(lo, ONNX_Abs, x);
    p.plain = emit(lo, ONNX_And, emit(lo, ONNX_Greater, a, NUM(0)),
                   emit(lo, ONNX_Less, a, NUM((double)INFINITY)));
    x = choose(lo, p.plain, x, NUM(1));
    a = choose(lo, p.plain, a, NUM(1));
    /* Logarithms of subnormals are not trusted. */
    Value *tiny = emit(lo, ONNX_Less, a, NUM(0x1p-1000));
    x = emit(lo, ONNX_Mul, x, choose(lo, tiny, NUM(0x1p100), NUM(1)));
    a = emit(lo, ONNX_Abs, x);
    Value *e = emit(lo, ONNX_Floor, times_num(lo, emit(lo, ONNX_Log, a), 1.44269504088896340736));
    Value *m = times_power(lo, x, emit(lo, ONNX_Neg, e)), *size = emit(lo, ONNX_Abs, m);
    Value *high = emit(lo, ONNX_GreaterOrEqual, size, NUM(1)),
          *low = emit(lo, ONNX_Less, size, NUM(0.5));
    Value *two = emit(lo, ONNX_GreaterOrEqual, size, NUM(2));
    m = emit(
        lo, ONNX_Mul, m,
        choose(lo, two, NUM(0.25), choose(lo, high, NUM(0.5), choose(lo, low, NUM(2), NUM(1)))));
    e = emit(lo, ONNX_Add, e,
             choose(lo, two, NUM(2), choose(lo, high, NUM(1), choose(lo, low, NUM(-1), NUM(0)))));
    p.mantissa = m;
    p.exponent = emit(lo, ONNX_Sub, e, choose(lo, tiny, NUM(100), NUM(0)));
    return p;
}

static void shape_frexp(Infer *in, const Call *c)
{
    Type x = type_arg(c, "self");
    if (!is_float(x.dtype)) {
        rule_fail(in, "%s", p2o_dtype_torch(x.dtype));
        return;
    }
    set_out(in, c, 0, x.dtype, x.shape);
    set_out(in, c, 1, DT_I32, x.shape);
}

static void lower_frexp(Lower *lo, const Call *c, Value **out)
{
    Value *x = tensor_as(lo, c, "self", DT_F64);
    Parts  p = parts_of(lo, x);
    out[0] = cast(lo, choose(lo, p.plain, p.mantissa, x), out_dtype(c, 0));
    out[1] = cast(lo, choose(lo, p.plain, p.exponent, NUM(0)), DT_I32);
}

/* How many bits a mantissa has and which power of two the least number is. */
static void resolution_of(DType t, double *bits, double *least, double *most)
{
    *bits = t == DT_F64 ? 53 : t == DT_F32 ? 24 : t == DT_BF16 ? 8 : 11;
    *least = t == DT_F64 ? -1074 : t == DT_F32 ? -149 : t == DT_BF16 ? -133 : -24;
    *most = t == DT_F64    ? 0x1.fffffffffffffp1023
            : t == DT_F32  ? 0x1.fffffep127
            : t == DT_BF16 ? 0x1.fep127
                           : 65504;
}

static void shape_nextafter(Infer *in, const Call *c)
{
    p2o_rule_binary(in, c);
    if (!is_float(PROMOTE(c, "self", "other")))
        rule_fail(in, "%s", p2o_dtype_torch(PROMOTE(c, "self", "other")));
}

/* x and one unit of its last place up or down, towards y.  Below a power of two the unit is half as
 * large. */
static Value *lower_nextafter(Lower *lo, const Call *c)
{
    DType  t = out_dtype(c, 0);
    double bits, least, most;
    Value *x = cast(lo, tensor_as(lo, c, "self", t), DT_F64),
          *y = cast(lo, tensor_as(lo, c, "other", t), DT_F64);
    Value *zero = NUM(0), *up = emit(lo, ONNX_Greater, y, x);
    Parts  p = parts_of(lo, x);
    resolution_of(t, &bits, &least, &most);
    Value *inward = emit(lo, ONNX_Equal, up, emit(lo, ONNX_Less, x, zero));
    Value *power = emit(lo, ONNX_Equal, emit(lo, ONNX_Abs, p.mantissa), NUM(0.5));
    Value *half = emit(lo, ONNX_And, inward, power);
    Value *k = emit(lo, ONNX_Add, p.exponent, choose(lo, half, NUM(-bits - 1), NUM(-bits)));
    k = choose(lo, emit(lo, ONNX_Equal, x, zero), NUM(least), emit(lo, ONNX_Max, k, NUM(least)));
    Value *unit = times_power(lo, choose(lo, up, NUM(1), NUM(-1)), k);
    Value *next = emit(lo, ONNX_Add, x, unit);
    Value *limit = times_num(lo, emit(lo, ONNX_Sign, x), most);
    next = choose(lo, emit(lo, ONNX_IsInf, x), limit, next);
    next = choose(lo, emit(lo, ONNX_Equal, x, y), y, next);
    Value *numbers = emit(lo, ONNX_And, emit(lo, ONNX_Equal, x, x), emit(lo, ONNX_Equal, y, y));
    return cast(lo, choose(lo, numbers, next, NUM(NAN)), t);
}

const AtenOp p2o_ops_float[] = {
    { "frexp.Tensor(Tensor self) -> (Tensor mantissa, Tensor exponent)", shape_frexp,
      .lower_many = lower_frexp },
    { "nextafter(Tensor self, Tensor other) -> Tensor", shape_nextafter, .lower = lower_nextafter },
    { 0 },
};
