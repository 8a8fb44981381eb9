/* torchao: tensors whose blocks have a scale each. */
#include "aten/quant.h"

#include <math.h>

/* Shapes of a tensor seen as blocks that share a scale (torchao). */
typedef struct Blocks {
    Axes    split;              /* the tensor's, an axis that holds several blocks being two */
    Axes    shared;             /* 1 where a block goes on: broadcasts with `split` */
    Axes    counts;             /* blocks along each of the tensor's axes */
    Axes    outer;              /* the same without axes that are one block */
    int64_t inner[MAX_RANK];    /* axes of `split` along which a block goes on */
    int     ninner;
    int     cut;                /* the axis that holds several blocks; -1: none does */
} Blocks;

enum { MANY = -2 };             /* several axes are cut */

/* false: an axis of a size that is not known is to be cut. */
static bool blocks_of(Arena *a, Dims *t, const Call *c, Shape x, Blocks *b)
{
    Dim one = p2o_dim_int(t, 1);
    *b = (Blocks){ .cut = -1 };
    Axes *all[] = { &b->split, &b->shared, &b->counts, &b->outer };
    for (size_t i = 0; i < COUNT_OF(all); i++)
        all[i]->at = NEW_N(a, Dim, 2 * (size_t)x.rank + 1);
    for (int i = 0; i < x.rank; i++) {
        Dim     d = x.at[i], by = dim_item(c, "block_size", i), count = by == one ? d : one;
        int64_t n, size;
        bool    cut = by != one && by != d;
        if (cut) {
            if (!p2o_dim_is_int(d, &n) || !p2o_dim_is_int(by, &size) || size < 1 ||
                n % size != 0 || b->split.rank + 2 > MAX_RANK)
                return false;
            count = p2o_dim_int(t, n / size);
            b->cut = b->cut == -1 ? i : MANY;
            push_dim(&b->split, count);
            push_dim(&b->shared, count);
        }
        if (by != one)
            b->inner[b->ninner++] = b->split.rank;
        push_dim(&b->split, cut ? by : d);
        push_dim(&b->shared, by == one ? d : one);
        push_dim(&b->counts, count);
        if (by == one || cut)
            push_dim(&b->outer, count);
    }
    return true;
}

/* Block sizes that are neither 1 nor divide a number are those of the whole axis. */
static bool must_have_blocks(Infer *in, const Call *c, Shape x, Blocks *b)
{
    if (list_len(c, "block_size") != x.rank) {
        rule_fail(in, "%d block sizes for rank %d", list_len(c, "block_size"), x.rank);
        return false;
    }
    for (int i = 0; i < x.rank; i++) {
        Dim     by = dim_item(c, "block_size", i);
        int64_t n, size;
        if (is_soft(in, by) && !const_dim(in, by, "a block size", &size))
            return false;
        if (dim_is(by, 1) || (p2o_dim_is_int(x.at[i], &n) && p2o_dim_is_int(by, &size) &&
                              size > 0 && n % size == 0))
            continue;
        if (!must_equal(in, c, x.at[i], by, "a block size"))
            return false;
    }
    return blocks_of(in->arena, in->dims, c, x, b);
}

/* scale and zero_point have as many elements as there are blocks. */
static bool must_fill(Infer *in, const Call *c, const char *name, Shape blocks)
{
    Shape out;
    return !has_arg(c, name) || reshaped(in, c, shape_arg(c, name), blocks, &out);
}

static void shape_affine(Infer *in, const Call *c)
{
    Type   x = type_arg(c, "input");
    bool   back = names_arg(c, "input_dtype");
    Blocks b;
    if ((back && !must_be_ints(in, c, "input", dtype_arg(c, "input_dtype", DT_NONE))) ||
        (!back && !must_be_float(in, c, "input")) || !must_have_blocks(in, c, x.shape, &b) ||
        !must_fill(in, c, "scale", axes_shape(b.shared)) ||
        !must_fill(in, c, "zero_point", axes_shape(b.shared)))
        return;
    set_out(in, c, 0, dtype_arg(c, "output_dtype", DT_F32), x.shape);
}

static void shape_choose_affine(Infer *in, const Call *c)
{
    Type   x = type_arg(c, "input");
    Blocks b;
    if (!must_be_float(in, c, "input") || !must_have_blocks(in, c, x.shape, &b))
        return;
    Shape s = axes_shape(bool_arg(c, "keepdim") ? b.counts : b.outer);
    set_out(in, c, 0, dtype_arg(c, "scale_dtype", x.dtype), s);
    set_out(in, c, 1, dtype_arg(c, "zero_point_dtype", DT_I32), s);
}

