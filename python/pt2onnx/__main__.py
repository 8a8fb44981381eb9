"""python -m pt2onnx: the command."""
import importlib.util
import os
import sys
from pathlib import Path


def main() -> None:
    command = Path(os.environ.get("PT2ONNX_COMMAND") or Path(__file__).with_name("pt2onnx"))
    runtime = importlib.util.find_spec("onnxruntime")
    if runtime is not None and runtime.origin and "PT2ONNX_ORT" not in os.environ:
        os.environ["PT2ONNX_ORT"] = str(Path(runtime.origin).parent / "capi")
    os.execv(str(command), ["pt2onnx"] + sys.argv[1:])


if __name__ == "__main__":
    main()
