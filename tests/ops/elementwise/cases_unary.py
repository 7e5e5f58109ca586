"""Cases of the functions of each element alone."""

import math

import numpy as np

from tests.ops.harness.contract import Case

_rng = np.random.default_rng(2)
X = _rng.uniform(0.2, 0.9, (3, 4)) * np.where(_rng.random((3, 4)) < 0.5, 1, -1)
POSITIVE = np.abs(X) * 2
LARGE = X * 10 + 0.03  # away from whole numbers and from halves


def _each(function):
    """The formula by the math module, one number at a time."""
    return lambda X: np.array([function(x) for x in X.flat]).reshape(X.shape)


CASES = [
    Case("exp", {"X": X}, _each(math.exp)),
    Case("log", {"X": POSITIVE}, _each(math.log)),
    Case("log1p", {"X": X}, _each(math.log1p)),
    Case("sqrt", {"X": POSITIVE}, _each(math.sqrt)),
    Case("rsqrt", {"X": POSITIVE}, lambda X: X**-0.5),
    Case("reciprocal", {"X": X}, lambda X: X**-1.0),
    Case("square", {"X": X}, lambda X: X**2),
    Case("abs", {"X": X}, lambda X: np.where(X < 0, -X, X)),
    Case("sin", {"X": X}, _each(math.sin)),
    Case("cos", {"X": X}, _each(math.cos)),
    Case("asin", {"X": X}, _each(math.asin)),
    Case("acos", {"X": X}, _each(math.acos)),
    Case("atan", {"X": X}, _each(math.atan)),
    Case("erf", {"X": X}, _each(math.erf)),
    Case("ceil", {"X": LARGE}, _each(math.ceil)),
    Case("floor", {"X": LARGE}, _each(math.floor)),
    Case("round", {"X": LARGE}, _each(lambda x: math.floor(x + 0.5))),
    Case("sign", {"X": X}, lambda X: X / np.abs(X)),
    Case("pow", {"X": POSITIVE}, lambda X: np.exp(2.5 * np.log(X)), {"factor": 2.5}),
    Case("pow", {"X": X}, lambda X: X * X * X, {"factor": 3.0}, note="negative-base"),
    Case(
        "pow",
        {"X": X, "FactorTensor": np.array([2.0])},
        lambda X: X * X,
        {"factor": 3.0},
        wrt=["X"],
        note="factor-tensor",
    ),
]
