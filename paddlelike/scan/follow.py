"""Follows a script from its first line, through the functions it calls and the modules it imports.

Names are followed, values are not. Every module, class and function is followed once, whatever its arguments;
its findings are passed to all its callers and importers. A branch is decided if its test compares constants
(versions, ``hasattr`` of a name of Paddle). Code below any other test, and functions that are never called,
may run: their findings are only possible. A ``try`` that catches an error leads to its handler.
"""

from __future__ import annotations

import ast
import operator
import os
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import field
from types import MappingProxyType
from typing import Any, Final

from paddlelike.core import is_compiled_with_cuda
from paddlelike.lazy import dataclass
from paddlelike.scan import paddle_names
from paddlelike.scan.paddle_names import MISSING, Problem
from paddlelike.scan.python_names import PYTHON_2_MODULES, advise
from paddlelike.scan.report import ScriptFinding
from paddlelike.scan.sources import find_module, is_installed
from paddlelike.scan.units import (
    CERTAIN,
    HANDLED,
    POSSIBLE,
    UNKNOWN,
    CaughtError,
    Constant,
    ExitedError,
    Facts,
    Outside,
    PaddleName,
    Place,
    Unit,
)

_COMPARE: Final[Mapping[type, Callable[[Any, Any], object]]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le,
    ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Is: operator.is_, ast.IsNot: operator.is_not,
}  # fmt: skip
_UNSEEN: Final = Problem("the name, or the code, is known only at run time", "read it by hand", None)
_FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


@dataclass
class Folder(Facts):
    """The scripts of a folder: each unit is followed once for all of them."""

    modules: dict[str, _Path] = field(default_factory=dict)
    located: dict[tuple[str, int, str], str | None] = field(default_factory=dict)
    own: dict[str, dict[Place, int]] = field(default_factory=dict)

    def follow_script(self, path: str) -> list[ScriptFinding]:
        """Return the findings of a script that is run, then those in functions that it does not call."""
        script, module = _Path(self, None, path), self.load(path)
        with suppress(ExitedError):
            for one in (module, *(part for part in module.parts if part.is_a(ast.If))):
                script.enter(one)
        found, imports = script.found, {path: CERTAIN}
        queue = [path]
        for file in queue:
            module = self.load(file)
            for place, rank in self._list_own(module, whole=file == path).items():
                if (
                    imports[file] == rank == CERTAIN
                ):  # in a circle, units that were not followed to the end before
                    found[place] = CERTAIN
                found.setdefault(place, POSSIBLE)
            for other, rank in module.imports.items():
                if min(rank, imports[file]) > imports.get(other, HANDLED):
                    imports[other] = min(rank, imports[file])
                    queue.append(other)
        stops = ((self.findings[place][0], rank) for place, rank in found.items() if rank)
        return [one._replace(certain=rank == CERTAIN) for one, rank in stops if one is not None]

    def _list_own(self, module: Unit, *, whole: bool) -> dict[Place, int]:
        """Return the findings in a module and, as possible ones, in its functions.

        ``whole`` includes what these call and import.
        """
        if module.file in self.own and not whole:
            return self.own[module.file]
        parts = (part.follow() for part in module.parts)  # functions within functions come up meanwhile
        found = {place: POSSIBLE for one in parts for place, rank in one.found.items() if rank}
        found.update((place, rank) for place, rank in module.found.items() if rank)
        self.own[module.file] = {place: rank for place, rank in found.items() if place[0] == module.file}
        return found if whole else self.own[module.file]

    def load(self, path: str) -> Unit:
        """Return a module, followed."""
        if path not in self.modules:
            self.modules[path] = _Path(self, self.read(path).tree, path)
        return self.modules[path].follow()

    def find_module(self, name: str, level: int, file: str) -> str | None:
        """Return the file of a module that a script imports, or None if the folder lacks it."""
        key = (name, level, os.path.dirname(file))
        if key not in self.located:
            self.located[key] = find_module(name, level, file, self.scripts, self.root)
        return self.located[key]


