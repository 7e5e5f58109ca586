"""Expressions: DyNet's arithmetic over variables of a Program.

A vector of ``n`` numbers has shape ``(n,)``, a matrix ``(rows, columns)``. ``*`` is the matrix product, or
scales by a number; ``+`` and ``-`` work element by element. The functions have DyNet's names and are plain
functions, so that a spec may hold one of them (``tanh``).

Parameters
----------
x, y
    An expression, parameter, variable or array; several operands have one shape.
xs
    A list of expressions.
d
    The dim along which vectors or matrices are joined, from 0.
gain, bias
    Vectors as long as ``x``.
index
    The index of an element or of a row, from 0.
table
    A table of :meth:`ParameterCollection.add_lookup_parameters`.
value
    The value of the expression: numbers, an array, or a parameter.
dim
    The length of the vector.
variable
    The variable of the value.

Returns
-------
Expression
    In the shape of ``x``.

Raises
------
TypeError
    An operand is neither an expression, a parameter nor a variable.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from paddlelike import layers
from paddlelike.backward import gradients
from paddlelike.collection.graph import current_graph, evaluate, run
from paddlelike.collection.parameters import Parameters
from paddlelike.core import Array
from paddlelike.errors import GraphError, ShapeError
from paddlelike.framework import Program, Variable, program_guard

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = [
    "Expression",
    "average",
    "build",
    "cmult",
    "concatenate",
    "dot_product",
    "esum",
    "inputTensor",
    "layer_norm",
    "log_softmax",
    "logistic",
    "lookup",
    "parameter",
    "rectify",
    "softmax",
    "tanh",
    "to_expression",
]


#: What stands in an expression.
Operand: TypeAlias = "Expression | Parameters | Variable | Array | list[float]"


class Expression:
    """A value to be computed; ``variable`` is its variable, which Fluid's layers and optimizers take.

    >>> import paddlelike.collection as dy
    >>> _ = dy.renew_cg()
    >>> (dy.inputVector([1.0, 2.0]) + dy.inputVector([3.0, 4.0])).npvalue().tolist()
    [4.0, 6.0]
    """

    def __init__(self, variable: Variable) -> None:
        self.variable = variable

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape, without a batch."""
        return tuple(self.variable.shape)

    def dim(self) -> tuple[tuple[int, ...], int]:
        """Return the shape and the size of the batch, which is 1."""
        return self.shape, 1

    def npvalue(self) -> Array:
        """Compute the expression, and return its value: float32 of :attr:`shape`."""
        return evaluate(self.variable).reshape(self.shape)

    def value(self) -> float | list[Any]:
        """Return the value: a number if it has one element, otherwise nested lists."""
        array = self.npvalue()
        return float(array.reshape(())) if array.size == 1 else array.tolist()

    def vec_value(self) -> list[float]:
        """Return the elements as a flat list, column by column."""
        return self.npvalue().ravel(order="F").tolist()

    def scalar_value(self) -> float:
        """Return the one number. Raises ShapeError when there are more."""
        array = self.npvalue()
        if array.size != 1:
            raise ShapeError(f"an expression of shape {array.shape} is not one number")
        return float(array.reshape(()))

    def forward(self) -> Array:
        """Return the value, as :meth:`npvalue` does."""
        return self.npvalue()

    def backward(self) -> None:
        """Add the gradients of this number to the parameters; text files then hold the gradients too.

        Raises ShapeError when the expression is not one number.
        """
        if int(np.prod(self.shape)) != 1:
            raise ShapeError(f"backward() needs one number, the expression has shape {self.shape}")
        program = self.variable.block.program.clone()
        loss = program.global_block().var(self.variable.name)
        owners = [
            owner for owner in _list_parameters(self) if program.global_block().has_var(owner.variable_name)
        ]
        inputs = [program.global_block().var(owner.variable_name) for owner in owners]
        with program_guard(program, Program()):
            found = gradients(loss, inputs) or [None] * len(inputs)
        pairs = [(owner, one) for owner, one in zip(owners, found, strict=True) if one is not None]
        for (owner, _), value in zip(pairs, run(program, [one for _, one in pairs]), strict=True):
            gradient = np.asarray(value, dtype=np.float32).reshape(owner.shape())
            owner.add_gradient(gradient, _get_rows(self.variable.block.program).get(owner.variable_name))

    def __mul__(self, other: float | Operand) -> Expression:
        if isinstance(other, int | float):
            return build(lambda x: layers.scale(x, scale=float(other)), self)
        return build(layers.matmul, self, to_expression(other))

    def __rmul__(self, other: float | Operand) -> Expression:
        if isinstance(other, int | float):
            return build(lambda x: layers.scale(x, scale=float(other)), self)
        return build(layers.matmul, to_expression(other), self)

    def __add__(self, other: float | Operand) -> Expression:
        if isinstance(other, int | float):
            return build(lambda x: layers.scale(x, bias=float(other)), self)
        return build(layers.elementwise_add, self, to_expression(other))

    __radd__ = __add__

    def __sub__(self, other: float | Operand) -> Expression:
        if isinstance(other, int | float):
            return build(lambda x: layers.scale(x, bias=-float(other)), self)
        return build(layers.elementwise_sub, self, to_expression(other))

    def __rsub__(self, other: float | Operand) -> Expression:
        return (-self).__add__(other)

    def __neg__(self) -> Expression:
        return self * -1.0

    def __truediv__(self, other: float | Operand) -> Expression:
        if isinstance(other, int | float):
            return build(lambda x: layers.scale(x, scale=1.0 / other), self)
        return build(layers.elementwise_div, self, to_expression(other))

    def __getitem__(self, index: int | slice) -> Expression:
        rows = range(self.shape[0])
        chosen = rows[index] if isinstance(index, slice) else range(rows[index], rows[index] + 1)
        part = build(lambda x: layers.slice(x, axes=[0], starts=[chosen.start], ends=[chosen.stop]), self)
        if isinstance(index, slice) or len(self.shape) == 1:
            return part
        return build(lambda x: layers.reshape(x, shape=list(self.shape[1:])), part)

    def __repr__(self) -> str:
        return f"<Expression {self.variable.name} {self.shape}>"


