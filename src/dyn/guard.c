/* Code is in reverse Polish order.  `and`, `or` and `if` evaluate all of their operands and then
 * pass over the errors of those that Python would not have looked at, so there are no jumps.  A
 * chain `a < b < c` leaves b on the stack for the next comparison. */
#include "dyn/guard.h"

#include <math.h>
#include <stdio.h>

#include "base/num.h"

enum { MAX_NESTING = 100, MAX_CODE = 10000, MAX_GUARD_SIZES = 64 };

typedef enum GuardOpKind {
    OP_INT, OP_FLOAT, OP_SIZE,
    OP_NEG, OP_NOT, OP_ABS, OP_TRUNC, OP_FLOOR, OP_CEIL, OP_ROUND, OP_TO_FLOAT, OP_MATH, OP_SAME,
    OP_ADD, OP_SUB, OP_MUL, OP_TRUE_DIV, OP_FLOOR_DIV, OP_MOD, OP_POW, OP_FLOAT_POW, OP_ROUND_TO,
    OP_BIT_AND, OP_BIT_OR, OP_BIT_XOR, OP_SHIFT_LEFT, OP_SHIFT_RIGHT, OP_MIN, OP_MAX,
    OP_COMPARE, OP_CHAIN, OP_AND, OP_OR,
    OP_IF
} GuardOpKind;

typedef struct GuardOp {
    GuardOpKind   kind;
    GuardRelation relation;             /* of COMPARE and CHAIN */
    int64_t       i;                    /* of INT; of SIZE: which */
    double        f;                    /* of FLOAT */
    double      (*fn)(double);          /* of MATH */
} GuardOp;

typedef enum GuardValueKind { GV_ERROR, GV_INT, GV_FLOAT } GuardValueKind;

typedef struct GuardValue {             /* True and False are 1 and 0, as in Python */
    GuardValueKind kind;
    int64_t        i;
    double         f;
} GuardValue;

/* A part of the text that is spelled otherwise when the guard is written again. */
typedef struct GuardSpan {
    size_t      at, n;
    const char *python;                 /* NULL: a size */
    size_t      size;
} GuardSpan;

/* Axis `axis` of an input; -1: the input itself, an int. */
typedef struct GuardSize {
    const Var *var;
    int        axis;
} GuardSize;

struct Guard {
    const char     *text;
    Arena          *arena;
    VEC(GuardOp)    code;
    VEC(GuardSize)  sizes;
    VEC(GuardSpan)  spans;
    size_t          split;              /* of a comparison: where its right side begins */
    GuardValue     *stack;
    size_t          height, deepest;
    bool            settled;
};

static Dim recorded_size(GuardSize s)
{
    const Type *t = &s.var->recorded;
    if (s.axis < 0)
        return t->kind == TY_INT ? t->value : NULL;
    return s.axis < t->shape.rank ? t->shape.at[s.axis] : NULL;
}

static int operands_of(GuardOpKind k)
{
    return k < OP_NEG ? 0 : k < OP_ADD ? 1 : k < OP_IF ? 2 : 3;
}

static bool is_guard_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* PyTorch makes _ of what can't be in a name: "d_a b" is the input d_a_b. */
static bool names_input(Str key, const char *input)
{
    size_t i = 0;
    for (; i < key.n && input[i]; i++)
        if (key.p[i] != input[i] && (is_guard_letter(key.p[i]) || is_guard_letter(input[i])) &&
            (is_guard_letter(key.p[i]) || input[i] != '_'))
            return false;
    return i == key.n && !input[i];
}

/* "flat_args_2" is how captures by strict export say the third leaf of the arguments. */
static const Var *flat_input(const Program *p, Str key)
{
    static const char prefix[] = "flat_args_";
    size_t            k = 0, i = sizeof prefix - 1;
    if (key.n <= i || memcmp(key.p, prefix, i) != 0)
        return NULL;
    for (; i < key.n && key.p[i] >= '0' && key.p[i] <= '9' && k < p->inputs.n; i++)
        k = 10 * k + (size_t)(key.p[i] - '0');
    return i == key.n && k < p->inputs.n ? p->inputs.at[k].var : NULL;
}

/* NULL: there is none, or there are two. */
static const Var *guarded_input(const Program *p, Str key)
{
    const Var *found = flat_input(p, key);
    for (size_t i = 0; i < p->inputs.n; i++) {
        const Var *v = p->inputs.at[i].var;
        if (!v || v == found || !names_input(key, v->name))
            continue;
        if (found)
            return NULL;
        found = v;
    }
    return found;
}

