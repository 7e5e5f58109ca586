"""Where a check fails that the results decide, persistables keep their values, and tables are not copied."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("jax", reason="the extra `jax` is not installed", exc_type=ImportError)

import paddlelike as fluid
from paddlelike.errors import PaddlelikeError
from tests.compiled.harness.nets import Net, build, train

pytestmark = pytest.mark.slow

L = fluid.layers
HEIGHT = 1 << 16


def make_clicks(*, is_sparse: bool) -> Any:
    """Return the loss and the area under the curve of a network with a table of two MiB."""
    ids, y, x = (
        fluid.data("ids", [None, 3], "int64"),
        fluid.data("y", [None, 1], "int64"),
        fluid.data("x", [None, 2]),
    )
    rows = L.reshape(fluid.embedding(ids, [HEIGHT, 8], is_sparse, param_attr="table"), [-1, 24])
    out = L.fc(L.concat([rows, x], 1), 2, act="softmax")
    return [L.mean(L.cross_entropy(out, y)), L.auc(out, y, num_thresholds=50)[0]]


def make_feed(seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {
        "ids": np.concatenate([rng.integers(0, HEIGHT, (6, 2)), rng.integers(0, 2, (6, 1))], 1),
        "y": rng.integers(0, 2, (6, 1)),
        "x": rng.standard_normal((6, 2)).astype("float32"),
    }


def read(net: Net) -> dict[str, Any]:
    names = [v.name for v in net.main.list_vars() if v.persistable]
    return {name: np.array(net.scope.find_var(name).get_tensor()) for name in names}


@pytest.mark.parametrize("is_sparse", [True, False], ids=["rows", "whole"])
def test_tables_keep_their_values_if_a_result_is_not_a_probability(*, is_sparse: bool) -> None:
    ours, theirs = (
        build(
            lambda: make_clicks(is_sparse=is_sparse), lambda: fluid.optimizer.Adam(0.1, lazy_mode=is_sparse)
        )
        for _ in range(2)
    )
    feeds = [make_feed(seed) for seed in range(3)]
    bad = {**feeds[0], "x": np.full((6, 2), np.nan, "float32")}
    got, want = train(ours, feeds[:2]), train(theirs, feeds[:2], "numpy")
    before = read(ours)
    for net, backend in ((ours, "jax"), (theirs, "numpy")):
        with pytest.raises(PaddlelikeError, match="Predict"):
            train(net, [bad], backend)
    for name, value in read(ours).items():
        np.testing.assert_array_equal(value, before[name], err_msg=name)
    got, want = got + train(ours, feeds[2:]), want + train(theirs, feeds[2:], "numpy")
    np.testing.assert_allclose(np.array(got, float), np.array(want, float), rtol=1e-5)
    for name, value in read(theirs).items():
        # Adam divides by small numbers what another order of float32 sums gives.
        np.testing.assert_allclose(read(ours)[name], value, rtol=1e-3, atol=1e-6, err_msg=name)
    (piece,) = next(v for key, v in ours.main.plans.items() if key[0] == "engine").pieces
    for executable in piece.compiled._executables.values():
        assert executable.check_first is None
        assert executable.run.memory_analysis().temp_size_in_bytes < before["table"].nbytes / 2
