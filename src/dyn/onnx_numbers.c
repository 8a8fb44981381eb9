/* Which numbers of an ONNX file may have been made of a size, and no rule compares with one:
 * factors, indices, values of constants and their lengths, pads and windows.
 *
 * What they mean is said by their operator's row (onnx_ops.def).  What is computed from constants
 * alone counts where it is used. */
#include "dyn/onnx_numbers.h"

#include "onnx/onnx_ops.h"

enum {
    MOST_LOOKED_AT = 1 << 20,   /* elements of one constant */
    MOST_VALUES = 16,           /* that differ, of which each may be an expression of its own */
    MOST_FLOATS = 4,            /* the same of floats: more are weights */
    DEEPEST = 16,               /* nodes one after the other whose result is a single number */
};

static bool has_letter(Str letters, char c) { return letters.n && memchr(letters.p, c, letters.n); }

static bool is_letter_of(char letter, const char *letters)
{
    return letter && strchr(letters, letter);
}

static char number_letter(Str letters)
{
    for (size_t i = 0; i < letters.n; i++)
        if (is_letter_of(letters.p[i], ONNX_SIZES "eptfx"))
            return letters.p[i];
    return 0;
}

char p2o_onnx_number_letter(const Node *n, int input)
{
    return number_letter(p2o_onnx_input(n->op, input));
}

void **p2o_onnx_seen(Weighing *w, const void *key, size_t n)
{
    void *copy = p2o_alloc(w->arena, n);
    memcpy(copy, key, n);
    return p2o_map_slot(&w->seen, (Str){ copy, n });
}

void p2o_onnx_refuse(Weighing *w, const Call *c, const char *why)
{
    if (w->nrefused++ < MOST_REFUSED)
        p2o_diag_advise(w->s->prog->diags, DIAG_NOT_DYNAMIC, c->loc,
                        p2o_unsettled_advice(w->s->prog), "%s: %s", c->target, why);
}

/* Half the last place of what was stored, and a few roundings on the way. */
static double slack_of(DType t)
{
    return t == DT_F64 ? 1e-12 : t == DT_F32 ? 4e-7 : t == DT_F16 ? 1e-3 : 8e-3;
}

/* The number that was meant: 0.1 was stored as the nearest float.  A decimal has few digits: others
 * are everywhere. */
static double meant(double v, double slack, double most_digits)
{
    double best = v, bits = p2o_number_bits(v), forms[80];
    int    n = 0;
    if (v == 0 || !isfinite(v))
        return v;
    for (double scale = 1; scale <= 1e6 && v * scale < most_digits; scale *= 10)
        forms[n++] = round(v * scale) / scale;
    forms[n++] = 1 / round(1 / v);
    forms[n++] = sqrt(round(v * v));
    forms[n++] = 1 / sqrt(round(1 / (v * v)));
    forms[n++] = log(round(exp(v)));
    forms[n++] = log2(round(exp2(v)));
    for (int q = 2; q <= 64; q++)
        forms[n++] = round(v * q) / q;
    for (int i = 0; i < n; i++) {
        bool   fits = isfinite(forms[i]) && is_alike(forms[i], v, slack);
        double cost = fits ? p2o_number_bits(forms[i]) : bits;
        if (cost < bits) {
            best = forms[i];
            bits = cost;
        }
    }
    return best;
}

static bool is_stuck(const OnnxSettling *s, Dim d)
{
    for (size_t i = 0; i < s->stuck.n; i++)
        if (s->stuck.at[i] == d)
            return true;
    return false;
}

/* Reaches one of these operators through few definitions. */
static bool comes_from(const Value *v, OnnxOp a, OnnxOp b, int depth)
{
    const Node *n = v ? v->def : NULL;
    if (!n || depth == 0)
        return false;
    for (int i = 0; i < n->nin && i < 2; i++)
        if (comes_from(n->in[i], a, b, depth - 1))
            return true;
    return n->op == a || n->op == b;
}

