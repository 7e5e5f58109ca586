"""Dump small models of the real CNTK 2.7 with their inputs and outputs: ``cntkpy dump_cntk.py OUT.npz``.

Run by a Python with CNTK. For each case: ``case/model``, the bytes; ``case/x0``, what its arguments are fed
(a sequence: its steps, and ``case/l0``, the lengths); ``case/y0``, what its outputs are. The golden file is
compressed by xz.
"""

import sys
import tempfile

import cntk
import numpy as np

RNG = np.random.RandomState(5)


def rand(*shape):
    return np.asarray(RNG.randn(*shape), "float32")


def parameter(*shape, **options):
    return cntk.parameter(init=rand(*shape), **options)


def constant(value):
    return cntk.constant(np.asarray(value, "float32"))


def reducing(name, **options):
    return lambda v: getattr(cntk, "reduce_" + name)(v, **options)


def on(name, other, *, turned=False):
    """Return an operation of its input and a parameter, or of a parameter and its input."""
    op = getattr(cntk, name)
    return lambda v: op(other(), v) if turned else op(v, other())


def unary_cases():
    x = rand(3, 2, 4)
    small = np.float32(0.9) * np.tanh(x)
    for name in [
        "negate",
        "sigmoid",
        "relu",
        "exp",
        "softmax",
        "log_softmax",
        "hardmax",
        "floor",
        "abs",
        "tanh",
        "sin",
        "cos",
        "sinh",
        "cosh",
    ]:
        yield name, getattr(cntk, name), [x]
    for name in ["asin", "acos", "atanh"]:
        yield name, getattr(cntk, name), [small]
    for name in [
        "atan",
        "asinh",
        "elu",
        "selu",
        "leaky_relu",
        "softplus",
        "softsign",
        "stop_gradient",
        "alias",
    ]:
        if hasattr(cntk, name):
            yield name, getattr(cntk, name), [x]
    for name in ["log", "sqrt", "reciprocal"]:
        yield name, getattr(cntk, name), [np.abs(x) + np.float32(0.5)]
    yield "ones_like", cntk.ones_like, [x]
    yield "zeros_like", cntk.zeros_like, [x]
    yield "squeeze", cntk.squeeze, [rand(2, 1, 3, 1)]
    yield "softmax_axis", lambda v: cntk.softmax(v, axis=0), [x]
    yield "param_relu", lambda v: cntk.param_relu(parameter(2, 4), v), [x]
    yield "clip", lambda v: cntk.clip(v, -0.5, 0.75), [x]
    yield "cast", lambda v: cntk.cast(v, np.float64), [x]
    yield "pow", lambda v: cntk.pow(v, constant(1.5)), [np.abs(x)]
    yield "unpack_batch", lambda v: cntk.unpack_batch(v), [x]
    yield "to_batch", lambda v: cntk.to_batch(cntk.unpack_batch(v)), [x]


def binary_cases():
    x, y = rand(3, 2, 4), rand(3, 2, 4)
    y[0] = x[0]
    names = "plus minus element_times element_divide equal not_equal less less_equal greater greater_equal"
    for name in (names + " log_add_exp element_max element_min").split():
        yield name, getattr(cntk, name), [x, y]
    for name in ["plus", "minus", "element_times", "less"]:
        yield name + "_row", getattr(cntk, name), [x, rand(3, 4)]
        yield name + "_column", on(name, lambda: parameter(2, 1)), [x]
        yield name + "_first", on(name, lambda: parameter(4), turned=True), [x]
        yield name + "_wide", on(name, lambda: parameter(3, 1, 2), turned=True), [rand(2, 2)]
        yield name + "_number", on(name, lambda: 0.3), [x]
    yield "select", lambda c, v, w: cntk.element_select(cntk.greater(c, 0), v, w), [rand(3, 2, 4), x, y]
    yield "select_number", lambda v: cntk.element_select(cntk.greater(v, 0), v, constant(-1)), [x]
    yield "cosine", cntk.cosine_distance, [rand(3, 5), rand(3, 5)]
    yield "squared_error", cntk.squared_error, [rand(3, 5), rand(3, 5)]
    yield "cross_entropy", cntk.cross_entropy_with_softmax, [rand(3, 5), np.eye(5, dtype="f")[[1, 0, 4]]]
    yield "half_labels", cntk.cross_entropy_with_softmax, [rand(3, 5), np.abs(rand(3, 5))]
    yield "error", cntk.classification_error, [rand(3, 5), np.eye(5, dtype="f")[[1, 0, 4]]]
    p, one = 1 / (1 + np.exp(-rand(3, 5))), (rand(3, 5) > 0).astype("f")
    yield "logistic", cntk.binary_cross_entropy, [p, one]
    yield "splice", lambda v, w: cntk.splice(v, w, axis=0), [x, rand(3, 3, 4)]
    yield "splice_last", lambda v, w: cntk.splice(v, w), [x, rand(3, 2, 2)]
    yield "combine", lambda v, w: cntk.combine([v + w, v * w]), [x, y]


