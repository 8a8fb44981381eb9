/* Python pickles (protocols 2 to 5) -> an inert tree in an arena.  Nothing is executed.
 *
 * A global is a name, a call of one is a CALL node, an instance is an OBJECT node; who reads the
 * tree decides which names mean something.  Only containers that later opcodes fill are understood
 * here: OrderedDict is a DICT, set a SET, _codecs.encode BYTES.  Values may be shared, and a
 * hostile pickle can make a container hold itself: walk with a depth limit, or visit by identity.
 * Strings point into the bytes, which must outlive the tree. */
#ifndef P2O_FORMAT_PICKLE_H
#define P2O_FORMAT_PICKLE_H

#include "base/diag.h"

typedef enum PickleKind {
    PK_NONE, PK_BOOL, PK_INT, PK_BIG_INT, PK_FLOAT, PK_STR, PK_BYTES, PK_TUPLE, PK_LIST, PK_SET,
    PK_DICT, PK_GLOBAL, PK_CALL, PK_OBJECT, PK_PERSISTENT
} PickleKind;

typedef struct Pickle Pickle;

struct Pickle {
    PickleKind kind;
    size_t     n, cap;                  /* items of TUPLE, LIST, SET; keys and values of DICT */
    union {
        bool     b;
        int64_t  i;
        double   f;
        Str      s;                     /* STR: UTF-8; BYTES; BIG_INT: signed, low byte first */
        Pickle **items;                 /* DICT: key, value, key, value ... */
        struct {
            Str module, name;           /* GLOBAL: "torch._utils", "_rebuild_tensor_v2" */
        };
        struct {
            Pickle *callee;             /* CALL: any value; OBJECT: the class, a GLOBAL */
            Pickle *args;               /* a TUPLE, or an enum's bare value; PERSISTENT: the id */
        };
    };
    Pickle *state;                      /* what BUILD gave a CALL or OBJECT; NULL: nothing */
};

/* All of `bytes` is one pickle.  NULL after a diagnostic that names `what` and the position. */
Pickle *p2o_pickle_parse(Diags *d, Str bytes, const char *what);

/* Value of a string key; NULL when p is no DICT or has no such key.  The last one wins. */
Pickle *p2o_pickle_get(const Pickle *p, const char *key);
bool    p2o_pickle_is_global(const Pickle *p, const char *module, const char *name);
/* Item of a TUPLE or LIST; NULL when p is neither or is shorter. */
Pickle *p2o_pickle_item(const Pickle *p, size_t i);

#endif
