#include "dyn/float.h"

#include <math.h>

typedef struct FloatMaker {
    Ops           *ops;
    Program       *prog;
    const Reading *reading;
    VEC(Call *)    calls;
    bool           failed;
} FloatMaker;

static Arg float_call(FloatMaker *m, const char *target, int nargs, const Arg *args)
{
    Call *c = m->failed ? NULL
                        : p2o_ops_call(m->ops, m->prog, m->prog->main, target, nargs, args, 0);
    if (!c) {
        m->failed = true;
        return arg_none();
    }
    VEC_PUSH(m->prog->arena, &m->calls, c);
    return arg_var(c->outs[0]);
}

static Arg float_value(FloatMaker *m, const Expr *e);

static Arg float_pair(FloatMaker *m, const char *target, const Expr *e)
{
    Arg args[] = { float_value(m, e->a), float_value(m, e->b) };
    return float_call(m, target, 2, args);
}

static Arg float_log2(FloatMaker *m, const Expr *e)
{
    return float_call(m, "torch::_sym_log2", 1, (Arg[]){ float_value(m, e->a) });
}

static Arg float_log(FloatMaker *m, const Expr *e)
{
    if (e->a->op == EXPR_NUMBER)
        return arg_float(log(e->a->number));
    return float_call(m, "_operator::mul", 2,
                      (Arg[]){ float_log2(m, e), arg_float(0.69314718055994530942) });
}

static Arg float_exp(FloatMaker *m, const Expr *e)
{
    Arg args[] = { arg_float(2.71828182845904523536), float_value(m, e->a) };
    return float_call(m, "_operator::pow", 2, args);
}

/* Whole arithmetic wraps around where Python, which had a float there, does not: 1e15*n. */
static bool has_large_number(const Expr *e)
{
    const double most = 1 << 20;        /* times all elements that memory can hold it fits */
    return e && ((e->op == EXPR_NUMBER && fabs(e->number) > most) || has_large_number(e->a) ||
                 has_large_number(e->b));
}

/* Whole parts are Dims, made floats where they meet one. */
static Arg float_value(FloatMaker *m, const Expr *e)
{
    Dim     d = has_large_number(e) ? NULL : p2o_expr_dim(m->reading->of, e);
    int64_t whole;
    if (d && p2o_dim_is_int(d, &whole))
        return arg_float((double)whole);
    if (d)
        return float_call(m, "torch::sym_float", 1, (Arg[]){ arg_int(d) });
    switch (e->op) {
    case EXPR_NUMBER: return arg_float(e->number);
    case EXPR_SQRT: return float_call(m, "torch::_sym_sqrt", 1, (Arg[]){ float_value(m, e->a) });
    case EXPR_LOG2: return float_log2(m, e);
    case EXPR_LOG: return float_log(m, e);
    case EXPR_EXP: return float_exp(m, e);
    case EXPR_TO_THE: return float_pair(m, "_operator::pow", e);
    case EXPR_QUOTIENT: return float_pair(m, "_operator::truediv", e);
    case EXPR_MUL: return float_pair(m, "_operator::mul", e);
    case EXPR_ADD: return float_pair(m, "_operator::add", e);
    case EXPR_SUB: return float_pair(m, "_operator::sub", e);
    case EXPR_MIN: return float_pair(m, "torch::sym_min", e);
    case EXPR_MAX: return float_pair(m, "torch::sym_max", e);
    default: m->failed = true; return arg_none();
    }
}

bool p2o_float_calls(Ops *o, Program *p, const Call *before, Arg *x, const Reading *r)
{
    FloatMaker m = { .ops = o, .prog = p, .reading = r };
    Body      *b = p->main;
    size_t     at = 0;
    while (at < b->calls.n && b->calls.at[at] != before)
        at++;
    Arg v = float_value(&m, r->expr);
    if (m.failed || at == b->calls.n || !o)
        return false;
    for (size_t i = 0; i < m.calls.n; i++)
        VEC_PUSH(p->arena, &b->calls, NULL);
    memmove(b->calls.at + at + m.calls.n, b->calls.at + at,
            (b->calls.n - m.calls.n - at) * sizeof *b->calls.at);
    memcpy(b->calls.at + at, m.calls.at, m.calls.n * sizeof *b->calls.at);
    *x = v;
    return true;
}
