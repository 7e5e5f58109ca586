"""Runs: every kind of feed and fetch, what is refused, what stays in the scope."""

from __future__ import annotations

import numpy as np

from tests.alike.recording import refused, warned

X = np.arange(8, dtype="float32").reshape(2, 4)


def _exe(fluid):
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    return exe


def _net(fluid):
    x = fluid.data("x", [None, 4])
    y = fluid.layers.fc(x, 3, act="relu")
    return x, y, fluid.layers.mean(y)


def _value(fluid, name):
    found = fluid.global_scope().find_var(name)
    return None if found is None else np.array(found.get_tensor())


def fetches(fluid):
    x, y, loss = _net(fluid)
    exe = _exe(fluid)
    run = exe.run
    feed = {"x": X}
    return {
        "startup": run(fluid.default_startup_program()),
        "nothing": [run(feed=feed), run(feed=feed, fetch_list=[])],
        "variable": run(feed=feed, fetch_list=[y]),
        "name": run(feed=feed, fetch_list=[y.name]),
        "alone": [run(feed=feed, fetch_list=y), run(feed=feed, fetch_list=y.name)],
        "twice": run(feed=feed, fetch_list=[y, y.name, loss]),
        "fed": run(feed=feed, fetch_list=[x]),
        "parameter": run(feed=feed, fetch_list=["fc_0.w_0"]),
        "scalar": run(feed=feed, fetch_list=[loss]),
        "tensors": run(feed=feed, fetch_list=[y], return_numpy=False),
        "nested": run(feed=feed, fetch_list=[[y], loss]),
        "unknown": refused(run, feed=feed, fetch_list=["nobody"]),
        "number": refused(run, feed=feed, fetch_list=[3]),
        "numbers": refused(run, feed=feed, fetch_list=3),
    }


def fetched_gradients(fluid):
    _, _, loss = _net(fluid)
    fluid.optimizer.SGD(0.1).minimize(loss)
    return _exe(fluid).run(feed={"x": X}, fetch_list=["fc_0.w_0@GRAD", "fc_0.w_0", loss])


def a_fetched_sparse_gradient(fluid):
    ids = fluid.data("ids", [None, 1], "int64")
    loss = fluid.layers.mean(fluid.layers.embedding(ids, [10, 3], is_sparse=True))
    fluid.optimizer.SGD(0.1).minimize(loss)
    feed = {"ids": np.array([[1], [3]])}
    return refused(_exe(fluid).run, feed=feed, fetch_list=["embedding_0.w_0@GRAD"])


def fetched_sequences(fluid):
    x = fluid.data("x", [None, 4], lod_level=1)
    y = fluid.layers.relu(x)
    exe = _exe(fluid)
    feed = {"x": fluid.create_lod_tensor(X, [[1, 1]], fluid.CPUPlace())}
    return [
        refused(exe.run, feed=feed, fetch_list=[y]),
        exe.run(feed=feed, fetch_list=[y], return_numpy=False),
    ]


def kinds_of_feeds(fluid):
    x = fluid.data("x", [None, 4])
    n = fluid.layers.data("n", [1], append_batch_size=False)
    y, m = fluid.layers.scale(x, 2.0), fluid.layers.scale(n, 2.0)
    exe = _exe(fluid)
    tensor = fluid.LoDTensor()
    tensor.set(X, fluid.CPUPlace())

    def run(value, name="x", out=y):
        return refused(exe.run, feed={"x": X, "n": 1.0, name: value}, fetch_list=[out])

    return {
        "array": run(X),
        "tensor": run(tensor),
        "not_contiguous": run(np.arange(8, dtype="float32").reshape(4, 2).T),
        "number": run(3, "n", m),
        "float": run(2.5, "n", m),
        "numpy_number": run(np.float32(1.5), "n", m),
        "list": run([[1.0, 2.0, 3.0, 4.0]]),
        "tuple": run((1.0, 2.0)),
        "text": run("text"),
        "double": run(X.astype("float64")),
        "integers": run(X.astype("int64")),
        "other_width": run(np.ones((2, 5), "float32")),
        "other_rank": run(np.ones((2, 4, 1), "float32")),
        "one_row": run(np.ones((1, 4), "float32")),
    }


def unchecked_data(fluid):
    x = fluid.layers.data("x", [4])
    y = fluid.layers.scale(x, 2.0)
    z = fluid.layers.fc(x, 3)
    exe = _exe(fluid)

    def run(value, out):
        return refused(exe.run, feed={"x": value}, fetch_list=[out], use_prune=True)

    return [run(X, y), run(np.ones((2, 5), "float32"), y), run(np.ones((2, 5), "float32"), z)]


