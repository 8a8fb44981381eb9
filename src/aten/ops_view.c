/* Views that one Reshape, Transpose, Expand, Slice or Gather says.
 *
 * The `_copy` variants and those PyTorch lets copy mean the same: what is shared with whom is
 * settled before, in functional.c. */
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

static void shape_ravel(Infer *in, const Call *c)
{
    Type x = type_arg(c, "self");
    set_out(in, c, 0, x.dtype, (Shape){ 1, (Dim[]){ shape_nelem(in->dims, x.shape) } });
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
    set_out(in, c, 0, x.dtype,
            concat_shapes(in, head, slice_shape(x.shape, dim + 1, x.shape.rank)));
}

typedef bool PermFn(const Call *c, int rank, int64_t *perm);

static void reversed_dims(int n, int64_t *perm)
{
    for (int i = 0; i < n; i++)
        perm[i] = n - 1 - i;
}

static bool swapped_dims(int64_t dim0, int64_t dim1, int rank_, int64_t *perm)
{
    int i, j;
    if (!p2o_wrap_dim(dim0, rank_, true, &i) || !p2o_wrap_dim(dim1, rank_, true, &j))
        return false;
    for (int k = 0; k < rank_; k++)
        perm[k] = k == i ? j : k == j ? i : k;
    return true;
}

static bool perm_permute(const Call *c, int rank_, int64_t *perm)
{
    bool seen[MAX_RANK] = { 0 };
    for (int i = 0; i < rank_; i++) {
        int k;
        if (list_len(c, "dims") != rank_ ||
            !p2o_wrap_dim(int_item(c, "dims", i), rank_, false, &k) || seen[k])
            return false;
        seen[k] = true;
        perm[i] = k;
    }
    return list_len(c, "dims") == rank_;
}

static bool perm_transpose(const Call *c, int rank_, int64_t *perm)
{
    return swapped_dims(int_arg(c, "dim0"), int_arg(c, "dim1"), rank_, perm);
}

static bool perm_swapaxes(const Call *c, int rank_, int64_t *perm)
{
    return swapped_dims(int_arg(c, "axis0"), int_arg(c, "axis1"), rank_, perm);
}

static bool perm_t(const Call *c, int rank_, int64_t *perm)
{
    (void)c;
    reversed_dims(rank_, perm);
    return rank_ <= 2;
}

static bool perm_numpy_t(const Call *c, int rank_, int64_t *perm)
{
    (void)c;
    reversed_dims(rank_, perm);
    return true;
}

static bool perm_mt(const Call *c, int rank_, int64_t *perm)
{
    (void)c;
    return rank_ >= 2 && swapped_dims(-2, -1, rank_, perm);
}

/* source[i] goes to destination[i]; the others fill what is left, in order. */
static bool moved_dims(int n, const int64_t *source, const int64_t *destination, int rank_,
                       int64_t *perm)
{
    bool taken[MAX_RANK] = { 0 };
    for (int i = 0; i < rank_; i++)
        perm[i] = -1;
    for (int i = 0; i < n; i++) {
        int from, to;
        if (!p2o_wrap_dim(source[i], rank_, true, &from) ||
            !p2o_wrap_dim(destination[i], rank_, true, &to))
            return false;
        if (rank_ == 0)
            continue;
        if (taken[from] || perm[to] >= 0)
            return false;
        taken[from] = true;
        perm[to] = from;
    }
    for (int i = 0, k = 0; i < rank_; i++) {
        while (k < rank_ && taken[k])
            k++;
        if (perm[i] < 0)
            perm[i] = k++;
    }
    return true;
}

static bool perm_movedim(const Call *c, int rank_, int64_t *perm)
{
    return moved_dims(1, (int64_t[]){ int_arg(c, "source") },
                      (int64_t[]){ int_arg(c, "destination") }, rank_, perm);
}

