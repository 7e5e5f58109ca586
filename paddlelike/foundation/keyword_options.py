"""Options that several functions take as keywords, declared once as the fields of a dataclass."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Self, TypeVar

from paddlelike.foundation.near_names import suggest_names

__all__ = ["KeywordOptions", "show_options"]

F = TypeVar("F", bound=Callable[..., object])


@dataclass(frozen=True, kw_only=True)
class KeywordOptions:
    """Base of dataclasses whose fields are the options."""

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
        names = [field.name for field in fields(cls)]
        for name in given:
            if name not in names:
                near = suggest_names(name, names) or f"the options are {', '.join(names)}"
                raise TypeError(f"{function}() got an unexpected keyword argument {name!r}; {near}")
        return cls(**given)


def show_options(options: type[KeywordOptions]) -> Callable[[F], F]:
    """Return a decorator that shows the options, with their defaults, in place of ``**options`` in ``help``.

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
            for field in fields(options)
        ]
        function.__signature__ = signature.replace(parameters=[*own, *shown])  # type: ignore[attr-defined]
        return function

    return show
