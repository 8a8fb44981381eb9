"""Makes the models of list.txt with PyTorch's exporters and onnx.helper, and the numbers PyTorch gives for them.

usage: make.py [NAME...]; needs torch, onnx and onnxscript.  Each model is exported at fixed sizes; the .npz beside
it holds inputs and outputs at those and at other sizes (s<K>.in.<i>, s<K>.out.<j>).
"""
import math
import os
import sys
import warnings

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import nn
from torch.nn import functional as F

warnings.filterwarnings("ignore")
data = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data")
models = {}


def model(f):
    models[f.__name__] = f
    return f


def record(name, net, cases):
    arrays = {}
    for k, args in enumerate(cases):
        with torch.no_grad():
            out = net(*args)
        out = out if isinstance(out, (tuple, list)) else (out,)
        for i, x in enumerate(args):
            arrays["s%d.in.%d" % (k, i)] = x.numpy()
        for i, x in enumerate(out):
            arrays["s%d.out.%d" % (k, i)] = x.numpy()
    np.savez(os.path.join(data, name + ".npz"), **arrays)


def export(name, net, cases, names, dynamo=True, opset=18, check=True, **more):
    """Exports at the sizes of the first case, fixed."""
    net = net.eval()
    torch.onnx.export(net, cases[0], os.path.join(data, name + ".onnx"), input_names=names, dynamo=dynamo,
                      opset_version=opset, external_data=False, verbose=False, **more)
    m = onnx.load(os.path.join(data, name + ".onnx"))
    for n in m.graph.node:                      # nothing of this machine
        del n.metadata_props[:]
        n.doc_string = ""
    for v in list(m.graph.value_info) + list(m.graph.input) + list(m.graph.output):
        del v.metadata_props[:]
    onnx.save(m, os.path.join(data, name + ".onnx"))
    if check:
        record(name, net, cases)


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(6, 16), nn.Linear(16, 3)

    def forward(self, x):
        return self.b(torch.relu(self.a(x)))


def randoms(*shapes):
    return [torch.randn(*s) if isinstance(s, tuple) else s for s in shapes]


def cases_of(make, sizes):
    return [tuple(make(*s)) for s in sizes]


@model
def mlp():
    export("mlp", Mlp(), cases_of(lambda b: [torch.randn(b, 6)], [(4,), (1,), (7,)]), ["x"])


@model
def mlp_script():
    export("mlp_script", Mlp(), cases_of(lambda b: [torch.randn(b, 6)], [(1,), (4,), (7,)]), ["x"], dynamo=False)


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1, self.bn, self.c2 = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.Conv2d(8, 8, 3, stride=2)
        self.f = nn.Linear(8 * 7 * 7, 5)

    def forward(self, x):
        x = F.max_pool2d(torch.relu(self.bn(self.c1(x))), 2)
        x = torch.relu(self.c2(F.pad(x, (0, 0, 0, 0))))
        return self.f(x.view(x.shape[0], 392))


@model
def conv():
    export("conv", ConvNet(), cases_of(lambda b: [torch.randn(b, 3, 30, 30)], [(2,), (1,), (5,)]), ["x"])


@model
def conv_script():
    export("conv_script", ConvNet(), cases_of(lambda b: [torch.randn(b, 3, 30, 30)], [(2,), (1,), (5,)]), ["x"],
           dynamo=False)


