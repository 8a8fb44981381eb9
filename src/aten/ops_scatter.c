/* Elements along one dim, chosen by an index: gathered, scattered, reduced, and bags of embeddings.
 *
 * gather and scatter have an index for every element (GatherElements, ScatterElements);
 * index_select, index_add and their kin one for a whole slice.  A 0-d tensor takes part as one of a
 * single element. Reductions that leave out self first write their identity to the places that the
 * index names. */
#include <math.h>

#include "aten/lower.h"

/* An index that is empty whatever the sizes are may have any rank and type. */
static bool is_always_empty(Shape s)
{
    for (int i = 0; i < s.rank; i++)
        if (dim_is(s.at[i], 0))
            return true;
    return false;
}

static bool index_type_ok(Infer *in, const Call *c, const char *name)
{
    DType t = type_arg(c, name).dtype;
    if (t == DT_I64 || t == DT_I32 || is_always_empty(shape_arg(c, name)))
        return true;
    rule_fail(in, "%s of %s", name, p2o_dtype_torch(t));
    return false;
}

static int rank_as_vector(Shape s) { return s.rank ? s.rank : 1; }

/* One index for each element: of self's rank, 0-d and 1-d being the same. */
static bool element_index_ok(Infer *in, const Call *c)
{
    Shape x = shape_arg(c, "self"), index = shape_arg(c, "index");
    int   dim;
    if (!must_wrap_reduce(in, int_arg(c, "dim"), x.rank, &dim) || !index_type_ok(in, c, "index"))
        return false;
    if (rank_as_vector(x) == rank_as_vector(index) || is_always_empty(index))
        return true;
    rule_fail(in, "index of rank %d for a tensor of rank %d", index.rank, x.rank);
    return false;
}

/* The dim that the call names, in a tensor of at least rank 1. */
static int call_dim(const Call *c)
{
    int dim = 0;
    p2o_wrap_dim(int_arg(c, "dim"), shape_arg(c, "self").rank, true, &dim);
    return dim;
}

static Value *as_vector(Lower *lo, Value *x) { return rank(x) ? x : unsqueeze(lo, x, 0); }
static Value *as_scalar(Lower *lo, Value *x, int want)
{
    return want < rank(x) ? squeeze(lo, x, 0) : x;
}

static void shape_gather(Infer *in, const Call *c)
{
    if (element_index_ok(in, c))
        set_out(in, c, 0, type_arg(c, "self").dtype, shape_arg(c, "index"));
}

static Value *gather_elements(Lower *lo, Value *x, Value *index, int axis)
{
    return emit_with(lo, ONNX_GatherElements, ATTRS(attr_int("axis", axis)), x, index);
}

static Value *lower_gather(Lower *lo, const Call *c)
{
    Value *x = as_vector(lo, tensor_arg(lo, c, "self")), *index = tensor_arg(lo, c, "index");
    if (is_always_empty(index->shape))
        return full(lo, out_shape(c, 0), out_dtype(c, 0), 0);
    return as_scalar(lo, gather_elements(lo, x, as_vector(lo, index), call_dim(c)), rank(index));
}

/* Without a dim both are flattened; else all other dims broadcast. */
static void shape_take_along_dim(Infer *in, const Call *c)
{
    Type x = type_arg(c, "self"), index = type_arg(c, "indices");
    int  dim;
    if (!index_type_ok(in, c, "indices"))
        return;
    if (!has_arg(c, "dim")) {
        Dim n = shape_nelem(in->dims, index.shape);
        set_out(in, c, 0, x.dtype, (Shape){ 1, &n });
        return;
    }
    if (!must_rank(in, c, "indices", x.shape.rank) ||
        !must_wrap(in, int_arg(c, "dim"), x.shape.rank, &dim))
        return;
    Shape others = with_dim(in, x.shape, dim, index.shape.at[dim]);
    set_out(in, c, 0, x.dtype, broadcast(in, c, others, index.shape));
}

