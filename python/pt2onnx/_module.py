"""From a module to a conversion, in one way after another.

First a capture with symbolic sizes, taken at sizes far from each other and from 1; where PyTorch
fixes an axis, the converter refuses, or the numbers differ, captures at fixed sizes that are lined
up.  Either is held against further captures at fixed sizes: the example's, the smallest, others.
"""
from __future__ import annotations

import functools
import itertools
import math
import time
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from ._capture import Subject, free_sizes
from ._decompose import handed_over, taken_apart
from ._errors import (CaptureError, Diagnostic, DynamicError, InputError, Pt2OnnxError,
                      UnsupportedError)
from ._example import Example, Sizes
from ._library import Conversion, captures_limit
from ._pieces import Guards, Piece, compose
from ._program import coarsest_float, program_weights
from ._quanta import jumps, quantises
from ._serialize import program_json
from ._sizes import SizePlan, refuse_fixed
from ._trials import Claims, beside_compared, spread, trials, turns
from ._verify import (Check, Jump, Runtime, Tolerances, as_arrays, check_at, compare,
                      not_loaded)

PIECES_SECONDS = 15.0
PIECES_TRIED = 80               # sizes at which one of them must hold
PIECES = 12                     # programs that branches on sizes may make
ASKED = 6                       # further captures that a refusal may ask for
LEFT = 3                        # of what the library reads are checks at least
FRESH = [7, 11, 13, 5], [17, 23, 29, 19]        # sizes for checks when the first are used up
CAPTURE_SECONDS = 10.0          # for further symbolic captures that may be better than the first;
                                # one that takes longer is slow: fixed ones come before the next
CHECK_SECONDS = 5.0             # of this thread, for captures that are only held against the result
COMPARE_SECONDS = 20.0
COMPARISONS = 40
LARGE = [251, 226, 199, 173]     # for a capture in which nothing inside the model is 1
FAR_OFF = 1087                  # a size beyond what branches and tables often end at
TURNING = 10                    # captures where the code may go another way
GROWN = 2, 20                   # times as many calls and more: the program grows with a size

Reader = Callable[[Conversion], None]


class reader:
    """A program as the library reads it."""

    def __init__(self, ep: Any, given: Mapping[str, Any]) -> None:
        self._ep, self._given = handed_over(ep), given
        self._program = program_json(self._ep)
        self._weights = program_weights(self._ep, given)
        self._apart: Dict[int, Any] = {}

    def __call__(self, c: Conversion) -> None:
        c.read_program(self._program, self._weights)

    def apart(self, level: int) -> "reader":
        """The same with less of what the converter may not know; see taken_apart."""
        if level not in self._apart:
            self._apart[level] = reader(taken_apart(self._ep, level), self._given)
        return self._apart[level]


class Attempt:
    """A conversion, and what it was made from."""

    def __init__(self, conversion: Conversion, programs: List[Any], symbolic: bool) -> None:
        self.conversion, self.programs, self.symbolic = conversion, programs, symbolic
        self.claims = Claims(conversion.signature()["dims"])
        self.within = False             # only what it claims is to be compared
        self.failed_outside = False     # where it was compared, but not claimed


def _words(sizes: Sizes) -> str:
    return " ".join("%s=%d" % kv for kv in sizes.items())


def _ones(sizes: Sizes) -> int:
    return sum(n == 1 for n in sizes.values())


def _differs_by_ones(sizes: Sizes, captures: Sequence[Sizes], alone: bool) -> bool:
    """By sizes of 1 that no capture has.  `alone`: the others lie among those of the captures, so
    that what is otherwise there is due to the 1."""
    seen = {name: [c[name] for c in captures] for name in sizes}
    ones = [name for name, n in sizes.items() if n == 1 and min(seen[name]) > 1]
    return bool(ones) and (not alone or all(min(seen[name]) <= n <= max(seen[name])
                                            for name, n in sizes.items() if name not in ones))


def _has_nan(arrays: Sequence[Any]) -> bool:
    return any(x.dtype.kind == "f" and bool(np.isnan(x).any()) for x, _ in arrays)


