#include "dyn/declare.h"

#include "base/num.h"

/* The file's type, in full: declarations change single axes of it. */
static void start_from_recorded(Program *p, Var *v)
{
    if (v->type.kind != TY_NONE)
        return;
    v->type = v->recorded;
    v->type.shape.at = p2o_shape_copy(p->arena, v->recorded.shape, 0);
}

void p2o_declare_rest(Program *p)
{
    for (size_t i = 0; i < p->main->inputs.n; i++)
        start_from_recorded(p, p->main->inputs.at[i]);
    for (size_t i = 0; i < p->weights.n; i++) {
        Var *v = p->weights.at[i];
        v->type = v->recorded;
        if (!v->tensor)
            continue;
        Dim *at = NEW_N(p->arena, Dim, (size_t)v->tensor->rank + 1);
        for (int k = 0; k < v->tensor->rank; k++)
            at[k] = p2o_dim_int(p->dims, v->tensor->sizes[k]);
        v->type = (Type){ .kind = TY_TENSOR, .dtype = v->tensor->dtype,
                          .shape = { v->tensor->rank, at } };
    }
}

const char *p2o_input_list(const Program *p)
{
    Buf b = { .arena = p->arena };
    p2o_puts(&b, "the inputs are");
    for (size_t i = 0; i < p->inputs.n; i++)
        if (p->inputs.at[i].var)
            p2o_putf(&b, " %s", p->inputs.at[i].name);
    return b.at;
}

static Var *find_input(Program *p, Str name)
{
    for (size_t i = 0; i < p->inputs.n; i++)
        if (p->inputs.at[i].var && str_is(name, p->inputs.at[i].name))
            return p->inputs.at[i].var;
    for (size_t i = 0; i < p->inputs.n; i++)            /* as PyTorch calls a part of a cache */
        if (p->inputs.at[i].var && str_is(name, p->inputs.at[i].var->name))
            return p->inputs.at[i].var;
    p2o_diag_advise(p->diags, DIAG_MISUSE, 0, p2o_input_list(p), "no input is called '%.*s'",
                    STR_ARG(name));
    return NULL;
}

static bool is_dim_name(Str s)
{
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        if (!letter && !(i > 0 && ((c >= '0' && c <= '9') || c == '.')))
            return false;
    }
    return s.n > 0 && s.n < 256;
}

/* A symbol with the user's name.  Its hint is the captured size of the first axis that has it. */
static Dim user_symbol(Program *p, Bindings *b, Str name, Dim captured)
{
    Dim     sym = p2o_dim_sym(p->dims, p2o_str_dup(p->arena, name));
    int64_t hint;
    p2o_set_role(b, sym, ROLE_USER);
    if (!p2o_dim_hint(p->dims, sym, &hint) && p2o_dim_hint(p->dims, captured, &hint))
        p2o_dim_set_hint(p->dims, sym, hint);
    return sym;
}

void p2o_declare_ints(Program *p, Bindings *b)
{
    for (size_t i = 0; i < p->inputs.n; i++) {
        const Var *v = p->inputs.at[i].var;
        Str        name = str_of(p->inputs.at[i].name);
        Dim        captured = v && v->recorded.kind == TY_INT ? p2o_resolve(b, v->recorded.value)
                                                              : NULL;
        if (captured && p2o_dim_is_sym(captured) && p2o_role(b, captured) != ROLE_USER &&
            is_dim_name(name) && !p2o_dim_has_sym(p->dims, name))
            p2o_bind(b, captured, user_symbol(p, b, name, captured));
    }
}

static bool pin_axis(Program *p, Bindings *b, Str input, int axis, Dim captured, Dim number)
{
    if (captured == number)
        return true;
    if (p2o_dim_is_sym(captured)) {
        p2o_bind(b, captured, number);
        return true;
    }
    p2o_diag_advise(p->diags, DIAG_NOT_DYNAMIC, 0, "give the axis a name to make it dynamic",
                    "axis %d of '%.*s' was %s at capture and can't be %s", axis, STR_ARG(input),
                    p2o_dim_text(p->dims, captured), p2o_dim_text(p->dims, number));
    return false;
}

/* The number that the user gave for the size; NULL: none. */
static Dim pinned_to(const Program *p, Dim sym)
{
    for (size_t i = 0; i < p->declared.n; i++)
        if (p->declared.at[i].dim == sym && p->declared.at[i].lo == p->declared.at[i].hi)
            return p2o_dim_int(p->dims, p->declared.at[i].lo);
    return NULL;
}

