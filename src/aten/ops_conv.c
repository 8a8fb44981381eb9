/* Convolutions of one to three dims and their transposes.
 *
 * Every row is one of two formulas; what its schema does not name has its neutral value: stride 1,
 * padding 0, dilation 1, one group.  Types that ONNX Runtime's Conv does not take, and groups that
 * follow a size, go through windows and Einsum. */
#include "aten/lower.h"

typedef struct ConvSizes {
    int64_t stride[3], dilation[3];
    Dim     padding[3], output_padding[3];
    Dim     groups;
    int     n;                  /* spatial dims */
} ConvSizes;

static const char *conv_input(const Call *c) { return names_arg(c, "input") ? "input" : "self"; }

/* An input without batch has one dim less; it gets one of size 1. */
static bool is_unbatched(const Call *c)
{
    return shape_arg(c, conv_input(c)).rank < shape_arg(c, "weight").rank;
}

static bool is_transposed(const Call *c)
{
    return names_arg(c, "transposed") ? bool_arg(c, "transposed") : names_arg(c, "output_padding");
}

/* The rows that say depthwise have a kernel for each channel and name no groups. */
static bool is_depthwise(const Call *c) { return strstr(c->schema->key, "conv_depthwise") != NULL; }

static bool is_same_padding(const Call *c)
{
    const Arg *pad = p2o_call_arg(c, "padding");
    return pad->kind == ARG_STR && same(pad->s, "same");
}

static bool conv_list(Infer *in, const Call *c, const char *name, int n, int64_t otherwise,
                      int64_t *out)
{
    if (names_arg(c, name) && p2o_call_arg(c, name)->kind != ARG_STR)
        return const_ints(in, c, name, n, out);
    for (int i = 0; i < n; i++)
        out[i] = otherwise;
    return true;
}

/* Amounts may follow sizes; one that was the same in all captures is weighed as a number. */
static Dim conv_amount(Infer *in, Dim d, const char *name)
{
    int64_t v;
    d = p2o_resolve(in->bind, d);
    bool fixed = is_soft(in, d) && p2o_hint_in_all(in->bind, d, &v) && const_dim(in, d, name, &v);
    return fixed ? int_dim(in, v) : d;
}

static bool conv_amounts(Infer *in, const Call *c, const char *name, int n, Dim *out)
{
    bool given = names_arg(c, name) && p2o_call_arg(c, name)->kind != ARG_STR;
    int  have = given ? list_len(c, name) : 1;
    if (have != n && have != 1) {
        rule_fail(in, "%s has %d entries, expected %d", name, have, n);
        return false;
    }
    for (int i = 0; i < n; i++) {
        Dim d = given ? dim_item(c, name, have == 1 ? 0 : i) : int_dim(in, 0);
        out[i] = conv_amount(in, d, name);
        if (p2o_dim_lt(in->dims, out[i], int_dim(in, 0)) == YES) {
            rule_fail(in, "%s is below 0", name);
            return false;
        }
        needs_le(in, int_dim(in, 0), out[i], name);
    }
    return true;
}

/* PyTorch refuses more. */
static int64_t most_output_padding(int64_t stride, int64_t dilation)
{
    return (stride > dilation ? stride : dilation) - 1;
}

/* They may follow sizes: a batch of images, each with kernels of its own, is one image of as many
 * groups. */
static bool conv_groups(Infer *in, const Call *c, Dim *groups)
{
    Shape   x = shape_arg(c, conv_input(c));
    int64_t v;
    *groups = int_dim(in, 1);
    if (names_arg(c, "groups"))
        *groups = conv_amount(in, dim_arg(c, "groups"), "groups");
    else if (!is_depthwise(c))
        return true;
    else if (!const_dim(in, x.at[is_unbatched(c) ? 0 : 1], "input channels", &v))
        return false;
    else
        *groups = int_dim(in, v);
    needs_le(in, int_dim(in, 1), *groups, "groups");
    return true;
}

