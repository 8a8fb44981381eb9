/* Pooling.
 *
 * What ONNX's pools mean the same by is one node.  The rest is gathered: an axis of size I becomes
 * [out, kernel], element k of window o lying at base[o] + k * dilation, and the kernel axes are
 * reduced. That needs no size at conversion, so adaptive pools with any sizes are done so too. */
#include "aten/lower.h"

#include <math.h>

typedef struct PoolSizes {
    /* 1, 1, 0 and 1 of axes that are reduced whole */
    int64_t kernel[3], stride[3], padding[3], dilation[3];
    Dim     reach[3], step[3];  /* kernel and stride as they are where `varies` */
    bool    whole[3];           /* the kernel is the axis, whose size is not known here */
    bool    varies;             /* a kernel or stride follows a size: by windows */
    int     n;                  /* spatial dims */
    bool    ceil;
} PoolSizes;

static int64_t pool_reach(const PoolSizes *v, int i)
{
    return v->dilation[i] * (v->kernel[i] - 1) + 1;
}

/* A list of one stands for equal ones. */
static Dim pool_dim(const Call *c, const char *name, int i)
{
    return dim_item(c, name, list_len(c, name) == 1 ? 0 : i);
}

static int64_t pool_item(const Call *c, const char *name, int i)
{
    return int_item(c, name, list_len(c, name) == 1 ? 0 : i);
}

/* Without one windows do not overlap. */
static const char *stride_name(const Call *c)
{
    return list_len(c, "stride") ? "stride" : "kernel_size";
}

static int pool_dims(const Call *c)
{
    return c->schema->args[p2o_schema_find(c->schema, "kernel_size")].list_size;
}

static int64_t pool_dilation(const Call *c, int i)
{
    return names_arg(c, "dilation") ? pool_item(c, "dilation", i) : 1;
}

/* A kernel that is no number, and exactly the axis. */
static bool is_whole_axis(const Call *c, int i)
{
    Dim size = dim_at(shape_arg(c, "self"), i - pool_dims(c));
    Dim kernel = pool_dim(c, "kernel_size", i);
    return !p2o_dim_is_int(kernel, NULL) && kernel == size && pool_item(c, "padding", i) == 0 &&
           pool_dilation(c, i) == 1;
}

/* As many as the schema says: int[2] kernel_size. */
static PoolSizes pool_sizes(Dims *t, const Call *c)
{
    PoolSizes v = { .ceil = bool_arg(c, "ceil_mode"), .n = pool_dims(c) };
    for (int i = 0; i < v.n; i++) {
        v.whole[i] = is_whole_axis(c, i);
        v.reach[i] = v.whole[i] ? p2o_dim_int(t, 1) : pool_dim(c, "kernel_size", i);
        v.step[i] = v.whole[i] ? p2o_dim_int(t, 1) : pool_dim(c, stride_name(c), i);
        v.varies |= !p2o_dim_is_int(v.reach[i], &v.kernel[i]);
        v.varies |= !p2o_dim_is_int(v.step[i], &v.stride[i]);
        v.padding[i] = pool_item(c, "padding", i);
        v.dilation[i] = v.whole[i] ? 1 : pool_dilation(c, i);
    }
    return v;
}

static bool is_pool_list(Infer *in, const Call *c, const char *name, int n, bool may_be_empty)
{
    int have = list_len(c, name);
    if (have == 1 || have == n || (have == 0 && may_be_empty))
        return true;
    rule_fail(in, "%s has %d entries, expected %d", name, have, n);
    return false;
}

static bool are_pool_lists(Infer *in, const Call *c)
{
    int n = pool_dims(c), rank_ = shape_arg(c, "self").rank;
    if (!is_pool_list(in, c, "kernel_size", n, false) || !is_pool_list(in, c, "stride", n, true) ||
        !is_pool_list(in, c, "padding", n, false) ||
        (names_arg(c, "dilation") && !is_pool_list(in, c, "dilation", n, false)))
        return false;
    if (rank_ == n + 1 || rank_ == n + 2)
        return true;
    rule_fail(in, "input of rank %d for %d spatial dims", rank_, n);
    return false;
}

static bool was_alike(Infer *in, Dim a, Dim b)
{
    int64_t x, y;
    for (int k = 0; k < p2o_ncapture(in->bind); k++)
        if (!p2o_hint_at(in->bind, a, k, &x) || !p2o_hint_at(in->bind, b, k, &y) || x != y)
            return false;
    return true;
}

/* A kernel that was another number in each capture, each time the size of its own axis, is that
 * size. */
static Dim settled_as(Infer *in, const Call *c, Dim open, Dim size, const char *what)
{
    open = p2o_resolve(in->bind, open);
    if (has_open(in, open) && !has_open(in, size) && was_alike(in, open, size))
        must_equal(in, c, open, size, what);
    return p2o_resolve(in->bind, open);
}

/* A stride without a kernel that is known says nothing. */
static bool is_pool_open(Infer *in, const Call *c, Shape x, int lead)
{
    bool open = false;
    for (int i = 0; i < pool_dims(c); i++) {
        Dim size = p2o_resolve(in->bind, x.at[lead + i]);
        Dim kernel = pool_dim(c, "kernel_size", i), stride = pool_dim(c, stride_name(c), i);
        kernel = settled_as(in, c, kernel, size, "a kernel of the whole axis");
        stride = settled_as(in, c, stride, size, "a stride of the whole axis");
        open |= has_open(in, kernel) || (kernel != size && has_open(in, stride));
    }
    return open;
}

