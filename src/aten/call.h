/* Reading a bound call's arguments by name: shared by rules and lowerings.
 *
 * Names are those of the schema; a name it does not have is a bug (assert).  Arguments that the
 * schema calls `int` are constants by the time a rule runs; `SymInt` ones are Dims. */
#ifndef P2O_ATEN_CALL_H
#define P2O_ATEN_CALL_H

#include "aten/schema.h"

const Arg *p2o_call_arg(const Call *c, const char *name);

/* TENSOR for tensors; INT, FLOAT, BOOL for numbers, symbolic or not, even in a tensor slot. */
Type p2o_arg_type(const Arg *x);
Dim  p2o_arg_dim(const Arg *x);                         /* of an int; NULL for None */

/* The schema has an argument of this name: rows of one family differ. */
static inline bool names_arg(const Call *c, const char *name)
{
    return p2o_schema_find(c->schema, name) >= 0;
}

static inline bool has_arg(const Call *c, const char *name)
{
    return p2o_call_arg(c, name)->kind != ARG_NONE;
}

static inline Type type_arg(const Call *c, const char *name)
{
    return p2o_arg_type(p2o_call_arg(c, name));
}

static inline Shape shape_arg(const Call *c, const char *name) { return type_arg(c, name).shape; }

static inline Dim dim_arg(const Call *c, const char *name)
{
    return p2o_arg_dim(p2o_call_arg(c, name));
}

int64_t     int_arg(const Call *c, const char *name);
/* Checked by the rule; 0 of a scalar. */
int         axis_arg(const Call *c, const char *name, int rank);
double      float_arg(const Call *c, const char *name);
bool        bool_arg(const Call *c, const char *name);
const char *str_arg(const Call *c, const char *name);   /* NULL for None */
DType       dtype_arg(const Call *c, const char *name, DType otherwise);

int     list_len(const Call *c, const char *name);      /* 0 for None */
Dim     dim_item(const Call *c, const char *name, int i);
int64_t int_item(const Call *c, const char *name, int i);
Type    type_item(const Call *c, const char *name, int i);
bool    has_item(const Call *c, const char *name, int i);       /* not None */

/* A number argument (Scalar, float, int): its value when constant. */
bool p2o_number_is_const(const Arg *x, double *f);

#endif
