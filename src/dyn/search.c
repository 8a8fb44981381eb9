#include "dyn/search.h"

#include "base/vec.h"
#include "dyn/source.h"

typedef struct Values {
    int64_t at[MAX_CAPTURES];
} Values;

typedef enum Class { PLAIN, SHOWN, OTHER, NCLASS } Class;        /* sizes only; numbers in the line; other numbers */

typedef struct Work {
    const Search *s;
    Values        want;
    VEC(Values)   have;         /* of s->sizes */
    Found         found[NCLASS];
    bool          known;        /* the source line, */
    unsigned      uses;         /* and what it computes with */
} Work;

static bool values_of(const Search *s, Dim d, Values *v)
{
    bool known = d != NULL;
    for (int k = 0; k < p2o_ncapture(s->bind) && known; k++)
        known = p2o_hint_at(s->bind, d, k, &v->at[k]);
    return known;
}

static bool gives(const Work *w, Dim expr)
{
    Values v;
    if (!values_of(w->s, expr, &v))
        return false;
    for (int k = 0; k < p2o_ncapture(w->s->bind); k++)
        if (v.at[k] != w->want.at[k])
            return false;
    return true;
}

static void count(const Work *w, Found *f, Dim expr)
{
    if ((f->first && p2o_dim_eq(w->s->dims, expr, f->first) == YES) ||
        (f->second && p2o_dim_eq(w->s->dims, expr, f->second) == YES))
        return;
    if (!f->first)
        f->first = expr;
    else if (!f->second)
        f->second = expr;
    f->n += f->n < 2;
}

typedef enum Uses { SUM = 1, PRODUCT = 2, QUOTIENT = 4, REMAINDER = 8, CEILING = 16 } Uses;

/* What the line computes with. */
static unsigned uses_of(const char *text)
{
    unsigned uses = strchr(text, '+') || strchr(text, '-') ? SUM | CEILING : 0;         /* (x + 1)//2, -(-x//2) */
    uses |= strstr(text, "ceil") ? CEILING : 0;
    uses |= strchr(text, '*') || strstr(text, "<<") ? PRODUCT : 0;
    uses |= strchr(text, '/') || strstr(text, ">>") || strstr(text, "ceil") || strstr(text, "div") ? QUOTIENT : 0;
    return uses | (strchr(text, '%') || strstr(text, "mod") ? REMAINDER : 0);
}

static bool is_shown(const Work *w, int64_t one, int64_t other, unsigned uses)
{
    return w->known && (uses & w->uses) == uses && (!one || p2o_source_computes(w->s->at, (double)one)) &&
           (!other || p2o_source_computes(w->s->at, (double)other));
}

/* With the numbers that were used to make it (0: none), and how.  What is `far` counts only where the line shows it. */
static void consider(Work *w, Dim expr, int64_t one, int64_t other, unsigned uses, bool far)
{
    bool shown = (one || other) && is_shown(w, one, other, uses);
    if (!expr || p2o_dim_is_int(expr, NULL) || (far && !shown) || !gives(w, expr))
        return;
    count(w, &w->found[!one && !other ? PLAIN : shown ? SHOWN : OTHER], expr);
}

static void try_sizes(Work *w)
{
    for (size_t i = 0; i < w->s->n; i++)
        consider(w, w->s->sizes[i], 0, 0, 0, false);
}

static void try_pairs(Work *w)
{
    const Dim *at = w->s->sizes;
    Dims      *t = w->s->dims;
    for (size_t i = 0; i < w->s->n; i++) {
        for (size_t k = 0; k < w->s->n; k++) {
            if (k < i) {
                consider(w, p2o_dim_add(t, at[i], at[k]), 0, 0, 0, false);
                consider(w, p2o_dim_min(t, at[i], at[k]), 0, 0, 0, false);
                consider(w, p2o_dim_max(t, at[i], at[k]), 0, 0, 0, false);
            }
            if (k <= i)
                consider(w, p2o_dim_mul(t, at[i], at[k]), 0, 0, 0, false);
            if (k != i) {
                consider(w, p2o_dim_sub(t, at[i], at[k]), 0, 0, 0, false);
                consider(w, p2o_dim_floordiv(t, at[i], at[k]), 0, 0, 0, false);
            }
        }
    }
}

/* The elements of a tensor: products of three or four sizes at hand. */
static void try_products(Work *w)
{
    const Dim *at = w->s->sizes;
    Dims      *t = w->s->dims;
    for (size_t i = 0; i < w->s->nlocal; i++)
        for (size_t k = i + 1; k < w->s->nlocal; k++)
            for (size_t l = k + 1; l < w->s->nlocal; l++) {
                Dim xyz = p2o_dim_mul(t, p2o_dim_mul(t, at[i], at[k]), at[l]);
                consider(w, xyz, 0, 0, 0, false);
                for (size_t m = l + 1; m < w->s->nlocal; m++)
                    consider(w, p2o_dim_mul(t, xyz, at[m]), 0, 0, 0, false);
            }
}

