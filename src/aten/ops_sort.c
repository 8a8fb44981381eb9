/* Sorting, order statistics, searching, counting, sets.
 *
 * All that orders goes through TopK, whose ties keep the order of the input, so sorts are stable.
 * Where NaN would be ordered: PyTorch puts it last, ONNX does not say. */
#include "aten/lower.h"

#include <math.h>

static bool must_order(Infer *in, Type x)
{
    if (is_complex(x.dtype))
        rule_unsupported(in, "complex tensors");
    return !is_complex(x.dtype);
}

/* The values, and where along the axis they were. */
static void set_ranked(Infer *in, const Call *c, DType t, Shape s)
{
    set_out(in, c, 0, t, s);
    set_out(in, c, 1, DT_I64, s);
}

static void shape_sort(Infer *in, const Call *c)
{
    Type x = type_arg(c, "self");
    int  dim;
    if (must_order(in, x) && must_wrap_reduce(in, int_arg(c, "dim"), x.shape.rank, &dim))
        set_ranked(in, c, x.dtype, x.shape);
}

static void shape_argsort(Infer *in, const Call *c)
{
    Type x = type_arg(c, "self");
    int  dim;
    if (must_order(in, x) && must_wrap_reduce(in, int_arg(c, "dim"), x.shape.rank, &dim))
        set_out(in, c, 0, DT_I64, x.shape);
}

static void shape_msort(Infer *in, const Call *c)
{
    Type x = type_arg(c, "self");
    if (must_order(in, x))
        set_out(in, c, 0, x.dtype, x.shape);
}

/* k of the elements along the axis, in order; of a scalar, itself. */
static void top_k(Lower *lo, Value *x, int axis, Dim k, bool largest, Value **out)
{
    out[0] = x;
    out[1] = num(lo, DT_I64, 0);
    if (rank(x) == 0)
        return;
    emit_many(lo, ONNX_TopK, ATTRS(attr_int("axis", axis), attr_int("largest", largest)), 2, out,
              x->dtype == DT_BOOL ? cast(lo, x, DT_I32) : x, dim_value(lo, k));
    out[0] = cast(lo, out[0], x->dtype);
}

static void sort_along(Lower *lo, Value *x, int axis, bool descending, Value **out)
{
    top_k(lo, x, axis, rank(x) ? size_at(x, axis) : NULL, descending, out);
}

/* A NaN counts as infinity for the order. */
static void sort_with_nan(Lower *lo, Value *x, int axis, bool descending, Value **out)
{
    if (!is_float(x->dtype) || !rank(x)) {
        sort_along(lo, x, axis, descending, out);
        return;
    }
    Value *key = choose(lo, emit(lo, ONNX_IsNaN, x), num(lo, x->dtype, (double)INFINITY), x);
    sort_along(lo, key, axis, descending, out);
    out[0] = emit_with(lo, ONNX_GatherElements, ATTRS(attr_int("axis", axis)), x, out[1]);
}

static void lower_sort(Lower *lo, const Call *c, Value **out)
{
    Value *x = tensor_arg(lo, c, "self");
    sort_with_nan(lo, x, axis_arg(c, "dim", rank(x)), bool_arg(c, "descending"), out);
}

static Value *lower_argsort(Lower *lo, const Call *c)
{
    Value *out[2];
    lower_sort(lo, c, out);
    return out[1];
}

static Value *lower_msort(Lower *lo, const Call *c)
{
    Value *out[2];
    sort_with_nan(lo, tensor_arg(lo, c, "self"), 0, false, out);
    return out[0];
}

/* 1 or 0 to the axis's size; of a scalar there is one element. */
static bool must_have_k(Infer *in, const Call *c, int64_t least, int *dim)
{
    Shape   s = shape_arg(c, "self");
    Dim     k = dim_arg(c, "k"), size;
    int64_t low, high;
    if (!must_wrap_reduce(in, int_arg(c, "dim"), s.rank, dim))
        return false;
    size = s.rank ? s.at[*dim] : int_dim(in, 1);
    p2o_dim_range(in->dims, k, &low, &high);
    if (high < least || p2o_dim_lt(in->dims, size, k) == YES) {
        rule_fail(in, "k = %s of %s elements", p2o_dim_text(in->dims, k),
                  p2o_dim_text(in->dims, size));
        return false;
    }
    needs_le(in, k, size, "k elements are there");
    return true;
}

static void shape_topk(Infer *in, const Call *c)
{
    Type x = type_arg(c, "self");
    int  dim;
    if (must_order(in, x) && must_have_k(in, c, 0, &dim))
        set_ranked(in, c, x.dtype,
                   x.shape.rank ? with_dim(in, x.shape, dim, dim_arg(c, "k")) : x.shape);
}