static bool is_expression(Str s)
{
    bool letters = false, signs = false;
    for (size_t i = 0; i < s.n; i++) {
        letters |= is_dim_name((Str){ s.p + i, 1 });
        signs |= strchr("+-*/", s.p[i]) && i > 0;
    }
    return letters && signs;
}

static bool name_axis(Program *p, Bindings *b, Str input, int axis, Dim *at, Str name)
{
    if (!is_dim_name(name)) {
        p2o_diag_advise(p->diags, DIAG_MISUSE, 0,
                        "a name has letters, digits and _; ? leaves the axis as it is",
                        "'%.*s' is no name for axis %d of '%.*s'", STR_ARG(name), axis,
                        STR_ARG(input));
        return false;
    }
    Dim captured = p2o_resolve(b, *at), sym = user_symbol(p, b, name, captured);
    int64_t want, have;
    if (captured == sym)
        return true;
    if (p2o_dim_hint(p->dims, sym, &want) && p2o_dim_hint(p->dims, captured, &have) &&
        want != have) {
        p2o_diag_advise(p->diags, DIAG_NOT_DYNAMIC, 0, "use another name for one of them",
                        "'%.*s' names sizes that differed at capture: %lld, and %lld for axis %d "
                        "of '%.*s'",
                        STR_ARG(name), (long long)want, (long long)have, axis, STR_ARG(input));
        return false;
    }
    Dim number = pinned_to(p, sym);
    if (p2o_dim_is_sym(captured) && p2o_role(b, captured) != ROLE_USER)
        p2o_bind(b, captured, number ? number : sym);   /* the capture's symbol takes the user's
                                                         * name */
    else if (captured == number)
        return true;
    else if (p2o_dim_is_sym(captured))
        p2o_diag(p->diags, DIAG_NOTE, 0, "%s and %.*s are one size in the capture",
                 p2o_dim_name(captured), STR_ARG(name));
    else
        *at = sym;
    return true;
}

/* The axes of an input, to be changed in place. */
static Dim *axes_of(Program *p, Var *v)
{
    start_from_recorded(p, v);
    return (Dim *)(uintptr_t)v->type.shape.at;
}

static bool declare_one(Program *p, Bindings *b, Str input, Var *v, int axis, Str word)
{
    Dim    *at = axes_of(p, v);
    int64_t n;
    if (str_is(word, "?"))
        return true;
    if (p2o_parse_i64(word, &n))
        return pin_axis(p, b, input, axis, p2o_resolve(b, at[axis]), p2o_dim_int(p->dims, n));
    if (is_expression(word)) {                          /* until its names are known */
        VEC_PUSH(p->arena, &p->axis_exprs,
                 ((AxisExpr){ p2o_str_dup(p->arena, input), p2o_str_dup(p->arena, word), v,
                              axis }));
        return true;
    }
    return name_axis(p, b, input, axis, &at[axis], word);
}

bool p2o_declare_axis(Program *p, Bindings *b, Str input, int64_t axis, Str name)
{
    Var *v = find_input(p, input);
    int  k;
    if (!v)
        return false;
    if (!p2o_wrap_dim(axis, v->recorded.shape.rank, false, &k)) {
        p2o_diag(p->diags, DIAG_MISUSE, 0, "'%.*s' has no axis %lld: its rank is %d",
                 STR_ARG(input), (long long)axis, v->recorded.shape.rank);
        return false;
    }
    if (!name.n)
        name = str_of(p2o_printf(p->arena, "%.*s_%d", STR_ARG(input), k));
    return declare_one(p, b, input, v, k, name);
}

typedef struct ExprNames {
    Program    *prog;
    Bindings   *bind;
    const char *unknown;
} ExprNames;

static void note_unknown_name(void *user, Dim sym)
{
    ExprNames *x = user;
    int64_t    hint;
    if (p2o_role(x->bind, sym) != ROLE_USER || !p2o_dim_hint(x->prog->dims, sym, &hint))
        x->unknown = p2o_dim_name(sym);
}

