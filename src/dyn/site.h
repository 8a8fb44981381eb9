/* Sites: every number of a program that a size may have made, with what it was in each capture.
 *
 * A table beside the captures.  Sites that an operator takes as sizes are open in the lined-up
 * program: a symbol stands for them, which inference may bind by rule; the others stay as captured
 * until they are weighed. */
#ifndef P2O_DYN_SITE_H
#define P2O_DYN_SITE_H

#include "dyn/lineup.h"
#include "dyn/verdict.h"

typedef struct Site {
    Call            *call;      /* of the open program */
    Arg             *arg;       /* the number there */
    const SchemaArg *schema;
    NumberRole       role;
    Spelled          spelled;
    bool             whole;     /* an int */
    bool             negative;  /* `at` has its sign turned: a place counted from the end */
    bool             differs;   /* between captures */
    bool             counted;   /* its line has to have it: it is neither usual nor one more of a
                                 * list of the same */
    double           at[MAX_CAPTURES];
    Dim              open;      /* the symbol that stands for it; NULL: none does */
    bool             done;      /* weighed, and settled */
    bool             refused;   /* said to be open */
    Verdict          verdict;
} Site;

typedef struct Sites {
    Program  *prog;
    Bindings *bind;
    bool      all_vary;         /* every size of the inputs differs between captures */
    Map       uses;             /* line, operator, number -> how often calls of that line have it,
                                 * axes counted */
    VEC(Site *) list;           /* in the order of the program */
} Sites;

void p2o_sites_collect(Sites *s, const Lineup *l);
/* A number in a constant, the same in all captures: only weighed. */
void  p2o_site_note(Sites *s, Call *c, double v);
/* One number alone, made by other means: a size of a constant. */
Site *p2o_site_add(Sites *s, Call *c, Arg *x, NumberRole role, const int64_t *at);

/* The size of the axis that a site cuts, pads or counts along; NULL: none is known. */
Dim p2o_site_axis(const Sites *s, const Site *x);

/* What is known of a site's surroundings once types are inferred. */
Evidence p2o_site_evidence(const Sites *s, const Site *x);

#endif
