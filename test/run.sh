#!/bin/sh
# Runs every test and adds up.  usage: run.sh BUILD, a build with the sanitizers.
#
# A test is a program that prints "N passed, N failed" last and exits 0 when none failed; exit 77 means
# that something it needs cannot be had here, which is counted as skipped and said.
set -u
build=$1
top=$(cd "$(dirname "$0")/.." && pwd)
scratch=$build/scratch
passed=0 failed=0 skipped=0
export ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=1 UBSAN_OPTIONS=print_stacktrace=1
export LSAN_OPTIONS=suppressions=$top/test/lsan.supp:print_suppressions=0
rm -rf "$scratch"
mkdir -p "$scratch"

run() {
    name=$1
    shift
    "$@" > "$scratch/log" 2>&1
    code=$?
    line=$(grep -E '^[0-9]+ passed, [0-9]+ failed' "$scratch/log" | tail -n 1)
    p=$(echo "$line" | sed -n 's/^\([0-9]*\) passed.*/\1/p')
    f=$(echo "$line" | sed -n 's/.* \([0-9]*\) failed.*/\1/p')
    if [ $code = 77 ]; then
        skipped=$((skipped + 1))
        echo "skipped  $name: $(tail -n 1 "$scratch/log")"
        return
    fi
    [ $code = 0 ] && [ -n "$line" ] || [ "${f:-0}" -gt 0 ] || f=$((${f:-0} + 1))
    passed=$((passed + ${p:-0}))
    failed=$((failed + ${f:-0}))
    if [ "${f:-0}" -gt 0 ]; then
        echo "FAILED   $name"
        tail -n 60 "$scratch/log" | sed 's/^/    /'
    else
        echo "ok       $name: $p"
    fi
}

for t in "$build"/test/test_*; do
    run "$(basename "$t")" "$t" "$scratch"
done
run text "$build/test/text_test" "$top"/test/text/*.txt "$top/test/text/uncovered.lst"
for t in "$build"/test/fuzz_*; do
    run "$(basename "$t")" "$t" "$top"/examples/*.pt2 "$top"/examples/*.npz "$top"/test/onnx/data/branch.onnx \
        "$top"/test/onnx/data/sparse.onnx "$top"/test/onnx/data/custom.onnx "$top"/test/onnx/data/lstm_script.onnx \
        "$top"/examples/custom_op.txt
done
run robust "$build/test/robust" "$top/examples/linear.pt2" "$top/examples/reshape.pt2" \
    "$top/test/onnx/data/branch.onnx" "$top/test/onnx/data/custom.onnx"
run oom "$build/test/oom" "$top/examples/rnn.pt2" "$top/test/onnx/data/branch.onnx"
run includes sh "$top/tools/check_includes"
run cli sh "$top/test/cli.sh" "$build/pt2onnx" "$scratch/cli"
run models sh "$top/test/model/run.sh" "$build/pt2onnx" "$scratch/models"
run size-modules sh "$top/test/sizes/run_slice.sh" "$build/pt2onnx" "$scratch/sizes"
run ops sh "$top/test/ops/run_slice.sh" "$build/pt2onnx" "$scratch/ops"
if command -v python3 > /dev/null; then
    run sizes python3 "$top/test/model/sizes.py" "$build/pt2onnx"
else
    run sizes sh -c 'echo no Python; exit 77'
fi
run sizes-live "$top/tools/with_torch" python "$top/test/model/sizes.py" "$build/pt2onnx" --live
run asked "$top/tools/with_torch" python "$top/test/model/asked.py" "$build/pt2onnx"
run checker "$top/tools/with_torch" python "$top/test/model/checker.py" "$build/pt2onnx"
run onnx sh "$top/test/onnx/run.sh" "$build/pt2onnx" "$scratch/onnx"
run onnx-checker "$top/tools/with_torch" python "$top/test/onnx/checker.py" "$build/pt2onnx"
run python sh "$top/test/python/run.sh" "$scratch/python"
run zoo sh "$top/zoo/run_slice.sh" "$build/pt2onnx" "$scratch/python/site" "$scratch/zoo"
run live "$top/tools/with_torch" python "$top/test/ops/suite.py" "$build/pt2onnx" --samples 1
run single "$top/tools/with_torch" python "$top/test/single/single.py" "$build/pt2onnx" --slice 16 --ways pt2
run guard-live "$top/tools/with_torch" python "$top/test/guard/live.py" "$build/pt2onnx"
echo
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
