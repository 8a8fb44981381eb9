/* Reductions over some or all dims: sums, extremes, truth, moments, norms.
 *
 * A 0-d tensor accepts dim 0 and -1 and keeps its shape whatever keepdim says.  Half types are
 * summed in f32.  What ONNX leaves open: ONNX Runtime's ReduceMax, ReduceMin and their indices pass
 * over a NaN, and its mean of no elements is 0; only where the sizes say at conversion that there
 * are none is it PyTorch's NaN. */
#include "aten/lower.h"

#include <math.h>

/* Over which axes; n is 0 where nothing is reduced, as for a 0-d tensor. */
typedef struct Axes {
    int64_t at[MAX_RANK];
    int     n;
    bool    keep;
} Axes;

static bool is_axis(const Axes *a, int axis)
{
    for (int i = 0; i < a->n; i++)
        if (a->at[i] == axis)
            return true;
    return false;
}

static Axes all_axes(int rank_)
{
    Axes a = { .n = rank_ };
    for (int i = 0; i < rank_; i++)
        a.at[i] = i;
    return a;
}

static const Arg *optional_arg(const Call *c, const char *name)
{
    int i = p2o_schema_find(c->schema, name);
    return i < 0 || c->args[i].kind == ARG_NONE ? NULL : &c->args[i];
}

/* The dims named by `dim`: an int, a list, or all of them when absent or empty.  false: out of
 * range or named twice. */
static bool find_axes(const Call *c, int rank_, Axes *a)
{
    const Arg *dim = optional_arg(c, "dim"), *keep = optional_arg(c, "keepdim");
    int        n = !dim ? 0 : dim->kind == ARG_LIST ? (int)dim->n : 1, axis;
    bool       which[MAX_RANK] = { 0 };
    *a = n ? (Axes){ 0 } : all_axes(rank_);
    a->keep = keep && keep->b && rank_;
    for (int i = 0; i < n; i++) {
        int64_t d = dim->kind == ARG_LIST ? int_item(c, "dim", i) : int_arg(c, "dim");
        if (!p2o_wrap_dim(d, rank_, true, &axis) || which[axis])
            return false;
        which[axis] = true;
    }
    for (int i = 0; n && i < rank_; i++)
        if (which[i])
            a->at[a->n++] = i;
    return true;
}

static Shape shape_over(Infer *in, Shape s, const Axes *a)
{
    Dim *at = p2o_shape_copy(in->arena, s, 0);
    int  n = 0;
    for (int i = 0; i < s.rank; i++) {
        bool gone = is_axis(a, i);
        if (!gone || a->keep)
            at[n++] = gone ? int_dim(in, 1) : s.at[i];
    }
    return (Shape){ n, at };
}

static bool must_be_real(Infer *in, Type x)
{
    if (is_complex(x.dtype))
        rule_unsupported(in, "complex tensors");
    return !is_complex(x.dtype);
}

static bool must_be_float(Infer *in, DType t)
{
    if (!is_float(t) && !is_complex(t))
        rule_fail(in, "%s where a float type is needed", p2o_dtype_torch(t));
    return is_float(t) || is_complex(t);
}

/* Axes and result shape of a reduction of `self`. */
static bool must_reduce(Infer *in, const Call *c, Axes *a, Shape *out)
{
    Type x = type_arg(c, "self");
    if (!find_axes(c, x.shape.rank, a)) {
        rule_fail(in, "dim is out of range or comes twice, rank %d", x.shape.rank);
        return false;
    }
    *out = shape_over(in, x.shape, a);
    return true;
}

/* Every result has the reduced shape, and type t. */
static void reduce_to(Infer *in, const Call *c, DType t)
{
    Axes  a;
    Shape s;
    if (!must_reduce(in, c, &a, &s))
        return;
    for (int i = 0; i < nouts(c); i++)
        set_out(in, c, i, t, s);
}

static bool must_have_elements(Infer *in, const Axes *a, Shape s)
{
    for (int i = 0; i < a->n; i++) {
        if (dim_is(s.at[a->at[i]], 0)) {
            rule_fail(in, "dim %d has no elements", (int)a->at[i]);
            return false;
        }
    }
    return true;
}

static DType sum_type(const Call *c, const char *self)
{
    DType t = type_arg(c, self).dtype;
    return is_float(t) || is_complex(t) ? t : DT_I64;
}

/* sum and prod: bool and integers add up as int64. */
static void shape_sum(Infer *in, const Call *c)
{
    reduce_to(in, c, dtype_arg(c, "dtype", sum_type(c, "self")));
}

static void shape_mean(Infer *in, const Call *c)
{
    DType t = dtype_arg(c, "dtype", type_arg(c, "self").dtype);
    if (must_be_float(in, t))
        reduce_to(in, c, t);
}

static void shape_nanmean(Infer *in, const Call *c)
{
    if (must_be_float(in, type_arg(c, "self").dtype))
        shape_mean(in, c);
}

