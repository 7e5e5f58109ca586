"""Running an unmodified Fluid script: ``python -m paddlelike run SCRIPT [args]``."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from paddlelike.errors import ImportPaddleError
from paddlelike.import_paddle import add_to_path

__all__ = ["run_script"]


def run_script(arguments: Sequence[str]) -> NoReturn:
    """Replace this process by ``python SCRIPT [args]`` or ``python -m MODULE [args]``.

    It is a fresh interpreter with the options of this one (``-W``, ``-X``, ``-O``), where ``import paddle``
    gives paddlelike. So ``sys.argv``, ``sys.path``, ``__main__``, signals, exit codes and tracebacks are the
    script's own, and processes that it starts find the same ``paddle``.

    Parameters
    ----------
    arguments
        The script, or ``-m`` and a module, then the arguments of the script.

    Raises
    ------
    ImportPaddleError
        No script was given, the script does not exist, or Python ignores PYTHONPATH.
    """
    _check(arguments)
    command = [sys.executable, *_interpreter_options(), *arguments]
    sys.stdout.flush()
    sys.stderr.flush()
    os.execve(sys.executable, command, add_to_path(os.environ))  # noqa: S606  (no shell)


def _check(arguments: Sequence[str]) -> None:
    if not arguments or (arguments[0] == "-m" and len(arguments) < 2):
        raise ImportPaddleError(
            "run: no script was given", hint="python -m paddlelike run SCRIPT [args], or run -m MODULE [args]"
        )
    if arguments[0] != "-m" and not Path(arguments[0]).exists():
        raise ImportPaddleError(
            f"run: the script {arguments[0]} does not exist (looked in {Path.cwd()})",
            hint="give the script first, then its own arguments; a module is run by: run -m MODULE",
        )
    if sys.flags.ignore_environment:
        raise ImportPaddleError(
            "run: Python was started with -E or -I, and ignores PYTHONPATH, where a script finds paddle",
            hint="start it without them, or call paddlelike.install() in the script",
        )


def _interpreter_options() -> list[str]:
    """Return the options that this interpreter was started with."""
    options = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]  # as multiprocessing does
    unbuffered = ["-u"] if getattr(sys.stdout, "write_through", False) else []
    return [*options, *unbuffered]
