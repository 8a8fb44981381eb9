"""Which sizes a model runs at: found by running it.

Sizes may hang together (mask length = past + new; height a multiple of 32).  A Move is a change that the model
bears: one symbol by a step, perhaps others with it.  Whatever sizes are used, for captures and for checks, are
reached by moves from the example, and every one was run by PyTorch.
"""
from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from ._errors import DynamicError, UsageError
from ._example import Example, Sizes

MOST_TRIES = 200                # runs of the model, for one symbol
STEPS = (1, 2, 4, 8, 16, 32, 64, 3, 5, 6, 7, 12, 14, 28)


@dataclass(frozen=True)
class Move:
    symbol: str
    step: int
    others: Tuple[str, ...] = ()        # that change by as much

    def apply(self, sizes: Mapping[str, int], times: int) -> Sizes:
        out = dict(sizes)
        for name in (self.symbol,) + self.others:
            out[name] += self.step * times
        return out


class SizePlan:
    """`runs(sizes)` is None when PyTorch runs the model at these sizes, else what it says."""

    def __init__(self, example: Example, runs: Callable[[Sizes], Optional[Exception]]) -> None:
        self.example = example
        self._runs = runs
        self._known: Dict[Tuple[Tuple[str, int], ...], Optional[Exception]] = {}
        self._moves: Optional[List[Move]] = None
        self._start: Optional[Sizes] = None

    def why_not(self, sizes: Sizes) -> Optional[Exception]:
        for name, n in sizes.items():
            if not self.example.symbols[name].allows(n):
                return ValueError("%s=%d is outside its range" % (name, n))
        key = tuple(sorted(sizes.items()))
        if key not in self._known:
            self._known[key] = self._runs(sizes)
        return self._known[key]

    def works(self, sizes: Sizes) -> bool:
        return self.why_not(sizes) is None

    def guess(self) -> Sizes:
        """Sizes to capture at, without a run: two or more, no two alike; powers of two are kept."""
        out: Sizes = {}
        for name, s in self.example.symbols.items():
            n = max(s.size, 2)
            step = n & -n if n > 2 else 1
            while n in out.values():
                n += step
            out[name] = n if s.allows(n) else s.size
        return out

    def start(self) -> Sizes:
        """The example's sizes, but none below 2 if the model bears it."""
        if self._start is None:
            sizes = self.example.sizes
            raised = {k: max(v, 2) for k, v in sizes.items()}
            self._start = raised if self.works(raised) else dict(sizes)
            if self._start is not raised:
                for name in sizes:                      # one at a time
                    one = dict(self._start, **{name: raised[name]})
                    if self.works(one):
                        self._start = one
        return self._start

    def _find_move(self, symbol: str) -> Move:
        start = self.start()
        why = self.why_not(start)
        if why is not None:
            raise UsageError("the model does not run on its example: %s: %s" % (type(why).__name__, str(why).strip())) from why
        rest = [n for n in start if n != symbol]
        first: Optional[Exception] = None
        ways = (Move(symbol, step, others) for count in range(min(len(rest), 3) + 1)
                for others in itertools.combinations(rest, count) for step in (STEPS if count < 2 else STEPS[:6]))
        for tries, move in enumerate(itertools.islice(ways, MOST_TRIES), 1):
            why = self.why_not(move.apply(start, 1))
            if why is None:
                return move
            first = first or why
        raise DynamicError("'%s' cannot be dynamic: the model itself does not run when it is other than %d (%d ways tried)."
                           "\nPyTorch says: %s: %s" % (symbol, start[symbol], tries, type(first).__name__,
                                                      str(first).strip().split("\n")[0]))

    def moves(self) -> List[Move]:
        if self._moves is None:
            self._moves = [self._find_move(name) for name in self.example.symbols]
        return self._moves

    def reach(self, times: Sequence[int]) -> Sizes:
        sizes = self.start()
        for move, n in zip(self.moves(), times):
            sizes = move.apply(sizes, n)
        return sizes

    def others(self, taken: Sequence[Sizes]) -> Iterator[Sizes]:
        """Sizes that work: far from each other and from `taken`, every symbol changed, no two symbols alike first."""
        k = len(self.moves())
        seen = [dict(t) for t in taken]
        for alike in (False, True):
            for base in range(1, 12):
                times = [base + (2 * base + 1) * i % 7 for i in range(k)]
                for sizes in (self.reach(times), self.reach([base] * k)):
                    distinct = len(set(sizes.values())) == len(sizes)
                    changed = all(any(sizes[n] != t[n] for n in sizes) for t in seen)
                    if (distinct or alike) and changed and self.works(sizes):
                        seen.append(sizes)
                        yield sizes

    def captures(self, n: int) -> List[Sizes]:
        """Sizes for fixed captures, each symbol different in all of them if that can be."""
        out: List[Sizes] = []
        if not self.example.symbols:
            return [{}]
        for strict in (True, False):
            for sizes in self.others(out):
                if strict and any(sizes[s] == t[s] for t in out for s in sizes):
                    continue
                out.append(sizes)
                if len(out) == n:
                    return out
        return out

    def past(self, name: str, most: int) -> Optional[Sizes]:
        """Sizes with this one over `most`; None where the model does not run there."""
        sizes = self.start()
        for move in self.moves():
            if move.symbol == name and sizes[name] <= most:
                over = move.apply(sizes, (most - sizes[name]) // move.step + 1)
                return over if self.works(over) else None
        return None

    def smallest(self) -> Sizes:
        """Every symbol 1, or as near as moves lead: sizes that hang together stay so."""
        sizes = self.start()
        for move in self.moves():
            held = (move.symbol,) + move.others
            for times in range((min(sizes[n] for n in held) - 1) // move.step, 0, -1):
                lower = move.apply(sizes, -times)
                if self.works(lower):
                    sizes = lower
                    break
        return sizes
