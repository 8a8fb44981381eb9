#include "aten/functional.h"

#include "aten/call.h"

/* What a Var is a view of, and its value now. */
typedef struct Alias {
    Var        *base;           /* the Var whose storage it is; itself when it has its own */
    Var        *parent;         /* what it was taken from; NULL for a base */
    const Call *view;           /* how; NULL: the same tensor under another name */
    int         out;            /* which result of the view call */
    Var        *now;
    uint32_t    seen;           /* version of the base that `now` shows */
    uint32_t    version;        /* of a base: number of writes so far */
    const Call *unsure;         /* of a base: a call that shares its storage or copies, unknown which */
} Alias;

typedef struct MissingOp {
    size_t count;
    Loc    first;
} MissingOp;

typedef struct Functional {
    Ops     *ops;
    Program *prog;
    Arena   *arena;
    Body    *body;              /* being rewritten */
    Alias   *alias;             /* by Var id, for the Vars there were at the start */
    uint32_t nalias;
    Map      missing;
    VEC(Call *) calls;          /* of the new body */
} Functional;

static Alias *alias_of(Functional *f, Var *v)
{
    if (v->id >= f->nalias)                     /* made here: a plain value */
        return NULL;
    Alias *a = &f->alias[v->id];
    if (!a->base)
        *a = (Alias){ .base = v, .now = v };
    return a;
}

static void fail_at(Functional *f, const Call *c, DiagKind k, const char *what)
{
    p2o_diag(f->prog->diags, k, c->loc, "%s: %s", c->target, what);
}

/* A call of our own making, bound to its row. */
static Var *add_call(Functional *f, const Call *like, const char *target, int nargs, const Arg *args)
{
    Call *c = NEW(f->arena, Call);
    *c = (Call){ .target = target, .args = NEW_N(f->arena, Arg, (size_t)nargs), .nargs = nargs,
                 .outs = NEW(f->arena, Var *), .nouts = 1, .loc = like->loc };
    memcpy(c->args, args, (size_t)nargs * sizeof *args);
    c->op = p2o_ops_find(f->ops, str_of(target));
    if (!c->op) {
        fail_at(f, like, DIAG_UNSUPPORTED, p2o_printf(f->arena, "a write that needs %s", target));
        return NULL;
    }
    c->schema = p2o_ops_schema(f->ops, c->op);
    if (!p2o_schema_bind(f->prog, c, c->schema))
        return NULL;
    c->outs[0] = p2o_var_fresh(f->prog, f->body, strrchr(target, ':') + 1);
    c->outs[0]->def = c;
    VEC_PUSH(f->arena, &f->calls, c);
    return c->outs[0];
}

static Var *current(Functional *f, Var *v);

/* The view call again, on what its argument is now. */
static Var *take_again(Functional *f, const Alias *a)
{
    Var *from = current(f, a->parent);
    if (!from || !a->view)
        return from;
    Call *c = NEW(f->arena, Call);
    *c = *a->view;
    c->args = NEW_N(f->arena, Arg, (size_t)c->nargs);
    memcpy(c->args, a->view->args, (size_t)c->nargs * sizeof *c->args);
    c->args[0] = arg_var(from);
    c->outs = NEW_N(f->arena, Var *, (size_t)c->nouts);
    for (int i = 0; i < c->nouts; i++) {
        if (!a->view->outs[i])
            continue;
        c->outs[i] = p2o_var_fresh(f->prog, f->body, a->view->outs[i]->name);
        c->outs[i]->def = c;
    }
    VEC_PUSH(f->arena, &f->calls, c);
    return c->outs[a->out];
}

static Var *current(Functional *f, Var *v)
{
    Alias *a = alias_of(f, v);
    if (!a)
        return v;
    const Alias *base = alias_of(f, a->base);
    if (a->seen != base->version) {
        a->now = take_again(f, a);
        a->seen = base->version;
    }
    return a->now;
}

static void use_current(Functional *f, Arg *x)
{
    if (x->kind == ARG_VAR) {
        Var *now = current(f, x->var);
        x->var = now ? now : x->var;
    } else if (x->kind == ARG_LIST) {
        Arg *items = NEW_N(f->arena, Arg, x->n);
        for (uint32_t i = 0; i < x->n; i++) {
            items[i] = x->items[i];
            use_current(f, &items[i]);
        }
        x->items = items;
    }
}

