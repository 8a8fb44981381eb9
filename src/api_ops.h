/* What the user says of operators that are not supported, and the callbacks of p2o_register_op. */
#ifndef P2O_API_OPS_H
#define P2O_API_OPS_H

#include "aten/custom.h"
#include "pt2onnx.h"

typedef struct CustomWord {
    enum { CUSTOM_MAP, CUSTOM_LIBRARY, CUSTOM_TEXT, CUSTOM_CALL } kind;
    const char   *text;                 /* the mapping, a path, functions, or an operator's name */
    p2o_lower_fn *fn;
    void         *user;
} CustomWord;

/* Into what p2o_ops_custom gives.  *busy is set while a callback runs.  What is wrong is a
 * diagnostic. */
void p2o_take_custom(Diags *d, Ops *o, bool *busy, const CustomWord *w);

#endif
