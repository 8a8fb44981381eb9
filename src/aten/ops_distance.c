/* Distances and similarities of vectors.
 *
 * Half types are computed in f32.  Differences are taken as they are, except where PyTorch itself
 * goes through a matrix product: |a - b|^2 = |a|^2 + |b|^2 - 2ab, which needs less memory and loses
 * digits. */
#include "aten/lower.h"

#include <math.h>

static Value *vector_arg(Lower *lo, const Call *c, const char *name)
{
    return tensor_as(lo, c, name, wide_of(out_dtype(c, 0)));
}

static bool must_be_vectors(Infer *in, DType t)
{
    if (is_float(t))
        return true;
    rule_fail(in, "a distance in %s", p2o_dtype_torch(t));
    return false;
}

static void shape_cosine_similarity(Infer *in, const Call *c)
{
    Shape s = broadcast(in, c, shape_arg(c, "x1"), shape_arg(c, "x2"));
    DType t = PROMOTE(c, "x1", "x2");
    int   dim;
    if (must_be_vectors(in, t) && must_wrap_reduce(in, int_arg(c, "dim"), s.rank, &dim))
        set_out(in, c, 0, t, s.rank ? without_dim(in, s, dim) : s);
}

/* x / max(|x|, eps) along an axis counted from the end, in the shape both vectors have there. */
static Value *unit_vector(Lower *lo, Value *x, Shape both, int axis, double eps)
{
    int own = axis - (both.rank - rank(x));
    if (own < 0 || size_at(x, own) != both.at[axis]) {
        x = expand(lo, x, both);
        own = axis;
    }
    Value *length = p_norm(lo, x, (const int64_t[]){ own }, both.rank ? 1 : 0, true, 2);
    return emit(lo, ONNX_Div, x, emit(lo, ONNX_Max, length, num(lo, x->dtype, eps)));
}

static Value *lower_cosine_similarity(Lower *lo, const Call *c)
{
    Value *a = vector_arg(lo, c, "x1"), *b = vector_arg(lo, c, "x2");
    Shape  both = joint_shape(lo, a->shape, b->shape);
    int    axis = axis_arg(c, "dim", both.rank);
    double eps = float_arg(c, "eps");
    Value *y = emit(lo, ONNX_Mul, unit_vector(lo, a, both, axis, eps),
                    unit_vector(lo, b, both, axis, eps));
    if (both.rank)
        y = reduce(lo, ONNX_ReduceSum, y, (const int64_t[]){ axis }, 1, false);
    return cast(lo, y, out_dtype(c, 0));
}

static void shape_pairwise_distance(Infer *in, const Call *c)
{
    Shape s = broadcast(in, c, shape_arg(c, "x1"), shape_arg(c, "x2"));
    DType t = float_of(PROMOTE(c, "x1", "x2"));         /* eps is a float */
    if (s.rank == 0)
        rule_fail(in, "vectors of rank 0");
    else
        set_out(in, c, 0, t,
                bool_arg(c, "keepdim") ? with_last(in, s, int_dim(in, 1))
                                       : slice_shape(s, 0, s.rank - 1));
}

static Value *lower_pairwise_distance(Lower *lo, const Call *c)
{
    Value *d = emit(lo, ONNX_Sub, vector_arg(lo, c, "x1"), vector_arg(lo, c, "x2"));
    d = plus_num(lo, d, float_arg(c, "eps"));
    Value *y = p_norm(lo, d, (const int64_t[]){ rank(d) - 1 }, 1, bool_arg(c, "keepdim"),
                      float_arg(c, "p"));
    return cast(lo, y, out_dtype(c, 0));
}

static void shape_dist(Infer *in, const Call *c)
{
    DType t = PROMOTE(c, "self", "other");
    broadcast(in, c, shape_arg(c, "self"), shape_arg(c, "other"));
    if (must_be_vectors(in, t))
        set_out(in, c, 0, t, (Shape){ 0, NULL });
}

static Value *lower_dist(Lower *lo, const Call *c)
{
    Value  *d = emit(lo, ONNX_Sub, vector_arg(lo, c, "self"), vector_arg(lo, c, "other"));
    int64_t axes[MAX_RANK];
    double  p;
    for (int i = 0; i < rank(d); i++)
        axes[i] = i;
    if (!fixed_number(lo, c, "p", &p))
        return NULL;
    return cast(lo, p_norm(lo, d, axes, rank(d), false, p), out_dtype(c, 0));
}

static void shape_cdist(Infer *in, const Call *c)
{
    Shape a = shape_arg(c, "x1"), b = shape_arg(c, "x2");
    DType t = PROMOTE(c, "x1", "x2");
    if (a.rank < 2 || b.rank < 2) {
        rule_fail(in, "vectors of rank %d and %d", a.rank, b.rank);
        return;
    }
    if (!must_be_vectors(in, t) ||
        !must_equal(in, c, dim_at(a, -1), dim_at(b, -1), "lengths of vectors"))
        return;
    Shape batch = broadcast(in, c, slice_shape(a, 0, a.rank - 2), slice_shape(b, 0, b.rank - 2));
    set_out(in, c, 0, t,
            concat_shapes(in, batch, (Shape){ 2, (Dim[]){ dim_at(a, -2), dim_at(b, -2) } }));
}

