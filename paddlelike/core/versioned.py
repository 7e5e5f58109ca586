"""Pickles whose states have a version, so that later releases read them.

``pickle`` and ``copy.deepcopy`` call ``__getstate__`` and ``__setstate__``. The state of a class of this
package is ``{"version": 1, "attributes": {...}}``; caches, threads and data sets are not in it.

A change of a class's attributes that breaks old states increases its ``_state_version`` and extends its
``_upgrade_state``, the only place where old states are converted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from paddlelike.errors import FormatError

_KEYS = {"version", "attributes"}


class Versioned:
    """Base class of classes with a versioned state.

    Attributes
    ----------
    _state_version
        The version of the states that this release writes; it reads all up to it.
    _left_out
        Attributes that are not in the state, each with a function that returns its value after loading.

    >>> class Point(Versioned):
    ...     def __init__(self, x):
    ...         self.x = x
    >>> Point(3).__getstate__()
    {'version': 1, 'attributes': {'x': 3}}
    """

    __slots__ = ()

    _state_version: ClassVar[int] = 1
    _left_out: ClassVar[Mapping[str, Callable[[], Any]]] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {"version": self._state_version, "attributes": self._get_attributes()}

    def __setstate__(self, state: Any) -> None:
        """Set the attributes from a state.

        Raises FormatError for a state of a newer release and for anything that is not a state.
        """
        version, attributes = self._parse_state(state)
        if version < self._state_version:
            attributes = self._upgrade_state(version, attributes)
        self._set_attributes(attributes)

    def _get_attributes(self) -> dict[str, Any]:
        """Return the attributes that are in the state."""
        named = {name: getattr(self, name) for name in _list_slots(type(self)) if hasattr(self, name)}
        named |= getattr(self, "__dict__", {})
        return {name: value for name, value in named.items() if name not in self._left_out}

    def _set_attributes(self, attributes: dict[str, Any]) -> None:
        """Set the attributes of the state, and defaults for missing ones, without property setters."""
        slots = _list_slots(type(self))
        made = {name: make() for name, make in self._left_out.items()}
        for name, value in {**attributes, **made}.items():
            if name in slots:
                object.__setattr__(self, name, value)
            else:
                vars(self)[name] = value

    @classmethod
    def _upgrade_state(cls, version: int, attributes: dict[str, Any]) -> dict[str, Any]:
        """Convert attributes of an older version to the attributes of this release.

        The hook for old states: a class that increases ``_state_version`` overrides it. Version 0 means the
        states of releases without versions: all attributes, under the names of version 1.
        """
        return attributes

    def _parse_state(self, state: Any) -> tuple[int, dict[str, Any]]:
        who = type(self).__name__
        if isinstance(state, tuple) and len(state) == 2:  # Python's own state of a class with __slots__
            state = {**(state[0] or {}), **(state[1] or {})}
        if not isinstance(state, dict) or not all(type(key) is str for key in state):
            raise FormatError(f"the state of a {who} is a {type(state).__name__}, expected a dict of names")
        if state.keys() != _KEYS:
            return 0, state
        version, attributes = state["version"], state["attributes"]
        good = isinstance(attributes, dict) and all(type(name) is str for name in attributes)
        if type(version) is not int or not good:
            raise FormatError(f"the state of a {who} has no version and attributes")
        if version > self._state_version:
            raise FormatError(
                f"the state of a {who} has version {version}, this release reads up to version "
                f"{self._state_version}",
                hint="load it with the release that wrote it, or a newer one",
            )
        return version, attributes


def _list_slots(kind: type) -> list[str]:
    """Return the names of the slots of a class and its bases."""
    found = []
    for one in reversed(kind.__mro__):
        slots = vars(one).get("__slots__", ())
        found += [slots] if isinstance(slots, str) else list(slots)
    return [name for name in found if not name.startswith("__")]
