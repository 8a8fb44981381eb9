#include "dyn/element.h"

#include <math.h>
#include <stdlib.h>

#include "base/vec.h"
#include "dyn/enough.h"

enum {
    MARGIN_BITS = 4,            /* of what the grammar of all numbers lacks */
    MAX_SIZES = 48,             /* forms of sizes alone: the cheapest */
    MAX_FORMS = 4000,
    MAX_TARGETS = 4 + MAX_INDICES,
    MAX_CONDITIONS = 72,        /* that elements may be told apart by */
    MAX_FOUND = 12,
    DEAREST_ELEMENT = 110,
};

typedef struct Form {                   /* an expression with its values at the points */
    Expr   expr;
    double bits;
    bool   index;                       /* it varies inside a capture */
    double at[NPOINT];
} Form;

typedef struct Condition {
    Term     term;
    PointSet yes;
} Condition;

enum { NQUICK = 24, NLINE = 3 };

typedef struct Part {                   /* elements that one expression may give */
    PointSet over;
    int      n;
    int      line[NLINE][3], nline;     /* three points of a capture each: in an affine function
                                         * they lie on a line */
    Term     best;
} Part;

typedef struct Found {
    Element element;
    double  probes[NPOINT];
} Found;

static const double steps[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 20, 24, 32, 64 };
enum { NSTEP = sizeof steps / sizeof *steps };

typedef struct Search {
    Arena        *arena;
    const Tables *t;
    Points        points;
    Form         *number[NSTEP];
    VEC(Form *)   sizes;                /* of sizes and numbers alone */
    VEC(Form *)   leaves;               /* indices */
    VEC(Form *)   forms;                /* one step from them */
    Map           known;                /* by values: one of each */
    int           quick[NQUICK];        /* points that most candidates are turned down by */
    Target        target[MAX_TARGETS];
    int           ntarget;
    Part          all;
    struct {
        Part part;                      /* between the least and the largest element */
        Term least, most;               /* those; NULL: no expression of sizes */
    } inner[2];                         /* of each capture, of all */
    int           ncondition;
    Condition     condition[MAX_CONDITIONS];
    Part          side[MAX_CONDITIONS][2];
    bool          two;                  /* elements are yes or no */
    double        yes, no;
    PointSet      is_yes;
    VEC(Condition) masks;               /* for pairs of them */
    Map           mask_known;
    double        margin;               /* bits to the next that differs elsewhere */
    int           nfound;
    Found         found[MAX_FOUND];
} Search;

bool p2o_expr_is_whole(const Expr *e)
{
    if (!e)
        return true;
    if ((e->op >= EXPR_QUOTIENT && e->op <= EXPR_ROUND && e->op != EXPR_ABS) ||
        e->op == EXPR_SCALED ||
        (e->op == EXPR_NUMBER && e->number != floor(e->number)))
        return false;
    return p2o_expr_is_whole(e->a) && p2o_expr_is_whole(e->b) && p2o_expr_is_whole(e->c);
}

static bool same_set(const PointSet *x, const PointSet *y) { return !memcmp(x, y, sizeof *x); }

static bool is_part_of(const PointSet *x, const PointSet *of)
{
    for (size_t i = 0; i < COUNT_OF(x->w); i++)
        if (x->w[i] & ~of->w[i])
            return false;
    return true;
}

static PointSet set_not(const PointSet *x)
{
    PointSet out;
    for (size_t i = 0; i < COUNT_OF(x->w); i++)
        out.w[i] = ~x->w[i];
    return out;
}

static int set_count(const PointSet *x)
{
    int n = 0;
    for (int i = 0; i < NPOINT; i++)
        n += set_has(x, i);
    return n;
}

/* The cheapest candidate that gives all elements, and those that differ from it elsewhere. */
static bool same_at_probes(const double *x, const double *y)
{
    for (int i = 0; i < NPOINT; i++)
        if (!(fabs(x[i] - y[i]) <= 1e-9 * (fabs(x[i]) + fabs(y[i]))) && !isnan(x[i]) &&
            !isnan(y[i]))
            return false;
    return true;
}

