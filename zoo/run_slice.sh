#!/bin/sh
# A slice of the zoo: small models of other packages, captured and by Python, against PyTorch.
# usage: run_slice.sh PT2ONNX SITE SCRATCH      SITE: a folder with the installed Python package
# exit 77: packages cannot be had here
here=$(cd "$(dirname "$0")" && pwd)
[ -e "$2/pt2onnx/libpt2onnx.so" ] || { echo "no Python package in $2"; exit 77; }
torch=$here/../tools/with_torch
"$torch" python -m pip install --quiet --disable-pip-version-check --retries 1 onnxscript \
    > /dev/null 2>&1 || { echo "onnxscript cannot be installed here"; exit 77; }
rm -rf "$3"
exec "$torch" python "$here/zoo.py" --slice --pt2onnx "$1" \
    --library "$2/pt2onnx/libpt2onnx.so" --results "$3"
