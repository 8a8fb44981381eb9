#include "dyn/fit.h"

#include <math.h>

#include "base/vec.h"
#include "dyn/seen.h"
#include "dyn/verdict.h"

static const double pi = 3.14159265358979323846;

static uint64_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

/* An element: anywhere; at an end of an axis; on or beside the diagonal; where the next one before
 * differs. */
static uint64_t choose_element(const Tables *t, int k, int turn, uint64_t *state)
{
    enum { TRIES = 64 };
    const Table *x = &t->at[k];
    uint64_t     flat = next_random(state) % x->n, stride = 1;
    if (turn == 0 || turn == 1)
        return turn ? x->n - 1 : 0;
    if (turn % 4 == 2) {
        for (int i = 0; i < TRIES && (flat == 0 || x->v[flat] == x->v[flat - 1]); i++)
            flat = next_random(state) % x->n;
        return flat - (flat && next_random(state) % 2);
    }
    if (!t->nindex || turn % 4 != 3)
        return flat;
    int      which = (int)(next_random(state) % (uint64_t)(t->nindex + (t->nindex > 1)));
    int      axis = t->index[which < t->nindex ? which : 0];
    uint64_t end[] = { 0, 1, (uint64_t)x->sizes[axis] - 1 }, len = (uint64_t)x->sizes[axis];
    for (int i = axis + 1; i < t->rank; i++)
        stride *= (uint64_t)x->sizes[i];
    uint64_t to = end[next_random(state) % 3];
    if (which == t->nindex)
        to += flat / (uint64_t)x->sizes[t->index[0]] % (uint64_t)x->sizes[t->index[1]];
    return flat - flat / stride % len * stride + to % len * stride;
}

/* The input's size that was the same in all captures; -1: none. */
static int input_like(const Bases *inputs, const double *want)
{
    for (int i = 0; i < inputs->n; i++)
        if (!memcmp(inputs->at[i], want, (size_t)inputs->ncapture * sizeof *want))
            return i;
    return -1;
}

/* Sizes at the probes: an axis of the constant is what the inputs' sizes make it, where that is
 * known. */
static void size_bases(Points *p, const Dim *symbols, size_t nsymbol)
{
    static const double unrelated[] = { 2, 3, 5, 4, 7, 11, 9, 16, 23, 47,
                                        31, 64, 85, 101, 263, 48, 240, 720, 19, 6 };
    const Tables       *t = p->t;
    Bases              *b = &p->sizes, *inputs = NEW(p->arena, Bases);
    p2o_bases_start(inputs, t->bind, symbols, nsymbol);
    for (size_t i = 0; i < nsymbol; i++)
        p2o_bases_add(inputs, t->bind, symbols[i]);
    *b = (Bases){ .dims = p2o_bindings_dims(t->bind), .n = t->nindex + t->nsymbol, .nfit = t->n,
                  .ncapture = t->n, .npoint = t->n + NPROBE };
    for (int i = 0; i < b->n; i++) {
        Readings r = { .whole = true }, *one[] = { &r };
        for (int k = 0; k < t->n; k++)
            b->at[i][k] = r.want[k] = p2o_tables_size(t, i, k);
        int same = input_like(inputs, r.want);
        if (same < 0)
            p2o_readings(p->arena, inputs, one, 1);
        for (int j = 0; j < NPROBE; j++)
            b->at[i][t->n + j] = same >= 0 ? inputs->at[same][inputs->ncapture + j]
                                 : r.n     ? r.list[0].at[j]
                                           : unrelated[(j + 3 * i) % (int)COUNT_OF(unrelated)];
    }
}

/* Where all captures were odd, even sizes are not claimed (dyn/seen): what differs there alone is
 * the same.  If hardly a probe is left that says nothing. */
static void find_claimed(const Tables *t, const Dim *symbols, size_t nsymbol, bool *claimed)
{
    enum { FEWEST = 8 };
    Dims   *dims = p2o_bindings_dims(t->bind);
    int64_t by, rest, v;
    int     n = 0;
    for (int i = 0; i < NPROBE; i++) {
        claimed[i] = true;
        for (size_t k = 0; k < nsymbol; k++)
            claimed[i] &= !p2o_seen_remainder(t->bind, symbols[k], &by, &rest) ||
                          !p2o_probe(dims, symbols, nsymbol, symbols[k], i, &v) || v % by == rest;
        n += claimed[i];
    }
    for (int i = 0; i < NPROBE && n < FEWEST; i++)
        claimed[i] = true;
}

