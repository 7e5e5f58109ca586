r"""Regular expressions that always come to an end, for patterns that a file may bring.

Python's ``re`` tries one way after the other, and a short expression can have more ways than there is time:
``(a|a)*b`` doubles them with every letter. Here a place of the expression is tried once at a place of the
name, so that a match takes at most steps as the product of their lengths. The ways are tried in the order of
``re``, hence the groups are the same. What that does not allow is refused: looking ahead and back,
references to groups, flags; and expressions of more than 1000 steps.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, NamedTuple

__all__ = ["LONGEST", "Found", "Pattern", "check_template"]

LONGEST: Final = 4096  # characters of a name: beyond, nothing matches
_MOST: Final = 1000  # steps of an expression
_DEEPEST: Final = 50  # groups in groups
_REPEAT: Final = re.compile(r"([*+?])|\{(\d+)?(,)?(\d+)?\}")
_REFERENCE: Final = re.compile(r"\\(?:([1-9]\d?)|g<(\w+)>|(\\))")
_ESCAPES: Final = frozenset("dDsSwWabfnrtvxuU0") - {"b"}
_WORD: Final = re.compile(r"\w")

Test = Callable[[str, int], Any]


class _Step(NamedTuple):
    """What is done at a place of an expression; then the next one follows."""

    kind: str  # "text", "one", "at", "save", "jump", "split", "end"
    what: Any = None
    other: int = 0  # the second way of a split


class Found:
    """A whole name, and what the groups of the pattern stand for in it."""

    __slots__ = ("_marks", "_name", "_pattern")

    def __init__(self, pattern: Pattern, name: str, marks: tuple[int, ...]) -> None:
        self._pattern, self._name, self._marks = pattern, name, marks

    def groups(self) -> tuple[str, ...]:
        """The texts of all groups; "" of one that had no part in it."""
        marks = self._marks
        return tuple(
            self._name[a:b] if 0 <= a <= b else "" for a, b in zip(marks[::2], marks[1::2], strict=True)
        )

    def expand(self, template: str) -> str:
        r"""``template`` with the groups in place of ``\1`` and ``\g<name>``."""
        texts, names = self.groups(), self._pattern.names
        return _REFERENCE.sub(lambda ref: "\\" if ref[3] else texts[_number(ref, names) - 1], template)


class Pattern:
    r"""An expression that a whole name matches, or not.

    Raises
    ------
    ValueError
        It is no regular expression, or one of those that may not end.

    >>> Pattern(r"l(\d+)/(?P<what>w|b)").match("l12/w").expand(r"fc_\1.\g<what>_0")
    'fc_12.w_0'
    """

    def __init__(self, text: str) -> None:
        parser = _Parser(text)
        self.groups = parser.groups
        self.names: dict[str, int] = parser.names
        self._steps = [*parser.steps, _Step("end")]
        first = self._steps[0]
        self._front = first.what if first.kind == "text" else ""

    def match(self, name: str) -> Found | None:
        """What the groups stand for in ``name``, or None."""
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
        if not reference[3] and not 1 <= _number(reference, pattern.names) <= pattern.groups:
            raise ValueError(
                f"{template!r} refers to {reference[0]}; the pattern has {pattern.groups} groups"
            )
    if "\\" in _REFERENCE.sub("", template):
        raise ValueError(f"{template!r}: the number of a group, g<name> or a backslash follows a backslash")


def _number(reference: re.Match[str], names: dict[str, int]) -> int:
    which = reference[1] or reference[2]
    return int(which) if which.isdecimal() else names.get(which, 0)


class _Parser:
    """Makes steps of an expression, from the left to the right. Places are counted from the first step."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.groups = 0
        self.names: dict[str, int] = {}
        self.steps = self._either(0)
        if self.at < len(text):
            raise self._error("unbalanced parenthesis")

    def _either(self, depth: int) -> list[_Step]:
        """Alternatives, up to a closing parenthesis."""
        if depth > _DEEPEST:
            raise self._error(f"more than {_DEEPEST} groups in each other")
        branches = [self._sequence(depth)]
        while self._next() == "|":
            self.at += 1
            branches.append(self._sequence(depth))
            self._check_size(sum(len(branch) + 2 for branch in branches))
        made = branches.pop()
        while branches:
            branch = branches.pop()
            end = len(branch) + 2
            made = [
                _Step("split", 1, end),
                *_moved(branch, 1),
                _Step("jump", end + len(made)),
                *_moved(made, end),
            ]
        return made

    def _sequence(self, depth: int) -> list[_Step]:
        made: list[_Step] = []
        text = False  # whether the last step is a text that may become longer
        while self._next() not in ("", "|", ")"):
            part, repeatable = self._atom(depth)
            whole = self._repeated(part, repeatable)
            if whole is part and len(part) == 1 and part[0].kind == "text":
                if text:
                    made[-1] = _Step("text", made[-1].what + part[0].what)
                    continue
                text = True
            else:
                text = False
            made += _moved(whole, len(made))
            self._check_size(len(made))
        return made

    def _atom(self, depth: int) -> tuple[list[_Step], bool]:
        char = self._next()
        if char == "(":
            return self._group(depth), True
        if char == "[":
            return [_one(self._take(self._class_end()))], True
        if char == "\\":
            return self._escape()
        if char in "^$":
            self.at += 1
            return [_Step("at", _begins if char == "^" else _ends)], False
        if _REPEAT.match(self.text, self.at) and char != "{":
            raise self._error("nothing to repeat")
        self.at += 1
        return [_one(".") if char == "." else _Step("text", char)], True

    def _group(self, depth: int) -> list[_Step]:
        opening = re.compile(r"\((\?:|\?P<([^\W\d]\w*)>|(?!\?))").match(self.text, self.at)
        if opening is None:
            raise self._error(
                f"{self.text[self.at : self.at + 4]!r}: a group begins with (, (?: or (?P<name>"
            )
        self.at = opening.end()
        number = -1
        if opening[1] != "?:":
            self.groups += 1
            number = self.groups
            if opening[2]:
                if opening[2] in self.names:
                    raise self._error(f"two groups of the name {opening[2]!r}")
                self.names[opening[2]] = number
        made = self._either(depth + 1)
        if self._next() != ")":
            raise self._error("missing )")
        self.at += 1
        if number < 0:
            return made
        return [_Step("save", 2 * number - 2), *_moved(made, 1), _Step("save", 2 * number - 1)]

    def _escape(self) -> tuple[list[_Step], bool]:
        char = self.text[self.at + 1 : self.at + 2]
        if char in ("A", "Z", "b", "B"):
            self.at += 2
            return [_Step("at", _PLACES[char])], False
        if not char or (char.isalnum() and char not in _ESCAPES):
            raise self._error(f"\\{char} is not one of \\d \\w \\s \\b \\A \\Z and their like")
        long = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|0[0-7]{0,2}|.)", re.DOTALL)
        found = long.match(self.text, self.at)
        assert found is not None
        self.at = found.end()
        return [_one(found[0]) if char.isalnum() else _Step("text", char)], True

    def _class_end(self) -> int:
        end = self.at + 1
        end += self.text.startswith("^", end)
        end += self.text.startswith("]", end)  # the first one is a member
        while end < len(self.text) and self.text[end] != "]":
            end += 2 if self.text[end] == "\\" else 1
        if end >= len(self.text):
            raise self._error("unterminated character set")
        return end + 1

    def _repeated(self, part: list[_Step], repeatable: bool) -> list[_Step]:
        found = _REPEAT.match(self.text, self.at)
        if found is None or found[0] == "{}":
            return part
        if not repeatable:
            raise self._error("nothing to repeat")
        self.at = found.end()
        lazy = self._next() == "?"
        self.at += lazy
        again = _REPEAT.match(self.text, self.at)
        if again is not None and again[0] != "{}":
            raise self._error("multiple repeat")
        low, high = _bounds(found)
        if high is not None and high < low:
            raise self._error("min repeat greater than max repeat")
        self._check_size((low + 1 if high is None else high) * (len(part) + 2))
        made: list[_Step] = []
        for _ in range(low):
            made += _moved(part, len(made))
        if high is None:
            start, body = len(made), _moved(part, len(made) + 1)
            made += [_split(start + 1, start + len(body) + 2, lazy), *body, _Step("jump", start)]
            return made
        end = len(made) + (high - low) * (len(part) + 1)
        for _ in range(high - low):
            start = len(made)
            made += [_split(start + 1, end, lazy), *_moved(part, start + 1)]
        return made

    def _next(self) -> str:
        return self.text[self.at : self.at + 1]

    def _take(self, end: int) -> str:
        start, self.at = self.at, end
        return self.text[start:end]

    def _check_size(self, size: int) -> None:
        if size > _MOST:
            raise self._error(f"more than {_MOST} steps")

    def _error(self, what: str) -> ValueError:
        return ValueError(f"{what} at position {self.at}")


