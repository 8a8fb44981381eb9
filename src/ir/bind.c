#include "ir/bind.h"

#include <assert.h>

#include "base/num.h"
#include "base/vec.h"

typedef struct Binding {
    Dim     sym, to;            /* to NULL: not bound */
    SymRole role;
    int64_t hint[MAX_CAPTURES]; /* from 1 on; capture 0 is in the Dims table */
    bool    has_hint[MAX_CAPTURES];
    bool    hole;
    BindWhy why;
    const char *of;             /* of soft ones: the call they stand in */
    Loc     loc;
} Binding;

struct Bindings {
    Dims     *dims;
    int       ncapture, nfit;
    Map       by_name;          /* symbol name -> Binding * */
    VEC(Dim)  soft;
    VEC(BindEvent) events;
    VEC(Unsettled) unsettled;
    VEC(Need) needs;
    VEC(Demand) demands;
    Map       need_keys, demand_keys;
    size_t    count;
};

Bindings *p2o_bindings_new(Dims *t, int ncapture)
{
    assert(ncapture >= 1 && ncapture <= MAX_CAPTURES);
    Bindings *b = NEW(p2o_dims_arena(t), Bindings);
    b->dims = t;
    b->ncapture = b->nfit = ncapture;
    b->by_name.arena = b->need_keys.arena = b->demand_keys.arena = p2o_dims_arena(t);
    return b;
}

Dims *p2o_bindings_dims(const Bindings *b) { return b->dims; }
int   p2o_ncapture(const Bindings *b) { return b->ncapture; }
void  p2o_set_nfit(Bindings *b, int n) { b->nfit = n; }
int   p2o_nfit(const Bindings *b) { return b->nfit; }

static Binding *binding_of(Bindings *b, Dim sym)
{
    void **slot = p2o_map_slot(&b->by_name, str_of(p2o_dim_name(sym)));
    if (!*slot) {
        Binding *x = NEW(p2o_dims_arena(b->dims), Binding);
        x->sym = sym;
        x->role = ROLE_FILE;
        *slot = x;
    }
    return *slot;
}

static Binding *find_binding(const Bindings *b, Dim sym)
{
    return p2o_map_get(&b->by_name, str_of(p2o_dim_name(sym)));
}

void p2o_set_role(Bindings *b, Dim sym, SymRole r) { binding_of(b, sym)->role = r; }

SymRole p2o_role(const Bindings *b, Dim sym)
{
    const Binding *x = find_binding(b, sym);
    return x ? x->role : ROLE_FILE;
}

bool p2o_is_bound(const Bindings *b, Dim sym)
{
    const Binding *x = find_binding(b, sym);
    return x && x->to;
}

/* What a symbol stands for, through any number of bindings; shortened on the way, so that long
 * chains are walked once. */
static Dim bound_value(void *user, Dim sym)
{
    Bindings *b = user;
    Binding  *x = find_binding(b, sym);
    if (!x || !x->to)
        return sym;
    x->to = p2o_dim_subst(b->dims, x->to, bound_value, b);
    return x->to;
}

Dim p2o_resolve(Bindings *b, Dim d)
{
    if (!b->count || !d)
        return d;
    return p2o_dim_is_sym(d) ? bound_value(b, d) : p2o_dim_subst(b->dims, d, bound_value, b);
}

size_t p2o_bindings_count(const Bindings *b) { return b->count; }

void p2o_set_hint_at(Bindings *b, Dim sym, int capture, int64_t v)
{
    Binding *x = binding_of(b, sym);
    x->hint[capture] = v;
    x->has_hint[capture] = true;
    if (capture == 0)
        p2o_dim_set_hint(b->dims, sym, v);
}

typedef struct AtCapture {
    Bindings *b;
    int       capture;
} AtCapture;

static bool hint_value(void *user, Dim sym, int64_t *v)
{
    const AtCapture *at = user;
    const Binding   *x = find_binding(at->b, sym);
    if (!x || !x->has_hint[at->capture])
        return at->capture == 0 && p2o_dim_hint(at->b->dims, sym, v);
    *v = x->hint[at->capture];
    return true;
}

bool p2o_hint_at(Bindings *b, Dim d, int capture, int64_t *v)
{
    AtCapture at = { b, capture };
    return d && p2o_dim_eval(b->dims, d, hint_value, &at, v);
}

bool p2o_hint_in_all(Bindings *b, Dim d, int64_t *v)
{
    int64_t other;
    bool    known = p2o_hint_at(b, d, 0, v);
    for (int k = 1; k < b->ncapture && known; k++)
        known = p2o_hint_at(b, d, k, &other) && other == *v;
    return known;
}

