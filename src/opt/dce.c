/* Removes nodes whose results nothing uses, last to first, and optional outputs at the end of those
 * that stay, then initializers without uses.  Inputs stay: they are the user's. */
#include "onnx/onnx_ops.h"
#include "opt/opt.h"

static bool is_used(const Value *v) { return v && (v->uses.n || p2o_value_is_output(v)); }

bool p2o_opt_is_needed(const Node *n)
{
    for (int i = 0; i < n->nout; i++)
        if (is_used(n->out[i]))
            return true;
    return false;
}

/* Where an operator may have any number of outputs, their number means something. */
static void cut_outputs(Node *n)
{
    const OnnxInfo *info = p2o_onnx_info(n->op);
    while (info->max_out >= 0 && n->nout > info->min_out && !is_used(n->out[n->nout - 1]))
        n->nout--;
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
        else
            cut_outputs(n);
    }
    size_t kept = 0;
    for (size_t i = 0; i < g->inits.n; i++) {
        Value *v = g->inits.at[i];
        if (v->uses.n || p2o_value_is_output(v))
            g->inits.at[kept++] = v;
    }
    g->inits.n = kept;
}
