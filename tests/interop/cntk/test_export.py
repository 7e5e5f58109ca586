"""Programs as models of CNTK: opened again here they compute the same. test_real.py asks the real CNTK."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.core import LoDTensor
from paddlelike.errors import NotInitializedError, SaveError, UnsupportedError
from paddlelike.formats.cntk.dictionary import decode
from paddlelike.framework.opdef import registry
from paddlelike.interop.cntk.origin import find_origin
from paddlelike.interop.cntk.writing.graph import load_writers
from tests.helpers.golden_data import GOLDEN, arrays, with_lod
from tests.interop.cntk import networks
from tests.interop.cntk.cases import WRITTEN, build
from tests.interop.cntk.operators import compare, make_feed, read_cases

#: float32 sums in another order; exp, log and tanh of other formulas.
CLOSE = {"rtol": 2e-5, "atol": 2e-5}


@pytest.fixture(autouse=True)
def scope():
    with fluid.scope_guard(fluid.Scope()):
        yield fluid.global_scope()


def open_and_run(file: Path, feed) -> list[np.ndarray]:
    with fluid.scope_guard(fluid.Scope()):
        program, feeds, fetches = fluid.import_cntk(file)
        real = {
            name: LoDTensor(np.asarray(one.array, "float32"), one.lod())
            if isinstance(one, LoDTensor)
            else one
            for name, one in feed.items()
        }
        return networks.run(program, networks.as_real({name: real[name] for name in feeds}), fetches)


def check(program, feed, fetches, file: Path) -> fluid.interop.CntkReport:
    wanted = networks.run(program, feed, fetches)
    report = fluid.export_cntk(program, file, list(feed), fetches)
    got = open_and_run(file, feed)
    assert len(got) in (len(wanted), 2)  # TopK has both of its outputs, whichever is asked for
    for ours, real in zip(got[: len(wanted)], wanted, strict=True):
        np.testing.assert_allclose(ours.reshape(real.shape), real.astype("float32"), **CLOSE)
    return report


#: Operators whose case works along the first dim, which is not the samples then.
FIXED = {"expand", "pad", "transpose", "transpose2"}
#: Operators whose cases have empty sequences, which CNTK does not have; the networks below use them.
EMPTY = {"sequence_pool"}
KINDS = sorted({case.type for case in WRITTEN} - EMPTY)
MOST = 8  # cases of one operator


@pytest.mark.parametrize("kind", KINDS)
def test_an_operator_computes_the_same_when_it_is_opened_again(kind: str, tmp_path: Path) -> None:
    exported, refused = 0, []
    for case in [case for case in WRITTEN if case.type == kind][:MOST]:
        program, feed, wanted = build(case, samples=kind not in FIXED)
        try:
            check(program, feed, wanted, tmp_path / f"{exported}.model")
            exported += 1
        except UnsupportedError as error:
            refused.append(f"{case.id}: {error}")
            assert not (tmp_path / f"{exported}.model").exists()
    assert exported, refused


@pytest.mark.parametrize("name", sorted(networks.NETWORKS))
def test_a_network_computes_the_same_when_it_is_opened_again(name: str, tmp_path: Path) -> None:  # C01
    program, feed, fetches = networks.build(name)
    report = check(program, feed, fetches, tmp_path / "net.model")
    assert report.bytes == (tmp_path / "net.model").stat().st_size
    assert (report.inputs, report.outputs) == (list(feed), fetches)


def test_parameters_keep_their_names_and_bits(tmp_path: Path, scope: fluid.Scope) -> None:
    program, _, fetches = networks.build("lenet")
    fluid.export_cntk(program, tmp_path / "net.model", ["image"], fetches)
    tree = decode((tmp_path / "net.model").read_bytes())
    found = {one["uid"]: one for one in tree["inputs"] if one.get("name") and "value" in one}
    for variable in program.list_vars():
        if variable.persistable:
            held = np.array(scope.find_var(variable.name).get_tensor())
            np.testing.assert_array_equal(found[variable.name]["value"], held)
            assert found[variable.name]["kind"] == (2 if variable.name in trained(program) else 3)


def trained(program: fluid.Program) -> set[str]:
    return {one.name for one in program.all_parameters() if one.trainable}


@pytest.mark.parametrize("name", ["conv_23_21_1", "average_33_22_1", "dense_image", "top_k", "stacked_last"])
def test_an_opened_model_is_written_and_opened_again(name: str, tmp_path: Path) -> None:
    case = read_cases()["last" if name == "stacked_last" else name]
    program, _, _ = fluid.import_cntk(case["model"].tobytes())
    fluid.export_cntk(program.clone(), tmp_path / "again.model")  # a copy, which is translated
    with fluid.scope_guard(fluid.Scope()):
        program, feeds, fetches = fluid.import_cntk(tmp_path / "again.model")
        compare(networks.run(program, make_feed(case, feeds), fetches), case)


@pytest.mark.parametrize(
    ("network", "form", "model", "params"),
    [("fit_a_line", "inference", None, None), ("sentiment_lstm", "inference", None, None),
     ("mnist_conv_bn", "inference_combined", "model", "params"),
     ("word2vec_shared", "inference", None, None)],
    ids=["fit_a_line", "sentiment_lstm", "mnist_conv_bn", "word2vec_shared"],
)  # fmt: skip
def test_a_model_of_fluid_gives_its_outputs(network, form, model, params, tmp_path: Path) -> None:
    folder = GOLDEN / network / form
    report = fluid.export_cntk(folder, tmp_path / "it.model", model_filename=model, params_filename=params)
    fed = with_lod(fluid, arrays(network, "io", "infer_in/"))
    (got, *_), wanted = (
        open_and_run(tmp_path / "it.model", {name: fed[name] for name in report.inputs}),
        list(arrays(network, "io", "infer_out/").values()),
    )
    np.testing.assert_allclose(got, wanted[0], **CLOSE)


def test_all_operators_without_a_counterpart_are_listed(tmp_path: Path) -> None:
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        x = fluid.data("x", [None, 4])
        one = fluid.layers.cumsum(fluid.layers.relu(x))
        two = fluid.layers.transpose(fluid.layers.cumsum(one), [1, 0])
    with pytest.raises(
        UnsupportedError, match=r"cumsum \(2\); transpose2 .*the dim of the samples"
    ) as caught:
        fluid.export_cntk(main, tmp_path / "it.model", ["x"], [two])
    assert caught.value.hint
    assert list(tmp_path.iterdir()) == []


def test_the_refusal_of_a_loop_lists_its_operators(tmp_path: Path) -> None:
    case = read_cases()["gru"]
    program, _, _ = fluid.import_cntk(case["model"].tobytes())
    with pytest.raises(UnsupportedError, match=r"array_to_lod_tensor;.*while"):
        fluid.export_cntk(program.clone(), tmp_path / "it.model")


@pytest.mark.parametrize("name", ["lstm", "mlp64", "convnet", "bn", "two-outputs"])
def test_an_imported_model_is_written_as_it_was(name: str, tmp_path: Path) -> None:
    """Recurrent ones too, byte for byte; then with other values, and not when it was changed."""
    data = (GOLDEN / "cntk" / f"{name}.model").read_bytes()
    program, feeds, fetches = fluid.import_cntk(data)
    fluid.export_cntk(program, tmp_path / "same.model", feeds, fetches)
    assert (tmp_path / "same.model").read_bytes() == data
    parameter = program.all_parameters()[0].name
    tensor = fluid.global_scope().find_var(parameter).get_tensor()
    tensor.set(np.array(tensor) + 1)
    fluid.export_cntk(program, tmp_path / "other.model")
    with fluid.scope_guard(fluid.Scope()):
        fluid.import_cntk(tmp_path / "other.model")
        np.testing.assert_array_equal(
            np.array(fluid.global_scope().find_var(parameter).get_tensor()), np.array(tensor)
        )
    with pytest.raises(NotInitializedError, match="holds no tensor"):
        fluid.export_cntk(program, tmp_path / "none.model", scope=fluid.Scope())
    program.global_block().create_var(name="more", shape=[1], dtype="float32")
    assert find_origin(program, feeds, [one.name for one in fetches], fluid.global_scope()) is None


def test_a_changed_recurrent_model_keeps_its_loops(tmp_path: Path) -> None:
    """A head is added and trained, the loop with it; another output is chosen."""
    program, feeds, (hidden,) = fluid.import_cntk((GOLDEN / "cntk" / "lstm.model").read_bytes())
    startup, exe = fluid.Program(), fluid.Executor()
    with fluid.program_guard(program, startup):
        out = fluid.layers.tanh(fluid.layers.fc(hidden, 2))
        fluid.optimizer.SGD(0.1).minimize(fluid.layers.mean(fluid.layers.square(out)))
    exe.run(startup)
    width = program.global_block().var(feeds[0]).shape[1]
    steps = np.random.default_rng(0).normal(size=(5, width)).astype("float32")
    feed = {feeds[0]: fluid.create_lod_tensor(steps, [[3, 2]], fluid.CPUPlace())}
    exe.run(program, feed=feed)
    wanted = exe.run(program.clone(for_test=True), feed=feed, fetch_list=[out, hidden])
    report = fluid.export_cntk(program, tmp_path / "more.model", feeds, [out, hidden])
    assert report.operators == {"mul": 1, "elementwise_add": 1, "tanh": 1}
    with fluid.scope_guard(fluid.Scope()):
        again, feeds, fetches = fluid.import_cntk(tmp_path / "more.model")
        found = exe.run(again, feed=feed, fetch_list=fetches)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


@pytest.mark.parametrize("name", ["gather", "scatter", "attend", "convolve-line", "translate-attending"])
def test_layers_added_to_an_imported_sequence_network_are_exported(name: str, tmp_path: Path) -> None:
    case = read_cases()[name]
    program, feeds, (out,) = fluid.import_cntk(case["model"].tobytes())
    with fluid.program_guard(program):
        twice = fluid.layers.scale(out, scale=2.0)
    report = fluid.export_cntk(program, tmp_path / "more.model", feeds, [twice])
    assert report.operators == {"scale": 1}
    with fluid.scope_guard(fluid.Scope()):
        program, feeds, fetches = fluid.import_cntk(tmp_path / "more.model")
        compare(networks.run(program, make_feed(case, feeds), fetches), {"y0": 2 * case["y0"]})


def test_missing_values_are_named(tmp_path: Path) -> None:
    main = fluid.Program()
    with fluid.unique_name.guard(), fluid.program_guard(main, fluid.Program()):
        out = fluid.layers.fc(fluid.data("x", [None, 4]), 2)
    with pytest.raises(NotInitializedError, match=r"parameter 'fc_0\.\w_0' holds no tensor"):
        fluid.export_cntk(main, tmp_path / "it.model", ["x"], [out])
    program, feed, fetches = networks.build("mlp")
    with pytest.raises(SaveError, match="names no file"):
        fluid.export_cntk(program, f"{tmp_path}/", list(feed), fetches)
    with pytest.raises(UnsupportedError, match="no outputs"):
        fluid.export_cntk(program, tmp_path / "it.model", ["x"], [])
    assert list(tmp_path.iterdir()) == []


def test_at_least_105_operators_are_written(capsys) -> None:
    here = {name for name in registry.all_ops() if "_grad" not in name}
    there = set(load_writers())
    assert there <= here
    with capsys.disabled():
        print(f"cntk: {len(there)} of {len(here)} operators written")  # noqa: T201
    assert len(there) >= 105
