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
echo "$passed passed, $failed failed"
[ $failed = 0 ]
