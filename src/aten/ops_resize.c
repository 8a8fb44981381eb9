/* Resizing images: nearest, linear, cubic, with and without antialiasing.
 *
 * One Resize where ONNX Runtime samples at PyTorch's places.  It does not where an output size and
 * a scale are given that do not follow from each other in f32, where a nearest sample lies so close
 * to the next that f32 rounding decides, and for f64, which it does not take.  Then each axis is
 * gathered from computed places, in the arithmetic of PyTorch's CPU kernels. */
#include "aten/lower.h"

#include <math.h>

typedef enum ResizeMode {
    RESIZE_NEAREST, RESIZE_NEAREST_EXACT, RESIZE_LINEAR, RESIZE_CUBIC
} ResizeMode;

#define CUBIC_A    (-0.75)
#define CUBIC_AA_A (-0.5)       /* with antialiasing */

typedef struct ResizeAxis {
    Dim    in, out;
    double scale;               /* 0: not given */
} ResizeAxis;

typedef struct ResizeCall {
    ResizeMode mode;
    bool       align_corners, antialias;
    bool       by_scale;        /* Resize finds the sizes from the scales */
    int        n;               /* spatial dims, the last ones */
    ResizeAxis axis[3];
} ResizeCall;

static const char *resize_input(const Call *c) { return names_arg(c, "input") ? "input" : "self"; }

static int resize_dims(const Call *c)
{
    const char *key = c->schema->key;
    return strstr(key, "1d") ? 1 : strstr(key, "2d") ? 2 : 3;
}

static ResizeMode resize_mode(const Call *c)
{
    const char *key = c->schema->key;
    if (strstr(key, "nearest_exact"))
        return RESIZE_NEAREST_EXACT;
    if (strstr(key, "nearest"))
        return RESIZE_NEAREST;
    return strstr(key, "cubic") ? RESIZE_CUBIC : RESIZE_LINEAR;
}

/* The scale of spatial axis i; 0 where none is given. */
static double scale_arg(const Call *c, int n, int i)
{
    static const char *const names[3][3] = { { "scales" }, { "scales_h", "scales_w" },
                                             { "scales_d", "scales_h", "scales_w" } };
    double scale = 0;
    if (names_arg(c, "scale_factors")) {
        const Arg *x = p2o_call_arg(c, "scale_factors");
        if (x->kind == ARG_LIST && (uint32_t)i < x->n)
            p2o_number_is_const(&x->items[i], &scale);
    } else if (has_arg(c, names[n - 1][i])) {
        scale = float_arg(c, names[n - 1][i]);
    }
    return scale > 0 ? scale : 0;
}

enum { SCALE_UNIT = 1024 };

/* scale = count / SCALE_UNIT: then sizes follow from it without rounding. */
static bool is_plain_scale(double scale, int64_t *count)
{
    double n = scale * SCALE_UNIT;
    if (!(n > 0 && n < 1e9) || (double)(int64_t)n != n)
        return false;
    *count = (int64_t)n;
    return true;
}

static Dim scaled_dim(Dims *t, Dim size, int64_t count)
{
    return p2o_dim_floordiv(t, p2o_dim_mul(t, size, p2o_dim_int(t, count)),
                            p2o_dim_int(t, SCALE_UNIT));
}

/* floor(size * scale) in double precision; what no Dim can say is computed when the model runs. */
static Dim resized(Infer *in, const Call *c, Dim size, double scale, int axis)
{
    int64_t n, count;
    if (is_plain_scale(scale, &count))
        return scaled_dim(in->dims, size, count);
    if (p2o_dim_is_int(size, &n) && (double)n * scale < 1e15)
        return int_dim(in, (int64_t)((double)n * scale));
    return data_dim(in, c, 0, axis);
}

