#include "aten/custom.h"

#include <math.h>

#include "aten/infer.h"
#include "aten/lower.h"
#include "base/num.h"
#include "onnx/onnx_ops.h"

/* A form of call: its row, and how many of its arguments the file has. */
typedef struct CustomRow {
    AtenOp          op;
    const CustomOp *custom;
    const CustomOps *all;
    int             nargs;
} CustomRow;

int p2o_custom_nargs(const Call *c) { return c->op->custom->nargs; }

static const OnnxFunction *function_of(const Call *c)
{
    return c->op->custom->custom->onnx.function;
}

const OnnxFunction *p2o_custom_function(const Call *c, const char *domain, const char *name)
{
    return p2o_functions_find(&c->op->custom->all->library, domain, name);
}

bool p2o_custom_is_foreign(const CustomOps *x)
{
    for (size_t i = 0; i < x->ops.n; i++) {
        const CustomOp *op = x->ops.at[i].value;
        if (!op->lower && !p2o_functions_find(&x->library, op->onnx.domain, op->onnx.name))
            return true;
    }
    return false;
}

CustomOps *p2o_custom_new(Arena *a)
{
    CustomOps *x = NEW(a, CustomOps);
    x->ops.arena = x->versions.arena = x->library.index.arena = a;
    return x;
}

static bool is_plain_word(Str s)
{
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        if (!(c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
              (i && c >= '0' && c <= '9')))
            return false;
    }
    return s.n > 0;
}

/* Identifiers with dots between them. */
static bool is_dotted(Str s)
{
    size_t from = 0;
    for (size_t i = 0; i <= s.n; i++)
        if (i == s.n || s.p[i] == '.') {
            if (!is_plain_word((Str){ s.p + from, i - from }))
                return false;
            from = i + 1;
        }
    return true;
}

/* mylib::foo, mylib::foo.bar or mylib::foo.default, as calls have it; NULL: no such name. */
static const char *target_name(Arena *a, Str s)
{
    size_t colons = 0;
    while (colons + 1 < s.n && (s.p[colons] != ':' || s.p[colons + 1] != ':'))
        colons++;
    if (colons + 2 >= s.n || !is_plain_word((Str){ s.p, colons }))
        return NULL;
    Str overload, rest = { s.p + colons + 2, s.n - colons - 2 };
    Str name = p2o_str_cut(rest, '.', &overload);
    if (!is_plain_word(name) || (overload.p != s.p + s.n && name.n < rest.n &&
                                 !is_plain_word(overload)))
        return NULL;
    size_t n = str_is(overload, "default") ? s.n - sizeof ".default" + 1 : s.n;
    return p2o_str_dup(a, (Str){ s.p, n });
}

/* NULL, or what is wrong. */
static const char *add_custom(CustomOps *x, const Ops *o, const CustomOp *op)
{
    Arena *a = x->ops.arena;
    void **slot = p2o_map_slot(&x->ops, str_of(op->target));
    if (*slot)
        return p2o_printf(a, "%s is mapped twice", op->target);
    if (p2o_ops_find(o, str_of(op->target)))
        return p2o_printf(a, "%s is converted as it is: only operators that are not supported can "
                          "be mapped", op->target);
    if (p2o_str_starts(str_of(op->target), "higher_order::"))
        return p2o_printf(a, "%s runs programs, and is no operator that can be mapped", op->target);
    CustomOp *own = NEW(a, CustomOp);
    *own = *op;
    *slot = own;
    return NULL;
}

const char *p2o_custom_map(CustomOps *x, const Ops *o, const char *spec)
{
    static const char want[] = "expected mylib::foo=com.example:Foo";
    Arena   *a = x->ops.arena;
    Str      onnx, name, version, target = p2o_str_cut(str_of(spec), '=', &onnx);
    Str      domain = p2o_str_cut(onnx, ':', &name);
    CustomOp op = { .target = target_name(a, target), .onnx = { .version = 1 } };
    Str      plain = p2o_str_cut(name, '@', &version);
    bool     versioned = plain.n < name.n;
    if (!op.target || !is_dotted(domain) || !is_plain_word(plain) ||
        (versioned && (!p2o_parse_i64(version, &op.onnx.version) || op.onnx.version < 1 ||
                       op.onnx.version > INT32_MAX)))
        return p2o_printf(a, "'%s': %s", spec, want);
    op.onnx.domain = p2o_str_dup(a, domain);
    op.onnx.name = p2o_str_dup(a, plain);
    if (same(op.onnx.domain, "ai.onnx"))
        return p2o_printf(a, "'%s': ai.onnx is not a domain of yours", spec);
    void **known = p2o_map_slot(&x->versions, str_of(op.onnx.domain));
    if (*known && (int64_t)(intptr_t)*known != op.onnx.version)
        return p2o_printf(a, "%s has version %lld already: a model imports one",
                          op.onnx.domain, (long long)(intptr_t)*known);
    *known = (void *)(intptr_t)op.onnx.version;
    return add_custom(x, o, &op);
}