/* x / sqrt(2) and 0.5 of a GELU. */
static bool is_of_gelu(const Node *n, double v, double slack)
{
    bool root = is_alike(v, sqrt(2), slack) || is_alike(v, sqrt(0.5), slack);
    if ((n->op != ONNX_Mul && n->op != ONNX_Div) || !(root || v == 0.5))
        return false;
    bool near = false;
    for (size_t i = 0; n->nout == 1 && i < n->out[0]->uses.n && !near; i++) {
        const Node *user = n->out[0]->uses.at[i];
        near = user->op == ONNX_Erf;
        for (int k = 0; user->op == ONNX_Mul && k < user->nin && v == 0.5; k++)
            near |= comes_from(user->in[k], ONNX_Erf, ONNX_Tanh, 2);
    }
    for (int i = 0; i < n->nin && v == 0.5; i++)
        near |= comes_from(n->in[i], ONNX_Erf, ONNX_Tanh, 3);
    return near;
}

static bool is_usual_number(char letter, double v, bool alone)
{
    if (v == 0 || !isfinite(v) || (v == 1 && !(letter == 'f' && alone)))
        return true;
    if (letter == 'x')
        return v == 2 || v == 3 || v == 4 || v == 0.5;
    return false;
}

static NumberRole role_of_letter(char letter)
{
    switch (letter) {
    case 'E': case 'N': case 'e': case 'w': return NUMBER_EXTENT;
    case 'P': case 'p': return NUMBER_PLACE;
    case 'A': case 'a': return NUMBER_PAD;
    default: return NUMBER_FACTOR;
    }
}

static Number number_of_node(const NodeCall *k, char letter, double v)
{
    return (Number){ .target = k->call.target, .call = k, .role = role_of_letter(letter),
                     .at = fabs(v) };
}

/* NULL: it is too large for a size. */
static Number *add_whole(Weighing *w, const NodeCall *k, char letter, double v, Dim axis,
                         bool usual)
{
    Number x = number_of_node(k, letter, v);
    bool   fixed = axis && p2o_dim_is_int(axis, NULL);
    x.whole = true;
    x.axis = axis;
    x.fixed = fixed;
    x.usual = usual;
    x.strict = x.role != NUMBER_FACTOR && letter != 'E' && !usual && !fixed;
    if (!(x.at < INT32_MAX))
        return NULL;
    VEC_PUSH(w->arena, &w->list, x);
    return &w->list.at[w->list.n - 1];
}

/* A length of a constant; of 1 it is broadcast. */
static void add_length(Weighing *w, const NodeCall *k, int64_t size)
{
    if (size <= 1)
        return;
    Number *x = add_whole(w, k, 'e', (double)size, NULL, false);
    if (x)
        x->length = true;
}

/* Nobody scales by 1; PyTorch does so after a reciprocal, for 1 / x. */
static bool is_idle_factor(const Node *n, double v)
{
    const Node *before = n->nin && n->in[0] ? n->in[0]->def : NULL;
    return v == 1 && (n->op == ONNX_Mul || n->op == ONNX_Div) &&
           !(before && before->op == ONNX_Reciprocal);
}

static void add_float(Weighing *w, const NodeCall *k, char letter, double v, DType t, bool alone)
{
    const Node *n = k->file->node;
    Number      x = number_of_node(k, letter, v);
    x.slack = slack_of(t);
    x.usual = is_usual_number(letter, x.at, alone) || is_of_gelu(n, x.at, x.slack);
    x.at = meant(x.at, x.slack, 1e5);
    if (!is_said(x.at) && !alone)
        return;                                 /* weights */
    if (x.at == floor(x.at)) {                  /* an int in Python, or a root */
        Number *whole = add_whole(w, k, letter, x.at, NULL, x.usual);
        if (whole)
            whole->counted = alone &&
                (n->op == ONNX_Add || n->op == ONNX_Sub || is_idle_factor(n, x.at));
    }
    double square = meant(x.at * x.at, 2 * x.slack, 0);
    if (!is_said(x.at) && is_said(square)) {    /* a scale that is applied twice */
        x.at = square;
        x.slack *= 2;
        x.square = true;
    }
    VEC_PUSH(w->arena, &w->list, x);
}