@dataclass(eq=False)
class _Path(Unit):
    """The way of a run through the statements of a unit."""

    folder: Folder

    def _run(self) -> None:
        if self.node is None:
            source = self.folder.read(self.file)
            problem = Problem(source.problem, "convert it to Python 3, by 2to3 or futurize", SyntaxError)
            self._stop(ast.Pass(lineno=source.line), os.path.basename(self.file), "python", problem)
        elif self.is_a(ast.Lambda):
            self._value(self.node.body)
        else:
            self._block(self.node.body)

    def _block(self, body: Sequence[ast.stmt]) -> bool:
        """Follow statements. Return whether the code after them is unreachable."""
        return any(self._statement(one) for one in body)

    def _statement(self, node: ast.stmt) -> bool:
        match node:
            case ast.Assign([ast.Tuple(targets)], ast.Tuple(values)) if len(targets) == len(
                values
            ) and not any(isinstance(one, ast.Starred) for one in (*targets, *values)):
                for target, found in zip(targets, [self._value(one) for one in values], strict=True):
                    self._bind(target, found)
            case ast.Assign():
                found = self._value(node.value)
                for target in node.targets:
                    self._bind(target, found)
            case ast.AnnAssign(value=ast.expr() as value):
                self._bind(node.target, self._value(value))
            case ast.AugAssign():
                self._value(node.value)
                self._bind(node.target, UNKNOWN)
            case ast.If():
                return self._branch(node)
            case ast.Match():
                self._value(node.subject)
                return self._either(*(one.body for one in node.cases), [])
            case ast.For() | ast.AsyncFor() | ast.While():
                test = self._value(node.test if isinstance(node, ast.While) else node.iter)
                if not isinstance(node, ast.While):
                    self._bind(node.target, UNKNOWN)
                if test == Constant(False) or test == Constant(0):
                    return self._block(node.orelse)
                self._block([*node.body, *node.orelse])
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                self.names[node.name] = unit = self._define(node)
                for decorator in reversed(node.decorator_list):
                    self._call(decorator, self._value(decorator), [unit])
            case ast.Import():
                for alias in node.names:
                    found, root = self._import(node, alias.name), alias.name.partition(".")[0]
                    if alias.asname is None and root != alias.name:
                        found = self._import(node, root)
                    self.names[alias.asname or root] = found
            case ast.ImportFrom():
                module = self._import(node, node.module or "", node.level)
                for alias in node.names:
                    self._import_name(node, module, alias)
            case ast.Try() | ast.TryStar():
                return self._try(node)
            case ast.With() | ast.AsyncWith():
                for item in node.items:
                    found = self._value(item.context_expr)
                    if item.optional_vars is not None:
                        self._bind(item.optional_vars, UNKNOWN)
                return self._block(node.body)
            case ast.Global() | ast.Nonlocal():
                for name in node.names:
                    self.names.setdefault(name, UNKNOWN)
            case _:
                self._parts(node)
        return isinstance(node, ast.Return | ast.Raise | ast.Break | ast.Continue)

    def _branch(self, node: ast.If) -> bool:
        match node.test:
            case ast.Compare(left=ast.Name(id="__name__")) if self.is_a(ast.Module):
                self.parts.append(_Path(self.folder, node, self.file, self.scope))
                return self._either(node.orelse, [])
        test = self._value(node.test)
        if isinstance(test, Constant):
            return self._block(node.body if test.value else node.orelse)
        return self._either(node.body, node.orelse)

    def _either(self, *blocks: Sequence[ast.stmt]) -> bool:
        """Follow several blocks; one of them runs. Return whether the code after them is unreachable."""
        names, after = self.names, []
        before = dict(names)
        with self._possible():
            for block in blocks:
                names.clear()
                names.update(before)
                if not self._block(block):
                    after.append(dict(names))
        for name in {name: None for each in after for name in each}:
            values = [each[name] for each in after if each.get(name, UNKNOWN) is not UNKNOWN]
            same = all(one == values[0] or isinstance(one, Unit) for one in values)
            names[name] = values[0] if values and same else UNKNOWN
        return not after

    def _try(self, node: ast.Try | ast.TryStar) -> bool:
        handlers = [one for one in node.handlers if not isinstance(one.body[-1], ast.Raise)]
        types = [one.type for one in handlers]
        listed = [part for one in types if one is not None for part in ast.walk(one)]
        names = {str(getattr(part, "id", getattr(part, "attr", ""))) for part in listed}
        guard = CaughtError(None if None in types else names)
        depth = len(self.guards)
        self.guards.append(guard)
        ended, caught = False, False
        try:
            ended = self._block(node.body)
        except CaughtError as one:
            if one is not guard:
                raise
            caught = True
        finally:
            del self.guards[depth:]
        for handler in node.handlers:
            self.names.setdefault(handler.name or "", UNKNOWN)
        if caught:
            ended = self._block(handlers[0].body)
        else:
            kept = dict(self.names)
            if not all(isinstance(one, ast.Import | ast.ImportFrom) for one in node.body):
                self._either(*(one.body for one in node.handlers))
                self.names.update(kept)
            ended = ended or self._block(node.orelse)
        return self._block(node.finalbody) or ended

    def _bind(self, target: ast.expr, found: object) -> None:
        match target:
            case ast.Name():
                self.names[target.id] = found
            case ast.Tuple() | ast.List():
                for one in target.elts:
                    self._bind(one, UNKNOWN)
            case ast.Starred():
                self._bind(target.value, UNKNOWN)
            case _:
                self._parts(target)

    def _define(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef) -> Unit:
        scope = (
            self.scope.parents if self.is_a(ast.ClassDef) else self.scope
        )  # methods do not see the names of a class
        unit = _Path(self.folder, node, self.file, scope.new_child())
        if isinstance(node, ast.ClassDef):
            unit.bases = [self._value(one) for one in [*node.bases, *(one.value for one in node.keywords)]]
            self.enter(unit)
            return unit
        for default in [*node.args.defaults, *node.args.kw_defaults]:
            if default is not None:
                self._value(default)
        names = [one.arg for one in ast.walk(node.args) if isinstance(one, ast.arg)]
        unit.names.update(dict.fromkeys(names, UNKNOWN))
        if isinstance(node, ast.Lambda):
            return unit
        if self.is_a(ast.ClassDef) and names and not node.decorator_list:
            unit.names[names[0]] = self
        self.folder.modules[self.file].parts.append(unit)
        return unit

    def _import(self, node: ast.stmt, name: str, level: int = 0) -> object:
        """Return the module of that name."""
        root, folder = name.partition(".")[0], self.folder
        if root == "paddle" and not level:
            path = ""
            for part in name.split("."):
                path = f"{path}.{part}" if path else part
                module = paddle_names.import_paddle_module(path)
                if isinstance(module, Problem):
                    self._stop(node, path, "paddle", module)
                    return UNKNOWN
            folder.uses[name] += 1
            return PaddleName(name, module)
        file = folder.find_module(name, level, self.file)
        if file is not None and (level or root not in sys.stdlib_module_names):
            return self._load(file, 99 if level else name.count("."))
        if level:
            return UNKNOWN
        step = advise(name)
        problem = folder.python.find_problem(name)
        if root in PYTHON_2_MODULES:
            problem, step = f"{name} is a module of Python 2", f"Python 3 has it in {PYTHON_2_MODULES[root]}"
        elif root not in sys.stdlib_module_names:
            folder.packages.add(root)
            if not is_installed(root):
                place = (self.file, node.lineno, root)
                folder.findings[place] = (None, ModuleNotFoundError)
                self._meet(place, CERTAIN)
        if problem is not None:
            self._stop(node, name, "python", Problem(problem, step, ModuleNotFoundError))
            return UNKNOWN
        return Outside(name)

    def _load(self, file: str, packages: int) -> object:
        """Return a module of the folder; an import runs the files of its packages first."""
        folder = os.path.dirname(file)
        if os.path.basename(file) == "__init__.py":
            folder = os.path.dirname(folder)
        above = os.path.join(folder, "__init__.py")
        if packages and above in self.folder.scripts:
            self._load(above, packages - 1)
        if file not in self.folder.scripts:  # a folder
            return UNKNOWN
        certain = self.is_certain and not self.guards and self.is_a(ast.Module)
        imports = self.folder.modules[self.file].imports
        imports[file] = max(imports.get(file, POSSIBLE), CERTAIN if certain else POSSIBLE)
        module = self.folder.load(file)
        self.enter(module)
        return module

    def _import_name(self, node: ast.ImportFrom, module: object, alias: ast.alias) -> None:
        """Bind a name by ``from module import name``."""
        name, found = alias.name, UNKNOWN
        match module:
            case Unit() if name == "*":
                names = module.names.items()
                self.names.update({name: one for name, one in names if not name.startswith("_")})
            case PaddleName() if name == "*":
                for one in getattr(module.found, "__all__", ()):
                    path = f"{module.path}.{one}"
                    self.names[one] = PaddleName(path, getattr(module.found, one, MISSING))
            case PaddleName():
                found = self._read_paddle(node, module, name, imported=True)
            case Outside() if name != "*":
                found = self._read_outside(node, module, name)
            case _ if name != "*":
                found = module.names.get(name) if isinstance(module, Unit) else None
                if found is None:
                    path = f"{node.module}.{name}" if node.module else name
                    file = self.folder.find_module(path, node.level, self.file)
                    found = UNKNOWN if file is None else self._load(file, 1)
        if name != "*":
            self.names[alias.asname or name] = found

    def _value(self, node: ast.expr) -> object:
        match node:
            case ast.Constant():
                return Constant(node.value)
            case ast.Name():
                return self._read_name(node)
            case ast.Attribute():
                return self._attribute(node, self._value(node.value), node.attr)
            case ast.Call():
                args = [self._value(one) for one in node.args]
                keywords = {one.arg: self._value(one.value) for one in node.keywords}
                whole = None not in keywords and not any(isinstance(one, ast.Starred) for one in node.args)
                return self._call(node, self._value(node.func), args, keywords, whole=whole)
            case ast.Lambda():
                return self._define(node)
            case ast.IfExp():
                test = self._value(node.test)
                if isinstance(test, Constant):
                    return self._value(node.body if test.value else node.orelse)
                with self._possible():
                    one, other = self._value(node.body), self._value(node.orelse)
                return one if one == other else UNKNOWN
            case ast.BoolOp(values=[first, *rest]):
                found = self._value(first)
                for one in rest:
                    if not isinstance(found, Constant):
                        with self._possible():
                            self._value(one)
                    elif bool(found.value) != isinstance(node.op, ast.Or):
                        found = self._value(one)
                return found
            case ast.UnaryOp(op=ast.Not()):
                return _compute(lambda one, _: not one, self._value(node.operand), Constant(None))
            case ast.Compare(ops=[op], comparators=[other]) if type(op) in _COMPARE:
                return _compute(_COMPARE[type(op)], self._value(node.left), self._value(other))
            case ast.Subscript():
                return _compute(operator.getitem, self._value(node.value), self._value(node.slice))
            case ast.NamedExpr():
                found = self._value(node.value)
                self._bind(node.target, found)
                return found
        self._parts(node)
        return UNKNOWN

    def _parts(self, node: ast.AST) -> None:
        """Follow the expressions below a node."""
        for each in getattr(node, "generators", ()):
            self._bind(each.target, UNKNOWN)
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self._value(child)
            elif not isinstance(child, ast.stmt):
                self._parts(child)

    def _call(
        self,
        node: ast.expr,
        called: object,
        args: Sequence[object],
        keywords: Mapping[str | None, object] = MappingProxyType({}),
        *,
        whole: bool = False,
    ) -> object:
        result: object = UNKNOWN
        match called:
            case Unit() if called.is_a(ast.ClassDef):
                return self._make(node, called)
            case Unit() if called.is_a(*_FUNCTIONS):
                self.enter(called)
                return UNKNOWN
            case PaddleName():
                result = self._call_paddle(node, called, len(args), keywords, whole=whole)
            case Outside():
                result = self._call_outside(node, called.path, args)
        functions = [
            one for one in (*args, *keywords.values()) if isinstance(one, Unit) and one.is_a(*_FUNCTIONS)
        ]
        with nullcontext() if isinstance(called, PaddleName) else self._possible():
            for one in functions:  # which the called may call
                self.enter(one)
        return result

    def _call_paddle(
        self,
        node: ast.expr,
        called: PaddleName,
        count: int,
        keywords: Collection[str | None],
        *,
        whole: bool,
    ) -> object:
        path, found = called.path, called.found
        if found is MISSING or not callable(found):
            return UNKNOWN
        problem = paddle_names.find_call_problem(path, found, count, keywords, whole=whole)
        name = path.rpartition(".")[2]
        if problem is not None:
            self._stop(node, path, "paddle", problem)
            return UNKNOWN
        if name in ("CUDAPlace", "cuda_places", "cuda_pinned_places") and not is_compiled_with_cuda():
            why = "programs run on a GPU only with JAX for GPUs, which is not here"
            self._stop(node, name, "device", Problem(why, "use fluid.CPUPlace()", NotImplementedError))
        if name == "is_compiled_with_cuda":
            return Constant(is_compiled_with_cuda())
        return UNKNOWN

    def _make(self, node: ast.expr, cls: Unit) -> object:
        """Follow the start of an object of a script's class."""
        for base in cls.list_bases():
            if isinstance(base, PaddleName):
                self._call_paddle(node, base, 0, (), whole=False)
        start = cls.find("__init__")
        if isinstance(start, Unit):
            self.enter(start)
        return cls

    def _call_outside(self, node: ast.expr, path: str, args: Sequence[object]) -> object:
        match path, args:
            case (("sys.exit" | "os._exit" | "exit" | "quit"), _) if self.is_certain and not self.guards:
                raise ExitedError
            case "importlib.import_module", [Constant(), *_]:
                pass
            case (("exec" | "eval" | "__import__" | "importlib.import_module"), _):
                self._stop(node, path, "unseen", _UNSEEN)
            case (("getattr" | "hasattr"), [PaddleName() as owner, Constant(value=str() as name), *rest]):
                if path == "getattr" and not rest:
                    return self._attribute(node, owner, name)
                found = paddle_names.find_attribute(owner.path, owner.found, name, imported=True)
                is_there = owner.found is not MISSING and not isinstance(found, Problem)
                if path == "hasattr":
                    return Constant(is_there)
                return PaddleName(f"{owner.path}.{name}", found) if is_there else rest[0]
            case (("getattr" | "hasattr"), [PaddleName() as owner, *_]):
                self._stop(node, f"{owner.path}.*", "unseen", _UNSEEN)
        return UNKNOWN


def _compute(function: Callable[[Any, Any], object], one: object, other: object) -> object:
    if not isinstance(one, Constant) or not isinstance(other, Constant):
        return UNKNOWN
    try:
        return Constant(function(one.value, other.value))
    except Exception:  # the script would raise it
        return UNKNOWN
