/* Padding, and the windows of images as columns.
 *
 * PyTorch lists pads from the last dim on, (before, after) for each; a negative one crops.  ONNX's
 * Pad says it where no pad of a mode other than constant is negative; else, and for circular pads,
 * which ONNX Runtime's Pad gets wrong, each dim is gathered by index. */
#include "aten/lower.h"

typedef enum PadMode { PAD_CONSTANT, PAD_REFLECT, PAD_REPLICATE, PAD_CIRCULAR } PadMode;

static const char *const pad_modes[] = { "constant", "reflect", "replicate", "circular" };
static const char *const onnx_modes[] = { "constant", "reflect", "edge" };

static Dim pad_at(Dims *t, const Call *c, const char *name, int rank_, int dim, bool after)
{
    int k = 2 * (rank_ - 1 - dim) + after;
    return k < list_len(c, name) ? dim_item(c, name, k) : p2o_dim_int(t, 0);
}

static void shape_padded(Infer *in, const Call *c, const char *name)
{
    Type x = type_arg(c, "self");
    int  n = list_len(c, name);
    Dim *at = p2o_shape_copy(in->arena, x.shape, 0);
    if (n % 2 || n / 2 > x.shape.rank) {
        rule_fail(in, "%d pads for rank %d", n, x.shape.rank);
        return;
    }
    for (int i = 0; i < x.shape.rank; i++) {
        at[i] = p2o_dim_add(in->dims, at[i], pad_at(in->dims, c, name, x.shape.rank, i, false));
        at[i] = p2o_dim_add(in->dims, at[i], pad_at(in->dims, c, name, x.shape.rank, i, true));
        if (p2o_dim_lt(in->dims, at[i], int_dim(in, 0)) == YES) {
            rule_fail(in, "pads take more than size %s", p2o_dim_text(in->dims, x.shape.at[i]));
            return;
        }
    }
    set_out(in, c, 0, x.dtype, (Shape){ x.shape.rank, at });
}

static bool is_never_negative(Lower *lo, Dim d)
{
    int64_t low, high;
    p2o_dim_range(lo->dims, d, &low, &high);
    return low >= 0;
}

static Dim positive_part(Lower *lo, Dim d)
{
    return p2o_dim_max(lo->dims, d, p2o_dim_int(lo->dims, 0));
}

/* What is left of the dim by negative pads goes round: ((at - before) mod left) + cropped. */
static Value *circular_index(Lower *lo, Dim n, Dim before, Dim after)
{
    Dims  *t = lo->dims;
    Dim    front = positive_part(lo, before), cropped = positive_part(lo, p2o_dim_neg(t, before));
    Dim left = p2o_dim_sub(t, p2o_dim_sub(t, n, cropped), positive_part(lo, p2o_dim_neg(t, after)));
    Value *at = iota(lo, p2o_dim_add(t, n, p2o_dim_add(t, before, after)));
    if (!dim_is(front, 0))
        at = emit(lo, ONNX_Sub, at, dim_value(lo, front));
    at = emit(lo, ONNX_Mod, at, dim_value(lo, left));
    return dim_is(cropped, 0) ? at : emit(lo, ONNX_Add, at, dim_value(lo, cropped));
}

/* Which element of a dim of size n lies at each place of the padded one. */
static Value *pad_index(Lower *lo, Dim n, Dim before, Dim after, PadMode mode)
{
    if (mode == PAD_CIRCULAR)
        return circular_index(lo, n, before, after);
    Value *at = iota(lo, p2o_dim_add(lo->dims, n, p2o_dim_add(lo->dims, before, after)));
    Value *last = dim_value(lo, p2o_dim_sub(lo->dims, n, p2o_dim_int(lo->dims, 1)));
    if (!dim_is(before, 0))
        at = emit(lo, ONNX_Sub, at, dim_value(lo, before));
    if (mode == PAD_REPLICATE)
        return emit(lo, ONNX_Min, emit(lo, ONNX_Max, at, INTS(lo, 0)), last);
    at = emit(lo, ONNX_Sub, last, emit(lo, ONNX_Abs, at));              /* last - |last - |at|| */
    return emit(lo, ONNX_Sub, last, emit(lo, ONNX_Abs, at));
}

