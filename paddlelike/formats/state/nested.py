"""Names for the values in a pickle: paths through its dicts, lists, tuples and objects, joined by slashes.

>>> import numpy as np
>>> found = flatten({"epoch": 3, "model": {"w": np.ones(2), "layers": [np.ones(1)]}}, np.ndarray, most=100)
>>> list(found.arrays), found.left_out, found.plain
(['model/w', 'model/layers/0'], [LeftOut(name='epoch', what='3', is_value=True, is_plain=True)], {'epoch': 3})
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Any, Final, Generic, TypeVar

from paddlelike.errors import FormatError
from paddlelike.formats.entry import LeftOut, free_name
from paddlelike.formats.state import pickles
from paddlelike.formats.state.pickled import Foreign, Latin1, Text, is_container, list_parts
from paddlelike.lazy import dataclass

A = TypeVar("A")

_DEEPEST: Final = 64
_LONGEST: Final = 60  # characters of a value in a report
_LARGEST: Final = 1 << 128
_PLAIN: Final = (bool, int, float, str, bytes, memoryview, Text, Latin1)
_NAMES_KEY: Final = "StructuredToParameterName@@"


@dataclass
class Flat(Generic[A]):
    """The values of a pickle by path.

    Attributes
    ----------
    arrays
        The arrays.
    parameter_names
        The names of variables that Paddle pickled beside arrays, by path.
    left_out
        Everything else, each value by itself.
    plain
        All other plain values, in their nesting: numbers, texts, lists and dicts of these.
    name_maps
        The maps from names of a layer to names of variables, by path.
    """

    arrays: dict[str, A] = field(default_factory=dict)
    parameter_names: dict[str, str] = field(default_factory=dict)
    left_out: list[LeftOut] = field(default_factory=list)
    plain: dict[str, Any] = field(default_factory=dict)
    name_maps: dict[str, dict[str, str]] = field(default_factory=dict)


def flatten(
    value: object,
    array: type[A] | tuple[type[A], ...],
    most: int,
    prepare: Callable[[dict[Any, Any]], object] | None = None,
) -> Flat[A]:
    """Return the values in ``value`` by path.

    Parameters
    ----------
    array
        The class of arrays, or several; one with a ``problem`` is left out.
    most
        The largest number of values; a shared value counts once for each of its paths.
    prepare
        Called with every dict of the pickle before its items are read.

    Raises
    ------
    FormatError
        There are more values, or they are nested too deeply.
    """
    flat: Flat[A] = Flat()
    _Walk(flat, array, most, prepare).add(value, None, 0)
    said = {f"{path[: -len(_NAMES_KEY)]}{key}" for path, names in flat.name_maps.items() for key in names}
    others = {
        path: name
        for path, name in flat.parameter_names.items()
        if path not in said and path.rpartition("/")[2] != name
    }
    if others and _NAMES_KEY not in flat.name_maps:
        flat.name_maps[_NAMES_KEY] = others
        flat.left_out.append(LeftOut(_NAMES_KEY, f"the names of {len(others)} variables", is_value=False))
    return flat


class _Walk(Generic[A]):
    def __init__(
        self,
        flat: Flat[A],
        array: type[A] | tuple[type[A], ...],
        most: int,
        prepare: Callable[[dict[Any, Any]], object] | None,
    ) -> None:
        self._flat = flat
        self._array = array
        self._left = most
        self._prepare = prepare or (lambda _: None)

    def add(self, value: object, path: str | None, depth: int) -> None:
        """Add a value and all values inside it."""
        self._left -= 1
        if self._left < 0 or depth > _DEEPEST:
            raise FormatError("the pickle describes more data than it holds, or is nested too deeply")
        flat = self._flat
        where = "0" if path is None else path
        if isinstance(value, self._array):
            self._add_array(value, where)
        elif isinstance(value, tuple) and _is_named(value, self._array):
            name = self._add_array(value[1], value[0] if path is None else path)
            flat.parameter_names[name] = value[0]
        elif where.rpartition("/")[2] == _NAMES_KEY:
            self._add_names(value, where)
        elif path is not None and is_container(value) and self._is_plain(value, depth):
            plain = pickles.to_plain(value)
            flat.plain[path] = plain
            self._name_values(plain, path)
        elif is_container(value):
            if isinstance(value, Foreign):
                flat.left_out.append(LeftOut(where, f"an object of {value.kind}"))
            if isinstance(value, dict):
                self._prepare(value)
            for key, item in list_parts(value):
                self.add(
                    item, _describe_key(key) if path is None else f"{path}/{_describe_key(key)}", depth + 1
                )
        elif value is None or isinstance(value, _PLAIN):
            flat.plain[where] = pickles.to_plain(value)
            flat.left_out.append(LeftOut(where, _describe(flat.plain[where]), is_plain=True))
        else:
            flat.left_out.append(LeftOut(where, str(value)))

    def _add_array(self, value: A, path: str) -> str:
        problem = getattr(value, "problem", None)
        name = free_name(path, self._flat.arrays)
        if problem is None:
            self._flat.arrays[name] = value
        else:
            self._flat.left_out.append(LeftOut(path, problem))
        return name

    def _add_names(self, value: object, path: str) -> None:
        """Add the map from a layer's names to its variables' names."""
        names = pickles.to_plain(value)
        if not isinstance(names, dict) or not all(isinstance(name, str) for name in names.values()):
            raise FormatError(f"{_NAMES_KEY} is not a dict of names")
        prefix = path[: -len(_NAMES_KEY)]
        self._flat.parameter_names.update({f"{prefix}{key}": name for key, name in names.items()})
        if any(key != name for key, name in names.items()):
            what = f"the names of {len(names)} variables"
            self._flat.left_out.append(LeftOut(path, what, is_value=False))
        self._flat.name_maps[path] = names

    def _is_plain(self, value: object, depth: int) -> bool:
        """Return whether a value holds neither arrays nor objects."""
        self._left -= 1
        if self._left < 0 or depth > _DEEPEST:
            raise FormatError("the pickle describes more data than it holds, or is nested too deeply")
        if not is_container(value):
            return value is None or isinstance(value, _PLAIN)
        return not isinstance(value, Foreign) and all(
            key != _NAMES_KEY and self._is_plain(item, depth + 1) for key, item in list_parts(value)
        )

    def _name_values(self, value: object, path: str) -> None:
        """Name every value inside a plain one."""
        self._left -= 1
        if not is_container(value):
            self._flat.left_out.append(LeftOut(path, _describe(value), is_plain=True))
            return
        if isinstance(value, dict | list | tuple) and not value:
            self._flat.left_out.append(LeftOut(path, _describe(value), is_value=False, is_plain=True))
        for key, item in list_parts(value):
            self._name_values(item, f"{path}/{_describe_key(key)}")


def _is_named(value: tuple[Any, ...], array: type | tuple[type, ...]) -> bool:
    """Return whether a value is the pair of name and array that Paddle 2 pickles for a tensor."""
    return len(value) == 2 and isinstance(value[0], str) and isinstance(value[1], array)


def _describe_key(key: object) -> str:
    return key if isinstance(key, str) else _describe(key)


def _describe(value: object) -> str:
    if isinstance(value, int) and abs(value) > _LARGEST:  # Python writes those of thousands of digits slowly
        return "a number of many digits"
    text = f"{len(value)} bytes" if isinstance(value, bytes) else repr(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