static Value *lower_take_along_dim(Lower *lo, const Call *c)
{
    Value *x = tensor_arg(lo, c, "self"), *index = tensor_arg(lo, c, "indices");
    Shape  s = out_shape(c, 0);
    int    dim;
    if (!has_arg(c, "dim"))
        return emit(lo, ONNX_Gather, flat(lo, x), flat(lo, index));
    p2o_wrap_dim(int_arg(c, "dim"), rank(x), false, &dim);
    Dim *others = p2o_shape_copy(lo->arena, s, 0);
    others[dim] = size_at(x, dim);
    return gather_elements(lo, expand(lo, x, (Shape){ s.rank, others }), expand(lo, index, s), dim);
}

/* One index for each slice along dim: rank 1, or 0 for a single one. */
static bool slice_index_ok(Infer *in, const Call *c, int *dim)
{
    if (!must_wrap_reduce(in, int_arg(c, "dim"), shape_arg(c, "self").rank, dim) ||
        !index_type_ok(in, c, "index"))
        return false;
    if (shape_arg(c, "index").rank <= 1)
        return true;
    rule_fail(in, "index of rank %d against at most 1", shape_arg(c, "index").rank);
    return false;
}

static Dim slice_count(const Infer *in, Shape index)
{
    return index.rank ? index.at[0] : int_dim(in, 1);
}

static void shape_index_select(Infer *in, const Call *c)
{
    Type x = type_arg(c, "self");
    int  dim;
    if (!slice_index_ok(in, c, &dim))
        return;
    if (x.shape.rank)
        x.shape = with_dim(in, x.shape, dim, slice_count(in, shape_arg(c, "index")));
    set_out(in, c, 0, x.dtype, x.shape);
}

static Value *lower_index_select(Lower *lo, const Call *c)
{
    Value *x = tensor_arg(lo, c, "self");
    if (rank(x) == 0)
        return x;
    return emit_with(lo, ONNX_Gather, ATTRS(attr_int("axis", call_dim(c))), x,
                     as_vector(lo, tensor_arg(lo, c, "index")));
}

/* Where a write goes: ScatterElements along an axis, or ScatterND by slices of the first. */
typedef struct Target {
    OnnxOp op;
    int    axis;
    Value *index;
    Shape  shape;               /* of what is written */
} Target;

static Value *write_at(Lower *lo, const Target *t, Value *x, Value *updates, const char *reduction)
{
    return scatter_with(lo, t->op, t->axis, x, t->index, updates, reduction);
}

/* Each element of index names where one element goes. */
static Target element_target(Lower *lo, const Call *c)
{
    Value *index = as_vector(lo, tensor_arg(lo, c, "index"));
    return (Target){ .op = ONNX_ScatterElements, .axis = call_dim(c), .index = index,
                     .shape = index->shape };
}

/* Each element of index names where a slice of x along dim goes. */
static Target slice_target(Lower *lo, const Call *c, const Value *x)
{
    Value *index = as_vector(lo, tensor_arg(lo, c, "index"));
    int    dim = call_dim(c);
    Dim   *at = p2o_shape_copy(lo->arena, x->shape, 0);
    Target t = { .axis = dim, .shape = { rank(x), at } };
    at[dim] = size_at(index, 0);
    if (rank(x) == 1) {
        t.op = ONNX_ScatterElements;
        t.index = index;
    } else if (dim == 0) {
        t.op = ONNX_ScatterND;
        t.index = unsqueeze(lo, cast(lo, index, DT_I64), 1);
    } else {
        Dim ones[MAX_RANK];
        for (int i = dim; i < rank(x); i++)
            ones[i - dim] = i == dim ? at[dim] : p2o_dim_int(lo->dims, 1);
        t.op = ONNX_ScatterElements;
        t.index = expand(lo, reshape(lo, index, (Shape){ rank(x) - dim, ones }), t.shape);
    }
    return t;
}

/* What of src is written: it may be larger than the index. */
static Value *written_part(Lower *lo, Value *src, Shape s)
{
    src = as_vector(lo, src);
    for (int i = 0; i < s.rank; i++)
        if (size_at(src, i) != s.at[i])
            src = slice_axis(lo, src, i, p2o_dim_int(lo->dims, 0), s.at[i], 1);
    return src;
}

