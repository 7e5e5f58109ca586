"""The path of a script: findings, whether they are certain, and what a ``try`` catches."""

from __future__ import annotations

import ast
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field
from typing import NamedTuple

from paddlelike.lazy import dataclass
from paddlelike.scan.paddle_names import Problem
from paddlelike.scan.python_names import PythonNames
from paddlelike.scan.report import Kind, ScriptFinding
from paddlelike.scan.sources import Source, find_module
from paddlelike.scan.values import LocalFunction, LocalModule, Value

#: A file, a line and a name.
Place = tuple[str, int, str]


class Followed(NamedTuple):
    """The findings on a script's path, without those inside functions of its modules.

    Attributes
    ----------
    found
        By file, line and name: the finding, and the function that holds it (0: none).
    inner
        Those of ``found`` inside the script's own functions, as possible ones.
    entered
        The functions that were followed.
    modules
        The files that it imports.
    """

    found: dict[Place, tuple[ScriptFinding, int]]
    inner: list[tuple[Place, ScriptFinding, int]]
    entered: frozenset[int]
    modules: tuple[str, ...]


class Found(NamedTuple):
    """A finding of a module: ``error`` is what a run would raise there, and a ``try`` may catch.

    An import of a package that is not installed has no finding of its own.
    """

    certain: bool
    error: type[BaseException] | None
    place: Place
    finding: ScriptFinding | None
    function: int


class Imported(NamedTuple):
    """An import of another module, and the ``try`` statements around it."""

    certain: bool
    guards: tuple[Guard, ...]
    loaded: Loaded


@dataclass(eq=False)
class Loaded:
    """A module of the folder, followed once for all scripts that import it.

    Attributes
    ----------
    steps
        What an importer takes over, in the order of a run.
    entered
        The functions that its own statements call.
    exits
        It ends the script.
    """

    module: LocalModule
    steps: list[Found | Imported] = field(default_factory=list)
    entered: set[int] = field(default_factory=set)
    exits: bool = False


@dataclass
class Folder:
    """The facts that the scripts of a folder share.

    A module is followed once, and so is a function of it that no script calls, not again with every script
    that imports it.
    """

    root: str
    sources: Mapping[str, Source]
    python: PythonNames
    uses: Counter[str] = field(default_factory=Counter)
    packages: dict[str, set[str]] = field(default_factory=dict)
    stored: frozenset[str] | None = None  # attributes that scripts set on anything
    loaded: dict[str, Loaded] = field(default_factory=dict)
    followed: dict[str, Followed] = field(default_factory=dict)
    located: dict[tuple[str, int, str], str | None] = field(default_factory=dict)

    def find_module(self, name: str, level: int, file: str) -> str | None:
        """Return the file of a module that a script imports, or None."""
        key = (name, level, os.path.dirname(file))
        if key not in self.located:
            self.located[key] = find_module(name, level, file, self.sources, self.root)
        return self.located[key]

    def list_packages(self, name: str, level: int, file: str) -> list[str]:
        """Return the files that an import runs before a module: those of its packages, from the outermost."""
        folder = os.path.dirname(file)
        if os.path.basename(file) == "__init__.py":
            folder = os.path.dirname(folder)
        most = len(name.split(".")) - 1 if not level else len(file)
        found: list[str] = []
        while len(found) < most and (path := os.path.join(folder, "__init__.py")) in self.sources:
            found.insert(0, path)
            folder = os.path.dirname(folder)
        return found


class CaughtError(Exception):
    """Raised where a ``try`` catches an exception."""

    def __init__(self, guard: Guard) -> None:
        self.guard = guard


class ExitedError(Exception):
    """The script ends here on purpose."""


@dataclass(eq=False)
class Guard:
    """The handlers of a ``try``: names of exceptions, None for all."""

    names: tuple[str, ...] | None

    def catches(self, error: type[BaseException]) -> bool:
        return self.names is None or any(cls.__name__ in self.names for cls in error.__mro__)


class Way:
    """The findings while one script or module is followed."""

    def __init__(self, folder: Folder, loaded: Loaded) -> None:
        self._found: dict[Place, tuple[ScriptFinding, int]] = {}
        self._folder = folder
        self._loaded = loaded
        self._certain = True
        self._guards: list[Guard] = []
        self._taken: dict[str, bool] = {}  # modules, and whether their import is certain
        self._functions: dict[int, LocalFunction] = {}
        self._called: dict[object, Value] = {}
        self._file = ""
        self._function = 0  # the one that is followed
        self._depth = 0
        self._returned: list[Value] = []
        self._changed: list[tuple[dict[str, Value], str, Value | None]] = []

    def _stop(self, node: ast.AST, name: str, kind: Kind, problem: Problem) -> None:
        if not self._is_caught(problem.error):
            self._add(node, name, kind, problem.why, problem.step, problem.error)

    def _is_caught(self, error: type[BaseException]) -> bool:
        """Return whether a ``try`` may catch an error. Raises CaughtError where it does."""
        guard = next((one for one in reversed(self._guards) if one.catches(error)), None)
        if guard is not None and self._certain:
            raise CaughtError(guard)
        return guard is not None

    def _add(
        self,
        node: ast.AST,
        name: str,
        kind: Kind,
        why: str,
        step: str,
        error: type[BaseException] | None = None,
    ) -> None:
        line = getattr(node, "lineno", 0)
        file = os.path.relpath(self._file, self._folder.root)
        place = self._folder.sources[self._file].format_line(line)
        finding = ScriptFinding(file, place, name, kind, why, step, self._certain)
        found = Found(self._certain, error, (self._file, line, name), finding, self._function)
        if self._keep(found):
            self._loaded.steps.append(found)

    def _keep(self, step: Found) -> bool:
        """Remember a finding. Return whether it was not known."""
        if step.finding is None:
            return False
        known = self._found.get(step.place)
        if known is not None and (known[0].certain or not self._certain):
            return False
        self._found[step.place] = (step.finding._replace(certain=self._certain), step.function)
        return True

    def _take(self, loaded: Loaded) -> None:
        """Take over what a module's statements do, as an import of it would."""
        self._taken[loaded.module.path] = self._certain
        before, depth = self._certain, len(self._guards)
        for step in loaded.steps:
            self._certain = before and step.certain
            try:
                if isinstance(step, Imported):
                    if self._certain > self._taken.get(step.loaded.module.path, -1):
                        self._guards += step.guards
                        self._take(step.loaded)
                elif step.error is None or not self._is_caught(step.error):
                    self._keep(step)
            except CaughtError as one:
                if one.guard in self._guards[:depth]:
                    raise
            finally:
                self._certain = before
                del self._guards[depth:]
        if loaded.exits and before and not depth:
            raise ExitedError

    def _set(self, values: dict[str, Value], name: str, found: Value) -> None:
        """Set an attribute of an object, possibly in a module that other scripts import."""
        self._changed.append((values, name, values.get(name)))
        values[name] = found

    def _restore(self) -> None:
        """Undo what the script set."""
        for values, name, found in reversed(self._changed):
            if found is None:
                del values[name]
            else:
                values[name] = found

    @contextmanager
    def _possible(self) -> Iterator[None]:
        """Follow code that is not certain to run."""
        before, self._certain = self._certain, False
        try:
            yield
        finally:
            self._certain = before
