#include "aten/quant.h"

#include <math.h>

static bool is_half_or_float(DType t) { return t == DT_F32 || wide_of(t) == DT_F32; }

bool must_be_float(Infer *in, const Call *c, const char *name)
{
    DType t = type_arg(c, name).dtype;
    if (!is_half_or_float(t))
        rule_fail(in, "%s of %s", name, p2o_dtype_torch(t));
    return is_half_or_float(t);
}

bool must_be_ints(Infer *in, const Call *c, const char *name, DType t)
{
    DType is = type_arg(c, name).dtype;
    if (is != t)
        rule_fail(in, "%s of %s where %s is said", name, p2o_dtype_torch(is), p2o_dtype_torch(t));
    return is == t;
}

bool must_be_one(Infer *in, const Call *c, const char *name)
{
    Shape s = shape_arg(c, name);
    for (int i = 0; i < s.rank; i++)
        if (!must_equal(in, c, s.at[i], int_dim(in, 1), name))
            return false;
    return true;
}

bool must_have_range(Infer *in, const Call *c)
{
    Type lo = type_arg(c, "quant_min"), hi = type_arg(c, "quant_max");
    if (lo.kind == TY_TENSOR || hi.kind == TY_TENSOR)
        return must_be_one(in, c, "quant_min") && must_be_one(in, c, "quant_max");
    double from = float_arg(c, "quant_min"), to = float_arg(c, "quant_max");
    if (!(from <= to))
        rule_fail(in, "quant_min %g, quant_max %g", from, to);
    return from <= to;
}

bool must_be_channels(Infer *in, const Call *c, Shape x, const char *scale,
                             const char *zero)
{
    int     axis;
    int64_t n = 0;
    if (!must_wrap(in, int_arg(c, "axis"), x.rank, &axis) || !must_rank(in, c, scale, 1))
        return false;
    Dim channels = shape_arg(c, scale).at[0];
    if (has_arg(c, zero) && (!must_rank(in, c, zero, 1) ||
                             !must_equal(in, c, shape_arg(c, zero).at[0], channels, zero)))
        return false;
    return (p2o_dim_is_int(channels, &n) && n == 1) ||
           must_equal(in, c, x.at[axis], channels, "channels");
}

void  push_dim(Axes *s, Dim d) { s->at[s->rank++] = d; }
Shape axes_shape(Axes s) { return (Shape){ s.rank, s.at }; }

static bool range_of_ints(DType t, double *lo, double *hi)
{
    bool sign = t == DT_I8 || t == DT_I16 || t == DT_I32;
    if (!sign && t != DT_U8 && t != DT_U16)
        return false;
    double n = exp2(8.0 * (double)p2o_dtype_bytes(t));
    *lo = sign ? -n / 2 : 0;
    *hi = sign ? n / 2 - 1 : n - 1;
    return true;
}

bool fits(DType t, double from, double to)
{
    double lo, hi;
    return range_of_ints(t, &lo, &hi) && from >= lo && to <= hi;
}

/* A constant in another type, or NULL where it is none or has a value that the type lacks. */
static Value *constant_as(Lower *lo, const Value *v, DType t)
{
    uint64_t n;
    if (!v->tensor || !p2o_tensor_nelem(v->tensor, &n) || n > SIZE_MAX / sizeof(float))
        return NULL;
    size_t item = p2o_dtype_bytes(t);
    char  *bytes = NEW_N(lo->arena, char, (size_t)n * item + 1);
    for (uint64_t i = 0; i < n; i++) {
        double f;
        float  narrow;
        if (!p2o_tensor_get_f64(v->tensor, i, &f))
            return NULL;
        narrow = (float)f;
        if (t == DT_F32 ? (double)narrow != f : f != floor(f) || !fits(t, f, f))
            return NULL;
        if (t == DT_F32) {
            memcpy(bytes + i * item, &narrow, sizeof narrow);
        } else {
            int64_t whole = (int64_t)f;
            for (size_t k = 0; k < item; k++)
                bytes[i * item + k] = (char)((uint64_t)whole >> 8 * k & 0xff);
        }
    }
    return p2o_build_const(lo->b, p2o_tensor_make(lo->arena, t, v->tensor->rank,
                                                  v->tensor->sizes, bytes));
}