/* Along an axis of one element there is one index, and far sizes are nobody's: such a probe has no
 * index, and tells nothing.  What captures at sizes of 1 had is held against them all the same. */
static void choose_probes(Points *p, const Dim *symbols, size_t nsymbol, uint64_t *state)
{
    const Tables *t = p->t;
    int           first = tables_first_size(t);
    bool          claimed[NPROBE];
    find_claimed(t, symbols, nsymbol, claimed);
    for (int i = 0; i < NPOINT; i++) {
        bool good = claimed[i % NPROBE];
        for (int j = 0; j < p->sizes.n; j++) {
            double v = p->sizes.at[j][t->n + i % NPROBE];
            p->probes[first + j][i] = v;
            good &= v >= 2 && v < 1e9;
        }
        for (int j = 0; j < t->nindex; j++)
            p->probes[j][i] = !good ? NAN
                                    : (double)(next_random(state) %
                                               (uint64_t)p->probes[first + j][i]);
        if (t->nindex > 1) {
            p->probes[t->nindex][i] = p->probes[0][i] - p->probes[1][i];
            p->probes[t->nindex + 1][i] = fabs(p->probes[0][i] - p->probes[1][i]);
        }
    }
}

void p2o_points_choose(Points *p, Arena *a, const Tables *t, const Dim *symbols, size_t nsymbol)
{
    uint64_t state = 0x9e3779b97f4a7c15u;
    double   at[MAX_BASES];
    *p = (Points){ .arena = a, .t = t, .read = { .arena = a } };
    for (int i = 0, turn = 0; i < NPOINT; i++, turn++) {
        p->of[i] = i * t->n / NPOINT;
        turn = i && p->of[i] != p->of[i - 1] ? 0 : turn;
        uint64_t flat = choose_element(t, p->of[i], turn, &state);
        p2o_tables_bases(t, p->of[i], flat, at);
        for (int j = 0; j < tables_nbase(t); j++)
            p->bases[j][i] = at[j];
        p->want[i] = t->at[p->of[i]].v[flat];
    }
    size_bases(p, symbols, nsymbol);
    choose_probes(p, symbols, nsymbol, &state);
}

bool p2o_target_make(const Points *p, ExprOp inverse, Target *out)
{
    double share = tables_share(p->t);
    int    n = 0;
    *out = (Target){ .inverse = inverse };
    for (int i = 0; i < NPOINT; i++) {
        double v = p->want[i], room = share * fabs(v) + tables_slack(p->t, v);
        bool   ok = isfinite(v) && (inverse == EXPR_SIZE ||
                                    (inverse == EXPR_QUOTIENT ? fabs(v) > 1e-30 : v > 1e-30));
        out->want[i] = !ok                    ? NAN
                       : inverse == EXPR_SIZE ? v
                       : inverse == EXPR_EXP  ? log(v)
                       : inverse == EXPR_SQRT ? v * v
                                              : 1 / v;
        out->room[i] = inverse == EXPR_SIZE   ? room
                       : inverse == EXPR_EXP  ? room / v
                       : inverse == EXPR_SQRT ? 2 * v * room
                                              : room / (v * v);
        n += ok;
    }
    return n > NPOINT / 8;
}

void p2o_target_less(const Points *p, const Expr *x, double bits, Target *out)
{
    double at[NPOINT];
    p2o_target_make(p, EXPR_SIZE, out);
    p2o_expr_block(x, (double (*)[TABLE_BLOCK])(uintptr_t)p->bases, NPOINT, at);
    for (int i = 0; i < NPOINT; i++)
        out->want[i] -= at[i];
    out->less = x;
    out->less_bits = bits;
}

typedef struct Affine {
    double factor[MAX_CAPTURES], offset[MAX_CAPTURES];
    double room[MAX_CAPTURES];                  /* of the factor */
    bool   known[MAX_CAPTURES];
    double reach;                               /* the largest value of the candidate */
} Affine;

