/* Axes are settled in two rounds: plain symbols take the size they meet, then expressions are
 * evaluated.  An expression with one symbol still open (an input `2*k`, an output with a
 * data-dependent size) is solved for it where it is linear; what cannot be told is not held against
 * the model. */
#include "run/verify.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/num.h"
#include "base/vec.h"
#include "format/json.h"
#include "ir/dim.h"

enum { DEFAULT_SIZE = 2, MAX_COMBINATIONS = 10000 };

typedef VEC(int64_t) SizeList;

typedef struct SizeSym {
    Dim      sym;
    const char *name;                   /* the model's; not always one that Dims can have */
    int64_t  value;
    bool     known;
    SizeList choices;                   /* for --sizes */
} SizeSym;

typedef struct Checker {
    Diags    *diags;
    Arena    *arena, *scratch;
    OrtModel *model;
    Dims     *dims;
    const Dim **in, **out;      /* [port][axis]; NULL: nothing is claimed */
    VEC(SizeSym) syms;          /* those of inputs first */
    Map       odd_names;        /* a name that is no expression -> its symbol */
    const Json *names;          /* sizes that bear a name of the user's -> their expressions */
    size_t    nin_syms;
} Checker;

Tolerance p2o_verify_tolerance(DType t)
{
    if (t == DT_F16)
        return (Tolerance){ 1e-3, 1e-2 };
    if (t == DT_BF16)
        return (Tolerance){ 1e-2, 2e-2 };
    return (Tolerance){ 1e-5, 1e-4 };
}

static SizeSym *find_sym(const Checker *c, Dim sym)
{
    for (size_t i = 0; i < c->syms.n; i++)
        if (c->syms.at[i].sym == sym)
            return &c->syms.at[i];
    return NULL;
}

static void add_sym(void *user, Dim sym)
{
    Checker *c = user;
    if (!find_sym(c, sym))
        VEC_PUSH(c->arena, &c->syms, (SizeSym){ .sym = sym, .name = p2o_dim_name(sym) });
}

/* The prefix keeps it apart from symbols that the model names. */
static Dim odd_sym(Checker *c, const char *name)
{
    void **slot = p2o_map_slot(&c->odd_names, str_of(name));
    if (!*slot) {
        Dim sym = p2o_dim_fresh(c->dims, p2o_printf(c->arena, "_odd_%s", name));
        VEC_PUSH(c->arena, &c->syms, (SizeSym){ .sym = sym, .name = name });
        *slot = (void *)(uintptr_t)sym;
    }
    return *slot;
}

static bool is_name_char(char ch)
{
    return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || (ch >= '0' && ch <= '9') ||
           ch == '_';
}

/* "batch-size" is somebody's name; differences are written `a - b`. */
static bool is_glued(const char *name)
{
    for (const char *p = name; *p; p++)
        if ((*p == '-' || *p == '+') && p > name && is_name_char(p[-1]) && is_name_char(p[1]))
            return true;
    return false;
}

static Dim claimed_dim(Checker *c, const OrtPort *port, int axis, bool is_input)
{
    const char *name = port->dims[axis], *error;
    if (port->sizes[axis] >= 0)
        return p2o_dim_int(c->dims, port->sizes[axis]);
    if (!*name)
        return is_input ? odd_sym(c, p2o_printf(c->arena, "%s.%d", port->name, axis)) : NULL;
    const Json *meant = p2o_json_get(c->names, name);
    if (meant && meant->kind == JSON_STR)
        name = p2o_str_dup(c->arena, meant->s);
    Dim d = is_glued(name) ? NULL : p2o_dim_parse(c->dims, str_of(name), &error);
    return d ? d : odd_sym(c, name);
}

static const Dim *claimed_dims(Checker *c, const OrtPort *port, bool is_input)
{
    Dim *dims = NEW_N(c->arena, Dim, (size_t)port->rank + 1);
    for (int i = 0; i < port->rank; i++) {
        dims[i] = claimed_dim(c, port, i, is_input);
        if (dims[i])
            p2o_dim_symbols(dims[i], add_sym, c);
    }
    return dims;
}

