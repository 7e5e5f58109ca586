"""Locks that are released even after interrupts. This package uses no other locks.

Ctrl-C may raise KeyboardInterrupt between any two operations of the main thread: between taking a lock and
the ``try`` that releases it, inside an ``__enter__`` or ``__exit__`` written in Python (as in
``threading.Condition`` and ``Event``), and before ``with`` calls ``__exit__``. Here a *key* holds a lock. One
call into C takes the lock and makes the key; deleting the key releases the lock, in C too. Only the ``with``
refers to the key, so a kept traceback does not keep the lock.

>>> lock = Lock()
>>> with lock.hold():
...     print(lock.is_held())
True
>>> lock.is_held()
False

A waiting thread looks again every second, since an interrupted thread may not have notified it.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import operator
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Final

_LOOK: Final = 1.0  # seconds between two looks of a waiting thread


class _Key(functools.partial):  # type: ignore[type-arg]
    """Calls a C function without arguments when it is deleted; ``with`` itself runs only C code."""

    __slots__ = ()
    if TYPE_CHECKING:

        def __enter__(self) -> None: ...
        def __exit__(self, *error: object) -> None: ...

    else:
        __enter__ = __exit__ = object.__init__
        __del__ = property(operator.attrgetter("func"))


Keys = Callable[[], AbstractContextManager[None, None]]


def make_keys(take: Callable[[Any], Any], give_back: Callable[[], Any]) -> Keys:
    """Return a function that calls ``take(True)`` and makes a key, whose deletion calls ``give_back``.

    Both must be written in C, since a Python function can be interrupted.

    >>> taken = []
    >>> begin = make_keys(taken.append, taken.pop)
    >>> with begin():
    ...     print(len(taken))
    1
    >>> len(taken)
    0
    """
    taken = map(take, itertools.repeat(True))
    return map(functools.partial(_Key, give_back), taken).__next__


def make_key(taken: Iterable[Any], give_back: Callable[[], Any]) -> AbstractContextManager[None, None]:
    """Take the first item of an iterator, in C, and return a key that gives it back, or an empty key."""
    return next(map(functools.partial(_Key, give_back), taken), _Key(bool))


class Lock:
    """A lock for one thread at a time, held only inside ``with lock.hold():``."""

    def __init__(self) -> None:
        self._lock: Any = threading.Lock()
        self.hold: Keys = make_keys(self._lock.acquire, self._lock.release)

    def hold_within(self, seconds: float) -> AbstractContextManager[None, None]:
        """Like :meth:`hold`, but raise TimeoutError if the lock is not free within ``timeout`` seconds."""
        taken = itertools.takewhile(bool, map(self._lock.acquire, (True,), (seconds,)))
        try:
            return next(map(functools.partial(_Key, self._lock.release), taken))
        except StopIteration:
            raise TimeoutError(f"another thread holds the lock for more than {seconds} s") from None

    def is_held(self) -> bool:
        """Return whether a thread holds the lock."""
        return bool(self._lock.locked())


class RLock(Lock):
    """A lock that its holder may take again.

    Unlike ``threading.RLock``, another thread can release it, since a thread that lists all objects may be
    the last to drop the key.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._owner: dict[bool, int] = {}
        idents = itertools.starmap(threading.get_ident, itertools.repeat(()))
        taken = map(self._owner.__setitem__, map(self._lock.acquire, itertools.repeat(True)), idents)
        self._keys = map(functools.partial(_Key, self._lock.release), taken)

    def hold(self) -> AbstractContextManager[None, None]:
        """Wait until no other thread holds the lock; return a key."""
        return _Key(bool) if self.is_held() else next(self._keys)

    def is_held(self) -> bool:
        """Return whether this thread holds the lock."""
        return self._lock.locked() and self._owner.get(True) == threading.get_ident()

    def hold_in_forks(self) -> None:
        """Make the thread that forks this process hold the lock, so that it is free in the child."""
        held: list[AbstractContextManager[None]] = []
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(
                before=lambda: held.append(self.hold()),
                after_in_parent=held.clear,
                after_in_child=held.clear,
            )


class _Found:
    """A method in C that ``with`` finds through a Python function, which an interrupt may end without
    harm.
    """

    def __init__(self, find: Callable[[Any], Callable[..., Any]]) -> None:
        self._find = find

    def __get__(self, block: object, _: type | None = None) -> Callable[..., Any]:
        if block is None:  # ExitStack looks it up in the class
            return lambda block, *error: self._find(block)(*error)
        return self._find(block)


