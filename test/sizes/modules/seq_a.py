"""Text models: positions, masks, relative distances, attention windows, ids, pooling."""
import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from case import case


def causal_mask(n):
    return torch.triu(torch.full((n, n), float("-inf")), diagonal=1)


def sinusoid(n, d):
    position = torch.arange(n).unsqueeze(1)
    div = torch.exp(torch.arange(0, d, 2) * (-math.log(10000.0) / d))
    table = torch.zeros(n, d)
    table[:, 0::2] = torch.sin(position * div)
    table[:, 1::2] = torch.cos(position * div)
    return table


def split_heads(x, heads):
    b, t, c = x.shape
    return x.view(b, t, heads, c // heads).transpose(1, 2)


def merge_heads(x):
    b, h, t, d = x.shape
    return x.transpose(1, 2).reshape(b, t, h * d)


@case("ids: i64[b, t] < 50", most={"t": 64})
class TextLearnedPositions(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok = nn.Embedding(50, 8)
        self.pos = nn.Embedding(64, 8)
        self.norm = nn.LayerNorm(8)

    def forward(self, ids):
        positions = torch.arange(ids.shape[1], device=ids.device)
        return self.norm(self.tok(ids) + self.pos(positions))


@case("x: f32[b, t, 8]", most={"t": 96})
class TextSinusoidBuffer(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("pe", sinusoid(96, 8).unsqueeze(0))
        self.proj = nn.Linear(8, 8)

    def forward(self, x):
        x = x * math.sqrt(8) + self.pe[:, :x.size(1)]
        return self.proj(x)


@case("x: f32[t, b, 8]")
class TextSinusoidBuiltPerCall(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(8, 6)

    def forward(self, x):
        pe = sinusoid(x.size(0), x.size(2)).to(x.dtype)
        return self.proj(x + pe.unsqueeze(1))


@case("x: f32[b, t, 8]")
class TextSinusoidNumpy(nn.Module):
    def angles(self, n, d):
        pos = np.arange(n)[:, np.newaxis]
        i = np.arange(d)[np.newaxis, :]
        rads = pos / np.power(10000, (2 * (i // 2)) / np.float32(d))
        rads[:, 0::2] = np.sin(rads[:, 0::2])
        rads[:, 1::2] = np.cos(rads[:, 1::2])
        return torch.tensor(rads, dtype=torch.float32)

    def forward(self, x):
        return torch.tanh(x) + self.angles(x.shape[1], x.shape[2])


@case("x: f32[b, t, 16]")
class TextCausalSelfAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.n_head = 4
        self.qkv = nn.Linear(16, 48)
        self.out = nn.Linear(16, 16)

    def forward(self, x):
        B, T, C = x.size()
        q, k, v = self.qkv(x).split(C, dim=2)
        k = k.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        q = q.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        v = v.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        att = att + causal_mask(T)
        y = F.softmax(att, dim=-1) @ v
        return self.out(y.transpose(1, 2).contiguous().view(B, T, C))


@case("x: f32[b, t, 8]", most={"t": 80})
class TextCausalBiasBuffer(nn.Module):
    block_size = 80

    def __init__(self):
        super().__init__()
        tril = torch.tril(torch.ones(self.block_size, self.block_size, dtype=torch.uint8))
        self.register_buffer("bias", tril.view(1, self.block_size, self.block_size))
        self.key = nn.Linear(8, 8, bias=False)
        self.query = nn.Linear(8, 8, bias=False)

    def forward(self, x):
        T = x.shape[1]
        wei = self.query(x) @ self.key(x).transpose(-2, -1) * 8 ** -0.5
        wei = wei.masked_fill(self.bias[:, :T, :T] == 0, float("-inf"))
        return F.softmax(wei, dim=-1) @ x


@case("x: f32[b, t, 16]")
class TextSdpaCausal(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(16, 48)

    def forward(self, x):
        q, k, v = (split_heads(y, 2) for y in self.qkv(x).chunk(3, dim=-1))
        return merge_heads(F.scaled_dot_product_attention(q, k, v, is_causal=True))


@case("x: f32[b, t, 8]")
class TextLocalWindowMask(nn.Module):
    def __init__(self, window=5):
        super().__init__()
        self.window = window
        self.v = nn.Linear(8, 8)

    def forward(self, x):
        n = x.shape[1]
        i = torch.arange(n)[:, None]
        j = torch.arange(n)[None, :]
        keep = (i - j).abs() <= self.window // 2
        score = x @ x.transpose(1, 2) / math.sqrt(8)
        score = score.masked_fill(~keep, -1e9)
        return score.softmax(-1) @ self.v(x)


@case("x: f32[b, t, 8]")
class TextSlidingCausalWindow(nn.Module):
    sliding_window = 4

    def forward(self, x):
        t = x.size(1)
        mask = torch.ones(t, t, dtype=torch.bool).tril()
        mask = mask & ~torch.ones(t, t, dtype=torch.bool).tril(-self.sliding_window)
        return F.scaled_dot_product_attention(x, x, x, attn_mask=mask)


@case("x: f32[b, t, 8]")
class TextAlibiBias(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads = 4
        self.register_buffer("slopes", torch.tensor([2 ** (-2.0 * (h + 1)) for h in range(4)]))

    def forward(self, x):
        t = x.shape[-2]
        q = split_heads(x, self.heads)
        distance = torch.arange(t)[None, :] - torch.arange(t)[:, None]
        bias = self.slopes[:, None, None] * distance.clamp(max=0)
        score = q @ q.transpose(-1, -2) / math.sqrt(q.shape[-1]) + bias
        return merge_heads(score.softmax(-1) @ q)


class T5Bucket:
    def __init__(self, buckets, furthest):
        self.buckets, self.furthest = buckets, furthest

    def __call__(self, distance):
        half = self.buckets // 2
        out = (distance > 0).long() * half
        n = distance.abs()
        exact = half // 2
        scale = (half - exact) / math.log(self.furthest / exact)
        far = exact + (torch.log(n.float().clamp(min=1) / exact) * scale).long()
        far = torch.min(far, torch.full_like(far, half - 1))
        return out + torch.where(n < exact, n, far)


@case("x: f32[b, t, 8]")
class TextT5RelativeBuckets(nn.Module):
    def __init__(self):
        super().__init__()
        self.bucket = T5Bucket(16, 37)
        self.table = nn.Embedding(16, 2)

    def forward(self, x):
        t = x.shape[1]
        distance = torch.arange(t)[None] - torch.arange(t)[:, None]
        bias = self.table(self.bucket(distance)).permute(2, 0, 1)
        q = split_heads(x, 2)
        return merge_heads((q @ q.mT + bias).softmax(-1) @ q)


@case("x: f32[b, t, 8]")
class TextClippedRelativePositions(nn.Module):
    def __init__(self, max_distance=6):
        super().__init__()
        self.max_distance = max_distance
        self.table = nn.Parameter(torch.randn(2 * max_distance + 1, 8))

    def forward(self, x):
        n = x.size(1)
        index = [[max(-self.max_distance, min(self.max_distance, j - i)) + self.max_distance
                  for j in range(n)] for i in range(n)]
        rel = self.table[torch.tensor(index)]
        score = x @ x.transpose(1, 2) + torch.einsum("bid,ijd->bij", x, rel)
        return (score / 4).softmax(-1) @ x


@case("x: f32[b, t, 8]", most={"t": 64})
class TextShawWindowOfTable(nn.Module):
    def __init__(self):
        super().__init__()
        self.max_len = 64
        self.rel = nn.Parameter(torch.randn(2 * 64 - 1, 8) * 0.5)

    def skew(self, y, t):
        b = y.shape[0]
        y = F.pad(y, (0, 1)).reshape(b, -1)
        y = F.pad(y, (0, t - 1))
        return y.view(b, t + 1, 2 * t - 1)[:, :t, t - 1:]

    def forward(self, x):
        t = x.shape[1]
        start = self.max_len - t
        rel = self.rel[start:start + 2 * t - 1]
        score = self.skew(x @ rel.T, t)
        return (score + x @ x.mT).div(math.sqrt(8)).softmax(-1) @ x


@case("x: f32[b, t, 8]")
class TextRotary(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("inv_freq", 1.0 / (10000 ** (torch.arange(0, 8, 2).float() / 8)))

    @staticmethod
    def rotate_half(x):
        a, b = x[..., :x.shape[-1] // 2], x[..., x.shape[-1] // 2:]
        return torch.cat((-b, a), dim=-1)

    def forward(self, x):
        t = torch.arange(x.shape[1], dtype=self.inv_freq.dtype)
        freqs = torch.outer(t, self.inv_freq)
        emb = torch.cat((freqs, freqs), dim=-1)
        return x * emb.cos() + self.rotate_half(x) * emb.sin()


@case("q: f32[b, t, 8]", "k: f32[b, past + t, 8]", least={"past": 1})
class TextRotaryWithOffset(nn.Module):
    def rope(self, x, start):
        n = x.shape[1]
        inv = 1.0 / 100 ** (torch.arange(4) / 4)
        angle = (torch.arange(n) + start)[:, None] * inv
        a, b = x.chunk(2, dim=-1)
        return torch.cat([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], -1)

    def forward(self, q, k):
        past = k.size(1) - q.size(1)
        return (self.rope(q, past) @ self.rope(k, 0).mT / 8 ** 0.5).softmax(-1) @ k


@case("x: f32[b, t, 8]")
class TextRotaryNtkScaled(nn.Module):
    trained = 16

    def forward(self, x):
        t, d = x.shape[1:]
        base = 10000.0
        if t > self.trained:
            base = base * (2 * t / self.trained - 1) ** (d / (d - 2))
        inv = 1.0 / base ** (torch.arange(0, d, 2) / d)
        angle = torch.arange(t)[:, None] * inv[None]
        even, odd = x[..., 0::2], x[..., 1::2]
        out = torch.stack((even * angle.cos() - odd * angle.sin(),
                           even * angle.sin() + odd * angle.cos()), dim=-1)
        return out.flatten(-2)


@case("q: f32[b, t, 8]", "k: f32[b, s, 8]")
class TextLogLengthScale(nn.Module):
    def forward(self, q, k):
        scale = math.log(k.shape[1] + 1) / math.log(32) / math.sqrt(q.shape[-1])
        return torch.softmax(q @ k.transpose(1, 2) * scale, -1) @ k


@case("x: f32[b, t, 8]")
class TextInverseSqrtLength(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)

    def forward(self, x):
        return self.fc(x).relu().sum(1) / math.sqrt(x.shape[1])


@case("ids: i64[b, t] < 30", "mask: bool[b, t]")
class TextMaskedMeanPool(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(30, 6)

    def forward(self, ids, mask):
        m = mask.unsqueeze(-1).float()
        total = (self.emb(ids) * m).sum(1)
        return total / m.sum(1).clamp(min=1.0), mask.sum(1).float() / mask.shape[1]


@case("ids: i64[b, t] < 30")
class TextPadMaskFromIds(nn.Module):
    pad_id = 0

    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(30, 8, padding_idx=0)

    def forward(self, ids):
        b, t = ids.shape
        pad = (ids == self.pad_id)[:, None, :].expand(b, t, t)
        x = self.emb(ids)
        score = (x @ x.transpose(1, 2)).masked_fill(pad, -1e4)
        return score.softmax(-1) @ x


@case("ids: i64[b, t] < 40")
class TextFairseqPositionIds(nn.Module):
    def __init__(self):
        super().__init__()
        self.padding_idx = 1
        self.tok = nn.Embedding(40, 8)
        self.pos = nn.Embedding(130, 8)

    def forward(self, ids):
        keep = ids.ne(self.padding_idx).int()
        positions = (torch.cumsum(keep, dim=1).type_as(keep) * keep).long() + self.padding_idx
        return self.tok(ids) + self.pos(positions.clamp(max=129))


@case("ids: i64[b, t] < 20")
class TextShiftRight(nn.Module):
    start_id = 3

    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(20, 8)

    def forward(self, ids):
        shifted = ids.new_zeros(ids.shape)
        shifted[:, 1:] = ids[:, :-1].clone()
        shifted[:, 0] = self.start_id
        return self.emb(shifted)


@case("ids: i64[b, t] < 20", least={"t": 2})
class TextNextTokenLogProbs(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(20, 12)
        self.head = nn.Linear(12, 20)

    def forward(self, ids):
        logits = self.head(self.emb(ids)).log_softmax(-1)
        picked = logits[:, :-1].gather(2, ids[:, 1:].unsqueeze(-1)).squeeze(-1)
        return picked, -picked.sum(1) / (ids.shape[1] - 1)


@case("x: f32[b, t, 8]", "cls: f32[1, 1, 8]")
class TextPrependClsToken(nn.Module):
    def __init__(self):
        super().__init__()
        self.attn = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x, cls):
        x = torch.cat([cls.expand(x.shape[0], -1, -1), x], dim=1)
        y, weights = self.attn(x, x, x)
        return y[:, 0], weights[:, 0, 1:]


@case("x: f32[b, t, 8]")
class TextPyramidEncoderLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)

    def forward(self, x):
        x = self.layer(x)
        if x.shape[1] % 2 == 1:
            x = F.pad(x, (0, 0, 0, 1))
        return x.view(x.shape[0], x.shape[1] // 2, 16)


@case("src: f32[b, s, 8]", "tgt: f32[b, t, 8]")
class TextTinySeq2Seq(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = nn.Transformer(8, 2, 1, 1, 16, batch_first=True)

    def forward(self, src, tgt):
        mask = nn.Transformer.generate_square_subsequent_mask(tgt.size(1))
        return self.model(src, tgt, tgt_mask=mask, tgt_is_causal=True)


@case("x: f32[b, t, 8]")
class TextBlockPaddedChunks(nn.Module):
    chunk = 4

    def forward(self, x):
        b, t, c = x.shape
        extra = (self.chunk - t % self.chunk) % self.chunk
        y = F.pad(x, (0, 0, 0, extra)).view(b, -1, self.chunk, c)
        score = (y @ y.transpose(-1, -2)) / math.sqrt(c)
        y = score.softmax(-1) @ y
        return y.view(b, t + extra, c)[:, :t]


@case("x: f32[b, 6*n, 8]")
class TextBlocksOfSix(nn.Module):
    def forward(self, x):
        b, t, c = x.shape
        blocks = x.reshape(b, t // 6, 6, c)
        mean = blocks.mean(2, keepdim=True)
        before = torch.cat([torch.zeros_like(mean[:, :1]), mean[:, :-1]], 1)
        return (blocks - before).reshape(b, t, c)


@case("x: f32[b, t, 8]")
class TextSqrtBlocks(nn.Module):
    def forward(self, x):
        b, t, c = x.shape
        width = math.isqrt(t)
        n = math.ceil(t / width)
        x = F.pad(x, (0, 0, 0, n * width - t))
        return x.reshape(b, n, width, c).amax(2)


@case("x: f32[b, t, 8]", least={"t": 4})
class TextLongformerBands(nn.Module):
    w = 2

    def forward(self, x):
        t = x.shape[1]
        padded = F.pad(x, (0, 0, self.w, self.w))
        bands = padded.unfold(1, 2 * self.w + 1, 1)
        score = torch.einsum("btc,btcw->btw", x, bands)
        where = torch.arange(t)[:, None] + torch.arange(-self.w, self.w + 1)[None]
        score = score.masked_fill((where < 0) | (where >= t), -1e4)
        return torch.einsum("btw,btcw->btc", score.softmax(-1), bands)


@case("x: f32[b, t, 8]")
class TextGlobalPlusStridedMask(nn.Module):
    def pattern(self, n, stride):
        mask = np.zeros((n, n), dtype=np.float32)
        for i in range(n):
            mask[i, max(0, i - stride + 1):i + 1] = 1
            mask[i, i % stride:i + 1:stride] = 1
        return torch.from_numpy(mask)

    def forward(self, x):
        n = x.shape[1]
        keep = self.pattern(n, int(math.sqrt(n)) + 1)
        score = (x @ x.mT).masked_fill(keep == 0, -1e9)
        return (score / math.sqrt(8)).softmax(-1) @ x


@case("ids: i64[b, t] < 25", least={"t": 3})
class TextNgramHashIds(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(61, 6)

    def forward(self, ids):
        n = ids.shape[1] - 2
        hashed = (ids[:, :n] * 31 * 31 + ids[:, 1:n + 1] * 31 + ids[:, 2:]) % 61
        return self.emb(hashed).sum(1) / n


@case("ids: i64[b, t] < 12")
class TextOneHotBag(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(12, 5)

    def forward(self, ids):
        counts = F.one_hot(ids, 12).float().sum(1)
        return self.fc(counts / ids.size(1)), counts.amax(1)


@case("x: f32[b, t, 8]")
class TextHeadTailTruncate(nn.Module):
    head, tail = 6, 10

    def forward(self, x):
        t = x.shape[1]
        if t > self.head + self.tail:
            x = torch.cat([x[:, :self.head], x[:, t - self.tail:]], dim=1)
        return x.cumsum(1)


@case("x: f32[b, t, 8]")
class TextTruncateToSixteen(nn.Module):
    max_tokens = 16

    def __init__(self):
        super().__init__()
        self.pos = nn.Parameter(torch.randn(16, 8))

    def forward(self, x):
        t = min(x.shape[1], self.max_tokens)
        return (x[:, :t] + self.pos[:t]).softmax(-1)


@case("x: f32[b, t, 8]")
class TextStretchPositionTable(nn.Module):
    def __init__(self):
        super().__init__()
        self.pos = nn.Parameter(torch.randn(1, 12, 8))

    def forward(self, x):
        pos = self.pos
        if x.shape[1] != pos.shape[1]:
            pos = F.interpolate(pos.transpose(1, 2), size=x.shape[1], mode="linear",
                                align_corners=False).transpose(1, 2)
        return x + pos


@case("x: f32[b, t, 8]")
class TextCumulativeMeanByMatrix(nn.Module):
    def forward(self, x):
        B, T, C = x.shape
        wei = torch.tril(torch.ones(T, T))
        wei = wei / wei.sum(1, keepdim=True)
        return wei @ x


@case("x: f32[b, t, 8]")
class TextNumpyTriangle(nn.Module):
    def forward(self, x):
        n = x.shape[1]
        future = np.triu(np.ones((1, n, n)), k=1).astype("uint8")
        mask = torch.from_numpy(future) == 0
        score = (x @ x.transpose(-2, -1)).masked_fill(mask == 0, -1e9)
        return F.softmax(score / math.sqrt(x.size(-1)), dim=-1) @ x


@case("x: f32[b, t, 8]", "y: f32[b, s, 8]")
class TextBidafSimilarity(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Linear(24, 1)

    def forward(self, x, y):
        t, s = x.shape[1], y.shape[1]
        a = x.unsqueeze(2).expand(-1, -1, s, -1)
        c = y.unsqueeze(1).expand(-1, t, -1, -1)
        score = self.w(torch.cat([a, c, a * c], -1)).squeeze(-1)
        c2q = score.softmax(2) @ y
        q2c = score.max(2)[0].softmax(1).unsqueeze(1) @ x
        return torch.cat([x, c2q, x * c2q, x * q2c.repeat(1, t, 1)], -1)


@case("x: f32[b, t, 8]")
class TextLinformerProjection(nn.Module):
    def __init__(self):
        super().__init__()
        self.k = 5
        self.E = nn.Parameter(torch.randn(128, 5) / 8)

    def forward(self, x):
        t = x.shape[1]
        short = torch.einsum("btc,tk->bkc", x, self.E[:t])
        return (x @ short.mT / math.sqrt(x.shape[-1])).softmax(-1) @ short


@case("x: f32[b, t, 16]")
class TextGroupedQueryAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q = nn.Linear(16, 16)
        self.kv = nn.Linear(16, 16)

    def repeat_kv(self, x, n_rep):
        b, h, t, d = x.shape
        return x[:, :, None].expand(b, h, n_rep, t, d).reshape(b, h * n_rep, t, d)

    def forward(self, x):
        b, t, _ = x.shape
        q = self.q(x).view(b, t, 4, 4).transpose(1, 2)
        k, v = self.kv(x).view(b, t, 2, 2, 4).permute(2, 0, 3, 1, 4)
        k, v = self.repeat_kv(k, 2), self.repeat_kv(v, 2)
        score = q @ k.transpose(2, 3) / 2 + causal_mask(t)
        return (score.softmax(-1) @ v).transpose(1, 2).reshape(b, t, -1)


@case("x: f32[b, t, 8]")
class TextLinearAttentionCausal(nn.Module):
    def forward(self, x):
        q, k = F.elu(x) + 1, F.elu(x.flip(-1)) + 1
        kv = torch.einsum("btc,btd->btcd", k, x).cumsum(1)
        z = 1 / (torch.einsum("btc,btc->bt", q, k.cumsum(1)) + 1e-6)
        return torch.einsum("btc,btcd,bt->btd", q, kv, z)


@case("x: f32[b, t, 8]", "lengths: i64[b] < 30")
class TextLengthsToMask(nn.Module):
    def forward(self, x, lengths):
        t = x.shape[1]
        lengths = lengths.clamp(min=1, max=t)
        mask = torch.arange(t)[None, :] < lengths[:, None]
        last = x[torch.arange(x.shape[0]), lengths - 1]
        return (x * mask.unsqueeze(-1)).sum(1) / lengths.unsqueeze(1), last