static bool conv_sizes(Infer *in, const Call *c, ConvSizes *v)
{
    Shape      x = shape_arg(c, conv_input(c)), w = shape_arg(c, "weight");
    const Arg *pad = p2o_call_arg(c, "padding");

    v->n = w.rank - 2;
    if (v->n < 1 || v->n > 3 || (x.rank != w.rank && x.rank != w.rank - 1)) {
        rule_fail(in, "input of rank %d with a weight of rank %d", x.rank, w.rank);
        return false;
    }
    if (pad->kind == ARG_STR && !same(pad->s, "same") && !same(pad->s, "valid")) {
        rule_fail(in, "padding '%s'", pad->s);
        return false;
    }
    if (!conv_groups(in, c, &v->groups) || !conv_list(in, c, "stride", v->n, 1, v->stride) ||
        !conv_list(in, c, "dilation", v->n, 1, v->dilation) ||
        !conv_amounts(in, c, "padding", v->n, v->padding) ||
        !conv_amounts(in, c, "output_padding", v->n, v->output_padding))
        return false;
    for (int i = 0; i < v->n; i++) {
        if (v->stride[i] < 1 || v->dilation[i] < 1 ||
            p2o_dim_lt(in->dims, v->groups, int_dim(in, 1)) == YES) {
            rule_fail(in, "stride, dilation or groups out of range");
            return false;
        }
        int64_t most = most_output_padding(v->stride[i], v->dilation[i]);
        if (!p2o_dim_is_int(v->output_padding[i], NULL))
            needs_le(in, v->output_padding[i], int_dim(in, most),
                     "output_padding below stride or dilation");
        if (is_same_padding(c) && v->stride[i] != 1) {
            rule_fail(in, "padding 'same' with a stride other than 1");
            return false;
        }
    }
    return true;
}

/* dilation (kernel - 1) + 1 */
static Dim conv_reach(Infer *in, Dim kernel, const ConvSizes *v, int i)
{
    Dim steps = p2o_dim_mul(in->dims, int_dim(in, v->dilation[i]),
                            p2o_dim_sub(in->dims, kernel, int_dim(in, 1)));
    return p2o_dim_add(in->dims, steps, int_dim(in, 1));
}

/* (size + 2 pad - reach) // stride + 1 */
static Dim conv_out(Infer *in, Dim size, Dim kernel, const ConvSizes *v, int i)
{
    Dims *t = in->dims;
    Dim   around = p2o_dim_mul(t, int_dim(in, 2), v->padding[i]);
    Dim   room = p2o_dim_sub(t, p2o_dim_add(t, size, around), conv_reach(in, kernel, v, i));
    needs_le(in, int_dim(in, 0), room, "the kernel fits into the padded input");
    return p2o_dim_add(t, p2o_dim_floordiv(t, room, int_dim(in, v->stride[i])), int_dim(in, 1));
}

/* (size - 1) stride - 2 pad + reach + output_padding */
static Dim conv_transpose_out(Infer *in, Dim size, Dim kernel, const ConvSizes *v, int i)
{
    Dims *t = in->dims;
    Dim   first = p2o_dim_mul(t, p2o_dim_sub(t, size, int_dim(in, 1)), int_dim(in, v->stride[i]));
    Dim   around = p2o_dim_mul(t, int_dim(in, 2), v->padding[i]);
    Dim   rest = p2o_dim_sub(t, v->output_padding[i], around);
    return p2o_dim_add(t, p2o_dim_add(t, first, rest), conv_reach(in, kernel, v, i));
}

/* Weights are [out, in / groups, kernel ...]; of a transpose [in, out / groups, kernel ...]. */
static void shape_conv(Infer *in, const Call *c)
{
    Type      x = type_arg(c, conv_input(c));
    Shape     w = shape_arg(c, "weight");
    ConvSizes v;
    if (!conv_sizes(in, c, &v))
        return;
    int  lead = x.shape.rank - v.n;             /* 1 or 2 */
    Dim  grouped = p2o_dim_mul(in->dims, w.at[1], v.groups);
    bool back = is_transposed(c);
    if (!must_equal(in, c, x.shape.at[lead - 1], back ? w.at[0] : grouped, "input channels"))
        return;
    Dim *at = p2o_shape_copy(in->arena, x.shape, 0);
    at[lead - 1] = back ? grouped : w.at[0];
    for (int i = 0; i < v.n && !is_same_padding(c); i++)
        at[lead + i] = back ? conv_transpose_out(in, at[lead + i], w.at[2 + i], &v, i)
                            : conv_out(in, at[lead + i], w.at[2 + i], &v, i);
    set_out(in, c, 0, x.dtype, (Shape){ x.shape.rank, at });
}

