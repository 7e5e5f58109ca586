"""Models of the real CNTK open as programs, and compute what CNTK computes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.core import LoDTensor
from paddlelike.errors import FormatError, MissingFileError, UnsupportedError
from paddlelike.formats.cntk.dictionary import SizeT, decode, encode
from paddlelike.interop.cntk.operations import NAMES, NUMBERS
from paddlelike.interop.cntk.reading.recurrent import SHIFTS
from paddlelike.interop.cntk.reading.step import load_readers
from tests.helpers.golden_data import GOLDEN
from tests.interop.cntk.operators import (
    compare,
    make_feed,
    read_cases,
    read_without_outputs,
    run,
    run_tensors,
)

MODELS = GOLDEN / "cntk"


@pytest.fixture(autouse=True)
def scope():
    with fluid.scope_guard(fluid.Scope()):
        yield fluid.global_scope()


@pytest.mark.parametrize("name", sorted(read_cases()))
def test_an_operation_computes_what_cntk_computes(name: str) -> None:
    case = read_cases()[name]
    program, feeds, fetches = fluid.import_cntk(case["model"].tobytes())
    outputs = run_tensors(program, make_feed(case, feeds), fetches)
    assert len(outputs) == len([key for key in case if key.startswith("y")])
    compare([np.asarray(one.array) for one in outputs], case)
    for key in [key for key in case if key.startswith("m")]:
        if key != "model":
            assert outputs[int(key[1:])].recursive_sequence_lengths() == [case[key].tolist()]


@pytest.mark.parametrize("name", ["attend", "scatter", "translate", "translate-attending"])
def test_a_network_of_sequences_can_be_trained_further(name: str) -> None:
    """Every parameter has a gradient, and the loss falls; a layer is added where there is none."""
    case = read_cases()[name]
    program, feeds, (out,) = fluid.import_cntk(case["model"].tobytes())
    startup = fluid.Program()
    with fluid.program_guard(program, startup):
        if not program.all_parameters():
            out = fluid.layers.fc(out, 2, num_flatten_dims=len(out.shape) - 1)
        loss = fluid.layers.mean(fluid.layers.square(out - 1.0))
        _, pairs = fluid.optimizer.SGD(0.02).minimize(loss)
    assert {one.name for one, _ in pairs} == {one.name for one in program.all_parameters()}
    fluid.Executor().run(startup)
    losses = [run(program, make_feed(case, feeds), [loss])[0].item() for _ in range(4)]
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < losses[0]


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def roll_gru(x: np.ndarray, parts: list[np.ndarray], hidden: int) -> np.ndarray:
    """cuDNN's GRU, whose reset gate applies after the product with the state."""
    w, r, b, c = parts
    h, found = np.zeros(hidden), []
    for row in x @ w.T + b:
        given, moved = np.split(row, 3), np.split(r @ h + c, 3)
        reset, update = (sigmoid(given[i] + moved[i]) for i in (0, 1))
        h = (1 - update) * np.tanh(given[2] + reset * moved[2]) + update * h
        found.append(h)
    return np.array(found)


def test_a_stack_of_gru_layers_computes_what_cudnn_computes(scope: fluid.Scope) -> None:
    """A second formula: no CPU of CNTK's computes it."""
    case, hidden = read_without_outputs()["stack-gru-2-both"], 3
    program, feeds, fetches = fluid.import_cntk(case["model"].tobytes())
    (out,) = run(program, make_feed(case, feeds), fetches)
    (parameter,) = program.all_parameters()
    flat = np.asarray(scope.find_var(parameter.name).get_tensor()).astype("float64")
    shapes = [(9, width) for wide in (3, 6) for _ in "io" for width in (wide, hidden)] + [(9,)] * 8
    ends = np.cumsum([np.prod(shape) for shape in shapes])
    assert ends[-1] == flat.size
    parts = [part.reshape(shape) for part, shape in zip(np.split(flat, ends[:-1]), shapes, strict=True)]
    found = []
    for x in np.split(case["x0"].astype("float64"), np.cumsum(case["l0"])[:-1]):
        for layer in (0, 1):
            both = []
            for way in (0, 1):
                at = 4 * layer + 2 * way
                mine = [*parts[at : at + 2], *parts[8 + at : 10 + at]]
                steps = roll_gru(x[::-1] if way else x, mine, hidden)
                both.append(steps[::-1] if way else steps)
            x = np.concatenate(both, 1)
        found.append(x)
    np.testing.assert_allclose(out, np.concatenate(found), rtol=0, atol=1e-6)


#: Mean and variance of what is drawn, by the formulas of the distributions.
MOMENTS = {
    "uniform": (0.5, 9 / 12),
    "normal": (1.0, 0.25),
    "bernoulli": (0.3, 0.21),
    "gumbel": (1 + 2 * np.euler_gamma, 4 * np.pi**2 / 6),
    "normal-like": (0.0, 1.0),
}


