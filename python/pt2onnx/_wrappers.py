"""Modules that only hold another one: torch.compile's, DataParallel's."""
from __future__ import annotations

import contextlib
from typing import Any, Iterator, List, Tuple

import torch

_HOLDERS = ("torch.nn.parallel.", "torch.distributed.")


def inner(model: Any) -> Any:
    """The module that is wrapped, however often."""
    while isinstance(model, torch.nn.Module):
        kind = type(model)
        if isinstance(getattr(model, "_orig_mod", None), torch.nn.Module):      # torch.compile
            model = model._orig_mod
        elif any((c.__module__ + ".").startswith(_HOLDERS) for c in kind.__mro__) and \
                isinstance(getattr(model, "module", None), torch.nn.Module):
            model = model.module
        else:
            break
    return model


@contextlib.contextmanager
def unwrapped(model: torch.nn.Module) -> Iterator[None]:
    """The parts of a model are what they wrap, and not compiled."""
    children: List[Tuple[Any, str, Any]] = []
    compiled: List[Tuple[Any, Any]] = []
    todo, seen = [model], set()
    try:
        while todo:
            m = todo.pop()
            if id(m) in seen:
                continue
            seen.add(id(m))
            if m.__dict__.get("_compiled_call_impl") is not None:       # model.compile()
                compiled.append((m, m._compiled_call_impl))
                m._compiled_call_impl = None
            for name, child in list(m._modules.items()):
                if child is None:
                    continue
                if inner(child) is not child:
                    children.append((m, name, child))
                    m._modules[name] = inner(child)
                todo.append(m._modules[name])
        yield
    finally:
        for m, name, child in children:
            m._modules[name] = child
        for m, call in compiled:
            m._compiled_call_impl = call