class FullyConv(nn.Module):
    """Any size of image: nothing follows it but the output."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Conv2d(3, 6, 3, padding=1), nn.ConvTranspose2d(6, 2, 2, stride=2)

    def forward(self, x):
        return self.b(F.avg_pool2d(torch.relu(self.a(x)), 2))


@model
def fcn():
    export("fcn", FullyConv(), cases_of(lambda b, h, w: [torch.randn(b, 3, h, w)],
                                        [(2, 12, 10), (1, 8, 8), (3, 14, 6)]), ["x"])


class Attention(nn.Module):
    """Heads written out, as most models have them."""

    def __init__(self, d=12, heads=3):
        super().__init__()
        self.qkv, self.out, self.heads = nn.Linear(d, 3 * d), nn.Linear(d, d), heads

    def forward(self, x):
        b, s, d = x.shape
        q, k, v = self.qkv(x).view(b, s, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        a = torch.softmax(q @ k.transpose(-2, -1) / (d // self.heads) ** 0.5, -1)
        return self.out((a @ v).transpose(1, 2).reshape(b, s, d))


sizes_bs = [(7, 5), (1, 1), (3, 7), (4, 2)]


def make_bsd(b, s):
    return [torch.randn(b, s, 12)]


@model
def attention():
    export("attention", Attention(), cases_of(make_bsd, sizes_bs), ["x"])


@model
def attention_script():
    export("attention_script", Attention(), cases_of(make_bsd, sizes_bs), ["x"], dynamo=False)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.TransformerEncoderLayer(12, 3, 24, batch_first=True, dropout=0.0)

    def forward(self, x):
        return self.l(x)


@model
def transformer():
    net = Layer().train()                       # the slow path, whose operators export
    net.eval = lambda: net
    export("transformer", net, cases_of(make_bsd, sizes_bs), ["x"])


@model
def transformer_script():
    net = Layer().train()
    net.eval = lambda: net
    export("transformer_script", net, cases_of(make_bsd, sizes_bs), ["x"], dynamo=False)


class Recurrent(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.r, self.f = kind(6, 8, batch_first=True), nn.Linear(8, 2)

    def forward(self, x):
        y, _ = self.r(x)
        return self.f(y)


def make_bs6(b, s):
    return [torch.randn(b, s, 6)]


@model
def lstm_script():
    export("lstm_script", Recurrent(nn.LSTM), cases_of(make_bs6, sizes_bs), ["x"], dynamo=False)


@model
def lstm():
    export("lstm", Recurrent(nn.LSTM), cases_of(make_bs6, sizes_bs), ["x"])


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.d1, self.d2 = nn.Conv2d(3, 4, 3, padding=1), nn.Conv2d(4, 8, 3, padding=1)
        self.up = nn.Conv2d(12, 2, 3, padding=1)

    def forward(self, x):
        a = torch.relu(self.d1(x))
        b = torch.relu(self.d2(F.max_pool2d(a, 2)))
        b = F.interpolate(b, size=a.shape[2:], mode="bilinear", align_corners=False)
        return self.up(torch.cat([a, b], 1))


sizes_bhw = [(2, 13, 10), (1, 8, 8), (3, 6, 17)]


def make_image(b, h, w):
    return [torch.randn(b, 3, h, w)]


@model
def unet():
    export("unet", UNet(), cases_of(make_image, sizes_bhw), ["x"])


@model
def unet_script():
    export("unet_script", UNet(), cases_of(make_image, sizes_bhw), ["x"], dynamo=False)


class Positions(nn.Module):
    """A table of as many rows as the sequence is long: it fixes the length."""

    def __init__(self):
        super().__init__()
        self.p, self.f = nn.Parameter(torch.randn(1, 5, 12)), nn.Linear(12, 4)

    def forward(self, x):
        return self.f(x + self.p)


@model
def table():
    export("table", Positions(), cases_of(make_bsd, [(2, 5), (1, 5), (6, 5)]), ["x"])


class Bert(nn.Module):
    """Token, position and type embeddings: positions and types are made from the sizes."""

    def __init__(self):
        super().__init__()
        self.t, self.p, self.k = nn.Embedding(20, 12), nn.Embedding(32, 12), nn.Embedding(2, 12)
        self.n, self.a = nn.LayerNorm(12), Attention()
        self.register_buffer("ids", torch.arange(32)[None])

    def forward(self, x):
        s = x.shape[1]
        kinds = torch.zeros(x.shape, dtype=torch.long)
        return self.a(self.n(self.t(x) + self.p(self.ids[:, :s]) + self.k(kinds)))


def make_tokens(b, s):
    return [torch.randint(0, 20, (b, s))]


@model
def bert():
    """The exporter looks the positions up in advance: rows for other lengths are not in the file."""
    net = Bert()
    export("bert", net, cases_of(make_tokens, sizes_bs), ["x"], check=False)
    record("bert_batch", net, cases_of(make_tokens, [(7, 5), (1, 5), (3, 5)]))


@model
def bert_script():
    export("bert_script", Bert(), cases_of(make_tokens, sizes_bs), ["x"], dynamo=False)


class Causal(nn.Module):
    """A mask for the longest sequence, cut to this one's length: the exporters cut it in advance."""

    def __init__(self, d=12, heads=3):
        super().__init__()
        self.e, self.qkv, self.heads = nn.Embedding(20, d), nn.Linear(d, 3 * d), heads
        self.register_buffer("mask", torch.tril(torch.ones(16, 16)).view(1, 1, 16, 16))

    def forward(self, x):
        b, s = x.shape
        q, k, v = (y.view(b, s, self.heads, -1).transpose(1, 2) for y in self.qkv(self.e(x)).split(12, 2))
        a = (q @ k.transpose(-2, -1)).masked_fill(self.mask[:, :, :s, :s] == 0, float("-inf"))
        return (a.softmax(-1) @ v).transpose(1, 2).reshape(b, s, 12)


