"""``paddlelike env``."""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterable, Sequence
from importlib import metadata
from typing import Any

import typer

from paddlelike.cli.output import Json, print_json, print_text


def command(json: bool = Json) -> None:
    """Show which versions and extras are installed."""
    found = _collect()
    if json:
        print_json(found)
        return
    rows: list[list[object]] = [
        ["paddlelike", found["paddlelike"]],
        ["Python", f"{found['python']} ({found['platform'].replace('-with-', ', ')})"],
        *([name, version] for name, version in found["core"].items()),
        ["compiled kernels", found["compiled kernels"]],
    ]
    _print_rows(rows)
    typer.echo()
    _print_rows(
        [
            f"[{extra}]",
            ", ".join(f"{name} {version or '(not installed)'}" for name, version in needs.items()),
        ]
        for extra, needs in found["extras"].items()
    )


def _print_rows(rows: Iterable[Sequence[object]]) -> None:
    """Print pairs in two columns; long values are wrapped in their column."""
    pairs = [(str(name), str(text)) for name, text in rows]
    width = max(len(name) for name, _ in pairs)
    for name, text in pairs:
        print_text(f"{name.ljust(width)}  {text}", indent=width + 2)


def _collect() -> dict[str, Any]:
    from paddlelike.ops.kernels.fast.late import describe
    from paddlelike.storage.manifest import library_version

    core: dict[str, str | None] = {}
    extras: dict[str, dict[str, str | None]] = {}
    for line in _list_requirements():
        name, _, condition = line.partition(";")
        name = (
            name.split("[")[0].split("=")[0].split("<")[0].split(">")[0].split("!")[0].split("~")[0].strip()
        )
        extra = condition.partition("extra ==")[2].strip().strip("'\"")
        if extra in ("dev", "test"):
            continue
        (extras.setdefault(extra, {}) if extra else core)[name] = _find_version(name)
    return {
        "paddlelike": library_version(),
        "python": sys.version.split()[0],
        "platform": platform.platform(),
        "core": core,
        "compiled kernels": describe(),
        "extras": extras,
    }


def _list_requirements() -> list[str]:
    """Return the requirements of the installed package, or of the core alone if metadata is missing."""
    try:
        return metadata.requires("paddlelike") or []
    except metadata.PackageNotFoundError:
        return ["networkx", "numpy", "protobuf", "threadpoolctl", "xxhash"]


def _find_version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
