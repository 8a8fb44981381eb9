"""Caches, state, and captures that fail.  usage: test_caches.py [NAME...]"""
import contextlib
import dataclasses
import io
import os
import runpy
import subprocess
import sys
import threading
import types
import unittest
import warnings

import numpy as np
import torch
from torch import nn
from torch.utils import _pytree as pytree

import pt2onnx
from pt2onnx._verify import Runtime
from test_export import TOP, Exports

torch.set_num_threads(1)


class Cache:
    """Registered as transformers registers its own."""

    def __init__(self, keys=(), values=()):
        self.keys, self.values = list(keys), list(values)


class Two:
    def __init__(self, own, other):
        self.self_attention_cache, self.cross_attention_cache = own, other


def register(c, names, make):
    parts = lambda x: {n: getattr(x, a) for n, a in names.items()}
    pytree.register_pytree_node(
        c, lambda x: pytree._dict_flatten(parts(x)),
        lambda values, context: make(**pytree._dict_unflatten(values, context)),
        serialized_type_name="test.%s" % c.__name__,
        flatten_with_keys_fn=lambda x: pytree._dict_flatten_with_keys(parts(x)))


register(Cache, {"key_cache": "keys", "value_cache": "values"},
         lambda key_cache, value_cache: Cache(key_cache, value_cache))
register(Two, {n: n for n in ("self_attention_cache", "cross_attention_cache")},
         lambda self_attention_cache, cross_attention_cache:
         Two(self_attention_cache, cross_attention_cache))


@dataclasses.dataclass
class Output:                   # nobody tells PyTorch of it
    logits: torch.Tensor
    past_key_values: object = None


WIDTH, LAYERS = 4, 2


class Decoder(nn.Module):
    """One head a layer; `pack` makes the result of (logits, keys, values)."""

    def __init__(self, unpack, pack):
        super().__init__()
        self.unpack, self.pack = unpack, pack
        self.table = nn.Embedding(17, WIDTH)
        self.mix = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS))

    def forward(self, input_ids, past_key_values, mask):
        x = self.table(input_ids)[:, None]
        keys, values = self.unpack(past_key_values)
        new_keys, new_values = [], []
        for mix, k, v in zip(self.mix, keys, values):
            k, v = torch.cat([k, mix(x)], 2), torch.cat([v, x.tanh()], 2)
            x = (x @ k.transpose(2, 3) + mask[:, None, None]).softmax(-1) @ v
            new_keys.append(k)
            new_values.append(v)
        return self.pack(x[:, 0], new_keys, new_values)


def unpack_pairs(pairs):
    return [p[0] for p in pairs], [p[1] for p in pairs]


STYLES = {
    "registered": (lambda c: (c.keys, c.values), Cache,
                   lambda x, k, v: Output(x, Cache(k, v))),
    "tuples": (unpack_pairs, lambda k, v: tuple(zip(k, v)),
               lambda x, k, v: (x, tuple(zip(k, v)))),
    "lists": (unpack_pairs, lambda k, v: [list(p) for p in zip(k, v)],
              lambda x, k, v: {"logits": x, "past_key_values": [list(p) for p in zip(k, v)]}),
}
AXES = {"input_ids": {0: "batch", 1: "seq"}, "past_key_values.*": {0: "batch", 2: "past"},
        "mask": {0: "batch", 1: "past+seq"}, "present.*": {2: "past+seq"}}
PARTS = ["%d.%s" % (i, part) for i in range(LAYERS) for part in ("key", "value")]
SIZES = (2, 3, 4), (1, 1, 1), (3, 0, 5), (2, 0, 1), (1, 7, 1), (5, 2, 13)


def make(style, batch, past, seq):
    one = lambda: [torch.randn(batch, 1, past, WIDTH) for _ in range(LAYERS)]
    return torch.randint(0, 17, (batch, seq)), STYLES[style][1](one(), one()), \
        torch.randn(batch, past + seq)


def decoder(style):
    return Decoder(STYLES[style][0], STYLES[style][2]).eval()


