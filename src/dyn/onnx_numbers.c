/* Numbers of an ONNX file that a size may have made and that no rule compares with one: factors, indices, values
 * of constants and their lengths, windows.
 *
 * What they mean is said by their operator's row (onnx_ops.def).  There is one file only and no source line, so
 * a number is one where no cheap expression of the sizes gives it, and refused where one does: nothing in the
 * file says which it was. */
#include "dyn/onnx_sizes.h"

#include <math.h>

#include "aten/infer.h"
#include "base/num.h"
#include "dyn/verdict.h"
#include "onnx/onnx_ops.h"

enum {
    MOST_LOOKED_AT = 1 << 20,   /* elements of one constant */
    MOST_VALUES = 16,           /* that differ, of which each may be an expression of its own */
    MOST_FLOATS = 4,            /* the same of floats: more are weights */
    MOST_REFUSED = 3,           /* others mostly follow from them */
    LEAST_TELLING = 16,         /* smaller numbers are in too many models to show a size */
    BITS_FIXED_SIZE = 2,        /* of a size that never changes, beside which it is among them */
    BITS_STEP = 3,              /* of 1/x, and of the root */
    BITS_STRICT = 8,            /* an expression must cost this more than a place or a count, which few sizes give */
};

typedef struct FixedSize {
    int64_t size;
    bool    given;              /* by an input or by weights */
} FixedSize;

typedef struct Number {
    const char     *target;
    const NodeCall *call;       /* NULL: of an output */
    NumberRole      role;
    bool            whole, usual, fixed;
    bool            strict;     /* also where an expression is not much longer */
    Dim             axis;       /* the size of the axis along which it is; NULL: not known */
    bool            length;     /* of a constant */
    bool            lonely;     /* a size that nothing else has */
    bool            square;     /* `at` is that of the file's number */
    bool            parameter;  /* with a name of the model's own */
    double          at, slack;
} Number;

typedef struct Weighing {
    OnnxSettling *s;
    Arena        *arena;
    VEC(Number)   list;
    VEC(FixedSize) fixed;       /* sizes above 1 that never change, each once */
    VEC(Dim)      symbols;
    Map           seen;         /* size; of a Readings: its number and sizes */
    VEC(Readings *) all;
    Bases         bases;
    int           nrefused;
} Weighing;

static bool has_letter(Str letters, char c) { return letters.n && memchr(letters.p, c, letters.n); }

static bool is_one_of(char letter, const char *letters) { return letter && strchr(letters, letter); }

static char number_letter(Str letters)
{
    for (size_t i = 0; i < letters.n; i++)
        if (is_one_of(letters.p[i], ONNX_SIZES "eptfx"))
            return letters.p[i];
    return 0;
}

static void **slot_for(Weighing *w, const void *key, size_t n)
{
    void *copy = p2o_alloc(w->arena, n);
    memcpy(copy, key, n);
    return p2o_map_slot(&w->seen, (Str){ copy, n });
}

/* Half the last place of what was stored, and a few roundings on the way. */
static double slack_of(DType t) { return t == DT_F64 ? 1e-12 : t == DT_F32 ? 4e-7 : t == DT_F16 ? 1e-3 : 8e-3; }

static bool is_alike(double x, double y, double slack) { return x == y || fabs(x - y) <= slack * fabs(y); }

/* The number that was meant: 0.1 was stored as the nearest float.  A decimal has few digits: others are
 * everywhere. */
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
        double cost = isfinite(forms[i]) && is_alike(forms[i], v, slack) ? p2o_number_bits(forms[i]) : bits;
        if (cost < bits) {
            best = forms[i];
            bits = cost;
        }
    }
    return best;
}

static bool is_said(double v) { return v >= 1e6 || p2o_number_bits(v) < 50; }

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
    for (int i = 0; i < n->nin; i++)
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

static Number number_in(const NodeCall *k, char letter, double v)
{
    return (Number){ .target = k->call.target, .call = k, .role = role_of_letter(letter), .at = fabs(v) };
}

