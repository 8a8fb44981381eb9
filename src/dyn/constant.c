#include "dyn/constant.h"

#include <math.h>

#include "dyn/element.h"
#include "dyn/enough.h"

enum {
    FEW = 16,                   /* elements that may each be an expression of its own */
    MOST_SEARCHES = 16,         /* for a constant and its parts: about a tenth of a second each */
};

typedef struct Maker {
    const Lineup *l;
    Sites        *sites;
    Program      *prog;
    Tables        t;
    const Tables *part;                 /* of them, that are made now */
    VEC(Dim)      symbols;              /* of the inputs */
    bool          whole;                /* what is made now is of ints */
    Dim           size[MAX_RANK];
    VEC(Call *)   calls;
    bool          failed;
} Maker;

static Var *made_by(Maker *m, const char *target, int nargs, const Arg *args)
{
    Call *c = m->failed ? NULL
                        : p2o_ops_call(m->l->ops, m->prog, m->prog->main, target, nargs, args, 0);
    if (!c) {
        m->failed = true;
        return NULL;
    }
    VEC_PUSH(m->prog->arena, &m->calls, c);
    return c->outs[0];
}

static Arg whole_arg(const Maker *m, int64_t v) { return arg_int(p2o_dim_int(m->prog->dims, v)); }
static Arg dtype_of(DType t) { return (Arg){ .kind = ARG_DTYPE, .dtype = t }; }

/* Counting along the axis, with axes of 1 around it: as many as it takes to broadcast. */
static Arg index_tensor(Maker *m, int axis)
{
    Var *v = made_by(m, "aten::arange", 2, (Arg[]){ arg_int(m->size[axis]),
                                                    dtype_of(m->whole ? DT_I64 : DT_F64) });
    for (int i = axis + 1; i < m->t.rank && v; i++)
        v = made_by(m, "aten::unsqueeze", 2, (Arg[]){ arg_var(v), whole_arg(m, -1) });
    return v ? arg_var(v) : arg_none();
}

static Arg element_value(Maker *m, const Expr *e);

static Arg base_arg(Maker *m, int base)
{
    const Tables *t = m->part;
    if (base < t->nindex)
        return index_tensor(m, t->index[base]);
    if (base < tables_first_size(t)) {
        Var *d = made_by(m, "aten::sub.Tensor", 2, (Arg[]){ index_tensor(m, t->index[0]),
                                                            index_tensor(m, t->index[1]) });
        if (d && base > t->nindex)
            d = made_by(m, "aten::abs", 1, (Arg[]){ arg_var(d) });
        return d ? arg_var(d) : arg_none();
    }
    int  i = base - tables_first_size(t);
    Dim  size = i < t->nindex ? m->size[t->index[i]] : t->symbol[i - t->nindex];
    Var *v = made_by(m, "aten::full", 3, (Arg[]){ arg_list(NEW(m->prog->arena, Arg), 0),
                                                  arg_int(size),
                                                  dtype_of(m->whole ? DT_I64 : DT_F64) });
    return v ? arg_var(v) : arg_none();
}

static Arg number_tensor(Maker *m, double v)
{
    Arg  value = m->whole ? whole_arg(m, (int64_t)v) : arg_float(v);
    Var *x = made_by(m, "aten::full", 3, (Arg[]){ arg_list(NEW(m->prog->arena, Arg), 0), value,
                                                  dtype_of(m->whole ? DT_I64 : DT_F64) });
    return x ? arg_var(x) : arg_none();
}

static Arg negated(Maker *m, Arg x)
{
    Var *v = made_by(m, "aten::neg", 1, &x);
    return v ? arg_var(v) : arg_none();
}

static Arg quotient_value(Maker *m, Arg x, Arg y, const char *rounding)
{
    Var *v = made_by(m, "aten::div.Tensor_mode", 3, (Arg[]){ x, y, arg_str(ARG_STR, rounding) });
    return v ? arg_var(v) : arg_none();
}

/* isqrt: exact in doubles at all sizes that there are. */
static Arg root_value(Maker *m, Arg x)
{
    Var *v = made_by(m, "aten::_to_copy", 2, (Arg[]){ x, dtype_of(DT_F64) });
    v = v ? made_by(m, "aten::sqrt", 1, (Arg[]){ arg_var(v) }) : NULL;
    v = v ? made_by(m, "aten::floor", 1, (Arg[]){ arg_var(v) }) : NULL;
    v = v && m->whole ? made_by(m, "aten::_to_copy", 2, (Arg[]){ arg_var(v), dtype_of(DT_I64) })
                      : v;
    return v ? arg_var(v) : arg_none();
}

