/* Guards against Python: the table below was written by Python 3.11, which evaluated each guard at
 * the sizes given; `?` is an error that Python raises.  a and b stand for the sizes of the
 * input. */
#include "check.h"

#include "dyn/guard.h"
#include "dyn/range.h"

static const int64_t sizes_of_ab[][2] = { { 7, 5 },   { 6, 9 }, { 8, 4 },
                                          { 16, 16 }, { 1, 3 }, { 1000003, 64 } };

typedef struct Truth {
    const char *guard, *answers;        /* t, f or ? at each of the sizes */
} Truth;

static const Truth truths[] = {
    { "a <= 64", "tttttf" },
    { "a > 3", "ttttft" },
    { "a != b", "tttftt" },
    { "a == b", "ffftff" },
    { "(a // 4) == 3", "ffffff" },
    { "((-1)*a // 3) == -3", "tftfff" },
    { "(-a) // 4 == -2", "tttfff" },
    { "-a // 4 == -2", "tttfff" },
    { "(-a) % 4 == 1", "tfffft" },
    { "a % -4 == -3", "fffftf" },
    { "(-7) % a == 3", "ffffff" },
    { "(a*b) == 35", "tfffff" },
    { "a*b >= 2", "tttttt" },
    { "(a / 10) == 0.7", "tfffff" },
    { "(a / 10) == 0.6", "ftffff" },
    { "a / b > 0.7", "tfttft" },
    { "math.trunc(0.7*torch.sym_float(a)) == 4", "ttffff" },
    { "math.trunc(-0.7*torch.sym_float(a)) == -4", "ttffff" },
    { "math.ceil(0.3*torch.sym_float(a)) == 3", "tftfff" },
    { "math.floor(a / 3) == 2", "tttfff" },
    { "math.floor(-a / 3) == -3", "tftfff" },
    { "round(0.5*torch.sym_float(a)) == 4", "tftfff" },
    { "round(0.5*torch.sym_float(a)) == 2", "ffffff" },
    { "round(a / 3, 1) == 2.3", "tfffff" },
    { "round(a / 8, 2) == 0.88", "tfffff" },
    { "round(2.675*a, 2) == 18.73", "ffffff" },
    { "round(a, 1) == a", "tttttt" },
    { "torch._sym_sqrt(torch.sym_float(a)) < 2.7", "ttfftf" },
    { "math.sqrt(a - b) >= 0", "t?tt?t" },
    { "OpaqueUnaryFn_log(torch.sym_float(a)) < 2", "ttfftf" },
    { "OpaqueUnaryFn_sqrt(a)*OpaqueUnaryFn_sqrt(a) == a", "fffttf" },
    { "OpaqueUnaryFn_exp(a) > 1000", "tfttf?" },
    { "math.exp(1000*a) > 1", "??????" },
    { "math.log2(a) == 3", "fftfff" },
    { "math.log2(a - 7) > 0", "??ft?t" },
    { "math.log(a) >= math.log(7)", "tfttft" },
    { "math.pow(a, 2) == a**2", "tttttt" },
    { "math.pow(a, 0.5) == a**0.5", "tttttt" },
    { "math.cos(a) > 0.7 and math.sin(a) > 0.6 and math.tan(a) < 0.9", "tfffff" },
    { "math.atan(a) > 1.42 or math.tanh(a / 10) < 0.5", "tftttt" },
    { "math.sinh(a / 10) < 0.8 and math.cosh(a / 10) > 1.2", "tffff?" },
    { "math.asin(1 / a) < 0.2 and math.acos(1 / a) > 1.4", "ttttft" },
    { "OpaqueUnaryFn_asinh(a) > 2.6", "tfttft" },
    { "a ** -0.5 > 0.37", "ttfftf" },
    { "a ** -1 == 1 / a", "tttttt" },
    { "0 ** (7 - a) == 1", "tf??f?" },
    { "0 ** (a - 8) == 1", "??tf?f" },
    { "2 ** a == 128", "tfffff" },
    { "2 ** 3 ** 2 == 512", "tttttt" },
    { "-2 ** 2 == -4", "tttttt" },
    { "(-2) ** 2 == 4", "tttttt" },
    { "(-8) ** (1 / a) > 0", "????f?" },
    { "2 ** -a * 128 == 1.0", "tfffff" },
    { "a ** 40 > 1", "ttttft" },
    { "a * 9223372036854775807 > 1", "tttttt" },
    { "9223372036854775807 + a > 0", "tttttt" },
    { "-9223372036854775807 - a < 0", "tttttt" },
    { "a + 9223372036854775800 == 9223372036854775807", "tfffff" },
    { "9007199254740993 == 9007199254740992.0", "ffffff" },
    { "9007199254740993 > 9007199254740992.0", "tttttt" },
    { "a < math.inf", "tttttt" },
    { "a > -math.inf", "tttttt" },
    { "math.nan != a", "tttttt" },
    { "not (math.nan == a)", "tttttt" },
    { "max(1, a) == a", "tttttt" },
    { "max(3, (-2) + a) == 5", "tfffff" },
    { "min(10, a) == 7", "tfffff" },
    { "max(a, b, 8) == 8", "tftftf" },
    { "Max(a, b) < 40", "tttttf" },
    { "Min(a, b, 3) == 3", "ttttft" },
    { "max(a, 7.0) == 7", "ttfftf" },
    { "abs((-10) + a) > 2", "ttfttt" },
    { "Abs(b - a) == 2", "tffftf" },
    { "a & (-1) + a == 6", "tfffff" },
    { "(a & 3) == 3", "tfffft" },
    { "(a | 8) == 15", "tfffff" },
    { "(a ^ 5) == 2", "tfffff" },
    { "(a << 1) < 15", "ttfftf" },
    { "(a >> 1) == 3", "ttffff" },
    { "(-a >> 1) == -4", "tftfff" },
    { "a >> 70 == 0", "tttttt" },
    { "1 << a == 128", "tfffff" },
    { "1 << (70 * a) > 0", "tttttt" },
    { "1 >> (b - a) == 1", "?f?tf?" },
    { "3 < a <= 40", "ttttff" },
    { "3 < a < 7", "ftffff" },
    { "10 > a > b > 2", "tftfff" },
    { "1 == 1 == a", "fffftf" },
    { "a >= 0 and a <= b", "ftfttf" },
    { "a >= 0 or 1 / 0 > 1", "tttttt" },
    { "a == 0 and 1 / 0 > 1", "ffffff" },
    { "a // (b - 5) > 0", "?tftft" },
    { "a % (b - 5) > 0", "?tftft" },
    { "a / (b - 5) > 0", "?tftft" },
    { "a / 0.0 > 1", "??????" },
    { "a % 0.0 > 1", "??????" },
    { "a // 0.0 > 1", "??????" },
    { "(torch.sym_float(a)) % 2.5 > 0.5", "ttfttf" },
    { "(-torch.sym_float(a)) % 2.5 == 0.5", "tfffff" },
    { "torch.sym_float(a) // 2.0 == 3.0", "ttffff" },
    { "(-torch.sym_float(a)) // 2.0 == -4.0", "tftfff" },
    { "a % -2.5 == -0.5", "tfffff" },
    { "1.0 // 0.1 == 9.0", "tttttt" },
    { "a % 0.1 > 0.09", "tttttt" },
    { "torch.sym_float(math.floor(a / 4)) == (a / 4)", "ffttff" },
    { "a == math.ceil(((0.5*torch.sym_float(a)) / 0.5))", "tttttt" },
    { "0.1 * a == 0.7000000000000001", "tfffff" },
    { "0.1 + 0.2 == 0.3", "ffffff" },
    { "0.1*3 == 0.30000000000000004", "tttttt" },
    { "1e3 > a", "tttttf" },
    { "1.5e-3 < a", "tttttt" },
    { ".5 < a", "tttttt" },
    { "a == True*7", "tfffff" },
    { "False == 0", "tttttt" },
    { "not a == 7", "fttttt" },
    { "not not a == 7", "tfffff" },
    { "not (a > 30)", "tttttf" },
    { "(1 if a > 5 else 2) == 1", "ttttft" },
    { "(a if b > 50 else (b if a > 50 else 0)) == 0", "tttttf" },
    { "(1 / 0 if a < 0 else 3) == 3", "tttttt" },
    { "TruncToInt(1.5*ToFloat(a)) == 10", "tfffff" },
    { "CeilToInt(FloatTrueDiv(ToFloat(a), 2.0)) == 4", "tftfff" },
    { "FloorToInt(IntTrueDiv(a, 2)) == 3", "ttffff" },
    { "RoundToInt(IntTrueDiv(a, 2)) == 4", "tftfff" },
    { "RoundDecimal(IntTrueDiv(a, 3), 2) == 2.33", "tfffff" },
    { "FloorDiv(a, 2) == 3", "ttffff" },
    { "CleanDiv(14, a) == 2", "ttffff" },
    { "Mod(a, 4) == 3", "tfffft" },
    { "PythonMod(-a, 4) == 1", "tfffft" },
    { "PowByNatural(a, 2) == 49", "tfffff" },
    { "FloatPow(ToFloat(a), 0.5) > 2.6", "tfttft" },
    { "LShift(a, 2) == 28", "tfffff" },
    { "RShift(a, 1) == 3", "ttffff" },
    { "Identity(a) == 7", "tfffff" },
    { "pow(a, 2) == 49", "tfffff" },
    { "torch.sym_int(a / 2) == 3", "ttffff" },
    { "torch.sym_max(a, b) == 7", "tfffff" },
    { "torch.sym_not(a == 8)", "ttfttt" },
    { "int(a / 2) + 1 == 4", "ttffff" },
    { "float(a) == 7.0", "tfffff" },
    { "math.trunc(1e300) > a", "tttttt" },
    { "math.trunc(math.nan) > a", "??????" },
    { "(100 // a) == 14", "tfffff" },
    { "100 // (a - b) > 0", "tft?ff" },
    { "(((-1) + a + ((2 + a) // 3)) // ((2 + a) // 3)) == 3", "ttttft" },
    { "((a*b) % (4*a)) == 0", "ffttft" },
    { "- - a == 7", "tfffff" },
    { "+a == 7", "tfffff" },
    { "-a == -7", "tfffff" },
    { "a - -b == 12", "tftfff" },
    { "a-b-1 == 1", "tfffff" },
    { "a - (b - 1) == 3", "tfffff" },
    { "12 / a / b < 1", "ttttft" },
    { "12 // a * b == 5", "tfffff" },
    { "2*a % 5 == 4", "tfffff" },
    { "a + b * 2 == 17", "tfffff" },
    { "(a + b) * 2 == 24", "tftfff" },
    { "1 < 2 == (a == 7)", "ffffff" },
    { "a", "tttttt" },
};

