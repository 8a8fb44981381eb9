/* Element types: one table of sizes, names and the codes of every format that mentions them. */
#ifndef P2O_IR_DTYPE_H
#define P2O_IR_DTYPE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

/* category orders promotion: bool < integer < float < complex */
typedef enum DTypeCategory { CAT_NONE, CAT_BOOL, CAT_INT, CAT_FLOAT, CAT_COMPLEX } DTypeCategory;

/*        id       text   PyTorch name       bytes category     .pt2 JSON  C10  ONNX  npy */
#define DTYPES(X)                                                                        \
    X(DT_NONE, "none", "none",               0, CAT_NONE,      0,   -1,   0,  "")        \
    X(DT_BOOL, "bool", "bool",               1, CAT_BOOL,     12,   11,   9,  "|b1")     \
    X(DT_U8,   "u8",   "uint8",              1, CAT_INT,       1,    0,   2,  "|u1")     \
    X(DT_I8,   "i8",   "int8",               1, CAT_INT,       2,    1,   3,  "|i1")     \
    X(DT_I16,  "i16",  "int16",              2, CAT_INT,       3,    2,   5,  "<i2")     \
    X(DT_I32,  "i32",  "int32",              4, CAT_INT,       4,    3,   6,  "<i4")     \
    X(DT_I64,  "i64",  "int64",              8, CAT_INT,       5,    4,   7,  "<i8")     \
    X(DT_U16,  "u16",  "uint16",             2, CAT_INT,      28,   27,   4,  "<u2")     \
    X(DT_U32,  "u32",  "uint32",             4, CAT_INT,      34,   28,  12,  "<u4")     \
    X(DT_U64,  "u64",  "uint64",             8, CAT_INT,      35,   29,  13,  "<u8")     \
    X(DT_F16,  "f16",  "float16",            2, CAT_FLOAT,     6,    5,  10,  "<f2")     \
    X(DT_BF16, "bf16", "bfloat16",           2, CAT_FLOAT,    13,   15,  16,  "")        \
    X(DT_F32,  "f32",  "float32",            4, CAT_FLOAT,     7,    6,   1,  "<f4")     \
    X(DT_F64,  "f64",  "float64",            8, CAT_FLOAT,     8,    7,  11,  "<f8")     \
    X(DT_F8E4M3FN,   "f8e4m3fn",   "float8_e4m3fn",   1, CAT_FLOAT, 29, 24, 17, "")      \
    X(DT_F8E4M3FNUZ, "f8e4m3fnuz", "float8_e4m3fnuz", 1, CAT_FLOAT, 31, 26, 18, "")      \
    X(DT_F8E5M2,     "f8e5m2",     "float8_e5m2",     1, CAT_FLOAT, 30, 23, 19, "")      \
    X(DT_F8E5M2FNUZ, "f8e5m2fnuz", "float8_e5m2fnuz", 1, CAT_FLOAT, 32, 25, 20, "")      \
    X(DT_F8E8M0,     "f8e8m0",     "float8_e8m0fnu",  1, CAT_FLOAT, 33, 44, 24, "")      \
    X(DT_C32,  "c32",  "complex32",          4, CAT_COMPLEX,   9,    8,   0,  "")        \
    X(DT_C64,  "c64",  "complex64",          8, CAT_COMPLEX,  10,    9,  14,  "<c8")     \
    X(DT_C128, "c128", "complex128",        16, CAT_COMPLEX,  11,   10,  15,  "<c16")    \
    X(DT_STR,  "str",  "str",                0, CAT_NONE,      0,   -1,   8,  "")

typedef enum DType {
#define X(id, text, torch, bytes, cat, serde, c10, onnx, npy) id,
    DTYPES(X)
#undef X
    DT_COUNT
} DType;

const char   *p2o_dtype_text(DType t);              /* "f32" */
const char   *p2o_dtype_torch(DType t);             /* "float32" */
size_t        p2o_dtype_bytes(DType t);
DTypeCategory p2o_dtype_category(DType t);
int           p2o_dtype_onnx(DType t);              /* TensorProto.DataType; 0: ONNX has none */
const char   *p2o_dtype_npy(DType t);               /* "": .npy has none */

/* DT_NONE when there is no such type. */
DType p2o_dtype_from_text(Str s);
DType p2o_dtype_from_torch(Str s);
DType p2o_dtype_from_serde(long code);
DType p2o_dtype_from_c10(long code);
DType p2o_dtype_from_onnx(long code);
DType p2o_dtype_from_npy(Str s);

static inline bool is_float(DType t) { return p2o_dtype_category(t) == CAT_FLOAT; }
static inline bool is_int(DType t) { return p2o_dtype_category(t) == CAT_INT; }
static inline bool is_complex(DType t) { return p2o_dtype_category(t) == CAT_COMPLEX; }

/* Of the real and imaginary parts of a complex type; any other type itself. */
static inline DType part_of(DType t)
{
    return t == DT_C64 ? DT_F32 : t == DT_C128 ? DT_F64 : t == DT_C32 ? DT_F16 : t;
}

/* The complex type whose parts are of t, or of float32 when t is no float. */
static inline DType complex_of(DType t)
{
    return is_complex(t) ? t : t == DT_F64 ? DT_C128 : t == DT_F16 ? DT_C32 : DT_C64;
}

/* torch.promote_types. */
DType p2o_dtype_promote(DType a, DType b);

#endif