static Value *pad_by_index(Lower *lo, const Call *c, const char *name, Value *x, PadMode mode)
{
    Shape to = out_shape(c, 0);
    for (int i = 0; i < to.rank; i++) {
        Dim before = pad_at(lo->dims, c, name, to.rank, i, false);
        Dim after = pad_at(lo->dims, c, name, to.rank, i, true);
        if (!dim_is(before, 0) || !dim_is(after, 0))
            x = emit_with(lo, ONNX_Gather, ATTRS(attr_int("axis", i)), x,
                          pad_index(lo, size_at(x, i), before, after, mode));
    }
    return x;
}

/* All dims are listed: behind a Transpose, ONNX Runtime permutes the pads as if they were, whatever
 * the axes say. */
static Value *pad_node(Lower *lo, const Call *c, const char *name, Value *x, PadMode mode,
                       Value *fill)
{
    int  n = rank(x);
    bool idle = true;
    Dim  pads[2 * MAX_RANK];
    for (int i = 0; i < 2 * n; i++) {
        pads[i] = pad_at(lo->dims, c, name, n, i % n, i >= n);
        idle = idle && dim_is(pads[i], 0);
    }
    if (idle)
        return x;
    Value *by = shape_value(lo, (Shape){ 2 * n, pads });
    if (mode == PAD_CONSTANT)
        return emit(lo, ONNX_Pad, x, by, fill);
    return emit_with(lo, ONNX_Pad, ATTRS(attr_str("mode", onnx_modes[mode])), x, by);
}

static Value *pad_value(Lower *lo, const Call *c, const char *name, PadMode mode, Value *fill)
{
    Value *x = tensor_arg(lo, c, "self");
    bool   grows = true;
    for (int i = 0; i < list_len(c, name); i++)
        grows &= is_never_negative(lo, dim_item(c, name, i));
    if (mode == PAD_CONSTANT || (grows && mode != PAD_CIRCULAR))
        return pad_node(lo, c, name, x, mode, fill);
    return pad_by_index(lo, c, name, x, mode);
}

/* NULL is 0. */
static Value *fill_of(Lower *lo, const Call *c)
{
    double f;
    bool   zero = p2o_number_is_const(p2o_call_arg(c, "value"), &f) && f == 0;
    return has_arg(c, "value") && !zero ? number_arg(lo, c, "value", out_dtype(c, 0)) : NULL;
}

static bool find_mode(const char *name, PadMode *mode)
{
    for (size_t i = 0; i < COUNT_OF(pad_modes); i++) {
        if (name && same(name, pad_modes[i])) {
            *mode = (PadMode)i;
            return true;
        }
    }
    return false;
}

/* What is mirrored must be there. */
static void needs_reflected(Infer *in, const Call *c, const char *name)
{
    Shape s = shape_arg(c, "self");
    for (int i = 0; i < 2 * s.rank; i++) {
        Dim pad = pad_at(in->dims, c, name, s.rank, i / 2, i % 2);
        if (!dim_is(pad, 0))
            needs_le(in, p2o_dim_add(in->dims, pad, int_dim(in, 1)), s.at[i / 2],
                     "reflected pads are smaller than the size");
    }
}

static void shape_pad(Infer *in, const Call *c)
{
    PadMode mode;
    bool    known = find_mode(str_arg(c, "mode"), &mode);
    if (known)
        shape_padded(in, c, "pad");
    if (known && mode == PAD_REFLECT)
        needs_reflected(in, c, "pad");
    if (!known)
        rule_unsupported(in, "mode '%s'", str_arg(c, "mode"));
}

static Value *lower_pad(Lower *lo, const Call *c)
{
    PadMode mode = PAD_CONSTANT;
    find_mode(str_arg(c, "mode"), &mode);
    return pad_value(lo, c, "pad", mode, mode == PAD_CONSTANT ? fill_of(lo, c) : NULL);
}

static void shape_pad_enum(Infer *in, const Call *c)
{
    int64_t mode = int_arg(c, "mode");
    if (mode >= 0 && mode < (int64_t)COUNT_OF(pad_modes))
        shape_padded(in, c, "pad");
    else
        rule_fail(in, "mode %lld", (long long)mode);
}

static Value *lower_pad_enum(Lower *lo, const Call *c)
{
    PadMode mode = (PadMode)int_arg(c, "mode");
    return pad_value(lo, c, "pad", mode, mode == PAD_CONSTANT ? fill_of(lo, c) : NULL);
}