static bool is_pool_sound(Infer *in, const PoolSizes *sizes)
{
    PoolSizes v = *sizes;
    for (int i = 0; i < v.n && !v.varies; i++) {
        if (v.kernel[i] < 1 || v.stride[i] < 1 || v.dilation[i] < 1 || v.padding[i] < 0 ||
            v.padding[i] > pool_reach(&v, i) / 2) {
            rule_fail(in, "kernel_size, stride, padding or dilation out of range");
            return false;
        }
    }
    return true;
}

/* In ceil mode a last window may hang over the end, but must start in the input or before it. */
static bool may_start_behind(const PoolSizes *v, int i)
{
    return v->ceil && v->padding[i] > pool_reach(v, i) - v->stride[i];
}

static Dim pool_out(Infer *in, Dim size, const PoolSizes *v, int i)
{
    Dims *t = in->dims;
    Dim   stride = int_dim(in, v->stride[i]), one = int_dim(in, 1);
    Dim   room = p2o_dim_add(t, size, int_dim(in, 2 * v->padding[i] - pool_reach(v, i)));
    if (v->whole[i]) {
        needs_le(in, one, size, "the pooled axis is not empty");
        return one;
    }
    needs_le(in, v->ceil ? int_dim(in, 1 - v->stride[i]) : int_dim(in, 0), room,
             "the kernel fits into the padded input");
    if (!v->ceil)
        return p2o_dim_add(t, p2o_dim_floordiv(t, room, stride), one);
    Dim count = p2o_dim_add(t, p2o_dim_ceildiv(t, room, stride), one);
    if (!may_start_behind(v, i))
        return count;
    Dim end = p2o_dim_add(t, size, int_dim(in, v->padding[i]));
    return p2o_dim_min(t, count, p2o_dim_ceildiv(t, end, stride));
}

/* With a kernel or stride that follows a size, or is still open:
 * (size + 2 padding - reach) / stride + 1. */
static Dim varying_pool_out(Infer *in, const Call *c, int i, Dim size)
{
    Dims   *t = in->dims;
    int64_t dilation = pool_dilation(c, i);
    Dim     kernel = p2o_resolve(in->bind, pool_dim(c, "kernel_size", i));
    Dim     stride = p2o_resolve(in->bind, pool_dim(c, stride_name(c), i));
    Dim     reach = p2o_dim_add(
            t, p2o_dim_mul(t, p2o_dim_sub(t, kernel, int_dim(in, 1)), int_dim(in, dilation)),
            int_dim(in, 1));
    Dim     around = p2o_dim_mul(t, int_dim(in, 2), int_dim(in, pool_item(c, "padding", i)));
    Dim     room = p2o_dim_sub(t, p2o_dim_add(t, size, around), reach);
    needs_le(in, int_dim(in, 1), kernel, "the kernel is not empty");
    needs_le(in, int_dim(in, 1), stride, "a stride of at least 1");
    needs_le(in, around, reach, "padding of half the kernel");
    needs_le(in, int_dim(in, 0), room, "the kernel fits into the padded input");
    Dim steps = bool_arg(c, "ceil_mode") ? p2o_dim_ceildiv(t, room, stride)
                                         : p2o_dim_floordiv(t, room, stride);
    return p2o_dim_add(t, steps, int_dim(in, 1));
}

/* The second result, where there is one, holds positions within each plane. */
static void shape_pool(Infer *in, const Call *c)
{
    Type x = type_arg(c, "self");
    int  n = pool_dims(c), lead = x.shape.rank - n;
    if (!are_pool_lists(in, c))
        return;
    bool      open = is_pool_open(in, c, x.shape, lead);
    PoolSizes v = pool_sizes(in->dims, c);
    if (!is_pool_sound(in, &v))
        return;
    if (v.varies && !open && v.ceil) {
        rule_varies(in, "kernel_size", p2o_call_arg(c, stride_name(c)),
                    "a number or the size of the whole axis in ceil mode");
        return;
    }
    Dim *at = p2o_shape_copy(in->arena, x.shape, 0);
    for (int i = 0; i < n; i++)
        at[lead + i] = v.varies && !v.whole[i] ? varying_pool_out(in, c, i, at[lead + i])
                                               : pool_out(in, at[lead + i], &v, i);
    set_out(in, c, 0, x.dtype, (Shape){ x.shape.rank, at });
    if (nouts(c) > 1)
        set_out(in, c, 1, DT_I64, (Shape){ x.shape.rank, at });
}

/* Windows along one axis. */
typedef struct PoolWindow {
    Value  *base;               /* int64[out]: where each begins */
    Value  *last;               /* int64[out]: its last element; NULL: all have `kernel` elements */
    Dim     kernel;             /* elements of the longest */
    int64_t dilation;
} PoolWindow;

static Value *column(Lower *lo, Value *v) { return unsqueeze(lo, v, 1); }

/* int64[out, kernel]; past a window's end the positions go on. */
static Value *window_positions(Lower *lo, const PoolWindow *w)
{
    return emit(lo, ONNX_Add, column(lo, w->base), range_of(lo, w->kernel, w->dilation));
}

