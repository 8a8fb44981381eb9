#include "aten/functional.h"

#include "aten/call.h"
#include "aten/custom.h"
#include "aten/vmap.h"

typedef struct Link Link;

/* What a Var is a view of, and its value now. */
typedef struct Alias {
    Var        *base;           /* the Var whose storage it is; itself when it has its own */
    Var        *parent;         /* what it was taken from; NULL for a base */
    const Call *view;           /* how; NULL: the same tensor under another name */
    int         out;            /* which result of the view call */
    Var        *now;
    uint32_t    seen;           /* version of the base that `now` shows */
    uint32_t    version;        /* of a base: number of writes so far */
    const Link *links;          /* of a base: others that may share its storage, or may not */
    const char *spoiled;        /* of a base: what may have changed it; NULL: nothing */
} Alias;

struct Link {
    Var        *base;
    const char *why;            /* "aten::reshape may share" */
    const Link *next;
};

typedef struct MissingOp {
    size_t count;
    Loc    first;
} MissingOp;

typedef VEC(Var *) VarVec;

typedef struct Functional {
    Ops        *ops;
    Program    *prog;
    Arena      *arena;
    Body       *body;           /* being rewritten */
    const Call *at;             /* of it; NULL: its outputs */
    Alias      *alias;          /* by Var id, for the Vars there were at the start */
    uint32_t    nalias;
    DType       autocast;       /* of the region that the call stands in; DT_NONE: outside of any */
    Map        *missing;
    VarVec     *replaced;       /* pieces whose place another value took: the whole list is used */
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

static void refuse_at(Functional *f, const char *what)
{
    if (f->at)
        p2o_diag(f->prog->diags, DIAG_UNSUPPORTED, f->at->loc, "%s: %s", f->at->target, what);
    else
        p2o_diag(f->prog->diags, DIAG_UNSUPPORTED, 0, "an output: %s", what);
}

/* A call of our own making, bound to its row. */
static Var *add_call(Functional *f, const char *target, int nargs, const Arg *args)
{
    if (!p2o_ops_find(f->ops, str_of(target))) {
        refuse_at(f, p2o_printf(f->arena, "a write that needs %s", target));
        return NULL;
    }
    Call *c = p2o_ops_call(f->ops, f->prog, f->body, target, nargs, args, f->at->loc);
    if (!c)
        return NULL;
    VEC_PUSH(f->arena, &f->calls, c);
    return c->outs[0];
}

/* The view call again, on another tensor. */
static Call *view_again(Functional *f, const Call *view, Var *from)
{
    Call *c = NEW(f->arena, Call);
    *c = *view;
    c->args = NEW_N(f->arena, Arg, (size_t)c->nargs);
    memcpy(c->args, view->args, (size_t)c->nargs * sizeof *c->args);
    c->args[0] = arg_var(from);
    c->outs = NEW_N(f->arena, Var *, (size_t)c->nouts);
    for (int i = 0; i < c->nouts; i++) {
        c->outs[i] =
            p2o_var_fresh(f->prog, f->body, view->outs[i] ? view->outs[i]->name : "unused");
        c->outs[i]->def = c;
    }
    VEC_PUSH(f->arena, &f->calls, c);
    return c;
}

/* NULL after a diagnostic. */
static Var *current(Functional *f, Var *v)
{
    Alias *a = alias_of(f, v);
    if (!a)
        return v;
    Alias *base = alias_of(f, a->base);
    if (base->spoiled) {
        refuse_at(f, p2o_printf(f->arena, "reads '%s', which a write before it changed or not: %s",
                                v->name, base->spoiled));
        base->spoiled = NULL;
    }
    if (a->seen != base->version) {
        Var *from = current(f, a->parent);
        a->now = from && a->view ? view_again(f, a->view, from)->outs[a->out] : from;
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

static bool key_is(const Call *c, const char *name)
{
    Str key = str_of(c->schema->key);
    return p2o_str_starts(key, "aten::") && same(key.p + strlen("aten::"), name);
}

static bool is_one_of(const Call *c, size_t n, const char *const *names)
{
    for (size_t i = 0; i < n; i++)
        if (key_is(c, names[i]))
            return true;
    return false;
}
#define IS_ONE_OF(c, ...)                                                                          \
    is_one_of(c, COUNT_OF(((const char *const[]){ __VA_ARGS__ })),                                 \
              (const char *const[]){ __VA_ARGS__ })

static Arg int_of(Functional *f, int64_t v) { return arg_int(p2o_dim_int(f->prog->dims, v)); }

static bool rises(const Arg *list)
{
    int64_t last = 0, v;
    for (uint32_t i = 0; i < list->n; i++) {
        if (list->items[i].kind != ARG_INT || !p2o_dim_is_int(list->items[i].i, &v) || v < last)
            return false;
        last = v;
    }
    return true;
}

/* The dim along which pieces lie; false when they need not be a partition. */
static bool pieces_dim(Functional *f, const Call *view, Arg *dim)
{
    int at = p2o_schema_find(view->schema, "indices");
    if (at >= 0 && !rises(&view->args[at]))
        return false;
    at = p2o_schema_find(view->schema, "dim");
    if (at >= 0)
        *dim = view->args[at];
    else if (IS_ONE_OF(view, "vsplit.int", "vsplit.array"))
        *dim = int_of(f, 0);
    else if (IS_ONE_OF(view, "dsplit.int", "dsplit.array"))
        *dim = int_of(f, 2);
    else
        *dim = int_of(f, view->args[0].var->recorded.shape.rank == 1 ? 0 : 1);
    return true;
}

/* All pieces again, one of them replaced, joined. */
static Var *replace_piece(Functional *f, const Alias *a, Var *into, Var *value)
{
    Arg dim;
    if (!pieces_dim(f, a->view, &dim))
        return NULL;
    const Call *again = view_again(f, a->view, into);
    Arg        *items = NEW_N(f->arena, Arg, (size_t)again->nouts);
    for (int i = 0; i < again->nouts; i++)
        items[i] = arg_var(i == a->out ? value : again->outs[i]);
    VEC_PUSH(f->arena, f->replaced, again->outs[a->out]);
    return add_call(f, "aten::cat", 2, (Arg[]){ arg_list(items, (size_t)again->nouts), dim });
}

static Var *unpermute(Functional *f, const Arg *dims, Arg y)
{
    Arg *inverse = NEW_N(f->arena, Arg, dims->n);
    for (uint32_t i = 0; i < dims->n; i++) {
        int64_t d = -1;
        p2o_dim_is_int(p2o_arg_dim(&dims->items[i]), &d);
        d = d < 0 ? d + dims->n : d;
        if (d < 0 || d >= dims->n)
            return NULL;
        inverse[d] = int_of(f, i);
    }
    return add_call(f, "aten::permute", 2, (Arg[]){ y, arg_list(inverse, dims->n) });
}

/* start + length, where that is no index from the end. */
static bool narrow_end(Functional *f, const Arg *start, const Arg *length, Arg *end)
{
    Dims   *t = f->prog->dims;
    int64_t low, high;
    Dim     from = start->kind == ARG_VAR ? start->var->recorded.value : start->i;
    if (!from)
        return false;
    p2o_dim_range(t, from, &low, &high);
    if (start->kind == ARG_INT && length->kind == ARG_INT && (low >= 0 || high < 0)) {
        Dim to = p2o_dim_add(t, from, length->i);
        *end = high < 0 && dim_is(to, 0) ? arg_none() : arg_int(to);
        return to != NULL;
    }
    Var *sum = low >= 0 ? add_call(f, "_operator::add", 2, (Arg[]){ *start, *length }) : NULL;
    *end = sum ? arg_var(sum) : arg_none();
    return sum != NULL;
}

static bool same_recorded_shape(const Var *a, const Var *b)
{
    return a->recorded.kind == TY_TENSOR && b->recorded.kind == TY_TENSOR &&
           p2o_shape_same(a->recorded.shape, b->recorded.shape);
}

/* What the viewed tensor is after `value` was written through the view.  NULL: there is no way. */
static Var *scatter(Functional *f, const Alias *a, Var *into, Var *value)
{
    const Call *view = a->view;
    Arg         x = arg_var(into), y = arg_var(value), end;
    if (!view)
        return value;
    const Arg *args = view->args;
    if (key_is(view, "slice.Tensor"))
        return add_call(f, "aten::slice_scatter", 6,
                        (Arg[]){ x, y, args[1], args[2], args[3], args[4] });
    if (same(view->schema->key, P2O_VMAP_ENTERS))
        return add_call(f, P2O_VMAP_LEAVES, 4, (Arg[]){ y, args[2], args[3], args[1] });
    if (key_is(view, "narrow"))
        return narrow_end(f, &args[2], &args[3], &end)
                   ? add_call(f, "aten::slice_scatter", 6,
                              (Arg[]){ x, y, args[1], args[2], end, int_of(f, 1) })
                   : NULL;
    if (key_is(view, "select.int"))
        return add_call(f, "aten::select_scatter", 4, (Arg[]){ x, y, args[1], args[2] });
    if (key_is(view, "unbind.int"))
        return add_call(f, "aten::select_scatter", 4, (Arg[]){ x, y, args[1], int_of(f, a->out) });
    if (IS_ONE_OF(view, "diagonal", "linalg_diagonal"))
        return add_call(f, "aten::diagonal_scatter", 5, (Arg[]){ x, y, args[1], args[2], args[3] });
    if (key_is(view, "as_strided"))
        return add_call(f, "aten::as_strided_scatter", 5,
                        (Arg[]){ x, y, args[1], args[2], args[3] });
    if (IS_ONE_OF(view, "split.Tensor", "split.sizes", "split_with_sizes", "chunk",
                  "tensor_split.sections", "tensor_split.indices", "hsplit.int", "vsplit.int",
                  "dsplit.int", "hsplit.array", "vsplit.array", "dsplit.array"))
        return replace_piece(f, a, into, value);
    if (IS_ONE_OF(view, "t", "numpy_T", "mT", "mH", "adjoint", "matrix_H"))
        return add_call(f, view->schema->key, 1, (Arg[]){ y });
    if (IS_ONE_OF(view, "transpose.int", "swapaxes", "swapdims"))
        return add_call(f, view->schema->key, 3, (Arg[]){ y, args[1], args[2] });
    if (IS_ONE_OF(view, "movedim.int", "movedim.intlist", "moveaxis.int", "moveaxis.intlist"))
        return add_call(f, view->schema->key, 3, (Arg[]){ y, args[2], args[1] });
    if (key_is(view, "permute"))
        return unpermute(f, &args[1], y);
    if (IS_ONE_OF(view, "view", "reshape", "reshape_as", "view_as", "flatten.using_ints",
                  "unflatten.int", "ravel", "unsqueeze", "squeeze", "squeeze.dim", "squeeze.dims",
                  "_reshape_alias", "atleast_1d", "atleast_2d", "atleast_3d"))
        return add_call(f, "aten::reshape_as", 2, (Arg[]){ y, x });
    if (IS_ONE_OF(view, "expand", "expand_as", "broadcast_to") &&
        same_recorded_shape(view->outs[0], a->parent))
        return value;
    return NULL;
}

/* Whatever may share the storage of a base that is written may have changed. */
static void spoil_links(Functional *f, const Alias *base, const Alias *written)
{
    for (const Link *k = base->links; k; k = k->next) {
        Alias *other = alias_of(f, k->base);
        if (other == written || other->spoiled)
            continue;
        other->spoiled = k->why;
        spoil_links(f, other, written);
    }
}

static bool write_to(Functional *f, Var *v, Var *value)
{
    Alias *a = alias_of(f, v);
    if (!a->parent) {
        spoil_links(f, a, a);
        a->now = value;
        a->now->dense = v->dense;
        a->seen = ++a->version;
        return true;
    }
    Var *into = current(f, a->parent);
    Var *scattered = into ? scatter(f, a, into, value) : NULL;
    if (!scattered) {
        refuse_at(f,
                  p2o_printf(f->arena, "a write through %s", a->view ? a->view->target : "a view"));
        return false;
    }
    if (!write_to(f, a->parent, scattered))
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

static void add_link(Functional *f, Var *from, Var *to, const char *why)
{
    Alias *a = alias_of(f, from);
    Link  *k = NEW(f->arena, Link);
    a = alias_of(f, a->base);
    *k = (Link){ .base = alias_of(f, to)->base, .why = why, .next = a->links };
    a->links = k;
}

static void may_share(Functional *f, Var *a, Var *b, const char *why)
{
    if (alias_of(f, a) && alias_of(f, b) && alias_of(f, a)->base != alias_of(f, b)->base) {
        add_link(f, a, b, why);
        add_link(f, b, a, why);
    }
}

typedef enum Sharing { SHARES_NOTHING, SHARES_VIEW, SHARES_ALL, SHARES_MAYBE } Sharing;

/* A reshape shares if it can.  What it copies is dense, so where exactly one of the two is, it
 * copied or the whole was dense. */
static Sharing reshape_shares(const Var *from, const Var *to)
{
    if (from->dense == YES)
        return SHARES_VIEW;
    if (from->dense == NO && to->dense != CANNOT_TELL)
        return to->dense == YES ? SHARES_NOTHING : SHARES_VIEW;
    return SHARES_MAYBE;
}

static bool is_given(const Call *c, const char *name)
{
    return p2o_schema_find(c->schema, name) >= 0 && has_arg(c, name);
}

/* A conversion that changes nothing gives the tensor itself. */
static Sharing conversion_shares(const Call *c, const Var *from, const Var *to)
{
    if (from->recorded.dtype != to->recorded.dtype || (is_given(c, "copy") && bool_arg(c, "copy")))
        return SHARES_NOTHING;
    return is_given(c, "memory_format") ? SHARES_MAYBE : SHARES_ALL;
}

static Sharing contiguous_shares(const Call *c, const Var *from)
{
    if (!p2o_str_starts(str_of(str_arg(c, "memory_format")), "contiguous") ||
        from->dense == CANNOT_TELL)
        return SHARES_MAYBE;
    return from->dense == YES ? SHARES_ALL : SHARES_NOTHING;
}

/* By the schema's marks; but some operators copy where they must, and some without marks give back
 * their argument. */
static Sharing sharing_of(const Call *c, const Var *from, const Var *to)
{
    if (IS_ONE_OF(c, "dropout", "feature_dropout", "alpha_dropout", "feature_alpha_dropout"))
        return bool_arg(c, "train") ? SHARES_NOTHING : SHARES_ALL;
    if (IS_ONE_OF(c, "atleast_1d", "atleast_2d", "atleast_3d"))
        return SHARES_VIEW;
    if (key_is(c, "type_as") || p2o_str_starts(str_of(c->schema->key), "aten::to."))
        return conversion_shares(c, from, to);
    if (same(c->schema->key, P2O_VMAP_LEAVES))          /* what a value that left shared is gone */
        return SHARES_MAYBE;
    if (!c->schema->nrets || !c->schema->args[0].alias || !c->schema->rets[0].alias)
        return SHARES_NOTHING;
    if (key_is(c, "contiguous"))
        return contiguous_shares(c, from);
    if (IS_ONE_OF(c, "reshape", "reshape_as", "flatten.using_ints", "ravel"))
        return reshape_shares(from, to);
    if (IS_ONE_OF(c, "real", "conj", "_conj"))
        return is_complex(from->recorded.dtype) ? SHARES_VIEW : SHARES_ALL;
    bool same_tensor =
        IS_ONE_OF(c, "detach", "alias", "lift_fresh", "resolve_conj", "resolve_neg", "positive");
    return same_tensor ? SHARES_ALL : SHARES_VIEW;
}

static const char *link_reason(Functional *f, const Call *c)
{
    return p2o_printf(f->arena, "%s may share its storage", c->target);
}

static void note_views(Functional *f, const Call *given, const Call *c)
{
    if (c->nargs == 0)
        return;
    const Arg *first = &given->args[0];     /* as the file has it: the alias, not its value now */
    bool       spreads =
        IS_ONE_OF(c, "broadcast_tensors", "meshgrid", "meshgrid.indexing", "atleast_1d.Sequence",
                  "atleast_2d.Sequence", "atleast_3d.Sequence");
    for (int i = 0; i < c->nouts; i++) {
        if (!c->outs[i])
            continue;
        if (spreads && first->kind == ARG_LIST && (uint32_t)i < first->n &&
            first->items[i].kind == ARG_VAR)
            may_share(f, first->items[i].var, c->outs[i], link_reason(f, c));
        if (first->kind != ARG_VAR)
            continue;
        Sharing how = sharing_of(c, first->var, c->outs[i]);
        if (how == SHARES_VIEW || how == SHARES_ALL)
            set_alias(f, c->outs[i], first->var, how == SHARES_ALL ? NULL : c, i);
        else if (how == SHARES_MAYBE)
            may_share(f, first->var, c->outs[i], link_reason(f, c));
    }
}

/* "aten::add_.Tensor" -> "aten::add.Tensor", "aten::__iand__" -> "aten::__and__"; NULL when it is
 * no in-place form. */
static const char *functional_name(Arena *a, const char *target)
{
    Str overload, name = p2o_str_cut(str_of(target), '.', &overload);
    if (same(target, "aten::transpose_"))
        return "aten::transpose.int";
    if (p2o_str_starts(name, "aten::__i") && p2o_str_ends(name, "__"))
        return p2o_printf(a, "aten::__%.*s%s%.*s", (int)name.n - 9, name.p + 9,
                          overload.n ? "." : "", STR_ARG(overload));
    if (!p2o_str_ends(name, "_") || p2o_str_ends(name, "__"))
        return NULL;
    return p2o_printf(a, "%.*s%s%.*s", (int)name.n - 1, name.p, overload.n ? "." : "",
                      STR_ARG(overload));
}

static bool kind_fits(const SchemaArg *s, const Arg *x)
{
    bool tensor = x->kind == ARG_VAR &&
                  (x->var->recorded.kind == TY_TENSOR || x->var->recorded.kind == TY_NONE);
    if (x->kind == ARG_NONE)
        return s->optional;
    if (x->kind == ARG_LIST)
        return s->list;
    return tensor ? s->base == SB_TENSOR && !s->list : s->base != SB_TENSOR;
}

/* Does the row take these arguments, all but the last `nwritten`? */
static bool row_takes(const Schema *s, const Call *given, int nwritten)
{
    uint64_t taken = 0;
    for (int i = 0; i < given->nargs - nwritten; i++) {
        bool named = i > 0 && given->arg_names && given->arg_names[i] && given->arg_names[i][0];
        int  k = named ? p2o_schema_find(s, given->arg_names[i]) : i;
        if (k < 0 || k >= s->nargs || k >= 64 || !kind_fits(&s->args[k], &given->args[i]))
            return false;
        taken |= (uint64_t)1 << k;
    }
    for (int k = 0; k < s->nargs && k < 64; k++)
        if (!(taken >> k & 1) && !s->args[k].has_default && !s->args[k].optional)
            return false;
    return true;
}

/* Among the rows of one name: that of the overload, else the first that takes the arguments. */
static const AtenOp *find_overload(Functional *f, Str name, Str overload, const Call *given,
                                   int nwritten)
{
    const AtenOp *found = NULL, *op;
    const char   *key;
    for (size_t i = 0; (op = p2o_ops_at(f->ops, i, &key)); i++) {
        Str rest, stem = p2o_str_cut(str_of(key), '.', &rest);
        if (stem.n != name.n || memcmp(stem.p, name.p, name.n) ||
            !row_takes(p2o_ops_schema(f->ops, op), given, nwritten))
            continue;
        if (rest.n == overload.n && !memcmp(rest.p, overload.p, rest.n))
            return op;
        found = found ? found : op;
    }
    return found;
}

/* The row for the functional twin of an in-place or out= call; *nwritten: how many arguments at the
 * end are only written. */
static const AtenOp *find_twin(Functional *f, const Call *given, int *nwritten)
{
    const char   *name = functional_name(f->arena, given->target);
    const AtenOp *op = name ? p2o_ops_find(f->ops, str_of(name)) : NULL;
    Str           overload, stem = p2o_str_cut(str_of(name ? name : given->target), '.', &overload);
    *nwritten = 0;
    if (op && row_takes(p2o_ops_schema(f->ops, op), given, 0))
        return op;
    if (name) {                                 /* pow_.Scalar is pow.Tensor_Scalar */
        const AtenOp *other = find_overload(f, stem, overload, given, 0);
        return other ? other : op;
    }
    if (p2o_str_ends(overload, "_out"))
        overload.n -= strlen("_out");
    if (overload.n == 0 || given->nouts == 0)
        return NULL;
    *nwritten = given->nouts;
    for (int i = given->nargs - given->nouts; i < given->nargs; i++)
        if (i < 0 || given->args[i].kind != ARG_VAR)
            return NULL;
    return find_overload(f, stem, overload, given, *nwritten);
}

/* Wrappers of operators of one's own are named after what they call. */
static void note_missing(Functional *f, const Call *c)
{
    const char *name = c->target;
    for (int i = 0; i < c->nargs && name == c->target; i++)
        if (c->args[i].kind == ARG_OPERATOR)
            name = p2o_printf(f->arena, "%s of %s", c->target, c->args[i].s);
    void **slot = p2o_map_slot(f->missing, str_of(name));
    if (!*slot) {
        MissingOp *m = NEW(f->arena, MissingOp);
        m->first = c->loc;
        *slot = m;
    }
    ((MissingOp *)*slot)->count++;
}

/* `raw` stored in v's own type and shape; `out` is v's name from here on.  An out= tensor of
 * another shape is resized to the result's, as is what resize_ is about. */
static void store(Functional *f, Var *v, Var *raw, Var *out, bool is_out, bool is_resize)
{
    Var *now = current(f, v), *stored = raw;
    bool reshaped_out =
        is_out && out && v->recorded.kind == TY_TENSOR && !same_recorded_shape(v, out);
    bool resized = is_resize || reshaped_out;
    if (resized &&
        (alias_of(f, v)->parent || (reshaped_out && v->recorded.dtype != out->recorded.dtype))) {
        refuse_at(f, "a tensor of another shape that is a view or of another type");
        return;
    }
    if (!resized)
        stored = now ? add_call(f, "aten::copy", 2, (Arg[]){ arg_var(now), arg_var(raw) }) : NULL;
    if (!stored || !write_to(f, v, stored) || !out)
        return;
    stored->recorded = out->recorded;
    set_alias(f, out, v, NULL, 0);
    alias_of(f, out)->now = stored;
}

static const char *result_stem(Functional *f, const Var *out)
{
    Str stem = str_of(out ? out->name : "unused");
    while (stem.n > 1 && stem.p[stem.n - 1] == '_')
        stem.n--;
    return p2o_str_dup(f->arena, stem);
}

static bool resizes(const Call *c)
{
    return same(c->schema->key, "aten::resize") || same(c->schema->key, "aten::resize_as");
}

/* written = twin(...): the first argument, or those at the end that are left over. */
static void rewrite_write(Functional *f, const Call *given, Call *c, int nwritten)
{
    int n = nwritten ? nwritten : 1, from = nwritten ? given->nargs - nwritten : 0;
    if (c->nouts != n || given->nargs == 0 || given->args[from].kind != ARG_VAR ||
        c->schema->nrets != n) {
        refuse_at(f, "a write of this form");
        return;
    }
    c->outs = NEW_N(f->arena, Var *, (size_t)n);
    for (int i = 0; i < n; i++) {
        c->outs[i] = p2o_var_fresh(f->prog, f->body, result_stem(f, given->outs[i]));
        c->outs[i]->def = c;
    }
    VEC_PUSH(f->arena, &f->calls, c);
    for (int i = 0; i < n; i++)
        store(f, given->args[from + i].var, c->outs[i], given->outs[i], nwritten > 0, resizes(c));
}

/* What views lie between it and its base keep the start. */
static bool begins_with_base(Functional *f, Var *v)
{
    for (; alias_of(f, v)->parent; v = alias_of(f, v)->parent) {
        const Call *view = alias_of(f, v)->view;
        if (view && !(view->op && view->op->same_start))
            return false;
    }
    return true;
}

/* Strides count in the storage, so they are taken of the tensor that owns it.  false after a
 * diagnostic. */
static bool use_storage(Functional *f, Call *given, Call *c)
{
    Var       *v = given->args[0].kind == ARG_VAR ? given->args[0].var : NULL;
    int        offset = p2o_schema_find(c->schema, "storage_offset");
    const bool given_offset = c->args[offset].kind != ARG_NONE;
    if (!v || !alias_of(f, v))
        return true;
    while (alias_of(f, v)->parent && !alias_of(f, v)->view)
        v = alias_of(f, v)->parent;
    Var *base = alias_of(f, v)->base;
    if ((!given_offset && !begins_with_base(f, v)) ||
        (given_offset && base->tensor && base->tensor->offset)) {
        refuse_at(f, "strides into a view");
        return false;
    }
    Var *now = current(f, base);
    given->args = memcpy(NEW_N(f->arena, Arg, (size_t)given->nargs), given->args,
                         (size_t)given->nargs * sizeof *given->args);
    given->args[0] = arg_var(base);
    c->args[0] = arg_var(now ? now : base);
    return true;
}

static void rewrite_call(Functional *f, Call *given);
static void rewrite_body(Functional *f, Body *b);

static bool is_named(const char *target, size_t n, const char *const *names)
{
    for (size_t i = 0; i < n; i++)
        if (same(target, names[i]))
            return true;
    return false;
}

/* Operators that only run their body, under settings that do not change its values or, with
 * autocast, change the types that the file records. */
static bool is_wrapper(const char *target)
{
    static const char *const names[] = {
        "higher_order::wrap_with_set_grad_enabled", "higher_order::wrap_with_autocast",
        "higher_order::tag_activation_checkpoint", "higher_order::wrap_activation_checkpoint",
        "higher_order::wrap", "higher_order::strict_mode", "higher_order::hints_wrapper",
        "higher_order::invoke_subgraph",
    };
    return is_named(target, COUNT_OF(names), names);
}

typedef VEC(Arg) ArgVec;

/* What a wrapper passes to its body, one by one or as a list: the rest is named, a name, or
 * hints. */
static ArgVec wrapper_operands(Functional *f, const Call *c, int from)
{
    ArgVec v = { 0 };
    for (int i = from; i < c->nargs; i++) {
        const Arg *x = &c->args[i];
        bool       named = c->arg_names && c->arg_names[i] && c->arg_names[i][0];
        if (named || x->kind == ARG_STR || x->kind == ARG_BODY ||
            (x->kind == ARG_NONE && i == from))
            continue;
        if (x->kind != ARG_LIST) {
            VEC_PUSH(f->arena, &v, *x);
            continue;
        }
        for (uint32_t k = 0; k < x->n; k++)
            VEC_PUSH(f->arena, &v, x->items[k]);
        break;
    }
    return v;
}

/* The body's calls in place of the wrapper: its inputs are the operands under other names. */
static void inline_body(Functional *f, const Call *c, const Body *b, int from)
{
    ArgVec operands = wrapper_operands(f, c, from);
    bool   ok = operands.n == b->inputs.n && (size_t)c->nouts == b->outputs.n;
    for (size_t i = 0; ok && i < b->outputs.n; i++)
        ok = b->outputs.at[i].kind == ARG_VAR || !c->outs[i];
    if (!ok) {
        refuse_at(f, "a body with other operands or results than values");
        return;
    }
    for (size_t i = 0; i < operands.n; i++) {
        if (operands.at[i].kind != ARG_VAR)     /* baked into the body */
            continue;
        Var *v = operands.at[i].var, *now = current(f, v);
        set_alias(f, b->inputs.at[i], v, NULL, 0);
        alias_of(f, b->inputs.at[i])->now = now ? now : v;
    }
    for (size_t i = 0; i < b->calls.n; i++)
        rewrite_call(f, b->calls.at[i]);
    for (size_t i = 0; i < b->outputs.n; i++) {
        if (!c->outs[i])
            continue;
        Var *now = current(f, b->outputs.at[i].var);
        set_alias(f, c->outs[i], b->outputs.at[i].var, NULL, 0);
        alias_of(f, c->outs[i])->now = now ? now : b->outputs.at[i].var;
    }
}

static void link_results(Functional *f, const Call *c, const Arg *x)
{
    for (int k = 0; k < c->nouts && x->kind == ARG_VAR; k++)
        if (c->outs[k])
            may_share(f, x->var, c->outs[k], link_reason(f, c));
    for (uint32_t i = 0; x->kind == ARG_LIST && i < x->n; i++)
        link_results(f, c, &x->items[i]);
}

/* A body that runs under a condition or often: it may not write to what it is given, and its
 * results may be views of that. */
static void rewrite_inner(Functional *f, const Call *c, Body *b)
{
    bool shares = false;
    rewrite_body(f, b);
    for (size_t i = 0; i < b->inputs.n; i++)
        if (alias_of(f, b->inputs.at[i])->version)
            refuse_at(
                f, p2o_printf(f->arena, "a write to '%s' inside its body", b->inputs.at[i]->name));
    for (size_t i = 0; i < b->outputs.n; i++)
        for (size_t k = 0; k < b->inputs.n && b->outputs.at[i].kind == ARG_VAR; k++) {
            Alias *a = alias_of(f, b->outputs.at[i].var);
            shares |= a && a->base == b->inputs.at[k];
        }
    for (int i = 0; shares && i < c->nargs; i++)
        link_results(f, c, &c->args[i]);
}

/* wrap_with_autocast(device, dtype, enabled, cache, body, operands ...) */
static DType autocast_of(const Call *c)
{
    bool enabled = c->nargs > 3 && c->args[2].kind == ARG_BOOL && c->args[2].b;
    if (!enabled)
        return DT_NONE;
    if (c->args[1].kind == ARG_DTYPE)
        return c->args[1].dtype;
    return c->args[0].kind == ARG_STR && same(c->args[0].s, "cuda") ? DT_F16 : DT_BF16;
}

static void inline_wrapper(Functional *f, const Call *c, int at)
{
    DType around = f->autocast;
    if (same(c->target, "higher_order::wrap_with_autocast"))
        f->autocast = autocast_of(c);
    inline_body(f, c, c->args[at].body, at + 1);
    f->autocast = around;
}

/* What autocast computes in its type, whatever it is given. */
static bool is_lowered(const Call *c)
{
    return IS_ONE_OF(c, "linear", "matmul", "mm", "bmm", "mv", "dot", "vdot", "addmm", "addmv",
                     "addr", "addbmm", "baddbmm", "linalg_vecdot", "linalg_multi_dot",
                     "chain_matmul", "einsum", "conv1d", "conv2d", "conv3d", "conv1d.padding",
                     "conv2d.padding", "conv3d.padding", "convolution", "_convolution", "conv_tbc",
                     "conv_transpose1d", "conv_transpose2d.input", "conv_transpose3d.input",
                     "prelu", "scaled_dot_product_attention");
}

static void cast_float(Functional *f, Arg *x, DType t)
{
    Type now = x->kind == ARG_VAR ? x->var->recorded : (Type){ 0 };
    if (now.kind != TY_TENSOR || !is_float(now.dtype) || now.dtype == DT_F64 || now.dtype == t)
        return;
    Var *v = add_call(f, "aten::to.dtype", 2, (Arg[]){ *x, { .kind = ARG_DTYPE, .dtype = t } });
    if (!v)
        return;
    v->recorded = now;
    v->recorded.dtype = t;
    x->var = v;
}

/* The file does not hold autocast's casts, only the types that they lead to: down for the operators
 * listed above, and up where the result is wider than an argument. */
static void apply_autocast(Functional *f, Call *c)
{
    Type r = c->nouts && c->outs[0] ? c->outs[0]->recorded : (Type){ 0 };
    bool lowered = is_lowered(c) && r.dtype == f->autocast;
    if (r.kind != TY_TENSOR || !(lowered || r.dtype == DT_F32) ||
        (c->nargs && c->schema->args[0].alias))
        return;
    for (int i = 0; i < c->nargs; i++) {
        Arg *x = &c->args[i];
        if (x->kind != ARG_LIST)
            cast_float(f, x, r.dtype);
        for (uint32_t k = 0; x->kind == ARG_LIST && k < x->n; k++)
            cast_float(f, &x->items[k], r.dtype);
    }
}

/* with_effects(token, operator, args ...) -> (token, results ...): calls stand in their order
 * anyway. */
static Call *without_token(Functional *f, const Call *given)
{
    Call *c = NEW(f->arena, Call);
    *c = *given;
    c->target = given->args[1].s;
    c->args += 2;
    c->nargs -= 2;
    c->arg_names = given->arg_names ? given->arg_names + 2 : NULL;
    c->outs += given->nouts > 0;
    c->nouts -= given->nouts > 0;
    return c;
}

/* The call with values that are up to date, bound to a row.  NULL after a diagnostic. */
static Call *bound_call(Functional *f, const Call *given, const AtenOp *op, int nwritten)
{
    Call *c = NEW(f->arena, Call);
    *c = *given;
    c->nargs = given->nargs - nwritten;
    c->args = NEW_N(f->arena, Arg, (size_t)given->nargs);
    c->arg_names = given->arg_names ? NEW_N(f->arena, const char *, (size_t)given->nargs) : NULL;
    for (int i = 0; i < c->nargs; i++) {
        c->args[i] = given->args[i];
        use_current(f, &c->args[i]);
        if (c->arg_names)
            c->arg_names[i] = given->arg_names[i];
    }
    c->op = op;
    c->schema = p2o_ops_schema(f->ops, op);
    if (!same(given->target, c->schema->key)) {         /* dropout_(self) against dropout(input) */
        c->target = c->schema->key;
        if (c->nargs && c->arg_names)
            c->arg_names[0] = "";
    }
    return p2o_schema_bind(f->prog, c, c->schema) ? c : NULL;
}

/* cond(True, body, body, operands) */
static bool is_settled_cond(const Call *c)
{
    return same(c->target, "higher_order::cond") && c->nargs == 4 && c->args[0].kind == ARG_BOOL &&
           c->args[1].kind == ARG_BODY && c->args[2].kind == ARG_BODY;
}

static bool is_view_row(const Schema *s)
{
    return s->nargs && s->nrets == 1 && s->args[0].alias && s->rets[0].alias;
}

static const Arg *arg_called(const Call *c, const char *name)
{
    int i = p2o_schema_find(c->schema, name);
    return i < 0 ? NULL : &c->args[i];
}

/* What a normalisation that is trained writes to its running statistics.  Those of an instance's
 * are not computed: what reads them later is refused. */
static void update_running(Functional *f, const Call *given, const Call *c)
{
    static const char functional[] = "aten::_native_batch_norm_legit_functional";
    static const char *const names[] = { "input", "weight", "bias", "running_mean", "running_var" };
    const Arg *training = arg_called(c, "training"), *stats = arg_called(c, "use_input_stats");
    Arg        args[8];
    int        from = p2o_schema_find(c->schema, "running_mean");
    if ((training && !training->b) || (stats && !stats->b) || from < 0 ||
        given->args[from].kind != ARG_VAR || given->args[from + 1].kind != ARG_VAR)
        return;
    if (stats) {
        p2o_diag(f->prog->diags, DIAG_WARN, given->loc,
                 "%s: it updates running statistics, which the model does not return",
                 given->target);
        for (int i = 0; i < 2; i++) {
            Alias *a = alias_of(f, given->args[from + i].var);
            if (a)
                alias_of(f, a->base)->spoiled = "it updates running statistics";
        }
        return;
    }
    for (size_t i = 0; i < COUNT_OF(names); i++)
        args[i] = *arg_called(c, names[i]);
    args[5] = (Arg){ .kind = ARG_BOOL, .b = true };
    args[6] = *arg_called(c, "momentum");
    args[7] = *arg_called(c, "eps");
    Call *made = p2o_ops_call(f->ops, f->prog, f->body, functional, 8, args, given->loc);
    if (!made)
        return;
    made->nouts = 5;
    made->outs = NEW_N(f->arena, Var *, 5);
    for (int i = 0; i < 5; i++) {
        made->outs[i] = p2o_var_fresh(f->prog, f->body, i < 3 ? "unused" : names[i]);
        made->outs[i]->def = made;
    }
    VEC_PUSH(f->arena, &f->calls, made);
    for (int i = 0; i < 2; i++)
        store(f, given->args[from + i].var, made->outs[3 + i], NULL, false, false);
}

static void rewrite_call(Functional *f, Call *given)
{
    int           nwritten = 0;
    bool          writes = false;
    const AtenOp *op = p2o_ops_find(f->ops, str_of(given->target));

    f->at = given;
    if (same(given->target, "higher_order::with_effects") && given->nargs > 1 &&
        given->args[1].kind == ARG_OPERATOR) {
        rewrite_call(f, without_token(f, given));
        return;
    }
    if (is_settled_cond(given)) {
        inline_body(f, given, given->args[given->args[0].b ? 1 : 2].body, 3);
        return;
    }
    for (int i = 0; i < given->nargs; i++) {
        if (given->args[i].kind != ARG_BODY)
            continue;
        if (is_wrapper(given->target)) {
            inline_wrapper(f, given, i);
            return;
        }
        rewrite_inner(f, given, given->args[i].body);
        f->at = given;
    }
    if (!op) {
        op = find_twin(f, given, &nwritten);
        writes = op && (nwritten || !is_view_row(p2o_ops_schema(f->ops, op)));
    }
    if (!op) {
        bool  refused;
        Call *own = p2o_custom_bind(f->ops, f->prog, given, &op, &refused);
        if (!own && !refused)
            note_missing(f, given);
        if (!own)
            return;
        given = own;
        nwritten = 0;
    }
    Call *c = bound_call(f, given, op, nwritten);
    if (!c)
        return;
    if (writes) {
        rewrite_write(f, given, c, nwritten);
        return;
    }
    if (f->autocast && !c->op->custom)          /* which runs as it is */
        apply_autocast(f, c);
    if (IS_ONE_OF(c, "as_strided", "as_strided_copy", "as_strided_scatter") &&
        !use_storage(f, given, c))
        return;
    for (int i = 0; i < c->nouts; i++)
        if (c->outs[i])
            c->outs[i]->def = c;
    VEC_PUSH(f->arena, &f->calls, c);
    note_views(f, given, c);
    if (c->op->updates)
        update_running(f, given, c);
}

static void rewrite_body(Functional *f, Body *b)
{
    Functional inner = *f;
    inner.body = b;
    inner.calls.at = NULL;
    inner.calls.n = inner.calls.cap = 0;
    for (size_t i = 0; i < b->calls.n; i++)
        rewrite_call(&inner, b->calls.at[i]);
    inner.at = NULL;
    for (size_t i = 0; i < b->outputs.n; i++)
        use_current(&inner, &b->outputs.at[i]);
    for (size_t i = 0; b == f->prog->main && i < f->prog->outputs.n; i++)
        use_current(&inner, &f->prog->outputs.at[i].value);
    b->calls.at = inner.calls.at;
    b->calls.n = inner.calls.n;
    b->calls.cap = inner.calls.cap;
}

static bool same_geometry(const Tensor *a, const Tensor *b)
{
    size_t n = (size_t)a->rank * sizeof *a->sizes;
    return a->dtype == b->dtype && a->rank == b->rank && a->offset == b->offset &&
           !memcmp(a->sizes, b->sizes, n) && !memcmp(a->strides, b->strides, n);
}

/* Weights of one storage: the same tensor under two names, or parts that may overlap. */
static void note_shared_weights(Functional *f)
{
    Map first = { .arena = f->arena };
    for (size_t i = 0; i < f->prog->weights.n; i++) {
        Var *v = f->prog->weights.at[i];
        if (!v->tensor || !v->tensor->storage)
            continue;
        const Storage **key = NEW(f->arena, const Storage *);
        *key = v->tensor->storage;
        void **slot = p2o_map_slot(&first, (Str){ (const char *)key, sizeof *key });
        Var   *other = *slot;
        if (!other)
            *slot = v;
        else if (same_geometry(v->tensor, other->tensor))
            set_alias(f, v, other, NULL, 0);
        else
            may_share(f, v, other,
                      p2o_printf(f->arena, "weights '%s' and '%s' share a storage",
                                 other->fqn ? other->fqn : other->name, v->fqn ? v->fqn : v->name));
    }
}

static void note_changed(Functional *f, Var *v, OutputKind kind, const char *name)
{
    const Alias *a = alias_of(f, v);
    if (a->version)
        VEC_PUSH(f->arena, &f->prog->outputs,
                 (OutputSpec){ .kind = kind, .name = name, .value = arg_var(a->now) });
}

/* Operators of one's own can be given a meaning. */
static const char *missing_advice(const Functional *f, Str name)
{
    if (p2o_str_starts(name, "torch._functorch.predispatch::"))
        return "vmap is left open in this file; save ep.run_decompositions() instead";
    if (p2o_str_starts(name, "higher_order::") || memchr(name.p, ' ', name.n))
        return NULL;
    return p2o_printf(f->arena,
                      "give it a meaning: --custom-op '%.*s=com.example:Name' (your kernels), "
                      "--op-library FILE (an ONNX function); Python: custom_ops=", STR_ARG(name));
}

static void report_missing(const Functional *f)
{
    for (size_t i = 0; i < f->missing->n; i++) {
        const MissingOp *m = f->missing->at[i].value;
        Str              name = f->missing->at[i].key;
        const char      *advice = missing_advice(f, name);
        p2o_diag_advise(f->prog->diags, DIAG_NO_OPERATOR, m->first, advice,
                        "%.*s is not supported (%zu use%s)", STR_ARG(name), m->count,
                        m->count == 1 ? "" : "s");
    }
}

static void mark_args_used(const Arg *x, bool *used);

static void mark_used_in(const Body *b, bool *used)
{
    for (size_t i = 0; i < b->calls.n; i++)
        for (int k = 0; k < b->calls.at[i]->nargs; k++)
            mark_args_used(&b->calls.at[i]->args[k], used);
    for (size_t i = 0; i < b->outputs.n; i++)
        mark_args_used(&b->outputs.at[i], used);
}

static void mark_args_used(const Arg *x, bool *used)
{
    if (x->kind == ARG_VAR)
        used[x->var->id] = true;
    else if (x->kind == ARG_BODY)
        mark_used_in(x->body, used);
    for (uint32_t i = 0; x->kind == ARG_LIST && i < x->n; i++)
        mark_args_used(&x->items[i], used);
}

/* Files name every piece.  Those at the end that nobody uses are cut off; where no other says that
 * not all are used, one of them is kept. */
static void drop_pieces(Call *c, const bool *used)
{
    int last = 0;
    for (int k = 0; k < c->nouts; k++) {
        if (c->outs[k] && !used[c->outs[k]->id])
            c->outs[k] = NULL;
        last = c->outs[k] ? k : last;
    }
    bool gap = false;
    for (int k = 0; k < last; k++)
        gap |= !c->outs[k];
    if (last + 1 < c->nouts)
        c->nouts = gap ? last + 1 : last + 2;
}

static void drop_pieces_in(const Body *b, const bool *used)
{
    for (size_t i = 0; i < b->calls.n; i++) {
        Call *c = b->calls.at[i];
        for (int k = 0; k < c->nargs; k++)
            if (c->args[k].kind == ARG_BODY)
                drop_pieces_in(c->args[k].body, used);
        if (c->op && c->op->pieces)
            drop_pieces(c, used);
    }
}

static void drop_unused_pieces(const Program *p, const VarVec *replaced)
{
    bool *used = NEW_N(p->arena, bool, (size_t)p->nvar + 1);
    for (size_t i = 0; i < replaced->n; i++)
        used[replaced->at[i]->id] = true;
    mark_used_in(p->main, used);
    for (size_t i = 0; i < p->outputs.n; i++)
        mark_args_used(&p->outputs.at[i].value, used);
    drop_pieces_in(p->main, used);
}

bool p2o_functional(Ops *o, Program *p)
{
    p2o_vmap_sizes(p);
    size_t     errors = p2o_diags_errors(p->diags);
    Map        missing = { .arena = p->arena };
    VarVec     replaced = { 0 };
    Functional f = { .ops = o,
                     .prog = p,
                     .arena = p->arena,
                     .nalias = p->nvar,
                     .missing = &missing,
                     .replaced = &replaced,
                     .alias = NEW_N(p->arena, Alias, (size_t)p->nvar + 1) };

    note_shared_weights(&f);
    rewrite_body(&f, p->main);
    for (size_t i = 0; i < p->inputs.n; i++)
        if (p->inputs.at[i].var)
            note_changed(&f, p->inputs.at[i].var, OUT_INPUT, p->inputs.at[i].name);
    for (size_t i = 0; i < p->weights.n; i++)
        note_changed(&f, p->weights.at[i], OUT_BUFFER, p->weights.at[i]->fqn);
    report_missing(&f);
    drop_unused_pieces(p, &replaced);
    return p2o_diags_errors(p->diags) == errors;
}