static void keep_found(Search *s, Element e, const double *probes)
{
    int at;
    for (int i = 0; i < s->nfound; i++) {
        if (!same_at_probes(s->found[i].probes, probes))
            continue;
        if (s->found[i].element.bits <= e.bits)
            return;
        s->nfound--;
        memmove(&s->found[i], &s->found[i + 1], (size_t)(s->nfound - i) * sizeof *s->found);
        break;
    }
    for (at = s->nfound; at > 0 && s->found[at - 1].element.bits > e.bits; at--)
        ;
    if (at == MAX_FOUND)
        return;
    s->nfound += s->nfound < MAX_FOUND;
    memmove(&s->found[at + 1], &s->found[at], (size_t)(s->nfound - 1 - at) * sizeof *s->found);
    s->found[at].element = e;
    s->found[at].element.expr = p2o_expr_keep(s->arena, e.expr);
    memcpy(s->found[at].probes, probes, sizeof s->found[at].probes);
}

static double dearest(const Search *s)
{
    return s->nfound ? s->found[0].element.bits + s->margin : DEAREST_ELEMENT;
}

static void see_whole_table(Search *s, Term x, bool share)
{
    double values[NPOINT];
    if (!x.expr || x.bits >= dearest(s))
        return;
    p2o_expr_block(x.expr, s->points.bases, NPOINT, values);
    for (int i = 0; i < NPOINT && !share; i++)
        if (!p2o_tables_alike(s->t, values[i], s->points.want[i]))
            return;
    p2o_expr_block(x.expr, s->points.probes, NPOINT, values);
    for (int i = 0; i < NPOINT; i++)
        values[i] = isnan(s->points.probes[0][i]) ? NAN : values[i];
    for (int i = 0; i < s->nfound; i++)
        if (s->found[i].element.bits <= x.bits && s->found[i].element.share == share &&
            same_at_probes(s->found[i].probes, values))
            return;
    if (p2o_tables_given(s->t, x.expr, share))
        keep_found(s, (Element){ x.expr, x.bits, share }, values);
}

/* Forms. */

static double op_bits(ExprOp op)
{
    return op == EXPR_MIN || op == EXPR_MAX || op == EXPR_CEIL ? BITS_STEP + 1 : BITS_STEP;
}

static Form form_of(ExprOp op, const Form *x, const Form *y, double more)
{
    Form f = { .expr = { .op = op, .a = &x->expr, .b = y ? &y->expr : NULL },
               .bits = x->bits + (y ? y->bits : 0) + op_bits(op) + more,
               .index = x->index || (y && y->index) };
    for (int i = 0; i < NPOINT; i++)
        f.at[i] = p2o_expr_apply(&f.expr, x->at[i], y ? y->at[i] : 0, 0) + 0.0;        /* -0 is 0 */
    return f;
}

static Form *keep_form(Search *s, Form f)
{
    for (int i = 0; i < NPOINT; i++)
        if (!isfinite(f.at[i]))
            return NULL;
    Form  *kept = NEW(s->arena, Form);
    *kept = f;
    void **slot = p2o_map_slot(&s->known, (Str){ (const char *)kept->at, sizeof kept->at });
    if (*slot)
        return NULL;
    return *slot = kept;
}

static Form *number_form(Search *s, double v)
{
    Form *f = NEW(s->arena, Form);
    *f = (Form){ .expr = { .op = EXPR_NUMBER, .number = v }, .bits = p2o_number_bits(v) };
    for (int i = 0; i < NPOINT; i++)
        f->at[i] = v;
    return f;
}

static Form base_form(const Search *s, int base)
{
    Form f = { .expr = { .op = EXPR_SIZE, .base = base }, .index = base < tables_first_size(s->t),
               .bits = 2 + log2(tables_nbase(s->t)) };
    memcpy(f.at, s->points.bases[base], sizeof f.at);
    return f;
}

static Form *add_size(Search *s, Form f)
{
    Form *kept = keep_form(s, f);
    if (kept)
        VEC_PUSH(s->arena, &s->sizes, kept);
    return kept;
}

static int by_bits(const void *x, const void *y)
{
    const Form *a = *(Form *const *)x, *b = *(Form *const *)y;
    return (a->bits > b->bits) - (a->bits < b->bits);
}

