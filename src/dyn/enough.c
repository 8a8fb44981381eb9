#include "dyn/enough.h"

#include <math.h>

/* An earlier capture has the same element at the same place: it says nothing new. */
static bool was_seen(const Tables *t, int k, uint64_t flat)
{
    int64_t place[MAX_RANK];
    double  v = t->at[k].v[flat];
    for (int i = t->rank - 1; i >= 0; i--) {
        place[i] = (int64_t)(flat % (uint64_t)t->at[k].sizes[i]);
        flat /= (uint64_t)t->at[k].sizes[i];
    }
    for (int j = 0; j < k; j++) {
        uint64_t at = 0;
        bool     inside = true;
        for (int i = 0; i < t->rank; i++) {
            inside &= place[i] < t->at[j].sizes[i];
            at = at * (uint64_t)t->at[j].sizes[i] + (uint64_t)place[i];
        }
        if (inside && t->at[j].v[at] == v)
            return true;
    }
    return false;
}

double p2o_tables_bits(const Tables *t, bool two)
{
    double bits = 0;
    for (int k = 0; k < t->n; k++) {
        for (uint64_t i = 0; i < t->at[k].n && bits < 1000; i++) {
            double v = t->at[k].v[i];
            if (two)
                bits++;
            else if (!was_seen(t, k, i))
                bits += t->whole || !isfinite(v) ? 1 + log2(1 + fmin(fabs(v), 1e18))
                                                 : fmin(p2o_number_bits(v), 20);
        }
    }
    return bits;
}

bool p2o_tables_is_unclear(const Tables *t, const Expr *e)
{
    int i = e ? e->base - tables_first_size(t) : 0;
    if (!e)
        return false;
    return (e->op == EXPR_SIZE && i >= 0 && t->nlike[i] > 1) || p2o_tables_is_unclear(t, e->a) ||
           p2o_tables_is_unclear(t, e->b) || p2o_tables_is_unclear(t, e->c);
}

/* Captures that differ in these sizes: bits. */
static int count_different(const Tables *t, uint64_t sizes)
{
    int n = 0;
    for (int k = 0; k < t->n; k++) {
        bool had = false;
        for (int j = 0; j < k && !had; j++) {
            had = true;
            for (int i = 0; i < t->nindex + t->nsymbol; i++)
                had &= !(sizes >> i & 1) || p2o_tables_size(t, i, j) == p2o_tables_size(t, i, k);
        }
        n += !had;
    }
    return n;
}

int p2o_tables_different(const Tables *t) { return count_different(t, UINT64_MAX); }

/* An index has its axis's size, a distance those of both. */
static uint64_t sizes_in(const Tables *t, const Expr *e)
{
    if (!e)
        return 0;
    if (e->op != EXPR_SIZE)
        return sizes_in(t, e->a) | sizes_in(t, e->b) | sizes_in(t, e->c);
    int first = tables_first_size(t);
    return e->base < t->nindex ? 1u << e->base
           : e->base < first   ? 3u
                               : (uint64_t)1 << (e->base - first);
}

static bool has_size(const Tables *t, const Expr *e)
{
    return e && ((e->op == EXPR_SIZE && e->base >= tables_first_size(t)) || has_size(t, e->a) ||
                 has_size(t, e->b) || has_size(t, e->c));
}

/* A size is divided, multiplied or compared in it, not only added. */
static bool computes_with_size(const Tables *t, const Expr *e)
{
    if (!e)
        return false;
    bool plain = e->op == EXPR_SIZE || e->op == EXPR_ADD || e->op == EXPR_SUB ||
                 e->op == EXPR_CHOICE || (e->op >= EXPR_AT_LEAST_0 && e->op <= EXPR_OR);
    return (!plain && (has_size(t, e->a) || has_size(t, e->b))) || computes_with_size(t, e->a) ||
           computes_with_size(t, e->b) || computes_with_size(t, e->c);
}

