"""Dump networks of the real CNTK 2.7: ``cntkpy dump_cntk_networks.py OUT.npz.xz``.

What its tutorials build (sequence to sequence, with and without attention), and operations that change the
steps of sequences. ``tests/golden/cntk/networks.npz.xz`` was made by it, in the form of ``dump_cntk.py``.
"""

import io
import lzma
import sys
import tempfile

import cntk
import numpy as np
from cntk import layers, sequence

RNG = np.random.RandomState(0)


def draw(*shape):
    return RNG.standard_normal(shape).astype("f")


def steps(*lengths, size=3):
    drawn = [draw(length, size) for length in lengths]
    for one in drawn:
        one[1] = 1  # a sequence without a positive step would be empty, which CNTK refuses
    return drawn


def words(*lengths, size=7):
    return [np.eye(size, dtype="f")[RNG.randint(0, size, length)] for length in lengths]


def positive(x):
    return cntk.greater(cntk.reduce_sum(x), 0)


def spread(x):
    chosen = sequence.gather(x, positive(x))
    return sequence.scatter(chosen * 2, positive(x))


def attend(x):
    """Weighted means over steps that are a padded dim."""
    value, mask = sequence.unpack(x, padding_value=0).outputs
    scores = cntk.reshape(cntk.reduce_sum(value, axis=1), (-1,))
    weights = cntk.softmax(cntk.element_select(mask, scores, cntk.constant(-1e8)))
    return cntk.reduce_sum(cntk.reshape(weights, (-1, 1)) * value, axis=0)


def shift(x):
    return sequence.past_value(x, initial_state=x * 10) + sequence.future_value(x, initial_state=x * 3)


def start_trained(x):
    return layers.Recurrence(layers.GRU(4), initial_state=cntk.parameter((4,), init=draw(4)))(x)


SEQUENCES = {
    "slice-tail": lambda x: sequence.slice(x, 1, 0),
    "slice-head": lambda x: sequence.slice(x, 0, 2),
    "slice-last-two": lambda x: sequence.slice(x, -2, 0),
    "slice-one": lambda x: sequence.slice(x, 2, 3),
    "gather": lambda x: sequence.gather(x, positive(x)),
    "gather-one": lambda x: sequence.gather(x, sequence.is_first(x), new_sequence_axis_typeinfo=(0, 1)),
    "where": lambda x: sequence.where(positive(x)),
    "scatter": spread,
    "unpack-mask": lambda x: cntk.combine(sequence.unpack(x, padding_value=0).outputs),
    "unpack": lambda x: sequence.unpack(x, padding_value=-1, no_mask_output=True),
    "unpack-sum": lambda x: cntk.reduce_sum(sequence.unpack(x, 5, no_mask_output=True), axis=0),
    "attend": attend,
    "shift-from-sequences": shift,
    "start-trained": start_trained,
    "hardmax-steps": lambda x: cntk.splice(cntk.hardmax(x), cntk.argmax(x)),
    "convolve-steps": layers.Convolution((3,), num_filters=4, sequential=True, pad=True),
}
SAMPLES = {
    "pad-reflected": (lambda x: cntk.pad(x, [(1, 1), (2, 2)], mode=cntk.ops.REFLECT_PAD), (3, 4)),
    "pad-symmetric": (lambda x: cntk.pad(x, [(1, 2), (2, 1)], mode=cntk.ops.SYMMETRIC_PAD), (3, 4)),
    "convolve-line": (layers.Convolution1D(3, 5, pad=True, strides=2), (4, 9)),
    "pool-line": (layers.MaxPooling((3,), strides=2, pad=True), (4, 9)),
    "gram": (lambda x: cntk.times_transpose(x, x), (3, 5)),
    "to-sequence": (cntk.to_sequence, (4, 3)),
}


