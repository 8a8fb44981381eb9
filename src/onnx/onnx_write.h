/* Graph -> ONNX protobuf (onnx.proto3), streamed: sizes are computed first, then bytes go out in
 * order, weights gathered from their sources as they pass.  Nothing of the model's size is held. */
#ifndef P2O_ONNX_ONNX_WRITE_H
#define P2O_ONNX_ONNX_WRITE_H

#include "base/io.h"
#include "onnx/graph.h"

typedef enum ExternalData {
    EXTERNAL_AUTO, EXTERNAL_ALWAYS, EXTERNAL_NEVER, EXTERNAL_LINK
} ExternalData;

typedef struct OnnxWriteOptions {
    const char  *producer_version;
    ExternalData external;
    const char  *model_path;            /* where the model will be; needed unless EXTERNAL_NEVER */
} OnnxWriteOptions;

/* AUTO writes one file up to 1.9 GB and moves weights of 1 kB and more to `<model_path>.data`
 * beyond; LINK points at the archive the weights are in, when it lies in the model's folder or
 * below, else fails.  false after a diagnostic; then no file was made or changed. */
bool p2o_onnx_write(Diags *d, const Graph *g, const OnnxWriteOptions *o);
/* To a sink, in one piece, which fails past 2 GB.  The sink is committed, or aborted on failure. */
bool p2o_onnx_write_sink(Diags *d, const Graph *g, const OnnxWriteOptions *o, Sink *s);

#endif
