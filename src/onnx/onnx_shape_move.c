/* Rules of operators that move elements about: reshape, slice, concat, gather, scatter.
 *
 * Many take sizes from a vector of integers.  Where its contents are known they are the sizes;
 * where they are not, its length gives the rank and every size is a fresh symbol. */
#include "onnx/onnx_rules.h"

bool p2o_onnx_rule_identity(Graph *g, Node *n)
{
    const Value *x = n->in[0];
    Value       *y = n->out[0];
    (void)g;
    y->dtype = x->dtype;
    y->shape = x->shape;
    y->is_sequence = x->is_sequence;
    y->ints = x->ints;
    y->nints = x->nints;
    return true;
}

/* Contents, when they survive as they are, go along. */
static bool keep_ints(Node *n) { return p2o_onnx_set_ints(n, n->in[0]->ints, n->in[0]->nints); }

/* 0 copies the input's size unless allowzero; one -1 takes what is left. */
static bool reshape_known(Graph *g, Node *n)
{
    const Value *x = n->in[0], *to = n->in[1];
    bool         allowzero = p2o_node_int(n, "allowzero", 0) != 0;
    int          rank = (int)to->nints, rest = -1;
    Dim         *at = NEW_N(g->arena, Dim, (size_t)rank + 1), known = p2o_dim_int(g->dims, 1);

    for (int i = 0; i < rank; i++) {
        int64_t v;
        bool    number = p2o_dim_is_int(to->ints[i], &v);
        at[i] = to->ints[i];
        if (number && v == -1) {
            if (rest >= 0)
                return false;
            rest = i;
            continue;
        }
        if (number && v < 0)
            return false;
        if (number && v == 0 && !allowzero) {
            if (i >= x->shape.rank)
                return false;
            at[i] = x->shape.at[i];
        }
        known = p2o_dim_mul(g->dims, known, at[i]);
    }
    Shape out;
    if (g->sizes)
        return g->sizes->reshape(g->sizes, x->shape, (Shape){ rank, at }, &out) &&
               set_shape(g, n, 0, x->dtype, out) && keep_ints(n);
    Dim total = shape_nelem(g->dims, x->shape);
    if (rest >= 0) {
        at[rest] = p2o_onnx_quotient(g, total, known);
        if (!at[rest])
            at[rest] = p2o_onnx_fresh(g);
    } else if (total && known && p2o_dim_eq(g->dims, total, known) == NO) {
        return false;
    }
    return p2o_onnx_set(g, n, 0, x->dtype, rank, at) && keep_ints(n);
}

static bool set_fresh(Graph *g, Node *n, DType t, int rank)
{
    Dim *at = NEW_N(g->arena, Dim, (size_t)rank + 1);
    for (int i = 0; i < rank; i++)
        at[i] = p2o_onnx_fresh(g);
    return p2o_onnx_set(g, n, 0, t, rank, at);
}

bool p2o_onnx_rule_reshape(Graph *g, Node *n)
{
    int rank;
    if (n->in[1]->dtype != DT_I64 || !p2o_onnx_length(n->in[1], &rank))
        return false;
    return n->in[1]->ints ? reshape_known(g, n) : set_fresh(g, n, n->in[0]->dtype, rank);
}

bool p2o_onnx_rule_flatten(Graph *g, Node *n)
{
    const Value *x = n->in[0];
    int          rank = x->shape.rank;
    int64_t      axis = p2o_node_int(n, "axis", 1);
    if (axis < -rank || axis > rank)
        return false;
    int k = (int)(axis < 0 ? axis + rank : axis);
    Dim at[2] = { p2o_shape_product(g->dims, x->shape, 0, k),
                  p2o_shape_product(g->dims, x->shape, k, rank) };
    return p2o_onnx_set(g, n, 0, x->dtype, 2, at);
}

