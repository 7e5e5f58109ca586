"""Sequences with a LoD become padded batches with lengths: onnxruntime gives what the executor gives."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnx", reason="the extra onnx is not installed")
pytest.importorskip("onnxruntime", reason="onnxruntime is in the extra 'test-all'")

import io

import paddlelike as fluid
from paddlelike import layers
from paddlelike.core import VarType
from paddlelike.errors import UnsupportedError
from tests.interop.onnx.runs import run_onnx
from tests.models.archive import find_names, read_archive, run_model, write_files

pytestmark = pytest.mark.slow

LENGTHS = [3, 1, 4]
CLOSE = {"rtol": 1e-5, "atol": 1e-5}  # float32 sums in another order


def pad_batch(rows: np.ndarray, lengths, filling=0) -> np.ndarray:
    """Return the sequences as a batch; what is after their ends must not matter."""
    out = np.full((len(lengths), max(lengths), *rows.shape[1:]), filling, rows.dtype)
    start = 0
    for index, length in enumerate(lengths):
        out[index, :length] = rows[start : start + length]
        start += length
    return out


def lstm(x, **options):
    hidden, _ = layers.dynamic_lstm(layers.fc(x, 12), 12, **options)
    return hidden


def decode(x, *, label: bool = False):
    block = fluid.default_main_program().global_block()
    emission = layers.fc(x, 3)
    transition = block.create_parameter(name="transition", shape=[5, 3], dtype="float32")
    inputs = {"Emission": emission, "Transition": transition}
    if label:
        inputs["Label"] = layers.cast(layers.scale(layers.sigmoid(layers.fc(x, 1)), 2.9), "int64")
    out = block.create_var(name="path", dtype="int64", lod_level=1)
    block.append_op(type="crf_decoding", inputs=inputs, outputs={"ViterbiPath": out})
    return out


def roll(x):
    """A network of steps: states that shrink with the batch, an array of outputs."""
    last = layers.sequence_pool(x, "last")
    rnn = layers.DynamicRNN()
    with rnn.block():
        word, fixed = rnn.step_input(x), rnn.static_input(last)
        state = rnn.memory(init=last, need_reorder=True)
        new = layers.tanh(layers.elementwise_add(layers.fc([word, state], 4), fixed))
        rnn.update_memory(state, new)
        rnn.output(new)
    return rnn()


def reorder(x):
    block = fluid.default_main_program().global_block()
    table = block.create_var(name="table", type=VarType.LOD_RANK_TABLE)
    block.append_op(type="lod_rank_table", inputs={"X": x}, outputs={"Out": table})
    out = block.create_var(name="ordered", dtype="float32", lod_level=1)
    inputs = {"X": layers.scale(x, 2.0), "RankTable": table}
    block.append_op(type="reorder_lod_tensor_by_rank", inputs=inputs, outputs={"Out": out})
    return out


NETWORKS = {
    "reorder": reorder,
    "dynamic-rnn": roll,
    **{kind: lambda x, kind=kind: layers.sequence_pool(x, kind)
       for kind in ("sum", "average", "sqrt", "max", "first", "last")},
    "softmax": lambda x: layers.sequence_softmax(layers.fc(x, 1)),
    "conv": lambda x: layers.sequence_conv(x, 5, 3),
    "conv-ahead": lambda x: layers.sequence_conv(x, 5, 2, padding_start=1),
    "conv-behind": lambda x: layers.sequence_conv(x, 5, 2, padding_start=-3),
    "expand": lambda x: layers.sequence_expand(layers.sequence_pool(x, "last"), x),
    "expand-as": lambda x: layers.sequence_expand_as(layers.sequence_pool(x, "first"), x),
    "reverse": layers.sequence_reverse,
    "concat": lambda x: layers.sequence_concat([x, layers.scale(x, 2.0), x]),
    "reshape": lambda x: layers.sequence_reshape(x, 2),
    "pad": lambda x: layers.sequence_pad(x, layers.assign(np.float32([9])))[0],
    "pad-long": lambda x: layers.sequence_pad(x, layers.assign(np.float32([9])), maxlen=6)[0],
    "unpad": lambda x: layers.sequence_unpad(*layers.sequence_pad(x, layers.assign(np.float32([0])))),
    "rows": lambda x: layers.softmax(layers.fc(x, 3)),
    "regrouped": lambda x: layers.sequence_pool(layers.lod_reset(x, target_lod=[0, 2, 8]), "sum"),
    "row-conv": lambda x: layers.row_conv(x, 2),
    "slice": lambda x: layers.sequence_slice(
        x, layers.assign(np.int64([[1], [0], [2]])), layers.assign(np.int64([[2], [1], [1]]))
    ),
    "scatter": lambda x: layers.sequence_scatter(
        layers.assign(np.ones((3, 5), "float32")),
        layers.cast(layers.scale(layers.sigmoid(layers.fc(x, 1)), 4.9), "int64"),
        layers.fc(x, 1),
    ),
    "crf": lambda x: decode(x),
    "crf-right": lambda x: decode(x, label=True),
    "lstm": lstm,
    "lstm-back": lambda x: lstm(x, is_reverse=True, use_peepholes=False),
    "lstm-relu": lambda x: lstm(x, candidate_activation="relu", cell_activation="identity"),
    "gru": lambda x: layers.dynamic_gru(layers.fc(x, 9), 3),
    "gru-back": lambda x: layers.dynamic_gru(layers.fc(x, 9), 3, is_reverse=True, origin_mode=True),
    "gru-started": lambda x: layers.dynamic_gru(
        layers.fc(x, 9), 3, h_0=layers.fc(layers.sequence_pool(x, "last"), 3)
    ),
}  # fmt: skip


def run_both(build, tmp_path: Path, opset: int = 17, dtype="float32"):
    main, startup = fluid.Program(), fluid.Program()
    with fluid.unique_name.guard(), fluid.program_guard(main, startup):
        width = 4 if dtype == "float32" else 1
        x = fluid.data("x", [None, width], dtype, lod_level=1)
        out = build(x)
    rng = np.random.default_rng(5)
    rows = rng.standard_normal((8, 4)).astype("float32") if width == 4 else rng.integers(0, 3, (8, 1))
    scope = fluid.Scope()
    with fluid.scope_guard(scope):
        exe = fluid.Executor()
        if startup.global_block().ops:
            exe.run(startup)
        if main.global_block().has_var("transition"):
            scope.var("transition").get_tensor().set(np.zeros((5, 3), "float32"))
        for name in [one.name for one in main.all_parameters()]:
            value = np.asarray(scope.find_var(name).get_tensor())
            scope.find_var(name).get_tensor().set(rng.standard_normal(value.shape).astype(value.dtype) * 0.5)
        feed = fluid.create_lod_tensor(rows, [LENGTHS], fluid.CPUPlace())
        (want,) = exe.run(main, feed={"x": feed}, fetch_list=[out], return_numpy=False)
    report = fluid.export_onnx(main, tmp_path / "s.onnx", ["x"], [out], scope=scope, opset=opset)
    assert report.inputs == ["x", "x.lengths"]
    filling = 7 if dtype == "int64" else np.nan
    given = {"x": pad_batch(rows, LENGTHS, filling), "x.lengths": np.array(LENGTHS)}
    return want, run_onnx(tmp_path / "s.onnx", given), given


def compare(got, want) -> None:
    rows = np.asarray(want)
    lengths = np.diff(want.lod()[0]).tolist() if want.lod() else None
    if lengths is None:
        (out,) = got
        np.testing.assert_allclose(out, rows, **CLOSE)
        return
    batch, counts = got
    assert counts.tolist() == lengths
    np.testing.assert_allclose(batch, pad_batch(rows, lengths), **CLOSE)


@pytest.mark.parametrize("name", NETWORKS)
def test_sequence_networks_give_the_same_outputs_in_onnxruntime(name: str, tmp_path: Path) -> None:
    want, got, _ = run_both(NETWORKS[name], tmp_path)
    compare(got, want)


@pytest.mark.parametrize("name", ["lstm", "gru-back", "max", "concat"])
@pytest.mark.parametrize("opset", [11, 12, 22])
def test_networks_on_sequences_are_exported_at_other_opsets(name: str, opset: int, tmp_path: Path) -> None:
    want, got, _ = run_both(NETWORKS[name], tmp_path, opset)
    compare(got, want)


@pytest.mark.parametrize("name", ["lstm-back", "gru-started", "softmax", "conv", "reverse"])
def test_exported_sequence_networks_are_imported_again(name: str, tmp_path: Path) -> None:
    want, _, given = run_both(NETWORKS[name], tmp_path)
    scope = fluid.Scope()
    program, feeds, fetches = fluid.import_onnx(tmp_path / "s.onnx", scope=scope)
    given["x"] = np.nan_to_num(given["x"])
    with fluid.scope_guard(scope):
        got = fluid.Executor().run(program, feed={one: given[one] for one in feeds}, fetch_list=fetches)
    compare(got, want)


IDS = {
    "enumerate": lambda x: layers.sequence_enumerate(x, 3, pad_value=9),
    "erase": lambda x: append("sequence_erase", x, tokens=[1, 5]),
    "erase-nothing": lambda x: append("sequence_erase", x, tokens=[]),
}


def append(kind: str, x, **attrs):
    block = fluid.default_main_program().global_block()
    first = x[0] if isinstance(x, list) else x
    out = block.create_var(name="out", dtype=first.dtype, lod_level=first.lod_level)
    block.append_op(type=kind, inputs={"X": x}, outputs={"Out": out}, attrs=attrs)
    return out


@pytest.mark.parametrize("name", IDS)
def test_operators_on_sequences_of_ids_are_exported(name: str, tmp_path: Path) -> None:
    want, got, _ = run_both(IDS[name], tmp_path, dtype="int64")
    compare(got, want)


@pytest.mark.parametrize("kind", ["SUM", "AVERAGE", "SQRT"])
def test_joined_pools_of_several_sequences_are_exported(kind: str, tmp_path: Path) -> None:
    def pool(x):
        return append("fusion_seqpool_concat", [x, layers.scale(x, 2.0)], pooltype=kind)

    want, (out,), _ = run_both(pool, tmp_path)
    np.testing.assert_allclose(out, np.asarray(want), **CLOSE)


def test_ctc_align_is_exported(tmp_path: Path) -> None:
    def align(x):
        block = fluid.default_main_program().global_block()
        out = block.create_var(name="out", dtype="int64", lod_level=1)
        block.append_op(type="ctc_align", inputs={"Input": x}, outputs={"Output": out}, attrs={"blank": 0})
        return out

    want, (batch, counts), _ = run_both(align, tmp_path, dtype="int64")
    lengths = np.diff(want.lod()[0]).tolist()
    assert counts.tolist() == lengths
    np.testing.assert_array_equal(batch, pad_batch(np.asarray(want), lengths))


@pytest.mark.parametrize("name", ["ocr", "ctr", "ssd", "yolo", "branches", "rcnn"])
def test_a_fluid_model_with_sequences_is_exported(name: str, tmp_path: Path) -> None:
    files = read_archive("models185")[name]
    write_files(files, tmp_path)
    program, params = find_names(files)
    report = fluid.export_onnx(tmp_path, tmp_path / "it.onnx", model_filename=program, params_filename=params)
    given = {}
    with np.load(io.BytesIO(files["io.npz"])) as file:
        feeds = [one for one in report.inputs if not one.endswith(".lengths")]
        for index, feed in enumerate(feeds):
            given[feed] = file[f"in{index}"]
            if f"in{index}@lod0" in file:
                lengths = np.diff(file[f"in{index}@lod0"])
                given |= {feed: pad_batch(given[feed], lengths), f"{feed}.lengths": lengths}
    outs = dict(zip(report.outputs, run_onnx(tmp_path / "it.onnx", given), strict=True))
    if name not in ("branches", "rcnn"):  # arrays, and MaxRoiPool, are not read again
        with fluid.scope_guard(fluid.Scope()):
            again, _, fetches = fluid.import_onnx(tmp_path / "it.onnx")
            back = fluid.Executor().run(again, feed=given, fetch_list=fetches)
        for ours, theirs in zip(back, outs.values(), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=1e-5)
    names = [one for one in report.outputs if not one.endswith(".lengths")]
    for name, (_, real) in zip(names, run_model(tmp_path, files), strict=True):
        got = [outs[key] for key in (name, f"{name}.lengths") if key in outs]
        compare(got, real)


def test_sequences_of_sequences_are_refused(tmp_path: Path) -> None:
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        out = layers.sequence_pool(fluid.data("x", [None, 4], lod_level=2), "sum")
    with pytest.raises(UnsupportedError, match="x has 2 LoD levels"):
        fluid.export_onnx(main, tmp_path / "it.onnx", ["x"], [out])


def test_a_fetch_of_the_cell_states_of_every_step_is_refused(tmp_path: Path) -> None:
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        _, cell = layers.dynamic_lstm(layers.fc(fluid.data("x", [None, 4], lod_level=1), 8), 8)
        out = layers.sequence_pool(cell, "sum")
    with pytest.raises(UnsupportedError, match="the cells of every step are read"):
        fluid.export_onnx(main, tmp_path / "it.onnx", ["x"], [out])
