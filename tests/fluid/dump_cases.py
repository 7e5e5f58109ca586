"""What scripts compute with the modules of fluid/; run by the real 1.8.5, this file writes golden.json.

path/to/python3.7 tests/fluid/dump_cases.py
"""

import contextlib
import io
import json
import warnings
from pathlib import Path

import numpy as np


def ids(fluid, rng, lengths, low, high):
    values = rng.randint(low, high, (sum(lengths), 1)).astype("int64")
    return fluid.create_lod_tensor(values, [lengths], fluid.CPUPlace())


def evaluator(fluid):
    """Names, and what two evaluators give per batch and per pass."""
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup):
        a = fluid.data("a", [None, 1], "int64", lod_level=1)
        b = fluid.data("b", [None, 1], "int64", lod_level=1)
        distance = fluid.evaluator.EditDistance(a, b, ignored_tokens=[6])
        chunks = fluid.evaluator.ChunkEvaluator(a, b, "IOB", 3)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(startup)
    metrics = distance.metrics + chunks.metrics
    out = [[op.type for op in main.global_block().ops], sorted(main.global_block().vars)]
    out.append([metric.name for metric in metrics])
    for turn in range(2):
        distance.reset(exe)
        chunks.reset(exe)
        for step in range(3):
            rng = np.random.RandomState(step + 10 * turn)
            feed = {"a": ids(fluid, rng, [3, 4, 2], 0, 6), "b": ids(fluid, rng, [3, 4, 2], 0, 6)}
            if step == 1:
                feed["b"] = feed["a"]
            out.append([np.array(x).tolist() for x in exe.run(main, feed=feed, fetch_list=metrics)])
        out.append([np.array(x).tolist() for x in distance.eval(exe) + chunks.eval(exe)])
    return out


def ordered(slot, names):
    """The names, sorted where they come from a set in Fluid."""
    return sorted(names) if slot.startswith("parameters") else list(names)


def describe(program):
    """Operators with their variables, and the persistables with shapes."""
    block = program.global_block()
    ops = [
        [op.type, [[slot, ordered(slot, op.input(slot))] for slot in sorted(op.input_names)]]
        for one in program.blocks
        for op in one.ops
    ]
    kept = sorted([v.name, list(v.shape)] for v in block.vars.values() if v.persistable)
    return [ops, kept]


def train(fluid, build, feeds, steps=3):
    """The program that ``build`` makes, with its loss trained by SGD, and the fetches of some steps."""
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 7
    with fluid.program_guard(main, startup):
        loss, fetches = build()
        if loss is not None:
            fluid.optimizer.SGD(0.1).minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    if startup.global_block().ops:
        exe.run(startup)
    runs = []
    for step in range(steps):
        found = exe.run(main, feed=feeds(step), fetch_list=fetches)
        runs.append([np.array(one).tolist() for one in found])
    return [describe(main), runs]


def shuffle_batch(fluid):
    def build():
        x = fluid.data("x", [None, 2], "float32")
        out = fluid.contrib.layers.shuffle_batch(fluid.layers.fc(x, 3, name="w"), seed=5)
        loss = fluid.layers.reduce_mean(out * out)
        return loss, [out, loss, "shuffle_batch_seed_0"]

    return train(fluid, build, lambda step: {"x": np.arange(12).reshape(6, 2).astype("float32") / 10 + step})


TREE = [[0, 0, 0, 1, 0], [0, 1, 0, 2, 3], [0, 2, 1, 4, 5], [0, 2, 1, 6, 0]] + [
    [i, 3, 2, 0, 0] for i in (1, 2, 3)
]


def tdm(fluid):
    """A tree of seven nodes."""

    def parameter(name, values):
        initializer = fluid.initializer.NumpyArrayInitializer(np.array(values, "int32"))
        return fluid.ParamAttr(name=name, initializer=initializer)

    def build():
        x = fluid.data("x", [None, 1], "int32")
        contrib = fluid.contrib.layers
        child = contrib.tdm_child(x, 7, 2, param_attr=parameter("tree", TREE))
        travel, layer = (
            parameter("travel", [[1, 3], [1, 4], [2, 5], [2, 0]]),
            parameter("layer", [[i] for i in range(1, 7)]),
        )
        fetches = list(child)
        for positive in (True, False):
            lists = contrib.tdm_sampler(x, [1, 3], [2, 4], 4, travel, layer, positive, True, seed=7)
            fetches += [one for several in lists for one in several]
        fetches += contrib.tdm_sampler(x, [1, 3], [2, 4], 4, travel, layer, True, False, 11)
        return None, fetches

    return train(fluid, build, lambda step: {"x": np.array([[0], [1], [2], [3]], "int32")}, 1)


def partial(fluid):
    def build():
        x = [fluid.data("x%d" % i, [None, 4], "float32") for i in range(2)]
        x = [fluid.layers.fc(one, 4) for one in x]
        joined = fluid.contrib.layers.partial_concat(x, 1, 2)
        added = fluid.contrib.layers.partial_sum(x, 0, 3)
        loss = fluid.layers.reduce_mean(joined * joined) + fluid.layers.reduce_mean(added)
        return loss, [joined, added, loss]

    values = np.linspace(-1, 1, 12).reshape(3, 4).astype("float32")
    return train(fluid, build, lambda step: {"x0": values, "x1": values * (step + 2)})