/* Without axes every size that is 1 goes: all of them must then be known. */
bool p2o_onnx_rule_squeeze(Graph *g, Node *n)
{
    const Value *x = n->in[0];
    uint64_t     axes;
    bool         given;
    if (!p2o_onnx_axes(g, n, 1, x->shape.rank, &axes, &given))
        return false;
    if (!given && !input_at(n, 1) && !p2o_shape_is_const(x->shape))
        return false;
    Dim *at = NEW_N(g->arena, Dim, (size_t)x->shape.rank + 1);
    int  rank = 0;
    for (int i = 0; i < x->shape.rank; i++) {
        int64_t v = 1;
        bool    number = p2o_dim_is_int(x->shape.at[i], &v);
        bool    goes = input_at(n, 1) ? axes >> i & 1 : v == 1;
        if (goes && (number ? v != 1
                            : g->sizes && !p2o_onnx_equal(g, x->shape.at[i],
                                                          p2o_dim_int(g->dims, 1), "size")))
            return false;
        if (!goes)
            at[rank++] = x->shape.at[i];
    }
    return p2o_onnx_set(g, n, 0, x->dtype, rank, at) && keep_ints(n);
}

bool p2o_onnx_rule_unsqueeze(Graph *g, Node *n)
{
    const Value *x = n->in[0];
    uint64_t     axes;
    bool         given;
    int          count;
    if (n->in[1]->shape.rank > 1)
        return false;
    if (n->in[1]->shape.rank == 0)
        count = 1;
    else if (!p2o_onnx_length(n->in[1], &count))
        return false;
    int rank = x->shape.rank + count;
    if (rank > MAX_RANK || !p2o_onnx_axes(g, n, 1, rank, &axes, &given))
        return false;
    Dim *at = NEW_N(g->arena, Dim, (size_t)rank + 1);
    for (int i = 0, from = 0; i < rank; i++)
        at[i] = axes >> i & 1 ? p2o_dim_int(g->dims, 1) : x->shape.at[from++];
    return p2o_onnx_set(g, n, 0, x->dtype, rank, at) && keep_ints(n);
}

bool p2o_onnx_rule_transpose(Graph *g, Node *n)
{
    const Value *x = n->in[0];
    const Attr  *perm = p2o_node_attr(n, "perm");
    int          rank = x->shape.rank;
    uint64_t     seen = 0;
    if (perm && (perm->kind != ATTR_INTS || perm->n != (size_t)rank))
        return false;
    Dim *at = NEW_N(g->arena, Dim, (size_t)rank + 1);
    for (int i = 0; i < rank; i++) {
        int64_t from = perm ? perm->ints[i] : rank - 1 - i;
        if (from < 0 || from >= rank || (seen >> from & 1))
            return false;
        seen |= (uint64_t)1 << from;
        at[i] = x->shape.at[from];
    }
    return p2o_onnx_set(g, n, 0, x->dtype, rank, at) && (rank > 1 || keep_ints(n));
}

/* Sizes of unknown contents do not broadcast: each position they cover is fresh. */
static bool expand_unknown(Graph *g, Node *n, int len)
{
    Shape s = n->in[0]->shape;
    int   rank = s.rank > len ? s.rank : len;
    Dim  *at = NEW_N(g->arena, Dim, (size_t)rank + 1);
    for (int i = 0; i < rank; i++)
        at[i] = i < rank - len ? s.at[i] : p2o_onnx_fresh(g);
    return p2o_onnx_set(g, n, 0, n->in[0]->dtype, rank, at);
}

bool p2o_onnx_rule_expand(Graph *g, Node *n)
{
    const Value *x = n->in[0], *to = n->in[1];
    int          len;
    Shape        s;
    if (to->dtype != DT_I64 || !p2o_onnx_length(to, &len))
        return false;
    if (!to->ints)
        return expand_unknown(g, n, len);
    if (!p2o_onnx_broadcast(g, x->shape, (Shape){ len, to->ints }, &s) ||
        !set_shape(g, n, 0, x->dtype, s))
        return false;
    int64_t count = 1;
    bool    is_long = s.rank > 1 || (s.rank == 1 && !p2o_dim_is_int(s.at[0], &count));
    if (!x->ints || x->nints != 1 || is_long || count < 0 || count > MAX_INTS)
        return keep_ints(n);
    Dim *at = NEW_N(g->arena, Dim, (size_t)count + 1);
    for (int64_t i = 0; i < count; i++)
        at[i] = x->ints[0];
    return p2o_onnx_set_ints(n, at, (size_t)count);
}

