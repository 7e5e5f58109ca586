"""Hints are followed as they stand, and the result is right."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.errors import GraphError, LoadError, NotInitializedError, PaddlelikeError
from paddlelike.framework.hints import explain_shift

ONES = np.ones((1, 4), "float32")


@pytest.fixture(autouse=True)
def new_names() -> object:
    with fluid.unique_name.guard(), fluid.scope_guard(fluid.Scope()):
        yield


@pytest.fixture
def exe() -> fluid.Executor:
    return fluid.Executor()


def build(layers: int = 1, value: float = 2.0) -> tuple[fluid.Program, fluid.Program, fluid.Variable]:
    """Build a network whose weights are constant, so that its output says which values it has."""
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup):
        out = fluid.data("x", [None, 4])
        for index in range(layers):
            weight = fluid.initializer.Constant(value + index)
            out = fluid.layers.fc(out, 4, param_attr=weight)
    return main, startup, out


DOORS: dict[str, Callable[[fluid.Executor, Path, fluid.Program, fluid.Variable], object]] = {
    "run": lambda exe, home, main, out: exe.run(main, feed={"x": ONES}, fetch_list=[out]),
    "save_persistables": lambda exe, home, main, out: fluid.io.save_persistables(exe, home / "a", main),
    "save_params_one_file": lambda exe, home, main, out: fluid.io.save_params(exe, home, main, "all"),
    "save": lambda exe, home, main, out: fluid.save(main, str(home / "a")),
    "save_inference_model": lambda exe, home, main, out: fluid.io.save_inference_model(
        str(home / "a"), ["x"], [out], exe, main
    ),
    "set_program_state": lambda exe, home, main, out: fluid.set_program_state(
        main, {v.name: np.full(v.shape, 2.0, "float32") for v in main.all_parameters()}
    ),
}


@pytest.mark.obeys(
    "if this is a copy of a network that was trained, {}, or take main_program.clone(for_test=True). Its "
    "startup program would give the copy random values",
)
@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)
def test_the_hint_for_a_copy_without_values_names_the_trained_network(
    exe: fluid.Executor, tmp_path: Path, door: Callable[..., object]
) -> None:
    with fluid.unique_name.guard():
        exe.run(build()[1])
    with fluid.unique_name.guard():
        fluid.layers.fc(fluid.data("other", [None, 4]), 4)
        main, _, out = build(value=5.0)
    with pytest.raises(NotInitializedError, match=r"unique_name\.guard.*random values"):
        door(exe, tmp_path, main, out)
    with fluid.unique_name.guard():  # as the hint says
        main, _, out = build(value=5.0)
    door(exe, tmp_path, main, out)
    fluid.io.save_params(exe, tmp_path / "copy", main)
    np.testing.assert_array_equal(
        fluid.load_program_state(str(tmp_path / "copy"))["fc_0.w_0"][0], 2.0 * ONES[0]
    )


@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)
def test_the_hint_for_an_uninitialized_network_is_its_startup_program(
    exe: fluid.Executor, tmp_path: Path, door: Callable[..., object]
) -> None:
    main, startup, out = build()
    with (
        fluid.program_guard(main, startup),
        pytest.raises(
            NotInitializedError,
            match=r"run the startup program first \(exe\.run\(fluid\.default_startup_program",
        ),
    ):
        door(exe, tmp_path, main, out)
    with fluid.program_guard(main, startup):
        exe.run(fluid.default_startup_program())
    door(exe, tmp_path, main, out)


@pytest.mark.obeys(
    "its startup program was run in another scope: enter it by `with fluid.scope_guard(scope):`, or pass scope= to Executor.run",
)
def test_the_hint_names_the_other_scope_that_has_the_values(exe: fluid.Executor) -> None:
    main, startup, out = build()
    scope = fluid.Scope()
    exe.run(startup, scope=scope)
    with pytest.raises(NotInitializedError, match=r"was run in another scope: .*scope_guard"):
        exe.run(main, feed={"x": ONES}, fetch_list=[out])
    with fluid.scope_guard(scope):
        (found,) = exe.run(main, feed={"x": ONES}, fetch_list=[out])
    np.testing.assert_array_equal(found, 8 * ONES)


@pytest.mark.obeys(
    "build everything, minimize included, before the startup program runs. Run again, it gives all "
    "variables new values",
)
def test_the_hint_for_an_added_layer_does_not_restart_everything(exe: fluid.Executor) -> None:
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup):
        loss = fluid.layers.mean(fluid.layers.fc(fluid.data("x", [None, 4]), 4))
        exe.run(startup)
        fluid.optimizer.Momentum(0.1, 0.9).minimize(loss)
        with pytest.raises(NotInitializedError, match=r"minimize included, before the startup program runs"):
            exe.run(main, feed={"x": ONES}, fetch_list=[loss])
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup):
        loss = fluid.layers.mean(fluid.layers.fc(fluid.data("x", [None, 4]), 4))
        fluid.optimizer.Momentum(0.1, 0.9).minimize(loss)
        exe.run(startup)
        losses = [exe.run(main, feed={"x": ONES}, fetch_list=[loss])[0][0] for _ in range(2)]
    assert losses[1] < losses[0]


@pytest.mark.obeys(
    "load its value; no startup program that is known sets {}",
)
def test_the_hint_for_a_variable_that_nothing_sets_is_a_load(exe: fluid.Executor, tmp_path: Path) -> None:
    main = fluid.Program()
    alone = main.global_block().create_parameter(shape=[2], dtype="float32", name="alone")
    with fluid.program_guard(main):
        out = fluid.layers.scale(alone, 2.0)
    with pytest.raises(NotInitializedError, match="load its value; no startup program"):
        exe.run(main, fetch_list=[out])
    fluid.global_scope().var("alone").get_tensor().set(np.array([1, 2], "float32"), fluid.CPUPlace())
    fluid.io.save_vars(exe, tmp_path, main, vars=[alone])
    with fluid.scope_guard(fluid.Scope()):
        fluid.io.load_vars(exe, tmp_path, main, vars=[alone])
        np.testing.assert_array_equal(exe.run(main, fetch_list=[out])[0], [2, 4])


def load_dicts(main: fluid.Program, where: Path) -> object:
    return fluid.set_program_state(main, fluid.load_program_state(str(where)))


LOADS: dict[str, Callable[[fluid.Executor, fluid.Program, Path], object]] = {
    "load_params": lambda exe, main, where: fluid.io.load_params(exe, where / "d", main),
    "load_combined": lambda exe, main, where: fluid.io.load_params(exe, where, main, "all", names=main),
    "load": lambda exe, main, where: fluid.load(main, str(where / "net"), exe),
    "load_directory": lambda exe, main, where: fluid.load(main, str(where / "d"), exe),
    "set_program_state": lambda exe, main, where: load_dicts(main, where / "d"),
}


@pytest.mark.obeys(
    "the names differ only in their numbers (the program needs {}, the files have {}): the network was probably built twice in this process"
)
@pytest.mark.parametrize("name", sorted(LOADS.keys() - {"load_combined"}))
def test_the_hint_for_loading_into_a_second_copy_suggests_a_name_guard(
    exe: fluid.Executor, tmp_path: Path, name: str
) -> None:
    with fluid.unique_name.guard():
        main, startup, _ = build()
        exe.run(startup)
        fluid.io.save_params(exe, tmp_path / "d", main)
        fluid.save(main, str(tmp_path / "net"))
    fluid.layers.fc(fluid.data("other", [None, 4]), 4)
    with fluid.scope_guard(fluid.Scope()):
        main, startup, _ = build(value=5.0)
        exe.run(startup)
        with pytest.raises(
            PaddlelikeError, match=r"the network was probably built twice.*unique_name\.guard"
        ):
            LOADS[name](exe, main, tmp_path)
        with fluid.unique_name.guard():
            main, startup, out = build(value=5.0)
        exe.run(startup)
        LOADS[name](exe, main, tmp_path)
        np.testing.assert_array_equal(exe.run(main, feed={"x": ONES}, fetch_list=[out])[0], 8 * ONES)


def test_layers_loaded_with_the_values_of_other_layers_are_reported(
    exe: fluid.Executor, tmp_path: Path
) -> None:
    with fluid.unique_name.guard():
        main, startup, _ = build(4)
        exe.run(startup)
        fluid.io.save_params(exe, tmp_path, main)
    fluid.layers.fc(fluid.data("other", [None, 4]), 4)
    main, startup, _ = build(4)
    exe.run(startup)
    said = r"the layers 'fc' have other numbers: the program has fc_1 to fc_4, the files have fc_0 to fc_3"
    with pytest.warns(UserWarning, match=said):
        fluid.io.load_vars(exe, tmp_path, main, predicate=lambda v: (tmp_path / v.name).exists())
    with pytest.warns(UserWarning, match=said):
        fluid.io.load_params(exe, tmp_path, main, strict=False)
    state = fluid.load_program_state(str(tmp_path))
    with pytest.warns(UserWarning, match="the state has fc_0 to fc_3"):
        fluid.set_program_state(main, state)


def make_shapes(widths: dict[int, int]) -> dict[str, tuple[int, ...]]:
    """Return the shapes of weights by the numbers of their layers."""
    return {f"fc_{number}.w_0": (4, width) for number, width in widths.items()}


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ({0: 4, 1: 4, 2: 1}, {0: 4, 1: 4}),  # a layer more, of another shape
        ({0: 4, 1: 4}, {0: 4, 1: 4, 2: 4}),  # the first ones of many
        ({2: 4, 3: 1}, {0: 4, 1: 4, 2: 4, 3: 1}),  # a part of a network that is built with the rest
        ({1: 4, 2: 4}, {3: 4, 4: 4}),
    ],
)
def test_unrelated_networks_are_not_reported_as_shifted(ours: dict[int, int], theirs: dict[int, int]) -> None:
    loaded = [name for name in make_shapes(ours) if name in make_shapes(theirs)]
    assert explain_shift(make_shapes(ours), make_shapes(theirs), loaded) is None


@pytest.mark.parametrize("door", ["load_params", "load_vars", "load"])
def test_layers_numbered_from_a_later_start_than_the_saved_ones_are_reported(
    exe: fluid.Executor, tmp_path: Path, door: str
) -> None:
    def load(main: fluid.Program) -> object:
        if door == "load":
            return fluid.load(main, str(tmp_path / "net"), exe)
        names = {"vars": main.all_parameters()} if door == "load_vars" else {}
        return getattr(fluid.io, door)(exe, tmp_path / "net", main, **names)

    with fluid.unique_name.guard():
        main, startup, _ = build(5)
        exe.run(startup)
        save = fluid.save if door == "load" else lambda *names: fluid.io.save_params(exe, *names[::-1])
        save(main, str(tmp_path / "net"))
    fluid.layers.fc(fluid.data("other", [None, 4]), 4)
    main, startup, out = build(4)
    exe.run(startup)
    with pytest.warns(UserWarning, match=r"program has fc_1 to fc_4, the files have fc_0 to fc_4.*guard"):
        load(main)
    with fluid.unique_name.guard():  # as the hint says
        main, startup, out = build(4)
    with fluid.scope_guard(fluid.Scope()):
        exe.run(startup)
        load(main)
        (found,) = exe.run(main, feed={"x": ONES}, fetch_list=[out])
    np.testing.assert_array_equal(found, 4**4 * 2 * 3 * 4 * 5 * ONES)


def test_an_extra_layer_that_could_match_any_saved_layer_is_reported(
    exe: fluid.Executor, tmp_path: Path
) -> None:
    with fluid.unique_name.guard():
        main, startup, _ = build(3)
        exe.run(startup)
        fluid.io.save_params(exe, tmp_path, main)
    with fluid.unique_name.guard():
        main, startup, out = build(4, value=1.0)  # a layer of ones in front
    exe.run(startup)
    with pytest.warns(
        UserWarning, match=r"has 4 layers 'fc', the files have 3.*get the values of their neighbors"
    ):
        fluid.io.load_params(exe, tmp_path, main, strict=False)
    exe.run(startup, scope=(scope := fluid.Scope()))
    with fluid.scope_guard(scope):  # as the hint says
        names = {f"fc_{old}.{kind}": f"fc_{old + 1}.{kind}" for old in range(3) for kind in ("w_0", "b_0")}
        fluid.io.load_params(exe, tmp_path, main, strict=False, rename=names)
        (found,) = exe.run(main, feed={"x": ONES}, fetch_list=[out])
    np.testing.assert_array_equal(found, 4**4 * 2 * 3 * 4 * ONES)


def test_overwritten_values_are_reported_when_the_overwritten_network_runs(
    exe: fluid.Executor, tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    for name, value in (("m1", 1.0), ("m2", 2.0)):
        with fluid.scope_guard(fluid.Scope()), fluid.unique_name.guard():
            main, startup, out = build(value=value)
            exe.run(startup)
            fluid.io.save_inference_model(str(tmp_path / name), ["x"], [out], exe, main)
    first, _, targets = fluid.io.load_inference_model(str(tmp_path / "m1"), exe)
    fluid.io.load_inference_model(str(tmp_path / "m1"), exe)  # the same values: nothing to say
    exe.run(first, feed={"x": ONES}, fetch_list=targets)
    assert len(recwarn) == 0
    fluid.io.load_inference_model(str(tmp_path / "m2"), exe)
    with pytest.warns(
        UserWarning, match=r"'fc_0\.w_0'.* replaced by the model loaded from .*m2.*scope_guard"
    ):
        exe.run(first, feed={"x": ONES}, fetch_list=targets)
    results = []
    for name in ("m1", "m2"):  # as the warning says
        with fluid.scope_guard(fluid.Scope()):
            model, _, targets = fluid.io.load_inference_model(str(tmp_path / name), exe)
            results.append(exe.run(model, feed={"x": ONES}, fetch_list=targets)[0][0, 0])
    assert results == [4.0, 8.0]


def test_loading_an_old_export_over_a_network_in_training_is_reported(
    exe: fluid.Executor, tmp_path: Path
) -> None:
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup):
        out = fluid.layers.fc(fluid.data("x", [None, 4]), 2)
        loss = fluid.layers.mean(out)
        fluid.optimizer.SGD(0.1).minimize(loss)
    exe.run(startup)
    fluid.io.save_inference_model(str(tmp_path / "m"), ["x"], [out], exe, main)
    exe.run(main, feed={"x": ONES}, fetch_list=[loss])
    fluid.io.load_inference_model(str(tmp_path / "m"), exe)
    with pytest.warns(UserWarning, match="were replaced by the model"):
        exe.run(main, feed={"x": ONES}, fetch_list=[loss])


def test_values_that_are_only_initial_may_be_replaced(
    exe: fluid.Executor, tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    main, startup, out = build()
    exe.run(startup)
    fluid.io.save_inference_model(str(tmp_path / "m"), ["x"], [out], exe, main)
    with fluid.scope_guard(fluid.Scope()), fluid.unique_name.guard():
        main, startup, out = build(value=7.0)
        exe.run(startup)
        fluid.io.load_inference_model(str(tmp_path / "m"), exe)
        exe.run(main, feed={"x": ONES}, fetch_list=[out])
    assert len(recwarn) == 0


@pytest.mark.obeys(
    "is not a model for prediction: it names no outputs, like those that fluid.save writes. `paddlelike prune {} DIR --fetch NAME` makes a model of it and its values",
)
def test_the_hint_for_making_a_model_from_saved_files_works(exe: fluid.Executor, tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from paddlelike.cli.app import app

    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup):
        out = fluid.layers.fc(fluid.data("x", [None, 4]), 2, param_attr=fluid.initializer.Constant(3.0))
        fluid.optimizer.Adam(0.1).minimize(fluid.layers.mean(out))
    exe.run(startup)
    fluid.save(main, str(tmp_path / "net"))
    for call in (
        lambda: fluid.io.load_inference_model(str(tmp_path), exe, "net.pdmodel", "net.pdparams"),
        lambda: fluid.convert(tmp_path / "net.pdmodel", tmp_path / "net.onnx"),
    ):
        with pytest.raises(LoadError, match=r"`paddlelike prune .*net DIR --fetch NAME`"):
            call()
    done = CliRunner().invoke(app, ["prune", f"{tmp_path}/net", f"{tmp_path}/model", "--fetch", out.name])
    assert done.exit_code == 0, done.stderr
    with fluid.scope_guard(fluid.Scope()):
        model, feeds, targets = fluid.io.load_inference_model(str(tmp_path / "model"), exe)
        assert feeds == ["x"]
        (found,) = exe.run(model, feed={"x": ONES}, fetch_list=targets)
    np.testing.assert_array_equal(found, [[12.0, 12.0]])


@pytest.mark.obeys(
    "fluid.load(program, {}, exe, var_list=[the variables that were saved]), or fluid.io.load_persistables(exe, {}, program, filename={}), load_params likewise",
)
def test_the_hint_for_loading_a_combined_file_works(exe: fluid.Executor, tmp_path: Path) -> None:
    main, startup, out = build(value=3.0)
    exe.run(startup)
    fluid.io.save_params(exe, tmp_path, main, filename="all")
    with pytest.raises(LoadError, match=r"fluid\.load\(program, '.*all', exe, var_list=\[.*filename='all'"):
        fluid.load(main, str(tmp_path), exe)
    for call in (
        lambda: fluid.load(main, str(tmp_path / "all"), exe, var_list=main.all_parameters()),
        lambda: fluid.io.load_params(exe, tmp_path, main, filename="all"),
    ):
        with fluid.scope_guard(fluid.Scope()):
            call()
            np.testing.assert_array_equal(exe.run(main, {"x": ONES}, [out])[0], 12 * ONES)


def test_the_hint_for_feeding_the_output_of_a_reader_works(exe: fluid.Executor, tmp_path: Path) -> None:
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup):
        x = fluid.layers.read_file(fluid.layers.create_py_reader_by_data(4, [fluid.data("input", [None, 4])]))
        out = fluid.layers.fc(x, 1, param_attr=fluid.initializer.Constant(1.0))
    exe.run(startup)
    with pytest.raises(GraphError, match=f"feed the inputs the targets are computed from: {x.name}"):
        fluid.io.save_inference_model(str(tmp_path), ["input"], [out], exe, main)
    fluid.io.save_inference_model(str(tmp_path), [x.name], [out], exe, main)
    with fluid.scope_guard(fluid.Scope()):
        model, feeds, targets = fluid.io.load_inference_model(str(tmp_path), exe)
        (found,) = exe.run(model, feed={feeds[0]: ONES}, fetch_list=targets)
    np.testing.assert_array_equal(found, [[4.0]])


def test_the_advice_to_train_a_clone_by_its_own_loss_works(exe: fluid.Executor) -> None:
    main, startup, out = build()
    with fluid.program_guard(main, startup):
        loss = fluid.layers.mean(out)
    clone = main.clone()
    with fluid.program_guard(clone, startup), pytest.warns(UserWarning, match="looks like a clone of it"):
        fluid.optimizer.SGD(0.1).minimize(loss)
    assert "sgd" not in [op.type for op in clone.global_block().ops]
    with fluid.program_guard(clone, startup):
        fluid.optimizer.SGD(0.1).minimize(fluid.default_main_program().global_block().var(loss.name))
    exe.run(startup)
    losses = [exe.run(clone, feed={"x": ONES}, fetch_list=[loss.name])[0][0] for _ in range(2)]
    assert losses[1] < losses[0] == 8.0


def count_loss_steps(exe: fluid.Executor, program: fluid.Program, loss: str, count: int = 30) -> set[float]:
    """Return the losses that a program has in ``count`` runs."""
    return {float(exe.run(program, feed={"x": ONES}, fetch_list=[loss])[0][0]) for _ in range(count)}


@pytest.mark.parametrize("trained", ["original", "clone"])
def test_a_clone_without_optimizer_that_runs_often_causes_a_warning(
    exe: fluid.Executor, trained: str
) -> None:
    main, startup, out = build()
    with fluid.program_guard(main, startup):
        loss = fluid.layers.mean(out).name
    programs = {"original": main, "clone": main.clone()}
    right = programs.pop(trained)
    (wrong,) = programs.values()
    with fluid.program_guard(right, startup):
        fluid.optimizer.SGD(0.01).minimize(right.global_block().var(loss))
    exe.run(startup)
    with pytest.warns(UserWarning, match=r"has run 20 times and trains nothing.*To train, run that one"):
        assert count_loss_steps(exe, wrong, loss) == {8.0}
    assert len(count_loss_steps(exe, right, loss)) == 30  # as the warning says


def test_a_clone_that_evaluates_before_and_after_training_is_not_reported(exe: fluid.Executor) -> None:
    main, startup, out = build()
    with fluid.program_guard(main, startup):
        loss = fluid.layers.mean(out)
        clone, _ = main.clone(), fluid.optimizer.SGD(0.01).minimize(loss)
    exe.run(startup)
    count_loss_steps(exe, clone, loss.name, 3)
    count_loss_steps(exe, main, loss.name)
    assert len(count_loss_steps(exe, clone, loss.name)) == 1


def test_the_advice_for_an_evaluation_that_trains_works(exe: fluid.Executor) -> None:
    main, startup, out = build()
    with fluid.program_guard(main, startup):
        loss = fluid.layers.mean(out)
        fluid.optimizer.SGD(0.01).minimize(loss)
    exe.run(startup)
    count_loss_steps(exe, main, loss.name, 3)
    with pytest.warns(UserWarning, match=r"each run trains.*run program\.clone\(for_test=True\)"):
        assert len(count_loss_steps(exe, main.clone(), loss.name)) == 30
    assert len(count_loss_steps(exe, main.clone(for_test=True), loss.name)) == 1


def test_the_advice_for_minimize_outside_of_the_guard_works(
    exe: fluid.Executor,
) -> None:
    main, startup, out = build()
    with fluid.program_guard(main, startup):
        loss = fluid.layers.mean(out)
    with pytest.warns(UserWarning, match="pass startup_program="):
        fluid.optimizer.SGD(0.1).minimize(loss)
    main, startup, out = build()
    with fluid.program_guard(main, startup):
        loss = fluid.layers.mean(out)
    fluid.optimizer.SGD(0.1).minimize(loss, startup_program=startup)
    exe.run(startup)
    losses = [exe.run(main, feed={"x": ONES}, fetch_list=[loss])[0][0] for _ in range(2)]
    assert losses[1] < losses[0] == 8.0


def test_the_advice_for_turning_scores_into_probabilities_works(exe: fluid.Executor) -> None:
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup):
        label = fluid.data("label", [None, 1], "int64")
        scores = fluid.layers.fc(fluid.data("x", [None, 4]), 3, param_attr=fluid.initializer.Constant(-1.0))
        with pytest.warns(UserWarning, match=r"act='softmax'\), or call softmax_with_cross_entropy"):
            wrong = fluid.layers.cross_entropy(scores, label)
        losses = [
            fluid.layers.cross_entropy(fluid.layers.softmax(scores), label),
            fluid.layers.softmax_with_cross_entropy(scores, label),
        ]
    exe.run(startup)
    feed = {"x": ONES, "label": np.array([[1]])}
    first, *found = exe.run(main, feed=feed, fetch_list=[wrong, *losses])
    assert np.isnan(first).all()
    np.testing.assert_allclose(found, np.full([2, 1, 1], np.log(3.0)), rtol=1e-6)


@pytest.mark.obeys("program.global_block().var(name) finds a variable by its name")
def test_the_hint_for_gradients_of_a_name_works(exe: fluid.Executor) -> None:
    main, startup, out = build(value=3.0)
    with fluid.program_guard(main, startup):
        main.global_block().var("x").stop_gradient = False
        with pytest.raises(TypeError, match=r"program\.global_block\(\)\.var\(name\)"):
            fluid.gradients(fluid.layers.mean(out), "x")  # type: ignore[arg-type]
        (gradient,) = fluid.gradients(fluid.layers.mean(out), main.global_block().var("x"))
    exe.run(startup)
    np.testing.assert_array_equal(exe.run(main, {"x": ONES}, [gradient])[0], 3 * ONES)


def test_the_hint_for_samples_that_are_not_tuples_works() -> None:
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        feeder = fluid.DataFeeder([fluid.data("x", [None, 1])], fluid.CPUPlace())
        with pytest.raises(PaddlelikeError, match=r"a reader yields \(item,\) for one variable"):
            feeder.feed([1.0, 2.0])
        np.testing.assert_array_equal(feeder.feed([(1.0,), (2.0,)])["x"], [[1.0], [2.0]])


@pytest.mark.obeys(
    "dirname is the directory: load_persistables(exe, 'saved')",
)
def test_the_hint_for_a_load_without_a_directory_works(exe: fluid.Executor, tmp_path: Path) -> None:
    main, startup, out = build(value=3.0)
    exe.run(startup)
    fluid.io.save_persistables(exe, str(tmp_path / "saved"), main)
    with pytest.raises(TypeError, match=r"load_persistables\(exe, 'saved'\)"):
        fluid.io.load_persistables(exe, None, main)  # type: ignore[arg-type]
    with fluid.scope_guard(fluid.Scope()):
        fluid.io.load_persistables(exe, str(tmp_path / "saved"), main)
        np.testing.assert_array_equal(exe.run(main, {"x": ONES}, [out])[0], 12 * ONES)


def test_the_hint_for_batch_norm_with_the_batch_axis_works(exe: fluid.Executor) -> None:
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup):
        with pytest.raises(GraphError, match=r"declare the batch, too: \[None, channels, ...\]"):
            fluid.layers.batch_norm(fluid.data("flat", [4]))
        out = fluid.layers.batch_norm(fluid.data("x", [None, 4]))
    exe.run(startup)
    assert exe.run(main, {"x": ONES}, [out])[0].shape == ONES.shape
