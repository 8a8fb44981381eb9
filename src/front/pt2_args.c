/* The unions of the export schema: recorded types of values, and arguments of calls.
 *
 * An Argument is an object with one member whose key says what it is; the table below has a row for
 * every key there is.  Files of 2.1 and 2.2 write all keys, the unused ones null. */
#include "front/pt2_parts.h"

#include <math.h>

typedef struct Recorded {
    TypeKind    kind;
    const Json *json;
} Recorded;

typedef Arg ArgReader(Pt2 *r, Pt2Graph *g, const Json *j);

static const char *const layouts[] = {
    NULL, "sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc", "_mkldnn", "strided"
};
static const char *const memory_formats[] = {
    NULL, "contiguous_format", "channels_last", "channels_last_3d", "preserve_format"
};

enum { STRIDED = 7, LONGEST_SHOWN = 100 };

const char *p2o_pt2_show(Pt2 *r, Str s)
{
    size_t n = s.n > LONGEST_SHOWN ? LONGEST_SHOWN : s.n;
    while (n < s.n && n && (s.p[n] & 0xC0) == 0x80)     /* not in the middle of a character */
        n--;
    char *text = p2o_alloc(r->arena, n + 4);
    for (size_t i = 0; i < n; i++)
        text[i] = (unsigned char)s.p[i] < ' ' || s.p[i] == 0x7F ? '?' : s.p[i];
    if (n < s.n)
        memcpy(text + n, "...", 3);
    return text;
}

const Json *p2o_pt2_get(const Json *j, const char *key)
{
    const Json *x = p2o_json_get(j, key);
    return x && x->kind != JSON_NULL ? x : NULL;
}

size_t p2o_pt2_count(const Json *list) { return list && list->kind == JSON_LIST ? list->n : 0; }

const Json *p2o_pt2_union(Pt2 *r, Loc loc, const Json *j, Str *key)
{
    const JsonMember *one = NULL;
    for (uint32_t i = 0; j && j->kind == JSON_OBJ && i < j->n; i++) {
        if (j->members[i].value.kind == JSON_NULL)
            continue;
        if (one) {
            p2o_pt2_bad(r, loc, "one of several alternatives is expected at byte %u, found two",
                        j->pos);
            return NULL;
        }
        one = &j->members[i];
    }
    if (!one) {
        p2o_pt2_bad(r, loc, "one of several alternatives is expected at byte %u, found none",
                    j ? j->pos : 0);
        return NULL;
    }
    *key = one->key;
    return &one->value;
}

const char *p2o_pt2_name(Pt2 *r, Loc loc, const Json *j, const char *what)
{
    bool is_name = j && j->kind == JSON_STR && j->s.n > 0;
    for (size_t i = 0; is_name && i < j->s.n; i++)
        is_name = (unsigned char)j->s.p[i] >= ' ' && j->s.p[i] != 0x7F;
    if (is_name)
        return p2o_str_dup(r->arena, j->s);
    p2o_pt2_bad(r, loc, "%s is no name", what);
    return NULL;
}

const Json *p2o_pt2_reference(const Json *j)
{
    if (j && j->kind == JSON_OBJ) {
        const Json *name = p2o_pt2_get(j, "name");
        j = name ? name : p2o_pt2_get(j, "as_name");
    }
    return j && j->kind == JSON_STR ? j : NULL;
}

bool p2o_pt2_is_float(const Json *j, double *f)
{
    if (j && j->kind == JSON_FLOAT)
        *f = j->f;
    else if (j && j->kind == JSON_INT)
        *f = (double)j->i;
    else if (j && j->kind == JSON_STR && str_is(j->s, "Infinity"))
        *f = (double)INFINITY;
    else if (j && j->kind == JSON_STR && str_is(j->s, "-Infinity"))
        *f = (double)-INFINITY;
    else if (j && j->kind == JSON_STR && str_is(j->s, "NaN"))
        *f = (double)NAN;
    else
        return false;
    return true;
}

/* {"as_int": n} or {"as_expr": {"expr_str", "hint"}}.  NULL without a diagnostic: an expression
 * that is no Dim. */