static void shape_constant_pad(Infer *in, const Call *c) { shape_padded(in, c, "pad"); }
static void shape_window_pad(Infer *in, const Call *c) { shape_padded(in, c, "padding"); }

static void shape_reflection_pad(Infer *in, const Call *c)
{
    shape_padded(in, c, "padding");
    needs_reflected(in, c, "padding");
}

static Value *lower_constant_pad(Lower *lo, const Call *c)
{
    return pad_value(lo, c, "pad", PAD_CONSTANT, fill_of(lo, c));
}

static Value *lower_reflection_pad(Lower *lo, const Call *c)
{
    return pad_value(lo, c, "padding", PAD_REFLECT, NULL);
}

static Value *lower_replication_pad(Lower *lo, const Call *c)
{
    return pad_value(lo, c, "padding", PAD_REPLICATE, NULL);
}

static Value *lower_circular_pad(Lower *lo, const Call *c)
{
    return pad_value(lo, c, "pad", PAD_CIRCULAR, NULL);
}

/* Sequences of different lengths, each padded to the longest, side by side. */
static void shape_pad_sequence(Infer *in, const Call *c)
{
    int       n = list_len(c, "sequences");
    Promotion p = { 0 };
    Dim      *lengths = NEW_N(in->arena, Dim, (size_t)n + 1);
    if (n == 0 || type_item(c, "sequences", 0).shape.rank == 0) {
        rule_fail(in, "no sequences");
        return;
    }
    Shape first = type_item(c, "sequences", 0).shape;
    for (int i = 0; i < n; i++) {
        Type t = type_item(c, "sequences", i);
        promote_type(&p, t);
        if (t.shape.rank != first.rank) {
            rule_fail(in, "sequence %d has rank %d against %d", i, t.shape.rank, first.rank);
            return;
        }
        for (int k = 1; k < first.rank; k++)
            if (!must_equal(in, c, first.at[k], t.shape.at[k], "sizes beside the length"))
                return;
        lengths[i] = t.shape.at[0];
    }
    Shape s = with_dim(in, first, 0, p2o_dim_max_of(in->dims, n, lengths));
    set_out(in, c, 0, promoted(&p),
            insert_dim(in, s, bool_arg(c, "batch_first") ? 0 : 1, int_dim(in, n)));
}

static Value *lower_pad_sequence(Lower *lo, const Call *c)
{
    VEC(Value *) v = { 0 };
    bool first = bool_arg(c, "batch_first"), left = same(str_arg(c, "padding_side"), "left");
    Dim          longest = out_shape(c, 0).at[first ? 1 : 0], zero = p2o_dim_int(lo->dims, 0);
    Value       *fill = number_arg(lo, c, "padding_value", out_dtype(c, 0));
    for (int i = 0; i < list_len(c, "sequences"); i++) {
        Value *x = cast(lo, tensor_item(lo, c, "sequences", i), out_dtype(c, 0));
        Dim    more = p2o_dim_sub(lo->dims, longest, size_at(x, 0)), pads[2 * MAX_RANK];
        for (int k = 0; k < 2 * rank(x); k++)
            pads[k] = k == (left ? 0 : rank(x)) ? more : zero;
        if (!dim_is(more, 0))
            x = emit(lo, ONNX_Pad, x, shape_value(lo, (Shape){ 2 * rank(x), pads }), fill);
        VEC_PUSH(lo->arena, &v, unsqueeze(lo, x, first ? 0 : 1));
    }
    return concat(lo, first ? 0 : 1, v.at, (int)v.n);
}

/* A window along one of the two last dims. */
typedef struct Patch {
    int64_t size, dilation, padding, stride;
} Patch;

static bool patch_of(Infer *in, const Call *c, int i, Patch *w)
{
    int64_t v[4][2];
    static const char *const names[] = { "kernel_size", "dilation", "padding", "stride" };
    for (int k = 0; k < 4; k++)
        if (!const_ints(in, c, names[k], 2, v[k]))
            return false;
    *w = (Patch){ v[0][i], v[1][i], v[2][i], v[3][i] };
    if (w->size < 1 || w->dilation < 1 || w->padding < 0 || w->stride < 1) {
        rule_fail(in, "a window of size %lld, dilation %lld, padding %lld, stride %lld",
                  (long long)w->size, (long long)w->dilation, (long long)w->padding,
                  (long long)w->stride);
        return false;
    }
    return true;
}