static void shape_resize(Infer *in, const Call *c)
{
    Type x = type_arg(c, resize_input(c));
    int  n = resize_dims(c), given = list_len(c, "output_size");
    if (x.shape.rank != n + 2) {
        rule_fail(in, "input of rank %d for %d spatial dims", x.shape.rank, n);
        return;
    }
    if (given ? given != n : !names_arg(c, "scale_factors") || list_len(c, "scale_factors") != n) {
        rule_fail(in, "neither %d sizes nor %d scale factors", n, n);
        return;
    }
    Dim *at = p2o_shape_copy(in->arena, x.shape, 0);
    for (int i = 0; i < n; i++)
        at[2 + i] = given ? dim_item(c, "output_size", i)
                          : resized(in, c, x.shape.at[2 + i], scale_arg(c, n, i), 2 + i);
    set_out(in, c, 0, x.dtype, (Shape){ x.shape.rank, at });
}

static ResizeCall resize_call(const Call *c, const Value *x)
{
    ResizeCall r = { .mode = resize_mode(c), .n = resize_dims(c) };
    r.antialias = strstr(c->schema->key, "_aa") != NULL;
    r.align_corners = names_arg(c, "align_corners") && bool_arg(c, "align_corners");
    for (int i = 0; i < r.n; i++)
        r.axis[i] = (ResizeAxis){ size_at(x, 2 + i), out_shape(c, 0).at[2 + i],
                                  scale_arg(c, r.n, i) };
    return r;
}

/* Nothing moves.  A linear resize to the same size copies, whatever the scale. */
static bool is_kept(const ResizeCall *r, const ResizeAxis *a)
{
    bool copies = r->mode == RESIZE_LINEAR && !r->antialias;
    return a->in == a->out && (a->scale == 0 || a->scale == 1 || r->align_corners || copies);
}

/* ONNX Runtime finds the output size from the scale, in f32. */
static bool is_scale_exact(Lower *lo, const ResizeAxis *a)
{
    int64_t count, in, out;
    if (is_plain_scale(a->scale, &count)) {
        return p2o_dim_eq(lo->dims, scaled_dim(lo->dims, a->in, count), a->out) == YES;
    }
    return p2o_dim_is_int(a->in, &in) && p2o_dim_is_int(a->out, &out) && in < 1 << 24 &&
           (int64_t)((float)in * (float)a->scale) == out;
}

/* PyTorch takes element floor(i * f32(1 / scale)), ONNX Runtime floor(i / f32(scale)), both in
 * f32. */
static bool same_elements(float inverse, float scale, int64_t in, int64_t out)
{
    if (out > 1 << 20)
        return false;
    for (int64_t i = 0; i < out; i++) {
        int64_t one = (int64_t)floorf((float)i * inverse),
                other = (int64_t)floorf((float)i / scale);
        if ((one < in ? one : in - 1) != (other < in ? other : in - 1))
            return false;
    }
    return true;
}

/* in is out / 2, rounded up or down: no i * in / out is a whole number but for even sizes, and the
 * nearest is far away in f32 up to sizes of 4000. */
static bool is_half(Lower *lo, Dim in, Dim out)
{
    Dims *t = lo->dims;
    Dim   two = p2o_dim_int(t, 2), up = p2o_dim_add(t, out, p2o_dim_int(t, 1));
    return p2o_dim_eq(t, in, p2o_dim_floordiv(t, out, two)) == YES ||
           p2o_dim_eq(t, in, p2o_dim_floordiv(t, up, two)) == YES;
}

/* Where not tried out: i * q / p, with p / q the scale, is either far from a whole number or one,
 * and then found when a factor is not rounded to the wrong side. */
static bool is_nearest_exact(Lower *lo, ResizeMode mode, const ResizeAxis *a)
{
    int64_t in, out, p = 1, q = 1;
    bool    known = p2o_dim_is_int(a->in, &in) && p2o_dim_is_int(a->out, &out);
    float   scale = a->scale > 0 ? (float)a->scale : 1,
          inverse = a->scale > 0 ? (float)(1 / a->scale) : 1;
    if (a->scale > 0 && known && mode == RESIZE_NEAREST)
        return same_elements(inverse, scale, in, out);
    if (a->scale > 0)
        return is_plain_scale(a->scale, &p) && (double)inverse * a->scale >= 1;
    if (known && mode == RESIZE_NEAREST)
        return same_elements((float)in / (float)out, (float)out / (float)in, in, out);
    if (known) {
        p = out;
        q = in;
    } else if (!p2o_dim_is_int(p2o_dim_exact_div(lo->dims, a->out, a->in), &p) &&
               !p2o_dim_is_int(p2o_dim_exact_div(lo->dims, a->in, a->out), &q)) {
        return mode == RESIZE_NEAREST && is_half(lo, a->in, a->out);
    }
    inverse = (float)q / (float)p;
    scale = (float)p / (float)q;
    return (double)inverse * (double)p >= (double)q && (double)scale * (double)q <= (double)p;
}

