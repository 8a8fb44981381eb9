/* Operators that move elements without changing them: reshapes, permutations, slices, joins. */
#include "aten/lower.h"

static void reshape_to(Infer *in, const Call *c, const char *name)
{
    Type  x = type_arg(c, "self");
    Shape to;
    if (reshaped(in, c, x.shape, shape_list(in, c, name), &to))
        set_out(in, c, 0, x.dtype, to);
}

static void shape_view(Infer *in, const Call *c) { reshape_to(in, c, "size"); }
static void shape_reshape(Infer *in, const Call *c) { reshape_to(in, c, "shape"); }

static Value *lower_view(Lower *lo, const Call *c)
{
    return reshape(lo, tensor_arg(lo, c, "self"), out_shape(c, 0));
}

static Value *lower_same(Lower *lo, const Call *c) { return tensor_arg(lo, c, "self"); }

static void shape_reshape_as(Infer *in, const Call *c)
{
    Type  x = type_arg(c, "self");
    Shape to;
    if (reshaped(in, c, x.shape, shape_arg(c, "other"), &to))
        set_out(in, c, 0, x.dtype, to);
}

static void shape_flatten(Infer *in, const Call *c)
{
    Type x = type_arg(c, "self");
    int  from, to;
    if (!must_wrap_reduce(in, int_arg(c, "start_dim"), x.shape.rank, &from) ||
        !must_wrap_reduce(in, int_arg(c, "end_dim"), x.shape.rank, &to))
        return;
    if (x.shape.rank == 0) {
        set_out(in, c, 0, x.dtype, (Shape){ 1, (Dim[]){ int_dim(in, 1) } });
        return;
    }
    if (from > to) {
        rule_fail(in, "start_dim %d after end_dim %d", from, to);
        return;
    }
    Dim   joined = p2o_shape_product(in->dims, x.shape, from, to + 1);
    Shape head = insert_dim(in, slice_shape(x.shape, 0, from), from, joined);
    set_out(in, c, 0, x.dtype, concat_shapes(in, head, slice_shape(x.shape, to + 1, x.shape.rank)));
}

static void shape_unflatten(Infer *in, const Call *c)
{
    Type  x = type_arg(c, "self");
    Shape sizes;
    int   dim;
    if (!must_wrap(in, int_arg(c, "dim"), x.shape.rank, &dim) ||
        !reshaped(in, c, slice_shape(x.shape, dim, dim + 1), shape_list(in, c, "sizes"), &sizes))
        return;
    Shape head = concat_shapes(in, slice_shape(x.shape, 0, dim), sizes);
    set_out(in, c, 0, x.dtype, concat_shapes(in, head, slice_shape(x.shape, dim + 1, x.shape.rank)));
}

static void shape_transpose(Infer *in, const Call *c)
{
    Type x = type_arg(c, "self");
    int  i, j;
    if (!must_wrap_reduce(in, int_arg(c, "dim0"), x.shape.rank, &i) ||
        !must_wrap_reduce(in, int_arg(c, "dim1"), x.shape.rank, &j))
        return;
    if (x.shape.rank)
        x.shape = with_dim(in, with_dim(in, x.shape, i, x.shape.at[j]), j, x.shape.at[i]);
    set_out(in, c, 0, x.dtype, x.shape);
}

static Value *lower_transpose(Lower *lo, const Call *c)
{
    Value *x = tensor_arg(lo, c, "self");
    int    i, j;
    if (rank(x) == 0)
        return x;
    p2o_wrap_dim(int_arg(c, "dim0"), rank(x), true, &i);
    p2o_wrap_dim(int_arg(c, "dim1"), rank(x), true, &j);
    return i == j ? x : swap_dims(lo, x, i, j);
}

static void shape_t(Infer *in, const Call *c)
{
    Type x = type_arg(c, "self");
    if (x.shape.rank > 2) {
        rule_fail(in, "rank %d against at most 2", x.shape.rank);
        return;
    }
    if (x.shape.rank == 2)
        x.shape = with_dim(in, with_dim(in, x.shape, 0, x.shape.at[1]), 1, x.shape.at[0]);
    set_out(in, c, 0, x.dtype, x.shape);
}

static Value *lower_t(Lower *lo, const Call *c)
{
    Value *x = tensor_arg(lo, c, "self");
    return rank(x) == 2 ? swap_last_two(lo, x) : x;
}

