/* A parser for the functions of ONNX's textual syntax (docs/Syntax.md of onnx), as onnx.parser
 * reads and onnx.printer writes them:
 *
 *     <domain: "com.example", opset_import: ["" : 18]>
 *     Foo <alpha: float = 1.0, beta> (X, Y) => (Z)
 *     {
 *        C = Constant <value_float: float = @alpha> ()
 *        Z = Mul (X, C)
 *     }
 *
 * any number of them, with `#` comments.  Not taken: graphs and types as attributes, types of
 * anything but tensors.  The first thing wrong is reported with its line and column and ends the
 * reading.  Nothing nests, so nothing recurses. */
#include "onnx/function.h"

#include <math.h>

#include "base/num.h"
#include "base/trace.h"
#include "onnx/onnx_ops.h"

/* What is looked through for each that comes. */
enum { MOST_NAMED = 256, MOST_PORTS = 1024 };

typedef struct FunctionText {
    Arena           *arena;
    Diags           *diags;
    Str              text;
    size_t           at;
    bool             failed;
    FunctionLibrary *library;
    Map              called;            /* "domain\nname" that no function before had */
    OnnxFunction    *fn;                /* being read */
    Map              values;            /* names it has defined */
} FunctionText;

static void text_fail_at(FunctionText *t, size_t at, const char *fmt, ...) PRINTF_LIKE(3, 4);

static void text_fail_at(FunctionText *t, size_t at, const char *fmt, ...)
{
    unsigned line = 1, column = 1;
    va_list  ap;
    if (t->failed)
        return;
    t->failed = true;
    for (size_t i = 0; i < at && i < t->text.n; i++) {
        column = t->text.p[i] == '\n' ? 1 : column + 1;
        line += t->text.p[i] == '\n';
    }
    va_start(ap, fmt);
    p2o_diag(t->diags, DIAG_BAD_FILE, 0, "function text, line %u, column %u: %s", line, column,
             p2o_vprintf(t->arena, fmt, ap));
    va_end(ap);
}

static void skip_blank(FunctionText *t)
{
    while (t->at < t->text.n) {
        char c = t->text.p[t->at];
        if (c == '#')
            while (t->at < t->text.n && t->text.p[t->at] != '\n')
                t->at++;
        else if (c == ' ' || c == '\t' || c == '\n' || c == '\r')
            t->at++;
        else
            break;
    }
}

/* The next character that is not blank; 0 at the end. */
static char peek_char(FunctionText *t)
{
    skip_blank(t);
    return t->at < t->text.n && !t->failed ? t->text.p[t->at] : 0;
}

static bool accept_char(FunctionText *t, char c)
{
    if (peek_char(t) != c)
        return false;
    t->at++;
    return true;
}

/* What stands here, for messages. */
static const char *found_text(FunctionText *t)
{
    char c = peek_char(t);
    if (!c && t->at >= t->text.n)
        return "the end";
    return c >= ' ' && c < 0x7F ? p2o_printf(t->arena, "'%c'", c) : "a byte that is no text";
}

static void expect_char(FunctionText *t, char c)
{
    if (!accept_char(t, c))
        text_fail_at(t, t->at, "expected '%c', found %s", c, found_text(t));
}