bool p2o_onnx_rule_tile(Graph *g, Node *n)
{
    const Value *x = n->in[0], *times = n->in[1];
    int          len;
    if (times->dtype != DT_I64 || !p2o_onnx_length(times, &len) || len != x->shape.rank)
        return false;
    if (!times->ints)
        return set_fresh(g, n, x->dtype, len);
    Dim *at = NEW_N(g->arena, Dim, (size_t)len + 1);
    for (int i = 0; i < len; i++)
        at[i] = p2o_dim_mul(g->dims, x->shape.at[i], times->ints[i]);
    return p2o_onnx_set(g, n, 0, x->dtype, len, at);
}

/* The axes that a list of starts, pads or sizes stands for, in its order: those of input i or of
 * the attribute "axes", else the first ones. */
static bool listed_axes(Graph *g, const Node *n, int i, int rank, int count, int *axis)
{
    const Value *v = input_at(n, i);
    size_t       nat = (size_t)count;
    int64_t     *at = v ? p2o_onnx_numbers(g, v, &nat) : NULL;
    uint64_t     seen = 0;
    if ((v && !at) || nat != (size_t)count || count > rank)
        return false;
    for (int k = 0; k < count; k++) {
        int64_t a = at ? at[k] : p2o_onnx_int_at(n, "axes", (size_t)k, k);
        if (!p2o_wrap_dim(a, rank, false, &axis[k]) || (seen >> axis[k] & 1))
            return false;
        seen |= (uint64_t)1 << axis[k];
    }
    return true;
}

bool p2o_onnx_rule_pad(Graph *g, Node *n)
{
    const Value *x = n->in[0], *pads = n->in[1], *fill = input_at(n, 2);
    int          axis[MAX_RANK];
    int64_t      len;
    if (pads->dtype != DT_I64 || pads->shape.rank != 1 ||
        !p2o_dim_is_int(pads->shape.at[0], &len) || len < 0 || len > 2 * MAX_RANK || len % 2)
        return false;
    int count = (int)len / 2;
    if ((input_at(n, 3) && g->opset < 18) || (!input_at(n, 3) && count != x->shape.rank) ||
        (fill && fill->dtype != x->dtype) || !listed_axes(g, n, 3, x->shape.rank, count, axis))
        return false;
    Dim *at = p2o_shape_copy(g->arena, x->shape, 0);
    for (int i = 0; i < count; i++) {
        Dim *d = &at[axis[i]];
        *d = !pads->ints ? p2o_onnx_fresh(g)
                         : p2o_dim_add(g->dims, *d, p2o_dim_add(g->dims, pads->ints[i],
                                                                pads->ints[count + i]));
    }
    return p2o_onnx_set(g, n, 0, x->dtype, x->shape.rank, at);
}

/* Bounds at least this far out mean "to the end", whatever the size. */
#define FAR (INT64_MAX / 2)

typedef enum Sign { BELOW_ZERO, FROM_ZERO, EITHER } Sign;

static Sign sign_of(Dims *t, Dim d)
{
    int64_t lo, hi;
    p2o_dim_range(t, d, &lo, &hi);
    return lo >= 0 ? FROM_ZERO : hi < 0 ? BELOW_ZERO : EITHER;
}

/* A bound as an index: from the end when negative, held inside [floor, ceil]. */
static Dim clamp_bound(Dims *t, Dim bound, Dim size, Dim floor, Dim ceil)
{
    int64_t v;
    if (p2o_dim_is_int(bound, &v) && v >= FAR)
        return ceil;
    if (p2o_dim_is_int(bound, &v) && v <= -FAR)
        return floor;
    switch (sign_of(t, bound)) {
    case FROM_ZERO:  return p2o_dim_min(t, bound, ceil);
    case BELOW_ZERO: return p2o_dim_max(t, p2o_dim_add(t, size, bound), floor);
    default:         return NULL;
    }
}

/* max(d, 0), left off where it is seen to be idle. */
static Dim at_least_zero(Dims *t, Dim d)
{
    return d && sign_of(t, d) == FROM_ZERO ? d : p2o_dim_max(t, d, p2o_dim_int(t, 0));
}

