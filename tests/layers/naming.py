"""The names of variables when a layer is given a name, unnamed attributes, or both (runs on Python 3.7 too).

The calls are those of the zoo and of the table of calls. Layers in them that take ``name`` or attributes of
parameters get them from here, unless the call gives them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from tests.layers.calls import CALLS
from tests.zoo import control, layers

__all__ = ["WAYS", "list_names", "list_networks"]

WAYS = ("attributes", "both", "name")
_ATTRIBUTES = ("param_attr", "bias_attr", "attr")


class _NamingLayers:
    """The layers of a `fluid` module, called with a name or with unnamed attributes."""

    def __init__(self, fluid: Any, way: str) -> None:
        self._fluid, self._way = fluid, way

    def __getattr__(self, name: str) -> Any:
        layer = getattr(self._fluid.layers, name)
        if not inspect.isfunction(layer) or name in ("data", "py_reader"):
            return layer
        return self._add_names(layer)

    def _add_names(self, layer: Callable[..., Any]) -> Callable[..., Any]:
        parameters = inspect.signature(layer).parameters
        added = {}
        if self._way in ("name", "both") and "name" in parameters:
            added["name"] = "given"
        if self._way in ("attributes", "both"):
            added.update((key, None) for key in _ATTRIBUTES if key in parameters)

        def call(*args: Any, **kwargs: Any) -> Any:
            taken = [*list(parameters)[: len(args)], *kwargs]
            more = {key: value for key, value in added.items() if key not in taken}
            for key in more:
                if key in _ATTRIBUTES:
                    more[key] = self._fluid.ParamAttr(learning_rate=0.5)
            return layer(*args, **more, **kwargs)

        return call


class _NamingFluid:
    """A `fluid` module with these layers."""

    def __init__(self, fluid: Any, way: str) -> None:
        self._fluid, self.layers = fluid, _NamingLayers(fluid, way)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._fluid, name)


def list_networks(fluid: Any) -> list[str]:
    """Return the names of all networks."""
    return sorted(["zoo." + name for name in layers.LAYERS] + ["calls." + name for name in CALLS])


def list_names(fluid: Any, network: str, way: str) -> list[str]:
    """Return the names of the variables of both programs, after building a network in one of the WAYS.

    Programs and counters must be new. Of a call that is refused, ``["refused"]``.
    """
    kind, _, name = network.partition(".")
    naming = _NamingFluid(fluid, way)
    modules = (layers, control)
    kept = [module.L for module in modules]
    for module in modules:
        module.L = naming.layers
    try:
        layers.LAYERS[name]() if kind == "zoo" else CALLS[name](naming)
    except Exception:
        return ["refused"]
    finally:
        for module, old in zip(modules, kept):  # noqa: B905  (Python 3.7)
            module.L = old
    programs = (fluid.default_main_program(), fluid.default_startup_program())
    found = [sorted(var for block in program.blocks for var in block.vars) for program in programs]
    return [*found[0], "startup:", *found[1]]