/* The axis as [out, kernel]; past a window's end its last element comes again. */
static Value *take_windows(Lower *lo, Value *x, int axis, const PoolWindow *w)
{
    Value *at = window_positions(lo, w);
    if (w->last)
        at = emit(lo, ONNX_Min, at, column(lo, w->last));
    return emit_with(lo, ONNX_Gather, ATTRS(attr_int("axis", axis)), x, at);
}

/* All n axes from `lead` on: [lead ..., out, kernel, out, kernel ...]. */
static Value *take_all_windows(Lower *lo, Value *x, int lead, int n, const PoolWindow *w)
{
    for (int i = 0; i < n; i++)
        x = take_windows(lo, x, lead + 2 * i, &w[i]);
    return x;
}

static Value *reduce_kernels(Lower *lo, OnnxOp op, Value *x, int lead, int n)
{
    int64_t axes[3];
    for (int i = 0; i < n; i++)
        axes[i] = lead + 2 * i + 1;
    return reduce(lo, op, x, axes, n, false);
}

/* A vector along axis `axis` of a tensor of this rank. */
static Value *along(Lower *lo, Value *v, int axis, int of_rank)
{
    int64_t axes[MAX_RANK];
    size_t  n = 0;
    for (int i = 1; i < of_rank - axis; i++)
        axes[n++] = i;
    return n ? emit(lo, ONNX_Unsqueeze, v, ints_const(lo, axes, n)) : v;
}

/* Where in its plane the first largest element of each window is.  The kernel axes are moved to the
 * end and joined; what ArgMax finds there is taken apart again, last axis first. */
static Value *window_argmax(Lower *lo, Value *taken, int lead, int n, const PoolWindow *w,
                            const Dim *sizes, const int64_t *padding)
{
    int64_t perm[MAX_RANK];
    int     r = lead + n;
    for (int i = 0; i < lead; i++)
        perm[i] = i;
    for (int i = 0; i < n; i++) {
        perm[lead + i] = lead + 2 * i;
        perm[r + i] = lead + 2 * i + 1;
    }
    taken = transpose(lo, taken, perm);
    Dim *joined = p2o_shape_copy(lo->arena, taken->shape, 0);
    joined[r] = p2o_shape_product(lo->dims, taken->shape, r, r + n);
    taken = reshape(lo, taken, (Shape){ r + 1, joined });
    Value *k =
        emit_with(lo, ONNX_ArgMax, ATTRS(attr_int("axis", r), attr_int("keepdims", 0)), taken);

    Value *at = NULL;
    Dim    row = p2o_dim_int(lo->dims, 1);
    for (int i = n - 1; i >= 0; i--) {
        Value *step = i ? emit(lo, ONNX_Mod, k, dim_value(lo, w[i].kernel)) : k;
        k = i ? emit(lo, ONNX_Div, k, dim_value(lo, w[i].kernel)) : k;
        if (w[i].dilation != 1)
            step = emit(lo, ONNX_Mul, step, INTS(lo, w[i].dilation));
        Value *p = emit(lo, ONNX_Add, step, along(lo, w[i].base, lead + i, r));
        if (w[i].last)
            p = emit(lo, ONNX_Min, p, along(lo, w[i].last, lead + i, r));
        if (padding && padding[i])
            p = emit(lo, ONNX_Sub, p, INTS(lo, padding[i]));
        if (!dim_is(row, 1))
            p = emit(lo, ONNX_Mul, p, dim_value(lo, row));
        at = at ? emit(lo, ONNX_Add, at, p) : p;
        row = p2o_dim_mul(lo->dims, row, sizes[i]);
    }
    return at;
}

static double lowest_of(DType t)
{
    switch (t) {
    case DT_I8: return INT8_MIN;
    case DT_I16: return INT16_MIN;
    case DT_I32: return INT32_MIN;
    case DT_I64: return (double)INT64_MIN;
    default: return is_float(t) ? -INFINITY : 0;
    }
}

/* Padded for windows: in ceil mode the last may need stride - 1 more. */
static Value *padded_input(Lower *lo, Value *x, int lead, const PoolSizes *v, double with)
{
    Dim pads[6];
    for (int i = 0; i < v->n; i++) {
        pads[i] = p2o_dim_int(lo->dims, v->padding[i]);
        pads[v->n + i] = p2o_dim_int(lo->dims, v->padding[i] + (v->ceil ? v->stride[i] - 1 : 0));
    }
    return pad_axes(lo, x, lead, v->n, pads, with);
}

/* 0, step, 2 step ... n of them. */
static Value *steps_of(Lower *lo, Dim n, Dim step)
{
    int64_t fixed;
    if (p2o_dim_is_int(step, &fixed))
        return range_of(lo, n, fixed);
    return emit(lo, ONNX_Mul, iota(lo, n), dim_value(lo, step));
}

static void fixed_windows(Lower *lo, const PoolSizes *v, const Dim *out, PoolWindow *w)
{
    for (int i = 0; i < v->n; i++)
        w[i] = (PoolWindow){ .base = steps_of(lo, out[i], v->step[i]), .dilation = v->dilation[i],
                             .kernel = v->reach[i] };
}