static void lower_topk(Lower *lo, const Call *c, Value **out)
{
    Value *x = tensor_arg(lo, c, "self");
    top_k(lo, x, axis_arg(c, "dim", rank(x)), dim_arg(c, "k"), bool_arg(c, "largest"), out);
}

/* self's shape with one element left along the axis. */
static Shape shape_of_one(Infer *in, const Call *c, int dim)
{
    Shape s = shape_arg(c, "self");
    if (s.rank == 0)
        return s;
    return bool_arg(c, "keepdim") ? with_dim(in, s, dim, int_dim(in, 1)) : without_dim(in, s, dim);
}

static void shape_kthvalue(Infer *in, const Call *c)
{
    Type x = type_arg(c, "self");
    int  dim;
    if (must_order(in, x) && must_have_k(in, c, 1, &dim))
        set_ranked(in, c, x.dtype, shape_of_one(in, c, dim));
}

/* The k-th smallest and where it is: the last of the k smallest. */
static void kth_smallest(Lower *lo, Value *x, int axis, Dim k, bool keepdim, Value **out)
{
    top_k(lo, x, axis, k, false, out);
    for (int i = 0; rank(x) && i < 2; i++)
        out[i] = emit_with(lo, ONNX_Gather, ATTRS(attr_int("axis", axis)), out[i],
                           keepdim ? INTS(lo, -1) : p2o_build_int(lo->b, -1));
}

static void lower_kthvalue(Lower *lo, const Call *c, Value **out)
{
    Value *x = tensor_arg(lo, c, "self");
    kth_smallest(lo, x, axis_arg(c, "dim", rank(x)), dim_arg(c, "k"), bool_arg(c, "keepdim"), out);
}

static bool must_have_some(Infer *in, Dim size)
{
    if (dim_is(size, 0))
        rule_fail(in, "no elements");
    return !dim_is(size, 0);
}

static void shape_median(Infer *in, const Call *c)
{
    Type x = type_arg(c, "self");
    if (must_order(in, x) && must_have_some(in, shape_nelem(in->dims, x.shape)))
        set_out(in, c, 0, x.dtype, (Shape){ 0, NULL });
}

static void shape_of_ranked_one(Infer *in, const Call *c)
{
    Type x = type_arg(c, "self");
    int  dim;
    if (must_order(in, x) && must_wrap_reduce(in, int_arg(c, "dim"), x.shape.rank, &dim) &&
        (!x.shape.rank || must_have_some(in, x.shape.at[dim])))
        set_ranked(in, c, x.dtype, shape_of_one(in, c, dim));
}

/* y, or NaN where x has a NaN along the axis. */
static Value *nan_if_any(Lower *lo, Value *x, int axis, bool keepdim, Value *y)
{
    if (!is_float(x->dtype))
        return y;
    Value *bad = emit(lo, ONNX_IsNaN, x);
    if (rank(x))
        bad = reduce_any(lo, bad, (const int64_t[]){ axis }, 1, keepdim);
    return emit(lo, ONNX_Where, bad, num(lo, x->dtype, NAN), y);
}

/* Of an even number of elements the lower of the two in the middle. */
static void median_along(Lower *lo, Value *x, int axis, bool keepdim, Value **out)
{
    Dim k = NULL;
    if (rank(x)) {
        Dim more = p2o_dim_add(lo->dims, size_at(x, axis), p2o_dim_int(lo->dims, 1));
        k = p2o_dim_floordiv(lo->dims, more, p2o_dim_int(lo->dims, 2));
    }
    kth_smallest(lo, x, axis, k, keepdim, out);
    out[0] = nan_if_any(lo, x, axis, keepdim, out[0]);
}

/* How many are numbers; those that are not, as infinity, come last. */
static Value *count_numbers(Lower *lo, Value **x, int axis, DType t)
{
    const int64_t axes[] = { axis };
    Value        *bad = emit(lo, ONNX_IsNaN, *x);
    *x = emit(lo, ONNX_Where, bad, num(lo, (*x)->dtype, INFINITY), *x);
    return reduce(lo, ONNX_ReduceSum, cast(lo, emit(lo, ONNX_Not, bad), t), axes, 1, true);
}

static Value *nan_if_none(Lower *lo, Value *count, Value *y)
{
    return emit(lo, ONNX_Where, emit(lo, ONNX_Equal, count, num(lo, count->dtype, 0)),
                num(lo, y->dtype, NAN), y);
}

static void nanmedian_along(Lower *lo, Value *x, int axis, bool keepdim, Value **out)
{
    if (!is_float(x->dtype) || rank(x) == 0) {
        median_along(lo, x, axis, keepdim, out);
        return;
    }
    Value *count = count_numbers(lo, &x, axis, DT_I64);
    Value *at = emit(lo, ONNX_Div, plus_num(lo, count, -1), num(lo, DT_I64, 2));
    sort_along(lo, x, axis, false, out);
    for (int i = 0; i < 2; i++)
        out[i] = emit_with(lo, ONNX_GatherElements, ATTRS(attr_int("axis", axis)), out[i], at);
    out[0] = nan_if_none(lo, count, out[0]);
    for (int i = 0; !keepdim && i < 2; i++)
        out[i] = squeeze(lo, out[i], axis);
}

