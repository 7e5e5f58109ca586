"""What is said about the package is true: its version, its dependencies, its extras."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

import paddlelike as fluid

PROJECT = Path(__file__).parent.parent.parent
PYPROJECT_FILE = tomllib.loads((PROJECT / "pyproject.toml").read_text())
PYPROJECT = PYPROJECT_FILE["project"]
SOURCES = {path: path.read_text() for path in (PROJECT / "paddlelike").rglob("*.py")}
EXTRAS: dict[str, list[str]] = PYPROJECT["optional-dependencies"]

#: Extras for work on the project, which are not installed to use it.
FOR_WORK = {"dev", "docs", "test", "test-all", "tutorials"}

#: The name under which a package is imported, where that is another.
IMPORTED_AS = {
    "grpcio": "grpc",
    "opencv-python-headless": "cv2",
    "pillow": "PIL",
    "protobuf": "google.protobuf",
}


def find_name(requirement: str) -> str:
    match = re.match(r"[\w.-]+", requirement)
    assert match is not None
    return match[0]


def is_imported(name: str) -> bool:
    module = re.escape(IMPORTED_AS.get(name, name))
    pattern = re.compile(rf'''^\s*(?:import|from) {module}\b|"{module}[."]''', re.MULTILINE)
    return any(pattern.search(source) for source in SOURCES.values())


def test_the_changelog_begins_with_the_version() -> None:
    headings = re.findall(r"^## \[(.*?)\]", (PROJECT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[0] == fluid.__version__
    assert headings == sorted(headings, key=lambda one: [*map(int, one.split("."))], reverse=True)


def test_a_note_of_a_change_has_a_type_and_one_sentence() -> None:
    types = {one["directory"] for one in PYPROJECT_FILE["tool"]["towncrier"]["type"]}
    for note in (PROJECT / ".changes").iterdir():
        if note.name != "README.md":
            assert re.fullmatch(rf"\+[\w-]+\.({'|'.join(types)})\.md", note.name), note.name
            assert note.read_text().strip().endswith("."), note.name


def test_the_citation_is_of_the_last_release() -> None:
    yaml = pytest.importorskip("yaml", reason="pyyaml is in the extra test")
    cited = yaml.safe_load((PROJECT / "CITATION.cff").read_text())
    heading = f"## [{cited['version']}] - {cited['date-released']}"
    assert re.findall(r"^## \[\d.*", (PROJECT / "CHANGELOG.md").read_text(), re.MULTILINE)[0] == heading
    assert cited["license"] == PYPROJECT["license"]


@pytest.mark.parametrize("requirement", PYPROJECT["dependencies"])
def test_a_dependency_is_imported(requirement: str) -> None:
    assert is_imported(find_name(requirement))


@pytest.mark.parametrize("extra", sorted(EXTRAS.keys() - FOR_WORK))
def test_an_extra_has_a_user_who_names_it(extra: str) -> None:
    assert any(f"paddlelike[{extra}]" in source for source in SOURCES.values())
    assert [name for name in map(find_name, EXTRAS[extra]) if not is_imported(name)] == []


def test_the_extras_that_messages_and_pages_name_exist() -> None:
    texts = [
        *SOURCES.values(),
        *(path.read_text() for path in PROJECT.rglob("*.md") if ".venv" not in path.parts),
    ]
    named = {extra for text in texts for extra in re.findall(r"(?:paddlelike|'\.)\[([a-z-]+)\]", text)}
    assert named - EXTRAS.keys() == set()


def test_the_wheel_has_no_compiled_code() -> None:
    built = {path.suffix for path in (PROJECT / "paddlelike").rglob("*") if path.is_file()}
    assert built - {".pyc"} <= {".css", ".html", ".js", ".md", ".py", ".pyi", ".txt", ".typed"}


FINDINGS = sorted((PROJECT / "findings").glob("*"))


@pytest.mark.parametrize("script", FINDINGS, ids=lambda path: path.name)
def test_a_finding_stands_alone_and_says_what_was_seen(script: Path) -> None:
    text = script.read_text()
    head = text.splitlines()[:6]
    assert head[0] == "#!/usr/bin/env bash"
    assert all(line.startswith("#") for line in head[:5])
    assert any(line.startswith("# Seen: ") and re.search(r"\d+\.\d+", line) for line in head)
    assert script.stat().st_mode & 0o111, "not executable"
    assert "mktemp -d" in text
    assert "trap 'rm -rf \"$folder\"' EXIT" in text
    assert re.findall(r"install -q (.*)", text), "installs nothing"
    assert [line for line in re.findall(r"install -q (.*)", text) if "==" not in line] == [], "not pinned"
    assert "paddlelike" not in text.lower()