class Module:
    """A module on its way to ONNX.  `request.convert(readers, checks)` is the library's part."""

    def __init__(self, subject: Subject, request: Any, given: Mapping[str, Any], tol: Tolerances,
                 steps: Callable[[str], None]) -> None:
        self.subject, self.request, self.given = subject, request, given
        self.tol, self.steps = tol, steps
        self.plan = SizePlan(subject)
        self.notes: List[Diagnostic] = []
        self._fixed: Dict[Tuple[int, ...], Tuple[Any, Reader]] = {}
        self._symbolic: Dict[bool, Tuple[Any, Sizes, List[str]]] = {}
        self._pieces: Dict[Tuple[int, ...], Tuple[Any, List[Sizes]]] = {}
        self._references: Dict[Tuple[Any, ...], Any] = {}
        self._captures: List[Sizes] = []
        self._checks: List[Sizes] = []
        self._grows = False             # the program, with a size
        self._compares = False          # numbers with PyTorch's
        self._is_slow = False           # PyTorch takes long for a symbolic capture
        self._turns: List[Sizes] = []   # where captures begin or cease to be the model

    # Which sizes

    def choose_sizes(self) -> None:
        """Where captures are taken, and where they are checked."""
        self.plan.check_example()
        asked = self.plan.ask(self.request.dims)
        start = self.plan.start
        stuck = [n for n in start if all(s[n] == start[n] for s in asked["captures"])]
        pinned = refuse_fixed(self.plan, stuck)
        if pinned:
            self._pin(pinned)
            if not self.subject.example.symbols:
                return
            asked = self.plan.ask(self.request.dims)
        grows = self._growing(asked["captures"])
        self._grows = bool(grows)
        if grows:
            few = ["%s=1..%d" % (n, max(self.plan.start[n], 6)) for n in grows]
            others = [r for r in self.request.dims if r.split("=")[0] not in grows]
            asked = self.plan.ask(others + few)
        smallest = self.plan.near({n: 1 for n in self.plan.start})
        self._captures = asked["captures"]
        far = [] if grows else [self.plan.completed({**self._captures[0], n: FAR_OFF})
                                for n in self.plan.basis]
        far = [s for s in far if self.plan.works(s)]
        rest = [smallest, self.plan.start] + far + asked["checks"] + asked["ones"]
        self._checks = [s for k, s in enumerate(rest) if s not in self._captures + rest[:k]]

    def _pin(self, names: Sequence[str]) -> None:
        example = self.subject.example
        for name in names:
            s = example.symbols.pop(name)
            self.notes.append(Diagnostic("note", "fixed", "%s stays %d: the model runs with no "
                                         "other size" % (name, s.size)))
        self.request.declare(example)
        self.plan = SizePlan(self.subject)

    def _growing(self, captures: Sequence[Sizes]) -> List[str]:
        """The sizes with which the program grows: a loop over an axis."""
        few = GROWN[0] * self.plan.calls(self.plan.start) + GROWN[1]
        if all(self.plan.calls(s) <= few for s in captures):
            return []
        return [n for n in self.plan.basis
                if self.plan.calls(self.plan.near({n: captures[0][n]})) > few]

    # The ways

    def ways(self, verify: bool) -> Iterator[Callable[[], Attempt]]:
        """By tracing, then by strict export.  What strict export makes of Python and numpy is held
        against captures by tracing, which ran them, or against numbers."""
        self._compares = verify
        if self.subject.example.symbols:
            self.choose_sizes()
        else:
            self.plan.check_example()       # as it runs, PyTorch learns what it returns
        if not self.subject.example.symbols:        # or none that another size would do for
            yield self.one
            return
        tried = False                   # captures at fixed sizes
        for strict in (False,) if self.subject.unreal else (False, True):
            # At other sizes PyTorch may record other calls that compute the same: numbers tell.
            # At sizes that its guards exclude it may be the same program all the same.
            yield functools.partial(self.symbolic, strict, False, guarded=True)
            for held in ([False, True, None] if strict else [False, None]) * verify:
                if self._is_free(strict):
                    yield functools.partial(self.symbolic, strict, held)
            if verify and not strict and self._is_slow:
                tried = True
                yield self.fixed
            if not strict and self._is_free(strict):
                yield functools.partial(self.pieces, verify)
                yield functools.partial(self.pieces, verify, apart=True)
        for strict in list(self._symbolic):
            if self._is_free(strict):
                yield functools.partial(self.symbolic, strict, False, guarded=True, ones=False)
        if not tried:
            yield functools.partial(self.fixed, turning=not verify)
        if verify and True in self._symbolic:
            yield functools.partial(self.fixed, strict=True)

    def one(self) -> Attempt:
        ep, read = self._fixed_at({})
        return Attempt(self.request.convert([read]), [ep], False)

    def symbolic(self, strict: bool, held: Optional[bool], guarded: bool = False,
                 ones: bool = True) -> Attempt:
        """`held`: against captures of which kind; None: against none.  `guarded`: only where what
        PyTorch wrote down with the capture holds.  `ones`: at sizes of 1 as well, where PyTorch
        often records another program; without, these are not claimed."""
        ep, sizes, fixed = self._symbolic_capture(strict)
        if fixed:
            raise DynamicError("PyTorch fixes %s in a symbolic capture" % ", ".join(fixed))
        wanted = [] if held is None else self._checks + self._captures
        if guarded:
            guards = Guards(ep)
            wanted = [s for s in wanted if guards.hold(self._shapes(s))]
        wanted = wanted if ones else self._without_ones(wanted, [sizes] + self._captures)
        at = self._held([sizes], wanted, bool(held))[:captures_limit() - 1]
        checks = [self._fixed_at(s, bool(held))[1] for s in at]
        self.steps("converting")
        return Attempt(self.request.convert([reader(ep, self.given)], checks), [ep], True)

    def _turns_of(self, ep: Any, at: Sizes) -> List[Sizes]:
        """Sizes about where a symbolic capture ceases to be the model; they are looked at from now
        on."""
        guards = Guards(ep)
        holds = lambda s: guards.hold(self._shapes(s))
        _, fixed = free_sizes(ep, self.subject.example)
        found = [s for s in turns(self.plan, holds, guards.numbers(), at)
                 if all(s[n] == at[n] for n in fixed) and self.plan.works(s)]
        self._turns += [s for k, s in enumerate(found) if s not in self._turns + found[:k]]
        return found

    def _where_code_turns(self) -> List[Sizes]:
        beside = map(self.plan.near, beside_compared(self.plan, self.subject.model))
        return list(itertools.islice(itertools.chain(beside, self._turns), TURNING))

    def _shapes(self, sizes: Sizes) -> List[Sequence[int]]:
        shapes = self.subject.example.shapes(sizes)
        return [shapes.get(k, ()) for k in range(len(self.subject.example.leaves))]

    def pieces(self, verify: bool, apart: bool = False) -> Attempt:
        """Several captures with symbolic sizes, each good where its guards hold.  Without numbers
        each is held against captures at fixed sizes.  `apart`: sizes of 1 are pieces of their
        own."""
        example = self.subject.example
        found: List[Piece] = []
        program = self._symbolic[False][0]
        wanted = itertools.chain(self._captures, self._checks, self._single_ones(), trials(
            self.plan, Claims({}), self.subject.model, [program], self.plan.works))
        wanted = sorted(itertools.islice(wanted, PIECES_TRIED), key=_ones)
        began = time.thread_time()
        while wanted:
            sizes = wanted.pop(0)
            if any(p.holds(self._shapes(sizes)) for p in found):
                continue
            if len(found) == PIECES:
                break
            if time.thread_time() - began > PIECES_SECONDS:
                raise DynamicError("the model is many programs, at other sizes others")
            self.steps("capturing at %s" % _words(sizes))
            ep, beyond = self._piece_at(sizes)
            found.append(Piece(handed_over(ep), example, sizes, apart))
            wanted = beyond + wanted
        if len(found) == 1:
            raise DynamicError("one capture is good at all sizes that were tried")
        for p in found if not verify else []:
            self._check_piece(p)
        program, weights = compose(found)
        given = [program_weights(p.ep, self.given) for p in found]
        named = [w._replace(name=ours) for k, its, ours in weights for w in given[k]
                 if w.name == its]
        read = lambda c: c.read_program(program, named)
        self.steps("converting")
        return Attempt(self.request.convert([read]), [p.ep for p in found], False)

    def _piece_at(self, sizes: Sizes) -> Tuple[Any, List[Sizes]]:
        """A symbolic capture, and sizes about where it ceases to be the model."""
        key = tuple(sizes.values())
        if key not in self._pieces:
            ep = self.subject.capture_symbolic(sizes, False)
            self._pieces[key] = ep, self._turns_of(ep, sizes)
        return self._pieces[key]

    def _single_ones(self) -> List[Sizes]:
        """Where one size is 1, which PyTorch never takes for a symbol."""
        at = [{**self._captures[0], n: 1} for n in self.plan.basis]
        return [s for s in at if self.plan.works(s)]

    def _check_piece(self, piece: Piece) -> None:
        """Held against captures at fixed sizes where its guards hold."""
        at = [s for s in self._checks + self._captures if piece.holds(self._shapes(s))]
        checks = [self._fixed_at(s)[1] for s in self._held([], at, False)]
        near = lambda n, d: piece.holds(self._shapes({**piece.sizes, n: piece.sizes[n] + d}))
        fixed = [n for n in piece.sizes if not near(n, 1) and not near(n, -1)]
        self.request.convert([reader(piece.ep, self.given)], checks, fixed).close()

    def _is_free(self, strict: bool) -> bool:
        return strict in self._symbolic and not self._symbolic[strict][2]

    def _symbolic_capture(self, strict: bool) -> Tuple[Any, Sizes, List[str]]:
        """(program, where it was captured, names that PyTorch fixed).  Sizes that hang together
        there by chance, at the end of a table, are told by fewer of them varying; what is 1
        somewhere inside the model, and a guard then, is not at large sizes: of a few captures the
        one that is the model at the example, at large sizes and at the most others."""
        if strict in self._symbolic:
            return self._symbolic[strict]
        large = self._captures[0] if self._grows else \
            self.plan.near(spread(self.plan.basis, LARGE))
        wanted = [s for s in self._captures + self._checks if min(s.values()) > 1]
        best, best_is = None, (-1, -1, -1)
        began = time.thread_time()
        for sizes in self._captures[:2] + [large]:
            self._is_slow = time.thread_time() - began > CAPTURE_SECONDS
            if self._is_slow:
                break
            self.steps("capturing")
            try:
                ep = self.subject.capture_symbolic(sizes, strict)
            except CaptureError:
                if best is None:
                    raise
                continue
            free, fixed = free_sizes(ep, self.subject.example)
            guards = Guards(ep)
            holds = [guards.hold(self._shapes(s)) for s in [self.plan.start, large] + wanted]
            it_is = free, sum(holds[:2]), sum(holds)
            if it_is > best_is:
                best, best_is = (ep, sizes, fixed), it_is
            if free >= len(self.plan.basis) and all(holds):
                break
        self._is_slow = time.thread_time() - began > CAPTURE_SECONDS
        assert best
        ep, sizes, fixed = self._symbolic[strict] = best
        self.tol.computed_in = coarsest_float(ep)
        self._turns_of(ep, sizes)
        return best

    def fixed(self, strict: bool = False, turning: bool = False) -> Attempt:
        """Captures at fixed sizes, lined up.  What a refusal asks for is captured as well, and what
        a check does not agree with is learnt from it.  If that leads nowhere and only checks at
        sizes of 1 were in the way, the model is made without them and claims no such size.
        `turning`: held against captures where the code may go another way, too."""
        self._refuse_ints()
        captures, fresh = list(self._captures), [spread(self.plan.basis, v) for v in FRESH]
        wanted = self._where_code_turns() if turning else []
        checks = self._held(captures, wanted + self._checks, strict)
        without: Optional[Attempt] = None
        for left in range(ASKED, -1, -1):
            try:
                done = self._line_up(captures, checks, strict)
                if without:
                    without.conversion.close()
                return done
            except (DynamicError, InputError, UnsupportedError) as e:
                without = without or self._line_up_without_ones(captures, checks, strict)
                more = self._asked_by(e, captures, strict)
                room = captures_limit() - LEFT - len(captures)
                if not left or not more and not checks or room <= 0 or \
                        isinstance(e, UnsupportedError):
                    if without:
                        return without
                    raise
                captures += [more] if more else checks[:room]
                checks = [s for s in checks if s not in captures]
                if not checks:
                    checks = self._held(captures, [self.plan.near(s) for s in fresh], strict)
                    fresh = []
        raise AssertionError()

    def _refuse_ints(self) -> None:
        ints = [s.name for s in self.subject.example.symbols.values()
                for _, axis in s.places if axis is None]
        if ints:
            raise DynamicError("%s: captures at fixed sizes have a number there, no input" %
                               ", ".join(ints))

    def _line_up(self, captures: Sequence[Sizes], checks: Sequence[Sizes],
                 strict: bool) -> Attempt:
        read = [self._fixed_at(s, strict) for s in captures]
        held = [self._fixed_at(s, strict)[1] for s in checks[:captures_limit() - len(captures)]]
        self.steps("converting")
        done = self.request.convert([r for _, r in read], held)
        return Attempt(done, [ep for ep, _ in read], False)

    def _line_up_without_ones(self, captures: Sequence[Sizes], checks: Sequence[Sizes],
                              strict: bool) -> Optional[Attempt]:
        large = self._without_ones(checks, captures)
        if len(large) == len(checks):
            return None
        try:
            return self._line_up(captures, large, strict)
        except (DynamicError, InputError, UnsupportedError):
            return None

    def _without_ones(self, checks: Sequence[Sizes], captures: Sequence[Sizes]) -> List[Sizes]:
        """The user's own example is never left out.  What else is due to other sizes is found by
        comparing, if there will be any."""
        return [s for s in checks if s == self.plan.start or
                not _differs_by_ones(s, captures, not self._compares)]

    def _asked_by(self, e: Pt2OnnxError, captures: Sequence[Sizes],
                  strict: bool) -> Optional[Sizes]:
        """Sizes at which the refusal says that one more capture would tell."""
        for d in e.diagnostics:
            if d.capture:
                known = {n: v for n, v in d.capture.items() if n in self.plan.start}
                sizes = self.plan.near({**captures[0], **known})
                if sizes not in captures and self._try_fixed(sizes, strict):
                    return sizes
        return None

    def _fixed_at(self, sizes: Sizes, strict: bool = False) -> Tuple[Any, Reader]:
        key = (strict, *sizes.values())
        if key not in self._fixed:
            self.steps("capturing at %s" % _words(sizes) if sizes else "capturing")
            ep = self.subject.capture(sizes, strict)
            self.tol.computed_in = coarsest_float(ep)
            self._fixed[key] = ep, reader(ep, self.given)
        return self._fixed[key]

    def _try_fixed(self, sizes: Sizes, strict: bool) -> Optional[Reader]:
        try:
            return self._fixed_at(sizes, strict)[1]
        except CaptureError:
            return None

    def _held(self, captured: Sequence[Sizes], sizes: Sequence[Sizes],
              strict: bool) -> List[Sizes]:
        """Where there are captures to hold against the result, as many as the time allows."""
        began = time.thread_time()
        return [s for s in sizes if s not in captured and
                time.thread_time() - began < CHECK_SECONDS and self._try_fixed(s, strict)]

    # Against PyTorch

    def runs_outside(self, attempt: Attempt) -> bool:
        """Whether PyTorch runs at sizes of 2 and more that the file is not for."""
        start, around = self.plan.start, self._captures + self._checks
        for name, s in attempt.claims.symbols.items():
            if name in start:
                around = around + [{**start, name: s[k] + d} for k, d in (("min", -1), ("max", 1))
                                   if k in s]
        return any(min(s.values(), default=0) > 1 and not attempt.claims.hold(s)
                   and self.plan.works(s) for s in around)

    def demand_state(self, attempt: Attempt) -> None:
        """That state which is asked for is all there: PyTorch may capture an assignment without."""
        if self.request.state != "io":
            return
        lost = self.subject.lost(list(attempt.conversion.signature()["state"]), self.plan.start)
        if lost:
            attempt.conversion.close()
            raise UnsupportedError(
                "state='io': the model changes %s, and what was captured does not; write into it "
                "(self.%s.copy_(...)), or give state='drop'" % (", ".join(lost), lost[0]))

    def compare(self, attempt: Attempt, path: str) -> List[Check]:
        """Runs the model and PyTorch at sizes chosen to find a difference."""
        try:
            runtime = Runtime(path, self.request.custom.kernels)
        except Exception as e:
            return [not_loaded(e)]
        self.notes[:] = [d for d in self.notes if d.kind != "not-a-number"]
        said = attempt.conversion.signature()
        lost = [n for n in said["state"] if not self.subject.has(n)]
        if lost:
            return [Check({}, False, math.inf, "%s: no input or attribute of the model, so it "
                          "cannot be compared; give state='drop' or verify=False"
                          % ", ".join(lost))]
        self.subject.kept = [
            name for name, out in said["state"].items() if out.startswith(name + ".next")]
        out: List[Check] = []
        began = time.thread_time()
        runs = lambda s: (not attempt.within or attempt.claims.hold(s)) and \
            self._reference(s) is not None
        for sizes in trials(self.plan, attempt.claims, self.subject.model, attempt.programs, runs,
                            self._turns):
            late = time.thread_time() - began > COMPARE_SECONDS
            if len(out) == COMPARISONS or late and len(out) > 3:
                break
            self.steps("checking %s" % _words(sizes))
            feeds, want = self._reference(sizes)
            check = check_at(runtime, feeds, want, sizes, self.tol,
                             self._jumps_at(sizes) if quantises(attempt.programs) else None)
            if not check.ok and _has_nan(want) and not self._example_has_nan():
                self._warn_of_nan(sizes)
                continue
            out.append(check)
            if not check.ok:
                attempt.failed_outside = not attempt.claims.hold(sizes)
                check.note += self._blame(attempt, sizes)
                break
        return out

    def _jumps_at(self, sizes: Sizes) -> Callable[[], Sequence[Jump]]:
        return lambda: jumps(lambda: self.subject.run(sizes)[1], self._reference(sizes)[1],
                             self.tol.computed_in)

    def _example_has_nan(self) -> bool:
        return _has_nan(self._reference(self.plan.start)[1])

    def _warn_of_nan(self, sizes: Sizes) -> None:
        """The mean of nothing, the deviation of one: no size that the model is meant for."""
        self.notes.append(Diagnostic("warning", "not-a-number", "%s: PyTorch gives NaN there, the "
                                     "converted model other numbers" % _words(sizes)))

    def _reference(self, sizes: Sizes) -> Any:
        """What PyTorch gives; None where it does not run."""
        key = (*self.subject.kept, *sizes.values())
        if key not in self._references:
            try:
                feeds, want = self.subject.run(sizes)
                self._references[key] = feeds, as_arrays(want)
            except Exception:
                self._references[key] = None
        return self._references[key]

    def _blame(self, attempt: Attempt, sizes: Sizes) -> str:
        """Which side differs where a check failed."""
        feeds, want = self._reference(sizes)
        if self._differ(lambda: self.subject.run(sizes)[1], want):
            return "; PyTorch's own numbers differ from run to run: the model is random"
        if not attempt.claims.hold(sizes):
            return "; the capture is good only for %s" % attempt.claims
        try:
            ep = attempt.programs[0] if attempt.symbolic else self._fixed_at(sizes)[0]
        except CaptureError:
            return ""
        if self._differ(lambda: self.subject.run_program(ep, sizes), want):
            return "; PyTorch's captured program differs from the model there as well"
        return "; PyTorch's captured program gives the model's numbers"

    def _differ(self, run: Callable[[], Any], want: Any) -> bool:
        try:
            got = as_arrays(run())
        except Exception:
            return True
        return len(got) != len(want) or any(
            compare("", x, y, self.tol.of(dtype))[1] for (x, _), (y, dtype) in zip(got, want))