def _bounds(found: re.Match[str]) -> tuple[int, int | None]:
    if found[1]:
        return ("+" in found[1]), (1 if found[1] == "?" else None)
    if any(digits and len(digits) > 4 for digits in (found[2], found[4])):
        return _MOST + 1, None  # refused for its steps
    low = int(found[2] or 0)
    if found[3] is None:
        return low, low
    return low, None if found[4] is None else int(found[4])


def _split(body: int, end: int, lazy: bool) -> _Step:
    return _Step("split", end, body) if lazy else _Step("split", body, end)


def _one(source: str) -> _Step:
    """A step over one character, which ``re`` itself judges."""
    try:
        return _Step("one", re.compile(source, re.DOTALL).fullmatch)
    except re.error as error:
        raise ValueError(f"{source!r}: {error}") from error


def _moved(steps: list[_Step], by: int) -> list[_Step]:
    """The steps with their targets ``by`` places later."""
    return [
        _Step(kind, what + by, other + by) if kind in ("jump", "split") else _Step(kind, what, other)
        for kind, what, other in steps
    ]


def _begins(name: str, at: int) -> bool:
    return at == 0


def _ends(name: str, at: int) -> bool:
    return at == len(name)


def _is_edge(name: str, at: int) -> bool:
    before, after = name[at - 1 : at] if at else "", name[at : at + 1]
    return bool(_WORD.match(before)) != bool(_WORD.match(after))


_PLACES: Final[dict[str, Test]] = {
    "A": _begins,
    "Z": _ends,
    "b": _is_edge,
    "B": lambda name, at: not _is_edge(name, at),
}
