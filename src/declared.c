#include "declared.h"

#include "base/num.h"
#include "dyn/declare.h"
#include "dyn/onnx_sizes.h"
#include "format/json.h"

/* New input names count from the first declaration on: both name the input. */
static Str declared_input(Declared *d, Str name)
{
    for (size_t i = 0, k = 0; i < d->program->inputs.n; i++) {
        if (!d->program->inputs.at[i].var)
            continue;
        if (k < d->ninput_name && d->input_names[k] && str_is(name, d->input_names[k]))
            return str_of(d->program->inputs.at[i].name);
        k++;
    }
    return name;
}

/* Of an input or output, as the user may call it: its own name, or the new one. */
static bool is_called(Str pattern, const char *name, const char *renamed)
{
    return p2o_str_like(str_of(name), pattern) ||
           (renamed && p2o_str_like(str_of(renamed), pattern));
}

static bool is_pattern(Str name) { return memchr(name.p, '*', name.n) != NULL; }

/* The own names of the inputs, or else outputs, that a pattern means; none are refused. */
static Texts matching_ports(Declared *d, Str pattern, bool outputs_too, bool *are_outputs)
{
    Texts          found = { 0 };
    const Program *p = d->program;
    for (size_t i = 0, k = 0; i < p->inputs.n; i++) {
        const InputSpec *s = &p->inputs.at[i];
        const char      *renamed = s->var && k < d->ninput_name ? d->input_names[k] : NULL;
        if (s->var && is_called(pattern, s->name, renamed))
            VEC_PUSH(d->arena, &found, s->name);
        k += s->var != NULL;
    }
    *are_outputs = !found.n;
    for (size_t i = 0, k = 0; outputs_too && *are_outputs && i < p->outputs.n; i++) {
        const OutputSpec *s = &p->outputs.at[i];
        const char       *renamed = k < d->noutput_name ? d->output_names[k] : NULL;
        if (s->kind != OUT_USER || s->value.kind == ARG_NONE)
            continue;
        if (is_called(pattern, s->name, renamed))
            VEC_PUSH(d->arena, &found, renamed ? renamed : s->name);
        k++;
    }
    if (!found.n)
        p2o_diag_advise(d->diags, DIAG_MISUSE, 0, p2o_input_list(p), "no %s matches '%.*s'",
                        outputs_too ? "input or output" : "input", STR_ARG(pattern));
    return found;
}

static bool is_output_name(Declared *d, Str name)
{
    for (size_t i = 0; i < d->noutput_name; i++)
        if (d->output_names[i] && str_is(name, d->output_names[i]))
            return true;
    for (size_t i = 0; i < d->program->outputs.n; i++)
        if (str_is(name, d->program->outputs.at[i].name))
            return true;
    return false;
}

/* {"0": "batch"}, or [0, 1] with names of our making.  An output's sizes follow from the inputs':
 * its names are kept for name_output_axes. */
static void declare_axes_of(Declared *d, Str port, bool is_output, const Json *axes)
{
    for (uint32_t i = 0; i < axes->n; i++) {
        int64_t axis;
        Str     name = { "", 0 };
        bool    ok;
        if (axes->kind == JSON_OBJ) {
            ok = p2o_parse_i64(axes->members[i].key, &axis) &&
                 axes->members[i].value.kind == JSON_STR;
            name = ok ? axes->members[i].value.s : name;
        } else {
            ok = axes->items[i].kind == JSON_INT;
            axis = ok ? axes->items[i].i : 0;
        }
        if (!ok)
            p2o_diag(d->diags, DIAG_MISUSE, 0,
                     "dynamic axes of '%.*s': expected {\"0\": \"name\"} or [0]", STR_ARG(port));
        else if (!is_output)
            p2o_declare_axis(d->program, d->bindings, port, axis, name);
        else if (name.n)
            VEC_PUSH(
                d->arena, &d->output_axes,
                ((OutputAxis){ p2o_str_dup(d->arena, port), p2o_str_dup(d->arena, name), axis }));
    }
}

/* Outputs may be named too, as torch.onnx.export's users do. */
static void declare_json(Declared *d, const char *text)
{
    const Json *j = p2o_json_parse(d->diags, str_of(text), "dynamic axes");
    if (j && j->kind != JSON_OBJ)
        p2o_diag(d->diags, DIAG_MISUSE, 0, "dynamic axes: expected {\"input\": {\"0\": \"name\"}}");
    if (!j || j->kind != JSON_OBJ)
        return;
    for (uint32_t i = 0; i < j->n; i++) {
        const JsonMember *m = &j->members[i];
        Str               input = declared_input(d, m->key);
        bool              known = false, outputs;
        for (size_t k = 0; k < d->program->inputs.n; k++)
            known |= str_is(input, d->program->inputs.at[k].name);
        if (m->value.kind != JSON_OBJ && m->value.kind != JSON_LIST) {
            p2o_diag(d->diags, DIAG_MISUSE, 0,
                     "dynamic axes of '%.*s': expected an object or a list", STR_ARG(m->key));
        } else if (known || !is_pattern(m->key)) {
            declare_axes_of(d, input, !known && is_output_name(d, m->key), &m->value);
        } else {
            Texts ports = matching_ports(d, m->key, true, &outputs);
            for (size_t k = 0; k < ports.n; k++)
                declare_axes_of(d, str_of(ports.at[k]), outputs, &m->value);
        }
    }
}

