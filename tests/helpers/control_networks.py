"""Networks of loops, branches and repeated steps, built by Fluid's API only.

They run on the real Fluid 1.8.5 as well (Python 3.7), whose programs, losses and results are golden:
see tests/interop/dumps/dump_control.py. ``TRAINED`` give a loss and a feed, ``DECODED`` what to fetch and a
feed.
"""

import numpy as np

SEED = 5
STEPS = 5
RATE = 0.5


def rows(seed, *shape):
    return np.random.RandomState(seed).rand(*shape).astype("float32")


def variable(fluid, name, shape, lod_level=0):
    found = fluid.data(name, shape, "float32", lod_level=lod_level)
    found.stop_gradient = False
    return found


def sequences(fluid, seed, width, lengths):
    return fluid.create_lod_tensor(rows(seed, sum(lengths), width), [lengths], fluid.CPUPlace())


def counter(fluid, limit):
    layers = fluid.layers
    return layers.fill_constant([1], "int64", 0), layers.fill_constant([1], "int64", limit)


# Loops


def while_with_array(fluid):
    """s = tanh(fc(s)) four times, the values in an array."""
    layers = fluid.layers
    x = variable(fluid, "x", [2, 3])
    i, n = counter(fluid, 4)
    states = layers.array_write(layers.assign(layers.fc(x, 3, act="tanh")), i)
    going = layers.less_than(i, n)
    with layers.While(going).block():
        following = layers.fc(layers.array_read(states, i), 3, act="tanh")
        layers.increment(i, 1, in_place=True)
        layers.array_write(following, i, array=states)
        layers.less_than(i, n, cond=going)
    return layers.mean(layers.array_read(states, n)), {"x": rows(0, 2, 3)}


def while_overwriting(fluid):
    """The same, every value written over the one before."""
    layers = fluid.layers
    x = variable(fluid, "x", [2, 3])
    i, n = counter(fluid, 4)
    state = layers.fc(x, 3, act="tanh")
    going = layers.less_than(i, n)
    with layers.While(going).block():
        layers.assign(layers.fc(state, 3, act="tanh"), state)
        layers.increment(i, 1, in_place=True)
        layers.less_than(i, n, cond=going)
    return layers.mean(state), {"x": rows(0, 2, 3)}


def while_loop(fluid):
    layers = fluid.layers
    x = variable(fluid, "x", [2, 3])
    i, n = counter(fluid, 4)
    state = layers.fc(x, 3, act="tanh")

    def body(i, state):
        return i + 1, layers.fc(state, 3, act="tanh") * x

    i, state = layers.while_loop(lambda i, state: i < n, body, [i, state])
    return layers.mean(state), {"x": rows(0, 2, 3)}


def while_loop_with_array(fluid):
    layers = fluid.layers
    x = variable(fluid, "x", [2, 3])
    i, n = counter(fluid, 4)
    state = layers.fc(x, 3, act="tanh")
    states = layers.create_array("float32")
    layers.array_write(state, i, states)

    def body(i, state, states):
        following = layers.fc(state, 3, act="tanh") + state
        i = layers.increment(i)
        return [i, following, layers.array_write(following, i, states)]

    i, state, states = layers.while_loop(lambda i, state, states: i < n, body, [i, state, states])
    joined, _ = layers.tensor_array_to_tensor(states, axis=1)
    return layers.mean(joined * joined) + layers.mean(state), {"x": rows(0, 2, 3)}


def cond_in_while_loop(fluid):
    layers = fluid.layers
    x = variable(fluid, "x", [2, 3])
    i, n = counter(fluid, 4)
    two = layers.fill_constant([1], "int64", 2)

    def body(i, state):
        one, other = "tanh", "sigmoid"
        state = layers.cond(
            i < two, lambda: layers.fc(state, 3, act=one), lambda: layers.fc(state, 3, act=other) * x
        )
        return i + 1, state

    i, state = layers.while_loop(lambda i, state: i < n, body, [i, layers.fc(x, 3)])
    return layers.mean(state), {"x": rows(0, 2, 3)}


# Branches


def cond(fluid):
    layers = fluid.layers
    x = variable(fluid, "x", [2, 3])
    small = layers.less_than(layers.reduce_sum(x), layers.fill_constant([1], "float32", 1.5))
    h = layers.fc(x, 3)
    out = layers.cond(small, lambda: layers.fc(h, 3, act="tanh"), lambda: layers.fc(h, 3, act="sigmoid") * x)
    return layers.mean(out), {"x": rows(0, 2, 3)}