Value *held_as(Lower *lo, Value *v, DType t)
{
    if (v->dtype == t)
        return v;
    if (v->def && v->def->op == ONNX_Cast && v->def->in[0]->dtype == t)
        return v->def->in[0];
    return constant_as(lo, v, t);
}

static bool is_all_zero(const Value *v)
{
    uint64_t n;
    double   f;
    if (!v->tensor || !p2o_tensor_nelem(v->tensor, &n))
        return false;
    for (uint64_t i = 0; i < n; i++)
        if (!p2o_tensor_get_f64(v->tensor, i, &f) || f != 0)
            return false;
    return true;
}

Value *seen_as(Lower *lo, Value *v, Shape s)
{
    int64_t sizes[MAX_RANK];
    bool    known = v->tensor && s.rank <= MAX_RANK;
    for (int i = 0; known && i < s.rank; i++)
        known = p2o_dim_is_int(s.at[i], &sizes[i]);
    if (p2o_shape_same(v->shape, s))
        return v;
    return known ? weight_view(lo, v, s.rank, sizes) : reshape(lo, v, s);
}

Value *one_number(Lower *lo, Value *v) { return seen_as(lo, v, (Shape){ 0, NULL }); }

Value *along(Lower *lo, Value *v, int axis, int to_rank)
{
    Axes s = { 0, NEW_N(lo->arena, Dim, (size_t)to_rank + 1) };
    if (axis < 0 || !v)
        return v;
    for (int i = 0; i < to_rank; i++)
        push_dim(&s, i == axis ? size_at(v, 0) : p2o_dim_int(lo->dims, 1));
    return seen_as(lo, v, axes_shape(s));
}

Real real_of(Lower *lo, Value *v, DType t)
{
    if (v->dtype != t && wide_of(t) != t)
        v = cast(lo, v, t);
    return (Real){ cast(lo, v, wide_of(t)), t };
}

Value *value_of(Lower *lo, Real x) { return cast(lo, x.at, x.t); }

Real real_like(Lower *lo, Value *at, DType t)
{
    return wide_of(t) == t ? (Real){ at, t } : real_of(lo, cast(lo, at, t), t);
}

static Real in_type(Lower *lo, Real x, DType t) { return x.t == t ? x : real_of(lo, x.at, t); }

Real step(Lower *lo, OnnxOp op, Real x, Real y)
{
    DType t = p2o_dtype_promote(x.t, y.t);
    return real_like(lo, emit(lo, op, in_type(lo, x, t).at, in_type(lo, y, t).at), t);
}

Real step_by(Lower *lo, OnnxOp op, Real x, double by)
{
    return real_like(lo, emit(lo, op, x.at, num(lo, x.at->dtype, by)), x.t);
}

Real step_from(Lower *lo, OnnxOp op, double from, Real x)
{
    return real_like(lo, emit(lo, op, num(lo, x.at->dtype, from), x.at), x.t);
}

Real exact(Lower *lo, OnnxOp op, Real x) { return (Real){ emit(lo, op, x.at), x.t }; }

Real inverse(Lower *lo, Real x)
{
    if (is_known(x.at) && rank(x.at) == 0)
        return step_from(lo, ONNX_Div, 1, x);           /* a constant */
    return exact(lo, ONNX_Neg, step_from(lo, ONNX_Div, -1, x));
}

static bool has_quantize(Lower *lo, DType t)
{
    return is_8_bits(t) || ((t == DT_I16 || t == DT_U16) && lo->opset >= 21);
}

