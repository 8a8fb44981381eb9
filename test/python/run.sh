#!/bin/sh
# Builds the wheel, and tests it in a fresh environment without PyTorch and in one with it.
# usage: run.sh SCRATCH      exit 77: Python packages cannot be installed here
set -u
top=$(cd "$(dirname "$0")/../.." && pwd)
scratch=$(mkdir -p "$1" && cd "$1" && pwd)
unset PYTHONPATH PT2ONNX_LIBRARY PT2ONNX_COMMAND PT2ONNX_ORT
pip="-m pip --quiet --disable-pip-version-check --retries 1"

"$top/tools/with_torch" python -c '' || exit 77
python3 -m venv "$scratch/bare" && "$scratch/bare/bin/python" $pip install numpy onnxruntime ||
    { echo "onnxruntime cannot be installed here"; exit 77; }
"$scratch/bare/bin/python" $pip wheel --no-deps --wheel-dir "$scratch/wheel" "$top" || exit 1
"$scratch/bare/bin/python" $pip install "$scratch"/wheel/pt2onnx-*-py3-none-linux_*.whl || exit 1
"$scratch/bare/bin/python" "$top/test/python/test_bare.py" || exit 1
"$scratch/bare/bin/python" $pip install --no-deps --target "$scratch/site" "$scratch"/wheel/*.whl || exit 1
cd "$scratch" && for test in test_export test_custom test_sizes test_caches; do
    PYTHONPATH="$scratch/site" "$top/tools/with_torch" python "$top/test/python/$test.py" || exit 1
done