def translate(attention):
    """Tutorial 204: an encoder, and a decoder that reads what it should have said before."""
    x = sequence.input_variable(7, sequence_axis=cntk.Axis("inputs"), name="x0")
    y = sequence.input_variable(7, sequence_axis=cntk.Axis("labels"), name="x1")
    with layers.default_options(enable_self_stabilization=True):
        embed, cell, out = layers.Embedding(4), layers.LSTM(5), layers.Dense(7)
        last_first = layers.Recurrence(layers.LSTM(5), go_backwards=True, return_full_state=True)
        encode = layers.Sequential([embed, layers.Stabilizer(), last_first])
        attended = layers.AttentionModel(attention_dim=6)

        @cntk.Function
        def decode_attending(history, inputs):
            encoded = encode(inputs)

            @cntk.Function
            def step(h, c, one):
                return cell(h, c, cntk.splice(one, attended(encoded.outputs[0], h)))

            return out(layers.Recurrence(step)(embed(history)))

        @cntk.Function
        def decode(history, inputs):
            given = embed(history)
            state = [sequence.broadcast_as(sequence.first(one), given) for one in encode(inputs).outputs]
            return out(layers.RecurrenceFrom(cell)(*state, given))

    network = (decode_attending if attention else decode)(layers.Delay(T=1)(y), x)
    return network, [words(4, 6), words(3, 5)]


def counted():
    x, y = cntk.input_variable((4, 3), name="x0"), cntk.input_variable((), name="x1")
    return cntk.to_sequence(x, y), [draw(2, 4, 3), np.array([2, 4], "f")]


def as_long_as():
    x, y = cntk.input_variable((5, 2), name="x0"), sequence.input_variable(3, name="x1")
    return cntk.to_sequence_like(x, y), [draw(2, 5, 2), steps(5, 4)]


def make_cases():
    for name, build in SEQUENCES.items():
        yield name, build(sequence.input_variable(3, name="x0")), [steps(5, 4)]
    for name, (build, shape) in SAMPLES.items():
        yield name, build(cntk.input_variable(shape, name="x0")), [draw(2, *shape)]
    yield ("to-sequence-counted", *counted())
    yield ("to-sequence-like", *as_long_as())
    yield ("translate", *translate(False))
    yield ("translate-attending", *translate(True))
    yield ("lines-transposed", *lines(3, 2, True))
    yield ("lines-transposed-whole", *lines(4, 3, False))
    yield ("assign", *counter())


def lines(size, stride, pad):
    x = cntk.input_variable((3, 9), name="x0")
    return layers.ConvolutionTranspose((size,), 4, strides=stride, pad=pad)(x), [draw(2, 3, 9)]


def counter():
    x = cntk.input_variable(3, name="x0")
    seen = cntk.parameter(init=draw(3))
    return x * cntk.assign(seen, seen * 2 + 1), [draw(2, 3)]


def put(found, key, lengths, values):
    if isinstance(values, list):
        found[lengths] = np.array([len(one) for one in values])
        values = np.concatenate(values)
    found[key] = np.asarray(values)


def main(path):
    found = {}
    cntk.cntk_py.set_fixed_random_seed(7)
    for name, function, fed in make_cases():
        with tempfile.NamedTemporaryFile() as file:
            function.save(file.name)
            found[name + "/model"] = np.fromfile(file.name, "uint8")
        feed = {}
        for one in function.arguments:
            index = int(one.name[1:])
            feed[one] = fed[index]
            put(found, "%s/x%d" % (name, index), "%s/l%d" % (name, index), fed[index])
        made = function.eval(feed)
        for index, one in enumerate(function.outputs):
            values = made[one] if len(function.outputs) > 1 else made
            put(found, "%s/y%d" % (name, index), "%s/m%d" % (name, index), values)
    buffer = io.BytesIO()
    np.savez(buffer, **found)
    with open(path, "wb") as file:
        file.write(lzma.compress(buffer.getvalue()))


if __name__ == "__main__":
    main(sys.argv[1])
