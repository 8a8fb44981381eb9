#include "dyn/divide.h"

#include <math.h>

const Expr *p2o_base(Arena *a, int base)
{
    Expr *e = NEW(a, Expr);
    *e = (Expr){ .op = EXPR_SIZE, .base = base };
    return e;
}

const Expr *p2o_expr_over(Arena *a, const Expr *e, const Expr *const *by)
{
    if (e->op == EXPR_SIZE)
        return by[e->base];
    Expr *x = NEW(a, Expr);
    *x = *e;
    x->a = e->a ? p2o_expr_over(a, e->a, by) : NULL;
    x->b = e->b ? p2o_expr_over(a, e->b, by) : NULL;
    x->c = e->c ? p2o_expr_over(a, e->c, by) : NULL;
    return !x->a == !e->a && !x->b == !e->b && !x->c == !e->c ? x : NULL;
}

static int index_of_axis(const Tables *t, int axis)
{
    for (int i = 0; i < t->nindex; i++)
        if (t->index[i] == axis)
            return i;
    return -1;
}

/* The size among the bases of the whole that size i of the part was the same as everywhere; -1:
 * none. */
static int size_like(const Tables *whole, const Tables *part, int i)
{
    for (int j = 0; j < whole->nindex + whole->nsymbol; j++) {
        bool same = true;
        for (int k = 0; k < whole->n && same; k++)
            same = p2o_tables_size(whole, j, k) == p2o_tables_size(part, i, k);
        if (same)
            return j;
    }
    return -1;
}

static void distance_bases(Arena *a, const Tables *t, const Expr **by)
{
    if (t->nindex < 2)
        return;
    by[t->nindex] = p2o_expr_of(a, EXPR_SUB, by[0], by[1]);
    by[t->nindex + 1] = p2o_expr_of(a, EXPR_ABS, by[t->nindex], NULL);
}

void p2o_part_bases(Arena *a, const Tables *whole, const Tables *part, const Expr **by)
{
    int first = tables_first_size(part);
    for (int i = 0; i < part->nindex; i++) {
        int j = index_of_axis(whole, part->index[i]);
        by[i] = p2o_base(a, j);
        by[first + i] = p2o_base(a, tables_first_size(whole) + j);
    }
    distance_bases(a, part, by);
    for (int i = part->nindex; i < part->nindex + part->nsymbol; i++) {
        int j = size_like(whole, part, i);
        by[first + i] = j < 0 ? NULL : p2o_base(a, tables_first_size(whole) + j);
    }
}

uint64_t p2o_part_element(const Table *whole, int rank, unsigned axes, uint64_t at, uint64_t ref)
{
    uint64_t flat = 0, stride = 1;
    for (int i = rank - 1; i >= 0; i--) {
        uint64_t size = (uint64_t)whole->sizes[i], place = ref % size;
        if (axes >> i & 1) {
            place = at % size;
            at /= size;
        }
        ref /= size;
        flat += place * stride;
        stride *= size;
    }
    return flat;
}

bool p2o_part_cut(Search *s, unsigned axes, const uint64_t *ref, Tables *out)
{
    const Tables *t = s->t;
    *out = *t;
    out->part = true;
    for (int k = 0; k < t->n; k++) {
        int64_t *sizes = NEW_N(s->arena, int64_t, (size_t)t->rank);
        uint64_t n = 1;
        for (int i = 0; i < t->rank; i++) {
            sizes[i] = axes >> i & 1 ? t->at[k].sizes[i] : 1;
            n *= (uint64_t)sizes[i];
        }
        out->at[k] = (Table){ .sizes = sizes, .n = n, .v = NEW_N(s->arena, double, (size_t)n) };
        for (uint64_t i = 0; i < n; i++)
            out->at[k].v[i] =
                t->at[k].v[p2o_part_element(&t->at[k], t->rank, axes, i, ref[k])];
    }
    if (!p2o_tables_index(out))
        return false;
    out->scale = fmax(out->scale, t->scale);            /* which they were rounded at */
    p2o_tables_symbols(out, s->symbols, s->nsymbol);
    return true;
}

