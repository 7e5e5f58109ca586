"""Modules, classes and functions of scripts: their names, and what is found in them."""

from __future__ import annotations

import ast
import builtins
import os
import sys
from abc import abstractmethod
from collections import ChainMap, Counter
from collections.abc import Callable, Collection, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import field
from functools import cache
from typing import Any, Final

from paddlelike.lazy import dataclass
from paddlelike.scan import paddle_names
from paddlelike.scan.paddle_names import MISSING, Problem
from paddlelike.scan.python_names import PYTHON_2_BUILTINS, PythonNames, advise
from paddlelike.scan.report import Kind, ScriptFinding
from paddlelike.scan.sources import Source, read_source

#: A file, a line and a name.
Place = tuple[str, int, str]
HANDLED, POSSIBLE, CERTAIN = range(3)
UNKNOWN: Final = object()


@dataclass(frozen=True)
class Constant:
    """A value of Python's."""

    value: object


@dataclass(frozen=True)
class Outside:
    """A name of another package: ``numpy.bool``."""

    path: str


@dataclass(frozen=True)
class PaddleName:
    """A module, class, function or other object that ``import paddle`` reaches."""

    path: str
    found: object


@dataclass(eq=False)
class CaughtError(Exception):
    """The handlers of a ``try``, raised where they catch: names of exceptions, None for all."""

    names: Collection[str] | None

    def catches(self, error: type[BaseException] | None) -> bool:
        return error is not None and (
            self.names is None or any(cls.__name__ in self.names for cls in error.__mro__)
        )


class ExitedError(Exception):
    """The script ends here on purpose."""


_KNOWN: Final[Mapping[str, object]] = {
    "sys.version_info": sys.version_info, "sys.platform": sys.platform, "sys.version": sys.version,
    "os.name": os.name, "six.PY2": False, "six.PY3": True,
}  # fmt: skip


@dataclass
class Facts:
    """The facts of a folder that its units share."""

    root: str
    scripts: Collection[str]
    python: PythonNames
    read: Callable[[str], Source] = field(default_factory=lambda: cache(read_source))
    uses: Counter[str] = field(default_factory=Counter)
    packages: set[str] = field(default_factory=set)
    findings: dict[Place, tuple[ScriptFinding | None, type[BaseException] | None]] = field(
        default_factory=dict
    )
    stored: set[str] = field(default_factory=set)  # attributes that scripts set on any object

    def is_stored(self, name: str) -> bool:
        """Return whether scripts set an attribute on any object, maybe one of this package."""
        if not self.stored:
            nodes = (node for one in map(self.read, self.scripts) if one.tree for node in ast.walk(one.tree))
            self.stored = {"", *(
                node.attr
                for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
            )}  # fmt: skip
        return name in self.stored