def feeds_of(args):
    ids, cache, mask = args
    keys, values = (cache.keys, cache.values) if isinstance(cache, Cache) else unpack_pairs(cache)
    past = {"past_key_values.%d.%s" % (i, n): x for n, xs in (("key", keys), ("value", values))
            for i, x in enumerate(xs)}
    return {"input_ids": ids, "mask": mask, **past}


class Caches(Exports):
    def right(self, path, style, sizes=SIZES):
        """In ONNX Runtime, by name, at these sizes."""
        runtime, model = Runtime(path), decoder(style)
        model.load_state_dict(self.model.state_dict())
        for at in sizes:
            args = make(style, *at)
            with torch.no_grad():
                out = model(*args)
            out = tuple(vars(out).values()) if isinstance(out, Output) else \
                tuple(out.values()) if isinstance(out, dict) else out
            keys, values = (out[1].keys, out[1].values) if isinstance(out[1], Cache) \
                else unpack_pairs(out[1])
            got = dict(zip(runtime.outputs, runtime(feeds_of(args))))
            want = {runtime.outputs[0]: out[0]}
            for i in range(LAYERS):
                want.update({"present.%d.key" % i: keys[i], "present.%d.value" % i: values[i]})
            self.assertEqual(sorted(got), sorted(want))
            for name in want:
                self.assertEqual(got[name].shape, tuple(want[name].shape))
                np.testing.assert_allclose(got[name], want[name].numpy(), atol=1e-5)

    def test_modules(self):
        for style in STYLES:
            self.model = decoder(style)
            r = self.export(self.model, make(style, 2, 3, 4), self.path, dynamic_axes=AXES,
                            verify=style == "registered")
            self.assertEqual({p.name for p in r.inputs[1:-1]},
                             {"past_key_values." + p for p in PARTS})
            self.assertEqual({p.name for p in r.outputs[1:]}, {"present." + p for p in PARTS})
            self.assertEqual(r.inputs[-1].dims[1].replace(" ", ""), "past+seq")
            self.assertIn("past", r.outputs[1].dims[2])
            if style != "tuples":
                self.assertEqual(r.outputs[0].name, "logits")
            if style == "registered":
                self.assertTrue(any(c.sizes["past"] == 0 for c in r.check))
            self.right(self.path, style)
        self.assertNotIn(Output, pytree.SUPPORTED_NODES)

    def test_an_empty_cache_as_the_example(self):
        self.model = decoder("tuples")
        self.export(self.model, make("tuples", 2, 0, 4), self.path, dynamic_axes=AXES,
                    verify=False)
        self.right(self.path, "tuples")

    def test_patterns_and_names_that_mean_nothing(self):
        args = make("tuples", 2, 3, 4)
        for axes in ({"past_key.*": {2: "past"}}, {"*.key.*": [2]}):
            with self.assertRaisesRegex(pt2onnx.UsageError, "no input or output matches"):
                self.export(decoder("tuples"), args, dynamic_axes=axes, verify=False)

    def test_pairs_that_are_no_cache(self):
        class States(nn.Module):
            def forward(self, x, states):
                return [(x + h, c * 2) for h, c in states]

        states = [(torch.randn(2), torch.randn(2)) for _ in range(2)]
        r = self.export(States(), (torch.randn(2), states), verify=False)
        self.assertEqual([p.name for p in r.inputs],
                         ["x", "states_0_0", "states_0_1", "states_1_0", "states_1_1"])
        self.assertFalse([p.name for p in r.outputs if "present" in p.name])

    def test_decoder_and_encoder(self):
        class Both(nn.Module):
            def forward(self, x, past):
                return {"past_key_values": Two(
                    Cache([k + x for k in past.self_attention_cache.keys],
                          past.self_attention_cache.values),
                    past.cross_attention_cache)}

        class Fours(nn.Module):
            def forward(self, x, past_key_values):
                return [tuple(t + x for t in four) for four in past_key_values]

        one = lambda: Cache([torch.randn(2)] * LAYERS, [torch.randn(2)] * LAYERS)
        parts = {"%d.%s.%s" % (i, side, n) for i in range(LAYERS)
                 for side in ("decoder", "encoder") for n in ("key", "value")}
        fours = [tuple(torch.randn(2) for _ in range(4)) for _ in range(LAYERS)]
        for model, past, name in ((Both(), Two(one(), one()), "past"),
                                  (Fours(), fours, "past_key_values")):
            r = self.export(model, (torch.randn(2), past), verify=False)
            self.assertEqual({p.name for p in r.inputs[1:]}, {"%s.%s" % (name, p) for p in parts})
            self.assertEqual({p.name for p in r.outputs}, {"present.%s" % p for p in parts})

    def command(self, *args):
        done = subprocess.run([sys.executable, "-m", "pt2onnx", *args], capture_output=True,
                              text=True)
        return done.returncode, done.stdout + done.stderr

    def test_saved_programs(self):
        """By the command: a capture with sizes that vary, and several without."""
        for style in "registered", "lists":
            self.model, out = decoder(style), self.path
            if style == "registered":
                torch.export.register_dataclass(Output, serialized_type_name="test.Output")
                self.addCleanup(pytree._deregister_pytree_node, Output)
            files = []
            for k, at in enumerate([(2, 3, 4), (5, 89, 37), (7, 19, 11), (3, 53, 23)]):
                files.append(os.path.join(self.folder.name, "%s%d.pt2" % (style, k)))
                torch.export.save(torch.export.export(self.model, make(style, *at)), files[k])
            axes = ["--input", "input_ids:batch,seq", "--input", "mask:batch,past+seq",
                    "--input", "past_key_values.*:batch,1,past,%d" % WIDTH]
            code, said = self.command(*files, out, *axes)
            self.assertEqual(code, 0, said)
            self.assertIn("mask: f32[batch, past + seq]", said.replace("float32", "f32"))
            self.right(out, style)
            auto = torch.export.Dim.AUTO
            shapes = pytree.tree_map(lambda t: {k: auto for k in range(t.dim() - (t.dim() > 2))
                                                if k != 1 or t.dim() == 2}, make(style, 2, 3, 4))
            shapes = (shapes[0], [shapes[1].keys, shapes[1].values], shapes[2]) \
                if style == "registered" else shapes
            torch.export.save(torch.export.export(self.model, make(style, 2, 3, 4),
                                                  dynamic_shapes=shapes), files[0])
            code, said = self.command(files[0], out, *axes)
            self.assertEqual(code, 0, said)
            self.right(out, style)
        os.remove(out)
        for wrong, exit_code, words in (
                (["--input", "past.*:batch,1,past,4"], 1, "no input matches"),
                (["--dynamic-axes", '{"x*": {"0": "n"}}'], 1, "no input or output matches"),
                (["--input", "mask:batch,past+total"], 1, "no axis is called total"),
                (["--input", "mask:batch,2*past", *axes[:2], *axes[4:]], 4, "2\\*past is")):
            code, said = self.command(files[1], out, *wrong)
            self.assertEqual(code, exit_code, said)
            self.assertRegex(said, words)
            self.assertFalse(os.path.exists(out))

    def test_caches_of_transformers(self):
        """By classes that are made like them."""
        class Base:
            def __init__(self, layers=()):
                self.layers = list(layers)

        class DynamicCache(Base):
            pass

        class DynamicLayer:
            keys = values = None

        class SlidingLayer(DynamicLayer):
            seen = 0

        def filled(kind, *at):
            layers = []
            for _ in range(LAYERS):
                layers.append(kind())
                layers[-1].keys, layers[-1].values = torch.randn(*at), torch.randn(*at)
            return DynamicCache(layers)

        class Grows(nn.Module):
            def forward(self, x, past_key_values=None):
                for layer in past_key_values.layers:
                    layer.keys = torch.cat([layer.keys, x], 1)
                    layer.values = torch.cat([layer.values, -x], 1)
                return Output(x + layer.keys.sum(1, keepdim=True), past_key_values)

        file = types.ModuleType("transformers.cache_utils")
        file.Cache = Base
        sys.modules["transformers.cache_utils"] = file
        self.addCleanup(sys.modules.pop, "transformers.cache_utils")
        past = filled(DynamicLayer, 2, 3, 4)
        before = past.layers[0].keys
        r = self.export(Grows(), (torch.randn(2, 1, 4),), kwargs={"past_key_values": past},
                        dynamic_axes={"past_key_values.*": {1: "past"}}, verify=False)
        self.assertIs(past.layers[0].keys, before)
        self.assertEqual({p.name for p in r.inputs[1:]}, {"past_key_values." + p for p in PARTS})
        for n in 0, 1, 6:
            x, past = torch.randn(2, 1, 4), filled(DynamicLayer, 2, n, 4)
            keys, values = [[getattr(x, a) for x in past.layers] for a in ("keys", "values")]
            want = Grows()(x, past)
            got = dict(zip([p.name for p in r.outputs], r(x, *keys, *values)))
            np.testing.assert_allclose(got["logits"], want.logits.numpy(), atol=1e-5)
            for i, layer in enumerate(want.past_key_values.layers):
                np.testing.assert_array_equal(got["present.%d.key" % i], layer.keys.numpy())
                np.testing.assert_array_equal(got["present.%d.value" % i], layer.values.numpy())
        with self.assertRaisesRegex(pt2onnx.UsageError, "SlidingLayer"):
            self.export(Grows(), (torch.randn(2, 1, 4), filled(SlidingLayer, 2, 3, 4)))
        self.assertNotIn(DynamicCache, pytree.SUPPORTED_NODES)

    def test_the_example_generates(self):
        with contextlib.redirect_stdout(io.StringIO()) as said:
            runpy.run_path(os.path.join(TOP, "examples", "generate.py"))["main"](self.folder.name)
        self.assertEqual(said.getvalue().count("20 tokens as PyTorch's"), 8)


