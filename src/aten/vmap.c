/* torch.vmap carried out.
 *
 * A region is opened and closed by markers; between them every value may have one hidden axis for
 * each open vmap.  Going through the calls in order, each value with such axes gets a tensor that
 * has them in front, and each call that takes one becomes the calls that its row's BatchFn makes
 * (batch.h).  As nothing but the region's own calls sees its values, all else stays as it is.
 * Semantics: torch/_functorch/vmap.py, predispatch.py. */
#include "aten/vmap.h"

#include "aten/batch.h"
#include "aten/infer.h"

#include <assert.h>

#define MARK P2O_VMAP_MARK
static const char opens[] = MARK "_vmap_increment_nesting";
static const char closes[] = MARK "_vmap_decrement_nesting";
static const char enters[] = P2O_VMAP_ENTERS;
static const char leaves[] = P2O_VMAP_LEAVES;

static Batched *batched_of(const Vmap *v, const Var *x)
{
    return x->id < v->nof ? &v->of[x->id] : NULL;
}

bool refuse_batched(Vmap *v, const Call *c, const char *why)
{
    p2o_diag_advise(v->prog->diags, DIAG_UNSUPPORTED, c->loc,
                    "write it without vmap, or save ep.run_decompositions({}) instead",
                    "%s: inside torch.vmap: %s", c->target, why);
    return false;
}

Levels levels_of(const Vmap *v, const Arg *x)
{
    Levels l = 0;
    for (uint32_t i = 0; x->kind == ARG_LIST && i < x->n; i++)
        l |= levels_of(v, &x->items[i]);
    const Batched *b = x->kind == ARG_VAR ? batched_of(v, x->var) : NULL;
    return b && b->known ? b->levels : l;
}

Levels levels_of_call(const Vmap *v, const Call *c)
{
    Levels l = 0;
    for (int i = 0; i < c->nargs; i++)
        l |= levels_of(v, &c->args[i]);
    return l;
}

Dim level_size(const Vmap *v, int level) { return v->open[level].size; }

Shape logical_shape(const Arg *x) { return p2o_arg_type(x).shape; }

Shape batched_shape(const Vmap *v, Levels l, Shape s)
{
    Dim *at = NEW_N(v->arena, Dim, (size_t)(s.rank + MAX_LEVELS));
    int  n = 0;
    for (int k = 0; k < MAX_LEVELS; k++)
        if (l >> k & 1)
            at[n++] = level_size(v, k);
    for (int i = 0; i < s.rank; i++)
        at[n++] = s.at[i];
    return (Shape){ n, at };
}

Arg batched_arg(Vmap *v, const Arg *x)
{
    Arg out = *x;
    if (x->kind == ARG_LIST) {
        out.items = NEW_N(v->arena, Arg, x->n);
        for (uint32_t i = 0; i < x->n; i++)
            out.items[i] = batched_arg(v, &x->items[i]);
    }
    const Batched *b = x->kind == ARG_VAR ? batched_of(v, x->var) : NULL;
    return b && b->known ? b->now : out;
}

Arg int_arg_of(Vmap *v, int64_t n) { return arg_int(p2o_dim_int(v->prog->dims, n)); }

Arg dims_arg(Vmap *v, Shape s)
{
    Arg *items = NEW_N(v->arena, Arg, (size_t)s.rank);
    for (int i = 0; i < s.rank; i++)
        items[i] = arg_int(s.at[i]);
    return arg_list(items, (size_t)s.rank);
}

const AtenOp *batch_row(const Vmap *v, const char *key)
{
    const AtenOp *op = p2o_ops_find(v->ops, str_of(key));
    assert(op);
    return op;
}

/* Arguments are in the order of the row. */
static Call *add_made(Vmap *v, const AtenOp *op, const Arg *args, int nargs, int nouts)
{
    Call         *c = NEW(v->arena, Call);
    const Schema *s = p2o_ops_schema(v->ops, op);
    *c = (Call){ .target = s->key, .op = op, .schema = s, .nargs = nargs, .nouts = nouts,
                 .args = NEW_N(v->arena, Arg, (size_t)nargs),
                 .outs = NEW_N(v->arena, Var *, (size_t)nouts), .loc = v->at->loc };
    memcpy(c->args, args, (size_t)nargs * sizeof *args);
    if (!p2o_schema_bind(v->prog, c, s))
        return NULL;
    VEC_PUSH(v->arena, &v->calls, c);
    return c;
}

