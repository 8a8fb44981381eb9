#include "aten/call.h"

#include <assert.h>

const Arg *p2o_call_arg(const Call *c, const char *name)
{
    int i = p2o_schema_find(c->schema, name);
    assert(i >= 0);
    return &c->args[i];
}

Type p2o_arg_type(const Arg *x)
{
    switch (x->kind) {
    case ARG_VAR: return x->var->type;
    case ARG_INT: return (Type){ .kind = TY_INT, .dtype = DT_I64, .value = x->i };
    case ARG_FLOAT: return (Type){ .kind = TY_FLOAT, .dtype = DT_F32 };
    case ARG_BOOL: return (Type){ .kind = TY_BOOL, .dtype = DT_BOOL };
    case ARG_COMPLEX: return (Type){ .kind = TY_FLOAT, .dtype = DT_C64 };
    default: return (Type){ 0 };
    }
}

Dim p2o_arg_dim(const Arg *x)
{
    return x->kind == ARG_INT ? x->i : x->kind == ARG_VAR ? x->var->type.value : NULL;
}

static int64_t const_int(Dim d)
{
    int64_t v = 0;
    bool    ok = p2o_dim_is_int(d, &v);
    assert(ok);
    (void)ok;
    return v;
}

int64_t int_arg(const Call *c, const char *name) { return const_int(dim_arg(c, name)); }

int axis_arg(const Call *c, const char *name, int rank)
{
    int  axis = 0;
    bool ok = p2o_wrap_dim(int_arg(c, name), rank, true, &axis);
    assert(ok);
    (void)ok;
    return axis;
}

double float_arg(const Call *c, const char *name)
{
    const Arg *x = p2o_call_arg(c, name);
    double     f = 0;
    bool       ok = p2o_number_is_const(x, &f);
    assert(ok);
    (void)ok;
    return f;
}

bool bool_arg(const Call *c, const char *name)
{
    const Arg *x = p2o_call_arg(c, name);
    return x->kind == ARG_BOOL && x->b;
}

const char *str_arg(const Call *c, const char *name)
{
    const Arg *x = p2o_call_arg(c, name);
    return x->kind == ARG_NONE ? NULL : x->s;
}

DType dtype_arg(const Call *c, const char *name, DType otherwise)
{
    const Arg *x = p2o_call_arg(c, name);
    return x->kind == ARG_DTYPE ? x->dtype : otherwise;
}

int list_len(const Call *c, const char *name)
{
    const Arg *x = p2o_call_arg(c, name);
    return x->kind == ARG_LIST ? (int)x->n : 0;
}

static const Arg *list_item(const Call *c, const char *name, int i)
{
    const Arg *x = p2o_call_arg(c, name);
    assert(x->kind == ARG_LIST && i >= 0 && (uint32_t)i < x->n);
    return &x->items[i];
}

Dim dim_item(const Call *c, const char *name, int i) { return p2o_arg_dim(list_item(c, name, i)); }
int64_t int_item(const Call *c, const char *name, int i) { return const_int(dim_item(c, name, i)); }
Type    type_item(const Call *c, const char *name, int i)
{
    return p2o_arg_type(list_item(c, name, i));
}
bool has_item(const Call *c, const char *name, int i)
{
    return list_item(c, name, i)->kind != ARG_NONE;
}

bool p2o_number_is_const(const Arg *x, double *f)
{
    int64_t i;
    switch (x->kind) {
    case ARG_FLOAT: *f = x->f; return true;
    case ARG_BOOL: *f = x->b; return true;
    case ARG_INT:
    case ARG_VAR:
        if (!p2o_dim_is_int(p2o_arg_dim(x), &i))
            return false;
        *f = (double)i;
        return true;
    default: return false;
    }
}
