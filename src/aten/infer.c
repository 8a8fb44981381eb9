#include "aten/infer.h"

#include <assert.h>

static void vreport(Infer *in, DiagKind k, const char *fmt, va_list ap)
{
    const char *text = p2o_vprintf(in->arena, fmt, ap);
    p2o_diag(in->diags, k, in->call->loc, "%s: %s", in->call->target, text);
    in->failed = true;
}

void rule_fail(Infer *in, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vreport(in, DIAG_SHAPE, fmt, ap);
    va_end(ap);
}

void rule_unsupported(Infer *in, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vreport(in, DIAG_UNSUPPORTED, fmt, ap);
    va_end(ap);
}

/* As an expression, or, while it is open, as the captures had it; NULL for none. */
static const char *size_text(Infer *in, Dim d)
{
    Buf     text = { .arena = in->arena };
    int64_t v;
    d = p2o_resolve(in->bind, d);
    if (!d || !has_open(in, d))
        return d ? p2o_dim_text(in->dims, d) : NULL;
    for (int k = 0; k < p2o_ncapture(in->bind) && p2o_hint_at(in->bind, d, k, &v); k++)
        p2o_putf(&text, "%s%lld", k ? " and " : "", (long long)v);
    return text.n ? text.at : p2o_dim_text(in->dims, d);
}

static const Arg *varying_item(const Arg *x)
{
    for (uint32_t i = 0; x->kind == ARG_LIST && i < x->n; i++)
        if (x->items[i].kind == ARG_VAR ||
            (x->items[i].kind == ARG_INT && !p2o_dim_is_int(x->items[i].i, NULL)))
            return &x->items[i];
    return x;
}

static const char *fixed_advice(Infer *in, const char *is, const char *may_be)
{
    return p2o_printf(
        in->arena,
        "it follows a size%s, and ONNX fixes it in the file: make it %s, or leave that axis fixed",
        is ? p2o_printf(in->arena, " (%s)", is) : "", may_be ? may_be : "a number");
}

void rule_varies(Infer *in, const char *name, const Arg *x, const char *may_be)
{
    const char *is = size_text(in, p2o_arg_dim(varying_item(x)));
    p2o_diag_advise(in->diags, DIAG_UNSUPPORTED, in->call->loc, fixed_advice(in, is, may_be),
                    "%s: argument '%s' must be a constant", in->call->target, name);
    in->failed = true;
}

static Shape resolve_shape(Infer *in, Shape s)
{
    Dim *d = p2o_shape_copy(in->arena, s, 0);
    for (int i = 0; i < s.rank; i++)
        d[i] = p2o_dim_assume(in->dims, p2o_resolve(in->bind, d[i]), 1);
    return (Shape){ s.rank, d };
}

/* Overflow leaves a NULL Dim in a shape, a bad argument a negative one: caught here, once, for
 * every rule. */
void set_out(Infer *in, const Call *c, int i, DType t, Shape s)
{
    assert(i < c->nouts);
    if (!c->outs[i] || in->failed)
        return;
    for (int k = 0; k < s.rank; k++) {
        int64_t size;
        if (!s.at[k]) {
            rule_fail(in, "axis %d of the result is too large or not a whole number", k);
            return;
        }
        if (p2o_dim_is_int(s.at[k], &size) && size < 0) {
            rule_fail(in, "axis %d of the result has size %lld", k, (long long)size);
            return;
        }
    }
    if (s.rank > MAX_RANK) {
        rule_fail(in, "rank %d is too large", s.rank);
        return;
    }
    c->outs[i]->type = (Type){ .kind = TY_TENSOR, .dtype = t, .shape = resolve_shape(in, s) };
}

static Dim data_symbol(Infer *in, const char *name, int64_t low)
{
    bool known = p2o_dim_has_sym(in->dims, str_of(name));
    Dim  sym = p2o_dim_sym(in->dims, name);
    if (!sym) {
        rule_fail(in, "'%s' cannot name a size", name);
        return NULL;
    }
    if (!known)
        p2o_dim_set_range(in->dims, sym, low, NO_UPPER);
    p2o_set_role(in->bind, sym, ROLE_DATA);
    return p2o_resolve(in->bind, sym);
}

/* A symbol of this Var alone.  Names are unique in a body, and bodies are many: outside of main,
 * and where a body was put in place of its call, the Var's number tells them apart. */