/* In one capture, the points from `from` on. */
static bool solve_capture(const Points *p, const PointSet *over, const Target *t, const double *g,
                          int from, Affine *out, int *end)
{
    int  k = p->of[from], lo = -1, hi = -1, i;
    for (i = from; i < NPOINT && p->of[i] == k; i++) {
        if (!set_has(over, i))
            continue;
        if (!(fabs(g[i]) < 1e15))
            return false;
        lo = lo < 0 || g[i] < g[lo] ? i : lo;
        hi = hi < 0 || g[i] > g[hi] ? i : hi;
    }
    *end = i;
    if (lo < 0)
        return true;
    out->reach = fmax(out->reach, fmax(fabs(g[lo]), fabs(g[hi])));
    out->known[k] = g[hi] - g[lo] > 1e-12 * (fabs(g[hi]) + fabs(g[lo])); /* not by rounding */
    double factor = out->known[k] ? (t->want[hi] - t->want[lo]) / (g[hi] - g[lo]) : 0;
    double offset = t->want[lo] - factor * g[lo];
    out->factor[k] = factor;
    out->offset[k] = offset;
    out->room[k] = out->known[k] ? (t->room[hi] + t->room[lo]) / (g[hi] - g[lo]) : 0;
    for (i = from; i < *end; i++)
        if (set_has(over, i) && !(fabs(factor * g[i] + offset - t->want[i]) <=
                                  4 * t->room[i] + 1e-13 * fabs(t->want[i])))
            return false;
    return true;
}

/* A capture without a say in the factor has that of the others, if they have one; else NaN, if
 * enough of the others have a say. */
static bool solve_affine(const Points *p, const PointSet *over, const Target *t, const double *g,
                         bool shape, Affine *out)
{
    enum { FEWEST = 3 };
    bool one = true;
    int  first = -1, nknown = 0;
    memset(out, 0, sizeof *out);
    for (int i = 0; i < NPOINT;)
        if (!solve_capture(p, over, t, g, i, out, &i))
            return false;
    for (int k = 0; k < p->t->n; k++) {
        nknown += out->known[k];
        first = first < 0 && out->known[k] ? k : first;
        one &= !out->known[k] || fabs(out->factor[k] - out->factor[first]) <=
                                     2 * (out->room[k] + out->room[first]) + 1e-12;
    }
    for (int k = 0; k < p->t->n && first >= 0; k++) {
        if (out->known[k])
            continue;
        out->factor[k] = one ? out->factor[first] : NAN;
        out->room[k] = out->room[first];
    }
    return first >= 0 && (nknown == p->t->n || nknown >= FEWEST || one || shape);
}

typedef struct Shortest {
    double want, room, best, bits;
} Shortest;

/* v is said by saying `said`, and by what it costs more. */
static void see_number(Shortest *s, double v, double said, int more)
{
    double bits = fabs(v - s->want) <= s->room ? p2o_number_bits(said) + more : s->bits;
    if (bits >= s->bits)
        return;
    s->best = v;
    s->bits = bits;
}

/* The shortest number within the room: a decimal fraction, a quotient, one of them times pi, a
 * root, a logarithm or a power of e of one. */
static Term short_number(Points *p, double want, double room)
{
    enum { DEAREST_NUMBER = 22 };
    Shortest s = { .want = want, .room = room, .bits = DEAREST_NUMBER };
    double   sign = want < 0 ? -1 : 1, up = exp(fabs(want)), x;
    for (double scale = 1; scale <= 1e4 && !p->t->whole; scale *= 10) {
        x = round(want * scale) / scale;
        see_number(&s, x, x, 0);
        x = round(want / pi * scale) / scale;
        see_number(&s, x * pi, x, BITS_STEP);
        x = round(want * want * scale) / scale;
        see_number(&s, sign * sqrt(x), x, BITS_STEP);
        x = round(up * scale) / scale;
        see_number(&s, sign * log(x), x, BITS_STEP);
        x = round(1 / up * scale) / scale;
        see_number(&s, -sign * log(x), x, BITS_STEP);
        x = round(log(fabs(want)) * scale) / scale;
        see_number(&s, sign * exp(x), x, BITS_STEP);
    }
    for (int q = 1; q <= (p->t->whole ? 1 : 64); q++) {
        x = round(want * q) / q;
        see_number(&s, x, x, 0);
        x = round(want / pi * q) / q;
        see_number(&s, x * pi, x, BITS_STEP);
        x = round(want / log(2) * q) / q;
        see_number(&s, x * log(2), x, BITS_STEP);
    }
    return s.bits < DEAREST_NUMBER ? (Term){ p2o_expr_number(p->arena, s.best), s.bits }
                                   : (Term){ 0 };
}