def shape_cases():
    x = rand(3, 2, 4, 5)
    yield "transpose", lambda v: cntk.transpose(v, (2, 0, 1)), [x]
    yield "swapaxes", lambda v: cntk.swapaxes(v, 0, 2), [x]
    yield "slice", lambda v: cntk.slice(v, 1, 1, 3), [x]
    yield "slice_end", lambda v: cntk.slice(v, 2, -3, 0), [x]
    yield "slice_steps", lambda v: cntk.slice(v, 2, 0, 5, 2), [x]
    yield "slice_two", lambda v: v[1:2, 1:3], [x]
    yield "reshape", lambda v: cntk.reshape(v, (8, 5)), [x]
    yield "reshape_part", lambda v: cntk.reshape(v, (4, 2), 0, 2), [x]
    yield "reshape_some", lambda v: cntk.reshape(v, (10, 2), 1, 3), [x]
    yield "reshape_inferred", lambda v: cntk.reshape(v, (-1, 5)), [x]
    yield "flatten", lambda v: cntk.flatten(v), [x]
    yield "expand_dims", lambda v: cntk.expand_dims(v, 1), [x]
    yield "pad", lambda v: cntk.pad(v, [(0, 1), (2, 0), (1, 1)], constant_value=0.5), [x]
    for name in ["sum", "mean", "max", "min", "log_sum_exp", "prod"]:
        yield "reduce_" + name, reducing(name, axis=1), [x]
        yield "reduce_two_" + name, reducing(name, axis=(0, 2)), [x]
        yield "reduce_all_" + name, reducing(name), [x]
        yield "reduce_drop_" + name, reducing(name, axis=-1, keepdims=False), [x]
    yield "reduce_l2", lambda v: cntk.reduce_l2(v, axis=1), [x]
    yield "reduce_batch", lambda v: cntk.reduce_mean(v, axis=cntk.Axis.default_batch_axis()), [x]
    yield "reduce_everything", lambda v: cntk.reduce_sum(v, axis=cntk.Axis.all_axes()), [x]
    yield "argmax", lambda v: cntk.argmax(v, axis=-1), [x]
    yield "argmin", lambda v: cntk.argmin(v, axis=0), [x]
    yield "argmax_all", lambda v: cntk.argmax(v), [x]
    yield "top_k", lambda v: cntk.top_k(v, 2), [x]
    ids = np.float32([[1, 0, 3], [2, 2, 1]])
    yield "one_hot", lambda v: cntk.one_hot(v, 4), [ids]
    yield "gather", lambda v: cntk.gather(parameter(4, 2, 3), v), [ids]
    yield "gather_one", lambda v: cntk.gather(parameter(4, 2), v), [ids[:, :1]]


