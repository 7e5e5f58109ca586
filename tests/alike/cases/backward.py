"""Backward passes: names, sums, what stops them, several of them."""

from __future__ import annotations

import numpy as np

from tests.alike.recording import refused


def _x(fluid, width=4, name="x"):
    return fluid.data(name, [None, width])


def _free(fluid, width=4, name="x"):
    x = fluid.data(name, [None, width])
    x.stop_gradient = False
    return x


def _built(fluid, pairs=None):
    main = fluid.default_main_program()
    flags = [[v.name, v.stop_gradient] for v in main.list_vars() if "@GRAD" in v.name]
    return {"main": main, "pairs": pairs, "flags": sorted(flags)}


def _named(pairs):
    return [[p.name, g.name] for p, g in pairs]


def _ran(fluid, feed, fetch):
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    return exe.run(feed=feed, fetch_list=fetch)


def _feed(rows=2, width=4):
    return {"x": (np.arange(rows * width, dtype="float32").reshape(rows, width) - 3) / 4}


def two_layers(fluid):
    loss = fluid.layers.mean(fluid.layers.fc(fluid.layers.fc(_x(fluid), 3, act="relu"), 2))
    pairs = fluid.backward.append_backward(loss)
    values = _ran(fluid, _feed(), [loss] + [g for _, g in pairs])
    return dict(_built(fluid, _named(pairs)), values=values)


def a_value_used_three_times(fluid):
    h = fluid.layers.fc(_x(fluid), 3)
    total = fluid.layers.relu(h) + fluid.layers.tanh(h) * h
    loss = fluid.layers.mean(total)
    pairs = fluid.backward.append_backward(loss)
    values = _ran(fluid, _feed(), [loss] + [g for _, g in pairs])
    return dict(_built(fluid, _named(pairs)), values=values)


def the_same_value_twice_in_one_operator(fluid):
    h = fluid.layers.fc(_x(fluid), 3)
    loss = fluid.layers.mean(h * h + h)
    pairs = fluid.backward.append_backward(loss)
    values = _ran(fluid, _feed(), [g for _, g in pairs])
    return dict(_built(fluid, _named(pairs)), values=values)


def the_same_value_twice_in_a_sum(fluid):
    h = fluid.layers.fc(_x(fluid), 3)
    loss = fluid.layers.mean(fluid.layers.sums([h, h, h]))
    pairs = fluid.backward.append_backward(loss)
    return _built(fluid, _named(pairs))


def concat_of_the_same_value(fluid):
    h = fluid.layers.fc(_x(fluid), 3)
    loss = fluid.layers.mean(fluid.layers.concat([h, fluid.layers.relu(h), h], axis=1))
    pairs = fluid.backward.append_backward(loss)
    values = _ran(fluid, _feed(), [g for _, g in pairs])
    return dict(_built(fluid, _named(pairs)), values=values)


def a_shared_parameter(fluid):
    x = _x(fluid)
    h = fluid.layers.fc(x, 4, param_attr="w", bias_attr=False)
    h = fluid.layers.fc(h, 4, param_attr="w", bias_attr=False)
    pairs = fluid.backward.append_backward(fluid.layers.mean(h))
    values = _ran(fluid, _feed(), [g for _, g in pairs])
    return dict(_built(fluid, _named(pairs)), values=values)


def stop_in_the_middle(fluid):
    h = fluid.layers.fc(_x(fluid), 3)
    h.stop_gradient = True
    pairs = fluid.backward.append_backward(fluid.layers.mean(fluid.layers.fc(h, 2)))
    return _built(fluid, _named(pairs))


def stop_on_one_of_two_ways(fluid):
    h = fluid.layers.fc(_x(fluid), 3)
    a, b = fluid.layers.relu(h), fluid.layers.tanh(h)
    a.stop_gradient = True
    pairs = fluid.backward.append_backward(fluid.layers.mean(a + b))
    values = _ran(fluid, _feed(), [g for _, g in pairs])
    return dict(_built(fluid, _named(pairs)), values=values)