/* where.Scalar makes float32 of its numbers, and of what ints are added to: it is for what is a
 * condition in the end, and for numbers that are float32. */
static bool may_be_float32(const Maker *m, double v)
{
    return m->part->dtype == DT_BOOL || (!m->whole && (double)(float)v == v);
}

static Arg choice_value(Maker *m, const Expr *e)
{
    Arg  c = element_value(m, e->c);
    Var *v = NULL;
    if (m->failed)
        return arg_none();
    if (p2o_expr_is_number(e->a) && p2o_expr_is_number(e->b) && may_be_float32(m, e->a->number) &&
        may_be_float32(m, e->b->number)) {
        v = made_by(m, "aten::where.Scalar", 3, (Arg[]){ c, arg_float(e->a->number),
                                                         arg_float(e->b->number) });
    } else {
        Arg x = element_value(m, e->a), y = element_value(m, e->b);
        v = made_by(m, "aten::where.self", 3, (Arg[]){ c, x, y });
    }
    return v ? arg_var(v) : arg_none();
}

static Arg element_value(Maker *m, const Expr *e)
{
    static const char *const targets[] = {
        [EXPR_ADD] = "aten::add.Tensor", [EXPR_SUB] = "aten::sub.Tensor",
        [EXPR_MUL] = "aten::mul.Tensor", [EXPR_MOD] = "aten::remainder.Tensor",
        [EXPR_MIN] = "aten::minimum", [EXPR_MAX] = "aten::maximum",
        [EXPR_QUOTIENT] = "aten::div.Tensor", [EXPR_SQRT] = "aten::sqrt",
        [EXPR_LOG] = "aten::log", [EXPR_LOG2] = "aten::log2",
        [EXPR_ABS] = "aten::abs", [EXPR_COS] = "aten::cos",
        [EXPR_SIN] = "aten::sin", [EXPR_EXP] = "aten::exp",
        [EXPR_ROUND] = "aten::round", [EXPR_TO_THE] = "aten::pow.Tensor_Tensor",
        [EXPR_AND] = "aten::logical_and",
        [EXPR_OR] = "aten::logical_or" };
    if (e->op == EXPR_NUMBER)
        return number_tensor(m, e->number);
    if (e->op == EXPR_SIZE)
        return base_arg(m, e->base);
    if (e->op == EXPR_CHOICE)
        return choice_value(m, e);
    Arg x = element_value(m, e->a), y = e->b ? element_value(m, e->b) : arg_none();
    if (m->failed)
        return arg_none();
    if (e->op == EXPR_IS_0 || e->op == EXPR_AT_LEAST_0) {
        Var *v = made_by(m, e->op == EXPR_IS_0 ? "aten::eq.Scalar" : "aten::ge.Scalar", 2,
                         (Arg[]){ x, whole_arg(m, 0) });
        return v ? arg_var(v) : arg_none();
    }
    if (e->op == EXPR_ROOT)
        return root_value(m, x);
    if (e->op == EXPR_FLOOR)
        return quotient_value(m, x, y, "floor");
    if (e->op == EXPR_CEIL)
        return negated(m, quotient_value(m, negated(m, x), y, "floor"));
    if (e->op == EXPR_LACK) {
        Var *v = made_by(m, targets[EXPR_MOD], 2, (Arg[]){ negated(m, x), y });
        return v ? arg_var(v) : arg_none();
    }
    const char *target = (size_t)e->op < COUNT_OF(targets) ? targets[e->op] : NULL;
    if (!target) {
        m->failed = true;
        return arg_none();
    }
    Var *v = made_by(m, target, e->b ? 2 : 1, (Arg[]){ x, y });
    return v ? arg_var(v) : arg_none();
}

/* Of its sizes: sites where they differ; else they stay what they are. */
static void open_sizes(Maker *m)
{
    int64_t at[MAX_CAPTURES];
    for (int i = 0; i < m->t.rank; i++) {
        bool differs = false;
        for (int k = 0; k < m->t.n; k++) {
            at[k] = m->t.at[k].sizes[i];
            differs |= at[k] != at[0];
        }
        m->size[i] = p2o_dim_int(m->prog->dims, at[0]);
        if (!differs)
            continue;
        static const char *const none = "a constant of the capture";
        Call *c = NEW(m->prog->arena, Call);
        *c = (Call){ .target = none };
        Arg *x = NEW(m->prog->arena, Arg);
        m->size[i] = p2o_site_add(m->sites, c, x, NUMBER_EXTENT, at)->open;
    }
}

