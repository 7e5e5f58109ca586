"""Dump models of the real CNTK 2.7 that need more than inputs: ``cntkpy dump_cntk_stacks.py OUT.npz.xz``.

Recurrent stacks of cuDNN, which only a GPU evaluates: their outputs are those of CNTK's own conversion into
other layers. Regions, samples and random numbers. ``tests/golden/cntk/stacks.npz.xz`` was made by it.
"""

import io
import lzma
import sys
import tempfile

import cntk
import numpy as np
from cntk.misc.optimized_rnnstack_converter import convert_optimized_rnnstack

RNG = np.random.RandomState(0)
REGIONS = [
    [[0, 0, 31, 31], [4, 4, 20, 20], [0, 0, 8, 8], [8, 2, 24, 30], [10, 10, 12, 12]],
    [[1, 3, 9, 7], [0, 0, 30, 30], [6, 6, 7, 7], [20, 20, 31, 31], [3, 3, 14, 28]],
]
GATES = {"lstm": 4, "gru": 3}


def draw(*shape):
    return RNG.standard_normal(shape).astype("f")


def save(function):
    with tempfile.NamedTemporaryFile() as file:
        function.save(file.name)
        return np.frombuffer(open(file.name, "rb").read(), "uint8")


def image_cases():
    for name, size in (("roi-max", (2, 3)), ("roi-one", (1, 1))):
        x, regions = cntk.input_variable((3, 8, 8), name="x0"), cntk.input_variable((5, 4), name="x1")
        function = cntk.roipooling(x, regions, cntk.MAX_POOLING, size, 0.25)
        yield name, function, [(x, draw(2, 3, 8, 8)), (regions, np.array(REGIONS, "f"))]
    x = cntk.input_variable((2, 4, 4), name="x0")
    pooled = cntk.pooling(x, cntk.MAX_POOLING, (2, 2), (2, 2))
    yield "unpooling", cntk.unpooling(pooled, x, cntk.MAX_UNPOOLING, (2, 2), (2, 2)), [(x, draw(3, 2, 4, 4))]


def row_cases():
    x = cntk.input_variable((4,), name="x0")
    yield "eye-rows", cntk.eye_like(x, sparse_output=False), [(x, draw(4, 4))]
    yield "straight-through", cntk.ops.straight_through_impl(x), [(x, draw(3, 4))]
    label = cntk.input_variable((4,), name="x1")
    rows = [(x, draw(3, 4)), (label, np.eye(4, dtype="f")[[0, 2, 1]])]
    yield "classification-error", cntk.classification_error(x, label), rows
    weights = cntk.constant(np.arange(1, 11, dtype="f"))
    yield "sample-frequency", cntk.random_sample_inclusion_frequency(weights, 4, True, seed=3), []


def stack_cases(found):
    options = [
        ("lstm", 4, 1, False),
        ("lstm", 3, 2, True),
        ("rnnReLU", 4, 2, False),
        ("rnnTanh", 4, 1, True),
        ("gru", 3, 2, True),
    ]
    for kind, hidden, layers, both in options:
        x = cntk.sequence.input_variable(3, name="x0")
        widths = [3] + [hidden * (1 + both)] * (layers - 1)
        total = sum((width + hidden + 2) * hidden * GATES.get(kind, 1) * (1 + both) for width in widths)
        weights = cntk.parameter((total,), init=RNG.uniform(-0.6, 0.6, total).astype("f"), name="weights")
        stack = cntk.optimized_rnnstack(x, weights, hidden, layers, both, kind)
        name = "stack-%s-%d%s" % (kind, layers, "-both" * both)
        steps = [draw(count, 3) for count in (4, 2, 5)]
        found[name + "/model"], found[name + "/x0"] = save(stack), np.concatenate(steps)
        found[name + "/l0"] = np.array([len(one) for one in steps])
        if kind != "gru":  # which CNTK does not convert
            converted = convert_optimized_rnnstack(stack)
            found[name + "/y0"] = np.concatenate(converted.eval({converted.arguments[0]: steps}))


def random_models():
    draws = cntk.random
    yield "uniform", draws.uniform((40, 50), low=-1, high=2, seed=3)
    yield "normal", draws.normal((40, 50), mean=1, scale=0.5, seed=3)
    yield "bernoulli", draws.bernoulli((40, 50), mean=0.3, seed=3)
    yield "gumbel", draws.gumbel((40, 50), loc=1, scale=2, seed=3)
    x = cntk.input_variable((40, 50), name="x0")
    yield "normal-like", draws.normal_like(x, seed=3)
    weights = cntk.constant(np.arange(1, 11, dtype="f"))
    yield "sample-again", cntk.random_sample(weights, 2000, True, seed=3)
    yield "sample-once", cntk.random_sample(weights, 4, False, seed=3)
    yield "frequency-once", cntk.random_sample_inclusion_frequency(weights, 4, False, seed=3)


def main(path):
    found = {}
    for cases in (image_cases(), row_cases()):
        for name, function, fed in cases:
            found[name + "/model"] = save(function)
            for index, (_, values) in enumerate(fed):
                found["%s/x%d" % (name, index)] = values
            found[name + "/y0"] = function.eval(dict(fed))
    stack_cases(found)
    for name, function in random_models():
        found["random-" + name + "/model"] = save(function)
    buffer = io.BytesIO()
    np.savez(buffer, **found)
    with open(path, "wb") as file:
        file.write(lzma.compress(buffer.getvalue()))


if __name__ == "__main__":
    main(sys.argv[1])
