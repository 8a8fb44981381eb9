"""Sequences: text, audio, recurrent nets, attention, caches, masks, position tables."""
import math
from typing import NamedTuple, Optional, Tuple

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

from case import case


@case("x: f32[b, t, 8]")
class MeanOverTime(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 4)

    def forward(self, x):
        return self.fc(x.sum(dim=1) / x.size(1))


@case("ids: i64[b, t] < 50", most={"t": 64})
class TokenPlusLearnedPosition(nn.Module):
    def __init__(self, vocab=50, dim=16, max_len=64):
        super().__init__()
        self.max_len = max_len
        self.tok = nn.Embedding(vocab, dim)
        self.pos = nn.Embedding(max_len, dim)
        self.norm = nn.LayerNorm(dim)

    def forward(self, ids):
        b, t = ids.shape
        assert t <= self.max_len, f"sequence of {t} is longer than {self.max_len}"
        pos = torch.arange(t, device=ids.device).unsqueeze(0).expand(b, t)
        return self.norm(self.tok(ids) + self.pos(pos))


@case("x: f32[b, t, 16]", most={"t": 48})
class NanoCausalAttention(nn.Module):
    def __init__(self, n_embd=16, n_head=4, block_size=48):
        super().__init__()
        self.n_head = n_head
        self.c_attn = nn.Linear(n_embd, 3 * n_embd)
        self.c_proj = nn.Linear(n_embd, n_embd)
        tril = torch.tril(torch.ones(block_size, block_size))
        self.register_buffer("bias", tril.view(1, 1, block_size, block_size))

    def forward(self, x):
        B, T, C = x.size()
        q, k, v = self.c_attn(x).split(C, dim=2)
        k = k.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        q = q.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        v = v.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        att = att.masked_fill(self.bias[:, :, :T, :T] == 0, float("-inf"))
        y = F.softmax(att, dim=-1) @ v
        y = y.transpose(1, 2).contiguous().view(B, T, C)
        return self.c_proj(y)