static Var *make_elements(Maker *m, const Tables *t, const Element *e)
{
    m->part = t;
    m->whole = t->whole && p2o_expr_is_whole(e->expr);
    Arg  v = element_value(m, e->expr);
    Arg *items = NEW_N(m->prog->arena, Arg, (size_t)t->rank + 1);
    for (int i = 0; i < t->rank; i++)
        items[i] = t->at[0].sizes[i] == m->t.at[0].sizes[i] ? arg_int(m->size[i]) : whole_arg(m, 1);
    if (e->share) {
        Var *x = m->failed ? NULL : made_by(m, "aten::expand", 2,
                                            (Arg[]){ v, arg_list(items, (size_t)t->rank) });
        Var *sum = x ? made_by(m, "aten::sum", 1, (Arg[]){ arg_var(x) }) : NULL;
        Var *share = sum ? made_by(m, "aten::div.Tensor", 2, (Arg[]){ arg_var(x), arg_var(sum) })
                         : NULL;
        v = share ? arg_var(share) : arg_none();
    }
    Var *x = m->failed ? NULL : made_by(m, "aten::_to_copy", 2, (Arg[]){ v, dtype_of(t->dtype) });
    return x ? made_by(m, "aten::expand", 2, (Arg[]){ arg_var(x),
                                                      arg_list(items, (size_t)t->rank) }) : NULL;
}

/* The elements at one place along an axis, as tables of their own. */
static bool cut_slice(Maker *m, int axis, int64_t place, Tables *out)
{
    Arena *a = m->prog->arena;
    *out = m->t;
    for (int k = 0; k < out->n; k++) {
        Table    *x = &out->at[k];
        uint64_t  inner = 1, count = (uint64_t)x->sizes[axis];
        int64_t  *sizes = NEW_N(a, int64_t, (size_t)out->rank);
        double   *v = NEW_N(a, double, (size_t)(x->n / count));
        memcpy(sizes, x->sizes, (size_t)out->rank * sizeof *sizes);
        sizes[axis] = 1;
        for (int i = axis + 1; i < out->rank; i++)
            inner *= (uint64_t)sizes[i];
        for (uint64_t i = 0; i < x->n / count; i++)
            v[i] = x->v[(i / inner * count + (uint64_t)place) * inner + i % inner];
        *x = (Table){ .sizes = sizes, .v = v, .n = x->n / count };
    }
    if (!p2o_tables_index(out))
        return false;
    p2o_tables_symbols(out, m->symbols.at, m->symbols.n);
    return true;
}

/* np.stack of a few: along an axis that never changes each has an expression of its own. */
static Var *make_slices(Maker *m, int axis)
{
    enum { MOST = 8 };
    int64_t n = m->t.at[0].sizes[axis];
    Tables *slice = NEW_N(m->prog->arena, Tables, MOST);
    Element found[MOST];
    for (int k = 0; k < m->t.n; k++)
        if (m->t.at[k].sizes[axis] != n)
            return NULL;
    if (n < 2 || n > MOST)
        return NULL;
    for (int64_t i = 0; i < n; i++) {
        *m->t.left = MOST_SEARCHES;
        if (!cut_slice(m, axis, i, &slice[i]) ||
            !p2o_element_find(m->prog->arena, &slice[i], m->symbols.at, m->symbols.n, &found[i]))
            return NULL;
    }
    open_sizes(m);
    Arg *items = NEW_N(m->prog->arena, Arg, (size_t)n);
    for (int64_t i = 0; i < n; i++) {
        Var *x = make_elements(m, &slice[i], &found[i]);
        if (!x)
            return NULL;
        items[i] = arg_var(x);
    }
    return made_by(m, "aten::cat", 2, (Arg[]){ arg_list(items, (size_t)n), whole_arg(m, axis) });
}

static Var *make_table(Maker *m)
{
    Element e;
    Var    *made = NULL;
    if (p2o_element_find(m->prog->arena, &m->t, m->symbols.at, m->symbols.n, &e)) {
        open_sizes(m);
        return make_elements(m, &m->t, &e);
    }
    for (int i = m->t.rank - 1; i >= 0 && !made && !m->failed; i--)
        made = make_slices(m, i);
    return made;
}