static const Expr *over_bases(Arena *a, const Expr *e, int first)
{
    if (!e)
        return NULL;
    Expr *x = NEW(a, Expr);
    *x = *e;
    x->base += first;
    x->a = over_bases(a, e->a, first);
    x->b = over_bases(a, e->b, first);
    return x;
}

/* A sieve of the expressions of sizes: two bits for each, by what it is in the captures.  Floats
 * have that of three captures, in cells wider than what they are off by. */

enum { SIEVE_BITS = 22, CELL_SHIFT = 40 };      /* a cell is 2**-12 of its numbers wide */

typedef struct Sieve {
    const Points *p;
    bool          whole;
    uint64_t     *bits;
} Sieve;

static int64_t cell_of(double v)
{
    int64_t bits;
    v += 0.0;
    memcpy(&bits, &v, sizeof bits);
    return bits >> CELL_SHIFT;
}

static uint64_t mixed(uint64_t h, uint64_t v)
{
    h = (h ^ v) * 0x9e3779b97f4a7c15u;
    return h ^ h >> 29;
}

static uint64_t hash_of(const Points *p, const double *at)
{
    uint64_t h = 1;
    for (int k = 0; k < p->t->n; k++)
        h = mixed(h, (uint64_t)(int64_t)fmax(fmin(at[k], 1e18), -1e18));
    return h;
}

/* `beside`: which of the three cells around each value, as a number of three digits. */
static uint64_t hash_of_cells(const Points *p, const double *at, int beside)
{
    uint64_t h = 2;
    for (int i = 0; i < 3; i++, beside /= 3)
        h = mixed(h, (uint64_t)(cell_of(at[(p->t->n - 1) * i / 2]) + beside % 3 - 1));
    return h;
}

static void see_size(void *user, const Expr *e, double bits, const double *values)
{
    const Sieve *s = user;
    uint64_t     mask = ((uint64_t)1 << SIEVE_BITS) - 1;
    for (int k = 0; k < s->p->t->n; k++)
        if (isnan(values[k]))
            return;
    enum { BESIDE_NONE = 13 };          /* 111 */
    uint64_t h = s->whole ? hash_of(s->p, values) : hash_of_cells(s->p, values, BESIDE_NONE);
    for (int i = 0; i < 2; i++, h >>= 32)
        s->bits[(h & mask) / 64] |= (uint64_t)1 << (h & mask) % 64;
    (void)e, (void)bits;
}

static bool is_in_sieve(const uint64_t *bits, uint64_t h)
{
    uint64_t mask = ((uint64_t)1 << SIEVE_BITS) - 1, other = h >> 32 & mask;
    h &= mask;
    return bits[h / 64] >> h % 64 & bits[other / 64] >> other % 64 & 1;
}

/* Floats may be whole expressions too, divided exactly. */
static bool may_be_size(Points *p, const double *at, double slack, bool whole)
{
    if (!whole && slack > 1e-4)                 /* it may be cells away */
        return true;
    if (!p->seen[whole]) {
        Sieve s = { p, whole, NEW_N(p->arena, uint64_t, ((size_t)1 << SIEVE_BITS) / 64) };
        p->seen[whole] = s.bits;
        (whole ? p2o_enumerate_whole : p2o_enumerate_float)(&p->sizes, see_size, &s);
    }
    if (whole)
        return is_in_sieve(p->seen[whole], hash_of(p, at));
    for (int i = 0; i < 27; i++)
        if (is_in_sieve(p->seen[whole], hash_of_cells(p, at, i)))
            return true;
    return false;
}