static Patch patch_at(Lower *lo, const Call *c, int i)
{
    return (Patch){ ints_arg(lo, c, "kernel_size", 2)[i], ints_arg(lo, c, "dilation", 2)[i],
                     ints_arg(lo, c, "padding", 2)[i], ints_arg(lo, c, "stride", 2)[i] };
}

/* How many windows there are in a size. */
static Dim patch_count(Dims *t, Dim size, const Patch *w)
{
    int64_t span = 2 * w->padding - w->dilation * (w->size - 1) - 1;
    Dim     over = p2o_dim_add(t, size, p2o_dim_int(t, span));
    return p2o_dim_add(t, p2o_dim_floordiv(t, over, p2o_dim_int(t, w->stride)), p2o_dim_int(t, 1));
}

/* [size, count]: which element each window has at each place. */
static Value *patch_index(Lower *lo, const Patch *w, Dim count)
{
    Value *inside = range_of(lo, p2o_dim_int(lo->dims, w->size), w->dilation);
    return emit(lo, ONNX_Add, unsqueeze(lo, inside, 1), range_of(lo, count, w->stride));
}

/* [n, c, h, w] -> [n, c * kh * kw, windows]; n may be missing. */
static void shape_im2col(Infer *in, const Call *c)
{
    Type   x = type_arg(c, "self");
    Patch w[2];
    int    n = x.shape.rank;
    if (n != 3 && n != 4) {
        rule_fail(in, "rank %d against 3 or 4", n);
        return;
    }
    if (!patch_of(in, c, 0, &w[0]) || !patch_of(in, c, 1, &w[1]))
        return;
    Dim depth = p2o_dim_mul(in->dims, dim_at(x.shape, -3), int_dim(in, w[0].size * w[1].size));
    Dim count = p2o_dim_mul(in->dims, patch_count(in->dims, dim_at(x.shape, -2), &w[0]),
                            patch_count(in->dims, dim_at(x.shape, -1), &w[1]));
    Shape s =
        concat_shapes(in, slice_shape(x.shape, 0, n - 3), (Shape){ 2, (Dim[]){ depth, count } });
    set_out(in, c, 0, x.dtype, s);
}

static Value *lower_im2col(Lower *lo, const Call *c)
{
    Value *x = tensor_arg(lo, c, "self");
    Patch h = patch_at(lo, c, 0), w = patch_at(lo, c, 1);
    int    n = rank(x);
    Dims  *t = lo->dims;
    Dim    rows = patch_count(t, size_at(x, -2), &h), cols = patch_count(t, size_at(x, -1), &w);
    x = pad_axes(lo, x, n - 2, 2,
                 (Dim[]){ p2o_dim_int(t, h.padding), p2o_dim_int(t, w.padding),
                          p2o_dim_int(t, h.padding), p2o_dim_int(t, w.padding) },
                 0);
    x = windows(lo, x, n - 1, cols, p2o_dim_int(t, w.size), w.stride, w.dilation);
    x = windows(lo, x, n - 2, rows, p2o_dim_int(t, h.size), h.stride, h.dilation);
    static const int64_t order[] = { 1, 3, 0, 2 };          /* of rows, kh, cols, kw */
    int64_t perm[6];
    for (int i = 0; i < n + 2; i++)
        perm[i] = i < n - 2 ? i : n - 2 + order[i - (n - 2)];
    return reshape(lo, transpose(lo, x, perm), out_shape(c, 0));
}

