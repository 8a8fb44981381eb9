/* Running results along one dim: sums, products, extremes; differences and integrals.
 *
 * ONNX has a running sum.  The others are done by doubling: combining each element with the one s
 * places before it, for s = 1, 2, 4 .. below the size, gives every prefix in log2(size) steps, one
 * after the other where the size is a number, in a Loop where it is not.  (Scan would take as many
 * steps as there are elements, and ONNX Runtime's fails on empty tensors.)  What combines must be
 * associative. */
#include "aten/lower.h"

enum { MAX_STATE = 2 };         /* tensors that are scanned together */

typedef void CombineFn(Lower *lo, Value *const *earlier, Value *const *later, Value **out);

static Value *slice_by(Lower *lo, Value *x, int axis, Value *start, Value *end)
{
    return emit(lo, ONNX_Slice, x, start, end, INTS(lo, axis));
}

/* The next state: the first s elements as they are, the others with those s before them. */
static void doubling_step(Lower *lo, int axis, CombineFn *combine, int n, Value *const *x, Value *s,
                          Value **out)
{
    Value *earlier[MAX_STATE], *later[MAX_STATE], *joined[MAX_STATE], *back = emit(lo, ONNX_Neg, s);
    for (int i = 0; i < n; i++) {
        earlier[i] = slice_by(lo, x[i], axis, INTS(lo, 0), back);
        later[i] = slice_by(lo, x[i], axis, s, INTS(lo, INT64_MAX));
    }
    combine(lo, earlier, later, joined);
    for (int i = 0; i < n; i++)
        out[i] = emit_with(lo, ONNX_Concat, ATTRS(attr_int("axis", axis)),
                           slice_by(lo, x[i], axis, INTS(lo, 0), s), joined[i]);
}

static Value *goes_on(Lower *lo, Value *shift, Value *size)
{
    return squeeze(lo, emit(lo, ONNX_Less, shift, size), 0);
}

/* state[0 .. n) of one shape, each replaced by its prefixes along `axis`. */
static void scan_by_doubling(Lower *lo, int axis, CombineFn *combine, int n, Value **state)
{
    Builder *outer = lo->b;
    Shape    s = state[0]->shape, unit = { 1, (Dim[]){ p2o_dim_int(lo->dims, 1) } };
    int64_t  known;
    if (p2o_dim_is_int(s.at[axis], &known)) {
        for (int64_t step = 1; step < known; step *= 2)
            doubling_step(lo, axis, combine, n, state, INTS(lo, step), state);
        return;
    }
    Value *size = dim_value(lo, s.at[axis]), *one = INTS(lo, 1);
    Value *in[3 + MAX_STATE] = { NULL, goes_on(lo, one, size), one }, *next[1 + MAX_STATE];
    Graph *body = p2o_graph_new(lo->arena, lo->diags, lo->dims, lo->opset, outer->graph);
    lo->b = p2o_builder_new(body, outer);
    p2o_graph_input(body, NULL, DT_I64, (Shape){ 0, NULL });
    p2o_graph_input(body, NULL, DT_BOOL, (Shape){ 0, NULL });
    Value *shift = p2o_graph_input(body, NULL, DT_I64, unit), *x[MAX_STATE];
    for (int i = 0; i < n; i++) {
        in[3 + i] = state[i];
        x[i] = p2o_graph_input(body, NULL, state[i]->dtype, s);
    }
    doubling_step(lo, axis, combine, n, x, shift, next + 1);
    next[0] = emit(lo, ONNX_Add, shift, shift);
    p2o_graph_output(body, goes_on(lo, next[0], size));
    for (int i = 0; i <= n; i++)
        p2o_graph_output(body, next[i]);
    lo->b = outer;
    p2o_build_many(lo->b, ONNX_Loop, ATTRS(attr_graph("body", body)), 3 + n, in, 1 + n, next);
    for (int i = 0; i < n; i++)
        state[i] = next[1 + i];
}