static const int64_t *kept_ints(Lower *lo, const int64_t *v, int n)
{
    int64_t *kept = NEW_N(lo->arena, int64_t, (size_t)n);
    memcpy(kept, v, (size_t)n * sizeof *kept);
    return kept;
}

static Attr pool_attr(Lower *lo, const char *name, const int64_t *v, int n)
{
    return attr_ints(name, kept_ints(lo, v, n), (size_t)n);
}

static Attr pool_pads(Lower *lo, const PoolSizes *v)
{
    int64_t pads[6];
    for (int i = 0; i < v->n; i++)
        pads[i] = pads[v->n + i] = v->padding[i];
    return pool_attr(lo, "pads", pads, 2 * v->n);
}

static bool is_constant_pad(const Value *x)
{
    return x->def && x->def->op == ONNX_Pad && !x->def->nattr;
}

/* ONNX Runtime merges a Pad with zeros into the MaxPool behind it, to which what is padded counts
 * as less than everything.  A Pad that lists its axes it leaves alone (opset 18 on). */
static Value *pad_kept_apart(Lower *lo, Value *x)
{
    const Node *pad = x->def;
    int64_t     axes[MAX_RANK];
    for (int i = 0; i < rank(x); i++)
        axes[i] = i;
    return emit(lo, ONNX_Pad, pad->in[0], pad->in[1], pad->nin > 2 ? pad->in[2] : NULL,
                ints_const(lo, axes, (size_t)rank(x)));
}

/* MaxPool; nout 2 gives positions in the whole tensor. */
static void max_pool_node(Lower *lo, Value *x, const PoolSizes *v, int nout, Value **out)
{
    emit_many(lo, ONNX_MaxPool,
              ATTRS(pool_attr(lo, "kernel_shape", v->kernel, v->n),
                    pool_attr(lo, "strides", v->stride, v->n), pool_pads(lo, v),
                    pool_attr(lo, "dilations", v->dilation, v->n),
                    attr_int("ceil_mode", v->ceil)),
              nout, out, x);
}

/* Values and positions within each plane. */
static void max_pool_batched(Lower *lo, Value *x, const PoolSizes *v, Shape out, int nout,
                             Value **result)
{
    bool merged = is_constant_pad(x) && lo->opset < 18;
    if (!v->varies && !merged &&
        (is_float(x->dtype) || x->dtype == DT_U8 || x->dtype == DT_I8)) {
        x = is_constant_pad(x) ? pad_kept_apart(lo, x) : x;
        max_pool_node(lo, x, v, nout, result);
        if (nout > 1)
            result[1] = emit(lo, ONNX_Mod, result[1],
                             dim_value(lo, p2o_shape_product(lo->dims, x->shape, 2, 2 + v->n)));
        return;
    }
    PoolWindow w[3];
    fixed_windows(lo, v, out.at + 2, w);
    Value *taken = take_all_windows(lo, padded_input(lo, x, 2, v, lowest_of(x->dtype)), 2, v->n, w);
    result[0] = reduce_kernels(lo, ONNX_ReduceMax, taken, 2, v->n);
    if (nout > 1)
        result[1] = window_argmax(lo, taken, 2, v->n, w, x->shape.at + 2, v->padding);
}

/* ONNX's pools need a batch. */
static Value *with_batch(Lower *lo, Value *x, int n)
{
    return rank(x) == n + 2 ? x : unsqueeze(lo, x, 0);
}

static Shape shape_with_batch(Lower *lo, Shape s, int n)
{
    return s.rank == n + 2 ? s : p2o_shape_insert(lo->arena, s, 0, p2o_dim_int(lo->dims, 1));
}

/* Axes that one window covers, reduced; what is left of the pool sees them as 1. */
static Value *reduce_whole(Lower *lo, OnnxOp op, Value *x, const PoolSizes *v)
{
    int64_t axes[3];
    int     n = 0;
    for (int i = 0; i < v->n; i++)
        if (v->whole[i])
            axes[n++] = rank(x) - v->n + i;
    return n ? reduce(lo, op, x, axes, n, true) : x;
}

static Dim whole_count(Lower *lo, const Value *x, const PoolSizes *v)
{
    Dim count = p2o_dim_int(lo->dims, 1);
    for (int i = 0; i < v->n; i++)
        if (v->whole[i])
            count = p2o_dim_mul(lo->dims, count, size_at(x, i - v->n));
    return count;
}

static bool has_whole(const PoolSizes *v) { return v->whole[0] || v->whole[1] || v->whole[2]; }

/* Windows of 1 everywhere. */
static bool is_done(const PoolSizes *v)
{
    for (int i = 0; i < v->n; i++)
        if (v->varies || v->kernel[i] != 1 || v->stride[i] != 1 || v->padding[i])
            return false;
    return true;
}

/* Values and positions, by windows of which some are whole axes. */
static void max_pool_whole(Lower *lo, Value *x, const PoolSizes *v, Shape out, Value **result)
{
    PoolWindow w[3];
    fixed_windows(lo, v, out.at + out.rank - v->n, w);
    for (int i = 0; i < v->n; i++)
        if (v->whole[i])
            w[i].kernel = size_at(x, i - v->n);
    int    lead = rank(x) - v->n;
    Value *taken =
        take_all_windows(lo, padded_input(lo, x, lead, v, lowest_of(x->dtype)), lead, v->n, w);
    result[0] = reduce_kernels(lo, ONNX_ReduceMax, taken, lead, v->n);
    result[1] = window_argmax(lo, taken, lead, v->n, w, x->shape.at + lead, v->padding);
}

