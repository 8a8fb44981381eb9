/* Which kind of file is this?  Decided by content, in the order that makes it unambiguous. */
#ifndef P2O_FRONT_SNIFF_H
#define P2O_FRONT_SNIFF_H

#include "format/zip.h"

typedef enum FileKind {
    FILE_UNKNOWN, FILE_PT2, FILE_PT2_OLD, FILE_TORCHSCRIPT, FILE_TORCHSCRIPT_LITE, FILE_PACKAGE,
    FILE_TORCH_SAVE, FILE_TORCH_SAVE_LEGACY, FILE_TORCH_SAVE_TAR, FILE_FLATBUFFER, FILE_PREVIEW,
    FILE_SAFETENSORS, FILE_ONNX, FILE_EMPTY
} FileKind;

/* For zip kinds *zip is the opened archive, else NULL.  FILE_UNKNOWN comes after a diagnostic: a
 * broken zip, or nothing that PyTorch saves. */
FileKind p2o_sniff(Diags *d, Source *s, Zip **zip);

/* What the file is and what to do instead, as a diagnostic; for every kind that is not converted.
 * Nothing for FILE_UNKNOWN, which was reported when found, and for kinds that are converted. */
void p2o_sniff_refuse(Diags *d, FileKind k);
/* The same words without a diagnostic; "" for kinds that are converted. */
const char *p2o_sniff_text(FileKind k);

#endif