static Checker *checker_new(Diags *d, OrtModel *m, Arena *scratch)
{
    Arena   *a = p2o_diags_arena(d);
    Checker *c = NEW(a, Checker);
    size_t   nin = p2o_ort_ninput(m), nout = p2o_ort_noutput(m);

    *c = (Checker){ .diags = d, .arena = a, .scratch = scratch, .model = m, .dims = p2o_dims_new(a),
                    .odd_names = { .arena = a } };
    const char *meta = p2o_ort_meta(m, "pt2onnx.dims"), *error;
    c->names = meta ? p2o_json_get(p2o_json_try(a, str_of(meta), &error), "names") : NULL;
    c->in = NEW_N(a, const Dim *, nin + 1);
    c->out = NEW_N(a, const Dim *, nout + 1);
    for (size_t i = 0; i < nin; i++)
        c->in[i] = claimed_dims(c, p2o_ort_input(m, i), true);
    c->nin_syms = c->syms.n;
    for (size_t i = 0; i < nout; i++)
        c->out[i] = claimed_dims(c, p2o_ort_output(m, i), false);
    return c;
}

static void forget_sizes(Checker *c)
{
    for (size_t i = 0; i < c->syms.n; i++)
        c->syms.at[i].known = false;
}

static bool sym_value(void *user, Dim sym, int64_t *v)
{
    const SizeSym *s = find_sym(user, sym);
    if (!s || !s->known)
        return false;
    *v = s->value;
    return true;
}

static bool value_of_dim(Checker *c, Dim d, int64_t *v)
{
    return p2o_dim_eval(c->dims, d, sym_value, c, v);
}

typedef struct OpenSyms {
    const Checker *checker;
    SizeSym       *one;
    size_t         n;
} OpenSyms;

static void count_open(void *user, Dim sym)
{
    OpenSyms *o = user;
    SizeSym  *s = find_sym(o->checker, sym);
    if (s && !s->known) {
        o->one = s;
        o->n++;
    }
}

static bool eval_with(Checker *c, Dim d, SizeSym *s, int64_t value, int64_t *out)
{
    s->known = true;
    s->value = value;
    return value_of_dim(c, d, out);
}

/* The value of s at which d is `size`, when d is linear in s. */
static void solve_open(Checker *c, Dim d, SizeSym *s, int64_t size)
{
    int64_t at0, at1, slope, rise, back;
    bool    ok = eval_with(c, d, s, 0, &at0) && eval_with(c, d, s, 1, &at1) &&
              !__builtin_sub_overflow(at1, at0, &slope) &&
              !__builtin_sub_overflow(size, at0, &rise) && slope != 0 && slope != -1 &&
              rise % slope == 0 && rise / slope >= 0 &&
              eval_with(c, d, s, rise / slope, &back) && back == size;
    s->known = ok;
}

/* false when the size contradicts the claim; *want is then what it should be. */
static bool settle_axis(Checker *c, Dim d, int64_t size, int64_t *want)
{
    OpenSyms open = { .checker = c };
    p2o_dim_symbols(d, count_open, &open);
    if (open.n == 1 && p2o_dim_is_sym(d)) {
        open.one->known = true;
        open.one->value = size;
    } else if (open.n == 1) {
        solve_open(c, d, open.one, size);
    }
    return open.n || !value_of_dim(c, d, want) || *want == size;
}

