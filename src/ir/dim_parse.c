/* Text to Dims: our own form, sympy's str form and its srepr form are one grammar here.
 *
 *     expr    = sum { (comparison | "&" | "|") sum }
 *     sum     = product { ("+" | "-") product }
 *     product = signed { ("*" | "/" | "//" | "%") signed }
 *     signed  = { "-" | "+" | "~" } power          power = primary [ ("^" | "**") signed ]
 *     primary = number | name | name "(" [ item { "," item } ] ")" | "(" expr ")"
 *     item    = expr | string | name "=" item
 *
 * Inside, a value is an exact quotient of Dims, as sympy writes s/2 within floor(), or a float that
 * is not exact but can be rounded; no numerator means that the text is well formed but neither.
 * Nothing is ever evaluated. */
#include "base/num.h"
#include "ir/dim_node.h"

enum {
    MAX_NESTING = 100,
    MAX_TEXT = 512 * 1024,
    MAX_WORK = 2000 * 1000,     /* terms merged: tens of milliseconds */
};

typedef struct Quot {
    Dim      num;               /* NULL: no integer expression */
    Dim      den;               /* never the number 0 */
    bool     is_float;          /* a float in the program: no size until rounded */
    bool     is_real;           /* not num / den: factor * num and so on.  0.7 alone has num 1 */
    RealKind real;
    double   factor;
} Quot;

typedef struct DimParser {
    Dims       *t;
    Str         text;
    size_t      at;
    int         depth;
    uint64_t    work_end;       /* of the table's count: past it nothing is representable */
    const char *error;
} DimParser;

static const Quot no_quot = { 0 };

static Quot quot_of(DimParser *p, Dim d)
{
    if (!d || p->t->work > p->work_end)
        return no_quot;
    return (Quot){ d, p2o_dim_int(p->t, 1) };
}

static Quot quot_of_real(DimParser *p, RealKind real, double factor, Dim a)
{
    if (!a)
        return no_quot;
    return (Quot){ a, p2o_dim_int(p->t, 1), true, true, real, factor };
}

static Quot quot_of_int(DimParser *p, int64_t v) { return quot_of(p, p2o_dim_int(p->t, v)); }

/* Lowest terms, as far as exact division sees them. */
static Quot quot_over(DimParser *p, Dim num, Dim den, bool is_float)
{
    if (!num || !den || den->nterm == 0)
        return no_quot;
    Dim one = p2o_dim_int(p->t, 1), whole = den == one ? num : p2o_dim_exact_div(p->t, num, den);
    return whole ? (Quot){ whole, one, is_float } : (Quot){ num, den, is_float };
}

/* The whole number of a quotient, float or not; NULL when it is none. */
static Dim whole_of(Quot a)
{
    int64_t d;
    return a.num && !a.is_real && p2o_dim_is_int(a.den, &d) && d == 1 ? a.num : NULL;
}

static bool is_power_of_two(Dim d)
{
    int64_t n;
    return p2o_dim_is_int(d, &n) && n > 0 && (n & (n - 1)) == 0;
}

/* A float such as 0.7, which no short fraction is. */
static bool is_real_number(Quot a)
{
    int64_t n;
    return a.is_real && a.real == REAL_TIMES && p2o_dim_is_int(a.num, &n) && n == 1;
}

/* Products that round once: 0.7*s, and with a sign. */
static Quot real_mul(DimParser *p, Quot a, Quot b)
{
    int64_t n;
    Dim     by = whole_of(b);
    if (p2o_dim_is_int(by, &n) && n == -1 && (a.real == REAL_TIMES || a.real == REAL_OVER))
        return quot_of_real(p, a.real, -a.factor, a.num);
    return is_real_number(a) ? quot_of_real(p, REAL_TIMES, a.factor, by) : no_quot;
}

/* A float that its exact value may not be: n/3.  Where n/3 is whole it is exact, which is all that
 * rounding to an integer needs; but 3*(n/3) may not be n, nor m/3 + n/3 be (m + n)/3. */
static bool is_rounded(Quot a) { return a.is_float && !is_power_of_two(a.den); }

