"""Sizes to compare at, chosen to break what the model claims.

Small ones, equal ones, powers of two, primes, one much larger, the ends of the ranges claimed; and
the numbers in the program, in the sizes of weights and in the user's source, each with its
neighbours and its double: where a branch or a table ends, it ends at such a number.
"""
from __future__ import annotations

import math
import operator
import re
from types import CodeType
from typing import Any, Callable, Dict, Iterator, List, Sequence, Set

import torch
from torch.utils import _pytree as pytree

from ._example import Sizes
from ._sizes import SizePlan

MOST_ELEMENTS = 1 << 20         # of an input
WIDE = 8                        # times the least: a range that is worth a file
SHAPES = ([1], [2, 3, 5, 7], [3], [5, 1], [1, 4, 6, 9], [7, 11, 13, 5], [4, 8, 16, 32], [2],
          [8, 16, 8, 16], [17, 23, 29, 19], [6, 10, 1, 12])


class Claims:
    """What the converted model says of its sizes."""

    def __init__(self, dims: Dict[str, Any]) -> None:
        self.symbols = dims.get("symbols", {})
        self._needs = dims.get("needs", [])

    def __str__(self) -> str:
        ranges = ["%s=%s..%s" % (n, s.get("min", 0), s.get("max", ""))
                  for n, s in self.symbols.items()]
        return ", ".join(ranges + self._needs)

    def hold(self, sizes: Sizes) -> bool:
        for name, s in self.symbols.items():
            n = sizes.get(name)
            if n is not None and not s.get("min", 0) <= n <= s.get("max", n):
                return False
        return all(self._holds(need, sizes) for need in self._needs)

    def are_wide(self, example: Any) -> bool:
        """They hold at the example, and from some size on or at least up to a multiple of it."""
        return self.hold(example.sizes) and all(
            s["max"] >= WIDE * max(s.get("min", 1), 1) or self._high(example, name) <= s["max"]
            for name, s in self.symbols.items() if "max" in s)

    def bounds(self, example: Any, differs: bool) -> List[str]:
        """What the file is not for and the user did not exclude.  That nothing below 2 was seen
        is the converter's own note, unless it is known that the model differs there."""
        out = []
        for name, s in self.symbols.items():
            if "max" in s and s["max"] < self._high(example, name):
                out.append("%s is at most %d" % (name, s["max"]))
            low = example.symbols[name].low if name in example.symbols else 0
            if s.get("min", 0) > max(low, 1 if differs else 2):
                out.append("%s is at least %d" % (name, s["min"]))
        return out + ["it needs %s" % n for n in self._needs
                      if not re.fullmatch(r"\d+ <= \w+|\w+ <= \d+", n)]

    @staticmethod
    def _high(example: Any, name: str) -> float:
        high = example.symbols[name].high if name in example.symbols else None
        return math.inf if high is None else high

    @staticmethod
    def _holds(need: str, sizes: Sizes) -> bool:
        text = re.sub(r"(?<![<>=!])=(?!=)", "==", need).replace("^", "**")
        try:
            return bool(eval(text, {"math": math, "operator": operator}, dict(sizes)))
        except Exception:
            return True                         # what cannot be read excludes nothing


def _ints_of_code(code: CodeType) -> Iterator[int]:
    for x in code.co_consts:
        if isinstance(x, CodeType):
            yield from _ints_of_code(x)
        elif type(x) is int:
            yield x


def _ints_of_modules(model: torch.nn.Module) -> Iterator[int]:
    for m in model.modules():
        for x in m.__dict__.values():
            if type(x) is int:
                yield x
        if not type(m).__module__.startswith("torch."):
            for f in vars(type(m)).values():
                if hasattr(f, "__code__"):
                    yield from _ints_of_code(f.__code__)


def numbers(model: torch.nn.Module, programs: Sequence[Any], most: int) -> List[int]:
    found: Set[int] = set(_ints_of_modules(model))
    for t in list(model.parameters()) + list(model.buffers()):
        found.update(t.shape)
    for ep in programs:
        for node in ep.graph.nodes:
            found.update(x for x in pytree.tree_leaves((node.args, node.kwargs)) if type(x) is int)
    return sorted(n for n in found if 3 < n <= most)


def trials(plan: SizePlan, claims: Claims, model: torch.nn.Module, programs: Sequence[Any],
           runs: Callable[[Sizes], bool]) -> Iterator[Sizes]:
    """The most telling first, no two alike.  Where PyTorch runs the model must too, whatever it
    claims: only the user says what sizes are meant."""
    seen: List[Sizes] = []

    def works(sizes: Sizes) -> bool:
        small = plan.example.elements(sizes) <= MOST_ELEMENTS or sizes == plan.start
        return small and plan.example.bears(sizes) and runs(sizes)

    for wanted in _wanted(plan, claims, model, programs):
        sizes = plan.near(wanted, works)
        if sizes not in seen:
            seen.append(sizes)
            yield sizes


def _wanted(plan: SizePlan, claims: Claims, model: torch.nn.Module,
            programs: Sequence[Any]) -> Iterator[Sizes]:
    basis, start = plan.basis, plan.start
    most = max([200] + [4 * n for n in start.values()])
    yield start
    yield {n: 1 for n in basis}
    for name in start:
        s = claims.symbols.get(name, {})
        for n in [s[k] + d for k in ("min", "max") if k in s for d in (-1, 0, 1)]:
            if 1 < n < 4 * most:
                yield {name: n}
    for values in SHAPES[1:6]:
        yield spread(basis, values)
    for name in basis:
        yield {name: min(10 * start[name], 400)}
    for values in SHAPES[6:]:
        yield spread(basis, values)
    found = numbers(model, programs, most)
    for n in [n + d for n in found for d in (0, 1, -1)] + [2 * n for n in found]:
        if n <= most:
            yield {name: n for name in basis}


def spread(names: Sequence[str], values: Sequence[int]) -> Sizes:
    """The last values are taken again, each time 2 more if there are several."""
    k, step = len(values), 2 if len(values) > 1 else 0
    return {name: values[i % k] + step * (i // k) for i, name in enumerate(names)}