static void lower_max_pool(Lower *lo, const Call *c, Value **out)
{
    Value    *x = tensor_arg(lo, c, "self");
    PoolSizes v = pool_sizes(lo->dims, c);
    if (has_whole(&v) && nouts(c) > 1 && c->outs[1]) {
        max_pool_whole(lo, x, &v, out_shape(c, 0), out);
        return;
    }
    x = reduce_whole(lo, ONNX_ReduceMax, x, &v);
    if (has_whole(&v) && is_done(&v)) {
        out[0] = x;
        return;
    }
    Shape s = shape_with_batch(lo, out_shape(c, 0), v.n);
    max_pool_batched(lo, with_batch(lo, x, v.n), &v, s, nouts(c), out);
    for (int i = 0; i < nouts(c) && rank(x) == v.n + 1; i++)
        out[i] = squeeze(lo, out[i], 0);
}

static Value *average_pool_node(Lower *lo, Value *x, const PoolSizes *v, bool include_pad)
{
    return emit_with(lo, ONNX_AveragePool,
                     ATTRS(pool_attr(lo, "kernel_shape", v->kernel, v->n),
                           pool_attr(lo, "strides", v->stride, v->n), pool_pads(lo, v),
                           attr_int("ceil_mode", v->ceil),
                           attr_int("count_include_pad", include_pad)),
                     x);
}

static int64_t kernel_area(const PoolSizes *v)
{
    int64_t area = 1;
    for (int i = 0; i < v->n; i++)
        area *= v->kernel[i];
    return area;
}

/* How many elements of each window count along axis i: those in [from, to) of the padded input. */
static Value *window_lengths(Lower *lo, const PoolSizes *v, int i, Value *base, Dim size,
                             bool include_pad)
{
    int64_t from = include_pad ? 0 : v->padding[i], more = v->padding[i] * (include_pad ? 2 : 1);
    Dim     to = p2o_dim_add(lo->dims, size, p2o_dim_int(lo->dims, more));
    Value  *end = emit(lo, ONNX_Add, base, dim_value(lo, v->reach[i]));
    end = emit(lo, ONNX_Min, end, dim_value(lo, to));
    return emit(lo, ONNX_Sub, end, from ? emit(lo, ONNX_Max, base, INTS(lo, from)) : base);
}

/* Sums over windows, divided by the number of elements that count: `times` as many as x shows. */
static Value *average_by_windows(Lower *lo, const Call *c, Value *x, const PoolSizes *v, Shape out,
                                 int64_t divisor, Dim times)
{
    PoolWindow w[3];
    bool       include_pad = bool_arg(c, "count_include_pad");
    fixed_windows(lo, v, out.at + 2, w);
    Value *taken = take_all_windows(lo, padded_input(lo, x, 2, v, 0), 2, v->n, w);
    Value *sum = reduce_kernels(lo, ONNX_ReduceSum, taken, 2, v->n), *count = NULL;
    if (divisor)
        return emit(lo, ONNX_Div, sum, num(lo, x->dtype, (double)divisor));
    for (int i = 0; i < v->n; i++) {
        Value *length = window_lengths(lo, v, i, w[i].base, size_at(x, 2 + i), include_pad);
        length = along(lo, length, 2 + i, 2 + v->n);
        count = count ? emit(lo, ONNX_Mul, count, length) : length;
    }
    if (!dim_is(times, 1))
        count = emit(lo, ONNX_Mul, count, dim_value(lo, times));
    return emit(lo, ONNX_Div, sum, cast(lo, count, x->dtype));
}

/* Zeros put around the input, so that they count and what hangs over the end does not: ONNX
 * Runtime's versions do not agree on that.  Windows that begin in the padding at the end are cut
 * off. */
static Value *average_padded(Lower *lo, Value *x, const PoolSizes *v, Shape out)
{
    PoolSizes plain = *v, around = *v;
    around.ceil = false;
    memset(plain.padding, 0, sizeof plain.padding);
    Value *y = average_pool_node(lo, padded_input(lo, x, 2, &around, 0), &plain, false);
    for (int i = 0; i < v->n; i++)
        if (may_start_behind(v, i))
            y = slice_axis(lo, y, 2 + i, p2o_dim_int(lo->dims, 0), out.at[2 + i], 1);
    return y;
}

static bool is_padded(const PoolSizes *v)
{
    for (int i = 0; i < v->n; i++)
        if (v->padding[i])
            return true;
    return false;
}

/* The user's, or 0. */
static int64_t divisor_arg(const Call *c)
{
    return names_arg(c, "divisor_override") && has_arg(c, "divisor_override")
               ? int_arg(c, "divisor_override")
               : 0;
}

