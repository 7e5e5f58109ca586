"""Readers that a program reads itself: their variables, and the queue of their batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar, Final

from paddlelike import unique_name
from paddlelike.core import LoDTensor, VarType, Versioned, global_scope
from paddlelike.errors import EOFException, GraphError, NotInitializedError
from paddlelike.foundation.warn import warn_user
from paddlelike.framework import Block, Variable, default_main_program, default_startup_program
from paddlelike.reader.readers import ReadAhead
from paddlelike.unique_name import UniqueNameGenerator

if TYPE_CHECKING:
    from paddlelike.core import Place

#: The names of non-iterable loaders. As in Fluid, ``unique_name.guard`` does not restart these counters, so
#: that two loaders built under two guards have two queues.
LOADER_NAMES: Final = UniqueNameGenerator()


class BatchQueue(Versioned):
    """The batches of one epoch; the value of the reader's variable in a scope."""

    _left_out: ClassVar[Mapping[str, Callable[[], Any]]] = {
        "_batches": lambda: None,
        "_waiting": list,
    }

    def __init__(self, capacity: int, holder: str) -> None:
        self._capacity = capacity
        self._holder = holder  # the name of the variable in the scope
        self._batches: ReadAhead | None = None
        self._waiting: list[list[LoDTensor]] = []  # taken from there for the run that comes

    def size(self) -> int:
        """Return the number of batches that are ready; 0 before the start and after the last one."""
        return 0 if self._batches is None else self._batches.count_ready()

    def capacity(self) -> int:
        """Return the largest number of batches that are read ahead."""
        return self._capacity

    def close(self) -> None:
        """End the epoch, as :meth:`reset` does."""
        self.reset()

    def start(self, reader: Callable[[], Iterable[list[LoDTensor]]]) -> None:
        """Start an epoch. If one is running, warn and continue it."""
        if self._batches is not None:
            warn_user("start: this reader is already started, and its epoch has not ended; reset() ends it")
            return
        variable = global_scope().var(self._holder)
        if variable.value is None:  # after unpickling: scopes are pickled without queues
            variable.set_value(self)
        self._batches = ReadAhead(reader, self._capacity)

    def reset(self) -> None:
        """End the epoch."""
        if self._batches is not None:
            self._batches.close()
        self._batches, self._waiting = None, []

    def next_batch(self) -> list[LoDTensor]:
        """Return the next batch.

        Raises EOFException after the last one, NotInitializedError before ``start``.
        """
        if self._batches is None:
            raise NotInitializedError(  # no EOFException: scripts take that for the end of an epoch
                "the program reads from a reader that was not started",
                hint="call the reader's start() before the program runs, and again after reset()",
            )
        self.require(1)
        return self._waiting.pop(0)

    def require(self, count: int) -> None:
        """Wait until ``count`` batches are ready. Raises EOFException when fewer are left."""
        if self._batches is None:
            return
        self._waiting += islice(self._batches, max(count - len(self._waiting), 0))
        if len(self._waiting) < count:
            raise EOFException(
                "the reader has no more batches", hint="call its reset(), then start() for another epoch"
            )


def declare_reader(
    feed_list: Sequence[Variable], capacity: int, use_double_buffer: bool = True, name: str | None = None
) -> tuple[Variable, BatchQueue]:
    """Return a new reader variable in the main program, and its queue of batches.

    The startup program creates the reader. Raises GraphError when the scope holds another one of its name.
    """
    if name is None:
        keys = ("lod_tensor_blocking_queue", "create_py_reader", "double_buffer")
        names = [unique_name.generate(key) for key in keys[: 2 + use_double_buffer]]
    else:
        names = [f"{name}_queue", f"{name}_reader", f"{name}_double_buffer"]
    if _holds_queue(names[0]):
        raise GraphError(
            f"there is a reader with the queue {names[0]!r} already; a second one would take its batches",
            hint="give each py_reader a name of its own (name=...), or use DataLoader.from_generator",
        )
    return _declare_in(
        default_startup_program().current_block(), feed_list, capacity, use_double_buffer, names
    )


def declare_loader(
    feed_list: Sequence[Variable], capacity: int, use_double_buffer: bool = True
) -> tuple[Variable, BatchQueue]:
    """Return a new reader variable in the main program, which creates the reader in each run, and its queue.

    Its names come from :data:`LOADER_NAMES`; names that exist in the scope are skipped.
    """
    keys = ("lod_tensor_blocking_queue", "create_py_reader", "double_buffer")
    names = [LOADER_NAMES(key) for key in keys]
    while _holds_queue(names[0]):
        names = [LOADER_NAMES(key) for key in keys]
    return _declare_in(default_main_program().current_block(), feed_list, capacity, use_double_buffer, names)


def _holds_queue(name: str) -> bool:
    holder = global_scope().find_var(name)
    return holder is not None and isinstance(holder.value, BatchQueue)


def _declare_in(
    maker: Block, feed_list: Sequence[Variable], capacity: int, use_double_buffer: bool, names: Sequence[str]
) -> tuple[Variable, BatchQueue]:
    """Return a new reader that ``maker`` creates; ``names`` are the names of the queue, the reader and its
    double buffer.
    """
    holder, reader_name = names[:2]
    batches = BatchQueue(capacity, holder)
    global_scope().var(holder).set_value(batches)
    attrs = {
        "shape_concat": [dim for v in feed_list for dim in v.shape],
        "lod_levels": [v.lod_level for v in feed_list],
        "dtypes": [int(v.dtype) for v in feed_list],
        "need_check_feed": [int(v.need_check_feed) for v in feed_list],
        "ranks": [len(v.shape) for v in feed_list],
    }
    reads = [(v.dtype, v.shape, v.lod_level) for v in feed_list]
    block = default_main_program().current_block()
    reader = _declare(block, reader_name, reads)
    created = reader if maker is block else _declare(maker, reader_name, reads)
    maker.append_op(
        type="create_py_reader", inputs={"blocking_queue": [holder]}, outputs={"Out": [created]}, attrs=attrs
    )
    if use_double_buffer:
        reader = declare_double_buffer(reader, names[2])
    return reader, batches


def declare_double_buffer(reader: Variable, name: str, place: Place | None = None) -> Variable:
    """Return the reader under another name. Batches are read ahead in any case."""
    block = default_main_program().current_block()
    double = _declare(block, name, reader.reads)
    block.append_op(
        type="create_double_buffer_reader",
        inputs={"UnderlyingReader": [reader]},
        outputs={"Out": [double]},
        attrs={} if place is None else {"place": str(place).upper()},
    )
    return double


def _declare(block: Block, name: str, reads: list[tuple[VarType, tuple[int, ...], int]]) -> Variable:
    """Return a new reader variable in a block, with the dtypes and shapes of its slots."""
    reader = block.create_var(name=name, type=VarType.READER, persistable=True, stop_gradient=True)
    reader.reads = reads
    return reader
