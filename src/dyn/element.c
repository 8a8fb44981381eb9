#include "dyn/element.h"

#include <math.h>

#include "dyn/divide.h"
#include "dyn/enough.h"
#include "dyn/search.h"

bool p2o_expr_is_whole(const Expr *e)
{
    if (!e)
        return true;
    if ((e->op >= EXPR_QUOTIENT && e->op <= EXPR_ROUND && e->op != EXPR_ABS) ||
        e->op == EXPR_SCALED || e->op == EXPR_TO_THE ||
        (e->op == EXPR_NUMBER && e->number != floor(e->number)))
        return false;
    return p2o_expr_is_whole(e->a) && p2o_expr_is_whole(e->b) && p2o_expr_is_whole(e->c);
}

/* The cheapest candidate that gives all elements, and those that differ from it elsewhere. */
static bool same_value(double x, double y)
{
    return x == y || (isnan(x) && isnan(y)) ||          /* a value is not the same as none */
           (isfinite(x) && isfinite(y) && fabs(x - y) <= 1e-9 * (fabs(x) + fabs(y)));
}

static bool same_at_probes(const double *x, const double *y)
{
    for (int i = 0; i < NPOINT; i++)
        if (!same_value(x[i], y[i]))
            return false;
    return true;
}

static void keep_found(Search *s, Element e, const double *probes)
{
    int at;
    for (int i = 0; i < s->nfound; i++) {
        if (!same_at_probes(s->found[i].probes, probes))
            continue;
        if (s->found[i].element.bits <= e.bits)
            return;
        s->nfound--;
        memmove(&s->found[i], &s->found[i + 1], (size_t)(s->nfound - i) * sizeof *s->found);
        break;
    }
    for (at = s->nfound; at > 0 && s->found[at - 1].element.bits > e.bits; at--)
        ;
    if (at == MAX_FOUND)
        return;
    s->nfound += s->nfound < MAX_FOUND;
    memmove(&s->found[at + 1], &s->found[at], (size_t)(s->nfound - 1 - at) * sizeof *s->found);
    s->found[at].element = e;
    s->found[at].element.expr = p2o_expr_keep(s->arena, e.expr);
    memcpy(s->found[at].probes, probes, sizeof s->found[at].probes);
}

void p2o_search_see(Search *s, Term x, bool share)
{
    double values[NPOINT];
    if (!x.expr || x.bits >= search_dearest(s))
        return;
    p2o_expr_block(x.expr, s->points.bases, NPOINT, values);
    for (int i = 0; i < NPOINT && !share; i++)
        if (!p2o_tables_alike(s->t, values[i], s->points.want[i]))
            return;
    p2o_expr_block(x.expr, s->points.probes, NPOINT, values);
    for (int i = 0; i < NPOINT; i++)
        values[i] = isnan(s->points.probes[0][i]) ? NAN : values[i];
    for (int i = 0; i < s->nfound; i++)
        if (s->found[i].element.bits <= x.bits && s->found[i].element.share == share &&
            same_at_probes(s->found[i].probes, values))
            return;
    if (p2o_tables_given(s->t, x.expr, share))
        keep_found(s, (Element){ x.expr, x.bits, share }, values);
}

static void find_two_values(Search *s)
{
    const Tables *t = s->t;
    bool          second = false;
    s->two = true;
    s->yes = t->at[0].v[0];
    for (int k = 0; k < t->n && s->two; k++) {
        for (uint64_t i = 0; i < t->at[k].n && s->two; i++) {
            double v = t->at[k].v[i];
            if (v == s->yes || (second && v == s->no))
                continue;
            s->two = !second;
            s->no = second ? s->no : v;
            second = true;
        }
    }
    s->two &= second;
    for (int i = 0; i < NPOINT; i++)
        if (s->points.want[i] == s->yes)
            set_add(&s->is_yes, i);
}

/* The grammar of all numbers. */

