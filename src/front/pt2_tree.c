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
    Pt2Cache   *cache;                  /* that we are in; NULL: in none */
    size_t      cache_at;               /* length of its path */
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

static bool is_sequence(Str type)
{
    static const char *const sequences[] = {
        "builtins.tuple", "builtins.list", "torch.Size", "collections.deque",
        "torch.fx.immutable_collections.immutable_list"
    };
    for (size_t i = 0; i < COUNT_OF(sequences); i++)
        if (str_is(type, sequences[i]))
            return true;
    return false;
}

/* The list of the children's names; NULL when they have none but their positions. */
static const Json *child_names(TreeWalk *w, Str type, const Json *context, size_t n)
{
    if (is_sequence(type))
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

/* A node of the tree, read. */
typedef struct TreeNode {
    bool        is_leaf, is_sequence;
    const Json *children;
    size_t      n;
    const Json *names;                  /* of the children; NULL: positions */
} TreeNode;

static TreeNode read_node(TreeWalk *w, const Json *node)
{
    const Json *type = p2o_pt2_get(node, "type");
    TreeNode    t = { .children = p2o_pt2_get(node, "children_spec") };
    t.is_leaf = !type || type->kind != JSON_STR;
    t.n = t.is_leaf ? 0 : p2o_pt2_count(t.children);
    t.is_sequence = !t.is_leaf && is_sequence(type->s);
    t.names = t.is_leaf ? NULL : child_names(w, type->s, p2o_pt2_get(node, "context"), t.n);
    return t;
}

static bool are_leaves(TreeWalk *w, const TreeNode *t)
{
    for (size_t i = 0; i < t->n; i++)
        if (!read_node(w, &t->children->items[i]).is_leaf)
            return false;
    return true;
}

static bool name_starts(const TreeNode *t, size_t child, const char *prefix)
{
    const Json *name = t->names ? &t->names->items[child] : NULL;
    return name && name->kind == JSON_STR && p2o_str_starts(name->s, prefix);
}

static bool has_keys_and_values(const TreeNode *t)
{
    bool keys = false, values = false;
    for (size_t i = 0; i < t->n; i++) {
        keys |= name_starts(t, i, "key");
        values |= name_starts(t, i, "value");
    }
    return keys && values;
}

/* {"key_cache": [a leaf for each layer], "value_cache": [..]}, maybe with more such lists. */
static bool is_lists_of_layers(TreeWalk *w, const TreeNode *t, size_t *layers)
{
    if (!has_keys_and_values(t))
        return false;
    for (size_t i = 0; i < t->n; i++) {
        TreeNode list = read_node(w, &t->children->items[i]);
        if (!list.is_sequence || !are_leaves(w, &list) || (i && list.n != *layers))
            return false;
        *layers = list.n;
    }
    return true;
}

enum { PAIR = 2, TWO_PAIRS = 4 };       /* of a decoder; and of its encoder, older transformers */

/* [(key, value) for each layer]: leaves in a tuple, or by name. */
static bool is_list_of_layers(TreeWalk *w, const TreeNode *t, Pt2Cache *c)
{
    for (size_t i = 0; t->is_sequence && i < t->n; i++) {
        TreeNode layer = read_node(w, &t->children->items[i]);
        bool     by_name = has_keys_and_values(&layer);
        bool     pair = layer.is_sequence && (layer.n == PAIR || layer.n == TWO_PAIRS);
        if ((!by_name && !pair) || !are_leaves(w, &layer) || (i && layer.n != c->arity))
            return false;
        c->arity = (uint32_t)layer.n;
        c->evident = by_name;
        c->layers = (uint32_t)t->n;
    }
    return t->is_sequence && t->n > 0;
}

static bool is_self_and_cross(TreeWalk *w, const TreeNode *t)
{
    size_t self, cross;
    if (t->n != 2 || !name_starts(t, 0, "self_attention") || !name_starts(t, 1, "cross_attention"))
        return false;
    TreeNode a = read_node(w, &t->children->items[0]), b = read_node(w, &t->children->items[1]);
    return is_lists_of_layers(w, &a, &self) && is_lists_of_layers(w, &b, &cross);
}

static void add_leaf(TreeWalk *w, size_t n, bool named, const char *part)
{
    Arena  *a = w->pt2->arena;
    Pt2Leaf leaf = { NULL };
    if (named && n > 0 && n <= LONGEST_PATH)
        leaf.path = p2o_str_dup(a, (Str){ w->path, n });
    if (w->cache && part && n > w->cache_at && n <= LONGEST_PATH) {
        leaf.cache = w->cache;
        leaf.inside = p2o_str_dup(a, (Str){ w->path + w->cache_at, n - w->cache_at });
        leaf.part = part;
    }
    VEC_PUSH(a, &w->leaves->list, leaf);
}

/* The path of a child: its end. */
static size_t step_into(TreeWalk *w, const TreeNode *t, size_t child, size_t n)
{
    const char *key = key_text(w->pt2->arena, t->names ? &t->names->items[child] : NULL, child);
    size_t      sep = n > 0, len = strlen(key), end = n + sep + len;
    if (n > LONGEST_PATH || end > LONGEST_PATH)
        return LONGEST_PATH + 1;
    memcpy(w->path + n, "_", sep);
    memcpy(w->path + n + sep, key, len);
    return end;
}

static const char *part_name(TreeWalk *w, const TreeNode *t, size_t child)
{
    if (name_starts(t, child, "key"))
        return "key";
    if (name_starts(t, child, "value"))
        return "value";
    if (t->names)
        return key_text(w->pt2->arena, &t->names->items[child], child);
    static const char *const own[] = { "key", "value" };
    static const char *const both[] = { "decoder.key", "decoder.value", "encoder.key",
                                        "encoder.value" };
    return t->n == PAIR ? own[child] : both[child];
}

/* Lists of leaves, one leaf for each layer: "0.key", "0.decoder.key". */
static void walk_lists(TreeWalk *w, const TreeNode *t, size_t n, const char *of)
{
    for (size_t i = 0; i < t->n; i++) {
        TreeNode list = read_node(w, &t->children->items[i]);
        size_t   at = step_into(w, t, i, n);
        for (size_t k = 0; k < list.n; k++)
            add_leaf(w, step_into(w, &list, k, at), true,
                     p2o_printf(w->pt2->arena, "%zu.%s%s", k, of, part_name(w, t, i)));
    }
}

static void walk_layers(TreeWalk *w, const TreeNode *t, size_t n, bool named)
{
    for (size_t i = 0; i < t->n; i++) {
        TreeNode layer = read_node(w, &t->children->items[i]);
        size_t   at = step_into(w, t, i, n);
        for (size_t k = 0; k < layer.n; k++)
            add_leaf(w, step_into(w, &layer, k, at), named || layer.names,
                     p2o_printf(w->pt2->arena, "%zu.%s", i, part_name(w, &layer, k)));
    }
}

/* Keys and values of attention: their leaves are named by layer.  False: the node is none. */
static bool walk_cache(TreeWalk *w, const TreeNode *t, size_t n, bool named)
{
    Pt2Cache c = { .evident = true };
    size_t   layers = 0;
    bool     lists = is_lists_of_layers(w, t, &layers), two = !lists && is_self_and_cross(w, t);

    if (!lists && !two && !is_list_of_layers(w, t, &c))
        return false;
    c.stem = named && n > 0 && n <= LONGEST_PATH
             ? p2o_str_dup(w->pt2->arena, (Str){ w->path, n }) : NULL;
    w->cache = NEW(w->pt2->arena, Pt2Cache);
    *w->cache = c;
    w->cache_at = n;
    if (lists)
        walk_lists(w, t, n, "");
    for (size_t i = 0; two && i < t->n; i++) {
        TreeNode one = read_node(w, &t->children->items[i]);
        walk_lists(w, &one, step_into(w, t, i, n), i ? "encoder." : "decoder.");
    }
    if (!lists && !two)
        walk_layers(w, t, n, named);
    w->cache = NULL;
    return true;
}

/* w->path[0, n) is the path of the node; n past LONGEST_PATH: too long to keep. */
static void walk_tree(TreeWalk *w, const Json *node, size_t n, bool named)
{
    TreeNode t = read_node(w, node);
    if (t.is_leaf)
        add_leaf(w, n, named, NULL);
    else if (!walk_cache(w, &t, n, named))
        for (size_t i = 0; i < t.n; i++)
            walk_tree(w, &t.children->items[i], step_into(w, &t, i, n), named || t.names);
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

/* Whether a list of pairs by that name holds keys and values: "past_key_values", "kv_cache". */
static bool is_cache_name(Str name)
{
    static const char *const words[] = { "past", "cache", "caches", "present", "presents", "kv" };
    for (Str rest = name; rest.n;) {
        Str word = p2o_str_cut(rest, '_', &rest);
        for (size_t i = 0; i < COUNT_OF(words); i++)
            if (str_is(word, words[i]))
                return true;
        if (str_is(word, "key") && p2o_str_starts(rest, "value"))
            return true;
    }
    return false;
}

static char plain_char(char c)
{
    bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    return letter ? c : '_';
}

/* PyTorch makes _ of what can't be in a name. */
static bool ends_alike(Str name, const char *end)
{
    size_t n = strlen(end);
    if (name.n <= n)
        return false;
    for (size_t i = 0; i < n; i++)
        if (plain_char(name.p[name.n - n + i]) != plain_char(end[i]))
            return false;
    return true;
}

const char *p2o_pt2_input_name(Arena *a, const Pt2Leaf *leaf, const char *name)
{
    Str stem = str_of(name);
    if (!leaf->cache || !ends_alike(stem, leaf->inside))
        return name;
    stem.n -= strlen(leaf->inside);
    if (!leaf->cache->evident && !is_cache_name(stem))
        return name;
    leaf->cache->stem = p2o_str_dup(a, stem);
    leaf->cache->taken = true;
    return p2o_printf(a, "%.*s.%s", STR_ARG(stem), leaf->part);
}

/* The argument that the result is the later state of. */
static bool has_past(const Pt2Leaves *inputs, const Pt2Cache *c)
{
    for (size_t i = 0; i < inputs->list.n; i++) {
        const Pt2Cache *x = inputs->list.at[i].cache;
        if (!x || !x->taken)
            continue;
        if (c->stem ? same(c->stem, x->stem) : c->layers == x->layers && c->arity == x->arity)
            return true;
    }
    return false;
}

const char *p2o_pt2_output_name(Arena *a, const Pt2Leaf *leaf, const Pt2Leaves *inputs)
{
    const Pt2Cache *c = leaf->cache;
    const char     *stem = c ? c->stem : NULL;
    if (!c || (!c->evident && !(stem && is_cache_name(str_of(stem))) && !has_past(inputs, c)))
        return leaf->path;
    if (!stem || same(stem, "past_key_values") || has_past(inputs, c))
        stem = "present";
    return p2o_printf(a, "%s.%s", stem, leaf->part);
}
