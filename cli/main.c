/* The command: options, messages, exit codes.  Sees only pt2onnx.h. */
#define _POSIX_C_SOURCE 200809L
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "pt2onnx.h"

enum { EXIT_USAGE = 1, EXIT_INPUT, EXIT_UNSUPPORTED, EXIT_DYNAMIC, EXIT_VERIFY, EXIT_IO };
enum { MOST = 64 };                     /* of any repeated option or file */

typedef struct Options {
    const char *files[MOST], *inputs[MOST], *axes[MOST], *dims[MOST], *data[MOST], *sets[MOST];
    const char *checks[MOST], *custom_ops[MOST], *op_libraries[MOST], *kernels[MOST];
    size_t      nfile, ninput, naxes, ndim, ndata, nset, ncheck, ncustom, nlibrary, nkernels;
    const char *input_names, *output_names, *dump, *sizes, *save;
    const char *report;
    int         opset;
    p2o_external external;
    p2o_state   state;
    double      atol, rtol;
    bool        quiet, verify, json;
    bool        without[MOST];          /* of checks: left out */
    bool        holds_back;             /* messages of an attempt that may be made again */
} Options;

static const char usage_text[] =
    "usage: pt2onnx MODEL.pt2... [OUT.onnx] [options]     "
    "several are captures of one model at different sizes\n"
    "         --input 'NAME:d0,d1,..'      "
    "names, past+seq, numbers or ? per axis; * in NAME: all like it; repeatable\n"
    "         --dynamic-axes JSON          {\"input\": {\"0\": \"batch\"}} or {\"input\": [0, 1]}\n"
    "         --dim NAME=N | NAME=LO..HI   pin a dim, or state its range; repeatable\n"
    "         --input-names a,b   --output-names y\n"
    "         --opset N                    17 to 23, default 20\n"
    "         --external-data auto|always|never|link\n"
    "         --state drop|io              "
    "io: what the program changes becomes inputs and outputs\n"
    "         --verify                     "
    "run the result in ONNX Runtime (with --data or --sizes)\n"
    "         --report FILE.md             how each size became dynamic\n"
    "         --dump program,types,graph,opt   --quiet\n"
    "         --check MODEL.pt2            "
    "a capture that is only held against the result; repeatable\n"
    "         --custom-op 'mylib::foo=com.example:Foo'     "
    "an operator of yours becomes a node of your domain; repeatable\n"
    "         --op-library FILE            "
    "operators as ONNX functions, in ONNX's text syntax; repeatable\n"
    "         --ort-library FILE           "
    "kernels of yours for ONNX Runtime, also for verify and run; repeatable\n"
    "       pt2onnx plan --input.. [--dim..] [--json]      sizes to take captures at\n"
    "       pt2onnx MODEL.onnx OUT.onnx [--input..] [--dynamic-axes..] [--dim..] "
    "[--input-names..] [--output-names..]\n"
    "                                      "
    "other sizes and names for an ONNX model of any exporter\n"
    "       pt2onnx inspect FILE\n"
    "       pt2onnx verify OUT.onnx [--data REF.npz].. [--sizes 'batch=1,2,7 seq=1,5'] "
    "[--atol A] [--rtol R]\n"
    "       pt2onnx run OUT.onnx [--set batch=7].. [--data IN.npz] [--save OUT.npz]\n"
    "       pt2onnx ops | --version | --help\n";

static int exit_code(p2o_status s)
{
    switch (s) {
    case P2O_OK: return 0;
    case P2O_ERR_MISUSE: return EXIT_USAGE;
    case P2O_ERR_INPUT: return EXIT_INPUT;
    case P2O_ERR_UNSUPPORTED: return EXIT_UNSUPPORTED;
    case P2O_ERR_DYNAMIC: return EXIT_DYNAMIC;
    case P2O_ERR_VERIFY: return EXIT_VERIFY;
    default: return EXIT_IO;
    }
}

static void show_diag(void *user, const p2o_diagnostic *d)
{
    const Options *o = user;
    if (!o->holds_back && (!o->quiet || d->severity == P2O_ERROR))
        fprintf(stderr, "%s\n", d->text);
}