/* The size of the axis that place or count e of the node is one of; NULL: there is none. */
static Dim axis_of(const OnnxSettling *s, const Node *n, size_t e)
{
    const Value *x = n->nin ? n->in[0] : NULL, *axes = n->nin > 3 ? n->in[3] : NULL;
    int64_t      axis = (int64_t)e;
    int          at;
    switch (n->op) {
    case ONNX_Gather: case ONNX_GatherElements: case ONNX_ScatterElements: case ONNX_Split:
        axis = p2o_node_int(n, "axis", 0);
        break;
    case ONNX_TopK: axis = p2o_node_int(n, "axis", -1); break;
    case ONNX_Slice:
        if (axes && !(axes->ints && e < axes->nints && p2o_dim_is_int(axes->ints[e], &axis)))
            return NULL;
        break;
    default: return NULL;
    }
    bool known = x && x->dtype && x->shape.rank > 0 &&
                 p2o_wrap_dim(axis, x->shape.rank, false, &at);
    return known ? p2o_resolve(s->bind, x->shape.at[at]) : NULL;
}

/* It was all of an axis that is dynamic now. */
static bool was_whole_axis(const OnnxSettling *s, const Node *n, size_t e, int64_t v)
{
    Dim     size = axis_of(s, n, e);
    int64_t hint;
    return size && !p2o_dim_is_int(size, NULL) && p2o_hint_at(s->bind, size, 0, &hint) && hint == v;
}

/* The elements that differ from one another, up to a bound; false: there are more. */
static bool values_in(const Tensor *t, uint64_t nelem, double *v, int most, int *n)
{
    *n = 0;
    for (uint64_t i = 0; i < nelem; i++) {
        double x;
        int    k = 0;
        if (!p2o_tensor_get_f64(t, i, &x))
            return true;
        while (k < *n && v[k] != x)
            k++;
        if (k < *n || isnan(x))
            continue;
        if (*n == most)
            return false;
        v[(*n)++] = x;
    }
    return true;
}

/* The least and the largest element. */
static void add_ends(Weighing *w, const NodeCall *k, char letter, const Tensor *t, uint64_t nelem,
                     Dim axis)
{
    int64_t lo = INT64_MAX, hi = INT64_MIN, v;
    for (uint64_t i = 0; i < nelem && p2o_tensor_get_i64(t, i, &v); i++) {
        lo = v < lo ? v : lo;
        hi = v > hi ? v : hi;
    }
    if (lo > hi)
        return;
    add_whole(w, k, letter, (double)lo, axis, lo >= -1 && lo <= 1);
    add_whole(w, k, letter, (double)hi, axis, false);
}

static void add_elements(Weighing *w, const NodeCall *k, char letter, const Tensor *t)
{
    const Node *n = k->file->node;
    uint64_t    nelem;
    double      v[MOST_VALUES];
    int         count;
    bool        whole = is_int(t->dtype);
    if (!(whole || is_float(t->dtype)) || !p2o_tensor_nelem(t, &nelem) || !nelem ||
        nelem > MOST_LOOKED_AT)
        return;
    Dim  axis = axis_of(w->s, n, 0);
    if (axis && p2o_dim_is_int(axis, NULL) && is_letter_of(letter, "p") &&
        !p2o_onnx_is_constant(w->s, n->in[0]))
        return;         /* of features: a size would not stay inside; of a table it may */
    bool few = values_in(t, nelem, v, whole ? MOST_VALUES : MOST_FLOATS, &count);
    const BakedForm *form = whole && count > 2 && p2o_tensor_is_contiguous(t)
                            ? p2o_onnx_form(w->arena, t) : NULL;
    if (whole && (!few || (form && form->kind == BAKED_COUNTING))) {
        add_ends(w, k, letter, t, nelem, axis);
        return;
    }
    for (int i = 0; i < count && few; i++) {
        bool alone = nelem == 1;
        if (whole)
            add_whole(w, k, letter, v[i], axis, is_usual_number(letter, fabs(v[i]), alone));
        else
            add_float(w, k, letter, v[i], t->dtype, alone);
    }
}

