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

int p2o_tables_different(const Tables *t)
{
    int n = 0;
    for (int k = 0; k < t->n; k++) {
        bool had = false;
        for (int j = 0; j < k && !had; j++) {
            had = true;
            for (int i = 0; i < t->nindex + t->nsymbol; i++)
                had &= p2o_tables_size(t, i, j) == p2o_tables_size(t, i, k);
        }
        n += !had;
    }
    return n;
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

bool p2o_tables_are_enough(const Tables *t, const Expr *e)
{
    enum { SEVERAL = 3, LONG = 12 };    /* captures; elements along an axis: more than people count
                                         * days or windows by */
    int64_t longest = 0;
    if (p2o_tables_different(t) >= SEVERAL)
        return true;
    for (int k = 0; k < t->n; k++)
        for (int i = 0; i < t->rank; i++)
            longest = t->at[k].sizes[i] > longest ? t->at[k].sizes[i] : longest;
    return longest >= LONG && !computes_with_size(t, e);
}