static bool same_type_as_self(Infer *in, const Call *c, const char *name)
{
    DType x = type_arg(c, "self").dtype, t = type_arg(c, name).dtype;
    if (t == x)
        return true;
    rule_fail(in, "%s of %s for a tensor of %s", name, p2o_dtype_torch(t), p2o_dtype_torch(x));
    return false;
}

static void shape_scatter(Infer *in, const Call *c)
{
    Shape index = shape_arg(c, "index");
    bool  by_src = p2o_schema_find(c->schema, "src") >= 0;
    if (!element_index_ok(in, c) || (by_src && !same_type_as_self(in, c, "src")))
        return;
    if (by_src && !is_always_empty(index) &&
        rank_as_vector(shape_arg(c, "src")) != rank_as_vector(index))
        rule_fail(in, "src of rank %d for an index of rank %d", shape_arg(c, "src").rank,
                  index.rank);
    p2o_rule_same(in, c);
}

/* The smallest value of a type, or the largest. */
static Value *bound_of_type(Lower *lo, DType t, bool smallest)
{
    size_t  bits = 8 * p2o_dtype_bytes(t);
    bool    is_unsigned = t == DT_U8 || t == DT_U16 || t == DT_U32 || t == DT_U64 || t == DT_BOOL;
    int64_t low = is_unsigned ? 0 : INT64_MIN >> (64 - bits);
    if (is_float(t))
        return num(lo, t, smallest ? -INFINITY : INFINITY);
    return p2o_build_const(lo->b, p2o_tensor_scalar(lo->arena, t, 0, smallest ? low : ~low, false));
}

static Value *identity_of(Lower *lo, DType t, const char *reduction)
{
    if (same(reduction, "max") || same(reduction, "min"))
        return bound_of_type(lo, t, same(reduction, "max"));
    return num(lo, t, same(reduction, "mul"));
}

/* Integers divide towards minus infinity. */
static Value *mean_of(Lower *lo, Value *sum, Value *count)
{
    if (!is_float(sum->dtype))
        sum = emit(lo, ONNX_Sub, sum, emit(lo, ONNX_Mod, sum, count));
    return emit(lo, ONNX_Div, sum, count);
}

/* x reduced with what is written, or, without self, only what is written where something is. */
static Value *reduce_at(Lower *lo, const Target *t, Value *x, Value *updates, const char *reduction,
                        bool include_self)
{
    bool   mean = same(reduction, "mean");
    DType  type = x->dtype;
    Shape  whole = x->shape;
    reduction = mean ? "add" : reduction;
    if (!include_self)
        x = write_at(lo, t, x, expand(lo, identity_of(lo, type, reduction), t->shape), "none");
    Value *y = write_at(lo, t, x, updates, reduction);
    if (!mean)
        return y;
    Value *ones = full(lo, t->shape, type, 1);
    Value *count = write_at(lo, t, full(lo, whole, type, include_self), ones, "add");
    return mean_of(lo, y, include_self ? count : emit(lo, ONNX_Max, count, num(lo, type, 1)));
}

static Value *lower_scatter(Lower *lo, const Call *c)
{
    Value *x = tensor_arg(lo, c, "self"), *v = as_vector(lo, x), *updates;
    if (is_always_empty(shape_arg(c, "index")))
        return x;
    Target t = element_target(lo, c);
    if (p2o_schema_find(c->schema, "src") >= 0)
        updates = written_part(lo, tensor_arg(lo, c, "src"), t.shape);
    else
        updates = expand(lo, number_arg(lo, c, "value", x->dtype), t.shape);
    const char *reduction = "none";
    if (p2o_schema_find(c->schema, "reduce") >= 0)
        reduction = same(str_arg(c, "reduce"), "add") ? "add" : "mul";
    return as_scalar(lo, write_at(lo, &t, v, updates, reduction), rank(x));
}

static void shape_scatter_reduce_by_name(Infer *in, const Call *c)
{
    const char *how = str_arg(c, "reduce");
    if (same(how, "add") || same(how, "multiply"))
        shape_scatter(in, c);
    else
        rule_fail(in, "reduce '%s'", how);
}