/* With align_corners a scale gives the size and nothing else; antialiased, PyTorch then places
 * elements as no mode of ONNX does. */
static bool fits_one_node(Lower *lo, ResizeCall *r, DType t)
{
    bool any_scale = false;
    if (r->antialias && (r->align_corners || lo->opset < 18))
        return false;
    r->by_scale = true;
    for (int i = 0; i < r->n; i++) {
        const ResizeAxis *a = &r->axis[i];
        any_scale |= a->scale > 0;
        r->by_scale &= a->scale > 0 && is_scale_exact(lo, a);
        if (r->mode <= RESIZE_NEAREST_EXACT && !is_nearest_exact(lo, r->mode, a))
            return false;
    }
    return t != DT_F64 && (r->by_scale || !any_scale || r->align_corners);
}

static Value *floats_const(Lower *lo, const float *v, int64_t n)
{
    float   *kept = NEW_N(lo->arena, float, (size_t)n);
    int64_t *size = NEW(lo->arena, int64_t);
    memcpy(kept, v, (size_t)n * sizeof *v);
    *size = n;
    return p2o_build_const(lo->b, p2o_tensor_make(lo->arena, DT_F32, 1, size, kept));
}

/* Before opset 18 sizes and scales are of all axes. */
static Value *resize_node(Lower *lo, const ResizeCall *r, Value *x, Shape out)
{
    static const char *const modes[] = { "nearest", "nearest", "linear", "cubic" };
    static const int64_t     spatial[] = { 2, 3, 4 };
    int   first = lo->opset >= 18 ? 2 : 0, count = rank(x) - first, n = 0;
    float scales[5] = { 1, 1, 1, 1, 1 };
    Attr  attrs[8];
    bool  nearest = r->mode <= RESIZE_NEAREST_EXACT;

    for (int i = 0; i < r->n; i++)
        scales[2 + i] = (float)r->axis[i].scale;
    const char *places = r->align_corners ? "align_corners" : "half_pixel";
    if (r->mode == RESIZE_NEAREST)
        places = "asymmetric";
    attrs[n++] = attr_str("mode", modes[r->mode]);
    attrs[n++] = attr_str("coordinate_transformation_mode", places);
    if (nearest)
        attrs[n++] = attr_str("nearest_mode",
                              r->mode == RESIZE_NEAREST ? "floor" : "round_prefer_ceil");
    if (r->mode == RESIZE_CUBIC)
        attrs[n++] = attr_float("cubic_coeff_a", r->antialias ? CUBIC_AA_A : CUBIC_A);
    if (r->antialias) {
        attrs[n++] = attr_int("antialias", 1);
        attrs[n++] = attr_int("exclude_outside", 1);
    }
    if (first)
        attrs[n++] = attr_ints("axes", spatial, (size_t)r->n);
    Value *by_scale = r->by_scale ? floats_const(lo, scales + first, count) : NULL;
    Value *by_size = r->by_scale ? NULL : shape_value(lo, slice_shape(out, first, rank(x)));
    return p2o_build(lo->b, ONNX_Resize, n, attrs, INPUTS(x, NULL, by_scale, by_size));
}

static Value *shifted_number(Lower *lo, Value *x, double f)
{
    return emit(lo, ONNX_Add, x, num(lo, x->dtype, f));
}

static Value *scaled_number(Lower *lo, Value *x, double f)
{
    return emit(lo, ONNX_Mul, x, num(lo, x->dtype, f));
}

