"""The files of a saved directory, for comparisons."""

from __future__ import annotations

from pathlib import Path

__all__ = ["read_variables"]


def read_variables(directory: Path) -> dict[str, bytes]:
    """The bytes of every file by name, without the manifest: it records when the others were written."""
    return {path.name: path.read_bytes() for path in directory.iterdir() if path.name != "__manifest__"}