@pytest.mark.parametrize("name", MOMENTS)
def test_random_numbers_follow_the_distribution_of_their_operation(name: str) -> None:
    program, feeds, fetches = fluid.import_cntk(read_without_outputs()[f"random-{name}"]["model"].tobytes())
    program.random_seed = 5
    feed = {feed: np.zeros((1, 40, 50), "float32") for feed in feeds}
    (out,) = run(program, feed, fetches)
    mean, variance = MOMENTS[name]
    assert out.shape[-2:] == (40, 50)
    assert abs(out.mean() - mean) < 4 * np.sqrt(
        variance / out.size
    )  # four standard errors; the seed is fixed
    assert abs(out.var() / variance - 1) < 0.2


def test_samples_are_drawn_by_their_weights() -> None:
    models = {name: case["model"].tobytes() for name, case in read_without_outputs().items()}
    program, _, fetches = fluid.import_cntk(models["random-sample-again"])
    program.random_seed = 5
    (rows,) = run(program, {}, fetches)
    assert rows.shape == (2000, 10)
    np.testing.assert_array_equal(rows.sum(1), 1)
    np.testing.assert_allclose(rows.mean(0), np.arange(1, 11) / 55, atol=0.04)  # four standard errors
    program, _, fetches = fluid.import_cntk(models["random-sample-once"])
    (rows,) = run(program, {}, fetches)
    assert rows.shape == (4, 10)
    assert sorted(rows.sum(0)) == [0] * 6 + [1] * 4
    with pytest.raises(UnsupportedError, match="without replacement"):
        fluid.import_cntk(models["random-frequency-once"])


@pytest.mark.parametrize("name", ["mlp", "mlp64", "convnet", "plain", "bn"])
def test_a_model_of_cntk_opens_with_its_parameters(name: str, scope: fluid.Scope) -> None:  # C05
    program, feeds, fetches = fluid.import_cntk(MODELS / f"{name}.model")
    with np.load(MODELS / f"{name}.npz") as file:
        held = {key[2:]: file[key] for key in file.files if key[:2] in ("p:", "c:")}
        (out,) = run(program, {feeds[0]: file["x0"]}, fetches)
        real = file["y"]
    # sums in another order: 1e-15 of float64, 1e-6 of float32 numbers of about 1
    np.testing.assert_allclose(out, real, rtol=0, atol=1e-14 if name == "mlp64" else 2e-6)
    assert out.dtype == real.dtype
    for parameter in program.all_parameters():
        np.testing.assert_array_equal(
            np.array(scope.find_var(parameter.name).get_tensor()), held[parameter.name]
        )
    assert {one.name for one in program.all_parameters()} == {one for one in held if one.startswith("P")}


def test_a_recurrent_model_is_imported(tmp_path: Path) -> None:  # C05
    program, feeds, fetches = fluid.import_cntk((MODELS / "lstm.model").read_bytes())
    with np.load(MODELS / "lstm.npz") as file:
        x, y = file["x0"], file["y"]
    steps = LoDTensor(x.reshape(-1, 3))
    steps.set_recursive_sequence_lengths([[4, 4]])
    (out,) = run(program, {feeds[0]: steps}, fetches)
    np.testing.assert_allclose(out, y, rtol=0, atol=1e-6)  # float32 of another tanh


def test_several_outputs_are_several_fetches() -> None:
    program, feeds, fetches = fluid.import_cntk(MODELS / "two-outputs.model")
    one, other = run(program, {feeds[0]: np.ones((2, 3), "float32")}, fetches)
    np.testing.assert_array_equal(one, -other)
    assert [fetch.name for fetch in fetches] == ["out", "minus"]


def test_layers_are_found_by_their_names() -> None:  # C07
    program, feeds, fetches = fluid.import_cntk(MODELS / "convnet.model")
    assert (feeds, [fetch.name for fetch in fetches]) == (["img"], ["fc"])
    block = program.global_block()
    assert [tuple(block.var(name).shape) for name in ("conv1", "pool1", "conv2", "pool2")] == [
        (-1, 3, 10, 10), (-1, 3, 5, 5), (-1, 4, 3, 3), (-1, 4, 2, 2)
    ]  # fmt: skip
    image = np.ones((1, 1, 10, 10), "float32")
    (maps,) = run(program, {"img": image}, ["conv1"])
    assert maps.shape == (1, 3, 10, 10)
    assert maps.min() >= 0  # after the layer's relu


