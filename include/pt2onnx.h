/* pt2onnx: saved PyTorch programs to ONNX, with any number of dynamic inputs.
 *
 * A conversion is one model on one thread:
 *
 *     p2o_conversion *c = p2o_new(NULL);
 *     if (p2o_read_file(c, "net.pt2") == P2O_OK && p2o_set_input(c, "x:batch,seq,10") == P2O_OK &&
 *         p2o_convert(c) == P2O_OK && p2o_write_file(c, "net.onnx") == P2O_OK)
 *         ...
 *     for (size_t i = 0; i < p2o_diag_count(c); i++)
 *         puts(p2o_diag_at(c, i)->text);
 *     p2o_free(c);
 *
 * The library keeps no global state, prints nothing and never exits.  Pointers it returns belong to
 * the handle.  Structs that the caller fills begin with their size and only grow at the end. */
#ifndef PT2ONNX_H
#define PT2ONNX_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define P2O_API __attribute__((visibility("default")))
#else
#define P2O_API
#endif

typedef struct p2o_conversion p2o_conversion;

typedef enum p2o_status {
    P2O_OK = 0,
    P2O_ERR_MISUSE = -1,            /* arguments, or calls out of order */
    P2O_ERR_INPUT = -2,             /* a bad input file */
    P2O_ERR_UNSUPPORTED = -3,
    P2O_ERR_DYNAMIC = -4,           /* an axis cannot be dynamic as asked */
    P2O_ERR_VERIFY = -5,            /* numbers or shapes differ */
    P2O_ERR_IO = -6,
    P2O_ERR_NOMEM = -7,
    P2O_ERR_CANCELLED = -8
} p2o_status;

typedef enum p2o_severity { P2O_NOTE, P2O_WARNING, P2O_ERROR } p2o_severity;

typedef struct p2o_diagnostic {
    size_t       size;
    p2o_severity severity;
    const char  *kind;              /* stable: "shape-mismatch", "no-operator" ... */
    const char  *message;           /* what, on one line */
    const char  *advice;            /* what to do; NULL: none */
    const char  *file, *function, *module;      /* where in the user's source; each may be NULL */
    uint32_t     line;
    const char  *text;              /* all of it, as the command prints it */
    const char  *capture;           /* sizes at which one more capture would tell,
                                     * {"batch": 2, "seq": 97}; NULL: none */
} p2o_diagnostic;

typedef enum p2o_external {
    P2O_EXTERNAL_AUTO,              /* one file up to 1.9 GB, else weights in <name>.onnx.data */
    P2O_EXTERNAL_ALWAYS,
    P2O_EXTERNAL_NEVER,
    P2O_EXTERNAL_LINK               /* weights stay in the saved program; the model points there */
} p2o_external;

typedef enum p2o_state {
    P2O_STATE_DROP,                 /* a note says what the model does not return */
    P2O_STATE_IO                    /* a buffer "n" that the program changes is an input "n", whose
                                     * default is its value, and an output "n.next"; an input that
                                     * it changes has an output "x.next" */
} p2o_state;

typedef struct p2o_options {
    size_t       size;              /* set by p2o_options_init */
    void        *user;              /* passed to the callbacks */
    /* realloc-shaped: 0 frees; NULL: libc */
    void      *(*alloc)(void *user, void *p, size_t size);
    void       (*on_diag)(void *user, const p2o_diagnostic *d);     /* as they arise; NULL: none */
    void       (*on_line)(void *user, const char *line);            /* verify's lines; NULL: none */
    int          opset;             /* 17 to 23 */
    p2o_external external;
    int          dump;              /* nonzero: keep each stage's text for p2o_dump */
    p2o_state    state;
} p2o_options;

P2O_API const char *p2o_version(void);

P2O_API void            p2o_options_init(p2o_options *o, size_t size);  /* size = sizeof *o */
/* NULL options: the defaults; NULL: no memory. */
P2O_API p2o_conversion *p2o_new(const p2o_options *o);
P2O_API void            p2o_free(p2o_conversion *c);

