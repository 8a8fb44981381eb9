"""Numbers in a model's code, weights and program: where a branch or a table ends, it ends at one.

Those that the code compares something with come first: `n > 512`, `n >= self.config.window`.
"""
from __future__ import annotations

import dis
import re
from types import CodeType
from typing import Any, Dict, Iterator, List, Sequence

import torch
from torch.utils import _pytree as pytree

LEAST = 4                       # sizes below are compared at anyway
Globals = Dict[str, Any]


def _is_int(x: Any) -> bool:
    return type(x) is int


def _named_in(x: Any) -> Globals:
    """Plain numbers among the attributes of an object and of its class."""
    out: Globals = {}
    for space in [vars(c) for c in reversed(type(x).__mro__)] + [getattr(x, "__dict__", {})]:
        out.update((k, v) for k, v in space.items() if _is_int(v))
    return out


def _attributes(model: torch.nn.Module) -> Dict[str, List[int]]:
    """By name, of all modules and of the plain objects that they hold, such as a config."""
    own = _named_in(torch.nn.Module())
    out: Dict[str, List[int]] = {}
    for m in model.modules():
        if type(m).__module__.startswith("torch."):
            held: List[Any] = []
        else:
            held = [v for v in m.__dict__.values() if hasattr(v, "__dict__")
                    and not isinstance(v, (torch.nn.Module, torch.Tensor, type))]
        for x in [m, *held]:
            for k, v in _named_in(x).items():
                if k not in own:
                    out.setdefault(k, []).append(v)
    return out


def _of_script(f: Any) -> List[int]:
    return [int(n) for n in re.findall(r"value=(\d+)\]", str(f.graph))]


def _loaded(i: Any, space: Globals, attributes: Dict[str, List[int]]) -> Iterator[int]:
    if _is_int(i.argval):
        yield i.argval
    elif "ATTR" in i.opname:
        yield from attributes.get(str(i.argval), [])
    elif "GLOBAL" in i.opname and _is_int(space.get(i.argval)):
        yield space[i.argval]


def _compared(code: CodeType, space: Globals, attributes: Dict[str, List[int]]) -> Iterator[int]:
    """What is loaded right before a comparison, on either side of it, or for min and max."""
    loads: List[Any] = []
    of_choice = False
    for i in dis.get_instructions(code):
        if i.opname.startswith("LOAD_"):
            of_choice = of_choice or i.argval in ("min", "max", "clamp")
            loads.append(i)
            continue
        if i.opname == "COMPARE_OP" or of_choice and i.opname.startswith("CALL"):
            for x in loads if of_choice else loads[-2:]:
                yield from _loaded(x, space, attributes)
        of_choice = of_choice and i.opname in ("PRECALL", "KW_NAMES", "PUSH_NULL")
        loads = loads if of_choice else []


def _mentioned(code: CodeType, space: Globals) -> Iterator[int]:
    yield from (x for x in code.co_consts if _is_int(x))
    for name in code.co_names:
        if _is_int(space.get(name)):
            yield space[name]


def compared(codes: Dict[CodeType, Globals], model: torch.nn.Module) -> List[int]:
    """Numbers that the code compares sizes with, as far as one sees by reading it."""
    attributes = _attributes(model)
    found = {n for code, space in codes.items() for n in _compared(code, space, attributes)}
    for code, space in codes.items():
        for f in [space.get(name) for name in code.co_names]:
            if isinstance(f, torch.jit.ScriptFunction):
                found.update(_of_script(f))
    return sorted(n for n in found if n >= LEAST)


def mentioned(codes: Dict[CodeType, Globals], model: torch.nn.Module,
              programs: Sequence[Any]) -> List[int]:
    """All others that it may have to do with."""
    found = {n for values in _attributes(model).values() for n in values}
    for code, space in codes.items():
        found.update(_mentioned(code, space))
    for t in list(model.parameters()) + list(model.buffers()):
        found.update(t.shape)
    for ep in programs:
        for node in ep.graph.nodes:
            found.update(x for x in pytree.tree_leaves((node.args, node.kwargs)) if _is_int(x))
    return sorted(n for n in found if n >= LEAST)
