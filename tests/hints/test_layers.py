"""The advice of errors of layers and optimizers, followed to the letter: the result is right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.distributed.growing_tables import sparse_embedding
from paddlelike.framework.opdef import OpDef, Spec, registry
from tests.hints.advice import ROWS, SUMS, Advice, each, fill, hold, read_rows, run

layers = fluid.layers
SGD = fluid.optimizer.SGD
IMAGE = np.arange(16, dtype="float32").reshape(1, 1, 4, 4)
IDS = np.array([[0], [2]], "int64")
LOD = [[0, 1, 2]]


def read_sequences(lod_level: int = 1) -> fluid.Variable:
    return fluid.data("x", [None, 4], lod_level=lod_level)


def feed_sequences() -> dict[str, Any]:
    return {"x": fluid.create_lod_tensor(ROWS, [[1, 1]], fluid.CPUPlace())}


def make_loss() -> fluid.Variable:
    return layers.mean(layers.fc(read_rows(), 1, param_attr=fill(1.0), bias_attr=False))


def train(optimizer: Any, loss: fluid.Variable, **feed: Any) -> Any:
    """Return the weights, at first ones, after a step on rows of ones: each has the gradient 1."""
    optimizer.minimize(loss)
    run(loss, {"x": np.ones((2, 4), "float32"), **feed})
    weight = fluid.default_main_program().all_parameters()[0]
    found = fluid.global_scope().find_var(weight.name)
    assert found is not None
    return np.asarray(found.get_tensor())


def descend(rate: float) -> Any:
    return np.full((4, 1), 1 - rate, "float32")


def choose(false_fn: Callable[[], Any]) -> Any:
    return layers.cond(hold(np.array([True])), lambda: layers.scale(hold(ROWS), 2.0), false_fn)


def double(out_shape: list[int] | None) -> Any:
    block = fluid.default_main_program().current_block()
    out = block.create_var(name="out", dtype="float32", **({"shape": out_shape} if out_shape else {}))
    return run(layers.py_func(lambda x: 2 * np.array(x), hold(ROWS), out))


def normalize(attr: Any) -> Any:
    """Return the squares' sum of each channel, normalized over a batch of two rows."""
    return run(layers.batch_norm(read_rows(), param_attr=attr, bias_attr=attr, epsilon=0.0), {"x": ROWS})


def encode(prior_box_var: Any) -> Any:
    boxes = hold(np.array([[0, 0, 2, 2]], "float32"))
    return run(layers.box_coder(boxes, prior_box_var, boxes, box_normalized=True))


def count_steps(condition: Callable[[fluid.Variable], fluid.Variable]) -> Any:
    at, limit = layers.fill_constant([1], "int64", 0), layers.fill_constant([1], "int64", 3)
    cond = condition(layers.less_than(at, limit))
    loop = layers.While(cond)
    with loop.block():
        layers.increment(at)
        layers.less_than(at, limit, cond=cond)
    return run(at)


def pool(**options: Any) -> Any:
    return run(layers.pool2d(hold(IMAGE), **options))


def convolve(size: int, **options: Any) -> Any:
    return run(layers.conv2d(hold(IMAGE), 1, size, param_attr=fill(1.0), bias_attr=False, **options))


def run_lstm(size: int, width: int, bias_attr: Any = None) -> Any:
    projected = layers.fc(read_sequences(), size, param_attr=fill(0.0))
    hidden, _ = layers.dynamic_lstm(projected, width, param_attr=fill(0.0), bias_attr=bias_attr)
    return run(layers.sequence_pool(hidden, "sum"), feed_sequences())


ZEROS = fluid.ParamAttr(trainable=False, initializer=fluid.initializer.Constant(0.0))


