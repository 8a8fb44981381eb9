/* onnx.proto3: its field numbers, and the small messages that more than one reader needs.
 *
 * A walk goes sticky: the first thing wrong is kept as `why`, what follows yields empty values. */
#ifndef P2O_ONNX_ONNX_PROTO_H
#define P2O_ONNX_ONNX_PROTO_H

#include "format/pb.h"
#include "onnx/onnx_read.h"

enum {
    MODEL_IR_VERSION = 1, MODEL_PRODUCER = 2, MODEL_PRODUCER_VERSION = 3, MODEL_GRAPH = 7,
    MODEL_OPSET = 8, MODEL_METADATA = 14, MODEL_FUNCTION = 25,
    OPSET_DOMAIN = 1, OPSET_VERSION = 2,
    ENTRY_KEY = 1, ENTRY_VALUE = 2,
    GRAPH_NODE = 1, GRAPH_NAME = 2, GRAPH_INIT = 5, GRAPH_INPUT = 11, GRAPH_OUTPUT = 12,
    GRAPH_VALUE_INFO = 13, GRAPH_SPARSE = 15,
    FUNCTION_NAME = 1, FUNCTION_INPUT = 4, FUNCTION_OUTPUT = 5, FUNCTION_ATTR = 6,
    FUNCTION_NODE = 7, FUNCTION_OPSET = 9, FUNCTION_DOMAIN = 10, FUNCTION_ATTR_DEFAULT = 11,
    NODE_INPUT = 1, NODE_OUTPUT = 2, NODE_NAME = 3, NODE_OP = 4, NODE_ATTR = 5, NODE_DOMAIN = 7,
    NODE_METADATA = 9,
    A_NAME = 1, A_FLOAT = 2, A_INT = 3, A_STRING = 4, A_TENSOR = 5, A_GRAPH = 6, A_FLOATS = 7,
    A_INTS = 8, A_STRINGS = 9, A_GRAPHS = 11, A_TYPE = 20, A_REFERENCE = 21,
    TENSOR_DIMS = 1, TENSOR_TYPE = 2, TENSOR_FLOATS = 4, TENSOR_INT32S = 5, TENSOR_INT64S = 7,
    TENSOR_NAME = 8, TENSOR_RAW = 9, TENSOR_DOUBLES = 10, TENSOR_UINT64S = 11,
    TENSOR_EXTERNAL = 13, TENSOR_LOCATION = 14, LOCATION_EXTERNAL = 1,
    SPARSE_VALUES = 1, SPARSE_INDICES = 2, SPARSE_DIMS = 3,
    INFO_NAME = 1, INFO_TYPE = 2,
    TYPE_TENSOR = 1, TYPE_SEQUENCE = 4, SEQUENCE_ELEM = 1, TENSOR_ELEM = 1, TENSOR_SHAPE = 2,
    SHAPE_DIM = 1, DIM_VALUE = 1, DIM_PARAM = 2,
};

enum {                                  /* AttributeProto.AttributeType */
    A_KIND_FLOAT = 1, A_KIND_INT, A_KIND_STRING, A_KIND_TENSOR, A_KIND_GRAPH, A_KIND_FLOATS,
    A_KIND_INTS, A_KIND_STRINGS
};

typedef struct ProtoWalk {
    Arena      *arena;
    bool        exact;                  /* text is written again: control characters are refused */
    bool        lines;                  /* text may have several */
    bool        bad;
    const char *why;
} ProtoWalk;

void p2o_proto_spoil(ProtoWalk *w, const char *why);
/* The field's text, control characters replaced unless the walk is exact. */
const char *p2o_proto_text(ProtoWalk *w, const PbReader *r, const PbField *f);
PbReader    p2o_proto_enter(ProtoWalk *w, const PbReader *r, const PbField *f);
void        p2o_proto_leave(ProtoWalk *w, const PbReader *r);

OnnxMeta   p2o_proto_pair(ProtoWalk *w, PbReader r);    /* StringStringEntryProto */
OnnxImport p2o_proto_import(ProtoWalk *w, PbReader r);  /* OperatorSetIdProto */
OnnxPort   p2o_proto_port(ProtoWalk *w, PbReader r);    /* ValueInfoProto */

#endif
