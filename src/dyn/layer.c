#include "dyn/search.h"

#include <math.h>

/* Two steps: what // and % make of the first, products, the less and the larger of two. */
void p2o_offer_second(Search *s)
{
    static const ExprOp pairs[] = { EXPR_MUL, EXPR_MIN, EXPR_MAX };
    static const ExprOp parts[] = { EXPR_FLOOR, EXPR_MOD };
    enum { CHEAP = 120, SIZES = 24 };
    for (size_t i = 0; i < s->forms.n; i++) {
        const Form *x = s->forms.at[i];
        for (int j = 0; j < 2; j++) {
            for (int k = 1; k < NSTEP; k++)
                p2o_offer_made(s, parts[j], x, s->number[k], 0, s->t->whole);
            for (size_t k = 0; k < s->sizes.n && k < SIZES; k++)
                p2o_offer_made(s, parts[j], x, s->sizes.at[k], 0, s->t->whole);
        }
        for (size_t k = 0; k <= i && i < CHEAP; k++) {
            for (size_t j = 0; j < COUNT_OF(pairs); j++)
                p2o_offer_made(s, pairs[j], x, s->forms.at[k], 0, true);
            if (!s->two)
                continue;
            p2o_offer_made(s, EXPR_SUB, x, s->forms.at[k], 0, false);
            p2o_offer_made(s, EXPR_SUB, s->forms.at[k], x, 0, false);
        }
    }
}

/* T = X + Y or X - Y up to a number of each capture: what is left of T without X is looked up among
 * the forms. */

enum { NKEY = 8 };

typedef struct Key { double at[NKEY]; } Key;

typedef struct KeyPoints { int at[NKEY], from[NKEY], n; } KeyPoints;

static KeyPoints key_points(const Search *s, const Part *part)
{
    KeyPoints p = { .n = 0 };
    int       first = -1;
    for (int i = 0; i < NPOINT && p.n < NKEY; i++) {
        if (!set_has(&part->over, i))
            continue;
        if (first < 0 || s->points.of[i] != s->points.of[first])
            first = i;
        else if ((i - first) % 3 == 0) {
            p.at[p.n] = i;
            p.from[p.n++] = first;
        }
    }
    return p;
}

static Key key_of(const KeyPoints *p, const double *x, const double *less, double sign)
{
    Key k;
    memset(&k, 0, sizeof k);
    for (int i = 0; i < p->n; i++) {
        double v = x[p->at[i]] - x[p->from[i]];
        k.at[i] = sign * (v - (less ? less[p->at[i]] - less[p->from[i]] : 0)) + 0.0;
    }
    return k;
}

static void see_sum(Search *s, Part *part, const KeyPoints *p, const Map *by_key, const Form *x)
{
    static const ExprOp ops[] = { EXPR_ADD, EXPR_SUB };
    for (int i = 0; i < 2; i++) {
        Key         k = key_of(p, s->target[0].want, x->at, 1);
        for (int j = 0; j < p->n && i; j++)
            k.at[j] = -k.at[j] + 0.0;
        const Form *y = p2o_map_get(by_key, (Str){ (const char *)&k, sizeof k });
        if (!y || x->bits + y->bits >= search_dearest(s))
            continue;
        Form sum = p2o_form_of(ops[i], x, y, 0);
        if (part != &s->all) {
            p2o_offer_part(s, part, &s->target[0], &sum);
            continue;
        }
        Term t = p2o_fit(&s->points, &part->over, &s->target[0], &sum.expr, sum.bits, sum.at,
                         false);
        if (t.expr)
            p2o_search_see(s, t, false);
    }
}

