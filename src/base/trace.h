/* Stack traces as Python prints them: the place in the user's source that a call came from.
 *
 * PyTorch writes them into saved programs and, with its newer exporter, into ONNX files. */
#ifndef P2O_BASE_TRACE_H
#define P2O_BASE_TRACE_H

#include "base/diag.h"

/* Some text, without control characters: it may stand in a message. */
bool p2o_is_one_line(Str s);

/* The innermost frame of the user's own code, else the innermost; empty: there is none. */
PlaceInfo p2o_trace_place(Str trace);

#endif
