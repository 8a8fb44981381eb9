"""Which sizes a model runs at.

Sizes may hang together (mask length = past + new; height a multiple of 32).  Where sizes of our own
choosing do not run, one run with symbols for sizes tells what PyTorch demands of them: equations
make some sizes follow from others, the rest are a basis to choose from.
"""
from __future__ import annotations

import itertools
from types import CodeType
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Set, Tuple

from torch.utils._sympy.printers import PythonPrinter

from ._capture import Subject
from ._errors import DynamicError, UsageError
from ._example import Sizes
from ._library import Conversion

NEAR, FAR = 8, 48               # how far from a wanted size one that runs is looked for
Rule = Callable[[Sizes], bool]


def _first_line(e: BaseException) -> str:
    return "%s: %s" % (type(e).__name__, str(e).strip().split("\n")[0])


def _compiled(text: str, names: Dict[str, str]) -> Callable[[Sizes], Any]:
    code = compile(text, "size", "eval")

    def value(sizes: Sizes) -> Any:
        return eval(code, {"min": min, "max": max}, {s: sizes[n] for s, n in names.items()})
    return value


class Relations:
    """What PyTorch found out about the sizes in one run."""

    def __init__(self, subject: Subject) -> None:
        symbols, derived, env = subject.constraints(subject.example.sizes)
        self._names = {str(ss[0]): name for name, ss in symbols.items()}
        one = {s: ss[0] for ss in symbols.values() for s in ss}     # a name is one size
        one.update({s: e.of({n: ss[0] for n, ss in symbols.items()}) for s, e in derived})
        self.follows: Dict[str, Callable[[Sizes], Any]] = {}
        left = {ss[0] for ss in symbols.values()}
        equal = [g.expr for g in env.guards if g.expr.func.__name__ == "Equality" and
                 g.expr.free_symbols <= set(one)]
        pairs = [(s, env.replace(s)) for ss in symbols.values() for s in ss]
        pairs += [p for g in equal for p in ((g.lhs, g.rhs), (g.rhs, g.lhs))]
        for s, e in [(s.xreplace(one), e.xreplace(one)) for s, e in pairs]:
            if s in left and s not in e.free_symbols and e.free_symbols and e.free_symbols <= left:
                self.follows[self._names[str(s)]] = self._value(e)
                left.discard(s)
        self._rules = [self._value(g.xreplace(one)) for g in equal
                       if not (g.lhs.is_Symbol and g.rhs.is_Integer)]

    def _value(self, e: Any) -> Callable[[Sizes], Any]:
        return _compiled(PythonPrinter().doprint(e), self._names)

    def complete(self, sizes: Sizes) -> Optional[Sizes]:
        """With the sizes that follow from others; None where there is none."""
        sizes = dict(sizes)
        try:
            for name, value in reversed(list(self.follows.items())):
                n = value(sizes)
                if n != int(n) or n < 1:
                    return None
                sizes[name] = int(n)
        except ZeroDivisionError:
            return None
        return sizes

    def hold(self, sizes: Sizes) -> bool:
        try:
            return all(rule(sizes) for rule in self._rules)
        except Exception:
            return False


