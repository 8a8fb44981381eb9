#include "dyn/verdict.h"

#include <math.h>

#include "base/num.h"
#include "format/json.h"

/* Bits, held against what the suite of modules (test/sizes) shows to be right and wrong. */
enum {
    MARGIN = 4,
    MARGIN_WHICH = 3,           /* more, over readings of other sizes from few captures: which one
                                 * is meant is told only where they moved apart */
    FEW_CAPTURES = 2,
    PAID_SHORT = 1,             /* an expression may cost this more than it explains: both are
                                 * rounded */
    BITS_NUMBER = 2,            /* to say that it is a number */
    BITS_SPELLED = -3,          /* in all, where the line has it: less than any size */
    BITS_SPELLED_PART = 3,      /* of a number inside an expression, where the line has it */
    BITS_SETTING = -12,         /* in all, where nobody writes a size */
    BITS_FIXED = 4,             /* in all, where a fixed size beside it is the same */
    BITS_UNSPELLED = 1,         /* more, where the line is known and lacks it */
    BITS_UNMOVED = 12,          /* more there, where sizes hardly moved: what is computed of them
                                 * may well stay */
    BITS_PAD = 3,               /* more: amounts that are computed mostly fill up to a multiple */
    BITS_IDLE_PAD = 12,         /* more: nobody pads by 0 on purpose */
    BITS_FILLS_UP = -2,         /* more there, of what is lacking to a multiple */
    BITS_CUT_END = -8,          /* more, of min(n, 4) along n: slices do that by themselves */
    BITS_LEFT_OVER = -6,        /* more, of remainders, where what is left over is asked for */
    BITS_OWN = -2,              /* more, of the size of the axis that it stands at */
    BITS_OTHER = 3,             /* more, of each other size, where that axis is known */
    BITS_BOUND = 6,             /* at most, of the size where a branch turns: it mostly has a name,
                                 * self.max_len */
};

/* The first value, then for each how far apart all of them are; where it was foretold by what is
 * cheapest without it, all that it could have been. */
static double bits_held(const Evidence *e, bool foretold)
{
    int    nfit = foretold ? e->nfit : e->ncapture;
    double least = e->at[0], most = e->at[0];
    for (int k = 1; k < e->ncapture; k++) {
        least = fmin(least, e->at[k]);
        most = fmax(most, e->at[k]);
    }
    return log2(1 + fabs(e->at[0])) + (nfit - 1) * log2(1 + most - least) +
           (e->ncapture - nfit) * log2(1 + fmax(fabs(least), fabs(most)));
}

static bool is_one_number(const Evidence *e)
{
    for (int k = 1; k < e->ncapture; k++)
        if (e->at[k] != e->at[0] && !(isnan(e->at[k]) && isnan(e->at[0])))
            return false;
    return true;
}

static double bits_as_number(const Evidence *e)
{
    double bits = BITS_NUMBER + p2o_number_bits(e->at[0]);
    if (!is_one_number(e))
        return INFINITY;
    if (e->usual || e->role == NUMBER_SETTING)
        return BITS_SETTING;
    if (e->spelled == SPELLED_YES || e->setting)
        return BITS_SPELLED;
    if ((e->role == NUMBER_PAD || e->role == NUMBER_REST) && e->at[0] == 0)
        return bits + (double)BITS_IDLE_PAD / e->ncapture;
    if (e->fixed)
        return fmin(bits, BITS_FIXED);
    if (e->role == NUMBER_PAD)
        bits += BITS_PAD;
    if (e->spelled == SPELLED_NO)
        bits += fmax(BITS_UNSPELLED, BITS_UNMOVED - 2 * e->moved);
    return e->known ? fmin(bits, e->known) : bits;
}

/* A float that nobody writes, or a factor that does nothing: something computed it, and few
 * captures do not say what.  In a line that has a 1 for other reasons x * 1 is no better.  x + 0.0
 * tells of a condition that no capture met, however many there are: (t == 16) * 1.0; x + 0 is what
 * sum() begins with. */
