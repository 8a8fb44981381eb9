/* Graph -> Graph: a short ordered list of safe passes. */
#ifndef P2O_OPT_OPT_H
#define P2O_OPT_OPT_H

#include "onnx/graph.h"

void p2o_opt(Graph *g);

/* The passes. */
void p2o_opt_dce(Graph *g);             /* nodes and initializers that nothing needs */

#endif
