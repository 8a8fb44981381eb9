/* Functions of ONNX's text syntax: what is read, what is refused and where, and what rules make of
 * them. */
#include "check.h"

#include "onnx/function.h"
#include "onnx/onnx_ops.h"

static char said[512];

static void keep_text(void *user, const Diag *d)
{
    (void)user;
    snprintf(said, sizeof said, "%s", d->text);
}

typedef struct Fixture {
    Arena          *arena;
    Diags          *diags;
    FunctionLibrary library;
} Fixture;

static Fixture start(void)
{
    Fixture x = { .arena = p2o_arena_new(NULL, NULL) };
    p2o_arena_guard(x.arena);
    x.diags = p2o_diags_new(x.arena, keep_text, NULL);
    x.library.index.arena = x.arena;
    said[0] = 0;
    return x;
}

#define HEAD "<domain: \"d\", opset_import: [\"\" : 18]>\n"

static void refuses(const char *text, const char *message)
{
    Fixture x = start();
    bool    ok = p2o_functions_parse(x.diags, &x.library, str_of(text));
    if (ok || !strstr(said, message))
        printf("  %s\n    said: %s\n    not: %s\n", text, said, message);
    CHECK(!ok && strstr(said, message) && x.library.index.n == 0);
    p2o_arena_free(x.arena);
}

static void test_reads(void)
{
    Fixture x = start();
    CHECK(p2o_functions_parse(x.diags, &x.library, STR(
        "# two functions\n" HEAD
        "Foo <alpha, beta: float = 2, names: strings = [\"a\", \"b\\\"\"]>\n"
        "(X, float[N, 3] Y) => (Z)\n"
        "<float[N] T>\n"
        "{\n"
        "  C = Constant <value_float: float = @alpha> ()\n"
        "  [label] T = Mul (X, C)      # a comment\n"
        "  Q = Constant <value = float[2] {1.0, -2}> ()\n"
        "  S = Constant <value: tensor = int64[2, 1] q = {-1, 7}> ()\n"
        "  E = Constant <value_ints: ints = []> ()\n"
        "  I = Constant <value_floats = [1, -inf, nan, 1e-3, 2.]> ()\n"
        "  A, \"odd name\" = Split <axis = -1> (T, \"\")\n"
        "  Z = Add (A, Y) <ignored = 1>\n"
        "}\n"
        "<domain: \"d\", opset_import: [\"\" : 18, \"d\" : 1, \"com.other\" : 3]>\n"
        "Bar (X) => (Z) { Y = d.Foo <alpha = 1.5> (X, X) Z = com.other.Op (Y) }\n")));
    const OnnxFunction *f = p2o_functions_find(&x.library, "d", "Foo");
    const OnnxFunction *g = p2o_functions_find(&x.library, "d", "Bar");
    if (!f || !g)
        printf("%s\n", said);
    if (!f || !g) {
        CHECK(!"parsed");
        return;
    }
    CHECK(f->nin == 2 && f->nout == 1 && f->nnode == 8 && f->opset == 18 && f->nattr == 3);
    CHECK(same(f->in[1], "Y") && f->attrs[0].has_kind && f->attrs[0].kind == ATTR_FLOAT);
    CHECK(f->attrs[1].has_default && f->attrs[1].dflt.f == 2.0f);
    CHECK(f->attrs[2].dflt.n == 2 && same(f->attrs[2].dflt.strs[1], "b\""));
    CHECK(same(f->nodes[0].attrs[0].ref, "alpha") && same(f->nodes[1].name, "label"));
    CHECK(f->nodes[2].attrs[0].value.tensor->sizes[0] == 2);
    CHECK(f->nodes[3].attrs[0].value.tensor->rank == 2);
    CHECK(f->nodes[4].attrs[0].value.kind == ATTR_INTS && f->nodes[4].attrs[0].value.n == 0);
    CHECK(f->nodes[5].attrs[0].value.n == 5 && f->nodes[5].attrs[0].value.floats[4] == 2.0f);
    CHECK(f->nodes[6].nin == 2 && *f->nodes[6].in[1] == 0 && f->nodes[6].nout == 2);
    CHECK(f->nodes[7].nattr == 1);
    CHECK(g && g->nodes[0].calls == f && !g->nodes[1].calls);
    CHECK(same(g->nodes[1].domain, "com.other") && same(g->nodes[1].op, "Op"));
    CHECK(!p2o_functions_find(&x.library, "d", "Op"));
    p2o_arena_free(x.arena);
}