static bool is_computed(const Evidence *e, const Verdict *v, bool whole)
{
    bool small = e->role == NUMBER_FACTOR && (e->at[0] == 0 || fabs(e->at[0]) == 1);
    bool lacks = e->spelled == SPELLED_NO;
    if (e->given && e->ncapture == 1)
        return true;
    if (e->setting || e->usual)
        return false;
    if (e->idle && lacks && e->at[0] == 0 && !whole)
        return true;
    if (e->ncapture > FEW_CAPTURES)
        return false;
    if (e->role == NUMBER_REST && e->ncapture == 1 && e->at[0] == 0)
        return e->spelled != SPELLED_YES;       /* of an even size it may well be 1 */
    return e->idle || (e->ncapture == 1 && lacks && (small || v->number_bits > DEAREST));
}

/* A float holds the bits of its mantissa, unless it is a short one. */
static double paid_by(const Evidence *e, const Readings *r)
{
    double bits = bits_held(e, !r->refuted || !r->n || r->refuted >= r->list[0].bits);
    for (int k = 0; k < e->ncapture && !r->whole; k++)
        bits += fmin(p2o_number_bits(e->at[k]), 52);
    return bits;
}

/* What is saved on a number in an expression where the line spells it.  `said` numbers are saved on
 * already. */
static double saved_on(const Evidence *e, double number, double *said, int *nsaid)
{
    for (int i = 0; i < *nsaid; i++)
        if (said[i] == number)
            return 0;
    said[(*nsaid)++] = number;
    return p2o_spelled_times(e->line, number) > 0
               ? fmax(p2o_number_bits(number) - BITS_SPELLED_PART, 0)
               : 0;
}

static double saved_in(const Evidence *e, const Expr *x, double *said, int *nsaid)
{
    if (!x)
        return 0;
    double own = x->op == EXPR_NUMBER || (x->op >= EXPR_SCALED && x->op <= EXPR_NEAREST)
                     ? saved_on(e, x->number, said, nsaid)
                     : 0;
    return own + saved_in(e, x->a, said, nsaid) + saved_in(e, x->b, said, nsaid);
}

static unsigned bases_in(const Expr *x)
{
    if (!x)
        return 0;
    return x->op == EXPR_SIZE ? 1u << x->base : bases_in(x->a) | bases_in(x->b);
}

/* Along an axis, people count by its own size. */
static double bits_of_sizes(const Evidence *e, const Reading *r)
{
    unsigned used = e->own && !p2o_dim_is_int(e->own, NULL) ? bases_in(r->expr) : 0;
    double   bits = 0;
    bool     own = false;
    for (int i = 0; i < r->of->n; i++) {
        if (!(used & 1u << i))
            continue;
        bool kin = p2o_dim_are_kin(r->of->dim[i], e->own);
        own |= kin;
        bits += kin ? 0 : BITS_OTHER;
    }
    return bits + (own ? BITS_OWN : 0);
}

/* min(n, 4) along n: what x[:, :4] is where n is less, and how many of n can be had. */
static bool is_cut_end(const Evidence *e, const Reading *r)
{
    const Expr *x = r->expr;
    return (e->role == NUMBER_PLACE || e->role == NUMBER_EXTENT) && x->op == EXPR_MIN &&
           x->a->op == EXPR_SIZE && x->b->op == EXPR_NUMBER && r->of->dim[x->a->base] == e->own;
}

/* An expression has at most ten numbers: those in the parts of a product, a power, a factor, what
 * is added and what it is cut at. */
