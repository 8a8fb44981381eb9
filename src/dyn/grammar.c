#include "dyn/grammar.h"

#include <math.h>

#include "base/num.h"

#define PI 3.14159265358979323846

/* Bits of the parts of an expression: lengths of what a person would type, chosen by eye and held
 * against what the suite of modules (test/sizes) shows to be right and wrong. */
enum {
    BITS_SIZE = 2,
    BITS_CLAMP = 5,             /* more, for min and max with a number: mostly a branch */
    BITS_LEAST = 2,             /* more, for max with 0 or 1 */
    BITS_RATIO = 3,             /* more, for one size divided by another: rounded, they have little
                                 * to say */
    BITS_WHOLE = 8,             /* more, for a float that is a whole expression: Python would have
                                 * an int */
    BITS_REMAINDER = 6,         /* more, for what is multiplied or divided after a remainder or a
                                 * root, or after it was rounded */
    BITS_ITSELF = 9,            /* more, for (n - 3) % n */
    BITS_PI = 4,
    BITS_SPECIAL = 6,           /* isqrt, bit_length, int(0.7 * n), a logarithm */
};

/* Numbers that stand beside sizes in source: small ones, powers of two and their neighbours, sizes
 * of images and windows. */
static const int numbers[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 20, 24, 25,
                               28, 30, 31, 32, 40, 48, 49, 50, 56, 60, 63, 64, 80, 96, 100, 112,
                               127, 128, 196, 200, 224, 255, 256, 512, 1000, 1024 };
/* Those of a second step. */
static const int small[] = { 1, 2, 3, 4, 5, 6, 7, 8, 10, 16 };
/* Shares that are written as decimal fractions: int(0.7 * n). */
static const double shares[] = { 0.1, 0.15, 0.2, 0.25, 0.3, 1.0 / 3, 0.35, 0.4, 0.45, 0.5, 0.55,
                                 0.6, 0.65, 2.0 / 3, 0.7, 0.75, 0.8, 0.85, 0.875, 0.9, 0.95, 1.25,
                                 1.5, 1.75, 2.5, 0.05 };

/* Binary digits of a whole part.  Some libraries have logarithms a little off at powers of two. */
static double bit_length(double x)
{
    int digits;
    if (!isfinite(x))
        return NAN;
    frexp(x, &digits);
    return x < 1 ? 0 : digits;
}

static double whole_bits(double v) { return 2 * bit_length(fabs(v) + 1) - 1; }

/* v as a short decimal: its digits as a whole number, or 0. */
static double decimal_digits(double v)
{
    for (double scale = 1; scale <= 1e6; scale *= 10) {
        double whole = round(v * scale);
        if (fabs(whole) < 1e7 && whole / scale == v)
            return whole ? fabs(whole) : 1;
    }
    return 0;
}

static bool near_whole(double v)
{
    return fabs(v - round(v)) <= 1e-11 * fabs(v) && fabs(v) < 1e6 && round(v) != 0;
}

int p2o_number_within(double v, double *whole, double *bits)
{
    const double forms[NWITHIN] = { 1 / v, v * v, exp(fabs(v)), exp2(fabs(v)), 1 / (v * v) };
    int          n = 0;
    for (int i = 0; i < NWITHIN; i++)
        if (near_whole(forms[i])) {
            whole[n] = round(forms[i]);
            bits[n++] = i < NWITHIN - 1 ? BITS_OP : 2 * BITS_OP;
        }
    return n;
}

/* 0.125 is 1/8, 0.3535.. is 1/sqrt(8): numbers that a constructor computes. */
double p2o_number_bits(double v)
{
    enum { UNSAID = 54 };       /* all the bits of its mantissa */
    double best = UNSAID, digits, within[NWITHIN], of[NWITHIN];
    if (v == 0 || (v == floor(v) && fabs(v) < 1e9))
        return whole_bits(v);
    if (!isfinite(v))
        return 1;
    if ((digits = decimal_digits(v)) > 0)
        best = fmin(best, 2 + whole_bits(digits));
    for (int i = p2o_number_within(v, within, of); i-- > 0;)
        best = fmin(best, of[i] + whole_bits(within[i]));
    for (int q = 1; q <= 4; q *= 2)
        if (near_whole(v * q / PI))
            best = fmin(best,
                        BITS_OP + BITS_PI + whole_bits(q) + whole_bits(round(v * q / PI)) - 2);
    for (int q = 2; q <= 64; q++)
        if (near_whole(v * q))
            best = fmin(best, BITS_OP + whole_bits(q) + whole_bits(round(v * q)));
    return best;
}

double p2o_base_bits(const Bases *b) { return BITS_SIZE + log2(b->n > 1 ? b->n : 1); }

enum { NDIVISIBLE = 4, NAPART = 12, FIRST_APART = NPROBE - NAPART };

/* The small size of symbol number k where it is one of the small ones, 0 where it is one of the
 * large ones: by a bit of its number, and the other way about, so that of any two of eight symbols
 * each is small where the other is large. */
static int64_t small_size(int k, int turn)
{
    int bit = turn / 4;
    return (k >> bit & 1) == (turn / 2 & 1) ? 1 + turn % 2 : 0;
}

/* What symbol number k is at probe i: small sizes, then larger ones without a common pattern, then
 * some that all small numbers divide; others for every symbol.  At last, some small, some large. */
