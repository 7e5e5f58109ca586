"""Ranges of numbers.

Parameters
----------
start
    The first number: a number, or a variable of shape [1].
end
    The bound, excluded: as ``start``.
step
    The distance of neighbours: as ``start``.
stop
    The last number, included: as ``start``.
num
    The count of numbers: an int, or a variable of shape [1].
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from paddlelike.core.dtypes import VarType, convert_dtype
from paddlelike.framework.graph.variable import Variable
from paddlelike.layers.emit import emit
from paddlelike.layers.tensor.constant import fill_constant

if TYPE_CHECKING:
    from paddlelike.core.typing import DtypeLike

__all__ = ["arange", "linspace", "range"]


def range(
    start: float | Variable, end: float | Variable, step: float | Variable, dtype: DtypeLike
) -> Variable:
    """Return the numbers from ``start`` to ``end``, exclusive, in steps (operator ``range``), of shape (N,).

    Each of the three may be a number or a variable of shape [1].

    ``step`` lies between neighbours.

    >>> import paddlelike as fluid
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.range(0, 10, 3, "int32")])
    >>> print(out)
    [0 3 6 9]
    """
    return _emit_range(start, end, step, dtype)


def arange(
    start: float | Variable,
    end: float | Variable,
    step: float | Variable = 1,
    dtype: DtypeLike | None = None,
    name: str | None = None,
) -> Variable:
    """Return the numbers from ``start`` to ``end``, exclusive, as :func:`range`, by default float32.

    ``step`` lies between neighbours; the shape is ``((end - start) / step,)``, rounded up.

    >>> import paddlelike as fluid
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.arange(2, 11, 3)])
    >>> print(out)
    [2. 5. 8.]
    """
    return _emit_range(start, end, step, "float32" if dtype is None else dtype, name)


def _emit_range(
    start: float | Variable,
    end: float | Variable,
    step: float | Variable,
    dtype: DtypeLike,
    name: str | None = None,
) -> Variable:
    kind = convert_dtype(dtype)
    limits = {"Start": start, "End": end, "Step": step}
    inputs = {slot: _make_scalar(value, kind) for slot, value in limits.items()}
    return emit("range", inputs, name=name, dtype=kind, constant=True)


def linspace(
    start: float | Variable, stop: float | Variable, num: int | Variable, dtype: DtypeLike
) -> Variable:
    """Return ``num`` evenly spaced numbers from ``start`` to ``stop``, both included (``linspace``).

    The result has shape (num,).

    >>> import paddlelike as fluid
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.linspace(0, 1, 5, "float32")])
    >>> print(out)
    [0.   0.25 0.5  0.75 1.  ]
    """
    inputs = {
        "Start": _make_scalar(start, convert_dtype(dtype)),
        "Stop": _make_scalar(stop, convert_dtype(dtype)),
        "Num": _make_scalar(num, VarType.INT32),
    }
    return emit("linspace", inputs)


def _make_scalar(value: float | Variable, dtype: VarType) -> Variable:
    """Return ``value`` as a variable of shape [1] and that dtype."""
    if not isinstance(value, Variable):
        return fill_constant([1], dtype, value)
    return value if value.dtype == dtype else value.astype(dtype)
