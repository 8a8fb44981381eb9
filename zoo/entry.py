"""What a model of the zoo is: a name, a family, the kits that have it, how it is made, and what it
takes, in the notation of test/sizes/case.py.

A symbol of a size has a list of values: the first is that of the example, the others are those at
which files are held against PyTorch."""
import hashlib
import inspect
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
sys.path.insert(0, os.path.join(ROOT, "test", "sizes"))
from case import Input

VALUES = {
    "b": [2, 1, 3, 2, 5],               # rows
    "s": [12, 7, 1, 17, 8],             # tokens
    "t": [9, 5, 3, 1, 11],              # tokens of a decoder
    "p": [6, 3, 1, 11, 0],              # tokens in a cache
    "h": [64, 67, 96, 61, 83], "w": [80, 61, 64, 97, 71],       # pixels
    "n": [2000, 1601, 3200, 2503, 1999],                        # of a waveform
    "f": [40, 31, 64, 53, 37],                                  # frames
    "v": [13, 7, 1, 31, 20], "e": [30, 11, 2, 67, 44],          # nodes and edges
}
ALL = []


class Entry:
    def __init__(self, name, family, kits, make, inputs, values=None, note=""):
        self.name, self.family, self.kits, self.make = name, family, kits, make
        self.inputs = [Input(i) for i in inputs]
        self.values = dict(VALUES, **(values or {}))
        self.note = note                # all that `make` is made from, for digest()
        self.texts = inputs

    def symbols(self):
        names = []
        for i in self.inputs:
            for axis in i.axes:
                names += [n for n in re.findall(r"[A-Za-z_]\w*", axis) if n not in names]
        return names

    def sizes(self):
        """The example's, then those to verify at."""
        return [{s: self.values[s][k] for s in self.symbols()} for k in range(5)]

    def digest(self):
        """Changes when the definition does."""
        text = repr((self.name, self.texts, self.note, sorted(self.values.items())))
        return hashlib.sha1(text.encode()).hexdigest()[:10]


def add(name, family, kits, make, inputs, values=None, note=None):
    """`make` returns a module; it is called in a process that has the kit."""
    if note is None:
        note = inspect.getsource(make)
    ALL.append(Entry(name, family, kits.split(), make, inputs, values, note))


def load():
    """All entries, in the order of the files."""
    if not ALL:
        from models import bare, hf_audio, hf_text, hf_vision, more
    names = [e.name for e in ALL]
    twice = {n for n in names if names.count(n) > 1}
    if twice:
        raise ValueError("twice in the zoo: %s" % ", ".join(sorted(twice)))
    return ALL
