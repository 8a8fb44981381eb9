/* The public API: owns the handle, runs the pipeline, turns diagnostics into p2o_diagnostic.
 *
 * Every entry that can allocate goes through `guarded`: memory exhaustion lands there, in the one
 * setjmp of the program, and files are closed with the arena. */
#include "pt2onnx.h"

#include <setjmp.h>

#include "api_ops.h"
#include "aten/custom.h"
#include "aten/functional.h"
#include "aten/infer.h"
#include "aten/lower.h"
#include "aten/state.h"
#include "base/num.h"
#include "declared.h"
#include "dyn/declare.h"
#include "dyn/onnx_sizes.h"
#include "dyn/lineup.h"
#include "dyn/plan.h"
#include "dyn/settle.h"
#include "format/json.h"
#include "front/pt2.h"
#include "front/sniff.h"
#include "ir/program_text.h"
#include "onnx/graph_text.h"
#include "onnx/onnx_read.h"
#include "onnx/onnx_write.h"
#include "opt/opt.h"
#include "report.h"
#include "run/verify.h"

#ifndef PT2ONNX_VERSION
#define PT2ONNX_VERSION "0"
#endif

enum { OPSET_DEFAULT = 20 };

struct p2o_conversion {
    p2o_options options;
    Arena      *arena, *scratch;
    Diags      *diags;
    Dims       *dims;
    Ops        *ops;
    CustomOps  *custom;                     /* what the user said of operators; NULL: nothing */
    Program    *program;                    /* the first capture; the others are lined up with it */
    Program    *programs[MAX_CAPTURES];     /* captures, then those that are only checked */
    int         nprogram, nfit;
    bool        reads_checks;
    OnnxModel  *onnx;                       /* of a program that is an ONNX model's ports */
    Bindings   *bindings;
    Graph      *graph;
    Ort        *ort;
    Texts       kernels;                    /* the user's libraries for it */
    Declared    declared;                   /* applied by p2o_convert */
    const char *dump_program, *dump_types, *dump_graph, *dump_opt;
    VEC(p2o_diagnostic) public_diags;
    bool        out_of_memory;
    bool        busy;                       /* a callback of p2o_register_op runs */
};

typedef p2o_status Step(p2o_conversion *c, const void *arg);

const char *p2o_version(void) { return PT2ONNX_VERSION; }

void p2o_options_init(p2o_options *o, size_t size)
{
    memset(o, 0, size);
    o->size = size;
    o->opset = OPSET_DEFAULT;
}

static p2o_status public_status(Status s)
{
    static const p2o_status table[] = {
        [ST_OK] = P2O_OK,           [ST_MISUSE] = P2O_ERR_MISUSE,
        [ST_INPUT] = P2O_ERR_INPUT, [ST_UNSUPPORTED] = P2O_ERR_UNSUPPORTED,
        [ST_DYNAMIC] = P2O_ERR_DYNAMIC, [ST_VERIFY] = P2O_ERR_VERIFY,
        [ST_IO] = P2O_ERR_IO,       [ST_NOMEM] = P2O_ERR_NOMEM,
        [ST_CANCELLED] = P2O_ERR_CANCELLED,
    };
    return table[s];
}

static void publish_diag(void *user, const Diag *d)
{
    p2o_conversion *c = user;
    const Place    *at = p2o_place_at(c->diags, d->loc);
    p2o_diagnostic        x = {
        .size = sizeof x,
        .severity = (p2o_severity)p2o_diag_severity(d->kind),
        .kind = p2o_diag_kind_name(d->kind),
        .message = d->text,
        .advice = d->advice,
        .file = at ? at->file : NULL,
        .function = at ? at->func : NULL,
        .module = at ? at->module : NULL,
        .line = at ? at->line : 0,
        .text = p2o_diag_text(c->diags, d),
        .capture = d->capture,
    };
    VEC_PUSH(c->arena, &c->public_diags, x);
    if (c->options.on_diag)
        c->options.on_diag(c->options.user, &x);
}

static p2o_status guarded(p2o_conversion *c, Step *step, const void *arg)
{
    if (c->busy)
        return P2O_ERR_MISUSE;
    if (c->out_of_memory || setjmp(*p2o_arena_guard(c->arena))) {
        c->out_of_memory = true;
        return P2O_ERR_NOMEM;
    }
    return step(c, arg);
}

/* A step that reported errors ends with the first one's status. */
static p2o_status result_of(p2o_conversion *c, size_t errors_before)
{
    if (p2o_diags_errors(c->diags) == errors_before)
        return P2O_OK;
    for (size_t i = 0; i < p2o_diags_count(c->diags); i++) {
        const Diag *d = p2o_diags_at(c->diags, i);
        if (p2o_diag_severity(d->kind) == SEV_ERROR && errors_before-- == 0)
            return public_status(p2o_diag_status(d->kind));
    }
    return P2O_ERR_UNSUPPORTED;
}

