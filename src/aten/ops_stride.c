/* Views that no Reshape, Transpose or Slice says alone: diagonals, windows, given strides; and what
 * a tensor is after a write through a view.
 *
 * A diagonal of a matrix is every (columns + 1)-th element of its rows in a row.  Scatters are
 * joins of what is kept and what is new, or choices by a mask, rather than indexed writes: any
 * dtype, any size. */
#include "aten/lower.h"

static Dim zero_or_more(Dims *t, Dim d)
{
    int64_t low, high;
    p2o_dim_range(t, d, &low, &high);
    return low >= 0 ? d : p2o_dim_max(t, d, p2o_dim_int(t, 0));
}

/* Rows above the diagonal's first element, and columns left of it. */
static int64_t rows_before(int64_t offset) { return offset < 0 ? -offset : 0; }
static int64_t cols_before(int64_t offset) { return offset > 0 ? offset : 0; }

static Dim diagonal_length(Dims *t, Dim rows, Dim cols, int64_t offset)
{
    Dim below = p2o_dim_sub(t, rows, p2o_dim_int(t, rows_before(offset)));
    Dim right = p2o_dim_sub(t, cols, p2o_dim_int(t, cols_before(offset)));
    return zero_or_more(t, p2o_dim_min(t, below, right));
}

static bool two_dims(Infer *in, const Call *c, int rank_, int *i, int *j)
{
    if (!must_wrap(in, int_arg(c, "dim1"), rank_, i) ||
        !must_wrap(in, int_arg(c, "dim2"), rank_, j))
        return false;
    if (*i == *j)
        rule_fail(in, "dim1 and dim2 are both %d", *i);
    return *i != *j;
}

static Shape diagonal_shape(Infer *in, Shape s, int i, int j, int64_t offset)
{
    Dim   len = diagonal_length(in->dims, s.at[i], s.at[j], offset);
    Shape rest = without_dim(in, without_dim(in, s, i > j ? i : j), i > j ? j : i);
    return insert_dim(in, rest, rest.rank, len);
}

/* Under the name `self`, or `A` in linalg_diagonal. */
static void shape_diagonal(Infer *in, const Call *c)
{
    Type x = p2o_arg_type(&c->args[0]);
    int  i, j;
    if (two_dims(in, c, x.shape.rank, &i, &j))
        set_out(in, c, 0, x.dtype, diagonal_shape(in, x.shape, i, j, int_arg(c, "offset")));
}

/* Dims i and j made the last two, in this order. */
static Value *matrices_last(Lower *lo, Value *x, int i, int j)
{
    x = move_dim(lo, x, i, rank(x) - 1);
    return move_dim(lo, x, j > i ? j - 1 : j, rank(x) - 1);
}

static Value *matrices_back(Lower *lo, Value *x, int i, int j)
{
    x = move_dim(lo, x, rank(x) - 1, j > i ? j - 1 : j);
    return move_dim(lo, x, rank(x) - 1, i);
}

/* The diagonal of the last two dims. */
static Value *last_diagonal(Lower *lo, Value *x, int64_t offset)
{
    Dims *t = lo->dims;
    Dim   rows = size_at(x, -2), cols = size_at(x, -1),
        step = p2o_dim_add(t, cols, p2o_dim_int(t, 1));
    Dim   len = diagonal_length(t, rows, cols, offset);
    Dim   start = p2o_dim_add(t, p2o_dim_int(t, cols_before(offset)),
                              p2o_dim_mul(t, cols, p2o_dim_int(t, rows_before(offset))));
    Dim  *at = p2o_shape_copy(lo->arena, x->shape, 0);
    int   last = rank(x) - 2;
    at[last] = p2o_dim_mul(t, rows, cols);
    return emit(lo, ONNX_Slice, reshape(lo, x, (Shape){ last + 1, at }), dim_value(lo, start),
                dim_value(lo, p2o_dim_add(t, start, p2o_dim_mul(t, len, step))), INTS(lo, last),
                dim_value(lo, step));
}