static Dim var_symbol(Infer *in, const Var *v, const char *what, int64_t low)
{
    bool plain = p2o_var_find(in->prog->main, str_of(v->name)) == v;
    return data_symbol(in, plain ? p2o_printf(in->arena, "%s.%s", v->name, what)
                                 : p2o_printf(in->arena, "%s.%s.v%u", v->name, what, v->id), low);
}

void set_int(Infer *in, const Call *c, int i, Dim value)
{
    if (!c->outs[i] || in->failed)
        return;
    if (!value)
        value = var_symbol(in, c->outs[i], "value", NO_LOWER);
    c->outs[i]->type =
        (Type){ .kind = TY_INT, .dtype = DT_I64, .value = p2o_resolve(in->bind, value) };
}

void set_float(Infer *in, const Call *c, int i)
{
    if (c->outs[i] && !in->failed)
        c->outs[i]->type = (Type){ .kind = TY_FLOAT, .dtype = DT_F32 };
}

void set_bool(Infer *in, const Call *c, int i)
{
    if (c->outs[i] && !in->failed)
        c->outs[i]->type = (Type){ .kind = TY_BOOL, .dtype = DT_BOOL };
}

bool must_rank(Infer *in, const Call *c, const char *name, int rank)
{
    int have = shape_arg(c, name).rank;
    if (have == rank)
        return true;
    rule_fail(in, "%s: rank %d against %d", name, have, rank);
    return false;
}

typedef struct AxisOf {
    const char *input;
    int         axis;
} AxisOf;

static AxisOf axis_with(const Infer *in, Dim sym)
{
    const Program *p = in->prog;
    for (size_t i = 0; i < p->inputs.n; i++) {
        const Var *v = p->inputs.at[i].var;
        for (int k = 0; v && k < v->type.shape.rank; k++)
            if (v->type.shape.at[k] == sym)
                return (AxisOf){ p->inputs.at[i].name, k };
    }
    return (AxisOf){ NULL, 0 };
}

static void report_fixed(Infer *in, Dim sym, const char *needs)
{
    AxisOf      at = axis_with(in, sym);
    const char *who = p2o_dim_name(sym), *advice = NULL;
    int64_t     hint;
    if (at.input)
        who = p2o_printf(in->arena, "axis %d of '%s' (%s)", at.axis, at.input, who);
    if (at.input && p2o_dim_hint(in->dims, sym, &hint))
        advice = p2o_printf(
            in->arena, "leave that axis at %lld%s", (long long)hint,
            p2o_ncapture(in->bind) > 1
                ? ""
                : "; if it should be dynamic, a second capture at another size shows "
                  "what follows it");
    p2o_diag_advise(in->diags, DIAG_NOT_DYNAMIC, in->call->loc, advice,
                    "%s can't be dynamic: %s needs %s", who, in->call->target, needs);
    in->failed = true;
}

static const char *resolved_text(Infer *in, Dim d)
{
    return p2o_dim_text(in->dims, p2o_resolve(in->bind, d));
}

/* At the sizes that the capture allows: min(s, 2) is 2 where s is at least 2. */
static bool equal_as_captured(Infer *in, Dim a, Dim b)
{
    return p2o_dim_eq(in->dims, p2o_dim_assume(in->dims, p2o_resolve(in->bind, a), INT64_MAX),
                      p2o_dim_assume(in->dims, p2o_resolve(in->bind, b), INT64_MAX)) == YES;
}

typedef struct Pinning {
    Infer *in;
    bool   ok;                  /* only symbols of the capture, with known sizes */
    Dim    diff;                /* that must be 0 */
    Dim    alone;               /* the symbol whose size alone makes it so; NULL: none does */
    Dim    trial;
} Pinning;

static void may_pin(void *user, Dim sym)
{
    Pinning *p = user;
    int64_t  hint;
    if (p2o_role(p->in->bind, sym) != ROLE_FILE || !p2o_hint_at(p->in->bind, sym, 0, &hint))
        p->ok = false;
}

static Dim size_in_capture(Infer *in, Dim sym)
{
    int64_t hint = 0;
    p2o_hint_at(in->bind, sym, 0, &hint);
    return int_dim(in, hint);
}

static Dim trial_pinned(void *user, Dim sym)
{
    const Pinning *p = user;
    return sym == p->trial ? size_in_capture(p->in, sym) : sym;
}