static const int64_t *conv_ints(Lower *lo, const Call *c, const char *name, int n,
                                int64_t otherwise)
{
    if (names_arg(c, name))
        return ints_arg(lo, c, name, n);
    int64_t *v = NEW_N(lo->arena, int64_t, (size_t)n);
    for (int i = 0; i < n; i++)
        v[i] = otherwise;
    return v;
}

/* Of a transpose: how much its end has more. */
static Dim output_padding_at(Lower *lo, const Call *c, int i)
{
    if (!names_arg(c, "output_padding"))
        return p2o_dim_int(lo->dims, 0);
    return dim_item(c, "output_padding", list_len(c, "output_padding") == 1 ? 0 : i);
}

/* Begins, then ends.  'same' puts the odd one at the end: dilation (kernel - 1) in all. */
static const Dim *conv_pads(Lower *lo, const Call *c, int n)
{
    const Arg     *pad = p2o_call_arg(c, "padding");
    const int64_t *dilation = conv_ints(lo, c, "dilation", n, 1);
    Dims          *t = lo->dims;
    Dim           *pads = NEW_N(lo->arena, Dim, (size_t)n * 2);
    for (int i = 0; i < n; i++) {
        Dim kernel = shape_arg(c, "weight").at[2 + i], one = p2o_dim_int(t, 1);
        if (is_same_padding(c)) {
            Dim total = p2o_dim_mul(t, p2o_dim_sub(t, kernel, one), p2o_dim_int(t, dilation[i]));
            pads[i] = p2o_dim_floordiv(t, total, p2o_dim_int(t, 2));
            pads[n + i] = p2o_dim_sub(t, total, pads[i]);
        } else {
            pads[i] = pad->kind == ARG_STR ? p2o_dim_int(t, 0)
                                           : dim_item(c, "padding", pad->n == 1 ? 0 : i);
            pads[n + i] = pads[i];
        }
    }
    return pads;
}

static Dim groups_of(Lower *lo, const Call *c, const Value *x)
{
    if (names_arg(c, "groups"))
        return dim_arg(c, "groups");
    return is_depthwise(c) ? size_at(x, 1) : p2o_dim_int(lo->dims, 1);
}

static Value *conv_bias(Lower *lo, const Call *c)
{
    return names_arg(c, "bias") ? tensor_arg(lo, c, "bias") : NULL;
}

/* The channel axis of `v` as [groups, rest]. */
static Value *split_groups(Lower *lo, Value *v, int axis, Dim count)
{
    Dim   rest = p2o_dim_exact_div(lo->dims, size_at(v, axis), count);
    Shape to = p2o_shape_insert(lo->arena, v->shape, axis, count);
    Dim  *at = p2o_shape_copy(lo->arena, to, 0);
    at[axis + 1] = rest ? rest : p2o_dim_floordiv(lo->dims, size_at(v, axis), count);
    return reshape(lo, v, (Shape){ to.rank, at });
}

/* stride - 1 zeros after each element of an axis. */
static Value *stuff_zeros(Lower *lo, Value *x, int axis, int64_t stride)
{
    Dim  zero = p2o_dim_int(lo->dims, 0), step = p2o_dim_int(lo->dims, stride);
    Dim *at = p2o_shape_copy(lo->arena, x->shape, 0);
    at[axis] = p2o_dim_mul(lo->dims, at[axis], step);
    if (stride == 1)
        return x;
    Value *wide = pad_axes(lo, unsqueeze(lo, x, axis + 1), axis + 1, 1,
                           (const Dim[]){ zero, p2o_dim_int(lo->dims, stride - 1) }, 0);
    return reshape(lo, wide, (Shape){ rank(x), at });
}

