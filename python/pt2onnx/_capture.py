"""torch.export on a model that is left as it was."""
from __future__ import annotations

import contextlib
import inspect
import logging
import warnings
from typing import Any, Dict, Iterator, List, Optional, Tuple

import torch

from ._errors import CaptureError
from ._example import Example, Sizes
from ._program import is_unreal


@contextlib.contextmanager
def untouched(model: torch.nn.Module) -> Iterator[None]:
    """eval and no_grad inside; afterwards modes, buffers, attributes and random state are as before."""
    modules = list(model.modules())
    training = [m.training for m in modules]
    attributes = [dict(m.__dict__) for m in modules]
    tables = [{k: dict(m.__dict__[k]) for k in ("_parameters", "_buffers", "_modules")} for m in modules]
    buffers = {b: b.detach().clone() for b in model.buffers() if not is_unreal(b)}
    versions = {b: b._version for b in buffers}
    devices = sorted({p.device.index for p in model.parameters() if p.device.type == "cuda"})
    try:
        with torch.random.fork_rng(devices=devices), torch.no_grad():
            model.eval()
            yield
    finally:
        for m, mode, saved, table in zip(modules, training, attributes, tables):
            for name in set(m.__dict__) - set(saved):
                del m.__dict__[name]
            m.__dict__.update(saved)
            for name, items in table.items():
                live = m.__dict__[name]
                live.clear()
                live.update(items)
            m.training = mode
        with torch.no_grad():
            for b, value in buffers.items():
                if b._version != versions[b]:
                    b.copy_(value)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    names = ["torch.export", "torch._export", "torch.fx", "torch._dynamo", "torch.fx.experimental.symbolic_shapes",
             "torch._subclasses.fake_tensor"]
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


def run(model: Any, example: Example, sizes: Sizes) -> Any:
    args, kwargs = example.call_arguments(example.at(sizes))
    return model(*args, **kwargs)


def _unreal_device(model: torch.nn.Module) -> Optional[Any]:
    for t in list(model.parameters()) + list(model.buffers()):
        if is_unreal(t):
            return getattr(t, "fake_mode", None) or "meta"
    return None


def _free_axes(model: torch.nn.Module, example: Example, leaves: List[Any], args: tuple, kwargs: Dict[str, Any]) -> Any:
    """dynamic_shapes with AUTO at every declared place."""
    auto, axes = torch.export.Dim.AUTO, {}
    for s in example.symbols.values():
        for leaf, axis in s.places:
            if axis is None:
                axes[leaf] = auto
            else:
                axes.setdefault(leaf, {})[axis] = auto
    if all(isinstance(leaves[leaf], torch.Tensor) for leaf in axes):
        collection = torch.export.ShapesCollection()
        for leaf, spec in axes.items():
            collection[leaves[leaf]] = spec
        return collection.dynamic_shapes(model, args, kwargs)
    specs = example.call_arguments([axes.get(k) for k in range(len(leaves))])       # ints have no identity
    return dict(inspect.signature(model.forward).bind(*specs[0], **specs[1]).arguments)


def capture(model: torch.nn.Module, example: Example, sizes: Sizes, dynamic: bool) -> torch.export.ExportedProgram:
    """At these sizes; `dynamic`: with the symbols' axes free as far as PyTorch can."""
    leaves = example.at(sizes)
    unreal = _unreal_device(model)
    if unreal == "meta":
        leaves = [x.to("meta") if isinstance(x, torch.Tensor) else x for x in leaves]
    elif unreal is not None:
        leaves = [unreal.from_tensor(x) if isinstance(x, torch.Tensor) else x for x in leaves]
    args, kwargs = example.call_arguments(leaves)
    shapes: Any = None
    if dynamic:
        shapes = _free_axes(model, example, leaves, args, kwargs)
    errors: List[Exception] = []
    for strict in (False, True):
        try:
            with _quiet():
                return torch.export.export(model, args, kwargs or None, dynamic_shapes=shapes, strict=strict)
        except Exception as e:
            errors.append(e)
        if unreal is not None or dynamic:
            break                               # the fixed captures that follow are the better second try
    first = errors[0]
    raise CaptureError("torch.export cannot capture the model: %s: %s" % (type(first).__name__, str(first).strip())) from first