static Quot quot_add(DimParser *p, Quot a, Quot b)
{
    bool is_float = a.is_float || b.is_float;
    if (!a.num || !b.num || a.is_real || b.is_real || (is_rounded(a) && is_rounded(b)))
        return no_quot;
    if (a.den == b.den)
        return quot_over(p, p2o_dim_add(p->t, a.num, b.num), a.den, is_float);
    Dim num = p2o_dim_add(p->t, p2o_dim_mul(p->t, a.num, b.den), p2o_dim_mul(p->t, b.num, a.den));
    return quot_over(p, num, p2o_dim_mul(p->t, a.den, b.den), is_float);
}

/* Of exact values. */
static Quot quot_product(DimParser *p, Quot a, Quot b)
{
    if (!a.num || !b.num)
        return no_quot;
    return quot_over(p, p2o_dim_mul(p->t, a.num, b.num), p2o_dim_mul(p->t, a.den, b.den),
                     a.is_float || b.is_float);
}

static bool keeps_rounding(Quot a)
{
    int64_t n;
    return p2o_dim_is_int(a.num, &n) && (n == -1 || is_power_of_two(a.num));
}

static Quot quot_mul(DimParser *p, Quot a, Quot b)
{
    if (!a.num || !b.num)
        return no_quot;
    if (a.is_real || b.is_real)
        return a.is_real ? real_mul(p, a, b) : real_mul(p, b, a);
    if ((is_rounded(a) && !keeps_rounding(b)) || (is_rounded(b) && !keeps_rounding(a)))
        return no_quot;
    return quot_product(p, a, b);
}

static Quot quot_inverse(DimParser *p, Quot a)
{
    return a.num && !a.is_real ? quot_over(p, a.den, a.num, a.is_float) : no_quot;
}

static Quot quot_div(DimParser *p, Quot a, Quot b)
{
    if (is_real_number(b) && !a.is_real)
        return quot_of_real(p, REAL_OVER, b.factor, whole_of(a));
    return a.is_real || is_rounded(b) ? no_quot : quot_product(p, a, quot_inverse(p, b));
}

static Quot quot_neg(DimParser *p, Quot a) { return quot_mul(p, quot_of_int(p, -1), a); }

/* The value as a size; NULL when it is none. */
static Dim integer_of(Quot a) { return a.is_float ? NULL : whole_of(a); }

/* Towards zero is down where the value is known not to be negative. */
static Quot quot_rounded(DimParser *p, DimFn how, Quot a)
{
    int64_t d;
    if (a.is_real)
        return quot_of(p, p2o_dim_rounded(p->t, how, (DimReal){ a.real, a.factor, a.num }));
    if (!a.num)
        return no_quot;
    if (how == FN_TRUNC && bounds_of(a.num).lo >= 0 && bounds_of(a.den).lo >= 0)
        how = FN_FLOOR;
    if (how == FN_FLOOR)
        return quot_of(p, p2o_dim_floordiv(p->t, a.num, a.den));
    if (how == FN_CEIL)
        return quot_of(p, p2o_dim_ceildiv(p->t, a.num, a.den));
    if (!p2o_dim_is_int(a.den, &d) || d < -(1ll << 53) || d > 1ll << 53)
        return no_quot;
    return quot_of(p, p2o_dim_rounded(p->t, how, (DimReal){ REAL_OVER, (double)d, a.num }));
}

/* base^e for a base that is a power of two. */
static Quot power_of_two(DimParser *p, int64_t base, Dim e)
{
    int64_t bits = 0;
    while (base > 1 && base % 2 == 0) {
        base /= 2;
        bits++;
    }
    if (base != 1 || bits == 0)
        return no_quot;
    return quot_of(p, p2o_dim_fn(p->t, FN_POW2, 0, p2o_dim_mul(p->t, e, p2o_dim_int(p->t, bits))));
}

