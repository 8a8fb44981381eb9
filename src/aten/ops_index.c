/* Elements chosen by tuples of index tensors or by masks: read and written.
 *
 * A mask of rank k stands for k index tensors, the rows of its NonZero.  Index tensors broadcast to
 * one shape; their dims stand in the result where the indexed dims were, or in front when those
 * were not adjacent.  Reads are Gather where one tensor indexes one dim or where each index varies
 * along dims of its own, else GatherND on the indexed dims brought to the front; writes are
 * ScatterND there. ONNX counts negative indices from the end, as PyTorch does. */
#include "aten/lower.h"
#include "onnx/onnx_rules.h"

static bool is_mask(DType t) { return t == DT_BOOL || t == DT_U8; }
static bool is_index(DType t) { return t == DT_I64 || t == DT_I32; }

/* The dims of self that `indices` picks from, ascending. */
typedef struct Picked {
    int n;
    int dim[MAX_RANK];
} Picked;

static bool picked_dims(const Call *c, Picked *p)
{
    int at = 0, rank_ = shape_arg(c, "self").rank;
    p->n = 0;
    for (int i = 0; i < list_len(c, "indices"); i++) {
        Type t = type_item(c, "indices", i);
        int  covers = has_item(c, "indices", i) && is_mask(t.dtype) ? t.shape.rank : 1;
        for (int k = 0; k < covers; k++, at++) {
            if (at >= rank_)
                return false;
            if (has_item(c, "indices", i))
                p->dim[p->n++] = at;
        }
    }
    return true;
}

/* Where the dims of the index stand in the result. */
static int index_place(const Picked *p)
{
    bool adjacent = p->n > 0 && p->dim[p->n - 1] - p->dim[0] == p->n - 1;
    return adjacent ? p->dim[0] : 0;
}

static bool is_picked(const Picked *p, int dim)
{
    for (int i = 0; i < p->n; i++)
        if (p->dim[i] == dim)
            return true;
    return false;
}

/* The shape of x[indices], given that of x and that of the index. */
static Shape picked_shape(Arena *a, Shape x, const Picked *p, Shape index)
{
    Dim *at = NEW_N(a, Dim, (size_t)(x.rank + index.rank) + 1);
    int  n = 0, place = index_place(p);
    for (int i = 0, rest = 0; i <= x.rank; i++) {
        if (rest == place && n == place)
            for (int k = 0; k < index.rank; k++)
                at[n++] = index.at[k];
        if (i < x.rank && !is_picked(p, i)) {
            at[n++] = x.at[i];
            rest++;
        }
    }
    return (Shape){ n, at };
}

/* Along the last dim of the index one mask and sizes of 1 have the mask's count.  Anything else is
 * the common size of the counts and sizes there, each of which may be 1 at run time. */
static Shape with_counts(Infer *in, const Call *c, Shape index, int nmask, Dim count)
{
    Dim     last = index.rank ? dim_at(index, -1) : int_dim(in, 1), size = count;
    int64_t n;
    if (nmask == 0)
        return index;
    if (p2o_dim_is_int(last, &n) && n > 1)
        size = last;
    else if (nmask > 1 || !dim_is(last, 1))
        size = data_dim(in, c, 0, list_len(c, "indices"));
    return index.rank ? with_last(in, index, size) : insert_dim(in, index, 0, size);
}

/* The common shape of the index tensors; a mask counts as one of a size that the data decides. */
static bool index_shape(Infer *in, const Call *c, Shape *out)
{
    Shape x = shape_arg(c, "self");
    Dim   count = NULL;
    int   nmask = 0;
    *out = (Shape){ 0, NULL };
    for (int i = 0, at = 0; i < list_len(c, "indices"); i++) {
        Type t = type_item(c, "indices", i);
        if (!has_item(c, "indices", i)) {
            at++;
        } else if (is_index(t.dtype)) {
            *out = broadcast(in, c, *out, t.shape);
            at++;
        } else if (is_mask(t.dtype) && t.shape.rank > 0) {
            for (int k = 0; k < t.shape.rank; k++, at++)
                if (!must_equal(in, c, x.at[at], t.shape.at[k], "size of the mask"))
                    return false;
            count = data_dim(in, c, 0, i);
            nmask++;
        } else {
            rule_unsupported(in, "index of %s, rank %d", p2o_dtype_torch(t.dtype), t.shape.rank);
            return false;
        }
    }
    *out = with_counts(in, c, *out, nmask, count);
    return !in->failed;
}

