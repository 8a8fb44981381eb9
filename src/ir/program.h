/* The source IR: what the input file said, as a list of calls.
 *
 * A Program owns a main Body; higher-order operators hold further Bodies in their arguments.  Calls
 * stand in execution order, each with its arguments in schema order and defaults filled in.  It is
 * append-only: passes build a new Body rather than edit one. */
#ifndef P2O_IR_PROGRAM_H
#define P2O_IR_PROGRAM_H

#include "base/diag.h"
#include "base/vec.h"
#include "ir/shape.h"
#include "ir/tensor.h"

typedef struct Program Program;
typedef struct Body    Body;
typedef struct Call    Call;
typedef struct Var     Var;
typedef struct Arg     Arg;

typedef enum TypeKind { TY_NONE, TY_TENSOR, TY_INT, TY_FLOAT, TY_BOOL } TypeKind;

/* A tensor's dtype and rank are always known.  TY_NONE is poison: a rule failed, or None. */
typedef struct Type {
    TypeKind kind;
    DType    dtype;             /* of TENSOR */
    Shape    shape;             /* of TENSOR */
    Dim      value;             /* of INT; NULL in `recorded` types when not an expression */
} Type;

struct Var {
    const char   *name;             /* unique in its Body */
    Type          type;             /* set by inference */
    Type          recorded;         /* by the file; TY_NONE: it says nothing */
    const Type   *also;             /* what further captures recorded, in their order; or NULL */
    Answer        dense;            /* by the file: row-major without gaps */
    const Tensor *tensor;           /* of weights and constants, else NULL */
    const char   *fqn;              /* their name in the state_dict */
    Call         *def;              /* NULL for inputs and weights */
    uint32_t      id;               /* dense in the Program, from 0 */
};

typedef enum ArgKind {
    ARG_NONE, ARG_VAR, ARG_INT, ARG_FLOAT, ARG_BOOL, ARG_STR, ARG_LIST, ARG_DTYPE, ARG_LAYOUT,
    ARG_MEMORY_FORMAT, ARG_DEVICE, ARG_COMPLEX, ARG_BODY, ARG_OPERATOR
} ArgKind;

struct Arg {
    ArgKind  kind;
    uint32_t n;                 /* of LIST */
    union {
        Var        *var;
        Dim         i;          /* INT: a literal is a constant Dim */
        double      f;
        bool        b;
        const char *s;          /* STR, LAYOUT ("strided"), MEMORY_FORMAT, DEVICE, OPERATOR */
        DType       dtype;
        Arg        *items;
        double      re_im[2];
        Body       *body;
    };
};

struct Call {
    const char          *target;    /* "aten::add.Tensor", "_operator::mul", "mylib::foo" */
    const struct AtenOp *op;        /* NULL: not bound, or not in the tables */
    const struct Schema *schema;    /* of op */
    Arg                 *args;      /* schema order once op is bound; else as the file has them */
    const char         **arg_names; /* parallel to args while op is NULL; "" when positional */
    int                  nargs;
    Var                **outs;      /* NULL entries: None results */
    int                  nouts;
    Loc                  loc;
};

struct Body {
    const char *name;
    VEC(Var *)  inputs;                 /* of main: the user's inputs, in call order */
    VEC(Call *) calls;
    VEC(Arg)    outputs;
    Map         vars;                   /* name -> Var * */
    Map         stems;                  /* of p2o_var_fresh: stem -> last number given out */
};

/* The user's inputs and outputs: leaves of the call's trees, named by their path. */
typedef struct InputSpec {
    const char *name;
    Var        *var;                    /* NULL: `constant` was baked in at capture */
    Arg         constant;
    const Tensor *initial;              /* of state that is an input: its default; else NULL */
} InputSpec;

typedef enum OutputKind { OUT_USER, OUT_BUFFER, OUT_INPUT } OutputKind;

typedef struct OutputSpec {
    OutputKind  kind;
    const char *name;           /* path in the result; the buffer or input that is mutated */
    Arg         value;
} OutputSpec;

/* An axis of an input that the user calls "past+seq". */
typedef struct AxisExpr {
    const char *input, *text;
    Var        *var;
    int         axis;
} AxisExpr;

typedef struct ProgramRange {
    const char *expr;                   /* as the file has it */
    Dim         dim;                    /* NULL: not representable */
    int64_t     lo, hi;                 /* NO_LOWER / NO_UPPER: unbounded */
} ProgramRange;

/* A number of the captures that was weighed: what it was taken for, for the report. */
typedef struct WeighedNumber {
    Loc         loc;
    const char *target, *was, *taken, *because;
} WeighedNumber;

struct Program {
    Arena *arena;
    Diags *diags;
    Dims  *dims;
    Body  *main;
    VEC(Var *)        weights;          /* parameters, buffers, constants, in the file's order */
    VEC(InputSpec)    inputs;
    VEC(OutputSpec)   outputs;          /* parallel to main->outputs */
    VEC(ProgramRange) ranges;
    VEC(ProgramRange) declared;         /* what the user said of sizes; expr is as written */
    VEC(AxisExpr)     axis_exprs;
    VEC(const char *) guards;           /* Python expressions over input paths, as written */
    VEC(WeighedNumber) weighed;
    uint32_t          nvar;
    bool              proven;           /* types agreed with what the captures recorded, and are of
                                         * other sizes now */
    bool              keeps_state;      /* what it changes is returned */
    const char       *unsettled;        /* advice where one capture cannot tell; NULL: another */
    int               capture;          /* among those that were given, from 1 */
    const char       *producer;         /* "PyTorch 2.14.1", for messages */
};

Program *p2o_program_new(Diags *d, Dims *t);
Body    *p2o_body_new(Program *p, const char *name);
/* NULL when the name is taken. */
Var     *p2o_var_new(Program *p, Body *b, const char *name);
Var     *p2o_var_find(const Body *b, Str name);
/* `stem`, or stem_1, stem_2 ... when taken. */
Var     *p2o_var_fresh(Program *p, Body *b, const char *stem);
Call    *p2o_call_add(Program *p, Body *b, const char *target, int nargs, int nouts);

static inline const char *p2o_unsettled_advice(const Program *p)
{
    return p->unsettled ? p->unsettled
                        : "a second capture at other sizes would settle it: "
                          "pt2onnx a.pt2 b.pt2 out.onnx";
}

static inline Arg arg_none(void) { return (Arg){ .kind = ARG_NONE }; }
static inline Arg arg_var(Var *v) { return (Arg){ .kind = ARG_VAR, .var = v }; }
static inline Arg arg_int(Dim i) { return (Arg){ .kind = ARG_INT, .i = i }; }
static inline Arg arg_float(double f) { return (Arg){ .kind = ARG_FLOAT, .f = f }; }
static inline Arg arg_bool(bool b) { return (Arg){ .kind = ARG_BOOL, .b = b }; }
static inline Arg arg_str(ArgKind k, const char *s) { return (Arg){ .kind = k, .s = s }; }

static inline Arg arg_list(Arg *items, size_t n)
{
    return (Arg){ .kind = ARG_LIST, .items = items, .n = (uint32_t)n };
}

#endif
