"""One line for a model of transformers."""
from entry import add

TEXT = ["input_ids: i64[b, s] < 99", "attention_mask: i64[b, s]"]
IDS = TEXT[:1]
TO_TEXT = TEXT + ["decoder_input_ids: i64[b, t] < 99"]


def hf(name, family, inputs, kits="tf4 tf5", tag="", values=None, **config):
    """A class of transformers, its config made small, then as `config` says."""
    def make():
        return made(name, config)
    add(name + tag, family, kits, make, inputs, values, note=told(config))


def told(config):
    return repr([(k, v.__code__.co_consts if callable(v) else v)
                 for k, v in sorted(config.items())])


def many(names, family, inputs, kits="tf4 tf5", **config):
    for name in names.split():
        hf(name, family, inputs, kits, **config)


def made(name, config):
    import transformers
    from shrink import small
    if not hasattr(transformers, name):
        raise LookupError("transformers %s has no %s" % (transformers.__version__, name))
    cls = getattr(transformers, name)
    return cls(small(cls.config_class, config))


def cached(name, kits="tf4 tf5", heads=2, width=8, layers=2, **config):
    """A decoder that is given what it computed of the tokens before, and returns it grown."""
    def make():
        return Cached(made(name, config))
    past = ["past_%d: f32[b, %d, p, %d]" % (k, heads, width) for k in range(2 * layers)]
    add(name + "+cache", "decoder with cache", kits, make,
        [TEXT[0], "attention_mask: i64[b, p + s]"] + past,
        note=repr((heads, width, layers)) + told(config))


def Cached(model):
    import torch
    from transformers import DynamicCache

    class Cached(torch.nn.Module):
        def __init__(self, model):
            super().__init__()
            self.model = model

        def forward(self, input_ids, attention_mask, *past):
            cache = DynamicCache()
            for k in range(0, len(past), 2):
                cache.update(past[k], past[k + 1], k // 2)
            out = self.model(input_ids=input_ids, attention_mask=attention_mask,
                             past_key_values=cache, use_cache=True)
            present = [t for layer in cache.layers for t in (layer.keys, layer.values)]
            return [out.logits] + present

    return Cached(model)