static void lower_median_dim(Lower *lo, const Call *c, Value **out)
{
    Value *x = tensor_arg(lo, c, "self");
    median_along(lo, x, axis_arg(c, "dim", rank(x)), bool_arg(c, "keepdim"), out);
}

static void lower_nanmedian_dim(Lower *lo, const Call *c, Value **out)
{
    Value *x = tensor_arg(lo, c, "self");
    nanmedian_along(lo, x, axis_arg(c, "dim", rank(x)), bool_arg(c, "keepdim"), out);
}

static Value *lower_median(Lower *lo, const Call *c)
{
    Value *x = tensor_arg(lo, c, "self"), *out[2];
    median_along(lo, rank(x) ? flat(lo, x) : x, 0, false, out);
    return out[0];
}

static Value *lower_nanmedian(Lower *lo, const Call *c)
{
    Value *x = tensor_arg(lo, c, "self"), *out[2];
    nanmedian_along(lo, rank(x) ? flat(lo, x) : x, 0, false, out);
    return out[0];
}

/* The least of those that come most often, and the last place where it does, by comparing all
 * pairs. */
static void lower_mode(Lower *lo, const Call *c, Value **out)
{
    Value        *x = tensor_arg(lo, c, "self");
    int           axis = axis_arg(c, "dim", rank(x));
    const int64_t along[] = { axis }, others[] = { axis + 1 };
    bool          keepdim = bool_arg(c, "keepdim");
    DType         t = x->dtype;
    out[0] = x;
    out[1] = num(lo, DT_I64, 0);
    if (rank(x) == 0)
        return;
    if (t == DT_BOOL)
        x = cast(lo, x, DT_I32);
    Value *same_as = emit(lo, ONNX_Equal, unsqueeze(lo, x, axis + 1), unsqueeze(lo, x, axis));
    Value *times = reduce(lo, ONNX_ReduceSum, cast(lo, same_as, DT_I64), others, 1, false);
    Value *often = emit(lo, ONNX_Equal, times, reduce(lo, ONNX_ReduceMax, times, along, 1, true));
    Value *high = reduce(lo, ONNX_ReduceMax, x, along, 1, true);
    Value *least = reduce(lo, ONNX_ReduceMin, emit(lo, ONNX_Where, often, x, high), along, 1, true);
    out[1] = emit_with(lo, ONNX_ArgMax, ATTRS(attr_int("axis", axis), attr_int("keepdims", keepdim),
                                              attr_int("select_last_index", 1)),
                       cast(lo, emit(lo, ONNX_Equal, x, least), DT_I32));
    out[0] = cast(lo, keepdim ? least : squeeze(lo, least, axis), t);
}

/* Quantiles. */

static const char *const interpolations[] = { "linear", "lower", "higher", "midpoint", "nearest" };
enum { BY_LINEAR, BY_LOWER, BY_HIGHER, BY_MIDPOINT, BY_NEAREST };

static int interpolation_of(const Call *c)
{
    for (int i = 0; i < (int)COUNT_OF(interpolations); i++)
        if (same(str_arg(c, "interpolation"), interpolations[i]))
            return i;
    return -1;
}

/* One for each q, in front, of self with the axis (or all) reduced. */
static void shape_quantile(Infer *in, const Call *c)
{
    Type x = type_arg(c, "self"), q = type_arg(c, "q");
    bool keepdim = bool_arg(c, "keepdim");
    int  dim = 0;
    if ((x.dtype != DT_F32 && x.dtype != DT_F64) || (q.kind == TY_TENSOR && q.dtype != x.dtype)) {
        rule_fail(in, "quantiles of %s", p2o_dtype_torch(x.dtype));
        return;
    }
    if (q.shape.rank > 1 || interpolation_of(c) < 0) {
        rule_fail(in, "q of rank %d, interpolation '%s'", q.shape.rank,
                  str_arg(c, "interpolation"));
        return;
    }
    if (has_arg(c, "dim") && !must_wrap_reduce(in, int_arg(c, "dim"), x.shape.rank, &dim))
        return;
    Dim  *at = p2o_shape_copy(in->arena, x.shape, 0);
    int   n = 0;
    for (int i = 0; i < x.shape.rank; i++) {
        bool gone = !has_arg(c, "dim") || i == dim;
        if (gone && !must_have_some(in, x.shape.at[i]))
            return;
        if (!gone || keepdim)
            at[n++] = gone ? int_dim(in, 1) : x.shape.at[i];
    }
    set_out(in, c, 0, x.dtype, concat_shapes(in, q.shape, (Shape){ n, at }));
}

