#include "ir/program_text.h"

#include "base/num.h"

typedef struct TextReader {
    Program *prog;
    Arena   *arena;
    Str      line;              /* what is left of the current line */
    Str      source, recorded;  /* of the current line */
    uint32_t lineno;
    bool     failed;
    VEC(Body *) open;           /* being read, the innermost last */
    VEC(Body *) awaited;        /* named by a call, to come */
} TextReader;

static Body *text_body(const TextReader *r) { return r->open.at[r->open.n - 1]; }

static Arg text_value(TextReader *r, Str s);

static void bad_text(TextReader *r, const char *what, Str s)
{
    if (!r->failed)
        p2o_diag(r->prog->diags, DIAG_BAD_FILE, 0, "line %u: %s: '%.*s'", r->lineno, what,
                 STR_ARG(s));
    r->failed = true;
}

/* The part up to a top-level `c`: not inside brackets or quotes. */
static Str cut_outside(Str s, char c, Str *rest)
{
    int  depth = 0;
    char quote = 0;
    for (size_t i = 0; i < s.n; i++) {
        char k = s.p[i];
        if (quote) {
            quote = k == quote ? 0 : quote;
        } else if (k == '\'' || k == '"') {
            quote = k;
        } else if (k == c && depth == 0) {
            *rest = (Str){ s.p + i + 1, s.n - i - 1 };
            return (Str){ s.p, i };
        } else if (k == '(' || k == '[') {
            depth++;
        } else if (k == ')' || k == ']') {
            depth--;
        }
    }
    *rest = (Str){ "", 0 };
    return s;
}

static bool is_identifier(Str s)
{
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
              (i && c >= '0' && c <= '9')))
            return false;
    }
    return s.n > 0;
}

static Dim text_dim(TextReader *r, Str s)
{
    const char *error = NULL;
    Dim         d = p2o_dim_parse(r->prog->dims, s, &error);
    if (!d)
        bad_text(r, error ? error : "no size", s);
    return d;
}

static Arg text_list(TextReader *r, Str inner)
{
    VEC(Arg) items = { 0 };
    inner = p2o_str_trim(inner);
    while (inner.n && !r->failed) {
        Str item = p2o_str_trim(cut_outside(inner, ',', &inner));
        VEC_PUSH(r->arena, &items, text_value(r, item));
        inner = p2o_str_trim(inner);
    }
    return arg_list(items.at, items.n);
}

static bool text_float(Str s, double *f)
{
    if (str_is(s, "inf") || str_is(s, "-inf") || str_is(s, "nan")) {
        *f = s.p[0] == 'n' ? __builtin_nan("") : s.p[0] == '-' ? -__builtin_inf() : __builtin_inf();
        return true;
    }
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] == '.' || s.p[i] == 'e')
            return p2o_parse_f64(s, f);
    return false;
}

static Arg text_value(TextReader *r, Str s)
{
    double f;
    Var   *v = p2o_var_find(text_body(r), s);
    if (v)
        return arg_var(v);
    if (s.n > 2 && s.p[0] == '{' && s.p[s.n - 1] == '}') {
        Body *b = p2o_body_new(r->prog, p2o_str_dup(r->arena, (Str){ s.p + 1, s.n - 2 }));
        VEC_PUSH(r->arena, &r->awaited, b);
        return (Arg){ .kind = ARG_BODY, .body = b };
    }
    if (str_is(s, "None"))
        return arg_none();
    if (str_is(s, "True") || str_is(s, "False"))
        return arg_bool(s.p[0] == 'T');
    if (s.n >= 2 && s.p[0] == '[' && s.p[s.n - 1] == ']')
        return text_list(r, (Str){ s.p + 1, s.n - 2 });
    if (s.n >= 2 && (s.p[0] == '\'' || s.p[0] == '"') && s.p[s.n - 1] == s.p[0])
        return arg_str(ARG_STR, p2o_str_dup(r->arena, (Str){ s.p + 1, s.n - 2 }));
    if (p2o_dtype_from_text(s) != DT_NONE)
        return (Arg){ .kind = ARG_DTYPE, .dtype = p2o_dtype_from_text(s) };
    if (text_float(s, &f))
        return arg_float(f);
    return arg_int(text_dim(r, s));
}

