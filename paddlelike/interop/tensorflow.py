"""The names of TensorFlow 1 that the HDF5 recipe calls: ``import paddlelike.interop.tensorflow as tf``.

With that line in place of ``import tensorflow as tf`` the recipe's loops save and load the variables of the
default program. Names end with ``:0`` as in TensorFlow, so the files are the same. Networks are built with
``paddlelike.layers``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, Final, Self

import numpy as np

from paddlelike.core import Array, VarType, convert_dtype, numpy_dtype
from paddlelike.executor.run import Executor
from paddlelike.framework import (
    Program,
    Variable as ProgramVariable,
    default_main_program,
    default_startup_program,
)
from paddlelike.interop.hdf5 import ParamSetter, build_setter, read_value
from paddlelike.io.calls import is_parameter, is_persistable, select
from paddlelike.lazy import dataclass
from paddlelike.storage.manifest import library_version

__version__: Final = library_version() or "unknown"  # of this package; the recipe keeps it as an attribute

_OUTPUT: Final = ":0"


@dataclass(frozen=True)
class Variable:
    """A persistable variable of the default program, by TensorFlow's name: ``w:0`` is ``w``."""

    variable: ProgramVariable = field(repr=False)

    @property
    def name(self) -> str:
        return self.variable.name + _OUTPUT

    @property
    def dtype(self) -> VarType:
        return self.variable.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return self.variable.shape


@dataclass(frozen=True)
class Placeholder:
    """A variable whose value is fed."""

    dtype: VarType
    shape: tuple[int, ...]
    name: str


def trainable_variables() -> list[Variable]:
    """Return the parameters of the default program."""
    return [Variable(one) for one in select(default_main_program(), None, is_parameter)]


def global_variables() -> list[Variable]:
    """Return the persistable variables of the default program: parameters and the optimizer's state."""
    return [Variable(one) for one in select(default_main_program(), None, is_persistable)]


def global_variables_initializer() -> Program:
    """Return the default startup program."""
    return default_startup_program()


def placeholder(dtype: VarType | str, shape: Sequence[int], name: str) -> Placeholder:
    """Return a placeholder for ``assign``."""
    return Placeholder(convert_dtype(dtype), tuple(shape), name)


def assign(ref: Variable, value: Placeholder) -> ParamSetter:
    """Return an operation that assigns the fed value of a placeholder to a variable."""
    return build_setter(ref.variable, value.name)


class Session:
    """A context manager that runs the recipe's operations on the global scope.

    >>> import paddlelike as fluid
    >>> with fluid.program_guard(fluid.Program(), fluid.Program()), Session() as session:
    ...     out = fluid.layers.fc(fluid.data("x", [None, 2]), 1, param_attr="net/w", bias_attr=False)
    ...     session.run(global_variables_initializer())
    ...     (w,) = trainable_variables()
    ...     value = placeholder(w.dtype, w.shape, "net/w_setter")
    ...     set_w = assign(w, value)
    ...     session.run(set_w, {value: [[1], [2]]})
    ...     w.name, session.run(w).tolist()
    ('net/w:0', [[1.0], [2.0]])
    """

    def __init__(self) -> None:
        self._executor = Executor()

    def run(
        self,
        fetches: Variable | ParamSetter | Program | ProgramVariable | Sequence[Any],
        feed_dict: Mapping[Any, Any] | None = None,
    ) -> Any:
        """Return the value of a variable or of an output of the network; run an assignment or a program.

        ``feed_dict`` gives values by placeholder, or by variable of the network. Several fetches give a list.
        """
        feed = dict(feed_dict or {})
        if isinstance(fetches, Variable):
            return read_value(fetches.variable).copy()
        if isinstance(fetches, ParamSetter):
            self._executor.run(fetches.assign, feed=_fit(feed, fetches.placeholder))
            return None
        if isinstance(fetches, Program):
            self._executor.run(fetches)
            return None
        named = {one if isinstance(one, str) else one.name: value for one, value in feed.items()}
        if isinstance(fetches, ProgramVariable):
            return self._executor.run(feed=named, fetch_list=[fetches])[0]
        return [self.run(one, feed_dict) for one in fetches]

    def close(self) -> None:
        """Close the executor."""
        self._executor.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _fit(feed: Mapping[Any, Any], target: ProgramVariable) -> dict[str, Array]:
    """Return the value to feed for a placeholder; a scalar takes the shape [1]."""
    by_name = {placeholder.name: value for placeholder, value in feed.items()}
    if set(by_name) != {target.name}:
        raise ValueError(f"the assignment got values for {sorted(by_name)}, expected {target.name!r} alone")
    array = np.asarray(by_name[target.name], numpy_dtype(target.dtype))
    return {target.name: array.reshape(target.shape) if array.size == 1 and not array.shape else array}
