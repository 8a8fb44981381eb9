/* ONNX Runtime behind its C API, loaded at run time; nothing links against it.
 *
 * Looked for in this order: $PT2ONNX_ORT (the library or a folder with it; then nothing else is
 * tried), the program's own folder, .deps/onnxruntime there or in a folder above (where `make`
 * leaves it), the active virtual environment's wheel ($VIRTUAL_ENV), node_modules/onnxruntime-node
 * here or in a folder above, wheels in the user's and the system's Python folders, the system's
 * libonnxruntime.so.  1.17 or later.
 *
 * Sessions run on one thread, so results repeat, and log nothing: errors come back as text. */
#ifndef P2O_RUN_ORT_H
#define P2O_RUN_ORT_H

#include "base/diag.h"
#include "run/array.h"

typedef struct Ort Ort;
typedef struct OrtModel OrtModel;

Ort        *p2o_ort_load(Diags *d);         /* NULL after a diagnostic that says where it looked */
void        p2o_ort_unload(Ort *o);         /* closes its models too */
const char *p2o_ort_version(const Ort *o);  /* "1.23.0" */
const char *p2o_ort_path(const Ort *o);

/* Models that are opened from here on have the kernels of this library too. */
void p2o_ort_use(Ort *o, const char *path);

/* NULL after a diagnostic; also for models with ports that are not tensors of numbers. */
OrtModel *p2o_ort_open(Ort *o, Diags *d, const char *path);
void      p2o_ort_close(OrtModel *m);

typedef struct OrtPort {                /* an input or output as the model declares it */
    const char *name;
    DType       dtype;
    int         rank;                   /* 0 also when not declared: the C API does not tell */
    const int64_t     *sizes;           /* -1: dynamic */
    const char *const *dims;            /* symbolic names, "" where none */
} OrtPort;

size_t         p2o_ort_ninput(const OrtModel *m);
size_t         p2o_ort_noutput(const OrtModel *m);
const OrtPort *p2o_ort_input(const OrtModel *m, size_t i);
const OrtPort *p2o_ort_output(const OrtModel *m, size_t i);
/* Metadata entry, NULL when absent. */
const char *p2o_ort_meta(OrtModel *m, const char *key);

/* in[i] for every input; out gets noutput arrays in the arena.  NULL when done, else the first line
 * of the runtime's complaint: whether that is an error or a finding is the caller's to say. */
const char *p2o_ort_run(Arena *a, OrtModel *m, const Array *in, Array *out);

#endif
