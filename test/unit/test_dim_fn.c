/* Functions of sizes: their values against Python's, how they read and print, and what is known of
 * them for all sizes. */
#include "base/vec.h"
#include "check.h"
#include "dyn/guard.h"
#include "ir/dim.h"

#include <inttypes.h>

#include "dim_fn_values.h"

static Arena *arena;
static Dims  *t;
static Dim    n;

static void start(void)
{
    arena = p2o_arena_new(NULL, NULL);
    t = p2o_dims_new(arena);
    n = p2o_dim_sym(t, "n");
}

static void finish(void) { p2o_arena_free(arena); }

static Dim read(const char *text)
{
    const char *error;
    Dim         d = p2o_dim_parse(t, str_of(text), &error);
    CHECK(!error);
    return d;
}

/* `text` is read as something that prints as `expected`, which reads back as the same. */
static bool becomes(const char *text, const char *expected)
{
    Dim d = read(text);
    if (d && same(p2o_dim_text(t, d), expected) && read(expected) == d)
        return true;
    printf("%s is \"%s\", not \"%s\"\n", text, p2o_dim_text(t, d), expected);
    return false;
}

static bool given(void *user, Dim sym, int64_t *v)
{
    (void)sym;
    *v = *(const int64_t *)user;
    return true;
}

static Dim number_for(void *user, Dim sym)
{
    (void)sym;
    return p2o_dim_int(t, *(const int64_t *)user);
}

static bool value_at(Dim d, int64_t at, int64_t *v) { return p2o_dim_eval(t, d, given, &at, v); }

/* 0 where there is none, which no caller expects. */
static int64_t at(const char *text, int64_t size)
{
    int64_t v = 0;
    return value_at(read(text), size, &v) ? v : 0;
}

static void test_values(void)
{
    for (size_t i = 0; i < COUNT_OF(said_by_python); i++) {
        start();
        Dim      d = p2o_dim_fn(t, said_by_python[i].fn, said_by_python[i].factor, n);
        uint64_t hash = 14695981039346656037u;
        bool     same_number = true;
        for (size_t k = 0; k < 3001 + said_by_python[i].nlarge; k++) {
            int64_t size = k < 3001 ? (int64_t)k : large[k - 3001], v = 0, folded;
            CHECK(value_at(d, size, &v));
            hash = (hash ^ (uint64_t)v) * 1099511628211u;
            Dim number = p2o_dim_subst(t, d, number_for, &size);
            same_number &= p2o_dim_is_int(number, &folded) && folded == v;
        }
        bool read_back = d == read(p2o_dim_text(t, d));
        CHECK(hash == said_by_python[i].hash && same_number && read_back);
        if (hash != said_by_python[i].hash || !same_number || !read_back)
            printf("  %s\n", p2o_dim_text(t, d));
        finish();
    }
}

static void test_no_values(void)
{
    start();
    int64_t v;
    CHECK(!value_at(read("isqrt(n - 5)"), 4, &v) && value_at(read("isqrt(n - 5)"), 5, &v) &&
          v == 0);
    CHECK(!value_at(read("pow2(n)"), 63, &v) && value_at(read("pow2(n)"), 62, &v) &&
          v == 1ll << 62);
    CHECK(!value_at(read("pow2(n - 1)"), 0, &v) && at("pow2(n)", 0) == 1);
    CHECK(value_at(read("bit_length(n - 5)"), 4, &v) && v == 1 && at("bit_length(n - 9)", 1) == 4);
    CHECK(!value_at(p2o_dim_fn(t, FN_FLOOR, 1.1e300, n), 9, &v));
    CHECK(value_at(p2o_dim_fn(t, FN_FLOOR, 1.1e300, n), 0, &v) && v == 0);
    CHECK(at("isqrt(n)", INT64_MAX) == 3037000499);
    CHECK(!p2o_dim_fn(t, FN_ISQRT, 0, p2o_dim_int(t, -1)) &&
          !p2o_dim_fn(t, FN_POW2, 0, p2o_dim_int(t, 63)));
    CHECK(!p2o_dim_fn(t, FN_TRUNC, 0.7, NULL) && !p2o_dim_fn(t, FN_TRUNC_OVER, 0, n));
    double inf = 1e300 * 1e300;
    CHECK(!p2o_dim_fn(t, FN_TRUNC, inf, n) && !p2o_dim_fn(t, FN_ROUND_OVER, inf - inf, n));
    CHECK(p2o_dim_fn(t, FN_CEIL, 0, n) == p2o_dim_int(t, 0) &&
          p2o_dim_fn(t, FN_CEIL, -0.0, n) == p2o_dim_int(t, 0));
    finish();
}

/* Halves go to the even number. */
static void test_halves(void)
{
    start();
    CHECK(at("round(n/2)", 5) == 2 && at("round(n/2)", 7) == 4 && at("round(2.5*n)", 3) == 8);
    CHECK(at("round(-0.5*n)", 5) == -2 && at("round(0.5 * n)", 11) == 6);
    CHECK(at("int(-0.7*n)", 3) == -2 && at("floor(-0.7*n)", 3) == -3 &&
          at("ceil(-0.7*n)", 3) == -2);
    finish();
}