def case_and_switch_case(fluid):
    layers = fluid.layers
    x = variable(fluid, "x", [2, 3])
    total = layers.reduce_sum(x)
    h = layers.fc(x, 3)
    cases = [
        (total < 1.0, lambda: layers.fc(h, 3, act="tanh")),
        (total < 9.0, lambda: layers.fc(h, 3, act="sigmoid")),
    ]
    first = layers.case(cases, default=lambda: h * 2.0)
    branches = {0: lambda: layers.fc(h, 3, act="tanh"), 1: lambda: layers.fc(h, 3, act="sigmoid")}
    second = layers.switch_case(layers.fill_constant([1], "int32", 1), branches)
    return layers.mean(first) + layers.mean(second), {"x": rows(0, 2, 3)}


def if_else(fluid):
    layers = fluid.layers
    x = variable(fluid, "x", [None, 3])
    one = layers.fill_constant_batch_size_like(x, [-1, 1], "float32", 1.0)
    branches = layers.IfElse(layers.less_than(layers.reduce_sum(x, 1, keep_dim=True), one))
    h = layers.fc(x, 3)
    with branches.true_block():
        branches.output(layers.fc(branches.input(h), 3, act="tanh"))
    with branches.false_block():
        branches.output(layers.fc(branches.input(h), 3, act="sigmoid"))
    return layers.mean(branches()[0]), {"x": rows(0, 5, 3) * np.float32(0.7)}


# Repeated networks


def static_rnn(fluid):
    layers = fluid.layers
    x = variable(fluid, "x", [4, 2, 3])
    rnn = layers.StaticRNN()
    with rnn.step():
        word = rnn.step_input(x)
        before = rnn.memory(shape=[-1, 5], batch_ref=word)
        hidden = layers.fc([word, before], 5, act="tanh")
        rnn.update_memory(before, hidden)
        rnn.step_output(hidden)
        rnn.step_output(word)
    out, _ = rnn()
    return layers.mean(layers.fc(out, 1, num_flatten_dims=2)), {"x": rows(0, 4, 2, 3)}


def static_rnn_with_state(fluid):
    layers = fluid.layers
    x = variable(fluid, "x", [4, 2, 3])
    state = layers.fc(layers.reduce_sum(x, 0), 5)
    rnn = layers.StaticRNN()
    with rnn.step():
        word = rnn.step_input(x)
        before = rnn.memory(init=state)
        hidden = layers.fc([word, before], 5, act="tanh")
        rnn.update_memory(before, hidden)
        rnn.output(hidden)
    return layers.mean(layers.slice(rnn(), [0], [3], [4])), {"x": rows(0, 4, 2, 3)}


def dynamic_rnn(fluid):
    layers = fluid.layers
    x = variable(fluid, "x", [None, 3], lod_level=1)
    rnn = layers.DynamicRNN()
    with rnn.block():
        word = rnn.step_input(x)
        before = rnn.memory(shape=[5])
        hidden = layers.fc([word, before], 5, act="tanh")
        rnn.update_memory(before, hidden)
        rnn.output(hidden)
    return layers.mean(layers.sequence_last_step(rnn())), {"x": sequences(fluid, 0, 3, [2, 4, 1])}


def dynamic_rnn_with_everything(fluid):
    """A first state in the order of the batch, an input that is there as a whole, two outputs."""
    layers = fluid.layers
    x = variable(fluid, "x", [None, 3], lod_level=1)
    whole = variable(fluid, "whole", [None, 4], lod_level=1)
    state = layers.fc(variable(fluid, "state", [None, 3]), 5)
    rnn = layers.DynamicRNN()
    with rnn.block():
        word = rnn.step_input(x)
        summed = layers.sequence_pool(rnn.static_input(whole), "sum")
        before = rnn.memory(init=state, need_reorder=True)
        hidden = layers.fc([word, before, summed], 5, act="tanh")
        rnn.update_memory(before, hidden)
        rnn.output(hidden, word)
    one, other = rnn()
    feed = {
        "x": sequences(fluid, 0, 3, [2, 4, 1]),
        "whole": sequences(fluid, 2, 4, [1, 2, 3]),
        "state": rows(1, 3, 3),
    }
    return layers.mean(one) + layers.mean(other), feed


def gru_cell(fluid):
    layers = fluid.layers
    x = variable(fluid, "x", [2, 4, 3])
    lengths = layers.assign(np.array([2, 4], "int32"))
    out, state = layers.rnn(layers.GRUCell(5), x, sequence_length=lengths)
    return layers.mean(out) + layers.mean(state), {"x": rows(0, 2, 4, 3)}


def lstm_cell(fluid):
    layers = fluid.layers
    x = variable(fluid, "x", [2, 4, 3])
    out, (hidden, memory) = layers.rnn(layers.LSTMCell(5), x, is_reverse=True)
    return layers.mean(out) + layers.mean(hidden) + layers.mean(memory), {"x": rows(0, 2, 4, 3)}


# Arrays and order


