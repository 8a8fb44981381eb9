/* Rules of elementwise operators and reductions.
 *
 * Arithmetic on known contents folds into Dims here, element by element with broadcasting.  ONNX
 * divides integers towards zero while Dims divide towards minus infinity, so Div folds only where
 * the two agree. */
#include "onnx/onnx_rules.h"

typedef bool TypeTest(DType t);
typedef Dim  DimOp(Dims *t, Dim a, Dim b);

static bool is_any_type(DType t) { return t != DT_NONE; }
static bool is_bool_type(DType t) { return t == DT_BOOL; }
static bool is_int_type(DType t) { return is_int(t); }
static bool is_float_type(DType t) { return is_real_type(t); }
static bool is_number_type(DType t) { return is_numeric_type(t); }

static bool same_as_input(Graph *g, Node *n, TypeTest *test)
{
    return test(n->in[0]->dtype) && set_like(g, n, 0, n->in[0]);
}

bool p2o_onnx_rule_same_float(Graph *g, Node *n) { return same_as_input(g, n, is_float_type); }
bool p2o_onnx_rule_same_number(Graph *g, Node *n) { return same_as_input(g, n, is_number_type); }
bool p2o_onnx_rule_same_bool(Graph *g, Node *n) { return same_as_input(g, n, is_bool_type); }
bool p2o_onnx_rule_same_int(Graph *g, Node *n) { return same_as_input(g, n, is_int_type); }

bool p2o_onnx_rule_float_test(Graph *g, Node *n)
{
    return is_float(n->in[0]->dtype) && set_shape(g, n, 0, DT_BOOL, n->in[0]->shape);
}

static Dim dim_abs(Dims *t, Dim a)
{
    int64_t lo, hi;
    p2o_dim_range(t, a, &lo, &hi);
    if (lo >= 0)
        return a;
    Dim minus = p2o_dim_neg(t, a);
    return hi <= 0 ? minus : p2o_dim_max(t, a, minus);
}

static bool fold_unary(Graph *g, Node *n, Dim (*op)(Dims *, Dim))
{
    const Value *x = n->in[0];
    if (!x->ints)
        return true;
    Dim *at = NEW_N(g->arena, Dim, x->nints + 1);
    for (size_t i = 0; i < x->nints; i++)
        at[i] = op(g->dims, x->ints[i]);
    return p2o_onnx_set_ints(n, at, x->nints);
}

bool p2o_onnx_rule_abs(Graph *g, Node *n)
{
    return same_as_input(g, n, is_number_type) && fold_unary(g, n, dim_abs);
}

bool p2o_onnx_rule_neg(Graph *g, Node *n)
{
    return same_as_input(g, n, is_number_type) && fold_unary(g, n, p2o_dim_neg);
}

/* All inputs of one type that passes the test, broadcast together. */
static bool broadcast_all(Graph *g, Node *n, TypeTest *test, DType *t, Shape *out)
{
    *t = n->in[0]->dtype;
    *out = n->in[0]->shape;
    for (int i = 0; i < n->nin; i++)
        if (!n->in[i] || n->in[i]->dtype != *t ||
            !p2o_onnx_broadcast(g, *out, n->in[i]->shape, out))
            return false;
    return test(*t);
}

static bool broadcast_same(Graph *g, Node *n, TypeTest *test)
{
    DType t;
    Shape s;
    return broadcast_all(g, n, test, &t, &s) && set_shape(g, n, 0, t, s);
}

static bool broadcast_to_bool(Graph *g, Node *n, TypeTest *test)
{
    DType t;
    Shape s;
    return broadcast_all(g, n, test, &t, &s) && set_shape(g, n, 0, DT_BOOL, s);
}

/* Element i of contents that are repeated when there is only one. */
static Dim content_at(const Value *v, size_t i) { return v->ints[v->nints == 1 ? 0 : i]; }

