"""Weights that are made of several tensors: torchao's int8 or int4 values with their scales.

torch.export takes them apart where they are used; each part is a weight of its own here,
`linear.weight.qdata`, and the whole is none.
"""
from __future__ import annotations

from typing import Any, Dict, NamedTuple

import torch
from torch.utils._python_dispatch import is_traceable_wrapper_subclass


class Part(NamedTuple):
    weight: str                 # its name
    tensor: torch.Tensor


def is_composed(t: Any) -> bool:
    return isinstance(t, torch.Tensor) and is_traceable_wrapper_subclass(t)


def is_taken_apart(node: torch.fx.Node) -> bool:
    """It gives a part of a tensor."""
    return node.op == "call_function" and str(node.target).startswith(
        "export.access_subclass_inner_tensor")


def composed_weights(ep: torch.export.ExportedProgram) -> Dict[str, Part]:
    """By the name of the graph's input."""
    out: Dict[str, Part] = {}
    for spec in ep.graph_signature.input_specs:
        value = ep.state_dict.get(spec.target, ep.constants.get(spec.target)) \
            if spec.target is not None else None
        if is_composed(value):
            out[spec.arg.name] = Part(str(spec.target), value)
    return out


def parts(ep: torch.export.ExportedProgram) -> Dict[str, Part]:
    """By the name of the node that takes it out; only plain tensors."""
    known = composed_weights(ep)
    if not known:
        return {}
    for node in ep.graph.nodes:
        if is_taken_apart(node):
            whole, name = node.args
            if whole.name in known:
                at = known[whole.name]
                known[node.name] = Part("%s.%s" % (at.weight, name), getattr(at.tensor, name))
    return {k: v for k, v in known.items() if not is_composed(v.tensor)}