/* A tensor that is cut in the rows of its last axis alone. */
static bool is_in_groups(const Call *c, const Blocks *b, int of_rank)
{
    if (b->cut != of_rank - 1)
        return false;
    for (int i = 0; i < of_rank - 1; i++)
        if (!dim_is(dim_item(c, "block_size", i), 1))
            return false;
    return true;
}

/* -1: one scale for all; else the axis that has one for each place; MANY: several. */
static int axis_of(const Blocks *b)
{
    int axis = -1;
    for (int i = 0; i < b->shared.rank; i++)
        if (!dim_is(b->shared.at[i], 1))
            axis = axis == -1 ? i : MANY;
    return b->cut == -1 ? axis : MANY;
}

static Value *seen_along(Lower *lo, Value *v, int axis)
{
    Dim *n = NEW(lo->arena, Dim);
    if (!v || axis < 0)
        return v ? one_number(lo, v) : NULL;
    *n = size_at(v, axis);
    return seen_as(lo, v, (Shape){ 1, n });
}

/* A zero of no elements is none. */
static Value *zero_arg(Lower *lo, const Call *c, Shape shared)
{
    Value *zero = tensor_arg(lo, c, "zero_point");
    return zero ? seen_as(lo, zero, shared) : NULL;
}

static Value *lower_quantize_affine(Lower *lo, const Call *c)
{
    Value *x = tensor_arg(lo, c, "input");
    Blocks b;
    Grid   g = { .axis = -1, .dtype = out_dtype(c, 0) };
    if (!blocks_of(lo->arena, lo->dims, c, x->shape, &b) || !bounds(lo, c, g.dtype, &g))
        return unsupported(lo, c, "blocks of a size that is not known");
    Shape  shared = axes_shape(b.shared), back = x->shape;
    Value *scale = seen_as(lo, tensor_arg(lo, c, "scale"), shared), *zero = zero_arg(lo, c, shared);
    DType  t = p2o_dtype_promote(x->dtype, scale->dtype);
    g.axis = axis_of(&b);
    if (g.axis != MANY && t == DT_F32 && scale->dtype == DT_F32 && is_known(scale) &&
        (!zero || is_known(zero))) {
        g.scale = seen_along(lo, scale, g.axis);
        g.zero = seen_along(lo, zero, g.axis);
        return quantized(lo, cast(lo, x, t), &g);
    }
    x = seen_as(lo, x, axes_shape(b.split));
    Real by = inverse(lo, real_of(lo, scale, scale->dtype));
    Real q = exact(lo, ONNX_Round, step(lo, ONNX_Mul, real_of(lo, x, x->dtype), by));
    if (zero)
        q = step(lo, ONNX_Add, q, real_of(lo, zero, zero->dtype));
    return reshape(lo, cast(lo, within(lo, q.at, g.min, g.max), g.dtype), back);
}

/* The difference is made in the type of the result: exact for integers of 8 bits, which do not wrap
 * there. */
static Value *lower_dequantize_affine(Lower *lo, const Call *c)
{
    Value *q = tensor_arg(lo, c, "input"), *y = NULL;
    DType  t = out_dtype(c, 0);
    Blocks b;
    if (!blocks_of(lo->arena, lo->dims, c, q->shape, &b))
        return unsupported(lo, c, "blocks of a size that is not known");
    Shape  shared = axes_shape(b.shared), back = q->shape;
    Value *scale = seen_as(lo, tensor_arg(lo, c, "scale"), shared), *zero = zero_arg(lo, c, shared);
    bool   node = (is_8_bits(q->dtype) || t == DT_F32) && wide_of(scale->dtype) == DT_F32 &&
                is_known(scale) && (!zero || held_as(lo, zero, q->dtype));
    int    axis = axis_of(&b);
    if (node && is_in_groups(c, &b, rank(q))) {
        Dim *rows = NEW_N(lo->arena, Dim, 2);
        rows[0] = p2o_dim_int(lo->dims, 1);
        for (int i = 0; i < b.counts.rank; i++)
            rows[0] = p2o_dim_mul(lo->dims, rows[0], b.counts.at[i]);
        rows[1] = b.split.at[b.split.rank - 1];
        zero = zero ? held_as(lo, zero, q->dtype) : NULL;
        y = dequantized_groups(lo, q, cast(lo, scale, DT_F32), zero,
                               (Groups){ { 2, rows }, { 1, rows } });
    } else if (node && axis != MANY) {
        Grid g = { .scale = seen_along(lo, scale, axis), .zero = seen_along(lo, zero, axis),
                   .axis = axis, .dtype = q->dtype };
        y = dequantized(lo, q, &g);
    }
    if (y)
        return cast(lo, y, t);
    Real d = real_of(lo, seen_as(lo, q, axes_shape(b.split)), t);
    if (zero)
        d = step(lo, ONNX_Sub, d, real_of(lo, zero, t));
    d = step(lo, ONNX_Mul, d, real_of(lo, scale, scale->dtype));
    return cast(lo, reshape(lo, value_of(lo, d), back), t);
}

