#include "dyn/search.h"

#include <math.h>
#include <stdlib.h>

static void try_bounds(Search *s, Term x, Term least, Term most)
{
    Term upper = { 0 }, both = { 0 };
    if (!x.expr)
        return;
    if (most.expr)
        upper = (Term){ p2o_expr_of(s->arena, EXPR_MIN, x.expr, most.expr),
                        x.bits + most.bits + BITS_STEP + 1 };
    if (least.expr)
        x = (Term){ p2o_expr_of(s->arena, EXPR_MAX, x.expr, least.expr),
                    x.bits + least.bits + BITS_STEP + 1 };
    if (least.expr && most.expr)
        both = (Term){ p2o_expr_of(s->arena, EXPR_MIN, x.expr, most.expr),
                       x.bits + most.bits + BITS_STEP + 1 };
    p2o_search_see(s, upper, false);
    p2o_search_see(s, x, false);
    p2o_search_see(s, both, false);
}

static void try_choices(Search *s)
{
    for (int i = 0; i < s->ncondition; i++) {
        const Condition *c = &s->condition[i];
        Term             yes = s->side[i][0].best, no = s->side[i][1].best;
        if (!yes.expr || !no.expr)
            continue;
        Expr choice = { .op = EXPR_CHOICE, .a = yes.expr, .b = no.expr, .c = c->term.expr };
        p2o_search_see(s, (Term){ &choice, yes.bits + no.bits + c->term.bits + 2 * BITS_STEP },
                        false);
    }
}

static int masks_by_bits(const void *x, const void *y)
{
    const Condition *a = x, *b = y;
    int              order = (a->term.bits > b->term.bits) - (a->term.bits < b->term.bits);
    return order ? order : (a->made > b->made) - (a->made < b->made);
}

/* Both conditions, or one of them. */
static void try_pairs(Search *s)
{
    qsort(s->masks.at, s->masks.n, sizeof *s->masks.at, masks_by_bits);
    const Expr *yes = p2o_expr_number(s->arena, s->yes), *no = p2o_expr_number(s->arena, s->no);
    for (size_t i = 0; i < s->masks.n; i++) {
        const Condition *x = &s->masks.at[i];
        bool             both = is_part_of(&s->is_yes, &x->yes);
        for (size_t k = 0; k < i; k++) {
            const Condition *y = &s->masks.at[k];
            double           bits = x->term.bits + y->term.bits + BITS_STEP;
            PointSet         set;
            if (bits >= search_dearest(s))
                break;
            for (size_t j = 0; j < COUNT_OF(set.w); j++)
                set.w[j] = both ? x->yes.w[j] & y->yes.w[j] : x->yes.w[j] | y->yes.w[j];
            if (!same_set(&set, &s->is_yes))
                continue;
            Expr pair = { .op = both ? EXPR_AND : EXPR_OR, .a = x->term.expr, .b = y->term.expr };
            Expr choice = { .op = EXPR_CHOICE, .a = yes, .b = no, .c = &pair };
            p2o_search_see(s, (Term){ &choice, bits }, false);
        }
    }
}

void p2o_parts_join(Search *s)
{
    if (s->two) {
        try_pairs(s);
        return;
    }
    for (int i = 0; i < 2; i++)
        try_bounds(s, s->inner[i].part.best, s->inner[i].least, s->inner[i].most);
    try_choices(s);
}

/* A capture may be too small to reach the bound: where it is one of two numbers, the farther one is
 * it, rather than what sizes could make of a single capture that differs. */
static void reach_farther(double *at, int n, bool up)
{
    double least = at[0], most = at[0];
    for (int k = 1; k < n; k++) {
        least = fmin(least, at[k]);
        most = fmax(most, at[k]);
    }
    for (int k = 0; k < n; k++)
        if (at[k] != least && at[k] != most)
            return;
    for (int k = 0; k < n; k++)
        at[k] = up ? most : least;
}

/* Of one element of each capture. */
static double slack_of(const Tables *t, const double *at)
{
    double slack = 0;
    for (int k = 0; k < t->n; k++)
        slack = fmax(slack, tables_slack(t, at[k]));
    return slack;
}

/* Down to what, up to what: the same number in all captures, or what sizes make of it. */
static void find_bounds_of(Search *s, int which, double *least, double *most)
{
    const Tables *t = s->t;
    Part         *part = &s->inner[which].part;
    for (int i = 0; i < NPOINT; i++) {
        double v = s->points.want[i], room = tables_slack(t, v);
        if (v > least[s->points.of[i]] + room && v < most[s->points.of[i]] - room)
            set_add(&part->over, i);
    }
    part->n = set_count(&part->over);
    p2o_part_lines(s, part);
    reach_farther(most, t->n, true);
    reach_farther(least, t->n, false);
    s->inner[which].most = p2o_fit_sizes(&s->points, most, slack_of(t, most));
    s->inner[which].least = p2o_fit_sizes(&s->points, least, slack_of(t, least));
    if (s->inner[which].least.expr || least[0] >= 0)
        return;
    for (int k = 0; k < t->n; k++)
        least[k] = -least[k];
    Term turned = p2o_fit_sizes(&s->points, least, slack_of(t, least));
    if (turned.expr)
        s->inner[which].least = (Term){ p2o_expr_of(s->arena, EXPR_SUB,
                                                    p2o_expr_number(s->arena, 0), turned.expr),
                                        turned.bits + 1 };
}