static void show_held_back(p2o_conversion *c, Options *o)
{
    o->holds_back = false;
    for (size_t i = 0; i < p2o_diag_count(c); i++)
        show_diag(o, p2o_diag_at(c, i));
}

static void show_line(void *user, const char *line)
{
    (void)user;
    printf("%s\n", line);
}

static p2o_conversion *new_handle(Options *o)
{
    p2o_options p;
    p2o_options_init(&p, sizeof p);
    p.user = o;
    p.on_diag = show_diag;
    p.on_line = show_line;
    p.opset = o->opset;
    p.external = o->external;
    p.state = o->state;
    p.dump = o->dump != NULL;
    p2o_conversion *c = p2o_new(&p);
    for (size_t i = 0; c && i < o->nkernels; i++)
        p2o_use_ort_library(c, o->kernels[i]);
    if (!c)
        fprintf(stderr, "pt2onnx: error: out of memory\n");
    return c;
}

static int finish(p2o_conversion *c, p2o_status s)
{
    if (s == P2O_ERR_NOMEM)
        fprintf(stderr, "pt2onnx: error: out of memory\n");
    p2o_free(c);
    return exit_code(s);
}

static int usage_error(const char *what, const char *which)
{
    fprintf(stderr, "pt2onnx: error: %s%s%s [usage]\n  pt2onnx --help shows what there is\n", what,
            which ? ": " : "", which ? which : "");
    return EXIT_USAGE;
}

static bool show_dumps(p2o_conversion *c, const char *stages)
{
    char  text[128];
    bool  ok = strlen(stages) < sizeof text;
    strncpy(text, stages, sizeof text - 1);
    text[sizeof text - 1] = 0;
    for (char *at = ok ? text : NULL; at;) {
        char *comma = strchr(at, ',');
        if (comma)
            *comma = 0;
        const char *dump = p2o_dump(c, at);
        if (dump)
            printf("# %s\n%s", at, dump);
        at = comma ? comma + 1 : NULL;
    }
    return ok;
}

static p2o_status run_checks(p2o_conversion *c, const Options *o, const char *model)
{
    p2o_verify_options v = { .size = sizeof v,
                             .data = o->data,
                             .ndata = o->ndata,
                             .sizes = o->sizes,
                             .atol = o->atol,
                             .rtol = o->rtol };
    return p2o_verify(c, model, &v);
}

static bool exists(const char *path, const char *suffix)
{
    char        full[4096];
    struct stat st;
    return (size_t)snprintf(full, sizeof full, "%s%s", path, suffix) < sizeof full &&
           lstat(full, &st) == 0;
}

/* A conversion that does not verify leaves no file: it is made and checked beside its place. */
static p2o_status write_checked(p2o_conversion *c, const Options *o, const char *out)
{
    char part[4096];
    if (o->verify && p2o_needs_kernels(c))
        fprintf(stderr, "pt2onnx: warning: the model was not checked: ONNX Runtime has no kernels "
                        "for operators of your own domain (--ort-library)\n");
    if (!o->verify || p2o_needs_kernels(c))
        return p2o_write_file(c, out);
    int n = 0;
    do {                            /* names that nobody has: nothing of the user's is lost */
        if ((size_t)snprintf(part, sizeof part, "%s.check%d.onnx", out, n++) + sizeof ".data" >
            sizeof part)
            return P2O_ERR_MISUSE;
    } while (exists(part, "") || exists(part, ".data"));
    p2o_status s = p2o_write_file(c, part);
    if (s == P2O_OK)
        s = run_checks(c, o, part);
    remove(part);
    strncat(part, ".data", sizeof part - strlen(part) - 1);
    remove(part);
    return s == P2O_OK ? p2o_write_file(c, out) : s;
}

static p2o_status write_report(p2o_conversion *c, const char *path)
{
    const char *text = p2o_report(c);
    FILE       *f = text ? fopen(path, "wb") : NULL;
    bool        ok = f && fputs(text, f) >= 0;
    if (f && fclose(f) != 0)
        ok = false;
    if (!ok)
        fprintf(stderr, "pt2onnx: error: cannot write %s [io]\n", path);
    return ok ? P2O_OK : P2O_ERR_IO;
}