static void make_sizes(Search *s)
{
    static const ExprOp pairs[] = { EXPR_SUB, EXPR_ADD, EXPR_MUL, EXPR_MIN, EXPR_MAX };
    Form               *one = s->number[0], *two = s->number[1];
    for (int i = tables_first_size(s->t); i < tables_nbase(s->t); i++)
        add_size(s, base_form(s, i));
    size_t n = s->sizes.n;
    for (size_t i = 0; i < n; i++) {
        Form *x = s->sizes.at[i];
        add_size(s, form_of(EXPR_SUB, x, one, 0));
        add_size(s, form_of(EXPR_ADD, x, one, 0));
        Form *twice = add_size(s, form_of(EXPR_MUL, x, two, -1));
        if (twice)
            add_size(s, form_of(EXPR_SUB, twice, one, 0));
        for (int k = 1; k < 4; k++)
            add_size(s, form_of(EXPR_FLOOR, x, s->number[k], 0));
        add_size(s, form_of(EXPR_CEIL, x, two, 0));
        Form *root = add_size(s, form_of(EXPR_ROOT, x, NULL, 3));
        if (root)
            add_size(s, form_of(EXPR_ADD, root, one, 0));
    }
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < n; k++) {
            Form *x = s->sizes.at[i], *y = s->sizes.at[k];
            for (size_t j = 0; j < COUNT_OF(pairs) && i != k; j++) {
                Form *f = j == 0 || i < k ? add_size(s, form_of(pairs[j], x, y, 0)) : NULL;
                if (f && j == 0)
                    add_size(s, form_of(EXPR_FLOOR, f, two, 0));
            }
        }
    }
    if (!n)
        return;
    Form *first = s->sizes.at[0];
    qsort(s->sizes.at + 1, s->sizes.n - 1, sizeof *s->sizes.at, by_bits);
    s->sizes.at[0] = first;                     /* of the last axis: triangles count from its end */
    s->sizes.n = s->sizes.n < MAX_SIZES ? s->sizes.n : MAX_SIZES;
}

static Form *add_leaf(Search *s, Form f)
{
    Form *kept = keep_form(s, f);
    if (kept)
        VEC_PUSH(s->arena, &s->leaves, kept);
    return kept;
}

/* Row and place in it of an element of a list that a triangle's rows make one after the other. */
static void add_triangle(Search *s, Form *p)
{
    Form *eight = number_form(s, 8), *one = s->number[0], *two = s->number[1], *made[8];
    Form  chain = form_of(EXPR_MUL, p, eight, 0);
    int   n = 0;
    for (int i = 0; i < 8; i++)
        made[i] = NEW(s->arena, Form);
    *made[n++] = chain;
    *made[1] = form_of(EXPR_ADD, made[0], one, 0);
    *made[2] = form_of(EXPR_SQRT, made[1], NULL, 0);
    *made[3] = form_of(EXPR_SUB, made[2], one, 0);
    *made[4] = form_of(EXPR_FLOOR, made[3], two, 0);
    *made[5] = form_of(EXPR_ADD, made[4], one, 0);
    *made[6] = form_of(EXPR_MUL, made[4], made[5], 0);
    *made[7] = form_of(EXPR_FLOOR, made[6], two, 0);
    made[4]->bits = p->bits + 2 * BITS_STEP;    /* as an index: triu_indices says it shorter */
    add_leaf(s, *made[4]);
    Form place = form_of(EXPR_SUB, p, made[7], 0);
    place.bits = p->bits + 2 * BITS_STEP;
    add_leaf(s, place);
}

static bool is_triangular(const Tables *t)
{
    for (int k = 0; k < t->n; k++) {
        double n = (double)t->at[k].n, root = sqrt(8 * n + 1);
        if (root != floor(root))
            return false;
    }
    return t->nindex == 1;
}

static void make_leaves(Search *s)
{
    const Tables *t = s->t;
    for (int i = 0; i < tables_first_size(t); i++)
        add_leaf(s, base_form(s, i));
    if (t->nindex > 1)
        add_leaf(s, form_of(EXPR_ADD, s->leaves.at[0], s->leaves.at[1], 0));
    if (is_triangular(t) && s->leaves.n && s->sizes.n) {
        Form *left = NEW(s->arena, Form), *last = NEW(s->arena, Form);
        add_triangle(s, s->leaves.at[0]);
        *last = form_of(EXPR_SUB, s->sizes.at[0], s->number[0], 0);
        *left = form_of(EXPR_SUB, last, s->leaves.at[0], 0);
        left->bits = s->leaves.at[0]->bits + BITS_STEP;
        add_triangle(s, left);
    }
}

static void add_form(Search *s, Form f)
{
    Form *kept = s->forms.n < MAX_FORMS ? keep_form(s, f) : NULL;
    if (kept)
        VEC_PUSH(s->arena, &s->forms, kept);
}

