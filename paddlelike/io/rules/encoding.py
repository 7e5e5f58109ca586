"""Rules as JSON, one rule a line, and as text for people. Nothing in such a file is executed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import Any, Final

from paddlelike.errors import FormatError
from paddlelike.io.rules.rule import Init, Names, Rename, Rule, Skip

_FORMAT: Final = "paddlelike rules"
_VERSION: Final = 1


def encode_rules(rules: Iterable[Rule]) -> str:
    """Return rules as JSON."""
    import json  # late: it takes long

    lines = ",\n  ".join(json.dumps(_encode_rule(rule), ensure_ascii=False) for rule in rules)
    return f'{{"{_FORMAT}": {_VERSION}, "rules": [' + (f"\n  {lines}\n]}}\n" if lines else "]}\n")


def decode_rules(text: str) -> list[Rule]:
    """Return the rules in a text that :func:`encode_rules` wrote.

    Raises
    ------
    FormatError
        The text holds no rules, or an unknown one.
    """
    import json  # late: it takes long

    try:
        front = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"these are not rules: this is not JSON ({error})") from error
    if not isinstance(front, dict) or front.get(_FORMAT) != _VERSION or set(front) != {_FORMAT, "rules"}:
        raise FormatError(f'these are not rules: expected {{"{_FORMAT}": {_VERSION}, "rules": [...]}}')
    if not isinstance(front["rules"], list):
        raise FormatError(f"these are not rules: a list is expected, not {front['rules']!r:.80}")
    return [_decode_entry(index, entry) for index, entry in enumerate(front["rules"], 1)]


def describe_changes(rule: Rename) -> list[str]:
    """Describe the changes that a rule makes to a value."""
    return [key if value is True else f"{key}={value}" for key, value in list(_encode_rule(rule).items())[2:]]


def describe_rule(rule: Rule) -> str:
    """Return a rule in one line of text."""
    if isinstance(rule, Skip):
        return f"skip {rule.pattern}"
    if isinstance(rule, Init):
        return f"init {rule.pattern}: {rule.value}"
    changes = describe_changes(rule)
    names = f"{', '.join(rule.sources)} -> {', '.join(rule.targets)}"
    return f"{names} ({', '.join(changes)})" if changes else names


def unwrap_single(names: str | Sequence[str]) -> str | Names:
    """Return one name as a str, several as a tuple.

    Raises TypeError for anything else.
    """
    if isinstance(names, str):
        return names
    if not names or not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise TypeError(f"expected one name or several, got {names!r}")
    return names[0] if len(names) == 1 else tuple(names)


def _encode_rule(rule: Rule) -> dict[str, Any]:
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
    "rows": (list, "two row indexes"),
    "concat": (int, "the index of an axis"),
    "split": (int, "the index of an axis"),
    "overlap": (bool, "true or false"),
    "cast": (bool, "true or false"),
    "order": (list, "the indexes of parts"),
}


def _decode_entry(index: int, entry: object) -> Rule:
    try:
        return _decode_rule(entry)
    except (TypeError, ValueError) as error:
        raise FormatError(f"rule {index} ({entry!r:.120}) is not understood: {error}") from error


def _decode_rule(entry: object) -> Rule:
    if not isinstance(entry, dict):
        raise TypeError("a rule must be a JSON object")
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
    for name in {"rows", "order"} & set(changes):
        if not all(type(index) is int for index in changes[name]) or len(entry.get("rows", "ab")) != 2:
            raise TypeError(f"{name} is {_KINDS[name][1]}, not {changes[name]!r}")
        changes[name] = tuple(changes[name])
    return Rename(unwrap_single(entry["from"]), unwrap_single(entry["to"]), **changes)
