/* Other sizes for an ONNX file: its nodes as the calls of a Program, so that what settles the sizes
 * of a fixed capture settles those of a fixed model.
 *
 * A call's rule is the node's ONNX rule, asked with OnnxSizes; the numbers in vectors that an
 * operator takes as sizes are its SymInt arguments.  What became of them is written into the model
 * as nodes that compute them from the shapes of the inputs. */
#ifndef P2O_DYN_ONNX_SIZES_H
#define P2O_DYN_ONNX_SIZES_H

#include "ir/bind.h"
#include "ir/program.h"
#include "onnx/onnx_model.h"

struct Lower;
typedef struct OnnxSettling OnnxSettling;

/* The model's ports as a Program, to declare sizes on. */
Program *p2o_onnx_program(OnnxModel *m);
/* false, after a diagnostic, for an input whose shape the file does not state. */
bool     p2o_onnx_has_shape(const OnnxModel *m, Str input);

/* Settles all sizes; `pins` ("batch=4") apply once they are.  Changes the model to match.  false
 * after diagnostics. */
bool p2o_onnx_settle(OnnxModel *m, Program *p, Bindings *b, const char *const *pins, size_t npin);

/* New names for ports, in their order; NULL entries keep theirs.  false after a diagnostic. */
bool p2o_onnx_rename(OnnxModel *m, const char *const *inputs, size_t nin,
                     const char *const *outputs, size_t nout);

/* Between the parts (onnx_calls.c, onnx_filled.c, onnx_sizes.c; onnx_numbers.h has more). */

typedef enum BakedKind { BAKED_FILLED, BAKED_COUNTING, BAKED_TRIANGLE, BAKED_REPEATED } BakedKind;

typedef struct BakedForm {      /* how a constant may have been computed from its sizes */
    BakedKind     kind;
    const Tensor *of;
    int           axis;         /* COUNTING: along it, from `first` in steps */
    int64_t       first, step;
    int64_t       diagonal;     /* TRIANGLE: inside where column - row is at most this */
    uint64_t      inside, outside;      /* elements with the two values; FILLED: the first has it */
    uint64_t      axes;         /* whose sizes it may follow, as bits: REPEATED along these only */
} BakedForm;

/* NULL: in none of these ways. */
const BakedForm *p2o_onnx_form(Arena *a, const Tensor *t);
/* The same at these sizes. */
Value           *p2o_onnx_make(struct Lower *lo, const BakedForm *f, Shape s);

/* A node's input that holds sizes, or a constant that has them. */
typedef struct SizeSlot {
    int          input;
    Value       *now;           /* stands for it in the node, as it turned out to be */
    const Value *was;
    const BakedForm *form;      /* sizes are those of its axes; NULL: they are its elements */
    int         *item;          /* of each size: its place among the call's; -1: stays a number */
    Dim         *open;          /* the symbol that stood for each until it was settled, or NULL */
} SizeSlot;

typedef struct NodeCall {
    Call             call;      /* first: a Call of the Program is the NodeCall */
    OnnxSettling    *of;
    const OnnxNode  *file;
    VEC(SizeSlot)    slots;
    VEC(Dim)         fresh;     /* sizes that only the data decides, in the order of asking */
    size_t           nfresh;    /* asked for so far in this visit */
    Dim             *carried;   /* of a loop: sizes that change from round to round,
                                 * [input][axis]; NULL: none */
    Value           *stated;    /* by the file, of each result; NULL: not looked up */
} NodeCall;

struct OnnxSettling {
    OnnxModel  *model;
    Program    *prog;
    Bindings   *bind;
    Var       **vars;           /* by value id; NULL: a constant */
    uint32_t    nvar;           /* values the file has */
    VEC(Dim)    freed;          /* symbols in place of what was a number */
    VEC(NodeCall *) calls;      /* of all graphs */
    Map         looked_at;      /* Tensor * -> BakedForm * */
    bool       *constant;       /* by value id: computed from constants alone */
    VEC(Dim)    stuck;          /* places along an axis that never changes: numbers, by no rule */
    Dim        *summed;         /* by value id: how many elements each is a sum of, where that is
                                 * dynamic; else NULL */
    const struct AtenOp *row;
    const struct Schema *schema;
    const struct OnnxSizes *hooks;
};

/* The inputs of a node that have one of these letters (onnx_ops.def), as a set of bits: the first
 * 32. */
#define ONNX_SIZES "ENPA"
unsigned p2o_onnx_inputs(const Node *n, const char *letters);
/* No input changes it; so is what is absent. */
bool p2o_onnx_is_constant(const OnnxSettling *s, const Value *v);
/* The calls of all nodes, bodies included, into p->main. */
void p2o_onnx_calls(OnnxSettling *s);
/* Weighs the numbers that no rule looked at, once all sizes are settled.  false after diagnostics:
 * some may have been made of a size. */
bool p2o_onnx_weigh(OnnxSettling *s);

#endif