/* Constant exponents, of which negative ones give quotients, and powers of two. */
static Quot quot_pow(DimParser *p, Quot a, Quot e)
{
    int64_t n;
    if (!a.num || a.is_real)
        return no_quot;
    if (!p2o_dim_is_int(integer_of(e), &n))
        return p2o_dim_is_int(integer_of(a), &n) ? power_of_two(p, n, integer_of(e)) : no_quot;
    if (n == INT64_MIN)
        return no_quot;
    int64_t m = n < 0 ? -n : n;
    Quot    r = quot_over(p, p2o_dim_pow(p->t, a.num, m), p2o_dim_pow(p->t, a.den, m), a.is_float);
    return n < 0 ? quot_inverse(p, r) : r;
}

static Quot quot_mod(DimParser *p, Quot a, Quot b)
{
    return quot_of(p, p2o_dim_mod(p->t, integer_of(a), integer_of(b)));
}

static Quot quot_floordiv(DimParser *p, Quot a, Quot b)
{
    return quot_of(p, p2o_dim_floordiv(p->t, integer_of(a), integer_of(b)));
}

static Quot call_add(DimParser *p, int n, const Quot *a)
{
    Quot r = quot_of_int(p, 0);
    for (int i = 0; i < n; i++)
        r = quot_add(p, r, a[i]);
    return r;
}

static Quot call_mul(DimParser *p, int n, const Quot *a)
{
    Quot r = quot_of_int(p, 1);
    for (int i = 0; i < n; i++)
        r = quot_mul(p, r, a[i]);
    return r;
}

static Quot call_extreme(DimParser *p, int n, const Quot *a, bool max)
{
    Dim *list = NEW_N(p->t->arena, Dim, (size_t)n);
    for (int i = 0; i < n; i++)
        list[i] = integer_of(a[i]);
    return quot_of(p, max ? p2o_dim_max_of(p->t, n, list) : p2o_dim_min_of(p->t, n, list));
}

static Quot call_max(DimParser *p, int n, const Quot *a) { return call_extreme(p, n, a, true); }
static Quot call_min(DimParser *p, int n, const Quot *a) { return call_extreme(p, n, a, false); }

static Quot call_pow(DimParser *p, int n, const Quot *a)
{
    (void)n;
    return quot_pow(p, a[0], a[1]);
}

static Quot call_floordiv(DimParser *p, int n, const Quot *a)
{
    (void)n;
    return quot_floordiv(p, a[0], a[1]);
}

static Quot call_cleandiv(DimParser *p, int n, const Quot *a)
{
    (void)n;
    Dim exact = p2o_dim_exact_div(p->t, integer_of(a[0]), integer_of(a[1]));
    return exact ? quot_of(p, exact) : quot_floordiv(p, a[0], a[1]);
}

static Quot call_ceildiv(DimParser *p, int n, const Quot *a)
{
    (void)n;
    return quot_of(p, p2o_dim_ceildiv(p->t, integer_of(a[0]), integer_of(a[1])));
}

static Quot call_mod(DimParser *p, int n, const Quot *a)
{
    (void)n;
    return quot_mod(p, a[0], a[1]);
}

static Quot call_modular(DimParser *p, int n, const Quot *a)
{
    (void)n;
    return quot_mod(p, quot_floordiv(p, a[0], a[1]), a[2]);
}

static Dim two_to_the(DimParser *p, Quot a) { return p2o_dim_fn(p->t, FN_POW2, 0, integer_of(a)); }

static Quot call_lshift(DimParser *p, int n, const Quot *a)
{
    (void)n;
    return quot_of(p, p2o_dim_mul(p->t, integer_of(a[0]), two_to_the(p, a[1])));
}

static Quot call_rshift(DimParser *p, int n, const Quot *a)
{
    (void)n;
    return quot_of(p, p2o_dim_floordiv(p->t, integer_of(a[0]), two_to_the(p, a[1])));
}

/* Of a number and something else. */
static Dim bits_in_both(DimParser *p, const Quot *a)
{
    int64_t mask;
    if (p2o_dim_is_int(integer_of(a[0]), &mask))
        return p2o_dim_and(p->t, integer_of(a[1]), mask);
    bool known = p2o_dim_is_int(integer_of(a[1]), &mask);
    return known ? p2o_dim_and(p->t, integer_of(a[0]), mask) : NULL;
}