/* Length of start:end with step 1.  A start past the end gives 0 through the outer max, so it
 * needs no bound of its own; nor does a negative end. */
static Dim slice_span(Dims *t, Dim size, Dim start, Dim end)
{
    Dim     zero = p2o_dim_int(t, 0), from = start, to;
    int64_t v;
    bool    far = p2o_dim_is_int(start, &v) && (v >= FAR || v <= -FAR);
    if (far || sign_of(t, start) != FROM_ZERO)
        from = clamp_bound(t, start, size, zero, size);
    if (from == start && sign_of(t, end) == BELOW_ZERO && p2o_dim_is_int(end, &v) && v > -FAR)
        to = p2o_dim_add(t, size, end);
    else
        to = clamp_bound(t, end, size, zero, size);
    if (from != start && to == size && sign_of(t, start) == BELOW_ZERO && !far)
        return p2o_dim_min(t, p2o_dim_neg(t, start), size);      /* x[-3:] */
    return from && to ? at_least_zero(t, p2o_dim_sub(t, to, from)) : NULL;
}

/* NULL when it depends on a sign that is not known. */
static Dim slice_length(Dims *t, Dim size, Dim start, Dim end, int64_t step)
{
    if (step > 0) {
        Dim len = slice_span(t, size, start, end);
        return len && step > 1 ? p2o_dim_ceildiv(t, len, p2o_dim_int(t, step)) : len;
    }
    if (step == INT64_MIN)
        return NULL;
    Dim minus_one = p2o_dim_int(t, -1), last = p2o_dim_add(t, size, minus_one);
    Dim from = clamp_bound(t, start, size, minus_one, last);
    Dim to = clamp_bound(t, end, size, minus_one, last);
    if (!from || !to)
        return NULL;
    Dim span = p2o_dim_sub(t, from, to);
    return at_least_zero(t, p2o_dim_ceildiv(t, span, p2o_dim_int(t, -step)));
}

/* Contents of a slice of known contents by known numbers. */
static bool slice_ints(Graph *g, Node *n, int64_t step)
{
    const Value *x = n->in[0];
    size_t       k;
    int64_t     *start = p2o_onnx_numbers(g, n->in[1], &k), len, size = (int64_t)x->nints;
    if (!x->ints || x->shape.rank != 1 || !start || !p2o_dim_is_int(n->out[0]->shape.at[0], &len))
        return true;
    int64_t at = start[0] < 0 ? start[0] + size : start[0], top = step < 0 ? size - 1 : size;
    at = at < 0 ? 0 : at > top ? top : at;
    Dim *out = NEW_N(g->arena, Dim, (size_t)len + 1);
    for (int64_t i = 0; i < len; i++)
        out[i] = x->ints[at + i * step];
    return p2o_onnx_set_ints(n, out, (size_t)len);
}

bool p2o_onnx_rule_slice(Graph *g, Node *n)
{
    const Value *x = n->in[0], *starts = n->in[1], *ends = n->in[2], *steps = input_at(n, 4);
    int          axis[MAX_RANK], count, nend;
    size_t       nstep = 0;
    int64_t     *step = p2o_onnx_numbers(g, steps, &nstep);
    if (!is_index_type(starts->dtype) || ends->dtype != starts->dtype ||
        !p2o_onnx_length(starts, &count) || !p2o_onnx_length(ends, &nend) || nend != count ||
        !listed_axes(g, n, 3, x->shape.rank, count, axis) || (step && nstep != (size_t)count))
        return false;
    bool known = starts->ints && ends->ints && (!steps || step);
    Dim *at = p2o_shape_copy(g->arena, x->shape, 0);
    for (int i = 0; i < count; i++) {
        int64_t by = step ? step[i] : 1;
        Dim    *d = &at[axis[i]], len = NULL;
        if (by == 0)
            return false;
        if (known && g->sizes && by == 1) {
            Dim from, to;
            if (!g->sizes->slice(g->sizes, starts->ints[i], ends->ints[i], *d, &from, &to))
                return false;
            len = p2o_dim_sub(g->dims, to, from);
        } else if (known) {
            len = slice_length(g->dims, *d, starts->ints[i], ends->ints[i], by);
        }
        *d = len ? len : p2o_onnx_fresh(g);
    }
    return p2o_onnx_set(g, n, 0, x->dtype, x->shape.rank, at) &&
           (!known || count != 1 || slice_ints(g, n, step ? step[0] : 1));
}

