"""How a module of the suite says what it takes.

    @case("x: f32[b, t, 8]", "ids: i64[b, t] < 100", least={"t": 3}, where="t % 4 == 0")
    class Name(nn.Module): ...

Every input is a tensor: its type, then per axis a number, a name (a dynamic size) or an expression
of names ("2*t", "past + t").  Integers are drawn from 0 to below the bound after "<" (2 where there
is none).  `least` gives sizes below which the module is not meant to work (1 for the others),
`where` a condition on the sizes, `most` upper bounds.  The class is made without arguments after
torch.manual_seed(0), in eval mode.
"""
import re

CASES = []
_INPUT = re.compile(r"(\w+):\s*(\w+)\[([^\]]*)\](?:\s*<\s*(\d+))?$")


class Input:
    def __init__(self, text):
        match = _INPUT.match(text.strip())
        if not match:
            raise ValueError("not an input: " + text)
        self.name, self.dtype, axes, below = match.groups()
        self.axes = [a.strip() for a in axes.split(",")] if axes.strip() else []
        self.below = int(below) if below else 2

    def shape(self, sizes):
        return [int(eval(a, {}, dict(sizes))) for a in self.axes]


class Case:
    def __init__(self, cls, inputs, least, most, where):
        self.cls, self.name = cls, cls.__name__
        self.inputs = [Input(i) for i in inputs]
        self.least, self.most, self.where = least or {}, most or {}, where

    def symbols(self):
        """The names of sizes, in the order in which they appear."""
        names = []
        for i in self.inputs:
            for axis in i.axes:
                names += [n for n in re.findall(r"[A-Za-z_]\w*", axis) if n not in names]
        return names

    def allows(self, sizes):
        return (all(self.least.get(s, 1) <= n <= self.most.get(s, n) for s, n in sizes.items())
                and (self.where is None or eval(self.where, {}, dict(sizes))))


def case(*inputs, least=None, most=None, where=None):
    def note(cls):
        CASES.append(Case(cls, inputs, least, most, where))
        return cls
    return note
