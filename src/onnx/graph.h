/* The target IR: the ONNX graph we will write.
 *
 * Nodes form a doubly linked list in topological order; Values know their definition and uses.  A
 * Value's dtype and rank are always known, derived by its operator's rule (onnx_shape) when the
 * node is made.  An int64 or int32 Value of rank 0 or 1 may know its contents as a list of Dims:
 * that is how shape arithmetic folds.  Bodies of If and Loop are Graphs whose `parent` is the graph
 * around them; their nodes may use values of any enclosing graph, their outputs are values of their
 * own.  A Value whose rule failed is poison: its dtype is DT_NONE. */
#ifndef P2O_ONNX_GRAPH_H
#define P2O_ONNX_GRAPH_H

#include "base/diag.h"
#include "base/vec.h"
#include "ir/shape.h"
#include "ir/tensor.h"

typedef enum OnnxOp {
    ONNX_NONE,
#define ONNX(name, ...) ONNX_##name,
#include "onnx/onnx_ops.def"
#undef ONNX
    ONNX_COUNT
} OnnxOp;

/* What a node without a row is: an operator of the user's domain, or a function of the model. */
typedef struct OnnxOperator {
    const char *domain, *name;
    int64_t     version;                /* of the domain; 0: not said */
    const struct OnnxFunction *function;        /* NULL: kernels of the user's define it */
} OnnxOperator;

typedef struct Graph Graph;
typedef struct Node  Node;
typedef struct Value Value;

typedef enum AttrKind {
    ATTR_INT, ATTR_FLOAT, ATTR_STR, ATTR_INTS, ATTR_FLOATS, ATTR_STRS, ATTR_TENSOR, ATTR_GRAPH
} AttrKind;

typedef struct Attr {
    const char *name;
    AttrKind    kind;
    size_t      n;                      /* of INTS, FLOATS, STRS */
    union {
        int64_t        i;
        float          f;
        const char    *s;
        const int64_t *ints;
        const float   *floats;
        const char   **strs;
        const Tensor  *tensor;
        Graph         *graph;
    };
} Attr;

struct Value {
    const char   *name;                 /* NULL: numbered when written */
    uint32_t      id;                   /* dense over a graph and its bodies, for side tables */
    DType         dtype;
    Shape         shape;                /* rank -1: a sequence that never held a tensor */
    Node         *def;                  /* NULL: graph input or initializer */
    int           out_index;            /* which output of def */
    const Tensor *tensor;               /* initializer; else NULL */
    const Tensor *initial;              /* of a graph input: its default; else NULL */
    const char   *next;                 /* of one that is state: the output that is its new value */
    const Dim    *ints;                 /* contents, or NULL when not known */
    size_t        nints;
    Graph        *graph;                /* where it is defined */
    VEC(Node *)   uses;                 /* a node appears once for each use */
    bool          is_sequence;          /* ONNX sequence of such tensors */
    bool          is_output;            /* of its graph */
};

struct Node {
    OnnxOp      op;                     /* ONNX_NONE: no row, see own */
    const OnnxOperator *own;            /* NULL where op says all */
    Value     **in;                     /* NULL: absent optional input */
    int         nin;
    Value     **out;
    int         nout;
    Attr       *attrs;
    int         nattr;
    const char *name;                   /* module path and operator; NULL: none */
    Loc         loc;
    Graph      *graph;
    Node       *prev, *next;
};

typedef struct DimName {
    Dim         dim;
    const char *name;
} DimName;

struct Graph {
    Arena *arena;
    Diags *diags;
    Dims  *dims;
    int    opset;
    Graph *parent;
    const char *name;
    uint32_t    nvalue;                 /* of the outermost graph: ids given out, bodies included */
    Node  *first, *last;
    VEC(Value *) inputs;
    VEC(Value *) inits;                 /* initializers, in order of first use */
    VEC(Value *) outputs;
    VEC(const char *) meta;             /* metadata: key, value, key, value ... */
    struct OnnxBody *file;              /* of a graph that was read from a file (onnx_model.h) */
    const struct OnnxSizes *sizes;      /* how rules compare sizes: onnx_ops.h; NULL: as they are */
    VEC(DimName) dim_names;             /* the user's, for sizes that are expressions */
};

