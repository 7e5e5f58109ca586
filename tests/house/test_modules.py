"""Every module says what it is about, is short enough to read, and avoids phrases that are hard to read."""

from __future__ import annotations

import re
from pathlib import Path

PROJECT = Path(__file__).parent.parent.parent
MODULES = sorted((PROJECT / "paddlelike").rglob("*.py"))


def test_every_module_states_its_subject() -> None:
    begins = re.compile(r'(?:#[^\n]*\n|\s)*r?"""[ ]*\S')
    assert [str(path) for path in MODULES if begins.match(path.read_text()) is None] == []


def test_every_module_is_readable() -> None:
    modules = [path for path in MODULES if path.name != "__init__.py"]  # a face is a list of names
    assert [str(path) for path in modules if path.read_text().count("\n") > 500] == [], "a second subject?"


def test_the_package_is_typed() -> None:
    assert (PROJECT / "paddlelike" / "py.typed").exists()


PAGES = [
    path
    for folder in ("paddlelike", "tutorials")
    for path in sorted((PROJECT / folder).rglob("*"))
    if path.suffix in (".py", ".md", ".js") and not path.name.endswith(".zh.md") and "out" not in path.parts
]

#: What to avoid, and what to write instead.
AVOIDED = {
    "is not a": r"(?<![Tt]here )\b(?:is|are|was|were) no(?:ne of)? (?!(?:longer|such|more|one)\b)[A-Za-z`]",
    "or None when ...": r"\bNone: nothing\b",
    "how many there are": r"\bhow many .* there are is\b",
    "requested": r"\basked for\b",
    "has another, belongs to another": r"\b(?:is|are) of (?:another|no) \w",
    "no such file: PATH": r"\bthere is no (?:file|file or directory) \{",
    "whose": r"\bof which (?:later|the|only|not|it|next)\b",
    "the number of": r"\bthe count (?:[A-Z] )?of [a-z]+s\b(?! that\b)",
}
ANY_AVOIDED = re.compile("|".join(AVOIDED.values()))


def find_avoided(text: str) -> list[str]:
    """Return each avoided phrase of a text with its line and what to write instead."""
    if ANY_AVOIDED.search(text) is None:
        return []
    return [
        f"line {number}: {found[0]!r}: write {instead!r}"
        for number, line in enumerate(text.splitlines(), 1)
        for instead, pattern in AVOIDED.items()
        if (found := re.search(rf".{{0,20}}{pattern}.{{0,20}}", line)) is not None
    ]


def test_pages_avoid_hard_phrases() -> None:
    found = {str(path): find_avoided(path.read_text(encoding="utf-8")) for path in PAGES}
    assert {path: phrases for path, phrases in found.items() if phrases} == {}


def test_hard_phrases_are_found() -> None:
    assert find_avoided("x is no array") == ["line 1: 'x is no array': write 'is not a'"]
    assert find_avoided("there is no array, and it is no longer here") == []
    for text in ("the file is of another save", "there is no file {path}", "values of which the first"):
        assert len(find_avoided(text)) == 1


def test_test_names_avoid_hard_phrases() -> None:
    names = [
        name
        for path in sorted((PROJECT / "tests").rglob("*.py"))
        for name in re.findall(r"^\s*def (test_\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    ]
    assert len(names) > 3000
    assert [
        name
        for name in names
        if re.search(r"_(?:that|those)_of_|(?<!there)_(?:is|are)_no_(?!longer)|_asked_for", name)
    ] == []
