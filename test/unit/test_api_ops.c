/* Operators that the user gives a meaning, through the public API: callbacks above all, used right
 * and wrong, and with memory running out below them. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "pt2onnx.h"

/* y = mylib::foo(x, 2.5, k=3, mode='m', ks=[1, 2], xs=[x, x], None), a and b dynamic. */
static const char program[] =
    "{\"schema_version\":{\"major\":8,\"minor\":1},\"graph_module\":{\"graph\":{"
    "\"inputs\":[{\"as_tensor\":{\"name\":\"x\"}}],\"outputs\":[{\"as_tensor\":{\"name\":\"y\"}}],"
    "\"nodes\":[{\"target\":\"torch.ops.mylib.foo.default\",\"inputs\":["
    "{\"name\":\"x\",\"arg\":{\"as_tensor\":{\"name\":\"x\"}}},"
    "{\"name\":\"alpha\",\"arg\":{\"as_float\":2.5}},"
    "{\"name\":\"k\",\"arg\":{\"as_int\":3}},"
    "{\"name\":\"mode\",\"arg\":{\"as_string\":\"m\"}},"
    "{\"name\":\"ks\",\"arg\":{\"as_ints\":[1,2]}},"
    "{\"name\":\"w\",\"arg\":{\"as_none\":true}},"
    "{\"name\":\"xs\",\"arg\":{\"as_tensors\":[{\"name\":\"x\"},{\"name\":\"x\"}]}}],"
    "\"outputs\":[{\"as_tensor\":{\"name\":\"y\"}}],\"metadata\":{}}],"
    "\"tensor_values\":{"
    "\"x\":{\"dtype\":7,\"sizes\":[{\"as_expr\":{\"expr_str\":\"s0\",\"hint\":{\"as_int\":5}}},"
    "{\"as_int\":4}],\"layout\":7},"
    "\"y\":{\"dtype\":7,\"sizes\":[{\"as_expr\":{\"expr_str\":\"2*s0\",\"hint\":{\"as_int\":10}}},"
    "{\"as_int\":4}],\"layout\":7}},"
    "\"sym_int_values\":{},\"sym_bool_values\":{},\"custom_obj_values\":{}},"
    "\"signature\":{\"input_specs\":[{\"user_input\":{\"arg\":{\"as_tensor\":{\"name\":\"x\"}}}}],"
    "\"output_specs\":[{\"user_output\":{\"arg\":{\"as_tensor\":{\"name\":\"y\"}}}}]},"
    "\"module_call_graph\":[]},\"opset_version\":{\"aten\":10},\"range_constraints\":{}}";

typedef struct Seen {
    int             calls;
    p2o_call       *kept;
    p2o_conversion *c;
} Seen;

static p2o_argument argument(p2o_call *k, size_t i)
{
    p2o_argument x = { .size = sizeof x };
    CHECK(p2o_call_argument(k, i, &x) == P2O_OK);
    return x;
}