/* "L['x'].size()[0]", "L['xs'][1].size()[0]" or "L['n']" at *text: *text moves behind it. */
static bool read_guarded(const Program *p, const char **text, GuardSize *size)
{
    Buf         name = { .arena = p->arena };
    const char *s = *text;
    int         axis = 0;
    if (strncmp(s, "L[", 2) != 0)
        return false;
    for (s += 1; *s == '['; s++) {
        const char *end = strchr(s, ']');
        if (!end)
            return false;
        bool quoted = s[1] == '\'' && end > s + 2;
        p2o_puts(&name, name.n ? "_" : "");
        p2o_put(&name, s + 1 + quoted, (size_t)(end - s) - 1 - 2 * quoted);
        s = end;
    }
    bool of_tensor = strncmp(s, ".size()[", 8) == 0;
    for (s += of_tensor ? 8 : 0; of_tensor && *s >= '0' && *s <= '9' && axis < MAX_RANK; s++)
        axis = 10 * axis + (*s - '0');
    *size = (GuardSize){ guarded_input(p, buf_str(&name)), of_tensor ? axis : -1 };
    if ((of_tensor ? *s != ']' : *s == '.') || !size->var || !recorded_size(*size))
        return false;
    *text = s + of_tensor;
    return true;
}

static Dim present_size(GuardSize s)
{
    const Type *t = &s.var->type;
    if (t->kind == TY_TENSOR && s.axis >= 0 && s.axis < t->shape.rank)
        return t->shape.at[s.axis];
    return t->kind == TY_INT && s.axis < 0 ? t->value : recorded_size(s);
}

static void mention_all(const Program *p, GuardSizeFn *fn, void *user)
{
    for (size_t i = 0; i < p->inputs.n; i++) {
        const Var *v = p->inputs.at[i].var;
        int        rank = v && v->type.kind == TY_TENSOR ? v->type.shape.rank : 0;
        for (int axis = 0; axis < rank; axis++)
            fn(user, v->type.shape.at[axis]);
    }
}

/* A size of an input that can't be told may be any. */
void p2o_guard_mentions(const Program *p, const char *text, GuardSizeFn *fn, void *user)
{
    while (*text) {
        GuardSize size = { NULL, -1 };
        if (*text == 'L' && read_guarded(p, &text, &size)) {
            fn(user, present_size(size));
            continue;
        }
        if (*text == 'L' && size.axis >= 0 && !size.var)
            mention_all(p, fn, user);
        text++;
    }
}

typedef struct GuardParser {
    const Program *prog;
    const char    *at;
    Guard         *g;
    int            nesting;
} GuardParser;

static bool compile_choice(GuardParser *s);

static void skip_blanks(GuardParser *s)
{
    while (*s->at == ' ' || *s->at == '\n' || *s->at == '\t')
        s->at++;
}

/* The word or sign comes next; it is then behind us. */
static bool took(GuardParser *s, const char *token)
{
    size_t n = strlen(token);
    skip_blanks(s);
    if (strncmp(s->at, token, n) != 0 || (is_guard_letter(token[0]) && is_guard_letter(s->at[n])))
        return false;
    s->at += n;
    return true;
}

static bool put_op(GuardParser *s, GuardOp op)
{
    Guard *g = s->g;
    if (g->code.n >= MAX_CODE)
        return false;
    VEC_PUSH(g->arena, &g->code, op);
    g->height = g->height + (op.kind == OP_CHAIN ? 2 : 1) - (size_t)operands_of(op.kind);
    if (g->height > g->deepest)
        g->deepest = g->height;
    return true;
}

static bool put_kind(GuardParser *s, GuardOpKind kind)
{
    return put_op(s, (GuardOp){ .kind = kind });
}

static bool compile_number(GuardParser *s)
{
    const char *from = s->at;
    bool        is_int = true;
    for (; (*s->at >= '0' && *s->at <= '9') || *s->at == '.' || *s->at == 'e' || *s->at == 'E' ||
           ((*s->at == '-' || *s->at == '+') && (s->at[-1] == 'e' || s->at[-1] == 'E'));
         s->at++)
        is_int &= *s->at >= '0' && *s->at <= '9';
    Str     text = { from, (size_t)(s->at - from) };
    GuardOp op = { .kind = is_int ? OP_INT : OP_FLOAT };
    return (is_int ? p2o_parse_i64(text, &op.i) : p2o_parse_f64(text, &op.f)) && put_op(s, op);
}

static size_t index_of_size(Guard *g, GuardSize size)
{
    for (size_t i = 0; i < g->sizes.n; i++)
        if (g->sizes.at[i].var == size.var && g->sizes.at[i].axis == size.axis)
            return i;
    VEC_PUSH(g->arena, &g->sizes, size);
    return g->sizes.n - 1;
}

