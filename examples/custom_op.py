"""Operators of one's own: registered in PyTorch, converted with ONNX functions and with a Python
function, run in ONNX Runtime at several sizes.

usage: python custom_op.py [FOLDER]         needs torch, onnxruntime, numpy and pt2onnx
"""
import os
import sys
from typing import Tuple

import numpy as np
import onnxruntime
import torch
from torch import Tensor

import pt2onnx

folder = sys.argv[1] if len(sys.argv) > 1 else "."
library = os.path.join(os.path.dirname(os.path.abspath(__file__)), "custom_op.txt")


# An operator that PyTorch does not look into.  The fake kernel tells torch.export its result's size.
@torch.library.custom_op("mylib::soft_threshold", mutates_args=())
def soft_threshold(x: Tensor, lambd: float, scale: float = 1.0) -> Tensor:
    return torch.sign(x) * torch.clamp(x.abs() - lambd, min=0) * scale


@soft_threshold.register_fake
def _(x, lambd, scale=1.0):
    return torch.empty_like(x)


@torch.library.custom_op("mylib::pool_pairs", mutates_args=())
def pool_pairs(x: Tensor, axis: int) -> Tuple[Tensor, Tensor]:
    n = x.shape[axis] // 2 * 2
    even = x.narrow(axis, 0, n).index_select(axis, torch.arange(0, n, 2))
    odd = x.narrow(axis, 0, n).index_select(axis, torch.arange(1, n, 2))
    return (even + odd) / 2, torch.maximum(even, odd)


@pool_pairs.register_fake
def _(x, axis):
    shape = list(x.shape)
    shape[axis] = shape[axis] // 2
    return x.new_empty(shape), x.new_empty(shape)


class Denoise(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(8, 6)

    def forward(self, x):
        h = soft_threshold(self.linear(x), 0.25, 2.0)
        mean, most = pool_pairs(h, 1)
        return soft_threshold(mean, 0.1) + most.sum(1, keepdim=True)


# The same in Python: x and lambd are what the program has there, g makes nodes of ONNX.
def soft_threshold_nodes(g, x, lambd, scale=1.0):
    kept = g.Max(g.Sub(g.Abs(x), lambd), 0.0)
    return g.Mul(g.Mul(g.Sign(x), kept), scale)


def compare(model, path, least=2):
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    for batch, length in (1, least), (1, 7), (3, 8), (7, 31), (2, 501):
        x = torch.randn(batch, length, 8)
        got = session.run(None, {"x": x.numpy()})[0]
        np.testing.assert_allclose(got, model(x).detach().numpy(), rtol=1e-4, atol=1e-5)
        print("  batch=%d length=%d: equal to PyTorch, %s" % (batch, length, list(got.shape)))


torch.manual_seed(0)
model = Denoise().eval()
axes = {"x": {0: "batch", 1: "length"}}
path = os.path.join(folder, "custom_op.onnx")

print("ONNX functions, which the file holds:")
pt2onnx.export(model, (torch.randn(3, 8, 8),), path, dynamic_axes=axes, op_library=library)
compare(model, path)

print("one of them by a Python function instead:")
pt2onnx.export(model, (torch.randn(3, 8, 8),), path, dynamic_axes=axes, op_library=library,
               custom_ops={soft_threshold: soft_threshold_nodes})
compare(model, path)

print("from a saved program, as the command does it:")
saved = os.path.join(folder, "custom_op.pt2")
batch, length = torch.export.Dim("batch"), torch.export.Dim("length", min=4)
program = torch.export.export(model, (torch.randn(3, 8, 8),),
                              dynamic_shapes=({0: batch, 1: length},))
torch.export.save(program, saved)
pt2onnx.export(saved, f=path, op_library=library)
compare(model, path, least=4)