class SizePlan:
    """Sizes that the model runs at, near those that one would like."""

    def __init__(self, subject: Subject) -> None:
        self.subject, self.example = subject, subject.example
        self.start = self.example.sizes
        self._known: Dict[Tuple[int, ...], Any] = {}
        self._relations: Optional[Relations] = None
        self._bad: Dict[str, Set[int]] = {}     # looked at in vain: tried last from then on
        self._code: Optional[Dict[CodeType, Dict[str, Any]]] = None

    def own_code(self) -> Dict[CodeType, Dict[str, Any]]:
        """The user's code that the example runs through."""
        if self._code is None:
            self._code = self.subject.own_code(self.start)
        return self._code

    def _calls(self, sizes: Sizes) -> Any:
        """The number of calls, or the exception."""
        key = tuple(sizes[n] for n in self.start)
        if key not in self._known:
            try:
                if not self.example.bears(sizes):
                    raise ValueError("outside the range given")
                self._known[key] = self.subject.calls_at(sizes)
            except Exception as e:
                self._known[key] = e
        return self._known[key]

    def works(self, sizes: Sizes) -> bool:
        return not isinstance(self._calls(sizes), Exception)

    def calls(self, sizes: Sizes) -> int:
        found = self._calls(sizes)
        return 0 if isinstance(found, Exception) else found

    @property
    def basis(self) -> List[str]:
        follows = self._relations.follows if self._relations else {}
        return [n for n in self.start if n not in follows]

    def completed(self, sizes: Sizes) -> Sizes:
        """With the sizes that follow from others, whether or not the model runs there."""
        sizes = {**self.start, **sizes}
        return self._relations and self._relations.complete(sizes) or sizes

    def near(self, wanted: Sizes, works: Optional[Callable[[Sizes], bool]] = None,
             nth: int = 0) -> Sizes:
        """The nearest that run, size by size; one that bears no change keeps the example's.
        nth > 0: not the nearest, which may be the end of a table, but the nth after it."""
        works = works or self.works
        wanted = {**self.start, **wanted}
        if self._relations is None:
            if works(wanted):
                return wanted
            sizes = self._walk(wanted, works, nth, NEAR)
            if all(abs(sizes[n] - wanted[n]) <= NEAR for n in wanted):
                return sizes
            self._relations = Relations(self.subject)
        full = self._relations.complete(wanted)
        return full if full and works(full) else self._walk(wanted, works, nth, FAR)

    def _walk(self, wanted: Sizes, works: Callable[[Sizes], bool], nth: int, far: int) -> Sizes:
        sizes = dict(self.start)
        for name in self.basis:
            found = self._around(sizes, name, wanted[name], works, far)
            for k, sizes in enumerate(itertools.islice(found, nth + 1)):
                if k == 0 and sizes[name] == wanted[name]:
                    break
        return sizes

    def _around(self, sizes: Sizes, name: str, n: int, works: Callable[[Sizes], bool],
                far: int) -> Iterator[Sizes]:
        """Sizes that run, this one about n: first those that keep what PyTorch demanded."""
        bad = self._bad.setdefault(name, set())
        values = sorted(range(max(n - far, 1), n + far + 1), key=lambda v: (abs(v - n), v))
        values.sort(key=lambda v: v in bad)
        near: List[Optional[Sizes]] = [{**sizes, name: v} for v in values]
        relations = self._relations
        if relations:
            near = [s and relations.complete(s) for s in near]
            near.sort(key=lambda s: s is None or not relations.hold(s))
        for s in near:
            if s is not None and works(s):
                yield s
            elif s is not None:
                bad.add(s[name])

    def is_fixed(self, name: str) -> Optional[Exception]:
        """What PyTorch says of every other size; None: there is one that runs."""
        n, first = self.start[name], None
        for v in (n + 1, 2 * n, n + 2, max(n - 1, 1), 1, 97):
            sizes = self.near({name: v})
            if sizes[name] != n:
                return None
            first = first or self._calls({**self.start, name: v})
        return first

    def ask(self, ranges: List[str]) -> Dict[str, List[Sizes]]:
        """Sizes for captures and for checks, by the library's plan; ones are further checks."""
        for _ in range(2):                      # the second time with a smaller basis
            basis = self.basis
            plan = _library_plan(basis, [r for r in ranges if r.split("=")[0] in basis])
            out = {k: _unique(self.near(s, nth=2) for s in plan[k]) for k in ("captures", "checks")}
            out["ones"] = _unique(s for s in map(self.completed, plan["ones"]) if self.works(s))
            if self.basis == basis:
                break
        return out

    def check_example(self) -> None:
        why = self._calls(self.start)
        if isinstance(why, Exception):
            raise UsageError("the model does not run on its example: " + _first_line(why)) from why


def _library_plan(names: List[str], ranges: List[str]) -> Dict[str, List[Sizes]]:
    with Conversion() as c:
        return c.plan(names, ranges)


def _unique(items: Any) -> List[Sizes]:
    out: List[Sizes] = []
    for s in items:
        if s not in out:
            out.append(s)
    return out


def refuse_fixed(plan: SizePlan, names: Sequence[str]) -> List[str]:
    """Those that the model itself fixes and that may be fixed.  Raises for others."""
    pinned = []
    for name in names:
        s, why = plan.example.symbols[name], plan.is_fixed(name)
        if why is None:
            continue
        if not s.auto:
            raise DynamicError("'%s' cannot be dynamic: the model itself does not run when it is "
                               "other than %d.\nPyTorch says: %s" % (
                                   name, s.size, _first_line(why))) from why
        pinned.append(name)
    return pinned