static Value *lower_scatter_add(Lower *lo, const Call *c)
{
    Value *x = tensor_arg(lo, c, "self");
    if (is_always_empty(shape_arg(c, "index")))
        return x;
    Target t = element_target(lo, c);
    Value *src = written_part(lo, tensor_arg(lo, c, "src"), t.shape);
    return as_scalar(lo, write_at(lo, &t, as_vector(lo, x), src, "add"), rank(x));
}

/* PyTorch's name of a reduction -> ours, which is ONNX's but for mean; NULL: there is none. */
static const char *reduction_named(const char *name)
{
    static const char *const names[][2] = {
        { "sum", "add" },  { "prod", "mul" }, { "mean", "mean" }, { "amax", "max" },
        { "amin", "min" }, { "max", "max" },  { "min", "min" },
    };
    for (size_t i = 0; i < COUNT_OF(names); i++)
        if (same(name, names[i][0]))
            return names[i][1];
    return NULL;
}

static bool needs_newer_opset(const Lower *lo, const char *reduction)
{
    return lo->opset < 18 && (same(reduction, "max") || same(reduction, "min"));
}

static bool reduction_ok(Infer *in, const Call *c)
{
    const char *how = str_arg(c, "reduce");
    DType       t = type_arg(c, "self").dtype;
    if (reduction_named(how) && !(same(how, "mean") && t == DT_BOOL))
        return true;
    rule_fail(in, "reduce '%s' of %s", how, p2o_dtype_torch(t));
    return false;
}

static void shape_scatter_reduce(Infer *in, const Call *c)
{
    if (reduction_ok(in, c))
        shape_scatter(in, c);
}

static Value *lower_scatter_reduce(Lower *lo, const Call *c)
{
    Value      *x = tensor_arg(lo, c, "self");
    const char *how = reduction_named(str_arg(c, "reduce"));
    if (is_always_empty(shape_arg(c, "index")))
        return x;
    if (needs_newer_opset(lo, how))
        return unsupported(lo, c, "reduce '%s' below opset 18", str_arg(c, "reduce"));
    Target t = element_target(lo, c);
    Value *src = written_part(lo, tensor_arg(lo, c, "src"), t.shape);
    return as_scalar(lo, reduce_at(lo, &t, as_vector(lo, x), src, how, bool_arg(c, "include_self")),
                     rank(x));
}

/* A source like self, but with as many slices along dim as there are indices. */
static void shape_index_write(Infer *in, const Call *c)
{
    Type x = type_arg(c, "self"), source = type_arg(c, "source");
    Dim  count = slice_count(in, shape_arg(c, "index"));
    int  dim;
    if (!slice_index_ok(in, c, &dim) || !same_type_as_self(in, c, "source"))
        return;
    if (rank_as_vector(x.shape) != rank_as_vector(source.shape)) {
        rule_fail(in, "source of rank %d for a tensor of rank %d", source.shape.rank, x.shape.rank);
        return;
    }
    for (int i = 0; i < source.shape.rank; i++)
        if (!must_equal(in, c, source.shape.at[i], i == dim ? count : x.shape.at[i],
                        "sizes of source"))
            return;
    p2o_rule_same(in, c);
}

static Value *write_slices(Lower *lo, const Call *c, Value *source, const char *reduction)
{
    Value *x = tensor_arg(lo, c, "self"), *v = as_vector(lo, x);
    Target t = slice_target(lo, c, v);
    return as_scalar(lo, write_at(lo, &t, v, as_vector(lo, source), reduction), rank(x));
}

static Value *lower_index_add(Lower *lo, const Call *c)
{
    Value *source = tensor_arg(lo, c, "source");
    double alpha;
    if (!p2o_number_is_const(p2o_call_arg(c, "alpha"), &alpha) || alpha != 1)
        source = emit(lo, source->dtype == DT_BOOL ? ONNX_And : ONNX_Mul, source,
                      number_arg(lo, c, "alpha", source->dtype));
    return write_slices(lo, c, source, "add");
}

