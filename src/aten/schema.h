/* ATen schema strings: `add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor`.
 *
 * The string is code: it names arguments, supplies defaults, says which are written through, and
 * gives calls their shape.  The namespace is aten unless written (`_operator::mul(...)`). */
#ifndef P2O_ATEN_SCHEMA_H
#define P2O_ATEN_SCHEMA_H

#include "ir/program.h"

typedef enum SchemaBase {
    SB_TENSOR, SB_INT, SB_SYMINT, SB_FLOAT, SB_BOOL, SB_SCALAR, SB_STR, SB_DTYPE, SB_LAYOUT,
    SB_MEMORY_FORMAT, SB_DEVICE, SB_GENERATOR, SB_BODY, SB_ANY
} SchemaBase;

typedef struct SchemaArg {
    const char *name;
    SchemaBase  base;
    bool        optional;               /* T? */
    bool        list;                   /* T[] */
    bool        optional_items;         /* T?[] */
    int         list_size;              /* of T[2]; 0: any */
    bool        kwarg_only;
    bool        result;                 /* no argument of the file: sizes of a result */
    bool        has_default;
    Arg         dflt;
    char        alias;                  /* 'a' of Tensor(a) or Tensor(a!); 0: none */
    bool        writes;                 /* the ! */
} SchemaArg;

typedef struct Schema {
    const char *key;                    /* "aten::add.Tensor" */
    SchemaArg  *args;
    int         nargs;
    SchemaArg  *rets;
    int         nrets;
} Schema;

/* NULL with *error when the string does not parse. */
Schema *p2o_schema_parse(Arena *a, Dims *t, const char *text, const char **error);

/* The key alone, without parsing the rest: "aten::add.Tensor". */
const char *p2o_schema_key(Arena *a, const char *text);

int p2o_schema_find(const Schema *s, const char *name);         /* index, or -1 */

/* Puts a call's arguments into schema order, with defaults and conversions (an int where a float or
 * a list is wanted).  false after a diagnostic. */
bool p2o_schema_bind(Program *p, Call *c, const Schema *s);

#endif
