"""torch.nn's modules."""
import torch
from torch import nn

from case import b, case, f, i, modules, note, pos, unit


def image(n):
    return f(n, 12, 10, 14),


def signal(n):
    return f(n, 12, 24),


def volume(n):
    return f(n, 4, 6, 8, 10),


def rows(n):
    return f(n, 12),


for name, made in {
    "CELU": [nn.CELU, lambda: nn.CELU(0.3)], "ELU": [nn.ELU, lambda: nn.ELU(1.7)],
    "GELU": [nn.GELU, lambda: nn.GELU("tanh")], "Hardshrink": [nn.Hardshrink, lambda: nn.Hardshrink(1.1)],
    "Hardsigmoid": [nn.Hardsigmoid], "Hardswish": [nn.Hardswish], "Hardtanh": [nn.Hardtanh, lambda: nn.Hardtanh(-0.2, 2)],
    "LeakyReLU": [nn.LeakyReLU, lambda: nn.LeakyReLU(-0.24)], "LogSigmoid": [nn.LogSigmoid], "Mish": [nn.Mish],
    "ReLU": [nn.ReLU, lambda: nn.ReLU(inplace=True)], "ReLU6": [nn.ReLU6], "RReLU": [nn.RReLU, lambda: nn.RReLU(0.1, 0.5)],
    "SELU": [nn.SELU], "SiLU": [nn.SiLU], "Sigmoid": [nn.Sigmoid], "Softplus": [nn.Softplus, lambda: nn.Softplus(0.7, 5)],
    "Softshrink": [nn.Softshrink, lambda: nn.Softshrink(1.3)], "Softsign": [nn.Softsign], "Tanh": [nn.Tanh],
    "Tanhshrink": [nn.Tanhshrink], "Threshold": [lambda: nn.Threshold(0.1, 20)], "Identity": [nn.Identity],
    "Dropout": [nn.Dropout, lambda: nn.Dropout(0.7)], "AlphaDropout": [nn.AlphaDropout],
    "Softmax": [lambda: nn.Softmax(0), lambda: nn.Softmax(1), lambda: nn.Softmax(-1)],
    "Softmin": [lambda: nn.Softmin(0), lambda: nn.Softmin(-1)],
    "LogSoftmax": [lambda: nn.LogSoftmax(0), lambda: nn.LogSoftmax(2)],
    "GLU": [nn.GLU, lambda: nn.GLU(1)], "PReLU": [nn.PReLU, lambda: nn.PReLU(12)],
    "Flatten": [nn.Flatten, lambda: nn.Flatten(0), lambda: nn.Flatten(1, 2), lambda: nn.Flatten(0, -2)],
    "FeatureAlphaDropout": [nn.FeatureAlphaDropout], "Dropout2d": [nn.Dropout2d],
}.items():
    modules("nn_" + name, image, *made)

modules("nn_Dropout1d", signal, nn.Dropout1d)
modules("nn_Dropout3d", volume, nn.Dropout3d)
modules("nn_Softmax2d", image, nn.Softmax2d)
modules("nn_Unflatten", rows, lambda: nn.Unflatten(1, (3, 4)), lambda: nn.Unflatten(-1, (2, -1, 3)))

modules("nn_Linear", rows, lambda: nn.Linear(12, 5), lambda: nn.Linear(12, 7, bias=False))
modules("nn_Linear_3d", lambda n: (f(n, 5, 12),), lambda: nn.Linear(12, 5), lambda: nn.Linear(12, 7, bias=False))
modules("nn_Linear_1d", lambda n: (f(12),), lambda: nn.Linear(12, 5))
modules("nn_Bilinear", lambda n: (f(n, 6), f(n, 4)), lambda: nn.Bilinear(6, 4, 5), lambda: nn.Bilinear(6, 4, 3, bias=False))

modules("nn_Conv1d", signal, lambda: nn.Conv1d(12, 16, 3), lambda: nn.Conv1d(12, 20, 2, stride=2, padding=2),
        lambda: nn.Conv1d(12, 24, 3, padding="same", dilation=2, groups=4, bias=False),
        lambda: nn.Conv1d(12, 12, 5, padding=3, padding_mode="reflect"),
        lambda: nn.Conv1d(12, 12, 5, padding=3, padding_mode="circular"),
        lambda: nn.Conv1d(12, 6, 4, padding="valid", padding_mode="replicate"))
