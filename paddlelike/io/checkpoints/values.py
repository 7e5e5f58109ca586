"""A user's state as JSON: plain values, and arrays in base64."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

ARRAY_KEY: Final = "__array__"  # the key of an array's dict
_KINDS: Final = "biufc"  # of the arrays that can be kept: booleans and numbers


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


def _decode(value: Any) -> object:
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
