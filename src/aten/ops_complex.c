/* How operators act on complex tensors.
 *
 * ONNX Runtime has no complex numbers: a complex tensor is a pair of real Values, joined along a
 * last axis of 2 only where a model begins and ends.  What moves, adds or sums elements does so
 * with each part; products are four real ones; the rest is written out here.  An operator that is
 * not in the table refuses complex tensors. */
#include "aten/lower.h"

static void shape_parts(Infer *in, const Call *c)
{
    Type x = p2o_arg_type(&c->args[0]);
    set_out(in, c, 0, part_of(x.dtype), x.shape);
}

static void put_complex(Lower *lo, const Call *c, Complex z, Value **out)
{
    out[0] = cast(lo, z.re, out_dtype(c, 0));
    out[1] = cast(lo, z.im, out_dtype(c, 0));
}

static Complex self_parts(Lower *lo, const Call *c)
{
    return complex_arg(lo, c, c->schema->args[0].name);
}

static Value *squared(Lower *lo, Value *x) { return emit(lo, ONNX_Mul, x, x); }

static Value *squared_size(Lower *lo, Complex z)
{
    return emit(lo, ONNX_Add, squared(lo, z.re), squared(lo, z.im));
}

/* Squares of float32 are safe in float64; there is nothing wider than that. */
static Complex widened(Lower *lo, Complex z)
{
    return (Complex){ cast(lo, z.re, DT_F64), z.im ? cast(lo, z.im, DT_F64) : NULL };
}

static Value *size_of(Lower *lo, Complex z)
{
    if (z.re->dtype == DT_F64)
        return hypot_of(lo, z.re, z.im);
    return cast(lo, emit(lo, ONNX_Sqrt, squared_size(lo, widened(lo, z))), z.re->dtype);
}

static Complex times(Lower *lo, Complex a, Complex b)
{
    if (!b.im)
        return (Complex){ emit(lo, ONNX_Mul, a.re, b.re), emit(lo, ONNX_Mul, a.im, b.re) };
    if (!a.im)
        return times(lo, b, a);
    return (Complex){
        emit(lo, ONNX_Sub, emit(lo, ONNX_Mul, a.re, b.re), emit(lo, ONNX_Mul, a.im, b.im)),
        emit(lo, ONNX_Add, emit(lo, ONNX_Mul, a.re, b.im), emit(lo, ONNX_Mul, a.im, b.re)),
    };
}

static Complex over_real(Lower *lo, Complex a, Value *real)
{
    return (Complex){ emit(lo, ONNX_Div, a.re, real), emit(lo, ONNX_Div, a.im, real) };
}

static Complex conjugate(Lower *lo, Complex z)
{
    return (Complex){ z.re, emit(lo, ONNX_Neg, z.im) };
}

/* a / b = a conj(b) / |b|^2 */
static Complex quotient(Lower *lo, Complex a, Complex b)
{
    if (!a.im)
        return (Complex){ emit(lo, ONNX_Div, emit(lo, ONNX_Mul, a.re, b.re), squared_size(lo, b)),
                          emit(lo, ONNX_Neg,
                               emit(lo, ONNX_Div, emit(lo, ONNX_Mul, a.re, b.im),
                                    squared_size(lo, b))) };
    return over_real(lo, times(lo, a, conjugate(lo, b)), squared_size(lo, b));
}

/* One part of a sum; a real operand has none, but its shape may be the larger. */
static Value *sum_part(Lower *lo, const Call *c, OnnxOp op, Value *a, Value *b)
{
    if (a && b)
        return emit(lo, op, a, b);
    Value *y = a ? a : op == ONNX_Sub ? emit(lo, ONNX_Neg, b) : b;
    return expand(lo, y, out_shape(c, 0));
}

static void complex_sum(Lower *lo, const Call *c, OnnxOp op, Complex a, Complex b, Value **out)
{
    out[0] = emit(lo, op, a.re, b.re);
    out[1] = sum_part(lo, c, op, a.im, b.im);
}

