/* torch.export archives (.pt2), PyTorch 2.1 and later -> Program. */
#ifndef P2O_FRONT_PT2_H
#define P2O_FRONT_PT2_H

#include "format/zip.h"
#include "ir/program.h"

/* NULL after a diagnostic.  Calls are as the file has them: `op` unbound, in-place forms kept. */
Program *p2o_pt2_read(Diags *d, Dims *t, const Zip *z);

#endif