static void find_bounds(Search *s)
{
    const Tables *t = s->t;
    double        least[MAX_CAPTURES], most[MAX_CAPTURES], down = INFINITY, up = -INFINITY;
    for (int k = 0; k < t->n; k++) {
        least[k] = most[k] = t->at[k].v[0];
        for (uint64_t i = 1; i < t->at[k].n; i++) {
            least[k] = fmin(least[k], t->at[k].v[i]);
            most[k] = fmax(most[k], t->at[k].v[i]);
        }
        down = fmin(down, least[k]);
        up = fmax(up, most[k]);
    }
    for (int i = 0; i < NPOINT; i++)
        set_add(&s->all.over, i);
    s->all.n = NPOINT;
    p2o_part_lines(s, &s->all);
    find_bounds_of(s, 0, least, most);
    for (int k = 0; k < t->n; k++) {
        least[k] = down;
        most[k] = up;
    }
    find_bounds_of(s, 1, least, most);
}

static void add_condition(Search *s, const Form *f, ExprOp op)
{
    enum { FEWEST = 6 };
    Condition c = { .term = { NULL, f->bits + (op == EXPR_IS_0) } };
    for (int k = 0; k < NPOINT; k++)
        if (op == EXPR_IS_0 ? f->at[k] == 0 : f->at[k] >= 0)
            set_add(&c.yes, k);
    int n = set_count(&c.yes);
    if (s->ncondition == MAX_CONDITIONS || n < FEWEST || n > NPOINT - FEWEST)
        return;
    for (int i = 0; i < s->ncondition; i++) {
        PointSet other = set_not(&s->condition[i].yes);
        if (same_set(&c.yes, &s->condition[i].yes) || same_set(&c.yes, &other))
            return;
    }
    c.term.expr = p2o_expr_of(s->arena, op, &f->expr, NULL);
    s->condition[s->ncondition] = c;
    s->side[s->ncondition][0] = (Part){ .over = c.yes, .n = n };
    s->side[s->ncondition][1] = (Part){ .over = set_not(&c.yes), .n = NPOINT - n };
    s->ncondition++;
}

/* On either side of which another expression may give the elements; one of them may be a number. */
static void make_conditions(Search *s)
{
    enum { NUMBERS = 4 };
    size_t nsize = s->t->nindex > 1 ? 8 : 24;
    for (size_t i = 0; i < s->leaves.n; i++) {
        const Form *x = s->leaves.at[i];
        add_condition(s, x, EXPR_IS_0);
        add_condition(s, x, EXPR_AT_LEAST_0);
        for (int k = 0; k < NUMBERS; k++) {
            Form *rest = NEW(s->arena, Form), *past = NEW(s->arena, Form);
            *rest = p2o_form_of(EXPR_MOD, x, s->number[k], 0);
            *past = p2o_form_of(EXPR_SUB, x, s->number[k], 0);
            add_condition(s, rest, EXPR_IS_0);
            add_condition(s, past, EXPR_AT_LEAST_0);
        }
    }
    for (size_t i = 0; i < s->leaves.n; i++) {
        for (size_t k = 0; k < s->sizes.n && k < nsize; k++) {
            Form *past = NEW(s->arena, Form), *row = NEW(s->arena, Form);
            Form *even = NEW(s->arena, Form);
            *past = p2o_form_of(EXPR_SUB, s->leaves.at[i], s->sizes.at[k], 0);
            *row = p2o_form_of(EXPR_FLOOR, s->leaves.at[i], s->sizes.at[k], 0);
            *even = p2o_form_of(EXPR_MOD, row, s->number[1], 0);
            add_condition(s, past, EXPR_AT_LEAST_0);
            add_condition(s, even, EXPR_IS_0);
        }
    }
    for (int i = 0; i < s->ncondition; i++) {
        for (int j = 0; j < 2; j++) {
            Part  *part = &s->side[i][j];
            p2o_part_lines(s, part);
            double at[MAX_CAPTURES];
            bool   seen[MAX_CAPTURES] = { false }, same = true;
            for (int k = 0; k < NPOINT && same; k++) {
                int of = s->points.of[k];
                if (!set_has(&part->over, k))
                    continue;
                same = !seen[of] || p2o_tables_alike(s->t, s->points.want[k], at[of]);
                at[of] = s->points.want[k];
                seen[of] = true;
            }
            for (int k = 0; k < s->t->n; k++)
                same &= seen[k];
            if (same)
                part->best = p2o_fit_sizes(&s->points, at, slack_of(s->t, at));
        }
    }
}

void p2o_parts_find(Search *s)
{
    find_bounds(s);
    make_conditions(s);
}