/* Made when first needed: a file that cannot be read needs no operators. */
static Ops *operators(p2o_conversion *c)
{
    if (!c->ops)
        c->ops = p2o_ops_new(c->arena, c->dims);
    return c->ops;
}

static p2o_status misuse(p2o_conversion *c, const char *what)
{
    p2o_diag(c->diags, DIAG_MISUSE, 0, "%s", what);
    return P2O_ERR_MISUSE;
}

static p2o_status step_new(p2o_conversion *c, const void *arg)
{
    (void)arg;
    c->diags = p2o_diags_new(c->arena, publish_diag, c);
    c->dims = p2o_dims_new(c->arena);
    return P2O_OK;
}

p2o_conversion *p2o_new(const p2o_options *o)
{
    p2o_options defaults;
    p2o_options_init(&defaults, sizeof defaults);
    if (o)
        memcpy(&defaults, o, o->size < sizeof defaults ? o->size : sizeof defaults);
    Arena *a = p2o_arena_new(defaults.alloc, defaults.user);
    if (!a)
        return NULL;
    if (setjmp(*p2o_arena_guard(a))) {
        p2o_arena_free(a);
        return NULL;
    }
    p2o_conversion *c = NEW(a, p2o_conversion);
    c->options = defaults;
    c->arena = a;
    step_new(c, NULL);
    return c;
}

static void unload_runtime(void *arg)
{
    p2o_conversion *c = arg;
    p2o_ort_unload(c->ort);
    p2o_arena_free(c->scratch);
}

void p2o_free(p2o_conversion *c)
{
    if (c)
        p2o_arena_free(c->arena);
}

static void add_program(p2o_conversion *c, Program *p)
{
    c->programs[c->nprogram++] = p;
    p->capture = c->nprogram;
    c->nfit += !c->reads_checks;
    c->program = c->programs[0];
}

static p2o_status read_source(p2o_conversion *c, Source *s)
{
    size_t errors = p2o_diags_errors(c->diags);
    Zip   *zip = NULL;
    if (!s)
        return result_of(c, errors - 1);
    FileKind kind = p2o_sniff(c->diags, s, &zip);
    Program *p = NULL;
    if (kind == FILE_PT2 || kind == FILE_PT2_OLD)
        p = p2o_pt2_read(c->diags, c->dims, zip);
    else if (kind == FILE_ONNX && c->nprogram == 0)
        p = (c->onnx = p2o_onnx_load(c->diags, c->dims, s)) ? p2o_onnx_program(c->onnx) : NULL;
    else if (p2o_diags_errors(c->diags) == errors)
        p2o_sniff_refuse(c->diags, kind);
    if (p)
        add_program(c, p);
    return result_of(c, errors);
}

static bool can_read(p2o_conversion *c)
{
    if (c->onnx && !c->graph) {
        p2o_diag(c->diags, DIAG_MISUSE, 0,
                 "an ONNX model is changed alone: it has no further captures");
        return false;
    }
    if (!c->graph && c->nprogram < MAX_CAPTURES)
        return true;
    p2o_diag(c->diags, DIAG_MISUSE, 0, c->graph ? "converted already" : "more than %d captures",
             MAX_CAPTURES);
    return false;
}

static p2o_status step_read_file(p2o_conversion *c, const void *arg)
{
    const char *path = arg;
    if (!can_read(c))
        return P2O_ERR_MISUSE;
    p2o_diags_file(c->diags, p2o_str_dup(c->arena, str_of(path)));
    return read_source(c, p2o_source_open(c->diags, path));
}

p2o_status p2o_read_file(p2o_conversion *c, const char *path)
{
    return guarded(c, step_read_file, path);
}

static bool read_through(void *user, uint64_t offset, void *buf, size_t n)
{
    const p2o_reader *r = user;
    return r->read_at(r->user, offset, buf, n) != 0;
}

static p2o_status step_read(p2o_conversion *c, const void *arg)
{
    if (!can_read(c))
        return P2O_ERR_MISUSE;
    p2o_reader *kept = NEW(c->arena, p2o_reader);
    memcpy(kept, arg, sizeof *kept);
    return read_source(c, p2o_source_callback(c->diags, kept->nbytes, read_through, kept));
}

p2o_status p2o_read(p2o_conversion *c, const p2o_reader *r) { return guarded(c, step_read, r); }

static p2o_status step_read_checks(p2o_conversion *c, const void *arg)
{
    (void)arg;
    if (!c->nprogram || c->onnx)
        return misuse(c, "checks come after the program that they are held against");
    c->reads_checks = true;
    return P2O_OK;
}

p2o_status p2o_read_checks(p2o_conversion *c) { return guarded(c, step_read_checks, NULL); }

