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
        exe = fluid.Executor()
        exe.run(startup)
        program = fluid.CompiledProgram(main).with_data_parallel(loss.name, places=fluid.cpu_places(copies))
        feed = {"x": X, "label": LABELS}
        losses = [float(np.mean(exe.run(program, feed=feed, fetch_list=[loss])[0])) for _ in range(steps)]
        scope = fluid.global_scope()
        values = {p.name: np.array(scope.find_var(p.name).get_tensor()) for p in main.all_parameters()}
    return losses, values


@pytest.mark.parametrize("copies", [2, 3, 4])
def test_copies_on_equal_batches_train_as_one_process(copies: int) -> None:
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


def test_each_copy_returns_its_own_fetched_value(exe: fluid.Executor, compiled: Any) -> None:
    program, loss = compiled
    feed = {"x": X, "label": LABELS}
    (both,) = exe.run(program, feed=feed, fetch_list=[loss])
    assert both.shape == (2,)
    ((one, two),) = exe.run(program, feed=feed, fetch_list=[loss], return_merged=False)
    assert one.shape == two.shape == (1,)
    (rows,) = exe.run(program, feed=feed, fetch_list=["fc_1.tmp_2"])
    assert rows.shape == (12, 3)


def test_the_feeds_of_copies_may_have_different_sizes(exe: fluid.Executor, compiled: Any) -> None:
    program, _ = compiled
    feeds = [{"x": X[:1], "label": LABELS[:1]}, {"x": X[1:8], "label": LABELS[1:8]}]
    assert exe.run(program, feed=feeds, fetch_list=["fc_1.tmp_2"])[0].shape == (8, 3)
    for wrong in ([], feeds[:1], feeds * 2):  # as Fluid, which compares their number with that of the places
        with pytest.raises(FeedError, match="expected 2, one for each place"):
            exe.run(program, feed=wrong, fetch_list=["fc_1.tmp_2"])


def test_batches_that_cannot_be_cut_are_refused(exe: fluid.Executor, compiled: Any) -> None:
    program, loss = compiled
    with pytest.raises(EnforceNotMet, match="cut into 1 parts, fewer than the 2 copies"):
        exe.run(program, feed={"x": X[:1], "label": LABELS[:1]}, fetch_list=[loss])
    with pytest.raises(EnforceNotMet, match="has no rows"):
        exe.run(program, feed={"x": X[:0], "label": LABELS[:0]}, fetch_list=[loss])
    tensor = fluid.create_lod_tensor(X, [[5, 2, 5]], fluid.CPUPlace())
    with pytest.raises(FeedError, match=r"equally many parts for 2 copies: \{'x': 2, 'label': 1\}"):
        exe.run(program, feed={"x": tensor, "label": LABELS[:1]}, fetch_list=[loss])


@pytest.mark.parametrize(
    ("lengths", "copies", "means"),
    [
        ([[3, 2, 4, 1]], 2, [11.25, 36.25]),
        ([[3, 2, 1, 1, 1, 1, 1]], 4, [11.25, 11.5, 15.5, 18.5]),
        ([[1, 2, 3, 4, 5]], 4, [3.75, 43.75, 122.5]),
        ([[5, 5]], 4, [22.5, 72.5]),
        ([[2, 1], [3, 2, 4]], 2, [11.25, 54.0]),
    ],
    ids=["even", "the last copy has less", "three copies are enough", "two are enough", "two levels"],
)
def test_sequences_are_cut_as_fluid_cuts_them(lengths: Any, copies: int, means: list[float]) -> None:
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.scope_guard(fluid.Scope()):
        pooled = fluid.layers.sequence_pool(fluid.data("x", [None, 2], lod_level=len(lengths)), "sum")
        mean = fluid.layers.mean(pooled)
        program = fluid.CompiledProgram(fluid.default_main_program())
        program.with_data_parallel(places=fluid.cpu_places(copies))
        rows = np.arange(2.0 * sum(lengths[-1]), dtype="float32").reshape(-1, 2)
        feed = {"x": fluid.create_lod_tensor(rows, lengths, fluid.CPUPlace())}
        exe = fluid.Executor()
        (parts,) = exe.run(program, feed=feed, fetch_list=[mean], return_numpy=False, return_merged=False)
    assert [np.array(part).item() for part in parts] == means  # what Fluid 1.8.5 gives


@pytest.mark.parametrize(
    ("rows", "copies", "means"),
    [(5, 4, [1.5, 5.5, 8.5]), (1, 2, [0.5]), (7, 4, [1.5, 5.5, 9.5, 12.5]), (10, 3, [3.5, 11.5, 17.5])],
)
def test_rows_are_cut_as_fluid_cuts_them(rows: int, copies: int, means: list[float]) -> None:
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.scope_guard(fluid.Scope()):
        mean = fluid.layers.mean(fluid.data("x", [None, 2]))
        program = fluid.CompiledProgram(fluid.default_main_program())
        program.with_data_parallel(places=fluid.cpu_places(copies))
        feed = {"x": np.arange(2.0 * rows, dtype="float32").reshape(-1, 2)}
        (found,) = fluid.Executor().run(program, feed=feed, fetch_list=[mean])
    assert found.tolist() == means  # what Fluid 1.8.5 gives


