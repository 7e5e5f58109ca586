"""Names and attributes of a script: their values, and those that do not exist."""

from __future__ import annotations

import ast
import builtins
import os
import sys
from collections.abc import Mapping
from typing import Final

from paddlelike.scan import paddle_names
from paddlelike.scan.execution_path import Folder, Way
from paddlelike.scan.paddle_names import MISSING, Problem
from paddlelike.scan.python_names import PYTHON_2_BUILTINS
from paddlelike.scan.report import Kind
from paddlelike.scan.values import (
    UNKNOWN,
    Arguments,
    Const,
    LocalClass,
    LocalFunction,
    LocalModule,
    LocalObject,
    Outside,
    PaddleName,
    PaddleObject,
    Partial,
    Value,
    Variables,
)

_KNOWN: Final[Mapping[str, Value]] = {
    "sys.version_info": Const(tuple(sys.version_info)), "sys.platform": Const(sys.platform),
    "sys.version": Const(sys.version), "os.name": Const(os.name), "six.PY2": Const(False),
    "six.PY3": Const(True),
}  # fmt: skip


_STEPS: Final = {
    "PIL.Image.ANTIALIAS": "write PIL.Image.LANCZOS",
    "string.letters": "write string.ascii_letters",
    "sys.maxint": "write sys.maxsize",
    "itertools.izip": "write zip",
    "itertools.imap": "write map",
    "itertools.ifilter": "write filter",
    "urllib.urlretrieve": "write urllib.request.urlretrieve",
    "urllib.urlopen": "write urllib.request.urlopen",
    "urllib.urlencode": "write urllib.parse.urlencode",
    "os.getcwdu": "write os.getcwd",
}


class Names(Way):
    """Looks up the values of names and attributes."""

    def _name(self, node: ast.Name, variables: Variables) -> Value:
        found = variables.find(node.id)
        if found is None and node.id in PYTHON_2_BUILTINS and not hasattr(builtins, node.id):
            step = f"write {PYTHON_2_BUILTINS[node.id]}"
            self._stop(node, node.id, "python", Problem(f"{node.id} is a name of Python 2", step, NameError))
        if found is None:
            return Outside(f"builtins.{node.id}") if hasattr(builtins, node.id) else UNKNOWN
        return found

    def _attribute(self, node: ast.expr, owner: Value, name: str) -> Value:
        match owner:
            case PaddleName():
                return self._read_paddle(node, owner, name)
            case PaddleObject():
                member = paddle_names.find_member(owner.cls, name)
                path = f"{owner.path}().{name}"
                if isinstance(member, Problem):
                    if name not in _stored_names(self._folder):
                        self._stop(node, path, "paddle", member)
                    return UNKNOWN
                if isinstance(member, type):  # of a property
                    return PaddleObject(path, member)
                return UNKNOWN if member is MISSING else PaddleName(path, member)
            case Outside():
                return self._read_outside(node, owner, name)
            case LocalModule():
                return owner.variables.names.get(name) or self._find_below(owner, name)
            case LocalObject():
                found = owner.attributes.get(name) or owner.cls.find(name)
                if isinstance(found, LocalFunction) and found.bound is None:
                    return LocalFunction(found.node, found.file, found.variables, owner)
                return found or UNKNOWN
            case LocalClass():
                return owner.find(name) or UNKNOWN
            case Arguments():
                if name in ("add_argument", "parse_args", "parse_known_args", "add_argument_group"):
                    return Partial(owner, [Const(name)], {})
                return owner.defaults.get(name, UNKNOWN)
            case Const(value=tuple() as version) if name in ("major", "minor"):  # of sys.version_info
                return Const(version[("major", "minor").index(name)])
        return UNKNOWN

    def _find_below(self, package: LocalModule, name: str) -> Value:
        """Return a module of a package that is imported already."""
        for end in (f"{name}.py", os.path.join(name, "__init__.py")):
            path = os.path.join(os.path.dirname(package.path), end)
            if path in self._taken:
                return self._folder.loaded[path].module
        return UNKNOWN

    def _read_paddle(self, node: ast.AST, owner: PaddleName, name: str, *, imported: bool = False) -> Value:
        path = f"{owner.path}.{name}"
        if owner.found is MISSING:
            return UNKNOWN
        found = paddle_names.find_attribute(owner.path, owner.found, name, imported=imported)
        if isinstance(found, Problem):
            if name not in _stored_names(self._folder):
                self._stop(node, path, "paddle", found)
            return UNKNOWN
        self._folder.uses[path] += 1
        if isinstance(found, str | int | float | bool | None):
            return Const(found)
        return PaddleName(path, found)

    def _read_outside(self, node: ast.AST, owner: Outside, name: str) -> Value:
        path = f"{owner.path}.{name}"
        if path in _KNOWN:
            return _KNOWN[path]
        problem = self._folder.python.find_problem(path)
        if problem is not None:
            kind: Kind = "package" if path.startswith(("numpy.", "scipy.", "PIL.")) else "python"
            self._stop(node, path, kind, Problem(problem, advise(path), AttributeError))
            return UNKNOWN
        return Outside(path)


def advise(path: str) -> str:
    return _STEPS.get(path, "find its name of today, or run the script with the versions of its time")


def _stored_names(folder: Folder) -> frozenset[str]:
    """Return the attributes that scripts set on any object, including objects of this package."""
    if folder.stored is None:
        folder.stored = frozenset(
            node.attr
            for source in folder.sources.values()
            if source.tree is not None
            for node in ast.walk(source.tree)
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
        )
    return folder.stored