/* What is at a place; GatherElements where each row has places of its own. */
static Value *take_at(Lower *lo, Value *sorted, OnnxOp gather, Value *place)
{
    return emit_with(lo, gather, ATTRS(attr_int("axis", rank(sorted) - 1)), sorted,
                     cast(lo, place, DT_I64));
}

static Value *interpolated(Lower *lo, Value *sorted, OnnxOp gather, Value *place, int how)
{
    if (how == BY_NEAREST)
        return take_at(lo, sorted, gather, emit(lo, ONNX_Round, place));
    Value *below = emit(lo, ONNX_Floor, place), *above = emit(lo, ONNX_Ceil, place);
    if (how == BY_LOWER || how == BY_HIGHER)
        return take_at(lo, sorted, gather, how == BY_LOWER ? below : above);
    Value *low = take_at(lo, sorted, gather, below), *high = take_at(lo, sorted, gather, above);
    Value *weight = how == BY_LINEAR ? emit(lo, ONNX_Sub, place, below) : num(lo, low->dtype, 0.5);
    return emit(lo, ONNX_Add, low, emit(lo, ONNX_Mul, weight, emit(lo, ONNX_Sub, high, low)));
}

/* The axis comes last; the q-th place of n sorted elements is q * (n - 1). */
static Value *quantile(Lower *lo, const Call *c, bool skip_nan)
{
    Value *x = tensor_arg(lo, c, "self"), *q = number_arg(lo, c, "q", x->dtype), *sorted[2], *y;
    int    how = interpolation_of(c);
    if (!has_arg(c, "dim") || rank(x) == 0)
        x = flat(lo, x);
    else
        x = move_dim(lo, x, axis_arg(c, "dim", rank(x)), rank(x) - 1);
    int last = rank(x) - 1;
    if (skip_nan) {
        Value *count = count_numbers(lo, &x, last, x->dtype);
        Value *place = emit(lo, ONNX_Mul, q, plus_num(lo, count, -1));
        sort_along(lo, x, last, false, sorted);
        place = emit(lo, ONNX_Max, place, num(lo, x->dtype, 0));
        y = nan_if_none(lo, count, interpolated(lo, sorted[0], ONNX_GatherElements, place, how));
        y = rank(q) ? y : squeeze(lo, y, last);
    } else {
        Dim    less = p2o_dim_sub(lo->dims, size_at(x, last), p2o_dim_int(lo->dims, 1));
        Value *place = emit(lo, ONNX_Mul, q, count_value(lo, less, x->dtype));
        sort_along(lo, x, last, false, sorted);
        y = interpolated(lo, sorted[0], ONNX_Gather, place, how);
        y = nan_if_any(lo, x, last, rank(q) == 1, y);
    }
    return reshape(lo, rank(q) ? move_dim(lo, y, last, 0) : y, out_shape(c, 0));
}

static Value *lower_quantile(Lower *lo, const Call *c) { return quantile(lo, c, false); }
static Value *lower_nanquantile(Lower *lo, const Call *c) { return quantile(lo, c, true); }

/* Places in a sorted sequence. */

static DType place_type(const Call *c) { return bool_arg(c, "out_int32") ? DT_I32 : DT_I64; }

static bool must_be_comparable(Infer *in, DType t)
{
    if (is_complex(t) || t == DT_BOOL)
        rule_unsupported(in, "places among %s", p2o_dtype_torch(t));
    return !is_complex(t) && t != DT_BOOL;
}

static void shape_bucketize(Infer *in, const Call *c)
{
    if (must_rank(in, c, "boundaries", 1) &&
        must_be_comparable(in, PROMOTE(c, "self", "boundaries")))
        set_out(in, c, 0, place_type(c), shape_arg(c, "self"));
}

/* One sequence for all, or one for each row of self. */
static void shape_searchsorted(Infer *in, const Call *c)
{
    Shape s = shape_arg(c, "self"), seq = shape_arg(c, "sorted_sequence");
    if (!must_be_comparable(in, PROMOTE(c, "self", "sorted_sequence")))
        return;
    if (seq.rank == 0 || (seq.rank > 1 && seq.rank != s.rank)) {
        rule_fail(in, "a sequence of rank %d for values of rank %d", seq.rank, s.rank);
        return;
    }
    for (int i = 0; i + 1 < seq.rank; i++)
        if (!must_equal(in, c, seq.at[i], s.at[i], "rows"))
            return;
    if (has_arg(c, "sorter") && !must_rank(in, c, "sorter", seq.rank))
        return;
    set_out(in, c, 0, place_type(c), s);
}

