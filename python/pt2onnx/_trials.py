"""Sizes to compare at, chosen to break what the model claims.

Small ones, equal ones, powers of two, primes, one much larger, the ends of the ranges claimed and
of what PyTorch's captures hold for; and the numbers that the code has, each with its neighbours.
"""
from __future__ import annotations

import math
import operator
import re
import time
from typing import Any, Callable, Dict, Iterator, List, Sequence, Set

import torch

from ._example import Sizes
from ._numbers import compared, mentioned
from ._sizes import SizePlan

MOST_ELEMENTS = 1 << 20         # of an input
WIDE = 8                        # times the least: a range that is worth a file
NEAR, FAR = 200, 4096           # up to where all sizes are looked at, and those by a number
MOST_TURNS = 6                  # of one size: the nearest
MOST_COMPARED = 12              # numbers: three sizes each, and each size takes a run
TURN_SECONDS = 2.0              # guards may fill pages, and are asked at some 200 sizes
LOOKED_AT = 512                 # sizes of a range, where it is longer
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
        """They hold at the example, and at one of two sizes at least from the least on up to a
        multiple of it and of the example's."""
        return self.hold(example.sizes) and all(
            self._is_wide(example, name) for name in self.symbols if name in example.sizes)

    def _is_wide(self, example: Any, name: str) -> bool:
        least = max(self.symbols[name].get("min", 1), 1)
        most = int(min(WIDE * max(least, example.sizes[name]), self._high(example, name)))
        step = (most - least) // LOOKED_AT | 1      # odd: all remainders of 2, 4, 8 are there
        held = [self.hold({**example.sizes, name: n}) for n in range(least, most + 1, step)]
        return 2 * sum(held) >= len(held)

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
        except (ArithmeticError, ValueError):   # n % 0, the root of less than 0
            return False
        except Exception:
            return True                         # what cannot be read excludes nothing


def turns(plan: SizePlan, holds: Callable[[Sizes], bool], numbers: Set[int],
          at: Sizes) -> Iterator[Sizes]:
    """Sizes on both sides of where something begins or ceases to hold, one of them varying.  Sizes
    of 1 are compared at anyway."""
    values = sorted({n + d for n in numbers for d in (-1, 0, 1) if n <= FAR} | set(range(2, NEAR)))
    values = [n for n in values if n > 1]
    began = time.thread_time()
    for name in plan.basis:
        tried = [plan.completed({**at, name: n}) for n in values]
        held = []
        for sizes in tried:
            if time.thread_time() - began > TURN_SECONDS:
                return
            held.append(holds(sizes))
        ends = [k + d for k in range(len(held) - 1) if held[k] != held[k + 1] for d in (0, 1)]
        ends.sort(key=lambda k: abs(values[k] - at[name]))
        yield from (tried[k] for k in ends[:MOST_TURNS])


def beside_compared(plan: SizePlan, model: torch.nn.Module) -> Iterator[Sizes]:
    """About the numbers that the code compares something with."""
    for n in compared(plan.own_code(), model)[:MOST_COMPARED]:
        for name in plan.basis:
            yield from ({name: n + d} for d in (1, 0, -1) if n <= FAR)


def trials(plan: SizePlan, claims: Claims, model: torch.nn.Module, programs: Sequence[Any],
           runs: Callable[[Sizes], bool], first: Sequence[Sizes] = ()) -> Iterator[Sizes]:
    """The most telling first, no two alike.  Where PyTorch runs the model must too, whatever it
    claims: only the user says what sizes are meant."""
    seen: List[Sizes] = []

    def works(sizes: Sizes) -> bool:
        small = plan.example.elements(sizes) <= MOST_ELEMENTS or sizes == plan.start
        return small and plan.example.bears(sizes) and runs(sizes)

    for wanted in _wanted(plan, claims, model, programs, first):
        sizes = plan.near(wanted, works)
        if sizes not in seen:
            seen.append(sizes)
            yield sizes


def _wanted(plan: SizePlan, claims: Claims, model: torch.nn.Module, programs: Sequence[Any],
            first: Sequence[Sizes]) -> Iterator[Sizes]:
    basis, start = plan.basis, plan.start
    most = max([200] + [4 * n for n in start.values()])
    yield start
    yield {n: 1 for n in basis}
    yield from ({n: 0} for n in start if plan.example.may_be_none(n))
    for name in start:
        s = claims.symbols.get(name, {})
        for n in [s[k] + d for k in ("min", "max") if k in s for d in (-1, 0, 1)]:
            if 1 < n < FAR:
                yield {name: n}
    yield from first
    yield from beside_compared(plan, model)
    for values in SHAPES[1:6]:
        yield spread(basis, values)
    for name in basis:
        yield {name: min(10 * start[name], 400)}
    for values in SHAPES[6:]:
        yield spread(basis, values)
    found = [n for n in mentioned(plan.own_code(), model, programs) if n <= most]
    for n in [n + d for n in found for d in (0, 1, -1)] + [2 * n for n in found]:
        if n <= most:
            yield {name: n for name in basis}


def spread(names: Sequence[str], values: Sequence[int]) -> Sizes:
    """The last values are taken again, each time 2 more if there are several."""
    k, step = len(values), 2 if len(values) > 1 else 0
    return {name: values[i % k] + step * (i // k) for i, name in enumerate(names)}
