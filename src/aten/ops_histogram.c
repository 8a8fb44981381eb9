/* torch.histogram: counts or weights between edges, given or spread evenly over a range or over the
 * data. */
#include "aten/lower.h"

static bool by_edges(const Call *c)
{
    return p2o_arg_type(p2o_call_arg(c, "bins")).kind == TY_TENSOR;
}

static void shape_histogram(Infer *in, const Call *c)
{
    Type x = type_arg(c, "self");
    Dim  one = int_dim(in, 1), edges;
    if (!is_float(x.dtype) ||
        (by_edges(c) ? type_arg(c, "bins").dtype != x.dtype : int_arg(c, "bins") < 1)) {
        rule_fail(in, "of %s", p2o_dtype_torch(x.dtype));
        return;
    }
    if (by_edges(c) && !must_rank(in, c, "bins", 1))
        return;
    edges = by_edges(c) ? shape_arg(c, "bins").at[0] : int_dim(in, int_arg(c, "bins") + 1);
    if (has_arg(c, "weight")) {
        Type w = type_arg(c, "weight");
        if (w.dtype != x.dtype || w.shape.rank != x.shape.rank) {
            rule_fail(in, "weight: %s of rank %d", p2o_dtype_torch(w.dtype), w.shape.rank);
            return;
        }
        for (int i = 0; i < x.shape.rank; i++)
            if (!must_equal(in, c, w.shape.at[i], x.shape.at[i], "weights"))
                return;
    }
    if (names_arg(c, "range") && has_arg(c, "range") && list_len(c, "range") != 2)
        rule_fail(in, "a range of %d numbers", list_len(c, "range"));
    Dim bins = p2o_dim_sub(in->dims, edges, one);
    set_out(in, c, 0, x.dtype, (Shape){ 1, p2o_shape_copy(in->arena, (Shape){ 1, &bins }, 0) });
    set_out(in, c, 1, x.dtype, (Shape){ 1, p2o_shape_copy(in->arena, (Shape){ 1, &edges }, 0) });
}

/* The range, or that of the data (of none: 0 to 1); an empty one is opened by a half to each
 * side. */
static void outer_edges(Lower *lo, const Call *c, Value *x, Value **low, Value **high)
{
    const int64_t axis = 0;
    DType         t = x->dtype;
    if (has_arg(c, "range")) {
        const Arg *r = p2o_call_arg(c, "range");
        *low = p2o_arg_value(lo, &r->items[0], t);
        *high = p2o_arg_value(lo, &r->items[1], t);
    } else {
        *low = reduce(lo, ONNX_ReduceMin, x, &axis, 1, false);
        *high = reduce(lo, ONNX_ReduceMax, x, &axis, 1, false);
        if (!never_zero(lo, size_at(x, 0))) {
            Value *none =
                emit(lo, ONNX_Equal, dim_scalar(lo, size_at(x, 0)), p2o_build_int(lo->b, 0));
            *low = choose(lo, none, num(lo, t, 0), *low);
            *high = choose(lo, none, num(lo, t, 1), *high);
        }
    }
    Value *half = choose(lo, emit(lo, ONNX_Equal, *low, *high), num(lo, t, 0.5), num(lo, t, 0));
    *low = emit(lo, ONNX_Sub, *low, half);
    *high = emit(lo, ONNX_Add, *high, half);
}

/* As torch.linspace has them: from the nearer end. */
static Value *even_edges(Lower *lo, Value *low, Value *high, int64_t bins)
{
    DType  t = low->dtype;
    Value *i = cast(lo, iota(lo, p2o_dim_int(lo->dims, bins + 1)), t);
    Value *step = emit(lo, ONNX_Div, emit(lo, ONNX_Sub, high, low), num(lo, t, (double)bins));
    Value *up = emit(lo, ONNX_Add, low, emit(lo, ONNX_Mul, step, i));
    Value *left = emit(lo, ONNX_Sub, num(lo, t, (double)bins), i);
    Value *down = emit(lo, ONNX_Sub, high, emit(lo, ONNX_Mul, step, left));
    return choose(lo, emit(lo, ONNX_Less, i, num(lo, t, (double)((bins + 1) / 2))), up, down);
}

static Value *one_edge(Lower *lo, Value *edges, bool last)
{
    Dim at = p2o_dim_int(lo->dims, 0);
    if (last)
        at = p2o_dim_sub(lo->dims, size_at(edges, 0), p2o_dim_int(lo->dims, 1));
    return select_axis(lo, edges, 0, at);
}

static Value *at_places(Lower *lo, Value *edges, Value *i)
{
    return emit_with(lo, ONNX_Gather, ATTRS(attr_int("axis", 0)), edges, i);
}