static Value *lower_diagonal(Lower *lo, const Call *c)
{
    Value *x = p2o_arg_value(lo, &c->args[0], DT_F32);
    int    i, j;
    p2o_wrap_dim(int_arg(c, "dim1"), rank(x), false, &i);
    p2o_wrap_dim(int_arg(c, "dim2"), rank(x), false, &j);
    return last_diagonal(lo, matrices_last(lo, x, i, j), int_arg(c, "offset"));
}

/* [rows, cols] of bool: true on the diagonal. */
static Value *diagonal_mask(Lower *lo, Dim rows, Dim cols, int64_t offset)
{
    Value *row = iota(lo, rows);
    if (offset)
        row = emit(lo, ONNX_Add, row, p2o_build_int(lo->b, offset));
    return emit(lo, ONNX_Equal, unsqueeze(lo, row, 1), iota(lo, cols));
}

/* [.., rows, cols] with v's last dim along the diagonal and `other` around it. */
static Value *on_diagonal(Lower *lo, Value *v, Dim rows, Dim cols, int64_t offset, Value *other)
{
    Dims *t = lo->dims;
    int   n = rank(v);
    Dim   front = p2o_dim_min(t, p2o_dim_int(t, rows_before(offset)), rows);
    Dim   back = p2o_dim_sub(t, p2o_dim_sub(t, rows, front), size_at(v, -1));
    v = pad_axes(lo, v, n - 1, 1, (Dim[]){ front, back }, 0);
    return emit(lo, ONNX_Where, diagonal_mask(lo, rows, cols, offset), unsqueeze(lo, v, n), other);
}

static Value *embedded(Lower *lo, Value *v, int64_t offset)
{
    int64_t aside = rows_before(offset) + cols_before(offset);
    Dim     n = p2o_dim_add(lo->dims, size_at(v, -1), p2o_dim_int(lo->dims, aside));
    return on_diagonal(lo, v, n, n, offset, num(lo, v->dtype, 0));
}

static Dim embedded_size(Infer *in, Dim len, int64_t offset)
{
    return p2o_dim_add(in->dims, len, int_dim(in, rows_before(offset) + cols_before(offset)));
}

static void shape_diag_embed(Infer *in, const Call *c)
{
    Type x = type_arg(c, "self");
    int  i, j;
    if (x.shape.rank == 0) {
        rule_fail(in, "rank 0");
        return;
    }
    if (!two_dims(in, c, x.shape.rank + 1, &i, &j))
        return;
    Dim   n = embedded_size(in, dim_at(x.shape, -1), int_arg(c, "offset"));
    Shape s = insert_dim(in, slice_shape(x.shape, 0, x.shape.rank - 1), i < j ? i : j, n);
    set_out(in, c, 0, x.dtype, insert_dim(in, s, i < j ? j : i, n));
}

static Value *lower_diag_embed(Lower *lo, const Call *c)
{
    Value *x = embedded(lo, tensor_arg(lo, c, "self"), int_arg(c, "offset"));
    int    i, j;
    p2o_wrap_dim(int_arg(c, "dim1"), rank(x), false, &i);
    p2o_wrap_dim(int_arg(c, "dim2"), rank(x), false, &j);
    return matrices_back(lo, x, i, j);
}

/* A matrix's diagonal, or the matrix of a diagonal. */
static void shape_diag(Infer *in, const Call *c)
{
    Type    x = type_arg(c, "self");
    int64_t offset = int_arg(c, "diagonal");
    if (x.shape.rank == 2) {
        set_out(in, c, 0, x.dtype, diagonal_shape(in, x.shape, 0, 1, offset));
    } else if (must_rank(in, c, "self", 1)) {
        Dim n = embedded_size(in, x.shape.at[0], offset);
        set_out(in, c, 0, x.dtype, (Shape){ 2, (Dim[]){ n, n } });
    }
}