/* How many of the sequence come before the value, its equals too when `right`.  NaN is last. */
static Value *places(Lower *lo, Value *seq, Value *v, bool right, DType t)
{
    Value *x = rank(v) ? unsqueeze(lo, v, rank(v)) : v, *before;
    if (rank(seq) > 1)
        seq = unsqueeze(lo, seq, rank(seq) - 1);
    if (is_float(v->dtype))
        before = emit(lo, ONNX_Not, emit(lo, right ? ONNX_Greater : ONNX_GreaterOrEqual, seq, x));
    else
        before = emit(lo, right ? ONNX_LessOrEqual : ONNX_Less, seq, x);
    const int64_t last[] = { rank(before) - 1 };
    return reduce(lo, ONNX_ReduceSum, cast(lo, before, t), last, 1, false);
}

static Value *lower_bucketize(Lower *lo, const Call *c)
{
    DType  t = PROMOTE(c, "self", "boundaries");
    Value *seq = tensor_as(lo, c, "boundaries", t), *v = tensor_as(lo, c, "self", t);
    return places(lo, seq, v, bool_arg(c, "right"), place_type(c));
}

static Value *lower_searchsorted(Lower *lo, const Call *c)
{
    DType       t = PROMOTE(c, "self", "sorted_sequence");
    Value      *seq = tensor_as(lo, c, "sorted_sequence", t), *v = tensor_as(lo, c, "self", t);
    Value      *order = tensor_arg(lo, c, "sorter");
    const char *side = str_arg(c, "side");
    if (order)
        seq = take_at(lo, seq, ONNX_GatherElements, order);
    return places(lo, seq, v, bool_arg(c, "right") || (side && same(side, "right")), place_type(c));
}

/* The set arguments have one name for tensors and another for numbers. */
static const char *either_arg(const Call *c, const char *tensor, const char *number)
{
    return p2o_schema_find(c->schema, tensor) >= 0 ? tensor : number;
}

static void shape_isin(Infer *in, const Call *c)
{
    Type x = type_arg(c, either_arg(c, "elements", "element"));
    Type set = type_arg(c, either_arg(c, "test_elements", "test_element"));
    if (is_complex(x.dtype) || is_complex(set.dtype))
        rule_unsupported(in, "complex tensors");
    else
        set_out(in, c, 0, DT_BOOL, x.shape);
}

static Value *lower_isin(Lower *lo, const Call *c)
{
    const char *element = either_arg(c, "elements", "element");
    const char *tests = either_arg(c, "test_elements", "test_element");
    DType       t = PROMOTE(c, element, tests);
    Value      *x = tensor_as(lo, c, element, t), *set = tensor_as(lo, c, tests, t), *y;
    if (rank(set) == 0) {
        y = emit(lo, ONNX_Equal, x, set);
    } else {
        y = emit(lo, ONNX_Equal, rank(x) ? unsqueeze(lo, x, rank(x)) : x, flat(lo, set));
        y = reduce_any(lo, y, (const int64_t[]){ rank(y) - 1 }, 1, false);
    }
    return bool_arg(c, "invert") ? emit(lo, ONNX_Not, y) : y;
}

/* Sets: the results that are not asked for are empty. */

static Shape shape_if(Infer *in, bool asked, Shape s)
{
    Dim *none = NEW(in->arena, Dim);
    *none = int_dim(in, 0);
    return asked ? s : (Shape){ 1, none };
}

static Shape vector_of(Infer *in, Dim n)
{
    Dim *at = NEW(in->arena, Dim);
    *at = n;
    return (Shape){ 1, at };
}

/* values[u], inverse like self, counts[u]. */
static void shape_unique(Infer *in, const Call *c)
{
    Type  x = type_arg(c, "self");
    Shape found = vector_of(in, data_dim(in, c, 0, 0));
    if (!must_order(in, x))
        return;
    set_out(in, c, 0, x.dtype, found);
    set_out(in, c, 1, DT_I64, shape_if(in, bool_arg(c, "return_inverse"), x.shape));
    if (nouts(c) > 2)
        set_out(in, c, 2, DT_I64, shape_if(in, bool_arg(c, "return_counts"), found));
}

/* Of slices along dim; inverse and counts are always given then. */
static void shape_unique_dim(Infer *in, const Call *c)
{
    Type x = type_arg(c, "self");
    int  dim;
    if (!must_order(in, x) || !must_wrap(in, int_arg(c, "dim"), x.shape.rank, &dim))
        return;
    Dim found = data_dim(in, c, 0, dim);
    set_out(in, c, 0, x.dtype, with_dim(in, x.shape, dim, found));
    set_out(in, c, 1, DT_I64, slice_shape(x.shape, dim, dim + 1));
    set_out(in, c, 2, DT_I64, vector_of(in, found));
}

static void shape_unique_consecutive(Infer *in, const Call *c)
{
    if (has_arg(c, "dim"))
        shape_unique_dim(in, c);
    else
        shape_unique(in, c);
}

