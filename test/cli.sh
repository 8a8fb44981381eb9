#!/bin/sh
# The command as a user meets it: exit codes, messages, and what it leaves behind.
# usage: cli.sh PT2ONNX SCRATCH
pt2onnx=$1
dir=$2
top=$(cd "$(dirname "$0")/.." && pwd)
ex=$top/examples
passed=0 failed=0
rm -rf "$dir"
mkdir -p "$dir"

# expect CODE PATTERN ARGS...: exit code, and a line of output that matches
expect() {
    code=$1 pattern=$2
    shift 2
    "$pt2onnx" "$@" > "$dir/log" 2>&1
    got=$?
    if [ $got = "$code" ] && grep -qE -e "$pattern" "$dir/log"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "pt2onnx $*: exit code $got, expected $code and /$pattern/"
        cat "$dir/log"
    fi
}

check() {
    what=$1
    shift
    if "$@"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "failed: $what"
    fi
}

# a number that may follow a declared size: refused with both readings and the capture that would tell
expect 4 'a number was 5 in the capture: nodes or the number 5' "$top/test/model/data/messages.one.pt2" "$dir/no.onnx" \
    --input x:nodes,? --input edges:?,edges --input weight:edges
expect 4 'a capture at nodes=[0-9]*, edges=[0-9]* tells which: torch.export.save' "$top/test/model/data/messages.one.pt2" \
    "$dir/no.onnx" --input x:nodes,? --input edges:?,edges --input weight:edges
expect 4 'make_models.py:[0-9]*): total = torch.zeros' "$top/test/model/data/messages.one.pt2" "$dir/no.onnx" \
    --input x:nodes,? --input edges:?,edges --input weight:edges
check "no file after a refusal" test ! -e "$dir/no.onnx"

# operators of one's own: refused with the ways, as ONNX functions, as nodes of the user's domain
own=$top/test/model/data/custom_op
expect 3 'mylib::soft_threshold is not supported \(2 uses\)' "$own.pt2" "$dir/no.onnx"
expect 3 "give it a meaning: --custom-op 'mylib::pool_pairs=com.example:Name'" "$own.pt2" "$dir/no.onnx"
check "three lines for each" test "$("$pt2onnx" "$own.pt2" "$dir/no.onnx" --quiet 2>&1 | wc -l)" = 6
expect 0 'wrote' "$own.pt2" "$dir/own.onnx" --op-library "$ex/custom_op.txt" --verify --data "$own.npz"
expect 0 '\[ok\] s77=7 s27=31' verify "$dir/own.onnx" --data "$own.npz"
expect 0 'x: float32\[batch, length, 8\]' "$own.a.pt2" "$dir/own.onnx" --op-library "$ex/custom_op.txt" \
    --input x:batch,length,8
expect 0 '\[ok\] batch=7 length=31' verify "$dir/own.onnx" --data "$own.npz"
expect 0 'custom_op' "$own.pt2" "$dir/named.onnx" --op-library "$ex/custom_op.txt" --input-names custom_op
expect 0 'pool_pairs is com.example:Pool in the model, for which ONNX Runtime needs your kernels' "$own.pt2" \
    "$dir/kernels.onnx" --custom-op mylib::pool_pairs=com.example:Pool --custom-op 'mylib::soft_threshold=com.example:Soft'
expect 0 'the model was not checked: ONNX Runtime has no kernels' "$own.pt2" "$dir/kernels.onnx" --verify \
    --sizes 's77=1 s27=4' --custom-op mylib::pool_pairs=com.example:Pool --custom-op mylib::soft_threshold=com.example:Soft
expect 6 'com.example:Soft' verify "$dir/kernels.onnx" --sizes 's77=1 s27=4'
expect 6 'Failed to load library' verify "$dir/kernels.onnx" --sizes 's77=1 s27=4' --ort-library "$dir/none.so"
expect 4 'a capture at batch=[0-9]*, length=[0-9]* tells which' "$own.a.pt2" "$dir/no.onnx" --input x:batch,length,8 \
    --custom-op mylib::pool_pairs=com.example:Pool --custom-op mylib::soft_threshold=com.example:Soft
expect 1 'expected mylib::foo=com.example:Foo' "$own.pt2" "$dir/no.onnx" --custom-op mylib::pool_pairs
expect 1 'is converted as it is' "$own.pt2" "$dir/no.onnx" --custom-op aten::linear=com.example:Linear
printf '<domain: "mylib", opset_import: ["" : 18]>\npool_pairs (X) => (Y) {\n   Y = Relu (Z)\n}\n' > "$dir/wrong.txt"
expect 2 'wrong.txt: error: function text, line 3, column 14: .Z. is not defined before this' "$own.pt2" "$dir/no.onnx" \
    --op-library "$dir/wrong.txt"