/* The other inputs that a constant is broadcast against have this length there: it is theirs. */
static bool is_beside(const OnnxSettling *s, const Node *n, int input, const Tensor *t, int axis)
{
    for (int i = 0; i < n->nin; i++) {
        const Value *x = n->in[i];
        int          at = x && x->dtype ? x->shape.rank - t->rank + axis : -1;
        int64_t      size;
        Dim          d = i != input && at >= 0 ? p2o_resolve(s->bind, x->shape.at[at]) : NULL;
        if (d && p2o_dim_is_int(d, &size) && size == t->sizes[axis])
            return true;
    }
    return false;
}

/* Floats in equal steps along the last axis. */
static bool is_linear(const Tensor *t, uint64_t nelem)
{
    double   first, x, y, z;
    uint64_t n = t->rank ? (uint64_t)t->sizes[t->rank - 1] : 1;
    if (n < 3 || !p2o_tensor_get_f64(t, 0, &x) || !p2o_tensor_get_f64(t, 1, &y) || x == y)
        return false;
    for (uint64_t i = 0; i < nelem; i++) {
        if (i % n < 2)
            continue;
        if (!p2o_tensor_get_f64(t, i, &z) || !p2o_tensor_get_f64(t, i - 1, &y) ||
            !p2o_tensor_get_f64(t, i - 2, &x) || !p2o_tensor_get_f64(t, i - i % n, &first) ||
            !(fabs(z - 2 * y + x) <= 4 * slack_of(t->dtype) *
              (fabs(first) + fabs(z) + fabs(z - y))))
            return false;
    }
    return true;
}

bool p2o_onnx_is_weights(const Tensor *t)
{
    uint64_t nelem;
    double   v[MOST_FLOATS];
    int      count;
    if (!is_float(t->dtype) || !p2o_tensor_nelem(t, &nelem) || nelem > MOST_LOOKED_AT)
        return is_float(t->dtype);
    return !values_in(t, nelem, v, MOST_FLOATS, &count) && !is_linear(t, nelem);
}

bool p2o_onnx_is_parameter(const Value *v)
{
    return !v->def && v->name && strncmp(v->name, "val_", 4) != 0 &&
           strncmp(v->name, "onnx::", 6) != 0;
}

/* Lengths of what looks computed: weights are floats of many values. */
static void add_lengths(Weighing *w, const NodeCall *k, int input, Str letters, const Tensor *t,
                        const SizeSlot *slot)
{
    const Node *n = k->file->node;
    uint64_t    nelem;
    bool        parameter = p2o_onnx_is_parameter(n->in[input]);
    if (!p2o_tensor_nelem(t, &nelem) || nelem < 2 || nelem > MOST_LOOKED_AT)
        return;
    bool weights = is_float(t->dtype) && p2o_onnx_is_weights(t);
    if (is_float(t->dtype) &&
        (!has_letter(letters, 'b') || (parameter && !weights && !is_linear(t, nelem)) ||
         (weights && !is_letter_of(number_letter(letters), "tf"))))
        return;
    int64_t joined = n->op == ONNX_Concat ? p2o_node_int(n, "axis", 0) : -MAX_RANK;
    for (int d = 0; d < t->rank; d++) {
        bool open = slot && slot->item[d] >= 0;
        bool along = joined == d || joined == d - t->rank;
        bool theirs = !has_letter(letters, 'p') && is_beside(w->s, n, input, t, d);
        if (n->op == ONNX_Concat ? !along : theirs)
            continue;
        if (open || (weights && n->op == ONNX_Concat))
            continue;
        size_t from = w->list.n;
        add_length(w, k, t->sizes[d]);
        for (size_t e = from; e < w->list.n; e++)
            w->list.at[e].lonely = weights;
    }
}

static bool scalar_of(const Value *v, int depth, double *out);

