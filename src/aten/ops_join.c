/* Joining, splitting, repeating and reordering along axes.
 *
 * The number of pieces is the capture's: it says how many results there are.  Their sizes are
 * computed. */
#include "aten/lower.h"

/* A joining operator: where a tensor of some rank gets new axes of 1, and which dim is joined
 * then. */
typedef struct JoinKind {
    int     (*new_axes)(const Call *c, int rank, int64_t *axes);
    int64_t (*dim)(const Call *c, int rank);
} JoinKind;

static int no_axes(const Call *c, int rank_, int64_t *axes)
{
    (void)c;
    (void)rank_;
    (void)axes;
    return 0;
}

static int axes_stack(const Call *c, int rank_, int64_t *axes)
{
    int dim = 0;
    p2o_wrap_dim(int_arg(c, "dim"), rank_ + 1, false, &dim);
    axes[0] = dim;
    return 1;
}

static int axes_hstack(const Call *c, int rank_, int64_t *axes)
{
    (void)c;
    axes[0] = 0;
    return rank_ == 0;
}

static int axes_vstack(const Call *c, int rank_, int64_t *axes)
{
    (void)c;
    axes[0] = 0;
    axes[1] = 1;
    return rank_ < 2 ? 2 - rank_ : 0;
}

static int axes_column_stack(const Call *c, int rank_, int64_t *axes)
{
    (void)c;
    axes[0] = rank_;
    axes[1] = 1;
    return rank_ < 2 ? 2 - rank_ : 0;
}

static int axes_dstack(const Call *c, int rank_, int64_t *axes)
{
    int n = axes_vstack(c, rank_, axes);
    axes[n] = 2;
    return rank_ < 3 ? n + 1 : 0;
}

static int64_t dim_given(const Call *c, int rank_) { (void)rank_; return int_arg(c, "dim"); }
static int64_t dim_first(const Call *c, int rank_) { (void)c; (void)rank_; return 0; }
static int64_t dim_second(const Call *c, int rank_) { (void)c; return rank_ == 1 ? 0 : 1; }
static int64_t dim_third(const Call *c, int rank_) { (void)c; (void)rank_; return 2; }

static const JoinKind join_cat = { no_axes, dim_given }, join_stack = { axes_stack, dim_given },
                      join_hstack = { axes_hstack, dim_second },
                      join_vstack = { axes_vstack, dim_first },
                      join_dstack = { axes_dstack, dim_third },
                      join_columns = { axes_column_stack, dim_second };

static Shape with_axes(Infer *in, const Call *c, Shape s, const JoinKind *kind)
{
    int64_t axes[MAX_RANK];
    int     n = kind->new_axes(c, s.rank, axes);
    for (int i = 0; i < n; i++)
        s = insert_dim(in, s, (int)axes[i], int_dim(in, 1));
    return s;
}

/* PyTorch skips a 1-d tensor of size 0 among others of any rank. */
static bool is_skipped(Shape s) { return s.rank == 1 && dim_is(s.at[0], 0); }

/* The first tensor that counts; the first of all when every one is skipped. */
static Shape first_joined(Infer *in, const Call *c, const JoinKind *kind)
{
    for (int i = 0; i < list_len(c, "tensors"); i++) {
        Shape s = with_axes(in, c, type_item(c, "tensors", i).shape, kind);
        if (!is_skipped(s))
            return s;
    }
    return with_axes(in, c, type_item(c, "tensors", 0).shape, kind);
}

static void join_shapes(Infer *in, const Call *c, const JoinKind *kind)
{
    int       n = list_len(c, "tensors"), dim;
    Promotion p = { 0 };
    if (n == 0) {
        rule_fail(in, "no tensors");
        return;
    }
    Shape to = first_joined(in, c, kind);
    if (!must_wrap(in, kind->dim(c, to.rank), to.rank, &dim))
        return;
    Dim *at = p2o_shape_copy(in->arena, to, 0);
    at[dim] = int_dim(in, 0);
    for (int i = 0; i < n; i++) {
        Type  t = type_item(c, "tensors", i);
        Shape s = with_axes(in, c, t.shape, kind);
        promote_type(&p, t);
        if (is_skipped(s))
            continue;
        if (s.rank != to.rank) {
            rule_fail(in, "tensor %d has rank %d against %d", i, s.rank, to.rank);
            return;
        }
        for (int k = 0; k < s.rank; k++)
            if (k == dim)
                at[k] = p2o_dim_add(in->dims, at[k], s.at[k]);
            else if (!must_equal(in, c, at[k], s.at[k], "sizes beside the joined one"))
                return;
    }
    set_out(in, c, 0, promoted(&p), (Shape){ to.rank, at });
}

static Value *joined_tensors(Lower *lo, const Call *c, const JoinKind *kind)
{
    VEC(Value *) v = { 0 };
    int          to = out_shape(c, 0).rank, dim;
    p2o_wrap_dim(kind->dim(c, to), to, false, &dim);
    for (int i = 0; i < list_len(c, "tensors"); i++) {
        int64_t axes[MAX_RANK];
        Value  *x = cast(lo, tensor_item(lo, c, "tensors", i), out_dtype(c, 0));
        int     n = kind->new_axes(c, rank(x), axes);
        if (n)
            x = emit(lo, ONNX_Unsqueeze, x, ints_const(lo, axes, (size_t)n));
        if (rank(x) == to && (!is_skipped(x->shape) || to > 1))
            VEC_PUSH(lo->arena, &v, x);
    }
    return v.n ? concat(lo, dim, v.at, (int)v.n) : full(lo, out_shape(c, 0), out_dtype(c, 0), 0);
}

