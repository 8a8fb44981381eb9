/* Where the nodes of an ONNX file come from, as PyTorch's exporter writes it into their metadata:
 * the user's source, the module, the call of the traced program. */
#ifndef P2O_ONNX_ONNX_ORIGIN_H
#define P2O_ONNX_ONNX_ORIGIN_H

#include "onnx/onnx_read.h"

typedef struct OnnxOrigin {
    PlaceInfo place;            /* empty: not said */
    Str       call;             /* "%mul : [..] = call_function[target=..](args = (%x, 2.0), ..)" */
    bool      padded;           /* the exporter put a Pad that was before it into its own pads */
} OnnxOrigin;

/* Takes one entry of a node's metadata, whose texts stay; others are left alone. */
void p2o_origin_take(OnnxOrigin *o, OnnxMeta entry);

/* The text of the call's arguments, to its end; NULL: not said. */
const char *p2o_origin_args(const OnnxOrigin *o);
/* The operator that was called: "mul"; empty: not said. */
Str  p2o_origin_operator(const OnnxOrigin *o);
/* What the call made: "mul"; empty: not said. */
Str  p2o_origin_name(const OnnxOrigin *o);
/* The next value that the call took, from *at (0 at first); false: no more. */
bool p2o_origin_next(const OnnxOrigin *o, size_t *at, Str *name);

#endif
