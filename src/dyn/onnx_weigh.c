/* The numbers of an ONNX file, weighed.
 *
 * There is one file only, and mostly no source line, so a number is one where no cheap expression
 * of the sizes gives it, and refused where one does: nothing in the file says which it was.  Where
 * the exporter wrote the line and the call into the file, they are evidence, as in saved
 * programs. */
#include "dyn/onnx_numbers.h"

#include "base/num.h"
#include "dyn/verdict.h"

enum {
    BITS_FIXED_SIZE = 2,        /* of a size that never changes, beside which it is among them */
    BITS_STEP = 3,              /* of 1/x, and of the root */
    BITS_STRICT = 7,            /* an expression must cost this more than a place or a count */
    BITS_STRICT_PAD = 8,        /* the same of a pad that is at one end only */
};

/* Numbers that the engine took for numbers, by what they cost. */
static void find_taken(Weighing *w)
{
    for (size_t i = 0; i < p2o_bind_nevent(w->s->bind); i++) {
        const BindEvent *e = p2o_bind_event(w->s->bind, i);
        if (e->why == BIND_EVIDENCE && p2o_dim_is_int(e->to, NULL))
            *p2o_onnx_seen(w, &e->sym, sizeof e->sym) = w;
    }
}

static void note_fixed_size(Weighing *w, int64_t size, bool given)
{
    void **slot = size > 1 ? p2o_onnx_seen(w, &size, sizeof size) : NULL;
    if (!slot || *slot)
        return;
    *slot = w;
    VEC_PUSH(w->arena, &w->fixed, ((FixedSize){ size, given }));
}

/* Of all values and weights. */
static void find_fixed_sizes(Weighing *w)
{
    const OnnxSettling *s = w->s;
    int64_t             size;
    for (size_t i = 0; i < s->model->graph->inits.n; i++) {
        const Tensor *t = s->model->graph->inits.at[i]->tensor;
        for (int d = 0; t && p2o_onnx_is_weights(t) && d < t->rank; d++)
            note_fixed_size(w, t->sizes[d], true);
    }
    for (int turn = 0; turn < 2; turn++) {      /* inputs first */
        for (uint32_t i = 0; i < s->nvar; i++) {
            const Var *v = s->vars[i];
            if (!v || v->type.kind != TY_TENSOR || (!v->def) != (turn == 0))
                continue;
            for (int d = 0; d < v->type.shape.rank; d++)
                if (p2o_dim_is_int(p2o_resolve(s->bind, v->type.shape.at[d]), &size))
                    note_fixed_size(w, size, turn == 0);
        }
    }
}

/* A place along an axis that is dynamic and a pad have nothing to do with sizes of other axes. */
static bool has_to_do_with_sizes(const Number *x)
{
    return x->fixed || !(x->role == NUMBER_PLACE || x->role == NUMBER_PAD);
}

/* Bits of a size that never changes, or of 1/x or a root of one, that gives the number; 0: none
 * does. */
static double bits_by_fixed(const Weighing *w, const Number *x)
{
    double best = INFINITY, own = BITS_FIXED_SIZE + log2((double)w->fixed.n + 1);
    if (!has_to_do_with_sizes(x) || x->lonely)
        return 0;
    for (size_t i = 0; i < w->fixed.n; i++) {
        double       k = (double)w->fixed.at[i].size;
        const double forms[] = { k, 1 / k, sqrt(k), 1 / sqrt(k), sqrt(sqrt(k)), 1 / sqrt(sqrt(k)) };
        static const int steps[] = { 0, 1, 1, 2, 2, 3 };
        if (x->role == NUMBER_EXTENT && !w->fixed.at[i].given)
            continue;                           /* that may be this one */
        for (int f = 0; f < (x->whole ? 1 : 6); f++)
            if (is_alike(forms[f], x->at, x->whole ? 0 : x->slack))
                best = fmin(best, own + BITS_STEP * steps[f]);
    }
    return isfinite(best) ? best : 0;
}

static bool has_own_size(const OnnxSettling *s, const Value *v, double at)
{
    int64_t size;
    for (int d = 0; v && v->dtype && d < v->shape.rank; d++)
        if (p2o_dim_is_int(p2o_resolve(s->bind, v->shape.at[d]), &size) && (double)size == at &&
            size > 1)
            return true;
    return false;
}

static bool is_by_fixed(const Weighing *w, const Number *x)
{
    const Node *n = x->call->file->node;
    bool        fixed = x->fixed;
    for (int i = 0; i < n->nin && !fixed && x->whole && !x->length && has_to_do_with_sizes(x); i++)
        fixed = has_own_size(w->s, n->in[i], x->at);
    return fixed;
}

static void add_weighed_symbol(void *user, Dim sym)
{
    Weighing *w = user;
    for (size_t i = 0; i < w->symbols.n; i++)
        if (w->symbols.at[i] == sym)
            return;
    VEC_PUSH(w->arena, &w->symbols, sym);
}