static Value *lower_index_copy(Lower *lo, const Call *c)
{
    return write_slices(lo, c, tensor_arg(lo, c, "source"), "none");
}

static void shape_index_reduce(Infer *in, const Call *c)
{
    if (same(str_arg(c, "reduce"), "sum"))
        rule_fail(in, "reduce 'sum'");
    else if (reduction_ok(in, c))
        shape_index_write(in, c);
}

static Value *lower_index_reduce(Lower *lo, const Call *c)
{
    Value      *x = tensor_arg(lo, c, "self"), *v = as_vector(lo, x);
    const char *how = reduction_named(str_arg(c, "reduce"));
    if (needs_newer_opset(lo, how))
        return unsupported(lo, c, "reduce '%s' below opset 18", str_arg(c, "reduce"));
    Target t = slice_target(lo, c, v);
    Value *source = as_vector(lo, tensor_arg(lo, c, "source"));
    return as_scalar(lo, reduce_at(lo, &t, v, source, how, bool_arg(c, "include_self")), rank(x));
}

static void shape_index_fill(Infer *in, const Call *c)
{
    int dim;
    if (type_arg(c, "value").shape.rank > 0)
        rule_fail(in, "value of rank %d against 0", type_arg(c, "value").shape.rank);
    else if (slice_index_ok(in, c, &dim))
        p2o_rule_same(in, c);
}

static Value *lower_index_fill(Lower *lo, const Call *c)
{
    Value *x = tensor_arg(lo, c, "self"), *v = as_vector(lo, x);
    Target t = slice_target(lo, c, v);
    Value *value = expand(lo, tensor_as(lo, c, "value", x->dtype), t.shape);
    return as_scalar(lo, write_at(lo, &t, v, value, "none"), rank(x));
}

static void shape_embedding(Infer *in, const Call *c)
{
    Type w = type_arg(c, "weight"), i = type_arg(c, "indices");
    if (must_rank(in, c, "weight", 2) && index_type_ok(in, c, "indices"))
        set_out(in, c, 0, w.dtype, insert_dim(in, i.shape, i.shape.rank, w.shape.at[1]));
}

static Value *lower_embedding(Lower *lo, const Call *c)
{
    return emit(lo, ONNX_Gather, tensor_arg(lo, c, "weight"), tensor_arg(lo, c, "indices"));
}

static void shape_embedding_renorm(Infer *in, const Call *c)
{
    if (must_rank(in, c, "self", 2) && index_type_ok(in, c, "indices"))
        p2o_rule_same(in, c);
}

/* The rows that are named, scaled down where their norm is too large; one named twice is written
 * twice with the same values. */
static Value *lower_embedding_renorm(Lower *lo, const Call *c)
{
    Value *w = tensor_arg(lo, c, "self"), *index = flat(lo, tensor_as(lo, c, "indices", DT_I64));
    DType  t = w->dtype;
    double most = float_arg(c, "max_norm");
    Value *rows = emit(lo, ONNX_Gather, w, index);
    Value *norm = p_norm(lo, rows, (const int64_t[]){ 1 }, 1, true, float_arg(c, "norm_type"));
    Value *scale = emit(lo, ONNX_Div, num(lo, t, most), plus_num(lo, norm, 1e-7));
    scale = choose(lo, emit(lo, ONNX_Greater, norm, num(lo, t, most)), scale, num(lo, t, 1));
    return emit(lo, ONNX_ScatterND, w, unsqueeze(lo, index, 1), emit(lo, ONNX_Mul, rows, scale));
}

typedef enum BagMode { BAG_SUM, BAG_MEAN, BAG_MAX } BagMode;

/* Only the bags themselves: the other results serve the backward pass, and what they hold depends
 * on the kernel that was chosen. */
