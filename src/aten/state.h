/* State: what a program changes besides what it returns.
 *
 * Buffers that a program writes into become inputs, whose value in the file is the default, and
 * their new values outputs; so do inputs that it writes into.  After the functional form, which
 * says what is changed, and before types are inferred: such a buffer is no constant. */
#ifndef P2O_ATEN_STATE_H
#define P2O_ATEN_STATE_H

#include "ir/program.h"

bool p2o_keep_state(Program *p);        /* false after diagnostics */

#endif