/* Points that turn down almost all of it: a yes or no turns down half. */
static int grammar_points(const Search *s) { return s->two ? MAX_POINTS : 12; }

/* Bases from `first` on, less than `end`. */
static bool has_bases(const Expr *e, int first, int end)
{
    return e && ((e->op == EXPR_SIZE && e->base >= first && e->base < end) ||
                 has_bases(e->a, first, end) || has_bases(e->b, first, end));
}

/* A band has a number on either side; beside sizes, how far apart two indices are has its sign: of
 * few captures either may give all elements. */
static double bits_in_grammar(const Search *s, const Expr *e, double bits)
{
    enum { BITS_DISTANCE = BITS_STEP + 1 };
    int  first = tables_first_size(s->t);
    bool distance = s->t->nindex > 1 && has_bases(e, first - 1, first);
    return bits + (distance && has_bases(e, first, MAX_BASES) ? BITS_DISTANCE : 0);
}

static void see_grammar(void *user, const Expr *e, double bits, const double *values)
{
    Search *s = user;
    int     n = grammar_points(s);
    if (bits >= search_dearest(s))
        return;
    if (!s->two) {
        for (int i = 0; i < n; i++)
            if (!p2o_tables_alike(s->t, values[i], s->points.want[i * NPOINT / n]))
                return;
        p2o_search_see(s, (Term){ e, bits_in_grammar(s, e, bits) }, false);
        return;
    }
    for (int how = 0; how < 2; how++) {
        int yes = 0;
        for (int i = 0; i < n; i++)
            yes += (how ? values[i] == 0 : values[i] >= 0) ==
                   set_has(&s->is_yes, i * NPOINT / n);
        if (yes && yes < n)
            continue;
        Expr condition = { .op = how ? EXPR_IS_0 : EXPR_AT_LEAST_0, .a = e };
        Expr choice = { .op = EXPR_CHOICE, .a = p2o_expr_number(s->arena, yes ? s->yes : s->no),
                        .b = p2o_expr_number(s->arena, yes ? s->no : s->yes), .c = &condition };
        p2o_search_see(s, (Term){ &choice, bits_in_grammar(s, e, bits) + how }, false);
    }
}

static void offer_grammar(Search *s)
{
    int   n = grammar_points(s);
    Bases b = { .n = tables_nbase(s->t) - s->t->nsymbol, .nfit = n, .npoint = n };
    for (int i = 0; i < n; i++)
        for (int j = 0; j < b.n; j++)
            b.at[j][i] = s->points.bases[j][i * NPOINT / n];
    p2o_enumerate_whole(&b, see_grammar, s);
    if (!s->t->whole && !s->nfound)
        p2o_enumerate_float(&b, see_grammar, s);
}

/* Eight points of each of three captures. */
static void choose_quick(Search *s)
{
    int n = s->t->n, captures[] = { 0, n / 2, n - 1 };
    for (int i = 0; i < NQUICK; i++) {
        int first = (captures[i / 8] * NPOINT + n - 1) / n;
        s->quick[i] = (first + i % 8 * (n > 8 ? 1 : 2) + (n < 3 && i >= 16)) % NPOINT;
    }
}

/* Before the longer search, which a table of many indices would take longest.  What costs nothing
 * to turn down comes first. */
static void divide(Search *s)
{
    enum { MOST_AXES = 29 };            /* sets of axes are bits, and two more may be split off */
    if (s->t->rank > MOST_AXES)
        return;
    s->limit = 2 * DEAREST_ELEMENT;     /* each part was held to it */
    if (!p2o_divide_idle(s)) {
        p2o_divide_split(s);
        if (!s->nfound)
            p2o_divide_separate(s);
    }
    s->limit = DEAREST_ELEMENT;
}