/* Input elements per output element. */
static Value *resize_step(Lower *lo, const ResizeCall *r, const ResizeAxis *a, DType t)
{
    Dims *d = lo->dims;
    Dim   one = p2o_dim_int(d, 1), in = a->in, out = a->out;
    if (a->scale > 0 && !r->align_corners)
        return num(lo, t, 1 / a->scale);
    if (r->align_corners) {                 /* 0 where there is one element, which may be shifted */
        Dim steps = p2o_dim_sub(d, out, one);
        in = p2o_dim_sub(d, in, one);
        if (r->antialias)
            in = p2o_dim_mul(d, in, p2o_dim_min(d, steps, one));
        out = p2o_dim_max(d, steps, one);
    }
    return emit(lo, ONNX_Div, cast(lo, dim_scalar(lo, in), t), cast(lo, dim_scalar(lo, out), t));
}

/* Where in the input each output element lies, a vector. */
static Value *resize_places(Lower *lo, const ResizeCall *r, const ResizeAxis *a, DType t)
{
    Value *i = cast(lo, range_of(lo, a->out, 1), t), *step = resize_step(lo, r, a, t);
    if (r->mode == RESIZE_NEAREST || r->align_corners)
        return emit(lo, ONNX_Mul, i, step);
    i = shifted_number(lo, i, 0.5);
    if (r->mode == RESIZE_NEAREST_EXACT) {
        /* Fused there: rounded once, and again when 0.5 is added. */
        Value *at = emit(lo, ONNX_Mul, cast(lo, i, DT_F64), cast(lo, step, DT_F64));
        return shifted_number(lo, cast(lo, shifted_number(lo, at, -0.5), t), 0.5);
    }
    Value *at = shifted_number(lo, emit(lo, ONNX_Mul, i, step), -0.5);
    return r->mode == RESIZE_CUBIC ? at : emit(lo, ONNX_Max, at, num(lo, t, 0));
}

/* Elements `offset` from those, the border's own beyond it. */
static Value *take_near(Lower *lo, const ResizeCall *r, Value *x, int axis, Value *whole,
                        int64_t offset)
{
    Dim    last = p2o_dim_sub(lo->dims, size_at(x, axis), p2o_dim_int(lo->dims, 1));
    Value *at = whole;
    if (offset)
        at = emit(lo, ONNX_Add, at, INTS(lo, offset));
    at = emit(lo, ONNX_Min, at, dim_value(lo, last));
    if (r->mode == RESIZE_CUBIC)            /* others lie in the input */
        at = emit(lo, ONNX_Max, at, INTS(lo, 0));
    return emit_with(lo, ONNX_Gather, ATTRS(attr_int("axis", axis)), x, at);
}

/* Weight of an element at distance d: Keys' kernel, for d in [0, 1] and in [1, 2]. */
static Value *cubic_near(Lower *lo, Value *d, double a)
{
    Value *v = shifted_number(lo, scaled_number(lo, d, a + 2), -(a + 3));
    return shifted_number(lo, emit(lo, ONNX_Mul, emit(lo, ONNX_Mul, v, d), d), 1);
}

static Value *cubic_far(Lower *lo, Value *d, double a)
{
    Value *v = shifted_number(lo, scaled_number(lo, d, a), -5 * a);
    v = shifted_number(lo, emit(lo, ONNX_Mul, v, d), 8 * a);
    return shifted_number(lo, emit(lo, ONNX_Mul, v, d), -4 * a);
}

static Value *resize_weight(Lower *lo, ResizeMode mode, Value *part, int64_t offset)
{
    Value *rest = emit(lo, ONNX_Sub, num(lo, part->dtype, 1), part);
    if (mode == RESIZE_LINEAR)
        return offset ? part : rest;
    switch (offset) {
    case -1: return cubic_far(lo, shifted_number(lo, part, 1), CUBIC_A);
    case 0: return cubic_near(lo, part, CUBIC_A);
    case 1: return cubic_near(lo, rest, CUBIC_A);
    default: return cubic_far(lo, shifted_number(lo, rest, 1), CUBIC_A);
    }
}

