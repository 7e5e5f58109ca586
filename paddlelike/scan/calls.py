"""Calls in a script: of Paddle's names, of the script's own functions and classes, and of others."""

from __future__ import annotations

import ast
import inspect
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Final

from paddlelike.core import is_compiled_with_cuda
from paddlelike.scan import paddle_names
from paddlelike.scan.execution_path import ExitedError
from paddlelike.scan.expressions import Expressions, apply
from paddlelike.scan.paddle_names import MISSING, Problem
from paddlelike.scan.values import (
    UNKNOWN,
    Arguments,
    Const,
    Items,
    LocalClass,
    LocalFunction,
    LocalObject,
    Outside,
    PaddleName,
    PaddleObject,
    Partial,
    Value,
    Variables,
)

_MOST_CALLS: Final = 2000  # of functions, in one script


_DEEPEST: Final = 40


_PURE: Final = {"int": int, "float": float, "bool": bool, "str": str, "len": len}


class Calls(Expressions):
    """Follows calls."""

    @abstractmethod
    def _block(self, body: Sequence[ast.stmt], variables: Variables) -> bool:
        """Follow statements. Return whether the code behind them is unreachable."""

    def _call_node(self, node: ast.Call, variables: Variables) -> Value:
        called = self._value(node.func, variables)
        args = [self._value(one, variables) for one in node.args if not isinstance(one, ast.Starred)]
        keywords = {one.arg: self._value(one.value, variables) for one in node.keywords if one.arg}
        for one in node.args:
            if isinstance(one, ast.Starred):
                self._value(one.value, variables)
        for keyword in node.keywords:
            if keyword.arg is None:
                self._value(keyword.value, variables)
        whole = len(args) == len(node.args) and len(keywords) == len(node.keywords)
        return self._call(called, args, keywords, node, whole=whole)

    def _call(
        self, called: Value, args: list[Value], keywords: dict[str, Value], node: ast.expr, *, whole: bool
    ) -> Value:
        match called:
            case PaddleName():
                return self._call_paddle(called, args, keywords, node, whole=whole)
            case LocalFunction():
                return self._call_function(called, args, keywords)
            case LocalClass():
                return self._make_object(called, args, keywords, node)
            case Partial(function=Arguments()):
                return self._parse_arguments(called, args, keywords)
            case Partial():
                return self._call(
                    called.function, [*called.args, *args], {**called.keywords, **keywords}, node, whole=False
                )
            case Outside():
                return self._call_outside(called.path, args, keywords, node)
        self._follow_callbacks([*args, *keywords.values()])
        return UNKNOWN

    def _call_paddle(
        self,
        called: PaddleName,
        args: list[Value],
        keywords: dict[str, Value],
        node: ast.expr,
        *,
        whole: bool,
    ) -> Value:
        if called.found is MISSING or not callable(called.found):
            return UNKNOWN
        member = called.path.rpartition(".")[0].endswith("()") and not isinstance(called.found, type)
        count = len(args) + (member and inspect.isfunction(called.found))
        problem = paddle_names.find_call_problem(called.path, called.found, count, keywords, whole=whole)
        if problem is not None:
            self._stop(node, called.path, "paddle", problem)
            return UNKNOWN
        self._check_device(called, [*args, *keywords.values()], node)
        for one in (*args, *keywords.values()):
            if isinstance(one, LocalFunction):
                self._call_function(one, [], {})
        if called.path.endswith("is_compiled_with_cuda"):
            return Const(is_compiled_with_cuda())
        result = paddle_names.find_result(called.found)
        return UNKNOWN if result is None else PaddleObject(called.path, result)

    def _check_device(self, called: PaddleName, given: Sequence[Value], node: ast.expr) -> None:
        if is_compiled_with_cuda():
            return
        name = called.path.rpartition(".")[2]
        is_gpu = any(isinstance(one, PaddleObject) and one.cls.__name__ == "CUDAPlace" for one in given)
        if name in ("cuda_places", "cuda_pinned_places") or (name == "Executor" and is_gpu):
            why = "programs run on a GPU only with JAX for GPUs, which is not here"
            problem = Problem(why, "use fluid.CPUPlace()", NotImplementedError)
            self._stop(node, "CUDAPlace" if name == "Executor" else name, "device", problem)

    def _call_outside(
        self, path: str, args: list[Value], keywords: dict[str, Value], node: ast.expr
    ) -> Value:
        short = path.removeprefix("builtins.")
        first = args[0] if args else UNKNOWN
        second = args[1] if len(args) > 1 else UNKNOWN
        if short in ("getattr", "hasattr"):
            return self._call_getattr(short, args, node)
        if short in ("exec", "eval", "__import__", "importlib.import_module", "execfile"):
            if not (isinstance(first, Const) and short == "importlib.import_module"):
                self._add(
                    node,
                    short,
                    "unseen",
                    "the code that it runs is known only at run time",
                    "read it by hand",
                )
            return UNKNOWN
        if short in ("sys.exit", "os._exit", "exit", "quit"):
            if self._certain and not self._guards:
                raise ExitedError
            return UNKNOWN
        if short in ("os.getenv", "os.environ.get"):
            default = second if len(args) > 1 else keywords.get("default", Const(None))
            return Const(default.value, open=True) if isinstance(default, Const) else UNKNOWN
        if short == "argparse.ArgumentParser":
            return Arguments()
        if short == "functools.partial":
            return Partial(first, args[1:], keywords)
        if short in _PURE and len(args) == 1 and isinstance(first, Const):
            return apply(lambda one, function: function(one), first, Const(_PURE[short]))
        if short == "unittest.main":
            self._run_tests()
        self._follow_callbacks([*args, *keywords.values()])
        return UNKNOWN

    def _run_tests(self) -> None:
        """Follow the tests of the classes of the script, as ``unittest.main`` runs them."""
        classes = [one for one in self._loaded.module.variables.names.values() if isinstance(one, LocalClass)]
        for cls in classes:
            made = LocalObject(cls)
            for name in ("setUp", *(one for one in cls.variables.names if one.startswith("test"))):
                method = cls.find(name)
                if isinstance(method, LocalFunction):
                    bound = LocalFunction(method.node, method.file, method.variables, made)
                    self._call_function(bound, [], {})

    def _call_getattr(self, short: str, args: list[Value], node: ast.expr) -> Value:
        if len(args) < 2 or not isinstance(args[1], Const) or not isinstance(args[1].value, str):
            if args and isinstance(args[0], PaddleName):
                self._add(
                    node,
                    f"{args[0].path}.*",
                    "unseen",
                    "the name is known only when it runs",
                    "read it by hand",
                )
            return UNKNOWN
        name = args[1].value
        if short == "hasattr" or len(args) > 2:
            if not isinstance(args[0], PaddleName) or args[0].found is MISSING:
                return UNKNOWN
            found = paddle_names.find_attribute(args[0].path, args[0].found, name, imported=True)
            absent = isinstance(found, Problem)
            if short == "hasattr":
                return Const(not absent)
            return args[2] if absent else PaddleName(f"{args[0].path}.{name}", found)
        return self._attribute(node, args[0], name)

    def _follow_callbacks(self, given: Sequence[Value]) -> None:
        """Follow functions that are passed to an unknown function, which may call them."""
        with self._possible():
            for one in given:
                if isinstance(one, LocalFunction):
                    self._call_function(one, [], {})

    def _parse_arguments(self, called: Partial, args: list[Value], keywords: dict[str, Value]) -> Value:
        parser = called.function
        assert isinstance(parser, Arguments)
        assert isinstance(called.args[0], Const)
        if called.args[0].value == "add_argument_group":
            return parser
        if called.args[0].value != "add_argument":
            return Items((parser, UNKNOWN)) if called.args[0].value == "parse_known_args" else parser
        names = [one.value for one in args if isinstance(one, Const) and isinstance(one.value, str)]
        name = keywords.get("dest") or next((Const(one) for one in names if one.startswith("--")), None)
        if isinstance(name, Const):
            action = keywords.get("action")
            stores = {"store_true": Const(False), "store_false": Const(True)}
            default = stores.get(str(action.value)) if isinstance(action, Const) else None
            value = keywords.get("default", default or Const(None))
            key = str(name.value).lstrip("-").replace("-", "_")
            found = Const(value.value, open=True) if isinstance(value, Const) else UNKNOWN
            self._set(parser.defaults, key, found)
        return UNKNOWN

    def _make_object(
        self, cls: LocalClass, args: list[Value], keywords: dict[str, Value], node: ast.expr
    ) -> Value:
        made = LocalObject(cls)
        start = cls.find("__init__")
        for base in _list_bases(cls):
            if isinstance(base, PaddleName) and (
                start is None or type(base.found).__name__ == "_LeftOutName"
            ):
                problem = paddle_names.find_call_problem(
                    base.path, base.found, len(args), keywords, whole=False
                )
                if problem is not None:
                    self._stop(node, base.path, "paddle", problem)
        if isinstance(start, LocalFunction):
            self._call_function(LocalFunction(start.node, start.file, start.variables, made), args, keywords)
        return made

    def _call_function(self, function: LocalFunction, args: list[Value], keywords: dict[str, Value]) -> Value:
        node = function.node
        names = _bind_arguments(function, args, keywords)
        self._complete_defaults(function, names)
        key = (id(node), self._certain, tuple(sorted((name, _describe(one)) for name, one in names.items())))
        if key in self._called:
            return self._called[key]
        if len(self._called) > _MOST_CALLS or self._depth > _DEEPEST:
            return UNKNOWN
        self._called[key] = UNKNOWN
        self._loaded.entered.add(id(node))
        variables = Variables(names, function.variables)
        before = (self._file, self._returned, self._depth, self._function)
        self._file, self._returned, self._depth = function.file, [], self._depth + 1
        self._function = id(node)
        try:
            if isinstance(node, ast.Lambda):
                self._returned.append(self._value(node.body, variables))
            else:
                self._block(node.body, variables)
            returned = self._returned
        except RecursionError:  # deep nesting within deep calls: this call is left out
            returned = []
        finally:
            self._file, self._returned, self._depth, self._function = before
        if len(returned) == 1:
            self._called[key] = returned[0]
        return self._called[key]

    def _complete_defaults(self, function: LocalFunction, names: dict[str, Value]) -> None:
        arguments = function.node.args
        listed = [*arguments.posonlyargs, *arguments.args]
        pairs = list(zip(reversed(listed), reversed(arguments.defaults), strict=False))
        pairs += [
            (one, default)
            for one, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
            if default
        ]
        for one, default in pairs:
            if one.arg not in names and isinstance(default, ast.Constant):
                names[one.arg] = Const(default.value, open=not self._certain)
        for each in (*listed, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg):
            if each is not None:
                names.setdefault(each.arg, UNKNOWN)


def _bind_arguments(
    function: LocalFunction, args: list[Value], keywords: dict[str, Value]
) -> dict[str, Value]:
    arguments = function.node.args
    listed = [one.arg for one in (*arguments.posonlyargs, *arguments.args)]
    given = args if function.bound is None else [function.bound, *args]
    names = dict(zip(listed, given, strict=False))
    allowed = {*listed, *(one.arg for one in arguments.kwonlyargs)}
    return names | {name: one for name, one in keywords.items() if name in allowed}


def _describe(value: Value) -> str:
    """Return a key of the arguments, to recognize a call that was followed before."""
    if isinstance(value, LocalFunction | LocalClass | LocalObject | Arguments):
        return f"{type(value).__name__} {id(value)}"
    return repr(value) if isinstance(value, Const | PaddleName | Outside) else ""


def _list_bases(cls: LocalClass) -> Iterator[Value]:
    for base in cls.bases:
        yield base
        if isinstance(base, LocalClass):
            yield from _list_bases(base)
