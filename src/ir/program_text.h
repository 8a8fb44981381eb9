/* The text form of a Program: what tests are written in and dumps show.
 *
 *     # a comment
 *     x: f32[b, 4, 8]                  an input
 *     w: f32[16, 8] weight             a weight, zeros
 *     k: i64[2] = [1, 2]               a constant
 *     n: int                           an input that is a number; its symbol is its name
 *     y = linear(x, w, None)           a call; overload and keyword names where they matter
 *     a, b = split.Tensor(y, [s, 2*s], dim=1)
 *     c = div.Tensor(a, 4)             # source: c = a / n      the line that made it
 *     d = mylib::foo(c)                # recorded: f32[b, 4]    what the file says of the results
 *     z = higher_order::wrap({f}, y)   a call with a body, which follows: it sees only its inputs
 *         f(t):
 *             u = relu(t)
 *             return u
 *     return y, a                      outputs, named like their values
 *
 * Names that are no value are symbols: sizes are expressions of them, as p2o_dim_text prints.  A
 * hint is given by `b = 3` before the first call, where b is a symbol. */
#ifndef P2O_IR_PROGRAM_TEXT_H
#define P2O_IR_PROGRAM_TEXT_H

#include "ir/program.h"

/* NULL after a diagnostic.  Calls are unbound, as from any other front end. */
Program *p2o_program_parse(Diags *d, Dims *t, Str text);

/* With types: results carry them as comments, as far as they are known. */
const char *p2o_program_text(const Program *p, bool with_types);

#endif
