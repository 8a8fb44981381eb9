#include "dyn/align.h"

#include "dyn/baked.h"
#include "dyn/soften.h"

typedef struct OpenFloat {              /* a float that differs between captures */
    Call  *call;
    Arg   *arg;
    double v[MAX_CAPTURES];
} OpenFloat;

typedef struct Align {
    Ops            *ops;
    Program *const *p;
    int             n;
    Bindings       *bind;
    Var          ***to_first;           /* of capture k: its Vars, by id, to those of the first */
    Map            *floats;             /* Arg * -> OpenFloat * */
} Align;

/* A size is 1 in one of them, and another in the other. */
static bool one_against_more(const Program *p, const Program *q)
{
    int64_t v, w;
    for (size_t i = 0; i < p->main->inputs.n && i < q->main->inputs.n; i++) {
        Shape s = p->main->inputs.at[i]->recorded.shape, t = q->main->inputs.at[i]->recorded.shape;
        for (int k = 0; k < s.rank && k < t.rank; k++)
            if (p2o_dim_is_int(s.at[k], &v) && p2o_dim_is_int(t.at[k], &w) && v != w && (v == 1 || w == 1))
                return true;
    }
    return false;
}

static bool part_ways(const Align *a, Loc loc, int k, const char *what)
{
    p2o_diag_advise(a->p[0]->diags, DIAG_NOT_DYNAMIC, loc,
                    one_against_more(a->p[0], a->p[k])
                        ? "at a size of 1 PyTorch may record another program: take captures at 2 and more"
                        : "capture the same model in the same mode; a Python `if` on a size makes two models",
                    "captures 1 and %d part ways: %s", k + 1, what);
    return false;
}

static const char *place_text(const Program *p, const Call *c)
{
    const Place *at = p2o_place_at(p->diags, c->loc);
    return at && at->file ? p2o_printf(p->arena, "%s (%s:%u)", c->target, at->file, at->line) : c->target;
}

static void pair_vars(const Align *a, int k, Var *first, const Var *other)
{
    if (first && other)
        a->to_first[k][other->id] = first;
}

static Type with_leading_ones(const Align *a, Type t, int rank)
{
    Dim *at = NEW_N(a->p[0]->arena, Dim, (size_t)rank + 1);
    int  more = rank - t.shape.rank;
    if (t.kind != TY_TENSOR || more <= 0)
        return t;
    for (int i = 0; i < rank; i++)
        at[i] = i < more ? p2o_dim_int(a->p[0]->dims, 1) : t.shape.at[i - more];
    t.shape = (Shape){ rank, at };
    return t;
}

/* Further recorded types are kept beside the first's. */
static void keep_recorded(const Align *a, int k, Var *first, const Var *other)
{
    if (!first->also)
        first->also = NEW_N(a->p[0]->arena, Type, (size_t)a->n);
    ((Type *)(uintptr_t)first->also)[k - 1] = other->recorded;
}

static bool same_bytes(Arena *a, const Tensor *x, const Tensor *y)
{
    enum { LARGEST = 1 << 20 };
    uint64_t n;
    if (!p2o_tensor_nelem(x, &n) || n * p2o_dtype_bytes(x->dtype) > LARGEST)
        return true;                            /* weights: their names and shapes were compared */
    ArenaMark m = p2o_arena_mark(a);
    size_t    nbytes = (size_t)n * p2o_dtype_bytes(x->dtype);
    void     *px = p2o_alloc(a, nbytes), *py = p2o_alloc(a, nbytes);
    bool      equal = p2o_tensor_load(x, px, nbytes) && p2o_tensor_load(y, py, nbytes) && !memcmp(px, py, nbytes);
    p2o_arena_rewind(a, m);
    return equal;
}

static bool same_weight(const Align *a, const Var *x, const Var *y)
{
    if (!x->tensor || !y->tensor)
        return !x->tensor && !y->tensor;
    if (x->tensor->dtype != y->tensor->dtype || x->tensor->rank != y->tensor->rank)
        return false;
    for (int i = 0; i < x->tensor->rank; i++)
        if (x->tensor->sizes[i] != y->tensor->sizes[i])
            return false;
    return same_bytes(a->p[0]->arena, x->tensor, y->tensor);
}

