/* torch.save archives (zip form, PyTorch 1.6 and later) and the tensors pickled in them.
 *
 * Such an archive stands alone or is a record of a .pt2.  Its pickle stays an inert tree; a value
 * of it becomes a Tensor when asked for, so what nobody uses is never judged.  TorchScript pickles
 * its tensors the same way: a TensorFolder over its own records reads them. */
#ifndef P2O_FRONT_TORCH_SAVE_H
#define P2O_FRONT_TORCH_SAVE_H

#include "format/pickle.h"
#include "format/zip.h"
#include "ir/tensor.h"

typedef struct TensorFolder {
    Diags      *diags;
    const Zip  *zip;
    const char *prefix;                 /* of the records that hold storages: "archive/data/" */
    bool        big_endian;
    Map         storages;               /* key -> Storage *: tensors that share one are aliases */
} TensorFolder;

typedef struct TorchSave {
    Pickle      *value;
    TensorFolder tensors;
} TorchSave;

/* Bytes [offset, offset + size) of the source; `what` names them in messages.  NULL after a
 * diagnostic. */
TorchSave *p2o_torch_save_open(Diags *d, Source *s, uint64_t offset, uint64_t size,
                               const char *what);

/* The tensor or parameter that p rebuilds; `name` is for messages.  NULL after a diagnostic. */
const Tensor *p2o_torch_save_tensor(TensorFolder *f, const Pickle *p, const char *name);

/* What every archive of PyTorch's own writer has. */
const char *p2o_torch_save_root(const Zip *z);          /* "name/", or "" without a root folder */
/* From the record `byteorder`; little-endian without it.  false after a diagnostic. */
bool        p2o_torch_save_byteorder(Diags *d, const Zip *z, const char *root, bool *big_endian);
/* A record's bytes, in place when stored, inflated else.  NULL after a diagnostic. */
Storage    *p2o_torch_save_storage(Diags *d, const Zip *z, const ZipEntry *e, bool big_endian);

#endif