static Var *add_result(Vmap *v, Call *c, int i, const char *stem)
{
    Var *x = c->outs[i] = p2o_var_fresh(v->prog, v->body, stem);
    x->def = c;
    x->dense = CANNOT_TELL;
    return x;
}

Arg add_batched(Vmap *v, const char *target, int nargs, const Arg *args)
{
    Call *c = add_made(v, batch_row(v, target), args, nargs, 1);
    Str   overload, name = p2o_str_cut(str_of(strrchr(target, ':') + 1), '.', &overload);
    return c ? arg_var(add_result(v, c, 0, p2o_str_dup(v->arena, name))) : arg_none();
}

Arg view_as_shape(Vmap *v, Arg x, Shape s)
{
    return add_batched(v, "aten::view", 2, (Arg[]){ x, dims_arg(v, s) });
}

Arg aligned_arg(Vmap *v, const Arg *x, Levels to, int rank, bool all)
{
    Levels has = levels_of(v, x);
    Arg    y = batched_arg(v, x);
    int    at = 0, ones = rank - logical_shape(x).rank;
    bool   begun = all;
    for (int k = 0; k < MAX_LEVELS; k++) {
        if (!(to >> k & 1))
            continue;
        begun |= has >> k & 1;
        if (begun && !(has >> k & 1))
            y = add_batched(v, "aten::unsqueeze", 2, (Arg[]){ y, int_arg_of(v, at) });
        at += begun;
    }
    for (; begun && ones > 0; ones--)
        y = add_batched(v, "aten::unsqueeze", 2, (Arg[]){ y, int_arg_of(v, at) });
    return y;
}

Arg spread_arg(Vmap *v, const Arg *x, Levels to)
{
    Shape s = logical_shape(x);
    if (levels_of(v, x) == to)
        return batched_arg(v, x);
    return add_batched(v, "aten::expand", 2,
                       (Arg[]){ aligned_arg(v, x, to, s.rank, true),
                                dims_arg(v, batched_shape(v, to, s)) });
}

static void keep(Vmap *v, const Var *x, Arg now, Levels l)
{
    *batched_of(v, x) = (Batched){ .now = now, .levels = l, .opening = v->nopened, .known = true };
}

/* What the result has to be: the values' type under the axes of their levels. */
static void expect(Vmap *v, const Call *c, const Var *made, const Var *value, Levels l)
{
    Type t = value->type;
    t.shape = batched_shape(v, l, t.shape);
    VEC_PUSH(v->arena, &v->expected, ((Expected){ .var = made, .type = t, .of = c }));
}

bool set_batched(Vmap *v, const Call *c, Arg result, Levels l)
{
    if (result.kind != ARG_VAR || !c->outs[0])
        return result.kind == ARG_VAR;
    keep(v, c->outs[0], result, l);
    expect(v, c, result.var, c->outs[0], l);
    return true;
}

bool set_batched_number(Vmap *v, const Call *c, Arg number)
{
    keep(v, c->outs[0], number, 0);
    return true;
}

/* The types that calls look at in their results: torch.get_default_dtype() is read off these. */
static void note_type(Vmap *v, Var *made, const Var *value, Levels l)
{
    made->recorded = value->type;
    made->recorded.shape = batched_shape(v, l, value->type.shape);
}

static bool call_and_keep(Vmap *v, const Call *c, const AtenOp *op, const Arg *args, Levels l,
                          bool reshape)
{
    const Schema *s = p2o_ops_schema(v->ops, op);
    Call         *made = add_made(v, op, args, s->nargs, c->nouts);
    for (int i = 0; made && i < c->nouts; i++) {
        if (!c->outs[i])
            continue;
        Var *x = add_result(v, made, i, c->outs[i]->name);
        Arg  y = arg_var(x);
        if (c->outs[i]->type.kind != TY_TENSOR)
            return refuse_batched(v, c, "a result that is no tensor");
        if (reshape)
            y = view_as_shape(v, y, batched_shape(v, l, c->outs[i]->type.shape));
        else
            note_type(v, x, c->outs[i], l);
        if (y.kind != ARG_VAR)
            return false;
        keep(v, c->outs[i], y, l);
        expect(v, c, y.var, c->outs[i], l);
    }
    return made != NULL;
}

