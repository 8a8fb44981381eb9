"""pt2onnx.export against PyTorch.  usage: test_export.py [NAME...]; needs torch, onnxruntime and
the installed package."""
import contextlib
import inspect
import io
import json
import os
import runpy
import struct
import subprocess
import sys
import tempfile
import unittest
import warnings

import numpy as np
import torch
from torch import nn
from torch.utils import _pytree as pytree

import pt2onnx

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "test", "model"))
import make_models  # noqa: E402

make_models.define_vision()

torch.set_num_threads(1)
TOLERANCE = {"bf16": 6e-2, "autocast": 6e-2}


def tensors_of(tree):
    return [x for x in pytree.tree_leaves(tree) if isinstance(x, torch.Tensor)]


def as_numpy(x):
    x = x.detach()
    x = torch.view_as_real(x) if x.is_complex() else x
    return (x.float() if x.dtype == torch.bfloat16 else x).numpy()


class Exports(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = os.path.join(self.folder.name, "m.onnx")
        torch.manual_seed(0)

    def export(self, model, args=(), f=None, **kw):
        return pt2onnx.export(model, args, f, verbose=False, **kw)

    def same(self, result, model, args, kwargs=None, tolerance=1e-4):
        """The model in ONNX Runtime gives what PyTorch gives on these arguments."""
        was = model.training
        with torch.no_grad():
            want = model.eval()(
                *pytree.tree_map(lambda x: x.clone() if isinstance(x, torch.Tensor) else x, args),
                **(kwargs or {}))
        model.train(was)
        got = result(*tensors_of((args, kwargs or {})))
        got = got if isinstance(got, tuple) else (got,)
        want = [as_numpy(x) for x in tensors_of(want)]
        self.assertEqual(len(got), len(want))
        for x, y in zip(got, want):
            self.assertEqual(x.shape, y.shape)
            np.testing.assert_allclose(x.astype("f8"), y.astype("f8"), rtol=tolerance,
                                       atol=tolerance)


class Seed(Exports):
    def test_examples(self):
        with contextlib.redirect_stdout(io.StringIO()) as said:
            old, sys.argv = sys.argv, ["export.py", self.folder.name]
            try:
                space = runpy.run_path(os.path.join(TOP, "examples", "export.py"))
            finally:
                sys.argv = old
        self.assertEqual(said.getvalue().count("[ok] at "), 3)
        import onnxruntime
        for name, shape in (("Linear", (10,)), ("RNN", (None, 10)), ("Reshape", (4, 5))):
            session = onnxruntime.InferenceSession(
                os.path.join(self.folder.name, "dynamic_%s.onnx" % name.lower()))
            dims = session.get_inputs()[0].shape
            self.assertEqual([session.get_inputs()[0].name, session.get_outputs()[0].name],
                             ["input", "output"])
            self.assertEqual(dims[:2], ["batch_size", "sequence_length"] if name == "RNN"
                             else ["batch_size", shape[0]])
            self.assertEqual(session.get_outputs()[0].shape[0], "batch_size")
            # The example keeps its last module only: numbers of the others are compared in
            # test_seed_numbers and by export.
            for b, s in ((1, 1), (7, 13), (257, 101)):
                x = np.random.rand(b, *[s if n is None else n for n in shape]).astype("f4")
                y = session.run(None, {"input": x})[0]
                self.assertEqual(y.shape, (b, 20 if name == "Reshape" else 5))
                if name == "Reshape":
                    np.testing.assert_array_equal(y, x.reshape(b, 20))
        self.same(self.export(space["model"], space["dummy_input"], dynamic_axes={"x": [0]}),
                  space["model"], (torch.randn(31, 4, 5),))

    def test_seed_numbers(self):
        class Rnn(nn.Module):
            def __init__(self):
                super().__init__()
                self.rnn, self.fc = nn.RNN(10, 20, batch_first=True), nn.Linear(20, 5)

            def forward(self, x):
                return self.fc(self.rnn(x)[0][:, -1])

        m = Rnn()
        r = self.export(m, torch.randn(3, 5, 10), self.path,
                        dynamic_axes={"x": {0: "batch", 1: "length"}})
        for b, s in ((1, 1), (7, 13), (257, 101), (2, 500)):
            self.same(r, m, (torch.randn(b, s, 10),))


class Recurrent(Exports):
    def check(self, cls, **options):
        net = cls(4, 3, **options)
        first = options.get("batch_first", False)
        layers = options.get("num_layers", 1) * (2 if options.get("bidirectional") else 1)

        def make(b, t, state):
            x = torch.randn(b, t, 4) if first else torch.randn(t, b, 4)
            h = torch.randn(layers, b, 3)
            return (x,) if not state else (
                x, (h, torch.randn(layers, b, 3)) if cls is nn.LSTM else h)

        for state in (False, True):
            args = make(2, 5, state)
            names = ["x", "h", "c"][:len(tensors_of(args))]
            axes = {"x": {0: "batch", 1: "time"} if first else {0: "time", 1: "batch"}}
            axes.update({n: {1: "batch"} for n in names[1:]})
            r = self.export(net, args, input_names=names, dynamic_axes=axes, verify=False)
            for b, t in ((1, 1), (3, 7), (5, 2)):
                self.same(r, net, make(b, t, state))

    def test_rnn(self):
        self.check(nn.RNN, batch_first=True)
        self.check(nn.RNN, nonlinearity="relu", num_layers=2)

    def test_lstm(self):
        self.check(nn.LSTM, batch_first=True)
        self.check(nn.LSTM, num_layers=2, bidirectional=True)

    def test_gru(self):
        self.check(nn.GRU, batch_first=True, bidirectional=True)
        self.check(nn.GRU, num_layers=2, bias=False)


class Attention(Exports):
    def test_multihead(self):
        m = nn.MultiheadAttention(12, 3, batch_first=True)
        make = lambda b, s, t: (torch.randn(b, s, 12), torch.randn(b, t, 12), torch.randn(b, t, 12))
        r = self.export(m, make(2, 5, 3), input_names=["q", "k", "v"], dynamic_axes={
            "q": {0: "b", 1: "s"}, "k": {0: "b", 1: "t"}, "v": {0: "b", 1: "t"}})
        for size in ((1, 1, 1), (3, 7, 2), (2, 4, 4)):
            self.same(r, m, make(*size))

    def test_encoder_and_decoder(self):
        enc = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2)
        r = self.export(enc, torch.randn(1, 6, 8), dynamic_axes={"src": {0: "b", 1: "s"}})
        for size in ((1, 1), (3, 7), (6, 6)):
            self.same(r, enc, (torch.randn(*size, 8),))
        dec = nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 16, batch_first=True), 2)
        make = lambda b, s, t: (torch.randn(b, s, 8), torch.randn(b, t, 8))
        r = self.export(dec, make(2, 6, 5),
                        dynamic_axes={"tgt": {0: "b", 1: "s"}, "memory": {0: "b", 1: "t"}})
        for size in ((1, 1, 1), (3, 7, 4)):
            self.same(r, dec, make(*size))


