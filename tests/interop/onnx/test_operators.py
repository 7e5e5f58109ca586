"""Each operator that ONNX can express gives in onnxruntime what it gives here."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnx", reason="the extra onnx is not installed")
pytest.importorskip("onnxruntime", reason="onnxruntime is in the extra 'test-all'")

import paddlelike as fluid
from paddlelike.core import SelectedRows
from paddlelike.errors import UnsupportedError
from paddlelike.interop.onnx.exporter.graph import load_table
from paddlelike.interop.onnx.exporter.traced.operator import can_trace
from tests.helpers.fresh import fresh_programs
from tests.helpers.single_operators import build
from tests.interop.onnx.runs import run_here, run_onnx
from tests.models.archive import collect_types, read_archive
from tests.ops.harness.collect import CASES
from tests.ops.harness.contract import Case

pytestmark = pytest.mark.slow

TABLE = load_table()


def _list_values(case):
    values = case.inputs.values()
    return [one for value in values for one in (value if isinstance(value, list) else [value])]


_rng = np.random.default_rng(3)


def _expect_fc(Input, W, Bias):
    return np.maximum(np.einsum("abc,cd->abd", Input, W) + Bias.reshape(-1), 0)


FUSED = [
    Case(
        "fc",
        {
            "Input": _rng.standard_normal((2, 3, 4)),
            "W": _rng.standard_normal((4, 5)),
            "Bias": _rng.standard_normal((1, 5)),
        },
        _expect_fc,
        {"in_num_col_dims": 2, "activation_type": "relu"},
    ),
    Case(
        "fc",
        {"Input": _rng.standard_normal((2, 3, 2, 2)), "W": _rng.standard_normal((4, 5))},
        lambda Input, W: np.tensordot(Input.reshape(2, 3, 4), W, 1),
        {"in_num_col_dims": 2},
        note="flat",
    ),
]
#: Tried in test_sequences.py, test_random.py, test_blocks.py and test_models.py.
ON_SEQUENCES = {
    name
    for name, function in TABLE.items()
    if function.__module__.endswith((".random", ".sequence", ".recurrent"))
} - {"rnn"} | {"crf_decoding", "ctc_align", "fused_embedding_seq_pool", "fusion_seqpool_concat"}
IN_BLOCKS = {
    "conditional_block",
    "conditional_block_infer",
    "density_prior_box",
    "matrix_nms",
    "multiclass_nms2",
    "print",
    "recurrent",
    "reorder_lod_tensor_by_rank",
    "rnn_memory_helper",
}
EXPRESSED = [
    case
    for case in CASES + FUSED
    if case.type in TABLE.keys() - ON_SEQUENCES
    and not any(isinstance(one, SelectedRows) for one in _list_values(case))
]
#: Cases that are refused, with what the error says.
REFUSED = {
    "concat-axis-tensor": "input AxisTensor is computed at run time",
    "data_norm-affine": "slot_dim or enable_scale_and_shift is set",
    "data_norm-slots": "slot_dim or enable_scale_and_shift is set",
    "fill_constant-tensor": "input ValueTensor is computed at run time",
    "one_hot-depth-tensor": "input depth_tensor is computed at run time",
    "p_norm-keepdim": "epsilon",
    "p_norm-p1.0": "epsilon",
    "p_norm-p2.0": "epsilon",
    "p_norm-p3.0": "porder is 3.0",
    "p_norm-vector": "epsilon",
    "pad2d-tensor": "input Paddings is computed at run time",
    "pool2d-max-adaptive": "it is an adaptive max pool",
    "pool2d-max-adaptive-even": "it is an adaptive max pool",
    "pool3d-max-adaptive": "it is an adaptive max pool",
    "split-axis-tensor": "input AxisTensor is computed at run time",
    "split-section-tensors": "input SectionsTensorList is computed at run time",
    "unsqueeze-tensor": "input AxesTensor is computed at run time",
    "unsqueeze-tensors": "input AxesTensorList is computed at run time",
    "unsqueeze2-tensor": "input AxesTensor is computed at run time",
    "unsqueeze2-tensors": "input AxesTensorList is computed at run time",
}


#: Cases with equal numbers, whose order ONNX and Fluid choose otherwise.
WITH_EQUALS = {"top_k-ties"}


@pytest.mark.parametrize("case", EXPRESSED, ids=[case.id for case in EXPRESSED])
def test_an_operator_gives_the_outputs_of_the_executor_in_onnxruntime(case, tmp_path: Path) -> None:
    """``onnx.checker`` accepts the file, and onnxruntime agrees with the executor to 1e-5."""
    program, feed, outputs = build(case, with_lod=False)
    if case.id in REFUSED:
        with pytest.raises(UnsupportedError, match=REFUSED[case.id]):
            fluid.export_onnx(program, tmp_path / "one.onnx", list(feed), outputs)
        assert not list(tmp_path.iterdir())
        return
    fluid.export_onnx(program, tmp_path / "one.onnx", list(feed), outputs)
    got = run_onnx(tmp_path / "one.onnx", feed)
    want = run_here(program, feed, outputs)
    if case.id in WITH_EQUALS:
        want, got = want[:1], got[:1]
    for ours, theirs in zip(want, got, strict=True):
        assert (theirs.shape, theirs.dtype) == (ours.shape, ours.dtype)
        # 1e-5: float32 sums in another order, and the exp and erf of another library
        np.testing.assert_allclose(theirs, ours, rtol=1e-5, atol=1e-5)


#: Cases of one operator that are tried: tracing each takes a while.
EACH = 3


def test_traced_operators_give_the_outputs_of_the_executor(tmp_path: Path, record_property) -> None:
    """Each case of those without a function in the table is refused, or onnxruntime agrees."""
    pytest.importorskip("jax", reason="the extra jax is not installed")
    from tests.compiled.harness.recorded import RECORDED

    tried: dict[str, int] = {}
    expressed, wrong = set(), []
    for case in (*CASES, *RECORDED.values()):
        if case.type in TABLE or "_grad" in case.type or "@" in case.type or not can_trace(case.type, 0):
            continue
        if any(isinstance(one, SelectedRows | fluid.LoDTensor) for one in _list_values(case)):
            continue
        tried[case.type] = tried.get(case.type, 0) + 1
        if tried[case.type] > EACH:
            continue
        program, feed, outputs = build(case)
        file = tmp_path / f"{len(expressed)}.onnx"
        try:
            fluid.export_onnx(program, file, list(feed), outputs)
        except UnsupportedError:
            assert not file.exists()
            continue
        got, want = run_onnx(file, feed), run_here(program, feed, outputs)
        file.unlink()
        equal = all(
            theirs.shape == ours.shape
            and theirs.dtype == ours.dtype
            and np.allclose(theirs, ours, rtol=1e-5, atol=1e-5, equal_nan=True)
            for ours, theirs in zip(want, got, strict=True)
        )
        expressed.add(case.type)
        wrong += [] if equal else [case.id]
    assert wrong == []
    assert len(expressed) >= 95
    record_property("summary", f"onnx: {len(expressed)} operators by way of their lowerings")


def test_every_operator_of_the_table_is_tried() -> None:
    """By a case of its own tests, or by a model of Paddle 2.6.2 (test_models.py)."""
    tried = {case.type for case in EXPRESSED if case.id not in REFUSED}
    models = set().union(
        *(collect_types(read_archive(one)) for one in ("layers262", "models185", "spectra262"))
    )
    assert set(TABLE) - tried - models - ON_SEQUENCES - IN_BLOCKS == set()


def test_an_lstm_takes_the_batch_size_from_its_states(tmp_path: Path) -> None:
    with fresh_programs(), fluid.scope_guard(fluid.Scope()):
        image, zeros = fluid.data("x", [None, 8, 4, 4]), fluid.layers.fill_constant([1, 1, 4], "float32", 0)
        steps = fluid.layers.reshape(image, [8, -1, 16])
        out = fluid.layers.lstm(steps, zeros, zeros, 8, 4, 1, is_test=True)[0]
        exe = fluid.Executor()
        exe.run(fluid.default_startup_program())
        feed = {"x": np.random.RandomState(0).rand(1, 8, 4, 4).astype("float32")}
        (wanted,) = exe.run(feed=feed, fetch_list=[out])
        fluid.export_onnx(fluid.default_main_program(), tmp_path / "it.onnx", ["x"], [out])
    (got,) = run_onnx(tmp_path / "it.onnx", feed)
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)