static Value *reverse_axes(Lower *lo, Value *x, int first, int n)
{
    int64_t start[3] = { -1, -1, -1 }, end[3] = { INT64_MIN, INT64_MIN, INT64_MIN }, axes[3];
    for (int i = 0; i < n; i++)
        axes[i] = first + i;
    return emit(lo, ONNX_Slice, x, ints_const(lo, start, (size_t)n), ints_const(lo, end, (size_t)n),
                ints_const(lo, axes, (size_t)n), ints_const(lo, start, (size_t)n));
}

/* A transpose is a convolution by the reversed kernel over x with zeros between its elements,
 * padded by reach - 1 - padding; at the end there are stride - 1 zeros already. */
static Value *transposed_input(Lower *lo, const Call *c, Value *x, Shape w)
{
    int            n = w.rank - 2;
    Dims          *t = lo->dims;
    const int64_t *stride = conv_ints(lo, c, "stride", n, 1);
    const int64_t *dilation = conv_ints(lo, c, "dilation", n, 1);
    const Dim     *given = conv_pads(lo, c, n);
    Dim            pads[6];
    for (int i = 0; i < n; i++) {
        Dim steps = p2o_dim_mul(t, p2o_dim_sub(t, w.at[2 + i], p2o_dim_int(t, 1)),
                                p2o_dim_int(t, dilation[i]));
        pads[i] = p2o_dim_sub(t, steps, given[i]);
        Dim more = p2o_dim_sub(t, output_padding_at(lo, c, i), p2o_dim_int(t, stride[i] - 1));
        pads[n + i] = p2o_dim_add(t, pads[i], more);
        x = stuff_zeros(lo, x, 2 + i, stride[i]);
    }
    return pad_axes(lo, x, 2, n, pads, 0);
}

/* Exact in integers and f64: each spatial axis becomes [out, kernel], then one Einsum over channels
 * and kernel, with m the group. */
static Value *conv_by_windows(Lower *lo, const Call *c, Value *x, Shape out)
{
    static const char *const forward[] = { NULL, "nmcax,mocx->nmoa", "nmcaxby,mocxy->nmoab",
                                           "nmcaxbydz,mocxyz->nmoabd" };
    static const char *const back[] = { NULL, "nmcax,mcox->nmoa", "nmcaxby,mcoxy->nmoab",
                                        "nmcaxbydz,mcoxyz->nmoabd" };
    Value         *w = tensor_arg(lo, c, "weight"), *bias = conv_bias(lo, c);
    int            n = rank(w) - 2;
    const int64_t *stride = conv_ints(lo, c, "stride", n, 1);
    const int64_t *dilation = conv_ints(lo, c, "dilation", n, 1);
    Dim            groups = groups_of(lo, c, x);

    if (is_transposed(c)) {
        x = transposed_input(lo, c, x, w->shape);
        w = reverse_axes(lo, w, 2, n);
    } else {
        x = pad_axes(lo, x, 2, n, conv_pads(lo, c, n), 0);
    }
    for (int i = 0; i < n; i++)
        x = windows(lo, x, 2 + 2 * i, out.at[2 + i], size_at(w, 2 + i),
                    is_transposed(c) ? 1 : stride[i], dilation[i]);
    const char *equation = (is_transposed(c) ? back : forward)[n];
    Value *y = emit_with(lo, ONNX_Einsum, ATTRS(attr_str("equation", equation)),
                         split_groups(lo, x, 1, groups), split_groups(lo, w, 0, groups));
    y = reshape(lo, y, out);
    for (int i = 0; bias && i < n; i++)
        bias = unsqueeze(lo, bias, 1 + i);
    return bias ? emit(lo, ONNX_Add, y, bias) : y;
}

/* Pads that are not all numbers go into a Pad before the convolution. */
static Value *conv_node(Lower *lo, const Call *c, Value *x, int64_t groups)
{
    Value     *w = tensor_arg(lo, c, "weight");
    int        n = rank(w) - 2;
    const Dim *pads = conv_pads(lo, c, n);
    int64_t   *at = NEW_N(lo->arena, int64_t, (size_t)n * 2);
    if (!p2o_shape_is_const((Shape){ 2 * n, pads }))
        x = pad_axes(lo, x, 2, n, pads, 0);
    else
        for (int i = 0; i < 2 * n; i++)
            p2o_dim_is_int(pads[i], &at[i]);
    return emit_with(lo, ONNX_Conv,
                     ATTRS(attr_ints("strides", conv_ints(lo, c, "stride", n, 1), (size_t)n),
                           attr_ints("pads", at, (size_t)n * 2),
                           attr_ints("dilations", conv_ints(lo, c, "dilation", n, 1), (size_t)n),
                           attr_int("group", groups)),
                     x, w, conv_bias(lo, c));
}