def to_expression(value: Operand) -> Expression:
    """Return a parameter, a variable or an array as an expression. Raises TypeError for other values."""
    if isinstance(value, Expression):
        return value
    if isinstance(value, Parameters):
        return parameter(value)
    if isinstance(value, Variable):
        return Expression(value)
    if isinstance(value, np.ndarray | list):
        return inputTensor(value)
    raise TypeError(f"expected an expression, a parameter or a variable, got {type(value).__name__}")


def parameter(value: Operand) -> Expression:
    """Return the expression of a parameter in the current graph; an expression is returned as it is (DyNet's
    ``parameter``).

    Returns
    -------
    Expression
        In the shape of the parameter.

    >>> import paddlelike.collection as dy
    >>> w = dy.ParameterCollection().add_parameters(2, init=1.0)
    >>> _ = dy.renew_cg()
    >>> dy.parameter(w).npvalue().tolist()
    [1.0, 1.0]
    """
    if not isinstance(value, Parameters):
        return to_expression(value)
    variable = value.variable()
    program = variable.block.program
    _get_owners(program)[variable.name], _get_rows(program)[variable.name] = value, None
    return Expression(variable)


def lookup(table: Parameters, index: int) -> Expression:
    """Return row ``index`` of a table (DyNet's ``lookup``).

    Returns
    -------
    Expression
        In the shape of an entry of the table.

    Raises
    ------
    IndexError
        The table has no row ``index``.

    >>> import paddlelike.collection as dy
    >>> table = dy.ParameterCollection().add_lookup_parameters((10, 4))
    >>> _ = dy.renew_cg()
    >>> dy.lookup(table, 3).npvalue().shape
    (4,)
    """
    rows = table.shape()[0]
    if not 0 <= index < rows:
        raise IndexError(f"{table.name()} has rows 0 to {rows - 1}, not {index}")
    variable = table.variable()
    program = variable.block.program
    _get_owners(program)[variable.name] = table
    before = _get_rows(program).get(variable.name, frozenset())
    _get_rows(program)[variable.name] = None if before is None else before | {index}
    return Expression(variable)[index]