static Value *or_empty(Lower *lo, bool asked, Value *x)
{
    return asked ? x : ints_const(lo, NULL, 0);
}

/* values, first places, inverse, counts */
static void lower_unique(Lower *lo, const Call *c, Value **out)
{
    Value *x = tensor_arg(lo, c, "self"), *found[4];
    emit_many(lo, ONNX_Unique, NO_ATTRS, 4, found, rank(x) ? x : flat(lo, x));
    out[0] = found[0];
    bool inverse = bool_arg(c, "return_inverse");
    out[1] = or_empty(lo, inverse, inverse ? reshape(lo, found[2], x->shape) : NULL);
    if (nouts(c) > 2)
        out[2] = or_empty(lo, bool_arg(c, "return_counts"), found[3]);
}

static void lower_unique_dim(Lower *lo, const Call *c, Value **out)
{
    Value *x = tensor_arg(lo, c, "self"), *found[4];
    emit_many(lo, ONNX_Unique, ATTRS(attr_int("axis", axis_arg(c, "dim", rank(x)))), 4, found, x);
    out[0] = found[0];
    out[1] = found[2];
    out[2] = found[3];
}

/* Whether each slice along the axis differs from the one before it; the first does. */
static Value *starts_run(Lower *lo, Value *x, int axis)
{
    Dim     zero = p2o_dim_int(lo->dims, 0), size = size_at(x, axis);
    Value  *next = slice_axis(lo, x, axis, p2o_dim_int(lo->dims, 1), NULL, 1);
    Value  *before = slice_axis(lo, x, axis, zero, p2o_dim_int(lo->dims, -1), 1);
    Value  *differs = emit(lo, ONNX_Not, emit(lo, ONNX_Equal, next, before));
    int64_t others[MAX_RANK];
    int     n = 0;
    for (int i = 0; i < rank(x); i++)
        if (i != axis)
            others[n++] = i;
    if (n)
        differs = reduce_any(lo, differs, others, n, false);
    Value *starts = concat(lo, 0, (Value *[]){ unsqueeze(lo, num(lo, DT_BOOL, 1), 0), differs }, 2);
    return never_zero(lo, size) ? starts : slice_axis(lo, starts, 0, zero, size, 1);
}

/* A run is kept where it starts; its number is the starts up to it; its length ends at the next. */
static void lower_unique_consecutive(Lower *lo, const Call *c, Value **out)
{
    Value *x = tensor_arg(lo, c, "self");
    bool   sliced = has_arg(c, "dim");
    int    axis = sliced ? axis_arg(c, "dim", rank(x)) : 0;
    Value *from = sliced ? x : flat(lo, x), *starts = starts_run(lo, from, axis);
    out[0] = emit_with(lo, ONNX_Compress, ATTRS(attr_int("axis", axis)), from, starts);
    out[1] = out[2] = or_empty(lo, false, NULL);
    if (sliced || bool_arg(c, "return_inverse")) {
        Value *number = emit(lo, ONNX_CumSum, cast(lo, starts, DT_I64), p2o_build_int(lo->b, 0));
        number = emit(lo, ONNX_Sub, number, num(lo, DT_I64, 1));
        out[1] = sliced ? number : reshape(lo, number, x->shape);
    }
    if (sliced || bool_arg(c, "return_counts")) {
        Value *at = squeeze(lo, emit(lo, ONNX_NonZero, starts), 0);
        Value *next = slice_axis(lo, at, 0, p2o_dim_int(lo->dims, 1), NULL, 1);
        next = concat(lo, 0, (Value *[]){ next, dim_value(lo, size_at(from, axis)) }, 2);
        out[2] = emit(lo, ONNX_Sub, next, at);
    }
}

/* Counts. */

static void shape_histc(Infer *in, const Call *c)
{
    Type    x = type_arg(c, "self");
    int64_t bins = int_arg(c, "bins");
    if (!is_float(x.dtype) || bins < 1)
        rule_fail(in, "%lld bins of %s", (long long)bins, p2o_dtype_torch(x.dtype));
    else
        set_out(in, c, 0, x.dtype, vector_of(in, int_dim(in, bins)));
}

/* Equal bounds mean those of the data, and one to each side when these are equal too. */
static void data_bounds(Lower *lo, Value *x, Value **low, Value **high)
{
    const int64_t axes[] = { 0 };
    Value        *least = reduce(lo, ONNX_ReduceMin, x, axes, 1, false);
    Value        *most = reduce(lo, ONNX_ReduceMax, x, axes, 1, false);
    Value        *equal = emit(lo, ONNX_Equal, least, most);
    *low = choose(lo, equal, plus_num(lo, least, -1), least);
    *high = choose(lo, equal, plus_num(lo, most, 1), most);
}

/* x falls into bin (x - low) * bins / (high - low), rounded as x's type has it at each step, at
 * high into the last; outside it counts 0. */
