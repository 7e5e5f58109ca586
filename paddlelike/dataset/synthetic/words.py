"""Made-up sentences, as ids of words."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from paddlelike.dataset.synthetic.arrays import Part


def make_sentences(
    part: Part, *, words: int, classes: int, longest: int = 60
) -> Iterator[tuple[list[int], int]]:
    """Yield sentences of word ids below ``words``, and their class, which follows from some words."""
    rng = part.samples
    for _ in range(part.size):
        label = int(rng.integers(classes))
        ids = rng.zipf(1.3, rng.integers(5, longest)) % words
        telling = rng.random(len(ids)) < 0.3
        ids[telling] = ids[telling] // classes * classes + label
        yield [int(one) for one in np.minimum(ids, words - 1)], label


def make_walks(part: Part, *, words: int, longest: int = 30) -> Iterator[list[int]]:
    """Yield sentences in which four of five words are determined by the word before."""
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
    """Yield pairs of sentences, the second a word-by-word translation; ids below ``special`` are marks."""
    meaning = part.rules.integers(special, target, source)
    for walk in make_walks(part, words=source - special, longest=longest):
        ids = [one + special for one in walk]
        yield ids, [int(meaning[one]) for one in ids]
