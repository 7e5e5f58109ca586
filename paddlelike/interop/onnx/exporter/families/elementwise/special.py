"""Mathematical functions that ONNX lacks, by series and polynomials, in single precision."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from paddlelike.interop.onnx.exporter.graph import Step, converts

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


class _Arithmetic:
    """Shorthand for nodes of float64."""

    def __init__(self, step: Step) -> None:
        self.step = step

    def __call__(self, kind: str, *operands: str | float) -> str:
        return self.step.add(kind, *(self.hold(one) for one in operands))

    def hold(self, value: str | float) -> str:
        """Return a value, or a number as a constant."""
        return value if isinstance(value, str) else self.step.constant(value, "float64")

    def evaluate(self, x: str, coefficients: tuple[float, ...]) -> str:
        """Return the value of a polynomial whose coefficients begin with the highest power."""
        out: str | float = coefficients[0]
        for coefficient in coefficients[1:]:
            out = self("Add", self("Mul", out, x), coefficient)
        return self.hold(out)


def _compute_erfinv(f: _Arithmetic, x: str) -> str:
    w = f("Neg", f("Log", f("Mul", f("Sub", 1.0, x), f("Add", 1.0, x))))
    central = f.evaluate(f("Sub", w, 2.5), _CENTRAL)
    tail = f.evaluate(f("Sub", f("Sqrt", w), 3.0), _TAIL)
    return f("Mul", f("Where", f("Less", w, 5.0), central, tail), x)


def _compute_lgamma(f: _Arithmetic, x: str) -> str:
    small = f("Less", x, 0.5)
    large = f("Sub", f("Where", small, f("Sub", 1.0, x), x), 1.0)
    total: str | float = _LANCZOS[0]
    for number, coefficient in enumerate(_LANCZOS[1:], 1):
        total = f("Add", total, f("Div", coefficient, f("Add", large, float(number))))
    t = f("Add", large, 7.5)
    power = f("Sub", f("Mul", f("Add", large, 0.5), f("Log", t)), t)
    out = f("Add", f("Add", power, f("Log", total)), math.log(2 * math.pi) / 2)
    sine = f("Abs", f("Sin", f("Mul", x, math.pi)))
    return f("Where", small, f("Sub", f("Log", f("Div", math.pi, sine)), out), out)


def _compute_digamma(f: _Arithmetic, x: str) -> str:
    small = f("Less", x, 0.0)
    y = f("Where", small, f("Sub", 1.0, x), x)
    shifts: str | float = 0.0
    for number in range(_SHIFTS):
        shifts = f("Add", shifts, f("Div", 1.0, f("Add", y, float(number))))
    y = f("Add", y, float(_SHIFTS))
    square = f("Div", 1.0, f("Mul", y, y))
    series = f("Mul", f.evaluate(square, _BERNOULLI[::-1]), square)
    out = f("Sub", f("Sub", f("Sub", f("Log", y), f("Div", 0.5, y)), series), shifts)
    angle = f("Mul", x, math.pi)
    turned = f("Sub", out, f("Div", f("Mul", math.pi, f("Cos", angle)), f("Sin", angle)))
    return f("Where", small, turned, out)


_FUNCTIONS: Final[dict[str, Callable[[_Arithmetic, str], str]]] = {
    "digamma": _compute_digamma,
    "erfinv": _compute_erfinv,
    "lgamma": _compute_lgamma,
}


@converts(*_FUNCTIONS)
def _convert_special(step: Step) -> str:
    out = _FUNCTIONS[step.op.type](_Arithmetic(step), step.cast(step.input(), "float64"))
    return step.cast(out, step.dtype())
