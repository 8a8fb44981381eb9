/* dyn/source: what lines of Python show of the numbers of a call. */
#include "check.h"
#include "dyn/source.h"

static Place line(const char *text) { return (Place){ .file = "net.py", .line = 1, .text = text }; }

static void test_known(void)
{
    Place none = { .file = "net.py" }, whole = line("y = x * 2"), part = line("y = (x"), open = line("y = x * \\");
    CHECK(!p2o_source_known(NULL) && !p2o_source_known(&none));
    CHECK(p2o_source_known(&whole) && !p2o_source_known(&part) && !p2o_source_known(&open));
}

static void test_numbers(void)
{
    Place p = line("y = conv2d(x, 16).view(n, 1e-5, -.5, 3*4) + x.shape[7] + x.size(9)");
    CHECK(p2o_source_spells(&p, 16) && p2o_source_spells(&p, 1e-5) && p2o_source_spells(&p, 0.5) && p2o_source_spells(&p, 4));
    CHECK(!p2o_source_spells(&p, 2));                   /* of conv2d */
    CHECK(!p2o_source_spells(&p, 7) && !p2o_source_spells(&p, 9));      /* axes */
    CHECK(p2o_source_computes(&p, 3) && p2o_source_computes(&p, 4) && !p2o_source_computes(&p, 16));
}

static void test_items(void)
{
    Place p = line("y = x.view(b, 4, -1, 4).transpose(1, 2)[:, 4:, 8] + [4, 4]");
    CHECK(p2o_source_items(&p, "aten::view", 4) == 2 && p2o_source_items(&p, "aten::view", 1) == 0);
    CHECK(p2o_source_items(&p, "aten::slice.Tensor", 4) == 1 && p2o_source_items(&p, "aten::select.int", 8) == 1);
    CHECK(p2o_source_items(&p, "aten::transpose.int", 2) == 1);
    Place pad = line("x = F.pad(x, (0, 3))");
    CHECK(p2o_source_items(&pad, "aten::constant_pad_nd", 3) == 1);
}

static void test_shows(void)
{
    Place p = line("y = self.split(x) / n"), q = line("y = F.interpolate(x, size=(h, w))");
    CHECK(!p2o_source_shows(&p, "aten::view") && p2o_source_shows(&p, "aten::div.Tensor") && !p2o_source_shows(&p, "aten::slice.Tensor"));
    CHECK(p2o_source_shows(&q, "aten::upsample_bilinear2d.vec") && !p2o_source_shows(NULL, "aten::view"));
    CHECK(!p2o_source_reads_sizes(&p) && !p2o_source_reads_sizes(NULL));
    Place r = line("y = x[: len(x) - 1]");
    CHECK(p2o_source_reads_sizes(&r));
}

static void test_attributes(void)
{
    Place p = line("y = x[:, : self.config.keep] * self.scale"), q = line("y = self.pe[:, n] * self.f(x)");
    CHECK(p2o_source_has_attribute(&p, "aten::slice.Tensor") && p2o_source_has_attribute(&p, "aten::mul.Tensor"));
    CHECK(!p2o_source_has_attribute(&q, "aten::slice.Tensor") && !p2o_source_has_attribute(&q, "aten::mul.Tensor"));
}

int main(void)
{
    test_known();
    test_numbers();
    test_items();
    test_shows();
    test_attributes();
    return check_report();
}