bool call_batched(Vmap *v, const Call *c, const AtenOp *op, const Arg *args, Levels l)
{
    return call_and_keep(v, c, op, args, l, false);
}

bool call_reshaped(Vmap *v, const Call *c, const AtenOp *op, const Arg *args, Levels l)
{
    return call_and_keep(v, c, op, args, l, true);
}

/* A value that left its region, or whose region was closed before it left, is nobody's. */
static bool is_stale(const Vmap *v, const Arg *x)
{
    bool stale = false;
    for (uint32_t i = 0; x->kind == ARG_LIST && i < x->n; i++)
        stale |= is_stale(v, &x->items[i]);
    const Batched *b = x->kind == ARG_VAR ? batched_of(v, x->var) : NULL;
    for (int k = 0; b && b->known && k < MAX_LEVELS; k++)
        stale |= (b->levels >> k & 1) && (k >= v->depth || v->open[k].number > b->opening);
    return stale;
}

static bool bad_marker(Vmap *v, const Call *c, const char *what)
{
    p2o_diag(v->prog->diags, DIAG_BAD_PROGRAM, c->loc, "%s: %s", c->target, what);
    return false;
}

static bool is_innermost(Vmap *v, const Call *c)
{
    return (v->depth && int_arg(c, "level") == v->depth) ||
           bad_marker(v, c, "not at the innermost vmap");
}

/* An axis of the value becomes the innermost hidden one. */
static bool enter_region(Vmap *v, const Call *c)
{
    const Arg *x = &c->args[0];
    Levels     l = levels_of(v, x);
    int        dim, n = nlevels(l);
    if (!is_innermost(v, c))
        return false;
    Levels level = (Levels)1 << (v->depth - 1);
    Shape  s = logical_shape(x);
    if (l & level || !p2o_wrap_dim(int_arg(c, "batch_dim"), s.rank, false, &dim))
        return bad_marker(v, c, "no such axis");
    Opening *o = &v->open[v->depth - 1];
    if (!o->size)
        o->size = s.at[dim];
    Arg y = batched_arg(v, x);
    if (dim)
        y = add_batched(v, "aten::movedim.int", 3,
                        (Arg[]){ y, int_arg_of(v, n + dim), int_arg_of(v, n) });
    return set_batched(v, c, y, l | level);
}

static bool leave_region(Vmap *v, const Call *c)
{
    const Arg *x = &c->args[0];
    Levels     l = levels_of(v, x);
    int        dim, n = nlevels(l);
    if (!is_innermost(v, c))
        return false;
    if (!c->outs[0])
        return true;
    Levels level = (Levels)1 << (v->depth - 1);
    if (!p2o_wrap_dim(int_arg(c, "out_dim"), logical_shape(x).rank + 1, false, &dim))
        return bad_marker(v, c, "no such axis");
    Arg y = batched_arg(v, x);
    if (!(l & level)) {
        /* The same in every turn.  PyTorch only expands it: right for an axis in front of all
         * others, and what it is for the rest, where it runs at all. */
        y = aligned_arg(v, x, l, logical_shape(x).rank + 1, true);
        y = add_batched(v, "aten::expand", 2,
                        (Arg[]){ y, dims_arg(v, batched_shape(v, l, c->outs[0]->type.shape)) });
    } else if (dim) {
        y = add_batched(v, "aten::movedim.int", 3,
                        (Arg[]){ y, int_arg_of(v, n - 1), int_arg_of(v, n - 1 + dim) });
    }
    return set_batched(v, c, y, l & ~level);
}

static bool open_region(Vmap *v, const Call *c)
{
    if (v->depth == MAX_LEVELS)
        return refuse_batched(v, c, "nested too deeply");
    v->open[v->depth++] = (Opening){ .number = ++v->nopened };
    return true;
}