static bool declare_expression(Program *p, Bindings *b, const AxisExpr *x)
{
    const char *error = NULL;
    Dim        *at = &axes_of(p, x->var)[x->axis];
    Dim         e = p2o_dim_parse(p->dims, str_of(x->text), &error);
    ExprNames   names = { p, b, NULL };
    int64_t     want, have;
    if (e)
        p2o_dim_symbols(e, note_unknown_name, &names);
    if (!e || names.unknown) {
        p2o_diag_advise(p->diags, DIAG_MISUSE, 0, "write past+seq, with names that axes have",
                        "'%s' of '%s' is no size: %s%s", x->text, x->input,
                        e ? "no axis is called " : "names, numbers, +, - and * make one",
                        e ? names.unknown : "");
        return false;
    }
    Dim captured = p2o_resolve(b, *at), now = p2o_resolve(b, e);
    if (p2o_dim_hint(p->dims, now, &want) && p2o_dim_hint(p->dims, captured, &have) &&
        want != have) {
        p2o_diag_advise(p->diags, DIAG_NOT_DYNAMIC, 0, "give the axis a name of its own",
                        "axis %d of '%s' was %lld at capture and %s is %lld", x->axis, x->input,
                        (long long)have, x->text, (long long)want);
        return false;
    }
    if (captured == now)
        return true;
    if (p2o_dim_is_int(captured, NULL)) {
        *at = e;
        return true;
    }
    if (p2o_dim_is_sym(captured) && p2o_role(b, captured) != ROLE_USER) {
        p2o_bind(b, captured, now);
        return true;
    }
    p2o_diag_advise(p->diags, DIAG_NOT_DYNAMIC, 0, "? leaves the axis as it is",
                    "axis %d of '%s' is %s in the capture, not %s", x->axis, x->input,
                    p2o_dim_text(p->dims, captured), x->text);
    return false;
}

void p2o_declare_expressions(Program *p, Bindings *b)
{
    for (size_t i = 0; i < p->axis_exprs.n; i++)
        declare_expression(p, b, &p->axis_exprs.at[i]);
}

static Str without_brackets(Str s)
{
    s = p2o_str_trim(s);
    if (s.n >= 2 && ((s.p[0] == '[' && s.p[s.n - 1] == ']') ||
                     (s.p[0] == '(' && s.p[s.n - 1] == ')')))
        s = (Str){ s.p + 1, s.n - 2 };
    return p2o_str_trim(s);
}

bool p2o_declare_input(Program *p, Bindings *b, Str spec)
{
    Str  dims, name = p2o_str_trim(p2o_str_cut(spec, ':', &dims));
    Var *v = find_input(p, name);
    int  n = 0;
    bool ok = v != NULL;
    dims = without_brackets(dims);
    for (size_t i = 0; i < dims.n; i++)
        n += dims.p[i] == ',';
    n += dims.n > 0;
    if (ok && n != v->recorded.shape.rank) {
        p2o_diag(p->diags, DIAG_MISUSE, 0, "'%.*s' has %d axes, '%.*s' names %d", STR_ARG(name),
                 v->recorded.shape.rank, STR_ARG(spec), n);
        return false;
    }
    for (int i = 0; ok && i < n; i++)
        ok = declare_one(p, b, name, v, i, p2o_str_trim(p2o_str_cut(dims, ',', &dims)));
    return ok;
}

static bool parse_range(Str text, int64_t *lo, int64_t *hi)
{
    *lo = NO_LOWER;
    *hi = NO_UPPER;
    for (size_t i = 0; i + 1 < text.n; i++) {
        if (text.p[i] != '.' || text.p[i + 1] != '.')
            continue;
        Str from = { text.p, i }, to = { text.p + i + 2, text.n - i - 2 };
        return (!from.n || p2o_parse_i64(from, lo)) && (!to.n || p2o_parse_i64(to, hi)) &&
               (!from.n || *lo >= 0) && *lo <= *hi && *hi >= 0;
    }
    return p2o_parse_i64(text, lo) && *lo >= 0 && ((*hi = *lo), true);
}

bool p2o_declare_range(Program *p, Bindings *b, Str spec)
{
    Str     range, name = p2o_str_trim(p2o_str_cut(spec, '=', &range));
    int64_t lo, hi;
    if (!is_dim_name(name) || !parse_range(p2o_str_trim(range), &lo, &hi)) {
        p2o_diag_advise(p->diags, DIAG_MISUSE, 0, "write NAME=N or NAME=LO..HI",
                        "'%.*s' is no size or range", STR_ARG(spec));
        return false;
    }
    bool known = p2o_dim_has_sym(p->dims, name);
    Dim  sym = p2o_dim_sym(p->dims, p2o_str_dup(p->arena, name));
    p2o_set_role(b, sym, ROLE_USER);
    VEC_PUSH(p->arena, &p->declared, (ProgramRange){ p2o_str_dup(p->arena, spec), sym, lo, hi });
    if (lo == hi && known)
        p2o_bind(b, sym, p2o_dim_int(p->dims, lo));     /* else when it is known what it names */
    else if (lo != hi)
        p2o_dim_set_range(p->dims, sym, lo == NO_LOWER ? 0 : lo, hi);
    return true;
}
