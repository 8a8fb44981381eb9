/* format/json: every kind of value, every kind of refusal, and the limits. */
#include <math.h>

#include "base/vec.h"
#include "check.h"
#include "format/json.h"

static Arena *arena;

/* The text is copied to its exact size, so that reading past its end is seen. */
static const Json *parse_text(Str text, const char **error)
{
    char *copy = p2o_alloc(arena, text.n);
    if (text.n)
        memcpy(copy, text.p, text.n);
    *error = NULL;
    const Json *j = p2o_json_try(arena, (Str){ copy, text.n }, error);
    CHECK((j == NULL) == (*error != NULL));
    return j;
}

static const Json *json(const char *z)
{
    const char *error;
    return parse_text(str_of(z), &error);
}

/* Whether the text is refused with a message that has this in it. */
static bool refused(Str text, const char *why)
{
    const char *error;
    if (parse_text(text, &error))
        return false;
    if (strstr(error, why) && !strchr(error, '\n'))
        return true;
    printf("message: %s\n", error);
    return false;
}

static bool refused_z(const char *z, const char *why) { return refused(str_of(z), why); }

static bool is_int_value(const char *z, int64_t v)
{
    const Json *j = json(z);
    return j && j->kind == JSON_INT && j->i == v;
}

static bool is_float_value(const char *z, double v)
{
    const Json *j = json(z);
    return j && j->kind == JSON_FLOAT && j->f == v && signbit(j->f) == signbit(v);
}

static bool is_string_value(const char *z, Str v)
{
    const Json *j = json(z);
    return j && j->kind == JSON_STR && str_eq(j->s, v);
}

static void test_scalars(void)
{
    CHECK(json("null")->kind == JSON_NULL);
    CHECK(json("true")->kind == JSON_BOOL && json("true")->b);
    CHECK(json("false")->kind == JSON_BOOL && !json("false")->b);
    CHECK(json(" \t\r\n null \n")->kind == JSON_NULL);
    CHECK(json(" null")->pos == 1);
    CHECK(refused_z("nul", "expected a value") && refused_z("nullx", "end of the text"));
    CHECK(refused_z("True", "found 'T'") && refused_z("", "found the end of the text"));
    CHECK(refused_z("  ", "at byte 2") && refused_z("\xEF\xBB\xBF{}", "0xEF"));
    CHECK(refused((Str){ "null\0", 5 }, "0x00") && refused((Str){ NULL, 0 }, "a value"));
    CHECK(refused_z("1 2", "expected the end of the text at byte 2, found '2'"));
    CHECK(refused_z("{} x", "end of the text"));
}

static void test_numbers(void)
{
    CHECK(is_int_value("0", 0) && is_int_value("-0", 0) && is_int_value("-17", -17));
    CHECK(is_int_value("9223372036854775807", INT64_MAX));
    CHECK(is_int_value("-9223372036854775808", INT64_MIN));
    CHECK(is_int_value("9007199254740993", 9007199254740993));      /* no double in between */
    CHECK(is_float_value("9223372036854775808", 9223372036854775808.0));
    CHECK(is_float_value("-9223372036854775809", -9223372036854775808.0));
    CHECK(is_float_value("18446744073709551615", 18446744073709551615.0));
    CHECK(is_float_value("1.5", 1.5) && is_float_value("1e-05", 1e-05));
    CHECK(is_float_value("1E+16", 1e16) && is_float_value("-0.0", -0.0));
    CHECK(is_float_value("1e2", 100) && is_float_value("0e0", 0) && is_float_value("2.50e1", 25));
    CHECK(is_float_value("Infinity", (double)INFINITY));
    CHECK(is_float_value("-Infinity", -(double)INFINITY));
    CHECK(json("NaN")->kind == JSON_FLOAT && isnan(json("NaN")->f));
    CHECK(refused_z("-NaN", "a digit") && refused_z("-", "a digit") && refused_z("+1", "a value"));
    CHECK(refused_z("01", "end of the text") && refused_z("1.", "a digit"));
    CHECK(refused_z(".5", "a value") && refused_z("1e", "a digit") && refused_z("1e+", "a digit"));
    CHECK(refused_z("-Infinit", "a digit") && refused_z("0x10", "end of the text"));
    CHECK(refused_z("1_000", "end of the text") && refused_z("--1", "a digit"));
    char longest[2000];
    memset(longest, '7', sizeof longest);
    CHECK(refused((Str){ longest, sizeof longest }, "too long"));
}