class LockedBlock:
    """A ``with`` block that holds a lock; ``with`` takes and releases it in C.

    So after an interrupt the lock is free, even if the traceback is kept, as in interactive sessions.

    >>> block = LockedBlock()
    >>> with block:
    ...     block.is_own()
    True
    >>> block.is_own(), block.is_held()
    (False, False)
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.thread = 0  # the one that is in it, or was last

    def _enter(self) -> Callable[..., Any]:
        if self.lock.locked():
            raise RuntimeError("a guard is for one `with` at a time; make another one")
        self.thread = threading.get_ident()
        self._begin()
        return self.lock.__enter__

    def _begin(self) -> None:
        """Prepare to enter; an interrupt may still prevent that."""

    __enter__ = _Found(_enter)
    # `with` refers only to this function, and through it to the block; the function ignores the block and
    # errors.
    __exit__ = _Found(lambda block: functools.partial(block.lock.__exit__, block))

    def is_own(self) -> bool:
        """Return whether this thread is in the block."""
        return self.lock.locked() and self.thread == threading.get_ident()

    def is_held(self) -> bool:
        """Return whether any thread is in the block."""
        return self.lock.locked()


class Condition:
    """A condition to wait for, with its own lock or with ``lock``."""

    def __init__(self, lock: Lock | None = None) -> None:
        lock = Lock() if lock is None else lock
        self.lock, self.hold = lock, lock.hold
        self._doors: list[Any] = []  # taken locks, one for each waiting thread

    def wait(self, timeout: float | None = None) -> None:
        """Release the lock until another thread notifies, for ``timeout`` seconds or one second at most.

        The caller then checks its condition again.
        """
        lock, door = self.lock._lock, threading.Lock()
        released: list[None] = []  # and taken: each grows in the call into C that does so
        taken: list[bool] = []
        door.acquire()
        self._doors.append(door)
        try:
            released.extend(itertools.starmap(lock.release, ((),)))
            door.acquire(True, _LOOK if timeout is None else min(max(timeout, 0.0), _LOOK))
            taken.extend(map(lock.acquire, (True,)))
        except BaseException:
            while len(taken) < len(released):
                taken.extend(map(lock.acquire, (True,)))
            raise
        if door in self._doors:  # it was not notified
            self._doors.remove(door)

    def wait_for(self, is_there: Callable[[], Any], timeout: float | None = None) -> bool:
        """Wait until ``is_there()`` is true, for ``timeout`` seconds at most; return whether it is."""
        end = None if timeout is None else time.monotonic() + timeout
        while not (found := bool(is_there())):
            left = None if end is None else end - time.monotonic()
            if left is not None and left <= 0:
                break
            self.wait(left)
        return found

    def notify_all(self) -> None:
        """Wake all waiting threads. The caller holds the lock."""
        _open_all(self._doors)


class Event:
    """A flag that threads wait for; it stays set until :meth:`clear`."""

    def __init__(self) -> None:
        self._is_set = False
        self._doors: list[Any] = []

    def is_set(self) -> bool:
        """Return whether the event is set."""
        return self._is_set

    def set(self) -> None:
        """Set the event, and wake all waiting threads."""
        self._is_set = True
        _open_all(self._doors)

    def clear(self) -> None:
        """Clear the event: from now on threads wait."""
        self._is_set = False

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the event is set, for ``timeout`` seconds at most; return whether it is."""
        if self._is_set:
            return True
        end = None if timeout is None else time.monotonic() + timeout
        door = threading.Lock()
        door.acquire()
        self._doors.append(door)
        try:
            while not self._is_set:
                left = _LOOK if end is None else min(end - time.monotonic(), _LOOK)
                if left <= 0:
                    break
                door.acquire(True, left)
        finally:
            with contextlib.suppress(ValueError):  # it was set
                self._doors.remove(door)
        return self._is_set


def _open_all(doors: list[Any]) -> None:
    while doors:
        with contextlib.suppress(IndexError):  # another thread was faster
            doors.pop().release()


def open_file(
    files: list[int], path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None
) -> None:
    """Open a file like ``os.open`` and append its descriptor atomically, so that no interrupt loses it."""
    files.extend(map(_find_open(dir_fd), (path,), (flags,), (mode,)))


def _find_open(dir_fd: int | None) -> Callable[[str | os.PathLike[str], int, int], int]:
    return os.open if dir_fd is None else functools.partial(os.open, dir_fd=dir_fd)


class OpenFile(functools.partial):  # type: ignore[type-arg]
    """An open descriptor, closed when this object is deleted, as at the end of ``with opened(...)``.

    ``args`` holds the descriptor and the next number, as ``os.closerange`` takes them.
    """

    __slots__ = ()
    if TYPE_CHECKING:

        def __enter__(self) -> tuple[int, int]: ...
        def __exit__(self, *error: object) -> None: ...

    else:
        __enter__ = property(operator.attrgetter("args.__iter__"))
        __exit__ = object.__init__
        __del__ = property(operator.attrgetter("__call__"))


def opened(
    path: str | os.PathLike[str], flags: int, mode: int = 0o777, *, dir_fd: int | None = None
) -> OpenFile:
    """Open a file for reading, as ``os.open`` does; errors when it is closed are ignored.

    >>> with opened(os.curdir, os.O_RDONLY) as (fd, _):
    ...     os.stat(fd) == os.stat(os.curdir)
    True
    """
    return next(own_files(map(_find_open(dir_fd), (path,), (flags,), (mode,))))


def own_files(descriptors: Iterable[int]) -> Iterator[OpenFile]:
    """Return an object that owns the descriptors made by an iterator in C, such as ``map(os.dup, (1,))``.

    >>> [copy] = own_files(map(os.dup, (1,)))
    >>> with copy as (fd, _):
    ...     os.stat(fd) == os.stat(1)
    True
    """
    first, other = itertools.tee(descriptors)
    return map(OpenFile, itertools.repeat(os.closerange), first, map((1).__add__, other))


def open_pipe() -> list[OpenFile]:
    """Return the read end and the write end of a new pipe."""
    return list(own_files(itertools.chain.from_iterable(itertools.starmap(os.pipe, ((),)))))


def close_at_end(files: list[int]) -> AbstractContextManager[None, None]:
    """Return an object whose deletion closes the files whose descriptors are then in the list."""
    return _Key(functools.partial(list, map(os.close, files)).__call__)


def close_files(files: list[int]) -> None:
    """Close the files of all descriptors once and empty the list. Raises the last OSError."""
    with contextlib.suppress(IndexError):  # there is none left
        list(map(os.close, iter(files.pop, None)))
