"""Current values that a ``with`` block replaces, for its own thread first."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Mapping
from contextlib import ContextDecorator
from threading import get_ident
from typing import Any, Generic, TypeVar

from paddlelike.foundation.locks import LockedBlock

T = TypeVar("T")


class Block(LockedBlock, ContextDecorator):
    """A ``with`` block that replaces values; it also decorates functions."""

    def __init__(self, values: Mapping[Current[Any], Any]) -> None:
        super().__init__()
        self.values = values

    def _begin(self) -> None:
        earlier = weakref.ref(self)
        for current in self.values:
            if earlier in current.blocks:  # equal to a reference that an earlier `with` left
                current.blocks.remove(earlier)
            current.blocks.append(weakref.ref(self, current.blocks.remove))

    def _recreate_cm(self) -> Block:
        return Block(self.values)


class Current(Generic[T]):
    """A current value, such as the scope that is used when none is passed.

    In Fluid a ``with`` block replaces it for all threads, so two threads with blocks get each other's values.
    Here a thread inside its own block has the value of that block. The main thread outside all its blocks has
    the value of the process. Any other thread has the value of the block entered last by any thread, as in
    Fluid.

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
        """Return the value that applies to the calling thread."""
        if not self.blocks:
            return self._of_process
        # Few calls in the usual case, since every run reads the scope.
        last = self.blocks[-1:]  # empty if another thread leaves its block now
        block = last[0]() if last else None
        if block is None or not (block.lock.locked() and block.thread == get_ident()):
            block = self._find_block()
        return self._of_process if block is None else block.values[self]

    def set(self, value: T) -> T:
        """Replace the value of the thread's block, or of the process outside blocks. Return the old value."""
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
        """Return the innermost block that the calling thread is in, or None outside blocks."""
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
