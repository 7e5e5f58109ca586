"""Scripts and notebooks as syntax trees, and imports between the modules of a folder."""

from __future__ import annotations

import ast
import json
import os
import re
import warnings
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from paddlelike.lazy import dataclass

_SKIPPED: Final = frozenset({"__pycache__", "node_modules", "site-packages"})
_MARKS: Final = (".git", ".hg", "setup.py", "setup.cfg", "pyproject.toml", "requirements.txt")
_LARGEST: Final = 20 << 20  # bytes


@dataclass(frozen=True)
class Source:
    """A script, or the code of all cells of a notebook.

    Attributes
    ----------
    tree
        The syntax tree, or None if the script cannot be read; ``problem`` then gives the reason and
        ``line`` the place.
    cells
        The first line of every cell of code in a notebook.
    """

    path: str
    tree: ast.Module | None
    problem: str = ""
    line: int = 0
    cells: tuple[int, ...] = ()

    def format_line(self, line: int) -> str:
        """Return a line number for people; in a notebook, the cell and the line in it."""
        index = sum(first <= line for first in self.cells)
        return f"cell {index}, line {line - self.cells[index - 1] + 1}" if index else str(line)


def find_project(path: str) -> str:
    """Return the folder whose modules a script may import: its project's folder, or else its own folder."""
    own = folder = os.path.dirname(path)
    while os.path.dirname(folder) != folder:
        if any(os.path.exists(os.path.join(folder, mark)) for mark in _MARKS):
            return folder
        folder = os.path.dirname(folder)
    return own


def walk_files(path: str) -> Iterator[str]:
    """Yield the files of a folder, or the file itself; hidden folders and links to folders are left out."""
    if os.path.isfile(path):
        yield path
        return
    for folder, folders, files in os.walk(path):
        folders[:] = sorted(one for one in folders if one not in _SKIPPED and not one.startswith("."))
        yield from (os.path.join(folder, name) for name in sorted(files))


def read_source(path: str) -> Source:
    """Return a script or notebook as a syntax tree."""
    try:
        if os.path.getsize(path) > _LARGEST:
            return Source(path, None, f"it is larger than {_LARGEST >> 20} MiB, too large for a script")
        data = Path(path).read_bytes()
        cells: list[int] = []
        text: str | bytes = _join_cells(data, cells) if path.endswith(".ipynb") else data
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # escapes that Python warns of
            return Source(path, ast.parse(text, path), cells=tuple(cells))
    except SyntaxError as error:
        return Source(path, None, f"it is not Python 3: {error.msg}", error.lineno or 0)
    except (OSError, ValueError, RecursionError, MemoryError, KeyError, TypeError, AttributeError) as error:
        return Source(path, None, f"it cannot be read: {error}")


def _join_cells(data: bytes, starts: list[int]) -> str:
    """Return the code of a notebook; the commands of IPython become ``pass``."""
    lines: list[str] = []
    for cell in json.loads(data)["cells"]:
        if cell["cell_type"] != "code":
            continue
        starts.append(len(lines) + 1)
        code = "".join(cell["source"]).splitlines()
        foreign = bool(code) and code[0].startswith("%%")
        lines += [
            "pass" if foreign else re.sub(r"^(\s*)[%!?].*|^(\s*)\S+\?+$", r"\1\2pass", one) for one in code
        ]
    return "\n".join(lines)


def find_module(name: str, level: int, file: str, paths: Iterable[str], root: str) -> str | None:
    """Return the file of a module that a script imports: the one that Python would find, else one in the
    folder that fits.

    Scripts change ``sys.path`` in ways that cannot be seen here. So every folder from the script's up to
    ``root`` is searched, and then the whole folder for a single file whose path ends like the name.
    """
    below = name.replace(".", os.sep)
    start = os.path.dirname(file)
    if level:
        for _ in range(level - 1):
            start = os.path.dirname(start)
        return _find_file(os.path.join(start, below) if below else start)
    while True:
        found = _find_file(os.path.join(start, below))
        if found is not None:
            return found
        parent = os.path.dirname(start)
        if parent == start or not start.startswith(root) or start == root:
            break
        start = parent
    ends = (f"{os.sep}{below}.py", f"{os.sep}{below}{os.sep}__init__.py")
    candidates = [path for path in paths if path.endswith(ends)]
    return candidates[0] if len(candidates) == 1 else None


def _find_file(path: str) -> str | None:
    names = (f"{path}.py", os.path.join(path, "__init__.py"))
    return next((name for name in names if os.path.isfile(name)), path if os.path.isdir(path) else None)


def is_installed(package: str) -> bool:
    """Return whether a package can be imported, without importing it."""
    try:
        return find_spec(package) is not None
    except (ImportError, ValueError):
        return False
