"""Two copies of the batch (CPU_NUM=2): losses, parameters, fetches."""

from __future__ import annotations

import numpy as np

from tests.alike.recording import refused


def _net(fluid, optimizer, sparse=False):
    x = fluid.data("x", [None, 4])
    label = fluid.data("l", [None, 1], "int64")
    h = fluid.layers.fc(x, 5, act="tanh")
    if sparse:
        h = h + fluid.layers.embedding(label, [3, 5], is_sparse=True)
    prediction = fluid.layers.fc(h, 3, act="softmax")
    loss = fluid.layers.mean(fluid.layers.cross_entropy(prediction, label))
    optimizer.minimize(loss)
    return prediction, loss


def _feed(step, rows=4):
    x = np.sin(np.arange(rows * 4) + step * 3).astype("float32").reshape(rows, 4)
    return {"x": x, "l": (np.arange(rows) + step).reshape(rows, 1) % 3}


def _values(fluid):
    scope = fluid.global_scope()
    return {
        v.name: np.array(scope.find_var(v.name).get_tensor())
        for v in fluid.default_main_program().list_vars()
        if fluid.io.is_persistable(v)
    }


def _trained(fluid, optimizer, rows=4, sparse=False, feeds=None, **options):
    _, loss = _net(fluid, optimizer, sparse)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    main = fluid.default_main_program()
    options.setdefault("places", fluid.cpu_places(2))
    compiled = fluid.CompiledProgram(main).with_data_parallel(loss_name=loss.name, **options)
    losses = [
        exe.run(compiled, feed=feeds(step) if feeds else _feed(step, rows), fetch_list=[loss])[0]
        for step in range(3)
    ]
    return {"losses": losses, "values": _values(fluid)}


def sgd(fluid):
    return _trained(fluid, fluid.optimizer.SGD(0.1))


def adam(fluid):
    return _trained(fluid, fluid.optimizer.Adam(0.1))


def momentum_with_weight_decay(fluid):
    return _trained(fluid, fluid.optimizer.Momentum(0.1, 0.9, regularization=fluid.regularizer.L2Decay(0.1)))


def one_place(fluid):
    return _trained(fluid, fluid.optimizer.Momentum(0.1, 0.9), places=fluid.cpu_places(1))


def by_environment(fluid):
    return _trained(fluid, fluid.optimizer.SGD(0.1), places=None)


def an_odd_batch(fluid):
    return _trained(fluid, fluid.optimizer.SGD(0.1), rows=5)


def a_schedule(fluid):
    return _trained(fluid, fluid.optimizer.SGD(fluid.layers.exponential_decay(0.5, 1, 0.5)))


def a_sparse_table(fluid):
    return _trained(fluid, fluid.optimizer.SGD(0.1), sparse=True)


def a_sparse_table_with_adam(fluid):
    return _trained(fluid, fluid.optimizer.Adam(0.1), sparse=True)


def a_clip_by_the_global_norm(fluid):
    clip = fluid.clip.GradientClipByGlobalNorm(0.05)
    return _trained(fluid, fluid.optimizer.SGD(0.1, grad_clip=clip))


def a_feed_for_each_copy(fluid):
    return _trained(fluid, fluid.optimizer.SGD(0.1), feeds=lambda step: [_feed(step, 2), _feed(step + 9, 2)])


def feeds_of_unequal_size(fluid):
    return _trained(fluid, fluid.optimizer.SGD(0.1), feeds=lambda step: [_feed(step, 1), _feed(step + 9, 3)])


def unscaled_gradients(fluid):
    strategy = fluid.BuildStrategy()
    strategy.gradient_scale_strategy = fluid.BuildStrategy.GradientScaleStrategy.One
    return _trained(fluid, fluid.optimizer.SGD(0.1), build_strategy=strategy)


def reduced_gradients(fluid):
    strategy = fluid.BuildStrategy()
    strategy.reduce_strategy = fluid.BuildStrategy.ReduceStrategy.Reduce
    return _trained(fluid, fluid.optimizer.Momentum(0.1, 0.9), build_strategy=strategy)


