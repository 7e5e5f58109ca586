"""Values of a graph that is being written, with Python's operators: each appends a node."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar, Generic, Self, TypeVar

#: What a value is combined with, beside another value: a number, or an array.
T = TypeVar("T")


class Arithmetic(ABC, Generic[T]):
    """A value with the operators of an array."""

    #: The graph's names of the operators that are written here as numpy's functions.
    KINDS: ClassVar[Mapping[str, str]]

    @abstractmethod
    def _join(self, kind: str, x: Self | T, y: Self | T) -> Self:
        """Return the result of an operator of two values; one of them may be a number."""

    def __add__(self, other: Self | T) -> Self:
        return self._join("add", self, other)

    def __radd__(self, other: Self | T) -> Self:
        return self._join("add", other, self)

    def __sub__(self, other: Self | T) -> Self:
        return self._join("subtract", self, other)

    def __rsub__(self, other: Self | T) -> Self:
        return self._join("subtract", other, self)

    def __mul__(self, other: Self | T) -> Self:
        return self._join("multiply", self, other)

    def __rmul__(self, other: Self | T) -> Self:
        return self._join("multiply", other, self)

    def __truediv__(self, other: Self | T) -> Self:
        return self._join("divide", self, other)

    def __rtruediv__(self, other: Self | T) -> Self:
        return self._join("divide", other, self)

    def __lt__(self, other: Self | T) -> Self:
        return self._join("less", self, other)

    def __le__(self, other: Self | T) -> Self:
        return self._join("less_equal", self, other)

    def __gt__(self, other: Self | T) -> Self:
        return self._join("greater", self, other)

    def __ge__(self, other: Self | T) -> Self:
        return self._join("greater_equal", self, other)

    def equals(self, other: Self | T) -> Self:
        """Return whether elements are equal."""
        return self._join("equal", self, other)

    def minimum(self, other: Self | T) -> Self:
        """Return the smaller element of each pair."""
        return self._join("minimum", self, other)

    def maximum(self, other: Self | T) -> Self:
        """Return the greater element of each pair."""
        return self._join("maximum", self, other)


class Exported(Arithmetic[float]):
    """A value of a graph for another system, with the functions that ``FORMULAS`` of ops call."""

    @abstractmethod
    def number(self, value: float) -> Self:
        """Return a constant number of this value's type."""

    @abstractmethod
    def apply(self, type: str) -> Self:
        """Return a function of each element: an operator without attributes, by its type in Paddle."""

    @abstractmethod
    def clip(self, low: float, high: float) -> Self:
        """Return the value within bounds."""

    @abstractmethod
    def softplus(self) -> Self:
        """Return ``log(1 + e^x)``."""

    def scale(self, by: float, plus: float = 0.0) -> Self:
        """Return ``by * x + plus``."""
        x = self if by == 1 else self._join("multiply", self, self.number(by))
        return x if plus == 0 else self._join("add", x, self.number(plus))