# Functions


def inputTensor(value: ArrayLike) -> Expression:  # noqa: N802  (DyNet's name)
    """Return a constant array as an expression, float32 (DyNet's ``inputTensor``).

    Returns
    -------
    Expression
        In the shape of the array, float32.

    Raises
    ------
    TypeError, ValueError
        ``value`` is not an array of numbers.

    >>> import paddlelike.collection as dy
    >>> _ = dy.renew_cg()
    >>> dy.inputTensor([[1.0, 2.0], [3.0, 4.0]]).npvalue().shape
    (2, 2)
    """
    array = np.array(value, dtype=np.float32)
    with program_guard(current_graph(), Program()):
        return Expression(layers.assign(array))


def tanh(x: Operand) -> Expression:
    """Return the hyperbolic tangent of each element (DyNet's ``tanh``).

    >>> import paddlelike.collection as dy
    >>> _ = dy.renew_cg()
    >>> dy.tanh(dy.inputVector([0.0])).npvalue().tolist()
    [0.0]
    """
    return build(layers.tanh, to_expression(x))


def logistic(x: Operand) -> Expression:
    """Return ``1 / (1 + exp(-x))`` of each element (DyNet's ``logistic``).

    >>> import paddlelike.collection as dy
    >>> _ = dy.renew_cg()
    >>> dy.logistic(dy.inputVector([0.0])).npvalue().tolist()
    [0.5]
    """
    return build(layers.sigmoid, to_expression(x))


def rectify(x: Operand) -> Expression:
    """Return ``max(x, 0)`` of each element (DyNet's ``rectify``).

    >>> import paddlelike.collection as dy
    >>> _ = dy.renew_cg()
    >>> dy.rectify(dy.inputVector([-1.0, 2.0])).npvalue().tolist()
    [0.0, 2.0]
    """
    return build(layers.relu, to_expression(x))


def softmax(x: Operand, d: int = 0) -> Expression:
    """Return the softmax of a vector or of each column of a matrix; with ``d=1``, over each row (DyNet's
    ``softmax``).

    Parameters
    ----------
    d
        The dim along which the numbers of the result add up to 1.

    >>> import paddlelike.collection as dy
    >>> _ = dy.renew_cg()
    >>> dy.softmax(dy.inputVector([0.0, 0.0])).npvalue().tolist()
    [0.5, 0.5]
    """
    return _by_column(layers.softmax, to_expression(x), d)


def log_softmax(x: Operand) -> Expression:
    """Return the logarithm of :func:`softmax`.

    >>> import paddlelike.collection as dy
    >>> _ = dy.renew_cg()
    >>> dy.log_softmax(dy.inputVector([0.0, 0.0])).npvalue().round(3).tolist()
    [-0.6930000185966492, -0.6930000185966492]
    """
    return _by_column(layers.log_softmax, to_expression(x))


def cmult(x: Operand, y: Operand) -> Expression:
    """Return the product of each pair of elements (DyNet's ``cmult``).

    Returns
    -------
    Expression
        In the shape of the operands.

    >>> import paddlelike.collection as dy
    >>> _ = dy.renew_cg()
    >>> dy.cmult(dy.inputVector([1.0, 2.0]), dy.inputVector([3.0, 4.0])).npvalue().tolist()
    [3.0, 8.0]
    """
    return build(layers.elementwise_mul, to_expression(x), to_expression(y))


def layer_norm(x: Operand, gain: Operand, bias: Operand) -> Expression:
    """Return a vector of mean 0 and deviation 1, times ``gain``, plus ``bias`` (Ba et al. 2016).

    Returns
    -------
    Expression
        In the shape of ``x``, (n,).

    >>> import paddlelike.collection as dy
    >>> _ = dy.renew_cg()
    >>> dy.layer_norm(dy.inputVector([1.0, 3.0]), dy.ones(2), dy.zeros(2)).vec_value()
    [-1.0, 1.0]
    """
    vector = to_expression(x)
    centered = build(lambda v: layers.elementwise_sub(v, layers.reduce_mean(v, keep_dim=True)), vector)
    scaled = build(
        lambda v: layers.elementwise_div(v, layers.sqrt(layers.reduce_mean(layers.square(v), keep_dim=True))),
        centered,
    )
    return cmult(gain, scaled) + to_expression(bias)


