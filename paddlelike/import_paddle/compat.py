"""``paddle.compat``: functions on text, bytes and numbers for both Python 2 and 3."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

__all__ = ["floor_division", "get_exception_message", "long_type", "round", "to_bytes", "to_text"]

int_type = long_type = int


def to_text(obj: Any, encoding: str = "utf-8", inplace: bool = False) -> object:
    """Return ``obj`` with all bytes decoded. ``obj`` is bytes, text, or a list, set or dict of these.

    ``inplace`` changes the list, set or dict itself. Other objects are returned as they are.

    >>> to_text([b"a", "b", None])
    ['a', 'b', None]
    """

    def decode(one: Any) -> object:
        return one.decode(encoding) if isinstance(one, bytes) else one

    return _map_container(obj, decode, inplace)


def to_bytes(obj: Any, encoding: str = "utf-8", inplace: bool = False) -> object:
    """Return ``obj`` with all text encoded. ``obj`` is text, bytes, or a list or set of these.

    ``inplace`` changes the list or set itself. None is returned as it is; raises TypeError for other objects.

    >>> to_bytes({"a"})
    {b'a'}
    """

    def encode(one: Any) -> Any:
        if isinstance(one, str):
            return one.encode(encoding)
        if one is None or isinstance(one, bytes):
            return one
        raise TypeError(f"to_bytes takes str or bytes, got {one!r}")

    return encode(obj) if isinstance(obj, dict) else _map_container(obj, encode, inplace)


def _map_container(obj: Any, function: Callable[[Any], Any], inplace: bool) -> object:
    """Return ``function`` applied to ``obj``, or to the items of a list, set or dict."""
    if isinstance(obj, list):
        items: Any = [function(one) for one in obj]
        if inplace:
            obj[:] = items
    elif isinstance(obj, set):
        items = {function(one) for one in obj}
        if inplace:
            obj.clear()
            obj.update(items)
    elif isinstance(obj, dict):
        items = {function(key): function(value) for key, value in obj.items()}
        if inplace:
            obj.update(items)
    else:
        return function(obj)
    return obj if inplace else items


def round(x: float, d: int = 0) -> float:  # noqa: A001  (Fluid's name)
    """Return ``x`` rounded to ``d`` decimals; halves go away from zero, as in Python 2.

    >>> round(2.5), round(-0.5)
    (3.0, -1.0)
    """
    scale = 10**d
    return math.copysign(math.floor(abs(x) * scale + 0.5) / scale, x)


def floor_division(x: Any, y: Any) -> object:
    """Return ``x // y``."""
    return x // y


def get_exception_message(exc: BaseException) -> str:
    """Return the message of an exception."""
    return str(exc)
