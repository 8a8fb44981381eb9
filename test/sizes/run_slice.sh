#!/bin/sh
# Converts what suite.py recorded in data/ and runs it at each recorded size against what PyTorch
# computed; what must be refused leaves no file.  usage: run_slice.sh PT2ONNX SCRATCH [DATA]
pt2onnx=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$2"
out=$(cd "$2" && pwd)
cd "${3:-$here/data}" || exit 1
passed=0 failed=0

fail() {
    echo "FAILED $1"
    sed 's/^/    /' "$out/log"
    failed=$((failed + 1))
}

while read -r expected data captures args; do
    case $expected in '' | '#'*) continue ;; esac
    model=$out/model.onnx
    rm -f "$model"
    # shellcheck disable=SC2046,SC2086
    "$pt2onnx" $(echo "$captures" | tr , ' ') "$model" --quiet $args > "$out/log" 2>&1
    code=$?
    what="$captures $args"
    if [ "$expected" = refused ]; then
        case $code in
            3 | 4) if [ -e "$model" ]; then fail "$what: a file"; else passed=$((passed + 1)); fi ;;
            *) fail "$what: exit code $code, expected a refusal" ;;
        esac
    elif [ $code != 0 ]; then
        fail "$what: conversion"
    elif "$pt2onnx" verify "$model" --data "$data" --rtol 1e-4 --atol 1e-4 > "$out/log" 2>&1; then
        passed=$((passed + $(grep -c '^\[ok\]' "$out/log")))
    else
        fail "$what: numbers"
    fi
done < list.txt
echo "$passed passed, $failed failed"
[ $failed = 0 ]
