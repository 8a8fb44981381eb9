#include "dyn/product.h"

#include <math.h>
#include <stdlib.h>

#include "base/vec.h"

enum {
    MOST_SIZES = 12,            /* a table over more of them takes too long */
    MOST_PRODUCTS = 1 << 17,    /* more than MOST_SIZES sizes have */
    MOST_KEYS = 4,              /* choices of captures: each takes as long as the table */
    NPOWER = 4,                 /* parts of one expression */
    /* Bits. */
    DEAREST_PAIR = 22, DEAREST_TRIPLE = 30, DEAREST_ADDED = 20,
    BITS_NEXT = 1,              /* of the 1 in n - 1 and n + 1, and of a size once more */
    BITS_ROUNDED = 2,           /* more, of what is rounded */
    BITS_WHOLE_FN = 6,          /* isqrt, bit_length */
    BITS_LOG = 1,               /* more than another function */
    BITS_SQUARE = 2,
};

struct Products {
    Arena           *arena;
    const Bases     *bases;
    VEC(ProductPart) parts;     /* NPOWER of each expression */
    VEC(Product)     list;
    Keys             keys[MOST_KEYS];
    int              nkeys;
};

static const int powers[NPOWER] = { 1, -1, 2, -2 };

/* The first value, then how far apart all of them are: as of any whole number. */
static double bits_in(const double *at, int n)
{
    double least = at[0], most = at[0];
    for (int k = 1; k < n; k++) {
        least = fmin(least, at[k]);
        most = fmax(most, at[k]);
    }
    return log2(1 + fabs(at[0])) + (n - 1) * log2(1 + most - least);
}

/* false: it has no value in some capture that is fitted to, or the same in all of them.  In checks
 * it may have none. */
static bool part_values(const Bases *b, const Expr *e, double *at)
{
    bool varies = false;
    for (int k = 0; k < b->ncapture; k++) {
        bool known = p2o_expr_eval(b, e, k, &at[k]);
        if (!known && k < b->nfit)
            return false;
        at[k] = known ? at[k] : NAN;
        varies |= k < b->nfit && at[k] != at[0];
    }
    return varies;
}

static void add_part(Products *t, const Expr *e, const Expr *whole, double bits, int base)
{
    ProductPart x = { .expr = e, .bits = bits, .base = base };
    double      at[MAX_CAPTURES], held[MAX_CAPTURES];
    if (!part_values(t->bases, e, at) || !part_values(t->bases, whole, held))
        return;
    x.held = bits_in(held, t->bases->ncapture);
    for (int i = 0; i < NPOWER; i++) {
        x.power = powers[i];
        for (int k = 0; k < t->bases->ncapture; k++)
            x.at[k] = i == 0 ? at[k] : i == 1 ? 1 / at[k] : i == 2 ? at[k] * at[k]
                                                                   : 1 / (at[k] * at[k]);
        VEC_PUSH(t->arena, &t->parts, x);
    }
}

static const Expr *beside(Products *t, ExprOp op, const Expr *x, double number)
{
    return p2o_expr_of(t->arena, op, x, p2o_expr_number(t->arena, number));
}

/* A whole expression, and its logarithm. */
static void add_with_log(Products *t, const Expr *e, double bits, int base)
{
    add_part(t, e, e, bits, base);
    add_part(t, p2o_expr_of(t->arena, EXPR_LOG, e, NULL), e, bits + BITS_OP + BITS_LOG, base);
}

/* n, and a few more or less. */
static void add_neighbours(Products *t, const Expr *n, int base)
{
    static const int by[] = { 1, 2, 3, 4, 5, 8, 10 };
    double           bits = p2o_base_bits(t->bases);
    add_with_log(t, n, bits, base);
    for (size_t i = 0; i < COUNT_OF(by); i++) {
        double more = BITS_OP + (i ? p2o_number_bits(by[i]) : BITS_NEXT);
        add_with_log(t, beside(t, EXPR_SUB, n, by[i]), bits + more, base);
        add_with_log(t, beside(t, EXPR_ADD, n, by[i]), bits + more, base);
    }
    const Expr *twice = beside(t, EXPR_MUL, n, 2);
    add_part(t, p2o_expr_of(t->arena, EXPR_LOG, twice, NULL), twice,
             bits + 2 * BITS_OP + BITS_LOG + 1, base);
    add_part(t, beside(t, EXPR_SUB, twice, 1), twice, bits + 2 * BITS_OP + 2, base);
    add_part(t, beside(t, EXPR_ADD, twice, 1), twice, bits + 2 * BITS_OP + 2, base);
}

