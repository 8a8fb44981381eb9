#include "dyn/baked.h"

#include <math.h>

#include "dyn/source.h"

enum { LARGEST = 1 << 22 };             /* elements of a constant that is looked at */

typedef struct Grid {                   /* one constant, its values as doubles */
    const Tensor *t;
    double       *v;
    uint64_t      n;
    int64_t       rows, cols;           /* the last two dims; 1 where there are none */
} Grid;

static bool load_grid(Arena *a, const Tensor *t, Grid *g)
{
    *g = (Grid){ .t = t, .rows = 1, .cols = 1 };
    if (!p2o_tensor_nelem(t, &g->n) || g->n == 0 || g->n > LARGEST)
        return false;
    size_t   item = p2o_dtype_bytes(t->dtype), nbytes = (size_t)g->n * item;
    uint8_t *raw = p2o_alloc(a, nbytes);
    if (!p2o_tensor_load(t, raw, nbytes))
        return false;
    Tensor *dense = p2o_tensor_make(a, t->dtype, t->rank, t->sizes, raw);
    g->v = NEW_N(a, double, (size_t)g->n);
    for (uint64_t i = 0; i < g->n; i++)
        if (!p2o_tensor_get_f64(dense, i, &g->v[i]))
            return false;
    if (t->rank >= 1)
        g->cols = t->sizes[t->rank - 1];
    if (t->rank >= 2)
        g->rows = t->sizes[t->rank - 2];
    return true;
}

static bool same_value(double x, double y) { return x == y || (x != x && y != y); }

/* Every element is v. */
static bool is_filled(const Grid *g, double v)
{
    for (uint64_t i = 0; i < g->n; i++)
        if (!same_value(g->v[i], v))
            return false;
    return true;
}

/* start, start + step ... along the last dim, which is the only one that is not 1. */
static bool is_counting(const Grid *g, double start, double step)
{
    if ((uint64_t)g->cols != g->n)
        return false;
    for (uint64_t i = 0; i < g->n; i++)
        if (g->v[i] != start + step * (double)i)
            return false;
    return true;
}

typedef enum Region { REGION_LOWER, REGION_DIAGONAL } Region;

static bool in_region(Region r, int64_t row, int64_t col, int64_t diagonal)
{
    return r == REGION_LOWER ? col - row <= diagonal : col - row == diagonal;
}

/* One matrix (leading dims are 1) with `inside` in the region and `outside` elsewhere. */
static bool is_region(const Grid *g, Region r, int64_t diagonal, double inside, double outside)
{
    if ((uint64_t)g->rows * (uint64_t)g->cols != g->n || g->t->rank < 2)
        return false;
    for (int64_t i = 0; i < g->rows; i++)
        for (int64_t k = 0; k < g->cols; k++)
            if (!same_value(g->v[i * g->cols + k], in_region(r, i, k, diagonal) ? inside : outside))
                return false;
    return true;
}

typedef struct Maker {
    Ops         *ops;
    Program     *prog;
    Bindings    *bind;
    VEC(Call *)  calls;
} Maker;

static Var *make_call(Maker *m, const char *target, int nargs, const Arg *args)
{
    Call *c = p2o_ops_call(m->ops, m->prog, m->prog->main, target, nargs, args, 0);
    if (!c)
        return NULL;
    VEC_PUSH(m->prog->arena, &m->calls, c);
    return c->outs[0];
}

static Arg whole(Maker *m, int64_t v) { return arg_int(p2o_dim_int(m->prog->dims, v)); }
static Arg of_dtype(DType t) { return (Arg){ .kind = ARG_DTYPE, .dtype = t }; }

/* A size that may differ between captures. */
static Arg size_arg(Maker *m, const Grid *g, int n, int axis)
{
    int64_t hints[MAX_CAPTURES];
    bool    differs = false;
    for (int k = 0; k < n; k++) {
        hints[k] = g[k].t->sizes[axis];
        differs |= hints[k] != hints[0];
    }
    return differs ? arg_int(p2o_soft(m->bind, hints, "a constant of the capture", 0)) : whole(m, hints[0]);
}

static Arg sizes_arg(Maker *m, const Grid *g, int n)
{
    int  rank = g[0].t->rank;
    Arg *items = NEW_N(m->prog->arena, Arg, (size_t)rank + 1);
    for (int i = 0; i < rank; i++)
        items[i] = size_arg(m, g, n, i);
    return arg_list(items, (size_t)rank);
}

static Var *make_filled(Maker *m, const Grid *g, int n)
{
    return make_call(m, "aten::full", 3, (Arg[]){ sizes_arg(m, g, n), arg_float(g[0].v[0]), of_dtype(g[0].t->dtype) });
}