static bool permutation(Infer *in, const Call *c, int rank_, int *perm)
{
    bool seen[MAX_RANK] = { 0 };
    if (list_len(c, "dims") != rank_) {
        rule_fail(in, "%d dims for rank %d", list_len(c, "dims"), rank_);
        return false;
    }
    for (int i = 0; i < rank_; i++) {
        if (!must_wrap(in, int_item(c, "dims", i), rank_, &perm[i]))
            return false;
        if (seen[perm[i]]) {
            rule_fail(in, "dim %d comes twice", perm[i]);
            return false;
        }
        seen[perm[i]] = true;
    }
    return true;
}

static void shape_permute(Infer *in, const Call *c)
{
    Type x = type_arg(c, "self");
    int  perm[MAX_RANK];
    if (!permutation(in, c, x.shape.rank, perm))
        return;
    Dim *at = p2o_shape_copy(in->arena, x.shape, 0);
    for (int i = 0; i < x.shape.rank; i++)
        at[i] = x.shape.at[perm[i]];
    set_out(in, c, 0, x.dtype, (Shape){ x.shape.rank, at });
}

static Value *lower_permute(Lower *lo, const Call *c)
{
    Value  *x = tensor_arg(lo, c, "self");
    int64_t perm[MAX_RANK];
    for (int i = 0; i < rank(x); i++) {
        int k = 0;
        p2o_wrap_dim(int_item(c, "dims", i), rank(x), false, &k);
        perm[i] = k;
    }
    return transpose(lo, x, perm);
}

/* -1 keeps a size; a size of 1 grows; new dims come in front. */
static void shape_expand(Infer *in, const Call *c)
{
    Type  x = type_arg(c, "self");
    Shape to = shape_list(in, c, "size");
    Dim  *at = p2o_shape_copy(in->arena, to, 0);
    int   lead = to.rank - x.shape.rank;
    if (lead < 0) {
        rule_fail(in, "%d sizes for rank %d", to.rank, x.shape.rank);
        return;
    }
    for (int i = 0; i < to.rank; i++) {
        int64_t v;
        Dim     have = i < lead ? NULL : x.shape.at[i - lead];
        bool    keep = p2o_dim_is_int(at[i], &v) && v == -1;
        if (keep && !have) {
            rule_fail(in, "-1 for a new dim %d", i);
            return;
        }
        if (keep)
            at[i] = have;
        else if (have && !dim_is(have, 1) &&
                 !must_equal(in, c, have, at[i], "size to expand"))
            return;
    }
    set_out(in, c, 0, x.dtype, (Shape){ to.rank, at });
}

static Value *lower_expand(Lower *lo, const Call *c)
{
    return expand(lo, tensor_arg(lo, c, "self"), out_shape(c, 0));
}

static void shape_expand_as(Infer *in, const Call *c)
{
    set_out(in, c, 0, type_arg(c, "self").dtype, shape_arg(c, "other"));
}

static void shape_unsqueeze(Infer *in, const Call *c)
{
    Type x = type_arg(c, "self");
    int  dim;
    if (must_wrap(in, int_arg(c, "dim"), x.shape.rank + 1, &dim))
        set_out(in, c, 0, x.dtype, insert_dim(in, x.shape, dim, int_dim(in, 1)));
}

static Shape without_units(Infer *in, Shape s, const bool *which)
{
    Dim *at = p2o_shape_copy(in->arena, s, 0);
    int  n = 0;
    for (int i = 0; i < s.rank; i++)
        if (!which[i] || !dim_is(s.at[i], 1))
            at[n++] = s.at[i];
    return (Shape){ n, at };
}

/* A size that may or may not be 1 would make the rank depend on the data: the capture knew better. */
static void shape_squeeze(Infer *in, const Call *c)
{
    Type x = type_arg(c, "self");
    bool which[MAX_RANK] = { 0 };
    int  arg = p2o_schema_find(c->schema, "dim");
    if (arg < 0) {
        memset(which, 1, sizeof which);
    } else if (c->args[arg].kind == ARG_LIST) {
        for (int i = 0, dim; i < list_len(c, "dim"); i++) {
            if (!must_wrap_reduce(in, int_item(c, "dim", i), x.shape.rank, &dim))
                return;
            which[dim] = true;
        }
    } else {
        int dim;
        if (!must_wrap_reduce(in, int_arg(c, "dim"), x.shape.rank, &dim))
            return;
        which[dim] = true;
    }
    set_out(in, c, 0, x.dtype, without_units(in, x.shape, which));
}