Dim p2o_soft(Bindings *b, const int64_t *hints, const char *of, Loc loc)
{
    Dim sym = p2o_dim_fresh(b->dims, "size");
    p2o_set_role(b, sym, ROLE_SOFT);
    binding_of(b, sym)->of = of;
    binding_of(b, sym)->loc = loc;
    int below = 0;
    for (int k = 0; k < b->ncapture; k++)
        below += hints[k] < 0;
    if (below)                                  /* a place counted from the end, or a difference */
        p2o_dim_set_range(b->dims, sym, NO_LOWER, below == b->ncapture ? -1 : NO_UPPER);
    for (int k = 0; k < b->ncapture; k++)
        p2o_set_hint_at(b, sym, k, hints[k]);
    VEC_PUSH(p2o_dims_arena(b->dims), &b->soft, sym);
    return sym;
}

void p2o_set_hole(Bindings *b, Dim sym) { binding_of(b, sym)->hole = true; }

bool p2o_is_hole(const Bindings *b, Dim sym)
{
    const Binding *x = find_binding(b, sym);
    return x && x->hole;
}

void p2o_each_soft(Bindings *b, SoftFn *fn, void *user)
{
    for (size_t i = 0; i < b->soft.n; i++)
        if (!p2o_is_bound(b, b->soft.at[i]))
            fn(user, b->soft.at[i]);
}

void p2o_bind_log(Bindings *b, BindWhy why, Dim sym, Dim to, const char *by, Loc loc)
{
    binding_of(b, sym)->why = why;
    VEC_PUSH(p2o_dims_arena(b->dims), &b->events,
             (BindEvent){ .why = why, .sym = sym, .to = to, .by = by, .loc = loc });
}

BindWhy p2o_bind_why(const Bindings *b, Dim sym)
{
    const Binding *x = find_binding(b, sym);
    return x ? x->why : BIND_RULE;
}

size_t           p2o_bind_nevent(const Bindings *b) { return b->events.n; }
const BindEvent *p2o_bind_event(const Bindings *b, size_t i) { return &b->events.at[i]; }

void p2o_note_unsettled(Bindings *b, Dim what, const char *target, Loc loc)
{
    VEC_PUSH(p2o_dims_arena(b->dims), &b->unsettled, (Unsettled){ what, target, loc });
}

void             p2o_forget_unsettled(Bindings *b) { b->unsettled.n = 0; }
size_t           p2o_nunsettled(const Bindings *b) { return b->unsettled.n; }
const Unsettled *p2o_unsettled_at(const Bindings *b, size_t i) { return &b->unsettled.at[i]; }

void p2o_demand(Bindings *b, Demand d)
{
    Arena     *a = p2o_dims_arena(b->dims);
    uintptr_t *key = NEW_N(a, uintptr_t, 3);
    key[0] = (uintptr_t)d.a;
    key[1] = (uintptr_t)d.b;
    key[2] = d.loc;
    void **slot = p2o_map_slot(&b->demand_keys, (Str){ (const char *)key, 3 * sizeof *key });
    if (*slot)
        return;
    *slot = b;
    VEC_PUSH(a, &b->demands, d);
}

size_t        p2o_ndemand(const Bindings *b) { return b->demands.n; }
const Demand *p2o_demand_at(const Bindings *b, size_t i) { return &b->demands.at[i]; }

void p2o_need(Bindings *b, Need n)
{
    Arena     *a = p2o_dims_arena(b->dims);
    uintptr_t *key = NEW_N(a, uintptr_t, 6);
    key[0] = (uintptr_t)n.a;
    key[1] = (uintptr_t)n.b;
    key[2] = (uintptr_t)n.kind;
    key[3] = n.loc;
    key[4] = (uintptr_t)n.origin;
    key[5] = (uintptr_t)n.guard;
    void **slot = p2o_map_slot(&b->need_keys, (Str){ (const char *)key, 6 * sizeof *key });
    if (*slot)
        return;
    *slot = b;
    VEC_PUSH(a, &b->needs, n);
}

size_t      p2o_nneed(const Bindings *b) { return b->needs.n; }
const Need *p2o_need_at(const Bindings *b, size_t i) { return &b->needs.at[i]; }

const char *p2o_soft_of(const Bindings *b, Dim sym, Loc *loc)
{
    const Binding *x = find_binding(b, sym);
    if (!x || !x->of)
        return NULL;
    *loc = x->loc;
    return x->of;
}

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

