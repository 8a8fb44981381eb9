/* A recursive-descent parser for the schema language of native_functions.yaml, and the binding of a
 * call's arguments to it.  Schema strings are ours, so a string that does not parse is a bug that
 * the test suite finds; calls come from files, so binding reports. */
#include "aten/schema.h"

#include "base/num.h"

typedef struct SchemaText {
    Arena      *arena;
    Dims       *dims;
    const char *p;
    const char *error;
} SchemaText;

static void skip_spaces(SchemaText *s)
{
    while (*s->p == ' ')
        s->p++;
}

static bool accept_text(SchemaText *s, const char *z)
{
    skip_spaces(s);
    if (strncmp(s->p, z, strlen(z)) != 0)
        return false;
    s->p += strlen(z);
    return true;
}

static void expect_text(SchemaText *s, const char *z)
{
    if (!accept_text(s, z) && !s->error)
        s->error = p2o_printf(s->arena, "expected '%s' at '%.20s'", z, s->p);
}

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static Str take_word(SchemaText *s)
{
    skip_spaces(s);
    const char *from = s->p;
    while (is_word(*s->p))
        s->p++;
    if (s->p == from && !s->error)
        s->error = p2o_printf(s->arena, "expected a name at '%.20s'", s->p);
    return (Str){ from, (size_t)(s->p - from) };
}

static const struct {
    const char *name;
    SchemaBase  base;
} base_names[] = {
    { "Tensor", SB_TENSOR },       { "int", SB_INT },          { "SymInt", SB_SYMINT },
    { "float", SB_FLOAT },         { "bool", SB_BOOL },        { "Scalar", SB_SCALAR },
    { "str", SB_STR },             { "ScalarType", SB_DTYPE }, { "Layout", SB_LAYOUT },
    { "MemoryFormat", SB_MEMORY_FORMAT }, { "Device", SB_DEVICE }, { "Generator", SB_GENERATOR },
    { "Body", SB_BODY },           { "any", SB_ANY },
};

static void parse_type(SchemaText *s, SchemaArg *a)
{
    Str  word = take_word(s);
    bool known = false;
    for (size_t i = 0; i < COUNT_OF(base_names); i++) {
        if (str_is(word, base_names[i].name)) {
            a->base = base_names[i].base;
            known = true;
        }
    }
    if (!known && !s->error)
        s->error = p2o_printf(s->arena, "unknown type '%.*s'", STR_ARG(word));
    if (*s->p == '(') {                                 /* (a), (a!), (a -> *) */
        a->alias = s->p[1];
        while (*s->p && *s->p != ')')
            a->writes |= *s->p++ == '!';
        expect_text(s, ")");
    }
    bool question = *s->p == '?' && s->p++;
    if (*s->p != '[') {
        a->optional = question;
        return;
    }
    s->p++;
    a->list = true;
    a->optional_items = question;
    while (*s->p >= '0' && *s->p <= '9')
        a->list_size = a->list_size * 10 + (*s->p++ - '0');
    expect_text(s, "]");
    if (*s->p == '(') {                     /* Tensor(a!)[] is above, Tensor[](a) here */
        while (*s->p && *s->p != ')')
            s->p++;
        expect_text(s, ")");
    }
    a->optional = *s->p == '?' && s->p++;
}

static Arg parse_number(SchemaText *s, SchemaBase base)
{
    const char *from = s->p;
    while (is_word(*s->p) || *s->p == '.' || *s->p == '-' || *s->p == '+')
        s->p++;
    Str     text = { from, (size_t)(s->p - from) };
    int64_t i;
    double  f;
    if (p2o_parse_i64(text, &i) && base == SB_DTYPE)
        return (Arg){ .kind = ARG_DTYPE, .dtype = p2o_dtype_from_c10((long)i) };
    if (p2o_parse_i64(text, &i))
        return base == SB_FLOAT ? arg_float((double)i) : arg_int(p2o_dim_int(s->dims, i));
    if (p2o_parse_f64(text, &f))
        return arg_float(f);
    if (!s->error)
        s->error = p2o_printf(s->arena, "bad default '%.*s'", STR_ARG(text));
    return arg_none();
}

