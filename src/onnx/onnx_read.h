/* What an ONNX file says about itself, for `inspect`: ports, operators, weights, metadata.
 *
 * Nothing is executed and no weight is read, whatever its size: the file is walked as protobuf
 * (onnx.proto3) and tensors are measured, not loaded.  Text from the file comes out with control
 * characters replaced by '?'. */
#ifndef P2O_ONNX_ONNX_READ_H
#define P2O_ONNX_ONNX_READ_H

#include "base/io.h"
#include "ir/dtype.h"

typedef struct OnnxImport {
    const char *domain;                 /* "" is ai.onnx */
    int64_t     version;
} OnnxImport;

typedef struct OnnxPort {
    const char *name;
    const char *kind;                   /* "tensor", "sequence", "optional", "map" ... */
    DType       dtype;                  /* DT_NONE: no tensor, or a type that has no row */
    int         rank;                   /* -1: not stated */
    const int64_t     *sizes;           /* -1: dynamic */
    const char *const *dims;            /* names, "" where none */
} OnnxPort;

typedef struct OnnxOpCount {
    const char *domain, *name;
    uint64_t    n;
} OnnxOpCount;

typedef struct OnnxMeta {
    const char *key, *value;
} OnnxMeta;

typedef struct OnnxFile {
    int64_t     ir_version;
    const char *producer, *producer_version, *graph_name;       /* "" when absent */
    OnnxImport *imports;
    size_t      nimport;
    OnnxPort   *inputs, *outputs;       /* inputs without those that are initializers */
    size_t      nin, nout;
    OnnxMeta   *meta;
    size_t      nmeta;
    OnnxOpCount *ops;                   /* commonest first; also those in bodies and functions */
    size_t      nop;
    uint64_t    nnode, nbody, nfunction;
    uint64_t    ninit, init_bytes;      /* all initializers, also those in bodies */
    uint64_t    nexternal, external_bytes;      /* the part of them that lies in other files */
} OnnxFile;

/* NULL after a diagnostic. */
const OnnxFile *p2o_onnx_read(Diags *d, Source *s);

#endif