def test_an_opened_model_is_saved_and_loaded_as_any_other(tmp_path: Path) -> None:
    program, feeds, fetches = fluid.import_cntk(MODELS / "mlp.model")
    x = np.random.default_rng(0).standard_normal((3, 4)).astype("float32")
    (before,) = run(program, {feeds[0]: x}, fetches)
    exe = fluid.Executor()
    fluid.io.save_inference_model(str(tmp_path), feeds, fetches, exe, program)
    with fluid.scope_guard(fluid.Scope()):
        program, feeds, fetches = fluid.io.load_inference_model(str(tmp_path), exe)
        (after,) = run(program, {feeds[0]: x}, fetches)
    np.testing.assert_array_equal(before, after)


def change(name: str, **numbers: int) -> bytes:
    """Return a model with other operations."""
    tree = decode((MODELS / f"{name}.model").read_bytes())
    for one in tree["primitive_functions"]:
        one["op"] = SizeT(numbers.get(NAMES[one["op"]], one["op"]))
    return encode(tree)


def test_all_operations_without_a_counterpart_are_listed(scope: fluid.Scope) -> None:
    data = change("convnet", ReLU=NUMBERS["LambdaRank"], Tanh=NUMBERS["LambdaRank"], Pooling=900)
    with pytest.raises(UnsupportedError, match=r"LambdaRank \(2\); operation 900 \(2\)") as caught:
        fluid.import_cntk(data)
    assert "convert" in (caught.value.hint or "")
    assert scope.local_var_names() == []


def test_most_operations_of_cntk_are_read_and_tried(capsys) -> None:
    there = set(load_readers()) | set(SHIFTS) | {NUMBERS["Block"], NUMBERS["Combine"]}
    seen = {
        one["op"]
        for case in read_cases().values()
        for one in decode(case["model"].tobytes())["primitive_functions"]
    }
    with capsys.disabled():
        print(f"cntk: {len(there)} of {len(NAMES)} operators read, {len(seen)} by golden models")  # noqa: T201
    assert seen <= there
    assert len(there) >= 88


def take_output_of(tree, index: int) -> None:
    """Let the first function read the output of another one, or of itself."""
    functions = tree["primitive_functions"]
    functions[0]["inputs"][-1] = f"{functions[index]['uid']}_Output_0"


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda tree: tree.update(root="nothing"), "names 'nothing' as its last function"),
        (lambda tree: tree["inputs"].pop(0), "is not in the file"),
        (lambda tree: tree["primitive_functions"][0].pop("op"), "lacks op"),
        (lambda tree: tree["primitive_functions"][0].pop("attributes"), "lacks attributes"),
        (lambda tree: tree["primitive_functions"].append(tree["primitive_functions"][0]), "two functions"),
        (lambda tree: tree["inputs"][0].pop("value"), "has no value"),
        (lambda tree: tree["inputs"][0].update(value=np.zeros(3, "float32")), r"a value of shape \[3\]"),
        (lambda tree: tree["primitive_functions"][0]["attributes"].clear(), "has no attribute outputRank"),
        (
            lambda tree: tree["primitive_functions"][0]["attributes"].update(outputRank="1"),
            "outputRank is '1'",
        ),
        (lambda tree: tree["primitive_functions"][0]["inputs"].pop(), "has 1 inputs"),
        (lambda tree: tree.update(type="Dictionary"), "not a function"),
        (lambda tree: take_output_of(tree, 0), "takes its own output"),
        (lambda tree: take_output_of(tree, 1), "depend on each other in a circle"),
        (lambda tree: take_output_of(tree, -1), "depend on each other in a circle"),
    ],
    ids=[
        "root",
        "input",
        "op",
        "attributes",
        "twice",
        "value",
        "shape",
        "outputRank",
        "text",
        "inputs",
        "type",
        "itself",
        "the next one",
        "the last one",
    ],
)
def test_errors_in_a_model_are_named(change, text: str, scope: fluid.Scope) -> None:
    tree = decode((MODELS / "plain.model").read_bytes())
    change(tree)
    with pytest.raises(FormatError, match=text):
        fluid.import_cntk(encode(tree))
    assert scope.local_var_names() == []


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError, match=r"none\.model"):
        fluid.import_cntk(tmp_path / "none.model")


@pytest.mark.parametrize(
    ("data", "text"),
    [(b"", "empty"), (b"\x89PNG\r\n\x1a\n", "PNG image"), (b"\x08\x07\x12\x07pytorch", "an ONNX model"),
     ((MODELS / "mlp.npz").read_bytes(), "npz")],
    ids=["empty", "png", "onnx", "npz"],
)  # fmt: skip
def test_a_file_of_another_kind_is_explained(data: bytes, text: str) -> None:
    with pytest.raises(FormatError, match="is not a model of CNTK 2") as caught:
        fluid.import_cntk(data)
    assert text in (caught.value.hint or "")


def test_the_second_file_of_a_checkpoint_is_not_a_model() -> None:
    with pytest.raises(FormatError, match="not a function"):
        fluid.import_cntk(MODELS / "ck-sgd.dnn.ckp")