static void add_whole(Weighing *w, const NodeCall *k, char letter, double v, Dim axis, bool usual)
{
    Number x = number_in(k, letter, v);
    bool   fixed = axis && p2o_dim_is_int(axis, NULL);
    x.whole = true;
    x.axis = axis;
    x.fixed = fixed;
    x.usual = usual;
    x.strict = x.role != NUMBER_FACTOR && !usual && !fixed;
    if (x.at < INT32_MAX)
        VEC_PUSH(w->arena, &w->list, x);
}

/* A length of a constant; of 1 it is broadcast. */
static void add_length(Weighing *w, const NodeCall *k, int64_t size)
{
    if (size <= 1)
        return;
    add_whole(w, k, 'e', (double)size, NULL, false);
    w->list.at[w->list.n - 1].length = true;
}

static void add_float(Weighing *w, const NodeCall *k, char letter, double v, DType t, bool alone)
{
    const Node *n = k->file->node;
    Number      x = number_in(k, letter, v);
    x.slack = slack_of(t);
    x.usual = is_usual_number(letter, x.at, alone) || is_of_gelu(n, x.at, x.slack);
    x.at = meant(x.at, x.slack, 1e5);
    if (!is_said(x.at) && !alone)
        return;                                 /* weights */
    if (x.at == floor(x.at))                    /* an int in Python, or a root */
        add_whole(w, k, letter, x.at, NULL, x.usual);
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
    case ONNX_Gather: case ONNX_GatherElements: case ONNX_ScatterElements: case ONNX_Split: axis = p2o_node_int(n, "axis", 0); break;
    case ONNX_TopK: axis = p2o_node_int(n, "axis", -1); break;
    case ONNX_Slice:
        if (axes && !(axes->ints && e < axes->nints && p2o_dim_is_int(axes->ints[e], &axis)))
            return NULL;
        break;
    default: return NULL;
    }
    bool known = x && x->dtype && x->shape.rank > 0 && p2o_wrap_dim(axis, x->shape.rank, false, &at);
    return known ? p2o_resolve(s->bind, x->shape.at[at]) : NULL;
}

/* It was all of an axis that is dynamic now. */
static bool is_whole_axis(const OnnxSettling *s, const Node *n, size_t e, int64_t v)
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
static void add_ends(Weighing *w, const NodeCall *k, char letter, const Tensor *t, uint64_t nelem, Dim axis)
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
    if (!(whole || is_float(t->dtype)) || !p2o_tensor_nelem(t, &nelem) || !nelem || nelem > MOST_LOOKED_AT)
        return;
    Dim  axis = axis_of(w->s, n, 0);
    bool few = values_in(t, nelem, v, whole ? MOST_VALUES : MOST_FLOATS, &count);
    const BakedForm *form = whole && count > 2 && p2o_tensor_is_contiguous(t) ? p2o_onnx_form(w->arena, t) : NULL;
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
        if (i != input && at >= 0 && p2o_dim_is_int(p2o_resolve(s->bind, x->shape.at[at]), &size) && size == t->sizes[axis])
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
        if (!p2o_tensor_get_f64(t, i, &z) || !p2o_tensor_get_f64(t, i - 1, &y) || !p2o_tensor_get_f64(t, i - 2, &x) ||
            !p2o_tensor_get_f64(t, i - i % n, &first) ||
            !(fabs(z - 2 * y + x) <= 4 * slack_of(t->dtype) * (fabs(first) + fabs(z) + fabs(z - y))))
            return false;
    }
    return true;
}

static bool is_weights(const Tensor *t)
{
    uint64_t nelem;
    double   v[MOST_FLOATS];
    int      count;
    return is_float(t->dtype) && p2o_tensor_nelem(t, &nelem) && !values_in(t, nelem, v, MOST_FLOATS, &count) && !is_linear(t, nelem);
}

