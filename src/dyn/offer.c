#include "dyn/search.h"

#include <math.h>

static void see_mask(Search *s, Term x, const PointSet *yes)
{
    enum { MOST_MASKS = 6000 };
    for (int turn = 0; turn < 2; turn++) {
        PointSet  set = turn ? set_not(yes) : *yes, other = set_not(&s->is_yes);
        Condition c = { .term = x, .made = s->masks.n, .yes = set };
        if (same_set(&set, &s->is_yes)) {
            Expr choice = { .op = EXPR_CHOICE,
                            .a = p2o_expr_number(s->arena, turn ? s->no : s->yes),
                            .b = p2o_expr_number(s->arena, turn ? s->yes : s->no), .c = x.expr };
            p2o_search_see(s, (Term){ &choice, x.bits }, false);
        } else if ((is_part_of(&s->is_yes, &set) || is_part_of(&set, &s->is_yes)) &&
                   s->masks.n < MOST_MASKS) {
            int n = set_count(&set);
            if (!n || n == NPOINT || is_part_of(&set, &other))
                continue;
            PointSet *key = NEW(s->arena, PointSet);
            *key = set;
            void    **slot = p2o_map_slot(&s->mask_known, (Str){ (const char *)key, sizeof *key });
            if (*slot)
                continue;
            *slot = key;
            c.term.expr = p2o_expr_keep(s->arena, x.expr);
            if (turn)
                c.term.expr = p2o_expr_of(s->arena, EXPR_IS_0, c.term.expr, NULL);
            VEC_PUSH(s->arena, &s->masks, c);
        }
    }
}

static void see_condition(Search *s, const Form *f)
{
    static const ExprOp ops[] = { EXPR_AT_LEAST_0, EXPR_IS_0 };
    for (int i = 0; i < 2; i++) {
        Expr     e = { .op = ops[i], .a = &f->expr };
        PointSet yes = { 0 };
        for (int k = 0; k < NPOINT; k++)
            if (i ? f->at[k] == 0 : f->at[k] >= 0)
                set_add(&yes, k);
        see_mask(s, (Term){ &e, f->bits + i }, &yes);
    }
}

/* No affine function of the candidate gives the part: three points of a capture are not on a
 * line. */
static bool lies_on_lines(const Part *part, const Target *t, const double *g)
{
    for (int i = 0; i < part->nline; i++) {
        const int *p = part->line[i];
        double     u = g[p[1]] - g[p[0]], v = g[p[2]] - g[p[0]];
        double     x = t->want[p[1]] - t->want[p[0]], y = t->want[p[2]] - t->want[p[0]];
        double     off = 8 * (t->room[p[0]] + t->room[p[1]] + t->room[p[2]]);
        if (!(fabs(x * v - y * u) <=
              off * (fabs(u) + fabs(v)) + 1e-12 * (fabs(x * v) + fabs(y * u))) ||
            (u == 0 && v == 0 && (fabs(x) > off || fabs(y) > off)))     /* else by rounding */
            return false;
    }
    return part->nline > 0;
}

/* Lines of the part among the quick points, where there are some; of different elements if
 * possible. */
void p2o_part_lines(const Search *s, Part *part)
{
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < NQUICK && part->nline < NLINE; i++) {
            int p[3], n = 0;
            for (int k = i; k < NQUICK && n < 3; k++) {
                int q = s->quick[k];
                if (!set_has(&part->over, q) || (n && s->points.of[q] != s->points.of[p[0]]))
                    continue;
                bool differs = true;
                for (int j = 0; j < n; j++)
                    differs &= s->points.want[q] != s->points.want[p[j]];
                if (differs || pass)
                    p[n++] = q;
            }
            if (n == 3) {
                memcpy(part->line[part->nline++], p, sizeof p);
                i += 4;
            }
        }
    }
}

/* Sides that have an expression for the other side, or a few points more than two numbers for each
 * capture. */
static bool is_open(const Search *s, const Part *part)
{
    return part->nline && part->n >= 2 * s->t->n + 4;
}

