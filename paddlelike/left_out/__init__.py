"""Names of Fluid that paddlelike leaves out: why, and what to use instead.

A script may import such a name, because many scripts import more than they use. Using it raises LeftOutError,
with the reason and an alternative.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Final, NoReturn

from paddlelike.errors import LeftOutError
from paddlelike.foundation.near_names import suggest_names
from paddlelike.left_out.reasons import DYGRAPH, MODULES, NAMES, OF_OTHERS, PADDLE_NAMES, Reason

__all__ = [
    "MODULES",
    "NAMES",
    "LeftOutFinder",
    "Reason",
    "find_left_out",
    "find_reason",
    "make_attribute_error",
    "make_getattr",
]


#: Modules of the face that are searched for a name that another one does not have.
_ROOMS: Final = ("layers", "optimizer", "io", "initializer", "regularizer", "clip", "metrics", "nets")


def find_reason(path: str) -> Reason | None:
    """Return why Fluid's ``path`` is left out; None if it is not.

    >>> find_reason("dygraph.jit.declarative") is find_reason("enable_dygraph")
    True
    """
    return NAMES.get(path) or _find_in_modules(path)


def _find_in_modules(path: str) -> Reason | None:
    """Return why the module of that path, or a module above it, is left out; else None."""
    while path and path not in MODULES:
        path = path.rpartition(".")[0]
    return MODULES.get(path)


def find_left_out(path: str) -> type | None:
    """Return the stand-in for Fluid's ``path`` if it is a left-out function or class, else None.

    It can be named, imported and subclassed. Calling it, or reading an attribute of it, raises LeftOutError.

    >>> find_left_out("load_dygraph")("model")
    Traceback (most recent call last):
      ...
    paddlelike.errors.LeftOutError: fluid.load_dygraph is not here: only static programs ...
    """
    return _LeftOutName(path.rpartition(".")[2], (), {"path": path}) if path in NAMES else None


def make_getattr(module: str, path: str, modules: Mapping[str, str] | None = None) -> Callable[[str], Any]:
    """Return ``__getattr__`` for a module that is Fluid's ``path``.

    It finds left-out names and modules, names that Fluid's module imports, and the ``modules`` below it,
    given by their full names.
    """

    def get(name: str) -> Any:
        if modules is not None and name in modules:
            return import_module(modules[name])
        if f"{path}.{name}" in MODULES:
            return import_module(f"paddlelike.{path}.{name}")
        found: Any = find_left_out(f"{path}.{name}")
        if found is None:
            from paddlelike.left_out.imported import find_imported  # a plain import of the package is short

            found = find_imported(name)
        if found is None:
            raise make_attribute_error(module, name, dir(sys.modules[module]))
        return found

    return get


def make_attribute_error(module: str, name: str, known: Iterable[str]) -> AttributeError:
    """Return the error for a name that a module does not have, with the nearest public one of ``known``.

    The name is part of the text, so that logs and notebooks show it too. ``obj=None`` keeps the interpreter
    from adding its own suggestion.
    """
    text = f"module {module!r} has no attribute {name!r}"
    if not name.startswith("_"):
        public = [one for one in known if not one.startswith("_")]
        text += _find_elsewhere(name, module, public) or suggest_names(name, public, lead="; ", count=1)
    return AttributeError(text, name=name, obj=None)


def _find_elsewhere(name: str, module: str, own: Collection[str]) -> str:
    """Return where to find a name that a module lacks, or what replaces it."""
    if name.lower() in OF_OTHERS:
        return f"\n  hint: {OF_OTHERS[name.lower()]}"
    face = sys.modules.get("paddlelike")
    package = module.partition(".")[2].removeprefix("fluid.")
    if package not in ("", *_ROOMS) or any(one.lower() == name.lower() for one in own):
        return ""
    for room in _ROOMS:
        listed = getattr(getattr(face, room, None), "__all__", ())
        found = [one for one in listed if one.lower() == name.lower()]
        if found and room != package:
            return f"; did you mean fluid.{room}.{found[0]}?"
    return ""


def raise_left_out(path: str, reason: Reason) -> NoReturn:
    """Raise LeftOutError with the reason why Fluid's ``path`` is missing and what to do."""
    package = "paddle" if reason in PADDLE_NAMES else "fluid"
    raise LeftOutError(f"{package}.{path} is not here: {reason.why}", hint=reason.instead)


class _LeftOutName(type):
    """A left-out class or function of Fluid: it can be named and subclassed, but not used."""

    path: str

    def __call__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        raise_left_out(cls.path, find_reason(cls.path) or DYGRAPH)

    def __getattr__(cls, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise_left_out(f"{cls.path}.{name}", find_reason(cls.path) or DYGRAPH)

    def __repr__(cls) -> str:
        return f"<{cls.path}: {(find_reason(cls.path) or DYGRAPH).why}>"


class _LeftOutModule(ModuleType):
    """A left-out module of Fluid: its names can be imported, but not used."""

    def __init__(self, path: str) -> None:
        self._why = (find_reason(path) or DYGRAPH).why
        super().__init__(f"paddlelike.{path}", self._why)
        self.__path__: list[str] = []
        self._path = path

    def __getattr__(self, name: str) -> type:
        if name.startswith("__"):
            raise AttributeError(name)
        return _LeftOutName(name, (), {"path": f"{self._path}.{name}"})

    def __repr__(self) -> str:
        return f"<module {self._path}: {self._why}>"


class LeftOutFinder:  # without a base of importlib.abc, which takes long to import
    """Imports the left-out modules of Fluid, such as ``paddlelike.dygraph.jit``."""

    def find_spec(self, fullname: str, path: object, target: object = None) -> ModuleSpec | None:
        """Return a spec for a module below ``paddlelike`` that is left out; None for every other name."""
        package, _, below = fullname.partition(".")
        if package != "paddlelike" or _find_in_modules(below.removeprefix("fluid.")) is None:
            return None
        return ModuleSpec(fullname, self, is_package=True)  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return the module."""
        return _LeftOutModule(spec.name.removeprefix("paddlelike.").removeprefix("fluid."))

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: the module has no code."""