def a_flat_array(fluid):
    x = fluid.data("x", [None, 4])
    y = fluid.layers.scale(x, 2.0)
    return refused(_exe(fluid).run, feed={"x": np.ones(8, "float32")}, fetch_list=[y])


def containers_of_feeds(fluid):
    _, y, _ = _net(fluid)
    exe = _exe(fluid)

    def run(feed):
        return refused(exe.run, feed=feed, fetch_list=[y])

    return {
        "list": run([{"x": X}]),
        "tuple": run(({"x": X},)),
        "two": run([{"x": X}, {"x": X}]),
        "array": run(X),
        "text": run("x"),
        "surplus": run({"x": X, "surplus": X}),
        "missing": run({}),
        "none": run(None),
    }


def a_fed_parameter(fluid):
    _, y, _ = _net(fluid)
    exe = _exe(fluid)
    exe.run(feed={"x": X, "fc_0.w_0": np.ones((4, 3), "float32")}, fetch_list=[y])
    return [exe.run(feed={"x": X}, fetch_list=[y]), _value(fluid, "fc_0.w_0")]


def a_fed_value_between(fluid):
    x = fluid.data("x", [None, 4])
    h = fluid.layers.scale(x, 2.0)
    y = fluid.layers.scale(h, 10.0)
    exe = _exe(fluid)
    feed = {"x": X, h.name: np.ones((2, 4), "float32")}
    return [exe.run(feed=feed, fetch_list=[y]), exe.run(feed=feed, fetch_list=[y, h])]


def pruned_runs(fluid):
    x = fluid.data("x", [None, 4])
    z = fluid.data("z", [None, 4])
    y = fluid.layers.scale(x, 2.0)
    other = fluid.layers.scale(z, 3.0)
    exe = _exe(fluid)
    return [
        refused(exe.run, feed={"x": X}, fetch_list=[y]),
        refused(exe.run, feed={"x": X}, fetch_list=[y], use_prune=True),
        refused(exe.run, feed={"x": X}, fetch_list=[other], use_prune=True),
    ]


def a_pruned_training_step(fluid):
    _x, y, loss = _net(fluid)
    fluid.optimizer.SGD(0.5).minimize(loss)
    exe = _exe(fluid)
    before = _value(fluid, "fc_0.w_0")
    exe.run(feed={"x": X}, fetch_list=[y], use_prune=True)
    between = _value(fluid, "fc_0.w_0")
    exe.run(feed={"x": X}, fetch_list=[y])
    return [bool((before == between).all()), bool((before == _value(fluid, "fc_0.w_0")).all())]


def programs_that_do_not_run(fluid):
    exe = fluid.Executor(fluid.CPUPlace())
    kinds = []
    with warned(kinds):
        empty = exe.run(fluid.Program())
        by_default = exe.run()
    return [
        empty,
        by_default,
        kinds,
        refused(exe.run, "main"),
        refused(exe.run, 3),
        refused(exe.run, fluid.Program(), fetch_list=["x"]),
    ]


def without_startup(fluid):
    _, y, _ = _net(fluid)
    exe = fluid.Executor(fluid.CPUPlace())
    return refused(exe.run, feed={"x": X}, fetch_list=[y])


def a_closed_executor(fluid):
    _, y, _ = _net(fluid)
    exe = _exe(fluid)
    exe.close()
    exe.close()
    return refused(exe.run, feed={"x": X}, fetch_list=[y])


def what_stays_in_the_scope(fluid):
    _x, _y, loss = _net(fluid)
    fluid.optimizer.Momentum(0.1, 0.9).minimize(loss)
    kept = fluid.layers.scale(loss, 2.0)
    kept.persistable = True
    exe = _exe(fluid)
    exe.run(feed={"x": X}, fetch_list=[loss])
    names = sorted(v.name for v in fluid.default_main_program().list_vars())
    scope = fluid.global_scope()
    return {name: scope.find_var(name) is not None for name in names}


def another_scope(fluid):
    _, y, _ = _net(fluid)
    exe = fluid.Executor(fluid.CPUPlace())
    mine = fluid.core.Scope()
    exe.run(fluid.default_startup_program(), scope=mine)
    return [
        mine.find_var("fc_0.w_0") is not None,
        fluid.global_scope().find_var("fc_0.w_0"),
        refused(exe.run, feed={"x": X}, fetch_list=[y]),
        exe.run(feed={"x": X}, fetch_list=[y], scope=mine),
    ]