/* Roots are looked for in whole tables only. */
static bool has_sides(const Target *t) { return t->inverse != EXPR_SQRT; }

/* The candidate, known at the quick points alone, may give a part. */
static bool may_give(const Search *s, const double *g, bool sides)
{
    for (int i = 0; i < s->ntarget; i++) {
        const Target *t = &s->target[i];
        if (lies_on_lines(&s->all, t, g) || lies_on_lines(&s->inner[0].part, t, g) ||
            lies_on_lines(&s->inner[1].part, t, g))
            return true;
        for (int k = 0; k < s->ncondition && sides && has_sides(t); k++)
            for (int j = 0; j < 2; j++)
                if (is_open(s, &s->side[k][j]) && lies_on_lines(&s->side[k][j], &s->target[i], g))
                    return true;
    }
    return false;
}

/* As a condition it has all that is yes, or nothing else. */
static bool may_tell(const Search *s, const double *g)
{
    for (int how = 0; how < 2; how++) {
        bool over = true, under = true, out_over = true, out_under = true;
        for (int i = 0; i < NQUICK; i++) {
            bool yes = set_has(&s->is_yes, s->quick[i]);
            bool c = how ? g[s->quick[i]] == 0 : g[s->quick[i]] >= 0;
            over &= c || !yes;
            under &= yes || !c;
            out_over &= !c || !yes;
            out_under &= yes || c;
        }
        if (over || under || out_over || out_under)
            return true;
    }
    return false;
}

void p2o_offer_part(Search *s, Part *part, const Target *t, const Form *f)
{
    if (!is_open(s, part) ||
        f->bits >= (part->best.expr ? part->best.bits : DEAREST_ELEMENT) ||
        !lies_on_lines(part, t, f->at))
        return;
    Term x = p2o_fit(&s->points, &part->over, t, &f->expr, f->bits, f->at, false);
    if (x.expr && (!part->best.expr || x.bits < part->best.bits))
        part->best = (Term){ p2o_expr_keep(s->arena, x.expr), x.bits };
}

/* The whole table, but for what it adds up to. */
static void offer_share(Search *s, const Target *t, const Form *f)
{
    Term x = p2o_fit(&s->points, &s->all.over, t, &f->expr, f->bits, f->at, true);
    if (x.expr)
        p2o_search_see(s, (Term){ x.expr, x.bits + 2 * BITS_STEP }, true);
}

void p2o_offer(Search *s, const Form *f, bool sides)
{
    if (s->two) {
        see_condition(s, f);
        return;
    }
    for (int i = 0; i < s->ntarget; i++) {
        const Target *t = &s->target[i];
        if (f->bits < search_dearest(s) && lies_on_lines(&s->all, t, f->at)) {
            Term x = p2o_fit(&s->points, &s->all.over, t, &f->expr, f->bits, f->at, false);
            if (x.expr)
                p2o_search_see(s, x, false);
            else if (t->inverse != EXPR_SQRT && !s->t->whole)
                offer_share(s, t, f);
        }
        for (int k = 0; k < 2; k++)
            p2o_offer_part(s, &s->inner[k].part, t, f);
        for (int k = 0; k < s->ncondition && sides && has_sides(t); k++)
            for (int j = 0; j < 2; j++)
                p2o_offer_part(s, &s->side[k][j], t, f);
    }
}

/* Offers the operator's result, of which the quick points are looked at first. */
void p2o_offer_made(Search *s, ExprOp op, const Form *x, const Form *y, double more, bool sides)
{
    double g[NPOINT];
    Expr   e = { .op = op };
    for (int i = 0; i < NQUICK; i++)
        g[s->quick[i]] = p2o_expr_apply(&e, x->at[s->quick[i]], y ? y->at[s->quick[i]] : 0, 0);
    if (s->two ? !may_tell(s, g) : !may_give(s, g, sides))
        return;
    Form f = p2o_form_of(op, x, y, more);
    p2o_offer(s, &f, sides);
}