static bool align_weights(const Align *a, int k)
{
    const Program *x = a->p[0], *y = a->p[k];
    if (x->weights.n != y->weights.n)
        return part_ways(a, 0, k, "they have different numbers of weights and constants");
    for (size_t i = 0; i < x->weights.n; i++)
        pair_vars(a, k, x->weights.at[i], y->weights.at[i]);
    return true;
}

/* Constants that differ were computed from a size. */
static bool settle_weights(const Align *a)
{
    const Program *x = a->p[0];
    for (size_t i = 0; i < x->weights.n; i++) {
        const Tensor *v[MAX_CAPTURES];
        Var          *first = x->weights.at[i];
        bool          equal = true;
        for (int k = 0; k < a->n; k++) {
            v[k] = a->p[k]->weights.at[i]->tensor;
            equal &= same_weight(a, first, a->p[k]->weights.at[i]);
        }
        if (equal || (v[0] && p2o_baked_tensor(a->ops, a->p[0], a->bind, first, v, a->n)))
            continue;
        p2o_diag_advise(x->diags, DIAG_NOT_DYNAMIC, 0, "capture one model with the same weights; what forward() makes of a size, compute with torch operators or pass as an input",
                        "'%s' differs between the captures",
                        first->fqn ? first->fqn : first->name);
        return false;
    }
    return true;
}

static bool align_arg(const Align *a, Call *c, const Call *d, int k, Arg *x, const Arg *y);

static bool differs_in(const Align *a, const Call *c, const Call *d, int k, const char *how)
{
    return part_ways(a, c->loc, k, p2o_printf(a->p[0]->arena, "%s %s %s", place_text(a->p[0], c), how,
                                             place_text(a->p[k], d)));
}

/* A literal that differs is open.  Its hints so far: the same in captures 0 .. k-1 unless it is open already. */
static void open_literal(const Align *a, const Call *c, int k, Arg *x, int64_t v)
{
    int64_t hints[MAX_CAPTURES] = { 0 };
    if (p2o_dim_is_int(x->i, &hints[0])) {
        for (int i = 1; i < a->n; i++)
            hints[i] = hints[0];
        x->i = p2o_soft(a->bind, hints, c->target, c->loc);
    }
    p2o_set_hint_at(a->bind, x->i, k, v);
}

static bool align_int(const Align *a, const Call *c, const Call *d, int k, Arg *x, Dim y)
{
    int64_t v, w;
    if (!p2o_dim_is_int(y, &w))
        return x->i == y || differs_in(a, c, d, k, "has another symbolic size than");
    if (p2o_dim_is_int(x->i, &v) && v == w)
        return true;
    if (w == INT64_MAX || (p2o_dim_is_int(x->i, &v) && v == INT64_MAX) || (p2o_hint_at(a->bind, x->i, 0, &v) && (v < 0) != (w < 0)))
        return differs_in(a, c, d, k, "begins or ends elsewhere than");
    open_literal(a, c, k, x, w);
    return true;
}

static bool mentions(const Arg *x, const Var *v)
{
    bool found = x->kind == ARG_VAR && x->var == v;
    for (uint32_t i = 0; x->kind == ARG_LIST && i < x->n && !found; i++)
        found = mentions(&x->items[i], v);
    return found;
}

static bool is_only_expanded(const Program *p, const Var *v)
{
    for (size_t i = 0; i < p->main->calls.n; i++) {
        const Call *c = p->main->calls.at[i];
        for (int k = 0; k < c->nargs; k++)
            if (mentions(&c->args[k], v) && !(k == 0 && same(c->target, "aten::expand")))
                return false;
    }
    for (size_t i = 0; i < p->outputs.n; i++)
        if (mentions(&p->outputs.at[i].value, v))
            return false;
    return true;
}

/* PyTorch drops leading sizes of 1 ahead of an expand, as in x[:m] = y at m = 1.  With or without them the expand
 * gives the same. */