/* An axis of an input: its size in a check, and those in the captures. */
typedef struct CheckedAxis {
    size_t  input;
    int     axis;
    int64_t size, lo, hi;
} CheckedAxis;

/* The size in program i; false: none that is fixed. */
static bool axis_size(const p2o_conversion *c, int i, const CheckedAxis *x, int64_t *size)
{
    const Body *b = c->programs[i]->main;
    Shape       s = x->input < b->inputs.n ? b->inputs.at[x->input]->recorded.shape : (Shape){ 0 };
    return x->axis < s.rank && p2o_dim_is_int(s.at[x->axis], size);
}

static bool has_sizes(const p2o_conversion *c, int check, CheckedAxis *x)
{
    int64_t n;
    x->lo = INT64_MAX;
    x->hi = 0;
    for (int i = 0; i < c->nfit; i++) {
        if (!axis_size(c, i, x, &n))
            return false;
        x->lo = n < x->lo ? n : x->lo;
        x->hi = n > x->hi ? n : x->hi;
    }
    return axis_size(c, check, x, &x->size);
}

static bool is_only_one_here(const CheckedAxis *x) { return x->size == 1 && x->lo > 1; }

/* 2*n + 1, where n is 1 in the check: the captures, of which two differ, and the check lie on one
 * line. */
static bool follows(const p2o_conversion *c, const CheckedAxis *x, const CheckedAxis *one)
{
    bool    differ = false;
    int64_t n, v, first_n = 0, first_v = 0, left, right;
    for (int i = 0; i < c->nfit; i++) {
        if (!axis_size(c, i, one, &n) || !axis_size(c, i, x, &v))
            return false;
        first_n = i ? first_n : n;
        first_v = i ? first_v : v;
        if (!mul_i64(v - x->size, first_n - 1, &left) ||
            !mul_i64(first_v - x->size, n - 1, &right) || left != right)
            return false;
        differ |= n != first_n;
    }
    return differ;
}

static bool follows_a_one(const p2o_conversion *c, int check, const CheckedAxis *x)
{
    const Body *b = c->programs[check]->main;
    for (size_t i = 0; i < b->inputs.n; i++)
        for (int k = 0; k < b->inputs.at[i]->recorded.shape.rank; k++) {
            CheckedAxis one = { .input = i, .axis = k };
            if (has_sizes(c, check, &one) && is_only_one_here(&one) && follows(c, x, &one))
                return true;
        }
    return false;
}

size_t p2o_captures_limit(void)
{
    return MAX_CAPTURES;
}

int p2o_check_has_one(const p2o_conversion *c, size_t k)
{
    if (k >= (size_t)(c->nprogram - c->nfit))
        return false;
    int         check = c->nfit + (int)k;
    const Body *b = c->programs[check]->main;
    bool        any = false;
    for (size_t i = 0; i < b->inputs.n; i++)
        for (int axis = 0; axis < b->inputs.at[i]->recorded.shape.rank; axis++) {
            CheckedAxis x = { .input = i, .axis = axis };
            if (!has_sizes(c, check, &x))
                continue;
            bool one = is_only_one_here(&x), seen = x.size >= x.lo && x.size <= x.hi;
            any |= one;
            if (!one && !seen && !follows_a_one(c, check, &x))
                return false;
        }
    return any;
}

typedef struct ProgramStep {
    Str               json;
    const p2o_weight *weights;
    size_t            n;
} ProgramStep;

/* One Storage for what lies at one address: aliases are known by it. */
static const Storage *given_storage(p2o_conversion *c, Map *seen, const p2o_weight *w)
{
    const void **key = NEW(c->arena, const void *);
    *key = w->data;
    void   **slot = p2o_map_slot(seen, (Str){ (const char *)key, sizeof *key });
    Storage *s = *slot;
    if (!s || s->nbytes != w->nbytes) {
        s = NEW(c->arena, Storage);
        *s = (Storage){ .source = p2o_source_memory(c->arena, w->data, w->nbytes),
                        .nbytes = w->nbytes };
        *slot = s;
    }
    return s;
}

static const Tensor *given_tensor(p2o_conversion *c, Map *seen, const p2o_weight *w)
{
    Tensor     *t = NEW(c->arena, Tensor);
    const char *why = "the dtype is unknown";
    *t = (Tensor){ .storage = given_storage(c, seen, w),
                   .dtype = p2o_dtype_from_torch(str_of(w->dtype)),
                   .rank = w->rank,
                   .sizes = w->sizes,
                   .strides = w->strides,
                   .offset = w->offset };
    if (w->nbytes && !w->data)
        why = "it has no memory";
    else if (t->dtype != DT_NONE && p2o_tensor_check(t, &why))
        return t;
    p2o_diag(c->diags, DIAG_MISUSE, 0, "weight %s: %s", w->name, why);
    return NULL;
}

