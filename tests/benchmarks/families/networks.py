"""Small networks in the manner of public models, in Fluid's interface: for Fluid 1.8.5 (Python 3.7) and us.

Each function builds a network and returns its loss, what it predicts and a batch.
"""

import numpy as np

LENGTHS = [9, 30, 14, 22, 5, 27, 18, 11]


def draw(*shape):
    return np.random.RandomState(sum(shape)).uniform(-1, 1, shape).astype("float32")


def draw_ids(count, *shape):
    return np.random.RandomState(sum(shape)).randint(0, count, shape).astype("int64")


def cut(fluid, rows):
    """Return rows as sequences of LENGTHS."""
    return fluid.create_lod_tensor(rows, [LENGTHS], fluid.CPUPlace())


def classify(fluid, features, classes, label):
    scores = fluid.layers.fc(features, classes)
    return fluid.layers.mean(fluid.layers.softmax_with_cross_entropy(scores, label)), scores


def mobile(fluid):
    """Inverted residuals with depthwise convolutions, squeeze and excitation, hard swish."""
    layers = fluid.layers

    def convolve(x, filters, size, stride=1, groups=1, act=None):
        x = layers.conv2d(x, filters, size, stride, size // 2, groups=groups, bias_attr=False)
        x = layers.batch_norm(x)
        return layers.hard_swish(x) if act == "hard_swish" else x

    x, label = fluid.data("x", [None, 3, 64, 64]), fluid.data("y", [None, 1], "int64")
    h = convolve(x, 16, 3, 2, act="hard_swish")
    for filters, stride in ((16, 1), (24, 2), (24, 1), (40, 2), (40, 1), (40, 1), (80, 2), (80, 1)):
        wide = convolve(h, h.shape[1] * 4, 1, act="hard_swish")
        wide = convolve(wide, wide.shape[1], 3, stride, wide.shape[1], act="hard_swish")
        pooled = layers.pool2d(wide, pool_type="avg", global_pooling=True)
        pooled = layers.conv2d(layers.conv2d(pooled, wide.shape[1] // 4, 1, act="relu"), wide.shape[1], 1)
        out = convolve(layers.elementwise_mul(wide, layers.hard_sigmoid(pooled), axis=0), filters, 1)
        h = h + out if stride == 1 and h.shape[1] == filters else out
    loss, scores = classify(fluid, layers.pool2d(h, pool_type="avg", global_pooling=True), 10, label)
    return loss, scores, {"x": draw(4, 3, 64, 64), "y": draw_ids(10, 4, 1)}


def generator(fluid):
    """Convolutions with reflected borders, residual blocks, transposed convolutions."""
    layers = fluid.layers

    def convolve(x, filters, stride=1):
        x = layers.conv2d(layers.pad2d(x, [1] * 4, "reflect"), filters, 3, stride, bias_attr=False)
        return layers.batch_norm(x)

    x = fluid.data("x", [None, 3, 64, 64])
    h = layers.relu(convolve(layers.relu(convolve(x, 16)), 32, 2))
    for _ in range(4):
        h = h + convolve(layers.relu(convolve(h, 32)), 32)
    h = layers.relu(layers.batch_norm(layers.conv2d_transpose(h, 16, filter_size=4, stride=2, padding=1)))
    out = layers.tanh(layers.conv2d(h, 3, 3, padding=1))
    return layers.mean(layers.abs(out - x)), out, {"x": draw(2, 3, 64, 64)}


def segmentation(fluid):
    """A small encoder and decoder whose halves are joined, a loss at every pixel."""
    layers = fluid.layers

    def twice(x, filters):
        for _ in range(2):
            x = layers.batch_norm(layers.conv2d(x, filters, 3, padding=1, bias_attr=False), act="relu")
        return x

    x, label = fluid.data("x", [None, 3, 64, 64]), fluid.data("y", [None, 64, 64, 1], "int64")
    one = twice(x, 16)
    two = twice(layers.pool2d(one, 2, "max", 2), 32)
    three = twice(layers.pool2d(two, 2, "max", 2), 64)
    h = twice(layers.concat([layers.resize_bilinear(three, scale=2.0), two], 1), 32)
    h = twice(layers.concat([layers.resize_bilinear(h, scale=2.0), one], 1), 16)
    scores = layers.transpose(layers.conv2d(h, 4, 1), [0, 2, 3, 1])
    loss = layers.mean(layers.softmax_with_cross_entropy(scores, label))
    return loss, scores, {"x": draw(2, 3, 64, 64), "y": draw_ids(4, 2, 64, 64, 1)}


def deformable(fluid):
    """An image warped by a computed grid, then a deformable convolution."""
    layers = fluid.layers
    x = fluid.data("x", [4, 16, 32, 32])
    x.stop_gradient = False  # Fluid ends with a signal in the gradient of grid_sampler without that of X
    grid = layers.affine_grid(layers.reshape(layers.fc(x, 6), [-1, 2, 3]), [4, 16, 32, 32])
    h = layers.grid_sampler(x, grid)
    moves, mask = layers.conv2d(h, 18, 3, padding=1), layers.sigmoid(layers.conv2d(h, 9, 3, padding=1))
    h = layers.deformable_conv(h, moves, mask, 16, 3, padding=1, im2col_step=4)
    return layers.mean(layers.square(h)), h, {"x": draw(4, 16, 32, 32)}


def tagger(fluid):
    """Gated units in both directions and a linear chain of labels."""
    layers = fluid.layers
    words = fluid.data("x", [None, 1], "int64", lod_level=1)
    label = fluid.data("y", [None, 1], "int64", lod_level=1)
    h = layers.embedding(words, [2000, 64])
    h = layers.concat([layers.dynamic_gru(layers.fc(h, 192), 64, is_reverse=way) for way in (False, True)], 1)
    scores, name = layers.fc(h, 20), fluid.ParamAttr("transition")
    loss = layers.mean(layers.linear_chain_crf(scores, label, name))
    rows = sum(LENGTHS)
    batch = {"x": cut(fluid, draw_ids(2000, rows, 1)), "y": cut(fluid, draw_ids(20, rows, 1))}
    return loss, layers.crf_decoding(scores, name), batch


def decoder(fluid):
    """A recurrent cell of the user's own in a DynamicRNN."""
    layers = fluid.layers
    words, label = fluid.data("x", [None, 1], "int64", lod_level=1), fluid.data("y", [None, 1], "int64")
    rnn = layers.DynamicRNN()
    rows = layers.embedding(words, [500, 64])
    with rnn.block():
        word, last = rnn.step_input(rows), rnn.memory(shape=[64], value=0.0)
        gate, new = layers.fc([word, last], 64, act="sigmoid"), layers.fc([word, last], 64, act="tanh")
        hidden = gate * last + (1 - gate) * new
        rnn.update_memory(last, hidden)
        rnn.output(hidden)
    loss, scores = classify(fluid, layers.sequence_last_step(rnn()), 10, label)
    return loss, scores, {"x": cut(fluid, draw_ids(500, sum(LENGTHS), 1)), "y": draw_ids(10, len(LENGTHS), 1)}


def paragraphs(fluid):
    """A loop over the paragraphs of texts: each a recurrent layer, and the share of every sentence."""
    layers = fluid.layers
    words = fluid.data("x", [None, 1], "int64", lod_level=2)
    rnn = layers.DynamicRNN()
    rows = layers.embedding(words, [500, 64])
    with rnn.block():
        h = layers.dynamic_gru(layers.fc(rnn.step_input(rows), 192), 64)
        share = layers.sequence_softmax(layers.fc(h, 1))
        rnn.output(layers.sequence_pool(layers.elementwise_mul(h, share, axis=0), "sum"))
    label = fluid.data("y", [None, 1], "int64")
    loss, scores = classify(fluid, layers.sequence_pool(rnn(), "max"), 10, label)
    counts = [2, 3, 2, 1]
    batch = fluid.create_lod_tensor(draw_ids(500, sum(LENGTHS), 1), [counts, LENGTHS], fluid.CPUPlace())
    return loss, scores, {"x": batch, "y": draw_ids(10, 4, 1)}


def sentence(fluid):
    """Long short-term memory in both directions along one sentence."""
    layers = fluid.layers
    words, label = fluid.data("x", [None, 1], "int64", lod_level=1), fluid.data("y", [None, 1], "int64")
    rows = layers.embedding(words, [2000, 128])
    both = [layers.dynamic_lstm(layers.fc(rows, 512), 512, is_reverse=way)[0] for way in (False, True)]
    loss, scores = classify(fluid, layers.sequence_pool(layers.concat(both, 1), "max"), 2, label)
    rows = fluid.create_lod_tensor(draw_ids(2000, 60, 1), [[60]], fluid.CPUPlace())
    return loss, scores, {"x": rows, "y": draw_ids(2, 1, 1)}


def beam(fluid):
    """Beam search of 20 words; only a layer beside it is trained."""
    layers = fluid.layers
    x = fluid.data("x", [None, 64])
    search = layers.BeamSearchDecoder(
        layers.GRUCell(64), 0, 1, beam_size=4,
        embedding_fn=lambda ids: fluid.embedding(ids, [500, 64], param_attr="words"),
        output_fn=lambda h: layers.fc(h, 500, len(h.shape) - 1, param_attr="out_w", bias_attr="out_b"),
    )  # fmt: skip
    found, _ = layers.dynamic_decode(search, inits=x, max_step_num=20)
    loss = layers.mean(layers.fc(x, 10))
    return loss, found, {"x": draw(4, 64)}


def ranking(fluid):
    """Factorization machine and deep layers over the embeddings of 26 fields, with sparse gradients."""
    layers = fluid.layers
    ids, label = fluid.data("x", [None, 26], "int64"), fluid.data("y", [None, 1], "float32")
    rows = fluid.embedding(ids, [20000, 16], is_sparse=True)
    total = layers.reduce_sum(rows, 1)
    pairs = layers.reduce_sum(layers.square(total) - layers.reduce_sum(layers.square(rows), 1), 1, True) * 0.5
    deep = layers.reshape(rows, [-1, 26 * 16])
    for width in (64, 64):
        deep = layers.fc(deep, width, act="relu")
    score = pairs + layers.fc(deep, 1)
    loss = layers.mean(layers.sigmoid_cross_entropy_with_logits(score, label))
    batch = {"x": draw_ids(20000, 64, 26), "y": (draw(64, 1) > 0).astype("float32")}
    return loss, layers.sigmoid(score), batch


def experts(fluid):
    """Several experts and gates, and the area under the curve of two tasks."""
    layers = fluid.layers
    x, label = fluid.data("x", [None, 100]), fluid.data("y", [None, 1], "int64")
    pool = layers.stack([layers.fc(x, 16, act="relu") for _ in range(8)], 1)
    losses, areas = [], []
    for _ in range(2):
        gate = layers.unsqueeze(layers.fc(x, 8, act="softmax"), [2])
        h = layers.reduce_sum(layers.elementwise_mul(pool, gate), 1)
        share = layers.fc(layers.fc(h, 8, act="relu"), 2, act="softmax")
        losses.append(layers.mean(layers.cross_entropy(share, label)))
        areas.append(layers.auc(share, label)[0])
    return losses[0] + losses[1], areas[0], {"x": draw(32, 100), "y": draw_ids(2, 32, 1)}


def graph(fluid):
    """Attention over the neighbours in a graph of 1,500 nodes: gather, softmax and sum by sequence."""
    layers = fluid.layers
    nodes, edges = 1500, 7500
    x, label = fluid.data("x", [None, 64]), fluid.data("y", [None, 1], "int64")
    source, target = (fluid.data(name, [None], "int64") for name in ("source", "target"))
    offsets = fluid.data("offsets", [None], "int32")
    for width in (32, 7):
        h = layers.fc(x, width)
        near, far = layers.gather(h, target), layers.gather(h, source)
        cost = layers.lod_reset(layers.leaky_relu(layers.fc(near + far, 1), 0.2), offsets)
        message = layers.elementwise_mul(far, layers.sequence_softmax(cost), axis=0)
        x = layers.elu(layers.sequence_pool(layers.lod_reset(message, offsets), "sum"))
    loss = layers.mean(layers.softmax_with_cross_entropy(x, label))
    into = np.sort(np.concatenate([np.arange(nodes), draw_ids(nodes, edges - nodes)]))
    batch = {
        "x": draw(nodes, 64),
        "y": draw_ids(7, nodes, 1),
        "source": draw_ids(nodes, edges),
        "target": into,
    }
    batch["offsets"] = np.concatenate([[0], np.cumsum(np.bincount(into))]).astype("int32")
    return loss, x, batch


def words(fluid):
    """Embeddings of words, trained beside drawn ones (nce)."""
    layers = fluid.layers
    x, label = fluid.data("x", [None], "int64"), fluid.data("y", [None, 1], "int64")
    h = layers.fc(fluid.embedding(x, [5000, 64], is_sparse=True), 64)
    cost = layers.nce(h, label, 5000, num_neg_samples=10, is_sparse=True)
    return layers.mean(cost), h, {"x": draw_ids(5000, 128), "y": draw_ids(5000, 128, 1)}


def shuffled(fluid):
    """Pairs of words beside pairs in random order of the same batch, with dense gradients of large tables."""
    layers = fluid.layers
    x, y = fluid.data("x", [None], "int64"), fluid.data("y", [None], "int64")
    rows = fluid.embedding(x, [20000, 64])
    true, bias = fluid.embedding(y, [20000, 64]), fluid.embedding(y, [20000, 1])

    def score(other, bias):
        return layers.reduce_sum(rows * other, 1, True) + bias

    out = score(true, bias)
    losses = [layers.sigmoid_cross_entropy_with_logits(out, layers.ones_like(out))]
    for seed in range(1, 6):
        one, other = (fluid.contrib.layers.shuffle_batch(each, seed) for each in (true, bias))
        wrong = score(one, other)
        losses.append(layers.sigmoid_cross_entropy_with_logits(wrong, layers.zeros_like(wrong)))
    return layers.mean(layers.sums(losses)), out, {"x": draw_ids(20000, 500), "y": draw_ids(20000, 500)}


def fields(fluid):
    """Embeddings of twenty fields of any size, pooled by sequence, and cross layers; trained by Adam."""
    layers = fluid.layers
    label = fluid.data("y", [None, 1], "int64")
    parts, batch = [fluid.data("x", [None, 13])], {"x": draw(16, 13), "y": draw_ids(2, 16, 1)}
    for index in range(20):
        name, height = f"field{index}", 100 * (index + 1) ** 2
        ids = fluid.data(name, [None, 1], "int64", lod_level=1)
        parts.append(layers.sequence_pool(fluid.embedding(ids, [height, 4 + index]), "sum"))
        lengths = [1] * 16 if index % 4 else [1, 2, 3, 2] * 4
        batch[name] = fluid.create_lod_tensor(draw_ids(height, sum(lengths), 1), [lengths], fluid.CPUPlace())
    first = h = layers.concat([layers.reshape(part, [-1, part.shape[-1]]) for part in parts], 1)
    for _ in range(2):
        h = layers.elementwise_mul(first, layers.fc(h, 1, bias_attr=False), axis=0) + h
    share = layers.fc(layers.concat([h, layers.fc(first, 64, act="relu")], 1), 2, act="softmax")
    layers.auc(share, label)
    return layers.mean(layers.cross_entropy(share, label)), share, batch


def factors(fluid):
    """Factorization machine over a table of two million elements with a dense gradient; trained by Adam."""
    layers = fluid.layers
    ids, label = fluid.data("x", [None, 39], "int64"), fluid.data("y", [None, 1])
    rows = fluid.embedding(ids, [200000, 9], padding_idx=0)
    total = layers.reduce_sum(rows, 1)
    pairs = layers.reduce_sum(layers.square(total) - layers.reduce_sum(layers.square(rows), 1), 1, True) * 0.5
    out = layers.sigmoid(pairs)
    batch = {"x": draw_ids(200000, 16, 39), "y": (draw(16, 1) > 0).astype("float32")}
    return layers.mean(layers.log_loss(out, label)), out, batch


#: Of networks that are not trained by SGD.
OPTIMIZERS = {"fields": "Adam", "factors": "Adam"}

NETWORKS = {
    f.__name__: f
    for f in (
        mobile, generator, segmentation, deformable, tagger, decoder, paragraphs, sentence, beam,
        ranking, experts, graph, words, shuffled, fields, factors,
    )
}  # fmt: skip