class Arguments(Exports):
    def test_nested(self):
        class M(nn.Module):
            def forward(self, x, pair, named, *, scale=1.0, flag=False, extra=None):
                y = x * named["w"] + pair[0] - pair[1][0]
                y = y * scale if flag else y
                return {"sum": y, "parts": [y.sum(0), None if extra is None else extra + 1]}

        m = M()
        make = lambda n: ((torch.randn(n, 3), (torch.randn(n, 3), [torch.randn(n, 3), None]),
                           {"w": torch.randn(n, 3)}),
                          {"scale": 2.5, "flag": True, "extra": torch.randn(n)})
        args, kwargs = make(4)
        axes = {"x": {0: "n"}, "pair_0": {0: "n"}, "pair_1_0": {0: "n"}, "named_w": {0: "n"},
                "extra": {0: "n"}}
        shapes = {"x": {0: "n"}, "pair": ({0: "n"}, [{0: "n"}, None]), "named": {"w": {0: "n"}},
                  "extra": {0: "n"}}
        for form in ({"dynamic_axes": axes}, {"dynamic_shapes": shapes}, {"dynamic_shapes": axes}):
            r = self.export(m, args, kwargs=kwargs, **form)
            self.assertEqual([p.name for p in r.inputs], list(axes))
            for n in (1, 2, 7):
                self.same(r, m, *make(n))

    def test_keywords_at_the_end(self):
        class M(nn.Module):
            def forward(self, x, y=None, z=None):
                return x + (0 if y is None else y) - (0 if z is None else z)

        m = M()
        r = self.export(m, (torch.randn(3), {"z": torch.randn(3)}),
                        dynamic_axes={"x": [0], "z": [0]})
        self.same(r, m, (torch.randn(5),), {"z": torch.randn(5)})

    def test_numbers_are_part_of_the_model(self):
        class M(nn.Module):
            def forward(self, x, k: int, f: float, b: bool):
                return (x[:, :k] * f) if b else x

        m = M()
        r = self.export(m, (torch.randn(2, 9), 4, 0.5, True), dynamic_axes={"x": {0: "n"}})
        self.assertEqual(len(r.inputs), 1)
        got = r(torch.ones(3, 9))
        np.testing.assert_array_equal(got, np.full((3, 4), 0.5, "f4"))

    def test_ints_as_inputs(self):
        class M(nn.Module):
            def forward(self, x, k: int, factor):
                return x[:, :k] * factor, x.new_zeros(k, 2)

        m = M()
        r = self.export(m, (torch.randn(2, 9), 4, torch.tensor(0.5)), dynamic_shapes={
            "x": {0: "n", 1: "m"}, "k": torch.export.Dim.DYNAMIC, "factor": None})
        self.assertEqual([p.name for p in r.inputs], ["x", "k", "factor"])
        self.assertEqual(r.outputs[1].dims, ("k", 2))
        for n, k in ((1, 1), (3, 5), (2, 0), (2, 9)):
            x = torch.randn(n, 9)
            a, b = r(x, np.array(k), torch.tensor(2.0))
            np.testing.assert_array_equal(a, (x[:, :k] * 2).numpy())
            self.assertEqual(b.shape, (k, 2))
        with self.assertRaisesRegex(pt2onnx.UsageError, "float"):
            self.export(m, (torch.randn(2, 9), 4, 0.5),
                        dynamic_shapes={"factor": torch.export.Dim.DYNAMIC})

    def test_dims(self):
        class M(nn.Module):
            def forward(self, x, y):
                return torch.cat([x, y], 1), x.repeat(1, 2)

        m, D = M(), torch.export.Dim
        args = (torch.randn(2, 3), torch.randn(2, 4))
        batch = D("batch", min=1, max=64)
        for spec in (({0: batch, 1: "m"}, {0: batch, 1: D.AUTO}),
                     {"x": [batch, "m"], "y": {0: batch, 1: D.DYNAMIC}}):
            r = self.export(m, args, dynamic_shapes=spec, output_names=["o", "p"],
                            dynamic_axes={"o": {1: "total"}, "p": {1: "double"}})
            self.assertEqual([str(p) for p in r.inputs],
                             ["x: float32[batch, m]", "y: float32[batch, y_1]"])
            self.assertEqual([p.dims[1] for p in r.outputs], ["total", "double"])
            self.assertEqual(r.dims["batch"]["max"], 64)
            self.same(r, m, (torch.randn(5, 1), torch.randn(5, 6)))
        r = self.export(m, args, dynamic_shapes=({0: D.STATIC, 1: "m"}, {1: "n"}))
        self.assertEqual(r.inputs[0].dims, (2, "m"))

    def test_mistakes(self):
        m, x = nn.Linear(3, 2), torch.randn(4, 3)
        with self.assertRaisesRegex(pt2onnx.UsageError, "no axis 5"):
            self.export(m, x, dynamic_axes={"input": {5: "n"}})
        with self.assertRaisesRegex(pt2onnx.UsageError, "neither an input"):
            self.export(m, x, output_names=["y"], dynamic_axes={"inputt": {0: "n"}})
        with self.assertRaisesRegex(pt2onnx.UsageError, "2 input names for 1"):
            self.export(m, x, input_names=["a", "b"])
        with self.assertRaises(TypeError):
            self.export(m, x, dynamic_axis={"input": {0: "n"}})
        with self.assertWarnsRegex(UserWarning, "do_constant_folding, export_params") as w:
            self.export(m, x, export_params=True, do_constant_folding=True)
        self.assertEqual(len(w.warnings), 1)
        with self.assertRaisesRegex(pt2onnx.UsageError, "opset 99"):
            self.export(m, x, opset_version=99)
        with self.assertRaisesRegex(pt2onnx.UnsupportedError, "ScriptModule"):
            self.export(torch.jit.script(m), x)