static p2o_status step_read_program(p2o_conversion *c, const void *arg)
{
    const ProgramStep *s = arg;
    size_t             errors = p2o_diags_errors(c->diags);
    NamedTensor       *named = NEW_N(c->arena, NamedTensor, s->n);
    Map                seen = { .arena = c->arena };
    if (!can_read(c))
        return P2O_ERR_MISUSE;
    for (size_t i = 0; i < s->n; i++)
        named[i] = (NamedTensor){ p2o_str_dup(c->arena, str_of(s->weights[i].name)),
                                  given_tensor(c, &seen, &s->weights[i]) };
    Program *p = p2o_diags_errors(c->diags) == errors
                 ? p2o_pt2_read_json(c->diags, c->dims, s->json, named, s->n) : NULL;
    if (p)
        add_program(c, p);
    return result_of(c, errors);
}

p2o_status p2o_read_program(p2o_conversion *c, const char *json, size_t n,
                            const p2o_weight *weights, size_t nweights)
{
    return guarded(c, step_read_program, &(ProgramStep){ { json, n }, weights, nweights });
}

static p2o_status keep_text(p2o_conversion *c, Texts *list, const char *text)
{
    if (c->graph)
        return misuse(c, "sizes are declared before the conversion");
    VEC_PUSH(c->arena, list, p2o_str_dup(c->arena, str_of(text)));
    return P2O_OK;
}

static p2o_status step_input(p2o_conversion *c, const void *arg)
{
    return keep_text(c, &c->declared.inputs, arg);
}
static p2o_status step_axes(p2o_conversion *c, const void *arg)
{
    return keep_text(c, &c->declared.axes, arg);
}
static p2o_status step_dim(p2o_conversion *c, const void *arg)
{
    return keep_text(c, &c->declared.ranges, arg);
}

p2o_status p2o_set_input(p2o_conversion *c, const char *spec)
{
    return guarded(c, step_input, spec);
}
p2o_status p2o_set_dynamic_axes(p2o_conversion *c, const char *json)
{
    return guarded(c, step_axes, json);
}
p2o_status p2o_set_dim(p2o_conversion *c, const char *spec) { return guarded(c, step_dim, spec); }

/* The names in "x:batch,seq,10": symbols, each once. */
static void collect_names(p2o_conversion *c, const char *spec, Dim *symbols, int *n)
{
    Str dims, name = p2o_str_cut(str_of(spec), ':', &dims);
    (void)name;
    while (dims.n) {
        Str     word = p2o_str_trim(p2o_str_cut(dims, ',', &dims));
        int64_t number;
        int     i = 0;
        if (!word.n || str_is(word, "?") || p2o_parse_i64(word, &number))
            continue;
        Dim sym = p2o_dim_name_ok(word) ? p2o_dim_sym_of(c->dims, word) : NULL;
        if (!sym || *n == PLAN_MOST) {
            p2o_diag(c->diags, DIAG_MISUSE, 0,
                     sym ? "more than %d names" : "'%.*s' is no name for a size",
                     sym ? PLAN_MOST : (int)word.n, word.p);
            return;
        }
        while (i < *n && symbols[i] != sym)
            i++;
        if (i == *n)
            symbols[(*n)++] = sym;
    }
}

static void put_sizes(Buf *b, const Dim *symbols, int n, const int64_t *sizes, bool first)
{
    p2o_puts(b, first ? "{" : ", {");
    for (int i = 0; i < n; i++)
        p2o_putf(b, "%s\"%s\": %lld", i ? ", " : "", p2o_dim_name(symbols[i]), (long long)sizes[i]);
    p2o_puts(b, "}");
}

static p2o_status step_plan(p2o_conversion *c, const void *arg)
{
    size_t   errors = p2o_diags_errors(c->diags);
    Dim      symbols[PLAN_MOST];
    int      n = 0;
    Plan     plan;
    Buf      b = { .arena = c->arena };
    Program *none = p2o_program_new(c->diags, c->dims);
    Bindings *bind = p2o_bindings_new(c->dims, 1);
    for (size_t i = 0; i < c->declared.ranges.n; i++)
        p2o_declare_range(none, bind, str_of(c->declared.ranges.at[i]));
    for (size_t i = 0; i < c->declared.inputs.n && p2o_diags_errors(c->diags) == errors; i++)
        collect_names(c, c->declared.inputs.at[i], symbols, &n);
    if (p2o_diags_errors(c->diags) != errors)
        return result_of(c, errors);
    if (!n)
        return misuse(c, "no size has a name: --input 'x:batch,seq,10'");
    p2o_plan_sizes(c->dims, symbols, n, &plan);
    p2o_puts(&b, "{\"captures\": [");
    for (int k = 0; k < PLAN_CAPTURES; k++)
        put_sizes(&b, symbols, n, plan.captures[k], !k);
    p2o_puts(&b, "], \"checks\": [");
    for (int k = 0; k < PLAN_CHECKS; k++)
        put_sizes(&b, symbols, n, plan.checks[k], !k);
    p2o_puts(&b, "], \"ones\": [");
    for (int k = 0; k < plan.nones; k++)
        put_sizes(&b, symbols, n, plan.ones[k], !k);
    p2o_puts(&b, "]}");
    *(const char **)(uintptr_t)arg = b.at;
    return P2O_OK;
}

