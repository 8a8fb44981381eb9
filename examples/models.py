"""The three example models, and how each file here was saved.  Needs PyTorch; the converter does not.

usage: python models.py FOLDER
"""
import os
import sys

import numpy as np
import torch
from torch import nn
from torch.export import Dim


class DynamicLinear(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(10, 5)

    def forward(self, input):
        return self.linear(input)


class DynamicRNN(nn.Module):
    """torch.export fixes the sequence length of an nn.RNN; pt2onnx frees it again."""

    def __init__(self):
        super().__init__()
        self.rnn = nn.RNN(10, 20, batch_first=True)
        self.linear = nn.Linear(20, 5)

    def forward(self, input):
        output, _ = self.rnn(input)
        return self.linear(output[:, -1, :])


class DynamicReshape(nn.Module):
    def forward(self, input):
        batch_size = input.shape[0]
        feature_dim = input.shape[1]
        return input.view(batch_size, feature_dim)


MODELS = {  # the model, its input at a size, the sizes, the axes meant to be dynamic
    "linear": (DynamicLinear, lambda b: torch.randn(b, 10), [(3,), (1,), (7,), (64,)], [0]),
    "rnn": (DynamicRNN, lambda b, s: torch.randn(b, s, 10), [(3, 5), (1, 1), (4, 7), (2, 31)], [0, 1]),
    "reshape": (DynamicReshape, lambda b: torch.randn(b, 10), [(3,), (1,), (7,), (64,)], [0]),
}


def main(folder):
    torch.manual_seed(0)
    for name, (cls, make, sizes, axes) in MODELS.items():
        model, record = cls().eval(), {}
        with torch.no_grad():
            for k, size in enumerate(sizes):
                x = make(*size)
                record["s%d.in.0" % k], record["s%d.out.0" % k] = x.numpy(), model(x.clone()).numpy()
            example = torch.from_numpy(record["s0.in.0"])
            program = torch.export.export(model, (example,), dynamic_shapes=({a: Dim.AUTO for a in axes},))
        torch.export.save(program, os.path.join(folder, name + ".pt2"))
        np.savez(os.path.join(folder, name + ".npz"), **record)


if __name__ == "__main__":
    main(sys.argv[1])