static Program *program;
static Dim      dims_of_ab[2];

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.';
}

/* a and b as PyTorch writes them. */
static const char *written(const char *guard)
{
    Buf b = { .arena = program->arena };
    p2o_puts(&b, "");
    for (const char *s = guard; *s; s++) {
        bool alone = (*s == 'a' || *s == 'b') && (s == guard || !is_word(s[-1])) && !is_word(s[1]);
        if (alone)
            p2o_putf(&b, "L['x'].size()[%d]", *s - 'a');
        else
            p2o_put(&b, s, 1);
    }
    return b.at;
}

static bool value_of_ab(void *user, Dim sym, int64_t *v)
{
    const int64_t *at = user;
    *v = at[sym == dims_of_ab[1]];
    return true;
}

/* 64 bits are not enough: Python's ints have no end. */
static bool is_huge(const char *guard)
{
    static const char *const huge[] = { "a ** 40 > 1",
                                        "a * 9223372036854775807 > 1",
                                        "9223372036854775807 + a > 0",
                                        "-9223372036854775807 - a < 0",
                                        "a + 9223372036854775800 == 9223372036854775807",
                                        "1 << (70 * a) > 0",
                                        "2 ** a == 128",
                                        "1 << a == 128",
                                        "math.trunc(1e300) > a" };
    for (size_t i = 0; i < COUNT_OF(huge); i++)
        if (same(guard, huge[i]))
            return true;
    return false;
}