/* NULL, or how the array contradicts its port; `plain` picks the round. */
static const char *settle_port(Checker *c, const OrtPort *port, const Dim *dims, const Array *x,
                               bool is_input, bool plain)
{
    const char *what = is_input ? "input" : "output";
    if (port->rank == 0)
        return NULL;
    if (x->rank != port->rank)
        return p2o_printf(c->scratch, "%s '%s': has %d axes, the model declares %d", what,
                          port->name, x->rank, port->rank);
    for (int i = 0; i < port->rank; i++) {
        int64_t want;
        if (!dims[i] || p2o_dim_is_sym(dims[i]) != plain ||
            settle_axis(c, dims[i], x->sizes[i], &want))
            continue;
        const char *axis = p2o_printf(c->scratch, "%s '%s': axis %d is %lld", what, port->name, i,
                                      (long long)x->sizes[i]);
        if (p2o_dim_is_int(dims[i], NULL))
            return p2o_printf(c->scratch, "%s, the model fixes it at %lld", axis, (long long)want);
        return p2o_printf(c->scratch, "%s, but %s is %lld", axis, port->dims[i], (long long)want);
    }
    return NULL;
}

/* x[i].data is NULL where there is no array. */
static const char *settle_ports(Checker *c, const Array *x, bool is_input)
{
    OrtModel   *m = c->model;
    size_t      n = is_input ? p2o_ort_ninput(m) : p2o_ort_noutput(m);
    const char *why = NULL;
    for (int round = 0; round < 2; round++)
        for (size_t i = 0; i < n && !why; i++) {
            const OrtPort *port = is_input ? p2o_ort_input(m, i) : p2o_ort_output(m, i);
            const Dim     *dims = is_input ? c->in[i] : c->out[i];
            if (x[i].data)
                why = settle_port(c, port, dims, &x[i], is_input, round == 0);
        }
    return why;
}

/* "batch=7 seq=31" */
static const char *size_label(const Checker *c, const char *otherwise)
{
    Buf b = { .arena = c->scratch };
    for (size_t i = 0; i < c->nin_syms; i++)
        if (c->syms.at[i].known)
            p2o_putf(&b, "%s%s=%lld", b.n ? " " : "", c->syms.at[i].name,
                     (long long)c->syms.at[i].value);
    return b.n ? b.at : otherwise;
}

/* Two digits, with a point in every locale. */
static const char *brief_number(Arena *a, double x)
{
    char text[32], *to = text;
    if (x == 0 || !isfinite(x))
        return x == 0 ? "0" : isnan(x) ? "nan" : x < 0 ? "-inf" : "inf";
    snprintf(text, sizeof text, "%.1e", x);
    for (const char *p = text; *p; p++) {
        if ((*p >= '0' && *p <= '9') || *p == '-' || *p == '+' || *p == 'e')
            *to++ = *p;
        else if (to[-1] != '.')
            *to++ = '.';
    }
    return p2o_str_dup(a, (Str){ text, (size_t)(to - text) });
}

/* Element i as "[0, 3]". */
static const char *index_text(Arena *a, const Array *x, uint64_t i)
{
    Array at = { .rank = x->rank, .sizes = NEW_N(a, int64_t, (size_t)x->rank + 1) };
    for (int k = x->rank - 1; k >= 0; k--) {
        at.sizes[k] = (int64_t)(i % (uint64_t)x->sizes[k]);
        i /= (uint64_t)x->sizes[k];
    }
    return p2o_array_shape_text(a, &at);
}

/* t is the output's type before x was made comparable. */
static const char *compare_numbers(Checker *c, const VerifyOptions *o, const char *name,
                                   const Array *x, const Array *want, DType t, double *max_diff)
{
    Arena    *a = c->scratch;
    Tolerance tol = p2o_verify_tolerance(t);
    ArrayDiff diff;
    char      got_text[32], want_text[32];

    tol.atol = o->atol >= 0 ? o->atol : tol.atol;
    tol.rtol = o->rtol >= 0 ? o->rtol : tol.rtol;
    if (!p2o_array_compare(x, want, tol, &diff))
        return p2o_printf(a, "output '%s': shape %s, recorded %s", name, p2o_array_shape_text(a, x),
                          p2o_array_shape_text(a, want));
    *max_diff = diff.max_abs > *max_diff ? diff.max_abs : *max_diff;
    if (diff.noutside == 0)
        return NULL;
    return p2o_printf(a, "output '%s': max diff %s, %llu of %llu outside tolerance, worst at index "
                      "%s: %s, recorded %s", name, brief_number(a, diff.max_abs),
                      (unsigned long long)diff.noutside, (unsigned long long)p2o_array_nelem(x),
                      index_text(a, x, diff.worst),
                      p2o_format_f32(got_text, (float)p2o_array_at(x, diff.worst)),
                      p2o_format_f32(want_text, (float)p2o_array_at(want, diff.worst)));
}

