"""Programs for GPUs: what is compiled for them, and, where JAX sees one, what they compute there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("jax", reason="the extra `jax` is not installed", exc_type=ImportError)

import numpy as np

import paddlelike as fluid
from paddlelike.compiled.backend import count_gpus, find_options
from paddlelike.compiled.lowering.nn.conv import conv as convolution
from paddlelike.compiled.lowering.nn.image import pool as pools
from paddlelike.compiled.packing import RefusedError
from paddlelike.compiled.tracing import orders
from paddlelike.framework import flags
from tests.compiled.harness.nets import batches, build, regression
from tests.compiled.harness.sweep import check_case, lower_case
from tests.compiled.test_lowerings import compared
from tests.compiled.test_zoo import compare
from tests.distributed.collective.jobs import run_workers
from tests.zoo.layers import LAYERS

pytestmark = pytest.mark.slow

needs_gpu = pytest.mark.skipif(count_gpus() == 0, reason="JAX sees no GPU here")


@pytest.fixture
def for_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the formulas that are not for CPUs."""
    for module in (convolution, pools, orders):
        monkeypatch.setattr(module, "computes_on_cpu", lambda: False)


def find_calls(cases: list) -> dict[str, set[str]]:
    """Return by function of a library, or of Python, the operators that call it on GPUs."""
    found: dict[str, set[str]] = {}
    for case in cases:
        try:
            text = lower_case(case, "cuda")
        except RefusedError:
            continue
        for name in re.findall(r"custom_call\s*@\"?([\w.$:]+)", text):
            found.setdefault(name, set()).add(case.type)
    return found


def test_convolutions_and_pools_are_lowered_for_gpus_without_cpu_functions(for_gpus: None) -> None:
    cases = [case for case in compared() if case.type in ("conv2d", "pool3d")]
    assert len(cases) > 3
    assert find_calls(cases) == {}
    assert "stablehlo.convolution" in lower_case(cases[0], "cuda")


def test_gpu_formulas_give_the_results_of_the_kernels(for_gpus: None) -> None:
    cases = [case for case in compared(6) if case.type.startswith(("conv", "depthwise_conv", "pool"))]
    assert len(cases) > 25
    for case in cases:
        try:
            check_case(case)
        except RefusedError:  # the same as on CPUs, see test_lowerings.py
            assert case.type.startswith("pool"), case.id


def test_all_operators_are_lowered_for_gpus_without_cpu_functions(for_gpus: None) -> None:
    assert find_calls(compared(1)) == {}


def test_the_flag_requests_deterministic_sums_on_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flags, "_flags", {})
    assert "xla_gpu_deterministic_ops" not in find_options(on_cpu=False)
    fluid.set_flags({"FLAGS_cudnn_deterministic": True})
    assert find_options(on_cpu=False)["xla_gpu_deterministic_ops"] is True
    assert "xla_gpu_deterministic_ops" not in find_options(on_cpu=True)


#: Devices 1 and 2 of a CPU stand for GPUs: their memory is not read where it is, and device 0 is the CPU.
POSING = """
import jax, numpy as np
from paddlelike.compiled import backend, engine, parallel
from paddlelike.compiled.pieces import piece as pieces
from paddlelike.compiled.lowering.nn.image import pool as pools
from paddlelike.compiled.lowering.nn.conv import conv as convolution
from paddlelike.compiled.tracing import orders
from paddlelike.core import places
import paddlelike as fluid
from tests.compiled.harness.nets import L, batches, build, train

def find(place):
    return jax.devices("cpu")[1 + place.device_id if isinstance(place, fluid.CUDAPlace) else 0]

class Piece(pieces.Piece):
    def __init__(self, plan, start, stop, device):
        super().__init__(plan, start, stop, device)
        self._reads_memory = device.id == 0

backend.find_device = engine.find_device = find
places.count_gpus = lambda: 2
engine.Piece = Piece
for module in (convolution, pools, orders):
    module.computes_on_cpu = lambda: False

def make():
    x, y = fluid.data("x", [None, 1, 8, 8]), fluid.data("y", [None, 1], "int64")
    words = fluid.data("words", [None, 1], "int64", lod_level=1)
    hidden = L.batch_norm(L.conv2d(x, 3, 3, groups=1), act="relu")
    hidden = L.pool2d(L.dropout(hidden, 0.3), 2, "max", 2)
    table = L.embedding(words, [20, 6], is_sparse=True, param_attr="table")
    hidden = L.concat([L.flatten(hidden), L.sequence_pool(table, "max")], 1)
    return L.mean(L.cross_entropy(L.fc(hidden, 4, act="softmax", param_attr="w"), y))

rng = np.random.default_rng(3)
feeds = [{"x": rng.standard_normal((6, 1, 8, 8)).astype("float32"), "y": rng.integers(0, 4, (6, 1)),
          "words": fluid.create_lod_tensor(rng.integers(0, 20, (12, 1)), [[1, 3, 2, 2, 3, 1]], None)}
         for _ in range(3)]
"""