/* The bin by proportion, and the one beside it where rounding put x over an edge. */
static Value *even_bin(Lower *lo, Value *x, Value *edges, Value *low, Value *high, int64_t bins)
{
    DType  t = x->dtype;
    Value *zero = p2o_build_int(lo->b, 0), *one = p2o_build_int(lo->b, 1),
          *last = p2o_build_int(lo->b, bins - 1);
    Value *scaled = emit(lo, ONNX_Mul, emit(lo, ONNX_Sub, x, low), num(lo, t, (double)bins));
    scaled = emit(lo, ONNX_Div, scaled, emit(lo, ONNX_Sub, high, low));
    Value *bin = emit(lo, ONNX_Min, cast(lo, scaled, DT_I64), last);
    Value *over =
        emit(lo, ONNX_GreaterOrEqual, x, at_places(lo, edges, emit(lo, ONNX_Add, bin, one)));
    Value *under = emit(lo, ONNX_Less, x, at_places(lo, edges, bin));
    bin = emit(lo, ONNX_Add, bin, cast(lo, over, DT_I64));
    bin = emit(lo, ONNX_Sub, bin, cast(lo, under, DT_I64));
    return emit(lo, ONNX_Max, emit(lo, ONNX_Min, bin, last), zero);
}

/* How many edges are not above x, less one; the last edge belongs to the last bin. */
static Value *bin_among(Lower *lo, Value *x, Value *edges)
{
    const int64_t axis = 1;
    Value *not_above = emit(lo, ONNX_LessOrEqual, edges, unsqueeze(lo, x, 1));
    Value *bin = reduce(lo, ONNX_ReduceSum, cast(lo, not_above, DT_I64), &axis, 1, false);
    Dim    last = p2o_dim_sub(lo->dims, size_at(edges, 0), p2o_dim_int(lo->dims, 2));
    bin = emit(lo, ONNX_Min, plus_num(lo, bin, -1), dim_scalar(lo, last));
    return emit(lo, ONNX_Max, bin, p2o_build_int(lo->b, 0));
}

static void lower_histogram(Lower *lo, const Call *c, Value **out)
{
    const int64_t axis = 0;
    DType  t = wide_of(out_dtype(c, 0));
    Value *x = flat(lo, tensor_as(lo, c, "self", t)), *edges, *low, *high, *bin;
    if (by_edges(c)) {
        edges = tensor_as(lo, c, "bins", t);
        low = one_edge(lo, edges, false);
        high = one_edge(lo, edges, true);
    } else {
        outer_edges(lo, c, x, &low, &high);
        edges = even_edges(lo, low, high, int_arg(c, "bins"));
    }
    Value *inside = emit(lo, ONNX_And, emit(lo, ONNX_GreaterOrEqual, x, low),
                         emit(lo, ONNX_LessOrEqual, x, high));
    x = choose(lo, inside, x, low);
    bin = by_edges(c) ? bin_among(lo, x, edges)
                      : even_bin(lo, x, edges, low, high, int_arg(c, "bins"));
    Value *zero = num(lo, t, 0), *count = cast(lo, inside, t);
    if (has_arg(c, "weight"))
        count = choose(lo, inside, flat(lo, tensor_as(lo, c, "weight", t)), zero);
    Value *hist = full(lo, out_shape(c, 0), t, 0);
    hist = scatter_with(lo, ONNX_ScatterElements, 0, hist, bin, count, "add");
    if (bool_arg(c, "density")) {
        Dim    zeroth = p2o_dim_int(lo->dims, 0), one = p2o_dim_int(lo->dims, 1);
        Value *next = slice_axis(lo, edges, 0, one, NULL, 1);
        Value *from =
            slice_axis(lo, edges, 0, zeroth, p2o_dim_sub(lo->dims, size_at(edges, 0), one), 1);
        Value *width = emit(lo, ONNX_Sub, next, from);
        hist = emit(lo, ONNX_Div, hist, reduce(lo, ONNX_ReduceSum, hist, &axis, 1, false));
        hist = emit(lo, ONNX_Div, hist, width);
    }
    out[0] = cast(lo, hist, out_dtype(c, 0));
    out[1] = cast(lo, edges, out_dtype(c, 1));
}

#define HISTOGRAM "(Tensor hist, Tensor bin_edges)"

const AtenOp p2o_ops_histogram[] = {
    { "histogram.bin_ct(Tensor self, int bins=100, *, float[]? range=None, Tensor? weight=None, "
      "bool density=False) -> " HISTOGRAM,
      shape_histogram, .lower_many = lower_histogram },
    { "histogram.bins_tensor(Tensor self, Tensor bins, *, Tensor? weight=None, "
      "bool density=False) -> " HISTOGRAM,
      shape_histogram, .lower_many = lower_histogram },
    { 0 },
};