/* Counting on the last dim; leading dims of 1 are put before it. */
static Var *make_counting(Maker *m, const Grid *g, int n, double step)
{
    int  rank = g[0].t->rank;
    Var *v = make_call(m, "aten::arange", 2, (Arg[]){ size_arg(m, g, n, rank - 1), of_dtype(g[0].t->dtype) });
    if (v && step != 1)
        v = make_call(m, "aten::mul.Tensor", 2, (Arg[]){ arg_var(v), arg_float(step) });
    if (v && g[0].v[0] != 0)
        v = make_call(m, "aten::add.Tensor", 2, (Arg[]){ arg_var(v), arg_float(g[0].v[0]) });
    for (int i = 1; v && i < rank; i++)
        v = make_call(m, "aten::unsqueeze", 2, (Arg[]){ arg_var(v), whole(m, 0) });
    return v ? make_call(m, "aten::_to_copy", 2, (Arg[]){ arg_var(v), of_dtype(g[0].t->dtype) }) : NULL;
}

static Var *make_region(Maker *m, const Grid *g, int n, Region r, int64_t diagonal, double inside, double outside)
{
    Var *ones = make_call(m, "aten::ones", 2, (Arg[]){ sizes_arg(m, g, n), of_dtype(DT_I64) });
    Var *v = ones ? make_call(m, "aten::tril", 2, (Arg[]){ arg_var(ones), whole(m, diagonal) }) : NULL;
    if (v && r == REGION_DIAGONAL)
        v = make_call(m, "aten::triu", 2, (Arg[]){ arg_var(v), whole(m, diagonal) });
    v = v ? make_call(m, "aten::ne.Scalar", 2, (Arg[]){ arg_var(v), whole(m, 0) }) : NULL;
    v = v ? make_call(m, "aten::where.Scalar", 3, (Arg[]){ arg_var(v), arg_float(inside), arg_float(outside) }) : NULL;
    return v ? make_call(m, "aten::_to_copy", 2, (Arg[]){ arg_var(v), of_dtype(g[0].t->dtype) }) : NULL;
}

static Var *try_regions(Maker *m, const Grid *g, int n)
{
    for (int r = REGION_LOWER; r <= REGION_DIAGONAL; r++) {
        for (int64_t d = -2; d <= 2; d++) {
            const Grid *first = &g[0];
            double      inside = NAN, outside = NAN;
            for (int64_t i = 0; i < first->rows; i++)
                for (int64_t k = 0; k < first->cols; k++)
                    *(in_region((Region)r, i, k, d) ? &inside : &outside) = first->v[i * first->cols + k];
            bool fits = first->rows > 1;
            for (int k = 0; k < n && fits; k++)
                fits = is_region(&g[k], (Region)r, d, inside, outside);
            if (fits)
                return make_region(m, g, n, (Region)r, d, inside, outside);
        }
    }
    return NULL;
}

static Var *find_pattern(Maker *m, const Grid *g, int n)
{
    bool   filled = true, counting = g[0].cols > 1;
    double start = g[0].v[0], step = g[0].cols > 1 ? g[0].v[1] - g[0].v[0] : 1;
    for (int k = 0; k < n; k++) {
        filled &= is_filled(&g[k], start);
        counting &= is_counting(&g[k], start, step);
    }
    if (filled)
        return make_filled(m, g, n);
    return counting ? make_counting(m, g, n, step) : try_regions(m, g, n);
}

static void put_calls(Maker *m, size_t at)
{
    Body *b = m->prog->main;
    for (size_t i = 0; i < m->calls.n; i++)
        VEC_PUSH(m->prog->arena, &b->calls, NULL);
    memmove(b->calls.at + at + m->calls.n, b->calls.at + at, (b->calls.n - m->calls.n - at) * sizeof *b->calls.at);
    memcpy(b->calls.at + at, m->calls.at, m->calls.n * sizeof *b->calls.at);
}

bool p2o_baked_tensor(Ops *o, Program *p, Bindings *b, Var *first, const Tensor *const *v, int n)
{
    Maker m = { .ops = o, .prog = p, .bind = b };
    Grid  g[MAX_CAPTURES];
    for (int k = 0; k < n; k++)
        if (v[k]->rank != v[0]->rank || v[k]->dtype != v[0]->dtype || !load_grid(p->arena, v[k], &g[k]))
            return false;
    Var *made = find_pattern(&m, g, n);
    if (!made)
        return false;
    Call *last = made->def;                     /* its result takes the constant's place */
    last->outs[0] = first;
    first->def = last;
    first->tensor = NULL;
    first->recorded = (Type){ 0 };
    put_calls(&m, 0);
    return true;
}

typedef enum FloatForm { FORM_N, FORM_INVERSE, FORM_SQRT, FORM_INVERSE_SQRT, FORM_LOG, FORM_LOG2, NFORM } FloatForm;

static double form_value(FloatForm f, double n)
{
    double root = f == FORM_SQRT || f == FORM_INVERSE_SQRT ? sqrt(n) : n;
    if (f == FORM_LOG || f == FORM_LOG2)
        return f == FORM_LOG ? log(n) : log2(n);
    return f == FORM_INVERSE || f == FORM_INVERSE_SQRT ? 1 / root : root;
}