/* There is no greatest of nothing. */
static void shape_extreme(Infer *in, const Call *c)
{
    Type  x = type_arg(c, "self");
    Axes  a;
    Shape s;
    if (!must_reduce(in, c, &a, &s) || !must_have_elements(in, &a, x.shape))
        return;
    for (int i = 0; i < nouts(c); i++)
        set_out(in, c, i, x.dtype, s);
}

static void shape_extreme_dim(Infer *in, const Call *c)
{
    Type  x = type_arg(c, "self");
    Axes  a;
    Shape s;
    if (!must_reduce(in, c, &a, &s) || !must_have_elements(in, &a, x.shape))
        return;
    set_out(in, c, 0, x.dtype, s);
    set_out(in, c, 1, DT_I64, s);
}

static void shape_arg_extreme(Infer *in, const Call *c)
{
    Type  x = type_arg(c, "self");
    Axes  a;
    Shape s;
    if (must_reduce(in, c, &a, &s) && must_have_elements(in, &a, x.shape))
        set_out(in, c, 0, DT_I64, s);
}

static void shape_count(Infer *in, const Call *c) { reduce_to(in, c, DT_I64); }

static void shape_float_reduction(Infer *in, const Call *c)
{
    reduce_to(in, c, float_of(type_arg(c, "self").dtype));
}

/* `dims` is the one reduction that an empty list turns off. */
static bool is_no_reduction(const Call *c)
{
    const Arg *dim = optional_arg(c, "dim");
    return dim && dim->kind == ARG_LIST && dim->n == 0;
}

/* Truth is bool, of uint8 it is uint8. */
static void shape_truth(Infer *in, const Call *c)
{
    Type  x = type_arg(c, "self");
    DType t = x.dtype == DT_U8 ? DT_U8 : DT_BOOL;
    if (!is_no_reduction(c))
        reduce_to(in, c, t);
    else
        set_out(in, c, 0, t, x.shape);
}

static Axes reduction_axes(const Call *c, const Value *x)
{
    Axes a;
    find_axes(c, rank(x), &a);
    return a;
}

/* For operators that leave a single element as it is. */
static Value *reduce_over_axes(Lower *lo, OnnxOp op, Value *x, const Axes *a)
{
    return a->n ? reduce(lo, op, x, a->at, a->n, a->keep) : x;
}

static Value *reduce_by(Lower *lo, const Call *c, OnnxOp op, Value *x)
{
    Axes a = reduction_axes(c, x);
    return reduce_over_axes(lo, op, x, &a);
}

static Value *truth(Lower *lo, const Call *c, Value *x, bool any)
{
    Axes a = reduction_axes(c, x);
    if (a.n == 0)
        return x;
    return any ? reduce_any(lo, x, a.at, a.n, a.keep) : reduce_all(lo, x, a.at, a.n, a.keep);
}

/* In bools a sum is an or, a product an and. */
static Value *lower_sum(Lower *lo, const Call *c)
{
    Value *x = tensor_as(lo, c, "self", out_dtype(c, 0));
    return x->dtype == DT_BOOL ? truth(lo, c, x, true) : reduce_by(lo, c, ONNX_ReduceSum, x);
}

static Value *lower_prod(Lower *lo, const Call *c)
{
    Value *x = tensor_as(lo, c, "self", out_dtype(c, 0));
    return x->dtype == DT_BOOL ? truth(lo, c, x, false) : reduce_by(lo, c, ONNX_ReduceProd, x);
}

static Dim reduced_count(Lower *lo, const Value *x, const Axes *a)
{
    Dim n = p2o_dim_int(lo->dims, 1);
    for (int i = 0; i < a->n; i++)
        n = p2o_dim_mul(lo->dims, n, size_at(x, (int)a->at[i]));
    return n;
}

/* Of no elements the mean is NaN. */
static Value *mean_over(Lower *lo, Value *x, const Axes *a)
{
    Value *y = reduce_over_axes(lo, ONNX_ReduceMean, x, a);
    return dim_is(reduced_count(lo, x, a), 0) ? full(lo, y->shape, y->dtype, NAN) : y;
}

static Value *lower_mean(Lower *lo, const Call *c)
{
    Value *x = tensor_as(lo, c, "self", out_dtype(c, 0));
    Axes   a = reduction_axes(c, x);
    return mean_over(lo, x, &a);
}

static Value *nan_as_zero(Lower *lo, Value *x)
{
    if (!is_float(x->dtype))
        return x;
    return choose(lo, emit(lo, ONNX_IsNaN, x), num(lo, x->dtype, 0), x);
}

static Value *lower_nansum(Lower *lo, const Call *c)
{
    Value *x = cast(lo, nan_as_zero(lo, tensor_arg(lo, c, "self")), out_dtype(c, 0));
    return x->dtype == DT_BOOL ? truth(lo, c, x, true) : reduce_by(lo, c, ONNX_ReduceSum, x);
}