static Var *text_define(TextReader *r, Str name)
{
    Var *v = is_identifier(name) ? p2o_var_new(r->prog, text_body(r), p2o_str_dup(r->arena, name))
                                 : NULL;
    if (!v)
        bad_text(r, "no new name", name);
    else
        v->dense = YES;
    return v;
}

/* f32[b, 4, 8] */
static bool text_type(TextReader *r, Str s, Type *t)
{
    Str dims, dtype = p2o_str_cut(s, '[', &dims);
    *t = (Type){ .kind = TY_TENSOR, .dtype = p2o_dtype_from_text(p2o_str_trim(dtype)) };
    if (t->dtype == DT_NONE || !p2o_str_ends(dims, "]")) {
        bad_text(r, "no type", s);
        return false;
    }
    dims.n--;
    VEC(Dim) at = { 0 };
    for (dims = p2o_str_trim(dims); dims.n && !r->failed; dims = p2o_str_trim(dims)) {
        Dim d = text_dim(r, p2o_str_trim(cut_outside(dims, ',', &dims)));
        VEC_PUSH(r->arena, &at, d);
    }
    t->shape = (Shape){ (int)at.n, at.at };
    return !r->failed;
}

static void flatten_numbers(const Arg *x, double *out, size_t cap, size_t *n)
{
    int64_t i;
    if (x->kind == ARG_LIST)
        for (uint32_t k = 0; k < x->n; k++)
            flatten_numbers(&x->items[k], out, cap, n);
    else if (*n < cap)
        out[(*n)++] = x->kind == ARG_FLOAT ? x->f : x->kind == ARG_BOOL ? x->b
                      : x->kind == ARG_INT && p2o_dim_is_int(x->i, &i) ? (double)i : 0;
}

/* The data of a weight (zeros) or a constant (the numbers given). */
static const Tensor *text_tensor(TextReader *r, const Type *t, const Arg *value)
{
    int64_t *sizes = NEW_N(r->arena, int64_t, (size_t)t->shape.rank + 1);
    size_t   total = 1, n = 0, item = p2o_dtype_bytes(t->dtype);
    for (int i = 0; i < t->shape.rank; i++) {
        if (!p2o_dim_is_int(t->shape.at[i], &sizes[i]) || sizes[i] < 0 || sizes[i] > 1 << 20 ||
            total > 1 << 20) {
            bad_text(r, "a weight of this size", (Str){ "", 0 });
            return NULL;
        }
        total *= (size_t)sizes[i];
    }
    double  *f = NEW_N(r->arena, double, total + 1);
    uint8_t *bytes = p2o_alloc(r->arena, total * item);
    if (value)
        flatten_numbers(value, f, total, &n);
    for (size_t i = 0; value && i < total; i++) {
        const Tensor *one = p2o_tensor_scalar(r->arena, t->dtype, f[i], 0, true);
        if (!one || !p2o_tensor_load(one, bytes + i * item, item))
            bad_text(r, "a constant of this type", (Str){ "", 0 });
    }
    return p2o_tensor_make(r->arena, t->dtype, t->shape.rank, sizes, bytes);
}

static void text_input(TextReader *r, Str name, Str rest)
{
    Str  value, type = p2o_str_trim(cut_outside(rest, '=', &value));
    bool weight = p2o_str_ends(type, " weight");
    Type t;
    if (weight)
        type = p2o_str_trim((Str){ type.p, type.n - strlen(" weight") });
    Var *v = text_define(r, name);
    if (!v)
        return;
    if (str_is(type, "int")) {
        t = (Type){ .kind = TY_INT, .dtype = DT_I64, .value = p2o_dim_sym(r->prog->dims, v->name) };
    } else if (!text_type(r, type, &t)) {
        return;
    }
    v->recorded = t;
    if (weight || value.n) {
        Arg given = value.n ? text_value(r, p2o_str_trim(value)) : arg_none();
        v->tensor = text_tensor(r, &t, value.n ? &given : NULL);
        v->fqn = v->name;
        VEC_PUSH(r->arena, &r->prog->weights, v);
    } else {
        VEC_PUSH(r->arena, &r->prog->main->inputs, v);
        VEC_PUSH(r->arena, &r->prog->inputs, (InputSpec){ .name = v->name, .var = v });
    }
}