static bool parse_size(GuardParser *s)
{
    const char *from = s->at;
    GuardSize   size;
    if (!read_guarded(s->prog, &s->at, &size) || s->g->sizes.n >= MAX_GUARD_SIZES)
        return false;
    size_t    which = index_of_size(s->g, size);
    GuardSpan span = { (size_t)(from - s->g->text), (size_t)(s->at - from), NULL, which };
    VEC_PUSH(s->g->arena, &s->g->spans, span);
    return put_op(s, (GuardOp){ .kind = OP_SIZE, .i = (int64_t)which });
}

typedef struct GuardFunction {
    const char *name;                   /* without "math.", "torch.sym_", "OpaqueUnaryFn_" */
    const char *python;
    GuardOpKind kind;
    double    (*fn)(double);
} GuardFunction;

static const GuardFunction guard_functions[] = {
    { "trunc", "math.trunc", OP_TRUNC, NULL },
    { "TruncToInt", "math.trunc", OP_TRUNC, NULL },
    { "int", "int", OP_TRUNC, NULL },
    { "floor", "math.floor", OP_FLOOR, NULL },
    { "FloorToInt", "math.floor", OP_FLOOR, NULL },
    { "ceil", "math.ceil", OP_CEIL, NULL },
    { "CeilToInt", "math.ceil", OP_CEIL, NULL },
    { "ceiling", "math.ceil", OP_CEIL, NULL },
    { "round", "round", OP_ROUND, NULL },
    { "RoundToInt", "round", OP_ROUND, NULL },
    { "RoundDecimal", "round", OP_ROUND_TO, NULL },
    { "float", "float", OP_TO_FLOAT, NULL },
    { "ToFloat", "float", OP_TO_FLOAT, NULL },
    { "abs", "abs", OP_ABS, NULL },
    { "Abs", "abs", OP_ABS, NULL },
    { "not", "operator.not_", OP_NOT, NULL },
    { "Identity", "", OP_SAME, NULL },
    { "min", "min", OP_MIN, NULL },
    { "Min", "min", OP_MIN, NULL },
    { "max", "max", OP_MAX, NULL },
    { "Max", "max", OP_MAX, NULL },
    { "FloorDiv", "operator.floordiv", OP_FLOOR_DIV, NULL },
    { "CleanDiv", "operator.floordiv", OP_FLOOR_DIV, NULL },
    { "Mod", "operator.mod", OP_MOD, NULL },
    { "PythonMod", "operator.mod", OP_MOD, NULL },
    { "IntTrueDiv", "operator.truediv", OP_TRUE_DIV, NULL },
    { "FloatTrueDiv", "operator.truediv", OP_TRUE_DIV, NULL },
    { "PowByNatural", "operator.pow", OP_POW, NULL },
    { "FloatPow", "operator.pow", OP_POW, NULL },
    { "builtin_pow", "pow", OP_POW, NULL },
    { "pow", "math.pow", OP_FLOAT_POW, NULL },
    { "LShift", "operator.lshift", OP_SHIFT_LEFT, NULL },
    { "RShift", "operator.rshift", OP_SHIFT_RIGHT, NULL },
    { "sqrt", "math.sqrt", OP_MATH, sqrt }, { "exp", "math.exp", OP_MATH, exp },
    { "log", "math.log", OP_MATH, log }, { "log2", "math.log2", OP_MATH, log2 },
    { "log10", "math.log10", OP_MATH, log10 }, { "cos", "math.cos", OP_MATH, cos },
    { "cosh", "math.cosh", OP_MATH, cosh }, { "acos", "math.acos", OP_MATH, acos },
    { "sin", "math.sin", OP_MATH, sin }, { "sinh", "math.sinh", OP_MATH, sinh },
    { "asin", "math.asin", OP_MATH, asin }, { "asinh", "math.asinh", OP_MATH, asinh },
    { "tan", "math.tan", OP_MATH, tan }, { "tanh", "math.tanh", OP_MATH, tanh },
    { "atan", "math.atan", OP_MATH, atan }, { "fabs", "math.fabs", OP_MATH, fabs },
};