static bool key_is(const Call *c, const char *name) { return same(c->schema->key + strlen("aten::"), name); }

static bool is_one_of(const Call *c, size_t n, const char *const *names)
{
    for (size_t i = 0; i < n; i++)
        if (key_is(c, names[i]))
            return true;
    return false;
}

static Arg int_of(Functional *f, int64_t v) { return arg_int(p2o_dim_int(f->prog->dims, v)); }

/* Where piece `out` of a split begins and ends along its dim. */
static bool piece_bounds(Functional *f, const Call *view, int out, Arg *start, Arg *end)
{
    Dims *t = f->prog->dims;
    if (key_is(view, "split.Tensor")) {
        Dim size = dim_arg(view, "split_size");
        *start = arg_int(p2o_dim_mul(t, size, p2o_dim_int(t, out)));
        *end = arg_int(p2o_dim_mul(t, size, p2o_dim_int(t, out + 1)));
        return size && start->i && end->i;
    }
    Dim at = p2o_dim_int(t, 0);
    for (int i = 0; i <= out; i++) {            /* split_with_sizes, chunk: by the pieces' own sizes */
        const Var *piece = view->outs[i];
        int        dim;
        if (!piece || piece->recorded.kind != TY_TENSOR ||
            !p2o_wrap_dim(int_arg(view, "dim"), piece->recorded.shape.rank, false, &dim))
            return false;
        *start = arg_int(at);
        at = p2o_dim_add(t, at, piece->recorded.shape.at[dim]);
        *end = arg_int(at);
        if (!at)
            return false;
    }
    return true;
}

/* What the viewed tensor is after `value` was written through the view. */
static Var *scatter(Functional *f, const Call *at, const Alias *a, Var *into, Var *value)
{
    const Call *view = a->view;
    Arg         x = arg_var(into), y = arg_var(value), start, end;
    if (!view)
        return value;
    const Arg *args = view->args;
    if (key_is(view, "slice.Tensor"))
        return add_call(f, at, "aten::slice_scatter", 6, (Arg[]){ x, y, args[1], args[2], args[3], args[4] });
    if (key_is(view, "select.int"))
        return add_call(f, at, "aten::select_scatter", 4, (Arg[]){ x, y, args[1], args[2] });
    if (key_is(view, "diagonal"))
        return add_call(f, at, "aten::diagonal_scatter", 5, (Arg[]){ x, y, args[1], args[2], args[3] });
    if (key_is(view, "unbind.int"))
        return add_call(f, at, "aten::select_scatter", 4, (Arg[]){ x, y, args[1], int_of(f, a->out) });
    if (key_is(view, "split.Tensor") || key_is(view, "split_with_sizes") || key_is(view, "chunk")) {
        if (!piece_bounds(f, view, a->out, &start, &end))
            return NULL;
        return add_call(f, at, "aten::slice_scatter", 6, (Arg[]){ x, y, args[2], start, end, int_of(f, 1) });
    }
    if (key_is(view, "transpose.int"))
        return add_call(f, at, "aten::transpose.int", 3, (Arg[]){ y, args[1], args[2] });
    if (key_is(view, "t"))
        return add_call(f, at, "aten::t", 1, (Arg[]){ y });
    if (key_is(view, "permute")) {
        uint32_t n = args[1].n;
        Arg     *inverse = NEW_N(f->arena, Arg, n);
        for (uint32_t i = 0; i < n; i++) {
            int64_t d = 0;
            p2o_dim_is_int(args[1].items[i].i, &d);
            d = d < 0 ? d + n : d;
            if (d < 0 || d >= n)
                return NULL;
            inverse[d] = int_of(f, i);
        }
        return add_call(f, at, "aten::permute", 2, (Arg[]){ y, arg_list(inverse, n) });
    }
    static const char *const reshapes[] = {
        "view", "_unsafe_view", "reshape", "reshape_as", "view_as", "flatten.using_ints", "unflatten.int",
        "unsqueeze", "squeeze", "squeeze.dim", "squeeze.dims",
    };
    if (!is_one_of(view, COUNT_OF(reshapes), reshapes))
        return NULL;
    return add_call(f, at, "aten::reshape_as", 2, (Arg[]){ y, x });
}

