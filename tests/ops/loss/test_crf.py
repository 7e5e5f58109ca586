"""Chains of labels, besides their cases."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.ops.loss import crf


@pytest.mark.parametrize("together", [1, 20, 1 << 16], ids=["one-by-one", "a-few", "all"])
def test_the_best_labels_are_those_of_all_ways(together: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many sequences are worked on at once; among integers sums are exact, and ways differ."""
    monkeypatch.setattr(crf, "_TOGETHER", together)
    rng, lengths, labels = np.random.RandomState(7), [4, 1, 5, 3, 2], 3
    rows = rng.randint(-99, 99, (sum(lengths), labels)).astype("float32")
    weights = rng.randint(-99, 99, (labels + 2, labels)).astype("float32")

    def score(way: tuple[int, ...], emission: np.ndarray) -> float:
        inner = sum(weights[2 + a, b] for a, b in itertools.pairwise(way))
        return float(weights[0, way[0]] + inner + weights[1, way[-1]] + emission[range(len(way)), way].sum())

    best = []
    for emission in np.split(rows, np.cumsum(lengths)[:-1]):
        ways = itertools.product(range(labels), repeat=len(emission))
        best += max(ways, key=lambda way, emission=emission: score(way, emission))
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard(), fluid.scope_guard(fluid.Scope()):
        x = fluid.data("x", [None, labels], "float32", lod_level=1)
        w = fluid.initializer.NumpyArrayInitializer(weights)
        attr = fluid.ParamAttr("w", initializer=w)
        fluid.layers.create_parameter([labels + 2, labels], "float32", attr=attr)
        path = fluid.layers.crf_decoding(x, attr)
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(startup)
        feed = {"x": fluid.create_lod_tensor(rows, [lengths], fluid.CPUPlace())}
        found = exe.run(main, feed=feed, fetch_list=[path], return_numpy=False)[0]
    assert np.array(found).ravel().tolist() == best