/* With a divisor of the user's the sum is what counts: the mean over whole kernels, scaled. */
static Value *average_batched(Lower *lo, const Call *c, Value *x, const PoolSizes *v, Shape out,
                              Dim times)
{
    bool    include_pad = bool_arg(c, "count_include_pad");
    int64_t divisor = divisor_arg(c);
    bool    overridden = divisor != 0;

    if (v->varies && is_float(x->dtype)) {      /* half types sum in float32 */
        Value *wide = cast(lo, x, wide_of(x->dtype));
        return cast(lo, average_by_windows(lo, c, wide, v, out, divisor, times), x->dtype);
    }
    if (!is_float(x->dtype) || x->dtype == DT_F64 || (overridden && v->ceil))
        return average_by_windows(lo, c, x, v, out, divisor, times);
    if (overridden)
        return emit(lo, ONNX_Mul, average_pool_node(lo, x, v, true),
                    num(lo, x->dtype, (double)kernel_area(v) / (double)divisor));
    if (v->ceil && include_pad && is_padded(v))
        return average_padded(lo, x, v, out);
    return average_pool_node(lo, x, v, include_pad && is_padded(v));
}

/* Whole axes first: their mean, or their sum where a divisor or integers divide it later. */
static Value *lower_avg_pool(Lower *lo, const Call *c)
{
    Value    *x = tensor_arg(lo, c, "self");
    PoolSizes v = pool_sizes(lo->dims, c);
    bool      sums = divisor_arg(c) || !is_float(x->dtype);
    Dim       times = sums ? whole_count(lo, x, &v) : p2o_dim_int(lo->dims, 1);
    x = reduce_whole(lo, sums ? ONNX_ReduceSum : ONNX_ReduceMean, x, &v);
    if (has_whole(&v) && is_done(&v)) {
        if (!sums)
            return x;
        Value *by = divisor_arg(c) ? num(lo, x->dtype, (double)divisor_arg(c))
                                   : count_value(lo, times, x->dtype);
        return emit(lo, ONNX_Div, x, by);
    }
    Shape  s = shape_with_batch(lo, out_shape(c, 0), v.n);
    Value *y = average_batched(lo, c, with_batch(lo, x, v.n), &v, s, times);
    return rank(x) == v.n + 1 ? squeeze(lo, y, 0) : y;
}

static int adaptive_dims(const Call *c)
{
    return c->schema->args[p2o_schema_find(c->schema, "output_size")].list_size;
}

static void shape_adaptive_pool(Infer *in, const Call *c)
{
    Type x = type_arg(c, "self");
    int  n = adaptive_dims(c), lead = x.shape.rank - n;
    if ((lead != 1 && lead != 2) || !is_pool_list(in, c, "output_size", n, false)) {
        rule_fail(in, "input of rank %d for %d spatial dims", x.shape.rank, n);
        return;
    }
    Dim *at = p2o_shape_copy(in->arena, x.shape, 0);
    for (int i = 0; i < n; i++)
        at[lead + i] = dim_item(c, "output_size", list_len(c, "output_size") == 1 ? 0 : i);
    set_out(in, c, 0, x.dtype, (Shape){ x.shape.rank, at });
    if (nouts(c) > 1)
        set_out(in, c, 1, DT_I64, (Shape){ x.shape.rank, at });
}

/* Window o of `out` covers [floor(o size / out), ceil((o + 1) size / out)): at most
 * ceil(size / out) + 1 elements, all size / out where that leaves no remainder. */
static PoolWindow adaptive_window(Lower *lo, Dim size, Dim out)
{
    Dims      *t = lo->dims;
    Dim        one = p2o_dim_int(t, 1);
    PoolWindow w = { .kernel = p2o_dim_exact_div(t, size, out), .dilation = 1 };
    Value     *scaled = emit(lo, ONNX_Mul, range_of(lo, out, 1), dim_value(lo, size));
    Value     *end = emit(lo, ONNX_Add, scaled, dim_value(lo, p2o_dim_sub(t, size, one)));
    if (!never_zero(lo, out))               /* no windows: nothing is divided */
        out = p2o_dim_max(t, out, one);
    w.base = emit(lo, ONNX_Div, scaled, dim_value(lo, out));
    if (w.kernel)
        return w;
    Dim up = p2o_dim_sub(t, p2o_dim_add(t, size, out), one);
    w.kernel = p2o_dim_add(t, p2o_dim_floordiv(t, up, out), one);
    w.last = emit(lo, ONNX_Div, end, dim_value(lo, out));
    return w;
}

/* size = out * kernel: the axis as [out, kernel]. */
static Value *split_axis(Lower *lo, Value *x, int axis, Dim out, Dim kernel)
{
    Shape to = p2o_shape_insert(lo->arena, x->shape, axis, out);
    Dim  *at = p2o_shape_copy(lo->arena, to, 0);
    at[axis + 1] = kernel;
    return reshape(lo, x, (Shape){ to.rank, at });
}

static Value *adaptive_max_axis(Lower *lo, Value *x, int axis, Dim out)
{
    const int64_t kernel_axis = axis + 1;
    PoolWindow    w = adaptive_window(lo, size_at(x, axis), out);
    Value *taken = w.last ? take_windows(lo, x, axis, &w) : split_axis(lo, x, axis, out, w.kernel);
    return reduce(lo, ONNX_ReduceMax, taken, &kernel_axis, 1, false);
}

