/* FunctionProtos of the functions that a model calls, and what its operators import.
 *
 * A function is written in the model's opset: its nodes mean the same there (p2o_function_misfit),
 * and checkers want one opset throughout. */
#include "onnx/function.h"
#include "onnx/onnx_write_parts.h"

enum { IR_WITH_DEFAULTS = 9 };          /* of a function's attributes */

static void need_domain(ModelOperators *o, const char *domain, int64_t version)
{
    if (!*domain)
        return;
    void **slot = p2o_map_slot(&o->domains, str_of(domain));
    if ((intptr_t)*slot < version)
        *slot = (void *)(intptr_t)version;
}

static Str function_slot_key(ModelOperators *o, const OnnxFunction *f)
{
    return str_of(p2o_printf(o->functions.arena, "%s\n%s", f->domain, f->name));
}

/* And those that it calls: by a list, since chains may be long. */
static void need_function(ModelOperators *o, const OnnxFunction *f)
{
    VEC(const OnnxFunction *) todo = { 0 };
    VEC_PUSH(o->functions.arena, &todo, f);
    for (size_t i = 0; i < todo.n; i++) {
        const OnnxFunction *x = todo.at[i];
        void              **slot = p2o_map_slot(&o->functions, function_slot_key(o, x));
        if (*slot)
            continue;
        *slot = (void *)(uintptr_t)x;
        need_domain(o, x->domain, 1);
        for (int k = 0; k < x->nimport; k++)
            need_domain(o, x->imports[k].domain, x->imports[k].version);
        for (int k = 0; k < x->nattr; k++)
            if (x->attrs[k].has_default)
                o->ir_version = IR_WITH_DEFAULTS;
        for (int k = 0; k < x->nnode; k++)
            if (x->nodes[k].calls)
                VEC_PUSH(o->functions.arena, &todo, x->nodes[k].calls);
    }
}

void p2o_need_operator(ModelOperators *o, const OnnxOperator *op)
{
    need_domain(o, op->domain, op->version ? op->version : 1);
    if (op->function)
        need_function(o, op->function);
}

static void put_function_node(ModelWriter *w, const FunctionNode *n)
{
    PbMark m = p2o_pb_begin(&w->pb, FUNCTION_NODE);
    for (int i = 0; i < n->nin; i++)
        p2o_pb_text(&w->pb, NODE_INPUT, n->in[i]);
    for (int i = 0; i < n->nout; i++)
        p2o_pb_text(&w->pb, NODE_OUTPUT, n->out[i]);
    if (n->name)
        p2o_pb_text(&w->pb, NODE_NAME, n->name);
    p2o_pb_text(&w->pb, NODE_OP, n->op);
    for (int i = 0; i < n->nattr; i++)
        p2o_put_attribute(w, NODE_ATTR, &n->attrs[i].value, n->attrs[i].ref);
    if (*n->domain)
        p2o_pb_text(&w->pb, NODE_DOMAIN, n->domain);
    p2o_pb_end(&w->pb, m);
}

static void put_function(ModelWriter *w, const OnnxFunction *f, const Map *domains)
{
    PbMark m = p2o_pb_begin(&w->pb, MODEL_FUNCTION);
    p2o_pb_text(&w->pb, FUNCTION_NAME, f->name);
    for (int i = 0; i < f->nin; i++)
        p2o_pb_text(&w->pb, FUNCTION_INPUT, f->in[i]);
    for (int i = 0; i < f->nout; i++)
        p2o_pb_text(&w->pb, FUNCTION_OUTPUT, f->out[i]);
    for (int i = 0; i < f->nattr; i++)
        if (!f->attrs[i].has_default)
            p2o_pb_text(&w->pb, FUNCTION_ATTR, f->attrs[i].name);
    for (int i = 0; i < f->nnode; i++)
        put_function_node(w, &f->nodes[i]);
    for (int i = 0; i < f->nimport; i++) {
        const char *domain = f->imports[i].domain;
        p2o_put_opset(w, FUNCTION_OPSET, domain,
                      *domain ? (int64_t)(intptr_t)p2o_map_get(domains, str_of(domain))
                              : w->root->opset);
    }
    p2o_pb_text(&w->pb, FUNCTION_DOMAIN, f->domain);
    for (int i = 0; i < f->nattr; i++)
        if (f->attrs[i].has_default)
            p2o_put_attribute(w, FUNCTION_ATTR_DEFAULT, &f->attrs[i].dflt, NULL);
    p2o_pb_end(&w->pb, m);
}

void p2o_put_functions(ModelWriter *w, const ModelOperators *o)
{
    for (size_t i = 0; i < o->functions.n; i++)
        put_function(w, o->functions.at[i].value, &o->domains);
}