static const Array *recorded(const Checker *c, const Npz *z, int64_t k, const char *way, size_t i)
{
    return p2o_npz_find(z, p2o_printf(c->scratch, "s%lld.%s.%zu", (long long)k, way, i));
}

/* .npy has no bf16, so f32 stands for it. */
static const char *recorded_input(Checker *c, const OrtPort *port, const Array *from, Array *x)
{
    if (port->dtype == DT_BF16 && from->dtype == DT_F32) {
        p2o_array_convert(c->scratch, from, DT_BF16, x);
        return NULL;
    }
    *x = *from;
    if (from->dtype == port->dtype)
        return NULL;
    return p2o_printf(c->scratch, "input '%s': recorded %s, the model takes %s", port->name,
                      p2o_dtype_text(from->dtype), p2o_dtype_text(port->dtype));
}

static const char *recorded_inputs(Checker *c, const Npz *z, int64_t k, Array *x)
{
    size_t      n = p2o_ort_ninput(c->model);
    const char *why = NULL;
    for (size_t i = 0; i < n && !why; i++) {
        const OrtPort *port = p2o_ort_input(c->model, i);
        const Array   *from = recorded(c, z, k, "in", i);
        why = from ? recorded_input(c, port, from, &x[i])
                   : p2o_printf(c->scratch, "input '%s': s%lld.in.%zu is not recorded", port->name,
                                (long long)k, i);
    }
    if (!why && recorded(c, z, k, "in", n))
        why = p2o_printf(c->scratch, "more inputs are recorded than the model's %zu", n);
    return why;
}

static const char *compare_outputs(Checker *c, const VerifyOptions *o, const Npz *z, int64_t k,
                                   const Array *got, double *max_diff)
{
    size_t      n = p2o_ort_noutput(c->model);
    const char *why = NULL;
    for (size_t i = 0; i < n && !why; i++) {
        const char  *name = p2o_ort_output(c->model, i)->name;
        const Array *want = recorded(c, z, k, "out", i);
        Array        x = got[i];
        if (!want)
            return p2o_printf(c->scratch, "output '%s': s%lld.out.%zu is not recorded", name,
                              (long long)k, i);
        if (x.dtype == DT_BF16 && want->dtype == DT_F32)
            p2o_array_convert(c->scratch, &got[i], DT_F32, &x);
        if (x.dtype != want->dtype)
            return p2o_printf(c->scratch, "output '%s': is %s, recorded %s", name,
                              p2o_dtype_text(x.dtype), p2o_dtype_text(want->dtype));
        why = compare_numbers(c, o, name, &x, want, got[i].dtype, max_diff);
    }
    if (!why && recorded(c, z, k, "out", n))
        why = p2o_printf(c->scratch, "more outputs are recorded than the model's %zu", n);
    return why;
}

/* NULL, or why the run failed or its shapes are not what the model declares. */
static const char *run_and_settle(Checker *c, const Array *in, Array *out)
{
    const char *why = p2o_ort_run(c->scratch, c->model, in, out);
    if (why)
        return p2o_printf(c->scratch, "onnx runtime: %s", why);
    return settle_ports(c, out, false);
}

/* `good` says whether numbers were compared, "ok", or shapes only, "runs". */
static void report_size(Checker *c, const VerifyOptions *o, VerifyCount *count, const char *label,
                        const char *why, const char *good, const char *found)
{
    count->nrun++;
    count->nfail += why != NULL;
    o->line(o->user, !why, p2o_printf(c->scratch, "[%s] %s  %s", why ? "FAIL" : good, label,
                                      why ? why : found));
}

