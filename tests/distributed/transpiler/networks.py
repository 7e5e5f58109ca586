"""Networks to transpile, as plain descriptions, built with the `fluid` that is given: ours or the real one.

A case is {"network", "args", "optimizer", "pservers", "trainers", "sync", "config"} of plain values (see
CASES in `cases.py`). Keeps to what Python 3.7 understands.
"""


def mlp(fluid, sizes=(128,), width=130, act="tanh", **param):
    x = fluid.data(name="x", shape=[None, width], dtype="float32")
    y = fluid.data(name="y", shape=[None, 1], dtype="float32")
    for size in sizes:
        x = fluid.layers.fc(input=x, size=size, act=act, param_attr=attr(fluid, **param))
    predicted = fluid.layers.fc(input=x, size=1)
    return fluid.layers.mean(fluid.layers.square_error_cost(input=predicted, label=y))


def conv_bn(fluid, filters=6, classes=10):
    image = fluid.data(name="img", shape=[None, 1, 28, 28], dtype="float32")
    label = fluid.data(name="label", shape=[None, 1], dtype="int64")
    for _ in range(2):
        image = fluid.nets.simple_img_conv_pool(image, filters, 5, 2, 2, act="relu")
        image = fluid.layers.batch_norm(image)
    hidden = fluid.layers.fc(input=image, size=300, act="relu")
    hidden = fluid.layers.dropout(hidden, 0.5)
    scores = fluid.layers.fc(input=hidden, size=classes, act="softmax")
    return fluid.layers.mean(fluid.layers.cross_entropy(input=scores, label=label))


def word2vec(fluid, is_sparse=False, words=2000, width=16, old=True):
    """The old embedding gives (N, width) for ids of shape (N, 1), the new one (N, 1, width)."""
    names = ("firstw", "secondw", "thirdw")
    shape = [None, 1]
    ids = [fluid.data(name=n, shape=shape, dtype="int64") for n in names]
    label = fluid.data(name="nextw", shape=[None, 1], dtype="int64")
    embedding = fluid.layers.embedding if old else fluid.embedding
    found = [embedding(i, size=[words, width], is_sparse=is_sparse, param_attr="shared_w") for i in ids]
    hidden = fluid.layers.fc(input=fluid.layers.concat(found, axis=-1), size=24, act="sigmoid")
    scores = fluid.layers.fc(input=hidden, size=words, act="softmax")
    return fluid.layers.mean(fluid.layers.cross_entropy(input=scores, label=label))


def lstm(fluid, is_sparse=False, size=64):
    words = fluid.data(name="words", shape=[None, 1], dtype="int64", lod_level=1)
    label = fluid.data(name="label", shape=[None, 1], dtype="int64")
    found = fluid.layers.embedding(input=words, size=[800, 20], is_sparse=is_sparse)
    gates = fluid.layers.fc(input=found, size=4 * size)
    hidden, _ = fluid.layers.dynamic_lstm(input=gates, size=4 * size)
    last = [fluid.layers.sequence_pool(input=one, pool_type="max") for one in (gates, hidden)]
    scores = fluid.layers.fc(input=last, size=2, act="softmax")
    return fluid.layers.mean(fluid.layers.cross_entropy(input=scores, label=label))


def wide_deep(fluid, slots=3, rows=3001, width=8, is_distributed=False, padding=None):
    y = fluid.data(name="y", shape=[None, 1], dtype="float32")
    dense = fluid.data(name="x", shape=[None, 13], dtype="float32")
    pooled = []
    for slot in range(slots):
        ids = fluid.data(name=f"ids{slot}", shape=[None, 1], dtype="int64", lod_level=1)
        found = fluid.layers.embedding(
            ids,
            size=[rows, width],
            is_sparse=True,
            is_distributed=is_distributed,
            padding_idx=padding,
            param_attr=fluid.ParamAttr(name="table" if is_distributed else f"table{slot % 2}"),
        )
        pooled.append(fluid.layers.sequence_pool(found, "sum"))
    hidden = fluid.layers.fc(input=[*pooled, dense], size=400, act="relu")
    predicted = fluid.layers.fc(input=hidden, size=1, act="sigmoid")
    return fluid.layers.mean(fluid.layers.square_error_cost(input=predicted, label=y))


def frozen(fluid):
    """Some parameters are not trained, some at another pace."""
    x = fluid.data(name="x", shape=[None, 130], dtype="float32")
    y = fluid.data(name="y", shape=[None, 1], dtype="float32")
    still = fluid.ParamAttr(name="still", trainable=False)
    slow = fluid.ParamAttr(name="slow", learning_rate=0.1)
    hidden = fluid.layers.fc(input=x, size=100, param_attr=still)
    hidden = fluid.layers.fc(input=hidden, size=190, param_attr=slow)
    predicted = fluid.layers.fc(input=hidden, size=1)
    return fluid.layers.mean(fluid.layers.square_error_cost(input=predicted, label=y))


def tagger(fluid):
    """Two tables, a recurrent layer, parameters at their own pace, a loss that is not a mean of errors."""
    ids = fluid.data(name="ids", shape=[None, 1], dtype="int64", lod_level=1)
    tags = fluid.data(name="tags", shape=[None, 1], dtype="int64", lod_level=1)
    found = fluid.layers.embedding(ids, size=[500, 32], is_sparse=True, param_attr="word_table")
    before = fluid.layers.embedding(tags, size=[20, 32], param_attr="tag_table")
    gates = fluid.layers.fc([found, before], size=3 * 64)
    scores = fluid.layers.fc(fluid.layers.dynamic_gru(gates, size=64), size=7)
    slow = fluid.ParamAttr(name="crfw", learning_rate=0.3)
    return fluid.layers.mean(fluid.layers.linear_chain_crf(scores, tags, param_attr=slow))


