"""Readers inside a program: py_reader, the older form of DataLoader.

A reader is declared with shapes and dtypes; :func:`read_file` returns the variables of its slots. After the
startup program, give the reader a source (``decorate_paddle_reader``) and ``start()`` it. Run the program
without a feed until EOFException, then ``reset()`` the reader.

Parameters
----------
capacity
    The number of batches that are read ahead.
feed_list
    Variables, one per slot.
use_double_buffer
    Whether to declare Fluid's second buffer. It has no effect.
shapes
    The shape of each slot, -1 where a dim is not known.
dtypes
    The dtype of each slot.
lod_levels
    The number of levels of sequences that each slot has; None if no slot has a LoD.
reader
    A reader of :func:`py_reader`.
place
    The place of the buffer in Fluid. It has no effect.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from paddlelike import unique_name
from paddlelike.core import LoDTensor
from paddlelike.errors import GraphError
from paddlelike.framework import Program, Variable, program_guard
from paddlelike.layers.emit import describe
from paddlelike.layers.helper import LayerHelper
from paddlelike.layers.io.inputs import data
from paddlelike.reader.loader import PyReader
from paddlelike.reader.program_reader import BatchQueue, declare_double_buffer, declare_reader

if TYPE_CHECKING:
    from paddlelike.core import Place

__all__ = ["create_py_reader_by_data", "double_buffer", "py_reader", "read_file"]


class ProgramReader:
    """A reader of a program: once started, it supplies batches until EOFException."""

    def __init__(self, variable: Variable, queue: BatchQueue, feed_list: Sequence[Variable]) -> None:
        self.variable = variable
        self.queue = queue
        self._source = PyReader(feed_list, capacity=1)

    def decorate_paddle_reader(
        self, reader: Callable[[], Iterable[Any]], places: Place | Sequence[Place] | None = None
    ) -> None:
        """Set the source: a function that returns an iterable of batches, each a list of samples."""
        self._source.set_sample_list_generator(reader, places)

    decorate_sample_list_generator = decorate_paddle_reader

    def decorate_tensor_provider(
        self, reader: Callable[[], Iterable[Any]], places: Place | Sequence[Place] | None = None
    ) -> None:
        """Set the source: a function that returns an iterable of batches, each with one array per slot."""
        self._source.set_batch_generator(reader, places)

    decorate_batch_generator = decorate_tensor_provider

    def start(self) -> None:
        """Start an epoch: runs of the program read batches."""
        self.queue.start(self._batches)

    def reset(self) -> None:
        """End an epoch, whether EOFException was raised or not."""
        self.queue.reset()

    def _batches(self) -> Iterable[list[LoDTensor]]:
        return self._source._source()()


def py_reader(
    capacity: int,
    shapes: Sequence[Sequence[int]],
    dtypes: Sequence[Any],
    lod_levels: Sequence[int] | None = None,
    name: str | None = None,
    use_double_buffer: bool = True,
) -> ProgramReader:
    """Return a reader of batches with one slot per shape (operator ``create_py_reader``).

    A thread reads ``capacity`` batches ahead. Each slot has an entry in ``shapes``, ``dtypes`` and
    ``lod_levels``. :func:`read_file` returns the variables of the slots.

    Returns
    -------
    ProgramReader
        A reader in the program, with methods to start it, to reset it, and to set its source
        (``decorate_...``). Its slots have the shapes ``shapes`` and the dtypes ``dtypes``.

    Raises
    ------
    GraphError
        The numbers of shapes, dtypes and LoD levels differ.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> reader = fluid.layers.py_reader(4, shapes=[(-1, 1)], dtypes=["float32"])
    >>> total = fluid.layers.reduce_sum(fluid.layers.read_file(reader))
    >>> reader.decorate_batch_generator(lambda: [[np.array([[i]], "float32")] for i in (5, 7)])
    >>> exe = fluid.Executor()
    >>> _ = exe.run(fluid.default_startup_program())
    >>> reader.start()
    >>> try:
    ...     while True:
    ...         print(exe.run(fetch_list=[total]))
    ... except fluid.core.EOFException:
    ...     reader.reset()
    [array([5.], dtype=float32)]
    [array([7.], dtype=float32)]
    """
    levels = [0] * len(shapes) if lod_levels is None else lod_levels
    if not len(shapes) == len(dtypes) == len(levels):
        raise GraphError(
            f"layer 'py_reader': {len(shapes)} shapes, {len(dtypes)} dtypes, {len(levels)} lod_levels; "
            "expected one of each per slot"
        )
    with program_guard(Program(), Program()):
        slots = [
            data(f"slot_{i}", shape, False, dtype, level)
            for i, (shape, dtype, level) in enumerate(zip(shapes, dtypes, levels, strict=True))
        ]
    return create_py_reader_by_data(capacity, slots, name, use_double_buffer)


def create_py_reader_by_data(
    capacity: int, feed_list: Sequence[Variable], name: str | None = None, use_double_buffer: bool = True
) -> ProgramReader:
    """Return a reader of batches with one slot for each variable of ``feed_list``; see :func:`py_reader`.

    Returns
    -------
    ProgramReader
        A reader in the program, with methods to start it, to reset it, and to set its source
        (``decorate_...``). Its slots have the shapes and dtypes of ``feed_list``.

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 4])
    >>> reader = fluid.layers.create_py_reader_by_data(8, [x])
    >>> [one.shape for one in [fluid.layers.read_file(reader)]]
    [(-1, 4)]
    """
    variable, queue = declare_reader(feed_list, capacity, use_double_buffer, name)
    return ProgramReader(variable, queue, feed_list)


def double_buffer(
    reader: ProgramReader, place: Place | None = None, name: str | None = None
) -> ProgramReader:
    """Return the reader; Fluid adds another buffer (operator ``create_double_buffer_reader``).

    Returns
    -------
    ProgramReader
        A reader of the same batches, with the shapes and dtypes of ``reader``.

    Raises
    ------
    TypeError
        ``reader`` is not a reader of :func:`py_reader`.

    >>> import paddlelike as fluid
    >>> reader = fluid.layers.create_py_reader_by_data(8, [fluid.data("x", [None, 4])])
    >>> fluid.layers.double_buffer(reader) is reader
    False
    """
    key = unique_name.generate("create_double_buffer_reader") if name is None else name
    return _share_queue(
        reader, declare_double_buffer(_check_reader("double_buffer", reader).variable, key, place)
    )


def _share_queue(reader: ProgramReader, variable: Variable) -> ProgramReader:
    found = object.__new__(ProgramReader)
    found.__dict__.update(reader.__dict__, variable=variable)
    return found


def read_file(reader: ProgramReader) -> Variable | list[Variable]:
    """Return the next batch of ``reader``: a list with a variable per slot, or a single variable.

    Operator ``read``.

    Returns
    -------
    Variable or list
        A variable for each slot, with its shape and dtype; not a list if there is only one slot.

    Raises
    ------
    TypeError
        ``reader`` is not a reader of :func:`py_reader`.

    >>> import paddlelike as fluid
    >>> reader = fluid.layers.py_reader(4, shapes=[(-1, 3), (-1, 1)], dtypes=["float32", "int64"])
    >>> features, label = fluid.layers.read_file(reader)
    >>> features.shape, label.shape
    ((-1, 3), (-1, 1))
    """
    variable = _check_reader("read_file", reader).variable
    helper = LayerHelper("read_file")
    outs = []
    for dtype, shape, lod_level in variable.reads:
        out = helper.create_variable_for_type_inference(dtype, stop_gradient=True, shape=shape)
        out.lod_level, out.declares_lod_level = lod_level, True
        outs.append(out)
    helper.append_op(type="read", inputs={"Reader": [variable]}, outputs={"Out": outs})
    return outs[0] if len(outs) == 1 else outs


def _check_reader(layer: str, reader: object) -> ProgramReader:
    if not isinstance(reader, ProgramReader):
        raise TypeError(f"layer {layer!r}: reader must come from layers.py_reader, got {describe(reader)}")
    return reader