static void verify_recorded(Checker *c, const VerifyOptions *o, const Npz *z, int64_t k,
                            VerifyCount *count)
{
    Array      *in = NEW_N(c->scratch, Array, p2o_ort_ninput(c->model) + 1);
    Array      *out = NEW_N(c->scratch, Array, p2o_ort_noutput(c->model) + 1);
    double      diff = 0;
    const char *why = recorded_inputs(c, z, k, in);

    forget_sizes(c);
    if (!why)
        why = settle_ports(c, in, true);
    if (!why)
        why = run_and_settle(c, in, out);
    if (!why)
        why = compare_outputs(c, o, z, k, out, &diff);
    if (!why && diff > count->max_diff)
        count->max_diff = diff;
    report_size(c, o, count, size_label(c, p2o_printf(c->scratch, "s%lld", (long long)k)), why,
                "ok", p2o_printf(c->scratch, "max diff %s", brief_number(c->scratch, diff)));
}

static int ascending(const void *pa, const void *pb)
{
    int64_t a = *(const int64_t *)pa, b = *(const int64_t *)pb;
    return (a > b) - (a < b);
}

/* The distinct K of names `s<K>.in.0` and `s<K>.out.0`, ascending. */
static SizeList recorded_runs(const Checker *c, const Npz *z)
{
    SizeList ks = { 0 }, distinct = { 0 };
    for (size_t i = 0; i < z->n; i++) {
        Str     rest, first = p2o_str_cut(str_of(z->at[i].name), '.', &rest);
        int64_t k;
        if ((p2o_str_starts(rest, "in.") || p2o_str_starts(rest, "out.")) && first.n > 1 &&
            first.p[0] == 's' && p2o_parse_i64((Str){ first.p + 1, first.n - 1 }, &k) && k >= 0)
            VEC_PUSH(c->arena, &ks, k);
    }
    if (ks.n)
        qsort(ks.at, ks.n, sizeof *ks.at, ascending);
    for (size_t i = 0; i < ks.n; i++)
        if (i == 0 || ks.at[i] != ks.at[i - 1])
            VEC_PUSH(c->arena, &distinct, ks.at[i]);
    return distinct;
}

Status p2o_verify_data(Diags *d, OrtModel *m, const Npz *data, const VerifyOptions *o,
                       VerifyCount *count)
{
    Checker *c = checker_new(d, m, o->scratch);
    size_t   failed = count->nfail;
    SizeList runs = recorded_runs(c, data);

    if (runs.n == 0) {
        p2o_diag(d, DIAG_BAD_FILE, 0,
                 "no recorded run in the data: expected arrays s0.in.0, s0.out.0 ...");
        return ST_INPUT;
    }
    for (size_t i = 0; i < runs.n; i++) {
        ArenaMark mark = p2o_arena_mark(o->scratch);
        verify_recorded(c, o, data, runs.at[i], count);
        p2o_arena_rewind(o->scratch, mark);
    }
    return count->nfail > failed ? ST_VERIFY : ST_OK;
}

static const char *symbol_names(const Checker *c)
{
    Buf b = { .arena = c->arena };
    for (size_t i = 0; i < c->nin_syms; i++)
        p2o_putf(&b, "%s%s", i ? ", " : "", c->syms.at[i].name);
    return b.n ? b.at : "none: every size is fixed";
}

static SizeSym *sym_to_set(Checker *c, Str name)
{
    for (size_t i = 0; i < c->nin_syms; i++)
        if (str_is(name, c->syms.at[i].name)) {
            if (c->syms.at[i].choices.n == 0)
                return &c->syms.at[i];
            p2o_diag(c->diags, DIAG_MISUSE, 0, "size '%.*s' is given twice", STR_ARG(name));
            return NULL;
        }
    p2o_diag(c->diags, DIAG_MISUSE, 0, "no input has a size '%.*s': the model's are %s",
             STR_ARG(name), symbol_names(c));
    return NULL;
}

static bool is_size_char(char ch) { return (ch >= '0' && ch <= '9') || ch == ',' || ch == '-'; }