/* The saved program.  Again for each further capture of the same model at other sizes: axes that
 * differ are dynamic.  Or one ONNX model, whose sizes and port names are changed: it keeps its
 * opset and all else. */
P2O_API p2o_status p2o_read_file(p2o_conversion *c, const char *path);

typedef struct p2o_reader {
    size_t   size;
    uint64_t nbytes;
    int    (*read_at)(void *user, uint64_t offset, void *buf, size_t n);        /* 0: failed */
    void    *user;
} p2o_reader;
P2O_API p2o_status p2o_read(p2o_conversion *c, const p2o_reader *r);

/* A program in memory: the JSON that torch.export saves (models/NAME.json of an archive) and its
 * weights and constants by name.  Tensors with the same `data` share memory in PyTorch too.
 * Neither is copied; both stay as they are until p2o_free. */
typedef struct p2o_weight {
    size_t         size;
    const char    *name;            /* in the state_dict, or the constant's */
    const char    *dtype;           /* "float32" */
    const void    *data;            /* of the whole storage */
    uint64_t       nbytes;
    uint64_t       offset;          /* elements from data to the first */
    int            rank;
    const int64_t *sizes, *strides; /* elements */
} p2o_weight;
P2O_API p2o_status p2o_read_program(p2o_conversion *c, const char *json, size_t n,
                                    const p2o_weight *weights, size_t nweights);

/* What is read from here on is not used to find sizes, only held against what was found: captures
 * with fixed sizes, which must line up call by call. */
P2O_API p2o_status p2o_read_checks(p2o_conversion *c);

P2O_API size_t p2o_captures_limit(void);        /* captures and checks that one conversion reads */

/* Whether check k, from 0, has a size of 1 where every capture has a larger one, and else only
 * sizes as the captures had them.  If it keeps a model from being converted, that is due to the 1:
 * it can be done without the check, and sizes of 1 are not claimed then. */
P2O_API int p2o_check_has_one(const p2o_conversion *c, size_t k);

/* What is dynamic; between reading and converting. */
P2O_API p2o_status p2o_set_input(p2o_conversion *c, const char *spec);  /* "x:batch,seq,10" */
/* {"x": {"0": "batch"}} */
P2O_API p2o_status p2o_set_dynamic_axes(p2o_conversion *c, const char *json);
P2O_API p2o_status p2o_set_dim(p2o_conversion *c, const char *spec);    /* "seq=1..512", "seq=10" */
P2O_API p2o_status p2o_set_input_names(p2o_conversion *c, const char *names);   /* "a,b" */
P2O_API p2o_status p2o_set_output_names(p2o_conversion *c, const char *names);

/* Sizes to take captures at, for the names given with p2o_set_input and the ranges given with
 * p2o_set_dim; no program is needed: {"captures": [{"batch": 2, "seq": 97}, ...], "checks": [...],
 * "ones": [...]}; ones are further checks, at sizes of 1. */
P2O_API p2o_status p2o_plan(p2o_conversion *c, const char **json);

/* What inputs will be called.  {"in_spec": the arguments' tree as torch.utils._pytree writes it,
 * "names": ["past_key_values_key_cache_0", ..], a name for each leaf by its path} gives
 * ["past_key_values.0.key", ..]: a cache's parts by their layers. */
P2O_API p2o_status p2o_port_names(p2o_conversion *c, const char *json, const char **names);

/* Operators that are not supported, by the user's word; before converting.  A call becomes a node
 * of the user's domain, its tensors the inputs, its numbers and texts attributes by their names:
 * "mylib::foo=com.example:Foo"; "mylib::foo.bar=com.example:Foo@2" for an overload and version 2
 * of the domain. */
