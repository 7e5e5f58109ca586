"""Every hint of an error is obeyed by a test, or listed with the reason why it cannot be."""

from __future__ import annotations

import ast
import pkgutil
import re
import tomllib
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow  # reads every module

PROJECT = Path(__file__).parents[2]
NOT_OBEYED = Path(__file__).with_name("not_obeyed.txt")
MARK = "\n  hint: "


@cache
def read(folder: str) -> dict[Path, str]:
    return {path: path.read_text(encoding="utf-8") for path in sorted((PROJECT / folder).rglob("*.py"))}


def walk(folder: str, words: Iterable[str]) -> Iterator[tuple[Path, list[ast.AST]]]:
    """Yield each module of a folder that contains one of the words, with its nodes."""
    pattern = re.compile("|".join(map(re.escape, words)))
    for path, text in read(folder).items():
        if pattern.search(text):
            yield path, list(ast.walk(ast.parse(text)))


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


def is_adviser(function: ast.FunctionDef, path: Path, advisers: set[tuple[str, str]]) -> bool:
    """Return whether a hint calls a function or method of this name, in the same module for a private one."""
    is_method = [one.arg for one in function.args.args[:1]] == ["self"]
    where = str(path) if function.name.startswith("_") else ""
    return (where + ".", function.name) in advisers or (not is_method and (where, function.name) in advisers)


@cache
def list_hints() -> dict[str, str]:
    """Return the hints of the package, with ``{}`` in the place of values, and a file of each."""
    hints, taking = dict[str, str](), {}
    advisers = {("", "explain_python_error")}  # functions whose results are hints, private ones by module
    for path, nodes in walk("paddlelike", ["hint", "advice"]):
        for one in nodes:
            is_hint = isinstance(one, ast.Assign) and getattr(one.targets[0], "id", "") == "hint"
            if is_hint or (isinstance(one, ast.keyword) and one.arg == "hint"):
                calls = [n.func for n in ast.walk(one) if isinstance(n, ast.Call)]
                for call in calls:
                    name = getattr(call, "attr", getattr(call, "id", ""))
                    where = str(path) if name.startswith("_") else ""
                    advisers.add((where + "." * isinstance(call, ast.Attribute), name))
            if isinstance(one, ast.FunctionDef | ast.ClassDef):
                at = find_position(one)
                if at is not None:
                    taking[one.name] = at
    for path, nodes in walk("paddlelike", ["hint", *taking, *{name for _, name in advisers} - {""}]):
        known: dict[str, list[str]] = {}
        for one in nodes:
            if isinstance(one, ast.Assign | ast.AnnAssign | ast.AugAssign):
                target = one.targets[0] if isinstance(one, ast.Assign) else one.target
                if isinstance(target, ast.Name):
                    known.setdefault(target.id, []).extend(read_texts(one.value, known))
        found: list[str] = []
        parts = {part for one in nodes if isinstance(one, ast.JoinedStr) for part in one.values}
        for one in nodes:
            if isinstance(one, ast.Call):
                found += [t for k in one.keywords if k.arg == "hint" for t in read_texts(k.value, known)]
                name = getattr(one.func, "attr", getattr(one.func, "id", ""))
                if name in taking and taking[name] < len(one.args):
                    found += read_texts(one.args[taking[name]], known)
            elif isinstance(one, ast.FunctionDef) and is_adviser(one, path, advisers):
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
    """Return the hints that the cases of all tests name: the rows ``Advice`` and the mark ``obeys``."""
    found = set()
    for _, nodes in walk("tests", ["hints.advice", "mark.obeys"]):
        for one in nodes:
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
    """Return whether cases quote at least 40% of a hint: the advice, without its reason."""
    return 5 * sum(len(part) for part in list_obeyed() if part in hint) >= 2 * len(hint)


def test_every_hint_is_obeyed_by_a_test_or_has_a_reason() -> None:
    excused = list_excused()
    missing = [f"{path}: {hint}" for hint, path in list_hints().items() if not is_obeyed(hint)]
    new = [one for one in missing if one.partition(": ")[2] not in excused]
    assert new == [], (
        f"give each a row of Advice in tests/hints, or a line with a reason in {NOT_OBEYED.name}"
    )
    assert [one for one in excused if one not in list_hints() or is_obeyed(one)] == []


NAMES = re.compile(r"\b((?:fluid|paddlelike|layers|training)(?:\.[A-Za-z]\w*)+)")
OPTIONS = re.compile(r"(?<![\w-])--([a-z][a-z_-]+)")
VARIABLES = re.compile(r"\b((?:FLAGS|PADDLE|PADDLELIKE)_\w+)\b")
#: What Paddle 3, XLA and tf2onnx read.
OF_OTHERS = {"FLAGS_enable_pir_api", "xla_force_host_platform_device_count", "tflite"}


def test_the_names_in_hints_exist() -> None:
    source = "\n".join(read("paddlelike").values())
    pattern = r'"--([a-z][a-z_-]+)"|^ +([a-z]+): (?:Annotated\[|Port)'
    options = {one or other for one, other in re.findall(pattern, source, re.MULTILINE)}
    unknown = []
    for hint in list_hints():
        names = NAMES.findall(hint.replace("fluid.fluid", "fluid"))
        unknown += [name for name in names if not can_resolve(name)]
        unknown += [name for name in OPTIONS.findall(hint) if name not in options | OF_OTHERS]
        unknown += [
            one for one in VARIABLES.findall(hint) if f'"{one}"' not in source and one not in OF_OTHERS
        ]
    assert unknown == []


def can_resolve(name: str) -> bool:
    path = re.sub(r"^fluid\b", "paddlelike", re.sub(r"^(layers|training)\b", r"paddlelike.\1", name))
    try:
        pkgutil.resolve_name(path)
    except (ImportError, AttributeError):
        return False
    return True


def test_extras_in_hints_provide_the_package_that_is_missing() -> None:
    """Each ``extra=`` of an error is in pyproject.toml, and holds the package whose import failed."""
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = {
        extra: {re.split(r"[^\w-]", one)[0].lower() for one in wanted}
        for extra, wanted in project["optional-dependencies"].items()
    }
    distributions = {"grpc": "grpcio", "PIL": "pillow", "cv2": "opencv-python-headless"}
    named = set()
    for path, nodes in walk("paddlelike", ["extra"]):
        for one in nodes:
            if not isinstance(one, ast.Try):
                continue
            calls = [n for h in one.handlers for n in ast.walk(h) if isinstance(n, ast.Call)]
            words = [word.value for call in calls for word in call.keywords if word.arg == "extra"]
            given = [word for word in words if isinstance(word, ast.Constant)]
            imported = [
                a.name.partition(".")[0] for n in one.body if isinstance(n, ast.Import) for a in n.names
            ]
            for extra in given:
                named.add(extra.value)
                assert extra.value in extras, path
                assert {distributions.get(name, name.lower()) for name in imported} <= extras[extra.value], (
                    path
                )
    assert named >= {"arrow", "dist", "hdf5", "jax", "onnx", "ray"}


def test_every_case_quotes_a_hint() -> None:
    assert [part for part in sorted(list_obeyed()) if not any(part in hint for hint in list_hints())] == []