def array_stacked(fluid):
    layers = fluid.layers
    h = layers.fc(variable(fluid, "x", [2, 3]), 3)
    i, j = counter(fluid, 1)
    array = layers.array_write(h, i)
    layers.array_write(layers.tanh(h), j, array=array)
    joined, _ = layers.tensor_array_to_tensor(array, axis=1, use_stack=True)
    return layers.mean(joined * joined) + layers.mean(layers.array_read(array, j)), {"x": rows(0, 2, 3)}


def array_read_twice(fluid):
    layers = fluid.layers
    h = layers.fc(variable(fluid, "x", [2, 3]), 3)
    i, j = counter(fluid, 1)
    array = layers.array_write(h, i)
    layers.array_write(layers.tanh(h), j, array=array)
    read = [layers.mean(layers.array_read(array, index)) for index in (i, j)]
    return read[0] + read[1], {"x": rows(0, 2, 3)}


def reordered(fluid):
    layers = fluid.layers
    x = variable(fluid, "x", [None, 3], lod_level=1)
    out = layers.reorder_lod_tensor_by_rank(layers.fc(x, 4), layers.control_flow.lod_rank_table(x))
    weights = layers.assign(np.arange(7, dtype="float32").reshape(7, 1))
    loss = layers.mean(layers.elementwise_mul(out, weights, axis=0))
    return loss, {"x": sequences(fluid, 0, 3, [2, 4, 1])}


TRAINED = {
    function.__name__: function
    for function in (
        while_with_array, while_overwriting, while_loop, while_loop_with_array, cond_in_while_loop, cond,
        case_and_switch_case, if_else, static_rnn, static_rnn_with_state, dynamic_rnn,
        dynamic_rnn_with_everything, gru_cell, lstm_cell, array_stacked, array_read_twice, reordered,
    )
}  # fmt: skip


# Decoders


def embedded(fluid, ids):
    return fluid.embedding(ids, size=[7, 4], param_attr=fluid.ParamAttr(name="words"))


def scored(fluid, x):
    attr = fluid.ParamAttr(name="scores")
    return fluid.layers.fc(x, 7, num_flatten_dims=len(x.shape) - 1, param_attr=attr, bias_attr=False)


def decoding(fluid, decoder, inits, more=None, **kwargs):
    feed = {"state": rows(0, 2, 5)}
    feed.update(more or {})
    return fluid.layers.dynamic_decode(decoder, inits=inits, **kwargs), feed


def beams(fluid, cell, beam_size):
    return fluid.layers.BeamSearchDecoder(
        cell,
        start_token=0,
        end_token=1,
        beam_size=beam_size,
        embedding_fn=lambda ids: embedded(fluid, ids),
        output_fn=lambda x: scored(fluid, x),
    )


def beam_search(fluid):
    state = fluid.data("state", [None, 5])
    decoder = beams(fluid, fluid.layers.GRUCell(5), 3)
    (out, last, lengths), feed = decoding(fluid, decoder, state, max_step_num=6, return_length=True)
    return [out, last.cell_states, last.log_probs, lengths], feed


def beam_search_of_nested_states(fluid):
    state = fluid.data("state", [None, 5])
    decoder = beams(fluid, fluid.layers.LSTMCell(5), 2)
    (out, _), feed = decoding(fluid, decoder, [state, state], max_step_num=4, output_time_major=True)
    return [out], feed


def greedy(fluid):
    return chosen_by_score(fluid, return_length=True)


def greedy_imputed(fluid):
    return chosen_by_score(fluid, impute_finished=True)


def chosen_by_score(fluid, **kwargs):
    layers = fluid.layers
    state = fluid.data("state", [None, 5])
    cell = layers.GRUCell(5)
    start = layers.fill_constant_batch_size_like(state, [-1], "int64", 0)
    helper = layers.GreedyEmbeddingHelper(lambda ids: embedded(fluid, ids), start, end_token=1)
    decoder = layers.BasicDecoder(cell, helper, output_fn=lambda x: scored(fluid, x))
    (out, *rest), feed = decoding(fluid, decoder, state, max_step_num=6, **kwargs)
    return [out.cell_outputs, out.sample_ids, *rest], feed


def teacher_forced(fluid):
    layers = fluid.layers
    state = fluid.data("state", [None, 5])
    target = fluid.data("target", [None, 4, 3])
    lengths = fluid.data("lengths", [None], "int64")
    helper = layers.TrainingHelper(target, lengths)
    decoder = layers.BasicDecoder(layers.GRUCell(5), helper, output_fn=lambda x: scored(fluid, x))
    more = {"target": rows(1, 2, 4, 3), "lengths": np.array([4, 2], "int64")}
    (out, last), feed = decoding(fluid, decoder, state, more)
    return [out.cell_outputs, out.sample_ids, last], feed


DECODED = {
    function.__name__: function
    for function in (beam_search, beam_search_of_nested_states, greedy, greedy_imputed, teacher_forced)
}
