#include "dyn/table.h"

#include <math.h>

enum { LARGEST = 1 << 22 };             /* elements of a constant that is looked at */

static bool load_table(Arena *a, const Tensor *t, Table *out)
{
    *out = (Table){ .sizes = t->sizes };
    if (!p2o_tensor_nelem(t, &out->n) || out->n == 0 || out->n > LARGEST)
        return false;
    size_t   nbytes = (size_t)out->n * p2o_dtype_bytes(t->dtype);
    uint8_t *raw = p2o_alloc(a, nbytes);
    if (!p2o_tensor_load(t, raw, nbytes))
        return false;
    const Tensor *dense = p2o_tensor_make(a, t->dtype, t->rank, t->sizes, raw);
    out->v = NEW_N(a, double, (size_t)out->n);
    for (uint64_t i = 0; i < out->n; i++)
        if (!p2o_tensor_get_f64(dense, i, &out->v[i]) ||
            (!is_float(t->dtype) && fabs(out->v[i]) >= 0x1p53))         /* it may not be that */
            return false;
    return true;
}

static double scale_of(const Tables *t)
{
    double most = 0;
    for (int k = 0; k < t->n; k++)
        for (uint64_t i = 0; i < t->at[k].n; i++)
            most = isfinite(t->at[k].v[i]) ? fmax(most, fabs(t->at[k].v[i])) : most;
    return most;
}

/* Elements by their exponents.  Below a gap there are others, not what rounding left of zeros: they
 * are many, and no doubles' rounding is so large. */
static void find_levels(Tables *t)
{
    enum { LEAST_EXPONENT = -160, NEXPONENT = 320, GAP = 10, MANY = 16 };
    uint64_t count[NEXPONENT] = { 0 }, all = 0, here = 0;
    int      exponent, empty = 0;
    for (int k = 0; k < t->n; k++) {
        for (uint64_t i = 0; i < t->at[k].n; i++) {
            double v = t->at[k].v[i];
            if (!isfinite(v) || v == 0)
                continue;
            frexp(v, &exponent);
            exponent -= LEAST_EXPONENT;
            if (exponent < 0 || exponent >= NEXPONENT)
                continue;
            count[exponent]++;
            all++;
        }
    }
    for (int i = 0, top = 0; i < NEXPONENT && t->nlevel < MAX_LEVELS; i++) {
        empty = count[i] ? 0 : empty + 1;
        here += count[i];
        top = count[i] ? i : top;
        double below = ldexp(1, top + LEAST_EXPONENT);
        if (empty == GAP && here >= all / MANY + 1 && below > 1e-13 * t->scale && here) {
            t->level[t->nlevel++] = below;
            here = 0;
        }
    }
    while (t->nlevel && t->level[t->nlevel - 1] > t->scale)     /* above it lies nothing */
        t->nlevel--;
}

static bool is_stack(const Tables *t, int i)
{
    double most = 0;
    for (int j = 0; j < MOST_SLICES; j++)
        most = fmax(most, t->slice[i][j]);
    return most > 0;
}

static uint64_t place_along(const Tables *t, int axis, int k, uint64_t flat)
{
    for (int i = t->rank - 1; i > axis; i--)
        flat /= (uint64_t)t->at[k].sizes[i];
    return flat % (uint64_t)t->at[k].sizes[axis];
}

static bool is_short(const Tables *t, int axis)
{
    int64_t n = t->at[0].sizes[axis];
    for (int k = 1; k < t->n; k++)
        if (t->at[k].sizes[axis] != n)
            return false;
    return n <= MOST_SLICES;
}

static void find_slices(Tables *t)
{
    for (int i = 0; i < t->nindex; i++) {
        for (int k = 0; k < t->n && is_short(t, t->index[i]); k++) {
            for (uint64_t j = 0; j < t->at[k].n; j++) {
                double *most = &t->slice[i][place_along(t, t->index[i], k, j)];
                double  v = fabs(t->at[k].v[j]);
                *most = isfinite(v) ? fmax(*most, v) : *most;
            }
        }
    }
}

bool p2o_tables_index(Tables *t)
{
    t->nindex = 0;
    for (int i = t->rank - 1; i >= 0; i--) {
        bool one = true;
        for (int k = 0; k < t->n; k++)
            one &= t->at[k].sizes[i] == 1;
        if (!one && t->nindex == MAX_INDICES)
            return false;
        if (!one)
            t->index[t->nindex++] = i;
    }
    t->scale = scale_of(t);
    t->nlevel = 0;
    memset(t->slice, 0, sizeof t->slice);
    if (!t->whole && !t->rounded) {
        find_levels(t);
        find_slices(t);
    }
    return true;
}

bool p2o_tables_load(Arena *a, Tables *t, const Tensor *const *v)
{
    t->rank = v[0]->rank;
    t->dtype = v[0]->dtype;
    t->whole = !is_float(t->dtype);
    for (int k = 0; k < t->n; k++)
        if (v[k]->rank != t->rank || v[k]->dtype != t->dtype || !load_table(a, v[k], &t->at[k]))
            return false;
    return p2o_tables_index(t);
}

static bool same_in_all(const Tables *t, int i, Dim sym)
{
    int64_t v;
    for (int k = 0; k < t->n; k++)
        if (!p2o_hint_at(t->bind, sym, k, &v) || (double)v != p2o_tables_size(t, i, k))
            return false;
    return true;
}