static void test_reading(void)
{
    start();
    CHECK(becomes("TruncToInt(0.7*ToFloat(n))", "trunc(0.7*n)"));
    CHECK(
        becomes("TruncToInt(Mul(Float('0.69999999999999996', precision=53), ToFloat(Symbol('n'))))",
                "trunc(0.7*n)"));
    CHECK(becomes("math.trunc(n*0.7)", "trunc(0.7*n)") && becomes("int(0.7*n)", "trunc(0.7*n)"));
    CHECK(becomes("FloorToInt(-0.7*ToFloat(n + 1))", "floor(-0.7*(n + 1))"));
    CHECK(becomes("RoundToInt(0.7*ToFloat(2*n))", "round(0.7*(2*n))"));
    CHECK(becomes("CeilToInt(FloatTrueDiv(ToFloat(n), 0.3))", "ceil(n/0.3)"));
    CHECK(becomes("floor(n*(-1)/0.3)", "floor((-n)/0.3)") &&
          becomes("floor(-(n/0.3))", "floor(n/(-0.3))"));
    CHECK(becomes("TruncToInt(FloatTrueDiv(ToFloat(n), 3.0))", "n//3"));
    CHECK(becomes("TruncToInt(IntTrueDiv(n, 3))", "n//3") &&
          becomes("CeilToInt(1.25*n)", "n + (n + 3)//4"));
    CHECK(becomes("RoundToInt(IntTrueDiv(4*n, 6))", "round(2*n/3)") &&
          becomes("round(1.5*n)", "round(3*n/2)"));
    CHECK(becomes("int((n - 4)/2)", "trunc((n - 4)/2)") &&
          becomes("int(0.5*(n - 4))", "trunc((n - 4)/2)"));
    CHECK(becomes("TruncToInt(OpaqueUnaryFn_sqrt(ToFloat(n)))", "isqrt(n)"));
    CHECK(becomes("math.isqrt(n + 1)*2", "2*isqrt(n + 1)") && becomes("isqrt(n)**2", "isqrt(n)^2"));
    CHECK(becomes("math.floor(math.log2(n))", "bit_length(n) - 1"));
    CHECK(becomes("math.ceil(log2(n))", "bit_length(n - 1)"));
    CHECK(becomes("PowByNatural(2, n)", "pow2(n)") && becomes("4**(n + 1)", "pow2(2*n + 2)"));
    CHECK(becomes("LShift(3, n)", "3*pow2(n)") && becomes("RShift(7*n, n)", "7*n//pow2(n)"));
    CHECK(becomes("BitwiseFn_bitwise_and(n, 3)", "n % 4") &&
          becomes("BitwiseFn_bitwise_and(-2, n)", "n - n % 2"));
    CHECK(becomes("trunc(1e-09*n)", "trunc(1e-09*n)"));
    CHECK(becomes("max(trunc(0.7*n), isqrt(n), 3) % 4", "max(trunc(0.7*n), isqrt(n), 3) % 4"));
    CHECK(becomes("TruncToInt(2.0*IntTrueDiv(n, 3))", "2*n//3") &&
          becomes("FloorToInt(IntTrueDiv(n, 6) + 0.5)", "(n + 3)//6"));
    CHECK(becomes("TruncToInt(FloatTrueDiv(IntTrueDiv(n, 3), 3.0))", "n//9"));
    CHECK(read("round(n)") == n && read("ceil(3*n)") == read("3*n"));

    static const char *const none[] = {
        "TruncToInt(49.0*(IntTrueDiv(n, 49)))",
        "TruncToInt(IntTrueDiv(n, 3) + IntTrueDiv(m, 3))",
        "0.7*n",
        "0.7*ToFloat(n) + n",
        "sqrt(n)",
        "trunc(0.7*n + 0.5)",
        "trunc(0.5*(0.7*n))",
        "trunc(0.7*(n/3))",
        "round(log2(n))",
        "isqrt(0.7*n)",
        "trunc(0.7*0.7)*0.7",
        "3**n",
        "2**(n/2)",
        "trunc(sqrt(n)*2)",
        "trunc(n/m/0.3)",
        "round(n/m)",
        "BitwiseFn_bitwise_and(n, m)",
        "sqrt(sqrt(n))",
        "trunc(0.3/n)",
        "trunc(n/0.0)",
    };
    for (size_t i = 0; i < COUNT_OF(none); i++) {
        const char *error;
        bool        is_none = !p2o_dim_parse(t, str_of(none[i]), &error) && !error;
        CHECK(is_none);
        if (!is_none)
            printf("  %s is %s\n", none[i], p2o_dim_text(t, read(none[i])));
    }
    finish();
}