/* Elements of capture k stay the same along the axis. */
static bool is_idle(const Tables *t, int axis, int k)
{
    const Table *x = &t->at[k];
    uint64_t     inner = 1, count = (uint64_t)x->sizes[axis];
    for (int i = axis + 1; i < t->rank; i++)
        inner *= (uint64_t)x->sizes[i];
    for (uint64_t i = 0; i < x->n; i++)
        if (i / inner % count && !p2o_tables_alike(t, x->v[i], x->v[i - inner]))
            return false;
    return true;
}

/* `axes`: the others; may be NULL. */
static int count_idle(const Tables *t, unsigned *axes)
{
    int      n = 0;
    unsigned others = 0;
    for (int i = 0; i < t->nindex; i++) {
        bool idle = true;
        for (int k = 0; k < t->n && idle; k++)
            idle = is_idle(t, t->index[i], k);
        others |= idle ? 0 : 1u << t->index[i];
        n += idle;
    }
    if (axes)
        *axes = others;
    return n;
}

bool p2o_divide_idle(Search *s)
{
    const Tables *t = s->t;
    unsigned      axes;
    uint64_t      ref[MAX_CAPTURES] = { 0 };
    int           n = count_idle(t, &axes);
    Tables        part;
    Element       e;
    if (!n || n == t->nindex)
        return false;
    if (!p2o_part_cut(s, axes, ref, &part) ||
        !p2o_element_find(s->arena, &part, s->symbols, s->nsymbol, &e) || e.share)
        return true;
    const Expr *by[MAX_BASES];
    p2o_part_bases(s->arena, t, &part, by);
    p2o_search_see(s, (Term){ p2o_expr_over(s->arena, e.expr, by), e.bits }, false);
    return true;
}

/* The axis as rows of w each. */
static bool split_axis(Search *s, const Tables *t, int axis, const double *w, Tables *out)
{
    *out = *t;
    out->part = true;
    out->rank = t->rank + 1;
    for (int k = 0; k < t->n; k++) {
        int64_t *sizes = NEW_N(s->arena, int64_t, (size_t)out->rank);
        for (int i = 0; i < out->rank; i++)
            sizes[i] = t->at[k].sizes[i > axis ? i - 1 : i];
        sizes[axis + 1] = (int64_t)w[k];
        sizes[axis] /= sizes[axis + 1];
        out->at[k].sizes = sizes;
    }
    if (!p2o_tables_index(out))
        return false;
    p2o_tables_symbols(out, s->symbols, s->nsymbol);
    return true;
}

static void split_bases(Arena *a, const Tables *t, int axis, const Expr *w, const Tables *u,
                        const Expr **by)
{
    int         first = tables_first_size(t), own = tables_first_size(u);
    int         at = index_of_axis(t, axis);
    const Expr *p = p2o_base(a, at), *size = p2o_base(a, first + at);
    for (int i = 0; i < u->nindex; i++) {
        int  x = u->index[i];
        bool row = x == axis, place = x == axis + 1;
        int  j = row || place ? -1 : index_of_axis(t, x > axis ? x - 1 : x);
        by[i] = row     ? p2o_expr_of(a, EXPR_FLOOR, p, w)
                : place ? p2o_expr_of(a, EXPR_MOD, p, w)
                        : p2o_base(a, j);
        by[own + i] = row     ? p2o_expr_of(a, EXPR_FLOOR, size, w)
                      : place ? w
                              : p2o_base(a, first + j);
    }
    distance_bases(a, u, by);
    for (int i = u->nindex; i < u->nindex + u->nsymbol; i++) {
        int j = size_like(t, u, i);
        by[own + i] = j < 0 ? NULL : p2o_base(a, first + j);
    }
}

/* A list of rows of w each?  Then it is whole rows, and more than one, in some capture. */
static bool is_row_length(const Tables *t, int axis, const double *w)
{
    bool rows = false, places = false;
    for (int k = 0; k < t->n; k++) {
        double n = (double)t->at[k].sizes[axis];
        if (!(w[k] >= 1) || fmod(n, w[k]) != 0)
            return false;
        rows |= n > w[k];
        places |= w[k] > 1;
    }
    return rows && places;
}

static void in_captures(const Search *s, const Form *w, double *at)
{
    for (int i = 0; i < NPOINT; i++)
        at[s->points.of[i]] = w->at[i];
}