/* One step from an index: beside a number or a size. */
static void step_from(Search *s, const Form *x)
{
    static const ExprOp sized[] = { EXPR_FLOOR, EXPR_MOD, EXPR_MUL, EXPR_ADD, EXPR_SUB };
    for (int i = 0; i < NSTEP; i++) {
        const Form *c = s->number[i];
        add_form(s, form_of(EXPR_ADD, x, c, 0));
        add_form(s, form_of(EXPR_SUB, x, c, 0));
        if (!i)
            continue;
        add_form(s, form_of(EXPR_MUL, x, c, -1));
        add_form(s, form_of(EXPR_FLOOR, x, c, 0));
        add_form(s, form_of(EXPR_MOD, x, c, 0));
    }
    for (size_t i = 0; i < s->sizes.n; i++) {
        for (size_t k = 0; k < COUNT_OF(sized); k++)
            add_form(s, form_of(sized[k], x, s->sizes.at[i], 0));
        add_form(s, form_of(EXPR_SUB, s->sizes.at[i], x, 0));
    }
}

/* c*x + d as well, which // and % take. */
static void make_forms(Search *s)
{
    static const ExprOp pairs[] = { EXPR_MUL, EXPR_ADD, EXPR_MIN, EXPR_MAX, EXPR_SUB };
    for (size_t i = 0; i < s->leaves.n; i++)
        VEC_PUSH(s->arena, &s->forms, s->leaves.at[i]);
    for (size_t i = 0; i < s->leaves.n; i++) {
        const Form *x = s->leaves.at[i];
        step_from(s, x);
        for (size_t k = 0; k < s->leaves.n; k++)
            for (size_t j = 0; j < COUNT_OF(pairs) && k != i; j++)
                if (i < k || j == 4)
                    add_form(s, form_of(pairs[j], x, s->leaves.at[k], 0));
        for (int c = 1; c < 8; c++) {
            Form *product = NEW(s->arena, Form);
            *product = form_of(EXPR_MUL, x, s->number[c], -1);
            for (int d = 0; d < 5; d++) {
                add_form(s, form_of(EXPR_ADD, product, s->number[d], 0));
                add_form(s, form_of(EXPR_SUB, product, s->number[d], 0));
            }
            for (size_t k = 0; k < s->sizes.n && c == 1; k++)
                add_form(s, form_of(EXPR_SUB, product, s->sizes.at[k], 0));    /* from the middle */
        }
    }
    size_t n = s->forms.n;
    for (size_t i = 0; i < n; i++) {
        const Form *x = s->forms.at[i];
        bool        below = false;
        for (int k = 0; k < NPOINT; k++)
            below |= x->at[k] < 0;
        if (below && x->expr.op == EXPR_SUB)
            add_form(s, form_of(EXPR_ABS, x, NULL, 0));
    }
    qsort(s->forms.at, s->forms.n, sizeof *s->forms.at, by_bits);
}

/* What a form may explain. */