@case("x: f32[b, t, 6]")
class LstmLastStep(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden_size = 12
        self.num_layers = 2
        self.lstm = nn.LSTM(6, 12, 2, batch_first=True)
        self.fc = nn.Linear(12, 3)

    def forward(self, x):
        h0 = torch.zeros(self.num_layers, x.size(0), self.hidden_size).to(x.device)
        c0 = torch.zeros(self.num_layers, x.size(0), self.hidden_size).to(x.device)
        out, _ = self.lstm(x, (h0, c0))
        return self.fc(out[:, -1, :])


@case("x: f32[t, b, 5]")
class BiGruBothEnds(nn.Module):
    def __init__(self, hidden=7):
        super().__init__()
        self.hidden = hidden
        self.gru = nn.GRU(5, hidden, bidirectional=True)

    def forward(self, x):
        seq_len, batch, _ = x.shape
        out, h = self.gru(x)
        out = out.view(seq_len, batch, 2, self.hidden)
        fwd = out[seq_len - 1, :, 0]
        bwd = out[0, :, 1]
        return torch.cat([fwd, bwd], dim=-1), h.transpose(0, 1).reshape(batch, -1)


@case("wave: f32[b, 1, n]")
class PadToEightConvAndCrop(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Conv1d(1, 6, 8, stride=8)
        self.up = nn.ConvTranspose1d(6, 1, 8, stride=8)

    def forward(self, wave):
        n = wave.shape[-1]
        extra = (8 - n % 8) % 8
        y = F.pad(wave, (0, extra))
        y = self.up(torch.relu(self.down(y)))
        return y[..., :n]


@case("x: f32[b, t, 8]", "mask: bool[b, t]")
class MaskedMeanAndMax(nn.Module):
    def forward(self, x, mask):
        m = mask.unsqueeze(-1).to(x.dtype)
        mean = (x * m).sum(1) / m.sum(1).clamp(min=1.0)
        peak = x.masked_fill(~mask.unsqueeze(-1), -1e4).max(dim=1).values
        frac = mask.sum(1, keepdim=True).float() / mask.shape[1]
        return torch.cat((mean, peak, frac), dim=1)


def sinusoid_table(length, dim, base=10000.0):
    pos = torch.arange(length, dtype=torch.float32)[:, None]
    inv = torch.exp(torch.arange(0, dim, 2).float() * (-math.log(base) / dim))
    table = torch.zeros(length, dim)
    table[:, 0::2] = torch.sin(pos * inv)
    table[:, 1::2] = torch.cos(pos * inv)
    return table


@case("x: f32[b, t, 10]")
class SinusoidTableInForward(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(10, 10)

    def forward(self, x):
        pe = sinusoid_table(x.size(1), x.size(2)).to(x)
        return self.proj(x * math.sqrt(x.size(2)) + pe)


@case("x: f32[b, t, 12]", "keep: bool[b, t]")
class PrependClsAndExtendMask(nn.Module):
    def __init__(self):
        super().__init__()
        self.cls = nn.Parameter(torch.randn(1, 1, 12))
        self.attn = nn.MultiheadAttention(12, 3, batch_first=True)

    def forward(self, x, keep):
        n = x.shape[0]
        x = torch.cat([self.cls.expand(n, -1, -1), x], dim=1)
        keep = torch.cat([keep.new_ones(n, 1), keep], dim=1)
        y, _ = self.attn(x, x, x, key_padding_mask=~keep, need_weights=False)
        return y[:, 0], y[:, 1:] * keep[:, 1:, None]


@case("mel: f32[b, 10, t]", "speaker: i64[b] < 5")
class SpeakerConditionedFrames(nn.Module):
    def __init__(self):
        super().__init__()
        self.speakers = nn.Embedding(5, 4)
        self.conv = nn.Conv1d(14, 8, 3, padding=1)

    def forward(self, mel, speaker):
        g = self.speakers(speaker).unsqueeze(-1).repeat(1, 1, mel.size(-1))
        return self.conv(torch.cat([mel, g], dim=1))


@case("x: f32[b, t, 3]")
class AppendRelativeTime(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 2))

    def forward(self, x):
        B, T, _ = x.shape
        rel = torch.arange(T).float() / max(T - 1, 1)
        rel = torch.stack([rel, 1 - rel], -1)[None].expand(B, T, 2)
        return self.net(torch.cat([x, rel], -1))


@case("x: f32[b, t, 4]", "lengths: i64[b] < 9")
class LengthsToMaskPooling(nn.Module):
    """sequence_mask as in TensorFlow, then an average over the valid steps."""

    @staticmethod
    def sequence_mask(lengths, maxlen, dtype=torch.bool):
        row = torch.arange(0, maxlen, 1)
        return (row < lengths.unsqueeze(-1)).type(dtype)

    def forward(self, x, lengths):
        m = self.sequence_mask(lengths, x.shape[1], torch.float32)
        total = torch.einsum("btd,bt->bd", x, m)
        return total / torch.clamp(m.sum(-1, keepdim=True), min=1)


@case("x: f32[b, t, 6]", "lengths: i64[b] < 12")
class GatherLastValidStep(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.RNN(6, 9, batch_first=True)

    def forward(self, x, lengths):
        out, _ = self.rnn(x)
        idx = (lengths - 1).clamp(0, x.size(1) - 1)
        idx = idx.view(-1, 1, 1).expand(out.size(0), 1, out.size(2))
        return out.gather(1, idx).squeeze(1)


@case("x: f32[b, t, 16]", "past_k: f32[b, 2, past, 8]", "past_v: f32[b, 2, past, 8]",
      where="past + t <= 64")
class CachedAttentionWithOffset(nn.Module):
    def __init__(self):
        super().__init__()
        self.wpe = nn.Embedding(64, 16)
        self.qkv = nn.Linear(16, 48, bias=False)
        self.out = nn.Linear(16, 16, bias=False)

    def _heads(self, x):
        b, t, _ = x.shape
        return x.reshape(b, t, 2, 8).permute(0, 2, 1, 3)

    def forward(self, x, past_k, past_v):
        past_len = past_k.size(-2)
        cur = x.size(-2)
        total = past_len + cur
        x = x + self.wpe(torch.arange(past_len, total, device=x.device))
        q, k, v = map(self._heads, self.qkv(x).chunk(3, dim=-1))
        k = torch.cat((past_k, k), dim=-2)
        v = torch.cat((past_v, v), dim=-2)
        scores = q @ k.transpose(-1, -2) / math.sqrt(q.size(-1))
        causal = torch.ones(total, total, dtype=torch.bool).tril()[total - cur:total, :total]
        scores = torch.where(causal, scores, torch.full([], torch.finfo(scores.dtype).min))
        y = scores.softmax(-1) @ v
        y = y.permute(0, 2, 1, 3).reshape(x.size(0), cur, 16)
        return self.out(y), k, v


class RotaryCache:
    def __init__(self, dim, base=10000):
        self.inv_freq = 1.0 / (base ** (torch.arange(0, dim, 2).float() / dim))

    def tables(self, seq_len, offset=0):
        t = torch.arange(offset, offset + seq_len).float()
        freqs = torch.outer(t, self.inv_freq)
        emb = torch.cat((freqs, freqs), dim=-1)
        return emb.cos()[None, None], emb.sin()[None, None]


def rotate_half(x):
    half = x.shape[-1] // 2
    return torch.cat((-x[..., half:], x[..., :half]), dim=-1)


@case("q: f32[b, h, t, 8]", "k: f32[b, h, s, 8]", where="s >= t")
class RotaryQueryKeyScores(nn.Module):
    def __init__(self):
        super().__init__()
        self.rope = RotaryCache(8)

    def forward(self, q, k):
        offset = k.size(2) - q.size(2)
        cq, sq = self.rope.tables(q.size(2), offset)
        ck, sk = self.rope.tables(k.size(2))
        q = q * cq + rotate_half(q) * sq
        k = k * ck + rotate_half(k) * sk
        return torch.einsum("bhqd,bhkd->bhqk", q, k) * q.size(-1) ** -0.5


@case("x: f32[b, t, 12]")
class AlibiAttention(nn.Module):
    def __init__(self, dim=12, heads=6):
        super().__init__()
        self.h = heads
        self.to_qkv = nn.Linear(dim, dim * 3)
        self.slopes = self.get_slopes(heads)

    @staticmethod
    def get_slopes(n):
        def power_of_2(n):
            start = 2 ** (-(2 ** -(math.log2(n) - 3)))
            return [start * start ** i for i in range(n)]
        if math.log2(n).is_integer():
            return power_of_2(n)
        closest = 2 ** math.floor(math.log2(n))
        return power_of_2(closest) + power_of_2(2 * closest)[0::2][: n - closest]

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = (y.view(b, n, self.h, -1).transpose(1, 2) for y in self.to_qkv(x).chunk(3, -1))
        pos = torch.arange(n)
        dist = (pos[None, :] - pos[:, None]).clamp(max=0)
        bias = torch.tensor(self.slopes).view(-1, 1, 1) * dist
        future = torch.triu(torch.full((n, n), float("-inf")), diagonal=1)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=bias + future) \
            .transpose(1, 2).reshape(b, n, d)


@case("q: f32[b, 2, t, 4]", "k: f32[b, 2, s, 4]")
class T5BucketBias(nn.Module):
    num_buckets = 16
    max_distance = 40

    def __init__(self):
        super().__init__()
        self.relative_attention_bias = nn.Embedding(self.num_buckets, 2)

    def _bucket(self, rel):
        n = self.num_buckets // 2
        ret = (rel > 0).long() * n
        rel = rel.abs()
        max_exact = n // 2
        small = rel < max_exact
        large = max_exact + (
            torch.log(rel.float() / max_exact)
            / math.log(self.max_distance / max_exact) * (n - max_exact)
        ).long()
        large = torch.min(large, torch.full_like(large, n - 1))
        return ret + torch.where(small, rel, large)

    def forward(self, q, k):
        qlen, klen = q.shape[2], k.shape[2]
        context = torch.arange(qlen, dtype=torch.long)[:, None]
        memory = torch.arange(klen, dtype=torch.long)[None, :]
        values = self.relative_attention_bias(self._bucket(memory - context))
        values = values.permute([2, 0, 1]).unsqueeze(0)
        return (torch.matmul(q, k.transpose(3, 2)) + values).softmax(-1)


@case("x: f32[b, t, 8]")
class TransformerXlRelShift(nn.Module):
    def __init__(self):
        super().__init__()
        self.q = nn.Linear(8, 8)
        self.r = nn.Linear(8, 8, bias=False)

    def rel_shift(self, x):
        zero_pad = torch.zeros((x.size(0), x.size(1), 1), dtype=x.dtype)
        padded = torch.cat([zero_pad, x], dim=2)
        padded = padded.view(x.size(0), x.size(2) + 1, x.size(1))
        return padded[:, 1:].view_as(x)

    def forward(self, x):
        klen = x.size(1)
        pos_seq = torch.arange(klen - 1, -1, -1.0)
        inv_freq = 1 / (10000 ** (torch.arange(0.0, 8, 2.0) / 8))
        s = torch.ger(pos_seq, inv_freq)
        r = self.r(torch.cat([s.sin(), s.cos()], dim=-1))
        bd = torch.einsum("bid,jd->bij", self.q(x), r)
        return self.rel_shift(bd)


@case("x: f32[b, t, 8]")
class SlidingWindowMaskedMixer(nn.Module):
    window = 3

    def forward(self, x):
        n = x.size(-2)
        i = torch.arange(n).view(n, 1)
        j = torch.arange(n).view(1, n)
        allowed = (i - j >= 0) & (i - j < self.window)
        sim = x @ x.mT / x.size(-1) ** 0.5
        sim.masked_fill_(~allowed, -torch.finfo(sim.dtype).max)
        return sim.softmax(dim=-1) @ x


@case("x: f32[b, t, 8]")
class BlockLocalAttention(nn.Module):
    """Each block of queries looks at its own block and the one before it."""

    def __init__(self, block=4):
        super().__init__()
        self.block = block
        self.qk = nn.Linear(8, 16)

    def forward(self, x):
        b, t, d = x.shape
        w = self.block
        x = F.pad(x, (0, 0, 0, -t % w))
        nb = x.shape[1] // w
        q, k = self.qk(x).view(b, nb, w, 2 * d).chunk(2, dim=-1)
        v = x.view(b, nb, w, d)

        def look_back(y):
            prev = F.pad(y, (0, 0, 0, 0, 1, 0))[:, :-1]
            return torch.cat([prev, y], dim=2)

        k, v = look_back(k), look_back(v)
        at = torch.arange(nb * w).view(nb, w)
        ak = look_back(at[None, :, :, None].float() + 1)[0, :, :, 0] - 1
        ok = (ak[:, None, :] >= 0) & (ak[:, None, :] <= at[:, :, None])
        s = torch.einsum("bnid,bnjd->bnij", q, k) / math.sqrt(d)
        s = s.masked_fill(~ok[None], -1e9)
        o = torch.einsum("bnij,bnjd->bnid", s.softmax(-1), v)
        return o.reshape(b, nb * w, d)[:, :t]


@case("audio: f32[b, n]", least={"n": 16})
class FrameAndWindowEnergy(nn.Module):
    def __init__(self, frame_length=16, hop_length=6):
        super().__init__()
        self.frame_length = frame_length
        self.hop_length = hop_length
        self.register_buffer("window", torch.hann_window(frame_length))

    def num_frames(self, num_samples: int) -> int:
        return 1 + (num_samples - self.frame_length) // self.hop_length

    def forward(self, audio):
        frames = audio.unfold(-1, self.frame_length, self.hop_length) * self.window
        n = self.num_frames(audio.shape[-1])
        assert frames.shape[1] == n
        energy = frames.pow(2).sum(-1).add(1e-6).log()
        centre = torch.arange(n) * self.hop_length + self.frame_length / 2
        return energy, (centre / audio.shape[-1]).expand(audio.shape[0], n)


@case("audio: f32[b, n]", least={"n": 9})
class DftMagnitudeByMatmul(nn.Module):
    """Short-time Fourier magnitudes with centre padding, written out by hand."""

    def __init__(self, n_fft=16, hop=4):
        super().__init__()
        self.n_fft, self.hop = n_fft, hop
        k = np.arange(n_fft // 2 + 1)[:, None] * np.arange(n_fft)[None] * 2 * np.pi / n_fft
        basis = np.concatenate([np.cos(k), -np.sin(k)]) * np.hanning(n_fft + 1)[:-1]
        self.register_buffer("basis", torch.tensor(basis, dtype=torch.float32)[:, None])

    def forward(self, audio):
        bins = self.n_fft // 2 + 1
        pad = self.n_fft // 2
        y = F.pad(audio[:, None], (pad, pad), mode="reflect")
        spec = F.conv1d(y, self.basis, stride=self.hop)
        re, im = spec[:, :bins], spec[:, bins:]
        frames = audio.size(1) // self.hop + 1
        mag = torch.sqrt(re ** 2 + im ** 2 + 1e-9)[..., :frames]
        return mag / mag.amax(dim=(1, 2), keepdim=True)


@case("feats: f32[b, t, 20]", "lengths: i64[b] < 40", least={"t": 7})
class Conv2dSubsamplingWithMask(nn.Module):
    def __init__(self, idim=20, odim=8):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv2d(1, odim, 3, 2), nn.ReLU(), nn.Conv2d(odim, odim, 3, 2), nn.ReLU()
        )
        self.out = nn.Linear(odim * (((idim - 1) // 2 - 1) // 2), odim)

    def forward(self, feats, lengths):
        x = self.conv(feats.unsqueeze(1))
        b, c, t, f = x.size()
        x = self.out(x.transpose(1, 2).contiguous().view(b, t, c * f))
        mask = torch.arange(feats.size(1)).unsqueeze(0) < lengths.unsqueeze(1)
        mask = mask.unsqueeze(1)[:, :, 2::2][:, :, 2::2]
        return x * mask.transpose(1, 2), mask


@case("x: f32[b, 4, n]")
class DualPathSegmentOverlapAdd(nn.Module):
    def __init__(self, chunk=6):
        super().__init__()
        self.K = chunk
        self.intra = nn.Linear(chunk, chunk)

    def pad_segment(self, x, K):
        B, N, L = x.shape
        P = K // 2
        gap = K - (P + L % K) % K
        x = F.pad(x, (0, gap))
        x = F.pad(x, (P, P))
        return x, gap

    def segmentation(self, x, K):
        B, N, _ = x.shape
        P = K // 2
        x, gap = self.pad_segment(x, K)
        a = x[:, :, :-P].contiguous().view(B, N, -1, K)
        c = x[:, :, P:].contiguous().view(B, N, -1, K)
        y = torch.cat([a, c], dim=3).view(B, N, -1, K).transpose(2, 3)
        return y.contiguous(), gap

    def over_add(self, x, gap):
        B, N, K, S = x.shape
        P = K // 2
        x = x.transpose(2, 3).contiguous().view(B, N, -1, K * 2)
        a = x[:, :, :, :K].contiguous().view(B, N, -1)[:, :, P:]
        c = x[:, :, :, K:].contiguous().view(B, N, -1)[:, :, :-P]
        return (a + c)[:, :, :-gap]

    def forward(self, x):
        seg, gap = self.segmentation(x, self.K)
        seg = self.intra(seg.transpose(2, 3)).transpose(2, 3)
        return self.over_add(seg, gap)


@case("x: f32[b, n, 10]")
class PerceiverLatentsReadout(nn.Module):
    def __init__(self, latents=5, dim=10):
        super().__init__()
        self.latents = nn.Parameter(torch.randn(latents, dim))
        self.kv = nn.Linear(dim, 2 * dim)

    def forward(self, x):
        lat = self.latents.unsqueeze(0).repeat(x.size(0), 1, 1)
        k, v = self.kv(torch.cat((x, lat), dim=1)).chunk(2, dim=-1)
        w = torch.softmax(lat @ k.transpose(1, 2) * x.size(-1) ** -0.5, dim=-1)
        return w @ v, w[:, :, : x.size(1)]


@case("x: f32[b, t, 6]", least={"t": 2})
class PyramidalBlstmPairs(nn.Module):
    """Listen, Attend and Spell: two neighbouring frames become one."""

    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(12, 5, bidirectional=True, batch_first=True)

    def forward(self, x):
        batch, time, feat = x.shape
        if_odd = time % 2
        x = x[:, : time - if_odd, :]
        x = x.contiguous().view(batch, int(time / 2), feat * 2)
        out, _ = self.lstm(x)
        return out


@case("x: f32[b, 3, t]")
class WaveNetCausalStack(nn.Module):
    def __init__(self):
        super().__init__()
        self.dilations = [1, 2, 4]
        self.start = nn.Conv1d(3, 6, 1)
        self.filters = nn.ModuleList([nn.Conv1d(6, 12, 2, dilation=d) for d in self.dilations])
        self.skips = nn.ModuleList([nn.Conv1d(6, 4, 1) for _ in self.dilations])

    def forward(self, x):
        x = self.start(x)
        skip = 0
        for d, conv, out in zip(self.dilations, self.filters, self.skips):
            res = x
            a, g = conv(F.pad(x, (d, 0))).chunk(2, dim=1)
            x = torch.tanh(a) * torch.sigmoid(g)
            s = out(x)
            skip = s + (skip[..., -s.size(-1):] if torch.is_tensor(skip) else skip)
            x = x + res[..., -x.size(-1):]
        return F.relu(skip)


@case("prefix: f32[b, p, 8]", "target: f32[b, t, 8]")
class PrefixLmMaskedAttention(nn.Module):
    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        self.layer = layer

    @staticmethod
    def build_mask(p, t):
        top = torch.cat([torch.zeros(p, p), torch.full((p, t), float("-inf"))], dim=1)
        tri = torch.triu(torch.full((t, t), float("-inf")), 1)
        bottom = torch.cat([torch.zeros(t, p), tri], dim=1)
        return torch.cat([top, bottom], dim=0)

    def forward(self, prefix, target):
        p, t = prefix.shape[1], target.shape[1]
        y = self.layer(torch.cat([prefix, target], 1), src_mask=self.build_mask(p, t))
        return y[:, p:]


@case("x: f32[b, t, 8]", "last: f32[b, 8]")
class RwkvTimeShift(nn.Module):
    def __init__(self, n_embd=8):
        super().__init__()
        ratio = torch.arange(n_embd).float() / n_embd
        self.time_mix = nn.Parameter(ratio.view(1, 1, n_embd))
        self.key = nn.Linear(n_embd, n_embd, bias=False)

    def forward(self, x, last):
        T = x.size(1)
        prev = torch.cat([last.unsqueeze(1), x], dim=1)[:, :T]
        mixed = x * self.time_mix + prev * (1 - self.time_mix)
        return torch.square(torch.relu(self.key(mixed))), x[:, T - 1]


@case("attn: f32[b, t, s]", "tlen: i64[b] < 20", "slen: i64[b] < 20")
class GuidedAttentionPenalty(nn.Module):
    """Penalises weights far from the diagonal (Tachibana et al.)."""

    def __init__(self, sigma=0.4):
        super().__init__()
        self.sigma = sigma

    def forward(self, attn, tlen, slen):
        attn = attn.softmax(-1)
        T, S = attn.shape[1:]
        gt = torch.arange(T).float().view(1, T, 1) / tlen.clamp(min=1).view(-1, 1, 1)
        gs = torch.arange(S).float().view(1, 1, S) / slen.clamp(min=1).view(-1, 1, 1)
        w = 1.0 - torch.exp(-((gt - gs) ** 2) / (2 * self.sigma ** 2))
        valid = (torch.arange(T)[None, :, None] < tlen[:, None, None]) \
            & (torch.arange(S)[None, None, :] < slen[:, None, None])
        return (w * attn * valid).sum((1, 2)) / (T * S)


@case("x: f32[b, t, 6]")
class FnetFourierMixing(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln = nn.LayerNorm(6)

    def forward(self, x):
        mixed = torch.fft.fft(torch.fft.fft(x, dim=-1), dim=-2).real
        return self.ln(x + mixed / math.sqrt(x.shape[-2] * x.shape[-1]))


@case("x: f32[b, t, 4]", least={"t": 2})
class PairwiseTreeReduction(nn.Module):
    """Folds neighbours together until one summary vector is left."""

    def __init__(self):
        super().__init__()
        self.merge = nn.Linear(8, 4)

    def forward(self, x):
        while x.size(1) > 1:
            if x.size(1) % 2 == 1:
                x = torch.cat([x, x[:, -1:]], dim=1)
            left, right = x[:, 0::2], x[:, 1::2]
            x = torch.tanh(self.merge(torch.cat([left, right], dim=-1)))
        return x[:, 0]


@case("x: f32[b, t]", least={"t": 2})
class PadToPowerOfTwoSpectrum(nn.Module):
    def next_pow2(self, n):
        return 2 ** math.ceil(math.log2(n))

    def forward(self, x):
        n = x.size(-1)
        nfft = self.next_pow2(2 * n - 1)
        f = torch.fft.rfft(x, n=nfft)
        ac = torch.fft.irfft(f * f.conj(), n=nfft)[..., :n]
        return ac / (ac[..., :1] + 1e-8)


@case("ids: i64[b, t] < 30", "segment: i64[b, t]", most={"t": 40})
class BertEmbeddingsWithPositionBuffer(nn.Module):
    def __init__(self):
        super().__init__()
        self.word = nn.Embedding(30, 12, padding_idx=0)
        self.position = nn.Embedding(40, 12)
        self.kind = nn.Embedding(2, 12)
        self.register_buffer("position_ids", torch.arange(40).expand((1, -1)), persistent=False)
        self.LayerNorm = nn.LayerNorm(12, eps=1e-12)

    def forward(self, ids, segment, past: int = 0):
        seq_length = ids.size()[1]
        pos = self.position_ids[:, past:seq_length + past]
        e = self.word(ids) + self.kind(segment) + self.position(pos)
        keep = (ids != 0)[:, None, None, :].to(e.dtype)
        return self.LayerNorm(e), (1.0 - keep) * torch.finfo(e.dtype).min


@case("x: f32[b, t, 5]", "lengths: i64[b] < 10")
class ReverseWithinLengths(nn.Module):
    """tf.reverse_sequence for a batch-first tensor."""

    def forward(self, x, lengths):
        bsz, steps, width = x.shape
        lengths = torch.minimum(lengths, torch.tensor(steps))
        r = torch.arange(steps).repeat(bsz, 1)
        flipped = lengths[:, None] - 1 - r
        index = torch.where(flipped >= 0, flipped, r)
        return torch.gather(x, 1, index[:, :, None].expand(bsz, steps, width))


class SeqInfo(NamedTuple):
    batch: int
    time: int
    heads: int
    per_head: int

    @property
    def scale(self) -> float:
        return 1.0 / math.sqrt(self.per_head)

    def split(self, x):
        return x.view(self.batch, self.time, self.heads, self.per_head).movedim(2, 1)

    def merge(self, x):
        return x.movedim(1, 2).reshape(self.batch, self.time, self.heads * self.per_head)


@case("x: f32[b, t, 12]")
class ShawRelativeKeys(nn.Module):
    def __init__(self, dim: int = 12, heads: int = 3, clip: int = 4):
        super().__init__()
        if dim % heads != 0:
            raise ValueError(f"{dim} does not divide by {heads}")
        self.heads, self.clip = heads, clip
        self.lin = nn.Linear(dim, 3 * dim)
        self.rel = nn.Embedding(2 * clip + 1, dim // heads)

    def forward(self, x: torch.Tensor, scale: Optional[float] = None) -> torch.Tensor:
        if x.dim() != 3:
            raise ValueError("expected (batch, time, channels)")
        info = SeqInfo(x.size(0), x.size(1), self.heads, x.size(2) // self.heads)
        q, k, v = (info.split(p) for p in torch.chunk(self.lin(x), 3, dim=-1))
        steps = torch.arange(info.time)
        rel = torch.clamp(steps[None] - steps[:, None], -self.clip, self.clip) + self.clip
        logits = torch.einsum("bhid,bhjd->bhij", q, k)
        logits = logits + torch.einsum("bhid,ijd->bhij", q, self.rel(rel))
        weights = torch.softmax(logits * (scale or info.scale), dim=-1)
        return info.merge(weights @ v)


@case("x: f32[b, t, 8]", "memory: f32[b, m, 8]", most={"m": 12, "t": 20})
class RollingMemoryWindow(nn.Module):
    """Keeps only the newest `cap` states for the next segment."""

    def __init__(self, cap=6):
        super().__init__()
        self.cap = cap
        self.gate = nn.Linear(8, 8)

    def forward(self, x, memory) -> Tuple[torch.Tensor, torch.Tensor]:
        full = torch.cat([memory, x], dim=1)
        total = memory.size(1) + x.size(1)
        begin = max(0, total - self.cap)
        recent = full[:, begin:total]
        ctx = recent.mean(dim=1, keepdim=True).expand(-1, x.shape[1], -1)
        return x * torch.sigmoid(self.gate(ctx)), recent


@case("x: f32[b, t, 8]")
class NumpyDecayTable(nn.Module):
    def __init__(self):
        super().__init__()
        self.o = nn.Linear(8, 8)

    def _decay(self, n, gamma=0.9):
        idx = np.arange(n)
        d = idx[:, None] - idx[None, :]
        return np.where(d >= 0, gamma ** np.maximum(d, 0), 0.0).astype(np.float32)

    def forward(self, x):
        D = torch.from_numpy(self._decay(x.shape[1])).to(x.device)
        s = torch.einsum("bnd,bmd->bnm", x, x) * D
        return self.o(s / s.sum(-1, keepdim=True).abs().clamp(min=1) @ x)


@case("x: f32[b, t, 4]", least={"t": 4})
class DownUpByStridedSlices(nn.Module):
    """U-shaped over time: halves twice, comes back by nearest neighbours."""

    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 4)
        self.b = nn.Linear(4, 4)

    def forward(self, x):
        sizes = []
        h = x
        for lin in (self.a, self.b):
            sizes.append(h.size(1))
            h = torch.relu(lin(h[:, ::2]))
        for n in reversed(sizes):
            h = h.repeat_interleave(2, dim=1)[:, :n]
        return x + h
