#!/bin/sh
# Gives every model of list.txt other sizes, runs it at each size that PyTorch's numbers were recorded at, and looks
# that refused.txt is refused.  usage: run.sh PT2ONNX [OUTDIR]
pt2onnx=$1
here=$(cd "$(dirname "$0")" && pwd)
data=$here/data
out=${2:-$(mktemp -d)}
passed=0 failed=0
mkdir -p "$out"

fail() {
    echo "FAILED $1"
    sed 's/^/    /' "$out/log"
    failed=$((failed + 1))
}

while read -r name numbers args; do
    case $name in '' | '#'*) continue ;; esac
    rm -f "$out"/model.onnx*
    # shellcheck disable=SC2086
    if ! "$pt2onnx" "$data/$name.onnx" "$out/model.onnx" --quiet $args > "$out/log" 2>&1; then
        fail "$name $args: conversion"
    elif ! grep -q pt2onnx.dims "$out/model.onnx"; then
        fail "$name $args: the file does not say what its sizes need"
    elif ! "$pt2onnx" verify "$out/model.onnx" --data "$data/$numbers.npz" --rtol 1e-5 --atol 1e-5 > "$out/log" 2>&1; then
        fail "$name $args: numbers"
    else
        cp "$out/model.onnx" "$out/first"
        # shellcheck disable=SC2086
        "$pt2onnx" "$data/$name.onnx" "$out/model.onnx" --quiet $args > /dev/null 2>&1
        if cmp -s "$out/model.onnx" "$out/first"; then
            passed=$((passed + $(grep -c '^\[ok\]' "$out/log")))
        else
            fail "$name $args: other bytes the second time"
        fi
    fi
done < "$here/list.txt"

while read -r name rest; do
    case $name in '' | '#'*) continue ;; esac
    args=${rest%% | *} words=${rest#* | }
    rm -f "$out"/model.onnx*
    # shellcheck disable=SC2086
    "$pt2onnx" "$data/$name.onnx" "$out/model.onnx" --quiet $args > "$out/log" 2>&1
    code=$?
    if [ $code -ge 1 ] && [ $code -le 4 ] && grep -qF "$words" "$out/log" && [ ! -e "$out/model.onnx" ]; then
        passed=$((passed + 1))
    else
        fail "$name $args: exit code $code, expected '$words'"
    fi
done < "$here/refused.txt"
# Linked: the weights stay where they are, in the output's folder or below; and are never written over.
rm -f "$out"/model.onnx*
cp "$data"/outside.onnx "$data"/outside.onnx.data "$out"
if "$pt2onnx" "$out/outside.onnx" "$out/model.onnx" --quiet --input x:batch,8,5 --external-data link > "$out/log" 2>&1 &&
    "$pt2onnx" verify "$out/model.onnx" --data "$data/outside.npz" > "$out/log" 2>&1 && [ ! -e "$out/model.onnx.data" ]; then
    passed=$((passed + 1))
else
    fail "outside: linked"
fi
cp "$out/outside.onnx" "$out/other.onnx"
if "$pt2onnx" "$out/other.onnx" "$out/outside.onnx" --quiet --input x:batch,8,5 > "$out/log" 2>&1 ||
    ! cmp -s "$out/outside.onnx.data" "$data/outside.onnx.data"; then
    fail "outside: written over"
else
    passed=$((passed + 1))
fi
if "$pt2onnx" "$data/mlp.onnx" "$data/mlp.onnx" "$out/model.onnx" --quiet > "$out/log" 2>&1; then
    fail "two models at once"
else
    passed=$((passed + 1))
fi
echo "$passed passed, $failed failed"
[ $failed = 0 ]
