/* Diagnostics and source places.
 *
 * Whoever detects an error reports it once, here; everyone above only passes failure on.  A
 * diagnostic has up to three parts: what (one line), where (a Loc), and what to do.  Its kind
 * decides severity and status; kinds are stable, words are not. */
#ifndef P2O_BASE_DIAG_H
#define P2O_BASE_DIAG_H

#include <stdint.h>

#include "base/str.h"

typedef enum Status {
    ST_OK,
    ST_MISUSE,          /* the caller's arguments */
    ST_INPUT,           /* a bad input file */
    ST_UNSUPPORTED,     /* an operator, dtype, option or file kind that is not done */
    ST_DYNAMIC,         /* an axis that cannot be dynamic as asked */
    ST_VERIFY,          /* numbers or shapes differ */
    ST_IO,
    ST_NOMEM,
    ST_CANCELLED,
} Status;

typedef enum Severity { SEV_NOTE, SEV_WARNING, SEV_ERROR } Severity;

/*            kind             name in brackets     status           severity */
#define DIAG_KINDS(X)                                                             \
    X(DIAG_BAD_FILE,      "bad-file",          ST_INPUT,       SEV_ERROR)         \
    X(DIAG_BAD_PROGRAM,   "bad-program",       ST_INPUT,       SEV_ERROR)         \
    X(DIAG_SHAPE,         "shape-mismatch",    ST_INPUT,       SEV_ERROR)         \
    X(DIAG_WRONG_KIND,    "wrong-kind",        ST_UNSUPPORTED, SEV_ERROR)         \
    X(DIAG_UNSUPPORTED,   "unsupported",       ST_UNSUPPORTED, SEV_ERROR)         \
    X(DIAG_NO_OPERATOR,   "no-operator",       ST_UNSUPPORTED, SEV_ERROR)         \
    X(DIAG_NOT_DYNAMIC,   "not-dynamic",       ST_DYNAMIC,     SEV_ERROR)         \
    X(DIAG_MISUSE,        "usage",             ST_MISUSE,      SEV_ERROR)         \
    X(DIAG_MISMATCH,      "mismatch",          ST_VERIFY,      SEV_ERROR)         \
    X(DIAG_IO,            "io",                ST_IO,          SEV_ERROR)         \
    X(DIAG_RUNTIME,       "runtime",           ST_IO,          SEV_ERROR)         \
    X(DIAG_INTERNAL,      "internal",          ST_UNSUPPORTED, SEV_ERROR)         \
    X(DIAG_WARN,          "warning",           ST_OK,          SEV_WARNING)       \
    X(DIAG_NOTE,          "note",              ST_OK,          SEV_NOTE)

typedef enum DiagKind {
#define X(id, name, status, severity) id,
    DIAG_KINDS(X)
#undef X
} DiagKind;

const char *p2o_diag_kind_name(DiagKind k);
Severity    p2o_diag_severity(DiagKind k);
Status      p2o_diag_status(DiagKind k);

/* A place in the user's source.  Paths are cut to their last component when added: messages and
 * output files never carry a directory of the machine that saved the model. */
typedef uint32_t Loc;                                   /* 0: unknown */

typedef struct Place {
    const char *file, *func, *module;       /* each may be NULL */
    const char *text;                       /* the source line itself; NULL: not known */
    uint32_t    line;
    bool        library;                    /* called inside a module of torch.nn */
} Place;

typedef struct PlaceInfo {                  /* a Place as it is read; empty: not known */
    Str      file, func, module, text;
    uint32_t line;
    bool     library;
} PlaceInfo;

typedef struct Diag {
    DiagKind    kind;
    const char *text;
    const char *advice;                     /* NULL: none */
    const char *file;                       /* the input it is about; NULL: none */
    Loc         loc;
    const char *capture;                    /* JSON: sizes at which one more would tell; or NULL */
} Diag;

typedef struct Diags Diags;
typedef void DiagFn(void *user, const Diag *d);

Diags *p2o_diags_new(Arena *a, DiagFn *fn, void *user);
Arena *p2o_diags_arena(const Diags *d);
/* Names the input that the diagnostics from here on are about; the one before, or NULL. */
const char *p2o_diags_file(Diags *d, const char *name);

void p2o_diag(Diags *d, DiagKind k, Loc loc, const char *fmt, ...) PRINTF_LIKE(4, 5);
void p2o_vdiag(Diags *d, DiagKind k, Loc loc, const char *fmt, va_list ap) PRINTF_LIKE(4, 0);
/* The same with a line of advice. */
void p2o_diag_advise(Diags *d, DiagKind k, Loc loc, const char *advice, const char *fmt, ...)
    PRINTF_LIKE(5, 6);

/* The same, and the sizes at which one more capture would tell. */
void p2o_diag_capture(Diags *d, DiagKind k, Loc loc, const char *capture, const char *advice,
                      const char *fmt, ...) PRINTF_LIKE(6, 7);

size_t      p2o_diags_count(const Diags *d);
const Diag *p2o_diags_at(const Diags *d, size_t i);
size_t      p2o_diags_errors(const Diags *d);
/* The status of the first error; ST_OK when there is none. */
Status      p2o_diags_status(const Diags *d);

Loc          p2o_place_add(Diags *d, PlaceInfo x);
const Place *p2o_place_at(const Diags *d, Loc loc);     /* NULL for 0 */

/* "file: error: text [kind]", then "  at func (file:line), module m: source" and any advice. */
const char *p2o_diag_text(const Diags *d, const Diag *x);

#endif
