#include "dyn/spell.h"

#include "base/num.h"

static bool is_decimal(char c) { return c >= '0' && c <= '9'; }

static bool in_name(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* Past the bracket that opens at i. */
static size_t behind_bracket(Str s, size_t i)
{
    int depth = 0;
    for (; i < s.n; i++) {
        depth += (s.p[i] == '(' || s.p[i] == '[') - (s.p[i] == ')' || s.p[i] == ']');
        if (depth == 0)
            return i + 1;
    }
    return s.n;
}

/* The word or number at i: digits go on over a point, and over a sign after their e. */
static size_t end_of_word(Str s, size_t i, bool number)
{
    for (i++; i < s.n; i++) {
        bool sign = number && (s.p[i] == '-' || s.p[i] == '+') &&
                    (s.p[i - 1] == 'e' || s.p[i - 1] == 'E');
        if (!in_name(s.p[i]) && !(number && s.p[i] == '.') && !sign)
            break;
    }
    return i;
}

/* The number at i has a sign of its own: [-1, 4], not n-1. */
static bool is_negated(Str s, size_t i)
{
    if (i == 0 || s.p[i - 1] != '-')
        return false;
    for (i--; i > 0 && s.p[i - 1] == ' '; i--)
        ;
    return i == 0 || strchr("([{,:=", s.p[i - 1]);
}

static bool asks_for_axis(Str word)
{
    return str_is(word, "shape") || str_is(word, "size") || str_is(word, "dim");
}

/* n - 1, 2 * n: a part of what is computed there. */
static bool is_operand(Str s, size_t i, size_t end)
{
    bool negated = is_negated(s, i);
    for (; i > 0 && s.p[i - 1] == ' '; i--)
        ;
    for (; end < s.n && s.p[end] == ' '; end++)
        ;
    return (i > 0 && !negated && strchr("+-*/%", s.p[i - 1])) ||
           (end < s.n && strchr("+-*/%", s.p[end]));
}

typedef enum SpellKind { SPELL_ANY, SPELL_ALONE, SPELL_FLOAT } SpellKind;

/* 1.0 or 1e3: Python has a float of it. */
static bool is_float_text(Str word)
{
    for (size_t i = 0; i < word.n; i++)
        if (strchr(".eE", word.p[i]))
            return true;
    return false;
}

static int times_in(const Place *at, double number, SpellKind kind)
{
    int    n = 0;
    double v;
    if (!at || !at->text)
        return -1;
    Str s = str_of(at->text);
    for (size_t i = 0; i < s.n;) {
        bool digits = is_decimal(s.p[i]) ||
                      (s.p[i] == '.' && i + 1 < s.n && is_decimal(s.p[i + 1]));
        if (!digits && !in_name(s.p[i])) {
            i++;
            continue;
        }
        size_t end = end_of_word(s, i, digits);
        Str    word = { s.p + i, end - i };
        n += digits && p2o_parse_f64(word, &v) && (is_negated(s, i) ? -v : v) == number &&
             !(kind == SPELL_ALONE && is_operand(s, i, end)) &&
             !(kind == SPELL_FLOAT && !is_float_text(word));
        if (!digits && asks_for_axis(word) && end < s.n && (s.p[end] == '[' || s.p[end] == '('))
            end = behind_bracket(s, end);
        i = end;
    }
    return n;
}

int p2o_spelled_times(const Place *at, double number) { return times_in(at, number, SPELL_ANY); }
int p2o_spelled_alone(const Place *at, double number) { return times_in(at, number, SPELL_ALONE); }
int p2o_spelled_float(const Place *at, double number) { return times_in(at, number, SPELL_FLOAT); }