def match_boxes(mining_type: str) -> Any:
    """Return the loss of two anchors, one of which is the true box; all codes and scores are zeros."""
    anchors = np.array([[0, 0, 0.5, 0.5], [0.5, 0.5, 1, 1]], "float32")
    box = fluid.data("box", [None, 4], lod_level=1)
    label = fluid.data("label", [None, 1], "int32", lod_level=1)
    loss = layers.ssd_loss(
        hold(np.zeros((1, 2, 4), "float32")),
        hold(np.zeros((1, 2, 3), "float32")),
        box,
        label,
        hold(anchors),
        [0.1, 0.1, 0.2, 0.2],
        mining_type=mining_type,
    )
    one = {"box": anchors[:1], "label": np.ones((1, 1), "int32")}
    return run(
        loss, {name: fluid.create_lod_tensor(value, [[1]], fluid.CPUPlace()) for name, value in one.items()}
    )


def suppress(call: Callable[..., Any]) -> Any:
    """Return the best score of two classes."""
    boxes = hold(np.array([[[0, 0, 1, 1], [2, 2, 3, 3]]], "float32"))
    scores = hold(np.array([[[0.9, 0.1], [0.2, 0.8]]], "float32"))
    out = call(boxes, scores, score_threshold=0.5, nms_top_k=2, keep_top_k=2, background_label=-1)
    return np.array(run(out, return_numpy=False))[:, :2]


def grow(optimizer: Any, table: str = "MemorySparseTable", initializer: Any = None) -> Any:
    """Return the rows of two ids in a growing table after a step in which each has the gradient 0.5."""
    attr = fluid.ParamAttr(name="table", initializer=initializer or fluid.initializer.Constant(1.0))
    ids = fluid.data("ids", [None, 1], "int64")
    out = sparse_embedding(ids, [1, 1], param_attr=attr, table_class=table)
    if optimizer is not None:
        optimizer.minimize(layers.mean(out))
    feed = {"ids": np.array([[1 << 40], [-5]], "int64")}
    run(out, feed)
    return fluid.Executor().run(feed=feed, fetch_list=[out])[0].ravel()


def fall(optimizer: Any) -> bool:
    return bool((grow(optimizer) < 1).all())


class Doubled(fluid.dygraph.layers.Layer):
    """A layer of one parameter."""

    def __init__(self) -> None:
        super().__init__("doubled")
        self.weight = self.create_parameter([4, 1], fill(1.0), "float32")

    def forward(self, x: Any) -> Any:
        return layers.mul(x, self.weight)


def call_layer(method: str = "", *arguments: Any, by: Any = None) -> Any:
    """Build a layer; call a method of it, or train it as fluid does, and return its weights."""
    layer = Doubled()
    out = layer(read_rows())
    if method:
        return getattr(layer, method)(*arguments)
    loss, main = layers.mean(out), fluid.default_main_program()
    if by == "evaluate":
        test = main.clone(for_test=True)
        fluid.optimizer.SGD(1.0).minimize(loss)
        return run(out, {"x": ROWS}, test)
    if by == "gradients":
        return run(fluid.gradients(loss, layer.weight)[0], {"x": ROWS})
    if by == "minimize":
        fluid.optimizer.SGD(1.0).minimize(loss)
    run(out, {"x": 0 * ROWS})
    if by == "state":
        fluid.set_program_state(main, {layer.weight.name: np.full((4, 1), 5.0, "float32")})
    exe = fluid.Executor()
    for _ in range(2):  # nothing is cleared between the runs
        exe.run(feed={"x": ROWS}, fetch_list=[out])
    return np.array(fluid.global_scope().find_var(layer.weight.name).get_tensor())


def write_operator() -> Any:
    """Double an array by an operator that is a class."""

    class Twice(OpDef):
        type = "twice_as_a_class"

        @staticmethod
        def infer(x: Spec) -> Spec:
            return x

        @staticmethod
        def forward(x: Any) -> Any:
            return 2 * x

    registry.register(Twice)
    try:
        block = fluid.default_main_program().global_block()
        out = block.create_var(name="out", shape=[2, 4], dtype="float32")
        block.append_op("twice_as_a_class", {"X": [hold(ROWS)]}, {"Out": [out]}, {})
        return run(out)
    finally:
        for entries in (registry.OPERATORS._entries, registry.OPERATORS._found):
            entries.pop("twice_as_a_class", None)


def time_operators(call: Callable[[], Any]) -> Any:
    with call():
        return run(layers.scale(read_rows(), 2.0), {"x": ROWS})