static bool indexed_shape(Infer *in, const Call *c, Shape *out)
{
    Picked p;
    Shape  index;
    if (!picked_dims(c, &p)) {
        rule_fail(in, "too many indices for rank %d", shape_arg(c, "self").rank);
        return false;
    }
    if (!index_shape(in, c, &index))
        return false;
    *out = picked_shape(in->arena, shape_arg(c, "self"), &p, index);
    return true;
}

static void shape_index(Infer *in, const Call *c)
{
    Shape s;
    if (indexed_shape(in, c, &s))
        set_out(in, c, 0, type_arg(c, "self").dtype, s);
}

/* The index tensors of a call, masks taken apart. */
typedef struct Picks {
    Picked dims;
    Value *index[MAX_RANK];     /* of each picked dim, int64 */
    Shape  shape;               /* of all of them, broadcast */
    Value *mask;                /* the only thing in `indices` */
    Value *nonzero;             /* of the mask */
} Picks;

/* The positions where a mask is true: int64[rank, count]. */
static Value *mask_positions(Lower *lo, Value *mask)
{
    Value *nz = emit(lo, ONNX_NonZero, mask);
    carries_dims(lo, nz);
    return nz;
}

static void add_mask(Lower *lo, Picks *p, Value *mask, int *n)
{
    Value *nz = mask_positions(lo, mask);
    p->nonzero = nz;
    for (int k = 0; k < rank(mask); k++)
        p->index[(*n)++] =
            rank(mask) == 1 ? squeeze(lo, nz, 0) : select_axis(lo, nz, 0, p2o_dim_int(lo->dims, k));
    p->shape = joint_shape(lo, p->shape, p->index[*n - 1]->shape);
}

/* Sizes that differ along the last dim of the index, as those of several masks may: what they
 * broadcast to is known at run time.  0 if one is 0, else the largest. */
static void even_out(Lower *lo, Picks *p)
{
    Value *size[MAX_RANK];
    Dim    seen[MAX_RANK], one = p2o_dim_int(lo->dims, 1);
    int    n = 0;
    for (int i = 0; i < p->dims.n; i++) {
        Dim  last = rank(p->index[i]) ? size_at(p->index[i], rank(p->index[i]) - 1) : one;
        bool known = dim_is(last, 1);
        for (int k = 0; k < n; k++)
            known |= seen[k] == last;
        if (known)
            continue;
        size[n] = dim_scalar(lo, last);
        seen[n++] = last;
    }
    if (n < 2)
        return;
    Value *least = p2o_build(lo->b, ONNX_Min, NO_ATTRS, n, size);
    Value *most = p2o_build(lo->b, ONNX_Max, NO_ATTRS, n, size);
    Value *zero = p2o_build_int(lo->b, 0);
    Value *common = choose(lo, emit(lo, ONNX_Equal, least, zero), zero, most);
    Dim    any = p2o_onnx_fresh(lo->b->graph);
    carries_int(lo, common, any);
    for (int i = 0; i < p->dims.n; i++) {
        Value *v = p->index[i];
        if (rank(v) == 0 || is_size(v, rank(v) - 1, 1))
            continue;
        Dim *at = p2o_shape_copy(lo->arena, v->shape, 0);
        at[rank(v) - 1] = any;
        p->index[i] = emit(lo, ONNX_Expand, v, unsqueeze(lo, common, 0));
        p->index[i]->shape = (Shape){ rank(v), at };
    }
    Dim *at = p2o_shape_copy(lo->arena, p->shape, 0);
    at[p->shape.rank - 1] = any;
    p->shape.at = at;
}

static void pick(Lower *lo, const Call *c, Picks *p)
{
    int n = 0, given = 0;
    *p = (Picks){ 0 };
    picked_dims(c, &p->dims);
    for (int i = 0; i < list_len(c, "indices"); i++) {
        if (!has_item(c, "indices", i))
            continue;
        Value *v = tensor_item(lo, c, "indices", i);
        given++;
        if (is_mask(v->dtype)) {
            p->mask = cast(lo, v, DT_BOOL);
            add_mask(lo, p, p->mask, &n);
        } else {
            p->index[n++] = cast(lo, v, DT_I64);
            p->shape = joint_shape(lo, p->shape, v->shape);
        }
    }
    if (given != 1)
        p->mask = NULL;
    if (p->nonzero)
        even_out(lo, p);
}

