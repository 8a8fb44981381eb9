#!/bin/sh
# Converts the three example models and runs each in ONNX Runtime at several sizes, against outputs
# recorded by PyTorch.  usage: demo.sh PT2ONNX OUTDIR
set -eu
pt2onnx=$1
out=$2
here=$(dirname "$0")
mkdir -p "$out"

show() {
    name=$1
    shift
    echo
    echo "== $name"
    "$pt2onnx" "$here/$name.pt2" "$out/$name.onnx" "$@"
    "$pt2onnx" verify "$out/$name.onnx" --data "$here/$name.npz"
}

show linear --dynamic-axes '{"input": {"0": "batch_size"}, "output": {"0": "batch_size"}}' \
     --output-names output
show rnn --input 'input:batch_size,sequence_length,10' --output-names output
show reshape --input 'input:batch_size,10' --output-names output
echo
echo "the models are in $out"
