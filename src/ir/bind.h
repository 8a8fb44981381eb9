/* What symbols turned out to be: bindings made while sizes are compared.
 *
 * Inference asks that two sizes be equal.  Where that is neither certain nor impossible, a symbol
 * is bound: `s14 = s57`.  Dims themselves never change; p2o_resolve gives a Dim with all bindings
 * applied.  Roles decide which of two symbols gives way, and what may become a plain number. */
#ifndef P2O_IR_BIND_H
#define P2O_IR_BIND_H

#include "ir/dim.h"

typedef enum SymRole {          /* a symbol of a lower role gives way to one of a higher */
    ROLE_SOFT,                  /* a literal that may turn out to follow another size */
    ROLE_DATA,                  /* a data-dependent size, known at run time only */
    ROLE_FILE,                  /* a symbol of the capture */
    ROLE_USER                   /* named by the user */
} SymRole;

typedef struct Bindings Bindings;

Bindings *p2o_bindings_new(Dims *t);
void      p2o_set_role(Bindings *b, Dim sym, SymRole r);        /* ROLE_FILE unless said */
SymRole   p2o_role(const Bindings *b, Dim sym);
void      p2o_bind(Bindings *b, Dim sym, Dim to);               /* sym does not occur in `to` */
Dim       p2o_resolve(Bindings *b, Dim d);
size_t    p2o_bindings_count(const Bindings *b);

typedef enum UnifyResult {
    UNIFY_SAME,         /* they were equal already */
    UNIFY_BOUND,        /* a symbol was bound: *sym to *to */
    UNIFY_ASSUMED,      /* may be equal, but no symbol can be solved for: taken on trust */
    UNIFY_FIXED,        /* *sym would have to be a number (*to, or NULL), which its role forbids */
    UNIFY_DIFFERENT     /* cannot be equal */
} UnifyResult;

UnifyResult p2o_unify(Bindings *b, Dim x, Dim y, Dim *sym, Dim *to);

#endif