Value *within(Lower *lo, Value *x, double min, double max)
{
    return emit(lo, ONNX_Clip, x, num(lo, x->dtype, min), num(lo, x->dtype, max));
}

/* ... with the integers of the type cut to those asked for. */
static Value *quantize_node(Lower *lo, Value *x, Value *scale, Value *zero, const Grid *g)
{
    double lowest = 0, highest = 0;
    Value *q = g->axis < 0 ? emit(lo, ONNX_QuantizeLinear, x, scale, zero)
                           : emit_with(lo, ONNX_QuantizeLinear, ATTRS(attr_int("axis", g->axis)),
                                       x, scale, zero);
    range_of_ints(g->dtype, &lowest, &highest);
    return g->min <= lowest && g->max >= highest ? q : within(lo, q, g->min, g->max);
}

/* As a float32 that the operators can take: a number is rounded as PyTorch rounds it, others must
 * hold as they are.  NULL: there is none. */
static Value *scale_as_float(Lower *lo, const Grid *g)
{
    Value *held = held_as(lo, g->scale, DT_F32);
    return held ? held : g->axis < 0 ? cast(lo, g->scale, DT_F32) : NULL;
}

Value *quantized(Lower *lo, Value *x, const Grid *g)
{
    Value *scale = scale_as_float(lo, g);
    Value *zero = g->zero ? held_as(lo, g->zero, g->dtype) : num(lo, g->dtype, 0);
    bool   node = has_quantize(lo, g->dtype) && scale && zero &&
                wide_of(g->scale->dtype) == g->scale->dtype && (g->zero || g->axis < 0);
    if (node && is_known(scale))
        return quantize_node(lo, x, scale, zero, g);
    Value *steps = g->axis < 0 && !is_known(scale) ? scale : g->scale;
    Real   by = inverse(lo, real_of(lo, steps, steps->dtype));
    by.at = along(lo, by.at, g->axis, rank(x));
    if (g->axis < 0)
        by = (Real){ cast(lo, by.at, DT_F32), DT_F32 };
    Real q = step(lo, ONNX_Mul, real_of(lo, x, DT_F32), by);
    if (node && g->axis < 0)
        return quantize_node(lo, q.at, num(lo, DT_F32, 1), zero, g);
    q = exact(lo, ONNX_Round, q);
    if (g->zero)
        q = step(lo, ONNX_Add, q, real_of(lo, along(lo, g->zero, g->axis, rank(x)), q.t));
    return cast(lo, within(lo, q.at, g->min, g->max), g->dtype);
}

static bool has_dequantize(Lower *lo, DType t, const Value *zero)
{
    return t == DT_I32 ? !zero : has_quantize(lo, t);
}

/* A weight that a float is multiplied by: ONNX Runtime would take DequantizeLinear and MatMul for a
 * MatMulNBits, which rounds the float to 8 bits.  It does not see through a Squeeze. */
static bool is_matrix_weight(const Value *q) { return q->tensor && rank(q) == 2; }

static Value *one_more_axis(Lower *lo, Value *v)
{
    Axes s = { 0, NEW_N(lo->arena, Dim, (size_t)rank(v) + 1) };
    push_dim(&s, p2o_dim_int(lo->dims, 1));
    for (int i = 0; i < rank(v); i++)
        push_dim(&s, size_at(v, i));
    return seen_as(lo, v, axes_shape(s));
}

static Value *dequantize_node(Lower *lo, Value *q, Value *scale, Value *zero, int axis,
                              int64_t block)
{
    Attr attrs[2];
    int  nattr = 0;
    if (axis >= 0)
        attrs[nattr++] = attr_int("axis", axis);
    if (block)
        attrs[nattr++] = attr_int("block_size", block);
    return p2o_build(lo->b, ONNX_DequantizeLinear, nattr, attrs, INPUTS(q, scale, zero));
}

