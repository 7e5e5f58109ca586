"""Scan a folder of scripts and models for unsupported names, and for lines where scripts stop."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Sequence
from typing import NoReturn

from paddlelike.errors import FormatError, StorageError
from paddlelike.foundation.amounts import format_count
from paddlelike.foundation.garbage import pause_collection
from paddlelike.interop.content import open_content
from paddlelike.scan.follow import Folder
from paddlelike.scan.models import look_into_files, look_into_path
from paddlelike.scan.python_names import PythonNames
from paddlelike.scan.report import FileFinding, Scan, ScriptFinding, ScriptVerdict, Verdict
from paddlelike.scan.sources import find_project, is_installed, walk_files
from paddlelike.storage.problems import raises_own_errors

_SCRIPTS = (".py", ".ipynb")
_MOST_FILES = 50_000  # of the project around one script


@raises_own_errors
@pause_collection  # syntax trees stay
def scan(path: str | os.PathLike[str], *, progress: Callable[[int, int], None] | None = None) -> Scan:
    r"""Return the supported and unsupported names, operators and files of a folder.

    Nothing of the folder is run: scripts and notebooks are read as syntax trees, models as their bytes.

    Parameters
    ----------
    progress
        Called with the scripts done and all scripts.

    Raises
    ------
    MissingFileError
        There is nothing under the path.
    FormatError
        There are no scripts, models and values under the path.

    >>> import pathlib, tempfile
    >>> home = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (home / "train.py").write_text("import paddle.fluid as fluid\nfluid.dygraph.guard()\n")
    >>> found = scan(home)
    >>> bool(found), found.scripts[0].verdict, found.scripts[0].findings[0].line
    (False, 'stops', '2')
    """
    root = _resolve(os.fspath(path))
    if not os.path.lexists(root) or (os.path.isfile(root) and not root.endswith(_SCRIPTS)):
        return _scan_path(os.fspath(path), root)
    files = list(walk_files(root))
    home, around = root, files
    if os.path.isfile(root):  # it imports modules of its project, as in a scan of the project
        home = find_project(root)
        around = [*itertools.islice(walk_files(home), _MOST_FILES), root]
    scripts = frozenset(one for one in around if one.endswith(_SCRIPTS))
    judged = [one for one in files if one in scripts]
    verdicts = []
    with PythonNames() as python:
        folder = Folder(home, scripts, python)
        for index, file in enumerate(judged):
            verdicts.append(_judge(os.path.relpath(file, home), folder.follow_script(file)))
            if progress is not None:
                progress(index + 1, len(judged))
    kinds, operators, unknown = look_into_files([one for one in files if not one.endswith(_SCRIPTS)], home)
    if not judged and not _are_of_use(kinds):
        _refuse(os.fspath(path), len(files))
    return Scan(
        path=os.fspath(path) or ".",
        scripts=tuple(verdicts),
        files=tuple(kinds),
        names=dict(sorted(folder.uses.items())),
        packages={name: is_installed(name) for name in sorted(folder.packages)},
        operators=dict(sorted(operators.items())),
        unknown_operators=tuple(sorted(unknown)),
    )


def _resolve(path: str) -> str:
    """Return the real path. Raises StorageError for a text that is not a path."""
    try:
        return os.path.realpath(path)
    except ValueError as error:
        raise StorageError(f"{path!r} is not a path: {error}") from error


def _scan_path(path: str, root: str) -> Scan:
    """Return the kind and the findings of a file, or of the files under a prefix."""
    kinds, operators, unknown = look_into_path(path, os.path.dirname(root))
    if not _are_of_use(kinds):
        with open_content(path) as content:
            raise FormatError(f"{path} is not a script, a model or values", hint=content.explain_unread())
    return Scan(path, (), tuple(kinds), {}, {}, dict(sorted(operators.items())), tuple(sorted(unknown)))


def _are_of_use(files: Sequence[FileFinding]) -> bool:
    """Return whether one of the files is a model or holds values, or should by its name."""
    return any(one.stops or one.kind not in ("other", "manifest") for one in files)


def _refuse(path: str, count: int) -> NoReturn:
    """Raise the error for a folder without scripts, models or values."""
    with open_content(path or ".") as content:
        raise FormatError(
            f"none of the {format_count(count, 'file')} in {path} is a script, a model or values",
            hint=content.explain_unread(),
        )


def _judge(path: str, findings: list[ScriptFinding]) -> ScriptVerdict:
    """Return the verdict on a script from its findings."""
    stops = [one.certain for one in findings if one.kind != "unseen"]
    verdict: Verdict = "stops" if any(stops) else "may stop" if stops else "runs"
    return ScriptVerdict(path, verdict, tuple(findings))