@model
def causal():
    export("causal", Causal(), cases_of(make_tokens, [(1, 5), (3, 7), (2, 1), (1, 16)]), ["x"])


@model
def causal_script():
    export("causal_script", Causal(), cases_of(make_tokens, [(7, 5), (3, 7), (2, 1), (1, 16)]), ["x"], dynamo=False)


class Tokens(nn.Module):
    """A learned token put before all others, repeated for the batch."""

    def __init__(self):
        super().__init__()
        self.p, self.cls = nn.Conv2d(3, 12, 4, 4), nn.Parameter(torch.randn(1, 1, 12))

    def forward(self, x):
        x = self.p(x).flatten(2).transpose(1, 2)
        return torch.cat([self.cls.expand(x.shape[0], -1, -1), x], 1).mean(1)


@model
def tokens():
    export("tokens", Tokens(), cases_of(lambda b: [torch.randn(b, 3, 8, 12)], [(1,), (7,), (2,)]), ["x"])


@model
def tokens_script():
    export("tokens_script", Tokens(), cases_of(lambda b: [torch.randn(b, 3, 8, 12)], [(7,), (1,), (2,)]), ["x"],
           dynamo=False)


class Shifts(nn.Module):
    def forward(self, x):
        return (x[:, :-1] + x[:, 1:], F.pad(x, (1, 2)), x.repeat(1, 2, 1), x.flip(1), x[:, -1],
                torch.stack([x, x], 1).reshape(x.shape[0] * 2, x.shape[1], 6), x.unsqueeze(1).expand(-1, 3, -1, -1))


@model
def shifts():
    export("shifts", Shifts(), cases_of(make_bs6, [(13, 17), (1, 2), (3, 9)]), ["x"])


@model
def shifts_script():
    export("shifts_script", Shifts(), cases_of(make_bs6, [(13, 17), (1, 2), (3, 9)]), ["x"], dynamo=False)


@model
def shifts_old():
    export("shifts_old", Shifts(), cases_of(make_bs6, [(13, 17)]), ["x"], dynamo=False, opset=11, check=False)


class Numbers(nn.Module):
    """Numbers that no size made, as far as sizes of 73 and 131 show."""

    def forward(self, x):
        return F.gelu(x[:, 5:] * 0.125 + 3) / math.sqrt(6), x.topk(2, dim=1).values.clamp(max=2.5), x[:, 2]


@model
def numbers():
    for name, dynamo in (("numbers", True), ("numbers_script", False)):
        export(name, Numbers(), cases_of(make_bs6, [(73, 131)]), ["x"], dynamo=dynamo, check=False)
        record(name, Numbers(), cases_of(make_bs6, [(2, 7), (1, 8), (3, 11)]))


class Made(nn.Module):
    """One of many ways to make a number of a size."""

    def __init__(self, how):
        super().__init__()
        self.how = how

    def forward(self, x):
        return self.how(x)