static Value *lower_diag(Lower *lo, const Call *c)
{
    Value  *x = tensor_arg(lo, c, "self");
    int64_t offset = int_arg(c, "diagonal");
    return rank(x) == 2 ? last_diagonal(lo, x, offset) : embedded(lo, x, offset);
}

static void shape_diagflat(Infer *in, const Call *c)
{
    Type x = type_arg(c, "self");
    Dim  n = embedded_size(in, shape_nelem(in->dims, x.shape), int_arg(c, "offset"));
    set_out(in, c, 0, x.dtype, (Shape){ 2, (Dim[]){ n, n } });
}

static Value *lower_diagflat(Lower *lo, const Call *c)
{
    return embedded(lo, flat(lo, tensor_arg(lo, c, "self")), int_arg(c, "offset"));
}

static void shape_diagonal_scatter(Infer *in, const Call *c)
{
    Type x = type_arg(c, "self"), src = type_arg(c, "src");
    int  i, j;
    if (!two_dims(in, c, x.shape.rank, &i, &j))
        return;
    Shape s = diagonal_shape(in, x.shape, i, j, int_arg(c, "offset"));
    if (!must_rank(in, c, "src", s.rank))
        return;
    for (int k = 0; k < s.rank; k++)
        if (!must_equal(in, c, s.at[k], src.shape.at[k], "sizes of the diagonal"))
            return;
    set_out(in, c, 0, x.dtype, x.shape);
}

static Value *lower_diagonal_scatter(Lower *lo, const Call *c)
{
    Value *x = tensor_arg(lo, c, "self"), *src = tensor_as(lo, c, "src", out_dtype(c, 0));
    int    i, j;
    p2o_wrap_dim(int_arg(c, "dim1"), rank(x), false, &i);
    p2o_wrap_dim(int_arg(c, "dim2"), rank(x), false, &j);
    Value *y = on_diagonal(lo, src, size_at(x, i), size_at(x, j), int_arg(c, "offset"),
                           matrices_last(lo, x, i, j));
    return matrices_back(lo, y, i, j);
}

static void shape_fill_diagonal(Infer *in, const Call *c)
{
    Type x = type_arg(c, "self");
    if (x.shape.rank < 2) {
        rule_fail(in, "rank %d", x.shape.rank);
        return;
    }
    for (int i = 1; i < x.shape.rank && x.shape.rank > 2; i++)
        if (!must_equal(in, c, x.shape.at[0], x.shape.at[i], "sizes of a diagonal of all dims"))
            return;
    set_out(in, c, 0, x.dtype, x.shape);
}

/* Where all indices are equal; wrapped: where row * cols + col is a multiple of cols + 1. */
static Value *lower_fill_diagonal(Lower *lo, const Call *c)
{
    Value *x = tensor_arg(lo, c, "self"), *fill = number_arg(lo, c, "fill_value", out_dtype(c, 0)),
          *mask;
    int    n = rank(x);
    if (n == 2 && bool_arg(c, "wrap")) {
        Value *cols = dim_scalar(lo, size_at(x, 1));
        Value *at =
            emit(lo, ONNX_Add, emit(lo, ONNX_Mul, unsqueeze(lo, iota(lo, size_at(x, 0)), 1), cols),
                 iota(lo, size_at(x, 1)));
        Value *step = emit(lo, ONNX_Add, cols, p2o_build_int(lo->b, 1));
        mask = emit(lo, ONNX_Equal, emit(lo, ONNX_Mod, at, step), p2o_build_int(lo->b, 0));
    } else {
        mask = diagonal_mask(lo, size_at(x, -2), size_at(x, -1), 0);
    }
    for (int i = n - 3; i >= 0; i--) {      /* the index along i, against that along the next */
        Value *index = iota(lo, size_at(x, i));
        int64_t axes[MAX_RANK];
        for (int k = 0; k < n - 1 - i; k++)
            axes[k] = k + 1;
        Value *here = emit(lo, ONNX_Unsqueeze, index, ints_const(lo, axes, (size_t)(n - 1 - i)));
        Value *next = emit(lo, ONNX_Unsqueeze, index, ints_const(lo, axes, (size_t)(n - 2 - i)));
        mask = emit(lo, ONNX_And, mask, emit(lo, ONNX_Equal, here, next));
    }
    return emit(lo, ONNX_Where, mask, fill, x);
}

