/* Symbolic integers: each simplification by example, then random expressions built twice, as Dims
 * and as plain trees; whatever the Dims say must agree with the trees' values. */
#include "base/num.h"
#include "base/vec.h"
#include "check.h"
#include "ir/dim.h"

#include <inttypes.h>
#include <math.h>

static Arena *arena;
static Dims  *t;

static void start(void)
{
    arena = p2o_arena_new(NULL, NULL);
    t = p2o_dims_new(arena);
}

/* With symbols made in this order, which is the order of terms. */
static void start_with(const char *letters)
{
    start();
    for (; *letters; letters++)
        p2o_dim_sym(t, (char[]){ *letters, 0 });
}

static void finish(void) { p2o_arena_free(arena); }

static Dim sym(const char *name, int64_t lo, int64_t hi)
{
    Dim s = p2o_dim_sym(t, name);
    p2o_dim_set_range(t, s, lo, hi);
    return s;
}

static Dim num(int64_t v) { return p2o_dim_int(t, v); }

static Dim read(const char *text)
{
    const char *error;
    Dim         d = p2o_dim_parse(t, str_of(text), &error);
    if (error)
        printf("%s: %s\n", text, error);
    CHECK(!error);
    return d;
}

static bool prints(Dim d, const char *text)
{
    if (same(p2o_dim_text(t, d), text))
        return true;
    printf("is \"%s\", not \"%s\"\n", p2o_dim_text(t, d), text);
    return false;
}

/* `text` is read as something that prints as `expected`, which reads back as the same. */
static bool becomes(const char *text, const char *expected)
{
    Dim d = read(text);
    if (!prints(d, expected)) {
        printf("  from \"%s\"\n", text);
        return false;
    }
    return d && read(expected) == d;
}

/* Well formed, but no integer expression. */
static bool is_no_integer(const char *text)
{
    const char *error;
    Dim         d = p2o_dim_parse(t, str_of(text), &error);
    return !d && !error;
}