/* The sum of what is a number over the count of it. */
static Value *lower_nanmean(Lower *lo, const Call *c)
{
    DType  t = out_dtype(c, 0), wide = wide_of(t);
    Value *x = tensor_as(lo, c, "self", wide);
    Value *sum = reduce_by(lo, c, ONNX_ReduceSum, nan_as_zero(lo, x));
    Value *some = cast(lo, emit(lo, ONNX_Not, emit(lo, ONNX_IsNaN, x)), wide);
    return cast(lo, emit(lo, ONNX_Div, sum, reduce_by(lo, c, ONNX_ReduceSum, some)), t);
}

static Value *any_or_all(Lower *lo, const Call *c, bool any)
{
    Value *x = tensor_as(lo, c, "self", DT_BOOL);
    return cast(lo, is_no_reduction(c) ? x : truth(lo, c, x, any), out_dtype(c, 0));
}

static Value *lower_any(Lower *lo, const Call *c) { return any_or_all(lo, c, true); }
static Value *lower_all(Lower *lo, const Call *c) { return any_or_all(lo, c, false); }

static Value *lower_count_nonzero(Lower *lo, const Call *c)
{
    return reduce_by(lo, c, ONNX_ReduceSum, cast(lo, tensor_as(lo, c, "self", DT_BOOL), DT_I64));
}

/* The sum of sizes is NaN where one of them is, and nowhere else: looking at each element would
 * take ONNX Runtime many times as long as the extreme itself. */
static Value *extreme_over(Lower *lo, const Call *c, bool greatest)
{
    Value *x = tensor_arg(lo, c, "self");
    if (x->dtype == DT_BOOL)
        return truth(lo, c, x, greatest);
    Value *y = reduce_by(lo, c, greatest ? ONNX_ReduceMax : ONNX_ReduceMin, x);
    if (!is_float(x->dtype) || y == x)
        return y;
    Value *sizes = reduce_by(lo, c, ONNX_ReduceL1, x);
    return nan_or(lo, sizes, y);
}

static Value *lower_amax(Lower *lo, const Call *c) { return extreme_over(lo, c, true); }
static Value *lower_amin(Lower *lo, const Call *c) { return extreme_over(lo, c, false); }

static void lower_aminmax(Lower *lo, const Call *c, Value **out)
{
    out[0] = extreme_over(lo, c, false);
    out[1] = extreme_over(lo, c, true);
}

/* The first of equals, along one axis or in the flattened tensor. */
static Value *index_of_extreme(Lower *lo, const Call *c, bool greatest)
{
    Value *x = tensor_arg(lo, c, "self");
    Axes   a = reduction_axes(c, x);
    OnnxOp op = greatest ? ONNX_ArgMax : ONNX_ArgMin;
    if (x->dtype == DT_BOOL)
        x = cast(lo, x, DT_I32);
    if (rank(x) == 0)
        return num(lo, DT_I64, 0);
    if (optional_arg(c, "dim"))
        return emit_with(lo, op, ATTRS(attr_int("axis", a.at[0]), attr_int("keepdims", a.keep)), x);
    Value *i = emit_with(lo, op, ATTRS(attr_int("axis", 0), attr_int("keepdims", 0)), flat(lo, x));
    return reshape(lo, i, out_shape(c, 0));
}

/* The same, a NaN counting as more than any number: where there is one the first of them, which
 * ONNX Runtime's ArgMax would pass over. */
static Value *index_or_nan(Lower *lo, const Call *c, bool greatest)
{
    Value *x = tensor_arg(lo, c, "self"), *index = index_of_extreme(lo, c, greatest);
    bool   along = optional_arg(c, "dim") != NULL;
    if (!is_float(x->dtype) || rank(x) == 0)
        return index;
    Axes   a = reduction_axes(c, x);
    int    axis = along ? (int)a.at[0] : 0;
    bool   keep = along && a.keep;
    Value *nan = emit(lo, ONNX_IsNaN, along ? x : flat(lo, x));
    Value *any = reduce_any(lo, nan, (const int64_t[]){ axis }, 1, keep);
    Value *first =
        emit_with(lo, ONNX_ArgMax, ATTRS(attr_int("axis", axis), attr_int("keepdims", keep)),
                  cast(lo, nan, DT_U8));
    if (!along) {
        any = reshape(lo, any, out_shape(c, 0));
        first = reshape(lo, first, out_shape(c, 0));
    }
    return choose(lo, any, first, index);
}

static Value *lower_argmax(Lower *lo, const Call *c) { return index_or_nan(lo, c, true); }
static Value *lower_argmin(Lower *lo, const Call *c) { return index_or_nan(lo, c, false); }

static void lower_max_dim(Lower *lo, const Call *c, Value **out)
{
    out[0] = extreme_over(lo, c, true);
    out[1] = index_of_extreme(lo, c, true);
}

static void lower_min_dim(Lower *lo, const Call *c, Value **out)
{
    out[0] = extreme_over(lo, c, false);
    out[1] = index_of_extreme(lo, c, false);
}

static Value *lower_max_other(Lower *lo, const Call *c)
{
    DType t = out_dtype(c, 0);
    return emit(lo, t == DT_BOOL ? ONNX_Or : ONNX_Max, tensor_as(lo, c, "self", t),
                tensor_as(lo, c, "other", t));
}