class Untouched(Exports):
    def test_everything_is_left_as_it_was(self):
        class M(nn.Module):
            def __init__(self):
                super().__init__()
                self.drop, self.bn = nn.Dropout(0.5), nn.BatchNorm1d(3)
                self.register_buffer("count", torch.zeros(()))
                self.register_buffer("seen", torch.zeros(3))
                self.last = None

            def forward(self, x):
                self.count += 1
                self.seen = self.seen + x[0]
                self.last = x
                x += 1
                return self.bn(self.drop(x))

        m = M()
        m.bn.eval()
        x = torch.randn(2, 3)
        kept, modes, state = x.clone(), [k.training for k in m.modules()], torch.get_rng_state()
        before = {k: v.clone() for k, v in m.state_dict().items()}
        r = self.export(m, x, dynamic_axes={"x": {0: "n"}})
        self.assertTrue(torch.equal(x, kept))
        self.assertEqual([k.training for k in m.modules()], modes)
        self.assertTrue(torch.equal(torch.get_rng_state(), state))
        self.assertIsNone(m.last)
        self.assertTrue(all(torch.equal(v, before[k]) for k, v in m.state_dict().items()))
        self.assertGreater(len(r.check), 4)


class Honest(Exports):
    def test_a_difference_raises_and_leaves_no_file(self):
        class Random(nn.Module):
            def forward(self, x):
                return x + torch.rand_like(x)

        with open(self.path, "w") as f:
            f.write("mine")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with self.assertRaisesRegex(pt2onnx.VerificationError, "FAILED"):
                self.export(Random(), torch.randn(4), self.path, dynamic_axes={"x": [0]})
            self.assertEqual(open(self.path).read(), "mine")
            self.assertEqual(os.listdir(self.folder.name), ["m.onnx"])
            self.export(Random(), torch.randn(4), self.path, dynamic_axes={"x": [0]}, verify=False)

    def test_what_the_model_fixes(self):
        with self.assertRaisesRegex(pt2onnx.DynamicError, "does not run when it is other than 3"):
            self.export(nn.Linear(3, 2), torch.randn(4, 3), self.path,
                        dynamic_axes={"input": {1: "features"}})

        class Table(nn.Module):
            def __init__(self):
                super().__init__()
                self.table = nn.Parameter(torch.randn(6, 3))

            def forward(self, x):
                return x + self.table

        with self.assertRaises(pt2onnx.DynamicError):
            self.export(Table(), torch.randn(2, 6, 3), self.path, dynamic_axes={"x": {1: "length"}})
        self.assertFalse(os.path.exists(self.path))

    def test_an_example_that_does_not_run(self):
        with self.assertRaisesRegex(pt2onnx.UsageError, "does not run on its example"):
            self.export(nn.Linear(3, 2), torch.randn(4, 5), self.path,
                        dynamic_axes={"input": {0: "n"}})

    def test_a_branch_on_size(self):
        class M(nn.Module):
            def forward(self, x):
                return x.sum(1) if x.shape[0] > 6 else x.cumsum(1)

        for verify in (True, False):
            with self.assertRaises(pt2onnx.Pt2OnnxError):
                self.export(M(), torch.randn(4, 3), self.path, dynamic_axes={"x": {0: "n"}},
                            verify=verify)
            self.assertFalse(os.path.exists(self.path))
        r = self.export(M(), torch.randn(4, 3), self.path,
                        dynamic_shapes={"x": {0: torch.export.Dim("n", max=6)}})
        self.same(r, M(), (torch.randn(6, 3),))

    def test_a_table_that_ends(self):
        class M(nn.Module):
            def __init__(self):
                super().__init__()
                self.positions = nn.Parameter(torch.randn(9, 3))

            def forward(self, x):
                return x + self.positions[:x.shape[1]]

        m = M()
        with self.assertWarnsRegex(UserWarning, "length is at most 9"):
            r = self.export(m, torch.randn(2, 5, 3), dynamic_axes={"x": {0: "n", 1: "length"}})
        self.same(r, m, (torch.randn(4, 9, 3),))

    def test_unsupported_operators_are_all_named(self):
        class M(nn.Module):
            def forward(self, x):
                return torch.linalg.eigvals(x), torch.poisson(x.abs())

        with self.assertRaises(pt2onnx.UnsupportedError) as e:
            self.export(M(), torch.eye(3), self.path)
        said = [d.message for d in e.exception.diagnostics]
        self.assertTrue(any("eig" in s for s in said) and any("poisson" in s for s in said), said)
        self.assertTrue(all(d.file and d.line for d in e.exception.diagnostics),
                        e.exception.diagnostics)

    def test_sizes_that_hang_together(self):
        class M(nn.Module):
            def forward(self, x, mask):
                return torch.nn.functional.avg_pool2d(x.view(x.shape[0], -1, 8), 8) * mask.sum()

        m = M()
        r = self.export(m, (torch.randn(2, 16, 8), torch.ones(3)), dynamic_axes={
            "x": {0: "n", 1: "rows"}, "mask": {0: "k"}})
        self.same(r, m, (torch.randn(3, 40, 8), torch.ones(1)))