static void see_mask(Search *s, Term x, const PointSet *yes)
{
    enum { MOST_MASKS = 6000 };
    for (int turn = 0; turn < 2; turn++) {
        PointSet  set = turn ? set_not(yes) : *yes, other = set_not(&s->is_yes);
        Condition c = { x, set };
        if (same_set(&set, &s->is_yes)) {
            Expr choice = { .op = EXPR_CHOICE,
                            .a = p2o_expr_number(s->arena, turn ? s->no : s->yes),
                            .b = p2o_expr_number(s->arena, turn ? s->yes : s->no), .c = x.expr };
            see_whole_table(s, (Term){ &choice, x.bits }, false);
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
        double     room = 8 * (t->room[p[0]] + t->room[p[1]] + t->room[p[2]]) * (fabs(u) + fabs(v));
        if (!(fabs(x * v - y * u) <= room + 1e-12 * (fabs(x * v) + fabs(y * u))) ||
            (u == 0 && v == 0 && (x != 0 || y != 0)))
            return false;
    }
    return part->nline > 0;
}

/* Lines of the part among the quick points, where there are some; of different elements if
 * possible. */
static void find_lines(const Search *s, Part *part)
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

/* The candidate, known at the quick points alone, may give a part. */
static bool may_give(const Search *s, const double *g, bool sides)
{
    for (int i = 0; i < s->ntarget; i++) {
        if (lies_on_lines(&s->all, &s->target[i], g) ||
            lies_on_lines(&s->inner[0].part, &s->target[i], g) ||
            lies_on_lines(&s->inner[1].part, &s->target[i], g))
            return true;
        for (int k = 0; k < s->ncondition && sides; k++)
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

static void offer_part(Search *s, Part *part, const Target *t, const Form *f)
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
        see_whole_table(s, (Term){ x.expr, x.bits + 2 * BITS_STEP }, true);
}

static void offer(Search *s, const Form *f, bool sides)
{
    if (s->two) {
        see_condition(s, f);
        return;
    }
    for (int i = 0; i < s->ntarget; i++) {
        const Target *t = &s->target[i];
        if (f->bits < dearest(s) && lies_on_lines(&s->all, t, f->at)) {
            Term x = p2o_fit(&s->points, &s->all.over, t, &f->expr, f->bits, f->at, false);
            if (x.expr)
                see_whole_table(s, x, false);
            else if (t->inverse != EXPR_SQRT && !s->t->whole)
                offer_share(s, t, f);
        }
        for (int k = 0; k < 2; k++)
            offer_part(s, &s->inner[k].part, t, f);
        for (int k = 0; k < s->ncondition && sides; k++)
            for (int j = 0; j < 2; j++)
                offer_part(s, &s->side[k][j], t, f);
    }
}

/* Offers the operator's result, of which the quick points are looked at first. */
static void offer_made(Search *s, ExprOp op, const Form *x, const Form *y, double more, bool sides)
{
    double g[NPOINT];
    Expr   e = { .op = op };
    for (int i = 0; i < NQUICK; i++)
        g[s->quick[i]] = p2o_expr_apply(&e, x->at[s->quick[i]], y ? y->at[s->quick[i]] : 0, 0);
    if (s->two ? !may_tell(s, g) : !may_give(s, g, sides))
        return;
    Form f = form_of(op, x, y, more);
    offer(s, &f, sides);
}

/* Two steps: what // and % make of the first, products, the less and the larger of two. */
static void offer_second(Search *s)
{
    static const ExprOp pairs[] = { EXPR_MUL, EXPR_MIN, EXPR_MAX };
    static const ExprOp parts[] = { EXPR_FLOOR, EXPR_MOD };
    enum { CHEAP = 120, SIZES = 24 };
    for (size_t i = 0; i < s->forms.n; i++) {
        const Form *x = s->forms.at[i];
        for (int j = 0; j < 2; j++) {
            for (int k = 1; k < NSTEP; k++)
                offer_made(s, parts[j], x, s->number[k], 0, s->t->whole);
            for (size_t k = 0; k < s->sizes.n && k < SIZES; k++)
                offer_made(s, parts[j], x, s->sizes.at[k], 0, s->t->whole);
        }
        for (size_t k = 0; k <= i && i < CHEAP; k++) {
            for (size_t j = 0; j < COUNT_OF(pairs); j++)
                offer_made(s, pairs[j], x, s->forms.at[k], 0, true);
            if (!s->two)
                continue;
            offer_made(s, EXPR_SUB, x, s->forms.at[k], 0, false);
            offer_made(s, EXPR_SUB, s->forms.at[k], x, 0, false);
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
        if (!y || x->bits + y->bits >= dearest(s))
            continue;
        Form sum = form_of(ops[i], x, y, 0);
        if (part != &s->all) {
            offer_part(s, part, &s->target[0], &sum);
            continue;
        }
        Term t = p2o_fit(&s->points, &part->over, &s->target[0], &sum.expr, sum.bits, sum.at,
                         false);
        if (t.expr)
            see_whole_table(s, t, false);
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
            Form x = form_of(EXPR_MUL, s->forms.at[i], s->sizes.at[k], 0);
            see_sum(s, part, &p, &by_key, &x);
        }
    }
}

static void offer_sums(Search *s)
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
        offer_made(s, EXPR_MUL, x, x, -x->bits, false);
    }
}

static void offer_turns(Search *s, const Form *angle)
{
    offer_made(s, EXPR_COS, angle, NULL, 0, true);
    offer_made(s, EXPR_SIN, angle, NULL, 0, true);
}

