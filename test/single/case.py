"""How a module of one operator is written down.

    @case(lambda n: (f(n, 12, 16), f(n, 12)))
    def torch_foo(x, y): return torch.foo(x), torch.foo(x, y, dim=1)

    modules("nn_Foo", lambda n: (f(n, 12, 16),), nn.Foo(3), nn.Foo(3, padding=1))

The first gives the inputs at batch n; axis 0 of each is dynamic.  Settings of a case:
  random   only types and shapes are compared
  same     a function of the outputs whose results are compared in their place: where PyTorch leaves
           some open (signs, order)
  least    of batches: below it PyTorch contradicts what it says of shapes itself
  tol      the relative tolerance of float32
"""
import functools

import torch
from torch import nn

CASES = {}


class Case:
    def __init__(self, name, make, inputs, random=False, same=None, tol=1e-4, least=0):
        self.name, self.make, self.inputs = name, make, inputs
        self.random, self.same, self.tol, self.least = random, same, tol, least


def as_module(function):
    """A module whose forward is the function, with its parameters.  PyTorch saves no named tuples."""
    def unnamed(x):
        return tuple(unnamed(y) for y in x) if isinstance(x, tuple) else x

    @functools.wraps(function)
    def forward(*args):
        return unnamed(function(*args))

    class Module(nn.Module):
        pass
    Module.forward = staticmethod(forward)
    return Module()


class Each(nn.Module):
    """What each of several modules makes of the same inputs."""

    def __init__(self, made):
        super().__init__()
        self.made = nn.ModuleList(made)

    def forward(self, x):
        return tuple(m(x) for m in self.made)


class EachOfTwo(Each):
    def forward(self, x, y):
        return tuple(m(x, y) for m in self.made)


class EachOfThree(Each):
    def forward(self, x, y, z):
        return tuple(m(x, y, z) for m in self.made)


def note(name, make, inputs, **settings):
    assert name not in CASES, name
    CASES[name] = Case(name, make, inputs, **settings)


def case(inputs, **settings):
    def decorate(function):
        note(function.__name__, lambda: as_module(function), inputs, **settings)
        return function
    return decorate


def modules(name, inputs, *makers, **settings):
    kind = {1: Each, 2: EachOfTwo, 3: EachOfThree}[len(inputs(3))]
    note(name, lambda: kind([m() for m in makers]), inputs, **settings)


def f(*shape):
    return torch.randn(*shape)


def pos(*shape):
    return torch.rand(*shape) + 0.1


def unit(*shape):
    return torch.rand(*shape)


def i(low, high, *shape):
    return torch.randint(low, high, shape)


def b(*shape):
    return torch.rand(*shape) > 0.5


def c(*shape):
    return torch.randn(*shape, dtype=torch.complex64)