expect 2 'none.txt' "$own.pt2" "$dir/no.onnx" --op-library "$dir/none.txt"
check "no file after any of these" test ! -e "$dir/no.onnx"

# fixed captures: what was seen is said
expect 0 'note: captured at x_0 [0-9]* to [0-9]*, .*: what the model does otherwise at other sizes is not known' \
    "$top/test/model/data/residual.a.pt2" "$top/test/model/data/residual.b.pt2" "$dir/seen.onnx"
expect 0 'sizes below 2 were not captured; give a capture at 1 with --check' "$top/test/model/data/residual.a.pt2" \
    "$top/test/model/data/residual.b.pt2" "$dir/seen.onnx"

# captures that are only held against the result: the same model's, and another's
expect 0 'wrote' "$top/test/model/data/residual.a.pt2" "$top/test/model/data/residual.b.pt2" "$dir/checked.onnx" \
    --check "$top/test/model/data/residual.one.pt2"
expect 4 'part ways' "$top/test/model/data/residual.a.pt2" "$top/test/model/data/residual.b.pt2" "$dir/no.onnx" \
    --check "$top/test/model/data/pyramid.a.pt2"

# a model that does otherwise at a size of 1: made without that check, which is said
expect 0 'warning: sizes of 1 are not claimed' "$top/test/model/data/lone.a.pt2" "$top/test/model/data/lone.b.pt2" \
    "$dir/lone.onnx" --check "$top/test/model/data/lone.c.pt2"
check "what a lone row does is not claimed" sh -c "'$pt2onnx' inspect '$dir/lone.onnx' | grep -q 'min.:2'"

check "said to those who asked for quiet, too" sh -c "'$pt2onnx' '$top/test/model/data/lone.a.pt2' \
    '$top/test/model/data/lone.b.pt2' '$dir/lone.onnx' --check '$top/test/model/data/lone.c.pt2' --quiet 2>&1 |
    grep -q 'warning: sizes of 1 are not claimed'"

# the same, where another size is twice as many: it follows the 1
expect 0 'warning: sizes of 1 are not claimed' "$top/test/model/data/lonepair.a.pt2" \
    "$top/test/model/data/lonepair.b.pt2" "$dir/pair.onnx" --check "$top/test/model/data/lonepair.c.pt2"
check "what a lone row does is not claimed where it is half of a size" sh -c "'$pt2onnx' inspect '$dir/pair.onnx' |
    grep -q '2 <= y_0//2'"

# a check that has a size of 1 and also one that no capture had: what it contradicts may be due to that
expect 4 'part ways' "$top/test/model/data/far.a.pt2" "$top/test/model/data/far.b.pt2" \
    "$top/test/model/data/far.c.pt2" "$dir/far.onnx" --check "$top/test/model/data/far.d.pt2"
check "no file that a check contradicts" test ! -e "$dir/far.onnx"

# a capture with dynamic sizes, held against one with a size of 1: claimed then
expect 0 'sizes below 2 were not captured' "$top/test/model/data/residual.pt2" "$dir/unclaimed.onnx"
expect 0 'wrote' "$top/test/model/data/residual.pt2" "$dir/claimed.onnx" --check "$top/test/model/data/residual.one.pt2"
check "a size of 1 is claimed after a check" sh -c "! '$pt2onnx' inspect '$dir/claimed.onnx' | grep -q 's77.:{.min.:2'"

# where to take captures
expect 0 '"captures": \[{"batch": [0-9]*, "seq": [0-9]*}' plan --input x:batch,seq,8 --json
expect 0 'capture1.pt2' plan --input x:batch,seq,8 --dim seq=3..64
expect 0 '"ones": \[{"batch": 1, "seq": 1}' plan --input x:batch,seq,8 --json
expect 0 '"ones": \[\]' plan --input x:batch,8 --dim batch=2..9 --json
expect 0 "OUT.onnx --input 'x:batch,seq,8' --dim 'seq=3..64'" plan --input x:batch,seq,8 --dim seq=3..64
check "no size wraps around" sh -c "! '$pt2onnx' plan --input x:n,8 --dim n=9223372036854775800.. | grep -q 'n.: -'"
expect 1 'no size has a name' plan --input x:4,8
expect 1 'is no name for a size' plan --input 'x:a-b,8'

# a branch in Python: said at conversion, and held against what is asked for
expect 0 'note: the model was captured for b % 2 == 0 only: the capture.s guard' "$top/test/model/data/guarded.pt2" "$dir/g.onnx" --input x:b,3
expect 0 'note: the model was captured for 4 <= b only' "$top/test/model/data/guarded.pt2" "$dir/g.onnx" --input x:b,3
expect 0 '^guard .* % 2. == 0' inspect "$top/test/model/data/guarded.pt2"
expect 4 'the model needs s[0-9]* % 2 = 0 .*say 1 = 0' "$top/test/model/data/guarded.pt2" "$dir/no.onnx" --input x:b,3 --dim b=7
expect 4 'the model needs 4 <= s[0-9]* .*say 4 <= 2' "$top/test/model/data/guarded.pt2" "$dir/no.onnx" --input x:b,3 --dim b=2
expect 0 'float32\[6, 3\]' "$top/test/model/data/guarded.pt2" "$dir/g.onnx" --input x:b,3 --dim b=6