static Complex scaled_by(Lower *lo, const Call *c, const char *name, DType t)
{
    double  f;
    Complex z = complex_as(lo, c, name, t);
    if (p2o_number_is_const(p2o_call_arg(c, "alpha"), &f) && f == 1)
        return z;
    Complex alpha = complex_as(lo, c, "alpha", t);
    if (!z.im && !alpha.im)
        return (Complex){ emit(lo, ONNX_Mul, z.re, alpha.re), NULL };
    return times(lo, z, alpha);
}

static void complex_add(Lower *lo, const Call *c, Value **out)
{
    DType t = out_dtype(c, 0);
    complex_sum(lo, c, ONNX_Add, complex_as(lo, c, "self", t), scaled_by(lo, c, "other", t), out);
}

static void complex_sub(Lower *lo, const Call *c, Value **out)
{
    DType t = out_dtype(c, 0);
    complex_sum(lo, c, ONNX_Sub, complex_as(lo, c, "self", t), scaled_by(lo, c, "other", t), out);
}

static void complex_rsub(Lower *lo, const Call *c, Value **out)
{
    DType t = out_dtype(c, 0);
    complex_sum(lo, c, ONNX_Sub, complex_as(lo, c, "other", t), scaled_by(lo, c, "self", t), out);
}

static void complex_div(Lower *lo, const Call *c, Value **out)
{
    DType t = out_dtype(c, 0);
    Complex b = complex_as(lo, c, "other", t), a = complex_as(lo, c, "self", t);
    put_complex(lo, c, b.im ? quotient(lo, widened(lo, a), widened(lo, b)) : over_real(lo, a, b.re),
                out);
}

static void complex_reciprocal(Lower *lo, const Call *c, Value **out)
{
    Complex z = widened(lo, self_parts(lo, c));
    put_complex(lo, c, over_real(lo, conjugate(lo, z), squared_size(lo, z)), out);
}

static void complex_square(Lower *lo, const Call *c, Value **out)
{
    Complex z = self_parts(lo, c);
    put_complex(lo, c, times(lo, z, z), out);
}

/* By squaring, for whole exponents. */
static void complex_pow(Lower *lo, const Call *c, Value **out)
{
    double  e;
    Complex z = complex_as(lo, c, "self", out_dtype(c, 0)), y = { NULL, NULL };
    if (!p2o_number_is_const(p2o_call_arg(c, "exponent"), &e) || e < 1 || e > 1024 ||
        e != (double)(int)e) {
        unsupported(lo, c, "a power of complex tensors that is no whole number from 1 to 1024");
        return;
    }
    for (int n = (int)e; n > 0; n /= 2) {
        if (n % 2)
            y = y.re ? times(lo, y, z) : z;
        if (n > 1)
            z = times(lo, z, z);
    }
    put_complex(lo, c, y, out);
}

static void complex_abs(Lower *lo, const Call *c, Value **out)
{
    out[0] = size_of(lo, self_parts(lo, c));
}

static void complex_angle(Lower *lo, const Call *c, Value **out)
{
    Complex z = self_parts(lo, c);
    out[0] = atan2_of(lo, z.im, z.re);
}

static void complex_real(Lower *lo, const Call *c, Value **out) { out[0] = self_parts(lo, c).re; }

static void complex_conj(Lower *lo, const Call *c, Value **out)
{
    put_complex(lo, c, conjugate(lo, self_parts(lo, c)), out);
}

/* z / |z|, and 0 at 0 */
static void complex_sgn(Lower *lo, const Call *c, Value **out)
{
    Complex z = self_parts(lo, c);
    Value  *size = size_of(lo, z), *zero = num(lo, size->dtype, 0);
    put_complex(
        lo, c,
        over_real(lo, z,
                  choose(lo, emit(lo, ONNX_Equal, size, zero), num(lo, size->dtype, 1), size)),
        out);
}