const char *p2o_custom_call(CustomOps *x, const Ops *o, const char *name, CustomLowerFn *lower,
                            void *user)
{
    CustomOp op = { .target = target_name(x->ops.arena, str_of(name)), .lower = lower,
                    .user = user };
    return op.target ? add_custom(x, o, &op)
                     : p2o_printf(x->ops.arena, "'%s': expected mylib::foo", name);
}

/* What the user said of it, or the function of that name: mylib::foo is Foo of the domain mylib. */
static const CustomOp *find_custom(Ops *o, const char *target)
{
    CustomOps *x = p2o_ops_custom(o);
    if (!x)
        return NULL;
    CustomOp *op = p2o_map_get(&x->ops, str_of(target));
    Str       name, domain = p2o_str_cut(str_of(target), ':', &name);
    if (!op && name.n > 1 && is_plain_word(domain) &&
        is_plain_word((Str){ name.p + 1, name.n - 1 })) {
        const char         *own = p2o_str_dup(x->ops.arena, domain);
        const OnnxFunction *f = p2o_functions_find(&x->library, own, name.p + 1);
        if (!f)
            return NULL;
        op = NEW(x->ops.arena, CustomOp);
        *op = (CustomOp){ .target = target,
                          .onnx = { .domain = own, .name = f->name, .version = 1 } };
        map_put(&x->ops, str_of(target), op);
    }
    if (op && !op->lower && !op->onnx.function)
        op->onnx.function = p2o_functions_find(&x->library, op->onnx.domain, op->onnx.name);
    return op;
}

/* One call on its way to its row. */
typedef struct Binding {
    Program        *prog;
    const Call     *call;
    const CustomOp *op;
    Buf             schema, roles;
    int             tensors;            /* arguments that are */
    bool            listed;             /* one of them is a list */
    bool            failed;
} Binding;

static void cannot(Binding *b, const char *fmt, ...) PRINTF_LIKE(2, 3);

static void cannot(Binding *b, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    p2o_diag(b->prog->diags, DIAG_UNSUPPORTED, b->call->loc, "%s: %s", b->call->target,
             p2o_vprintf(b->prog->arena, fmt, ap));
    va_end(ap);
    b->failed = true;
}

/* What the schema calls an argument; NULL: it can be none of a custom operator. */
static const char *type_word(const Binding *b, const Arg *x)
{
    bool open = b->op->lower != NULL;           /* a callback may take sizes that vary */
    switch (x->kind) {
    case ARG_VAR:
        switch (x->var->recorded.kind) {
        case TY_INT: return open ? "SymInt" : "int";
        case TY_FLOAT: return open ? "Scalar" : "float";
        case TY_BOOL: return "bool";
        default: return "Tensor";
        }
    case ARG_INT: return open ? "SymInt" : "int";
    case ARG_FLOAT: return open ? "Scalar" : "float";
    case ARG_BOOL: return "bool";
    case ARG_STR: return "str";
    case ARG_DTYPE: return "ScalarType";
    case ARG_DEVICE: return "Device";
    case ARG_NONE: return "any";
    default: return NULL;
    }
}

/* Of a list: that of all its items, None aside. */
static const char *list_word(Binding *b, const Arg *x)
{
    const char *word = NULL;
    bool        optional = false;
    for (uint32_t i = 0; i < x->n; i++) {
        const char *one = x->items[i].kind == ARG_NONE ? NULL : type_word(b, &x->items[i]);
        optional |= x->items[i].kind == ARG_NONE;
        if (x->items[i].kind == ARG_NONE)
            continue;
        if (!one || (word && !same(word, one)))
            return NULL;
        word = one;
    }
    if (optional && (!word || !same(word, "Tensor")))
        return NULL;
    return !word ? "any" : p2o_printf(b->prog->arena, "%s%s[]", word, optional ? "?" : "");
}

