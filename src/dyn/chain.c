#include "dyn/chain.h"

#include "aten/schema.h"

/* A call that only one of the captures has costs more than one that differs a little; a copy on the
 * same line is what is left of it, and explains that it is missing. */
enum { COST_MISSING = 4, COST_VANISHED = 1 };

typedef struct Costs {                  /* negative: no way leads there */
    int left[MOST_IN_CHAIN + 1][MOST_IN_CHAIN + 1];     /* of all from c[i] and d[j] on */
    int upto[MOST_IN_CHAIN + 1][MOST_IN_CHAIN + 1];     /* of all before them */
} Costs;

typedef enum Move { MOVE_BOTH, MOVE_FIRST, MOVE_SECOND } Move;

typedef struct Moves {
    Move   at[2 * MOST_IN_CHAIN];
    size_t n;
} Moves;

bool p2o_has_numbers(const Call *c)
{
    for (int i = 1; i < c->nargs; i++)
        if (c->args[i].kind == ARG_INT || c->args[i].kind == ARG_LIST ||
            (c->args[i].kind == ARG_VAR && c->args[i].var->recorded.kind > TY_TENSOR))
            return true;
    return false;
}

static int missing_cost(const Call *c) { return p2o_has_numbers(c) ? COST_MISSING : 0; }

/* Negative: they can't stand beside each other. */
static int beside_cost(const Chains *x, size_t i, size_t j)
{
    const Call *c = x->c[i], *d = x->d[j];
    bool        first = p2o_has_numbers(c), second = p2o_has_numbers(d);
    if (first && second)
        return x->cost(x->user, c, d);
    return first != second && c->loc == d->loc ? COST_VANISHED : -1;
}

/* Of the move by itself; negative: it can't be made. */
static int own_cost(const Chains *x, size_t i, size_t j, Move m)
{
    bool first = m != MOVE_SECOND, second = m != MOVE_FIRST;
    if ((first && i == x->nc) || (second && j == x->nd))
        return -1;
    return m == MOVE_BOTH ? beside_cost(x, i, j) : missing_cost(first ? x->c[i] : x->d[j]);
}

/* Of the move and all that come after it. */
static int move_cost(const Chains *x, const Costs *k, size_t i, size_t j, Move m)
{
    int own = own_cost(x, i, j, m);
    return own < 0 ? -1 : own + k->left[i + (m != MOVE_SECOND)][j + (m != MOVE_FIRST)];
}

static void fill_costs_before(const Chains *x, Costs *k)
{
    memset(k->upto, -1, sizeof k->upto);
    k->upto[0][0] = 0;
    for (size_t i = 0; i <= x->nc; i++)
        for (size_t j = 0; j <= x->nd; j++)
            for (Move m = MOVE_BOTH; m <= MOVE_SECOND && k->upto[i][j] >= 0; m++) {
                int own = own_cost(x, i, j, m), cost = k->upto[i][j] + own;
                if (own < 0)
                    continue;
                int *to = &k->upto[i + (m != MOVE_SECOND)][j + (m != MOVE_FIRST)];
                *to = *to < 0 || cost < *to ? cost : *to;
            }
}

static void fill_costs(const Chains *x, Costs *k)
{
    for (size_t i = x->nc + 1; i-- > 0;)
        for (size_t j = x->nd + 1; j-- > 0;) {
            int best = i == x->nc && j == x->nd ? 0 : -1;
            for (Move m = MOVE_BOTH; m <= MOVE_SECOND; m++) {
                int cost = move_cost(x, k, i, j, m);
                best = cost >= 0 && (best < 0 || cost < best) ? cost : best;
            }
            k->left[i][j] = best;
        }
}

/* The cheapest way; of several, the one that has calls beside each other early. */
static Moves cheapest(const Chains *x, const Costs *k)
{
    Moves out = { .n = 0 };
    for (size_t i = 0, j = 0; i < x->nc || j < x->nd;) {
        Move m = MOVE_BOTH;
        while (move_cost(x, k, i, j, m) != k->left[i][j])
            m++;
        out.at[out.n++] = m;
        i += m != MOVE_SECOND;
        j += m != MOVE_FIRST;
    }
    return out;
}

