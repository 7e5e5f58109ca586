"""The path of a script: findings, whether they are certain, and what a ``try`` catches."""

from __future__ import annotations

import ast
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from paddlelike.scan.paddle_names import Problem
from paddlelike.scan.python_names import PythonNames
from paddlelike.scan.report import Kind, ScriptFinding
from paddlelike.scan.sources import Source, find_module
from paddlelike.scan.values import LocalFunction, LocalModule, Value


class Followed(NamedTuple):
    """The findings on a script's path, without those inside functions of its modules.

    Attributes
    ----------
    found
        By file, line and name: the finding, and the function that holds it (0: none).
    entered
        The functions that were followed.
    modules
        The files that it imports.
    """

    found: dict[tuple[str, int, str], tuple[ScriptFinding, int]]
    entered: frozenset[int]
    modules: tuple[str, ...]


@dataclass
class Folder:
    """The facts that the scripts of a folder share.

    A function of a module that no script calls is followed once, with the module, and not again with every
    script that imports it.
    """

    root: str
    sources: Mapping[str, Source]
    python: PythonNames
    uses: Counter[str] = field(default_factory=Counter)
    packages: dict[str, set[str]] = field(default_factory=dict)
    stored: frozenset[str] | None = None  # attributes that scripts set on anything
    followed: dict[str, Followed] = field(default_factory=dict)
    located: dict[tuple[str, int, str], str | None] = field(default_factory=dict)

    def find_module(self, name: str, level: int, file: str) -> str | None:
        """Return the file of a module that a script imports, or None."""
        key = (name, level, os.path.dirname(file))
        if key not in self.located:
            self.located[key] = find_module(name, level, file, self.sources, self.root)
        return self.located[key]


class CaughtError(Exception):
    """A ``try`` catches what stops here."""

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
    """The findings while one script is followed."""

    def __init__(self, folder: Folder) -> None:
        self._found: dict[tuple[str, int, str], tuple[ScriptFinding, int]] = {}
        self._folder = folder
        self._certain = True
        self._guards: list[Guard] = []
        self._modules: dict[str, LocalModule] = {}
        self._functions: dict[int, LocalFunction] = {}
        self._called: dict[object, Value] = {}
        self._entered: set[int] = set()
        self._file = ""
        self._function = 0  # the one that is followed
        self._depth = 0
        self._returned: list[Value] = []

    def _stop(self, node: ast.AST, name: str, kind: Kind, problem: Problem) -> None:
        guard = next((one for one in reversed(self._guards) if one.catches(problem.error)), None)
        if guard is not None and self._certain:
            raise CaughtError(guard)
        if guard is None:
            self._add(node, name, kind, problem.why, problem.step)

    def _add(self, node: ast.AST, name: str, kind: Kind, why: str, step: str) -> None:
        line = getattr(node, "lineno", 0)
        key = (self._file, line, name)
        known = self._found.get(key)
        if known is None or (self._certain and not known[0].certain):
            file = os.path.relpath(self._file, self._folder.root)
            place = self._folder.sources[self._file].format_line(line)
            finding = ScriptFinding(file, place, name, kind, why, step, self._certain)
            self._found[key] = (finding, self._function)

    @contextmanager
    def _possible(self) -> Iterator[None]:
        """Follow code that a run may or may not reach."""
        before, self._certain = self._certain, False
        try:
            yield
        finally:
            self._certain = before
