/* Weights and constants: strided views of bytes that stay where they are.
 *
 * A Storage is a run of bytes in a Source; tensors that share one are aliases.  Nothing is loaded:
 * transposing swaps strides, and the writer gathers as it streams. */
#ifndef P2O_IR_TENSOR_H
#define P2O_IR_TENSOR_H

#include "base/io.h"
#include "ir/dtype.h"

typedef struct Storage {
    Source  *source;                    /* NULL: all zeros (exported from fake tensors) */
    uint64_t offset, nbytes;            /* in the source */
    bool     big_endian;
    uint32_t crc;                       /* CRC-32 of the bytes; 0: not recorded */
} Storage;

typedef struct Tensor {
    const Storage *storage;
    DType          dtype;
    int            rank;
    const int64_t *sizes, *strides;     /* elements; strides are never negative */
    uint64_t       offset;              /* elements from the storage's start */
    const struct Tensor *const *parts;  /* of a joined tensor: its elements are theirs, in order */
    size_t         nparts;
} Tensor;

/* false when a size is negative or numel overflows. */
bool p2o_tensor_nelem(const Tensor *x, uint64_t *n);
/* Rank, sizes, strides and extent are sane and inside the storage; else says why.  A tensor that
 * repeats bytes (stride 0, overlap, zeros without bytes) may be 16 GB large and no more. */
bool p2o_tensor_check(const Tensor *x, const char **why);
bool p2o_tensor_is_contiguous(const Tensor *x);

/* A dense little-endian tensor over bytes in memory that outlive it. */
Tensor *p2o_tensor_make(Arena *a, DType t, int rank, const int64_t *sizes, const void *bytes);
/* A rank-0 or rank-1 tensor of int64. */
Tensor *p2o_tensor_ints(Arena *a, int rank, const int64_t *v, size_t n);
/* A rank-0 tensor with this value, converted to t as PyTorch does; t is a bool, integer or float
 * type.  An integer that t cannot hold wraps. */
Tensor *p2o_tensor_scalar(Arena *a, DType t, double f, int64_t i, bool use_float);

/* Views. */
Tensor *p2o_tensor_permute(Arena *a, const Tensor *x, const int *perm);
Tensor *p2o_tensor_part(Arena *a, const Tensor *x, int part);  /* complex: 0 real, 1 imaginary */
Tensor *p2o_tensor_narrow(Arena *a, const Tensor *x, int dim, int64_t start, int64_t len);

/* Tensors of one type one after the other, under a shape of their own: joined as it is written. */
Tensor *p2o_tensor_join(Arena *a, const Tensor *const *parts, size_t n, int rank,
                        const int64_t *sizes);

/* Row-major little-endian bytes, `cb` called with runs of them in order; a bool is 0 or 1.  false
 * if cb returns false, x fails p2o_tensor_check or the source cannot be read.  From a callback
 * source a tensor that is not contiguous is read whole first. */
typedef bool TensorBytesFn(void *user, const void *p, size_t n);
bool p2o_tensor_stream(const Tensor *x, TensorBytesFn *cb, void *user);
/* The same into buf of nbytes = nelem * itemsize; for small tensors. */
bool p2o_tensor_load(const Tensor *x, void *buf, size_t nbytes);
/* Element i in row-major order of a small tensor as a double (bool, integer, float types) / int64
 * (bool, integer types); false when unreadable or the type has no such value. */
bool p2o_tensor_get_f64(const Tensor *x, uint64_t i, double *v);
bool p2o_tensor_get_i64(const Tensor *x, uint64_t i, int64_t *v);

#endif