bool p2o_tables_are_enough(const Tables *t, const Expr *e, bool longer)
{
    enum { LONG = 12 };                 /* elements along an axis: more than people count days or
                                         * windows by */
    int64_t longest = 0;
    if (count_different(t, sizes_in(t, e)) >= FEWEST_CAPTURES)
        return true;
    if (longer)
        return false;
    for (int k = 0; k < t->n; k++)
        for (int i = 0; i < t->rank; i++)
            longest = t->at[k].sizes[i] > longest ? t->at[k].sizes[i] : longest;
    return longest >= LONG && !computes_with_size(t, e);
}

/* What else a number may be. */

enum { MARGIN_NUMBER = 6 };             /* bits by which a size has to cost more: as for a literal
                                         * in a line that is not known (dyn/verdict) */

typedef struct Doubt {
    const Bases *sizes;
    double       number, dearest;
    bool         found;
} Doubt;

/* The size of an axis that never changed, and is none of the inputs', is no size.  Of two that are
 * always as far apart one is enough: their difference is a number. */
static void moving_sizes(const Tables *t, Bases *b)
{
    *b = (Bases){ .nfit = t->n, .ncapture = t->n, .npoint = t->n };
    for (int i = 0; i < t->nindex + t->nsymbol; i++) {
        bool moved = t->nlike[i] > 0, kin = false;
        for (int k = 0; k < t->n; k++) {
            b->at[b->n][k] = p2o_tables_size(t, i, k);
            moved |= b->at[b->n][k] != b->at[b->n][0];
        }
        for (int j = 0; j < b->n && !kin; j++) {
            kin = true;
            for (int k = 1; k < t->n; k++)
                kin &= b->at[b->n][k] - b->at[j][k] == b->at[b->n][0] - b->at[j][0];
        }
        b->n += moved && !kin;
    }
}

/* min(t, 3) is 3 wherever sizes lie as they did, and t % 2 is 1 wherever all are odd: of others
 * nothing is claimed (dyn/seen). */
static bool is_as_claimed(const Expr *e, int ncapture)
{
    enum { SEVERAL = 4 };               /* captures, whose remainders are claimed, not only odd and
                                         * even */
    if (!e)
        return false;
    bool rest = e->op == EXPR_MOD || e->op == EXPR_LACK;
    return e->op == EXPR_MIN || e->op == EXPR_MAX ||
           (rest && (ncapture >= SEVERAL ||
                     (p2o_expr_is_number(e->b) && e->b->number == 2))) ||
           is_as_claimed(e->a, ncapture) || is_as_claimed(e->b, ncapture);
}

static void see_doubt(void *user, const Expr *e, double bits, const double *values)
{
    Doubt *d = user;
    if (d->found || bits >= d->dearest)
        return;
    for (int k = 0; k < d->sizes->nfit; k++)
        if (!(fabs(values[k] - d->number) <= 1e-9 * d->number))
            return;
    d->found = !is_as_claimed(e, d->sizes->nfit);
}

static bool is_doubtful(const Bases *sizes, double number)
{
    Doubt d = { .sizes = sizes, .number = fabs(number) };
    d.dearest = p2o_number_bits(d.number) + MARGIN_NUMBER;
    (d.number == floor(d.number) ? p2o_enumerate_whole : p2o_enumerate_float)(sizes, see_doubt, &d);
    return d.found;
}

static bool has_index(const Tables *t, const Expr *e)
{
    return e && ((e->op == EXPR_SIZE && e->base < tables_first_size(t)) || has_index(t, e->a) ||
                 has_index(t, e->b) || has_index(t, e->c));
}

/* Those beside an index, and those that are chosen.  Beside sizes alone a number was weighed with
 * them. */
static bool has_doubtful(const Tables *t, const Bases *sizes, const Expr *e)
{
    if (!e)
        return false;
    if (p2o_expr_is_number(e))
        return isfinite(e->number) && is_doubtful(sizes, e->number);
    return has_index(t, e) && (has_doubtful(t, sizes, e->a) || has_doubtful(t, sizes, e->b) ||
                               has_doubtful(t, sizes, e->c));
}

bool p2o_tables_numbers_are_told(const Tables *t, const Expr *e)
{
    Bases sizes;
    moving_sizes(t, &sizes);
    return !sizes.n || !has_doubtful(t, &sizes, e);
}