static const GuardFunction *find_function(Str name)
{
    static const char *const prefixes[] = { "math.", "torch._sym_", "torch.sym_",
                                            "OpaqueUnaryFn_" };
    if (str_is(name, "pow"))            /* Python's own keeps ints, math.pow does not */
        name = STR("builtin_pow");
    for (size_t i = 0; i < COUNT_OF(prefixes); i++)
        if (p2o_str_starts(name, prefixes[i])) {
            name = (Str){ name.p + strlen(prefixes[i]), name.n - strlen(prefixes[i]) };
            break;
        }
    for (size_t i = 0; i < COUNT_OF(guard_functions); i++)
        if (str_is(name, guard_functions[i].name))
            return &guard_functions[i];
    return NULL;
}

/* min and max of many are min and max of two, many times. */
static bool compile_arguments(GuardParser *s, const GuardFunction *f)
{
    GuardOp op = { .kind = f->kind, .fn = f->fn };
    bool    many = f->kind == OP_MIN || f->kind == OP_MAX;
    int     n = 0;
    do {
        if (!compile_choice(s))
            return false;
        n++;
        if (many && n > 1 && !put_op(s, op))
            return false;
    } while (took(s, ","));
    if (f->kind == OP_ROUND && n == 2)
        op.kind = OP_ROUND_TO;
    return took(s, ")") && (many ? n > 1 : n == operands_of(op.kind) && put_op(s, op));
}

static bool parse_named(GuardParser *s)
{
    const char *from = s->at;
    while (is_guard_letter(*s->at) || *s->at == '.')
        s->at++;
    Str name = { from, (size_t)(s->at - from) };
    if (str_is(name, "True") || str_is(name, "False"))
        return put_op(s, (GuardOp){ .kind = OP_INT, .i = name.n == 4 });
    if (str_is(name, "math.inf") || str_is(name, "math.nan"))
        return put_op(s, (GuardOp){ .kind = OP_FLOAT, .f = name.p[5] == 'i' ? INFINITY : NAN });
    const GuardFunction *f = find_function(name);
    if (!f || !took(s, "("))
        return false;
    GuardSpan span = { (size_t)(from - s->g->text), name.n, f->python, 0 };
    VEC_PUSH(s->g->arena, &s->g->spans, span);
    return compile_arguments(s, f);
}

static bool parse_operand(GuardParser *s)
{
    skip_blanks(s);
    if (took(s, "("))
        return compile_choice(s) && took(s, ")");
    if (s->at[0] == 'L' && s->at[1] == '[')
        return parse_size(s);
    if ((*s->at >= '0' && *s->at <= '9') || (*s->at == '.' && s->at[1] >= '0' && s->at[1] <= '9'))
        return compile_number(s);
    return is_guard_letter(*s->at) && parse_named(s);
}

/* -a ** -b is -(a ** (-b)). */
static bool compile_signed(GuardParser *s)
{
    if (++s->nesting > MAX_NESTING)
        return false;
    bool ok;
    if (took(s, "-"))
        ok = compile_signed(s) && put_kind(s, OP_NEG);
    else if (took(s, "+"))
        ok = compile_signed(s);
    else
        ok = parse_operand(s) && (!took(s, "**") || (compile_signed(s) && put_kind(s, OP_POW)));
    s->nesting--;
    return ok;
}

typedef struct GuardSign {
    const char *sign;
    GuardOpKind kind;
    int         level;                  /* higher binds tighter */
} GuardSign;

enum { LOWEST_LEVEL = 1, HIGHEST_LEVEL = 6 };

static const GuardSign guard_signs[] = {
    { "|", OP_BIT_OR, 1 },        { "^", OP_BIT_XOR, 2 },    { "&", OP_BIT_AND, 3 },
    { "<<", OP_SHIFT_LEFT, 4 },   { ">>", OP_SHIFT_RIGHT, 4 },
    { "+", OP_ADD, 5 },           { "-", OP_SUB, 5 },
    { "//", OP_FLOOR_DIV, 6 },    { "/", OP_TRUE_DIV, 6 },
    { "*", OP_MUL, 6 },           { "%", OP_MOD, 6 },
};

static const GuardSign *took_sign(GuardParser *s, int level)
{
    for (size_t i = 0; i < COUNT_OF(guard_signs); i++)
        if (guard_signs[i].level == level && took(s, guard_signs[i].sign))
            return &guard_signs[i];
    return NULL;
}

static bool parse_arithmetic(GuardParser *s, int level)
{
    if (level > HIGHEST_LEVEL)
        return compile_signed(s);
    bool ok = parse_arithmetic(s, level + 1);
    for (const GuardSign *x; ok && (x = took_sign(s, level));)
        ok = parse_arithmetic(s, level + 1) && put_kind(s, x->kind);
    return ok;
}

