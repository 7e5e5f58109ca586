"""Branches, loops and the choice of boxes: onnxruntime's outputs are those of the executor."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnx", reason="the extra onnx is not installed")
pytest.importorskip("onnxruntime", reason="onnxruntime is in the extra 'test-all'")

import paddlelike as fluid
from paddlelike import layers
from paddlelike.errors import UnsupportedError
from tests.interop.onnx.runs import run_onnx

pytestmark = pytest.mark.slow

X = np.array([[1, -2, 3]], np.float32)


def branch(x):
    total = layers.reduce_sum(x)
    zero = layers.fill_constant([1], "float32", 0.0)
    return layers.cond(total > zero, lambda: x * 2.0, lambda: layers.concat([x, x]))


def turns(x):
    """Count up to 5; in odd turns double, in even ones add."""
    i, limit = layers.fill_constant([1], "int64", 0), layers.fill_constant([1], "int64", 5)
    two, one = layers.fill_constant([1], "int64", 2), layers.fill_constant([1], "int64", 1)

    def body(i, state):
        odd = layers.equal(i - two * layers.elementwise_floordiv(i, two), one)
        state = layers.cond(odd, lambda: state * 2.0, lambda: state + x)
        return [layers.elementwise_add(i, one), state]

    return layers.while_loop(lambda i, state: i < limit, body, [i, layers.scale(x, 0.5)])[1]


def overwrite(x):
    """A variable of the outer block, which only one branch assigns to."""
    out = layers.assign(x)
    total, zero = layers.reduce_sum(x), layers.fill_constant([1], "float32", 0.0)
    with layers.Switch() as switch, switch.case(total > zero):
        layers.assign(layers.scale(x, 3.0), out)
    return layers.scale(out, 1.0, bias=1.0)


def steps(x):
    """A cell of our own over the rows of a batch: each adds half of the sum so far."""
    rnn = layers.StaticRNN()
    rows = layers.unsqueeze(x, [1])  # (T, 1, 3)
    with rnn.step():
        row = rnn.step_input(rows)
        total = rnn.memory(shape=[-1, 3], batch_ref=row, init_value=1.0)
        new = layers.elementwise_add(row, layers.scale(total, 0.5))
        rnn.update_memory(total, new)
        rnn.step_output(new)
    return rnn()


NETWORKS = {"branch": branch, "turns": turns, "overwrite": overwrite, "steps": steps}


def build(network, shape=(None, 3)):
    main, startup = fluid.Program(), fluid.Program()
    with fluid.unique_name.guard(), fluid.program_guard(main, startup):
        x = fluid.data("x", list(shape))
        out = network(x)
    return main, out


@pytest.mark.filterwarnings("ignore:Loop .* has no limit of iterations. here it ends after 10,000,000")
@pytest.mark.parametrize("opset", [11, 17])
@pytest.mark.parametrize("name", NETWORKS)
def test_loops_and_branches_are_exported(name: str, opset: int, tmp_path: Path) -> None:
    main, out = build(NETWORKS[name])
    fluid.export_onnx(main, tmp_path / "b.onnx", ["x"], [out], opset=opset)
    with fluid.scope_guard(fluid.Scope()):
        again, feeds, fetches = fluid.import_onnx(tmp_path / "b.onnx")
    for x in (X, -X, np.concatenate([X, X])):
        with fluid.scope_guard(fluid.Scope()):
            (want,) = fluid.Executor().run(main, feed={"x": x}, fetch_list=[out])
        (got,) = run_onnx(tmp_path / "b.onnx", {"x": x})
        np.testing.assert_array_equal(got, want)
        with fluid.scope_guard(fluid.Scope()):
            fluid.import_onnx(tmp_path / "b.onnx")
            (back,) = fluid.Executor().run(again, feed={feeds[0]: x}, fetch_list=fetches)
        np.testing.assert_array_equal(back, want)


def test_branches_of_a_program_for_prediction_are_exported(tmp_path: Path) -> None:
    main, out = build(branch)
    for op in main.global_block().ops:
        if op.type == "conditional_block":
            op.type = "conditional_block_infer"
    fluid.export_onnx(main, tmp_path / "b.onnx", ["x"], [out])
    (got,) = run_onnx(tmp_path / "b.onnx", {"x": X})
    np.testing.assert_array_equal(got, X * 2)


def test_a_block_that_holds_an_operator_without_a_counterpart_is_refused(tmp_path: Path) -> None:
    def network(x):
        array = layers.create_array("float32")
        zero = layers.fill_constant([1], "int64", 0)
        layers.array_write(x, zero, array)
        return layers.array_read(array, zero)

    main, out = build(network)
    with pytest.raises(UnsupportedError, match="arrays of tensors need opset 14"):
        fluid.export_onnx(main, tmp_path / "b.onnx", ["x"], [out], opset=13)


def test_an_array_grows_and_is_overwritten(tmp_path: Path) -> None:
    def network(x):
        array = layers.create_array("float32")
        places = [layers.fill_constant([1], "int64", place) for place in (0, 1, 0)]
        for by, place in enumerate(places, 1):
            layers.array_write(layers.scale(x, float(by)), place, array)
        count = layers.cast(layers.array_length(array), "float32")
        return layers.concat([layers.array_read(array, place) for place in places[:2]]) + count

    main, out = build(network)
    fluid.export_onnx(main, tmp_path / "b.onnx", ["x"], [out])
    (got,) = run_onnx(tmp_path / "b.onnx", {"x": X})
    np.testing.assert_array_equal(got, np.concatenate([X * 3, X * 2]) + 2)


# Boxes


def make_boxes(count: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    corner = rng.uniform(0, 8, (2, count, 2))
    boxes = np.concatenate([corner, corner + rng.uniform(1, 5, (2, count, 2))], 2)
    return boxes.astype("float32"), rng.uniform(0, 1, (2, 3, count)).astype("float32")


@pytest.mark.parametrize(
    "options",
    [
        {"keep_top_k": 5},
        {"keep_top_k": -1, "normalized": False, "background_label": -1},
        {"keep_top_k": 9, "nms_top_k": 6, "nms_threshold": 0.1},
        {"keep_top_k": 4, "score_threshold": 0.95},
    ],
    ids=["best", "pixels", "few", "strict"],
)
@pytest.mark.parametrize("kind", ["multiclass_nms", "multiclass_nms2"])
def test_suppression_of_boxes_is_exported(kind: str, options, tmp_path: Path) -> None:
    boxes, scores = make_boxes(20)
    attrs = {"score_threshold": 0.2, "nms_top_k": 100, "nms_threshold": 0.4} | options
    main = fluid.Program()
    with fluid.unique_name.guard(), fluid.program_guard(main, fluid.Program()):
        inputs = {"BBoxes": fluid.data("boxes", [None, 20, 4]), "Scores": fluid.data("scores", [None, 3, 20])}
        block = main.global_block()
        outputs = {"Out": block.create_var(name="out", dtype="float32")}
        if kind == "multiclass_nms2":
            outputs["Index"] = block.create_var(name="index", dtype="int32")
        block.append_op(type=kind, inputs=inputs, outputs=outputs, attrs=attrs)
    feed = {"boxes": boxes, "scores": scores}
    with fluid.scope_guard(fluid.Scope()):
        (want,) = fluid.Executor().run(main, feed=feed, fetch_list=["out"], return_numpy=False)
    report = fluid.export_onnx(main, tmp_path / "n.onnx", list(feed), ["out"])
    assert report.outputs == ["out", "out.lengths"]
    batch, lengths = run_onnx(tmp_path / "n.onnx", feed)
    assert lengths.tolist() == np.diff(want.lod()[0]).tolist()
    rows = np.concatenate([each[:count] for each, count in zip(batch, lengths, strict=True)])
    np.testing.assert_array_equal(rows, np.asarray(want))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"use_gaussian": True, "keep_top_k": 7},
        {"normalized": False, "nms_top_k": 6, "background_label": 1},
    ],
    ids=["all", "gaussian", "pixels"],
)
def test_matrix_nms_is_exported(options, tmp_path: Path) -> None:
    boxes, scores = make_boxes(20)
    main = fluid.Program()
    with fluid.unique_name.guard(), fluid.program_guard(main, fluid.Program()):
        inputs = [fluid.data("boxes", [None, 20, 4]), fluid.data("scores", [None, 3, 20])]
        given = {"score_threshold": 0.2, "post_threshold": 0.1, "nms_top_k": 100, "keep_top_k": 30} | options
        out, index = layers.matrix_nms(*inputs, **given, return_index=True)
    feed = {"boxes": boxes, "scores": scores}
    with fluid.scope_guard(fluid.Scope()):
        rows, places = fluid.Executor().run(main, feed=feed, fetch_list=[out, index], return_numpy=False)
    fluid.export_onnx(main, tmp_path / "n.onnx", list(feed), [out, index])
    batch, lengths, numbers, _ = run_onnx(tmp_path / "n.onnx", feed)
    assert lengths.tolist() == np.diff(rows.lod()[0]).tolist()
    assert 5 < lengths.sum() < 60
    kept = [(i, j) for i, count in enumerate(lengths) for j in range(count)]
    np.testing.assert_allclose(batch[tuple(np.transpose(kept))], np.asarray(rows), rtol=1e-5)
    np.testing.assert_array_equal(numbers[tuple(np.transpose(kept))], np.asarray(places))


@pytest.mark.parametrize("corners", [True, False], ids=["corners", "centers"])
@pytest.mark.parametrize("kind", ["BILINEAR", "BILINEAR by edges", "NEAREST", "BICUBIC"])
@pytest.mark.parametrize("size", ["tensor", "list", "scale", "batch of any size"])
def test_images_of_unknown_size_are_exported(kind: str, corners: bool, size: str, tmp_path: Path) -> None:
    main = fluid.Program()
    with fluid.unique_name.guard(), fluid.program_guard(main, fluid.Program()):
        x = fluid.data("x", [None, 2, None, None])
        options = {"resample": kind.split()[0], "align_corners": corners, "align_mode": int("by" not in kind)}
        if size == "scale":
            options["scale"] = 2.0
        elif size == "tensor":
            options["out_shape"] = layers.fill_constant([2], "int32", 7)
        elif size == "list":
            options["out_shape"] = [layers.fill_constant([1], "int32", 9), 4]
        else:
            options["out_shape"] = [3, 8]
        out = layers.image_resize(x, **options)
    feed = {"x": np.random.default_rng(4).standard_normal((2, 2, 5, 6)).astype("float32")}
    with fluid.scope_guard(fluid.Scope()):
        (want,) = fluid.Executor().run(main, feed=feed, fetch_list=[out])
    fluid.export_onnx(main, tmp_path / "r.onnx", ["x"], [out])
    (got,) = run_onnx(tmp_path / "r.onnx", feed)
    np.testing.assert_allclose(got, want, rtol=2e-5, atol=1e-6)


def test_boxes_of_several_densities_are_exported(tmp_path: Path) -> None:
    main = fluid.Program()
    with fluid.unique_name.guard(), fluid.program_guard(main, fluid.Program()):
        x, image = fluid.data("x", [None, 2, 3, 4]), fluid.data("image", [None, 3, 24, 32])
        boxes, _ = layers.density_prior_box(
            x, image, densities=[2], fixed_sizes=[8.0], fixed_ratios=[1.0, 2.0], flatten_to_2d=True
        )
        out = layers.scale(boxes, 1.0) + layers.reduce_sum(x)
    feed = {"x": np.ones((1, 2, 3, 4), "float32"), "image": np.ones((1, 3, 24, 32), "float32")}
    with fluid.scope_guard(fluid.Scope()):
        (want,) = fluid.Executor().run(main, feed=feed, fetch_list=[out])
    fluid.export_onnx(main, tmp_path / "d.onnx", ["x", "image"], [out])
    (got,) = run_onnx(tmp_path / "d.onnx", feed)
    np.testing.assert_allclose(got, want, rtol=1e-6)  # a sum of float32 in another order