static bool holds_tensors(const char *word) { return p2o_str_starts(str_of(word), "Tensor"); }

static const FunctionAttr *attr_of_function(const Binding *b, const char *name)
{
    return b->op->onnx.function ? p2o_function_attr(b->op->onnx.function, name) : NULL;
}

/* Inputs have their places: behind a list of any length none has one. */
static void place_input(Binding *b, const char *name, const Arg *x, bool is_list)
{
    if (b->listed && x->kind != ARG_NONE)
        cannot(b, "'%s' comes after a list of tensors: which inputs are the list's could not be "
               "told", name);
    b->listed |= is_list;
    b->tensors += is_list ? (int)x->n : 1;
}

static void add_argument(Binding *b, const char *name, const Arg *x)
{
    const char *word = x->kind == ARG_LIST ? list_word(b, x) : type_word(b, x);
    bool        number = word && (p2o_str_starts(str_of(word), "int") ||
                           p2o_str_starts(str_of(word), "float"));
    if (!word) {
        cannot(b, "argument '%s' is of a kind that custom operators do not take", name);
        return;
    }
    if (number)
        p2o_putf(&b->roles, "%s%s:%s", b->roles.n ? " " : "", name,
                 word[0] == 'i' ? "extent" : "factor");
    if (holds_tensors(word) || (x->kind == ARG_NONE && !attr_of_function(b, name)))
        place_input(b, name, x, x->kind == ARG_LIST);
    else if (b->op->onnx.function && x->kind != ARG_DEVICE && !attr_of_function(b, name))
        cannot(b, "function %s has no attribute '%s'", b->op->onnx.name, name);
    p2o_putf(&b->schema, "%s%s %s", b->schema.at[b->schema.n - 1] == '(' ? "" : ", ", word, name);
}

static bool has_argument(const Call *c, const char *name, int before)
{
    for (int i = 0; i < before; i++)
        if (c->arg_names && c->arg_names[i] && same(c->arg_names[i], name))
            return true;
    return false;
}

static void add_arguments(Binding *b)
{
    const Call *c = b->call;
    for (int i = 0; i < c->nargs && !b->failed; i++) {
        const char *name = c->arg_names && c->arg_names[i] ? c->arg_names[i] : "";
        if (!*name)
            name = p2o_printf(b->prog->arena, "arg%d", i);
        if (!is_plain_word(str_of(name)) || has_argument(c, name, i))
            cannot(b, "argument %d has no name of its own", i + 1);
        else
            add_argument(b, name, &c->args[i]);
    }
}

static void check_function_call(Binding *b)
{
    const OnnxFunction *f = b->op->onnx.function;
    if (!f || b->failed)
        return;
    if (b->tensors > f->nin)
        cannot(b, "function %s has %d input%s, the call %d", f->name, f->nin, &"s"[f->nin == 1],
               b->tensors);
    if (b->call->nouts != f->nout)
        cannot(b, "function %s has %d output%s, the call %d result%s", f->name, f->nout,
               &"s"[f->nout == 1], b->call->nouts, &"s"[b->call->nouts == 1]);
    for (int i = 0; i < f->nattr; i++)
        if (!f->attrs[i].has_default && !has_argument(b->call, f->attrs[i].name, b->call->nargs))
            cannot(b, "function %s needs '%s', which the call leaves at its default, and PyTorch "
                   "does not save that: give it one in the function", f->name, f->attrs[i].name);
}

/* The recorded sizes of result i, as an argument. */
static Arg result_sizes(Binding *b, int i)
{
    const Var *v = b->call->outs[i];
    if (!v || v->recorded.kind != TY_TENSOR) {
        cannot(b, v && v->recorded.kind == TY_NONE
                      ? "the program does not say what result %d is"
                      : "result %d is no tensor", i + 1);
        return arg_none();
    }
    Shape s = v->recorded.shape;
    Arg  *items = NEW_N(b->prog->arena, Arg, (size_t)s.rank + 1);
    for (int k = 0; k < s.rank; k++)
        items[k] = s.at[k] ? arg_int(s.at[k]) : arg_none();
    return arg_list(items, (size_t)s.rank);
}