/* Exporters of PyTorch call what they computed val_3 and onnx::Mul_12, and weights by their names. */
static bool is_parameter(const Value *v)
{
    return !v->def && v->name && strncmp(v->name, "val_", 4) != 0 && strncmp(v->name, "onnx::", 6) != 0;
}

/* Lengths of what looks computed: weights are floats of many values. */
static void add_lengths(Weighing *w, const NodeCall *k, int input, Str letters, const Tensor *t, const SizeSlot *slot)
{
    const Node *n = k->file->node;
    uint64_t    nelem;
    bool        parameter = is_parameter(n->in[input]);
    if (!p2o_tensor_nelem(t, &nelem) || nelem < 2 || nelem > MOST_LOOKED_AT)
        return;
    bool weights = is_float(t->dtype) && is_weights(t);
    if (is_float(t->dtype) && (!has_letter(letters, 'b') || (parameter && !weights && !is_linear(t, nelem)) ||
                               (weights && !is_one_of(number_letter(letters), "tf"))))
        return;
    int64_t joined = n->op == ONNX_Concat ? p2o_node_int(n, "axis", 0) : -MAX_RANK;
    for (int d = 0; d < t->rank; d++) {
        bool open = slot && slot->item[d] >= 0;
        bool along = joined == d || joined == d - t->rank;
        if (n->op == ONNX_Concat ? !along : !has_letter(letters, 'p') && is_beside(w->s, n, input, t, d))
            continue;
        if (open || (weights && n->op == ONNX_Concat))
            continue;
        size_t from = w->list.n;
        add_length(w, k, t->sizes[d]);
        for (size_t e = from; e < w->list.n; e++)
            w->list.at[e].lonely = weights;
    }
}

static bool scalar_of(const Value *v, double *out);