/* Windows of `size` every `step` along a dim, their elements in a new last one. */
static void shape_unfold(Infer *in, const Call *c)
{
    Type    x = type_arg(c, "self");
    Dim     size = dim_arg(c, "size"), zero = int_dim(in, 0);
    int64_t step = int_arg(c, "step");
    int     dim;
    if (!must_wrap_reduce(in, int_arg(c, "dimension"), x.shape.rank, &dim))
        return;
    if (p2o_dim_lt(in->dims, size, zero) == YES || step < 1) {
        rule_fail(in, "size %s, step %lld", p2o_dim_text(in->dims, size), (long long)step);
        return;
    }
    if (x.shape.rank == 0) {
        set_out(in, c, 0, x.dtype, (Shape){ 1, (Dim[]){ size } });
        return;
    }
    Dim over = p2o_dim_sub(in->dims, x.shape.at[dim], size);
    if (p2o_dim_lt(in->dims, over, zero) == YES && !has_open(in, over)) {
        rule_fail(in, "windows of %s in size %s", p2o_dim_text(in->dims, size),
                  p2o_dim_text(in->dims, x.shape.at[dim]));
        return;
    }
    needs_le(in, size, x.shape.at[dim], "a window fits");
    needs_le(in, zero, size, "a window has a size");
    Dim n =
        p2o_dim_add(in->dims, p2o_dim_floordiv(in->dims, over, int_dim(in, step)), int_dim(in, 1));
    set_out(in, c, 0, x.dtype, insert_dim(in, with_dim(in, x.shape, dim, n), x.shape.rank, size));
}

static Value *lower_unfold(Lower *lo, const Call *c)
{
    Value  *x = tensor_arg(lo, c, "self");
    Dim     size = dim_arg(c, "size");
    int64_t step = int_arg(c, "step");
    int     dim = 0;
    if (rank(x) == 0)
        return dim_is(size, 0) ? full(lo, out_shape(c, 0), x->dtype, 0) : unsqueeze(lo, x, 0);
    p2o_wrap_dim(int_arg(c, "dimension"), rank(x), false, &dim);
    Value *y = windows(lo, x, dim, out_shape(c, 0).at[dim], size, step, 1);
    return move_dim(lo, y, dim + 1, rank(y) - 1);
}

/* The functional form hands these the tensor whose storage it is: its elements in a row are the
 * storage, if it is laid out row by row. */
static bool strides_fit(Infer *in, const Call *c)
{
    const Arg *x = p2o_call_arg(c, "self");
    if (x->kind != ARG_VAR || x->var->dense != YES) {
        rule_unsupported(in, "strides into a tensor that is not known to be laid out row by row");
        return false;
    }
    if (list_len(c, "size") != list_len(c, "stride")) {
        rule_fail(in, "%d sizes, %d strides", list_len(c, "size"), list_len(c, "stride"));
        return false;
    }
    return true;
}

static void shape_as_strided(Infer *in, const Call *c)
{
    if (strides_fit(in, c))
        set_out(in, c, 0, type_arg(c, "self").dtype, shape_list(in, c, "size"));
}

static Dim storage_offset(Lower *lo, const Call *c)
{
    return has_arg(c, "storage_offset") ? dim_arg(c, "storage_offset") : p2o_dim_int(lo->dims, 0);
}

/* Dims of the result, outermost first, such that they are a run of the storage without gaps; those
 * that repeat it (stride 0) are left out.  false when there is no such order. */
