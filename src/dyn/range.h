/* Which sizes work: what operators, the capture's ranges and its guards need, against what the user
 * asks for.
 *
 * PyTorch never captures 0 and 1 for a dynamic size, and guards that say so need nothing: the file
 * runs there, but that it is right there is not claimed (NEED_UNSEEN). */
#ifndef P2O_DYN_RANGE_H
#define P2O_DYN_RANGE_H

#include "ir/bind.h"
#include "ir/program.h"

/* The capture's ranges and guards become needs.  Input types are set.  false after diagnostics: a
 * number that the user asks for is not among what they allow. */
bool p2o_range_collect(Program *p, Bindings *b);

/* Types are inferred.  false after diagnostics: a size that the user asks for does not work, or a
 * guard does not let its size be dynamic. */
bool p2o_range_check(Program *p, Bindings *b);

/* Another capture showed that the model is right at `least`, which this one never saw: p2o_range_of
 * says so from then on, as far as nothing else needs more.  No note is made of such a size when
 * it is claimed before p2o_range_check. */
void p2o_range_claim(Program *p, Bindings *b, Dim sym, int64_t least);

/* From what to what the size is known to work; 0 and NO_UPPER where nothing is. */
void    p2o_range_of(const Program *p, Bindings *b, Dim sym, int64_t *lo, int64_t *hi);
/* The same without what was merely not seen, and the least that was; NO_LOWER: nothing says it. */
void    p2o_range_needed(const Program *p, Bindings *b, Dim sym, int64_t *lo, int64_t *hi);
int64_t p2o_range_seen(const Program *p, Bindings *b, Dim sym);

/* A need in the sizes' present names, "4 <= seq", as Python; NULL where it holds at every size, or
 * is said by p2o_range_of already. */
const char *p2o_range_need(const Program *p, Bindings *b, const Need *n);

#endif