def matrix_cases():
    yield "times", lambda v: cntk.times(v, parameter(4, 3)), [rand(2, 4)]
    yield "times_matrix", lambda v: cntk.times(v, parameter(4, 3)), [rand(2, 5, 4)]
    yield "times_image", lambda v: cntk.times(v, parameter(2, 3, 4, 6), output_rank=1), [rand(2, 2, 3, 4)]
    yield "times_two_out", lambda v: cntk.times(v, parameter(4, 3, 2), output_rank=2), [rand(2, 4)]
    yield "times_samples", cntk.times, [rand(2, 3, 4), rand(2, 4, 5)]
    yield "times_transpose", lambda v: cntk.times_transpose(v, parameter(3, 4)), [rand(2, 4)]
    yield "times_transpose_samples", cntk.times_transpose, [rand(2, 4), rand(2, 4)]
    yield "left", lambda v: cntk.times(parameter(3, 4), v), [rand(2, 4, 5)]
    dense = cntk.layers.Dense
    yield "dense", lambda v: dense(3, activation=cntk.relu)(v), [rand(2, 4)]
    yield "dense_image", lambda v: dense(3)(v), [rand(2, 3, 4, 4)]
    yield "dense_map", lambda v: dense((3, 2), init_bias=0.5)(v), [rand(2, 4)]
    yield "embedding", lambda v: cntk.layers.Embedding(3)(v), [np.eye(5, dtype="f")[[1, 4]]]


def image_cases():
    x = rand(2, 3, 7, 8)
    for pad in (False, True):
        for size in ((1, 1), (2, 2), (3, 3), (2, 3)):
            for step in ((1, 1), (2, 2), (3, 3), (2, 1)):
                name = "_%d%d_%d%d_%d" % (size + step + (pad,))
                make = cntk.layers.Convolution2D(size, 4, strides=step, pad=pad, init_bias=0.1)
                yield "conv" + name, make, [x]
                for kind in ("Max", "Average"):
                    layer = getattr(cntk.layers, kind + "Pooling")
                    yield kind.lower() + name, layer(size, strides=step, pad=pad), [x]
    convolve = cntk.convolution
    spatial = {"auto_padding": [False, True, True]}
    yield "convolution", lambda v: convolve(parameter(4, 3, 3, 3), v, **spatial), [x]
    yield "convolution_nopad", lambda v: convolve(parameter(4, 3, 3, 3), v, auto_padding=[False]), [x]
    yield "grouped", lambda v: convolve(parameter(6, 1, 3, 3), v, groups=3, **spatial), [x]
    yield (
        "include_pad",
        lambda v: cntk.pooling(v, cntk.AVG_POOLING, (3, 3), (2, 2), [True], include_pad=True),
        [x],
    )
    yield "ceil", lambda v: cntk.pooling(v, cntk.MAX_POOLING, (2, 2), (2, 2), [False], ceil_out_dim=True), [x]
    yield "global_average", cntk.layers.GlobalAveragePooling(), [x]
    yield "global_max", cntk.layers.GlobalMaxPooling(), [x]
    yield "conv3d", cntk.layers.Convolution3D((2, 2, 2), 3, pad=True), [rand(2, 2, 4, 5, 3)]
    for size in (2, 3, 4):
        for step in (1, 2):
            for pad in (False, True):
                layer = cntk.layers.ConvolutionTranspose2D((size, size), 2, strides=step, pad=pad)
                yield "transposed_%d_%d_%d" % (size, step, pad), layer, [x]
    shape = {"output_shape": (13, 15)}
    yield "transposed_shape", cntk.layers.ConvolutionTranspose2D((3, 3), 2, strides=2, pad=True, **shape), [x]
    yield "batch_norm_image", cntk.layers.BatchNormalization(map_rank=1), [x]
    yield "batch_norm", cntk.layers.BatchNormalization(), [rand(3, 4)]
    yield "layer_norm", cntk.layers.LayerNormalization(), [rand(3, 4)]
    yield "dropout", cntk.layers.Dropout(0.4), [rand(3, 4)]


