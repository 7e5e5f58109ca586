"""Rules for the names of files in a saved directory, the names that are refused, and URLs.

A "/" in a variable's name makes a sub-directory, as in Paddle. A name that would leave the directory, here or
on another system that reads it later, is refused both for writing and for reading.
"""

from __future__ import annotations

import os
import re
from typing import Final

from paddlelike.errors import StorageError

MANIFEST: Final = "__manifest__"  # the file that describes the others, see ``storage.manifest``

#: Earlier manifests, which that one continues.
_PARTS: Final = f"__deltas__/{MANIFEST}."

#: Whether a name is one plain word, as most are, which breaks no rule.
is_plain: Final = re.compile(r"[A-Za-z0-9@][A-Za-z0-9_@.\-]*").fullmatch
_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]+://")
_DEEPEST: Final = 100  # nested directories; beyond, systems differ


def is_remote(path: str | os.PathLike[str]) -> bool:
    """Return whether a path is the URL of something outside this machine's file systems.

    >>> is_remote("/data/model"), is_remote("file:///data/model"), is_remote("s3://bucket/model")
    (False, False, True)
    """
    text = os.fspath(path)
    return text.startswith("hdfs:") or (_URL.match(text) is not None and not text.startswith("file://"))


def make_part_name(number: int) -> str:
    """Return the path of an earlier manifest that later ones continue.

    >>> make_part_name(3), is_manifest(make_part_name(3)), is_manifest("fc_0.w_0")
    ('__deltas__/__manifest__.3', True, False)
    """
    return f"{_PARTS}{number}"


def is_manifest(path: str) -> bool:
    """Return whether a path in a directory is the path of a current or earlier manifest."""
    return path == MANIFEST or path.startswith(_PARTS)


def relative_path(name: str) -> str:
    """Return the path of the file of variable ``name``, relative to its directory.

    Raises
    ------
    StorageError
        The name breaks a rule, which the message states.

    >>> relative_path("encoder/fc_0.w_0")
    'encoder/fc_0.w_0'
    """
    if not is_plain(name):
        if os.path.basename(name) == MANIFEST or is_manifest(os.path.normpath(name)):
            raise StorageError(
                f"variable {name!r} cannot be a file: {MANIFEST} is the name of the manifest",
                hint="rename the variable (ParamAttr(name=...))",
            )
        return check_path(name)
    return name


def check_path(name: str) -> str:
    """Return the normal form of a path inside a directory; it may be the manifest's path.

    Raises
    ------
    StorageError
        The path breaks a rule, which the message states.
    """
    rule = _broken_rule(name)
    if rule is not None:
        raise StorageError(
            f"variable {name!r} cannot be a file: {rule}",
            hint="rename the variable (ParamAttr(name=...)), or use filename= for one file",
        )
    return os.path.normpath(name)


def _broken_rule(name: str) -> str | None:
    parts = re.split(r"[/\\]", name)
    if "\0" in name:
        return "a name has no NUL character"
    # S7
    if not parts[0] and len(parts) > 1:
        return "a name must not begin with a slash, which would be an absolute path"
    if re.match(r"[A-Za-z]:([/\\]|$)", name) or (os.name == "nt" and ":" in name):
        return "a name does not begin with a drive letter"
    if ".." in parts:
        return "a name must not have a part '..', which would leave the directory"
    if parts[-1] in ("", "."):
        return "a name ends in the name of a file, not in a slash or a dot"
    if len(parts) > _DEEPEST:
        return f"a name has at most {_DEEPEST} parts between slashes, not {len(parts)}"
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return "a name must be text that can be encoded as UTF-8"
    return None