static bool are_one(const Chains *x, size_t i, size_t j)
{
    return p2o_has_numbers(x->c[i]) && p2o_has_numbers(x->d[j]);
}

/* Every cheapest way takes a call of the first chain for the same one of the second, or lacks it.
 * slice, pad and pad, slice have two: either may be what is one. */
static bool is_only_way(const Chains *x, const Costs *k)
{
    enum { NOT_SEEN = -1, NONE = MOST_IN_CHAIN };
    for (size_t i = 0; i < x->nc; i++) {
        int one = NOT_SEEN;
        for (size_t j = 0; j <= x->nd; j++)
            for (Move m = MOVE_BOTH; m <= MOVE_FIRST; m++) {
                int cost = k->upto[i][j] < 0 ? -1 : move_cost(x, k, i, j, m);
                int as = m == MOVE_BOTH && cost >= 0 && are_one(x, i, j) ? (int)j : NONE;
                if (cost < 0 || k->upto[i][j] + cost != k->left[0][0])
                    continue;
                if (one != NOT_SEEN && one != as)
                    return false;
                one = as;
            }
    }
    return true;
}

static bool axis_worked_on(const Call *c, int *axis)
{
    int     k = p2o_schema_find(c->schema, "dim");
    int64_t dim;
    return k >= 0 && c->args[k].kind == ARG_INT && p2o_dim_is_int(c->args[k].i, &dim) &&
           p2o_wrap_dim(dim, c->args[0].var->recorded.shape.rank, false, axis);
}

/* Calls that no capture has both of: their order is not known, and does not matter only where they
 * work on different axes. */
static bool can_swap(const Call *c, const Call *d, bool *second_first)
{
    int i, j;
    if (!axis_worked_on(c, &i) || !axis_worked_on(d, &j) || i == j)
        return false;
    *second_first = j < i;                      /* as PyTorch does */
    return true;
}

static void take_step(Chains *x, Call *c, const Call *d)
{
    x->steps[x->nstep++] = (ChainStep){ c, d };
}

/* Whether c[i] can come before all of d[j..until), or some of them before it. */
static bool is_order_known(const Chains *x, size_t i, size_t j, size_t until)
{
    bool swap;
    for (; p2o_has_numbers(x->c[i]) && j < until; j++)
        if (p2o_has_numbers(x->d[j]) && !can_swap(x->c[i], x->d[j], &swap))
            return false;
    return true;
}

/* The calls c[i..to) and d[j..until), each missing from the other capture; copies as they come. */
static bool merge_missing(Chains *x, size_t i, size_t to, size_t j, size_t until)
{
    while (i < to || j < until) {
        bool swap = i == to;
        if (i < to && !is_order_known(x, i, j, until))
            return false;
        if (i < to && j < until)
            swap = !p2o_has_numbers(x->d[j]) ||
                   (p2o_has_numbers(x->c[i]) && can_swap(x->c[i], x->d[j], &swap) && swap);
        if (swap)
            take_step(x, NULL, x->d[j++]);
        else
            take_step(x, x->c[i++], NULL);
    }
    return true;
}

/* Calls that stand beside each other divide the others. */
static bool take_steps(Chains *x, const Moves *m)
{
    size_t i = 0, j = 0, to = 0, until = 0;
    for (size_t n = 0; n < m->n; n++) {
        bool both = m->at[n] == MOVE_BOTH;
        if (both && !merge_missing(x, i, to, j, until))
            return false;
        if (both && are_one(x, to, until)) {
            take_step(x, x->c[to], x->d[until]);
        } else if (both) {
            take_step(x, x->c[to], NULL);
            take_step(x, NULL, x->d[until]);
        }
        to += m->at[n] != MOVE_SECOND;
        until += m->at[n] != MOVE_FIRST;
        i = both ? to : i;
        j = both ? until : j;
    }
    return merge_missing(x, i, to, j, until);
}

bool p2o_align_chains(Chains *x)
{
    Costs k;
    x->nstep = 0;
    fill_costs(x, &k);
    fill_costs_before(x, &k);
    if (!is_only_way(x, &k))
        return false;
    Moves way = cheapest(x, &k);
    return take_steps(x, &way);
}