Value *dequantize_hidden(Lower *lo, Value *q, Value *scale, Value *zero, int axis, int64_t block)
{
    if (!is_matrix_weight(q))
        return dequantize_node(lo, q, scale, zero, axis, block);
    if (block) {
        scale = one_more_axis(lo, scale);
        zero = zero ? one_more_axis(lo, zero) : NULL;
    }
    return squeeze(lo, dequantize_node(lo, one_more_axis(lo, q), scale, zero, axis + (axis >= 0),
                                       block), 0);
}

Value *dequantized(Lower *lo, Value *q, const Grid *g)
{
    Value *zero = g->zero;
    Value *scale = wide_of(g->scale->dtype) == DT_F32 ? cast(lo, g->scale, DT_F32)
                                                      : scale_as_float(lo, g);
    if (zero && q->dtype == DT_I32 && is_all_zero(zero))
        zero = NULL;
    if (!scale || !has_dequantize(lo, q->dtype, zero))
        return NULL;
    if (zero && !(zero = held_as(lo, zero, q->dtype)))
        return NULL;
    return (g->in_rows ? dequantize_node : dequantize_hidden)(lo, q, scale, zero, g->axis, 0);
}

static double bound_arg(const Call *c, const char *name, double otherwise)
{
    return has_arg(c, name) ? float_arg(c, name) : otherwise;
}

bool bounds(Lower *lo, const Call *c, DType t, Grid *g)
{
    const char *const names[] = { "quant_min", "quant_max" };
    double           *to[] = { &g->min, &g->max };
    range_of_ints(t, &g->min, &g->max);
    for (int i = 0; i < 2; i++) {
        if (type_arg(c, names[i]).kind == TY_TENSOR) {
            const Value *v = tensor_arg(lo, c, names[i]);
            if (!v->tensor || !p2o_tensor_get_f64(v->tensor, 0, to[i])) {
                unsupported(lo, c, "%s that is computed", names[i]);
                return false;
            }
        } else {
            *to[i] = bound_arg(c, names[i], *to[i]);
        }
    }
    return true;
}

Value *number_or_tensor(Lower *lo, const Call *c, const char *name, DType number, DType want)
{
    if (type_arg(c, name).kind != TY_TENSOR)
        return num(lo, number, float_arg(c, name));
    Value *v = tensor_arg(lo, c, name), *held = held_as(lo, v, want);
    return one_number(lo, held ? held : v);
}

Grid channels_of(Lower *lo, const Call *c, const char *scale, const char *zero, int of_rank)
{
    Grid g = { .scale = tensor_arg(lo, c, scale), .zero = tensor_arg(lo, c, zero),
               .axis = axis_arg(c, "axis", of_rank) };
    if (is_size(g.scale, 0, 1)) {
        g.axis = -1;
        g.scale = one_number(lo, g.scale);
        g.zero = g.zero ? one_number(lo, g.zero) : NULL;
    }
    return g;
}

/* Integers of 8 and 16 bits wrap in PyTorch, where the zeros are no wider. */
static bool wraps(const Value *q, const Value *zero)
{
    DType t = zero ? p2o_dtype_promote(q->dtype, zero->dtype) : DT_F32;
    return is_int(t) && p2o_dtype_bytes(t) < 4 && !is_all_zero(zero);
}

Value *product_of_difference(Lower *lo, Value *q, Value *zero, Value *scale)
{
    Real d = real_of(lo, q, q->dtype);
    if (zero)
        d = step(lo, ONNX_Sub, d, real_of(lo, zero, zero->dtype));
    return value_of(lo, step(lo, ONNX_Mul, d, real_of(lo, scale, scale->dtype)));
}

/* The node's product is exact in float32, so that a half type rounds it once. */
Value *dequantized_by_types(Lower *lo, Value *q, const Grid *g)
{
    bool   half = wide_of(g->scale->dtype) != g->scale->dtype;
    bool   exact = !wraps(q, g->zero) && (!half || is_8_bits(q->dtype));
    Value *y = exact ? dequantized(lo, q, g) : NULL;
    if (y)
        return half ? cast(lo, y, g->scale->dtype) : y;
    return product_of_difference(lo, q, along(lo, g->zero, g->axis, rank(q)),
                                 along(lo, g->scale, g->axis, rank(q)));
}

