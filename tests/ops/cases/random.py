"""Random operators have no second formula but the real system's numbers."""

from tests.ops.contract import Case

CASES: list[Case] = []

ELSEWHERE = dict.fromkeys(
    [
        "gaussian_random",
        "gaussian_random_batch_size_like",
        "randint",
        "random_crop",
        "randperm",
        "sampling_id",
        "seed",
        "truncated_gaussian_random",
        "uniform_random",
        "uniform_random_batch_size_like",
    ],
    "tests/ops/test_random.py: bits of the real system for a seed, the scope's generator without",
)