static void offer_sums_over(Search *s, Part *part)
{
    enum { CHEAP = 300 };
    Map       by_key = { .arena = s->arena };
    KeyPoints p = key_points(s, part);
    if (p.n < 5)
        return;
    Key *keys = NEW_N(s->arena, Key, s->forms.n + 1);
    for (size_t i = 0; i < s->forms.n; i++) {
        keys[i] = key_of(&p, s->forms.at[i]->at, NULL, 1);
        void **slot = p2o_map_slot(&by_key, (Str){ (const char *)&keys[i], sizeof keys[i] });
        *slot = *slot ? *slot : s->forms.at[i];
    }
    for (size_t i = 0; i < s->forms.n; i++)
        see_sum(s, part, &p, &by_key, s->forms.at[i]);
    for (size_t i = 0; i < s->forms.n && i < CHEAP; i++) {
        for (size_t k = 0; k < s->sizes.n; k++) {
            Form x = p2o_form_of(EXPR_MUL, s->forms.at[i], s->sizes.at[k], 0);
            see_sum(s, part, &p, &by_key, &x);
        }
    }
}

void p2o_offer_sums(Search *s)
{
    if (s->two || !s->t->whole)
        return;
    offer_sums_over(s, &s->all);
    for (int i = 0; i < s->ncondition; i++)
        for (int j = 0; j < 2; j++)
            if (s->side[i][!j].best.expr && !s->side[i][j].best.expr)
                offer_sums_over(s, &s->side[i][j]);
}

/* Functions of forms. */

static void offer_squares(Search *s)
{
    enum { CHEAP = 1200 };
    for (size_t i = 0; i < s->forms.n && i < CHEAP; i++) {
        const Form *x = s->forms.at[i];
        p2o_offer_made(s, EXPR_MUL, x, x, -x->bits, false);
    }
}

static bool is_below_0(const Search *s, const Form *x)
{
    for (int k = 0; k < NQUICK; k++)
        if (x->at[s->quick[k]] < 0)
            return true;
    return false;
}

/* (i / n)**1.5: other powers are affine functions of the logarithm, unless an element is 0. */
static void offer_powers(Search *s)
{
    static const double powers[] = { 3, 1.5, 4, 0.75, 0.25, 1.0 / 3, 0.9, 0.8, 0.7, 0.6, 1.2, 2.5 };
    enum { CHEAP = 60, SIZES = 8 };
    for (size_t i = 0; i < s->forms.n && i < CHEAP; i++) {
        for (size_t j = 0; j < s->sizes.n && j < SIZES; j++) {
            Form ratio = p2o_form_of(EXPR_QUOTIENT, s->forms.at[i], s->sizes.at[j], 0);
            for (size_t k = 0; k < COUNT_OF(powers) && !is_below_0(s, &ratio); k++)
                p2o_offer_made(s, EXPR_TO_THE, &ratio, p2o_form_number(s, powers[k]), 0, false);
        }
    }
}

static void offer_turns(Search *s, const Form *angle)
{
    p2o_offer_made(s, EXPR_COS, angle, NULL, 0, true);
    p2o_offer_made(s, EXPR_SIN, angle, NULL, 0, true);
}

/* Blackman's window is an affine function of cos(x) - 0.16 * cos(2 * x). */
static void offer_blackman(Search *s, const Form *x, const Form *n)
{
    Form turn = *p2o_form_number(s, 2 * 3.14159265358979323846);
    turn.bits = BITS_STEP;
    Form ratio = p2o_form_of(EXPR_QUOTIENT, x, n, 0);
    Form angle = p2o_form_of(EXPR_MUL, &ratio, &turn, 0);
    Form twice = p2o_form_of(EXPR_MUL, &angle, s->number[1], -angle.bits);
    Form once_wave = p2o_form_of(EXPR_COS, &angle, NULL, 0);
    Form twice_wave = p2o_form_of(EXPR_COS, &twice, NULL, 0);
    Form less = p2o_form_of(EXPR_MUL, &twice_wave, p2o_form_number(s, 0.16), 0);
    p2o_offer_made(s, EXPR_SUB, &once_wave, &less, 0, false);
}