bool p2o_declared_is_pin(const char *spec) { return !strstr(spec, ".."); }

/* "x:batch,seq", "past.*:batch,?".  False: an ONNX input without a shape, reported. */
static bool declare_spec(Declared *d, Str spec)
{
    Str   dims, name = p2o_str_trim(p2o_str_cut(spec, ':', &dims));
    bool  outputs;
    Texts ports = { 0 };
    if (is_pattern(name))
        ports = matching_ports(d, name, false, &outputs);
    else
        VEC_PUSH(d->arena, &ports, p2o_str_dup(d->arena, declared_input(d, name)));
    for (size_t i = 0; i < ports.n; i++) {
        if (d->onnx && !p2o_onnx_has_shape(d->onnx, str_of(ports.at[i])))
            return false;
        p2o_declare_input(d->program, d->bindings,
                          str_of(p2o_printf(d->arena, "%s:%.*s", ports.at[i], STR_ARG(dims))));
    }
    return true;
}

static void check_names(Declared *d)
{
    size_t ninput = 0, noutput = 0;
    for (size_t i = 0; i < d->program->inputs.n; i++)
        ninput += d->program->inputs.at[i].var != NULL;
    for (size_t i = 0; i < d->program->outputs.n; i++)
        noutput += d->program->outputs.at[i].kind == OUT_USER;
    if (d->ninput_name > ninput)
        p2o_diag(d->diags, DIAG_MISUSE, 0, "%zu input names for %zu inputs", d->ninput_name,
                 ninput);
    if (d->noutput_name > noutput)
        p2o_diag(d->diags, DIAG_MISUSE, 0, "%zu output names for %zu outputs", d->noutput_name,
                 noutput);
}

void p2o_declared_apply(Declared *d, Program *p, Bindings *b, const OnnxModel *onnx)
{
    d->arena = p->arena;
    d->diags = p->diags;
    d->program = p;
    d->bindings = b;
    d->onnx = onnx;
    check_names(d);
    for (size_t i = 0; i < d->ranges.n; i++)
        if (!d->onnx || !p2o_declared_is_pin(d->ranges.at[i]))
            p2o_declare_range(p, d->bindings, str_of(d->ranges.at[i]));
    for (size_t i = 0; i < d->inputs.n; i++)
        if (!declare_spec(d, str_of(d->inputs.at[i])))
            return;
    for (size_t i = 0; i < d->axes.n; i++)
        declare_json(d, d->axes.at[i]);
    p2o_declare_expressions(p, d->bindings);
    p2o_declare_ints(p, d->bindings);
    p2o_declare_rest(p);
}

static bool is_dim_name(const Graph *g, const char *name)
{
    for (size_t i = 0; i < g->dim_names.n; i++)
        if (same(g->dim_names.at[i].name, name))
            return true;
    return p2o_dim_has_sym(g->dims, str_of(name));
}

/* An output's size that is no symbol may bear the name that the user asks for: one name, one
 * size. */
static void name_output_axis(Graph *g, const Value *v, const OutputAxis *x)
{
    int64_t axis = x->axis < 0 ? x->axis + v->shape.rank : x->axis;
    if (axis < 0 || axis >= v->shape.rank) {
        p2o_diag(g->diags, DIAG_WARN, 0, "output '%s' has no axis %lld", v->name,
                 (long long)x->axis);
        return;
    }
    Dim         d = v->shape.at[axis];
    const char *now = p2o_graph_dim(g, d);
    if (same(now, x->name))
        return;
    if (p2o_dim_is_int(d, NULL))
        p2o_diag(g->diags, DIAG_WARN, 0,
                 "axis %lld of output '%s' is asked to be '%s', but is %s at every size",
                 (long long)axis, v->name, x->name, now);
    else if (p2o_dim_is_sym(d) || !same(now, p2o_dim_text(g->dims, d)) || is_dim_name(g, x->name))
        p2o_diag(g->diags, DIAG_WARN, 0,
                 "axis %lld of output '%s' is called '%s', not '%s': one name, one size",
                 (long long)axis, v->name, now, x->name);
    else
        VEC_PUSH(g->arena, &g->dim_names, ((DimName){ d, x->name }));
}

/* A declared size that turned out to be an expression of others keeps its name, wherever that size
 * appears. */
static void keep_declared_names(const Declared *d, Graph *g)
{
    for (size_t i = 0; i < p2o_bind_nevent(d->bindings); i++) {
        Dim sym = p2o_bind_event(d->bindings, i)->sym;
        if (p2o_role(d->bindings, sym) != ROLE_USER)
            continue;
        Dim now = p2o_resolve(d->bindings, sym);
        if (!p2o_dim_is_sym(now) && !p2o_dim_is_int(now, NULL) &&
            same(p2o_graph_dim(g, now), p2o_dim_text(g->dims, now)))
            VEC_PUSH(g->arena, &g->dim_names, ((DimName){ now, p2o_dim_name(sym) }));
    }
}

void p2o_declared_name_axes(const Declared *d, Graph *g)
{
    keep_declared_names(d, g);
    for (size_t i = 0; i < d->output_axes.n; i++)
        for (size_t k = 0; k < g->outputs.n; k++)
            if (same(g->outputs.at[k]->name, d->output_axes.at[i].output))
                name_output_axis(g, g->outputs.at[k], &d->output_axes.at[i]);
}