static bool storage_order(Lower *lo, const Call *c, int *order, int *n, Dim *run)
{
    int  total = list_len(c, "size"), left = 0;
    bool placed[MAX_RANK] = { 0 };
    for (int i = 0; i < total; i++) {
        placed[i] = dim_is(dim_item(c, "stride", i), 0) || dim_is(dim_item(c, "size", i), 1);
        left += !placed[i];
    }
    *n = left;
    *run = p2o_dim_int(lo->dims, 1);
    while (left > 0) {
        int found = -1;
        for (int i = total - 1; i >= 0 && found < 0; i--)
            if (!placed[i] && dim_item(c, "stride", i) == *run)
                found = i;
        if (found < 0)
            return false;
        placed[found] = true;
        order[--left] = found;
        *run = p2o_dim_mul(lo->dims, *run, dim_item(c, "size", found));
    }
    return true;
}

/* Where in the storage each element lies: offset + sum of index * stride. */
static Value *storage_index(Lower *lo, const Call *c, Shape s)
{
    Dim    from = storage_offset(lo, c);
    Value *at = dim_is(from, 0) && s.rank ? NULL : dim_value(lo, from);
    for (int i = 0; i < s.rank; i++) {
        int64_t axes[MAX_RANK];
        for (int k = 0; k < s.rank - 1 - i; k++)
            axes[k] = k + 1;
        Value *part = iota(lo, s.at[i]);
        if (!dim_is(dim_item(c, "stride", i), 1))
            part = emit(lo, ONNX_Mul, part, dim_value(lo, dim_item(c, "stride", i)));
        if (i < s.rank - 1)
            part = emit(lo, ONNX_Unsqueeze, part, ints_const(lo, axes, (size_t)(s.rank - 1 - i)));
        at = at ? emit(lo, ONNX_Add, at, part) : part;
    }
    return s.rank ? at : squeeze(lo, at, 0);
}

static Value *lower_as_strided(Lower *lo, const Call *c)
{
    Value *x = flat(lo, tensor_arg(lo, c, "self"));
    Shape  to = out_shape(c, 0);
    int    order[MAX_RANK], n;
    Dim    run;
    if (!storage_order(lo, c, order, &n, &run))
        return emit(lo, ONNX_Gather, x, storage_index(lo, c, to));
    Dim     from = storage_offset(lo, c), *dense = NEW_N(lo->arena, Dim, (size_t)n + 1);
    Dim    *unit = p2o_shape_copy(lo->arena, to, 0);
    int64_t perm[MAX_RANK];
    for (int i = 0; i < to.rank; i++)
        unit[i] = p2o_dim_int(lo->dims, 1);
    for (int i = 0; i < n; i++) {
        int at = 0;
        for (int k = 0; k < n; k++)
            at += order[k] < order[i];
        dense[i] = unit[order[i]] = to.at[order[i]];
        perm[at] = i;
    }
    x = slice_axis(lo, x, 0, from, p2o_dim_add(lo->dims, from, run), 1);
    x = transpose(lo, reshape(lo, x, (Shape){ n, dense }), perm);
    return expand(lo, reshape(lo, x, (Shape){ to.rank, unit }), to);
}

static void shape_as_strided_scatter(Infer *in, const Call *c)
{
    Type  x = type_arg(c, "self"), src = type_arg(c, "src");
    Shape s = shape_list(in, c, "size");
    if (!strides_fit(in, c) || !must_rank(in, c, "src", s.rank))
        return;
    for (int i = 0; i < s.rank; i++)
        if (!must_equal(in, c, s.at[i], src.shape.at[i], "sizes of the view"))
            return;
    set_out(in, c, 0, x.dtype, x.shape);
}

static Value *lower_as_strided_scatter(Lower *lo, const Call *c)
{
    Value *x = tensor_arg(lo, c, "self"), *src = tensor_as(lo, c, "src", out_dtype(c, 0));
    Value *index = flat(lo, storage_index(lo, c, src->shape)), *storage = flat(lo, x);
    Value *y = scatter_with(lo, ONNX_ScatterElements, 0, storage, index, flat(lo, src), "none");
    return reshape(lo, y, x->shape);
}

