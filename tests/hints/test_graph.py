"""The advice of errors of programs, gradients, parameters and optimizers, followed to the letter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from tests.backward.test_append import read_later_program
from tests.hints.advice import ROWS, Advice, each, fill, hold, new_network, read_rows, run

layers = fluid.layers
SGD = fluid.optimizer.SGD
ONES = np.ones((2, 4), "float32")
BRANCH = np.array([True])


def make_out(value: float = 1.0, **options: Any) -> fluid.Variable:
    return layers.fc(read_rows(), 1, param_attr=fill(value), bias_attr=False, **options)


def read_weight(name: str = "fc_0.w_0") -> Any:
    return np.array(fluid.global_scope().find_var(name).get_tensor())


def train(optimizer: Any, loss: fluid.Variable, **options: Any) -> Any:
    """Return the weights, at first ones, after a step in which each has the gradient 1."""
    optimizer.minimize(loss)
    run(loss, {"x": ONES}, **options)
    return read_weight()


def minimize_in_branch(inside: bool) -> Any:
    """Minimize in the block of a branch, or behind it; return the trained weights."""
    optimizer = SGD(0.5)

    loss = layers.cond(
        hold(BRANCH), lambda: layers.mean(make_out()), lambda: layers.fill_constant([1], "float32", 0.0)
    )
    if inside:
        branch = fluid.default_main_program().block(1)
        return optimizer.minimize(branch.vars["mean_0.tmp_0"])
    return train(optimizer, loss)


def append_unknown(stop: bool) -> Any:
    """Return the gradient of x through x + f(x), where f is an operator of an unknown type."""
    x = read_rows()
    x.stop_gradient = False
    out = layers.elementwise_add(layers.scale(x, 3.0), layers.assign(x))
    data = fluid.default_main_program().desc.serialize_to_string().replace(b"assign", b"zzzign")
    program = fluid.Program.parse_from_string(data)
    block = program.global_block()
    block.var("x").stop_gradient = False
    if stop:
        unknown = next(op for op in block.ops if op.type == "zzzign")
        block.var(unknown.output_arg_names[0]).stop_gradient = True
    with fluid.program_guard(program):
        fluid.gradients([block.var(out.name)], [block.var("x")])
    return [op.type for op in block.ops].count("scale")  # its gradient is another one


def recompute(checkpoints: bool) -> Any:
    out = layers.cond(hold(BRANCH), lambda: make_out(), lambda: layers.scale(make_out(), 2.0))
    optimizer: Any = SGD(0.5)
    if checkpoints:
        optimizer = fluid.optimizer.RecomputeOptimizer(optimizer)
        optimizer._set_checkpoints([out])
    return train(optimizer, layers.mean(out))


def build_elsewhere(one_guard: bool) -> Any:
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup):
        x = read_rows()
        out = layers.scale(x, 2.0)
        if one_guard:
            out = layers.scale(out, 2.0)
            return run(out, {"x": ROWS}, main)
    return layers.scale(out, 2.0)


def declare(name: str) -> Any:
    fluid.data("x", [None, 3])
    return run(layers.scale(fluid.data(name, [None, 4]), 2.0), {name: ROWS})


def write_file(trusted: bool) -> Any:
    out = layers.scale(layers.Print(read_rows()), 2.0)
    data = fluid.default_main_program().desc.serialize_to_string()
    program = fluid.Program.parse_from_string(data, **({"trusted": True} if trusted else {}))
    return run(out.name, {"x": ROWS}, program)


def loop(minimize_inside: bool) -> Any:
    at, limit = layers.fill_constant([1], "int64", 0), layers.fill_constant([1], "int64", 3)
    at.stop_gradient = True
    cond = layers.less_than(at, limit)
    loss = layers.mean(make_out())
    while_loop = layers.While(cond)
    with while_loop.block():
        layers.increment(at)
        if minimize_inside:
            SGD(0.5).minimize(layers.mean(layers.fc(hold(ONES), 1)))
        layers.less_than(at, limit, cond=cond)
    return train(SGD(0.5), loss)


def count(condition: str) -> Any:
    at, limit = layers.fill_constant([1], "int64", 0), layers.fill_constant([1], "int64", 3)
    cond = layers.less_than(at, limit)
    while_loop = layers.While(cond)
    with while_loop.block():
        layers.increment(at)
        if condition == "cond":
            layers.less_than(at, limit, cond=cond)
        elif condition == "assign":
            layers.assign(layers.less_than(at, limit), cond)
        else:
            layers.less_than(at, limit)
    return run(at)


def schedule(in_guard: bool) -> Any:
    optimizer = None if in_guard else SGD(layers.piecewise_decay([1], [0.5, 0.25]))
    with new_network():
        loss = layers.mean(make_out())
        return train(optimizer or SGD(layers.piecewise_decay([1], [0.5, 0.25])), loss)


def check_many(chosen: str) -> Any:
    """Return the sum of a large array, held by a parameter or fed."""
    large = np.ones(2**20 + 1, "float32")
    if chosen == "assign":
        return run(layers.reduce_sum(layers.assign(large)))
    if chosen == "feed":
        return run(layers.reduce_sum(fluid.data("large", [2**20 + 1])), {"large": large})
    attr = fluid.ParamAttr(initializer=fluid.initializer.NumpyArrayInitializer(large))
    return run(layers.reduce_sum(layers.create_parameter([2**20 + 1], "float32", attr=attr)))


def unstack(**options: int) -> Any:
    x = fluid.data("rows", [-1, 4])
    return run(layers.unstack(x, 0, **options)[1], {"rows": ROWS})


def refuse(name: str) -> Any:
    return getattr(SGD(0.5), name)({})


def normalize(shape: list[int | None]) -> Any:
    return run(layers.batch_norm(fluid.data("x", shape), is_test=True, epsilon=0.0), {"x": ROWS})


def pipe(wrapped: bool) -> Any:
    optimizer: Any = SGD(0.5)
    return train(
        fluid.optimizer.PipelineOptimizer(optimizer) if wrapped else optimizer, layers.mean(make_out())
    )


def save_state(by: str) -> Any:
    optimizer = fluid.optimizer.Momentum(0.5, 0.9)
    train(optimizer, layers.mean(make_out()))
    exe, main = fluid.Executor(), fluid.default_main_program()
    if by == "save":
        fluid.save(main, "m")
        state = fluid.load_program_state("m")
    else:
        fluid.io.save_persistables(exe, "m", main)
        state = fluid.load_program_state("m")
    fluid.global_scope().find_var("fc_0.w_0").get_tensor().set(np.zeros((4, 1), "float32"), None)
    if by == "save":
        fluid.load(main, "m", exe)
    else:
        fluid.io.load_persistables(exe, "m", main)
    return [float(state["fc_0.w_0_velocity_0"].sum()), float(read_weight().sum())]


def look(at: str) -> Any:
    x = hold(ROWS)
    if at == "reduce_any":
        return run(layers.reduce_any(layers.equal(x, layers.fill_constant([1], "float32", 3.0))))
    return 3.0 in run(x)


def fetch_rate() -> Any:
    optimizer = SGD(0.5)
    optimizer.minimize(layers.mean(make_out()))
    return run(optimizer._global_learning_rate(), {"x": ROWS})


def prune(to: Any) -> Any:
    out = layers.scale(read_rows(), 2.0)
    layers.scale(out, 3.0)
    program = fluid.default_main_program()._prune(
        [out] if to == "variable" else [out.name] if to == "name" else [to]
    )
    return [op.type for op in program.global_block().ops]


def create_parameter(dim: int) -> Any:
    return run(layers.create_parameter([dim, 2], "float32", attr=fill(1.0)))


def keep_weight(trainable: bool) -> Any:
    attr = fluid.ParamAttr(initializer=fluid.initializer.Constant(1.0), trainable=trainable)
    hidden = layers.fc(read_rows(), 1, param_attr=attr, bias_attr=False)
    return train(SGD(0.5), layers.mean(layers.fc(hidden, 1)))


def unpersist() -> None:
    make_out()
    fluid.default_main_program().all_parameters()[0].persistable = False


def scope_values() -> Any:
    tensor = fluid.LoDTensor()
    tensor.set(ROWS, fluid.CPUPlace())
    return np.array(tensor)


def name_attribute(name: str) -> Any:
    return layers.scale(read_rows(), 2.0).op.attr(name)


def differentiate_later(stop: bool) -> Any:
    """Return the gradient of x^2 + acosh(x), where the second is an operator of Paddle 2."""
    program = read_later_program(("square", "x", "y"), ("acosh", "x", "z"))
    x, y, z = (program.global_block().var(name) for name in "xyz")
    z.stop_gradient = stop
    with fluid.program_guard(program):
        (gradient,) = fluid.gradients([layers.elementwise_add(y, z)], [x])
    return run(gradient, {"x": np.array([3.0], "float32")}, program)


def accumulate(flatten: bool) -> Any:
    """Return the gradient of sums up to each element, by the operator of Paddle 2."""
    operators = [("cumsum", "x", "y")] if flatten else []
    program = read_later_program(*operators, ("square", "x", "z"), flags=["flatten"] * flatten)
    x, y, z = (program.global_block().var(name) for name in "xyz")
    with fluid.program_guard(program):
        if not flatten:
            program.global_block().append_op("cumsum", {"X": [layers.reshape(z, [-1])]}, {"Out": [y]}, {})
        (gradient,) = fluid.gradients([y], [x])
    return run(gradient, {"x": np.array([3.0], "float32")}, program)


def differentiate_twice(stop: bool) -> Any:
    """Return the second gradient of tanh(x^2), where the slope of tanh may count as a constant."""
    x = read_rows()
    x.stop_gradient = False
    squares = layers.square(x)
    (first,) = fluid.gradients([layers.tanh(squares)], [x])
    if stop:
        first.block.var(f"{squares.name}@GRAD").stop_gradient = True
    fluid.set_flags({"FLAGS_fluid_quirks": False})
    try:
        (second,) = fluid.gradients([first], [x])
    finally:
        fluid.set_flags({"FLAGS_fluid_quirks": True})
    return run(second, {"x": ROWS / 8})


ADVICE: dict[str, Advice] = {
    "an operator of Paddle 2 without a gradient": Advice(
        lambda: differentiate_later(stop=False),
        "set stop_gradient = True on {} if no variable before it is trained",
        lambda: differentiate_later(stop=True),
        [6.0],
    ),
    "the gradient of a flattened sum": Advice(
        lambda: accumulate(flatten=True),
        "reshape its input to [-1], and leave flatten False",
        lambda: accumulate(flatten=False),
        [6.0],
    ),
    "the gradient of a gradient that has none": Advice(
        lambda: differentiate_twice(stop=False),
        "set stop_gradient = True on a gradient that counts as a constant",
        lambda: differentiate_twice(stop=True),
        2 / np.cosh((ROWS / 8) ** 2) ** 2,
    ),
    "a loss inside of a branch": Advice(
        lambda: minimize_in_branch(inside=True),
        "return the loss from it, as layers.cond does",
        lambda: minimize_in_branch(inside=False),
        np.full((4, 1), 0.5),
    ),
    "a loss of many values": Advice(
        lambda: fluid.backward.append_backward(make_out()),
        "reduce it to one value, as layers.mean does",
        lambda: train(SGD(0.5), layers.mean(make_out())),
        np.full((4, 1), 0.5),
    ),
    "an operator of an unknown type": Advice(
        lambda: append_unknown(stop=False),
        "set stop_gradient = True on its outputs, if no gradient has to pass it",
        lambda: append_unknown(stop=True),
        2,
    ),
    "checkpoints around a block": Advice(
        lambda: recompute(checkpoints=True),
        "minimize without checkpoints",
        lambda: recompute(checkpoints=False),
        np.full((4, 1), 0.5),
    ),
    "a tensor without a value": Advice(
        lambda: fluid.LoDTensor()[0],
        "call its set()",
        scope_values,
        ROWS,
    ),
    "a place that is a text": Advice(
        lambda: fluid.Executor("cpu"),
        "fluid.CPUPlace(), or fluid.CUDAPlace(0) for the first GPU",
        lambda: fluid.Executor(fluid.CPUPlace()).run(
            feed={"x": ROWS}, fetch_list=[layers.scale(read_rows(), 2.0)]
        )[0],
        2 * ROWS,
    ),
    "a fraction added to integers": Advice(
        lambda: hold(np.arange(4)) + 0.5,
        'convert the variable first: x.astype("float32")',
        lambda: run(hold(np.arange(4)).astype("float32") + 0.5),
        np.arange(4) + 0.5,
    ),
    "an attribute that is an object": Advice(
        lambda: note(object()),
        "use a number, a string, a bool, or a list of one of these",
        lambda: [note(2), note("two"), note(True), note([2, 3])],
        [2, "two", True, [2, 3]],
    ),
    "a variable of another program": Advice(
        lambda: build_elsewhere(one_guard=False),
        "was it built in another program? Build both under one fluid.program_guard(main, startup)",
        lambda: build_elsewhere(one_guard=True),
        4 * ROWS,
    ),
    "a name with two shapes": Advice(
        lambda: declare("x"),
        "pass another name, or build the network under fluid.unique_name.guard()",
        lambda: declare("y"),
        2 * ROWS,
    ),
    "a scope without a name": Advice(
        lambda: fluid.name_scope("").__enter__(),
        'pass a name, such as "encoder"',
        lambda: name_in_scope("encoder"),
        "/encoder/",
    ),
    "an attribute that an operator lacks": Advice(
        lambda: name_attribute("scael"),
        "it has {}",
        lambda: name_attribute("scale"),
        2.0,
    ),
    "a program pruned to nothing": Advice(
        lambda: prune("nothing"),
        "pass variables or operators of the outermost block, or names of variables",
        lambda: [prune("variable"), prune("name")],
        [["scale"], ["scale"]],
    ),
    "a program from bytes that prints": Advice(
        lambda: write_file(trusted=False),
        "if you know who made it: Program.parse_from_string(data, trusted=True)",
        lambda: write_file(trusted=True),
        2 * ROWS,
    ),
    "the value of a variable": Advice(
        lambda: hold(ROWS).numpy(),
        "fetch it, (value,) = exe.run(program, feed=..., fetch_list=[variable])",
        lambda: run(hold(ROWS)),
        ROWS,
    ),
    "the gradients of a variable": Advice(
        lambda: layers.mean(make_out()).backward(),
        "optimizer.minimize(loss) appends the gradients and the update, once; fluid.gradients(loss, inputs) the",
        lambda: [train(SGD(0.5), layers.mean(make_out()))[0, 0], take_gradient()[0, 0]],
        [0.5, 1.0],
    ),
    "a step of a schedule": Advice(
        lambda: layers.piecewise_decay([1], [0.5, 0.25]).step(),
        "leave the call out: each exe.run(program, feed=...) that trains counts a step of the schedule",
        lambda: train_twice(layers.piecewise_decay([1], [0.5, 0.25])),
        np.full((4, 1), 1 - 0.5 - 0.25),
    ),
    "a variable moved to a device": Advice(
        lambda: hold(ROWS).cuda(),
        "the Executor's place is the device: fluid.Executor(fluid.CPUPlace())",
        lambda: fluid.Executor(fluid.CPUPlace()).run(fetch_list=[hold(ROWS)])[0],
        ROWS,
    ),
    "a variable in an if": Advice(
        lambda: 1 if hold(BRANCH) else 2,
        "use layers.cond or layers.Switch, layers.while_loop, layers.logical_and and its kin",
        lambda: run(layers.cond(hold(BRANCH), lambda: hold(ROWS), lambda: hold(2 * ROWS))),
        ROWS,
    ),
    "a parameter of an unknown size": Advice(
        lambda: create_parameter(-1),
        "every dim of a parameter is a positive number; only data variables have dims of -1",
        lambda: create_parameter(3),
        np.ones((3, 2)),
    ),
    "a parameter that is not persistable": Advice(
        unpersist,
        "set trainable=False to keep an optimizer from changing it",
        lambda: keep_weight(trainable=False),
        np.ones((4, 1)),
    ),
    "a variable that is a number": Advice(
        lambda: float(hold(ROWS)),
        "(value,) = exe.run(program, feed=..., fetch_list=[{}])",
        lambda: float(run(layers.reduce_sum(hold(ROWS)))[0]),
        28.0,
    ),
    "numpy with a variable": Advice(
        lambda: np.concatenate([hold(ROWS), hold(ROWS)]),
        "use functions of fluid.layers, or numpy after (value,) = exe.run(program, feed=..., fetch_list=[{}])",
        lambda: [
            run(layers.concat([hold(ROWS), hold(ROWS)])).sum(),
            np.concatenate([run(hold(ROWS))] * 2).sum(),
        ],
        [56.0, 56.0],
    ),
    "a part that is set": Advice(
        lambda: hold(ROWS).__setitem__(0, 1.0),
        "layers.scatter, layers.where and layers.concat make one with other values",
        lambda: run(layers.scatter(hold(ROWS), hold(np.array([0])), hold(np.ones((1, 4), "float32")))),
        [[1, 1, 1, 1], [4, 5, 6, 7]],
    ),
    "a value in a variable": Advice(
        lambda: 3.0 in hold(ROWS),
        "layers.reduce_any(variable == value); or fetch it, and look into the array",
        lambda: [bool(look("reduce_any")), look("array")],
        [True, True],
    ),
    "a parameter of a number": Advice(
        lambda: fluid.ParamAttr._to_attr(3),
        "fluid.ParamAttr(name='w', learning_rate=0.1, initializer=fluid.initializer.Xavier())",
        lambda: name_parameter(
            fluid.ParamAttr(name="w", learning_rate=0.1, initializer=fluid.initializer.Xavier())
        ),
        ["w", 0.1],
    ),
    "an initializer that is a class": Advice(
        lambda: fluid.ParamAttr(initializer=fluid.initializer.Constant),
        "call it: initializer={}()",
        lambda: run(layers.create_parameter([2], "float32", attr=call_initializer())),
        [0.0, 0.0],
    ),
    "a metric without its classes": Advice(
        lambda: measure(class_num=None),
        "pass the number of classes",
        lambda: measure(class_num=3),
        (1,),
    ),
    "maps without sizes": Advice(
        lambda: head(),
        "pass min_sizes and max_sizes with an entry for each map, or for more than two maps min_ratio and max_ratio (percent) far enough apart",
        lambda: each(
            lambda: head(min_sizes=[1.0, 2.0, 3.0], max_sizes=[2.0, 3.0, 4.0]),
            lambda: head(min_ratio=20, max_ratio=90),
        ),
        [(-1, 4)] * 2,
    ),
    "a loss of unknown rows": Advice(
        lambda: pair(-1),
        "declare the batch size as a number",
        lambda: pair(2),
        (1,),
    ),
    "a loss that is minimized in a loop": Advice(
        lambda: loop(minimize_inside=True),
        "minimize the loss after the loop",
        lambda: loop(minimize_inside=False),
        np.full((4, 1), 0.5),
    ),
    "a loop without an end": Advice(
        lambda: count("nothing"),
        "compute it again in the block: layers.less_than(i, limit, cond=condition), or layers.assign(new_value, condition)",
        lambda: [int(count("cond")[0]), int(count("assign")[0])],
        [3, 3],
    ),
    "an embedding of a number": Advice(
        lambda: layers.embedding(hold(np.array([[1]])), size=3),
        "an embedding has size=[rows, width]",
        lambda: run(layers.embedding(hold(np.array([[1]])), size=[3, 2], param_attr=fill(2.0))),
        [[2, 2]],
    ),
    "a batch axis that is missing": Advice(
        lambda: normalize([4]),
        "declare the batch, too: [None, channels, ...]",
        lambda: normalize([None, 4]),
        ROWS,
    ),
    "an array that is too large for a program": Advice(
        lambda: check_many("assign"),
        "make it a parameter with a NumpyArrayInitializer, or feed it",
        lambda: [float(check_many("parameter")[0]), float(check_many("feed")[0])],
        [2**20 + 1] * 2,
    ),
    "a dim that is unknown to unstack": Advice(
        unstack,
        "pass num",
        lambda: unstack(num=2),
        ROWS[1],
    ),
    "the state of an optimizer": Advice(
        lambda: refuse("state_dict"),
        "save the state with fluid.save or fluid.io.save_persistables",
        lambda: each(lambda: save_state("save"), lambda: save_state("save_persistables")),
        [[4.0, 2.0]] * 2,
    ),
    "the state that an optimizer gets": Advice(
        lambda: refuse("set_dict"),
        "load the state with fluid.load or fluid.io.load_persistables",
        lambda: each(lambda: save_state("save"), lambda: save_state("save_persistables")),
        [[4.0, 2.0]] * 2,
    ),
    "the rate of an optimizer": Advice(
        lambda: SGD(0.5).current_step_lr(),
        "fetch the learning rate's variable from the executor",
        fetch_rate,
        [0.5],
    ),
    "gradients that are cleared": Advice(
        lambda: SGD(0.5).clear_gradients(),
        "leave the call out: every run computes the gradients again",
        lambda: train_twice(0.25),
        np.full((4, 1), 0.5),
    ),
    "a step of an optimizer": Advice(
        lambda: SGD(0.5).step(),
        "call minimize(loss) once, while the network is built; each exe.run(program, feed=...) then trains one step",
        lambda: train_twice(0.25),
        np.full((4, 1), 0.5),
    ),
    "a schedule of another program": Advice(
        lambda: schedule(in_guard=False),
        "build the schedule and the optimizer under the program_guard of the loss",
        lambda: schedule(in_guard=True),
        np.full((4, 1), 0.5),
    ),
    "sections on several devices": Advice(
        lambda: pipe(wrapped=True),
        "minimize with the optimizer inside; the results are the same",
        lambda: pipe(wrapped=False),
        np.full((4, 1), 0.5),
    ),
    "gradients that are compressed": Advice(
        lambda: fluid.optimizer.DGCMomentumOptimizer(0.5, 0.9, 0),
        "Momentum does the same steps without compression",
        lambda: train(fluid.optimizer.Momentum(0.5, 0.9), layers.mean(make_out())),
        np.full((4, 1), 0.5),
    ),
    "the load of an optimizer of recomputation": Advice(
        lambda: fluid.optimizer.RecomputeOptimizer(SGD(0.5)).load({}),
        "use fluid.load",
        lambda: save_state("save"),
        [4.0, 2.0],
    ),
}


def note(value: Any) -> Any:
    op = layers.scale(read_rows(), 2.0).op
    op._set_attr("note", value)
    return op.attr("note")


def measure(**options: Any) -> Any:
    rows = fluid.data("rows", [None, 6], lod_level=1)
    label, box = fluid.data("label", [None, 1], lod_level=1), fluid.data("box", [None, 4], lod_level=1)
    return fluid.metrics.DetectionMAP(rows, label, box, **options).get_map_var()[0].shape


def head(**options: Any) -> Any:
    image = fluid.data("image", [None, 3, 64, 64])
    maps = [fluid.data(f"map{at}", [None, 4, 8 // 2**at, 8 // 2**at]) for at in range(3)]
    found = layers.multi_box_head(
        maps, image, base_size=64, num_classes=3, aspect_ratios=[[2.0]] * 3, flip=True, **options
    )
    return tuple(found[2].shape)[:1] and (-1, found[2].shape[1])


def pair(rows: int) -> Any:
    anchor, positive = (fluid.data(name, [rows, 4]) for name in ("anchor", "positive"))
    return layers.npair_loss(anchor, positive, fluid.data("labels", [rows])).shape


def name_in_scope(name: str) -> str:
    with fluid.name_scope(name):
        return layers.scale(read_rows(), 2.0).op.attr("op_namescope")


def take_gradient() -> Any:
    out = make_out()
    (gradient,) = fluid.gradients(layers.mean(out), [fluid.default_main_program().all_parameters()[-1]])
    return run(gradient, {"x": ONES})


def train_twice(rate: Any) -> Any:
    loss = layers.mean(make_out())
    SGD(rate).minimize(loss)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    for _ in range(2):
        exe.run(feed={"x": ONES}, fetch_list=[loss])
    return read_weight()


def name_parameter(attr: fluid.ParamAttr) -> Any:
    layers.fc(read_rows(), 1, param_attr=attr, bias_attr=False)
    (parameter,) = fluid.default_main_program().all_parameters()
    return [parameter.name, parameter.optimize_attr["learning_rate"]]


def call_initializer() -> fluid.ParamAttr:
    return fluid.ParamAttr(initializer=fluid.initializer.Constant())


@pytest.mark.parametrize("advice", ADVICE.values(), ids=ADVICE)
@pytest.mark.filterwarnings("ignore:.*FLAGS_fluid_quirks")
def test_following_a_hint_of_a_program_gives_the_right_result(advice: Advice) -> None:
    advice.follow()
