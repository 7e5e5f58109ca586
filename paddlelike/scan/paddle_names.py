"""The supported names of Paddle: modules, attributes, members of objects, arguments of calls."""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
from collections.abc import Collection
from functools import cache, partial
from importlib import import_module
from types import ModuleType
from typing import Any, Final, NamedTuple

from paddlelike import import_paddle
from paddlelike.errors import LeftOutError, PaddlelikeError

_PADDLE: Final = import_paddle._Paddle("paddle")
_PADDLE_2: Final = (
    "paddlelike has the names of Paddle 1.8.5; write it with paddle.fluid, or run it by Paddle 2"
)

#: Classes of ours whose objects functions return, by the word of the annotation.
_CLASSES: Final = {
    "Block": "paddlelike.framework.graph.block",
    "Executor": "paddlelike.executor",
    "Operator": "paddlelike.framework.graph.operator",
    "Parameter": "paddlelike.framework.graph.variable",
    "Program": "paddlelike.framework.graph.program",
    "Scope": "paddlelike.core.scope",
    "Variable": "paddlelike.framework.graph.variable",
}


class Problem(NamedTuple):
    """A problem with a name of Paddle: why it stops a script, what to do, and the exception."""

    why: str
    step: str
    error: type[BaseException]


class _Missing:
    """A member about which nothing is known."""


MISSING: Final = _Missing()


def import_paddle_module(path: str) -> object | Problem:
    """Return the module that ``import path`` gives, or why there is none."""
    if path == "paddle":
        return _PADDLE
    try:
        return (
            import_module(f"paddlelike.{path.partition('.')[2]}") if _is_offered(path) else _say_absent(path)
        )
    except ModuleNotFoundError:
        return _say_absent(path)
    except ImportError as error:
        return Problem(str(error), "", ImportError)


def _is_offered(path: str) -> bool:
    return path.split(".")[1] in import_paddle._NAMES or "paddle" in sys.modules


def _say_absent(path: str) -> Problem:
    parts = path.split(".")
    later = len(parts) > 1 and parts[1] not in import_paddle._NAMES
    step = _PADDLE_2 if later else "look the name up in paddlelike/fluid/README.md"
    text = f"Paddle 1.8.5 has no module {path}" if later else f"there is no module {path}"
    return Problem(text, step, ModuleNotFoundError)


def find_attribute(path: str, owner: object, name: str, *, imported: bool = False) -> object | Problem:
    """Return the attribute of a module, class or object of ours, or why it is not there.

    ``imported``: by ``from path import name``.
    """
    if owner is _PADDLE and name in import_paddle._SWITCHES and not imported:
        return _do_nothing
    if not isinstance(owner, ModuleType | type):
        known = inspect.getattr_static(owner, name, MISSING)
        hidden = known is MISSING or isinstance(known, property)
        return MISSING if hidden else object.__getattribute__(owner, name)
    try:
        found: object = getattr(owner, name)
    except LeftOutError as error:
        return Problem(error.message, error.hint or "", LeftOutError)
    except AttributeError as error:
        if imported and isinstance(owner, ModuleType):
            below = import_paddle_module(f"{path}.{name}")
            if not isinstance(below, Problem):
                return below
        if owner is _PADDLE:
            return Problem(f"Paddle 1.8.5 has no {path}.{name}", _PADDLE_2, AttributeError)
        text = (
            str(error).replace("'paddlelike.fluid", "'paddle.fluid").replace("'paddlelike", "'paddle.fluid")
        )
        return Problem(text, "", ImportError if imported else AttributeError)
    return found


def _do_nothing(*_: object) -> None:
    """Replace ``paddle.enable_static``."""


def find_member(cls: type, name: str) -> object | Problem:
    """Return a member of the objects of a class, MISSING if nothing is known of it, or why there is none."""
    static: object = inspect.getattr_static(cls, name, MISSING)
    if isinstance(static, property):
        return _find_annotated(static.fget) or MISSING
    found: object = getattr(cls, name, MISSING)
    if isinstance(static, staticmethod):
        return partial(static.__func__)  # which takes no object first
    if found is not MISSING:
        return found
    is_message = hasattr(cls, "DESCRIPTOR")  # of protobuf, whose fields no class has
    if is_message or hasattr(cls, "__getattr__") or cls.__module__ == "builtins":
        return MISSING
    if name in _list_attributes(cls):
        return MISSING
    return Problem(f"{cls.__name__} has no attribute {name!r}", "", AttributeError)


@cache
def _list_attributes(cls: type) -> frozenset[str]:
    """Return the names that the methods of a class, and its bases, set on ``self``."""
    names: set[str] = set()
    for one in cls.__mro__:
        names |= vars(one).get("__annotations__", {}).keys()
        names |= set(vars(one).get("__slots__", ()))
        names |= {
            node.attr
            for node in ast.walk(_parse(one))
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
        }
    return frozenset(names)


def find_call_problem(
    path: str, found: object, count: int, keywords: Collection[str], *, whole: bool
) -> Problem | None:
    """Return why a call of this package fails; None if it succeeds, or if that is unknown.

    ``whole``: every argument is written out, no ``*`` or ``**``.
    """
    if type(found) is not type and isinstance(found, type) and type(found).__name__ == "_LeftOutName":
        try:
            found()
        except PaddlelikeError as error:
            return Problem(error.message, error.hint or "", LeftOutError)
    refusal = _find_refusal(found)
    if refusal is not None:
        return refusal
    try:
        signature = inspect.signature(found)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
    try:
        if whole:
            signature.bind(*[None] * count, **dict.fromkeys(keywords))
        else:
            signature.bind_partial(**dict.fromkeys(keywords))
    except TypeError as error:
        return Problem(f"{path}: {error}", f"its parameters are {signature}"[:300], TypeError)
    return None


@cache
def _find_refusal(found: object) -> Problem | None:
    """Return the error of a function or class that only raises an error of this package."""
    called = vars(found).get("__init__") if isinstance(found, type) else found
    if not inspect.isfunction(called) or called.__module__.partition(".")[0] != "paddlelike":
        return None
    tree = _parse(called)
    body = tree.body[0].body if tree.body and isinstance(tree.body[0], ast.FunctionDef) else []
    body = [one for one in body if not (isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant))]
    if not body or not isinstance(body[0], ast.Raise) or not isinstance(body[0].exc, ast.Call):
        return None
    error = called.__globals__.get(getattr(body[0].exc.func, "id", ""))
    if not isinstance(error, type) or not issubclass(error, PaddlelikeError):
        return None
    why = next((ast.unparse(one).strip("f'\"") for one in body[0].exc.args), error.__name__)
    hints = [one.value for one in body[0].exc.keywords if one.arg == "hint"]
    return Problem(why, ast.unparse(hints[0]).strip("f'\"") if hints else "", error)


def _parse(found: Any) -> ast.Module:
    """Return the source of a function or class of ours; empty where there is none."""
    try:
        return ast.parse(textwrap.dedent(inspect.getsource(found)))
    except (OSError, TypeError, SyntaxError):
        return ast.Module([], [])


def find_result(found: object) -> type | None:
    """Return the class of the result of a class or function, if it is a class of this package."""
    if isinstance(found, type):
        return found if (found.__module__ or "").startswith("paddlelike.") else None  # a message has none
    return _find_annotated(found)


def _find_annotated(function: object) -> type | None:
    """Return the class of ours that the annotation of a result names, or None."""
    text = str(getattr(function, "__annotations__", {}).get("return"))
    if text not in _CLASSES:
        return None
    found: type = getattr(import_module(_CLASSES[text]), text)
    return found
