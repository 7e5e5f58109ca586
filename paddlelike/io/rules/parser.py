"""The parser of patterns: turns a regular expression into steps that a matcher carries out."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, NamedTuple

_MOST: Final = 1000  # steps of an expression
_DEEPEST: Final = 50  # groups in groups
_REPEAT: Final = re.compile(r"([*+?])|\{(\d+)?(,)?(\d+)?\}")
_ESCAPES: Final = frozenset("dDsSwWabfnrtvxuU0") - {"b"}
_WORD: Final = re.compile(r"\w")

Test = Callable[[str, int], Any]


class Step(NamedTuple):
    """One step of a match; the next step follows unless this one jumps."""

    kind: str  # "text", "one", "at", "save", "jump", "split", "end"
    what: Any = None
    other: int = 0  # the second way of a split


class Parsed(NamedTuple):
    """The steps of an expression, and its groups."""

    steps: list[Step]
    groups: int
    names: dict[str, int]


def parse(text: str) -> Parsed:
    """Return the steps of a regular expression.

    Raises
    ------
    ValueError
        It is not a regular expression, or one that may not end.
    """
    parser = _Parser(text)
    return Parsed(parser.steps, parser.groups, parser.names)


class _Parser:
    """Turns an expression into steps, from left to right. Jump targets are indexes from the first step on."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.groups = 0
        self.names: dict[str, int] = {}
        self.steps = self._parse_alternatives(0)
        if self.at < len(text):
            raise self._error("unbalanced parenthesis")

    def _parse_alternatives(self, depth: int) -> list[Step]:
        """Parse alternatives up to a closing parenthesis."""
        if depth > _DEEPEST:
            raise self._error(f"more than {_DEEPEST} nested groups")
        branches = [self._parse_sequence(depth)]
        while self._next() == "|":
            self.at += 1
            branches.append(self._parse_sequence(depth))
            self._check_size(sum(len(branch) + 2 for branch in branches))
        steps = branches.pop()
        while branches:
            branch = branches.pop()
            end = len(branch) + 2
            steps = [
                Step("split", 1, end),
                *_shift(branch, 1),
                Step("jump", end + len(steps)),
                *_shift(steps, end),
            ]
        return steps

    def _parse_sequence(self, depth: int) -> list[Step]:
        steps: list[Step] = []
        text = False  # whether the last step is a text that may become longer
        while self._next() not in ("", "|", ")"):
            part, repeatable = self._parse_atom(depth)
            whole = self._parse_repeat(part, repeatable)
            if whole is part and len(part) == 1 and part[0].kind == "text":
                if text:
                    steps[-1] = Step("text", steps[-1].what + part[0].what)
                    continue
                text = True
            else:
                text = False
            steps += _shift(whole, len(steps))
            self._check_size(len(steps))
        return steps

    def _parse_atom(self, depth: int) -> tuple[list[Step], bool]:
        char = self._next()
        if char == "(":
            return self._parse_group(depth), True
        if char == "[":
            return [_make_one(self._take(self._find_class_end()))], True
        if char == "\\":
            return self._parse_escape()
        if char in "^$":
            self.at += 1
            return [Step("at", _is_start if char == "^" else _is_end)], False
        if _REPEAT.match(self.text, self.at) and char != "{":
            raise self._error("nothing to repeat")
        self.at += 1
        return [_make_one(".") if char == "." else Step("text", char)], True

    def _parse_group(self, depth: int) -> list[Step]:
        opening = re.compile(r"\((\?:|\?P<([^\W\d]\w*)>|(?!\?))").match(self.text, self.at)
        if opening is None:
            raise self._error(
                f"{self.text[self.at : self.at + 4]!r}: a group begins with (, (?: or (?P<name>"
            )
        self.at = opening.end()
        group = -1
        if opening[1] != "?:":
            self.groups += 1
            group = self.groups
            if opening[2]:
                if opening[2] in self.names:
                    raise self._error(f"two groups are named {opening[2]!r}")
                self.names[opening[2]] = group
        steps = self._parse_alternatives(depth + 1)
        if self._next() != ")":
            raise self._error("missing )")
        self.at += 1
        if group < 0:
            return steps
        return [Step("save", 2 * group - 2), *_shift(steps, 1), Step("save", 2 * group - 1)]

    def _parse_escape(self) -> tuple[list[Step], bool]:
        char = self.text[self.at + 1 : self.at + 2]
        if char in ("A", "Z", "b", "B"):
            self.at += 2
            return [Step("at", _PLACES[char])], False
        if not char or (char.isalnum() and char not in _ESCAPES):
            raise self._error(f"\\{char} is not one of \\d \\w \\s \\b \\A \\Z and their like")
        long = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|0[0-7]{0,2}|.)", re.DOTALL)
        found = long.match(self.text, self.at)
        assert found is not None
        self.at = found.end()
        return [_make_one(found[0]) if char.isalnum() else Step("text", char)], True

    def _find_class_end(self) -> int:
        end = self.at + 1
        end += self.text.startswith("^", end)
        end += self.text.startswith("]", end)  # the first one is a member
        while end < len(self.text) and self.text[end] != "]":
            end += 2 if self.text[end] == "\\" else 1
        if end >= len(self.text):
            raise self._error("unterminated character set")
        return end + 1

    def _parse_repeat(self, part: list[Step], repeatable: bool) -> list[Step]:
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
        low, high = _find_bounds(found)
        if high is not None and high < low:
            raise self._error("min repeat greater than max repeat")
        self._check_size((low + 1 if high is None else high) * (len(part) + 2))
        steps: list[Step] = []
        for _ in range(low):
            steps += _shift(part, len(steps))
        if high is None:
            start, body = len(steps), _shift(part, len(steps) + 1)
            steps += [_make_split(start + 1, start + len(body) + 2, lazy), *body, Step("jump", start)]
            return steps
        end = len(steps) + (high - low) * (len(part) + 1)
        for _ in range(high - low):
            start = len(steps)
            steps += [_make_split(start + 1, end, lazy), *_shift(part, start + 1)]
        return steps

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


