"""The nets in Fluid's interface, for Fluid 1.8.5 (Python 3.7) and for this package."""

import data
import numpy as np


def prepare(net, fluid, place=None):
    """Return a function that trains one step and returns the loss; without a place on a CPU."""
    main, startup, loss = _build(net, fluid)
    exe, scope = fluid.Executor(place or fluid.CPUPlace()), fluid.core.Scope()
    batch = data.make_batch(net)
    if net == "lstm":
        lengths = [[data.STEPS] * 32]
        batch["x"] = fluid.create_lod_tensor(batch["x"], lengths, fluid.CPUPlace())
    with fluid.scope_guard(scope):
        exe.run(startup)

    def step():
        return exe.run(main, feed=batch, fetch_list=[loss], scope=scope, use_program_cache=True)[0]

    return step


def draw_parameters(net, fluid):
    """Return the initial parameters of a net, arrays in the order in which it creates them."""
    main, startup, _ = _build(net, fluid)
    scope = fluid.core.Scope()
    fluid.Executor(fluid.CPUPlace()).run(startup, scope=scope)
    return [np.array(scope.find_var(p.name).get_tensor()) for p in main.global_block().all_parameters()]


def _build(net, fluid):
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 5
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        loss, optimizer = NETS[net](fluid, fluid.layers)
        if optimizer is not None:
            optimizer.minimize(loss)
    return main, startup, loss


def _classify(layers, x, y, classes):
    guess = layers.fc(x, classes, act="softmax")
    return layers.mean(layers.cross_entropy(guess, y))


def fit_a_line(fluid, layers):
    x, y = fluid.data("x", [None, 13]), fluid.data("y", [None, 1])
    loss = layers.mean(layers.square_error_cost(layers.fc(x, 1), y))
    return loss, fluid.optimizer.SGD(0.01)


def chain(fluid, layers):
    x = fluid.data("x", [None, 8])
    for _ in range(1000):
        x = layers.scale(x, 1.0001)
    return x, None


def mlp(fluid, layers):
    x, y = fluid.data("x", [None, 784]), fluid.data("y", [None, 1], "int64")
    hidden = layers.fc(layers.fc(x, 200, act="relu"), 200, act="relu")
    return _classify(layers, hidden, y, 10), fluid.optimizer.Adam(1e-3)


def lenet(fluid, layers):
    x, y = fluid.data("x", [None, 1, 28, 28]), fluid.data("y", [None, 1], "int64")
    for filters in (20, 50):
        x = fluid.nets.simple_img_conv_pool(x, filters, 5, 2, 2, act="relu")
    return _classify(layers, x, y, 10), fluid.optimizer.Adam(1e-3)


def word2vec(fluid, layers):
    words = [fluid.data("w" + str(i), [None, 1], "int64") for i in range(4)]
    y = fluid.data("y", [None, 1], "int64")
    rows = [layers.embedding(w, [2073, 32], param_attr="table") for w in words]
    hidden = layers.fc(layers.concat(rows, 1), 256, act="sigmoid")
    return _classify(layers, hidden, y, 2073), fluid.optimizer.SGD(1e-2)


