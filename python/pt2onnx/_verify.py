"""PyTorch against ONNX Runtime."""
from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import numpy as np

Sizes = Dict[str, int]

# float32: coordinates of resized images are rounded at a few hundred pixels, and pixels differ.
TOLERANCES = {"float64": (1e-7, 1e-6), "float32": (3e-5, 1e-4), "float16": (1e-2, 1e-2),
              "bfloat16": (5e-2, 5e-2)}


@dataclass
class Check:
    """The model at one size."""

    sizes: Sizes
    ok: bool
    max_diff: float = 0.0
    note: str = ""                  # why it is not ok, or was not compared

    def __str__(self) -> str:
        at = " ".join("%s=%d" % kv for kv in self.sizes.items()) or "fixed sizes"
        return "[%s] %s  %s" % ("ok" if self.ok else "FAILED", at,
                                self.note or "max diff %.2g" % self.max_diff)


def summary(checks: Sequence[Check]) -> str:
    """Checks that all passed, on a line."""
    ranges = []
    for name in checks[0].sizes:
        sizes = [c.sizes[name] for c in checks]
        ranges.append("%s=%d..%d" % (name, min(sizes), max(sizes)))
    return "[ok] at %d %s: %s  max diff %.2g" % (
        len(checks), "sizes" if len(checks) > 1 else "size", " ".join(ranges) or "fixed sizes",
        max(c.max_diff for c in checks))


def not_loaded(e: Exception) -> Check:
    return Check({}, False, math.inf, "ONNX Runtime does not load it: %s" %
                 str(e).strip().split("\n")[0])


def compare(name: str, got: np.ndarray, want: np.ndarray,
            tolerance: Tuple[float, float]) -> Tuple[float, str]:
    """(worst difference, what is wrong or "")."""
    if got.shape != want.shape:
        return math.inf, "output '%s' is %s, PyTorch's %s" % (
            name, list(got.shape), list(want.shape))
    if got.dtype != want.dtype:
        return math.inf, "output '%s' is %s, PyTorch's %s" % (name, got.dtype, want.dtype)
    if got.size == 0:
        return 0.0, ""
    if got.dtype.kind in "biu":
        bad = got != want
        worst = float(np.abs(got.astype("f8") - want.astype("f8")).max())
        return worst, ("output '%s': %d of %d elements differ" % (name, bad.sum(), bad.size)
                       if bad.any() else "")
    a, r = tolerance
    x, y = got.astype("f8"), want.astype("f8")
    finite = np.isfinite(x) & np.isfinite(y)
    same = (x == y) | (np.isnan(x) & np.isnan(y))
    diff = np.where(finite, np.abs(np.where(finite, x, 0) - np.where(finite, y, 0)),
                    np.where(same, 0, np.inf))
    scale = float(np.abs(y[np.isfinite(y)]).max()) if np.isfinite(y).any() else 0.0
    bad = diff > a * max(1.0, scale) + r * np.abs(np.where(finite, y, 0))
    worst = float(diff.max())
    if not bad.any():
        return worst, ""
    where = np.unravel_index(int(np.argmax(np.where(bad, diff, -1))), diff.shape)
    return worst, "output '%s': %d of %d elements differ, worst at %s: %.6g, PyTorch %.6g" % (
        name, bad.sum(), bad.size, list(map(int, where)), x[where], y[where])


class Runtime:
    """A model in ONNX Runtime that takes and gives tensors."""

    def __init__(self, model: Any, kernels: Sequence[str] = ()) -> None:
        import onnxruntime
        options = onnxruntime.SessionOptions()
        for library in kernels:
            options.register_custom_ops_library(library)
        options.log_severity_level = 4          # what fails is raised as well
        self._ort = onnxruntime
        self._session = onnxruntime.InferenceSession(model, options,
                                                     providers=["CPUExecutionProvider"])
        self.inputs = [i.name for i in self._session.get_inputs()]
        self._taken = {*self.inputs,
                       *(i.name for i in self._session.get_overridable_initializers())}
        self.outputs = [o.name for o in self._session.get_outputs()]

    def _value(self, x: Any) -> Any:
        if hasattr(x, "detach"):
            import torch
            x = x.detach().cpu().resolve_conj().resolve_neg()
            x = torch.view_as_real(x) if x.is_complex() else x
            if x.dtype == torch.bfloat16:
                return self._ort.OrtValue.ortvalue_from_numpy_with_onnx_type(
                    x.contiguous().view(torch.int16).numpy(), 16)
            x = x.numpy()
        return self._ort.OrtValue.ortvalue_from_numpy(
            np.ascontiguousarray(x) if np.ndim(x) else np.asarray(x))

    def __call__(self, feeds: Dict[str, Any]) -> List[np.ndarray]:
        values = {k: self._value(v) for k, v in feeds.items() if k in self._taken}
        return [self._array(v) for v in self._session.run_with_ort_values(None, values)]

    @staticmethod
    def _array(v: Any) -> np.ndarray:
        if v.element_type() != 16:
            return v.numpy()
        import ctypes                               # bfloat16, which NumPy lacks: widened exactly
        shape = v.shape()
        n = int(np.prod(shape)) if shape else 1
        raw = (np.ctypeslib.as_array(ctypes.cast(v.data_ptr(), ctypes.POINTER(ctypes.c_uint16)),
                                     (n,)) if n else np.zeros(0, "u2"))
        return (raw.astype("u4") << 16).view("f4").reshape(shape)


