"""A random network under construction: what is fed, and the values that layers may take."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

import paddlelike as fluid

__all__ = ["Fed", "Layer", "Network", "Value"]

L = fluid.layers

ACTIVATIONS = (
    "relu",
    "tanh",
    "sigmoid",
    "leaky_relu",
    "softplus",
    "elu",
    "swish",
    "softsign",
    "square",
    "abs",
)


@dataclass(frozen=True)
class Value:
    """A variable and what is known of it.

    ``kind``: "row" (N, D), "cube" (N, A, B), "image" (N, C, H, W), or "seq" (rows, D) with a LoD.
    """

    variable: Any
    kind: str
    dims: tuple[int, ...]  # all but the first


@dataclass(frozen=True)
class Fed:
    """A variable that is fed: numbers, or ids below ``ids`` if that is not 0, with so many levels of a LoD."""

    name: str
    dims: tuple[int, ...]
    ids: int = 0
    levels: int = 0


class Network:
    """The values of a network so far; layers choose from them with ``rng``."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.values: list[Value] = []
        self.fed: list[Fed] = []
        self.extra: list[Any] = []  # variables that may be fetched although no layer takes them
        self.sparse: dict[str, bool] = {}  # by table: whether its gradient has only the rows looked up
        self.count = 0

    def name(self, prefix: str) -> str:
        """Return a name of this network that is new."""
        self.count += 1
        return f"{prefix}_{self.count}"

    def add(self, variable: Any, kind: str, *dims: int) -> Any:
        """Let later layers take a variable."""
        self.values.append(Value(variable, kind, dims))
        return variable

    def feed(self, prefix: str, dims: tuple[int, ...], *, ids: int = 0, levels: int = 0) -> Any:
        """Return a variable that is fed."""
        fed = Fed(self.name(prefix), dims, ids, levels)
        self.fed.append(fed)
        dtype = "int64" if ids else "float32"
        return fluid.data(fed.name, [None, *dims], dtype, lod_level=levels)

    def find(self, kind: str, *, where: Callable[[Value], bool] = lambda value: True) -> Value | None:
        """Return a value of a kind, more often one of the last."""
        found = [value for value in self.values if value.kind == kind and where(value)]
        if not found:
            return None
        return self.rng.choice(found[-3:] if self.rng.random() < 0.6 else found)

    def take(self, kind: str) -> Value:
        """Return a value of a kind; a fed one if there is none yet."""
        found = self.find(kind)
        if found is not None and self.rng.random() < 0.95:
            return found
        rng = self.rng
        if kind == "row":
            dims: tuple[int, ...] = (rng.choice([1, 3, 4, 8, 12]),)
        elif kind == "cube":
            dims = (rng.choice([2, 3, 4]), rng.choice([4, 6]))
        elif kind == "image":
            dims = (rng.choice([1, 3, 4]), *[rng.choice([6, 8, 9])] * 2)
        else:
            dims = (rng.choice([4, 8]),)
        variable = self.feed("x", dims, levels=int(kind == "seq"))
        self.add(variable, kind, *dims)
        return self.values[-1]

    def parameter(self, *shape: int) -> Any:
        """Return a new parameter."""
        return L.create_parameter(
            list(shape),
            "float32",
            name=self.name("p"),
            default_initializer=fluid.initializer.Normal(0.0, 0.5),
        )

    def choose_sparse(self, table: str) -> bool:
        """Return whether the gradient of a table is sparse: the same for all of its lookups."""
        return self.sparse.setdefault(table, self.maybe(0.4))

    def maybe(self, chance: float = 0.5) -> bool:
        """Return True with this chance."""
        return self.rng.random() < chance

    def activation(self) -> str | None:
        """Return the name of an activation, or None."""
        return self.rng.choice([None, *ACTIVATIONS[:5]])


Layer = Callable[[Network], None]