/* What a ConvTranspose has as attributes.  An amount that follows a size is none: the node gives
 * the longest result, with the most output_padding, and what is wanted begins at `from`. */
typedef struct TransposePads {
    int64_t pads[6], more[3];
    Dim     from[3];
    bool    cut[3];
} TransposePads;

/* ONNX Runtime wants output_padding below the stride; more of it is less padding at the end.  false
 * when that does not suffice. */
static bool transpose_pads(Lower *lo, const Call *c, int n, const int64_t *stride,
                           const int64_t *dilation, TransposePads *v)
{
    const Dim *pads = conv_pads(lo, c, n);
    *v = (TransposePads){ 0 };
    for (int i = 0; i < n; i++) {
        bool fixed = p2o_dim_is_int(pads[i], &v->pads[i]);
        bool fixed_more = p2o_dim_is_int(output_padding_at(lo, c, i), &v->more[i]);
        v->pads[i] = fixed ? v->pads[i] : 0;
        v->more[i] = fixed_more ? v->more[i] : most_output_padding(stride[i], dilation[i]);
        v->pads[n + i] = v->pads[i];
        v->from[i] = fixed ? p2o_dim_int(lo->dims, 0) : pads[i];
        v->cut[i] = !fixed || !fixed_more;
        if (v->more[i] < stride[i])
            continue;
        int64_t moved = v->more[i] < v->pads[i] ? v->more[i] : v->pads[i];
        v->pads[n + i] -= moved;
        v->more[i] -= moved;
        if (v->more[i] >= stride[i])
            return false;
    }
    return true;
}

/* NULL when it takes more than a node. */
static Value *conv_transpose_node(Lower *lo, const Call *c, Value *x, Shape out, int64_t groups)
{
    Value         *w = tensor_arg(lo, c, "weight");
    int            n = rank(w) - 2;
    const int64_t *stride = conv_ints(lo, c, "stride", n, 1);
    const int64_t *dilation = conv_ints(lo, c, "dilation", n, 1);
    TransposePads *v = NEW(lo->arena, TransposePads);
    if (!transpose_pads(lo, c, n, stride, dilation, v))
        return NULL;
    Value *y = emit_with(lo, ONNX_ConvTranspose,
                         ATTRS(attr_ints("strides", stride, (size_t)n),
                               attr_ints("pads", v->pads, (size_t)n * 2),
                               attr_ints("output_padding", v->more, (size_t)n),
                               attr_ints("dilations", dilation, (size_t)n),
                               attr_int("group", groups)),
                         x, w, conv_bias(lo, c));
    for (int i = 0; i < n; i++) {
        Dim end = p2o_dim_add(lo->dims, v->from[i], out.at[2 + i]);
        y = v->cut[i] ? slice_axis(lo, y, 2 + i, v->from[i], end, 1) : y;
    }
    return y;
}

static Value *lower_conv(Lower *lo, const Call *c)
{
    Value  *x = tensor_arg(lo, c, conv_input(c)), *y = NULL;
    Shape   out = out_shape(c, 0);
    int64_t groups;

    if (is_complex(x->dtype))
        return unsupported(lo, c, "complex tensors");
    if (is_unbatched(c)) {
        x = unsqueeze(lo, x, 0);
        out = p2o_shape_insert(lo->arena, out, 0, p2o_dim_int(lo->dims, 1));
    }
    if (is_float(x->dtype) && x->dtype != DT_F64 && p2o_dim_is_int(groups_of(lo, c, x), &groups))
        y = is_transposed(c) ? conv_transpose_node(lo, c, x, out, groups)
                             : conv_node(lo, c, x, groups);
    if (!y)
        y = conv_by_windows(lo, c, x, out);
    return is_unbatched(c) ? squeeze(lo, y, 0) : y;
}