def loop(fluid):
    """A recurrent network written as a block, whose parameters are read inside it, and a metric."""
    ids = fluid.data(name="ids", shape=[None, 1], dtype="int64", lod_level=1)
    label = fluid.data(name="label", shape=[None, 1], dtype="int64")
    found = fluid.layers.embedding(ids, size=[1000, 32], is_sparse=True)
    rnn = fluid.layers.DynamicRNN()
    with rnn.block():
        word = rnn.step_input(found)
        memory = rnn.memory(shape=[100], value=0.0)
        hidden = fluid.layers.fc([word, memory], size=100, act="tanh")
        rnn.update_memory(memory, hidden)
        rnn.output(hidden)
    last = fluid.layers.sequence_last_step(rnn())
    scores = fluid.layers.fc(last, 2, act="softmax")
    fluid.layers.auc(input=scores, label=label)
    return fluid.layers.mean(fluid.layers.cross_entropy(scores, label))


def sampled(fluid, tree=False):
    """A loss over sampled classes, whose weights are rows of a table too."""
    ids = fluid.data(name="ids", shape=[None, 1], dtype="int64")
    label = fluid.data(name="label", shape=[None, 1], dtype="int64")
    hidden = fluid.layers.fc(fluid.layers.embedding(ids, size=[1000, 32], is_sparse=True), size=64)
    if tree:
        return fluid.layers.mean(fluid.layers.hsigmoid(hidden, label, num_classes=1000))
    return fluid.layers.mean(fluid.layers.nce(hidden, label, num_total_classes=1000, num_neg_samples=5))


def attr(fluid, init=None, l2=None, rate=None):
    given = {}
    if init is not None:
        given["initializer"] = getattr(fluid.initializer, init)()
    if l2 is not None:
        given["regularizer"] = fluid.regularizer.L2Decay(l2)
    if rate is not None:
        given["learning_rate"] = rate
    return fluid.ParamAttr(**given) if given else None


NETWORKS = {f.__name__: f for f in (mlp, conv_bn, word2vec, lstm, wide_deep, frozen, tagger, loop, sampled)}


def optimizer(fluid, name="SGD", rate=0.1, l2=None, l1=None, clip=None, old_clip=None, **more):
    """`rate` is a number, or [schedule, its arguments]; `average` is for `minimize`."""
    more.pop("average", None)
    if isinstance(rate, list):
        rate = getattr(fluid.layers, rate[0])(*rate[1])
    if l2 is not None:
        more["regularization"] = fluid.regularizer.L2Decay(l2)
    if l1 is not None:
        more["regularization"] = fluid.regularizer.L1Decay(l1)
    if clip is not None:
        more["grad_clip"] = getattr(fluid.clip, clip[0])(*clip[1])
    if old_clip is not None:
        fluid.clip.set_gradient_clip(getattr(fluid.clip, old_clip[0])(*old_clip[1]))
    return getattr(fluid.optimizer, name)(learning_rate=rate, **more)


def endpoints(case):
    return [f"127.0.0.1:{6174 + i}" for i in range(case.get("pservers", 2))]


def transpile_case(fluid, case, trainer_id=0, current=None):
    """Transpile the network of a case; return the transpiler, the main and the startup program."""
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = case.get("seed", 0)
    with fluid.unique_name.guard(), fluid.program_guard(main, startup):
        loss = NETWORKS[case["network"]](fluid, **case.get("args", {}))
        optimizer(fluid, **case.get("optimizer", {})).minimize(loss)
        if case.get("optimizer", {}).get("average"):
            fluid.optimizer.ModelAverage(0.15, min_average_window=2, max_average_window=4)
        config = fluid.DistributeTranspilerConfig()
        for key, value in case.get("config", []):
            setattr(config, key, value)
        made = fluid.DistributeTranspiler(config=config)
        made.transpile(
            trainer_id=trainer_id,
            program=main,
            startup_program=startup,
            pservers=",".join(endpoints(case)),
            trainers=case.get("trainers", 2),
            sync_mode=case.get("sync", True),
            current_endpoint=endpoints(case)[0] if current is None else current,
        )
    return made, main, startup


def roles(case):
    """Yield the roles of a case: (name, trainer id or None, endpoint or None)."""
    ids = sorted({0, case.get("trainers", 2) - 1})
    yield from ((f"trainer{i}", i, None) for i in ids)
    yield from ((f"pserver{i}", None, e) for i, e in enumerate(endpoints(case)))


def programs(fluid, case, fresh):
    """Return {role: (main, startup)} of a case; `fresh()` is called before each, as in a new process."""
    made = {}
    for name, trainer_id, endpoint in roles(case):
        fresh()
        if endpoint is None:
            transpiler, _, startup = transpile_case(fluid, case, trainer_id)
            made[name] = transpiler.get_trainer_program(wait_port=False), startup
        else:
            transpiler, _, _ = transpile_case(fluid, case, current=endpoint)
            made[name] = transpiler.get_pserver_programs(endpoint)
    return made


def overview(fluid, case, fresh):
    """Return Fluid's table of slices."""
    fresh()
    table = transpile_case(fluid, case)[1]._parameters_on_pservers
    found = [one for endpoint in endpoints(case) for one in table.get_distributed_vars_by_ep(endpoint)]
    return [
        [
            one.endpoint,
            one.origin.name,
            list(one.origin.shape),
            one.slice.name,
            list(one.slice.shape),
            bool(one.is_slice),
            one.block_id,
            one.offset,
            one.vtype,
        ]
        for one in found
    ]