static Value *lower_min_other(Lower *lo, const Call *c)
{
    DType t = out_dtype(c, 0);
    return emit(lo, t == DT_BOOL ? ONNX_And : ONNX_Min, tensor_as(lo, c, "self", t),
                tensor_as(lo, c, "other", t));
}

static Value *lower_logsumexp(Lower *lo, const Call *c)
{
    return reduce_by(lo, c, ONNX_ReduceLogSumExp, tensor_as(lo, c, "self", out_dtype(c, 0)));
}

static void shape_trace(Infer *in, const Call *c)
{
    if (must_rank(in, c, "self", 2))
        set_out(in, c, 0, sum_type(c, "self"), (Shape){ 0, NULL });
}

/* Of n rows of m the diagonal is every (m+1)-th element, up to min(n, m) rows. */
static Value *lower_trace(Lower *lo, const Call *c)
{
    Value *x = tensor_as(lo, c, "self", out_dtype(c, 0));
    Dim    n = size_at(x, 0), m = size_at(x, 1), one = p2o_dim_int(lo->dims, 1);
    Dim    end = p2o_dim_mul(lo->dims, p2o_dim_min(lo->dims, n, m), m);
    Dim    step = p2o_dim_add(lo->dims, m, one);
    if (!end || !step)
        return unsupported(lo, c, "a matrix this large");
    Value *diagonal = emit(lo, ONNX_Slice, flat(lo, x), INTS(lo, 0), dim_value(lo, end),
                           INTS(lo, 0), dim_value(lo, step));
    return reduce(lo, ONNX_ReduceSum, diagonal, (const int64_t[]){ 0 }, 1, false);
}

/* The dims that sum_to_size sums: those in front, and those that become 1. */
static Axes axes_to_size(Shape s, Shape to)
{
    Axes a = { .keep = true };
    int  lead = s.rank - to.rank;
    for (int i = 0; i < s.rank; i++)
        if (i < lead || (dim_is(to.at[i - lead], 1) && !dim_is(s.at[i], 1)))
            a.at[a.n++] = i;
    return a;
}

static void shape_sum_to_size(Infer *in, const Call *c)
{
    Type  x = type_arg(c, "self");
    Shape to = shape_list(in, c, "size");
    int   lead = x.shape.rank - to.rank;
    if (!must_be_real(in, x))
        return;
    if (lead < 0) {
        rule_fail(in, "size of rank %d for a tensor of rank %d", to.rank, x.shape.rank);
        return;
    }
    for (int i = 0; i < to.rank; i++)
        if (!dim_is(to.at[i], 1) && !must_equal(in, c, x.shape.at[lead + i], to.at[i], "sizes"))
            return;
    bool sums = to.rank == 0 || axes_to_size(x.shape, to).n;
    set_out(in, c, 0, sums ? sum_type(c, "self") : x.dtype, to);
}

static Value *lower_sum_to_size(Lower *lo, const Call *c)
{
    Value *x = tensor_as(lo, c, "self", out_dtype(c, 0));
    Axes   a = axes_to_size(x->shape, out_shape(c, 0));
    return reshape(lo, reduce_over_axes(lo, ONNX_ReduceSum, x, &a), out_shape(c, 0));
}

/* Moments. */

static void shape_moments(Infer *in, const Call *c)
{
    DType t = type_arg(c, "self").dtype;
    if (must_be_float(in, t))
        reduce_to(in, c, t);
}

/* `correction`, 1 when absent; or `unbiased`, which is 1 or 0. */
static bool find_correction(Lower *lo, const Call *c, double *v)
{
    *v = 1;
    if (p2o_schema_find(c->schema, "unbiased") >= 0)
        *v = bool_arg(c, "unbiased");
    else if (has_arg(c, "correction"))
        return fixed_number(lo, c, "correction", v);
    return true;
}

/* max(n - correction, 0): dividing by 0 gives PyTorch's NaN. */
static Value *degrees(Lower *lo, Dim n, double correction, DType t)
{
    int64_t whole = (int64_t)correction;
    if ((double)whole == correction) {
        Dim less = p2o_dim_sub(lo->dims, n, p2o_dim_int(lo->dims, whole));
        return count_value(lo, p2o_dim_max(lo->dims, less, p2o_dim_int(lo->dims, 0)), t);
    }
    Value *less = emit(lo, ONNX_Sub, count_value(lo, n, t), num(lo, t, correction));
    return emit(lo, ONNX_Max, less, num(lo, t, 0));
}

/* sum((x - mean)^2) / (n - correction), the mean with its axes kept. */
static Value *variance(Lower *lo, Value *x, const Axes *a, double correction, Value **mean)
{
    Axes kept = *a;
    kept.keep = true;
    *mean = mean_over(lo, x, &kept);
    Value *d = emit(lo, ONNX_Sub, x, *mean);
    if (correction == 0)
        return mean_over(lo, emit(lo, ONNX_Mul, d, d), a);
    Value *squares = reduce(lo, ONNX_ReduceSumSquare, d, a->at, a->n, a->keep);
    return emit(lo, ONNX_Div, squares, degrees(lo, reduced_count(lo, x, a), correction, x->dtype));
}