/* One tensor of all index tuples: int64[shape of the index, picked dims]. */
static Value *index_tuples(Lower *lo, const Picks *p)
{
    Value *part[MAX_RANK];
    if (p->mask)
        return swap_dims(lo, p->nonzero, 0, 1);
    for (int i = 0; i < p->dims.n; i++)
        part[i] = unsqueeze(lo, expand(lo, p->index[i], p->shape), p->shape.rank);
    return concat(lo, p->shape.rank, part, p->dims.n);
}

/* The picked dims first, then the others. */
static void picked_first(const Picked *p, int rank_, int64_t *perm)
{
    int n = 0;
    for (int i = 0; i < p->n; i++)
        perm[n++] = p->dim[i];
    for (int i = 0; i < rank_; i++)
        if (!is_picked(p, i))
            perm[n++] = i;
}

static Value *transpose_back(Lower *lo, Value *x, const int64_t *perm)
{
    int64_t inverse[MAX_RANK];
    for (int i = 0; i < rank(x); i++)
        inverse[perm[i]] = i;
    return transpose(lo, x, inverse);
}

/* The dims of the index, at `place`, to the front. */
static void index_first(int place, int nindex, int rank_, int64_t *perm)
{
    for (int i = 0; i < rank_; i++)
        perm[i] = i < nindex ? place + i : i < nindex + place ? i - nindex : i;
}

static Value *gather_tuples(Lower *lo, Value *x, const Picks *p)
{
    int64_t perm[MAX_RANK];
    picked_first(&p->dims, rank(x), perm);
    Value *y = emit(lo, ONNX_GatherND, transpose(lo, x, perm), index_tuples(lo, p));
    index_first(index_place(&p->dims), p->shape.rank, rank(y), perm);
    return transpose_back(lo, y, perm);
}

/* owner[k]: the only index tensor that varies along dim k of the index; -1: none does.  false when
 * two vary along the same dim. */
static bool find_owners(const Picks *p, int *owner)
{
    for (int k = 0; k < p->shape.rank; k++)
        owner[k] = -1;
    for (int i = 0; i < p->dims.n; i++) {
        int lead = p->shape.rank - rank(p->index[i]);
        for (int k = 0; k < rank(p->index[i]); k++) {
            if (is_size(p->index[i], k, 1))
                continue;
            if (owner[lead + k] >= 0)
                return false;
            owner[lead + k] = i;
        }
    }
    return true;
}

/* An index tensor without its sizes of 1. */
static Value *squeezed_index(Lower *lo, Value *index)
{
    Dim *at = p2o_shape_copy(lo->arena, index->shape, 0);
    int  n = 0;
    for (int k = 0; k < rank(index); k++)
        if (!is_size(index, k, 1))
            at[n++] = index->shape.at[k];
    return reshape(lo, index, (Shape){ n, at });
}

/* Indices that vary along dims of their own: x[i[:, None], j] is one Gather after the other. */
static Value *gather_each(Lower *lo, Value *x, const Picks *p, const int *owner)
{
    int     where[MAX_RANK], rest[MAX_RANK], nrest = 0, n = 0;  /* dims of the gathered tensor */
    int     place = index_place(&p->dims);          /* that many other dims come first */
    int64_t perm[MAX_RANK];
    for (int i = 0, pos = 0, k = 0; i < rank(x); i++) {
        if (k == p->dims.n || p->dims.dim[k] != i) {
            rest[nrest++] = pos++;
            continue;
        }
        for (int d = 0; d < p->shape.rank; d++)
            if (owner[d] == k)
                where[d] = pos++;
        k++;
    }
    for (int i = p->dims.n - 1; i >= 0; i--)
        x = emit_with(lo, ONNX_Gather, ATTRS(attr_int("axis", p->dims.dim[i])), x,
                      squeezed_index(lo, p->index[i]));
    for (int i = 0; i < place; i++)
        perm[n++] = rest[i];
    for (int d = 0; d < p->shape.rank; d++)
        if (owner[d] >= 0)
            perm[n++] = where[d];
    for (int i = place; i < nrest; i++)
        perm[n++] = rest[i];
    x = transpose(lo, x, perm);
    for (int d = 0; d < p->shape.rank; d++)
        if (owner[d] < 0)
            x = unsqueeze(lo, x, place + d);
    return x;
}

