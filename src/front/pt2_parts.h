/* What the files of the .pt2 reader share: the reader's state and its parts, in the order they run.
 *
 * Whoever finds something wrong reports it and gives back a harmless value, so that one run names
 * every fault; p2o_pt2_read asks once, at the end, whether anything was reported. */
#ifndef P2O_FRONT_PT2_PARTS_H
#define P2O_FRONT_PT2_PARTS_H

#include "format/json.h"
#include "format/zip.h"
#include "ir/program.h"

typedef struct Pt2 {
    Diags     *diags;
    Arena     *arena;
    const Zip *zip;                     /* NULL: the program is in memory */
    bool       big_endian;
    Program   *program;
    size_t     errors_before;           /* in diags, when reading began */
} Pt2;

/* One graph of the program, main or nested, while it is read. */
typedef struct Pt2Graph {
    const Json *json;
    Body       *body;
    Map         values;                 /* name -> what the file records of it */
    Loc         loc;                    /* of the call being read, */
    const char *target, *arg;           /* and its names, for messages; NULL between calls */
} Pt2Graph;

bool p2o_pt2_failed(const Pt2 *r);
/* Text of the file, made fit for a message: one line, not long. */
const char *p2o_pt2_show(Pt2 *r, Str s);
void p2o_pt2_bad(Pt2 *r, Loc loc, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* Member of an object; a null member counts as absent. */
const Json *p2o_pt2_get(const Json *j, const char *key);
size_t      p2o_pt2_count(const Json *list);            /* 0 when it is no list */
/* The one member of a union that is not null; NULL after a diagnostic. */
const Json *p2o_pt2_union(Pt2 *r, Loc loc, const Json *j, Str *key);
/* A string that may serve as a name: one line.  NULL after a diagnostic that calls it `what`. */
const char *p2o_pt2_name(Pt2 *r, Loc loc, const Json *j, const char *what);

/* Types and arguments (pt2_args). */
void   p2o_pt2_values(Pt2 *r, Pt2Graph *g);             /* fills g->values */
/* A new Var with its recorded type; NULL after a diagnostic. */
Var   *p2o_pt2_define(Pt2 *r, Pt2Graph *g, const char *name);
/* An Argument; ARG_NONE after a diagnostic. */
Arg    p2o_pt2_arg(Pt2 *r, Pt2Graph *g, const Json *union_);
/* {"name": n}, {"as_name": n} or the bare n; NULL when it is none of them. */
const Json *p2o_pt2_reference(const Json *j);
bool   p2o_pt2_is_float(const Json *j, double *f);      /* a number, or the words for the others */

/* Graphs (pt2_graph). */
void p2o_pt2_calls(Pt2 *r, Pt2Graph *g);
Body *p2o_pt2_subgraph(Pt2 *r, const Json *graph, const char *name, Loc loc);
/* "torch.ops.aten.add.Tensor" -> "aten::add.Tensor"; NULL when it is no such name. */
const char *p2o_pt2_target(Arena *a, Str target);
Loc  p2o_pt2_loc(Pt2 *r, const Json *metadata);

/* Trees (pt2_tree).  Leaves of a tree spec (a string that holds JSON) in order. */
/* A part of the tree that holds the keys and values of attention, layer by layer. */
typedef struct Pt2Cache {
    const char *stem;                   /* its path, or its argument's name; NULL: no name in it */
    uint32_t    layers, arity;          /* of a list of tuples; else 0 */
    bool        evident;                /* keys and values are called so */
    bool        taken;                  /* for an argument's name */
} Pt2Cache;

typedef struct Pt2Leaf {
    const char *path;                   /* joined by "_"; NULL when no key or field is in it */
    Pt2Cache   *cache;                  /* that it is in, or NULL */
    const char *inside, *part;          /* there: the end of the path, and "0.key" */
} Pt2Leaf;

typedef struct Pt2Leaves {
    VEC(Pt2Leaf) list;
    bool         known;                 /* false: the file has no spec */
} Pt2Leaves;

/* `fields`: treespec_namedtuple_fields; `what` names the spec in messages. */
Pt2Leaves p2o_pt2_leaves(Pt2 *r, const Json *spec, const Json *fields, const char *what);
/* "past_key_values.0.key" for a cache's part that PyTorch calls past_key_values_key_cache_0; else
 * `name`. */
const char *p2o_pt2_input_name(Arena *a, const Pt2Leaf *leaf, const char *name);
/* "present.0.key" where a cache is what became of an argument or has no name, else by its own; the
 * path for other leaves.  Comes after the inputs' names. */
const char *p2o_pt2_output_name(Arena *a, const Pt2Leaf *leaf, const Pt2Leaves *inputs);

/* Weights (pt2_weights): tensors by their name in the state_dict. */
typedef struct WeightSet {
    Map entries;
    Map storages;
} WeightSet;

/* A config file; payloads are records of the folder `dir`. */
void p2o_pt2_weights_config(Pt2 *r, WeightSet *w, const ZipEntry *e, const char *dir);
/* A nested torch.save of a dict. */
void p2o_pt2_weights_saved(Pt2 *r, WeightSet *w, const ZipEntry *e);
void p2o_pt2_weights_given(Pt2 *r, WeightSet *w, const char *fqn, const Tensor *t);
/* No values are stored: left out, or of sizes that are no numbers. */
bool p2o_pt2_weight_is_unreal(const WeightSet *w, const char *fqn);
bool p2o_pt2_weights_have(const WeightSet *w, const char *fqn);
/* NULL after a diagnostic. */
const Tensor *p2o_pt2_weight(Pt2 *r, WeightSet *w, const char *fqn);
/* A single tensor as PyTorch 2.1 embeds it: base64 of a torch.save.  NULL after a diagnostic. */
const Tensor *p2o_pt2_embedded(Pt2 *r, const Json *base64, const char *name);

#endif