static void test_strings(void)
{
    CHECK(is_string_value("\"\"", STR("")) && is_string_value("\"abc\"", STR("abc")));
    CHECK(is_string_value("\"a\\\"\\\\\\/\\b\\f\\n\\r\\tz\"", STR("a\"\\/\b\f\n\r\tz")));
    CHECK(is_string_value("\"\\u0041\\u00e9\\u20AC\"", STR("A\xC3\xA9\xE2\x82\xAC")));
    CHECK(is_string_value("\"\\ud83d\\uDE00!\"", STR("\xF0\x9F\x98\x80!")));
    CHECK(is_string_value("\"\\uD800\\uDC00\"", STR("\xF0\x90\x80\x80")));
    CHECK(is_string_value("\"\\uDBFF\\uDFFF\"", STR("\xF4\x8F\xBF\xBF")));
    CHECK(is_string_value("\"x\\u0000y\"", STR("x\0y")));
    CHECK(is_string_value("\"\\u007f\\u0080\\u07ff\\u0800\\uffff\"",
                          STR("\x7F\xC2\x80\xDF\xBF\xE0\xA0\x80\xEF\xBF\xBF")));
    CHECK(is_string_value("\"\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80 \x7F\"",
                          STR("\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80 \x7F")));
    CHECK(is_string_value("\"\\n\xC3\xA9\\n\"", STR("\n\xC3\xA9\n")));
    CHECK(refused_z("\"abc", "a closing quote") && refused_z("\"abc\\", "escape"));
    CHECK(refused_z("\"\\", "escape") && refused_z("\"\\u12", "cut short"));
    CHECK(refused_z("\"\\u12\"}", "four hexadecimal") && refused_z("\"\\x41\"", "unknown escape"));
    CHECK(refused_z("\"\\u00g0\"", "four hexadecimal") && refused_z("\"\\'\"", "unknown escape"));
    CHECK(refused_z("\"\\u@000\"", "four hexadecimal"));
    CHECK(refused_z("\"a\nb\"", "a control character in a string at byte 2"));
    CHECK(refused((Str){ "\"a\0b\"", 5 }, "control character"));
    CHECK(refused((Str){ "\"\\\0\"", 4 }, "unknown escape"));
    CHECK(refused_z("\"a\\n\x1F\"", "control character"));
}

static void test_surrogates_and_utf8(void)
{
    CHECK(refused_z("\"\\ud800\"", "lone surrogate") && refused_z("\"\\udc00\"", "lone surrogate"));
    CHECK(refused_z("\"\\ud800x\"", "lone surrogate"));
    CHECK(refused_z("\"\\ud800\\n\"", "lone surrogate"));
    CHECK(refused_z("\"\\ud800\\ud800\"", "lone surrogate"));
    CHECK(refused_z("\"\\ud800\\u0041\"", "lone surrogate"));
    CHECK(refused_z("\"\\udc00\\ud800\"", "lone surrogate"));
    CHECK(refused_z("\"\\ud800\\u12", "cut short") && refused_z("\"\\ud800", "lone surrogate"));

    static const char *const invalid[] = {
        "\x80", "\xBF", "\xC0\x80", "\xC1\xBF", "\xC3", "\xC3(", "\xE2\x82", "\xE0\x80\x80",
        "\xE0\x9F\xBF", "\xED\xA0\x80", "\xED\xBF\xBF", "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80",
        "\xF5\x80\x80\x80", "\xFE", "\xFF", "\xF0\x9F\x98", "\xE2\x28\xA1" };
    for (size_t i = 0; i < COUNT_OF(invalid); i++) {
        CHECK(refused_z(p2o_printf(arena, "\"%s\"", invalid[i]), "invalid UTF-8 at byte 1"));
        CHECK(refused_z(p2o_printf(arena, "\"\\n%s", invalid[i]), "invalid UTF-8 at byte 3"));
        CHECK(refused_z(p2o_printf(arena, "{\"%s\":1}", invalid[i]), "invalid UTF-8"));
        CHECK(p2o_json_utf8(str_of(invalid[i])) == 0);
    }
    CHECK(p2o_json_utf8(STR("")) == 0 && p2o_json_utf8(STR("a\xFF")) == 1);
    CHECK(p2o_json_utf8(STR("\xED\x9F\xBF")) == 3 && p2o_json_utf8(STR("\xEE\x80\x80")) == 3);
    CHECK(p2o_json_utf8(STR("\xF4\x8F\xBF\xBF")) == 4 && p2o_json_utf8(STR("\xC2\x80x")) == 2);
}

