"""Base class of the layers in this folder: an operator, a bias, an activation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from paddlelike.errors import GraphError
from paddlelike.fluid.dygraph.layers import Layer
from paddlelike.framework import Variable
from paddlelike.layers.emit import emit, emit_all

if TYPE_CHECKING:
    from paddlelike.core import DtypeLike
    from paddlelike.param_attr import ParamAttrLike

__all__ = ["BuiltLayer"]


class BuiltLayer(Layer):
    """A layer whose operators write variables of one dtype, named after the layer."""

    _act: str | None = None

    def _emit(
        self,
        type: str,
        inputs: Mapping[str, Any],
        attrs: Mapping[str, Any],
        *,
        slot: str = "Out",
        dtype: DtypeLike | None = None,
    ) -> Variable:
        """Append an operator with one output and return that output, by default of the layer's dtype."""
        kind = self._dtype if dtype is None else dtype
        return emit(type, inputs, attrs, slot=slot, dtype=kind, helper=self._helper)

    def _emit_statistics(
        self, type: str, inputs: Mapping[str, Any], attrs: Mapping[str, Any], out: str, *statistics: str
    ) -> Variable:
        """Append an operator that also writes statistics, without gradients; return its output ``out``."""
        slots = dict.fromkeys((*statistics, out), self._dtype)
        return emit_all(type, inputs, slots, attrs, helper=self._helper, constant=statistics)[-1]

    def _finish(self, out: Variable, bias: Variable | None, axis: int = 1) -> Variable:
        """Add the bias to ``out``, if there is one, and apply the layer's activation."""
        if bias is not None:
            out = self._emit("elementwise_add", {"X": out, "Y": bias}, {"axis": axis})
        return self._helper.append_activation(out, self._act)

    def _require(self, attr: ParamAttrLike, argument: str) -> None:
        """Raise GraphError when a parameter that the layer requires is missing."""
        if attr is False:
            raise GraphError(f"{type(self).__name__}: {argument} must not be False")
