#include "ir/bind.h"

typedef struct Binding {
    Dim     sym, to;            /* to NULL: not bound */
    SymRole role;
} Binding;

struct Bindings {
    Dims  *dims;
    Map    by_name;             /* symbol name -> Binding * */
    size_t count;
};

Bindings *p2o_bindings_new(Dims *t)
{
    Bindings *b = NEW(p2o_dims_arena(t), Bindings);
    b->dims = t;
    b->by_name.arena = p2o_dims_arena(t);
    return b;
}

static Binding *binding_of(Bindings *b, Dim sym)
{
    void **slot = p2o_map_slot(&b->by_name, str_of(p2o_dim_name(sym)));
    if (!*slot) {
        Binding *x = NEW(p2o_dims_arena(b->dims), Binding);
        *x = (Binding){ .sym = sym, .role = ROLE_FILE };
        *slot = x;
    }
    return *slot;
}

void p2o_set_role(Bindings *b, Dim sym, SymRole r) { binding_of(b, sym)->role = r; }

SymRole p2o_role(const Bindings *b, Dim sym)
{
    const Binding *x = p2o_map_get(&b->by_name, str_of(p2o_dim_name(sym)));
    return x ? x->role : ROLE_FILE;
}

static Dim bound_value(void *user, Dim sym)
{
    Bindings      *b = user;
    const Binding *x = p2o_map_get(&b->by_name, str_of(p2o_dim_name(sym)));
    return x && x->to ? x->to : sym;
}

/* Values are kept resolved, so one substitution is enough. */
Dim p2o_resolve(Bindings *b, Dim d)
{
    return b->count && d ? p2o_dim_subst(b->dims, d, bound_value, b) : d;
}

void p2o_bind(Bindings *b, Dim sym, Dim to)
{
    to = p2o_resolve(b, to);
    if (to == sym)
        return;
    binding_of(b, sym)->to = to;
    b->count++;
    for (size_t i = 0; i < b->by_name.n; i++) {
        Binding *x = b->by_name.at[i].value;
        if (x->to)
            x->to = p2o_dim_subst(b->dims, x->to, bound_value, b);
    }
}

size_t p2o_bindings_count(const Bindings *b) { return b->count; }

typedef struct Occurs {
    Dim    sym;
    size_t n;
} Occurs;

static void count_symbol(void *user, Dim sym)
{
    Occurs *o = user;
    o->n += sym == o->sym;
}

static bool occurs_in(Dim sym, Dim d)
{
    Occurs o = { .sym = sym };
    p2o_dim_symbols(d, count_symbol, &o);
    return o.n != 0;
}

/* x - y = 0 read as sym = to, for a symbol that stands alone in one term with coefficient 1 or -1. */
static bool solve_for(Bindings *b, Dim diff, const DimTerm *term, Dim *sym, Dim *to)
{
    if (term->natom != 1 || term->power[0] != 1 || !p2o_dim_is_sym(term->atom[0]))
        return false;
    if (term->coef != 1 && term->coef != -1)
        return false;
    *sym = term->atom[0];
    Dim rest = p2o_dim_sub(b->dims, diff, p2o_dim_mul(b->dims, p2o_dim_int(b->dims, term->coef), *sym));
    *to = term->coef == 1 ? p2o_dim_neg(b->dims, rest) : rest;
    return *to && !occurs_in(*sym, *to);
}

static bool hints_differ(Bindings *b, Dim x, Dim y)
{
    int64_t hx, hy;
    return p2o_dim_hint(b->dims, x, &hx) && p2o_dim_hint(b->dims, y, &hy) && hx != hy;
}

static int64_t gcd_of(int64_t a, int64_t b)
{
    while (b) {
        int64_t r = a % b;
        a = b;
        b = r;
    }
    return a < 0 ? -a : a;
}

/* The number and the atoms that divide every term: 50*batch - 150 = 0 says the same as batch - 3 = 0,
 * and b*x - b*y = 0 is taken to say x = y. */
static Dim without_common_factor(Dims *t, Dim diff)
{
    int64_t g = 0;
    int     n = p2o_dim_nterm(diff);
    for (int i = 0; i < n; i++) {
        int64_t coef = p2o_dim_term(diff, i)->coef;
        g = coef == INT64_MIN ? 1 : gcd_of(g, coef);
    }
    Dim small = g > 1 ? p2o_dim_exact_div(t, diff, p2o_dim_int(t, g)) : diff;
    if (!small)
        return diff;
    const DimTerm *first = p2o_dim_term(small, 0);
    for (int k = 0; k < first->natom; k++) {
        Dim shorter = p2o_dim_exact_div(t, small, first->atom[k]);
        if (shorter && !p2o_dim_is_int(shorter, NULL))
            return without_common_factor(t, shorter);
    }
    return small;
}

static void note_first(void *user, Dim sym)
{
    Dim *first = user;
    if (!*first)
        *first = sym;
}

static bool is_simple(Dim d) { return p2o_dim_is_int(d, NULL) || p2o_dim_is_sym(d); }

/* Of the symbols that can be solved for: the lowest role, and among equals the one bound to the
 * simplest value, and then the one that came last.  *forbidden: one would have to be a number. */
static bool choose_binding(Bindings *b, Dim diff, Dim *sym, Dim *to, bool *forbidden)
{
    bool found = false;
    for (int i = 0; i < p2o_dim_nterm(diff); i++) {
        Dim s, value;
        if (!solve_for(b, diff, p2o_dim_term(diff, i), &s, &value))
            continue;
        SymRole role = p2o_role(b, s);
        if (p2o_dim_is_int(value, NULL) && role >= ROLE_FILE) {
            *sym = s;
            *to = value;
            *forbidden = true;
            return false;
        }
        if (found && (role > p2o_role(b, *sym) ||
                      (role == p2o_role(b, *sym) && is_simple(*to) && !is_simple(value))))
            continue;
        *sym = s;
        *to = value;
        found = true;
    }
    return found;
}

UnifyResult p2o_unify(Bindings *b, Dim x, Dim y, Dim *sym, Dim *to)
{
    x = p2o_resolve(b, x);
    y = p2o_resolve(b, y);
    *sym = *to = NULL;
    if (!x || !y)
        return UNIFY_DIFFERENT;
    Answer equal = p2o_dim_eq(b->dims, x, y);
    if (equal == YES)
        return UNIFY_SAME;
    bool forbidden = false;
    Dim  diff = p2o_dim_sub(b->dims, x, y);
    if (!diff || p2o_dim_is_int(diff, NULL))
        return UNIFY_DIFFERENT;
    bool found = choose_binding(b, without_common_factor(b->dims, diff), sym, to, &forbidden);
    if (forbidden)
        return UNIFY_FIXED;
    if (equal == NO || hints_differ(b, x, y))
        return UNIFY_DIFFERENT;
    if (found) {
        p2o_bind(b, *sym, *to);
        return UNIFY_BOUND;
    }
    if (p2o_dim_is_int(x, NULL) || p2o_dim_is_int(y, NULL)) {
        p2o_dim_symbols(diff, note_first, sym);
        return UNIFY_FIXED;
    }
    return UNIFY_ASSUMED;
}