/* cos(2 pi x / n) and its like. */
static void offer_cosines(Search *s, const Form *x)
{
    static const double parts[] = { 1, 0.5, 2, 0.25 };
    for (size_t k = 0; k < s->sizes.n; k++) {
        const Form *n = s->sizes.at[k];
        if (n->bits > 2 * BITS_STEP + s->sizes.at[0]->bits)
            continue;
        Form ratio = form_of(EXPR_QUOTIENT, x, n, 0);
        for (size_t i = 0; i < COUNT_OF(parts); i++) {
            Form part = { .expr = { .op = EXPR_NUMBER,
                                    .number = 3.14159265358979323846 * parts[i] },
                          .bits = BITS_STEP + (double)i };
            for (int j = 0; j < NPOINT; j++)
                part.at[j] = part.expr.number;
            Form angle = form_of(EXPR_MUL, &ratio, &part, 0);
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
            Form ratio = form_of(EXPR_QUOTIENT, j, d, 0);
            Form power = form_of(EXPR_MUL, &ratio, &rate, 0);
            Form frequency = form_of(EXPR_EXP, &power, NULL, 0);
            Form angle = form_of(EXPR_MUL, x, &frequency, 0);
            offer(s, &angle, true);
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
        twice[i] = form_of(EXPR_MUL, s->leaves.at[i], s->number[1], -1);
        x[KINDS * i] = *s->leaves.at[i];
        x[KINDS * i + 1] = form_of(EXPR_ADD, s->leaves.at[i], s->number[0], 0);
        x[KINDS * i + 2] = form_of(EXPR_ADD, &twice[i], s->number[0], 0);
    }
    for (size_t i = 0; i < n * KINDS; i++)
        offer_cosines(s, &x[i]);
    for (size_t i = 0; i < n * KINDS && s->t->nindex > 1; i++) {
        for (size_t k = 0; k < i; k++) {
            Form product = form_of(EXPR_MUL, &x[i], &x[k], 0);
            if (i / KINDS < (size_t)s->t->nindex && i / KINDS != k / KINDS)
                offer_cosines(s, &product);
        }
    }
}

static void offer_functions(Search *s)
{
    enum { PLAIN = 30 };
    offer_squares(s);
    offer_waves(s);
    for (int i = 0; i < s->t->nindex; i++)
        for (size_t k = 0; k < s->forms.n && k < PLAIN; k++)
            for (size_t d = 0; d < s->sizes.n; d++)
                if (s->sizes.at[d]->bits <= BITS_STEP + 2 + s->sizes.at[0]->bits &&
                    s->forms.at[k] != s->leaves.at[i])
                    offer_sinusoids(s, s->leaves.at[i], s->forms.at[k], s->sizes.at[d]);
}

/* Places spread evenly up to the largest: rounded, or cut, as floats are. */
static void offer_spread(Search *s)
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
            *product = form_of(EXPR_MUL, s->leaves.at[i], most, 0);
            *ratio = form_of(EXPR_QUOTIENT, product, s->sizes.at[k], 0);
            *step = form_of(EXPR_QUOTIENT, most, s->sizes.at[k], 0);
            *at = form_of(EXPR_MUL, s->leaves.at[i], step, BITS_STEP);
            offer_made(s, EXPR_ROUND, ratio, NULL, 0, false);
            offer_made(s, EXPR_ROUND, at, NULL, 0, false);
            offer_made(s, EXPR_FLOOR, ratio, one, 0, false);
            offer_made(s, EXPR_FLOOR, at, one, 0, false);
        }
    }
}

/* What parts make together. */

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
    see_whole_table(s, upper, false);
    see_whole_table(s, x, false);
    see_whole_table(s, both, false);
}

static void try_choices(Search *s)
{
    for (int i = 0; i < s->ncondition; i++) {
        const Condition *c = &s->condition[i];
        Term             yes = s->side[i][0].best, no = s->side[i][1].best;
        if (!yes.expr || !no.expr)
            continue;
        Expr choice = { .op = EXPR_CHOICE, .a = yes.expr, .b = no.expr, .c = c->term.expr };
        see_whole_table(s, (Term){ &choice, yes.bits + no.bits + c->term.bits + 2 * BITS_STEP },
                        false);
    }
}

static int masks_by_bits(const void *x, const void *y)
{
    const Condition *a = x, *b = y;
    return (a->term.bits > b->term.bits) - (a->term.bits < b->term.bits);
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
            if (bits >= dearest(s))
                break;
            for (size_t j = 0; j < COUNT_OF(set.w); j++)
                set.w[j] = both ? x->yes.w[j] & y->yes.w[j] : x->yes.w[j] | y->yes.w[j];
            if (!same_set(&set, &s->is_yes))
                continue;
            Expr pair = { .op = both ? EXPR_AND : EXPR_OR, .a = x->term.expr, .b = y->term.expr };
            Expr choice = { .op = EXPR_CHOICE, .a = yes, .b = no, .c = &pair };
            see_whole_table(s, (Term){ &choice, bits }, false);
        }
    }
}

static void put_together(Search *s)
{
    if (s->two) {
        try_pairs(s);
        return;
    }
    for (int i = 0; i < 2; i++)
        try_bounds(s, s->inner[i].part.best, s->inner[i].least, s->inner[i].most);
    try_choices(s);
}

/* What there is to explain. */

