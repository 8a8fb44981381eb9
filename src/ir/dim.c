/* The table of Dims: interning, the structure of nodes, and the walks over them.
 *
 * Keys are bytes made of creation numbers, never of addresses, so equal runs build equal tables.
 * A node is finished before it is interned; only ranges may change later, with a symbol's. */
#include <assert.h>
#include <inttypes.h>

#include "base/num.h"
#include "ir/dim_node.h"

enum { MAX_NAME = 255 };

static Mono *new_mono(Dims *t, int natom, const Dim *atom, const int *power)
{
    Mono *m = NEW(t->arena, Mono);
    Dim  *atoms = NEW_N(t->arena, Dim, (size_t)natom + 1);
    int  *powers = NEW_N(t->arena, int, (size_t)natom + 1);
    for (int i = 0; i < natom; i++) {
        atoms[i] = atom[i];
        powers[i] = power[i];
        m->degree += power[i];
    }
    m->id = t->nmono++;
    m->natom = natom;
    m->atom = atoms;
    m->power = powers;
    return m;
}

static void remember_key(Dims *t, Map *m, Str key, void *value)
{
    map_put(m, (Str){ p2o_str_dup(t->arena, key), key.n }, value);
}

const Mono *p2o_mono_intern(Dims *t, int natom, const Dim *atom, const int *power)
{
    uint32_t key[2 * DIM_MAX_DEGREE];
    int      degree = 0;
    if (natom == 0)
        return t->one;
    for (int i = 0; i < natom; i++) {
        if (power[i] > DIM_MAX_DEGREE - degree)
            return NULL;
        degree += power[i];
        key[2 * i] = atom[i]->id;
        key[2 * i + 1] = (uint32_t)power[i];
    }
    Str   bytes = { (const char *)key, 2 * (size_t)natom * sizeof *key };
    Mono *m = p2o_map_get(&t->monos, bytes);
    if (!m) {
        m = new_mono(t, natom, atom, power);
        remember_key(t, &t->monos, bytes, m);
    }
    return m;
}

static struct DimExpr *new_node(Dims *t, DimKind kind)
{
    struct DimExpr *d = NEW(t->arena, struct DimExpr);
    d->kind = kind;
    d->id = (uint32_t)t->nodes.n;
    d->weight = 1;
    VEC_PUSH(t->arena, &t->nodes, d);
    return d;
}

static void set_parts(Dims *t, struct DimExpr *d, int n, const Part *at)
{
    Part    *part = NEW_N(t->arena, Part, (size_t)n + 1);
    DimTerm *term = NEW_N(t->arena, DimTerm, (size_t)n + 1);
    for (int i = 0; i < n; i++) {
        const Mono *m = at[i].mono;
        part[i] = at[i];
        term[i] = (DimTerm){ at[i].coef, m->natom, m->atom, m->power };
    }
    d->nterm = n;
    d->part = part;
    d->term = term;
}

/* An atom is one term of itself. */
static void set_self(Dims *t, struct DimExpr *d)
{
    Dim self = d;
    set_parts(t, d, 1, &(Part){ 1, p2o_mono_intern(t, 1, &self, &(int){ 1 }) });
}

Dims *p2o_dims_new(Arena *a)
{
    Dims *t = NEW(a, Dims);
    t->arena = a;
    t->ints.arena = t->syms.arena = t->opaques.arena = a;
    t->sums.arena = t->monos.arena = t->stems.arena = a;
    t->one = new_mono(t, 0, NULL, NULL);
    return t;
}

Arena *p2o_dims_arena(const Dims *t) { return t->arena; }

Dim p2o_dim_int(Dims *t, int64_t v)
{
    Str             bytes = { (const char *)&v, sizeof v };
    struct DimExpr *d = p2o_map_get(&t->ints, bytes);
    if (d)
        return d;
    d = new_node(t, DIM_INT);
    d->value = v;
    d->range = (Range){ v, v };
    set_parts(t, d, v != 0, &(Part){ v, t->one });
    remember_key(t, &t->ints, bytes, d);
    return d;
}

static bool is_name_byte(char c, bool first)
{
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_')
        return true;
    return !first && ((c >= '0' && c <= '9') || c == '.');
}