modules("nn_Conv2d", image, lambda: nn.Conv2d(12, 16, 3), lambda: nn.Conv2d(12, 20, (2, 4), (2, 1), 2, (1, 2)),
        lambda: nn.Conv2d(12, 24, (1, 3), padding=(2, 0), groups=12, bias=False), lambda: nn.Conv2d(12, 8, 4, padding="same"),
        lambda: nn.Conv2d(12, 6, 3, padding=(2, 1), padding_mode="reflect"),
        lambda: nn.Conv2d(12, 6, 3, padding=1, padding_mode="replicate", stride=2),
        lambda: nn.Conv2d(12, 6, 3, padding=(1, 2), padding_mode="circular"))
modules("nn_Conv3d", volume, lambda: nn.Conv3d(4, 6, 3), lambda: nn.Conv3d(4, 8, (2, 3, 1), (2, 1, 1), (2, 2, 0), groups=2),
        lambda: nn.Conv3d(4, 4, 3, padding="same", bias=False), lambda: nn.Conv3d(4, 4, 3, padding=1, padding_mode="replicate"))
modules("nn_ConvTranspose1d", signal, lambda: nn.ConvTranspose1d(12, 16, 3),
        lambda: nn.ConvTranspose1d(12, 18, 4, stride=3, padding=2, output_padding=1, groups=3, bias=False, dilation=2))
modules("nn_ConvTranspose2d", image, lambda: nn.ConvTranspose2d(12, 16, 3),
        lambda: nn.ConvTranspose2d(12, 8, (2, 4), (2, 3), (1, 2), (1, 0), 4, False), lambda: nn.ConvTranspose2d(12, 6, 3, dilation=2))
modules("nn_ConvTranspose3d", volume, lambda: nn.ConvTranspose3d(4, 6, 3),
        lambda: nn.ConvTranspose3d(4, 4, 2, 2, 1, (1, 0, 1), 2, False))