/* [.., p, 1, m] - [.., 1, r, m], then the norm of the last axis. */
static Value *distances(Lower *lo, Value *a, Value *b, double p)
{
    Value *d = emit(lo, ONNX_Sub, unsqueeze(lo, a, rank(a) - 1), unsqueeze(lo, b, rank(b) - 2));
    return p_norm(lo, d, (const int64_t[]){ rank(d) - 1 }, 1, false, p);
}

static Value *square_sums(Lower *lo, Value *x)
{
    return reduce(lo, ONNX_ReduceSumSquare, x, (const int64_t[]){ rank(x) - 1 }, 1, true);
}

static Value *distances_by_product(Lower *lo, Value *a, Value *b)
{
    Value *product = emit(lo, ONNX_MatMul, a, swap_last_two(lo, b));
    Value *squares = emit(lo, ONNX_Add, square_sums(lo, a), swap_last_two(lo, square_sums(lo, b)));
    Value *d = emit(lo, ONNX_Sub, squares, times_num(lo, product, 2));
    return emit(lo, ONNX_Sqrt, emit(lo, ONNX_Max, d, num(lo, d->dtype, 0)));
}

static bool is_more_than(const Value *x, int axis, int64_t n)
{
    int64_t v;
    return p2o_dim_is_int(size_at(x, axis), &v) && v > n;
}

/* Mode 1 is by product, 2 is not; without one PyTorch takes the product from 26 vectors on. */
static bool goes_by_product(const Call *c, const Value *a, const Value *b)
{
    int64_t mode =
        names_arg(c, "compute_mode") && has_arg(c, "compute_mode") ? int_arg(c, "compute_mode") : 0;
    if (float_arg(c, "p") != 2 || mode == 2)
        return false;
    return mode == 1 || is_more_than(a, -2, 25) || is_more_than(b, -2, 25);
}

static Value *lower_cdist(Lower *lo, const Call *c)
{
    Value *a = vector_arg(lo, c, "x1"), *b = vector_arg(lo, c, "x2");
    if (is_size(a, -1, 0))
        return full(lo, out_shape(c, 0), out_dtype(c, 0), 0);
    Value *d = goes_by_product(c, a, b) ? distances_by_product(lo, a, b)
                                        : distances(lo, a, b, float_arg(c, "p"));
    return cast(lo, d, out_dtype(c, 0));
}

static Value *lower_euclidean_dist(Lower *lo, const Call *c)
{
    Value *d = distances_by_product(lo, vector_arg(lo, c, "x1"), vector_arg(lo, c, "x2"));
    return cast(lo, d, out_dtype(c, 0));
}

static void shape_pdist(Infer *in, const Call *c)
{
    Type x = type_arg(c, "self");
    if (!must_rank(in, c, "self", 2) || !must_be_vectors(in, x.dtype))
        return;
    Dim n = x.shape.at[0],
        pairs = p2o_dim_mul(in->dims, n, p2o_dim_sub(in->dims, n, int_dim(in, 1)));
    set_out(in, c, 0, x.dtype,
            (Shape){ 1, (Dim[]){ p2o_dim_floordiv(in->dims, pairs, int_dim(in, 2)) } });
}

/* Of each vector to all that come after it. */
static Value *lower_pdist(Lower *lo, const Call *c)
{
    Value *x = vector_arg(lo, c, "self"), *i = iota(lo, size_at(x, 0));
    Value *pairs = emit(lo, ONNX_NonZero, emit(lo, ONNX_Less, unsqueeze(lo, i, 1), i));
    Value *first = emit(lo, ONNX_Gather, x, select_axis(lo, pairs, 0, p2o_dim_int(lo->dims, 0)));
    Value *second = emit(lo, ONNX_Gather, x, select_axis(lo, pairs, 0, p2o_dim_int(lo->dims, 1)));
    Value *d = emit(lo, ONNX_Sub, first, second);
    return cast(lo, p_norm(lo, d, (const int64_t[]){ 1 }, 1, false, float_arg(c, "p")),
                out_dtype(c, 0));
}

const AtenOp p2o_ops_distance[] = {
    { "cosine_similarity(Tensor x1, Tensor x2, int dim=1, float eps=1e-08) -> Tensor",
      shape_cosine_similarity, .lower = lower_cosine_similarity },
    { "pairwise_distance(Tensor x1, Tensor x2, float p=2, float eps=1e-06, bool keepdim=False) -> Tensor",
      shape_pairwise_distance, .lower = lower_pairwise_distance },
    { "dist(Tensor self, Tensor other, Scalar p=2) -> Tensor", shape_dist, .lower = lower_dist },
    { "cdist(Tensor x1, Tensor x2, float p=2, int? compute_mode=None) -> Tensor", shape_cdist,
      .lower = lower_cdist },
    { "_cdist_forward(Tensor x1, Tensor x2, float p, int? compute_mode) -> Tensor", shape_cdist,
      .lower = lower_cdist },
    { "_euclidean_dist(Tensor x1, Tensor x2) -> Tensor", shape_cdist,
      .lower = lower_euclidean_dist },
    { "pdist(Tensor self, float p=2) -> Tensor", shape_pdist, .lower = lower_pdist },
    { "_pdist_forward(Tensor self, float p=2) -> Tensor", shape_pdist, .lower = lower_pdist },
    { 0 },
};