static Answer answer_at(const Guard *g, size_t k)
{
    Dim now[2];
    for (size_t i = 0; i < p2o_guard_nsize(g); i++)
        now[i] = p2o_guard_size(g, i);
    return p2o_guard_holds(g, program->dims, now, value_of_ab, (void *)(uintptr_t)sizes_of_ab[k]);
}

static void check_truths(void)
{
    for (size_t i = 0; i < COUNT_OF(truths); i++) {
        const Guard *g = p2o_guard_parse(program, written(truths[i].guard));
        CHECK(g != NULL);
        for (size_t k = 0; g && k < COUNT_OF(sizes_of_ab); k++) {
            Answer a = answer_at(g, k);
            char   said = a == YES ? 't' : a == NO ? 'f' : '?';
            bool right = said == truths[i].answers[k] || (said == '?' && is_huge(truths[i].guard));
            CHECK(right);
            if (!right)
                printf("  %s at %zu: %c, Python says %c\n", truths[i].guard, k, said,
                       truths[i].answers[k]);
        }
    }
}

static void check_not_understood(void)
{
    static const char *const wrong[] = { "",
                                         "a ==",
                                         "== a",
                                         "(a == 3",
                                         "a == 3)",
                                         "a == 3 4",
                                         "L['y'].size()[0] == 3",
                                         "L['x'].size()[2] == 3",
                                         "L['x'].size()[0 == 3",
                                         "L['x'].stride()[0] == 3",
                                         "L['x'] == 3",
                                         "f(a) == 3",
                                         "a = 3",
                                         "max(a) == 3",
                                         "math.trunc(a, 2) == 3",
                                         "math.trunc() == 3",
                                         "a ** == 3",
                                         "a if 1",
                                         "a and",
                                         "not",
                                         "1.2.3 == a",
                                         "99999999999999999999 > a",
                                         "'a' == a",
                                         "a.is_integer()",
                                         "lambda: a",
                                         "a == 3 #",
                                         "a @ b == 3",
                                         "[a][0] == 7" };
    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        CHECK(!p2o_guard_parse(program, written(wrong[i])));
}

