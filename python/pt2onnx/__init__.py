"""PyTorch models to ONNX, with any number of dynamic inputs.

    import pt2onnx
    pt2onnx.export(model, (x,), "m.onnx", input_names=["x"], output_names=["y"],
                   dynamic_axes={"x": {0: "batch", 1: "length"}, "y": {0: "batch"}})
"""
from ._errors import (CaptureError, Diagnostic, DynamicError, InputError, Pt2OnnxError,
                      UnsupportedError, UsageError, VerificationError)
from ._export import export
from ._library import version as _version
from ._result import Port, Result
from ._verify import Check

__all__ = ["CaptureError", "Check", "Diagnostic", "DynamicError", "InputError", "Port",
           "Pt2OnnxError", "Result", "UnsupportedError", "UsageError", "VerificationError",
           "export"]


def __getattr__(name: str) -> str:
    if name == "__version__":
        return _version()
    raise AttributeError(name)
