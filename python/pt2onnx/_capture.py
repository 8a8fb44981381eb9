"""torch.export, and runs without memory, on a model that is left as it was.

Captures and probes take fake tensors: a size costs nothing, and values never matter to them.
"""
from __future__ import annotations

import contextlib
import functools
import inspect
import logging
import sys
import warnings
from types import CodeType, FrameType
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple

import torch
from torch._C import _functorch as functorch
from torch._subclasses import FakeTensorMode
from torch.fx.experimental import _config as symbolic_config
from torch.overrides import TorchFunctionMode
from torch.fx.experimental.symbolic_shapes import (DimDynamic, ShapeEnv,
                                                   StatelessSymbolicContext)
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from ._errors import CaptureError
from ._example import Example, Sizes
from ._failure import explained, muted
from ._meta import register_missing_kernels
from ._program import is_unreal
from ._state import State, is_own
from ._trees import Classes

STRICT_STEPS = 2000             # lines of Python that strict export reads in some seconds


def _evaluate(model: torch.nn.Module) -> None:
    """model.eval(); what refuses to change its mode (graphs that PyTorch captured) stays as it
    is."""
    try:
        model.eval()
    except NotImplementedError:
        if not isinstance(model, torch.fx.GraphModule):
            model.training = False
        for child in model.children():
            _evaluate(child)


@contextlib.contextmanager
def untouched(model: torch.nn.Module) -> Iterator[None]:
    """eval and no_grad inside, without fast paths that give other numbers for what is masked;
    afterwards the model and the random state are as before."""
    devices = sorted({p.device.index for p in model.parameters() if p.device.type == "cuda"})
    fast = torch.backends.mha.get_fastpath_enabled()
    state = State(model)
    try:
        with torch.random.fork_rng(devices=devices), torch.no_grad():
            torch.backends.mha.set_fastpath_enabled(False)
            _evaluate(model)
            yield
    finally:
        state.restore()
        torch.backends.mha.set_fastpath_enabled(fast)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    names = ["torch.export", "torch._export", "torch.fx", "torch._dynamo",
             "torch.fx.experimental.symbolic_shapes", "torch._subclasses.fake_tensor"]
    levels = [(logging.getLogger(n), logging.getLogger(n).level) for n in names]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for logger, _ in levels:
            logger.setLevel(logging.CRITICAL)
        try:
            yield
        finally:
            for logger, level in levels:
                logger.setLevel(level)


@contextlib.contextmanager
def vmaps_closed() -> Iterator[None]:
    """What fails inside torch.vmap or a derivative may leave it open: the next capture, and the
    user's own code, would run inside it."""
    depth = functorch.get_dynamic_layer_stack_depth()
    try:
        yield
    finally:
        functorch.pop_dynamic_layer_stack_and_undo_to_depth(depth)


