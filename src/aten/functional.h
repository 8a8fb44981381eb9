/* The functional form: every call bound to its row, and writes turned into values.
 *
 * An in-place or out= operator becomes its functional twin followed by a store; a write through a
 * view is scattered into what it is a view of, up to the base; every other view of that base is
 * taken anew when it is next used.  Driven by the schemas' alias marks: there are no rows for
 * in-place variants. */
#ifndef P2O_ATEN_FUNCTIONAL_H
#define P2O_ATEN_FUNCTIONAL_H

#include "aten/ops.h"

/* Rewrites p in place.  Inputs and buffers that end up changed become OutputSpecs of their kind.
 * All operators without a row are reported in one go.  false after diagnostics. */
bool p2o_functional(Ops *o, Program *p);

#endif