static Value *gather_picks(Lower *lo, Value *x, const Picks *p)
{
    int owner[MAX_RANK];
    if (p->dims.n == 0)
        return x;
    if (p->dims.n == 1)
        return emit_with(lo, ONNX_Gather, ATTRS(attr_int("axis", p->dims.dim[0])), x, p->index[0]);
    return find_owners(p, owner) ? gather_each(lo, x, p, owner) : gather_tuples(lo, x, p);
}

static Value *lower_index(Lower *lo, const Call *c)
{
    Value *x = tensor_arg(lo, c, "self");
    Picks  p;
    pick(lo, c, &p);
    if (p.mask && rank(p.mask) == rank(x))
        return emit(lo, ONNX_Compress, x, flat(lo, p.mask));
    if (p.mask && rank(p.mask) == 1)
        return emit_with(lo, ONNX_Compress, ATTRS(attr_int("axis", p.dims.dim[0])), x, p.mask);
    return gather_picks(lo, x, &p);
}

static Value *scatter_tuples(Lower *lo, Value *x, const Picks *p, Value *updates,
                             const char *reduction)
{
    int64_t to_front[MAX_RANK], perm[MAX_RANK];
    picked_first(&p->dims, rank(x), to_front);
    index_first(index_place(&p->dims), p->shape.rank, rank(updates), perm);
    Value *y = scatter_with(lo, ONNX_ScatterND, 0, transpose(lo, x, to_front), index_tuples(lo, p),
                            transpose(lo, updates, perm), reduction);
    return transpose_back(lo, y, to_front);
}

/* x[indices] = values: they broadcast to what is read there. */
static void shape_index_put(Infer *in, const Call *c)
{
    Type  x = type_arg(c, "self"), v = type_arg(c, "values");
    Shape s;
    if (!indexed_shape(in, c, &s))
        return;
    if (x.dtype != v.dtype)
        rule_fail(in, "values of %s for a tensor of %s", p2o_dtype_torch(v.dtype),
                  p2o_dtype_torch(x.dtype));
    else if (must_expand(in, c, v.shape, s, "values"))
        set_out(in, c, 0, x.dtype, x.shape);
}

/* The values where a mask is true, when all of its places get the same: Where needs no
 * positions. */
static Value *put_by_mask(Lower *lo, Value *x, const Picks *p, Value *v)
{
    int   place = p->dims.dim[0], trailing = rank(x) - place - p->dims.n;
    Dim  *at = p2o_shape_copy(lo->arena, p->mask->shape, trailing);
    Dim   one = p2o_dim_int(lo->dims, 1);
    for (int i = 0; i < trailing; i++)
        at[p->dims.n + i] = one;
    Value *mask = reshape(lo, p->mask, (Shape){ p->dims.n + trailing, at });
    if (rank(v) > trailing) {               /* the size of 1 that stands for all places */
        Shape s = v->shape;
        int   count = s.rank - trailing - 1, n = 0;
        at = p2o_shape_copy(lo->arena, s, p->dims.n);
        for (int i = 0; i < s.rank; i++) {
            at[n++] = s.at[i];
            for (int k = 1; i == count && k < p->dims.n; k++)
                at[n++] = one;
        }
        v = reshape(lo, v, (Shape){ n, at });
    }
    return emit(lo, ONNX_Where, mask, v, x);
}

static Value *put_picks(Lower *lo, Value *x, const Picks *p, Value *v, bool accumulate)
{
    Shape to = picked_shape(lo->arena, x->shape, &p->dims, p->shape);
    if (p->dims.n == 0) {
        v = expand(lo, v, to);
        return !accumulate ? v : emit(lo, x->dtype == DT_BOOL ? ONNX_Or : ONNX_Add, x, v);
    }
    int trailing = to.rank - index_place(&p->dims) - 1;
    if (p->mask && !accumulate && (rank(v) <= trailing || is_size(v, rank(v) - trailing - 1, 1)))
        return put_by_mask(lo, x, p, v);
    return scatter_tuples(lo, x, p, expand(lo, v, joint_shape(lo, v->shape, to)),
                          accumulate ? "add" : "none");
}

static Value *lower_index_put(Lower *lo, const Call *c)
{
    Picks p;
    pick(lo, c, &p);
    return put_picks(lo, tensor_arg(lo, c, "self"), &p, tensor_arg(lo, c, "values"),
                     bool_arg(c, "accumulate"));
}