static double bits_here(const Evidence *e, const Reading *r)
{
    double said[16];
    int    nsaid = 0;
    bool   rest = r->expr->op == EXPR_LACK || r->expr->op == EXPR_MOD;
    double fills = e->role == NUMBER_PAD && r->expr->op == EXPR_LACK ? BITS_FILLS_UP
                   : e->role == NUMBER_REST && rest                  ? BITS_LEFT_OVER
                                                                     : 0;
    fills += is_cut_end(e, r) ? BITS_CUT_END : 0;
    return r->bits + fills + bits_of_sizes(e, r) -
           (e->line ? saved_in(e, r->expr, said, &nsaid) : 0);
}

/* They agree wherever the model works. */
static bool is_same(const Evidence *e, const Reading *x, const Reading *y)
{
    int n = 0;
    for (int i = 0; i < NPROBE; i++) {
        if (e->allowed && !e->allowed[i])
            continue;
        if (x->at[i] != y->at[i])
            return false;
        n++;
    }
    return n > 0;
}

/* As a place along its axis, which ends it, it is the number itself. */
static bool is_cut_to_number(const Evidence *e, const Reading *r)
{
    for (int i = 0; e->axis && i < NPROBE; i++)
        if (fmin(r->at[i], e->axis[i]) != fmin(e->at[0], e->axis[i]))
            return false;
    return e->axis != NULL;
}

/* min and max of sizes are one of them wherever the sizes lie as they did in the captures, and
 * nothing is claimed of others (dyn/seen). */
static bool has_clamp(const Expr *x)
{
    return x && (x->op == EXPR_MIN || x->op == EXPR_MAX || has_clamp(x->a) || has_clamp(x->b));
}

/* All sizes lie within those of the captures at probe i. */
static bool is_inside(const Bases *b, int probe)
{
    for (int i = 0; i < b->n; i++) {
        double least = INFINITY, most = -INFINITY, v = b->at[i][b->ncapture + probe];
        for (int k = 0; k < b->ncapture; k++) {
            least = fmin(least, b->at[i][k]);
            most = fmax(most, b->at[i][k]);
        }
        if (!(v >= least && v <= most))
            return false;
    }
    return true;
}

/* min(n, 32), where it was always 32: otherwise at sizes that no capture had, as any branch. */
static bool is_unseen_clamp(const Evidence *e, const Reading *r)
{
    const Expr *x = r->expr;
    if (!has_clamp(x))
        return false;
    if ((x->op == EXPR_MIN || x->op == EXPR_MAX) && x->b->op == EXPR_NUMBER &&
        x->b->number == e->at[0])
        return true;
    for (int i = 0; i < NPROBE; i++)
        if (is_inside(r->of, i) && r->at[i] != e->at[0])
            return false;
    return true;
}

/* n % 2 is 0 where all sizes are even. */
static bool is_number_where_allowed(const Evidence *e, const Reading *r)
{
    int n = 0;
    for (int i = 0; e->allowed && i < NPROBE; i++) {
        if (e->allowed[i] && r->at[i] != e->at[0])
            return false;
        n += e->allowed[i];
    }
    return n > 0;
}

static bool is_the_number(const Evidence *e, const Reading *r)
{
    return is_one_number(e) && (is_cut_to_number(e, r) || is_unseen_clamp(e, r) ||
                                is_number_where_allowed(e, r));
}

/* The symbols of the inputs in a reading, as bits. */
static unsigned symbols_in(const Reading *r)
{
    unsigned bases = bases_in(r->expr), used = 0;
    for (size_t k = 0; k < r->of->nsymbol && k < MAX_BASES; k++) {
        for (int i = 0; i < r->of->n; i++)
            if (bases & 1u << i && p2o_dim_are_kin(r->of->symbols[k], r->of->dim[i]))
                used |= 1u << k;
    }
    return used;
}