/* What is rounded, and whole functions. */
static void add_rounded(Products *t, const Expr *n, int base)
{
    static const int by[] = { 2, 3, 4, 8, 16 };
    double           bits = p2o_base_bits(t->bases) + BITS_OP;
    for (size_t i = 0; i < COUNT_OF(by); i++)
        for (int up = 0; up < 2; up++) {
            const Expr *e = beside(t, up ? EXPR_CEIL : EXPR_FLOOR, n, by[i]);
            add_part(t, e, e, bits + p2o_number_bits(by[i]) + BITS_ROUNDED + up, base);
        }
    const Expr *less = beside(t, EXPR_SUB, n, 1);
    const Expr *of[] = { p2o_expr_of(t->arena, EXPR_ROOT, n, NULL),
                         p2o_expr_of(t->arena, EXPR_BITS, n, NULL),
                         p2o_expr_of(t->arena, EXPR_BITS, less, NULL) };
    const Expr *next = p2o_expr_of(t->arena, EXPR_POWER, of[2], NULL);  /* power of two */
    add_part(t, next, next, bits + BITS_WHOLE_FN + BITS_OP, base);
    for (int i = 0; i < 3; i++) {
        const Expr *more = beside(t, EXPR_ADD, of[i], 1);
        add_part(t, of[i], of[i], bits + BITS_WHOLE_FN, base);
        add_part(t, more, more, bits + BITS_WHOLE_FN + BITS_OP + BITS_NEXT, base);
    }
}

static void add_pairs(Products *t, const Expr *n, const Expr *m)
{
    static const ExprOp ops[] = { EXPR_ADD, EXPR_SUB, EXPR_MIN, EXPR_MAX };
    double              bits = 2 * p2o_base_bits(t->bases) + BITS_OP;
    for (size_t i = 0; i < COUNT_OF(ops); i++)
        add_with_log(t, p2o_expr_of(t->arena, ops[i], n, m), bits + (i > 1), -1);
    const Expr *product = p2o_expr_of(t->arena, EXPR_MUL, n, m);
    const Expr *less = beside(t, EXPR_SUB, product, 1), *more = beside(t, EXPR_ADD, product, 1);
    add_part(t, p2o_expr_of(t->arena, EXPR_LOG, product, NULL), product, bits + BITS_OP + BITS_LOG,
             -1);
    add_with_log(t, less, bits + BITS_OP + BITS_NEXT, -1);
    add_with_log(t, more, bits + BITS_OP + BITS_NEXT, -1);
}

static const Expr *size_expr(Products *t, int base)
{
    Expr *e = NEW(t->arena, Expr);
    *e = (Expr){ .op = EXPR_SIZE, .base = base };
    return e;
}

static void add_parts(Products *t)
{
    for (int i = 0; i < t->bases->n; i++) {
        const Expr *n = size_expr(t, i);
        add_neighbours(t, n, i);
        add_rounded(t, n, i);
        for (int k = 0; k < i; k++)
            add_pairs(t, size_expr(t, k), n);
    }
}

/* Of parts of one size it is said once. */
static double bits_of_parts(const Products *t, const uint16_t *part, int n)
{
    double bits = (n - 1) * BITS_OP;
    for (int i = 0; i < n; i++) {
        const ProductPart *x = &t->parts.at[part[i]];
        bool               again = false;
        for (int k = 0; k < i && x->base >= 0; k++)
            again |= t->parts.at[part[k]].base == x->base;
        bits += x->bits + (abs(x->power) == 2 ? BITS_SQUARE : 0) -
                (again ? p2o_base_bits(t->bases) - BITS_NEXT : 0);
    }
    return bits;
}

static void add_product(Products *t, int n, const uint16_t *part, double dearest)
{
    Product p = { .n = (uint8_t)n, .bits = (float)bits_of_parts(t, part, n) };
    for (int i = 0; i < n; i++)
        p.part[i] = part[i];
    if (p.bits <= dearest && t->list.n < MOST_PRODUCTS)
        VEC_PUSH(t->arena, &t->list, p);
}

/* x*y and x/y, and one of them squared; their inverses are powers of these. */
static void add_pairs_of(Products *t, uint16_t x, uint16_t y)
{
    static const uint8_t of[][2] = { { 0, 0 }, { 0, 1 }, { 2, 0 }, { 0, 2 }, { 2, 1 }, { 0, 3 } };
    double least = t->parts.at[x].bits + t->parts.at[y].bits - p2o_base_bits(t->bases);
    if (least > DEAREST_PAIR)
        return;
    for (size_t i = 0; i < COUNT_OF(of); i++)
        add_product(t, 2, (uint16_t[]){ (uint16_t)(x + of[i][0]), (uint16_t)(y + of[i][1]) },
                    DEAREST_PAIR);
}