static Quot call_and(DimParser *p, int n, const Quot *a)
{
    (void)n;
    return quot_of(p, bits_in_both(p, a));
}

static Quot call_or(DimParser *p, int n, const Quot *a)
{
    (void)n;
    Dim sum = p2o_dim_add(p->t, integer_of(a[0]), integer_of(a[1]));
    return quot_of(p, p2o_dim_sub(p->t, sum, bits_in_both(p, a)));
}

static Quot call_isqrt(DimParser *p, int n, const Quot *a)
{
    (void)n;
    return quot_of(p, p2o_dim_fn(p->t, FN_ISQRT, 0, integer_of(a[0])));
}

static Quot call_bit_length(DimParser *p, int n, const Quot *a)
{
    (void)n;
    return quot_of(p, p2o_dim_fn(p->t, FN_BIT_LENGTH, 0, integer_of(a[0])));
}

static Quot call_pow2(DimParser *p, int n, const Quot *a)
{
    (void)n;
    return quot_of(p, two_to_the(p, a[0]));
}

static Quot call_sqrt(DimParser *p, int n, const Quot *a)
{
    (void)n;
    return quot_of_real(p, REAL_SQRT, 0, whole_of(a[0]));
}

static Quot call_log2(DimParser *p, int n, const Quot *a)
{
    (void)n;
    return quot_of_real(p, REAL_LOG2, 0, whole_of(a[0]));
}

static Quot call_same(DimParser *p, int n, const Quot *a)
{
    (void)p, (void)n;
    return a[0];
}

static Quot call_integer(DimParser *p, int n, const Quot *a)
{
    (void)n;
    return quot_of(p, integer_of(a[0]));
}

static Quot call_tofloat(DimParser *p, int n, const Quot *a)
{
    (void)p, (void)n;
    Quot q = a[0];
    q.is_float = true;
    return q;
}

static Quot call_rational(DimParser *p, int n, const Quot *a)
{
    (void)n;
    return quot_div(p, a[0], a[1]);
}

static Quot call_truediv(DimParser *p, int n, const Quot *a)
{
    (void)n;
    Quot q = quot_div(p, a[0], a[1]);
    q.is_float = true;
    return q;
}

static Quot call_floor(DimParser *p, int n, const Quot *a)
{
    (void)n;
    return quot_rounded(p, FN_FLOOR, a[0]);
}

static Quot call_ceil(DimParser *p, int n, const Quot *a)
{
    (void)n;
    return quot_rounded(p, FN_CEIL, a[0]);
}

static Quot call_trunc(DimParser *p, int n, const Quot *a)
{
    (void)n;
    return quot_rounded(p, FN_TRUNC, a[0]);
}

static Quot call_round(DimParser *p, int n, const Quot *a)
{
    (void)n;
    return quot_rounded(p, FN_ROUND, a[0]);
}

typedef Quot CallFn(DimParser *p, int n, const Quot *a);

typedef struct Function {
    const char *name;
    CallFn     *fn;
    int         nmin, nmax;
} Function;

