"""Made-up samples with the shapes and dtypes of the data sets, from which networks can learn.

The same call gives the same samples on every machine. Images of a class are noise around one picture,
sentences of a class prefer some words, the next word follows from the one before, a translation is word by
word.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Part", "make_images", "make_regression", "make_sentences", "make_translations", "make_walks"]

Array = np.ndarray[Any, Any]


class Part(NamedTuple):
    """A part of a data set: its name, "train" or "test", and how many samples it has."""

    name: str
    split: str
    size: int

    @property
    def rules(self) -> np.random.Generator:
        """A new generator for what all parts of the data set have in common."""
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


def make_sentences(
    part: Part, *, words: int, classes: int, longest: int = 60
) -> Iterator[tuple[list[int], int]]:
    """Yield sentences of word ids below ``words``, and their class, which some of the words tell."""
    rng = part.samples
    for _ in range(part.size):
        label = int(rng.integers(classes))
        ids = rng.zipf(1.3, rng.integers(5, longest)) % words
        telling = rng.random(len(ids)) < 0.3
        ids[telling] = ids[telling] // classes * classes + label
        yield [int(one) for one in np.minimum(ids, words - 1)], label


def make_walks(part: Part, *, words: int, longest: int = 30) -> Iterator[list[int]]:
    """Yield sentences whose words follow from the word before, four times of five."""
    follower = part.rules.permutation(words)
    rng = part.samples
    for _ in range(part.size):
        walk = [int(rng.zipf(1.5) % words)]
        for _ in range(int(rng.integers(4, longest))):
            jump = int(rng.zipf(1.5) % words)
            walk.append(jump if rng.random() < 0.2 else int(follower[walk[-1]]))
        yield walk


def make_translations(
    part: Part, *, source: int, target: int, special: int = 3, longest: int = 20
) -> Iterator[tuple[list[int], list[int]]]:
    """Yield pairs of sentences, the second translated word by word; ids from ``special`` on are words."""
    meaning = part.rules.integers(special, target, source)
    for walk in make_walks(part, words=source - special, longest=longest):
        ids = [one + special for one in walk]
        yield ids, [int(meaning[one]) for one in ids]