static bool is_near_size(const ProductPart *x, bool log_too)
{
    const Expr *e = x->expr->op == EXPR_LOG && log_too ? x->expr->a : x->expr;
    return x->power == 1 && x->base >= 0 &&
           (e->op == EXPR_SIZE || e->op == EXPR_ADD || e->op == EXPR_SUB) &&
           (e->op == EXPR_SIZE || e->a->op == EXPR_SIZE);
}

/* x*y*z, and with one of them below, perhaps squared; of sizes and what is near them, one of them
 * perhaps a logarithm. */
static void add_triples(Products *t)
{
    static const uint8_t of[][3] = { { 0, 0, 0 }, { 1, 0, 0 }, { 0, 1, 0 }, { 0, 0, 1 },
                                     { 3, 0, 0 }, { 0, 3, 0 }, { 0, 0, 3 } };
    VEC(uint16_t)        near = { 0 };
    for (size_t i = 0; i < t->parts.n; i += NPOWER)
        if (is_near_size(&t->parts.at[i], true))
            VEC_PUSH(t->arena, &near, (uint16_t)i);
    for (size_t i = 0; i < near.n; i++)
        for (size_t j = 0; j < near.n; j++)
            for (size_t k = 0; k < j; k++) {
                uint16_t x = near.at[i], y = near.at[j], z = near.at[k];
                bool     log = !is_near_size(&t->parts.at[x], false);
                if (!is_near_size(&t->parts.at[y], false) ||
                    !is_near_size(&t->parts.at[z], false) || (!log && j >= i))
                    continue;
                for (size_t m = 0; m < COUNT_OF(of); m++)
                    add_product(t, 3, (uint16_t[]){ (uint16_t)(x + of[m][0]),
                                                    (uint16_t)(y + of[m][1]),
                                                    (uint16_t)(z + of[m][2]) },
                                DEAREST_TRIPLE);
            }
}

/* a*b*c*d of sizes, and with some of them below. */
static void add_fours(Products *t)
{
    uint16_t size[MOST_SIZES];
    int      n = 0;
    for (size_t i = 0; i < t->parts.n; i += NPOWER)
        if (t->parts.at[i].expr->op == EXPR_SIZE)
            size[n++] = (uint16_t)i;
    for (int a = 0; a < n; a++)
        for (int b = 0; b < a; b++)
            for (int c = 0; c < b; c++)
                for (int d = 0; d < c; d++)
                    for (int sign = 0; sign < 8; sign++)
                        add_product(t, 4, (uint16_t[]){ size[a],
                                                        (uint16_t)(size[b] + (sign & 1)),
                                                        (uint16_t)(size[c] + (sign >> 1 & 1)),
                                                        (uint16_t)(size[d] + (sign >> 2)) },
                                    DEAREST_TRIPLE);
}

static void add_products(Products *t)
{
    for (size_t i = 0; i < t->parts.n; i += NPOWER)
        add_product(t, 1, (uint16_t[]){ (uint16_t)i }, DEAREST_PAIR);
    add_fours(t);
    add_triples(t);
    for (size_t i = 0; i < t->parts.n; i += NPOWER)
        for (size_t k = 0; k < i; k += NPOWER)
            add_pairs_of(t, (uint16_t)i, (uint16_t)k);
}

static bool all_sizes_change(const Bases *b)
{
    for (int i = 0; i < b->n; i++) {
        bool changes = false;
        for (int k = 1; k < b->nfit; k++)
            changes |= b->at[i][k] != b->at[i][0];
        if (!changes)
            return false;
    }
    return b->n > 0;
}

Products *p2o_products_new(Arena *a, const Bases *b)
{
    if (b->nfit < 2 || b->n > MOST_SIZES || !all_sizes_change(b))
        return NULL;
    Products *t = NEW(a, Products);
    *t = (Products){ .arena = a, .bases = b };
    add_parts(t);
    add_products(t);
    return t;
}

const Product *p2o_product_at(const Products *t, uint32_t i) { return &t->list.at[i]; }

double p2o_product_value(const Products *t, const Product *p, double power, int k)
{
    double v = 1;
    for (int i = 0; i < p->n; i++)
        v *= t->parts.at[p->part[i]].at[k];
    return power == 1 ? v : power == -1 ? 1 / v : power == 0.5 ? sqrt(v) : pow(v, power);
}

double p2o_product_held(const Products *t, const Product *p)
{
    double bits = 0;
    for (int i = 0; i < p->n; i++)
        bits += t->parts.at[p->part[i]].held;
    return bits;
}

