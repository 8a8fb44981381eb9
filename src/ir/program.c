/* Building the source IR.  Everything lives in the arena of the Diags the program was made with. */
#include "ir/program.h"

Program *p2o_program_new(Diags *d, Dims *t)
{
    Program *p = NEW(p2o_diags_arena(d), Program);
    p->arena = p2o_diags_arena(d);
    p->diags = d;
    p->dims = t;
    p->producer = "";
    p->main = p2o_body_new(p, "main");
    return p;
}

Body *p2o_body_new(Program *p, const char *name)
{
    Body *b = NEW(p->arena, Body);
    b->name = p2o_str_dup(p->arena, str_of(name));
    b->vars.arena = p->arena;
    b->stems.arena = p->arena;
    return b;
}

Var *p2o_var_new(Program *p, Body *b, const char *name)
{
    if (p2o_map_get(&b->vars, str_of(name)))
        return NULL;
    Var *v = NEW(p->arena, Var);
    v->name = p2o_str_dup(p->arena, str_of(name));
    v->id = p->nvar++;
    map_put(&b->vars, str_of(v->name), v);
    return v;
}

Var *p2o_var_find(const Body *b, Str name) { return p2o_map_get(&b->vars, name); }

Var *p2o_var_fresh(Program *p, Body *b, const char *stem)
{
    Var *v = p2o_var_new(p, b, stem);
    if (v)
        return v;
    /* Counting on from the last number given out keeps many uses of one stem linear. */
    uintptr_t i = (uintptr_t)p2o_map_get(&b->stems, str_of(stem));
    do
        v = p2o_var_new(p, b, p2o_printf(p->arena, "%s_%zu", stem, (size_t)++i));
    while (!v);
    map_put(&b->stems, str_of(p2o_str_dup(p->arena, str_of(stem))), (void *)i);
    return v;
}

Call *p2o_call_add(Program *p, Body *b, const char *target, int nargs, int nouts)
{
    Call *c = NEW(p->arena, Call);
    c->target = p2o_str_dup(p->arena, str_of(target));
    c->nargs = nargs;
    c->nouts = nouts;
    c->args = NEW_N(p->arena, Arg, (size_t)nargs);
    c->arg_names = NEW_N(p->arena, const char *, (size_t)nargs);
    c->outs = NEW_N(p->arena, Var *, (size_t)nouts);
    for (int i = 0; i < nargs; i++)
        c->arg_names[i] = "";
    VEC_PUSH(p->arena, &b->calls, c);
    return c;
}
