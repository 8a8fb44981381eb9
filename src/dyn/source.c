#include "dyn/source.h"

#include <math.h>

#include "base/num.h"
#include "base/vec.h"

typedef struct Token {
    double number;
    bool   alone;               /* a whole argument or item, not part of arithmetic */
} Token;

static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_word(char c) { return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

/* 1e-5: a sign belongs to the number after its e. */
static bool continues(Str s, size_t i)
{
    bool sign = s.p[i] == '-' || s.p[i] == '+';
    return is_word(s.p[i]) || s.p[i] == '.' || (sign && (s.p[i - 1] == 'e' || s.p[i - 1] == 'E'));
}

/* Past the bracket that opens at i. */
static size_t past_bracket(Str s, size_t i)
{
    int depth = 0;
    for (; i < s.n; i++) {
        depth += (s.p[i] == '(' || s.p[i] == '[') - (s.p[i] == ')' || s.p[i] == ']');
        if (depth == 0)
            return i + 1;
    }
    return s.n;
}

static char before(Str s, size_t i)
{
    while (i > 0 && s.p[i - 1] == ' ')
        i--;
    return i > 0 ? s.p[i - 1] : ',';
}

static char after(Str s, size_t i)
{
    while (i < s.n && s.p[i] == ' ')
        i++;
    return i < s.n ? s.p[i] : ',';
}

/* The next number at or after *at, which moves past it.  An axis in x.shape[1] or x.size(1) is none. */
static bool next_number(Str s, size_t *at, Token *t)
{
    for (size_t i = *at; i < s.n;) {
        size_t start = i;
        if (!is_word(s.p[i]) && !(s.p[i] == '.' && i + 1 < s.n && is_digit(s.p[i + 1]))) {
            i++;
            continue;
        }
        bool number = is_digit(s.p[i]) || s.p[i] == '.';
        for (i++; i < s.n && (number ? continues(s, i) : is_word(s.p[i])); i++)
            continue;
        Str word = { s.p + start, i - start };
        if (number && p2o_parse_f64(word, &t->number)) {
            t->alone = strchr(",([{:=", before(s, start)) && strchr(",)]}:;", after(s, i));
            *at = i;
            return true;
        }
        if (str_is(word, "shape") || str_is(word, "size") || str_is(word, "dim"))
            i = i < s.n && (s.p[i] == '[' || s.p[i] == '(') ? past_bracket(s, i) : i;
    }
    return false;
}

static int count_number(Str s, double number, bool alone)
{
    Token t;
    int   n = 0;
    for (size_t at = 0; next_number(s, &at, &t);)
        n += t.number == fabs(number) && (t.alone || !alone);
    return n;
}

/* What stands in the brackets of the next call of `name` at or after *at, which moves past it. */
static bool next_call(Str s, Str name, size_t *at, Str *args)
{
    for (size_t i = *at; i < s.n; i++) {
        size_t end = i + name.n;
        if (end >= s.n || memcmp(s.p + i, name.p, name.n) ||
            s.p[end] != '(' || (i > 0 && is_word(s.p[i - 1])))
            continue;
        *at = past_bracket(s, end);
        *args = (Str){ s.p + end, *at - end };
        return true;
    }
    return false;
}

/* x[...]; a list is none. */
static bool next_subscript(Str s, size_t *at, Str *args)
{
    for (size_t i = *at ? *at : 1; i < s.n; i++) {
        if (s.p[i] != '[' || !(is_word(s.p[i - 1]) || s.p[i - 1] == ')' || s.p[i - 1] == ']'))
            continue;
        *at = past_bracket(s, i);
        *args = (Str){ s.p + i, *at - i };
        if (!p2o_str_ends((Str){ s.p, i }, ".shape") && !p2o_str_ends((Str){ s.p, i }, ".size()"))
            return true;
        i = *at - 1;
    }
    return false;
}

/* What a person calls the operator: "view" for aten::view.dtype, one name for all kinds of padding and resizing. */
static Str name_of(const char *target)
{
    Str rest, name = str_of(target);
    while (p2o_str_cut(name, ':', &rest).n < name.n)
        name = rest;
    name = p2o_str_cut(name, '.', &rest);
    bool pad = p2o_str_starts(name, "constant_pad") || p2o_str_starts(name, "reflection_pad") || p2o_str_starts(name, "replication_pad");
    bool resize = p2o_str_starts(name, "upsample_") || p2o_str_starts(name, "_upsample_");
    return pad ? STR("pad") : resize ? STR("interpolate") : name;
}

/* Python gives the first line only of a statement of several. */
static bool is_whole_statement(Str s)
{
    int depth = 0;
    for (size_t i = 0; i < s.n; i++)
        depth += (s.p[i] == '(' || s.p[i] == '[' || s.p[i] == '{') - (s.p[i] == ')' || s.p[i] == ']' || s.p[i] == '}');
    return s.n > 0 && depth == 0 && is_word(s.p[0]) && !strchr("\\+-*/%@=<>&|^~.", s.p[s.n - 1]);
}

static Str text_of(const Place *at) { return str_of(at && at->text ? at->text : ""); }

bool p2o_source_known(const Place *at) { return is_whole_statement(text_of(at)); }

bool p2o_source_spells(const Place *at, double number) { return count_number(text_of(at), number, false) > 0; }

bool p2o_source_computes(const Place *at, double number)
{
    return count_number(text_of(at), number, false) > count_number(text_of(at), number, true);
}

/* Operators that are written between their operands. */
static const char *infix_of(Str name)
{
    static const char *const signs[][2] = {
        { "add", "+" }, { "sub", "-" }, { "rsub", "-" }, { "mul", "*" }, { "div", "/" }, { "floor_divide", "//" },
        { "remainder", "%" }, { "pow", "**" }, { "eq", "==" }, { "ne", "!=" }, { "lt", "<" }, { "le", "<=" },
        { "gt", ">" }, { "ge", ">=" } };
    for (size_t i = 0; i < COUNT_OF(signs); i++)
        if (str_is(name, signs[i][0]))
            return signs[i][1];
    return NULL;
}

/* The next place where the operator's arguments may stand, and what stands there. */
static bool next_args(Str text, const char *target, size_t *at, Str *args)
{
    static const char *const views[] = { "view", "reshape", "unflatten", "flatten" };
    Str name = name_of(target);
    if (str_is(name, "slice") || str_is(name, "select"))
        return next_subscript(text, at, args) || next_call(text, STR("narrow"), at, args) || next_call(text, name, at, args);
    if (!str_is(name, "view") && !str_is(name, "reshape") && !str_is(name, "_unsafe_view"))
        return next_call(text, name, at, args);
    for (size_t i = 0; i < COUNT_OF(views); i++)
        if (next_call(text, str_of(views[i]), at, args))
            return true;
    return false;
}

bool p2o_source_shows(const Place *at, const char *target)
{
    Str         args;
    size_t      i = 0;
    const char *sign = infix_of(name_of(target));
    if (!p2o_source_known(at))
        return false;
    return (sign && strstr(at->text, sign)) || next_args(text_of(at), target, &i, &args);
}

int p2o_source_items(const Place *at, const char *target, double number)
{
    Str args, text = text_of(at);
    int n = 0;
    for (size_t i = 0; next_args(text, target, &i, &args);)
        n += count_number(args, number, true);
    return n;
}

/* self.heads, self.config.heads, between these. */
static bool has_attribute(Str s, const char *left, const char *right)
{
    static const char self[] = "self.";
    for (size_t i = 1; i + sizeof self - 1 <= s.n; i++) {
        if (memcmp(s.p + i, self, sizeof self - 1) || !strchr(left, before(s, i)))
            continue;
        size_t end = i;
        while (end < s.n && (is_word(s.p[end]) || s.p[end] == '.'))
            end++;
        if (strchr(right, after(s, end)))
            return true;
    }
    return false;
}

bool p2o_source_has_attribute(const Place *at, const char *target)
{
    Str args, text = text_of(at);
    if (infix_of(name_of(target)) && has_attribute(text, "+-*/%<>=(,[ ", "+-*/%<>=),]: "))
        return true;
    for (size_t i = 0; next_args(text, target, &i, &args);)
        if (has_attribute(args, ",([{:=-", ",)]}:"))
            return true;
    return false;
}

static bool has_arithmetic(Str s)
{
    static const char *const calls[] = { "int(", "min(", "max(", "abs(", "round(", "ceil(", "floor(", "sqrt(", "log" };
    for (size_t i = 1; i < s.n; i++) {
        bool minus = s.p[i] == '-' && !strchr(",([:=", before(s, i));          /* not a sign */
        if (strchr("+*/%", s.p[i]) || minus)
            return true;
        for (size_t k = 0; k < COUNT_OF(calls); k++)
            if (!is_word(s.p[i - 1]) && p2o_str_starts((Str){ s.p + i, s.n - i }, calls[k]))
                return true;
    }
    return false;
}

bool p2o_source_computes_args(const Place *at, const char *target)
{
    Str args, text = text_of(at);
    for (size_t i = 0; next_args(text, target, &i, &args);)
        if (has_arithmetic(args))
            return true;
    return false;
}

bool p2o_source_reads_sizes(const Place *at)
{
    static const char *const words[] = { ".shape", ".size(", "len(", ".numel(", ".nelement(" };
    for (size_t i = 0; at && at->text && i < COUNT_OF(words); i++)
        if (strstr(at->text, words[i]))
            return true;
    return false;
}