static void find_bases(Weighing *w)
{
    const OnnxSettling *s = w->s;
    for (size_t i = 0; i < s->prog->main->inputs.n; i++) {
        Shape shape = s->prog->main->inputs.at[i]->type.shape;
        for (int d = 0; d < shape.rank; d++)
            p2o_dim_symbols(p2o_resolve(s->bind, shape.at[d]), add_weighed_symbol, w);
    }
    p2o_bases_start(&w->bases, s->bind, w->symbols.at, w->symbols.n);
    for (size_t i = 0; i < w->symbols.n; i++)
        p2o_bases_add(&w->bases, s->bind, w->symbols.at[i]);
}

static void add_base(const OnnxSettling *s, Bases *b, Dim d)
{
    d = d ? p2o_resolve(s->bind, d) : NULL;
    if (d && !p2o_dim_is_int(d, NULL) && !p2o_dim_is_sym(d))
        p2o_bases_add(b, s->bind, d);
}

/* Sizes of the node's own tensors, and how many elements what it scales is a sum of. */
static void add_own_bases(const OnnxSettling *s, Bases *b, const Node *n)
{
    for (int i = 0; i < n->nin; i++) {
        const Value *v = n->in[i];
        for (int d = 0; v && v->dtype && d < v->shape.rank; d++)
            add_base(s, b, v->shape.at[d]);
        if (v && v->id < s->nvar)
            add_base(s, b, s->summed[v->id]);
    }
}

static Readings *readings_for(Weighing *w, const Number *x, const Bases *own)
{
    struct Key {
        double at, slack, whole;
        Dim    own[MAX_BASES];
    } key = { x->at, x->slack, x->whole, { 0 } };
    for (int i = 0; i < own->n; i++)
        key.own[i] = own->dim[i];
    void **slot = p2o_onnx_seen(w, &key, sizeof key);
    if (*slot)
        return *slot;
    Readings *r = NEW(w->arena, Readings);
    r->want[0] = x->at;
    r->whole = x->whole;
    r->slack = x->slack;
    return *slot = r;
}

/* Those over the inputs' sizes, once for all numbers. */
static void read_numbers(Weighing *w)
{
    static const Bases none;
    for (size_t i = 0; i < w->list.n; i++)
        VEC_PUSH(w->arena, &w->all, readings_for(w, &w->list.at[i], &none));
    VEC(Readings *) each = { 0 };
    for (size_t i = 0; i < w->all.n; i++) {
        bool first = w->all.at[i]->n == 0;
        w->all.at[i]->n = -1;                   /* taken */
        if (first)
            VEC_PUSH(w->arena, &each, w->all.at[i]);
    }
    for (size_t i = 0; i < each.n; i++)
        each.at[i]->n = 0;
    p2o_readings(w->arena, &w->bases, each.at, each.n);
}

static const Readings *all_readings(Weighing *w, size_t i)
{
    const Number *x = &w->list.at[i];
    Bases         own;
    p2o_bases_start(&own, w->s->bind, w->symbols.at, w->symbols.n);
    add_own_bases(w->s, &own, x->call->file->node);
    int nown = own.n;
    if (!nown)
        return w->all.at[i];
    Readings *r = readings_for(w, x, &own);
    if (r->list[0].expr)
        return r;
    Bases *b = NEW(w->arena, Bases);
    *b = own;
    for (size_t k = 0; k < w->symbols.n; k++)
        p2o_bases_add(b, w->s->bind, w->symbols.at[k]);
    *r = *w->all.at[i];
    if (x->whole)
        p2o_readings_own(w->arena, b, nown, r);
    else
        p2o_readings(w->arena, b, &r, 1);
    return r;
}

/* A scalar that nothing explains, and that an exporter named or wrote into the graph: computed, but
 * from what? */
static bool is_unexplained(const Number *x, const Readings *r, double known)
{
    static const double constants[] = { 3.14159265358979323846, 2.71828182845904523536,
                                        0.79788456080286535588, 1.4426950408889634074,
                                        0.43429448190325182765, 2.3025850929940456840,
                                        0.69314718055994530942, 1.1283791670955125739,
                                        2.5066282746310005024 };
    if (x->whole || x->parameter || r->n || known > 0 || is_said(x->at))
        return false;
    for (size_t i = 0; i < COUNT_OF(constants); i++)
        for (int k = 1; k <= 360; k = k == 2 ? 180 : k == 180 ? 360 : k + 1)
            if (is_alike(constants[i] * k, x->at, x->slack) ||
                is_alike(constants[i] / k, x->at, x->slack))
                return false;
    return true;
}

static void refuse_number(Weighing *w, const Number *x, const char *readings)
{
    char text[32];
    bool again = w->last && w->last->call == x->call && w->last->at == x->at;
    w->last = x;
    if (!again)
        p2o_onnx_refuse(w, &x->call->call,
                        p2o_printf(w->arena, "%s was %s in the file: %s",
                                   x->square ? "the square of a number" : "a number",
                                   p2o_format_f64(text, x->at), readings));
}