static bool is_malformed(const char *text)
{
    const char *error;
    Dim         d = p2o_dim_parse(t, str_of(text), &error);
    return !d && error && *error && !strchr(error, '\n');
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

static void test_nodes(void)
{
    start();
    Dim     a = p2o_dim_sym(t, "a"), b = p2o_dim_sym(t, "b"), two = num(2);
    int64_t v = 0;
    CHECK(a == p2o_dim_sym(t, "a") && a != b && two == num(2));
    CHECK(p2o_dims_arena(t) == arena);
    CHECK(p2o_dim_is_int(two, &v) && v == 2 && p2o_dim_is_int(two, NULL));
    CHECK(!p2o_dim_is_int(a, &v) && !p2o_dim_is_int(NULL, &v));
    CHECK(p2o_dim_is_sym(a) && !p2o_dim_is_sym(two) && !p2o_dim_is_sym(NULL));
    CHECK(same(p2o_dim_name(a), "a"));
    CHECK(p2o_dim_kind(a) == DIM_SYM && p2o_dim_kind(two) == DIM_INT);

    Dim q = p2o_dim_floordiv(t, a, num(3)), r = p2o_dim_mod(t, b, num(3));
    CHECK(p2o_dim_kind(q) == DIM_FLOORDIV && p2o_dim_operand(q, 0) == a);
    CHECK(p2o_dim_operand(q, 1) == num(3) && p2o_dim_kind(r) == DIM_MOD);
    CHECK(p2o_dim_kind(p2o_dim_min(t, a, b)) == DIM_MIN);
    CHECK(p2o_dim_kind(p2o_dim_max(t, a, b)) == DIM_MAX);
    CHECK(p2o_dim_nterm(a) == 1 && p2o_dim_term(a, 0)->atom[0] == a);
    CHECK(p2o_dim_term(a, 0)->coef == 1 && p2o_dim_term(a, 0)->power[0] == 1);
    CHECK(p2o_dim_nterm(q) == 1 && p2o_dim_term(q, 0)->atom[0] == q);
    CHECK(p2o_dim_nterm(two) == 1 && p2o_dim_term(two, 0)->natom == 0);
    CHECK(p2o_dim_nterm(num(0)) == 0);

    Dim s = read("7 + 3*(a//3)*b^2 - b + a");
    CHECK(p2o_dim_kind(s) == DIM_SUM && p2o_dim_nterm(s) == 4);
    CHECK(p2o_dim_term(s, 0)->atom[0] == a && p2o_dim_term(s, 0)->coef == 1);
    CHECK(p2o_dim_term(s, 1)->natom == 2 && p2o_dim_term(s, 1)->coef == 3);
    CHECK(p2o_dim_term(s, 1)->atom[0] == b && p2o_dim_term(s, 1)->power[0] == 2);
    CHECK(p2o_dim_term(s, 1)->atom[1] == q && p2o_dim_term(s, 1)->power[1] == 1);
    CHECK(p2o_dim_term(s, 2)->coef == -1 && p2o_dim_term(s, 3)->coef == 7);
    CHECK(p2o_dim_term(s, 3)->natom == 0);
    finish();
}

static void test_names(void)
{
    start();
    Dim a = p2o_dim_fresh(t, "u"), b = p2o_dim_fresh(t, "u"), c = p2o_dim_fresh(t, "u");
    CHECK(prints(a, "u") && prints(b, "u_1") && prints(c, "u_2"));
    p2o_dim_sym(t, "u_3");
    CHECK(prints(p2o_dim_fresh(t, "u"), "u_4"));
    CHECK(prints(p2o_dim_fresh(t, "9 x"), "_9_x") && prints(p2o_dim_fresh(t, ""), "_"));
    CHECK(prints(p2o_dim_fresh(t, ""), "__1") && prints(p2o_dim_fresh(t, "9 x"), "_9_x_1"));
    char long_name[300];
    memset(long_name, 'n', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = 0;
    Dim x = p2o_dim_fresh(t, long_name), y = p2o_dim_fresh(t, long_name);
    CHECK(x && y && x != y && p2o_dim_sym(t, p2o_dim_name(y)) == y);

    CHECK(!p2o_dim_sym(t, long_name) && !p2o_dim_sym(t, "") && !p2o_dim_sym(t, "a b"));
    CHECK(!p2o_dim_sym(t, "1a") && !p2o_dim_sym(t, ".a") && !p2o_dim_sym(t, "a-b"));
    CHECK(p2o_dim_sym(t, "batch_size") && p2o_dim_sym(t, "x.0") && p2o_dim_sym(t, "_"));
    CHECK(p2o_dim_has_sym(t, STR("x.0")) && !p2o_dim_has_sym(t, STR("x.1")));
    CHECK(p2o_dim_name_ok(STR("A9.b_")) && !p2o_dim_name_ok(STR("A 9")));
    p2o_dim_set_range(t, NULL, 1, 2);
    p2o_dim_set_hint(t, NULL, 1);

    static const char *const names[] = {
        "max", "min", "Mod", "Symbol", "oo", "nan", "true", "True", "E", "x.0", "_", "batch_size",
        "Add", "Float", "inf", "None",
    };
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        Dim s = p2o_dim_sym(t, names[i]);
        CHECK(prints(s, names[i]) && read(names[i]) == s);
        Dim e = p2o_dim_floordiv(t, p2o_dim_max(t, s, read("u + 1")), num(3));
        CHECK(read(p2o_dim_text(t, e)) == e);
    }
    finish();
}

static void test_ring(void)
{
    start_with("abcsxyp");
    CHECK(becomes("past + seq", "past + seq"));
    CHECK(becomes("seq + past", "past + seq"));
    CHECK(becomes("b*s*2", "2*b*s"));
    CHECK(becomes("b*b", "b^2"));
    CHECK(becomes("s - s", "0"));
    CHECK(becomes("-s + 8", "8 - s"));
    CHECK(becomes("-s - 8", "-s - 8"));
    CHECK(becomes("-(b*s)", "-b*s"));
    CHECK(becomes("0*s", "0"));
    CHECK(becomes("(s + 1)*(s - 1)", "s^2 - 1"));
    CHECK(becomes("(b + s)^3", "3*b*s^2 + 3*b^2*s + b^3 + s^3"));
    CHECK(becomes("(b + s)**2 - b**2", "2*b*s + s^2"));
    CHECK(becomes("-2^2", "-4"));
    CHECK(becomes("(-2)^2", "4"));
    CHECK(becomes("2^3^2", "512"));
    CHECK(becomes("--3", "3"));
    CHECK(becomes("-(-9223372036854775807) - 1", "9223372036854775806"));
    CHECK(becomes("-9223372036854775808", "-9223372036854775808"));
    CHECK(becomes("s + -9223372036854775808", "s + -9223372036854775808"));
    CHECK(becomes("-9223372036854775808*s*b + s", "s + -9223372036854775808*b*s"));
    CHECK(becomes("9223372036854775807*s", "9223372036854775807*s"));

    Dim s = p2o_dim_sym(t, "s"), big = num(INT64_MAX);
    CHECK(!p2o_dim_add(t, big, num(1)) && !p2o_dim_mul(t, big, num(2)));
    CHECK(!p2o_dim_neg(t, num(INT64_MIN)) && !p2o_dim_sub(t, num(INT64_MIN), num(1)));
    CHECK(!p2o_dim_add(t, p2o_dim_mul(t, big, s), s));
    CHECK(!p2o_dim_mul(t, p2o_dim_mul(t, big, s), num(-2)));
    CHECK(!p2o_dim_pow(t, s, -1) && p2o_dim_pow(t, s, 0) == num(1));
    CHECK(p2o_dim_pow(t, num(2), 62) == num((int64_t)1 << 62) && !p2o_dim_pow(t, num(2), 63));
    CHECK(p2o_dim_pow(t, num(-2), 63) == num(INT64_MIN));
    CHECK(p2o_dim_pow(t, num(-1), INT64_MAX) == num(-1) && p2o_dim_pow(t, num(0), 0) == num(1));
    CHECK(!p2o_dim_pow(t, s, INT64_MAX) && !p2o_dim_pow(t, s, 33) && p2o_dim_pow(t, s, 32));
    CHECK(!p2o_dim_add(t, NULL, s) && !p2o_dim_add(t, s, NULL) && !p2o_dim_sub(t, NULL, NULL));
    CHECK(!p2o_dim_mul(t, NULL, num(0)) && !p2o_dim_neg(t, NULL) && !p2o_dim_pow(t, NULL, 2));
    CHECK(prints(NULL, "?"));
    finish();
}

static void test_floordiv(void)
{
    start_with("abcsxyp");
    sym("p", 1, NO_UPPER);
    sym("q", 2, NO_UPPER);
    sym("z", -9, 9);
    sym("n", NO_LOWER, -1);
    sym("d", 0, 7);
    CHECK(becomes("s//1", "s"));
    CHECK(becomes("s//-1", "-s"));
    CHECK(becomes("(8*a + b)//8", "a + b//8"));
    CHECK(becomes("(16*a + 24)//8", "2*a + 3"));
    CHECK(becomes("(9*a)//8", "a + a//8"));
    CHECK(becomes("(h - 1)//2 + 1", "(h + 1)//2"));
    CHECK(becomes("(h + 9)//4", "(h + 1)//4 + 2"));
    CHECK(becomes("(2*a + 1)//4", "a//2"));
    CHECK(becomes("(6*a + 5)//4", "a + a//2 + 1"));
    CHECK(becomes("(6*a*b + 4)//9", "(2*a*b + 1)//3"));
    CHECK(becomes("(x//3)//5", "x//15"));
    CHECK(becomes("(x//3 + 1)//5", "(x + 3)//15"));
    CHECK(becomes("(y + x//2)//4", "(x + 2*y)//8"));
    CHECK(becomes("(x//p)//3", "x//(3*p)"));
    CHECK(becomes("(x//3)//p", "x//(3*p)"));
    CHECK(becomes("-((-s)//8)", "(s + 7)//8"));
    CHECK(becomes("CeilDiv(s, 8)", "(s + 7)//8"));
    CHECK(read("CeilDiv(s, p)") == read("(s + p - 1)//p"));
    CHECK(becomes("d//8", "0"));
    CHECK(becomes("(d + 8)//8", "1"));
    CHECK(becomes("(d - 8)//8", "-1"));
    CHECK(becomes("(d + 1)//8", "(d + 1)//8"));
    CHECK(becomes("7//2", "3"));
    CHECK(becomes("-7//2", "-4"));
    CHECK(becomes("7//-2", "-4"));
    CHECK(becomes("s//-3", "-((s + 2)//3)"));
    CHECK(becomes("9223372036854775807//2", "4611686018427387903"));

    /* symbolic divisors cancel only where they are never 0 */
    CHECK(becomes("(p*s)//p", "s"));
    CHECK(becomes("(b*s)//s", "b*s//s"));
    CHECK(becomes("(p*s + p*x + 3)//p", "s + x + 3//p"));
    CHECK(becomes("p//p", "1"));
    CHECK(becomes("b//b", "b//b"));
    CHECK(becomes("0//p", "0"));
    CHECK(becomes("0//b", "0//b"));
    CHECK(becomes("(p - 1)//p", "0"));
    CHECK(becomes("(p + 1)//(p + 2)", "0"));
    CHECK(becomes("(6*b)//(4*s)", "3*b//(2*s)"));
    CHECK(becomes("(p*b)//(p*s)", "b//s"));
    CHECK(becomes("(p*b + p*p)//(p*s)", "(b + p)//s"));
    CHECK(becomes("(x*p + x*q)//(p + q)", "x"));
    CHECK(becomes("(x*p + x*q + d)//(p + q)", "x + d//(p + q)"));
    CHECK(becomes("s//n", "-((s - 1)//(-n)) - 1"));
    CHECK(becomes("s//(9 - z)", "s//(9 - z)"));
    CHECK(becomes("s//(8 - z)", "(-s)//(z - 8)"));
    CHECK(becomes("1//q", "0"));
    CHECK(becomes("(-1)//q", "-1"));

    /* padded up to a multiple */
    CHECK(becomes("(s + (-s) % 8)//2", "4*((s + 7)//8)"));
    CHECK(becomes("(s + (-s) % 8)//8", "(s + 7)//8"));
    CHECK(becomes("(s + (-s) % 8 + 1)//2", "4*((s + 7)//8)"));
    CHECK(becomes("(p + (-p) % 8)//((p + 7)//8)", "8"));
    CHECK(becomes("(p + (-p) % 8) % ((p + 7)//8)", "0"));
    CHECK(becomes("(p + (-p) % 8 + 1)//((p + 7)//8)", "(p + (-p) % 8 + 1)//((p + 7)//8)"));
    CHECK(becomes("(s + (-s) % 8)//((s + 7)//8)", "(s + (-s) % 8)//((s + 7)//8)"));

    Dim s = p2o_dim_sym(t, "s");
    CHECK(!p2o_dim_floordiv(t, s, num(0)) && !p2o_dim_floordiv(t, NULL, s));
    CHECK(!p2o_dim_floordiv(t, s, NULL) && !p2o_dim_ceildiv(t, NULL, s));
    CHECK(!p2o_dim_ceildiv(t, s, num(0)) && !p2o_dim_floordiv(t, num(INT64_MIN), num(-1)));
    finish();
}

static void test_mod(void)
{
    start_with("abcsxyp");
    sym("p", 1, NO_UPPER);
    sym("d", 0, 7);
    CHECK(becomes("s % 1", "0"));
    CHECK(becomes("s % 8", "s % 8"));
    CHECK(becomes("(8*a) % 8", "0"));
    CHECK(becomes("(8*a + b) % 8", "b % 8"));
    CHECK(becomes("(9*a + 17) % 8", "(a + 1) % 8"));
    CHECK(becomes("(7*s) % 8", "(-s) % 8"));
    CHECK(becomes("(4*s) % 8", "4*(s % 2)"));
    CHECK(becomes("(4*s + 5) % 8", "4*((s + 1) % 2) + 1"));
    CHECK(becomes("(2*s + 1) % 2", "1"));
    CHECK(becomes("d % 8", "d"));
    CHECK(becomes("(7*d) % 64", "7*d"));
    CHECK(becomes("(d - 8) % 8", "d"));
    CHECK(becomes("(d + 16) % 8", "d"));
    CHECK(becomes("(s % 8) % 8", "s % 8"));
    CHECK(becomes("(s % 8) % 4", "s % 4"));
    CHECK(becomes("(s % 4) % 8", "s % 4"));
    CHECK(becomes("(64 - h % 64) % 64", "(-h) % 64"));
    CHECK(becomes("(h + (-h) % 64) % 64", "0"));
    CHECK(becomes("(h + (-h) % 64) % 32", "0"));
    CHECK(becomes("(x % y) % y", "x % y"));
    CHECK(becomes("(p*s) % p", "0"));
    CHECK(becomes("(b*s) % s", "b*s % s"));
    CHECK(becomes("(p*s + 1) % p", "1 % p"));
    CHECK(becomes("(2*x) % (2*y)", "2*(x % y)"));
    CHECK(becomes("(p*x) % (p*y)", "p*(x % y)"));
    CHECK(becomes("(p - 1) % p", "p - 1"));
    CHECK(becomes("7 % -4", "-1"));
    CHECK(becomes("-7 % 4", "1"));
    CHECK(becomes("s % -4", "-((-s) % 4)"));
    CHECK(becomes("9223372036854775807 % 10", "7"));
    CHECK(becomes("-9223372036854775808 % 10", "2"));
    CHECK(!p2o_dim_mod(t, num(3), num(0)) && !p2o_dim_mod(t, NULL, num(3)));
    CHECK(!p2o_dim_mod(t, num(3), NULL));
    finish();
}

static void test_minmax(void)
{
    start_with("abcsxyp");
    sym("p", 1, NO_UPPER);
    sym("c", 2, 20);
    CHECK(becomes("max(a, b)", "max(a, b)"));
    CHECK(becomes("max(b, a)", "max(a, b)"));
    CHECK(becomes("max(a, a)", "a"));
    CHECK(becomes("max(a)", "a"));
    CHECK(becomes("max(a, max(b, a), b)", "max(a, b)"));
    CHECK(becomes("max(max(a, b), max(x, y))", "max(a, b, x, y)"));
    CHECK(becomes("max(3, 4, 2)", "4"));
    CHECK(becomes("max(a, 0)", "a"));
    CHECK(becomes("max(a, -4)", "a"));
    CHECK(becomes("min(a, 0)", "0"));
    CHECK(becomes("max(a, 1)", "max(a, 1)"));
    CHECK(becomes("max(p, 1)", "p"));
    CHECK(becomes("min(c, 20)", "c"));
    CHECK(becomes("min(c, 1)", "1"));
    CHECK(becomes("min(c, 19)", "min(c, 19)"));
    CHECK(becomes("max(a, a + 1)", "a + 1"));
    CHECK(becomes("min(a, a + b)", "a"));
    CHECK(becomes("min(a + x, b + x)", "x + min(a, b)"));
    CHECK(becomes("min(a + 3, b + 5)", "min(a, b + 2) + 3"));
    CHECK(becomes("max(-a, -3)", "-min(a, 3)"));
    CHECK(becomes("max(-a, 3 - b)", "3 - min(b, a + 3)"));
    CHECK(becomes("max(a - b, 0)", "max(a - b, 0)"));
    CHECK(becomes("max(b - a, 0)", "max(b - a, 0)"));
    CHECK(becomes("max(a - 1, 0)", "max(a, 1) - 1"));
    CHECK(becomes("max(8*a, 8*b)", "8*max(a, b)"));
    CHECK(becomes("max(8*max(a, b), x)", "max(x, 8*a, 8*b)"));
    CHECK(becomes("min(a, min(b, 3), 2)", "min(a, b, 2)"));
    CHECK(becomes("min(s, 9223372036854775807)", "s"));
    CHECK(becomes("max(s, -9223372036854775808)", "s"));
    CHECK(becomes("min(s//2, s)", "s//2"));
    CHECK(becomes("max(s % 8, s)", "s"));
    CHECK(becomes("max(a, b, a + b)", "a + b"));
    CHECK(becomes("max(min(a, b), a)", "a"));
    CHECK(becomes("min(max(a, b), a)", "a"));
    CHECK(becomes("max(-min(a, b), x - 1)", "max(x, 1 - b, 1 - a) - 1"));
    CHECK(becomes("2*max(a, b)*min(x, y)", "2*max(a, b)*min(x, y)"));
    Dim a = p2o_dim_sym(t, "a");
    CHECK(!p2o_dim_min(t, a, NULL) && !p2o_dim_max(t, NULL, a));
    Dim many[200];
    for (int i = 0; i < 200; i++)
        many[i] = num(i);
    CHECK(p2o_dim_max_of(t, 200, many) == num(199) && p2o_dim_min_of(t, 200, many) == num(0));
    for (int i = 0; i < 200; i++)
        many[i] = p2o_dim_fresh(t, "m");
    CHECK(!p2o_dim_max_of(t, 200, many) && p2o_dim_max_of(t, 20, many));
    finish();
}

static void test_exact_div(void)
{
    start_with("abcsxyp");
    struct { const char *a, *b, *q; } rows[] = {
        { "a*b + a*c", "b + c", "a" },
        { "a*b + a*c", "a", "b + c" },
        { "8*a*b", "4*b", "2*a" },
        { "a^2 - b^2", "a - b", "a + b" },
        { "a^3 + 3*a^2*b + 3*a*b^2 + b^3", "a^2 + 2*a*b + b^2", "a + b" },
        { "0", "a", "0" },
        { "12", "-4", "-3" },
        { "64*((s + 63)//64)*b", "(s + 63)//64", "64*b" },
        { "max(a, b)*c + max(a, b)", "max(a, b)", "c + 1" },
        { "a + 1", "a + 1", "1" },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        CHECK(p2o_dim_exact_div(t, read(rows[i].a), read(rows[i].b)) == read(rows[i].q));
    CHECK(!p2o_dim_exact_div(t, read("a + 1"), read("a")));
    CHECK(!p2o_dim_exact_div(t, read("a"), read("a + 1")));
    CHECK(!p2o_dim_exact_div(t, read("3*a"), read("2")));
    CHECK(!p2o_dim_exact_div(t, read("a"), read("0")));
    CHECK(!p2o_dim_exact_div(t, read("0"), read("0")));
    CHECK(!p2o_dim_exact_div(t, num(INT64_MIN), num(-1)));
    CHECK(!p2o_dim_exact_div(t, NULL, num(1)) && !p2o_dim_exact_div(t, num(1), NULL));
    finish();
}

static void test_ranges(void)
{
    start_with("abcsxyp");
    sym("p", 1, NO_UPPER);
    sym("c", 2, 20);
    sym("z", -5, 7);
    CHECK(ranges("s", 0, NO_UPPER));
    CHECK(ranges("12", 12, 12));
    CHECK(ranges("-s", NO_LOWER, 0));
    CHECK(ranges("s % 8", 0, 7));
    CHECK(ranges("c % 64 + 1", 3, 21));
    CHECK(ranges("-(s % 8)", -7, 0));
    CHECK(ranges("c//3", 0, 6));
    CHECK(ranges("z//3", -2, 2));
    CHECK(ranges("z^2", 0, 49));
    CHECK(ranges("z*c", -100, 140));
    CHECK(ranges("2*c - 3*z + 1", -16, 56));
    CHECK(ranges("max(s, 3)", 3, NO_UPPER));
    CHECK(ranges("min(s, 3)", 0, 3));
    CHECK(ranges("c//p", 0, 20));
    CHECK(ranges("s//c", 0, NO_UPPER));
    CHECK(ranges("s % c", 0, 19));
    CHECK(ranges("c % s", 0, 20));
    CHECK(ranges("b*p - b", 0, NO_UPPER));
    CHECK(ranges("b*p - b + 3", 3, NO_UPPER));
    CHECK(ranges("s - s % 8", 0, NO_UPPER));
    CHECK(ranges("s - s//2", 0, NO_UPPER));
    CHECK(ranges("9223372036854775807*s", 0, NO_UPPER));
    CHECK(ranges("-9223372036854775807*p", NO_LOWER, -INT64_MAX));
    int64_t lo, hi;
    p2o_dim_range(t, NULL, &lo, &hi);
    CHECK(lo == NO_LOWER && hi == NO_UPPER);

    /* a range that changes late reaches what was built before */
    Dim e = read("3*late + 1"), f = read("(late + 1)//2");
    p2o_dim_set_range(t, read("late"), 4, 5);
    p2o_dim_range(t, e, &lo, &hi);
    CHECK(lo == 13 && hi == 16);
    p2o_dim_range(t, f, &lo, &hi);
    CHECK(lo == 2 && hi == 3);
    p2o_dim_set_range(t, read("late"), 9, 3);
    p2o_dim_range(t, read("late"), &lo, &hi);
    CHECK(lo == 4 && hi == 5);
    finish();
}

static Answer eq(const char *a, const char *b) { return p2o_dim_eq(t, read(a), read(b)); }
static Answer lt(const char *a, const char *b) { return p2o_dim_lt(t, read(a), read(b)); }
static Answer le(const char *a, const char *b) { return p2o_dim_le(t, read(a), read(b)); }

static void test_compare(void)
{
    start_with("abcsxyp");
    sym("p", 1, NO_UPPER);
    sym("c", 2, 20);
    sym("k", 4, 4);
    CHECK(eq("s", "s") == YES && eq("s", "s + 1") == NO && eq("s", "x") == CANNOT_TELL);
    CHECK(eq("2*s", "2*x + 1") == NO && eq("2*s", "3*x") == CANNOT_TELL);
    CHECK(eq("6*s + 3", "4*x") == NO && eq("6*s + 2", "4*x") == CANNOT_TELL);
    CHECK(eq("c", "21") == NO && eq("c", "20") == CANNOT_TELL && eq("k", "4") == YES);
    CHECK(eq("c + s", "1") == NO && eq("3", "3") == YES && eq("3", "4") == NO);
    CHECK(eq("s//8*8 + s % 8", "s") == YES);
    CHECK(eq("h + (-h) % 64", "64*((h + 63)//64)") == YES);
    CHECK(eq("x//y*y + x % y", "x") == YES);
    CHECK(eq("b*(x % 8) + 8*b*(x//8)", "b*x") == YES);
    CHECK(eq("s % 8", "8") == NO && eq("s % 8", "7") == CANNOT_TELL);
    CHECK(eq("9223372036854775807", "-9223372036854775807") == NO);
    CHECK(eq("9223372036854775807*s", "-9223372036854775807*s") == CANNOT_TELL);

    CHECK(lt("s", "s + 1") == YES && lt("s + 1", "s") == NO && lt("s", "s") == NO);
    CHECK(lt("s", "x") == CANNOT_TELL && lt("s", "0") == NO && lt("0", "s") == CANNOT_TELL);
    CHECK(lt("0", "p") == YES && lt("c", "21") == YES && lt("c", "20") == CANNOT_TELL);
    CHECK(lt("s % 8", "8") == YES && lt("s % p", "p") == CANNOT_TELL);
    CHECK(lt("s//2", "s + 1") == YES && lt("p//2", "p") == YES && lt("s//2", "s") == CANNOT_TELL);
    CHECK(lt("b", "b + p") == YES && lt("9223372036854775807", "s") == NO);

    CHECK(le("s", "s") == YES && le("s + 1", "s") == NO && le("0", "s") == YES);
    CHECK(le("s//2", "s") == YES && le("s % 8", "s") == YES && le("min(a, b)", "a") == YES);
    CHECK(le("max(a, b)", "a + b") == YES && le("a", "max(a, b)") == YES);
    CHECK(le("a//b", "a") == YES && le("a % b", "a") == YES);
    CHECK(le("(s + 7)//8", "s") == YES && le("(s + 7)//8*8", "s + 7") == YES);
    CHECK(le("s", "(s + 7)//8*8") == YES && le("b", "b*p") == YES && le("b*p", "b") == CANNOT_TELL);
    CHECK(le("b*(s//2)", "b*s") == YES && le("s", "9223372036854775807") == YES);
    CHECK(le("s", "s//2") == CANNOT_TELL && le("s//2 + s//3", "s") == YES);

    Dim s = p2o_dim_sym(t, "s");
    CHECK(p2o_dim_eq(t, NULL, s) == CANNOT_TELL && p2o_dim_eq(t, NULL, NULL) == CANNOT_TELL);
    CHECK(p2o_dim_lt(t, NULL, s) == CANNOT_TELL && p2o_dim_le(t, s, NULL) == CANNOT_TELL);
    finish();
}

static Dim swap_symbols(void *user, Dim s)
{
    (void)user;
    if (same(p2o_dim_name(s), "a"))
        return p2o_dim_sym(t, "b");
    if (same(p2o_dim_name(s), "b"))
        return p2o_dim_sym(t, "a");
    return same(p2o_dim_name(s), "bad") ? NULL : s;
}

static Dim make_four(void *user, Dim s)
{
    (void)user, (void)s;
    return num(4);
}

static void append_name(void *user, Dim s) { p2o_putf(user, "%s ", p2o_dim_name(s)); }

static void test_walks(void)
{
    start_with("abcsxyp");
    Dim     e = read("max(a - 3, b)//2 + a*c + (x % b)^2"), a = read("a");
    int64_t v;
    CHECK(p2o_dim_subst(t, e, swap_symbols, NULL) == read("max(b - 3, a)//2 + b*c + (x % a)^2"));
    CHECK(p2o_dim_subst(t, e, make_four, NULL) == num(2 + 16));
    CHECK(!p2o_dim_subst(t, read("bad + 1"), swap_symbols, NULL));
    CHECK(!p2o_dim_subst(t, read("x//(bad + a)"), swap_symbols, NULL));
    CHECK(!p2o_dim_subst(t, read("x//(a - 4)"), make_four, NULL));
    CHECK(!p2o_dim_subst(t, NULL, make_four, NULL));

    Buf b = { .arena = arena };
    p2o_dim_symbols(e, append_name, &b);
    CHECK(str_is(buf_str(&b), "a c b x "));
    p2o_dim_symbols(NULL, append_name, &b);
    p2o_dim_symbols(num(3), append_name, &b);
    CHECK(b.n == 8);

    CHECK(!p2o_dim_hint(t, e, &v) && !p2o_dim_hint(t, NULL, &v));
    CHECK(p2o_dim_hint(t, num(5), &v) && v == 5);
    p2o_dim_set_hint(t, a, 9);
    CHECK(p2o_dim_hint(t, read("3*a^2 - a//2"), &v) && v == 243 - 4);
    p2o_dim_set_hint(t, read("b"), 5);
    p2o_dim_set_hint(t, read("c"), 2);
    CHECK(!p2o_dim_hint(t, e, &v));
    p2o_dim_set_hint(t, read("x"), 13);
    CHECK(p2o_dim_hint(t, e, &v) && v == 3 + 18 + 9);
    p2o_dim_set_hint(t, read("b"), 0);
    CHECK(!p2o_dim_hint(t, e, &v));
    p2o_dim_set_hint(t, a, INT64_MAX);
    CHECK(!p2o_dim_hint(t, read("2*a"), &v) && p2o_dim_hint(t, read("a//2"), &v));
    CHECK(!p2o_dim_hint(t, read("a^2"), &v) && !p2o_dim_hint(t, read("a + 1"), &v));
    finish();
}

static void test_print(void)
{
    start_with("abcsxyp");
    CHECK(becomes("(s//8)*b", "b*(s//8)"));
    CHECK(becomes("(s//8)^2", "(s//8)^2"));
    CHECK(becomes("a - s//8", "a - s//8"));
    CHECK(becomes("-(s//8)", "-(s//8)"));
    CHECK(becomes("-(s % 8)", "-(s % 8)"));
    CHECK(becomes("a - 2*(s % 8)", "a - 2*(s % 8)"));
    CHECK(becomes("1 - s % 8", "1 - s % 8"));
    CHECK(becomes("(a*s)//(b + 1)", "a*s//(b + 1)"));
    CHECK(becomes("a//(b*s)", "a//(b*s)"));
    CHECK(becomes("a//b^2", "a//(b^2)"));
    CHECK(becomes("(a % 4)//b", "(a % 4)//b"));
    CHECK(becomes("(a//b) % s", "(a//b) % s"));
    CHECK(becomes("a % (b//s)", "a % (b//s)"));
    CHECK(becomes("max(a//2, b % 3)", "max(a//2, b % 3)"));
    CHECK(becomes("max(a, b)//2", "max(a, b)//2"));
    CHECK(becomes("(-1)//b", "(-1)//b"));
    CHECK(becomes("1//b", "1//b"));
    CHECK(becomes("-a - b + s", "s - a - b"));
    CHECK(becomes("-a*b + 2", "2 - a*b"));
    finish();
}

#define S(name) "Symbol('" name "', positive=True, integer=True)"

static void test_srepr(void)
{
    start();
    p2o_dim_sym(t, "s0"), p2o_dim_sym(t, "s1");
    CHECK(becomes("Symbol('s77')", "s77"));
    CHECK(becomes("Symbol(\"s77\", integer=True)", "s77"));
    CHECK(becomes("Symbol('s77', commutative=True, x=3)", "s77"));
    CHECK(becomes("Integer(-3)", "-3"));
    CHECK(becomes("Integer(-9223372036854775808)", "-9223372036854775808"));
    CHECK(becomes("Add(" S("s0") ", Integer(1))", "s0 + 1"));
    CHECK(becomes("Add()", "0"));
    CHECK(becomes("Mul()", "1"));
    CHECK(becomes("Mul(Integer(2), " S("s0") ", " S("s1") ")", "2*s0*s1"));
    CHECK(becomes("Pow(" S("s0") ", Integer(2))", "s0^2"));
    CHECK(becomes("PowByNatural(" S("s0") ", Integer(3))", "s0^3"));
    CHECK(becomes("Max(Integer(1), " S("s0") ", " S("s1") ")", "max(s0, s1, 1)"));
    CHECK(becomes("Min(Integer(1), " S("s0") ")", "min(s0, 1)"));
    CHECK(becomes("FloorDiv(Add(" S("s0") ", Integer(-1)), Integer(2))", "(s0 + 1)//2 - 1"));
    CHECK(becomes("CleanDiv(Mul(Integer(4), " S("s0") "), Integer(2))", "2*s0"));
    CHECK(becomes("CleanDiv(s0*s1, s0)", "s1"));
    CHECK(becomes("CleanDiv(s0, Integer(2))", "s0//2"));
    CHECK(becomes("CeilDiv(" S("s0") ", Integer(2))", "(s0 + 1)//2"));
    CHECK(becomes("Mod(" S("s0") ", Integer(8))", "s0 % 8"));
    CHECK(becomes("PythonMod(" S("s0") ", Integer(-8))", "-((-s0) % 8)"));
    CHECK(becomes("ModularIndexing(" S("s0") ", Integer(4), Integer(8))", "(s0//4) % 8"));
    CHECK(becomes("LShift(" S("s0") ", Integer(3))", "8*s0"));
    CHECK(becomes("RShift(" S("s0") ", Integer(3))", "s0//8"));
    CHECK(becomes("Identity(" S("s0") ")", "s0"));
    CHECK(becomes("Mul(Rational(1, 2), Mul(Integer(2), " S("s0") "))", "s0"));
    CHECK(becomes("Mul(Rational(1, 2), " S("s0") ", Add(Integer(2), Integer(4)))", "3*s0"));
    CHECK(becomes("Mul(" S("s0") ", " S("s1") ", Pow(" S("s0") ", Integer(-1)))", "s1"));
    CHECK(becomes("floor(Mul(Rational(1, 2), " S("s0") "))", "s0//2"));
    CHECK(becomes("ceiling(Mul(Rational(1, 3), " S("s0") "))", "(s0 + 2)//3"));
    CHECK(becomes("TruncToInt(IntTrueDiv(" S("s0") ", Integer(2)))", "s0//2"));
    CHECK(becomes("FloorToInt(IntTrueDiv(s0 - 9, Integer(2)))", "(s0 + 1)//2 - 5"));
    CHECK(becomes("CeilToInt(IntTrueDiv(" S("s0") ", Integer(2)))", "(s0 + 1)//2"));
    CHECK(becomes("TruncToInt(ToFloat(" S("s0") "))", "s0"));
    CHECK(becomes("TruncToInt(Mul(Float('2.0', precision=53), ToFloat(" S("s0") ")))", "2*s0"));
    CHECK(becomes("TruncToInt(Mul(Float('0.5', precision=53), ToFloat(" S("s0") ")))", "s0//2"));
    CHECK(becomes("  Add (\n" S("s0") " ,\tInteger( 1 ) ) ", "s0 + 1"));

    CHECK(is_no_integer("Float('1.5', precision=53)"));
    CHECK(is_no_integer("Float('nan', precision=53)"));
    CHECK(is_no_integer("Mul(Float('2.0', precision=53), " S("s0") ")"));
    CHECK(is_no_integer("Max(1, Mul(Float('1.7', precision=53), ToFloat(s0)))"));
    CHECK(is_no_integer("Rational(1, 2)") && is_no_integer("Rational(1, 0)"));
    CHECK(is_no_integer("IntTrueDiv(Mul(Integer(2), " S("s0") "), Integer(2))"));
    CHECK(is_no_integer("Pow(" S("s0") ", Rational(1, 2))"));
    CHECK(is_no_integer("Pow(" S("s0") ", Integer(-1))"));
    CHECK(is_no_integer("Pow(Integer(3), " S("s0") ")"));
    CHECK(is_no_integer("Equality(" S("s0") ", Integer(3))"));
    CHECK(is_no_integer("Piecewise(ExprCondPair(Integer(1), s0 > 2), ExprCondPair(s0, true))"));
    CHECK(is_no_integer("OpaqueUnaryFn_sqrt(ToFloat(s0))") && is_no_integer("-oo"));
    CHECK(is_no_integer("And(Not(a), b)") && is_no_integer("int_oo") && is_no_integer("nan"));
    CHECK(is_no_integer("Integer(99999999999999999999)"));
    CHECK(is_no_integer("FloorDiv(" S("s0") ", Integer(0))"));
    CHECK(is_no_integer("Max(Integer(1), Rational(1, 2))"));
    finish();
}

static void test_str(void)
{
    start();
    p2o_dim_sym(t, "s0"), p2o_dim_sym(t, "s1");
    CHECK(becomes("((s0 + 1)//2)", "(s0 + 1)//2"));
    CHECK(becomes("s0**2", "s0^2"));
    CHECK(becomes("s0*s1 - 3", "s0*s1 - 3"));
    CHECK(becomes("Mod(s0, 8)", "s0 % 8"));
    CHECK(becomes("Max(1, s0)", "max(s0, 1)"));
    CHECK(becomes("2*s0/2", "s0"));
    CHECK(becomes("s0/2 + s0/2", "s0"));
    CHECK(becomes("s0/2 + s0/3 + s0/6", "s0"));
    CHECK(becomes("s0*s1/s0", "s1"));
    CHECK(becomes("(s0**2 + s0)/s0", "s0 + 1"));
    CHECK(becomes("floor(s0/2)", "s0//2"));
    CHECK(becomes("floor(s0/2 + 1/2)", "(s0 + 1)//2"));
    CHECK(becomes("ceiling(s0/2)", "(s0 + 1)//2"));
    CHECK(becomes("floor(s0/2 - 1/2) + 1", "(s0 + 1)//2"));
    CHECK(becomes("4*s0**-1*s0", "4"));
    CHECK(becomes("TruncToInt(1.5*ToFloat(s0))", "s0 + s0//2"));
    CHECK(becomes("TruncToInt(s0*1e0)", "s0"));
    CHECK(becomes("s0 + +s1", "s0 + s1"));
    CHECK(becomes("s0 - -s1", "s0 + s1"));

    CHECK(is_no_integer("s0/2") && is_no_integer("1/s0") && is_no_integer("s0/0"));
    CHECK(is_no_integer("Eq(s0, 3)") && is_no_integer("s0 >= 3") && is_no_integer("s0 == 3"));
    CHECK(is_no_integer("(s0 < 3) & (s1 != 2) | ~(s0 <= s1)") && is_no_integer("True"));
    CHECK(is_no_integer("1.5") && is_no_integer("2.0*s0") && is_no_integer("1e-3*s0"));
    CHECK(is_no_integer("s0 % 2.0") && is_no_integer("s0 // 0") && is_no_integer("s0**s1"));
    CHECK(is_no_integer("9223372036854775808") && is_no_integer("s0*9223372036854775807*2"));
    CHECK(is_no_integer("TruncToInt(1e400*ToFloat(s0))") && is_no_integer("Round(s0/2)"));
    finish();
}

static void test_malformed(void)
{
    start();
    static const char *const texts[] = {
        "", " ", "+", "s +", "s s", "2s", "(s", "s)", "()", "s,", "max(", "max()", "max(a",
        "max(a,",
        "max(a,)", "max(,a)", "max(a b)", "Mod(s)", "Mod(s, 1, 2)", "Symbol()", "Symbol(s)",
        "Symbol('s", "Symbol('')", "Symbol('a b')", "Symbol('1')", "'s'", "s'", "s[0]", "s; t",
        "s = 1",
        "1.2.3", "1e", "0x10", "1_000", "a//", "a**", "a^", "*a", "a @ b", "a ! b", "$", "\x01",
        "\xff",
        ".", ".a", "a..=", "Rational(1)", "Integer()", "L['a'][0].size()[0] == 3", "-", "~",
        "__import__('os').system('x')", "lambda: 0", "s\\", "{", "Pow(s)", "FloorDiv()",
    };
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        CHECK(is_malformed(texts[i]));
        if (!is_malformed(texts[i]))
            printf("  \"%s\"\n", texts[i]);
    }
    const char *error;
    CHECK(!p2o_dim_parse(t, (Str){ "s\0t", 3 }, &error) && error);
    CHECK(!p2o_dim_parse(t, (Str){ NULL, 0 }, &error) && error);
    CHECK(p2o_dim_parse(t, (Str){ "s0 + 1junk", 6 }, &error) == read("s0 + 1") && !error);
    finish();
}

/* before, n times; middle; after, n times */
static const char *nested(const char *before, int n, const char *middle, const char *after)
{
    Buf b = { .arena = arena };
    for (int i = 0; i < n; i++)
        p2o_puts(&b, before);
    p2o_puts(&b, middle);
    for (int i = 0; i < n; i++)
        p2o_puts(&b, after);
    return b.at;
}

static void test_limits(void)
{
    start();
    CHECK(read(nested("(", 90, "s", ")")) == read("s"));
    CHECK(is_malformed(nested("(", 100000, "s", ")")));
    CHECK(is_malformed(nested("max(", 100000, "s", ", 1)")));
    CHECK(is_malformed(nested("2^", 100000, "s", "")));
    CHECK(is_malformed(nested("a^-", 100000, "2", "")));
    CHECK(is_malformed(nested("(", 300000, "s", ")")));
    CHECK(read(nested("-", 100000, "s", "")) == read("s"));
    CHECK(read(nested("", 100000, "s", " + 1")) == read("s + 100000"));
    CHECK(is_malformed(nested("s +", 200000, "1", "")));
    /* past the limits of an expression there is no Dim, quickly */
    CHECK(is_no_integer("(a + b + c + d + e + f + g)^9"));
    CHECK(is_no_integer("(a + b)^33"));
    CHECK(is_no_integer(nested("(x + ", 40, "y", ")//x")));
    CHECK(is_no_integer(nested("(", 20, "x + y", ")^8//7")));
    CHECK(is_no_integer(nested("(a + b//7)*(a - b//5)*", 20, "1", "")));
    CHECK(is_no_integer(nested("(a + b + c)^16 + ", 20000, "1", "")));

    Dim sum = num(0), wide = NULL;
    for (int i = 0; i < 300; i++) {
        Dim s = p2o_dim_fresh(t, "w");
        sum = p2o_dim_add(t, sum, s);
        if (i == 255)
            wide = sum;
    }
    CHECK(wide && p2o_dim_nterm(wide) == 256 && !sum);
    CHECK(read(p2o_dim_text(t, wide)) == wide);
    CHECK(!p2o_dim_mul(t, wide, wide) && !p2o_dim_add(t, wide, num(1)));
    Dim deep = p2o_dim_sym(t, "x");
    int depth = 0;
    for (; deep && depth < 1000; depth++)
        deep = p2o_dim_mod(t, p2o_dim_add(t, deep, p2o_dim_sym(t, "y")), p2o_dim_sym(t, "v"));
    CHECK(prints(deep, "(x + 1000*y) % v"));
    deep = p2o_dim_sym(t, "x");
    for (depth = 0; deep && depth < 1000; depth++)
        deep = p2o_dim_floordiv(t, p2o_dim_add(t, deep, p2o_dim_sym(t, "y")), p2o_dim_sym(t, "v"));
    CHECK(!deep && depth > 8);
    finish();
}

/* The other side of the properties: a plain expression and its plain value. */

typedef enum TreeOp {
    T_INT, T_SYM, T_ADD, T_SUB, T_MUL, T_DIV, T_CEIL, T_MOD, T_MIN, T_MAX, T_FN
} TreeOp;

typedef struct Tree {
    TreeOp             op;
    int64_t            v;               /* value, or number of the symbol or of the function */
    double             factor;          /* of T_FN */
    const struct Tree *a, *b;
} Tree;

enum { NSYM = 6, NEXPR = 60, NVALUES = 4, ROUNDS = 850 };

typedef struct Pair {
    const Tree *tree;
    Dim         dim;
} Pair;

static Dim      syms[NSYM];
static int64_t  values[NSYM];
static uint64_t state = 88172645463325252u;

static uint64_t any(uint64_t n)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (state >> 11) % n;
}

