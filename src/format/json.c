/* One pass over the text, recursive over values down to a fixed depth.  Children of the containers
 * that are still open wait on two stacks and move to an array of their own when theirs is closed,
 * so memory and time are linear in the text.  The first error stops the parse. */
#include "format/json.h"

#include <math.h>

#include "base/num.h"
#include "base/vec.h"

enum { MAX_DEPTH = 200, FEW_MEMBERS = 16 };

typedef struct JsonReader {
    Arena      *arena;
    const char *start, *p, *end;
    const char *error;                  /* NULL: none yet */
    int         depth;
    VEC(Json)       items;
    VEC(JsonMember) members;
} JsonReader;

static bool read_json_value(JsonReader *r, Json *out);

static bool json_error_at(JsonReader *r, const char *at, const char *what)
{
    r->error = p2o_printf(r->arena, "%s at byte %zu", what, (size_t)(at - r->start));
    return false;
}

static bool json_expected(JsonReader *r, const char *what)
{
    size_t at = (size_t)(r->p - r->start);
    if (r->p == r->end)
        r->error = p2o_printf(r->arena, "expected %s at byte %zu, found the end of the text", what,
                              at);
    else if (*r->p > 0x20 && *r->p < 0x7F)
        r->error = p2o_printf(r->arena, "expected %s at byte %zu, found '%c'", what, at, *r->p);
    else
        r->error = p2o_printf(r->arena, "expected %s at byte %zu, found byte 0x%02X", what, at,
                              (unsigned char)*r->p);
    return false;
}

static void skip_space(JsonReader *r)
{
    while (r->p < r->end && (*r->p == ' ' || *r->p == '\n' || *r->p == '\r' || *r->p == '\t'))
        r->p++;
}

/* The next byte that is no space; NUL at the end of the text. */
static char next_char(JsonReader *r)
{
    skip_space(r);
    return (char)(r->p < r->end ? *r->p : 0);
}

size_t p2o_json_utf8(Str s)
{
    const unsigned char *p = (const unsigned char *)s.p;
    if (s.n == 0)
        return 0;
    if (p[0] < 0x80)
        return 1;
    size_t   n = p[0] < 0xC2 ? 0 : p[0] < 0xE0 ? 2 : p[0] < 0xF0 ? 3 : p[0] < 0xF5 ? 4 : 0;
    uint32_t c = p[0] & (0x7Fu >> n);
    if (n == 0 || n > s.n)
        return 0;
    for (size_t i = 1; i < n; i++) {
        if ((p[i] & 0xC0) != 0x80)
            return 0;
        c = c << 6 | (p[i] & 0x3F);
    }
    bool overlong = (n == 3 && c < 0x800) || (n == 4 && c < 0x10000);
    return overlong || c > 0x10FFFF || (c >= 0xD800 && c < 0xE000) ? 0 : n;
}

static size_t encode_utf8(uint32_t c, char out[4])
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = n - 1; i > 0; i--, c >>= 6)
        out[i] = (char)(0x80 | (c & 0x3F));
    out[0] = (char)((0xF00u >> n & 0xF0) | c);
    return n;
}

/* Bytes that a string may hold as they are: printable ASCII but quote and backslash. */
static bool is_plain(unsigned char c) { return c >= 0x20 && c < 0x80 && c != '"' && c != '\\'; }

static bool read_hex4(JsonReader *r, uint32_t *out)
{
    uint32_t v = 0;
    if (r->end - r->p < 4)
        return json_error_at(r, r->p, "a \\u escape is cut short");
    for (int i = 0; i < 4; i++) {
        char c = *r->p++;
        int  digit = c >= '0' && c <= '9' ? c - '0'
                   : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
        if (digit < 0)
            return json_error_at(r, r->p - 1, "a \\u escape needs four hexadecimal digits");
        v = v << 4 | (uint32_t)digit;
    }
    *out = v;
    return true;
}

/* What follows a backslash.  Characters past 16 bits come as two escapes, a surrogate pair. */
static bool read_escape(JsonReader *r, uint32_t *out)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    const char       *begin = r->p - 1;
    char              c = (char)(r->p < r->end ? *r->p++ : 0);
    const char       *known = c ? strchr(from, c) : NULL;
    uint32_t          low;

    if (known) {
        *out = (unsigned char)to[known - from];
        return true;
    }
    if (c != 'u')
        return json_error_at(r, begin, "unknown escape");
    if (!read_hex4(r, out))
        return false;
    if (*out < 0xD800 || *out > 0xDFFF)
        return true;
    if (*out >= 0xDC00 || r->end - r->p < 2 || r->p[0] != '\\' || r->p[1] != 'u')
        return json_error_at(r, begin, "a lone surrogate");
    r->p += 2;
    if (!read_hex4(r, &low))
        return false;
    if (low < 0xDC00 || low > 0xDFFF)
        return json_error_at(r, begin, "a lone surrogate");
    *out = 0x10000 + ((*out - 0xD800) << 10) + (low - 0xDC00);
    return true;
}