static const char *full_target(Arena *a, Str name)
{
    for (size_t i = 0; i + 1 < name.n; i++)
        if (name.p[i] == ':' && name.p[i + 1] == ':')
            return p2o_str_dup(a, name);
    return p2o_printf(a, "aten::%.*s", STR_ARG(name));
}

static void text_call(TextReader *r, Str outs, Str call)
{
    Str args, name = p2o_str_trim(p2o_str_cut(call, '(', &args));
    if (!p2o_str_ends(args, ")")) {
        bad_text(r, "no call", call);
        return;
    }
    args.n--;
    VEC(Arg)          values = { 0 };
    VEC(const char *) names = { 0 };
    VEC(Str)          results = { 0 };
    for (args = p2o_str_trim(args); args.n && !r->failed; args = p2o_str_trim(args)) {
        Str value, item = p2o_str_trim(cut_outside(args, ',', &args));
        Str key = p2o_str_trim(cut_outside(item, '=', &value));
        bool named = value.n && is_identifier(key);
        VEC_PUSH(r->arena, &names, named ? p2o_str_dup(r->arena, key) : "");
        VEC_PUSH(r->arena, &values, text_value(r, named ? p2o_str_trim(value) : item));
    }
    for (outs = p2o_str_trim(outs); outs.n; outs = p2o_str_trim(outs)) {
        Str one = p2o_str_trim(p2o_str_cut(outs, ',', &outs));
        VEC_PUSH(r->arena, &results, one);
    }
    Call *c = p2o_call_add(r->prog, text_body(r), full_target(r->arena, name), (int)values.n,
                           (int)results.n);
    c->arg_names = names.at;
    if (values.n)
        memcpy(c->args, values.at, values.n * sizeof *values.at);
    c->loc = p2o_place_add(r->prog->diags, (PlaceInfo){ .file = STR("test"),
                                                        .func = STR("forward"),
                                                        .text = r->source,
                                                        .line = r->lineno });
    for (size_t i = 0; i < results.n && !r->failed; i++) {
        c->outs[i] = str_is(results.at[i], "_") ? NULL : text_define(r, results.at[i]);
        if (!c->outs[i])
            continue;
        c->outs[i]->def = c;
        Str type = p2o_str_trim(cut_outside(r->recorded, ',', &r->recorded));
        if (type.n)
            text_type(r, type, &c->outs[i]->recorded);
    }
}

static void text_return(TextReader *r, Str rest)
{
    Body *b = text_body(r);
    for (rest = p2o_str_trim(rest); rest.n && !r->failed; rest = p2o_str_trim(rest)) {
        Str name = p2o_str_trim(cut_outside(rest, ',', &rest));
        Arg value = text_value(r, name);
        VEC_PUSH(r->arena, &b->outputs, value);
        if (b == r->prog->main)
            VEC_PUSH(r->arena, &r->prog->outputs,
                     (OutputSpec){
                         .kind = OUT_USER, .name = p2o_str_dup(r->arena, name), .value = value });
    }
    if (b != r->prog->main)
        r->open.n--;
}

/* `name(inputs):` opens the body last named so; its return closes it. */
static void text_open(TextReader *r, Str line)
{
    Str    inputs, name = p2o_str_cut(line, '(', &inputs);
    size_t i = r->awaited.n;
    while (i > 0 && !str_is(name, r->awaited.at[i - 1]->name))
        i--;
    if (i == 0 || !p2o_str_ends(inputs, "):")) {
        bad_text(r, "no call has this body", name);
        return;
    }
    Body *b = r->awaited.at[i - 1];
    memmove(&r->awaited.at[i - 1], &r->awaited.at[i], (r->awaited.n - i) * sizeof b);
    r->awaited.n--;
    VEC_PUSH(r->arena, &r->open, b);
    inputs.n -= strlen("):");
    for (inputs = p2o_str_trim(inputs); inputs.n && !r->failed; inputs = p2o_str_trim(inputs)) {
        Var *v = text_define(r, p2o_str_trim(p2o_str_cut(inputs, ',', &inputs)));
        VEC_PUSH(r->arena, &b->inputs, v);
    }
}