/* [start, end) as Python slices do: negative counts from the end, both clamped to the size. */
static Dim clamp_index(Infer *in, Dim i, Dim size)
{
    int64_t v, most;
    if (is_soft(in, i) && p2o_hint_at(in->bind, i, 0, &v) && p2o_hint_at(in->bind, size, 0, &most) && v <= most)
        return i;                           /* open: it lay inside at capture; asked again when settled */
    if (p2o_dim_is_int(i, &v)) {
        if (v >= 0)
            return p2o_dim_min(in->dims, i, size);
        return p2o_dim_max(in->dims, p2o_dim_add(in->dims, i, size), int_dim(in, 0));
    }
    int64_t low, high;
    p2o_dim_range(in->dims, i, &low, &high);
    if (low >= 0)
        return p2o_dim_min(in->dims, i, size);
    if (high < 0)
        return p2o_dim_max(in->dims, p2o_dim_add(in->dims, i, size), int_dim(in, 0));
    return NULL;                            /* its sign is not known */
}

static bool slice_bounds(Infer *in, const Call *c, Dim size, Dim *from, Dim *to)
{
    Dim start = dim_arg(c, "start"), end = dim_arg(c, "end");
    *from = start ? clamp_index(in, start, size) : int_dim(in, 0);
    *to = end ? clamp_index(in, end, size) : size;
    if (*from && *to)
        return true;
    rule_unsupported(in, "start or end whose sign is not known: %s:%s", p2o_dim_text(in->dims, start),
                     p2o_dim_text(in->dims, end));
    return false;
}

static void shape_slice(Infer *in, const Call *c)
{
    Type    x = type_arg(c, "self");
    int64_t step;
    int     dim;
    Dim     from, to;
    if (!must_wrap(in, int_arg(c, "dim"), x.shape.rank, &dim) ||
        !const_dim(in, dim_arg(c, "step"), "step", &step) ||
        !slice_bounds(in, c, x.shape.at[dim], &from, &to))
        return;
    if (step < 1) {
        rule_fail(in, "step %lld", (long long)step);
        return;
    }
    Dim len = p2o_dim_sub(in->dims, to, from);
    if (p2o_dim_le(in->dims, from, to) != YES)
        len = p2o_dim_max(in->dims, len, int_dim(in, 0));
    set_out(in, c, 0, x.dtype, with_dim(in, x.shape, dim, p2o_dim_ceildiv(in->dims, len, int_dim(in, step))));
}

/* ONNX's Slice clamps and counts from the end just as Python does. */
static Value *lower_slice(Lower *lo, const Call *c)
{
    Value  *x = tensor_arg(lo, c, "self");
    Dim     start = dim_arg(c, "start"), end = dim_arg(c, "end");
    int     dim;
    int64_t v;
    p2o_wrap_dim(int_arg(c, "dim"), rank(x), false, &dim);
    if (p2o_shape_same(out_shape(c, 0), x->shape))
        return x;
    if (end && p2o_dim_is_int(end, &v) && v == INT64_MAX)
        end = NULL;
    return slice_axis(lo, x, dim, start ? start : p2o_dim_int(lo->dims, 0), end, int_arg(c, "step"));
}

static void shape_select(Infer *in, const Call *c)
{
    Type x = type_arg(c, "self");
    int  dim;
    if (!must_wrap(in, int_arg(c, "dim"), x.shape.rank, &dim))
        return;
    Dim index = dim_arg(c, "index"), size = x.shape.at[dim];
    Dim over = p2o_dim_add(in->dims, index, size);
    if (p2o_dim_le(in->dims, size, index) == YES || p2o_dim_lt(in->dims, over, int_dim(in, 0)) == YES) {
        rule_fail(in, "index %s for size %s", p2o_dim_text(in->dims, index), p2o_dim_text(in->dims, size));
        return;
    }
    set_out(in, c, 0, x.dtype, without_dim(in, x.shape, dim));
}

static Value *lower_select(Lower *lo, const Call *c)
{
    Value *x = tensor_arg(lo, c, "self");
    int    dim;
    p2o_wrap_dim(int_arg(c, "dim"), rank(x), false, &dim);
    return select_axis(lo, x, dim, dim_arg(c, "index"));
}

/* PyTorch skips a 1-d tensor of size 0 among others of any rank. */
static bool is_skipped(Type t)
{
    return t.shape.rank == 1 && dim_is(t.shape.at[0], 0);
}

static int first_joined(const Call *c)
{
    for (int i = 0; i < list_len(c, "tensors"); i++)
        if (!is_skipped(type_item(c, "tensors", i)))
            return i;
    return 0;
}