/* Indices held inside [low, size - 1]: those where the mask is false may be size_thing. */
static void clamp_picks(Lower *lo, const Value *x, Picks *p, bool from_end)
{
    for (int i = 0; i < p->dims.n; i++) {
        Dim    size = size_at(x, p->dims.dim[i]), zero = p2o_dim_int(lo->dims, 0);
        Value *low = dim_scalar(lo, from_end ? p2o_dim_neg(lo->dims, size) : zero);
        Value *high = dim_scalar(lo, p2o_dim_sub(lo->dims, size, p2o_dim_int(lo->dims, 1)));
        p->index[i] = emit(lo, ONNX_Clip, p->index[i], low, high);
    }
}

static bool masked_index_ok(Infer *in, const Call *c)
{
    for (int i = 0; i < list_len(c, "indices"); i++) {
        if (has_item(c, "indices", i) && !is_index(type_item(c, "indices", i).dtype)) {
            rule_fail(in, "index %d of %s", i, p2o_dtype_torch(type_item(c, "indices", i).dtype));
            return false;
        }
    }
    if (type_arg(c, "mask").dtype == DT_BOOL)
        return true;
    rule_fail(in, "mask of %s", p2o_dtype_torch(type_arg(c, "mask").dtype));
    return false;
}

static void shape_masked_index(Infer *in, const Call *c)
{
    Shape s;
    if (masked_index_ok(in, c) && indexed_shape(in, c, &s))
        set_out(in, c, 0, type_arg(c, "self").dtype, broadcast(in, c, s, shape_arg(c, "mask")));
}

static Value *lower_masked_index(Lower *lo, const Call *c)
{
    Value *x = tensor_arg(lo, c, "self");
    Picks  p;
    pick(lo, c, &p);
    clamp_picks(lo, x, &p, false);
    return emit(lo, ONNX_Where, tensor_arg(lo, c, "mask"), gather_picks(lo, x, &p),
                number_arg(lo, c, "fill", x->dtype));
}

static void shape_masked_index_put(Infer *in, const Call *c)
{
    if (masked_index_ok(in, c))
        shape_index_put(in, c);
}

static Value *lower_masked_index_put(Lower *lo, const Call *c)
{
    Value *x = tensor_arg(lo, c, "self");
    Picks  p;
    pick(lo, c, &p);
    clamp_picks(lo, x, &p, true);
    Value *v = emit(lo, ONNX_Where, tensor_arg(lo, c, "mask"), tensor_arg(lo, c, "values"),
                    num(lo, x->dtype, 0));
    return put_picks(lo, x, &p, v, true);
}

static bool mask_ok(Infer *in, const Call *c)
{
    Type mask = type_arg(c, "mask");
    if (is_mask(mask.dtype))
        return true;
    rule_fail(in, "mask of %s", p2o_dtype_torch(mask.dtype));
    return false;
}

static void shape_masked_fill(Infer *in, const Call *c)
{
    Type x = type_arg(c, "self");
    if (type_arg(c, "value").shape.rank > 0)
        rule_fail(in, "value of rank %d against 0", type_arg(c, "value").shape.rank);
    else if (mask_ok(in, c))
        set_out(in, c, 0, x.dtype, broadcast(in, c, x.shape, shape_arg(c, "mask")));
}

static Value *lower_masked_fill(Lower *lo, const Call *c)
{
    DType t = out_dtype(c, 0);
    return emit(lo, ONNX_Where, tensor_as(lo, c, "mask", DT_BOOL), tensor_as(lo, c, "value", t),
                tensor_arg(lo, c, "self"));
}

static void shape_masked_select(Infer *in, const Call *c)
{
    Dim count = data_dim(in, c, 0, 0);
    if (!mask_ok(in, c))
        return;
    broadcast(in, c, shape_arg(c, "self"), shape_arg(c, "mask"));
    set_out(in, c, 0, type_arg(c, "self").dtype, (Shape){ 1, &count });
}

static Value *lower_masked_select(Lower *lo, const Call *c)
{
    Value *x = tensor_arg(lo, c, "self"), *mask = tensor_as(lo, c, "mask", DT_BOOL);
    Shape  s = joint_shape(lo, x->shape, mask->shape);
    return emit(lo, ONNX_Compress, flat(lo, expand(lo, x, s)), flat(lo, expand(lo, mask, s)));
}

