"""Programs taken apart by PyTorch where the converter does not take them as they are.

Decomposing makes other calls of what the user wrote, so as little of it is done as helps: first
none at all, which only writes programs in functional form and carries out torch.vmap; then of the
operators that have no equivalent; then down to PyTorch's core operators.
"""
from __future__ import annotations

from typing import Any, Callable, Dict, Iterator, List

import torch

from ._errors import UnsupportedError
from ._library import operators

LEVELS = 3                      # see taken_apart
ROUNDS = 4                      # what an operator is made of may have no equivalent either


def _graphs(module: torch.fx.GraphModule) -> Iterator[torch.fx.GraphModule]:
    pending = [module]
    while pending:
        one = pending.pop()
        yield one
        pending += [m for m in one.children() if isinstance(m, torch.fx.GraphModule)]


def _can_be_handed_over(ep: torch.export.ExportedProgram) -> bool:
    """Functions and trees of arguments in the graph itself cannot, which flat_apply takes."""
    return all(isinstance(getattr(g, str(n.target), None), torch.fx.GraphModule)
               for g in _graphs(ep.graph_module) for n in g.graph.nodes if n.op == "get_attr")


def _run(ep: torch.export.ExportedProgram,
         table: Dict[Any, Callable[..., Any]]) -> torch.export.ExportedProgram:
    from ._capture import quiet, vmaps_closed
    try:
        with quiet(), vmaps_closed():
            out = ep.run_decompositions(table)
    except Exception as e:
        raise UnsupportedError("PyTorch does not decompose the program: %s: %s" % (
            type(e).__name__, str(e).strip())) from e
    if hasattr(ep, "_guards_code"):             # what the capture is good for stays what it was
        out._guards_code = ep._guards_code
    return out


def handed_over(ep: torch.export.ExportedProgram) -> torch.export.ExportedProgram:
    """The program itself, or without what cannot be handed over."""
    return ep if _can_be_handed_over(ep) else _run(ep, {})


def _missing(ep: torch.export.ExportedProgram) -> List[Any]:
    found = {n.target for g in _graphs(ep.graph_module) for n in g.graph.nodes
             if n.op == "call_function" and isinstance(n.target, torch._ops.OpOverload)}
    supported = operators()
    name = lambda op: op.name().replace(".default", "")
    return sorted((op for op in found if name(op) not in supported), key=name)


def taken_apart(ep: torch.export.ExportedProgram, level: int) -> torch.export.ExportedProgram:
    """0: in functional form; 1: without the operators that have no equivalent, as far as PyTorch
    knows what they are made of; 2: of core operators only."""
    from torch._decomp import decomposition_table
    core = torch.export.default_decompositions()
    table: Dict[Any, Callable[..., Any]] = dict(core.items()) if level == 2 else {}
    out = _run(ep, table)
    for _ in range(ROUNDS if level else 0):
        known = {op: core[op] if op in core else decomposition_table[op]
                 for op in _missing(out) if op in core or op in decomposition_table}
        if known.keys() <= table.keys():
            break
        table.update(known)
        out = _run(ep, table)
    return out
