#!/bin/sh
# Converts every model of list.txt, runs it at each recorded size against what PyTorch computed, and
# reads every archive of data/formats.  usage: run.sh PT2ONNX [OUTDIR]
pt2onnx=$1
here=$(cd "$(dirname "$0")" && pwd)
data=$here/data
out=${2:-$(mktemp -d)}
passed=0 failed=0
mkdir -p "$out"
: > "$out/refused"

fail() {
    echo "FAILED $1"
    sed 's/^/    /' "$out/log"
    failed=$((failed + 1))
}

# Refused for the reason that refused.txt gives: what one cannot know from these captures.
refused() {
    reason=$(sed -n "s/^$1 *: *//p" "$here/refused.txt")
    if [ -n "$reason" ] && grep -qF "$reason" "$out/log"; then
        passed=$((passed + 1))
        echo "$1" >> "$out/refused"
    else
        fail "$1: conversion"
    fi
}

# Nothing of the machine that saved or converted the model may be in the file.
private_path() { grep -aqE '/(home|usr|root|tmp|model|work|opt|var)/' "$1"; }

while read -r name captures args; do
    case $name in '' | '#'*) continue ;; esac
    model=$out/model.onnx
    checks=
    case $args in *'|'*) checks=${args#*|} args=${args%%|*} ;; esac
    files=
    for c in $(echo "$captures" | tr , ' '); do
        files="$files $data/$c.pt2"
    done
    rm -f "$model"
    # shellcheck disable=SC2086
    if ! "$pt2onnx" $files "$model" --quiet $args > "$out/log" 2>&1; then
        refused "$captures"
    elif ! "$pt2onnx" verify "$model" --data "$data/$name.npz" --rtol 1e-5 --atol 1e-5 $checks > "$out/log" 2>&1; then
        fail "$captures: numbers"
    elif private_path "$model"; then
        fail "$captures: a path in the file"
    else
        "$pt2onnx" $files "$model.again" --quiet $args > /dev/null 2>&1
        if cmp -s "$model" "$model.again"; then
            passed=$((passed + $(grep -c '^\[ok\]' "$out/log")))
        else
            fail "$captures: other bytes the second time"
        fi
        rm -f "$model.again"
    fi
done < "$here/list.txt"

sed -n 's/^\([^# ]*\) *:.*/\1/p' "$here/refused.txt" | while read -r name; do
    grep -qxF "$name" "$out/refused" || echo "$name"
done > "$out/log"
[ -s "$out/log" ] && fail "refused.txt: not refused any more"

for f in "$data"/formats/*; do
    if "$pt2onnx" inspect "$f" > "$out/log" 2>&1 && [ -s "$out/log" ]; then
        passed=$((passed + 1))
    else
        fail "inspect $(basename "$f")"
    fi
done
echo "$passed passed, $failed failed"
[ $failed = 0 ]