static int64_t probe_at(Dims *t, Dim sym, int k, int i)
{
    static const int64_t sizes[NPROBE] = { 1, 2, 3, 5, 4, 7, 6, 9, 16, 11, 23, 30, 47, 85, 101, 263,
                                           8, 10, 12, 13, 14, 15, 17, 18, 19, 21, 25, 27, 33, 37,
                                           43, 59, 62, 71, 94, 115, 48, 240, 720, 5040,
                                           29, 45, 20, 39, 57, 26, 31, 44, 61, 22, 35, 50 };
    int64_t              lo, hi, spread = sizes[i] / 3 + 2;
    bool                 divisible = i >= FIRST_APART - NDIVISIBLE && i < FIRST_APART;
    int64_t              v = divisible ? sizes[i] * (1 + (k + i) % 3)
                                       : sizes[i] + (k * 7 + k * i) % spread;
    int64_t              least = i >= FIRST_APART ? small_size(k, i - FIRST_APART) : 0;
    v = least ? least : v;
    p2o_dim_range(t, sym, &lo, &hi);
    int64_t span = hi == NO_UPPER ? INT64_MAX : hi - lo + 1;
    int64_t above = v % (span < 1024 ? span : 1024);
    if (v < lo)
        v = lo > INT64_MAX - above ? lo : lo + above;   /* a bound that no size reaches */
    return v > hi ? lo + v % span : v;
}

typedef struct AtProbe {
    Dims      *dims;
    const Dim *symbols;
    size_t     n;
    int        i;
} AtProbe;

static bool probe_value(void *user, Dim sym, int64_t *v)
{
    const AtProbe *at = user;
    for (size_t k = 0; k < at->n; k++) {
        if (at->symbols[k] != sym)
            continue;
        *v = probe_at(at->dims, sym, (int)k, at->i);
        return true;
    }
    return false;
}

bool p2o_probe(Dims *t, const Dim *symbols, size_t n, Dim d, int i, int64_t *v)
{
    AtProbe at = { t, symbols, n, i };
    return p2o_dim_eval(t, d, probe_value, &at, v);
}

typedef struct AtMoved {
    const Probes *p;
    int           i;
} AtMoved;

static bool moved_probe(void *user, Dim sym, int64_t *v)
{
    const AtMoved *at = user;
    for (size_t k = 0; k < at->p->n; k++)
        if (at->p->symbols[k] == sym)
            return (*v = at->p->at[k][at->i]) > 0;
    return false;
}

bool p2o_probe_at(Dims *t, const Probes *p, Dim d, int i, int64_t *v)
{
    AtMoved at = { p, i };
    return p2o_dim_eval(t, d, moved_probe, &at, v);
}

void p2o_bases_move(Bases *b, const Probes *p)
{
    int64_t v;
    for (int k = 0; k < b->n; k++)
        for (int i = 0; i < NPROBE; i++)
            b->at[k][b->ncapture + i] = p2o_probe_at(b->dims, p, b->dim[k], i, &v) ? (double)v
                                                                                   : NAN;
}

void p2o_bases_start(Bases *b, Bindings *bind, const Dim *symbols, size_t n)
{
    *b = (Bases){ .dims = p2o_bindings_dims(bind), .symbols = symbols, .nsymbol = n,
                  .nfit = p2o_nfit(bind), .ncapture = p2o_ncapture(bind) };
    b->npoint = b->ncapture + NPROBE;
}

bool p2o_bases_add(Bases *b, Bindings *bind, Dim d)
{
    int64_t v;
    for (int i = 0; i < b->n; i++)
        if (b->dim[i] == d)
            return true;
    if (b->n == MAX_BASES)
        return false;
    for (int k = 0; k < b->ncapture; k++) {
        if (!p2o_hint_at(bind, d, k, &v))
            return true;
        b->at[b->n][k] = (double)v;
    }
    for (int i = 0; i < NPROBE; i++) {
        bool known = p2o_probe(b->dims, b->symbols, b->nsymbol, d, i, &v);
        b->at[b->n][b->ncapture + i] = known ? (double)v : NAN;
    }
    b->dim[b->n++] = d;
    return true;
}

