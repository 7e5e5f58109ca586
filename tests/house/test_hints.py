"""Every hint of an error is obeyed by a test, or listed with the reason why it cannot be."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

PROJECT = Path(__file__).parents[2]
NOT_OBEYED = Path(__file__).with_name("hints_not_obeyed.txt")
MARK = "\n  hint: "


def parse(folder: str) -> Iterator[tuple[Path, ast.Module]]:
    for path in sorted((PROJECT / folder).rglob("*.py")):
        yield path, ast.parse(path.read_text(encoding="utf-8"))


def read_texts(node: ast.expr | None, known: dict[str, list[str]]) -> list[str]:
    """Return the texts that an expression can have, with ``{}`` in the place of values."""
    match node:
        case ast.Constant(value=str(text)):
            return [text]
        case ast.JoinedStr():
            return ["".join(str(one.value) if isinstance(one, ast.Constant) else "{}" for one in node.values)]
        case ast.BinOp(op=ast.Add()):
            rights = read_texts(node.right, known) or ["{}"]
            return [left + right for left in read_texts(node.left, known) or ["{}"] for right in rights]
        case ast.IfExp():
            return [*read_texts(node.body, known), *read_texts(node.orelse, known)]
        case ast.BoolOp():
            return [text for one in node.values for text in read_texts(one, known)]
        case ast.Name():
            return known.get(node.id, [])
        case ast.Dict():
            return [text for one in node.values for text in read_texts(one, known)]
        case ast.Subscript() | ast.Attribute():
            return read_texts(node.value, known)
        case ast.Call(func=ast.Attribute(attr="get", value=ast.Name() as table)):
            return read_texts(table, known)
    return []


def find_position(function: ast.FunctionDef | ast.ClassDef) -> int | None:
    """Return the index of the argument ``hint`` in a call of a function or of a row of a table."""
    if isinstance(function, ast.ClassDef):
        fields = [one.target.id for one in function.body if isinstance(one, ast.AnnAssign)]  # type: ignore[union-attr]
        return next((fields.index(one) for one in ("advice", "hint") if one in fields), None)
    names = [one.arg for one in function.args.args if one.arg not in ("self", "cls")]
    return names.index("hint") if "hint" in names else None


@cache
def list_hints() -> dict[str, str]:
    """Return the hints of the package, with ``{}`` in the place of values, and a file of each."""
    files, hints, taking = list(parse("paddlelike")), dict[str, str](), {}
    advisers = {"explain_python_error"}  # functions whose results are hints
    for _, tree in files:
        for one in ast.walk(tree):
            if isinstance(one, ast.keyword) and one.arg == "hint":
                calls = [n.func for n in ast.walk(one.value) if isinstance(n, ast.Call)]
                advisers |= {getattr(n, "attr", getattr(n, "id", "")) for n in calls}
            if isinstance(one, ast.FunctionDef | ast.ClassDef):
                at = find_position(one)
                if at is not None:
                    taking[one.name] = at
    for path, tree in files:
        known: dict[str, list[str]] = {}
        for one in ast.walk(tree):
            if isinstance(one, ast.Assign | ast.AnnAssign | ast.AugAssign):
                target = one.targets[0] if isinstance(one, ast.Assign) else one.target
                if isinstance(target, ast.Name):
                    known.setdefault(target.id, []).extend(read_texts(one.value, known))
        found: list[str] = []
        parts = {part for one in ast.walk(tree) if isinstance(one, ast.JoinedStr) for part in one.values}
        for one in ast.walk(tree):
            if isinstance(one, ast.Call):
                found += [t for k in one.keywords if k.arg == "hint" for t in read_texts(k.value, known)]
                name = getattr(one.func, "attr", getattr(one.func, "id", ""))
                if name in taking and taking[name] < len(one.args):
                    found += read_texts(one.args[taking[name]], known)
            elif isinstance(one, ast.FunctionDef) and one.name in advisers:
                returns = [r for r in ast.walk(one) if isinstance(r, ast.Return)]
                found += [t for r in returns for t in read_texts(r.value, known) if " " in t]
            elif isinstance(one, ast.JoinedStr | ast.Constant) and one not in parts:
                found += [t.partition(MARK)[2] for t in read_texts(one, {}) if MARK in t]
        for text in found:
            if len(text.replace("{}", "").strip()) > 3 and "\n" not in text:
                hints.setdefault(text, path.relative_to(PROJECT / "paddlelike").as_posix())
    return hints


@cache
def list_obeyed() -> set[str]:
    """Return the hints that the cases of tests name: the rows ``Advice`` and the mark ``obeys``."""
    found = set()
    for _, tree in parse("tests"):
        for one in ast.walk(tree):
            if isinstance(one, ast.Call):
                name = getattr(one.func, "attr", getattr(one.func, "id", ""))
                texts = one.args[1:2] if name == "Advice" else one.args if name == "obeys" else []
                found.update(text for one in texts for text in read_texts(one, {}))
    return found


def list_excused() -> dict[str, str]:
    """Return the hints that no test obeys, each with its reason."""
    reason, found = "", {}
    for line in NOT_OBEYED.read_text(encoding="utf-8").splitlines():
        if line.startswith("# "):
            reason = line[2:]
        elif line:
            found[line] = reason
    return found


def is_obeyed(hint: str) -> bool:
    return any(part in hint and len(part) >= min(len(hint), 12) for part in list_obeyed())


def test_every_hint_is_obeyed_by_a_test_or_has_a_reason() -> None:
    excused = list_excused()
    missing = [f"{path}: {hint}" for hint, path in list_hints().items() if not is_obeyed(hint)]
    assert [one for one in missing if one.partition(": ")[2] not in excused] == []
    assert [one for one in excused if one not in list_hints() or is_obeyed(one)] == []


def test_every_case_quotes_a_hint() -> None:
    assert [part for part in sorted(list_obeyed()) if not any(part in hint for hint in list_hints())] == []
