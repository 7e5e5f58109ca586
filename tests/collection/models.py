"""The collections that the golden files hold, and a user's own savable type."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import paddlelike.collection as dy

GOLDEN = Path(__file__).parent.parent / "golden" / "dynet"


def make_whole() -> tuple[dy.ParameterCollection, dy.ParameterCollection]:
    """The collection of ``whole.model`` and its ``/enc/``: shapes and names as DyNet got them."""
    m = dy.ParameterCollection()
    m.add_parameters(5)
    m.add_lookup_parameters((4, 3))
    m.add_parameters((3, 5), name="w")
    m.add_parameters((2, 3, 4), name="w")
    enc = m.add_subcollection("enc")
    enc.add_parameters((2, 2))
    enc.add_lookup_parameters((3, 2, 2), name="emb")
    enc.add_subcollection().add_parameters(2)
    m.add_subcollection("enc").add_parameters(3, name="b")
    return m, enc


def arrays_of(collection: dy.ParameterCollection) -> dict[str, np.ndarray]:
    """Values by full name, with ``|`` for ``/`` as in the golden ``.npz`` files."""
    every = [*collection.parameters_list(), *collection.lookup_parameters_list()]
    return {one.name().replace("/", "|"): one.as_array() for one in every}


class OneLayerMLP:
    """The user type of DyNet's own text on saving."""

    def __init__(
        self, model: dy.ParameterCollection, n_in: int, n_hid: int, n_out: int, act: Any = dy.tanh
    ) -> None:
        self.sub = model.add_subcollection("mlp")
        self.W1 = self.sub.add_parameters((n_hid, n_in))
        self.b1 = self.sub.add_parameters(n_hid)
        self.W2 = self.sub.add_parameters((n_out, n_hid))
        self.b2 = self.sub.add_parameters(n_out)
        self.act = act
        self.spec = (n_in, n_hid, n_out, act)

    def __call__(self, x: dy.Expression) -> dy.Expression:
        w1, b1, w2, b2 = (dy.parameter(p) for p in (self.W1, self.b1, self.W2, self.b2))
        return dy.softmax(w2 * self.act(w1 * x + b1) + b2)

    def param_collection(self) -> dy.ParameterCollection:
        return self.sub

    @staticmethod
    def from_spec(spec: Any, model: dy.ParameterCollection) -> OneLayerMLP:
        return OneLayerMLP(model, *spec)


def read_golden(name: str) -> dict[str, np.ndarray]:
    with np.load(GOLDEN / name) as file:
        return dict(file)
