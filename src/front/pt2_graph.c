/* Graph -> Body: nodes in execution order become calls, under the names the file gives the values.
 *
 * Each graph is a namespace of its own: branches and loop bodies reuse outer names freely, and see
 * nothing of the graph around them. */
#include "front/pt2_parts.h"

#include "base/trace.h"

/* A broken file can be wrong everywhere: enough is enough. */
enum { MOST_ERRORS = 50 };

bool p2o_pt2_failed(const Pt2 *r) { return p2o_diags_errors(r->diags) > r->errors_before; }

void p2o_pt2_bad(Pt2 *r, Loc loc, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    p2o_vdiag(r->diags, DIAG_BAD_PROGRAM, loc, fmt, ap);
    va_end(ap);
}

/* The part before the last dot, and what follows it. */
static Str cut_last(Str s, Str *rest)
{
    size_t i = s.n;
    while (i > 0 && s.p[i - 1] != '.')
        i--;
    *rest = (Str){ s.p + i, s.n - i };
    return (Str){ s.p, i ? i - 1 : 0 };
}

const char *p2o_pt2_target(Arena *a, Str target)
{
    Str rest, name, overload = { "", 0 };
    Str ns = cut_last(target, &name);

    if (!p2o_is_one_line(target))
        return NULL;
    if (p2o_str_starts(target, "torch.ops.")) {
        ns = p2o_str_cut((Str){ target.p + 10, target.n - 10 }, '.', &rest);
        name = cut_last(rest, &overload);
        if (!rest.n) {                                  /* 2.1 has "torch.ops.cond" */
            name = ns;
            ns = STR("higher_order");
            overload.n = 0;
        } else if (!name.n) {                           /* no overload */
            name = rest;
            overload.n = 0;
        }
    }
    if (!ns.n || !name.n)
        return NULL;
    if (!overload.n || str_is(overload, "default"))
        return p2o_printf(a, "%.*s::%.*s", STR_ARG(ns), STR_ARG(name));
    return p2o_printf(a, "%.*s::%.*s.%.*s", STR_ARG(ns), STR_ARG(name), STR_ARG(overload));
}

/* Up to the next comma outside brackets. */
static Str cut_field(Str s, Str *rest)
{
    int depth = 0;
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        depth += (c == '(' || c == '[') - (c == ')' || c == ']');
        if (c == ',' && depth <= 0) {
            *rest = (Str){ s.p + i + 1, s.n - i - 1 };
            return (Str){ s.p, i };
        }
    }
    *rest = (Str){ "", 0 };
    return s;
}

/* The innermost module's class is one of PyTorch's own. */
static bool is_library_module(Str stack)
{
    static const char classes[] = "torch.nn.modules.";
    Str last = stack, rest = stack;
    while (rest.n)
        last = p2o_str_cut(rest, ';', &rest);
    for (; last.n >= sizeof classes - 1; last = (Str){ last.p + 1, last.n - 1 })
        if (p2o_str_starts(last, classes))
            return true;
    return false;
}

/* Of the last `key,fqn,class`; 2.1 writes `key:(fqn,class)`, and both may have `L['self'].`. */
static Str module_path(Str stack)
{
    static const char self[] = "L['self']";
    Str last = stack, rest = stack, fqn;
    while (rest.n)
        last = p2o_str_cut(rest, ';', &rest);
    p2o_str_cut(last, ':', &fqn);
    if (p2o_str_starts(fqn, "("))
        fqn = (Str){ fqn.p + 1, fqn.n - 1 };
    else
        cut_field(last, &fqn);
    fqn = cut_field(fqn, &rest);
    if (p2o_str_starts(fqn, self))
        fqn = (Str){ fqn.p + sizeof self - 1, fqn.n - sizeof self + 1 };
    if (p2o_str_starts(fqn, "."))
        fqn = (Str){ fqn.p + 1, fqn.n - 1 };
    fqn = p2o_str_cut(fqn, '@', &rest);                 /* "lin@1": its second call */
    bool noise = p2o_str_starts(fqn, "_empty_nn_module_stack") || !p2o_is_one_line(fqn);
    return noise ? (Str){ "", 0 } : fqn;
}

Loc p2o_pt2_loc(Pt2 *r, const Json *metadata)
{
    const Json *trace = p2o_pt2_get(metadata, "stack_trace");
    const Json *stack = p2o_pt2_get(metadata, "nn_module_stack");
    PlaceInfo   f = { 0 };

    if (trace && trace->kind == JSON_STR)
        f = p2o_trace_place(trace->s);
    if (stack && stack->kind == JSON_STR) {
        f.module = module_path(stack->s);
        f.library = is_library_module(stack->s);
    }
    return f.file.n || f.module.n ? p2o_place_add(r->diags, f) : 0;
}

typedef VEC(Var *) Results;

static void add_named_result(Pt2 *r, Pt2Graph *g, const Json *j, Results *outs)
{
    const Json *ref = p2o_pt2_reference(j);
    const char *name = ref ? p2o_pt2_name(r, g->loc, ref, "a result's name") : NULL;
    /* A result without a name is a number that was already known when the program was saved. */
    VEC_PUSH(r->arena, outs, name ? p2o_pt2_define(r, g, name) : NULL);
}

static bool is_any(Str key, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (str_is(key, names[i]))
            return true;
    return false;
}