static void shape_col2im(Infer *in, const Call *c)
{
    Type   x = type_arg(c, "self");
    Patch w[2];
    int    n = x.shape.rank;
    if ((n != 2 && n != 3) || list_len(c, "output_size") != 2) {
        rule_fail(in, "rank %d against 2 or 3, or an output size that is not of two", n);
        return;
    }
    if (!patch_of(in, c, 0, &w[0]) || !patch_of(in, c, 1, &w[1]))
        return;
    Dim h = dim_item(c, "output_size", 0), v = dim_item(c, "output_size", 1);
    Dim area = int_dim(in, w[0].size * w[1].size);
    Dim depth = p2o_dim_exact_div(in->dims, dim_at(x.shape, -2), area);
    if (!depth)
        depth = p2o_dim_floordiv(in->dims, dim_at(x.shape, -2), area);
    Dim count =
        p2o_dim_mul(in->dims, patch_count(in->dims, h, &w[0]), patch_count(in->dims, v, &w[1]));
    if ((has_open(in, count) ||
         must_equal(in, c, dim_at(x.shape, -1), count, "number of windows")) &&
        must_equal(in, c, dim_at(x.shape, -2), p2o_dim_mul(in->dims, depth, area),
                   "elements of a window"))
        set_out(in, c, 0, x.dtype,
                concat_shapes(in, slice_shape(x.shape, 0, n - 2),
                              (Shape){ 3, (Dim[]){ depth, h, v } }));
}

/* Elements of all windows added up where they lie in the padded image, which is then cropped. */
static Value *add_windows(Lower *lo, const Call *c, Value *x, Patch h, Patch w)
{
    Dims  *t = lo->dims;
    Shape  to = out_shape(c, 0);
    int    n = to.rank;
    Dim    high = p2o_dim_add(t, dim_at(to, -2), p2o_dim_int(t, 2 * h.padding));
    Dim    wide = p2o_dim_add(t, dim_at(to, -1), p2o_dim_int(t, 2 * w.padding));
    Value *rows = patch_index(lo, &h, patch_count(t, dim_at(to, -2), &h));
    Value *cols = patch_index(lo, &w, patch_count(t, dim_at(to, -1), &w));
    rows = emit(lo, ONNX_Mul, rows, dim_scalar(lo, wide));
    Value *at = emit(lo, ONNX_Add, emit(lo, ONNX_Unsqueeze, rows, INTS(lo, 1, 3)),
                     emit(lo, ONNX_Unsqueeze, cols, INTS(lo, 0, 2)));   /* kh, kw, rows, cols */
    Dim   *flat_image = p2o_shape_copy(lo->arena, to, 0),
        *flat_windows = p2o_shape_copy(lo->arena, to, 0);
    Dim  *image = p2o_shape_copy(lo->arena, to, 0);
    flat_image[n - 2] = p2o_dim_mul(t, high, wide);
    flat_windows[n - 2] = p2o_dim_mul(t, p2o_dim_int(t, h.size * w.size), size_at(x, -1));
    image[n - 2] = high;
    image[n - 1] = wide;
    Shape  all = { n - 1, flat_windows };
    Value *index = expand(lo, reshape(lo, at, (Shape){ 1, &flat_windows[n - 2] }), all);
    Value *y = full(lo, (Shape){ n - 1, flat_image }, x->dtype, 0);
    y = scatter_with(lo, ONNX_ScatterElements, n - 2, y, index, reshape(lo, x, all), "add");
    y = reshape(lo, y, (Shape){ n, image });
    if (!h.padding && !w.padding)
        return y;
    return emit(
        lo, ONNX_Slice, y, INTS(lo, h.padding, w.padding),
        shape_value(
            lo, (Shape){ 2, (Dim[]){ p2o_dim_add(t, dim_at(to, -2), p2o_dim_int(t, h.padding)),
                                     p2o_dim_add(t, dim_at(to, -1), p2o_dim_int(t, w.padding)) } }),
        INTS(lo, n - 2, n - 1));
}

/* Col2Im has kernels for f32 only, f16 through it. */
static Value *lower_col2im(Lower *lo, const Call *c)
{
    Value *x = tensor_arg(lo, c, "self");
    Patch h = patch_at(lo, c, 0), w = patch_at(lo, c, 1);
    if (lo->opset < 18 || rank(x) != 3 || (x->dtype != DT_F32 && x->dtype != DT_F16))
        return add_windows(lo, c, x, h, w);
    int64_t *v = NEW_N(lo->arena, int64_t, 8);
    memcpy(v,
           (int64_t[]){ h.dilation, w.dilation, h.padding, w.padding, h.padding, w.padding,
                        h.stride, w.stride },
           8 * sizeof *v);
    return emit_with(lo, ONNX_Col2Im,
                     ATTRS(attr_ints("dilations", v, 2), attr_ints("pads", v + 2, 4),
                           attr_ints("strides", v + 6, 2)),
                     x, shape_value(lo, slice_shape(out_shape(c, 0), 2, 4)),
                     INTS(lo, h.size, w.size));
}

