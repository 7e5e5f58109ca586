"""The HDF5 recipe beside files of the real TensorFlow. H.. are rows of its list of features."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.errors import LoadError, MissingFileError, NotInitializedError, SaveError
from paddlelike.interop import tensorflow as tf

h5py = pytest.importorskip("h5py", reason="h5py is in the extra 'hdf5'")

GOLDEN = Path(__file__).parent.parent / "golden" / "tfh5"


@pytest.fixture
def exe() -> Iterator[fluid.Executor]:
    with (
        fluid.unique_name.guard(),
        fluid.program_guard(fluid.Program(), fluid.Program()),
        fluid.scope_guard(fluid.Scope()),
    ):
        yield fluid.Executor()


def build_tensorflow_network() -> tuple[fluid.framework.Variable, fluid.framework.Variable]:
    """The network of the golden files: two dense layers with tanh, and a scale."""
    x = fluid.data("x", [None, 4])
    hidden = fluid.layers.fc(x, 6, act="tanh", param_attr="net/layer1/W", bias_attr="net/layer1/b")
    out = fluid.layers.fc(hidden, 3, param_attr="net/layer2/W", bias_attr="net/layer2/b")
    scale = fluid.layers.create_parameter(
        [1], "float32", name="net/scale", attr=fluid.ParamAttr(name="net/scale")
    )
    return fluid.layers.elementwise_mul(out, scale), scale


def train(exe: fluid.Executor, loss: fluid.framework.Variable, steps: int) -> list[float]:
    rng = np.random.RandomState(0)
    feeds = [rng.uniform(size=(8, 3)).astype("float32") for _ in range(steps)]
    return [exe.run(feed={"x": x, "y": x.sum(1, keepdims=True)}, fetch_list=[loss])[0].item() for x in feeds]


def build_network() -> fluid.framework.Variable:
    x, y = fluid.data("x", [None, 3]), fluid.data("y", [None, 1])
    out = fluid.layers.fc(x, 1, param_attr="net/w", bias_attr="net/b")
    loss = fluid.layers.mean(fluid.layers.square_error_cost(out, y))
    fluid.optimizer.Adam(0.1).minimize(loss)
    return loss


def test_a_network_of_tensorflow_computes_the_same_here(exe: fluid.Executor) -> None:  # H07, H16, H17
    out, _ = build_tensorflow_network()
    exe.run(fluid.default_startup_program())
    report = fluid.load_hdf5(
        exe,
        GOLDEN / "trainable.hdf5",
        vars=["net/layer1/W", "net/layer1/b", "net/layer2/W", "net/layer2/b"],
    )
    assert len(report.loaded) == 4
    with h5py.File(GOLDEN / "trainable.hdf5") as file:
        fluid.global_scope().find_var("net/scale").get_tensor().set(file["net scale:0"][()].reshape(1))
    values = np.load(GOLDEN / "values.npz")
    (found,) = exe.run(feed={"x": values["X"]}, fetch_list=[out])
    np.testing.assert_allclose(found, values["y"], rtol=1e-5, atol=1e-6)  # float32, another order of sums


def test_training_resumes_exactly_from_all_persistables_but_not_from_parameters_alone(
    exe: fluid.Executor, tmp_path: Path
) -> None:  # H21
    loss = build_network()
    exe.run(fluid.default_startup_program())
    train(exe, loss, 5)
    fluid.save_hdf5(exe, tmp_path / "all.hdf5", predicate=fluid.io.is_persistable)
    fluid.save_hdf5(exe, tmp_path / "params.hdf5")
    after = train(exe, loss, 5)
    exe.run(fluid.default_startup_program())
    fluid.load_hdf5(exe, tmp_path / "all.hdf5", predicate=fluid.io.is_persistable)
    assert train(exe, loss, 5) == after
    with pytest.warns(UserWarning, match="replaces the values loaded"):  # H20
        exe.run(fluid.default_startup_program())
    fluid.load_hdf5(exe, tmp_path / "params.hdf5")
    again = train(exe, loss, 5)
    assert again[0] == after[0]
    assert again[1:] != after[1:]


def test_save_hdf5_writes_names_and_attributes_of_chosen_variables(
    exe: fluid.Executor, tmp_path: Path
) -> None:  # H02, H05, H06, H08, H10-H12
    build_network()
    exe.run(fluid.default_startup_program())
    report = fluid.save_hdf5(exe, tmp_path / "m.hdf5", vars=["net/w"], attributes={"epoch": 3})
    assert list(report.saved) == ["net/w"]
    with h5py.File(tmp_path / "m.hdf5") as file:
        assert list(file) == ["net w"]
        assert dict(file.attrs) == {"epoch": 3, "paddlelike_version": fluid.__version__}
    fluid.save_hdf5(exe, tmp_path / "old.hdf5", vars=["net/w"], attributes={"paddlelike_version": "0.0.1"})
    found = fluid.load_hdf5(exe, tmp_path / "old.hdf5", vars=["net/w"])
    assert any("written by version 0.0.1" in note for note in found.notes)


def test_a_load_that_does_not_fit_changes_nothing(
    exe: fluid.Executor, tmp_path: Path
) -> None:  # H18, H19, H22
    build_network()
    exe.run(fluid.default_startup_program())
    with h5py.File(tmp_path / "m.hdf5", "w") as file:
        file["net w"] = np.ones((4, 1), "float32")
    before = np.array(fluid.global_scope().find_var("net/w").get_tensor())
    with pytest.raises(LoadError) as caught:
        fluid.load_hdf5(exe, tmp_path / "m.hdf5")
    assert "net/b" in str(caught.value)
    assert "[4, 1]" in str(caught.value)
    np.testing.assert_array_equal(np.array(fluid.global_scope().find_var("net/w").get_tensor()), before)
    with h5py.File(tmp_path / "m.hdf5", "a") as file:
        file["net b"] = np.float32([5])
    report = fluid.load_hdf5(exe, tmp_path / "m.hdf5", strict=False)
    assert not report
    assert (list(report.loaded), list(report.misfits)) == (["net/b"], ["net/w"])


def test_older_names_are_mapped(exe: fluid.Executor, tmp_path: Path) -> None:  # H12
    build_network()
    exe.run(fluid.default_startup_program())
    with h5py.File(tmp_path / "m.hdf5", "w") as file:
        file["weights:0"] = np.full((3, 1), 7, "float32")
    report = fluid.load_hdf5(exe, tmp_path / "m.hdf5", vars=["net/w"], rename={"weights:0": "net/w"})
    assert report.renamed == {"net/w": "weights:0"}
    assert np.array(fluid.global_scope().find_var("net/w").get_tensor()).ravel().tolist() == [7, 7, 7]


def test_values_can_be_assigned_one_by_one_with_the_setters(exe: fluid.Executor) -> None:  # H13-H16
    build_tensorflow_network()
    setters = fluid.build_param_setters()
    assert setters["net/layer1/W"].placeholder.name == "net/layer1/W_setter"
    operators = [len(one.assign.global_block().ops) for one in setters.values()]
    with h5py.File(GOLDEN / "trainable.hdf5") as file:
        for name, val in file.items():
            name = name.replace(" ", "/").removesuffix(":0")
            assign, placeholder = setters[name]
            exe.run(assign, feed={placeholder.name: np.array(val).reshape(placeholder.shape)})
            np.testing.assert_array_equal(
                np.array(fluid.global_scope().find_var(name).get_tensor()).ravel(), np.array(val).ravel()
            )
    assert operators == [len(one.assign.global_block().ops) for one in setters.values()] == [1] * 5


def test_setters_are_found_by_their_tensorflow_names(exe: fluid.Executor) -> None:  # H16
    build_network()
    setters = fluid.build_param_setters()
    assert setters["net/w:0"] is setters["net/w"]
    for name in ("net/v:0", "net/v"):
        with pytest.raises(KeyError, match="net/v"):
            setters[name]


def test_a_file_of_all_variables_loads_into_a_network_without_the_optimizer(
    exe: fluid.Executor,
) -> None:  # H18, H21
    out, _ = build_tensorflow_network()
    exe.run(fluid.default_startup_program())
    values = np.load(GOLDEN / "values.npz")
    for choice in ({}, {"strict": False}, {"predicate": lambda variable: "layer1" in variable.name}):
        report = fluid.load_hdf5(exe, GOLDEN / "all.hdf5", **choice)
        assert report
        assert len(report.loaded) == (2 if "predicate" in choice else 5)
        assert any("Adam" in name for name in report.unexpected)
    (found,) = exe.run(feed={"x": values["X"]}, fetch_list=[out])
    np.testing.assert_allclose(found, values["y"], rtol=1e-5, atol=1e-6)  # float32, another order of sums


def test_rename_accepts_tensorflow_names_without_the_output_suffix(
    exe: fluid.Executor, tmp_path: Path
) -> None:  # H12
    build_network()
    exe.run(fluid.default_startup_program())
    with h5py.File(tmp_path / "m.hdf5", "w") as file:
        file["weights:0"] = np.full((3, 1), 7, "float32")
    report = fluid.load_hdf5(exe, tmp_path / "m.hdf5", vars=["net/w"], rename={"weights": "net/w"})
    assert report.renamed == {"net/w": "weights:0"}


def save_as_the_text_does(path: Path, session: tf.Session) -> None:
    with h5py.File(path, "w") as f:
        for var in tf.trainable_variables():
            key = var.name.replace("/", " ")
            value = session.run(var)
            f.create_dataset(key, data=value)


def load_as_the_text_does(path: Path, session: tf.Session) -> None:
    param_setters = {}
    for var in tf.trainable_variables():
        placeholder = tf.placeholder(var.dtype, var.shape, var.name.split(":")[0] + "_setter")
        param_setters[var.name] = (tf.assign(var, placeholder), placeholder)
    with h5py.File(path, "r") as f:
        for name, val in f.items():
            name = name.replace(" ", "/")
            val = np.array(val)
            session.run(param_setters[name][0], {param_setters[name][1]: val})


def test_the_published_recipe_reads_and_writes_files_of_tensorflow(
    exe: fluid.Executor, tmp_path: Path
) -> None:  # H04-H08, H13-H17
    out, _ = build_tensorflow_network()
    values = np.load(GOLDEN / "values.npz")
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        load_as_the_text_does(GOLDEN / "trainable.hdf5", session)
        found = session.run(out, {"x": values["X"]})
        np.testing.assert_allclose(found, values["y"], rtol=1e-5, atol=1e-6)  # float32, another order of sums
        save_as_the_text_does(tmp_path / "ours.hdf5", session)
    with h5py.File(tmp_path / "ours.hdf5") as ours, h5py.File(GOLDEN / "trainable.hdf5") as theirs:
        assert list(ours) == list(theirs)
        for key in ours:
            np.testing.assert_array_equal(ours[key][()].ravel(), theirs[key][()].ravel())


def test_feeding_a_placeholder_other_than_the_assigned_one_is_refused(exe: fluid.Executor) -> None:
    build_network()
    first, second = tf.trainable_variables()
    assert {one.name for one in tf.global_variables()} > {first.name, second.name}
    value = tf.placeholder(first.dtype, first.shape, "a")
    with pytest.raises(ValueError, match=r"got values for \['a'\], expected 'b'"):
        tf.Session().run(tf.assign(first, tf.placeholder(first.dtype, first.shape, "b")), {value: 1})


def test_errors_leave_the_old_file(exe: fluid.Executor, tmp_path: Path) -> None:  # H04
    build_network()
    with pytest.raises(NotInitializedError, match="holds no tensor"):
        fluid.save_hdf5(exe, tmp_path / "m.hdf5")
    exe.run(fluid.default_startup_program())
    fluid.save_hdf5(exe, tmp_path / "m.hdf5")
    before = (tmp_path / "m.hdf5").read_bytes()
    blank = fluid.layers.create_parameter([1], "float32", attr=fluid.ParamAttr(name="a b"))
    exe.run(fluid.default_startup_program())
    with pytest.raises(SaveError, match="'a b': a name that cannot be a key"):
        fluid.save_hdf5(exe, tmp_path / "m.hdf5", vars=[blank])
    assert (tmp_path / "m.hdf5").read_bytes() == before
    with pytest.raises(MissingFileError, match="no such file: "):
        fluid.load_hdf5(exe, tmp_path / "none.hdf5")


def test_a_variable_takes_the_dataset_of_its_exact_name(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "m.h5", "w") as file:
        file["w"], file["w:0"] = np.ones((2, 3), "f"), np.zeros((2, 3), "f")
    fluid.layers.fc(fluid.data("x", [None, 2]), 3, param_attr="w", bias_attr=False)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    assert not fluid.load_hdf5(exe, tmp_path / "m.h5").renamed
    assert np.array(fluid.global_scope().find_var("w").get_tensor()).all()