static Value *lower_histc(Lower *lo, const Call *c)
{
    DType   t = out_dtype(c, 0);
    Value  *x = flat(lo, tensor_as(lo, c, "self", t)), *low, *high;
    int64_t bins = int_arg(c, "bins");
    double  from, to;
    if (!fixed_number(lo, c, "min", &from) || !fixed_number(lo, c, "max", &to))
        return NULL;
    if (from > to)
        return unsupported(lo, c, "bounds %g and %g", from, to);
    low = num(lo, t, from);
    high = num(lo, t, to);
    if (from == to)
        data_bounds(lo, x, &low, &high);
    Value *inside = emit(lo, ONNX_And, emit(lo, ONNX_GreaterOrEqual, x, low),
                         emit(lo, ONNX_LessOrEqual, x, high));
    Value *scaled = from == to ? emit(lo, ONNX_Sub, x, low) : plus_num(lo, x, -from);
    scaled = emit(lo, ONNX_Mul, scaled, num(lo, t, (double)bins));
    scaled = emit(lo, ONNX_Div, scaled,
                  from == to ? emit(lo, ONNX_Sub, high, low) : num(lo, t, to - from));
    Value *bin = cast(lo, choose(lo, inside, scaled, num(lo, t, 0)), DT_I64);
    bin = emit(lo, ONNX_Min, bin, num(lo, DT_I64, (double)(bins - 1)));
    Value *counts = full(lo, out_shape(c, 0), t, 0), *one = cast(lo, inside, t);
    counts = scatter_with(lo, ONNX_ScatterElements, 0, counts, bin, one, "add");
    return cast(lo, counts, out_dtype(c, 0));
}

static void shape_bincount(Infer *in, const Call *c)
{
    Type  x = type_arg(c, "self");
    DType t = has_arg(c, "weights") && type_arg(c, "weights").dtype == DT_F32 ? DT_F32 : DT_F64;
    if (!is_int(x.dtype)) {
        rule_fail(in, "counting %s", p2o_dtype_torch(x.dtype));
        return;
    }
    if (must_rank(in, c, "self", 1) &&
        (!has_arg(c, "weights") ||
         (must_rank(in, c, "weights", 1) &&
          must_equal(in, c, x.shape.at[0], shape_arg(c, "weights").at[0], "weights"))))
        set_out(in, c, 0, has_arg(c, "weights") ? t : DT_I64, vector_of(in, data_dim(in, c, 0, 0)));
}

/* As many bins as the greatest asks for; of no elements the greatest is the least int64. */
static Value *lower_bincount(Lower *lo, const Call *c)
{
    const int64_t axes[] = { 0 };
    DType  t = out_dtype(c, 0);
    Value *x = tensor_as(lo, c, "self", DT_I64), *w = tensor_as(lo, c, "weights", t);
    Value *bins = plus_num(lo, reduce(lo, ONNX_ReduceMax, x, axes, 1, true), 1);
    bins = emit(lo, ONNX_Max, bins, dim_value(lo, dim_arg(c, "minlength")));
    Value *counts = emit(lo, ONNX_Expand, num(lo, t, 0), bins);
    if (!w)
        w = full(lo, x->shape, t, 1);
    return scatter_with(lo, ONNX_ScatterElements, 0, counts, x, w, "add");
}

#define RANKED      "(Tensor values, Tensor indices)"
#define NAN_ORDER   .limits = "NaN has no fixed place"
#define NAN_HIGH    .limits = "NaN and infinity in the order they come"
#define TIED        .limits = "which index of equal values is not fixed; NaN has no fixed place"
/* PyTorch records shapes of another rank when dim is negative. */
#define CAPTURED_WRONG  .unchecked = true