static void test_containers(void)
{
    const Json *j = json("[]");
    CHECK(j->kind == JSON_LIST && j->n == 0);
    j = json(" { } ");
    CHECK(j->kind == JSON_OBJ && j->n == 0 && p2o_json_get(j, "a") == NULL);
    j = json("[1, [2, [3, {\"a\": [4]}]], 5, \"x\"]");
    CHECK(j && j->n == 4 && j->items[0].i == 1 && j->items[2].i == 5 && j->items[3].s.n == 1);
    CHECK(j->items[1].n == 2 && j->items[1].items[1].items[0].i == 3);
    const Json *a = p2o_json_get(&j->items[1].items[1].items[1], "a");
    CHECK(a && a->n == 1 && a->items[0].i == 4 && a->items[0].pos == 19);

    j = json("{\"z\": 1, \"a\": {\"z\": 2}, \"\": null, \"\\u0061b\": true}");
    CHECK(j && j->n == 4 && str_is(j->members[0].key, "z") && str_is(j->members[1].key, "a"));
    CHECK(p2o_json_get(j, "z")->i == 1 && p2o_json_get(p2o_json_get(j, "a"), "z")->i == 2);
    CHECK(p2o_json_get(j, "")->kind == JSON_NULL && p2o_json_get(j, "ab")->b);
    CHECK(p2o_json_get(j, "b") == NULL && p2o_json_get(NULL, "b") == NULL);
    CHECK(p2o_json_get(json("[1]"), "b") == NULL);

    CHECK(refused_z("[", "a value") && refused_z("[1", "',' or ']'"));
    CHECK(refused_z("[1,", "a value") && refused_z("[1,]", "found ']'"));
    CHECK(refused_z("[,1]", "a value"));
    CHECK(refused_z("[1 2]", "',' or ']'") && refused_z("[1}", "found '}'"));
    CHECK(refused_z("{", "a key in quotes") && refused_z("{1:2}", "a key in quotes"));
    CHECK(refused_z("{\"a\"", "':'") && refused_z("{\"a\" 1}", "':'"));
    CHECK(refused_z("{\"a\":", "a value") && refused_z("{\"a\":1", "',' or '}'"));
    CHECK(refused_z("{\"a\":1,}", "a key in quotes") && refused_z("{\"a\":1]", "',' or '}'"));
    CHECK(refused_z("]", "a value") && refused_z("}", "a value") && refused_z("[1]]", "end"));
}

/* An object of n members k0, k1, ...; the last one is called `last`. */
static const char *many_members(int n, const char *last)
{
    Buf b = { .arena = arena };
    for (int i = 0; i < n - 1; i++)
        p2o_putf(&b, "%s\"k%d\":%d", i ? "," : "{", i, i);
    p2o_putf(&b, ",\"%s\":-1}", last);
    return b.at;
}

static void test_duplicates(void)
{
    CHECK(refused_z("{\"a\":1,\"a\":2}", "duplicate key \"a\""));
    CHECK(refused_z("{\"a\":1,\"b\":{\"c\":1,\"c\":1}}", "duplicate key \"c\""));
    CHECK(refused_z("{\"a\":1,\"\\u0061\":2}", "duplicate key \"a\""));
    CHECK(refused_z("{\"\\n\":1,\"\\n\":2}", "duplicate key \"\""));
    CHECK(json("{\"a\":{\"a\":{\"a\":1}}}") && json("{\"a\":1,\"A\":2}"));

    static const int sizes[] = { 2, 15, 16, 17, 18, 1000 };         /* both ways of looking */
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        const Json *j = json(many_members(sizes[i], "last"));
        CHECK(j && j->n == (uint32_t)sizes[i] && p2o_json_get(j, "last")->i == -1);
        CHECK(p2o_json_get(j, "k0")->i == 0 && p2o_json_get(j, "none") == NULL);
        CHECK(str_is(j->members[j->n - 1].key, "last"));
        CHECK(refused_z(many_members(sizes[i], "k0"), "duplicate key \"k0\""));
    }
}

