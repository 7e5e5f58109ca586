"""Every write to a persistable raises its version; reading does not."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import paddlelike as fluid

FEED = {"x": np.ones((2, 4), "float32")}


def built(optimizer: object = None, sparse: bool = False) -> None:
    x = fluid.data("x", [None, 4])
    loss = fluid.layers.mean(fluid.layers.fc(x, 3))
    if sparse:
        ids = fluid.layers.fill_constant([2, 1], "int64", 1)
        loss = fluid.layers.mean(loss + fluid.layers.embedding(ids, [5, 3], is_sparse=True))
    if optimizer is not None:
        optimizer.minimize(loss)


def version(name: str) -> int:
    return fluid.global_scope().find_var(name).version


def versions() -> dict[str, int]:
    main = fluid.default_main_program()
    return {v.name: version(v.name) for v in main.list_vars() if fluid.io.is_persistable(v)}


@contextlib.contextmanager
def raised(*names: str) -> Iterator[None]:
    """Exactly these variables get a higher version inside."""
    before = versions()
    yield
    after = versions()
    assert {name for name in after if after[name] > before.get(name, -1)} == set(names)
    assert all(after[name] >= before[name] for name in before)


def test_reading_does_not_increase_versions(exe: fluid.Executor) -> None:
    built()
    exe.run(fluid.default_startup_program())
    with raised():
        exe.run(feed=FEED, fetch_list=["fc_0.w_0"])
        np.array(fluid.global_scope().find_var("fc_0.w_0").get_tensor())


@pytest.mark.parametrize("make", [fluid.optimizer.SGD, fluid.optimizer.Adam, fluid.optimizer.Ftrl])
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_a_training_step_increases_the_versions_of_updated_variables(
    exe: fluid.Executor, make: Callable[..., object], sparse: bool
) -> None:
    built(make(0.1), sparse=sparse and make is not fluid.optimizer.Ftrl)
    exe.run(fluid.default_startup_program())
    constant = {"learning_rate_0"}
    with raised(*(set(versions()) - constant)):
        exe.run(feed=FEED)


def test_the_startup_program_increases_the_versions_of_all_variables(exe: fluid.Executor) -> None:
    built(fluid.optimizer.Momentum(0.1, 0.9))
    exe.run(fluid.default_startup_program())
    with raised(*versions()):
        exe.run(fluid.default_startup_program())


def test_feeding_a_parameter_counts_as_a_write(exe: fluid.Executor) -> None:
    built()
    exe.run(fluid.default_startup_program())
    with raised("fc_0.w_0"):
        exe.run(feed={**FEED, "fc_0.w_0": np.ones((4, 3), "float32")})


def test_writes_by_the_user_increase_the_version(exe: fluid.Executor) -> None:
    built()
    exe.run(fluid.default_startup_program())
    place = fluid.global_scope().find_var("fc_0.b_0")
    with raised("fc_0.b_0"):
        place.get_tensor().set(np.ones(3, "float32"), fluid.CPUPlace())
    with raised("fc_0.b_0"):
        place.get_tensor().set(np.ones(4, "float32"), fluid.CPUPlace())
    with raised("fc_0.b_0"):
        place.get_tensor().set_lod([[0, 1, 4]])
    with raised("fc_0.b_0"):
        place.get_tensor().set_recursive_sequence_lengths([[2, 2]])
    with raised("fc_0.b_0"):
        place.set_value(fluid.LoDTensor(np.zeros(3, "float32")))


def test_every_write_to_an_array_of_a_tensor_is_noticed(exe: fluid.Executor) -> None:
    built()
    exe.run(fluid.default_startup_program())
    array = np.asarray(fluid.global_scope().find_var("fc_0.b_0").get_tensor())
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 1


def test_changes_of_rows_height_and_values_of_selected_rows_increase_the_version() -> None:
    place = fluid.global_scope().var("rows")
    rows = place.get_selected_rows()
    found = [place.version]
    rows.set_rows([1, 2])
    found.append(place.version)
    rows.set_height(5)
    found.append(place.version)
    rows.get_tensor().set(np.ones((2, 3), "float32"), fluid.CPUPlace())
    found.append(place.version)
    assert found == sorted(set(found))


@pytest.mark.parametrize("filename", [None, "all"])
def test_a_load_increases_the_versions_of_all_variables(
    exe: fluid.Executor, tmp_path: Path, filename: str | None
) -> None:
    built(fluid.optimizer.Momentum(0.1, 0.9))
    exe.run(fluid.default_startup_program())
    main = fluid.default_main_program()
    with raised():
        fluid.io.save_persistables(exe, str(tmp_path), main, filename)
    with raised(*versions()):
        fluid.io.load_persistables(exe, str(tmp_path), main, filename)


def test_loading_a_state_increases_the_versions_of_its_variables(exe: fluid.Executor, tmp_path: Path) -> None:
    built(fluid.optimizer.Momentum(0.1, 0.9))
    exe.run(fluid.default_startup_program())
    main = fluid.default_main_program()
    with raised():
        fluid.save(main, str(tmp_path / "net"))
        state = fluid.load_program_state(str(tmp_path / "net"))
    with raised(*versions()):
        fluid.load(main, str(tmp_path / "net"))
    with raised("fc_0.w_0"):
        fluid.set_program_state(main, {"fc_0.w_0": state["fc_0.w_0"]})


def test_a_run_increases_the_versions_of_counters_and_kept_temporaries(exe: fluid.Executor) -> None:
    step = fluid.layers.autoincreased_step_counter()
    kept = fluid.layers.cast(step, "float32")
    kept.persistable = True
    exe.run(fluid.default_startup_program())
    exe.run()
    with raised(step.name, kept.name):
        exe.run()


def test_a_run_increases_the_versions_of_moving_means(exe: fluid.Executor) -> None:
    fluid.layers.batch_norm(fluid.data("x", [None, 4]))
    exe.run(fluid.default_startup_program())
    with raised("batch_norm_0.w_1", "batch_norm_0.w_2"):
        exe.run(feed=FEED)


def test_only_a_block_that_runs_counts_as_a_write(exe: fluid.Executor) -> None:
    step = fluid.layers.autoincreased_step_counter()
    rate = fluid.layers.create_global_var([1], 0.0, "float32", persistable=True, name="rate")
    with fluid.layers.Switch() as cases, cases.case(step < fluid.layers.fill_constant([1], "int64", 3)):
        fluid.layers.assign(fluid.layers.fill_constant([1], "float32", 1.0), rate)
    exe.run(fluid.default_startup_program())
    for _ in range(2):
        with raised(step.name, "rate"):
            exe.run()
    with raised(step.name):
        exe.run()


def test_two_copies_of_the_batch_count_as_one_write(exe: fluid.Executor) -> None:
    x = fluid.data("x", [None, 4])
    loss = fluid.layers.mean(fluid.layers.batch_norm(fluid.layers.fc(x, 3)))
    fluid.optimizer.Momentum(0.1, 0.9).minimize(loss)
    exe.run(fluid.default_startup_program())
    compiled = fluid.CompiledProgram(fluid.default_main_program())
    compiled.with_data_parallel(loss.name, places=fluid.cpu_places(2))
    with raised(*(set(versions()) - {"learning_rate_0"})):
        exe.run(compiled, feed=FEED, fetch_list=[loss])


def test_a_run_in_a_new_scope_increases_versions_only_there(exe: fluid.Executor) -> None:
    built()
    exe.run(fluid.default_startup_program())
    mine = fluid.Scope()
    with raised():
        exe.run(fluid.default_startup_program(), scope=mine)
    assert mine.find_var("fc_0.w_0").version > 0