/* What lies past a window's end is not added. */
static Value *adaptive_mean_axis(Lower *lo, Value *x, int axis, Dim out)
{
    const int64_t kernel_axis = axis + 1;
    PoolWindow    w = adaptive_window(lo, size_at(x, axis), out);
    if (!w.last) {
        Value *split = split_axis(lo, x, axis, out, w.kernel);
        return reduce(lo, ONNX_ReduceMean, split, &kernel_axis, 1, false);
    }
    Value *inside = emit(lo, ONNX_LessOrEqual, window_positions(lo, &w), column(lo, w.last));
    for (int i = axis + 1; i < rank(x); i++)
        inside = unsqueeze(lo, inside, rank(inside));
    Value *taken =
        emit(lo, ONNX_Where, inside, take_windows(lo, x, axis, &w), num(lo, x->dtype, 0));
    Value *sum = reduce(lo, ONNX_ReduceSum, taken, &kernel_axis, 1, false);
    Value *length = emit(lo, ONNX_Add, emit(lo, ONNX_Sub, w.last, w.base), INTS(lo, 1));
    return emit(lo, ONNX_Div, sum, along(lo, cast(lo, length, x->dtype), axis, rank(x)));
}

/* Known sizes that divide evenly: an ordinary pool.  Axes that keep their size have windows of
 * 1. */
static bool is_even_pool(const Value *x, int lead, int n, const Dim *out, PoolSizes *v)
{
    *v = (PoolSizes){ .n = n };
    for (int i = 0; i < n; i++) {
        int64_t size, to;
        v->kernel[i] = 1;
        if (size_at(x, lead + i) != out[i]) {
            if (!p2o_dim_is_int(size_at(x, lead + i), &size) || !p2o_dim_is_int(out[i], &to) ||
                to < 1 || size % to)
                return false;
            v->kernel[i] = size / to;
        }
        v->stride[i] = v->kernel[i];
        v->dilation[i] = 1;
    }
    return true;
}

/* Axes that shrink to 1 are reduced at once. */
static Value *reduce_to_one(Lower *lo, OnnxOp op, Value *x, int lead, int n, const Dim *out)
{
    int64_t axes[3];
    int     count = 0;
    for (int i = 0; i < n; i++)
        if (dim_is(out[i], 1) && !is_size(x, lead + i, 1))
            axes[count++] = lead + i;
    return count ? reduce(lo, op, x, axes, count, true) : x;
}

static bool has_sizes(const Value *x, int lead, int n, const Dim *out)
{
    for (int i = 0; i < n; i++)
        if (size_at(x, lead + i) != out[i])
            return false;
    return true;
}

static Value *lower_adaptive_avg_pool(Lower *lo, const Call *c)
{
    Value     *x = tensor_arg(lo, c, "self");
    int        n = adaptive_dims(c), lead = rank(x) - n;
    const Dim *out = out_shape(c, 0).at + lead;
    DType      t = x->dtype;
    PoolSizes  v;

    x = reduce_to_one(lo, ONNX_ReduceMean, x, lead, n, out);
    if (has_sizes(x, lead, n, out))
        return x;
    if (t != DT_F64 && is_even_pool(x, lead, n, out, &v)) {
        Value *y = average_pool_node(lo, with_batch(lo, x, n), &v, false);
        return lead == 1 ? squeeze(lo, y, 0) : y;
    }
    x = cast(lo, x, t == DT_F64 ? t : DT_F32);
    for (int i = 0; i < n; i++)
        if (size_at(x, lead + i) != out[i])
            x = adaptive_mean_axis(lo, x, lead + i, out[i]);
    return cast(lo, x, t);
}

static void lower_adaptive_max_pool(Lower *lo, const Call *c, Value **result)
{
    Value     *x = tensor_arg(lo, c, "self"), *y;
    int        n = adaptive_dims(c), lead = rank(x) - n;
    const Dim *out = out_shape(c, 0).at + lead;
    PoolSizes  v;
    PoolWindow w[3];

    if (is_float(x->dtype) && is_even_pool(x, lead, n, out, &v)) {
        Shape s = shape_with_batch(lo, out_shape(c, 0), n);
        max_pool_batched(lo, with_batch(lo, x, n), &v, s, 2, result);
        for (int i = 0; i < 2 && lead == 1; i++)
            result[i] = squeeze(lo, result[i], 0);
        return;
    }
    y = reduce_to_one(lo, ONNX_ReduceMax, x, lead, n, out);
    for (int i = 0; i < n; i++)
        if (size_at(y, lead + i) != out[i])
            y = adaptive_max_axis(lo, y, lead + i, out[i]);
    for (int i = 0; i < n; i++)
        w[i] = adaptive_window(lo, size_at(x, lead + i), out[i]);
    result[0] = y;
    result[1] = window_argmax(lo, take_all_windows(lo, x, lead, n, w), lead, n, w,
                              x->shape.at + lead, NULL);
}

static void shape_max_unpool(Infer *in, const Call *c)
{
    Type  x = type_arg(c, "self");
    Shape indices = shape_arg(c, "indices");
    int   n = adaptive_dims(c), lead = x.shape.rank - n;
    if ((lead != 1 && lead != 2) || list_len(c, "output_size") != n ||
        indices.rank != x.shape.rank) {
        rule_fail(in, "input of rank %d and indices of rank %d for %d spatial dims", x.shape.rank,
                  indices.rank, n);
        return;
    }
    for (int i = 0; i < x.shape.rank; i++)
        if (!must_equal(in, c, x.shape.at[i], indices.at[i], "sizes of indices"))
            return;
    set_out(in, c, 0, x.dtype,
            concat_shapes(in, slice_shape(x.shape, 0, lead), shape_list(in, c, "output_size")));
}

