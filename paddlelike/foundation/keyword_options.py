"""Keyword arguments: options of several functions, declared once, and suggestions for misspelt keywords."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, Self, TypeVar

from paddlelike.foundation.docstrings import complete_docstring, read_entries
from paddlelike.foundation.near_names import suggest_names

F = TypeVar("F", bound=Callable[..., object])


class KeywordOptions:
    """Base class of dataclasses whose fields are the options."""

    @classmethod
    def from_keywords(cls, given: Mapping[str, Any], function: str) -> Self:
        """Return the options given to ``function`` as keyword arguments.

        Raises
        ------
        TypeError
            A keyword is not an option; the message names near ones.
        ValueError
            An option has a value outside its choices.
        """
        names = [field.name for field in fields(cls)]  # type: ignore[arg-type]  # of the dataclass below
        for name in given:
            if name not in names:
                near = suggest_names(name, names) or f"the options are {', '.join(names)}"
                raise TypeError(f"{function}() got an unexpected keyword argument {name!r}; {near}")
        return cls(**given)


def show_options(options: type[KeywordOptions]) -> Callable[[F], F]:
    """Return a decorator that shows the options in place of ``**options``, in ``help`` and in the signature.

    >>> from paddlelike.lazy import dataclass
    >>> @dataclass(frozen=True, kw_only=True)
    ... class Options(KeywordOptions):
    ...     strict: bool = True
    >>> @show_options(Options)
    ... def load(path: str, **options: bool) -> None: ...
    >>> list(inspect.signature(load).parameters)
    ['path', 'strict']
    """

    def show(function: F) -> F:
        signature = inspect.signature(function)
        own = [each for each in signature.parameters.values() if each.kind is not each.VAR_KEYWORD]
        shown = [
            inspect.Parameter(
                field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=field.type
            )
            for field in fields(options)  # type: ignore[arg-type]
        ]
        function.__signature__ = signature.replace(parameters=[*own, *shown])  # type: ignore[attr-defined]
        complete_docstring(function, read_entries(options))
        return function

    return show


class NearKeywords:
    """Base class whose error for a wrong keyword suggests the intended one."""

    __slots__ = ()

    def __new__(cls, *args: object, **given: object) -> Self:
        """Return a new object. Raises TypeError for a keyword that ``__init__`` does not take."""
        _check_keywords(cls.__init__, given, cls.__name__)
        return super().__new__(cls)


def name_near_keyword(function: F) -> F:
    """Return ``function``, wrapped so that an error for a wrong keyword suggests the intended one.

    >>> @name_near_keyword
    ... def fc(input, size, act=None): ...
    >>> fc([], 3, activation="relu")
    Traceback (most recent call last):
    TypeError: fc() got an unexpected keyword argument 'activation'; did you mean 'act'?
    """

    @functools.wraps(function)
    def call(*args: Any, **given: Any) -> Any:
        try:
            return function(*args, **given)
        except TypeError:
            _check_keywords(inspect.unwrap(function), given, function.__name__)
            raise

    return call  # type: ignore[return-value]


def _check_keywords(function: Callable[..., object], given: Mapping[str, object], called: str) -> None:
    """Raise TypeError for a keyword that a function does not take."""
    code = getattr(function, "__code__", None)
    if code is None or code.co_flags & inspect.CO_VARKEYWORDS:
        return
    known = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    for name in given:
        if name not in known:
            names = [one for one in known if one != "self"]
            short = [one for one in names if _is_short_for(one, name) or _is_short_for(name, one)]
            near = suggest_names(name, names) or (short and f"did you mean {short[0]!r}?")
            near = near or f"it takes {', '.join(names)}"
            raise TypeError(f"{called}() got an unexpected keyword argument {name!r}; {near}") from None


def _is_short_for(short: str, name: str) -> bool:
    """Return whether ``short`` abbreviates a name: its beginning (act) or initials of its words (lr)."""
    initials = "".join(word[:1] for word in name.split("_"))
    return (len(short) > 2 and name.startswith(short)) or (len(short) > 1 and short == initials)