static Arg parse_default(SchemaText *s, const SchemaArg *a)
{
    if (accept_text(s, "None"))
        return arg_none();
    if (accept_text(s, "True"))
        return arg_bool(true);
    if (accept_text(s, "False"))
        return arg_bool(false);
    if (accept_text(s, "contiguous_format"))
        return arg_str(ARG_MEMORY_FORMAT, "contiguous");
    if (accept_text(s, "long"))
        return (Arg){ .kind = ARG_DTYPE, .dtype = DT_I64 };
    if (accept_text(s, "Mean"))                         /* at::Reduction */
        return arg_int(p2o_dim_int(s->dims, 1));
    if (*s->p == '\'' || *s->p == '"') {
        char        quote = *s->p++;
        const char *from = s->p;
        while (*s->p && *s->p != quote)
            s->p++;
        Str text = { from, (size_t)(s->p - from) };
        expect_text(s, (char[]){ quote, 0 });
        return arg_str(ARG_STR, p2o_str_dup(s->arena, text));
    }
    if (!accept_text(s, "["))
        return parse_number(s, a->base);
    VEC(Arg) items = { 0 };
    while (!s->error && !accept_text(s, "]")) {
        skip_spaces(s);
        VEC_PUSH(s->arena, &items, parse_default(s, a));
        accept_text(s, ",");
    }
    return arg_list(items.at, items.n);
}

static void parse_arg(SchemaText *s, SchemaArg *a)
{
    parse_type(s, a);
    a->name = p2o_str_dup(s->arena, take_word(s));
    if (!accept_text(s, "="))
        return;
    skip_spaces(s);
    a->has_default = true;
    a->dflt = parse_default(s, a);
    if (a->list && a->dflt.kind != ARG_LIST && a->dflt.kind != ARG_NONE) {
        size_t n = a->list_size ? (size_t)a->list_size : 1;      /* int[2] x=1 is [1, 1] */
        Arg   *items = NEW_N(s->arena, Arg, n);
        for (size_t i = 0; i < n; i++)
            items[i] = a->dflt;
        a->dflt = arg_list(items, n);
    }
}

static Str key_part(const char *text)
{
    return (Str){ text, strcspn(text, "(") };
}

const char *p2o_schema_key(Arena *a, const char *text)
{
    Str  name = key_part(text);
    bool spaced = memchr(name.p, ':', name.n) != NULL;
    size_t lead = spaced ? 0 : strlen("aten::");
    char  *key = p2o_alloc(a, lead + name.n + 1);
    memcpy(key, "aten::", lead);
    memcpy(key + lead, name.p, name.n);
    return key;
}

Schema *p2o_schema_parse(Arena *a, Dims *t, const char *text, const char **error)
{
    SchemaText     s = { .arena = a, .dims = t, .p = text + key_part(text).n };
    VEC(SchemaArg) args = { 0 }, rets = { 0 };
    bool           kwarg_only = false;

    expect_text(&s, "(");
    while (!s.error && !accept_text(&s, ")")) {
        if (accept_text(&s, "*")) {
            kwarg_only = true;
        } else {
            SchemaArg arg = { .kwarg_only = kwarg_only };
            parse_arg(&s, &arg);
            VEC_PUSH(a, &args, arg);
        }
        accept_text(&s, ",");
    }
    expect_text(&s, "->");
    bool many = accept_text(&s, "(");
    while (!s.error && *s.p && *s.p != ')') {
        SchemaArg ret = { 0 };
        parse_type(&s, &ret);
        skip_spaces(&s);
        if (is_word(*s.p))
            ret.name = p2o_str_dup(a, take_word(&s));
        VEC_PUSH(a, &rets, ret);
        if (!accept_text(&s, ","))
            break;
    }
    if (many)
        expect_text(&s, ")");
    if (!s.error && *s.p)
        s.error = p2o_printf(a, "unexpected '%.20s'", s.p);
    *error = s.error;
    if (s.error)
        return NULL;
    Schema *out = NEW(a, Schema);
    *out = (Schema){ .key = p2o_schema_key(a, text), .args = args.at, .nargs = (int)args.n,
                     .rets = rets.at, .nrets = (int)rets.n };
    return out;
}

int p2o_schema_find(const Schema *s, const char *name)
{
    for (int i = 0; i < s->nargs; i++)
        if (same(s->args[i].name, name))
            return i;
    return -1;
}

static bool var_kind_fits(SchemaBase b, const Arg *x)
{
    TypeKind k = x->var->recorded.kind;
    if (k == TY_NONE)                   /* the file says nothing: inference decides */
        return true;
    switch (b) {
    case SB_TENSOR: case SB_SCALAR: case SB_ANY: return true; /* numbers are 0-d in a tensor slot */
    case SB_INT: case SB_SYMINT: return k == TY_INT || k == TY_BOOL;
    case SB_FLOAT: return k == TY_FLOAT || k == TY_INT;
    case SB_BOOL: return k == TY_BOOL;
    default: return false;
    }
}