/* One operator on values; NaN where it has none. */
static double apply(ExprOp op, double x, double y, double number)
{
    switch (op) {
    case EXPR_ADD: return x + y;
    case EXPR_SUB: return x - y;
    case EXPR_MUL: return x * y;
    case EXPR_FLOOR: return y == 0 ? NAN : floor(x / y);
    case EXPR_CEIL: return y == 0 ? NAN : ceil(x / y);
    case EXPR_MOD: return y == 0 ? NAN : x - y * floor(x / y);
    case EXPR_LACK: return y == 0 ? NAN : y * ceil(x / y) - x;
    case EXPR_MIN: return x <= y ? x : x > y ? y : NAN;         /* as PyTorch has it, not fmin */
    case EXPR_MAX: return x >= y ? x : x < y ? y : NAN;
    case EXPR_ROOT: return x < 0 ? NAN : floor(sqrt(x));
    case EXPR_BITS: return bit_length(x);
    case EXPR_POWER: return x >= 0 && x <= 52 ? ldexp(1, (int)x) : NAN;
    case EXPR_SCALED: return trunc(number * x);
    case EXPR_RAISED: return ceil(number * x);
    case EXPR_ROUNDED: return nearbyint(number * x);    /* halves to even, as Python has it */
    case EXPR_NEAREST: return nearbyint(x / number);
    case EXPR_QUOTIENT: return y == 0 ? NAN : x / y;
    case EXPR_SQRT: return x < 0 ? NAN : sqrt(x);
    case EXPR_LOG: return x <= 0 ? NAN : log(x);
    case EXPR_LOG2: return x <= 0 ? NAN : log2(x);
    case EXPR_ABS: return fabs(x);
    case EXPR_COS: return cos(x);
    case EXPR_SIN: return sin(x);
    case EXPR_EXP: return exp(x);
    case EXPR_TO_THE: return x < 0 ? NAN : pow(x, y);
    case EXPR_ROUND: return nearbyint(x);
    case EXPR_AT_LEAST_0: return x >= 0;
    case EXPR_IS_0: return x == 0;
    case EXPR_AND: return x != 0 && y != 0;
    case EXPR_OR: return x != 0 || y != 0;
    case EXPR_NUMBER: return number;
    case EXPR_SIZE: case EXPR_CHOICE: break;
    }
    return NAN;
}

double p2o_expr_apply(const Expr *e, double x, double y, double z)
{
    return e->op == EXPR_CHOICE ? (z != 0 ? x : y) : apply(e->op, x, y, e->number);
}

bool p2o_expr_eval(const Bases *b, const Expr *e, int point, double *v)
{
    double x = 0, y = 0, z = 0;
    if (e->op == EXPR_SIZE) {
        *v = b->at[e->base][point];
        return !isnan(*v);
    }
    if ((e->a && !p2o_expr_eval(b, e->a, point, &x)) ||
        (e->b && !p2o_expr_eval(b, e->b, point, &y)) ||
        (e->c && !p2o_expr_eval(b, e->c, point, &z)))
        return false;
    *v = p2o_expr_apply(e, x, y, z);
    return !isnan(*v);
}

typedef struct Valued {                 /* an expression with its cost and values */
    Expr   expr;
    double bits;
    double at[MAX_POINTS];      /* in the captures: what most expressions are turned down by */
} Valued;

enum { NSHARE = sizeof shares / sizeof *shares };

typedef struct Enumeration {
    const Bases *bases;
    ExprFn      *fn;
    void        *user;
    Valued       share[NSHARE];         /* what they cost takes long to find */
    uint32_t     kin[MAX_BASES];        /* of each size, those with a symbol of its own: n and
                                         * n + 3 */
} Enumeration;

static bool combine(const Enumeration *e, Valued *out, ExprOp op, const Valued *x, const Valued *y,
                    double bits)
{
    out->bits = bits;
    if (bits > DEAREST)
        return false;
    out->expr = (Expr){ .op = op, .a = &x->expr, .b = y ? &y->expr : NULL };
    for (int i = 0; i < e->bases->nfit; i++)
        out->at[i] = apply(op, x->at[i], y ? y->at[i] : 0, 0);
    return true;
}

/* The same of operators that have a number in themselves. */
static bool combine_number(const Enumeration *e, Valued *out, ExprOp op, const Valued *x,
                           double number, double bits)
{
    if (!combine(e, out, op, x, NULL, bits))
        return false;
    out->expr.number = number;
    for (int i = 0; i < e->bases->nfit; i++)
        out->at[i] = apply(op, x->at[i], 0, number);
    return true;
}

static void say(const Enumeration *e, const Valued *v) { e->fn(e->user, &v->expr, v->bits, v->at); }

static Valued number_of(const Enumeration *e, double v)
{
    Valued out = { .expr = { .op = EXPR_NUMBER, .number = v }, .bits = p2o_number_bits(v) };
    for (int i = 0; i < e->bases->nfit; i++)
        out.at[i] = v;
    return out;
}

static uint32_t kin_of(const Bases *b, int i)
{
    uint32_t all = 1u << i;
    for (int k = 0; k < b->n && b->dim[i]; k++)
        all |= p2o_dim_are_kin(b->dim[i], b->dim[k]) ? 1u << k : 0;
    return all;
}

static Enumeration enumeration_of(const Bases *b, ExprFn *fn, void *user)
{
    Enumeration e = { .bases = b, .fn = fn, .user = user };
    for (int i = 0; i < NSHARE; i++)
        e.share[i] = number_of(&e, shares[i]);
    for (int i = 0; i < b->n; i++)
        e.kin[i] = kin_of(b, i);
    return e;
}

static Valued size_of(const Enumeration *e, int base)
{
    Valued out = { .expr = { .op = EXPR_SIZE, .base = base }, .bits = p2o_base_bits(e->bases) };
    for (int i = 0; i < e->bases->nfit; i++)
        out.at[i] = e->bases->at[base][i];
    return out;
}

typedef void ThenFn(const Enumeration *e, const Valued *v);