/* The same arguments by place, and those that say the results' sizes. */
static Call *call_with_sizes(Binding *b)
{
    const Call *given = b->call;
    Arena      *a = b->prog->arena;
    size_t      n = (size_t)given->nargs + (size_t)given->nouts;
    Call       *c = NEW(a, Call);
    *c = *given;
    c->nargs = (int)n;
    c->args = NEW_N(a, Arg, n + 1);
    c->arg_names = NEW_N(a, const char *, n + 1);
    for (int i = 0; i < given->nargs; i++)
        c->args[i] = given->args[i];
    for (int i = 0; i < given->nouts; i++)
        c->args[given->nargs + i] = result_sizes(b, i);
    for (size_t i = 0; i < n; i++)
        c->arg_names[i] = "";
    return c;
}

static ShapeRule   rule_custom;
static LowerManyFn lower_custom;

static const AtenOp *row_for(Ops *o, const Binding *b)
{
    const AtenOp *known = p2o_ops_find_form(o, b->schema.at);
    if (known)
        return known;
    CustomRow *r = NEW(b->prog->arena, CustomRow);
    r->custom = b->op;
    r->all = p2o_ops_custom(o);
    r->nargs = b->call->nargs;
    r->op = (AtenOp){ .schema = b->schema.at, .shape = rule_custom, .lower_many = lower_custom,
                      .roles = b->roles.n ? b->roles.at : NULL, .custom = r };
    p2o_ops_add_form(o, &r->op, b->call->nargs);
    return &r->op;
}

Call *p2o_custom_bind(Ops *o, Program *p, const Call *given, const AtenOp **op, bool *refused)
{
    Binding b = { .prog = p, .call = given, .op = find_custom(o, given->target),
                  .schema = { .arena = p->arena }, .roles = { .arena = p->arena } };
    *refused = false;
    if (!b.op)
        return NULL;
    p2o_putf(&b.schema, "%s(", given->target);
    if (!given->nouts)
        cannot(&b, "it has no results: what it writes to is not known");
    add_arguments(&b);
    check_function_call(&b);
    Call *c = call_with_sizes(&b);
    for (int i = 0; i < given->nouts; i++)
        p2o_putf(&b.schema, "%sSymInt?[] %d_sizes", given->nargs + i ? ", " : "", i);
    p2o_puts(&b.schema, ") -> (");
    for (int i = 0; i < given->nouts; i++)
        p2o_puts(&b.schema, i ? ", Tensor" : "Tensor");
    p2o_puts(&b.schema, ")");
    *refused = b.failed;
    if (b.failed)
        return NULL;
    *op = row_for(o, &b);
    return c;
}

/* A list of numbers or texts as an attribute's; false: its items differ, or there are none. */
static bool list_attr(Arena *a, const Arg *x, Attr *out)
{
    int64_t     *ints = NEW_N(a, int64_t, (size_t)x->n + 1);
    float       *floats = NEW_N(a, float, (size_t)x->n + 1);
    const char **strs = NEW_N(a, const char *, (size_t)x->n + 1);
    for (uint32_t i = 0; i < x->n; i++) {
        const Arg *item = &x->items[i];
        double     f = 0;
        if (item->kind == ARG_STR)
            strs[i] = item->s;
        else if (!p2o_number_is_const(item, &f) && !p2o_dim_is_int(p2o_arg_dim(item), &ints[i]))
            return false;
        floats[i] = (float)f;
        if (item->kind == ARG_BOOL)
            ints[i] = item->b;
        else if (item->kind != ARG_STR && item->kind != ARG_FLOAT)
            p2o_dim_is_int(p2o_arg_dim(item), &ints[i]);
    }
    out->n = x->n;
    out->kind = !x->n || x->items[0].kind == ARG_STR ? ATTR_STRS
                : x->items[0].kind == ARG_FLOAT     ? ATTR_FLOATS : ATTR_INTS;
    if (out->kind == ATTR_STRS)
        out->strs = strs;
    else if (out->kind == ATTR_FLOATS)
        out->floats = floats;
    else
        out->ints = ints;
    return x->n > 0;
}