static p2o_status lower_right(void *user, p2o_call *k)
{
    Seen        *seen = user;
    p2o_argument x = argument(k, 0), a = argument(k, 1), i = argument(k, 2), s = argument(k, 3);
    p2o_argument list = argument(k, 4), none = argument(k, 5), xs = argument(k, 6), item;
    p2o_type     t = { .size = sizeof t };
    p2o_value    half = 0, scaled = 0, y = 0;
    float        number = 2.5f;
    seen->calls++;
    seen->kept = k;
    item = (p2o_argument){ .size = sizeof item };
    CHECK(p2o_call_narguments(k) == 7 && p2o_call_nresults(k) == 1);
    CHECK(x.kind == P2O_ARG_TENSOR && x.value && !strcmp(x.name, "x"));
    CHECK(a.kind == P2O_ARG_FLOAT && a.f == 2.5 && i.kind == P2O_ARG_INT && i.i == 3 && !i.value);
    CHECK(s.kind == P2O_ARG_STRING && !strcmp(s.s, "m") && none.kind == P2O_ARG_NONE);
    CHECK(list.kind == P2O_ARG_LIST && list.n == 2 && xs.kind == P2O_ARG_LIST && xs.n == 2);
    CHECK(p2o_call_item(k, 4, 1, &item) == P2O_OK && item.i == 2);
    CHECK(p2o_call_item(k, 6, 0, &item) == P2O_OK && item.value == x.value);
    CHECK(p2o_value_type(k, x.value, &t) == P2O_OK && !strcmp(t.dtype, "float32") && t.rank == 2 &&
          t.sizes[0] == -1 && t.sizes[1] == 4);
    CHECK(p2o_result_type(k, 0, &t) == P2O_OK && t.sizes[0] == -1);
    CHECK(p2o_convert(seen->c) == P2O_ERR_MISUSE);      /* not from inside */
    CHECK(p2o_constant(k, "float32", 0, NULL, &number, sizeof number, &half) == P2O_OK);
    p2o_node mul = { .size = sizeof mul, .op = "Mul", .ninput = 2, .noutput = 1,
                     .inputs = (p2o_value[]){ x.value, half } };
    CHECK(p2o_emit(k, &mul, &scaled) == P2O_OK);
    p2o_attribute axis = { .size = sizeof axis, .name = "axis", .kind = P2O_ATTR_INT, .i = 0 };
    p2o_node      concat = { .size = sizeof concat, .op = "Concat", .ninput = 2, .noutput = 1,
                             .inputs = (p2o_value[]){ scaled, x.value },
                             .attributes = &axis, .nattribute = 1 };
    CHECK(p2o_emit(k, &concat, &y) == P2O_OK);
    return p2o_call_result(k, 0, y);
}

/* Converts with the callback; *said gets the first message. */
static p2o_status convert_with(p2o_lower_fn *fn, Seen *seen, const char **said, int dump)
{
    static char text[512];
    p2o_options o;
    p2o_options_init(&o, sizeof o);
    o.dump = dump;
    p2o_conversion *c = p2o_new(&o);
    seen->c = c;
    CHECK(p2o_register_op(c, "mylib::foo", fn, seen) == P2O_OK);
    CHECK(p2o_read_program(c, program, strlen(program), NULL, 0) == P2O_OK);
    p2o_status s = p2o_convert(c);
    text[0] = 0;
    if (dump && s == P2O_OK)
        strncat(text, p2o_dump(c, "opt"), sizeof text - 1);
    else if (p2o_diag_count(c))
        strncat(text, p2o_diag_at(c, 0)->message, sizeof text - 1);
    *said = text;
    if (seen->kept)                                     /* the call is over */
        CHECK(p2o_call_refuse(seen->kept, "late") == P2O_ERR_MISUSE &&
              p2o_call_narguments(seen->kept) == 0);
    p2o_free(c);
    return s;
}

static void test_right(void)
{
    Seen        seen = { 0 };
    const char *text;
    CHECK(convert_with(lower_right, &seen, &text, 1) == P2O_OK && seen.calls == 1);
    CHECK(strstr(text, "Mul(x, 2.5:f32)") && strstr(text, "y = Concat(") &&
          strstr(text, "f32[2*s0, 4]"));
}

static p2o_status lower_nothing(void *user, p2o_call *k)
{
    (void)user, (void)k;
    return P2O_OK;
}

static p2o_status lower_refuse(void *user, p2o_call *k)
{
    (void)user;
    return p2o_call_refuse(k, "only mode 'n' is done");
}

static p2o_status lower_fail(void *user, p2o_call *k)
{
    (void)user, (void)k;
    return P2O_ERR_IO;
}

static p2o_status lower_wrong_result(void *user, p2o_call *k)
{
    (void)user;
    return p2o_call_result(k, 0, argument(k, 0).value);
}

static p2o_status lower_wrong_rank(void *user, p2o_call *k)
{
    (void)user;
    int64_t   minus = -1;
    p2o_value shape = 0, y = 0;
    p2o_constant(k, "int64", 1, (int64_t[]){ 1 }, &minus, sizeof minus, &shape);
    p2o_node n = { .size = sizeof n, .op = "Reshape", .ninput = 2, .noutput = 1,
                   .inputs = (p2o_value[]){ argument(k, 0).value, shape } };
    CHECK(p2o_emit(k, &n, &y) == P2O_OK);
    return p2o_call_result(k, 0, y);
}