/* Arithmetic on single numbers that exporters leave in the file: Pow(8, 0.5). */
static bool scalar_by(const Node *n, double *out)
{
    double x, y = 0;
    if (n->nin < 1 || n->nin > 2 || !n->in[0] || !scalar_of(n->in[0], &x) || (n->nin > 1 && !(n->in[1] && scalar_of(n->in[1], &y))))
        return false;
    switch (n->op) {
    case ONNX_Cast: case ONNX_Identity: case ONNX_Unsqueeze: case ONNX_Squeeze: *out = x; return true;
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

static bool scalar_of(const Value *v, double *out)
{
    uint64_t n;
    int64_t  i;
    if (v->tensor)
        return p2o_tensor_nelem(v->tensor, &n) && n == 1 && p2o_tensor_get_f64(v->tensor, 0, out);
    bool known = v->ints && v->nints == 1 && p2o_dim_is_int(v->ints[0], &i);
    *out = known ? (double)i : 0;
    return known || (v->def && v->def->op != ONNX_Constant && scalar_by(v->def, out));
}

/* A constant's contents as a tensor, whichever way the file has them; NULL: it is none, or not known. */
static const Tensor *contents_of(Weighing *w, const Value *v)
{
    double one;
    if (v->tensor)
        return v->tensor;
    if (v->def && is_float(v->dtype) && scalar_of(v, &one))
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
    if (w->nrefused++ < MOST_REFUSED)
        p2o_diag_advise(w->s->prog->diags, DIAG_NOT_DYNAMIC, 0, p2o_unsettled_advice(w->s->prog),
                        "%s: it pads an axis by %lld and by what follows a size: which is which cannot be told",
                        k->call.target, (long long)v);
}

/* Beside one at the other end of the axis: alike, a setting mostly; following a size, both may. */
static void add_pad(Weighing *w, const NodeCall *k, const SizeSlot *slot, size_t e, int64_t v)
{
    size_t  half = slot->was->nints / 2, across = e < half ? e + half : e - half;
    int64_t other = 0;
    if (2 * half != slot->was->nints || !p2o_dim_is_int(slot->was->ints[across], &other))
        return;
    Dim beside = slot->item[across] >= 0 ? p2o_resolve(w->s->bind, k->call.args[1].items[slot->item[across]].i) : NULL;
    if (beside && !p2o_dim_is_int(beside, NULL)) {
        refuse_half(w, k, v);
        return;
    }
    Shape x = k->file->node->in[0]->shape;
    Dim   axis = half == (size_t)x.rank ? p2o_resolve(w->s->bind, x.at[e % half]) : NULL;
    add_whole(w, k, 'A', (double)v, axis, false);
    w->list.at[w->list.n - 1].strict &= v != other;
}

/* Of an input that rules compare with sizes: what was no size there. */
static void add_other_places(Weighing *w, const NodeCall *k, char letter, const SizeSlot *slot)
{
    const Node *n = k->file->node;
    bool        idle = letter == 'A';
    int64_t     v;
    for (size_t e = 0; e < slot->was->nints; e++)
        idle &= p2o_dim_is_int(slot->was->ints[e], &v) && v == 0;
    for (size_t e = 0; e < slot->was->nints; e++) {
        Dim at = slot->open[e];
        if (!p2o_dim_is_int(slot->was->ints[e], &v) || v <= -INT32_MAX)
            continue;
        bool weighed = at && letter != 'E' && p2o_dim_is_int(p2o_resolve(w->s->bind, at), NULL);
        if (at ? is_stuck(w->s, at) : letter == 'P' && v < 0)
            add_whole(w, k, 'P', (double)v, axis_of(w->s, n, e), v >= -1 && v <= 1);
        else if (weighed && letter == 'A')
            add_pad(w, k, slot, e, v);
        else if (weighed && *slot_for(w, &at, sizeof at))
            add_whole(w, k, letter, (double)v, axis_of(w->s, n, e), v == 1);
        else if (weighed && is_whole_axis(w->s, n, e, v))
            add_whole(w, k, letter, (double)v, NULL, false);
        else if (!at && letter == 'A' && (v < 0 || idle))
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
    if (p2o_onnx_is_constant(w->s, n->out[0]))
        letter = 't';                           /* of what, is not known */
    if (is_size_arithmetic(n) && !is_one_of(letter, "tfx"))
        return;
    if (slot && !slot->form) {
        add_other_places(w, k, letter, slot);
        return;
    }
    const Tensor *t = v && (slot || p2o_onnx_is_constant(w->s, v)) ? contents_of(w, v) : NULL;
    size_t        from = w->list.n;
    if (!t)
        return;
    if (letter && !(slot && slot->form->kind == BAKED_TRIANGLE && is_int(t->dtype)))
        add_elements(w, k, letter, t);
    for (size_t e = from; e < w->list.n; e++)
        w->list.at[e].parameter = is_parameter(v);
    if ((has_letter(letters, 'b') || has_letter(letters, 'p')) && !is_size_arithmetic(n) && !is_state(n))
        add_lengths(w, k, i, letters, t, slot);
}

/* A window as long as an axis that is dynamic, or one of windows that tile it, as those of an adaptive pool do. */
static bool may_follow_axis(const OnnxSettling *s, const Node *n, const Attr *windows, size_t i)
{
    const Value *x = n->in[0];
    const Attr  *strides = p2o_node_attr(n, "strides");
    int64_t      size, k = windows->ints[i];
    Dim          d = x->dtype && (size_t)x->shape.rank == windows->n + 2 ? p2o_resolve(s->bind, x->shape.at[i + 2]) : NULL;
    if (!d || p2o_dim_is_int(d, NULL) || !p2o_hint_at(s->bind, d, 0, &size) || k < 2)
        return false;
    bool tiles = strides && strides->kind == ATTR_INTS && i < strides->n && strides->ints[i] == k && size % k == 0;
    return size == k || (tiles && size / k <= k && (k > 2 || n->op == ONNX_AveragePool));
}

static void see_windows(Weighing *w, const NodeCall *k, const Attr *a)
{
    for (size_t i = 0; a->kind == ATTR_INTS && i < a->n; i++) {
        if (!may_follow_axis(w->s, k->file->node, a, i) || w->nrefused++)
            continue;
        p2o_diag_advise(w->s->prog->diags, DIAG_NOT_DYNAMIC, 0, p2o_unsettled_advice(w->s->prog),
                        "%s: a window of %lld may follow the axis that it divides, or be a number", k->call.target,
                        (long long)a->ints[i]);
    }
}

/* Unlike ones at the two ends of an axis that is dynamic: what it lacks to a multiple, say. */
static void see_window_pads(Weighing *w, const NodeCall *k, const Attr *a)
{
    const Value *x = k->file->node->in[0];
    size_t       n = a->n / 2;
    for (size_t i = 0; a->kind == ATTR_INTS && x->dtype && (size_t)x->shape.rank == n + 2 && i < n; i++) {
        Dim axis = p2o_resolve(w->s->bind, x->shape.at[i + 2]);
        if (p2o_dim_is_int(axis, NULL) || a->ints[i] == a->ints[n + i])
            continue;
        for (size_t end = i; end < a->n; end += n)
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
    else if (letter == 'a')
        see_window_pads(w, k, a);
    else if (letter && a->kind == ATTR_TENSOR)
        add_elements(w, k, letter, a->tensor);
    else if (letter && a->kind == ATTR_FLOAT && a->f != 1)
        add_float(w, k, letter, a->f, DT_F32, true);
    for (size_t i = 0; letter && letter != 'w' && letter != 'a' && i < (a->kind == ATTR_INTS ? a->n : a->kind == ATTR_INT); i++) {
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

static int64_t slot_number(const SizeSlot *slot, size_t e)
{
    int64_t v = 0;
    p2o_dim_is_int(slot->was->ints[e], &v);
    return v;
}

static void refuse_node(Weighing *w, const NodeCall *k, const char *why)
{
    if (w->nrefused++ < MOST_REFUSED)
        p2o_diag_advise(w->s->prog->diags, DIAG_NOT_DYNAMIC, 0, p2o_unsettled_advice(w->s->prog), "%s: %s", k->call.target, why);
}

typedef struct DivisibleSizes {
    const Weighing *w;
    int64_t         turn;
} DivisibleSizes;

/* Sizes that every small number divides, others for each symbol. */
static bool divisible_size(void *user, Dim sym, int64_t *v)
{
    enum { DIVISIBLE = 5040 };                  /* by all up to 10 */
    const DivisibleSizes *x = user;
    size_t                i = 0;
    while (i < x->w->symbols.n && x->w->symbols.at[i] != sym)
        i++;
    *v = DIVISIBLE * (1 + x->turn + 3 * (int64_t)i);
    return true;
}

/* Or one of them is not known. */
static bool is_same_when_divisible(const Weighing *w, Dim a, Dim b)
{
    Dims          *t = w->s->prog->dims;
    DivisibleSizes at = { .w = w };
    int64_t        x, y;
    return !p2o_dim_eval(t, a, divisible_size, &at, &x) || !p2o_dim_eval(t, b, divisible_size, &at, &y) || x == y;
}

/* Of an upsampled image: it was as large as an input, and is not even at sizes that everything divides. */
static void doubt_result(Weighing *w, const NodeCall *k)
{
    const Node *n = k->file->node;
    int64_t     size, of;
    for (int d = 2; n->op == ONNX_ConvTranspose && n->out[0]->dtype && d < n->out[0]->shape.rank; d++) {
        Dim now = p2o_resolve(w->s->bind, n->out[0]->shape.at[d]);
        if (p2o_dim_is_sym(now) || p2o_dim_is_int(now, NULL) || !p2o_hint_at(w->s->bind, now, 0, &size))
            continue;
        for (size_t i = 0; i < w->symbols.n; i++)
            if (p2o_hint_at(w->s->bind, w->symbols.at[i], 0, &of) && of == size && !is_same_when_divisible(w, now, w->symbols.at[i]))
                refuse_node(w, k, p2o_printf(w->arena, "its result was as long as %s, and is not at other sizes",
                                             p2o_dim_name(w->symbols.at[i])));
    }
}

/* Small sizes may be too small for the model, but none is too large; a pad has no least size. */
static bool is_negative_somewhere(const Weighing *w, Dim d, bool pad)
{
    Dims          *t = w->s->prog->dims;
    DivisibleSizes at = { .w = w };
    int64_t        v;
    for (int i = 0; pad && i < NPROBE; i++)
        if (p2o_probe(t, w->symbols.at, w->symbols.n, d, i, &v) && v < 0)
            return true;
    return p2o_dim_eval(t, d, divisible_size, &at, &v) && v < 0;
}

static void doubt_negative(Weighing *w, const NodeCall *k)
{
    const Node *n = k->file->node;
    for (size_t c = 0; c < k->slots.n; c++) {
        const SizeSlot *slot = &k->slots.at[c];
        char            letter = number_letter(p2o_onnx_input(n->op, slot->input));
        for (size_t e = 0; !slot->form && letter != 'P' && e < slot->was->nints; e++) {
            Dim d = slot->open[e] ? p2o_resolve(w->s->bind, slot->open[e]) : NULL;
            if (d && is_negative_somewhere(w, d, letter == 'A'))
                refuse_node(w, k, p2o_printf(w->arena, "%lld would be %s, which is less than 0 at some sizes",
                                             (long long)slot_number(slot, e), p2o_dim_text(w->s->prog->dims, d)));
        }
    }
}

static void see_node(Weighing *w, const NodeCall *k)
{
    const Node *n = k->file->node;
    if (is_weighed_later(w, n))
        return;
    doubt_result(w, k);
    doubt_negative(w, k);
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

/* Numbers that the engine took for numbers, by what they cost. */
static void find_taken(Weighing *w)
{
    for (size_t i = 0; i < p2o_bind_nevent(w->s->bind); i++) {
        const BindEvent *e = p2o_bind_event(w->s->bind, i);
        if (e->why == BIND_EVIDENCE && p2o_dim_is_int(e->to, NULL))
            *slot_for(w, &e->sym, sizeof e->sym) = w;
    }
}

static void note_fixed_size(Weighing *w, int64_t size, bool given)
{
    void **slot = size > 1 ? slot_for(w, &size, sizeof size) : NULL;
    if (!slot || *slot)
        return;
    *slot = w;
    VEC_PUSH(w->arena, &w->fixed, ((FixedSize){ size, given }));
}

/* Of all values and weights. */
static void find_fixed(Weighing *w)
{
    const OnnxSettling *s = w->s;
    int64_t             size;
    for (size_t i = 0; i < s->model->graph->inits.n; i++) {
        const Tensor *t = s->model->graph->inits.at[i]->tensor;
        for (int d = 0; t && is_weights(t) && d < t->rank; d++)
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

/* Bits of a size that never changes, or of 1/x or a root of one, that gives the number; 0: none does. */
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
        if (p2o_dim_is_int(p2o_resolve(s->bind, v->shape.at[d]), &size) && (double)size == at && size > 1)
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

static void add_symbol(void *user, Dim sym)
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
            p2o_dim_symbols(p2o_resolve(s->bind, shape.at[d]), add_symbol, w);
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
    struct Key { double at, slack, whole; Dim own[MAX_BASES]; } key = { .at = x->at, .slack = x->slack, .whole = x->whole };
    for (int i = 0; i < own->n; i++)
        key.own[i] = own->dim[i];
    void **slot = slot_for(w, &key, sizeof key);
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

/* A scalar that nothing explains, and that an exporter named or wrote into the graph: computed, but from what? */
static bool is_unexplained(const Number *x, const Readings *r, double known)
{
    static const double constants[] = { 3.14159265358979323846, 2.71828182845904523536, 0.79788456080286535588,
                                        1.4426950408889634074, 0.43429448190325182765, 2.3025850929940456840,
                                        0.69314718055994530942, 1.1283791670955125739, 2.5066282746310005024 };
    if (x->whole || x->parameter || r->n || known > 0 || is_said(x->at))
        return false;
    for (size_t i = 0; i < COUNT_OF(constants); i++)
        for (int k = 1; k <= 360; k = k == 2 ? 180 : k == 180 ? 360 : k + 1)
            if (is_alike(constants[i] * k, x->at, x->slack) || is_alike(constants[i] / k, x->at, x->slack))
                return false;
    return true;
}

static void refuse_number(Weighing *w, const Number *x, const char *readings)
{
    char text[32];
    if (w->nrefused++ >= MOST_REFUSED)
        return;
    p2o_diag_advise(w->s->prog->diags, DIAG_NOT_DYNAMIC, 0, p2o_unsettled_advice(w->s->prog),
                    "%s: %s was %s in the file: %s", x->target, x->square ? "the square of a number" : "a number",
                    p2o_format_f64(text, x->at), readings);
}

typedef struct Occurring {
    Dim  sym;
    bool found;
} Occurring;

static void note_occurring(void *user, Dim sym)
{
    Occurring *o = user;
    o->found |= sym == o->sym;
}

/* A size of the expression is made of what the axis is made of. */
static bool is_along(const Weighing *w, const Reading *r, const Expr *e, Dim axis)
{
    bool along = (e->a && is_along(w, r, e->a, axis)) || (e->b && is_along(w, r, e->b, axis));
    for (size_t i = 0; i < w->symbols.n && e->op == EXPR_SIZE && !along; i++) {
        Occurring in_axis = { .sym = w->symbols.at[i] }, in_size = in_axis;
        p2o_dim_symbols(axis, note_occurring, &in_axis);
        p2o_dim_symbols(r->of->dim[e->base], note_occurring, &in_size);
        along = in_axis.found && in_size.found;
    }
    return along;
}

/* Nobody counts places along one axis by the size of another. */
static const Reading *cheapest_along(const Weighing *w, const Readings *r, Dim axis, double bits)
{
    for (int i = 0; i < r->n && r->list[i].bits < bits; i++)
        if (!axis || is_along(w, &r->list[i], r->list[i].expr, axis))
            return &r->list[i];
    return NULL;
}

static void weigh_number(Weighing *w, size_t i)
{
    const Number   *x = &w->list.at[i];
    const Readings *r = all_readings(w, i);
    Evidence        e = { .at = &x->at, .nfit = 1, .ncapture = 1, .role = x->role, .spelled = SPELLED_UNKNOWN, .usual = x->usual,
                          .fixed = is_by_fixed(w, x), .known = bits_by_fixed(w, x) };
    Verdict         v = p2o_weigh(&e, r);
    if (v.kind == VERDICT_NUMBER && x->strict && !e.fixed && !e.known)
        v.best = cheapest_along(w, r, x->axis, v.number_bits + BITS_STRICT);
    if (v.kind != VERDICT_NUMBER || (x->strict && !e.fixed && !e.known && v.best))
        refuse_number(w, x, p2o_verdict_text(w->arena, &e, &v));
    else if (is_unexplained(x, r, e.known))
        refuse_number(w, x, "made of what cannot be told");
}

/* Sizes that were taken because they are the same, and are numbers of many models as well. */
static void doubt_small(Weighing *w)
{
    const OnnxSettling *s = w->s;
    for (size_t i = 0; i < p2o_bind_nevent(s->bind); i++) {
        const BindEvent *e = p2o_bind_event(s->bind, i);
        int64_t          v;
        Loc              loc;
        const char      *target = p2o_soft_of(s->bind, e->sym, &loc);
        if (e->why != BIND_EVIDENCE || p2o_dim_is_int(e->to, NULL) || !p2o_hint_at(s->bind, e->sym, 0, &v) ||
            v >= LEAST_TELLING || w->nrefused++ >= MOST_REFUSED)
            continue;
        p2o_diag_advise(s->prog->diags, DIAG_NOT_DYNAMIC, 0, p2o_unsettled_advice(s->prog),
                        "%s: whether %lld is a number or follows %s cannot be told", target ? target : "a size",
                        (long long)v, p2o_dim_text(s->prog->dims, e->to));
    }
}

/* What must be equal is not, at sizes that everything divides: a number is missing that was 0 or 1. */
static void doubt_needs(Weighing *w)
{
    const OnnxSettling *s = w->s;
    for (size_t i = 0; i < p2o_nneed(s->bind); i++) {
        const Need *n = p2o_need_at(s->bind, i);
        if (n->kind != NEED_EQ || n->origin != NEED_OF_OPERATOR || w->nrefused)
            continue;
        Dim a = p2o_resolve(s->bind, n->a), b = p2o_resolve(s->bind, n->b);
        if (is_same_when_divisible(w, a, b))
            continue;
        w->nrefused++;
        p2o_diag_advise(s->prog->diags, DIAG_NOT_DYNAMIC, 0, p2o_unsettled_advice(s->prog), "%s needs %s = %s", n->by,
                        p2o_dim_text(s->prog->dims, a), p2o_dim_text(s->prog->dims, b));
    }
}

/* A size of an input that would have to shrink where others grow: a constant holds their sum. */
static void doubt_inputs(Weighing *w)
{
    const OnnxSettling *s = w->s;
    for (size_t i = 0; i < s->freed.n; i++) {
        DivisibleSizes at = { .w = w };
        int64_t        v;
        Dim            now = p2o_resolve(s->bind, s->freed.at[i]);
        if (!p2o_dim_eval(s->prog->dims, now, divisible_size, &at, &v) || v >= 0 || w->nrefused++ >= MOST_REFUSED)
            continue;
        p2o_diag_advise(s->prog->diags, DIAG_NOT_DYNAMIC, 0, p2o_unsettled_advice(s->prog), "%s can't be dynamic: it would be %s",
                        p2o_dim_name(s->freed.at[i]), p2o_dim_text(s->prog->dims, now));
    }
}

/* A triangle between two sizes: its diagonal may be made of them. */
static void doubt_triangles(Weighing *w, const NodeCall *k)
{
    for (size_t i = 0; i < k->slots.n; i++) {
        const BakedForm *f = k->slots.at[i].form;
        int              last = f ? f->of->rank - 1 : 0;
        if (!f || f->kind != BAKED_TRIANGLE || f->of->sizes[last] == f->of->sizes[last - 1] || !f->diagonal ||
            w->nrefused++ >= MOST_REFUSED)
            continue;
        p2o_diag_advise(w->s->prog->diags, DIAG_NOT_DYNAMIC, 0, p2o_unsettled_advice(w->s->prog),
                        "%s: a triangle with diagonal %lld between two sizes may follow them", k->call.target,
                        (long long)f->diagonal);
    }
}

bool p2o_onnx_weigh(OnnxSettling *s)
{
    Weighing w = { .s = s, .arena = s->prog->arena, .seen = { .arena = s->prog->arena } };
    if (!s->freed.n)
        return true;
    find_bases(&w);
    find_fixed(&w);
    find_taken(&w);
    doubt_small(&w);
    doubt_needs(&w);
    doubt_inputs(&w);
    for (size_t i = 0; i < s->calls.n; i++) {
        see_node(&w, s->calls.at[i]);
        doubt_triangles(&w, s->calls.at[i]);
    }
    for (size_t i = 0; i < s->model->graph->outputs.n; i++)
        see_output(&w, s->model->graph->outputs.at[i]);
    read_numbers(&w);
    for (size_t i = 0; i < w.list.n && w.nrefused < MOST_REFUSED; i++)
        weigh_number(&w, i);
    return w.nrefused == 0;
}
