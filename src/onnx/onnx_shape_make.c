/* Rules of operators that make tensors: from sizes, numbers, randomness, or by looking at data.
 *
 * What is counted in the data (NonZero, Unique) is a fresh symbol. */
#include "onnx/onnx_rules.h"

/* start and end of Shape are held inside [0, rank], from the end when negative. */
static int shape_bound(const Node *n, const char *name, int otherwise, int rank)
{
    int64_t v = p2o_node_int(n, name, otherwise);
    if (v < 0)
        v += rank;
    return v < 0 ? 0 : v > rank ? rank : (int)v;
}

bool p2o_onnx_rule_shape(Graph *g, Node *n)
{
    Shape s = n->in[0]->shape;
    int   from = shape_bound(n, "start", 0, s.rank), to = shape_bound(n, "end", s.rank, s.rank);
    int   len = to > from ? to - from : 0;
    Dim   size = p2o_dim_int(g->dims, len);
    Dim  *at = NEW_N(g->arena, Dim, (size_t)len + 1);
    for (int i = 0; i < len; i++)
        at[i] = s.at[from + i];
    return p2o_onnx_set(g, n, 0, DT_I64, 1, &size) && p2o_onnx_set_ints(n, at, (size_t)len);
}

bool p2o_onnx_rule_size(Graph *g, Node *n)
{
    Dim *at = NEW_N(g->arena, Dim, 1);
    at[0] = shape_nelem(g->dims, n->in[0]->shape);
    return p2o_onnx_set(g, n, 0, DT_I64, 0, NULL) && p2o_onnx_set_ints(n, at, 1);
}

/* max(0, ceil((limit - start) / delta)) over floats; false when not all are constants. */
static bool count_float_range(const Node *n, int64_t *count)
{
    double v[3];
    for (int i = 0; i < 3; i++)
        if (!n->in[i]->tensor || !p2o_tensor_get_f64(n->in[i]->tensor, 0, &v[i]))
            return false;
    double steps = (v[1] - v[0]) / v[2];
    if (!(steps < 9e15))                 /* also refuses NaN */
        return false;
    *count = steps > 0 ? (int64_t)steps : 0;
    *count += (double)*count < steps;
    return true;
}

static bool range_of_ints(Graph *g, Node *n, DType t)
{
    Dims   *d = g->dims;
    Dim     start = n->in[0]->ints[0], limit = n->in[1]->ints[0], delta = n->in[2]->ints[0];
    int64_t by, first, len;
    if (!p2o_dim_is_int(delta, &by)) {
        Dim any = p2o_onnx_fresh(g);
        return p2o_onnx_set(g, n, 0, t, 1, &any);
    }
    if (by == 0)
        return false;
    Dim steps = p2o_dim_ceildiv(d, p2o_dim_sub(d, limit, start), delta), zero = p2o_dim_int(d, 0);
    Dim count = steps && p2o_dim_le(d, zero, steps) == YES ? steps : p2o_dim_max(d, steps, zero);
    if (!p2o_onnx_set(g, n, 0, t, 1, &count))
        return false;
    if (!p2o_dim_is_int(start, &first) || !p2o_dim_is_int(count, &len) || len > MAX_INTS)
        return true;
    Dim *at = NEW_N(g->arena, Dim, (size_t)len + 1);
    for (int64_t i = 0; i < len; i++)
        at[i] = dim_plus(g, dim_times(g, delta, i), first);
    return p2o_onnx_set_ints(n, at, (size_t)len);
}

bool p2o_onnx_rule_range(Graph *g, Node *n)
{
    DType   t = n->in[0]->dtype;
    bool    known = true;
    int64_t count;
    for (int i = 0; i < 3; i++) {
        if (n->in[i]->dtype != t || !is_numeric_type(t) || n->in[i]->shape.rank != 0)
            return false;
        known &= n->in[i]->ints != NULL;
    }
    if (known)
        return range_of_ints(g, n, t);
    Dim len = is_real_type(t) && count_float_range(n, &count) ? p2o_dim_int(g->dims, count)
                                                              : p2o_onnx_fresh(g);
    return p2o_onnx_set(g, n, 0, t, 1, &len);
}

/* Sizes from a vector: its contents, or fresh symbols where they are not known. */
static bool set_sized(Graph *g, Node *n, DType t, const Value *sizes)
{
    int rank;
    if (sizes->dtype != DT_I64 || !p2o_onnx_length(sizes, &rank))
        return false;
    if (sizes->ints)
        return p2o_onnx_set(g, n, 0, t, rank, sizes->ints);
    Dim *at = NEW_N(g->arena, Dim, (size_t)rank + 1);
    for (int i = 0; i < rank; i++)
        at[i] = p2o_onnx_fresh(g);
    return p2o_onnx_set(g, n, 0, t, rank, at);
}