/* The capture's size, written down. */
static p2o_status lower_baked(void *user, p2o_call *k)
{
    (void)user;
    int64_t   sizes[] = { 10, 4 };
    p2o_value shape = 0, y = 0, twice = 0;
    p2o_attribute axis = { .size = sizeof axis, .name = "axis", .kind = P2O_ATTR_INT, .i = 0 };
    p2o_value     x = argument(k, 0).value;
    p2o_node      concat = { .size = sizeof concat, .op = "Concat", .ninput = 2, .noutput = 1,
                             .inputs = (p2o_value[]){ x, x }, .attributes = &axis,
                             .nattribute = 1 };
    p2o_constant(k, "int64", 1, (int64_t[]){ 2 }, sizes, sizeof sizes, &shape);
    CHECK(p2o_emit(k, &concat, &twice) == P2O_OK);
    p2o_node n = { .size = sizeof n, .op = "Reshape", .ninput = 2, .noutput = 1,
                   .inputs = (p2o_value[]){ twice, shape } };
    p2o_status s = p2o_emit(k, &n, &y);
    return s == P2O_OK ? p2o_call_result(k, 0, y) : s;
}

static p2o_status emit_of(p2o_call *k, const char *op, const char *domain, p2o_value in,
                          size_t nout)
{
    p2o_value out[8];
    p2o_node  n = { .size = sizeof n, .op = op, .domain = domain, .ninput = 1, .noutput = nout,
                    .inputs = &in };
    return p2o_emit(k, &n, out);
}

static p2o_status lower_unknown(void *user, p2o_call *k)
{
    (void)user;
    return emit_of(k, "Nothing", NULL, argument(k, 0).value, 1);
}

static p2o_status lower_loop(void *user, p2o_call *k)
{
    (void)user;
    return emit_of(k, "Loop", NULL, argument(k, 0).value, 1);
}

static p2o_status lower_ill_typed(void *user, p2o_call *k)
{
    (void)user;
    return emit_of(k, "Concat", NULL, argument(k, 0).value, 1);         /* no axis */
}

static p2o_status lower_no_value(void *user, p2o_call *k)
{
    (void)user;
    return emit_of(k, "Relu", NULL, 77, 1);
}

static p2o_status lower_two_results(void *user, p2o_call *k)
{
    (void)user;
    return emit_of(k, "Foo", "com.example", argument(k, 0).value, 2);
}

static p2o_status lower_own(void *user, p2o_call *k)
{
    (void)user;
    p2o_value in = argument(k, 0).value, y = 0;
    p2o_node  n = { .size = sizeof n, .op = "Foo", .domain = "com.example", .ninput = 1,
                    .noutput = 1, .inputs = &in };
    p2o_status s = p2o_emit(k, &n, &y);
    return s == P2O_OK ? p2o_call_result(k, 0, y) : s;
}

static p2o_status lower_bad_argument(void *user, p2o_call *k)
{
    (void)user;
    p2o_argument x = { .size = sizeof x };
    return p2o_call_argument(k, 9, &x);
}

static p2o_status lower_bad_constant(void *user, p2o_call *k)
{
    (void)user;
    p2o_value v;
    return p2o_constant(k, "float32", 1, (int64_t[]){ 3 }, "1234", 4, &v);
}

static p2o_status lower_ignores(void *user, p2o_call *k)
{
    lower_bad_constant(user, k);                /* and goes on as if it had not failed */
    return lower_own(user, k);
}