static bool tree_value(const Tree *e, int64_t *out);

/* Far from overflow, and by other means than the Dims'. */
static bool fn_tree_value(const Tree *e, int64_t *out)
{
    int64_t a, r = 0;
    double  x;
    if (!tree_value(e->a, &a) || a < -1000000 || a > 1000000)
        return false;
    x = e->v >= FN_TRUNC_OVER ? (double)a / e->factor : (double)a * e->factor;
    switch (e->v) {
    case FN_ISQRT:
        while (a >= 0 && (r + 1) * (r + 1) <= a)
            r++;
        *out = r;
        return a >= 0;
    case FN_BIT_LENGTH:
        for (a = a < 0 ? -a : a; a >> r; r++)
            ;
        break;
    case FN_POW2:
        r = a >= 0 && a < 30 ? 1 << a : 0;
        *out = r;
        return r > 0;
    case FN_TRUNC:
    case FN_TRUNC_OVER: r = (int64_t)x; break;
    case FN_FLOOR:
    case FN_FLOOR_OVER: r = (int64_t)x - ((double)(int64_t)x > x); break;
    case FN_CEIL:
    case FN_CEIL_OVER: r = (int64_t)x + ((double)(int64_t)x < x); break;
    default: r = llrint(x); break;
    }
    *out = r;
    return true;
}

