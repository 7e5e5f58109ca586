"""Waits for the disk after a commit, in a thread beside the program.

Until then the previous version stays beside the directory, and the lock is held. The next save into this
directory waits, whatever its argument ``wait``, and so does the end of the program. After a small save the
call itself waits briefly, so that small models leave no hidden entry.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable
from typing import Final

from paddlelike.errors import PaddlelikeError
from paddlelike.foundation.locks import Event
from paddlelike.foundation.threads import Thread
from paddlelike.foundation.warn import warn_user
from paddlelike.storage.local.filesystem.lock import Lock
from paddlelike.storage.local.filesystem.system import sync_directory, sync_file_system
from paddlelike.storage.local.layout import Layout

_PATIENCE: Final[float | None] = 0.05  # seconds for an idle disk to write a small save
_SMALL: Final = 1 << 20  # bytes

_running: Final[dict[str, Thread]] = {}  # by the directory
_hooks: Final[list[object]] = []

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_running.clear)  # the threads are the parent's


def sync_beside(layout: Layout, lock: Lock, finish: Callable[[], None], nbytes: int) -> None:
    """Sync a commit, call ``finish``, which removes the previous version, and release the lock.

    The lock passes to the thread here, so that after an interrupt either the caller or the thread has it.
    ``nbytes`` is the number of written bytes; the call waits for the bytes of a small save.
    """
    problems: list[str] = []
    handed = Lock(layout.lock, layout.base)

    def sync() -> None:
        try:
            # S17
            sync_file_system(layout.directory)
            sync_directory(layout.staging)
            sync_directory(layout.parent)
            handed.check()
            finish()
        except FileNotFoundError:  # somebody removed the directory
            with contextlib.suppress(OSError, PaddlelikeError):
                finish()
        except (OSError, PaddlelikeError) as error:
            problems.append(
                f"{layout.directory} was saved, but perhaps not to the disk, and the version before stays "
                f"in {layout.staging} until the next load or save: {error}"
            )
        finally:
            handed.release()
            if _running.get(layout.base) is thread:
                del _running[layout.base]
        if thread.is_current() and has_returned.is_set():
            say()

    def say() -> None:
        while problems:
            warn_user(problems.pop())

    _watch_removals()
    has_returned = Event()
    thread = Thread(sync, f"sync {layout.base}", daemon=False)
    try:
        lock.hand_over(handed)
        _running[layout.base] = thread
        thread.start()
        thread.wait(_PATIENCE if nbytes < _SMALL else 0)
    except RuntimeError:  # the interpreter is about to end
        sync()
    except BaseException:  # Ctrl-C: the next load or save removes the hidden entry
        if thread.cancel():
            _running.pop(layout.base, None)
            handed.release()
        raise
    has_returned.set()
    if not thread.is_running():
        say()


def _watch_removals() -> None:
    """Make ``shutil.rmtree`` of a folder around a saved directory wait until nothing else is removed there.

    Before Python 3.13 ``rmtree`` raises FileNotFoundError if an entry vanishes while it lists them.
    """
    if not _hooks and sys.version_info < (3, 13):
        _hooks.append(_wait_before_removal)
        sys.addaudithook(_wait_before_removal)


def _wait_before_removal(event: str, args: tuple[object, ...]) -> None:
    if event != "shutil.rmtree" or not _running:
        return
    with contextlib.suppress(OSError, TypeError, ValueError, RuntimeError):  # its remover raises the error
        front = os.path.join(os.path.realpath(os.fspath(args[0])), "")  # type: ignore[call-overload]
        for base, thread in list(_running.items()):
            if base.startswith(front) and not thread.is_current():
                thread.wait()


def wait_for_disk(layout: Layout) -> None:
    """Wait until this process's last save into a directory is on the disk."""
    thread = _running.get(layout.base)
    if thread is not None and not thread.is_current():
        thread.wait()