static void shape_masked_scatter(Infer *in, const Call *c)
{
    Type x = type_arg(c, "self"), source = type_arg(c, "source");
    if (source.dtype != x.dtype)
        rule_fail(in, "source of %s for a tensor of %s", p2o_dtype_torch(source.dtype),
                  p2o_dtype_torch(x.dtype));
    else if (mask_ok(in, c))
        set_out(in, c, 0, x.dtype, broadcast(in, c, x.shape, shape_arg(c, "mask")));
}

/* The places where the mask is true get the first elements of source, in order. */
static Value *lower_masked_scatter(Lower *lo, const Call *c)
{
    Shape  s = out_shape(c, 0);
    Value *x = expand(lo, tensor_arg(lo, c, "self"), s);
    Value *mask = expand(lo, tensor_as(lo, c, "mask", DT_BOOL), s);
    Value *source = flat(lo, tensor_arg(lo, c, "source"));
    if (s.rank == 0)
        return emit(lo, ONNX_Where, mask,
                    squeeze(lo,
                            slice_axis(lo, source, 0, p2o_dim_int(lo->dims, 0),
                                       p2o_dim_int(lo->dims, 1), 1),
                            0),
                    x);
    Value *nz = mask_positions(lo, mask);
    source = slice_axis(lo, source, 0, p2o_dim_int(lo->dims, 0), size_at(nz, 1), 1);
    return emit(lo, ONNX_ScatterND, x, swap_dims(lo, nz, 0, 1), source);
}

/* NonZero has no kernel for every type; a cast to bool asks the same. */
static Value *nonzero_of(Lower *lo, Value *x)
{
    bool direct = x->dtype == DT_BOOL || x->dtype == DT_F32 || is_index(x->dtype);
    x = direct ? x : cast(lo, x, DT_BOOL);
    return emit(lo, ONNX_NonZero, rank(x) ? x : unsqueeze(lo, x, 0));
}

static void shape_nonzero(Infer *in, const Call *c)
{
    Dim at[2] = { data_dim(in, c, 0, 0), int_dim(in, shape_arg(c, "self").rank) };
    set_out(in, c, 0, DT_I64, (Shape){ 2, at });
}

static Value *lower_nonzero(Lower *lo, const Call *c)
{
    Value *x = tensor_arg(lo, c, "self");
    Value *y = swap_dims(lo, nonzero_of(lo, x), 0, 1);
    Dim    zero = p2o_dim_int(lo->dims, 0);
    return rank(x) ? y : slice_axis(lo, y, 1, zero, zero, 1);
}

static void shape_nonzero_numpy(Infer *in, const Call *c)
{
    Dim count = data_dim(in, c, 0, 0);
    int rank_ = p2o_arg_type(&c->args[0]).shape.rank;
    if (nouts(c) != (rank_ ? rank_ : 1))
        rule_fail(in, "%d results for rank %d", nouts(c), rank_);
    for (int i = 0; i < nouts(c); i++)
        set_out(in, c, i, DT_I64, (Shape){ 1, &count });
}

static void lower_nonzero_numpy(Lower *lo, const Call *c, Value **out)
{
    Value *y = nonzero_of(lo, p2o_arg_value(lo, &c->args[0], DT_BOOL));
    for (int i = 0; i < c->nouts; i++)
        out[i] = select_axis(lo, y, 0, p2o_dim_int(lo->dims, i));
}

static void shape_nonzero_static(Infer *in, const Call *c)
{
    Dim at[2] = { dim_arg(c, "size"), int_dim(in, shape_arg(c, "self").rank) };
    set_out(in, c, 0, DT_I64, (Shape){ 2, at });
}

/* As many rows as asked for: the fill value follows those that are there. */
static Value *lower_nonzero_static(Lower *lo, const Call *c)
{
    Value *x = tensor_arg(lo, c, "self");
    Shape  s = out_shape(c, 0);
    Value *fill = full(lo, s, DT_I64, (double)int_arg(c, "fill_value"));
    if (rank(x) == 0)
        return fill;
    Value *both[] = { swap_dims(lo, nonzero_of(lo, x), 0, 1), fill };
    return slice_axis(lo, concat(lo, 0, both, 2), 0, p2o_dim_int(lo->dims, 0), s.at[0], 1);
}

static bool flat_index_ok(Infer *in, const Call *c)
{
    DType t = type_arg(c, "index").dtype;
    if (is_index(t))
        return true;
    rule_fail(in, "index of %s", p2o_dtype_torch(t));
    return false;
}