static void shape_embedding_bag(Infer *in, const Call *c)
{
    Type w = type_arg(c, "weight"), offsets = type_arg(c, "offsets");
    if (!must_rank(in, c, "weight", 2) || !must_rank(in, c, "indices", 1) ||
        !must_rank(in, c, "offsets", 1) || !index_type_ok(in, c, "indices") ||
        !index_type_ok(in, c, "offsets"))
        return;
    if (int_arg(c, "mode") < BAG_SUM || int_arg(c, "mode") > BAG_MAX) {
        rule_fail(in, "mode %lld", (long long)int_arg(c, "mode"));
        return;
    }
    if (has_arg(c, "per_sample_weights") &&
        (!must_rank(in, c, "per_sample_weights", 1) ||
         !must_equal(in, c, shape_arg(c, "per_sample_weights").at[0], shape_arg(c, "indices").at[0],
                     "weights and indices")))
        return;
    Dim bags = offsets.shape.at[0];
    if (bool_arg(c, "include_last_offset"))
        bags = p2o_dim_sub(in->dims, bags, int_dim(in, 1));
    Dim at[2] = { bags, w.shape.at[1] };
    set_out(in, c, 0, w.dtype, (Shape){ 2, at });
}

/* The bag of each index: how many bags begin at or before it, less one.  Empty bags begin
 * together. */
static Value *bag_of_each(Lower *lo, Value *offsets, Dim count)
{
    Dim    past = p2o_dim_add(lo->dims, count, p2o_dim_int(lo->dims, 1));
    Value *begins =
        scatter_with(lo, ONNX_ScatterElements, 0, full(lo, (Shape){ 1, &past }, DT_I64, 0), offsets,
                     full(lo, offsets->shape, DT_I64, 1), "add");
    begins = slice_axis(lo, begins, 0, p2o_dim_int(lo->dims, 0), count, 1);
    return emit(lo, ONNX_Sub, emit(lo, ONNX_CumSum, begins, num(lo, DT_I64, 0)),
                num(lo, DT_I64, 1));
}

/* The index that counts for nothing; NULL: there is none.  A negative one counts from the end where
 * the argument may be None, and is none where it may not. */
static Dim padding_index(Lower *lo, const Call *c, const Value *weight)
{
    int arg = p2o_schema_find(c->schema, "padding_idx");
    if (arg < 0 || c->args[arg].kind == ARG_NONE)
        return NULL;
    int64_t i = int_arg(c, "padding_idx");
    if (i >= 0)
        return p2o_dim_int(lo->dims, i);
    return c->schema->args[arg].optional
               ? p2o_dim_add(lo->dims, size_at(weight, 0), p2o_dim_int(lo->dims, i))
               : NULL;
}

/* With include_last_offset what follows the last bag makes one more, which is dropped. */
static void lower_embedding_bag(Lower *lo, const Call *c, Value **out)
{
    Value  *w = tensor_arg(lo, c, "weight"), *indices = tensor_arg(lo, c, "indices");
    Value  *offsets = tensor_arg(lo, c, "offsets"),
          *weights = tensor_arg(lo, c, "per_sample_weights");
    Value  *counted = NULL;                 /* false for indices that are padding; NULL: none is */
    Dim     padding = padding_index(lo, c, w), all[2] = { size_at(offsets, 0), size_at(w, 1) };
    int64_t mode = int_arg(c, "mode");
    DType   t = w->dtype;
    if (mode == BAG_MAX && lo->opset < 18) {
        unsupported(lo, c, "mode max below opset 18");
        return;
    }
    const char *reduction = mode == BAG_MAX ? "max" : "add";
    Value *nothing = identity_of(lo, t, reduction), *rows = emit(lo, ONNX_Gather, w, indices);
    Value *bag = bag_of_each(lo, offsets, size_at(indices, 0));
    if (weights)
        rows = emit(lo, ONNX_Mul, rows, unsqueeze(lo, weights, 1));
    if (padding) {
        counted =
            emit(lo, ONNX_Not,
                 emit(lo, ONNX_Equal, indices, cast(lo, dim_scalar(lo, padding), indices->dtype)));
        rows = emit(lo, ONNX_Where, unsqueeze(lo, counted, 1), rows, nothing);
    }
    Value *y = scatter_with(lo, ONNX_ScatterND, 0, expand(lo, nothing, (Shape){ 2, all }),
                            unsqueeze(lo, bag, 1), rows, reduction);
    if (mode != BAG_SUM) {
        Value *ones = counted ? cast(lo, counted, t) : full(lo, indices->shape, t, 1);
        Value *sizes = scatter_with(lo, ONNX_ScatterElements, 0, full(lo, offsets->shape, t, 0),
                                    bag, ones, "add");
        sizes = unsqueeze(lo, sizes, 1);
        y = mode == BAG_MEAN ? emit(lo, ONNX_Div, y, emit(lo, ONNX_Max, sizes, num(lo, t, 1)))
                             : emit(lo, ONNX_Where, cast(lo, sizes, DT_BOOL), y, num(lo, t, 0));
    }
    out[0] = slice_axis(lo, y, 0, p2o_dim_int(lo->dims, 0), out_shape(c, 0).at[0], 1);
}

