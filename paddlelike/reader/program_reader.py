"""Readers that a program reads itself: their variables, and the queue of their batches."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from typing import Any, ClassVar

from paddlelike import unique_name
from paddlelike.core.dtypes import VarType
from paddlelike.core.scope import global_scope
from paddlelike.core.tensor import LoDTensor
from paddlelike.core.versioned import Versioned
from paddlelike.errors import EOFException
from paddlelike.framework.graph.block import Block
from paddlelike.framework.graph.guards import default_main_program, default_startup_program
from paddlelike.framework.graph.variable import Variable
from paddlelike.reader.readers import read_ahead

__all__ = ["BatchQueue", "declare_double_buffer", "declare_reader"]


class BatchQueue(Versioned):
    """The batches of one epoch; the value of the reader's variable in a scope."""

    _left_out: ClassVar[Mapping[str, Callable[[], Any]]] = {"_batches": lambda: None}

    def __init__(self, capacity: int, holder: str) -> None:
        self._capacity = capacity
        self._holder = holder  # the name of the variable in the scope
        self._batches: Generator[list[LoDTensor], None, None] | None = None

    def start(self, reader: Callable[[], Iterable[list[LoDTensor]]]) -> None:
        """Start an epoch. Raises RuntimeError when one is running."""
        if self._batches is not None:
            raise RuntimeError("this reader is already started; call its reset() first")
        variable = global_scope().var(self._holder)
        if variable.value is None:  # after unpickling: scopes are pickled without queues
            variable.set_value(self)
        self._batches = read_ahead(reader, self._capacity)

    def reset(self) -> None:
        """End the epoch."""
        if self._batches is not None:
            self._batches.close()
        self._batches = None

    def next_batch(self) -> list[LoDTensor]:
        """Return the next batch. Raises EOFException after the last one."""
        if self._batches is None:
            raise EOFException(
                "the reader of this program has no batches",
                hint="call its start() before running the program",
            )
        for one in self._batches:
            return one
        raise EOFException(
            "the reader has no more batches", hint="call its reset(), then start() for another epoch"
        )


def declare_reader(
    feed_list: Sequence[Variable],
    capacity: int,
    use_double_buffer: bool = True,
    name: str | None = None,
    *,
    made_by_startup: bool = True,
) -> tuple[Variable, BatchQueue]:
    """Return a new reader variable in the main program, and its queue of batches.

    The startup program creates the reader, or the main program itself in each run.
    """
    holder = unique_name.generate("lod_tensor_blocking_queue") if name is None else f"{name}_queue"
    queue = BatchQueue(capacity, holder)
    global_scope().var(holder).set_value(queue)
    reader_name = unique_name.generate("create_py_reader") if name is None else f"{name}_reader"
    attrs = {
        "shape_concat": [dim for v in feed_list for dim in v.shape],
        "lod_levels": [v.lod_level for v in feed_list],
        "dtypes": [int(v.dtype) for v in feed_list],
        "need_check_feed": [int(v.need_check_feed) for v in feed_list],
        "ranks": [len(v.shape) for v in feed_list],
    }
    reads = [(v.dtype, v.shape, v.lod_level) for v in feed_list]
    reader = _declare(default_main_program().current_block(), reader_name, reads)
    maker = (default_startup_program() if made_by_startup else default_main_program()).current_block()
    created = _declare(maker, reader_name, reads) if made_by_startup else reader
    maker.append_op(
        type="create_py_reader", inputs={"blocking_queue": [holder]}, outputs={"Out": [created]}, attrs=attrs
    )
    if use_double_buffer:
        key = unique_name.generate("double_buffer") if name is None else f"{name}_double_buffer"
        reader = declare_double_buffer(reader, key)
    return reader, queue


def declare_double_buffer(reader: Variable, name: str) -> Variable:
    """Return the reader under another name; batches are read ahead in any case."""
    block = default_main_program().current_block()
    double = _declare(block, name, reader.reads)
    block.append_op(
        type="create_double_buffer_reader",
        inputs={"UnderlyingReader": [reader]},
        outputs={"Out": [double]},
        attrs={"place": "AUTO"},
    )
    return double


def _declare(block: Block, name: str, reads: list[tuple[VarType, tuple[int, ...], int]]) -> Variable:
    """Return a new reader variable in a block, with the dtypes and shapes of its slots."""
    reader = block.create_var(name=name, type=VarType.READER, persistable=True, stop_gradient=True)
    reader.reads = reads
    return reader
