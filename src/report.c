#include "report.h"

#include "front/pt2.h"
#include "onnx/onnx_read.h"

static void put_bytes(Buf *b, uint64_t n)
{
    if (n < 10000)
        p2o_putf(b, "%llu bytes", (unsigned long long)n);
    else
        p2o_putf(b, "%.1f %s", n < 10000000 ? (double)n / 1e3 : (double)n / 1e6,
                 n < 10000000 ? "kB" : "MB");
}

static void put_value_line(Buf *b, const Graph *g, const char *kind, const Value *v)
{
    p2o_putf(b, "  %-7s %s: %s[", kind, v->name, p2o_dtype_torch(v->dtype));
    for (int i = 0; i < v->shape.rank; i++)
        p2o_putf(b, "%s%s", i ? ", " : "", p2o_graph_dim(g, v->shape.at[i]));
    p2o_puts(b, "]\n");
}

const char *p2o_report_graph(const Graph *g)
{
    Buf    b = { .arena = g->arena };
    size_t n = 0;
    for (size_t i = 0; i < g->inputs.n; i++)
        put_value_line(&b, g, "input", g->inputs.at[i]);
    for (size_t i = 0; i < g->outputs.n; i++)
        put_value_line(&b, g, "output", g->outputs.at[i]);
    for (const Node *x = g->first; x; x = x->next)
        n++;
    p2o_putf(&b, "  %zu nodes, %zu initializers, opset %d\n", n, g->inits.n, g->opset);
    return b.at;
}

const char *p2o_report_ops(Arena *a, Ops *o)
{
    Buf         b = { .arena = a };
    const char *key;
    size_t      n = 0;
    for (const AtenOp *op; (op = p2o_ops_at(o, n, &key)); n++)
        p2o_putf(&b, op->limits ? "%-52s %d..%d  %s\n" : "%-52s %d..%d\n", key, p2o_op_from(op),
                 p2o_op_to(op), op->limits);
    p2o_putf(&b,
             "%zu operators, the opsets they convert to, their limits; in-place forms included\n",
             n);
    return b.at;
}

const char *p2o_report_arrays(Arena *a, const NamedArray *v, size_t n)
{
    Buf b = { .arena = a };
    for (size_t i = 0; i < n; i++) {
        const Array *x = &v[i].array;
        ArrayStats   s = p2o_array_stats(x);
        p2o_putf(&b, "%s: %s%s  min %.6g  max %.6g  mean %.6g", v[i].name,
                 p2o_dtype_torch(x->dtype), p2o_array_shape_text(a, x), s.min, s.max, s.mean);
        if (s.nnan)
            p2o_putf(&b, "  %llu NaN", (unsigned long long)s.nnan);
        p2o_puts(&b, "\n");
    }
    return b.at ? b.at : "";
}

static void put_program_type(Buf *b, const Program *p, const Type *t)
{
    switch (t->kind) {
    case TY_TENSOR:
        p2o_putf(b, "%s[%s]", p2o_dtype_torch(t->dtype), p2o_shape_text(p->dims, t->shape));
        break;
    case TY_INT: p2o_putf(b, "int %s", p2o_dim_text(p->dims, t->value)); break;
    case TY_FLOAT: p2o_puts(b, "float"); break;
    case TY_BOOL: p2o_puts(b, "bool"); break;
    case TY_NONE: p2o_puts(b, "object"); break;
    }
}

static void put_constant(Buf *b, const Program *p, const Arg *x)
{
    switch (x->kind) {
    case ARG_INT: p2o_puts(b, p2o_dim_text(p->dims, x->i)); break;
    case ARG_FLOAT: p2o_putf(b, "%g", x->f); break;
    case ARG_BOOL: p2o_puts(b, x->b ? "True" : "False"); break;
    case ARG_STR: p2o_putf(b, "'%s'", x->s); break;
    default: p2o_puts(b, "None"); break;
    }
}

static void count_targets(const Body *body, Map *counts)
{
    for (size_t i = 0; i < body->calls.n; i++) {
        const Call *c = body->calls.at[i];
        void      **slot = p2o_map_slot(counts, str_of(c->target));
        *slot = (void *)((uintptr_t)*slot + 1);
        for (int k = 0; k < c->nargs; k++)
            if (c->args[k].kind == ARG_BODY)
                count_targets(c->args[k].body, counts);
    }
}

/* An operator is supported under its own name or, in place, under that of its functional twin. */
static bool is_supported(const Ops *o, Arena *a, Str target)
{
    Str overload, name = p2o_str_cut(target, '.', &overload);
    if (p2o_ops_find(o, target))
        return true;
    if (!p2o_str_ends(name, "_"))
        return false;
    return p2o_ops_find(o, str_of(p2o_printf(a, "%.*s%s%.*s", (int)name.n - 1, name.p,
                                             overload.n ? "." : "", STR_ARG(overload))));
}

static void put_operators(Buf *b, const Program *p, const Ops *o)
{
    Map    counts = { .arena = p->arena };
    size_t missing = 0;
    count_targets(p->main, &counts);
    p2o_puts(b, "operators:\n");
    for (size_t i = 0; i < counts.n; i++) {
        bool ok = is_supported(o, p->arena, counts.at[i].key);
        missing += !ok;
        p2o_putf(b, "  %5zu  %.*s%s\n", (size_t)(uintptr_t)counts.at[i].value,
                 STR_ARG(counts.at[i].key), ok ? "" : "   not supported");
    }
    if (missing)
        p2o_putf(b, "  %zu of %zu operators are not supported\n", missing, counts.n);
}

