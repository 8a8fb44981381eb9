"""A model of the zoo in a process that has its kit: made, with inputs, run by PyTorch."""
import copy
import hashlib
import inspect
import json
import math

import torch

import capture



class Specimen:
    def __init__(self, entry):
        self.entry = entry
        self._module = None

    def module(self):
        """Made once: no way may change it, and every try has a process of its own."""
        if self._module is None:
            torch.manual_seed(0)
            with capture.quiet():
                self._module = stirred(self.entry.make().eval())
            for p in self._module.parameters():
                p.requires_grad_(False)
            parameters = inspect.signature(self._module.forward).parameters
            order = list(parameters)
            self.several = any(p.kind == p.VAR_POSITIONAL for p in parameters.values())
            if not self.several:
                for i, name in zip(self.entry.inputs, order):
                    if i.name not in order:             # a package calls an image x or input
                        i.name = name
                self.entry.inputs.sort(key=lambda i: order.index(i.name))
        return self._module

    def names(self):
        return [i.name for i in self.entry.inputs]

    def tensors(self, sizes):
        text = self.entry.name + json.dumps(sizes)
        g = torch.Generator().manual_seed(int(hashlib.sha1(text.encode()).hexdigest()[:8], 16))
        return [tensor_for(i, sizes, g) for i in self.entry.inputs]

    def arguments(self, sizes):
        """(args, kwargs); by name, but where the model takes any number of them."""
        self.module()
        tensors = self.tensors(sizes)
        if self.several:
            return tuple(tensors), {}
        return (), dict(zip(self.names(), tensors))

    def shapes(self, per_axis):
        """Axes that are to be free, nested as the arguments are; per_axis: what stands for one."""
        self.module()
        free = [{k: per_axis for k, a in enumerate(i.axes) if not a.isdigit()}
                for i in self.entry.inputs]
        if not self.several:
            return dict(zip(self.names(), free))
        parameters = list(inspect.signature(self._module.forward).parameters.values())
        first = [p for p in parameters if p.kind != p.VAR_POSITIONAL]
        return tuple(free[:len(first)]) + (tuple(free[len(first):]),)

    def axes(self, expressions):
        """Per input, axis -> its name.  The command takes no expressions: one gets a name."""
        return {i.name: {k: a if a.isidentifier() or expressions else "%s_%d" % (i.name, k)
                         for k, a in enumerate(i.axes) if not a.isdigit()}
                for i in self.entry.inputs}

    def eager(self, sizes):
        args, kwargs = self.arguments(sizes)
        with torch.no_grad(), capture.quiet():
            out = copy.deepcopy(self.module())(*args, **kwargs)         # some keep a state
        return [capture.numpy_of(x) for x in leaves_of(out)]

    def refs(self):
        """[(sizes, inputs, outputs)] at the sizes to verify at"""
        return [(sizes, [capture.numpy_of(t) for t in self.tensors(sizes)], self.eager(sizes))
                for sizes in self.entry.sizes()[1:]]


def leaves_of(out):
    return [x for x in torch.utils._pytree.tree_leaves(out)
            if isinstance(x, (torch.Tensor, bool, int, float))]


def tensor_for(i, sizes, g):
    """Values that mean something to a model: a mask leaves out the end of some rows, boxes have
    their corners in order, edges are among nodes."""
    shape = i.shape(sizes)
    if i.name.endswith("attention_mask"):
        mask = torch.ones(shape, dtype=capture.DTYPES[i.dtype])
        for row in range(1, shape[0], 2):
            mask[row, shape[-1] - shape[-1] // 3:] = 0
        return mask
    if i.name == "bbox":
        corners = torch.randint(0, 500, shape[:-1] + [2], generator=g)
        return torch.cat([corners, corners + torch.randint(0, 400, corners.shape, generator=g)], -1)
    if i.name == "X":               # of a recommender: four categories, then numbers
        x = torch.rand(shape, generator=g)
        x[:, :4] = torch.randint(0, 20, (shape[0], 4), generator=g).float()
        return x
    if i.name == "edge_index":
        return torch.randint(0, sizes["v"], shape, generator=g)
    if i.name == "batch":
        return torch.randint(0, 2, shape, generator=g).sort().values
    return capture.one_input(i, sizes, g)


def stirred(module):
    """Weights so large that every part of a model shows in its outputs."""
    g = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for p in module.parameters():
            if not p.is_floating_point() or p.numel() == 0:
                continue
            if p.dim() == 1:
                p.add_(0.1 * torch.randn(p.shape, generator=g, dtype=p.dtype))
            elif p.dim() > 1:
                gain = 2 if p.dim() > 3 else 1
                spread = math.sqrt(gain / max(1, p[0].numel()))
                p.copy_(spread * torch.randn(p.shape, generator=g, dtype=p.dtype))
    return module
