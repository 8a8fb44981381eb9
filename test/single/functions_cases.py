"""torch.nn.functional's functions."""
import torch
import torch.nn.functional as F

from case import b, case, f, i, pos, unit


@case(lambda n: (f(n, 12, 10, 14),))
def F_activations(x):
    return (F.relu(x), F.relu6(x), F.leaky_relu(x, 0.1), F.elu(x, 1.2), F.celu(x, 0.8), F.selu(x), F.gelu(x), F.silu(x), F.mish(x),
            F.gelu(x, approximate="tanh"), F.hardtanh(x, -1, 0.5), F.hardswish(x), F.hardsigmoid(x), F.softplus(x, 2, 15),
            F.softsign(x), F.softshrink(x, 0.7), F.hardshrink(x, 0.4), F.tanhshrink(x), F.logsigmoid(x), F.threshold(x, 0.2, -3),
            F.rrelu(x), F.tanh(x), F.sigmoid(x))


@case(lambda n: (f(n, 6),))
def F_activations_in_place(x):
    y = x * 1
    F.relu(y, inplace=True)
    z = F.hardtanh_(x + 0, -1, 1)
    return y, z, F.elu_(x + 1), F.leaky_relu_(x - 1), F.threshold_(x * 2, 0.1, 5), torch.relu_(x * 3), F.silu(x * 2, inplace=True)


@case(lambda n: (f(n, 12, 6),))
def F_softmax(x):
    return F.softmax(x, 0), F.softmax(x, -1), F.softmin(x, 1), F.log_softmax(x, 0), F.softmax(x, 1, dtype=torch.float64), x.softmax(2)


@case(lambda n: (f(n, 12, 6),), random=True)
def F_gumbel_softmax(x):
    return F.gumbel_softmax(x, 1.0), F.gumbel_softmax(x, 2.0, hard=True, dim=1)


@case(lambda n: (f(n, 12, 6),))
def F_glu(x):
    return F.glu(x), F.glu(x, 1)


@case(lambda n: (f(n, 12, 6), f(12)))
def F_prelu(x, w):
    return F.prelu(x, w), F.prelu(x, w.abs())


@case(lambda n: (f(n, 12),))
def F_dropout(x):
    return F.dropout(x, 0.3, False), F.alpha_dropout(x), F.dropout1d(x[:, None], training=False), F.feature_alpha_dropout(x)


@case(lambda n: (f(n, 12),), random=True)
def F_dropout_training(x):
    return F.dropout(x, 0.5, training=True)


@case(lambda n: (f(n, 12, 24),))
def F_pool1d(x):
    return (F.avg_pool1d(x, 3), F.avg_pool1d(x, 4, 2, 1, True, False), F.max_pool1d(x, 3, 2, 1), F.max_pool1d(x, 3, return_indices=True),
            F.adaptive_avg_pool1d(x, 7), F.adaptive_max_pool1d(x, 5), F.lp_pool1d(x, 2, 3))