static Value *moments(Lower *lo, const Call *c, bool root, Value **mean)
{
    Value *x = tensor_as(lo, c, "self", wide_of(out_dtype(c, 0)));
    Axes   a = reduction_axes(c, x);
    double correction;
    if (!find_correction(lo, c, &correction))
        return NULL;
    if (rank(x) == 0) {
        x = unsqueeze(lo, x, 0);
        a = all_axes(1);
    }
    Value *v = variance(lo, x, &a, correction, mean);
    if (!a.keep)
        *mean = emit(lo, ONNX_Squeeze, *mean, ints_const(lo, a.at, (size_t)a.n));
    *mean = cast(lo, *mean, out_dtype(c, 0));
    return cast(lo, root ? emit(lo, ONNX_Sqrt, v) : v, out_dtype(c, 0));
}

static Value *lower_var(Lower *lo, const Call *c)
{
    Value *mean;
    return moments(lo, c, false, &mean);
}

static Value *lower_std(Lower *lo, const Call *c)
{
    Value *mean;
    return moments(lo, c, true, &mean);
}

static void lower_var_mean(Lower *lo, const Call *c, Value **out)
{
    out[0] = moments(lo, c, false, &out[1]);
}

static void lower_std_mean(Lower *lo, const Call *c, Value **out)
{
    out[0] = moments(lo, c, true, &out[1]);
}

/* Covariance: rows are variables, columns observations; a vector is one row. */

static void shape_cov(Infer *in, const Call *c)
{
    static const char *const weights[] = { "fweights", "aweights" };
    Type x = type_arg(c, "self");
    int  n = x.shape.rank;
    Dim  one = int_dim(in, 1), count = n ? dim_at(x.shape, -1) : one;
    if (!must_be_real(in, x))
        return;
    if (n > 2 || x.dtype == DT_BOOL) {
        rule_fail(in, "%s of rank %d", p2o_dtype_torch(x.dtype), n);
        return;
    }
    for (size_t i = 0; i < COUNT_OF(weights); i++)
        if (optional_arg(c, weights[i]) &&
            !(must_rank(in, c, weights[i], 1) &&
              must_equal(in, c, shape_arg(c, weights[i]).at[0], count, weights[i])))
            return;
    Dim rows = n == 2 ? x.shape.at[0] : one, at[2] = { rows, rows };
    set_out(in, c, 0, float_of(x.dtype), dim_is(rows, 1) ? (Shape){ 0, NULL } : (Shape){ 2, at });
}

/* What the observations count for: fweights * aweights, NULL when all are equal. */
static Value *observation_weights(Lower *lo, const Call *c, DType t)
{
    if (!optional_arg(c, "fweights") && !optional_arg(c, "aweights"))
        return NULL;
    if (!optional_arg(c, "aweights"))
        return tensor_as(lo, c, "fweights", t);
    Value *w = tensor_as(lo, c, "aweights", t);
    return optional_arg(c, "fweights") ? emit(lo, ONNX_Mul, w, tensor_as(lo, c, "fweights", t)) : w;
}

static Value *total(Lower *lo, Value *x)
{
    return reduce(lo, ONNX_ReduceSum, x, (const int64_t[]){ 0 }, 1, false);
}

/* d = x - sum(w x) / sum(w);  (w d) d^T / (sum(w) - correction * sum(w a) / sum(w)), with weights w
 * and a of them aweights. */
static Value *covariance(Lower *lo, const Call *c, Value **centered)
{
    const int64_t columns[] = { 1 };
    DType  t = wide_of(out_dtype(c, 0));
    Value *x = tensor_as(lo, c, "self", t), *w = observation_weights(lo, c, t);
    double correction = optional_arg(c, "correction") ? (double)int_arg(c, "correction") : 1;
    while (rank(x) < 2)
        x = unsqueeze(lo, x, 0);
    if (!w) {
        Value *d = emit(lo, ONNX_Sub, x, reduce(lo, ONNX_ReduceMean, x, columns, 1, true));
        *centered = d;
        return emit(lo, ONNX_Div, emit(lo, ONNX_MatMul, d, swap_last_two(lo, d)),
                    degrees(lo, size_at(x, 1), correction, t));
    }
    Value *sum = total(lo, w), *factor = sum;
    Value *mean = reduce(lo, ONNX_ReduceSum, emit(lo, ONNX_Mul, x, w), columns, 1, true);
    Value *d = emit(lo, ONNX_Sub, x, emit(lo, ONNX_Div, mean, sum));
    if (correction != 0) {
        Value *less = num(lo, t, correction), *a = tensor_as(lo, c, "aweights", t);
        if (a)
            less = emit(lo, ONNX_Div,
                        times_num(lo, total(lo, emit(lo, ONNX_Mul, w, a)), correction), sum);
        factor = emit(lo, ONNX_Max, emit(lo, ONNX_Sub, sum, less), num(lo, t, 0));
    }
    *centered = d;
    Value *products = emit(lo, ONNX_MatMul, emit(lo, ONNX_Mul, d, w), swap_last_two(lo, d));
    return emit(lo, ONNX_Div, products, factor);
}