static void shape_cat(Infer *in, const Call *c)
{
    int       n = list_len(c, "tensors"), first = first_joined(c), dim;
    Promotion p = { 0 };
    if (n == 0) {
        rule_fail(in, "no tensors");
        return;
    }
    Type x = type_item(c, "tensors", first);
    if (!must_wrap(in, int_arg(c, "dim"), x.shape.rank, &dim))
        return;
    Dim *at = p2o_shape_copy(in->arena, x.shape, 0);
    for (int i = 0; i < n; i++) {
        Type t = type_item(c, "tensors", i);
        promote_type(&p, t);
        if (i == first || is_skipped(t))
            continue;
        if (t.shape.rank != x.shape.rank) {
            rule_fail(in, "tensor %d has rank %d against %d", i, t.shape.rank, x.shape.rank);
            return;
        }
        for (int k = 0; k < x.shape.rank; k++) {
            if (k == dim)
                at[k] = p2o_dim_add(in->dims, at[k], t.shape.at[k]);
            else if (!must_equal(in, c, at[k], t.shape.at[k], "sizes beside the joined one"))
                return;
        }
    }
    set_out(in, c, 0, promoted(&p), (Shape){ x.shape.rank, at });
}

static Value *lower_cat(Lower *lo, const Call *c)
{
    VEC(Value *) v = { 0 };
    int          dim;
    for (int i = 0; i < list_len(c, "tensors"); i++)
        if (i == first_joined(c) || !is_skipped(type_item(c, "tensors", i)))
            VEC_PUSH(lo->arena, &v, cast(lo, tensor_item(lo, c, "tensors", i), out_dtype(c, 0)));
    p2o_wrap_dim(int_arg(c, "dim"), out_shape(c, 0).rank, false, &dim);
    return concat(lo, dim, v.at, (int)v.n);
}

const AtenOp p2o_ops_view[] = {
    { "view(Tensor(a) self, SymInt[] size) -> Tensor(a)", shape_view, .lower = lower_view },
    { "_unsafe_view(Tensor self, SymInt[] size) -> Tensor", shape_view, .lower = lower_view },
    { "reshape(Tensor(a) self, SymInt[] shape) -> Tensor(a)", shape_reshape, .lower = lower_view },
    { "reshape_as(Tensor(a) self, Tensor other) -> Tensor(a)", shape_reshape_as, .lower = lower_view },
    { "view_as(Tensor(a) self, Tensor other) -> Tensor(a)", shape_reshape_as, .lower = lower_view },
    { "flatten.using_ints(Tensor(a) self, int start_dim=0, int end_dim=-1) -> Tensor(a)",
      shape_flatten, .lower = lower_view },
    { "unflatten.int(Tensor(a) self, int dim, SymInt[] sizes) -> Tensor(a)", shape_unflatten,
      .lower = lower_view },
    { "transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a)", shape_transpose,
      .lower = lower_transpose },
    { "t(Tensor(a) self) -> Tensor(a)", shape_t, .lower = lower_t },
    { "permute(Tensor(a) self, int[] dims) -> Tensor(a)", shape_permute, .lower = lower_permute },
    { "expand(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> Tensor(a)", shape_expand,
      .lower = lower_expand },
    { "expand_as(Tensor(a) self, Tensor other) -> Tensor(a)", shape_expand_as, .lower = lower_expand },
    { "unsqueeze(Tensor(a) self, int dim) -> Tensor(a)", shape_unsqueeze, .lower = lower_view },
    { "squeeze(Tensor(a) self) -> Tensor(a)", shape_squeeze, .lower = lower_view },
    { "squeeze.dim(Tensor(a) self, int dim) -> Tensor(a)", shape_squeeze, .lower = lower_view },
    { "squeeze.dims(Tensor(a) self, int[] dim) -> Tensor(a)", shape_squeeze, .lower = lower_view },
    { "slice.Tensor(Tensor(a) self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor(a)",
      shape_slice, .lower = lower_slice },
    { "select.int(Tensor(a) self, int dim, SymInt index) -> Tensor(a)", shape_select,
      .lower = lower_select },
    { "contiguous(Tensor(a) self, *, MemoryFormat memory_format=contiguous_format) -> Tensor(a)",
      p2o_rule_same, .lower = lower_same },
    { "cat(Tensor[] tensors, int dim=0) -> Tensor", shape_cat, .lower = lower_cat },
    { 0 },
};