static void shape_cumulative(Infer *in, const Call *c, DType t)
{
    Type x = type_arg(c, "self");
    int  dim;
    if (must_wrap_reduce(in, int_arg(c, "dim"), x.shape.rank, &dim))
        set_out(in, c, 0, t, x.shape);
}

/* bool and integers add up and multiply as int64. */
static void shape_cumsum(Infer *in, const Call *c)
{
    DType have = type_arg(c, "self").dtype;
    DType t = dtype_arg(c, "dtype", is_float(have) || is_complex(have) ? have : DT_I64);
    if (t == DT_BOOL)
        rule_fail(in, "a running result of bool");
    else
        shape_cumulative(in, c, t);
}

static void shape_logcumsumexp(Infer *in, const Call *c)
{
    DType t = type_arg(c, "self").dtype;
    if (!is_float(t) && !is_complex(t))
        rule_fail(in, "%s where a float type is needed", p2o_dtype_torch(t));
    else
        shape_cumulative(in, c, t);
}

static void shape_cummax(Infer *in, const Call *c)
{
    Type x = type_arg(c, "self");
    shape_cumulative(in, c, x.dtype);
    set_out(in, c, 1, DT_I64, x.shape);
}

static Value *lower_cumsum(Lower *lo, const Call *c)
{
    Value *x = tensor_as(lo, c, "self", out_dtype(c, 0));
    int    axis = axis_arg(c, "dim", rank(x));
    return rank(x) ? emit(lo, ONNX_CumSum, x, p2o_build_int(lo->b, axis)) : x;
}

/* `self` scanned, half types in f32. */
static Value *scanned(Lower *lo, const Call *c, CombineFn *combine)
{
    Value *x = tensor_as(lo, c, "self", out_dtype(c, 0));
    if (rank(x) == 0)
        return x;
    Value *state[] = { cast(lo, x, wide_of(x->dtype)) };
    scan_by_doubling(lo, axis_arg(c, "dim", rank(x)), combine, 1, state);
    return cast(lo, state[0], x->dtype);
}

static void combine_product(Lower *lo, Value *const *earlier, Value *const *later, Value **out)
{
    out[0] = emit(lo, ONNX_Mul, earlier[0], later[0]);
}

static void combine_logsumexp(Lower *lo, Value *const *earlier, Value *const *later, Value **out)
{
    Value *both[] = { unsqueeze(lo, earlier[0], 0), unsqueeze(lo, later[0], 0) };
    out[0] = reduce(lo, ONNX_ReduceLogSumExp, concat(lo, 0, both, 2), (const int64_t[]){ 0 }, 1,
                    false);
}

static Value *lower_cumprod(Lower *lo, const Call *c) { return scanned(lo, c, combine_product); }

static Value *lower_logcumsumexp(Lower *lo, const Call *c)
{
    return scanned(lo, c, combine_logsumexp);
}

/* Values and where they are.  The later wins when it is at least as extreme, or NaN; no number wins
 * against an earlier NaN. */
static void combine_extreme(Lower *lo, Value *const *earlier, Value *const *later, OnnxOp at_least,
                            Value **out)
{
    Value *wins = emit(lo, at_least, later[0], earlier[0]);
    if (is_float(later[0]->dtype))
        wins = emit(lo, ONNX_Or, wins, emit(lo, ONNX_IsNaN, later[0]));
    for (int i = 0; i < 2; i++)
        out[i] = choose(lo, wins, later[i], earlier[i]);
}

static void combine_max(Lower *lo, Value *const *earlier, Value *const *later, Value **out)
{
    combine_extreme(lo, earlier, later, ONNX_GreaterOrEqual, out);
}

static void combine_min(Lower *lo, Value *const *earlier, Value *const *later, Value **out)
{
    combine_extreme(lo, earlier, later, ONNX_LessOrEqual, out);
}

