"""The conversion of messages to headers (plain JSON types) and of headers to messages with checked fields."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self, TypeAlias

from paddlelike.errors import FormatError

Header: TypeAlias = dict[str, Any]

_MAX_TEXT = 4096
_MAX_ITEMS = 65536

# Readers: each returns a value of a header as the field's type, or raises ValueError with what it expects.


def read_integer(value: object) -> int:
    """Return an integer from 0 to 2**63 - 1. Raises ValueError for another value."""
    if type(value) is not int or not 0 <= value < 1 << 63:
        raise ValueError("expected an integer from 0 to 2**63 - 1")
    return value


def read_optional_integer(value: object) -> int | None:
    """Return an integer or None. Raises ValueError for another value."""
    return None if value is None else read_integer(value)


def read_text(value: object) -> str:
    """Return a short string. Raises ValueError for another value."""
    if not isinstance(value, str) or len(value) > _MAX_TEXT:
        raise ValueError(f"expected a string of at most {_MAX_TEXT} characters")
    return value


def read_flag(value: object) -> bool:
    """Return a boolean. Raises ValueError for another value."""
    if not isinstance(value, bool):
        raise ValueError("expected true or false")
    return value


def read_seconds(value: object) -> float:
    """Return a finite number that is not negative. Raises ValueError for another value."""
    if (
        isinstance(value, bool)
        or not isinstance(value, (int, float))
        or not math.isfinite(value)
        or value < 0
    ):
        raise ValueError("expected a number of seconds")
    return float(value)


def _read_list(value: object) -> list[Any] | tuple[Any, ...]:
    if not isinstance(value, (list, tuple)) or len(value) > _MAX_ITEMS:
        raise ValueError(f"expected a list of at most {_MAX_ITEMS} items")
    return value


def read_integers(value: object) -> tuple[int, ...]:
    """Return a tuple of integers. Raises ValueError for another value."""
    return tuple(read_integer(item) for item in _read_list(value))


def read_optional_integers(value: object) -> tuple[int, ...] | None:
    """Return a tuple of integers or None. Raises ValueError for another value."""
    return None if value is None else read_integers(value)


def read_pairs(value: object) -> tuple[tuple[int, int], ...]:
    """Return a tuple of pairs of integers. Raises ValueError for another value."""
    pairs = [read_integers(item) for item in _read_list(value)]
    if any(len(pair) != 2 for pair in pairs):
        raise ValueError("expected a list of pairs of integers")
    return tuple((pair[0], pair[1]) for pair in pairs)


def read_object(value: object) -> Mapping[str, Any]:
    """Return a JSON object as a dict. Raises ValueError for another value."""
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise ValueError("expected an object")
    return dict(value)


def choice_reader(*names: str) -> Callable[[Any], str]:
    """Return a function that checks a string; it raises ValueError for one that is not among ``names``."""

    def read(value: object) -> str:
        if value not in names:
            raise ValueError(f"expected one of {', '.join(names)}")
        return str(value)

    return read


def header_field(read: Callable[[Any], Any], **options: Any) -> Any:
    """Return a dataclass field whose value in a header is checked and converted by ``read``."""
    return field(metadata={"read": read}, **options)


def _to_json(value: object) -> object:
    if isinstance(value, tuple):  # a NamedTuple as well
        return [_to_json(item) for item in value]
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A message whose fields are declared by :func:`header_field`."""

    def fields_to_header(self) -> Header:
        """Return the fields as plain JSON types."""
        return {name: _to_json(getattr(self, name)) for name in _list_fields(type(self))}  # type: ignore[arg-type]

    @classmethod
    def fields_from_header(cls, header: Mapping[str, Any], own: set[str]) -> Self:
        """Return the message in a header, ignoring the keys ``own``.

        Raises
        ------
        FormatError
            The header has an unknown, missing or wrongly typed field.
        """
        known = _list_fields(cls)  # type: ignore[arg-type]
        if not header.keys() <= known.keys() | own:
            unknown = set(header) - set(known) - own
            raise FormatError(f"header of {cls.__name__} holds the unknown fields {sorted(unknown)}")
        values = {}
        for name, (read, is_optional) in known.items():
            if name not in header:
                if is_optional:
                    continue
                raise FormatError(f"header of {cls.__name__} lacks {name!r}")
            try:
                values[name] = read(header[name])
            except ValueError as error:
                raise FormatError(f"{cls.__name__}.{name}: {error}, got {str(header[name])[:80]!r}") from None
        return cls(**values)


@functools.cache
def _list_fields(cls: type[Message]) -> dict[str, tuple[Callable[[Any], Any], bool]]:
    """Return, by name, the reader of each field of a message class, and whether the field has a default."""
    return {
        one.name: (
            one.metadata["read"],
            one.default is not dataclasses.MISSING or one.default_factory is not dataclasses.MISSING,
        )
        for one in dataclasses.fields(cls)
    }
