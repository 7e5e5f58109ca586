"""Parameters in docstrings: a parameter is described once, and every function that takes it shows it."""

from __future__ import annotations

import functools
import inspect
import re
import sys
import textwrap
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar, cast

T = TypeVar("T", bound=Callable[..., Any])

_HEADINGS: Final = ("    Parameters\n    ----------\n", "    Attributes\n    ----------\n")
#: What comes behind the parameters: another section, or the example.
_NEXT: Final = re.compile(r"\n    (?:[A-Z][\w ]*\n    -{3}|>>>)")


def read_parameters(thing: object) -> dict[str, str]:
    """Return what a docstring says of each parameter or attribute, indented as it stands there.

    >>> print(read_parameters(describe_like)["others"].strip())
    Functions, classes or modules whose docstrings describe the parameters.
    """
    return _split(textwrap.indent(inspect.cleandoc(thing.__doc__ or ""), "    "))[1]


@functools.cache
def read_shared_parameters(module: str) -> dict[str, str]:
    """Return what the docstrings of a module and of the packages around it say of parameters."""
    package = module.rpartition(".")[0]
    around = read_shared_parameters(package) if package else {}
    return around | read_parameters(sys.modules[module])


def describe_like(*others: object) -> Callable[[T], T]:
    """Return a decorator that completes the parameters of a docstring with those of other docstrings.

    Parameters
    ----------
    others
        Functions, classes or modules whose docstrings describe the parameters.

    >>> @describe_like(describe_like)
    ... def list_names(others):
    ...     "Return the names of functions."
    >>> print(read_parameters(list_names)["others"].strip())
    Functions, classes or modules whose docstrings describe the parameters.
    """
    entries = {name: text for other in others for name, text in read_parameters(other).items()}

    def complete(thing: T) -> T:
        complete_parameters(thing, entries)
        return thing

    return complete


def complete_parameters(thing: Callable[..., Any], entries: Mapping[str, str]) -> None:
    """Add to a docstring what ``entries`` say of the parameters that it does not describe itself.

    The section follows the order of the signature. ``entries`` are texts by name, indented by 8 spaces.
    """
    if thing.__doc__ is None:  # python -OO
        return
    head, own, tail = _split(thing.__doc__)
    names = _list_names(thing)
    described = {name: text for name in names if (text := own.get(name) or entries.get(name))}
    described |= {name: text for name, text in own.items() if name not in described}
    if described.keys() == own.keys():
        return
    rows = "".join(f"    {name}\n{text}" for name, text in described.items())
    thing.__doc__ = f"{head.rstrip()}\n\n{_HEADINGS[0]}{rows}{tail}    "


def _split(text: str) -> tuple[str, dict[str, str], str]:
    """Return a docstring before the section, its entries by name, and what follows."""
    start = text.find(_HEADINGS[0])
    if start < 0:
        start = text.find(_HEADINGS[1])
    begin = start + len(_HEADINGS[0]) if start >= 0 else 0
    end = _NEXT.search(text, begin)
    tail = f"\n    {text[end.start() :].strip()}\n" if end else ""
    stop = end.start() if end else len(text)
    if start < 0:
        return text[:stop], {}, tail
    own: dict[str, str] = {}
    names: list[str] = []
    for line in text[begin:stop].rstrip().split("\n"):
        if line[:8].isspace() or not line:
            own.update((name, f"{own[name]}{line}\n") for name in names)
        else:
            names = line.strip().split(", ")
            own.update(dict.fromkeys(names, ""))
    return text[:start], own, tail


def _list_names(thing: Callable[..., Any]) -> tuple[str, ...]:
    function = cast("Any", thing).__init__ if isinstance(thing, type) else thing
    shown = getattr(function, "__signature__", None)  # with options in place of **options
    if shown is not None:
        names = tuple(shown.parameters)
    else:
        code = getattr(inspect.unwrap(function), "__code__", None)
        names = () if code is None else code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return names[1:] if isinstance(thing, type) else names