class _Decided(TorchFunctionMode):
    """is_causal=length > 1 is an argument that PyTorch takes no symbol for: made a guard."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if isinstance(kwargs.get("is_causal"), torch.SymBool):
            kwargs["is_causal"] = bool(kwargs["is_causal"])
        return func(*args, **kwargs)


class _Count(TorchDispatchMode):
    calls = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.calls += 1
        return func(*args, **(kwargs or {}))


class Subject:
    """A model and its example.  Every run finds the model as the first did."""

    def __init__(self, model: torch.nn.Module, example: Example,
                 classes: Optional[Classes] = None) -> None:
        register_missing_kernels()
        self.model, self.example, self.classes = model, example, classes or Classes()
        self._state = State(model)
        unreal = [t for t in [*model.parameters(), *model.buffers()] if is_unreal(t)]
        self.unreal = bool(unreal)
        self._mode = getattr(unreal[0], "fake_mode", None) if unreal else None
        self._meta = self.unreal and self._mode is None
        self._mode = self._mode or FakeTensorMode(shape_env=ShapeEnv(),
                                                  allow_non_fake_inputs=True)
        self.kept: Sequence[str] = ()       # inputs and buffers whose new values are outputs
        self._fake_runs: Optional[bool] = None          # not known yet
        self._example_calls = 0

    def _fakes(self, sizes: Sizes, mode: Optional[FakeTensorMode] = None) -> List[Any]:
        with mode or self._mode:
            return [x.to("meta") if self._meta and isinstance(x, torch.Tensor) else x
                    for x in self.example.blank(sizes)]

    @contextlib.contextmanager
    def _restored(self) -> Iterator[None]:
        try:
            with quiet():
                yield
        finally:
            self._state.restore()

    def run(self, sizes: Sizes) -> Tuple[Dict[str, Any], Any]:
        """PyTorch's own: (inputs by name, what the model gives)."""
        leaves = self.example.at(sizes)
        feeds = {name: x.clone() if isinstance(x, torch.Tensor) else torch.tensor(x)
                 for name, x in ((n, leaves[k]) for k, n in self.example.names.items())}
        args, kwargs = self.example.call_arguments(leaves)
        with self._restored():
            out = self.model(*args, **kwargs)
            self.classes.found(out)
            given = {n: leaves[k] for k, n in self.example.names.items()}
            out = [out, *(self._now(name, given) for name in self.kept)] if self.kept else out
            # Copies: what is a buffer is put back to what it was.
            return feeds, pytree.tree_map(
                lambda x: x.detach().clone() if isinstance(x, torch.Tensor) else x, out)

    def lost(self, returned: Sequence[str], sizes: Sizes) -> List[str]:
        """Buffers that a run changes, beside those that are returned."""
        if self.unreal:
            return []
        before = dict(self.model.named_buffers(remove_duplicate=False))
        plain = [n if n in before else n.rpartition("_")[0] for n in returned]  # x_1: an input is x
        kept = {id(before[n]) for n in plain if n in before}
        args, kwargs = self.example.call_arguments(self.example.at(sizes))
        with self._restored():
            self.model(*args, **kwargs)
            changed = self._state.changed(before)
        return [n for n in changed if id(before[n]) not in kept]

    def has(self, name: str) -> bool:
        """Whether an input or a tensor of the model is called so."""
        given = {n: self.example.leaves[k] for k, n in self.example.names.items()}
        try:
            return isinstance(self._now(name, given), torch.Tensor)
        except AttributeError:
            return False

    def _now(self, name: str, given: Dict[str, Any]) -> Any:
        """The value of an input or buffer."""
        if name in given:
            return given[name]
        *path, last = name.split(".")
        return getattr(functools.reduce(getattr, path, self.model), last)

    def run_program(self, ep: torch.export.ExportedProgram, sizes: Sizes) -> Any:
        args, kwargs = self.example.call_arguments(self.example.at(sizes))
        with quiet():
            return ep.module(check_guards=False)(*args, **kwargs)

    def _probe(self, sizes: Sizes) -> int:
        args, kwargs = self.example.call_arguments(self._fakes(sizes))
        with self._restored(), self._mode, _Count() as count:
            out = self.model(*args, **kwargs)
        self.classes.found(out)
        return count.calls

    def calls_at(self, sizes: Sizes) -> int:
        """How many operators a run at these sizes has, found without memory; raises what the model
        raises.  0: not known, for a model that only runs with values."""
        if self._fake_runs is None:
            try:
                self._example_calls = self._probe(self.example.sizes)
                self._fake_runs = True
            except Exception:
                self._fake_runs = False
                torch._dynamo.reset()           # torch.cond remembers a compilation that failed
        if self._fake_runs:
            at_example = sizes == self.example.sizes
            return self._example_calls if at_example else self._probe(sizes)
        if not self.unreal:
            self.run(sizes)
        return 0

    def constraints(self, sizes: Sizes) -> Tuple[Dict[str, List[Any]], List[Any], Any]:
        """Runs with a symbol for each declared axis: (name -> the symbols of its places, those of
        expressions with these, what PyTorch found out about them)."""
        env = ShapeEnv(duck_shape=False, specialize_zero_one=False)
        mode = FakeTensorMode(shape_env=env, allow_non_fake_inputs=True, export=True)
        example, leaves = self.example, self._fakes(sizes, FakeTensorMode())
        axes: Dict[int, Dict[int, Any]] = {}
        for leaf, axis, label in [(k, a, s.name) for s in example.symbols.values()
                                  for k, a in s.places if a is not None] + example.derived:
            axes.setdefault(leaf, {})[axis] = label
        symbols: Dict[str, List[Any]] = {}
        derived: List[Any] = []
        # Sizes of 1 are not told from others: what holds at 1 only is no rule.
        with symbolic_config.patch(backed_size_oblivious=True):
            for leaf, labels in axes.items():
                leaves[leaf] = _symbolic(mode, leaves[leaf], labels, "input%d" % leaf)
                for axis, label in labels.items():
                    s = leaves[leaf].shape[axis].node.expr
                    if isinstance(label, str):
                        symbols.setdefault(label, []).append(s)
                    else:
                        derived.append((s, label))
            args, kwargs = example.call_arguments(leaves)
            try:
                with self._restored(), mode:
                    self.model(*args, **kwargs)
            except Exception:
                pass                            # what was found before it stopped is true
        return symbols, derived, env

    def capture(self, sizes: Sizes, strict: bool = False) -> torch.export.ExportedProgram:
        """At these sizes and no others.  `strict`: see capture_symbolic; otherwise as it can be."""
        leaves = self._fakes(sizes)
        try:
            return self._export(sizes, leaves, None, strict)
        except CaptureError as e:
            if strict or self.unreal:
                raise
            try:
                return self._export(sizes, leaves, None, strict=True)
            except CaptureError:
                raise e

    def capture_symbolic(self, sizes: Sizes, strict: bool) -> torch.export.ExportedProgram:
        """At these sizes, with the symbols' axes free as far as PyTorch can.  `strict`: by reading
        the code of forward, so that int(0.7 * n) remains an expression; else by running it."""
        leaves = self._fakes(sizes)
        return self._export(sizes, leaves, self._free_axes(leaves), strict)

    def _export(self, sizes: Sizes, leaves: List[Any], shapes: Any,
                strict: bool) -> torch.export.ExportedProgram:
        if strict and self._own_steps(sizes) > STRICT_STEPS:
            raise CaptureError("strict export: Python loops are too long to be read step by step")
        args, kwargs = self.example.call_arguments(leaves)
        try:
            with self._restored(), muted(), vmaps_closed(), \
                    contextlib.nullcontext() if strict else _Decided():
                return torch.export.export(self.model, args, kwargs or None,
                                           dynamic_shapes=shapes, strict=strict)
        except Exception as e:
            if strict:
                torch._dynamo.reset()
            raise explained(e) from e

    def _own_steps(self, sizes: Sizes) -> int:
        """How many lines of Python a run takes in code that is not PyTorch's."""
        steps = 0

        def step(frame: Any, event: str, arg: Any) -> Any:
            nonlocal steps
            steps += event == "line"
            return step

        self._traced(sizes, lambda frame: step)
        return steps

    def own_code(self, sizes: Sizes) -> Dict[CodeType, Dict[str, Any]]:
        """What a run calls of code that is not PyTorch's, each with its globals."""
        found: Dict[CodeType, Dict[str, Any]] = {}
        self._traced(sizes, lambda frame: found.update({frame.f_code: frame.f_globals}))
        return found

    def _traced(self, sizes: Sizes, enter: Callable[[FrameType], Any]) -> None:
        def called(frame: FrameType, event: str, arg: Any) -> Any:
            return enter(frame) if is_own(frame.f_globals.get("__name__")) else None

        before = sys.gettrace()
        sys.settrace(called)
        try:
            real = self._fake_runs is False and not self.unreal
            self.run(sizes) if real else self._probe(sizes)
        except Exception:
            pass                                # what it took until then
        finally:
            sys.settrace(before)

    def _free_axes(self, leaves: List[Any]) -> Any:
        """dynamic_shapes with AUTO at every declared place."""
        args, kwargs = self.example.call_arguments(leaves)
        auto, axes = torch.export.Dim.AUTO, {}
        for leaf, axis, _ in self.example.resized(self.example.sizes):
            if axis is None:
                axes[leaf] = auto
            else:
                axes.setdefault(leaf, {})[axis] = auto
        if all(isinstance(leaves[leaf], torch.Tensor) for leaf in axes):    # ints have no identity
            collection = torch.export.ShapesCollection()
            for leaf, spec in axes.items():
                collection[leaves[leaf]] = spec
            return collection.dynamic_shapes(self.model, args, kwargs)
        specs = self.example.call_arguments([axes.get(k) for k in range(len(leaves))])
        return dict(inspect.signature(self.model.forward).bind(*specs[0], **specs[1]).arguments)


