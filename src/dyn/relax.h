/* Types of a program whose sizes may have been fixed at capture.
 *
 * The capture wrote `zeros([1, 3, 20])` where the model said `zeros(1, batch, 20)`.  Each literal in a
 * size position (what a schema calls SymInt) becomes a soft symbol with that hint; inference binds
 * those that the types force.  Of what nothing binds, literals that are the same in every capture stay
 * numbers; for those that differ the one expression of the sizes at hand that gives each capture's value is
 * taken.  It is type inference, not guessing: what several expressions explain is refused, and so is a
 * literal that may be a number as well as a size, by what it was and by what its line of source shows. */
#ifndef P2O_DYN_RELAX_H
#define P2O_DYN_RELAX_H

#include "ir/bind.h"
#include "ir/program.h"

/* Calls are bound, inputs have their types.  false after diagnostics: sizes that cannot be dynamic, or not as
 * declared. */
bool p2o_settle(Program *p, Bindings *b);

#endif
