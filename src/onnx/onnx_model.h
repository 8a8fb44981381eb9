/* An ONNX file as a Graph, to be given other sizes and written again.
 *
 * The Graph stands beside the file and does not replace it: what it does not hold (documentation,
 * annotations, functions, whatever later versions add) is copied from the file as it is when the
 * model is written (onnx_copy.c).  Tensors are views into the file or into the data files it
 * names; nothing is loaded but short vectors of integers, which may be sizes.
 *
 * A value has no type (DT_NONE) until p2o_onnx_infer gives it one; inputs and initializers have
 * what the file says.  An operator without a row, or a function of the model's own, is
 * ONNX_NONE. */
#ifndef P2O_ONNX_ONNX_MODEL_H
#define P2O_ONNX_ONNX_MODEL_H

#include "onnx/graph.h"
#include "onnx/onnx_origin.h"

/* How symbols begin that stand for sizes only the data decides. */
#define DATA_STEM "_data"

typedef struct OnnxNode {
    Node       *node;
    int         nin;                    /* in the file; others stand for attributes of old forms */
    bool        hides_bodies;           /* it has graphs that were not read */
    OnnxOrigin  origin;
    Loc         loc;                    /* of origin.place; 0: not said */
} OnnxNode;

typedef struct OnnxModel OnnxModel;

typedef struct OnnxBody {               /* of each Graph that was read: graph->file */
    OnnxModel     *model;
    Graph         *graph;
    Map            values;              /* name in the file -> Value * */
    Map            infos;               /* name -> OnnxPort *: what the file says of its type */
    VEC(OnnxNode)  nodes;               /* in the file's order, as the Graph has them */
} OnnxBody;

struct OnnxModel {
    Arena  *arena;
    Diags  *diags;
    Dims   *dims;
    Source *source;
    Graph  *graph;
    int64_t ir_version;
    Map     functions;                  /* "domain\nname" of the model's own */
    Map     taken;                      /* every name of a value, in all graphs */
    Map     params;                     /* text of a dim -> DimName * */
    Map     sources;                    /* location -> Source * of a data file */
    Graph  *prelude;                    /* nodes to be written before the others; NULL: none */
    const char *dims_json;              /* the metadata entry pt2onnx.dims; NULL: none */
};

/* NULL after a diagnostic. */
OnnxModel *p2o_onnx_load(Diags *d, Dims *t, Source *s);

/* What the file says of the type, its sizes as Dims; false: nothing, or no tensor. */
bool p2o_onnx_stated(OnnxBody *b, const char *name, DType *t, Shape *s);
/* The text that the file has for a Dim it named; NULL: none. */
const char *p2o_onnx_dim_name(const OnnxModel *m, Dim d);

#endif