static void add_results(Pt2 *r, Pt2Graph *g, const Json *j, Results *outs)
{
    static const char *const literals[] = { "as_none", "as_int", "as_float", "as_bool",
                                            "as_string" };
    static const char *const ones[] = { "as_tensor", "as_sym_int", "as_sym_float", "as_sym_bool",
                                        "as_custom_obj" };
    static const char *const lists[] = { "as_tensors", "as_sym_ints", "as_sym_floats",
                                         "as_sym_bools" };
    Str         key;
    const Json *x = p2o_pt2_union(r, g->loc, j, &key);

    if (!x)
        return;
    if (is_any(key, literals, COUNT_OF(literals))) {
        VEC_PUSH(r->arena, outs, NULL);
    } else if (is_any(key, ones, COUNT_OF(ones))) {
        add_named_result(r, g, x, outs);
    } else if (is_any(key, lists, COUNT_OF(lists)) && x->kind == JSON_LIST) {
        for (uint32_t i = 0; i < x->n; i++)
            add_named_result(r, g, &x->items[i], outs);
    } else if (str_is(key, "as_optional_tensor")) {
        add_results(r, g, x, outs);
    } else if (str_is(key, "as_optional_tensors") && x->kind == JSON_LIST) {
        for (uint32_t i = 0; i < x->n; i++)
            add_results(r, g, &x->items[i], outs);
    } else {
        p2o_pt2_bad(r, g->loc, "%s: a result of kind %s is not known", g->target,
                    p2o_pt2_show(r, key));
    }
}

static void read_call(Pt2 *r, Pt2Graph *g, const Json *node)
{
    const Json *target = p2o_pt2_get(node, "target"), *inputs = p2o_pt2_get(node, "inputs");
    const Json *outputs = p2o_pt2_get(node, "outputs");
    Results     outs = { 0 };

    g->loc = p2o_pt2_loc(r, p2o_pt2_get(node, "metadata"));
    g->target = target && target->kind == JSON_STR ? p2o_pt2_target(r->arena, target->s) : NULL;
    if (!g->target || (inputs && inputs->kind != JSON_LIST) ||
        (outputs && outputs->kind != JSON_LIST)) {
        p2o_pt2_bad(r, g->loc, "a node of graph %s has no operator name, or no lists",
                    g->body->name);
        return;
    }
    size_t nargs = p2o_pt2_count(inputs);
    Call  *c = p2o_call_add(r->program, g->body, g->target, (int)nargs, 0);
    c->loc = g->loc;
    for (size_t i = 0; i < nargs; i++) {
        const Json *name = p2o_pt2_get(&inputs->items[i], "name");
        if (name && name->kind == JSON_STR && name->s.n)
            c->arg_names[i] = p2o_pt2_name(r, g->loc, name, "an argument's name");
        if (!c->arg_names[i])
            c->arg_names[i] = "";
        g->arg = *c->arg_names[i] ? c->arg_names[i] : NULL;
        c->args[i] = p2o_pt2_arg(r, g, p2o_pt2_get(&inputs->items[i], "arg"));
    }
    g->arg = NULL;
    for (size_t i = 0; i < p2o_pt2_count(outputs); i++)
        add_results(r, g, &outputs->items[i], &outs);
    c->outs = outs.at;
    c->nouts = (int)outs.n;
    for (size_t i = 0; i < outs.n; i++)
        if (outs.at[i])
            outs.at[i]->def = c;
}

void p2o_pt2_calls(Pt2 *r, Pt2Graph *g)
{
    const Json *nodes = p2o_pt2_get(g->json, "nodes");
    if (nodes && nodes->kind != JSON_LIST)
        p2o_pt2_bad(r, g->loc, "the nodes of graph %s are no list", g->body->name);
    for (size_t i = 0; i < p2o_pt2_count(nodes); i++) {
        if (p2o_diags_errors(r->diags) - r->errors_before >= MOST_ERRORS)
            return;
        read_call(r, g, &nodes->items[i]);
    }
    g->loc = 0;
    g->target = NULL;
}

/* NULL for an input that was baked in: a literal stands in its place. */
static Var *body_input(Pt2 *r, Pt2Graph *g, const Json *j)
{
    Str         key = { "", 0 };
    const Json *x = p2o_pt2_union(r, g->loc, j, &key);
    const Json *ref = str_is(key, "as_string") ? NULL : p2o_pt2_reference(x);
    const char *name = ref ? p2o_pt2_name(r, g->loc, ref, "an input's name") : NULL;
    return name ? p2o_pt2_define(r, g, name) : NULL;
}

Body *p2o_pt2_subgraph(Pt2 *r, const Json *graph, const char *name, Loc loc)
{
    Pt2Graph    g = { .json = graph, .body = p2o_body_new(r->program, name), .loc = loc };
    const Json *inputs = p2o_pt2_get(graph, "inputs"), *outputs = p2o_pt2_get(graph, "outputs");
    const Json *constants = p2o_pt2_get(graph, "constants");

    if (constants && constants->kind == JSON_OBJ && constants->n)
        p2o_diag(r->diags, DIAG_UNSUPPORTED, loc, "graph %s holds tensor constants of its own",
                 name);
    p2o_pt2_values(r, &g);
    for (size_t i = 0; i < p2o_pt2_count(inputs); i++)
        VEC_PUSH(r->arena, &g.body->inputs, body_input(r, &g, &inputs->items[i]));
    p2o_pt2_calls(r, &g);
    g.loc = loc;
    for (size_t i = 0; i < p2o_pt2_count(outputs); i++)
        VEC_PUSH(r->arena, &g.body->outputs, p2o_pt2_arg(r, &g, &outputs->items[i]));
    /* Operands go to inputs by position, so baked ones keep their place, under a name left over. */
    for (size_t i = 0; i < g.body->inputs.n; i++)
        if (!g.body->inputs.at[i])
            g.body->inputs.at[i] = p2o_var_fresh(r->program, g.body, "unused");
    return g.body;
}
