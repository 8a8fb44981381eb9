"""A decoder with a cache, exported once, generates token by token in ONNX Runtime what PyTorch's
own loop does: python generate.py [FOLDER]

The decoder is a small one with random weights: nothing is downloaded.  With a model of transformers
it is the same: give past_key_values=DynamicCache() with one step in it as the example.
"""
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnxruntime
import pt2onnx
import torch
from torch import nn
from torch.nn import functional as F

VOCABULARY, WIDTH, HEADS, LAYERS, LONGEST = 61, 32, 4, 2, 48


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.inner = nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(),
                                   nn.Linear(2 * WIDTH, WIDTH))

    def forward(self, x, past, mask):
        batch, new, _ = x.shape
        heads = lambda t: t.view(batch, new, HEADS, WIDTH // HEADS).transpose(1, 2)
        q, k, v = map(heads, self.qkv(self.first(x)).chunk(3, -1))
        k, v = torch.cat([past[0], k], 2), torch.cat([past[1], v], 2)
        a = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        x = x + self.out(a.transpose(1, 2).reshape(batch, new, WIDTH))
        return x + self.inner(self.second(x)), (k, v)


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(LONGEST, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, input_ids, past_key_values):
        past, new = past_key_values[0][0].shape[2], input_ids.shape[1]
        at = torch.arange(past, past + new)
        x = self.tokens(input_ids) + self.places(at)
        mask = torch.arange(past + new) <= at[:, None]
        present = []
        for layer, old in zip(self.layers, past_key_values):
            x, both = layer(x, old, mask)
            present.append(both)
        return {"logits": self.head(x), "past_key_values": present}


def nothing(batch, past=0):
    return [tuple(torch.randn(batch, HEADS, past, WIDTH // HEADS) for _ in range(2))
            for _ in range(LAYERS)]


def with_pytorch(model, ids, steps):
    past, tokens, logits = nothing(len(ids)), [], []
    for _ in range(steps):
        with torch.no_grad():
            out = model(ids, past)
        past = out["past_key_values"]
        logits.append(out["logits"][:, -1])
        ids = logits[-1].argmax(-1, keepdim=True)
        tokens.append(ids)
    return torch.cat(tokens, 1).numpy(), torch.stack(logits, 1).numpy()


def with_onnx(session, ids, steps):
    ids, tokens, logits = ids.numpy(), [], []
    feeds = {p.name: np.zeros((len(ids), HEADS, 0, WIDTH // HEADS), "f4")
             for p in session.get_inputs() if p.name.startswith("past_key_values.")}
    names = [p.name for p in session.get_outputs()]
    for _ in range(steps):
        out = dict(zip(names, session.run(None, {"input_ids": ids, **feeds})))
        feeds = {n: out[n.replace("past_key_values", "present")] for n in feeds}
        logits.append(out["logits"][:, -1])
        ids = logits[-1].argmax(-1)[:, None]
        tokens.append(ids)
    return np.concatenate(tokens, 1), np.stack(logits, 1)


def main(folder):
    torch.manual_seed(0)
    model, path = Decoder().eval(), str(Path(folder) / "decoder.onnx")
    example = torch.randint(0, VOCABULARY, (2, 4)), nothing(2, past=3)
    pt2onnx.export(model, example, path, verify=False, dynamic_axes={
        "input_ids": {0: "batch", 1: "new"},
        "past_key_values.*": {0: "batch", 2: "past"}, "present.*": {2: "past+new"}})
    session = onnxruntime.InferenceSession(path)
    for batch in 1, 3:
        for prompt in 1, 2, 7, 13:
            ids = torch.randint(0, VOCABULARY, (batch, prompt))
            want, want_logits = with_pytorch(model, ids, 20)
            got, got_logits = with_onnx(session, ids, 20)
            assert (got == want).all(), (batch, prompt)
            assert np.allclose(got_logits, want_logits, atol=1e-4), (batch, prompt)
            print("batch %d, prompt %2d: 20 tokens as PyTorch's, logits differ by %.1e  %s..." % (
                batch, prompt, abs(got_logits - want_logits).max(), got[0, :8]))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(sys.argv[1])
    else:
        with tempfile.TemporaryDirectory() as scratch:
            main(scratch)
