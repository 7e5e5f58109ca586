"""DynamicRNN: a network repeated over the steps of sequences of different lengths."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from paddlelike import unique_name
from paddlelike.core import VarType
from paddlelike.errors import GraphError
from paddlelike.framework import Block, Variable
from paddlelike.layers.control.loops import While
from paddlelike.layers.control.sub_blocks import find_parent
from paddlelike.layers.control.tensor_array import array_read, array_to_lod_tensor, array_write, shrink_memory
from paddlelike.layers.elementwise.compare import less_than
from paddlelike.layers.elementwise.scale import increment
from paddlelike.layers.emit import check_variable
from paddlelike.layers.helper import LayerHelper
from paddlelike.layers.tensor.constant import fill_constant

if TYPE_CHECKING:
    from paddlelike.core import DtypeLike

__all__ = ["DynamicRNN"]


class DynamicRNN:
    """A network that runs for every step of a batch of sequences, without padding (operator ``while``).

    Inputs have a LoD. In the block the sequences are sorted by length, the longest first, and the batch
    shrinks as sequences end. Calling the object returns the outputs with the LoD of the inputs.

    >>> from paddlelike.input import data
    >>> from paddlelike.layers.linalg.products import fc
    >>> sentence = data("dynamic_rnn_x", [None, 8], "float32", lod_level=1)
    >>> rnn = DynamicRNN()
    >>> with rnn.block():
    ...     word = rnn.step_input(sentence)
    ...     before = rnn.memory(shape=[3])
    ...     hidden = fc([word, before], 3, act="relu")
    ...     rnn.update_memory(before, hidden)
    ...     rnn.output(hidden)
    >>> rnn().shape
    (-1, 3)
    """

    def __init__(self, name: str | None = None) -> None:
        self.helper = LayerHelper("dynamic_rnn", name=name)
        self.cond = self.helper.create_variable_for_type_inference("bool")
        self.cond.stop_gradient = False
        self._loop = While(self.cond)
        self._step: Variable | None = None  # the index of the step, while the block is being built
        self._table: Variable | None = None  # the rank table of the sequences
        self._longest: Variable | None = None
        self._zero: Variable | None = None
        self._inputs: list[Variable] = []  # arrays
        self._memories: dict[str, Variable] = {}  # arrays by the name of the memory in a step
        self._links: list[tuple[Variable, Variable]] = []  # the updated memory of a step, and its array
        self._arrays: list[Variable] = []  # of outputs
        self._outputs: list[Variable] | None = None

    @contextmanager
    def block(self) -> Iterator[None]:
        """Build the network of one step inside the ``with``.

        Raises GraphError when it is called twice, or the block has no step input.
        """
        if self._step is not None or self._outputs is not None:
            raise GraphError("DynamicRNN.block can be called once")
        self._step = step = fill_constant([1], "int64", 0, force_cpu=True)
        step.stop_gradient = False
        with self._loop.block():
            yield
            if self._longest is None:
                raise GraphError("DynamicRNN: the block has no step input; call step_input in it")
            increment(step)
            for value, array in self._links:
                array_write(value, step, array)
            less_than(step, self._longest, force_cpu=True, cond=self.cond)
        assert self._table is not None
        self._outputs = [array_to_lod_tensor(array, self._table) for array in self._arrays]
        self._step = None

    def _enter(self, method: str) -> tuple[Variable, Block]:
        """Return the index of the step, and the parent of the block being built."""
        if self._step is None:
            raise GraphError(f"DynamicRNN.{method} must be called inside `with rnn.block():`")
        return self._step, find_parent(self.helper.main_program.current_block())

    def step_input(self, x: Variable, level: int = 0) -> Variable:
        """Return the current step of each sequence of ``x`` that has not ended, the longest sequence first.

        The sequences of LoD level ``level`` are read; all inputs have the same LoD. Raises TypeError unless
        ``x`` is a variable, GraphError outside of the block.
        """
        step, around = self._enter("step_input")
        check_variable("dynamic_rnn", "x", x)
        if self._table is None:
            self._sort(around, step, x, level)
        array = _create(around, "dynamic_rnn_input_array", x, VarType.LOD_TENSOR_ARRAY)
        around.append_op(
            type="lod_tensor_to_array", inputs={"X": x, "RankTable": self._table}, outputs={"Out": array}
        )
        self._inputs.append(array)
        return array_read(array, step)

    def _sort(self, around: Block, step: Variable, x: Variable, level: int) -> None:
        """Sort the sequences of the first input, and begin the loop over their steps."""
        name = unique_name.generate("lod_rank_table")
        self._table = around.create_var(name=name, type=VarType.LOD_RANK_TABLE, stop_gradient=True)
        around.append_op(
            type="lod_rank_table", inputs={"X": x}, outputs={"Out": self._table}, attrs={"level": level}
        )
        name = unique_name.generate("dynamic_rnn_max_seq_len")
        self._longest = around.create_var(name=name, dtype="int64")
        around.append_op(
            type="max_sequence_len", inputs={"RankTable": self._table}, outputs={"Out": self._longest}
        )
        self.cond.stop_gradient = True
        around.append_op(
            type="less_than",
            inputs={"X": step, "Y": self._longest},
            outputs={"Out": self.cond},
            attrs={"force_cpu": True},
        )

    def static_input(self, x: Variable) -> Variable:
        """Return in each step the whole sequences of ``x`` that belong to the rows of the step.

        Raises TypeError unless ``x`` is a variable, GraphError outside of the block, or before the first
        step input.
        """
        step, around = self._enter("static_input")
        check_variable("dynamic_rnn", "x", x)
        table = self._rank_table("static_input")
        return shrink_memory(self._reorder(around, "dynamic_rnn_static_input_reordered", x), step, table)

    def _rank_table(self, method: str) -> Variable:
        if self._table is None:
            raise GraphError(f"DynamicRNN.{method} needs the order of the sequences: call step_input first")
        return self._table

    def _reorder(self, around: Block, name: str, x: Variable) -> Variable:
        out = _create(around, name, x)
        around.append_op(
            type="reorder_lod_tensor_by_rank",
            inputs={"X": [x], "RankTable": [self._table]},
            outputs={"Out": [out]},
        )
        return out

    def memory(
        self,
        init: Variable | None = None,
        shape: Sequence[int] | None = None,
        value: float = 0.0,
        need_reorder: bool = False,
        dtype: DtypeLike = "float32",
    ) -> Variable:
        """Return the memory of the previous step, initially ``init``, or ``shape`` filled with ``value``.

        With ``need_reorder`` the rows of ``init`` are in the order of the batch, and are sorted like the
        sequences when the block begins. Raises TypeError unless ``init`` is a variable, GraphError
        outside of the block, before the first step input, or without ``init`` and ``shape``.
        """
        step, around = self._enter("memory")
        if self._zero is None:
            self._zero = _append_zero(around)
        if init is None:
            if shape is None:
                raise GraphError("DynamicRNN.memory needs init or shape")
            init = self._fill(around, shape, value, dtype)
        else:
            check_variable("dynamic_rnn", "init", init)
            if need_reorder:
                self._rank_table("memory(need_reorder=True)")
                init = self._reorder(around, "dynamic_rnn_mem_init_reordered", init)
        array = _create(around, "dynamic_rnn_mem_array", init, VarType.LOD_TENSOR_ARRAY)
        around.append_op(type="write_to_array", inputs={"X": init, "I": self._zero}, outputs={"Out": array})
        before = shrink_memory(array_read(array, step), step, self._rank_table("memory"))
        self._memories[before.name] = array
        return before

    def _fill(self, around: Block, shape: Sequence[int], value: float, dtype: DtypeLike) -> Variable:
        """Return a constant tensor with a row for each sequence."""
        if not self._inputs:
            raise GraphError("DynamicRNN.memory needs the number of sequences: call step_input first")
        init = around.create_var(name=unique_name.generate("mem_init"), dtype=dtype)
        first = _create(around, "in0", self._inputs[0])
        around.append_op(
            type="read_from_array",
            inputs={"X": [self._inputs[0]], "I": [self._zero]},
            outputs={"Out": [first]},
        )
        around.append_op(
            type="fill_constant_batch_size_like",
            inputs={"Input": [first]},
            outputs={"Out": [init]},
            attrs={"shape": [-1, *shape], "value": float(value), "dtype": init.dtype},
        )
        return init

    def update_memory(self, ex_mem: Variable, new_mem: Variable) -> None:
        """Make ``new_mem`` the value of the memory ``ex_mem`` in the next step.

        Raises TypeError unless ``ex_mem`` and ``new_mem`` are variables, GraphError outside of the block,
        or when ``ex_mem`` is not a memory.
        """
        self._enter("update_memory")
        check_variable("dynamic_rnn", "ex_mem", ex_mem)
        check_variable("dynamic_rnn", "new_mem", new_mem)
        if ex_mem.name not in self._memories:
            raise GraphError(f"DynamicRNN: {ex_mem.name!r} is not a memory of this network")
        self._links.append((new_mem, self._memories[ex_mem.name]))

    def output(self, *outputs: Variable) -> None:
        """Declare outputs of every step.

        Raises TypeError unless ``outputs`` is a variable, GraphError outside of the block.
        """
        step, around = self._enter("output")
        for one in outputs:
            check_variable("dynamic_rnn", "outputs", one)
            name = f"{self.helper.name}_output_array_{one.name}"
            array = _create(around, name, one, VarType.LOD_TENSOR_ARRAY)
            array_write(one, step, array)
            self._arrays.append(array)

    def __call__(self, *args: object, **kwargs: object) -> Any:
        """Return the output of all steps, or a list of several.

        Raises GraphError before the block is complete, or when it has no output.
        """
        if self._outputs is None:
            raise GraphError("DynamicRNN: its outputs can be used after `with rnn.block():`, not inside")
        if not self._outputs:
            raise GraphError("DynamicRNN: it has no output; call output in the block")
        return self._outputs[0] if len(self._outputs) == 1 else self._outputs


def _create(around: Block, name: str, like: Variable, kind: VarType = VarType.LOD_TENSOR) -> Variable:
    return around.create_var(name=unique_name.generate(name), dtype=like.dtype, type=kind)


def _append_zero(around: Block) -> Variable:
    zero = around.create_var(name=unique_name.generate("zero_idx"), dtype="int64")
    around.append_op(
        type="fill_constant",
        inputs={},
        outputs={"Out": [zero]},
        attrs={"shape": [1], "dtype": zero.dtype, "value": 0.0, "force_cpu": True},
    )
    return zero