/* torch.tensor([h, w]): each element a site of its own. */
static Var *make_few(Maker *m)
{
    Arg items[FEW], sizes[MAX_RANK + 1];
    int64_t at[MAX_CAPTURES];
    for (uint64_t i = 0; i < m->t.at[0].n; i++) {
        for (int k = 0; k < m->t.n; k++)
            at[k] = (int64_t)m->t.at[k].v[i];
        Arg *one = NEW(m->prog->arena, Arg), *value = NEW(m->prog->arena, Arg);
        *one = whole_arg(m, 1);
        Var *x = made_by(m, "aten::full", 3, (Arg[]){ arg_list(one, 1), whole_arg(m, at[0]),
                                                      dtype_of(m->t.dtype) });
        if (!x)
            return NULL;
        *value = x->def->args[1];
        x->def->args[1] = arg_int(p2o_site_add(m->sites, x->def, value, NUMBER_FACTOR, at)->open);
        items[i] = arg_var(x);
    }
    Arg *list = NEW_N(m->prog->arena, Arg, (size_t)m->t.at[0].n);
    memcpy(list, items, (size_t)m->t.at[0].n * sizeof *list);
    Var *x = made_by(m, "aten::cat", 2, (Arg[]){ arg_list(list, (size_t)m->t.at[0].n),
                                                 whole_arg(m, 0) });
    for (int i = 0; i < m->t.rank; i++)
        sizes[i] = whole_arg(m, m->t.at[0].sizes[i]);
    Arg *shape = NEW_N(m->prog->arena, Arg, (size_t)m->t.rank + 1);
    memcpy(shape, sizes, (size_t)m->t.rank * sizeof *shape);
    return x ? made_by(m, "aten::view", 2, (Arg[]){ arg_var(x),
                                                    arg_list(shape, (size_t)m->t.rank) }) : NULL;
}

static bool is_few(const Maker *m)
{
    for (int k = 0; k < m->t.n; k++) {
        if (m->t.at[k].n != m->t.at[0].n || m->t.at[k].n > FEW || m->t.dtype == DT_BOOL)
            return false;
        for (uint64_t i = 0; i < m->t.at[k].n; i++)
            if (m->t.at[k].v[i] != floor(m->t.at[k].v[i]) || fabs(m->t.at[k].v[i]) > 1e9)
                return false;
        for (int i = 0; i < m->t.rank; i++)
            if (m->t.at[k].sizes[i] != m->t.at[0].sizes[i])
                return false;
    }
    return true;
}

/* Its calls come first in the program; their last result takes the constant's place. */
static void put_first(Maker *m, Var *made, Var *constant)
{
    Body *b = m->prog->main;
    made->def->outs[0] = constant;
    constant->def = made->def;
    constant->tensor = NULL;
    constant->recorded = (Type){ 0 };
    for (size_t i = 0; i < m->calls.n; i++)
        VEC_PUSH(m->prog->arena, &b->calls, NULL);
    memmove(b->calls.at + m->calls.n, b->calls.at, (b->calls.n - m->calls.n) * sizeof *b->calls.at);
    memcpy(b->calls.at, m->calls.at, m->calls.n * sizeof *b->calls.at);
}

static void add_symbol(void *user, Dim sym)
{
    Maker *m = user;
    for (size_t i = 0; i < m->symbols.n; i++)
        if (m->symbols.at[i] == sym)
            return;
    VEC_PUSH(m->prog->arena, &m->symbols, sym);
}

static bool make_again(Maker *m, Var *constant, const Tensor *const *v)
{
    int left = MOST_SEARCHES;
    m->t = (Tables){ .n = m->l->n, .bind = m->sites->bind, .left = &left };
    if (!p2o_tables_load(m->prog->arena, &m->t, v))
        return false;
    for (size_t i = 0; i < m->prog->main->inputs.n; i++) {
        const Type *t = &m->prog->main->inputs.at[i]->type;
        for (int k = 0; k < t->shape.rank; k++)
            p2o_dim_symbols(p2o_resolve(m->sites->bind, t->shape.at[k]), add_symbol, m);
    }
    p2o_tables_symbols(&m->t, m->symbols.at, m->symbols.n);
    Var *made = is_few(m) ? make_few(m) : make_table(m);
    if (!made || m->failed)
        return false;
    put_first(m, made, constant);
    return true;
}

