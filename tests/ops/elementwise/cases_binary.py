"""Cases of the arithmetic of two tensors, with every way of broadcasting."""

import numpy as np

from tests.ops.harness.contract import Case

_rng = np.random.default_rng(5)


def _positive(*shape: int):
    return _rng.uniform(0.5, 2, shape)


_FORMULAS = {
    "add": lambda X, Y: X + Y,
    "sub": lambda X, Y: X - Y,
    "mul": lambda X, Y: X * Y,
    "div": lambda X, Y: X / Y,
    "max": lambda X, Y: np.where(X > Y, X, Y),
    "min": lambda X, Y: np.where(X > Y, Y, X),
    "pow": lambda X, Y: np.exp(Y * np.log(X)),
}
# note: X, Y, axis, and Y's shape for numpy
_SHAPES = {
    "same": ((3, 4), (3, 4), -1, (3, 4)),
    "bias": ((3, 4), (4,), -1, (4,)),
    "rows": ((3, 4), (3,), 0, (3, 1)),
    "channels": ((2, 3, 4, 5), (3,), 1, (3, 1, 1)),
    "middle": ((2, 3, 4, 5), (3, 4), 1, (3, 4, 1)),
    "ones-at-the-end": ((2, 3, 4), (3, 1), 1, (3, 1)),
    "number": ((3, 4), (1,), -1, (1,)),
    "one-inside": ((2, 3, 4), (2, 1, 4), -1, (2, 1, 4)),
}


def _laid(formula, shape):
    return lambda X, Y: formula(X, Y.reshape(shape))


def _cut(X, Y):
    return np.array([int(x / y) for x, y in np.broadcast(X, Y)]).reshape(X.shape)


INTEGERS = _rng.integers(-9, 10, (4, 5))
DIVISORS = np.array([1, 2, -2, 3, -3])

CASES = [
    *(
        Case(
            f"elementwise_{name}",
            {"X": _positive(*x), "Y": _positive(*y)},
            _laid(formula, laid),
            {"axis": axis},
            note=note,
        )
        for name, formula in _FORMULAS.items()
        for note, (x, y, axis, laid) in _SHAPES.items()
    ),
    *(
        Case(
            f"elementwise_{name}",
            {"X": _positive(*x), "Y": _positive(*y)},
            _FORMULAS[name],
            note=f"longer-y-{len(x)}",
        )
        for name in ("add", "sub", "mul", "div")
        for x, y in (((4,), (3, 4)), ((3, 1), (3, 4)), ((2, 1, 4), (3, 1)))
    ),
    Case("elementwise_div", {"X": INTEGERS, "Y": DIVISORS}, _cut, wrt=(), note="integers"),
    Case("elementwise_floordiv", {"X": INTEGERS, "Y": DIVISORS}, _cut),
    Case(
        "elementwise_mod",
        {"X": INTEGERS, "Y": DIVISORS},
        lambda X, Y: X - Y * _cut(X, Y),
        note="integers",
    ),
    Case(
        "elementwise_mod",
        {"X": _rng.uniform(-9, 9, (4, 3)), "Y": np.array([2.0, -2.5, 3.5])},
        lambda X, Y: X - Y * np.floor(X / Y),
        note="sign-of-y",
    ),
    Case(
        "elementwise_pow",
        {"X": np.array([3, -2, 7]), "Y": np.array([2, -1, 0])},
        lambda: np.array([9, 0, 1]),
        wrt=(),
        note="integers",
    ),
]