static bool perm_movedim_list(const Call *c, int rank_, int64_t *perm)
{
    int64_t source[MAX_RANK], destination[MAX_RANK];
    int     n = list_len(c, "source");
    if (n != list_len(c, "destination") || n > MAX_RANK)
        return false;
    for (int i = 0; i < n; i++) {
        source[i] = int_item(c, "source", i);
        destination[i] = int_item(c, "destination", i);
    }
    return moved_dims(n, source, destination, rank_, perm);
}

static void permuted_shape(Infer *in, const Call *c, PermFn *fn)
{
    Type    x = type_arg(c, "self");
    int64_t perm[MAX_RANK];
    if (!fn(c, x.shape.rank, perm)) {
        rule_fail(in, "dims that are out of range, come twice or do not fit rank %d", x.shape.rank);
        return;
    }
    Dim *at = p2o_shape_copy(in->arena, x.shape, 0);
    for (int i = 0; i < x.shape.rank; i++)
        at[i] = x.shape.at[perm[i]];
    set_out(in, c, 0, x.dtype, (Shape){ x.shape.rank, at });
}

static Value *permuted(Lower *lo, const Call *c, PermFn *fn)
{
    Value  *x = tensor_arg(lo, c, "self");
    int64_t perm[MAX_RANK];
    fn(c, rank(x), perm);
    return transpose(lo, x, perm);
}

#define PERMUTES(name) \
    static void   shape_##name(Infer *in, const Call *c) { permuted_shape(in, c, perm_##name); } \
    static Value *lower_##name(Lower *lo, const Call *c) { return permuted(lo, c, perm_##name); }

PERMUTES(permute)
PERMUTES(transpose)
PERMUTES(swapaxes)
PERMUTES(t)
PERMUTES(numpy_t)
PERMUTES(mt)
PERMUTES(movedim)
PERMUTES(movedim_list)

/* The conjugate transpose of real numbers. */
static void shape_adjoint(Infer *in, const Call *c)
{
    if (is_complex(type_arg(c, "self").dtype))
        rule_unsupported(in, "complex numbers");
    else
        shape_mt(in, c);
}

/* -1 keeps a size; a size of 1 grows; new dims come in front. */
static void expand_to(Infer *in, const Call *c, Shape to)
{
    Type x = type_arg(c, "self");
    Dim *at = p2o_shape_copy(in->arena, to, 0);
    int  lead = to.rank - x.shape.rank;
    if (lead < 0) {
        rule_fail(in, "%d sizes for rank %d", to.rank, x.shape.rank);
        return;
    }
    for (int i = 0; i < to.rank; i++) {
        Dim  have = i < lead ? NULL : x.shape.at[i - lead];
        bool keep = dim_is(at[i], -1);
        if (keep && !have) {
            rule_fail(in, "-1 for a new dim %d", i);
            return;
        }
        if (keep)
            at[i] = have;
        else if (have && !is_one_beside(in, have, at[i]) &&
                 !must_equal(in, c, have, at[i], "size to expand"))
            return;
    }
    set_out(in, c, 0, x.dtype, (Shape){ to.rank, at });
}

static void shape_expand(Infer *in, const Call *c) { expand_to(in, c, shape_list(in, c, "size")); }
static void shape_expand_as(Infer *in, const Call *c) { expand_to(in, c, shape_arg(c, "other")); }

static Value *lower_expand(Lower *lo, const Call *c)
{
    return expand(lo, tensor_arg(lo, c, "self"), out_shape(c, 0));
}

static void shape_broadcast_tensors(Infer *in, const Call *c)
{
    int   n = list_len(c, "tensors");
    Shape s = { 0 };
    for (int i = 0; i < n; i++)
        s = broadcast(in, c, s, type_item(c, "tensors", i).shape);
    for (int i = 0; i < n && i < nouts(c); i++)
        set_out(in, c, i, type_item(c, "tensors", i).dtype, s);
}

