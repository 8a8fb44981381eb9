#include "ir/dtype.h"

static const struct {
    const char   *text, *torch;
    size_t        bytes;
    DTypeCategory category;
    long          serde, c10;
    int           onnx;
    const char   *npy;
} table[] = {
#define X(id, text, torch, bytes, cat, serde, c10, onnx, npy) \
    [id] = { text, torch, bytes, cat, serde, c10, onnx, npy },
    DTYPES(X)
#undef X
};

const char   *p2o_dtype_text(DType t) { return table[t].text; }
const char   *p2o_dtype_torch(DType t) { return table[t].torch; }
size_t        p2o_dtype_bytes(DType t) { return table[t].bytes; }
DTypeCategory p2o_dtype_category(DType t) { return table[t].category; }
int           p2o_dtype_onnx(DType t) { return table[t].onnx; }
const char   *p2o_dtype_npy(DType t) { return table[t].npy; }

DType p2o_dtype_from_text(Str s)
{
    for (int t = 1; t < DT_COUNT; t++)
        if (str_is(s, table[t].text))
            return (DType)t;
    return DT_NONE;
}

DType p2o_dtype_from_torch(Str s)
{
    for (int t = 1; t < DT_COUNT; t++)
        if (str_is(s, table[t].torch))
            return (DType)t;
    return DT_NONE;
}

DType p2o_dtype_from_serde(long code)
{
    for (int t = 1; t < DT_COUNT; t++)
        if (code > 0 && table[t].serde == code)
            return (DType)t;
    return DT_NONE;
}

DType p2o_dtype_from_c10(long code)
{
    for (int t = 1; t < DT_COUNT; t++)
        if (code >= 0 && table[t].c10 == code)
            return (DType)t;
    return DT_NONE;
}

DType p2o_dtype_from_onnx(long code)
{
    for (int t = 1; t < DT_COUNT; t++)
        if (code > 0 && table[t].onnx == code)
            return (DType)t;
    return DT_NONE;
}

DType p2o_dtype_from_npy(Str s)
{
    for (int t = 1; t < DT_COUNT; t++)
        if (table[t].npy[0] && str_is(s, table[t].npy))
            return (DType)t;
    return DT_NONE;
}

/* Within integers a signed type wide enough for both; u8 joins as 8 bits unsigned.  Within floats
 * the wider, and f16 with bf16 gives f32.  PyTorch promotes the other unsigned and the 8-bit float
 * types with nothing but themselves and a higher category. */
DType p2o_dtype_promote(DType a, DType b)
{
    if (a == b)
        return a;
    DTypeCategory ca = p2o_dtype_category(a), cb = p2o_dtype_category(b);
    if (ca < cb)
        return p2o_dtype_promote(b, a);
    if (ca == CAT_COMPLEX) {
        bool f64 = b == DT_F64 || b == DT_C128 || a == DT_C128;
        bool half = a == DT_C32 && (cb < CAT_FLOAT || b == DT_F16 || b == DT_C32);
        return f64 ? DT_C128 : half ? DT_C32 : DT_C64;
    }
    if (ca != cb)
        return a;
    if (ca == CAT_FLOAT) {
        size_t na = p2o_dtype_bytes(a), nb = p2o_dtype_bytes(b);
        return na == nb ? DT_F32 : na > nb ? a : b;
    }
    if (a == DT_U8 || b == DT_U8) {
        DType other = a == DT_U8 ? b : a;
        return other == DT_I8 ? DT_I16 : other;
    }
    return p2o_dtype_bytes(a) >= p2o_dtype_bytes(b) ? a : b;
}
