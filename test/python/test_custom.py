"""Operators of one's own: as ONNX functions, Python functions and kernels, against PyTorch.

usage: test_custom.py [NAME...]; needs torch, onnx, onnxruntime, the installed package and a C
compiler for the kernels."""
import os
import runpy
import shutil
import subprocess
import sys
import tempfile
import unittest
import warnings
from typing import List, Optional, Tuple

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import torch
from torch import Tensor, nn

import pt2onnx

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
torch.set_num_threads(1)


@torch.library.custom_op("p2otest::soft_cap", mutates_args=())
def soft_cap(x: Tensor, cap: float) -> Tensor:
    return torch.tanh(x / cap) * cap


@soft_cap.register_fake
def _(x, cap):
    return torch.empty_like(x)


@torch.library.custom_op("p2otest::many", mutates_args=())
def many(xs: List[Tensor], w: Optional[Tensor], times: int, how: str, flag: bool, ks: List[int],
         fs: List[float], by: Optional[float] = None) -> Tuple[Tensor, Tensor]:
    y = torch.cat(xs, 0) * fs[0] + ks[1]
    return y.repeat(times, 1), y.sum(0) if flag and how == "sum" else y.amax(0)


@many.register_fake
def _(xs, w, times, how, flag, ks, fs, by=None):
    rows = sum(x.shape[0] for x in xs)
    return xs[0].new_empty(times * rows, xs[0].shape[1]), xs[0].new_empty(xs[0].shape[1])


@torch.library.custom_op("p2otest::kept", mutates_args=())
def kept(x: Tensor) -> Tensor:
    return x[x[:, 0] > 0].clone()


@kept.register_fake
def _(x):
    return x.new_empty(torch.library.get_ctx().new_dynamic_size(), x.shape[1])


@torch.library.custom_op("p2otest::first", mutates_args=())
def first(x: Tensor, n: int) -> Tensor:
    return x[:n].clone()


@first.register_fake
def _(x, n):
    return x.new_empty(n, x.shape[1])


@torch.library.custom_op("p2otest::add_to", mutates_args=("x",))
def add_to(x: Tensor, y: Tensor) -> Tensor:
    x.add_(y)
    return x * 2


@add_to.register_fake
def _(x, y):
    return torch.empty_like(x)


class Capped(nn.Module):
    def forward(self, x):
        return soft_cap(x, 1.5) + 1


class Many(nn.Module):
    def forward(self, x):
        y, z = many([x, x + 1], None, 2, "sum", True, [5, 6], [0.5])
        return y * 2 + z


class Kept(nn.Module):
    def forward(self, x):
        return kept(x) * 2


class First(nn.Module):
    def forward(self, x):
        return first(x, x.shape[0] - 1)


class Adds(nn.Module):
    def forward(self, x):
        z = x + 0
        return add_to(z, x), z


SOFT_CAP = """<domain: "%s", opset_import: ["" : 17]>
%s <cap> (X) => (Y) {
   C = Constant <value_float: float = @cap> ()
   D = Div (X, C)
   T = Tanh (D)
   Y = Mul (T, C)
}
"""

# What onnx.parser takes, with everything in it that is read here.
TEXTS = [
    SOFT_CAP % ("p2otest", "soft_cap"),
    """# comments
    <domain: "p2otest", opset_import: ["" : 17]>
    soft_cap <cap: float = 1, names: strings = ["a", "b c"], more: ints = []> (float[N, 3] X) => (Y)
    <float[N] T>
    {
       [label] A = Constant <value = float[2] {1.0, -2}> ()
       B = Constant <value: tensor = int64[2, 1] {-1, 7}> ()
       C = Constant <value_ints: ints = [1, 2]> ()
       D = Constant <value_floats = [1.0, -2.5e-3]> ()
       E = Constant <value_strings = ["x", "y"]> ()
       F = Constant <value = float16[1] {15360}> ()
       G = Constant <value = double {2.5}> ()
       T = Clip (X, "", "")
       U, "odd name" = Split <axis = 0, num_outputs = 2> (T)
       Y = Identity (T) <ignored = "x\\"y">
    }
    """,
]


