/* Several captures of one model at different sizes -> one program.
 *
 * Lined up call by call.  Input axes that differ become symbols, literals that differ become open
 * sizes with one hint per capture; inference and p2o_settle find what they follow. */
#ifndef P2O_DYN_ALIGN_H
#define P2O_DYN_ALIGN_H

#include "aten/ops.h"
#include "ir/bind.h"

/* Programs are bound and in functional form, and share a Dims table; p[0] takes in the others.  Bindings are
 * for n captures.  false after a diagnostic: the first place where they part ways. */
bool p2o_align(Ops *o, Program *const *p, int n, Bindings *b);

/* The axes of p[0]'s inputs that differ between captures get symbols: "x_0" for axis 0 of x, unless
 * declared already. */
bool p2o_align_inputs(Program *const *p, int n, Bindings *b);

#endif