/* The number of elements of output 0 when it is a scalar or a short vector of known length. */
static bool short_length(const Node *n, size_t *len)
{
    Shape   s = n->out[0]->shape;
    int64_t v = 1;
    if (s.rank > 1 || (s.rank == 1 && (!p2o_dim_is_int(s.at[0], &v) || v < 0 || v > MAX_INTS)))
        return false;
    *len = (size_t)v;
    return true;
}

/* A left fold of op over the inputs' contents. */
static bool fold_inputs(Graph *g, Node *n, DimOp *op)
{
    size_t len;
    for (int i = 0; i < n->nin; i++)
        if (!n->in[i]->ints)
            return true;
    if (!short_length(n, &len))
        return true;
    Dim *at = NEW_N(g->arena, Dim, len + 1);
    for (size_t i = 0; i < len; i++) {
        at[i] = content_at(n->in[0], i);
        for (int k = 1; k < n->nin; k++)
            at[i] = op(g->dims, at[i], content_at(n->in[k], i));
    }
    return p2o_onnx_set_ints(n, at, len);
}

static bool is_non_negative(Dims *t, Dim d)
{
    int64_t lo, hi;
    if (!d)
        return false;
    p2o_dim_range(t, d, &lo, &hi);
    return lo >= 0;
}

static Dim dim_truncdiv(Dims *t, Dim a, Dim b)
{
    int64_t x, y;
    if (p2o_dim_is_int(a, &x) && p2o_dim_is_int(b, &y))
        return y == 0 || (x == INT64_MIN && y == -1) ? NULL : p2o_dim_int(t, x / y);
    Dim q = p2o_dim_exact_div(t, a, b);
    if (q)
        return q;
    return is_non_negative(t, a) && is_non_negative(t, b) ? p2o_dim_floordiv(t, a, b) : NULL;
}

static Dim dim_fmod(Dims *t, Dim a, Dim b)
{
    return is_non_negative(t, a) && is_non_negative(t, b) ? p2o_dim_mod(t, a, b) : NULL;
}

static bool arithmetic(Graph *g, Node *n, DimOp *op)
{
    return broadcast_same(g, n, is_number_type) && fold_inputs(g, n, op);
}

bool p2o_onnx_rule_add(Graph *g, Node *n) { return arithmetic(g, n, p2o_dim_add); }
bool p2o_onnx_rule_sub(Graph *g, Node *n) { return arithmetic(g, n, p2o_dim_sub); }
bool p2o_onnx_rule_mul(Graph *g, Node *n) { return arithmetic(g, n, p2o_dim_mul); }
bool p2o_onnx_rule_div(Graph *g, Node *n) { return arithmetic(g, n, dim_truncdiv); }
bool p2o_onnx_rule_min(Graph *g, Node *n) { return arithmetic(g, n, p2o_dim_min); }
bool p2o_onnx_rule_max(Graph *g, Node *n) { return arithmetic(g, n, p2o_dim_max); }
bool p2o_onnx_rule_bitwise(Graph *g, Node *n) { return broadcast_same(g, n, is_int_type); }
bool p2o_onnx_rule_float_sum(Graph *g, Node *n) { return broadcast_same(g, n, is_float_type); }
bool p2o_onnx_rule_logical(Graph *g, Node *n) { return broadcast_same(g, n, is_bool_type); }
bool p2o_onnx_rule_equal(Graph *g, Node *n) { return broadcast_to_bool(g, n, is_any_type); }
bool p2o_onnx_rule_compare(Graph *g, Node *n) { return broadcast_to_bool(g, n, is_number_type); }

/* Without fmod the sign is the divisor's, as Python's; ONNX demands fmod for floats. */
bool p2o_onnx_rule_mod(Graph *g, Node *n)
{
    bool fmod = p2o_node_int(n, "fmod", 0) != 0;
    if (is_real_type(n->in[0]->dtype) && !fmod)
        return false;
    return arithmetic(g, n, fmod ? dim_fmod : p2o_dim_mod);
}

bool p2o_onnx_rule_pow(Graph *g, Node *n)
{
    const Value *x = n->in[0], *y = n->in[1];
    Shape        s;
    return is_numeric_type(x->dtype) && is_numeric_type(y->dtype) &&
           p2o_onnx_broadcast(g, x->shape, y->shape, &s) && set_shape(g, n, 0, x->dtype, s);
}