def sequence_cases():
    layers, sequence = cntk.layers, cntk.sequence
    x = [rand(4, 3), rand(2, 3), rand(1, 3)]
    for name, cell in (("lstm", layers.LSTM(4)), ("gru", layers.GRU(4)), ("rnn", layers.RNNStep(4))):
        yield name, layers.Recurrence(cell), [x]
        yield name + "_backwards", layers.Recurrence(cell, go_backwards=True), [x]
        yield name + "_last", layers.Fold(cell), [x]
    yield "lstm_peephole", layers.Recurrence(layers.LSTM(4, use_peepholes=True)), [x]
    yield "lstm_initial", layers.Recurrence(layers.LSTM(4), initial_state=0.25), [x]
    bidirectional = (layers.Recurrence(layers.LSTM(2)), layers.Recurrence(layers.LSTM(2), go_backwards=True))
    yield "bidirectional", lambda v: cntk.splice(*[one(v) for one in bidirectional]), [x]
    stacked = [
        layers.Recurrence(layers.LSTM(3)),
        layers.Recurrence(layers.GRU(2)),
        sequence.last,
        layers.Dense(2),
    ]
    yield "stacked", layers.Sequential(stacked), [x]
    yield "cumulated", lambda v: layers.Recurrence(lambda h, one: h + one)(v), [x]
    yield "last", sequence.last, [x]
    yield "first", sequence.first, [x]
    yield "sequence_sum", sequence.reduce_sum, [x]
    yield "sequence_max", sequence.reduce_max, [x]
    yield "past", sequence.past_value, [x]
    yield "past_two", lambda v: sequence.past_value(v, 0.5, 2), [x]
    yield "future", sequence.future_value, [x]
    yield "is_last", sequence.is_last, [x]
    yield "dense_steps", layers.Dense(2, activation=cntk.tanh), [x]
    yield "sequence_softmax", sequence.softmax, [x]
    yield "broadcast", lambda v: sequence.broadcast_as(sequence.last(v), v), [x]


def resnet(x):
    """Two residual blocks, the second with half the pixels."""
    layers = cntk.layers

    def normalize(v, count, stride, size=3):
        v = layers.Convolution2D((size, size), count, strides=stride, pad=True, bias=False)(v)
        return layers.BatchNormalization(map_rank=1, normalization_time_constant=4096)(v)

    v = cntk.relu(normalize(x, 4, 1))
    v = cntk.relu(normalize(cntk.relu(normalize(v, 4, 1)), 4, 1) + v)
    v = cntk.relu(normalize(cntk.relu(normalize(v, 6, 2)), 6, 1) + normalize(v, 6, 2, 1))
    return layers.Dense(5)(layers.AveragePooling((4, 4), strides=1)(v))


def network_cases():
    layers, sequence = cntk.layers, cntk.sequence
    x, words = [rand(4, 3), rand(2, 3), rand(1, 3)], [np.eye(6, dtype="f")[one] for one in ([1, 2, 0], [5])]
    chain, recur = layers.Sequential, layers.Recurrence
    yield "resnet", resnet, [rand(2, 3, 8, 8)]
    lenet = [
        layers.Convolution2D((5, 5), 4, activation=cntk.relu, pad=True),
        layers.MaxPooling((3, 3), (2, 2), pad=True),
        layers.Dropout(0.5),
        layers.Dense(6, cntk.relu),
        layers.Dense(3),
    ]
    yield "lenet", lambda v: chain(lenet)(cntk.element_times(v, 1 / 256.0)), [rand(2, 1, 9, 9)]
    autoencoder = [
        layers.Convolution2D((3, 3), 4, strides=2, pad=True, activation=cntk.relu),
        layers.ConvolutionTranspose2D((3, 3), 1, strides=2, pad=True, output_shape=(8, 8), bias=False),
    ]
    yield "autoencoder", chain(autoencoder), [rand(2, 1, 8, 8)]
    wide = layers.For(range(3), lambda i: layers.Dense([4, 5, 6][i], activation=cntk.sigmoid))
    yield "dense_for", chain([wide, layers.Dense(2, activation=cntk.softmax)]), [rand(3, 4)]
    tagger = [
        layers.Embedding(4),
        layers.Stabilizer(),
        recur(layers.LSTM(5)),
        layers.Stabilizer(),
        layers.Dense(3),
    ]
    yield "tagger", chain(tagger), [words]
    yield "classifier", chain([layers.Embedding(4), layers.Fold(layers.LSTM(3)), layers.Dense(2)]), [words]
    both = (recur(layers.LSTM(3)), recur(layers.LSTM(3), go_backwards=True))
    yield "birecurrence", chain([layers.Embedding(4), both, cntk.splice, layers.Dense(2)]), [words]
    yield "lstm_stabilized", recur(layers.LSTM(3, enable_self_stabilization=True)), [x]
    yield "gru_stabilized", recur(layers.GRU(3, enable_self_stabilization=True)), [x]
    normalized = [
        layers.Dense(4),
        layers.LayerNormalization(),
        recur(layers.RNNStep(3, activation=cntk.relu)),
    ]
    yield "rnn_normalized", chain([*normalized, sequence.last]), [x]
    yield "recurrence_from", lambda v: layers.RecurrenceFrom(layers.RNNStep(3))(sequence.first(v), v), [x]
    yield "delay", layers.Delay(1), [x]
    yield "delay_back", layers.Delay(-2), [x]
    yield "sequence_slice", lambda v: sequence.slice(v, 0, 1), [x]
    yield "to_sequence", cntk.to_sequence, [rand(2, 3, 4)]
    yield "crop", lambda v: cntk.crop_manual(v, constant(np.zeros((1, 2, 3))), 1, 0), [rand(2, 1, 4, 4)]
    yield "lrn", lambda v: cntk.local_response_normalization(v, 2, 1.0, 0.001, 0.75), [rand(2, 5, 4, 4)]
    yield "depth_to_space", lambda v: cntk.depth_to_space(v, 2), [rand(2, 4, 3, 3)]
    yield "space_to_depth", lambda v: cntk.space_to_depth(v, 2), [rand(2, 1, 4, 4)]
    yield "mean_variance", cntk.mean_variance_normalization, [rand(2, 3, 4, 4)]
    yield "hard_sigmoid", lambda v: cntk.hard_sigmoid(v, 0.2, 0.5), [rand(3, 4)]