const AtenOp p2o_ops_sort[] = {
    { "sort(Tensor self, int dim=-1, bool descending=False) -> " RANKED, shape_sort,
      .lower_many = lower_sort, NAN_HIGH,
      .batch = p2o_batch_axes },
    { "sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False) -> " RANKED,
      shape_sort, .lower_many = lower_sort, NAN_HIGH,
      .batch = p2o_batch_axes },
    { "argsort(Tensor self, int dim=-1, bool descending=False) -> Tensor", shape_argsort,
      .lower = lower_argsort, NAN_HIGH,
      .batch = p2o_batch_axes },
    { "argsort.stable(Tensor self, *, bool stable, int dim=-1, bool descending=False) -> Tensor",
      shape_argsort, .lower = lower_argsort, NAN_HIGH,
      .batch = p2o_batch_axes },
    { "msort(Tensor self) -> Tensor", shape_msort, .lower = lower_msort, NAN_HIGH },
    { "topk(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True) -> " RANKED,
      shape_topk, .lower_many = lower_topk, TIED,
      .batch = p2o_batch_axes },
    { "kthvalue(Tensor self, SymInt k, int dim=-1, bool keepdim=False) -> " RANKED, shape_kthvalue,
      .lower_many = lower_kthvalue, TIED,
      .batch = p2o_batch_axes },

    { "median(Tensor self) -> Tensor", shape_median, .lower = lower_median },
    { "median.dim(Tensor self, int dim, bool keepdim=False) -> " RANKED, shape_of_ranked_one,
      .lower_many = lower_median_dim, .limits = "which index of equal values or NaN is not fixed",
      .batch = p2o_batch_axes },
    { "nanmedian(Tensor self) -> Tensor", shape_median, .lower = lower_nanmedian },
    { "nanmedian.dim(Tensor self, int dim, bool keepdim=False) -> " RANKED, shape_of_ranked_one,
      .lower_many = lower_nanmedian_dim, .limits = "which index of equal values is not fixed",
      .batch = p2o_batch_axes },
    { "mode(Tensor self, int dim=-1, bool keepdim=False) -> " RANKED, shape_of_ranked_one,
      .lower_many = lower_mode, NAN_ORDER,
      .batch = p2o_batch_axes },
    { "quantile(Tensor self, Tensor q, int? dim=None, bool keepdim=False, *, str interpolation=\"linear\") -> Tensor",
      shape_quantile, .lower = lower_quantile },
    { "quantile.scalar(Tensor self, float q, int? dim=None, bool keepdim=False, *, str interpolation=\"linear\") -> Tensor",
      shape_quantile, .lower = lower_quantile },
    { "nanquantile(Tensor self, Tensor q, int? dim=None, bool keepdim=False, *, str interpolation=\"linear\") -> Tensor",
      shape_quantile, .lower = lower_nanquantile },
    { "nanquantile.scalar(Tensor self, float q, int? dim=None, bool keepdim=False, *, str interpolation=\"linear\") -> Tensor",
      shape_quantile, .lower = lower_nanquantile },

    { "bucketize.Tensor(Tensor self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor",
      shape_bucketize, .lower = lower_bucketize,
      .batch = p2o_batch_tail },
    { "bucketize.Scalar(Scalar self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor",
      shape_bucketize, .lower = lower_bucketize },
    { "searchsorted.Tensor(Tensor sorted_sequence, Tensor self, *, bool out_int32=False, bool right=False, str? side=None, Tensor? sorter=None) -> Tensor",
      shape_searchsorted, .lower = lower_searchsorted },
    { "searchsorted.Scalar(Tensor sorted_sequence, Scalar self, *, bool out_int32=False, bool right=False, str? side=None, Tensor? sorter=None) -> Tensor",
      shape_searchsorted, .lower = lower_searchsorted },
    { "isin.Tensor_Tensor(Tensor elements, Tensor test_elements, *, bool assume_unique=False, bool invert=False) -> Tensor",
      shape_isin, .lower = lower_isin,
      .batch = p2o_batch_tail },
    { "isin.Tensor_Scalar(Tensor elements, Scalar test_element, *, bool assume_unique=False, bool invert=False) -> Tensor",
      shape_isin, .lower = lower_isin,
      .batch = p2o_batch_self },
    { "isin.Scalar_Tensor(Scalar element, Tensor test_elements, *, bool assume_unique=False, bool invert=False) -> Tensor",
      shape_isin, .lower = lower_isin },

    { "_unique(Tensor self, bool sorted=True, bool return_inverse=False) -> (Tensor, Tensor)",
      shape_unique, .lower_many = lower_unique, NAN_ORDER },
    { "_unique2(Tensor self, bool sorted=True, bool return_inverse=False, bool return_counts=False) -> (Tensor, Tensor, Tensor)",
      shape_unique, .lower_many = lower_unique, NAN_ORDER },
    { "unique_dim(Tensor self, int dim, bool sorted=True, bool return_inverse=False, bool return_counts=False) -> (Tensor, Tensor, Tensor)",
      shape_unique_dim, .lower_many = lower_unique_dim, NAN_ORDER },
    { "unique_consecutive(Tensor self, bool return_inverse=False, bool return_counts=False, int? dim=None) -> (Tensor, Tensor, Tensor)",
      shape_unique_consecutive, .lower_many = lower_unique_consecutive, CAPTURED_WRONG },
    { "unique_dim_consecutive(Tensor self, int dim, bool return_inverse=False, bool return_counts=False) -> (Tensor, Tensor, Tensor)",
      shape_unique_dim, .lower_many = lower_unique_consecutive, CAPTURED_WRONG },

    { "histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor", shape_histc,
      .lower = lower_histc, .limits = "bounds in order" },
    { "bincount(Tensor self, Tensor? weights=None, SymInt minlength=0) -> Tensor", shape_bincount,
      .lower = lower_bincount },
    { 0 },
};