static GuardRelation took_relation(GuardParser *s)
{
    static const struct { const char *sign; GuardRelation relation; } relations[] = {
        { "<=", GUARD_LE }, { ">=", GUARD_GE }, { "==", GUARD_EQ },
        { "!=", GUARD_NE }, { "<", GUARD_LT },  { ">", GUARD_GT },
    };
    for (size_t i = 0; i < COUNT_OF(relations); i++)
        if (took(s, relations[i].sign))
            return relations[i].relation;
    return GUARD_OTHER;
}

static bool parse_comparison(GuardParser *s)
{
    bool ok = parse_arithmetic(s, LOWEST_LEVEL);
    GuardRelation now = ok ? took_relation(s) : GUARD_OTHER, next;
    int           nchain = 0;
    for (; ok && now != GUARD_OTHER; now = next) {
        size_t split = s->g->code.n;
        ok = parse_arithmetic(s, LOWEST_LEVEL);
        next = ok ? took_relation(s) : GUARD_OTHER;
        GuardOpKind kind = next == GUARD_OTHER ? OP_COMPARE : OP_CHAIN;
        ok = ok && put_op(s, (GuardOp){ .kind = kind, .relation = now });
        nchain += kind == OP_CHAIN;
        s->g->split = split;
    }
    for (; ok && nchain > 0; nchain--)
        ok = put_kind(s, OP_AND);
    return ok;
}

static bool parse_not(GuardParser *s)
{
    if (!took(s, "not"))
        return parse_comparison(s);
    if (++s->nesting > MAX_NESTING)
        return false;
    bool ok = parse_not(s) && put_kind(s, OP_NOT);
    s->nesting--;
    return ok;
}

static bool parse_and(GuardParser *s)
{
    bool ok = parse_not(s);
    while (ok && took(s, "and"))
        ok = parse_not(s) && put_kind(s, OP_AND);
    return ok;
}

static bool parse_or(GuardParser *s)
{
    bool ok = parse_and(s);
    while (ok && took(s, "or"))
        ok = parse_and(s) && put_kind(s, OP_OR);
    return ok;
}

/* `a if b else c`: in this order on the stack. */
static bool compile_choice(GuardParser *s)
{
    if (++s->nesting > MAX_NESTING)
        return false;
    bool ok = parse_or(s);
    if (ok && took(s, "if"))
        ok = parse_or(s) && took(s, "else") && compile_choice(s) && put_kind(s, OP_IF);
    s->nesting--;
    return ok;
}

Guard *p2o_guard_parse(const Program *p, const char *text)
{
    Guard      *g = NEW(p->arena, Guard);
    GuardParser s = { .prog = p, .at = text, .g = g };
    g->text = text;
    g->arena = p->arena;
    bool ok = compile_choice(&s);
    skip_blanks(&s);
    if (!ok || *s.at)
        return NULL;
    g->stack = NEW_N(p->arena, GuardValue, g->deepest);
    return g;
}

const char *p2o_guard_source(const Guard *g) { return g->text; }
void        p2o_guard_settle(Guard *g) { g->settled = true; }
bool        p2o_guard_settled(const Guard *g) { return g->settled; }
size_t      p2o_guard_nsize(const Guard *g) { return g->sizes.n; }
Dim         p2o_guard_size(const Guard *g, size_t i) { return present_size(g->sizes.at[i]); }

/* The outermost operator is the last one. */
GuardRelation p2o_guard_relation(const Guard *g)
{
    const GuardOp *last = &g->code.at[g->code.n - 1];
    return last->kind == OP_COMPARE ? last->relation : GUARD_OTHER;
}

bool p2o_guard_has_max(const Guard *g)
{
    for (size_t i = 0; i < g->code.n; i++)
        if (g->code.at[i].kind == OP_MAX)
            return true;
    return false;
}

bool p2o_guard_is_size(const Guard *g)
{
    enum { TWO_OPERANDS_AND_RELATION = 3 };
    return g->code.n == TWO_OPERANDS_AND_RELATION && p2o_guard_relation(g) != GUARD_OTHER &&
           (g->code.at[0].kind == OP_SIZE) != (g->code.at[1].kind == OP_SIZE);
}

static GuardValue guard_int(int64_t i) { return (GuardValue){ .kind = GV_INT, .i = i }; }
static GuardValue guard_float(double f) { return (GuardValue){ .kind = GV_FLOAT, .f = f }; }
static GuardValue no_value(void) { return (GuardValue){ .kind = GV_ERROR }; }
static double     as_double(GuardValue v) { return v.kind == GV_INT ? (double)v.i : v.f; }
static bool       is_true(GuardValue v) { return v.kind == GV_INT ? v.i != 0 : v.f != 0; }
static GuardValue checked_int(bool ok, const int64_t *i) { return ok ? guard_int(*i) : no_value(); }