static const Function functions[] = {
    { "Add", call_add, 0, INT32_MAX },
    { "Mul", call_mul, 0, INT32_MAX },
    { "Max", call_max, 1, INT32_MAX },
    { "max", call_max, 1, INT32_MAX },
    { "Min", call_min, 1, INT32_MAX },
    { "min", call_min, 1, INT32_MAX },
    { "Integer", call_integer, 1, 1 },
    { "Rational", call_rational, 2, 2 },
    { "Pow", call_pow, 2, 2 },
    { "PowByNatural", call_pow, 2, 2 },
    { "FloorDiv", call_floordiv, 2, 2 },
    { "CleanDiv", call_cleandiv, 2, 2 },
    { "CeilDiv", call_ceildiv, 2, 2 },
    { "Mod", call_mod, 2, 2 },
    { "PythonMod", call_mod, 2, 2 },
    { "ModularIndexing", call_modular, 3, 3 },
    { "LShift", call_lshift, 2, 2 },
    { "RShift", call_rshift, 2, 2 },
    { "Identity", call_same, 1, 1 },
    { "BitwiseFn_bitwise_and", call_and, 2, 2 },
    { "BitwiseFn_bitwise_or", call_or, 2, 2 },
    { "ToFloat", call_tofloat, 1, 1 },
    { "IntTrueDiv", call_truediv, 2, 2 },
    { "FloatTrueDiv", call_truediv, 2, 2 },
    { "sqrt", call_sqrt, 1, 1 },
    { "OpaqueUnaryFn_sqrt", call_sqrt, 1, 1 },
    { "log2", call_log2, 1, 1 },
    { "OpaqueUnaryFn_log2", call_log2, 1, 1 },
    { "floor", call_floor, 1, 1 },
    { "FloorToInt", call_floor, 1, 1 },
    { "ceil", call_ceil, 1, 1 },
    { "ceiling", call_ceil, 1, 1 },
    { "CeilToInt", call_ceil, 1, 1 },
    { "int", call_trunc, 1, 1 },
    { "trunc", call_trunc, 1, 1 },
    { "TruncToInt", call_trunc, 1, 1 },
    { "round", call_round, 1, 1 },
    { "RoundToInt", call_round, 1, 1 },
    { "isqrt", call_isqrt, 1, 1 },
    { "bit_length", call_bit_length, 1, 1 },
    { "pow2", call_pow2, 1, 1 },
};

static Quot bad_dim_text(DimParser *p, const char *expected)
{
    if (p->error)
        return no_quot;
    if (p->at < p->text.n && p->text.p[p->at] > ' ' && p->text.p[p->at] < 127)
        p->error = p2o_printf(p->t->arena, "'%c' at offset %zu, expected %s", p->text.p[p->at],
                              p->at, expected);
    else
        p->error = p2o_printf(p->t->arena, "%s at offset %zu, expected %s",
                              p->at < p->text.n ? "strange byte" : "end of text", p->at, expected);
    return no_quot;
}

static char peek_ahead(const DimParser *p, size_t ahead)
{
    return ahead < p->text.n - p->at ? p->text.p[p->at + ahead] : 0;
}

static void skip_dim_blanks(DimParser *p)
{
    while (p->at < p->text.n && strchr(" \t\r\n", p->text.p[p->at]) && p->text.p[p->at])
        p->at++;
}

/* Takes `sign` if it comes next. */
static bool take_sign(DimParser *p, const char *sign)
{
    size_t n = strlen(sign);
    skip_dim_blanks(p);
    if (p->text.n - p->at < n || memcmp(p->text.p + p->at, sign, n))
        return false;
    p->at += n;
    return true;
}

static bool is_dim_digit(char c) { return c >= '0' && c <= '9'; }

static bool is_dim_word(char c)
{
    return is_dim_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           c == '.';
}

static Str take_dim_word(DimParser *p)
{
    size_t from = p->at;
    while (is_dim_word(peek_ahead(p, 0)))
        p->at++;
    return (Str){ p->text.p + from, p->at - from };
}

/* 'text' or "text", without escapes: names and numbers need none. */
static bool take_dim_string(DimParser *p, Str *out)
{
    skip_dim_blanks(p);
    char quote = peek_ahead(p, 0);
    if (quote != '\'' && quote != '"')
        return false;
    size_t from = ++p->at;
    while (p->at < p->text.n && p->text.p[p->at] != quote)
        p->at++;
    *out = (Str){ p->text.p + from, p->at - from };
    if (p->at == p->text.n)
        bad_dim_text(p, "a closing quote");
    else
        p->at++;
    return true;
}

static Quot parse_relation(DimParser *p);
static Quot parse_signed(DimParser *p);

static Quot quot_of_float(DimParser *p, Str s)
{
    double  x;
    int64_t num, den;
    if (!p2o_parse_f64(s, &x))
        return no_quot;
    if (p2o_short_fraction(x, &num, &den))
        return quot_over(p, p2o_dim_int(p->t, num), p2o_dim_int(p->t, den), true);
    return quot_of_real(p, REAL_TIMES, x, p2o_dim_int(p->t, 1));
}

