"""Models of PyTorch's own layers, as its documentation puts them together."""
from entry import add


def bare(name, family, inputs, values=None):
    def note(make):
        add(name, family, "torch", make, inputs, values)
    return note


def recurrent(kind, **more):
    import torch
    from torch import nn

    class Tagger(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(50, 16)
            self.rnn = getattr(nn, kind)(16, 24, batch_first=True, **more)
            self.head = nn.Linear(24 * (2 if more.get("bidirectional") else 1), 5)

        def forward(self, ids):
            y, _ = self.rnn(self.embed(ids))
            return self.head(torch.tanh(y))

    return Tagger()


for kind, more in (("RNN", {}), ("GRU", {}), ("LSTM", {}), ("GRU", {"bidirectional": True}),
                   ("LSTM", {"bidirectional": True, "num_layers": 2}), ("LSTM", {"proj_size": 24})):
    name = kind + "".join("+" + k for k in more)
    if "proj_size" in more:
        more = {"proj_size": 12}
    def make(kind=kind, more=more):
        module = recurrent(kind, **more)
        if "proj_size" in more:
            from torch import nn
            module.head = nn.Linear(12, 5)
        return module
    add(name, "torch.nn", "torch", make, ["ids: i64[b, s] < 50"])


@bare("Transformer", "torch.nn", ["src: f32[b, s, 16]", "tgt: f32[b, t, 16]"])
def transformer():
    from torch import nn
    return nn.Transformer(16, 4, 2, 2, 32, batch_first=True)


@bare("TransformerEncoder", "torch.nn", ["src: f32[b, s, 16]"])
def encoder():
    from torch import nn
    return nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 4, 32, batch_first=True), 2)


@bare("TransformerEncoder+prenorm", "torch.nn", ["src: f32[s, b, 16]"])
def encoder_prenorm():
    from torch import nn
    layer = nn.TransformerEncoderLayer(16, 4, 32, norm_first=True, activation="gelu")
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)


@bare("TransformerEncoder+mask", "torch.nn", ["src: f32[b, s, 16]", "src_key_padding_mask: bool[b, s]"])
def encoder_mask():
    import torch
    from torch import nn

    class Masked(nn.Module):
        def __init__(self):
            super().__init__()
            layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True)
            self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

        def forward(self, src, src_key_padding_mask):
            ahead = nn.Transformer.generate_square_subsequent_mask(src.shape[1])
            skip = src_key_padding_mask & (torch.arange(src.shape[1]) > 0)
            far = torch.zeros_like(skip, dtype=src.dtype).masked_fill(skip, float("-inf"))
            return self.encoder(src, mask=ahead, src_key_padding_mask=far)

    return Masked()


@bare("TransformerDecoder", "torch.nn", ["tgt: f32[b, t, 16]", "memory: f32[b, s, 16]"])
def decoder():
    from torch import nn
    return nn.TransformerDecoder(nn.TransformerDecoderLayer(16, 4, 32, batch_first=True), 2)


@bare("MultiheadAttention", "torch.nn", ["query: f32[b, t, 16]", "key: f32[b, s, 16]", "value: f32[b, s, 16]"])
def attention():
    from torch import nn
    return nn.MultiheadAttention(16, 4, batch_first=True)


@bare("Autoencoder", "torch.nn", ["x: f32[b, 1, 28, 28]"])
def autoencoder():
    from torch import nn
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, 2, 1), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 16, 3, 2, 1), nn.ReLU(),
        nn.ConvTranspose2d(16, 8, 3, 2, 1, 1), nn.ReLU(), nn.ConvTranspose2d(8, 1, 3, 2, 1, 1), nn.Sigmoid())


@bare("SuperResolution", "torch.nn", ["x: f32[b, 1, h, w]"])
def super_resolution():
    from torch import nn
    return nn.Sequential(nn.Conv2d(1, 16, 5, 1, 2), nn.PReLU(), nn.Conv2d(16, 9, 3, 1, 1), nn.PixelShuffle(3))


@bare("TextCNN", "torch.nn", ["ids: i64[b, s] < 50"], values={"s": [12, 7, 5, 17, 8]})
def text_cnn():
    import torch
    from torch import nn

    class TextCNN(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(50, 16)
            self.convs = nn.ModuleList([nn.Conv1d(16, 8, k) for k in (2, 3, 5)])
            self.head = nn.Linear(24, 4)

        def forward(self, ids):
            x = self.embed(ids).transpose(1, 2)
            return self.head(torch.cat([torch.relu(c(x)).amax(-1) for c in self.convs], 1))

    return TextCNN()


@bare("EmbeddingBag", "recommender", ["ids: i64[b, s] < 50"])
def bag():
    from torch import nn
    return nn.Sequential(nn.EmbeddingBag(50, 16, mode="mean"), nn.Linear(16, 3))