static void find_two_values(Search *s)
{
    const Tables *t = s->t;
    bool          second = false;
    s->two = true;
    s->yes = t->at[0].v[0];
    for (int k = 0; k < t->n && s->two; k++) {
        for (uint64_t i = 0; i < t->at[k].n && s->two; i++) {
            double v = t->at[k].v[i];
            if (v == s->yes || (second && v == s->no))
                continue;
            s->two = !second;
            s->no = second ? s->no : v;
            second = true;
        }
    }
    s->two &= second;
    for (int i = 0; i < NPOINT; i++)
        if (s->points.want[i] == s->yes)
            set_add(&s->is_yes, i);
}

/* Down to what, up to what: the same number in all captures, or what sizes make of it. */
static void find_bounds_of(Search *s, int which, double *least, double *most)
{
    const Tables *t = s->t;
    double        room = tables_slack(t);
    Part         *part = &s->inner[which].part;
    for (int i = 0; i < NPOINT; i++)
        if (s->points.want[i] > least[s->points.of[i]] + room &&
            s->points.want[i] < most[s->points.of[i]] - room)
            set_add(&part->over, i);
    part->n = set_count(&part->over);
    find_lines(s, part);
    s->inner[which].most = p2o_fit_sizes(&s->points, most, room);
    s->inner[which].least = p2o_fit_sizes(&s->points, least, room);
    if (s->inner[which].least.expr || least[0] >= 0)
        return;
    for (int k = 0; k < t->n; k++)
        least[k] = -least[k];
    Term turned = p2o_fit_sizes(&s->points, least, room);
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
    find_lines(s, &s->all);
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
            *rest = form_of(EXPR_MOD, x, s->number[k], 0);
            *past = form_of(EXPR_SUB, x, s->number[k], 0);
            add_condition(s, rest, EXPR_IS_0);
            add_condition(s, past, EXPR_AT_LEAST_0);
        }
    }
    for (size_t i = 0; i < s->leaves.n; i++) {
        for (size_t k = 0; k < s->sizes.n && k < nsize; k++) {
            Form *past = NEW(s->arena, Form), *row = NEW(s->arena, Form);
            Form *even = NEW(s->arena, Form);
            *past = form_of(EXPR_SUB, s->leaves.at[i], s->sizes.at[k], 0);
            *row = form_of(EXPR_FLOOR, s->leaves.at[i], s->sizes.at[k], 0);
            *even = form_of(EXPR_MOD, row, s->number[1], 0);
            add_condition(s, past, EXPR_AT_LEAST_0);
            add_condition(s, even, EXPR_IS_0);
        }
    }
    for (int i = 0; i < s->ncondition; i++) {
        for (int j = 0; j < 2; j++) {
            Part  *part = &s->side[i][j];
            find_lines(s, part);
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
                part->best = p2o_fit_sizes(&s->points, at, tables_slack(s->t));
        }
    }
}

/* The grammar of all numbers. */

static void see_grammar(void *user, const Expr *e, double bits, const double *values)
{
    Search *s = user;
    if (bits >= dearest(s))
        return;
    if (!s->two) {
        for (int i = 0; i < MAX_POINTS; i++)
            if (!p2o_tables_alike(s->t, values[i], s->points.want[i * NPOINT / MAX_POINTS]))
                return;
        see_whole_table(s, (Term){ e, bits }, false);
        return;
    }
    for (int how = 0; how < 2; how++) {
        int yes = 0;
        for (int i = 0; i < MAX_POINTS; i++)
            yes += (how ? values[i] == 0 : values[i] >= 0) ==
                   set_has(&s->is_yes, i * NPOINT / MAX_POINTS);
        if (yes && yes < MAX_POINTS)
            continue;
        Expr condition = { .op = how ? EXPR_IS_0 : EXPR_AT_LEAST_0, .a = e };
        Expr choice = { .op = EXPR_CHOICE, .a = p2o_expr_number(s->arena, yes ? s->yes : s->no),
                        .b = p2o_expr_number(s->arena, yes ? s->no : s->yes), .c = &condition };
        see_whole_table(s, (Term){ &choice, bits }, false);
    }
}

static void offer_grammar(Search *s)
{
    Bases b = { .n = tables_nbase(s->t) - s->t->nsymbol, .nfit = MAX_POINTS, .npoint = MAX_POINTS };
    for (int i = 0; i < MAX_POINTS; i++)
        for (int j = 0; j < b.n; j++)
            b.at[j][i] = s->points.bases[j][i * NPOINT / MAX_POINTS];
    p2o_enumerate_whole(&b, see_grammar, s);
    if (!s->t->whole && !s->nfound)
        p2o_enumerate_float(&b, see_grammar, s);
}