static bool tree_value(const Tree *e, int64_t *out)
{
    int64_t a = 0, b = 0;
    if (e->op == T_INT || e->op == T_SYM) {
        *out = e->op == T_INT ? e->v : values[e->v];
        return true;
    }
    if (e->op == T_FN)
        return fn_tree_value(e, out);
    if (!tree_value(e->a, &a) || !tree_value(e->b, &b))
        return false;
    bool          divides = e->op == T_DIV || e->op == T_CEIL || e->op == T_MOD;
    const int64_t most = 1000000000;    /* what is compared stays far from overflow */
    if ((divides && b == 0) || a < -most || a > most || b < -most || b > most)
        return false;
    switch (e->op) {
    case T_ADD:  *out = a + b; break;
    case T_SUB:  *out = a - b; break;
    case T_MUL:  *out = a * b; break;
    case T_DIV:  *out = floor_div(a, b); break;
    case T_CEIL: *out = -floor_div(-a, b); break;
    case T_MOD:  *out = floor_mod(a, b); break;
    case T_MIN:  *out = a < b ? a : b; break;
    default:     *out = a > b ? a : b; break;
    }
    return true;
}

static bool value_of(void *user, Dim s, int64_t *v)
{
    (void)user;
    for (int i = 0; i < NSYM; i++)
        if (syms[i] == s)
            *v = values[i];
    return true;
}