def startup_again(fluid):
    _, _y, loss = _net(fluid)
    fluid.optimizer.SGD(0.5).minimize(loss)
    exe = _exe(fluid)
    first = _value(fluid, "fc_0.w_0")
    exe.run(feed={"x": X})
    second = _value(fluid, "fc_0.w_0")
    exe.run(fluid.default_startup_program())
    return [first, second, _value(fluid, "fc_0.w_0")]


def a_program_that_changes(fluid):
    _x, y, _ = _net(fluid)
    exe = _exe(fluid)
    first = exe.run(feed={"x": X}, fetch_list=[y])
    z = fluid.layers.scale(y, 10.0)
    second = exe.run(feed={"x": X}, fetch_list=[y, z])
    fluid.default_main_program().global_block().ops[-1]._set_attr("scale", 100.0)
    return [first, second, exe.run(feed={"x": X}, fetch_list=[z])]


def no_rows(fluid):
    x = fluid.data("x", [None, 4])
    y = fluid.layers.fc(x, 3)
    return refused(_exe(fluid).run, feed={"x": np.zeros((0, 4), "float32")}, fetch_list=[y])


def not_a_number(fluid):
    x = fluid.data("x", [None, 2])
    y = fluid.layers.log(x)
    z = fluid.layers.elementwise_div(x, x)
    feed = {"x": np.array([[0.0, -1.0]], "float32")}
    return _exe(fluid).run(feed=feed, fetch_list=[y, z])


def an_increment_of_what_is_fed(fluid):
    x = fluid.layers.data("x", [1], append_batch_size=False)
    fluid.layers.increment(x, 5.0)
    fed = np.array([1.0], "float32")
    out = _exe(fluid).run(feed={"x": fed}, fetch_list=[x])
    return [out, fed]


def a_view_of_a_parameter_before_its_update(fluid):
    x = fluid.data("x", [None, 4])
    loss = fluid.layers.mean(fluid.layers.fc(x, 3, bias_attr=False))
    flat = fluid.layers.reshape(fluid.default_main_program().global_block().var("fc_0.w_0"), [12])
    fluid.optimizer.SGD(0.5).minimize(loss)
    exe = _exe(fluid)
    before = _value(fluid, "fc_0.w_0")
    got, after = exe.run(feed={"x": X}, fetch_list=[flat, "fc_0.w_0"])
    return [before, got, after]


def a_copied_parameter(fluid):
    x = fluid.data("x", [None, 4])
    loss = fluid.layers.mean(fluid.layers.fc(x, 3, bias_attr=False))
    copy = fluid.layers.assign(fluid.default_main_program().global_block().var("fc_0.w_0"))
    fluid.optimizer.SGD(0.5).minimize(loss)
    late = fluid.layers.assign(fluid.default_main_program().global_block().var("fc_0.w_0"))
    return _exe(fluid).run(feed={"x": X}, fetch_list=[copy, late])


def counters(fluid):
    step = fluid.layers.autoincreased_step_counter()
    total = fluid.layers.create_global_var([1], 0.0, "float32", persistable=True, name="total")
    fluid.layers.sums([total, fluid.layers.cast(step, "float32")], out=total)
    exe = _exe(fluid)
    return [exe.run(fetch_list=[step, total]) for _ in range(4)]


def a_program_with_feed_and_fetch_operators(fluid):
    _, y, _ = _net(fluid)
    exe = _exe(fluid)
    fluid.io.save_inference_model("model", ["x"], [y], exe)
    program, _feeds, targets = fluid.io.load_inference_model("model", exe)
    run = exe.run
    return {
        "right": run(program, feed={"x": X}, fetch_list=targets),
        "missing": refused(run, program, feed={}, fetch_list=targets),
        "surplus": refused(run, program, feed={"x": X, "z": X}, fetch_list=targets),
    }


def caches(fluid):
    _, y, _ = _net(fluid)
    exe = _exe(fluid)
    return [exe.run(feed={"x": X}, fetch_list=[y], use_program_cache=True) for _ in range(2)]


def compiled_without_copies(fluid):
    _, y, loss = _net(fluid)
    exe = _exe(fluid)
    compiled = fluid.CompiledProgram(fluid.default_main_program())
    return [exe.run(compiled, feed={"x": X}, fetch_list=[y, loss])]


def strings_of_dtypes(fluid):
    x = fluid.data("x", [None, 2], "int64")
    y = fluid.layers.cast(x, "float64")
    b = fluid.layers.cast(x, "bool")
    return _exe(fluid).run(feed={"x": np.array([[0, 2]])}, fetch_list=[x, y, b])


