"""Parameters of a collection: a name, a shape, and a value in the scope."""

from __future__ import annotations

import os
from collections.abc import Container
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from paddlelike.collection import files
from paddlelike.collection.graph import current_graph, initialize
from paddlelike.core import Array, LoDTensor, Scope, global_scope
from paddlelike.errors import GraphError, ShapeError
from paddlelike.formats.dynet import PARAMETER, Block
from paddlelike.framework import Parameter, Program, default_main_program, default_startup_program
from paddlelike.initializer import Initializer

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["Parameters", "create"]

Path = str | os.PathLike[str]


class Parameters:
    """A parameter of a :class:`~paddlelike.collection.ParameterCollection`, made by ``add_parameters``.

    Its value is the value of the Program variable ``variable_name`` in the global scope, so that Fluid's
    layers, optimizers, saves and loads see it too.

    Parameters
    ----------
    name
        Its name in the collection.
    shape
        The shape of its value.
    variable_name
        The name of its variable in the scope.
    scope
        The scope that holds the value.

    >>> import paddlelike.collection as dy
    >>> _ = dy.renew_cg()
    >>> w = dy.ParameterCollection().add_parameters((2, 3), name="w")
    >>> w.name(), w.as_array().shape
    ('/w', (2, 3))
    """

    kind: ClassVar[str] = PARAMETER

    def __init__(self, name: str, shape: tuple[int, ...], variable_name: str, scope: Scope) -> None:
        self._name = name
        self._shape = shape
        self._scope = scope
        self._gradient: Array | None = None
        self._rows: frozenset[int] | None = frozenset()  # rows that have a gradient; None: all
        self.variable_name = variable_name

    def name(self) -> str:
        """Return the full name: the path of the collection and the parameter's own name."""
        return self._name

    def shape(self) -> tuple[int, ...]:
        """Return the shape; for a lookup table it is ``(rows, dims...)``."""
        return self._shape

    def as_array(self) -> Array:
        """Return a copy of the value, float32 of :meth:`shape`."""
        return np.array(self._tensor(), dtype=np.float32).reshape(self._shape)

    npvalue = value = as_array

    def set_value(self, value: ArrayLike) -> None:
        """Set the value. Raises ShapeError when its shape differs."""
        array = np.array(value, dtype=np.float32, order="C")
        if array.shape != self._shape:
            raise ShapeError(f"{self._name} has shape {self._shape}, the value {array.shape}")
        self._tensor().set(array)

    def scale(self, s: float) -> None:
        """Multiply every element by a number."""
        self.set_value(self.as_array() * np.float32(s))

    def clip_inplace(self, left: float, right: float) -> None:
        """Limit every element to the range from ``left`` to ``right``."""
        self.set_value(self.as_array().clip(left, right))

    def zero(self) -> None:
        """Set every element to 0."""
        self.set_value(np.zeros(self._shape, np.float32))

    def grad_as_array(self) -> Array:
        """Return the gradient that the last ``backward()`` left, zeros when there is none."""
        return np.zeros(self._shape, np.float32) if self._gradient is None else self._gradient.copy()

    def has_gradient(self) -> bool:
        """Return whether ``backward()`` left a gradient."""
        return self._gradient is not None

    def looked_up_rows(self) -> list[int] | None:
        """Return the looked-up rows that the gradient belongs to; None for all rows."""
        return None if self._rows is None else sorted(self._rows)

    def add_gradient(self, gradient: Array, rows: frozenset[int] | None = None) -> None:
        """Add to the gradient of ``rows``, or of all rows; text files then hold it too (``FULL_GRAD``)."""
        self._gradient = self.grad_as_array() + gradient
        self._rows = None if rows is None or self._rows is None else self._rows | rows

    def reset_gradient(self) -> None:
        """Forget the gradient."""
        self._gradient, self._rows = None, frozenset()

    def variable(self, program: Program | None = None) -> Parameter:
        """Return this parameter's variable in a program (None for the current graph); add it if missing.

        Raises GraphError when the program has another variable of that name.
        """
        block = (current_graph() if program is None else program).global_block()
        if not block.has_var(self.variable_name):
            block.create_parameter(name=self.variable_name, shape=self._shape, dtype="float32")
        found = block.var(self.variable_name)
        if not isinstance(found, Parameter):
            raise GraphError(f"the program has a variable {self.variable_name!r} that is not a parameter")
        return found

    def save(self, filename: Path, key: str = "", append: bool = False) -> None:
        """Write the parameter into a text file under ``key``, by default its full name.

        Raises
        ------
        ValueError
            ``key`` holds a blank or ``#``, or is ``/``.
        SaveError
            ``append`` is set and the file already has the name, or the file cannot be written. It is
            unchanged.
        """
        files.check_key(key)
        files.write(filename, [self.to_block(key or self._name)], append=append)

    def populate(self, filename: Path, key: str) -> None:
        """Take the value from the block ``key`` of a text file.

        Raises ValueError for an empty key, and LoadError when the file has no such block of this kind or its
        dims differ.
        """
        block = files.find(filename, self.kind, key)
        self.check_block(block)
        self.take_block(block)

    def to_block(self, name: str) -> Block:
        """Return the block of a text file that holds the value, and the gradient if there is one."""
        return Block(self.kind, name, self.as_array(), None if self._gradient is None else self._gradient)

    def check_block(self, block: Block) -> None:
        """Raise LoadError when the shape of a block differs."""
        files.check_shape(block, self.kind, self._name, self._shape)

    def take_block(self, block: Block) -> None:
        """Copy value and gradient from a block."""
        self.set_value(block.values)
        self.reset_gradient()
        if block.gradients is not None:
            self.add_gradient(block.gradients)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._name} {self._shape}>"

    def _tensor(self) -> LoDTensor:
        return self._scope.var(self.variable_name).get_tensor()


def create(kind: type[Parameters], name: str, shape: tuple[int, ...], initializer: Initializer) -> Parameters:
    """Add a parameter to the default programs and set its first value in the global scope."""
    main, startup = default_main_program().global_block(), default_startup_program().global_block()
    variable_name = _free_name(name.strip("/"), main.vars, startup.vars)
    first = startup.create_parameter(name=variable_name, shape=shape, dtype="float32")
    initializer(first, startup)
    main.create_parameter(name=variable_name, shape=shape, dtype="float32")
    initialize(variable_name, shape, initializer)
    return kind(name, shape, variable_name, global_scope())


def _free_name(name: str, *taken: Container[str]) -> str:
    """Return ``name``, or ``name.1`` and so on when a program already has it."""
    candidate, count = name, 0
    while any(candidate in names for names in taken):
        count += 1
        candidate = f"{name}.{count}"
    return candidate