def no_grad_set_of_names(fluid):
    h = fluid.layers.fc(_x(fluid), 3, act="relu")
    loss = fluid.layers.mean(fluid.layers.fc(h, 2))
    return _built(fluid, _named(fluid.backward.append_backward(loss, no_grad_set={h.name})))


def no_grad_set_of_variables(fluid):
    h = fluid.layers.fc(_x(fluid), 3, act="relu")
    loss = fluid.layers.mean(fluid.layers.fc(h, 2))
    return _built(fluid, _named(fluid.backward.append_backward(loss, no_grad_set={h})))


def no_grad_set_of_a_parameter(fluid):
    loss = fluid.layers.mean(fluid.layers.fc(_x(fluid), 3, act="relu"))
    return _built(fluid, _named(fluid.backward.append_backward(loss, no_grad_set={"fc_0.w_0"})))


def wrong_no_grad_sets(fluid):
    loss = fluid.layers.mean(fluid.layers.fc(_x(fluid), 3))
    backward = fluid.backward.append_backward
    return [refused(backward, loss, no_grad_set=given) for given in ("fc_0.w_0", 3, {3})]


def parameter_list_of_names(fluid):
    loss = fluid.layers.mean(fluid.layers.fc(fluid.layers.fc(_x(fluid), 3), 2))
    pairs = fluid.backward.append_backward(loss, parameter_list=["fc_1.w_0", "fc_0.b_0"])
    return _built(fluid, _named(pairs))


def parameter_list_of_variables(fluid):
    loss = fluid.layers.mean(fluid.layers.fc(fluid.layers.fc(_x(fluid), 3), 2))
    weight = fluid.default_main_program().global_block().var("fc_0.w_0")
    return _built(fluid, _named(fluid.backward.append_backward(loss, parameter_list=[weight])))


def wrong_parameter_lists(fluid):
    h = fluid.layers.fc(_x(fluid), 3)
    loss = fluid.layers.mean(h)
    backward = fluid.backward.append_backward
    return [refused(backward, loss, parameter_list=given) for given in ("fc_0.w_0", [3])]


def a_parameter_that_is_not_there(fluid):
    loss = fluid.layers.mean(fluid.layers.fc(_x(fluid), 3))
    return refused(fluid.backward.append_backward, loss, parameter_list=["nobody"])


def a_frozen_parameter(fluid):
    h = fluid.layers.fc(_x(fluid), 3, param_attr=fluid.ParamAttr(trainable=False))
    return _built(fluid, _named(fluid.backward.append_backward(fluid.layers.mean(h))))


def outputs_that_lead_nowhere(fluid):
    h = fluid.layers.fc(_x(fluid), 6)
    first, _, third = fluid.layers.split(h, 3, dim=1)
    pairs = fluid.backward.append_backward(fluid.layers.mean(first + third))
    values = _ran(fluid, _feed(), [g for _, g in pairs])
    return dict(_built(fluid, _named(pairs)), values=values)


def an_output_that_leads_to_a_stop(fluid):
    h = fluid.layers.fc(_x(fluid), 6)
    first, second = fluid.layers.split(h, 2, dim=1)
    second.stop_gradient = True
    pairs = fluid.backward.append_backward(fluid.layers.mean(first * second))
    values = _ran(fluid, _feed(), [g for _, g in pairs])
    return dict(_built(fluid, _named(pairs)), values=values)


def top_values(fluid):
    values, _ = fluid.layers.topk(fluid.layers.fc(_x(fluid), 6), 2)
    return _built(fluid, _named(fluid.backward.append_backward(fluid.layers.mean(values))))


def dropout_then_norm(fluid):
    h = fluid.layers.dropout(fluid.layers.fc(_x(fluid), 6), 0.3)
    h = fluid.layers.layer_norm(h)
    return _built(fluid, _named(fluid.backward.append_backward(fluid.layers.mean(h))))


def a_sparse_table(fluid):
    ids = fluid.data("ids", [None, 1], "int64")
    rows = fluid.layers.embedding(ids, [10, 4], is_sparse=True, param_attr="table")
    again = fluid.layers.embedding(ids, [10, 4], is_sparse=True, param_attr="table")
    pairs = fluid.backward.append_backward(fluid.layers.mean(rows + again))
    return _built(fluid, _named(pairs))