static bool is_exponent_sign(const DimParser *p, size_t from)
{
    char c = peek_ahead(p, 0), before = p->at > from ? p->text.p[p->at - 1] : 0;
    return (c == '-' || c == '+') && (before == 'e' || before == 'E');
}

static Quot parse_dim_number(DimParser *p, bool negative)
{
    size_t  from = p->at;
    int64_t v;
    double  unused;
    bool    integer = true;
    while (is_dim_word(peek_ahead(p, 0)) || is_exponent_sign(p, from))
        integer &= is_dim_digit(p->text.p[p->at++]);
    Str s = { p->text.p + from, p->at - from };
    if (!integer) {
        if (p2o_parse_f64(s, &unused))
            return quot_of_float(p, s);
        p->at = from;
        return bad_dim_text(p, "a number");
    }
    if (negative)                       /* with its sign, or INT64_MIN would not be read */
        s = str_of(p2o_printf(p->t->arena, "-%.*s", STR_ARG(s)));
    return p2o_parse_i64(s, &v) ? quot_of_int(p, v) : no_quot;
}

typedef VEC(Quot) Quots;

/* Arguments up to the closing parenthesis; `text` gets the first string among them. */
static bool parse_arguments(DimParser *p, Quots *args, Str *text)
{
    bool first = true;
    while (!p->error && !take_sign(p, ")")) {
        Str    s, name;
        size_t from;
        if (!first && !take_sign(p, ","))
            bad_dim_text(p, "',' or ')'");
        first = false;
        skip_dim_blanks(p);
        from = p->at;
        name = take_dim_word(p);
        skip_dim_blanks(p);
        bool keyword = p2o_dim_name_ok(name) && peek_ahead(p, 0) == '=' && peek_ahead(p, 1) != '=';
        p->at = keyword ? p->at + 1 : from;
        if (take_dim_string(p, &s)) {
            if (!text->p && !keyword)
                *text = s;
            continue;
        }
        Quot q = parse_relation(p);
        if (!keyword)
            VEC_PUSH(p->t->arena, args, q);
    }
    return !p->error;
}

/* Python's own functions may have their module before them. */
static const Function *find_dim_function(Str name)
{
    static const char module[] = "math.";
    if (p2o_str_starts(name, module))
        name = (Str){ name.p + strlen(module), name.n - strlen(module) };
    for (size_t i = 0; i < COUNT_OF(functions); i++)
        if (str_is(name, functions[i].name))
            return &functions[i];
    return NULL;
}

static Quot parse_function(DimParser *p, Str name)
{
    Quots           args = { 0 };
    Str             text = { NULL, 0 };
    size_t          from = p->at;
    const Function *f = find_dim_function(name);
    if (!parse_arguments(p, &args, &text))
        return no_quot;
    if (str_is(name, "Symbol")) {
        if (text.p && p2o_dim_name_ok(text))
            return quot_of(p, p2o_dim_sym_of(p->t, text));
        p->at = from;
        return bad_dim_text(p, "a symbol's name");
    }
    if (str_is(name, "Float") && text.p)
        return quot_of_float(p, text);
    if (!f)
        return no_quot;
    if (args.n < (size_t)f->nmin || args.n > (size_t)f->nmax) {
        p->error = p2o_printf(p->t->arena, "%zu arguments of %s at offset %zu, expected %d",
                              args.n, f->name, from, f->nmin);
        return no_quot;
    }
    return f->fn(p, (int)args.n, args.at);
}

/* Words of sympy and Python that are no sizes, unless a symbol of that name exists. */
static bool is_constant_word(Str s)
{
    static const char *const words[] = {
        "oo", "int_oo", "zoo", "nan", "inf", "true", "false", "True", "False", "None",
    };
    for (size_t i = 0; i < COUNT_OF(words); i++)
        if (str_is(s, words[i]))
            return true;
    return false;
}

static Quot parse_name(DimParser *p)
{
    size_t from = p->at;
    Str    name = take_dim_word(p);
    if (take_sign(p, "("))
        return parse_function(p, name);
    if (!p2o_dim_name_ok(name)) {
        p->at = from;
        return bad_dim_text(p, "a symbol's name");
    }
    if (is_constant_word(name) && !p2o_dim_has_sym(p->t, name))
        return no_quot;
    return quot_of(p, p2o_dim_sym_of(p->t, name));
}