static Value *lower_conv_relu(Lower *lo, const Call *c)
{
    Value *y = lower_conv(lo, c);
    return y ? emit(lo, ONNX_Relu, y) : NULL;
}

/* Time, batch, channel; the weight is [kernel, in, out]. */
static void shape_conv_tbc(Infer *in, const Call *c)
{
    Type  x = type_arg(c, "self");
    Shape w = shape_arg(c, "weight");
    if (!must_rank(in, c, "self", 3) || !must_rank(in, c, "weight", 3) ||
        !must_equal(in, c, x.shape.at[2], w.at[1], "input channels"))
        return;
    Dim time = p2o_dim_add(in->dims, x.shape.at[0], int_dim(in, 2 * int_arg(c, "pad") + 1));
    Dim at[] = { p2o_dim_sub(in->dims, time, w.at[0]), x.shape.at[1], w.at[2] };
    set_out(in, c, 0, x.dtype, (Shape){ 3, at });
}

static Value *lower_conv_tbc(Lower *lo, const Call *c)
{
    Value   *x = transpose(lo, tensor_arg(lo, c, "self"), (const int64_t[]){ 1, 2, 0 });
    Value   *w = transpose(lo, tensor_arg(lo, c, "weight"), (const int64_t[]){ 2, 1, 0 });
    int64_t *pads = NEW_N(lo->arena, int64_t, 2);
    pads[0] = pads[1] = int_arg(c, "pad");
    if (x->dtype == DT_F64 || !is_float(x->dtype))
        return unsupported(lo, c, "%s", p2o_dtype_torch(x->dtype));
    Value *y = emit_with(lo, ONNX_Conv, ATTRS(attr_ints("pads", pads, 2)), x, w,
                         tensor_arg(lo, c, "bias"));
    return transpose(lo, y, (const int64_t[]){ 2, 0, 1 });
}

#define CONV_ROLES \
    "stride:setting groups:setting kernel_size:setting output_padding:rest"
#define CONV_ROWS(n)                                                                               \
    { "conv" #n "d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[" #n "] stride=1, "      \
      "SymInt[" #n "] padding=0, SymInt[" #n "] dilation=1, SymInt groups=1) -> Tensor",           \
      shape_conv, .lower = lower_conv, .roles = CONV_ROLES },                                      \
    {                                                                                              \
        "conv" #n "d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[" #n           \
        "] stride=1, "                                                                             \
        "str padding=\"valid\", SymInt[" #n "] dilation=1, SymInt groups=1) -> Tensor",            \
            shape_conv, .lower = lower_conv, .roles = CONV_ROLES                                   \
    }

#define CONV_TRANSPOSE_ROW(name, n)                                                                \
    {                                                                                              \
        name "(Tensor input, Tensor weight, Tensor? bias=None, SymInt[" #n "] stride=1, "          \
             "SymInt[" #n "] padding=0, SymInt[" #n "] output_padding=0, SymInt groups=1, "        \
             "SymInt[" #n "] dilation=1) -> Tensor",                                               \
            shape_conv, .lower = lower_conv, .roles = CONV_ROLES, .made = "output_padding:rest"    \
    }

#define CONV_SIZES "SymInt[] stride, SymInt[] padding, SymInt[] dilation"
#define CONV_ROW(schema) \
    { schema " -> Tensor", shape_conv, .lower = lower_conv, .roles = CONV_ROLES }