static void scan_extreme(Lower *lo, const Call *c, CombineFn *combine, Value **out)
{
    Value *x = tensor_arg(lo, c, "self");
    int    axis = axis_arg(c, "dim", rank(x));
    out[0] = x;
    out[1] = num(lo, DT_I64, 0);
    if (rank(x) == 0)
        return;
    Value *index = iota(lo, size_at(x, axis));
    for (int i = axis + 1; i < rank(x); i++)
        index = unsqueeze(lo, index, rank(index));
    out[0] = x->dtype == DT_BOOL ? cast(lo, x, DT_I32) : x;
    out[1] = expand(lo, index, x->shape);
    scan_by_doubling(lo, axis, combine, 2, out);
    out[0] = cast(lo, out[0], x->dtype);
}

static void lower_cummax(Lower *lo, const Call *c, Value **out)
{
    scan_extreme(lo, c, combine_max, out);
}

static void lower_cummin(Lower *lo, const Call *c, Value **out)
{
    scan_extreme(lo, c, combine_min, out);
}

/* The size after n differences, none below 0. */
static Dim size_less(Infer *in, Dim size, int64_t n)
{
    return p2o_dim_max(in->dims, p2o_dim_sub(in->dims, size, int_dim(in, n)), int_dim(in, 0));
}

static bool must_join(Infer *in, const Call *c, Shape x, Shape end, int dim)
{
    if (x.rank != end.rank) {
        rule_fail(in, "what is put before or after has rank %d against %d", end.rank, x.rank);
        return false;
    }
    for (int i = 0; i < x.rank; i++)
        if (i != dim && !must_equal(in, c, x.at[i], end.at[i], "sizes to join"))
            return false;
    return true;
}

static void shape_diff(Infer *in, const Call *c)
{
    static const char *const ends[] = { "prepend", "append" };
    Type    x = type_arg(c, "self");
    DType   t = PROMOTE(c, "self", "prepend", "append");
    int64_t n = int_arg(c, "n");
    int     dim;
    if (is_complex(t)) {
        rule_unsupported(in, "complex tensors");
        return;
    }
    if (x.shape.rank == 0 || n < 0) {
        rule_fail(in, "%lld differences of a tensor of rank %d", (long long)n, x.shape.rank);
        return;
    }
    if (!must_wrap(in, int_arg(c, "dim"), x.shape.rank, &dim))
        return;
    if (n == 0) {                           /* what is put at the ends is not used then */
        set_out(in, c, 0, x.dtype, x.shape);
        return;
    }
    Dim size = x.shape.at[dim];
    for (size_t i = 0; i < COUNT_OF(ends); i++) {
        if (!has_arg(c, ends[i]))
            continue;
        Shape end = shape_arg(c, ends[i]);
        if (!must_join(in, c, x.shape, end, dim))
            return;
        size = p2o_dim_add(in->dims, size, end.at[dim]);
    }
    set_out(in, c, 0, t, with_dim(in, x.shape, dim, size_less(in, size, n)));
}

static Value *all_but_first(Lower *lo, Value *x, int axis)
{
    return slice_axis(lo, x, axis, p2o_dim_int(lo->dims, 1), NULL, 1);
}

static Value *all_but_last(Lower *lo, Value *x, int axis)
{
    return slice_axis(lo, x, axis, p2o_dim_int(lo->dims, 0), p2o_dim_int(lo->dims, -1), 1);
}

/* Of bools the difference is whether they differ. */
static Value *neighbour_difference(Lower *lo, Value *x, int axis)
{
    return emit(lo, x->dtype == DT_BOOL ? ONNX_Xor : ONNX_Sub, all_but_first(lo, x, axis),
                all_but_last(lo, x, axis));
}

