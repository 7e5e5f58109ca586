"""Models of other systems as fuzzing targets: read as programs, changed in a few bytes or fields."""

from __future__ import annotations

import importlib.util
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, Final

from paddlelike.core import Scope
from tests.fuzz.guard import Fault
from tests.fuzz.makers.mutations import mutate
from tests.fuzz.readers import Target

__all__ = ["MODELS"]

_LARGEST: Final = 4000  # bytes of a model that is changed: so that changes meet its structure


@cache
def _samples() -> tuple[bytes, ...]:
    from tests.models.archive import read_archive

    files = (model["model.onnx"] for _, model in sorted(read_archive("onnx_models").items()))
    return tuple(data for data in files if len(data) <= _LARGEST)


def _change_fields(rng: Random, data: bytes) -> bytes:
    """Return a model whose nodes, attributes and dims are others: changed bytes alone seldom parse."""
    import onnx

    model = onnx.ModelProto.FromString(data)
    for _ in range(rng.randint(1, 3)):
        node: Any = rng.choice(model.graph.node)
        names = [*node.input, *node.output]
        kind = rng.randrange(7)
        if kind == 0:
            node.op_type = rng.choice(model.graph.node).op_type
        elif kind == 1 and node.input:
            node.input[rng.randrange(len(node.input))] = rng.choice([*names, ""])
        elif kind == 2 and node.attribute:
            node.attribute.remove(rng.choice(node.attribute))
        elif kind == 3 and node.attribute:
            attr = rng.choice(node.attribute)
            attr.i = rng.choice([-1, 0, 7, 1 << 62, -(1 << 62)])
            for index in range(len(attr.ints)):
                attr.ints[index] = rng.choice([-1, 0, 1, 3, 1 << 40])
        elif kind == 4 and model.graph.initializer:
            tensor = rng.choice(model.graph.initializer)
            tensor.dims[:] = [rng.choice([-1, 0, 1, 2, 3, 1 << 50]) for _ in range(rng.randrange(5))]
        elif kind == 5 and model.graph.initializer:
            tensor = rng.choice(model.graph.initializer)
            tensor.data_type = rng.randrange(20)
        else:
            model.opset_import[0].version = rng.randrange(1, 26)
    return bytes(model.SerializeToString())


def _make(rng: Random) -> bytes:
    data = rng.choice(_samples())
    return _change_fields(rng, data) if rng.random() < 0.6 else mutate(rng, data, _samples())


def _read(data: bytes, _: Path) -> None:
    from paddlelike.interop.onnx import import_onnx

    scope = Scope()
    program, feeds, fetches = import_onnx(data, scope=scope)
    block = program.global_block()
    held = [scope.find_var(name) for name in scope.local_var_names()]
    if sum(one.value.array.nbytes for one in held if one is not None) > 100 * len(data) + (1 << 20):
        raise Fault("more elements than bytes")
    if not all(block.has_var(name) for name in feeds) or not all(block.has_var(one.name) for one in fetches):
        raise Fault("feeds or fetches that the program does not have")


def _set_up(root: Path) -> None:
    """Import what whole models need, which the first few inputs may not be."""
    for sample in _samples():
        _read(sample, root)


_INSTALLED: Final = importlib.util.find_spec("onnx") is not None
MODELS: Final = (
    (Target("import_onnx", _make, _read, weight=1, memory=400, base=8 << 20, set_up=_set_up),)
    if _INSTALLED
    else ()
)
