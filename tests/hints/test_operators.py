"""The advice of errors of operators, followed to the letter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.core import VarType, convert_dtype
from paddlelike.layers.control import tensor_array
from paddlelike.ops.control.blocks import LoopLimit
from tests.hints.advice import ROWS, Advice, each, fill, hold, run

layers = fluid.layers
CPU = fluid.CPUPlace()
IMAGE = np.arange(16, dtype="float32").reshape(1, 1, 4, 4)
BOXES = np.array([[0, 0, 2, 2], [1, 1, 3, 3]], "float32")
IDS = np.array([[1], [2]], "int64")


def sequences(array: Any, *lengths: list[int]) -> fluid.LoDTensor:
    return fluid.create_lod_tensor(np.asarray(array), list(lengths), CPU)


def compute(type: str, outputs: str, attrs: dict[str, Any] | None = None, **inputs: Any) -> Any:
    """Run one operator on arrays and sequences, and return its first output as an array."""
    block, feed, given = fluid.default_main_program().global_block(), {}, {}
    for slot, value in inputs.items():
        array = np.array(value)
        levels = len(value.lod()) if isinstance(value, fluid.LoDTensor) else 0
        name = f"{slot.lower()}_{len(block.vars)}"
        given[slot] = [fluid.data(name, list(array.shape), str(array.dtype), lod_level=levels)]
        feed[name] = value
    outs = {slot: [block.create_var(name=f"{slot}_out")] for slot in outputs.split()}
    block.append_op(type, given, outs, attrs or {})
    exe = fluid.Executor()
    return np.array(exe.run(feed=feed, fetch_list=[f"{outputs.split()[0]}_out"], return_numpy=False)[0])


def loop(ends: bool) -> Any:
    """Count to 3, or stay at 0 for ever, in at most 9 steps."""
    at, limit = layers.fill_constant([1], "int64", 0), layers.fill_constant([1], "int64", 3)
    cond = layers.less_than(at, limit)
    while_loop = layers.While(cond)
    with while_loop.block():
        layers.increment(at, 1 if ends else 0)
        layers.less_than(at, limit, cond=cond)
    return LoopLimit(steps=9).run(lambda: run(at))


def call_function(count: int) -> Any:
    out = fluid.default_main_program().current_block().create_var(name="out", dtype="float32", shape=[2, 4])
    return run(layers.py_func(lambda x: [2 * np.array(x)] * count, hold(ROWS), out))


def call_unknown(built_here: bool) -> Any:
    out = fluid.default_main_program().current_block().create_var(name="out", dtype="float32", shape=[2, 4])
    result = layers.py_func(lambda x: 2 * np.array(x), hold(ROWS), out)
    if not built_here:
        fluid.default_main_program().global_block().ops[-1]._set_attr("forward_callable_id", 10**6)
    return run(result)


def rank(value: Any) -> Any:
    x = fluid.data("x", [None, 4], lod_level=1)
    table = tensor_array.lod_rank_table(x)
    return run(tensor_array.max_sequence_len(table), {"x": value})


def measure(ap_type: str) -> Any:
    found = sequences(np.array([[1, 0.9, 0, 0, 0.5, 0.5]], "float32"), [1])
    true = sequences(np.array([[1, 0, 0, 0.5, 0.5]], "float32"), [1])
    names = "MAP AccumPosCount AccumTruePos AccumFalsePos"
    return compute("detection_map", names, {"ap_type": ap_type, "class_num": 2}, DetectRes=found, Label=true)


def code(code_type: str = "decode_center_size", axis: int = 0, boxes: Any = None) -> Any:
    deltas = np.zeros((1, 2, 4), "float32") if boxes is None else boxes
    return compute(
        "box_coder", "OutputBox", {"code_type": code_type, "axis": axis}, PriorBox=BOXES, TargetBox=deltas
    )


def match(match_type: str) -> Any:
    distances = sequences(np.array([[0.9, 0.2], [0.1, 0.8]], "float32"), [2])
    names = "ColToRowMatchIndices ColToRowMatchDist"
    return compute(
        "bipartite_match", names, {"match_type": match_type, "dist_threshold": 0.5}, DistMat=distances
    )


def mine(mining_type: str) -> Any:
    return compute(
        "mine_hard_examples",
        "NegIndices UpdatedMatchIndices",
        {"mining_type": mining_type, "neg_pos_ratio": 1.0, "neg_dist_threshold": 0.5, "sample_size": 1},
        ClsLoss=np.array([[0.1, 0.2, 0.3]], "float32"),
        LocLoss=np.zeros((1, 3), "float32"),
        MatchIndices=np.array([[0, -1, -1]], "int32"),
        MatchDist=np.array([[0.9, 0.1, 0.1]], "float32"),
    )


def pool_regions(rois: Any) -> Any:
    attrs = {"pooled_height": 1, "pooled_width": 1, "spatial_scale": 1.0}
    return compute("roi_pool", "Out Argmax", attrs, X=IMAGE, ROIs=rois)


def pool_counted(counts: list[int]) -> Any:
    attrs = {"pooled_height": 1, "pooled_width": 1, "spatial_scale": 1.0}
    return compute(
        "prroi_pool", "Out", attrs, X=0 * IMAGE + 5, ROIs=BOXES, BatchRoINums=np.array(counts, "int64")
    )


def convolve(**options: Any) -> Any:
    """Convolve 2 channels with filters of ones."""
    x = np.arange(32, dtype="float32").reshape(1, 2, 4, 4)
    attrs = {"strides": [1, 1], "paddings": [0, 0], "dilations": [1, 1], "groups": 1, **options}
    if attrs.get("data_format") == "NHWC":
        x = np.ascontiguousarray(x.transpose(0, 2, 3, 1))
    wide = 2 // attrs["groups"]
    return compute(
        "conv2d", "Output", attrs, Input=x, Filter=np.ones((attrs.pop("outs", 2), wide, 4, 4), "float32")
    )


def look_up(size: int) -> Any:
    return run(layers.embedding(hold(IDS), [size, 2], param_attr=fill(2.0)))


def cross(shape: tuple[int, ...]) -> Any:
    x = np.zeros(shape, "float32")
    x[..., 0] = 1
    y = np.zeros(shape, "float32")
    y[..., 1] = 1
    return compute("cross", "Out", {}, X=x, Y=y)


def entropy(label: int, **options: Any) -> Any:
    probabilities = hold(np.array([[0.25, 0.75]], "float32"))
    return run(layers.cross_entropy(probabilities, hold(np.array([[label]], "int64")), **options))


def rate(scores: Any) -> Any:
    area, _, _ = layers.auc(scores, hold(np.array([[0], [1]], "int64")))
    return run(area)


def distance(given: str) -> Any:
    one, other = np.array([[1], [2], [3]], "int64"), np.array([[1], [3]], "int64")
    x, y = (fluid.data(name, [None, 1], "int64", lod_level=given == "lod") for name in "xy")
    if given == "lod":
        feed: Any = {"x": sequences(one, [3]), "y": sequences(other, [2])}
        found, _ = layers.edit_distance(x, y, normalized=False)
        return run(found, feed)
    if given == "lengths":
        a, b = hold(one.T.copy()), hold(np.array([[1, 3, 0]], "int64"))
        found, _ = layers.edit_distance(
            a, b, normalized=False, input_length=hold(np.array([3])), label_length=hold(np.array([2]))
        )
        return run(found)
    found, _ = layers.edit_distance(x, y, normalized=False)
    return run(found, {"x": one, "y": other})


def quantize(**options: Any) -> Any:
    attrs = {"bit_length": 8, "moving_rate": 0.9, "is_test": False, **options}
    state = {}
    if attrs.pop("with_state", False):
        state = {"InAccum": np.ones(1, "float32"), "InState": np.ones(1, "float32")}
    return compute(
        "fake_quantize_dequantize_moving_average_abs_max",
        "Out OutScale OutState OutAccum" if state else "Out OutScale",
        attrs,
        X=np.array([[1.0, -1.0]], "float32"),
        InScale=np.ones(1, "float32"),
        **state,
    )


def choose_instances(tags: list[int]) -> Any:
    ins = sequences(ROWS, [1, 1])
    of_tags = sequences(np.arange(sum(tags)).reshape(-1, 1), tags)
    return compute(
        "filter_by_instag",
        "Out LossWeight IndexMap",
        {"is_lod": True},
        Ins=ins,
        Ins_tag=of_tags,
        Filter_tag=np.array([1], "int64"),
    )


def recur(kind: str, width: int) -> Any:
    x = fluid.data("x", [None, 4], lod_level=1)
    projected = layers.fc(x, width, param_attr=fill(0.0), bias_attr=False)
    if kind == "gru":
        block = fluid.default_main_program().global_block()
        weight = layers.create_parameter([2, 6], "float32", attr=fill(0.0))
        out = {
            s: [block.create_var(name=s)]
            for s in ("BatchGate", "BatchResetHiddenPrev", "BatchHidden", "Hidden")
        }
        block.append_op("gru", {"Input": [projected], "Weight": [weight]}, out, {})
        result = block.var("Hidden")
    else:
        block = fluid.default_main_program().global_block()
        weight = layers.create_parameter([2, 8], "float32", attr=fill(0.0))
        bias = layers.create_parameter([1, 8], "float32", attr=fill(0.0))
        out = {s: [block.create_var(name=s)] for s in ("BatchGate", "BatchCellPreAct", "Cell", "Hidden")}
        block.append_op(
            "lstm", {"Input": [projected], "Weight": [weight], "Bias": [bias]}, out, {"use_peepholes": False}
        )
        result = block.var("Hidden")
    return np.array(run(result, {"x": sequences(ROWS, [2])}, return_numpy=False))


def reduce(**options: Any) -> Any:
    return compute("reduce_sum", "Out", {"keep_dim": False, **options}, X=ROWS)


def assign_values(dtype: str) -> Any:
    block = fluid.default_main_program().global_block()
    out = block.create_var(name="out")
    attrs = {"shape": [2], "fp32_values": [1.0, 2.0], "dtype": int(convert_dtype(dtype))}
    block.append_op("assign_value", {}, {"Out": [out]}, attrs)
    return run(out)


def train_embedding(optimizer: Any, is_sparse: bool) -> Any:
    out = layers.embedding(hold(IDS), [3, 1], is_sparse=is_sparse, param_attr=fill(1.0))
    loss = layers.mean(out)
    optimizer.minimize(loss)
    run(loss)
    return np.array(fluid.global_scope().find_var("embedding_0.w_0").get_tensor())[0]


def read_by_program(started: bool) -> Any:
    reader = layers.py_reader(2, [[-1, 4]], ["float32"], name="reader")
    out = layers.scale(layers.read_file(reader), 2.0)
    reader.decorate_tensor_provider(lambda: iter([[ROWS]]))
    exe = fluid.Executor()
    if started:
        exe.run(fluid.default_startup_program())
        reader.start()
    return exe.run(fetch_list=[out])[0]


def fill_batch(how: str) -> Any:
    if how == "batch_size_like":
        return run(layers.fill_constant_batch_size_like(hold(ROWS), [-1, 3], "float32", 2.0))
    return compute("fill_constant", "Out", {"shape": [-3], "value": 2.0, "dtype": int(VarType.FP32)})


def take_maxima(for_test: bool) -> Any:
    """Return the gradient of the sum of the maxima of two sequences."""
    x = fluid.data("x", [None, 1], lod_level=1)
    x.stop_gradient = False
    out = layers.reduce_sum(layers.sequence_pool(x, "max"))
    program = fluid.default_main_program()
    program = program.clone(for_test=True) if for_test else program
    with fluid.program_guard(program):
        block = program.global_block()
        (gradient,) = fluid.gradients([block.var(out.name)], [block.var("x")])
        rows = sequences(np.array([[1], [3], [2]], "float32"), [2, 1])
        return np.array(run(gradient, {"x": rows}, program, return_numpy=False)).ravel()


def multiply(reshape: bool) -> Any:
    x = hold(np.array([1, 2, 3], "float32"))
    y = hold(np.ones((3, 2), "float32"))
    return run(layers.mul(layers.reshape(x, [1, 3]) if reshape else x, y))


def suppress(width: int) -> Any:
    return compute(
        "multiclass_nms",
        "Out",
        {
            "score_threshold": 0.1,
            "nms_top_k": 2,
            "keep_top_k": 2,
            "background_label": -1,
            "nms_threshold": 0.5,
        },
        BBoxes=np.array([[[0, 0, 2, 2] + [0] * (width - 4)]], "float32")[:, :, :width],
        Scores=np.array([[[0.9]]], "float32"),
    )[0, :2]


def add_slices(count: int) -> Any:
    added = {"Index": np.array([0, 2]), "AddValue": np.ones((2, count), "float32")}
    return compute("index_add", "Out", {"axis": 1}, X=ROWS, **added)


def see_head(channels: int) -> Any:
    size = np.array([[32, 32]], "int32")
    attrs = {"anchors": [10, 13], "class_num": 2, "conf_thresh": 0.01, "downsample_ratio": 32}
    return compute(
        "yolo_box", "Boxes Scores", attrs, X=np.zeros((1, channels, 1, 1), "float32"), ImgSize=size
    ).shape


def train_crf(length: bool) -> Any:
    emission = np.zeros((1, 2, 2), "float32")
    inputs: dict[str, Any] = {
        "Emission": emission,
        "Transition": np.zeros((4, 2), "float32"),
        "Label": np.zeros((1, 2), "int64"),
    }
    if length:
        inputs["Length"] = np.array([[2]], "int64")
    names = "LogLikelihood Alpha EmissionExps TransitionExps"
    return compute("linear_chain_crf", names, {}, **inputs)


def cut_images(size: list[float] | None) -> Any:
    inputs: dict[str, Any] = {} if size is None else {"Y": np.array([size], "float32")}
    attrs = {"kernels": [2, 2], "strides": [2, 2], "paddings": [0, 0, 0, 0], "out_stride": [1, 1]}
    return compute("im2sequence", "Out", attrs, X=IMAGE, **inputs)[:, 0]


def deform(channels: int, groups: int, stride: int) -> Any:
    """Convolve without moving anything: the result is that of a plain convolution."""
    x = np.arange(16 * channels, dtype="float32").reshape(1, channels, 4, 4)
    attrs = {
        "strides": [1, 1],
        "paddings": [0, 0],
        "dilations": [1, 1],
        "groups": groups,
        "deformable_groups": 1,
        "im2col_step": 1,
    }
    size = 4 // stride - 1 if stride > 1 else 3
    return compute(
        "deformable_conv",
        "Output",
        attrs,
        Input=x,
        Offset=np.zeros((1, 8, size, size), "float32"),
        Mask=np.ones((1, 4, size, size), "float32"),
        Filter=np.ones((2, 2, 2, 2), "float32"),
    )[0, 0, 0, 0]


def count_tree(edges: Any) -> Any:
    nodes = np.ones((1, 3, 1), "float32")
    return compute(
        "tree_conv", "Out", {"max_depth": 2}, NodesVector=nodes, EdgeSet=np.array([edges], "int32"),
        Filter=np.ones((1, 3, 1, 1), "float32"),
    ).shape  # fmt: skip


def normalize_counts(rows: int) -> Any:
    x = fluid.data("x", [None, 4])
    x.stop_gradient = False
    cvm = hold(np.ones((rows, 2), "float32"))
    out = layers.continuous_value_model(x, cvm, use_cvm=False)
    (gradient,) = fluid.gradients([layers.reduce_sum(out)], [x])
    return run(gradient, {"x": ROWS})


def label_boxes(most: int, counts: list[int]) -> Any:
    """Label proposals that equal objects; the last object has the class ``most``."""
    boxes = np.array([[0, 0, 9, 9], [20, 20, 29, 29]], "float32")
    lod, classes = [counts], np.array([[1], [most]], "int32")
    total = sum(counts)
    attrs = {"batch_size_per_im": 4, "fg_fraction": 0.5, "class_nums": 4, "use_random": False}
    attrs |= {"fg_thresh": 0.5, "bg_thresh_hi": 0.5, "bg_thresh_lo": 0.0, "bbox_reg_weights": [1.0] * 4}
    return compute(
        "generate_proposal_labels",
        "LabelsInt32 Rois BboxTargets BboxInsideWeights BboxOutsideWeights",
        attrs,
        RpnRois=sequences(boxes[: len(counts)], [1] * len(counts)),
        GtClasses=sequences(classes[:total], *lod),
        IsCrowd=sequences(0 * classes[:total], *lod),
        GtBoxes=sequences(boxes[:total], *lod),
        ImInfo=np.array([[40, 40, 1]] * len(counts), "float32"),
    )


def draw_masks(levels: int) -> Any:
    square = np.array([[0, 0], [8, 0], [8, 8], [0, 8]], "float32")
    one = np.ones((1, 1), "int32")
    return compute(
        "generate_mask_labels",
        "MaskInt32 MaskRois RoiHasMaskInt32",
        {"num_classes": 2, "resolution": 2},
        ImInfo=np.array([[9, 9, 1]], "float32"),
        GtClasses=sequences(one, [1]),
        IsCrowd=sequences(0 * one, [1]),
        GtSegms=sequences(square, *([[1]] * (levels - 1)), [4]),
        Rois=sequences(np.array([[0, 0, 8, 8]], "float32"), [1]),
        LabelsInt32=sequences(one, [1]),
    )


def enlarge(size: int) -> Any:
    attrs = {"out_h": size, "out_w": size, "interp_method": "nearest", "align_corners": False}
    return compute("nearest_interp", "Out", attrs, X=IMAGE)


def fill_shape(size: int | None) -> Any:
    shape = fluid.data("shape", [size], "int32")
    return run(layers.fill_constant(shape, "float32", 3.0), {"shape": np.array([2, 3], "int32")})


def recur_cudnn(x: Any, count: int) -> Any:
    states = np.ones((1, count, 2), "float32")
    attrs = {"input_size": 4, "hidden_size": 2, "num_layers": 1, "is_test": True}
    weights = np.zeros(4 * 2 * (4 + 2 + 2), "float32")
    return compute("cudnn_lstm", "Out last_h last_c", attrs, Input=x, InitH=states, InitC=states, W=weights)


def hold_rows(name: str, ids: list[int], rows: Any) -> fluid.Variable:
    """Return a variable whose value in the scope is rows of a table."""
    kind = VarType.SELECTED_ROWS
    block, value = fluid.default_main_program().global_block(), fluid.global_scope().var(name)
    held = value.get_selected_rows()
    held.set_height(9)
    held.set_rows(ids)
    held.get_tensor().set(np.array(rows, "float32"), CPU)
    return block.create_var(name=name, shape=[9, 1], dtype="float32", type=kind, persistable=True)


def look_up_grown(room: int) -> Any:
    """Look two new ids up in a table that has room for some rows."""
    block, table = fluid.default_main_program().global_block(), hold_rows("w", [], np.zeros((room, 1)))
    out = block.create_var(name="out", shape=[2, 1], dtype="float32")
    block.append_op("lookup_sparse_table", {"W": [table], "Ids": [hold(IDS)]}, {"Out": [out]}, {})
    return run(out)


def update_row(index: int) -> Any:
    block = fluid.default_main_program().global_block()
    param, moment = (
        layers.create_global_var([3, 1], value, "float32", persistable=True) for value in (1.0, 0.0)
    )
    block.append_op(
        "adagrad",
        {
            "Param": [param],
            "Moment": [moment],
            "Grad": [hold_rows("grad", [index], [[2.0]])],
            "LearningRate": [hold(np.array([0.5], "float32"))],
        },
        {"ParamOut": [param], "MomentOut": [moment]},
        {"epsilon": 0.0},
    )
    return run(param)


ADVICE: dict[str, Advice] = {
    "a class beyond the number of classes": Advice(
        lambda: label_boxes(4, [2]),
        "classes begin with 1; class_nums counts the background, too",
        lambda: label_boxes(3, [2])[:2],
        [[1], [3]],
    ),
    "an image without objects": Advice(
        lambda: label_boxes(3, [2, 0]),
        "leave images without objects out of the batch",
        lambda: label_boxes(3, [2])[:2],
        [[1], [3]],
    ),
    "polygons without objects": Advice(
        lambda: draw_masks(2),
        "GtSegms needs three levels: objects of images, polygons of objects, points of polygons",
        lambda: draw_masks(3),
        [[-1] * 4 + [1] * 4],
    ),
    "slices that do not fit an index": Advice(
        lambda: add_slices(4),
        "compare them with Paddle's documentation; given: {}",
        lambda: add_slices(2),
        [[1, 1, 3, 3], [5, 5, 7, 7]],
    ),
    "an image beyond the memory": Advice(
        lambda: enlarge(2**30),
        "X has shape {}; check the size or the scale that the operator is given",
        lambda: enlarge(2),
        [[[[0, 2], [8, 10]]]],
    ),
    "a shape of unknown rank": Advice(
        lambda: fill_shape(None),
        "declare its size: it is the rank of the result",
        lambda: fill_shape(2),
        np.full((2, 3), 3.0),
    ),
    "the axes of a recurrent layer": Advice(
        lambda: recur_cudnn(np.zeros((2, 1, 4), "float32"), 2),
        "transpose an input of shape (N, T, D), or declare the states with its N",
        lambda: each(
            lambda: recur_cudnn(np.zeros((2, 1, 4), "float32").transpose(1, 0, 2), 2)[0, 0, 0],
            lambda: recur_cudnn(np.zeros((2, 1, 4), "float32"), 1)[0, 0, 0],
        ),
        [np.tanh(0.5) / 2] * 2,  # every gate is sigmoid(0)
    ),
    "a growing table without room": Advice(
        lambda: look_up_grown(1),
        "give the table of embedding(is_distributed=True) a row for each id",
        lambda: look_up_grown(2),
        np.zeros((2, 1)),
    ),
    "a gradient of rows beyond the table": Advice(
        lambda: update_row(3),
        "ids of an embedding must be below its number of rows",
        lambda: update_row(2),
        [[1], [1], [0.5]],
    ),
    "nodes that are not numbered from 1": Advice(
        lambda: count_tree([[5, 6], [5, 7]]),
        "the nodes of a tree with E edges are numbered from 1 to E + 1",
        lambda: count_tree([[1, 2], [1, 3]]),
        (1, 3, 1, 1),
    ),
    "a loop without an end": Advice(
        lambda: loop(ends=False),
        "compute the condition again in the block; if the loop does end, raise the limit",
        lambda: loop(ends=True),
        [3],
    ),
    "a function of another process": Advice(
        lambda: call_unknown(built_here=False),
        "a saved program holds the id of a function only; build the network in this process",
        lambda: call_unknown(built_here=True),
        2 * ROWS,
    ),
    "a function that returns too much": Advice(
        lambda: call_function(2),
        "return {} values{}",
        lambda: call_function(1),
        2 * ROWS,
    ),
    "ranks of rows without sequences": Advice(
        lambda: rank(ROWS),
        "feed a LoDTensor: fluid.create_lod_tensor(array, [lengths], place)",
        lambda: rank(sequences(ROWS, [2])),
        [2],
    ),
    "a precision of another kind": Advice(
        lambda: measure("mean"),
        "take 'integral' or '11point'",
        lambda: each(lambda: measure("integral").item(), lambda: measure("11point").item()),
        [1.0, 1.0],
    ),
    "boxes of another code": Advice(
        lambda: code("decode"),
        "take 'encode_center_size' or 'decode_center_size'",
        lambda: each(
            lambda: code("encode_center_size", boxes=BOXES)[0, 0].tolist(), lambda: code()[0].tolist()
        ),
        [[0.0] * 4, BOXES.tolist()],
    ),
    "anchors in another dim": Advice(
        lambda: code(boxes=np.zeros((2, 1, 4), "float32"), axis=0),
        "axis=0 has the anchors in dim 1, axis=1 in dim 0",
        lambda: code(boxes=np.zeros((2, 1, 4), "float32"), axis=1)[:, 0],
        BOXES,
    ),
    "channels that groups do not divide": Advice(
        lambda: deform(3, 2, 1),
        "groups and deformable_groups must divide the channels",
        lambda: deform(4, 2, 1),
        sum(16 * c + i for c in (0, 1) for i in (0, 1, 4, 5)),
    ),
    "offsets of another layer": Advice(
        lambda: deform(2, 1, 2),
        "the layer that computes it needs the stride, padding and dilation of this one",
        lambda: deform(2, 1, 1),
        sum(16 * c + i for c in (0, 1) for i in (0, 1, 4, 5)),
    ),
    "counts of other regions": Advice(
        lambda: pool_counted([3]),
        "it holds the number of regions of each image; their sum is the number of all regions",
        lambda: pool_counted([2]).ravel(),
        [5.0, 5.0],
    ),
    "boxes of five numbers": Advice(
        lambda: suppress(5),
        "4 are xmin, ymin, xmax, ymax; more are the corners of a polygon",
        lambda: suppress(4),
        [0.0, 0.9],
    ),
    "a match of another kind": Advice(
        lambda: match("all"),
        "take 'bipartite' or 'per_prediction'",
        lambda: each(lambda: match("bipartite").tolist(), lambda: match("per_prediction").tolist()),
        [[[0, 1]], [[0, 1]]],
    ),
    "a mining of another kind": Advice(
        lambda: mine("all"),
        "take 'max_negative' or 'hard_example'",
        lambda: each(
            lambda: mine("max_negative").ravel().tolist(), lambda: mine("hard_example").ravel().tolist()
        ),
        [[2], [2]],
    ),
    "a head of other channels": Advice(
        lambda: see_head(6),
        "a head has (5 + class_num) channels for each of its anchors",
        lambda: see_head(7),
        (1, 1, 4),
    ),
    "a reader without its startup program": Advice(
        lambda: read_by_program(started=False),
        "run the startup program first",
        lambda: read_by_program(started=True),
        2 * ROWS,
    ),
    "regions of another form": Advice(
        lambda: pool_regions(sequences(np.zeros((2, 3), "float32"), [2])),
        "a region is (x1, y1, x2, y2), or four corners for the perspective transform",
        lambda: pool_regions(sequences(BOXES, [2])).ravel(),
        [10, 15],
    ),
    "regions without images": Advice(
        lambda: pool_regions(sequences(BOXES, [1, 1])),
        "every image needs a sequence of regions (it may be empty); the offsets begin with 0 and end with the number of regions",
        lambda: pool_regions(sequences(BOXES, [2])).ravel(),
        [10, 15],
    ),
    "a vector in a product of matrices": Advice(
        lambda: multiply(reshape=False),
        "reshape it to a matrix first",
        lambda: multiply(reshape=True),
        [[6, 6]],
    ),
    "vectors of four numbers": Advice(
        lambda: cross((2, 4)),
        "put x, y, z into the last dim",
        lambda: cross((2, 3)),
        [[0, 0, 1]] * 2,
    ),
    "padded batches without lengths": Advice(
        lambda: train_crf(length=False),
        "give the lengths of padded batches, and none for sequences with LoD",
        lambda: train_crf(length=True),
        [[np.log(4)]],
    ),
    "a label that is not a class": Advice(
        lambda: entropy(2),
        "labels go from 0 to {}",
        lambda: entropy(1),
        [[-np.log(0.75)]],
    ),
    "a label that may be left out": Advice(
        lambda: entropy(2, ignore_index=5),
        "labels go from 0 to {}; only {} is left out",
        lambda: each(lambda: entropy(1, ignore_index=5).item(), lambda: entropy(5, ignore_index=5).item()),
        [-np.log(0.75), 0.0],
    ),
    "scores that are not probabilities": Advice(
        lambda: rate(hold(np.array([[3, -3], [-3, 3]], "float32"))),
        "apply layers.softmax, or layers.sigmoid, to the scores first",
        lambda: each(
            lambda: rate(layers.softmax(hold(np.array([[3, -3], [-3, 3]], "float32")))).item(),
            lambda: rate(layers.sigmoid(hold(np.array([[3, -3], [-3, 3]], "float32")))).item(),
        ),
        [1.0, 1.0],
    ),
    "texts without lengths": Advice(
        lambda: distance("nothing"),
        "feed a LoDTensor, or a padded tensor together with the lengths",
        lambda: each(lambda: distance("lod").item(), lambda: distance("lengths").item()),
        [1.0, 1.0],
    ),
    "channels in another place": Advice(
        lambda: convolve(groups=1, data_format="NHWC", outs=2) if convolve_wrong() else None,
        "data_format says where the channels are; groups must divide both channel counts",
        lambda: each(
            lambda: convolve().ravel().tolist(), lambda: convolve(data_format="NHWC").ravel().tolist()
        ),
        [[496.0, 496.0]] * 2,
    ),
    "a size that has no room": Advice(
        lambda: fill_batch("constant"),
        "the *_batch_size_like operators take a size that is known at run time only",
        lambda: fill_batch("batch_size_like"),
        np.full((2, 3), 2.0),
    ),
    "an average without its state": Advice(
        quantize,
        "give them, or set is_test to quantize by InScale",
        lambda: each(lambda: quantize(with_state=True).tolist(), lambda: quantize(is_test=True).tolist()),
        [[[1.0, -1.0]]] * 2,
    ),
    "fewer counts than rows": Advice(
        lambda: normalize_counts(1),
        "CVM needs one row for each sequence, or for each row of X without LoD",
        lambda: normalize_counts(2),
        np.array([[1, 1, 1, 1]] * 2),
    ),
    "fewer tags than instances": Advice(
        lambda: choose_instances([2]),
        "Ins_tag needs one sequence of tags for each instance",
        lambda: choose_instances([1, 1]),
        ROWS[1:],
    ),
    "an input of a recurrent unit": Advice(
        lambda: recur("gru", 4),
        "the input must be projected: the layer before has 3 times the width of the unit",
        lambda: recur("gru", 6),
        np.zeros((2, 2)),
    ),
    "an input of a recurrent cell": Advice(
        lambda: recur("lstm", 4),
        "the input must be projected: the layer before has 4 times the width of the cell",
        lambda: recur("lstm", 8),
        np.zeros((2, 2)),
    ),
    "a sum of no dims": Advice(
        lambda: reduce(dim=[]),
        "reduce_all=True reduces all dims",
        lambda: reduce(reduce_all=True),
        [28.0],
    ),
    "images that are larger": Advice(
        lambda: cut_images([9.0, 9.0]),
        "Y is the size of the original images",
        lambda: cut_images([4.0, 4.0]),
        [0, 2, 8, 10],
    ),
    "the gradient of maxima for a test": Advice(
        lambda: take_maxima(for_test=True),
        "take the gradient of the training program, not of its clone(for_test=True)",
        lambda: take_maxima(for_test=False),
        [0, 1, 1],
    ),
    "values of another dtype": Advice(
        lambda: assign_values("float64"),
        "cast the values to one of these",
        lambda: assign_values("float32"),
        [1, 2],
    ),
    "a sparse gradient that an optimizer refuses": Advice(
        lambda: train_embedding(fluid.optimizer.Adamax(0.1), is_sparse=True),
        "build the embedding with is_sparse=False, or use sgd, momentum, adagrad or adam",
        lambda: each(
            lambda: train_embedding(fluid.optimizer.Adamax(0.1), is_sparse=False).item(),
            *(
                lambda make=make: train_embedding(make(), is_sparse=True).item()
                for make in (
                    lambda: fluid.optimizer.SGD(0.1),
                    lambda: fluid.optimizer.Momentum(0.1, 0.9),
                    lambda: fluid.optimizer.Adagrad(0.1),
                    lambda: fluid.optimizer.Adam(0.1),
                )
            ),
        ),
        [1.0] * 5,
    ),
}


def convolve_wrong() -> Any:
    x = np.zeros((1, 3, 4, 4), "float32")
    return compute("conv2d", "Output", {"groups": 1}, Input=x, Filter=np.ones((2, 2, 4, 4), "float32"))


@pytest.mark.parametrize("advice", ADVICE.values(), ids=ADVICE)
@pytest.mark.filterwarnings("ignore:.*FLAGS_fluid_quirks")
def test_following_a_hint_of_an_operator_gives_the_right_result(advice: Advice) -> None:
    advice.follow()