/* A size of the expression is made of what the axis is made of. */
static bool is_along(const Reading *r, const Expr *e, Dim axis)
{
    return (e->op == EXPR_SIZE && p2o_dim_are_kin(axis, r->of->dim[e->base])) ||
           (e->a && is_along(r, e->a, axis)) || (e->b && is_along(r, e->b, axis));
}

static bool has_rest(const Expr *e)
{
    return e && (e->op == EXPR_MOD || e->op == EXPR_LACK || has_rest(e->a) || has_rest(e->b));
}

/* Nobody counts places along one axis by the size of another, and by what rests of it only pads. */
static const Reading *cheapest_along(const Readings *r, const Number *x, double number)
{
    bool   pad = x->role == NUMBER_PAD;
    double most = number + (pad ? BITS_STRICT_PAD : BITS_STRICT);
    for (int i = 0; i < r->n && r->list[i].bits < most; i++)
        if ((!x->axis || is_along(&r->list[i], r->list[i].expr, x->axis)) &&
            (pad || !has_rest(r->list[i].expr)))
            return &r->list[i];
    return NULL;
}

/* Of a pad and a window only those that its axis takes part in. */
static const Readings *fitting_readings(const Weighing *w, const Readings *r, const Number *x)
{
    if (!x->axis || (x->role != NUMBER_PAD && x->role != NUMBER_EXTENT))
        return r;
    Readings *out = NEW(w->arena, Readings);
    *out = *r;
    out->n = 0;
    for (int i = 0; i < r->n; i++)
        if (is_along(&r->list[i], r->list[i].expr, x->axis))
            out->list[out->n++] = r->list[i];
    return out;
}

/* A whole number that data is scaled by or added to and that its line lacks, and a count that is
 * added to data: that a size elsewhere is the same says little. */
static bool is_bare(const Number *x, const Evidence *e)
{
    bool term = x->counted && e->spelled == SPELLED_UNKNOWN && !e->setting;
    return x->whole && !x->usual && x->role == NUMBER_FACTOR && (e->spelled == SPELLED_NO || term);
}

/* The line that made the node may spell the number, or belong to a module of torch.nn and pass on
 * an option of it.  Then the traced call has the number too: what only the node has, the exporter
 * computed. */
static Evidence line_evidence(const Weighing *w, const Number *x)
{
    const OnnxOrigin *from = &x->call->file->origin;
    const Place      *at = p2o_place_at(w->s->prog->diags, x->call->call.loc);
    const Place       call = { .text = p2o_origin_args(from) };
    Evidence          e = { .at = &x->at, .nfit = 1, .ncapture = 1, .role = x->role,
                            .usual = x->usual };
    bool idle = x->role == NUMBER_PAD && x->at == 0;    /* a 0 beside it is in every such line */
    if (!at || !at->text || x->length || x->square || idle || from->padded)
        return e;
    e.setting = at->library && p2o_onnx_is_spelled_in(&call, x->at);
    if (at->library)
        return e;
    e.line = at;
    if (!p2o_onnx_is_spelled_in(at, x->at))
        e.spelled = SPELLED_NO;
    else if (p2o_onnx_is_spelled_in(&call, x->at))
        e.spelled = SPELLED_YES;
    return e;
}

static Evidence evidence_for(const Weighing *w, const Number *x)
{
    Evidence e = line_evidence(w, x);
    if (is_bare(x, &e))
        return e;
    e.fixed = is_by_fixed(w, x);
    e.known = bits_by_fixed(w, x);
    return e;
}

static void weigh_number(Weighing *w, size_t i)
{
    const Number   *x = &w->list.at[i];
    const Readings *r = fitting_readings(w, all_readings(w, i), x);
    Evidence        e = evidence_for(w, x);
    bool            said = e.setting || e.spelled == SPELLED_YES;
    Verdict         v = p2o_weigh(&e, r);
    bool strict = (x->strict || is_bare(x, &e)) && !e.fixed && !e.known && !said;
    if (v.kind == VERDICT_NUMBER && strict)
        v.best = cheapest_along(r, x, v.number_bits);
    if (v.kind != VERDICT_NUMBER || (strict && v.best))
        refuse_number(w, x, p2o_verdict_text(w->arena, &e, &v));
    else if (!said && is_unexplained(x, r, e.known))
        refuse_number(w, x, "made of what cannot be told");
}

bool p2o_onnx_weigh(OnnxSettling *s)
{
    Weighing w = { .s = s, .arena = s->prog->arena, .seen = { .arena = s->prog->arena } };
    if (!s->freed.n)
        return true;
    find_bases(&w);
    find_fixed_sizes(&w);
    find_taken(&w);
    p2o_onnx_doubts(&w);
    p2o_onnx_find_numbers(&w);
    read_numbers(&w);
    for (size_t i = 0; i < w.list.n && w.nrefused < MOST_REFUSED; i++)
        weigh_number(&w, i);
    return w.nrefused == 0;
}