static bool close_region(Vmap *v, const Call *c)
{
    if (!v->depth)
        return bad_marker(v, c, "no vmap is open");
    v->depth--;
    return true;
}

static BatchFn *batch_of(const AtenOp *op)
{
    static ShapeRule *const pointwise[] = { p2o_rule_same, p2o_rule_float, p2o_rule_bool,
                                            p2o_rule_binary, p2o_rule_binary_float,
                                            p2o_rule_compare };
    for (size_t i = 0; i < COUNT_OF(pointwise) && !op->batch; i++)
        if (op->shape == pointwise[i])
            return p2o_batch_pointwise;
    return op->batch;
}

/* A call as it was, on what its arguments have become. */
static void pass_on(Vmap *v, Call *c)
{
    Arg *args = NEW_N(v->arena, Arg, (size_t)c->nargs);
    for (int i = 0; i < c->nargs; i++)
        args[i] = batched_arg(v, &c->args[i]);
    c->args = args;
    VEC_PUSH(v->arena, &v->calls, c);
}

static bool takes_stale(Vmap *v, const Call *c)
{
    for (int i = 0; i < c->nargs; i++)
        if (is_stale(v, &c->args[i]))
            return !bad_marker(v, c, "a value of a vmap that was closed before");
    return false;
}

static bool carry_out(Vmap *v, Call *c)
{
    BatchFn *batch = batch_of(c->op);
    if (takes_stale(v, c))
        return false;
    if (levels_of_call(v, c) || (v->depth && batch == p2o_batch_random))
        return batch ? batch(v, c) : refuse_batched(v, c, "it has no batching rule");
    pass_on(v, c);
    return true;
}

static bool is_marker(const Call *c, const char *key) { return same(c->schema->key, key); }

static bool rewrite_marker(Vmap *v, const Call *c)
{
    return takes_stale(v, c)      ? false
           : is_marker(c, opens)  ? open_region(v, c)
           : is_marker(c, closes) ? close_region(v, c)
           : is_marker(c, enters) ? enter_region(v, c)
           : is_marker(c, leaves) ? leave_region(v, c)
                                  : true;
}

static void mark_needed(const Arg *x, bool *needed)
{
    if (x->kind == ARG_VAR)
        needed[x->var->id] = true;
    for (uint32_t i = 0; x->kind == ARG_LIST && i < x->n; i++)
        mark_needed(&x->items[i], needed);
}

/* Captures hold calls whose results nobody uses: what cannot be batched there does no harm. */
static bool *needed_calls(const Program *p, const Body *b)
{
    bool *vars = NEW_N(p->arena, bool, (size_t)p->nvar + 1);
    bool *calls = NEW_N(p->arena, bool, b->calls.n + 1);
    for (size_t i = 0; i < b->outputs.n; i++)
        mark_needed(&b->outputs.at[i], vars);
    for (size_t i = 0; b == p->main && i < p->outputs.n; i++)
        mark_needed(&p->outputs.at[i].value, vars);
    for (size_t i = b->calls.n; i-- > 0;) {
        const Call *c = b->calls.at[i];
        calls[i] = c->nouts == 0;
        for (int k = 0; k < c->nouts; k++)
            calls[i] |= c->outs[k] && vars[c->outs[k]->id];
        for (int k = 0; k < c->nargs && calls[i]; k++)
            mark_needed(&c->args[k], vars);
    }
    return calls;
}

static bool has_region(const Body *b)
{
    for (size_t i = 0; i < b->calls.n; i++)
        if (is_marker(b->calls.at[i], opens) || is_marker(b->calls.at[i], enters))
            return true;
    return false;
}

static void replace_output(Vmap *v, Arg *x)
{
    if (levels_of(v, x))
        p2o_diag(v->prog->diags, DIAG_BAD_PROGRAM, 0, "an output is a value inside a vmap");
    *x = batched_arg(v, x);
}

static void rewrite_bodies_of(Vmap *v, const Call *c);

