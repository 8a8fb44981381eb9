/* Any bytes as JSON: no crash, and a tree whose strings are valid and survive quoting. */
#include <stdlib.h>

#include "format/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_string(Arena *a, Str s)
{
    const char *error;
    Buf         b = { .arena = a };
    p2o_json_quote(&b, s);
    const Json *back = p2o_json_try(a, buf_str(&b), &error);
    if (!back || back->kind != JSON_STR || !str_eq(back->s, s))
        abort();
}

/* The parser limits the depth, and with it this recursion. */
static void walk_json(Arena *a, const Json *j)
{
    if (j->kind == JSON_STR)
        check_string(a, j->s);
    for (uint32_t i = 0; j->kind == JSON_LIST && i < j->n; i++)
        walk_json(a, &j->items[i]);
    for (uint32_t i = 0; j->kind == JSON_OBJ && i < j->n; i++) {
        check_string(a, j->members[i].key);
        walk_json(a, &j->members[i].value);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Arena      *a = p2o_arena_new(NULL, NULL);
    const char *error = NULL;
    const Json *j = p2o_json_try(a, (Str){ (const char *)data, size }, &error);
    if (j)
        walk_json(a, j);
    else if (!error)
        abort();
    p2o_arena_free(a);
    return 0;
}
