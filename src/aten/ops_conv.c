/* Convolutions of one to three dims. */
#include "aten/lower.h"

typedef struct ConvSizes {
    int64_t stride[3], padding[3], dilation[3];
    int64_t groups;
    int     n;                  /* spatial dims */
} ConvSizes;

/* An input without batch has one dim less; it gets one of size 1. */
static bool is_unbatched(const Call *c) { return shape_arg(c, "input").rank < shape_arg(c, "weight").rank; }

static bool conv_sizes(Infer *in, const Call *c, ConvSizes *v)
{
    Shape x = shape_arg(c, "input"), w = shape_arg(c, "weight");
    const Arg *pad = p2o_call_arg(c, "padding");

    v->n = w.rank - 2;
    if (v->n < 1 || v->n > 3 || (x.rank != w.rank && x.rank != w.rank - 1)) {
        rule_fail(in, "input of rank %d with a weight of rank %d", x.rank, w.rank);
        return false;
    }
    if (!const_dim(in, dim_arg(c, "groups"), "groups", &v->groups) ||
        !const_ints(in, c, "stride", v->n, v->stride) ||
        !const_ints(in, c, "dilation", v->n, v->dilation))
        return false;
    if (pad->kind == ARG_STR) {
        if (!same(pad->s, "same") && !same(pad->s, "valid")) {
            rule_fail(in, "padding '%s'", pad->s);
            return false;
        }
        memset(v->padding, 0, sizeof v->padding);
    } else if (!const_ints(in, c, "padding", v->n, v->padding)) {
        return false;
    }
    for (int i = 0; i < v->n; i++) {
        if (v->stride[i] < 1 || v->dilation[i] < 1 || v->padding[i] < 0 || v->groups < 1) {
            rule_fail(in, "stride, dilation, padding or groups out of range");
            return false;
        }
    }
    return true;
}

static bool is_same_padding(const Call *c)
{
    const Arg *pad = p2o_call_arg(c, "padding");
    return pad->kind == ARG_STR && same(pad->s, "same");
}

/* (size + 2 pad - dilation (kernel - 1) - 1) // stride + 1 */
static Dim conv_out(Infer *in, Dim size, Dim kernel, const ConvSizes *v, int i)
{
    Dims *t = in->dims;
    Dim   reach = p2o_dim_add(t, p2o_dim_mul(t, int_dim(in, v->dilation[i]),
                                             p2o_dim_sub(t, kernel, int_dim(in, 1))), int_dim(in, 1));
    Dim   room = p2o_dim_sub(t, p2o_dim_add(t, size, int_dim(in, 2 * v->padding[i])), reach);
    return p2o_dim_add(t, p2o_dim_floordiv(t, room, int_dim(in, v->stride[i])), int_dim(in, 1));
}

static void shape_conv(Infer *in, const Call *c)
{
    Type      x = type_arg(c, "input");
    Shape     w = shape_arg(c, "weight");
    ConvSizes v;
    if (!conv_sizes(in, c, &v))
        return;
    int lead = x.shape.rank - v.n;              /* 1 or 2 */
    Dim want = p2o_dim_mul(in->dims, w.at[1], int_dim(in, v.groups));
    if (!must_equal(in, c, x.shape.at[lead - 1], want, "input channels"))
        return;
    Dim *at = p2o_shape_copy(in->arena, x.shape, 0);
    at[lead - 1] = w.at[0];
    for (int i = 0; i < v.n && !is_same_padding(c); i++)
        at[lead + i] = conv_out(in, x.shape.at[lead + i], w.at[2 + i], &v, i);
    set_out(in, c, 0, x.dtype, (Shape){ x.shape.rank, at });
}

/* 'same' puts the odd one at the end: dilation (kernel - 1) in all. */
static bool conv_pads(const Call *c, int n, const int64_t *dilation, int64_t *pads)
{
    const Arg *pad = p2o_call_arg(c, "padding");
    for (int i = 0; i < n; i++) {
        int64_t kernel = 0;
        if (!is_same_padding(c)) {
            pads[i] = pads[n + i] = pad->kind == ARG_STR ? 0 : int_item(c, "padding", pad->n == 1 ? 0 : i);
            continue;
        }
        if (!p2o_dim_is_int(shape_arg(c, "weight").at[2 + i], &kernel))
            return false;
        int64_t total = dilation[i] * (kernel - 1);
        pads[i] = total / 2;
        pads[n + i] = total - pads[i];
    }
    return true;
}

static Value *lower_conv(Lower *lo, const Call *c)
{
    int            n = shape_arg(c, "weight").rank - 2;
    const int64_t *dilation = ints_arg(lo, c, "dilation", n);
    int64_t       *pads = NEW_N(lo->arena, int64_t, (size_t)n * 2);
    Value         *x = tensor_arg(lo, c, "input");

    if (!conv_pads(c, n, dilation, pads))
        return unsupported(lo, c, "padding 'same' with a kernel size known at run time only");
    if (is_unbatched(c))
        x = unsqueeze(lo, x, 0);
    Value *y = emit_with(lo, ONNX_Conv,
                         ATTRS(attr_ints("strides", ints_arg(lo, c, "stride", n), (size_t)n),
                               attr_ints("pads", pads, (size_t)n * 2),
                               attr_ints("dilations", dilation, (size_t)n),
                               attr_int("group", int_arg(c, "groups"))),
                         x, tensor_arg(lo, c, "weight"), tensor_arg(lo, c, "bias"));
    return is_unbatched(c) ? squeeze(lo, y, 0) : y;
}

#define CONV_ROWS(n)                                                                               \
    { "conv" #n "d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[" #n "] stride=1, "       \
      "SymInt[" #n "] padding=0, SymInt[" #n "] dilation=1, SymInt groups=1) -> Tensor",            \
      shape_conv, .lower = lower_conv },                                                           \
    { "conv" #n "d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[" #n "] stride=1, " \
      "str padding=\"valid\", SymInt[" #n "] dilation=1, SymInt groups=1) -> Tensor",               \
      shape_conv, .lower = lower_conv }

const AtenOp p2o_ops_conv[] = {
    CONV_ROWS(1),
    CONV_ROWS(2),
    CONV_ROWS(3),
    { 0 },
};
