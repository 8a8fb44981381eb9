/* Literals of a fixed capture become open sizes, and are settled.
 *
 * The capture wrote `zeros([1, 3, 20])` where the model said `zeros(1, batch, 20)`.  Each literal in a
 * size position (what a schema calls SymInt) becomes a soft symbol with that hint; inference binds
 * those that the types force.  What nothing binds keeps its literal.  It is type inference, not guessing. */
#ifndef P2O_DYN_RELAX_H
#define P2O_DYN_RELAX_H

#include "ir/bind.h"
#include "ir/program.h"

/* Are there sizes to relax for: symbols on axes that the capture fixed, or several captures? */
bool p2o_relax_needed(const Program *p, const Bindings *b);

/* Calls are bound.  Run p2o_infer afterwards, then p2o_settle, then p2o_infer again. */
void p2o_relax(Program *p, Bindings *b);

/* Literals that nothing bound: the same in every capture, they stay (with a warning where one equals the
 * captured size of a dynamic axis); else the simplest expression of the inputs' sizes that gives
 * each capture's value is taken.  false after diagnostics. */
bool p2o_settle(Program *p, Bindings *b);

#endif