static const char *many(const char *head, const char *part, int n, const char *tail)
{
    Buf b = { .arena = program->arena };
    p2o_puts(&b, head);
    for (int i = 0; i < n; i++)
        p2o_puts(&b, part);
    p2o_puts(&b, tail);
    return b.at;
}

/* A file can't make it recurse: what is nested too deep is not understood, what is long is no
 * deeper. */
static void check_bounds(void)
{
    enum { MANY = 100000 };
    static const char *const deep[] = { "(",         "-",     "not ",
                                        "max(1, ",   "2 ** ", "1 if 1 else ",
                                        "math.sqrt(" };
    for (size_t i = 0; i < COUNT_OF(deep); i++)
        CHECK(!p2o_guard_parse(program, many("", deep[i], MANY, "1")));
    CHECK(!p2o_guard_parse(program, many("1", " + 1", MANY, " > 2")));
    const Guard *g = p2o_guard_parse(program, many("1", " + 1", 4000, " == 4001"));
    CHECK(g && answer_at(g, 0) == YES);
    g = p2o_guard_parse(program, many("1", " < 2 == 2", 1000, ""));
    CHECK(g && answer_at(g, 0) == NO);
    g = p2o_guard_parse(program, many("", "(", 40, many("1", ")", 40, "")));
    CHECK(g && answer_at(g, 0) == YES);
}

static bool python_is(const char *guard, const char *want)
{
    Dim          now[2] = { p2o_dim_sym(program->dims, "batch"), NULL };
    const Guard *g = p2o_guard_parse(program, written(guard));
    now[1] = p2o_dim_add(program->dims, p2o_dim_pow(program->dims, now[0], 2),
                         p2o_dim_int(program->dims, 1));
    return g && same(p2o_guard_python(g, program->dims, now), want);
}