p2o_status p2o_plan(p2o_conversion *c, const char **json)
{
    *json = NULL;
    return guarded(c, step_plan, json);
}

typedef struct NamesStep {
    const char  *json;
    const char **names;
} NamesStep;

static p2o_status step_port_names(p2o_conversion *c, const void *arg)
{
    const NamesStep *s = arg;
    size_t           errors = p2o_diags_errors(c->diags);
    const Json      *j = p2o_json_parse(c->diags, str_of(s->json), "names");
    Buf              b = { .arena = c->arena };
    if (j && p2o_pt2_port_names(c->diags, j, &b))
        *s->names = b.at;
    return result_of(c, errors);
}

p2o_status p2o_port_names(p2o_conversion *c, const char *json, const char **names)
{
    *names = NULL;
    return guarded(c, step_port_names, &(NamesStep){ json, names });
}

static const char **name_list(p2o_conversion *c, const char *text, size_t *n)
{
    VEC(const char *) names = { 0 };
    for (Str rest = str_of(text), one; rest.n;) {
        one = p2o_str_trim(p2o_str_cut(rest, ',', &rest));
        VEC_PUSH(c->arena, &names, one.n ? p2o_str_dup(c->arena, one) : NULL);
    }
    *n = names.n;
    return names.at;
}

static p2o_status step_input_names(p2o_conversion *c, const void *arg)
{
    c->declared.input_names = name_list(c, arg, &c->declared.ninput_name);
    return P2O_OK;
}

static p2o_status step_output_names(p2o_conversion *c, const void *arg)
{
    c->declared.output_names = name_list(c, arg, &c->declared.noutput_name);
    return P2O_OK;
}

p2o_status p2o_set_input_names(p2o_conversion *c, const char *names)
{
    return guarded(c, step_input_names, names);
}
p2o_status p2o_set_output_names(p2o_conversion *c, const char *names)
{
    return guarded(c, step_output_names, names);
}

/* The capture with the most calls comes first: the others lack those that do nothing at their
 * sizes. */
static void put_longest_first(p2o_conversion *c)
{
    int longest = 0;
    for (int i = 1; i < c->nfit; i++)
        if (c->programs[i]->main->calls.n > c->programs[longest]->main->calls.n)
            longest = i;
    Program *p = c->programs[longest];
    c->programs[longest] = c->programs[0];
    c->program = c->programs[0] = p;
}

static bool line_up(p2o_conversion *c, Lineup *l)
{
    bool ok = true;
    for (int i = 0; i < c->nprogram; i++)
        ok &= p2o_functional(operators(c), c->programs[i]) &&
              (c->options.state == P2O_STATE_DROP || p2o_keep_state(c->programs[i]));
    *l = (Lineup){ .ops = operators(c), .p = c->programs, .n = c->nprogram };
    return ok && (c->nprogram == 1 || p2o_line_up_inputs(c->programs, c->nprogram, c->bindings)) &&
           p2o_line_up(l, c->bindings);
}

/* An ONNX model stays what it is, but for its sizes and the names of its ports. */
static p2o_status change_onnx(p2o_conversion *c, size_t errors)
{
    Texts           pins = { 0 };
    const Declared *d = &c->declared;
    if (c->options.opset != OPSET_DEFAULT && c->options.opset != c->onnx->graph->opset) {
        p2o_diag(c->diags, DIAG_MISUSE, 0, "an ONNX model keeps its opset, %d",
                 c->onnx->graph->opset);
        return P2O_ERR_MISUSE;
    }
    for (size_t i = 0; i < d->ranges.n; i++)
        if (p2o_declared_is_pin(d->ranges.at[i]))
            VEC_PUSH(c->arena, &pins, d->ranges.at[i]);
    if (p2o_onnx_rename(c->onnx, d->input_names, d->ninput_name, d->output_names,
                        d->noutput_name) &&
        p2o_onnx_settle(c->onnx, c->program, c->bindings, pins.at, pins.n)) {
        p2o_declared_name_axes(&c->declared, c->onnx->graph);
        c->onnx->dims_json = p2o_dims_json(c->program, c->bindings, c->onnx->graph);
        c->graph = c->onnx->graph;
    }
    return result_of(c, errors);
}