static int64_t floor_of(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }
static int64_t magnitude(int64_t v) { return v >= 0 ? v : v == INT64_MIN ? INT64_MAX : -v; }

/* The values of (a*x + d)//c against what is wanted, before a Dim is made of it. */
static bool fits(const Work *w, size_t i, int64_t a, int64_t d, int64_t c)
{
    for (int k = 0; k < p2o_ncapture(w->s->bind); k++) {
        int64_t ax;
        if (__builtin_mul_overflow(a, w->have.at[i].at[k], &ax) || __builtin_add_overflow(ax, d, &ax) ||
            floor_of(ax, c) != w->want.at[k])
            return false;
    }
    return true;
}

/* a*x + d; -x and c - x among them. */
static void try_line(Work *w, size_t i)
{
    enum { LARGEST_FACTOR = 16, LARGEST_OFFSET = 8 };
    Dims *t = w->s->dims;
    Dim   x = w->s->sizes[i];
    for (int64_t a = -1; a <= LARGEST_FACTOR; a++) {
        int64_t d;
        if (a == 0 || __builtin_mul_overflow(a, w->have.at[i].at[0], &d) || __builtin_sub_overflow(w->want.at[0], d, &d) ||
            !fits(w, i, a, d, 1))
            continue;
        bool near = magnitude(d) <= (a == 1 ? LARGEST_OFFSET : a > 1 ? 1 : 0) || (a > 1 && magnitude(d) == a);  /* a*(x + 1) */
        consider(w, p2o_dim_add(t, p2o_dim_mul(t, p2o_dim_int(t, a), x), p2o_dim_int(t, d)), a > 1 ? a : 0, magnitude(d),
                 (d || a < 0 ? SUM : 0) | (a > 1 ? PRODUCT : 0), !near);
    }
}

/* (x + d)//c and a*x//c. */
static void try_quotients(Work *w, size_t i)
{
    enum { LARGEST_OFFSET = 16, LARGEST = 128, LARGEST_FACTOR = 8, SMALL = 4 };
    Dims *t = w->s->dims;
    Dim   x = w->s->sizes[i];
    for (int64_t c = 2; c <= LARGEST; c++) {
        Dim number = p2o_dim_int(t, c);
        for (int64_t d = -LARGEST_OFFSET; d <= LARGEST_OFFSET; d++) {
            bool far = d && (c > SMALL || magnitude(d) > c);
            if (fits(w, i, 1, d, c))
                consider(w, p2o_dim_floordiv(t, p2o_dim_add(t, x, p2o_dim_int(t, d)), number), c, magnitude(d),
                         QUOTIENT | (d ? SUM : 0), far);
            if (d % c && fits(w, i, 1, d * c, c))               /* x//c + d */
                consider(w, p2o_dim_add(t, p2o_dim_floordiv(t, x, number), p2o_dim_int(t, d)), c, magnitude(d), QUOTIENT | SUM, true);
        }
        if (fits(w, i, 1, c - 1, c))
            consider(w, p2o_dim_ceildiv(t, x, number), c, 0, QUOTIENT | CEILING, false);
        for (int64_t a = 2; a <= LARGEST_FACTOR; a++)
            if (a % c && fits(w, i, a, 0, c))
                consider(w, p2o_dim_floordiv(t, p2o_dim_mul(t, p2o_dim_int(t, a), x), number), c, a, QUOTIENT | PRODUCT, true);
    }
}

/* Filled up to a multiple, or cut to one; a multiple of a part. */
static void try_multiples(Work *w, size_t i)
{
    enum { LARGEST = 128, SMALL = 8 };
    Dims *t = w->s->dims;
    Dim   x = w->s->sizes[i];
    for (int64_t a = 2; a <= SMALL; a++)
        for (int64_t c = 2; c <= SMALL && w->want.at[0] % a == 0; c++) {
            Dim times = p2o_dim_int(t, a), by = p2o_dim_int(t, c);
            consider(w, p2o_dim_mul(t, times, p2o_dim_floordiv(t, x, by)), a, c, QUOTIENT | PRODUCT, false);
            consider(w, p2o_dim_mul(t, times, p2o_dim_ceildiv(t, x, by)), a, c, QUOTIENT | PRODUCT | CEILING, false);
        }
    for (int64_t c = 2; c <= LARGEST; c++) {
        Dim number = p2o_dim_int(t, c);
        if (w->want.at[0] % c)
            continue;
        unsigned uses = w->uses & REMAINDER ? REMAINDER : QUOTIENT | PRODUCT;
        consider(w, p2o_dim_mul(t, number, p2o_dim_ceildiv(t, x, number)), c, 0, uses | CEILING, false);
        consider(w, p2o_dim_mul(t, number, p2o_dim_floordiv(t, x, number)), c, 0, uses, false);
    }
}