@pytest.mark.parametrize(("count", "means"), [(3, [2, 4, 6]), (2, [2, 4]), (1, [2])])
def test_without_gradients_a_list_may_hold_fewer_feeds_than_places(count: int, means: list[float]) -> None:
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.scope_guard(fluid.Scope()):
        mean = fluid.layers.mean(2 * fluid.data("x", [None, 2]))
        program = fluid.CompiledProgram(fluid.default_main_program())
        program.with_data_parallel(places=fluid.cpu_places(3))
        feeds = [{"x": np.full((rows, 2), rows, "float32")} for rows in (1, 2, 3)]
        (found,) = fluid.Executor().run(program, feed=feeds[:count], fetch_list=[mean])
        assert found.tolist() == means  # what Fluid 1.8.5 gives
        for wrong in ([], feeds * 2):
            with pytest.raises(FeedError, match="expected 3, one for each place"):
                fluid.Executor().run(program, feed=wrong, fetch_list=[mean])


def test_saves_accept_a_compiled_program(exe: fluid.Executor, compiled: Any, tmp_path: Any) -> None:
    program, _ = compiled
    report = fluid.io.save_params(exe, str(tmp_path), program)
    assert sorted(report.saved) == ["fc_0.b_0", "fc_0.w_0", "fc_1.b_0", "fc_1.w_0"]


def test_strategies_accept_only_options_of_fluid() -> None:
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


@pytest.mark.parametrize(("parallel", "counts"), [(False, (3, 7)), (True, (2, 5))], ids=["plain", "parallel"])
def test_the_run_at_the_end_of_an_epoch_counts_a_step_as_in_fluid(
    parallel: bool, counts: tuple[int, int]
) -> None:
    """In 1.8.5, the run that finds no batch counts in a plain Executor, not in a parallel one."""
    x = fluid.data("x", [None, 2])
    loader = fluid.io.DataLoader.from_generator([x], capacity=4, iterable=False)
    loss = fluid.layers.mean(fluid.layers.fc(x, 1))
    fluid.optimizer.SGD(fluid.layers.polynomial_decay(0.1, 100, 0.0, 1.0)).minimize(loss)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    program = fluid.default_main_program()
    run = fluid.CompiledProgram(program).with_data_parallel(loss.name) if parallel else program
    loader.set_batch_generator(lambda: iter([[np.ones((2, 2), "float32")]] * 3), fluid.CPUPlace())
    found = []
    for _ in range(2):
        loader.start()
        for _ in range(3):
            exe.run(run, fetch_list=[loss])
        with pytest.raises(fluid.core.EOFException):
            exe.run(run, fetch_list=[loss])
        loader.reset()
        found.append(int(np.array(fluid.global_scope().find_var("@LR_DECAY_COUNTER@").get_tensor())[0]))
    assert tuple(found) == counts


def test_fetched_sequences_of_all_copies_follow_one_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CPU_NUM", "2")
    x = fluid.data("x", [None, 1], lod_level=1)
    out = [fluid.layers.scale(x, 2.0), fluid.layers.sequence_pool(x, "sum")]
    program = fluid.CompiledProgram(fluid.default_main_program()).with_data_parallel()
    fed = fluid.create_lod_tensor(np.arange(6, dtype="float32").reshape(6, 1), [[1, 2, 3]], fluid.CPUPlace())
    exe = fluid.Executor()
    split = exe.run(program, feed={"x": fed}, fetch_list=out, return_numpy=False)
    assert [(value.lod(), value.shape()) for value in split] == [([[0, 1, 3, 6]], [6, 1]), ([], [3, 1])]
    twice, _ = exe.run(program, feed=[{"x": fed}] * 2, fetch_list=out, return_numpy=False)
    assert twice.lod() == [[0, 1, 3, 6, 7, 9, 12]]


@pytest.mark.parametrize("copies", [2, 3])
def test_each_copy_takes_a_batch_of_a_loader(exe: fluid.Executor, copies: int) -> None:
    x = fluid.data("x", [None, 1])
    loader = fluid.io.DataLoader.from_generator([x], 4, use_double_buffer=False, iterable=False)
    total = fluid.layers.reduce_sum(x)
    loader.set_batch_generator(lambda: ([np.full((2, 1), n, "float32")] for n in range(2 * copies + 1)))
    program = fluid.CompiledProgram(fluid.default_main_program())
    program.with_data_parallel(places=fluid.cpu_places(copies))
    loader.start()
    found = [exe.run(program, fetch_list=[total])[0].tolist() for _ in range(2)]
    assert found == [[2.0 * n for n in range(at, at + copies)] for at in (0, copies)]
    with pytest.raises(fluid.core.EOFException):  # one batch is left, which is not enough
        exe.run(program, fetch_list=[total])


def test_a_loss_name_that_the_program_does_not_hold_is_named(recwarn: pytest.WarningsRecorder) -> None:
    loss = network(fluid.optimizer.SGD(0.1))
    program = fluid.CompiledProgram(fluid.default_main_program())
    for name in (loss, loss.name, "", None):
        program.with_data_parallel(loss_name=name)
    assert not recwarn.list
    with pytest.warns(UserWarning, match=f"no variable '{loss.name}x'.*did you mean '{loss.name}'"):
        program.with_data_parallel(loss_name=loss.name + "x")