bool p2o_onnx_rule_prelu(Graph *g, Node *n)
{
    const Value *x = n->in[0], *slope = n->in[1];
    Shape        s;
    return is_numeric_type(x->dtype) && x->dtype == slope->dtype &&
           p2o_onnx_broadcast(g, x->shape, slope->shape, &s) && s.rank == x->shape.rank &&
           set_like(g, n, 0, x);
}

bool p2o_onnx_rule_clip(Graph *g, Node *n)
{
    DType t = n->in[0]->dtype;
    for (int i = 1; i < n->nin; i++)
        if (n->in[i] && (n->in[i]->dtype != t || n->in[i]->shape.rank != 0))
            return false;
    if (!same_as_input(g, n, is_number_type) || !n->in[0]->ints)
        return is_numeric_type(t);
    const Value *lo = input_at(n, 1), *hi = input_at(n, 2);
    if ((lo && !lo->ints) || (hi && !hi->ints))
        return true;
    Dim *at = NEW_N(g->arena, Dim, n->in[0]->nints + 1);
    for (size_t i = 0; i < n->in[0]->nints; i++) {
        at[i] = n->in[0]->ints[i];
        if (lo)
            at[i] = p2o_dim_max(g->dims, at[i], lo->ints[0]);
        if (hi)
            at[i] = p2o_dim_min(g->dims, at[i], hi->ints[0]);
    }
    return p2o_onnx_set_ints(n, at, n->in[0]->nints);
}

/* Element i of a constant condition; false when it is not known. */
static bool condition_at(const Value *c, size_t i, bool *yes)
{
    int64_t v;
    bool    one = c->shape.rank == 0;
    if (c->shape.rank == 1 && p2o_dim_is_int(c->shape.at[0], &v))
        one = v == 1;
    if (!c->tensor || !p2o_tensor_get_i64(c->tensor, one ? 0 : i, &v))
        return false;
    *yes = v != 0;
    return true;
}

static bool choose_contents(Graph *g, Node *n)
{
    const Value *x = n->in[1], *y = n->in[2];
    size_t       len;
    if (!x->ints || !y->ints || !short_length(n, &len))
        return true;
    Dim *at = NEW_N(g->arena, Dim, len + 1);
    for (size_t i = 0; i < len; i++) {
        Dim  a = content_at(x, i), b = content_at(y, i);
        bool first;
        if (a == b)
            at[i] = a;
        else if (condition_at(n->in[0], i, &first))
            at[i] = first ? a : b;
    }
    return p2o_onnx_set_ints(n, at, len);
}

bool p2o_onnx_rule_where(Graph *g, Node *n)
{
    const Value *c = n->in[0], *x = n->in[1], *y = n->in[2];
    Shape        s;
    return c->dtype == DT_BOOL && x->dtype == y->dtype &&
           p2o_onnx_broadcast(g, x->shape, y->shape, &s) &&
           p2o_onnx_broadcast(g, s, c->shape, &s) && set_shape(g, n, 0, x->dtype, s) &&
           choose_contents(g, n);
}

static bool cast_to(Graph *g, Node *n, DType t)
{
    const Value *x = n->in[0];
    bool         keeps = is_index_type(x->dtype) && is_index_type(t);
    return set_shape(g, n, 0, t, x->shape) &&
           p2o_onnx_set_ints(n, keeps ? x->ints : NULL, x->nints);
}

bool p2o_onnx_rule_cast(Graph *g, Node *n)
{
    return cast_to(g, n, p2o_onnx_dtype(n, "to", DT_NONE));
}

bool p2o_onnx_rule_cast_like(Graph *g, Node *n) { return cast_to(g, n, n->in[1]->dtype); }

bool p2o_onnx_rule_softmax(Graph *g, Node *n)
{
    int axis;
    return p2o_onnx_axis(n, "axis", -1, n->in[0]->shape.rank, &axis) &&
           same_as_input(g, n, is_float_type);
}

