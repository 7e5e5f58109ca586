"""The batches that the nets train on, the same in every library. Python 3.7 imports it, for Fluid 1.8.5."""

import numpy as np

IDS = 1000000  # rows of the tables of wide_deep
SLOTS = 26
STEPS = 50  # of a sequence of lstm


def make_batch(net):
    """Return the arrays of a batch by name; the same on every call."""
    return (BATCHES.get(net) or LONG[net])(np.random.RandomState(7))


def _floats(rng, *shape):
    return rng.standard_normal(shape).astype("float32")


def _labels(rng, count, classes):
    return rng.randint(0, classes, (count, 1)).astype("int64")


def _fit_a_line(rng):
    return {"x": _floats(rng, 32, 13), "y": _floats(rng, 32, 1)}


def _chain(rng):
    return {"x": _floats(rng, 1, 8)}


def _mlp(rng):
    return {"x": _floats(rng, 64, 784), "y": _labels(rng, 64, 10)}


def _lenet(rng):
    return {"x": _floats(rng, 64, 1, 28, 28), "y": _labels(rng, 64, 10)}


def _word2vec(rng):
    return dict({"w" + str(i): _labels(rng, 100, 2073) for i in range(4)}, y=_labels(rng, 100, 2073))


def _resnet(rng):
    return {"x": _floats(rng, 32, 3, 32, 32), "y": _labels(rng, 32, 10)}


def _lstm(rng):
    return {"x": _floats(rng, 32 * STEPS, 128), "y": _labels(rng, 32, 10)}


def _encoder(rng):
    return {"x": rng.randint(0, 1000, (16, 32)).astype("int64"), "y": _labels(rng, 16 * 32, 1000)}


def _wide_deep(rng):
    return {
        "x": _floats(rng, 512, 13),
        "ids": rng.randint(0, IDS, (512, SLOTS)).astype("int64"),
        "y": rng.randint(0, 2, (512, 1)).astype("float32"),
    }


def _bert(rng):
    return {"x": rng.randint(0, 30000, (8, 64)).astype("int64"), "y": _labels(rng, 8, 2)}


def _resnet50(rng):
    return {"x": _floats(rng, 8, 3, 224, 224), "y": _labels(rng, 8, 1000)}


LONG = {"bert": _bert, "resnet50": _resnet50}  # seconds a step

BATCHES = {
    "fit_a_line": _fit_a_line,
    "chain": _chain,
    "mlp": _mlp,
    "lenet": _lenet,
    "word2vec": _word2vec,
    "resnet20": _resnet,
    "lstm": _lstm,
    "encoder": _encoder,
    "wide_deep": _wide_deep,
}
