"""Cases of cumsum, one row at a time."""

import itertools

import numpy as np

from tests.ops.harness.contract import Case

X = np.random.default_rng(12).standard_normal((3, 4))


def _cumsum(X, exclusive, reverse):
    def one(row):
        row = row[::-1] if reverse else row
        sums = [0, *itertools.accumulate(row)]
        sums = sums[:-1] if exclusive else sums[1:]
        return sums[::-1] if reverse else sums

    return np.array([one(row.tolist()) for row in X])


CASES = [
    *(
        Case(
            "cumsum",
            {"X": X},
            _cumsum,
            {"exclusive": exclusive, "reverse": reverse},
            note="-".join(["last", "exclusive"][: 1 + exclusive] + ["reverse"][:reverse]),
        )
        for exclusive in (False, True)
        for reverse in (False, True)
    ),
    Case(
        "cumsum",
        {"X": X},
        lambda X: _cumsum(X.T, False, True).T,
        {"axis": 0, "reverse": True},
        note="first",
    ),
]
