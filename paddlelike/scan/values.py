"""The values of a script as known without running it."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import field
from typing import Final

from paddlelike.lazy import dataclass


class Value:
    """An unknown value."""


UNKNOWN: Final = Value()


@dataclass(frozen=True)
class Const(Value):
    """A value of Python's. ``open``: the command line or the environment may give another."""

    value: object
    open: bool = False


@dataclass(frozen=True)
class Items(Value):
    """A tuple or list of known length."""

    items: tuple[Value, ...]


@dataclass(frozen=True)
class PaddleName(Value):
    """A module, class, function or other object that ``import paddle`` reaches."""

    path: str
    found: object


@dataclass(frozen=True)
class PaddleObject(Value):
    """An object of a class of Paddle's; ``path`` says how the script reached it."""

    path: str
    cls: type


@dataclass(frozen=True)
class Outside(Value):
    """A name of another package: ``numpy.bool``."""

    path: str


@dataclass(eq=False)
class Variables:
    """The variables of a module, class or call, and where to look further."""

    names: dict[str, Value] = field(default_factory=dict)
    parent: Variables | None = None

    def find(self, name: str) -> Value | None:
        """Return the value of a name, or None if it is not bound."""
        here: Variables | None = self
        while here is not None and name not in here.names:
            here = here.parent
        return None if here is None else here.names[name]


@dataclass(eq=False)
class LocalModule(Value):
    """A module of the folder that is scanned."""

    path: str
    variables: Variables


@dataclass(eq=False)
class LocalFunction(Value):
    """A function or lambda of a script; ``bound`` is the object of a method."""

    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    file: str
    variables: Variables
    bound: Value | None = None


@dataclass(eq=False)
class LocalClass(Value):
    """A class of a script."""

    node: ast.ClassDef
    file: str
    variables: Variables
    bases: tuple[Value, ...]

    def find(self, name: str) -> Value | None:
        """Return a member of the class or of its bases in scripts."""
        if name in self.variables.names:
            return self.variables.names[name]
        found = (base.find(name) for base in self.bases if isinstance(base, LocalClass))
        return next((one for one in found if one is not None), None)


@dataclass(eq=False)
class LocalObject(Value):
    """An object of a script's class."""

    cls: LocalClass
    attributes: dict[str, Value] = field(default_factory=dict)


@dataclass(eq=False)
class Partial(Value):
    """``functools.partial``."""

    function: Value
    args: list[Value]
    keywords: dict[str, Value]


@dataclass(eq=False)
class Arguments(Value):
    """A parser of command lines and what it returns: the defaults, by name."""

    defaults: dict[str, Value] = field(default_factory=dict)


def merge(one: Mapping[str, Value], other: Mapping[str, Value]) -> dict[str, Value]:
    """Return the variables after either of two branches."""
    merged = dict(one)
    for name, value in other.items():
        if name not in one or one[name] is UNKNOWN:
            merged[name] = value
        elif value is not UNKNOWN and value != one[name]:
            merged[name] = _merge_values(one[name], value)
    return merged


def _merge_values(one: Value, other: Value) -> Value:
    return one if isinstance(one, LocalFunction | LocalClass) and type(one) is type(other) else UNKNOWN
