/* Pooling. */
#include "aten/lower.h"

static int spatial_dims(const Call *c) { return list_len(c, "output_size"); }

static void shape_adaptive_pool(Infer *in, const Call *c)
{
    Type  x = type_arg(c, "self");
    Shape out = shape_list(in, c, "output_size");
    int   lead = x.shape.rank - out.rank;
    if (lead != 1 && lead != 2) {
        rule_fail(in, "input of rank %d for %d spatial dims", x.shape.rank, out.rank);
        return;
    }
    set_out(in, c, 0, x.dtype, concat_shapes(in, slice_shape(x.shape, 0, lead), out));
}

static Value *lower_adaptive_avg_pool(Lower *lo, const Call *c)
{
    Value  *x = tensor_arg(lo, c, "self");
    int     n = spatial_dims(c), lead = rank(x) - n;
    int64_t axes[3];
    for (int i = 0; i < n; i++) {
        axes[i] = lead + i;
        if (!dim_is(dim_item(c, "output_size", i), 1))
            return unsupported(lo, c, "output_size other than 1");
    }
    return reduce(lo, ONNX_ReduceMean, x, axes, n, true);
}

const AtenOp p2o_ops_pool[] = {
    { "adaptive_avg_pool1d(Tensor self, int[1] output_size) -> Tensor", shape_adaptive_pool,
      .lower = lower_adaptive_avg_pool, .limits = "output_size 1" },
    { "adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor", shape_adaptive_pool,
      .lower = lower_adaptive_avg_pool, .limits = "output_size 1" },
    { "adaptive_avg_pool3d(Tensor self, SymInt[3] output_size) -> Tensor", shape_adaptive_pool,
      .lower = lower_adaptive_avg_pool, .limits = "output_size 1" },
    { 0 },
};
