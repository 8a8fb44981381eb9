/* What a number may be: the cheapest expressions that gave it in every capture, also in those that
 * were held out.
 *
 * Those that agree with one another at all probes too count as one.  A plain number is a reading
 * like any other; what it costs depends on where it stands, which the caller knows
 * (dyn/verdict). */
#ifndef P2O_DYN_READING_H
#define P2O_DYN_READING_H

#include "dyn/grammar.h"

enum { NREADING = 24 };

typedef struct Reading {
    const Expr  *expr;
    const Bases *of;
    double       bits;
    double       held;          /* bits of the captures that count for it; INFINITY: all that
                                 * they hold */
    double       at[NPROBE];
} Reading;

typedef struct Readings {
    double  want[MAX_CAPTURES];
    bool    whole;
    double  slack;              /* of floats that were rounded, as a share; 0: as little as
                                 * computing them may cost */
    double  refuted;            /* bits of the cheapest that a capture which was held out
                                 * contradicts; 0: none */
    int     n;
    Reading list[NREADING];     /* the cheapest first */
} Readings;

/* Fills in the readings of all of `list`, over these bases; earlier ones stay. */
void p2o_readings(Arena *a, const Bases *b, Readings *const *list, size_t n);
/* The same, of expressions that a call's own sizes, the first `nown` bases, take part in. */
void p2o_readings_own(Arena *a, const Bases *b, int nown, Readings *r);
/* The same readings, valued at other probes. */
Readings *p2o_readings_at(Arena *a, const Readings *r, const Probes *p);
/* The one base as it is, for so many bits. */
void p2o_readings_plain(Arena *a, const Bases *b, double bits, Readings *r);

#endif
