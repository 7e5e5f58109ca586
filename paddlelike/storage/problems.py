"""Errors of the operating system as sentences with the next step, and look-ups that raise them."""

from __future__ import annotations

import errno
import functools
import os
import stat
from collections.abc import Callable
from typing import Final, ParamSpec, TypeVar

from paddlelike.errors import MissingFileError, PaddlelikeError, StorageError

Given = ParamSpec("Given")
Result = TypeVar("Result")
Error = TypeVar("Error", bound=PaddlelikeError)

_PERMISSION: Final = "the user that runs this may not do that there: choose another directory"
_READING: Final = "the user that runs this may not read it: change its permissions, or run this as its owner"
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
    """Return an exception of type ``kind`` that names the failed action, the system's reason and number, and
    a hint.

    The refused path is added unless ``what`` names it.

    >>> error = explain(StorageError, "m cannot be written", PermissionError(errno.EACCES, "Denied", "m/w"))
    >>> print(error.message, error.errno == errno.EACCES, error.path)
    m cannot be written: Denied (m/w) True m/w
    """
    reason = str(error.strerror or getattr(error, "message", str(error)))
    place: object = error.filename2 or error.filename or getattr(error, "path", None)
    path: str | None = os.fsdecode(place) if isinstance(place, str | bytes) else None
    shown = "" if path is None or path in what or path in reason else f" ({path})"
    hint = _HINTS.get(error.errno or 0, getattr(error, "hint", None))
    if hint is _PERMISSION and what.endswith(("cannot be read", "cannot be looked up")):
        hint = _READING
    raised = kind(f"{what}: {reason}{shown}", hint=hint)
    raised.errno, raised.path = error.errno, path
    return raised


def is_system_error(error: BaseException) -> bool:
    """Return whether the system refused a call (EIO, EACCES, ...) for another reason than a missing file.
    Such an error means neither damage nor a missing file.
    """
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and not isinstance(cause, PaddlelikeError):
            return not isinstance(cause, FileNotFoundError | NotADirectoryError)
        cause = cause.__cause__
    return False


def is_directory(path: str, *, follow: bool = True) -> bool:
    """Return whether a path is a directory, or a link to one with ``follow``.

    Raises
    ------
    StorageError
        The system refuses to look; ``os.path.isdir`` would return False for an existing directory.
    """
    return find_kind(path, follow=follow) == stat.S_IFDIR


def is_file(path: str, *, follow: bool = True) -> bool:
    """Return whether a path is a regular file; see :func:`is_directory`."""
    return find_kind(path, follow=follow) == stat.S_IFREG


def is_there(path: str) -> bool:
    """Return whether a path exists, also as a broken link; see :func:`is_directory`."""
    return find_kind(path, follow=False) is not None


def find_kind(path: str, *, follow: bool) -> int | None:
    """Return the kind of a path, as ``stat.S_IFMT``, or None for a free path. See :func:`is_directory`."""
    try:
        return stat.S_IFMT(os.stat(path, follow_symlinks=follow).st_mode)
    except (FileNotFoundError, NotADirectoryError, ValueError):  # the last: a NUL character
        return None
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENAMETOOLONG):
            return None
        raise explain(StorageError, f"{path} cannot be looked up", error) from error


def raises_own_errors(function: Callable[Given, Result]) -> Callable[Given, Result]:
    """Decorate a public function so that any error of the system becomes a StorageError.

    The StorageError has the system's error number and path. For a missing file it is also a
    FileNotFoundError.

    >>> @raises_own_errors
    ... def read(path):
    ...     raise OSError(errno.EIO, "Input/output error")
    >>> try:
    ...     read("m/w")
    ... except StorageError as error:
    ...     print(error.message, error.errno == errno.EIO)
    read of m/w failed: Input/output error True
    """

    @functools.wraps(function)
    def call(*args: Given.args, **kwargs: Given.kwargs) -> Result:
        try:
            return function(*args, **kwargs)
        except PaddlelikeError:
            raise
        except OSError as error:
            paths = [os.fspath(each) for each in args if isinstance(each, str | os.PathLike)]
            what = f"{function.__name__} of {' and '.join(map(str, paths)) or 'a file'} failed"
            kind = MissingFileError if isinstance(error, FileNotFoundError) else StorageError
            raise explain(kind, what, error) from error

    return call