static void put_program(Buf *b, const Program *p, const Ops *o)
{
    uint64_t bytes = 0;
    p2o_putf(b, "a torch.export program, saved by %s\n", p->producer);
    for (size_t i = 0; i < p->inputs.n; i++) {
        const InputSpec *s = &p->inputs.at[i];
        p2o_putf(b, "input   %s: ", s->name);
        if (s->var) {
            put_program_type(b, p, &s->var->recorded);
        } else {
            put_constant(b, p, &s->constant);
            p2o_puts(b, ", constant since capture");
        }
        p2o_puts(b, "\n");
    }
    for (size_t i = 0; i < p->outputs.n; i++) {
        static const char *const kinds[] = { "output ", "buffer ", "changed" };
        const OutputSpec        *s = &p->outputs.at[i];
        p2o_putf(b, "%s %s: ", kinds[s->kind], s->name);
        if (s->value.kind == ARG_VAR)
            put_program_type(b, p, &s->value.var->recorded);
        else
            put_constant(b, p, &s->value);
        p2o_puts(b, "\n");
    }
    for (size_t i = 0; i < p->ranges.n; i++) {
        const ProgramRange *r = &p->ranges.at[i];
        p2o_putf(b, "dim     %s: ", r->expr);
        p2o_putf(b, r->lo == NO_LOWER ? ".." : "%lld..", (long long)r->lo);
        if (r->hi != NO_UPPER)
            p2o_putf(b, "%lld", (long long)r->hi);
        p2o_puts(b, "\n");
    }
    for (size_t i = 0; i < p->guards.n; i++)
        p2o_putf(b, "guard   %s\n", p->guards.at[i]);
    for (size_t i = 0; i < p->weights.n; i++) {
        uint64_t n;
        if (p->weights.at[i]->tensor && p2o_tensor_nelem(p->weights.at[i]->tensor, &n))
            bytes += n * p2o_dtype_bytes(p->weights.at[i]->tensor->dtype);
    }
    p2o_putf(b, "weights %zu, ", p->weights.n);
    put_bytes(b, bytes);
    p2o_puts(b, "\n");
    put_operators(b, p, o);
}

static void put_onnx_port(Buf *b, const char *kind, const OnnxPort *p)
{
    p2o_putf(b, "%s %s: %s", kind, p->name, p->dtype ? p2o_dtype_torch(p->dtype) : p->kind);
    if (p->rank >= 0) {
        p2o_puts(b, "[");
        for (int i = 0; i < p->rank; i++) {
            p2o_puts(b, i ? ", " : "");
            if (p->sizes[i] >= 0)
                p2o_putf(b, "%lld", (long long)p->sizes[i]);
            else
                p2o_puts(b, p->dims[i][0] ? p->dims[i] : "?");
        }
        p2o_puts(b, "]");
    }
    p2o_puts(b, "\n");
}

static void put_onnx(Buf *b, const OnnxFile *f)
{
    p2o_putf(b, "an ONNX model, IR version %lld", (long long)f->ir_version);
    for (size_t i = 0; i < f->nimport; i++)
        p2o_putf(b, ", %s opset %lld", f->imports[i].domain[0] ? f->imports[i].domain : "ai.onnx",
                 (long long)f->imports[i].version);
    if (f->producer[0])
        p2o_putf(b, ", made by %s %s", f->producer, f->producer_version);
    p2o_puts(b, "\n");
    for (size_t i = 0; i < f->nin; i++)
        put_onnx_port(b, "input  ", &f->inputs[i]);
    for (size_t i = 0; i < f->nout; i++)
        put_onnx_port(b, "output ", &f->outputs[i]);
    for (size_t i = 0; i < f->nmeta; i++)
        p2o_putf(b, "meta    %s: %s\n", f->meta[i].key, f->meta[i].value);
    p2o_putf(b, "weights %llu, ", (unsigned long long)f->ninit);
    put_bytes(b, f->init_bytes);
    if (f->nexternal) {
        p2o_puts(b, ", of them in other files ");
        put_bytes(b, f->external_bytes);
    }
    p2o_putf(b, "\noperators: %llu nodes\n", (unsigned long long)f->nnode);
    for (size_t i = 0; i < f->nop; i++)
        p2o_putf(b, "  %5llu  %s%s%s\n", (unsigned long long)f->ops[i].n, f->ops[i].domain,
                 f->ops[i].domain[0] ? "::" : "", f->ops[i].name);
}

/* Kinds that are recognised but not converted: what they are and what they hold. */
static void put_other(Buf *b, FileKind k, const Zip *zip)
{
    uint64_t bytes = 0;
    p2o_putf(b, "%s\n", p2o_sniff_text(k));
    for (size_t i = 0; zip && i < zip->n; i++)
        bytes += zip->entries[i].usize;
    if (zip) {
        p2o_putf(b, "records %zu, ", zip->n);
        put_bytes(b, bytes);
        p2o_puts(b, "\n");
    }
}

const char *p2o_report_file(Diags *d, Dims *t, Ops *o, Source *s, FileKind k, Zip *zip)
{
    Buf b = { .arena = p2o_diags_arena(d) };
    if (k == FILE_PT2 || k == FILE_PT2_OLD) {
        const Program *p = p2o_pt2_read(d, t, zip);
        if (!p)
            return NULL;
        put_program(&b, p, o);
    } else if (k == FILE_ONNX) {
        const OnnxFile *f = p2o_onnx_read(d, s);
        if (!f)
            return NULL;
        put_onnx(&b, f);
    } else {
        put_other(&b, k, zip);
    }
    return b.at;
}