/* false: it has no value that a file could hold. */
static bool plain_attr(Arena *a, const Arg *x, Attr *out)
{
    switch (x->kind) {
    case ARG_FLOAT:
        out->kind = ATTR_FLOAT;
        out->f = (float)x->f;
        return isfinite(out->f) || !isfinite(x->f);
    case ARG_BOOL: out->kind = ATTR_INT; out->i = x->b; return true;
    case ARG_STR: out->kind = ATTR_STR; out->s = x->s; return true;
    case ARG_DTYPE: out->kind = ATTR_INT; out->i = p2o_dtype_onnx(x->dtype); return out->i != 0;
    case ARG_LIST: return list_attr(a, x, out);
    case ARG_INT:
    case ARG_VAR: out->kind = ATTR_INT; return p2o_dim_is_int(p2o_arg_dim(x), &out->i);
    default: return false;
    }
}

/* As the function has it: whole numbers serve as floats.  false: it is of another kind. */
static bool attr_as(Arena *a, Attr *x, AttrKind kind)
{
    if (x->kind == ATTR_INT && kind == ATTR_FLOAT) {
        x->f = (float)x->i;
    } else if (x->kind == ATTR_INTS && kind == ATTR_FLOATS) {
        float *f = NEW_N(a, float, x->n + 1);
        for (size_t i = 0; i < x->n; i++)
            f[i] = (float)x->ints[i];
        x->floats = f;
    } else if (x->kind != kind) {
        return false;
    }
    x->kind = kind;
    return true;
}

/* An empty list of the function's own kind. */
static bool is_empty_of(const Arg *x, const FunctionAttr *f, Attr *out)
{
    if (x->kind != ARG_LIST || x->n || !f || !f->has_kind ||
        (f->kind != ATTR_INTS && f->kind != ATTR_FLOATS && f->kind != ATTR_STRS))
        return false;
    static const int64_t none[1];
    out->kind = f->kind;
    out->ints = none;
    out->n = 0;
    return true;
}

/* The attributes that a call's scalars are; NULL, or what is wrong. */
static const char *attrs_of_call(Arena *a, const Call *c, Attr *out, int *n)
{
    const OnnxFunction *fn = function_of(c);
    *n = 0;
    for (int i = 0; i < p2o_custom_nargs(c); i++) {
        const SchemaArg    *s = &c->schema->args[i];
        const FunctionAttr *f = fn ? p2o_function_attr(fn, s->name) : NULL;
        const Arg          *x = &c->args[i];
        Attr                attr = { .name = s->name };
        if (s->base == SB_TENSOR || s->base == SB_DEVICE || x->kind == ARG_NONE)
            continue;
        if (!is_empty_of(x, f, &attr) && !plain_attr(a, x, &attr))
            return p2o_printf(a, x->kind == ARG_LIST && !x->n
                                     ? "argument '%s' is an empty list: of what is not saved"
                                     : "argument '%s' has no value that an attribute can have",
                              s->name);
        if (f && f->has_kind && !attr_as(a, &attr, f->kind))
            return p2o_printf(a, "argument '%s' is %s, and attribute '%s' of function %s is %s",
                              s->name, p2o_attr_kind_text(attr.kind), s->name, fn->name,
                              p2o_attr_kind_text(f->kind));
        out[(*n)++] = attr;
    }
    return NULL;
}

typedef VEC(const Arg *) Inputs;

/* Tensors in their order, lists item by item; None where there is none. */
static Inputs inputs_of_call(Arena *a, const Call *c)
{
    const OnnxFunction *fn = function_of(c);
    Inputs              in = { 0 };
    for (int i = 0; i < p2o_custom_nargs(c); i++) {
        const SchemaArg *s = &c->schema->args[i];
        const Arg       *x = &c->args[i];
        bool             tensor = s->base == SB_TENSOR ||
                      (x->kind == ARG_NONE && !(fn && p2o_function_attr(fn, s->name)));
        if (!tensor)
            continue;
        if (x->kind != ARG_LIST)
            VEC_PUSH(a, &in, x);
        for (uint32_t k = 0; x->kind == ARG_LIST && k < x->n; k++)
            VEC_PUSH(a, &in, &x->items[k]);
    }
    return in;
}

/* How a function's rules ask about sizes. */
typedef struct FunctionSizes {
    OnnxSizes   hooks;                  /* first */
    Infer      *in;
    const Call *call;
    int         nfresh;
} FunctionSizes;

static FunctionSizes *sizes_of(const OnnxSizes *s) { return (FunctionSizes *)(uintptr_t)s; }