static void text_line(TextReader *r, Str line)
{
    Str     rest, head = p2o_str_trim(cut_outside(line, '=', &rest));
    int64_t hint;
    if (p2o_str_starts(line, "return")) {
        text_return(r, (Str){ line.p + 6, line.n - 6 });
        return;
    }
    if (p2o_str_ends(line, "):")) {
        text_open(r, line);
        return;
    }
    Str type, name = p2o_str_trim(p2o_str_cut(line, ':', &type));
    if (is_identifier(name) && type.n && type.p[0] != ':' && r->open.n == 1) {
        text_input(r, name, p2o_str_trim(type));
        return;
    }
    rest = p2o_str_trim(rest);
    if (is_identifier(head) && p2o_parse_i64(rest, &hint))
        p2o_dim_set_hint(r->prog->dims, p2o_dim_sym(r->prog->dims, p2o_str_dup(r->arena, head)),
                         hint);
    else if (rest.n)
        text_call(r, head, rest);
    else
        text_call(r, (Str){ "", 0 }, line);
}

/* What stands behind the mark in a comment, up to `end`; "" for none. */
static Str said_in(Str comment, const char *mark, const char *end)
{
    comment = p2o_str_trim(comment);
    for (; comment.n && !p2o_str_starts(comment, mark); comment.p++)
        comment.n--;
    if (!comment.n)
        return (Str){ "", 0 };
    comment = (Str){ comment.p + strlen(mark), comment.n - strlen(mark) };
    for (size_t i = 0; *end && i < comment.n; i++)
        if (p2o_str_starts((Str){ comment.p + i, comment.n - i }, end))
            comment.n = i;
    return comment;
}

Program *p2o_program_parse(Diags *d, Dims *t, Str text)
{
    TextReader r = { .prog = p2o_program_new(d, t), .arena = p2o_diags_arena(d) };
    r.prog->producer = "text";
    VEC_PUSH(r.arena, &r.open, r.prog->main);
    while (text.n && !r.failed) {
        Str comment, line = p2o_str_cut(text, '\n', &text);
        r.lineno++;
        line = p2o_str_trim(cut_outside(line, '#', &comment));
        r.source = said_in(comment, "source: ", "");
        r.recorded = said_in(comment, "recorded: ", "source: ");
        if (line.n)
            text_line(&r, line);
    }
    if (r.awaited.n)
        bad_text(&r, "a body is missing", str_of(r.awaited.at[0]->name));
    else if (r.open.n > 1)
        bad_text(&r, "a body has no return", str_of(text_body(&r)->name));
    return r.failed ? NULL : r.prog;
}

static void put_type(Buf *b, const Program *p, const Type *t)
{
    if (t->kind == TY_TENSOR)
        p2o_putf(b, "%s[%s]", p2o_dtype_text(t->dtype), p2o_shape_text(p->dims, t->shape));
    else if (t->kind == TY_INT)
        p2o_putf(b, "int %s", p2o_dim_text(p->dims, t->value));
    else
        p2o_puts(b, t->kind == TY_FLOAT ? "float" : t->kind == TY_BOOL ? "bool" : "?");
}