ADVICE: dict[str, Advice] = {
    "the mining of ssd_loss": Advice(
        lambda: match_boxes("hard_example"),
        "pass mining_type='max_negative'",
        lambda: match_boxes("max_negative"),
        [[2 * np.log(3)]],  # the cross entropy of the matched anchor and of one of the background
    ),
    "several classes of locality_aware_nms": Advice(
        lambda: suppress(
            lambda *boxes, **options: layers.locality_aware_nms(*boxes, **options, nms_threshold=0.3)
        ),
        "use layers.multiclass_nms for several classes",
        lambda: suppress(layers.multiclass_nms),
        [[0, 0.9], [1, 0.8]],
    ),
    "an initializer of whole arrays for a growing table": Advice(
        lambda: grow(None, initializer=fluid.initializer.TruncatedNormal(0.0, 1.0)),
        "use Constant, Uniform, Normal or Xavier",
        lambda: each(
            *(
                lambda one=one: float(grow(None, initializer=one)[0])
                for one in (
                    fluid.initializer.Constant(2.0),
                    fluid.initializer.Uniform(2.0, 2.0),
                    fluid.initializer.Normal(2.0, 0.0),
                )
            ),
            lambda: bool(np.abs(grow(None, initializer=fluid.initializer.Xavier())).max() < 3),
        ),
        [2.0, 2.0, 2.0, True],
    ),
    "an optimizer that updates no single rows": Advice(
        lambda: grow(fluid.optimizer.Adamax(0.1)),
        "SGD, Momentum, Adagrad, Adam, Ftrl and RMSProp update its rows one by one",
        lambda: each(
            lambda: fall(fluid.optimizer.SGD(0.1)),
            lambda: fall(fluid.optimizer.Momentum(0.1, 0.9)),
            lambda: fall(fluid.optimizer.Adagrad(0.1)),
            lambda: fall(fluid.optimizer.Adam(0.1)),
            lambda: fall(fluid.optimizer.Ftrl(0.1)),
            lambda: fall(fluid.optimizer.RMSProp(0.1)),
        ),
        [True] * 6,
    ),
    "an optimizer that updates rows on the disk": Advice(
        lambda: grow(fluid.optimizer.Momentum(0.1, 0.9), "SSDSparseTable"),
        "SGD, Adagrad and Adam(lazy_mode=True) update only rows that were looked up; or use MemorySparseTable",
        lambda: each(
            *(
                lambda one=one: bool((grow(one, "SSDSparseTable") < 1).all())
                for one in (
                    fluid.optimizer.SGD(0.1),
                    fluid.optimizer.Adagrad(0.1),
                    fluid.optimizer.Adam(0.1, lazy_mode=True),
                )
            ),
            lambda: fall(fluid.optimizer.Momentum(0.1, 0.9)),
        ),
        [True] * 4,
    ),
    "a layer that is to evaluate": Advice(
        lambda: call_layer("eval"),
        "main.clone(for_test=True) is the program for evaluation",
        lambda: call_layer(by="evaluate"),
        SUMS,
    ),
    "a layer whose gradients are to be cleared": Advice(
        lambda: call_layer("clear_gradients"),
        "leave the call out: no gradient outlives a run",
        lambda: call_layer(by="minimize"),
        1 - 2 * ROWS.mean(0)[:, None],
    ),
    "a layer whose parameters are to be set": Advice(
        lambda: call_layer("set_dict", {}),
        "fluid.set_program_state(main, state) sets parameters by name",
        lambda: call_layer(by="state"),
        np.full((4, 1), 5.0),
    ),
    "a layer that is to go backward": Advice(
        lambda: call_layer("backward"),
        "optimizer.minimize(loss) or fluid.gradients build the gradients",
        lambda: each(lambda: call_layer(by="minimize"), lambda: call_layer(by="gradients")),
        [1 - 2 * ROWS.mean(0)[:, None], ROWS.mean(0)[:, None]],
    ),
    "a library of operators": Advice(
        lambda: fluid.load_op_library("ops.so"),
        "write the operator in Python: a subclass of paddlelike.framework.opdef.OpDef",
        write_operator,
        2 * ROWS,
    ),
    "the profile of a GPU": Advice(
        lambda: time_operators(lambda: fluid.profiler.cuda_profiler("file")),
        "use profiler.profiler('CPU')",
        lambda: time_operators(lambda: fluid.profiler.profiler("CPU")),
        2 * ROWS,
    ),
    "a branch that returns nothing": Advice(
        lambda: choose(lambda: None),
        "return a variable from each branch, or write to an outer one with layers.assign in both",
        lambda: run(choose(lambda: hold(ROWS))),
        2 * ROWS,
    ),
    "a branch that is a variable": Advice(
        lambda: choose(hold(ROWS)),  # type: ignore[arg-type]
        "lambda: ...; operators inside of it run only where it is taken",
        lambda: run(choose(lambda: hold(ROWS))),
        2 * ROWS,
    ),
    "an output of a function without a shape": Advice(
        lambda: double(None),
        "create it with the shape and dtype that the function will return",
        lambda: double([2, 4]),
        2 * ROWS,
    ),
    "a condition of several bools": Advice(
        lambda: layers.While(layers.less_than(hold(ROWS), hold(ROWS + 1))),
        "layers.reduce_all reduces many to one",
        lambda: count_steps(lambda cond: layers.reduce_all(cond)),
        [3],
    ),
    "variances of another kind": Advice(
        lambda: encode("none"),
        "[1.0, 1.0, 1.0, 1.0] leaves the code as it is",
        lambda: encode([1.0, 1.0, 1.0, 1.0]),
        np.zeros((1, 1, 4)),
    ),
    "inputs of two dtypes": Advice(
        lambda: layers.sum([hold(ROWS), hold(ROWS.astype("int64"))]),
        "convert them to one: layers.cast(variable, dtype)",
        lambda: run(layers.sum([hold(ROWS), layers.cast(hold(ROWS.astype("int64")), "float32")])),
        2 * ROWS,
    ),
    "joined variables of two dtypes": Advice(
        lambda: layers.concat([hold(ROWS), hold(ROWS.astype("int64"))]),
        "convert one of them with layers.cast",
        lambda: run(layers.concat([hold(ROWS), layers.cast(hold(ROWS.astype("int64")), "float32")])),
        np.concatenate([ROWS, ROWS]),
    ),
    "joined variables that are not a list": Advice(
        lambda: layers.concat(hold(ROWS), hold(ROWS)),
        "variables to be joined are one list: concat([a, b], axis=1)",
        lambda: run(layers.concat([hold(ROWS), hold(ROWS)], axis=1)),
        np.concatenate([ROWS, ROWS], 1),
    ),
    "parts that are not equal": Advice(
        lambda: layers.split(hold(ROWS), 3, dim=1),
        "pass a list of lengths for unequal parts",
        lambda: run(layers.split(hold(ROWS), [1, 1, 2], dim=1)[2]),
        ROWS[:, 2:],
    ),
    "a dtype that a layer does not take": Advice(
        lambda: layers.relu6(hold(IDS)),
        "convert the variable first with layers.cast",
        lambda: run(layers.relu6(layers.cast(hold(IDS), "float32"))),
        IDS,
    ),
    "a tensor in place of an array of tensors": Advice(
        lambda: layers.array_length(hold(ROWS)),
        "layers.create_array makes one",
        lambda: run(layers.array_length(layers.create_array("float32"))),
        [0],
    ),
    "columns of unknown number": Advice(
        lambda: layers.fc(fluid.data("x", [None, None]), 1),
        "declare those dims, or pass num_flatten_dims",
        lambda: run(layers.fc(read_rows(), 1, param_attr=fill(1.0)), {"x": ROWS}),
        SUMS,
    ),
    "channels of unknown number": Advice(
        lambda: layers.conv2d(fluid.data("x", [None, None, 4, 4]), 1, 4),
        "declare that dim: the shape of the filter depends on it",
        lambda: run(
            layers.conv2d(fluid.data("x", [None, 1, 4, 4]), 1, 4, param_attr=fill(1.0)), {"x": IMAGE}
        ),
        [[[[120]]]],
    ),
    "a window larger than the image": Advice(
        lambda: convolve(5),
        "add padding, take a smaller filter, or pool less before",
        lambda: convolve(4),
        [[[[120]]]],
    ),
    "a pool without a size": Advice(
        lambda: pool(pool_type="avg"),
        "pass the size of the windows, or global_pooling=True for one over everything",
        lambda: pool(pool_type="avg", global_pooling=True),
        [[[[7.5]]]],
    ),
    "VALID with ceil_mode": Advice(
        lambda: pool(pool_size=4, pool_padding="VALID", ceil_mode=True),
        "leave ceil_mode False, or pass the padding as numbers",
        lambda: pool(pool_size=4, pool_padding=0, ceil_mode=True),
        [[[[15]]]],
    ),
    "a window of a pool larger than the image": Advice(
        lambda: pool(pool_size=5),
        "add padding, take a smaller window, or global_pooling=True for one over everything",
        lambda: pool(pool_size=4),
        [[[[15]]]],
    ),
    "a scale that is left out": Advice(
        lambda: normalize(False),
        "ParamAttr(trainable=False) keeps scale or bias at its initial value",
        lambda: run(
            layers.batch_norm(
                read_rows(),
                param_attr=fluid.ParamAttr(trainable=False),
                bias_attr=fluid.ParamAttr(trainable=False),
                epsilon=0.0,
            ),
            {"x": ROWS},
        ),
        np.stack([-np.ones(4), np.ones(4)]),
    ),
    "an LSTM without a bias": Advice(
        lambda: run_lstm(16, 16, bias_attr=False),
        "ParamAttr(trainable=False, initializer=fluid.initializer.Constant(0.0)) keeps it at 0",
        lambda: run_lstm(16, 16, bias_attr=ZEROS),
        np.zeros((2, 4)),
    ),
    "a width of an LSTM that is not 4 times the cell": Advice(
        lambda: run_lstm(6, 6),
        "project the input first: fc(input, size=4 * width), then size=4 * width here",
        lambda: run_lstm(4 * 6, 4 * 6, bias_attr=ZEROS),
        np.zeros((2, 6)),
    ),
    "more than two dims to transpose": Advice(
        lambda: layers.t(hold(IMAGE)),
        "layers.transpose takes any number of dims",
        lambda: run(layers.transpose(hold(IMAGE), [0, 1, 3, 2])),
        IMAGE.swapaxes(2, 3),
    ),
    "a dim below -1": Advice(
        lambda: layers.reshape(hold(ROWS), [-2, 4]),
        "dims are positive, -1 for the inferred one, or 0 for the dim of x at that index",
        lambda: run(layers.reshape(hold(ROWS), [0, -1])),
        ROWS,
    ),
    "an id beyond the table": Advice(
        lambda: run(fluid.embedding(hold(IDS), [2, 3], param_attr=fill(1.0))),
        "ids go from 0 to {}; is the size of the embedding right?",
        lambda: run(fluid.embedding(hold(IDS), [3, 3], param_attr=fill(1.0))),
        np.ones((2, 1, 3)),
    ),
    "ids without a last dim of 1": Advice(
        lambda: layers.embedding(hold(IDS[:, 0]), [3, 3]),
        "lookup_table_v2 (fluid.embedding) takes ids of any shape",
        lambda: run(fluid.embedding(hold(IDS[:, 0]), [3, 3], param_attr=fill(1.0))),
        np.ones((2, 3)),
    ),
    "classes without a last dim of 1": Advice(
        lambda: layers.one_hot(hold(IDS[:, 0]), 3),
        "one_hot_v2 (fluid.one_hot) takes ids of any shape",
        lambda: run(fluid.one_hot(hold(IDS[:, 0]), 3)),
        np.eye(3)[[0, 2]],
    ),
    "flat labels": Advice(
        lambda: layers.accuracy(hold(np.eye(3, dtype="float32")[[0, 2]]), hold(IDS[:, 0])),
        "layers.reshape(label, [-1, 1]), or declare it as [None, 1]",
        lambda: run(
            layers.accuracy(
                hold(np.eye(3, dtype="float32")[[0, 2]]), layers.reshape(hold(IDS[:, 0]), [-1, 1])
            )
        ),
        [1],
    ),
    "operands of two dtypes": Advice(
        lambda: run(layers.elementwise_add(hold(ROWS), layers.cast(hold(ROWS), "float64"))),
        'convert one of them before: layers.cast(variable, "{}")',
        lambda: run(
            layers.elementwise_add(hold(ROWS), layers.cast(layers.cast(hold(ROWS), "float64"), "float32"))
        ),
        2 * ROWS,
    ),
    "labels of the wrong dtype": Advice(
        lambda: run(layers.softmax_with_cross_entropy(0.0 * hold(ROWS), layers.cast(hold(IDS), "float32"))),
        "declare and feed the labels as int64; probabilities need soft_label=True",
        lambda: run(layers.softmax_with_cross_entropy(0.0 * hold(ROWS), hold(IDS))),
        np.full((2, 1), np.log(4)),
    ),
    "distributions as labels": Advice(
        lambda: layers.cross_entropy(
            hold(np.full((2, 4), 0.25, "float32")), hold(np.full((2, 4), 0.25, "float32"))
        ),
        "a distribution per element needs soft_label=True",
        lambda: run(
            layers.cross_entropy(
                hold(np.full((2, 4), 0.25, "float32")),
                hold(np.full((2, 4), 0.25, "float32")),
                soft_label=True,
            )
        ),
        np.full((2, 1), np.log(4)),
    ),
    "a width that a sequence exceeds": Advice(
        lambda: run(
            layers.sequence_pad(read_sequences(), layers.fill_constant([1], "float32", 0.0), maxlen=1)[0],
            {"x": fluid.create_lod_tensor(ROWS, [[2]], fluid.CPUPlace())},
        ),
        "raise maxlen, or leave it out to pad to the longest sequence",
        lambda: run(
            layers.sequence_pad(read_sequences(), layers.fill_constant([1], "float32", 0.0))[0],
            {"x": fluid.create_lod_tensor(ROWS, [[2]], fluid.CPUPlace())},
        ),
        ROWS[None],
    ),
    "rows without their lengths": Advice(
        lambda: run(layers.sequence_pool(read_sequences(), "sum"), {"x": ROWS}),
        "feed it as fluid.create_lod_tensor(rows, [lengths], place); operators that change the number of rows drop the LoD",
        lambda: run(layers.sequence_pool(read_sequences(), "sum"), feed_sequences()),
        ROWS,
    ),
    "data that is not declared as sequences": Advice(
        lambda: layers.sequence_pool(read_sequences(lod_level=0), "sum"),
        "declare the data with lod_level=1; operators that change the number of rows drop the LoD",
        lambda: run(layers.sequence_pool(read_sequences(lod_level=1), "sum"), feed_sequences()),
        ROWS,
    ),
    "a softmax of sequences of rows": Advice(
        lambda: run(layers.sequence_softmax(read_sequences()), feed_sequences()),
        "layers.softmax normalises the columns of each row",
        lambda: run(layers.softmax(0.0 * read_rows()), {"x": ROWS}),
        np.full((2, 4), 0.25),
    ),
    "offsets that do not fit": Advice(
        lambda: run(layers.sequence_pool(layers.lod_reset(hold(ROWS), target_lod=[0, 5]), "sum")),
        "offsets begin with 0, never fall, and end with the number of rows",
        lambda: run(layers.sequence_pool(layers.lod_reset(hold(ROWS), target_lod=[0, 2]), "sum")),
        ROWS.sum(0, keepdims=True),
    ),
    "a crop of whole batches": Advice(
        lambda: layers.random_crop(hold(ROWS), [2, 4, 1]),
        "shape gives the last dims of X without the first, none larger than X's",
        lambda: run(layers.random_crop(hold(ROWS), [4])),
        ROWS,
    ),
    "a comparison that broadcasts the first operand": Advice(
        lambda: layers.less_than(hold(ROWS[0]), hold(ROWS)),
        "exchange X and Y, and the relation with its opposite",
        lambda: run(layers.greater_than(hold(ROWS), hold(ROWS[0]))),
        ROWS[0] < ROWS,
    ),
    "a scale for each row": Advice(
        lambda: layers.elementwise_mul(hold(ROWS), hold(ROWS[:, 0])),
        "the shorter shape begins at dim `axis` of the longer one, -1 aligns their ends; dims that meet must be equal, or one of them 1",
        lambda: run(layers.elementwise_mul(hold(ROWS), hold(ROWS[:, 0]), axis=0)),
        ROWS * ROWS[:, :1],
    ),
    "one size too many": Advice(
        lambda: layers.prior_box(hold(IMAGE), hold(IMAGE), [1.0], max_sizes=[2.0, 3.0]),
        "leave max_sizes out, or give one for each of min_sizes",
        lambda: run(layers.prior_box(hold(IMAGE), hold(IMAGE), [1.0])[0])[0, 0, 0],
        [0, 0, 0.25, 0.25],
    ),
    "a loss of many numbers": Advice(
        lambda: SGD(0.5).minimize(layers.fc(read_rows(), 1)),
        "reduce it to one value, as layers.mean does",
        lambda: train(SGD(0.5), make_loss()),
        descend(0.5),
    ),
    "parameters in place of the momentum": Advice(
        lambda: (lambda loss, optimizer: optimizer(0.5, loss.block.program.all_parameters()).minimize(loss))(
            make_loss(), fluid.optimizer.Momentum
        ),
        "pass them by name: parameter_list=[...]",
        lambda: train(fluid.optimizer.Momentum(0.5, 0.9, parameter_list=["fc_0.w_0"]), make_loss()),
        descend(0.5),
    ),
    "a loss in place of the learning rate": Advice(
        lambda: (lambda loss: SGD(loss).minimize(loss))(make_loss()),
        "the rate comes first: {}(learning_rate=0.001).minimize(loss)",
        lambda: train(SGD(learning_rate=0.001), make_loss()),
        descend(0.001),
    ),
    "a clip that is a number": Advice(
        lambda: SGD(0.5, grad_clip=5.0),  # type: ignore[arg-type]
        "fluid.clip.GradientClipByGlobalNorm(5.0)",
        lambda: train(SGD(0.5, grad_clip=fluid.clip.GradientClipByGlobalNorm(5.0)), make_loss()),
        descend(0.5),
    ),
    "an optimizer that has minimized": Advice(
        lambda: (lambda one, loss: [one.minimize(loss), one.minimize(loss)])(
            fluid.optimizer.Momentum(0.5, 0.9), make_loss()
        ),
        "make a new optimizer for each call of minimize",
        lambda: train(fluid.optimizer.Momentum(0.5, 0.9), make_loss()),
        descend(0.5),
    ),
    "a learning rate of another shape": Advice(
        lambda: SGD(fluid.data("rate", [2], "float32")).minimize(make_loss()),
        "feed a rate by fluid.data('rate', [1], 'float32'), or take a schedule of fluid.layers",
        lambda: train(SGD(fluid.data("rate", [1], "float32")), make_loss(), rate=np.array([0.5], "float32")),
        descend(0.5),
    ),
    "recomputation without checkpoints": Advice(
        lambda: fluid.optimizer.RecomputeOptimizer(SGD(0.5)).minimize(make_loss()),
        "call optimizer._set_checkpoints([variable, ...]) with the activations to keep",
        lambda: recompute(),
        descend(0.5),
    ),
}


def recompute() -> Any:
    loss, optimizer = make_loss(), fluid.optimizer.RecomputeOptimizer(SGD(0.5))
    optimizer._set_checkpoints([loss.block.program.global_block().ops[0].output("Out")[0]])
    return train(optimizer, loss)


@pytest.mark.parametrize("advice", ADVICE.values(), ids=ADVICE)
@pytest.mark.filterwarnings("ignore:.*FLAGS_fluid_quirks")
def test_following_a_hint_of_a_layer_or_optimizer_gives_the_right_result(advice: Advice) -> None:
    advice.follow()