static Value *lower_cov(Lower *lo, const Call *c)
{
    Value *centered;
    return cast(lo, reshape(lo, covariance(lo, c, &centered), out_shape(c, 0)), out_dtype(c, 0));
}

/* The product of the rows scaled to length 1: the count of observations cancels. */
static Value *lower_corrcoef(Lower *lo, const Call *c)
{
    const int64_t columns[] = { 1 };
    DType  t = out_dtype(c, 0);
    Value *d, *cov = covariance(lo, c, &d);
    if (out_shape(c, 0).rank == 0) {
        cov = reshape(lo, cov, out_shape(c, 0));
        return cast(lo, emit(lo, ONNX_Div, cov, cov), t);
    }
    Value *unit = emit(lo, ONNX_Div, d, reduce(lo, ONNX_ReduceL2, d, columns, 1, true));
    Value *r = emit(lo, ONNX_MatMul, unit, swap_last_two(lo, unit));
    return cast(lo, emit(lo, ONNX_Clip, r, num(lo, r->dtype, -1), num(lo, r->dtype, 1)), t);
}

/* Norms. */

static void shape_vector_norm(Infer *in, const Call *c)
{
    DType t = type_arg(c, "self").dtype;
    if (must_be_float(in, t))
        reduce_to(in, c, optional_arg(c, "dtype") ? dtype_arg(c, "dtype", t) : t);
}

static Value *norm_of_order(Lower *lo, Value *x, const Axes *a, double p)
{
    return p_norm(lo, x, a->at, a->n, a->keep, p);
}

/* The order is called p or ord; None is 2. */
static bool find_order(Lower *lo, const Call *c, double *p)
{
    static const char *const names[] = { "p", "ord" };
    *p = 2;
    for (size_t i = 0; i < COUNT_OF(names); i++)
        if (optional_arg(c, names[i]))
            return fixed_number(lo, c, names[i], p);
    return true;
}

static Value *lower_vector_norm(Lower *lo, const Call *c)
{
    double p;
    Value *x = tensor_as(lo, c, "self", wide_of(out_dtype(c, 0)));
    Axes   a = reduction_axes(c, x);
    return find_order(lo, c, &p) ? cast(lo, norm_of_order(lo, x, &a, p), out_dtype(c, 0)) : NULL;
}

static Value *lower_powsum(Lower *lo, const Call *c)
{
    double p;
    Value *x = tensor_as(lo, c, "self", wide_of(out_dtype(c, 0)));
    if (!find_order(lo, c, &p))
        return NULL;
    if (isinf(p))
        return unsupported(lo, c, "the power %g", p);
    return cast(lo, reduce_by(lo, c, ONNX_ReduceSum, abs_power(lo, x, p)), out_dtype(c, 0));
}

static Axes axes_but(int rank_, int axis)
{
    Axes a = { .keep = true };
    for (int i = 0; i < rank_; i++)
        if (i != axis)
            a.at[a.n++] = i;
    return a;
}

/* One norm for each index of `dim`, the other dims 1; of all of v when dim is -1. */
static void shape_norm_except_dim(Infer *in, const Call *c)
{
    Type    v = type_arg(c, "v");
    int64_t dim = int_arg(c, "dim");
    if (!must_be_float(in, v.dtype) || !must_be_real(in, v))
        return;
    if (dim == -1) {
        set_out(in, c, 0, v.dtype, (Shape){ 0, NULL });
        return;
    }
    if (dim != 0 && dim != v.shape.rank - 1) {
        rule_fail(in, "dim %lld is neither the first nor the last of %d", (long long)dim,
                  v.shape.rank);
        return;
    }
    Axes a = axes_but(v.shape.rank, (int)dim);
    set_out(in, c, 0, v.dtype, shape_over(in, v.shape, &a));
}

static Value *lower_norm_except_dim(Lower *lo, const Call *c)
{
    Value  *v = tensor_as(lo, c, "v", wide_of(out_dtype(c, 0)));
    int64_t dim = int_arg(c, "dim");
    Axes    a = dim == -1 ? all_axes(rank(v)) : axes_but(rank(v), (int)dim);
    return cast(lo, norm_of_order(lo, v, &a, (double)int_arg(c, "pow")), out_dtype(c, 0));
}

static void shape_renorm(Infer *in, const Call *c)
{
    Type x = type_arg(c, "self");
    int  dim;
    if (x.shape.rank < 2)
        rule_fail(in, "rank %d", x.shape.rank);
    else if (must_be_real(in, x) && must_be_float(in, x.dtype) &&
             must_wrap(in, int_arg(c, "dim"), x.shape.rank, &dim))
        set_out(in, c, 0, x.dtype, x.shape);
}

