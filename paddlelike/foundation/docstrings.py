"""Docstrings: shared parameter texts are written once and shown in every function.

A docstring takes missing parameters and the sections *Returns* and *Raises* from the docstrings of its
module, of the packages around it, or of another function; its own text has precedence. The section *See Also*
is made from ``see_also.txt``. A module completes the docstrings of its names when it is imported
(:func:`show_related`). A package that imports its names one by one completes each at its import
(:func:`relate`).
"""

from __future__ import annotations

import functools
import inspect
import re
import sys
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar, cast

from paddlelike.foundation.text_tables import read_table

T = TypeVar("T", bound=Callable[..., Any])

_HEADINGS: Final = ("Parameters\n----------\n", "Attributes\n----------\n")
#: The text that ends the parameters: another section, or the example.
_NEXT: Final = re.compile(r"\n(?:[A-Z][\w ]*\n-{3}|>>>)")
#: Sections that are copied unchanged.
_WHOLE: Final = re.compile(r"^(Returns|Raises)\n-+\n(.*?)(?=\n\n(?! )|\s*\Z)", re.MULTILINE | re.DOTALL)
#: By section, the sections that may follow it.
_BEHIND: Final = {
    "Returns": re.compile(r"\n(?:>>>|(?:Raises|See Also|Notes|References|Examples)\n---)"),
    "Raises": re.compile(r"\n(?:>>>|(?:See Also|Notes|References|Examples)\n---)"),
    "See Also": re.compile(r"\n(?:>>>|(?:Notes|References|Examples)\n---)"),
}


def read_entries(thing: object) -> dict[str, str]:
    """Return a docstring's entries for parameters and attributes, and its *Returns* and *Raises* if it has
    them.

    Returns
    -------
    dict
        Texts by parameter name, with their indentation, and by section title.

    >>> print(read_entries(describe_like)["others"].strip())
    Functions, classes or modules whose docstrings describe the parameters.
    """
    text = inspect.cleandoc(thing.__doc__ or "")
    return _split(text)[1] | dict(_WHOLE.findall(text))


@functools.cache
def read_shared_entries(module: str) -> dict[str, str]:
    """Return the entries (:func:`read_entries`) of a module's docstring and its packages' docstrings."""
    package = module.rpartition(".")[0]
    around = read_shared_entries(package) if package else {}
    return around | read_entries(sys.modules[module])


def describe_like(*others: object) -> Callable[[T], T]:
    """Return a decorator that completes a docstring with the entries and sections of other docstrings.

    Parameters
    ----------
    others
        Functions, classes or modules whose docstrings describe the parameters.

    >>> @describe_like(describe_like)
    ... def list_names(others):
    ...     "Return the names of functions."
    >>> print(read_entries(list_names)["others"].strip())
    Functions, classes or modules whose docstrings describe the parameters.
    """
    entries = {name: text for other in others for name, text in read_entries(other).items()}

    def complete(thing: T) -> T:
        complete_docstring(thing, entries)
        return thing

    return complete


def complete_docstring(thing: Callable[..., Any], entries: Mapping[str, str]) -> None:
    """Add to a docstring the ``entries`` for parameters that it does not describe itself.

    The section follows the order of the signature; names with equal entries share one. Anything but a class
    gets the sections *Returns* (if it returns something) and *Raises* of the entries, too.
    """
    if thing.__doc__ is None:  # python -OO
        return
    text = dedent(thing.__doc__)
    head, own, tail = _split(text)
    names = _list_names(thing)
    described = {name: entry for name in names if (entry := own.get(name) or entries.get(name))}
    described |= {name: entry for name, entry in own.items() if name not in described}
    if described.keys() != own.keys():
        alike: dict[str, list[str]] = {}
        for name, entry in described.items():
            alike.setdefault(entry, []).append(name)
        rows = "".join(f"{', '.join(group)}\n{entry}" for entry, group in alike.items())
        text = f"{head.rstrip()}\n\n{_HEADINGS[0]}{rows}{tail}"
    if not isinstance(thing, type):
        if "Returns" in entries and thing.__annotations__.get("return") not in ("None", None):
            text = add_section(text, "Returns", entries["Returns"])
        if "Raises" in entries:
            text = add_section(text, "Raises", entries["Raises"])
    thing.__doc__ = text


