/* Tree specs: how the user's nested arguments and results were flattened (torch.utils._pytree).
 *
 * A spec is a string holding `[1, node]`, node = {"type", "context", "children_spec"}; a leaf has
 * type null.  The context names the children, in a way of its own for each type, and is often JSON
 * inside a string inside the JSON inside a string.  Depth is limited by the JSON reader. */
#include "front/pt2_parts.h"

/* Longer paths name nothing a user would type, and could make a small file large. */
enum { LONGEST_PATH = 500 };

typedef struct TreeWalk {
    Pt2        *pt2;
    Map         fields;                 /* treespec_namedtuple_fields: type -> Json */
    Pt2Leaves  *leaves;
    char        path[LONGEST_PATH + 1];
} TreeWalk;

/* A context that is JSON in a string is read; any other stays what it is. */
static const Json *unwrap_context(TreeWalk *w, const Json *context)
{
    const char *error;
    if (!context || context->kind != JSON_STR)
        return context;
    const Json *inner = p2o_json_try(w->pt2->arena, context->s, &error);
    return inner ? inner : context;
}

static bool is_list_of(const Json *j, size_t n) { return j && j->kind == JSON_LIST && j->n == n; }

static bool are_strings(const Json *list)
{
    for (uint32_t i = 0; i < list->n; i++)
        if (list->items[i].kind != JSON_STR)
            return false;
    return list->n > 0;
}

/* The list of the children's names; NULL when they have none but their positions. */
static const Json *child_names(TreeWalk *w, Str type, const Json *context, size_t n)
{
    static const char *const sequences[] = {
        "builtins.tuple", "builtins.list", "torch.Size", "collections.deque",
        "torch.fx.immutable_collections.immutable_list"
    };
    for (size_t i = 0; i < COUNT_OF(sequences); i++)
        if (str_is(type, sequences[i]))
            return NULL;
    if (str_is(type, "collections.namedtuple")) {
        bool        is_text = context && context->kind == JSON_STR;
        const Json *fields = is_text ? p2o_map_get(&w->fields, context->s) : NULL;
        const Json *names = p2o_pt2_get(fields, "field_names");
        return is_list_of(names, n) ? names : NULL;
    }
    const Json *inner = unwrap_context(w, context);
    if (str_is(type, "collections.defaultdict"))
        inner = unwrap_context(w, p2o_pt2_get(inner, "dict_context"));
    bool is_dict = p2o_str_starts(type, "collections.") || str_is(type, "builtins.dict") ||
                   str_is(type, "torch.fx.immutable_collections.immutable_dict");
    if (is_list_of(inner, n) && (is_dict || are_strings(inner)))
        return inner;
    /* A registered dataclass: [fields, fields that were None]. */
    if (is_list_of(inner, 2) && is_list_of(&inner->items[0], n) && are_strings(&inner->items[0]))
        return &inner->items[0];
    return NULL;
}

/* Keys of a dict may be any of these; lists and objects fall back to the position. */
static const char *key_text(Arena *a, const Json *key, size_t position)
{
    if (key && key->kind == JSON_INT)
        return p2o_printf(a, "%lld", (long long)key->i);
    if (key && key->kind == JSON_BOOL)
        return key->b ? "True" : "False";
    if (key && key->kind == JSON_NULL)
        return "None";
    if (!key || key->kind != JSON_STR || !key->s.n)
        return p2o_printf(a, "%zu", position);
    char *text = p2o_alloc(a, key->s.n + 1);
    for (size_t i = 0; i < key->s.n; i++)
        text[i] = (unsigned char)key->s.p[i] < ' ' || key->s.p[i] == 0x7F ? '_' : key->s.p[i];
    return text;
}

/* w->path[0, n) is the path of the node; n past LONGEST_PATH: too long to keep. */
static void walk_tree(TreeWalk *w, const Json *node, size_t n, bool named)
{
    const Json *type = p2o_pt2_get(node, "type"), *children = p2o_pt2_get(node, "children_spec");
    size_t      count = p2o_pt2_count(children);
    Arena      *a = w->pt2->arena;

    if (!type || type->kind != JSON_STR) {
        Pt2Leaf leaf = { NULL };
        if (named && n > 0 && n <= LONGEST_PATH)
            leaf.path = p2o_str_dup(a, (Str){ w->path, n });
        VEC_PUSH(a, &w->leaves->list, leaf);
        return;
    }
    const Json *names = child_names(w, type->s, p2o_pt2_get(node, "context"), count);
    for (size_t i = 0; i < count; i++) {
        const char *key = key_text(a, names ? &names->items[i] : NULL, i);
        size_t      sep = n > 0, len = strlen(key), end = n + sep + len;
        if (n > LONGEST_PATH || end > LONGEST_PATH) {
            end = LONGEST_PATH + 1;
        } else {
            memcpy(w->path + n, "_", sep);
            memcpy(w->path + n + sep, key, len);
        }
        walk_tree(w, &children->items[i], end, named || names);
    }
}

Pt2Leaves p2o_pt2_leaves(Pt2 *r, const Json *spec, const Json *fields, const char *what)
{
    Pt2Leaves   leaves = { .known = false };
    const char *error;

    if (!spec || spec->kind != JSON_STR)
        return leaves;
    const Json *j = p2o_json_try(r->arena, spec->s, &error);
    if (!is_list_of(j, 2) || j->items[1].kind != JSON_OBJ) {
        p2o_pt2_bad(r, 0, "%s is no tree: %s", what, j ? "[1, node] is expected" : error);
        return leaves;
    }
    TreeWalk *w = NEW(r->arena, TreeWalk);
    *w = (TreeWalk){ .pt2 = r, .fields.arena = r->arena, .leaves = &leaves };
    for (uint32_t i = 0; fields && fields->kind == JSON_OBJ && i < fields->n; i++)
        map_put(&w->fields, fields->members[i].key, &fields->members[i].value);
    leaves.known = true;
    walk_tree(w, &j->items[1], 0, false);
    return leaves;
}
