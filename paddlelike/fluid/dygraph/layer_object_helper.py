"""The helper of a ``Layer`` object, whose methods take the layer's inputs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from paddlelike.core import VarType
from paddlelike.framework import Variable
from paddlelike.layers.helper import LayerHelper
from paddlelike.param_attr import ParamAttrLike

__all__ = ["LayerObjectHelper"]


class LayerObjectHelper(LayerHelper):
    """Creates parameters, temporaries and operators for a layer object; their names begin with ``name``."""

    def __init__(self, name: str) -> None:
        super().__init__(name, name=name)

    def input_dtype(self, inputs_in: object) -> VarType:  # type: ignore[override]  # Fluid's argument
        """Return the element type of the inputs. Raises GraphError when they differ."""
        return LayerHelper(self.name, name=self.name, input=inputs_in).input_dtype()

    def iter_inputs_and_params(  # type: ignore[override]
        self, inputs_in: object, param_attr_in: ParamAttrLike = None
    ) -> Iterator[tuple[Variable, Any]]:
        """Yield every input with the attribute of its weight."""
        given = LayerHelper(self.name, name=self.name, input=inputs_in, param_attr=param_attr_in)
        return given.iter_inputs_and_params()

    def append_activation(
        self,
        input_var: Variable,
        act: str | None = None,
        use_cudnn: bool | None = None,
        use_mkl_dnn: bool | None = None,
    ) -> Variable:
        """Return the activation ``act`` of ``input_var``, or ``input_var`` itself."""
        flags = {"use_cudnn": use_cudnn, "use_mkldnn": use_mkl_dnn}
        return LayerHelper(self.name, name=self.name, act=act, **flags).append_activation(input_var)
