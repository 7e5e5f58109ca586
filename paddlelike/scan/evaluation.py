"""Follows a script from its first line, as Python would, without running it.

Statements are evaluated in their order on what is known of values (``values.py``): functions where they are
called, modules of the folder where they are imported, branches whose test is known alone. What stops the
script is certain on this way, and possible in a branch or a function that this way does not reach.
"""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Sequence
from contextlib import suppress

from paddlelike.scan import paddle_names
from paddlelike.scan.calls import Calls
from paddlelike.scan.execution_path import (
    CaughtError,
    ExitedError,
    Folder,
    Followed,
    Found,
    Guard,
    Imported,
    Loaded,
)
from paddlelike.scan.names import advise
from paddlelike.scan.paddle_names import MISSING, Problem
from paddlelike.scan.python_names import PYTHON_2_MODULES
from paddlelike.scan.report import ScriptFinding
from paddlelike.scan.sources import is_installed
from paddlelike.scan.values import (
    UNKNOWN,
    Arguments,
    Const,
    Items,
    LocalClass,
    LocalFunction,
    LocalModule,
    LocalObject,
    Outside,
    PaddleName,
    PaddleObject,
    Value,
    Variables,
    merge,
)

__all__ = ["follow_script"]


def follow_script(folder: Folder, path: str) -> list[ScriptFinding]:
    """Follow the script of a path, then every function that it does not call; return what was found."""
    own = _follow(folder, path)
    found = {place: finding for place, (finding, _) in own.found.items()}
    for module in own.modules:
        for place, finding, function in _follow(folder, module).inner:
            if function not in own.entered:
                found.setdefault(place, finding)
    return list(found.values())