static p2o_status step_convert(p2o_conversion *c, const void *arg)
{
    size_t errors = p2o_diags_errors(c->diags);
    Lineup lineup;
    (void)arg;
    if (!c->program || c->graph)
        return misuse(c, c->program ? "converted already" : "no program was read");
    if (c->options.opset < OPSET_MIN || c->options.opset > OPSET_MAX) {
        p2o_diag(c->diags, DIAG_MISUSE, 0, "opset %d: %d to %d are supported", c->options.opset,
                 OPSET_MIN, OPSET_MAX);
        return P2O_ERR_MISUSE;
    }
    put_longest_first(c);
    Program *p = c->program;
    c->bindings = p2o_bindings_new(c->dims, c->nprogram);
    p2o_set_nfit(c->bindings, c->nfit);
    c->dump_program = c->options.dump ? p2o_program_text(p, false) : NULL;
    p2o_declared_apply(&c->declared, p, c->bindings, c->onnx);
    if (p2o_diags_errors(c->diags) == errors && c->onnx)
        return change_onnx(c, errors);
    if (p2o_diags_errors(c->diags) != errors || !line_up(c, &lineup) ||
        !p2o_settle(&lineup, c->bindings))
        return result_of(c, errors);
    c->dump_types = c->options.dump ? p2o_program_text(p, true) : NULL;
    LowerOptions lo = { .opset = c->options.opset,
                        .input_names = c->declared.input_names,
                        .ninput = c->declared.ninput_name,
                        .output_names = c->declared.output_names,
                        .noutput = c->declared.noutput_name };
    Graph *g = p2o_lower(p, &lo);
    if (!g)
        return result_of(c, errors);
    c->dump_graph = c->options.dump ? p2o_graph_text(g, true) : NULL;
    p2o_opt(g);
    c->dump_opt = c->options.dump ? p2o_graph_text(g, true) : NULL;
    const char *wrong = p2o_graph_check(g);
    if (wrong)
        p2o_diag(c->diags, DIAG_INTERNAL, 0, "the graph is ill-formed: %s", wrong);
    p2o_declared_name_axes(&c->declared, g);
    p2o_graph_meta(g, "pt2onnx.dims", p2o_dims_json(p, c->bindings, g));
    if (p2o_state_json(g))
        p2o_graph_meta(g, "pt2onnx.state", p2o_state_json(g));
    if (!wrong)
        c->graph = g;
    return result_of(c, errors);
}

static p2o_status step_custom(p2o_conversion *c, const void *arg)
{
    size_t errors = p2o_diags_errors(c->diags);
    if (c->graph)
        return misuse(c, "converted already");
    if (!c->custom) {
        c->custom = p2o_custom_new(c->arena);
        p2o_ops_set_custom(operators(c), c->custom);
    }
    p2o_take_custom(c->diags, operators(c), &c->busy, arg);
    return result_of(c, errors);
}

p2o_status p2o_set_custom_op(p2o_conversion *c, const char *spec)
{
    return guarded(c, step_custom, &(CustomWord){ .kind = CUSTOM_MAP, .text = spec });
}

p2o_status p2o_add_op_library(p2o_conversion *c, const char *path)
{
    return guarded(c, step_custom, &(CustomWord){ .kind = CUSTOM_LIBRARY, .text = path });
}

p2o_status p2o_add_op_text(p2o_conversion *c, const char *text)
{
    return guarded(c, step_custom, &(CustomWord){ .kind = CUSTOM_TEXT, .text = text });
}

p2o_status p2o_register_op(p2o_conversion *c, const char *name, p2o_lower_fn *fn, void *user)
{
    return guarded(c, step_custom,
                   &(CustomWord){ .kind = CUSTOM_CALL, .text = name, .fn = fn, .user = user });
}

p2o_status p2o_convert(p2o_conversion *c) { return guarded(c, step_convert, NULL); }

static OnnxWriteOptions write_options(const p2o_conversion *c, const char *path)
{
    return (OnnxWriteOptions){ .producer_version = p2o_version(),
                               .external = (ExternalData)c->options.external,
                               .model_path = path };
}

static bool storage_is_intact(p2o_conversion *c, Map *seen, const Storage *s)
{
    const Storage **key = NEW(c->arena, const Storage *);
    *key = s;
    void   **slot = p2o_map_slot(seen, (Str){ (const char *)key, sizeof *key });
    uint32_t crc;
    if (*slot || !s->crc || !s->source)
        return true;
    *slot = c;
    return p2o_zip_crc(s->source, s->offset, s->nbytes, &crc) && crc == s->crc;
}

static bool tensor_is_intact(p2o_conversion *c, Map *seen, const Tensor *t)
{
    bool ok = storage_is_intact(c, seen, t->storage);
    for (size_t i = 0; ok && i < t->nparts; i++)
        ok = tensor_is_intact(c, seen, t->parts[i]);
    return ok;
}