static const struct {
    ExprOp op;
    int    more;                /* bits over those of an operator */
    bool   swapped;             /* the number comes first */
    bool   from_two;            /* by 1 it is nothing new */
} beside_number[] = {
    { EXPR_ADD, 0, false, false },  { EXPR_SUB, 0, false, false }, { EXPR_SUB, 1, true, false },
    { EXPR_MUL, -1, false, true },  { EXPR_FLOOR, 0, false, true }, { EXPR_CEIL, 1, false, true },
    { EXPR_MOD, 0, false, true },   { EXPR_LACK, 1, false, true },
    { EXPR_MIN, BITS_CLAMP, false, false }, { EXPR_MAX, BITS_CLAMP, false, false },
};

static bool is_plain(const Valued *x)
{
    return x->expr.op == EXPR_SIZE || x->expr.op == EXPR_ADD || x->expr.op == EXPR_SUB;
}

/* x//c*c, its rounding up and to the nearest: to a multiple; also to one of them at least. */
static void to_multiple(const Enumeration *e, const Valued *x, const Valued *c, ThenFn *then)
{
    static const ExprOp part[] = { EXPR_FLOOR, EXPR_CEIL };
    for (int i = 0; i < 3; i++) {
        Valued q, m, least;
        double bits = x->bits + BITS_OP + c->bits + i + (is_plain(x) ? 0 : BITS_REMAINDER);
        bool   made = i < 2 ? combine(e, &q, part[i], x, c, bits)
                            : combine_number(e, &q, EXPR_NEAREST, x, c->expr.number, bits);
        if (!made || !combine(e, &m, EXPR_MUL, &q, c, q.bits + BITS_OP))
            continue;
        then(e, &m);
        if (combine(e, &least, EXPR_MAX, &m, c, m.bits + BITS_OP + BITS_LEAST))
            then(e, &least);
    }
}

/* round(x / c) */
static void nearest_part(const Enumeration *e, const Valued *x, const Valued *c, ThenFn *then)
{
    Valued v;
    if (is_plain(x) && combine_number(e, &v, EXPR_NEAREST, x, c->expr.number,
                                      x->bits + 2 * BITS_OP + c->bits))
        then(e, &v);
}

static bool is_rounded_share(const Expr *x)
{
    return x->op >= EXPR_SCALED && x->op <= EXPR_NEAREST;
}

/* Nobody computes further with what is left over, but adds it; nor rounds twice. */
static double bits_of_remainder(const Valued *x, ExprOp op)
{
    bool remainder = x->expr.op == EXPR_MOD || x->expr.op == EXPR_LACK;
    bool twice = is_rounded_share(&x->expr) && op != EXPR_MIN && op != EXPR_MAX;
    return (remainder || twice) && op != EXPR_ADD && op != EXPR_SUB ? BITS_REMAINDER : 0;
}

/* Half of int(0.2 * n) is cut off at either end; others are rounded once. */
static double bits_of_halving(const Valued *x)
{
    bool sum = x->expr.op == EXPR_ADD || x->expr.op == EXPR_SUB;
    if (sum && x->expr.b->op == EXPR_NUMBER)
        return is_rounded_share(x->expr.a) ? BITS_REMAINDER : 0;
    return is_rounded_share(&x->expr) && x->expr.op != EXPR_SCALED ? BITS_REMAINDER : 0;
}

static void with_number(const Enumeration *e, const Valued *x, const int *list, size_t n,
                        ThenFn *then)
{
    for (size_t k = 0; k < n; k++) {
        Valued c = number_of(e, list[k]), v;
        for (size_t i = 0; i < sizeof beside_number / sizeof *beside_number; i++) {
            const Valued *left = beside_number[i].swapped ? &c : x;
            const Valued *right = beside_number[i].swapped ? x : &c;
            ExprOp        op = beside_number[i].op;
            double        bits = x->bits + BITS_OP + c.bits + beside_number[i].more +
                                 bits_of_remainder(x, op);
            if (!(beside_number[i].from_two && list[k] == 1) &&
                combine(e, &v, op, left, right, bits))
                then(e, &v);
        }
        if (list[k] > 1) {
            to_multiple(e, x, &c, then);
            nearest_part(e, x, &c, then);
        }
    }
}

static bool has_base(const Expr *x, uint32_t among)
{
    return x && ((x->op == EXPR_SIZE && among & 1u << x->base) || has_base(x->a, among) ||
                 has_base(x->b, among));
}

/* One of them is a size that the other is made of. */
static bool share_size(const Enumeration *e, const Valued *x, const Valued *y)
{
    return (y->expr.op == EXPR_SIZE && has_base(&x->expr, e->kin[y->expr.base])) ||
           (x->expr.op == EXPR_SIZE && has_base(&y->expr, e->kin[x->expr.base]));
}

static void with_other(const Enumeration *e, const Valued *x, const Valued *y, bool twice,
                       ThenFn *then)
{
    static const ExprOp both[] = { EXPR_ADD, EXPR_MUL, EXPR_MIN, EXPR_MAX };
    static const ExprOp one[] = { EXPR_SUB, EXPR_FLOOR, EXPR_MOD, EXPR_CEIL };
    double              bits = x->bits + y->bits + BITS_OP;
    bool                shared = share_size(e, x, y);
    double              ratio = BITS_RATIO + (shared ? BITS_REMAINDER : 0);
    Valued              v;
    for (int i = 0; i < 4 && twice; i++)
        if (combine(e, &v, both[i], x, y, bits + i / 2))
            then(e, &v);
    for (int i = 0; i < 4; i++)
        if (combine(e, &v, one[i], x, y,
                    bits + (!i                                ? 0
                            : shared && one[i] == EXPR_MOD ? BITS_RATIO + BITS_ITSELF
                                                           : ratio)))
            then(e, &v);
}

