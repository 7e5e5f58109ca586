"""A stand-in for Hadoop's command, over a folder."""

from __future__ import annotations

import sys
from pathlib import Path

__all__ = ["make_hadoop"]


def make_hadoop(folder: Path, root: Path) -> Path:
    """Write the command ``hadoop`` into a folder; its files are below ``root``, and in STANDIN_ROOT."""
    folder.mkdir(parents=True)
    root.mkdir()
    standin = Path(__file__).parent.parent / "io" / "standin_hadoop.py"
    options = 'while [ "${2#-D}" != "$2" ]; do fs=$1; shift 2; set -- "$fs" "$@"; done'
    command = folder / "hadoop"
    command.write_text(f'#!/bin/sh\n{options}\nexec {sys.executable} {standin} "$@"\n')
    command.chmod(0o755)
    return command
