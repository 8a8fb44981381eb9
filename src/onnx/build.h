/* Makes nodes: shares equal ones, folds what is constant, interns constants, and computes in a
 * wider type what ONNX Runtime has no kernel for (onnx/kernels.h); a type without one is reported.
 *
 * One Builder per Graph; a body's Builder looks for shared values in its parents too. */
#ifndef P2O_ONNX_BUILD_H
#define P2O_ONNX_BUILD_H

#include "onnx/graph.h"

typedef struct Builder Builder;
struct Builder {
    Graph   *graph;
    Builder *parent;
    Map      shared;            /* operator, inputs and attributes -> Node * */
    Map      consts;            /* dtype, shape and bytes -> Value * */
    Map      dims;              /* Dim -> what carries it; kept by aten/dims */
    Loc      loc;               /* given to the nodes that are made */
    const char *module;         /* their module path; NULL: none */
    Map     *names;             /* node names in use, shared with the parent */
};

Builder *p2o_builder_new(Graph *g, Builder *parent);

/* The outputs of an operator.  Trailing NULL inputs are cut.  A node with one result that is
 * known at conversion is not made: the constant is. */
void   p2o_build_many(Builder *b, OnnxOp op, int nattr, const Attr *attrs, int nin,
                      Value *const *in, int nout, Value **out);
/* A node without a row, neither shared nor typed. */
Node  *p2o_build_own(Builder *b, const OnnxOperator *own, int nattr, const Attr *attrs, int nin,
                     Value *const *in, int nout);
Value *p2o_build(Builder *b, OnnxOp op, int nattr, const Attr *attrs, int nin, Value *const *in);

/* Constants; equal ones are one initializer. */
Value *p2o_build_const(Builder *b, const Tensor *t);            /* small: compared by content */
Value *p2o_build_ints(Builder *b, const int64_t *v, size_t n);  /* rank 1 */
Value *p2o_build_int(Builder *b, int64_t v);                    /* rank 0 */
Value *p2o_build_scalar(Builder *b, DType t, double f);         /* rank 0 */

#endif