static Value *lower_diff(Lower *lo, const Call *c)
{
    DType   t = out_dtype(c, 0);
    Value  *x = tensor_as(lo, c, "self", t), *parts[3];
    int64_t n = int_arg(c, "n"), size;
    int     axis = axis_arg(c, "dim", rank(x)), k = 0;
    if (n > 0 && has_arg(c, "prepend"))
        parts[k++] = tensor_as(lo, c, "prepend", t);
    parts[k++] = x;
    if (n > 0 && has_arg(c, "append"))
        parts[k++] = tensor_as(lo, c, "append", t);
    x = concat(lo, axis, parts, k);
    if (n > 64 && !(p2o_dim_is_int(size_at(x, axis), &size) && size <= n))
        return unsupported(lo, c, "%lld differences", (long long)n);
    if (dim_is(out_shape(c, 0).at[axis], 0))
        return full(lo, out_shape(c, 0), t, 0);
    for (int64_t i = 0; i < n; i++)
        x = neighbour_difference(lo, x, axis);
    return x;
}

/* y's shape with x beside it: a vector lies along dim, other shapes broadcast from the end. */
static Shape shape_beside(Infer *in, Shape x, Shape y, int dim)
{
    if (x.rank != 1 || y.rank == 1)
        return x;
    Dim *at = p2o_shape_copy(in->arena, y, 0);
    for (int i = 0; i < y.rank; i++)
        at[i] = i == dim ? x.at[0] : int_dim(in, 1);
    return (Shape){ y.rank, at };
}

/* The shape of the strips between neighbours in y, as wide as neighbours in x differ. */
static bool shape_of_strips(Infer *in, const Call *c, DType *t, Shape *out, int *dim)
{
    Type y = type_arg(c, "y"), x = { 0 };
    bool has_x = p2o_schema_find(c->schema, "x") >= 0;
    *t = y.dtype;
    if (has_x) {
        x = type_arg(c, "x");
        *t = PROMOTE(c, "y", "x");
    }
    if (is_complex(*t)) {
        rule_unsupported(in, "complex tensors");
        return false;
    }
    if (y.dtype == DT_BOOL || x.dtype == DT_BOOL) {
        rule_fail(in, "bool tensors");
        return false;
    }
    if (!must_wrap(in, int_arg(c, "dim"), y.shape.rank, dim))
        return false;
    *t = float_of(*t);
    *out = with_dim(in, y.shape, *dim, size_less(in, y.shape.at[*dim], 1));
    if (!has_x)
        return true;
    Shape s = shape_beside(in, x.shape, y.shape, *dim);
    int   at = *dim - (y.shape.rank - s.rank);
    if (s.rank > y.shape.rank || at < 0) {
        rule_unsupported(in, "x of rank %d beside y of rank %d", x.shape.rank, y.shape.rank);
        return false;
    }
    *out = broadcast(in, c, *out, with_dim(in, s, at, size_less(in, s.at[at], 1)));
    return true;
}

static void shape_trapezoid(Infer *in, const Call *c)
{
    DType t;
    Shape s;
    int   dim;
    if (shape_of_strips(in, c, &t, &s, &dim))
        set_out(in, c, 0, t, without_dim(in, s, dim));
}

static void shape_cumulative_trapezoid(Infer *in, const Call *c)
{
    DType t;
    Shape s;
    int   dim;
    if (shape_of_strips(in, c, &t, &s, &dim))
        set_out(in, c, 0, t, s);
}

/* Integers stay what they are, wrapping around as they do in PyTorch. */
static DType strip_type(DType t) { return is_float(t) ? wide_of(t) : t; }

static Value *strip_arg(Lower *lo, const Call *c, const char *name)
{
    return tensor_as(lo, c, name, strip_type(type_arg(c, name).dtype));
}

