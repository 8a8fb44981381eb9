/* What the traced calls say and the nodes do not: operators that the exporter left out because they
 * did nothing at the sizes of the file, and steps of a loop in Python that was unrolled. */
#include "dyn/onnx_numbers.h"

#include "onnx/onnx_ops.h"

enum { MOST_BETWEEN = 64 };     /* nodes of one step that are gone through */

/* A name without the number that tells it from others: mul_3. */
static Str base_name(Str name)
{
    size_t n = name.n;
    while (n > 0 && name.p[n - 1] >= '0' && name.p[n - 1] <= '9')
        n--;
    return n > 1 && n < name.n && name.p[n - 1] == '_' ? (Str){ name.p, n - 1 } : name;
}

/* Operators that do nothing with the right number; a slice of everything is an alias. */
static bool may_do_nothing(Str base)
{
    static const char *const names[] = { "mul", "div", "add", "sub", "pow", "clamp", "slice",
                                         "alias", "narrow", "pad", "cat", "repeat", "tile",
                                         "roll" };
    for (size_t i = 0; i < COUNT_OF(names); i++)
        if (str_is(base, names[i]))
            return true;
    return false;
}

/* PyTorch traces 1 / x as a reciprocal and a product with 1. */
static bool is_after_reciprocal(const Weighing *w, const NodeCall *of, Str base)
{
    const Place *at = of ? p2o_place_at(w->s->prog->diags, of->call.loc) : NULL;
    return of && of->file->node->op == ONNX_Reciprocal && str_is(base, "mul") &&
           p2o_spelled_times(at, 1) > 0;
}

/* The call that made the value; NULL: none. */
static const NodeCall *maker_of(const Weighing *w, const Value *v)
{
    const Var *x = v && v->id < w->s->nvar ? w->s->vars[v->id] : NULL;
    return x && x->def ? (const NodeCall *)(const void *)x->def : NULL;
}

/* A node like it is there: equal ones were made one. */
static bool is_shared(const Weighing *w, const Node *n, Str base)
{
    for (int i = 0; i < n->nin; i++) {
        const NodeCall *k = maker_of(w, n->in[i]);
        if (k &&
            (str_eq(base_name(p2o_origin_name(&k->file->origin)), base) ||
             is_after_reciprocal(w, k, base)))
            return true;
    }
    return false;
}

static void refuse_left_out(Weighing *w, const NodeCall *k, Str name)
{
    p2o_onnx_refuse(w, &k->call,
                    p2o_printf(w->arena, "the exporter left out '%.*s', which did nothing at the "
                               "sizes of the file", STR_ARG(name)));
}

/* Values that the call took, and that no node makes. */
static void doubt_left_out(Weighing *w, const NodeCall *k, const Map *made)
{
    const OnnxOrigin *o = &k->file->origin;
    const Node       *n = k->file->node;
    size_t            at = 0;
    Str               own, name, base;
    if (!p2o_origin_next(o, &at, &own))
        return;
    while (p2o_origin_next(o, &at, &name)) {
        base = base_name(name);
        if (!may_do_nothing(base) || p2o_map_get(made, name) ||
            (str_is(base, "pad") && o->padded) || is_shared(w, n, base))
            continue;
        refuse_left_out(w, k, name);
        return;
    }
    const Value *y = n->nout == 1 && n->out[0]->is_output ? n->out[0] : NULL;
    base = y && y->name ? base_name(str_of(y->name)) : (Str){ "", 0 };
    if (may_do_nothing(base) && !p2o_map_get(made, str_of(y->name)) &&
        !is_after_reciprocal(w, k, base))
        refuse_left_out(w, k, str_of(y->name));
}

/* How often the line has the operator, as a sign or by name. */
static int times_in_line(Str line, Str op)
{
    static const struct { const char *op; char sign; } signs[] = { { "add", '+' }, { "sub", '-' },
                                                                   { "mul", '*' }, { "div", '/' },
                                                                   { "matmul", '@' } };
    int n = 0;
    for (size_t i = 0; i < line.n; i++) {
        n += i + op.n <= line.n && !memcmp(line.p + i, op.p, op.n);
        for (size_t k = 0; k < COUNT_OF(signs); k++)
            n += str_is(op, signs[k].op) && line.p[i] == signs[k].sign;
    }
    return n;
}

static bool has_input(const Node *n, const Value *v)
{
    for (int i = 0; i < n->nin; i++)
        if (n->in[i] == v)
            return true;
    return false;
}

/* It is made of the first node's result alone, and of what that one took or of constants; weights
 * are of another layer each time. */
static bool is_next_step(const Weighing *w, const Node *n, const Node *first, int *left,
                         bool *after)
{
    for (int i = 0; i < n->nin; i++) {
        const Value    *v = n->in[i];
        const NodeCall *k = maker_of(w, v);
        if (!v || has_input(first, v) ||
            (p2o_onnx_is_constant(w->s, v) && !(v->tensor && p2o_onnx_is_weights(v->tensor))))
            continue;
        if (!k || (*left)-- <= 0)
            return false;
        *after |= k->file->node == first;
        if (k->file->node != first && !is_next_step(w, k->file->node, first, left, after))
            return false;
    }
    return true;
}

typedef struct Steps {          /* of one operator on one line */
    const NodeCall *last;
    int             n;          /* each after the one before */
} Steps;

static void doubt_loop(Weighing *w, const NodeCall *k, Map *lines)
{
    const Place *at = p2o_place_at(w->s->prog->diags, k->call.loc);
    Str          op = p2o_origin_operator(&k->file->origin);
    if (!at || !at->text || at->library || !op.n)
        return;
    void **slot = p2o_map_slot(lines,
                               str_of(p2o_printf(w->arena, "%u %.*s %d", k->call.loc, STR_ARG(op),
                                                 k->file->node->op)));
    Steps *s = *slot ? *slot : (*slot = NEW(w->arena, Steps));
    Str    own = p2o_origin_name(&k->file->origin);
    bool   other = !s->last || !str_eq(own, p2o_origin_name(&s->last->file->origin));
    int    left = MOST_BETWEEN;
    bool   after = false;
    bool   next = other && s->last &&
                  is_next_step(w, k->file->node, s->last->file->node, &left, &after) && after;
    s->n = !other ? s->n : next ? s->n + 1 : 1;
    s->last = k;
    int times = times_in_line(str_of(at->text), op);
    if (times > 0 && s->n == times + 1)
        p2o_onnx_refuse(w, &k->call,
                        "its line was gone through again and again: how often may follow a size");
}

void p2o_onnx_doubt_traced(Weighing *w)
{
    Map made = { .arena = w->arena }, lines = { .arena = w->arena };
    for (size_t i = 0; i < w->s->calls.n; i++)
        *p2o_map_slot(&made, p2o_origin_name(&w->s->calls.at[i]->file->origin)) = w;
    for (size_t i = 0; i < w->s->calls.n; i++) {
        doubt_left_out(w, w->s->calls.at[i], &made);
        doubt_loop(w, w->s->calls.at[i], &lines);
    }
}