P2O_API p2o_status p2o_set_custom_op(p2o_conversion *c, const char *spec);
/* ONNX functions in ONNX's own text syntax.  What is mapped to one refers to it; without a word
 * mylib::foo does to the function foo of the domain mylib. */
P2O_API p2o_status p2o_add_op_library(p2o_conversion *c, const char *path);
P2O_API p2o_status p2o_add_op_text(p2o_conversion *c, const char *text);

/* Or by a function of the user's, called by p2o_convert for each call of the operator: it reads the
 * arguments, makes nodes of ONNX, and says which values are the results.  It returns P2O_OK; what
 * it cannot do it refuses (p2o_call_refuse) or returns as any other status.
 *
 *     static p2o_status lower_foo(void *user, p2o_call *call)
 *     {
 *         p2o_argument x = { .size = sizeof x };
 *         p2o_value    y = 0;
 *         p2o_call_argument(call, 0, &x);
 *         p2o_node n = { .size = sizeof n, .op = "Relu", .inputs = &x.value, .ninput = 1,
 *                        .noutput = 1 };
 *         p2o_status s = p2o_emit(call, &n, &y);
 *         return s == P2O_OK ? p2o_call_result(call, 0, y) : s;
 *     }
 *
 * A p2o_call and its values are good until the function returns, and the handle takes no other
 * calls until then.  A wrong use of them is P2O_ERR_MISUSE, and refuses the conversion with a
 * diagnostic.  Sizes of results are what the file says of them: sizes of a fixed capture whose
 * origin it does not tell are refused before. */
typedef struct p2o_call p2o_call;
typedef uint32_t p2o_value;             /* a tensor in the model that is made; 0: none */
typedef p2o_status p2o_lower_fn(void *user, p2o_call *call);
P2O_API p2o_status p2o_register_op(p2o_conversion *c, const char *name, p2o_lower_fn *fn,
                                   void *user);

typedef enum p2o_argument_kind {
    P2O_ARG_NONE, P2O_ARG_TENSOR, P2O_ARG_INT, P2O_ARG_FLOAT, P2O_ARG_BOOL, P2O_ARG_STRING,
    P2O_ARG_LIST
} p2o_argument_kind;

typedef struct p2o_argument {
    size_t            size;             /* set by the caller, as in all structs here */
    p2o_argument_kind kind;
    p2o_value         value;            /* TENSOR; INT and FLOAT that follow a size: a scalar, and
                                         * i and f say nothing; else 0 */
    const char       *name;
    int64_t           i;                /* INT, BOOL */
    double            f;                /* FLOAT, INT */
    const char       *s;                /* STRING; a dtype is one: "float32" */
    size_t            n;                /* LIST: items */
} p2o_argument;

typedef struct p2o_type {
    size_t         size;
    const char    *dtype;               /* "float32" */
    int            rank;
    const int64_t *sizes;               /* -1: it varies */
} p2o_type;

typedef enum p2o_attribute_kind {
    P2O_ATTR_INT, P2O_ATTR_FLOAT, P2O_ATTR_STRING, P2O_ATTR_INTS, P2O_ATTR_FLOATS, P2O_ATTR_STRINGS
} p2o_attribute_kind;

typedef struct p2o_attribute {
    size_t             size;
    const char        *name;
    p2o_attribute_kind kind;
    int64_t            i;
    double             f;
    const char        *s;
    const int64_t     *ints;
    const double      *floats;
    const char *const *strings;
    size_t             n;               /* of a list */
} p2o_attribute;

typedef struct p2o_node {
    size_t               size;
    const char          *domain;        /* NULL: ai.onnx; of one of yours the results are the
                                         * call's, all of them */
    const char          *op;            /* one without graphs in it */
    const p2o_value     *inputs;        /* 0: an optional one is absent */
    size_t               ninput;
    const p2o_attribute *attributes;
    size_t               nattribute;
    size_t               noutput;
} p2o_node;