/* n - 2*x: as much is cut off at either end. */
static void cut_both_ends(const Enumeration *e, const Valued *x, ThenFn *then)
{
    Valued two = number_of(e, 2), twice, v;
    if (!combine(e, &twice, EXPR_MUL, x, &two, x->bits + BITS_OP))
        return;
    for (int i = 0; i < e->bases->n; i++) {
        Valued s = size_of(e, i);
        if (combine(e, &v, EXPR_SUB, &s, &twice, twice.bits + s.bits + BITS_OP))
            then(e, &v);
    }
}

/* The k of k*(k + 1)//2 = x: sides of triangles. */
static void triangle_side(const Enumeration *e, const Valued *x, ThenFn *then)
{
    static const ExprOp next[] = { EXPR_SUB, EXPR_ADD };
    Valued              one = number_of(e, 1), two = number_of(e, 2), eight = number_of(e, 8);
    Valued              times, more, root, side, half;
    double              bits = x->bits + 2 * BITS_OP + BITS_SPECIAL;
    if (!combine(e, &times, EXPR_MUL, x, &eight, bits) ||
        !combine(e, &more, EXPR_ADD, &times, &one, bits) ||
        !combine(e, &root, EXPR_ROOT, &more, NULL, bits))
        return;
    for (int i = 0; i < 2; i++)
        if (combine(e, &side, next[i], &root, &one, bits + i) &&
            combine(e, &half, EXPR_FLOOR, &side, &two, bits + i))
            then(e, &half);
}

/* x*(x - 1) and x*(x + 1), and half of it: as many as there are pairs. */
static void pair_counts(const Enumeration *e, const Valued *x, ThenFn *then)
{
    static const ExprOp next[] = { EXPR_SUB, EXPR_ADD };
    Valued              one = number_of(e, 1), two = number_of(e, 2), other, product, half;
    for (int i = 0; i < 2; i++)
        if (combine(e, &other, next[i], x, &one, x->bits + BITS_OP) &&
            combine(e, &product, EXPR_MUL, x, &other, other.bits + x->bits + BITS_OP)) {
            then(e, &product);
            if (combine(e, &half, EXPR_FLOOR, &product, &two, product.bits + BITS_OP))
                then(e, &half);
        }
}

/* (x - 1)*(y - 1), (x//2)*(y//2): the same is done to both; also their sum. */
static void alike(const Enumeration *e, const Valued *x, const Valued *y, ThenFn *then)
{
    static const ExprOp ops[] = { EXPR_SUB, EXPR_ADD, EXPR_FLOOR, EXPR_CEIL };
    for (size_t i = 0; i < sizeof small / sizeof *small; i++) {
        Valued c = number_of(e, small[i]), a, b, v;
        for (int k = 0; k < 4; k++) {
            double bits = x->bits + y->bits + 2 * BITS_OP + c.bits + (ops[k] == EXPR_CEIL);
            if ((k > 1 && small[i] == 1) || !combine(e, &a, ops[k], x, &c, bits) ||
                !combine(e, &b, ops[k], y, &c, bits))
                continue;
            if (combine(e, &v, EXPR_MUL, &a, &b, bits + BITS_OP))
                then(e, &v);
            if (k > 1 && combine(e, &v, EXPR_ADD, &a, &b, bits + BITS_OP))
                then(e, &v);
        }
    }
}

/* c - x % c, which is c and not 0 where nothing is lacking; behind a half of c, and with that half
 * added: segments that overlap by half. */
static void whole_gap(const Enumeration *e, const Valued *x, ThenFn *then)
{
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers && numbers[i] <= 64; i++) {
        Valued c = number_of(e, numbers[i]), half = number_of(e, numbers[i] / 2), from, rest, gap,
               more;
        double bits = x->bits + 2 * BITS_OP + c.bits + 1;
        if (numbers[i] == 1)
            continue;
        if (combine(e, &rest, EXPR_MOD, x, &c, bits) &&
            combine(e, &gap, EXPR_SUB, &c, &rest, bits))
            then(e, &gap);
        bits += 2 * BITS_OP;
        if (!combine(e, &from, EXPR_ADD, x, &half, bits) ||
            !combine(e, &rest, EXPR_MOD, &from, &c, bits) ||
            !combine(e, &gap, EXPR_SUB, &c, &rest, bits))
            continue;
        then(e, &gap);
        if (combine(e, &more, EXPR_ADD, &gap, &half, bits + BITS_OP))
            then(e, &more);
    }
}

/* int(0.7 * n), and rounded otherwise. */
static void share_forms(const Enumeration *e, const Valued *x, ThenFn *then)
{
    static const ExprOp ops[] = { EXPR_SCALED, EXPR_ROUNDED, EXPR_RAISED };
    for (int i = 0; i < NSHARE; i++) {
        double bits = x->bits + 2 * BITS_OP + e->share[i].bits;
        Valued v;
        for (int k = 0; k < 3 && combine_number(e, &v, ops[k], x, shares[i], bits + k); k++)
            then(e, &v);
    }
}

