"""Runs a module as ``python -m`` does, in a process of a fork server: see :func:`find_environment`."""

from __future__ import annotations

import json
import os
import runpy
import sys
from pathlib import Path

__all__ = ["find_environment"]

_NAME = "MODULE_TO_RUN"


def find_environment(folder: Path, *words: str) -> dict[str, str]:
    """Return the environment in which a process of this module runs ``python -m WORDS`` in a folder."""
    return {**os.environ, _NAME: json.dumps([str(folder), *words])}


def main() -> None:
    """Run the module that the environment names."""
    folder, name, *arguments = json.loads(os.environ.pop(_NAME))
    os.chdir(folder)
    sys.argv[1:] = arguments
    runpy.run_module(name, run_name="__main__", alter_sys=True)
