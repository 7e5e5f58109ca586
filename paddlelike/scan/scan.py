"""Scan a folder of scripts and models: what of it is known here, what is not, and what stops where."""

from __future__ import annotations

import os
from collections.abc import Callable

from paddlelike.errors import MissingFileError
from paddlelike.scan.evaluation import Evaluation
from paddlelike.scan.execution_path import Folder
from paddlelike.scan.models import look_into_files
from paddlelike.scan.python_names import PythonNames
from paddlelike.scan.report import Scan, ScriptFinding, ScriptVerdict, Verdict
from paddlelike.scan.sources import is_installed, read_source, walk_files

__all__ = ["scan"]

_SCRIPTS = (".py", ".ipynb")


def scan(path: str | os.PathLike[str], *, progress: Callable[[int, int], None] | None = None) -> Scan:
    r"""Return which names, operators, files and formats of a folder are known here, and what stops where.

    Nothing of the folder is run: scripts and notebooks are read as syntax trees, models as their bytes.

    Parameters
    ----------
    progress
        Called with the scripts done and all scripts.

    Raises
    ------
    MissingFileError
        There is nothing under the path.

    >>> import pathlib, tempfile
    >>> home = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (home / "train.py").write_text("import paddle.fluid as fluid\nfluid.dygraph.guard()\n")
    >>> found = scan(home)
    >>> bool(found), found.scripts[0].verdict, found.scripts[0].findings[0].line
    (False, 'stops', '2')
    """
    root = os.path.realpath(path)
    if not os.path.lexists(root):
        raise MissingFileError(f"there is no file or directory {os.fspath(path)}")
    files = list(walk_files(root))
    sources = {one: read_source(one) for one in files if one.endswith(_SCRIPTS)}
    home = root if os.path.isdir(root) else os.path.dirname(root)
    verdicts = []
    with PythonNames() as python:
        folder = Folder(home, sources, python)
        for index, file in enumerate(sources):
            verdicts.append(_judge(os.path.relpath(file, home), Evaluation(folder).run(file)))
            if progress is not None:
                progress(index + 1, len(sources))
    kinds, operators, unknown = look_into_files([one for one in files if not one.endswith(_SCRIPTS)], home)
    return Scan(
        path=os.fspath(path),
        scripts=tuple(verdicts),
        files=tuple(kinds),
        names=dict(sorted(folder.uses.items())),
        packages={name: is_installed(name) for name in sorted(folder.packages)},
        operators=dict(sorted(operators.items())),
        unknown_operators=tuple(sorted(unknown)),
    )


def _judge(path: str, findings: list[ScriptFinding]) -> ScriptVerdict:
    """Return the verdict on a script by what was found on its way."""
    stops = [one.certain for one in findings if one.kind != "unseen"]
    verdict: Verdict = "stops" if any(stops) else "may stop" if stops else "runs"
    return ScriptVerdict(path, verdict, tuple(findings))