/* Whole roots and logarithms, and the powers of two at or above and below. */
static void special_forms(const Enumeration *e, const Valued *x, ThenFn *then)
{
    static const ExprOp ops[] = { EXPR_ROOT, EXPR_BITS };
    Valued              one = number_of(e, 1), v, w, low, bits, power;
    for (int i = 0; i < 2; i++) {
        double bits_of = x->bits + BITS_OP + BITS_SPECIAL;
        if (combine(e, &v, ops[i], x, NULL, bits_of))
            then(e, &v);
        combine(e, &low, EXPR_SUB, x, &one, x->bits);
        if (!combine(e, &v, ops[i], &low, NULL, bits_of + 1))
            continue;
        if (ops[i] == EXPR_BITS)                /* the logarithm rounded up, the root rounded up */
            then(e, &v);
        else if (combine(e, &w, EXPR_ADD, &v, &one, v.bits))
            then(e, &w);
    }
    for (int i = 0; i < 2; i++) {
        bool below = i && combine(e, &bits, EXPR_BITS, x, NULL, x->bits) &&
                     combine(e, &low, EXPR_SUB, &bits, &one, x->bits);
        bool above = !i && combine(e, &low, EXPR_SUB, x, &one, x->bits) &&
                     combine(e, &bits, EXPR_BITS, &low, NULL, x->bits);
        if ((below || above) && combine(e, &power, EXPR_POWER, below ? &low : &bits, NULL,
                                        x->bits + 2 * BITS_OP + BITS_SPECIAL))
            then(e, &power);
    }
    triangle_side(e, x, then);
    share_forms(e, x, then);
}

/* Where something is put on both sides, each gets a half. */
static void say_halves(const Enumeration *e, const Valued *v)
{
    static const ExprOp part[] = { EXPR_FLOOR, EXPR_CEIL };
    Valued              two = number_of(e, 2), half;
    say(e, v);
    for (int i = 0; i < 2; i++)
        if (combine(e, &half, part[i], v, &two,
                    v->bits + BITS_OP + two.bits + i + bits_of_halving(v)))
            say(e, &half);
}

/* And the next: between both lies what is looked for. */
static void say_next(const Enumeration *e, const Valued *v)
{
    Valued      one = number_of(e, 1), next;
    const Expr *of = v->expr.a;
    say_halves(e, v);
    if (of->op == EXPR_SUB && of->b->op == EXPR_NUMBER && of->b->number == 1 &&
        combine(e, &next, EXPR_ADD, v, &one, v->bits + BITS_OP))
        say(e, &next);
}

/* n + (k - 1)//2: as much lies on either side. */
static void beside_half(const Enumeration *e, const Valued *v)
{
    Valued two = number_of(e, 2), half, sum;
    if (!combine(e, &half, EXPR_FLOOR, v, &two, v->bits + BITS_OP + two.bits))
        return;
    for (int i = 0; i < e->bases->n; i++) {
        Valued s = size_of(e, i);
        if (combine(e, &sum, EXPR_ADD, &s, &half, half.bits + s.bits + BITS_OP))
            say(e, &sum);
        if (combine(e, &sum, EXPR_SUB, &s, &half, half.bits + s.bits + BITS_OP))
            say(e, &sum);
    }
}

/* At least 1, at least 0: what is computed may not be less. */
static void at_least(const Enumeration *e, const Valued *v, ThenFn *then)
{
    Valued floor_of, clamped;
    for (int least = 0; least < 2; least++) {
        floor_of = number_of(e, least);
        if (combine(e, &clamped, EXPR_MAX, v, &floor_of,
                    v->bits + BITS_OP + floor_of.bits + BITS_LEAST))
            then(e, &clamped);
    }
}

/* int(0.3 * (n - 1)): of places up to the last, or behind the first; rarely with other numbers. */
static void share_of_sum(const Enumeration *e, const Valued *v)
{
    Valued x = *v;
    if (v->expr.op != EXPR_ADD && v->expr.op != EXPR_SUB)
        return;
    bool beside = v->expr.b->op == EXPR_NUMBER;
    x.bits += beside && !(v->expr.op == EXPR_SUB && v->expr.b->number == 1) ? BITS_CLAMP : 0;
    share_forms(e, &x, say_next);
}

static void second_step(const Enumeration *e, const Valued *v)
{
    say_halves(e, v);
    at_least(e, v, say_halves);
    with_number(e, v, small, sizeof small / sizeof *small, say_halves);
    share_of_sum(e, v);
    if (is_plain(v))
        beside_half(e, v);
    cut_both_ends(e, v, say);
    for (int i = 0; i < e->bases->n; i++) {
        Valued s = size_of(e, i);
        with_other(e, v, &s, true, say_halves);
        with_other(e, &s, v, false, say_halves);
    }
}

static void both_sizes(const Enumeration *e, const Valued *x, const Valued *y)
{
    Valued sum;
    alike(e, x, y, say);
    if (combine(e, &sum, EXPR_ADD, x, y, x->bits + y->bits + BITS_OP)) {
        sum.bits -= BITS_OP;                    /* said once, and meant twice */
        pair_counts(e, &sum, say);
    }
}