static void search(Search *s)
{
    static const ExprOp inverses[] = { EXPR_SIZE, EXPR_EXP, EXPR_SQRT, EXPR_QUOTIENT };
    bool many = s->t->part && s->t->nindex > 2;         /* it has to be divided further */
    if (!many)
        offer_grammar(s);
    if (s->nfound || p2o_tables_different(s->t) < FEWEST_CAPTURES)
        return;
    s->longer = true;
    divide(s);
    if (s->nfound || many)
        return;
    for (int i = 0; i < (s->t->whole ? 1 : 4); i++)
        s->ntarget += p2o_target_make(&s->points, inverses[i], &s->target[s->ntarget]);
    for (int i = 0; i < s->t->nindex && s->t->whole; i++) {
        Expr *x = NEW(s->arena, Expr);
        *x = (Expr){ .op = EXPR_SIZE, .base = i };
        p2o_target_less(&s->points, x, 2 + log2(tables_nbase(s->t)), &s->target[s->ntarget++]);
    }
    if (!s->ntarget && !s->two)
        return;
    choose_quick(s);
    p2o_forms_make(s);
    if (!s->two)
        p2o_parts_find(s);
    for (size_t i = 0; i < s->forms.n; i++)
        p2o_offer(s, s->forms.at[i], true);
    p2o_parts_join(s);
    if (s->nfound)
        return;
    p2o_offer_second(s);
    p2o_offer_sums(s);
    p2o_parts_join(s);
    if (s->nfound || s->two)
        return;
    if (s->t->whole)
        p2o_offer_spread(s);
    else
        p2o_offer_functions(s);
    p2o_offer_resampled(s);
    p2o_parts_join(s);
}

static bool find_one_value(Arena *a, const Tables *t, Element *out)
{
    for (int k = 0; k < t->n; k++)
        for (uint64_t i = 0; i < t->at[k].n; i++)
            if (!p2o_tables_alike(t, t->at[k].v[i], t->at[0].v[0]))
                return false;
    *out = (Element){ .expr = p2o_expr_number(a, t->at[0].v[0]) };
    return true;
}

/* What the search needs is given back; the expression outlives it. */
static bool keep_best(Arena *a, const Search *s, ArenaMark mark, Element *out)
{
    enum { MAX_NODES = 512 };
    Expr nodes[MAX_NODES];
    int  n = 1;
    *out = s->found[0].element;
    nodes[0] = *out->expr;
    for (int i = 0; i < n; i++) {
        const Expr **child[] = { &nodes[i].a, &nodes[i].b, &nodes[i].c };
        for (int j = 0; j < 3; j++) {
            if (!*child[j])
                continue;
            if (n == MAX_NODES)
                return false;
            nodes[n] = **child[j];
            *child[j] = &nodes[n++];
        }
    }
    p2o_arena_rewind(a, mark);
    out->expr = p2o_expr_keep(a, &nodes[0]);
    return true;
}

bool p2o_element_find(Arena *a, const Tables *t, const Dim *symbols, size_t nsymbol, Element *out)
{
    if (find_one_value(a, t, out))
        return p2o_tables_numbers_are_told(t, out->expr);
    if (*t->left <= 0)
        return false;
    --*t->left;
    ArenaMark mark = p2o_arena_mark(a);
    Search   *s = NEW(a, Search);
    s->arena = a;
    s->t = t;
    s->limit = DEAREST_ELEMENT;
    s->symbols = symbols;
    s->nsymbol = nsymbol;
    s->known.arena = s->mask_known.arena = a;
    p2o_points_choose(&s->points, a, t, symbols, nsymbol);
    find_two_values(s);
    search(s);
    bool clear = s->nfound && (s->nfound == 1 || s->found[1].element.bits >=
                                                     s->found[0].element.bits + MARGIN_BITS);
    if (clear && !p2o_tables_is_unclear(t, s->found[0].element.expr) &&
        p2o_tables_are_enough(t, s->found[0].element.expr, s->longer) &&
        p2o_tables_numbers_are_told(t, s->found[0].element.expr) &&
        s->found[0].element.bits <= p2o_tables_bits(t, s->two) &&
        keep_best(a, s, mark, out))
        return true;
    p2o_arena_rewind(a, mark);
    return false;
}