class OutputSize(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.ConvTranspose2d(12, 6, 3, 2, 1)

    def forward(self, x):
        return self.up(x, output_size=(20, 27)), self.up(x, output_size=[19, 28])


note("nn_ConvTranspose2d_output_size", OutputSize, image)
for name, lazy in {"LazyConv2d": lambda: nn.LazyConv2d(6, 3), "LazyLinear": lambda: nn.LazyLinear(5),
                   "LazyBatchNorm2d": nn.LazyBatchNorm2d}.items():
    def make(lazy=lazy):
        m = lazy()
        m(f(2, 12, 10, 14))
        return m
    modules("nn_" + name, image, make)

for d, x in (1, signal), (2, image), (3, volume):
    ch = x(1)[0].shape[1]

    def kind(name, d=d):
        return getattr(nn, name + "%dd" % d)
    modules("nn_AvgPool%dd" % d, x, lambda k=kind("AvgPool"): k(3), lambda k=kind("AvgPool"): k(4, 2, 2),
            lambda k=kind("AvgPool"): k(3, 2, 1, ceil_mode=True, count_include_pad=False),
            lambda k=kind("AvgPool"): k(2, stride=1, padding=1, count_include_pad=True, ceil_mode=True))
    modules("nn_MaxPool%dd" % d, x, lambda k=kind("MaxPool"): k(3), lambda k=kind("MaxPool"): k(4, 2, 2),
            lambda k=kind("MaxPool"): k(3, 2, 1, ceil_mode=True), lambda k=kind("MaxPool"): k(3, 1, 1, dilation=2),
            lambda k=kind("MaxPool"): k(2, return_indices=True))
    modules("nn_LPPool%dd" % d, x, lambda k=kind("LPPool"): k(2, 3), lambda k=kind("LPPool"): k(1, 2, 2),
            lambda k=kind("LPPool"): k(3, 3, ceil_mode=True))
    modules("nn_AdaptiveAvgPool%dd" % d, x, lambda k=kind("AdaptiveAvgPool"): k(1), lambda k=kind("AdaptiveAvgPool"): k(4),
            lambda k=kind("AdaptiveAvgPool"), d=d: k((None,) * (d - 1) + (3,)) if d > 1 else k(5))
    modules("nn_AdaptiveMaxPool%dd" % d, x, lambda k=kind("AdaptiveMaxPool"): k(1), lambda k=kind("AdaptiveMaxPool"): k(4),
            lambda k=kind("AdaptiveMaxPool"): k(3, return_indices=True))
    modules("nn_BatchNorm%dd" % d, x, lambda k=kind("BatchNorm"), c=ch: k(c), lambda k=kind("BatchNorm"), c=ch: k(c, eps=1e-2, affine=False),
            lambda k=kind("BatchNorm"), c=ch: k(c, track_running_stats=False))
    modules("nn_InstanceNorm%dd" % d, x, lambda k=kind("InstanceNorm"), c=ch: k(c),
            lambda k=kind("InstanceNorm"), c=ch: k(c, eps=1e-2, affine=True),
            lambda k=kind("InstanceNorm"), c=ch: k(c, affine=True, track_running_stats=True))
    modules("nn_ConstantPad%dd" % d, x, lambda k=kind("ConstantPad"): k(2, 3.5), lambda k=kind("ConstantPad"), d=d: k((3, 1) * d, -1))
    modules("nn_ZeroPad%dd" % d, x, lambda k=kind("ZeroPad"): k(2), lambda k=kind("ZeroPad"), d=d: k((-1, 1) * d))
    modules("nn_ReflectionPad%dd" % d, x, lambda k=kind("ReflectionPad"): k(2), lambda k=kind("ReflectionPad"), d=d: k((3, 0) * d))
    modules("nn_ReplicationPad%dd" % d, x, lambda k=kind("ReplicationPad"): k(2), lambda k=kind("ReplicationPad"), d=d: k((3, 1) * d))
    modules("nn_CircularPad%dd" % d, x, lambda k=kind("CircularPad"): k(2), lambda k=kind("CircularPad"), d=d: k((3, 1) * d))

for d, x in (1, signal), (2, image), (3, volume):
    class Unpool(nn.Module):
        def __init__(self, d=d):
            super().__init__()
            self.down = getattr(nn, "MaxPool%dd" % d)(2, return_indices=True)
            self.up = getattr(nn, "MaxUnpool%dd" % d)(2)

        def forward(self, x):
            y, at = self.down(x)
            return self.up(y, at), self.up(y, at, output_size=x.shape[2:])
    note("nn_MaxUnpool%dd" % d, Unpool, x)

modules("nn_FractionalMaxPool2d", image, lambda: nn.FractionalMaxPool2d(2, output_size=(4, 6)), random=True)
modules("nn_BatchNorm1d_rows", rows, lambda: nn.BatchNorm1d(12))
modules("nn_GroupNorm", image, lambda: nn.GroupNorm(4, 12), lambda: nn.GroupNorm(12, 12, eps=1e-2, affine=False), lambda: nn.GroupNorm(1, 12))
modules("nn_LayerNorm", image, lambda: nn.LayerNorm(14), lambda: nn.LayerNorm((10, 14), elementwise_affine=False, eps=1e-2),
        lambda: nn.LayerNorm((12, 10, 14)), lambda: nn.LayerNorm(14, bias=False))
modules("nn_RMSNorm", image, lambda: nn.RMSNorm(14), lambda: nn.RMSNorm((10, 14), eps=1e-2, elementwise_affine=False))
modules("nn_LocalResponseNorm", image, lambda: nn.LocalResponseNorm(3), lambda: nn.LocalResponseNorm(4, 0.01, 0.5, 2))
modules("nn_CrossMapLRN2d", image, lambda: nn.CrossMapLRN2d(3))
modules("nn_PixelShuffle", image, lambda: nn.PixelShuffle(2), lambda: nn.PixelShuffle(1))
modules("nn_PixelUnshuffle", image, lambda: nn.PixelUnshuffle(2), least=1)
modules("nn_ChannelShuffle", image, lambda: nn.ChannelShuffle(3), lambda: nn.ChannelShuffle(4))
modules("nn_Fold", lambda n: (f(n, 12, 20),), lambda: nn.Fold((5, 6), (2, 2)), lambda: nn.Fold((6, 12), (2, 3), 1, (0, 0), (2, 3)) if False else nn.Fold((5, 6), 2))
modules("nn_Unfold", image, lambda: nn.Unfold(3), lambda: nn.Unfold((2, 4), (2, 1), 2, (1, 2)))
modules("nn_Upsample_1d", signal, lambda: nn.Upsample(30), lambda: nn.Upsample(scale_factor=2.0),
        lambda: nn.Upsample(scale_factor=1.6, mode="linear"), lambda: nn.Upsample(31, mode="linear", align_corners=True))
modules("nn_Upsample_2d", image, lambda: nn.Upsample((20, 7)), lambda: nn.Upsample(scale_factor=(2, 3)),
        lambda: nn.Upsample(scale_factor=2, mode="bilinear"), lambda: nn.Upsample((7, 20), mode="bilinear", align_corners=True),
        lambda: nn.Upsample(scale_factor=1.5, mode="bicubic"), lambda: nn.Upsample((21, 9), mode="bicubic", align_corners=True),
        lambda: nn.Upsample(scale_factor=1.7, mode="bilinear", recompute_scale_factor=True),
        lambda: nn.Upsample((13, 9), mode="nearest-exact"))
modules("nn_Upsample_3d", volume, lambda: nn.Upsample(12), lambda: nn.Upsample(scale_factor=2, mode="trilinear"),
        lambda: nn.Upsample((7, 9, 8), mode="trilinear", align_corners=True))
modules("nn_UpsamplingNearest2d", image, lambda: nn.UpsamplingNearest2d(scale_factor=2), lambda: nn.UpsamplingNearest2d((20, 13)))
modules("nn_UpsamplingBilinear2d", image, lambda: nn.UpsamplingBilinear2d(scale_factor=2), lambda: nn.UpsamplingBilinear2d((20, 13)))

modules("nn_Embedding", lambda n: (i(0, 10, n, 6),), lambda: nn.Embedding(10, 8), lambda: nn.Embedding(10, 5, padding_idx=0))
modules("nn_Embedding_max_norm", lambda n: (i(0, 10, n, 6),), lambda: nn.Embedding(10, 8, max_norm=1.0))
modules("nn_EmbeddingBag", lambda n: (i(0, 10, n, 6),), lambda: nn.EmbeddingBag(10, 8), lambda: nn.EmbeddingBag(10, 5, mode="sum"),
        lambda: nn.EmbeddingBag(10, 5, mode="max"), lambda: nn.EmbeddingBag(10, 5, mode="mean", padding_idx=2))
modules("nn_EmbeddingBag_offsets", lambda n: (i(0, 10, 2 * n), torch.arange(n) * 2), lambda: nn.EmbeddingBag(10, 8),
        lambda: nn.EmbeddingBag(10, 5, mode="max"), lambda: nn.EmbeddingBag(10, 5, mode="sum"))

modules("nn_CosineSimilarity", lambda n: (f(n, 12, 5), f(n, 12, 5)), nn.CosineSimilarity, lambda: nn.CosineSimilarity(0), lambda: nn.CosineSimilarity(2, 1e-3))
modules("nn_PairwiseDistance", lambda n: (f(n, 12), f(n, 12)), nn.PairwiseDistance, lambda: nn.PairwiseDistance(1.0, keepdim=True), lambda: nn.PairwiseDistance(float("inf")))
modules("nn_losses", lambda n: (f(n, 12), f(n, 12)), nn.MSELoss, nn.L1Loss, nn.SmoothL1Loss, nn.HuberLoss,
        lambda: nn.MSELoss(reduction="none"), lambda: nn.L1Loss(reduction="sum"), lambda: nn.HuberLoss("none", 0.3), nn.SoftMarginLoss)
modules("nn_losses_of_chances", lambda n: (unit(n, 12), unit(n, 12)), nn.BCELoss, nn.BCEWithLogitsLoss, nn.KLDivLoss, nn.PoissonNLLLoss,
        lambda: nn.BCELoss(reduction="none"), lambda: nn.KLDivLoss(reduction="batchmean", log_target=True), nn.MultiLabelSoftMarginLoss)
modules("nn_losses_of_classes", lambda n: (f(n, 12), i(0, 12, n)), nn.CrossEntropyLoss, nn.NLLLoss, nn.MultiMarginLoss,
        lambda: nn.CrossEntropyLoss(label_smoothing=0.1, reduction="sum"), lambda: nn.CrossEntropyLoss(ignore_index=3, reduction="none"),
        lambda: nn.NLLLoss(weight=torch.arange(12.)))
modules("nn_losses_of_three", lambda n: (f(n, 12), f(n, 12), f(n, 12)), nn.TripletMarginLoss, nn.TripletMarginWithDistanceLoss,
        lambda: nn.TripletMarginLoss(0.5, 1, swap=True, reduction="none"))
modules("nn_GaussianNLLLoss", lambda n: (f(n, 12), f(n, 12), pos(n, 12)), nn.GaussianNLLLoss)
modules("nn_MarginRankingLoss", lambda n: (f(n), f(n), f(n).sign()), nn.MarginRankingLoss, lambda: nn.MarginRankingLoss(0.4, reduction="none"))
modules("nn_CosineEmbeddingLoss", lambda n: (f(n, 5), f(n, 5), f(n).sign()), nn.CosineEmbeddingLoss)

modules("nn_RNN", lambda n: (f(n, 5, 12),), lambda: nn.RNN(12, 6, batch_first=True), lambda: nn.RNN(12, 6, 2, nonlinearity="relu", bias=False, batch_first=True, bidirectional=True))
modules("nn_LSTM", lambda n: (f(n, 5, 12),), lambda: nn.LSTM(12, 6, batch_first=True), lambda: nn.LSTM(12, 6, 2, batch_first=True, bidirectional=True, bias=False),
        lambda: nn.LSTM(12, 6, batch_first=True, proj_size=4))
modules("nn_GRU", lambda n: (f(n, 5, 12),), lambda: nn.GRU(12, 6, batch_first=True), lambda: nn.GRU(12, 6, 2, batch_first=True, bidirectional=True, bias=False))
modules("nn_LSTM_time_first", lambda n: (f(n, 2, 12),), lambda: nn.LSTM(12, 6), lambda: nn.GRU(12, 6, bidirectional=True), lambda: nn.RNN(12, 5))
modules("nn_GRU_with_state", lambda n: (f(n, 3, 12), f(1, 3, 6)), lambda: nn.GRU(12, 6), lambda: nn.RNN(12, 6))
modules("nn_GRU_unbatched", lambda n: (f(n, 12),), lambda: nn.GRU(12, 6), lambda: nn.LSTM(12, 6), lambda: nn.RNN(12, 6))


class LSTMState(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(12, 6, batch_first=True)

    def forward(self, x, h, c):
        y, (h, c) = self.rnn(x, (h.transpose(0, 1), c.transpose(0, 1)))
        return y, h.transpose(0, 1), c.transpose(0, 1)


note("nn_LSTM_with_state", LSTMState, lambda n: (f(n, 5, 12), f(n, 1, 6), f(n, 1, 6)))
modules("nn_RNNCell", lambda n: (f(n, 12), f(n, 6)), lambda: nn.RNNCell(12, 6), lambda: nn.GRUCell(12, 6), lambda: nn.RNNCell(12, 6, False, "relu"))


class LSTMCell(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.LSTMCell(12, 6)

    def forward(self, x, h, c):
        return self.cell(x, (h, c)), self.cell(x)


note("nn_LSTMCell", LSTMCell, lambda n: (f(n, 12), f(n, 6), f(n, 6)))


class Attention(nn.Module):
    def __init__(self, **settings):
        super().__init__()
        self.attn = nn.MultiheadAttention(16, 4, **settings)

    def forward(self, q, k):
        return self.attn(q, k, k)


note("nn_MultiheadAttention", lambda: Attention(batch_first=True), lambda n: (f(n, 5, 16), f(n, 7, 16)))
note("nn_MultiheadAttention_time_first", lambda: Attention(), lambda n: (f(n, 2, 16), f(n + 1, 2, 16)))
note("nn_MultiheadAttention_bias_kv", lambda: Attention(batch_first=True, add_bias_kv=True, add_zero_attn=True, bias=False),
     lambda n: (f(n, 5, 16), f(n, 7, 16)))
note("nn_MultiheadAttention_dims", lambda: Attention(batch_first=True, kdim=10, vdim=10), lambda n: (f(n, 5, 16), f(n, 7, 10)))


class MaskedAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.attn = nn.MultiheadAttention(16, 4, batch_first=True)

    def forward(self, x, mask):
        y, w = self.attn(x, x, x, key_padding_mask=mask, average_attn_weights=False)
        z, _ = self.attn(x, x, x, attn_mask=torch.triu(torch.ones(5, 5, dtype=torch.bool), 1), need_weights=False)
        return y, w, z


note("nn_MultiheadAttention_masks", MaskedAttention, lambda n: (f(n, 5, 16), torch.arange(5).expand(n, 5) > 2))
modules("nn_TransformerEncoderLayer", lambda n: (f(n, 5, 16),), lambda: nn.TransformerEncoderLayer(16, 4, 32, batch_first=True),
        lambda: nn.TransformerEncoderLayer(16, 2, 20, activation="gelu", batch_first=True, norm_first=True, bias=False))
modules("nn_TransformerEncoder", lambda n: (f(n, 5, 16),), lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 4, 32, batch_first=True), 2, nn.LayerNorm(16)))
modules("nn_TransformerDecoderLayer", lambda n: (f(n, 5, 16), f(n, 7, 16)), lambda: nn.TransformerDecoderLayer(16, 4, 32, batch_first=True))
modules("nn_TransformerDecoder", lambda n: (f(n, 5, 16), f(n, 7, 16)), lambda: nn.TransformerDecoder(nn.TransformerDecoderLayer(16, 4, 32, batch_first=True), 2))
modules("nn_Transformer", lambda n: (f(n, 5, 16), f(n, 7, 16)), lambda: nn.Transformer(16, 4, 1, 1, 32, batch_first=True))
modules("nn_Transformer_time_first", lambda n: (f(n, 2, 16), f(n + 2, 2, 16)), lambda: nn.Transformer(16, 4, 1, 1, 32))
modules("nn_AdaptiveLogSoftmaxWithLoss", lambda n: (f(n, 16), i(0, 20, n)), lambda: nn.AdaptiveLogSoftmaxWithLoss(16, 20, [5, 10]))


class AdaptiveLogProb(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.AdaptiveLogSoftmaxWithLoss(16, 20, [5, 10])

    def forward(self, x):
        return self.head.log_prob(x), self.head.predict(x)


note("nn_AdaptiveLogSoftmax_log_prob", AdaptiveLogProb, lambda n: (f(n, 16),))


class Sequential(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Sequential(nn.Conv2d(12, 4, 3), nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.b = nn.ParameterList([torch.arange(4.), torch.ones(4)])
        self.c = nn.ParameterDict({"w": nn.Parameter(torch.arange(4.))})

    def forward(self, x):
        return self.a(x) * self.b[0] + self.b[1] - self.c["w"]


note("nn_containers", Sequential, image)


def normed(made, by):
    return lambda: by(made())


modules("nn_weight_norm", rows, normed(lambda: nn.Linear(12, 5), nn.utils.weight_norm),
        normed(lambda: nn.Linear(12, 5), nn.utils.parametrizations.weight_norm),
        normed(lambda: nn.Linear(12, 5), nn.utils.spectral_norm), normed(lambda: nn.Linear(12, 5), nn.utils.parametrizations.spectral_norm))
modules("nn_orthogonal", rows, normed(lambda: nn.Linear(12, 12), nn.utils.parametrizations.orthogonal))
