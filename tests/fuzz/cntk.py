"""Models and checkpoints of CNTK as fuzzing targets: bytes changed, and values in the dictionaries."""

from __future__ import annotations

import copy
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, Final

import numpy as np

import paddlelike as fluid
from paddlelike.errors import FormatError
from paddlelike.formats.cntk.dictionary import Axis, Shape, SizeT, decode, encode
from tests.fuzz.guard import Fault
from tests.fuzz.makers.mutations import mutate
from tests.fuzz.readers import Target
from tests.helpers.golden_data import GOLDEN
from tests.interop.cntk.operators import read_cases

__all__ = ["CNTK"]

_MODELS: Final = GOLDEN / "cntk"
_ODD: Final = (None, True, -1, 2**31 - 1, SizeT(2**64 - 1), SizeT(0), 1e300, float("nan"), "", "W", [], {})
_LARGEST: Final = 2500  # bytes of a model that is changed: larger ones are slow


@cache
def _samples() -> tuple[bytes, ...]:
    files = [(_MODELS / "plain.model").read_bytes()]
    files += [case["model"].tobytes() for case in read_cases().values()]
    return tuple(data for data in files if len(data) < _LARGEST)


def _list_places(value: Any) -> list[tuple[Any, Any]]:
    """Return every container with each of its keys."""
    found: list[tuple[Any, Any]] = []
    keys = value.keys() if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        found += [(value, key), *_list_places(value[key])]
    return found


def _change(rng: Random, tree: Any) -> None:
    """Change one value in a dictionary: to an odd one, to one nearby, or to one of another place."""
    places = _list_places(tree)
    container, key = rng.choice(places)
    old = container[key]
    kind = rng.random()
    if kind < 0.1:
        del container[key]
    elif kind < 0.3:
        other, where = rng.choice(places)
        container[key] = copy.deepcopy(other[where])
    elif isinstance(old, Shape):
        container[key] = Shape(rng.choice((0, 1, 2, 7, 2**40, 2**64 - 1)) for _ in range(rng.randrange(6)))
    elif isinstance(old, Axis):
        container[key] = Axis(
            rng.choice((0, 1, 5, -1, -9, 2**31 - 1, 2**31 - 2, 2**31 - 5)), "", rng.random() < 0.5
        )
    elif isinstance(old, int) and not isinstance(old, bool) and kind < 0.8:
        container[key] = type(old)(abs(old + rng.choice((-1, 1, 2, 60))))
    elif isinstance(old, np.ndarray):
        container[key] = rng.choice((old.reshape(-1), old[None], old.astype("int8")))
    else:
        container[key] = copy.deepcopy(rng.choice(_ODD))


def _make(rng: Random) -> bytes:
    data = rng.choice(_samples())
    if rng.random() < 0.3:
        return mutate(rng, data, _samples()[:20])
    tree = decode(data)
    for _ in range(rng.choice((1, 1, 2, 5))):
        _change(rng, tree)
    try:
        return encode(tree)
    except FormatError:
        return data


def _read(data: bytes, _: Path) -> None:
    """Open a model: FormatError and UnsupportedError are the only refusals, and nothing stays in the scope."""
    scope = fluid.Scope()
    try:
        program, feeds, fetches = fluid.import_cntk(data, scope=scope)
    except Exception:
        if scope.local_var_names():
            raise Fault("the model was refused, but the scope is another") from None
        raise
    block = program.global_block()
    if not all(block.has_var(one) for one in (*feeds, *(fetch.name for fetch in fetches))):
        raise Fault(f"feeds {feeds}, fetches {fetches}")
    sizes = sum(np.array(scope.var(name).get_tensor()).nbytes for name in scope.local_var_names())
    if sizes > len(data):
        raise Fault(f"{sizes} bytes of parameters from {len(data)}")


def _set_up(_: Path) -> None:
    """Open a recurrent model: networkx compiles functions when they are first called."""
    fluid.import_cntk((_MODELS / "lstm.model").read_bytes(), scope=fluid.Scope())


CNTK: Final = (Target("import_cntk", _make, _read, weight=1, memory=400, base=4 << 20, set_up=_set_up),)