static void try_alone(void *user, Dim sym)
{
    Pinning *p = user;
    p->trial = sym;
    if (!p->alone && equal_as_captured(p->in, p2o_dim_subst(p->in->dims, p->diff, trial_pinned, p),
                                       int_dim(p->in, 0)))
        p->alone = sym;
}

static void pin_symbol(void *user, Dim sym)
{
    const Pinning *p = user;
    if (!p->alone || p->alone == sym)
        p2o_bind(p->in->bind, sym, size_in_capture(p->in, sym));
}

/* A capture may call sizes dynamic that its own guards fix: they are numbers then, no more of them
 * than it takes. Sizes that the user or several captures made dynamic are not touched. */
static bool pin_captured(Infer *in, Dim a, Dim b, const char *what)
{
    Dim     diff = p2o_dim_sub(in->dims, p2o_resolve(in->bind, a), p2o_resolve(in->bind, b));
    Pinning p = { .in = in, .diff = diff, .ok = diff != NULL && p2o_nfit(in->bind) == 1 };
    if (p.ok)
        p2o_dim_symbols(diff, may_pin, &p);
    if (!p.ok)
        return false;
    const char *text = p2o_printf(in->arena, "%s = %s", resolved_text(in, a), resolved_text(in, b));
    p2o_dim_symbols(diff, try_alone, &p);
    p2o_dim_symbols(diff, pin_symbol, &p);
    p2o_diag(in->diags, DIAG_WARN, in->call->loc,
             "the capture calls sizes dynamic that the model fixes: %s, %s: %s", in->call->target,
             what, text);
    return true;
}

static void note_need(Infer *in, NeedKind kind, Dim a, Dim b, const char *what)
{
    p2o_need(in->bind, (Need){ kind, a, b, p2o_printf(in->arena, "%s, %s", in->call->target, what),
                               in->call->loc });
}

void needs_le(Infer *in, Dim a, Dim b, const char *what)
{
    a = p2o_resolve(in->bind, a);
    b = p2o_resolve(in->bind, b);
    if (a && b && !has_open(in, a) && !has_open(in, b) && p2o_dim_le(in->dims, a, b) != YES)
        note_need(in, NEED_LE, a, b, what);
}

/* b = min(b, c) says b <= c, b = max(b, c) says c <= b. */
static bool is_bound_by(Infer *in, Dim a, Dim b, const char *what)
{
    DimKind kind = p2o_dim_kind(a);
    for (int i = 0; i < 2 && (kind == DIM_MIN || kind == DIM_MAX); i++) {
        Dim other = p2o_dim_operand(a, 1 - i);
        if (p2o_dim_operand(a, i) != b)
            continue;
        needs_le(in, kind == DIM_MIN ? b : other, kind == DIM_MIN ? other : b, what);
        return true;
    }
    return false;
}

void needs_equal(Infer *in, Dim a, Dim b, const char *what)
{
    a = p2o_resolve(in->bind, a);
    b = p2o_resolve(in->bind, b);
    if (!is_bound_by(in, a, b, what) && !is_bound_by(in, b, a, what))
        note_need(in, NEED_EQ, a, b, what);
}

static void note_demand(Infer *in, Dim a, Dim b, const char *what)
{
    p2o_demand(in->bind, (Demand){ p2o_resolve(in->bind, a), p2o_resolve(in->bind, b),
                                   p2o_printf(in->arena, "%s, %s", in->call->target, what),
                                   in->call->loc });
}

static bool was_always_one(Infer *in, Dim d)
{
    int64_t v;
    return p2o_hint_in_all(in->bind, d, &v) && v == 1;
}

/* A size that was 1 and grew there: captures at 1 do not show what others would do. */
static bool report_stretched(Infer *in, Dim one, Dim to, const char *what)
{
    int64_t first;
    one = p2o_resolve(in->bind, one);
    if (!one || p2o_dim_is_int(one, NULL) || has_open(in, one) || !was_always_one(in, one) ||
        !p2o_hint_at(in->bind, to, 0, &first) || first == 1)
        return false;
    AxisOf      at = axis_with(in, one);
    const char *who = p2o_dim_text(in->dims, one);
    if (at.input)
        who = p2o_printf(in->arena, "axis %d of '%s' (%s)", at.axis, at.input, who);
    p2o_diag_advise(in->diags, DIAG_NOT_DYNAMIC, in->call->loc,
                    "leave that axis at 1; if it should be dynamic, capture at a size other than 1",
                    "%s can't be dynamic: it was 1 at capture, and %s, %s, stretches it to %s",
                    who, in->call->target, what, size_text(in, to));
    in->failed = true;
    return true;
}

