"""Small classifiers of images of real sizes, in the manner of well-known ones, in Fluid's interface.

As in ``networks.py``, each function builds a network and returns its loss, what it predicts and a batch.
"""

from images import normed
from networks import draw, draw_ids


def classify(fluid, h, label):
    """Return the loss of a class for each image, and the scores."""
    layers = fluid.layers
    scores = layers.softmax(layers.fc(layers.pool2d(h, pool_type="avg", global_pooling=True), 100))
    return layers.mean(layers.cross_entropy(scores, label)), scores


def shuffle(fluid):
    """Halves of the channels that take turns: split, depthwise convolutions, concat, transpose."""
    layers = fluid.layers
    x, label = fluid.data("x", [None, 3, 128, 128]), fluid.data("y", [None, 1], "int64")
    h = layers.pool2d(normed(layers, x, 24, 3, 2), 3, "max", 2, 1)
    for filters, repeats in ((58, 3), (116, 3)):
        for index in range(repeats):
            first, second = (h, h) if index == 0 else layers.split(h, 2, 1)
            if index == 0:
                first = normed(layers, first, first.shape[1], 3, 2, first.shape[1], act=None)
                first = normed(layers, first, filters, 1)
            second = normed(layers, second, filters, 1)
            second = normed(layers, second, filters, 3, 1 if index else 2, filters, act=None)
            h = layers.concat([first, normed(layers, second, filters, 1)], 1)
            apart = layers.reshape(h, [-1, 2, filters, *h.shape[2:]])
            h = layers.reshape(layers.transpose(apart, [0, 2, 1, 3, 4]), [-1, 2 * filters, *h.shape[2:]])
    loss, scores = classify(fluid, h, label)
    return loss, scores, {"x": draw(4, 3, 128, 128), "y": draw_ids(100, 4, 1)}


def excite(fluid):
    """Residual blocks of grouped convolutions, their channels weighed by two layers over their means."""
    layers = fluid.layers
    x, label = fluid.data("x", [None, 3, 96, 96]), fluid.data("y", [None, 1], "int64")
    h = normed(layers, x, 32, 3, 2)
    for filters, stride in ((64, 2), (64, 1), (128, 2), (128, 1)):
        short = h if stride == 1 else normed(layers, h, 2 * filters, 1, stride, act=None)
        new = normed(layers, normed(layers, h, filters, 1), filters, 3, stride, 32)
        new = normed(layers, new, 2 * filters, 1, act=None)
        means = layers.pool2d(new, pool_type="avg", global_pooling=True)
        weights = layers.fc(layers.fc(means, filters // 8, act="relu"), 2 * filters, act="sigmoid")
        h = layers.relu(short + layers.elementwise_mul(new, weights, axis=0))
    loss, scores = classify(fluid, h, label)
    return loss, scores, {"x": draw(4, 3, 96, 96), "y": draw_ids(100, 4, 1)}


def densenet(fluid):
    """Layers that read what all before them computed: concat, batch_norm before each convolution."""
    layers = fluid.layers
    x, label = fluid.data("x", [None, 3, 128, 128]), fluid.data("y", [None, 1], "int64")
    h = layers.pool2d(normed(layers, x, 32, 7, 2), 3, "max", 2, 1)
    for repeats in (4, 6):
        for _ in range(repeats):
            new = normed(layers, layers.batch_norm(h, act="relu"), 64, 1)
            h = layers.concat([h, layers.conv2d(new, 16, 3, 1, 1, bias_attr=False)], 1)
        h = layers.conv2d(layers.batch_norm(h, act="relu"), h.shape[1] // 2, 1, bias_attr=False)
        h = layers.pool2d(h, 2, "avg", 2)
    loss, scores = classify(fluid, h, label)
    return loss, scores, {"x": draw(4, 3, 128, 128), "y": draw_ids(100, 4, 1)}


NETWORKS = {f.__name__: f for f in (shuffle, excite, densenet)}
