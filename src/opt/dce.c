/* Removes nodes whose results nothing uses, last to first, then initializers without uses.  Inputs
 * stay: they are the user's. */
#include "opt/opt.h"

bool p2o_opt_is_needed(const Node *n)
{
    for (int i = 0; i < n->nout; i++)
        if (n->out[i] && (n->out[i]->uses.n || p2o_value_is_output(n->out[i])))
            return true;
    return false;
}

void p2o_opt_dce(Graph *g)
{
    for (Node *n = g->last, *prev; n; n = prev) {
        prev = n->prev;
        for (int i = 0; i < n->nattr; i++)
            if (n->attrs[i].kind == ATTR_GRAPH)
                p2o_opt_dce(n->attrs[i].graph);
        if (!p2o_opt_is_needed(n))
            p2o_node_remove(n);
    }
    size_t kept = 0;
    for (size_t i = 0; i < g->inits.n; i++) {
        Value *v = g->inits.at[i];
        if (v->uses.n || p2o_value_is_output(v))
            g->inits.at[kept++] = v;
    }
    g->inits.n = kept;
}
