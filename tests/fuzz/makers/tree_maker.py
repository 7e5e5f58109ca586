"""Hostile directories: links, pipes, directories in place of files; and names of variables that lead out."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, Final

from paddlelike.storage import manifest
from tests.fuzz.makers.mutations import mutate

__all__ = ["build", "make_name", "make_staging", "make_tree"]

_PARTS: Final = (
    "..", ".", "", "a", "w", "W", "fc_0.w_0", "FC_0.W_0", "__model__", "~", "$HOME", "C:", "c:", "\\", "con", "NUL",
    "aux.txt", "x" * 255, "x" * 300, "\0", "\n", "\u4e2d", "e\u0301", "\u202e", "\udcff", "-rf", "*", "?", " ", "a ", "a.",
    "%2e%2e", "..%2f", "\uff0e\uff0e", "file:", "http:", "memory:", "__manifest__", ".saving", "|id", ";id",
    "model.lock", "outside",
)  # fmt: skip


def make_name(rng: Random) -> bytes:
    """The name of a variable."""
    if rng.random() < 0.2:
        return mutate(rng, b"encoder/fc_0.w_0", ())
    parts = [rng.choice(_PARTS) for _ in range(rng.choice((1, 2, 3, 8)))]
    name = rng.choice(("/", "/", "\\", "//")).join(parts)
    if rng.random() < 0.03:
        name *= 2000
    return (rng.choice(("", "", "", "/", "C:\\", "\\\\host\\", "file://", "./")) + name).encode(
        "utf-8", "surrogatepass"
    )


def make_tree(rng: Random) -> bytes:
    """What takes the place of some files of a model, as JSON."""
    targets = (
        "../outside/w", "../outside", "/dev/zero", "/dev/null", "/dev/stdin", "/etc/passwd", "/proc/self/mem", ".",
        "..", "fc_0.b_0", "fc_0.w_0", "loop_a", "nowhere", "/", "../outside/secret", "__model__",
    )  # fmt: skip
    names = ("fc_0.w_0", "fc_0.b_0", "learning_rate_0", "__model__", "loop_a", "sub")
    entries = [
        {"name": rng.choice(names), "kind": rng.choice(_CHOICES), "to": rng.choice(targets)}
        for _ in range(rng.choice((1, 1, 2, 4)))
    ]
    return json.dumps(entries).encode()


def make_staging(rng: Random) -> bytes:
    """What lies beside and inside a model that is saved into: helpers of saves, and what is none, as JSON."""
    areas = ("", "/new", "/new/sub", "/new/w", "/old", "/old/0", "/old/1", "/spare", "/spare/w", "/spare/sub", "/staged",
             "/journal", "/lock", "/forward", "/back")  # fmt: skip
    names = [f"../.model.saving-directory{area}" for area in areas]
    names += ["../model.manifest.json", "__manifest__"]
    names += ["w", "sub", "sub/v", "theirs", "out"]
    to = (
        "../outside",
        "../../outside",
        "../../../outside",
        "../outside/w",
        "../../outside/w",
        "/dev/zero",
        ".",
        "nowhere",
        "w",
    )
    entries = [
        {
            "name": rng.choice(names),
            "kind": rng.choice((*_CHOICES, "exchanged", "list", "manifest")),
            "to": rng.choice(to),
        }
        for _ in range(rng.choice((1, 2, 4, 6)))
    ]
    if rng.random() < 0.5:
        entries.append({"name": "../.model.saving-directory/staged", "kind": "exchanged", "to": ""})
    if rng.random() < 0.3:
        entries.append({"name": "__manifest__", "kind": "manifest", "to": rng.choice(to)})
        entries.append({"name": "out", "kind": "link", "to": "../outside"})
    return json.dumps(entries).encode()


def build(directory: Path, entries: list[dict[str, Any]]) -> None:
    """Put the entries of :func:`make_tree` in their places."""
    for entry in entries:
        path = directory / entry["name"]
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue  # an entry before this one is in the way
        if path.parent.resolve() != Path(os.path.normpath(path.parent)):
            continue  # what would be built is elsewhere
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


def _exchange(path: Path, to: str) -> None:
    """Write the mark by which a save tells the version before from the next one."""
    token = "".join(dict.fromkeys(to)).encode().hex()
    path.write_text(json.dumps({"token": token, "written": {}, "files": {"w": 1, to: 1}}))


def _list(path: Path, to: str) -> None:
    """Write names and inodes of files outside, as a damaged list of files has them."""
    path.write_text(json.dumps({"w": 1, to: 1, "sub/v": 2}))


def _manifest(path: Path, to: str) -> None:
    """A manifest by which the files of an earlier save of the same part are these."""
    record = manifest.Record(3, "sha256:" + "0" * 64, (1, 2))
    names = ("w", "sub/v", "theirs", "out/w", "sub", "gone/x")
    path.write_bytes(
        manifest.encode(
            dict.fromkeys(names[len(to) % 3 :], record), token="".join(dict.fromkeys(to)).encode().hex()
        )
    )


_CHOICES: Final = (
    "link", "link", "link", "hard", "dir", "pipe", "empty", "unreadable", "socketless", "gone", "deep", "extra",
)  # fmt: skip
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
    "exchanged": _exchange,
    "list": _list,
    "manifest": _manifest,
    "extra": lambda path, to: path.with_name("extra\n\u4e2d").write_bytes(b"extra"),
}
