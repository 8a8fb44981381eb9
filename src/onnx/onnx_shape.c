/* Typing a node: the checks every operator shares, and the vocabulary of the rules. */
#include "onnx/onnx_rules.h"

/* Below `since`, Reduce* and DFT took as an attribute what is now their last input. */
static bool has_form(const Graph *g, const Node *n, const OnnxInfo *info)
{
    if (g->opset >= info->since)
        return true;
    if (g->file)            /* read, not made: older forms that differ are told by their inputs */
        return g->opset >= (info->rule == p2o_onnx_rule_scan ? 9 : 7);
    bool older = info->rule == p2o_onnx_rule_reduce || info->rule == p2o_onnx_rule_reduce_max ||
                 info->rule == p2o_onnx_rule_reduce_prod || info->rule == p2o_onnx_rule_dft;
    if (n->op == ONNX_Shape)
        return n->nattr == 0;           /* start and end came with opset 15 */
    return older && n->nin < info->max_in;
}

static bool takes_sequences(const OnnxInfo *info)
{
    static OnnxRule *const rules[] = {
        p2o_onnx_rule_identity,        p2o_onnx_rule_loop,           p2o_onnx_rule_sequence_insert,
        p2o_onnx_rule_sequence_erase,  p2o_onnx_rule_sequence_at,    p2o_onnx_rule_sequence_length,
        p2o_onnx_rule_concat_from_sequence,
    };
    for (size_t i = 0; i < COUNT_OF(rules); i++)
        if (info->rule == rules[i])
            return true;
    return false;
}

static bool has_right_inputs(const Graph *g, const Node *n, const OnnxInfo *info)
{
    if (n->nin < info->min_in || (info->max_in >= 0 && n->nin > info->max_in))
        return false;
    if (n->nout < info->min_out || (info->max_out >= 0 && n->nout > info->max_out))
        return false;
    for (int i = 0; i < n->nin; i++) {
        const Value *v = n->in[i];
        bool         optional = i >= info->min_in || info->rule == p2o_onnx_rule_loop;
        if (!v && !optional)
            return false;
        if (v && (v->dtype == DT_NONE || (v->is_sequence && !takes_sequences(info))))
            return false;
    }
    return has_form(g, n, info);
}

bool p2o_onnx_infer(Graph *g, Node *n)
{
    const OnnxInfo *info = p2o_onnx_info(n->op);
    for (int i = 0; i < n->nout; i++) {
        Value *v = n->out[i];
        v->dtype = DT_NONE;
        v->shape = (Shape){ 0 };
        v->ints = NULL;
        v->nints = 0;
        v->is_sequence = false;
    }
    if (info->rule && has_right_inputs(g, n, info) && info->rule(g, n))
        return true;
    for (int i = 0; i < n->nout; i++)
        n->out[i]->dtype = DT_NONE;
    return false;
}

bool p2o_onnx_set(Graph *g, Node *n, int i, DType t, int rank, const Dim *at)
{
    if (i >= n->nout)
        return true;
    if (t == DT_NONE || rank < 0 || rank > MAX_RANK)
        return false;
    for (int k = 0; k < rank; k++) {
        int64_t size;
        if (!at[k] || (p2o_dim_is_int(at[k], &size) && size < 0))
            return false;
    }
    Value *v = n->out[i];
    v->dtype = t;
    v->shape = (Shape){ rank, p2o_shape_copy(g->arena, (Shape){ rank, at }, 0) };
    return true;
}

static void keep_contents(Value *v, const Dim *at, size_t nints)
{
    int64_t len = 1, c;
    if (!at || !is_index_type(v->dtype) || v->shape.rank > 1 || nints > MAX_INTS)
        return;
    if (v->shape.rank == 1 && !p2o_dim_is_int(v->shape.at[0], &len))
        return;
    if ((uint64_t)len != nints)
        return;
    for (size_t i = 0; i < nints; i++) {
        if (!at[i])
            return;
        if (v->dtype == DT_I32 && p2o_dim_is_int(at[i], &c) && (c < INT32_MIN || c > INT32_MAX))
            return;                      /* it would wrap; sizes in symbols are taken to fit */
    }
    v->ints = at;
    v->nints = nints;
}

bool p2o_onnx_set_ints(Node *n, const Dim *at, size_t nints)
{
    keep_contents(n->out[0], at, nints);
    return true;
}

void p2o_onnx_type_constant(Graph *g, Value *v, const Tensor *x)
{
    Dim   *sizes = NEW_N(g->arena, Dim, (size_t)x->rank + 1);
    size_t count = x->rank == 1 ? (size_t)x->sizes[0] : 1;
    for (int i = 0; i < x->rank; i++)
        sizes[i] = p2o_dim_int(g->dims, x->sizes[i]);
    v->dtype = x->dtype;
    v->shape = (Shape){ x->rank, sizes };
    if (!is_index_type(x->dtype) || x->rank > 1 || count > MAX_INTS)
        return;
    Dim *at = NEW_N(g->arena, Dim, count + 1);
    for (size_t i = 0; i < count; i++) {
        int64_t c;
        if (p2o_tensor_get_i64(x, i, &c))
            at[i] = p2o_dim_int(g->dims, c);
    }
    keep_contents(v, at, count);
}

Dim p2o_onnx_fresh(Graph *g)
{
    return g->sizes ? g->sizes->fresh(g->sizes) : p2o_dim_fresh(g->dims, "u");
}