/* Twice the area of each strip: (y[i] + y[i + 1]) * (x[i + 1] - x[i]); with dx, over dx. */
static Value *strips(Lower *lo, const Call *c, int *axis)
{
    Value *y = strip_arg(lo, c, "y");
    *axis = axis_arg(c, "dim", rank(y));
    Value *heights = emit(lo, ONNX_Add, all_but_last(lo, y, *axis), all_but_first(lo, y, *axis));
    if (p2o_schema_find(c->schema, "dx") >= 0)
        return heights;
    Value *x = strip_arg(lo, c, "x");
    bool   lies = rank(x) == 1 && rank(y) != 1;
    Value *widths = neighbour_difference(lo, x, lies ? 0 : *axis - (rank(y) - rank(x)));
    for (int i = *axis + 1; lies && i < rank(y); i++)
        widths = unsqueeze(lo, widths, rank(widths));
    DType t = strip_type(PROMOTE(c, "y", "x"));
    return emit(lo, ONNX_Mul, cast(lo, heights, t), cast(lo, widths, t));
}

static Value *as_sums(Lower *lo, Value *x) { return is_float(x->dtype) ? x : cast(lo, x, DT_I64); }

/* Half of the sums of strips, times dx where the steps are even. */
static Value *half_sums(Lower *lo, const Call *c, Value *sums)
{
    DType  t = wide_of(out_dtype(c, 0));
    double dx = 1;
    sums = cast(lo, sums, t);
    if (p2o_schema_find(c->schema, "dx") >= 0 && !p2o_number_is_const(p2o_call_arg(c, "dx"), &dx))
        sums = emit(lo, ONNX_Mul, sums, number_arg(lo, c, "dx", t));
    return cast(lo, times_num(lo, sums, dx / 2), out_dtype(c, 0));
}

static Value *lower_trapezoid(Lower *lo, const Call *c)
{
    int    axis;
    Value *areas = as_sums(lo, strips(lo, c, &axis));
    areas = reduce(lo, ONNX_ReduceSum, areas, (const int64_t[]){ axis }, 1, false);
    return half_sums(lo, c, areas);
}

static Value *lower_cumulative_trapezoid(Lower *lo, const Call *c)
{
    int    axis;
    Value *areas = as_sums(lo, strips(lo, c, &axis));
    return half_sums(lo, c, emit(lo, ONNX_CumSum, areas, p2o_build_int(lo->b, axis)));
}

const AtenOp p2o_ops_scan[] = {
    { "cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor", shape_cumsum,
      .lower = lower_cumsum,
      .batch = p2o_batch_axes },
    { "cumprod(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor", shape_cumsum,
      .lower = lower_cumprod,
      .batch = p2o_batch_axes },
    { "cummax(Tensor self, int dim) -> (Tensor values, Tensor indices)", shape_cummax,
      .lower_many = lower_cummax,
      .batch = p2o_batch_axes },
    { "cummin(Tensor self, int dim) -> (Tensor values, Tensor indices)", shape_cummax,
      .lower_many = lower_cummin,
      .batch = p2o_batch_axes },
    { "logcumsumexp(Tensor self, int dim) -> Tensor", shape_logcumsumexp,
      .lower = lower_logcumsumexp,
      .batch = p2o_batch_axes },
    { "_logcumsumexp(Tensor self, int dim) -> Tensor", shape_logcumsumexp,
      .lower = lower_logcumsumexp,
      .batch = p2o_batch_axes },

    { "diff(Tensor self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None) -> Tensor",
      shape_diff, .lower = lower_diff, .limits = "n up to 64" },
    { "trapezoid.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor", shape_trapezoid,
      .lower = lower_trapezoid },
    { "trapezoid.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor", shape_trapezoid,
      .lower = lower_trapezoid },
    { "trapz.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor", shape_trapezoid,
      .lower = lower_trapezoid },
    { "trapz.dx(Tensor y, *, float dx=1., int dim=-1) -> Tensor", shape_trapezoid,
      .lower = lower_trapezoid },
    { "cumulative_trapezoid.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor",
      shape_cumulative_trapezoid, .lower = lower_cumulative_trapezoid },
    { "cumulative_trapezoid.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor",
      shape_cumulative_trapezoid, .lower = lower_cumulative_trapezoid },
    { 0 },
};