static void test_refuses(void)
{
    refuses("", "line 1, column 1: no function");
    refuses("Foo (X) => (Y) {}", "expected '<', found 'F'");
    refuses("<domain: \"d\">\nFoo (X) => (X) {}", "line 1, column 1: a function needs its opsets");
    refuses("<opset_import: [\"\" : 18]> Foo (X) => (Y) {}", "needs a domain of its own");
    refuses("<domain: \"d\", version: 3> Foo", "line 1, column 15: 'version' is not known");
    refuses(HEAD "Foo (X) => (Y)\n{\n  Y = Relu (W)\n}", "line 4, column 13: 'W' is not defined");
    refuses(HEAD "Foo (X) => (Y) { X = Relu (X) }", "'X' is defined twice");
    refuses(HEAD "Foo (X) => (Y) { Z = Relu (X) }", "output 'Y' of 'Foo' is not defined");
    refuses(HEAD "Foo (X) => (X) { Z = Relu (X) }", "output 'X' of 'Foo' is an input");
    refuses(HEAD "Foo (X) => () { Z = Relu (X) }", "has no outputs");
    refuses(HEAD "Foo (X) => (Y, Y) { Y = Relu (X) }", "stands there twice");
    refuses(HEAD "Foo (X) => (Y) { Y = d.Foo (X) }", "does not name the domain \"d\"");
    refuses("<domain: \"d\", opset_import: [\"\" : 18, \"d\" : 1]>"
            "Foo (X) => (Y) { Y = d.Foo (X) }", "called before it is defined, or by itself");
    refuses(HEAD "Foo (X) => (Y) { Y = Relu (X) }" HEAD "Foo (X) => (Y) { Y = Relu (X) }",
            "line 3, column 1: function 'Foo' is defined twice");
    refuses(HEAD "Foo (X) => (Y) { C = Constant <value_float = @a> () }", "no attribute 'a'");
    refuses(HEAD "Foo <a> (X) => (Y) { C = Constant <value_float = @a> () }", "needs its type");
    refuses(HEAD "Foo <a: float = 1.0> (X) => (Y) { C = Constant <value_int: int = @a> () }",
            "'a' is int here and float elsewhere");
    refuses(HEAD "Foo (X) => (Y) { Y = Op <a = []> (X) }", "an empty list needs its type");
    refuses(HEAD "Foo (X) => (Y) { Y = Op <a = [1, \"x\"]> (X) }", "expected text in quotes");
    refuses(HEAD "Foo (X) => (Y) { Y = Op <a: int = 1.5> (X) }", "expected a whole number");
    refuses(HEAD "Foo (X) => (Y) { Y = Op <a: int = 99999999999999999999> (X) }",
            "no number of 64");
    refuses(HEAD "Foo (X) => (Y) { Y = Op <a: ints = 1> (X) }",
            "one value where the type says ints");
    refuses(HEAD "Foo (X) => (Y) { Y = Op <a: graph = 1> (X) }", "attributes are int, float");
    refuses(HEAD "Foo (X) => (Y) { Y = If <then_branch = g () => (float q) {}> (X) }",
            "graphs and types are not taken");
    refuses(HEAD "Foo (X) => (Y) { Y = Op <a = 1, a = 2> (X) }", "stands there twice");
    refuses(HEAD "Foo (X) => (Y) { Y = Op <a = float[2] {1.0}> (X) }", "1 elements of 2");
    refuses(HEAD "Foo (X) => (Y) { Y = Op <a = uint8[1] {300}> (X) }", "300 is no uint8");
    refuses(HEAD "Foo (X) => (Y) { Y = Op <a = int8[1] {-129}> (X) }", "-129 is no int8");
    refuses(HEAD "Foo (X) => (Y) { Y = Op <a = float[4611686018427387904, 8] {1}> (X) }",
            "not too large");
    refuses(HEAD "Foo (X) => (Y) { Y = Op <a = float[N] {1}> (X) }", "sizes are numbers");
    refuses(HEAD "Foo (X) => (Y) { Y = Op <a = \"x> (X) }", "no end");
    refuses(HEAD "Foo (X) => (Y) { Y = Op (X)", "expected a value's name, found the end");
    refuses(HEAD "Foo (X) -> (Y) { Y = Op (X) }", "expected '=', found '-'");
    refuses("\xff\xfe", "a byte that is no text");
}