/* [.., c * r * r, h, w] <-> [.., c, h * r, w * r] */
static void shape_pixel_shuffle(Infer *in, const Call *c)
{
    Type    x = type_arg(c, "self");
    int64_t r = int_arg(c, "upscale_factor");
    if (x.shape.rank < 3 || r < 1 || r > INT32_MAX) {
        rule_fail(in, "rank %d, factor %lld", x.shape.rank, (long long)r);
        return;
    }
    Dim depth = p2o_dim_floordiv(in->dims, dim_at(x.shape, -3), int_dim(in, r * r));
    if (!must_equal(in, c, dim_at(x.shape, -3), p2o_dim_mul(in->dims, depth, int_dim(in, r * r)),
                    "channels"))
        return;
    Shape s = with_dim(in, x.shape, x.shape.rank - 3, depth);
    s = with_dim(in, s, s.rank - 2, p2o_dim_mul(in->dims, dim_at(s, -2), int_dim(in, r)));
    set_out(in, c, 0, x.dtype,
            with_last(in, s, p2o_dim_mul(in->dims, dim_at(s, -1), int_dim(in, r))));
}

/* The last dims split into given ones, these permuted, and joined to the result. */
static Value *regrouped(Lower *lo, Value *x, int from, int n, const Dim *parts,
                        const int64_t *order, Shape to)
{
    Dim    *at = NEW_N(lo->arena, Dim, (size_t)(from + n));
    int64_t perm[MAX_RANK + 8];
    for (int i = 0; i < from + n; i++) {
        at[i] = i < from ? size_at(x, i) : parts[i - from];
        perm[i] = i < from ? i : from + order[i - from];
    }
    return reshape(lo, transpose(lo, reshape(lo, x, (Shape){ from + n, at }), perm), to);
}

static Value *lower_pixel_shuffle(Lower *lo, const Call *c)
{
    Value  *x = tensor_arg(lo, c, "self");
    int64_t n = int_arg(c, "upscale_factor");
    Dim     r = p2o_dim_int(lo->dims, n);
    Shape   to = out_shape(c, 0);
    if (rank(x) == 4 && is_float(x->dtype))
        return emit_with(lo, ONNX_DepthToSpace,
                         ATTRS(attr_int("blocksize", n), attr_str("mode", "CRD")), x);
    return regrouped(lo, x, rank(x) - 3, 5,
                     (Dim[]){ dim_at(to, -3), r, r, size_at(x, -2), size_at(x, -1) },
                     (int64_t[]){ 0, 3, 1, 4, 2 }, to);
}

static void shape_pixel_unshuffle(Infer *in, const Call *c)
{
    Type    x = type_arg(c, "self");
    int64_t r = int_arg(c, "downscale_factor");
    if (x.shape.rank < 3 || r < 1 || r > INT32_MAX) {
        rule_fail(in, "rank %d, factor %lld", x.shape.rank, (long long)r);
        return;
    }
    Dim by = int_dim(in, r), h = p2o_dim_floordiv(in->dims, dim_at(x.shape, -2), by);
    Dim w = p2o_dim_floordiv(in->dims, dim_at(x.shape, -1), by);
    if (!must_equal(in, c, dim_at(x.shape, -2), p2o_dim_mul(in->dims, h, by), "rows") ||
        !must_equal(in, c, dim_at(x.shape, -1), p2o_dim_mul(in->dims, w, by), "columns"))
        return;
    Dim   depth = p2o_dim_mul(in->dims, dim_at(x.shape, -3), int_dim(in, r * r));
    Shape s = with_dim(in, x.shape, x.shape.rank - 3, depth);
    set_out(in, c, 0, x.dtype, with_last(in, with_dim(in, s, s.rank - 2, h), w));
}

static Value *lower_pixel_unshuffle(Lower *lo, const Call *c)
{
    Value *x = tensor_arg(lo, c, "self");
    Dim    r = p2o_dim_int(lo->dims, int_arg(c, "downscale_factor"));
    Shape  to = out_shape(c, 0);
    return regrouped(lo, x, rank(x) - 3, 5,
                     (Dim[]){ size_at(x, -3), dim_at(to, -2), r, dim_at(to, -1), r },
                     (int64_t[]){ 0, 2, 4, 1, 3 }, to);
}