static Dim apply(TreeOp op, Dim a, Dim b)
{
    switch (op) {
    case T_ADD:  return p2o_dim_add(t, a, b);
    case T_SUB:  return p2o_dim_sub(t, a, b);
    case T_MUL:  return p2o_dim_mul(t, a, b);
    case T_DIV:  return p2o_dim_floordiv(t, a, b);
    case T_CEIL: return p2o_dim_ceildiv(t, a, b);
    case T_MOD:  return p2o_dim_mod(t, a, b);
    case T_MIN:  return p2o_dim_min(t, a, b);
    default:     return p2o_dim_max(t, a, b);
    }
}

static Pair leaf(void)
{
    static const int64_t numbers[] = { 0, 1, 1, 2, 2, 3, 4, 5, 7, 8, 16, -1, -2, -8, 63, 100 };
    Tree *e = NEW(arena, Tree);
    if (any(5) < 3) {
        *e = (Tree){ .op = T_SYM, .v = (int64_t)any(NSYM) };
        return (Pair){ e, syms[e->v] };
    }
    *e = (Tree){ .op = T_INT, .v = numbers[any(COUNT_OF(numbers))] };
    return (Pair){ e, num(e->v) };
}

static Pair combine(TreeOp op, Pair a, Pair b)
{
    Tree *e = NEW(arena, Tree);
    *e = (Tree){ .op = op, .a = a.tree, .b = b.tree };
    return (Pair){ e, apply(op, a.dim, b.dim) };
}