/* Arithmetic on single numbers that exporters leave in the file: Pow(8, 0.5). */
static bool scalar_by(const Node *n, int depth, double *out)
{
    double x, y = 0;
    if (n->nin < 1 || n->nin > 2 || !n->in[0] || !scalar_of(n->in[0], depth - 1, &x))
        return false;
    if (n->nin > 1 && !(n->in[1] && scalar_of(n->in[1], depth - 1, &y)))
        return false;
    switch (n->op) {
    case ONNX_Cast: case ONNX_Identity: case ONNX_Unsqueeze: case ONNX_Squeeze:
        *out = x;
        return true;
    case ONNX_Sqrt: *out = sqrt(x); return true;
    case ONNX_Reciprocal: *out = 1 / x; return true;
    case ONNX_Neg: *out = -x; return true;
    case ONNX_Floor: *out = floor(x); return true;
    case ONNX_Ceil: *out = ceil(x); return true;
    case ONNX_Pow: *out = pow(x, y); return true;
    case ONNX_Add: *out = x + y; return true;
    case ONNX_Sub: *out = x - y; return true;
    case ONNX_Mul: *out = x * y; return true;
    case ONNX_Div: *out = is_float(n->in[0]->dtype) ? x / y : trunc(x / y); return true;
    default: return false;
    }
}

static bool scalar_of(const Value *v, int depth, double *out)
{
    uint64_t n;
    int64_t  i;
    if (v->tensor)
        return p2o_tensor_nelem(v->tensor, &n) && n == 1 && p2o_tensor_get_f64(v->tensor, 0, out);
    bool known = v->ints && v->nints == 1 && p2o_dim_is_int(v->ints[0], &i);
    *out = known ? (double)i : 0;
    return known ||
           (v->def && depth > 0 && v->def->op != ONNX_Constant && scalar_by(v->def, depth, out));
}

/* A constant's contents as a tensor, whichever way the file has them; NULL: it is none, or not
 * known. */
static const Tensor *contents_of(Weighing *w, const Value *v)
{
    double one;
    if (v->tensor)
        return v->tensor;
    if (v->def && is_float(v->dtype) && scalar_of(v, DEEPEST, &one))
        return p2o_tensor_scalar(w->arena, v->dtype, one, 0, true);
    const Node *n = v->def && v->def->op == ONNX_Constant ? v->def : NULL;
    const Attr *a = n && n->nattr == 1 ? n->attrs : NULL;
    if (a && a->kind == ATTR_FLOAT)
        return p2o_tensor_scalar(w->arena, DT_F32, a->f, 0, true);
    if (a && a->kind == ATTR_FLOATS) {
        int64_t *size = NEW(w->arena, int64_t);
        *size = (int64_t)a->n;
        return p2o_tensor_make(w->arena, DT_F32, 1, size, a->floats);
    }
    int64_t *at = v->ints ? NEW_N(w->arena, int64_t, v->nints + 1) : NULL;
    for (size_t i = 0; at && i < v->nints; i++)
        if (!p2o_dim_is_int(v->ints[i], &at[i]))
            return NULL;
    return at ? p2o_tensor_ints(w->arena, v->shape.rank, at, v->nints) : NULL;
}

static void refuse_half(Weighing *w, const NodeCall *k, int64_t v)
{
    p2o_onnx_refuse(w, &k->call,
                    p2o_printf(w->arena, "it pads an axis by %lld and by what follows a size: "
                               "which is which cannot be told", (long long)v));
}

/* Pads at all begins, then at all ends: alike at both ends of an axis they are a setting mostly. */
static void add_pad(Weighing *w, const NodeCall *k, const int64_t *pads, size_t n, size_t e)
{
    size_t half = n / 2;
    Shape  x = k->file->node->in[0] ? k->file->node->in[0]->shape : (Shape){ 0 };
    Dim    axis = half && half == (size_t)x.rank ? p2o_resolve(w->s->bind, x.at[e % half]) : NULL;
    if (!pads[e] && (!axis || p2o_dim_is_int(axis, NULL) || e % half == 0))
        return;                                 /* by 0, and nobody pads a batch */
    Number *p = add_whole(w, k, 'A', (double)pads[e], axis, false);
    if (p)
        p->strict &= !half || pads[e] != pads[(e + half) % (2 * half)];
}