static Quot parse_primary(DimParser *p)
{
    skip_dim_blanks(p);
    char c = peek_ahead(p, 0);
    if (is_dim_digit(c) || (c == '.' && is_dim_digit(peek_ahead(p, 1))))
        return parse_dim_number(p, false);
    if (is_dim_word(c) && c != '.')
        return parse_name(p);
    if (!take_sign(p, "("))
        return bad_dim_text(p, "a number, a name or '('");
    Quot q = parse_relation(p);
    if (!p->error && !take_sign(p, ")"))
        return bad_dim_text(p, "')'");
    return q;
}

static Quot parse_power(DimParser *p, bool *minus)
{
    Quot q;
    skip_dim_blanks(p);
    if (*minus && is_dim_digit(peek_ahead(p, 0))) {
        size_t from = p->at;
        q = parse_dim_number(p, true);
        skip_dim_blanks(p);
        char next = peek_ahead(p, 0);
        bool raised = next == '^' || (next == '*' && peek_ahead(p, 1) == '*');
        if (p->error || (!raised && q.num && !q.is_float)) {
            *minus = false;
            return q;
        }
        p->at = from;                   /* -2^2 is -(2^2) */
    }
    q = parse_primary(p);
    if (p->error || (!take_sign(p, "**") && !take_sign(p, "^")))
        return q;
    return quot_pow(p, q, parse_signed(p));
}

static Quot parse_signed(DimParser *p)
{
    bool minus = false, inverted = false;
    if (++p->depth > MAX_NESTING) {
        p->error = "nested too deep";
        return no_quot;
    }
    for (;;) {
        if (take_sign(p, "-"))
            minus = !minus;
        else if (take_sign(p, "~"))
            inverted = true;
        else if (!take_sign(p, "+"))
            break;
    }
    Quot q = parse_power(p, &minus);
    p->depth--;
    if (inverted)
        return no_quot;
    return minus ? quot_neg(p, q) : q;
}

static Quot parse_product(DimParser *p)
{
    Quot q = parse_signed(p);
    while (!p->error) {
        if (take_sign(p, "//"))
            q = quot_floordiv(p, q, parse_signed(p));
        else if (take_sign(p, "/"))
            q = quot_div(p, q, parse_signed(p));
        else if (take_sign(p, "*"))
            q = quot_mul(p, q, parse_signed(p));
        else if (take_sign(p, "%"))
            q = quot_mod(p, q, parse_signed(p));
        else
            break;
    }
    return q;
}

static Quot parse_sum(DimParser *p)
{
    Quot q = parse_product(p);
    while (!p->error) {
        if (take_sign(p, "+"))
            q = quot_add(p, q, parse_product(p));
        else if (take_sign(p, "-"))
            q = quot_add(p, q, quot_neg(p, parse_product(p)));
        else
            break;
    }
    return q;
}

static bool take_relation(DimParser *p)
{
    static const char *const signs[] = { "<=", ">=", "==", "!=", "<", ">", "&", "|" };
    for (size_t i = 0; i < COUNT_OF(signs); i++)
        if (take_sign(p, signs[i]))
            return true;
    return false;
}

/* Comparisons and logic need no precedence: whatever they are made of, they are no integers. */
static Quot parse_relation(DimParser *p)
{
    Quot q = parse_sum(p);
    while (!p->error && take_relation(p)) {
        parse_sum(p);
        q = no_quot;
    }
    return q;
}

Dim p2o_dim_parse(Dims *t, Str text, const char **error)
{
    DimParser p = { .t = t, .text = text, .work_end = t->work + MAX_WORK };
    *error = NULL;
    if (text.n > MAX_TEXT) {
        *error = "expression longer than 512 kB";
        return NULL;
    }
    Quot q = parse_relation(&p);
    skip_dim_blanks(&p);
    if (!p.error && p.at < text.n)
        bad_dim_text(&p, "an operator or the end");
    *error = p.error;
    return p.error ? NULL : integer_of(q);
}
