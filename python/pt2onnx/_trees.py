"""Classes that PyTorch does not take apart: dataclasses, and the caches of transformers.

While a model is exported they are pytree nodes.  A cache's keys and values are two lists, one
tensor for each layer; what else it has is taken from the example.
"""
from __future__ import annotations

import contextlib
import copy
import dataclasses
import functools
import sys
from typing import Any, Dict, Iterator, List, Tuple

import torch
from torch.utils import _pytree as pytree

from ._errors import UsageError

KEPT = ("keys", "values", "cumulative_length")          # of a layer, where they are tensors
NAMES = {"keys": "key_cache", "values": "value_cache"}
GROWING = ("DynamicLayer", "StaticLayer")       # their state is in tensors; others count beside
PARTS = ("self_attention_cache", "cross_attention_cache")


class _Shell:
    """A cache without its tensors."""

    def __init__(self, cache: Any) -> None:
        self.cache = copy.copy(cache)
        layers = list(getattr(cache, "layers", []))
        self.holds = [[isinstance(getattr(x, k, None), torch.Tensor) for x in layers] for k in KEPT]
        self.names = [k for k, held in zip(KEPT, self.holds) if k in NAMES or any(held)]
        if hasattr(cache, "layers"):
            self.cache.layers = [copy.copy(x) for x in layers]
            for x in self.cache.layers:
                vars(x).update({k: None for k in self.names if k in vars(x)})
        self._key = (type(cache), tuple(map(type, layers)), tuple(self.names),
                     tuple(tuple(held) for held in self.holds))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Shell) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __deepcopy__(self, memo: Any) -> "_Shell":
        return self

    def filled(self, lists: Any) -> Any:
        cache = copy.copy(self.cache)
        cache.layers = [copy.copy(x) for x in cache.layers]
        for name, tensors in zip(self.names, lists):
            held, left = self.holds[KEPT.index(name)], iter(tensors)
            for layer, is_held in zip(cache.layers, held):
                if is_held:
                    setattr(layer, name, next(left))
        return cache


def _flatten_layers(cache: Any) -> Tuple[List[Any], Any]:
    shell = _Shell(cache)
    return [[t for t in (getattr(x, k, None) for x in cache.layers) if isinstance(t, torch.Tensor)]
            for k in shell.names], shell


def _flatten_two(cache: Any) -> Tuple[List[Any], Any]:
    shell = copy.copy(cache)
    for name in PARTS:
        setattr(shell, name, None)
    shell.is_updated = dict(getattr(cache, "is_updated", {}))
    return [getattr(cache, name) for name in PARTS], _Two(shell)


class _Two(_Shell):
    """Of a decoder's own cache and that of its encoder."""

    def __init__(self, shell: Any) -> None:
        self.cache, self.names = shell, list(PARTS)
        self._key = (type(shell), (), tuple(PARTS), ())

    def filled(self, lists: Any) -> Any:
        cache = copy.copy(self.cache)
        cache.is_updated = dict(cache.is_updated)
        for name, part in zip(PARTS, lists):
            setattr(cache, name, part)
        return cache


def _names_text(shell: _Shell) -> List[str]:
    return [NAMES.get(n, n) for n in shell.names]


def _no_load(_: Any) -> Any:
    raise NotImplementedError("a cache's class is not saved with a program")


def _with_keys(flatten: Any, x: Any) -> Tuple[List[Any], Any]:
    children, context = flatten(x)
    children = list(children)
    named = isinstance(context, (list, tuple)) and len(context) == len(children) and \
        all(isinstance(n, str) for n in context)
    keys = [pytree.MappingKey(n) for n in context] if named else \
        [pytree.SequenceKey(i) for i in range(len(children))]
    return list(zip(keys, children)), context


class Classes:
    """What was registered on the way, to be taken back."""

    def __init__(self) -> None:
        self._ours: List[type] = []
        self._without_keys: Dict[type, Any] = {}

    def close(self) -> None:
        for c in self._ours:
            pytree._deregister_pytree_node(c)
        self._ours.clear()
        pytree.SUPPORTED_NODES.update(self._without_keys)
        self._without_keys.clear()

    def name_children(self) -> None:
        """Of classes whose authors did not: torch.export takes no arguments of them otherwise."""
        for c, node in list(pytree.SUPPORTED_NODES.items()):
            if node.flatten_with_keys_fn is None:
                self._without_keys[c] = node
                pytree.SUPPORTED_NODES[c] = node._replace(
                    flatten_with_keys_fn=functools.partial(_with_keys, node.flatten_fn))

    def _cache(self, c: type, flatten: Any) -> None:
        if c in pytree.SUPPORTED_NODES:
            return

        def with_keys(x: Any) -> Tuple[List[Any], Any]:
            children, shell = flatten(x)
            return [(pytree.MappingKey(n), v) for n, v in zip(_names_text(shell), children)], shell

        pytree.register_pytree_node(
            c, flatten, lambda children, shell: shell.filled(children),
            serialized_type_name="%s.%s" % (c.__module__, c.__qualname__),
            to_dumpable_context=_names_text, from_dumpable_context=_no_load,
            flatten_with_keys_fn=with_keys)
        self._ours.append(c)

    def caches(self) -> None:
        """All of transformers, where it is used."""
        file = sys.modules.get("transformers.cache_utils")
        base = getattr(file, "Cache", None)
        todo = [base] if isinstance(base, type) else []
        while todo:
            c = todo.pop()
            todo += c.__subclasses__()
            self._cache(c, _flatten_two if c.__name__ == "EncoderDecoderCache" else _flatten_layers)

    def found(self, tree: Any) -> None:
        """The dataclasses in arguments or results."""
        new = True
        while new:
            new = {type(x) for x in pytree.tree_leaves(tree)
                   if dataclasses.is_dataclass(x) and not isinstance(x, type)
                   and type(x) not in pytree.SUPPORTED_NODES}
            for c in new:
                torch.export.register_dataclass(
                    c, serialized_type_name="%s.%s" % (c.__module__, c.__qualname__))
                self._ours.append(c)


@contextlib.contextmanager
def classes() -> Iterator[Classes]:
    c = Classes()
    try:
        c.caches()
        c.name_children()
        yield c
    finally:
        c.close()


def refuse_counting(args: Any) -> None:
    """A cache as an argument is what its tensors are: a layer that counts in an int is not."""
    file = sys.modules.get("transformers.cache_utils")
    base = getattr(file, "Cache", ())
    for x in pytree.tree_leaves(args, is_leaf=lambda x: isinstance(x, base)
                                and hasattr(x, "layers")):
        for layer in getattr(x, "layers", []) if isinstance(x, base) else []:
            if type(layer).__name__ not in GROWING:
                raise UsageError(
                    "a cache with a %s is no argument: it counts outside of its tensors\n"
                    "  give DynamicCache() without a config, or StaticCache" % type(layer).__name__)