static void lower_broadcast_tensors(Lower *lo, const Call *c, Value **out)
{
    for (int i = 0; i < nouts(c); i++)
        if (c->outs[i])
            out[i] = expand(lo, tensor_item(lo, c, "tensors", i), out_shape(c, i));
}

/* [] -> [1], [1, 1], [1, 1, 1];  [n] -> [1, n], [1, n, 1];  [h, w] -> [h, w, 1] */
static Shape at_least(Infer *in, Shape s, int n)
{
    if (s.rank == 0 && n > 0)
        s = insert_dim(in, s, 0, int_dim(in, 1));
    if (s.rank == 1 && n > 1)
        s = insert_dim(in, s, 0, int_dim(in, 1));
    return s.rank == 2 && n > 2 ? insert_dim(in, s, 2, int_dim(in, 1)) : s;
}

static void atleast_rank(Infer *in, const Call *c, int n)
{
    if (c->args[0].kind != ARG_LIST)
        set_out(in, c, 0, type_arg(c, "self").dtype, at_least(in, shape_arg(c, "self"), n));
    for (int i = 0; c->args[0].kind == ARG_LIST && i < nouts(c) && i < list_len(c, "tensors");
         i++) {
        Type x = type_item(c, "tensors", i);
        set_out(in, c, i, x.dtype, at_least(in, x.shape, n));
    }
}

static void shape_atleast_1d(Infer *in, const Call *c) { atleast_rank(in, c, 1); }
static void shape_atleast_2d(Infer *in, const Call *c) { atleast_rank(in, c, 2); }
static void shape_atleast_3d(Infer *in, const Call *c) { atleast_rank(in, c, 3); }

static void lower_views(Lower *lo, const Call *c, Value **out)
{
    for (int i = 0; i < nouts(c); i++)
        if (c->outs[i])
            out[i] = reshape(lo, tensor_item(lo, c, "tensors", i), out_shape(c, i));
}

static void shape_unsqueeze(Infer *in, const Call *c)
{
    Type x = type_arg(c, "self");
    int  dim;
    if (must_wrap(in, int_arg(c, "dim"), x.shape.rank + 1, &dim))
        set_out(in, c, 0, x.dtype, insert_dim(in, x.shape, dim, int_dim(in, 1)));
}

static Value *lower_unsqueeze(Lower *lo, const Call *c)
{
    Value *x = tensor_arg(lo, c, "self");
    int    dim;
    p2o_wrap_dim(int_arg(c, "dim"), rank(x) + 1, false, &dim);
    return unsqueeze(lo, x, dim);
}

/* Those that are named, or all.  false: one is out of range. */
static bool dims_to_squeeze(const Call *c, int rank, bool *asked)
{
    int  arg = p2o_schema_find(c->schema, "dim");
    bool list = arg >= 0 && c->args[arg].kind == ARG_LIST;
    for (int i = 0; i < rank; i++)
        asked[i] = arg < 0;
    for (int i = 0, dim; arg >= 0 && i < (list ? list_len(c, "dim") : 1); i++) {
        if (!p2o_wrap_dim(list ? int_item(c, "dim", i) : int_arg(c, "dim"), rank, true, &dim))
            return false;
        if (rank)
            asked[dim] = true;
    }
    return true;
}

/* Dims of 1 among them. */
static bool squeezed_dims(const Call *c, Shape s, bool *goes)
{
    bool ok = dims_to_squeeze(c, s.rank, goes);
    for (int i = 0; ok && i < s.rank; i++)
        goes[i] = goes[i] && dim_is(s.at[i], 1);
    return ok;
}

/* A size that may or may not be 1 would make the rank depend on the data: what was 1 at capture
 * must be. */
