"""Errors of the operating system as sentences, with the next step."""

from __future__ import annotations

import errno
from typing import Final, TypeVar

from paddlelike.errors import PaddlelikeError

__all__ = ["explain", "is_system_error"]

Error = TypeVar("Error", bound=PaddlelikeError)

_PERMISSION: Final = "the user that runs this may not do that there: choose another directory"
_HINTS: Final = {
    errno.EACCES: _PERMISSION,
    errno.EPERM: _PERMISSION,
    errno.EROFS: "the file system is mounted read-only: choose another directory",
    errno.ENOSPC: "the disk is full: remove something or choose another disk",
    errno.EDQUOT: "the quota of the disk is used up: remove something or choose another disk",
    errno.ENOTDIR: "a part of the path is a file, not a directory: choose another directory",
    errno.EEXIST: "there is a file of that name: choose another directory",
    errno.EISDIR: "there is a directory of that name: choose another name",
    errno.ENAMETOOLONG: "use filename= to put all variables into one file, or shorter names",
    errno.EMFILE: "too many files are open in this process: raise the limit (ulimit -n)",
    errno.ENOENT: "check the path",
}


def explain(kind: type[Error], what: str, error: OSError) -> Error:
    """Return the exception of ``kind`` for what could not be done, with the system's reason and a hint."""
    reason = error.strerror or str(error)
    code = error.errno if error.errno is not None else 0
    return kind(f"{what}: {reason}", hint=_HINTS.get(code))


def is_system_error(error: BaseException) -> bool:
    """Return whether the system refused something (EIO, EACCES, ...), other than: there is no such file.

    Such an error says nothing about what is on the disk: it is neither damage nor absence.
    """
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and not isinstance(cause, PaddlelikeError):
            return not isinstance(cause, FileNotFoundError | NotADirectoryError)
        cause = cause.__cause__
    return False