ONE_GPU = (
    POSING
    + """
def where(net, name):
    return {device.id for device in net.scope.find_var(name).get_tensor().find_on_device().devices()}

net = build(make, lambda: fluid.optimizer.Adam(0.05))
gpu = fluid.Executor(fluid.CUDAPlace(1))
found = []
for index, feed in enumerate(feeds):
    before = {name: np.array(value) for name, value in feed.items()}
    found += gpu.run(net.main, feed=feed, fetch_list=net.fetch, scope=net.scope)
    assert where(net, "w") == where(net, "table") == {2}
    if index == 0:
        with fluid.scope_guard(net.scope):  # saved from the device, and loaded again
            fluid.io.save_persistables(gpu, "kept", net.main)
            fluid.io.load_persistables(gpu, "kept", net.main)
    if index == 1:  # a run on the CPU in between
        test = fluid.CompiledProgram(net.main.clone(for_test=True)).with_backend("jax")
        tested = net.exe.run(test, feed=feed, fetch_list=net.fetch, scope=net.scope)
        net.scope.find_var("w").get_tensor().set(np.array(net.scope.find_var("w").get_tensor()) * 0.5)
    for name, value in feed.items():
        np.testing.assert_array_equal(np.array(value), before[name])
found.append(tested[0])
found.append(np.array(net.scope.find_var("table").get_tensor()).ravel()[:6])
other = build(make, lambda: fluid.optimizer.Adam(0.05))
wanted = []
for index, feed in enumerate(feeds):
    wanted += train(other, [feed], "numpy")[0]
    if index == 1:
        test = other.main.clone(for_test=True)
        tested = other.exe.run(test, feed=feed, fetch_list=net.fetch, scope=other.scope)
        other.scope.find_var("w").get_tensor().set(np.array(other.scope.find_var("w").get_tensor()) * 0.5)
wanted.append(tested[0])
wanted.append(np.array(other.scope.find_var("table").get_tensor()).ravel()[:6])
# Another order of float32 sums, of which Adam divides small ones.
np.testing.assert_allclose(np.concatenate(found), np.concatenate(wanted), rtol=1e-3, atol=1e-5)
print("equal")
"""
)

TWO_GPUS = (
    POSING
    + """
got = {}
for backend_name in ("jax", "numpy"):
    net = build(make, lambda: fluid.optimizer.Momentum(0.05, 0.9))
    on = fluid.cuda_places() if backend_name == "jax" else [fluid.CPUPlace()] * 2
    program = fluid.CompiledProgram(net.main).with_data_parallel(net.fetch[0], places=on)
    program.with_backend(backend_name)
    exe = fluid.Executor(on[0])
    run = lambda feed: exe.run(program, feed=feed, fetch_list=net.fetch, scope=net.scope)[0]
    got[backend_name] = [run(feed) for feed in feeds]
    if backend_name == "jax":
        kept = net.scope.find_var("w").get_tensor().find_on_device()
        assert {device.id for device in kept.devices()} == {1, 2}
assert got["jax"][0].shape == (2,)
np.testing.assert_allclose(got["jax"], got["numpy"], rtol=1e-4, atol=1e-5)  # another order of float32 sums
print("equal")
"""
)


@pytest.mark.parametrize("script", [ONE_GPU, TWO_GPUS], ids=["one", "two"])
def test_cpu_devices_in_place_of_gpus_train_as_numpy_does(script: str, tmp_path: Path) -> None:
    environment = os.environ | {
        "XLA_FLAGS": "--xla_force_host_platform_device_count=3",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.stdout == "equal\n", done.stderr


@needs_gpu
def test_a_gpu_trains_as_numpy_does() -> None:
    results = []
    for place in (fluid.CUDAPlace(0), fluid.CPUPlace()):
        net = build(regression, lambda: fluid.optimizer.Momentum(0.1, 0.9))
        exe = fluid.Executor(place)
        feeds = batches(10)
        results.append(
            [exe.run(net.main, feed=feed, fetch_list=net.fetch, scope=net.scope)[0] for feed in feeds]
        )
    np.testing.assert_allclose(*results, rtol=1e-4, atol=1e-6)  # another order of float32 sums


@needs_gpu
def test_layers_of_the_zoo_compute_the_same_on_a_gpu() -> None:
    """Each gives what numpy gives: :func:`compare` asserts that."""
    found = [compare(name, fluid.CUDAPlace(0)) for name in LAYERS]
    assert sum(refused is not None for refused in found) > 230


@needs_gpu
def test_workers_on_gpus_of_their_own_have_the_losses_of_one_process() -> None:
    (alone,) = run_workers(1, "train", "on a GPU")
    assert alone.code == 0, alone.errors
    count = min(count_gpus(), 4)
    if count == 1:
        pytest.skip("there is one GPU: NCCL connects no two workers on it")
    workers = run_workers(count, "train", "on a GPU")
    assert [one.code for one in workers] == [0] * count, workers[0].errors
    losses = np.mean([one.reports[0]["losses"] for one in workers], axis=0)
    np.testing.assert_allclose(losses, alone.reports[0]["losses"], rtol=1e-6)