def two_losses_added(fluid):
    h = fluid.layers.fc(_x(fluid), 3)
    loss = fluid.layers.mean(h) + fluid.layers.mean(fluid.layers.square(h))
    return _built(fluid, _named(fluid.backward.append_backward(loss)))


def operators_beside_the_path(fluid):
    h = fluid.layers.fc(_x(fluid), 3)
    fluid.layers.fc(h, 2)  # leads nowhere
    loss = fluid.layers.mean(h)
    fluid.layers.scale(loss, 2.0)
    return _built(fluid, _named(fluid.backward.append_backward(loss)))


def callbacks(fluid):
    seen = []

    def note(block, context):
        op = block.ops[-1]
        seen.append([op.type, sorted(name for name in op.output_arg_names)])

    loss = fluid.layers.mean(fluid.layers.fc(_x(fluid), 3))
    pairs = fluid.backward.append_backward(loss, callbacks=[note])
    return dict(_built(fluid, _named(pairs)), seen=seen)


def wrong_losses(fluid):
    backward = fluid.backward.append_backward
    fluid.layers.fc(_x(fluid), 3)
    return [refused(backward, "fc_0.tmp_1"), refused(backward, _x(fluid, name="z")), refused(backward, None)]


def a_loss_that_is_a_matrix(fluid):
    h = fluid.layers.fc(_x(fluid), 3)
    return refused(lambda: _built(fluid, _named(fluid.backward.append_backward(h))))


def a_loss_with_stop_gradient(fluid):
    loss = fluid.layers.mean(fluid.layers.fc(_x(fluid), 3))
    loss.stop_gradient = True
    return refused(lambda: _built(fluid, _named(fluid.backward.append_backward(loss))))


def a_second_pass_of_the_same_loss(fluid):
    loss = fluid.layers.mean(fluid.layers.fc(_x(fluid), 3, act="relu"))
    first = _named(fluid.backward.append_backward(loss))
    second = _named(fluid.backward.append_backward(loss))
    return dict(_built(fluid, [first, second]))


def a_second_pass_of_another_loss(fluid):
    h = fluid.layers.fc(_x(fluid), 3, act="relu")
    one = fluid.layers.mean(h)
    two = fluid.layers.mean(fluid.layers.square(h))
    first = _named(fluid.backward.append_backward(one))
    second = _named(fluid.backward.append_backward(two))
    values = _ran(fluid, _feed(), [name for _, name in first] + [name for _, name in second])
    return dict(_built(fluid, [first, second]), values=values)


def two_optimizers(fluid):
    h = fluid.layers.fc(_x(fluid), 3, act="relu")
    one = fluid.layers.mean(h)
    two = fluid.layers.mean(fluid.layers.square(fluid.layers.fc(h, 2)))
    fluid.optimizer.SGD(0.1).minimize(one)
    fluid.optimizer.SGD(0.1).minimize(two)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    for _ in range(3):
        values = exe.run(feed=_feed(), fetch_list=[one, two, "fc_0.w_0", "fc_1.w_0"])
    return dict(_built(fluid), values=values)


# gradients()


def gradients_of_data(fluid):
    x = _free(fluid)
    y = fluid.layers.square(fluid.layers.relu(x))
    found = fluid.gradients([y], [x])
    return dict(_built(fluid, found), values=_ran(fluid, _feed(), found))


def gradients_of_one_variable_each(fluid):
    x = _free(fluid)
    found = fluid.gradients(fluid.layers.tanh(x), x)
    return dict(_built(fluid, found), values=_ran(fluid, _feed(), found))


def gradients_of_a_stopped_input(fluid):
    x = _x(fluid)
    return _built(fluid, fluid.gradients([fluid.layers.relu(x)], [x]))


def gradients_of_a_value_between(fluid):
    x = _free(fluid)
    h = fluid.layers.tanh(x)
    found = fluid.gradients([fluid.layers.square(h)], [h])
    return dict(_built(fluid, found), values=_ran(fluid, _feed(), found))