def _find_bounds(found: re.Match[str]) -> tuple[int, int | None]:
    if found[1]:
        return ("+" in found[1]), (1 if found[1] == "?" else None)
    if any(digits and len(digits) > 4 for digits in (found[2], found[4])):
        return _MOST + 1, None  # refused: too many steps
    low = int(found[2] or 0)
    if found[3] is None:
        return low, low
    return low, None if found[4] is None else int(found[4])


def _make_split(body: int, end: int, lazy: bool) -> Step:
    return Step("split", end, body) if lazy else Step("split", body, end)


def _make_one(source: str) -> Step:
    """Return a step for one character, which ``re`` itself matches."""
    try:
        return Step("one", re.compile(source, re.DOTALL).fullmatch)
    except re.error as error:
        raise ValueError(f"{source!r}: {error}") from error


def _shift(steps: list[Step], by: int) -> list[Step]:
    """Return the steps with their targets shifted by ``by``."""
    return [
        Step(kind, what + by, other + by) if kind in ("jump", "split") else Step(kind, what, other)
        for kind, what, other in steps
    ]


def _is_start(name: str, at: int) -> bool:
    return at == 0


def _is_end(name: str, at: int) -> bool:
    return at == len(name)


def _is_edge(name: str, at: int) -> bool:
    before, after = name[at - 1 : at] if at else "", name[at : at + 1]
    return bool(_WORD.match(before)) != bool(_WORD.match(after))


_PLACES: Final[dict[str, Test]] = {
    "A": _is_start,
    "Z": _is_end,
    "b": _is_edge,
    "B": lambda name, at: not _is_edge(name, at),
}