static void rewrite_region_body(Vmap *around, Body *b)
{
    Vmap v = { .ops = around->ops, .prog = around->prog, .arena = around->arena, .body = b,
               .of = around->of, .nof = around->nof, .expected = around->expected };
    bool *needed = needed_calls(v.prog, b), rewrites = has_region(b);
    for (size_t i = 0; i < b->calls.n; i++) {
        Call *c = b->calls.at[i];
        v.at = c;
        rewrite_bodies_of(&v, c);
        bool marker = p2o_str_starts(str_of(c->schema->key), MARK);
        if (!rewrites)
            continue;
        if (marker)
            rewrite_marker(&v, c);
        else if (needed[i] || !v.depth)
            carry_out(&v, c);
    }
    around->expected = v.expected;
    if (!rewrites)
        return;
    if (v.depth)
        p2o_diag(v.prog->diags, DIAG_BAD_PROGRAM, 0, "a vmap is not closed");
    for (size_t i = 0; i < b->outputs.n; i++)
        replace_output(&v, &b->outputs.at[i]);
    for (size_t i = 0; b == v.prog->main && i < v.prog->outputs.n; i++)
        replace_output(&v, &v.prog->outputs.at[i].value);
    b->calls.at = v.calls.at;
    b->calls.n = v.calls.n;
    b->calls.cap = v.calls.cap;
}

static void rewrite_bodies_of(Vmap *v, const Call *c)
{
    for (int k = 0; k < c->nargs; k++)
        if (c->args[k].kind == ARG_BODY)
            rewrite_region_body(v, c->args[k].body);
}

static bool any_region(const Body *b)
{
    bool found = has_region(b);
    for (size_t i = 0; i < b->calls.n && !found; i++)
        for (int k = 0; k < b->calls.at[i]->nargs && !found; k++)
            found = b->calls.at[i]->args[k].kind == ARG_BODY &&
                    any_region(b->calls.at[i]->args[k].body);
    return found;
}

/* The proof that a batched call is what it stands for, as far as types tell. */
static bool types_are_expected(const Vmap *v)
{
    bool ok = true;
    for (size_t i = 0; i < v->expected.n; i++) {
        const Expected *e = &v->expected.at[i];
        const Type     *t = &e->var->type;
        if (t->kind == e->type.kind && t->dtype == e->type.dtype &&
            p2o_shape_same(t->shape, e->type.shape))
            continue;
        p2o_diag(v->prog->diags, DIAG_UNSUPPORTED, e->of->loc,
                 "%s: inside torch.vmap its result would be %s[%s], not %s[%s]", e->of->target,
                 p2o_dtype_text(t->dtype), p2o_shape_text(v->prog->dims, t->shape),
                 p2o_dtype_text(e->type.dtype), p2o_shape_text(v->prog->dims, e->type.shape));
        ok = false;
    }
    return ok;
}

bool p2o_vmap(Ops *o, Program *p, Bindings *b)
{
    size_t errors = p2o_diags_errors(p->diags);
    if (!any_region(p->main))
        return true;
    Vmap v = { .ops = o, .prog = p, .arena = p->arena, .nof = p->nvar,
               .of = NEW_N(p->arena, Batched, (size_t)p->nvar + 1) };
    rewrite_region_body(&v, p->main);
    return p2o_diags_errors(p->diags) == errors && p2o_infer(p, b) && types_are_expected(&v);
}

typedef struct Sizes {
    Arg given[MAX_LEVELS];      /* as the marker says it */
    Var *found[MAX_LEVELS];     /* as the first value that enters has it */
    int depth;
} Sizes;

static Arg *with_room(Arena *a, Call *c, int n)
{
    Arg         *args = NEW_N(a, Arg, (size_t)(c->nargs > n ? c->nargs : n));
    const char **names = NEW_N(a, const char *, (size_t)(c->nargs > n ? c->nargs : n));
    for (int i = 0; i < c->nargs; i++) {
        args[i] = c->args[i];
        names[i] = c->arg_names ? c->arg_names[i] : "";
    }
    for (int i = c->nargs; i < n; i++)
        names[i] = "";
    c->args = args;
    c->arg_names = names;
    c->nargs = c->nargs > n ? c->nargs : n;
    return args;
}