/* Python raises an error where a finite operand gives no number. */
static GuardValue checked_float(double f) { return isfinite(f) ? guard_float(f) : no_value(); }

/* 2^63 is the first double above every int64_t. */
static GuardValue int_of_double(double f)
{
    return f >= -0x1p63 && f < 0x1p63 ? guard_int((int64_t)f) : no_value();
}

/* -1, 0 or 1, exactly, where a double would round i; 2 for nan. */
static int order_of_int_and_double(int64_t i, double f)
{
    if (isnan(f))
        return 2;
    if (f >= 0x1p63 || f < -0x1p63)
        return f > 0 ? -1 : 1;
    int64_t whole = (int64_t)f;
    if (i != whole)
        return i < whole ? -1 : 1;
    return f > (double)whole ? -1 : f < (double)whole ? 1 : 0;
}

static int order_of(GuardValue a, GuardValue b)
{
    if (a.kind == GV_INT && b.kind == GV_INT)
        return a.i < b.i ? -1 : a.i > b.i;
    if (a.kind == GV_INT)
        return order_of_int_and_double(a.i, b.f);
    if (b.kind == GV_INT) {
        int order = order_of_int_and_double(b.i, a.f);
        return order == 2 ? 2 : -order;
    }
    return isnan(a.f) || isnan(b.f) ? 2 : a.f < b.f ? -1 : a.f > b.f;
}

static bool is_related(GuardValue a, GuardRelation r, GuardValue b)
{
    int order = order_of(a, b);
    switch (r) {
    case GUARD_LT: return order == -1;
    case GUARD_LE: return order == -1 || order == 0;
    case GUARD_GT: return order == 1;
    case GUARD_GE: return order == 1 || order == 0;
    case GUARD_EQ: return order == 0;
    default:       return order != 0;
    }
}

/* CPython's float_divmod. */
static void divmod_double(double a, double b, double *div, double *mod)
{
    *mod = fmod(a, b);
    *div = (a - *mod) / b;
    if (*mod != 0 && (b < 0) != (*mod < 0)) {
        *mod += b;
        *div -= 1;
    } else if (*mod == 0) {
        *mod = copysign(0, b);
    }
    double whole = floor(*div);
    *div = *div != 0 ? whole + (*div - whole > 0.5) : copysign(0, a / b);
}

static GuardValue int_power(int64_t a, int64_t e)
{
    int64_t r = 1;
    bool    ok = true;
    if (e < 0)
        return a ? checked_float(pow((double)a, (double)e)) : no_value();
    for (; ok && e > 0; e >>= 1) {
        ok = !(e & 1) || mul_i64(r, a, &r);
        ok = ok && (e == 1 || mul_i64(a, a, &a));
    }
    return checked_int(ok, &r);
}

static GuardValue of_two_ints(GuardOpKind kind, int64_t a, int64_t b)
{
    const int64_t exact = (int64_t)1 << 53;     /* beyond, Python does not divide as doubles */
    int64_t       r = 0;
    bool          bad_div = b == 0 || (a == INT64_MIN && b == -1);
    switch (kind) {
    case OP_ADD:         return checked_int(add_i64(a, b, &r), &r);
    case OP_SUB:         return checked_int(!__builtin_sub_overflow(a, b, &r), &r);
    case OP_MUL:         return checked_int(mul_i64(a, b, &r), &r);
    case OP_FLOOR_DIV:   return bad_div ? no_value() : guard_int(floor_div(a, b));
    case OP_MOD:         return bad_div ? no_value() : guard_int(floor_mod(a, b));
    case OP_TRUE_DIV:
        if (b == 0 || a > exact || a < -exact || b > exact || b < -exact)
            return no_value();
        return guard_float((double)a / (double)b);
    case OP_POW:         return int_power(a, b);
    case OP_ROUND_TO:    return checked_int(b >= 0, &a);
    case OP_BIT_AND:     return guard_int(a & b);
    case OP_BIT_OR:      return guard_int(a | b);
    case OP_BIT_XOR:     return guard_int(a ^ b);
    case OP_SHIFT_LEFT:
        return checked_int(b >= 0 && b < 63 && mul_i64(a, (int64_t)1 << b, &r), &r);
    case OP_SHIFT_RIGHT:
        return b < 0 ? no_value() : guard_int(b > 62 ? -(a < 0) : floor_div(a, (int64_t)1 << b));
    default:             return no_value();
    }
}