void p2o_enumerate_whole(const Bases *b, ExprFn *fn, void *user)
{
    Enumeration e = enumeration_of(b, fn, user);
    for (int i = 0; i < b->n; i++) {
        Valued x = size_of(&e, i);
        say(&e, &x);
        with_number(&e, &x, numbers, sizeof numbers / sizeof *numbers, second_step);
        special_forms(&e, &x, second_step);
        pair_counts(&e, &x, say);
        whole_gap(&e, &x, say);
        for (int k = 0; k < b->n; k++) {
            Valued y = size_of(&e, k);
            if (k != i) {
                with_other(&e, &x, &y, k <= i, second_step);
                if (k < i)
                    both_sizes(&e, &x, &y);
            } else {
                Valued square;
                if (combine(&e, &square, EXPR_MUL, &x, &x, x.bits * 2 + BITS_OP))
                    second_step(&e, &square);
            }
        }
    }
}

void p2o_enumerate_own(const Bases *b, int nown, ExprFn *fn, void *user)
{
    Enumeration e = enumeration_of(b, fn, user);
    for (int i = 0; i < nown; i++) {
        Valued x = size_of(&e, i);
        say(&e, &x);
        with_number(&e, &x, numbers, sizeof numbers / sizeof *numbers, say);
        for (int k = 0; k < b->n; k++) {
            Valued y = size_of(&e, k);
            with_other(&e, &x, &y, k <= i || k >= nown, say_halves);
            if (k >= nown)
                with_other(&e, &y, &x, false, say_halves);
        }
    }
}

static void say_pair(const Enumeration *e, ExprOp op, const Valued *x, const Valued *y)
{
    Valued out;
    if (combine(e, &out, op, x, y, x->bits + y->bits + BITS_OP))
        say(e, &out);
}

/* log(n) / log(512), log(n, 20) */
static void logarithms_to(const Enumeration *e, const Valued *v)
{
    static const double to[] = { 10, 16, 20, 32, 50, 64, 100, 128, 256, 512, 1000, 1024, 2048, 4096,
                                 10000 };
    Valued              log_of;
    if (!combine(e, &log_of, EXPR_LOG, v, NULL, v->bits + BITS_OP))
        return;
    for (size_t i = 0; i < sizeof to / sizeof *to; i++) {
        Valued number = number_of(e, to[i]), base;
        if (combine(e, &base, EXPR_LOG, &number, NULL, number.bits))
            say_pair(e, EXPR_QUOTIENT, &log_of, &base);
    }
}

/* Of a whole expression: itself, its root, logarithms and the inverses, times or divided by a
 * number. */
static void float_forms(const Enumeration *e, const Valued *v)
{
    static const double factors[] = { 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 25, 32, 50, 64, 100, 128,
                                      256, 512, 1000, 10000, PI, 2 * PI, PI / 2 };
    static const ExprOp ops[] = { EXPR_SIZE, EXPR_SQRT, EXPR_LOG, EXPR_LOG2 };
    Valued              one = number_of(e, 1), form;
    for (int i = 0; i < 4; i++) {
        form = *v;
        if (i && !combine(e, &form, ops[i], v, NULL, v->bits + BITS_OP + (i > 1)))
            continue;
        Valued plain = form;
        plain.bits += i ? 0 : BITS_WHOLE;
        if (plain.bits <= DEAREST)
            say(e, &plain);
        one.bits = 0;
        say_pair(e, EXPR_QUOTIENT, &one, &form);
        for (size_t k = 0; k < sizeof factors / sizeof *factors; k++) {
            Valued c = number_of(e, factors[k]);
            say_pair(e, EXPR_QUOTIENT, &form, &c);
            say_pair(e, EXPR_QUOTIENT, &c, &form);
            say_pair(e, EXPR_MUL, &form, &c);
        }
        for (int k = 0; k < NSHARE; k++) {
            const Valued *c = &e->share[k];
            say_pair(e, EXPR_MUL, &form, c);
            say_pair(e, EXPR_QUOTIENT, c, &form);
            say_pair(e, EXPR_ADD, &form, c);
            say_pair(e, EXPR_SUB, &form, c);
        }
    }
    logarithms_to(e, v);
    for (int i = 0; i < e->bases->n; i++) {
        Valued s = size_of(e, i);
        if (v->expr.op == EXPR_SIZE && v->expr.base == i)
            continue;
        say_pair(e, EXPR_QUOTIENT, v, &s);
        say_pair(e, EXPR_QUOTIENT, &s, v);
    }
}

void p2o_enumerate_float(const Bases *b, ExprFn *fn, void *user)
{
    Enumeration e = enumeration_of(b, fn, user);
    for (int i = 0; i < b->n; i++) {
        Valued x = size_of(&e, i), square;
        float_forms(&e, &x);
        with_number(&e, &x, small, sizeof small / sizeof *small, float_forms);
        pair_counts(&e, &x, float_forms);
        if (combine(&e, &square, EXPR_MUL, &x, &x, x.bits * 2 + BITS_OP))
            float_forms(&e, &square);
        for (int k = 0; k < b->n; k++) {
            Valued y = size_of(&e, k);
            if (k != i)
                with_other(&e, &x, &y, k <= i, float_forms);
        }
    }
}

const Expr *p2o_expr_keep(Arena *a, const Expr *e)
{
    if (!e)
        return NULL;
    Expr *x = NEW(a, Expr);
    *x = *e;
    x->a = p2o_expr_keep(a, e->a);
    x->b = p2o_expr_keep(a, e->b);
    x->c = p2o_expr_keep(a, e->c);
    return x;
}