static bool concat_ints(Graph *g, Node *n)
{
    size_t total = 0;
    for (int i = 0; i < n->nin; i++) {
        if (!n->in[i]->ints)
            return true;
        total += n->in[i]->nints;
    }
    if (total > MAX_INTS)
        return true;
    Dim   *at = NEW_N(g->arena, Dim, total + 1);
    size_t k = 0;
    for (int i = 0; i < n->nin; i++)
        for (size_t j = 0; j < n->in[i]->nints; j++)
            at[k++] = n->in[i]->ints[j];
    return p2o_onnx_set_ints(n, at, total);
}

/* Of two sizes that must be equal, the one that is a number; NULL when they cannot be. */
static Dim agreed(Graph *g, Dim a, Dim b)
{
    if (g->sizes && (!a || !p2o_onnx_equal(g, a, b, "sizes beside the axis")))
        return NULL;
    if (g->sizes)
        return a;
    bool ka = p2o_dim_is_int(a, NULL), kb = p2o_dim_is_int(b, NULL);
    return a == b ? a : ka && kb ? NULL : kb ? b : a;
}

bool p2o_onnx_rule_concat(Graph *g, Node *n)
{
    const Value *x = n->in[0];
    int          axis;
    if (!p2o_node_attr(n, "axis") || !p2o_onnx_axis(n, "axis", 0, x->shape.rank, &axis))
        return false;
    Dim *at = p2o_shape_copy(g->arena, x->shape, 0);
    for (int i = 1; i < n->nin; i++) {
        const Value *y = n->in[i];
        if (!y || y->dtype != x->dtype || y->shape.rank != x->shape.rank)
            return false;
        for (int k = 0; k < x->shape.rank; k++)
            at[k] = k == axis ? p2o_dim_add(g->dims, at[k], y->shape.at[k])
                              : agreed(g, at[k], y->shape.at[k]);
    }
    return p2o_onnx_set(g, n, 0, x->dtype, x->shape.rank, at) && concat_ints(g, n);
}

/* Piece i of `size` in n parts; the last is smaller since opset 18, before that all are equal. */
static Dim even_part(Graph *g, Dim size, int i, int n)
{
    Dim parts = p2o_dim_int(g->dims, n);
    if (g->opset < 18)
        return p2o_onnx_quotient(g, size, parts);
    Dim part = p2o_dim_exact_div(g->dims, size, parts);
    if (part)
        return part;
    part = p2o_dim_ceildiv(g->dims, size, parts);
    return i < n - 1 ? part : p2o_dim_sub(g->dims, size, dim_times(g, part, n - 1));
}

bool p2o_onnx_rule_split(Graph *g, Node *n)
{
    const Value *x = n->in[0], *sizes = input_at(n, 1);
    const Attr  *parts = p2o_node_attr(n, "num_outputs");
    int          axis;
    if (!p2o_onnx_axis(n, "axis", 0, x->shape.rank, &axis))
        return false;
    if (sizes && (sizes->dtype != DT_I64 || parts ||
                  (sizes->ints && sizes->nints != (size_t)n->nout)))
        return false;
    if (!sizes && g->opset >= 18 && (!parts || parts->i != n->nout))
        return false;
    Dim *at = p2o_shape_copy(g->arena, x->shape, 0), size = at[axis];
    if (g->sizes && sizes && sizes->ints) {
        Dim sum = p2o_dim_int(g->dims, 0);
        for (size_t i = 0; i < sizes->nints; i++)
            sum = p2o_dim_add(g->dims, sum, sizes->ints[i]);
        if (!p2o_onnx_equal(g, size, sum, "sum of the parts"))
            return false;
    }
    for (int i = 0; i < n->nout; i++) {
        at[axis] = !sizes ? even_part(g, size, i, n->nout)
                   : sizes->ints ? sizes->ints[i]
                                 : p2o_onnx_fresh(g);
        if (!p2o_onnx_set(g, n, i, x->dtype, x->shape.rank, at))
            return false;
    }
    return true;
}

