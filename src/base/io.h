/* Where bytes come from and go to; the only code that knows the operating system. */
#ifndef P2O_BASE_IO_H
#define P2O_BASE_IO_H

#include "base/diag.h"

/* Random access to bytes that do not change: a mapped file, memory, or the caller's function. */
typedef struct Source Source;
typedef bool ReadAtFn(void *user, uint64_t offset, void *buf, size_t n);

/* NULL after a diagnostic.  The file is unmapped by p2o_source_close. */
Source *p2o_source_open(Diags *d, const char *path);
Source *p2o_source_memory(Arena *a, const void *p, size_t n);
Source *p2o_source_callback(Diags *d, uint64_t size, ReadAtFn *fn, void *user);
void    p2o_source_close(Source *s);

uint64_t    p2o_source_size(const Source *s);
/* The path it was opened with; NULL for memory and callbacks. */
const char *p2o_source_path(const Source *s);
/* Bytes [offset, offset + n), valid as long as the source.  NULL: out of range or unreadable. */
const uint8_t *p2o_source_view(Source *s, uint64_t offset, size_t n);
/* Copies instead; for streaming.  false when out of range or unreadable. */
bool p2o_source_read(Source *s, uint64_t offset, void *buf, size_t n);

/* Sequential output.  After the first failure writes are ignored; commit tells. */
typedef struct Sink Sink;
typedef bool WriteFn(void *user, const void *p, size_t n);

/* Writes to a temporary file beside `path`, which takes its name at commit and never before. */
Sink *p2o_sink_file(Diags *d, const char *path);                /* NULL after a diagnostic */
Sink *p2o_sink_callback(Diags *d, WriteFn *fn, void *user);
void  p2o_sink_write(Sink *s, const void *p, size_t n);
void  p2o_sink_pad(Sink *s, uint64_t n);                        /* n zero bytes */
uint64_t p2o_sink_offset(const Sink *s);
bool  p2o_sink_failed(const Sink *s);
bool  p2o_sink_commit(Sink *s);                 /* false after a diagnostic */
void  p2o_sink_abort(Sink *s);                  /* no trace is left; after commit: nothing */

/* Reads a whole small file; NULL after a diagnostic. */
const char *p2o_read_text(Diags *d, const char *path, size_t *n);

#endif