void p2o_tables_symbols(Tables *t, const Dim *symbols, size_t n)
{
    t->nsymbol = 0;
    memset(t->nlike, 0, sizeof t->nlike);
    for (size_t j = 0; j < n; j++) {
        bool    known = true, had = false;
        int64_t v;
        for (int k = 0; k < t->n; k++)
            known &= p2o_hint_at(t->bind, symbols[j], k, &v);
        for (int i = 0; i < t->nindex + t->nsymbol && known; i++) {
            if (!same_in_all(t, i, symbols[j]))
                continue;
            t->nlike[i]++;
            had = true;
        }
        if (!known || had || tables_nbase(t) == MAX_BASES)
            continue;
        t->nlike[t->nindex + t->nsymbol] = 1;
        t->symbol[t->nsymbol++] = symbols[j];
    }
}

double p2o_tables_size(const Tables *t, int i, int k)
{
    int64_t v = 0;
    if (i < t->nindex)
        return (double)t->at[k].sizes[t->index[i]];
    p2o_hint_at(t->bind, t->symbol[i - t->nindex], k, &v);
    return (double)v;
}

void p2o_tables_bases(const Tables *t, int k, uint64_t flat, double *at)
{
    int64_t place[MAX_RANK];
    int     n = 0;
    for (int i = t->rank - 1; i >= 0; i--) {
        place[i] = (int64_t)(flat % (uint64_t)t->at[k].sizes[i]);
        flat /= (uint64_t)t->at[k].sizes[i];
    }
    for (int i = 0; i < t->nindex; i++)
        at[n++] = (double)place[t->index[i]];
    if (t->nindex > 1) {
        at[n++] = at[0] - at[1];
        at[n++] = fabs(at[0] - at[1]);
    }
    for (int i = 0; i < t->nindex + t->nsymbol; i++)
        at[n++] = p2o_tables_size(t, i, k);
}

bool p2o_tables_alike(const Tables *t, double x, double y)
{
    if (t->whole || x == y || (isnan(x) && isnan(y)))
        return x == y || (isnan(x) && isnan(y));
    return fabs(x - y) <= tables_share(t) * fabs(y) + tables_slack(t, y);
}

void p2o_expr_block(const Expr *e, double (*bases)[TABLE_BLOCK], int n, double *out)
{
    double x[TABLE_BLOCK] = { 0 }, y[TABLE_BLOCK] = { 0 }, z[TABLE_BLOCK] = { 0 };
    if (e->op == EXPR_SIZE) {
        memcpy(out, bases[e->base], (size_t)n * sizeof *out);
        return;
    }
    if (e->a)
        p2o_expr_block(e->a, bases, n, x);
    if (e->b)
        p2o_expr_block(e->b, bases, n, y);
    if (e->c)
        p2o_expr_block(e->c, bases, n, z);
    for (int i = 0; i < n; i++)
        out[i] = p2o_expr_apply(e, x[i], y[i], z[i]);
}

/* As p2o_tables_alike; and what a stack has beside larger elements is not lost.  `flat`: y's. */
static bool is_alike_at(const Tables *t, int k, uint64_t flat, double x, double y)
{
    double scale = INFINITY, least = t->dtype == DT_F64 ? 1e-15 : 1e-13;        /* of doubles */
    if (x == y || !p2o_tables_alike(t, x, y))
        return x == y;
    for (int i = 0; i < t->nindex; i++)
        if (is_stack(t, i))
            scale = fmin(scale, t->slice[i][place_along(t, t->index[i], k, flat)]);
    if (!isfinite(scale) || !isfinite(y))
        return true;
    double room = fmax(scale * (t->dtype == DT_F64 ? 1e-11 : 1e-7), t->scale * least);
    return fabs(x - y) <= tables_share(t) * fabs(y) + room;
}

typedef bool BlockFn(void *user, const Tables *t, int k, uint64_t from, int n,
                     const double *values);

/* Values of the expression at all elements of capture k, in blocks; false as soon as fn says so. */
static bool each_block(const Tables *t, const Expr *e, int k, BlockFn *fn, void *user)
{
    double bases[MAX_BASES][TABLE_BLOCK], at[MAX_BASES], out[TABLE_BLOCK];
    int    nbase = tables_nbase(t);
    for (uint64_t from = 0; from < t->at[k].n; from += TABLE_BLOCK) {
        int n = t->at[k].n - from < TABLE_BLOCK ? (int)(t->at[k].n - from) : TABLE_BLOCK;
        for (int i = 0; i < n; i++) {
            p2o_tables_bases(t, k, from + (uint64_t)i, at);
            for (int j = 0; j < nbase; j++)
                bases[j][i] = at[j];
        }
        p2o_expr_block(e, bases, n, out);
        if (!fn(user, t, k, from, n, out))
            return false;
    }
    return true;
}

static bool add_up(void *user, const Tables *t, int k, uint64_t from, int n, const double *values)
{
    double *sum = user;
    for (int i = 0; i < n; i++)
        *sum += values[i];
    (void)t, (void)k, (void)from;
    return true;
}

static bool are_alike(void *user, const Tables *t, int k, uint64_t from, int n,
                      const double *values)
{
    const double *sum = user;
    for (int i = 0; i < n; i++)
        if (!is_alike_at(t, k, from + (uint64_t)i, values[i] / *sum,
                         t->at[k].v[from + (uint64_t)i]))
            return false;
    return true;
}

bool p2o_tables_given(const Tables *t, const Expr *e, bool share)
{
    for (int k = 0; k < t->n; k++) {
        double sum = share ? 0 : 1;
        if ((share && !each_block(t, e, k, add_up, &sum)) || !each_block(t, e, k, are_alike, &sum))
            return false;
    }
    return true;
}
