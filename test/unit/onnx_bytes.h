/* Small ONNX models as bytes, built by hand so that tests need neither fixtures nor our writer. */
#ifndef P2O_TEST_ONNX_BYTES_H
#define P2O_TEST_ONNX_BYTES_H

#include "base/num.h"

static inline void pb_put_varint(Buf *b, uint64_t v)
{
    do {
        uint8_t byte = (uint8_t)((v & 0x7F) | (v > 0x7F ? 0x80 : 0));
        p2o_put(b, &byte, 1);
        v >>= 7;
    } while (v);
}

static inline void pb_put_int(Buf *b, unsigned field, int64_t v)
{
    pb_put_varint(b, (uint64_t)field << 3);
    pb_put_varint(b, (uint64_t)v);
}

static inline void pb_put_str(Buf *b, unsigned field, Str s)
{
    pb_put_varint(b, (uint64_t)field << 3 | 2);
    pb_put_varint(b, s.n);
    p2o_put(b, s.p, s.n);
}

static inline void pb_put_text(Buf *b, unsigned field, const char *z)
{
    pb_put_str(b, field, str_of(z));
}

/* dims as "batch|5|past + seq|?": names, numbers, ? for neither; NULL: no shape at all. */
static inline Str onnx_value(Arena *a, const char *name, int elem, const char *dims)
{
    Buf shape = { .arena = a }, tensor = { .arena = a };
    Buf type = { .arena = a }, value = { .arena = a };
    Str rest = dims ? str_of(dims) : (Str){ "", 0 };
    while (rest.n) {
        Str one = p2o_str_cut(rest, '|', &rest);
        Buf dim = { .arena = a };
        int64_t n;
        if (p2o_parse_i64(one, &n))
            pb_put_int(&dim, 1, n);
        else if (one.p[0] != '?')
            pb_put_str(&dim, 2, one);
        pb_put_str(&shape, 1, buf_str(&dim));
    }
    pb_put_int(&tensor, 1, elem);
    if (dims)
        pb_put_str(&tensor, 2, buf_str(&shape));
    pb_put_str(&type, 1, buf_str(&tensor));
    pb_put_text(&value, 1, name);
    pb_put_str(&value, 2, buf_str(&type));
    return buf_str(&value);
}

/* in and out as "x,y"; attrs are ready AttributeProto fields of a node, or empty. */
static inline Str onnx_node(Arena *a, const char *op, const char *in, const char *out, Str attrs)
{
    Buf b = { .arena = a };
    for (Str rest = str_of(in); rest.n;)
        pb_put_str(&b, 1, p2o_str_cut(rest, ',', &rest));
    for (Str rest = str_of(out); rest.n;)
        pb_put_str(&b, 2, p2o_str_cut(rest, ',', &rest));
    pb_put_text(&b, 4, op);
    p2o_put(&b, attrs.p, attrs.n);
    return buf_str(&b);
}

static inline Str onnx_attr_int(Arena *a, const char *name, int64_t v)
{
    Buf attr = { .arena = a }, b = { .arena = a };
    pb_put_text(&attr, 1, name);
    pb_put_int(&attr, 3, v);
    pb_put_int(&attr, 20, 2);
    pb_put_str(&b, 5, buf_str(&attr));
    return buf_str(&b);
}

static inline Str onnx_attr_graph(Arena *a, const char *name, Str graph)
{
    Buf attr = { .arena = a }, b = { .arena = a };
    pb_put_text(&attr, 1, name);
    pb_put_str(&attr, 6, graph);
    pb_put_int(&attr, 20, 5);
    pb_put_str(&b, 5, buf_str(&attr));
    return buf_str(&b);
}

/* An initializer of int64, as raw bytes. */
static inline Str onnx_ints(Arena *a, const char *name, const int64_t *v, size_t n)
{
    Buf b = { .arena = a };
    pb_put_int(&b, 1, (int64_t)n);
    pb_put_int(&b, 2, 7);
    pb_put_text(&b, 8, name);
    pb_put_str(&b, 9, (Str){ (const char *)v, n * sizeof *v });
    return buf_str(&b);
}

/* graph: the fields of a GraphProto. */
static inline Str onnx_model(Arena *a, Str graph, const char *meta_key, const char *meta_value)
{
    Buf b = { .arena = a }, opset = { .arena = a }, meta = { .arena = a };
    pb_put_int(&b, 1, 8);
    pb_put_text(&b, 2, "by hand");
    pb_put_text(&b, 3, "1.0");
    pb_put_str(&b, 7, graph);
    pb_put_text(&opset, 1, "");
    pb_put_int(&opset, 2, 17);
    pb_put_str(&b, 8, buf_str(&opset));
    if (meta_key) {
        pb_put_text(&meta, 1, meta_key);
        pb_put_text(&meta, 2, meta_value);
        pb_put_str(&b, 14, buf_str(&meta));
    }
    return buf_str(&b);
}

#endif