static void add_pads(Weighing *w, const NodeCall *k, const Tensor *t)
{
    uint64_t n;
    if (!p2o_tensor_nelem(t, &n) || n > 2 * MAX_RANK)
        return;
    int64_t *pads = NEW_N(w->arena, int64_t, n + 1);
    bool     idle = true;
    for (uint64_t i = 0; i < n; i++)
        idle &= p2o_tensor_get_i64(t, i, &pads[i]) && !pads[i];
    for (uint64_t i = 0; i < n; i++)
        if (pads[i] || idle)
            add_pad(w, k, pads, (size_t)n, (size_t)i);
}

/* The other end of the axis follows a size: this one may too. */
static bool is_beside_open(const Weighing *w, const SizeSlot *slot, size_t e)
{
    size_t half = slot->was->nints / 2;
    Dim    across = half ? slot->open[(e + half) % (2 * half)] : NULL;
    return across && !p2o_dim_is_int(p2o_resolve(w->s->bind, across), NULL);
}

static void see_pad_slot(Weighing *w, const NodeCall *k, const SizeSlot *slot)
{
    size_t   n = slot->was->nints;
    int64_t *pads = NEW_N(w->arena, int64_t, n + 1);
    bool     idle = true;
    for (size_t e = 0; e < n; e++)
        idle &= p2o_dim_is_int(slot->was->ints[e], &pads[e]) && !pads[e];
    for (size_t e = 0; e < n; e++) {
        bool number = !slot->open[e] ||
                      p2o_dim_is_int(p2o_resolve(w->s->bind, slot->open[e]), NULL);
        if (number && pads[e] && is_beside_open(w, slot, e))
            refuse_half(w, k, pads[e]);
        else if (number && (pads[e] || idle))
            add_pad(w, k, pads, n, e);
    }
}

/* Of an input that rules compare with sizes: what was no size there. */
static void add_other_places(Weighing *w, const NodeCall *k, char letter, const SizeSlot *slot)
{
    const Node *n = k->file->node;
    int64_t     v;
    for (size_t e = 0; e < slot->was->nints; e++) {
        Dim at = slot->open[e];
        if (!p2o_dim_is_int(slot->was->ints[e], &v) || v <= -INT32_MAX)
            continue;
        bool weighed = at && letter != 'E' && p2o_dim_is_int(p2o_resolve(w->s->bind, at), NULL);
        if (at ? is_stuck(w->s, at) : letter == 'P' && v < 0)
            add_whole(w, k, 'P', (double)v, axis_of(w->s, n, e), v >= -1 && v <= 1);
        else if (weighed && *p2o_onnx_seen(w, &at, sizeof at))
            add_whole(w, k, letter, (double)v, axis_of(w->s, n, e), v == 1);
        else if (weighed && was_whole_axis(w->s, n, e, v))
            add_whole(w, k, letter, (double)v, NULL, false);
    }
}

static const SizeSlot *slot_of(const NodeCall *k, int input)
{
    for (size_t i = 0; i < k->slots.n; i++)
        if (k->slots.at[i].input == input)
            return &k->slots.at[i];
    return NULL;
}

/* It makes sizes of sizes: which of them, and how many, is said by numbers that are none. */
static bool is_size_arithmetic(const Node *n) { return n->nout == 1 && n->out[0]->ints; }

/* It goes into a recurrent layer only: rules compare it with the weights there. */
static bool is_state(const Node *n)
{
    for (size_t i = 0; n->nout == 1 && i < n->out[0]->uses.n; i++) {
        OnnxOp op = n->out[0]->uses.at[i]->op;
        if (op != ONNX_LSTM && op != ONNX_GRU && op != ONNX_RNN)
            return false;
    }
    return n->nout == 1 && n->out[0]->uses.n;
}

