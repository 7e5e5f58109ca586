r"""Rules: which names of a checkpoint become which variables of a program, and what is done on the way.

A pattern is a name in which ``*`` stands for any text and ``?`` for one character; with ``re:`` in front it
is a regular expression, of those that always end (see :mod:`paddlelike.io.rules.patterns`). A target
takes what the wildcards matched, in their order (groups as ``\1``). Rules are plain data: they are saved as
JSON, one rule a line, and nothing in such a file is executed.
"""

from __future__ import annotations

import functools
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final

from paddlelike.errors import FormatError
from paddlelike.io.rules.patterns import Found, Pattern, check_template
from paddlelike.storage.local.files import File
from paddlelike.storage.local.transaction import write_all

__all__ = ["Init", "Rename", "Rule", "Rules", "Skip", "all_sources", "match_all", "matcher", "said_changes"]

_FORMAT: Final = "paddlelike rules"
_VERSION: Final = 1
_MOST: Final = 1 << 26  # bytes of a file

Names = tuple[str, ...]
Match = Callable[[str], Found | None]


@dataclass(frozen=True)
class Rename:
    """A file, or several, become a variable, or several.

    Attributes
    ----------
    source
        The pattern of names in the checkpoint; several with ``concat``.
    target
        The variable; several take the same value, or with ``split`` a part each.
    transpose
        Turn the axes around: what another system stores as (out, in) is (in, out) here.
    rows
        Take the rows from the first number to the second one only; no other bytes are read.
    concat
        Put the sources together along this axis.
    split
        Cut the value along this axis, as long as the variables are.
    overlap
        Copy what both have and leave the rest of the variable's value: another last layer, a grown table.
    cast
        Convert the elements to the variable's type.
    """

    source: str | Names
    target: str | Names
    transpose: bool = False
    rows: tuple[int, int] | None = None
    concat: int | None = None
    split: int | None = None
    overlap: bool = False
    cast: bool = False

    def __post_init__(self) -> None:
        first = self.sources[0]
        _check_pattern(first)
        if first.startswith("re:"):
            for template in (*self.sources[1:], *self.targets):
                check_template(template, _pattern(first))
        if len(self.sources) > 1 and self.concat is None:
            raise ValueError(f"{list(self.sources)} become one variable: say along which axis, concat=0")
        if self.concat is not None and self.rows is not None:
            raise ValueError("rows= takes a part of one file, concat= puts several together: not both")
        if min(self.concat or 0, self.split or 0) < 0:
            raise ValueError("an axis is counted from 0")

    @property
    def sources(self) -> Names:
        """The names in the checkpoint, as patterns."""
        return (self.source,) if isinstance(self.source, str) else self.source

    @property
    def targets(self) -> Names:
        """The variables."""
        return (self.target,) if isinstance(self.target, str) else self.target

    @property
    def changes(self) -> bool:
        """Whether the value becomes another one than the file's."""
        return (
            self.transpose
            or self.rows is not None
            or self.concat is not None
            or self.split is not None
            or self.overlap
            or self.cast
        )


@dataclass(frozen=True)
class Skip:
    """Variables that stay as they are, and files that are not used."""

    pattern: str

    def __post_init__(self) -> None:
        _check_pattern(self.pattern)


@dataclass(frozen=True)
class Init:
    """What becomes of variables that the checkpoint does not hold: ``"keep"``, ``"zero"`` or a number."""

    pattern: str
    value: str | float = "keep"

    def __post_init__(self) -> None:
        _check_pattern(self.pattern)
        number = isinstance(self.value, int | float) and not isinstance(self.value, bool)
        if not number and self.value not in ("keep", "zero"):
            raise ValueError(f"init is 'keep', 'zero' or a number, not {self.value!r}")


Rule = Rename | Skip | Init


