/* What counts elements in memory rather than along dims: resizing, and the joining of chunks. */
#include "aten/lower.h"

static void shape_resize(Infer *in, const Call *c)
{
    Type  x = type_arg(c, "self");
    Shape to = names_arg(c, "size") ? shape_list(in, c, "size") : shape_arg(c, "the_template");
    if (has_arg(c, "memory_format"))
        rule_unsupported(in, "memory_format");
    else if (p2o_dim_le(in->dims, shape_nelem(in->dims, to), shape_nelem(in->dims, x.shape)) != YES)
        rule_unsupported(in, "more elements than there were");
    else
        set_out(in, c, 0, x.dtype, to);
}

/* The first elements, in a new shape. */
static Value *lower_resize(Lower *lo, const Call *c)
{
    Value *x = tensor_arg(lo, c, "self");
    Dim    n = shape_nelem(lo->dims, out_shape(c, 0));
    if (p2o_dim_eq(lo->dims, n, shape_nelem(lo->dims, x->shape)) != YES)
        x = slice_axis(lo, flat(lo, x), 0, p2o_dim_int(lo->dims, 0), n, 1);
    return reshape(lo, x, out_shape(c, 0));
}

/* The dim of each tensor is filled up with zeros to chunks of one size; all that follows in a chunk
 * is joined. */
static void shape_chunk_cat(Infer *in, const Call *c)
{
    int64_t   chunks = int_arg(c, "num_chunks");
    Dims     *t = in->dims;
    Dim       total = int_dim(in, 0), n = int_dim(in, chunks);
    Promotion p = { 0 };
    int       dim = 0, first = 0;
    Shape     head = { 0 };
    for (int i = 0; i < list_len(c, "tensors"); i++) {
        Type x = type_item(c, "tensors", i);
        if (chunks < 1 || x.shape.rank == 0 ||
            !must_wrap(in, int_arg(c, "dim"), x.shape.rank, &dim) || (i && dim != first)) {
            rule_fail(in, "%lld chunks of rank %d", (long long)chunks, x.shape.rank);
            return;
        }
        for (int k = 0; i && k < dim; k++)
            if (!must_equal(in, c, x.shape.at[k], head.at[k], "dims before the chunks"))
                return;
        if (i == 0) {
            first = dim;
            head = slice_shape(x.shape, 0, dim);
        }
        promote_type(&p, x);
        Dim size = p2o_dim_floordiv(t, p2o_dim_add(t, x.shape.at[dim], int_dim(in, chunks - 1)), n);
        total = p2o_dim_add(
            t, total, p2o_dim_mul(t, size, p2o_shape_product(t, x.shape, dim + 1, x.shape.rank)));
    }
    Shape s = insert_dim(in, head, head.rank, n);
    set_out(in, c, 0, promoted(&p), insert_dim(in, s, s.rank, total));
}

static Value *lower_chunk_cat(Lower *lo, const Call *c)
{
    Shape   to = out_shape(c, 0);
    int     n = list_len(c, "tensors"), dim = to.rank - 2;
    Dims   *t = lo->dims;
    Dim     chunks = to.at[dim], less = p2o_dim_sub(t, chunks, p2o_dim_int(t, 1));
    Value **part = NEW_N(lo->arena, Value *, (size_t)n);
    for (int i = 0; i < n; i++) {
        Value *x = cast(lo, tensor_item(lo, c, "tensors", i), out_dtype(c, 0));
        Dim    size = p2o_dim_floordiv(t, p2o_dim_add(t, size_at(x, dim), less), chunks);
        Dim   *at = p2o_shape_copy(lo->arena, to, 0);
        at[dim + 1] = p2o_dim_mul(t, size, p2o_shape_product(t, x->shape, dim + 1, rank(x)));
        Dim missing = p2o_dim_sub(t, p2o_dim_mul(t, size, chunks), size_at(x, dim));
        x = pad_axes(lo, x, dim, 1, (Dim[]){ p2o_dim_int(t, 0), missing }, 0);
        part[i] = reshape(lo, x, (Shape){ to.rank, at });
    }
    return concat(lo, dim + 1, part, n);
}

const AtenOp p2o_ops_storage[] = {
    { "resize(Tensor self, SymInt[] size, *, MemoryFormat? memory_format=None) -> Tensor",
      shape_resize, .lower = lower_resize, .limits = "growth; views" },
    { "resize_as(Tensor self, Tensor the_template, *, MemoryFormat? memory_format=None) -> Tensor",
      shape_resize, .lower = lower_resize, .limits = "growth; views" },
    { "_chunk_cat(Tensor[] tensors, int dim, int num_chunks) -> Tensor", shape_chunk_cat,
      .lower = lower_chunk_cat },
    { 0 },
};