static void find_cheapest(const Evidence *e, const Readings *r, Verdict *v)
{
    v->best_bits = v->rival_bits = INFINITY;
    for (int i = 0; i < r->n; i++) {
        double bits = bits_here(e, &r->list[i]);
        if (bits < v->best_bits && !is_the_number(e, &r->list[i])) {
            v->best = &r->list[i];
            v->best_bits = bits;
        }
    }
    unsigned symbols = v->best ? symbols_in(v->best) : 0;
    for (int i = 0; i < r->n && v->best; i++) {
        bool   other = e->ncapture <= FEW_CAPTURES && symbols_in(&r->list[i]) & ~symbols &&
                       !has_clamp(r->list[i].expr);
        double bits = bits_here(e, &r->list[i]) - (other ? MARGIN_WHICH : 0);
        if (&r->list[i] == v->best || bits >= v->rival_bits || is_same(e, v->best, &r->list[i]) ||
            is_the_number(e, &r->list[i]))
            continue;
        v->rival = &r->list[i];
        v->rival_bits = bits;
    }
}

/* c1 where a size is below a bound, else c2: what `2 if n > 32 else 1` leaves. */
typedef struct Step {
    double below, above;                /* the values */
    double last, first;                 /* sizes: the largest below, the least above */
} Step;

/* Whether one base alone, larger or smaller, says which of two values it was. */
static bool is_step_of(const Evidence *e, const double *sizes, Step *s)
{
    int least = 0;
    for (int k = 1; k < e->ncapture; k++)
        least = sizes[k] < sizes[least] ? k : least;
    *s = (Step){ .below = e->at[least], .last = -INFINITY, .first = INFINITY };
    for (int k = 0; k < e->ncapture; k++) {
        if (e->at[k] == s->below) {
            s->last = fmax(s->last, sizes[k]);
            continue;
        }
        if (isfinite(s->first) && e->at[k] != s->above)
            return false;
        s->above = e->at[k];
        s->first = fmin(s->first, sizes[k]);
    }
    return isfinite(s->first) && s->last < s->first;
}

/* The first size that is not below, where that is cheapest to say. */
static double cheapest_bound(const Step *s)
{
    double best = s->first;
    for (double n = s->last + 1; n < s->first; n++)
        best = p2o_number_bits(n) < p2o_number_bits(best) ? n : best;
    return best;
}

static bool agrees_with_step(const Evidence *e, const Reading *r, const double *sizes,
                             const Step *s, double bound)
{
    for (int i = 0; i < NPROBE; i++)
        if ((!e->allowed || e->allowed[i]) && !isnan(sizes[i]) &&
            r->at[i] != (sizes[i] < bound ? s->below : s->above))
            return false;
    return true;
}

/* Bits of the cheapest branch on one size that gives the values, and elsewhere others than the
 * best reading.  Many captures on either side of the bound tell it no better than one. */
static double bits_of_branch(const Evidence *e, const Reading *best)
{
    const Bases *b = best->of;
    double       least = INFINITY;
    for (int i = 0; i < b->n; i++) {
        Step s;
        if (!is_step_of(e, b->at[i], &s))
            continue;
        double bound = cheapest_bound(&s);
        if (!agrees_with_step(e, best, b->at[i] + b->ncapture, &s, bound))
            least = fmin(least, p2o_base_bits(b) + 2 * BITS_OP +
                                    fmin(p2o_number_bits(bound), BITS_BOUND) +
                                    p2o_number_bits(s.below) + p2o_number_bits(s.above));
    }
    return least;
}

Verdict p2o_weigh(const Evidence *e, const Readings *r)
{
    Verdict v = { .number_bits = bits_as_number(e), .held = paid_by(e, r), .margin = INFINITY,
                  .branch_bits = INFINITY };
    find_cheapest(e, r, &v);
    if (v.best_bits >= v.number_bits + MARGIN) {
        v.kind = isfinite(v.number_bits) && !is_computed(e, &v, r->whole) ? VERDICT_NUMBER
                                                                          : VERDICT_OPEN;
        v.margin = v.best_bits - v.number_bits;
        return v;
    }
    v.branch_bits = bits_of_branch(e, v.best);
    v.margin = fmin(fmin(v.rival_bits, v.number_bits), v.branch_bits) - v.best_bits;
    v.held = fmin(v.held, v.best->held);
    bool paid = v.held + PAID_SHORT >= v.best_bits + (isfinite(v.number_bits) ? MARGIN : 0);
    v.kind = v.margin >= MARGIN && paid ? VERDICT_SIZE : VERDICT_OPEN;
    return v;
}

