#!/bin/sh
# Converts every recorded sample of slice/ and runs it at each recorded size against what PyTorch computed; needs no
# PyTorch.  Samples are selected by `suite.py --record`; those of refused.txt were captured at sizes that are good for
# few others, which must be said.  usage: run_slice.sh PT2ONNX [OUTDIR]
pt2onnx=$1
here=$(cd "$(dirname "$0")" && pwd)
out=${2:-$(mktemp -d)}
passed=0 failed=0
mkdir -p "$out"

for f in "$here"/slice/*.pt2; do
    [ -e "$f" ] || break
    rm -f "$out/m.onnx"
    if grep -qx "$(basename "$f" .pt2)" "$here/refused.txt"; then
        "$pt2onnx" "$f" "$out/m.onnx" --quiet > "$out/log" 2>&1
        if [ $? = 4 ] && [ ! -e "$out/m.onnx" ] && grep -q "the capture's guard" "$out/log"; then
            passed=$((passed + 1))
        else
            echo "FAILED $(basename "$f" .pt2): not refused any more"
            failed=$((failed + 1))
        fi
        continue
    fi
    if "$pt2onnx" "$f" "$out/m.onnx" --quiet > "$out/log" 2>&1 &&
       "$pt2onnx" verify "$out/m.onnx" --data "${f%.pt2}.npz" > "$out/log" 2>&1 &&
       grep -q '^\[ok\]' "$out/log"; then
        passed=$((passed + 1))
    else
        echo "FAILED $(basename "$f" .pt2)"
        sed 's/^/    /' "$out/log"
        failed=$((failed + 1))
    fi
done
[ $passed -gt 0 ] || { echo "no samples in $here/slice"; failed=$((failed + 1)); }
echo "$passed passed, $failed failed"
[ $failed = 0 ]
