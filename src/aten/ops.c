#include "aten/ops.h"

#include <assert.h>

/* Each table ends in a row without a schema. */
#define TABLES(X)                                                                                  \
    X(act) X(affine)                                                                               \
    X(attn) X(bessel) X(cast) X(control) X(conv) X(create) X(distance) X(factor) X(fake) X(fft)    \
        X(float) X(gamma) X(gradient) X(histogram) X(index) X(join) X(linalg) X(logic) X(loss)     \
            X(math) X(norm) X(orthogonal) X(pad) X(pool) X(quant) X(random) X(reduce) X(resize)    \
                X(rnn) X(scan) X(scatter) X(solve) X(singular) X(sort) X(special) X(storage)       \
                    X(stride) X(sym) X(unary) X(view) X(vision) X(vmap)

#define X(name) extern const AtenOp p2o_ops_##name[];
TABLES(X)
#undef X

static const AtenOp *const tables[] = {
#define X(name) p2o_ops_##name,
    TABLES(X)
#undef X
};

typedef struct OpRow {
    const AtenOp *op;
    const Schema *schema;       /* NULL until asked for */
    const char   *key;
} OpRow;

struct Ops {
    Arena *arena;
    Dims  *dims;
    Map    rows;                /* key -> OpRow * */
    Map    by_schema;           /* schema string -> OpRow * */
    struct CustomOps *custom;
};

Ops *p2o_ops_new(Arena *a, Dims *t)
{
    Ops *o = NEW(a, Ops);
    *o = (Ops){ .arena = a, .dims = t, .rows = { .arena = a }, .by_schema = { .arena = a } };
    for (size_t i = 0; i < COUNT_OF(tables); i++) {
        for (const AtenOp *op = tables[i]; op->schema; op++) {
            OpRow *row = NEW(a, OpRow);
            row->op = op;
            row->key = p2o_schema_key(a, op->schema);
            assert(!p2o_map_get(&o->rows, str_of(row->key)));
            map_put(&o->rows, str_of(row->key), row);
            map_put(&o->by_schema, str_of(op->schema), row);
        }
    }
    return o;
}

struct CustomOps *p2o_ops_custom(const Ops *o) { return o->custom; }
void              p2o_ops_set_custom(Ops *o, struct CustomOps *x) { o->custom = x; }

void p2o_ops_add_form(Ops *o, const AtenOp *op, int results)
{
    const char *error;
    OpRow      *row = NEW(o->arena, OpRow);
    Schema     *s = p2o_schema_parse(o->arena, o->dims, op->schema, &error);
    assert(s);
    for (int i = results; i < s->nargs; i++)
        s->args[i].result = true;
    *row = (OpRow){ .op = op, .schema = s, .key = s->key };
    map_put(&o->by_schema, str_of(op->schema), row);
}

const AtenOp *p2o_ops_find_form(const Ops *o, const char *schema)
{
    const OpRow *row = p2o_map_get(&o->by_schema, str_of(schema));
    return row ? row->op : NULL;
}

static bool lists_arg(const char *names, const char *arg)
{
    for (Str rest = str_of(names ? names : ""); rest.n;)
        if (str_is(p2o_str_cut(rest, ' ', &rest), arg))
            return true;
    return false;
}

bool p2o_op_counts(const AtenOp *op, const char *arg) { return lists_arg(op->counts, arg); }
bool p2o_op_varies(const AtenOp *op, const char *arg)
{
    return p2o_op_counts(op, arg) || lists_arg(op->varies, arg);
}

bool p2o_idle_copy(Dims *t, const Call *c, int arg, int i, Shape self, Dim *number)
{
    (void)t, (void)c, (void)arg, (void)i, (void)self, (void)number;
    return false;
}

bool p2o_idle_zeros(Dims *t, const Call *c, int arg, int i, Shape self, Dim *number)
{
    (void)c, (void)i, (void)self;
    *number = p2o_dim_int(t, 0);
    return arg == 1;
}

bool p2o_idle_ones(Dims *t, const Call *c, int arg, int i, Shape self, Dim *number)
{
    (void)c, (void)i, (void)self;
    *number = p2o_dim_int(t, 1);
    return arg == 1;
}

/* Which of the words stands behind the argument in "start:place end:place"; -1: none. */
static int word_of(const char *list, const char *arg, const char *const *words, int n)
{
    for (Str rest = str_of(list ? list : ""), one, word; rest.n;) {
        one = p2o_str_cut(rest, ' ', &rest);
        Str name = p2o_str_cut(one, ':', &word);
        for (int i = 0; i < n && str_is(name, arg); i++)
            if (str_is(word, words[i]))
                return i;
    }
    return -1;
}

NumberMade p2o_op_made(const AtenOp *op, const char *arg)
{
    static const char *const words[] = { "never", "always", "axis", "rest" };
    int                      i = word_of(op->made, arg, words, (int)COUNT_OF(words));
    return i < 0 ? MADE_NEVER : (NumberMade)i;
}

NumberRole p2o_op_role(const AtenOp *op, const SchemaArg *a)
{
    static const char *const words[] = { "extent", "place",   "pad", "rest",
                                         "factor", "setting", "none" };
    int                      i = word_of(op->roles, a->name, words, (int)COUNT_OF(words));
    if (i >= 0)
        return (NumberRole)i;
    if (a->base == SB_SYMINT || p2o_op_counts(op, a->name))
        return NUMBER_EXTENT;
    if (a->base == SB_SCALAR || a->base == SB_TENSOR)
        return NUMBER_FACTOR;
    return p2o_op_varies(op, a->name) ? (a->base == SB_FLOAT ? NUMBER_FACTOR : NUMBER_EXTENT)
                                      : NUMBER_SETTING;
}

const AtenOp *p2o_ops_find(const Ops *o, Str key)
{
    const OpRow *row = p2o_map_get(&o->rows, key);
    return row ? row->op : NULL;
}

const AtenOp *p2o_ops_at(const Ops *o, size_t i, const char **key)
{
    if (i >= o->rows.n)
        return NULL;
    const OpRow *row = o->rows.at[i].value;
    *key = row->key;
    return row->op;
}

const Schema *p2o_ops_schema(Ops *o, const AtenOp *op)
{
    OpRow *row = p2o_map_get(&o->by_schema, str_of(op->schema));
    if (!row->schema) {
        const char *error;
        row->schema = p2o_schema_parse(o->arena, o->dims, op->schema, &error);
        assert(row->schema);                    /* test/text parses every row */
    }
    return row->schema;
}

Call *p2o_ops_call(Ops *o, Program *p, Body *b, const char *target, int nargs, const Arg *args,
                   Loc loc)
{
    const AtenOp *op = p2o_ops_find(o, str_of(target));
    if (!op)
        return NULL;
    Call *c = NEW(p->arena, Call);
    *c = (Call){ .target = target,
                 .op = op,
                 .schema = p2o_ops_schema(o, op),
                 .nargs = nargs,
                 .nouts = 1,
                 .args = NEW_N(p->arena, Arg, (size_t)nargs),
                 .outs = NEW(p->arena, Var *),
                 .loc = loc };
    memcpy(c->args, args, (size_t)nargs * sizeof *args);
    if (!p2o_schema_bind(p, c, c->schema))
        return NULL;
    Str overload, name = p2o_str_cut(str_of(strrchr(target, ':') + 1), '.', &overload);
    c->outs[0] = p2o_var_fresh(p, b, p2o_str_dup(p->arena, name));
    c->outs[0]->def = c;
    c->outs[0]->dense = true;
    return c;
}