def gradients_of_two_targets_and_two_inputs(fluid):
    x, z = _free(fluid), _free(fluid, name="z")
    a, b = x * z, fluid.layers.exp(x)
    found = fluid.gradients([a, b], [x, z])
    return dict(_built(fluid, found), values=_ran(fluid, dict(_feed(), z=_feed()["x"] + 1), found))


def gradients_from_given_ones(fluid):
    x = _free(fluid)
    start = fluid.data("start", [None, 4])
    found = fluid.gradients([fluid.layers.square(x)], [x], target_gradients=[start])
    feed = dict(_feed(), start=np.full((2, 4), 3, "float32"))
    return dict(_built(fluid, found), values=_ran(fluid, feed, found))


def gradients_from_one_given_and_one_not(fluid):
    x = _free(fluid)
    start = fluid.data("start", [None, 4])
    targets = [fluid.layers.square(x), fluid.layers.exp(x)]
    found = fluid.gradients(targets, [x], target_gradients=[start, None])
    return _built(fluid, found)


def gradients_of_something_unrelated(fluid):
    x, z = _free(fluid), _free(fluid, name="z")
    return _built(fluid, fluid.gradients([fluid.layers.relu(x)], [x, z]))


def gradients_of_a_variable_by_itself(fluid):
    x = _free(fluid)
    y = fluid.layers.relu(x)
    return _built(fluid, fluid.gradients([y], [y, x]))


def gradients_with_no_grad_set(fluid):
    x = _free(fluid)
    h = fluid.layers.tanh(x)
    y = h * x
    found = fluid.gradients([y], [x], no_grad_set={h.name})
    return dict(_built(fluid, found), values=_ran(fluid, _feed(), found))


def gradients_twice(fluid):
    x = _free(fluid)
    y = fluid.layers.square(x)
    first = fluid.gradients([y], [x])
    second = fluid.gradients([y], [x])
    return dict(_built(fluid, [first, second]), values=_ran(fluid, _feed(), first + second))


def gradients_of_two_functions(fluid):
    x = _free(fluid)
    first = fluid.gradients([fluid.layers.tanh(x)], [x])
    second = fluid.gradients([fluid.layers.relu(x)], [x])
    return dict(_built(fluid, [first, second]), values=_ran(fluid, _feed(), first + second))


def gradients_then_backward(fluid):
    x = _free(fluid)
    h = fluid.layers.fc(x, 3)
    found = fluid.gradients([h], [x])
    pairs = fluid.backward.append_backward(fluid.layers.mean(h))
    values = _ran(fluid, _feed(), found + [g for _, g in pairs])
    return dict(_built(fluid, [found, _named(pairs)]), values=values)


def gradients_in_a_loss(fluid):
    x = _free(fluid)
    h = fluid.layers.fc(x, 3, bias_attr=False)
    (slope,) = fluid.gradients([fluid.layers.scale(h, 2.0)], [x])
    loss = fluid.layers.mean(fluid.layers.scale(slope, 3.0))
    return refused(lambda: _built(fluid, _named(fluid.backward.append_backward(loss))))


def gradients_of_a_parameter(fluid):
    h = fluid.layers.fc(_x(fluid), 3)
    weight = fluid.default_main_program().global_block().var("fc_0.w_0")
    found = fluid.gradients([h], [weight])
    return dict(_built(fluid, found), values=_ran(fluid, _feed(), found))


def wrong_gradients(fluid):
    x = _free(fluid)
    y = fluid.layers.relu(x)
    start = fluid.data("start", [None, 7])
    return [
        refused(fluid.gradients, [y], [x], target_gradients=[None, None]),
        refused(fluid.gradients, [y], [x], target_gradients=[start]),
        refused(fluid.gradients, ["relu_0.tmp_0"], [x]),
        refused(fluid.gradients, [y], ["x"]),
        refused(fluid.gradients, [y], [x], no_grad_set="x"),
    ]