/* Slices along dim whose norm is above maxnorm are scaled by maxnorm / (norm + 1e-7). */
static Value *lower_renorm(Lower *lo, const Call *c)
{
    DType  t = wide_of(out_dtype(c, 0));
    Value *x = tensor_as(lo, c, "self", t), *most = number_arg(lo, c, "maxnorm", t);
    Axes   a = axes_but(rank(x), axis_arg(c, "dim", rank(x)));
    double p;
    if (!find_order(lo, c, &p))
        return NULL;
    Value *norm = norm_of_order(lo, x, &a, p);
    Value *scale = emit(lo, ONNX_Div, most, emit(lo, ONNX_Add, norm, num(lo, t, 1e-7)));
    scale = choose(lo, emit(lo, ONNX_Greater, norm, most), scale, num(lo, t, 1));
    return cast(lo, emit(lo, ONNX_Mul, x, scale), out_dtype(c, 0));
}

#define NAN_LIMIT   .limits = "the index may pass over a NaN"
#define MEAN_LIMIT  .limits = "the mean of no elements is 0 at run time"
#define DTYPE_LAST  "*, ScalarType? dtype=None) -> Tensor"

const AtenOp p2o_ops_reduce[] = {
    { "sum(Tensor self, " DTYPE_LAST, shape_sum, .lower = lower_sum,
      .batch = p2o_batch_along, .along = "sum.dim_IntList" },
    { "sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, " DTYPE_LAST, shape_sum,
      .lower = lower_sum,
      .batch = p2o_batch_reduce },
    { "sum_to_size(Tensor self, SymInt[] size) -> Tensor", shape_sum_to_size,
      .lower = lower_sum_to_size },
    { "nansum(Tensor self, int[1]? dim=None, bool keepdim=False, " DTYPE_LAST, shape_sum,
      .lower = lower_nansum,
      .batch = p2o_batch_reduce },
    { "prod(Tensor self, " DTYPE_LAST, shape_sum, .lower = lower_prod,
      .batch = p2o_batch_along, .along = "prod.dim_int" },
    { "prod.dim_int(Tensor self, int dim, bool keepdim=False, " DTYPE_LAST, shape_sum,
      .lower = lower_prod,
      .batch = p2o_batch_reduce },
    { "mean(Tensor self, " DTYPE_LAST, shape_mean, .lower = lower_mean, MEAN_LIMIT,
      .batch = p2o_batch_along, .along = "mean.dim" },
    { "mean.dim(Tensor self, int[1]? dim, bool keepdim=False, " DTYPE_LAST, shape_mean,
      .lower = lower_mean, MEAN_LIMIT,
      .batch = p2o_batch_reduce },
    { "nanmean(Tensor self, int[1]? dim=None, bool keepdim=False, " DTYPE_LAST, shape_nanmean,
      .lower = lower_nanmean,
      .batch = p2o_batch_reduce },

    { "amax(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor", shape_extreme,
      .lower = lower_amax,
      .batch = p2o_batch_reduce },
    { "amin(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor", shape_extreme,
      .lower = lower_amin,
      .batch = p2o_batch_reduce },
    { "max(Tensor self) -> Tensor", shape_extreme, .lower = lower_amax,
      .batch = p2o_batch_along, .along = "amax" },
    { "min(Tensor self) -> Tensor", shape_extreme, .lower = lower_amin,
      .batch = p2o_batch_along, .along = "amin" },
    { "aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)",
      shape_extreme, .lower_many = lower_aminmax,
      .batch = p2o_batch_reduce },
    { "_aminmax(Tensor self) -> (Tensor, Tensor)", shape_extreme, .lower_many = lower_aminmax,
      .batch = p2o_batch_along, .along = "_aminmax.dim" },
    { "_aminmax.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor, Tensor)", shape_extreme,
      .lower_many = lower_aminmax,
      .batch = p2o_batch_reduce },
    { "max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
      shape_extreme_dim, .lower_many = lower_max_dim, NAN_LIMIT,
      .batch = p2o_batch_reduce },
    { "min.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
      shape_extreme_dim, .lower_many = lower_min_dim, NAN_LIMIT,
      .batch = p2o_batch_reduce },
    { "max.other(Tensor self, Tensor other) -> Tensor", p2o_rule_binary, .lower = lower_max_other },
    { "min.other(Tensor self, Tensor other) -> Tensor", p2o_rule_binary, .lower = lower_min_other },
    { "argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor", shape_arg_extreme,
      .lower = lower_argmax,
      .batch = p2o_batch_reduce },
    { "argmin(Tensor self, int? dim=None, bool keepdim=False) -> Tensor", shape_arg_extreme,
      .lower = lower_argmin,
      .batch = p2o_batch_reduce },

    { "any(Tensor self) -> Tensor", shape_truth, .lower = lower_any,
      .batch = p2o_batch_along, .along = "any.dims" },
    { "any.dim(Tensor self, int dim, bool keepdim=False) -> Tensor", shape_truth,
      .lower = lower_any,
      .batch = p2o_batch_reduce },
    { "any.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor", shape_truth,
      .lower = lower_any,
      .batch = p2o_batch_reduce },
    { "all(Tensor self) -> Tensor", shape_truth, .lower = lower_all,
      .batch = p2o_batch_along, .along = "all.dims" },
    { "all.dim(Tensor self, int dim, bool keepdim=False) -> Tensor", shape_truth,
      .lower = lower_all,
      .batch = p2o_batch_reduce },
    { "all.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor", shape_truth,
      .lower = lower_all,
      .batch = p2o_batch_reduce },
    { "_is_any_true(Tensor self) -> Tensor", shape_truth, .lower = lower_any },
    { "_is_all_true(Tensor self) -> Tensor", shape_truth, .lower = lower_all },
    { "count_nonzero(Tensor self, int? dim=None) -> Tensor", shape_count,
      .lower = lower_count_nonzero,
      .batch = p2o_batch_reduce },
    { "count_nonzero.dim_IntList(Tensor self, int[] dim) -> Tensor", shape_count,
      .lower = lower_count_nonzero,
      .batch = p2o_batch_reduce },
    { "logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor", shape_float_reduction,
      .lower = lower_logsumexp,
      .batch = p2o_batch_reduce },
    { "special_logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor",
      shape_float_reduction, .lower = lower_logsumexp,
      .batch = p2o_batch_reduce },
    { "trace(Tensor self) -> Tensor", shape_trace, .lower = lower_trace },

    { "var(Tensor self, bool unbiased=True) -> Tensor", shape_moments, .lower = lower_var,
      .batch = p2o_batch_along, .along = "var.dim" },
    { "var.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor",
      shape_moments, .lower = lower_var,
      .batch = p2o_batch_reduce },
    { "var.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor",
      shape_moments, .lower = lower_var,
      .batch = p2o_batch_reduce },
    { "std(Tensor self, bool unbiased=True) -> Tensor", shape_moments, .lower = lower_std,
      .batch = p2o_batch_along, .along = "std.dim" },
    { "std.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor",
      shape_moments, .lower = lower_std,
      .batch = p2o_batch_reduce },
    { "std.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor",
      shape_moments, .lower = lower_std,
      .batch = p2o_batch_reduce },
    { "var_mean(Tensor self, bool unbiased=True) -> (Tensor, Tensor)", shape_moments,
      .lower_many = lower_var_mean,
      .batch = p2o_batch_along, .along = "var_mean.dim" },
    { "var_mean.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> (Tensor, Tensor)",
      shape_moments, .lower_many = lower_var_mean,
      .batch = p2o_batch_reduce },
    { "var_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> (Tensor, Tensor)",
      shape_moments, .lower_many = lower_var_mean,
      .batch = p2o_batch_reduce },
    { "std_mean(Tensor self, bool unbiased=True) -> (Tensor, Tensor)", shape_moments,
      .lower_many = lower_std_mean,
      .batch = p2o_batch_along, .along = "std_mean.dim" },
    { "std_mean.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> (Tensor, Tensor)",
      shape_moments, .lower_many = lower_std_mean,
      .batch = p2o_batch_reduce },
    { "std_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> (Tensor, Tensor)",
      shape_moments, .lower_many = lower_std_mean,
      .batch = p2o_batch_reduce },
    { "cov(Tensor self, *, int correction=1, Tensor? fweights=None, Tensor? aweights=None) -> Tensor",
      shape_cov, .lower = lower_cov },
    { "corrcoef(Tensor self) -> Tensor", shape_cov, .lower = lower_corrcoef },

    { "norm.Scalar(Tensor self, Scalar p=2) -> Tensor", shape_vector_norm,
      .lower = lower_vector_norm,
      .batch = p2o_batch_along, .along = "norm.ScalarOpt_dim" },
    { "norm.ScalarOpt_dim(Tensor self, Scalar? p, int[1] dim, bool keepdim=False) -> Tensor",
      shape_vector_norm, .lower = lower_vector_norm,
      .batch = p2o_batch_reduce },
    { "norm.ScalarOpt_dtype(Tensor self, Scalar? p, *, ScalarType dtype) -> Tensor",
      shape_vector_norm, .lower = lower_vector_norm },
    { "norm.ScalarOpt_dim_dtype(Tensor self, Scalar? p, int[1] dim, bool keepdim, *, ScalarType dtype) -> Tensor",
      shape_vector_norm, .lower = lower_vector_norm },
    { "linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, "
      DTYPE_LAST,
      shape_vector_norm, .lower = lower_vector_norm,
      .batch = p2o_batch_reduce },
    { "linalg__powsum(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, " DTYPE_LAST,
      shape_vector_norm, .lower = lower_powsum, .limits = "finite powers but 0" },
    { "frobenius_norm.dim(Tensor self, int[1] dim, bool keepdim=False) -> Tensor",
      shape_vector_norm, .lower = lower_vector_norm },
    { "norm_except_dim(Tensor v, int pow=2, int dim=0) -> Tensor", shape_norm_except_dim,
      .lower = lower_norm_except_dim },
    { "renorm(Tensor self, Scalar p, int dim, Scalar maxnorm) -> Tensor", shape_renorm,
      .lower = lower_renorm },
    { 0 },
};
