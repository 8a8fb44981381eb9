"""Modules whose Python looks at sizes, captured by PyTorch with Dim.AUTO: the file is right wherever its metadata claim, or
it is refused.

usage: live.py PT2ONNX [NAME...]        needs torch and onnxruntime

Each module is captured at one size with every axis dynamic and converted.  Where the conversion is refused, exit code 4,
that must have been expected.  Else sizes are drawn from the ranges and needs in the metadata, their ends first, and the
numbers of ONNX Runtime held against the module itself; a module that fails at a claimed size fails the test too.
"""
import itertools
import json
import logging
import math
import operator
import os
import random
import re
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import onnxruntime
import torch
import torch.nn.functional as F
from torch import nn
from torch.export import Dim

warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)
torch.set_num_threads(1)
onnxruntime.set_default_logger_severity(3)
DRAWS = 14
MODULES = []                    # (name, the module's class, its inputs' shapes, "right" or "refused")


def module(expected, *shapes):
    def keep(forward):
        cls = type(forward.__name__, (nn.Module,), {"forward": forward})
        MODULES.append((forward.__name__, cls, shapes, expected))
        return forward
    return keep


@module("refused", (6, 7))
def temperature(self, x):
    return x * math.tanh(x.size(1) / 10)


@module("refused", (6, 16))
def keep_most(self, x):
    n = int(0.7 * x.shape[1])
    return sum(x[:, i] for i in range(n)) / n