class Evaluation(Calls):
    """One script or module, followed as if it were run."""

    def follow(self, path: str) -> Followed:
        """Follow the script of a path, then those of its own functions that it does not call."""
        self._run(path)
        with self._possible():
            for _ in range(3):  # functions within functions come up as these are followed
                functions = [one for one in self._functions.values() if one.file == path]
                for function in [one for one in functions if id(one.node) not in self._loaded.entered]:
                    with suppress(ExitedError):
                        self._call_function(function, [], {})
        self._restore()
        modules = tuple(one for one in self._taken if one != path and one in self._folder.sources)
        inner = [
            (place, finding._replace(certain=False), function)
            for place, (finding, function) in self._found.items()
            if function and place[0] == path
        ]
        entered = self._loaded.entered.union(*(self._folder.loaded[one].entered for one in self._taken))
        return Followed(self._found, inner, frozenset(entered), modules)

    def _run(self, path: str) -> None:
        """Follow the statements of a script or module."""
        source = self._folder.sources.get(path)
        if source is None:
            return
        self._file = path
        try:
            if source.tree is None:
                self._stop(
                    ast.Pass(lineno=source.line), os.path.basename(path), "python",
                    Problem(source.problem, "convert it to Python 3, by 2to3 or futurize", SyntaxError),
                )  # fmt: skip
            else:
                self._block(source.tree.body, self._loaded.module.variables)
        except ExitedError:
            self._loaded.exits = True

    def _load(self, path: str, name: str) -> LocalModule:
        """Return a module of the folder."""
        loaded = self._folder.loaded.get(path)
        if loaded is None:
            loaded = self._folder.loaded[path] = _make_loaded(path, name)
            Evaluation(self._folder, loaded)._run(path)
        if self._certain > self._taken.get(path, -1):
            self._loaded.steps.append(Imported(self._certain, tuple(self._guards), loaded))
            self._take(loaded)
        return loaded.module

    def _import(self, node: ast.stmt, name: str, level: int = 0) -> Value:
        """Return the module of that name."""
        root = name.partition(".")[0]
        if root == "paddle" and not level:
            path = "paddle"
            for part in ["", *name.split(".")[1:]]:
                path = f"{path}.{part}" if part else path
                module = paddle_names.import_paddle_module(path)
                if isinstance(module, Problem):
                    self._stop(node, path, "paddle", module)
                    return UNKNOWN
            self._folder.uses[name] += 1
            return PaddleName(name, module)
        file = self._folder.find_module(name, level, self._file)
        if file is not None and (level or root not in sys.stdlib_module_names):
            for package in self._folder.list_packages(name, level, file):  # they run first
                self._load(package, root)
            return self._load(file, name)
        if level:
            return UNKNOWN
        if root in PYTHON_2_MODULES:
            step = f"Python 3 has it in {PYTHON_2_MODULES[root]}"
            self._stop(
                node, name, "python", Problem(f"{name} is a module of Python 2", step, ModuleNotFoundError)
            )
            return UNKNOWN
        self._note_package(node, root)
        problem = self._folder.python.find_problem(name)
        if problem is not None:
            self._stop(node, name, "python", Problem(problem, advise(name), ModuleNotFoundError))
            return UNKNOWN
        return Outside(name)

    def _note_package(self, node: ast.stmt, root: str) -> None:
        """Record a third-party package, which may or may not be installed."""
        if root not in sys.stdlib_module_names:
            self._folder.packages.setdefault(root, set()).add(self._file)
            if not is_installed(root):
                place = (self._file, node.lineno, root)
                self._loaded.steps.append(Found(self._certain, ModuleNotFoundError, place, None, 0))
                self._is_caught(ModuleNotFoundError)

    def _block(self, body: Sequence[ast.stmt], variables: Variables) -> bool:
        """Follow statements. Return whether the code behind them is unreachable."""
        return any(self._statement(statement, variables) for statement in body)

    def _statement(self, node: ast.stmt, variables: Variables) -> bool:
        match node:  # the most frequent first
            case ast.Expr():
                self._value(node.value, variables)
            case ast.Assign():
                found = self._value(node.value, variables)
                for target in node.targets:
                    self._bind(target, found, variables)
            case ast.If():
                return self._branch(node, variables)
            case ast.Return():
                self._returned.append(UNKNOWN if node.value is None else self._value(node.value, variables))
                return True
            case ast.For() | ast.AsyncFor():
                self._value(node.iter, variables)
                self._bind(node.target, UNKNOWN, variables)
                self._block(node.body, variables)
                self._block(node.orelse, variables)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                function = self._make_function(node, variables)
                for decorator in reversed(node.decorator_list):
                    self._call(self._value(decorator, variables), [function], {}, decorator, whole=False)
                variables.names[node.name] = function
            case ast.ImportFrom():
                self._import_from(node, variables)
            case ast.Import():
                for alias in node.names:
                    found = self._import(node, alias.name)
                    if alias.asname is None and "." in alias.name:
                        found = self._find_root(alias.name, found, variables)
                    variables.names[alias.asname or alias.name.partition(".")[0]] = found
            case ast.ClassDef():
                self._define_class(node, variables)
            case ast.While():
                test = self._value(node.test, variables)
                if isinstance(test, Const) and not test.value and not test.open:
                    return self._block(node.orelse, variables)
                self._block(node.body, variables)
                self._block(node.orelse, variables)
            case ast.Try() | ast.TryStar():
                return self._try(node, variables)
            case ast.With() | ast.AsyncWith():
                for item in node.items:
                    entered = self._value(item.context_expr, variables)
                    if item.optional_vars is not None:
                        self._bind(
                            item.optional_vars,
                            UNKNOWN if isinstance(entered, PaddleObject) else entered,
                            variables,
                        )
                return self._block(node.body, variables)
            case ast.Raise():
                if node.exc is not None:
                    self._value(node.exc, variables)
                return True
            case ast.Break() | ast.Continue():
                return True
            case ast.AnnAssign():
                if node.value is not None:
                    self._bind(node.target, self._value(node.value, variables), variables)
            case ast.AugAssign():
                self._value(node.value, variables)
                self._bind(node.target, UNKNOWN, variables)
            case ast.Global() | ast.Nonlocal():
                for name in node.names:
                    variables.names.setdefault(name, UNKNOWN)
            case _:
                for child in ast.iter_child_nodes(node):
                    if isinstance(child, ast.expr):
                        self._value(child, variables)
        return False

    def _find_root(self, name: str, found: Value, variables: Variables) -> Value:
        """Return what ``import a.b`` binds to ``a``."""
        root = name.partition(".")[0]
        if isinstance(found, PaddleName):
            return PaddleName(root, paddle_names.import_paddle_module(root))
        return Outside(root) if isinstance(found, Outside) else UNKNOWN

    def _import_from(self, node: ast.ImportFrom, variables: Variables) -> None:
        module = self._import(node, node.module or "", node.level)
        for alias in node.names:
            if alias.name == "*":
                variables.names |= self._list_all(module)
                continue
            if isinstance(module, PaddleName):
                found = self._read_paddle(node, module, alias.name, imported=True)
            elif isinstance(module, LocalModule):
                found = module.variables.names.get(alias.name, UNKNOWN)
                if alias.name not in module.variables.names:
                    name = f"{node.module}.{alias.name}" if node.module else alias.name
                    file = self._folder.find_module(name, node.level, self._file)
                    found = UNKNOWN if file is None else self._load(file, name)
            elif isinstance(module, Outside):
                found = self._read_outside(node, module, alias.name)
            else:
                found = UNKNOWN
            variables.names[alias.asname or alias.name] = found

    def _list_all(self, module: Value) -> dict[str, Value]:
        if isinstance(module, LocalModule):
            return {name: one for name, one in module.variables.names.items() if not name.startswith("_")}
        if isinstance(module, PaddleName):
            names = getattr(module.found, "__all__", ())
            return {
                name: PaddleName(f"{module.path}.{name}", getattr(module.found, name, MISSING))
                for name in names
            }
        return {}

    def _make_function(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, variables: Variables
    ) -> LocalFunction:
        for default in [*node.args.defaults, *node.args.kw_defaults]:
            if default is not None:
                self._value(default, variables)
        outer = variables
        while isinstance(outer, _ClassVariables) and outer.parent is not None:  # methods do not see these
            outer = outer.parent
        function = LocalFunction(node, self._file, outer)
        return (
            self._functions.setdefault(id(node), function) if not isinstance(node, ast.Lambda) else function
        )

    def _define_class(self, node: ast.ClassDef, variables: Variables) -> None:
        bases = tuple(self._value(base, variables) for base in node.bases)
        for keyword in node.keywords:
            self._value(keyword.value, variables)
        cls = LocalClass(node, self._file, _ClassVariables({}, variables), bases)
        variables.names[node.name] = cls
        self._block(node.body, cls.variables)
        for decorator in node.decorator_list:
            self._call(self._value(decorator, variables), [UNKNOWN], {}, decorator, whole=False)

    def _branch(self, node: ast.If, variables: Variables) -> bool:
        test = self._value(node.test, variables)
        if isinstance(test, Const):
            taken, other = (node.body, node.orelse) if test.value else (node.orelse, node.body)
            if test.open and other:
                kept = dict(variables.names)
                with self._possible():
                    self._block(other, variables)
                possible, variables.names = variables.names, kept
                ended = self._block(taken, variables)
                variables.names |= {k: v for k, v in possible.items() if k not in variables.names}
                return ended
            return self._block(taken, variables)
        kept = dict(variables.names)
        with self._possible():
            first = self._block(node.body, variables)
            after, variables.names = variables.names, dict(kept)
            second = self._block(node.orelse, variables)
        if first != second:
            variables.names = variables.names if first else after
        else:
            variables.names = merge(after, variables.names)
        return first and second

    def _try(self, node: ast.Try | ast.TryStar, variables: Variables) -> bool:
        types = [one.type for one in node.handlers]
        names = [name for type_ in types if type_ is not None for name in _list_exceptions(type_)]
        guard = Guard(None if None in types else tuple(names))
        depth = len(self._guards)
        self._guards.append(guard)
        ended, caught = False, False
        depth_of_calls, file = self._depth, self._file
        try:
            ended = self._block(node.body, variables)
        except CaughtError as one:
            if one.guard is not guard:
                raise
            caught, self._depth, self._file = True, depth_of_calls, file
        finally:
            del self._guards[depth:]
        if not caught and not ended:
            ended = self._block(node.orelse, variables)
        for handler in node.handlers if caught or not _imports_what_is_there(node.body) else ():
            if handler.name:
                variables.names[handler.name] = UNKNOWN
            if caught:
                ended = self._block(handler.body, variables)
                break
            kept = dict(variables.names)
            with self._possible():
                self._block(handler.body, variables)
            variables.names = {**variables.names, **kept}
        return self._block(node.finalbody, variables) or ended

    def _bind(self, target: ast.expr, found: Value, variables: Variables) -> None:
        match target:
            case ast.Name():
                variables.names[target.id] = found
            case ast.Tuple() | ast.List():
                items = found.items if isinstance(found, Items) else ()
                known = len(items) == len(target.elts)
                for index, one in enumerate(target.elts):
                    self._bind(one, items[index] if known else UNKNOWN, variables)
            case ast.Starred():
                self._bind(target.value, UNKNOWN, variables)
            case ast.Attribute():
                owner = self._value(target.value, variables)
                if isinstance(owner, LocalObject):
                    self._set(owner.attributes, target.attr, found)
                elif isinstance(owner, Arguments):
                    self._set(owner.defaults, target.attr, found)
            case ast.Subscript():
                self._value(target.value, variables)
                self._value(target.slice, variables)


def _follow(folder: Folder, path: str) -> Followed:
    """Return the result of following the script of a path, once in a folder."""
    if path not in folder.followed:
        folder.followed[path] = Evaluation(folder, _make_loaded(path, "__main__")).follow(path)
    return folder.followed[path]


def _make_loaded(path: str, name: str) -> Loaded:
    return Loaded(LocalModule(path, Variables({"__name__": Const(name), "__file__": UNKNOWN})))


class _ClassVariables(Variables):
    """The variables of a class, which are invisible in its methods."""


def _imports_what_is_there(body: Sequence[ast.stmt]) -> bool:
    """Return whether statements import only from Python and Paddle, where missing names are reported."""
    names: list[str] = []
    for one in body:
        match one:
            case ast.Import():
                names += [alias.name for alias in one.names]
            case ast.ImportFrom(level=0):
                names.append(one.module or "")
            case _:
                return False
    return all(name.partition(".")[0] in {*sys.stdlib_module_names, "paddle"} for name in names)


def _list_exceptions(node: ast.expr) -> list[str]:
    return [
        one.id if isinstance(one, ast.Name) else one.attr
        for one in ast.walk(node)
        if isinstance(one, ast.Name | ast.Attribute)
    ]
