"""The supported names of Paddle: modules, attributes, arguments of calls."""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
from collections.abc import Collection
from functools import cache
from importlib import import_module
from types import FunctionType, ModuleType
from typing import Final, NamedTuple

from paddlelike import import_paddle
from paddlelike.errors import LeftOutError, PaddlelikeError

_PADDLE: Final = import_paddle._Paddle("paddle")
_PADDLE_2: Final = (
    "paddlelike has the names of Paddle 1.8.5; write it with paddle.fluid, or run it by Paddle 2"
)


class Problem(NamedTuple):
    """A problem with a name of Paddle: why it stops a script, what to do, and the exception."""

    why: str
    step: str
    error: type[BaseException] | None


class _Missing:
    """An attribute about which nothing is known."""


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
    """Return the attribute of a module, class or object of this package, or why it is missing.

    ``imported`` says that it is imported by ``from path import name``.
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


def find_call_problem(
    path: str, found: object, count: int, keywords: Collection[str | None], *, whole: bool
) -> Problem | None:
    """Return why a call of this package fails; None if it succeeds, or if that is unknown.

    ``whole`` says that every argument is written out, without ``*`` and ``**``.
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
    named = dict.fromkeys(one for one in keywords if one is not None)
    try:
        if whole:
            signature.bind(*[None] * count, **named)
        else:
            signature.bind_partial(**named)
    except TypeError as error:
        return Problem(f"{path}: {error}", f"its parameters are {signature}"[:300], TypeError)
    return None


@cache
def _find_refusal(found: object) -> Problem | None:
    """Return the error of a function or class that only raises an error of this package."""
    called = vars(found).get("__init__") if isinstance(found, type) else found
    if not inspect.isfunction(called) or called.__module__.partition(".")[0] != "paddlelike":
        return None
    match [one for one in _parse(called) if not isinstance(one, ast.Expr)]:
        case [ast.Raise(exc=ast.Call(func=ast.Name(id=name), args=[why, *_], keywords=keywords)), *_]:
            hints = [ast.unparse(one.value).strip("f'\"") for one in keywords if one.arg == "hint"]
            return Problem(ast.unparse(why).strip("f'\""), "".join(hints), called.__globals__[name])
    return None


def _parse(function: FunctionType) -> list[ast.stmt]:
    """Return the statements of a function, or none if its source is not available."""
    try:
        (tree,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    except (OSError, SyntaxError, ValueError):
        return []
    return tree.body if isinstance(tree, ast.FunctionDef) else []
