#include "dyn/source.h"

#include <math.h>

#include "base/num.h"
#include "base/vec.h"

static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_word(char c) { return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

/* 1e-5: a sign belongs to the number after its e. */
static bool continues(Str s, size_t i)
{
    bool sign = s.p[i] == '-' || s.p[i] == '+';
    return is_word(s.p[i]) || s.p[i] == '.' || (sign && (s.p[i - 1] == 'e' || s.p[i - 1] == 'E'));
}

/* The next number of the text, which is cut to what follows it. */
static bool next_number(Str *text, double *v)
{
    for (size_t i = 0; i < text->n;) {
        size_t start = i;
        if (!is_word(text->p[i]) && !(text->p[i] == '.' && i + 1 < text->n && is_digit(text->p[i + 1]))) {
            i++;
            continue;
        }
        bool number = is_digit(text->p[i]) || text->p[i] == '.';
        for (i++; i < text->n && (number ? continues(*text, i) : is_word(text->p[i])); i++)
            continue;
        Str token = { text->p + start, i - start };
        if (number && p2o_parse_f64(token, v)) {
            *text = (Str){ text->p + i, text->n - i };
            return true;
        }
    }
    return false;
}

static bool has_number(Str text, double number)
{
    double v;
    while (next_number(&text, &v))
        if (v == fabs(number))
            return true;
    return false;
}

static bool is_whole_statement(Str s)
{
    int depth = 0;
    for (size_t i = 0; i < s.n; i++)
        depth += (s.p[i] == '(' || s.p[i] == '[' || s.p[i] == '{') - (s.p[i] == ')' || s.p[i] == ']' || s.p[i] == '}');
    return s.n > 0 && depth == 0 && is_word(s.p[0]) && !strchr("\\+-*/%@=<>&|^~.", s.p[s.n - 1]);
}

Answer p2o_source_spells(const Place *at, double number)
{
    Str text = str_of(at && at->text ? at->text : "");
    if (!is_whole_statement(text))
        return CANNOT_TELL;
    return has_number(text, number) ? YES : NO;
}

Answer p2o_source_spells_all(const Place *at, Dims *t, Dim expr)
{
    Str    text = str_of(at && at->text ? at->text : ""), numbers = str_of(p2o_dim_text(t, expr));
    double v;
    if (!is_whole_statement(text))
        return CANNOT_TELL;
    while (next_number(&numbers, &v))
        if (!has_number(text, v))
            return NO;
    return YES;
}

bool p2o_source_reads_sizes(const Place *at)
{
    static const char *const words[] = { ".shape", ".size(", "len(", ".numel(", ".nelement(" };
    for (size_t i = 0; at && at->text && i < COUNT_OF(words); i++)
        if (strstr(at->text, words[i]))
            return true;
    return false;
}
