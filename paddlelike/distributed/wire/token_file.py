"""The token that all processes of one user share on this machine, in a file that only this user can read.

Every local user can connect to a loopback port. Jobs that a launcher starts get a token of their own;
processes that were started by hand use this one, and the first of them writes it.

The file is the one that ``PADDLELIKE_JOB_TOKEN_FILE`` names, or ``paddlelike/job_token`` below
``$XDG_STATE_HOME`` (``~/.local/state``); where that directory cannot be written, below ``$XDG_RUNTIME_DIR``,
or in ``paddlelike-UID`` in the directory for temporary files.
"""

from __future__ import annotations

import os
import secrets
import stat
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from paddlelike.errors import EndpointError
from paddlelike.foundation.locks import close_at_end, close_files, open_file, opened

VARIABLE: Final = "PADDLELIKE_JOB_TOKEN_FILE"
_LARGEST: Final = 4096  # bytes of a token file
_HINT: Final = f"name another file with {VARIABLE}, or set PADDLELIKE_JOB_TOKEN for every process of the job"


def token_paths(environment: Mapping[str, str] = os.environ) -> list[Path]:
    """Return the possible paths of the token file, in the order in which they are tried."""
    if named := environment.get(VARIABLE):
        return [Path(named)]
    state = environment.get("XDG_STATE_HOME")
    home = environment.get("HOME")
    paths = [Path(state)] if state else [Path(home, ".local", "state")] if home else []
    if runtime := environment.get("XDG_RUNTIME_DIR"):
        paths.append(Path(runtime))
    candidates = [path / "paddlelike" / "job_token" for path in paths]
    candidates.append(Path(tempfile.gettempdir(), f"paddlelike-{os.getuid()}", "job_token"))
    return [path for path in candidates if path.is_absolute()]


def read_or_create_token(paths: list[Path] | None = None) -> str:
    """Return the token in the first of ``paths`` that exists, or write a new one.

    Parameters
    ----------
    paths
        The paths of the file; by default the ones of :func:`token_paths`.

    Raises
    ------
    EndpointError
        The file belongs to another user or can be read by others, is empty, or cannot be written.
    """
    candidates = token_paths() if paths is None else paths
    for path in candidates:
        token = _read(path)
        if token is not None:
            return token
    failures = []
    for path in candidates:
        try:
            _create(path, secrets.token_hex(16))
        except OSError as error:
            failures.append(f"{path} ({error.strerror})")
            continue
        token = _read(path)
        if token is not None:
            return token
    raise EndpointError(
        f"the token file for jobs on this machine cannot be written: {', '.join(failures)}", hint=_HINT
    )


def _read(path: Path) -> str | None:
    """Return the token in a file; None if the file is missing. Raises EndpointError for an unsafe file."""
    try:
        file = opened(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise EndpointError(f"the token file {path} cannot be read: {error.strerror}", hint=_HINT) from error
    with file as (fd, _):
        del file
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise EndpointError(f"the token file {path} is not a regular file", hint=_HINT)
        if status.st_uid != os.geteuid():
            raise EndpointError(f"the token file {path} belongs to user {status.st_uid}", hint=_HINT)
        if status.st_mode & 0o077:
            raise EndpointError(
                f"the token file {path} has mode {status.st_mode & 0o777:o}, expected 600: others can use it",
                hint=f"remove it; a new one is written. Or {_HINT}",
            )
        token = os.read(fd, _LARGEST).decode(errors="replace").strip()
    if not token:
        raise EndpointError(f"the token file {path} is empty", hint=f"remove it; or {_HINT}")
    return token


def _create(path: Path, token: str) -> None:
    """Write a token file with mode 600, whole or not at all, unless another process has written one."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    staged = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    files: list[int] = []
    try:
        with close_at_end(files):
            open_file(files, str(staged), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            os.write(files[0], f"{token}\n".encode())
            close_files(files)
        with suppress(FileExistsError):
            os.link(staged, path)
    finally:
        staged.unlink(missing_ok=True)