/* One value against one element type; converts in place where PyTorch would. */
static bool item_fits(Program *p, SchemaBase b, Arg *x)
{
    int64_t i;
    if (b == SB_ANY)
        return true;
    if (x->kind == ARG_VAR)
        return var_kind_fits(b, x);
    switch (b) {
    case SB_TENSOR:
    case SB_SCALAR:
        return x->kind == ARG_INT || x->kind == ARG_FLOAT || x->kind == ARG_BOOL ||
               x->kind == ARG_COMPLEX;
    case SB_INT:
    case SB_SYMINT:
        if (x->kind == ARG_BOOL)
            *x = arg_int(p2o_dim_int(p->dims, x->b));
        return x->kind == ARG_INT;
    case SB_FLOAT:
        if (x->kind == ARG_INT && p2o_dim_is_int(x->i, &i))
            *x = arg_float((double)i);
        return x->kind == ARG_FLOAT || x->kind == ARG_INT;
    case SB_BOOL:
        if (x->kind == ARG_INT && p2o_dim_is_int(x->i, &i))
            *x = arg_bool(i != 0);
        return x->kind == ARG_BOOL;
    case SB_STR: return x->kind == ARG_STR;
    case SB_DTYPE: return x->kind == ARG_DTYPE;
    case SB_LAYOUT: return x->kind == ARG_LAYOUT;
    case SB_MEMORY_FORMAT: return x->kind == ARG_MEMORY_FORMAT;
    case SB_DEVICE: return x->kind == ARG_DEVICE || x->kind == ARG_STR;
    case SB_BODY: return x->kind == ARG_BODY;
    case SB_GENERATOR:
    case SB_ANY: break;
    }
    return false;
}

static bool value_fits(Program *p, const SchemaArg *a, Arg *x)
{
    if (x->kind == ARG_NONE)
        return a->optional || a->base == SB_ANY || (a->has_default && a->dflt.kind == ARG_NONE);
    if (!a->list)
        return x->kind != ARG_LIST ? item_fits(p, a->base, x) : a->base == SB_ANY;
    if (x->kind != ARG_LIST) {                          /* a number for a list: all its items */
        if (!item_fits(p, a->base, x))
            return false;
        size_t n = a->list_size ? (size_t)a->list_size : 1;
        Arg   *items = NEW_N(p->arena, Arg, n);
        for (size_t i = 0; i < n; i++)
            items[i] = *x;
        *x = arg_list(items, n);
        return true;
    }
    Arg *items = NEW_N(p->arena, Arg, x->n);    /* conversion must not reach the file's list */
    for (uint32_t i = 0; i < x->n; i++) {
        items[i] = x->items[i];
        if (items[i].kind == ARG_NONE ? !a->optional_items : !item_fits(p, a->base, &items[i]))
            return false;
    }
    x->items = items;
    return true;
}

bool p2o_schema_bind(Program *p, Call *c, const Schema *s)
{
    Arg  *args = NEW_N(p->arena, Arg, (size_t)s->nargs);
    bool *given = NEW_N(p->arena, bool, (size_t)s->nargs);

    for (int i = 0; i < c->nargs; i++) {
        bool named = c->arg_names && c->arg_names[i] && c->arg_names[i][0];
        int  k = named ? p2o_schema_find(s, c->arg_names[i]) : i;
        if (named && k < 0 && !p2o_str_starts(str_of(s->key), "aten::"))
            k = i;                                      /* Python functions: by position */
        if (k < 0 || k >= s->nargs || given[k]) {
            p2o_diag(p->diags, DIAG_BAD_PROGRAM, c->loc, "%s: unexpected argument %d%s%s",
                     c->target, i + 1, named ? ": " : "", named ? c->arg_names[i] : "");
            return false;
        }
        args[k] = c->args[i];
        given[k] = true;
    }
    for (int k = 0; k < s->nargs; k++) {
        const SchemaArg *a = &s->args[k];
        if (!given[k] && !a->has_default && !a->optional) {
            p2o_diag(p->diags, DIAG_BAD_PROGRAM, c->loc, "%s: no argument '%s'", c->target,
                     a->name);
            return false;
        }
        if (!given[k])
            args[k] = a->dflt;
        if (!value_fits(p, a, &args[k])) {
            p2o_diag(p->diags, DIAG_BAD_PROGRAM, c->loc, "%s: argument '%s' has the wrong kind",
                     c->target, a->name);
            return false;
        }
    }
    c->args = args;
    c->nargs = s->nargs;
    c->arg_names = NULL;
    return true;
}