class Customs(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.path = os.path.join(self.folder, "m.onnx")
        torch.manual_seed(0)
        self.x = torch.randn(3, 4)

    def export(self, model, **kw):
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)
            return pt2onnx.export(model, (self.x,), self.path, dynamic_axes={"x": {0: "b"}},
                                  verbose=False, **kw)

    def same(self, model, sizes=(1, 2, 7, 31), kernels=()):
        options = onnxruntime.SessionOptions()
        for library in kernels:
            options.register_custom_ops_library(library)
        session = onnxruntime.InferenceSession(self.path, options,
                                               providers=["CPUExecutionProvider"])
        for n in sizes:
            x = torch.randn(n, 4)
            got = session.run(None, {session.get_inputs()[0].name: x.numpy()})[0]
            np.testing.assert_allclose(got, model(x).numpy(), rtol=1e-4, atol=1e-5)

    def save(self, model, n, dynamic=False):
        path = os.path.join(self.folder, "m%d.pt2" % n)
        shapes = ({0: torch.export.Dim("b", min=3)},) if dynamic else None
        torch.export.save(torch.export.export(model, (torch.randn(n, 4),), dynamic_shapes=shapes),
                          path)
        return path

    def test_function(self):
        for opset in 17, 18, 20, 23:
            r = self.export(Capped(), op_library=SOFT_CAP % ("p2otest", "soft_cap"),
                            opset_version=opset)
            self.assertTrue(r.check and all(c.ok for c in r.check))
            self.same(Capped())
            onnx.checker.check_model(self.path, full_check=True)
            model = onnx.load(self.path)
            self.assertEqual([(f.domain, f.name) for f in model.functions],
                             [("p2otest", "soft_cap")])

    def test_function_of_another_name(self):
        for op in soft_cap, "p2otest::soft_cap", "p2otest::soft_cap.default", \
                torch.ops.p2otest.soft_cap, torch.ops.p2otest.soft_cap.default:
            self.export(Capped(), op_library=[SOFT_CAP % ("com.a", "Foo"),
                                              SOFT_CAP % ("com.b", "Foo")],
                        custom_ops={op: "com.b:Foo"}, verify=False)
            self.same(Capped())
        self.assertEqual([f.domain for f in onnx.load(self.path).functions], ["com.b"])

    def test_functions_call_functions(self):
        text = (SOFT_CAP % ("inner", "Cap") + """
            <domain: "p2otest", opset_import: ["" : 17, "inner" : 1]>
            soft_cap <cap> (X) => (Y) { Y = inner.Cap <cap: float = @cap> (X) }""")
        self.export(Capped(), op_library=text)
        self.same(Capped())
        onnx.checker.check_model(self.path, full_check=True)
        self.assertEqual(len(onnx.load(self.path).functions), 2)

    def test_text_is_read_as_onnx_reads_it(self):
        for text in TEXTS:
            self.export(Capped(), op_library=text, verify=False, opset_version=17)
            got, want = onnx.load(self.path).functions[0], onnx.parser.parse_function(text)
            for f in got, want:
                for node in f.node:
                    for a in node.attribute:
                        if a.t.data_type:
                            a.t.CopyFrom(onnx.numpy_helper.from_array(
                                onnx.numpy_helper.to_array(a.t)))
            for field in "name", "domain", "input", "output", "attribute", "opset_import":
                self.assertEqual(getattr(got, field), getattr(want, field))
            self.assertEqual(list(got.attribute_proto), list(want.attribute_proto))
            for a, b in zip(got.node, want.node):
                self.assertEqual((a.op_type, a.domain, a.input, a.output, a.name),
                                 (b.op_type, b.domain, b.input, b.output, b.name))
                for p, q in zip(a.attribute, b.attribute):
                    q.type = q.type or p.type           # a reference without a type has its own
                self.assertEqual(list(a.attribute), list(b.attribute))

    def test_python_function(self):
        def nodes(g, xs, w, times, how, flag, ks, fs, by="left out"):
            self.assertEqual((w, times, how, flag, ks, fs, by),
                             (None, 2, "sum", True, [5, 6], [0.5], "left out"))
            self.assertEqual([(x.dtype, x.shape) for x in xs], [("float32", (None, 4))] * 2)
            self.assertEqual(g.results, [("float32", (None, 4)), ("float32", (4,))])
            y = g.Add(g.Mul(g.Concat(*xs, axis=0), fs[0]), ks[1])
            return g.Concat(y, y, axis=0), g.ReduceSum(y, np.array([0]), keepdims=0)

        r = self.export(Many(), custom_ops={many: nodes})
        self.assertTrue(all(c.ok for c in r.check))
        self.same(Many())
        self.assertFalse(onnx.load(self.path).functions)

    def test_python_function_goes_wrong(self):
        def raises(g, x, cap):
            raise ValueError("not today")

        for f, said in ((raises, "not today"), (lambda g, x, cap: None, "1 results"),
                        (lambda g, x, cap: g.Relu(x, x), "ONNX Relu (opset 20) does not take"),
                        (lambda g, x, cap: g.Nothing(x), "ONNX Nothing is not known"),
                        (lambda g, x, cap: g.Relu(x, a=object()), "attribute a is a object"),
                        (lambda g, x, cap: g.Concat(x, x, axis=0), "has size 2*"),
                        (lambda g, x, cap: g.Cast(x, to=7), "is int64 of rank 2"),
                        (lambda g, x, capp: x, "unexpected keyword argument 'cap'")):
            with self.assertRaises(pt2onnx.UnsupportedError) as e:
                self.export(Capped(), custom_ops={soft_cap: f})
            self.assertIn(said, str(e.exception))
            self.assertFalse(os.path.exists(self.path))
        with self.assertRaises(pt2onnx.VerificationError):      # right in form, wrong in numbers
            self.export(Capped(), custom_ops={soft_cap: lambda g, x, cap: g.Tanh(x)})

    def test_data_dependent(self):
        self.export(Kept(), custom_ops={kept: lambda g, x: g.Compress(x, g.Greater(
            g.Squeeze(g.Slice(x, [0], [1], [1]), [1]), 0.0), axis=0)})
        self.same(Kept(), (1, 5, 31))

    def test_sizes_of_one_fixed_capture(self):
        path = self.save(Capped(), 7)
        axes = {"x": {0: "b"}}
        with self.assertRaises(pt2onnx.DynamicError) as e:
            pt2onnx.export(path, f=self.path, dynamic_axes=axes, verbose=False,
                           custom_ops={soft_cap: lambda g, x, cap: g.Tanh(x)}, verify=False)
        self.assertIn("a capture at b=", str(e.exception))
        self.assertFalse(os.path.exists(self.path))
        # A function's own nodes prove them; so do two captures.
        pt2onnx.export(path, f=self.path, dynamic_axes=axes, verbose=False,
                       op_library=SOFT_CAP % ("p2otest", "soft_cap"))
        self.same(Capped())
        pt2onnx.export([path, self.save(Capped(), 509)], f=self.path, dynamic_axes=axes,
                       verbose=False, op_library=SOFT_CAP % ("p2otest", "soft_cap"))
        self.same(Capped())

    def test_size_as_argument(self):
        with self.assertRaises(pt2onnx.UnsupportedError) as e:
            pt2onnx.export(self.save(First(), 7, True), f=self.path, verbose=False, verify=False,
                           custom_ops={first: "com.example:First"})
        self.assertIn("argument 'n' must be a constant", str(e.exception))
        # A function may take what varies: it is a scalar then.
        pt2onnx.export(self.save(First(), 7, True), f=self.path, verbose=False, custom_ops={
            first: lambda g, x, n: g.Slice(x, [0], g.Unsqueeze(n, [0]), [0])})
        self.same(First(), (3, 7, 31))

    def test_unknown_operator(self):
        with self.assertRaises(pt2onnx.UnsupportedError) as e:
            pt2onnx.export(self.save(Capped(), 7), f=self.path, verbose=False)
        lines = str(e.exception).split("\n")
        self.assertEqual(len(lines), 3)
        for way in "--custom-op", "--op-library", "custom_ops=":
            self.assertIn(way, lines[2])

    def test_operator_that_writes(self):
        with self.assertRaises(pt2onnx.UnsupportedError) as e:
            self.export(Adds(), custom_ops={add_to: "com.example:AddTo"})
        self.assertIn("writes to its arguments", str(e.exception))

    def test_mistakes(self):
        for kw in (dict(custom_ops={"p2otest::soft_cap": "SoftCap"}), dict(custom_ops={3: "a:B"}),
                   dict(custom_ops={"p2otest::soft_cap": 3}),
                   dict(custom_ops={"aten::relu": "com.example:Relu"})):
            with self.assertRaises(pt2onnx.UsageError):
                self.export(Capped(), **kw)
        with self.assertRaises(pt2onnx.InputError) as e:
            self.export(Capped(), op_library="<domain: \"d\", opset_import: [\"\" : 17]>\n"
                                             "Foo (X) => (Y) {\n  Y = Relu (Z) }")
        self.assertIn("line 3, column 13: 'Z' is not defined", str(e.exception))

    def test_kernels(self):
        mapped = {soft_cap: "com.example:SoftCap"}
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            r = pt2onnx.export(Capped(), (self.x,), self.path, dynamic_axes={"x": {0: "b"}},
                               verbose=False, custom_ops=mapped)
        self.assertTrue(any("the model was not checked" in str(w.message) for w in said))
        self.assertFalse(r.check)
        node = onnx.load(self.path).graph.node[0]
        self.assertEqual((node.domain, node.op_type, node.attribute[0].f), ("com.example",
                                                                            "SoftCap", 1.5))
        library = os.path.join(self.folder, "kernels.so")
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library,
                        os.path.join(TOP, "test", "python", "kernels.c"), "-lm"], check=True)
        r = self.export(Capped(), custom_ops=mapped, ort_library=library)
        self.assertTrue(r.check and all(c.ok for c in r.check))
        np.testing.assert_allclose(r(self.x)[0] if isinstance(r(self.x), (list, tuple))
                                   else r(self.x), Capped()(self.x).numpy(), rtol=1e-5)
        self.same(Capped(), kernels=[library])

    def test_other_sizes_for_a_model_with_functions(self):
        pt2onnx.export(self.save(Capped(), 7), f=self.path, verbose=False,
                       op_library=SOFT_CAP % ("p2otest", "soft_cap"))
        again = os.path.join(self.folder, "again.onnx")
        with self.assertRaises(pt2onnx.DynamicError):       # its functions are not looked into
            pt2onnx.export(self.path, f=again, dynamic_axes={"x": {0: "b"}}, verbose=False)
        pt2onnx.export(self.path, f=again, input_names=["other"], verbose=False)
        model = onnx.load(again)
        onnx.checker.check_model(model, full_check=True)
        self.assertEqual((model.graph.input[0].name, len(model.functions)), ("other", 1))

    def test_example(self):
        argv, sys.argv = sys.argv, ["custom_op.py", self.folder]
        try:
            runpy.run_path(os.path.join(TOP, "examples", "custom_op.py"))
        finally:
            sys.argv = argv


if __name__ == "__main__":
    run = unittest.TextTestRunner(verbosity=0, buffer=True).run(
        unittest.defaultTestLoader.loadTestsFromNames(sys.argv[1:], sys.modules[__name__])
        if sys.argv[1:] else unittest.defaultTestLoader.loadTestsFromModule(sys.modules[__name__]))
    bad = len(run.failures) + len(run.errors)
    print("%d passed, %d failed" % (run.testsRun - bad, bad))
    sys.exit(bad != 0)