/* An axis as rows, and an expression of the elements by row and place. */
typedef struct Split {
    double  at[MAX_CAPTURES];           /* places in a row */
    Tables  of;
    Element made;
    bool    found;
} Split;

static bool find_split(Search *s, int axis, bool plain, Split *x)
{
    return split_axis(s, s->t, axis, x->at, &x->of) &&
           (plain || count_idle(&x->of, NULL) > 0 || p2o_looks_separate(&x->of)) &&
           p2o_element_find(s->arena, &x->of, s->symbols, s->nsymbol, &x->made) && !x->made.share;
}

static void see_split(Search *s, int axis, const Form *w, const Split *x)
{
    const Expr *by[MAX_BASES];
    split_bases(s->arena, s->t, axis, &w->expr, &x->of, by);
    p2o_search_see(s, (Term){ p2o_expr_over(s->arena, x->made.expr, by),
                              x->made.bits + w->bits + 2 * BITS_STEP }, false);
}

static bool try_split(Search *s, int axis, const Form *w, bool plain)
{
    Split *x = NEW(s->arena, Split);
    in_captures(s, w, x->at);
    if (is_row_length(s->t, axis, x->at) && find_split(s, axis, plain, x))
        see_split(s, axis, w, x);
    return s->nfound > 0;
}

/* Of a grid's places each beside each: both axes at once, as neither alone makes it simpler. */
static bool try_both(Search *s, const Form *w)
{
    const Tables *t = s->t;
    Tables        half, u;
    Element       e;
    double        at[MAX_CAPTURES];
    const Expr   *by[2][MAX_BASES];
    int           last = t->index[0], first = t->index[1];
    in_captures(s, w, at);
    if (!is_row_length(t, last, at) || !split_axis(s, t, last, at, &half) ||
        !split_axis(s, &half, first, at, &u) || u.nindex < MAX_INDICES || !p2o_looks_separate(&u) ||
        !p2o_element_find(s->arena, &u, s->symbols, s->nsymbol, &e) || e.share)
        return false;
    int place = tables_first_size(&half) + index_of_axis(&half, last + 1);
    split_bases(s->arena, &half, first, p2o_base(s->arena, place), &u, by[1]);
    split_bases(s->arena, t, last, &w->expr, &half, by[0]);
    const Expr *x = p2o_expr_over(s->arena, e.expr, by[1]);
    x = x ? p2o_expr_over(s->arena, x, by[0]) : NULL;
    p2o_search_see(s, (Term){ x, e.bits + w->bits + 4 * BITS_STEP }, false);
    return s->nfound > 0;
}

static bool are_equal_axes(const Tables *t)
{
    for (int k = 0; k < t->n && t->nindex == 2; k++)
        if (t->at[k].sizes[t->index[0]] != t->at[k].sizes[t->index[1]])
            return false;
    return t->nindex == 2;
}

/* The number of places that all lists are whole rows of. */
static double common_row(const Tables *t, int axis)
{
    int64_t common = 0;
    for (int k = 0; k < t->n; k++) {
        int64_t n = t->at[k].sizes[axis];
        while (n) {
            int64_t rest = common % n;
            common = n;
            n = rest;
        }
    }
    return (double)common;
}

static bool is_input_size(const Search *s, int axis)
{
    return s->t->nlike[index_of_axis(s->t, axis)] > 0;
}

static bool is_dynamic(const Tables *t, int axis)
{
    for (int k = 1; k < t->n; k++)
        if (t->at[k].sizes[axis] != t->at[0].sizes[axis])
            return true;
    return false;
}

typedef VEC(Split *) Splits;

/* That into rows of this many places: looked at once, whatever says how many they are. */
static const Split *split_into(Search *s, int axis, const double *at, bool plain, Splits *known)
{
    for (size_t i = 0; i < known->n; i++)
        if (!memcmp(known->at[i]->at, at, (size_t)s->t->n * sizeof *at))
            return known->at[i];
    Split *x = NEW(s->arena, Split);
    memcpy(x->at, at, (size_t)s->t->n * sizeof *at);
    x->found = find_split(s, axis, plain, x);
    VEC_PUSH(s->arena, known, x);
    return x;
}