class Files(Exports):
    def test_where_it_goes(self):
        m, x = nn.Linear(3, 2), torch.randn(4, 3)
        axes = {"dynamic_axes": {"input": {0: "n"}}}
        buffer = io.BytesIO()
        self.export(m, x, buffer, **axes)
        r = self.export(m, x, **axes)
        r.save(self.path)
        with open(self.path, "rb") as f:
            self.assertEqual(f.read(), buffer.getvalue())
        self.same(r, m, (torch.randn(9, 3),))
        self.assertIn("float32[n, 3]", repr(r))
        data, large = os.path.join(self.folder.name, "d.onnx"), nn.Linear(64, 64)
        r = self.export(large, torch.randn(4, 64), data, external_data=True, **axes)
        self.assertEqual(sorted(os.listdir(self.folder.name)), ["d.onnx", "d.onnx.data", "m.onnx"])
        self.same(r, large, (torch.randn(9, 64),))
        report = os.path.join(self.folder.name, "r.md")
        self.export(m, x, opset_version=17, report=report, **axes)
        self.assertIn("# Sizes", open(report).read())

    def test_strided_and_tied_weights(self):
        class M(nn.Module):
            def __init__(self):
                super().__init__()
                self.a = nn.Parameter(torch.randn(6, 4).t())
                self.b = nn.Parameter(self.a.detach()[1:3])
                self.c = self.a

            def forward(self, x):
                return x @ self.a @ self.c.t() @ self.a @ self.b.t()

        m = M()
        r = self.export(m, torch.randn(2, 4), dynamic_axes={"x": [0]})
        self.same(r, m, (torch.randn(5, 4),))

    def test_captured_programs(self):
        m = nn.Linear(3, 2).eval()
        paths = []
        for n in (2, 5):
            ep = torch.export.export(m, (torch.randn(n, 3),))
            paths.append(os.path.join(self.folder.name, "%d.pt2" % n))
            torch.export.save(ep, paths[-1])
        r = self.export(ep, dynamic_shapes={"input": {0: torch.export.Dim("n", max=9)}})
        self.assertEqual(r.dims["n"]["max"], 9)
        self.assertTrue(len(r.check) == 1 and r.check[0].ok)
        self.same(r, m, (torch.randn(7, 3),))
        self.same(self.export(paths[0], f=self.path, dynamic_axes={"input": {0: "n"}}), m,
                  (torch.randn(7, 3),))
        r = self.export(paths)
        self.assertEqual(len(r.check), 2)
        self.same(r, m, (torch.randn(7, 3),))
        with self.assertRaises(pt2onnx.InputError):
            self.export(__file__)

    def test_weights_from_files(self):
        real = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
        with torch.device("meta"):
            empty = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
        shards = []
        for k, names in enumerate((["0.weight", "0.bias"], ["2.weight", "2.bias"])):
            header, data = {"__metadata__": {"format": "pt"}}, b""
            for n in names:
                raw = real.state_dict()[n].numpy().tobytes()
                header[n] = {"dtype": "F32", "shape": list(real.state_dict()[n].shape),
                             "data_offsets": [len(data), len(data) + len(raw)]}
                data += raw
            text = json.dumps(header).encode()
            shards.append(os.path.join(self.folder.name, "s%d.safetensors" % k))
            with open(shards[-1], "wb") as f:
                f.write(struct.pack("<Q", len(text)) + text + data)
        index = os.path.join(self.folder.name, "model.safetensors.index.json")
        with open(index, "w") as f:
            json.dump({"weight_map": {
                n: os.path.basename(s)
                for s, ns in zip(shards, (["0.weight", "0.bias"], ["2.weight", "2.bias"]))
                for n in ns}}, f)
        for weights in (shards, index, real.state_dict(),
                        {k: v.numpy() for k, v in real.state_dict().items()}):
            with self.assertWarnsRegex(UserWarning, "not compared"):
                r = self.export(empty, torch.randn(2, 3), dynamic_axes={"input": {0: "n"}},
                                weights=weights)
            self.same(r, real, (torch.randn(5, 3),))
        with self.assertRaisesRegex(pt2onnx.UsageError, "has no values"):
            self.export(empty, torch.randn(2, 3), weights=shards[:1])

    def test_the_command(self):
        model, data = (os.path.join(TOP, "examples", "linear." + x) for x in ("pt2", "npz"))
        p = subprocess.run(
            [sys.executable, "-m", "pt2onnx", model, self.path, "--verify", "--data", data],
            capture_output=True, text=True)
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertTrue(os.path.exists(self.path))