/* dims [0, axis) of x, all of `middle`, dims after the axis. */
static bool set_spliced(Graph *g, Node *n, const Value *x, int axis, Shape middle)
{
    int rank = x->shape.rank - 1 + middle.rank, k = 0;
    if (rank > MAX_RANK)
        return false;
    Dim *at = NEW_N(g->arena, Dim, (size_t)rank + 1);
    for (int i = 0; i < axis; i++)
        at[k++] = x->shape.at[i];
    for (int i = 0; i < middle.rank; i++)
        at[k++] = middle.at[i];
    for (int i = axis + 1; i < x->shape.rank; i++)
        at[k++] = x->shape.at[i];
    return p2o_onnx_set(g, n, 0, x->dtype, rank, at);
}

bool p2o_onnx_rule_gather(Graph *g, Node *n)
{
    const Value *x = n->in[0], *index = n->in[1];
    int          axis;
    if (!is_index_type(index->dtype) || !p2o_onnx_axis(n, "axis", 0, x->shape.rank, &axis) ||
        !set_spliced(g, n, x, axis, index->shape))
        return false;
    size_t   count;
    int64_t *at = p2o_onnx_numbers(g, index, &count);
    if (!x->ints || x->shape.rank != 1 || !at)
        return true;
    Dim *out = NEW_N(g->arena, Dim, count + 1);
    for (size_t i = 0; i < count; i++) {
        int64_t k = at[i] < 0 ? at[i] + (int64_t)x->nints : at[i];
        if (k < 0 || k >= (int64_t)x->nints)
            return false;
        out[i] = x->ints[k];
    }
    return p2o_onnx_set_ints(n, out, count);
}

bool p2o_onnx_rule_gather_elements(Graph *g, Node *n)
{
    const Value *x = n->in[0], *index = n->in[1];
    int          axis;
    return is_index_type(index->dtype) && index->shape.rank == x->shape.rank &&
           p2o_onnx_axis(n, "axis", 0, x->shape.rank, &axis) &&
           set_shape(g, n, 0, x->dtype, index->shape);
}

/* indices[:-1] + data[batch_dims + indices[-1]:] */
bool p2o_onnx_rule_gather_nd(Graph *g, Node *n)
{
    const Value *x = n->in[0], *index = n->in[1];
    int64_t      batch = p2o_node_int(n, "batch_dims", 0), depth;
    int          ri = index->shape.rank, rx = x->shape.rank;
    if (index->dtype != DT_I64 || ri < 1 || rx < 1 || batch < 0 || batch >= ri || batch >= rx ||
        !p2o_dim_is_int(index->shape.at[ri - 1], &depth) || depth < 0 || depth > rx - batch)
        return false;
    int from = (int)(batch + depth), rank = ri - 1 + rx - from;
    Dim at[2 * MAX_RANK];
    for (int i = 0; i < rank; i++)
        at[i] = i < ri - 1 ? index->shape.at[i] : x->shape.at[from + i - (ri - 1)];
    return p2o_onnx_set(g, n, 0, x->dtype, rank, at);
}

static bool has_reduction(const Graph *g, const Node *n)
{
    static const char *const names[] = { "none", "add", "mul", "max", "min" };
    size_t known = g->opset >= 18 ? COUNT_OF(names) : 3;
    for (size_t i = 0; i < known; i++)
        if (p2o_onnx_str_is(n, "reduction", "none", names[i]))
            return true;
    return false;
}

bool p2o_onnx_rule_scatter_elements(Graph *g, Node *n)
{
    const Value *x = n->in[0], *index = n->in[1], *src = n->in[2];
    int          axis;
    return is_index_type(index->dtype) && src->dtype == x->dtype && has_reduction(g, n) &&
           index->shape.rank == x->shape.rank && src->shape.rank == x->shape.rank &&
           p2o_onnx_axis(n, "axis", 0, x->shape.rank, &axis) &&
           p2o_onnx_settle_shape(g, src->shape, index->shape, "updates against indices") &&
           set_like(g, n, 0, x);
}