/* As the file has them: what was left at its default is not there. */
P2O_API size_t     p2o_call_narguments(const p2o_call *k);
P2O_API size_t     p2o_call_nresults(const p2o_call *k);
P2O_API p2o_status p2o_call_argument(p2o_call *k, size_t i, p2o_argument *out);
P2O_API p2o_status p2o_call_item(p2o_call *k, size_t i, size_t item, p2o_argument *out);
P2O_API p2o_status p2o_value_type(p2o_call *k, p2o_value v, p2o_type *out);
P2O_API p2o_status p2o_result_type(p2o_call *k, size_t i, p2o_type *out);
P2O_API p2o_status p2o_emit(p2o_call *k, const p2o_node *n, p2o_value *outputs);
P2O_API p2o_status p2o_constant(p2o_call *k, const char *dtype, int rank, const int64_t *sizes,
                                const void *data, size_t nbytes, p2o_value *out);
P2O_API p2o_status p2o_call_result(p2o_call *k, size_t i, p2o_value v);
P2O_API p2o_status p2o_call_refuse(p2o_call *k, const char *why);

P2O_API p2o_status p2o_convert(p2o_conversion *c);
P2O_API p2o_status p2o_write_file(p2o_conversion *c, const char *path);
/* In one piece, at most 2 GB; write returns 0 when it failed. */
P2O_API p2o_status p2o_write(p2o_conversion *c,
                             int (*write)(void *user, const void *p, size_t n), void *user);

P2O_API size_t          p2o_diag_count(const p2o_conversion *c);
P2O_API const p2o_diagnostic *p2o_diag_at(const p2o_conversion *c, size_t i);

/* Texts for people.  NULL when there is none yet.  Stages: "program", "types", "graph", "opt". */
P2O_API const char *p2o_dump(p2o_conversion *c, const char *stage);
P2O_API const char *p2o_summary(p2o_conversion *c);     /* inputs and outputs after convert */
/* {"inputs": [{"name", "dtype", "dims"}], "outputs": [...], "state": {"n": "n.next"}, "nodes",
 * "opset", "dims"}: the model's ports, a size an integer or text, inputs whose new values are
 * outputs, and what the metadata says of the dims. */
P2O_API const char *p2o_signature(p2o_conversion *c);
P2O_API const char *p2o_report(p2o_conversion *c);      /* how each size became dynamic; Markdown */
P2O_API const char *p2o_ops_text(p2o_conversion *c);
/* What a saved program or an ONNX file contains.  A handle of its own: not one that converts. */
P2O_API p2o_status p2o_inspect(p2o_conversion *c, const char *path, const char **text);

/* Running models in ONNX Runtime, which is loaded when first needed. */
/* A library with kernels for operators of your domain; before the first run. */
P2O_API p2o_status p2o_use_ort_library(p2o_conversion *c, const char *path);
/* Whether the converted model has operators that ONNX Runtime has no kernels for, none being given;
 * before it is converted, whether an operator is mapped to what no function defines. */
P2O_API int        p2o_needs_kernels(const p2o_conversion *c);
typedef struct p2o_verify_options {
    size_t             size;
    const char *const *data;        /* .npz files with s<K>.in.<i> and s<K>.out.<j> */
    size_t             ndata;
    const char        *sizes;       /* "batch=1,2,7 seq=1,5"; NULL: none */
    double             atol, rtol;  /* negative: by the output's type */
} p2o_verify_options;
P2O_API p2o_status p2o_verify(p2o_conversion *c, const char *model, const p2o_verify_options *o);

typedef struct p2o_run_options {
    size_t             size;
    const char *const *sets;        /* "batch=7" */
    size_t             nset;
    const char        *data;        /* .npz with inputs; NULL: random */
    const char        *save;        /* .npz for the outputs; NULL: none */
} p2o_run_options;
P2O_API p2o_status p2o_run(p2o_conversion *c, const char *model, const p2o_run_options *o,
                           const char **text);

#ifdef __cplusplus
}
#endif
#endif