static Value *weight_along(Lower *lo, Value *v, int trailing)
{
    for (int i = 0; i < trailing; i++)
        v = unsqueeze(lo, v, 1 + i);
    return v;
}

static Value *resize_axis(Lower *lo, const ResizeCall *r, Value *x, int i, DType t)
{
    int    axis = 2 + i;
    Value *at = resize_places(lo, r, &r->axis[i], t), *floor = emit(lo, ONNX_Floor, at);
    Value *whole = cast(lo, floor, DT_I64), *sum = NULL;
    if (r->mode <= RESIZE_NEAREST_EXACT)
        return take_near(lo, r, x, axis, whole, 0);
    Value *part = emit(lo, ONNX_Sub, at, floor);
    int64_t from = r->mode == RESIZE_CUBIC ? -1 : 0, to = r->mode == RESIZE_CUBIC ? 2 : 1;
    for (int64_t k = from; k <= to; k++) {
        Value *w = weight_along(lo, resize_weight(lo, r->mode, part, k), rank(x) - 1 - axis);
        Value *term = emit(lo, ONNX_Mul, take_near(lo, r, x, axis, whole, k), w);
        sum = sum ? emit(lo, ONNX_Add, sum, term) : term;
    }
    return sum;
}

/* The filter at a distance, both tensors; 0 from 1 on, or 2 if cubic. */
static Value *filter_at(Lower *lo, ResizeMode mode, Value *d)
{
    DType t = d->dtype;
    if (mode == RESIZE_LINEAR)
        return emit(lo, ONNX_Max, emit(lo, ONNX_Sub, num(lo, t, 1), d), num(lo, t, 0));
    Value *far = cubic_far(lo, d, CUBIC_AA_A), *near = cubic_near(lo, d, CUBIC_AA_A);
    far = emit(lo, ONNX_Where, emit(lo, ONNX_Less, d, num(lo, t, 2)), far, num(lo, t, 0));
    return emit(lo, ONNX_Where, emit(lo, ONNX_Less, d, num(lo, t, 1)), near, far);
}

/* Antialiased: a product with the matrix of weights, the filter stretched by the step where that is
 * more than 1 and centred at step * (i + 0.5); each output element's weights are made to sum up
 * to 1. */
static Value *antialias_axis(Lower *lo, const ResizeCall *r, Value *x, int i, DType t)
{
    const ResizeAxis *a = &r->axis[i];
    const int64_t     over_in = i < r->n - 1;   /* [in, out] for the last axis, else [out, in] */
    const int         new_in = over_in ? 0 : 1;
    Value *step = resize_step(lo, r, a, t);
    Value *centre = shifted_number(lo, cast(lo, range_of(lo, a->out, 1), t), 0.5);
    Value *from = shifted_number(lo, cast(lo, range_of(lo, a->in, 1), t), 0.5);
    centre = emit(lo, ONNX_Mul, centre, step);
    Value *apart = emit(lo, ONNX_Sub, unsqueeze(lo, from, new_in), unsqueeze(lo, centre, !new_in));
    Value *d =
        emit(lo, ONNX_Div, emit(lo, ONNX_Abs, apart), emit(lo, ONNX_Max, step, num(lo, t, 1)));
    Value *w = filter_at(lo, r->mode, d);
    w = emit(lo, ONNX_Div, w, reduce(lo, ONNX_ReduceSum, w, &over_in, 1, true));
    return over_in ? emit(lo, ONNX_MatMul, w, x) : emit(lo, ONNX_MatMul, x, w);
}

/* Sizes that only the run knows: trunc(in * scale) in double precision. */
static void compute_sizes(Lower *lo, const Call *c, const ResizeCall *r)
{
    int64_t count;
    for (int i = 0; i < r->n; i++) {
        double scale = scale_arg(c, r->n, i);
        if (list_len(c, "output_size") || is_plain_scale(scale, &count) ||
            p2o_dim_is_int(r->axis[i].in, NULL))
            continue;
        Value *product = scaled_number(lo, cast(lo, dim_scalar(lo, r->axis[i].in), DT_F64), scale);
        carries_int(lo, cast(lo, product, DT_I64), r->axis[i].out);
    }
}

