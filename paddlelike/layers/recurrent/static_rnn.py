"""StaticRNN: a network repeated over the first dim of its inputs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from paddlelike import unique_name
from paddlelike.core import VarType
from paddlelike.errors import GraphError
from paddlelike.framework import Block, Variable
from paddlelike.layers.control.sub_blocks import find_parent, sub_block
from paddlelike.layers.emit import check_variable
from paddlelike.layers.helper import LayerHelper
from paddlelike.lazy import dataclass

__all__ = ["StaticRNN"]


@dataclass
class _Memory:
    """A value passed from one step to the next."""

    first: Variable  # in the parent block
    before: Variable  # at the begin of a step
    after: Variable | None = None  # at the end of a step


class StaticRNN:
    """A network that runs once for every ``x[t]`` (operator ``recurrent``).

    Inputs are time-major, ``[T, N, ...]``, and all of one length. A memory passes a value from one step to
    the next. Calling the object returns the outputs of all steps, ``[T, N, ...]``.

    >>> from paddlelike.input import data
    >>> from paddlelike.layers.linalg.products import fc
    >>> x = data("static_rnn_x", [5, 2, 4], "float32")
    >>> rnn = StaticRNN()
    >>> with rnn.step():
    ...     word = rnn.step_input(x)
    ...     before = rnn.memory(shape=[-1, 3], batch_ref=word)
    ...     hidden = fc([word, before], 3, act="relu")
    ...     rnn.update_memory(before, hidden)
    ...     rnn.step_output(hidden)
    >>> rnn().shape
    (5, 2, 3)
    """

    def __init__(self, name: str | None = None) -> None:
        self.helper = LayerHelper("static_rnn", name=name)
        self.seq_len: int | None = None
        self._memories: dict[str, _Memory] = {}
        self._inputs: list[Variable] = []
        self._outputs: list[Variable] = []
        self._block: Block | None = None
        self._done = False

    @contextmanager
    def step(self) -> Iterator[None]:
        """Build the network of one step inside the ``with``; each memory must be updated."""
        with sub_block(self.helper.main_program) as self._block:
            yield
            states = self._state_names(self._block)
        self._complete(self._block, states)
        self._done = True

    def _enter(self, method: str) -> Block:
        if self._block is None or self._done:
            raise GraphError(f"StaticRNN.{method} must be called inside `with rnn.step():`")
        return self._block

    def step_input(self, x: Variable) -> Variable:
        """Return ``x[t]``, of shape ``[N, ...]``, for ``x`` of shape ``[T, N, ...]``.

        Raises TypeError unless ``x`` is a variable, GraphError outside of the block, or when the inputs
        differ in their number of steps.
        """
        block = self._enter("step_input")
        check_variable("static_rnn", "x", x)
        if self.seq_len is None:
            self.seq_len = x.shape[0]
        elif x.shape[0] != -1 and self.seq_len != x.shape[0]:
            raise GraphError(
                f"StaticRNN: {x.name!r} has {x.shape[0]} steps (shape {list(x.shape)}), "
                f"the inputs before it {self.seq_len}"
            )
        part = block.create_var(name=x.name, dtype=x.dtype, shape=x.shape[1:], type=x.type)
        self._inputs.append(part)
        return part

    def memory(
        self,
        init: Variable | None = None,
        shape: Sequence[int] | None = None,
        batch_ref: Variable | None = None,
        init_value: float = 0.0,
        init_batch_dim_idx: int = 0,
        ref_batch_dim_idx: int = 1,
    ) -> Variable:
        """Return the memory of the previous step; before the first step it is ``init``, or a constant.

        The constant is ``init_value`` in ``shape``, whose dim ``init_batch_dim_idx`` is as large as dim
        ``ref_batch_dim_idx`` of ``batch_ref`` (dim 0 counts the steps). Raises TypeError unless ``init`` is a
        variable, GraphError outside of the block, or without ``init``, ``shape`` and ``batch_ref``.
        """
        block = self._enter("memory")
        if init is None:
            if shape is None or batch_ref is None:
                raise GraphError("StaticRNN.memory needs init, or shape and batch_ref")
            dims = init_batch_dim_idx, ref_batch_dim_idx
            init = self._fill(find_parent(block), shape, batch_ref, init_value, dims)
        check_variable("static_rnn", "init", init)
        name = unique_name.generate(f"{self.helper.name}@mem")
        before = block.create_var(name=name, dtype=init.dtype, shape=init.shape)
        self._memories[before.name] = _Memory(init, before)
        return before

    def _fill(
        self, around: Block, shape: Sequence[int], like: Variable, value: float, dims: tuple[int, int]
    ) -> Variable:
        name = unique_name.generate(f"{self.helper.name}@memory_boot")
        boot = around.create_var(name=name, shape=shape, dtype=like.dtype, persistable=False)
        around.append_op(
            type="fill_constant_batch_size_like",
            inputs={"Input": [like]},
            outputs={"Out": [boot]},
            attrs={
                "value": value,
                "shape": boot.shape,
                "dtype": boot.dtype,
                "output_dim_idx": dims[0],
                "input_dim_idx": dims[1],
            },
        )
        return boot

    def update_memory(self, mem: Variable, var: Variable) -> None:
        """Make ``var`` the value of the memory ``mem`` in the next step.

        Raises TypeError unless ``mem`` and ``var`` are variables, GraphError outside of the block, or when
        ``mem`` is not a memory.
        """
        self._enter("update_memory")
        check_variable("static_rnn", "mem", mem)
        check_variable("static_rnn", "var", var)
        if mem.name not in self._memories:
            raise GraphError(f"StaticRNN: {mem.name!r} is not a memory of this network")
        self._memories[mem.name].after = var

    def step_output(self, o: Variable) -> None:
        """Declare an output of every step.

        Raises TypeError unless ``o`` is a variable, GraphError outside of the block.
        """
        block = self._enter("step_output")
        check_variable("static_rnn", "o", o)
        part = self._copy(block, o)
        steps = -1 if self.seq_len is None else self.seq_len
        self._outputs.append(
            find_parent(block).create_var(name=part.name, shape=(steps, *part.shape), dtype=part.dtype)
        )

    def output(self, *outputs: Variable) -> None:
        """Declare several outputs of every step. Raises GraphError outside the block."""
        for one in outputs:
            self.step_output(one)

    def _copy(self, block: Block, variable: Variable) -> Variable:
        """Return a copy of a variable under a name that the operator refers to."""
        out = self.helper.create_variable_for_type_inference(variable.dtype)
        block.append_op(
            type="rnn_memory_helper",
            inputs={"X": [variable]},
            outputs={"Out": [out]},
            attrs={"dtype": variable.dtype},
        )
        return out

    def _state_names(self, block: Block) -> list[str]:
        """Return the names of the memories at the end of a step."""
        states = []
        for name, memory in self._memories.items():
            if memory.after is None:
                raise GraphError(f"StaticRNN: the memory {name!r} is never updated; call update_memory")
            states.append(self._copy(block, block.var(memory.after.name)).name)
        return states

    def _complete(self, block: Block, states: list[str]) -> None:
        """Append the operator that runs the block."""
        around = find_parent(block)
        scopes = around.create_var(type=VarType.STEP_SCOPES)
        around.append_op(
            type="recurrent",
            inputs={
                "inputs": [around._var_recursive(part.name) for part in self._inputs],
                "initial_states": [memory.first for memory in self._memories.values()],
                "parameters": self._outer_names(block),
            },
            outputs={"outputs": self._outputs, "step_scopes": [scopes]},
            attrs={
                "has_states": bool(self._memories),
                "ex_states": list(self._memories),
                "states": states,
                "sub_block": block,
            },
        )

    def _outer_names(self, block: Block) -> list[str]:
        """Return the names of the outer variables that the block reads."""
        own = {name for op in block.ops for name in op.output_arg_names}
        own |= {part.name for part in self._inputs} | set(self._memories)
        read = dict.fromkeys(name for op in block.ops for name in op.input_arg_names)
        return [name for name in read if name not in own]

    def __call__(self, *args: object, **kwargs: object) -> Any:
        """Return the output of all steps, or a list of several.

        Raises GraphError before the block is complete, or when it has no output.
        """
        if not self._done:
            raise GraphError("StaticRNN: its outputs can be used after `with rnn.step():`, not inside")
        if not self._outputs:
            raise GraphError("StaticRNN: it has no output; call step_output in a step")
        return self._outputs[0] if len(self._outputs) == 1 else self._outputs