static p2o_status make_model(p2o_conversion *c, const Options *o, size_t models)
{
    p2o_status s = P2O_OK;
    for (size_t i = 0; i < o->nlibrary && s == P2O_OK; i++)
        s = p2o_add_op_library(c, o->op_libraries[i]);
    for (size_t i = 0; i < o->ncustom && s == P2O_OK; i++)
        s = p2o_set_custom_op(c, o->custom_ops[i]);
    for (size_t i = 0; i < models && s == P2O_OK; i++)
        s = p2o_read_file(c, o->files[i]);
    if (o->ncheck && s == P2O_OK)
        s = p2o_read_checks(c);
    for (size_t i = 0; i < o->ncheck && s == P2O_OK; i++)
        s = o->without[i] ? P2O_OK : p2o_read_file(c, o->checks[i]);
    for (size_t i = 0; i < o->ndim && s == P2O_OK; i++)
        s = p2o_set_dim(c, o->dims[i]);
    for (size_t i = 0; i < o->ninput && s == P2O_OK; i++)
        s = p2o_set_input(c, o->inputs[i]);
    for (size_t i = 0; i < o->naxes && s == P2O_OK; i++)
        s = p2o_set_dynamic_axes(c, o->axes[i]);
    if (s == P2O_OK && o->input_names)
        s = p2o_set_input_names(c, o->input_names);
    if (s == P2O_OK && o->output_names)
        s = p2o_set_output_names(c, o->output_names);
    return s == P2O_OK ? p2o_convert(c) : s;
}

/* Checks at sizes of 1, which are not claimed without them, are left out. */
static bool leaves_out_ones(p2o_conversion *c, Options *o)
{
    bool any = false;
    for (size_t i = 0; i < o->ncheck; i++)
        any |= o->without[i] = p2o_check_has_one(c, i);
    return any;
}

static void tell_left_out(p2o_conversion *failed, const Options *o)
{
    size_t i = 0;
    while (i < p2o_diag_count(failed) && p2o_diag_at(failed, i)->severity != P2O_ERROR)
        i++;
    fprintf(stderr,
            "pt2onnx: warning: sizes of 1 are not claimed, the model is another there: %s\n",
            i < p2o_diag_count(failed) ? p2o_diag_at(failed, i)->message : "");
    for (i = 0; i < o->ncheck; i++)
        if (o->without[i])
            fprintf(stderr, "  left out: --check %s\n", o->checks[i]);
}

/* At sizes of 1 models and PyTorch often do otherwise.  Where checks there do not fit, the model is
 * made for 2 and more. */
static p2o_status make_with_checks(p2o_conversion **c, Options *o, size_t models)
{
    o->holds_back = true;
    p2o_status s = make_model(*c, o, models);
    if ((s == P2O_ERR_DYNAMIC || s == P2O_ERR_UNSUPPORTED) && leaves_out_ones(*c, o)) {
        p2o_conversion *again = new_handle(o), *failed = *c;
        if (!again)
            return P2O_ERR_NOMEM;
        s = make_model(again, o, models);
        if (s == P2O_OK)                /* quiet or not: what was asked for is not in the file */
            tell_left_out(failed, o);
        p2o_free(failed);
        *c = again;
    }
    show_held_back(*c, o);
    return s;
}

static p2o_status convert_steps(p2o_conversion **c, Options *o, size_t models, const char *out)
{
    p2o_status s = o->ncheck ? make_with_checks(c, o, models) : make_model(*c, o, models);
    if (o->dump)
        show_dumps(*c, o->dump);
    if (s == P2O_OK && o->report)           /* first: after a failure there is no model */
        s = write_report(*c, o->report);
    return s == P2O_OK ? write_checked(*c, o, out) : s;
}

static void show_result(p2o_conversion *c, const char *out, double seconds)
{
    struct stat st;
    double      mb = stat(out, &st) == 0 ? (double)st.st_size / 1e6 : 0;
    printf("%s", p2o_summary(c));
    printf("wrote %s  %.2f MB  %.3f s\n", out, mb, seconds);
    printf("next: pt2onnx verify %s --sizes '...'   pt2onnx run %s   or look at it in netron.app\n",
           out, out);
}

