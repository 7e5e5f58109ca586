"""The recurrent cells of decoders: :class:`StateCell`, and :class:`InitState`, the initial value of a state.

Parameters
----------
name
    A name for messages; no variable bears it.
state_name
    The name of a state of the cell.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from paddlelike import layers, unique_name
from paddlelike.core import VarType
from paddlelike.framework import Block, Variable

if TYPE_CHECKING:
    from paddlelike.core import DtypeLike

__all__ = ["InitState", "StateCell"]


class InitState:
    """The initial value of a state.

    Parameters
    ----------
    init
        The variable; None makes a constant with the batch size of ``init_boot``.
    shape
        The shape of that constant.
    value
        The number that fills it.
    init_boot
        A variable with the same batch size.
    need_reorder
        Whether rows follow the order in which a ``DynamicRNN`` sorts its sequences.
    dtype
        The element type of the constant.

    Raises
    ------
    ValueError
        Both ``init`` and ``init_boot`` with a ``shape`` are missing.

    See Also
    --------
    fluid.contrib.TrainingDecoder, fluid.contrib.BeamSearchDecoder, fluid.contrib.StateCell

    >>> from paddlelike.input import data
    >>> InitState(data("start", [None, 3])).value.shape
    (-1, 3)
    """

    def __init__(
        self,
        init: Variable | None = None,
        shape: Sequence[int] | None = None,
        value: float = 0.0,
        init_boot: Variable | None = None,
        need_reorder: bool = False,
        dtype: DtypeLike = "float32",
    ) -> None:
        if init is None:
            if init_boot is None or shape is None:
                raise ValueError("InitState needs init, or a shape and init_boot, whose batch size it takes")
            init = layers.fill_constant_batch_size_like(init_boot, shape, dtype, value)
        self.value = init
        self.need_reorder = need_reorder


class State(Protocol):
    """A state inside a decoder's loop."""

    def read(self) -> Variable: ...
    def write(self, value: Variable) -> None: ...


class Decoder(Protocol):
    """The methods of a decoder that a cell calls."""

    def _hold(self, start: InitState) -> State: ...


class MemoryState:
    """A state that a ``DynamicRNN`` keeps."""

    def __init__(self, rnn: layers.DynamicRNN, start: InitState) -> None:
        self._rnn = rnn
        self._memory = rnn.memory(init=start.value, need_reorder=start.need_reorder)

    def read(self) -> Variable:
        return self._memory

    def write(self, value: Variable) -> None:
        self._rnn.update_memory(self._memory, value)


class ArrayState:
    """A state that is an array with an entry for each step of a ``While``."""

    def __init__(self, block: Block, start: InitState) -> None:
        dtype = start.value.dtype
        name = unique_name.generate("array_state_array")
        self._array = block.create_var(name=name, type=VarType.LOD_TENSOR_ARRAY, dtype=dtype)
        self._step = block.create_var(name=unique_name.generate("array_state_counter"), dtype="int64")
        attrs = {"shape": [1], "dtype": self._step.dtype, "value": 0.0, "force_cpu": True}
        block.append_op("fill_constant", inputs={}, outputs={"Out": [self._step]}, attrs=attrs)
        self._step.stop_gradient = True
        inputs = {"X": start.value, "I": self._step}
        block.append_op("write_to_array", inputs=inputs, outputs={"Out": self._array})

    def read(self) -> Variable:
        return layers.array_read(self._array, self._step)

    def write(self, value: Variable) -> None:
        layers.increment(self._step, 1, in_place=True)
        layers.array_write(value, self._step, self._array)


class StateCell:
    """The inputs, the states and the step of a recurrent cell.

    Parameters
    ----------
    inputs
        Variables by name; None where :meth:`compute_state` gives one.
    states
        An :class:`InitState` for each name.
    out_state
        The name of the state that a decoder scores words by.
    name
        A name for messages; no variable bears it.

    See Also
    --------
    fluid.contrib.TrainingDecoder, fluid.contrib.BeamSearchDecoder, fluid.contrib.InitState

    Raises
    ------
    ValueError
        ``out_state`` is not a state, or a method is called outside of a decoder's block.

    >>> from paddlelike.input import data
    >>> cell = StateCell({"x": None}, {"h": InitState(data("start", [None, 3]))}, "h")
    """

    def __init__(
        self,
        inputs: dict[str, Variable | None],
        states: Mapping[str, InitState],
        out_state: str,
        name: str | None = None,
    ) -> None:
        for key, state in states.items():
            if not isinstance(state, InitState):
                raise ValueError(f"states[{key!r}] is a {type(state).__name__}, expected an InitState")
        if out_state not in states:
            raise ValueError(f"out_state is {out_state!r}, expected one of {', '.join(states)}")
        self._inputs = inputs
        self._starts = dict(states)
        self._values: dict[str, Any] = dict(states)
        self._out_state = out_state
        self._updater: Callable[[StateCell], object] | None = None
        self._decoder: Decoder | None = None
        self._held: dict[str, State] = {}

    def _enter(self, decoder: Decoder) -> None:
        if self._decoder is not None:
            raise ValueError("this StateCell is in another decoder already; its block must end first")
        self._decoder, self._held = decoder, {}
        self._values = dict(self._starts)

    def _leave(self) -> None:
        self._decoder = None

    def _bind(self) -> None:
        """Let the decoder keep the states, from their first use in it."""
        if self._decoder is not None and not self._held:
            for name, start in self._starts.items():
                self._held[name] = self._decoder._hold(start)
                self._values[name] = self._held[name].read()

    def get_state(self, state_name: str) -> Variable:
        """Return the variable of a state."""
        self._bind()
        if state_name not in self._values:
            raise ValueError(
                f"{state_name!r} is not a state of this cell, which has {', '.join(self._values)}"
            )
        found: Variable = self._values[state_name]
        return found

    def get_input(self, input_name: str) -> Variable:
        """Return the variable of an input.

        Parameters
        ----------
        input_name
            The name of an input of the cell.
        """
        found = self._inputs.get(input_name)
        if found is None:
            raise ValueError(f"input {input_name!r} has no variable yet; pass one to compute_state")
        return found

    def set_state(self, state_name: str, state_value: Variable) -> None:
        """Give a state another value.

        Parameters
        ----------
        state_value
            The variable.
        """
        self._values[state_name] = state_value

    def state_updater(self, updater: Callable[[StateCell], object]) -> Callable[[StateCell], None]:
        """Set the function that computes a step; a decorator.

        Parameters
        ----------
        updater
            Takes the cell, and sets its states.
        """
        self._updater = updater

        def update(state_cell: StateCell) -> None:
            if state_cell is self:
                raise TypeError("the updater may run only in compute_state of its own cell")
            updater(state_cell)

        return update

    def compute_state(self, inputs: Mapping[str, Variable]) -> None:
        """Compute a step.

        Parameters
        ----------
        inputs
            Variables by the names of the cell's inputs.
        """
        self._bind()
        for name, value in inputs.items():
            if name not in self._inputs:
                raise ValueError(
                    f"{name!r} is not an input of this cell, which has {', '.join(self._inputs)}"
                )
            self._inputs[name] = value
        if self._updater is None:
            raise ValueError("this StateCell has no updater; decorate a function with state_updater")
        self._updater(self)

    def update_states(self) -> None:
        """Set the states that the next step reads."""
        self._bind()
        for name, state in self._held.items():
            state.write(self._values[name])

    def out_state(self) -> Variable:
        """Return the state from which a decoder computes the scores of words."""
        found: Variable = self._values[self._out_state]
        return found
