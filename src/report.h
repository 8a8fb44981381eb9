/* Texts for people: what a file contains, what a conversion made, what is supported. */
#ifndef P2O_REPORT_H
#define P2O_REPORT_H

#include "aten/ops.h"
#include "front/sniff.h"
#include "ir/bind.h"
#include "run/array.h"

const char *p2o_report_graph(const Graph *g);
const char *p2o_report_ops(Arena *a, Ops *o);
const char *p2o_report_arrays(Arena *a, const NamedArray *v, size_t n);
/* NULL after a diagnostic. */
const char *p2o_report_file(Diags *d, Dims *t, Ops *o, Source *s, FileKind k, Zip *zip);

/* Ranges and guards of the capture and the outputs' exact sizes, for the model's metadata. */
const char *p2o_dims_json(Program *p, Bindings *b, const Graph *g);

/* The model's inputs and outputs, and the above. */
/* Metadata "pt2onnx.state": {input: output}, what is fed back from run to run.  NULL: nothing. */
const char *p2o_state_json(const Graph *g);

const char *p2o_signature_json(Program *p, Bindings *b, const Graph *g);

/* How each size became what it is, as Markdown. */
const char *p2o_report_dims(Program *p, Bindings *b, const Graph *g);

#endif
