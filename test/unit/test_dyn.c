/* Fixed captures, told what the truth is: random programs over symbolic sizes are written out at
 * given sizes, as a capture would, and converted back.  The engine must recover the truth or
 * refuse; it must never come up with something else. */
#include "check.h"

#include "aten/functional.h"
#include "aten/infer.h"
#include "dyn/declare.h"
#include "dyn/lineup.h"
#include "dyn/settle.h"
#include "ir/program_text.h"

enum { MAX_LINES = 14, NSYM = 2, NCAPTURE = 3 };

static uint64_t state;

static uint64_t next_random(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static int pick(int n) { return (int)(next_random() % (uint64_t)n); }

/* A program as lines with sizes in them: "y3 = view(y2, [%0, %1])", %i being dims[i]. */
typedef struct Line {
    const char *format;
    Dim         dims[8];
    Dim         positive;       /* must be 1 or more where the program is captured; or NULL */
} Line;

typedef struct Truth {
    Arena *arena;
    Dims  *dims;
    Dim    sym[NSYM];
    Line   line[MAX_LINES];
    int    n;
    Dim    shape[8];            /* of the last value */
    int    rank;
    bool   forced;              /* every size in it follows from the types alone */
    Buf    weights;
} Truth;

static Dim num(Truth *t, int64_t v) { return p2o_dim_int(t->dims, v); }

static Line *add_line(Truth *t, const char *format)
{
    Line *l = &t->line[t->n++];
    *l = (Line){ .format = format };
    return l;
}

static const char *list_format(Truth *t, const char *head, int rank, const char *tail)
{
    Buf b = { .arena = t->arena };
    p2o_puts(&b, head);
    for (int i = 0; i < rank; i++)
        p2o_putf(&b, "%s%%%d", i ? ", " : "", i);
    p2o_puts(&b, tail);
    return b.at;
}

static void op_view_merge(Truth *t)
{
    int at = pick(t->rank - 1);
    t->shape[at] = p2o_dim_mul(t->dims, t->shape[at], t->shape[at + 1]);
    for (int i = at + 1; i + 1 < t->rank; i++)
        t->shape[i] = t->shape[i + 1];
    t->rank--;
    Line *l = add_line(t, list_format(t, p2o_printf(t->arena, "y%d = view(y%d, [", t->n + 1, t->n),
                                      t->rank, "])"));
    memcpy(l->dims, t->shape, sizeof l->dims);
}

static void op_view_split(Truth *t)
{
    int     at = pick(t->rank);
    int64_t v;
    Dim     half = p2o_dim_exact_div(t->dims, t->shape[at], num(t, 2));
    if (!half || t->rank > 5 || (p2o_dim_is_int(half, &v) && v < 1))
        return;
    for (int i = t->rank; i > at; i--)
        t->shape[i] = t->shape[i - 1];
    t->shape[at] = half;
    t->shape[at + 1] = num(t, 2);
    t->rank++;
    Line *l =
        add_line(t, list_format(t, p2o_printf(t->arena, "y%d = reshape(y%d, [", t->n + 1, t->n),
                                t->rank, "])"));
    memcpy(l->dims, t->shape, sizeof l->dims);
}

static void op_transpose(Truth *t)
{
    int i = pick(t->rank), j = pick(t->rank);
    Dim d = t->shape[i];
    t->shape[i] = t->shape[j];
    t->shape[j] = d;
    add_line(t, p2o_printf(t->arena, "y%d = transpose.int(y%d, %d, %d)", t->n + 1, t->n, i, j));
}

/* zeros of the same shape, some sizes 1. */
static void op_add_zeros(Truth *t)
{
    Line *l =
        add_line(t, list_format(t, p2o_printf(t->arena, "z%d = zeros([", t->n + 1), t->rank, "])"));
    for (int i = 0; i < t->rank; i++)
        l->dims[i] = pick(3) ? t->shape[i] : num(t, 1);
    add_line(t, p2o_printf(t->arena, "y%d = add.Tensor(y%d, z%d)", t->n + 1, t->n - 1, t->n));
}

static void op_cat(Truth *t)
{
    int at = pick(t->rank);
    t->shape[at] = p2o_dim_mul(t->dims, t->shape[at], num(t, 2));
    add_line(t, p2o_printf(t->arena, "y%d = cat([y%d, y%d], %d)", t->n + 1, t->n, t->n, at));
}

static void op_expand(Truth *t)
{
    if (t->rank > 5)
        return;
    Line *l = add_line(t, p2o_printf(t->arena, "u%d = unsqueeze(y%d, 0)", t->n + 1, t->n));
    for (int i = t->rank; i > 0; i--)
        t->shape[i] = t->shape[i - 1];
    t->shape[0] = num(t, 3);
    t->rank++;
    l = add_line(t, list_format(t, p2o_printf(t->arena, "y%d = expand(u%d, [", t->n + 1, t->n),
                                t->rank, "])"));
    memcpy(l->dims, t->shape, sizeof l->dims);
}

/* Up to a size that only another capture can tell from a number. */
static void op_slice(Truth *t)
{
    int     at = pick(t->rank);
    int64_t v;
    if (p2o_dim_is_int(t->shape[at], &v))
        return;
    Dim   end = pick(2) ? p2o_dim_sub(t->dims, t->shape[at], num(t, 1))
                        : p2o_dim_floordiv(t->dims, t->shape[at], num(t, 2));
    Line *l = add_line(
        t, p2o_printf(t->arena, "y%d = slice.Tensor(y%d, %d, 0, %%0)", t->n + 1, t->n, at));
    l->dims[0] = end;
    t->shape[at] = end;
    t->forced = false;
}

/* All but the last k, which the capture writes as -k. */
static void op_cut(Truth *t)
{
    int   at = pick(t->rank), k = 1 + pick(2);
    Line *l = add_line(
        t, p2o_printf(t->arena, "y%d = slice.Tensor(y%d, %d, 0, %d)", t->n + 1, t->n, at, -k));
    t->shape[at] = l->positive = p2o_dim_sub(t->dims, t->shape[at], num(t, k));
}

/* The last one first. */
static void op_rotate(Truth *t)
{
    int at = pick(t->rank), y = t->n;
    add_line(t, p2o_printf(t->arena, "a%d = slice.Tensor(y%d, %d, 0, -1)", t->n + 1, y, at));
    add_line(t, p2o_printf(t->arena, "c%d = slice.Tensor(y%d, %d, -1, 9223372036854775807)",
                           t->n + 1, y, at));
    add_line(t, p2o_printf(t->arena, "y%d = cat([c%d, a%d], %d)", t->n + 1, t->n, t->n - 1, at));
}

/* y times its own transpose. */
static void op_matmul(Truth *t)
{
    if (t->rank < 2)
        return;
    int y = t->n;
    add_line(t, p2o_printf(t->arena, "m%d = transpose.int(y%d, -1, -2)", t->n + 1, y));
    add_line(t, p2o_printf(t->arena, "y%d = matmul(y%d, m%d)", t->n + 1, y, t->n));
    t->shape[t->rank - 1] = t->shape[t->rank - 2];
}

static void op_conv(Truth *t)
{
    int64_t c;
    if (t->rank != 3 || !p2o_dim_is_int(t->shape[1], &c) || c > 64)
        return;
    int pad = pick(2);
    p2o_putf(&t->weights, "w%d: f32[5, %lld, 3] weight\n", t->n + 1, (long long)c);
    Line *l = add_line(t, p2o_printf(t->arena, "y%d = conv1d(y%d, w%d, None, [1], [%d])", t->n + 1,
                                     t->n, t->n + 1, pad));
    t->shape[1] = num(t, 5);
    t->shape[2] = l->positive = p2o_dim_add(t->dims, t->shape[2], num(t, 2 * pad - 2));
}

static void op_pool(Truth *t)
{
    if (t->rank != 3)
        return;
    Line *l = add_line(t, p2o_printf(t->arena, "y%d = max_pool1d(y%d, [2])", t->n + 1, t->n));
    t->shape[2] = l->positive = p2o_dim_floordiv(t->dims, t->shape[2], num(t, 2));
}

static void op_unfold(Truth *t)
{
    int at = pick(t->rank);
    if (t->rank > 5)
        return;
    Line *l = add_line(t, p2o_printf(t->arena, "y%d = unfold(y%d, %d, 2, 1)", t->n + 1, t->n, at));
    t->shape[at] = l->positive = p2o_dim_sub(t->dims, t->shape[at], num(t, 1));
    t->shape[t->rank++] = num(t, 2);
}

/* Positions, counted up or down, along the last axis. */
static void op_positions(Truth *t)
{
    Dim   last = t->shape[t->rank - 1];
    bool  down = pick(2);
    Line *l = add_line(
        t, p2o_printf(t->arena, down ? "p%d = arange.start_step(%%0, -1, -1)" : "p%d = arange(%%0)",
                      t->n + 1));
    l->dims[0] = down ? p2o_dim_sub(t->dims, last, num(t, 1)) : last;
    add_line(t, p2o_printf(t->arena, "y%d = add.Tensor(y%d, p%d)", t->n + 1, t->n - 1, t->n));
}

/* The first axis is kept, the rest is -1. */
static void op_flatten(Truth *t)
{
    for (int i = 2; i < t->rank; i++)
        t->shape[1] = p2o_dim_mul(t->dims, t->shape[1], t->shape[i]);
    if (t->rank < 2 || !t->shape[1])
        return;
    Line *l = add_line(t, p2o_printf(t->arena, "y%d = view(y%d, [%%0, -1])", t->n + 1, t->n));
    l->dims[0] = t->shape[0];
    t->rank = 2;
}

/* Rows and the rest exchanged without moving anything: sizes in another order than they come. */
static void op_exchange(Truth *t)
{
    if (t->rank < 2)
        return;
    Dim first = t->shape[0];
    t->shape[0] = t->shape[1];
    t->shape[1] = first;
    Line *l =
        add_line(t, list_format(t, p2o_printf(t->arena, "y%d = reshape(y%d, [", t->n + 1, t->n),
                                t->rank, "])"));
    memcpy(l->dims, t->shape, sizeof l->dims);
}

static void make_truth(Truth *t, bool with_slices)
{
    static void (*const ops[])(
        Truth *) = { op_view_merge, op_view_split, op_transpose, op_add_zeros, op_cat,  op_expand,
                     op_cut,        op_rotate,     op_matmul,    op_conv,      op_pool, op_unfold,
                     op_positions,  op_flatten,    op_exchange,  op_slice };
    const int nops = (int)COUNT_OF(ops);
    t->weights = (Buf){ .arena = t->arena };
    t->n = 0;
    t->forced = true;
    t->sym[0] = p2o_dim_sym(t->dims, "b");
    t->sym[1] = p2o_dim_sym(t->dims, "s");
    t->rank = 3;
    t->shape[0] = t->sym[0];
    t->shape[1] = t->sym[1];
    t->shape[2] = num(t, 4);
    add_line(t, "y1 = relu(x)");
    while (t->n < MAX_LINES - 3) {
        int k = pick(with_slices ? nops : nops - 1);
        if (k != 0 || t->rank > 1)
            ops[k](t);
        if (pick(6) == 0)
            break;
    }
}

typedef struct At {
    const Truth *t;
    int64_t      value[NSYM];
} At;

static bool value_at(void *user, Dim sym, int64_t *v)
{
    const At *at = user;
    for (int i = 0; i < NSYM; i++) {
        if (sym == at->t->sym[i]) {
            *v = at->value[i];
            return true;
        }
    }
    return false;
}

/* The program as a capture at these sizes would have it; false when a size would be 0. */
static bool write_capture(Truth *t, const int64_t *size, Buf *out)
{
    At at = { .t = t, .value = { size[0], size[1] } };
    p2o_putf(out, "x: f32[%lld, %lld, 4]\n%s", (long long)size[0], (long long)size[1],
             t->weights.n ? t->weights.at : "");
    for (int i = 0; i < t->n; i++) {
        int64_t least = 1;
        if (t->line[i].positive &&
            (!p2o_dim_eval(t->dims, t->line[i].positive, value_at, &at, &least) || least < 1))
            return false;
        for (const char *p = t->line[i].format; *p; p++) {
            int64_t v;
            if (*p != '%') {
                p2o_put(out, p, 1);
                continue;
            }
            p++;
            if (!p2o_dim_eval(t->dims, t->line[i].dims[*p - '0'], value_at, &at, &v) || v < 0)
                return false;
            p2o_putf(out, "%lld", (long long)v);
        }
        p2o_puts(out, "\n");
    }
    p2o_putf(out, "return y%d\n", t->n);
    return true;
}

/* PyTorch runs it at these sizes: nothing in it is empty that must not be. */
static bool exists_at(Truth *t, At *at)
{
    int64_t v = 1;
    for (int i = 0; i < t->n; i++) {
        if (t->line[i].positive &&
            (!p2o_dim_eval(t->dims, t->line[i].positive, value_at, at, &v) || v < 1))
            return false;
        for (int k = 0; k < 8; k++)
            if (t->line[i].dims[k] &&
                (!p2o_dim_eval(t->dims, t->line[i].dims[k], value_at, at, &v) || v < 0))
                return false;
    }
    return true;
}

static bool is_alike(Truth *t, Dim d, int64_t (*size)[NSYM])
{
    int64_t first = 0, v;
    for (int k = 0; k < NCAPTURE; k++) {
        At at = { .t = t, .value = { size[k][0], size[k][1] } };
        if (!p2o_dim_eval(t->dims, d, value_at, &at, &v) || (k && v != first))
            return false;
        first = v;
    }
    return true;
}

/* A size that happens to be the same in all captures cannot be told from a number: users choose
 * sizes that avoid it. */
static bool all_differ(Truth *t, int64_t (*size)[NSYM])
{
    for (int i = 0; i < t->n; i++)
        for (int k = 0; k < 8; k++)
            if (t->line[i].dims[k] && !p2o_dim_is_int(t->line[i].dims[k], NULL) &&
                is_alike(t, t->line[i].dims[k], size))
                return false;
    return true;
}

static int nright, nrefused;

/* Converts captures and holds the result against the truth. */
static void try_captures(Truth *t, int n, int64_t (*size)[NSYM], bool declared)
{
    Arena    *a = p2o_arena_new(NULL, NULL);
    Diags    *d = p2o_diags_new(a, NULL, NULL);
    Dims     *dims = p2o_dims_new(a);
    Ops      *ops = p2o_ops_new(a, dims);
    Bindings *b = p2o_bindings_new(dims, n);
    Program  *p[NCAPTURE];
    bool      ok = true;
    for (int k = 0; k < n && ok; k++) {
        Buf text = { .arena = a };
        ok = write_capture(t, size[k], &text);
        p[k] = ok ? p2o_program_parse(d, dims, buf_str(&text)) : NULL;
        ok = ok && p[k] && p2o_functional(ops, p[k]);
    }
    if (!ok) {
        CHECK(p2o_diags_errors(d) == 0);
        p2o_arena_free(a);
        return;
    }
    if (declared)
        p2o_declare_input(p[0], b, STR("x:b,s,4"));
    p2o_declare_rest(p[0]);
    Lineup l = { .ops = ops, .p = p, .n = n };
    ok = (n == 1 || p2o_line_up_inputs(p, n, b)) && p2o_line_up(&l, b) && p2o_settle(&l, b);
    if (!ok) {
        nrefused++;
        CHECK(p2o_diags_errors(d) > 0);
        p2o_arena_free(a);
        return;
    }
    nright++;
    Shape       got = p[0]->outputs.at[0].value.var->type.shape;
    const char *names[NSYM] = { declared ? "b" : "x_0", declared ? "s" : "x_1" };
    bool        same_rank = got.rank == t->rank;
    CHECK(same_rank);
    for (int round = 0; same_rank && round < 4; round++) {
        At      want = { .t = t, .value = { 2 + pick(9), 2 + pick(9) } };
        Truth   found = { .dims = dims };
        if (!exists_at(t, &want))
            continue;
        for (int i = 0; i < NSYM; i++)
            found.sym[i] = p2o_dim_sym(dims, names[i]);
        At have = { .t = &found, .value = { want.value[0], want.value[1] } };
        for (int i = 0; i < t->rank; i++) {
            int64_t x = -1, y = -2;
            CHECK(p2o_dim_eval(t->dims, t->shape[i], value_at, &want, &x) &&
                  p2o_dim_eval(dims, p2o_resolve(b, got.at[i]), value_at, &have, &y));
            if (x < 0)
                continue;                       /* no such program at these sizes */
            CHECK(x == y);
            if (x != y) {
                Buf text = { .arena = a };
                write_capture(t, size[0], &text);
                printf("%saxis %d: %s, the truth is %s (%d captures%s)\n", text.at, i,
                       p2o_dim_text(dims, got.at[i]), p2o_dim_text(t->dims, t->shape[i]), n,
                       declared ? ", declared" : "");
            }
        }
    }
    p2o_arena_free(a);
}

int main(void)
{
    for (int round = 0; round < 240; round++) {
        state = (uint64_t)(round + 1) * 0x9E3779B97F4A7C15u;    /* whatever rounds before came to */
        Arena  *a = p2o_arena_new(NULL, NULL);
        Truth   t = { .arena = a, .dims = p2o_dims_new(a) };
        int     least = round % 5 == 0 ? 1 : 2;
        int64_t small[1][NSYM] = { { least + pick(6), least + pick(6) } };
        int64_t size[NCAPTURE][NSYM] = { { 150 + pick(100), 150 + pick(100) },
                                         { 30 + pick(40), 30 + pick(40) },
                                         { 5 + pick(10), 5 + pick(10) } };
        make_truth(&t, round % 2);
        if (t.forced)               /* one capture: numbers that nothing forces stay */
            try_captures(&t, 1, small, true);
        if (all_differ(&t, size))
            try_captures(&t, NCAPTURE, size, round % 3 == 0);
        p2o_arena_free(a);
    }
    printf("recovered %d, refused %d\n", nright, nrefused);
    CHECK(nright > nrefused);           /* refusing everything would be right, and useless */
    return check_report();
}