static void shape_channel_shuffle(Infer *in, const Call *c)
{
    Type x = type_arg(c, "self");
    int64_t groups;
    if (x.shape.rank < 3) {
        rule_fail(in, "rank %d", x.shape.rank);
        return;
    }
    if (!const_dim(in, dim_arg(c, "groups"), "groups", &groups))
        return;
    Dim each = p2o_dim_floordiv(in->dims, x.shape.at[1], int_dim(in, groups));
    if (must_equal(in, c, x.shape.at[1], p2o_dim_mul(in->dims, each, int_dim(in, groups)),
                   "channels"))
        set_out(in, c, 0, x.dtype, x.shape);
}

/* [n, groups, c / groups, ..] with the two swapped. */
static Value *lower_channel_shuffle(Lower *lo, const Call *c)
{
    Value  *x = tensor_arg(lo, c, "self");
    int     n = rank(x);
    Dim     groups = dim_arg(c, "groups"), parts[MAX_RANK + 1];
    int64_t order[MAX_RANK + 1];
    parts[0] = groups;
    parts[1] = p2o_dim_floordiv(lo->dims, size_at(x, 1), groups);
    for (int i = 2; i < n; i++)
        parts[i] = size_at(x, i);
    for (int i = 0; i < n; i++)
        order[i] = i < 2 ? 1 - i : i;
    return regrouped(lo, x, 1, n, parts, order, x->shape);
}

#define PADDING(kind, n, size, rule, fn) \
    { kind "_pad" n "(Tensor self, SymInt[" size "] padding) -> Tensor", rule, .lower = fn, \
      .roles = "padding:pad", .idle = p2o_idle_zeros }

const AtenOp p2o_ops_pad[] = {
    { "constant_pad_nd(Tensor self, SymInt[] pad, Scalar value=0) -> Tensor", shape_constant_pad,
      .lower = lower_constant_pad, .roles = "pad:pad", .idle = p2o_idle_zeros },
    { "pad(Tensor self, SymInt[] pad, str mode=\"constant\", float? value=None) -> Tensor",
      shape_pad, .lower = lower_pad, .roles = "pad:pad", .idle = p2o_idle_zeros,
      .limits = "modes constant, reflect, replicate, circular" },
    { "_pad_enum(Tensor self, SymInt[] pad, int mode, float? value=None) -> Tensor", shape_pad_enum,
      .lower = lower_pad_enum, .roles = "pad:pad", .idle = p2o_idle_zeros },
    { "_pad_circular(Tensor self, SymInt[] pad) -> Tensor", shape_constant_pad,
      .lower = lower_circular_pad, .roles = "pad:pad", .idle = p2o_idle_zeros },
    PADDING("reflection", "1d", "2", shape_reflection_pad, lower_reflection_pad),
    PADDING("reflection", "2d", "4", shape_reflection_pad, lower_reflection_pad),
    PADDING("reflection", "3d", "6", shape_reflection_pad, lower_reflection_pad),
    PADDING("replication", "1d", "2", shape_window_pad, lower_replication_pad),
    PADDING("replication", "2d", "4", shape_window_pad, lower_replication_pad),
    PADDING("replication", "3d", "6", shape_window_pad, lower_replication_pad),
    { "pad_sequence(Tensor[] sequences, bool batch_first=False, float padding_value=0.0, str padding_side=\"right\") -> Tensor",
      shape_pad_sequence, .lower = lower_pad_sequence },
    { "im2col(Tensor self, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride) -> Tensor",
      shape_im2col, .lower = lower_im2col },
    { "col2im(Tensor self, SymInt[2] output_size, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride) -> Tensor",
      shape_col2im, .lower = lower_col2im },
    { "pixel_shuffle(Tensor self, int upscale_factor) -> Tensor", shape_pixel_shuffle,
      .lower = lower_pixel_shuffle },
    { "pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor", shape_pixel_unshuffle,
      .lower = lower_pixel_unshuffle },
    { "channel_shuffle(Tensor self, SymInt groups) -> Tensor", shape_channel_shuffle,
      .lower = lower_channel_shuffle },
    { "native_channel_shuffle(Tensor self, SymInt groups) -> Tensor", shape_channel_shuffle,
      .lower = lower_channel_shuffle },
    { 0 },
};
