"""Short names for what calls of layers are given."""

from __future__ import annotations

from typing import Any


class Net:
    """The layers of a `fluid` module, and inputs for them."""

    def __init__(self, fluid: Any) -> None:
        self.fluid = fluid

    def __getattr__(self, name: str) -> Any:
        return getattr(self.fluid.layers, name)

    def x(self, *shape: Any, dtype: str = "float32", name: str = "x") -> Any:
        return self.fluid.data(name, [None, *shape], dtype)

    def y(self, *shape: Any, dtype: str = "float32") -> Any:
        return self.x(*shape, dtype=dtype, name="y")

    def z(self, *shape: Any, dtype: str = "float32") -> Any:
        return self.x(*shape, dtype=dtype, name="z")

    def ids(self, *shape: Any, name: str = "ids") -> Any:
        return self.fluid.data(name, [None, *shape], "int64")

    def exact(self, *shape: int, dtype: str = "float32", name: str = "e") -> Any:
        return self.fluid.data(name, list(shape), dtype)

    def one(self, value: float = 1, dtype: str = "int32") -> Any:
        return self.fill_constant([1], dtype, value)

    def rows(self) -> Any:
        """SelectedRows."""
        kind = self.fluid.core.VarDesc.VarType.SELECTED_ROWS
        return self.create("rows", [5, 3], persistable=True, type=kind)

    def create(self, name: str, shape: Any = (-1, 6), **kwargs: Any) -> Any:
        """A variable that nothing writes yet."""
        block = self.fluid.default_main_program().current_block()
        return block.create_var(name=name, shape=shape, dtype="float32", **kwargs)

    def attr(self, *args: Any, **kwargs: Any) -> Any:
        return self.fluid.ParamAttr(*args, **kwargs)