static bool is_whole(double v) { return fabs(v - round(v)) <= 1e-9 * fabs(v); }

/* A factor that people write: a small number or part, or one that stands in the line. */
static bool is_simple(const Place *at, double c)
{
    enum { SMALL = 16 };
    double v = fabs(c);
    bool   small = (v <= SMALL && is_whole(v)) || (v > 0 && 1 / v <= SMALL && is_whole(1 / v));
    return small || p2o_source_spells(at, v) || (v > 0 && p2o_source_spells(at, 1 / v));
}

/* v[k] = c * form(size at k) for one c that is simple. */
static bool form_fits(Bindings *b, const Place *at, FloatForm f, Dim size, const double *v, int n, double *c)
{
    for (int k = 0; k < n; k++) {
        int64_t hint;
        if (!p2o_hint_at(b, size, k, &hint) || hint < 1)
            return false;
        double here = v[k] / form_value(f, (double)hint);
        if (k == 0)
            *c = here;
        else if (!(fabs(here - *c) <= 1e-9 * fabs(*c)))
            return false;
    }
    return isfinite(*c) && *c != 0 && is_simple(at, *c);
}

typedef struct FloatSearch {
    const Program *prog;
    Bindings      *bind;
    const Place   *at;
    const double  *v;
    int            n, found;
    VEC(Dim)       symbols;
    Dim            size;
    FloatForm      form;
    double         c;
} FloatSearch;

static void add_symbol(void *user, Dim sym)
{
    FloatSearch *s = user;
    for (size_t i = 0; i < s->symbols.n; i++)
        if (s->symbols.at[i] == sym)
            return;
    VEC_PUSH(s->prog->arena, &s->symbols, sym);
}

/* The root of a square is the size itself. */
static void try_size(FloatSearch *s, Dim size, bool square)
{
    double c = 0;
    for (int f = 0; f < NFORM; f++) {
        if (square && (f == FORM_SQRT || f == FORM_INVERSE_SQRT))
            continue;
        if (!form_fits(s->bind, s->at, (FloatForm)f, size, s->v, s->n, &c))
            continue;
        s->found++;
        s->size = size;
        s->form = (FloatForm)f;
        s->c = c;
    }
}

/* A size that was the same in every capture may hide in the factor. */
static bool may_hide(const FloatSearch *s)
{
    int64_t first, v;
    for (size_t i = 0; i < s->symbols.n; i++) {
        bool varies = false;
        for (int k = 0; k < s->n; k++)
            varies |= !p2o_hint_at(s->bind, s->symbols.at[i], 0, &first) || !p2o_hint_at(s->bind, s->symbols.at[i], k, &v) || v != first;
        if (!varies)
            return true;
    }
    return false;
}

bool p2o_baked_float(Ops *o, Program *p, Bindings *b, const double *v, int n, size_t *at, Arg *out)
{
    Maker       m = { .ops = o, .prog = p, .bind = b };
    FloatSearch s = { .prog = p, .bind = b, .at = p2o_place_at(p->diags, p->main->calls.at[*at]->loc), .v = v, .n = n };
    for (size_t i = 0; i < p->main->inputs.n; i++) {
        Shape shape = p->main->inputs.at[i]->type.shape;
        for (int k = 0; k < shape.rank; k++)
            p2o_dim_symbols(p2o_resolve(b, shape.at[k]), add_symbol, &s);
    }
    for (size_t i = 0; i < s.symbols.n; i++) {
        try_size(&s, s.symbols.at[i], false);
        for (size_t k = 0; k <= i; k++)
            try_size(&s, p2o_dim_mul(p->dims, s.symbols.at[i], s.symbols.at[k]), k == i);
    }
    if (s.found != 1 || s.form >= FORM_LOG || (fabs(s.c - 1) > 1e-9 && may_hide(&s)))
        return false;
    bool inverse = s.form == FORM_INVERSE || s.form == FORM_INVERSE_SQRT;
    Var *x = make_call(&m, "torch::sym_float", 1, (Arg[]){ arg_int(s.size) });
    if (x && (s.form == FORM_SQRT || s.form == FORM_INVERSE_SQRT))
        x = make_call(&m, "torch::_sym_sqrt", 1, (Arg[]){ arg_var(x) });
    if (x && inverse)
        x = make_call(&m, "_operator::truediv", 2, (Arg[]){ arg_float(s.c), arg_var(x) });
    else if (x && fabs(s.c - 1) > 1e-9)
        x = make_call(&m, "_operator::mul", 2, (Arg[]){ arg_float(s.c), arg_var(x) });
    if (!x)
        return false;
    put_calls(&m, *at);
    *at += m.calls.n;
    *out = arg_var(x);
    return true;
}