static Dim recorded_dim(Pt2 *r, Loc loc, const Json *j)
{
    Dims       *t = r->program->dims;
    const Json *n = p2o_pt2_get(j, "as_int"), *expr = p2o_pt2_get(j, "as_expr");
    const Json *hint = p2o_pt2_get(expr, "hint");
    const char *error = NULL;

    if (n && n->kind == JSON_INT)
        return p2o_dim_int(t, n->i);
    if (!expr) {
        p2o_pt2_bad(r, loc, "a size is neither an integer nor an expression");
        return NULL;
    }
    const char *text = p2o_pt2_name(r, loc, p2o_pt2_get(expr, "expr_str"), "expr_str");
    if (!text)
        return NULL;
    Dim d = p2o_dim_parse(t, str_of(text), &error);
    if (error)
        p2o_pt2_bad(r, loc, "expression %s: %s", p2o_pt2_show(r, str_of(text)), error);
    if (hint && hint->kind == JSON_OBJ)
        hint = p2o_pt2_get(hint, "as_int");
    if (d && p2o_dim_is_sym(d) && hint && hint->kind == JSON_INT)
        p2o_dim_set_hint(t, d, hint->i);
    return d;
}

static Type tensor_type(Pt2 *r, Loc loc, const Json *j, const char *name)
{
    const Json *wrapped = p2o_pt2_get(j, "meta");       /* 2.1 */
    if (wrapped)
        j = wrapped;
    const Json *dtype = p2o_pt2_get(j, "dtype"), *sizes = p2o_pt2_get(j, "sizes");
    const Json *layout = p2o_pt2_get(j, "layout");
    DType       t = DT_NONE;

    if (dtype && dtype->kind == JSON_INT && dtype->i > 0 && dtype->i < 1000)
        t = p2o_dtype_from_serde((long)dtype->i);
    if (t == DT_NONE) {
        p2o_diag(r->diags, DIAG_UNSUPPORTED, loc, "the dtype of value %s is not supported", name);
        return (Type){ 0 };
    }
    if (layout && (layout->kind != JSON_INT || layout->i != STRIDED)) {
        p2o_diag(r->diags, DIAG_UNSUPPORTED, loc, "value %s is a sparse tensor", name);
        return (Type){ 0 };
    }
    if (!sizes || sizes->kind != JSON_LIST || sizes->n > MAX_RANK) {
        p2o_pt2_bad(r, loc, "the sizes of value %s are no list of up to %d", name, MAX_RANK);
        return (Type){ 0 };
    }
    Dim *at = NEW_N(r->arena, Dim, sizes->n);
    for (uint32_t i = 0; i < sizes->n; i++) {
        int64_t v;
        at[i] = recorded_dim(r, loc, &sizes->items[i]);
        if (p2o_dim_is_int(at[i], &v) && v < 0)
            p2o_pt2_bad(r, loc, "value %s has a negative size", name);
    }
    return (Type){ .kind = TY_TENSOR, .dtype = t, .shape = { .rank = (int)sizes->n, .at = at } };
}

/* Row-major without gaps, by the strides: for every size, or not even for the captured ones.  Those
 * of a size of 1 do not matter; a size that may be 0 counts as 1 in the strides of the dims before
 * it, or not. */
static Answer is_row_major(Pt2 *r, Loc loc, const Json *j, Shape s)
{
    Dims       *t = r->program->dims;
    const Json *wrapped = p2o_pt2_get(j, "meta"),
               *strides = p2o_pt2_get(wrapped ? wrapped : j, "strides");
    Dim         one = p2o_dim_int(t, 1), want = one, full = one;
    Answer      all = YES;

    if (!strides || strides->kind != JSON_LIST || strides->n != (uint32_t)s.rank)
        return CANNOT_TELL;
    for (int i = s.rank - 1; i >= 0; i--) {
        int64_t size, have, wanted;
        Dim     stride = recorded_dim(r, loc, &strides->items[i]);
        if (!dim_is(s.at[i], 1) && (!stride || (stride != want && stride != full))) {
            if (p2o_dim_hint(t, s.at[i], &size) && p2o_dim_hint(t, stride, &have) &&
                p2o_dim_hint(t, want, &wanted) && size > 1 && have != wanted)
                return NO;
            all = CANNOT_TELL;
        }
        want = p2o_dim_mul(t, want, s.at[i]);
        full = p2o_dim_mul(t, full, p2o_dim_max(t, s.at[i], one));
    }
    return all;
}