/* cos(2 pi x / n) and its like. */
static void offer_cosines(Search *s, const Form *x)
{
    static const double parts[] = { 1, 0.5, 2, 0.25, 4, 3, 6, 8 };
    for (size_t k = 0; k < s->sizes.n; k++) {
        const Form *n = s->sizes.at[k];
        if (n->bits > 2 * BITS_STEP + s->sizes.at[0]->bits)
            continue;
        Form ratio = p2o_form_of(EXPR_QUOTIENT, x, n, 0);
        if (s->t->nindex == 1)
            offer_blackman(s, x, n);
        for (size_t i = 0; i < COUNT_OF(parts); i++) {
            Form part = { .expr = { .op = EXPR_NUMBER,
                                    .number = 3.14159265358979323846 * parts[i] },
                          .bits = BITS_STEP + (double)i };
            for (int j = 0; j < NPOINT; j++)
                part.at[j] = part.expr.number;
            Form angle = p2o_form_of(EXPR_MUL, &ratio, &part, 0);
            offer_turns(s, &angle);
        }
    }
}

/* x / 10000**(2*(j//2) / d): sinusoids of positions. */
static void offer_sinusoids(Search *s, const Form *x, const Form *j, const Form *d)
{
    static const double bases[] = { 10000, 100, 1000, 10, 500, 500000, 1000000, 20, 2 };
    for (size_t i = 0; i < COUNT_OF(bases); i++) {
        for (int twice = 1; twice <= 2; twice++) {
            Form rate = { .expr = { .op = EXPR_NUMBER, .number = -log(bases[i]) * twice },
                          .bits = p2o_number_bits(bases[i]) / 2 + twice };
            for (int k = 0; k < NPOINT; k++)
                rate.at[k] = rate.expr.number;
            Form ratio = p2o_form_of(EXPR_QUOTIENT, j, d, 0);
            Form power = p2o_form_of(EXPR_MUL, &ratio, &rate, 0);
            Form frequency = p2o_form_of(EXPR_EXP, &power, NULL, 0);
            Form angle = p2o_form_of(EXPR_MUL, x, &frequency, 0);
            p2o_offer(s, &angle, true);
            offer_turns(s, &angle);
        }
    }
}

/* Of an index, of the next, of halves between them; of products of two. */
static void offer_waves(Search *s)
{
    enum { KINDS = 3 };
    size_t n = s->leaves.n;
    Form  *x = NEW_N(s->arena, Form, n * KINDS), *twice = NEW_N(s->arena, Form, n);
    for (size_t i = 0; i < n; i++) {
        twice[i] = p2o_form_of(EXPR_MUL, s->leaves.at[i], s->number[1], -1);
        x[KINDS * i] = *s->leaves.at[i];
        x[KINDS * i + 1] = p2o_form_of(EXPR_ADD, s->leaves.at[i], s->number[0], 0);
        x[KINDS * i + 2] = p2o_form_of(EXPR_ADD, &twice[i], s->number[0], 0);
    }
    for (size_t i = 0; i < n * KINDS; i++)
        offer_cosines(s, &x[i]);
    for (size_t i = 0; i < n * KINDS && s->t->nindex > 1; i++) {
        for (size_t k = 0; k < i; k++) {
            Form product = p2o_form_of(EXPR_MUL, &x[i], &x[k], 0);
            if (i / KINDS < (size_t)s->t->nindex && i / KINDS != k / KINDS)
                offer_cosines(s, &product);
        }
    }
}

static void offer_rate(Search *s, double rate, double bits)
{
    Form number = { .expr = { .op = EXPR_NUMBER, .number = rate }, .bits = bits };
    for (int k = 0; k < NPOINT; k++)
        number.at[k] = rate;
    Form angle = p2o_form_of(EXPR_MUL, s->index[0], &number, 0);
    offer_turns(s, rate == 1 ? s->index[0] : &angle);
}

/* sin(0.1 * i): rates that do not depend on sizes, as a column of a table of sinusoids has.  A rate
 * that is a power 10000**(-p / q) shows in the second element. */