/* Eight points of each of three captures. */
static void choose_quick(Search *s)
{
    int n = s->t->n, captures[] = { 0, n / 2, n - 1 };
    for (int i = 0; i < NQUICK; i++) {
        int first = (captures[i / 8] * NPOINT + n - 1) / n;
        s->quick[i] = (first + i % 8 * (n > 8 ? 1 : 2) + (n < 3 && i >= 16)) % NPOINT;
    }
}

static void search(Search *s)
{
    enum { FEWEST_CAPTURES = 3 };       /* two odd sizes do not tell n//2 from (n - 1)//2 */
    static const ExprOp inverses[] = { EXPR_SIZE, EXPR_EXP, EXPR_SQRT, EXPR_QUOTIENT };
    offer_grammar(s);
    if (s->nfound || p2o_tables_different(s->t) < FEWEST_CAPTURES)
        return;
    s->margin = MARGIN_BITS;
    for (int i = 0; i < (s->t->whole ? 1 : 4); i++)
        s->ntarget += p2o_target_make(&s->points, inverses[i], &s->target[s->ntarget]);
    for (int i = 0; i < s->t->nindex && s->t->whole; i++) {
        Expr *x = NEW(s->arena, Expr);
        *x = (Expr){ .op = EXPR_SIZE, .base = i };
        p2o_target_less(&s->points, x, 2 + log2(tables_nbase(s->t)), &s->target[s->ntarget++]);
    }
    if (!s->ntarget && !s->two)
        return;
    choose_quick(s);
    for (int i = 0; i < NSTEP; i++)
        s->number[i] = number_form(s, steps[i]);
    make_sizes(s);
    make_leaves(s);
    make_forms(s);
    if (!s->two) {
        find_bounds(s);
        make_conditions(s);
    }
    for (size_t i = 0; i < s->forms.n; i++)
        offer(s, s->forms.at[i], true);
    put_together(s);
    if (s->nfound)
        return;
    offer_second(s);
    offer_sums(s);
    put_together(s);
    if (s->nfound || s->two)
        return;
    if (s->t->whole)
        offer_spread(s);
    else
        offer_functions(s);
    put_together(s);
}

static bool find_one_value(Arena *a, const Tables *t, Element *out)
{
    for (int k = 0; k < t->n; k++)
        for (uint64_t i = 0; i < t->at[k].n; i++)
            if (!p2o_tables_alike(t, t->at[k].v[i], t->at[0].v[0]))
                return false;
    *out = (Element){ .expr = p2o_expr_number(a, t->at[0].v[0]) };
    return true;
}

/* What the search needs is given back; the expression outlives it. */
static bool keep_best(Arena *a, const Search *s, ArenaMark mark, Element *out)
{
    enum { MAX_NODES = 128 };
    Expr nodes[MAX_NODES];
    int  n = 1;
    *out = s->found[0].element;
    nodes[0] = *out->expr;
    for (int i = 0; i < n; i++) {
        const Expr **child[] = { &nodes[i].a, &nodes[i].b, &nodes[i].c };
        for (int j = 0; j < 3; j++) {
            if (!*child[j])
                continue;
            if (n == MAX_NODES)
                return false;
            nodes[n] = **child[j];
            *child[j] = &nodes[n++];
        }
    }
    p2o_arena_rewind(a, mark);
    out->expr = p2o_expr_keep(a, &nodes[0]);
    return true;
}

bool p2o_element_find(Arena *a, const Tables *t, const Dim *symbols, size_t nsymbol, Element *out)
{
    if (find_one_value(a, t, out))
        return true;
    ArenaMark mark = p2o_arena_mark(a);
    Search   *s = NEW(a, Search);
    s->arena = a;
    s->t = t;
    s->known.arena = s->mask_known.arena = a;
    p2o_points_choose(&s->points, a, t, symbols, nsymbol);
    find_two_values(s);
    search(s);
    bool clear = s->nfound && (s->nfound == 1 || s->found[1].element.bits >=
                                                     s->found[0].element.bits + s->margin);
    if (clear && !p2o_tables_is_unclear(t, s->found[0].element.expr) &&
        s->found[0].element.bits <= p2o_tables_bits(t, s->two) &&
        keep_best(a, s, mark, out))
        return true;
    p2o_arena_rewind(a, mark);
    return false;
}
