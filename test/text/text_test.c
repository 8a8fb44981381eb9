/* Runs the text tests: a program and what it must become.
 *
 * usage: text_test [--accept] FILE... (with uncovered.lst among them, they are all there are)
 *
 * A file holds cases.  Each begins with `=== name`, may set `opset N`, `declare seq=1..9` or
 * `declare x:batch,?`, `custom mylib::foo=com.example:Foo` and `function <...> Foo (X) => (Z) {}`
 * for operators without a row, the capture's own `guard L['x'].size()[0] < 9` and
 * `range s0=2..8`, gives a program (ir/program_text.h), perhaps further ones after `--- capture` (the same model at other
 * sizes), and ends with one expectation:
 *     --- onnx      the graph after the passes, as onnx/graph_text.h prints it
 *     --- error     lines that must all occur in the diagnostics
 *     --- said      the same of a program that converts, and of the metadata on its sizes
 * Blanks at line ends and runs of blanks do not matter.  Every schema must parse, and every row of
 * the operator tables must be used by some case or be named in uncovered.lst beside this file, a
 * list that may only shrink: a row in it that a case uses fails too.  --accept rewrites the
 * expectations of cases that fail: read the difference before committing it. */
#include <stdio.h>
#include <stdlib.h>

#include "aten/custom.h"
#include "aten/functional.h"
#include "aten/infer.h"
#include "aten/lower.h"
#include "base/num.h"
#include "dyn/lineup.h"
#include "dyn/declare.h"
#include "dyn/settle.h"
#include "ir/program_text.h"
#include "onnx/graph_text.h"
#include "opt/opt.h"
#include "report.h"

enum { MOST_CAPTURES = 20 };

typedef struct Case {
    Str  name, program[MOST_CAPTURES], expected;
    int  nprogram;
    Str  declares[8];
    Str  guards[8];
    Str  customs[8], functions[8];
    ProgramRange ranges[8];
    int  ndeclare, opset, nguard, nrange, ncustom, nfunction;
    bool wants_error, wants_said;
} Case;

static size_t npassed, nfailed;
static Map    used;             /* targets that cases call */

static Str next_line(Str *text) { return p2o_str_cut(*text, '\n', text); }

static Str up_to(const char *from, const char *to) { return (Str){ from, (size_t)(to - from) }; }

/* "s0=2..8" or "s0=2.." */
static bool read_range(Str text, ProgramRange *r)
{
    Str         range, name = p2o_str_cut(text, '=', &range);
    const char *dots = memchr(range.p, '.', range.n);
    r->expr = p2o_str_dup(used.arena, name);
    r->hi = NO_UPPER;
    return dots && p2o_parse_i64(up_to(range.p, dots), &r->lo) &&
           (dots + 2 == range.p + range.n ||
            p2o_parse_i64(up_to(dots + 2, range.p + range.n), &r->hi));
}

static void add_capture(Program *p, const Case *c)
{
    for (int i = 0; i < c->nguard; i++)
        VEC_PUSH(p->arena, &p->guards, c->guards[i].p);
    for (int i = 0; i < c->nrange; i++) {
        ProgramRange r = c->ranges[i];
        r.dim = p2o_dim_sym(p->dims, r.expr);
        VEC_PUSH(p->arena, &p->ranges, r);
    }
}

