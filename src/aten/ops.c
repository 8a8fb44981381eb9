#include "aten/ops.h"

#include <assert.h>

extern const AtenOp p2o_ops_act[], p2o_ops_math[], p2o_ops_reduce[], p2o_ops_linalg[],
    p2o_ops_conv[], p2o_ops_norm[], p2o_ops_view[], p2o_ops_index[], p2o_ops_create[],
    p2o_ops_attn[], p2o_ops_rnn[], p2o_ops_pool[], p2o_ops_sym[];

/* Each table ends in a row without a schema. */
static const AtenOp *const tables[] = {
    p2o_ops_act,   p2o_ops_math,  p2o_ops_reduce, p2o_ops_linalg, p2o_ops_conv,
    p2o_ops_norm,  p2o_ops_view,  p2o_ops_index,  p2o_ops_create, p2o_ops_attn,
    p2o_ops_rnn,   p2o_ops_pool,  p2o_ops_sym,
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
