"""More of DyNet's functions: of single elements, of pairs of elements, and sums of losses.

Parameters
----------
x
    An expression of any shape.
y
    An expression in the shape of ``x``.
xs
    A list of expressions of one shape.
alpha
    The factor of values below zero.

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

from paddlelike import layers
from paddlelike.collection.expressions import Expression, Operand, build, esum, to_expression
from paddlelike.errors import ShapeError
from paddlelike.framework import Variable

__all__ = [
    "abs",
    "acos",
    "affine_transform",
    "asin",
    "atan",
    "binary_log_loss",
    "bmax",
    "bmin",
    "cdiv",
    "colwise_add",
    "cos",
    "cosh",
    "cube",
    "elu",
    "emax",
    "erf",
    "exp",
    "huber_distance",
    "l1_distance",
    "log",
    "log_sigmoid",
    "logsumexp",
    "nobackprop",
    "pow",
    "selu",
    "silu",
    "sin",
    "sinh",
    "softsign",
    "sqrt",
    "square",
    "squared_distance",
    "tan",
    "trace_of_product",
]

Function = Callable[[Operand], Expression]


# Of each element


def _make(
    name: str, formula: str, example: tuple[float, float], compute: Callable[..., Variable]
) -> Function:
    """Return DyNet's elementwise function ``name``; ``example`` is an input and the result."""

    def function(x: Operand) -> Expression:
        return build(compute, to_expression(x))

    function.__name__ = function.__qualname__ = name
    what = formula if formula.startswith("the ") else f"``{formula}``"
    function.__doc__ = f"""Return {what} of each element (DyNet's ``{name}``).

    >>> import paddlelike.collection as dy
    >>> _ = dy.renew_cg()
    >>> round(dy.{name}(dy.scalarInput({example[0]})).value(), 3)
    {example[1]}
    """
    return function


def _half(x: Variable, sign: float) -> Variable:
    """Return ``(e^x + sign * e^-x) / 2``: cosh for sign 1, sinh for sign -1."""
    return layers.scale(layers.exp(x) + layers.scale(layers.exp(-x), sign), 0.5)


abs = _make("abs", "|x|", (-2.0, 2.0), layers.abs)
acos = _make("acos", "the arc cosine", (0.5, 1.047), layers.acos)
asin = _make("asin", "the arc sine", (0.5, 0.524), layers.asin)
atan = _make("atan", "the arc tangent", (1.0, 0.785), layers.atan)
cos = _make("cos", "the cosine", (1.0, 0.54), layers.cos)
cosh = _make("cosh", "the hyperbolic cosine", (1.0, 1.543), lambda x: _half(x, 1.0))
cube = _make("cube", "x^3", (2.0, 8.0), lambda x: layers.square(x) * x)
erf = _make("erf", "the error function", (1.0, 0.843), layers.erf)
exp = _make("exp", "e^x", (1.0, 2.718), layers.exp)
log = _make("log", "the natural logarithm", (2.0, 0.693), layers.log)
log_sigmoid = _make("log_sigmoid", "log(1 / (1 + e^-x))", (0.0, -0.693), layers.logsigmoid)
selu = _make("selu", "1.0507 x`` or, below zero, ``1.7581 (e^x - 1)", (-1.0, -1.111), layers.selu)
silu = _make("silu", "x / (1 + e^-x)", (1.0, 0.731), lambda x: x * layers.sigmoid(x))
sin = _make("sin", "the sine", (1.0, 0.841), layers.sin)
sinh = _make("sinh", "the hyperbolic sine", (1.0, 1.175), lambda x: _half(x, -1.0))
softsign = _make("softsign", "x / (1 + |x|)", (1.0, 0.5), layers.softsign)
sqrt = _make("sqrt", "the square root", (4.0, 2.0), layers.sqrt)
square = _make("square", "x^2", (3.0, 9.0), layers.square)
tan = _make(
    "tan", "the tangent", (0.5, 0.546), lambda x: layers.elementwise_div(layers.sin(x), layers.cos(x))
)


def elu(x: Operand, alpha: float = 1.0) -> Expression:
    """Return each element ``x`` as it is, or as ``alpha (e^x - 1)`` if it is below zero (DyNet's ``elu``).

    Returns
    -------
    Expression
        In the shape of ``x``.

    >>> import paddlelike.collection as dy
    >>> _ = dy.renew_cg()
    >>> round(dy.elu(dy.scalarInput(-1.0), 0.5).value(), 3)
    -0.316
    """
    return build(lambda one: layers.elu(one, alpha), to_expression(x))


def nobackprop(x: Operand) -> Expression:
    """Return ``x``, with a gradient of zero (DyNet's ``nobackprop``).

    Returns
    -------
    Expression
        In the shape of ``x``.

    >>> import paddlelike.collection as dy
    >>> _ = dy.renew_cg()
    >>> dy.nobackprop(dy.inputVector([1.0, 2.0])).vec_value()
    [1.0, 2.0]
    """

    def stop(one: Variable) -> Variable:
        held = layers.scale(one, 1.0)
        held.stop_gradient = True
        return held

    return build(stop, to_expression(x))


# Of pairs of elements