static Term term_of_sizes(Points *p, const double *at, double slack, bool whole)
{
    static const int most[] = { 8, 24 };
    if (!may_be_size(p, at, slack, whole) || p->nread[whole]++ >= most[whole])
        return (Term){ 0 };
    int      n = p->t->n;
    Readings r = { .whole = whole, .slack = slack }, *one[] = { &r };
    memcpy(r.want, at, (size_t)n * sizeof *at);
    p2o_readings(p->arena, &p->sizes, one, 1);
    Evidence e = { .at = r.want, .nfit = n, .ncapture = n, .role = NUMBER_FACTOR,
                   .spelled = SPELLED_UNKNOWN };
    Verdict  v = p2o_weigh(&e, &r);
    if (v.kind != VERDICT_SIZE)
        return (Term){ 0 };
    return (Term){ over_bases(p->arena, v.best->expr, tables_first_size(p->t)), v.best_bits };
}

/* The capture in which a value is off by the least share of it; -1: it says too little in most. */
static int most_precise(const Points *p, const double *at, const double *slack)
{
    enum { FEWEST = 3 };
    int best = -1, n = 0;
    for (int k = 0; k < p->t->n; k++) {
        if (isnan(at[k]))
            continue;
        best = best < 0 || slack[k] < slack[best] ? k : best;
        n += slack[k] <= 2e-3;
    }
    return n >= FEWEST ? best : -1;
}

/* A number times a power of a size, or of one beside it: what the number is shows at once. */
static Term power_of_size(Points *p, const double *at, const double *slack)
{
    static const double powers[] = { -1, 1, -0.5, 0.5, -2, 2 }, beside[] = { 0, -1, 1, -2, 2 };
    const Bases *b = &p->sizes;
    Term         best = { 0 };
    int          sure = most_precise(p, at, slack);
    if (sure < 0)
        return best;
    for (int i = 0; i < b->n * (int)COUNT_OF(beside); i++) {
        double d = beside[(size_t)i % COUNT_OF(beside)];
        int    base = i / (int)COUNT_OF(beside);
        for (size_t j = 0; j < COUNT_OF(powers); j++) {
            double number = at[sure] / pow(b->at[base][sure] + d, powers[j]);
            bool   same = isfinite(number) && number != 0;
            for (int k = 0; k < p->t->n && same; k++) {
                double v = at[k] / pow(b->at[base][k] + d, powers[j]);
                same = isnan(at[k]) ||
                       fabs(v - number) <= (slack[k] + slack[sure]) * fabs(number);
            }
            Term x = same ? short_number(p, number, slack[sure] * fabs(number)) : (Term){ 0 };
            if (!x.expr)
                continue;
            Expr *size = NEW(p->arena, Expr);
            *size = (Expr){ .op = EXPR_SIZE, .base = base + tables_first_size(p->t) };
            const Expr *e = d ? p2o_expr_of(p->arena, EXPR_ADD, size, p2o_expr_number(p->arena, d))
                              : size;
            double      bits = x.bits + p2o_base_bits(b) + BITS_STEP +
                               (d ? BITS_STEP + 2 * fabs(d) - 1 : 0) + (double)(j / 2) * BITS_STEP;
            e = fabs(powers[j]) == 2  ? p2o_expr_of(p->arena, EXPR_MUL, e, e)
                : fabs(powers[j]) < 1 ? p2o_expr_of(p->arena, EXPR_SQRT, e, NULL)
                                      : e;
            e = p2o_expr_of(p->arena, powers[j] < 0 ? EXPR_QUOTIENT : EXPR_MUL, x.expr, e);
            if (!best.expr || bits < best.bits)
                best = (Term){ e, bits };
        }
    }
    return best;
}

static double first_known(const double *x, int n)
{
    int k = 0;
    while (k < n - 1 && isnan(x[k]))
        k++;
    return x[k];
}