static bool same_bytes(Arena *a, const Tensor *x, const Tensor *y)
{
    enum { LARGEST_BYTES = 1 << 20 };
    uint64_t n;
    if (!p2o_tensor_nelem(x, &n) || n * p2o_dtype_bytes(x->dtype) > LARGEST_BYTES)
        return true;                            /* weights: their names and shapes were compared */
    ArenaMark mark = p2o_arena_mark(a);
    size_t    nbytes = (size_t)n * p2o_dtype_bytes(x->dtype);
    void     *px = p2o_alloc(a, nbytes), *py = p2o_alloc(a, nbytes);
    bool      equal = p2o_tensor_load(x, px, nbytes) && p2o_tensor_load(y, py, nbytes) &&
                      !memcmp(px, py, nbytes);
    p2o_arena_rewind(a, mark);
    return equal;
}

static bool same_weight(Arena *a, const Var *x, const Var *y)
{
    if (!x->tensor || !y->tensor)
        return !x->tensor && !y->tensor;
    if (x->tensor->dtype != y->tensor->dtype || x->tensor->rank != y->tensor->rank)
        return false;
    for (int i = 0; i < x->tensor->rank; i++)
        if (x->tensor->sizes[i] != y->tensor->sizes[i])
            return false;
    return same_bytes(a, x->tensor, y->tensor);
}

/* Sizes and, of small ones, elements of a constant that forward() made and that is the same in all
 * captures.  From few captures a 1 and a 0 tell as little as other numbers: [0] may be a range. */
static void note_numbers(const Lineup *l, Sites *s, Call *c, const Tensor *t)
{
    enum { SMALL = 64 };
    bool     few = l->n < FEWEST_CAPTURES;
    Tables   all = { .n = 1 };
    uint64_t n;
    for (int i = 0; i < t->rank; i++)
        if (t->sizes[i] > 1 || few)
            p2o_site_note(s, c, (double)t->sizes[i]);
    if (!p2o_tensor_nelem(t, &n) || n > SMALL || t->dtype == DT_BOOL ||
        !p2o_tables_load(l->p[0]->arena, &all, &t))
        return;
    for (uint64_t i = 0; i < n; i++)
        if (isfinite(all.at[0].v[i]) && (all.at[0].v[i] != 0 || few))
            p2o_site_note(s, c, all.at[0].v[i]);
}

static void note_made(const Lineup *l, Sites *s)
{
    for (size_t i = 0; i < l->calls.n; i++) {
        Call      *c = l->calls.at[i].call;
        const Arg *x = c->nargs ? &c->args[0] : NULL;
        if (c->op && c->op->lifts && x->kind == ARG_VAR && x->var->tensor)
            note_numbers(l, s, c, x->var->tensor);
    }
}

static bool is_same_in_all(const Lineup *l, size_t i)
{
    for (int k = 1; k < l->n; k++)
        if (!same_weight(l->p[0]->arena, l->p[0]->weights.at[i], l->p[k]->weights.at[i]))
            return false;
    return true;
}

static void refuse_constant(const Program *p, const Var *v)
{
    p2o_diag_advise(p->diags, DIAG_NOT_DYNAMIC, 0,
                    "compute it with torch operators, or pass it as an input; "
                    "weights must be one model's",
                    "'%s' differs between the captures, "
                    "and no simple expression of sizes gives it",
                    v->fqn ? v->fqn : v->name);
}

bool p2o_constants_hold(const Lineup *l)
{
    for (size_t i = 0; i < l->p[0]->weights.n; i++) {
        if (is_same_in_all(l, i))
            continue;
        refuse_constant(l->p[0], l->p[0]->weights.at[i]);
        return false;
    }
    return true;
}

bool p2o_constants(const Lineup *l, Sites *s)
{
    const Program *p = l->p[0];
    for (size_t i = 0; i < p->weights.n; i++) {
        const Tensor *v[MAX_CAPTURES];
        Var          *first = p->weights.at[i];
        Maker         m = { .l = l, .sites = s, .prog = l->p[0] };
        for (int k = 0; k < l->n; k++)
            v[k] = l->p[k]->weights.at[i]->tensor;
        if (is_same_in_all(l, i) || (v[0] && make_again(&m, first, v)))
            continue;
        refuse_constant(p, first);
        return false;
    }
    note_made(l, s);
    return true;
}
