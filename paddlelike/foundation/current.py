"""Values that a ``with`` block replaces, for its own thread first."""

from __future__ import annotations

import functools
import os
import threading
import weakref
from collections.abc import Callable, Mapping
from contextlib import ContextDecorator
from threading import get_ident
from typing import Any, Generic, TypeVar, cast

T = TypeVar("T")


class _Found:
    """A method in C that ``with`` finds by a function in Python, which an interrupt may end without harm."""

    def __init__(self, find: Callable[[Block], Callable[..., Any]]) -> None:
        self._find = find

    def __get__(self, block: Block | None, _: type | None = None) -> Callable[..., Any]:
        if block is None:  # ExitStack looks it up in the class
            return lambda block, *error: self._find(block)(*error)
        return self._find(block)


class Block(ContextDecorator):
    """A ``with`` block that replaces values; it also decorates functions.

    A thread is in it while a lock is held, which ``with`` takes and releases in C: after an interrupt no
    thread is in it, even if the traceback is kept, as in interactive sessions.
    """

    def __init__(self, values: Mapping[Current[Any], Any]) -> None:
        self.values = values
        self._lock = threading.Lock()
        self._thread = 0

    def _enter(self) -> Callable[..., Any]:
        if self._lock.locked():
            raise RuntimeError("a guard is for one `with` at a time; make another one")
        self._thread, earlier = get_ident(), weakref.ref(self)
        for current in self.values:
            if earlier in current.blocks:  # equal to a reference that an earlier `with` left
                current.blocks.remove(earlier)
            current.blocks.append(weakref.ref(self, current.blocks.remove))
        return self._lock.__enter__

    __enter__ = _Found(_enter)
    # `with` keeps this function alone, and by it the block, which the function ignores as it does errors.
    __exit__ = _Found(lambda block: functools.partial(cast(Any, block._lock.__exit__), block))

    def _recreate_cm(self) -> Block:
        return Block(self.values)

    def is_own(self) -> bool:
        """Return whether this thread is in the block."""
        return self._lock.locked() and self._thread == get_ident()

    def is_held(self) -> bool:
        """Return whether any thread is in the block."""
        return self._lock.locked()


class Current(Generic[T]):
    """A value such as the scope that is used when none is passed.

    In Fluid a block replaces it for all threads, and two threads with blocks of their own get each other's
    values. Here a thread inside a block of its own has the value of that block. The main thread outside all
    its blocks has the value of the process. Any other thread has the value of the block that any thread
    entered last, as in Fluid.

    >>> size = Current(1)
    >>> with size.replaced(2):
    ...     size.get()
    2
    >>> size.get()
    1
    """

    def __init__(self, value: T) -> None:
        self._of_process = value
        self.blocks: list[weakref.ref[Block]] = []  # of all threads, in the order in which they were entered
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forget_other_threads)

    def get(self) -> T:
        """Return the value that the calling thread has."""
        if not self.blocks:
            return self._of_process
        # Without more calls in the usual case: every run asks for the scope.
        last = self.blocks[-1:]  # empty if another thread leaves its block now
        block = last[0]() if last else None
        if block is None or not (block._lock.locked() and block._thread == get_ident()):
            block = self._find_block()
        return self._of_process if block is None else block.values[self]

    def set(self, value: T) -> T:
        """Replace the value of the thread's current block, or of the process outside blocks. Return the
        previous value.
        """
        before, block = self.get(), self._find_block()
        if block is None:
            self._of_process = value
        else:
            block.values = {**block.values, self: value}
        return before

    def replaced(self, value: T) -> Block:
        """Return a block that uses another value inside its ``with``."""
        return Block({self: value})

    def find_own(self) -> Block | None:
        """Return the block that the calling thread entered last and is in, or None."""
        for ref in self.blocks[::-1]:  # a copy: other threads leave their blocks
            if (block := ref()) is not None and block.is_own():
                return block
        return None

    def _find_block(self) -> Block | None:
        own = self.find_own()
        if own is not None or get_ident() == threading.main_thread().ident:
            return own
        blocks = (ref() for ref in self.blocks[::-1])
        return next((block for block in blocks if block is not None and block.is_held()), None)

    def _forget_other_threads(self) -> None:
        """Forget the blocks of threads that do not exist in a forked process."""
        self.blocks[:] = [ref for ref in self.blocks if (block := ref()) is not None and block.is_own()]