bool p2o_dim_name_ok(Str name)
{
    if (name.n == 0 || name.n > MAX_NAME)
        return false;
    for (size_t i = 0; i < name.n; i++)
        if (!is_name_byte(name.p[i], i == 0))
            return false;
    return true;
}

Dim p2o_dim_sym_of(Dims *t, Str name)
{
    if (!p2o_dim_name_ok(name))
        return NULL;
    Dim known = p2o_map_get(&t->syms, name);
    if (known)
        return known;
    struct DimExpr *d = new_node(t, DIM_SYM);
    d->name = p2o_str_dup(t->arena, name);
    d->range = (Range){ 0, NO_UPPER };
    set_self(t, d);
    map_put(&t->syms, (Str){ d->name, name.n }, d);
    return d;
}

Dim p2o_dim_sym(Dims *t, const char *name) { return p2o_dim_sym_of(t, str_of(name)); }

bool p2o_dim_has_sym(const Dims *t, Str name) { return p2o_map_get(&t->syms, name) != NULL; }

Dim p2o_dim_fresh(Dims *t, const char *stem)
{
    enum { MAX_STEM = MAX_NAME - 24 };  /* room for the number */
    char   clean[MAX_STEM + 2];
    size_t n = 0;
    if (!is_name_byte(stem[0], true))
        clean[n++] = '_';
    for (size_t i = 0; stem[i] && n < MAX_STEM; i++)
        clean[n++] = is_name_byte(stem[i], false) ? stem[i] : '_';

    Str base = { clean, n };
    if (!p2o_dim_has_sym(t, base))
        return p2o_dim_sym_of(t, base);
    uint64_t *used = p2o_map_get(&t->stems, base);
    if (!used) {
        used = NEW(t->arena, uint64_t);
        remember_key(t, &t->stems, base, used);
    }
    Str name;
    do {
        ++*used;
        name = str_of(p2o_printf(t->arena, "%.*s_%" PRIu64, STR_ARG(base), *used));
    } while (p2o_dim_has_sym(t, name));
    return p2o_dim_sym_of(t, name);
}

void p2o_dim_set_range(Dims *t, Dim sym, int64_t lo, int64_t hi)
{
    if (!sym || lo > hi || (sym->range.lo == lo && sym->range.hi == hi))
        return;
    assert(sym->kind == DIM_SYM);
    thaw(sym)->range = (Range){ lo, hi };
    for (size_t i = sym->id + 1; sym->is_used && i < t->nodes.n; i++)
        p2o_dim_find_range(t, t->nodes.at[i]);
}

void p2o_dim_set_floor(Dims *t, Dim sym, int64_t lo)
{
    (void)t;
    if (sym && sym->kind == DIM_SYM)
        thaw(sym)->floor = lo;
}

void p2o_dim_set_hint(Dims *t, Dim sym, int64_t v)
{
    (void)t;
    if (!sym)
        return;
    assert(sym->kind == DIM_SYM);
    thaw(sym)->value = v;
    thaw(sym)->has_hint = true;
    if (v >= 1 && sym->floor < 1)
        thaw(sym)->floor = 1;
}

static void mark_used(Dim d) { thaw(d)->is_used = true; }

/* The atom with this key, found or made like `as`. */
static Dim intern_opaque(Dims *t, Str key, const struct DimExpr *as)
{
    Dim             a = as->operand[0], b = as->operand[1];
    int             depth = 1 + (b && b->depth > a->depth ? b->depth : a->depth);
    int             weight = 1 + a->weight + (b ? b->weight : 0);
    struct DimExpr *d = p2o_map_get(&t->opaques, key);
    if (d)
        return d;
    if (depth > DIM_MAX_DEPTH || weight > DIM_MAX_WEIGHT)
        return NULL;
    d = new_node(t, as->kind);
    d->depth = depth;
    d->weight = weight;
    d->operand[0] = a;
    d->operand[1] = b;
    d->fn = as->fn;
    d->factor = as->factor;
    set_self(t, d);
    mark_used(a);
    if (b)
        mark_used(b);
    p2o_dim_find_range(t, d);
    remember_key(t, &t->opaques, key, d);
    return d;
}

