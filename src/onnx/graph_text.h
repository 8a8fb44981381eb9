/* The text form of a graph, as tests and dumps show it.
 *
 *     %0 = Transpose(w, perm=[1, 0])          # f32[8, 16]
 *     y = MatMul(x, %0)                       # f32[b, 4, 16]
 *     return y
 *
 * Unnamed values are numbered in order of printing, absent inputs are `_`.  Unnamed constants of up
 * to 8 elements are written where they are used: `[0, -1]` and `3` are int64, `[true]` is bool, any
 * other type follows a colon (`2.5:f32`, `[[1, 2]]:i32`); larger ones get a line of their own,
 * `%1 = const f32[16, 8]`.  Bodies are braces after their inputs: `body=(i, c, %4) {`. */
#ifndef P2O_ONNX_GRAPH_TEXT_H
#define P2O_ONNX_GRAPH_TEXT_H

#include "onnx/graph.h"

/* In the graph's arena; every line ends in a newline.  With types, nodes carry them as comments. */
const char *p2o_graph_text(const Graph *g, bool with_types);

#endif