static bool fn_equal(const OnnxSizes *s, Dim a, Dim b, const char *what)
{
    FunctionSizes *x = sizes_of(s);
    return must_equal(x->in, x->call, a, b, what);
}

static bool fn_broadcast(const OnnxSizes *s, Shape a, Shape b, Shape *out)
{
    FunctionSizes *x = sizes_of(s);
    *out = broadcast(x->in, x->call, a, b);
    return !x->in->failed;
}

static bool fn_reshape(const OnnxSizes *s, Shape from, Shape to, Shape *out)
{
    FunctionSizes *x = sizes_of(s);
    return reshaped(x->in, x->call, from, to, out) && !x->in->failed;
}

/* Bounds that no tensor has mean its end. */
static Dim fn_bound(const FunctionSizes *x, Dim d, Dim size)
{
    int64_t v;
    if (!p2o_dim_is_int(d, &v))
        return d;
    return v >= INT32_MAX ? size : v <= -INT32_MAX ? p2o_dim_int(x->in->dims, 0) : d;
}

static bool fn_slice(const OnnxSizes *s, Dim start, Dim end, Dim size, Dim *from, Dim *to)
{
    FunctionSizes *x = sizes_of(s);
    slice_bounds(x->in, fn_bound(x, start, size), fn_bound(x, end, size), size, from, to);
    return !x->in->failed;
}

static bool fn_alike(const OnnxSizes *s, Dim a, Dim b)
{
    const FunctionSizes *x = sizes_of(s);
    return p2o_dim_eq(x->in->dims, p2o_resolve(x->in->bind, a), p2o_resolve(x->in->bind, b)) == YES;
}

/* Sizes inside the function that only the data decides: axes that the result does not have. */
static Dim fn_fresh(const OnnxSizes *s)
{
    FunctionSizes *x = sizes_of(s);
    return data_dim(x->in, x->call, 0, MAX_RANK + x->nfresh++);
}

static Value *input_of_type(Infer *in, Graph *g, const Arg *x)
{
    Type t = p2o_arg_type(x);
    return t.kind == TY_TENSOR ? p2o_graph_input(g, NULL, t.dtype, resolved_shape(in, t.shape))
                               : NULL;
}

/* What the function's own rules say of the results, NULL where they do not. */
static Value **function_results(Infer *in, const Call *c)
{
    const OnnxFunction *f = function_of(c);
    Value             **out = NEW_N(in->arena, Value *, (size_t)c->nouts + 1);
    Attr               *attrs = NEW_N(in->arena, Attr, (size_t)c->nargs + 1);
    FunctionSizes       x = { .hooks = { fn_equal, fn_broadcast, fn_reshape, fn_slice, fn_alike,
                                         fn_fresh },
                              .in = in, .call = c };
    int nattr;
    if (!f || attrs_of_call(in->arena, c, attrs, &nattr))
        return out;                             /* what is wrong the lowering says */
    Graph  *g = p2o_graph_new(in->arena, in->diags, in->dims, f->opset, NULL);
    Inputs  args = inputs_of_call(in->arena, c);
    Value **given = NEW_N(in->arena, Value *, args.n + 1);
    g->sizes = &x.hooks;
    for (size_t i = 0; i < args.n; i++)
        given[i] = input_of_type(in, g, args.at[i]);
    if (!p2o_function_type(g, f, (int)args.n, given, nattr, attrs, out))
        memset(out, 0, (size_t)c->nouts * sizeof *out);
    return out;
}

static const Arg *sizes_of_result(const Call *c, int i)
{
    return &c->args[p2o_custom_nargs(c) + i];
}

/* A number that all captures have says less than a rule does. */
static Dim result_size(Infer *in, const Call *c, int i, int axis, const Value *by_rule)
{
    const Arg *x = &sizes_of_result(c, i)->items[axis];
    Dim        rule = by_rule ? by_rule->shape.at[axis] : NULL;
    if (x->kind != ARG_INT || !x->i)
        return rule ? rule : data_dim(in, c, i, axis);
    if (!rule)
        return x->i;
    if (p2o_dim_is_int(x->i, NULL) && !p2o_dim_is_int(rule, NULL))
        return rule;
    must_equal(in, c, x->i, rule, "a size of its result");
    return rule;
}

