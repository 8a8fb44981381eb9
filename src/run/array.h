/* Dense arrays in memory, .npz files of them, random ones, and how far two are apart. */
#ifndef P2O_RUN_ARRAY_H
#define P2O_RUN_ARRAY_H

#include "base/io.h"
#include "ir/dtype.h"

typedef struct Array {
    DType    dtype;
    int      rank;
    int64_t *sizes;
    void    *data;                      /* row-major, little-endian; never NULL */
    size_t   nbytes;
} Array;

typedef struct NamedArray {
    const char *name;
    Array       array;
} NamedArray;

typedef struct Npz {
    NamedArray *at;                     /* in the file's order */
    size_t      n;
    Map         index;                  /* name -> Array * */
} Npz;

/* Zeros.  false when a size is negative or the bytes cannot be counted; *out is then untouched. */
bool     p2o_array_make(Arena *a, DType t, int rank, const int64_t *sizes, Array *out);
uint64_t p2o_array_nelem(const Array *x);
/* "[2, 5]" */
const char *p2o_array_shape_text(Arena *a, const Array *x);
/* The element as a double: exact but for 64-bit integers past 2^53.  Of a complex element the real
 * part; 8-bit floats have no value and give NaN. */
double   p2o_array_at(const Array *x, uint64_t i);
/* The same values as another float type (f16, bf16, f32 or f64 to any of these). */
bool     p2o_array_convert(Arena *a, const Array *x, DType t, Array *out);

/* Every .npy member, Fortran order and big-endian ones turned around, two opaque bytes (V2) taken
 * as bf16, which is how NumPy stores it.  false after a diagnostic. */
bool         p2o_npz_read(Diags *d, const char *path, Npz *out);
const Array *p2o_npz_find(const Npz *z, const char *name);              /* NULL: none */
/* The same arrays give the same bytes.  bf16 is written as f32; types .npy has not are refused. */
bool         p2o_npz_write(Diags *d, const char *path, const NamedArray *at, size_t n);

/* Filled from a seed, which moves on: floats with mean 0 and deviation 1, integers 0 or 1 (always
 * valid as an index of a table of two), bools mixed.  false as p2o_array_make. */
bool p2o_array_random(Arena *a, DType t, int rank, const int64_t *sizes, uint64_t *seed,
                      Array *out);

typedef struct Tolerance {
    double atol, rtol;                  /* |x - y| <= atol + rtol * |y| */
} Tolerance;

typedef struct ArrayDiff {
    double   max_abs;       /* greatest |x - y|; NaN or infinity beside another value: infinite */
    uint64_t worst;         /* the element farthest outside the tolerance, or nearest to it */
    uint64_t noutside;      /* elements outside the tolerance */
} ArrayDiff;

/* y is what was expected.  Equal infinities and NaN beside NaN differ by 0.  Integers, bools and
 * 8-bit floats must be equal whatever the tolerance.  false when dtype or shape differ. */
bool p2o_array_compare(const Array *x, const Array *y, Tolerance t, ArrayDiff *out);

typedef struct ArrayStats {
    double   min, max, mean;            /* over elements that are not NaN; 0 when there are none */
    uint64_t nnan;
} ArrayStats;

ArrayStats p2o_array_stats(const Array *x);

#endif