/* Types of a function's results for inputs f32[n, 4] and f32[n, 4]. */
static const char *types_of(Fixture *x, const char *name, int nattr, const Attr *attrs)
{
    const OnnxFunction *f = p2o_functions_find(&x->library, "d", name);
    Dims               *t = p2o_dims_new(x->arena);
    Graph              *g = p2o_graph_new(x->arena, x->diags, t, f->opset, NULL);
    Dim                 n = p2o_dim_sym(t, "n");
    Shape               s = { 2, (Dim[]){ n, p2o_dim_int(t, 4) } };
    Value              *in[] = { p2o_graph_input(g, NULL, DT_F32, s),
                                 p2o_graph_input(g, NULL, DT_F32, s) };
    Value              *out[4] = { 0 };
    if (!p2o_function_type(g, f, 2, in, nattr, attrs, out))
        return "wrong";
    return out[0] ? p2o_printf(x->arena, "%s[%s]", p2o_dtype_text(out[0]->dtype),
                               p2o_shape_text(t, out[0]->shape)) : "unknown";
}

static void test_types(void)
{
    Fixture x = start();
    CHECK(p2o_functions_parse(x.diags, &x.library, STR(
        HEAD "Join <axis: int = 0> (X, Y) => (Z) { Z = Concat <axis: int = @axis> (X, Y) }\n"
        HEAD "Odd (X, Y) => (Z) { T = Nothing (X) Z = Add (T, Y) }\n"
        HEAD "Bad (X, Y) => (Z) { A = Constant <value_ints = [7]> () Z = Reshape (X, A, X) }\n"
        "<domain: \"d\", opset_import: [\"\" : 18, \"d\" : 1]>"
        "Twice (X, Y) => (Z) { J = d.Join <axis = 1> (X, Y) Z = d.Join (J, J) }\n"
        HEAD "New (X) => (Z) { A = Constant <value_ints = [0]> () Z = ReduceMax (X, A) }\n")));
    CHECK(same(types_of(&x, "Join", 0, NULL), "f32[2*n, 4]"));
    Attr one = attr_int("axis", 1);
    CHECK(same(types_of(&x, "Join", 1, &one), "f32[n, 8]"));
    CHECK(same(types_of(&x, "Twice", 0, NULL), "f32[2*n, 8]"));
    CHECK(same(types_of(&x, "Odd", 0, NULL), "unknown"));
    CHECK(same(types_of(&x, "Bad", 0, NULL), "wrong"));
    const char *op = NULL;
    CHECK(!p2o_function_misfit(x.arena, p2o_functions_find(&x.library, "d", "Twice"), 20, &op));
    CHECK(!p2o_function_misfit(x.arena, p2o_functions_find(&x.library, "d", "New"), 20, &op));
    CHECK(p2o_function_misfit(x.arena, p2o_functions_find(&x.library, "d", "New"), 17, &op) &&
          same(op, "ReduceMax"));
    CHECK(p2o_function_misfit(x.arena, p2o_functions_find(&x.library, "d", "Odd"), 20, &op) &&
          same(op, "Nothing"));
    p2o_arena_free(x.arena);
}

/* Each calls the one before it twice: nobody waits for 2^40 nodes. */
static void test_doubling(void)
{
    Fixture x = start();
    Buf     b = { .arena = x.arena };
    p2o_puts(&b, HEAD "F0 (X) => (Z) { Z = Relu (X) }\n");
    for (int i = 1; i <= 40; i++)
        p2o_putf(&b, "<domain: \"d\", opset_import: [\"\" : 18, \"d\" : 1]>"
                 "F%d (X) => (Z) { Y = d.F%d (X) Z = d.F%d (Y) }\n", i, i - 1, i - 1);
    CHECK(p2o_functions_parse(x.diags, &x.library, buf_str(&b)));
    CHECK(same(types_of(&x, "F3", 0, NULL), "f32[n, 4]"));
    CHECK(same(types_of(&x, "F40", 0, NULL), "unknown"));
    const char *op;
    CHECK(!p2o_function_misfit(x.arena, p2o_functions_find(&x.library, "d", "F40"), 20, &op));
    p2o_arena_free(x.arena);
}

int main(void)
{
    test_reads();
    test_refuses();
    test_types();
    test_doubling();
    return check_report();
}