/* min(h, 4) = 4 says 4 <= h. */
static bool holds_in_range(Infer *in, Dim a, Dim b, const char *what)
{
    Choices c;
    if (!p2o_same_by_choice(in->bind, p2o_resolve(in->bind, a), p2o_resolve(in->bind, b), &c))
        return false;
    for (int i = 0; i < c.n; i++) {
        if (p2o_dim_le(in->dims, c.a[i], c.b[i]) == YES)
            continue;
        needs_le(in, c.a[i], c.b[i], what);
        p2o_diag(in->diags, DIAG_NOTE, in->call->loc, "the model needs %s <= %s: %s, %s",
                 p2o_dim_text(in->dims, c.a[i]), p2o_dim_text(in->dims, c.b[i]), in->call->target,
                 what);
    }
    return true;
}

bool must_equal(Infer *in, const Call *c, Dim a, Dim b, const char *what)
{
    Dim sym, to;
    (void)c;
    if (equal_as_captured(in, a, b) || holds_in_range(in, a, b, what))
        return true;
    switch (p2o_unify(in->bind, a, b, &sym, &to)) {
    case UNIFY_SAME:
        return true;
    case UNIFY_BOUND:
        p2o_bind_log(in->bind, BIND_RULE, sym, to,
                     p2o_printf(in->arena, "%s: %s", in->call->target, what), in->call->loc);
        if (p2o_role(in->bind, sym) >= ROLE_FILE)
            p2o_diag(in->diags, DIAG_NOTE, in->call->loc, "the model needs %s = %s: %s, %s",
                     p2o_dim_name(sym), p2o_dim_text(in->dims, to), in->call->target, what);
        return true;
    case UNIFY_ASSUMED:
        if (has_open(in, a) || has_open(in, b)) {
            note_demand(in, a, b, what);
            return true;                    /* asked again once everything is settled */
        }
        needs_equal(in, a, b, what);
        p2o_diag(in->diags, DIAG_NOTE, in->call->loc, "the model needs %s = %s: %s, %s",
                 resolved_text(in, a), resolved_text(in, b), in->call->target, what);
        return true;
    case UNIFY_FIXED:
        if (pin_captured(in, a, b, what))
            return true;
        report_fixed(in, sym, p2o_printf(in->arena, "%s: %s = %s", what, resolved_text(in, a),
                                         resolved_text(in, b)));
        return false;
    case UNIFY_DIFFERENT:
        break;
    }
    if (!report_stretched(in, a, b, what) && !report_stretched(in, b, a, what))
        rule_fail(in, "%s: %s against %s", what, size_text(in, a), size_text(in, b));
    return false;
}

/* A literal 1 broadcasts.  So does what is still open and was 1 in every capture: it must be 1
 * beside a size that was another; beside one that was 1 too it may follow that, and stays open. */
bool is_one_beside(Infer *in, Dim d, Dim beside)
{
    d = p2o_resolve(in->bind, d);
    if (!has_open(in, d))
        return dim_is(d, 1);
    if (!was_always_one(in, d))
        return false;
    if (!was_always_one(in, p2o_resolve(in->bind, beside)))
        harden(in, d);
    return true;
}

bool must_expand(Infer *in, const Call *c, Shape from, Shape to, const char *what)
{
    int lead = to.rank - from.rank;
    if (lead < 0) {
        rule_fail(in, "%s of rank %d against %d", what, from.rank, to.rank);
        return false;
    }
    for (int i = 0; i < from.rank; i++)
        if (!is_one_beside(in, from.at[i], to.at[lead + i]) &&
            !must_equal(in, c, from.at[i], to.at[lead + i], what))
            return false;
    return true;
}

static bool wrap_or_fail(Infer *in, int64_t dim, int rank, bool scalar_ok, int *out)
{
    if (p2o_wrap_dim(dim, rank, scalar_ok, out))
        return true;
    rule_fail(in, "dim %lld is out of range for rank %d", (long long)dim, rank);
    return false;
}