@dataclass(eq=False)
class Unit:
    """A module, class or function of the folder, or the block of a module that only a script runs.

    A class stands for its objects as well.

    Attributes
    ----------
    node
        A syntax node with a body; None if the file cannot be read.
    found
        The findings of the unit and of all that it calls and imports, in the order of a run, each with
        its certainty.
    parts
        The functions of a module, and the blocks that run when it is the script.
    imports
        The files that a module imports, each with its certainty.
    """

    folder: Facts
    node: Any
    file: str
    scope: ChainMap[str, Any] = field(default_factory=ChainMap)
    bases: Sequence[object] = ()
    found: dict[Place, int] = field(default_factory=dict)
    parts: list[Unit] = field(default_factory=list)
    imports: dict[str, int] = field(default_factory=dict)
    exits: bool = False
    is_followed: bool = False
    is_certain: bool = True
    guards: list[CaughtError] = field(default_factory=list)

    def is_a(self, *kinds: type) -> bool:
        return isinstance(self.node, kinds)

    def list_bases(self) -> Iterator[object]:
        """Yield the base classes; a base class from the script is followed by its own base classes."""
        for base in self.bases:
            yield base
            if isinstance(base, Unit):
                yield from base.list_bases()

    def find(self, name: str) -> object:
        """Return the value of a name of a module or class, or None if the name is not bound."""
        units = (self, *(base for base in self.list_bases() if isinstance(base, Unit)))
        return next((one.names[name] for one in units if name in one.names), None)

    @property
    def names(self) -> MutableMapping[str, Any]:
        """The names bound in the unit itself."""
        return self.scope.maps[0]

    def follow(self) -> Unit:
        """Follow the statements of the unit, once; return it."""
        if self.is_followed:
            return self
        self.is_followed = True
        try:
            self._run()
        except ExitedError:
            self.exits = True
        except RecursionError:  # deep nesting within deep calls: the rest of the unit is left out
            pass
        return self

    @abstractmethod
    def _run(self) -> None:
        """Follow the statements."""

    def enter(self, unit: Unit) -> None:
        """Take over the findings of a unit that is called, imported or defined here."""
        for place, rank in list(unit.follow().found.items()):
            self._meet(place, rank)
        if unit.exits and self.is_certain and not self.guards:
            raise ExitedError

    def _meet(self, place: Place, rank: int) -> None:
        """Note a finding, unless a ``try`` catches it. Raises CaughtError where it does."""
        rank, error = min(rank, CERTAIN if self.is_certain else POSSIBLE), self.folder.findings[place][1]
        guard = next((one for one in reversed(self.guards) if one.catches(error)), None)
        self.found[place] = max(self.found.get(place, HANDLED), rank if guard is None else HANDLED)
        if guard is not None and rank == CERTAIN:
            raise guard

    def _stop(self, node: ast.AST, name: str, kind: Kind, problem: Problem) -> None:
        line = getattr(node, "lineno", 0)
        place = (self.file, line, name)
        if place not in self.folder.findings:
            path, shown = os.path.relpath(self.file, self.folder.root), self.folder.read(self.file)
            finding = ScriptFinding(path, shown.format_line(line), name, kind, *problem[:2], certain=False)
            self.folder.findings[place] = (finding, problem.error)
        self._meet(place, CERTAIN)

    @contextmanager
    def _possible(self) -> Iterator[None]:
        """Follow code that is not certain to run."""
        before, self.is_certain = self.is_certain, False
        try:
            yield
        finally:
            self.is_certain = before

    def _read_name(self, node: ast.Name) -> object:
        name = node.id
        if name in self.scope:
            return self.scope[name]
        if hasattr(builtins, name):
            return Outside(name)
        if name in PYTHON_2_BUILTINS:
            step = f"write {PYTHON_2_BUILTINS[name]}"
            self._stop(node, name, "python", Problem(f"{name} is a name of Python 2", step, NameError))
        return UNKNOWN

    def _attribute(self, node: ast.expr, owner: object, name: str) -> object:
        match owner:
            case PaddleName():
                return self._read_paddle(node, owner, name)
            case Outside():
                return self._read_outside(node, owner, name)
            case Constant(value=sys.version_info) if name in ("major", "minor"):
                return Constant(getattr(sys.version_info, name))
            case Unit():
                found = owner.find(name)
                is_open = isinstance(found, Constant) and self.folder.is_stored(name)
                return UNKNOWN if found is None or is_open else found
        return UNKNOWN

    def _read_paddle(self, node: ast.AST, owner: PaddleName, name: str, *, imported: bool = False) -> object:
        path = f"{owner.path}.{name}"
        if owner.found is MISSING:
            return UNKNOWN
        found = paddle_names.find_attribute(owner.path, owner.found, name, imported=imported)
        if isinstance(found, Problem):
            with self._possible() if self.folder.is_stored(name) else nullcontext():
                self._stop(node, path, "paddle", found)
            return UNKNOWN
        self.folder.uses[path] += 1
        is_constant = isinstance(found, str | int | float | bool | None)
        return Constant(found) if is_constant else PaddleName(path, found)

    def _read_outside(self, node: ast.AST, owner: Outside, name: str) -> object:
        path = f"{owner.path}.{name}"
        if path in _KNOWN:
            return Constant(_KNOWN[path])
        problem = self.folder.python.find_problem(path)
        if problem is None:
            return Outside(path)
        kind: Kind = "package" if path.startswith(("numpy.", "scipy.", "PIL.")) else "python"
        self._stop(node, path, kind, Problem(problem, advise(path), AttributeError))
        return UNKNOWN