static void shape_take(Infer *in, const Call *c)
{
    if (flat_index_ok(in, c))
        set_out(in, c, 0, type_arg(c, "self").dtype, shape_arg(c, "index"));
}

static Value *lower_take(Lower *lo, const Call *c)
{
    return emit(lo, ONNX_Gather, flat(lo, tensor_arg(lo, c, "self")), tensor_arg(lo, c, "index"));
}

static void shape_put(Infer *in, const Call *c)
{
    Type x = type_arg(c, "self"), index = type_arg(c, "index"), source = type_arg(c, "source");
    if (source.dtype != x.dtype)
        rule_fail(in, "source of %s for a tensor of %s", p2o_dtype_torch(source.dtype),
                  p2o_dtype_torch(x.dtype));
    else if (flat_index_ok(in, c) &&
             must_equal(in, c, shape_nelem(in->dims, index.shape),
                        shape_nelem(in->dims, source.shape), "elements of index and source"))
        set_out(in, c, 0, x.dtype, x.shape);
}

static Value *lower_put(Lower *lo, const Call *c)
{
    Value *x = tensor_arg(lo, c, "self");
    Value *y = scatter_with(
        lo, ONNX_ScatterElements, 0, flat(lo, x), flat(lo, tensor_arg(lo, c, "index")),
        flat(lo, tensor_arg(lo, c, "source")), bool_arg(c, "accumulate") ? "add" : "none");
    return reshape(lo, y, x->shape);
}

/* Without num_classes the largest index decides. */
static void shape_one_hot(Infer *in, const Call *c)
{
    Shape   x = shape_arg(c, "self");
    Dim     classes = dim_arg(c, "num_classes");
    int64_t n;
    if (type_arg(c, "self").dtype != DT_I64)
        rule_fail(in, "index of %s", p2o_dtype_torch(type_arg(c, "self").dtype));
    if (p2o_dim_is_int(classes, &n) && n < 0)
        classes = data_dim(in, c, 0, x.rank);
    set_out(in, c, 0, DT_I64, insert_dim(in, x, x.rank, classes));
}

static Value *lower_one_hot(Lower *lo, const Call *c)
{
    Value  *x = tensor_arg(lo, c, "self"), *depth;
    Dim     classes = dim_arg(c, "num_classes");
    int64_t n, first = 0;
    bool    scalar = rank(x) == 0;
    if (scalar)
        x = unsqueeze(lo, x, 0);
    if (p2o_dim_is_int(classes, &n) && n < 0)
        depth = emit(lo, ONNX_Add, reduce(lo, ONNX_ReduceMax, flat(lo, x), &first, 1, false),
                     num(lo, DT_I64, 1));
    else
        depth = dim_scalar(lo, classes);
    Value *y = emit(lo, ONNX_OneHot, x, depth, INTS(lo, 0, 1));
    return scalar ? squeeze(lo, y, 0) : y;
}

static void shape_tril(Infer *in, const Call *c)
{
    if (shape_arg(c, "self").rank < 2)
        rule_fail(in, "rank %d against at least 2", shape_arg(c, "self").rank);
    else
        p2o_rule_same(in, c);
}

static Value *triangle(Lower *lo, const Call *c, bool upper)
{
    Dim k = dim_arg(c, "diagonal");
    return emit_with(lo, ONNX_Trilu, ATTRS(attr_int("upper", upper)), tensor_arg(lo, c, "self"),
                     dim_is(k, 0) ? NULL : dim_scalar(lo, k));
}

static Value *lower_tril(Lower *lo, const Call *c) { return triangle(lo, c, false); }
static Value *lower_triu(Lower *lo, const Call *c) { return triangle(lo, c, true); }

static void shape_copy(Infer *in, const Call *c)
{
    Type x = type_arg(c, "self");
    if (must_expand(in, c, shape_arg(c, "src"), x.shape, "src"))
        set_out(in, c, 0, x.dtype, x.shape);
}

static Value *lower_copy(Lower *lo, const Call *c)
{
    return expand(lo, tensor_as(lo, c, "src", out_dtype(c, 0)), out_shape(c, 0));
}

static Value *lower_lift(Lower *lo, const Call *c) { return tensor_arg(lo, c, "self"); }

#define ROW_INDEX(head)                                                                            \
    {                                                                                              \
        head " -> Tensor", shape_index, .lower = lower_index, .limits = "no 0-d masks",            \
            .batch = p2o_batch_index                                                               \
    }