/* "name=1,2 other=3": a name runs up to its '=', so it may hold blanks. */
static bool parse_sizes(Checker *c, Str text)
{
    for (text = p2o_str_trim(text); text.n; text = p2o_str_trim(text)) {
        Str    rest, one, name = p2o_str_trim(p2o_str_cut(text, '=', &rest));
        size_t n = 0;
        while (n < rest.n && is_size_char(rest.p[n]))
            n++;
        if (n == 0) {
            p2o_diag(c->diags, DIAG_MISUSE, 0, "'%.*s': expected NAME=N or NAME=N,N,...",
                     STR_ARG(text));
            return false;
        }
        SizeSym *s = sym_to_set(c, name);
        if (!s)
            return false;
        text = (Str){ rest.p + n, rest.n - n };
        for (Str list = { rest.p, n }; list.n;) {
            int64_t v;
            one = p2o_str_cut(list, ',', &list);
            if (!p2o_parse_i64(one, &v) || v < 0) {
                p2o_diag(c->diags, DIAG_MISUSE, 0,
                         "size '%.*s' of '%.*s': expected a number, 0 or more", STR_ARG(one),
                         STR_ARG(name));
                return false;
            }
            VEC_PUSH(c->arena, &s->choices, v);
        }
    }
    return true;
}

/* Symbols that nothing settled get the default, which one note says. */
static void fill_choices(Checker *c)
{
    Buf b = { .arena = c->arena };
    for (size_t i = 0; i < c->nin_syms; i++) {
        SizeSym *s = &c->syms.at[i];
        if (s->choices.n || s->known)
            continue;
        VEC_PUSH(c->arena, &s->choices, DEFAULT_SIZE);
        p2o_putf(&b, "%s%s", b.n ? ", " : "", s->name);
    }
    if (b.n)
        p2o_diag(c->diags, DIAG_NOTE, 0, "no size given for %s: %d is used", b.at, DEFAULT_SIZE);
}

static const char *random_input(Checker *c, size_t i, uint64_t *seed, Array *x)
{
    const OrtPort *port = p2o_ort_input(c->model, i);
    int64_t       *sizes = NEW_N(c->scratch, int64_t, (size_t)port->rank + 1);
    for (int k = 0; k < port->rank; k++)
        if (!value_of_dim(c, c->in[i][k], &sizes[k]) || sizes[k] < 0)
            return p2o_printf(c->scratch, "input '%s': axis %d, %s, has no size here", port->name,
                              k, port->dims[k]);
    if (!p2o_array_random(c->scratch, port->dtype, port->rank, sizes, seed, x))
        return p2o_printf(c->scratch, "input '%s' is too large", port->name);
    return NULL;
}

/* Where x[i].data is NULL.  The seed is fixed: a size gives the same numbers in any company. */
static const char *random_inputs(Checker *c, Array *x)
{
    uint64_t    seed = 20240229;
    const char *why = NULL;
    for (size_t i = 0; i < p2o_ort_ninput(c->model) && !why; i++)
        if (!x[i].data)
            why = random_input(c, i, &seed, &x[i]);
    return why;
}

/* Combination number n, the last symbol turning fastest. */
static void choose_sizes(Checker *c, size_t n)
{
    forget_sizes(c);
    for (size_t i = c->nin_syms; i > 0; i--) {
        SizeSym *s = &c->syms.at[i - 1];
        s->value = s->choices.at[n % s->choices.n];
        s->known = true;
        n /= s->choices.n;
    }
}

static void verify_random(Checker *c, const VerifyOptions *o, size_t n, VerifyCount *count)
{
    Array *in = NEW_N(c->scratch, Array, p2o_ort_ninput(c->model) + 1);
    Array *out = NEW_N(c->scratch, Array, p2o_ort_noutput(c->model) + 1);

    choose_sizes(c, n);
    const char *label = size_label(c, "fixed sizes"), *why = random_inputs(c, in);
    if (!why)
        why = run_and_settle(c, in, out);
    report_size(c, o, count, label, why, "runs", "shapes as declared");
}