/* Of numbers that are not the same in all captures. */
static Term fit_differing(Points *p, const double *at, const double *room, bool known)
{
    int    n = p->t->n;
    bool   whole = true;
    double slack[MAX_CAPTURES], most = 0, key[MAX_CAPTURES] = { 0 };
    for (int k = 0; k < n; k++) {
        if (!(at[k] > 0) && !isnan(at[k]))
            return (Term){ 0 };
        whole &= isnan(at[k]) || fabs(at[k] - round(at[k])) <= room[k] + 1e-9;
        slack[k] = 2 * room[k] / at[k] + 1e-12;
        most = fmax(most, slack[k]);
    }
    for (int k = 0; k < n; k++)
        key[k] = whole ? round(at[k]) : at[k];
    double *kept = NEW_N(p->arena, double, MAX_CAPTURES);
    memcpy(kept, key, sizeof key);
    void **slot = p2o_map_slot(&p->read, (Str){ (const char *)kept, sizeof key });
    if (!*slot) {
        Term *made = NEW(p->arena, Term);
        bool  sure = known && most <= 2e-3;     /* else anything would do */
        if (whole && sure)
            *made = term_of_sizes(p, key, 0, true);
        if (!made->expr && !p->t->whole)
            *made = power_of_size(p, key, slack);
        if (!made->expr && !p->t->whole && sure)
            *made = term_of_sizes(p, key, most, false);
        *slot = made;
    }
    return *(Term *)*slot;
}

/* `room`: what the number may be off by in each capture. */
static Term fit_by_rooms(Points *p, const double *at, const double *room)
{
    int    n = p->t->n, best = -1;
    bool   one = true, known = true;
    double size = INFINITY;
    for (int k = 0; k < n; k++) {
        known &= !isnan(at[k]);
        if (!isnan(at[k]) && (best < 0 || room[k] < room[best]))
            best = k;
    }
    for (int k = 0; k < n && best >= 0; k++) {
        one &= isnan(at[k]) || fabs(at[k] - at[best]) <= room[k] + room[best];
        size = fmin(size, fabs(at[k]));
    }
    if (best < 0)
        return (Term){ 0 };
    if (one && size <= room[best])
        return (Term){ p2o_expr_number(p->arena, 0), p2o_number_bits(0) };
    if (one && room[best] <= 1e-3 * size) {
        Term x = short_number(p, at[best], room[best] + 1e-13 * fabs(at[best]));
        if (x.expr)
            return x;
    }
    return fit_differing(p, at, room, known);
}

Term p2o_fit_sizes(Points *p, const double *at, double room)
{
    double rooms[MAX_CAPTURES];
    for (int k = 0; k < p->t->n; k++)
        rooms[k] = room;
    return fit_by_rooms(p, at, rooms);
}

static double most_of(const double *x, int n)
{
    double most = 0;
    for (int k = 0; k < n; k++)
        most = fmax(most, fabs(x[k]));
    return most;
}

static void turn_signs(double *x, int n)
{
    for (int k = 0; k < n; k++)
        x[k] = -x[k];
}

/* x plus or minus y, either of which may have its sign turned. */
static Term signed_sum(Arena *a, Term x, bool minus_x, Term y, bool minus_y)
{
    if (!y.expr) {
        return minus_x ? (Term){ p2o_expr_of(a, EXPR_SUB, p2o_expr_number(a, 0), x.expr),
                                 x.bits + 1 } : x;
    }
    double bits = x.bits + y.bits + BITS_STEP;
    if (minus_x && minus_y)
        return (Term){ p2o_expr_of(a, EXPR_SUB,
                                   p2o_expr_of(a, EXPR_SUB, p2o_expr_number(a, 0), x.expr), y.expr),
                       bits + 1 };
    if (minus_x)
        return (Term){ p2o_expr_of(a, EXPR_SUB, y.expr, x.expr), bits };
    return (Term){ p2o_expr_of(a, minus_y ? EXPR_SUB : EXPR_ADD, x.expr, y.expr), bits };
}

static Term inverse_of(Arena *a, const Target *t, Term x)
{
    if (x.expr && t->less)
        return (Term){ p2o_expr_of(a, EXPR_ADD, t->less, x.expr),
                       x.bits + t->less_bits + BITS_STEP };
    if (!x.expr || t->inverse == EXPR_SIZE)
        return x;
    if (t->inverse == EXPR_QUOTIENT)
        return (Term){ p2o_expr_of(a, EXPR_QUOTIENT, p2o_expr_number(a, 1), x.expr),
                       x.bits + BITS_STEP };
    return (Term){ p2o_expr_of(a, t->inverse, x.expr, NULL), x.bits + BITS_STEP };
}