static Pair function_of(Pair a)
{
    static const double factors[] = {
        0.7, 0.3, 1.1, 1.0 / 3, -0.7, 0.5, 1.5, -2.75, 3, 1, 10, 0.01
    };
    Tree *e = NEW(arena, Tree);
    *e = (Tree){ .op = T_FN,
                 .v = (int64_t)any(FN_ROUND_OVER + 1),
                 .factor = factors[any(COUNT_OF(factors))],
                 .a = a.tree };
    return (Pair){ e, p2o_dim_fn(t, (DimFn)e->v, e->factor, a.dim) };
}

static Pair random_expr(int depth)
{
    if (depth == 0 || any(6) == 0)
        return leaf();
    if (any(8) == 0)
        return function_of(random_expr(depth - 1));
    TreeOp op = (TreeOp)(T_ADD + any(T_MAX - T_ADD + 1));
    Pair   a = random_expr(depth - 1);
    bool   by_number = (op == T_DIV || op == T_CEIL || op == T_MOD) && any(3) > 0;
    Pair   b = by_number ? leaf() : random_expr(depth - 1);
    return combine(op, a, b);
}

static void random_ranges(void)
{
    static const int64_t bounds[][2] = {
        { 0, NO_UPPER }, { 0, NO_UPPER }, { 1, NO_UPPER }, { 2, NO_UPPER }, { 0, 1 },
        { 2, 20 }, { -5, 5 }, { NO_LOWER, NO_UPPER }, { 3, 3 }, { NO_LOWER, -1 }, { 8, 4096 },
    };
    static const char *const names[NSYM] = { "a", "b", "batch", "s.1", "max", "_x" };
    for (int i = 0; i < NSYM; i++) {
        const int64_t *b = bounds[any(COUNT_OF(bounds))];
        syms[i] = sym(names[i], b[0], b[1]);
    }
}

