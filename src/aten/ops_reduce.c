/* Reductions over some or all dims. */
#include "aten/lower.h"

/* The dims named by `dim`: an int, a list, or all of them when absent or empty. */
static bool reduced_dims(const Call *c, int rank_, bool *which)
{
    int arg = p2o_schema_find(c->schema, "dim");
    memset(which, 0, MAX_RANK * sizeof *which);
    if (arg < 0 || c->args[arg].kind == ARG_NONE ||
        (c->args[arg].kind == ARG_LIST && c->args[arg].n == 0)) {
        for (int i = 0; i < rank_; i++)
            which[i] = true;
        return true;
    }
    int n = c->args[arg].kind == ARG_LIST ? (int)c->args[arg].n : 1;
    for (int i = 0, dim; i < n; i++) {
        int64_t d = c->args[arg].kind == ARG_LIST ? int_item(c, "dim", i) : int_arg(c, "dim");
        if (!p2o_wrap_dim(d, rank_, true, &dim) || (which[dim] && rank_))
            return false;
        which[dim] = true;
    }
    if (rank_ == 0)
        which[0] = false;
    return true;
}

static bool keeps_dims(const Call *c)
{
    return p2o_schema_find(c->schema, "keepdim") >= 0 && bool_arg(c, "keepdim");
}

static void reduce_to(Infer *in, const Call *c, DType t)
{
    Shape s = shape_arg(c, "self");
    bool  which[MAX_RANK];
    Dim  *at = p2o_shape_copy(in->arena, s, 0);
    int   n = 0;
    if (!reduced_dims(c, s.rank, which)) {
        rule_fail(in, "dim is out of range or comes twice, rank %d", s.rank);
        return;
    }
    for (int i = 0; i < s.rank; i++) {
        if (!which[i])
            at[n++] = s.at[i];
        else if (keeps_dims(c))
            at[n++] = int_dim(in, 1);
    }
    set_out(in, c, 0, t, (Shape){ n, at });
}

/* sum and prod: bool and integers add up as int64. */
static void shape_sum(Infer *in, const Call *c)
{
    DType t = type_arg(c, "self").dtype;
    reduce_to(in, c, dtype_arg(c, "dtype", is_float(t) || is_complex(t) ? t : DT_I64));
}

static void shape_mean(Infer *in, const Call *c)
{
    DType t = dtype_arg(c, "dtype", type_arg(c, "self").dtype);
    if (!is_float(t) && !is_complex(t))
        rule_fail(in, "mean of %s: give a float dtype", p2o_dtype_torch(t));
    else
        reduce_to(in, c, t);
}

static Value *reduce_by(Lower *lo, const Call *c, OnnxOp op)
{
    Value  *x = cast(lo, tensor_arg(lo, c, "self"), out_dtype(c, 0));
    bool    which[MAX_RANK];
    int64_t axes[MAX_RANK];
    int     n = 0;
    if (rank(x) == 0)
        return x;
    reduced_dims(c, rank(x), which);
    for (int i = 0; i < rank(x); i++)
        if (which[i])
            axes[n++] = i;
    return reduce(lo, op, x, axes, n, keeps_dims(c));
}

static Value *lower_sum(Lower *lo, const Call *c) { return reduce_by(lo, c, ONNX_ReduceSum); }
static Value *lower_mean(Lower *lo, const Call *c) { return reduce_by(lo, c, ONNX_ReduceMean); }

const AtenOp p2o_ops_reduce[] = {
    { "sum(Tensor self, *, ScalarType? dtype=None) -> Tensor", shape_sum, .lower = lower_sum },
    { "sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
      shape_sum, .lower = lower_sum },
    { "mean(Tensor self, *, ScalarType? dtype=None) -> Tensor", shape_mean, .lower = lower_mean },
    { "mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
      shape_mean, .lower = lower_mean },
    { 0 },
};
