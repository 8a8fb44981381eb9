/* Facts about ONNX operators: one row each in onnx_ops.def. */
#ifndef P2O_ONNX_ONNX_OPS_H
#define P2O_ONNX_ONNX_OPS_H

#include "onnx/graph.h"

/* Sets dtype, shape and, where known, ints of every output.  false: the node is ill-typed. */
typedef bool OnnxRule(Graph *g, Node *n);

typedef struct OnnxInfo {
    const char *name;
    const char *domain;                 /* "" for ai.onnx, "com.microsoft" ... */
    int         since;                  /* opset in which the form we use appeared */
    int         min_in, max_in;         /* max -1: any number */
    int         min_out, max_out;
    OnnxRule   *rule;
    const char *inputs, *attrs;         /* what numbers mean there */
} OnnxInfo;

/* How the rules of a Graph compare sizes where these are being settled (Graph.sizes): what must be
 * equal is made equal, literals may turn out to follow a size.  Each is false after a report. */
typedef struct OnnxSizes {
    bool (*equal)(const struct OnnxSizes *s, Dim a, Dim b, const char *what);
    bool (*broadcast)(const struct OnnxSizes *s, Shape a, Shape b, Shape *out);
    bool (*reshape)(const struct OnnxSizes *s, Shape from, Shape to, Shape *out);
    bool (*slice)(const struct OnnxSizes *s, Dim start, Dim end, Dim size, Dim *from, Dim *to);
    bool (*alike)(const struct OnnxSizes *s, Dim a, Dim b); /* as far as known; reports nothing */
    Dim  (*fresh)(const struct OnnxSizes *s);               /* the same at each visit of a node */
} OnnxSizes;

const OnnxInfo *p2o_onnx_info(OnnxOp op);               /* of ONNX_NONE: any number of anything */
/* The letters of onnx_ops.def for an input, and the one for an attribute; none: "", 0. */
Str             p2o_onnx_input(OnnxOp op, int i);
char            p2o_onnx_attr(OnnxOp op, const char *name);
OnnxOp          p2o_onnx_find(Str name);                /* ONNX_NONE: no row */

/* Checks the number of inputs and outputs and the opset, then applies the operator's rule.  On
 * false every output is poison (DT_NONE); nothing is reported. */
bool p2o_onnx_infer(Graph *g, Node *n);
/* Dtype, shape and, when short integers, contents of a constant whose tensor is sound. */
void p2o_onnx_type_constant(Graph *g, Value *v, const Tensor *x);

#endif