def an_increment_in_place(fluid):
    h = fluid.layers.fc(_x(fluid), 1)
    h = fluid.layers.mean(h)
    fluid.layers.increment(h, 2.0, in_place=True)
    loss = fluid.layers.square(h)
    return refused(lambda: _built(fluid, _named(fluid.backward.append_backward(loss))))


def a_clipped_value(fluid):
    h = fluid.layers.fc(_x(fluid), 3)
    h._set_error_clip(fluid.clip.ErrorClipByValue(max=0.1, min=-0.1))
    loss = fluid.layers.mean(fluid.layers.scale(h, 40.0))
    fluid.optimizer.SGD(0.1).minimize(loss)
    return _built(fluid)


def a_metric_beside(fluid):
    label = fluid.data("l", [None, 1], "int64")
    prediction = fluid.layers.fc(_x(fluid), 3, act="softmax")
    loss = fluid.layers.mean(fluid.layers.cross_entropy(prediction, label))
    fluid.layers.accuracy(prediction, label)
    return _built(fluid, _named(fluid.backward.append_backward(loss)))


def three_passes(fluid):
    x = _free(fluid)
    h = fluid.layers.tanh(x)
    first = fluid.gradients([h], [x])
    second = fluid.gradients([fluid.layers.square(h) + h], [x])
    third = fluid.gradients([h], [x, h])
    return dict(_built(fluid, [first, second, third]), values=_ran(fluid, _feed(), first + second))


def a_second_order_gradient_by_gradients(fluid):
    x = _free(fluid)
    (slope,) = fluid.gradients([fluid.layers.square(x)], [x])
    return refused(lambda: _built(fluid, fluid.gradients([slope], [x])))


def a_second_pass_with_sums(fluid):
    h = fluid.layers.fc(_x(fluid), 3, act="relu")
    one = fluid.layers.mean(h)
    first = _named(fluid.backward.append_backward(one))
    two = fluid.layers.mean(fluid.layers.square(h) + fluid.layers.tanh(h))
    second = _named(fluid.backward.append_backward(two))
    values = _ran(fluid, _feed(), [name for _, name in first] + [name for _, name in second])
    return dict(_built(fluid, [first, second]), values=values)


def gradients_of_a_target_on_the_way_to_another(fluid):
    x = _free(fluid)
    h = fluid.layers.tanh(x)
    found = fluid.gradients([h, fluid.layers.square(h)], [x])
    return dict(_built(fluid, found), values=_ran(fluid, _feed(), found))


def gradients_given_for_a_target_on_the_way(fluid):
    x = _free(fluid)
    h = fluid.layers.tanh(x)
    start = fluid.data("start", [None, 4])
    y = fluid.layers.square(h)
    found = fluid.gradients([h, y], [x], target_gradients=[start, start])
    feed = dict(_feed(), start=np.full((2, 4), 3, "float32"))
    return dict(_built(fluid, found), values=refused(_ran, fluid, feed, found))


def gradients_with_the_same_start_twice(fluid):
    x = _free(fluid)
    start = fluid.data("start", [None, 4])
    y = fluid.layers.square(x)
    one = fluid.gradients([y], [x], target_gradients=[start])
    two = fluid.gradients([y], [x], target_gradients=[start])
    feed = dict(_feed(), start=np.full((2, 4), 3, "float32"))
    return dict(_built(fluid, [one, two]), values=_ran(fluid, feed, one + two))


def a_parameter_of_the_first_pass_only(fluid):
    h = fluid.layers.fc(_x(fluid), 3)
    one = fluid.layers.mean(fluid.layers.fc(h, 2))
    two = fluid.layers.mean(h)
    first = _named(fluid.backward.append_backward(one))
    second = _named(fluid.backward.append_backward(two))
    return dict(_built(fluid, [first, second]))


def dropout_for_test_in_training(fluid):
    x = fluid.data("x", [None, 4])
    loss = fluid.layers.mean(fluid.layers.dropout(fluid.layers.fc(x, 3), 0.5, is_test=True))
    return refused(fluid.optimizer.SGD(0.1).minimize, loss)