/* e^re (cos im + i sin im) */
static void complex_exp(Lower *lo, const Call *c, Value **out)
{
    Complex z = self_parts(lo, c);
    Value  *size = emit(lo, ONNX_Exp, z.re);
    out[0] = emit(lo, ONNX_Mul, size, emit(lo, ONNX_Cos, z.im));
    out[1] = emit(lo, ONNX_Mul, size, emit(lo, ONNX_Sin, z.im));
}

static void complex_log(Lower *lo, const Call *c, Value **out)
{
    Complex z = self_parts(lo, c);
    out[0] = emit(lo, ONNX_Log, size_of(lo, z));
    out[1] = atan2_of(lo, z.im, z.re);
}

static Value *parts_equal(Lower *lo, const Call *c)
{
    DType   t = part_of(PROMOTE(c, "self", "other"));
    Complex a = complex_as(lo, c, "self", t), b = complex_as(lo, c, "other", t);
    Value  *zero = num(lo, t, 0);
    return emit(lo, ONNX_And, emit(lo, ONNX_Equal, a.re, b.re),
                emit(lo, ONNX_Equal, a.im ? a.im : zero, b.im ? b.im : zero));
}

static void complex_eq(Lower *lo, const Call *c, Value **out) { out[0] = parts_equal(lo, c); }
static void complex_ne(Lower *lo, const Call *c, Value **out)
{
    out[0] = emit(lo, ONNX_Not, parts_equal(lo, c));
}

/* conj(self) . other */
static void complex_vdot(Lower *lo, const Call *c, Value **out)
{
    Complex a = complex_arg(lo, c, "self"), b = complex_arg(lo, c, "other");
    out[0] =
        emit(lo, ONNX_Add, emit(lo, ONNX_MatMul, a.re, b.re), emit(lo, ONNX_MatMul, a.im, b.im));
    out[1] =
        emit(lo, ONNX_Sub, emit(lo, ONNX_MatMul, a.re, b.im), emit(lo, ONNX_MatMul, a.im, b.re));
}

static void complex_full(Lower *lo, const Call *c, Value **out)
{
    const char *name = p2o_schema_find(c->schema, "fill_value") >= 0 ? "fill_value" : "value";
    Complex     z = complex_as(lo, c, name, out_dtype(c, 0));
    out[0] = expand(lo, z.re, out_shape(c, 0));
    if (is_complex(c->outs[0]->type.dtype))
        out[1] = z.im ? expand(lo, z.im, out_shape(c, 0))
                      : full(lo, out_shape(c, 0), out_dtype(c, 0), 0);
}

