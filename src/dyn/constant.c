#include "dyn/constant.h"

#include <math.h>

enum {
    LARGEST = 1 << 22,          /* elements of a constant that is looked at */
    MAX_INDICES = 3,            /* axes along which it may vary */
    FEW = 16,                   /* elements that may each be an expression of its own */
};

typedef struct Table {                  /* a constant in one capture */
    const Tensor *t;
    double       *v;
    uint64_t      n;
} Table;

typedef struct Maker {
    const Lineup *l;
    Sites        *sites;
    Program      *prog;
    int           n;                    /* captures */
    int           rank;
    DType         dtype;
    bool          whole;                /* elements are ints */
    Table         table[MAX_CAPTURES];
    int           nindex, index[MAX_INDICES];   /* axes that are not 1, the last first */
    Dim           size[MAX_RANK];
    VEC(Call *)   calls;
    bool          failed;
} Maker;

static bool load_table(Arena *a, const Tensor *t, Table *out)
{
    *out = (Table){ .t = t };
    if (!p2o_tensor_nelem(t, &out->n) || out->n == 0 || out->n > LARGEST)
        return false;
    size_t   nbytes = (size_t)out->n * p2o_dtype_bytes(t->dtype);
    uint8_t *raw = p2o_alloc(a, nbytes);
    if (!p2o_tensor_load(t, raw, nbytes))
        return false;
    const Tensor *dense = p2o_tensor_make(a, t->dtype, t->rank, t->sizes, raw);
    out->v = NEW_N(a, double, (size_t)out->n);
    for (uint64_t i = 0; i < out->n; i++)
        if (!p2o_tensor_get_f64(dense, i, &out->v[i]))
            return false;
    return true;
}

/* Bases: indices along the axes that are not 1, how far the last two are apart with its sign and without, and those
 * axes' sizes. */
static int bases_of_table(const Maker *m) { return 2 * m->nindex + (m->nindex > 1 ? 2 : 0); }

static void base_values(const Maker *m, int k, uint64_t flat, double *at)
{
    const Tensor *t = m->table[k].t;
    int64_t       place[MAX_RANK];
    for (int i = t->rank - 1; i >= 0; i--) {
        place[i] = (int64_t)(flat % (uint64_t)t->sizes[i]);
        flat /= (uint64_t)t->sizes[i];
    }
    int n = 0;
    for (int i = 0; i < m->nindex; i++)
        at[n++] = (double)place[m->index[i]];
    if (m->nindex > 1) {
        at[n++] = at[0] - at[1];
        at[n++] = fabs(at[0] - at[1]);
    }
    for (int i = 0; i < m->nindex; i++)
        at[n++] = (double)t->sizes[m->index[i]];
}

typedef enum Shown { SHOWN_VALUE, SHOWN_AT_LEAST_0, SHOWN_IS_0 } Shown;        /* how elements follow */

typedef struct Found {
    const Expr *expr;
    Shown       how;
    double      bits, yes, no;          /* the two values, where there are only two */
} Found;

typedef struct Fitting {
    const Maker *m;
    Bases        bases;
    double       want[MAX_POINTS];
    bool         two;                   /* only two values: yes and no */
    Found        best;
} Fitting;

static bool is_alike(const Maker *m, double x, double y)
{
    double slack = m->dtype == DT_F64 ? 1e-12 : m->whole ? 0 : 1e-6;
    return x == y || fabs(x - y) <= slack * fabs(y) || (isnan(x) && isnan(y));
}

/* What an element is by an expression's value. */
static double shown_value(const Found *f, double x)
{
    if (f->how == SHOWN_VALUE)
        return x;
    return (f->how == SHOWN_AT_LEAST_0 ? x >= 0 : x == 0) ? f->yes : f->no;
}

static bool gives_all(const Fitting *w, const Found *f)
{
    const Maker *m = w->m;
    Bases        b = { .n = w->bases.n, .npoint = 1 };
    double       at[MAX_BASES], v;
    for (int k = 0; k < m->n; k++) {
        for (uint64_t i = 0; i < m->table[k].n; i++) {
            base_values(m, k, i, at);
            for (int j = 0; j < b.n; j++)
                b.at[j][0] = at[j];
            if (!p2o_expr_eval(&b, f->expr, 0, &v) || !is_alike(m, shown_value(f, v), m->table[k].v[i]))
                return false;
        }
    }
    return true;
}

