"""Made-up images and rows of numbers."""

from __future__ import annotations

import zlib
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]


class Part(NamedTuple):
    """A part of a data set: its name, "train" or "test", and how many samples it has."""

    name: str
    split: str
    size: int

    @property
    def rules(self) -> np.random.Generator:
        """A new random generator for the properties that all parts of the data set share."""
        return np.random.default_rng(zlib.crc32(self.name.encode()))

    @property
    def samples(self) -> np.random.Generator:
        """A new generator for the samples of this part."""
        return np.random.default_rng(zlib.crc32(f"{self.name} {self.split}".encode()))


def make_images(part: Part, *, classes: int, size: int) -> tuple[Array, Array]:
    """Return images, uint8 (N, size), and labels, int64 (N,)."""
    pictures = part.rules.integers(0, 256, (classes, size)).astype(np.float32)
    rng = part.samples
    labels = rng.integers(0, classes, part.size)
    noise = rng.normal(0, 64, (part.size, size)).astype(np.float32)
    return np.clip(0.6 * pictures[labels] + 50 + noise, 0, 255).astype(np.uint8), labels


def make_regression(part: Part, features: int) -> Array:
    """Return rows of features from 0 to 1 and a target that depends on them linearly, (N, features + 1)."""
    weights = part.rules.normal(0, 5, features)
    rng = part.samples
    x = rng.uniform(0, 1, (part.size, features))
    target = 22 + (x - 0.5) @ weights + rng.normal(0, 0.5, part.size)
    return np.column_stack([x, target])