Dim p2o_dim_opaque(Dims *t, DimKind kind, Dim a, Dim b)
{
    uint32_t key[3] = { (uint32_t)kind, a->id, b->id };
    return intern_opaque(t, (Str){ (const char *)key, sizeof key },
                         &(struct DimExpr){ .kind = kind, .operand = { a, b } });
}

Dim p2o_dim_fn_atom(Dims *t, DimFn fn, double factor, Dim a)
{
    uint32_t key[5] = { DIM_FN, a->id, (uint32_t)fn };
    memcpy(key + 3, &factor, sizeof factor);
    struct DimExpr as = { .kind = DIM_FN, .operand = { a }, .fn = fn, .factor = factor };
    return intern_opaque(t, (Str){ (const char *)key, sizeof key }, &as);
}

static Dim new_sum(Dims *t, const Poly *p, int depth, int weight)
{
    struct DimExpr *d = new_node(t, DIM_SUM);
    d->depth = depth;
    d->weight = weight;
    set_parts(t, d, p->n, p->at);
    for (int i = 0; i < p->n; i++)
        for (int k = 0; k < p->at[i].mono->natom; k++)
            mark_used(p->at[i].mono->atom[k]);
    p2o_dim_find_range(t, d);
    return d;
}

static Dim intern_sum(Dims *t, const Poly *p)
{
    uint64_t key[2 * DIM_MAX_TERMS];
    int      depth = 0, weight = 0;
    for (int i = 0; i < p->n; i++) {
        const Mono *m = p->at[i].mono;
        weight++;
        for (int k = 0; k < m->natom; k++) {
            weight += m->atom[k]->weight;
            if (m->atom[k]->depth > depth)
                depth = m->atom[k]->depth;
        }
        key[2 * i] = (uint64_t)p->at[i].coef;
        key[2 * i + 1] = m->id;
    }
    if (weight > DIM_MAX_WEIGHT)
        return NULL;
    Str bytes = { (const char *)key, 2 * (size_t)p->n * sizeof *key };
    Dim d = p2o_map_get(&t->sums, bytes);
    if (!d) {
        d = new_sum(t, p, depth, weight);
        remember_key(t, &t->sums, bytes, thaw(d));
    }
    return d;
}

Dim p2o_dim_intern(Dims *t, const Poly *p)
{
    if (p->n == 0)
        return p2o_dim_int(t, 0);
    if (p->n > 1)
        return intern_sum(t, p);
    const Mono *m = p->at[0].mono;
    if (m->natom == 0)
        return p2o_dim_int(t, p->at[0].coef);
    if (p->at[0].coef == 1 && m->degree == 1)
        return m->atom[0];
    return intern_sum(t, p);
}

bool p2o_dim_is_int(Dim d, int64_t *v)
{
    if (!d || d->kind != DIM_INT)
        return false;
    if (v)
        *v = d->value;
    return true;
}

bool        p2o_dim_is_sym(Dim d) { return d && d->kind == DIM_SYM; }
const char *p2o_dim_name(Dim sym) { return sym->name; }
DimKind     p2o_dim_kind(Dim d) { return d->kind; }
int         p2o_dim_nterm(Dim d) { return d->nterm; }

Dim p2o_dim_operand(Dim d, int i)
{
    assert(is_opaque(d) && (i == 0 || (i == 1 && d->kind != DIM_FN)));
    return d->operand[i];
}

DimFn p2o_dim_fn_of(Dim d, double *factor)
{
    assert(d->kind == DIM_FN);
    *factor = d->factor;
    return d->fn;
}

const DimTerm *p2o_dim_term(Dim d, int i)
{
    assert(i >= 0 && i < d->nterm);
    return &d->term[i];
}

typedef struct Eval {
    DimValueFn *value;
    void       *user;
} Eval;

static bool eval_dim(const Eval *e, Dim d, int64_t *out);

static bool eval_opaque(const Eval *e, Dim d, int64_t *out)
{
    int64_t a, b;
    if (!eval_dim(e, d->operand[0], &a))
        return false;
    if (d->kind == DIM_FN)
        return p2o_fn_value(d->fn, d->factor, a, out);
    if (!eval_dim(e, d->operand[1], &b))
        return false;
    if (d->kind == DIM_MIN || d->kind == DIM_MAX) {
        *out = (a < b) == (d->kind == DIM_MIN) ? a : b;
        return true;
    }
    if (b == 0 || (a == INT64_MIN && b == -1))
        return false;
    *out = d->kind == DIM_FLOORDIV ? floor_div(a, b) : floor_mod(a, b);
    return true;
}

