#include "dyn/reading.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "dyn/scale.h"

/* Floats are computed in another order than Python's. */
static const double least_slack = 1e-12;

static bool is_within(double x, double y, double slack)
{
    return x == y || fabs(x - y) <= fmax(slack, least_slack) * fabs(y);
}

static bool is_close(double x, double y) { return is_within(x, y, 0); }

static bool gives(const Bases *b, const Readings *r, const double *values)
{
    for (int k = 0; k < b->nfit; k++)
        if (r->whole ? values[k] != r->want[k] : !is_within(values[k], r->want[k], r->slack))
            return false;
    return true;
}

/* Numbers that were found from captures are a little off, and more so at other sizes. */
static bool agree_at_probes(const double *x, const double *y)
{
    const double found = 1e-9;
    for (int i = 0; i < NPROBE; i++)
        if (!is_within(x[i], y[i], found) && !(isnan(x[i]) && isnan(y[i])))
            return false;
    return true;
}

static bool is_checked(const Bases *b, const Readings *r, const Expr *e)
{
    double v;
    for (int k = b->nfit; k < b->ncapture; k++)
        if (!p2o_expr_eval(b, e, k, &v) || (r->whole ? v != r->want[k] : !is_close(v, r->want[k])))
            return false;
    return true;
}

static void remove_reading(Readings *r, int i)
{
    r->n--;
    memmove(&r->list[i], &r->list[i + 1], (size_t)(r->n - i) * sizeof *r->list);
}

/* Of two that say the same, what is cheaper to say, and what more counts for. */
static void add_reading(Arena *a, Readings *r, const Reading *x)
{
    int     at = r->n;
    Reading new = *x;
    for (int i = 0; i < r->n; i++) {
        const Reading *old = &r->list[i];
        if (!agree_at_probes(old->at, x->at))
            continue;
        if (old->bits <= x->bits && old->held >= x->held)
            return;
        new = old->bits <= x->bits ? *old : *x;
        new.held = fmax(old->held, x->held);
        remove_reading(r, i);
        break;
    }
    for (at = r->n; at > 0 && r->list[at - 1].bits > new.bits; at--)
        ;
    if (at == NREADING)
        return;
    r->n += r->n < NREADING;
    memmove(&r->list[at + 1], &r->list[at], (size_t)(r->n - 1 - at) * sizeof *r->list);
    r->list[at] = new;
    r->list[at].expr = p2o_expr_keep(a, new.expr);
}

static Reading reading_of(const Bases *b, const Expr *e, double bits)
{
    Reading x = { .expr = e, .of = b, .bits = bits, .held = INFINITY };
    for (int i = 0; i < NPROBE; i++)
        if (!p2o_expr_eval(b, e, b->ncapture + i, &x.at[i]))
            x.at[i] = NAN;
    return x;
}

/* n // 1024, where all sizes are less. */
static bool is_number_at_probes(const Bases *b, const Readings *r, const double *probes)
{
    for (int k = 1; k < b->ncapture; k++)
        if (r->want[k] != r->want[0])
            return false;
    for (int i = 0; i < NPROBE; i++)
        if (probes[i] != r->want[0] && !isnan(probes[i]))
            return false;
    return true;
}

enum { BITS_AS_FLOAT = 5 };             /* more, of a whole expression that Python has as a float */

typedef struct Looking {
    Arena        *arena;
    const Bases  *bases;
    Readings    **list;         /* by what they were in the first capture */
    size_t        n;
    double        slack;        /* the largest of theirs */
    double        more;         /* bits that every expression costs more */
} Looking;

static int by_first(const void *x, const void *y)
{
    const Readings *a = *(Readings *const *)x, *b = *(Readings *const *)y;
    return (a->want[0] > b->want[0]) - (a->want[0] < b->want[0]);
}

static void see_expr(void *user, const Expr *e, double bits, const double *values)
{
    const Looking *s = user;
    size_t         lo = 0, hi = s->n;
    bits += s->more;
    double         room = 2 * fmax(s->slack, least_slack) * fabs(values[0]);
    double         least = values[0] - room, most = values[0] + room;
    if (isnan(values[0]))
        return;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (s->list[mid]->want[0] < least)
            lo = mid + 1;
        else
            hi = mid;
    }
    for (; lo < s->n && s->list[lo]->want[0] <= most; lo++) {
        Readings *r = s->list[lo];
        if ((r->n == NREADING && r->list[NREADING - 1].bits <= bits) || !gives(s->bases, r, values))
            continue;
        if (!is_checked(s->bases, r, e)) {
            r->refuted = r->refuted ? fmin(r->refuted, bits) : bits;
            continue;
        }
        Reading x = reading_of(s->bases, e, bits);
        if (!is_number_at_probes(s->bases, r, x.at))
            add_reading(s->arena, r, &x);
    }
}

