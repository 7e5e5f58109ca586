"""Several copies of the batch: what they share, what each has, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.errors import EnforceNotMet, FeedError

RNG = np.random.RandomState(3)
X = RNG.rand(12, 4).astype("float32")
LABELS = RNG.randint(0, 3, (12, 1))


def network(optimizer: Any) -> Any:
    x, label = fluid.data("x", [None, 4]), fluid.data("label", [None, 1], "int64")
    prediction = fluid.layers.fc(fluid.layers.fc(x, 5, act="tanh"), 3, act="softmax")
    loss = fluid.layers.mean(fluid.layers.cross_entropy(prediction, label))
    optimizer.minimize(loss)
    return loss


def trained(copies: int, steps: int = 3) -> tuple[list[float], dict[str, Any]]:
    """Losses (the mean over the copies) and parameters after some steps on whole batches."""
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 5
    with fluid.unique_name.guard(), fluid.program_guard(main, startup), fluid.scope_guard(fluid.Scope()):
        loss = network(fluid.optimizer.Adam(0.1))
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(startup)
        program = fluid.CompiledProgram(main).with_data_parallel(loss.name, places=fluid.cpu_places(copies))
        feed = {"x": X, "label": LABELS}
        losses = [float(np.mean(exe.run(program, feed=feed, fetch_list=[loss])[0])) for _ in range(steps)]
        scope = fluid.global_scope()
        values = {p.name: np.array(scope.find_var(p.name).get_tensor()) for p in main.all_parameters()}
    return losses, values


@pytest.mark.parametrize("copies", [2, 3, 4])
def test_equal_copies_train_as_one(copies: int) -> None:
    losses, values = trained(copies)
    alone, wanted = trained(1)
    np.testing.assert_allclose(losses, alone, rtol=1e-5)
    for name, value in values.items():
        np.testing.assert_allclose(value, wanted[name], atol=2e-5)  # Adam divides by small roots


@pytest.fixture
def compiled(exe: fluid.Executor) -> tuple[Any, Any]:
    loss = network(fluid.optimizer.SGD(0.1))
    exe.run(fluid.default_startup_program())
    program = fluid.CompiledProgram(fluid.default_main_program())
    return program.with_data_parallel(loss.name, places=fluid.cpu_places(2)), loss


def test_each_copy_gives_its_value(exe: fluid.Executor, compiled: Any) -> None:
    program, loss = compiled
    feed = {"x": X, "label": LABELS}
    (both,) = exe.run(program, feed=feed, fetch_list=[loss])
    assert both.shape == (2,)
    ((one, two),) = exe.run(program, feed=feed, fetch_list=[loss], return_merged=False)
    assert one.shape == two.shape == (1,)
    (rows,) = exe.run(program, feed=feed, fetch_list=["fc_1.tmp_2"])
    assert rows.shape == (12, 3)


def test_a_feed_for_each_copy_may_be_of_its_own_size(exe: fluid.Executor, compiled: Any) -> None:
    program, _ = compiled
    feeds = [{"x": X[:1], "label": LABELS[:1]}, {"x": X[1:8], "label": LABELS[1:8]}]
    assert exe.run(program, feed=feeds, fetch_list=["fc_1.tmp_2"])[0].shape == (8, 3)
    assert exe.run(program, feed=feeds[:1], fetch_list=["fc_1.tmp_2"])[0].shape == (1, 3)
    for wrong in ([], feeds * 2):
        with pytest.raises(FeedError, match="expected at most 2"):
            exe.run(program, feed=wrong, fetch_list=["fc_1.tmp_2"])


def test_batches_that_cannot_be_cut_are_refused(exe: fluid.Executor, compiled: Any) -> None:
    program, loss = compiled
    with pytest.raises(EnforceNotMet, match="1 rows, fewer than the 2 copies"):
        exe.run(program, feed={"x": X[:1], "label": LABELS[:1]}, fetch_list=[loss])
    tensor = fluid.create_lod_tensor(X, [[4, 8]], fluid.CPUPlace())
    with pytest.raises(FeedError, match="cannot be split") as caught:
        exe.run(program, feed={"x": tensor, "label": LABELS}, fetch_list=[loss])
    assert "one dict for each copy" in caught.value.hint


def test_saves_take_the_program_inside(exe: fluid.Executor, compiled: Any, tmp_path: Any) -> None:
    program, _ = compiled
    report = fluid.io.save_params(exe, str(tmp_path), program)
    assert sorted(report.saved) == ["fc_0.b_0", "fc_0.w_0", "fc_1.b_0", "fc_1.w_0"]


def test_options_are_fluid_s_own() -> None:
    for kind, name in ((fluid.BuildStrategy, "memory_optimise"), (fluid.ExecutionStrategy, "threads")):
        with pytest.raises(AttributeError, match=f"no option {name!r}"):
            setattr(kind(), name, True)
    strategy = fluid.BuildStrategy()
    strategy.fuse_bn_act_ops = True
    assert strategy.fuse_bn_act_ops is True
    assert fluid.BuildStrategy().fuse_bn_act_ops is False


def test_gpus_are_refused() -> None:
    with pytest.raises(EnforceNotMet, match="no GPU kernels"):
        fluid.ParallelExecutor(use_cuda=True)
    with pytest.raises(TypeError, match="must be a Program"):
        fluid.CompiledProgram("main")