@module("refused", (6, 16))
def groups_of_four(self, x):
    return torch.stack([x[:, 4 * i:4 * i + 4].mean(1) for i in range(x.shape[1] // 4)], 1)


@module("refused", (5, 7))
def all_cells(self, x):
    flat = x.reshape(-1)
    return sum(flat[i] * i for i in range(x.shape[0] * x.shape[1]))


@module("refused", (6, 16))
def repeated_to_hundred(self, x):
    return torch.cat([x] * (100 // x.shape[1]), 1)


@module("refused", (3, 10))
def rounded_steps(self, x):
    y = x
    for _ in range(round(x.shape[1] * 0.3)):
        y = F.relu(y) + x
    return y


@module("refused", (3, 9))
def halves(self, x):
    left = x
    while left.shape[1] > 1:
        left = left[:, :left.shape[1] // 2] + 1
    return left


@module("right", (6, 16))
def three_chunks(self, x):
    a, b, c = x.chunk(3, 1)
    return a.sum(1) + 2 * b.sum(1) + 3 * c.sum(1)


@module("right", (6, 16))
def short_ones_differ(self, x):
    return x + 1 if x.shape[1] <= 64 else x - 1


@module("right", (6, 16))
def by_half(self, x):
    return x * 2 if x.shape[1] / 2 > 3.3 else x


@module("right", (6, 16))
def even_or_odd(self, x):
    return x * 2 if x.shape[1] % 2 == 0 else x * 3


@module("right", (6, 16))
def padded_windows(self, x):
    n = x.shape[1]
    if n % 5:
        x = F.pad(x, (0, 5 - n % 5))
    return x.view(x.shape[0], -1, 5).sum(2)


@module("right", (6, 16))
def always_padded_windows(self, x):
    x = F.pad(x, (0, (5 - x.shape[1] % 5) % 5))
    return x.view(x.shape[0], -1, 5).mean(2)


@module("right", (6, 16))
def heads(self, x):
    return x.view(x.shape[0], 4, -1).softmax(-1)


@module("right", (6, 16))
def pairs(self, x):
    return x.view(x.shape[0], -1, 4).transpose(1, 2).reshape(x.shape[0], -1)


@module("right", (5, 7))
def square_or_not(self, x):
    return x * 2 if x.shape[0] != x.shape[1] else x.t()


@module("right", (4, 8))
def twice_as_wide(self, x):
    return x * 3 if 2 * x.shape[0] == x.shape[1] else x


@module("right", (6, 16))
def large_or_small(self, x):
    return x * 2 if x.shape[0] * x.shape[1] > 50 else x * 3


@module("right", (6, 16))
def between(self, x):
    return x * 2 if 3 < x.shape[1] <= 40 else x * 3


@module("right", (6, 16))
def quadratic(self, x):
    return x @ x.t() if x.shape[1] ** 2 < 1000 else x


@module("right", (6, 16))
def far_from_ten(self, x):
    return x * 2 if abs(x.shape[1] - 10) > 3 else x * 3


@module("right", (6, 16))
def whole_quarters(self, x):
    return x * 2 if (x.shape[1] / 4).is_integer() else x * 3


@module("right", (6, 16))
def first_ten(self, x):
    return x[:, :min(x.shape[1], 10)].cumsum(1)


@module("right", (6, 16))
def at_least_ten(self, x):
    return sum(x[:, i] for i in range(min(x.shape[1], 10)))


@module("right", (6, 16))
def up_to_a_table(self, x):
    return x + torch.linspace(0, 1, 20)[:x.shape[1]]


@module("right", (6, 16))
def strided_conv(self, x):
    return F.conv1d(x[:, None], torch.ones(4, 1, 5) / 5, stride=2)


@module("right", (6, 16))
def scaled(self, x):
    return x * x.shape[1] ** -0.5


@module("right", (6, 16), (6, 12))
def joined_pairs(self, x, y):
    return torch.cat([x, y], 1).view(-1, 2).sum(1)


@module("right", (2, 3, 16, 12))
def resized(self, x):
    y = F.interpolate(x, scale_factor=0.5, mode="nearest")
    return y if x.shape[2] >= 8 else y * 2


@module("right", (6, 16))
def powers_of_two(self, x):
    n = x.shape[1]
    return x * 2 if n & (n - 1) == 0 else x * 3


@module("right", (6, 16))
def not_seven(self, x):
    return x * 2 if x.shape[1] != 7 else x * 3


def capture(cls, shapes, path):
    torch.manual_seed(0)
    args = tuple(torch.randn(*s) for s in shapes)
    names = ["x", "y", "z"][:len(shapes)]
    dynamic = {n: {i: Dim.AUTO for i in range(len(s))} for n, s in zip(names, shapes)}
    torch.export.save(torch.export.export(cls(), args, dynamic_shapes=dynamic), path)


def metadata(command, model):
    text = subprocess.run([command, "inspect", model], capture_output=True, text=True).stdout
    return json.loads(re.search(r"pt2onnx\.dims: (.*)", text).group(1))


def sizes_in(dims, rng):
    """Up to DRAWS sizes that the metadata claim: the ends of the ranges, then any."""
    ranges = {}
    for name, s in dims["symbols"].items():
        low = s.get("min", 1)
        ranges[name] = (low, min(s.get("max", low + 140), low + 140))
    ends = itertools.product(*[(low, low + 1, high) for low, high in ranges.values()])
    some = ({n: rng.randint(*r) for n, r in ranges.items()} for _ in range(20000))
    found = []
    for sizes in itertools.chain((dict(zip(ranges, e)) for e in ends), some):
        fits = all(eval(n, {"math": math, "operator": operator}, sizes) for n in dims["needs"])
        if fits and sizes not in found:
            found.append(sizes)
        if len(found) == DRAWS:
            break
    return found


def compare(cls, model, dims, rng):
    """None, or how the file differs from the module."""
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    drawn = sizes_in(dims, rng)
    for sizes in drawn:
        args = []
        for port in session.get_inputs():
            shape = [d if isinstance(d, int) else eval(d, {}, sizes) for d in port.shape]
            args.append(torch.from_numpy(np.random.default_rng(len(args)).standard_normal(shape).astype(np.float32)))
        try:
            want = cls()(*args)
        except (RuntimeError, ValueError, IndexError) as e:
            return "PyTorch fails at %s: %s" % (sizes, str(e).splitlines()[0])
        try:
            got = session.run(None, {p.name: a.numpy() for p, a in zip(session.get_inputs(), args)})[0]
        except Exception as e:
            return "does not run at %s: %s" % (sizes, str(e).splitlines()[0])
        if got.shape != tuple(want.shape) or not np.allclose(got, want.numpy(), 1e-4, 1e-4):
            return "other numbers at %s" % sizes
    return None if len(drawn) >= 4 else "too few sizes are claimed: %s" % dims


def check(command, folder, name, cls, shapes, expected):
    path, model = os.path.join(folder, name + ".pt2"), os.path.join(folder, name + ".onnx")
    capture(cls, shapes, path)
    p = subprocess.run([command, path, model, "--quiet"], capture_output=True, text=True)
    if p.returncode not in (0, 4):
        return "exit code %d: %s" % (p.returncode, p.stderr)
    if (p.returncode == 4) != (expected == "refused"):
        return "expected %s: %s" % (expected, p.stderr or "converted")
    if p.returncode == 4:
        return None if "the capture's guard" in p.stderr else "no guard is quoted: " + p.stderr
    return compare(cls, model, metadata(command, model), random.Random(name))


def main():
    passed = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, cls, shapes, expected in MODULES:
            if sys.argv[2:] and name not in sys.argv[2:]:
                continue
            why = check(sys.argv[1], folder, name, cls, shapes, expected)
            passed, failed = passed + (why is None), failed + (why is not None)
            if why:
                print("%s: %s" % (name, why))
    print("%d passed, %d failed" % (passed, failed))
    return failed != 0


sys.exit(main())