bool p2o_onnx_rule_constant_of_shape(Graph *g, Node *n)
{
    const Attr *value = p2o_node_attr(n, "value");
    int64_t     fill = 0, count = 1;
    if (value && value->kind != ATTR_TENSOR)
        return false;
    if (!set_sized(g, n, value ? value->tensor->dtype : DT_F32, n->in[0]))
        return false;
    Shape s = n->out[0]->shape;
    if (!value || !p2o_tensor_get_i64(value->tensor, 0, &fill) || s.rank > 1 ||
        (s.rank == 1 && !p2o_dim_is_int(s.at[0], &count)) || count < 0 || count > MAX_INTS)
        return true;
    Dim *at = NEW_N(g->arena, Dim, (size_t)count + 1);
    for (int64_t i = 0; i < count; i++)
        at[i] = p2o_dim_int(g->dims, fill);
    return p2o_onnx_set_ints(n, at, (size_t)count);
}

bool p2o_onnx_rule_constant(Graph *g, Node *n)
{
    if (n->nattr != 1)
        return false;
    const Attr *a = n->attrs;
    Dim         len = p2o_dim_int(g->dims, (int64_t)a->n);
    if (same(a->name, "value") && a->kind == ATTR_TENSOR) {
        p2o_onnx_type_constant(g, n->out[0], a->tensor);
        return true;
    }
    if (same(a->name, "value_float") && a->kind == ATTR_FLOAT)
        return p2o_onnx_set(g, n, 0, DT_F32, 0, NULL);
    if (same(a->name, "value_floats") && a->kind == ATTR_FLOATS)
        return p2o_onnx_set(g, n, 0, DT_F32, 1, &len);
    bool one = same(a->name, "value_int") && a->kind == ATTR_INT;
    if (!one && !(same(a->name, "value_ints") && a->kind == ATTR_INTS))
        return false;
    size_t count = one ? 1 : a->n;
    Dim   *at = NEW_N(g->arena, Dim, count + 1);
    for (size_t i = 0; i < count && count <= MAX_INTS; i++)
        at[i] = p2o_dim_int(g->dims, one ? a->i : a->ints[i]);
    return p2o_onnx_set(g, n, 0, DT_I64, !one, &len) && p2o_onnx_set_ints(n, at, count);
}

bool p2o_onnx_rule_non_zero(Graph *g, Node *n)
{
    int rank = n->in[0]->shape.rank;
    if (rank == 0)
        return false;
    Dim at[2] = { p2o_dim_int(g->dims, rank), p2o_onnx_fresh(g) };
    return p2o_onnx_set(g, n, 0, DT_I64, 2, at);
}

bool p2o_onnx_rule_top_k(Graph *g, Node *n)
{
    const Value *x = n->in[0], *k = n->in[1];
    int          axis;
    if (k->dtype != DT_I64 || !is_numeric_type(x->dtype) ||
        !p2o_onnx_axis(n, "axis", -1, x->shape.rank, &axis))
        return false;
    Dim *at = p2o_shape_copy(g->arena, x->shape, 0);
    at[axis] = p2o_onnx_scalar(g, k);
    return p2o_onnx_set(g, n, 0, x->dtype, x->shape.rank, at) &&
           p2o_onnx_set(g, n, 1, DT_I64, x->shape.rank, at);
}

bool p2o_onnx_rule_unique(Graph *g, Node *n)
{
    const Value *x = n->in[0];
    int          axis = 0, rank = 1;
    Dim          total = shape_nelem(g->dims, x->shape), count = p2o_onnx_fresh(g);
    Dim         *at = p2o_shape_copy(g->arena, x->shape, 1);
    if (p2o_node_attr(n, "axis")) {
        if (!p2o_onnx_axis(n, "axis", 0, x->shape.rank, &axis))
            return false;
        rank = x->shape.rank;
        total = at[axis];
    }
    at[axis] = count;
    return p2o_onnx_set(g, n, 0, x->dtype, rank, at) && p2o_onnx_set(g, n, 1, DT_I64, 1, &count) &&
           p2o_onnx_set(g, n, 2, DT_I64, 1, &total) && p2o_onnx_set(g, n, 3, DT_I64, 1, &count);
}

bool p2o_onnx_rule_one_hot(Graph *g, Node *n)
{
    const Value *index = n->in[0], *depth = n->in[1], *values = n->in[2];
    int          rank = index->shape.rank + 1, axis;
    if (rank > MAX_RANK || !is_numeric_type(depth->dtype) ||
        !p2o_onnx_axis(n, "axis", -1, rank, &axis))
        return false;
    Dim *at = NEW_N(g->arena, Dim, (size_t)rank + 1);
    for (int i = 0, from = 0; i < rank; i++)
        at[i] = i == axis ? p2o_onnx_scalar(g, depth) : index->shape.at[from++];
    return p2o_onnx_set(g, n, 0, values->dtype, rank, at);
}

