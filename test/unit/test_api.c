/* The library as its users see it: a program in memory, its ports as JSON, and what is refused of
 * it. */
#include "check.h"
#include "pt2onnx.h"

#include <stdbool.h>
#include <string.h>

#define TENSOR(name, a, b) \
    "\"" name "\":{\"dtype\":7,\"layout\":7,\"sizes\":[{\"as_int\":" a "},{\"as_int\":" b "}]," \
    "\"strides\":[{\"as_int\":" b "},{\"as_int\":1}]}"
#define NAMED(name)     "{\"as_tensor\":{\"name\":\"" name "\"}}"

static const char program[] =
    "{\"graph_module\":{\"graph\":{\"inputs\":[" NAMED("p_w") "," NAMED("x") "],"
    "\"outputs\":[" NAMED("y") "],"
    "\"nodes\":[{\"target\":\"torch.ops.aten.matmul.default\",\"inputs\":["
    "{\"name\":\"self\",\"arg\":" NAMED("x") "},"
    "{\"name\":\"other\",\"arg\":" NAMED("p_w") "}],"
    "\"outputs\":[" NAMED("y") "],\"metadata\":{}}],"
    "\"tensor_values\":{" TENSOR("p_w", "3", "2") "," TENSOR("x", "5", "3") ","
    TENSOR("y", "5", "2") "}},\"signature\":{\"input_specs\":["
    "{\"parameter\":{\"arg\":{\"name\":\"p_w\"},\"parameter_name\":\"w\"}},"
    "{\"user_input\":{\"arg\":" NAMED("x") "}}],"
    "\"output_specs\":[{\"user_output\":{\"arg\":" NAMED("y") "}}]},"
    "\"module_call_graph\":[]},\"range_constraints\":{},"
    "\"schema_version\":{\"major\":8,\"minor\":0}}";

static const float   values[6] = { 1, 2, 3, 4, 5, 6 };
static const int64_t sizes[2] = { 3, 2 }, by_column[2] = { 1, 3 };

static p2o_weight weight(const void *data, uint64_t nbytes)
{
    return (p2o_weight){ .size = sizeof(p2o_weight),
                         .name = "w",
                         .dtype = "float32",
                         .data = data,
                         .nbytes = nbytes,
                         .rank = 2,
                         .sizes = sizes,
                         .strides = by_column };
}

static p2o_status read_with(p2o_weight w, size_t n, const char **said)
{
    static char text[256];
    p2o_conversion *c = p2o_new(NULL);
    p2o_status      s = p2o_read_program(c, program, strlen(program), &w, n);
    text[0] = 0;
    if (p2o_diag_count(c))
        strncat(text, p2o_diag_at(c, 0)->message, sizeof text - 1);
    *said = text;
    p2o_free(c);
    return s;
}

typedef struct Written {
    char   bytes[4096];
    size_t n;
} Written;

static int keep(void *user, const void *p, size_t n)
{
    Written *w = user;
    if (n > sizeof w->bytes - w->n)
        return 0;
    memcpy(w->bytes + w->n, p, n);
    w->n += n;
    return 1;
}

static bool holds(const Written *w, const void *p, size_t n)
{
    for (size_t i = 0; i + n <= w->n; i++)
        if (!memcmp(w->bytes + i, p, n))
            return true;
    return false;
}

static void test_program_in_memory(void)
{
    static const float rows[6] = { 1, 4, 2, 5, 3, 6 };          /* the weight in row-major order */
    static Written     out;
    p2o_conversion    *c = p2o_new(NULL);
    p2o_weight         w = weight(values, sizeof values);
    CHECK(p2o_signature(c) == NULL);
    CHECK(p2o_read_program(c, program, strlen(program), &w, 1) == P2O_OK);
    CHECK(p2o_set_input(c, "x:n,?") == P2O_OK && p2o_convert(c) == P2O_OK);
    const char *s = p2o_signature(c);
    CHECK(s && strstr(s, "\"inputs\":[{\"name\":\"x\",\"dtype\":\"float32\",\"dims\":[\"n\",3]}]"));
    CHECK(s &&
          strstr(s, "\"outputs\":[{\"name\":\"y\",\"dtype\":\"float32\",\"dims\":[\"n\",2]}]"));
    CHECK(p2o_write(c, keep, &out) == P2O_OK && holds(&out, rows, sizeof rows));
    p2o_free(c);
}

static void test_bad_weights(void)
{
    const char *said;
    CHECK(read_with(weight(values, sizeof values), 0, &said) == P2O_ERR_INPUT &&
          strstr(said, "none was given"));
    CHECK(read_with(weight(values, sizeof values - 1), 1, &said) == P2O_ERR_MISUSE);
    CHECK(read_with(weight(NULL, sizeof values), 1, &said) == P2O_ERR_MISUSE &&
          strstr(said, "no memory"));
    p2o_weight odd = weight(values, sizeof values);
    odd.dtype = "float31";
    CHECK(read_with(odd, 1, &said) == P2O_ERR_MISUSE && strstr(said, "dtype"));
    odd = weight(values, sizeof values);
    odd.rank = -1;
    CHECK(read_with(odd, 1, &said) == P2O_ERR_MISUSE);
    odd.rank = 2;
    odd.offset = UINT64_MAX;
    CHECK(read_with(odd, 1, &said) == P2O_ERR_MISUSE);
}

int main(void)
{
    test_program_in_memory();
    test_bad_weights();
    return check_report();
}