Status p2o_verify_sizes(Diags *d, OrtModel *m, const char *sizes, const VerifyOptions *o,
                        VerifyCount *count)
{
    Checker *c = checker_new(d, m, o->scratch);
    size_t   n = 1, failed = count->nfail;

    if (!parse_sizes(c, str_of(sizes)))
        return ST_MISUSE;
    fill_choices(c);
    for (size_t i = 0; i < c->nin_syms; i++) {
        n *= c->syms.at[i].choices.n;
        if (n > MAX_COMBINATIONS || c->syms.at[i].choices.n > MAX_COMBINATIONS) {
            p2o_diag(d, DIAG_MISUSE, 0, "more than %d combinations of sizes", MAX_COMBINATIONS);
            return ST_MISUSE;
        }
    }
    for (size_t i = 0; i < n; i++) {
        ArenaMark mark = p2o_arena_mark(o->scratch);
        verify_random(c, o, i, count);
        p2o_arena_rewind(o->scratch, mark);
    }
    return count->nfail > failed ? ST_VERIFY : ST_OK;
}

/* The arrays that `data` has for inputs; a note names the others. */
static const char *given_inputs(Checker *c, const Npz *data, Array *x)
{
    Buf b = { .arena = c->arena };
    for (size_t i = 0; data && i < p2o_ort_ninput(c->model); i++) {
        const OrtPort *port = p2o_ort_input(c->model, i);
        const Array   *from = recorded(c, data, 0, "in", i);
        if (!from)
            from = p2o_npz_find(data, port->name);
        const char *why = from ? recorded_input(c, port, from, &x[i]) : NULL;
        if (why)
            return why;
        if (!from)
            p2o_putf(&b, "%s'%s'", b.n ? ", " : "", port->name);
    }
    if (b.n)
        p2o_diag(c->diags, DIAG_NOTE, 0, "not in the data, so filled at random: %s", b.at);
    return NULL;
}

/* Sizes given for symbols that the data did not settle, or that agree with it. */
static bool set_sizes(Checker *c, const char *const *sizes, size_t nsizes)
{
    for (size_t i = 0; i < nsizes; i++)
        if (!parse_sizes(c, str_of(sizes[i])))
            return false;
    fill_choices(c);
    for (size_t i = 0; i < c->nin_syms; i++) {
        SizeSym *s = &c->syms.at[i];
        if (s->choices.n > 1 || (s->known && s->choices.n && s->choices.at[0] != s->value)) {
            p2o_diag(c->diags, DIAG_MISUSE, 0, "size '%s' %s", s->name,
                     s->choices.n > 1 ? "has several values: expected one"
                                      : "is not what the data has");
            return false;
        }
        s->value = s->known ? s->value : s->choices.at[0];
        s->known = true;
    }
    return true;
}

bool p2o_verify_run(Diags *d, OrtModel *m, const char *const *sizes, size_t nsizes, const Npz *data,
                    NamedArray **out, size_t *nout)
{
    Arena   *a = p2o_diags_arena(d);
    Checker *c = checker_new(d, m, a);
    size_t   n = p2o_ort_noutput(m);
    Array   *in = NEW_N(a, Array, p2o_ort_ninput(m) + 1), *got = NEW_N(a, Array, n + 1);

    const char *why = given_inputs(c, data, in);
    if (!why)
        why = settle_ports(c, in, true);
    if (!why && !set_sizes(c, sizes, nsizes))
        return false;
    if (!why)
        why = random_inputs(c, in);
    if (why) {
        p2o_diag(d, DIAG_SHAPE, 0, "%s", why);
        return false;
    }
    why = p2o_ort_run(a, m, in, got);
    if (why) {
        p2o_diag(d, DIAG_RUNTIME, 0, "onnx runtime: %s", why);
        return false;
    }
    *out = NEW_N(a, NamedArray, n + 1);
    *nout = n;
    for (size_t i = 0; i < n; i++)
        (*out)[i] = (NamedArray){ p2o_ort_output(m, i)->name, got[i] };
    return true;
}
