"""What a refusal asks for is enough: the capture that the message names is taken and given in
addition, until the model converts; then ONNX Runtime must agree with PyTorch at other sizes.

usage: asked.py PT2ONNX      needs PyTorch
"""
import logging
import os
import random
import re
import subprocess
import sys
import tempfile

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

import make_models
import sizes

logging.disable(logging.CRITICAL)      # PyTorch's own, where it refuses an example
MOST_ASKED = 6
OTHER_SIZES = 5
ASKED = re.compile(r"a capture at ((?:\w+=\d+(?:, )?)+) tells which")


class PadCrop(nn.Module):
    def forward(self, x):
        h, w = x.shape[-2:]
        y = F.pad(x, (0, (8 - w % 8) % 8, 0, (8 - h % 8) % 8))
        return F.avg_pool2d(y, 8).repeat_interleave(8, -1).repeat_interleave(8, -2)[..., :h, :w]


class Heads(nn.Module):
    """An odd number of heads and a scale, neither of which the line spells."""

    def __init__(self):
        super().__init__()
        self.heads, self.proj = 3, nn.Linear(12, 36)

    def forward(self, x):
        b, s, c = x.shape
        q, k, v = self.proj(x).view(b, s, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        w = (q @ k.transpose(-1, -2)) * (1 / s) ** 0.5
        y = (w.softmax(-1) @ v).transpose(1, 2).reshape(b, s, c)
        return y, x[:, : s // 2], x[:, -(s // 3) - 1:]


def model(name):
    return make_models.MODELS[name][0]


# (module, inputs, the sizes of the first captures).  An input without axes is the number 3.
CASES = [
    (PadCrop, ["x:batch,2,height,width"], [(2, 13, 21)]),
    (Heads, ["x:batch,seq,12"], [(2, 9)]),
    (model("pyramid"), ["x:batch,3,height,width"], [(2, 13, 18)]),
    (model("unet_replicate"), ["x:batch,1,height,width"], [(2, 9, 17), (3, 20, 27)]),
    (model("windows"), ["x:batch,height,width,6"], [(2, 12, 20), (5, 16, 32)]),
    (model("spectrum"), ["x:batch,samples"], [(2, 900)]),
    (model("recurrent"), ["x:batch,time,4", "h:1,batch,3"], [(2, 5), (3, 7)]),
    (model("loops"), ["x:time,batch,4", "n:"], [(5, 2), (4, 3)]),
    (model("pieces"), ["x:batch,seq,3"], [(2, 9), (3, 14)]),
    (model("first_piece"), ["x:batch,seq,3"], [(2, 8), (3, 11)]),
]


def axes(spec):
    return [a for a in spec.split(":")[1].split(",") if a]


def names_of(inputs):
    return list(dict.fromkeys(a for spec in inputs for a in axes(spec) if not a.isdigit()))


def example(inputs, at):
    """Inputs at the sizes {name: size}."""
    shapes = [[int(a) if a.isdigit() else at[a] for a in axes(spec)] for spec in inputs]
    return tuple(torch.randn(s) if s else torch.tensor(3) for s in shapes)


def convert(command, captures, inputs, onnx):
    options = [o for spec in inputs if axes(spec) for o in ("--input", spec)]
    command = [command, *captures, onnx, "--quiet", *options]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.stderr if done.returncode else None


def convert_as_asked(command, module, inputs, first, folder):
    """The captures' sizes, and why it does not convert: None where it does."""
    taken, files, onnx = [], [], os.path.join(folder, "m.onnx")
    wanted = [dict(zip(names_of(inputs), s)) for s in first]
    while True:
        for at in wanted:
            files.append(os.path.join(folder, "%d.pt2" % len(files)))
            taken.append(at)
            try:
                program = torch.export.export(module, example(inputs, at), strict=False)
            except Exception as e:
                return taken, "PyTorch does not capture it: " + str(e).strip()[:150]
            torch.export.save(program, files[-1])
        why = convert(command, files, inputs, onnx)
        asked = ASKED.search(why or "")
        if not asked or len(taken) == len(first) + MOST_ASKED:
            return taken, why
        at = {name: int(n) for name, n in re.findall(r"(\w+)=(\d+)", asked[1])}
        if at in taken:
            return taken, "it has that capture: " + why
        wanted = [at]


def run_elsewhere(command, module, inputs, taken, folder, rng):
    """Runs at sizes of no capture; None: all agree."""
    onnx, data = os.path.join(folder, "m.onnx"), os.path.join(folder, "m.npz")
    dims, runs = sizes.metadata(command, onnx), []
    low = {name: s.get("min", 0) for name, s in dims["symbols"].items()}
    for _ in range(20000):
        at = {name: rng.randint(max(1, n // 2), 2 * n + 9) for name, n in taken[0].items()}
        if at in taken or any(at.get(name, n) < n for name, n in low.items()):
            continue
        if all(sizes.holds(n, at) for n in dims["needs"]):
            runs.append(example(inputs, at))
        if len(runs) == OTHER_SIZES:
            np.savez(data, **make_models.record(module, runs))
            bounds = ["--rtol", "1e-4", "--atol", "1e-4"]
            ok, why = sizes.verify(command, onnx, ["--data", data, *bounds])
            return None if ok else why
    return "no sizes satisfy %s" % dims["needs"]


def main():
    rng, passed = random.Random(20240229), 0
    for cls, inputs, first in CASES:
        torch.manual_seed(0)
        module = cls().eval()
        make_models.randomize(module)
        with tempfile.TemporaryDirectory() as folder, torch.no_grad():
            taken, why = convert_as_asked(sys.argv[1], module, inputs, first, folder)
            why = why or run_elsewhere(sys.argv[1], module, inputs, taken, folder, rng)
        passed += not why
        if why:
            print("%s with captures at %s: %s" % (cls.__name__, taken, why))
        else:
            asked = len(taken) - len(first)
            print("%s: %d captures, %d asked for" % (cls.__name__, len(taken), asked))
    print("%d passed, %d failed" % (passed, len(CASES) - passed))
    return passed != len(CASES)


if __name__ == "__main__":
    sys.exit(main())
