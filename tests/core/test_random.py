"""The random engine draws the numbers of the real system."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from paddlelike.core import Generator, memory
from paddlelike.core.random import shuffle_range

MODULUS = 2**31 - 1


def engine(x: int) -> Iterator[int]:
    while True:
        x = 48271 * x % MODULUS
        yield x


def digest(array: Any) -> str:
    return hashlib.sha256(array.tobytes()).hexdigest()[:16]


LOW, HIGH, STD = (float(np.float32(value)) for value in (-0.3, 0.7, 0.3))
UNIFORM = lambda g, n: g.uniform([n], LOW, HIGH)
GAUSSIAN = lambda g, n: g.gaussian([n], 0.25, STD)
TRUNCATED = lambda g, n: g.truncated_gaussian([n], 0.25, STD)

# Digests of what paddlepaddle 1.8.5 (CPU) computed: uniform_random(min=-0.3, max=0.7),
# gaussian_random and truncated_gaussian_random(mean=0.25, std=0.3), with this seed and size.
REAL = {
    (UNIFORM, 1, 1000): "f72abf9de82af3aa",
    (UNIFORM, 7, 5): "0dac9d174772469b",
    (UNIFORM, 12345, 100001): "d33a5ce6b66cc00d",
    (UNIFORM, -5, 100001): "9c9ef1b5f81b0056",
    (UNIFORM, 2147483646, 1000): "dc43be0456daa678",
    (UNIFORM, -2147483648, 5): "852378197768b53a",
    (GAUSSIAN, 1, 1000): "8b6218e7266797c7",
    (GAUSSIAN, 7, 5): "ebfd42e0e65c360c",
    (GAUSSIAN, 12345, 100001): "30018a175ede9591",
    (GAUSSIAN, -5, 100001): "706b3bdd6775fef1",
    (GAUSSIAN, 2147483646, 1000): "5b07bb720c2ad9ee",
    (GAUSSIAN, -2147483648, 5): "e7e84aebbefa3d70",
    (TRUNCATED, 1, 1000): "2f19805cdf97fb02",
    (TRUNCATED, 7, 5): "32984b482f325247",
    (TRUNCATED, 12345, 100001): "08352d84ca8cd8e8",
    (TRUNCATED, -5, 100001): "aacac3614446ca44",
    (TRUNCATED, 2147483646, 1000): "cd44c51e5ee55bda",
    (TRUNCATED, -2147483648, 5): "2eb3fab49375b930",
    # the same with min=0, max=1 and mean=0, std=1: enough numbers to meet every rounding
    (lambda g, n: g.uniform([n]), 11, 3_000_000): "683f657ad21e3115",
    (lambda g, n: g.gaussian([n]), 11, 3_000_000): "52f76efa302c069e",
    (lambda g, n: g.truncated_gaussian([n]), 11, 3_000_000): "550dcb294bb5d005",
    # float64
    (lambda g, n: g.uniform([n], LOW, HIGH, np.float64), 5, 10001): "77e91f8c81d844c5",
    (lambda g, n: g.gaussian([n], 0.25, STD, np.float64), 5, 10001): "eed9eae138fc81ad",
    # randint
    (lambda g, n: g.integers(-3, 1000, [n]), 9, 2000): "89783436892458b5",
    (lambda g, n: g.integers(0, 2**31 - 1, [n]), 9, 2000): "2733a4dada8631cf",
    (lambda g, n: g.integers(-(2**31), 2**31 - 1, [n]), 9, 2000): "e30ec8424e39138d",
    (lambda g, n: g.integers(0, 2**30 + 5, [n]), 9, 2000): "c741c14047a88a4c",
    (lambda g, n: g.integers(-1, 2**31 - 3, [n]), 9, 2000): "9899d840c9b3d9c1",
    (lambda g, n: g.integers(-1, 2**31 - 2, [n]), 9, 2000): "641ae9a1467d077b",
    (lambda g, n: g.integers(4, 5, [n]), 9, 2000): "3d23d79c58c12022",
}


@pytest.mark.parametrize(
    ("draw", "seed", "count", "expected"),
    [(*key, value) for key, value in REAL.items()],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_a_seed_gives_the_same_bits_as_fluid(
    draw: Callable[[Generator, int], Any], seed: int, count: int, expected: str
) -> None:
    assert digest(draw(Generator(seed), count)) == expected


# randperm(n, seed=9) of paddlepaddle 1.8.5
@pytest.mark.parametrize(
    ("count", "expected"),
    [(1, "af5570f5a1810b7a"), (20, "6e9a23007c6c109b"), (50001, "84697ec77137bff3")],
)
def test_permutations_match_the_real_system(count: int, expected: str) -> None:
    assert digest(shuffle_range(count, 9)) == expected


def test_the_first_random_numbers_can_be_read_in_advance() -> None:
    np.testing.assert_array_equal(
        Generator(1).uniform([2], LOW, HIGH),
        np.array([-0.29997754096984863, -0.21496756374835968], np.float32),
    )
    np.testing.assert_array_equal(
        Generator(7).gaussian([2], 0.25, STD),
        np.array([0.05011005699634552, 0.02553287148475647], np.float32),
    )


@given(st.integers(1, MODULUS - 1), st.integers(1, 20000))
def test_numbers_drawn_in_blocks_equal_the_plain_sequence(state: int, count: int) -> None:
    generator = Generator()
    generator.state = state
    expected = list(itertools.islice(engine(state), count))
    assert (generator.draw_bits(count) + 1).tolist() == expected
    assert generator.state == expected[-1]


@given(st.integers(-(2**70), 2**70), st.integers(0, 10**12), st.integers(0, 3000))
def test_skipping_numbers_equals_drawing_them(seed: int, far: int, count: int) -> None:
    one, other = Generator(seed), Generator(seed)
    one.skip(far)
    other.skip(far)
    one.skip(count)
    other.draw_bits(count)
    assert one.state == other.state


@pytest.mark.parametrize("method", ["uniform", "gaussian", "truncated_gaussian"])
def test_two_draws_equal_one_draw_of_their_total_length(method: str) -> None:
    whole = getattr(Generator(3), method)([30000])
    parts = Generator(3)
    halves = [getattr(parts, method)([n]) for n in (10002, 19998)]
    np.testing.assert_array_equal(np.concatenate(halves), whole)


def test_an_odd_number_of_normal_samples_consumes_the_last_pair() -> None:
    odd, even = Generator(3), Generator(3)
    np.testing.assert_array_equal(odd.gaussian([7]), even.gaussian([8])[:7])
    assert odd.state == even.state


def test_the_largest_number_rounds_to_one() -> None:
    last = Generator()
    last.state = pow(48271, -1, MODULUS) * (MODULUS - 1) % MODULUS  # the largest number comes next
    assert last.draw(1) == 1  # as in Paddle 1.8.5: tests/alike/cases/randomness.py


def test_the_state_can_be_kept_and_put_back() -> None:
    generator = Generator(5)
    generator.draw(11)
    kept = generator.state
    first = generator.gaussian([5])
    generator.state = kept
    np.testing.assert_array_equal(generator.gaussian([5]), first)
    for state in (0, MODULUS, -1):
        with pytest.raises(ValueError, match=rf"random state {state} is not in \[1, 2147483646\]"):
            generator.state = state


def test_without_a_seed_streams_differ() -> None:
    assert len({Generator().state for _ in range(20)}) > 1


@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (4, 5)])
def test_an_array_has_the_requested_shape(shape: tuple[int, ...]) -> None:
    generator = Generator(2)
    for array in (
        generator.uniform(shape),
        generator.gaussian(shape),
        generator.truncated_gaussian(shape),
        generator.integers(0, 9, shape),
    ):
        assert array.shape == shape


def test_an_empty_interval_is_refused() -> None:
    with pytest.raises(ValueError, match=r"cannot draw from \[3, 3\)"):
        Generator(1).integers(3, 3, [2])


def test_large_results_are_allocated_so_that_a_scope_can_own_them() -> None:
    generator = Generator(2)
    for array in (generator.uniform([300, 301]), generator.gaussian([300, 301])):
        assert memory.is_placed(array)