/* x with the part [from, to) along a dim replaced; numbers below 0 count from the end. */
static Value *replaced(Lower *lo, Value *x, int dim, Dim from, Dim to, Value *by)
{
    Value *parts[3];
    int    n = 0;
    if (!dim_is(from, 0))
        parts[n++] = slice_axis(lo, x, dim, p2o_dim_int(lo->dims, 0), from, 1);
    parts[n++] = by;
    if (to != size_at(x, dim) && !dim_is(from, -1))
        parts[n++] = slice_axis(lo, x, dim, to, NULL, 1);
    return concat(lo, dim, parts, n);
}

/* The part of x that a slice scatter writes; false after a diagnostic. */
static bool written_slice(Infer *in, const Call *c, Shape x, int *dim, Dim *from, Dim *to,
                          Dim *step)
{
    *step = p2o_resolve(in->bind, dim_arg(c, "step"));
    if (!must_wrap(in, int_arg(c, "dim"), x.rank, dim))
        return false;
    if (p2o_dim_lt(in->dims, *step, int_dim(in, 1)) == YES) {
        rule_fail(in, "step %s", p2o_dim_text(in->dims, *step));
        return false;
    }
    needs_le(in, int_dim(in, 1), *step, "a step of at least 1");
    slice_bounds(in, dim_arg(c, "start"), dim_arg(c, "end"), x.at[*dim], from, to);
    return true;
}

static void shape_slice_scatter(Infer *in, const Call *c)
{
    Type x = type_arg(c, "self"), src = type_arg(c, "src");
    int  dim;
    Dim  from, to, step;
    if (!written_slice(in, c, x.shape, &dim, &from, &to, &step) ||
        !must_rank(in, c, "src", x.shape.rank))
        return;
    Dim   len = p2o_dim_ceildiv(in->dims, p2o_dim_sub(in->dims, to, from), step);
    Shape s = with_dim(in, x.shape, dim, len);
    for (int i = 0; i < s.rank; i++)
        if (!must_equal(in, c, s.at[i], src.shape.at[i], "sizes of the slice"))
            return;
    set_out(in, c, 0, x.dtype, x.shape);
}

/* With a step: rows of the dim at from, from + step ... are written. */
static Value *lower_slice_scatter(Lower *lo, const Call *c)
{
    Value *x = tensor_arg(lo, c, "self"), *src = tensor_as(lo, c, "src", out_dtype(c, 0));
    Dim    from, to, step = dim_arg(c, "step");
    int    dim;
    p2o_wrap_dim(int_arg(c, "dim"), rank(x), false, &dim);
    p2o_slice_range(lo->dims, dim_arg(c, "start"), dim_arg(c, "end"), size_at(x, dim), &from, &to);
    if (dim_is(step, 1))
        return replaced(lo, x, dim, from, to, src);
    Value *index = emit(lo, ONNX_Range, dim_scalar(lo, from), dim_scalar(lo, to),
                        dim_scalar(lo, step));
    Value *rows = move_dim(lo, x, dim, 0), *at = unsqueeze(lo, index, 1);
    return move_dim(lo, emit(lo, ONNX_ScatterND, rows, at, move_dim(lo, src, dim, 0)), 0, dim);
}

static void shape_select_scatter(Infer *in, const Call *c)
{
    Type x = type_arg(c, "self"), src = type_arg(c, "src");
    int  dim;
    if (!must_wrap(in, int_arg(c, "dim"), x.shape.rank, &dim))
        return;
    Shape s = without_dim(in, x.shape, dim);
    if (!must_rank(in, c, "src", s.rank))
        return;
    for (int i = 0; i < s.rank; i++)
        if (!must_equal(in, c, s.at[i], src.shape.at[i], "sizes of the selection"))
            return;
    set_out(in, c, 0, x.dtype, x.shape);
}

