"""Copies of a program on several devices: the losses of the copies that numpy runs one after the other."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("jax", reason="the extra `jax` is not installed", exc_type=ImportError)

import paddlelike as fluid
from paddlelike.errors import UnsupportedError
from tests.compiled.harness.nets import batches, build, regression

pytestmark = pytest.mark.slow

SCRIPT = """
import numpy as np, paddlelike as fluid
from tests.compiled.harness.nets import L, build

def make():
    x, y = fluid.data("x", [None, 1, 6, 6]), fluid.data("y", [None, 1], "int64")
    hidden = L.dropout(L.batch_norm(L.conv2d(x, 3, 3), act="relu"), 0.2)
    return L.mean(L.cross_entropy(L.fc(hidden, 5, act="softmax"), y))

rng = np.random.default_rng(1)
feeds = [{"x": rng.standard_normal((16, 1, 6, 6)).astype("float32"), "y": rng.integers(0, 5, (16, 1))}
         for _ in range(3)]
got = {}
for backend in ("jax", "numpy"):
    net = build(make, lambda: fluid.optimizer.Momentum(0.1, 0.9))
    program = fluid.CompiledProgram(net.main).with_data_parallel(net.fetch[0], places=[fluid.CPUPlace()] * 8)
    program.with_backend(backend)
    fetch = [net.fetch[0], "batch_norm_0.w_1", "learning_rate_0"]
    losses = [net.exe.run(program, feed=feed, fetch_list=fetch, scope=net.scope) for feed in feeds]
    assert [value.shape for value in losses[0]] == [(8,), (24,), (8,)]
    weights = [np.array(net.scope.find_var(n).get_tensor()).ravel() for n in ("conv2d_0.w_0", "fc_0.w_0")]
    got[backend] = np.concatenate([*(value for each in losses for value in each), *weights])
    if backend == "jax":
        assert len(net.scope.find_var("fc_0.w_0").get_tensor().find_on_device().devices()) == 8
        single = fluid.CompiledProgram(net.main.clone(for_test=True)).with_backend("jax")
        net.exe.run(single, feed=feeds[0], fetch_list=net.fetch, scope=net.scope)  # on one of the devices
# Another order of float32 sums.
np.testing.assert_allclose(got["jax"], got["numpy"], rtol=1e-4, atol=1e-6)
print("equal")
"""


SEQUENCES = """
import numpy as np, paddlelike as fluid
from tests.compiled.harness.nets import L, build

def make():
    words, y = fluid.data("w", [None, 1], "int64", lod_level=1), fluid.data("y", [None, 1], "int64")
    hidden = L.dropout(L.fc(L.embedding(words, size=[30, 8], is_sparse=True), 32), 0.2)
    state, _ = L.dynamic_lstm(hidden, 32, use_peepholes=False)
    guess = L.fc(L.sequence_pool(state, "max"), 5, act="softmax")
    return [L.mean(L.cross_entropy(guess, y)), L.scale(hidden, 2.0), guess]

rng = np.random.default_rng(1)
feeds = []
for _ in range(3):
    lengths = rng.integers(1, 7, 16).tolist()
    words = fluid.create_lod_tensor(rng.integers(0, 30, (sum(lengths), 1)), [lengths], fluid.CPUPlace())
    feeds.append({"w": words, "y": rng.integers(0, 5, (16, 1))})
got = {}
for backend in ("jax", "numpy"):
    net = build(make, lambda: fluid.optimizer.Adam(0.05))
    program = fluid.CompiledProgram(net.main).with_data_parallel(net.fetch[0], places=[fluid.CPUPlace()] * 8)
    program.with_backend(backend)
    found = []
    for feed in feeds:
        results = net.exe.run(program, feed=feed, fetch_list=net.fetch, scope=net.scope, return_numpy=False,
                              return_merged=False)
        lods = [part.recursive_sequence_lengths() for part in results[1]]
        assert sum(lods, []) == np.reshape(feed["w"].recursive_sequence_lengths(), (8, 2)).tolist()
        found += [np.array(part).ravel() for each in results for part in each]
    found += [np.array(net.scope.find_var(n).get_tensor()).ravel() for n in ("embedding_0.w_0", "lstm_0.w_0")]
    got[backend] = np.concatenate(found)
    if backend == "jax":
        assert len(net.scope.find_var("lstm_0.w_0").get_tensor().find_on_device().devices()) == 8