static void random_values(void)
{
    for (int i = 0; i < NSYM; i++) {
        int64_t lo, hi, v = (int64_t)any(4) ? (int64_t)any(40) - 8 : (int64_t)any(3);
        p2o_dim_range(t, syms[i], &lo, &hi);
        if (lo > v)
            v = any(2) ? lo : lo + (int64_t)any(9);
        if (hi < v)
            v = any(2) || lo == NO_LOWER ? hi : lo;
        values[i] = v;
    }
}

static void show(const char *what, Dim a, Dim b)
{
    printf("%s: %s", what, p2o_dim_text(t, a));
    printf(" | %s;", p2o_dim_text(t, b));
    for (int i = 0; i < NSYM; i++)
        printf(" %s=%" PRId64, p2o_dim_name(syms[i]), values[i]);
    printf("\n");
}

static void check_value(Pair e)
{
    int64_t v, w, lo, hi;
    if (!e.dim || !tree_value(e.tree, &v))
        return;
    bool agrees = p2o_dim_eval(t, e.dim, value_of, NULL, &w) && v == w;
    p2o_dim_range(t, e.dim, &lo, &hi);
    bool inside = lo <= v && v <= hi;
    CHECK(agrees);
    CHECK(inside);
    if (!agrees || !inside)
        show("value", e.dim, num(v));
}