bool must_wrap(Infer *in, int64_t dim, int rank, int *out)
{
    return wrap_or_fail(in, dim, rank, false, out);
}
bool must_wrap_reduce(Infer *in, int64_t dim, int rank, int *out)
{
    return wrap_or_fail(in, dim, rank, true, out);
}

bool const_dim(Infer *in, Dim d, const char *what, int64_t *out)
{
    Dim open = d = p2o_resolve(in->bind, d);
    if (is_soft(in, open) && harden(in, open)) {
        d = p2o_resolve(in->bind, d);
        p2o_bind_log(in->bind, BIND_AS_NUMBER, open, d, in->call->target, in->call->loc);
    }
    if (p2o_dim_is_int(d, out))
        return true;
    p2o_diag_advise(in->diags, DIAG_UNSUPPORTED, in->call->loc, fixed_advice(in, NULL, NULL),
                    "%s: %s must be a number, not %s", in->call->target, what, size_text(in, d));
    in->failed = true;
    return false;
}

/* A list of one stands for n equal ones, as PyTorch's int[2] does. */
bool const_ints(Infer *in, const Call *c, const char *name, int n, int64_t *out)
{
    int have = list_len(c, name);
    if (have != n && have != 1) {
        rule_fail(in, "%s has %d entries, expected %d", name, have, n);
        return false;
    }
    for (int i = 0; i < n; i++)
        if (!const_dim(in, dim_item(c, name, have == 1 ? 0 : i), name, &out[i]))
            return false;
    return true;
}

Dim int_dim(const Infer *in, int64_t v) { return p2o_dim_int(in->dims, v); }

Shape with_dim(Infer *in, Shape s, int i, Dim d)
{
    Dim *at = p2o_shape_copy(in->arena, s, 0);
    at[i] = d;
    return (Shape){ s.rank, at };
}

Shape with_last(Infer *in, Shape s, Dim d) { return with_dim(in, s, s.rank - 1, d); }

Shape without_dim(Infer *in, Shape s, int i)
{
    Dim *at = p2o_shape_copy(in->arena, s, 0);
    for (int k = i; k + 1 < s.rank; k++)
        at[k] = at[k + 1];
    return (Shape){ s.rank - 1, at };
}

Shape insert_dim(Infer *in, Shape s, int i, Dim d) { return p2o_shape_insert(in->arena, s, i, d); }

Shape concat_shapes(Infer *in, Shape a, Shape b)
{
    Dim *at = p2o_shape_copy(in->arena, a, b.rank);
    for (int i = 0; i < b.rank; i++)
        at[a.rank + i] = b.at[i];
    return (Shape){ a.rank + b.rank, at };
}

Shape slice_shape(Shape s, int from, int to) { return (Shape){ to - from, s.at + from }; }

Shape shape_list(Infer *in, const Call *c, const char *name)
{
    int  n = list_len(c, name);
    Dim *at = NEW_N(in->arena, Dim, (size_t)n + 1);
    for (int i = 0; i < n; i++)
        at[i] = dim_item(c, name, i);
    return (Shape){ n, at };
}

Shape broadcast(Infer *in, const Call *c, Shape a, Shape b)
{
    if (a.rank < b.rank) {
        Shape t = a;
        a = b;
        b = t;
    }
    Dim *at = p2o_shape_copy(in->arena, a, 0);
    int  lead = a.rank - b.rank;
    for (int i = 0; i < b.rank; i++) {
        Dim x = a.at[lead + i], y = b.at[i];
        if (is_one_beside(in, x, y))
            at[lead + i] = y;
        else if (!is_one_beside(in, y, x))
            must_equal(in, c, x, y, "sizes to broadcast");
    }
    return (Shape){ a.rank, at };
}

Dim data_dim(Infer *in, const Call *c, int out, int axis)
{
    const Var *named = c->outs[out];
    for (int i = 0; !named && i < c->nouts; i++)
        named = c->outs[i];
    if (!named)                             /* nobody asks */
        return int_dim(in, 0);
    const char *of = named == c->outs[out] ? "" : p2o_printf(in->arena, "%d.", out);
    return var_symbol(in, named, p2o_printf(in->arena, "%s%d", of, axis), 0);
}

Dim round_dim(Infer *in, const Var *input, int axis)
{
    return var_symbol(in, input, p2o_printf(in->arena, "%d", axis), 0);
}