void p2o_pt2_values(Pt2 *r, Pt2Graph *g)
{
    static const struct {
        const char *key;
        TypeKind    kind;
    } maps[] = {
        { "tensor_values", TY_TENSOR },  { "sym_int_values", TY_INT },
        { "sym_float_values", TY_FLOAT }, { "sym_bool_values", TY_BOOL },
        { "custom_obj_values", TY_NONE },
    };
    g->values.arena = r->arena;
    for (size_t k = 0; k < COUNT_OF(maps); k++) {
        const Json *map = p2o_pt2_get(g->json, maps[k].key);
        if (map && map->kind != JSON_OBJ)
            p2o_pt2_bad(r, g->loc, "%s is no object", maps[k].key);
        for (uint32_t i = 0; map && map->kind == JSON_OBJ && i < map->n; i++) {
            void    **slot = p2o_map_slot(&g->values, map->members[i].key);
            Recorded *x = NEW(r->arena, Recorded);
            if (*slot)
                p2o_pt2_bad(r, g->loc, "value %s is recorded twice",
                            p2o_pt2_show(r, map->members[i].key));
            *x = (Recorded){ .kind = maps[k].kind, .json = &map->members[i].value };
            *slot = x;
        }
    }
}

Var *p2o_pt2_define(Pt2 *r, Pt2Graph *g, const char *name)
{
    Var            *v = p2o_var_new(r->program, g->body, name);
    const Recorded *x = p2o_map_get(&g->values, str_of(name));

    if (!v) {
        p2o_pt2_bad(r, g->loc, "value %s is defined twice", name);
    } else if (x && x->kind == TY_TENSOR) {
        v->recorded = tensor_type(r, g->loc, x->json, name);
        v->dense = is_row_major(r, g->loc, x->json, v->recorded.shape);
    } else if (x && x->kind == TY_INT) {
        v->recorded =
            (Type){ .kind = TY_INT, .dtype = DT_I64, .value = recorded_dim(r, g->loc, x->json) };
    } else if (x) {
        v->recorded = (Type){ .kind = x->kind };
    }
    return v;
}

static Arg bad_arg(Pt2 *r, Pt2Graph *g, const char *wanted)
{
    p2o_pt2_bad(r, g->loc, "%s: %s is no %s", g->target ? g->target : g->body->name,
                g->arg ? g->arg : "an argument", wanted);
    return arg_none();
}

static Arg read_none(Pt2 *r, Pt2Graph *g, const Json *j)
{
    (void)r, (void)g, (void)j;
    return arg_none();
}

static Arg read_value(Pt2 *r, Pt2Graph *g, const Json *j)
{
    const Json *ref = p2o_pt2_reference(j);
    Var        *v = ref ? p2o_var_find(g->body, ref->s) : NULL;
    if (v)
        return arg_var(v);
    const char *name = p2o_pt2_name(r, g->loc, ref, "a value's name");
    if (name)
        p2o_pt2_bad(r, g->loc, "value %s is used but not defined before", name);
    return arg_none();
}

static Arg read_optional(Pt2 *r, Pt2Graph *g, const Json *j)
{
    Str         key;
    const Json *x = p2o_pt2_union(r, g->loc, j, &key);
    if (!x || str_is(key, "as_none"))
        return arg_none();
    return str_is(key, "as_tensor") ? read_value(r, g, x) : bad_arg(r, g, "optional tensor");
}

static Arg read_int(Pt2 *r, Pt2Graph *g, const Json *j)
{
    if (j->kind != JSON_INT)
        return bad_arg(r, g, "64-bit integer");
    return arg_int(p2o_dim_int(r->program->dims, j->i));
}

