/* What symbols turned out to be: bindings made while sizes are compared.
 *
 * Inference asks that two sizes be equal.  Where that is neither certain nor impossible, a symbol
 * is bound: `s14 = s57`.  Dims themselves never change; p2o_resolve gives a Dim with all bindings
 * applied.  Roles decide which of two symbols gives way, and what may become a plain number.
 *
 * A symbol's hints are its values in the captures, one for each; sizes whose hints differ are
 * never equal, whatever else is known. */
#ifndef P2O_IR_BIND_H
#define P2O_IR_BIND_H

#include "base/diag.h"
#include "ir/dim.h"

typedef enum SymRole {          /* a symbol of a lower role gives way to one of a higher */
    ROLE_SOFT,                  /* a literal that may turn out to follow another size */
    ROLE_DATA,                  /* a data-dependent size, known at run time only */
    ROLE_FILE,                  /* a symbol of the capture */
    ROLE_USER                   /* named by the user */
} SymRole;

typedef struct Bindings Bindings;

enum { MAX_CAPTURES = 24 };

Bindings *p2o_bindings_new(Dims *t, int ncapture);
Dims     *p2o_bindings_dims(const Bindings *b);
int       p2o_ncapture(const Bindings *b);
/* Captures from the n-th on are held out: expressions are only held against them. */
void      p2o_set_nfit(Bindings *b, int n);
int       p2o_nfit(const Bindings *b);                          /* all, unless said */
void      p2o_set_role(Bindings *b, Dim sym, SymRole r);        /* ROLE_FILE unless said */
SymRole   p2o_role(const Bindings *b, Dim sym);
void      p2o_bind(Bindings *b, Dim sym, Dim to);               /* sym does not occur in `to` */
bool      p2o_is_bound(const Bindings *b, Dim sym);
Dim       p2o_resolve(Bindings *b, Dim d);
size_t    p2o_bindings_count(const Bindings *b);

/* Capture 0 shares its hints with the Dims table. */
void p2o_set_hint_at(Bindings *b, Dim sym, int capture, int64_t v);
bool p2o_hint_at(Bindings *b, Dim d, int capture, int64_t *v);
bool p2o_hint_in_all(Bindings *b, Dim d, int64_t *v);   /* it was the same in every capture */
/* A new soft symbol that was hints[k] in capture k; `of` names the call that it stands in. */
Dim  p2o_soft(Bindings *b, const int64_t *hints, const char *of, Loc loc);
/* A soft symbol that stands for a -1. */
void p2o_set_hole(Bindings *b, Dim sym);
bool p2o_is_hole(const Bindings *b, Dim sym);
bool p2o_has_soft(const Bindings *b, Dim d);            /* one that is not bound occurs in it */
/* Every soft symbol not bound so far, in the order they were made. */
typedef void SoftFn(void *user, Dim sym);
void p2o_each_soft(Bindings *b, SoftFn *fn, void *user);

/* How a size became what it is: by whom (an operator, a search) and where. */
typedef enum BindWhy {
    BIND_RULE,                  /* an operator leaves no choice */
    BIND_AS_NUMBER,             /* an operator takes a number there: nothing says that it is one */
    BIND_EVIDENCE               /* the captures say so */
} BindWhy;
typedef struct BindEvent {
    BindWhy     why;
    Dim         sym, to;
    const char *by;
    Loc         loc;
} BindEvent;
void             p2o_bind_log(Bindings *b, BindWhy why, Dim sym, Dim to, const char *by, Loc loc);
/* Of a bound symbol: why. */
BindWhy          p2o_bind_why(const Bindings *b, Dim sym);
size_t           p2o_bind_nevent(const Bindings *b);
const BindEvent *p2o_bind_event(const Bindings *b, size_t i);
/* Where a soft symbol stands: the call, and its place; NULL for other symbols. */
const char      *p2o_soft_of(const Bindings *b, Dim sym, Loc *loc);

/* A call that does not say which of its open sizes follows `what`; forgotten before each look at
 * the program. */
typedef struct Unsettled {
    Dim         what;
    const char *target;
    Loc         loc;
} Unsettled;
void             p2o_note_unsettled(Bindings *b, Dim what, const char *target, Loc loc);
void             p2o_forget_unsettled(Bindings *b);
size_t           p2o_nunsettled(const Bindings *b);
const Unsettled *p2o_unsettled_at(const Bindings *b, size_t i);

/* What an operator asks to be equal while some of it is open: it may say what that is.  Once. */
typedef struct Demand {
    Dim         a, b;
    const char *by;
    Loc         loc;
} Demand;
void          p2o_demand(Bindings *b, Demand d);
size_t        p2o_ndemand(const Bindings *b);
const Demand *p2o_demand_at(const Bindings *b, size_t i);

/* What must hold for the model to work at given sizes: an operator's demand, the capture's range
 * or guard. */
typedef enum NeedKind { NEED_LE, NEED_EQ, NEED_GUARD } NeedKind;
typedef enum NeedOrigin {
    NEED_OF_OPERATOR,
    NEED_OF_RANGE,              /* of the capture */
    NEED_OF_GUARD,
    NEED_UNSEEN,                /* the capture never saw other sizes; the file runs there */
    NEED_SEEN                   /* another capture did: a least size that may be claimed */
} NeedOrigin;
typedef struct Need {
    NeedKind    kind;
    Dim         a, b;           /* a <= b, or a = b; NULL of a GUARD */
    const char *by;
    Loc         loc;
    NeedOrigin  origin;
    struct Guard *guard;        /* that it comes from, or NULL */
} Need;
void        p2o_need(Bindings *b, Need n);              /* once */
size_t      p2o_nneed(const Bindings *b);
const Need *p2o_need_at(const Bindings *b, size_t i);

/* x = y wherever each of their mins and maxes is what it was in all captures: a[i] <= b[i]. */
enum { MAX_CHOICES = 16 };
typedef struct Choices {
    int n;
    Dim a[MAX_CHOICES], b[MAX_CHOICES];
} Choices;
/* false: not even there, or at few sizes only: neither up to large ones nor down to 1. */
bool p2o_same_by_choice(Bindings *b, Dim x, Dim y, Choices *c);

typedef enum UnifyResult {
    UNIFY_SAME,         /* they were equal already */
    UNIFY_BOUND,        /* a symbol was bound: *sym to *to */
    UNIFY_ASSUMED,      /* may be equal, but no symbol can be solved for: taken on trust */
    UNIFY_FIXED,        /* *sym would have to be a number (*to, or NULL), which its role forbids */
    UNIFY_DIFFERENT     /* cannot be equal */
} UnifyResult;

UnifyResult p2o_unify(Bindings *b, Dim x, Dim y, Dim *sym, Dim *to);

#endif
