/* Axes of 1.
 *
 * A 1 divides every size, so where a Reshape puts one beside a dynamic size it may be a divisor
 * that happened to be 1: gcd(11, 13), the widest one of 11.  It is a 1 where the line of source
 * says so, or where what follows works with 1 only: it is squeezed, or broadcast.  And a constant
 * of 1 along an axis that was 1 may have been made for it. */
#include "dyn/onnx_numbers.h"

#include "onnx/onnx_ops.h"

enum { FARTHEST = 8 };          /* nodes that an axis is followed through */

static Dim size_now(const Weighing *w, const Value *v, int axis)
{
    bool known = v && v->dtype && !v->is_sequence && axis >= 0 && axis < v->shape.rank;
    return known ? p2o_resolve(w->s->bind, v->shape.at[axis]) : NULL;
}

static bool is_axis_dynamic(const Weighing *w, const Value *v, int axis)
{
    Dim d = size_now(w, v, axis);
    return d && !p2o_dim_is_int(d, NULL);
}

static bool is_squeezed(const Node *n, int axis, int rank)
{
    const Value *axes = n->nin > 1 ? n->in[1] : NULL;
    int64_t      v;
    int          at;
    for (size_t i = 0; axes && axes->ints && i < axes->nints; i++)
        if (p2o_dim_is_int(axes->ints[i], &v) && p2o_wrap_dim(v, rank, false, &at) && at == axis)
            return true;
    return false;
}

static int axis_after_transpose(const Node *n, int axis, int rank)
{
    const Attr *perm = p2o_node_attr(n, "perm");
    for (size_t i = 0; perm && perm->kind == ATTR_INTS && i < perm->n; i++)
        if (perm->ints[i] == axis)
            return (int)i;
    return perm ? -1 : rank - 1 - axis;
}

/* Where the axis of input x is in the result, which has it as it is or broadcasts it; -1: not
 * known. */
static int axis_after(const Weighing *w, const Node *n, const Value *x, int axis)
{
    const Value *y = n->nout == 1 ? n->out[0] : NULL;
    int          from_end = x->shape.rank - axis;
    if (!y || !y->dtype || y->is_sequence)
        return -1;
    if (n->op == ONNX_Transpose)
        return axis_after_transpose(n, axis, x->shape.rank);
    bool kept = n->op == ONNX_Expand ? x == n->in[0]
                : n->nin == 1 && y->shape.rank == x->shape.rank;
    for (int d = 0; kept && n->nin == 1 && d < x->shape.rank; d++)
        kept = size_now(w, x, d) == size_now(w, y, d);
    for (int i = 0; i < n->nin && n->nin > 1 && !kept; i++)
        kept = n->in[i] == x && p2o_onnx_inputs(n, "b") >> i & 1 && n->op != ONNX_Concat;
    if (n->op == ONNX_MatMul)
        kept = from_end > 2 || (from_end == 2 && x == n->in[0]);
    return kept && from_end <= y->shape.rank ? y->shape.rank - from_end : -1;
}

/* What follows works with an axis of 1 only. */
static bool is_used_as_one(const Weighing *w, const Value *v, int axis, int depth)
{
    for (size_t i = 0; i < v->uses.n && depth > 0; i++) {
        const Node *n = v->uses.at[i];
        if (n->op == ONNX_Squeeze && is_squeezed(n, axis, v->shape.rank))
            return true;
        int at = axis_after(w, n, v, axis);
        if (at < 0)
            continue;
        if (!dim_is(size_now(w, n->out[0], at), 1) || is_used_as_one(w, n->out[0], at, depth - 1))
            return true;
    }
    return false;
}

/* One of its neighbours, over other 1s, is a size that it may divide. */
static bool is_beside_dynamic(const Weighing *w, const Value *y, int axis)
{
    for (int step = -1; step <= 1; step += 2) {
        int at = axis + step;
        while (at >= 0 && at < y->shape.rank && dim_is(size_now(w, y, at), 1))
            at += step;
        if (is_axis_dynamic(w, y, at))
            return true;
    }
    return false;
}

/* Of view(b, 1, t): an argument by itself. */
static bool has_argument_one(Str line)
{
    Str rest = line;
    while (rest.n) {
        Str before = p2o_str_cut(rest, '(', &rest), end;
        bool shapes = false;
        for (size_t i = 0; i < before.n; i++) {
            Str tail = { before.p + i, before.n - i };
            shapes |= str_is(tail, "view") || str_is(tail, "reshape") || str_is(tail, "unflatten");
        }
        for (Str args = p2o_str_cut(rest, ')', &end); shapes && args.n;)
            if (str_is(p2o_str_trim(p2o_str_cut(args, ',', &args)), "1"))
                return true;
    }
    return false;
}

/* The line says 1, or belongs to a module of torch.nn; or the traced call has none, and the
 * exporter put it there. */
static bool is_written_one(const Weighing *w, const NodeCall *k)
{
    const Place *at = p2o_place_at(w->s->prog->diags, k->call.loc);
    const char  *args = p2o_origin_args(&k->file->origin);
    if (args && !p2o_spelled_times(&(Place){ .text = args }, 1))
        return true;
    return at && (at->library || (at->text && has_argument_one(str_of(at->text))));
}

static void doubt_reshape(Weighing *w, const NodeCall *k)
{
    const Node  *n = k->file->node;
    const Value *x = n->in[0], *y = n->out[0];
    if (!x->dtype || !y->dtype || is_written_one(w, k))
        return;
    for (int d = 0; d < y->shape.rank; d++) {
        bool had = d < x->shape.rank && dim_is(size_now(w, x, d), 1);
        if (had || !dim_is(size_now(w, y, d), 1) || !is_beside_dynamic(w, y, d) ||
            is_used_as_one(w, y, d, FARTHEST))
            continue;
        p2o_onnx_refuse(w, &k->call,
                        p2o_printf(w->arena,
                                   "the 1 on axis %d may be a number, or what divides the size "
                                   "beside it", d));
        return;
    }
}

static void doubt_constant(Weighing *w, const NodeCall *k, const Tensor *t)
{
    const Value *y = k->file->node->nout ? k->file->node->out[0] : NULL;
    int64_t      was;
    for (int d = 0; d < t->rank; d++) {
        int at = y && y->dtype ? y->shape.rank - t->rank + d : -1;
        if (t->sizes[d] != 1 || !is_axis_dynamic(w, y, at) ||
            !p2o_hint_at(w->s->bind, size_now(w, y, at), 0, &was) || was != 1)
            continue;
        p2o_onnx_refuse(w, &k->call,
                        p2o_printf(w->arena,
                                   "a constant has one element along axis %d, which was 1: it may "
                                   "have been made for that size", at));
        return;
    }
}

void p2o_onnx_doubt_ones(Weighing *w, const NodeCall *k)
{
    const Node *n = k->file->node;
    if (n->op == ONNX_Reshape)
        doubt_reshape(w, k);
    for (size_t i = 0; i < k->slots.n; i++) {   /* longer ones show what they are made of */
        const BakedForm *f = k->slots.at[i].form;
        uint64_t         nelem;
        if (f && p2o_tensor_nelem(f->of, &nelem) && nelem == 1)
            doubt_constant(w, k, f->of);
    }
    for (int i = 0; i < n->nin && i < 32; i++) {
        const Value *v = n->in[i];
        if (p2o_onnx_inputs(n, "b") >> i & 1 && v && v->tensor &&
            !(p2o_onnx_is_weights(v->tensor) && p2o_onnx_is_parameter(v)))
            doubt_constant(w, k, v->tensor);
    }
}