static bool dropped_are_one(Infer *in, const Call *c, Shape s)
{
    bool    goes[MAX_RANK];
    int64_t v;
    Dim    *ones = p2o_shape_copy(in->arena, s, 0);
    for (int i = 0; i < s.rank; i++)
        if (p2o_hint_at(in->bind, s.at[i], 0, &v) && v == 1)
            ones[i] = int_dim(in, 1);
    if (!squeezed_dims(c, (Shape){ s.rank, ones }, goes))
        return true;
    for (int i = 0; i < s.rank; i++)
        if (goes[i] && !must_equal(in, c, s.at[i], int_dim(in, 1), "the dropped size"))
            return false;
    return true;
}

static void shape_squeeze(Infer *in, const Call *c)
{
    if (!dropped_are_one(in, c, type_arg(c, "self").shape))
        return;
    Type x = type_arg(c, "self");
    x.shape = resolved_shape(in, x.shape);
    bool asked[MAX_RANK];
    Dim *at = p2o_shape_copy(in->arena, x.shape, 0);
    int  n = 0;
    if (!dims_to_squeeze(c, x.shape.rank, asked)) {
        rule_fail(in, "a dim is out of range for rank %d", x.shape.rank);
        return;
    }
    for (int i = 0; i < x.shape.rank; i++) {
        if (asked[i] && dim_is(x.shape.at[i], 1))
            continue;
        if (asked[i] && !p2o_dim_is_int(x.shape.at[i], NULL))
            needs_le(in, int_dim(in, 2), x.shape.at[i], "an axis that is squeezed where it is 1");
        at[n++] = x.shape.at[i];
    }
    set_out(in, c, 0, x.dtype, (Shape){ n, at });
}

static Value *lower_squeeze(Lower *lo, const Call *c)
{
    Value  *x = tensor_arg(lo, c, "self");
    bool    goes[MAX_RANK];
    int64_t axes[MAX_RANK];
    size_t  n = 0;
    squeezed_dims(c, x->shape, goes);
    for (int i = 0; i < rank(x); i++)
        if (goes[i])
            axes[n++] = i;
    return n ? emit(lo, ONNX_Squeeze, x, ints_const(lo, axes, n)) : x;
}

static void shape_slice(Infer *in, const Call *c)
{
    Type x = type_arg(c, "self");
    int  dim;
    Dim  step = p2o_resolve(in->bind, dim_arg(c, "step")), from, to;
    if (!must_wrap(in, int_arg(c, "dim"), x.shape.rank, &dim))
        return;
    if (p2o_dim_lt(in->dims, step, int_dim(in, 1)) == YES) {
        rule_fail(in, "step %s", p2o_dim_text(in->dims, step));
        return;
    }
    needs_le(in, int_dim(in, 1), step, "a step of at least 1");
    slice_bounds(in, dim_arg(c, "start"), dim_arg(c, "end"), x.shape.at[dim], &from, &to);
    Dim len = p2o_dim_ceildiv(in->dims, p2o_dim_sub(in->dims, to, from), step);
    set_out(in, c, 0, x.dtype, with_dim(in, x.shape, dim, len));
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
    start = start ? start : p2o_dim_int(lo->dims, 0);
    return slice_steps(lo, x, dim, start, end, dim_arg(c, "step"));
}

static void shape_select(Infer *in, const Call *c)
{
    Type x = type_arg(c, "self");
    int  dim;
    if (!must_wrap(in, int_arg(c, "dim"), x.shape.rank, &dim))
        return;
    Dim index = dim_arg(c, "index"), size = x.shape.at[dim];
    Dim over = p2o_dim_add(in->dims, index, size);
    if (p2o_dim_le(in->dims, size, index) == YES ||
        p2o_dim_lt(in->dims, over, int_dim(in, 0)) == YES) {
        rule_fail(in, "index %s for size %s", p2o_dim_text(in->dims, index),
                  p2o_dim_text(in->dims, size));
        return;
    }
    bool back = p2o_dim_lt(in->dims, index, int_dim(in, 0)) == YES;
    needs_le(in, back ? p2o_dim_neg(in->dims, index) : p2o_dim_add(in->dims, index, int_dim(in, 1)),
             size, "the index is inside");
    set_out(in, c, 0, x.dtype, without_dim(in, x.shape, dim));
}