static Value *lower_select_scatter(Lower *lo, const Call *c)
{
    Value  *x = tensor_arg(lo, c, "self"), *src = tensor_as(lo, c, "src", out_dtype(c, 0));
    Dim     at = dim_arg(c, "index");
    int64_t low, high;
    int     dim;
    p2o_wrap_dim(int_arg(c, "dim"), rank(x), false, &dim);
    p2o_dim_range(lo->dims, at, &low, &high);
    if (high < 0 && !p2o_dim_is_int(at, NULL))
        at = p2o_dim_add(lo->dims, at, size_at(x, dim));
    else if (high >= 0 && low < 0)
        at = p2o_dim_mod(lo->dims, at, size_at(x, dim));
    Dim next = p2o_dim_add(lo->dims, at, p2o_dim_int(lo->dims, 1));
    return replaced(lo, x, dim, at, next, unsqueeze(lo, src, dim));
}

#define STRIDES "SymInt[] size, SymInt[] stride, SymInt? storage_offset=None"
#define NOT_ROWS "tensors that are not laid out row by row"

const AtenOp p2o_ops_stride[] = {
    { "diagonal(Tensor(a) self, int offset=0, int dim1=0, int dim2=1) -> Tensor(a)", shape_diagonal,
      .lower = lower_diagonal, .roles = "offset:place",
      .batch = p2o_batch_axes },
    { "diagonal_copy(Tensor self, int offset=0, int dim1=0, int dim2=1) -> Tensor", shape_diagonal,
      .lower = lower_diagonal, .roles = "offset:place" },
    { "linalg_diagonal(Tensor(a) A, *, int offset=0, int dim1=-2, int dim2=-1) -> Tensor(a)",
      shape_diagonal, .lower = lower_diagonal, .roles = "offset:place" },
    { "diag(Tensor self, int diagonal=0) -> Tensor", shape_diag, .lower = lower_diag,
      .roles = "diagonal:place" },
    { "diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor", shape_diag_embed,
      .lower = lower_diag_embed, .roles = "offset:place" },
    { "diagflat(Tensor self, int offset=0) -> Tensor", shape_diagflat, .lower = lower_diagflat },
    { "fill_diagonal(Tensor self, Scalar fill_value, bool wrap=False) -> Tensor",
      shape_fill_diagonal, .lower = lower_fill_diagonal },
    { "unfold(Tensor(a) self, int dimension, int size, int step) -> Tensor(a)", shape_unfold,
      .lower = lower_unfold, .varies = "size", .roles = "step:extent" },
    { "unfold_copy(Tensor self, int dimension, int size, int step) -> Tensor", shape_unfold,
      .lower = lower_unfold, .varies = "size", .roles = "step:extent" },
    { "as_strided(Tensor(a) self, " STRIDES ") -> Tensor(a)", shape_as_strided,
      .lower = lower_as_strided, .limits = NOT_ROWS },
    { "as_strided_copy(Tensor self, " STRIDES ") -> Tensor", shape_as_strided,
      .lower = lower_as_strided, .limits = NOT_ROWS },
    { "as_strided_scatter(Tensor self, Tensor src, " STRIDES ") -> Tensor",
      shape_as_strided_scatter, .lower = lower_as_strided_scatter, .limits = NOT_ROWS },
    { "slice_scatter(Tensor self, Tensor src, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor",
      shape_slice_scatter, .lower = lower_slice_scatter,
      .roles = "start:place end:place step:setting", .indexing = true,
      .batch = p2o_batch_together },
    { "select_scatter(Tensor self, Tensor src, int dim, SymInt index) -> Tensor",
      shape_select_scatter, .lower = lower_select_scatter, .roles = "index:place",
      .indexing = true,
      .batch = p2o_batch_together },
    { "diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1) -> Tensor",
      shape_diagonal_scatter, .lower = lower_diagonal_scatter,
      .batch = p2o_batch_together },
    { 0 },
};
