"""Stand-ins for Theano's classes, so that its files open without it.

A shared variable becomes a :class:`SharedVariable` with name, value and type. Everything else that a file of
Theano refers to (types, containers, expressions) becomes a :class:`Placeholder` that keeps its class's name
and its state.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

__all__ = ["Placeholder", "SharedVariable", "stand_in"]

Array = np.ndarray[Any, Any]

_SHARED: Final = frozenset({"TensorSharedVariable", "ScalarSharedVariable", "GpuArraySharedVariable"})


class Placeholder:
    """An object of a class that is not here: ``class_name`` and ``state``."""

    class_name = ""

    def __init__(self, *args: object) -> None:
        self.arguments = args
        self.state: object = None

    def __setstate__(self, state: object) -> None:
        self.state = state

    def __getattr__(self, name: str) -> Any:
        state = self.__dict__.get("state")
        if isinstance(state, dict) and name in state:
            return state[name]
        raise AttributeError(f"{type(self).class_name} has no {name!r}")

    def __repr__(self) -> str:
        return f"<{type(self).class_name}, whose class is not here>"


class SharedVariable:
    """A shared variable of Theano: a named array.

    Attributes
    ----------
    name
        None for an unnamed one.
    """

    def __init__(self) -> None:
        self.name: str | None = None
        self.state: dict[str, Any] = {}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.state = state
        self.name = state.get("name")

    def get_value(self, borrow: bool = False) -> Array:
        """Return the array; a copy unless ``borrow``."""
        container = self.state.get("container")
        storage = container.storage if isinstance(container, Placeholder) else [np.empty(0)]
        value = np.asarray(storage[0])
        return value if borrow else value.copy()

    def __repr__(self) -> str:
        value = self.get_value(borrow=True)
        return f"<SharedVariable {self.name}: {value.dtype} {value.shape}>"


def stand_in(module: str, name: str) -> type | None:
    """Return the class that stands for ``module.name`` of Theano; None for other modules.

    A placeholder class is made anew for each class, so that its objects tell what they were.
    """
    if module.split(".")[0] != "theano":
        return None
    if name in _SHARED:
        return SharedVariable
    return type("Placeholder", (Placeholder,), {"class_name": f"{module}.{name}"})
