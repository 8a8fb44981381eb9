/* Literals of a fixed capture that may have been sizes: each becomes a soft symbol that was the literal.
 *
 * A number that the call's line of source has in the same place was written by a person, and stays. */
#ifndef P2O_DYN_SOFTEN_H
#define P2O_DYN_SOFTEN_H

#include "ir/bind.h"
#include "ir/program.h"

/* `computed`: only what its line shows to be computed, as a literal that is the same in captures of which every size
 * differs mostly is a number. */
void p2o_soften(Program *p, Bindings *b, bool computed);
/* After types were inferred: a -1 beside soft sizes is open too, as what comes after may say what it is. */
void p2o_soften_holes(Bindings *b, const Body *body);

/* The call's line shows it, and does not have the number: it was computed, perhaps from a size.  Those of a reshape are
 * told by the number of elements. */
bool p2o_is_computed(const Program *p, const Call *c, int64_t literal);
bool p2o_is_pad(const Call *c);
bool p2o_is_reshape(const Call *c);

#endif
