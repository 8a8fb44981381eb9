"""How far a quantised model's numbers jump where rounding falls the other way.

A float that ends up halfway between two integers goes to either of them, by its last digit; what
follows differs by a whole step then.  PyTorch says how much and how often: the same run with noise
of a float's last digits before each rounding.
"""
from __future__ import annotations

from typing import Any, Callable, Iterable, List, Sequence, Tuple

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from ._verify import Jump, as_arrays, jump_between

NOISE = {"float16": 1e-3, "bfloat16": 1e-2}     # of the largest that counts, by type
FLOAT_NOISE = 1e-5
RUNS = 3


def _rounds(target: Any) -> bool:
    name = str(target)
    return ("quantize" in name and "dequantize" not in name) or name.startswith("aten.round")


def quantises(programs: Iterable[Any]) -> bool:
    """Whether any of the captured programs has integers stand for floats.  An operator says so, not
    the name of an input or of a parameter."""
    return any(node.op == "call_function" and "quantize" in str(node.target) for ep in programs
               for node in getattr(getattr(ep, "graph", None), "nodes", ()))


def _largest(x: torch.Tensor, rounded: Any) -> float:
    """Of what is rounded: sums cancel, and their errors are of the size of their terms.  What ends
    up at either end is cut there, and may be a mask's -1e9, which no other is a sum with."""
    y = rounded[0] if isinstance(rounded, (tuple, list)) else rounded
    size = x.abs()
    if not x.numel() or y.shape != x.shape:
        return 0.0
    ends = y == y.min(), y == y.max()
    inside = ~(ends[0] | ends[1])
    if inside.any():
        return float(size[inside].max())
    return float(min(size[end].max() for end in ends))


class _Noise(TorchDispatchMode):
    def __init__(self, seed: int, much: float) -> None:
        super().__init__()
        self._random = torch.Generator().manual_seed(seed)
        self._much = much

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if _rounds(func) and args and isinstance(args[0], torch.Tensor) and \
                args[0].is_floating_point():
            x = args[0]
            most = _largest(x, func(x.clone(), *args[1:], **(kwargs or {})))
            noise = (torch.rand(x.shape, generator=self._random) * 2 - 1) * self._much * most
            noisy = (x + noise).to(x.dtype)
            args = (x.copy_(noisy) if func._schema.is_mutable else noisy, *args[1:])
        return func(*args, **(kwargs or {}))


def jumps(run: Callable[[], Any], want: Sequence[Tuple[Any, str]], computed_in: str) -> List[Jump]:
    """For each output; `run` gives the outputs once more."""
    out = [Jump() for _ in want]
    for seed in range(RUNS):
        with _Noise(seed, NOISE.get(computed_in, FLOAT_NOISE)):
            got = as_arrays(run())
        out = [a.joined(jump_between(x, y)) for a, (x, _), (y, _) in zip(out, got, want)]
    return out