/* Patches that fill every capture's size; the others. */
static bool is_filled(const Search *s, int size, int patch)
{
    for (int k = 0; k < s->t->n; k++)
        if (fmod(p2o_tables_size(s->t, size, k), patch) != 0)
            return false;
    return true;
}

static const Form *patches_of(Search *s, int size, int patch, bool filled)
{
    enum { BITS_UNFILLED = 4 };         /* of sizes that 16 divides each time, it is 16 before 15 */
    Form *x = NEW(s->arena, Form), *w = NEW(s->arena, Form);
    *x = p2o_form_base(s, tables_first_size(s->t) + size);
    *w = p2o_form_of(EXPR_FLOOR, x, p2o_form_number(s, patch), filled ? 0 : BITS_UNFILLED);
    return patch > 1 ? w : x;
}

/* Rows as long as a size, or as what patches and strides leave of it: each that gives the elements,
 * as W//14 and W//16 are the same where W is small.  `plain`: although rows and places look neither
 * idle nor separate; the longer search, and it ends where the first of them gives nothing. */
static bool split_by_sizes(Search *s, int axis, bool plain)
{
    enum { MOST_PATCH = 64 };
    int    nsize = s->t->nindex + s->t->nsymbol;
    Splits known = { 0 };
    for (int i = 0; i < 2 * MOST_PATCH * nsize; i++) {
        bool filled = i < MOST_PATCH * nsize;
        int  patch = 1 + i / nsize % MOST_PATCH, size = nsize - 1 - i % nsize;
        if (size == index_of_axis(s->t, axis) || is_filled(s, size, patch) != filled)
            continue;
        double at[MAX_CAPTURES];
        for (int k = 0; k < s->t->n; k++)
            at[k] = floor(p2o_tables_size(s->t, size, k) / patch);
        if (!is_row_length(s->t, axis, at))
            continue;
        const Split *x = split_into(s, axis, at, plain, &known);
        if (!x->found && plain && !s->nfound)
            return false;
        if (x->found)
            see_split(s, axis, patches_of(s, size, patch, filled), x);
    }
    return s->nfound > 0;
}

static bool split_both(Search *s)
{
    const Tables *t = s->t;
    if (!are_equal_axes(t) || is_input_size(s, t->index[0]) || !is_dynamic(t, t->index[0]))
        return false;
    for (int b = tables_nbase(t) - 1; b >= tables_first_size(t) + t->nindex; b--) {
        Form *w = NEW(s->arena, Form);
        *w = p2o_form_base(s, b);
        try_both(s, w);
    }
    return s->nfound > 0;
}

/* A list of a grid's places each beside each: as many rows as places. */
static bool split_square(Search *s)
{
    const Tables *t = s->t;
    int           first = tables_first_size(t), n = tables_nbase(t);
    for (int i = first + 1; i < n && t->nindex == 1 && !t->part; i++) {
        for (int j = first + 1; j < i; j++) {
            double at[MAX_CAPTURES];
            bool   square = true;
            Form  *x = NEW(s->arena, Form), *y = NEW(s->arena, Form), *w = NEW(s->arena, Form);
            *x = p2o_form_base(s, i);
            *y = p2o_form_base(s, j);
            *w = p2o_form_of(EXPR_MUL, x, y, 0);
            in_captures(s, w, at);
            for (int k = 0; k < t->n; k++)
                square &= at[k] * at[k] == (double)t->at[k].n;
            if (square)
                try_split(s, t->index[0], w, true);
        }
    }
    return s->nfound > 0;
}

void p2o_divide_split(Search *s)
{
    if (split_both(s) || split_square(s))
        return;
    for (int i = 0; i < s->t->nindex; i++) {
        int    axis = s->t->index[i];
        double common = common_row(s->t, axis);
        if (is_input_size(s, axis) || !is_dynamic(s->t, axis))
            continue;
        if (split_by_sizes(s, axis, false))
            return;
        for (double w = 2; w <= common && w <= 4; w++)
            if (fmod(common, w) == 0 && try_split(s, axis, p2o_form_number(s, w), false))
                return;
        if (!s->t->part && s->t->nindex == 1 && split_by_sizes(s, axis, true))
            return;
    }
}