const Expr *p2o_expr_of(Arena *a, ExprOp op, const Expr *x, const Expr *y)
{
    Expr *e = NEW(a, Expr);
    *e = (Expr){ .op = op, .a = x, .b = y };
    return e;
}

const Expr *p2o_expr_number(Arena *a, double v)
{
    Expr *e = NEW(a, Expr);
    *e = (Expr){ .op = EXPR_NUMBER, .number = v };
    return e;
}

bool p2o_expr_is_number(const Expr *e) { return e->op == EXPR_NUMBER; }

Dim p2o_expr_dim(const Bases *b, const Expr *e)
{
    Dims   *t = b->dims;
    Dim     x = e->a ? p2o_expr_dim(b, e->a) : NULL, y = e->b ? p2o_expr_dim(b, e->b) : NULL;
    int64_t whole;
    switch (e->op) {
    case EXPR_NUMBER: return p2o_whole(e->number, &whole) ? p2o_dim_int(t, whole) : NULL;
    case EXPR_SIZE: return b->dim[e->base];
    case EXPR_ADD: return p2o_dim_add(t, x, y);
    case EXPR_SUB: return p2o_dim_sub(t, x, y);
    case EXPR_MUL: return p2o_dim_mul(t, x, y);
    case EXPR_FLOOR: return p2o_dim_floordiv(t, x, y);
    case EXPR_CEIL: return p2o_dim_ceildiv(t, x, y);
    case EXPR_MOD: return p2o_dim_mod(t, x, y);
    case EXPR_LACK: return p2o_dim_mod(t, p2o_dim_neg(t, x), y);
    case EXPR_MIN: return p2o_dim_min(t, x, y);
    case EXPR_MAX: return p2o_dim_max(t, x, y);
    case EXPR_ROOT: return p2o_dim_fn(t, FN_ISQRT, 0, x);
    case EXPR_BITS: return p2o_dim_fn(t, FN_BIT_LENGTH, 0, x);
    case EXPR_POWER: return p2o_dim_fn(t, FN_POW2, 0, x);
    case EXPR_SCALED: return p2o_dim_fn(t, FN_TRUNC, e->number, x);
    case EXPR_RAISED: return p2o_dim_fn(t, FN_CEIL, e->number, x);
    case EXPR_ROUNDED: return p2o_dim_fn(t, FN_ROUND, e->number, x);
    case EXPR_NEAREST: return p2o_dim_fn(t, FN_ROUND_OVER, e->number, x);
    default: return NULL;
    }
}

static const char *call_text(Arena *a, const Bases *b, const char *name, const Expr *e)
{
    return p2o_printf(a, "%s(%s)", name, p2o_expr_text(a, b, e->a));
}

/* Whole parts are Dims, whose texts have no brackets around them. */
static const char *operand_text(Arena *a, const Bases *b, const Expr *e)
{
    bool        alone = e->op == EXPR_NUMBER || e->op == EXPR_SIZE || !p2o_expr_dim(b, e);
    const char *text = p2o_expr_text(a, b, e);
    return alone ? text : p2o_printf(a, "(%s)", text);
}

static const char *infix_text(Arena *a, const Bases *b, const char *op, const Expr *e)
{
    return p2o_printf(a, "(%s %s %s)", operand_text(a, b, e->a), op, operand_text(a, b, e->b));
}

const char *p2o_expr_text(Arena *a, const Bases *b, const Expr *e)
{
    char number[32];
    Dim  d = p2o_expr_dim(b, e);
    if (d)
        return p2o_dim_text(b->dims, d);
    switch (e->op) {
    case EXPR_NUMBER: return p2o_printf(a, "%s", p2o_format_f64(number, e->number));
    case EXPR_SQRT: return call_text(a, b, "sqrt", e);
    case EXPR_LOG: return call_text(a, b, "log", e);
    case EXPR_LOG2: return call_text(a, b, "log2", e);
    case EXPR_EXP: return call_text(a, b, "exp", e);
    case EXPR_QUOTIENT: return infix_text(a, b, "/", e);
    case EXPR_TO_THE: return infix_text(a, b, "**", e);
    case EXPR_ADD: return infix_text(a, b, "+", e);
    case EXPR_SUB: return infix_text(a, b, "-", e);
    case EXPR_MUL: return infix_text(a, b, "*", e);
    case EXPR_FLOOR: return infix_text(a, b, "//", e);
    case EXPR_CEIL:
        return p2o_printf(a, "ceil(%s / %s)", p2o_expr_text(a, b, e->a), p2o_expr_text(a, b, e->b));
    case EXPR_MOD: return infix_text(a, b, "%", e);
    case EXPR_LACK:
        return p2o_printf(a, "(-%s %% %s)", p2o_expr_text(a, b, e->a), p2o_expr_text(a, b, e->b));
    case EXPR_MIN:
        return p2o_printf(a, "min(%s, %s)", p2o_expr_text(a, b, e->a), p2o_expr_text(a, b, e->b));
    case EXPR_MAX:
        return p2o_printf(a, "max(%s, %s)", p2o_expr_text(a, b, e->a), p2o_expr_text(a, b, e->b));
    default: break;                             /* whole ones are Dims */
    }
    return "?";
}
