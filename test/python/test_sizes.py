"""Which sizes pt2onnx.export finds, takes and refuses.  usage: test_sizes.py [NAME...]"""
import collections
import functools
import resource
import sys
import unittest
import warnings

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

import pt2onnx
from test_export import Exports

torch.set_num_threads(1)


class Relations(Exports):
    """Sizes that hang together are found from what PyTorch demands of them."""

    def check(self, m, make, axes, sizes, starts):
        for start in starts:
            r = self.export(m, make(*start), dynamic_axes=axes)
            for at in sizes:
                self.same(r, m, make(*at))

    def test_twice_and_three_times(self):
        class Pairs(nn.Module):
            def forward(self, x, weight, bias):
                both = torch.stack([x, -x], 2).flatten(1, 2)
                return both * weight + bias.view(-1, 3).sum(1)[:, None]

        def make(b, t):
            return torch.randn(b, t), torch.randn(2 * t), torch.randn(3 * b)

        axes = {"x": {0: "b", 1: "t"}, "weight": {0: "double"}, "bias": {0: "triple"}}
        self.check(Pairs(), make, axes, [(1, 1), (2, 5), (7, 4), (3, 50)],
                   [(4, 6), (1, 5), (3, 1)])

    def test_square(self):
        class Grid(nn.Module):
            def forward(self, x, row):
                n = row.shape[0]
                return (x.view(x.shape[0], n, n) * row).sum(1)

        self.check(Grid(), lambda b, n: (torch.randn(b, n * n), torch.randn(n)),
                   {"x": {0: "b", 1: "cells"}, "row": {0: "n"}}, [(1, 1), (2, 5), (3, 14)],
                   [(2, 3)])

    def test_cache(self):
        class Cached(nn.Module):
            def forward(self, x, past, mask):
                keys = torch.cat([past, x], 1)
                return (x @ keys.transpose(1, 2) + mask[:, None]).softmax(-1) @ keys

        def make(b, past, seq):
            return torch.randn(b, seq, 8), torch.randn(b, past, 8), torch.randn(b, past + seq)

        sizes = [(1, 1, 1), (2, 5, 3), (3, 30, 1), (2, 4, 4)]
        for total in ("total", "past+seq", "past + seq"):
            axes = {"x": {0: "b", 1: "seq"}, "past": {0: "b", 1: "past"},
                    "mask": {0: "b", 1: total}}
            self.check(Cached(), make, axes, sizes, [(2, 3, 4), (1, 6, 1)])
        r = self.export(Cached(), make(2, 3, 4), dynamic_axes=axes)
        self.assertIn(r.inputs[2].dims[1].replace(" ", ""), ("past+seq", "seq+past"))

    def test_five_names(self):
        class Five(nn.Module):
            def forward(self, a, b, c, d, e):
                return a + b * c - d / (1 + e * e)

        self.check(Five(), lambda n: [torch.randn(n, 3) for _ in range(5)],
                   {k: {0: "n_" + k} for k in "abcde"}, [(1,), (2,), (17,)], [(4,), (1,)])

    def test_multiples(self):
        class Patches(nn.Module):
            def __init__(self):
                super().__init__()
                self.proj = nn.Linear(64, 8)

            def forward(self, x):
                b, h, w = x.shape
                x = x.view(b, h // 8, 8, w // 8, 8).permute(0, 1, 3, 2, 4)
                return self.proj(x.flatten(3))

        self.check(Patches(), lambda b, h, w: (torch.randn(b, 8 * h, 8 * w),),
                   {"x": {0: "b", 1: "h", 2: "w"}}, [(1, 1, 1), (2, 5, 3), (3, 2, 9)],
                   [(2, 4, 2), (1, 1, 1)])


class Names(Exports):
    def test_expressions(self):
        class M(nn.Module):
            def forward(self, x, y):
                return torch.cat([x, x], 1) + y

        m, D = M(), torch.export.Dim
        args = (torch.randn(2, 3), torch.randn(2, 6))
        t = D("t")
        for spec in ({"x": {1: "t"}, "y": {1: "2*t"}}, {"x": {1: t}, "y": {1: 2 * t}}):
            r = self.export(m, args, dynamic_shapes=spec)
            self.same(r, m, (torch.randn(2, 9), torch.randn(2, 18)))
        with self.assertRaisesRegex(pt2onnx.UsageError, "'3\\*t' is 9 by its names and 6"):
            self.export(m, args, dynamic_axes={"x": {1: "t"}, "y": {1: "3*t"}})
        with self.assertRaisesRegex(pt2onnx.UsageError, "no axis is called p or q"):
            self.export(m, args, dynamic_axes={"x": {1: "t"}, "y": {1: "p+q"}})

    def test_a_numeral_is_no_name(self):
        for name in ("4", 4, "2*3", "a b", "f(x)", "-"):
            with self.assertRaisesRegex(pt2onnx.UsageError, "is a number|is no name"):
                self.export(nn.Linear(3, 2), torch.randn(4, 3), dynamic_axes={"input": {0: name}})

    def test_an_axis_has_one_name(self):
        m, x, axes = nn.Linear(4, 2), torch.randn(3, 4), {"input": {0: "b"}}
        with self.assertRaisesRegex(pt2onnx.UsageError, "called both 'n' and 'b'"):
            self.export(m, x, dynamic_axes=axes, dynamic_shapes={"input": {0: "n"}})
        r = self.export(m, x, dynamic_axes=axes, dynamic_shapes={"input": {0: "b"}})
        self.assertEqual(r.inputs[0].dims, ("b", 4))
        with self.assertRaisesRegex(pt2onnx.UsageError, "True, False, 'link' or None, not 'bogus'"):
            self.export(m, x, dynamic_axes=axes, external_data="bogus")

    def test_auto_stays_fixed_where_it_must(self):
        auto = torch.export.Dim.AUTO
        m = nn.Linear(3, 2)
        r = self.export(m, torch.randn(4, 3), dynamic_shapes={"input": {0: auto, 1: auto}})
        self.assertEqual(r.inputs[0].dims[1], 3)
        self.assertIsInstance(r.inputs[0].dims[0], str)
        self.assertTrue(any("input_1 stays 3" in str(d) for d in r.notes), r.notes)
        self.same(r, m, (torch.randn(9, 3),))


class Gpt2(nn.Module):
    """Its attention with a cache and a causal mask cut from a table."""

    def __init__(self):
        super().__init__()
        self.ids, self.places = nn.Embedding(50, 16), nn.Embedding(64, 16)
        self.qkv, self.out = nn.Linear(16, 48), nn.Linear(16, 16)
        self.register_buffer("bias", torch.tril(torch.ones(64, 64, dtype=torch.bool))[None, None])

    def forward(self, ids, past_key, past_value, mask):
        b, t = ids.shape
        n = past_key.shape[2]
        x = self.ids(ids) + self.places(torch.arange(n, n + t))
        q, k, v = (y.view(b, t, 4, 4).transpose(1, 2) for y in self.qkv(x).split(16, 2))
        k, v = torch.cat([past_key, k], 2), torch.cat([past_value, v], 2)
        w = q @ k.transpose(2, 3) / k.shape[-1] ** 0.5
        w = torch.where(self.bias[:, :, n:n + t, :n + t], w, torch.finfo(w.dtype).min)
        w = w + (1.0 - mask[:, None, None, :]) * torch.finfo(w.dtype).min
        y = (w.softmax(-1) @ v).transpose(1, 2).reshape(b, t, 16)
        return self.out(y), k, v


class Honest(Exports):
    """The reference is what the model says of itself."""

    def test_padding_mask(self):
        m = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2)

        class Masked(nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = m

            def forward(self, x, mask):
                return self.inner(x, src_key_padding_mask=mask)

        mask = torch.zeros(2, 5, dtype=torch.bool)
        mask[1, 3:] = True
        r = self.export(Masked(), (torch.randn(2, 5, 8), mask), dynamic_axes={
            "x": {0: "b", 1: "t"}, "mask": {0: "b", 1: "t"}})
        self.assertGreater(len(r.check), 6)
        self.assertTrue(torch.backends.mha.get_fastpath_enabled())

    def test_gpt2_with_past(self):
        def make(b, past, t):
            return (torch.randint(0, 50, (b, t)), torch.randn(b, 4, past, 4),
                    torch.randn(b, 4, past, 4), torch.ones(b, past + t))

        m = Gpt2()
        for start in ((2, 5, 3), (1, 6, 1)):
            r = self.export(m, make(*start), dynamic_axes={
                "ids": {0: "b", 1: "t"}, "past_key": {0: "b", 2: "past"},
                "past_value": {0: "b", 2: "past"}, "mask": {0: "b", 1: "past+t"}})
            for at in ((1, 1, 1), (3, 9, 1), (2, 4, 6), (2, 31, 33)):
                self.same(r, m, make(*at))

    def test_state_does_not_pass_from_run_to_run(self):
        class Counting(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("mean", torch.zeros(3))
                self.seen = []

            def forward(self, x):
                self.mean += x.mean(0)
                self.seen.append(x)
                return x - self.mean + len(self.seen)

        m = Counting()
        r = self.export(m, torch.randn(4, 3), dynamic_axes={"x": {0: "n"}})
        self.assertEqual((len(m.seen), float(m.mean.abs().sum())), (0, 0.0))
        x = torch.randn(9, 3)
        self.assertLess(abs(r(x) - (x - x.mean(0) + 1).numpy()).max(), 1e-5)

    def test_what_is_kept_outside_of_the_module(self):
        kept, holder = {}, type("Holder", (), {"__module__": __name__})()

        @functools.lru_cache(None)
        def places(n):
            return torch.arange(n).float()

        class Keeping(nn.Module):
            ramp = None

            def __init__(self):
                super().__init__()
                self.tables, self.holder = collections.OrderedDict(), holder

            def forward(self, x):
                n = x.shape[1]
                if n not in self.tables:
                    self.tables[n] = torch.linspace(0, 1, n)
                if n not in kept:
                    kept[n] = torch.ones(n)
                if getattr(self.holder, "n", 0) != n:
                    self.holder.n, self.holder.table = n, torch.full((n,), 2.0)
                if Keeping.ramp is None or len(Keeping.ramp) != n:
                    Keeping.ramp = torch.arange(n)
                return x * places(n) + self.tables[n] + kept[n] + self.holder.table + Keeping.ramp

        sys.modules[__name__].__dict__.update(kept_for_test=kept, places_for_test=places)
        for verify in (True, False):
            m = Keeping()
            r = self.export(m, torch.randn(2, 9), dynamic_axes={"x": {0: "b", 1: "t"}},
                            verify=verify)
            self.assertIs(type(m(torch.randn(2, 5))), torch.Tensor)
            for b, t in ((1, 1), (3, 7), (2, 100)):
                self.same(r, m, (torch.randn(b, t),))

    def test_sizes_without_a_meaning(self):
        class Halves(nn.Module):
            def forward(self, x):
                half = x.shape[0] // 2
                return x[half:].mean(0) - x[:half].mean(0)

        with self.assertWarnsRegex(UserWarning, "n=1: PyTorch gives NaN"):
            r = self.export(Halves(), torch.randn(4, 3), dynamic_axes={"x": {0: "n"}})
        self.same(r, Halves(), (torch.randn(9, 3),))

    def test_random(self):
        class Noisy(nn.Module):
            def forward(self, x):
                return x + torch.randn_like(x)

        with self.assertRaisesRegex(pt2onnx.VerificationError, "the model is random"):
            self.export(Noisy(), torch.randn(4), dynamic_axes={"x": [0]})

    def test_no_memory_for_captures(self):
        from pt2onnx._capture import Subject
        from pt2onnx._example import Example, declare_axes
        m = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(4, 1, 3)).eval()
        example = Example(m, (torch.randn(1, 3, 8, 8),), {}, None)
        declare_axes(example, {"input": {0: "b", 2: "h", 3: "w"}}, [])
        subject = Subject(m, example)
        subject.capture(example.sizes)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        large = {"b": 4096, "h": 2048, "w": 2048}
        subject.capture(large)
        for strict in (False, True):
            subject.capture_symbolic(large, strict)
        self.assertLess(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, 200 << 10)


    def test_long_loops_are_not_read(self):
        from pt2onnx._capture import Subject
        from pt2onnx._example import Example, declare_axes

        class Cells(nn.Module):
            def forward(self, x):
                h, w = x.shape
                return x.flatten()[torch.tensor([(i * w + j) for j in range(w) for i in range(h)])]

        example = Example(Cells(), (torch.randn(4, 5),), {}, None)
        declare_axes(example, {"x": {0: "h", 1: "w"}}, [])
        subject = Subject(Cells(), example)
        subject.capture({"h": 3, "w": 4}, strict=True)
        with self.assertRaisesRegex(pt2onnx.CaptureError, "too long"):
            subject.capture({"h": 90, "w": 60}, strict=True)


class Computed(Exports):
    """Sizes that Python computes and torch.export's tracing makes numbers of."""

    def test_share_of_a_product(self):
        class Scaled(nn.Module):
            def forward(self, x):
                scale = 24 / max(x.shape[-2:])
                size = [int(n * scale + 0.5) for n in x.shape[-2:]]
                return F.interpolate(x, size, mode="nearest")

        m = Scaled()
        r = self.export(m, torch.randn(2, 3, 9, 14), dynamic_axes={"x": {0: "b", 2: "h", 3: "w"}})
        for b, h, w in (1, 30, 20), (3, 7, 7), (2, 100, 37), (2, 16, 25):
            self.same(r, m, (torch.randn(b, 3, h, w),))

    def test_pads_behind_a_transpose(self):
        class Windows(nn.Module):
            def forward(self, x):
                y = F.pad(x.transpose(1, 2), (2, 2), mode="replicate").unfold(-1, 5, 1)
                z = F.pad(x.transpose(1, 2), (1, x.shape[1] % 4))
                return y.mean(-1).transpose(1, 2), z.transpose(1, 2)

        r = self.export(Windows(), torch.randn(2, 9, 4), dynamic_axes={"x": {0: "b", 1: "t"}})
        for b, t in ((1, 1), (3, 7), (2, 40)):
            self.same(r, Windows(), (torch.randn(b, t, 4),))

    def test_numpy(self):
        class Decayed(nn.Module):
            def forward(self, x):
                weights = np.power(0.9, np.arange(x.shape[1]) ** 1.5)
                return x @ torch.from_numpy(weights).float()

        m = Decayed()
        r = self.export(m, torch.randn(2, 9), dynamic_axes={"x": {0: "b", 1: "t"}})
        for b, t in (1, 1), (3, 7), (2, 40):
            self.same(r, m, (torch.randn(b, t),))

    def test_numpy_that_makes_numbers_of_sizes(self):
        class Window(nn.Module):
            def forward(self, x):
                return x * torch.from_numpy(np.hanning(x.shape[1] + 2)[1:-1]).float()

        m = Window()
        r = self.export(m, torch.randn(2, 9), dynamic_axes={"x": {0: "b", 1: "t"}})
        for b, t in (1, 1), (3, 7), (2, 40):
            self.same(r, m, (torch.randn(b, t),))

    def test_guards_of_the_second_input(self):
        class Second(nn.Module):
            def forward(self, x, y):
                y = y[:, : int(y.shape[1] ** 0.75)]
                return x.sum(1), y.amax(1) if y.shape[1] > 3 else y.sum(1)

        with self.assertWarnsRegex(UserWarning, "n is at least 7"):
            r = self.export(Second(), (torch.randn(2, 5), torch.randn(2, 20)),
                            dynamic_axes={"x": {0: "b", 1: "t"}, "y": {0: "b", 1: "n"}})
        self.assertEqual(r.dims["n"]["min"], 7)         # int(6 ** 0.75) is 3
        for n in (7, 8, 16, 97, 256):
            self.same(r, Second(), (torch.randn(3, 4), torch.randn(3, n)))


class Branches(Exports):
    """Python that goes another way at other sizes: several captures make one file."""

    def check(self, m, make, axes, sizes):
        for verify in (True, False):
            r = self.export(m, make(*sizes[0]), dynamic_axes=axes, verify=verify)
            for at in sizes:
                self.same(r, m, make(*at))
        return r

    def test_threshold(self):
        class Branch(nn.Module):
            def __init__(self):
                super().__init__()
                self.conv, self.fc = nn.Conv1d(4, 4, 3), nn.Linear(4, 4)

            def forward(self, x):
                if x.shape[1] > 30:
                    return self.conv(x.mT).amax(2)
                return self.fc(x).amax(1) * x.new_tensor([1.0, 2.0, 3.0, 4.0])

        self.check(Branch(), lambda b, t: (torch.randn(b, t, 4),), {"x": {0: "b", 1: "t"}},
                   [(2, 7), (3, 2), (2, 30), (2, 31), (4, 90)])

    def test_remainder_and_order(self):
        class Middle(nn.Module):
            def forward(self, x, y):
                n = x.shape[0]
                x = x.sort(0).values
                middle = x[n // 2] if n % 2 else (x[n // 2 - 1] + x[n // 2]) / 2
                return middle * (y if y.shape[0] > n else 2 * y + 1)

        self.check(Middle(), lambda n, k: (torch.randn(n), torch.randn(k)),
                   {"x": {0: "n"}, "y": {0: "k"}}, [(6, 5), (7, 5), (5, 9), (4, 4), (30, 31)])

    def test_at_one_size(self):
        class Crossed(nn.Module):
            def forward(self, x, y):
                return torch.linalg.cross(x, y) if x.shape[0] != 3 else torch.cross(x, y, dim=0)

        def make(n):
            return torch.randn(n, 3), torch.randn(n, 3)

        for verify in (True, False):
            r = self.export(Crossed(), make(3), dynamic_axes={"x": {0: "n"}, "y": {0: "n"}},
                            verify=verify)
            for n in (1, 2, 3, 4, 17):
                self.same(r, Crossed(), make(n))

    def test_inputs_that_share_their_sizes(self):
        class Pooled(nn.Module):
            def forward(self, x, mask):
                if x.shape[1] > 32:
                    x, mask = x[:, ::2], mask[:, ::2]
                m = mask.unsqueeze(-1).float()
                return (x * m).sum(1) / m.sum(1).clamp(min=1)

        class Causal(nn.Module):
            def forward(self, q, k, pad):
                a = q @ k.transpose(1, 2)
                if q.shape[1] == k.shape[1]:
                    a = a.masked_fill(torch.ones_like(a[0], dtype=torch.bool).triu(1), -1e9)
                return a.masked_fill(pad[:, None], -1e9).softmax(-1)

        def pooled(b, t):
            return torch.randn(b, t, 4), torch.rand(b, t) > 0.3

        def causal(b, t, s):
            return torch.randn(b, t, 4), torch.randn(b, s, 4), torch.rand(b, s) > 0.7

        for verify in (True, False):
            r = self.export(Pooled(), pooled(2, 9), verify=verify,
                            dynamic_axes={"x": {0: "b", 1: "t"}, "mask": {0: "b", 1: "t"}})
            for b, t in ((1, 1), (3, 31), (1, 32), (2, 33), (5, 64), (2, 1025)):
                self.same(r, Pooled(), pooled(b, t))
            r = self.export(Causal(), causal(2, 5, 7), verify=verify, dynamic_axes={
                "q": {0: "b", 1: "t"}, "k": {0: "b", 1: "s"}, "pad": {0: "b", 1: "s"}})
            for at in ((1, 1, 1), (2, 3, 3), (3, 7, 2), (7, 7, 7), (1, 30, 31)):
                self.same(r, Causal(), causal(*at))

    def test_beyond_all_sizes_that_are_usual(self):
        class Limited(nn.Module):
            def forward(self, x):
                return x[:, :1000] * 2 if x.shape[1] > 1e3 else x

        class Helped(nn.Module):
            limit = 600

            def forward(self, x):
                n = x.shape[1]
                window = torch.from_numpy(np.hanning(n + 2)[1:-1].astype(np.float32))
                return x * (window * 0.5 if n > self.limit else window)

        for verify in (True, False):
            r = self.export(Limited(), torch.randn(2, 9), dynamic_axes={"x": {1: "t"}},
                            verify=verify)
            for t in (2, 999, 1000, 1001, 1500):
                self.same(r, Limited(), (torch.randn(2, t),))
            with self.assertRaises(pt2onnx.Pt2OnnxError):
                self.export(Helped(), torch.randn(2, 9), dynamic_axes={"x": {1: "t"}},
                            verify=verify)

    def test_one_size_is_another(self):
        class Once(nn.Module):
            def forward(self, x):
                return x.view(2, 8).sum(0) if x.shape[0] == 16 else x[:8] * x.shape[0]

        r = self.export(Once(), torch.randn(20), dynamic_axes={"x": {0: "n"}})
        for n in (8, 15, 16, 17, 40):
            self.same(r, Once(), (torch.randn(n),))

    def test_what_is_not_covered_is_said(self):
        class Doubling(nn.Module):
            def forward(self, x):
                step, n = 1, x.shape[1]
                while step < n:
                    x = x + 0.5 * F.pad(x, (step, 0))[:, :n]
                    step *= 2
                return x

        with self.assertWarnsRegex(UserWarning, "t is at most|it needs .*t <= "):
            r = self.export(Doubling(), torch.randn(2, 9), dynamic_axes={"x": {0: "b", 1: "t"}})
        for t in (2, 3, 8, 9, 33, 64):
            self.same(r, Doubling(), (torch.randn(2, t),))


class Refused(Exports):
    """What the captures part on."""

    def refused(self, m, args, axes, words="", **more):
        with self.assertRaisesRegex(pt2onnx.Pt2OnnxError, words):
            self.export(m, args, self.path, dynamic_axes=axes, **more)

    def test_squeeze_at_one(self):
        class Squeezed(nn.Module):
            def forward(self, x):
                return x.squeeze() * 2

        for verify in (True, False):
            self.refused(Squeezed(), torch.randn(1, 4), {"x": {0: "n"}}, verify=verify)

    def test_a_number_that_only_the_source_has(self):
        class Capped(nn.Module):
            def forward(self, x):
                n = float(x.shape[1])           # fixes the axis: no guard is left
                return x * (1.0 if n < 23 else 2.0)

        with self.assertWarnsRegex(UserWarning, "t is at least 23"):
            r = self.export(Capped(), torch.randn(2, 40), dynamic_axes={"x": {1: "t"}})
        self.same(r, Capped(), (torch.randn(2, 23),))

    def test_captures_do_not_run_out(self):
        class Divisors(nn.Module):
            def forward(self, x):
                n = x.shape[1]
                return x * sum(n % k == 0 for k in range(1, n + 1))

        self.refused(Divisors(), torch.randn(2, 12), {"x": {0: "b", 1: "t"}})

    def test_sizes_of_1_are_left_out_where_they_differ(self):
        class Alone(nn.Module):
            def forward(self, x):
                n = x.shape[1]
                ramp = torch.from_numpy(np.arange(n, dtype=np.float32) / n)
                y = x * ramp
                return y if n > 1 else y.cos().flip(0)

        for verify in (True, False):
            r = self.export(Alone(), torch.randn(3, 12), dynamic_axes={"x": {0: "b", 1: "t"}},
                            verify=verify)
            self.assertEqual(r.dims["t"]["min"], 2)
            for shape in (5, 2), (2, 77):
                self.same(r, Alone(), (torch.randn(shape),))

    def test_a_program_that_grows(self):
        class Loop(nn.Module):
            def __init__(self):
                super().__init__()
                self.cell = nn.GRUCell(3, 3)

            def forward(self, x):
                h = x.new_zeros(x.shape[0], 3)
                for t in range(x.shape[1]):
                    h = self.cell(x[:, t], h).tanh()
                return h

        self.refused(Loop(), torch.randn(2, 4, 3), {"x": {0: "b", 1: "t"}})


if __name__ == "__main__":
    warnings.filterwarnings("ignore", category=DeprecationWarning)
    loader, here = unittest.defaultTestLoader, sys.modules["__main__"]
    suite = loader.loadTestsFromNames(sys.argv[1:], here) if sys.argv[1:] else unittest.TestSuite(
        loader.loadTestsFromTestCase(c) for c in (Relations, Names, Honest, Computed, Branches,
                                             Refused))
    result = unittest.TextTestRunner(verbosity=1).run(suite)
    bad = len(result.failures) + len(result.errors)
    print("%d passed, %d failed" % (result.testsRun - bad, bad))
    sys.exit(1 if bad else 0)