static void check_text(void)
{
    CHECK(python_is("a != 7", "batch != 7"));
    CHECK(python_is("a*b > 3", "batch*(batch**2 + 1) > 3"));
    CHECK(
        python_is("math.trunc(0.7*torch.sym_float(a)) == 4", "math.trunc(0.7*float(batch)) == 4"));
    CHECK(python_is("torch._sym_sqrt(a) < OpaqueUnaryFn_log(3)", "math.sqrt(batch) < math.log(3)"));
    CHECK(python_is("FloorDiv(a, 2) == Max(1, a)", "operator.floordiv(batch, 2) == max(1, batch)"));
    CHECK(python_is("pow(a, 2) < math.pow(a, 3)", "pow(batch, 2) < math.pow(batch, 3)"));
}

static void check_sides(void)
{
    double       v;
    const Guard *g = p2o_guard_parse(program, written("(a // 4) == 3"));
    CHECK(g && p2o_guard_relation(g) == GUARD_EQ && !p2o_guard_number(g, 0, &v) &&
          p2o_guard_number(g, 1, &v) && v == 3);
    CHECK(g && same(p2o_dim_text(program->dims, p2o_guard_dim(g, program->dims, 0)), "s0//4"));
    g = p2o_guard_parse(program, written("1 < 2*a + b"));
    CHECK(g && p2o_guard_relation(g) == GUARD_LT && p2o_guard_number(g, 0, &v) && v == 1);
    CHECK(g && same(p2o_dim_text(program->dims, p2o_guard_dim(g, program->dims, 1)), "2*s0 + s1"));
    g = p2o_guard_parse(program, written("1 < a < 3"));
    CHECK(g && p2o_guard_relation(g) == GUARD_OTHER);
    g = p2o_guard_parse(program, written("a / 2 == b"));
    CHECK(g && !p2o_guard_dim(g, program->dims, 0) &&
          p2o_guard_dim(g, program->dims, 1) == dims_of_ab[1]);
}

/* A capture from 2 on, and another one at 1. */
static void check_claim(void)
{
    Bindings *b = p2o_bindings_new(program->dims, 1);
    int64_t   lo, hi;
    for (int i = 0; i < 2; i++) {
        ProgramRange r = { p2o_dim_name(dims_of_ab[i]), dims_of_ab[i], i ? 5 : 2, 64 };
        VEC_PUSH(program->arena, &program->ranges, r);
    }
    CHECK(p2o_range_collect(program, b));
    p2o_range_of(program, b, dims_of_ab[0], &lo, &hi);
    CHECK(lo == 2 && hi == 64);
    p2o_range_claim(program, b, dims_of_ab[0], 1);
    p2o_range_claim(program, b, dims_of_ab[1], 1);
    p2o_range_of(program, b, dims_of_ab[0], &lo, &hi);
    CHECK(lo == 1 && hi == 64);
    p2o_range_of(program, b, dims_of_ab[1], &lo, &hi);          /* a need is a need */
    CHECK(lo == 5 && hi == 64);
}

int main(void)
{
    Arena *a = p2o_arena_new(NULL, NULL);
    program = p2o_program_new(p2o_diags_new(a, NULL, NULL), p2o_dims_new(a));
    dims_of_ab[0] = p2o_dim_sym(program->dims, "s0");
    dims_of_ab[1] = p2o_dim_sym(program->dims, "s1");
    Var *x = NEW(program->arena, Var);
    *x = (Var){ .name = "x", .recorded = { TY_TENSOR, DT_F32, { 2, dims_of_ab }, NULL } };
    VEC_PUSH(program->arena, &program->main->inputs, x);
    VEC_PUSH(program->arena, &program->inputs, (InputSpec){ .name = "x", .var = x });
    check_truths();
    check_not_understood();
    check_bounds();
    check_text();
    check_sides();
    check_claim();
    p2o_arena_free(a);
    return check_report();
}