def resnet20(fluid, layers):
    def convolve(x, filters, size, stride, act=None):
        x = layers.conv2d(x, filters, size, stride, (size - 1) // 2, bias_attr=False)
        return layers.batch_norm(x, act=act)

    x, y = fluid.data("x", [None, 3, 32, 32]), fluid.data("y", [None, 1], "int64")
    x = convolve(x, 16, 3, 1, "relu")
    for filters in (16, 32, 64):
        for block in range(3):
            stride = 2 if filters > 16 and block == 0 else 1
            inner = convolve(convolve(x, filters, 3, stride, "relu"), filters, 3, 1)
            short = convolve(x, filters, 1, 2) if stride == 2 else x
            x = layers.elementwise_add(inner, short, act="relu")
    x = layers.pool2d(x, 8, "avg", global_pooling=True)
    return _classify(layers, x, y, 10), fluid.optimizer.Momentum(0.1, 0.9)


def lstm(fluid, layers):
    x = fluid.data("x", [None, 128], lod_level=1)
    y = fluid.data("y", [None, 1], "int64")
    for _ in range(2):
        x, _ = layers.dynamic_lstm(layers.fc(x, 512), 512, use_peepholes=False)
    return _classify(layers, layers.sequence_last_step(x), y, 10), fluid.optimizer.Adam(1e-3)


def encoder(fluid, layers):
    width, heads, length = 128, 4, 32

    def split(x):
        return layers.transpose(layers.reshape(x, [0, 0, heads, width // heads]), [0, 2, 1, 3])

    x = fluid.data("x", [None, length], "int64")
    y = fluid.data("y", [None, 1], "int64")
    x = fluid.embedding(x, [1000, width])
    q, k, v = (split(layers.fc(x, width, num_flatten_dims=2)) for _ in range(3))
    weights = layers.softmax(layers.matmul(q, k, transpose_y=True, alpha=(width // heads) ** -0.5))
    mixed = layers.transpose(layers.matmul(weights, v), [0, 2, 1, 3])
    mixed = layers.fc(layers.reshape(mixed, [0, 0, width]), width, num_flatten_dims=2)
    x = layers.layer_norm(x + mixed, begin_norm_axis=2)
    inner = layers.fc(x, 4 * width, num_flatten_dims=2, act="relu")
    x = layers.layer_norm(x + layers.fc(inner, width, num_flatten_dims=2), begin_norm_axis=2)
    guess = layers.fc(layers.reshape(x, [-1, width]), 1000)
    return layers.mean(layers.softmax_with_cross_entropy(guess, y)), fluid.optimizer.Adam(1e-3)


def wide_deep(fluid, layers):
    x, y = fluid.data("x", [None, 13]), fluid.data("y", [None, 1])
    ids = fluid.data("ids", [None, data.SLOTS], "int64")
    wide = fluid.embedding(ids, [data.IDS, 1], is_sparse=True)
    deep = fluid.embedding(ids, [data.IDS, 16], is_sparse=True)
    hidden = layers.concat([x, layers.reshape(deep, [-1, 16 * data.SLOTS])], 1)
    for size in (256, 128):
        hidden = layers.fc(hidden, size, act="relu")
    guess = layers.fc(hidden, 1) + layers.reduce_sum(wide, 1)
    loss = layers.mean(layers.sigmoid_cross_entropy_with_logits(guess, y))
    return loss, fluid.optimizer.Adam(1e-3, lazy_mode=True)


def bert(fluid, layers):
    """BERT base without its pretraining heads: 12 layers of width 768, dropout left out."""
    width, heads, length = 768, 12, 64

    def dense(x, size, act=None):
        return layers.fc(x, size, num_flatten_dims=2, act=act)

    def split(x):
        return layers.transpose(layers.reshape(x, [0, 0, heads, width // heads]), [0, 2, 1, 3])

    ids, y = fluid.data("x", [None, length], "int64"), fluid.data("y", [None, 1], "int64")
    places = layers.create_parameter([length, width], "float32", name="places")
    x = layers.layer_norm(fluid.embedding(ids, [30000, width]) + places, begin_norm_axis=2)
    for _ in range(12):
        q, k, v = (split(dense(x, width)) for _ in range(3))
        weights = layers.softmax(layers.matmul(q, k, transpose_y=True, alpha=(width // heads) ** -0.5))
        mixed = layers.transpose(layers.matmul(weights, v), [0, 2, 1, 3])
        x = layers.layer_norm(x + dense(layers.reshape(mixed, [0, 0, width]), width), begin_norm_axis=2)
        x = layers.layer_norm(x + dense(dense(x, 4 * width, "gelu"), width), begin_norm_axis=2)
    first = layers.reshape(layers.slice(x, [1], [0], [1]), [-1, width])
    guess = layers.fc(first, 2)
    return layers.mean(layers.softmax_with_cross_entropy(guess, y)), fluid.optimizer.Adam(1e-4)


def resnet50(fluid, layers):
    def convolve(x, filters, size, stride=1, act=None):
        x = layers.conv2d(x, filters, size, stride, (size - 1) // 2, bias_attr=False)
        return layers.batch_norm(x, act=act)

    x, y = fluid.data("x", [None, 3, 224, 224]), fluid.data("y", [None, 1], "int64")
    x = layers.pool2d(convolve(x, 64, 7, 2, "relu"), 3, "max", 2, 1)
    for stage, blocks in enumerate((3, 4, 6, 3)):
        filters = 64 * 2**stage
        for block in range(blocks):
            stride = 2 if stage and not block else 1
            inner = convolve(convolve(x, filters, 1, 1, "relu"), filters, 3, stride, "relu")
            short = x if block else convolve(x, 4 * filters, 1, stride)
            x = layers.elementwise_add(convolve(inner, 4 * filters, 1), short, act="relu")
    x = layers.pool2d(x, 7, "avg", global_pooling=True)
    return _classify(layers, x, y, 1000), fluid.optimizer.Momentum(0.01, 0.9)


NETS = {f.__name__: f for f in (fit_a_line, chain, mlp, lenet, word2vec, resnet20, lstm, encoder, wide_deep)}
NETS.update({f.__name__: f for f in (bert, resnet50)})
