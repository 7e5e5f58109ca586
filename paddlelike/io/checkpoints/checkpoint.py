"""One checkpoint: its fields, and its entry in a manifest."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from paddlelike.core import Generator
from paddlelike.storage.manifest import Manifest


class Checkpoint(NamedTuple):
    """A checkpoint that is complete.

    Parameters
    ----------
    step
        The step at which it was saved.
    path
        Its directory.
    metric
        The number passed to :meth:`Checkpoints.save`; None for none.
    state
        The state passed to :meth:`Checkpoints.save`.
    random
        The state of the scope's random generator; None if it was not saved.
    time
        The time when it was saved, in the form of ISO 8601.
    ranked_as
        The name of the checkpoint when it was saved, if it is kept only while it is one of the best; None for
        others.

    >>> import paddlelike as fluid
    >>> checkpoint = fluid.io.Checkpoint(step=10, path="run/step-10", metric=0.5)
    >>> checkpoint.step, checkpoint.metric, checkpoint.state
    (10, 0.5, {})
    """

    step: int
    path: str
    metric: float | None = None
    state: Mapping[str, Any] = {}  # passed by the user
    random: int | None = None  # the state of the scope's random generator
    time: str | None = None  # when it was saved
    ranked_as: str | None = None  # its name, if it is kept only while it is one of the best


def encode_entry(
    step: int,
    metric: float | None,
    random: int | None,
    state: Mapping[str, Any] | None,
    ranked_as: str | None = None,
) -> dict[str, Any]:
    """Return the entry of a checkpoint in its manifest.

    Raises
    ------
    TypeError
        ``state`` holds something other than arrays of numbers and what JSON can represent.
    """
    entry = {
        "step": step,
        "metric": None if metric is None else float(metric),
        "random": random,
        "user": encode_state({} if state is None else state),
    }
    return entry if ranked_as is None else {**entry, "ranked_as": ranked_as}


def decode_checkpoint(found: Manifest, path: str) -> Checkpoint:
    """Return the checkpoint that a manifest in the directory ``path`` describes.

    Raises LookupError, TypeError or ValueError for any other manifest.
    """
    entry = found.state["checkpoint"]
    step, metric, user, random = (entry[key] for key in ("step", "metric", "user", "random"))
    if type(step) is not int or not isinstance(user, dict):
        raise TypeError("a step is an int, a state a dict")
    if random is not None:
        Generator(1).state = random  # raises ValueError
    metric = None if metric is None else float(metric)
    ranked_as = entry.get("ranked_as")
    return Checkpoint(step, path, metric, decode_state(user), random, found.time, ranked_as)


ARRAY_KEY: Final = "__array__"  # the key of an array's dict
_KINDS: Final = "biufc"  # kinds of arrays that can be kept: booleans and numbers


def encode_state(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return a state as values of JSON; tuples become lists.

    Raises
    ------
    TypeError
        JSON cannot represent it, and it is not an array of numbers.

    >>> decode_state(encode_state({"order": np.arange(3), "epoch": 2}))
    {'order': array([0, 1, 2]), 'epoch': 2}
    """
    try:
        encoded: dict[str, Any] = json.loads(json.dumps(dict(state), default=_encode_array))
    except (TypeError, ValueError, RecursionError) as error:
        raise TypeError(
            f"Checkpoints.save: state is kept as JSON, which cannot represent {dict(state)!r:.200}: {error}"
        ) from None
    return encoded


def decode_state(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return the state that :func:`encode_state` encoded.

    Raises LookupError, TypeError or ValueError for something else.
    """
    return {name: _decode(value) for name, value in state.items()}


def _encode_array(value: object) -> dict[str, Any]:
    if not isinstance(value, np.ndarray):
        raise TypeError(f"a {type(value).__name__}")
    if value.dtype.kind not in _KINDS:
        raise TypeError(f"an array of {value.dtype}")
    array = np.ascontiguousarray(value).astype(value.dtype.newbyteorder("<"), copy=False)
    return {
        ARRAY_KEY: base64.b64encode(array.tobytes()).decode(),
        "dtype": array.dtype.str,
        "shape": list(value.shape),
    }


def _decode(value: object) -> object:
    if isinstance(value, list):
        return [_decode(one) for one in value]
    if not isinstance(value, dict):
        return value
    if ARRAY_KEY not in value:
        return decode_state(value)
    dtype = np.dtype(str(value["dtype"]))
    shape = tuple(int(size) for size in value["shape"])
    data = base64.b64decode(value[ARRAY_KEY], validate=True)
    if (
        dtype.kind not in _KINDS
        or min(shape, default=0) < 0
        or math.prod(shape) * dtype.itemsize != len(data)
    ):
        raise ValueError(f"{len(data)} bytes are not an array of {dtype} {shape}")
    return np.frombuffer(data, dtype).reshape(shape).astype(dtype.newbyteorder("="))