@case(lambda n: (f(n, 12, 10, 14),))
def F_pool2d(x):
    return (F.avg_pool2d(x, (3, 2)), F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, divisor_override=5), F.max_pool2d(x, 3, (2, 1), 1, ceil_mode=True),
            F.adaptive_avg_pool2d(x, (None, 3)), F.adaptive_max_pool2d(x, (4, 5)), F.lp_pool2d(x, 3, 2), F.adaptive_avg_pool2d(x, x.shape[-1] // 2))


@case(lambda n: (f(n, 4, 6, 8, 10),))
def F_pool3d(x):
    return (F.avg_pool3d(x, 2), F.max_pool3d(x, 3, 2, 1), F.adaptive_avg_pool3d(x, (3, None, 2)), F.adaptive_max_pool3d(x, 2), F.lp_pool3d(x, 2, 2))


@case(lambda n: (f(n, 8, 14),))
def F_pool_unbatched(x):
    return F.avg_pool2d(x, 2), F.max_pool2d(x, 2), F.adaptive_avg_pool2d(x, 3), F.avg_pool1d(x, 3, 2)


@case(lambda n: (f(n, 12, 10, 14), f(6, 12, 3, 3), f(6)))
def F_conv2d(x, w, bias):
    return F.conv2d(x, w), F.conv2d(x, w, bias, (2, 1), (1, 2), 2), F.conv2d(x, w, bias, padding="same"), F.conv2d(x, w[:, :4], bias, groups=3)


@case(lambda n: (f(n, 12, 24), f(12, 6, 3), f(6)))
def F_conv1d(x, w, bias):
    return (F.conv1d(x, w.transpose(0, 1), bias, 2, 1), F.conv_transpose1d(x, w, bias), F.conv_transpose1d(x, w, None, 2, 1, 1, dilation=2))


@case(lambda n: (f(n, 4, 6, 8, 7), f(4, 2, 3, 3, 3)))
def F_conv3d(x, w):
    return F.conv3d(x, w.transpose(0, 1), None, 2, 1), F.conv_transpose3d(x, w, None, 2, 1, 1)


@case(lambda n: (f(n, 12, 10, 14), f(12, 6, 3, 3)))
def F_conv_transpose2d(x, w):
    return F.conv_transpose2d(x, w), F.conv_transpose2d(x, w, None, (2, 3), 1, (1, 0)), F.conv_transpose2d(x, w, groups=4)


@case(lambda n: (f(n, 4, 8), f(n, 3, 4, 3)))
def F_conv_per_sample(x, w):
    y = F.conv1d(x.reshape(1, -1, 8), w.reshape(-1, 4, 3), groups=x.shape[0])
    return y.view(x.shape[0], 3, -1)


@case(lambda n: (f(n, 12), f(5, 12), f(5)))
def F_linear(x, w, bias):
    return F.linear(x, w), F.linear(x, w, bias), F.linear(x[0], w, bias), F.linear(x[:, None], w, bias)


@case(lambda n: (f(n, 6), f(n, 4), f(5, 6, 4)))
def F_bilinear(x, y, w):
    return F.bilinear(x, y, w), F.bilinear(x, y, w, torch.ones(5))


@case(lambda n: (i(0, 10, n, 6), f(10, 8)))
def F_embedding(x, w):
    return F.embedding(x, w), F.embedding(x, w, padding_idx=1), w[x], F.one_hot(x, 10), torch.embedding(w, x)


@case(lambda n: (i(0, 10, n, 6), f(10, 8), f(n, 6)))
def F_embedding_bag(x, w, by):
    return (F.embedding_bag(x, w), F.embedding_bag(x, w, mode="max"), F.embedding_bag(x, w, per_sample_weights=by, mode="sum"),
            F.embedding_bag(x, w, padding_idx=3, mode="sum"))


@case(lambda n: (f(n, 12, 10, 14),))
def F_norms(x):
    w, c = torch.ones(12) * 1.5, torch.arange(12.)
    return (F.batch_norm(x, c, w), F.batch_norm(x, c, w, w, c, eps=1e-2), F.batch_norm(x, None, None, training=True), F.instance_norm(x, weight=w, bias=c),
            F.group_norm(x, 3, w, c), F.layer_norm(x, (14,)), F.layer_norm(x, x.shape[1:]), F.layer_norm(x, x.shape[2:], eps=1e-2),
            F.local_response_norm(x, 3), F.normalize(x), F.normalize(x, 1, 0), F.normalize(x, dim=(2, 3)), F.rms_norm(x, (14,)), F.normalize(x, float("inf"), 3, 0.5))


@case(lambda n: (f(n, 12, 10, 14),))
def F_pad(x):
    return (F.pad(x, (1, 2)), F.pad(x, (1, 2, 3, 4), value=-1.5), F.pad(x, (2, 1, 0, 3), "reflect"), F.pad(x, (2, 1, 3, 0), "replicate"),
            F.pad(x, (1, 2, 3, 1), "circular"), F.pad(x, (-1, 2, 0, -3)), F.pad(x, (0, 0, 0, 0, 1, 1)), F.pad(x, (0, 0, 0, 0, 0, 0, 2, 1)))


@case(lambda n: (f(n, 12),))
def F_pad_rows(x):
    m = x.shape[0]
    return F.pad(x, (0, 0, 0, 3)), F.pad(x, (0, 0, 2, 0), value=1.0), F.pad(x, (0, 0, 0, 4 - m % 4)), F.pad(x, (0, 0, 0, -m % 8)), F.pad(x > 0, (1, 1), value=True)


@case(lambda n: (f(n, 12),))
def F_pad_rows_replicate(x):
    return F.pad(x[None], (1, 2), "replicate"), F.pad(x[None, None], (0, 0, 1, 1), "replicate"), F.pad(x[None, None], (1, 1, 0, 0), "reflect")


@case(lambda n: (f(n, 6, 10, 14),))
def F_interpolate(x):
    return (F.interpolate(x, (5, 20)), F.interpolate(x, scale_factor=2), F.interpolate(x, scale_factor=(0.5, 1.5), mode="bilinear"),
            F.interpolate(x, (17, 9), mode="bilinear", align_corners=True), F.interpolate(x, scale_factor=1.3, mode="bicubic", align_corners=False),
            F.interpolate(x, (5, 7), mode="area"), F.interpolate(x, (13, 3), mode="nearest-exact"),
            F.interpolate(x, (5, 7), mode="bilinear", antialias=True), F.interpolate(x, scale_factor=0.7, recompute_scale_factor=True, mode="bilinear"))


@case(lambda n: (f(n, 6, 10, 14), f(n, 6, 5, 7)))
def F_interpolate_like(x, y):
    return F.interpolate(y, x.shape[-2:], mode="bilinear"), F.interpolate(y, size=x.shape[2:]), F.upsample(y, scale_factor=2)


@case(lambda n: (f(n, 6, 14), f(n, 3, 4, 6, 5)))
def F_interpolate_1d_3d(x, y):
    return (F.interpolate(x, 20), F.interpolate(x, scale_factor=0.4, mode="linear"), F.interpolate(y, (5, 7, 6), mode="trilinear"),
            F.interpolate(y, scale_factor=2), F.interpolate(y, (2, 3, 2), mode="area"))


@case(lambda n: (f(n, 4, 6, 8), f(n, 5, 7, 2)))
def F_grid_sample(x, g):
    return (F.grid_sample(x, g, align_corners=False), F.grid_sample(x, g, mode="nearest", padding_mode="border", align_corners=True),
            F.grid_sample(x, g, padding_mode="reflection", align_corners=True), F.grid_sample(x, g, mode="bicubic", align_corners=False))


@case(lambda n: (f(n, 2, 4, 5, 6), f(n, 3, 4, 5, 3)))
def F_grid_sample_3d(x, g):
    return F.grid_sample(x, g, align_corners=False), F.grid_sample(x, g, mode="nearest", align_corners=True)


@case(lambda n: (f(n, 2, 3), f(n, 3, 4)))
def F_affine_grid(t, u):
    return F.affine_grid(t, (t.shape[0], 3, 5, 6), align_corners=False), F.affine_grid(t, [t.size(0), 1, 4, 4], align_corners=True), F.affine_grid(u, (u.shape[0], 1, 3, 4, 5), align_corners=False)


@case(lambda n: (f(n, 12, 8, 12),), least=1)
def F_shuffles(x):
    return F.pixel_shuffle(x, 2), F.pixel_unshuffle(x, 4), F.channel_shuffle(x, 3), F.unfold(x, 3, padding=1), F.unfold(x, (2, 3), 2, 1, 2)


@case(lambda n: (f(n, 12, 20),))
def F_fold(x):
    return F.fold(x, (5, 6), 2), F.fold(x, (9, 11), (2, 2), dilation=1, padding=0, stride=2), F.fold(x, (6, 5), (2, 2))


@case(lambda n: (f(n, 4, 5, 8), f(n, 4, 7, 8), f(n, 4, 7, 8)))
def F_attention(q, k, v):
    m = torch.ones(5, 7, dtype=torch.bool).tril(2)
    return (F.scaled_dot_product_attention(q, k, v), F.scaled_dot_product_attention(q, q, q, is_causal=True), F.scaled_dot_product_attention(q, k, v, attn_mask=m),
            F.scaled_dot_product_attention(q, k, v, attn_mask=m.float(), scale=0.3), F.scaled_dot_product_attention(q, k, v, is_causal=True))


@case(lambda n: (f(n, 8, 5, 16), f(n, 2, 7, 16)))
def F_attention_grouped(q, k):
    return F.scaled_dot_product_attention(q, k, k, enable_gqa=True), F.scaled_dot_product_attention(q[:, 0], k[:, 0], k[:, 1])


@case(lambda n: (f(n, 16), f(7, 16)))
def F_attention_rows(q, k):
    return F.scaled_dot_product_attention(q, k, k), F.scaled_dot_product_attention(q[None], k[None], k[None]), F.scaled_dot_product_attention(q, q, q, is_causal=True)


@case(lambda n: (f(n, 12), f(n, 12)))
def F_distances(x, y):
    return (F.cosine_similarity(x, y), F.cosine_similarity(x, y, 0), F.pairwise_distance(x, y), F.pairwise_distance(x, y, 1, keepdim=True),
            torch.cdist(x[None], y[None]), torch.cdist(x, y), torch.cdist(x, y, 1.0), F.pdist(x))


@case(lambda n: (f(n, 12), f(n, 12)))
def F_losses(x, y):
    return (F.mse_loss(x, y), F.l1_loss(x, y, reduction="sum"), F.smooth_l1_loss(x, y, beta=0.5), F.huber_loss(x, y, reduction="none"), F.kl_div(x, y.softmax(1)),
            F.binary_cross_entropy(x.sigmoid(), y.sigmoid()), F.binary_cross_entropy_with_logits(x, y.sigmoid(), pos_weight=torch.arange(12.)),
            F.soft_margin_loss(x, y.sign()), F.poisson_nll_loss(x, y.abs()), F.hinge_embedding_loss(x, y.sign()),
            F.cosine_embedding_loss(x, y, x[:, 0].sign()), F.triplet_margin_loss(x, y, x + y), F.margin_ranking_loss(x[:, 0], y[:, 0], y[:, 1].sign()),
            F.multilabel_soft_margin_loss(x, (y > 0).float()), F.mse_loss(x, y, reduction="none"))


@case(lambda n: (f(n, 12), i(0, 12, n), unit(n, 12).softmax(1)))
def F_cross_entropy(x, t, p):
    return (F.cross_entropy(x, t), F.cross_entropy(x, p), F.cross_entropy(x, t, reduction="none", label_smoothing=0.1), F.nll_loss(x, t, reduction="sum"),
            F.cross_entropy(x, t, weight=torch.arange(12.) + 1, ignore_index=2), F.multi_margin_loss(x, t))


@case(lambda n: (f(n, 12, 3, 4), i(0, 12, n, 3, 4)))
def F_cross_entropy_maps(x, t):
    return F.cross_entropy(x, t), F.nll_loss(x.log_softmax(1), t, reduction="none"), F.cross_entropy(x.flatten(2), t.flatten(1), reduction="sum")


@case(lambda n: (f(n, 12), i(0, 12, n, 12)))
def F_multilabel_margin_loss(x, t):
    return F.multilabel_margin_loss(x, t)


@case(lambda n: (f(n, 6, 8), f(n, 1, 8), f(n, 1, 8)))
def F_rnn_like(x, h, w):
    return torch.tanh(x @ w.transpose(1, 2)) * h, torch.baddbmm(h, x, torch.eye(8).expand(x.shape[0], 8, 8))


@case(lambda n: (f(n, 12, 10, 14),))
def F_max_unpool2d(x):
    y, at = F.max_pool2d(x, 2, return_indices=True)
    return F.max_unpool2d(y, at, 2), F.max_unpool2d(y, at, 2, output_size=(11, 15))


@case(lambda n: (f(n, 12),))
def F_logsigmoid_logit(x):
    return F.logsigmoid(x), torch.logit(x.sigmoid()), torch.logit(x, 0.1), torch.special.expit(x), torch.special.entr(x.sigmoid())


@case(lambda n: (f(n, 3, 10, 12), f(n, 6, 3, 3, 3)))
def F_dynamic_kernels(x, w):
    m = x.size(0)
    y = F.conv2d(x.view(1, -1, 10, 12), w.flatten(0, 1), padding=1, groups=m)
    return y.view(m, -1, 10, 12)