/* How much is lacking to a multiple, all of it or half, and what is over. */
static void try_remainders(Work *w, Dim x)
{
    enum { LARGEST = 128 };
    Dims *t = w->s->dims;
    Dim   two = p2o_dim_int(t, 2);
    for (int64_t c = 2; c <= LARGEST; c++) {
        Dim number = p2o_dim_int(t, c), lacking = p2o_dim_mod(t, p2o_dim_neg(t, x), number);
        Dim half = p2o_dim_floordiv(t, lacking, two);
        consider(w, lacking, c, 0, REMAINDER, false);
        consider(w, p2o_dim_mod(t, x, number), c, 0, REMAINDER, false);
        consider(w, half, c, 2, REMAINDER | QUOTIENT, false);
        consider(w, p2o_dim_sub(t, lacking, half), c, 2, REMAINDER | QUOTIENT, false);
    }
}

static Work new_work(const Search *s, Dim literal)
{
    Work w = { .s = s, .known = p2o_source_shows(s->at, s->target) };
    w.uses = w.known ? uses_of(s->at->text) : 0;
    values_of(s, literal, &w.want);
    for (size_t i = 0; i < s->n; i++) {
        Values v = { 0 };
        values_of(s, s->sizes[i], &v);
        VEC_PUSH(p2o_dims_arena(s->dims), &w.have, v);
    }
    return w;
}

/* A size that was twice or half another one in every capture, or one off one of the call's own, may be either; where
 * the line is not known, roughly half too, and one off any. */
static Dim rival_of(Work *w)
{
    Dims *t = w->s->dims;
    Work  r = { .s = w->s, .want = w->want };
    Dim   two = p2o_dim_int(t, 2), one = p2o_dim_int(t, 1);
    for (size_t i = 0; i < w->s->n; i++) {
        Dim x = w->s->sizes[i];
        consider(&r, p2o_dim_mul(t, x, two), 2, 0, 0, false);
        if (!w->known || gives(w, p2o_dim_ceildiv(t, x, two)))
            consider(&r, p2o_dim_floordiv(t, x, two), 2, 0, 0, false);
        if (!w->known)
            consider(&r, p2o_dim_ceildiv(t, x, two), 2, 0, 0, false);
        if (w->known && i >= w->s->nlocal)
            continue;
        consider(&r, p2o_dim_add(t, x, one), 1, 0, 0, false);
        consider(&r, p2o_dim_sub(t, x, one), 1, 0, 0, false);
    }
    return r.found[OTHER].first;
}

static void count_both(const Work *w, Found *f, const Found *more)
{
    if (more->first)
        count(w, f, more->first);
    if (more->second)
        count(w, f, more->second);
}

Found p2o_search(const Search *s, Dim literal)
{
    Work w = new_work(s, literal);
    try_sizes(&w);
    bool is_size = w.found[PLAIN].n > 0;
    for (size_t i = 0; i < s->npresent && !is_size; i++)
        consider(&w, s->present[i], 0, 0, 0, false);
    is_size = w.found[PLAIN].n > 0;
    if (w.found[PLAIN].n == 1) {
        Dim rival = rival_of(&w);
        if (rival)
            return (Found){ w.found[PLAIN].first, rival, 2 };
        if (!w.known)
            return w.found[PLAIN];
    }
    if (!is_size) {
        try_pairs(&w);
        try_products(&w);
    }
    for (size_t i = 0; i < s->n; i++) {
        try_line(&w, i);
        try_quotients(&w, i);
        try_multiples(&w, i);
        if (!s->padded && (w.uses & REMAINDER))
            try_remainders(&w, s->sizes[i]);
    }
    if (s->padded)
        try_remainders(&w, s->padded);
    Found f = w.found[PLAIN];
    count_both(&w, &f, &w.found[SHOWN]);
    bool shown = w.known && p2o_source_computes_args(s->at, s->target);         /* then its numbers are there too */
    if (!w.known || (!is_size && !w.found[SHOWN].n && !shown))
        count_both(&w, &f, &w.found[OTHER]);
    return f;
}

Dim p2o_search_same(const Search *s, Dim literal)
{
    Work       w = new_work(s, literal);
    Dims      *t = s->dims;
    const Dim *at = s->sizes;
    Dim        two = p2o_dim_int(t, 2);
    for (size_t i = 0; i < s->n && w.want.at[0] > 1; i++) {             /* 1 is too much of a number */
        consider(&w, p2o_dim_floordiv(t, at[i], two), 2, 0, 0, false);
        consider(&w, p2o_dim_ceildiv(t, at[i], two), 2, 0, 0, false);
        for (size_t k = 0; k < s->n; k++) {
            consider(&w, p2o_dim_sub(t, at[i], at[k]), 0, 0, 0, false);
            consider(&w, k < i ? p2o_dim_add(t, at[i], at[k]) : NULL, 0, 0, 0, false);
            consider(&w, k < i ? p2o_dim_mul(t, at[i], at[k]) : NULL, 0, 0, 0, false);
        }
    }
    if (s->padded && (w.uses & REMAINDER))
        try_remainders(&w, s->padded);
    for (int i = 0; i < NCLASS; i++)
        if (w.found[i].first)
            return w.found[i].first;
    return NULL;
}