static const char *default_output(const char *model, char *buf, size_t n)
{
    const char *dot = strrchr(model, '.'), *slash = strrchr(model, '/');
    size_t      stem = dot && (!slash || dot > slash) ? (size_t)(dot - model) : strlen(model);
    return (size_t)snprintf(buf, n, "%.*s.onnx", (int)stem, model) < n ? buf : NULL;
}

/* The last file is the output, unless its name says that it is one more capture. */
static bool is_model_name(const char *path)
{
    static const char *const endings[] = { ".pt2", ".pt", ".pth", ".ep" };
    const char              *dot = strrchr(path, '.');
    for (size_t i = 0; dot && i < sizeof endings / sizeof *endings; i++)
        if (!strcmp(dot, endings[i]))
            return true;
    return false;
}

/* Under whatever spelling or link. */
static bool is_same_file(const char *a, const char *b)
{
    struct stat x, y;
    if (strcmp(a, b) == 0)
        return true;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* An ONNX model keeps its opset. */
static void print_start(const Options *o, const char *out)
{
    size_t n = strlen(o->files[0]);
    printf("pt2onnx %s: %s -> %s", p2o_version(), o->files[0], out);
    if (n < 5 || strcmp(o->files[0] + n - 5, ".onnx") != 0)
        printf(", opset %d", o->opset);
    printf("\n");
}

static int command_convert(Options *o)
{
    char        buf[4096];
    struct timespec t0, t1;
    bool        named = o->nfile > 1 && !is_model_name(o->files[o->nfile - 1]);
    size_t      models = o->nfile - named;
    const char *out = named ? o->files[models] : default_output(o->files[0], buf, sizeof buf);
    for (size_t i = 0; i < models; i++)
        if (!out || is_same_file(out, o->files[i]))
            return usage_error("the output would overwrite the model", o->files[i]);
    if (o->verify && !o->ndata && !o->sizes)
        return usage_error("--verify needs --data or --sizes", NULL);
    p2o_conversion *c = new_handle(o);
    if (!c)
        return EXIT_IO;
    clock_gettime(CLOCK_MONOTONIC, &t0);
    if (!o->quiet)
        print_start(o, out);
    p2o_status s = convert_steps(&c, o, models, out);
    clock_gettime(CLOCK_MONOTONIC, &t1);
    if (s == P2O_OK && !o->quiet)
        show_result(c, out,
                    (double)(t1.tv_sec - t0.tv_sec) + (double)(t1.tv_nsec - t0.tv_nsec) / 1e9);
    return finish(c, s);
}

static int command_inspect(Options *o)
{
    p2o_conversion *c = new_handle(o);
    p2o_status      s = P2O_OK;
    const char     *text;
    if (!c)
        return EXIT_IO;
    for (size_t i = 0; i < o->nfile && s == P2O_OK; i++) {
        s = p2o_inspect(c, o->files[i], &text);
        if (s == P2O_OK && text)
            printf("%s: %s", o->files[i], text);
    }
    return finish(c, s);
}

static int command_verify(Options *o)
{
    if (o->nfile != 1)
        return usage_error("verify takes one model", NULL);
    if (!o->ndata && !o->sizes)
        return usage_error("verify needs --data or --sizes", NULL);
    p2o_conversion *c = new_handle(o);
    return c ? finish(c, run_checks(c, o, o->files[0])) : EXIT_IO;
}

static int command_run(Options *o)
{
    const char     *text;
    p2o_run_options r = { .size = sizeof r, .sets = o->sets, .nset = o->nset, .save = o->save,
                          .data = o->ndata ? o->data[0] : NULL };
    if (o->nfile != 1 || o->ndata > 1)
        return usage_error("run takes one model and one --data", NULL);
    p2o_conversion *c = new_handle(o);
    if (!c)
        return EXIT_IO;
    p2o_status s = p2o_run(c, o->files[0], &r, &text);
    if (text)
        printf("%s", text);
    return finish(c, s);
}

/* {"captures": [{..}, ..], "checks": [..], "ones": [..]} as lines, and as Python that makes
 * the files. */
static void show_plan(const Options *o, const char *json)
{
    static const char *const titles[] = { "captures", "checks", "ones" };
    static const char *const files[] = { "capture", "check", "one" };
    char        names[3][4096] = { "", "", "" };
    const char *at = json;
    for (int k = 0; k < 3; k++) {
        int n = 0;
        at = strstr(at, titles[k]);
        for (at = strchr(at, '['); *at && *at != ']'; at++) {
            const char *end = strchr(at, '}');
            if (*at != '{' || !end)
                continue;
            char name[32];
            snprintf(name, sizeof name, "%s%d.pt2", files[k], ++n);
            printf("%s: %.*s\n", name, (int)(end - at - 1), at + 1);
            strncat(names[k], k ? " --check " : " ", sizeof names[k] - strlen(names[k]) - 1);
            strncat(names[k], name, sizeof names[k] - strlen(names[k]) - 1);
            at = end;
        }
    }
    printf(
        "\nplan = %s\n"
        "for kind, sizes in plan.items():                "
        "# example(batch=2, seq=97): the model's arguments\n"
        "    for i, s in enumerate(sizes, 1):\n"
        "        torch.export.save(torch.export.export(model, example(**s)), "
        "f\"{kind[:-1]}{i}.pt2\")\n\n"
        "pt2onnx%s OUT.onnx",
        json, names[0]);
    for (size_t i = 0; i < o->ninput; i++)
        printf(" --input '%s'", o->inputs[i]);
    for (size_t i = 0; i < o->ndim; i++)
        printf(" --dim '%s'", o->dims[i]);
    printf("%s%s\n", names[1], names[2]);
}

static int command_plan(Options *o)
{
    p2o_conversion *c = new_handle(o);
    p2o_status      s = P2O_OK;
    const char     *json = NULL;
    if (!c)
        return EXIT_IO;
    for (size_t i = 0; i < o->ndim && s == P2O_OK; i++)
        s = p2o_set_dim(c, o->dims[i]);
    for (size_t i = 0; i < o->ninput && s == P2O_OK; i++)
        s = p2o_set_input(c, o->inputs[i]);
    if (s == P2O_OK)
        s = p2o_plan(c, &json);
    if (json && o->json)
        printf("%s\n", json);
    else if (json)
        show_plan(o, json);
    return finish(c, s);
}

static int command_ops(Options *o)
{
    p2o_conversion *c = new_handle(o);
    if (!c)
        return EXIT_IO;
    const char *text = p2o_ops_text(c);
    printf("%s", text ? text : "");
    return finish(c, text ? P2O_OK : P2O_ERR_NOMEM);
}

static bool add_text(const char **list, size_t *n, const char *value)
{
    if (*n == MOST)
        return false;
    list[(*n)++] = value;
    return true;
}

static bool set_external(Options *o, const char *v)
{
    static const char *const names[] = { "auto", "always", "never", "link" };
    for (int i = 0; i < 4; i++) {
        if (strcmp(v, names[i]) == 0) {
            o->external = (p2o_external)i;
            return true;
        }
    }
    return false;
}

static bool set_state(Options *o, const char *v)
{
    o->state = strcmp(v, "io") == 0 ? P2O_STATE_IO : P2O_STATE_DROP;
    return o->state == P2O_STATE_IO || strcmp(v, "drop") == 0;
}

static bool set_number(double *out, const char *v)
{
    char *end;
    *out = strtod(v, &end);
    return *v && !*end && *out >= 0;
}

static bool set_opset(Options *o, const char *v)
{
    char *end;
    long  n = strtol(v, &end, 10);
    o->opset = *v && !*end && n > 0 && n < 1000 ? (int)n : 0;
    return o->opset != 0;
}

static bool set_text(const char **out, const char *v)
{
    *out = v;
    return true;
}

/* An option that takes a value.  1: done, 0: a bad value, -1: no such option. */
static int take_value(Options *o, const char *name, const char *v)
{
    if (!strcmp(name, "--input")) return add_text(o->inputs, &o->ninput, v);
    if (!strcmp(name, "--dynamic-axes")) return add_text(o->axes, &o->naxes, v);
    if (!strcmp(name, "--check")) return add_text(o->checks, &o->ncheck, v);
    if (!strcmp(name, "--custom-op")) return add_text(o->custom_ops, &o->ncustom, v);
    if (!strcmp(name, "--ort-library")) return add_text(o->kernels, &o->nkernels, v);
    if (!strcmp(name, "--op-library")) return add_text(o->op_libraries, &o->nlibrary, v);
    if (!strcmp(name, "--dim")) return add_text(o->dims, &o->ndim, v);
    if (!strcmp(name, "--data")) return add_text(o->data, &o->ndata, v);
    if (!strcmp(name, "--set")) return add_text(o->sets, &o->nset, v);
    if (!strcmp(name, "--input-names")) return set_text(&o->input_names, v);
    if (!strcmp(name, "--output-names")) return set_text(&o->output_names, v);
    if (!strcmp(name, "--sizes")) return set_text(&o->sizes, v);
    if (!strcmp(name, "--save")) return set_text(&o->save, v);
    if (!strcmp(name, "--dump")) return set_text(&o->dump, v);
    if (!strcmp(name, "--report")) return set_text(&o->report, v);
    if (!strcmp(name, "--opset")) return set_opset(o, v);
    if (!strcmp(name, "--external-data")) return set_external(o, v);
    if (!strcmp(name, "--state")) return set_state(o, v);
    if (!strcmp(name, "--atol")) return set_number(&o->atol, v);
    if (!strcmp(name, "--rtol")) return set_number(&o->rtol, v);
    return -1;
}

/* One argument, as `--name value` or `--name=value`; *i moves past it.  0, or an exit code. */
static int take_argument(Options *o, int argc, char **argv, int *i)
{
    char        name[64];
    const char *arg = argv[*i], *eq = strchr(arg, '=');
    if (strncmp(arg, "--", 2) != 0 || !arg[2])
        return add_text(o->files, &o->nfile, arg) ? 0 : usage_error("too many files", NULL);
    if (!strcmp(arg, "--quiet")) {
        o->quiet = true;
        return 0;
    }
    if (!strcmp(arg, "--json")) {
        o->json = true;
        return 0;
    }
    if (!strcmp(arg, "--verify")) {
        o->verify = true;
        return 0;
    }
    size_t n = eq ? (size_t)(eq - arg) : strlen(arg);
    if (n >= sizeof name)
        return usage_error("no such option", arg);
    memcpy(name, arg, n);
    name[n] = 0;
    const char *value = eq ? eq + 1 : *i + 1 < argc ? argv[*i + 1] : NULL;
    int         done = take_value(o, name, value ? value : "");
    if (done < 0)
        return usage_error("no such option", arg);
    if (!value || !done)
        return usage_error(value ? "a bad value for" : "no value for", name);
    *i += !eq;
    return 0;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(Options *o);
    } commands[] = { { "inspect", command_inspect },
                     { "verify", command_verify },
                     { "run", command_run },
                     { "ops", command_ops },
                     { "plan", command_plan } };
    Options o = { .opset = 20, .atol = -1, .rtol = -1 };
    int (*run)(Options *) = command_convert;
    int  first = 1;

    for (size_t i = 0; argc > 1 && i < sizeof commands / sizeof *commands; i++) {
        if (!strcmp(argv[1], commands[i].name)) {
            run = commands[i].run;
            first = 2;
        }
    }
    for (int i = first; i < argc; i++) {
        if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h"))
            return fputs(usage_text, stdout) < 0;
        if (!strcmp(argv[i], "--version"))
            return printf("pt2onnx %s\n", p2o_version()) < 0;
        int bad = take_argument(&o, argc, argv, &i);
        if (bad)
            return bad;
    }
    if (!o.nfile && run != command_ops && run != command_plan) {
        fputs(usage_text, stderr);
        return EXIT_USAGE;
    }
    int code = run(&o);
    return fflush(stdout) == 0 ? code : EXIT_IO;
}
