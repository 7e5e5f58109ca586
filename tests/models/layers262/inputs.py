"""Arrays to feed, and what a case is."""

import numpy as np

RNG = np.random.RandomState(7)


def real(*shape):
    return RNG.uniform(-2, 2, shape).astype("float32")


def positive(*shape):
    return RNG.uniform(0.2, 3, shape).astype("float32")


def unit(*shape):
    return RNG.uniform(-0.9, 0.9, shape).astype("float32")


def whole(high, *shape, low=0):
    return RNG.randint(low, high, shape).astype("int64")


IMAGE, ROWS, SERIES, VOLUME = (2, 3, 6, 6), (4, 5), (2, 3, 8), (1, 2, 4, 4, 4)


def of(function, *arrays):
    """A case: a function of variables, and the arrays to feed."""
    return function, arrays
