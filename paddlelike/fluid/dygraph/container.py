"""Containers: layers in sequence, a list of layers, and a list of parameters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from paddlelike.fluid.dygraph.layers import Layer
from paddlelike.framework import Parameter
from paddlelike.left_out import make_getattr

__all__ = ["LayerList", "ParameterList", "Sequential"]
__getattr__ = make_getattr(__name__, "dygraph.container")


class Sequential(Layer):
    """Layers in sequence, as in Fluid: the input of each is the output of the one before. They may have
    names.

    Parameters
    ----------
    layers
        The layers, or pairs of a name and a layer, in order.

    See Also
    --------
    fluid.dygraph.Layer, fluid.dygraph.LayerList, fluid.dygraph.ParameterList

    >>> import paddlelike as fluid
    >>> net = Sequential(("hidden", fluid.dygraph.Linear(4, 3)), ("out", fluid.dygraph.Linear(3, 2)))
    >>> net(fluid.data("sequential_x", [None, 4])).shape, len(net)
    ((-1, 2), 2)
    """

    def __init__(self, *layers: Layer | tuple[str, Layer]) -> None:
        super().__init__()
        for index, one in enumerate(layers):
            name, layer = one if isinstance(one, tuple) else (str(index), one)
            self.add_sublayer(name, layer)

    def __getitem__(self, name: int | str) -> Layer | None:
        return self._sub_layers[str(name)]

    def __setitem__(self, name: int | str, layer: Layer) -> None:
        self.add_sublayer(str(name), layer)

    def __delitem__(self, name: int | str) -> None:
        del self._sub_layers[str(name)]

    def __len__(self) -> int:
        return len(self._sub_layers)

    def forward(self, input: Any) -> Any:  # noqa: A002  (Fluid's name)
        """Return the output of the last layer for ``input``."""
        for layer in self._sub_layers.values():
            if layer is not None:
                input = layer(input)  # noqa: A001
        return input


class ParameterList(Layer):
    """A list of parameters, as in Fluid.

    Parameters
    ----------
    parameters
        Parameters; None for an empty list.

    See Also
    --------
    fluid.dygraph.Layer, fluid.dygraph.LayerList, fluid.dygraph.Sequential

    >>> len(ParameterList())
    0
    """

    def __init__(self, parameters: Iterable[Parameter] | None = None) -> None:
        super().__init__()
        for parameter in parameters or ():
            self.append(parameter)

    def __getitem__(self, idx: int) -> Parameter | None:
        return self._parameters[str(idx)]

    def __setitem__(self, idx: int, param: Parameter) -> None:
        self.add_parameter(str(idx), param)

    def __len__(self) -> int:
        return len(self._parameters)

    def __iter__(self) -> Iterator[Parameter | None]:
        return iter(self._parameters.values())

    def append(self, parameter: Parameter) -> ParameterList:
        """Add a parameter at the end, and return the list."""
        self.add_parameter(str(len(self)), parameter)
        return self


class LayerList(Layer):
    """A list of layers, as in Fluid. A slice of it is a list, too.

    Parameters
    ----------
    sublayers
        Layers; None for an empty list.

    See Also
    --------
    fluid.dygraph.Layer, fluid.dygraph.ParameterList, fluid.dygraph.Sequential

    >>> import paddlelike as fluid
    >>> len(LayerList([fluid.dygraph.Linear(4, 3), fluid.dygraph.Linear(3, 2)]))
    2
    """

    def __init__(self, sublayers: Iterable[Layer] | None = None) -> None:
        super().__init__()
        self.extend(sublayers or ())

    def __getitem__(self, idx: int | slice) -> Any:
        if isinstance(idx, slice):
            return type(self)(list(self)[idx])
        return self._sub_layers[str(idx)]

    def __setitem__(self, idx: int, sublayer: Layer) -> None:
        self.add_sublayer(str(idx), sublayer)

    def __delitem__(self, idx: int | slice) -> None:
        layers = list(self)
        del layers[idx]
        self._number(layers)

    def __len__(self) -> int:
        return len(self._sub_layers)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._sub_layers.values())

    def append(self, sublayer: Layer) -> LayerList:
        """Add a layer at the end, and return the list."""
        self.add_sublayer(str(len(self)), sublayer)
        return self

    def insert(self, index: int, sublayer: Layer) -> None:
        """Insert a layer before the one at ``index``. Raises IndexError unless the index exists."""
        layers = list(self)
        if not 0 <= index < len(layers):
            raise IndexError(f"insert at {index}: the index must be at least 0 and below {len(layers)}")
        layers.insert(index, sublayer)
        self._number(layers)

    def extend(self, sublayers: Iterable[Layer]) -> LayerList:
        """Add layers at the end, and return the list."""
        for layer in sublayers:
            self.append(layer)
        return self

    def _number(self, layers: list[Any]) -> None:
        self._sub_layers.clear()
        for layer in layers:
            self.append(layer)