def fetches(fluid):
    prediction, loss = _net(fluid, fluid.optimizer.SGD(0.1))
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    main = fluid.default_main_program()
    compiled = fluid.CompiledProgram(main).with_data_parallel(loss.name, places=fluid.cpu_places(2))

    def run(fetch, **options):
        return exe.run(compiled, feed=_feed(0), fetch_list=fetch, **options)

    return {
        "loss": run([loss]),
        "rows": [item.shape for item in run([prediction])],
        "parameter": [item.shape for item in run(["fc_0.b_0"])],
        "apart": run([loss], return_merged=False),
        "tensors": run([loss], return_numpy=False),
        "too_small": refused(exe.run, compiled, feed=_feed(0, 1), fetch_list=[loss]),
        "too_many": refused(exe.run, compiled, feed=[_feed(0)] * 3, fetch_list=[loss]),
        "unknown": refused(run, ["nobody"]),
    }


def the_older_way(fluid):
    _, loss = _net(fluid, fluid.optimizer.SGD(0.1))
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    parallel = fluid.ParallelExecutor(use_cuda=False, loss_name=loss.name)
    losses = [parallel.run([loss.name], feed=_feed(step))[0] for step in range(3)]
    return {"losses": losses, "count": parallel.device_count, "values": _values(fluid)}


def a_program_for_test(fluid):
    _prediction, loss = _net(fluid, fluid.optimizer.SGD(0.1))
    main = fluid.default_main_program()
    test = main.clone(for_test=True)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    places = fluid.cpu_places(2)
    training = fluid.CompiledProgram(main).with_data_parallel(loss.name, places=places)
    testing = fluid.CompiledProgram(test).with_data_parallel(share_vars_from=training, places=places)
    exe.run(training, feed=_feed(0), fetch_list=[loss])
    return exe.run(testing, feed=_feed(1), fetch_list=[loss])


def batch_norm(fluid):
    x = fluid.data("x", [None, 4])
    h = fluid.layers.fc(x, 3)
    h = fluid.layers.batch_norm(h)
    loss = fluid.layers.mean(fluid.layers.square(h - 1.0))
    fluid.optimizer.SGD(0.1).minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    main = fluid.default_main_program()
    compiled = fluid.CompiledProgram(main).with_data_parallel(loss.name, places=fluid.cpu_places(2))
    losses = [exe.run(compiled, feed={"x": _feed(s, 8)["x"]}, fetch_list=[loss])[0] for s in range(3)]
    return {"losses": losses, "values": _values(fluid)}


def wrong_programs(fluid):
    return [refused(fluid.CompiledProgram, "main"), refused(fluid.CompiledProgram, None)]


def counters(fluid):
    step = fluid.layers.autoincreased_step_counter()
    x = fluid.data("x", [None, 4])
    loss = fluid.layers.mean(fluid.layers.fc(x, 3) * fluid.layers.cast(step, "float32"))
    fluid.optimizer.SGD(0.1).minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    main = fluid.default_main_program()
    compiled = fluid.CompiledProgram(main).with_data_parallel(loss.name, places=fluid.cpu_places(2))
    losses = [exe.run(compiled, feed={"x": _feed(s)["x"]}, fetch_list=[loss, step]) for s in range(3)]
    return {"losses": losses, "values": _values(fluid)}


def a_fetched_parameter_after_its_update(fluid):
    _prediction, loss = _net(fluid, fluid.optimizer.SGD(0.5))
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    main = fluid.default_main_program()
    compiled = fluid.CompiledProgram(main).with_data_parallel(loss.name, places=fluid.cpu_places(2))
    return exe.run(compiled, feed=_feed(0), fetch_list=["fc_1.b_0", loss])


def counts_of_copies_that_share(fluid):
    prediction = fluid.data("p", [None, 2])
    label = fluid.data("l", [None, 1], "int64")
    auc, _, _ = fluid.layers.auc(prediction, label, num_thresholds=10, slide_steps=0)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    build, one = fluid.BuildStrategy(), fluid.ExecutionStrategy()
    build.reduce_strategy = fluid.BuildStrategy.ReduceStrategy.Reduce
    one.num_threads = 1  # one copy after the other, in the real one too
    compiled = fluid.CompiledProgram(fluid.default_main_program()).with_data_parallel(
        build_strategy=build, exec_strategy=one, places=fluid.cpu_places(2)
    )
    p = np.linspace(0.05, 0.95, 8, dtype="float32")
    feed = {"p": np.stack([1 - p, p], 1), "l": np.array([0, 1, 0, 1, 1, 0, 1, 1]).reshape(8, 1)}
    aucs = [exe.run(compiled, feed=feed, fetch_list=[auc])[0] for _ in range(2)]
    return [[np.sort(each) for each in aucs], {k: v for k, v in _values(fluid).items() if v.any()}]
