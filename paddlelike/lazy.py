"""Packages whose names are imported at first use, as https://scientific-python.org/specs/spec-0001/ has it.

Such a package lists its names in a stub, ``__init__.pyi``, which type checkers and editors read. Reading the
same file here, it needs no second list.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

__all__ = ["AliasFinder", "attach_stub", "read_stub"]


def read_stub(path: Path) -> dict[str, tuple[str, str]]:
    """Return the imports of a stub: by name, the module and the name there."""
    return {
        alias.asname or alias.name: (node.module or "", alias.name)
        for node in ast.parse(path.read_bytes()).body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def attach_stub(package: str, stub: Path) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__all__``, ``__getattr__`` and ``__dir__`` for a package with that stub.

    Every module of the package is an attribute of it, whether the stub lists it or not; for any other name
    ``__getattr__`` raises AttributeError.
    """
    origins = read_stub(stub)
    names = sorted(origins)

    def get(name: str) -> Any:
        module, attribute = origins.get(name, (package, name))
        if module != package:
            found = getattr(__import__(module, fromlist=[attribute]), attribute)
        elif not attribute.startswith("_") and find_spec(f"{package}.{attribute}") is not None:
            found = import_module(f"{package}.{attribute}")
        else:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        setattr(sys.modules[package], name, found)
        return found

    return names, get, lambda: names


class AliasFinder(MetaPathFinder, Loader):
    """Imports modules under further names, ``paddlelike.compiler`` for ``paddlelike.executor``.

    A further name holds for the modules below it, too. The modules are the same objects under both names.

    Parameters
    ----------
    targets
        By further name, the name of the module.
    """

    def __init__(self, targets: Mapping[str, str]) -> None:
        self._targets = targets

    def find_spec(self, fullname: str, path: object, target: object = None) -> ModuleSpec | None:
        """Return a spec for a further name; None for every other name, and where the module is missing."""
        original = self._original(fullname)
        try:
            found = original is not None and find_spec(original) is not None
        except ModuleNotFoundError:  # what should be a package is a module
            found = False
        return ModuleSpec(fullname, self) if found else None

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Leave it to the import system to create a module, which :meth:`exec_module` replaces."""
        return None

    def exec_module(self, module: ModuleType) -> None:
        """Put the original in the module's place, where the import system takes its result from."""
        sys.modules[module.__name__] = import_module(self._original(module.__name__) or "")

    def _original(self, fullname: str) -> str | None:
        name, below = fullname, ""
        while name and name not in self._targets:
            name, _, last = name.rpartition(".")
            below = f".{last}{below}"
        return f"{self._targets[name]}{below}" if name else None