/* Segments of the first dim, by their lengths or by where each begins and the last ends. */
static void shape_segment_reduce(Infer *in, const Call *c)
{
    Type        x = type_arg(c, "data");
    const char *by = has_arg(c, "lengths") ? "lengths" : "offsets";
    if (has_arg(c, "indices") || !has_arg(c, by) || has_arg(c, "lengths") == has_arg(c, "offsets"))
        rule_unsupported(in, "segments by other than lengths or offsets");
    else if (int_arg(c, "axis") != 0 || shape_arg(c, by).rank != 1)
        rule_unsupported(in, "axis %lld", (long long)int_arg(c, "axis"));
    else if (!reduction_named(str_arg(c, "reduce")) || !is_float(x.dtype) || x.shape.rank == 0)
        rule_fail(in, "reduce '%s' of %s, rank %d", str_arg(c, "reduce"), p2o_dtype_torch(x.dtype),
                  x.shape.rank);
    else if (index_type_ok(in, c, by)) {
        Dim n = shape_arg(c, by).at[0];
        if (!has_arg(c, "lengths"))
            n = p2o_dim_sub(in->dims, n, int_dim(in, 1));
        set_out(in, c, 0, x.dtype, with_dim(in, x.shape, 0, n));
    }
}

/* As for bags, the end of the last segment begins one more, which is dropped. */
static Value *lower_segment_reduce(Lower *lo, const Call *c)
{
    Value      *x = tensor_arg(lo, c, "data"), *lengths = tensor_as(lo, c, "lengths", DT_I64);
    Value      *starts = tensor_as(lo, c, "offsets", DT_I64);
    const char *how = reduction_named(str_arg(c, "reduce"));
    bool        mean = same(how, "mean");
    Dim         zero = p2o_dim_int(lo->dims, 0), one = p2o_dim_int(lo->dims, 1);
    Shape       s = out_shape(c, 0);
    if (needs_newer_opset(lo, how))
        return unsupported(lo, c, "reduce '%s' below opset 18", str_arg(c, "reduce"));
    how = mean ? "add" : how;
    if (lengths) {
        Value *ends[] = { INTS(lo, 0), emit(lo, ONNX_CumSum, lengths, num(lo, DT_I64, 0)) };
        starts = concat(lo, 0, ends, 2);
    }
    Dim *all = p2o_shape_copy(lo->arena, s, 0);
    all[0] = size_at(starts, 0);
    Value *first = has_arg(c, "initial") ? number_arg(lo, c, "initial", x->dtype)
                                         : identity_of(lo, x->dtype, how);
    Value *at = unsqueeze(lo, bag_of_each(lo, starts, size_at(x, 0)), 1);
    Value *y =
        scatter_with(lo, ONNX_ScatterND, 0, expand(lo, first, (Shape){ s.rank, all }), at, x, how);
    y = slice_axis(lo, y, 0, zero, s.at[0], 1);
    if (!mean)
        return y;
    if (!lengths)
        lengths = emit(lo, ONNX_Sub, slice_axis(lo, starts, 0, one, NULL, 1),
                       slice_axis(lo, starts, 0, zero, s.at[0], 1));
    if (has_arg(c, "initial"))
        lengths = emit(lo, ONNX_Max, lengths, num(lo, DT_I64, 1));
    for (int i = 1; i < s.rank; i++)
        lengths = unsqueeze(lo, lengths, i);
    return emit(lo, ONNX_Div, y, cast(lo, lengths, x->dtype));
}