def _make_pair(
    name: str, formula: str, result: float, compute: Callable[..., Variable]
) -> Callable[..., Expression]:
    """Make DyNet's function ``name`` of two expressions; ``result`` is its value for 0.5 and 0.25."""

    def function(x: Operand, y: Operand) -> Expression:
        return build(compute, to_expression(x), to_expression(y))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""Return {formula} (DyNet's ``{name}``).

    Returns
    -------
    Expression
        {"Of shape (1,)" if formula.startswith("the sum") else "The shape of ``x``"}.

    >>> import paddlelike.collection as dy
    >>> _ = dy.renew_cg()
    >>> round(dy.{name}(dy.scalarInput(0.5), dy.scalarInput(0.25)).value(), 3)
    {result}
    """
    return function


def _sum(x: Variable) -> Variable:
    return layers.reduce_sum(x)


def _find_cross_entropy(x: Variable, y: Variable) -> Variable:
    return _sum(-(y * layers.log(x) + layers.scale(y, -1.0, 1.0) * layers.log(layers.scale(x, -1.0, 1.0))))


def _find_huber(x: Variable, y: Variable) -> Variable:
    gap, delta = layers.abs(x - y), 1.345
    near = layers.clip(gap, 0.0, delta)
    return _sum(layers.scale(layers.square(near), 0.5) + layers.scale(gap - near, delta))


bmax = _make_pair("bmax", "the elementwise maximum of two expressions", 0.5, layers.elementwise_max)
bmin = _make_pair("bmin", "the elementwise minimum of two expressions", 0.25, layers.elementwise_min)
cdiv = _make_pair("cdiv", "the elementwise quotient of two expressions", 2.0, layers.elementwise_div)
pow = _make_pair("pow", "``x^y``", 0.841, layers.elementwise_pow)
binary_log_loss = _make_pair(
    "binary_log_loss", "the sum of ``-(y log x + (1 - y) log(1 - x))``", 0.693, _find_cross_entropy
)
l1_distance = _make_pair("l1_distance", "the sum of ``|x - y|``", 0.25, lambda x, y: _sum(layers.abs(x - y)))
squared_distance = _make_pair(
    "squared_distance", "the sum of ``(x - y)^2``", 0.062, lambda x, y: _sum(layers.square(x - y))
)


trace_of_product = _make_pair(
    "trace_of_product", "the sum of the products of pairs of elements", 0.125, lambda x, y: _sum(x * y)
)
huber_distance = _make_pair(
    "huber_distance", "the sum of Huber's losses with delta 1.345", 0.031, _find_huber
)


def emax(xs: Sequence[Operand]) -> Expression:
    """Return the elementwise maximum of expressions of one shape (DyNet's ``emax``).

    Returns
    -------
    Expression
        In the shape of each of them.

    >>> import paddlelike.collection as dy
    >>> _ = dy.renew_cg()
    >>> dy.emax([dy.inputVector([1.0, 2.0]), dy.inputVector([3.0, 0.0])]).vec_value()
    [3.0, 2.0]
    """
    first, *others = xs
    out = to_expression(first)
    for one in others:
        out = bmax(out, one)
    return out


def logsumexp(xs: Sequence[Operand]) -> Expression:
    """Return the elementwise ``log(e^x1 + e^x2 + ...)`` of expressions of one shape (DyNet's ``logsumexp``).

    Returns
    -------
    Expression
        In the shape of each of them.

    >>> import paddlelike.collection as dy
    >>> _ = dy.renew_cg()
    >>> round(dy.logsumexp([dy.scalarInput(0.0), dy.scalarInput(0.0)]).value(), 3)
    0.693
    """
    largest = nobackprop(emax(xs))
    return log(esum([exp(to_expression(x) - largest) for x in xs])) + largest


def colwise_add(x: Operand, bias: Operand) -> Expression:
    """Return a matrix with a vector added to each column (DyNet's ``colwise_add``).

    Parameters
    ----------
    x
        A matrix, (rows, columns).
    bias
        A vector, one number per row of ``x``.

    Returns
    -------
    Expression
        In the shape of the matrix.

    >>> import paddlelike.collection as dy
    >>> _ = dy.renew_cg()
    >>> dy.colwise_add(dy.inputTensor([[1.0], [3.0]]), dy.inputVector([1.0, 2.0])).npvalue().tolist()
    [[2.0], [5.0]]
    """
    return build(lambda one, v: layers.elementwise_add(one, v, axis=0), to_expression(x), to_expression(bias))


def affine_transform(exprs: Sequence[Operand]) -> Expression:
    """Return ``b + W1 x1 + W2 x2 + ...`` of ``[b, W1, x1, W2, x2, ...]`` (DyNet's ``affine_transform``).

    Parameters
    ----------
    exprs
        ``[b, W1, x1, W2, x2, ...]``: a bias, then pairs of a matrix and a vector or matrix.

    Returns
    -------
    Expression
        In the shape of b.

    Raises
    ------
    ShapeError
        A W has no x.

    >>> import paddlelike.collection as dy
    >>> _ = dy.renew_cg()
    >>> w, x = dy.inputTensor([[1.0, 2.0]]), dy.inputVector([3.0, 4.0])
    >>> dy.affine_transform([dy.scalarInput(5.0), w, x]).value()
    16.0
    """
    bias, *pairs = map(to_expression, exprs)
    if len(pairs) % 2:
        raise ShapeError(f"affine_transform takes b, then pairs of W and x, not {len(exprs)} expressions")
    out = esum([w * x for w, x in zip(pairs[::2], pairs[1::2], strict=True)])
    return out + bias if out.shape == bias.shape else colwise_add(out, bias)
