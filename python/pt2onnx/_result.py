"""What export gives back."""
from __future__ import annotations

import os
import shutil
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Dict, List, Optional, Sequence, Union

from ._errors import Diagnostic, UsageError
from ._verify import Check, Runtime


@dataclass(frozen=True)
class Port:
    """An input or output of the model."""

    name: str
    dtype: str
    dims: Sequence[Union[int, str]]         # numbers, names, or expressions of names

    def __str__(self) -> str:
        return "%s: %s[%s]" % (self.name, self.dtype, ", ".join(map(str, self.dims)))


@dataclass
class Result:
    """A converted model."""

    path: Optional[str]                     # where it was written; None: in memory or in the given file object
    inputs: List[Port]
    outputs: List[Port]
    dims: Dict[str, Dict[str, int]]         # name -> {"min", "max", "captured"}
    notes: List[Diagnostic]
    opset: int
    nodes: int
    report: str = field(repr=False, default="")
    check: List[Check] = field(default_factory=list)
    _model: Optional[bytes] = field(repr=False, default=None)
    _runtime: Optional[Runtime] = field(repr=False, default=None)

    def save(self, f: Union[str, "os.PathLike[str]", BinaryIO]) -> None:
        """Writes the model to a path or a binary file object."""
        if self._model is None and self.path is None:
            raise UsageError("the model went to a file object and is not kept")
        if hasattr(f, "write"):
            if self._model is None:
                if os.path.exists(self.path + ".data"):
                    raise UsageError("the model has its weights in %s.data: give a path" % self.path)
                with open(self.path, "rb") as source:
                    shutil.copyfileobj(source, f)
            else:
                f.write(self._model)
            return
        target = os.fspath(f)
        if self._model is not None:
            with open(target, "wb") as out:
                out.write(self._model)
        elif os.path.exists(self.path + ".data"):
            raise UsageError("%s points at its weights in %s.data by name: move or copy both under the same names" % (
                self.path, self.path))
        else:
            shutil.copyfile(self.path, target)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the model in ONNX Runtime: arrays or tensors in the inputs' order, or by their names."""
        if self._runtime is None:
            if self._model is None and self.path is None:
                raise UsageError("the model went to a file object and is not kept")
            self._runtime = Runtime(self._model if self._model is not None else self.path)
        if len(args) > len(self.inputs):
            raise UsageError("%d inputs for a model with %d" % (len(args), len(self.inputs)))
        feeds = dict(zip((p.name for p in self.inputs), args))
        for name in kwargs:
            if name in feeds or name not in {p.name for p in self.inputs}:
                raise UsageError("input '%s' is %s" % (name, "given twice" if name in feeds else "not the model's"))
        out = self._runtime({**feeds, **kwargs})
        return out[0] if len(out) == 1 else tuple(out)

    def __repr__(self) -> str:
        lines = ["pt2onnx: %s, %d nodes, opset %d" % (self.path or "in memory", self.nodes, self.opset)]
        lines += ["  input  %s" % p for p in self.inputs] + ["  output %s" % p for p in self.outputs]
        lines += ["  %s" % c for c in self.check]
        return "\n".join(lines)