bool p2o_onnx_rule_scatter_nd(Graph *g, Node *n)
{
    const Value *x = n->in[0], *index = n->in[1], *src = n->in[2];
    int64_t      depth;
    int          ri = index->shape.rank;
    return index->dtype == DT_I64 && src->dtype == x->dtype && has_reduction(g, n) && ri >= 1 &&
           p2o_dim_is_int(index->shape.at[ri - 1], &depth) && depth <= x->shape.rank &&
           depth >= 0 && src->shape.rank == ri - 1 + x->shape.rank - depth &&
           p2o_onnx_settle_shape(g, (Shape){ ri - 1, src->shape.at },
                                 (Shape){ ri - 1, index->shape.at }, "updates against indices") &&
           p2o_onnx_settle_shape(g, (Shape){ x->shape.rank - (int)depth, src->shape.at + ri - 1 },
                                 (Shape){ x->shape.rank - (int)depth, x->shape.at + depth },
                                 "updates against data") &&
           set_like(g, n, 0, x);
}

bool p2o_onnx_rule_compress(Graph *g, Node *n)
{
    const Value *x = n->in[0];
    int          axis;
    if (n->in[1]->dtype != DT_BOOL || n->in[1]->shape.rank != 1)
        return false;
    Dim count = p2o_onnx_fresh(g);
    if (!p2o_node_attr(n, "axis"))
        return p2o_onnx_set(g, n, 0, x->dtype, 1, &count);
    return p2o_onnx_axis(n, "axis", 0, x->shape.rank, &axis) &&
           set_spliced(g, n, x, axis, (Shape){ 1, &count });
}

bool p2o_onnx_rule_depth_to_space(Graph *g, Node *n)
{
    const Value *x = n->in[0];
    int64_t      b = p2o_node_int(n, "blocksize", 0);
    if (x->shape.rank != 4 || b < 1 || b > INT32_MAX)
        return false;
    const Dim *d = x->shape.at;
    Dim        at[4] = { d[0], p2o_onnx_quotient(g, d[1], p2o_dim_int(g->dims, b * b)),
                         dim_times(g, d[2], b), dim_times(g, d[3], b) };
    return p2o_onnx_set(g, n, 0, x->dtype, 4, at);
}

bool p2o_onnx_rule_space_to_depth(Graph *g, Node *n)
{
    const Value *x = n->in[0];
    int64_t      b = p2o_node_int(n, "blocksize", 0);
    if (x->shape.rank != 4 || b < 1 || b > INT32_MAX)
        return false;
    const Dim *d = x->shape.at;
    Dim        by = p2o_dim_int(g->dims, b);
    Dim        at[4] = { d[0], dim_times(g, d[1], b * b), p2o_onnx_quotient(g, d[2], by),
                         p2o_onnx_quotient(g, d[3], by) };
    return p2o_onnx_set(g, n, 0, x->dtype, 4, at);
}

bool p2o_onnx_rule_reverse_sequence(Graph *g, Node *n)
{
    const Value *x = n->in[0], *lens = n->in[1];
    int64_t      batch = p2o_node_int(n, "batch_axis", 1);
    if (x->shape.rank < 2 || lens->dtype != DT_I64 || lens->shape.rank != 1 || batch < 0 ||
        batch > 1)
        return false;
    return (!g->sizes || p2o_onnx_equal(g, x->shape.at[batch], lens->shape.at[0], "batch")) &&
           set_like(g, n, 0, x);
}

bool p2o_onnx_rule_center_crop_pad(Graph *g, Node *n)
{
    const Value *x = n->in[0], *sizes = n->in[1];
    const Attr  *axes = p2o_node_attr(n, "axes");
    int          axis[MAX_RANK], count;
    if (!is_index_type(sizes->dtype) || !p2o_onnx_length(sizes, &count) ||
        (axes ? axes->n != (size_t)count : count != x->shape.rank) ||
        !listed_axes(g, n, 2, x->shape.rank, count, axis))
        return false;
    Dim *at = p2o_shape_copy(g->arena, x->shape, 0);
    for (int i = 0; i < count; i++)
        at[axis[i]] = sizes->ints ? sizes->ints[i] : p2o_onnx_fresh(g);
    return p2o_onnx_set(g, n, 0, x->dtype, x->shape.rank, at);
}