GROUPS = (network_cases, unary_cases, binary_cases, shape_cases, matrix_cases, image_cases, sequence_cases)


def randomize(function):
    for one in function.parameters:
        one.value = np.asarray(0.5 * rand(*one.shape), "float32")
    for one in function.constants:
        if one.name.startswith("aggregate") and one.shape:
            value = rand(*one.shape)
            one.value = np.abs(value) + np.float32(0.5) if one.name.endswith("variance") else value


def dump(name, make, feeds, found):
    sequences = isinstance(feeds[0], list)
    variable = cntk.sequence.input_variable if sequences else cntk.input_variable
    arguments = [variable(one[0].shape[sequences:], name="x%d" % index) for index, one in enumerate(feeds)]
    function = make(*arguments)
    if isinstance(function, cntk.Variable):
        function = cntk.combine([function])
    randomize(function)
    path = tempfile.mkdtemp() + "/model"
    function.save(path)
    function = cntk.Function.load(path)
    by_name = {one.name: one for one in function.arguments}
    feed = {by_name["x%d" % index]: one for index, one in enumerate(feeds) if "x%d" % index in by_name}
    made = function.eval(feed)
    outputs = [made[one] for one in function.outputs] if isinstance(made, dict) else [made]
    with open(path, "rb") as file:
        found[name + "/model"] = np.frombuffer(file.read(), "uint8")
    for index, one in enumerate(feeds):
        found["%s/x%d" % (name, index)] = np.concatenate(one) if sequences else one
        if sequences:
            found["%s/l%d" % (name, index)] = np.array([len(part) for part in one])
    for index, (one, variable) in enumerate(zip(outputs, function.outputs)):  # noqa: B905  (Python 3.6)
        steps = any(axis.is_ordered for axis in variable.dynamic_axes)
        if steps and not isinstance(one, list):
            one = list(one)
        found["%s/y%d" % (name, index)] = np.concatenate(one) if steps else np.asarray(one)


def main():
    found = {}
    for group in GROUPS:
        for name, make, feeds in group():
            try:
                dump(name, make, feeds, found)
            except Exception as error:  # an operation that this CNTK does not carry out is not a case
                sys.stderr.write("SKIPPED %s: %s\n" % (name, str(error).split("\n")[0][:150]))
    np.savez_compressed(sys.argv[1], **found)


if __name__ == "__main__":
    main()
