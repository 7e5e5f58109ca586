"""Mathematical functions that ONNX lacks, by series and polynomials, in single precision."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import numpy as np

from paddlelike.interop.onnx.exporter.graph import Step, Value, converts

#: Lanczos, g = 7: the coefficients of Godfrey (2001).
_LANCZOS: Final = (
    0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059,
    12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7,
)  # fmt: skip
#: Of the asymptotic series of digamma, by powers of 1 / x^2: Abramowitz & Stegun 6.3.18.
_BERNOULLI: Final = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760)
_SHIFTS: Final = 8  # by which digamma's argument is made larger first
#: Giles (2012), "Approximating the erfinv function", for w = -log(1 - x^2) below 5, and from there on.
_CENTRAL: Final = (
    2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087, -0.00125372503,
    -0.00417768164, 0.246640727, 1.50140941,
)  # fmt: skip
_TAIL: Final = (
    -0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613,
    0.00943887047, 1.00167406, 2.83297682,
)  # fmt: skip


def _evaluate(x: Value, coefficients: tuple[float, ...]) -> Value:
    """Return the value of a polynomial whose coefficients begin with the highest power."""
    out = coefficients[0] * x
    for coefficient in coefficients[1:-1]:
        out = (out + coefficient) * x
    return out + coefficients[-1]


def _compute_erfinv(step: Step, x: Value) -> Value:
    w = -step.add("Log", (1.0 - x) * (1.0 + x))
    central = _evaluate(w - 2.5, _CENTRAL)
    tail = _evaluate(step.add("Sqrt", w) - 3.0, _TAIL)
    return (w < 5.0).where(central, tail) * x


def _compute_lgamma(step: Step, x: Value) -> Value:
    small = x < 0.5
    large = small.where(1.0 - x, x) - 1.0
    total = step.constant(_LANCZOS[0], np.float64)
    for number, coefficient in enumerate(_LANCZOS[1:], 1):
        total = total + coefficient / (large + float(number))
    t = large + 7.5
    power = (large + 0.5) * step.add("Log", t) - t
    out = power + step.add("Log", total) + math.log(2 * math.pi) / 2
    sine = abs(step.add("Sin", x * math.pi))
    return small.where(step.add("Log", math.pi / sine) - out, out)


def _compute_digamma(step: Step, x: Value) -> Value:
    small = x < 0.0
    y = small.where(1.0 - x, x)
    shifts = step.constant(0.0, np.float64)
    for number in range(_SHIFTS):
        shifts = shifts + 1.0 / (y + float(number))
    y = y + float(_SHIFTS)
    square = 1.0 / (y * y)
    series = _evaluate(square, _BERNOULLI[::-1]) * square
    out = step.add("Log", y) - 0.5 / y - series - shifts
    angle = x * math.pi
    turned = out - math.pi * step.add("Cos", angle) / step.add("Sin", angle)
    return small.where(turned, out)


_FUNCTIONS: Final[dict[str, Callable[[Step, Value], Value]]] = {
    "digamma": _compute_digamma,
    "erfinv": _compute_erfinv,
    "lgamma": _compute_lgamma,
}


@converts(*_FUNCTIONS)
def _convert_special(step: Step) -> Value:
    return _FUNCTIONS[step.op.type](step, step.input().cast("float64")).cast(step.dtype())
