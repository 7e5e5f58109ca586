r"""Regular expressions whose match always ends in bounded time, for patterns from untrusted files.

Python's ``re`` backtracks, and a short expression can take exponential time: ``(a|a)*b`` doubles it with
every letter. Here every step of the expression is tried at most once at every position of the name, so the
product of their lengths bounds the time. Alternatives are tried in the order of ``re``, so the groups are the
same. Features that do not allow this are refused: lookahead and lookbehind, references to groups, flags.
Expressions of more than 1000 steps are refused too.
"""

from __future__ import annotations

import re
from typing import Final

from paddlelike.io.rules.parser import Step, parse

LONGEST: Final = 4096  # characters of a name: beyond, nothing matches
_REFERENCE: Final = re.compile(r"\\(?:([1-9]\d?)|g<(\w+)>|(\\))")


class Found:
    """A match of a whole name, with the texts of the pattern's groups."""

    __slots__ = ("_marks", "_name", "_pattern")

    def __init__(self, pattern: Pattern, name: str, marks: tuple[int, ...]) -> None:
        self._pattern, self._name, self._marks = pattern, name, marks

    def groups(self) -> tuple[str, ...]:
        """Return the texts of all groups; "" for a group that matched nothing."""
        marks = self._marks
        return tuple(
            self._name[a:b] if 0 <= a <= b else "" for a, b in zip(marks[::2], marks[1::2], strict=True)
        )

    def expand(self, template: str) -> str:
        r"""Return ``template`` with the groups in place of ``\1`` and ``\g<name>``."""
        texts, names = self.groups(), self._pattern.names
        return _REFERENCE.sub(lambda ref: "\\" if ref[3] else texts[_find_group(ref, names) - 1], template)


class Pattern:
    r"""A regular expression for whole names.

    Raises
    ------
    ValueError
        It is not a regular expression, or one that may not end.

    >>> Pattern(r"l(\d+)/(?P<what>w|b)").match("l12/w").expand(r"fc_\1.\g<what>_0")
    'fc_12.w_0'
    """

    def __init__(self, text: str) -> None:
        parsed = parse(text)
        self.groups = parsed.groups
        self.names = parsed.names
        self._steps = [*parsed.steps, Step("end")]
        first = self._steps[0]
        self._front = first.what if first.kind == "text" else ""

    def match(self, name: str) -> Found | None:
        """Return the match of a whole name, or None if the name does not match."""
        if not name.startswith(self._front) or len(name) > LONGEST:
            return None
        size, steps = len(name), self._steps
        ways = [(0, 0, (-1,) * (2 * self.groups))]
        tried: set[tuple[int, int]] = set()
        while ways:
            place, at, marks = ways.pop()
            while True:
                kind, what, other = steps[place]
                place += 1
                if kind == "text":
                    if not name.startswith(what, at):
                        break
                    at += len(what)
                elif kind == "one":
                    if at == size or not what(name[at]):
                        break
                    at += 1
                elif kind == "split":
                    if (place, at) in tried:
                        break
                    tried.add((place, at))
                    ways.append((other, at, marks))
                    place = what
                elif kind == "jump":
                    place = what
                elif kind == "save":
                    marks = (*marks[:what], at, *marks[what + 1 :])
                elif kind == "at":
                    if not what(name, at):
                        break
                elif at == size:
                    return Found(self, name, marks)
                else:
                    break
        return None


def check_template(template: str, pattern: Pattern) -> None:
    """Raise ValueError when ``template`` refers to a group that the pattern does not have."""
    for reference in _REFERENCE.finditer(template):
        if not reference[3] and not 1 <= _find_group(reference, pattern.names) <= pattern.groups:
            raise ValueError(
                f"{template!r} refers to {reference[0]}; the pattern has {pattern.groups} groups"
            )
    if "\\" in _REFERENCE.sub("", template):
        raise ValueError(f"{template!r}: a backslash needs the index of a group, g<name> or a backslash")


def _find_group(reference: re.Match[str], names: dict[str, int]) -> int:
    which = reference[1] or reference[2]
    return int(which) if which.isdecimal() else names.get(which, 0)