# all inputs like a name
expect 0 'input: float32\[n, 10\]' "$ex/linear.pt2" "$dir/like.onnx" --input 'in*:n,10'
expect 0 'input: float32\[n, 10\]' "$ex/linear.pt2" "$dir/like.onnx" --dynamic-axes '{"*put": {"0": "n"}}'

# usage errors: 1
expect 1 'usage: pt2onnx MODEL'
expect 0 'usage: pt2onnx MODEL' --help
expect 0 '^pt2onnx [0-9]' --version
expect 1 'no such option: --nope' "$ex/linear.pt2" --nope
expect 1 'no value for: --input' "$ex/linear.pt2" --input
expect 1 'opset 99' "$ex/linear.pt2" "$dir/x.onnx" --opset 99
expect 1 'no input is called' "$ex/linear.pt2" "$dir/x.onnx" --input 'y:a,b'
expect 1 'has 2 axes' "$ex/linear.pt2" "$dir/x.onnx" --input 'input:a,b,c'
expect 1 'no axis is called b' "$ex/linear.pt2" "$dir/x.onnx" --input 'input:a-b,10'
expect 1 'is no name' "$ex/linear.pt2" "$dir/x.onnx" --input 'input:a b,10'
expect 1 'no input matches' "$ex/linear.pt2" "$dir/x.onnx" --input 'in*x:a,10'
expect 1 'no input or output matches' "$ex/linear.pt2" "$dir/x.onnx" --dynamic-axes '{"x*": [0]}'
expect 1 'a bad value for: --state' "$ex/linear.pt2" "$dir/x.onnx" --state keep
expect 1 'expected' "$ex/linear.pt2" "$dir/x.onnx" --dynamic-axes '{"input": 3}'
expect 1 'no axis 7' "$ex/linear.pt2" "$dir/x.onnx" --dynamic-axes '{"input": [7]}'
expect 1 'no size or range' "$ex/linear.pt2" "$dir/x.onnx" --dim 'b=x'
expect 1 '3 input names' "$ex/linear.pt2" "$dir/x.onnx" --input-names a,b,c
expect 1 'needs --data or --sizes' verify "$dir/x.onnx"
check 'no output after usage errors' [ ! -e "$dir/x.onnx" ]

# bad input files: 2, and no output
: > "$dir/empty"
head -c 3000 "$ex/linear.pt2" > "$dir/cut.pt2"
echo 'no archive' > "$dir/text.pt2"
expect 2 'empty' "$dir/empty" "$dir/x.onnx"
expect 2 'truncated' "$dir/cut.pt2" "$dir/x.onnx"
expect 2 'not a saved PyTorch program' "$dir/text.pt2" "$dir/x.onnx"
expect 2 'directory' "$dir" "$dir/x.onnx"
expect 2 'No such file' "$dir/nowhere.pt2" "$dir/x.onnx"
check 'no output from bad files' [ ! -e "$dir/x.onnx" ]

# what is there already survives a failure
echo keep > "$dir/kept.onnx"
expect 2 'truncated' "$dir/cut.pt2" "$dir/kept.onnx"
check 'an existing file survives' grep -q keep "$dir/kept.onnx"
check 'no leftovers' [ -z "$(find "$dir" -name '*.part*')" ]

# an axis that the model fixes: 4, with the operator and the line
expect 4 "axis 1 of 'input' \\(feat\\) can't be dynamic: aten::linear needs input features" \
    "$ex/linear.pt2" "$dir/x.onnx" --input 'input:batch,feat'
expect 4 'models?.py:|make_samples.py:' "$ex/linear.pt2" "$dir/x.onnx" --input 'input:batch,feat'
expect 4 'differed at capture' "$ex/rnn.pt2" "$dir/x.onnx" --input 'input:n,n,10'
check 'no output after a refusal' [ ! -e "$dir/x.onnx" ]

# output that cannot be written: 6
expect 6 'cannot write' "$ex/linear.pt2" "$dir/none/x.onnx"

# names, ranges, the same bytes twice, every opset
expect 0 'input: float32\[batch_size, sequence_length, 10\]' "$ex/rnn.pt2" "$dir/rnn.onnx" \
    --input 'input:[batch_size, sequence_length, ?]' --output-names result