bool p2o_onnx_rule_eye_like(Graph *g, Node *n)
{
    const Value *x = n->in[0];
    return x->shape.rank == 2 && set_shape(g, n, 0, p2o_onnx_dtype(n, "dtype", x->dtype), x->shape);
}

bool p2o_onnx_rule_random(Graph *g, Node *n)
{
    const Attr *a = p2o_node_attr(n, "shape");
    Dim         at[MAX_RANK];
    if (!a || a->kind != ATTR_INTS || a->n > MAX_RANK)
        return false;
    for (size_t i = 0; i < a->n; i++)
        at[i] = p2o_dim_int(g->dims, a->ints[i]);
    return p2o_onnx_set(g, n, 0, p2o_onnx_dtype(n, "dtype", DT_F32), (int)a->n, at);
}

bool p2o_onnx_rule_random_like(Graph *g, Node *n)
{
    return set_shape(g, n, 0, p2o_onnx_dtype(n, "dtype", n->in[0]->dtype), n->in[0]->shape);
}

bool p2o_onnx_rule_multinomial(Graph *g, Node *n)
{
    const Value *x = n->in[0];
    if (x->shape.rank != 2)
        return false;
    Dim at[2] = { x->shape.at[0], p2o_dim_int(g->dims, p2o_node_int(n, "sample_size", 1)) };
    return p2o_onnx_set(g, n, 0, p2o_onnx_dtype(n, "dtype", DT_I32), 2, at);
}

bool p2o_onnx_rule_window(Graph *g, Node *n)
{
    Dim len = p2o_onnx_scalar(g, n->in[0]);
    return is_index_type(n->in[0]->dtype) &&
           p2o_onnx_set(g, n, 0, p2o_onnx_dtype(n, "output_datatype", DT_F32), 1, &len);
}

/* Bins of a spectrum that is symmetric: n // 2 + 1. */
static Dim half_spectrum(Graph *g, Dim len)
{
    return dim_plus(g, p2o_dim_floordiv(g->dims, len, p2o_dim_int(g->dims, 2)), 1);
}

bool p2o_onnx_rule_mel_weights(Graph *g, Node *n)
{
    Dim at[2] = { half_spectrum(g, p2o_onnx_scalar(g, n->in[1])), p2o_onnx_scalar(g, n->in[0]) };
    return p2o_onnx_set(g, n, 0, p2o_onnx_dtype(n, "output_datatype", DT_F32), 2, at);
}

/* Opset 20 moved the axis to an input, with -2 for 1 as its default. */
bool p2o_onnx_rule_dft(Graph *g, Node *n)
{
    const Value *x = n->in[0], *len = input_at(n, 1), *ax = input_at(n, 2);
    int          rank = x->shape.rank, axis;
    int64_t      which = p2o_node_int(n, "axis", g->opset >= 20 ? -2 : 1);
    if (ax && !(ax->ints && ax->nints == 1 && p2o_dim_is_int(ax->ints[0], &which)))
        return false;
    if (rank < 2 || !p2o_wrap_dim(which, rank, false, &axis) || axis == rank - 1)
        return false;
    Dim *at = p2o_shape_copy(g->arena, x->shape, 0);
    bool half = p2o_node_int(n, "onesided", 0) != 0, inverse = p2o_node_int(n, "inverse", 0) != 0;
    if (half && inverse)                /* half a spectrum back to a real signal */
        at[axis] = dim_times(g, dim_plus(g, at[axis], -1), 2);
    if (len)
        at[axis] = p2o_onnx_scalar(g, len);
    if (half && !inverse)
        at[axis] = half_spectrum(g, at[axis]);
    at[rank - 1] = p2o_dim_int(g->dims, half && inverse ? 1 : 2);
    return is_real_type(x->dtype) && p2o_onnx_set(g, n, 0, x->dtype, rank, at);
}

bool p2o_onnx_rule_stft(Graph *g, Node *n)
{
    const Value *x = n->in[0], *window = input_at(n, 2), *len = input_at(n, 3);
    if (x->shape.rank < 2 || x->shape.rank > 3 || !is_real_type(x->dtype) || (!window && !len) ||
        (window && window->shape.rank != 1))
        return false;
    Dim step = p2o_onnx_scalar(g, n->in[1]);
    Dim frame = len ? p2o_onnx_scalar(g, len) : window->shape.at[0];
    Dim room = p2o_dim_sub(g->dims, x->shape.at[1], frame);
    Dim at[4] = { x->shape.at[0], dim_plus(g, p2o_dim_floordiv(g->dims, room, step), 1),
                  p2o_node_int(n, "onesided", 1) ? half_spectrum(g, frame) : frame,
                  p2o_dim_int(g->dims, 2) };
    return p2o_onnx_set(g, n, 0, x->dtype, 4, at);
}
