/* Tensors from nothing but sizes and numbers. */
#include "aten/lower.h"

static void shape_filled(Infer *in, const Call *c)
{
    set_out(in, c, 0, dtype_arg(c, "dtype", DT_F32), shape_list(in, c, "size"));
}

static void shape_filled_like(Infer *in, const Call *c)
{
    Type x = type_arg(c, "self");
    set_out(in, c, 0, dtype_arg(c, "dtype", x.dtype), x.shape);
}

/* Without a dtype the fill value decides. */
static void shape_full(Infer *in, const Call *c)
{
    DType t = type_arg(c, "fill_value").dtype;
    set_out(in, c, 0, dtype_arg(c, "dtype", t), shape_list(in, c, "size"));
}

static Value *lower_zeros(Lower *lo, const Call *c) { return full(lo, out_shape(c, 0), out_dtype(c, 0), 0); }
static Value *lower_ones(Lower *lo, const Call *c) { return full(lo, out_shape(c, 0), out_dtype(c, 0), 1); }

static Value *lower_full(Lower *lo, const Call *c)
{
    double v;
    DType  t = out_dtype(c, 0);
    if (p2o_number_is_const(p2o_call_arg(c, "fill_value"), &v))
        return full(lo, out_shape(c, 0), t, v);
    return expand(lo, number_arg(lo, c, "fill_value", t), out_shape(c, 0));
}

#define FACTORY "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"
#define LIKE    "*, " FACTORY ", MemoryFormat? memory_format=None) -> Tensor"

const AtenOp p2o_ops_create[] = {
    { "zeros(SymInt[] size, *, " FACTORY ") -> Tensor", shape_filled, .lower = lower_zeros },
    { "ones(SymInt[] size, *, " FACTORY ") -> Tensor", shape_filled, .lower = lower_ones },
    { "full(SymInt[] size, Scalar fill_value, *, " FACTORY ") -> Tensor", shape_full, .lower = lower_full },
    { "zeros_like(Tensor self, " LIKE, shape_filled_like, .lower = lower_zeros },
    { "ones_like(Tensor self, " LIKE, shape_filled_like, .lower = lower_ones },
    { "full_like(Tensor self, Scalar fill_value, " LIKE, shape_filled_like, .lower = lower_full },
    { 0 },
};
