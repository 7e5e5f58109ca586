"""Random engines of C++: a shuffle computed at once is that of one value after the other."""

from __future__ import annotations

import pytest

from paddlelike.ops.kernels.engines import shuffle

MODULUS = 2**31 - 1
LAST = -pow(16807, -1, MODULUS) % MODULUS  # the seed after which the engine gives its greatest value


def shuffle_one_by_one(count: int, seed: int) -> tuple[list[int], int]:
    """``std::shuffle`` with ``std::minstd_rand0`` as the standard has it, by powers of the multiplier."""
    state, draws, order = seed % 2**64 % MODULUS or 1, 0, list(range(count))

    def draw() -> int:
        nonlocal draws
        draws += 1
        return pow(16807, draws, MODULUS) * state % MODULUS

    for index in range(1, count):
        scale = (MODULUS - 2) // (index + 1)
        while (other := (draw() - 1) // scale) > index:
            pass
        order[index], order[other] = order[other], order[index]
    return order, draw()


@pytest.mark.parametrize("seed", [0, 1, 3, LAST, MODULUS, 2**40 + 3, -5])
@pytest.mark.parametrize("count", [0, 1, 2, 3, 64, 1000])
def test_a_vectorised_shuffle_equals_the_sequential_one(count: int, seed: int) -> None:
    order, following = shuffle(count, seed)
    assert (order.tolist(), following) == shuffle_one_by_one(count, seed)