static bool drops_ones(const Align *a, const Call *c, const Call *d, int k)
{
    return p2o_is_reshape(c) && c->nouts == 1 && c->outs[0] && d->outs[0] &&
           is_only_expanded(a->p[0], c->outs[0]) && is_only_expanded(a->p[k], d->outs[0]);
}

static void lengthen(const Align *a, Arg *x, uint32_t n)
{
    Arg *items = NEW_N(a->p[0]->arena, Arg, (size_t)n + 1);
    for (uint32_t i = 0; i < n; i++)
        items[i] = i < n - x->n ? arg_int(p2o_dim_int(a->p[0]->dims, 1)) : x->items[i - (n - x->n)];
    *x = arg_list(items, n);
}

static bool align_dropped_ones(const Align *a, Call *c, const Call *d, int k, Arg *x, Arg y)
{
    uint32_t n = x->n > y.n ? x->n : y.n;
    Var     *v = c->outs[0];
    lengthen(a, x, n);
    lengthen(a, &y, n);
    v->recorded = with_leading_ones(a, v->recorded, (int)n);
    d->outs[0]->recorded = with_leading_ones(a, d->outs[0]->recorded, (int)n);
    for (int i = 1; i < k && v->also; i++)
        ((Type *)(uintptr_t)v->also)[i - 1] = with_leading_ones(a, v->also[i - 1], (int)n);
    for (uint32_t i = 0; i < n; i++)
        if (!align_arg(a, c, d, k, &x->items[i], &y.items[i]))
            return false;
    return true;
}

static bool align_list(const Align *a, Call *c, const Call *d, int k, Arg *x, const Arg *y)
{
    if (x->n != y->n && drops_ones(a, c, d, k))
        return align_dropped_ones(a, c, d, k, x, *y);
    if (x->n != y->n)
        return differs_in(a, c, d, k, "has a list of another length (one that grows with a size can't be dynamic) than");
    for (uint32_t i = 0; i < x->n; i++)
        if (!align_arg(a, c, d, k, &x->items[i], &y->items[i]))
            return false;
    return true;
}

static bool align_body(const Align *a, int k, Call *c, Body *x, const Call *d, const Body *y);

static void open_float(const Align *a, Call *c, int k, Arg *x, double v)
{
    Arg **key = NEW(a->p[0]->arena, Arg *);
    *key = x;
    void **slot = p2o_map_slot(a->floats, (Str){ (const char *)key, sizeof *key });
    if (!*slot) {
        OpenFloat *f = NEW(a->p[0]->arena, OpenFloat);
        f->call = c;
        f->arg = x;
        for (int i = 0; i < a->n; i++)
            f->v[i] = x->f;
        *slot = f;
    }
    ((OpenFloat *)*slot)->v[k] = v;
}

/* What is found out about a float is computed in main, ahead of its call there. */
static bool settle_floats(const Align *a)
{
    for (size_t i = 0; i < a->floats->n; i++) {
        const OpenFloat *f = a->floats->at[i].value;
        const Body      *b = a->p[0]->main;
        size_t           at = 0;
        while (at < b->calls.n && b->calls.at[at] != f->call)
            at++;
        if (at < b->calls.n && p2o_baked_float(a->ops, a->p[0], a->bind, f->v, a->n, &at, f->arg))
            continue;
        p2o_diag_advise(a->p[0]->diags, DIAG_NOT_DYNAMIC, f->call->loc, "compute it from the input's shape with torch operators",
                        "%s: a number was %g and %g in the captures; no size of the inputs explains it", f->call->target,
                        f->v[0], f->v[a->n - 1]);
        return false;
    }
    return true;
}

static bool is_copy(const Call *c)
{
    return same(c->target, "aten::clone") && c->nargs > 0 && c->args[0].kind == ARG_VAR && c->outs[0];
}

/* What a value is a copy of. */
static const Var *original(const Var *v)
{
    while (v && v->def && is_copy(v->def))
        v = v->def->args[0].var;
    return v;
}

