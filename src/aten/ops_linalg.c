/* Matrix products. */
#include "aten/lower.h"

static void shape_linear(Infer *in, const Call *c)
{
    Type x = type_arg(c, "input"), w = type_arg(c, "weight");
    int  nw = w.shape.rank;

    if (nw != 1 && nw != 2) {
        rule_fail(in, "weight: rank %d against 1 or 2", nw);
        return;
    }
    if (x.shape.rank == 0) {
        rule_fail(in, "input: rank 0");
        return;
    }
    if (!must_equal(in, c, dim_at(x.shape, -1), dim_at(w.shape, -1), "input features"))
        return;
    set_out(in, c, 0, x.dtype, nw == 2 ? with_last(in, x.shape, dim_at(w.shape, 0))
                                       : slice_shape(x.shape, 0, x.shape.rank - 1));
}

/* y = x * transpose(w) + b.  Gemm takes matrices only; other ranks broadcast. */
static Value *lower_linear(Lower *lo, const Call *c)
{
    Value *x = tensor_arg(lo, c, "input");
    Value *w = tensor_arg(lo, c, "weight");
    Value *b = tensor_arg(lo, c, "bias");       /* NULL when None */

    if (rank(x) == 2 && rank(w) == 2)
        return emit_with(lo, ONNX_Gemm, ATTRS(attr_int("transB", 1)), x, w, b);
    Value *y = emit(lo, ONNX_MatMul, x, rank(w) == 2 ? swap_last_two(lo, w) : w);
    return b ? emit(lo, ONNX_Add, y, b) : y;
}

/* Vectors are rows on the left and columns on the right; the rest broadcasts. */
static void shape_matmul(Infer *in, const Call *c)
{
    Type  a = type_arg(c, "self"), b = type_arg(c, "other");
    int   na = a.shape.rank, nb = b.shape.rank;
    if (na == 0 || nb == 0) {
        rule_fail(in, "ranks %d and %d", na, nb);
        return;
    }
    if (!must_equal(in, c, dim_at(a.shape, -1), dim_at(b.shape, nb == 1 ? 0 : -2), "inner sizes"))
        return;
    Shape s = broadcast(in, c, slice_shape(a.shape, 0, na > 2 ? na - 2 : 0),
                        slice_shape(b.shape, 0, nb > 2 ? nb - 2 : 0));
    if (na > 1)
        s = insert_dim(in, s, s.rank, dim_at(a.shape, -2));
    if (nb > 1)
        s = insert_dim(in, s, s.rank, dim_at(b.shape, -1));
    set_out(in, c, 0, a.dtype, s);
}

static Value *lower_matmul(Lower *lo, const Call *c)
{
    return emit(lo, ONNX_MatMul, tensor_arg(lo, c, "self"), p2o_arg_value(lo, &c->args[1], DT_F32));
}

static bool must_be_ranks(Infer *in, const Call *c, const char *left, const char *right, int n)
{
    return must_rank(in, c, left, n) && must_rank(in, c, right, n);
}

static void shape_mm(Infer *in, const Call *c)
{
    Type a = type_arg(c, "self"), b = type_arg(c, "mat2");
    if (must_be_ranks(in, c, "self", "mat2", 2) &&
        must_equal(in, c, a.shape.at[1], b.shape.at[0], "inner sizes"))
        set_out(in, c, 0, a.dtype, with_last(in, a.shape, b.shape.at[1]));
}

static void shape_bmm(Infer *in, const Call *c)
{
    Type a = type_arg(c, "self"), b = type_arg(c, "mat2");
    if (must_be_ranks(in, c, "self", "mat2", 3) &&
        must_equal(in, c, a.shape.at[0], b.shape.at[0], "batch sizes") &&
        must_equal(in, c, a.shape.at[2], b.shape.at[1], "inner sizes"))
        set_out(in, c, 0, a.dtype, with_last(in, a.shape, b.shape.at[2]));
}

static void shape_addmm(Infer *in, const Call *c)
{
    Type a = type_arg(c, "mat1"), b = type_arg(c, "mat2");
    if (!must_be_ranks(in, c, "mat1", "mat2", 2) ||
        !must_equal(in, c, a.shape.at[1], b.shape.at[0], "inner sizes"))
        return;
    Shape s = with_last(in, a.shape, b.shape.at[1]);
    broadcast(in, c, shape_arg(c, "self"), s);
    set_out(in, c, 0, a.dtype, s);
}

/* beta * self + alpha * mat1 mat2; Gemm when the numbers are constants of a float type. */
static Value *lower_addmm(Lower *lo, const Call *c)
{
    double alpha, beta;
    Value *x = tensor_arg(lo, c, "self"), *a = tensor_arg(lo, c, "mat1"), *b = tensor_arg(lo, c, "mat2");
    DType  t = out_dtype(c, 0);
    if (is_float(t) && p2o_number_is_const(p2o_call_arg(c, "alpha"), &alpha) &&
        p2o_number_is_const(p2o_call_arg(c, "beta"), &beta)) {
        if (beta == 0)                          /* self is not read, not even its NaN */
            x = NULL;
        return emit_with(lo, ONNX_Gemm, ATTRS(attr_float("alpha", alpha), attr_float("beta", beta)),
                         a, b, x);
    }
    Value *y = emit(lo, ONNX_Mul, emit(lo, ONNX_MatMul, a, b), number_arg(lo, c, "alpha", t));
    return emit(lo, ONNX_Add, y, emit(lo, ONNX_Mul, x, number_arg(lo, c, "beta", t)));
}

const AtenOp p2o_ops_linalg[] = {
    { "linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor", shape_linear,
      .lower = lower_linear },
    { "matmul(Tensor self, Tensor other) -> Tensor", shape_matmul, .lower = lower_matmul },
    { "mm(Tensor self, Tensor mat2) -> Tensor", shape_mm, .lower = lower_matmul },
    { "bmm(Tensor self, Tensor mat2) -> Tensor", shape_bmm, .lower = lower_matmul },
    { "addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
      shape_addmm, .lower = lower_addmm },
    { 0 },
};