/* The next case, *text moving past it.  false at the end. */
static bool next_case(Str *text, Case *c)
{
    *c = (Case){ .opset = 20 };
    while (text->n && !p2o_str_starts(*text, "=== "))
        next_line(text);
    if (!text->n)
        return false;
    Str line = next_line(text);
    c->name = (Str){ line.p + 4, line.n - 4 };
    const char *start = text->p;
    while (text->n && (!p2o_str_starts(*text, "--- ") || p2o_str_starts(*text, "--- capture"))) {
        if (p2o_str_starts(*text, "--- capture") && c->nprogram < MOST_CAPTURES - 1) {
            c->program[c->nprogram++] = up_to(start, text->p);
            next_line(text);
            start = text->p;
            continue;
        }
        const char *at = text->p;
        line = p2o_str_trim(next_line(text));
        int64_t n;
        if (p2o_str_starts(line, "opset ") && p2o_parse_i64((Str){ line.p + 6, line.n - 6 }, &n))
            c->opset = (int)n;
        else if (p2o_str_starts(line, "declare ") && c->ndeclare < 8)
            c->declares[c->ndeclare++] =
                str_of(p2o_str_dup(used.arena, (Str){ line.p + 8, line.n - 8 }));
        else if (p2o_str_starts(line, "custom ") && c->ncustom < 8)
            c->customs[c->ncustom++] =
                str_of(p2o_str_dup(used.arena, (Str){ line.p + 7, line.n - 7 }));
        else if (p2o_str_starts(line, "function ") && c->nfunction < 8)
            c->functions[c->nfunction++] =
                str_of(p2o_str_dup(used.arena, (Str){ line.p + 9, line.n - 9 }));
        else if (p2o_str_starts(line, "guard ") && c->nguard < 8)
            c->guards[c->nguard++] =
                str_of(p2o_str_dup(used.arena, (Str){ line.p + 6, line.n - 6 }));
        else if (p2o_str_starts(line, "range ") && c->nrange < 8)
            c->nrange += read_range((Str){ line.p + 6, line.n - 6 }, &c->ranges[c->nrange]);
        else
            continue;
        memset((char *)(uintptr_t)at, ' ', (size_t)(line.p + line.n - at));
    }
    c->program[c->nprogram++] = up_to(start, text->p);
    line = next_line(text);
    c->wants_error = p2o_str_starts(line, "--- error");
    c->wants_said = p2o_str_starts(line, "--- said");
    start = text->p;
    while (text->n && !p2o_str_starts(*text, "=== "))
        next_line(text);
    c->expected = up_to(start, text->n ? text->p : text->p);
    return true;
}

/* The next line that says something: blanks at its ends cut, runs of them as one. */
static const char *squeezed_line(Arena *a, Str *s)
{
    while (s->n) {
        Str  line = p2o_str_trim(next_line(s));
        Buf  b = { .arena = a };
        bool blank = false;
        for (size_t i = 0; i < line.n; i++) {
            if (line.p[i] == ' ' && blank)
                continue;
            blank = line.p[i] == ' ';
            p2o_put(&b, &line.p[i], 1);
        }
        if (b.n && b.at[0] != '#')
            return b.at;
    }
    return NULL;
}

/* An expected line without a comment says nothing of types. */
static bool graphs_match(Arena *a, Str got, Str want)
{
    for (;;) {
        const char *g = squeezed_line(a, &got), *w = squeezed_line(a, &want);
        if (!g || !w)
            return g == w;
        const char *comment = strstr(w, " # ") ? NULL : strstr(g, " # ");
        size_t      n = comment ? (size_t)(comment - g) : strlen(g);
        if (strlen(w) != n || memcmp(g, w, n) != 0)
            return false;
    }
}

static void note_used(Program *p)
{
    for (size_t i = 0; i < p->main->calls.n; i++)
        map_put(&used, str_of(p2o_str_dup(used.arena, str_of(p->main->calls.at[i]->target))),
                &used);
}

/* Types of a program that may be a fixed capture, or several. */
static bool settle_types(Ops *ops, Program *const *p, int n, Bindings *b)
{
    for (int k = 0; k < n; k++) {
        note_used(p[k]);
        if (!p2o_functional(ops, p[k]))
            return false;
        note_used(p[k]);
    }
    Lineup l = { .ops = ops, .p = p, .n = n };
    return (n == 1 || p2o_line_up_inputs(p, n, b)) && p2o_line_up(&l, b) && p2o_settle(&l, b);
}

static bool is_range(Str s) { return memchr(s.p, '=', s.n) != NULL; }

/* A case whose sizes are settled; lowering it changes nothing in it. */
typedef struct Settled {
    Diags    *diags;
    Dims     *dims;
    Bindings *bind;
    Ops      *ops;
    Program  *p[MOST_CAPTURES];
    bool      ok;
} Settled;

static void give_meanings(Diags *d, Ops *ops, const Case *c)
{
    CustomOps *x = p2o_custom_new(p2o_diags_arena(d));
    p2o_ops_set_custom(ops, x);
    for (int i = 0; i < c->nfunction; i++)
        p2o_functions_parse(d, &x->library, c->functions[i]);
    for (int i = 0; i < c->ncustom; i++) {
        const char *wrong = p2o_custom_map(x, ops, c->customs[i].p);
        if (wrong)
            p2o_diag(d, DIAG_MISUSE, 0, "%s", wrong);
    }
}

