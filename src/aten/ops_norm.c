/* Normalisations. */
#include "aten/lower.h"

static void shape_batch_norm(Infer *in, const Call *c)
{
    static const char *const per_channel[] = { "weight", "bias", "running_mean", "running_var" };
    Type x = type_arg(c, "input");
    if (x.shape.rank < 2) {
        rule_fail(in, "input of rank %d", x.shape.rank);
        return;
    }
    if (bool_arg(c, "training")) {
        rule_unsupported(in, "training mode: call model.eval() before the capture");
        return;
    }
    for (size_t i = 0; i < COUNT_OF(per_channel); i++)
        if (has_arg(c, per_channel[i]) &&
            !must_equal(in, c, x.shape.at[1], shape_arg(c, per_channel[i]).at[0], per_channel[i]))
            return;
    set_out(in, c, 0, x.dtype, x.shape);
}

/* A missing scale is ones, a missing shift zeros; ONNX wants both. */
static Value *channel_or(Lower *lo, const Call *c, const char *name, const Value *x, double otherwise)
{
    Value *v = tensor_arg(lo, c, name);
    return v ? v : full(lo, slice_shape(x->shape, 1, 2), x->dtype, otherwise);
}

static Value *lower_batch_norm(Lower *lo, const Call *c)
{
    Value *x = tensor_arg(lo, c, "input");
    if (!has_arg(c, "running_mean") || !has_arg(c, "running_var"))
        return unsupported(lo, c, "no running statistics");
    return emit_with(lo, ONNX_BatchNormalization, ATTRS(attr_float("epsilon", float_arg(c, "eps"))), x,
                     channel_or(lo, c, "weight", x, 1), channel_or(lo, c, "bias", x, 0),
                     tensor_arg(lo, c, "running_mean"), tensor_arg(lo, c, "running_var"));
}

static void shape_layer_norm(Infer *in, const Call *c)
{
    Type  x = type_arg(c, "input");
    Shape norm = shape_list(in, c, "normalized_shape");
    int   lead = x.shape.rank - norm.rank;
    if (lead < 0 || norm.rank == 0) {
        rule_fail(in, "normalized_shape of rank %d for an input of rank %d", norm.rank, x.shape.rank);
        return;
    }
    for (int i = 0; i < norm.rank; i++)
        if (!must_equal(in, c, x.shape.at[lead + i], norm.at[i], "normalized size"))
            return;
    set_out(in, c, 0, x.dtype, x.shape);
}

static Value *lower_layer_norm(Lower *lo, const Call *c)
{
    Value *x = tensor_arg(lo, c, "input"), *w = tensor_arg(lo, c, "weight");
    int    n = list_len(c, "normalized_shape");
    if (!w)
        w = full(lo, slice_shape(x->shape, rank(x) - n, rank(x)), x->dtype, 1);
    return emit_with(lo, ONNX_LayerNormalization,
                     ATTRS(attr_int("axis", -n), attr_float("epsilon", float_arg(c, "eps"))), x, w,
                     tensor_arg(lo, c, "bias"));
}

const AtenOp p2o_ops_norm[] = {
    { "batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool training, float momentum, float eps, bool cudnn_enabled) -> Tensor",
      shape_batch_norm, .lower = lower_batch_norm, .limits = "not in training mode" },
    { "layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, bool cudnn_enable=True) -> Tensor",
      shape_layer_norm, .lower = lower_layer_norm },
    { 0 },
};