#define JOINS(name)                                                                                \
    static void   shape_##name(Infer *in, const Call *c) { join_shapes(in, c, &join_##name); }     \
    static Value *lower_##name(Lower *lo, const Call *c)                                           \
    {                                                                                              \
        return joined_tensors(lo, c, &join_##name);                                                \
    }

JOINS(cat)
JOINS(stack)
JOINS(hstack)
JOINS(vstack)
JOINS(dstack)
JOINS(columns)

/* Matrices along a diagonal; numbers and vectors are matrices of one row. */
static Shape as_matrix(Infer *in, Shape s)
{
    while (s.rank < 2)
        s = insert_dim(in, s, 0, int_dim(in, 1));
    return s;
}

static void shape_block_diag(Infer *in, const Call *c)
{
    Dim       rows = int_dim(in, 0), cols = rows;
    Promotion p = { 0 };
    for (int i = 0; i < list_len(c, "tensors"); i++) {
        Type  t = type_item(c, "tensors", i);
        Shape s = as_matrix(in, t.shape);
        if (s.rank > 2) {
            rule_fail(in, "tensor %d has rank %d against at most 2", i, s.rank);
            return;
        }
        promote_type(&p, (Type){ .kind = TY_TENSOR, .dtype = t.dtype, .shape = s });
        rows = p2o_dim_add(in->dims, rows, s.at[0]);
        cols = p2o_dim_add(in->dims, cols, s.at[1]);
    }
    if (list_len(c, "tensors"))
        set_out(in, c, 0, promoted(&p), (Shape){ 2, (Dim[]){ rows, cols } });
    else
        rule_fail(in, "no tensors");
}

/* Each padded to all columns, then rows below rows. */
static Value *lower_block_diag(Lower *lo, const Call *c)
{
    VEC(Value *) v = { 0 };
    Dim          zero = p2o_dim_int(lo->dims, 0), before = zero, all = out_shape(c, 0).at[1];
    for (int i = 0; i < list_len(c, "tensors"); i++) {
        Value *x = cast(lo, tensor_item(lo, c, "tensors", i), out_dtype(c, 0));
        if (rank(x) < 2)
            x = emit(lo, ONNX_Unsqueeze, x, rank(x) ? INTS(lo, 0) : INTS(lo, 0, 1));
        Dim after = p2o_dim_sub(lo->dims, p2o_dim_sub(lo->dims, all, before), size_at(x, 1));
        if (!dim_is(before, 0) || !dim_is(after, 0))
            x = emit(lo, ONNX_Pad, x,
                     shape_value(lo, (Shape){ 4, (Dim[]){ zero, before, zero, after } }),
                     num(lo, x->dtype, 0));
        before = p2o_dim_sub(lo->dims, all, after);
        VEC_PUSH(lo->arena, &v, x);
    }
    return concat(lo, 0, v.at, (int)v.n);
}

static bool has_param(const Call *c, const char *name)
{
    return p2o_schema_find(c->schema, name) >= 0;
}

/* Pieces of one size but the last, which takes what is left. */
static void even_sizes(Dims *t, Dim total, Dim size, int n, Dim *sizes)
{
    for (int i = 0; i < n - 1; i++)
        sizes[i] = size;
    if (n)
        sizes[n - 1] = p2o_dim_sub(t, total, p2o_dim_mul(t, size, p2o_dim_int(t, n - 1)));
}

/* Of chunk, and of ONNX's Split by number since opset 18. */
static Dim chunk_size(Dims *t, Dim total, int64_t n)
{
    return p2o_dim_ceildiv(t, total, p2o_dim_int(t, n));
}

static const char *sizes_param(const Call *c)
{
    return has_param(c, "split_sizes") ? "split_sizes" : "split_size";
}

/* The one size of chunk's and split's pieces; NULL: they are given otherwise. */
static Dim even_size(Dims *t, const Call *c, Dim total)
{
    if (has_param(c, "chunks"))
        return chunk_size(t, total, int_arg(c, "chunks"));
    return has_param(c, sizes_param(c)) && p2o_call_arg(c, sizes_param(c))->kind != ARG_LIST
               ? dim_arg(c, sizes_param(c))
               : NULL;
}

static bool is_last_chunk(const Call *c, int i)
{
    return has_param(c, "chunks") && i == int_arg(c, "chunks") - 1;
}

/* How many pieces of one size there are follows the sizes.  Does the capture's number hold at all
 * of them? */
static bool always_as_many(Dims *t, const Call *c, Dim total, Dim size)
{
    int n = nouts(c);
    Dim rest = p2o_dim_sub(t, total, p2o_dim_mul(t, size, p2o_dim_int(t, n - 1)));
    if (p2o_dim_eq(t, rest, size) == YES)
        return true;
    return p2o_dim_le(t, p2o_dim_int(t, 1), rest) == YES &&
           (is_last_chunk(c, n - 1) || p2o_dim_le(t, rest, size) == YES);
}

static bool all_used(const Call *c)
{
    for (int i = 0; i < nouts(c); i++)
        if (!c->outs[i])
            return false;
    return true;
}

static int last_used(const Call *c)
{
    int last = nouts(c) - 1;
    while (last > 0 && !c->outs[last])
        last--;
    return last;
}

/* One size of pieces of which some are taken by their place: each is itself, however many there
 * are.  Where all are taken, as a list, another number of them would be another program. */
static bool are_taken_apart(Dims *t, const Call *c, Dim total)
{
    Dim size = even_size(t, c, total);
    return size && !all_used(c) && !always_as_many(t, c, total, size);
}

/* Of piece i, which is there. */
static Dim size_apart(Dims *t, const Call *c, Dim total, int i)
{
    Dim size = even_size(t, c, total),
        rest = p2o_dim_sub(t, total, p2o_dim_mul(t, size, p2o_dim_int(t, i)));
    if (has_param(c, "chunks") && i == 0)
        return size;
    return is_last_chunk(c, i) ? rest : p2o_dim_min(t, size, rest);
}

static void piece_sizes(Dims *t, const Call *c, Dim total, Dim *sizes)
{
    int         n = nouts(c);
    const char *list = sizes_param(c);
    if (even_size(t, c, total)) {
        even_sizes(t, total, even_size(t, c, total), n, sizes);
    } else if (!has_param(c, list)) {               /* sections: the first ones are longer by one */
        for (int i = 0; i < n; i++)
            sizes[i] = p2o_dim_floordiv(t, p2o_dim_add(t, total, p2o_dim_int(t, n - 1 - i)),
                                        p2o_dim_int(t, n));
    } else {
        for (int i = 0; i < n; i++)
            sizes[i] = dim_item(c, list, i);
    }
}

/* The last piece that is used must be there; where all are used, there must be no more. */
static void needs_pieces(Infer *in, const Call *c, Dim total)
{
    Dims *t = in->dims;
    Dim   size = even_size(t, c, total), one = int_dim(in, 1);
    int   n = nouts(c), last = last_used(c);
    if (!size || always_as_many(t, c, total, size))
        return;
    if (last == 1 && has_param(c, "chunks"))
        needs_le(in, int_dim(in, 2), total, "there is a second piece");
    else if (last > 0)
        needs_le(in, p2o_dim_add(t, p2o_dim_mul(t, size, int_dim(in, last)), one), total,
                 p2o_printf(in->arena, "there are %d pieces", last + 1));
    if (all_used(c) && !is_last_chunk(c, n - 1))
        needs_le(in, total, p2o_dim_mul(t, size, int_dim(in, n)),
                 p2o_printf(in->arena, "there are no more than %d pieces", n));
}

static bool count_fits(Infer *in, const Call *c, Dim total)
{
    const char *list = sizes_param(c);
    Dim         sum = int_dim(in, 0);
    if (has_param(c, "chunks") && int_arg(c, "chunks") < 1) {
        rule_fail(in, "%lld chunks", (long long)int_arg(c, "chunks"));
        return false;
    }
    if (has_param(c, "sections")) {
        Dim over = p2o_dim_mod(in->dims, total, dim_arg(c, "sections")), zero = int_dim(in, 0);
        if (!has_param(c, "dim") && over && !has_open(in, over) &&
            p2o_dim_eq(in->dims, over, zero) != YES)
            needs_equal(in, over, zero, "sections of one size");        /* hsplit, vsplit, dsplit */
        return must_equal(in, c, dim_arg(c, "sections"), int_dim(in, nouts(c)),
                          "number of sections");
    }
    if (!has_param(c, list) || p2o_call_arg(c, list)->kind != ARG_LIST)
        return true;
    if (list_len(c, list) != nouts(c)) {
        rule_fail(in, "%d sizes for %d results", list_len(c, list), nouts(c));
        return false;
    }
    for (int i = 0; i < nouts(c); i++)
        sum = p2o_dim_add(in->dims, sum, dim_item(c, list, i));
    return must_equal(in, c, sum, total, "sum of the pieces");
}

/* The dim is given, or the operator's own. */
static int64_t split_dim(const Call *c, int rank_)
{
    char first = c->schema->key[strlen("aten::")];
    if (has_param(c, "dim"))
        return int_arg(c, "dim");
    return first == 'd' ? 2 : first == 'v' || rank_ == 1 ? 0 : 1;       /* dsplit, vsplit, hsplit */
}

static void shape_pieces(Infer *in, const Call *c)
{
    Type x = type_arg(c, "self");
    Dim *sizes = NEW_N(in->arena, Dim, (size_t)nouts(c) + 1);
    int  dim;
    if (!must_wrap(in, split_dim(c, x.shape.rank), x.shape.rank, &dim) ||
        !count_fits(in, c, x.shape.at[dim]))
        return;
    Dim  total = x.shape.at[dim];
    bool apart = !has_open(in, total) && !has_open(in, even_size(in->dims, c, total)) &&
                 are_taken_apart(in->dims, c, total);
    piece_sizes(in->dims, c, total, sizes);
    for (int i = 0; i < nouts(c); i++) {
        if (apart)
            sizes[i] = size_apart(in->dims, c, total, i);
        if (c->outs[i] && p2o_dim_lt(in->dims, sizes[i], int_dim(in, 0)) == YES) {
            rule_fail(in, "size %s has no %d pieces", p2o_dim_text(in->dims, total), nouts(c));
            return;
        }
        set_out(in, c, i, x.dtype, with_dim(in, x.shape, dim, sizes[i]));
    }
    needs_pieces(in, c, total);
}

/* Pieces that are there by what the rule needs: so their sizes are the rule's. */
static void lower_apart(Lower *lo, const Call *c, Value *x, int dim, Value **out)
{
    Dims *t = lo->dims;
    Dim   size = even_size(t, c, size_at(x, dim));
    for (int i = 0; i < nouts(c); i++) {
        if (!c->outs[i])
            continue;
        Dim from = p2o_dim_mul(t, size, p2o_dim_int(t, i)), to = p2o_dim_add(t, from, size);
        out[i] = slice_axis(lo, x, dim, from, is_last_chunk(c, i) ? NULL : to, 1);
        out[i]->shape = out_shape(c, i);
    }
}

/* The sizes of a split whose pieces are all used.  What is left is computed such that it is 1 ..
 * size: where there are more or fewer pieces Split finds that they do not add up. */
static Value *checked_sizes(Lower *lo, const Call *c, Dim total, Dim *sizes)
{
    Dims *t = lo->dims;
    Dim   size = even_size(t, c, total), one = p2o_dim_int(t, 1);
    int   n = nouts(c);
    if (size && !has_param(c, "chunks") && !always_as_many(t, c, total, size) &&
        never_zero(lo, size))
        sizes[n - 1] = p2o_dim_add(t, p2o_dim_mod(t, p2o_dim_sub(t, total, one), size), one);
    return shape_value(lo, (Shape){ n, sizes });
}

/* By number where the pieces are those that Split makes by itself, else by their sizes. */
static void lower_pieces(Lower *lo, const Call *c, Value **out)
{
    Value *x = tensor_arg(lo, c, "self");
    int    n = nouts(c), dim;
    Dim   *sizes = NEW_N(lo->arena, Dim, (size_t)n + 1);
    Dim   *even = NEW_N(lo->arena, Dim, (size_t)n + 1);
    p2o_wrap_dim(split_dim(c, rank(x)), rank(x), false, &dim);
    Dim total = size_at(x, dim);
    if (n == 0)
        return;
    if (are_taken_apart(lo->dims, c, total)) {
        lower_apart(lo, c, x, dim, out);
        return;
    }
    if (n == 1 && (!even_size(lo->dims, c, total) ||
                   always_as_many(lo->dims, c, total, even_size(lo->dims, c, total)))) {
        out[0] = x;
        return;
    }
    Dim size = lo->opset >= 18 ? chunk_size(lo->dims, total, n)
                               : p2o_dim_exact_div(lo->dims, total, p2o_dim_int(lo->dims, n));
    piece_sizes(lo->dims, c, total, sizes);
    even_sizes(lo->dims, total, size, n, even);
    Attr axis = attr_int("axis", dim);
    if (n == 1 || !p2o_shape_same((Shape){ n, sizes }, (Shape){ n, even }))
        emit_many(lo, ONNX_Split, ATTRS(axis), n, out, x, checked_sizes(lo, c, total, sizes));
    else if (lo->opset >= 18)
        emit_many(lo, ONNX_Split, ATTRS(axis, attr_int("num_outputs", n)), n, out, x);
    else
        emit_many(lo, ONNX_Split, ATTRS(axis), n, out, x);
    for (int i = 0; i < n; i++)
        if (c->outs[i])
            out[i]->shape = out_shape(c, i);
}

/* [0, i0), [i0, i1) .. [ik, size), each as a slice. */
static Dim start_at(const Call *c, int i) { return i ? dim_item(c, "indices", i - 1) : NULL; }
static Dim end_at(const Call *c, int i)
{
    return i < list_len(c, "indices") ? dim_item(c, "indices", i) : NULL;
}

static void shape_pieces_at(Infer *in, const Call *c)
{
    Type x = type_arg(c, "self");
    Dim  from, to;
    int  dim;
    if (!must_wrap(in, split_dim(c, x.shape.rank), x.shape.rank, &dim))
        return;
    if (nouts(c) != list_len(c, "indices") + 1) {
        rule_fail(in, "%d indices for %d results", list_len(c, "indices"), nouts(c));
        return;
    }
    for (int i = 0; i < nouts(c); i++) {
        slice_bounds(in, start_at(c, i), end_at(c, i), x.shape.at[dim], &from, &to);
        set_out(in, c, i, x.dtype, with_dim(in, x.shape, dim, p2o_dim_sub(in->dims, to, from)));
    }
}

static void lower_pieces_at(Lower *lo, const Call *c, Value **out)
{
    Value *x = tensor_arg(lo, c, "self");
    int    dim;
    p2o_wrap_dim(split_dim(c, rank(x)), rank(x), false, &dim);
    for (int i = 0; i < nouts(c); i++)
        if (c->outs[i])
            out[i] = slice_axis(lo, x, dim, i ? start_at(c, i) : p2o_dim_int(lo->dims, 0),
                                end_at(c, i), 1);
}

/* A number of sections, which the capture knew, or indices that only the data holds. */
static void shape_pieces_by_tensor(Infer *in, const Call *c)
{
    Type x = type_arg(c, "self"), by = type_arg(c, "tensor_indices_or_sections");
    int  dim;
    if (!must_wrap(in, int_arg(c, "dim"), x.shape.rank, &dim))
        return;
    if (by.shape.rank == 0) {
        shape_pieces(in, c);
        return;
    }
    if (!must_rank(in, c, "tensor_indices_or_sections", 1) ||
        !must_equal(in, c, by.shape.at[0], int_dim(in, nouts(c) - 1), "number of indices"))
        return;
    for (int i = 0; i < nouts(c); i++)
        set_out(in, c, i, x.dtype, with_dim(in, x.shape, dim, data_dim(in, c, i, dim)));
}

static void lower_pieces_by_tensor(Lower *lo, const Call *c, Value **out)
{
    Value *x = tensor_arg(lo, c, "self"),
          *by = tensor_as(lo, c, "tensor_indices_or_sections", DT_I64);
    int    dim;
    if (rank(by) == 0) {
        lower_pieces(lo, c, out);
        return;
    }
    p2o_wrap_dim(int_arg(c, "dim"), rank(x), false, &dim);
    for (int i = 0; i < nouts(c); i++) {
        Value *from = i ? emit(lo, ONNX_Gather, by, INTS(lo, i - 1)) : INTS(lo, 0);
        Value *to = i < nouts(c) - 1 ? emit(lo, ONNX_Gather, by, INTS(lo, i)) : INTS(lo, INT64_MAX);
        if (c->outs[i])
            out[i] = emit(lo, ONNX_Slice, x, from, to, INTS(lo, dim));
    }
}

static void shape_unbind(Infer *in, const Call *c)
{
    Type x = type_arg(c, "self");
    int  dim;
    if (!must_wrap(in, int_arg(c, "dim"), x.shape.rank, &dim) ||
        (all_used(c) &&
         !must_equal(in, c, x.shape.at[dim], int_dim(in, nouts(c)), "number of results")))
        return;
    for (int i = 0; i < nouts(c); i++)
        set_out(in, c, i, x.dtype, without_dim(in, x.shape, dim));
    needs_le(in, int_dim(in, last_used(c) + 1), x.shape.at[dim], "the piece is there");
}

static void lower_unbind(Lower *lo, const Call *c, Value **out)
{
    Value *x = tensor_arg(lo, c, "self");
    int    dim;
    p2o_wrap_dim(int_arg(c, "dim"), rank(x), false, &dim);
    for (int i = 0; i < nouts(c); i++)
        if (c->outs[i])
            out[i] = select_axis(lo, x, dim, p2o_dim_int(lo->dims, i));
}

/* n repeats for n or fewer dims; tile also takes fewer repeats than there are dims. */
static Dim repeats_of(Dims *t, const Call *c, const char *name, int i, int rank_)
{
    int k = i - (rank_ - list_len(c, name));
    return k < 0 ? p2o_dim_int(t, 1) : dim_item(c, name, k);
}

static void repeat_by(Infer *in, const Call *c, const char *name)
{
    Type x = type_arg(c, "self");
    while (x.shape.rank < list_len(c, name))
        x.shape = insert_dim(in, x.shape, 0, int_dim(in, 1));
    Dim *at = p2o_shape_copy(in->arena, x.shape, 0);
    for (int i = 0; i < x.shape.rank; i++)
        at[i] = p2o_dim_mul(in->dims, at[i], repeats_of(in->dims, c, name, i, x.shape.rank));
    set_out(in, c, 0, x.dtype, (Shape){ x.shape.rank, at });
}

static void shape_repeat(Infer *in, const Call *c)
{
    if (list_len(c, "repeats") < shape_arg(c, "self").rank)
        rule_fail(in, "%d repeats for rank %d", list_len(c, "repeats"), shape_arg(c, "self").rank);
    else
        repeat_by(in, c, "repeats");
}

static void shape_tile(Infer *in, const Call *c) { repeat_by(in, c, "dims"); }

/* Only what has size 1 grows: Expand.  Else Tile, on as many dims as there are repeats. */
static Value *repeat_values(Lower *lo, const Call *c, const char *name)
{
    Value *x = tensor_arg(lo, c, "self");
    Shape  to = out_shape(c, 0);
    Dim   *times = NEW_N(lo->arena, Dim, (size_t)to.rank + 1);
    bool   tiles = false;
    for (int i = 0; i < to.rank; i++) {
        int k = i - (to.rank - rank(x));
        times[i] = repeats_of(lo->dims, c, name, i, to.rank);
        tiles |= !dim_is(times[i], 1) && k >= 0 && !is_size(x, k, 1);
    }
    if (!tiles)
        return expand(lo, x, to);
    int64_t axes[MAX_RANK];
    int     nnew = to.rank - rank(x);
    for (int i = 0; i < nnew; i++)
        axes[i] = i;
    if (nnew)
        x = emit(lo, ONNX_Unsqueeze, x, ints_const(lo, axes, (size_t)nnew));
    return emit(lo, ONNX_Tile, x, shape_value(lo, (Shape){ to.rank, times }));
}

static Value *lower_repeat(Lower *lo, const Call *c) { return repeat_values(lo, c, "repeats"); }
static Value *lower_tile(Lower *lo, const Call *c) { return repeat_values(lo, c, "dims"); }

/* The tensor and the dim along which elements are repeated: all of it in a row when none is
 * given. */
static Type interleaved_type(Infer *in, const Call *c, int *dim)
{
    Type x = type_arg(c, "self");
    *dim = 0;
    if (has_arg(c, "dim") && x.shape.rank) {
        must_wrap(in, int_arg(c, "dim"), x.shape.rank, dim);
    } else {
        Dim *one = NEW(in->arena, Dim);
        *one = shape_nelem(in->dims, x.shape);
        x.shape = (Shape){ 1, one };
    }
    return x;
}

static Value *interleaved_value(Lower *lo, const Call *c, int *dim)
{
    Value *x = tensor_arg(lo, c, "self");
    *dim = 0;
    if (has_arg(c, "dim") && rank(x))
        p2o_wrap_dim(int_arg(c, "dim"), rank(x), false, dim);
    else
        x = flat(lo, x);
    return x;
}

static void shape_interleave(Infer *in, const Call *c)
{
    int  dim;
    Type x = interleaved_type(in, c, &dim);
    if (in->failed)
        return;
    Dim total = p2o_dim_mul(in->dims, x.shape.at[dim], dim_arg(c, "repeats"));
    set_out(in, c, 0, x.dtype, with_dim(in, x.shape, dim, total));
}

/* [.. n ..] -> [.. n, 1 ..] -> [.. n, r ..] -> [.. n * r ..] */
static Value *lower_interleave(Lower *lo, const Call *c)
{
    int    dim;
    Value *x = interleaved_value(lo, c, &dim);
    Dim   *at = p2o_shape_copy(lo->arena, x->shape, 1);
    for (int i = rank(x); i > dim; i--)
        at[i] = at[i - 1];
    at[dim + 1] = dim_arg(c, "repeats");
    if (dim_is(at[dim + 1], 1))
        return x;
    return reshape(lo, expand(lo, unsqueeze(lo, x, dim + 1), (Shape){ rank(x) + 1, at }),
                   out_shape(c, 0));
}

static Dim interleaved_size(Infer *in, const Call *c, int axis)
{
    return has_arg(c, "output_size") ? dim_arg(c, "output_size") : data_dim(in, c, 0, axis);
}

static void shape_interleave_by(Infer *in, const Call *c)
{
    int   dim;
    Type  x = interleaved_type(in, c, &dim);
    Shape r = shape_arg(c, "repeats");
    if (in->failed)
        return;
    if (r.rank > 1)
        rule_fail(in, "repeats: rank %d", r.rank);
    else if (r.rank == 0 || dim_is(r.at[0], 1) ||
             must_equal(in, c, r.at[0], x.shape.at[dim], "number of repeats"))
        set_out(in, c, 0, x.dtype, with_dim(in, x.shape, dim, interleaved_size(in, c, dim)));
}

static void shape_interleave_index(Infer *in, const Call *c)
{
    if (must_rank(in, c, "repeats", 1))
        set_out(in, c, 0, type_arg(c, "repeats").dtype,
                (Shape){ 1, (Dim[]){ interleaved_size(in, c, 0) } });
}

/* i repeated r[i] times.  Element p of the result is the number of ends, the running sums of r,
 * that are at most p: they are counted up where they fall, then along. */
static Value *interleave_index(Lower *lo, Value *r)
{
    Value *axis = p2o_build_int(lo->b, 0);
    Value *total = reduce(lo, ONNX_ReduceSum, r, (int64_t[]){ 0 }, 1, true);
    Value *ends = emit(lo, ONNX_CumSum, r, axis);
    Value *none =
        emit_with(lo, ONNX_ConstantOfShape,
                  ATTRS(attr_tensor("value", p2o_tensor_ints(lo->arena, 1, (int64_t[]){ 0 }, 1))),
                  emit(lo, ONNX_Add, total, INTS(lo, 1)));
    Value *marks =
        scatter_with(lo, ONNX_ScatterElements, 0, none, ends, full(lo, r->shape, DT_I64, 1), "add");
    return emit(lo, ONNX_Slice, emit(lo, ONNX_CumSum, marks, axis), INTS(lo, 0), total,
                INTS(lo, 0));
}

static Value *lower_interleave_by(Lower *lo, const Call *c)
{
    int    dim;
    Value *x = interleaved_value(lo, c, &dim);
    Value *r = tensor_as(lo, c, "repeats", DT_I64);
    r = expand(lo, r, (Shape){ 1, (Dim[]){ size_at(x, dim) } });
    return emit_with(lo, ONNX_Gather, ATTRS(attr_int("axis", dim)), x, interleave_index(lo, r));
}

static Value *lower_interleave_index(Lower *lo, const Call *c)
{
    return cast(lo, interleave_index(lo, tensor_as(lo, c, "repeats", DT_I64)), out_dtype(c, 0));
}

static void shape_roll(Infer *in, const Call *c)
{
    Type x = type_arg(c, "self");
    int  n = list_len(c, "dims"), dim;
    if (list_len(c, "shifts") != (n ? n : 1)) {
        rule_fail(in, "%d shifts for %d dims", list_len(c, "shifts"), n);
        return;
    }
    for (int i = 0; i < n; i++)
        if (!must_wrap_reduce(in, int_item(c, "dims", i), x.shape.rank, &dim))
            return;
    set_out(in, c, 0, x.dtype, x.shape);
}

/* Where a rolled dim begins: (-shift) % size, or simply -shift where Slice counts it from the
 * end. */
static Dim roll_start(Dims *t, Dim shift, Dim size)
{
    Dim     start = p2o_dim_neg(t, shift);
    int64_t v;
    if (p2o_dim_is_int(start, &v) && !p2o_dim_is_int(size, NULL) &&
        ((v >= -1 && v <= 1) || p2o_dim_le(t, p2o_dim_int(t, v < 0 ? -v : v), size) == YES))
        return start;
    return p2o_dim_mod(t, start, p2o_dim_max(t, size, p2o_dim_int(t, 1)));
}

static Value *roll_axis(Lower *lo, Value *x, int dim, Dim shift)
{
    Dim at = roll_start(lo->dims, shift, size_at(x, dim)), zero = p2o_dim_int(lo->dims, 0);
    if (dim_is(at, 0))
        return x;
    Value *back = slice_axis(lo, x, dim, at, NULL, 1), *front = slice_axis(lo, x, dim, zero, at, 1);
    return concat(lo, dim, (Value *[]){ back, front }, 2);
}

static Value *lower_roll(Lower *lo, const Call *c)
{
    Value *x = tensor_arg(lo, c, "self");
    int    n = list_len(c, "dims"), dim;
    if (rank(x) == 0)
        return x;
    if (n == 0)
        return reshape(lo, roll_axis(lo, flat(lo, x), 0, dim_item(c, "shifts", 0)), x->shape);
    for (int i = 0; i < n; i++) {
        p2o_wrap_dim(int_item(c, "dims", i), rank(x), false, &dim);
        x = roll_axis(lo, x, dim, dim_item(c, "shifts", i));
    }
    return x;
}

static void shape_flip(Infer *in, const Call *c)
{
    Type x = type_arg(c, "self");
    for (int i = 0, dim; i < list_len(c, "dims"); i++)
        if (!must_wrap_reduce(in, int_item(c, "dims", i), x.shape.rank, &dim))
            return;
    set_out(in, c, 0, x.dtype, x.shape);
}

/* Slices backwards, from the last to before the first. */
static Value *flipped(Lower *lo, Value *x, const int64_t *axes, int n)
{
    int64_t start[MAX_RANK], end[MAX_RANK];
    for (int i = 0; i < n; i++) {
        start[i] = -1;
        end[i] = INT64_MIN;
    }
    if (n == 0 || rank(x) == 0)
        return x;
    Value *back = ints_const(lo, start, (size_t)n);
    return emit(lo, ONNX_Slice, x, back, ints_const(lo, end, (size_t)n),
                ints_const(lo, axes, (size_t)n), back);
}

static Value *lower_flip(Lower *lo, const Call *c)
{
    Value  *x = tensor_arg(lo, c, "self");
    int64_t axes[MAX_RANK];
    int     n = 0;
    for (int i = 0; i < list_len(c, "dims") && i < MAX_RANK; i++) {
        int dim = 0;
        p2o_wrap_dim(int_item(c, "dims", i), rank(x), true, &dim);
        axes[n++] = dim;
    }
    return flipped(lo, x, axes, n);
}

static void flip_dim(Infer *in, const Call *c, int dim)
{
    if (shape_arg(c, "self").rank <= dim)
        rule_fail(in, "rank %d", shape_arg(c, "self").rank);
    else
        p2o_rule_same(in, c);
}

static void shape_fliplr(Infer *in, const Call *c) { flip_dim(in, c, 1); }
static void shape_flipud(Infer *in, const Call *c) { flip_dim(in, c, 0); }

static Value *lower_fliplr(Lower *lo, const Call *c)
{
    return flipped(lo, tensor_arg(lo, c, "self"), (int64_t[]){ 1 }, 1);
}

static Value *lower_flipud(Lower *lo, const Call *c)
{
    return flipped(lo, tensor_arg(lo, c, "self"), (int64_t[]){ 0 }, 1);
}

/* Quarter turns from dims[0] to dims[1], modulo 4. */
static int quarter_turns(const Call *c) { return (int)((int_arg(c, "k") % 4 + 4) % 4); }

static void shape_rot90(Infer *in, const Call *c)
{
    Type x = type_arg(c, "self");
    int  i, j;
    if (list_len(c, "dims") != 2) {
        rule_fail(in, "%d dims to turn in", list_len(c, "dims"));
        return;
    }
    if (!must_wrap(in, int_item(c, "dims", 0), x.shape.rank, &i) ||
        !must_wrap(in, int_item(c, "dims", 1), x.shape.rank, &j))
        return;
    if (i == j)
        rule_fail(in, "dim %d comes twice", i);
    if (quarter_turns(c) % 2)
        x.shape = with_dim(in, with_dim(in, x.shape, i, x.shape.at[j]), j, x.shape.at[i]);
    set_out(in, c, 0, x.dtype, x.shape);
}

static Value *lower_rot90(Lower *lo, const Call *c)
{
    Value *x = tensor_arg(lo, c, "self");
    int    i, j;
    p2o_wrap_dim(int_item(c, "dims", 0), rank(x), false, &i);
    p2o_wrap_dim(int_item(c, "dims", 1), rank(x), false, &j);
    switch (quarter_turns(c)) {
    case 1: return swap_dims(lo, flipped(lo, x, (int64_t[]){ j }, 1), i, j);
    case 2: return flipped(lo, x, (int64_t[]){ i, j }, 2);
    case 3: return swap_dims(lo, flipped(lo, x, (int64_t[]){ i }, 1), i, j);
    default: return x;
    }
}

/* Where tensor i lies in the grid: 'xy' has the first two the other way round. */
static int grid_axis(const Call *c, int i)
{
    bool xy = has_param(c, "indexing") && same(str_arg(c, "indexing"), "xy");
    return xy && i < 2 && list_len(c, "tensors") > 1 ? 1 - i : i;
}

static void shape_meshgrid(Infer *in, const Call *c)
{
    int  n = list_len(c, "tensors");
    Dim *at = NEW_N(in->arena, Dim, (size_t)n + 1);
    const char *order = has_param(c, "indexing") ? str_arg(c, "indexing") : "ij";
    if (!same(order, "xy") && !same(order, "ij")) {
        rule_fail(in, "indexing '%s'", order);
        return;
    }
    for (int i = 0; i < n; i++) {
        Shape s = type_item(c, "tensors", i).shape;
        if (s.rank > 1) {
            rule_fail(in, "tensor %d has rank %d", i, s.rank);
            return;
        }
        at[grid_axis(c, i)] = s.rank ? s.at[0] : int_dim(in, 1);
    }
    for (int i = 0; i < n && i < nouts(c); i++)
        set_out(in, c, i, type_item(c, "tensors", i).dtype, (Shape){ n, at });
}

static void lower_meshgrid(Lower *lo, const Call *c, Value **out)
{
    int n = list_len(c, "tensors");
    for (int i = 0; i < nouts(c); i++) {
        if (!c->outs[i])
            continue;
        Dim *at = NEW_N(lo->arena, Dim, (size_t)n + 1);
        for (int k = 0; k < n; k++)
            at[k] = k == grid_axis(c, i) ? out_shape(c, i).at[k] : p2o_dim_int(lo->dims, 1);
        out[i] = expand(lo, reshape(lo, tensor_item(lo, c, "tensors", i), (Shape){ n, at }),
                        out_shape(c, i));
    }
}

#define JOIN(name, args, kind, ...)                                                               \
    {                                                                                              \
        name "(Tensor[] tensors" args ") -> Tensor", shape_##kind, .lower = lower_##kind,          \
            ##__VA_ARGS__                                                                          \
    }
#define SPLIT(name, args, rule, fn) \
    { name "(Tensor(a -> *) self, " args ") -> Tensor(a)[]", rule, .lower_many = fn, \
      .batch = p2o_batch_axes }
#define SPLIT_COPY(name, args, rule, fn) \
    { name "(Tensor self, " args ") -> Tensor[]", rule, .lower_many = fn, \
      .batch = p2o_batch_axes }
#define EVEN_SPLIT(name, args, rule, fn)                                                           \
    {                                                                                              \
        name "(Tensor(a -> *) self, " args ") -> Tensor(a)[]", rule, .lower_many = fn,             \
                                                                     .pieces = true,               \
                                                                     .batch = p2o_batch_axes       \
    }
#define EVEN_SPLIT_COPY(name, args, rule, fn) \
    { name "(Tensor self, " args ") -> Tensor[]", rule, .lower_many = fn, .pieces = true, \
      .batch = p2o_batch_axes }

const AtenOp p2o_ops_join[] = {
    JOIN("cat", ", int dim=0", cat, .batch = p2o_batch_axes),
    JOIN("concat", ", int dim=0", cat, .batch = p2o_batch_axes),
    JOIN("concatenate", ", int dim=0", cat, .batch = p2o_batch_axes),
    JOIN("stack", ", int dim=0", stack, .batch = p2o_batch_new_axis),
    JOIN("_stack", ", int dim=0", stack, .batch = p2o_batch_new_axis),
    JOIN("hstack", "", hstack),
    JOIN("vstack", "", vstack),
    JOIN("row_stack", "", vstack),
    JOIN("dstack", "", dstack),
    JOIN("column_stack", "", columns),
    JOIN("block_diag", "", block_diag),
    EVEN_SPLIT("split.Tensor", "SymInt split_size, int dim=0", shape_pieces, lower_pieces),
    SPLIT("split.sizes", "SymInt[] split_size, int dim=0", shape_pieces, lower_pieces),
    SPLIT("split_with_sizes", "SymInt[] split_sizes, int dim=0", shape_pieces, lower_pieces),
    EVEN_SPLIT("chunk", "int chunks, int dim=0", shape_pieces, lower_pieces),
    EVEN_SPLIT_COPY("split_copy.Tensor", "SymInt split_size, int dim=0", shape_pieces,
                    lower_pieces),
    SPLIT_COPY("split_with_sizes_copy", "SymInt[] split_sizes, int dim=0", shape_pieces,
               lower_pieces),
    EVEN_SPLIT_COPY("unsafe_split.Tensor", "SymInt split_size, int dim=0", shape_pieces,
                    lower_pieces),
    SPLIT_COPY("unsafe_split_with_sizes", "SymInt[] split_sizes, int dim=0", shape_pieces,
               lower_pieces),
    EVEN_SPLIT_COPY("unsafe_chunk", "int chunks, int dim=0", shape_pieces, lower_pieces),
    SPLIT("tensor_split.sections", "SymInt sections, int dim=0", shape_pieces, lower_pieces),
    SPLIT("tensor_split.indices", "SymInt[] indices, int dim=0", shape_pieces_at, lower_pieces_at),
    SPLIT("tensor_split.tensor_indices_or_sections", "Tensor tensor_indices_or_sections, int dim=0",
          shape_pieces_by_tensor, lower_pieces_by_tensor),
    SPLIT("hsplit.int", "int sections", shape_pieces, lower_pieces),
    SPLIT("vsplit.int", "int sections", shape_pieces, lower_pieces),
    SPLIT("dsplit.int", "int sections", shape_pieces, lower_pieces),
    SPLIT("hsplit.array", "int[] indices", shape_pieces_at, lower_pieces_at),
    SPLIT("vsplit.array", "int[] indices", shape_pieces_at, lower_pieces_at),
    SPLIT("dsplit.array", "int[] indices", shape_pieces_at, lower_pieces_at),
    EVEN_SPLIT("unbind.int", "int dim=0", shape_unbind, lower_unbind),
    EVEN_SPLIT_COPY("unbind_copy.int", "int dim=0", shape_unbind, lower_unbind),
    { "repeat(Tensor self, SymInt[] repeats) -> Tensor", shape_repeat, .lower = lower_repeat,
      .idle = p2o_idle_ones,
      .batch = p2o_batch_repeat },
    { "tile(Tensor self, SymInt[] dims) -> Tensor", shape_tile, .lower = lower_tile,
      .idle = p2o_idle_ones,
      .batch = p2o_batch_repeat },
    { "repeat_interleave.Tensor(Tensor repeats, *, SymInt? output_size=None) -> Tensor",
      shape_interleave_index, .lower = lower_interleave_index },
    { "repeat_interleave.self_Tensor(Tensor self, Tensor repeats, int? dim=None, *, SymInt? output_size=None) -> Tensor",
      shape_interleave_by, .lower = lower_interleave_by },
    { "repeat_interleave.self_int(Tensor self, SymInt repeats, int? dim=None, *, SymInt? output_size=None) -> Tensor",
      shape_interleave, .lower = lower_interleave,
      .batch = p2o_batch_axes },
    { "roll(Tensor self, SymInt[1] shifts, int[1] dims=[]) -> Tensor", shape_roll,
      .lower = lower_roll, .roles = "shifts:place",
      .batch = p2o_batch_axes },
    { "flip(Tensor self, int[] dims) -> Tensor", shape_flip, .lower = lower_flip,
      .batch = p2o_batch_axes },
    { "fliplr(Tensor self) -> Tensor", shape_fliplr, .lower = lower_fliplr },
    { "flipud(Tensor self) -> Tensor", shape_flipud, .lower = lower_flipud },
    { "rot90(Tensor self, int k=1, int[] dims=[0, 1]) -> Tensor", shape_rot90,
      .lower = lower_rot90,
      .batch = p2o_batch_axes },
    { "meshgrid(Tensor[] tensors) -> Tensor[]", shape_meshgrid, .lower_many = lower_meshgrid },
    { "meshgrid.indexing(Tensor[] tensors, *, str indexing) -> Tensor[]", shape_meshgrid,
      .lower_many = lower_meshgrid },
    { 0 },
};