static void see_element_expr(void *user, const Expr *e, double bits, const double *values)
{
    Fitting *w = user;
    if (w->best.expr && bits >= w->best.bits)
        return;
    for (int how = SHOWN_VALUE; how <= SHOWN_IS_0; how++) {
        for (int turn = 0; turn < (how == SHOWN_VALUE ? 1 : 2); turn++) {
            Found f = { .expr = e, .how = (Shown)how, .bits = bits, .yes = turn ? w->best.no : w->best.yes,
                        .no = turn ? w->best.yes : w->best.no };
            int   i = 0;
            if (how != SHOWN_VALUE && !w->two)
                continue;
            while (i < w->bases.npoint && is_alike(w->m, shown_value(&f, values[i]), w->want[i]))
                i++;
            if (i < w->bases.npoint || !gives_all(w, &f))
                continue;
            double yes = w->best.yes, no = w->best.no;
            f.expr = p2o_expr_keep(w->m->prog->arena, e);
            w->best = f;
            if (how == SHOWN_VALUE) {
                w->best.yes = yes;
                w->best.no = no;
            }
            return;
        }
    }
}

/* Elements all over the tables, the first and the last among them. */
static void choose_points(Fitting *w)
{
    const Maker *m = w->m;
    uint64_t     step = 0x9e3779b97f4a7c15u;
    double       at[MAX_BASES];
    w->bases = (Bases){ .n = bases_of_table(m), .nfit = MAX_POINTS, .npoint = MAX_POINTS };
    for (int i = 0; i < MAX_POINTS; i++) {
        int      k = i % m->n;
        uint64_t n = m->table[k].n, turn = (uint64_t)(i / m->n);
        uint64_t flat = turn == 0 ? 0 : turn == 1 ? n - 1 : (step >> 17) % n;
        step = step * 6364136223846793005u + 1442695040888963407u;
        base_values(m, k, flat, at);
        for (int j = 0; j < w->bases.n; j++)
            w->bases.at[j][i] = at[j];
        w->want[i] = m->table[k].v[flat];
    }
}

/* Bits in all elements: what an expression has to be shorter than. */
static double bits_in_tables(const Maker *m)
{
    double bits = 0;
    for (int k = 0; k < m->n; k++)
        for (uint64_t i = 0; i < m->table[k].n && bits < 1000; i++)
            bits += m->dtype == DT_BOOL ? 1 : 1 + log2(1 + fabs(m->table[k].v[i]));
    return bits;
}

static void find_two_values(Fitting *w)
{
    const Maker *m = w->m;
    bool         second = false;
    w->two = true;
    w->best.yes = m->table[0].v[0];
    for (int k = 0; k < m->n && w->two; k++) {
        for (uint64_t i = 0; i < m->table[k].n && w->two; i++) {
            double v = m->table[k].v[i];
            if (v == w->best.yes || (second && v == w->best.no))
                continue;
            w->two = !second;
            w->best.no = second ? w->best.no : v;
            second = true;
        }
    }
    w->two &= second;
}

/* Two axes were equal in all captures, and the expression has the size of one of them. */
static bool is_unclear(const Maker *m, const Expr *e)
{
    int first = m->nindex + (m->nindex > 1 ? 2 : 0);
    if (!e)
        return false;
    for (int i = 0; e->op == EXPR_SIZE && e->base >= first && i < m->nindex; i++) {
        bool equal = i != e->base - first;
        for (int k = 0; k < m->n; k++)
            equal &= m->table[k].t->sizes[m->index[i]] == m->table[k].t->sizes[m->index[e->base - first]];
        if (equal)
            return true;
    }
    return is_unclear(m, e->a) || is_unclear(m, e->b);
}

static bool find_elements(const Maker *m, Found *out, Fitting *w)
{
    *w = (Fitting){ .m = m };
    choose_points(w);
    find_two_values(w);
    bool one_value = true;
    for (int k = 0; k < m->n; k++)
        for (uint64_t i = 0; i < m->table[k].n; i++)
            one_value &= is_alike(m, m->table[k].v[i], m->table[0].v[0]);
    if (one_value) {
        Expr *e = NEW(m->prog->arena, Expr);
        *e = (Expr){ .op = EXPR_NUMBER, .number = m->table[0].v[0] };
        *out = (Found){ .expr = e };
        return true;
    }
    p2o_enumerate_whole(&w->bases, see_element_expr, w);
    if (!m->whole && !w->best.expr)
        p2o_enumerate_float(&w->bases, see_element_expr, w);
    *out = w->best;
    return out->expr && out->bits <= bits_in_tables(m) && !is_unclear(m, out->expr);
}

