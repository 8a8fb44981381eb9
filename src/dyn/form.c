#include "dyn/search.h"

#include <math.h>
#include <stdlib.h>

static const double steps[NSTEP] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 20, 24, 32, 64 };

static double op_bits(ExprOp op)
{
    return op == EXPR_MIN || op == EXPR_MAX || op == EXPR_CEIL ? BITS_STEP + 1 : BITS_STEP;
}

Form p2o_form_of(ExprOp op, const Form *x, const Form *y, double more)
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
    kept->made = s->nmade++;
    return *slot = kept;
}

Form *p2o_form_number(Search *s, double v)
{
    Form *f = NEW(s->arena, Form);
    *f = (Form){ .expr = { .op = EXPR_NUMBER, .number = v }, .bits = p2o_number_bits(v) };
    for (int i = 0; i < NPOINT; i++)
        f->at[i] = v;
    return f;
}

Form p2o_form_base(const Search *s, int base)
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
    int         order = (a->bits > b->bits) - (a->bits < b->bits);
    return order ? order : (a->made > b->made) - (a->made < b->made);
}

static void make_sizes(Search *s)
{
    static const ExprOp pairs[] = { EXPR_SUB, EXPR_ADD, EXPR_MUL, EXPR_MIN, EXPR_MAX };
    Form               *one = s->number[0], *two = s->number[1];
    for (int i = tables_first_size(s->t); i < tables_nbase(s->t); i++)
        add_size(s, p2o_form_base(s, i));
    size_t n = s->sizes.n;
    for (size_t i = 0; i < n; i++) {
        Form *x = s->sizes.at[i];
        add_size(s, p2o_form_of(EXPR_SUB, x, one, 0));
        add_size(s, p2o_form_of(EXPR_ADD, x, one, 0));
        Form *twice = add_size(s, p2o_form_of(EXPR_MUL, x, two, -1));
        if (twice)
            add_size(s, p2o_form_of(EXPR_SUB, twice, one, 0));
        for (int k = 1; k < 4; k++)
            add_size(s, p2o_form_of(EXPR_FLOOR, x, s->number[k], 0));
        add_size(s, p2o_form_of(EXPR_CEIL, x, two, 0));
        Form *root = add_size(s, p2o_form_of(EXPR_ROOT, x, NULL, 3));
        if (root)
            add_size(s, p2o_form_of(EXPR_ADD, root, one, 0));
    }
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < n; k++) {
            Form *x = s->sizes.at[i], *y = s->sizes.at[k];
            for (size_t j = 0; j < COUNT_OF(pairs) && i != k; j++) {
                Form *f = j == 0 || i < k ? add_size(s, p2o_form_of(pairs[j], x, y, 0)) : NULL;
                if (f && j == 0)
                    add_size(s, p2o_form_of(EXPR_FLOOR, f, two, 0));
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
    Form *eight = p2o_form_number(s, 8), *one = s->number[0], *two = s->number[1], *made[8];
    Form  chain = p2o_form_of(EXPR_MUL, p, eight, 0);
    int   n = 0;
    for (int i = 0; i < 8; i++)
        made[i] = NEW(s->arena, Form);
    *made[n++] = chain;
    *made[1] = p2o_form_of(EXPR_ADD, made[0], one, 0);
    *made[2] = p2o_form_of(EXPR_SQRT, made[1], NULL, 0);
    *made[3] = p2o_form_of(EXPR_SUB, made[2], one, 0);
    *made[4] = p2o_form_of(EXPR_FLOOR, made[3], two, 0);
    *made[5] = p2o_form_of(EXPR_ADD, made[4], one, 0);
    *made[6] = p2o_form_of(EXPR_MUL, made[4], made[5], 0);
    *made[7] = p2o_form_of(EXPR_FLOOR, made[6], two, 0);
    made[4]->bits = p->bits + 2 * BITS_STEP;    /* as an index: triu_indices says it shorter */
    add_leaf(s, *made[4]);
    Form place = p2o_form_of(EXPR_SUB, p, made[7], 0);
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
    for (int i = 0; i < tables_first_size(t); i++) {
        Form *x = NEW(s->arena, Form), *kept = add_leaf(s, *x = p2o_form_base(s, i));
        if (i < t->nindex)
            s->index[i] = kept ? kept : x;
    }
    if (t->nindex > 1)
        add_leaf(s, p2o_form_of(EXPR_ADD, s->index[0], s->index[1], 0));
    if (is_triangular(t) && s->sizes.n) {
        Form *left = NEW(s->arena, Form), *last = NEW(s->arena, Form);
        add_triangle(s, s->index[0]);
        *last = p2o_form_of(EXPR_SUB, s->sizes.at[0], s->number[0], 0);
        *left = p2o_form_of(EXPR_SUB, last, s->index[0], 0);
        left->bits = s->index[0]->bits + BITS_STEP;
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
        add_form(s, p2o_form_of(EXPR_ADD, x, c, 0));
        add_form(s, p2o_form_of(EXPR_SUB, x, c, 0));
        if (!i)
            continue;
        add_form(s, p2o_form_of(EXPR_MUL, x, c, -1));
        add_form(s, p2o_form_of(EXPR_FLOOR, x, c, 0));
        add_form(s, p2o_form_of(EXPR_MOD, x, c, 0));
    }
    for (size_t i = 0; i < s->sizes.n; i++) {
        for (size_t k = 0; k < COUNT_OF(sized); k++)
            add_form(s, p2o_form_of(sized[k], x, s->sizes.at[i], 0));
        add_form(s, p2o_form_of(EXPR_SUB, s->sizes.at[i], x, 0));
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
                    add_form(s, p2o_form_of(pairs[j], x, s->leaves.at[k], 0));
        for (int c = 1; c < 8; c++) {
            Form *product = NEW(s->arena, Form);
            *product = p2o_form_of(EXPR_MUL, x, s->number[c], -1);
            for (int d = 0; d < 5; d++) {
                add_form(s, p2o_form_of(EXPR_ADD, product, s->number[d], 0));
                add_form(s, p2o_form_of(EXPR_SUB, product, s->number[d], 0));
            }
            for (size_t k = 0; k < s->sizes.n && c == 1; k++)   /* from the middle */
                add_form(s, p2o_form_of(EXPR_SUB, product, s->sizes.at[k], 0));
        }
    }
    size_t n = s->forms.n;
    for (size_t i = 0; i < n; i++) {
        const Form *x = s->forms.at[i];
        bool        below = false;
        for (int k = 0; k < NPOINT; k++)
            below |= x->at[k] < 0;
        if (below && x->expr.op == EXPR_SUB)
            add_form(s, p2o_form_of(EXPR_ABS, x, NULL, 0));
    }
    qsort(s->forms.at, s->forms.n, sizeof *s->forms.at, by_bits);
}

void p2o_forms_make(Search *s)
{
    for (int i = 0; i < NSTEP; i++)
        s->number[i] = p2o_form_number(s, steps[i]);
    make_sizes(s);
    make_leaves(s);
    make_forms(s);
}