/* Moves r->p over bytes that stand for themselves, to the quote, a backslash, or an error. */
static bool skip_plain(JsonReader *r)
{
    const char *p = r->p;
    for (;;) {
        while (p < r->end && is_plain((unsigned char)*p))
            p++;
        r->p = p;
        if (p == r->end)
            return json_expected(r, "a closing quote");
        if (*p == '"' || *p == '\\')
            return true;
        size_t n = p2o_json_utf8((Str){ p, (size_t)(r->end - p) });
        if (n < 2)
            return json_error_at(r, p, n ? "a control character in a string" : "invalid UTF-8");
        p += n;
    }
}

/* No escape makes a string longer than its text, so one buffer of the rest of that text's length
 * is enough: its end is searched for first. */
static bool read_escaped(JsonReader *r, const char *from, Str *out)
{
    const char *close = r->p;
    while (close < r->end && *close != '"')
        close += *close == '\\' && r->end - close > 1 ? 2 : 1;
    char  *text = p2o_alloc(r->arena, (size_t)(close - from));
    size_t n = 0;

    for (;;) {
        memcpy(text + n, from, (size_t)(r->p - from));
        n += (size_t)(r->p - from);
        if (*r->p++ == '"')
            break;
        uint32_t c;
        if (!read_escape(r, &c))
            return false;
        n += encode_utf8(c, text + n);
        from = r->p;
        if (!skip_plain(r))
            return false;
    }
    *out = (Str){ text, n };
    return true;
}

/* At the opening quote. */
static bool read_json_string(JsonReader *r, Str *out)
{
    const char *from = ++r->p;
    if (!skip_plain(r))
        return false;
    if (*r->p == '\\')
        return read_escaped(r, from, out);
    *out = (Str){ from, (size_t)(r->p - from) };
    r->p++;
    return true;
}

static bool skip_digits(JsonReader *r)
{
    const char *from = r->p;
    while (r->p < r->end && *r->p >= '0' && *r->p <= '9')
        r->p++;
    return r->p > from || json_expected(r, "a digit");
}

static bool take_json_word(JsonReader *r, Str word)
{
    if ((size_t)(r->end - r->p) < word.n || memcmp(r->p, word.p, word.n) != 0)
        return false;
    r->p += word.n;
    return true;
}

static bool read_number(JsonReader *r, Json *out)
{
    const char *from = r->p;
    bool        whole = true;

    r->p += *r->p == '-';
    if (take_json_word(r, STR("Infinity"))) {
        out->kind = JSON_FLOAT;
        out->f = -(double)INFINITY;
        return true;
    }
    if (r->p < r->end && *r->p == '0')
        r->p++;
    else if (!skip_digits(r))
        return false;
    if (r->p < r->end && *r->p == '.') {
        r->p++;
        whole = false;
        if (!skip_digits(r))
            return false;
    }
    if (r->p < r->end && (*r->p | 32) == 'e') {
        r->p++;
        whole = false;
        r->p += r->p < r->end && (*r->p == '+' || *r->p == '-');
        if (!skip_digits(r))
            return false;
    }
    Str text = { from, (size_t)(r->p - from) };
    out->kind = JSON_INT;
    if (whole && p2o_parse_i64(text, &out->i))
        return true;
    out->kind = JSON_FLOAT;
    return p2o_parse_f64(text, &out->f) || json_error_at(r, from, "a number too long to read");
}

/* After the closing bracket: the n newest items become the list's own. */
static void close_list(JsonReader *r, size_t base, Json *out)
{
    size_t n = r->items.n - base;
    out->n = (uint32_t)n;
    out->items = NEW_N(r->arena, Json, n);
    if (n)
        memcpy(out->items, r->items.at + base, n * sizeof *out->items);
    r->items.n = base;
}

static bool read_json_list(JsonReader *r, Json *out)
{
    size_t base = r->items.n;
    out->kind = JSON_LIST;
    out->items = NULL;
    r->p++;
    if (next_char(r) == ']') {
        r->p++;
        return true;
    }
    for (;;) {
        Json item;
        if (!read_json_value(r, &item))
            return false;
        VEC_PUSH(r->arena, &r->items, item);
        char c = next_char(r);
        if (c != ',' && c != ']')
            return json_expected(r, "',' or ']'");
        r->p++;
        if (c == ']')
            break;
    }
    close_list(r, base, out);
    return true;
}

static bool duplicate_key(JsonReader *r, Str key)
{
    if (key.n > 60)
        key.n = 0;                      /* no use in a message, and a cut might split a character */
    for (size_t i = 0; i < key.n; i++)
        if ((unsigned char)key.p[i] < 0x20)
            key.n = 0;
    r->error = p2o_printf(r->arena, "duplicate key \"%.*s\" before byte %zu", STR_ARG(key),
                          (size_t)(r->p - r->start));
    return false;
}