#define ROW_PUT(head)                                                                              \
    {                                                                                              \
        head " -> Tensor", shape_index_put, .lower = lower_index_put,                              \
            .batch = p2o_batch_index_put                                                           \
    }

const AtenOp p2o_ops_index[] = {
    ROW_INDEX("index.Tensor(Tensor self, Tensor?[] indices)"),
    ROW_INDEX("index.Tensor_hacked_twin(Tensor self, Tensor[] indices)"),
    ROW_INDEX("_unsafe_index.Tensor(Tensor self, Tensor?[] indices)"),
    ROW_INDEX("_unsafe_index.Tensor_hacked_twin(Tensor self, Tensor[] indices)"),
    ROW_PUT("index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False)"),
    ROW_PUT(
        "index_put.hacked_twin(Tensor self, Tensor[] indices, Tensor values, bool accumulate=False)"),
    ROW_PUT(
        "_unsafe_index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False)"),
    ROW_PUT(
        "_unsafe_index_put.hacked_twin(Tensor self, Tensor[] indices, Tensor values, bool accumulate=False)"),
    ROW_PUT(
        "_index_put_impl(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False, bool unsafe=False)"),
    ROW_PUT(
        "_index_put_impl.hacked_twin(Tensor self, Tensor[] indices, Tensor values, bool accumulate=False, bool unsafe=False)"),
    { "_unsafe_masked_index(Tensor self, Tensor mask, Tensor?[] indices, Scalar fill) -> Tensor",
      shape_masked_index, .lower = lower_masked_index },
    { "_unsafe_masked_index_put_accumulate(Tensor self, Tensor mask, Tensor?[] indices, Tensor values) -> Tensor",
      shape_masked_index_put, .lower = lower_masked_index_put },
    { "masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor", shape_masked_fill,
      .lower = lower_masked_fill,
      .batch = p2o_batch_pointwise },
    { "masked_fill.Tensor(Tensor self, Tensor mask, Tensor value) -> Tensor", shape_masked_fill,
      .lower = lower_masked_fill,
      .batch = p2o_batch_masked_fill },
    { "masked_select(Tensor self, Tensor mask) -> Tensor", shape_masked_select,
      .lower = lower_masked_select },
    { "masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor", shape_masked_scatter,
      .lower = lower_masked_scatter },
    { "nonzero(Tensor self) -> Tensor", shape_nonzero, .lower = lower_nonzero },
    { "argwhere(Tensor self) -> Tensor", shape_nonzero, .lower = lower_nonzero },
    { "nonzero_numpy(Tensor self) -> Tensor[]", shape_nonzero_numpy,
      .lower_many = lower_nonzero_numpy },
    { "where(Tensor condition) -> Tensor[]", shape_nonzero_numpy,
      .lower_many = lower_nonzero_numpy },
    { "nonzero_static(Tensor self, *, SymInt size, int fill_value=-1) -> Tensor",
      shape_nonzero_static, .lower = lower_nonzero_static },
    { "take(Tensor self, Tensor index) -> Tensor", shape_take, .lower = lower_take },
    { "put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor", shape_put,
      .lower = lower_put },
    { "one_hot(Tensor self, int num_classes=-1) -> Tensor", shape_one_hot, .lower = lower_one_hot,
      .varies = "num_classes",
      .batch = p2o_batch_tail },
    { "tril(Tensor self, SymInt diagonal=0) -> Tensor", shape_tril, .lower = lower_tril,
      .roles = "diagonal:place",
      .batch = p2o_batch_tail },
    { "triu(Tensor self, SymInt diagonal=0) -> Tensor", shape_tril, .lower = lower_triu,
      .roles = "diagonal:place",
      .batch = p2o_batch_tail },
    { "copy(Tensor self, Tensor src, bool non_blocking=False) -> Tensor", shape_copy,
      .lower = lower_copy,
      .batch = p2o_batch_into },
    { "lift(Tensor self) -> Tensor", p2o_rule_same, .lower = lower_lift, .lifts = true },
    { "lift_fresh(Tensor(a) self) -> Tensor(a)", p2o_rule_same, .lower = lower_lift,
      .lifts = true },
    { "lift_fresh_copy(Tensor self) -> Tensor", p2o_rule_same, .lower = lower_lift, .lifts = true },
    { 0 },
};