def ctr_metric_bundle(fluid):
    def build():
        x, y = (fluid.data(name, [None, 1], "float32") for name in "xy")
        return None, list(fluid.contrib.layers.ctr_metric_bundle(x, y))

    def feeds(step):
        rng = np.random.RandomState(step)
        return {"x": rng.rand(4, 1).astype("float32"), "y": rng.randint(0, 2, (4, 1)).astype("float32")}

    return train(fluid, build, feeds)


def recurrent(fluid, kind, **options):
    """A network of contrib.layers on padded sequences."""
    directions = 2 if options.get("bidirectional") else 1
    given = options.pop("given", False)
    named = options.pop("named", False)

    def build():
        x = fluid.data("x", [None, 4, 3], "float32")
        length = fluid.data("length", [None], "int64") if options.pop("lengths", False) else None
        depth = options.get("num_layers", 1)
        states = [
            fluid.data("state%d" % i, [depth * directions, None, 5], "float32") if given else None
            for i in range(2 if kind == "basic_lstm" else 1)
        ]
        attrs = {}
        if named:
            attrs = {"param_attr": fluid.ParamAttr(name="w"), "bias_attr": fluid.ParamAttr(name="b")}
        layer = getattr(fluid.contrib.layers, kind)
        found = layer(x, *states, 5, sequence_length=length, **dict(options, **attrs))
        loss = sum(fluid.layers.reduce_mean(one * one) for one in found)
        return loss, [loss, *found]

    def feeds(step):
        rng = np.random.RandomState(step)
        depth = options.get("num_layers", 1) * directions
        feed = {"x": rng.rand(2, 4, 3).astype("float32"), "length": np.array([3, 2])}
        feed.update(("state%d" % i, rng.rand(depth, 2, 5).astype("float32")) for i in range(2))
        return {name: feed[name] for name in needed}

    needed = ["x"] + ["length"] * bool(options.get("lengths"))
    needed += ["state0", "state1"][: 2 if kind == "basic_lstm" else 1] if given else []
    return train(fluid, build, feeds)


def basic_lstm(fluid):
    return recurrent(fluid, "basic_lstm", num_layers=2)


def basic_lstm_both(fluid):
    return recurrent(fluid, "basic_lstm", bidirectional=True, lengths=True, given=True, named=True)


def basic_gru(fluid):
    return recurrent(fluid, "basic_gru", num_layers=2, lengths=True, named=True)


def basic_gru_both(fluid):
    return recurrent(fluid, "basic_gru", bidirectional=True, given=True, batch_first=True)


def decoupled_weight_decay(fluid):
    """Parameters that shrink beside their gradients' updates."""
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 3
    with fluid.program_guard(main, startup):
        x = fluid.data("x", [None, 4], "float32")
        loss = fluid.layers.reduce_mean(fluid.layers.fc(fluid.layers.fc(x, 3), 2))
        kind = fluid.contrib.extend_with_decoupled_weight_decay(fluid.optimizer.Adam)
        optimizer = kind(0.1, lambda name: "w_" in name, learning_rate=0.05)
        optimizer.minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(startup)
    names = sorted(p.name for p in main.global_block().all_parameters())
    feed = {"x": np.linspace(-1, 1, 8).reshape(2, 4).astype("float32")}
    runs = [[one.tolist() for one in exe.run(main, feed=feed, fetch_list=names)] for _ in range(3)]
    roles = [op.attr("op_role") for op in main.global_block().ops]
    return [describe(main), roles, runs, [op.type for op in main.clone(for_test=True).global_block().ops]]


def image_network(fluid):
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        image = fluid.data("image", [None, 3, 16, 16], "float32")
        x = fluid.layers.conv2d(image, 8, 3, groups=1, act="relu")
        x = fluid.layers.batch_norm(fluid.layers.pool2d(x, 2, pool_stride=2), act="leaky_relu")
        fluid.layers.fc(fluid.layers.prelu(x, "all"), 10, act="softmax")
    return main


def statistics(fluid):
    """What contrib says of a program."""
    main = image_network(fluid)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        fluid.contrib.model_stat.summary(main)
    table = out.getvalue().splitlines()
    usage = [list(fluid.contrib.memory_usage(main, size)) for size in (1, 100)]
    return [usage, [line for line in table if line[0] in "+|" or line.startswith("Total")]]


CASES = [
    evaluator,
    shuffle_batch,
    tdm,
    partial,
    ctr_metric_bundle,
    basic_lstm,
    basic_lstm_both,
    basic_gru,
    basic_gru_both,
    decoupled_weight_decay,
    statistics,
]


def run(case, fluid):
    """The result of a case, in programs and a scope of its own."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with fluid.unique_name.guard(), fluid.scope_guard(fluid.Scope()):
            return case(fluid)


if __name__ == "__main__":
    import paddle.fluid

    found = {case.__name__: run(case, paddle.fluid) for case in CASES}
    Path(__file__).with_name("golden.json").write_text(json.dumps(found))