static const ComplexOp complex_ops[] = {
    { "abs", COMPLEX_OWN, complex_abs, shape_parts },
    { "absolute", COMPLEX_OWN, complex_abs, shape_parts },
    { "angle", COMPLEX_OWN, complex_angle, shape_parts },
    { "real", COMPLEX_OWN, complex_real, shape_parts },
    { "conj", COMPLEX_OWN, complex_conj },
    { "_conj", COMPLEX_OWN, complex_conj },
    { "conj_physical", COMPLEX_OWN, complex_conj },
    { "_conj_physical", COMPLEX_OWN, complex_conj },
    { "sgn", COMPLEX_OWN, complex_sgn },
    { "add.Tensor", COMPLEX_OWN, complex_add },
    { "add.Scalar", COMPLEX_OWN, complex_add },
    { "sub.Tensor", COMPLEX_OWN, complex_sub },
    { "sub.Scalar", COMPLEX_OWN, complex_sub },
    { "rsub.Tensor", COMPLEX_OWN, complex_rsub },
    { "rsub.Scalar", COMPLEX_OWN, complex_rsub },
    { "div.Tensor", COMPLEX_OWN, complex_div },
    { "div.Scalar", COMPLEX_OWN, complex_div },
    { "true_divide.Tensor", COMPLEX_OWN, complex_div },
    { "reciprocal", COMPLEX_OWN, complex_reciprocal },
    { "square", COMPLEX_OWN, complex_square },
    { "pow.Tensor_Scalar", COMPLEX_OWN, complex_pow },
    { "exp", COMPLEX_OWN, complex_exp },
    { "log", COMPLEX_OWN, complex_log },
    { "eq.Tensor", COMPLEX_OWN, complex_eq },
    { "eq.Scalar", COMPLEX_OWN, complex_eq },
    { "ne.Tensor", COMPLEX_OWN, complex_ne },
    { "ne.Scalar", COMPLEX_OWN, complex_ne },
    { "vdot", COMPLEX_OWN, complex_vdot },
    { "full", COMPLEX_OWN, complex_full },
    { "full_like", COMPLEX_OWN, complex_full },
    { "new_full", COMPLEX_OWN, complex_full },
    { "fill.Scalar", COMPLEX_OWN, complex_full },

    { "mul.Tensor", COMPLEX_PRODUCT },
    { "mul.Scalar", COMPLEX_PRODUCT },
    { "matmul", COMPLEX_PRODUCT },
    { "linalg_matmul", COMPLEX_PRODUCT },
    { "mm", COMPLEX_PRODUCT },
    { "bmm", COMPLEX_PRODUCT },
    { "mv", COMPLEX_PRODUCT },
    { "dot", COMPLEX_PRODUCT },
    { "outer", COMPLEX_PRODUCT },
    { "ger", COMPLEX_PRODUCT },
    { "inner", COMPLEX_PRODUCT },
    { "tensordot", COMPLEX_PRODUCT },
    { "einsum", COMPLEX_PRODUCT },
    { "kron", COMPLEX_PRODUCT },
    { "cross", COMPLEX_PRODUCT },
    { "linalg_cross", COMPLEX_PRODUCT },

    { "cat", COMPLEX_SUM },
    { "concat", COMPLEX_SUM },
    { "concatenate", COMPLEX_SUM },
    { "stack", COMPLEX_SUM },
    { "hstack", COMPLEX_SUM },
    { "vstack", COMPLEX_SUM },
    { "where.self", COMPLEX_SUM, .selector = "condition" },
    { "where.ScalarSelf", COMPLEX_SUM, .selector = "condition" },
    { "where.ScalarOther", COMPLEX_SUM, .selector = "condition" },
    { "copy", COMPLEX_SUM },
    { "to.dtype", COMPLEX_SUM },
    { "to.dtype_layout", COMPLEX_SUM },
    { "to.device", COMPLEX_SUM },
    { "to.other", COMPLEX_SUM },
    { "_to_copy", COMPLEX_SUM },
    { "type_as", COMPLEX_SUM },
    { "masked_fill.Scalar", COMPLEX_SUM, .selector = "mask" },
    { "masked_fill.Tensor", COMPLEX_SUM, .selector = "mask" },
    { "constant_pad_nd", COMPLEX_SUM },
    { "pad", COMPLEX_SUM },

    { "ones", COMPLEX_REAL },
    { "ones_like", COMPLEX_REAL },
    { "new_ones", COMPLEX_REAL },
    { "zeros", COMPLEX_REAL },
    { "new_zeros", COMPLEX_REAL },
    { "zeros_like", COMPLEX_REAL },
    { "eye", COMPLEX_REAL },
    { "eye.m", COMPLEX_REAL },

    { "neg", COMPLEX_PARTS },
    { "positive", COMPLEX_PARTS },
    { "resolve_conj", COMPLEX_PARTS },
    { "resolve_neg", COMPLEX_PARTS },
    { "sum", COMPLEX_PARTS },
    { "sum.dim_IntList", COMPLEX_PARTS },
    { "mean", COMPLEX_PARTS },
    { "mean.dim", COMPLEX_PARTS },
    { "cumsum", COMPLEX_PARTS },
    { "trace", COMPLEX_PARTS },
    { "view", COMPLEX_PARTS },
    { "_unsafe_view", COMPLEX_PARTS },
    { "reshape", COMPLEX_PARTS },
    { "reshape_as", COMPLEX_PARTS },
    { "view_as", COMPLEX_PARTS },
    { "flatten.using_ints", COMPLEX_PARTS },
    { "unflatten.int", COMPLEX_PARTS },
    { "ravel", COMPLEX_PARTS },
    { "transpose.int", COMPLEX_PARTS },
    { "swapaxes", COMPLEX_PARTS },
    { "swapdims", COMPLEX_PARTS },
    { "t", COMPLEX_PARTS },
    { "numpy_T", COMPLEX_PARTS },
    { "mT", COMPLEX_PARTS },
    { "permute", COMPLEX_PARTS },
    { "movedim.int", COMPLEX_PARTS },
    { "movedim.intlist", COMPLEX_PARTS },
    { "expand", COMPLEX_PARTS },
    { "expand_as", COMPLEX_PARTS },
    { "broadcast_to", COMPLEX_PARTS },
    { "unsqueeze", COMPLEX_PARTS },
    { "squeeze", COMPLEX_PARTS },
    { "squeeze.dim", COMPLEX_PARTS },
    { "squeeze.dims", COMPLEX_PARTS },
    { "slice.Tensor", COMPLEX_PARTS },
    { "select.int", COMPLEX_PARTS },
    { "narrow", COMPLEX_PARTS },
    { "contiguous", COMPLEX_PARTS },
    { "clone", COMPLEX_PARTS },
    { "detach", COMPLEX_PARTS },
    { "alias", COMPLEX_PARTS },
    { "lift_fresh", COMPLEX_PARTS },
    { "lift_fresh_copy", COMPLEX_PARTS },
    { "index.Tensor", COMPLEX_PARTS },
    { "index_put", COMPLEX_PARTS },
    { "index_select", COMPLEX_PARTS },
    { "gather", COMPLEX_PARTS },
    { "slice_scatter", COMPLEX_PARTS },
    { "select_scatter", COMPLEX_PARTS },
    { "flip", COMPLEX_PARTS },
    { "fliplr", COMPLEX_PARTS },
    { "flipud", COMPLEX_PARTS },
    { "roll", COMPLEX_PARTS },
    { "unfold", COMPLEX_PARTS },
    { "split.Tensor", COMPLEX_PARTS },
    { "split_with_sizes", COMPLEX_PARTS },
    { "chunk", COMPLEX_PARTS },
    { "unbind.int", COMPLEX_PARTS },
    { "tile", COMPLEX_PARTS },
    { "repeat", COMPLEX_PARTS },
    { "diagonal", COMPLEX_PARTS },
    { "tril", COMPLEX_PARTS },
    { "triu", COMPLEX_PARTS },
    { "fft_fftshift", COMPLEX_PARTS },
    { "fft_ifftshift", COMPLEX_PARTS },
};