static Settled settle_case(Diags *d, const Case *c)
{
    Arena  *a = p2o_diags_arena(d);
    Settled s = { .diags = d, .dims = p2o_dims_new(a) };
    s.bind = p2o_bindings_new(s.dims, c->nprogram);
    s.ops = p2o_ops_new(a, s.dims);
    give_meanings(d, s.ops, c);
    for (int k = 0; k < c->nprogram; k++)
        s.p[k] = p2o_program_parse(d, s.dims, c->program[k]);
    if (s.p[0])
        add_capture(s.p[0], c);
    for (int i = 0; s.p[0] && i < c->ndeclare; i++)
        is_range(c->declares[i]) ? p2o_declare_range(s.p[0], s.bind, c->declares[i])
                                 : p2o_declare_input(s.p[0], s.bind, c->declares[i]);
    if (!p2o_diags_errors(d)) {
        p2o_declare_rest(s.p[0]);
        s.ok = settle_types(s.ops, s.p, c->nprogram, s.bind);
    }
    return s;
}

static const char *all_said(const Settled *s, size_t from, Buf *out)
{
    for (size_t i = from; i < p2o_diags_count(s->diags); i++)
        p2o_putf(out, "%s\n", p2o_diag_text(s->diags, p2o_diags_at(s->diags, i)));
    return out->at ? out->at : "";
}

/* What the program becomes: the graph's text, or the diagnostics. */
static const char *outcome(const Settled *s, const Case *c, bool *failed)
{
    Buf    out = { .arena = p2o_diags_arena(s->diags) };
    Graph *g = s->ok ? p2o_lower(s->p[0], &(LowerOptions){ .opset = c->opset }) : NULL;
    *failed = g == NULL;
    if (g) {
        p2o_opt(g);
        const char *wrong = p2o_graph_check(g);
        if (wrong || !c->wants_said)
            return wrong ? wrong : p2o_graph_text(g, true);
        p2o_putf(&out, "%s\n", p2o_dims_json(s->p[0], s->bind, g));
    }
    return all_said(s, 0, &out);
}

static bool all_lines_occur(Arena *a, const char *text, Str lines)
{
    bool any = false;
    while (lines.n) {
        Str line = p2o_str_trim(next_line(&lines));
        if (!line.n)
            continue;
        any = true;
        if (!strstr(text, p2o_str_dup(a, line)))
            return false;
    }
    return any;
}

/* Whether a row of the program says that it may be refused for its opset. */
static bool a_row_says_opset(const Program *p, const Ops *ops, int opset)
{
    for (size_t i = 0; i < p->main->calls.n; i++) {
        const AtenOp *op = p2o_ops_find(ops, str_of(p->main->calls.at[i]->target));
        if (op && (!p2o_op_in_opset(op, opset) || (op->limits && strstr(op->limits, "opset"))))
            return true;
    }
    return false;
}

/* What converts at one opset does so at all of them, but where its row says otherwise. */
static void check_opsets(const char *path, const Case *c, const Settled *s)
{
    for (int opset = OPSET_MIN; opset <= OPSET_MAX; opset++) {
        Buf    said = { .arena = p2o_diags_arena(s->diags) };
        size_t before = p2o_diags_count(s->diags);
        Graph *g = opset == c->opset ? NULL : p2o_lower(s->p[0], &(LowerOptions){ .opset = opset });
        if (g)
            p2o_opt(g);
        const char *wrong = g ? p2o_graph_check(g) : NULL;
        if (wrong || (!g && opset != c->opset && !a_row_says_opset(s->p[0], s->ops, opset))) {
            printf("%s: %.*s: refused at opset %d, and its row does not say so: %s", path,
                   STR_ARG(c->name), opset, wrong ? wrong : all_said(s, before, &said));
            nfailed++;
        }
    }
}

/* What holds of every operator is in no row. */
static bool is_general(const char *text)
{
    return p2o_str_ends(str_of(text), ": complex tensors") ||
           p2o_str_ends(str_of(text), " must be a constant") ||
           strstr(text, " must be a number, not ") ||
           p2o_str_ends(str_of(text), " that is not computed");
}