Dim round_int(Infer *in, const Var *input) { return var_symbol(in, input, "value", NO_LOWER); }

static DType promote_known(DType a, DType b)
{
    return a == DT_NONE ? b : b == DT_NONE ? a : p2o_dtype_promote(a, b);
}

void promote_type(Promotion *p, Type t)
{
    DType *slot = t.kind != TY_TENSOR ? &p->number : t.shape.rank ? &p->dim : &p->zero;
    *slot = promote_known(*slot, t.dtype);
}

/* A lower level changes the type only when it is of a higher category. */
static DType combine_levels(DType high, DType low)
{
    if (is_complex(high))
        return high;
    if (is_float(high))
        return is_complex(low) ? complex_of(high) : high;
    if (high == DT_BOOL || is_float(low) || is_complex(low))
        return promote_known(high, low);
    return high != DT_NONE ? high : low;
}

DType promoted(const Promotion *p)
{
    return combine_levels(p->dim, combine_levels(p->zero, p->number));
}

DType promote_args(const Call *c, int n, const char *const *names)
{
    Promotion p = { 0 };
    for (int i = 0; i < n; i++)
        if (has_arg(c, names[i]))
            promote_type(&p, type_arg(c, names[i]));
    return promoted(&p);
}

DType default_dtype(const Call *c)
{
    const Var *v = c->nouts ? c->outs[0] : NULL;
    return v && v->recorded.kind == TY_TENSOR && is_float(v->recorded.dtype) ? v->recorded.dtype
                                                                             : DT_F32;
}

/* The first argument, whatever it is called; a number there is a 0-d tensor. */
static Type first_type(const Call *c) { return p2o_arg_type(&c->args[0]); }

void p2o_rule_same(Infer *in, const Call *c)
{
    set_out(in, c, 0, first_type(c).dtype, first_type(c).shape);
}

void p2o_rule_float(Infer *in, const Call *c)
{
    set_out(in, c, 0, float_of(first_type(c).dtype), first_type(c).shape);
}

void p2o_rule_bool(Infer *in, const Call *c) { set_out(in, c, 0, DT_BOOL, first_type(c).shape); }

static void broadcast_pair(Infer *in, const Call *c, DType t)
{
    set_out(in, c, 0, t,
            broadcast(in, c, p2o_arg_type(&c->args[0]).shape, p2o_arg_type(&c->args[1]).shape));
}

static DType pair_type(const Call *c)
{
    Promotion p = { 0 };
    promote_type(&p, p2o_arg_type(&c->args[0]));
    promote_type(&p, p2o_arg_type(&c->args[1]));
    return promoted(&p);
}

void p2o_rule_binary(Infer *in, const Call *c) { broadcast_pair(in, c, pair_type(c)); }
void p2o_rule_binary_float(Infer *in, const Call *c)
{
    broadcast_pair(in, c, float_of(pair_type(c)));
}
void p2o_rule_compare(Infer *in, const Call *c) { broadcast_pair(in, c, DT_BOOL); }

void p2o_rule_none(Infer *in, const Call *c)
{
    (void)in;
    (void)c;
}

static const Var *poison_in(const Arg *x)
{
    const Var *v = NULL;
    if (x->kind == ARG_VAR)
        return x->var->type.kind == TY_NONE ? x->var : NULL;
    for (uint32_t i = 0; x->kind == ARG_LIST && i < x->n && !v; i++)
        v = poison_in(&x->items[i]);
    return v;
}

static bool item_is_const(SchemaBase base, const Arg *x)
{
    double f;
    if (base == SB_INT)
        return p2o_dim_is_int(p2o_arg_dim(x), NULL);
    if (base == SB_FLOAT)
        return p2o_number_is_const(x, &f);
    return base != SB_BOOL || x->kind == ARG_BOOL;
}

/* What the schema calls int, float or bool is fixed at conversion; SymInt and Scalar need not
 * be. */
static bool plain_args_are_const(Infer *in, const Call *c)
{
    for (int i = 0; i < c->nargs; i++) {
        const SchemaArg *a = &c->schema->args[i];
        const Arg       *x = &c->args[i];
        bool             ok = true;
        if (x->kind == ARG_NONE || p2o_op_varies(c->op, a->name))
            continue;
        if (x->kind == ARG_LIST)
            for (uint32_t k = 0; k < x->n; k++)
                ok &= item_is_const(a->base, &x->items[k]);
        else
            ok = item_is_const(a->base, x);
        if (!ok) {
            rule_varies(in, a->name, x, NULL);
            return false;
        }
    }
    return true;
}