def as_arrays(outputs: Any) -> List[Any]:
    """A module's results, flat, as (array, dtype name); bfloat16 widened."""
    import torch
    from torch.utils import _pytree as pytree
    out = []
    for x in pytree.tree_leaves(outputs):
        if x is None or isinstance(x, str):
            continue
        t = x if isinstance(x, torch.Tensor) else torch.tensor(x)
        if not isinstance(x, torch.Tensor) and t.is_floating_point():
            t = t.to(torch.float32)
        t = t.detach().cpu().resolve_conj().resolve_neg()
        t = torch.view_as_real(t) if t.is_complex() else t
        dtype = str(t.dtype).replace("torch.", "")
        out.append(((t.float() if t.dtype == torch.bfloat16 else t).numpy(), dtype))
    return out


@dataclass
class Tolerances:
    """Given, or by the type that the model computes in, or by the output's own."""

    atol: Optional[float] = None
    rtol: Optional[float] = None
    computed_in: str = ""

    def of(self, dtype: str) -> Tuple[float, float]:
        a, r = TOLERANCES.get(self.computed_in or dtype, (0.0, 0.0))
        return a if self.atol is None else self.atol, r if self.rtol is None else self.rtol


@dataclass
class Jump:
    """How far an output's elements may be off, and how many of them."""

    far: float = 0.0
    many: int = 0

    def joined(self, other: "Jump") -> "Jump":
        return Jump(max(self.far, other.far), max(self.many, other.many))


FARTHER = 1.5                   # than what few runs showed
SEEN = 1e-3                     # of the farthest jump: what is off by more is off by a jump


def jump_between(got: np.ndarray, want: np.ndarray, least: float = 0.0) -> Jump:
    """The largest difference, and how many are not small beside it or `least`."""
    if got.shape != want.shape or not got.size:
        return Jump()
    diff = np.abs(got.astype("f8") - want.astype("f8"))
    diff = np.where(np.isfinite(diff), diff, 0)
    far = float(diff.max())
    return Jump(far, int((diff > SEEN * max(far, least)).sum()) if far else 0)


def _jumps_only(got: np.ndarray, want: np.ndarray, allowed: Jump) -> bool:
    if got.shape != want.shape or got.dtype != want.dtype or not allowed.far or \
            not (np.isfinite(got) == np.isfinite(want)).all():
        return False
    found = jump_between(got, want, allowed.far)
    return found.far <= FARTHER * allowed.far and found.many <= FARTHER * allowed.many


def check_at(runtime: Runtime, feeds: Dict[str, Any], want: Sequence[Any], sizes: Sizes,
             tol: Tolerances, jumps: Optional[Callable[[], Sequence[Jump]]] = None) -> Check:
    """`jumps` says for each output how far a quantised model may be off."""
    try:
        got = runtime(feeds)
    except Exception as e:
        return Check(sizes, False, math.inf, "ONNX Runtime: %s" % str(e).strip().split("\n")[0])
    if len(got) != len(want):
        return Check(sizes, False, math.inf, "%d outputs, PyTorch has %d" % (len(got), len(want)))
    worst, allowed = 0.0, None
    for k, (name, x, (y, dtype)) in enumerate(zip(runtime.outputs, got, want)):
        diff, wrong = compare(name, x, y, tol.of(dtype))
        if wrong and jumps is not None:
            allowed = allowed or jumps()
            wrong = "" if _jumps_only(x, y, allowed[k]) else wrong
        if wrong:
            return Check(sizes, False, diff, wrong)
        worst = max(worst, diff)
    return Check(sizes, True, worst,
                 "max diff %.2g, where rounding falls the other way" % worst if allowed else "")