expect 0 'output +result: float32\[batch_size, 5\]' inspect "$dir/rnn.onnx"
expect 0 'batch_size' inspect "$dir/rnn.onnx"
"$pt2onnx" "$ex/rnn.pt2" "$dir/again.onnx" --input 'input:batch_size,sequence_length,10' --output-names result --quiet
check 'the same bytes twice' cmp -s "$dir/rnn.onnx" "$dir/again.onnx"
check 'no private path' sh -c "! grep -aqE '/(home|usr|tmp|root|model)/' '$dir/rnn.onnx'"
expect 0 'in: float32\[4, 10\]' "$ex/linear.pt2" "$dir/pin.onnx" --input 'in:4,10' --input-names in
"$pt2onnx" "$ex/linear.pt2" "$dir/r.onnx" --dim batch=1..64 --input input:batch,10 --quiet
expect 0 '"batch":\{"min":2,"max":64' inspect "$dir/r.onnx"
expect 0 'input: float32\[8, 10\]' "$ex/linear.pt2" "$dir/p.onnx" --dim batch=8 --input input:batch,10
for opset in 17 18 19 20 21 22 23; do
    expect 0 "opset $opset" "$ex/rnn.pt2" "$dir/o$opset.onnx" --opset $opset \
        --input 'input:batch_size,sequence_length,10'
    expect 0 'sequence_length=31' verify "$dir/o$opset.onnx" --data "$ex/rnn.npz"
done

# verify and run
expect 0 '\[ok\] batch_size=2 sequence_length=31' verify "$dir/rnn.onnx" --data "$ex/rnn.npz"
expect 0 '\[runs\] batch_size=7 sequence_length=5' verify "$dir/rnn.onnx" --sizes 'batch_size=1,7 sequence_length=1,5'
expect 5 'FAIL' verify "$dir/rnn.onnx" --data "$ex/rnn.npz" --atol 0 --rtol 0
expect 1 'nope' verify "$dir/rnn.onnx" --sizes 'nope=3'
expect 2 '.' verify "$dir/rnn.onnx" --data "$dir/text.pt2"
expect 0 'result: float32\[3, 5\]' run "$dir/rnn.onnx" --set batch_size=3 --save "$dir/out.npz"
check 'outputs are saved' [ -s "$dir/out.npz" ]
saved=${PT2ONNX_ORT-}
export PT2ONNX_ORT="$dir/no-such-folder"
expect 6 "runtime" verify "$dir/rnn.onnx" --sizes batch_size=1
export PT2ONNX_ORT="$saved"

# external data
expect 0 'wrote' "$ex/rnn.pt2" "$dir/ext.onnx" --external-data always --input 'input:b,s,10'
check 'a data file' [ -s "$dir/ext.onnx.data" ]
expect 0 '\[ok\] b=2 s=31' verify "$dir/ext.onnx" --data "$ex/rnn.npz"
cp "$ex/rnn.pt2" "$dir/rnn.pt2"
expect 0 'wrote' "$dir/rnn.pt2" "$dir/link.onnx" --external-data=link --input 'input:b,s,10'
expect 0 '\[ok\] b=2 s=31' verify "$dir/link.onnx" --data "$ex/rnn.npz"

# a conversion that does not verify leaves nothing
expect 5 'FAIL' "$ex/rnn.pt2" "$dir/bad.onnx" --verify --data "$ex/rnn.npz" --input 'input:b,s,10' --atol 0 --rtol 0
check 'nothing unverified is left' [ -z "$(find "$dir" -name 'bad*')" ]
expect 0 '\[ok\]' "$ex/rnn.pt2" "$dir/good.onnx" --verify --data "$ex/rnn.npz" --input 'input:b,s,10'
check 'a verified model is there' [ -s "$dir/good.onnx" ]
echo mine > "$dir/good.onnx.check0.onnx"
expect 0 '\[ok\]' "$ex/rnn.pt2" "$dir/good.onnx" --verify --data "$ex/rnn.npz" --input 'input:b,s,10'
check 'a file in the way of the check survives' grep -q mine "$dir/good.onnx.check0.onnx"
cp "$ex/linear.pt2" "$dir/model"
expect 1 'overwrite' "$dir/model" "$dir/./model"
check 'the model survives under another spelling' cmp -s "$ex/linear.pt2" "$dir/model"
expect 6 'cannot write' "$ex/linear.pt2" "$dir/rep.onnx" --report "$dir/none/r.md"
check 'no model without its report' [ ! -e "$dir/rep.onnx" ]
expect 0 'aten::linear ' ops
expect 0 'torchvision::deform_conv2d  *19..23$' ops
expect 0 'aten::rand  *17..21$' ops
expect 0 'aten::bitwise_and.Tensor  *17..23  integers need opset 18$' ops

echo "$passed passed, $failed failed"
[ $failed = 0 ]
