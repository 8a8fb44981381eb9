/* torch.export archives (.pt2), PyTorch 2.1 and later -> Program. */
#ifndef P2O_FRONT_PT2_H
#define P2O_FRONT_PT2_H

#include "format/json.h"
#include "format/zip.h"
#include "ir/program.h"

/* NULL after a diagnostic.  Calls are as the file has them: `op` unbound, in-place forms kept. */
Program *p2o_pt2_read(Diags *d, Dims *t, const Zip *z);

/* The same from the JSON alone; its tensors are the caller's, by name. */
typedef struct NamedTensor {
    const char   *name;
    const Tensor *tensor;
} NamedTensor;
Program *p2o_pt2_read_json(Diags *d, Dims *t, Str json, const NamedTensor *weights, size_t n);

/* What inputs will be called: p2o_port_names.  false after a diagnostic. */
bool p2o_pt2_port_names(Diags *d, const Json *given, Buf *out);

#endif
