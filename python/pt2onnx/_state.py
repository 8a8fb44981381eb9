"""What a run of a model may change, taken down once and put back after every run: attributes of its
modules and of the objects that they hold, what containers hold, tensors that are written into, and
the same of the globals of the files that its classes are written in."""
from __future__ import annotations

import collections
import functools
import sys
import types
from typing import Any, Callable, Dict, List, Set, Tuple

import torch

from ._program import is_unreal

DEEPEST = 4                     # objects in objects
LARGEST = 1 << 26               # bytes of a tensor that is copied, unless it is a buffer
MOST = 10000                    # of what a container holds: vocabularies are not written into
NOT_READ = getattr(sys, "stdlib_module_names", frozenset()) | {      # from Python 3.10 on
    "torch", "numpy", "sympy", "mpmath", "pt2onnx"}
CONTAINERS = (list, dict, set, collections.OrderedDict, collections.defaultdict, collections.deque)
COMPARED = (torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64,
            torch.complex128, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64,
            torch.bool)
_Cached = type(functools.lru_cache(lambda: None))
LEFT = (str, bytes, int, float, type, types.ModuleType, types.FunctionType,
        types.BuiltinFunctionType)


def is_own(name: Any) -> bool:
    """Whether a module of that name is neither PyTorch's nor Python's."""
    return str(name).split(".")[0] not in NOT_READ


def _same(x: Any, y: Any) -> bool:
    """Without asking elements whether they are equal: a tensor's answer is a tensor."""
    if len(x) != len(y):
        return False
    if isinstance(x, dict):
        return all(k in y and y[k] is v for k, v in x.items())
    return x == y if isinstance(x, set) else all(a is b for a, b in zip(x, y))


def _differs(x: torch.Tensor, y: torch.Tensor) -> bool:
    """NaN is what it was; False where elements cannot be asked."""
    if x.shape != y.shape or x.dtype != y.dtype:
        return True
    if x.layout is not torch.strided or x.is_quantized or x.dtype not in COMPARED:
        return False
    return bool(((x != y) & ~((x != x) & (y != y))).any())


def _refill(live: Any, kept: Any) -> None:
    live.clear()
    live.update(kept) if isinstance(live, (dict, set)) else live.extend(kept)


class State:
    def __init__(self, model: torch.nn.Module) -> None:
        self._spaces: List[Tuple[Any, Dict[str, Any]]] = []     # attributes of an object
        self._contents: List[Tuple[Any, Any]] = []
        self._tensors: List[List[Any]] = []                     # [it, a copy, its version]
        self._caches: List[Tuple[Callable[[], None], Callable[[], Any], int]] = []
        self._seen: Set[int] = set()
        for t in [*model.parameters(), *model.buffers()]:
            self._seen.add(id(t))
        for b in model.buffers():
            self._keep_tensor(b)
        self._model = model
        self._buffers = {id(t): value for t, value, _ in self._tensors}
        files = set()
        for m in model.modules():
            self._keep_object(m, 0)
            for c in type(m).__mro__:
                if is_own(c.__module__):
                    files.add(c.__module__)
                    self._keep_space(c, vars(c))
        for name in sorted(files & set(sys.modules)):
            self._keep_space(sys.modules[name], vars(sys.modules[name]))

    def _keep_space(self, owner: Any, space: Any) -> None:
        """Of a class or a file: what it names and what that holds."""
        if id(owner) in self._seen:
            return
        self._seen.add(id(owner))
        self._spaces.append((owner, dict(space)))
        for v in list(space.values()):
            if isinstance(v, _Cached):
                self._caches.append((v.cache_clear, v.cache_info, v.cache_info().currsize))
            elif isinstance(v, torch.Tensor) or type(v) in CONTAINERS:
                self._keep(v, 1)

    def _keep_tensor(self, t: torch.Tensor) -> None:
        if not is_unreal(t):
            self._tensors.append([t, t.detach().clone(), t._version])

    def _keep_object(self, x: Any, depth: int) -> None:
        self._seen.add(id(x))
        self._spaces.append((x, dict(x.__dict__)))
        for v in list(x.__dict__.values()):
            self._keep(v, depth + 1)

    def _keep(self, x: Any, depth: int) -> None:
        if depth > DEEPEST or x is None or isinstance(x, LEFT) or id(x) in self._seen:
            return
        if type(x) in CONTAINERS:               # classes made of them may do anything
            self._seen.add(id(x))
            if len(x) > MOST:
                return
            self._contents.append((x, x.copy()))
            for v in list(x.values() if isinstance(x, dict) else x):
                self._keep(v, depth + 1)
        elif isinstance(x, torch.Tensor):
            self._seen.add(id(x))
            if x.nbytes <= LARGEST:
                self._keep_tensor(x)
        elif not isinstance(x, torch.nn.Module) and isinstance(getattr(x, "__dict__", None), dict) \
                and is_own(type(x).__module__):
            self._keep_object(x, depth)

    def changed(self, before: Dict[str, torch.Tensor]) -> List[str]:
        """Of what were the buffers: those that a run gave other values, or replaced."""
        now = dict(self._model.named_buffers(remove_duplicate=False))
        return [n for n, t in before.items() if id(t) in self._buffers and
                (n not in now or _differs(now[n], self._buffers[id(t)]))]

    def restore(self) -> None:
        for owner, saved in self._spaces:
            space = vars(owner)
            if _same(dict(space), saved):
                continue
            for name in set(space) - set(saved):
                _delete(owner, name)
            for name, v in saved.items():
                if space.get(name) is not v:
                    _set(owner, name, v)
        for live, kept in self._contents:
            if not _same(live, kept):
                _refill(live, kept)
        for clear, info, size in self._caches:
            if info().currsize != size:
                clear()
        with torch.no_grad():
            for kept in self._tensors:
                t, value, version = kept
                if t._version != version or _differs(t, value):     # kernels may write unseen
                    t.copy_(value)
                    kept[2] = t._version


def _set(owner: Any, name: str, v: Any) -> None:
    """In an object's own dict: a module's and its classes' setters may do more."""
    type.__setattr__(owner, name, v) if isinstance(owner, type) else vars(owner).update({name: v})


def _delete(owner: Any, name: str) -> None:
    type.__delattr__(owner, name) if isinstance(owner, type) else vars(owner).pop(name)