bool p2o_onnx_rule_cumsum(Graph *g, Node *n)
{
    const Value *axis = n->in[1];
    int64_t      v;
    int          wrapped;
    if (!is_index_type(axis->dtype) || axis->shape.rank > 1)
        return false;
    if (axis->ints && axis->nints == 1 && p2o_dim_is_int(axis->ints[0], &v) &&
        !p2o_wrap_dim(v, n->in[0]->shape.rank, false, &wrapped))
        return false;
    return n->in[0]->shape.rank > 0 && same_as_input(g, n, is_number_type);
}

bool p2o_onnx_rule_trilu(Graph *g, Node *n)
{
    const Value *k = input_at(n, 1);
    return n->in[0]->shape.rank >= 2 && (!k || k->dtype == DT_I64) &&
           same_as_input(g, n, is_any_type);
}

bool p2o_onnx_rule_dropout(Graph *g, Node *n)
{
    return same_as_input(g, n, is_float_type) && set_shape(g, n, 1, DT_BOOL, n->in[0]->shape);
}

bool p2o_onnx_rule_batch_norm(Graph *g, Node *n)
{
    for (int i = 1; i < 5; i++)
        if (n->in[i]->shape.rank != 1 || !is_real_type(n->in[i]->dtype))
            return false;
    Shape x = n->in[0]->shape;
    for (int i = 1; g->sizes && i < 5; i++)
        if (!p2o_onnx_equal(g, x.rank > 1 ? x.at[1] : p2o_dim_int(g->dims, 1),
                            n->in[i]->shape.at[0], "channels"))
            return false;
    return same_as_input(g, n, is_float_type) && set_like(g, n, 1, n->in[3]) &&
           set_like(g, n, 2, n->in[4]);
}

/* GroupNormalization before opset 21 has one scale a group. */
bool p2o_onnx_rule_channel_norm(Graph *g, Node *n)
{
    const Value *x = n->in[0], *scale = n->in[1];
    bool         groups = n->op == ONNX_GroupNormalization && g->opset < 21;
    if (g->sizes &&
        (x->shape.rank < 2 || scale->shape.rank != 1 ||
         (!groups && !p2o_onnx_equal(g, x->shape.at[1], scale->shape.at[0], "channels"))))
        return false;
    return same_as_input(g, n, is_float_type);
}

/* Mean and InvStdDev have size 1 from the axis on, and the type that stash_type names. */
bool p2o_onnx_rule_layer_norm(Graph *g, Node *n)
{
    const Value *x = n->in[0];
    int          axis;
    if (!p2o_onnx_axis(n, "axis", -1, x->shape.rank, &axis) || !same_as_input(g, n, is_float_type))
        return false;
    Shape normed, rest = { x->shape.rank - axis, x->shape.at + axis };
    for (int i = 1; g->sizes && i < n->nin; i++)
        if (n->in[i] &&
            (!p2o_onnx_broadcast(g, rest, n->in[i]->shape, &normed) || normed.rank != rest.rank ||
             !p2o_onnx_settle_shape(g, rest, normed, "normalized size")))
            return false;
    Dim  *at = p2o_shape_copy(g->arena, x->shape, 0);
    DType t = p2o_onnx_dtype(n, "stash_type", DT_F32);
    for (int i = axis; i < x->shape.rank; i++)
        at[i] = p2o_dim_int(g->dims, 1);
    return p2o_onnx_set(g, n, 1, t, x->shape.rank, at) &&
           p2o_onnx_set(g, n, 2, t, x->shape.rank, at);
}

bool p2o_onnx_rule_quantize(Graph *g, Node *n)
{
    const Value *zero = input_at(n, 2);
    DType        t = p2o_onnx_dtype(n, "output_dtype", zero ? zero->dtype : DT_U8);
    return is_numeric_type(n->in[0]->dtype) && (!zero || zero->dtype == t) &&
           set_shape(g, n, 0, t, n->in[0]->shape);
}

