"""The installed package where PyTorch is absent: paths in, paths and bytes out, the command."""
import importlib.util
import io
import os
import subprocess
import sys
import tempfile

import numpy as np

import pt2onnx

EXAMPLES = os.path.join(
    os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "examples")


def main():
    assert importlib.util.find_spec("torch") is None
    data = np.load(os.path.join(EXAMPLES, "rnn.npz"))
    with tempfile.TemporaryDirectory() as folder:
        path, buffer = os.path.join(folder, "rnn.onnx"), io.BytesIO()
        axes = {"input": {0: "batch_size", 1: "sequence_length"}}
        r = pt2onnx.export(os.path.join(EXAMPLES, "rnn.pt2"), f=path, dynamic_axes=axes)
        pt2onnx.export(os.path.join(EXAMPLES, "rnn.pt2"), f=buffer, dynamic_axes=axes,
                       verbose=False)
        with open(path, "rb") as f:
            assert f.read() == buffer.getvalue()
        assert r.inputs[0].dims == ("batch_size", "sequence_length", 10), r.inputs
        for k in range(4):
            got = r(data["s%d.in.0" % k])
            np.testing.assert_allclose(got, data["s%d.out.0" % k], rtol=1e-4, atol=1e-5)
        try:
            pt2onnx.export(os.path.join(EXAMPLES, "linear.pt2"), f=os.path.join(folder, "no.onnx"),
                           dynamic_axes={"input": {1: "features"}})
            raise AssertionError("a fixed axis was freed")
        except pt2onnx.DynamicError as e:
            assert e.diagnostics and e.diagnostics[0].line, e.diagnostics
        assert not os.path.exists(os.path.join(folder, "no.onnx"))
        changed = pt2onnx.export(path, f=os.path.join(folder, "changed.onnx"),
                                 dynamic_axes={"input": {0: "n", 1: "t"}})
        assert changed.inputs[0].dims == ("n", "t", 10), changed.inputs
        np.testing.assert_array_equal(changed(data["s2.in.0"]), r(data["s2.in.0"]))
        for command in ([sys.executable, "-m", "pt2onnx"],
                        [os.path.join(os.path.dirname(sys.executable), "pt2onnx")]):
            p = subprocess.run(
                command + ["verify", path, "--data", os.path.join(EXAMPLES, "rnn.npz")],
                capture_output=True, text=True)
            assert p.returncode == 0 and p.stdout.count("[ok]") == 4, (p.stdout, p.stderr)


main()