bool p2o_readings_suffice(const Verdict *v, const Readings *r)
{
    return r->n < NREADING || r->list[NREADING - 1].bits >= v->best_bits + MARGIN;
}

const char *p2o_verdict_text(Arena *a, const Evidence *e, const Verdict *v)
{
    char        number[32];
    const char *best = v->best ? p2o_expr_text(a, v->best->of, v->best->expr) : NULL;
    const char *next = v->rival ? p2o_expr_text(a, v->rival->of, v->rival->expr) : NULL;
    if (!best)
        return "no simple expression of the sizes gives that";
    if (isfinite(v->number_bits))
        return p2o_printf(a, "%s or the number %s", best, p2o_format_f64(number, e->at[0]));
    if (v->branch_bits < fmin(v->rival_bits, v->best_bits + MARGIN))
        return p2o_printf(a, "%s, or a branch on a size", best);
    return next && v->margin < MARGIN ? p2o_printf(a, "%s or %s", best, next)
                                      : p2o_printf(a, "%s, or by chance", best);
}

const char *p2o_verdict_because(Arena *a, const Verdict *v)
{
    const Reading *next = v->kind == VERDICT_NUMBER ? v->best
                          : v->rival_bits < v->number_bits ? v->rival
                                                           : NULL;
    const char *what = next                       ? p2o_expr_text(a, next->of, next->expr)
                       : isfinite(v->number_bits) ? "a number"
                                                  : "by chance";
    return p2o_printf(a, "evidence: %.0f bits, the next best reading costs %.0f more: %s", v->held,
                      fmin(v->margin, 99), what);
}

/* Sizes to choose from: odd and even ones, small and large ones; then multiples of 12, for models
 * that need them. */
static const int64_t telling_sizes[] = { 97, 61, 34, 23, 131, 40, 19, 10, 53, 86, 7, 263, 14, 5, 3,
                                         509, 2, 1021, 1,
                                         48, 96, 24, 72, 120, 60, 36, 144, 84, 108, 132, 12 };
enum {
    NTELLING = sizeof telling_sizes / sizeof *telling_sizes,
    EACH_SIZE = 400,                        /* then one after another: 40 tells round(n/16) from
                                             * (n + 8)//16, as hardly any other does */
};

typedef struct Choice {
    Dims      *dims;
    const Dim *symbols;
    size_t     n;
    int        turn;
} Choice;

/* Another size for every symbol, inside its range. */
static int64_t chosen_size(const Choice *c, size_t i)
{
    int     later = c->turn - NTELLING;
    int64_t lo, hi, v = later < 0 ? telling_sizes[((size_t)c->turn + 4 * i) % NTELLING]
                                  : 2 + (later + 37 * (int64_t)i) % EACH_SIZE;  /* far apart */
    p2o_dim_range(c->dims, c->symbols[i], &lo, &hi);
    if (v < lo)
        v = lo > INT64_MAX - v ? lo : lo + v;   /* a bound that no size reaches */
    return v > hi ? hi - v % (hi - lo + 1) : v;
}

static bool size_in_choice(void *user, Dim sym, int64_t *v)
{
    const Choice *c = user;
    for (size_t i = 0; i < c->n; i++) {
        if (c->symbols[i] != sym)
            continue;
        *v = chosen_size(c, i);
        return true;
    }
    return false;
}