static bool align_arg(const Align *a, Call *c, const Call *d, int k, Arg *x, const Arg *y)
{
    bool equal = x->kind == y->kind;
    if (equal) {
        switch (x->kind) {
        case ARG_NONE: break;
        case ARG_VAR: equal = original(x->var) == original(a->to_first[k][y->var->id]); break;
        case ARG_INT: return align_int(a, c, d, k, x, y->i);
        case ARG_LIST: return align_list(a, c, d, k, x, y);
        case ARG_FLOAT:
            if (x->f != y->f && (x->f == x->f || y->f == y->f))
                open_float(a, c, k, x, y->f);
            break;
        case ARG_BOOL: equal = x->b == y->b; break;
        case ARG_DTYPE: equal = x->dtype == y->dtype; break;
        case ARG_COMPLEX: equal = x->re_im[0] == y->re_im[0] && x->re_im[1] == y->re_im[1]; break;
        case ARG_BODY: return align_body(a, k, c, x->body, d, y->body);
        default: equal = same(x->s ? x->s : "", y->s ? y->s : ""); break;
        }
    }
    return equal || differs_in(a, c, d, k, "has another argument than");
}

/* Names of one thing: which of them PyTorch takes depends on strides, and those on sizes of 1. */
static bool same_target(const Call *c, const Call *d)
{
    return same(c->target, d->target) || (p2o_is_reshape(c) && p2o_is_reshape(d));
}

static bool align_call(const Align *a, int k, Call *c, const Call *d)
{
    if (!same_target(c, d) || c->nargs != d->nargs || c->nouts != d->nouts)
        return differs_in(a, c, d, k, "against");
    for (int i = 0; i < c->nargs; i++)
        if (!same(c->schema->args[i].name, "assert_msg") && !align_arg(a, c, d, k, &c->args[i], &d->args[i]))
            return false;
    for (int i = 0; i < c->nouts; i++) {
        if (!c->outs[i] != !d->outs[i])
            return differs_in(a, c, d, k, "has another result than");
        if (!c->outs[i])
            continue;
        pair_vars(a, k, c->outs[i], d->outs[i]);
        keep_recorded(a, k, c->outs[i], d->outs[i]);
    }
    return true;
}

/* Copies that one of them lacks are passed over. */
static bool align_calls(const Align *a, int k, Body *x, const Body *y, const Call **c, const Call **d)
{
    size_t i = 0, j = 0;
    for (*c = *d = NULL; i < x->calls.n || j < y->calls.n;) {
        *c = i < x->calls.n ? x->calls.at[i] : NULL;
        *d = j < y->calls.n ? y->calls.at[j] : NULL;
        bool together = *c && *d && same_target(*c, *d);
        if (!together && *c && is_copy(*c)) {
            i++;
        } else if (!together && *d && is_copy(*d)) {
            pair_vars(a, k, a->to_first[k][(*d)->args[0].var->id], (*d)->outs[0]);
            j++;
        } else if (!*c || !*d) {
            return false;
        } else if (!align_call(a, k, x->calls.at[i++], y->calls.at[j++])) {
            *c = *d = NULL;                     /* reported */
            return false;
        }
    }
    return true;
}

static bool align_body(const Align *a, int k, Call *c, Body *x, const Call *d, const Body *y)
{
    const Call *left, *right;
    if (x->inputs.n != y->inputs.n || x->outputs.n != y->outputs.n)
        return differs_in(a, c, d, k, "has another body than");
    for (size_t i = 0; i < x->inputs.n; i++)
        pair_vars(a, k, x->inputs.at[i], y->inputs.at[i]);
    if (!align_calls(a, k, x, y, &left, &right))
        return left || right ? differs_in(a, c, d, k, "has another body than") : false;
    for (size_t i = 0; i < x->outputs.n; i++)
        if (!align_arg(a, c, d, k, &x->outputs.at[i], &y->outputs.at[i]))
            return false;
    return true;
}

static bool align_outputs(const Align *a, int k)
{
    const Program *x = a->p[0], *y = a->p[k];
    if (x->outputs.n != y->outputs.n)
        return part_ways(a, 0, k, "they return different numbers of values");
    Call none = { .target = "the result" };
    for (size_t i = 0; i < x->outputs.n; i++)
        if (!align_arg(a, &none, &none, k, &x->outputs.at[i].value, &y->outputs.at[i].value))
            return false;
    return true;
}