def add_section(text: str, title: str, body: str) -> str:
    """Insert a section into a docstring, in the usual order, unless it has that section."""
    rule = f"{title}\n{'-' * len(title)}\n"
    if f"\n{rule}" in text:
        return text
    found = _BEHIND[title].search(text)
    at = found.start() if found else len(text)
    return f"{text[:at].rstrip()}\n\n{rule}{body}\n{text[at:]}"


def relate(thing: object, module: str, name: str) -> None:
    """Complete the docstring of a public name, and of its members that are in the table.

    Parameters
    ----------
    thing
        The function or class.
    module, name
        Its place below ``fluid``, such as ``"layers"`` and ``"conv2d"``; ``""`` is the package itself.
    """
    for member, near in _read_groups().get((module, name), {}).items():
        told = vars(thing)[member] if member else thing
        told = getattr(told, "__func__", told)  # of a static method
        if told.__doc__ is not None:  # python -OO
            told.__doc__ = add_section(dedent(told.__doc__), "See Also", _format(module, near))


def show_related(module: str) -> None:
    """Complete the docstrings of the public names in a module of this package."""
    shown = vars(sys.modules[module])
    face = module.partition(".")[2]
    for owner, name in _read_groups():
        if owner == face and name in shown:
            relate(shown[name], owner, name)


def list_groups() -> list[list[tuple[str, str]]]:
    """Return the groups: the names with their modules below ``fluid``."""
    groups = []
    for paragraph in read_table("paddlelike.foundation", "see_also.txt").split("\n\n")[1:]:  # no comment
        first, *names = paragraph.split()
        home = first[:-1].removeprefix("fluid")
        groups.append([_find_home(name) if name.startswith("fluid.") else (home, name) for name in names])
    return groups


def _find_home(path: str) -> tuple[str, str]:
    """Return the module below ``fluid`` that has a function, class or member, and its name there."""
    words = path.split(".")[1:]
    top = next((i for i, word in enumerate(words) if word[0].isupper()), len(words) - 1)
    return ".".join(words[:top]), ".".join(words[top:])


@functools.cache
def _read_groups() -> dict[tuple[str, str], dict[str, list[tuple[str, str]]]]:
    """Return the related names of each function or class, by member; the key ``""`` is the thing itself."""
    near: dict[tuple[str, str], dict[tuple[str, str], None]] = {}
    for group in list_groups():
        for one in group:
            near.setdefault(one, {}).update(dict.fromkeys(group))
    found: dict[tuple[str, str], dict[str, list[tuple[str, str]]]] = {}
    for one, others in near.items():
        del others[one]
        thing, _, member = one[1].partition(".")
        home = [other for other in others if other[0] == one[0]]  # goes first
        far = [other for other in others if other[0] != one[0]]
        found.setdefault((one[0], thing), {})[member] = home + far
    return found


def _format(module: str, near: list[tuple[str, str]]) -> str:
    """Return lines of names. Names of the same module are short; others begin with their module below
    ``fluid``.
    """
    lines = [""]
    for home, name in near:
        shown = name if home == module else f"fluid.{home}.{name}" if home else f"fluid.{name}"
        if len(lines[-1]) + len(shown) > 100:
            lines.append("")
        lines[-1] += f", {shown}" if lines[-1] else shown
    return "\n".join(lines)


def dedent(text: str) -> str:
    """Return a docstring without the indentation that its lines share, as Python has it from 3.13 on."""
    found = None if re.search(r"\n\S", text) else re.search(r"\n( +)\S", text)
    return text.replace(f"\n{found[1]}", "\n").rstrip() if found else text.rstrip()


def _split(text: str) -> tuple[str, dict[str, str], str]:
    """Return the docstring before a section, the section's entries by name, and the rest."""
    start = text.find(_HEADINGS[0])
    if start < 0:
        start = text.find(_HEADINGS[1])
    begin = start + len(_HEADINGS[0]) if start >= 0 else 0
    end = _NEXT.search(text, begin)
    tail = f"\n{text[end.start() :].strip()}\n" if end else ""
    stop = end.start() if end else len(text)
    if start < 0:
        return text[:stop], {}, tail
    own: dict[str, str] = {}
    names: list[str] = []
    for line in text[begin:stop].rstrip().split("\n"):
        if line[:4].isspace() or not line:
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