def concatenate(xs: Sequence[Operand], d: int = 0) -> Expression:
    """Return vectors or matrices joined one below the other, or along another dim ``d`` (DyNet's
    ``concatenate``).

    Returns
    -------
    Expression
        In the shape of the operands, with their lengths added up along the joined dim.

    >>> import paddlelike.collection as dy
    >>> _ = dy.renew_cg()
    >>> dy.concatenate([dy.inputVector([1.0, 2.0]), dy.inputVector([3.0])]).npvalue().tolist()
    [1.0, 2.0, 3.0]
    """
    return build(lambda *variables: layers.concat(list(variables), axis=d), *map(to_expression, xs))


def esum(xs: Sequence[Operand]) -> Expression:
    """Return the sum of expressions of one shape (DyNet's ``esum``).

    Returns
    -------
    Expression
        In the shape of each of them.

    >>> import paddlelike.collection as dy
    >>> _ = dy.renew_cg()
    >>> dy.esum([dy.inputVector([1.0, 2.0]), dy.inputVector([3.0, 4.0])]).npvalue().tolist()
    [4.0, 6.0]
    """
    return build(lambda *variables: layers.sums(list(variables)), *map(to_expression, xs))


def average(xs: Sequence[Operand]) -> Expression:
    """Return the mean of expressions of one shape (DyNet's ``average``).

    Returns
    -------
    Expression
        In the shape of each of them.

    >>> import paddlelike.collection as dy
    >>> _ = dy.renew_cg()
    >>> dy.average([dy.inputVector([1.0, 2.0]), dy.inputVector([3.0, 6.0])]).npvalue().tolist()
    [2.0, 4.0]
    """
    return esum(xs) / len(xs)


def dot_product(x: Operand, y: Operand) -> Expression:
    """Return the sum of the products of each pair of elements, of shape ``(1,)`` (DyNet's ``dot_product``).

    Returns
    -------
    Expression
        Of shape (1,).

    >>> import paddlelike.collection as dy
    >>> _ = dy.renew_cg()
    >>> dy.dot_product(dy.inputVector([1.0, 2.0]), dy.inputVector([3.0, 4.0])).value()
    11.0
    """
    return build(layers.reduce_sum, cmult(x, y))


def build(function: Callable[..., Variable], *arguments: Expression) -> Expression:
    """Return ``function`` of the arguments' variables, appended to their program.

    Raises GraphError when they are of several graphs.
    """
    program = current_graph()
    programs = [argument.variable.block.program for argument in arguments]
    if any(one is not programs[0] for one in programs):
        earlier = next(a for a, one in zip(arguments, programs, strict=True) if one is not program)
        raise GraphError(
            f"{earlier!r} belongs to an earlier graph: renew_cg() was called after it was made",
            hint="make it again, from its parameters and inputs, after renew_cg()",
        )
    with program_guard(programs[0], Program()):
        variable: Variable = function(*[argument.variable for argument in arguments])
        return Expression(variable)


def _by_column(function: Callable[..., Variable], x: Expression, d: int = 0) -> Expression:
    return build(lambda variable: function(variable, axis=d if len(x.shape) > 1 else -1), x)


def _get_owners(program: Program) -> dict[str, Parameters]:
    """Return the parameters of collections that a graph uses, by variable name."""
    owners: dict[str, Parameters] = program.__dict__.setdefault("_collection_parameters", {})
    return owners


def _get_rows(program: Program) -> dict[str, frozenset[int] | None]:
    """Return the rows that a graph looks up, by name of the table; None stands for all rows."""
    rows: dict[str, frozenset[int] | None] = program.__dict__.setdefault("_collection_rows", {})
    return rows


def _list_parameters(expression: Expression) -> list[Parameters]:
    return list(_get_owners(expression.variable.block.program).values())
