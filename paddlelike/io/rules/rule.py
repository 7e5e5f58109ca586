r"""Rules that map names of a checkpoint to variables of a program, and change values.

A pattern is a name in which ``*`` stands for any text and ``?`` for one character; after ``re:`` it is a
regular expression (see :mod:`paddlelike.io.rules.patterns`). In a target, wildcards stand for the matched
texts, in their order (groups as ``\1``). Rules are plain data: they are saved as JSON, one rule per line, and
nothing in such a file is executed.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from dataclasses import fields

from paddlelike.io.rules.patterns import Found, Pattern, check_template
from paddlelike.lazy import dataclass

Names = tuple[str, ...]
Match = Callable[[str], Found | None]


@dataclass(frozen=True)
class Rename:
    """Load variables from files with other names, and change their values.

    Attributes
    ----------
    source
        The pattern of names in the checkpoint; several with ``concat``.
    target
        The variable; several variables take the same value, or with ``split`` one part each.
    order
        Cut the last axis into equal parts and put them in this order. For the gates of an LSTM, Fluid has
        candidate, input, forget, output, and PyTorch input, forget, candidate, output: ``(1, 2, 0, 3)``. A
        bias of one row, ``(1, 4 H)``, becomes ``(4 H,)``. This is done before ``transpose``.
    transpose
        Reverse the axes, as for weights that another system stores as (out, in).
    rows
        Load only the rows from the first index up to the second; no other bytes are read.
    concat
        Concatenate the sources along this axis.
    split
        Cut the value along this axis into parts as long as the variables.
    overlap
        Copy the part that both shapes share and keep the rest of the variable's value, as for a grown table.
    cast
        Convert the elements to the variable's type.

    Raises
    ------
    ValueError
        Matching a pattern might never end, or options exclude each other.

    >>> import paddlelike as fluid
    >>> print(fluid.io.Rules([fluid.io.Rename("encoder.*.weight", "fc_*.w_0", transpose=True)]))
    encoder.*.weight -> fc_*.w_0 (transpose)
    """

    source: str | Names
    target: str | Names
    transpose: bool = False
    rows: tuple[int, int] | None = None
    concat: int | None = None
    split: int | None = None
    overlap: bool = False
    cast: bool = False
    order: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        first = self.sources[0]
        _check_pattern(first)
        if first.startswith("re:"):
            for template in (*self.sources[1:], *self.targets):
                check_template(template, _compile(first))
        if len(self.sources) > 1 and self.concat is None:
            raise ValueError(f"{list(self.sources)} become one variable: pass the axis, as in concat=0")
        if self.concat is not None and self.rows is not None:
            raise ValueError("rows= is for one file, concat= for several: pass one of the two")
        if self.order is not None and sorted(self.order) != list(range(len(self.order))):
            raise ValueError(f"order={self.order} does not name each part once, counted from 0")
        if min(self.concat or 0, self.split or 0) < 0:
            raise ValueError(f"an axis must be 0 or greater, got concat={self.concat}, split={self.split}")

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
        """Whether the loaded value differs from the value in the file."""
        values = (getattr(self, field.name) for field in fields(self)[2:])
        return any(value is not None and value is not False for value in values)  # an axis may be 0


@dataclass(frozen=True)
class Skip:
    """Leave variables that match ``pattern`` unchanged, and ignore files that match it.

    Parameters
    ----------
    pattern
        A name, or a pattern, of variables and files.

    >>> import paddlelike as fluid
    >>> print(fluid.io.Rules([fluid.io.Skip("fc_2.*")]))
    skip fc_2.*
    """

    pattern: str

    def __post_init__(self) -> None:
        _check_pattern(self.pattern)


@dataclass(frozen=True)
class Init:
    """Set variables that the checkpoint does not hold: ``"keep"``, ``"zero"`` or a number.

    Parameters
    ----------
    pattern
        A name of a variable, or a pattern such as ``"fc_2.*"``.
    value
        ``"keep"``, ``"zero"`` or a number.

    Raises
    ------
    ValueError
        ``value`` is neither ``"keep"``, ``"zero"`` nor a number.

    >>> import paddlelike as fluid
    >>> print(fluid.io.Rules([fluid.io.Init("*_moment_*", 0.0)]))
    init *_moment_*: 0.0
    """

    pattern: str
    value: str | float = "keep"

    def __post_init__(self) -> None:
        _check_pattern(self.pattern)
        is_number = isinstance(self.value, int | float) and not isinstance(self.value, bool)
        if not is_number and self.value not in ("keep", "zero"):
            raise ValueError(f"init is 'keep', 'zero' or a number, not {self.value!r}")


Rule = Rename | Skip | Init


def match_targets(rule: Rule, name: str) -> list[str]:
    """Return the targets of a Rename for a file called ``name``; [] if it does not match.

    >>> match_targets(Rename("*_?", "?/*"), "conv_1")
    ['conv/1']
    """
    if not isinstance(rule, Rename):
        return []
    found = get_matcher(rule.sources[0])(name)
    return [] if found is None else [_fill_in(rule.sources[0], found, target) for target in rule.targets]


def find_sources(rule: Rename, name: str) -> list[str]:
    """Return all files of a Rename whose first pattern matches ``name``."""
    found = get_matcher(rule.sources[0])(name)
    assert found is not None
    return [name, *(_fill_in(rule.sources[0], found, source) for source in rule.sources[1:])]


def get_matcher(pattern: str) -> Match:
    """Return the function that matches whole names with a pattern; its result has the wildcards' texts."""
    return _compile(pattern).match


@functools.lru_cache(maxsize=1024)
def _compile(pattern: str) -> Pattern:
    if pattern.startswith("re:"):
        return Pattern(pattern[3:])
    wild = {"*": "(.*)", "?": "(.)"}
    return Pattern("".join(wild.get(part) or re.escape(part) for part in re.split(r"([*?])", pattern)))


def _fill_in(pattern: str, found: Found, target: str) -> str:
    if pattern.startswith("re:"):
        return found.expand(target)
    texts = iter(found.groups())
    return re.sub(r"[*?]", lambda wild: next(texts, wild[0]), target)


def _check_pattern(pattern: object) -> None:
    if not isinstance(pattern, str):
        raise TypeError(f"a pattern is a str, not {pattern!r}")
    try:
        _compile(pattern)
    except ValueError as error:
        raise ValueError(
            f"pattern {pattern!r:.200} is not a regular expression, or may never end: {error}"
        ) from error