static void see_input(Weighing *w, const NodeCall *k, int i)
{
    const Node     *n = k->file->node;
    const SizeSlot *slot = slot_of(k, i);
    const Value    *v = slot ? slot->was : n->in[i];
    Str             letters = p2o_onnx_input(n->op, i);
    char            letter = number_letter(letters);
    if (n->nout && p2o_onnx_is_constant(w->s, n->out[0]))
        letter = 't';                           /* of what, is not known */
    if (is_size_arithmetic(n) && !is_letter_of(letter, "tfx"))
        return;
    if (slot && !slot->form) {
        if (letter == 'A')
            see_pad_slot(w, k, slot);
        else
            add_other_places(w, k, letter, slot);
        return;
    }
    const Tensor *t = v && (slot || p2o_onnx_is_constant(w->s, v)) ? contents_of(w, v) : NULL;
    size_t        from = w->list.n;
    if (!t)
        return;
    if (letter && !(slot && slot->form->kind == BAKED_TRIANGLE && is_int(t->dtype)))
        (letter == 'A' ? add_pads(w, k, t) : add_elements(w, k, letter, t));
    for (size_t e = from; e < w->list.n; e++)
        w->list.at[e].parameter = p2o_onnx_is_parameter(v);
    if ((has_letter(letters, 'b') || has_letter(letters, 'p')) && !is_size_arithmetic(n) &&
        !is_state(n))
        add_lengths(w, k, i, letters, t, slot);
}

bool p2o_onnx_is_spelled_in(const Place *at, double v)
{
    return p2o_spelled_times(at, v) > 0 || p2o_spelled_times(at, -v) > 0;
}

/* "/Conv" and "/Conv_3": PyTorch's older exporter names nodes by the module that they are made in,
 * "/block/conv/Conv", and these by forward() of the model itself. */
static bool is_in_no_module(const OnnxNode *x)
{
    const char *op = p2o_node_operator(x->node).name;
    size_t      n = strlen(op);
    const char *name = x->node->name;
    return name && name[0] == '/' && !strncmp(name + 1, op, n) &&
           (!name[n + 1] || name[n + 1] == '_');
}

/* The user's own line made the node and does not have the number: it was computed, or is an
 * attribute of the module.  Where no line is known, whatever no module of torch.nn made. */
static bool is_unsaid(const Weighing *w, const NodeCall *k, double v)
{
    const Place *at = p2o_place_at(w->s->prog->diags, k->call.loc);
    if (!at || !at->text)
        return is_in_no_module(k->file);
    return !at->library && !p2o_onnx_is_spelled_in(at, v);
}

/* The axis of an image that numbers of windows are for; NULL: it never changes. */
static Dim axis_of_window(const OnnxSettling *s, const Node *n, size_t i, size_t nspatial)
{
    const Value *x = n->nin ? n->in[0] : NULL;
    bool         image = x && x->dtype && (size_t)x->shape.rank == nspatial + 2;
    Dim          d = image ? p2o_resolve(s->bind, x->shape.at[i + 2]) : NULL;
    return d && !p2o_dim_is_int(d, NULL) ? d : NULL;
}

/* A window as long as an axis that is dynamic, or one of windows that tile it, as those of an
 * adaptive pool do. */
static bool may_follow_axis(const OnnxSettling *s, const Node *n, const Attr *windows, size_t i)
{
    const Attr *strides = p2o_node_attr(n, "strides");
    int64_t     size, k = windows->ints[i];
    Dim         d = axis_of_window(s, n, i, windows->n);
    if (!d || !p2o_hint_at(s->bind, d, 0, &size) || k < 2)
        return false;
    bool tiles = strides && strides->kind == ATTR_INTS && i < strides->n && strides->ints[i] == k &&
                 size % k == 0;
    return size == k || (tiles && size / k <= k && (k > 2 || n->op == ONNX_AveragePool));
}

/* Strides and dilations; 1 is what they are unless said. */
static void see_window_steps(Weighing *w, const NodeCall *k, const Attr *a)
{
    for (size_t i = 0; a->kind == ATTR_INTS && i < a->n; i++) {
        Dim axis = axis_of_window(w->s, k->file->node, i, a->n);
        if (axis && a->ints[i] > 1 && is_unsaid(w, k, (double)a->ints[i]))
            add_whole(w, k, 'w', (double)a->ints[i], axis, false);
    }
}

