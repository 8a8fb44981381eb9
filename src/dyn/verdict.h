/* The decision: is it a number, or what became of a size, and which?
 *
 * The cheapest reading is taken if every other that differs elsewhere costs MARGIN bits more, and
 * if the captures pay for it: an expression must be shorter than what it explains.  Otherwise the
 * number is open, and the conversion is refused with both readings and the sizes at which they
 * differ. */
#ifndef P2O_DYN_VERDICT_H
#define P2O_DYN_VERDICT_H

#include "aten/ops.h"
#include "dyn/reading.h"
#include "dyn/spell.h"

typedef struct Evidence {               /* where a number stands, and what it was */
    const double *at;                   /* in each capture */
    int           nfit, ncapture;
    NumberRole    role;
    Spelled       spelled;
    double        moved;                /* bits by which the sizes moved between the captures */
    bool          usual;                /* the schema's default */
    const Place  *line;                 /* that made the call; NULL: not known */
    Dim           own;                  /* the size of the axis it stands at; NULL: not known */
    const double *axis;                 /* of a place: its axis's size at the probes; NULL: not
                                         * known */
    const bool   *allowed;              /* the probes at which readings have to agree; NULL: all */
    bool          fixed;                /* a size of the call's own tensors that never changes is
                                         * the same */
    double        known;                /* bits of what else gives the number: such a size
                                         * elsewhere, its root; 0: nothing */
    bool          idle;                 /* its operator does nothing with it: x * 1 */
    bool          given;                /* a size of what a foreign operator gives, to which sizes
                                         * went that vary */
    bool          setting;              /* the line belongs to a module of torch.nn: its own
                                         * options */
} Evidence;

typedef enum VerdictKind { VERDICT_OPEN, VERDICT_NUMBER, VERDICT_SIZE } VerdictKind;

typedef struct Verdict {
    VerdictKind    kind;
    const Reading *best;                /* of SIZE; of OPEN: the cheapest that is no number, or
                                         * NULL */
    const Reading *rival;               /* the next; NULL: none */
    double         best_bits, rival_bits;
    double         number_bits;         /* what it costs as a number; INFINITY: it is none */
    double         branch_bits;         /* of a Python branch on a size; INFINITY: none fits */
    double         held;                /* bits in its values */
    double         margin;              /* bits to the next best */
} Verdict;

Verdict p2o_weigh(const Evidence *e, const Readings *r);
/* No rival can have been crowded out by readings that are the same where it is weighed. */
bool    p2o_readings_suffice(const Verdict *v, const Readings *r);

/* Both readings, for a message: "seq - 4 or 3*seq//4". */
const char *p2o_verdict_text(Arena *a, const Evidence *e, const Verdict *v);
/* Why it was taken, for the report: the bits, and the next best reading. */
const char *p2o_verdict_because(Arena *a, const Verdict *v);
/* The sizes that tell the readings apart, as JSON and as "batch=2, seq=97"; NULL: none were
 * found. */
typedef struct Telling {
    const char *json, *text;
} Telling;
/* Those of capture k. */
Telling p2o_telling_capture(Arena *a, Bindings *bind, const Dim *symbols, size_t n, int k);
Telling p2o_telling(Arena *a, Bindings *bind, const Dim *symbols, size_t n, const Readings *r);

#endif