static bool is_id_start(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* Empty when there is none. */
static Str scan_id(FunctionText *t)
{
    if (!is_id_start(peek_char(t)))
        return (Str){ "", 0 };
    size_t from = t->at;
    while (t->at < t->text.n && (is_id_start(t->text.p[t->at]) || is_digit(t->text.p[t->at])))
        t->at++;
    return (Str){ t->text.p + from, t->at - from };
}

static Str peek_id(FunctionText *t)
{
    size_t at = t->at;
    Str    id = scan_id(t);
    t->at = at;
    return id;
}

static const char *take_id(FunctionText *t, const char *what)
{
    Str id = scan_id(t);
    if (!id.n)
        text_fail_at(t, t->at, "expected %s, found %s", what, found_text(t));
    return p2o_str_dup(t->arena, id);
}

/* "..." with \ before what is taken as it is. */
static const char *take_string(FunctionText *t)
{
    Buf    b = { .arena = t->arena };
    size_t from = t->at;
    expect_char(t, '"');
    while (!t->failed) {
        char c = t->at < t->text.n ? t->text.p[t->at++] : 0;
        if (c == '"')
            break;
        if (c == '\\')
            c = t->at < t->text.n ? t->text.p[t->at++] : 0;
        if (!c)
            text_fail_at(t, from, "the text in quotes has no end");
        else
            p2o_put(&b, &c, 1);
    }
    return b.n ? b.at : "";
}

/* A name of a value or an attribute: quoted where it is no identifier. */
static const char *take_quotable(FunctionText *t, const char *what)
{
    size_t      from = t->at;
    const char *name = peek_char(t) == '"' ? take_string(t) : take_id(t, what);
    if (!t->failed && *name && !p2o_is_one_line(str_of(name)))
        text_fail_at(t, from, "a name with control characters");
    return name;
}

typedef struct Literal {
    enum { LIT_INT, LIT_FLOAT, LIT_STR } kind;
    int64_t     i;
    double      f;
    const char *s;
    size_t      at;
} Literal;

static bool word_is(Str s, const char *lower)
{
    if (s.n != strlen(lower))
        return false;
    for (size_t i = 0; i < s.n; i++)
        if ((s.p[i] | 0x20) != lower[i])
            return false;
    return true;
}

static bool is_special_float(Str id)
{
    return word_is(id, "inf") || word_is(id, "infinity") || word_is(id, "nan");
}

static void scan_digits(FunctionText *t)
{
    while (t->at < t->text.n && is_digit(t->text.p[t->at]))
        t->at++;
}

static bool accept_here(FunctionText *t, const char *any)
{
    bool ok = t->at < t->text.n && t->text.p[t->at] && strchr(any, t->text.p[t->at]);
    t->at += ok;
    return ok;
}

static Literal take_literal(FunctionText *t)
{
    Literal x = { .kind = LIT_INT };
    char    c = peek_char(t);
    x.at = t->at;
    if (c == '"') {
        x.kind = LIT_STR;
        x.s = take_string(t);
        return x;
    }
    bool negative = accept_here(t, "-");
    Str  word = peek_id(t);
    if (is_special_float(word)) {
        scan_id(t);
        x.kind = LIT_FLOAT;
        x.f = word_is(word, "nan") ? (double)NAN : (double)INFINITY;
        x.f = negative ? -x.f : x.f;
        return x;
    }
    scan_digits(t);
    bool whole = true;
    if (accept_here(t, ".")) {
        whole = false;
        scan_digits(t);
    }
    if (accept_here(t, "eE")) {
        whole = false;
        accept_here(t, "+-");
        scan_digits(t);
    }
    Str s = { t->text.p + x.at, t->at - x.at };
    if (s.n && s.p[s.n - 1] == '.')             /* 1. is a number here, and none to the reader */
        s.n--;
    x.kind = whole ? LIT_INT : LIT_FLOAT;
    if (whole ? !p2o_parse_i64(s, &x.i) : !p2o_parse_f64(s, &x.f))
        text_fail_at(t, x.at, s.n ? "'%.*s' is no number of 64 bits" : "expected a value%.*s",
                     (int)(s.n < 40 ? s.n : 40), s.p);
    if (whole)
        x.f = (double)x.i;
    return x;
}

static DType type_of_word(Str id)
{
    static const struct { const char *name; DType t; } names[] = {
        { "float", DT_F32 }, { "double", DT_F64 }, { "bool", DT_BOOL }, { "float16", DT_F16 },
        { "bfloat16", DT_BF16 }, { "int8", DT_I8 }, { "int16", DT_I16 }, { "int32", DT_I32 },
        { "int64", DT_I64 }, { "uint8", DT_U8 }, { "uint16", DT_U16 }, { "uint32", DT_U32 },
        { "uint64", DT_U64 },
    };
    for (size_t i = 0; i < COUNT_OF(names); i++)
        if (str_is(id, names[i].name))
            return names[i].t;
    return DT_NONE;
}

/* [2,3], [N,?] or nothing behind an element type; numbers go to `sizes`, of which there are up to
 * MAX_RANK; -1: no number. */
static int take_sizes(FunctionText *t, int64_t *sizes)
{
    int rank = 0;
    if (!accept_char(t, '[') || accept_char(t, ']'))
        return 0;
    do {
        if (rank == MAX_RANK) {
            text_fail_at(t, t->at, "more than %d axes", MAX_RANK);
            return 0;
        }
        sizes[rank] = -1;
        if (accept_char(t, '?') || scan_id(t).n) {
            rank++;
        } else if (peek_char(t) == '"') {
            take_string(t);
            rank++;
        } else {
            Literal x = take_literal(t);
            if (!t->failed && (x.kind != LIT_INT || x.i < 0))
                text_fail_at(t, x.at, "a size is a whole number that is not negative");
            sizes[rank++] = x.i;
        }
    } while (accept_char(t, ',') && !t->failed);
    expect_char(t, ']');
    return rank;
}

/* Half floats are written as the bits they have, as onnx.parser does. */
static void put_element_bits(FunctionText *t, Buf *b, DType d, const Literal *x)
{
    size_t  n = p2o_dtype_bytes(d);
    float   f = (float)x->f;
    bool    bits = d == DT_F16 || d == DT_BF16, below = !bits && p2o_dtype_text(d)[0] == 'i';
    int64_t hi = n == 8 ? INT64_MAX : ((int64_t)1 << (8 * n - below)) - 1, lo = below ? -hi - 1 : 0;
    if (d == DT_F64) {
        p2o_put(b, &x->f, sizeof x->f);
    } else if (d == DT_F32) {
        p2o_put(b, &f, sizeof f);
    } else if (x->kind != LIT_INT) {
        text_fail_at(t, x->at, "elements of %s are whole numbers", p2o_dtype_torch(d));
    } else {
        hi = d == DT_BOOL ? 1 : hi;
        if (x->i < lo || x->i > hi)
            text_fail_at(t, x->at, "%lld is no %s", (long long)x->i, p2o_dtype_torch(d));
        for (size_t k = 0; k < n; k++) {
            char byte = (char)(uint8_t)((uint64_t)x->i >> 8 * k);
            p2o_put(b, &byte, 1);
        }
    }
}

/* float[2] {1.0, 2}; the type's word was read. */
static const Tensor *take_tensor(FunctionText *t, DType d)
{
    int64_t  sizes[MAX_RANK];
    Buf      bytes = { .arena = t->arena };
    uint64_t want = 1, have = 0;
    size_t   at = t->at;
    int      rank = take_sizes(t, sizes);
    for (int i = 0; i < rank; i++)
        if (sizes[i] < 0 || !mul_u64(want, (uint64_t)sizes[i], &want))
            text_fail_at(t, at, "a tensor's sizes are numbers, and not too large");
    scan_id(t);                                 /* its name says nothing */
    accept_char(t, '=');
    expect_char(t, '{');
    while (!t->failed && have < want) {
        Literal x = take_literal(t);
        if (x.kind == LIT_STR)
            text_fail_at(t, x.at, "expected a number");
        put_element_bits(t, &bytes, d, &x);
        if (++have < want && !accept_char(t, ','))
            text_fail_at(t, t->at, "%llu elements of %llu", (unsigned long long)have,
                         (unsigned long long)want);
    }
    expect_char(t, '}');
    if (t->failed)
        return NULL;
    return p2o_tensor_make(t->arena, d, rank, sizes, bytes.n ? bytes.at : "");
}

const char *p2o_attr_kind_text(AttrKind k)
{
    static const char *const names[] = {
        [ATTR_INT] = "int", [ATTR_FLOAT] = "float", [ATTR_STR] = "string", [ATTR_INTS] = "ints",
        [ATTR_FLOATS] = "floats", [ATTR_STRS] = "strings", [ATTR_TENSOR] = "tensor",
        [ATTR_GRAPH] = "graph",
    };
    return names[k];
}

/* `: ints`; false: there is none, or an error was reported. */
static bool take_kind(FunctionText *t, AttrKind *kind)
{
    if (!accept_char(t, ':'))
        return false;
    size_t at = t->at;
    Str    id = scan_id(t);
    for (AttrKind k = ATTR_INT; k < ATTR_GRAPH; k++)
        if (str_is(id, p2o_attr_kind_text(k))) {
            *kind = k;
            return true;
        }
    text_fail_at(t, at, "attributes are int, float, string, ints, floats, strings or tensor");
    return false;
}

typedef VEC(Literal) Literals;

static AttrKind kind_of_literals(const Literals *v)
{
    AttrKind kind = ATTR_INTS;
    for (size_t i = 0; i < v->n; i++)
        kind = v->at[i].kind == LIT_STR ? ATTR_STRS
               : v->at[i].kind == LIT_FLOAT && kind == ATTR_INTS ? ATTR_FLOATS : kind;
    return kind;
}

static void must_be(FunctionText *t, const Literal *x, AttrKind kind)
{
    bool text = kind == ATTR_STR || kind == ATTR_STRS;
    bool whole = kind == ATTR_INT || kind == ATTR_INTS;
    if (text != (x->kind == LIT_STR) || (whole && x->kind != LIT_INT))
        text_fail_at(t, x->at, "expected %s", text ? "text in quotes" : whole ? "a whole number"
                                                                           : "a number");
}

static void set_list(FunctionText *t, Attr *a, const Literals *v)
{
    int64_t     *ints = NEW_N(t->arena, int64_t, v->n + 1);
    float       *floats = NEW_N(t->arena, float, v->n + 1);
    const char **strs = NEW_N(t->arena, const char *, v->n + 1);
    for (size_t i = 0; i < v->n; i++) {
        must_be(t, &v->at[i], a->kind);
        ints[i] = v->at[i].i;
        floats[i] = (float)v->at[i].f;
        strs[i] = v->at[i].s;
    }
    a->n = v->n;
    if (a->kind == ATTR_INTS)
        a->ints = ints;
    else if (a->kind == ATTR_FLOATS)
        a->floats = floats;
    else
        a->strs = strs;
}

static bool is_list_kind(AttrKind k)
{
    return k == ATTR_INTS || k == ATTR_FLOATS || k == ATTR_STRS;
}

static void take_list_value(FunctionText *t, Attr *a, bool typed)
{
    Literals v = { 0 };
    size_t   at = t->at;
    expect_char(t, '[');
    while (!t->failed && peek_char(t) != ']') {
        Literal x = take_literal(t);
        VEC_PUSH(t->arena, &v, x);
        if (!accept_char(t, ','))
            break;
    }
    expect_char(t, ']');
    if (typed && !is_list_kind(a->kind))
        text_fail_at(t, at, "a list where the type says %s", p2o_attr_kind_text(a->kind));
    if (!typed && !v.n)
        text_fail_at(t, at, "an empty list needs its type: %s: ints = []", a->name);
    if (!typed)
        a->kind = kind_of_literals(&v);
    if (!t->failed)
        set_list(t, a, &v);
}

static void take_one_value(FunctionText *t, Attr *a, bool typed)
{
    Literal x = take_literal(t);
    if (!typed)
        a->kind = x.kind == LIT_STR ? ATTR_STR : x.kind == LIT_FLOAT ? ATTR_FLOAT : ATTR_INT;
    if (a->kind != ATTR_STR && a->kind != ATTR_FLOAT && a->kind != ATTR_INT) {
        text_fail_at(t, x.at, "one value where the type says %s", p2o_attr_kind_text(a->kind));
        return;
    }
    must_be(t, &x, a->kind);
    if (a->kind == ATTR_STR)
        a->s = x.s;
    else if (a->kind == ATTR_FLOAT)
        a->f = (float)x.f;
    else
        a->i = x.i;
}

/* What stands behind the `=`; a->kind is set if `typed`. */
static void take_attr_value(FunctionText *t, Attr *a, bool typed)
{
    char   c = peek_char(t);
    size_t at = t->at;
    Str    id = peek_id(t);
    if (c == '[') {
        take_list_value(t, a, typed);
    } else if (id.n && !is_special_float(id)) {
        DType d = type_of_word(id);
        scan_id(t);
        if (d == DT_NONE)
            text_fail_at(t, at, "expected a value: graphs and types are not taken");
        else if (typed && a->kind != ATTR_TENSOR)
            text_fail_at(t, at, "a tensor where the type says %s", p2o_attr_kind_text(a->kind));
        a->kind = ATTR_TENSOR;
        a->tensor = t->failed ? NULL : take_tensor(t, d);
    } else {
        take_one_value(t, a, typed);
    }
}

static FunctionAttr *find_attr(OnnxFunction *f, const char *name)
{
    for (int i = 0; i < f->nattr; i++)
        if (same(f->attrs[i].name, name))
            return &f->attrs[i];
    return NULL;
}

const FunctionAttr *p2o_function_attr(const OnnxFunction *f, const char *name)
{
    for (int i = 0; i < f->nattr; i++)
        if (same(f->attrs[i].name, name))
            return &f->attrs[i];
    return NULL;
}

/* @name, whose kind the reference or the function's attribute says. */
static const char *take_reference(FunctionText *t, Attr *a, bool typed)
{
    size_t        at = t->at;
    const char   *name = take_quotable(t, "an attribute's name");
    FunctionAttr *of = t->failed ? NULL : find_attr(t->fn, name);
    if (t->failed)
        return NULL;
    if (!of) {
        text_fail_at(t, at, "the function has no attribute '%s'", name);
    } else if (!typed && !of->has_kind) {
        text_fail_at(t, at, "a reference needs its type: %s: float = @%s", a->name, name);
    } else if (typed && of->has_kind && of->kind != a->kind) {
        text_fail_at(t, at, "attribute '%s' is %s here and %s elsewhere", name,
                     p2o_attr_kind_text(a->kind), p2o_attr_kind_text(of->kind));
    } else {
        a->kind = typed ? a->kind : of->kind;
        of->has_kind = true;
        of->kind = a->kind;
    }
    return name;
}

/* <name: kind = value, ...> of a node. */
static void take_node_attrs(FunctionText *t, FunctionNode *n)
{
    VEC(NodeAttr) list = { 0 };
    expect_char(t, '<');
    while (!t->failed && peek_char(t) != '>') {
        NodeAttr a = { 0 };
        size_t   at = t->at;
        if (list.n == MOST_NAMED)
            text_fail_at(t, at, "more than %d attributes", MOST_NAMED);
        a.value.name = take_id(t, "an attribute's name");
        for (size_t i = 0; i < list.n; i++)
            if (same(list.at[i].value.name, a.value.name))
                text_fail_at(t, at, "attribute '%s' stands there twice", a.value.name);
        bool typed = take_kind(t, &a.value.kind);
        expect_char(t, '=');
        if (accept_char(t, '@'))
            a.ref = take_reference(t, &a.value, typed);
        else if (!t->failed)
            take_attr_value(t, &a.value, typed);
        VEC_PUSH(t->arena, &list, a);
        if (!accept_char(t, ','))
            break;
    }
    expect_char(t, '>');
    n->attrs = list.at;
    n->nattr = (int)list.n;
}

/* <alpha, beta: float = 1.0> of a function. */
static void take_function_attrs(FunctionText *t, OnnxFunction *f)
{
    VEC(FunctionAttr) list = { 0 };
    if (!accept_char(t, '<'))
        return;
    while (!t->failed && peek_char(t) != '>') {
        FunctionAttr a = { 0 };
        size_t       at = t->at;
        if (list.n == MOST_NAMED)
            text_fail_at(t, at, "more than %d attributes", MOST_NAMED);
        a.name = a.dflt.name = take_quotable(t, "an attribute's name");
        for (size_t i = 0; i < list.n; i++)
            if (same(list.at[i].name, a.name))
                text_fail_at(t, at, "attribute '%s' stands there twice", a.name);
        bool typed = take_kind(t, &a.dflt.kind);
        a.has_default = typed ? true : peek_char(t) == '=';
        if (a.has_default) {
            expect_char(t, '=');
            take_attr_value(t, &a.dflt, typed);
        }
        a.has_kind = a.has_default;
        a.kind = a.dflt.kind;
        VEC_PUSH(t->arena, &list, a);
        if (!accept_char(t, ','))
            break;
    }
    expect_char(t, '>');
    f->attrs = list.at;
    f->nattr = (int)list.n;
}

typedef VEC(const char *) Names;

static bool is_defined(const FunctionText *t, const char *name)
{
    return p2o_map_get(&t->values, str_of(name)) != NULL;
}

static void define_name(FunctionText *t, size_t at, const char *name)
{
    if (is_defined(t, name))
        text_fail_at(t, at, "'%s' is defined twice", name);
    map_put(&t->values, str_of(name), t->fn);
}

/* A type that stands before a name: checked, not kept, since rules tell types. */
static void skip_type(FunctionText *t)
{
    int64_t sizes[MAX_RANK];
    size_t  at = t->at;
    Str     id = peek_id(t);
    bool    type = type_of_word(id) != DT_NONE;
    if (!type)
        return;
    scan_id(t);
    char next = peek_char(t);
    if (next == ',' || next == ')')             /* a value that is called float */
        t->at = at;
    else
        take_sizes(t, sizes);
}

static void take_port_names(FunctionText *t, Names *out, bool define)
{
    expect_char(t, '(');
    while (!t->failed && peek_char(t) != ')') {
        skip_type(t);
        size_t      at = t->at;
        const char *name = take_quotable(t, "a name");
        if (!t->failed && !*name)
            text_fail_at(t, at, "a name is empty");
        for (size_t i = 0; !define && i < out->n; i++)
            if (same(out->at[i], name))
                text_fail_at(t, at, "output '%s' stands there twice", name);
        if (!t->failed && out->n == MOST_PORTS)
            text_fail_at(t, at, "more than %d values", MOST_PORTS);
        if (define && !t->failed)
            define_name(t, at, name);
        VEC_PUSH(t->arena, out, name);
        if (!accept_char(t, ','))
            break;
    }
    expect_char(t, ')');
}

static bool imports(const OnnxFunction *f, const char *domain)
{
    for (int i = 0; i < f->nimport; i++)
        if (same(f->imports[i].domain, domain))
            return true;
    return false;
}

static const char *function_key(Arena *a, const char *domain, const char *name)
{
    return p2o_printf(a, "%s\n%s", domain, name);
}

/* com.example.Foo: the domain is what stands before the last dot. */
static void take_operator(FunctionText *t, FunctionNode *n)
{
    Buf         domain = { .arena = t->arena };
    size_t      at = t->at;
    const char *name = take_id(t, "an operator");
    while (!t->failed && accept_char(t, '.')) {
        p2o_putf(&domain, "%s%s", domain.n ? "." : "", name);
        name = take_id(t, "an operator");
    }
    n->domain = domain.n && !same(domain.at, "ai.onnx") ? domain.at : "";
    n->op = name;
    if (t->failed)
        return;
    if (!imports(t->fn, n->domain))
        text_fail_at(t, at, "opset_import does not name the domain \"%s\"", n->domain);
    n->calls = p2o_functions_find(t->library, n->domain, name);
    if (!n->calls)
        map_put(&t->called, str_of(function_key(t->arena, n->domain, name)), t);
}

static void take_node_inputs(FunctionText *t, FunctionNode *n)
{
    Names in = { 0 };
    expect_char(t, '(');
    while (!t->failed && peek_char(t) != ')') {
        size_t      at = t->at;
        const char *name = take_quotable(t, "a value's name");
        if (!t->failed && *name && !is_defined(t, name))
            text_fail_at(t, at, "'%s' is not defined before this", name);
        VEC_PUSH(t->arena, &in, name);
        if (!accept_char(t, ','))
            break;
    }
    expect_char(t, ')');
    n->in = in.at;
    n->nin = (int)in.n;
}

static void check_inner_call(FunctionText *t, size_t at, const FunctionNode *n)
{
    const OnnxFunction *f = n->calls;
    if (n->nin > f->nin || n->nout > f->nout)
        text_fail_at(t, at, "%s has %d inputs and %d outputs", f->name, f->nin, f->nout);
    for (int i = 0; i < n->nattr; i++)
        if (!p2o_function_attr(f, n->attrs[i].value.name))
            text_fail_at(t, at, "%s has no attribute '%s'", f->name, n->attrs[i].value.name);
}

/* [label] A, B = Op <attrs> (X, Y) */
static void take_node(FunctionText *t, FunctionNode *n)
{
    Names  out = { 0 };
    size_t at;
    if (accept_char(t, '[')) {
        n->name = take_quotable(t, "a node's name");
        expect_char(t, ']');
    }
    skip_blank(t);
    at = t->at;
    do {
        const char *name = take_quotable(t, "a value's name");
        VEC_PUSH(t->arena, &out, name);
    } while (!t->failed && accept_char(t, ','));
    expect_char(t, '=');
    skip_blank(t);
    size_t op_at = t->at;
    take_operator(t, n);
    if (peek_char(t) == '<')
        take_node_attrs(t, n);
    take_node_inputs(t, n);
    if (!n->nattr && peek_char(t) == '<')
        take_node_attrs(t, n);
    for (size_t i = 0; !t->failed && i < out.n; i++)
        if (*out.at[i])
            define_name(t, at, out.at[i]);
    n->out = out.at;
    n->nout = (int)out.n;
    if (n->calls && !t->failed)
        check_inner_call(t, op_at, n);
}

/* ["" : 18, "com.example" : 1] */
static void take_imports(FunctionText *t, OnnxFunction *f)
{
    VEC(OpsetImport) list = { 0 };
    expect_char(t, '[');
    while (!t->failed && peek_char(t) != ']') {
        OpsetImport x = { .domain = take_string(t) };
        if (list.n == MOST_NAMED)
            text_fail_at(t, t->at, "more than %d domains", MOST_NAMED);
        expect_char(t, ':');
        Literal v = t->failed ? (Literal){ 0 } : take_literal(t);
        x.version = v.i;
        if (!t->failed && (v.kind != LIT_INT || v.i < 1 || v.i > INT32_MAX))
            text_fail_at(t, v.at, "a version is a whole number from 1");
        if (same(x.domain, "ai.onnx"))
            x.domain = "";
        f->opset = *x.domain ? f->opset : (int)x.version;
        for (size_t i = 0; i < list.n; i++)
            if (same(list.at[i].domain, x.domain))
                text_fail_at(t, t->at, "opset_import names \"%s\" twice", x.domain);
        VEC_PUSH(t->arena, &list, x);
        if (!accept_char(t, ','))
            break;
    }
    expect_char(t, ']');
    f->imports = list.at;
    f->nimport = (int)list.n;
}

static void skip_header_value(FunctionText *t)
{
    if (peek_char(t) == '"')
        take_string(t);
    else
        take_literal(t);
}

/* <domain: "com.example", opset_import: ["" : 18]> */
static void take_header(FunctionText *t, OnnxFunction *f)
{
    size_t from = t->at;
    expect_char(t, '<');
    while (!t->failed && peek_char(t) != '>') {
        size_t      at = t->at;
        const char *key = take_id(t, "domain or opset_import");
        expect_char(t, ':');
        if (same(key, "domain"))
            f->domain = take_string(t);
        else if (same(key, "opset_import"))
            take_imports(t, f);
        else if (same(key, "doc_string"))
            skip_header_value(t);
        else
            text_fail_at(t, at, "'%s' is not known here: domain, opset_import", key);
        if (!accept_char(t, ','))
            break;
    }
    expect_char(t, '>');
    if (!t->failed && (!f->domain || !*f->domain || same(f->domain, "ai.onnx")))
        text_fail_at(t, from,
                     "a function needs a domain of its own: <domain: \"com.example\", ...>");
    if (!t->failed && !p2o_is_one_line(str_of(f->domain)))
        text_fail_at(t, from, "a domain with control characters");
    if (!t->failed && !f->nimport)
        text_fail_at(t, from, "a function needs its opsets: <..., opset_import: [\"\" : 20]>");
}

static void take_function_body(FunctionText *t, OnnxFunction *f)
{
    VEC(FunctionNode) nodes = { 0 };
    expect_char(t, '{');
    while (!t->failed && peek_char(t) != '}') {
        FunctionNode n = { 0 };
        take_node(t, &n);
        VEC_PUSH(t->arena, &nodes, n);
    }
    expect_char(t, '}');
    f->nodes = nodes.at;
    f->nnode = (int)nodes.n;
}

static void skip_value_infos(FunctionText *t)
{
    if (!accept_char(t, '<'))
        return;
    while (!t->failed && peek_char(t) != '>') {
        skip_type(t);
        take_quotable(t, "a name");
        if (!accept_char(t, ','))
            break;
    }
    expect_char(t, '>');
}

static void check_function(FunctionText *t, size_t at, const OnnxFunction *f)
{
    if (!f->nout)
        text_fail_at(t, at, "function '%s' has no outputs", f->name);
    for (int i = 0; i < f->nout; i++) {
        bool is_input = false;
        for (int k = 0; k < f->nin; k++)
            is_input |= same(f->in[k], f->out[i]);
        if (is_input || !is_defined(t, f->out[i]))
            text_fail_at(t, at, "output '%s' of '%s' is %s", f->out[i], f->name,
                         is_input ? "an input" : "not defined");
    }
    if (p2o_functions_find(t->library, f->domain, f->name))
        text_fail_at(t, at, "function '%s' is defined twice", f->name);
    if (p2o_map_get(&t->called, str_of(function_key(t->arena, f->domain, f->name))))
        text_fail_at(t, at, "function '%s' is called before it is defined, or by itself", f->name);
}

static OnnxFunction *take_function(FunctionText *t)
{
    OnnxFunction *f = NEW(t->arena, OnnxFunction);
    Names         in = { 0 }, out = { 0 };
    t->fn = f;
    t->values = (Map){ .arena = t->arena };
    take_header(t, f);
    skip_blank(t);
    size_t at = t->at;
    f->name = take_id(t, "a function's name");
    take_function_attrs(t, f);
    take_port_names(t, &in, true);
    expect_char(t, '=');
    if (!t->failed && !accept_here(t, ">"))
        text_fail_at(t, t->at, "expected '=>'");
    take_port_names(t, &out, false);
    skip_value_infos(t);
    f->in = in.at;
    f->nin = (int)in.n;
    f->out = out.at;
    f->nout = (int)out.n;
    take_function_body(t, f);
    if (!t->failed)
        check_function(t, at, f);
    return f;
}

bool p2o_functions_parse(Diags *d, FunctionLibrary *l, Str text)
{
    Arena          *a = p2o_diags_arena(d);
    FunctionLibrary with = { .index = { .arena = a } };
    FunctionText    t = { .arena = a, .diags = d, .text = text, .library = &with,
                          .called = { .arena = a } };
    for (size_t i = 0; i < l->index.n; i++)
        map_put(&with.index, l->index.at[i].key, l->index.at[i].value);
    if (!peek_char(&t))
        text_fail_at(&t, t.at, "no function");
    while (peek_char(&t)) {
        OnnxFunction *f = take_function(&t);
        map_put(&with.index, str_of(function_key(a, f->domain ? f->domain : "", f->name)), f);
    }
    if (!t.failed && t.at < t.text.n)
        text_fail_at(&t, t.at, "expected a function, found %s", found_text(&t));
    if (!t.failed)
        *l = with;
    return !t.failed;
}

const OnnxFunction *p2o_functions_find(const FunctionLibrary *l, const char *domain,
                                       const char *name)
{
    return p2o_map_get(&l->index, str_of(function_key(l->index.arena, domain, name)));
}