/* The scale at which no extreme lies outside the integers. */
static Real clipping_none(Lower *lo, Extremes e, double min, double max)
{
    Real low = step_by(lo, ONNX_Div, e.min, min), high = step_by(lo, ONNX_Div, e.max, max);
    return (Real){ choose(lo, emit(lo, ONNX_Greater, low.at, high.at), low.at, high.at), low.t };
}

/* The least normal number of a type. */
static double least_normal(DType t) { return t == DT_F16 ? 0x1p-14 : 0x1p-126; }

static void lower_choose_affine(Lower *lo, const Call *c, Value **out)
{
    const char *how = str_arg(c, "mapping_type");
    Value      *x = tensor_arg(lo, c, "input"), *zero;
    DType       t = x->dtype, target = dtype_arg(c, "target_dtype", DT_I8);
    Blocks      b;
    Grid        g;
    Real        scale;
    bool        clips = same(how, "SYMMETRIC"), affine = same(how, "ASYMMETRIC");
    if (!blocks_of(lo->arena, lo->dims, c, x->shape, &b) || b.ninner == 0 ||
        (!clips && !affine && !same(how, "SYMMETRIC_NO_CLIPPING_ERR")) ||
        !bounds(lo, c, target, &g)) {
        unsupported(lo, c, "mapping %s of these blocks", how);
        return;
    }
    x = seen_as(lo, x, axes_shape(b.split));
    Extremes e = extremes_of(lo, x, b.inner, b.ninner, false);
    scale = affine  ? affine_scale(lo, e, g.min, g.max)
            : clips ? symmetric_scale(lo, e, g.min, g.max)
                    : clipping_none(lo, e, g.min, g.max);
    scale = no_less(lo, scale, has_arg(c, "eps") ? float_arg(c, "eps") : least_normal(t));
    scale = real_like(lo, scale.at, t);
    if (affine)
        zero = affine_zero(lo, e.min, scale, g.min, g.max, target, out_dtype(c, 1));
    else
        zero = full(lo, scale.at->shape, out_dtype(c, 1), trunc((g.max + g.min + 1) / 2));
    out[0] = reshape(lo, cast(lo, scale.at, out_dtype(c, 0)), out_shape(c, 0));
    out[1] = reshape(lo, zero, out_shape(c, 1));
}

#define AFFINE_RANGE "Scalar? quant_min=None, Scalar? quant_max=None"
#define AFFINE_ROLES "block_size:setting quant_min:setting quant_max:setting"

const AtenOp p2o_ops_affine[] = {
    { "torchao::quantize_affine(Tensor input, SymInt[] block_size, Tensor scale, Tensor? zero_point, ScalarType output_dtype, " AFFINE_RANGE ") -> Tensor",
      shape_affine, .lower = lower_quantize_affine, .roles = AFFINE_ROLES },
    { "torchao::dequantize_affine(Tensor input, SymInt[] block_size, Tensor scale, Tensor? zero_point, ScalarType input_dtype, " AFFINE_RANGE ", ScalarType output_dtype=6) -> Tensor",
      shape_affine, .lower = lower_dequantize_affine, .roles = AFFINE_ROLES },
    { "torchao::choose_qparams_affine(Tensor? input, str mapping_type, SymInt[] block_size, ScalarType target_dtype, " AFFINE_RANGE ", float? eps=None, ScalarType? scale_dtype=None, ScalarType? zero_point_dtype=None, bool keepdim=False) -> (Tensor, Tensor)",
      shape_choose_affine, .lower_many = lower_choose_affine, .roles = AFFINE_ROLES },
    { 0 },
};