def updates_in_a_fetch_list(fluid):
    x = fluid.data("x", [None, 4])
    one = fluid.layers.mean(fluid.layers.fc(x, 3))
    two = fluid.layers.mean(fluid.layers.fc(x, 3))
    step = fluid.layers.autoincreased_step_counter()
    first = fluid.optimizer.SGD(0.5).minimize(one)
    second = fluid.optimizer.Adam(fluid.layers.exponential_decay(0.5, 1, 0.5)).minimize(two)
    exe = _exe(fluid)
    found = []
    for fetch in ([one, first], [second, two], [second, two, first], [second[0]], [first[0][0]]):
        values = exe.run(feed={"x": X}, fetch_list=fetch)
        names = "fc_0.w_0", "fc_1.w_0", "@LR_DECAY_COUNTER@", step.name
        found.append([values, [_value(fluid, name) for name in names]])
    return found


def graph_attention_with_dropout(fluid):
    """Attention over the edges of a graph by their end, with dropout of features and of weights."""
    layers = fluid.layers
    rng = np.random.RandomState(0)
    ends = np.sort(rng.randint(0, 12, 40))
    nodes, counts = np.unique(ends, return_counts=True)
    feed = {
        "x": rng.rand(12, 9).astype("float32"),
        "start": rng.randint(0, 12, 40),
        "end": ends,
        "node": nodes,
        "lod": np.concatenate([[0], np.cumsum(counts)]).astype("int32"),
        "label": rng.randint(0, 3, (12, 1)),
    }
    x, label = fluid.data("x", [12, 9]), fluid.data("label", [None, 1], "int64")
    start, end, node = (fluid.data(name, [None], "int64") for name in ("start", "end", "node"))
    lod = fluid.data("lod", [None], "int32")

    def drop(value):
        return layers.dropout(value, 0.6, dropout_implementation="upscale_in_train")

    def attend(features, width, heads, name):
        projected = layers.fc(drop(features), width * heads, bias_attr=False, name=name)
        by_head = layers.reshape(projected, [-1, heads, width])
        scores = []
        for side in ("left", "right"):
            weight = layers.create_parameter([heads, width], "float32", name=name + side)
            scores.append(layers.reduce_sum(by_head * weight, -1))
        score = layers.gather(scores[0], start) + layers.gather(scores[1], end)
        score = layers.lod_reset(layers.leaky_relu(score, alpha=0.2), lod)
        greatest = layers.sequence_expand_as(layers.sequence_pool(score, "max"), score)
        power = layers.exp(score - greatest)
        share = power / layers.sequence_expand_as(layers.sequence_pool(power, "sum"), power)
        sent = layers.reshape(layers.gather(projected, start), [-1, heads, width])
        sent = layers.reshape(sent * drop(layers.reshape(share, [-1, heads, 1])), [-1, heads * width])
        received = layers.sequence_pool(layers.lod_reset(sent, lod), "sum")
        zeros = layers.fill_constant([12, width * heads], "float32", 0.0)
        return layers.elu(layers.scatter(zeros, node, received))

    out = attend(attend(x, 4, 2, "first"), 3, 1, "second")
    loss = layers.mean(layers.softmax_with_cross_entropy(out, label))
    decay = fluid.regularizer.L2Decay(5e-4)
    fluid.optimizer.Adam(0.05, regularization=decay).minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    return [exe.run(feed=feed, fetch_list=[loss])[0] for _ in range(4)]


def moving_averages_applied_twice(fluid):
    x = fluid.data("x", [None, 5])
    cost = fluid.layers.mean(fluid.layers.fc(x, 2, param_attr=fluid.initializer.Constant(0.5)))
    test = fluid.default_main_program().clone(for_test=True)
    fluid.optimizer.SGD(0.1).minimize(cost)
    steps = fluid.layers.cast(fluid.layers.autoincreased_step_counter(), "float32")
    average = fluid.optimizer.ExponentialMovingAverage(0.9, thres_steps=steps)
    average.update()
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    feed = {"x": np.linspace(0, 1, 15, dtype="float32").reshape(3, 5)}
    found = []
    for _ in range(2):
        for _ in range(2):
            exe.run(feed=feed)
        with average.apply(exe):
            found.append(exe.run(test, feed=feed, fetch_list=[cost])[0])
        with average.apply(exe, need_restore=False):
            found.append(exe.run(test, feed=feed, fetch_list=[cost])[0])
        average.restore(exe)
    return [found, average.apply_program]