static bool align_one(const Align *a, int k)
{
    const Program *x = a->p[0], *y = a->p[k];
    const Call    *c, *d;
    for (size_t i = 0; i < x->main->inputs.n; i++)
        pair_vars(a, k, x->main->inputs.at[i], y->main->inputs.at[i]);
    if (!align_weights(a, k))
        return false;
    if (!align_calls(a, k, x->main, y->main, &c, &d))
        return c || d ? part_ways(a, c ? c->loc : d->loc, k, p2o_printf(x->arena, "%s has no match in the other",
                                                                       place_text(c ? x : y, c ? c : d))) : false;
    return align_outputs(a, k);
}

bool p2o_align(Ops *o, Program *const *p, int n, Bindings *b)
{
    Map   floats = { .arena = p[0]->arena };
    Align a = { .ops = o, .p = p, .n = n, .bind = b, .floats = &floats,
                .to_first = NEW_N(p[0]->arena, Var **, (size_t)n) };
    for (int k = 1; k < n; k++) {
        a.to_first[k] = NEW_N(p[0]->arena, Var *, (size_t)p[k]->nvar + 1);
        if (!align_one(&a, k))
            return false;
    }
    return settle_weights(&a) && settle_floats(&a);
}

static bool align_axis(const Align *a, const char *input, Var *v, int axis, Dim *at)
{
    int64_t size[MAX_CAPTURES];
    bool    differs = false;
    for (int k = 0; k < a->n; k++) {
        Var *w = a->p[k]->main->inputs.at[0];
        for (size_t i = 0; i < a->p[0]->main->inputs.n; i++)
            if (a->p[0]->main->inputs.at[i] == v)
                w = a->p[k]->main->inputs.at[i];
        if (!p2o_dim_is_int(w->recorded.shape.at[axis], &size[k]))
            return true;                        /* a symbol of the capture stays one */
        differs |= size[k] != size[0];
    }
    if (!differs && p2o_dim_is_int(*at, NULL))
        return true;
    if (p2o_dim_is_int(*at, NULL)) {
        *at = p2o_dim_sym(a->p[0]->dims, p2o_printf(a->p[0]->arena, "%s_%d", input, axis));
        p2o_set_role(a->bind, *at, ROLE_FILE);
    }
    for (int k = 0; k < a->n && p2o_dim_is_sym(*at); k++) {
        int64_t had;
        if (p2o_hint_at(a->bind, *at, k, &had) && had != size[k]) {
            p2o_diag_advise(a->p[0]->diags, DIAG_NOT_DYNAMIC, 0, "use another name for one of them",
                            "'%s' names sizes that differ in capture %d: %lld, and %lld for axis %d of '%s'",
                            p2o_dim_name(*at), k + 1, (long long)had, (long long)size[k], axis, input);
            return false;
        }
        p2o_set_hint_at(a->bind, *at, k, size[k]);
    }
    return true;
}

bool p2o_align_inputs(Program *const *p, int n, Bindings *b)
{
    Align a = { .p = p, .n = n, .bind = b };
    for (int k = 1; k < n; k++) {
        if (p[k]->main->inputs.n != p[0]->main->inputs.n)
            return part_ways(&a, 0, k, "they have different numbers of inputs");
        for (size_t i = 0; i < p[0]->main->inputs.n; i++) {
            const Type *x = &p[0]->main->inputs.at[i]->recorded, *y = &p[k]->main->inputs.at[i]->recorded;
            if (x->kind != y->kind || x->dtype != y->dtype || x->shape.rank != y->shape.rank)
                return part_ways(&a, 0, k, p2o_printf(p[0]->arena, "input %zu has another type", i + 1));
        }
    }
    for (size_t i = 0; i < p[0]->inputs.n; i++) {
        Var *v = p[0]->inputs.at[i].var;
        for (int axis = 0; v && axis < v->type.shape.rank; axis++)
            if (!align_axis(&a, p[0]->inputs.at[i].name, v, axis, (Dim *)(uintptr_t)&v->type.shape.at[axis]))
                return false;
    }
    return true;
}