made = {
    "middle": lambda x: x[:, x.shape[1] // 2],
    "divided": lambda x: x / x.shape[1],
    "rooted": lambda x: x / math.sqrt(x.shape[1]),
    "logarithm": lambda x: x * (math.log(x.shape[1] + 1) / math.log(32)),
    "bounded": lambda x: x.clamp(max=x.shape[1] - 1),
    "padded": lambda x: F.pad(x, (0, 0, 0, -x.shape[1] % 8)),
    "pooled": lambda x: F.avg_pool1d(x.transpose(1, 2), x.shape[1]),
    "largest": lambda x: x.topk(x.shape[1] // 2, dim=1).values,
    "shape": lambda x: (x * 2, torch.tensor(x.shape)),
    "steps": lambda x: x[:, :, :1] - torch.linspace(0, 1, x.shape[1] // 2),
}


@model
def numbers_made():
    for name, how in made.items():
        export("made_" + name, Made(how), cases_of(make_bs6, [(7, 11)]), ["x"], check=False)


class Cross(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.MultiheadAttention(12, 3, batch_first=True)

    def forward(self, q, k):
        return self.a(q, k, k, need_weights=False)[0]


@model
def cross():
    """Two inputs that share their batch."""
    export("cross", Cross(), cases_of(lambda b, s, t: [torch.randn(b, s, 12), torch.randn(b, t, 12)],
                                      [(7, 5, 11), (2, 3, 1), (1, 4, 4)]), ["q", "k"])


@model
def cross_dynamic():
    """Says that the keys' length is dynamic, and has it in a Reshape."""
    net = Cross()
    cases = cases_of(lambda b, s, t: [torch.randn(b, s, 12), torch.randn(b, t, 12)], [(7, 5, 11), (2, 3, 11)])
    export("cross_dynamic", net, cases, ["q", "k"], dynamo=False,
           dynamic_axes={"q": {0: "batch", 1: "queries"}, "k": {0: "batch", 1: "keys"}})


@model
def gru():
    export("gru", Recurrent(lambda *a, **k: nn.GRU(*a, **k)), cases_of(make_bs6, [(1, 5), (3, 2), (2, 7)]), ["x"])


class Mean(nn.Module):
    """The number of elements is a constant in the file, and may be any other number that is 5."""

    def forward(self, x):
        return x.sum(1) / x.shape[1]


@model
def mean():
    export("mean", Mean(), cases_of(make_bs6, [(7, 5)]), ["x"], check=False)


class Unfold(nn.Module):
    """Windows by indices that were computed from the size."""

    def forward(self, x):
        return F.unfold(x, 2, stride=2)


@model
def unfold():
    export("unfold", Unfold(), cases_of(make_image, [(5, 14, 22)]), ["x"], check=False)


@model
def resized():
    """Freed and given another number in one go."""
    net = Attention()
    export("resized", net, cases_of(make_bsd, [(7, 5)]), ["x"], check=False)
    record("resized", net, cases_of(make_bsd, [(4, 5), (4, 1), (4, 9)]))


@model
def dynamic():
    """Exported dynamic already: dims are renamed and pinned."""
    b, s = torch.export.Dim("b", max=100), torch.export.Dim("s", max=100)
    net = Attention()
    export("dynamic", net, cases_of(make_bsd, [(2, 5), (1, 3), (4, 5), (4, 2)]), ["x"],
           dynamic_shapes=({0: b, 1: s},))
    record("dynamic_pinned", net, cases_of(make_bsd, [(4, 5), (4, 1), (4, 9)]))


@model
def dynamic_script():
    export("dynamic_script", Attention(), cases_of(make_bsd, [(2, 5), (1, 3), (4, 5)]), ["x"], dynamo=False,
           dynamic_axes={"x": {0: "b", 1: "s"}})


def save(name, nodes, inputs, outputs, inits=(), opset=18, **more):
    imports = [helper.make_opsetid("", opset)] + [helper.make_opsetid(d, 1) for d in more.pop("domains", [])]
    g = helper.make_graph(nodes, "g", inputs, outputs, list(inits), **{k: more.pop(k) for k in ("value_info", "sparse_initializer") if k in more})
    m = helper.make_model(g, opset_imports=imports, ir_version=8, producer_name="by hand", **more)
    return m


def f32(name, *shape):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def ints(name, *v):
    return numpy_helper.from_array(np.array(v, np.int64), name)


def floats(name, a):
    return numpy_helper.from_array(np.asarray(a, np.float32), name)


def put(name, m):
    onnx.save(m, os.path.join(data, name + ".onnx"))


@model
def branch():
    """If and Loop with sizes in their bodies."""
    yes = helper.make_graph([helper.make_node("Reshape", ["x", "flat"], ["y1"], name="flatten")], "yes", [],
                            [f32("y1", 37, 8)])
    no = helper.make_graph([helper.make_node("Constant", [], ["to"], value=ints("", 37, 8)),
                            helper.make_node("Reshape", ["x", "to"], ["y0"]), helper.make_node("Neg", ["y0"], ["y2"])],
                           "no", [], [f32("y2", 37, 8)])
    body = helper.make_graph(
        [helper.make_node("Reshape", ["acc", "flat"], ["same"]), helper.make_node("Add", ["same", "z"], ["next"]),
         helper.make_node("Identity", ["cond"], ["cond_out"])], "body",
        [helper.make_tensor_value_info("i", TensorProto.INT64, []), helper.make_tensor_value_info("cond", TensorProto.BOOL, []),
         f32("acc", 37, 8)],
        [helper.make_tensor_value_info("cond_out", TensorProto.BOOL, []), f32("next", 37, 8)])
    m = save("branch", [
        helper.make_node("ReduceSum", ["x"], ["sum"], keepdims=0),
        helper.make_node("Greater", ["sum", "zero"], ["positive"]),
        helper.make_node("If", ["positive"], ["z"], then_branch=yes, else_branch=no, name="choose"),
        helper.make_node("Loop", ["trips", "go", "z"], ["y"], body=body, name="repeat")],
        [f32("x", 37, 2, 4)], [f32("y", 37, 8)],
        [ints("flat", 37, 8), floats("zero", 0), numpy_helper.from_array(np.array(4, np.int64), "trips"),
         numpy_helper.from_array(np.array(True), "go")],
        value_info=[f32("z", 37, 8)])
    put("branch", m)

    def net(x):
        z = x.reshape(x.shape[0], 8)
        z = z if x.sum() > 0 else -z
        return z * 5
    record("branch", net, cases_of(lambda b: [torch.randn(b, 2, 4)], [(37,), (1,), (5,), (6,)]))


@model
def outside():
    """Weights in a file of their own, and things to keep: documentation, metadata, another domain."""
    w = floats("w", np.linspace(-1, 1, 40 * 20).reshape(40, 20))
    m = save("outside", [helper.make_node("Reshape", ["x", "to"], ["r"], name="join", doc_string="a note"),
                         helper.make_node("MatMul", ["r", "w"], ["m"], name="times"),
                         helper.make_node("Add", ["m", "bias"], ["y"])],
             [f32("x", 3, 8, 5)], [f32("y", 3, 20)],
             [w, ints("to", 3, 40), floats("bias", np.arange(20))], value_info=[f32("r", 3, 40), f32("m", 3, 20)],
             domains=["org.example"])
    m.doc_string = "documentation of the model"
    m.metadata_props.add(key="author", value="somebody")
    m.graph.doc_string = "documentation of the graph"
    onnx.save_model(m, os.path.join(data, "outside.onnx"), save_as_external_data=True, location="outside.onnx.data",
                    size_threshold=1000, convert_attribute=False)
    wt, bt = torch.from_numpy(numpy_helper.to_array(w)), torch.arange(20, dtype=torch.float32)
    record("outside", lambda x: x.reshape(x.shape[0], 40) @ wt + bt,
           cases_of(lambda b: [torch.randn(b, 8, 5)], [(3,), (1,), (6,)]))


def custom_model(first):
    """org.example.Scale doubles its input; as a function of the model it can run."""
    scale = helper.make_function("org.example", "Scale", ["a"], ["b"], [helper.make_node("Add", ["a", "a"], ["b"])],
                                 [helper.make_opsetid("", 18)])
    nodes = [helper.make_node("Scale", ["x" if first else "w"], ["d"], domain="org.example", name="double"),
             helper.make_node("Reshape", ["d", "to"] if first else ["x", "to"], ["r"]),
             helper.make_node("Mul", ["r", "w" if first else "d"], ["y"])]
    return save("custom", nodes, [f32("x", 3, 2, 4)], [f32("y", 3, 8)],
                [floats("w", np.arange(8)), ints("to", 3, 8)],
                value_info=[f32("d", 3, 2, 4) if first else f32("d", 8)], domains=["org.example"], functions=[scale])


@model
def custom():
    put("custom_first", custom_model(True))     # it sees the dynamic axis: refused
    put("custom", custom_model(False))          # it sees a weight only
    w = torch.arange(8, dtype=torch.float32)
    record("custom", lambda x: x.reshape(x.shape[0], 8) * (w + w),
           cases_of(lambda b: [torch.randn(b, 2, 4)], [(3,), (1,), (6,)]))


@model
def quantised():
    """QuantizeLinear and DequantizeLinear around a product, sizes in a Reshape and a Slice."""
    m = save("quantised", [
        helper.make_node("QuantizeLinear", ["x", "scale", "zp"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "scale", "zp"], ["d"]),
        helper.make_node("Slice", ["d", "from", "to", "axes"], ["all"], name="everything"),
        helper.make_node("Transpose", ["all"], ["t"], perm=[1, 0, 2]),
        helper.make_node("Reshape", ["t", "shape"], ["y"])],
        [f32("x", 2, 5, 4)], [f32("y", 5, 8)],
        [floats("scale", 0.05), numpy_helper.from_array(np.array(3, np.int8), "zp"), ints("from", 0), ints("to", 2**63 - 1),
         ints("axes", 1), ints("shape", 5, 8)])
    put("quantised", m)
    record("quantised", lambda x: torch.fake_quantize_per_tensor_affine(x, 0.05, 3, -128, 127).transpose(0, 1).reshape(x.shape[1], 8),
           cases_of(lambda s: [torch.randn(2, s, 4)], [(5,), (1,), (9,)]))


@model
def old():
    """Opset 11: axes are attributes, and only what needs no new nodes can change."""
    m = save("old", [helper.make_node("Unsqueeze", ["x"], ["u"], axes=[1]),
                     helper.make_node("ReduceMean", ["u"], ["m"], axes=[3], keepdims=0),
                     helper.make_node("Squeeze", ["m"], ["y"], axes=[1])],
             [f32("x", 2, 5, 4)], [f32("y", 2, 5)], opset=11)
    put("old", m)
    record("old", lambda x: x.mean(2), cases_of(lambda b, s: [torch.randn(b, s, 4)], [(2, 5), (1, 1), (3, 6)]))


@model
def ambiguous():
    """4 is the batch or the number of groups: one file cannot tell."""
    m = save("ambiguous", [helper.make_node("Expand", ["w", "to"], ["y"], name="repeat"),
                           helper.make_node("ReduceMean", ["x"], ["m"], keepdims=1),
                           helper.make_node("Add", ["y", "m"], ["z"])],
             [f32("x", 4, 3)], [f32("z", 4, 7)], [floats("w", np.ones((1, 7))), ints("to", 4, 7)], opset=13)
    put("ambiguous", m)


@model
def cut():
    """All but the last, or the first four?"""
    put("cut", save("cut", [helper.make_node("Slice", ["x", "from", "to", "axes"], ["y"], name="shorten")],
                    [f32("x", 7, 5)], [f32("y", 7, 4)], [ints("from", 0), ints("to", 4), ints("axes", 1)]))


@model
def sparse():
    """A sparse weight, an input without a shape, an unused output of a node."""
    values = helper.make_tensor("w", TensorProto.FLOAT, [2], [1.5, -2.0])
    index = helper.make_tensor("w_index", TensorProto.INT64, [2], [1, 5])
    m = save("sparse", [helper.make_node("MatMul", ["x", "w"], ["p"]),
                        helper.make_node("Dropout", ["p"], ["d", ""]),
                        helper.make_node("Reshape", ["d", "to"], ["y"])],
             [f32("x", 3, 4)], [f32("y", 3, 2, 1)], [ints("to", 3, 2, 1)],
             sparse_initializer=[helper.make_sparse_tensor(values, index, [4, 2])])
    put("sparse", m)
    w = torch.zeros(8)
    w[1], w[5] = 1.5, -2.0
    record("sparse", lambda x: (x @ w.reshape(4, 2)).reshape(x.shape[0], 2, 1),
           cases_of(lambda b: [torch.randn(b, 4)], [(3,), (1,), (6,)]))
    free = helper.make_tensor_value_info("x", TensorProto.FLOAT, None)
    put("unranked", save("unranked", [helper.make_node("Relu", ["x"], ["y"])], [free],
                         [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]))


def traced(op, ins, outs, line=None, call=None, made=None, rule=None, library=False, **attrs):
    """A node with what PyTorch's newer exporter writes beside it: the line of source, the traced call."""
    n = helper.make_node(op, ins, outs, **attrs)
    says = {}
    if line:
        says["pkg.torch.onnx.stack_trace"] = 'File "/home/me/net.py", line 8, in forward\n    ' + line
        inner = "torch.nn.modules.conv.Conv2d" if library else "net.Net"
        says["pkg.torch.onnx.class_hierarchy"] = "['net.Net', '%s', 'aten.%s.default']" % (inner, op.lower())
    if call:
        aten, args = call.split("(", 1)
        says["pkg.torch.onnx.fx_node"] = ("%%%s : [num_users=1] = call_function[target=torch.ops.aten.%s.default](args = (%s, "
                                          "kwargs = {})" % (made or outs[0], aten, args))
    if rule:
        says["pkg.onnxscript.rewriter.rule_name"] = rule
    for key, value in says.items():
        n.metadata_props.add(key=key, value=value)
    return n


def scaled(line):
    return [traced("Mul", ["x", "three"], ["y"], line, "mul(%x, 3.0)")], [floats("three", 3.0)]


def reshaped(line, *then):
    return [traced("Reshape", ["x", "to"], ["v"], line, line and "view(%x, [7, 1, 11])"), *then], [ints("to", 7, 1, 11)]


def tried_shapes():
    return cases_of(lambda b, s: [torch.randn(b, s)], [(7, 11), (2, 3), (4, 10)])


@model
def ones():
    """A 1 beside a dynamic size is one where the line or its use says so; or what divides the size."""
    squeeze = [helper.make_node("Relu", ["v"], ["r"]), helper.make_node("Squeeze", ["r", "one"], ["y"])]
    nodes, inits = reshaped(None)
    put("one_divides", save("m", nodes, [f32("x", 7, 11)], [f32("v", 7, 1, 11)], inits))
    nodes, inits = reshaped("return x.view(b, rows, t // rows).transpose(1, 2)")
    put("one_computed", save("m", nodes, [f32("x", 7, 11)], [f32("v", 7, 1, 11)], inits))
    nodes, inits = reshaped("return x.view(b, 1, t)")
    put("one_said", save("m", nodes, [f32("x", 7, 11)], [f32("v", 7, 1, 11)], inits))
    record("one_said", lambda x: x[:, None], tried_shapes())
    nodes, inits = reshaped(None, *squeeze)
    put("one_squeezed", save("m", nodes, [f32("x", 7, 11)], [f32("y", 7, 11)], inits + [ints("one", 1)]))
    record("one_squeezed", torch.relu, tried_shapes())
    put("one_made", save("m", [helper.make_node("Add", ["x", "w"], ["y"])], [f32("x", 7, 1, 8)], [f32("y", 7, 1, 8)],
                         [floats("w", np.zeros((1, 1, 1)))]))
    put("one_tiled", save("m", [traced("Expand", ["x", "ones"], ["e"], "return x.repeat(2, 3)", "repeat(%x, [2, 3])"),
                                traced("Tile", ["e", "times"], ["y"], "return x.repeat(2, 3)", "repeat(%x, [2, 3])")],
                          [f32("x", 7, 11)], [f32("y", 14, 33)], [ints("ones", 1, 1), ints("times", 2, 3)]))
    record("one_tiled", lambda x: x.repeat(2, 3), tried_shapes())


@model
def lines():
    """Numbers that the line and the call have are numbers; what only the exporter knows is weighed."""
    for name, line in ("said", "return x * 3"), ("unsaid", "return x * n"):
        nodes, inits = scaled(line)
        put("line_" + name, save("m", nodes, [f32("x", 7, 11)], [f32("y", 7, 11)], inits))
    record("line_said", lambda x: x * 3, tried_shapes())
    put("left_out", save("m", [traced("Tanh", ["x"], ["y"], "return (x * k).tanh()", "tanh(%mul)")], [f32("x", 7, 11)],
                         [f32("y", 7, 11)]))
    put("left_out_last", save("m", [traced("Tanh", ["x"], ["mul"], "return x.tanh() * k", "tanh(%x)", made="tanh")],
                              [f32("x", 7, 11)], [f32("mul", 7, 11)]))
    step = "x = walk @ x"
    put("unrolled", save("m", [traced("MatMul", ["w", "x"], ["a"], step, "matmul(%w, %x)"),
                               traced("MatMul", ["w", "a"], ["y"], step, "matmul(%w, %a)")],
                         [f32("w", 7, 7), f32("x", 7, 5)], [f32("y", 7, 5)]))
    fused = traced("Conv", ["x", "w"], ["y"], "return self.conv(x)", "conv2d(%pad, %p_w, None, [2])", rule="FuseConvPad",
                   library=True, pads=[2, 2], strides=[2])
    weights = floats("w", np.random.RandomState(1).randn(3, 2, 5))
    put("pad_fused", save("m", [fused], [f32("x", 7, 2, 11)], [f32("y", 7, 3, 6)], [weights]))
    computed = traced("Conv", ["x", "w"], ["y"], "return F.conv1d(x, self.w, padding=d)", "conv1d(%x, %p_w, None, [1], [2])",
                      pads=[2, 2])
    put("pad_unsaid", save("m", [computed], [f32("x", 7, 2, 11)], [f32("y", 7, 3, 11)], [weights]))


@model
def bare():
    """Without lines: windows of forward() itself, a count that is added, a factor that does nothing, infinity."""
    for name, label in ("window_own", "/AveragePool"), ("window_module", "/pool/AveragePool"):
        pool = helper.make_node("AveragePool", ["x"], ["y"], name=label, kernel_shape=[2], strides=[1])
        put(name, save("m", [pool], [f32("x", 7, 4, 11)], [f32("y", 7, 4, 10)]))
    record("window_module", lambda x: F.avg_pool1d(x, 2, 1),
           cases_of(lambda b, s: [torch.randn(b, 4, s)], [(7, 11), (2, 3), (4, 10)]))
    for name, op, v in ("count_added", "Add", 2), ("factor_idle", "Mul", 1), ("bound_infinite", "Max", -np.inf):
        put(name, save("m", [helper.make_node(op, ["x", "v"], ["y"])], [f32("x", 7, 11)], [f32("y", 7, 11)],
                       [floats("v", v)]))
    record("bound_infinite", lambda x: x, tried_shapes())
    put("blocks", save("m", [helper.make_node("Col2Im", ["x", "image", "block"], ["c"], strides=[1, 4]),
                             helper.make_node("Div", ["c", "table"], ["y"])], [f32("x", 7, 8, 11)], [f32("y", 7, 1, 1, 48)],
                       [ints("image", 1, 48), ints("block", 1, 8),
                        floats("table", np.random.RandomState(1).rand(1, 1, 1, 48))]))


if __name__ == "__main__":
    os.makedirs(data, exist_ok=True)
    for name, make in models.items():
        if not sys.argv[1:] or name in sys.argv[1:]:
            torch.manual_seed(1)
            make()
            print(name)