/* What a case shows to be refused, the row of the operator admits. */
static void check_limits(const char *path, const Case *c, Diags *d)
{
    Arena *a = p2o_diags_arena(d);
    Ops   *ops = p2o_ops_new(a, p2o_dims_new(a));
    for (size_t i = 0; i < p2o_diags_count(d); i++) {
        const Diag   *x = p2o_diags_at(d, i);
        const char   *end = strstr(x->text, ": ");
        const AtenOp *op =
            x->kind == DIAG_UNSUPPORTED && end ? p2o_ops_find(ops, up_to(x->text, end)) : NULL;
        if (op && !op->limits && !op->from && !op->to && !is_general(x->text)) {
            printf("%s: %.*s: refused, and its row has no limits: %s\n", path, STR_ARG(c->name),
                   x->text);
            nfailed++;
        }
    }
}

static void run_case(const char *path, const Case *c, Buf *accepted)
{
    Arena      *a = p2o_arena_new(NULL, NULL);
    Diags      *d = p2o_diags_new(a, NULL, NULL);
    Settled     s = settle_case(d, c);
    bool        failed;
    const char *got = outcome(&s, c, &failed);
    bool        ok = failed == c->wants_error &&
              (failed || c->wants_said ? all_lines_occur(a, got, c->expected)
                      : graphs_match(a, str_of(got), c->expected));
    check_limits(path, c, d);
    if (ok) {
        npassed++;
    } else {
        nfailed++;
        printf("%s: %.*s: failed; got\n%s", path, STR_ARG(c->name), got);
    }
    if (accepted && ok)
        p2o_put(accepted, c->expected.p, c->expected.n);
    else if (accepted)
        p2o_putf(accepted, "%s\n", got);
    if (!failed && !c->wants_error)
        check_opsets(path, c, &s);
    p2o_arena_free(a);
}

static void run_file(Arena *a, const char *path, bool accept)
{
    Diags      *d = p2o_diags_new(a, NULL, NULL);
    size_t      n = 0, before = nfailed;
    const char *text = p2o_read_text(d, path, &n), *kept;
    Buf         out = { .arena = a };
    Case        c;
    if (!text) {
        printf("%s: cannot read\n", path);
        nfailed++;
        return;
    }
    kept = p2o_str_dup(a, (Str){ text, n });            /* as it was: next_case blanks directives */
    Str rest = { text, n };
    const char *done = text;
    while (next_case(&rest, &c)) {
        p2o_put(&out, kept + (done - text), (size_t)(c.expected.p - done));
        run_case(path, &c, &out);
        done = c.expected.p + c.expected.n;
    }
    if (!accept || nfailed == before)
        return;
    FILE *f = fopen(path, "wb");
    if (f) {
        fwrite(out.at, 1, out.n, f);
        fclose(f);
    }
}

static Map uncovered;           /* rows that no case uses so far */

static void read_uncovered(Arena *a, const char *path)
{
    size_t      n = 0;
    const char *text = p2o_read_text(p2o_diags_new(a, NULL, NULL), path, &n);
    for (Str rest = { text, text ? n : 0 }; rest.n;) {
        Str line = p2o_str_trim(next_line(&rest));
        if (line.n && line.p[0] != '#')
            map_put(&uncovered, line, &uncovered);
    }
}

static void check_rows(Arena *a)
{
    Dims       *t = p2o_dims_new(a);
    Ops        *ops = p2o_ops_new(a, t);
    const char *key, *error;
    const AtenOp *op;
    for (size_t i = 0; (op = p2o_ops_at(ops, i, &key)); i++) {
        if (!p2o_schema_parse(a, t, op->schema, &error)) {
            printf("%s: schema does not parse: %s\n", key, error);
            nfailed++;
        } else if (!p2o_map_get(&used, str_of(key)) != !!p2o_map_get(&uncovered, str_of(key))) {
            printf(p2o_map_get(&used, str_of(key)) ? "%s: is used now: take it off the list\n"
                                                   : "%s: no text test uses this row\n", key);
            nfailed++;
        } else {
            npassed++;
        }
    }
}

int main(int argc, char **argv)
{
    Arena *a = p2o_arena_new(NULL, NULL);
    bool   accept = argc > 1 && same(argv[1], "--accept");
    used.arena = uncovered.arena = a;
    bool   all = false;
    for (int i = 1 + accept; i < argc; i++) {
        if (!p2o_str_ends(str_of(argv[i]), ".lst")) {
            run_file(a, argv[i], accept);
            continue;
        }
        all = true;
        read_uncovered(a, argv[i]);
    }
    if (all)
        check_rows(a);
    printf("%zu passed, %zu failed\n", npassed, nfailed);
    p2o_arena_free(a);
    return nfailed != 0;
}
