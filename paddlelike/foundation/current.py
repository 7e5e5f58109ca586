"""Values that a ``with`` block replaces, for its own thread first."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Mapping
from contextlib import ContextDecorator
from typing import Any, Generic, TypeVar

from paddlelike.foundation.locks import LockedBlock

T = TypeVar("T")


class Block(LockedBlock, ContextDecorator):  # type: ignore[misc]  # as of LockedBlock
    """A ``with`` block that replaces values; it also decorates functions."""

    values: Mapping[Current[Any], Any]

    def _recreate_cm(self) -> Block:
        return replace_all(self.values)


def replace_all(values: Mapping[Current[Any], Any]) -> Block:
    """Return a block that replaces several values; the latest one made counts."""
    block = Block()
    block.values = values
    for current in values:
        current.blocks.append(weakref.ref(block, current.blocks.remove))
    return block


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
        self.blocks: list[weakref.ref[Block]] = []  # of all threads, in the order in which they were made
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forget_other_threads)

    def get(self) -> T:
        """Return the value that the calling thread has."""
        block = self._find_block() if self.blocks else None  # without a call in the usual case
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
        return replace_all({self: value})

    def find_own(self) -> Block | None:
        """Return the block that the calling thread is in, the latest one made, or None."""
        for ref in reversed(self.blocks):
            if (block := ref()) is not None and block.is_own():
                return block
        return None

    def _find_block(self) -> Block | None:
        own = self.find_own()
        if own is not None or threading.get_ident() == threading.main_thread().ident:
            return own
        blocks = (ref() for ref in reversed(self.blocks))
        return next((block for block in blocks if block is not None and block.is_held()), None)

    def _forget_other_threads(self) -> None:
        """Forget the blocks of threads that do not exist in a forked process."""
        self.blocks[:] = [ref for ref in self.blocks if (block := ref()) is not None and block.is_own()]