static bool contradicts(Answer answer, bool truth)
{
    return answer == (truth ? NO : YES);
}

static void check_answers(Pair x, Pair y)
{
    int64_t v, w;
    if (!x.dim || !y.dim || !tree_value(x.tree, &v) || !tree_value(y.tree, &w))
        return;
    bool wrong = contradicts(p2o_dim_eq(t, x.dim, y.dim), v == w) ||
                 contradicts(p2o_dim_lt(t, x.dim, y.dim), v < w) ||
                 contradicts(p2o_dim_le(t, x.dim, y.dim), v <= w);
    CHECK(!wrong);
    CHECK(x.dim != y.dim || v == w);
    if (wrong)
        show("answer", x.dim, y.dim);
}

static void same_dim(const char *what, Dim a, Dim b)
{
    CHECK(!a || !b || a == b);
    if (a && b && a != b)
        show(what, a, b);
}

static Dim keep_symbol(void *user, Dim s)
{
    (void)user;
    return s;
}

/* Pairs that are equal by construction are the same pointer. */
static void check_identities(Dim a, Dim b, Dim c)
{
    if (!a || !b || !c)
        return;
    Dim ab = p2o_dim_add(t, a, b), zero = num(0);
    same_dim("a+b", ab, p2o_dim_add(t, b, a));
    same_dim("a+b-b", p2o_dim_sub(t, ab, b), a);
    same_dim("a-a", p2o_dim_sub(t, a, a), zero);
    same_dim("a*b", p2o_dim_mul(t, a, b), p2o_dim_mul(t, b, a));
    same_dim("a*(b*c)", p2o_dim_mul(t, a, p2o_dim_mul(t, b, c)),
             p2o_dim_mul(t, p2o_dim_mul(t, a, b), c));
    same_dim("(a+b)*c", p2o_dim_mul(t, ab, c),
             p2o_dim_add(t, p2o_dim_mul(t, a, c), p2o_dim_mul(t, b, c)));
    same_dim("a+(b+c)", p2o_dim_add(t, ab, c), p2o_dim_add(t, a, p2o_dim_add(t, b, c)));
    same_dim("max", p2o_dim_max(t, a, b), p2o_dim_max(t, b, a));
    same_dim("min", p2o_dim_min(t, a, b), p2o_dim_min(t, b, a));
    same_dim("max(a,a)", p2o_dim_max(t, a, a), a);
    same_dim("a%8%8", p2o_dim_mod(t, p2o_dim_mod(t, a, num(8)), num(8)), p2o_dim_mod(t, a, num(8)));
    same_dim("a^2", p2o_dim_pow(t, a, 2), p2o_dim_mul(t, a, a));
    if (b != zero)
        same_dim("a*b/b", p2o_dim_exact_div(t, p2o_dim_mul(t, a, b), b), a);
}

static void check_walks(Dim a)
{
    const char *error;
    if (!a)
        return;
    Dim back = p2o_dim_parse(t, str_of(p2o_dim_text(t, a)), &error);
    CHECK(back == a && !error);
    if (back != a)
        show("print", a, back);
    Dim kept = p2o_dim_subst(t, a, keep_symbol, NULL);
    CHECK(kept == a);
    if (kept != a)
        show("subst", a, kept);
}

static Pair replacements[NSYM];

static Dim replacement_of(void *user, Dim s)
{
    (void)user;
    for (int i = 0; i < NSYM; i++)
        if (syms[i] == s)
            return replacements[i].dim;
    return NULL;
}

/* Replacing symbols, then evaluating, is evaluating where the symbols have the replaced values. */
static void check_subst(Pair e)
{
    int64_t v, w, old[NSYM], lo, hi;
    bool    ok = true;
    for (int i = 0; i < NSYM; i++) {
        replacements[i] = any(3) ? (Pair){ NULL, syms[i] } : random_expr(1);
        old[i] = values[i];
    }
    Dim d = p2o_dim_subst(t, e.dim, replacement_of, NULL);
    if (!d)
        return;
    int64_t new[NSYM];
    for (int i = 0; i < NSYM; i++) {
        p2o_dim_range(t, syms[i], &lo, &hi);
        ok &= p2o_dim_eval(t, replacements[i].dim, value_of, NULL, &new[i]);
        ok = ok && new[i] >= lo && new[i] <= hi;
    }
    ok = ok && p2o_dim_eval(t, d, value_of, NULL, &w);
    memcpy(values, ok ? new : old, sizeof values);
    ok = ok && tree_value(e.tree, &v);
    memcpy(values, old, sizeof values);
    CHECK(!ok || v == w);
    if (ok && v != w)
        show("subst", e.dim, d);
}

static void test_properties(void)
{
    int known = 0, total = 0;
    for (int round = 0; round < ROUNDS; round++) {
        Pair e[NEXPR];
        start();
        random_ranges();
        for (int i = 0; i < NEXPR; i++) {
            e[i] = random_expr(1 + (int)any(4));
            known += e[i].dim != NULL;
            total++;
        }
        for (int k = 0; k < NVALUES; k++) {
            random_values();
            for (int i = 0; i < NEXPR; i++)
                check_value(e[i]);
            for (int i = 0; i < NEXPR; i++) {
                check_answers(e[i], e[any(NEXPR)]);
                if (e[i].dim)
                    check_subst(e[i]);
            }
        }
        for (int i = 0; i < NEXPR; i++) {
            check_walks(e[i].dim);
            check_identities(e[i].dim, e[any(NEXPR)].dim, e[any(NEXPR)].dim);
        }
        finish();
    }
    CHECK(total >= 50000 && known > total * 8 / 10);
    printf("%d of %d random expressions representable\n", known, total);
}

int main(void)
{
    test_nodes();
    test_names();
    test_ring();
    test_floordiv();
    test_mod();
    test_minmax();
    test_exact_div();
    test_ranges();
    test_compare();
    test_walks();
    test_print();
    test_srepr();
    test_str();
    test_malformed();
    test_limits();
    test_properties();
    return check_report();
}
