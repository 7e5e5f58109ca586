"""Messages as headers: plain JSON types out, checked values in. What :mod:`.messages` is written with."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self, TypeAlias

from paddlelike.errors import FormatError

__all__ = [
    "Header",
    "Message",
    "choice",
    "flag",
    "is_",
    "mapping",
    "number",
    "numbers",
    "optional_number",
    "optional_numbers",
    "pairs",
    "seconds",
    "text",
]

Header: TypeAlias = dict[str, Any]

_MAX_TEXT = 4096
_MAX_ITEMS = 65536


def number(value: Any) -> int:
    if type(value) is not int or not 0 <= value < 1 << 63:
        raise ValueError("wants an integer from 0 to 2**63 - 1")
    return value


def optional_number(value: Any) -> int | None:
    return None if value is None else number(value)


def text(value: Any) -> str:
    if not isinstance(value, str) or len(value) > _MAX_TEXT:
        raise ValueError(f"wants a string of at most {_MAX_TEXT} characters")
    return value


def flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("wants true or false")
    return value


def seconds(value: Any) -> float:
    if (
        isinstance(value, bool)
        or not isinstance(value, (int, float))
        or not math.isfinite(value)
        or value < 0
    ):
        raise ValueError("wants a number of seconds")
    return float(value)


def _list(value: Any) -> list[Any] | tuple[Any, ...]:
    if not isinstance(value, (list, tuple)) or len(value) > _MAX_ITEMS:
        raise ValueError(f"wants a list of at most {_MAX_ITEMS} items")
    return value


def numbers(value: Any) -> tuple[int, ...]:
    return tuple(number(item) for item in _list(value))


def optional_numbers(value: Any) -> tuple[int, ...] | None:
    return None if value is None else numbers(value)


def pairs(value: Any) -> tuple[tuple[int, int], ...]:
    pairs = [numbers(item) for item in _list(value)]
    if any(len(pair) != 2 for pair in pairs):
        raise ValueError("wants a list of pairs of integers")
    return tuple((pair[0], pair[1]) for pair in pairs)


def mapping(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise ValueError("wants an object")
    return dict(value)


def choice(*names: str) -> Callable[[Any], str]:
    """Reads one of these strings."""

    def read(value: Any) -> str:
        if value not in names:
            raise ValueError(f"wants one of {', '.join(names)}")
        return str(value)

    return read


def is_(read: Callable[[Any], Any], **options: Any) -> Any:
    """A field whose value in a header is checked, and made, by ``read``."""
    return field(metadata={"read": read}, **options)


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):  # a NamedTuple as well
        return [_plain(item) for item in value]
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    def fields_to_header(self) -> Header:
        return {one.name: _plain(getattr(self, one.name)) for one in dataclasses.fields(self)}

    @classmethod
    def fields_from_header(cls, header: Mapping[str, Any], own: set[str]) -> Self:
        known = {one.name: one for one in dataclasses.fields(cls)}
        if unknown := set(header) - set(known) - own:
            raise FormatError(f"header of {cls.__name__} holds {sorted(unknown)}, which it does not have")
        values = {}
        for name, one in known.items():
            if name not in header:
                if one.default is not dataclasses.MISSING or one.default_factory is not dataclasses.MISSING:
                    continue
                raise FormatError(f"header of {cls.__name__} lacks {name!r}")
            try:
                values[name] = one.metadata["read"](header[name])
            except ValueError as error:
                raise FormatError(f"{cls.__name__}.{name} {error}, got {str(header[name])[:80]!r}") from None
        return cls(**values)
