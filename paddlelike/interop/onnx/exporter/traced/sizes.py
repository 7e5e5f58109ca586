"""Unknown sizes: numbers that differ between traces are expressed as sums of the sizes.

An operator is traced for several sizes. A number that differs between traces must be a linear function of the
sizes; another trace verifies it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Union

import numpy as np

from paddlelike.interop.reader_tables import InexpressibleError

Number = Union["Sum", float]


class Sum:
    """A number plus multiples of some sizes."""

    def __init__(self, number: float, factors: Mapping[str, float]) -> None:
        self.number = number
        self.factors = {symbol: factor for symbol, factor in factors.items() if factor}

    def __add__(self, other: Number) -> Number:
        number, factors = (other.number, other.factors) if isinstance(other, Sum) else (other, {})
        names = self.factors.keys() | factors.keys()
        total = Sum(
            self.number + number, {name: self.factors.get(name, 0) + factors.get(name, 0) for name in names}
        )
        return total if total.factors else total.number

    def __mul__(self, by: int) -> Sum:
        return Sum(self.number * by, {name: factor * by for name, factor in self.factors.items()})

    def __sub__(self, other: Number) -> Number:
        return self + other * -1

    def __rsub__(self, other: Number) -> Number:
        return self * -1 + other

    __radd__, __rmul__ = __add__, __mul__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sum) and (self.number, self.factors) == (other.number, other.factors)

    def __hash__(self) -> int:
        return hash((self.number, tuple(sorted(self.factors.items()))))


class Unknown:
    """A size that is not a sum of other sizes; a reshape can leave one such size to ONNX."""


class Sizes:
    """The sizes of each trace: the first trace, one trace per symbol with another size, and one that
    verifies.
    """

    _PRIMES = (11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89, 97)

    def __init__(self, symbols: Sequence[str]) -> None:
        if 3 * len(symbols) > len(self._PRIMES):
            raise InexpressibleError(f"{len(symbols)} of its sizes are not known")
        primes = iter(self._PRIMES)
        first, others, last = ({symbol: next(primes) for symbol in symbols} for _ in range(3))
        self.symbols = symbols
        self.traces = [first, *({**first, symbol: others[symbol]} for symbol in symbols), last]
        if not symbols:
            self.traces = [{}]

    def merge(self, values: Sequence[Any]) -> Any:
        """Merge the values of several traces at one position: equal values, or sums of sizes.

        Raises InexpressibleError for other values.
        """
        first = values[0]
        if isinstance(first, (tuple, list)) and all(len(one) == len(first) for one in values):
            parts = [self.merge(several) for several in zip(*values, strict=True)]
            return type(first)(*parts) if hasattr(first, "_fields") else type(first)(parts)
        if isinstance(first, (int, float, np.generic)) and not isinstance(first, (bool, np.bool_)):
            return self._merge_numbers([one.item() if isinstance(one, np.generic) else one for one in values])
        return first

    def _merge_numbers(self, values: Sequence[float]) -> Number | Unknown:
        if all(one == values[0] or (one != one and values[0] != values[0]) for one in values):
            return values[0]
        first, *others, last = values
        factors = {}
        for symbol, value, sizes in zip(self.symbols, others, self.traces[1:], strict=False):
            factor = (value - first) / (sizes[symbol] - self.traces[0][symbol])
            factors[symbol] = int(factor) if isinstance(first, int) and factor == int(factor) else factor
        number = first - sum(factor * self.traces[0][symbol] for symbol, factor in factors.items())
        proof = number + sum(factor * self.traces[-1][symbol] for symbol, factor in factors.items())
        if not np.isclose(proof, last, rtol=1e-9, atol=0):
            return Unknown()
        return Sum(number, factors)
