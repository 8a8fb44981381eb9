/* JSON (RFC 8259) -> an inert tree in an arena.
 *
 * Integers that fit int64 stay exact; other numbers are doubles.  Bare NaN, Infinity and -Infinity
 * are accepted: PyTorch before 2.7 wrote them.  Duplicate keys, invalid UTF-8, lone surrogates and
 * nesting past 200 are errors.
 *
 * Strings are slices of valid UTF-8, not NUL-terminated, and may hold NUL.  Those without escapes
 * point into the text, which must outlive the tree; the others, unescaped, into the arena. */
#ifndef P2O_FORMAT_JSON_H
#define P2O_FORMAT_JSON_H

#include "base/diag.h"

typedef enum JsonKind {
    JSON_NULL, JSON_BOOL, JSON_INT, JSON_FLOAT, JSON_STR, JSON_LIST, JSON_OBJ
} JsonKind;

typedef struct Json Json;
typedef struct JsonMember JsonMember;

struct Json {
    JsonKind kind;
    uint32_t pos;                       /* byte offset in the text, for messages */
    uint32_t n;                         /* of LIST and OBJ */
    union {
        bool        b;
        int64_t     i;
        double      f;
        Str         s;
        Json       *items;
        struct {
            JsonMember *members;        /* in the order of the text */
            const Map  *index;          /* key -> JsonMember *; NULL when there are few */
        };
    };
};

struct JsonMember {
    Str  key;
    Json value;
};

/* NULL after a diagnostic that names `what` (say, "models/model.json") and the position. */
const Json *p2o_json_parse(Diags *d, Str text, const char *what);
/* The same, quiet: NULL and *error (a static or arena string). */
const Json *p2o_json_try(Arena *a, Str text, const char **error);

/* Member of an object; NULL when j is NULL, no object, or has none by that name. */
const Json *p2o_json_get(const Json *j, const char *key);
/* "..." with escapes; bytes that are not UTF-8 become U+FFFD. */
void p2o_json_quote(Buf *b, Str s);

/* Length of the UTF-8 character that s begins with; 0 when it begins with none. */
size_t p2o_json_utf8(Str s);

#endif