# Another order of float32 sums, of which Adam divides small ones.
np.testing.assert_allclose(got["jax"], got["numpy"], rtol=1e-3, atol=1e-5)
print("equal")
"""


UNEVEN = """
import warnings
import numpy as np, paddlelike as fluid
from tests.compiled.harness.nets import batches, build, regression

net = build(regression, lambda: fluid.optimizer.SGD(0.1))
program = fluid.CompiledProgram(net.main).with_data_parallel(net.fetch[0], places=[fluid.CPUPlace()] * 2)
program.with_backend("jax")
names = ["x", "y"]
assert program.explain(names, net.fetch) == "2 copies, each on a device of its own, not compiled yet"
even = batches(1)[0]
uneven = {name: value[:-1] for name, value in even.items()}
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    net.exe.run(program, feed=uneven, fetch_list=net.fetch, scope=net.scope)
(told,) = [str(one.message) for one in caught if "numpy runs" in str(one.message)]
reason = told.partition("one after the other: ")[2]
assert reason.startswith("the parts of the feed 'x' have different shapes: "), told
assert reason.endswith("; feed batches that 2 divides"), told
assert program.explain(names, net.fetch) == f"numpy: 2 copies, one after the other: {reason}"
net.exe.run(program, feed=even, fetch_list=net.fetch, scope=net.scope)
assert program.explain(names, net.fetch).startswith("2 copies, each on a device of its own, ")
assert "compiled once in" in program.explain(names, net.fetch)
assert program.with_backend("numpy").explain(names, net.fetch) == "numpy: 2 copies, one after the other"

strategy = fluid.BuildStrategy()
strategy.reduce_strategy = fluid.BuildStrategy.ReduceStrategy.Reduce
shared = fluid.CompiledProgram(net.main).with_backend("jax")
shared.with_data_parallel(net.fetch[0], strategy, places=[fluid.CPUPlace()] * 2)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    net.exe.run(shared, feed=even, fetch_list=net.fetch, scope=net.scope)
(told,) = [str(one.message) for one in caught if "numpy runs" in str(one.message)]
assert told.endswith("with ReduceStrategy.Reduce they share the variables that they write"), told
print("equal")
"""


SPARSE = """
import numpy as np, paddlelike as fluid
from paddlelike.errors import EnforceNotMet
from tests.compiled.harness.nets import L, build

def make():
    ids, y = fluid.data("ids", [None, 1], "int64"), fluid.data("y", [None, 1])
    found = L.embedding(ids, size=[30, 4], is_sparse=True, param_attr="table")
    return L.mean(L.square_error_cost(L.fc(found, 1), y))

rng = np.random.default_rng(2)
feed = {"ids": rng.integers(0, 30, (16, 1)), "y": rng.standard_normal((16, 1)).astype("float32")}
got = {}
for backend in ("jax", "numpy"):
    net = build(make, lambda: fluid.optimizer.SGD(0.5))
    program = fluid.CompiledProgram(net.main).with_data_parallel(net.fetch[0], places=[fluid.CPUPlace()] * 2)
    program.with_backend(backend)
    fetch = [net.fetch[0], "table@GRAD"]
    try:
        net.exe.run(program, feed=feed, fetch_list=fetch, scope=net.scope, return_merged=False)
    except EnforceNotMet as error:
        assert "get_tensor_from_selected_rows" in error.hint
    got[backend] = np.array(net.scope.find_var("table").get_tensor())