static void offer_rates(Search *s)
{
    static const double rates[] = { 1, 0.1, 0.01, 0.001, 0.5, 0.25, 0.2, 2, 3, 10 };
    enum { MOST_PAIRS = 64 };           /* columns of such a table: d / 2 */
    if (s->t->nindex != 1)
        return;
    for (size_t k = 0; k < COUNT_OF(rates); k++)
        offer_rate(s, rates[k], p2o_number_bits(rates[k]));
    double second = fabs(s->t->at[0].v[1 % s->t->at[0].n]);
    for (int q = 2; q <= MOST_PAIRS && second <= 1; q++) {
        for (int p = 1; p < q; p++) {
            double rate = pow(10000, -(double)p / q);
            if (fabs(sin(rate) - second) < 1e-4 || fabs(cos(rate) - second) < 1e-4)
                offer_rate(s, rate, p2o_number_bits(10000) / 2 + p2o_number_bits(p) +
                                        p2o_number_bits(q) + BITS_STEP);
        }
    }
}

/* Logarithms, roots and inverses; powers too, where the logarithm of the elements is explained. */
static void offer_curves(Search *s)
{
    enum { CHEAP = 300 };
    for (size_t i = 0; i < s->forms.n && i < CHEAP; i++) {
        const Form *x = s->forms.at[i];
        bool        positive = true;
        for (int k = 0; k < NQUICK && positive; k++)
            positive = x->at[s->quick[k]] > 0;
        if (!positive)
            continue;
        p2o_offer_made(s, EXPR_LOG, x, NULL, 0, false);
        p2o_offer_made(s, EXPR_SQRT, x, NULL, 0, false);
        p2o_offer_made(s, EXPR_QUOTIENT, s->number[0], x, 0, false);
    }
}

/* log(1 + 8 * x / n): distances that are drawn together, of indices and of how far they are from
 * the middle. */
static void offer_log_ratios(Search *s)
{
    static const double times[] = { 1, 8, 2, 4, 10, 16, 100 };
    enum { CHEAP = 60, SIZES = 8 };
    for (size_t i = 0; i < s->forms.n && i < CHEAP; i++) {
        for (size_t k = 0; k < s->sizes.n && k < SIZES; k++) {
            Form ratio = p2o_form_of(EXPR_QUOTIENT, s->forms.at[i], s->sizes.at[k], 0);
            for (size_t j = 0; j < COUNT_OF(times) && !is_below_0(s, &ratio); j++) {
                Form more = p2o_form_of(EXPR_MUL, &ratio, p2o_form_number(s, times[j]), 0);
                Form one = p2o_form_of(EXPR_ADD, &more, s->number[0], 0);
                p2o_offer_made(s, EXPR_LOG, &one, NULL, 0, false);
            }
        }
    }
}

/* Places between those of another grid: the whole place below, and how far past it. */
static void offer_places(Search *s, const Form *x)
{
    p2o_offer_made(s, EXPR_FLOOR, x, s->number[0], 0, false);
    if (!s->t->whole)
        p2o_offer_made(s, EXPR_MOD, x, s->number[0], 0, false);
}

/* linspace(0, end, n), the last of which is `end` exactly. */
static void offer_ends(Search *s, const Form *x, const Form *end, const Form *last)
{
    Form       *step = NEW(s->arena, Form), *at = NEW(s->arena, Form), *past = NEW(s->arena, Form);
    Form       *all = NEW(s->arena, Form);
    const Expr *is_last;
    *step = p2o_form_of(EXPR_QUOTIENT, end, last, 0);
    *at = p2o_form_of(EXPR_MUL, x, step, 0);
    *past = p2o_form_of(EXPR_SUB, x, last, 0);
    is_last = p2o_expr_of(s->arena, EXPR_IS_0, &past->expr, NULL);
    *all = (Form){ .expr = { .op = EXPR_CHOICE, .a = &end->expr, .b = &at->expr, .c = is_last },
                   .bits = at->bits + BITS_STEP, .index = true };
    for (int i = 0; i < NPOINT; i++)
        all->at[i] = past->at[i] == 0 ? end->at[i] : at->at[i];
    offer_places(s, all);
    if (!s->t->whole)
        return;
    Form below = p2o_form_of(EXPR_FLOOR, all, s->number[0], 0);         /* and the next above */
    Form above = p2o_form_of(EXPR_ADD, &below, s->number[0], 0);
    p2o_offer_made(s, EXPR_MIN, &above, end, 0, false);
}