#define BAG_ARGS                                                                                   \
    "Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int mode=0, "   \
    "bool sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False"
#define BAG_RESULTS " -> (Tensor, Tensor, Tensor, Tensor)"
#define ROW_BAG(head) { head BAG_RESULTS, shape_embedding_bag, .lower_many = lower_embedding_bag, \
                        .limits = "the first result only; mode max from opset 18" }
#define REDUCE_LIMITS "amax and amin from opset 18, and not of NaN"

const AtenOp p2o_ops_scatter[] = {
    { "gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor",
      shape_gather, .lower = lower_gather,
      .batch = p2o_batch_together },
    { "take_along_dim(Tensor self, Tensor indices, int? dim=None) -> Tensor", shape_take_along_dim,
      .lower = lower_take_along_dim },
    { "index_select(Tensor self, int dim, Tensor index) -> Tensor", shape_index_select,
      .lower = lower_index_select,
      .batch = p2o_batch_index_select },
    { "scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor", shape_scatter,
      .lower = lower_scatter,
      .batch = p2o_batch_together },
    { "scatter.value(Tensor self, int dim, Tensor index, Scalar value) -> Tensor", shape_scatter,
      .lower = lower_scatter,
      .batch = p2o_batch_together },
    { "scatter.reduce(Tensor self, int dim, Tensor index, Tensor src, *, str reduce) -> Tensor",
      shape_scatter_reduce_by_name, .lower = lower_scatter,
      .batch = p2o_batch_together },
    { "scatter.value_reduce(Tensor self, int dim, Tensor index, Scalar value, *, str reduce) -> Tensor",
      shape_scatter_reduce_by_name, .lower = lower_scatter,
      .batch = p2o_batch_together },
    { "scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor", shape_scatter,
      .lower = lower_scatter_add,
      .batch = p2o_batch_together },
    { "scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True) -> Tensor",
      shape_scatter_reduce, .lower = lower_scatter_reduce, .limits = REDUCE_LIMITS,
      .batch = p2o_batch_together },
    { "index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor",
      shape_index_write, .lower = lower_index_add },
    { "index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor", shape_index_write,
      .lower = lower_index_copy },
    { "index_reduce(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, bool include_self=True) -> Tensor",
      shape_index_reduce, .lower = lower_index_reduce, .limits = REDUCE_LIMITS },
    { "index_fill.int_Scalar(Tensor self, int dim, Tensor index, Scalar value) -> Tensor",
      shape_index_fill, .lower = lower_index_fill },
    { "index_fill.int_Tensor(Tensor self, int dim, Tensor index, Tensor value) -> Tensor",
      shape_index_fill, .lower = lower_index_fill },
    { "embedding(Tensor weight, Tensor indices, SymInt padding_idx=-1, bool scale_grad_by_freq=False, bool sparse=False) -> Tensor",
      shape_embedding, .lower = lower_embedding, .roles = "padding_idx:setting",
      .batch = p2o_batch_embedding },
    { "embedding_renorm(Tensor self, Tensor indices, float max_norm, float norm_type) -> Tensor",
      shape_embedding_renorm, .lower = lower_embedding_renorm },
    ROW_BAG("embedding_bag(" BAG_ARGS ")"),
    ROW_BAG(
        "embedding_bag.padding_idx(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq, int mode, bool sparse, Tensor? per_sample_weights, bool include_last_offset, int? padding_idx)"),
    ROW_BAG("_embedding_bag(" BAG_ARGS ", int padding_idx=-1)"),
    ROW_BAG("_embedding_bag_forward_only(" BAG_ARGS ", int padding_idx=-1)"),
    { "segment_reduce(Tensor data, str reduce, *, Tensor? lengths=None, Tensor? indices=None, Tensor? offsets=None, int axis=0, bool unsafe=False, Scalar? initial=None) -> Tensor",
      shape_segment_reduce, .lower = lower_segment_reduce,
      .limits = "axis 0; max and min from opset 18, and not of NaN" },
    { 0 },
};