bool p2o_onnx_equal(Graph *g, Dim a, Dim b, const char *what)
{
    return g->sizes ? g->sizes->equal(g->sizes, a, b, what) : p2o_dim_eq(g->dims, a, b) != NO;
}

bool p2o_onnx_settle_shape(Graph *g, Shape have, Shape want, const char *what)
{
    if (!g->sizes)
        return true;
    bool ok = have.rank == want.rank;
    for (int i = 0; ok && i < have.rank; i++)
        ok = p2o_onnx_equal(g, have.at[i], want.at[i], what);
    return ok;
}

/* Two different symbols: the model says that they are equal or one is 1; take the first. */
static Dim broadcast_dim(Dim a, Dim b)
{
    int64_t x, y;
    bool    ka = p2o_dim_is_int(a, &x), kb = p2o_dim_is_int(b, &y);
    if (a == b || (kb && y == 1))
        return a;
    if (ka && x == 1)
        return b;
    if (ka && kb)
        return NULL;
    return kb ? b : a;
}

bool p2o_onnx_broadcast(Graph *g, Shape a, Shape b, Shape *out)
{
    if (g->sizes)
        return g->sizes->broadcast(g->sizes, a, b, out);
    int  rank = a.rank > b.rank ? a.rank : b.rank;
    Dim *at = NEW_N(g->arena, Dim, (size_t)rank + 1);
    for (int i = 0; i < rank; i++) {
        int ia = i - (rank - a.rank), ib = i - (rank - b.rank);
        at[i] = ia < 0 ? b.at[ib] : ib < 0 ? a.at[ia] : broadcast_dim(a.at[ia], b.at[ib]);
        if (!at[i])
            return false;
    }
    *out = (Shape){ rank, at };
    return true;
}

bool p2o_onnx_join(Graph *g, Shape a, Shape b, Shape *out)
{
    if (a.rank != b.rank)
        return false;
    Dim *at = NEW_N(g->arena, Dim, (size_t)a.rank + 1);
    for (int i = 0; i < a.rank; i++) {
        bool same_size = a.at[i] == b.at[i];
        if (!same_size && g->sizes && g->sizes->alike(g->sizes, a.at[i], b.at[i])) {
            if (!p2o_onnx_equal(g, a.at[i], b.at[i], "both ways"))
                return false;
            same_size = true;
        }
        at[i] = same_size ? a.at[i] : p2o_onnx_fresh(g);
    }
    *out = (Shape){ a.rank, at };
    return true;
}

bool p2o_onnx_axis(const Node *n, const char *name, int64_t otherwise, int rank, int *axis)
{
    return p2o_wrap_dim(p2o_node_int(n, name, otherwise), rank, false, axis);
}

int64_t *p2o_onnx_numbers(Graph *g, const Value *v, size_t *n)
{
    if (!v || !v->ints)
        return NULL;
    int64_t *at = NEW_N(g->arena, int64_t, v->nints + 1);
    for (size_t i = 0; i < v->nints; i++)
        if (!p2o_dim_is_int(v->ints[i], &at[i]))
            return NULL;
    *n = v->nints;
    return at;
}

bool p2o_onnx_axes(Graph *g, const Node *n, int i, int rank, uint64_t *set, bool *given)
{
    const Value   *v = input_at(n, i);
    const Attr    *attr = p2o_node_attr(n, "axes");
    const int64_t *at = NULL;
    size_t         count = 0;
    *set = 0;
    *given = false;
    if (v && !(at = p2o_onnx_numbers(g, v, &count)))
        return false;
    if (!v && attr) {
        if (attr->kind != ATTR_INTS)
            return false;
        at = attr->ints;
        count = attr->n;
    }
    for (size_t k = 0; k < count; k++) {
        int axis;
        if (!p2o_wrap_dim(at[k], rank, false, &axis) || (*set >> axis & 1))
            return false;
        *set |= (uint64_t)1 << axis;
    }
    *given = count > 0;
    return true;
}

int64_t p2o_onnx_int_at(const Node *n, const char *name, size_t i, int64_t otherwise)
{
    const Attr *a = p2o_node_attr(n, name);
    return a && a->kind == ATTR_INTS && i < a->n ? a->ints[i] : otherwise;
}

bool p2o_onnx_str_is(const Node *n, const char *name, const char *otherwise, const char *is)
{
    const Attr *a = p2o_node_attr(n, name);
    return same(a && a->kind == ATTR_STR ? a->s : otherwise, is);
}

DType p2o_onnx_dtype(const Node *n, const char *name, DType otherwise)
{
    const Attr *a = p2o_node_attr(n, name);
    return !a ? otherwise : a->kind == ATTR_INT ? p2o_dtype_from_onnx((long)a->i) : DT_NONE;
}

bool p2o_onnx_length(const Value *v, int *n)
{
    int64_t len;
    if (v->shape.rank != 1 || !p2o_dim_is_int(v->shape.at[0], &len) || len < 0 || len > MAX_RANK)
        return false;
    *n = (int)len;
    return true;
}

Dim p2o_onnx_scalar(Graph *g, const Value *v)
{
    return v->ints && v->nints == 1 ? v->ints[0] : p2o_onnx_fresh(g);
}

Dim p2o_onnx_quotient(Graph *g, Dim a, Dim b)
{
    Dim q = p2o_dim_exact_div(g->dims, a, b);
    return q ? q : p2o_dim_floordiv(g->dims, a, b);
}