static bool same_kind_of_tensor(Infer *in, const Call *c, int i, const Value *v)
{
    Type t = c->outs[i]->recorded;
    if (!v || v->is_sequence || (v->dtype == t.dtype && v->shape.rank == t.shape.rank))
        return true;
    rule_fail(in, "function %s gives %s of rank %d, the file recorded %s of rank %d",
              function_of(c)->name, p2o_dtype_text(v->dtype), v->shape.rank,
              p2o_dtype_text(t.dtype), t.shape.rank);
    return false;
}

/* Files may leave open what a value is until it is computed. */
static bool tensors_are_tensors(Infer *in, const Call *c)
{
    Inputs args = inputs_of_call(in->arena, c);
    for (size_t i = 0; i < args.n; i++)
        if (args.at[i]->kind == ARG_VAR && p2o_arg_type(args.at[i]).kind != TY_TENSOR) {
            rule_unsupported(in, "input %zu is a number that the file says nothing of", i + 1);
            return false;
        }
    return true;
}

static void rule_custom(Infer *in, const Call *c)
{
    if (!tensors_are_tensors(in, c))
        return;
    Value **by_rule = function_results(in, c);
    for (int i = 0; i < c->nouts && !in->failed; i++) {
        const Value *v = by_rule[i] && !by_rule[i]->is_sequence ? by_rule[i] : NULL;
        Type         t = c->outs[i]->recorded;
        Dim         *at = NEW_N(in->arena, Dim, (size_t)t.shape.rank + 1);
        if (!same_kind_of_tensor(in, c, i, v))
            return;
        for (int k = 0; k < t.shape.rank && !in->failed; k++)
            at[k] = result_size(in, c, i, k, v);
        if (!in->failed)
            set_out(in, c, i, t.dtype, (Shape){ t.shape.rank, at });
    }
}

bool p2o_custom_fits(Lower *lo, const Call *c, const OnnxFunction *f)
{
    const char         *op = NULL;
    const OnnxFunction *bad = p2o_function_misfit(lo->arena, f, lo->opset, &op);
    if (!bad)
        return true;
    const char *first = bad->opset >= OPSET_MIN && bad->opset <= OPSET_MAX
                            ? p2o_printf(lo->arena, "--opset %d, or ", bad->opset) : "";
    p2o_diag_advise(lo->diags, DIAG_UNSUPPORTED, c->loc,
                    p2o_printf(lo->arena, "%swrite the function for opset %d", first, lo->opset),
                    "%s: function %s is of opset %d and the model of %d, where %s may be another",
                    c->target, bad->name, bad->opset, lo->opset, op);
    lo->failed = true;
    return false;
}

static void note_kernels(Lower *lo, const Call *c, const CustomOp *op)
{
    if (op->onnx.function)
        return;
    p2o_diag(lo->diags, DIAG_NOTE, 0,
             "%s is %s:%s in the model, for which ONNX Runtime needs your kernels; it is taken to "
             "write to none of its arguments", c->target, op->onnx.domain, op->onnx.name);
}

static void lower_custom(Lower *lo, const Call *c, Value **out)
{
    const CustomOp *op = c->op->custom->custom;
    if (op->lower) {
        if (!op->lower(op->user, lo, c, out))
            lo->failed = true;
        return;
    }
    Attr       *attrs = NEW_N(lo->arena, Attr, (size_t)c->nargs + 1);
    int         nattr;
    const char *why = attrs_of_call(lo->arena, c, attrs, &nattr);
    if (why) {
        unsupported(lo, c, "%s", why);
        return;
    }
    if (op->onnx.function && !p2o_custom_fits(lo, c, op->onnx.function))
        return;
    Inputs  args = inputs_of_call(lo->arena, c);
    Value **in = NEW_N(lo->arena, Value *, args.n + 1);
    for (size_t i = 0; i < args.n; i++)
        in[i] = p2o_arg_value(lo, args.at[i], p2o_arg_type(args.at[i]).dtype);
    Node *n = p2o_build_own(lo->b, &op->onnx, nattr, attrs, (int)args.n, in, c->nouts);
    for (int i = 0; i < c->nouts; i++) {
        out[i] = n->out[i];
        out[i]->dtype = out_dtype(c, i);
        out[i]->shape = out_shape(c, i);
    }
    note_kernels(lo, c, op);
}