static int by_key(const void *x, const void *y)
{
    const Keyed *a = x, *b = y;
    if (a->key != b->key)
        return a->key < b->key ? -1 : 1;
    if (a->product != b->product)
        return a->product < b->product ? -1 : 1;
    return (a->power > b->power) - (a->power < b->power);
}

static double key_of_values(KeyKind kind, const double *v)
{
    switch (kind) {
    case KEY_RATIO: return v[1] / v[0];
    case KEY_DIFFERENCE: return v[1] - v[0];
    case KEY_SHARE: return (v[2] - v[0]) / (v[1] - v[0]);
    case NKEY: break;
    }
    return NAN;
}

static bool has_key(const Product *p, KeyKind kind)
{
    return kind == KEY_RATIO || p->bits <= DEAREST_ADDED;
}

static size_t n_with_keys(const Products *t, KeyKind kind)
{
    size_t n = 0;
    for (size_t i = 0; i < t->list.n; i++)
        n += has_key(&t->list.at[i], kind);
    return n;
}

/* A ratio of powers is a power of the ratio; a difference is not. */
static void make_keys(const Products *t, KeyKind kind, const int *k, int nk, KeyedList *out)
{
    static const float of[] = { 1, -1, 0.5f, -0.5f };
    size_t             npower = kind == KEY_RATIO ? 1 : COUNT_OF(of);
    out->at = NEW_N(t->arena, Keyed, n_with_keys(t, kind) * npower + 1);
    for (size_t i = 0; i < t->list.n; i++)
        for (size_t j = 0; j < npower; j++) {
            double         v[3] = { 0 };
            const Product *p = &t->list.at[i];
            if (!has_key(p, kind))
                break;
            for (int m = 0; m < nk; m++)
                v[m] = p2o_product_value(t, p, of[j], k[m]);
            double key = key_of_values(kind, v);
            if (isfinite(key))
                out->at[out->n++] = (Keyed){ key, (uint32_t)i, of[j] };
        }
    qsort(out->at, out->n, sizeof *out->at, by_key);
}

const Keys *p2o_products_keys(Products *t, unsigned mask)
{
    int k[3], nk = 0;
    for (int i = 0; i < t->nkeys; i++)
        if (t->keys[i].mask == mask)
            return &t->keys[i];
    for (int i = 0; i < t->bases->ncapture && nk < 3; i++)
        if (mask >> i & 1)
            k[nk++] = i;
    if (t->nkeys == MOST_KEYS || nk < 2)
        return NULL;
    Keys *out = &t->keys[t->nkeys++];
    out->mask = mask;
    make_keys(t, KEY_RATIO, k, 2, &out->by[KEY_RATIO]);
    make_keys(t, KEY_DIFFERENCE, k, 2, &out->by[KEY_DIFFERENCE]);
    if (nk > 2)
        make_keys(t, KEY_SHARE, k, 3, &out->by[KEY_SHARE]);
    return out;
}

/* x, or what it is already times x. */
static const Expr *times(Arena *a, const Expr *x, const Expr *y)
{
    return x ? p2o_expr_of(a, EXPR_MUL, x, y) : y;
}

static const Expr *fraction_of(Arena *a, const Expr *x, const Expr *y)
{
    return y ? p2o_expr_of(a, EXPR_QUOTIENT, x ? x : p2o_expr_number(a, 1), y) : x;
}

static const Expr *to_power(Arena *a, const Expr *x, double power)
{
    if (power == 1)
        return x;
    if (power == 2)
        return p2o_expr_of(a, EXPR_MUL, x, x);
    return power == 0.5 ? p2o_expr_of(a, EXPR_SQRT, x, NULL)
                        : p2o_expr_of(a, EXPR_TO_THE, x, p2o_expr_number(a, power));
}

/* Parts with one power in common stand in one root: sqrt(n*(n - 1)). */
const Expr *p2o_product_expr(const Products *t, const Product *p, double power)
{
    const Expr *above = NULL, *below = NULL;
    for (int square = 1; square <= 2; square++) {
        const Expr *up = NULL, *down = NULL;
        double      to = fabs(power) * square;
        for (int i = 0; i < p->n; i++) {
            const ProductPart *x = &t->parts.at[p->part[i]];
            if (abs(x->power) != square)
                continue;
            if (x->power * power > 0)
                up = times(t->arena, up, x->expr);
            else
                down = times(t->arena, down, x->expr);
        }
        bool root = up && down && to != 1 && to != 2;
        if (root)
            up = fraction_of(t->arena, up, down);
        above = up ? times(t->arena, above, to_power(t->arena, up, to)) : above;
        below = down && !root ? times(t->arena, below, to_power(t->arena, down, to)) : below;
    }
    return fraction_of(t->arena, above, below);
}