/* (i + 0.5) * m / n - 0.5, as images are resized. */
static void offer_centres(Search *s, const Form *x, const Form *m, const Form *n)
{
    Form *half = p2o_form_number(s, 0.5), *zero = p2o_form_number(s, 0);
    Form  middle = p2o_form_of(EXPR_ADD, x, half, 0);
    Form  product = p2o_form_of(EXPR_MUL, &middle, m, 0);
    Form  scale = p2o_form_of(EXPR_QUOTIENT, m, n, 0);
    Form  at[] = { p2o_form_of(EXPR_QUOTIENT, &product, n, 0),
                   p2o_form_of(EXPR_MUL, &middle, &scale, 0) };
    for (int i = 0; i < 2; i++) {
        Form place = p2o_form_of(EXPR_SUB, &at[i], half, 0);
        Form inside = p2o_form_of(EXPR_MAX, &place, zero, 0);
        offer_places(s, &place);
        offer_places(s, &inside);
    }
}

void p2o_offer_resampled(Search *s)
{
    enum { SIZES = 16 };
    for (int i = 0; i < s->t->nindex; i++) {
        Form *n = NEW(s->arena, Form), *last = NEW(s->arena, Form);
        *n = p2o_form_base(s, tables_first_size(s->t) + i);
        *last = p2o_form_of(EXPR_SUB, n, s->number[0], 0);
        for (size_t k = 0; k < s->sizes.n && k < SIZES; k++) {
            offer_ends(s, s->index[i], s->sizes.at[k], last);
            offer_centres(s, s->index[i], s->sizes.at[k], n);
        }
    }
}

void p2o_offer_functions(Search *s)
{
    enum { PLAIN = 30 };
    offer_squares(s);
    offer_powers(s);
    offer_curves(s);
    offer_log_ratios(s);
    offer_waves(s);
    offer_rates(s);
    for (int i = 0; i < s->t->nindex && s->t->nindex > 1; i++)
        for (size_t k = 0; k < s->forms.n && k < PLAIN; k++)
            for (size_t d = 0; d < s->sizes.n; d++)
                if (s->sizes.at[d]->bits <= BITS_STEP + 2 + s->sizes.at[0]->bits &&
                    s->forms.at[k] != s->index[i])
                    offer_sinusoids(s, s->index[i], s->forms.at[k], s->sizes.at[d]);
}

/* Places spread evenly up to the largest: rounded, or cut, as floats are. */
void p2o_offer_spread(Search *s)
{
    Term end = s->inner[0].most;
    if (!end.expr)
        return;
    Form *most = NEW(s->arena, Form), *one = s->number[0];
    *most = (Form){ .expr = *end.expr, .bits = end.bits };
    p2o_expr_block(end.expr, s->points.bases, NPOINT, most->at);
    for (int i = 0; i < s->t->nindex; i++) {
        for (size_t k = 0; k < s->sizes.n; k++) {
            Form *product = NEW(s->arena, Form), *ratio = NEW(s->arena, Form);
            Form *step = NEW(s->arena, Form), *at = NEW(s->arena, Form);
            *product = p2o_form_of(EXPR_MUL, s->index[i], most, 0);
            *ratio = p2o_form_of(EXPR_QUOTIENT, product, s->sizes.at[k], 0);
            *step = p2o_form_of(EXPR_QUOTIENT, most, s->sizes.at[k], 0);
            *at = p2o_form_of(EXPR_MUL, s->index[i], step, BITS_STEP);
            p2o_offer_made(s, EXPR_ROUND, ratio, NULL, 0, false);
            p2o_offer_made(s, EXPR_ROUND, at, NULL, 0, false);
            p2o_offer_made(s, EXPR_FLOOR, ratio, one, 0, false);
            p2o_offer_made(s, EXPR_FLOOR, at, one, 0, false);
        }
    }
}
