"""Classes of the golden files' objects, as a user's module would have them."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

GOLDEN = Path(__file__).parent.parent / "golden" / "theano"


class Net:
    """Leaves its training set out and reads it again from a file."""

    home = GOLDEN
    layers: list[Any]
    training_set_file: str

    def __getstate__(self) -> dict[str, Any]:
        state = dict(vars(self))
        del state["training_set"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        with (self.home / self.training_set_file).open("rb") as file:
            self.training_set = pickle.load(file)


class Affine:
    """The long-term form: only what is needed, as a tuple."""

    def __init__(self, W: Any, b: Any) -> None:
        self.W, self.b = W, b

    def __getstate__(self) -> tuple[Any, Any]:
        return self.W, self.b

    def __setstate__(self, state: tuple[Any, Any]) -> None:
        self.W, self.b = state


class AffineRenamed:
    """A later version of the class; the state is the same."""

    def __setstate__(self, state: tuple[Any, Any]) -> None:
        self.weights, self.bias = state


class Attributes:
    """Has no ``__getstate__``: its state is its attributes."""