/* The user's name for a size, or its own text. */
const char *p2o_graph_dim(const Graph *g, Dim d);

Graph *p2o_graph_new(Arena *a, Diags *d, Dims *t, int opset, Graph *parent);
Value *p2o_graph_input(Graph *g, const char *name, DType t, Shape s);
Value *p2o_graph_init(Graph *g, const char *name, const Tensor *t); /* ints set when small int64 */
/* Appends; outputs get their types from the operator's rule.  A rule that fails reports an internal
 * error: a wrong lowering, not a wrong input.  Inputs and attributes are copied, what attributes
 * point to is not.  Poison among the inputs makes the outputs poison without a second report. */
Node  *p2o_graph_node(Graph *g, OnnxOp op, int nin, Value *const *in, int nattr, const Attr *attrs,
                      int nout, Loc loc);
/* The same without types, for graphs that are read; and a value that nothing defines yet. */
Node  *p2o_graph_append(Graph *g, OnnxOp op, int nin, Value *const *in, int nattr,
                        const Attr *attrs, int nout);
Value *p2o_graph_value(Graph *g);
/* A node without a row; the caller types its outputs. */
Node  *p2o_graph_own(Graph *g, const OnnxOperator *own, int nin, Value *const *in, int nattr,
                     const Attr *attrs, int nout, Loc loc);
/* Domain and name identify an operator, whether it has a row or not. */
OnnxOperator p2o_node_operator(const Node *n);
/* An Identity is put between when v belongs to another graph or is an output already. */
void   p2o_graph_output(Graph *g, Value *v);
void   p2o_graph_meta(Graph *g, const char *key, const char *value);

/* n computes its one output in another way from here on.  The output keeps its type; false, and
 * nothing done, when the new form is ill-typed or would give another element type or rank. */
bool p2o_node_become(Node *n, OnnxOp op, int nin, Value *const *in, int nattr, const Attr *attrs);
void p2o_node_remove(Node *n);          /* no output may be in use; its bodies go with it */
void p2o_value_replace(Value *old, Value *with);        /* all uses and graph outputs */
static inline bool p2o_value_is_output(const Value *v) { return v->is_output; }

const Attr *p2o_node_attr(const Node *n, const char *name);             /* NULL: absent */
int64_t     p2o_node_int(const Node *n, const char *name, int64_t otherwise);

/* A node that was made, not read, and that only kernels of the user's define. */
bool         p2o_graph_has_own(const Graph *g);
const Graph *p2o_graph_root(const Graph *g);            /* the outermost */
bool         p2o_graph_encloses(const Graph *outer, const Graph *g);    /* or is the same */

/* Invariants: use lists match, definitions precede uses, names unique.  NULL, or what is wrong. */
const char *p2o_graph_check(const Graph *g);

static inline Attr attr_int(const char *name, int64_t i)
{
    return (Attr){ .name = name, .kind = ATTR_INT, .i = i };
}

static inline Attr attr_float(const char *name, double f)
{
    return (Attr){ .name = name, .kind = ATTR_FLOAT, .f = (float)f };
}

static inline Attr attr_str(const char *name, const char *s)
{
    return (Attr){ .name = name, .kind = ATTR_STR, .s = s };
}

static inline Attr attr_ints(const char *name, const int64_t *v, size_t n)
{
    return (Attr){ .name = name, .kind = ATTR_INTS, .ints = v, .n = n };
}

static inline Attr attr_floats(const char *name, const float *v, size_t n)
{
    return (Attr){ .name = name, .kind = ATTR_FLOATS, .floats = v, .n = n };
}

static inline Attr attr_strs(const char *name, const char **v, size_t n)
{
    return (Attr){ .name = name, .kind = ATTR_STRS, .strs = v, .n = n };
}

static inline Attr attr_graph(const char *name, Graph *g)
{
    return (Attr){ .name = name, .kind = ATTR_GRAPH, .graph = g };
}

static inline Attr attr_tensor(const char *name, const Tensor *t)
{
    return (Attr){ .name = name, .kind = ATTR_TENSOR, .tensor = t };
}

#endif