/* Python rounds the exact value of x, as printf does. */
static GuardValue rounded_to(double x, int64_t ndigit)
{
    enum { MOST_DIGITS = 20 };
    char   text[64], *to = text;
    double r;
    if (ndigit < 0 || ndigit > MOST_DIGITS || !isfinite(x))
        return no_value();
    if (fabs(x) >= 0x1p53)
        return guard_float(x);
    snprintf(text, sizeof text, "%.*f", (int)ndigit, x);
    for (const char *p = text; *p; p++) {       /* a locale may have another sign for the point */
        if ((*p >= '0' && *p <= '9') || *p == '-')
            *to++ = *p;
        else if (to[-1] != '.')
            *to++ = '.';
    }
    return p2o_parse_f64((Str){ text, (size_t)(to - text) }, &r) ? guard_float(r) : no_value();
}

static GuardValue of_two_floats(GuardOpKind kind, double a, double b)
{
    double div, mod;
    switch (kind) {
    case OP_ADD:      return guard_float(a + b);
    case OP_SUB:      return guard_float(a - b);
    case OP_MUL:      return guard_float(a * b);
    case OP_TRUE_DIV: return b != 0 ? guard_float(a / b) : no_value();
    case OP_POW:
    case OP_FLOAT_POW:
        if ((a == 0 && b < 0) || (a < 0 && b != floor(b)))
            return no_value();
        return checked_float(pow(a, b));
    case OP_FLOOR_DIV:
    case OP_MOD:
        if (b == 0)
            return no_value();
        divmod_double(a, b, &div, &mod);
        return guard_float(kind == OP_MOD ? mod : div);
    default:
        return no_value();
    }
}

static GuardValue of_one(const GuardOp *op, GuardValue x)
{
    if (x.kind == GV_ERROR)
        return x;
    bool is_int = x.kind == GV_INT;
    switch (op->kind) {
    case OP_NEG:      return is_int ? of_two_ints(OP_SUB, 0, x.i) : guard_float(-x.f);
    case OP_NOT:      return guard_int(!is_true(x));
    case OP_ABS:
        return !is_int ? guard_float(fabs(x.f)) : x.i < 0 ? of_two_ints(OP_SUB, 0, x.i) : x;
    case OP_TRUNC:    return is_int ? x : int_of_double(trunc(x.f));
    case OP_FLOOR:    return is_int ? x : int_of_double(floor(x.f));
    case OP_CEIL:     return is_int ? x : int_of_double(ceil(x.f));
    case OP_ROUND:    return is_int ? x : int_of_double(rint(x.f));
    case OP_TO_FLOAT: return guard_float(as_double(x));
    case OP_MATH:     return checked_float(op->fn(as_double(x)));
    default:          return x;
    }
}

static GuardValue of_two(const GuardOp *op, GuardValue a, GuardValue b)
{
    if (a.kind == GV_ERROR)
        return a;
    if (op->kind == OP_AND || op->kind == OP_OR)
        return is_true(a) == (op->kind == OP_OR) ? a : b;
    if (b.kind == GV_ERROR)
        return b;
    if (op->kind == OP_COMPARE || op->kind == OP_CHAIN)
        return guard_int(is_related(a, op->relation, b));
    if (op->kind == OP_MIN)
        return order_of(b, a) == -1 ? b : a;
    if (op->kind == OP_MAX)
        return order_of(b, a) == 1 ? b : a;
    if (a.kind == GV_INT && b.kind == GV_INT && op->kind != OP_FLOAT_POW)
        return of_two_ints(op->kind, a.i, b.i);
    if (op->kind == OP_ROUND_TO)
        return b.kind == GV_INT ? rounded_to(a.f, b.i) : no_value();
    return of_two_floats(op->kind, as_double(a), as_double(b));
}

/* The value of code[from, to). */
static GuardValue run_code(const Guard *g, size_t from, size_t to, const GuardValue *sizes)
{
    GuardValue *top = g->stack;         /* above the uppermost value */
    for (size_t i = from; i < to; i++) {
        const GuardOp *op = &g->code.at[i];
        top -= operands_of(op->kind);
        switch (operands_of(op->kind)) {
        case 0:
            *top = op->kind == OP_INT     ? guard_int(op->i)
                   : op->kind == OP_FLOAT ? guard_float(op->f)
                                          : sizes[op->i];
            break;
        case 1:
            *top = of_one(op, top[0]);
            break;
        case 2: {
            GuardValue middle = top[1];
            *top = of_two(op, top[0], top[1]);
            if (op->kind == OP_CHAIN)
                *++top = middle;
            break;
        }
        default:
            *top = top[1].kind == GV_ERROR ? top[1] : is_true(top[1]) ? top[0] : top[2];
        }
        top++;
    }
    return top[-1];
}

