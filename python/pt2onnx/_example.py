"""The example inputs: their names, which axes are dynamic, and how to make them at other sizes.

A Symbol is a size that varies; axes with the same name share it, and an axis may be an expression
of them ("past+seq").  Other sizes are made from the one example by wrapping around or cutting along
its dynamic axes, so that values stay legal: token ids, masks, probabilities.
"""
from __future__ import annotations

import ast
import inspect
import itertools
import math
import re
from dataclasses import dataclass, field
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Set, Tuple

import torch
from torch.utils import _pytree as pytree

from ._errors import InputError, UsageError
from ._library import Conversion
from ._program import is_unreal
from ._serialize import tree_text

Sizes = Dict[str, int]


@dataclass
class Symbol:
    name: str
    size: int                                   # in the example
    # (leaf, axis); None: an int itself
    places: List[Tuple[int, Optional[int]]] = field(default_factory=list)
    low: int = 0
    high: Optional[int] = None
    auto: bool = False                          # stays fixed where the model wants that

    def allows(self, n: int) -> bool:
        return n >= self.low and (self.high is None or n <= self.high)


def _resized(t: torch.Tensor, axis: int, n: int) -> torch.Tensor:
    have = t.shape[axis]
    if n == have:
        return t
    if n < have:
        return t.narrow(axis, 0, n)
    if have == 0:
        shape = list(t.shape)
        shape[axis] = n
        out = torch.zeros(shape, dtype=t.dtype, device=t.device)
        if not t.is_floating_point() or is_unreal(t):
            return out
        each = torch.arange(out.numel(), device=t.device, dtype=torch.float64)      # no two alike
        return (each * 0.6180339887 % 1 - 0.5).view(shape).to(t.dtype)
    index = torch.arange(n, device=t.device)
    out = t.index_select(axis, index % have)
    if t.is_floating_point() and not is_unreal(t):  # no two rounds alike: smaller, of the same sign
        shape = [-1 if k == axis else 1 for k in range(t.dim())]
        turn = (index // have).view(shape)
        each = torch.arange(out.numel(), device=t.device, dtype=torch.float64).view(out.shape)
        # Nor in proportion: where scores tie, the order is anybody's.
        out = out * (0.875 ** turn * (1 - 0.1 * (turn > 0) * (each * 0.6180339887 % 1))).to(t.dtype)
    return out


def _blank(t: torch.Tensor, shape: Sequence[int]) -> torch.Tensor:
    """Without values, the axes in memory in the order of t's."""
    order = sorted(range(t.dim()), key=lambda k: -t.stride(k))
    back = sorted(range(t.dim()), key=order.__getitem__)
    return torch.empty([shape[k] for k in order], dtype=t.dtype, device=t.device).permute(back)


_IN_EXPRESSION = (ast.Expression, ast.BinOp, ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Name,
                  ast.Load, ast.Constant)


class Expression:
    """Sums, products and quotients of names and numbers: the size of an axis."""

    def __init__(self, text: str, where: str) -> None:
        try:
            tree = ast.parse(text, mode="eval")
        except SyntaxError:
            tree = None
        nodes = list(ast.walk(tree)) if tree else []
        self.names = sorted({n.id for n in nodes if isinstance(n, ast.Name)})
        if not self.names or not all(
                isinstance(n, _IN_EXPRESSION) and type(getattr(n, "value", 0)) is int
                for n in nodes):
            what = "a number" if text.strip().isdigit() else "no name or sum of names"
            raise UsageError("%s: '%s' is %s" % (where, text, what))
        self.text = text
        self._code = compile(tree, text, "eval")        # type: ignore[arg-type]

    def of(self, values: Mapping[str, Any]) -> Any:
        return eval(self._code, {"__builtins__": {}}, dict(values))

    def at(self, sizes: Mapping[str, int]) -> int:
        try:
            return self.of(sizes)
        except ZeroDivisionError:
            return -1


def _key(k: Any) -> str:
    for attribute in ("key", "idx", "name"):
        if hasattr(k, attribute):
            return str(getattr(k, attribute))
    return str(k)


def bind_arguments(model: Any, args: Any,
                   kwargs: Optional[Mapping[str, Any]]) -> Tuple[tuple, Dict[str, Any]]:
    """args as torch.onnx.export takes them: a tensor, a tuple, or one that ends in a dict of
    keyword arguments."""
    args = tuple(args) if isinstance(args, (tuple, list)) else (args,)
    forward = getattr(model, "forward", model)
    try:
        names = list(inspect.signature(forward).parameters)
    except (TypeError, ValueError):
        names = []
    if (kwargs is None and args and isinstance(args[-1], dict)
            and set(args[-1]) <= set(names[len(args) - 1:])):
        args, kwargs = args[:-1], args[-1]
    kwargs = dict(kwargs or {})
    order = {n: i for i, n in enumerate(names)}
    return args, dict(sorted(kwargs.items(), key=lambda kv: order.get(kv[0], len(order))))


class Example:
    """args and kwargs, flat."""

    def __init__(self, model: Any, args: tuple, kwargs: Dict[str, Any],
                 input_names: Optional[Sequence[str]]) -> None:
        self.args, self.kwargs = args, kwargs
        paths, self.spec = pytree.tree_flatten_with_path((args, kwargs))
        self.leaves = [leaf for _, leaf in paths]
        # The model's inputs.
        self.ports = [i for i, x in enumerate(self.leaves) if isinstance(x, torch.Tensor)]
        self.symbols: Dict[str, Symbol] = {}
        self.derived: List[Tuple[int, int, Expression]] = []
        self.given = list(input_names or [])
        self.cached: Set[int] = set()           # leaves that are keys or values of attention
        self.own_names = self._own_names(model, [path for path, _ in paths])

    @property
    def names(self) -> Dict[int, str]:
        if len(self.given) > len(self.ports):
            raise UsageError("%d input names for %d inputs" % (len(self.given), len(self.ports)))
        return {leaf: self.given[k] if k < len(self.given) else self.own_names[leaf]
                for k, leaf in enumerate(self.ports)}

    def _own_names(self, model: Any, paths: Sequence[Sequence[Any]]) -> List[str]:
        try:
            parameters = list(
                inspect.signature(getattr(model, "forward", model)).parameters.values())
        except (TypeError, ValueError):
            parameters = []
        names = []
        for path in paths:
            keys = [_key(k) for k in path[1:]]
            if _key(path[0]) == "0":            # positional: by the parameter's name
                k = int(keys[0])
                plain = [p.name for p in parameters
                         if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
                rest = [p.name for p in parameters if p.kind == p.VAR_POSITIONAL]
                if k < len(plain):
                    keys[0] = plain[k]
                elif rest:
                    keys[0:1] = [rest[0], str(k - len(plain))]
                else:
                    keys[0] = "input_%d" % k
            names.append("_".join(keys))
        self._plain = names
        return self._by_layers(names)

    def _by_layers(self, names: List[str]) -> List[str]:
        """past_key_values.0.key for what is in a cache."""
        fields: Dict[str, Any] = {}
        spec = tree_text(self.spec, fields)
        if spec is None:                        # a class that cannot be saved
            return names
        try:
            with Conversion() as c:
                said = c.port_names(spec, fields, names)
        except InputError:                      # keys that are no names
            return names
        self.cached = {k for k, name in enumerate(said) if name != names[k]}
        return said

    def may_be_none(self, name: str) -> bool:
        """A size of caches alone: at the first step they hold nothing."""
        places = self.symbols[name].places
        return bool(places) and all(leaf in self.cached for leaf, _ in places)

    def like(self, pattern: str) -> List[int]:
        """The inputs whose names a pattern with * means."""
        known = re.compile(".*".join(map(re.escape, pattern.split("*"))))
        return [leaf for leaf in self.ports
                if known.fullmatch(self.names[leaf]) or known.fullmatch(self.own_names[leaf])]

    def leaf_of(self, name: str) -> Optional[int]:
        names = self.names
        for leaf in self.ports:
            if names[leaf] == name:
                return leaf
        for own in (self.own_names, self._plain):
            for leaf in self.ports:
                if own[leaf] == name:
                    return leaf
        return None

    def declare_int(self, leaf: int, name: Optional[str], low: int = 0,
                    high: Optional[int] = None) -> None:
        """An int that is an input of the model, and may be a size."""
        self.ports = sorted(self.ports + [leaf])
        name = name or self.own_names[leaf]
        if name in self.symbols:
            raise UsageError("'%s' is the name of an int and of another size" % name)
        self.symbols[name] = Symbol(name, self.leaves[leaf], [(leaf, None)], low, high)

    def declare(self, leaf: int, axis: int, name: Optional[str], low: int = 0,
                high: Optional[int] = None, auto: bool = False) -> None:
        t = self.leaves[leaf]
        if not isinstance(t, torch.Tensor) or not -t.dim() <= axis < t.dim():
            raise UsageError("input '%s' has no axis %d" % (self.own_names[leaf], axis))
        axis %= t.dim()
        name = name or "%s_%d" % (self.names[leaf], axis)
        if not str(name).isidentifier():
            where = "axis %d of '%s'" % (axis, self.own_names[leaf])
            self.derived.append((leaf, axis, Expression(str(name), where)))
            return
        other = next((o.name for o in self.symbols.values() if (leaf, axis) in o.places), name)
        if other != name:
            raise UsageError("axis %d of '%s' is called both '%s' and '%s'" % (
                axis, self.names[leaf], other, name))
        s = self.symbols.get(name)
        if s is None:
            s = self.symbols[name] = Symbol(name, t.shape[axis], auto=auto)
        elif s.size != t.shape[axis]:
            where = s.places[0]
            raise UsageError("'%s' is %d in axis %s of '%s' and %d in axis %d of '%s': give axes "
                             "of different sizes different names" % (
                                 name, s.size, where[1], self.names[where[0]], t.shape[axis], axis,
                                 self.names[leaf]))
        if (leaf, axis) not in s.places:
            s.places.append((leaf, axis))
        s.low = max(s.low, low)
        s.high = high if s.high is None else s.high if high is None else min(s.high, high)

    @property
    def sizes(self) -> Sizes:
        return {s.name: s.size for s in self.symbols.values()}

    def resolve(self) -> None:
        """Names that are only in expressions: their sizes follow from the axis."""
        for leaf, axis, e in self.derived:
            size = self.leaves[leaf].shape[axis]
            new = [n for n in e.names if n not in self.symbols]
            if len(new) == 1:
                fits = [k for k in range(size + 1) if e.at({**self.sizes, new[0]: k}) == size]
                if fits:
                    self.symbols[new[0]] = Symbol(new[0], fits[-1])
            if any(n not in self.symbols for n in e.names):
                raise UsageError("'%s' of input '%s': no axis is called %s" % (
                    e.text, self.names[leaf], " or ".join(new)))
            if e.at(self.sizes) != size:
                raise UsageError("'%s' is %d by its names and %d in axis %d of '%s'" % (
                    e.text, e.at(self.sizes), size, axis, self.names[leaf]))

    def resized(self, sizes: Mapping[str, int]) -> Iterator[Tuple[int, Optional[int], int]]:
        """(leaf, axis, size) of all that is dynamic."""
        for name, n in sizes.items():
            for leaf, axis in self.symbols[name].places:
                yield leaf, axis, n
        for leaf, axis, e in self.derived:
            yield leaf, axis, e.at({**self.sizes, **sizes})

    def bears(self, sizes: Mapping[str, int]) -> bool:
        """Whether the ranges given by the user hold."""
        return (all(self.symbols[name].allows(n) for name, n in sizes.items())
                and all(n >= 0 for _, _, n in self.resized(sizes)))

    def at(self, sizes: Mapping[str, int]) -> List[Any]:
        """Fresh leaves at these sizes."""
        leaves = list(self.leaves)
        for leaf, axis, n in self.resized(sizes):
            leaves[leaf] = n if axis is None else _resized(leaves[leaf], axis, n)
        return [x.detach().clone() if isinstance(x, torch.Tensor) else x for x in leaves]

    def shapes(self, sizes: Mapping[str, int]) -> Dict[int, List[int]]:
        """By leaf."""
        out = {k: list(x.shape) for k, x in enumerate(self.leaves) if isinstance(x, torch.Tensor)}
        for leaf, axis, n in self.resized(sizes):
            if axis is not None:
                out[leaf][axis] = n
        return out

    def blank(self, sizes: Mapping[str, int]) -> List[Any]:
        """Leaves at these sizes without values."""
        leaves = list(self.leaves)
        for leaf, axis, n in self.resized(sizes):
            if axis is None:
                leaves[leaf] = n
        for leaf, shape in self.shapes(sizes).items():
            leaves[leaf] = _blank(leaves[leaf], shape)
        return leaves

    def elements(self, sizes: Mapping[str, int]) -> int:
        """Of the largest input."""
        return max((math.prod(s) for s in self.shapes(sizes).values()), default=0)

    def call_arguments(self, leaves: Sequence[Any]) -> Tuple[tuple, Dict[str, Any]]:
        args, kwargs = pytree.tree_unflatten(list(leaves), self.spec)
        return args, kwargs

    def axes(self) -> Dict[str, Dict[int, str]]:
        """What the converter is told."""
        out: Dict[str, Dict[int, str]] = {}
        for s in self.symbols.values():
            for leaf, axis in s.places:
                if axis is not None:
                    out.setdefault(self.names[leaf], {})[axis] = s.name
        for leaf, axis, e in self.derived:
            if all(self.symbols[n].places for n in e.names):
                out.setdefault(self.names[leaf], {})[axis] = e.text
        return out


def declare_axes(example: Example, axes: Mapping[str, Any],
                 output_names: Sequence[str]) -> Dict[str, Dict[int, str]]:
    """dynamic_axes: {'x': {0: 'batch'}} or {'x': [0]}.  Gives back what it says of outputs."""
    outputs: Dict[str, Dict[int, str]] = {}
    for name, spec in axes.items():
        if not isinstance(spec, Mapping):
            spec = {a: None for a in spec}
        leaf = example.leaf_of(name)
        leaves = example.like(name) if leaf is None and "*" in name else \
            [] if leaf is None else [leaf]
        if leaves:
            for one, (axis, label) in itertools.product(leaves, spec.items()):
                example.declare(one, int(axis), label if label is None else str(label))
        elif name in output_names or not output_names or "*" in name:
            outputs[name] = {int(a): n for a, n in spec.items() if n}
        else:
            raise UsageError("dynamic_axes: '%s' is neither an input (%s) nor an output (%s)" % (
                name, ", ".join(example.names.values()), ", ".join(output_names)))
    return outputs


def _declare_dim(example: Example, leaf: int, axis: Optional[int], dim: Any) -> None:
    kind = getattr(getattr(dim, "type", None), "name", None) or getattr(dim, "name", None)
    where = "'%s'" % example.own_names[leaf] if axis is None else "axis %d of '%s'" % (
        axis, example.own_names[leaf])
    if dim is None or kind == "STATIC" or isinstance(dim, int) and not isinstance(dim, bool):
        size = example.leaves[leaf] if axis is None else example.leaves[leaf].shape[axis]
        if isinstance(dim, int) and size != dim:
            raise UsageError("dynamic_shapes: %s is %d, not %d" % (where, size, dim))
        return
    name: Optional[str] = None
    low, high = getattr(dim, "min", None), getattr(dim, "max", None)
    if isinstance(dim, str):
        name, low, high = dim, None, None
    elif hasattr(dim, "root"):                          # 2*batch
        name, low, high = dim.__name__, None, None
    elif kind not in ("AUTO", "DYNAMIC"):               # torch.export.Dim
        name = getattr(dim, "__name__", None)
        if name is None:
            raise UsageError("dynamic_shapes: %r says nothing about %s" % (dim, where))
    low = low if isinstance(low, int) else 0
    high = high if isinstance(high, int) and high < 2 ** 31 else None
    if axis is None:
        example.declare_int(leaf, name, low, high)
    else:
        example.declare(leaf, axis, name, low, high, auto=kind == "AUTO")


def _is_tensor_spec(spec: Any) -> bool:
    if spec is None:
        return True
    if isinstance(spec, Mapping):
        return all(isinstance(k, int) for k in spec)
    return isinstance(spec, (list, tuple)) and all(
        x is None or isinstance(x, (str, int)) or not isinstance(x, (list, tuple, Mapping))
        for x in spec)


def _declare_tree(example: Example, index: List[Any], spec: Any, where: str) -> None:
    """`index` has the example's shape, with leaf numbers for leaves."""
    if spec is None:
        return
    if isinstance(index, int):
        leaf = example.leaves[index]
        if type(leaf) is int:
            _declare_dim(example, index, None, spec)
            return
        if not isinstance(leaf, torch.Tensor):
            raise UsageError("dynamic_shapes: %s is a %s and becomes part of the model; give a "
                             "tensor to make it an input" % (where, type(leaf).__name__))
        if not _is_tensor_spec(spec):
            raise UsageError("dynamic_shapes: %s is a tensor: give {axis: name} or a list" % where)
        items = spec.items() if isinstance(spec, Mapping) else enumerate(spec)
        for axis, dim in items:
            _declare_dim(example, index, axis, dim)
        return
    if isinstance(index, Mapping):
        if not isinstance(spec, Mapping):
            raise UsageError("dynamic_shapes: %s is a dict" % where)
        for k, v in spec.items():
            if k not in index:
                raise UsageError("dynamic_shapes: %s has no '%s'" % (where, k))
            _declare_tree(example, index[k], v, "%s['%s']" % (where, k))
        return
    if (isinstance(spec, str) or not isinstance(spec, (list, tuple, Mapping))
            and not hasattr(spec, "__dict__")):
        raise UsageError("dynamic_shapes: %s needs a part for each of its parts" % where)
    children = index if isinstance(index, (list, tuple)) else pytree.tree_leaves(index)
    parts = (spec if isinstance(spec, (list, tuple))
             else pytree.tree_leaves(spec, is_leaf=_is_tensor_spec))
    if len(parts) != len(children):
        raise UsageError("dynamic_shapes: %s has %d parts, not %d" % (
            where, len(children), len(parts)))
    for k, (i, s) in enumerate(zip(children, parts)):
        _declare_tree(example, i, s, "%s[%d]" % (where, k))


def declare_shapes(example: Example, model: Any, shapes: Any) -> None:
    """dynamic_shapes: as torch.export takes it, nested as the arguments are, or by flat name."""
    args, kwargs = pytree.tree_unflatten(list(range(len(example.leaves))), example.spec)
    if not isinstance(shapes, Mapping):
        _declare_tree(example, list(args) + list(kwargs.values()), tuple(shapes), "the arguments")
        return
    try:
        bound = inspect.signature(getattr(model, "forward", model)).bind(*args, **kwargs)
        top: Dict[str, Any] = {}
        for name, value in bound.arguments.items():
            if bound.signature.parameters[name].kind == inspect.Parameter.VAR_KEYWORD:
                top.update(value)
            top[name] = value
    except (TypeError, ValueError):
        top = {**{"input_%d" % i: x for i, x in enumerate(args)}, **kwargs}
    for name, spec in shapes.items():
        if name in top:
            _declare_tree(example, top[name], spec, "'%s'" % name)
            continue
        leaf = example.leaf_of(name)
        if leaf is None:
            raise UsageError("dynamic_shapes: there is no input '%s'; there are %s" % (
                name, ", ".join(list(top) + list(example.names.values()))))
        _declare_tree(example, leaf, spec, "'%s'" % name)