static bool is_whole(const Bases *b, const Readings *r)
{
    for (int k = 0; k < b->ncapture; k++)
        if (r->want[k] != floor(r->want[k]))
            return false;
    return true;
}

typedef struct Scaled {
    Looking  *search;
    Readings *of;
} Scaled;

static void see_scaled(void *user, const Expr *e, double bits, double held)
{
    const Scaled *s = user;
    Reading       x = reading_of(s->search->bases, e, bits);
    x.held = held;
    add_reading(s->search->arena, s->of, &x);
}

static bool differs(const Bases *b, const Readings *r)
{
    for (int k = 1; k < b->ncapture; k++)
        if (r->want[k] != r->want[0])
            return true;
    return false;
}

/* Floats that differ may have numbers of their own; those that were rounded do not tell them. */
static void read_scaled(Looking *s)
{
    Products *t = NULL;
    for (size_t i = 0; i < s->n; i++) {
        Scaled one = { s, s->list[i] };
        if (s->list[i]->slack > 0 || !differs(s->bases, s->list[i]))
            continue;
        if (!t && (t = p2o_products_new(s->arena, s->bases)) == NULL)
            return;
        p2o_scales(t, s->arena, s->bases, s->list[i]->want, see_scaled, &one);
    }
}

/* Whole numbers and floats have enumerations of their own; a float may be a whole number that was
 * divided exactly. */
static void read_kind(Arena *a, const Bases *b, Readings *const *list, size_t n, bool whole)
{
    Looking s = { .arena = a, .bases = b, .list = NEW_N(a, Readings *, n + 1) };
    for (size_t i = 0; i < n; i++) {
        if (list[i]->whole != whole)
            continue;
        s.list[s.n++] = list[i];
        s.slack = fmax(s.slack, list[i]->slack);
    }
    if (!s.n)
        return;
    qsort(s.list, s.n, sizeof *s.list, by_first);
    (whole ? p2o_enumerate_whole : p2o_enumerate_float)(b, see_expr, &s);
    if (whole)
        return;
    read_scaled(&s);
    size_t n_whole = 0;
    for (size_t i = 0; i < s.n; i++)
        if (is_whole(b, s.list[i]))
            s.list[n_whole++] = s.list[i];
    s.n = n_whole;
    s.more = BITS_AS_FLOAT;
    if (s.n)
        p2o_enumerate_whole(b, see_expr, &s);
}

void p2o_readings(Arena *a, const Bases *b, Readings *const *list, size_t n)
{
    read_kind(a, b, list, n, true);
    read_kind(a, b, list, n, false);
}

void p2o_readings_own(Arena *a, const Bases *b, int nown, Readings *r)
{
    Readings *one[] = { r };
    Looking   s = { .arena = a, .bases = b, .list = one, .n = 1 };
    p2o_enumerate_own(b, nown, see_expr, &s);
}

void p2o_readings_plain(Arena *a, const Bases *b, double bits, Readings *r)
{
    Readings *one[] = { r };
    Looking   s = { .arena = a, .bases = b, .list = one, .n = 1 };
    see_expr(&s, &(Expr){ .op = EXPR_SIZE }, bits, b->at[0]);
}

static const Bases *bases_at(Arena *a, const Readings *r, int i, const Readings *moved,
                             const Probes *p)
{
    for (int k = 0; k < i; k++)
        if (r->list[k].of == r->list[i].of)
            return moved->list[k].of;
    Bases *b = NEW(a, Bases);
    *b = *r->list[i].of;
    p2o_bases_move(b, p);
    return b;
}

Readings *p2o_readings_at(Arena *a, const Readings *r, const Probes *p)
{
    Readings *moved = NEW(a, Readings);
    *moved = *r;
    for (int i = 0; i < r->n; i++) {
        const Reading *x = &r->list[i];
        moved->list[i] = reading_of(bases_at(a, r, i, moved, p), x->expr, x->bits);
        moved->list[i].held = x->held;
    }
    return moved;
}
