"""An ExportedProgram's weights as the library takes them: by address."""
from __future__ import annotations

from typing import Any, Dict, List, Mapping

import torch

from ._errors import CaptureError, UnsupportedError, UsageError
from ._inner import is_composed, parts
from ._library import Weight


def _weight(name: str, t: torch.Tensor) -> Weight:
    t = t.detach()
    if t.layout != torch.strided or t.is_quantized:
        raise UnsupportedError("weight %s is %s, not a plain tensor" % (name, t.layout))
    if t.is_conj() or t.is_neg() or t.device.type != "cpu":
        t = t.cpu().resolve_conj().resolve_neg()
    try:
        storage = t.untyped_storage()
        data = storage.data_ptr()
    except Exception as e:
        raise UnsupportedError("weight %s is a %s without memory of its own: %s" % (
            name, type(t).__name__, e)) from e
    return Weight(name, str(t.dtype).replace("torch.", ""), data, storage.nbytes(),
                  t.storage_offset(), tuple(t.shape), tuple(t.stride()), t)


def program_weights(ep: torch.export.ExportedProgram,
                    given: Mapping[str, torch.Tensor]) -> List[Weight]:
    """The program's tensors, or those given in their place."""
    named: Dict[str, Any] = {
        **ep.state_dict,
        **{k: v for k, v in ep.constants.items() if isinstance(v, torch.Tensor)}}
    inside = parts(ep)
    if inside:
        named = {**{k: v for k, v in named.items() if not is_composed(v)},
                 **{p.weight: p.tensor for p in inside.values()}}
    out = []
    for name, t in named.items():
        new = given.get(name)
        if new is not None:
            if tuple(new.shape) != tuple(t.shape) or new.dtype != t.dtype:
                raise UsageError("weights: %s is %s %s, the model has %s %s" % (
                    name, str(new.dtype), list(new.shape), str(t.dtype), list(t.shape)))
            t = new
        elif is_unreal(t) and (t.is_meta or name in ep.state_dict):
            raise UsageError("%s has no values (%s) and weights= has none by that name" % (
                name, t.device))
        elif is_unreal(t) and _is_idle(ep, name):
            continue
        elif is_unreal(t):                      # left in a cache by an earlier run without values
            raise CaptureError("%s has no values: the model keeps tensors from run to run where "
                               "they are not found" % name)
        out.append(_weight(name, t))
    return out


def _is_idle(ep: torch.export.ExportedProgram, name: str) -> bool:
    """A constant that only calls take which nobody uses: tracing torch.vmap leaves such behind."""
    inputs = {s.arg.name for s in ep.graph_signature.input_specs if s.target == name}
    used = set()
    for node in reversed(ep.graph.nodes):
        asked = node.op == "output" or node.name in used or (
            node.op == "call_function" and node.meta.get("val") is None)
        if asked:
            used |= {x.name for x in node.all_input_nodes}
    return not inputs & used


def is_unreal(t: torch.Tensor) -> bool:
    """On the meta device or fake: a shape without values."""
    return t.is_meta or type(t).__name__ == "FakeTensor"


def coarsest_float(ep: torch.export.ExportedProgram) -> str:
    """The least precise floating type that the program computes in; "": none below float32."""
    dtypes = set()
    for node in ep.graph.nodes:
        value = node.meta.get("val")
        dtypes |= {x.dtype for x in (value if isinstance(value, (list, tuple)) else [value])
                   if isinstance(x, torch.Tensor)}
    return "bfloat16" if torch.bfloat16 in dtypes else "float16" if torch.float16 in dtypes else ""
