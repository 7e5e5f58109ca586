"""Ordered lists of rules, made from the arguments of a load or read from files."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from paddlelike.errors import FormatError
from paddlelike.foundation.near_names import suggest_patterns
from paddlelike.io.rules.encoding import decode_rules, describe_rule, encode_rules, unwrap_single
from paddlelike.io.rules.rule import Init, Rename, Rule, Skip, get_matcher, match_targets
from paddlelike.storage.local.files import File

_MOST: Final = 1 << 26  # bytes of a file


class Rules:
    """An ordered list of ``rules``; for every name the first rule that matches decides.

    Parameters
    ----------
    rules
        :class:`Rename`, :class:`Skip` and :class:`Init`, in their order.

    Raises
    ------
    TypeError
        One of ``rules`` is not a :class:`Rename`, :class:`Skip` or :class:`Init`.

    >>> from paddlelike.io.rules.rule import match_targets
    >>> rules = Rules().skip("cls_*").rename("encoder_*.weight", "fc_*.w_0", transpose=True)
    >>> [target for rule in rules for target in match_targets(rule, "encoder_3.weight")]
    ['fc_3.w_0']
    """

    is_recipe = False  # for any network of a kind: some rules may match nothing

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
        order: tuple[int, ...] | None = None,
    ) -> Rules:
        """Return these rules and one more :class:`Rename`."""
        rule = Rename(
            unwrap_single(source), unwrap_single(target), transpose, rows, concat, split, overlap, cast, order
        )
        return Rules((*self._rules, rule))

    def skip(self, pattern: str) -> Rules:
        """Return these rules and one more :class:`Skip`."""
        return Rules((*self._rules, Skip(pattern)))

    def init(self, pattern: str, value: str | float = "keep") -> Rules:
        """Return these rules and one more :class:`Init`."""
        return Rules((*self._rules, Init(pattern, value)))

    @classmethod
    def of(
        cls,
        rules: Rules | Iterable[Rule] | None = None,
        rename: Mapping[str, str | Sequence[str]] | None = None,
        skip: str | Iterable[str] | None = None,
        init: str | float | Mapping[str, str | float] | None = None,
    ) -> Rules:
        """Return the arguments of a load as one list of rules; renames by full name come first."""
        rules_of_call: list[Rule] = []
        for source, target in (rename or {}).items():
            rules_of_call.append(Rename(_literal(source), unwrap_single(target)))
        if skip is not None:
            rules_of_call += [Skip(pattern) for pattern in ([skip] if isinstance(skip, str) else skip)]
        if rules is not None:
            rules_of_call += Rules(rules)
        if isinstance(init, Mapping):
            rules_of_call += [Init(pattern, value) for pattern, value in init.items()]
        elif init is not None:
            rules_of_call.append(Init("*", init))
        return cls(rules_of_call)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the rules as JSON that people can read and edit."""
        from paddlelike.storage.local.transaction import write_all  # late: most processes only read

        directory, name = os.path.split(os.fspath(path))
        write_all(directory or ".", {name: [encode_rules(self).encode()]})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Rules:
        """Read the rules that :meth:`save` wrote.

        Raises
        ------
        FormatError
            The file holds no rules, or an unknown one.
        """
        with File(path) as file:
            try:
                return cls.decode(file.read(_MOST).decode())
            except UnicodeDecodeError as error:
                raise FormatError(f"these are not rules: {error}") from error

    @classmethod
    def decode(cls, text: str) -> Rules:
        """Return the rules in a text that :meth:`save` wrote.

        Raises
        ------
        FormatError
            The text holds no rules, or an unknown one.
        """
        return cls(decode_rules(text))

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
        return "\n".join(describe_rule(rule) for rule in self) or "no rules"


def _literal(name: str) -> str:
    """Return a pattern that matches this name only."""
    return "re:" + re.escape(name) if name.startswith("re:") or re.search(r"[*?]", name) else name


def find_idle(
    rules: Iterable[Rule], theirs: Sequence[str], ours: Sequence[str] | None = None
) -> Iterator[str]:
    """Yield a line for every rule that matches none of ``theirs``, the names of the files.

    ``ours`` are the names of the program; a missing full name is reported elsewhere.

    >>> print(*find_idle(Rules().skip("fc1_*"), ["fc_1.w_0"]))
    skip: 'fc1_*' matches no variable; the name most like it is 'fc_1.w_0'
    """
    for rule in rules:
        what = {Rename: "rename", Skip: "skip"}.get(type(rule), "init")
        pattern, names = rule.sources[0] if isinstance(rule, Rename) else rule.pattern, theirs
        if isinstance(rule, Rename):
            wild = any(one.startswith("re:") or "*" in one or "?" in one for one in rule.sources)
            if (ours is not None and not wild) or any(match_targets(rule, name) for name in theirs):
                continue
        else:
            names = [*(ours or ()), *(theirs if isinstance(rule, Skip) else ())]
            if any(map(get_matcher(pattern), names)):
                continue
        near = suggest_patterns(pattern, names)
        yield f"{what}: {pattern!r} matches no variable{' in the files' * (what == 'rename')}{near}"
