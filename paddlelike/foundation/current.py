"""Values that a ``with`` block replaces, for its own thread first."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

T = TypeVar("T")


class _Cell(Generic[T]):
    """The value of one block, or of the process."""

    __slots__ = ("value",)

    def __init__(self, value: T) -> None:
        self.value = value


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
        self._of_process = _Cell(value)
        self._entered: list[_Cell[T]] = []  # by all threads, the last one at the end
        self._own = threading.local()  # cells: those of this thread
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forget_other_threads)

    def get(self) -> T:
        """Return the value that the calling thread has."""
        try:
            own: list[_Cell[T]] = self._own.cells
        except AttributeError:
            own = self._own_cells()
        if own:
            return own[-1].value
        # Without a call in the usual case: every run asks for the scope.
        return self._cell().value if self._entered else self._of_process.value

    def set(self, value: T) -> T:
        """Replace the value of the thread's current block, or of the process outside blocks. Return the
        previous value.
        """
        cell = self._cell()
        before, cell.value = cell.value, value
        return before

    @contextmanager
    def replaced(self, value: T) -> Iterator[None]:
        """Use another value inside the ``with`` block."""
        cell, own = _Cell(value), self._own_cells()
        own.append(cell)
        self._entered.append(cell)
        try:
            yield
        finally:
            self._entered.remove(cell)
            own.remove(cell)

    def _cell(self) -> _Cell[T]:
        own = self._own_cells()
        if own:
            return own[-1]
        if self._entered and threading.get_ident() != threading.main_thread().ident:
            try:
                return self._entered[-1]
            except IndexError:  # another thread left its block at this moment
                pass
        return self._of_process

    def _own_cells(self) -> list[_Cell[T]]:
        try:
            cells: list[_Cell[T]] = self._own.cells
        except AttributeError:
            cells = self._own.cells = []
        return cells

    def _forget_other_threads(self) -> None:
        """Forget the blocks of threads that do not exist in a forked process."""
        self._entered = list(self._own_cells())
