/* Graph -> Graph: a short ordered list of safe rewrites, each right at every size.
 *
 * A rewrite looks at one node and at what makes its inputs.  It gives the node another form
 * (p2o_node_become) or lets another value stand for its output (p2o_opt_replace); it removes
 * nothing, and returns whether it changed something.  Nodes are visited last to first, so what a
 * rewrite sees has no uses by dead nodes. */
#ifndef P2O_OPT_OPT_H
#define P2O_OPT_OPT_H

#include "onnx/graph.h"

typedef bool Rewrite(Node *n);

void p2o_opt(Graph *g);

void p2o_opt_dce(Graph *g);             /* nodes and initializers that nothing needs */

Rewrite p2o_opt_cast;               /* Identity and Casts that change nothing or follow another */
Rewrite p2o_opt_transpose;          /* two Transposes in a row; none at all */
Rewrite p2o_opt_gemm;               /* Transpose, MatMul and Add of matrices as one Gemm */
Rewrite p2o_opt_reshape;            /* chains of Reshape, Flatten, Squeeze, Unsqueeze */
Rewrite p2o_opt_expand;             /* Expand before what broadcasts anyway */
Rewrite p2o_opt_gelu;               /* x/2 * (1 + erf(x/sqrt 2)) */

/* Every use of `old` becomes one of `with`, which has the same type and is computed before.  A
 * graph output keeps its name: where `with` cannot take it, an Identity remains.  false: nothing
 * changed. */
bool p2o_opt_replace(Value *old, Value *with);
bool p2o_opt_is_needed(const Node *n);

/* The node that makes v, when it is an `op`. */
static inline Node *made_by(const Value *v, OnnxOp op)
{
    return v && v->def && v->def->op == op ? v->def : NULL;
}

#endif
