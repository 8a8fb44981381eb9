#include "ir/shape.h"

Dim *p2o_shape_copy(Arena *a, Shape s, int extra)
{
    Dim *d = NEW_N(a, Dim, (size_t)(s.rank + extra) + 1);
    for (int i = 0; i < s.rank; i++)
        d[i] = s.at[i];
    return d;
}

Shape p2o_shape_insert(Arena *a, Shape s, int i, Dim d)
{
    Dim *at = p2o_shape_copy(a, s, 1);
    for (int k = s.rank; k > i; k--)
        at[k] = at[k - 1];
    at[i] = d;
    return (Shape){ s.rank + 1, at };
}

bool p2o_shape_same(Shape a, Shape b)
{
    if (a.rank != b.rank)
        return false;
    for (int i = 0; i < a.rank; i++)
        if (a.at[i] != b.at[i])
            return false;
    return true;
}

Dim p2o_shape_product(Dims *t, Shape s, int from, int to)
{
    Dim p = p2o_dim_int(t, 1);
    for (int i = from; i < to; i++) {
        int64_t v;
        if (p2o_dim_is_int(s.at[i], &v) && v == 0)
            return s.at[i];         /* other dims may be near 2^63: zero wins before overflow */
    }
    for (int i = from; i < to; i++)
        p = p2o_dim_mul(t, p, s.at[i]);
    return p;
}

bool p2o_shape_is_const(Shape s)
{
    for (int i = 0; i < s.rank; i++)
        if (!p2o_dim_is_int(s.at[i], NULL))
            return false;
    return true;
}

const char *p2o_shape_text(Dims *t, Shape s)
{
    Buf b = { .arena = p2o_dims_arena(t) };
    for (int i = 0; i < s.rank; i++)
        p2o_putf(&b, "%s%s", i ? ", " : "", p2o_dim_text(t, s.at[i]));
    return b.at ? b.at : "";
}

bool p2o_wrap_dim(int64_t dim, int rank, bool scalar_ok, int *out)
{
    int n = rank == 0 && scalar_ok ? 1 : rank;
    if (dim < -n || dim >= n)
        return false;
    *out = (int)(dim < 0 ? dim + n : dim);
    return true;
}

static Dim clamp_index(Dims *t, Dim i, Dim size)
{
    int64_t low, high;
    p2o_dim_assumed_range(t, i, &low, &high);
    if (low >= 0)
        return p2o_dim_min(t, i, size);
    int64_t hint;                       /* the capture knew the sign; a size of 0 may turn it */
    if (low < 0 && high >= 0 && p2o_dim_hint(t, i, &hint) && hint >= 0)
        return p2o_dim_min(t, i, size);
    if (high < 0 || (p2o_dim_hint(t, i, &hint) && hint < 0))
        return p2o_dim_max(t, p2o_dim_add(t, i, size), p2o_dim_int(t, 0));
    /* Either sign: the size is added where i < 0, which max(0, min(1, -i)) says as a number. */
    Dim zero = p2o_dim_int(t, 0), one = p2o_dim_int(t, 1);
    Dim below = p2o_dim_max(t, zero, p2o_dim_min(t, one, p2o_dim_neg(t, i)));
    Dim from_front = p2o_dim_add(t, i, p2o_dim_mul(t, size, below));
    return p2o_dim_min(t, p2o_dim_max(t, from_front, zero), size);
}

void p2o_slice_range(Dims *t, Dim start, Dim end, Dim size, Dim *from, Dim *to)
{
    *from = start ? clamp_index(t, start, size) : p2o_dim_int(t, 0);
    *to = end ? clamp_index(t, end, size) : size;
    if (p2o_dim_le(t, *from, *to) != YES)
        *to = p2o_dim_max(t, *to, *from);
    *from = p2o_dim_assume(t, *from, 1);
    *to = p2o_dim_assume(t, *to, 1);
}