static bool eval_term(const Eval *e, const DimTerm *term, int64_t *out)
{
    int64_t v = term->coef;
    for (int i = 0; i < term->natom; i++) {
        int64_t x;
        if (!eval_dim(e, term->atom[i], &x))
            return false;
        for (int k = 0; k < term->power[i]; k++)
            if (!mul_i64(v, x, &v))
                return false;
    }
    *out = v;
    return true;
}

static bool eval_dim(const Eval *e, Dim d, int64_t *out)
{
    if (d->kind == DIM_SYM)
        return e->value(e->user, d, out);
    if (is_opaque(d))
        return eval_opaque(e, d, out);
    int64_t sum = 0;
    for (int i = 0; i < d->nterm; i++) {
        int64_t v;
        if (!eval_term(e, &d->term[i], &v) || !add_i64(sum, v, &sum))
            return false;
    }
    *out = sum;
    return true;
}

bool p2o_dim_eval(Dims *t, Dim d, DimValueFn *value, void *user, int64_t *out)
{
    (void)t;
    return d && eval_dim(&(Eval){ value, user }, d, out);
}

static bool hint_of(void *user, Dim sym, int64_t *v)
{
    (void)user;
    *v = sym->value;
    return sym->has_hint;
}

bool p2o_dim_hint(Dims *t, Dim d, int64_t *v) { return p2o_dim_eval(t, d, hint_of, NULL, v); }

typedef struct Subst {
    Dims         *t;
    DimReplaceFn *fn;           /* NULL: symbols stay */
    DimChooseFn  *choose;       /* NULL: mins and maxes stay */
    void         *user;
} Subst;

static Dim subst_dim(const Subst *s, Dim d);

/* A chain max(max(a, b), c) is one list: its inner nodes need not be in normal form alone. */
static Dim subst_extreme(const Subst *s, Dim d)
{
    Dim list[DIM_MAX_LIST];
    int n = 0;
    Dim at = d;
    for (; at->kind == d->kind && n < DIM_MAX_LIST - 1; at = at->operand[0])
        list[n++] = subst_dim(s, at->operand[1]);
    list[n++] = subst_dim(s, at);
    int chosen = s->choose ? s->choose(s->user, d->kind, n, list) : -1;
    if (chosen >= 0)
        return list[chosen];
    return d->kind == DIM_MIN ? p2o_dim_min_of(s->t, n, list) : p2o_dim_max_of(s->t, n, list);
}

static Dim subst_atom(const Subst *s, Dim d)
{
    if (d->kind == DIM_SYM)
        return s->fn ? s->fn(s->user, d) : d;
    if (d->kind == DIM_MIN || d->kind == DIM_MAX)
        return subst_extreme(s, d);
    Dim a = subst_dim(s, d->operand[0]);
    if (d->kind == DIM_FN)
        return p2o_dim_fn(s->t, d->fn, d->factor, a);
    Dim b = subst_dim(s, d->operand[1]);
    return d->kind == DIM_FLOORDIV ? p2o_dim_floordiv(s->t, a, b) : p2o_dim_mod(s->t, a, b);
}

static Dim subst_dim(const Subst *s, Dim d)
{
    if (d->kind == DIM_SYM || is_opaque(d))
        return subst_atom(s, d);
    Dim sum = p2o_dim_int(s->t, 0);
    for (int i = 0; i < d->nterm; i++) {
        const DimTerm *term = &d->term[i];
        Dim            product = p2o_dim_int(s->t, term->coef);
        for (int k = 0; k < term->natom; k++)
            product = p2o_dim_mul(s->t, product,
                                  p2o_dim_pow(s->t, subst_atom(s, term->atom[k]), term->power[k]));
        sum = p2o_dim_add(s->t, sum, product);
    }
    return sum;
}

Dim p2o_dim_subst(Dims *t, Dim d, DimReplaceFn *fn, void *user)
{
    return d ? subst_dim(&(Subst){ .t = t, .fn = fn, .user = user }, d) : NULL;
}

