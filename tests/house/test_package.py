"""What is said about the package is true: its version, its dependencies, its extras, its systems."""

from __future__ import annotations

import ast
import re
import tomllib
from collections import defaultdict
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


def test_every_change_note_has_a_type_and_one_sentence() -> None:
    types = {one["directory"] for one in PYPROJECT_FILE["tool"]["towncrier"]["type"]}
    for note in (PROJECT / ".changes").iterdir():
        if note.name != "README.md":
            assert re.fullmatch(rf"\+[\w-]+\.({'|'.join(types)})\.md", note.name), note.name
            assert note.read_text().strip().endswith("."), note.name


def test_the_citation_names_the_last_release() -> None:
    yaml = pytest.importorskip("yaml", reason="pyyaml is in the extra test")
    cited = yaml.safe_load((PROJECT / "CITATION.cff").read_text())
    heading = f"## [{cited['version']}] - {cited['date-released']}"
    assert re.findall(r"^## \[\d.*", (PROJECT / "CHANGELOG.md").read_text(), re.MULTILINE)[0] == heading
    assert cited["license"] == PYPROJECT["license"]


@pytest.mark.parametrize("requirement", PYPROJECT["dependencies"])
def test_every_dependency_is_imported(requirement: str) -> None:
    assert is_imported(find_name(requirement))


@pytest.mark.parametrize("extra", sorted(EXTRAS.keys() - FOR_WORK))
def test_every_extra_is_named_by_code_that_uses_it(extra: str) -> None:
    names = (f"paddlelike[{extra}]", f'extra="{extra}"')
    assert any(name in source for source in SOURCES.values() for name in names)
    assert [name for name in map(find_name, EXTRAS[extra]) if not is_imported(name)] == []


def test_extras_named_in_messages_and_pages_exist() -> None:
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
def test_every_finding_runs_without_the_package_and_reports_its_result(script: Path) -> None:
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


SYSTEMS = PROJECT / "tutorials" / "reference" / "platforms.md"

#: Names of Python, the C library and the kernel that macOS lacks, by the documentation of Python.
LINUX = {
    "CLOCK_BOOTTIME", "EPOLLIN", "F_ADD_SEALS", "F_OFD_GETLK", "F_OFD_SETLK", "F_OFD_SETLKW", "F_SETPIPE_SZ",
    "MSG_ERRQUEUE", "O_DIRECT", "O_NOATIME", "O_PATH", "O_TMPFILE", "RUSAGE_THREAD", "RWF_NOWAIT",
    "SO_BINDTODEVICE", "SO_PEERCRED", "TCP_KEEPCNT", "TCP_KEEPIDLE", "TCP_KEEPINTVL", "TCP_QUICKACK",
    "TCP_USER_TIMEOUT",
    "copy_file_range", "epoll", "eventfd", "getrandom", "getxattr", "listxattr", "mallopt", "malloc_trim",
    "memfd_create", "pidfd_open", "posix_fadvise", "posix_fallocate", "prctl", "prlimit", "process_vm_readv",
    "removexattr", "renameat2", "sched_getaffinity", "sched_setaffinity", "setns", "setpriority", "setxattr",
    "sigtimedwait", "sigwaitinfo", "splice", "statx", "sync_file_range", "syncfs", "unshare",
}  # fmt: skip
X86 = re.compile(r"\bavx|\bsse[234]|x86|amd64|\bcpuid", re.IGNORECASE)
FILES = re.compile(r"/(proc|sys)/[\w/]*")
USES = re.compile(rf"MADV_|/proc/|/sys/|{'|'.join(sorted(LINUX))}")


def list_uses() -> dict[str, set[str]]:
    """Return the modules that use each name or file, below the package."""
    found = defaultdict[str, set[str]](set)
    for path, source in SOURCES.items():
        if USES.search(source) is None:
            continue
        module = path.relative_to(PROJECT / "paddlelike").as_posix()
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Attribute) and (node.attr in LINUX or node.attr.startswith("MADV_")):
                found[node.attr].add(module)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                if node.value in LINUX or node.value.startswith("MADV_"):
                    found[node.value].add(module)
                elif begin := FILES.match(node.value):
                    found[begin[0]].add(module)
    return dict(found)


def test_the_linux_page_lists_exactly_the_uses_of_linux() -> None:
    listed = {}
    for line in SYSTEMS.read_text().splitlines():
        if line.startswith("| `"):
            _, names, modules, purpose, elsewhere, _ = line.split("|")
            assert purpose.strip()
            assert elsewhere.strip()
            for name in re.findall(r"`(.*?)`", names):
                listed[name] = set(re.findall(r"`(.*?)`", modules))
    assert listed == list_uses()


def test_only_two_modules_mention_a_processor_architecture() -> None:
    naming = set()
    for path, source in SOURCES.items():
        if X86.search(source) is None:
            continue
        tree = ast.parse(source)
        docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        texts = (
            node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in docstrings
        )
        if any(isinstance(one.value, str) and X86.search(one.value) for one in texts):
            naming.add(path.relative_to(PROJECT / "paddlelike").as_posix())
    assert naming == {"core/__init__.py", "framework/quirks.py"}