class Programs(Exports):
    def test_in_memory_is_as_saved(self):
        """The program that is handed over in memory converts to the very bytes that its file
        converts to."""
        for name in ("branches", "loops", "decoder_cache", "writes", "messages", "spectrum",
                     "shuffle", "unused_input"):
            cls, make, sizes, axes = make_models.MODELS[name][:4]
            shapes = [{a: torch.export.Dim.AUTO for a in spec} if spec else None for spec in axes]
            args = make(*sizes[0])
            if len(tensors_of(args)) != len(args):
                shapes = None
            with torch.no_grad():
                ep = torch.export.export(
                    cls().eval(), args, dynamic_shapes=tuple(shapes) if shapes else None,
                    strict=False)
            path, one, two = os.path.join(self.folder.name, "m.pt2"), io.BytesIO(), io.BytesIO()
            torch.export.save(ep, path)
            self.export(ep, f=one, verify=False)
            self.export(path, f=two, verify=False)
            self.assertTrue(one.getvalue() == two.getvalue(), name)


class PaddedDecoder(nn.Module):
    """Masks as decoders do: a function of (batch, head, query, key) under vmap, where a value picks
    from a tensor of the model's.  Such a capture holds a function, which no file can."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(11, 8)
        self.out = nn.Linear(8, 11)

    def forward(self, ids, attention_mask):
        from torch._dynamo._trace_wrapped_higher_order_op import TransformGetItemToIndex
        batch, length = ids.shape
        known = attention_mask.to(torch.bool)
        rows, places = torch.arange(batch), torch.arange(length)
        with TransformGetItemToIndex():
            seen = make_models.over_pairs(lambda b, h, q, k: (k <= q) & known[b, k], 4)(
                rows, torch.arange(1), places, places)
        x = self.embed(ids)[:, None]
        y = nn.functional.scaled_dot_product_attention(x, x, x, attn_mask=seen)
        return self.out(x + y)[:, 0]


class Apart(Exports):
    """What cannot be handed over or has no equivalent, taken apart by PyTorch."""

    def test_mask_of_decoders(self):
        m = PaddedDecoder()
        make = lambda b, s: (torch.randint(0, 11, (b, s)), torch.ones(b, s, dtype=torch.int64))
        axes = {n: {0: "batch", 1: "seq"} for n in ("ids", "attention_mask")}
        r = self.export(m, make(2, 6), dynamic_axes=axes)
        self.assertEqual(r.outputs[0].dims[:2], ("batch", "seq"))
        for at in ((1, 1), (3, 17)):
            ids, mask = make(*at)
            mask[:, : at[1] // 3] = 0
            mask[:, 0] = 1
            self.same(r, m, (ids, mask))

    def test_axis_of_its_own(self):
        class Columns(nn.Module):
            def forward(self, x):
                return torch.vmap(lambda c: c.softmax(0) - c[0], in_dims=1, out_dims=-1)(x)

        r = self.export(Columns(), (torch.randn(3, 5),),
                        dynamic_axes={"x": {0: "rows", 1: "columns"}})
        self.same(r, Columns(), (torch.randn(7, 2),))

    def test_no_batching_rule(self):
        class Exponentials(nn.Module):
            def forward(self, x):
                return torch.vmap(torch.matrix_exp)(x)

        r = self.export(Exponentials(), (torch.randn(2, 3, 3),), dynamic_axes={"x": {0: "batch"}})
        self.same(r, Exponentials(), (torch.randn(5, 3, 3),))

    def test_a_capture_that_fails_leaves_no_vmap_open(self):
        class Derivative(nn.Module):
            def forward(self, x):
                return torch.vmap(torch.func.jacfwd(lambda r: (r ** 2).sum(0)))(x)

        with self.assertRaises(pt2onnx.Pt2OnnxError):
            self.export(Derivative(), (torch.randn(2, 3, 4),), dynamic_axes={"x": {0: "batch"}})
        self.assertEqual(torch._C._functorch.get_dynamic_layer_stack_depth(), 0)
        torch.randn(2)

    def test_operator_without_equivalent(self):
        class Nuclear(nn.Module):
            def forward(self, x):
                return torch.ops.aten.nuclear_norm.dim(x, [1, 2])

        r = self.export(Nuclear(), (torch.randn(2, 3, 4),), dynamic_axes={"x": {0: "batch"}})
        self.same(r, Nuclear(), (torch.randn(5, 3, 4),), tolerance=1e-3)


class Halved(torch.Tensor):
    """A weight that is an int8 tensor and a scale."""

    @staticmethod
    def __new__(cls, q, scale):
        return torch.Tensor._make_wrapper_subclass(cls, q.shape, dtype=scale.dtype)

    def __init__(self, q, scale):
        self.q, self.scale = q, scale

    def __tensor_flatten__(self):
        return ["q", "scale"], None

    @classmethod
    def __tensor_unflatten__(cls, inner, meta, size, stride):
        return cls(inner["q"], inner["scale"])

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func is nn.functional.linear:
            x, w, b = args
            return func(x, w.q.to(w.scale.dtype) * w.scale, b)
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return cls(args[0].q, args[0].scale)            # detach


class Quantised(Exports):
    AXES = {"x": {0: "batch", 1: "time"}}

    def setUp(self):
        super().setUp()
        self.x = torch.randn(2, 5, 16)

    def kinds(self, result):
        import onnx
        return {i.name: i.data_type for i in onnx.load(result.path).graph.initializer}

    def test_captured_module_that_refuses_eval(self):
        free = torch.export.Dim.DYNAMIC
        captured = torch.export.export(make_models.Quantised(), (self.x,),
                                       dynamic_shapes=({0: free, 1: free},)).module()
        with self.assertRaises(NotImplementedError):
            captured.eval()
        inside = nn.Sequential(nn.Dropout(), captured)
        result = self.export(inside, (self.x,), self.path, input_names=["x"],
                             dynamic_axes=self.AXES)
        self.assertTrue(inside[0].training)
        self.assertTrue(all(c.ok for c in result.check))
        self.assertEqual(sorted(t for n, t in self.kinds(result).items() if n[0] in "ab01"
                                and t == 3), [3, 3])

    def test_fake_quantisation(self):
        class Fake(nn.Module):
            def forward(self, x):
                zeros = torch.zeros(16, dtype=torch.int32)
                x = torch.fake_quantize_per_channel_affine(x, torch.full((16,), 0.03), zeros, 2,
                                                           -128, 127)
                return torch.fake_quantize_per_tensor_affine(x * 1.5, 0.07, 3, 0, 255)

        result = self.export(Fake(), (self.x,), self.path, input_names=["x"],
                             dynamic_axes=self.AXES)
        self.assertTrue(all(c.ok for c in result.check))

    def test_weight_of_several_tensors(self):
        model = nn.Linear(16, 4)
        model.weight = nn.Parameter(Halved(torch.randint(-9, 9, (4, 16), dtype=torch.int8),
                                           torch.rand(4, 1)), requires_grad=False)
        result = self.export(model, (self.x,), self.path, input_names=["x"],
                             dynamic_axes=self.AXES)
        self.assertEqual(self.kinds(result)["weight.q"], 3)
        self.assertTrue(all(c.ok for c in result.check))

    def test_a_step_off_is_no_difference_but_two_are(self):
        from pt2onnx._quanta import jumps
        from pt2onnx._verify import _jumps_only, as_arrays
        q = torch.ops.quantized_decomposed
        x = torch.arange(4000.) * 0.01
        run = lambda: q.quantize_per_tensor(x, 0.02, 0, 0, 32767, torch.int16).float() * 0.02
        want = as_arrays(run())
        allowed, = jumps(run, want, "")
        off = want[0][0].copy()
        off[1001] += 0.02                       # halfway between two steps
        self.assertTrue(_jumps_only(off, want[0][0], allowed))
        off[1001] += 0.02
        self.assertFalse(_jumps_only(off, want[0][0], allowed))
        self.assertFalse(_jumps_only(want[0][0] + 0.02, want[0][0], allowed))

    def test_a_mask_is_no_reason_for_jumps(self):
        from pt2onnx._quanta import jumps
        from pt2onnx._verify import as_arrays
        x = torch.linspace(-2, 2, 400).masked_fill(torch.arange(400) % 2 == 0, -1e9) + 0.001
        run = lambda: torch.fake_quantize_per_tensor_affine(x, 0.02, 0, -128, 127)
        allowed, = jumps(run, as_arrays(run()), "")
        self.assertLess(allowed.far, 0.021)
        self.assertLess(allowed.many, 20)

    def test_rounding_in_place_takes_place(self):
        from pt2onnx._quanta import jumps
        from pt2onnx._verify import as_arrays

        def run():
            x = torch.linspace(-2, 2, 41) + 0.003
            x.mul_(10).round_()
            return x

        allowed, = jumps(run, as_arrays(run()), "")
        self.assertEqual((allowed.far, allowed.many), (0, 0))

    def test_names_do_not_make_a_model_quantised(self):
        from pt2onnx._quanta import quantises

        class Named(nn.Module):
            def __init__(self):
                super().__init__()
                self.quantizer = nn.Linear(4, 4)

            def forward(self, quantize):
                return torch.round(self.quantizer(quantize))

        x = torch.randn(2, 4)
        self.assertFalse(quantises([torch.export.export(Named(), (x,))]))

        class Fake(nn.Module):
            def forward(self, x):
                return torch.fake_quantize_per_tensor_affine(x, 0.02, 0, -128, 127)

        self.assertTrue(quantises([torch.export.export(Fake(), (x,))]))


class Models(Exports):
    """One example each; then one with a batch of 1.  Sizes and numbers are of the tests' own
    choosing."""

    def check(self, name, size):
        cls, make, sizes, axes = make_models.MODELS[name][:4]
        torch.manual_seed(0)
        m = cls().eval()
        make_models.randomize(m)
        args = make(*size)
        names = ["i%d" % i for i in range(len(tensors_of(args)))]
        r = self.export(m, args, input_names=names,
                        dynamic_axes={n: a for n, a in zip(names, axes) if a})
        self.assertTrue(r.check and all(c.ok for c in r.check))
        for port, spec in zip(r.inputs, axes):
            self.assertTrue(all(isinstance(port.dims[k], str) for k in (spec or {})), port)
        for at in sizes:
            self.same(r, m, make(*at), tolerance=TOLERANCE.get(name, 1e-3))

    @staticmethod
    def batch_of_one(name):
        make, size = make_models.MODELS[name][1], list(make_models.MODELS[name][2][0])
        names = list(inspect.signature(make).parameters)
        batch = [i for i, n in enumerate(names) if n in ("b", "batch")]
        if not batch:
            return None
        size[batch[0]] = 1
        return size


def add_models():
    for name in make_models.MODELS:
        setattr(Models, "test_" + name,
                lambda self, n=name: self.check(n, make_models.MODELS[n][2][0]))
        one = Models.batch_of_one(name)
        if one:
            setattr(Models, "test_%s_batch_1" % name, lambda self, n=name, s=one: self.check(n, s))


add_models()

if __name__ == "__main__":
    warnings.filterwarnings("ignore", category=DeprecationWarning)
    loader = unittest.defaultTestLoader
    suite = loader.loadTestsFromNames(sys.argv[1:], sys.modules["__main__"]) if sys.argv[1:] else \
        loader.loadTestsFromModule(sys.modules["__main__"])
    result = unittest.TextTestRunner(verbosity=1).run(suite)
    bad = len(result.failures) + len(result.errors)
    print("%d passed, %d failed" % (result.testsRun - bad, bad))
    sys.exit(1 if bad else 0)