static bool index_members(JsonReader *r, Json *o)
{
    if (o->n <= FEW_MEMBERS) {
        for (size_t i = 1; i < o->n; i++)
            for (size_t k = 0; k < i; k++)
                if (str_eq(o->members[i].key, o->members[k].key))
                    return duplicate_key(r, o->members[i].key);
        return true;
    }
    Map *m = NEW(r->arena, Map);
    m->arena = r->arena;
    for (size_t i = 0; i < o->n; i++) {
        void **slot = p2o_map_slot(m, o->members[i].key);
        if (*slot)
            return duplicate_key(r, o->members[i].key);
        *slot = &o->members[i];
    }
    o->index = m;
    return true;
}

static bool close_object(JsonReader *r, size_t base, Json *out)
{
    size_t n = r->members.n - base;
    out->n = (uint32_t)n;
    out->members = NEW_N(r->arena, JsonMember, n);
    if (n)
        memcpy(out->members, r->members.at + base, n * sizeof *out->members);
    r->members.n = base;
    return index_members(r, out);
}

static bool read_json_object(JsonReader *r, Json *out)
{
    size_t base = r->members.n;
    out->kind = JSON_OBJ;
    out->members = NULL;
    out->index = NULL;
    r->p++;
    if (next_char(r) == '}') {
        r->p++;
        return true;
    }
    for (;;) {
        JsonMember m;
        if (next_char(r) != '"')
            return json_expected(r, "a key in quotes");
        if (!read_json_string(r, &m.key))
            return false;
        if (next_char(r) != ':')
            return json_expected(r, "':'");
        r->p++;
        if (!read_json_value(r, &m.value))
            return false;
        VEC_PUSH(r->arena, &r->members, m);
        char c = next_char(r);
        if (c != ',' && c != '}')
            return json_expected(r, "',' or '}'");
        r->p++;
        if (c == '}')
            break;
    }
    return close_object(r, base, out);
}

static bool read_json_word(JsonReader *r, Json *out)
{
    if (take_json_word(r, STR("null")))
        return true;                    /* kind 0 is JSON_NULL */
    if (take_json_word(r, STR("true"))) {
        out->kind = JSON_BOOL;
        out->b = true;
        return true;
    }
    if (take_json_word(r, STR("false"))) {
        out->kind = JSON_BOOL;
        return true;
    }
    out->kind = JSON_FLOAT;
    out->f = (double)INFINITY;
    if (take_json_word(r, STR("Infinity")))
        return true;
    out->f = (double)NAN;
    return take_json_word(r, STR("NaN")) || json_expected(r, "a value");
}

static bool read_json_value(JsonReader *r, Json *out)
{
    char c = next_char(r);
    bool ok;

    *out = (Json){ .pos = (uint32_t)(r->p - r->start) };
    if (c == '"') {
        out->kind = JSON_STR;
        return read_json_string(r, &out->s);
    }
    if (c == '-' || (c >= '0' && c <= '9'))
        return read_number(r, out);
    if (c != '{' && c != '[')
        return read_json_word(r, out);
    if (r->depth == MAX_DEPTH)
        return json_error_at(r, r->p, "nested deeper than 200 levels");
    r->depth++;
    ok = c == '{' ? read_json_object(r, out) : read_json_list(r, out);
    r->depth--;
    return ok;
}

const Json *p2o_json_try(Arena *a, Str text, const char **error)
{
    if (text.n > UINT32_MAX) {
        *error = "longer than 4 GB";
        return NULL;
    }
    const char *start = text.n ? text.p : "";
    JsonReader  r = { .arena = a, .start = start, .p = start, .end = start + text.n };
    Json       *root = NEW(a, Json);

    if (read_json_value(&r, root)) {
        skip_space(&r);
        if (r.p == r.end)
            return root;
        json_expected(&r, "the end of the text");
    }
    *error = r.error;
    return NULL;
}

const Json *p2o_json_parse(Diags *d, Str text, const char *what)
{
    const char *error;
    const Json *j = p2o_json_try(p2o_diags_arena(d), text, &error);
    if (!j)
        p2o_diag(d, DIAG_BAD_FILE, 0, "%s: not valid JSON: %s", what, error);
    return j;
}

const Json *p2o_json_get(const Json *j, const char *key)
{
    Str k = str_of(key);
    if (!j || j->kind != JSON_OBJ)
        return NULL;
    if (j->index) {
        const JsonMember *m = p2o_map_get(j->index, k);
        return m ? &m->value : NULL;
    }
    for (uint32_t i = 0; i < j->n; i++)
        if (str_eq(j->members[i].key, k))
            return &j->members[i].value;
    return NULL;
}

void p2o_json_quote(Buf *b, Str s)
{
    static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";

    p2o_put(b, "\"", 1);
    while (s.n) {
        unsigned char c = (unsigned char)s.p[0];
        const char   *known = c ? strchr(from, c) : NULL;
        size_t        n = p2o_json_utf8(s);
        if (known)
            p2o_putf(b, "\\%c", to[known - from]);
        else if (c < 0x20)
            p2o_putf(b, "\\u%04x", c);
        else if (n == 0)
            p2o_puts(b, "\\ufffd");
        else
            p2o_put(b, s.p, n);
        s.p += n ? n : 1;
        s.n -= n ? n : 1;
    }
    p2o_put(b, "\"", 1);
}