/* Weights that are copied are checked against the archive's checksums; linked ones are not read. */
static bool weights_are_intact(p2o_conversion *c)
{
    Map seen = { .arena = c->arena };
    const Graph *g = c->graph;
    for (size_t i = 0; c->options.external != P2O_EXTERNAL_LINK && i < g->inits.n + g->inputs.n;
         i++) {
        const Value  *v = i < g->inits.n ? g->inits.at[i] : g->inputs.at[i - g->inits.n];
        const Tensor *t = v->initial ? v->initial : v->tensor;
        if (t && !tensor_is_intact(c, &seen, t)) {
            p2o_diag(c->diags, DIAG_BAD_FILE, 0,
                     "the weight '%s' is damaged: its checksum differs from the archive's",
                     v->name ? v->name : "?");
            return false;
        }
    }
    return true;
}

static p2o_status step_write_file(p2o_conversion *c, const void *arg)
{
    size_t errors = p2o_diags_errors(c->diags);
    if (!c->graph)
        return misuse(c, "nothing was converted");
    OnnxWriteOptions o = write_options(c, arg);
    if (weights_are_intact(c))
        p2o_onnx_write(c->diags, c->graph, &o);
    return result_of(c, errors);
}

p2o_status p2o_write_file(p2o_conversion *c, const char *path)
{
    return guarded(c, step_write_file, path);
}

typedef struct UserSink {
    int (*write)(void *user, const void *p, size_t n);
    void *user;
} UserSink;

static bool write_through(void *user, const void *p, size_t n)
{
    const UserSink *s = user;
    return s->write(s->user, p, n) != 0;
}

static p2o_status step_write(p2o_conversion *c, const void *arg)
{
    size_t   errors = p2o_diags_errors(c->diags);
    UserSink user;
    if (!c->graph)
        return misuse(c, "nothing was converted");
    memcpy(&user, arg, sizeof user);
    OnnxWriteOptions o = write_options(c, NULL);
    Sink            *s = p2o_sink_callback(c->diags, write_through, &user);
    o.external = EXTERNAL_NEVER;
    if (weights_are_intact(c))
        p2o_onnx_write_sink(c->diags, c->graph, &o, s);
    return result_of(c, errors);
}

p2o_status p2o_write(p2o_conversion *c, int (*write)(void *user, const void *p, size_t n),
                     void           *user)
{
    UserSink s = { write, user };
    return guarded(c, step_write, &s);
}

size_t          p2o_diag_count(const p2o_conversion *c) { return c->public_diags.n; }
const p2o_diagnostic *p2o_diag_at(const p2o_conversion *c, size_t i)
{
    return &c->public_diags.at[i];
}

const char *p2o_dump(p2o_conversion *c, const char *stage)
{
    return same(stage, "program") ? c->dump_program : same(stage, "types") ? c->dump_types
           : same(stage, "graph") ? c->dump_graph : same(stage, "opt") ? c->dump_opt : NULL;
}

typedef struct TextStep {
    const char  *path;
    const void  *options;
    const char **text;
} TextStep;

static const char *text_of(p2o_conversion *c, Step *step)
{
    const char *text = NULL;
    guarded(c, step, &(TextStep){ .text = &text });
    return text;
}

static p2o_status step_summary(p2o_conversion *c, const void *arg)
{
    const TextStep *s = arg;
    *s->text = c->graph ? p2o_report_graph(c->graph) : NULL;
    return P2O_OK;
}

const char *p2o_summary(p2o_conversion *c) { return text_of(c, step_summary); }

static p2o_status step_signature(p2o_conversion *c, const void *arg)
{
    const TextStep *s = arg;
    *s->text = c->graph ? p2o_signature_json(c->program, c->bindings, c->graph) : NULL;
    return P2O_OK;
}

const char *p2o_signature(p2o_conversion *c) { return text_of(c, step_signature); }

static p2o_status step_report(p2o_conversion *c, const void *arg)
{
    const TextStep *s = arg;
    *s->text = c->graph ? p2o_report_dims(c->program, c->bindings, c->graph) : NULL;
    return P2O_OK;
}

const char *p2o_report(p2o_conversion *c) { return text_of(c, step_report); }

static p2o_status step_ops(p2o_conversion *c, const void *arg)
{
    const TextStep *s = arg;
    *s->text = p2o_report_ops(c->arena, operators(c));
    return P2O_OK;
}

const char *p2o_ops_text(p2o_conversion *c) { return text_of(c, step_ops); }

static p2o_status step_inspect(p2o_conversion *c, const void *arg)
{
    const TextStep *s = arg;
    size_t          errors = p2o_diags_errors(c->diags);
    Zip            *zip = NULL;
    p2o_diags_file(c->diags, p2o_str_dup(c->arena, str_of(s->path)));
    Source *source = p2o_source_open(c->diags, s->path);
    if (!source)
        return result_of(c, errors);
    FileKind kind = p2o_sniff(c->diags, source, &zip);
    if (p2o_diags_errors(c->diags) == errors)
        *s->text = p2o_report_file(c->diags, c->dims, operators(c), source, kind, zip);
    return result_of(c, errors);
}