static void see_windows(Weighing *w, const NodeCall *k, const Attr *a)
{
    const Place *at = p2o_place_at(w->s->prog->diags, k->call.loc);
    bool         adaptive = at && at->text && strstr(at->text, "adaptive_"); /* traced as plain */
    see_window_steps(w, k, a);
    for (size_t i = 0; a->kind == ATTR_INTS && i < a->n; i++) {
        bool computed = adaptive && a->ints[i] > 1 &&
                        axis_of_window(w->s, k->file->node, i, a->n);
        if (!computed && !may_follow_axis(w->s, k->file->node, a, i))
            continue;
        p2o_onnx_refuse(w, &k->call,
                        p2o_printf(w->arena,
                                   "a window of %lld may follow the axis that it divides, or "
                                   "be a number", (long long)a->ints[i]));
        return;
    }
}

/* Unlike ones at the two ends of an axis: what it lacks to a multiple, say; those of a Pad that the
 * exporter put into the node; and those that the line does not have. */
static void see_window_pads(Weighing *w, const NodeCall *k, const Attr *a)
{
    size_t n = a->kind == ATTR_INTS ? a->n / 2 : 0;
    for (size_t i = 0; i < n; i++) {
        Dim     axis = axis_of_window(w->s, k->file->node, i, n);
        int64_t first = a->ints[i], last = a->ints[n + i];
        bool    doubtful = first != last || k->file->origin.padded ||
                           is_unsaid(w, k, (double)first);
        for (size_t end = i; end < 2 * n && axis && doubtful; end += n)
            if (a->ints[end] > 0)
                add_whole(w, k, 'a', (double)a->ints[end], axis, false);
    }
}

static void see_attr(Weighing *w, const NodeCall *k, const Attr *a)
{
    const Node *n = k->file->node;
    char        letter = p2o_onnx_attr(n->op, a->name);
    if (letter == 'w')
        see_windows(w, k, a);
    else if (letter == 's')
        see_window_steps(w, k, a);
    else if (letter == 'a')
        see_window_pads(w, k, a);
    else if (letter && a->kind == ATTR_TENSOR)
        add_elements(w, k, letter, a->tensor);
    else if (letter && a->kind == ATTR_FLOAT && a->f != 1)
        add_float(w, k, letter, a->f, DT_F32, true);
    size_t nint = a->kind == ATTR_INTS ? a->n : a->kind == ATTR_INT;
    for (size_t i = 0; is_letter_of(letter, "ep") && i < nint; i++) {
        int64_t v = a->kind == ATTR_INT ? a->i : a->ints[i];
        add_whole(w, k, letter, (double)v, axis_of(w->s, n, 0), v >= -1 && v <= 1);
    }
}

/* What is computed from constants alone is weighed where it is used, if it is known. */
static bool is_weighed_later(Weighing *w, const Node *n)
{
    for (int i = 0; i < n->nout; i++)
        if (!p2o_onnx_is_constant(w->s, n->out[i]) || !contents_of(w, n->out[i]))
            return false;
    return n->nout > 0;
}

static void see_node(Weighing *w, const NodeCall *k)
{
    const Node *n = k->file->node;
    if (is_weighed_later(w, n))
        return;
    for (int i = 0; i < n->nin; i++)
        if (n->in[i])
            see_input(w, k, i);
    for (int i = 0; i < n->nattr; i++)
        see_attr(w, k, &n->attrs[i]);
}

/* An output that no input changes: of the model at its old sizes? */
static void see_output(Weighing *w, const Value *v)
{
    const Tensor *t = p2o_onnx_is_constant(w->s, v) ? contents_of(w, v) : NULL;
    if (!t)
        return;
    static Node   none = { .op = ONNX_Identity };
    OnnxNode     *file = NEW(w->arena, OnnxNode);
    NodeCall     *k = NEW(w->arena, NodeCall);
    *file = (OnnxNode){ .node = &none };
    *k = (NodeCall){ .of = w->s, .file = file };
    k->call.target = p2o_printf(w->arena, "output '%s'", v->name ? v->name : "");
    add_elements(w, k, 't', t);
    for (int d = 0; d < t->rank; d++)
        add_length(w, k, t->sizes[d]);
}

void p2o_onnx_find_numbers(Weighing *w)
{
    for (size_t i = 0; i < w->s->calls.n; i++)
        see_node(w, w->s->calls.at[i]);
    for (size_t i = 0; i < w->s->model->graph->outputs.n; i++)
        see_output(w, w->s->model->graph->outputs.at[i]);
}
