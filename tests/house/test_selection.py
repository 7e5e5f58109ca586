"""The default selection of the tests needs the extra ``test`` alone: what needs more is slow."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

from tests.conftest import ALL_SLOW

PROJECT = Path(__file__).parent.parent.parent
METADATA = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
EXTRAS = METADATA["optional-dependencies"]


def name_packages(requirements: list[str]) -> list[str]:
    return [re.split(r"[^\w-]", requirement)[0] for requirement in requirements]


MORE = name_packages(EXTRAS["test-all"][1:])  # behind "paddlelike[test]"
NEEDS_MORE = re.compile(
    rf'^ *(?:import|from) (?:{"|".join(MORE)})\b|importorskip\("(?:{"|".join(MORE)})\b|^@needs_numba',
    re.MULTILINE,
)
INSTALLED = {*name_packages(METADATA["dependencies"]), *name_packages(EXTRAS["test"])}
#: At the top of a module: what it imports, from where, or skips without.
TOP = re.compile(
    r"^(?:import (?P<module>\w+)|from (?P<source>[\w.]+) import (?:\((?P<names>[^)]*)\)|(?P<name>.*))"
    r'|(?:\w+ = )?pytest\.importorskip\(\s*"(?P<skipped>\w+))',
    re.MULTILINE,
)


def test_tests_that_need_further_extras_are_marked_slow() -> None:
    assert {"jax", "numba", "onnxruntime"} <= set(MORE)
    wrong = []
    for path in (PROJECT / "tests").rglob("test_*.py"):
        text = path.read_text()
        if not ALL_SLOW.search(text):
            parts = re.split(r"\n\n\n(?=@|def |class )", text)
            wrong += [
                f"{path.name}: {part.partition('def ')[2].partition('(')[0]}"
                for part in parts
                if NEEDS_MORE.search(part) and "pytest.mark.slow" not in part
            ]
    assert wrong == []


def is_installed(module: str, packages: Mapping[str, list[str]]) -> bool:
    """Return whether the extra ``test`` brings a module."""
    offered = {package.lower() for package in packages.get(module, ())}
    return module in {*sys.stdlib_module_names, "paddlelike"} or not offered.isdisjoint(INSTALLED)


@cache
def read_top(path: Path) -> list[re.Match[str]]:
    text = re.sub(r"(\"\"\"|''')[\s\S]*?\1", "", path.read_text())  # which may hold a script
    return list(TOP.finditer(text))


def find_imports(path: Path, skipped: set[str], seen: set[Path]) -> Iterator[str]:
    """Yield what a file, and what it imports of the tests, imports at the top and does not skip without."""
    seen.add(path)
    for match in read_top(path):
        source = match["module"] or match["source"]
        if match["skipped"]:
            skipped.add(match["skipped"])
        elif source.startswith("tests."):
            for imported in list_files(source, re.findall(r"\w+", match["names"] or match["name"])):
                if imported not in seen:
                    yield from find_imports(imported, skipped, seen)
        elif (module := source.partition(".")[0]) not in {"tests", *skipped}:
            yield module


def list_files(package: str, names: list[str]) -> Iterator[Path]:
    """Yield the files of a module of the tests and of those names of it that are modules."""
    folder = PROJECT / package.replace(".", "/")
    files = [folder.with_suffix(".py"), folder / "__init__.py", *(folder / f"{name}.py" for name in names)]
    yield from filter(Path.is_file, files)


def test_imports_of_the_default_selection_are_installed() -> None:
    packages = packages_distributions()
    assert is_installed("onnx", packages)
    assert not is_installed("onnxruntime", packages)
    missing = [
        f"{path.relative_to(PROJECT)}: {module}"
        for pattern in ("test_*.py", "conftest.py")
        for path in (PROJECT / "tests").rglob(pattern)
        if "plugins" not in path.parts and not ALL_SLOW.search(path.read_text())
        for module in find_imports(path, set(), set())
        if not is_installed(module, packages)
    ]
    assert missing == []
