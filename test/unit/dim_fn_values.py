"""Prints dim_fn_values.h: what Python says of the functions of sizes that Dims know.

For each function one hash of its values at 0, 1, ... 3000 and at large numbers.  Products by short
binary fractions are exact in Dims, and in Python where no double rounds them: below 2^41."""
import math

LARGE = [n + d for n in (2 ** 31, 10 ** 12, 2 ** 52)
         for d in (-2, -1, 0, 1, 3)] + [(2 ** 26 + 1) ** 2 - 1]
FACTORS = [0.7, 0.3, 0.1, 0.9, 1.7, 1 / 3, 2 / 3, 0.29, 0.57, 1.1, math.pi, 0.001, -0.7, 0.5, 1.5,
           -0.75, 3.0, 7.0]
ROUNDS = {"TRUNC": math.trunc, "FLOOR": math.floor, "CEIL": math.ceil, "ROUND": round}


def row(fn, factor, value):
    h, short = 14695981039346656037, factor and factor * 1024 == int(factor * 1024)
    large = [n for n in LARGE if n < 2 ** 41 or not short]
    for n in list(range(3001)) + large:
        h = (h ^ value(n) % 2 ** 64) * 1099511628211 % 2 ** 64
    print("    { %s, %s, %d, %du }," % (fn, float(factor).hex(), len(large), h))


print("/* Made by dim_fn_values.py. */")
print("static const int64_t large[] = {\n    %s,\n};" % ",\n    ".join(map(str, LARGE)))
print("static const struct {\n    DimFn    fn;\n    double   factor;\n    size_t   nlarge;\n"
      "    uint64_t hash;\n"
      "} said_by_python[] = {")
row("FN_ISQRT", 0, math.isqrt)
row("FN_BIT_LENGTH", 0, int.bit_length)
for c in FACTORS:
    for name, f in ROUNDS.items():
        row("FN_" + name, c, lambda n: f(c * n))
        row("FN_%s_OVER" % name, c, lambda n: f(n / c))
print("};")