static Value *lower_resize(Lower *lo, const Call *c)
{
    Value     *x = tensor_arg(lo, c, resize_input(c));
    ResizeCall r = resize_call(c, x);
    DType      t = x->dtype, wide = t == DT_F64 ? DT_F64 : DT_F32;
    bool       kept = true, nearest = r.mode <= RESIZE_NEAREST_EXACT;
    for (int i = 0; i < r.n; i++)
        kept &= is_kept(&r, &r.axis[i]);
    if (kept && !r.antialias)
        return x;
    if (!is_float(t) && !nearest)
        return unsupported(lo, c, "%s images", p2o_dtype_torch(t));
    compute_sizes(lo, c, &r);
    if (fits_one_node(lo, &r, t))
        return resize_node(lo, &r, x, out_shape(c, 0));
    Value *y = nearest ? x : cast(lo, x, wide);
    for (int i = 0; i < r.n; i++)
        if (!is_kept(&r, &r.axis[i]))
            y = (r.antialias ? antialias_axis : resize_axis)(lo, &r, y, i, wide);
    return cast(lo, y, t);
}

/* To the size that it has. */
static bool idle_resize(Dims *t, const Call *c, int arg, int i, Shape self, Dim *number)
{
    (void)t;
    *number = i + 2 < self.rank ? self.at[i + 2] : NULL;
    return *number && same(c->schema->args[arg].name, "output_size");
}

#define RESIZE_ROLES                                                                               \
    "scale_factors:factor scales:factor scales_d:factor scales_h:factor scales_w:factor"
#define RESIZE_ROW(schema, ...)                                                                    \
    {                                                                                              \
        schema " -> Tensor", shape_resize, .lower = lower_resize, .roles = RESIZE_ROLES,           \
                                           .idle = idle_resize, __VA_ARGS__                        \
    }
#define RESIZE_ROWS(name, n, corners, scales, ...)                                                 \
    RESIZE_ROW(name "(Tensor self, SymInt[" #n "] output_size" corners scales ")", __VA_ARGS__),   \
        RESIZE_ROW(name ".vec(Tensor input, SymInt[]? output_size" corners                         \
                        ", float[]? scale_factors)",                                               \
                   __VA_ARGS__)
#define SCALES_1 ", float? scales=None"
#define SCALES_2 ", float? scales_h=None, float? scales_w=None"
#define SCALES_3 ", float? scales_d=None" SCALES_2
#define CORNERS ", bool align_corners"

const AtenOp p2o_ops_resize[] = {
    RESIZE_ROWS("upsample_nearest1d", 1, "", SCALES_1, .limits = NULL),
    RESIZE_ROWS("upsample_nearest2d", 2, "", SCALES_2, .limits = NULL),
    RESIZE_ROWS("upsample_nearest3d", 3, "", SCALES_3, .limits = NULL),
    RESIZE_ROWS("_upsample_nearest_exact1d", 1, "", SCALES_1, .limits = NULL),
    RESIZE_ROWS("_upsample_nearest_exact2d", 2, "", SCALES_2, .limits = NULL),
    RESIZE_ROWS("_upsample_nearest_exact3d", 3, "", SCALES_3, .limits = NULL),
    RESIZE_ROWS("upsample_linear1d", 1, CORNERS, SCALES_1, .limits = NULL),
    RESIZE_ROWS("upsample_bilinear2d", 2, CORNERS, SCALES_2, .limits = "not uint8"),
    RESIZE_ROWS("upsample_trilinear3d", 3, CORNERS, SCALES_3, .limits = NULL),
    RESIZE_ROWS("upsample_bicubic2d", 2, CORNERS, SCALES_2, .limits = "not uint8"),
    RESIZE_ROWS("_upsample_bilinear2d_aa", 2, CORNERS, SCALES_2, .limits = "not uint8"),
    RESIZE_ROWS("_upsample_bicubic2d_aa", 2, CORNERS, SCALES_2, .limits = "not uint8"),
    { 0 },
};