static void test_wrong(void)
{
    static const struct {
        p2o_lower_fn *fn;
        const char   *said;
    } cases[] = {
        { lower_nothing, "its callback gave no result 1" },
        { lower_refuse, "only mode 'n' is done" },
        { lower_fail, "its callback failed (-6)" },
        { lower_wrong_result, "result 1 has size s0 on axis 0, which is 2*s0" },
        { lower_wrong_rank, "result 1 is float32 of rank 1, the file recorded float32 of rank 2" },
        { lower_baked, "result 1 has size 10 on axis 0, which is 2*s0" },
        { lower_unknown, "ONNX Nothing is not known here" },
        { lower_loop, "ONNX Loop is not known here" },
        { lower_ill_typed, "ONNX Concat (opset 20) does not take these inputs and attributes" },
        { lower_no_value, "an input that is no value of this call" },
        { lower_two_results, "has the results of the call, all of them" },
        { lower_bad_argument, "an argument that the call does not have" },
        { lower_bad_constant, "a constant whose type, sizes and bytes do not fit" },
        { lower_ignores, "a constant whose type, sizes and bytes do not fit" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Seen        seen = { 0 };
        const char *said;
        p2o_status  s = convert_with(cases[i].fn, &seen, &said, 0);
        if (s != P2O_ERR_UNSUPPORTED || !strstr(said, cases[i].said))
            printf("  case %zu: %d, %s\n", i, s, said);
        CHECK(s == P2O_ERR_UNSUPPORTED && strstr(said, cases[i].said));
    }
    Seen        seen = { 0 };
    const char *text;
    CHECK(convert_with(lower_own, &seen, &text, 1) == P2O_OK &&
          strstr(text, "y = com.example.Foo(x)"));
}

static void test_misuse(void)
{
    p2o_conversion *c = p2o_new(NULL);
    Seen            seen = { .c = c };
    CHECK(p2o_register_op(c, "mylib::foo", NULL, NULL) == P2O_ERR_MISUSE);
    CHECK(p2o_register_op(c, "foo", lower_own, NULL) == P2O_ERR_MISUSE);
    CHECK(p2o_register_op(c, "aten::relu", lower_own, NULL) == P2O_ERR_MISUSE);
    CHECK(p2o_register_op(c, "higher_order::cond", lower_own, NULL) == P2O_ERR_MISUSE);
    CHECK(p2o_register_op(c, "mylib::foo", lower_right, &seen) == P2O_OK);
    CHECK(p2o_register_op(c, "mylib::foo", lower_own, NULL) == P2O_ERR_MISUSE);
    CHECK(p2o_set_custom_op(c, "mylib::foo=com.example:Foo") == P2O_ERR_MISUSE);
    CHECK(p2o_set_custom_op(c, "mylib::bar=com.example:Foo@0") == P2O_ERR_MISUSE);
    CHECK(p2o_set_custom_op(c, "mylib::bar=com..example:Foo") == P2O_ERR_MISUSE);
    CHECK(p2o_add_op_text(c, "Foo") == P2O_ERR_INPUT);
    CHECK(p2o_add_op_library(c, "/nowhere/at/all") != P2O_OK);
    CHECK(p2o_call_narguments(NULL) == 0 && p2o_call_refuse(NULL, "x") == P2O_ERR_MISUSE);
    p2o_free(c);
}

/* The n-th allocation fails. */
typedef struct Shortage {
    long left;
} Shortage;

static void *scarce(void *user, void *p, size_t size)
{
    Shortage *x = user;
    if (size == 0) {
        free(p);
        return NULL;
    }
    return x->left-- > 0 ? realloc(p, size) : NULL;
}

static p2o_status lower_greedy(void *user, p2o_call *k)
{
    static char big[1 << 16];
    p2o_value   v;
    int64_t     n = sizeof big;
    p2o_status  s = P2O_OK;
    for (int i = 0; i < 200 && s == P2O_OK; i++) {      /* more than a chunk holds */
        big[0] = (char)i;
        s = p2o_constant(k, "uint8", 1, &n, big, sizeof big, &v);
    }
    int *after = user;
    ++*after;                                   /* no jump came across this frame */
    return s == P2O_OK ? lower_own(NULL, k) : s;
}

static void test_shortage(void)
{
    int after = 0, ended = 0, most = 400;
    for (int n = 0; n < most && ended < 3; n++) {
        Shortage    x = { n };
        p2o_options o;
        p2o_options_init(&o, sizeof o);
        o.alloc = scarce;
        o.user = &x;
        p2o_conversion *c = p2o_new(&o);
        if (!c)
            continue;
        int        before = after;
        p2o_status s = p2o_register_op(c, "mylib::foo", lower_greedy, &after);
        if (s == P2O_OK)
            s = p2o_read_program(c, program, strlen(program), NULL, 0);
        bool reached = s == P2O_OK;
        s = reached ? p2o_convert(c) : s;
        CHECK(s == P2O_OK || s == P2O_ERR_NOMEM);
        ended += s == P2O_OK;
        CHECK(after - before <= 1);
        p2o_free(c);
    }
    CHECK(ended == 3 && after > 3);
}

int main(void)
{
    test_right();
    test_wrong();
    test_misuse();
    test_shortage();
    return check_report();
}
