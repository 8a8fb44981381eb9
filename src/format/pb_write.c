/* The measuring and the writing pass differ only here: put_raw counts or writes, and a message's
 * head is added to the count when it ends but written when it begins.  The writing pass checks that
 * each message came out as long as it was measured. */
#include "format/pb_write.h"

#include <assert.h>

enum { WIRE_VARINT = 0, WIRE_LENGTH = 2, WIRE_FIXED32 = 5 };

static size_t varint_size(uint64_t v)
{
    size_t n = 1;
    for (; v >= 0x80; v >>= 7)
        n++;
    return n;
}

static uint64_t tag_of(uint32_t field, unsigned wire) { return (uint64_t)field << 3 | wire; }

static void put_raw(PbWriter *w, const void *p, size_t n)
{
    if (w->sink)
        p2o_sink_write(w->sink, p, n);
    else
        w->nbytes += n;
}

static void put_varint(PbWriter *w, uint64_t v)
{
    uint8_t b[10];
    size_t  n = 0;
    for (; v >= 0x80; v >>= 7)
        b[n++] = (uint8_t)(v | 0x80);
    b[n++] = (uint8_t)v;
    put_raw(w, b, n);
}

static void put_fixed32(PbWriter *w, float v)
{
    uint32_t u;
    memcpy(&u, &v, sizeof u);
    uint8_t b[4] = { (uint8_t)u, (uint8_t)(u >> 8), (uint8_t)(u >> 16), (uint8_t)(u >> 24) };
    put_raw(w, b, sizeof b);
}

void p2o_pb_replay(PbWriter *w, Sink *s)
{
    w->sink = s;
    w->next = 0;
}

PbMark p2o_pb_begin(PbWriter *w, uint32_t field)
{
    if (!w->sink) {
        VEC_PUSH(w->arena, &w->sizes, 0);
        return (PbMark){ .index = w->sizes.n - 1, .start = w->nbytes, .field = field };
    }
    assert(w->next < w->sizes.n);
    put_varint(w, tag_of(field, WIRE_LENGTH));
    put_varint(w, w->sizes.at[w->next++]);
    return (PbMark){ .start = p2o_sink_offset(w->sink), .index = w->next - 1 };
}

void p2o_pb_end(PbWriter *w, PbMark m)
{
    if (w->sink) {
        assert(w->is_short || p2o_sink_offset(w->sink) - m.start == w->sizes.at[m.index]);
        return;
    }
    uint64_t n = w->nbytes - m.start;
    w->sizes.at[m.index] = n;
    w->nbytes += varint_size(tag_of(m.field, WIRE_LENGTH)) + varint_size(n);
}

void p2o_pb_int(PbWriter *w, uint32_t field, int64_t v)
{
    put_varint(w, tag_of(field, WIRE_VARINT));
    put_varint(w, (uint64_t)v);
}

void p2o_pb_float(PbWriter *w, uint32_t field, float v)
{
    put_varint(w, tag_of(field, WIRE_FIXED32));
    put_fixed32(w, v);
}

void p2o_pb_bytes(PbWriter *w, uint32_t field, const void *p, size_t n)
{
    put_varint(w, tag_of(field, WIRE_LENGTH));
    put_varint(w, n);
    put_raw(w, p, n);
}

void p2o_pb_text(PbWriter *w, uint32_t field, const char *z)
{
    p2o_pb_bytes(w, field, z, strlen(z));
}

void p2o_pb_packed_ints(PbWriter *w, uint32_t field, const int64_t *v, size_t n)
{
    uint64_t nbytes = 0;
    if (n == 0)
        return;
    for (size_t i = 0; i < n; i++)
        nbytes += varint_size((uint64_t)v[i]);
    put_varint(w, tag_of(field, WIRE_LENGTH));
    put_varint(w, nbytes);
    for (size_t i = 0; i < n; i++)
        put_varint(w, (uint64_t)v[i]);
}

void p2o_pb_packed_floats(PbWriter *w, uint32_t field, const float *v, size_t n)
{
    if (n == 0)
        return;
    put_varint(w, tag_of(field, WIRE_LENGTH));
    put_varint(w, (uint64_t)n * 4);
    for (size_t i = 0; i < n; i++)
        put_fixed32(w, v[i]);
}

void p2o_pb_large(PbWriter *w, uint32_t field, uint64_t n)
{
    put_varint(w, tag_of(field, WIRE_LENGTH));
    put_varint(w, n);
    if (!w->sink)
        w->nbytes += n;
}