const AtenOp p2o_ops_conv[] = {
    CONV_ROWS(1),
    CONV_ROWS(2),
    CONV_ROWS(3),
    CONV_TRANSPOSE_ROW("conv_transpose1d", 1),
    CONV_TRANSPOSE_ROW("conv_transpose2d.input", 2),
    CONV_TRANSPOSE_ROW("conv_transpose3d.input", 3),
    CONV_ROW("convolution(Tensor input, Tensor weight, Tensor? bias, " CONV_SIZES
             ", bool transposed, SymInt[] output_padding, SymInt groups)"),
    CONV_ROW("convolution_overrideable(Tensor input, Tensor weight, Tensor? bias, " CONV_SIZES
             ", bool transposed, SymInt[] output_padding, SymInt groups)"),
    CONV_ROW("_convolution(Tensor input, Tensor weight, Tensor? bias, " CONV_SIZES
             ", bool transposed, SymInt[] output_padding, SymInt groups, bool benchmark, "
             "bool deterministic, bool cudnn_enabled, bool allow_tf32)"),
    CONV_ROW("_convolution.deprecated(Tensor input, Tensor weight, Tensor? bias, " CONV_SIZES
             ", bool transposed, int[] output_padding, SymInt groups, bool benchmark, "
             "bool deterministic, bool cudnn_enabled)"),
    CONV_ROW("_convolution_mode(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, "
             "str padding, SymInt[] dilation, SymInt groups)"),
    CONV_ROW("mkldnn_convolution(Tensor self, Tensor weight, Tensor? bias, SymInt[] padding, "
             "SymInt[] stride, SymInt[] dilation, SymInt groups)"),
    CONV_ROW(
        "cudnn_convolution(Tensor self, Tensor weight, SymInt[] padding, SymInt[] stride, "
        "SymInt[] dilation, SymInt groups, bool benchmark, bool deterministic, bool allow_tf32)"),
    CONV_ROW("cudnn_convolution_transpose(Tensor self, Tensor weight, SymInt[] padding, "
             "SymInt[] output_padding, SymInt[] stride, SymInt[] dilation, SymInt groups, "
             "bool benchmark, bool deterministic, bool allow_tf32)"),
    { "cudnn_convolution_relu(Tensor self, Tensor weight, Tensor? bias, " CONV_SIZES
      ", SymInt groups) -> Tensor",
      shape_conv, .lower = lower_conv_relu, .roles = CONV_ROLES },
    CONV_ROW("_conv_depthwise2d(Tensor self, Tensor weight, SymInt[2] kernel_size, Tensor? bias, "
             "SymInt[2] stride, SymInt[2] padding, SymInt[2] dilation)"),
    CONV_ROW("conv_depthwise3d(Tensor self, Tensor weight, SymInt[3] kernel_size, Tensor? bias, "
             "SymInt[3] stride, SymInt[3] padding, SymInt[3] dilation)"),
    CONV_ROW("thnn_conv2d(Tensor self, Tensor weight, SymInt[2] kernel_size, Tensor? bias=None, "
             "SymInt[2] stride=1, SymInt[2] padding=0)"),
    CONV_ROW(
        "_slow_conv2d_forward(Tensor self, Tensor weight, SymInt[2] kernel_size, Tensor? bias, "
        "SymInt[2] stride, SymInt[2] padding)"),
    CONV_ROW("slow_conv3d(Tensor self, Tensor weight, SymInt[3] kernel_size, Tensor? bias=None, "
             "SymInt[3] stride=1, SymInt[3] padding=0)"),
    CONV_ROW("slow_conv3d_forward(Tensor self, Tensor weight, SymInt[3] kernel_size, Tensor? bias, "
             "SymInt[3] stride, SymInt[3] padding)"),
    CONV_ROW(
        "slow_conv_dilated2d(Tensor self, Tensor weight, SymInt[2] kernel_size, Tensor? bias=None, "
        "SymInt[2] stride=1, SymInt[2] padding=0, SymInt[2] dilation=1)"),
    CONV_ROW(
        "slow_conv_dilated3d(Tensor self, Tensor weight, SymInt[3] kernel_size, Tensor? bias=None, "
        "SymInt[3] stride=1, SymInt[3] padding=0, SymInt[3] dilation=1)"),
    CONV_ROW("slow_conv_transpose2d(Tensor self, Tensor weight, SymInt[2] kernel_size, "
             "Tensor? bias=None, SymInt[2] stride=1, SymInt[2] padding=0, "
             "SymInt[2] output_padding=0, SymInt[2] dilation=1)"),
    CONV_ROW("slow_conv_transpose3d(Tensor self, Tensor weight, SymInt[3] kernel_size, "
             "Tensor? bias=None, SymInt[3] stride=1, SymInt[3] padding=0, "
             "SymInt[3] output_padding=0, SymInt[3] dilation=1)"),
    { "conv_tbc(Tensor self, Tensor weight, Tensor bias, int pad=0) -> Tensor", shape_conv_tbc,
      .lower = lower_conv_tbc, .limits = "not float64, not integers" },
    { 0 },
};
