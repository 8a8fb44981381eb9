/* Functions of ONNX: operators of one's own, defined by other operators.
 *
 * They are read from ONNX's text syntax (function_text.c), written as FunctionProtos into the model
 * that calls them (onnx_write_function.c), and typed by the rules of their nodes
 * (function_type.c).  A function only calls functions that stand before it in its library, so none
 * calls itself. */
#ifndef P2O_ONNX_FUNCTION_H
#define P2O_ONNX_FUNCTION_H

#include "onnx/graph.h"

typedef struct FunctionAttr {           /* that calls give */
    const char *name;
    bool        has_kind;               /* its default or a reference says which */
    AttrKind    kind;
    bool        has_default;
    Attr        dflt;
} FunctionAttr;

typedef struct NodeAttr {
    Attr        value;                  /* name and kind only where it is a reference */
    const char *ref;                    /* the function's attribute that it has the value of */
} NodeAttr;

typedef struct FunctionNode {
    const char  *domain, *op, *name;    /* name: NULL for none */
    const struct OnnxFunction *calls;   /* one of the library's; NULL: none */
    const char **in, **out;             /* "": absent */
    int          nin, nout;
    NodeAttr    *attrs;
    int          nattr;
} FunctionNode;

typedef struct OpsetImport {
    const char *domain;
    int64_t     version;
} OpsetImport;

typedef struct OnnxFunction {
    const char   *domain, *name;
    const char  **in, **out;
    int           nin, nout;
    FunctionAttr *attrs;
    int           nattr;
    OpsetImport  *imports;
    int           nimport;
    int           opset;                /* of ai.onnx; 0: it imports none */
    FunctionNode *nodes;
    int           nnode;
} OnnxFunction;

typedef struct FunctionLibrary {
    Map index;                          /* "domain\nname" -> OnnxFunction *; its arena is set */
} FunctionLibrary;

/* Adds the functions of a text.  false after diagnostics with line and column; nothing is added
 * then. */
bool p2o_functions_parse(Diags *d, FunctionLibrary *l, Str text);
const OnnxFunction *p2o_functions_find(const FunctionLibrary *l, const char *domain,
                                       const char *name);       /* NULL: none */
const FunctionAttr *p2o_function_attr(const OnnxFunction *f, const char *name);
const char         *p2o_attr_kind_text(AttrKind k);             /* "ints" */

/* ONNX Runtime runs a function's nodes in the model's opset, whatever the function says.  NULL when
 * they mean the same there; else the function, this one or one that it calls, and its operator that
 * may not. */
const OnnxFunction *p2o_function_misfit(Arena *a, const OnnxFunction *f, int opset,
                                        const char **op);

/* Types of a call's results by the rules of the function's nodes, made in `scratch`, whose inputs
 * stand for the call's.  out[i] stays NULL where no rule says; false: a rule was not satisfied,
 * which the graph's hooks reported or not. */
bool p2o_function_type(Graph *scratch, const OnnxFunction *f, int nin, Value *const *in, int nattr,
                       const Attr *attrs, Value **out);

#endif