/* The model works at these sizes, as far as is known. */
static bool needs_hold(const Choice *c, Bindings *bind)
{
    void *user = (void *)(uintptr_t)c;
    for (size_t i = 0; i < p2o_nneed(bind); i++) {
        const Need *n = p2o_need_at(bind, i);
        int64_t     x, y;
        if (n->kind == NEED_GUARD || n->origin >= NEED_UNSEEN ||
            !p2o_dim_eval(c->dims, p2o_resolve(bind, n->a), size_in_choice, user, &x) ||
            !p2o_dim_eval(c->dims, p2o_resolve(bind, n->b), size_in_choice, user, &y))
            continue;
        if (n->kind == NEED_EQ ? x != y : x > y)
            return false;
    }
    return true;
}

static double reading_in_choice(const Choice *c, const Reading *r)
{
    Bases   b = { .dims = c->dims, .n = r->of->n, .npoint = 1 };
    int64_t v;
    double  out;
    for (int i = 0; i < b.n; i++) {
        b.dim[i] = r->of->dim[i];
        b.at[i][0] = p2o_dim_eval(c->dims, b.dim[i], size_in_choice, (void *)(uintptr_t)c, &v)
                         ? (double)v
                         : NAN;
    }
    return p2o_expr_eval(&b, r->expr, 0, &out) ? out : NAN;
}

/* How many of the readings, and the number, the choice tells from the first; the next best, which
 * is what the message names, counts more than all others. */
static int told_apart(const Choice *c, const Readings *r)
{
    int    n = 0;
    double first = r->n ? reading_in_choice(c, &r->list[0]) : NAN;
    for (int i = 1; i < r->n; i++)
        n += reading_in_choice(c, &r->list[i]) != first ? i == 1 ? r->n + 1 : 1 : 0;
    return n + (first != r->want[0]);
}

static Telling put_telling(Arena *a, const Dim *symbols, size_t n, const int64_t *sizes)
{
    Buf json = { .arena = a }, text = { .arena = a };
    for (size_t i = 0; i < n; i++) {
        p2o_puts(&json, i ? ", " : "{");
        p2o_json_quote(&json, str_of(p2o_dim_name(symbols[i])));
        p2o_putf(&json, ": %lld", (long long)sizes[i]);
        p2o_putf(&text, "%s%s=%lld", i ? ", " : "", p2o_dim_name(symbols[i]), (long long)sizes[i]);
    }
    p2o_puts(&json, "}");
    return (Telling){ json.at, text.at };
}

Telling p2o_telling(Arena *a, Bindings *bind, const Dim *symbols, size_t n, const Readings *r)
{
    Choice  c = { .dims = p2o_bindings_dims(bind), .symbols = symbols, .n = n };
    int     best = -1, best_turn = 0;
    Telling t = { 0 };
    for (c.turn = 0; c.turn < NTELLING + EACH_SIZE; c.turn++) {
        int     told = r ? told_apart(&c, r) : 0;
        bool    seen = false;
        for (int k = 0; k < p2o_ncapture(bind); k++) {
            bool same_sizes = true;
            for (size_t i = 0; i < n; i++) {
                int64_t had;
                same_sizes &= p2o_hint_at(bind, symbols[i], k, &had) && had == chosen_size(&c, i);
            }
            seen |= same_sizes;
        }
        if (seen || told <= best || !needs_hold(&c, bind))
            continue;
        best = told;
        best_turn = c.turn;
    }
    if (best < (r != NULL) || !n)
        return t;
    c.turn = best_turn;
    int64_t *sizes = NEW_N(a, int64_t, n);
    for (size_t i = 0; i < n; i++)
        sizes[i] = chosen_size(&c, i);
    return put_telling(a, symbols, n, sizes);
}

Telling p2o_telling_capture(Arena *a, Bindings *bind, const Dim *symbols, size_t n, int k)
{
    int64_t *sizes = NEW_N(a, int64_t, n + 1);
    for (size_t i = 0; i < n; i++)
        if (!p2o_hint_at(bind, symbols[i], k, &sizes[i]))
            return (Telling){ 0 };
    return put_telling(a, symbols, n, sizes);
}
