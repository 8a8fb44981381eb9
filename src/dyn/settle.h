/* Sizes by rule, then by evidence: the types of a program whose sizes may have been fixed at
 * capture.
 *
 * Type inference binds the open sites that operators leave no choice about.  The others are weighed
 * (dyn/verdict) once it is known what their calls work on, and what they turn out to be makes
 * others known.  In the end every number has its verdict, or the conversion is refused with the
 * capture that would tell. */
#ifndef P2O_DYN_SETTLE_H
#define P2O_DYN_SETTLE_H

#include "dyn/lineup.h"

/* Calls are bound and lined up, inputs have their types.  false after diagnostics: sizes that
 * cannot be dynamic, or not as declared. */
bool p2o_settle(const Lineup *l, Bindings *b);

#endif
