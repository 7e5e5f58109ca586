"""Models of Paddle 3 (``inference.json``) compute what real Paddle computes; the rest is refused."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.errors import FormatError, LoadError, QuirkWarning, UnsupportedError
from paddlelike.framework.codec.decode import decode_program
from paddlelike.framework.opdef import REQUIRED, registry
from paddlelike.inspection.inspect import inspect
from paddlelike.interop.model_versions import convert_arrangement
from paddlelike.interop.paddle3.operators import find_rows
from paddlelike.interop.paddle3.write import write_pir
from tests.fuzz.makers.control_files import change_json
from tests.helpers.fresh import fresh_programs
from tests.helpers.golden_data import GOLDEN
from tests.models.archive import Files, read_archive, run_model, write_files
from tests.models.saved_layers import make_input, save_layer
from tests.zoo.layers import LAYERS, x

MODEL, VALUES = "inference.json", "inference.pdiparams"
CLOSE = {"rtol": 2e-5, "atol": 2e-5}


def run(folder: Path, files: Files, recorded: bytes, seed: int | None = None) -> Iterator[tuple[Any, Any]]:
    """Yield the outputs of a model, each with the one of real Paddle."""
    write_files(files, folder)
    exe = fluid.Executor()
    with fluid.scope_guard(fluid.Scope()), np.load(io.BytesIO(recorded)) as arrays:
        program, feeds, targets = fluid.io.load_inference_model(
            str(folder), exe, MODEL, VALUES if files.get(VALUES) else None
        )
        if seed is not None:
            fluid.global_scope().generator.state = seed
        names = arrays["feeds"].tolist() if "feeds" in arrays else sorted(feeds)
        assert sorted(feeds) == sorted(names)
        feed = {name: arrays[f"in{i}"] for i, name in enumerate(names)}
        for i, out in enumerate(exe.run(program, feed=feed, fetch_list=targets)):
            yield out, arrays[f"out{i}"]


def check(folder: Path, files: Files, recorded: bytes) -> None:
    for ours, real in run(folder, files, recorded):
        assert (ours.shape, ours.dtype) == (real.shape, real.dtype)
        np.testing.assert_allclose(ours, real, **CLOSE)


@pytest.mark.parametrize("name", sorted(read_archive("models331")))
def test_a_network_that_paddle_3_saved_gives_its_outputs(name: str, tmp_path: Path) -> None:
    files = read_archive("models331")[name]
    check(tmp_path, files, files["io.npz"])


#: Functions of operators that Paddle 2.6 lacks.
LATER = {
    "binomial", "bitwise_shift", "copysign", "fused_rms", "lu_solve", "lu_solve_t", "median_1", "median_None",
    "median_kept", "rank_atol", "right_shift", "unary_isneginf", "unary_signbit",
}  # fmt: skip


@pytest.mark.parametrize(
    "name", [name for name in sorted(read_archive("exports331")) if not name.startswith("drawn_")]
)
@pytest.mark.filterwarnings("ignore:.*were not recorded")
def test_a_function_that_paddle_3_exported_gives_its_outputs(name: str, tmp_path: Path) -> None:
    """It is computed as there: as it was read, as it is converted to Paddle 2, and as it is written again."""
    files = read_archive("exports331")[name]
    (tmp_path / "3").mkdir()
    check(tmp_path / "3", files, files["io.npz"])
    middle = tmp_path / "3" / MODEL
    if name == "kl_log" or name in LATER:  # kl_log has an attribute that Paddle 2.6.2 ignores
        why = "kldiv_loss with log_target=True" if name == "kl_log" else r"\w+, nor operators that compute"
        with pytest.raises(UnsupportedError, match=f"has no {why}"):
            convert_arrangement(middle, tmp_path / "2.pdmodel")
    else:
        middle = tmp_path / "2.pdmodel"
        convert_arrangement(tmp_path / "3" / MODEL, middle)
    convert_arrangement(middle, tmp_path / "again" / MODEL)
    written = {path.name: path.read_bytes() for path in (tmp_path / "again").iterdir()}
    check(tmp_path / "again", written, files["io.npz"])


VERSIONS = {"3.0.0": 1, "3.1.1": 2, "3.2.2": 3, "3.3.1": 4}  # of Paddle, and of the format


DRAWN = "3.3.1-gumbel"


@pytest.mark.parametrize(
    "name", [name for name in sorted(read_archive("pir_versions")) if not name.endswith("gumbel")]
)
def test_files_of_every_version_of_paddle_3_are_read(name: str, tmp_path: Path) -> None:
    files = read_archive("pir_versions")[name]
    version, _, _ = name.partition("-")
    assert json.loads(files[MODEL])["base_code"]["version"] == VERSIONS[version]
    check(tmp_path, files, files["io.npz"])


def test_gumbel_samples_follow_the_softmax_probabilities(tmp_path: Path) -> None:
    write_files(read_archive("pir_versions")[DRAWN], tmp_path)
    exe, counts = fluid.Executor(), np.zeros(4)
    with fluid.scope_guard(fluid.Scope()):
        program, (feed,), targets = fluid.io.load_inference_model(str(tmp_path), exe)
        program.random_seed = 7
        x = np.float32([[0, 1, 2, -1]] * 3)
        for _ in range(1000):
            counts += exe.run(program, feed={feed: x}, fetch_list=targets)[0].sum(0)
    expected = np.exp(x[0]) / np.exp(x[0]).sum()
    np.testing.assert_allclose(counts / 3000, expected, atol=4 * 0.5 / 3000**0.5)  # four deviations


SHARES = np.array([1, 2, 0, 3]) / 6  # of the columns of the multinomial ones
SECOND = np.array([sum(p * q / (1 - p) for p in np.delete(SHARES, i)) for i, q in enumerate(SHARES)])
MOMENTS = {  # mean and variance
    "bernoulli": (0.3, 0.21),
    "binomial": (3, 2.1),
    "dirichlet": (2 / 5, 6 / 150),
    "exponential": (1 / 2, 1 / 4),
    "gamma": (3, 3),
    "gaussian": (1, 4),
    "gumbel_first": (2 / 3, 2 / 9),
    "multinomial": (SHARES @ range(4), SHARES @ np.arange(4) ** 2 - (SHARES @ range(4)) ** 2),
    "multinomial_second": (SECOND @ range(4), SECOND @ np.arange(4) ** 2 - (SECOND @ range(4)) ** 2),
    "poisson": (4, 4),
    "randint": (1.5, 99 / 12),
    "random": (3.5, 15 / 12),
}


@pytest.mark.parametrize("name", MOMENTS)
def test_random_functions_of_paddle_3_have_the_mean_and_variance_of_their_distributions(
    name: str, tmp_path: Path
) -> None:
    """So have the numbers that Paddle 3 recorded."""
    files = read_archive("exports331")[f"drawn_{name}"]
    mean, variance = MOMENTS[name]
    for one in [one for pair in run(tmp_path, files, files["io.npz"], seed=7) for one in pair]:
        drawn = np.array(one, np.float64)
        assert drawn.shape == (600,)
        assert drawn.mean() == pytest.approx(mean, abs=5 * (variance / 600) ** 0.5)
        fourth = ((drawn - drawn.mean()) ** 4).mean() - drawn.var() ** 2
        assert drawn.var() == pytest.approx(variance, abs=5 * (fourth / 600) ** 0.5)


def test_the_generator_of_the_scope_determines_random_draws(tmp_path: Path) -> None:
    files = read_archive("exports331")["drawn_gamma"]
    first, again, other = (next(run(tmp_path, files, files["io.npz"], seed=seed))[0] for seed in (7, 7, 8))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def read_translated(name: str) -> tuple[Files, bytes]:
    """Return what Paddle 3 made of a model of Paddle 2.6, and the recording."""
    old = read_archive("layers262")[name]
    values = {VALUES: old["model.pdiparams"]} if "model.pdiparams" in old else {}
    return read_archive("layers331")[name] | values, old["io.npz"]


@pytest.mark.parametrize(
    "name", ["case", "cond", "switch_case", "while_loop", "rnn_of_cells", "translator_traced"]
)
def test_loops_and_branches_of_paddle_3_give_their_outputs(name: str, tmp_path: Path) -> None:
    check(tmp_path, *read_translated(name))


@pytest.mark.slow
def test_every_layer_of_paddle_3_gives_its_outputs(tmp_path: Path) -> None:
    names = sorted(read_archive("layers331"))
    assert len(names) == 422
    for name in names:
        folder = tmp_path / name
        folder.mkdir()
        if name == "getitem_negative":  # in Paddle 3 steps back to -1 are none: of its own file it makes none
            with pytest.warns(QuirkWarning, match="without elements"):
                assert [ours for ours, _ in run(folder, *read_translated(name))] == [None]
        else:
            check(folder, *read_translated(name))


def test_an_operator_without_its_input_is_reported_as_damage() -> None:
    tree = json.loads(read_archive("layers331")["set_item"][MODEL])
    (node,) = (one for one in tree["program"]["regions"][0]["blocks"][0]["ops"] if one["#"] == "1.set_value")
    node["I"][0]["%"] = 0
    with pytest.raises(FormatError, match="Input"):
        decode_program(json.dumps(tree).encode())


def change(name: str, op: str, at: str, value: Any) -> bytes:
    """Return a recorded program in which an attribute of an operator, or its own name, is another."""
    tree = json.loads(read_archive("layers331")[name][MODEL])
    (node,) = (one for one in tree["program"]["regions"][0]["blocks"][0]["ops"] if one["#"] == op)
    if at == "#":
        node["#"] = value
    else:
        node["A"] = [one for one in node["A"] if one["N"] != at] + [{"N": at, "AT": value}]
    return json.dumps(tree).encode()


@pytest.mark.parametrize("items", [["a"], [None], [[1]], [{}]])
def test_lists_of_wrong_types_are_reported_as_damage(items: list[Any]) -> None:
    for kind in ("0.a_array", "1.a_intarray"):
        with pytest.raises(FormatError):
            decode_program(change("abs", "1.full", "shape", {"#": kind, "D": items}))


def test_an_input_without_dims_is_reported_as_damage() -> None:
    tree = json.loads(read_archive("layers331")["instance_norm1d"][MODEL])
    for node in tree["program"]["regions"][0]["blocks"][0]["ops"]:
        if node["#"] == "1.feed":
            node["O"][0]["TT"]["D"][1] = []
        if node["#"] == "1.instance_norm":
            node["I"] = [node["I"][0], {"%": 0}, {"%": 0}]  # without Scale and Bias
    with pytest.raises(FormatError):
        decode_program(json.dumps(tree).encode())


def test_unknown_operators_and_attributes_are_named() -> None:
    with pytest.raises(FormatError, match="not supported: teleport"):
        decode_program(change("gelu", "1.gelu", "#", "1.teleport"))
    with pytest.raises(FormatError, match="'gelu' of Paddle 3 has attribute 'tilt' = 7"):
        decode_program(change("gelu", "1.gelu", "tilt", {"#": "0.a_i32", "D": 7}))
    tree = json.loads(change("gelu", "1.gelu", "#", "1.histogram"))
    (node,) = (one for one in tree["program"]["regions"][0]["blocks"][0]["ops"] if one["#"] == "1.histogram")
    node["A"], node["I"] = [], [*node["I"], *node["I"]]
    with pytest.raises(FormatError, match="'histogram' of Paddle 3 has operand 1, which"):
        decode_program(json.dumps(tree).encode())
    with pytest.raises(FormatError, match="'cumprod' of Paddle 3 has reverse = True; only False is computed"):
        decode_program(change("cumprod", "1.cumprod", "reverse", {"#": "0.a_bool", "D": True}))


def test_the_error_for_a_damaged_program_names_the_flag_for_a_new_export(tmp_path: Path) -> None:
    write_files({MODEL: (GOLDEN / "paddle300" / MODEL).read_bytes()[:-9]}, tmp_path)
    with pytest.raises(LoadError, match=r"(?s)damaged.*PIR.*FLAGS_enable_pir_api=0"):
        fluid.io.load_inference_model(str(tmp_path), fluid.Executor(), MODEL, VALUES)


def test_the_operator_table_matches_the_registered_operators() -> None:
    """Slots and attributes of the table are those of the operators; what an operator needs is given."""
    completed = {
        "in_dtype",
        "values",
        "dtype",
        "data_format",
    }  # by the reader, or by Paddle 2's own operator alone
    for row in find_rows():
        known = registry.find_for_version(row.type, 3_000_000 if row.type == "round" else 2_006_000)
        assert known is not None, row.name
        inputs, outputs = ({slot.rstrip("*?") for slot in slots} for slots in (known.inputs, known.outputs))
        attrs = {one.attr for one in row.operands} | {one.target for one in row.attributes}
        assert {one.slot for one in row.operands} | {one.many for one in row.operands} <= inputs | {""}, (
            row.name
        )
        assert {one.slot for one in row.results} <= outputs | {""}, row.name
        assert attrs - completed <= known.attrs.keys() | {""}, row.name
        assert {name for name, one in known.attrs.items() if one.default is REQUIRED} <= attrs | completed, (
            row.name
        )


@pytest.mark.parametrize(
    "data", [b'{"a":' * 100_000, b"{" + b"[" * 100_000, b'{"base_code":{"magic":"pir"}}', b"{}"]
)
def test_blocks_that_are_empty_or_too_deep_are_refused(data: bytes) -> None:
    with pytest.raises(FormatError):
        decode_program(data)


def nest(levels: int) -> bytes:
    """Return a program whose branches are in each other."""
    ops: list[Any] = [{"#": "2.yield", "A": [], "I": [], "O": []}]
    for _ in range(levels):
        region = {"#": "r", "blocks": [{"#": "b", "args": [], "ops": ops}]}
        branch = {"#": "1.if", "A": [], "I": [{"%": 1}], "O": [], "regions": [region, region]}
        ops = [branch, {"#": "2.yield", "A": [], "I": [], "O": []}]
    fill = {
        "#": "1.full",
        "I": [],
        "O": [{"%": 1, "TT": {"#": "0.t_dtensor", "D": [{"#": "0.t_bool"}, [1]]}}],
    }
    fill["A"] = [
        {"N": "shape", "AT": {"#": "1.a_intarray", "D": [1]}},
        {"N": "value", "AT": {"#": "0.a_f64", "D": 1.0}},
        {"N": "dtype", "AT": {"#": "1.a_dtype", "D": "bool"}},
    ]
    blocks = [{"#": "b", "args": [], "ops": [fill, ops[0]]}]
    tree = {"base_code": {"magic": "pir"}, "program": {"regions": [{"#": "r", "blocks": blocks}]}}
    return json.dumps(tree).encode()


def test_nested_branches_are_read_up_to_a_limit() -> None:
    assert len(decode_program(nest(3)).blocks) == 15
    with pytest.raises(FormatError):
        decode_program(nest(11))  # 2**12 blocks


@pytest.mark.parametrize("seed", range(4))
def test_changed_programs_are_read_or_refused(seed: int) -> None:
    rng = Random(seed)
    names = ["while_loop", "cond", "switch_case", "lstm", "index", "concat", "slice", "conv2d_nhwc"]
    real = [(read_archive("layers331").get(name) or read_archive("models331")[name])[MODEL] for name in names]
    refused = 0
    for _ in range(100):
        data = change_json(rng, rng.choice(real))
        try:
            decode_program(data)
        except FormatError:
            refused += 1
    assert 20 < refused < 100


@pytest.mark.parametrize("name", ["bn", "while"])
def test_a_model_of_paddle_3_is_converted(name: str, tmp_path: Path) -> None:
    """A model of Paddle 3 becomes the two files of Paddle 2, or a directory, which compute the same."""
    files = read_archive("models331")[name]
    (tmp_path / "3").mkdir()
    pairs = list(run(tmp_path / "3", files, files["io.npz"]))
    has_values = bool(files.get(VALUES))
    for target, model, values in (
        ("2/a.pdmodel", "a.pdmodel", "a.pdiparams"),
        ("1", "__model__", "__params__"),
    ):
        convert_arrangement(tmp_path / "3" / MODEL, tmp_path / target)
        with fluid.scope_guard(fluid.Scope()), np.load(io.BytesIO(files["io.npz"])) as arrays:
            exe = fluid.Executor()
            program, feeds, targets = fluid.io.load_inference_model(
                str(tmp_path / target[0]), exe, model, values if has_values else None
            )
            outs = exe.run(program, feed={feeds[0]: arrays["in0"]}, fetch_list=targets)
        for out, (ours, _) in zip(outs, pairs, strict=True):
            np.testing.assert_array_equal(out, ours)


def test_a_model_of_paddle_3_is_inspected(tmp_path: Path) -> None:
    write_files(
        {name: data for name, data in read_archive("models331")["bn"].items() if name != "io.npz"}, tmp_path
    )
    found = inspect(tmp_path)
    assert [one.name for one in found.variables] == sorted(one.name for one in found.variables)
    assert "conv2d_0.w_0" in {one.name for one in found.variables}


WRITTEN = [
    "linear", "conv2d", "batch_norm2d", "split", "sum_axis", "lstm", "set_item", "topk", "case", "while_loop",
    "array", "rnn_of_cells", "translator_traced",
]  # fmt: skip


@pytest.mark.parametrize("name", WRITTEN)
def test_a_model_is_written_for_paddle_3_and_read_again(name: str, tmp_path: Path) -> None:
    """A model of Paddle 2 that is written in the form of Paddle 3 computes the same when it is read."""
    files = read_archive("layers262")[name]
    (tmp_path / "2").mkdir()
    write_files({one: data for one, data in files.items() if one != "io.npz"}, tmp_path / "2")
    convert_arrangement(tmp_path / "2", tmp_path / "3" / MODEL)
    written = {path.name: path.read_bytes() for path in (tmp_path / "3").iterdir()}
    check(tmp_path / "3", written, files["io.npz"])


@pytest.mark.parametrize("name", ["bert", "convnet", "ctr", "ssd", "yolo"])
@pytest.mark.filterwarnings("ignore:.*has no LoD in Paddle 3")
def test_a_model_of_fluid_is_written_for_paddle_3(name: str, tmp_path: Path) -> None:
    files = read_archive("models185")[name]
    (tmp_path / "1").mkdir()
    write_files({one: data for one, data in files.items() if one[-3:] not in ("npz", "son")}, tmp_path / "1")
    convert_arrangement(tmp_path / "1", tmp_path / "3" / MODEL)
    written = {path.name: path.read_bytes() for path in (tmp_path / "3").iterdir()}
    recorded = {"files.json": json.dumps([MODEL, VALUES if written.get(VALUES) else None]).encode()}
    for ours, real in run_model(tmp_path / "3", recorded | {"io.npz": files["io.npz"]}):
        np.testing.assert_allclose(np.asarray(ours), np.asarray(real), **CLOSE)


OLD_LAYERS = [
    "argmax", "conv2d_transpose", "cos_sim", "cumsum", "data_norm", "embedding", "embedding_sparse_pad",
    "expand", "flatten", "gather", "has_nan", "image_resize", "isfinite", "l2_normalize", "matmul", "mean",
    "one_hot", "overload_lt", "reduce_mean", "reduce_sum", "reduce_sum_all", "softplus", "topk", "zeros_like",
]  # fmt: skip
IMAGES = {
    "flatten_all": lambda: fluid.layers.flatten(x(2, 3), axis=0),
    "flatten_two": lambda: fluid.layers.flatten(x(2, 3), axis=2),
    "nearest": lambda: fluid.layers.resize_nearest(x(3, 4, 4), scale=2.0),
    "pad2d": lambda: fluid.layers.pad2d(x(3, 4, 4), [1, 2, 0, 1], pad_value=2.0),
    "pad2d_edge": lambda: fluid.layers.pad2d(x(3, 4, 5), [0, 1, 2, 0], "edge", data_format="NHWC"),
}


@pytest.mark.parametrize("name", [*OLD_LAYERS, *IMAGES])
def test_layers_of_fluid_are_written_for_paddle_3(name: str, tmp_path: Path) -> None:
    """An operator that Paddle 3 does not have is written as others, which compute the same."""
    with fresh_programs(), fluid.scope_guard(fluid.Scope()):
        exe = fluid.Executor()
        save_layer(IMAGES.get(name) or LAYERS[name], tmp_path / "1", exe)
        convert_arrangement(tmp_path / "1", tmp_path / "3" / MODEL)
        values = VALUES if (tmp_path / "3" / VALUES).exists() else None
        outs = []
        for loaded in (
            fluid.io.load_inference_model(str(tmp_path / "1"), exe),
            fluid.io.load_inference_model(str(tmp_path / "3"), exe, MODEL, values),
        ):
            program, feeds, targets = loaded
            feed = {one: make_input(program.global_block().var(one)) for one in feeds}
            outs.append(exe.run(program, feed=feed, fetch_list=targets))
    for old, new in zip(*outs, strict=True):
        assert (new.shape, new.dtype) == (old.shape, old.dtype)
        np.testing.assert_allclose(new, old, rtol=1e-6, atol=1e-7)  # sums in another order


def test_operators_that_paddle_3_lacks_are_named() -> None:
    program = decode_program(read_archive("layers262")["print_free_metrics"]["model.pdmodel"])
    with pytest.raises(UnsupportedError, match="'auc'"):
        write_pir(program)
