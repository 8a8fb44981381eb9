/* Protobuf wire format, the reading half: a cursor over a range of a Source.
 *
 * A message is a run of fields, each a tag and a value; a length-delimited value is left where it
 * is and given as a range, so weights are stepped over and never read.  Failure is sticky: after
 * the first malformed field the cursor yields nothing more, and the caller asks once, at the end.
 * Groups, dead since proto2, are malformed. */
#ifndef P2O_FORMAT_PB_H
#define P2O_FORMAT_PB_H

#include "base/io.h"

typedef enum PbWire { PB_VARINT = 0, PB_FIXED64 = 1, PB_BYTES = 2, PB_FIXED32 = 5 } PbWire;

typedef struct PbReader {
    Source  *source;
    uint64_t at, end;                   /* in the source */
    bool     failed;
} PbReader;

typedef struct PbField {
    uint32_t number;
    PbWire   wire;
    uint64_t value;                     /* of all but PB_BYTES */
    uint64_t at, nbytes;                /* of PB_BYTES: the range in the source */
} PbField;

static inline PbReader pb_reader(Source *s, uint64_t at, uint64_t nbytes)
{
    return (PbReader){ .source = s, .at = at, .end = at + nbytes };
}

/* The field's bytes as a message, or as packed values.  A failed reader when it has none. */
static inline PbReader pb_inside(const PbReader *r, const PbField *f)
{
    PbReader in = pb_reader(r->source, f->at, f->nbytes);
    in.failed = r->failed || f->wire != PB_BYTES;
    return in;
}

static inline bool pb_more(const PbReader *r) { return !r->failed && r->at < r->end; }

static inline void pb_take(PbReader *r, void *buf, size_t n)
{
    if (r->failed || n > r->end - r->at || !p2o_source_read(r->source, r->at, buf, n)) {
        r->failed = true;
        memset(buf, 0, n);
        return;
    }
    r->at += n;
}

/* At most ten bytes of seven bits, low first; 0 after a failure. */
static inline uint64_t pb_varint(PbReader *r)
{
    uint8_t  buf[10] = { 0 };
    uint64_t left = r->failed ? 0 : r->end - r->at, v = 0;
    size_t   n = left < sizeof buf ? (size_t)left : sizeof buf;

    if (n == 0 || !p2o_source_read(r->source, r->at, buf, n)) {
        r->failed = true;
        return 0;
    }
    for (size_t i = 0; i < n; i++) {
        if (i == 9 && buf[i] > 1)
            break;
        v |= (uint64_t)(buf[i] & 0x7F) << (7 * i);
        if (buf[i] < 0x80) {
            r->at += i + 1;
            return v;
        }
    }
    r->failed = true;
    return 0;
}

static inline uint64_t pb_fixed(PbReader *r, size_t n)
{
    uint8_t  buf[8];
    uint64_t v = 0;
    pb_take(r, buf, n);
    for (size_t i = 0; i < n; i++)
        v |= (uint64_t)buf[i] << (8 * i);
    return v;
}

/* The next field; false at the end and after a failure. */
static inline bool pb_next(PbReader *r, PbField *f)
{
    if (!pb_more(r))
        return false;
    uint64_t tag = pb_varint(r);
    *f = (PbField){ .number = (uint32_t)(tag >> 3), .wire = (PbWire)(tag & 7) };
    if (tag >> 32 || f->number == 0)
        r->failed = true;
    switch ((int)f->wire) {
    case PB_VARINT:
        f->value = pb_varint(r);
        break;
    case PB_FIXED64:
        f->value = pb_fixed(r, 8);
        break;
    case PB_FIXED32:
        f->value = pb_fixed(r, 4);
        break;
    case PB_BYTES:
        f->nbytes = pb_varint(r);
        f->at = r->at;
        if (r->failed || f->nbytes > r->end - r->at)
            r->failed = true;
        else
            r->at += f->nbytes;
        break;
    default:
        r->failed = true;
    }
    return !r->failed;
}

#endif