static Var *made_by(Maker *m, const char *target, int nargs, const Arg *args)
{
    Call *c = m->failed ? NULL : p2o_ops_call(m->l->ops, m->prog, m->prog->main, target, nargs, args, 0);
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
    Var *v = made_by(m, "aten::arange", 2, (Arg[]){ arg_int(m->size[axis]), dtype_of(m->whole ? DT_I64 : DT_F64) });
    for (int i = axis + 1; i < m->rank && v; i++)
        v = made_by(m, "aten::unsqueeze", 2, (Arg[]){ arg_var(v), whole_arg(m, -1) });
    return v ? arg_var(v) : arg_none();
}

static Arg element_value(Maker *m, const Expr *e);

static Arg base_arg(Maker *m, int base)
{
    int distance = m->nindex > 1 ? 2 : 0;
    if (base < m->nindex)
        return index_tensor(m, m->index[base]);
    if (base < m->nindex + distance) {
        Var *d = made_by(m, "aten::sub.Tensor", 2, (Arg[]){ index_tensor(m, m->index[0]), index_tensor(m, m->index[1]) });
        if (d && base > m->nindex)
            d = made_by(m, "aten::abs", 1, (Arg[]){ arg_var(d) });
        return d ? arg_var(d) : arg_none();
    }
    Dim  size = m->size[m->index[base - m->nindex - distance]];
    Var *v = made_by(m, "aten::full", 3, (Arg[]){ arg_list(NEW(m->prog->arena, Arg), 0), arg_int(size),
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

static Arg element_value(Maker *m, const Expr *e)
{
    static const char *const targets[] = {
        [EXPR_ADD] = "aten::add.Tensor", [EXPR_SUB] = "aten::sub.Tensor", [EXPR_MUL] = "aten::mul.Tensor",
        [EXPR_MOD] = "aten::remainder.Tensor", [EXPR_MIN] = "aten::minimum", [EXPR_MAX] = "aten::maximum",
        [EXPR_QUOTIENT] = "aten::div.Tensor", [EXPR_SQRT] = "aten::sqrt", [EXPR_LOG] = "aten::log", [EXPR_LOG2] = "aten::log2" };
    if (e->op == EXPR_NUMBER)
        return number_tensor(m, e->number);
    if (e->op == EXPR_SIZE)
        return base_arg(m, e->base);
    Arg x = element_value(m, e->a), y = e->b ? element_value(m, e->b) : arg_none();
    if (m->failed)
        return arg_none();
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
    for (int i = 0; i < m->rank; i++) {
        bool differs = false;
        for (int k = 0; k < m->n; k++) {
            at[k] = m->table[k].t->sizes[i];
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

static Var *make_elements(Maker *m, const Found *f)
{
    Arg v = element_value(m, f->expr);
    if (f->how != SHOWN_VALUE && !m->failed) {
        Var *yes = made_by(m, f->how == SHOWN_IS_0 ? "aten::eq.Scalar" : "aten::ge.Scalar", 2, (Arg[]){ v, whole_arg(m, 0) });
        Var *x = yes ? made_by(m, "aten::where.Scalar", 3, (Arg[]){ arg_var(yes), arg_float(f->yes), arg_float(f->no) }) : NULL;
        v = x ? arg_var(x) : arg_none();
    }
    Arg *items = NEW_N(m->prog->arena, Arg, (size_t)m->rank + 1);
    for (int i = 0; i < m->rank; i++)
        items[i] = arg_int(m->size[i]);
    Var *x = m->failed ? NULL : made_by(m, "aten::_to_copy", 2, (Arg[]){ v, dtype_of(m->dtype) });
    return x ? made_by(m, "aten::expand", 2, (Arg[]){ arg_var(x), arg_list(items, (size_t)m->rank) }) : NULL;
}

/* torch.tensor([h, w]): each element a site of its own. */
static Var *make_few(Maker *m)
{
    Arg items[FEW], sizes[MAX_RANK + 1];
    int64_t at[MAX_CAPTURES];
    for (uint64_t i = 0; i < m->table[0].n; i++) {
        for (int k = 0; k < m->n; k++)
            at[k] = (int64_t)m->table[k].v[i];
        Arg *one = NEW(m->prog->arena, Arg), *value = NEW(m->prog->arena, Arg);
        *one = whole_arg(m, 1);
        Var *x = made_by(m, "aten::full", 3, (Arg[]){ arg_list(one, 1), whole_arg(m, at[0]), dtype_of(m->dtype) });
        if (!x)
            return NULL;
        *value = x->def->args[1];
        x->def->args[1] = arg_int(p2o_site_add(m->sites, x->def, value, NUMBER_FACTOR, at)->open);
        items[i] = arg_var(x);
    }
    Arg *list = NEW_N(m->prog->arena, Arg, (size_t)m->table[0].n);
    memcpy(list, items, (size_t)m->table[0].n * sizeof *list);
    Var *x = made_by(m, "aten::cat", 2, (Arg[]){ arg_list(list, (size_t)m->table[0].n), whole_arg(m, 0) });
    for (int i = 0; i < m->rank; i++)
        sizes[i] = whole_arg(m, m->table[0].t->sizes[i]);
    Arg *shape = NEW_N(m->prog->arena, Arg, (size_t)m->rank + 1);
    memcpy(shape, sizes, (size_t)m->rank * sizeof *shape);
    return x ? made_by(m, "aten::view", 2, (Arg[]){ arg_var(x), arg_list(shape, (size_t)m->rank) }) : NULL;
}

static bool is_few(const Maker *m)
{
    for (int k = 0; k < m->n; k++) {
        if (m->table[k].n != m->table[0].n || m->table[k].n > FEW || m->dtype == DT_BOOL)
            return false;
        for (uint64_t i = 0; i < m->table[k].n; i++)
            if (m->table[k].v[i] != floor(m->table[k].v[i]) || fabs(m->table[k].v[i]) > 1e9)
                return false;
        for (int i = 0; i < m->rank; i++)
            if (m->table[k].t->sizes[i] != m->table[0].t->sizes[i])
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

static bool make_again(Maker *m, Var *constant, const Tensor *const *v)
{
    Found   f;
    Fitting w;
    m->rank = v[0]->rank;
    m->dtype = v[0]->dtype;
    m->whole = !is_float(m->dtype);
    for (int k = 0; k < m->n; k++)
        if (v[k]->rank != m->rank || v[k]->dtype != m->dtype || !load_table(m->prog->arena, v[k], &m->table[k]))
            return false;
    for (int i = m->rank - 1; i >= 0; i--) {
        bool one = true;
        for (int k = 0; k < m->n; k++)
            one &= v[k]->sizes[i] == 1;
        if (!one && m->nindex == MAX_INDICES)
            return false;
        if (!one)
            m->index[m->nindex++] = i;
    }
    Var *made = NULL;
    if (is_few(m)) {
        made = make_few(m);
    } else if (find_elements(m, &f, &w)) {
        open_sizes(m);
        made = make_elements(m, &f);
    }
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
    bool      equal = p2o_tensor_load(x, px, nbytes) && p2o_tensor_load(y, py, nbytes) && !memcmp(px, py, nbytes);
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

/* Sizes and, of small ones, elements of a constant that forward() made and that is the same in all captures. */
static void note_numbers(const Lineup *l, Sites *s, Call *c, const Tensor *t)
{
    enum { SMALL = 64 };
    Table table;
    for (int i = 0; i < t->rank; i++)
        if (t->sizes[i] > 1)
            p2o_site_note(s, c, (double)t->sizes[i]);
    if (!load_table(l->p[0]->arena, t, &table) || table.n > SMALL || t->dtype == DT_BOOL)
        return;
    for (uint64_t i = 0; i < table.n; i++)
        if (table.v[i] != 0 && isfinite(table.v[i]))
            p2o_site_note(s, c, table.v[i]);
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

bool p2o_constants(const Lineup *l, Sites *s)
{
    const Program *p = l->p[0];
    for (size_t i = 0; i < p->weights.n; i++) {
        const Tensor *v[MAX_CAPTURES];
        Var          *first = p->weights.at[i];
        Maker         m = { .l = l, .sites = s, .prog = l->p[0], .n = l->n };
        bool          equal = true;
        for (int k = 0; k < l->n; k++) {
            v[k] = l->p[k]->weights.at[i]->tensor;
            equal &= same_weight(p->arena, first, l->p[k]->weights.at[i]);
        }
        if (equal || (v[0] && make_again(&m, first, v)))
            continue;
        p2o_diag_advise(p->diags, DIAG_NOT_DYNAMIC, 0,
                        "compute it with torch operators, or pass it as an input; weights must be one model's",
                        "'%s' differs between the captures, and no simple expression of sizes gives it",
                        first->fqn ? first->fqn : first->name);
        return false;
    }
    note_made(l, s);
    return true;
}