/* Elements go where the indices, positions within a plane, say; the rest is 0. */
static Value *lower_max_unpool(Lower *lo, const Call *c)
{
    Value *x = tensor_arg(lo, c, "self"), *indices = tensor_arg(lo, c, "indices");
    Shape  out = out_shape(c, 0);
    int    lead = out.rank - adaptive_dims(c);
    Dim *flat = p2o_shape_copy(lo->arena, x->shape, 0), *plane = p2o_shape_copy(lo->arena, out, 0);
    flat[lead] = p2o_shape_product(lo->dims, x->shape, lead, rank(x));
    plane[lead] = p2o_shape_product(lo->dims, out, lead, out.rank);
    Shape  from = { lead + 1, flat }, to = { lead + 1, plane };
    Value *y =
        emit_with(lo, ONNX_ScatterElements, ATTRS(attr_int("axis", lead)),
                  full(lo, to, x->dtype, 0), reshape(lo, indices, from), reshape(lo, x, from));
    return reshape(lo, y, out);
}

#define POOL_VARIES "kernel_size stride"
#define POOL_ROLES "stride:setting padding:setting dilation:setting"
#define MAX_POOL_ARGS(n) \
    "(Tensor self, int[" #n "] kernel_size, int[" #n "] stride=[], int[" #n "] padding=0, " \
    "int[" #n "] dilation=1, bool ceil_mode=False)"
#define MAX_POOL_ROWS(n)                                                                           \
    { "max_pool" #n "d" MAX_POOL_ARGS(n) " -> Tensor", shape_pool, .lower_many = lower_max_pool,   \
      .varies = POOL_VARIES, .roles = POOL_ROLES },                                                \
    {                                                                                              \
        "max_pool" #n "d_with_indices" MAX_POOL_ARGS(n) " -> (Tensor, Tensor)", shape_pool,        \
            .lower_many = lower_max_pool, .varies = POOL_VARIES, .roles = POOL_ROLES               \
    }
#define ADAPTIVE_AVG_ROW(name, type, n) \
    { name "(Tensor self, " type "[" #n "] output_size) -> Tensor", shape_adaptive_pool, \
      .lower = lower_adaptive_avg_pool, .counts = "output_size", .made = "output_size:axis" }
#define ADAPTIVE_MAX_ROW(n)                                                                        \
    {                                                                                              \
        "adaptive_max_pool" #n "d(Tensor self, int[" #n "] output_size) -> (Tensor, Tensor)",      \
            shape_adaptive_pool, .lower_many = lower_adaptive_max_pool, .counts = "output_size",   \
                                 .made = "output_size:axis"                                        \
    }

const AtenOp p2o_ops_pool[] = {
    MAX_POOL_ROWS(1),
    MAX_POOL_ROWS(2),
    MAX_POOL_ROWS(3),
    { "mkldnn_max_pool2d" MAX_POOL_ARGS(2) " -> Tensor", shape_pool, .lower_many = lower_max_pool,
      .varies = POOL_VARIES, .roles = POOL_ROLES },
    { "mkldnn_max_pool3d" MAX_POOL_ARGS(3) " -> Tensor", shape_pool, .lower_many = lower_max_pool,
      .varies = POOL_VARIES, .roles = POOL_ROLES },
    { "avg_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=0, bool ceil_mode=False, bool count_include_pad=True) -> Tensor",
      shape_pool, .lower = lower_avg_pool, .varies = POOL_VARIES, .roles = POOL_ROLES },
    { "avg_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor",
      shape_pool, .lower = lower_avg_pool, .varies = POOL_VARIES, .roles = POOL_ROLES },
    { "avg_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor",
      shape_pool, .lower = lower_avg_pool, .varies = POOL_VARIES, .roles = POOL_ROLES },
    ADAPTIVE_AVG_ROW("adaptive_avg_pool1d", "int", 1),
    ADAPTIVE_AVG_ROW("adaptive_avg_pool2d", "SymInt", 2),
    ADAPTIVE_AVG_ROW("adaptive_avg_pool3d", "SymInt", 3),
    ADAPTIVE_AVG_ROW("_adaptive_avg_pool2d", "SymInt", 2),
    ADAPTIVE_AVG_ROW("_adaptive_avg_pool3d", "SymInt", 3),
    ADAPTIVE_AVG_ROW("mkldnn_adaptive_avg_pool2d", "int", 2),
    ADAPTIVE_MAX_ROW(1),
    ADAPTIVE_MAX_ROW(2),
    ADAPTIVE_MAX_ROW(3),
    { "max_unpool2d(Tensor self, Tensor indices, SymInt[2] output_size) -> Tensor",
      shape_max_unpool, .lower = lower_max_unpool, .made = "output_size:always" },
    { "max_unpool3d(Tensor self, Tensor indices, SymInt[3] output_size, int[3] stride, int[3] padding) -> Tensor",
      shape_max_unpool, .lower = lower_max_unpool, .made = "output_size:always" },
    { 0 },
};