np.testing.assert_array_equal(got["jax"], got["numpy"])  # numpy runs both, and trains one step, not two
print("equal")
"""


WRITTEN = """
import numpy as np, paddlelike as fluid
from paddlelike.errors import EnforceNotMet
from tests.compiled.harness.nets import L, build

def make():
    words, y = fluid.data("w", [None, 1], "int64", lod_level=1), fluid.data("y", [None, 1], "int64")
    table = L.embedding(words, size=[30, 4])
    guess = L.fc(L.sequence_pool(table, "sum"), 2, act="softmax")
    area, _, _ = L.auc(guess, L.elementwise_min(y, L.ones_like(y)), num_thresholds=20)
    loss = L.mean(L.cross_entropy(guess, y))
    block = fluid.default_main_program().global_block()
    for name, value in ("last_loss", loss), ("last_rows", table):  # no startup program gives them values
        kept = block.create_var(name=name, persistable=True, dtype="float32", shape=value.shape)
        L.assign(value, kept)
    return [loss, area]

rng = np.random.default_rng(1)
feeds = []
for _ in range(3):
    lengths = rng.integers(1, 5, 8).tolist()
    words = fluid.create_lod_tensor(rng.integers(0, 30, (sum(lengths), 1)), [lengths], fluid.CPUPlace())
    feeds.append({"w": words, "y": rng.integers(0, 2, (8, 1))})
wrong = {"w": words, "y": np.full((8, 1), 5)}
got = {}
for backend in ("jax", "numpy"):
    net = build(make, lambda: fluid.optimizer.SGD(0.5))
    program = fluid.CompiledProgram(net.main).with_data_parallel(net.fetch[0], places=[fluid.CPUPlace()] * 4)
    program.with_backend(backend)
    run = lambda feed: net.exe.run(program, feed=feed, fetch_list=net.fetch, scope=net.scope)
    found = [value for feed in feeds for value in run(feed)]
    rows = net.scope.find_var("last_rows").get_tensor()
    found += [np.array(rows).ravel(), rows.lod()[0], np.array(net.scope.find_var("last_loss").get_tensor())]
    names = [v.name for v in net.main.list_vars() if v.persistable]
    read = lambda: [np.array(net.scope.find_var(name).get_tensor()) for name in names]
    kept = read()
    got[backend] = np.concatenate([*found, *(value.ravel() for value in kept)])
    try:
        run(wrong)
        raise SystemExit("no error")
    except EnforceNotMet:
        pass
    if backend == "jax":  # what numpy ran before the operator that fails has been written
        for one, other in zip(kept, read(), strict=True):
            np.testing.assert_array_equal(one, other)
np.testing.assert_allclose(got["jax"], got["numpy"], rtol=1e-4, atol=1e-6)  # another order of float32 sums
print("equal")
"""


@pytest.mark.parametrize(
    "script",
    [SCRIPT, SEQUENCES, UNEVEN, SPARSE, WRITTEN],
    ids=["images", "sequences", "uneven", "sparse", "written"],
)
def test_eight_devices_give_the_results_of_copies_run_one_by_one(script: str, tmp_path: Path) -> None:
    environment = os.environ | {
        "XLA_FLAGS": "--xla_force_host_platform_device_count=8",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.stdout == "equal\n", done.stderr


def test_more_copies_than_devices_is_an_error_with_a_hint() -> None:
    net = build(regression, lambda: fluid.optimizer.SGD(0.1))
    program = fluid.CompiledProgram(net.main).with_data_parallel(places=[fluid.CPUPlace()] * 16)
    with pytest.raises(UnsupportedError, match="16 CPU places") as error:
        net.exe.run(program.with_backend("jax"), feed=batches(1)[0], fetch_list=net.fetch, scope=net.scope)
    assert "device_count=16" in error.value.hint
