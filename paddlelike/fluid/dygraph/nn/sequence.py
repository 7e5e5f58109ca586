"""Layers over sequences and recurrent units as objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from paddlelike.fluid.dygraph.nn.built import BuiltLayer
from paddlelike.framework import Variable
from paddlelike.layers.emit import WIDE_FLOATS, check_choice, check_variable, emit_all

if TYPE_CHECKING:
    from paddlelike.core import DtypeLike
    from paddlelike.param_attr import ParamAttrLike

__all__ = ["GRUUnit", "RowConv", "SequenceConv"]

_ACTIVATIONS: Final = ("identity", "sigmoid", "tanh", "relu")


class GRUUnit(BuiltLayer):
    """One step of a GRU of ``size`` / 3 units; see :func:`paddlelike.layers.gru_unit`.

    Raises
    ------
    GraphError
        An activation is another text.

    See Also
    --------
    fluid.layers.gru_unit

    >>> import paddlelike as fluid
    >>> hidden, _, _ = GRUUnit(9)(fluid.data("gru_x", [None, 9]), fluid.data("gru_h", [None, 3]))
    >>> hidden.shape
    (-1, 3)
    """

    def __init__(
        self,
        size: int,
        param_attr: ParamAttrLike = None,
        bias_attr: ParamAttrLike = None,
        activation: str = "tanh",
        gate_activation: str = "sigmoid",
        origin_mode: bool = False,
        dtype: DtypeLike = "float32",
    ) -> None:
        super().__init__()
        for argument, value in (("activation", activation), ("gate_activation", gate_activation)):
            check_choice("GRUUnit", argument, value, _ACTIVATIONS)
        self._attrs = {
            "activation": _ACTIVATIONS.index(activation),
            "gate_activation": _ACTIVATIONS.index(gate_activation),
        }
        self._dtype = dtype
        units = size // 3
        self.weight = self.create_parameter([units, 3 * units], param_attr, dtype)
        self.bias = self.create_parameter([1, 3 * units], bias_attr, dtype, is_bias=True)

    def forward(self, input: Variable, hidden: Variable) -> tuple[Variable, Variable, Variable]:  # noqa: A002
        """Return the new hidden state, the reset hidden state and the gates."""
        for argument, value in (("input", input), ("hidden", hidden)):
            check_variable("GRUUnit", argument, value, WIDE_FLOATS)
        inputs = {"Input": input, "HiddenPrev": hidden, "Weight": self.weight, "Bias": self.bias}
        slots = dict.fromkeys(("Gate", "ResetHiddenPrev", "Hidden"), self._dtype)
        gate, reset, updated = emit_all("gru_unit", inputs, slots, self._attrs, helper=self._helper)
        return updated, reset, gate


class SequenceConv(BuiltLayer):
    """A convolution over the steps of sequences; see :func:`paddlelike.layers.sequence_conv`."""

    def __init__(
        self,
        name_scope: str | None,
        num_filters: int,
        filter_size: int = 3,
        filter_stride: int = 1,
        padding: object = None,
        bias_attr: ParamAttrLike = None,
        param_attr: ParamAttrLike = None,
        act: str | None = None,
    ) -> None:
        super().__init__(name_scope)
        self._num_filters, self._filter_size, self._act = num_filters, filter_size, act
        self._param_attr, self._bias_attr = param_attr, bias_attr
        self._attrs = {
            "contextStride": filter_stride,
            "contextStart": -(filter_size // 2),
            "contextLength": filter_size,
        }

    def _build_once(self, input: Variable) -> None:  # noqa: A002  (Fluid's name)
        self._dtype = self._helper.input_dtype(input)
        shape = [self._filter_size * input.shape[1], self._num_filters]
        self.weight = self.create_parameter(shape, self._param_attr, self._dtype)
        self.bias = self.create_parameter([self._num_filters], self._bias_attr, self._dtype, is_bias=True)

    def forward(self, input: Variable) -> Variable:  # noqa: A002
        """Return the activation of the convolution plus the bias."""
        out = self._emit("sequence_conv", {"X": input, "Filter": self.weight}, self._attrs)
        return self._finish(out, self.bias)


class RowConv(BuiltLayer):
    """A convolution over the current and the following steps; see :func:`paddlelike.layers.row_conv`."""

    def __init__(
        self,
        name_scope: str | None,
        future_context_size: int,
        param_attr: ParamAttrLike = None,
        act: str | None = None,
    ) -> None:
        super().__init__(name_scope)
        self._future_context_size, self._param_attr, self._act = future_context_size, param_attr, act

    def _build_once(self, input: Variable) -> None:  # noqa: A002
        self._dtype = self._helper.input_dtype(input)
        shape = [self._future_context_size + 1, input.shape[1]]
        self.weight = self.create_parameter(shape, self._param_attr, self._dtype)

    def forward(self, input: Variable) -> Variable:  # noqa: A002
        """Return the activation of the convolution."""
        return self._finish(self._emit("row_conv", {"X": input, "Filter": self.weight}, {}), None)