void p2o_bind(Bindings *b, Dim sym, Dim to)
{
    to = p2o_resolve(b, to);
    if (to == sym)
        return;
    assert(!occurs_in(sym, to));
    binding_of(b, sym)->to = to;
    b->count++;
}

/* x - y = 0 read as sym = to, for a symbol that stands alone in one term with coefficient 1 or
 * -1. */
static bool solve_for(Bindings *b, Dim diff, const DimTerm *term, Dim *sym, Dim *to)
{
    if (term->natom != 1 || term->power[0] != 1 || !p2o_dim_is_sym(term->atom[0]))
        return false;
    if (term->coef != 1 && term->coef != -1)
        return false;
    *sym = term->atom[0];
    Dim rest =
        p2o_dim_sub(b->dims, diff, p2o_dim_mul(b->dims, p2o_dim_int(b->dims, term->coef), *sym));
    *to = term->coef == 1 ? p2o_dim_neg(b->dims, rest) : rest;
    return *to && !occurs_in(*sym, *to);
}

static bool hints_differ(Bindings *b, Dim x, Dim y)
{
    int64_t hx, hy;
    for (int k = 0; k < b->ncapture; k++)
        if (p2o_hint_at(b, x, k, &hx) && p2o_hint_at(b, y, k, &hy) && hx != hy)
            return true;
    return false;
}

/* The number and the atoms that divide every term: 50*batch - 150 = 0 says the same as batch - 3 =
 * 0, and b*x - b*y = 0 is taken to say x = y. */
static Dim without_common_factor(Dims *t, Dim diff)
{
    int64_t g = 0;
    int     n = p2o_dim_nterm(diff);
    for (int i = 0; i < n; i++) {
        int64_t coef = p2o_dim_term(diff, i)->coef;
        g = coef == INT64_MIN ? 1 : p2o_gcd(g, coef);
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

typedef struct FirstFixed {
    const Bindings *b;
    Dim             sym;        /* the first that may not become a number; NULL: none */
} FirstFixed;

static void note_first(void *user, Dim sym)
{
    FirstFixed *f = user;
    if (!f->sym && p2o_role(f->b, sym) >= ROLE_FILE)
        f->sym = sym;
}

typedef struct SoftIn {
    const Bindings *b;
    bool            found;
} SoftIn;

static void note_soft_in(void *user, Dim sym)
{
    SoftIn *s = user;
    s->found |= p2o_role(s->b, sym) == ROLE_SOFT && !p2o_is_bound(s->b, sym);
}

bool p2o_has_soft(const Bindings *b, Dim d)
{
    SoftIn s = { .b = b };
    if (d)
        p2o_dim_symbols(d, note_soft_in, &s);
    return s.found;
}

/* total = past + seq is plainer than past = total - seq. */
static int plainness(Dim d)
{
    if (p2o_dim_is_int(d, NULL) || p2o_dim_is_sym(d))
        return 2;
    for (int i = 0; i < p2o_dim_nterm(d); i++)
        if (p2o_dim_term(d, i)->coef < 0)
            return 0;
    return 1;
}

static bool is_open_sym(const Bindings *b, Dim d)
{
    return p2o_dim_is_sym(d) && p2o_role(b, d) == ROLE_SOFT;
}

/* An open size that faces an expression follows it, rather than one of the open sizes in it. */
static bool choose_lone(const Bindings *b, Dim x, Dim y, Dim *sym, Dim *to)
{
    bool left = is_open_sym(b, x) && !p2o_dim_is_sym(y) && !occurs_in(x, y);
    bool right = is_open_sym(b, y) && !p2o_dim_is_sym(x) && !occurs_in(y, x);
    if (left == right)
        return false;
    *sym = left ? x : y;
    *to = left ? y : x;
    return true;
}

/* Of the symbols that can be solved for: the lowest role, and among equals the one bound to the
 * plainest value, and then the one that came last.  *forbidden: one would have to be a number. */
typedef struct Holes {
    const Bindings *b;
    bool            any;
} Holes;

static void see_hole(void *user, Dim sym)
{
    Holes *h = user;
    h->any |= p2o_is_hole(h->b, sym) && !p2o_is_bound(h->b, sym);
}

static bool has_hole(const Bindings *b, Dim d)
{
    Holes h = { .b = b };
    p2o_dim_symbols(d, see_hole, &h);
    return h.any;
}

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
        if ((role >= ROLE_FILE && p2o_has_soft(b, value)) || has_hole(b, value))
            continue;       /* what is known follows neither what is open nor a -1 */
        if (found && (role > p2o_role(b, *sym) ||
                      (role == p2o_role(b, *sym) && plainness(*to) > plainness(value))))
            continue;
        *sym = s;
        *to = value;
        found = true;
    }
    return found;
}

