"""Audio and time series: framing, resampling, strides, windows, moving averages, pooling."""
import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from case import case


def conv_length(n, kernel, stride, padding=0, dilation=1):
    return (n + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1


def next_power_of_two(n):
    return 1 << (n - 1).bit_length()


def pad_to_multiple(x, multiple):
    extra = -x.shape[-1] % multiple
    return F.pad(x, (0, extra)), extra


@case("wav: f32[b, n]", least={"n": 8})
class AudioFramesUnfold(nn.Module):
    frame, hop = 8, 3

    def __init__(self):
        super().__init__()
        self.register_buffer("window", torch.hann_window(8))

    def forward(self, wav):
        frames = wav.unfold(-1, self.frame, self.hop) * self.window
        return frames.pow(2).mean(-1).sqrt()


@case("wav: f32[b, n]", least={"n": 2})
class AudioFramesByIndex(nn.Module):
    frame, hop = 6, 4

    def forward(self, wav):
        n = wav.shape[1]
        count = 1 + max(0, math.ceil((n - self.frame) / self.hop))
        wav = F.pad(wav, (0, (count - 1) * self.hop + self.frame - n))
        index = np.arange(self.frame)[None, :] + self.hop * np.arange(count)[:, None]
        return wav[:, torch.from_numpy(index)]


@case("wav: f32[b, n]", least={"n": 9})
class AudioFramesListOfSlices(nn.Module):
    def forward(self, wav):
        size, step = 8, 4
        starts = range(0, wav.shape[-1] - size + 1, step)
        frames = torch.stack([wav[:, s:s + size] for s in starts], dim=1)
        return frames - frames.mean(dim=-1, keepdim=True)


@case("frames: f32[b, k, 8]")
class AudioOverlapAddFold(nn.Module):
    hop = 4

    def forward(self, frames):
        b, k, w = frames.shape
        length = (k - 1) * self.hop + w
        fold = dict(output_size=(1, length), kernel_size=(1, w), stride=(1, self.hop))
        total = F.fold(frames.transpose(1, 2), **fold)
        count = F.fold(torch.ones_like(frames).transpose(1, 2), **fold)
        return (total / count).view(b, length)


@case("frames: f32[b, k, 8]")
class AudioOverlapAddHalves(nn.Module):
    def forward(self, frames):
        half = frames.shape[-1] // 2
        first = F.pad(frames[..., :half], (0, 0, 0, 1))
        second = F.pad(frames[..., half:], (0, 0, 1, 0))
        return (first + second).flatten(1)


@case("wav: f32[b, n]")
class AudioDftByMatrix(nn.Module):
    def forward(self, wav):
        n = wav.shape[-1]
        k = np.arange(n // 2 + 1)[:, None]
        angle = 2 * np.pi * k * np.arange(n)[None, :] / n
        real = wav @ torch.tensor(np.cos(angle), dtype=torch.float32).T
        imag = wav @ torch.tensor(np.sin(angle), dtype=torch.float32).T
        return (real ** 2 + imag ** 2) / n


@case("wav: f32[b, n]")
class AudioDctByArange(nn.Module):
    def forward(self, wav):
        n = wav.size(-1)
        grid = (torch.arange(n)[None] * 2 + 1) * torch.arange(n)[:, None]
        basis = torch.cos(grid.float() * math.pi / (2 * n))
        return F.linear(wav, basis) * math.sqrt(2) / n


@case("wav: f32[b, n]", least={"n": 2})
class AudioPadToPowerOfTwo(nn.Module):
    def forward(self, wav):
        n = wav.shape[-1]
        size = next_power_of_two(n)
        left = (size - n) // 2
        return F.pad(wav, (left, size - n - left)) * (n / size)


@case("wav: f32[b, n]")
class AudioHadamardStages(nn.Module):
    def forward(self, wav):
        n = next_power_of_two(wav.shape[1])
        y = F.pad(wav, (0, n - wav.shape[1]))
        for stage in range(int(math.log2(n))):
            y = y.view(-1, n >> (stage + 1), 2, 1 << stage)
            a, b = y[:, :, 0], y[:, :, 1]
            y = torch.stack([a + b, a - b], 2).view(-1, n)
        return y / math.sqrt(n)


@case("wav: f32[b, 1, n]", least={"n": 40})
class AudioWav2VecStrides(nn.Module):
    layers = [(10, 5), (3, 2), (2, 2)]

    def __init__(self):
        super().__init__()
        dims = [1, 8, 8, 8]
        self.convs = nn.ModuleList(
            nn.Conv1d(dims[i], dims[i + 1], k, s) for i, (k, s) in enumerate(self.layers))

    def output_length(self, n):
        for k, s in self.layers:
            n = conv_length(n, k, s)
        return n

    def forward(self, wav):
        x = wav
        for conv in self.convs:
            x = F.gelu(conv(x))
        pos = torch.arange(self.output_length(wav.shape[-1])) / 10
        return x.transpose(1, 2) + pos[None, :, None]


@case("x: f32[b, 4, t]")
class AudioCausalDilatedStack(nn.Module):
    def __init__(self):
        super().__init__()
        self.convs = nn.ModuleList(nn.Conv1d(4, 4, 3, dilation=2 ** i) for i in range(3))

    def forward(self, x):
        for i, conv in enumerate(self.convs):
            pad = (conv.kernel_size[0] - 1) * conv.dilation[0]
            x = x + torch.tanh(conv(F.pad(x, (pad, 0))))
        return x


@case("x: f32[b, 4, t]")
class AudioSamePaddingStrideThree(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(4, 6, 5, stride=3)

    def forward(self, x):
        t = x.shape[-1]
        k, s = self.conv.kernel_size[0], self.conv.stride[0]
        pad = max((math.ceil(t / s) - 1) * s + k - t, 0)
        return self.conv(F.pad(x, (pad // 2, pad - pad // 2)))


@case("x: f32[b, 4, t]", least={"t": 4})
class AudioUnetCropToSkip(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Conv1d(4, 8, 4, stride=2, padding=1)
        self.up = nn.ConvTranspose1d(8, 4, 4, stride=2, padding=1)

    def forward(self, x):
        y = self.up(F.relu(self.down(x)))
        if y.shape[-1] < x.shape[-1]:
            y = F.pad(y, (0, x.shape[-1] - y.shape[-1]))
        return torch.cat([x, y], dim=1)


@case("x: f32[b, 3, t]", least={"t": 2})
class AudioTransposeOutputPadding(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Conv1d(3, 5, 3, stride=2, padding=1)
        self.up = nn.ConvTranspose1d(5, 3, 3, stride=2, padding=1)

    def forward(self, x):
        y = torch.relu(self.down(x))
        return self.up(y, output_size=[x.shape[-1]]) + x


@case("x: f32[b, 3, t]", least={"t": 2})
class AudioOutputPaddingByParity(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(3, 3, 3) * 0.3)

    def forward(self, x):
        y = F.conv1d(x, self.weight, stride=2, padding=1)
        odd = 1 - x.size(2) % 2
        return F.conv_transpose1d(y, self.weight, stride=2, padding=1, output_padding=odd)


@case("x: f32[b, 2, t]")
class AudioUnetPadToEight(nn.Module):
    def __init__(self):
        super().__init__()
        c = [2, 4, 6, 8]
        self.down = nn.ModuleList(nn.Conv1d(c[i], c[i + 1], 3, 2, 1) for i in range(3))
        self.up = nn.ModuleList(
            nn.ConvTranspose1d(c[i + 1], c[i], 4, 2, 1) for i in reversed(range(3)))

    def forward(self, x):
        t = x.shape[-1]
        x, _ = pad_to_multiple(x, 8)
        skips = []
        for conv in self.down:
            skips.append(x)
            x = F.relu(conv(x))
        for conv in self.up:
            x = conv(x) + skips.pop()
        return x[..., :t]


@case("x: f32[b, 3, t]", least={"t": 2})
class SeriesDecomposition(nn.Module):
    def __init__(self, kernel_size=7):
        super().__init__()
        self.kernel_size = kernel_size
        self.avg = nn.AvgPool1d(kernel_size, stride=1, padding=0)

    def forward(self, x):
        side = (self.kernel_size - 1) // 2
        front = x[:, :, 0:1].repeat(1, 1, side)
        end = x[:, :, -1:].repeat(1, 1, side)
        trend = self.avg(torch.cat([front, x, end], dim=2))
        return x - trend, trend


@case("x: f32[b, t]")
class SeriesMovingAverageByCumsum(nn.Module):
    window = 5

    def forward(self, x):
        t = x.shape[1]
        w = min(self.window, t)
        c = F.pad(x.cumsum(1), (1, 0))
        return (c[:, w:] - c[:, :t + 1 - w]) / w


@case("x: f32[b, t]")
class SeriesExponentialAverageMatrix(nn.Module):
    alpha = 0.3

    def forward(self, x):
        t = x.shape[-1]
        power = (torch.arange(t)[:, None] - torch.arange(t)[None, :]).float()
        weights = self.alpha * (1 - self.alpha) ** power.clamp(min=0)
        return x @ torch.tril(weights).T


@case("x: f32[b, t]", most={"t": 64})
class SeriesExponentialAverageLoop(nn.Module):
    def forward(self, x):
        state = x[:, 0]
        out = [state]
        for i in range(1, x.shape[1]):
            state = 0.7 * state + 0.3 * x[:, i]
            out.append(state)
        return torch.stack(out, dim=1)


@case("x: f32[b, t, 3]", least={"t": 3})
class SeriesDifferences(nn.Module):
    def forward(self, x):
        first = x[:, 1:] - x[:, :-1]
        second = torch.diff(x, n=2, dim=1)
        return torch.cat([first[:, 1:], second], dim=-1)


@case("x: f32[b, t, 3]", least={"t": 2})
class SeriesInstanceStandardise(nn.Module):
    def forward(self, x):
        n = x.shape[1]
        mean = x.sum(1, keepdim=True) / n
        var = ((x - mean) ** 2).sum(1, keepdim=True) / (n - 1)
        return (x - mean) / torch.sqrt(var + 1e-5), var.squeeze(1)


@case("x: f32[b, t, 3]", least={"t": 12})
class SeriesPatchTst(nn.Module):
    patch, stride = 6, 3

    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(6, 8)
        self.pos = nn.Parameter(torch.randn(40, 8))

    def forward(self, x):
        x = F.pad(x.permute(0, 2, 1), (0, self.stride), mode="replicate")
        z = x.unfold(-1, self.patch, self.stride)
        b, c, p, _ = z.shape
        z = self.embed(z) + self.pos[:p]
        return z.reshape(b * c, p, 8).mean(1).view(b, c, 8)


@case("x: f32[b, t, 4]", least={"t": 5})
class SeriesTopPeriodFold(nn.Module):
    period = 5

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(4, 4, 3, padding=1)

    def forward(self, x):
        B, T, N = x.size()
        if T % self.period != 0:
            length = (T // self.period + 1) * self.period
            x = torch.cat([x, torch.zeros(B, length - T, N)], dim=1)
        else:
            length = T
        y = x.reshape(B, length // self.period, self.period, N).permute(0, 3, 1, 2)
        y = self.conv(y.contiguous()).permute(0, 2, 3, 1).reshape(B, -1, N)
        return y[:, :T]


@case("x: f32[b, t]", least={"t": 2})
class SeriesAutocorrelationLags(nn.Module):
    def forward(self, x):
        n = x.shape[-1]
        lags = int(2 * math.log(n)) + 1
        x = x - x.mean(-1, keepdim=True)
        out = [(x * torch.roll(x, k, dims=-1)).sum(-1) / n for k in range(lags)]
        return torch.stack(out, -1)


@case("x: f32[b, t]")
class SeriesTimeFeatures(nn.Module):
    periods = {"day": 24, "week": 7}

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(5, 4)

    def forward(self, x):
        t = torch.arange(x.shape[1], dtype=torch.float32)
        feats = [x]
        for p in self.periods.values():
            feats += [torch.sin(2 * math.pi * t / p).expand_as(x),
                      torch.cos(2 * math.pi * t / p).expand_as(x)]
        return self.fc(torch.stack(feats, dim=-1))


@case("x: f32[b, t]")
class SeriesSeasonalLookup(nn.Module):
    def __init__(self):
        super().__init__()
        self.season = nn.Parameter(torch.randn(7))

    def forward(self, x):
        index = torch.tensor([i % 7 for i in range(x.shape[1])])
        return x + self.season[index]


@case("x: f32[b, t]", least={"t": 3})
class SeriesLinearDetrend(nn.Module):
    def forward(self, x):
        n = x.shape[1]
        t = torch.linspace(-1, 1, n)
        slope = (x * t).sum(1, keepdim=True) / (t * t).sum()
        return x - slope * t - x.mean(1, keepdim=True)


@case("x: f32[b, t]")
class SeriesHoltBinomialSmoother(nn.Module):
    def kernel(self, n):
        order = min(n - 1, 6)
        row = [math.comb(order, i) for i in range(order + 1)]
        return torch.tensor(row, dtype=torch.float32) / 2 ** order

    def forward(self, x):
        k = self.kernel(x.shape[1])
        return F.conv1d(x.unsqueeze(1), k.view(1, 1, -1), padding=len(k) // 2).squeeze(1)


@case("x: f32[b, 2, t]", least={"t": 4})
class AudioResampleByScaleFactor(nn.Module):
    def forward(self, x):
        return F.interpolate(x, scale_factor=1.5, mode="linear", align_corners=False)


@case("x: f32[b, 2, t]", least={"t": 3})
class AudioResampleRateRatio(nn.Module):
    orig, new = 24000, 16000

    def forward(self, x):
        g = math.gcd(self.orig, self.new)
        up, down = self.new // g, self.orig // g
        length = x.shape[-1] * up // down
        return F.interpolate(x, size=length, mode="linear", align_corners=True)


@case("x: f32[b, t]", least={"t": 2})
class AudioResampleNumpyGrid(nn.Module):
    def forward(self, x):
        n = x.shape[-1]
        m = int(round(n * 0.8))
        where = np.linspace(0, n - 1, m)
        low = np.floor(where).astype(np.int64)
        high = np.minimum(low + 1, n - 1)
        frac = torch.tensor(where - low, dtype=torch.float32)
        return x[:, torch.tensor(low)] * (1 - frac) + x[:, torch.tensor(high)] * frac


@case("mel: f32[b, t, 6]", "wav: f32[b, 4*t]")
class AudioVocoderConditioning(nn.Module):
    hop = 4

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(7, 5)

    def forward(self, mel, wav):
        up = mel.repeat_interleave(self.hop, dim=1)[:, :wav.shape[1]]
        return self.fc(torch.cat([up, wav.unsqueeze(-1)], -1)).tanh()


@case("x: f32[b, t, 6]")
class AudioSubsampleStackFrames(nn.Module):
    def __init__(self, factor=3):
        super().__init__()
        self.factor = factor
        self.proj = nn.Linear(6 * factor, 6)

    def forward(self, x):
        b, t, c = x.shape
        keep = t - t % self.factor if t >= self.factor else t
        if keep % self.factor:
            x = F.pad(x, (0, 0, 0, self.factor - keep))
            keep = self.factor
        return self.proj(x[:, :keep].reshape(b, keep // self.factor, c * self.factor))


@case("x: f32[b, t, 8]", least={"t": 7})
class AudioConformerSubsampling(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv2d(1, 4, 3, 2), nn.ReLU(), nn.Conv2d(4, 4, 3, 2), nn.ReLU())
        self.out = nn.Linear(4 * (((8 - 1) // 2 - 1) // 2), 6)

    def forward(self, x):
        x = self.conv(x.unsqueeze(1))
        b, c, t, f = x.size()
        return self.out(x.transpose(1, 2).contiguous().view(b, t, c * f))


@case("x: f32[b, t, 6]")
class AudioStatsPooling(nn.Module):
    def forward(self, x):
        t = x.size(1)
        mean = x.mean(1)
        std = x.std(1) if t > 1 else torch.zeros_like(mean)
        return torch.cat([mean, std], dim=-1)


@case("x: f32[b, 6, t]")
class AudioAdaptivePoolPyramid(nn.Module):
    levels = (1, 2, 4)

    def forward(self, x):
        return torch.cat([F.adaptive_avg_pool1d(x, n).flatten(1) for n in self.levels], 1)


@case("x: f32[b, 6, t]")
class AudioPoolWholeAxis(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(12, 3)

    def forward(self, x):
        mx = F.max_pool1d(x, kernel_size=x.shape[2]).squeeze(2)
        av = F.avg_pool1d(x, kernel_size=x.size(-1)).squeeze(2)
        return self.fc(torch.cat([mx, av], 1))


@case("x: f32[b, 4, t]")
class AudioPoolToTenFrames(nn.Module):
    def forward(self, x):
        stride = max(1, x.shape[-1] // 10)
        kernel = x.shape[-1] - stride * (min(10, x.shape[-1]) - 1)
        return F.avg_pool1d(x, kernel, stride)


@case("x: f32[b, 4, t]")
class AudioTemporalShift(nn.Module):
    def forward(self, x):
        fold = x.shape[1] // 4
        left = F.pad(x[:, :fold, 1:], (0, 1))
        right = F.pad(x[:, fold:2 * fold, :-1], (1, 0))
        return torch.cat([left, right, x[:, 2 * fold:]], dim=1)


@case("x: f32[b, 4, t]", least={"t": 5})
class AudioReflectPaddedSmooth(nn.Module):
    def __init__(self):
        super().__init__()
        self.pad = nn.ReflectionPad1d(4)
        self.conv = nn.Conv1d(4, 4, 9, groups=4)

    def forward(self, x):
        return self.conv(self.pad(x)) - x


@case("x: f32[b, 2*n]")
class SeriesHaarLevels(nn.Module):
    def forward(self, x):
        bands = []
        while x.shape[-1] % 2 == 0 and x.shape[-1] > 1:
            even, odd = x[:, ::2], x[:, 1::2]
            bands.append((even - odd) / math.sqrt(2))
            x = (even + odd) / math.sqrt(2)
        return torch.cat([x] + bands[::-1], dim=1)


@case("x: f32[b, t]", least={"t": 4})
class SeriesMaxLevelWavelet(nn.Module):
    def forward(self, x):
        levels = math.floor(math.log2(x.shape[-1]))
        out = []
        for _ in range(levels):
            if x.shape[-1] % 2:
                x = torch.cat([x, x[:, -1:]], dim=1)
            out.append((x[:, ::2] - x[:, 1::2]).abs().mean(1))
            x = (x[:, ::2] + x[:, 1::2]) / 2
        return torch.stack(out, 1)


@case("x: f32[b, t]")
class SeriesNormalisedWindow(nn.Module):
    def forward(self, x):
        w = torch.hann_window(x.shape[1], periodic=False) + 0.1
        return (x * w).sum(1) / w.sum(), x * w


@case("x: f32[b, t]", least={"t": 2})
class SeriesHammingNumpy(nn.Module):
    def forward(self, x):
        w = torch.as_tensor(np.hamming(x.shape[1]), dtype=x.dtype)
        return x * w / np.sqrt((np.hamming(x.shape[1]) ** 2).sum())