static Type recorded_number(const Arg *x)
{
    return x->kind == ARG_VAR   ? x->var->recorded
           : x->kind == ARG_INT ? (Type){ .kind = TY_INT, .dtype = DT_I64, .value = x->i }
                                : (Type){ 0 };
}

enum { ENTERS_SIZE = 3, LEAVES_SIZE = 2 };      /* arguments that say how long the axis is */

/* A marker of another form than these is left for binding to refuse. */
static void size_marker(Program *p, Body *b, Sizes *s, Call *c, Body *into)
{
    if (same(c->target, opens) && c->nargs > 0 && s->depth < MAX_LEVELS) {
        s->found[s->depth] = NULL;
        s->given[s->depth++] = c->args[0];
    } else if (same(c->target, closes) && s->depth) {
        s->depth--;
    } else if (same(c->target, enters) && c->nargs == ENTERS_SIZE && s->depth) {
        Var **found = &s->found[s->depth - 1];
        if (!*found) {
            Call *size = p2o_call_add(p, into, "aten::sym_size.int", 2, 1);
            size->args[0] = c->args[0];
            size->args[1] = c->args[1];
            size->loc = c->loc;
            *found = size->outs[0] = p2o_var_fresh(p, b, "vmap_size");
            (*found)->def = size;
            (*found)->recorded = recorded_number(&s->given[s->depth - 1]);
        }
        with_room(p->arena, c, ENTERS_SIZE + 1)[ENTERS_SIZE] = arg_var(*found);
    } else if (same(c->target, leaves) && c->nargs > LEAVES_SIZE && s->depth &&
               s->found[s->depth - 1]) {
        with_room(p->arena, c, c->nargs)[LEAVES_SIZE] = arg_var(s->found[s->depth - 1]);
    }
}

static void size_markers(Program *p, Body *b)
{
    Sizes s = { .depth = 0 };
    Body  into = { .name = b->name };
    bool  found = false;
    for (size_t i = 0; i < b->calls.n; i++) {
        Call *c = b->calls.at[i];
        for (int k = 0; k < c->nargs; k++)
            if (c->args[k].kind == ARG_BODY)
                size_markers(p, c->args[k].body);
        found |= same(c->target, enters);
        size_marker(p, b, &s, c, &into);
        VEC_PUSH(p->arena, &into.calls, c);
    }
    if (found)
        b->calls.at = into.calls.at, b->calls.n = into.calls.n, b->calls.cap = into.calls.cap;
}

void p2o_vmap_sizes(Program *p) { size_markers(p, p->main); }

/* Of an axis that is hidden from now on. */
static void shape_enters(Infer *in, const Call *c)
{
    Type x = type_arg(c, "self");
    int  dim;
    if (!must_wrap(in, int_arg(c, "batch_dim"), x.shape.rank, &dim))
        return;
    if (has_arg(c, "size") && !must_equal(in, c, x.shape.at[dim], dim_arg(c, "size"),
                                          "the sizes that are mapped over"))
        return;
    set_out(in, c, 0, x.dtype, without_dim(in, x.shape, dim));
}

static void shape_leaves(Infer *in, const Call *c)
{
    Type x = type_arg(c, "self");
    int  dim;
    if (must_wrap(in, int_arg(c, "out_dim"), x.shape.rank + 1, &dim))
        set_out(in, c, 0, x.dtype, insert_dim(in, x.shape, dim, dim_arg(c, "batch_size")));
}

const AtenOp p2o_ops_vmap[] = {
    { MARK "lazy_load_decompositions() -> ()", p2o_rule_none },
    { MARK "_vmap_increment_nesting(SymInt batch_size, str randomness) -> ()", p2o_rule_none,
      .roles = "batch_size:none", .limits = "operators with a batching rule, nothing random" },
    { MARK "_vmap_decrement_nesting() -> ()", p2o_rule_none },
    /* `size` is ours: see p2o_vmap_sizes. */
    { MARK "_add_batch_dim(Tensor(a) self, int batch_dim, int level, SymInt? size=None) -> Tensor(a)",
      shape_enters },
    { MARK "_remove_batch_dim(Tensor self, int level, SymInt batch_size, int out_dim) -> Tensor",
      shape_leaves },
    { 0 },
};
