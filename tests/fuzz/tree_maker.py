"""Hostile directories: links, pipes, directories in place of files; and names of variables that lead out."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, Final

from tests.fuzz.mutations import mutated

__all__ = ["build", "made_name", "made_tree"]

_PARTS: Final = (
    "..", ".", "", "a", "w", "W", "fc_0.w_0", "FC_0.W_0", "__model__", "~", "$HOME", "C:", "c:", "\\", "con", "NUL",
    "aux.txt", "x" * 255, "x" * 300, "\0", "\n", "\u4e2d", "e\u0301", "\u202e", "\udcff", "-rf", "*", "?", " ", "a ", "a.",
    "%2e%2e", "..%2f", "\uff0e\uff0e", "file:", "http:", "memory:", "model.manifest.json", ".saving", "|id", ";id",
    "model.lock", "outside",
)  # fmt: skip


def made_name(rng: Random) -> bytes:
    """The name of a variable."""
    if rng.random() < 0.2:
        return mutated(rng, b"encoder/fc_0.w_0", ())
    parts = [rng.choice(_PARTS) for _ in range(rng.choice((1, 2, 3, 8)))]
    name = rng.choice(("/", "/", "\\", "//")).join(parts)
    if rng.random() < 0.03:
        name *= 2000
    return (rng.choice(("", "", "", "/", "C:\\", "\\\\host\\", "file://", "./")) + name).encode(
        "utf-8", "surrogatepass"
    )


def made_tree(rng: Random) -> bytes:
    """What takes the place of some files of a model, as JSON."""
    kinds = (
        "link",
        "link",
        "link",
        "hard",
        "dir",
        "pipe",
        "empty",
        "unreadable",
        "socketless",
        "gone",
        "deep",
        "extra",
    )
    targets = (
        "../outside/w", "../outside", "/dev/zero", "/dev/null", "/dev/stdin", "/etc/passwd", "/proc/self/mem", ".",
        "..", "fc_0.b_0", "fc_0.w_0", "loop_a", "nowhere", "/", "../outside/secret", "__model__",
    )  # fmt: skip
    names = ("fc_0.w_0", "fc_0.b_0", "learning_rate_0", "__model__", "loop_a", "sub")
    entries = [
        {"name": rng.choice(names), "kind": rng.choice(kinds), "to": rng.choice(targets)}
        for _ in range(rng.choice((1, 1, 2, 4)))
    ]
    return json.dumps(entries).encode()


def build(directory: Path, entries: list[dict[str, Any]]) -> None:
    """Put the entries of :func:`made_tree` in their places."""
    for entry in entries:
        path = directory / entry["name"]
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        path.unlink(missing_ok=True)
        _KINDS[entry["kind"]](path, entry["to"])


def _hard(path: Path, to: str) -> None:
    source = path.parent / to
    if source.is_file() and not source.is_symlink() and not to.startswith("/"):
        os.link(source, path)


def _deep(path: Path, to: str) -> None:
    for _ in range(60):
        path = path / "d"
    path.mkdir(parents=True)


def _unreadable(path: Path, to: str) -> None:
    path.write_bytes(b"x")
    path.chmod(0)


_KINDS: Final[dict[str, Callable[[Path, str], Any]]] = {
    "link": lambda path, to: path.symlink_to(to),
    "hard": _hard,
    "dir": lambda path, to: path.mkdir(),
    "pipe": lambda path, to: os.mkfifo(path),
    "empty": lambda path, to: path.write_bytes(b""),
    "unreadable": _unreadable,
    "socketless": lambda path, to: path.write_bytes(bytes(200)),
    "gone": lambda path, to: None,
    "deep": _deep,
    "extra": lambda path, to: path.with_name("extra\n\u4e2d").write_bytes(b"extra"),
}