static void test_roots_and_bits(void)
{
    start();
    Dim up = p2o_dim_rounded(t, FN_CEIL, (DimReal){ REAL_SQRT, 0, n });
    Dim near = p2o_dim_rounded(t, FN_ROUND, (DimReal){ REAL_SQRT, 0, n });
    for (int64_t size = 0, r = 0; size < 3000; size++) {
        int64_t v = -1, w = -1;
        r += (r + 1) * (r + 1) <= size;
        CHECK(value_at(up, size, &v) && v == r + (r * r < size));
        CHECK(value_at(near, size, &w) && w == r + (4 * size > (2 * r + 1) * (2 * r + 1)));
    }
    static const int64_t masks[] = {
        0, 1, 3, 5, 6, -1, -2, -8, 0x5a, -0x5b, 1ll << 40, ~(1ll << 40)
    };
    for (size_t i = 0; i < COUNT_OF(masks); i++) {
        Dim both = p2o_dim_and(t, p2o_dim_sub(t, n, p2o_dim_int(t, 100)), masks[i]);
        for (int64_t size = 0, v; size < 300; size++)
            CHECK(value_at(both, size, &v) && v == ((size - 100) & masks[i]));
    }
    finish();
}

static bool is_always(const char *a, const char *b)
{
    return p2o_dim_le(t, read(a), read(b)) == YES;
}

static bool ranges(const char *text, int64_t lo, int64_t hi)
{
    int64_t l, h;
    p2o_dim_range(t, read(text), &l, &h);
    if (l == lo && h == hi)
        return true;
    printf("%s: [%" PRId64 ", %" PRId64 "]\n", text, l, h);
    return false;
}

static void test_bounds(void)
{
    start();
    p2o_dim_set_range(t, p2o_dim_sym(t, "p"), 1, NO_UPPER);
    p2o_dim_set_range(t, p2o_dim_sym(t, "q"), 10, 100);
    p2o_dim_set_range(t, p2o_dim_sym(t, "z"), -9, 20);
    CHECK(ranges("trunc(0.7*n)", 0, NO_UPPER) && ranges("trunc(-0.7*n)", NO_LOWER, 0));
    CHECK(ranges("trunc(0.7*q)", 7, 70) && ranges("ceil(q/0.3)", 34, 334) &&
          ranges("floor(-0.7*q)", -70, -7));
    CHECK(ranges("isqrt(p)", 1, NO_UPPER) && ranges("isqrt(q)", 3, 10) && ranges("isqrt(z)", 0, 4));
    CHECK(ranges("bit_length(n)", 0, 63) && ranges("bit_length(q)", 4, 7) &&
          ranges("bit_length(z)", 0, 5));
    CHECK(ranges("bit_length(-q)", 4, 7));
    CHECK(ranges("pow2(n)", 1, 1ll << 62) && ranges("pow2(q - 8)", 4, 1ll << 62) &&
          ranges("pow2(q//20)", 1, 32));
    CHECK(ranges("round(z/2)", -4, 10));
    CHECK(is_always("trunc(0.7*n)", "n") && is_always("ceil(0.7*n)", "n") &&
          is_always("round(n/1.3)", "n"));
    CHECK(is_always("n", "floor(1.1*n)") && is_always("n", "trunc(n/0.9)") &&
          is_always("isqrt(n)", "n"));
    CHECK(is_always("bit_length(n)", "n") && is_always("n + 1", "pow2(n)"));
    CHECK(read("min(n, trunc(0.7*n))") == read("trunc(0.7*n)") &&
          read("max(0, isqrt(n))") == read("isqrt(n)"));
    CHECK(!is_always("trunc(0.7*z)", "z") && !is_always("n", "trunc(0.7*n)") &&
          !is_always("trunc(-0.7*n)", "n - 1"));
    CHECK(p2o_dim_eq(t, read("trunc(0.7*q)"), read("71")) == NO);
    Dim d = read("max(trunc(0.7*n), 0) + isqrt(n)*pow2(bit_length(n))");
    p2o_dim_set_floor(t, n, 2);
    CHECK(p2o_dim_assume(t, d, 2) == d);
    p2o_dim_set_hint(t, n, 20);
    int64_t v;
    CHECK(p2o_dim_hint(t, d, &v) && v == 14 + 4 * 32);
    finish();
}

static void test_nesting(void)
{
    start();
    Dim d = n;
    for (int i = 0; i < 100; i++)
        d = p2o_dim_fn(t, FN_TRUNC, 0.7, d);
    CHECK(!d);                          /* past the limits, as any Dim */
    CHECK(same(p2o_dim_python(t, read("2*isqrt(n)^2 + pow2(n) + round(n/3)")),
               "2*math.isqrt(n)**2 + pow(2, n) + round(n/3)"));
    CHECK(same(p2o_dim_python(t, read("max(bit_length(n), trunc(0.7*(n + 1)))")),
               "max(int.bit_length(n), math.trunc(0.7*(n + 1)))"));
    CHECK(same(p2o_dim_fn_python(str_of("isqrt")), "math.isqrt(") &&
          !p2o_dim_fn_python(str_of("max")));
    finish();
}

int main(void)
{
    test_values();
    test_no_values();
    test_halves();
    test_reading();
    test_roots_and_bits();
    test_bounds();
    test_nesting();
    return check_report();
}