static bool write_to(Functional *f, const Call *at, Var *v, Var *value)
{
    Alias *a = alias_of(f, v);
    if (!a->parent && a->unsure) {
        fail_at(f, at, DIAG_UNSUPPORTED, p2o_printf(f->arena, "a write to a tensor that %s may share",
                                                    a->unsure->target));
        return false;
    }
    if (!a->parent) {
        a->now = value;
        a->seen = ++a->version;
        return true;
    }
    Var *into = current(f, a->parent);
    Var *scattered = into ? scatter(f, at, a, into, value) : NULL;
    if (!scattered) {
        fail_at(f, at, DIAG_UNSUPPORTED, p2o_printf(f->arena, "a write through %s",
                                                    a->view ? a->view->target : "a view"));
        return false;
    }
    if (!write_to(f, at, a->parent, scattered))
        return false;
    a->now = value;
    a->seen = alias_of(f, a->base)->version;
    return true;
}

static void set_alias(Functional *f, Var *v, Var *parent, const Call *view, int out)
{
    Alias       *a = alias_of(f, v);
    const Alias *p = alias_of(f, parent);
    if (a && p)
        *a = (Alias){ .base = p->base, .parent = parent, .view = view, .out = out, .now = v,
                      .seen = alias_of(f, p->base)->version };
}

typedef enum Sharing { SHARES_NOTHING, SHARES_VIEW, SHARES_ALL, SHARES_MAYBE } Sharing;

/* By the schema's marks; but some of those copy where they must: a reshape of what is not dense, a
 * conversion that changes something. */
static Sharing sharing_of(const Call *c, const Var *from, const Var *to)
{
    static const char *const whole[] = { "detach", "alias", "lift_fresh" };
    static const char *const maybe[] = { "reshape", "reshape_as", "flatten.using_ints" };
    if (!c->schema->nrets || !c->schema->args[0].alias || !c->schema->rets[0].alias)
        return SHARES_NOTHING;
    if (key_is(c, "contiguous"))
        return from->dense == YES ? SHARES_ALL : SHARES_NOTHING;
    if (p2o_str_starts(str_of(c->schema->key), "aten::to."))
        return from->recorded.dtype == to->recorded.dtype && !bool_arg(c, "copy") ? SHARES_ALL : SHARES_NOTHING;
    if (is_one_of(c, COUNT_OF(whole), whole))
        return SHARES_ALL;
    return is_one_of(c, COUNT_OF(maybe), maybe) && from->dense != YES ? SHARES_MAYBE : SHARES_VIEW;
}

static void note_views(Functional *f, const Call *given, const Call *c)
{
    if (c->nargs == 0 || given->args[0].kind != ARG_VAR)
        return;
    Var *from = given->args[0].var;             /* as the file has it: the alias, not its value now */
    for (int i = 0; i < c->nouts; i++) {
        Sharing how = c->outs[i] ? sharing_of(c, from, c->outs[i]) : SHARES_NOTHING;
        if (how == SHARES_VIEW || how == SHARES_ALL)
            set_alias(f, c->outs[i], from, how == SHARES_ALL ? NULL : c, i);
        else if (how == SHARES_MAYBE && alias_of(f, from))
            alias_of(f, alias_of(f, from)->base)->unsure = c;
    }
}

/* "aten::add_.Tensor" -> "aten::add.Tensor"; NULL when it is no in-place form. */
static const char *functional_twin(Arena *a, const char *target)
{
    Str overload, name = p2o_str_cut(str_of(target), '.', &overload);
    if (!p2o_str_ends(name, "_") || p2o_str_ends(name, "__"))
        return NULL;
    return p2o_printf(a, "%.*s%s%.*s", (int)name.n - 1, name.p, overload.n ? "." : "", STR_ARG(overload));
}

static void note_missing(Functional *f, const Call *c)
{
    void **slot = p2o_map_slot(&f->missing, str_of(c->target));
    if (!*slot) {
        MissingOp *m = NEW(f->arena, MissingOp);
        m->first = c->loc;
        *slot = m;
    }
    ((MissingOp *)*slot)->count++;
}

