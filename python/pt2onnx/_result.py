"""What export gives back."""
from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Dict, List, Optional, Sequence, Union

from ._errors import Diagnostic, UsageError
from ._library import Conversion
from ._verify import Check, Runtime, summary


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

    path: Optional[str]                 # where it was written; None: in memory or in a file object
    inputs: List[Port]
    outputs: List[Port]
    state: Dict[str, str]               # input -> the output to be fed back
    dims: Dict[str, Dict[str, int]]     # name -> {"min", "max", "captured"}
    notes: List[Diagnostic]
    opset: int
    nodes: int
    report: str = field(repr=False, default="")
    check: List[Check] = field(default_factory=list)
    _conversion: Optional[Conversion] = field(repr=False, default=None)     # while it is in no file
    _runtime: Optional[Runtime] = field(repr=False, default=None)
    _kernels: Sequence[str] = field(repr=False, default=())

    def save(self, f: Union[str, "os.PathLike[str]", BinaryIO]) -> None:
        """Writes the model to a path or a binary file object, with the weights as they are now if
        it was in no file."""
        if self._conversion is not None:
            if hasattr(f, "write"):
                self._conversion.write(f)
            else:
                self._conversion.write_file(os.fspath(f))
            return
        if self.path is None:
            raise UsageError("the model went to a file object and is not kept")
        if os.path.exists(self.path + ".data"):
            raise UsageError("%s finds its weights in %s.data by name: copy both under these "
                             "names" % (self.path, self.path))
        if hasattr(f, "write"):
            with open(self.path, "rb") as source:
                shutil.copyfileobj(source, f)
        else:
            shutil.copyfile(self.path, os.fspath(f))

    def _load(self) -> Runtime:
        if self._conversion is None:
            if self.path is None:
                raise UsageError("the model went to a file object and is not kept")
            return Runtime(self.path, self._kernels)
        with tempfile.TemporaryDirectory(prefix="pt2onnx-") as folder:
            name = os.path.join(folder, "model.onnx")
            self._conversion.write_file(name)
            return Runtime(name, self._kernels)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the model in ONNX Runtime: arrays or tensors in the inputs' order, or by their
        names."""
        if self._runtime is None:
            self._runtime = self._load()
        if len(args) > len(self.inputs):
            raise UsageError("%d inputs for a model with %d" % (len(args), len(self.inputs)))
        feeds = dict(zip((p.name for p in self.inputs), args))
        for name in kwargs:
            if name in feeds or name not in {p.name for p in self.inputs}:
                raise UsageError("input '%s' is %s" % (
                    name, "given twice" if name in feeds else "not the model's"))
        out = self._runtime({**feeds, **kwargs})
        return out[0] if len(out) == 1 else tuple(out)

    def __repr__(self) -> str:
        lines = ["pt2onnx: %s, %d nodes, opset %d" % (
            self.path or "in memory", self.nodes, self.opset)]
        lines += (["  input  %s" % p for p in self.inputs] +
                  ["  output %s" % p for p in self.outputs])
        lines += ["  " + summary(self.check)] if self.check else []
        return "\n".join(lines)