static Value *lower_select(Lower *lo, const Call *c)
{
    Value *x = tensor_arg(lo, c, "self");
    int    dim;
    p2o_wrap_dim(int_arg(c, "dim"), rank(x), false, &dim);
    return select_axis(lo, x, dim, dim_arg(c, "index"));
}

/* Where a narrowed piece begins, counted from the front. */
static Dim narrow_start(Dims *t, Dim start, Dim size)
{
    int64_t low, high;
    p2o_dim_range(t, start, &low, &high);
    if (low >= 0)
        return start;
    return high < 0 ? p2o_dim_add(t, start, size)
                    : p2o_dim_mod(t, start, p2o_dim_max(t, size, p2o_dim_int(t, 1)));
}

static void shape_narrow(Infer *in, const Call *c)
{
    Type x = type_arg(c, "self");
    Dim  length = dim_arg(c, "length");
    int  dim;
    if (!must_wrap(in, int_arg(c, "dim"), x.shape.rank, &dim))
        return;
    if (p2o_dim_lt(in->dims, x.shape.at[dim], length) == YES)
        rule_fail(in, "length %s for size %s", p2o_dim_text(in->dims, length),
                  p2o_dim_text(in->dims, x.shape.at[dim]));
    Dim     start = dim_arg(c, "start"), from_end = start ? p2o_dim_neg(in->dims, start) : NULL;
    int64_t v;
    if (!start || has_open(in, start) || (p2o_dim_is_int(start, &v) && v == 0))
        needs_le(in, length, x.shape.at[dim], "the piece is inside");
    else if (p2o_dim_le(in->dims, int_dim(in, 0), start) == YES)
        needs_le(in, p2o_dim_add(in->dims, start, length), x.shape.at[dim], "the piece is inside");
    else if (p2o_dim_is_int(start, NULL))
        needs_le(in, from_end, x.shape.at[dim], "the piece is inside");
    set_out(in, c, 0, x.dtype, with_dim(in, x.shape, dim, length));
}

static Value *lower_narrow(Lower *lo, const Call *c)
{
    Value *x = tensor_arg(lo, c, "self");
    int    dim;
    p2o_wrap_dim(int_arg(c, "dim"), rank(x), false, &dim);
    if (p2o_shape_same(out_shape(c, 0), x->shape))
        return x;
    Dim from = dim_arg(c, "start"), length = dim_arg(c, "length"), end;
    if (!p2o_dim_is_int(from, NULL))            /* a number may count from the end in Slice too */
        from = narrow_start(lo->dims, from, size_at(x, dim));
    end = p2o_dim_add(lo->dims, from, length);
    return slice_axis(lo, x, dim, from, dim_is(from, 0) || !dim_is(end, 0) ? end : NULL, 1);
}

/* The start is a tensor: counted from the front before the length is added to it. */
static Value *lower_narrow_at(Lower *lo, const Call *c)
{
    Value *x = tensor_arg(lo, c, "self");
    int    dim;
    p2o_wrap_dim(int_arg(c, "dim"), rank(x), false, &dim);
    Value *start = reshape(lo, tensor_as(lo, c, "start", DT_I64),
                           (Shape){ 1, (Dim[]){ p2o_dim_int(lo->dims, 1) } });
    Value *back = emit(lo, ONNX_Add, start, dim_value(lo, size_at(x, dim)));
    Value *from = emit(lo, ONNX_Where, emit(lo, ONNX_Less, start, INTS(lo, 0)), back, start);
    return emit(lo, ONNX_Slice, x, from,
                emit(lo, ONNX_Add, from, dim_value(lo, dim_arg(c, "length"))), INTS(lo, dim));
}