static void put_arg(Buf *b, const Program *p, const Arg *x)
{
    char number[32];
    switch (x->kind) {
    case ARG_NONE: p2o_puts(b, "None"); break;
    case ARG_VAR: p2o_puts(b, x->var->name); break;
    case ARG_INT: p2o_puts(b, p2o_dim_text(p->dims, x->i)); break;
    case ARG_BOOL: p2o_puts(b, x->b ? "True" : "False"); break;
    case ARG_DTYPE: p2o_puts(b, p2o_dtype_text(x->dtype)); break;
    case ARG_COMPLEX: p2o_puts(b, "complex"); break;
    case ARG_BODY: p2o_putf(b, "{%s}", x->body->name); break;
    case ARG_FLOAT:
        p2o_format_f64(number, x->f);
        p2o_putf(b, "%s%s", number, strpbrk(number, ".en") ? "" : ".0");
        break;
    case ARG_LIST:
        p2o_puts(b, "[");
        for (uint32_t i = 0; i < x->n; i++) {
            p2o_puts(b, i ? ", " : "");
            put_arg(b, p, &x->items[i]);
        }
        p2o_puts(b, "]");
        break;
    default: p2o_putf(b, "'%s'", x->s ? x->s : ""); break;
    }
}

static void put_call(Buf *b, const Program *p, const Call *c, bool with_types, const char *indent)
{
    p2o_puts(b, indent);
    for (int i = 0; i < c->nouts; i++)
        p2o_putf(b, "%s%s", i ? ", " : "", c->outs[i] ? c->outs[i]->name : "_");
    p2o_putf(b, "%s%s(", c->nouts ? " = " : "",
             p2o_str_starts(str_of(c->target), "aten::") ? c->target + 6 : c->target);
    for (int i = 0; i < c->nargs; i++) {
        bool named = c->arg_names && c->arg_names[i] && c->arg_names[i][0];
        p2o_putf(b, "%s%s%s", i ? ", " : "", named ? c->arg_names[i] : "", named ? "=" : "");
        put_arg(b, p, &c->args[i]);
    }
    p2o_puts(b, ")");
    for (int i = 0; with_types && i < c->nouts; i++) {
        if (!c->outs[i])
            continue;
        p2o_puts(b, i ? ", " : "   # ");
        put_type(b, p, c->outs[i]->type.kind ? &c->outs[i]->type : &c->outs[i]->recorded);
    }
    p2o_puts(b, "\n");
    for (int i = 0; i < c->nargs; i++) {
        if (c->args[i].kind != ARG_BODY)
            continue;
        const Body *body = c->args[i].body;
        const char *deeper = p2o_printf(b->arena, "%s    ", indent);
        p2o_putf(b, "%s%s(", deeper, body->name);
        for (size_t k = 0; k < body->inputs.n; k++)
            p2o_putf(b, "%s%s", k ? ", " : "", body->inputs.at[k]->name);
        p2o_puts(b, "):\n");
        for (size_t k = 0; k < body->calls.n; k++)
            put_call(b, p, body->calls.at[k], with_types, p2o_printf(b->arena, "%s    ", deeper));
        p2o_putf(b, "%s    return ", deeper);
        for (size_t k = 0; k < body->outputs.n; k++) {
            p2o_puts(b, k ? ", " : "");
            put_arg(b, p, &body->outputs.at[k]);
        }
        p2o_puts(b, "\n");
    }
}

const char *p2o_program_text(const Program *p, bool with_types)
{
    Buf b = { .arena = p->arena };
    for (size_t i = 0; i < p->weights.n; i++) {
        const Var *v = p->weights.at[i];
        p2o_putf(&b, "%s: ", v->name);
        put_type(&b, p, v->type.kind ? &v->type : &v->recorded);
        p2o_putf(&b, " weight   # %s\n", v->fqn ? v->fqn : "");
    }
    for (size_t i = 0; i < p->main->inputs.n; i++) {
        const Var *v = p->main->inputs.at[i];
        p2o_putf(&b, "%s: ", v->name);
        put_type(&b, p, v->type.kind ? &v->type : &v->recorded);
        p2o_puts(&b, "\n");
    }
    for (size_t i = 0; i < p->main->calls.n; i++)
        put_call(&b, p, p->main->calls.at[i], with_types, "");
    p2o_puts(&b, "return ");
    for (size_t i = 0; i < p->outputs.n; i++) {
        p2o_puts(&b, i ? ", " : "");
        put_arg(&b, p, &p->outputs.at[i].value);
    }
    p2o_puts(&b, "\n");
    return b.at;
}
