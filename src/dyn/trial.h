/* What the guards of a capture demand of the sizes that are dynamic.
 *
 * A guard is tried at a spread of sizes.  Where it holds everywhere it needs nothing; where it
 * holds around the captured size it is a range; where it holds ever again (every 4th size, or all
 * but one) it is a condition.  A guard that is not understood, and one that holds at few sizes
 * since Python went on with a number that it had computed from a size, is an error: elsewhere the
 * file is wrong. */
#ifndef P2O_DYN_TRIAL_H
#define P2O_DYN_TRIAL_H

#include "dyn/guard.h"

/* PyTorch's dynamic sizes are never less at capture: guards that say so are its own. */
enum { LEAST_CAPTURED = 2 };

/* a <= b, of a guard that compares by order. */
bool        p2o_guard_order(const Program *p, const Guard *g, Dim *a, Dim *b);
/* It can be said of the sizes of the capture, and is not what PyTorch says of every size. */
bool        p2o_guard_need(const Program *p, const Guard *g, Need *n);
const char *p2o_guard_by(const Program *p, const Guard *g);     /* for Need.by */
const Dim  *p2o_guard_sizes(const Program *p, Bindings *b, const Guard *g);     /* as bound now */

/* Adds their needs.  false after diagnostics. */
bool p2o_judge_guards(Program *p, Bindings *b);

/* false, after the diagnostic: the size can't be dynamic, it works from lo to hi only. */
bool p2o_refuse_sizes(const Program *p, Bindings *b, Dim sym, int64_t lo, int64_t hi,
                      const char *why);

#endif