/* A slice of the whole axis. */
static bool idle_slice(Dims *t, const Call *c, int arg, int i, Shape self, Dim *number)
{
    const char *name = c->schema->args[arg].name;
    (void)i;
    *number = same(name, "end") ? dim_at(self, axis_arg(c, "dim", self.rank))
                                : p2o_dim_int(t, same(name, "step"));
    return c->schema->args[arg].base == SB_SYMINT;
}

static bool idle_narrow(Dims *t, const Call *c, int arg, int i, Shape self, Dim *number)
{
    (void)i;
    *number = same(c->schema->args[arg].name, "length")
                  ? dim_at(self, axis_arg(c, "dim", self.rank))
                  : p2o_dim_int(t, 0);
    return c->schema->args[arg].base == SB_SYMINT;
}

#define VIEW(name, args, rule, fn, ...) \
    { name "(Tensor(a) self" args ") -> Tensor(a)", rule, .lower = fn, ##__VA_ARGS__ }
/* A view and the same as a copy. */
#define VIEWS(name, overload, args, rule, fn, ...) \
    VIEW(name overload, args, rule, fn, ##__VA_ARGS__), \
    { name "_copy" overload "(Tensor self" args ") -> Tensor", rule, .lower = fn, ##__VA_ARGS__ }
#define ATLEAST(name, rule) \
    { name "(Tensor self) -> Tensor", rule, .lower = lower_view, .batch = p2o_batch_view }, \
    { name ".Sequence(Tensor[] tensors) -> Tensor[]", rule, .lower_many = lower_views }

const AtenOp p2o_ops_view[] = {
    VIEWS("view", "", ", SymInt[] size", shape_view, lower_view, .reshapes = true,
          .batch = p2o_batch_view, .same_start = true),
    { "_unsafe_view(Tensor self, SymInt[] size) -> Tensor", shape_view, .lower = lower_view,
      .reshapes = true,
      .batch = p2o_batch_view },
    { "_reshape_copy(Tensor self, SymInt[] size) -> Tensor", shape_view, .lower = lower_view,
      .batch = p2o_batch_view },
    VIEWS("_reshape_alias", "", ", SymInt[] size, SymInt[] stride", shape_view, lower_view,
          .batch = p2o_batch_view),
    VIEW("reshape", ", SymInt[] shape", shape_reshape, lower_view, .reshapes = true,
          .batch = p2o_batch_view),
    VIEW("reshape_as", ", Tensor other", shape_reshape_as, lower_view,
          .batch = p2o_batch_view),
    VIEW("view_as", ", Tensor other", shape_reshape_as, lower_view,
          .batch = p2o_batch_view, .same_start = true),
    VIEW("flatten.using_ints", ", int start_dim=0, int end_dim=-1", shape_flatten, lower_view,
          .batch = p2o_batch_view),
    VIEW("ravel", "", shape_ravel, lower_view,
          .batch = p2o_batch_view),
    VIEW("unflatten.int", ", int dim, SymInt[] sizes", shape_unflatten, lower_view,
          .batch = p2o_batch_view, .same_start = true),
    VIEWS("transpose", ".int", ", int dim0, int dim1", shape_transpose, lower_transpose,
          .batch = p2o_batch_axes, .same_start = true),
    VIEW("swapdims", ", int dim0, int dim1", shape_transpose, lower_transpose,
          .batch = p2o_batch_axes, .same_start = true),
    VIEW("swapaxes", ", int axis0, int axis1", shape_swapaxes, lower_swapaxes,
          .batch = p2o_batch_axes, .same_start = true),
    VIEWS("t", "", "", shape_t, lower_t,
          .batch = p2o_batch_swap_tail, .same_start = true),
    VIEWS("permute", "", ", int[] dims", shape_permute, lower_permute,
          .batch = p2o_batch_permute, .same_start = true),
    VIEW("movedim.int", ", int source, int destination", shape_movedim, lower_movedim,
          .batch = p2o_batch_axes, .same_start = true),
    VIEW("movedim.intlist", ", int[] source, int[] destination", shape_movedim_list,
         lower_movedim_list,
          .batch = p2o_batch_axes, .same_start = true),
    VIEW("moveaxis.int", ", int source, int destination", shape_movedim, lower_movedim,
          .batch = p2o_batch_axes, .same_start = true),
    VIEW("moveaxis.intlist", ", int[] source, int[] destination", shape_movedim_list,
         lower_movedim_list,
          .batch = p2o_batch_axes, .same_start = true),
    VIEW("numpy_T", "", shape_numpy_t, lower_numpy_t,
          .batch = p2o_batch_swap_tail, .same_start = true),
    VIEW("mT", "", shape_mt, lower_mt,
          .batch = p2o_batch_swap_tail, .same_start = true),
    VIEW("mH", "", shape_adjoint, lower_mt,
          .batch = p2o_batch_swap_tail),
    VIEW("adjoint", "", shape_adjoint, lower_mt,
          .batch = p2o_batch_swap_tail),
    VIEW("matrix_H", "", shape_adjoint, lower_mt,
          .batch = p2o_batch_swap_tail),
    VIEWS("expand", "", ", SymInt[] size, *, bool implicit=False", shape_expand, lower_expand,
          .expands = true,
          .batch = p2o_batch_expand, .same_start = true),
    VIEW("expand_as", ", Tensor other", shape_expand_as, lower_expand, .expands = true,
          .batch = p2o_batch_expand, .same_start = true),
    VIEW("broadcast_to", ", SymInt[] size", shape_expand, lower_expand, .expands = true,
          .batch = p2o_batch_expand),
    { "broadcast_tensors(Tensor[] tensors) -> Tensor[]", shape_broadcast_tensors,
      .lower_many = lower_broadcast_tensors },
    VIEWS("unsqueeze", "", ", int dim", shape_unsqueeze, lower_unsqueeze, .indexing = true,
          .batch = p2o_batch_new_axis, .same_start = true),
    VIEWS("squeeze", "", "", shape_squeeze, lower_squeeze,
          .batch = p2o_batch_view, .same_start = true),
    VIEWS("squeeze", ".dim", ", int dim", shape_squeeze, lower_squeeze,
          .batch = p2o_batch_view, .same_start = true),
    VIEWS("squeeze", ".dims", ", int[] dim", shape_squeeze, lower_squeeze,
          .batch = p2o_batch_view, .same_start = true),
    ATLEAST("atleast_1d", shape_atleast_1d),
    ATLEAST("atleast_2d", shape_atleast_2d),
    ATLEAST("atleast_3d", shape_atleast_3d),
    VIEWS("slice", ".Tensor", ", int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1",
          shape_slice, lower_slice, .roles = "start:place end:place step:setting", .indexing = true,
          .idle = idle_slice,
          .batch = p2o_batch_axes),
    VIEWS("select", ".int", ", int dim, SymInt index", shape_select, lower_select,
          .roles = "index:place", .indexing = true,
          .batch = p2o_batch_axes),
    VIEWS("narrow", "", ", int dim, SymInt start, SymInt length", shape_narrow, lower_narrow,
          .roles = "start:place", .idle = idle_narrow,
          .batch = p2o_batch_axes),
    VIEW("narrow.Tensor", ", int dim, Tensor start, SymInt length", shape_narrow, lower_narrow_at),
    VIEW("contiguous", ", *, MemoryFormat memory_format=contiguous_format", p2o_rule_same,
         lower_same, .idle = p2o_idle_copy),
    { "alias_copy(Tensor self) -> Tensor", p2o_rule_same, .lower = lower_same },
    { "detach_copy(Tensor self) -> Tensor", p2o_rule_same, .lower = lower_same },
    { 0 },
};