def _symbolic(mode: FakeTensorMode, t: torch.Tensor, axes: Dict[int, Any], name: str) -> Any:
    from torch._dynamo.source import ConstantSource
    free = [DimDynamic.DYNAMIC if k in axes else DimDynamic.STATIC for k in range(t.dim())]
    return mode.from_tensor(t, source=ConstantSource(name),
                            symbolic_context=StatelessSymbolicContext(dynamic_sizes=free))


def free_sizes(ep: torch.export.ExportedProgram, example: Example) -> Tuple[int, List[str]]:
    """(how many sizes vary in a capture, the names whose axes PyTorch gave a number)."""
    values = {n.name: n.meta.get("val") for n in ep.graph.nodes if n.op == "placeholder"}
    names = [s.arg.name for s in ep.graph_signature.input_specs if s.kind.name == "USER_INPUT"]
    inputs = [values.get(name) for name in names]
    sizes = [n for x in inputs if x is not None for n in getattr(x, "shape", [x])]
    free = {s for n in sizes if isinstance(n, torch.SymInt) for s in n.node.expr.free_symbols}
    fixed = {s.name for s in example.symbols.values() for leaf, axis in s.places
             if axis is not None and isinstance(inputs[leaf].shape[axis], int)}
    return len(free), sorted(fixed)
