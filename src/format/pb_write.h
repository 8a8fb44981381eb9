/* Protocol buffer wire format, written in two passes over the same code.
 *
 * A message's length stands before its bytes, so the first pass (no sink) only measures: it notes
 * the length of every message in order of beginning.  The second pass, started by p2o_pb_replay,
 * must make the same calls; it writes, taking each length from the notes. */
#ifndef P2O_FORMAT_PB_WRITE_H
#define P2O_FORMAT_PB_WRITE_H

#include "base/io.h"
#include "base/vec.h"

typedef struct PbWriter {
    Arena        *arena;
    Sink         *sink;                 /* NULL: measuring */
    uint64_t      nbytes;               /* measured so far */
    VEC(uint64_t) sizes;                /* of messages, in order of beginning */
    size_t        next;
    bool          is_short;             /* the caller could not write all of a large field */
} PbWriter;

typedef struct PbMark {
    size_t   index;
    uint64_t start;
    uint32_t field;
} PbMark;

void p2o_pb_replay(PbWriter *w, Sink *s);

PbMark p2o_pb_begin(PbWriter *w, uint32_t field);
void   p2o_pb_end(PbWriter *w, PbMark m);

void p2o_pb_int(PbWriter *w, uint32_t field, int64_t v);
void p2o_pb_float(PbWriter *w, uint32_t field, float v);
void p2o_pb_bytes(PbWriter *w, uint32_t field, const void *p, size_t n);
void p2o_pb_text(PbWriter *w, uint32_t field, const char *z);
void p2o_pb_packed_ints(PbWriter *w, uint32_t field, const int64_t *v, size_t n);
void p2o_pb_packed_floats(PbWriter *w, uint32_t field, const float *v, size_t n);
/* The head of a field of n bytes, which the caller writes to the sink itself in the second pass. */
void p2o_pb_large(PbWriter *w, uint32_t field, uint64_t n);

#endif