Dim p2o_dim_choose(Dims *t, Dim d, DimChooseFn *fn, void *user)
{
    return d ? subst_dim(&(Subst){ .t = t, .choose = fn, .user = user }, d) : NULL;
}

typedef struct Symbols {
    int n;
    Dim at[DIM_MAX_WEIGHT];
} Symbols;

static void note_symbol(Symbols *s, Dim sym)
{
    for (int i = 0; i < s->n; i++)
        if (s->at[i] == sym)
            return;
    s->at[s->n++] = sym;
}

static void gather_symbols(Symbols *s, Dim d)
{
    if (d->kind == DIM_SYM) {
        note_symbol(s, d);
        return;
    }
    if (is_opaque(d)) {
        gather_symbols(s, d->operand[0]);
        if (d->operand[1])
            gather_symbols(s, d->operand[1]);
        return;
    }
    for (int i = 0; i < d->nterm; i++)
        for (int k = 0; k < d->term[i].natom; k++)
            gather_symbols(s, d->term[i].atom[k]);
}

bool p2o_dim_has(Dim d, DimKind kind)
{
    if (d->kind == kind)
        return true;
    if (is_opaque(d))
        return p2o_dim_has(d->operand[0], kind) ||
               (d->operand[1] && p2o_dim_has(d->operand[1], kind));
    for (int i = 0; d->kind == DIM_SUM && i < d->nterm; i++)
        for (int k = 0; k < d->term[i].natom; k++)
            if (p2o_dim_has(d->term[i].atom[k], kind))
                return true;
    return false;
}

Dim p2o_dim_without_number(Dims *t, Dim d)
{
    int64_t g = 0;
    for (int i = 0; i < p2o_dim_nterm(d); i++)
        for (int64_t c = p2o_dim_term(d, i)->coef, r; c; c = r) {
            r = g % c;
            g = c;
        }
    Dim q = p2o_dim_exact_div(t, d, p2o_dim_int(t, g < 0 ? -g : g));
    return q ? q : d;
}

void p2o_dim_symbols(Dim d, DimVisitFn *fn, void *user)
{
    Symbols s;
    s.n = 0;
    if (d)
        gather_symbols(&s, d);
    for (int i = 0; i < s.n; i++)
        fn(user, s.at[i]);
}

typedef struct Shift {
    Dims   *t;
    int64_t most;
    bool    back;
} Shift;

/* s + floor for s: as s is at least 0, the sum is at least the floor. */
static Dim shifted_symbol(void *user, Dim sym)
{
    const Shift *s = user;
    int64_t      by =
        (sym->floor < s->most ? sym->floor : s->most) - (sym->range.lo > 0 ? sym->range.lo : 0);
    if (by <= 0 || sym->range.lo < 0)
        return sym;
    return p2o_dim_add(s->t, sym, p2o_dim_int(s->t, s->back ? -by : by));
}

Dim p2o_dim_assume(Dims *t, Dim d, int64_t most)
{
    Shift s = { .t = t, .most = most };
    if (!d || d->depth == 0)
        return d;
    Dim up = p2o_dim_subst(t, d, shifted_symbol, &s);
    s.back = true;
    Dim down = up ? p2o_dim_subst(t, up, shifted_symbol, &s) : NULL;
    return down ? down : d;
}

void p2o_dim_assumed_range(Dims *t, Dim d, int64_t *lo, int64_t *hi)
{
    Shift s = { .t = t, .most = INT64_MAX };
    Dim   up = d ? p2o_dim_subst(t, d, shifted_symbol, &s) : NULL;
    p2o_dim_range(t, up ? up : d, lo, hi);
}

typedef struct Sought {
    Dim  in, sym;
    bool found;
} Sought;

static void see_sought(void *user, Dim sym)
{
    Sought *s = user;
    s->found |= sym == s->sym;
}

static void seek_symbol(void *user, Dim sym)
{
    Sought *s = user;
    s->sym = sym;
    p2o_dim_symbols(s->in, see_sought, s);
}

bool p2o_dim_are_kin(Dim a, Dim b)
{
    Sought s = { .in = b };
    p2o_dim_symbols(a, seek_symbol, &s);
    return s.found;
}