class Rules:
    """An ordered list of rules; for every name the first one that matches decides.

    >>> rules = Rules().skip("cls_*").rename("encoder_*.weight", "fc_*.w_0", transpose=True)
    >>> [target for rule in rules for target in match_all(rule, "encoder_3.weight")]
    ['fc_3.w_0']
    """

    def __init__(self, rules: Iterable[Rule] = ()) -> None:
        self._rules = tuple(rules)
        for rule in self._rules:
            if not isinstance(rule, Rename | Skip | Init):
                raise TypeError(f"a rule is a Rename, Skip or Init, not {rule!r}")

    def rename(
        self,
        source: str | Sequence[str],
        target: str | Sequence[str],
        *,
        transpose: bool = False,
        rows: tuple[int, int] | None = None,
        concat: int | None = None,
        split: int | None = None,
        overlap: bool = False,
        cast: bool = False,
    ) -> Rules:
        """These rules and one more: see :class:`Rename`."""
        rule = Rename(_plural(source), _plural(target), transpose, rows, concat, split, overlap, cast)
        return Rules((*self._rules, rule))

    def skip(self, pattern: str) -> Rules:
        """These rules and one more: see :class:`Skip`."""
        return Rules((*self._rules, Skip(pattern)))

    def init(self, pattern: str, value: str | float = "keep") -> Rules:
        """These rules and one more: see :class:`Init`."""
        return Rules((*self._rules, Init(pattern, value)))

    @classmethod
    def of(
        cls,
        rules: Rules | Iterable[Rule] | None = None,
        rename: Mapping[str, str | Sequence[str]] | None = None,
        skip: str | Iterable[str] | None = None,
        init: str | float | Mapping[str, str | float] | None = None,
    ) -> Rules:
        """The one list that the arguments of a load come to: what is said by name goes first."""
        made: list[Rule] = []
        for source, target in (rename or {}).items():
            made.append(Rename(_literal(source), _plural(target)))
        if skip is not None:
            made += [Skip(pattern) for pattern in ([skip] if isinstance(skip, str) else skip)]
        if rules is not None:
            made += Rules(rules)
        if isinstance(init, Mapping):
            made += [Init(pattern, value) for pattern, value in init.items()]
        elif init is not None:
            made.append(Init("*", init))
        return cls(made)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the rules as JSON that people can read and change."""
        lines = ",\n  ".join(json.dumps(_plain(rule), ensure_ascii=False) for rule in self)
        text = (
            f'{{"{_FORMAT}": {_VERSION}, "rules": [\n  {lines}\n]}}\n'
            if self._rules
            else (f'{{"{_FORMAT}": {_VERSION}, "rules": []}}\n')
        )
        directory, name = os.path.split(os.fspath(path))
        write_all(directory or ".", {name: [text.encode()]})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Rules:
        """Read the rules that :meth:`save` wrote.

        Raises
        ------
        FormatError
            The file holds no rules, or one that is not understood.
        """
        with File(path) as file:
            try:
                return cls.decode(file.read(_MOST).decode())
            except UnicodeDecodeError as error:
                raise FormatError(f"no rules: {error}") from error

    @classmethod
    def decode(cls, text: str) -> Rules:
        """The rules in a text as :meth:`save` writes it."""
        try:
            front = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise FormatError(f"no rules: this is no JSON ({error})") from error
        if not isinstance(front, dict) or front.get(_FORMAT) != _VERSION or set(front) != {_FORMAT, "rules"}:
            raise FormatError(f'no rules: {{"{_FORMAT}": {_VERSION}, "rules": [...]}} is expected')
        if not isinstance(front["rules"], list):
            raise FormatError(f"no rules: a list of them is expected, not {front['rules']!r:.80}")
        return cls(_parsed(number, entry) for number, entry in enumerate(front["rules"], 1))

    def __iter__(self) -> Iterator[Rule]:
        return iter(self._rules)

    def __len__(self) -> int:
        return len(self._rules)

    def __add__(self, other: Iterable[Rule]) -> Rules:
        return Rules((*self._rules, *other))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Rules) and self._rules == other._rules

    def __hash__(self) -> int:
        return hash(self._rules)

    def __repr__(self) -> str:
        return f"Rules({list(self._rules)!r})"

    def __str__(self) -> str:
        return "\n".join(_said(rule) for rule in self) or "no rules"


def match_all(rule: Rule, name: str) -> list[str]:
    """The targets that a Rename has for a file of that name; [] when it does not match.

    >>> match_all(Rename("*_?", "?/*"), "conv_1")
    ['conv/1']
    """
    if not isinstance(rule, Rename):
        return []
    found = matcher(rule.sources[0])(name)
    return [] if found is None else [_filled(rule.sources[0], found, target) for target in rule.targets]


def all_sources(rule: Rename, name: str) -> list[str]:
    """The files that go together with ``name``, which the first pattern of ``rule`` matches."""
    found = matcher(rule.sources[0])(name)
    assert found is not None
    return [name, *(_filled(rule.sources[0], found, source) for source in rule.sources[1:])]


def matcher(pattern: str) -> Match:
    """Tells whether a whole name matches a pattern, and what its wildcards stand for."""
    return _pattern(pattern).match


@functools.lru_cache(maxsize=1024)
def _pattern(pattern: str) -> Pattern:
    if pattern.startswith("re:"):
        return Pattern(pattern[3:])
    wild = {"*": "(.*)", "?": "(.)"}
    return Pattern("".join(wild.get(part) or re.escape(part) for part in re.split(r"([*?])", pattern)))


def _filled(pattern: str, found: Found, target: str) -> str:
    if pattern.startswith("re:"):
        return found.expand(target)
    texts = iter(found.groups())
    return re.sub(r"[*?]", lambda wild: next(texts, wild[0]), target)


def _literal(name: str) -> str:
    """A pattern that matches this name only."""
    return "re:" + re.escape(name) if name.startswith("re:") or re.search(r"[*?]", name) else name


def _check_pattern(pattern: object) -> None:
    if not isinstance(pattern, str):
        raise TypeError(f"a pattern is a str, not {pattern!r}")
    try:
        _pattern(pattern)
    except ValueError as error:
        raise ValueError(f"pattern {pattern!r:.200} is no regular expression that ends: {error}") from error


def _plural(names: str | Sequence[str]) -> str | Names:
    if isinstance(names, str):
        return names
    if not names or not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise TypeError(f"a name, or several, is expected, not {names!r}")
    return names[0] if len(names) == 1 else tuple(names)


# Rules as JSON


def _plain(rule: Rule) -> dict[str, Any]:
    if isinstance(rule, Skip):
        return {"skip": rule.pattern}
    if isinstance(rule, Init):
        return {"init": rule.pattern, "value": rule.value}
    plain: dict[str, Any] = {"from": rule.source, "to": rule.target}
    for field in fields(rule)[2:]:
        value = getattr(rule, field.name)
        if value is not None and value is not False:
            plain[field.name] = value
    return plain


_KINDS: Final[dict[str, tuple[Any, str]]] = {
    "transpose": (bool, "true or false"),
    "rows": (list, "two row numbers"),
    "concat": (int, "the number of an axis"),
    "split": (int, "the number of an axis"),
    "overlap": (bool, "true or false"),
    "cast": (bool, "true or false"),
}


def _parsed(number: int, entry: Any) -> Rule:
    try:
        return _rule(entry)
    except (TypeError, ValueError) as error:
        raise FormatError(f"rule {number} ({entry!r:.120}) is not understood: {error}") from error


def _rule(entry: Any) -> Rule:
    if not isinstance(entry, dict):
        raise TypeError("a rule is an object")
    if set(entry) == {"skip"}:
        return Skip(entry["skip"])
    if "init" in entry and set(entry) <= {"init", "value"}:
        return Init(entry["init"], entry.get("value", "keep"))
    unknown = set(entry) - {"from", "to", *_KINDS}
    if unknown or not {"from", "to"} <= set(entry):
        raise ValueError(f"a rule has from and to, skip, or init; not {sorted(unknown) or sorted(entry)}")
    for name, (kind, words) in _KINDS.items():
        if name in entry and (not isinstance(entry[name], kind) or (kind is int and entry[name] is True)):
            raise TypeError(f"{name} is {words}, not {entry[name]!r}")
    changes = {name: entry[name] for name in _KINDS if name in entry}
    if "rows" in changes:
        if len(changes["rows"]) != 2 or not all(type(row) is int for row in changes["rows"]):
            raise TypeError(f"rows is two row numbers, not {changes['rows']!r}")
        changes["rows"] = tuple(changes["rows"])
    return Rename(_plural(entry["from"]), _plural(entry["to"]), **changes)


def said_changes(rule: Rename) -> list[str]:
    """What a rule does to a value, in words."""
    return [key if value is True else f"{key}={value}" for key, value in list(_plain(rule).items())[2:]]


def _said(rule: Rule) -> str:
    if isinstance(rule, Skip):
        return f"skip {rule.pattern}"
    if isinstance(rule, Init):
        return f"init {rule.pattern}: {rule.value}"
    changes = said_changes(rule)
    names = f"{', '.join(rule.sources)} -> {', '.join(rule.targets)}"
    return f"{names} ({', '.join(changes)})" if changes else names