/* Tensor slots hold tensors or numbers, number slots no tensors: files may say otherwise. */
static bool kinds_match(Infer *in, const Call *c)
{
    for (int i = 0; i < c->nargs; i++) {
        const SchemaArg *a = &c->schema->args[i];
        const Arg       *x = &c->args[i];
        size_t           n = x->kind == ARG_LIST ? x->n : 1;
        for (size_t k = 0; k < n; k++) {
            const Arg *item = x->kind == ARG_LIST ? &x->items[k] : x;
            if (item->kind == ARG_VAR && item->var->type.kind == TY_TENSOR &&
                a->base != SB_TENSOR && a->base != SB_ANY) {
                rule_fail(in, "argument '%s' is a tensor, expected a number", a->name);
                return false;
            }
        }
    }
    return true;
}

static bool sizes_agree(Infer *in, Dim rule, Dim file, int capture)
{
    int64_t x, y;
    file = p2o_resolve(in->bind, file);
    if (!file || rule == file)
        return true;
    if (p2o_hint_at(in->bind, rule, capture, &x) && p2o_hint_at(in->bind, file, capture, &y))
        return x == y;
    Dim sym, to;                            /* a data-dependent size takes the file's name for it */
    if (p2o_dim_is_sym(rule) && p2o_role(in->bind, rule) == ROLE_DATA) {
        if (p2o_dim_has(file, DIM_FN))      /* 0.5*(0.7*n) is recorded as 0.35*n: another float */
            return true;
        return p2o_unify(in->bind, rule, file, &sym, &to) != UNIFY_DIFFERENT;
    }
    return p2o_dim_eq(in->dims, rule, file) != NO;
}

static const char *type_text(Infer *in, Type t)
{
    if (t.kind == TY_INT)
        return p2o_printf(in->arena, "int %s", p2o_dim_text(in->dims, t.value));
    return t.kind == TY_TENSOR ? p2o_printf(in->arena, "%s[%s]", p2o_dtype_text(t.dtype),
                                            p2o_shape_text(in->dims, t.shape))
                               : "a number";
}

static bool types_match(Infer *in, Type rule, Type file, int capture)
{
    if (rule.kind == TY_NONE || file.kind == TY_NONE)
        return true;
    if (rule.kind != file.kind)
        return false;
    if (rule.kind == TY_INT)
        return sizes_agree(in, rule.value, file.value, capture);
    if (rule.kind != TY_TENSOR)
        return true;
    if (rule.dtype != file.dtype || rule.shape.rank != file.shape.rank)
        return false;
    for (int i = 0; i < rule.shape.rank; i++)
        if (!sizes_agree(in, rule.shape.at[i], file.shape.at[i], capture))
            return false;
    return true;
}

/* Without an error so far, a rule left the result out: only its use is one. */
static bool args_have_types(Infer *in, const Call *c)
{
    for (int i = 0; i < c->nargs; i++) {
        const Var *v = poison_in(&c->args[i]);
        if (v && p2o_diags_errors(in->diags) == in->errors)
            rule_unsupported(in, "needs '%s', a result of %s that is not computed", v->name,
                             v->def ? v->def->target : "nothing");
        if (v)
            return false;
    }
    return true;
}

static void outputs_have_types(Infer *in)
{
    for (size_t i = 0; i < in->prog->outputs.n; i++) {
        const OutputSpec *s = &in->prog->outputs.at[i];
        const Var        *v = poison_in(&s->value);
        if (v)
            p2o_diag(in->diags, DIAG_UNSUPPORTED, 0,
                     "output '%s' is a result of %s that is not computed", s->name,
                     v->def ? v->def->target : "nothing");
    }
}