/* self = twin(self, ...), stored in self's own type. */
static void rewrite_write(Functional *f, const Call *given, Call *c)
{
    Var *self = given->nargs && given->args[0].kind == ARG_VAR ? given->args[0].var : NULL;
    Var *out = c->nouts == 1 ? c->outs[0] : NULL;
    if (!self || !out) {
        fail_at(f, c, DIAG_UNSUPPORTED, "a write of this form");
        return;
    }
    Str  stem = str_of(out->name);
    while (stem.n > 1 && stem.p[stem.n - 1] == '_')
        stem.n--;
    Var *now = current(f, self), *raw = p2o_var_fresh(f->prog, f->body, p2o_str_dup(f->arena, stem));
    raw->def = c;
    c->outs = NEW(f->arena, Var *);
    c->outs[0] = raw;
    VEC_PUSH(f->arena, &f->calls, c);
    Var *stored = add_call(f, c, "aten::copy", 2, (Arg[]){ arg_var(now), arg_var(raw) });
    if (!stored)
        return;
    stored->recorded = out->recorded;
    if (write_to(f, c, self, stored))
        set_alias(f, out, self, NULL, 0);
    alias_of(f, out)->now = stored;
}

static void rewrite_body(Functional *f, Body *b);

static void rewrite_call(Functional *f, Call *given)
{
    for (int i = 0; i < given->nargs; i++)
        if (given->args[i].kind == ARG_BODY)
            rewrite_body(f, given->args[i].body);
    const char   *twin = NULL;
    const AtenOp *op = p2o_ops_find(f->ops, str_of(given->target));
    if (!op) {
        twin = functional_twin(f->arena, given->target);
        op = twin ? p2o_ops_find(f->ops, str_of(twin)) : NULL;
    }
    if (!op) {
        note_missing(f, given);
        return;
    }
    Call *c = NEW(f->arena, Call);
    *c = *given;
    c->args = NEW_N(f->arena, Arg, (size_t)given->nargs);
    for (int i = 0; i < given->nargs; i++) {
        c->args[i] = given->args[i];
        use_current(f, &c->args[i]);
    }
    c->op = op;
    c->schema = p2o_ops_schema(f->ops, op);
    if (!p2o_schema_bind(f->prog, c, c->schema))
        return;
    if (twin) {
        c->target = twin;
        rewrite_write(f, given, c);
        return;
    }
    for (int i = 0; i < c->nouts; i++)
        if (c->outs[i])
            c->outs[i]->def = c;
    VEC_PUSH(f->arena, &f->calls, c);
    note_views(f, given, c);
}

static void rewrite_body(Functional *f, Body *b)
{
    Functional inner = *f;
    inner.body = b;
    inner.calls.at = NULL;
    inner.calls.n = inner.calls.cap = 0;
    for (size_t i = 0; i < b->calls.n; i++)
        rewrite_call(&inner, b->calls.at[i]);
    for (size_t i = 0; i < b->outputs.n; i++)
        use_current(&inner, &b->outputs.at[i]);
    for (size_t i = 0; b == f->prog->main && i < f->prog->outputs.n; i++)
        use_current(&inner, &f->prog->outputs.at[i].value);
    b->calls.at = inner.calls.at;
    b->calls.n = inner.calls.n;
    b->calls.cap = inner.calls.cap;
    f->missing = inner.missing;
}

static void note_changed(Functional *f, Var *v, OutputKind kind, const char *name)
{
    const Alias *a = alias_of(f, v);
    if (a->version)
        VEC_PUSH(f->arena, &f->prog->outputs, (OutputSpec){ .kind = kind, .name = name, .value = arg_var(a->now) });
}

static void report_missing(const Functional *f)
{
    for (size_t i = 0; i < f->missing.n; i++) {
        const MissingOp *m = f->missing.at[i].value;
        p2o_diag(f->prog->diags, DIAG_NO_OPERATOR, m->first, "%.*s is not supported (%zu use%s)",
                 STR_ARG(f->missing.at[i].key), m->count, m->count == 1 ? "" : "s");
    }
}

bool p2o_functional(Ops *o, Program *p)
{
    size_t     errors = p2o_diags_errors(p->diags);
    Functional f = { .ops = o, .prog = p, .arena = p->arena, .nalias = p->nvar,
                     .alias = NEW_N(p->arena, Alias, (size_t)p->nvar + 1),
                     .missing = { .arena = p->arena } };

    rewrite_body(&f, p->main);
    for (size_t i = 0; i < p->inputs.n; i++)
        if (p->inputs.at[i].var)
            note_changed(&f, p->inputs.at[i].var, OUT_INPUT, p->inputs.at[i].name);
    for (size_t i = 0; i < p->weights.n; i++)
        note_changed(&f, p->weights.at[i], OUT_BUFFER, p->weights.at[i]->fqn);
    report_missing(&f);
    return p2o_diags_errors(p->diags) == errors;
}