Answer p2o_guard_holds(const Guard *g, Dims *t, const Dim *sizes, DimValueFn *value, void *user)
{
    GuardValue at[MAX_GUARD_SIZES];
    for (size_t i = 0; i < g->sizes.n; i++) {
        int64_t v = 0;
        at[i] = checked_int(p2o_dim_eval(t, sizes[i], value, user, &v), &v);
    }
    GuardValue v = run_code(g, 0, g->code.n, at);
    return v.kind == GV_ERROR ? CANNOT_TELL : is_true(v) ? YES : NO;
}

/* Code [from, to); empty where there are no sides. */
static void side_of(const Guard *g, int side, size_t *from, size_t *to)
{
    bool compares = p2o_guard_relation(g) != GUARD_OTHER;
    *from = compares && side ? g->split : 0;
    *to = !compares ? 0 : side ? g->code.n - 1 : g->split;
}

bool p2o_guard_number(const Guard *g, int side, double *v)
{
    size_t from, to;
    side_of(g, side, &from, &to);
    for (size_t i = from; i < to; i++)
        if (g->code.at[i].kind == OP_SIZE)
            return false;
    if (from == to)
        return false;
    GuardValue x = run_code(g, from, to, NULL);
    *v = as_double(x);
    return x.kind != GV_ERROR;
}

static Dim dim_of_two(Dims *t, GuardOpKind kind, Dim a, Dim b)
{
    enum { LARGEST_POWER = 8 };         /* Dims write powers out */
    int64_t e;
    switch (kind) {
    case OP_ADD:       return p2o_dim_add(t, a, b);
    case OP_SUB:       return p2o_dim_sub(t, a, b);
    case OP_MUL:       return p2o_dim_mul(t, a, b);
    case OP_FLOOR_DIV: return p2o_dim_floordiv(t, a, b);
    case OP_MOD:       return p2o_dim_mod(t, a, b);
    case OP_MIN:       return p2o_dim_min(t, a, b);
    case OP_MAX:       return p2o_dim_max(t, a, b);
    case OP_POW:
        return p2o_dim_is_int(b, &e) && e >= 0 && e <= LARGEST_POWER ? p2o_dim_pow(t, a, e) : NULL;
    default:           return NULL;
    }
}

Dim p2o_guard_dim(const Guard *g, Dims *t, int side)
{
    Dim   *stack = NEW_N(g->arena, Dim, g->deepest + 1), *top = stack;
    size_t from, to;
    side_of(g, side, &from, &to);
    for (size_t i = from; i < to; i++) {
        const GuardOp *op = &g->code.at[i];
        top -= operands_of(op->kind);
        if (op->kind == OP_INT)
            *top = p2o_dim_int(t, op->i);
        else if (op->kind == OP_SIZE)
            *top = recorded_size(g->sizes.at[op->i]);
        else if (op->kind == OP_NEG)
            *top = p2o_dim_neg(t, *top);
        else if (operands_of(op->kind) == 2 && op->kind != OP_CHAIN)
            *top = dim_of_two(t, op->kind, top[0], top[1]);
        else
            return NULL;
        top++;
    }
    return stack[0];
}

const char *p2o_dim_python(Dims *t, Dim d)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz"
                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.";
    Buf               b = { .arena = p2o_dims_arena(t) };
    for (const char *s = p2o_dim_text(t, d); *s;) {
        size_t      n = strspn(s, letters);
        const char *python = s[n] == '(' ? p2o_dim_fn_python((Str){ s, n }) : NULL;
        if (python)
            p2o_puts(&b, python);
        else if (*s == '^')
            p2o_puts(&b, "**");
        else
            p2o_put(&b, s, n ? n : 1);
        s += python ? n + 1 : n ? n : 1;
    }
    return b.at;
}

const char *p2o_guard_python(const Guard *g, Dims *t, const Dim *sizes)
{
    Buf    b = { .arena = g->arena };
    size_t done = 0;
    for (size_t i = 0; i < g->spans.n; i++) {
        const GuardSpan *s = &g->spans.at[i];
        p2o_put(&b, g->text + done, s->at - done);
        done = s->at + s->n;
        if (s->python)
            p2o_puts(&b, s->python);
        else
            p2o_putf(&b, p2o_dim_is_sym(sizes[s->size]) ? "%s" : "(%s)",
                     p2o_dim_python(t, sizes[s->size]));
    }
    p2o_puts(&b, g->text + done);
    return b.at;
}