p2o_status p2o_inspect(p2o_conversion *c, const char *path, const char **text)
{
    *text = NULL;
    return guarded(c, step_inspect, &(TextStep){ .path = path, .text = text });
}

static p2o_status step_use_kernels(p2o_conversion *c, const void *arg)
{
    if (c->ort)
        return misuse(c, "ONNX Runtime was loaded already");
    VEC_PUSH(c->arena, &c->kernels, p2o_str_dup(c->arena, str_of(arg)));
    return P2O_OK;
}

p2o_status p2o_use_ort_library(p2o_conversion *c, const char *path)
{
    return guarded(c, step_use_kernels, path);
}

int p2o_needs_kernels(const p2o_conversion *c)
{
    if (c->kernels.n)
        return false;
    return c->graph ? p2o_graph_has_own(c->graph) : c->custom && p2o_custom_is_foreign(c->custom);
}

static OrtModel *open_model(p2o_conversion *c, const char *path)
{
    p2o_diags_file(c->diags, p2o_str_dup(c->arena, str_of(path)));
    if (!c->scratch) {
        p2o_arena_defer(c->arena, unload_runtime, c);
        c->scratch = p2o_arena_new(c->options.alloc, c->options.user);
        if (!c->scratch)
            longjmp(*p2o_arena_guard(c->arena), 1);
    }
    if (!c->ort) {
        c->ort = p2o_ort_load(c->diags);
        for (size_t i = 0; c->ort && i < c->kernels.n; i++)
            p2o_ort_use(c->ort, c->kernels.at[i]);
    }
    return c->ort ? p2o_ort_open(c->ort, c->diags, path) : NULL;
}

static void publish_line(void *user, bool ok, const char *line)
{
    p2o_conversion *c = user;
    (void)ok;
    if (c->options.on_line)
        c->options.on_line(c->options.user, line);
}

static p2o_status step_verify(p2o_conversion *c, const void *arg)
{
    const TextStep           *s = arg;
    const p2o_verify_options *v = s->options;
    size_t                    errors = p2o_diags_errors(c->diags);
    OrtModel                 *m = open_model(c, s->path);
    VerifyCount               count = { 0 };
    Status                    worst = ST_OK;
    if (!m)
        return result_of(c, errors);
    VerifyOptions o = {
        .atol = v->atol, .rtol = v->rtol, .line = publish_line, .user = c, .scratch = c->scratch
    };
    for (size_t i = 0; i < v->ndata && (worst == ST_OK || worst == ST_VERIFY); i++) {
        Npz    data;
        Status st = ST_INPUT;
        p2o_diags_file(c->diags, p2o_str_dup(c->arena, str_of(v->data[i])));
        if (p2o_npz_read(c->diags, v->data[i], &data))
            st = p2o_verify_data(c->diags, m, &data, &o, &count);
        worst = st != ST_OK ? st : worst;
    }
    if (v->sizes && (worst == ST_OK || worst == ST_VERIFY)) {
        Status st = p2o_verify_sizes(c->diags, m, v->sizes, &o, &count);
        worst = st != ST_OK ? st : worst;
    }
    p2o_ort_close(m);
    p2o_status reported = result_of(c, errors);
    return reported != P2O_OK ? reported : public_status(worst);
}

p2o_status p2o_verify(p2o_conversion *c, const char *model, const p2o_verify_options *o)
{
    return guarded(c, step_verify, &(TextStep){ .path = model, .options = o });
}

static p2o_status step_run(p2o_conversion *c, const void *arg)
{
    const TextStep        *s = arg;
    const p2o_run_options *r = s->options;
    size_t                 errors = p2o_diags_errors(c->diags), nout = 0;
    OrtModel              *m = open_model(c, s->path);
    NamedArray            *out = NULL;
    Npz                    data;
    if (!m)
        return result_of(c, errors);
    bool ok = !r->data || p2o_npz_read(c->diags, r->data, &data);
    ok = ok && p2o_verify_run(c->diags, m, r->sets, r->nset, r->data ? &data : NULL, &out, &nout);
    if (ok)
        *s->text = p2o_report_arrays(c->arena, out, nout);
    if (ok && r->save)
        p2o_npz_write(c->diags, r->save, out, nout);
    p2o_ort_close(m);
    return result_of(c, errors);
}

p2o_status p2o_run(p2o_conversion *c, const char *model, const p2o_run_options *o,
                   const char **text)
{
    *text = NULL;
    return guarded(c, step_run, &(TextStep){ .path = model, .options = o, .text = text });
}