/* Of sizes alone: not 0 at all of them, whatever the captures say.  (Quotients are: they ask for
 * divisibility.) */
static bool is_polynomial(const Bindings *b, Dim d)
{
    for (int i = 0; i < p2o_dim_nterm(d); i++) {
        const DimTerm *t = p2o_dim_term(d, i);
        for (int k = 0; k < t->natom; k++)
            if (!p2o_dim_is_sym(t->atom[k]) || p2o_role(b, t->atom[k]) < ROLE_FILE)
                return false;
    }
    return true;
}

typedef struct Choosing {
    Bindings *b;
    Choices  *c;
    bool      failed;
    Dim       moved;            /* a symbol at another size than the capture's */
    int64_t   to;
} Choosing;

static bool is_least_in_all(Bindings *b, DimKind kind, Dim x, Dim y)
{
    int64_t v, w;
    for (int k = 0; k < b->ncapture; k++)
        if (!p2o_hint_at(b, x, k, &v) || !p2o_hint_at(b, y, k, &w) ||
            (kind == DIM_MIN ? v > w : v < w))
            return false;
    return true;
}

static int choose_as_captured(void *user, DimKind kind, int n, const Dim *list)
{
    Choosing *x = user;
    Choices  *c = x->c;
    for (int i = 0; i < n && !x->failed; i++) {
        int k = 0;
        while (k < n && (k == i || is_least_in_all(x->b, kind, list[i], list[k])))
            k++;
        if (k < n)
            continue;
        x->failed = c->n + n - 1 > MAX_CHOICES;
        for (k = 0; k < n && !x->failed; k++) {
            if (k == i)
                continue;
            c->a[c->n] = kind == DIM_MIN ? list[i] : list[k];
            c->b[c->n++] = kind == DIM_MIN ? list[k] : list[i];
        }
        return i;
    }
    x->failed = true;
    return -1;
}

static bool moved_value(void *user, Dim sym, int64_t *v)
{
    const Choosing *x = user;
    *v = x->to;
    return sym == x->moved || p2o_hint_at(x->b, sym, 0, v);
}

static bool choices_hold(const Choosing *x)
{
    int64_t v, w;
    for (int i = 0; i < x->c->n; i++)
        if (!p2o_dim_eval(x->b->dims, x->c->a[i], moved_value, (void *)(uintptr_t)x, &v) ||
            !p2o_dim_eval(x->b->dims, x->c->b[i], moved_value, (void *)(uintptr_t)x, &w) || v > w)
            return false;
    return true;
}

/* What holds from 12 to 13 only fixes the size. */
static void try_far(void *user, Dim sym)
{
    enum { LARGE = 1 << 20, SMALL = 1 };
    Choosing *x = user;
    bool      far = false;
    x->moved = sym;
    for (int i = 0; i < 2 && !far; i++) {
        x->to = i ? SMALL : LARGE;
        far = choices_hold(x);
    }
    x->failed |= !far;
}

bool p2o_same_by_choice(Bindings *b, Dim x, Dim y, Choices *c)
{
    Choosing now = { .b = b, .c = c };
    c->n = 0;
    if (!x || !y || p2o_has_soft(b, x) || p2o_has_soft(b, y))
        return false;
    Dim left = p2o_dim_choose(b->dims, x, choose_as_captured, &now);
    Dim right = p2o_dim_choose(b->dims, y, choose_as_captured, &now);
    if (now.failed || !c->n || p2o_dim_eq(b->dims, left, right) != YES)
        return false;
    p2o_dim_symbols(x, try_far, &now);
    p2o_dim_symbols(y, try_far, &now);
    return !now.failed;
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
    bool found = choose_lone(b, x, y, sym, to) ||
                 choose_binding(b, without_common_factor(b->dims, diff), sym, to, &forbidden);
    if (forbidden)
        return UNIFY_FIXED;
    if (equal == NO || hints_differ(b, x, y))
        return UNIFY_DIFFERENT;
    if (found) {
        p2o_bind(b, *sym, *to);
        return UNIFY_BOUND;
    }
    FirstFixed f = { .b = b };
    bool number = p2o_dim_is_int(x, NULL) || p2o_dim_is_int(y, NULL);
    if ((number || (b->soft.n && is_polynomial(b, diff))) && !p2o_has_soft(b, diff))
        p2o_dim_symbols(diff, note_first, &f);
    *sym = f.sym;
    return f.sym ? UNIFY_FIXED : UNIFY_ASSUMED;
}