/* As many scales as the matrix has groups, of its own rank. */
static Value *blocked_node(Lower *lo, Value *q, Value *scale, Value *zero, int axis, int64_t block)
{
    scale = wide_of(scale->dtype) == DT_F32 ? cast(lo, scale, DT_F32) : NULL;
    zero = zero ? held_as(lo, zero, q->dtype) : NULL;
    return scale ? dequantize_hidden(lo, q, scale, zero, axis, block) : NULL;
}

/* Rows of groups, each with a scale: of an axis before opset 21. */
Value *dequantized_groups(Lower *lo, Value *q, Value *scale, Value *zero, Groups to)
{
    int64_t block = 0;
    Shape   back = q->shape;
    Axes    each = { 0, NEW_N(lo->arena, Dim, (size_t)rank(q) + 1) };
    p2o_dim_is_int(to.rows.at[1], &block);
    for (int i = 0; i < rank(q); i++)
        push_dim(&each, size_at(q, i));
    each.at[each.rank - 1] =
        p2o_dim_floordiv(lo->dims, each.at[each.rank - 1], to.rows.at[1]);
    bool node = lo->opset >= 21 && has_quantize(lo, q->dtype) && !wraps(q, zero) &&
                (!zero || held_as(lo, zero, q->dtype));
    if (node) {
        Value *y = blocked_node(lo, q, seen_as(lo, scale, axes_shape(each)),
                                zero ? seen_as(lo, zero, axes_shape(each)) : NULL, rank(q) - 1,
                                block);
        if (y)
            return wide_of(scale->dtype) == scale->dtype ? y : cast(lo, y, scale->dtype);
    }
    Grid g = { .scale = seen_as(lo, scale, to.each), .dtype = q->dtype, .in_rows = true,
               .zero = zero ? seen_as(lo, zero, to.each) : NULL };
    return reshape(lo, dequantized_by_types(lo, seen_as(lo, q, to.rows), &g), back);
}

Extremes extremes_of(Lower *lo, Value *x, const int64_t *axes, int n, bool keepdims)
{
    DType  t = x->dtype, wide = wide_of(t);
    Value *zero = num(lo, wide, 0), *min = reduce(lo, ONNX_ReduceMin, x, axes, n, keepdims);
    Value *max = reduce(lo, ONNX_ReduceMax, x, axes, n, keepdims);
    return (Extremes){ { emit(lo, ONNX_Min, cast(lo, min, wide), zero), t },
                       { emit(lo, ONNX_Max, cast(lo, max, wide), zero), t } };
}

Real symmetric_scale(Lower *lo, Extremes e, double min, double max)
{
    Value *most = emit(lo, ONNX_Max, exact(lo, ONNX_Neg, e.min).at, e.max.at);
    return step_by(lo, ONNX_Div, (Real){ most, e.min.t }, (max - min) / 2);
}

Real affine_scale(Lower *lo, Extremes e, double min, double max)
{
    return step_by(lo, ONNX_Div, step(lo, ONNX_Sub, e.max, e.min), max - min);
}

Value *affine_zero(Lower *lo, Real low, Real scale, double min, double max, DType narrow, DType t)
{
    Real   z = exact(lo, ONNX_Round, step(lo, ONNX_Div, low, scale));
    Value *v = within(lo, step_from(lo, ONNX_Sub, min, z).at, min, max);
    return cast(lo, fits(narrow, min, max) ? cast(lo, v, narrow) : v, t);
}

Real no_less(Lower *lo, Real x, double least)
{
    return (Real){ emit(lo, ONNX_Max, x.at, num(lo, x.at->dtype, least)), x.t };
}
