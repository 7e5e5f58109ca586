"""The case of rnn_memory_helper."""

import numpy as np

from tests.ops.harness.contract import Case

CASES = [Case("rnn_memory_helper", {"X": np.random.default_rng(0).random((2, 3))}, lambda X: X, wrt=["X"])]
