/* Operators that have no row and that the user gives a meaning: a node of the user's domain, a
 * function of ONNX, or a callback that makes the nodes.
 *
 * A row is made for each form of call (which arguments there are, and of what kind).  What the file
 * recorded of a result is all that is known of its sizes: they are arguments of the call, behind
 * those of the file, so whatever decides what the numbers of a program are decides these too.  A
 * function proves them: its nodes have rules. */
#ifndef P2O_ATEN_CUSTOM_H
#define P2O_ATEN_CUSTOM_H

#include "aten/ops.h"
#include "onnx/function.h"

/* Makes the nodes of one call; false after a diagnostic.  out[i] is the value of result i. */
typedef bool CustomLowerFn(void *user, Lower *lo, const Call *c, Value **out);

typedef struct CustomOp {
    const char    *target;              /* "mylib::foo.bar" */
    OnnxOperator   onnx;
    CustomLowerFn *lower;               /* instead of onnx; or NULL */
    void          *user;
} CustomOp;

/* The user's, kept by the handle. */
typedef struct CustomOps {
    Map             ops;                /* target -> CustomOp *; its arena is set */
    Map             versions;           /* domain -> version */
    FunctionLibrary library;
} CustomOps;

CustomOps *p2o_custom_new(Arena *a);
/* "mylib::foo=com.example:Foo" or "...:Foo@2".  NULL, or what is wrong. */
const char *p2o_custom_map(CustomOps *x, const Ops *o, const char *spec);
/* The same for a callback. */
const char *p2o_custom_call(CustomOps *x, const Ops *o, const char *name, CustomLowerFn *lower,
                            void *user);

/* The call in the form that its row takes; NULL when the user gave the operator no meaning, or,
 * with *refused, after a diagnostic. */
Call *p2o_custom_bind(Ops *o, Program *p, const Call *given, const AtenOp **op, bool *refused);

/* Something is mapped to what no function of the library defines. */
bool p2o_custom_is_foreign(const CustomOps *x);
/* The library's function of that name; NULL: none.  c is a call of a custom operator. */
const OnnxFunction *p2o_custom_function(const Call *c, const char *domain, const char *name);
/* Its nodes mean the same in the model's opset; false after a diagnostic. */
bool p2o_custom_fits(Lower *lo, const Call *c, const OnnxFunction *f);
/* How many of a call's arguments the file has. */
int p2o_custom_nargs(const Call *c);

#endif
