#include "opt/opt.h"

static Rewrite *const rewrites[] = {
    p2o_opt_cast, p2o_opt_transpose, p2o_opt_gemm, p2o_opt_reshape, p2o_opt_expand, p2o_opt_gelu,
};

bool p2o_opt_replace(Value *old, Value *with)
{
    if (p2o_value_is_output(old)) {
        if (!with->def || with->graph != old->graph || p2o_value_is_output(with))
            return old->def->op != ONNX_Identity && old->def->nout == 1 &&
                   p2o_node_become(old->def, ONNX_Identity, 1, &with, 0, NULL);
        with->name = old->name;
        with->shape = old->shape;
        old->name = NULL;
    }
    p2o_value_replace(old, with);
    return true;
}

static bool rewrite_once(Node *n)
{
    for (size_t i = 0; i < COUNT_OF(rewrites); i++)
        if (rewrites[i](n))
            return true;
    return false;
}

static bool rewrite_graph(Graph *g)
{
    bool changed = false;
    for (Node *n = g->last, *prev; n; n = prev) {
        for (int i = 0; i < n->nattr; i++)
            if (n->attrs[i].kind == ATTR_GRAPH)
                changed |= rewrite_graph(n->attrs[i].graph);
        while (p2o_opt_is_needed(n) && rewrite_once(n))
            changed = true;
        prev = n->prev;
        if (!p2o_opt_is_needed(n))
            p2o_node_remove(n);
    }
    return changed;
}

/* Each rewrite takes a node out of some chain, so this ends; a second round sees what the values
 * that the first one replaced stood between. */
void p2o_opt(Graph *g)
{
    while (rewrite_graph(g))
        continue;
    p2o_opt_dce(g);
}