class Ring(nn.Module):
    """A ring of keys, a counter, a running mean, and a sum, which need not be a buffer."""

    def __init__(self, plain=True):
        super().__init__()
        self.register_buffer("kv", torch.zeros(6, 4))
        self.register_buffer("step", torch.tensor(0))
        self.register_buffer("mean", torch.ones(4), persistent=False)
        if plain:
            self.seen = torch.zeros(1)
        else:
            self.register_buffer("seen", torch.zeros(1))

    def forward(self, x):
        at = (self.step + torch.arange(x.shape[0])) % 6
        self.kv[at] = x
        self.step += x.shape[0]
        self.mean.mul_(0.9).add_(0.1 * x.mean(0))
        self.seen.add_(x.sum())
        return self.kv.sum(0) + self.mean * self.step


class State(Exports):
    STATE = {n: n + ".next" for n in ("kv", "step", "mean", "seen")}

    def steps(self, path, state, model, batches):
        """Fed back step by step it is what PyTorch makes of the model."""
        runtime, feeds = Runtime(path), {}
        for n in batches:
            x = torch.randn(n, 4)
            out = dict(zip(runtime.outputs, runtime({"x": x, **feeds})))
            want = model(x)
            np.testing.assert_allclose(next(iter(out.values())), want.numpy(), atol=1e-4)
            feeds = {name: out[later] for name, later in state.items()}
        for name, value in feeds.items():
            np.testing.assert_allclose(value, getattr(model, name).numpy(), atol=1e-4)

    def test_buffers(self):
        model = Ring()
        r = self.export(model, torch.randn(3, 4), self.path, dynamic_axes={"x": {0: "n"}},
                        state="io")
        self.assertEqual(r.state, self.STATE)
        self.assertEqual(int(model.step), 0)
        self.steps(self.path, r.state, model, (1, 3, 2, 5, 1, 4))

    def test_saved(self):
        program = os.path.join(self.folder.name, "ring.pt2")
        n = torch.export.Dim("n")
        for k in range(2):
            ep = torch.export.export(Ring(k == 0), (torch.randn(3, 4),),
                                     dynamic_shapes={"x": {0: n}})
            # Writes in place, or as results.
            torch.export.save(ep.run_decompositions() if k else ep, program)
            run = lambda *more: subprocess.run(
                [sys.executable, "-m", "pt2onnx", program, self.path, *more], capture_output=True,
                text=True)
            done = run("--state", "io")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertNotIn("does not return", done.stderr)
            self.steps(self.path, self.STATE, Ring(), (2, 1, 7) if k == 0 else (3, 4, 1))
            done = run("--state=drop")
            self.assertEqual(done.stderr.count("does not return that"), 4)
            self.assertEqual(len(Runtime(self.path).outputs), 1)
        self.assertEqual(run("--state", "what").returncode, 1)

    def test_inputs(self):
        class Adds(nn.Module):
            def forward(self, x, total, kept):
                total.add_(x.sum(0))
                kept.mul_(2)
                return x * total, kept

        args = torch.randn(3, 4), torch.zeros(4), torch.ones(2)
        r = self.export(Adds(), args, self.path, dynamic_axes={"x": {0: "n"}}, state="io",
                        input_names=["x", "sum"])
        self.assertEqual(r.state, {"sum": "sum.next", "kept": r.outputs[1].name})
        self.assertEqual(len(r.outputs), 3)         # kept is returned anyway
        self.assertTrue((args[1] == 0).all())
        for n in 1, 5:
            x, total = torch.randn(n, 4), torch.randn(4)
            got = r(x, total, torch.ones(2))
            np.testing.assert_allclose(got[2], (total + x.sum(0)).numpy(), atol=1e-5)
        dropped = self.export(Adds(), args, dynamic_axes={"x": {0: "n"}})
        self.assertEqual(["'total'" in str(d) for d in dropped.notes], [True])

    def test_buffers_in_one_memory(self):
        class Shared(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("all", torch.zeros(4))
                self.register_buffer("front", self.all[:2])

            def forward(self, x):
                self.all.add_(x)
                return self.front * 2

        with self.assertRaises(pt2onnx.Pt2OnnxError):
            self.export(Shared(), torch.randn(4), state="io", verify=False)

    def test_statistics_that_are_trained(self):
        class Trained(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("mean", torch.zeros(4))
                self.register_buffer("spread", torch.ones(4))

            def forward(self, x):
                y = nn.functional.batch_norm(x, self.mean, self.spread, training=True)
                return y + self.mean * self.spread

        for verify in False, True:
            r = self.export(Trained(), torch.randn(3, 4), self.path,
                            dynamic_axes={"x": {0: "n"}}, state="io", verify=verify)
            self.assertEqual(r.state, {"mean": "mean.next", "spread": "spread.next"})
            self.steps(self.path, r.state, Trained(), (2, 3, 7))

    def test_names_that_clash(self):
        class Clash(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("x", torch.zeros(4))
                self.register_buffer("y", torch.zeros(4))

            def forward(self, x):
                self.x += x.sum(0)
                self.y += 1
                return {"y.next": x + self.x * self.y}

        r = self.export(Clash(), torch.randn(3, 4), self.path, dynamic_axes={"x": {0: "n"}},
                        state="io", verify=False)
        self.assertEqual(r.state, {"x_1": "x_1.next", "y": "y.next_1"})
        runtime, feeds, model = Runtime(self.path), {}, Clash()
        for n in 1, 3, 2:
            x = torch.randn(n, 4)
            out = dict(zip(runtime.outputs, runtime({"x": x, **feeds})))
            np.testing.assert_allclose(out["y.next"], model(x)["y.next"].numpy(), atol=1e-5)
            feeds = {name: out[later] for name, later in r.state.items()}

    def test_state_that_is_not_captured(self):
        class Swapped(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("a", torch.zeros(4))
                self.register_buffer("b", torch.ones(4))

            def forward(self, x):
                self.a, self.b = self.b, self.a
                return x + self.a

        for verify in False, True:
            with self.assertRaisesRegex(pt2onnx.UnsupportedError, "changes a, b, and"):
                self.export(Swapped(), torch.randn(3, 4), self.path,
                            dynamic_axes={"x": {0: "n"}}, state="io", verify=verify)
            self.assertFalse(os.path.exists(self.path))

    def test_usage(self):
        with self.assertRaises(pt2onnx.UsageError):
            self.export(Ring(), torch.randn(3, 4), state="keep")


class Bodies(Exports):
    def test_numbers_in_generated_lines(self):
        """The code that PyTorch generates for a body spells the captured size."""
        class Sized(nn.Module):
            def forward(self, x):
                n = x.shape[0]
                return torch.cond(x.sum() > 0, lambda x: x * n, lambda x: x + n, (x,))

        program = os.path.join(self.folder.name, "sized.pt2")
        torch.export.save(torch.export.export(Sized(), (torch.randn(9, 4),)), program)
        done = subprocess.run([sys.executable, "-m", "pt2onnx", program, self.path, "--input",
                               "x:b,4"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertIn("b or the number 9", done.stderr)


class Branch(nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            return x + 1
        return x - 1


class Causal(nn.Module):
    def forward(self, x):
        return nn.functional.scaled_dot_product_attention(x, x, x, is_causal=bool(x.sum() > 0))


class Loop(nn.Module):
    def forward(self, x):
        return torch.stack([x * i for i in range(int(x.max()))])


class Held:
    def __init__(self, x):
        self.x = x


class Unknown(nn.Module):
    def forward(self, x):
        return Held(x + 1)


class Trains(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        y = self.lin(x)
        if self.training and y.sum() > 0:
            y = y.dropout_(0.5)
        return y


class Captures(Exports):
    def test_three_lines(self):
        for model, line, instead in ((Branch(), "if x.sum() > 0", "torch.cond"),
                                     (Causal(), "is_causal=bool", "attn_mask="),
                                     (Loop(), "range", "while_loop"),
                                     (Unknown(), None, "register_pytree_node")):
            for axes in {}, {"x": {0: "n"}}:
                with contextlib.redirect_stderr(io.StringIO()) as said, \
                        self.assertRaises(pt2onnx.CaptureError) as caught:
                    self.export(model, torch.rand(3, 4, 4) + 1, dynamic_axes=axes)
                lines = str(caught.exception).split("\n")
                self.assertEqual(len(lines), 3, lines)
                self.assertEqual(said.getvalue(), "")
                self.assertIn(instead, lines[2])
                if line:
                    self.assertIn("test_caches.py", lines[0])
                    self.assertIn(line, lines[0])
                    d, = caught.exception.diagnostics
                    self.assertTrue(d.file.endswith("test_caches.py") and d.line > 0)

    def test_wrapped(self):
        lin = nn.Linear(4, 3)
        inside = nn.Sequential(torch.compile(lin), nn.ReLU())
        called = nn.Linear(4, 3)
        called.compile()
        x = torch.randn(2, 4)
        for model, plain in ((torch.compile(lin), lin), (nn.DataParallel(lin), lin),
                             (torch.compile(nn.DataParallel(lin)), lin), (called, None),
                             (inside, nn.Sequential(lin, nn.ReLU()))):
            r = self.export(model, x, dynamic_axes={"input": {0: "n"}}, verify=plain is not None)
            for n in 1, 5:
                x = torch.randn(n, 4)
                want = plain(x) if plain else called.forward(x)
                np.testing.assert_allclose(r(x), want.detach().numpy(), atol=1e-5)
        self.assertIsNot(inside[0], lin)
        self.assertIsNotNone(called._compiled_call_impl)

    def test_what_only_training_does(self):
        model = Trains().train()
        r = self.export(model, torch.randn(2, 4), dynamic_axes={"x": {0: "n"}}, verify=False)
        self.assertTrue(model.training)
        x = torch.randn(5, 4)
        np.testing.assert_allclose(r(x), model.lin(x).detach().numpy(), atol=1e-5)

    def test_two_threads(self):
        shared = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
        failed = []

        def work(k):
            try:
                for _ in range(2):
                    model = shared if k % 2 else nn.Sequential(nn.Linear(4, k + 1), nn.Tanh())
                    r = self.export(model, torch.randn(3, 4), dynamic_axes={"input": {0: "n"}})
                    self.same(r, model, (torch.randn(7, 4),))
            except BaseException as e:
                failed.append(e)

        threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(failed, [])
        self.assertTrue(shared.training)


if __name__ == "__main__":
    warnings.filterwarnings("ignore", category=DeprecationWarning)
    loader, here = unittest.defaultTestLoader, sys.modules["__main__"]
    suite = loader.loadTestsFromNames(sys.argv[1:], here) if sys.argv[1:] else unittest.TestSuite(
        loader.loadTestsFromTestCase(c) for c in (Caches, State, Captures))
    result = unittest.TextTestRunner(verbosity=1).run(suite)
    bad = len(result.failures) + len(result.errors)
    print("%d passed, %d failed" % (result.testsRun - bad, bad))
    sys.exit(1 if bad else 0)