bool p2o_onnx_rule_dequantize(Graph *g, Node *n)
{
    const Value *x = n->in[0], *scale = n->in[1], *zero = input_at(n, 2);
    return is_float(scale->dtype) && (!zero || zero->dtype == x->dtype) &&
           set_shape(g, n, 0, p2o_onnx_dtype(n, "output_dtype", scale->dtype), x->shape);
}

bool p2o_onnx_rule_dynamic_quantize(Graph *g, Node *n)
{
    const Value *x = n->in[0];
    return x->dtype == DT_F32 && set_shape(g, n, 0, DT_U8, x->shape) &&
           p2o_onnx_set(g, n, 1, DT_F32, 0, NULL) && p2o_onnx_set(g, n, 2, DT_U8, 0, NULL);
}

static bool reduce_over(Graph *g, Node *n, DType t, uint64_t axes, bool keep)
{
    Shape s = n->in[0]->shape;
    Dim  *at = NEW_N(g->arena, Dim, (size_t)s.rank + 1);
    int   rank = 0;
    for (int i = 0; i < s.rank; i++) {
        bool gone = axes >> i & 1;
        if (!gone || keep)
            at[rank++] = gone ? p2o_dim_int(g->dims, 1) : s.at[i];
    }
    return p2o_onnx_set(g, n, 0, t, rank, at);
}

/* No axes means all of them, unless noop_with_empty_axes. */
static bool reduce_axes(Graph *g, Node *n, TypeTest *test)
{
    const Value *x = n->in[0];
    uint64_t     axes;
    bool         given;
    const Value *input = input_at(n, 1);
    if ((input && input->dtype != DT_I64) || !test(x->dtype) ||
        !p2o_onnx_axes(g, n, 1, x->shape.rank, &axes, &given))
        return false;
    if (g->opset >= p2o_onnx_info(n->op)->since && p2o_node_attr(n, "axes"))
        return false;
    if (!given)
        axes = p2o_node_int(n, "noop_with_empty_axes", 0) ? 0 : UINT64_MAX;
    return reduce_over(g, n, x->dtype, axes, p2o_node_int(n, "keepdims", 1) != 0);
}

/* The whole vector into one element; a reduction that did nothing leaves the contents. */
static bool fold_vector(Graph *g, Node *n, DimOp *op, int64_t empty)
{
    const Value *x = n->in[0];
    size_t       len;
    if (!x->ints || !short_length(n, &len))
        return true;
    const Value *axes = input_at(n, 1);
    if (p2o_node_int(n, "noop_with_empty_axes", 0) && (!axes || axes->nints == 0))
        return p2o_onnx_set_ints(n, x->ints, x->nints);
    Dim *at = NEW_N(g->arena, Dim, 1);
    at[0] = p2o_dim_int(g->dims, empty);
    for (size_t i = 0; i < x->nints; i++)
        at[0] = op(g->dims, at[0], x->ints[i]);
    return p2o_onnx_set_ints(n, at, 1);
}

static bool is_number_or_bool_type(DType t) { return is_numeric_type(t) || t == DT_BOOL; }

bool p2o_onnx_rule_reduce(Graph *g, Node *n) { return reduce_axes(g, n, is_number_type); }

bool p2o_onnx_rule_reduce_max(Graph *g, Node *n)
{
    return reduce_axes(g, n, g->opset >= 20 ? is_number_or_bool_type : is_number_type);
}

bool p2o_onnx_rule_reduce_sum(Graph *g, Node *n)
{
    return reduce_axes(g, n, is_number_type) && fold_vector(g, n, p2o_dim_add, 0);
}

bool p2o_onnx_rule_reduce_prod(Graph *g, Node *n)
{
    return reduce_axes(g, n, is_number_type) && fold_vector(g, n, p2o_dim_mul, 1);
}

bool p2o_onnx_rule_arg_max(Graph *g, Node *n)
{
    int axis;
    return is_numeric_type(n->in[0]->dtype) &&
           p2o_onnx_axis(n, "axis", 0, n->in[0]->shape.rank, &axis) &&
           reduce_over(g, n, DT_I64, (uint64_t)1 << axis, p2o_node_int(n, "keepdims", 1) != 0);
}
