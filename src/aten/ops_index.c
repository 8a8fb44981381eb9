/* Reading and writing elements chosen by indices or masks. */
#include "aten/lower.h"

static void shape_embedding(Infer *in, const Call *c)
{
    Type w = type_arg(c, "weight"), i = type_arg(c, "indices");
    if (must_rank(in, c, "weight", 2))
        set_out(in, c, 0, w.dtype, insert_dim(in, i.shape, i.shape.rank, w.shape.at[1]));
}

static Value *lower_embedding(Lower *lo, const Call *c)
{
    return emit(lo, ONNX_Gather, tensor_arg(lo, c, "weight"), tensor_arg(lo, c, "indices"));
}

static void shape_masked_fill(Infer *in, const Call *c)
{
    Type x = type_arg(c, "self"), mask = type_arg(c, "mask");
    if (mask.dtype != DT_BOOL)
        rule_fail(in, "mask of %s", p2o_dtype_torch(mask.dtype));
    else
        set_out(in, c, 0, x.dtype, broadcast(in, c, x.shape, mask.shape));
}

static Value *lower_masked_fill(Lower *lo, const Call *c)
{
    DType t = out_dtype(c, 0);
    return emit(lo, ONNX_Where, tensor_arg(lo, c, "mask"), tensor_as(lo, c, "value", t),
                tensor_arg(lo, c, "self"));
}

static void shape_copy(Infer *in, const Call *c)
{
    Type x = type_arg(c, "self");
    broadcast(in, c, x.shape, shape_arg(c, "src"));
    set_out(in, c, 0, x.dtype, x.shape);
}

static Value *lower_copy(Lower *lo, const Call *c)
{
    return expand(lo, tensor_as(lo, c, "src", out_dtype(c, 0)), out_shape(c, 0));
}

const AtenOp p2o_ops_index[] = {
    { "embedding(Tensor weight, Tensor indices, SymInt padding_idx=-1, bool scale_grad_by_freq=False, bool sparse=False) -> Tensor",
      shape_embedding, .lower = lower_embedding },
    { "masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor", shape_masked_fill,
      .lower = lower_masked_fill },
    { "masked_fill.Tensor(Tensor self, Tensor mask, Tensor value) -> Tensor", shape_masked_fill,
      .lower = lower_masked_fill },
    { "copy(Tensor self, Tensor src, bool non_blocking=False) -> Tensor", shape_copy,
      .lower = lower_copy },
    { 0 },
};