static void test_depth(void)
{
    for (int deep = 199; deep <= 201; deep++) {
        Buf b = { .arena = arena };
        for (int i = 0; i < deep; i++)
            p2o_puts(&b, i % 2 ? "{\"a\":" : "[");
        p2o_puts(&b, "7");
        for (int i = deep; i > 0; i--)
            p2o_puts(&b, (i - 1) % 2 ? "}" : "]");
        CHECK(deep > 200 ? refused(buf_str(&b), "deeper than 200") : json(b.at) != NULL);
    }
    static char open[1000000];
    memset(open, '[', sizeof open);
    CHECK(refused((Str){ open, sizeof open }, "deeper than 200"));
    Buf wide = { .arena = arena };                      /* depth is not the number of containers */
    p2o_puts(&wide, "[[]");
    for (int i = 0; i < 5000; i++)
        p2o_puts(&wide, ",[{}]");
    p2o_puts(&wide, "]");
    const Json *j = json(wide.at);
    CHECK(j && j->n == 5001 && j->items[5000].n == 1);
}

/* No prefix of a text is a text, and none is read past its end. */
static void test_prefixes(void)
{
    static const char text[] = "{\"a\\u00e9\\ud83d\\ude00\": [1, -2.5e+3, true, false, null],"
                               " \"\xE2\x82\xAC\": \"\", \"b\": {\"c\": NaN, \"d\": -Infinity}}";
    const char *error;
    CHECK(parse_text(STR(text), &error) != NULL);
    for (size_t n = 0; n < sizeof text - 1; n++)
        CHECK(parse_text((Str){ text, n }, &error) == NULL);
}

static void test_diagnostic(void)
{
    Diags *d = p2o_diags_new(arena, NULL, NULL);
    CHECK(p2o_json_parse(d, STR("[1, 2]"), "models/model.json") && p2o_diags_count(d) == 0);
    CHECK(p2o_json_parse(d, STR("[1, x]"), "models/model.json") == NULL);
    CHECK(p2o_diags_count(d) == 1 && p2o_diags_at(d, 0)->kind == DIAG_BAD_FILE);
    CHECK(same(p2o_diags_at(d, 0)->text, "models/model.json: not valid JSON: expected a value at "
                                         "byte 4, found 'x'"));
}

static bool quotes_as(Str s, const char *want)
{
    Buf b = { .arena = arena };
    p2o_json_quote(&b, s);
    return same(b.at, want);
}

static void test_quote(void)
{
    CHECK(quotes_as(STR(""), "\"\"") && quotes_as(STR("a b"), "\"a b\""));
    CHECK(quotes_as(STR("\"\\\n\r\t\b\f/"), "\"\\\"\\\\\\n\\r\\t\\b\\f/\""));
    CHECK(quotes_as(STR("\0\x01\x1F\x7F"), "\"\\u0000\\u0001\\u001f\x7F\""));
    CHECK(quotes_as(STR("\xC3\xA9\xF0\x9F\x98\x80"), "\"\xC3\xA9\xF0\x9F\x98\x80\""));
    CHECK(quotes_as(STR("a\xFF\xC3"), "\"a\\ufffd\\ufffd\""));

    char all[128];
    for (int i = 0; i < 128; i++)
        all[i] = (char)i;
    Buf b = { .arena = arena };
    p2o_json_quote(&b, (Str){ all, 128 });
    CHECK(is_string_value(b.at, (Str){ all, 128 }));    /* what is quoted reads back */
}

int main(void)
{
    arena = p2o_arena_new(NULL, NULL);
    test_scalars();
    test_numbers();
    test_strings();
    test_surrogates_and_utf8();
    test_containers();
    test_duplicates();
    test_depth();
    test_prefixes();
    test_diagnostic();
    test_quote();
    p2o_arena_free(arena);
    return check_report();
}
