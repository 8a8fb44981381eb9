#include "base/diag.h"

#include "base/vec.h"

struct Diags {
    Arena      *arena;
    DiagFn     *fn;
    void       *user;
    const char *file;
    size_t      nerror;
    Status      status;
    VEC(Diag)   list;
    VEC(Place)  places;
    Map         place_index;
    Map         said;           /* notes and warnings */
};

static const struct {
    const char *name;
    Status      status;
    Severity    severity;
} kinds[] = {
#define X(id, name, status, severity) [id] = { name, status, severity },
    DIAG_KINDS(X)
#undef X
};

const char *p2o_diag_kind_name(DiagKind k) { return kinds[k].name; }
Severity    p2o_diag_severity(DiagKind k) { return kinds[k].severity; }
Status      p2o_diag_status(DiagKind k) { return kinds[k].status; }

Diags *p2o_diags_new(Arena *a, DiagFn *fn, void *user)
{
    Diags *d = NEW(a, Diags);
    d->arena = a;
    d->fn = fn;
    d->user = user;
    d->place_index.arena = d->said.arena = a;
    return d;
}

Arena *p2o_diags_arena(const Diags *d) { return d->arena; }

const char *p2o_diags_file(Diags *d, const char *name)
{
    const char *before = d->file;
    d->file = name;
    return before;
}

/* Passes may come by the same place twice: a note is made once. */
static bool was_said(Diags *d, const Diag *x)
{
    if (p2o_diag_severity(x->kind) == SEV_ERROR)
        return false;
    void **slot = p2o_map_slot(&d->said, str_of(p2o_printf(d->arena, "%u %s", x->loc, x->text)));
    bool   said = *slot != NULL;
    *slot = d;
    return said;
}

static void report(Diags *d, Diag x)
{
    if (was_said(d, &x))
        return;
    x.file = d->file;
    if (p2o_diag_severity(x.kind) == SEV_ERROR && d->nerror++ == 0)
        d->status = p2o_diag_status(x.kind);
    VEC_PUSH(d->arena, &d->list, x);
    if (d->fn)
        d->fn(d->user, &x);
}

void p2o_vdiag(Diags *d, DiagKind k, Loc loc, const char *fmt, va_list ap)
{
    report(d, (Diag){ .kind = k, .loc = loc, .text = p2o_vprintf(d->arena, fmt, ap) });
}

void p2o_diag(Diags *d, DiagKind k, Loc loc, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    p2o_vdiag(d, k, loc, fmt, ap);
    va_end(ap);
}

void p2o_diag_advise(Diags *d, DiagKind k, Loc loc, const char *advice, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    report(d, (Diag){ .kind = k, .loc = loc, .advice = advice,
                      .text = p2o_vprintf(d->arena, fmt, ap) });
    va_end(ap);
}

void p2o_diag_capture(Diags *d, DiagKind k, Loc loc, const char *capture, const char *advice,
                      const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    report(d, (Diag){ .kind = k, .loc = loc, .advice = advice, .capture = capture,
                      .text = p2o_vprintf(d->arena, fmt, ap) });
    va_end(ap);
}

size_t      p2o_diags_count(const Diags *d) { return d->list.n; }
const Diag *p2o_diags_at(const Diags *d, size_t i) { return &d->list.at[i]; }
size_t      p2o_diags_errors(const Diags *d) { return d->nerror; }
Status      p2o_diags_status(const Diags *d) { return d->status; }

static Str last_component(Str path)
{
    for (size_t i = path.n; i > 0; i--)
        if (path.p[i - 1] == '/' || path.p[i - 1] == '\\')
            return (Str){ path.p + i, path.n - i };
    return path;
}

static const char *kept(Diags *d, Str s) { return s.n ? p2o_str_dup(d->arena, s) : NULL; }

Loc p2o_place_add(Diags *d, PlaceInfo x)
{
    Place       p = { .file = kept(d, last_component(x.file)),
                      .func = kept(d, x.func),
                      .module = kept(d, x.module),
                      .text = kept(d, x.text),
                      .line = x.line,
                      .library = x.library };
    const char *key = p2o_printf(d->arena, "%s:%u:%s:%s", p.file ? p.file : "", p.line,
                                 p.func ? p.func : "", p.module ? p.module : "");
    void **slot = p2o_map_slot(&d->place_index, str_of(key));
    if (!*slot) {
        VEC_PUSH(d->arena, &d->places, p);
        *slot = (void *)(uintptr_t)d->places.n;
    }
    return (Loc)(uintptr_t)*slot;
}

const Place *p2o_place_at(const Diags *d, Loc loc)
{
    return loc && loc <= d->places.n ? &d->places.at[loc - 1] : NULL;
}

const char *p2o_diag_text(const Diags *d, const Diag *x)
{
    enum { LONGEST_SOURCE = 120 };
    static const char *const severity[] = { "note", "warning", "error" };
    Buf b = { .arena = d->arena };

    if (x->file)
        p2o_putf(&b, "%s: ", x->file);
    p2o_putf(&b, "%s: %s", severity[p2o_diag_severity(x->kind)], x->text);
    if (p2o_diag_severity(x->kind) == SEV_ERROR)
        p2o_putf(&b, " [%s]", p2o_diag_kind_name(x->kind));
    const Place *p = p2o_place_at(d, x->loc);
    if (p && (p->file || p->module)) {
        p2o_puts(&b, "\n  at ");
        if (p->file)
            p2o_putf(&b, "%s (%s:%u)", p->func ? p->func : "?", p->file, p->line);
        if (p->module)
            p2o_putf(&b, "%smodule %s", p->file ? ", " : "", p->module);
        if (p->text)
            p2o_putf(&b, ": %.*s%s", LONGEST_SOURCE, p->text,
                     strlen(p->text) > LONGEST_SOURCE ? " ..." : "");
    }
    if (x->advice)
        p2o_putf(&b, "\n  %s", x->advice);
    return b.at;
}