static Arg read_float(Pt2 *r, Pt2Graph *g, const Json *j)
{
    double f;
    return p2o_pt2_is_float(j, &f) ? arg_float(f) : bad_arg(r, g, "float");
}

static Arg read_bool(Pt2 *r, Pt2Graph *g, const Json *j)
{
    return j->kind == JSON_BOOL ? arg_bool(j->b) : bad_arg(r, g, "bool");
}

static Arg read_string(Pt2 *r, Pt2Graph *g, const Json *j)
{
    if (j->kind != JSON_STR || (j->s.n && memchr(j->s.p, 0, j->s.n)))
        return bad_arg(r, g, "string");
    return arg_str(ARG_STR, p2o_str_dup(r->arena, j->s));
}

static Arg read_complex(Pt2 *r, Pt2Graph *g, const Json *j)
{
    Arg x = { .kind = ARG_COMPLEX };
    if (!p2o_pt2_is_float(p2o_pt2_get(j, "real"), &x.re_im[0]) ||
        !p2o_pt2_is_float(p2o_pt2_get(j, "imag"), &x.re_im[1]))
        return bad_arg(r, g, "complex number");
    return x;
}

/* {"as_name": n} or a literal of the same kind. */
static Arg read_symbolic(Pt2 *r, Pt2Graph *g, const Json *j)
{
    Str         key;
    const Json *x = p2o_pt2_union(r, g->loc, j, &key);
    if (!x)
        return arg_none();
    if (str_is(key, "as_name"))
        return read_value(r, g, x);
    if (str_is(key, "as_int"))
        return read_int(r, g, x);
    if (str_is(key, "as_float"))
        return read_float(r, g, x);
    return str_is(key, "as_bool") ? read_bool(r, g, x) : bad_arg(r, g, "symbolic number");
}

static Arg read_dtype(Pt2 *r, Pt2Graph *g, const Json *j)
{
    Arg x = { .kind = ARG_DTYPE };
    if (j->kind == JSON_INT && j->i > 0 && j->i < 1000)
        x.dtype = p2o_dtype_from_serde((long)j->i);
    return x.dtype != DT_NONE ? x : bad_arg(r, g, "known dtype");
}

static Arg read_code(Pt2 *r, Pt2Graph *g, const Json *j, ArgKind kind, const char *const *names,
                     size_t n)
{
    if (j->kind != JSON_INT || j->i <= 0 || j->i >= (int64_t)n)
        return bad_arg(r, g, kind == ARG_LAYOUT ? "known layout" : "known memory format");
    return arg_str(kind, names[j->i]);
}

static Arg read_layout(Pt2 *r, Pt2Graph *g, const Json *j)
{
    return read_code(r, g, j, ARG_LAYOUT, layouts, COUNT_OF(layouts));
}

static Arg read_memory_format(Pt2 *r, Pt2Graph *g, const Json *j)
{
    return read_code(r, g, j, ARG_MEMORY_FORMAT, memory_formats, COUNT_OF(memory_formats));
}

static Arg read_device(Pt2 *r, Pt2Graph *g, const Json *j)
{
    const char *type = p2o_pt2_name(r, g->loc, p2o_pt2_get(j, "type"), "a device");
    const Json *index = p2o_pt2_get(j, "index");
    if (!type)
        return arg_none();
    if (index && index->kind == JSON_INT)
        type = p2o_printf(r->arena, "%s:%lld", type, (long long)index->i);
    return arg_str(ARG_DEVICE, type);
}

static Arg read_graph(Pt2 *r, Pt2Graph *g, const Json *j)
{
    const char *name = p2o_pt2_name(r, g->loc, p2o_pt2_get(j, "name"), "a graph's name");
    const Json *graph = p2o_pt2_get(j, "graph");
    if (!name || !graph)
        return bad_arg(r, g, "graph");
    return (Arg){ .kind = ARG_BODY, .body = p2o_pt2_subgraph(r, graph, name, g->loc) };
}