/* The proof that a type is right: at each capture's sizes it is what that capture recorded. */
static void check_recorded(Infer *in, Var *v)
{
    for (int k = 0; k < p2o_ncapture(in->bind) && !in->prog->proven; k++) {
        Type file = k == 0 ? v->recorded : v->also ? v->also[k - 1] : (Type){ 0 };
        if (types_match(in, v->type, file, k))
            continue;
        const char *what = p2o_printf(
            in->arena, "result '%s' is %s by its arguments, but %s recorded %s", v->name,
            type_text(in, v->type), k ? p2o_printf(in->arena, "capture %d", k + 1) : "the file",
            type_text(in, file));
        if (k == 0)
            rule_fail(in, "%s", what);
        else    /* each file is good, but they are not one model at all sizes */
            p2o_diag(in->diags, DIAG_NOT_DYNAMIC, in->call->loc, "%s: %s", in->call->target, what);
        in->failed = true;
        v->type = (Type){ 0 };
        return;
    }
}

/* Arguments are kept in terms of what is left, for rules and lowerings alike. */
static void resolve_arg(Infer *in, Arg *x)
{
    if (x->kind == ARG_INT)
        x->i = p2o_resolve(in->bind, x->i);
    for (uint32_t i = 0; x->kind == ARG_LIST && i < x->n; i++)
        resolve_arg(in, &x->items[i]);
}

/* Complex results of real arguments show only afterwards. */
static void run_rule(Infer *in, const Call *c)
{
    if (p2o_knows_complex(c)) {
        const ComplexOp *x = p2o_complex_op(c);
        (x && x->shape ? x->shape : c->op->shape)(in, c);
    }
    if (!p2o_knows_complex(c) && !in->failed)
        rule_unsupported(in, "complex tensors");
}

static void infer_call(Infer *in, Call *c)
{
    for (int i = 0; i < c->nargs && p2o_bindings_count(in->bind); i++)
        resolve_arg(in, &c->args[i]);
    for (int i = 0; i < c->nouts; i++)
        if (c->outs[i])
            c->outs[i]->type = (Type){ 0 };
    in->call = c;
    in->failed = false;
    if (!args_have_types(in, c))
        return;
    if (!plain_args_are_const(in, c) || !kinds_match(in, c))
        return;
    run_rule(in, c);
    for (int i = 0; i < c->nouts; i++) {
        if (!c->outs[i])
            continue;
        if (in->failed)
            c->outs[i]->type = (Type){ 0 };
        else if (!c->op->unchecked)
            check_recorded(in, c->outs[i]);
    }
}

bool infer_body(Infer *in, const Body *b, const Type *inputs)
{
    const Call *around = in->call;
    size_t      errors = p2o_diags_errors(in->diags);
    for (size_t i = 0; i < b->inputs.n; i++)
        b->inputs.at[i]->type = inputs[i];
    for (size_t i = 0; i < b->calls.n; i++)
        infer_call(in, b->calls.at[i]);
    in->call = around;
    in->failed = false;
    for (size_t i = 0; i < b->outputs.n && p2o_diags_errors(in->diags) == errors; i++) {
        const Var *v = poison_in(&b->outputs.at[i]);
        if (v)
            rule_unsupported(in, "its body returns '%s', a result of %s that is not computed",
                             v->name, v->def ? v->def->target : "nothing");
    }
    in->failed = p2o_diags_errors(in->diags) != errors;
    return !in->failed;
}

static void resolve_inputs(Infer *in)
{
    const Body *b = in->prog->main;
    for (size_t i = 0; i < b->inputs.n; i++) {
        Type *t = &b->inputs.at[i]->type;
        t->shape = resolve_shape(in, t->shape);
        t->value = p2o_resolve(in->bind, t->value);
    }
}

bool p2o_infer(Program *p, Bindings *b)
{
    size_t errors = p2o_diags_errors(p->diags), bound;
    Infer  in = { .prog = p, .arena = p->arena, .dims = p->dims, .diags = p->diags, .bind = b,
                  .errors = errors };

    do {                                    /* each round binds at least one symbol more: it ends */
        bound = p2o_bindings_count(b);
        p2o_forget_unsettled(b);
        for (size_t i = 0; i < p->ranges.n; i++)
            p2o_dim_set_floor(p->dims, p2o_resolve(b, p->ranges.at[i].dim), p->ranges.at[i].lo);
        resolve_inputs(&in);
        for (size_t i = 0; i < p->main->calls.n; i++)
            infer_call(&in, p->main->calls.at[i]);
        if (p2o_diags_errors(p->diags) != errors)
            return false;
    } while (p2o_bindings_count(b) != bound);
    outputs_have_types(&in);
    return p2o_diags_errors(p->diags) == errors;
}