static bool arg_is_complex(const Arg *x)
{
    if (x->kind != ARG_LIST)
        return is_complex(p2o_arg_type(x).dtype);
    for (uint32_t i = 0; i < x->n; i++)
        if (arg_is_complex(&x->items[i]))
            return true;
    return false;
}

static bool call_is_complex(const Call *c)
{
    for (int i = 0; i < c->nargs; i++)
        if (arg_is_complex(&c->args[i]))
            return true;
    for (int i = 0; i < c->nouts; i++)
        if (c->outs[i] && is_complex(c->outs[i]->type.dtype))
            return true;
    return false;
}

const ComplexOp *p2o_complex_op(const Call *c)
{
    const char *name = c->schema->key + strlen("aten::");
    if (c->op->complex || !p2o_str_starts(str_of(c->schema->key), "aten::") || !call_is_complex(c))
        return NULL;
    for (size_t i = 0; i < COUNT_OF(complex_ops); i++)
        if (same(complex_ops[i].name, name))
            return &complex_ops[i];
    return NULL;
}

/* Rows that emit nothing know any type. */
bool p2o_knows_complex(const Call *c)
{
    bool emits = c->op->lower || c->op->lower_many || c->op->onnx;
    return c->op->complex || !emits || !call_is_complex(c) || p2o_complex_op(c);
}