static Arg read_operator(Pt2 *r, Pt2Graph *g, const Json *j)
{
    const char *target = j->kind == JSON_STR ? p2o_pt2_target(r->arena, j->s) : NULL;
    return target ? arg_str(ARG_OPERATOR, target) : bad_arg(r, g, "operator");
}

/* A dict: a list of [key, value]. */
static Arg read_dict(Pt2 *r, Pt2Graph *g, const Json *j)
{
    if (j->kind != JSON_OBJ)
        return bad_arg(r, g, "dict");
    Arg *pairs = NEW_N(r->arena, Arg, j->n);
    for (uint32_t i = 0; i < j->n; i++) {
        Arg  *pair = NEW_N(r->arena, Arg, 2);
        Json  key = { .kind = JSON_STR, .s = j->members[i].key };
        pair[0] = read_string(r, g, &key);
        pair[1] = p2o_pt2_arg(r, g, &j->members[i].value);
        pairs[i] = arg_list(pair, 2);
    }
    return arg_list(pairs, j->n);
}

/* An item of a list whose items are of several kinds: only our own Python package writes these. */
static Arg read_any(Pt2 *r, Pt2Graph *g, const Json *j) { return p2o_pt2_arg(r, g, j); }

static const struct {
    const char *key;
    ArgReader  *read;
    int         depth;                  /* 1: a list of such, 2: a list of lists */
} arguments[] = {
    { "as_none", read_none, 0 },
    { "as_tensor", read_value, 0 },             { "as_tensors", read_value, 1 },
    { "as_nested_tensors", read_value, 2 },
    { "as_optional_tensor", read_optional, 0 }, { "as_optional_tensors", read_optional, 1 },
    { "as_int", read_int, 0 },                  { "as_ints", read_int, 1 },
    { "as_int_lists", read_int, 2 },
    { "as_float", read_float, 0 },              { "as_floats", read_float, 1 },
    { "as_float_lists", read_float, 2 },
    { "as_bool", read_bool, 0 },                { "as_bools", read_bool, 1 },
    { "as_string", read_string, 0 },            { "as_strings", read_string, 1 },
    { "as_complex", read_complex, 0 },
    { "as_sym_int", read_symbolic, 0 },         { "as_sym_ints", read_symbolic, 1 },
    { "as_sym_float", read_symbolic, 0 },       { "as_sym_floats", read_symbolic, 1 },
    { "as_sym_bool", read_symbolic, 0 },        { "as_sym_bools", read_symbolic, 1 },
    { "as_scalar_type", read_dtype, 0 },        { "as_layout", read_layout, 0 },
    { "as_memory_format", read_memory_format, 0 },
    { "as_device", read_device, 0 },            { "as_graph", read_graph, 0 },
    { "as_custom_obj", read_value, 0 },         { "as_operator", read_operator, 0 },
    { "as_string_to_argument", read_dict, 0 },  { "as_arguments", read_any, 1 },
};

static Arg read_nested(Pt2 *r, Pt2Graph *g, const Json *j, ArgReader *read, int depth)
{
    if (depth == 0)
        return read(r, g, j);
    if (j->kind != JSON_LIST)
        return bad_arg(r, g, "list");
    Arg *items = NEW_N(r->arena, Arg, j->n);
    for (uint32_t i = 0; i < j->n; i++)
        items[i] = read_nested(r, g, &j->items[i], read, depth - 1);
    return arg_list(items, j->n);
}

Arg p2o_pt2_arg(Pt2 *r, Pt2Graph *g, const Json *union_)
{
    Str         key;
    const Json *j = p2o_pt2_union(r, g->loc, union_, &key);
    if (!j)
        return arg_none();
    for (size_t i = 0; i < COUNT_OF(arguments); i++)
        if (str_is(key, arguments[i].key))
            return read_nested(r, g, j, arguments[i].read, arguments[i].depth);
    p2o_diag(r->diags, DIAG_UNSUPPORTED, g->loc, "an argument of kind %s is not known",
             p2o_pt2_show(r, key));
    return arg_none();
}