/* What is left of each element without the factor's part must be one number in each capture. */
static bool find_offsets(const Points *p, const PointSet *over, const Target *t,
                         const double *values, const Expr *factor, bool minus, Affine *f,
                         double *room)
{
    double at[NPOINT];
    p2o_expr_block(factor, (double (*)[TABLE_BLOCK])(uintptr_t)p->bases, NPOINT, at);
    *room = 0;
    for (int k = 0; k < p->t->n; k++)
        f->offset[k] = NAN;
    for (int i = 0; i < NPOINT; i++) {
        if (!set_has(over, i))
            continue;
        double left = t->want[i] - (minus ? -at[i] : at[i]) * values[i];
        if (isnan(f->offset[p->of[i]]))
            f->offset[p->of[i]] = left;
        *room = fmax(*room, t->room[i]);
        if (!(fabs(left - f->offset[p->of[i]]) <=
              4 * t->room[i] + 1e-12 * (fabs(t->want[i]) + f->reach)))
            return false;
    }
    return true;
}

/* Of which the elements are multiples: exp(f * g) has its offset as a factor. */
static Term fit_shape(Points *p, const Target *t, Term x, Affine *f)
{
    int    n = p->t->n;
    Term   none = { 0 }, y;
    double room = most_of(f->room, n);
    if (t->inverse == EXPR_EXP) {
        bool minus = first_known(f->factor, n) < 0;
        if (minus)
            turn_signs(f->factor, n);
        y = fit_by_rooms(p, f->factor, f->room);
        if (!y.expr)
            return none;
        x = (Term){ p2o_expr_of(p->arena, EXPR_MUL, x.expr, y.expr), x.bits + y.bits + BITS_STEP };
        return inverse_of(p->arena, t, signed_sum(p->arena, x, minus, none, false));
    }
    double ratio = NAN;                         /* where a capture has no say: that of another */
    for (int k = 0; k < n; k++)
        ratio = isnan(ratio) && f->known[k] ? f->offset[k] / f->factor[k] : ratio;
    for (int k = 0; k < n; k++)
        f->offset[k] = f->known[k] ? f->offset[k] / f->factor[k] : ratio;
    room = (room * f->reach * 4) / fmax(most_of(f->factor, n), 1e-30) + 1e-12;
    if (most_of(f->offset, n) <= room)
        return inverse_of(p->arena, t, x);
    bool less = f->offset[0] < 0;
    if (less)
        turn_signs(f->offset, n);
    y = p2o_fit_sizes(p, f->offset, room);
    return y.expr ? inverse_of(p->arena, t, signed_sum(p->arena, x, false, y, less)) : none;
}

Term p2o_fit(Points *p, const PointSet *over, const Target *t, const Expr *g, double bits,
             const double *values, bool shape)
{
    Affine f;
    int    n = p->t->n;
    double room;
    Term   none = { 0 }, factor = { .expr = &(Expr){ .op = EXPR_NUMBER, .number = 1 } };
    Term   x = { g, bits };
    if (!solve_affine(p, over, t, values, shape, &f))
        return none;
    if (shape)
        return fit_shape(p, t, x, &f);
    bool minus = first_known(f.factor, n) < 0, unit = true;
    if (minus)
        turn_signs(f.factor, n);
    for (int k = 0; k < n; k++)
        unit &= isnan(f.factor[k]) || fabs(f.factor[k] - 1) <= 2 * f.room[k] + 1e-12;
    if (!unit)
        factor = fit_by_rooms(p, f.factor, f.room);
    if (!factor.expr || !find_offsets(p, over, t, values, factor.expr, minus, &f, &room))
        return none;
    if (!unit)
        x = (Term){ p2o_expr_of(p->arena, EXPR_MUL, x.expr, factor.expr),
                    bits + factor.bits + BITS_STEP };
    for (int k = 0; k < n; k++)
        f.offset[k] = isnan(f.offset[k]) ? f.offset[k ? k - 1 : 0] : f.offset[k];
    Term offset = none;
    bool less = f.offset[0] < 0;
    if (isnan(f.offset[0]))
        return none;
    if (most_of(f.offset, n) > room + 1e-12) {
        if (less)
            turn_signs(f.offset, n);
        offset = p2o_fit_sizes(p, f.offset, room + 1e-12);
        if (!offset.expr)
            return none;
    }
    return inverse_of(p->arena, t, signed_sum(p->arena, x, minus, offset, less));
}
