"""The backward pass: values against differences, names, what it goes through and what stops it.

What is built is compared with the real system in tests/alike.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.core import AttrType
from paddlelike.errors import GraphError, UnsupportedError

L = fluid.layers
X = np.linspace(-1.0, 1.3, 8).reshape(2, 4)


@pytest.fixture
def exe() -> fluid.Executor:
    return fluid.Executor()


def free(name: str = "x") -> Any:
    x = fluid.data(name, [2, 4], "float64")
    x.stop_gradient = False
    return x


def slope(exe: fluid.Executor, loss: Any, feed: dict[str, Any], name: str = "x") -> Any:
    """The derivative of a loss by one fed variable, by central differences."""
    result = np.zeros_like(feed[name])
    for index in np.ndindex(result.shape):
        ends = []
        for step in (1e-5, -1e-5):
            moved = feed[name].copy()
            moved[index] += step
            ends.append(exe.run(feed={**feed, name: moved}, fetch_list=[loss], use_prune=True)[0].item())
        result[index] = (ends[0] - ends[1]) / 2e-5
    return result


NETWORKS: dict[str, Callable[[Any], Any]] = {
    "a value used three times": lambda x: L.tanh(x) * x + L.exp(x),
    "the same value twice in an operator": lambda x: x * x,
    "the same value in a list": lambda x: L.concat([x, L.tanh(x), x], axis=1),
    "a sum of itself": lambda x: L.sums([x, x, L.square(x)]),
    "a split that is half used": lambda x: L.split(L.tanh(x), 2, dim=1)[0],
    "a split used in another order": lambda x: (lambda a, b: b * L.square(a))(*L.split(x, 2, dim=1)),
    "a diamond of diamonds": lambda x: (lambda h: L.tanh(h) + L.sigmoid(h) * h)(L.tanh(x) + L.sigmoid(x)),
    "views": lambda x: L.square(L.transpose(L.reshape(x, [4, 2]), [1, 0])),
    "an output beside": lambda x: L.layer_norm(L.tanh(x), scale=False, shift=False),
    "broadcasts": lambda x: L.elementwise_mul(x, L.reduce_sum(L.square(x), dim=[1]), axis=0),
}


@pytest.mark.parametrize("network", NETWORKS)
def test_gradients_match_numerical_derivatives(exe: fluid.Executor, network: str) -> None:
    x = free()
    loss = L.reduce_sum(L.square(NETWORKS[network](x)))
    (gradient,) = fluid.gradients([loss], [x])
    (got,) = exe.run(feed={"x": X}, fetch_list=[gradient])
    np.testing.assert_allclose(got, slope(exe, loss, {"x": X}), rtol=1e-7, atol=1e-8)


def test_a_target_used_by_another_target_contributes_its_full_gradient(exe: fluid.Executor) -> None:
    x = free()
    h = L.tanh(x)
    (gradient,) = fluid.gradients([h, L.square(h)], [x])
    (got,) = exe.run(feed={"x": X}, fetch_list=[gradient])
    np.testing.assert_allclose(got, (1 + 2 * np.tanh(X)) * (1 - np.tanh(X) ** 2), rtol=1e-12)


def test_a_given_gradient_of_an_intermediate_target_is_used(exe: fluid.Executor) -> None:
    x, start = free(), fluid.data("start", [2, 4], "float64")
    h = L.tanh(x)
    (gradient,) = fluid.gradients([h, L.square(h)], [x], target_gradients=[start, None])
    (got,) = exe.run(feed={"x": X, "start": np.full((2, 4), 3.0)}, fetch_list=[gradient])
    np.testing.assert_allclose(got, (3 + 2 * np.tanh(X)) * (1 - np.tanh(X) ** 2), rtol=1e-12)


def test_two_backward_passes_keep_separate_values(exe: fluid.Executor) -> None:
    x = free()
    h = L.tanh(x)
    passes = [fluid.gradients([L.square(h)], [x])[0], fluid.gradients([h], [x])[0]]
    passes.append(fluid.gradients([L.exp(h)], [x])[0])
    assert [v.name for v in passes] == ["x@GRAD", "grad/grad/x@GRAD", "grad/grad/grad/x@GRAD"]
    got = exe.run(feed={"x": X}, fetch_list=passes)
    t = np.tanh(X)
    for mine, outer in zip(got, (2 * t, 1.0, np.exp(t)), strict=True):
        np.testing.assert_allclose(mine, outer * (1 - t**2), rtol=1e-12)


def test_two_optimizers_train_their_own_losses(exe: fluid.Executor) -> None:
    """As two programs would, one after the other."""
    x = fluid.data("x", [2, 4], "float32")
    h = L.fc(x, 3, bias_attr=False)
    one, two = L.mean(h), L.mean(L.square(h))
    fluid.optimizer.SGD(0.1).minimize(one)
    with pytest.warns(UserWarning, match=r"updates 'fc_0\.w_0' already"):
        fluid.optimizer.SGD(0.1).minimize(two)
    exe.run(fluid.default_startup_program())
    feed = {"x": X.astype("float32")}
    weight = np.array(fluid.global_scope().find_var("fc_0.w_0").get_tensor()).astype("float64")
    exe.run(feed=feed)
    hidden = X @ weight  # both passes stand before the second update, the first update between them
    weight -= 0.1 * X.T @ np.full((2, 3), 1 / 6)
    weight -= 0.1 * X.T @ (2 * hidden / 6)
    got = np.array(fluid.global_scope().find_var("fc_0.w_0").get_tensor())
    np.testing.assert_allclose(got, weight, atol=1e-6)


def test_stop_gradient_on_one_factor_keeps_the_gradient_of_the_other(exe: fluid.Executor) -> None:
    x = free()
    h = L.tanh(x)
    constant = L.tanh(x)
    constant.stop_gradient = True
    (gradient,) = fluid.gradients([h * constant], [x])
    (got,) = exe.run(feed={"x": X}, fetch_list=[gradient])
    np.testing.assert_allclose(got, np.tanh(X) * (1 - np.tanh(X) ** 2), rtol=1e-12)


def test_the_gradient_of_an_input_without_one_is_none_at_its_position() -> None:
    """As Fluid 1.8.5 returned them: of several inputs None, of a single one nothing."""
    x, apart, stopped = free(), free("apart"), fluid.data("stopped", [2, 4], "float64")
    y = L.tanh(x) + stopped
    (gradient,) = fluid.gradients([y], [x])
    assert isinstance(gradient, fluid.framework.Variable)
    names = [None if one is None else one.name for one in fluid.gradients([y], [stopped, x, apart])]
    assert names[0] is names[2] is None
    assert "x@GRAD" in names[1]
    assert fluid.gradients([y], [stopped, apart]) == [None, None]
    assert [fluid.gradients([y], [one]) for one in (stopped, apart)] == [[], []]


def test_calc_gradient_of_one_input_is_not_a_list() -> None:
    x, apart = free(), free("apart")
    y = L.tanh(x)
    assert fluid.backward.calc_gradient(y, [x]).name.startswith("x@GRAD")
    assert fluid.backward.calc_gradient([y], apart) is None
    assert fluid.backward.calc_gradient([y], [apart, apart]) == [None, None]


def test_pairs_come_in_the_order_of_the_parameters(exe: fluid.Executor) -> None:
    h = L.fc(L.fc(fluid.data("x", [None, 4]), 3), 2, param_attr=fluid.ParamAttr(trainable=False))
    pairs = fluid.backward.append_backward(L.mean(h))
    assert [p.name for p, _ in pairs] == ["fc_0.w_0", "fc_0.b_0", "fc_1.b_0"]
    assert [g.name for _, g in pairs] == [p.name + "@GRAD" for p, _ in pairs]
    assert all(g.shape == p.shape for p, g in pairs)


def test_the_operators_that_compute_gradients_of_parameters_are_marked() -> None:
    loss = L.mean(L.fc(fluid.data("x", [None, 4]), 3))
    fluid.backward.append_backward(loss)
    marked = [op.attrs.get("op_role_var") for op in fluid.default_main_program().global_block().ops]
    assert [one for one in marked if one] == [["fc_0.b_0", "fc_0.b_0@GRAD"], ["fc_0.w_0", "fc_0.w_0@GRAD"]]


def test_only_requested_gradients_are_computed() -> None:
    h = L.fc(L.fc(fluid.data("x", [None, 4]), 3), 2)
    first = fluid.default_main_program().global_block().var("fc_0.tmp_1")
    fluid.backward.append_backward(L.mean(h), no_grad_set={first})
    grads = [op.type for op in fluid.default_main_program().global_block().ops if op.type.endswith("_grad")]
    assert grads == ["mean_grad", "elementwise_add_grad", "mul_grad"]


# What is refused


def test_a_loss_must_be_one_number_that_an_operator_computes() -> None:
    h = L.fc(fluid.data("x", [None, 4]), 3)
    with pytest.raises(GraphError, match=r"shape \[-1, 3\], expected \[1\]") as caught:
        fluid.backward.append_backward(h)
    assert "mean" in caught.value.hint
    with pytest.raises(GraphError, match="no operator computes 'y'"):
        fluid.backward.append_backward(fluid.data("y", [1]))
    with pytest.raises(TypeError, match="loss is 'loss', expected a variable"):
        fluid.backward.append_backward("loss")


def test_parameter_list_may_name_a_fed_variable() -> None:
    x = free()
    loss = L.mean(L.square(x))
    ((variable, gradient),) = fluid.backward.append_backward(loss, parameter_list=[x.name])
    assert variable is x
    array = np.arange(8.0).reshape(2, 4)
    (slope,) = fluid.Executor().run(feed={"x": array}, fetch_list=[gradient])
    np.testing.assert_allclose(slope, 2 * array / 8)


def test_a_refused_backward_pass_leaves_the_program_unchanged() -> None:
    loss = L.mean(L.fc(fluid.data("x", [None, 4]), 3))
    before = str(fluid.default_main_program())
    for options in ({"parameter_list": ["nobody"]}, {"no_grad_set": "x"}):
        with pytest.raises((GraphError, TypeError)):
            fluid.backward.append_backward(loss, **options)
    with pytest.raises(GraphError, match=r"SGDOptimizer: \['x'\] in parameter_list are not parameters"):
        fluid.optimizer.SGD(0.1).minimize(loss, parameter_list=["x"])
    assert str(fluid.default_main_program()).replace("i: 256", "i: 0") == before.replace("i: 256", "i: 0")


def test_gradients_of_gradients_stop_where_fluid_has_no_second_gradient() -> None:
    x = free()
    (first,) = fluid.gradients([L.tanh(L.square(x))], [x])
    with pytest.warns(UserWarning, match=r"gradients of gradients.*the results of tanh_grad"):
        (second,) = fluid.gradients([first], [x])
    exe = fluid.Executor()
    array = np.full((2, 4), 0.5)
    got, slope = exe.run(feed={"x": array}, fetch_list=[second, first])
    # of 2 x s, where s, the slope of tanh at x^2, counts as a constant: real Fluid 1.8.5 gives the same
    np.testing.assert_allclose(got, 2 * (1 - np.tanh(array**2) ** 2))
    np.testing.assert_allclose(slope, got * array)
    first.stop_gradient = True
    assert fluid.backward.append_backward(L.reduce_sum(L.square(first))) == []


def test_gradients_given_by_the_caller_must_have_the_shapes_of_their_targets() -> None:
    x = free()
    y = L.tanh(x)
    with pytest.raises(GraphError, match=r"has shape \[2, 4\], but its gradient 'z' has shape \[7\]"):
        fluid.gradients([y], [x], target_gradients=[fluid.data("z", [7], "float64")])
    with pytest.raises(GraphError, match="got 1 targets, but 2 target_gradients"):
        fluid.gradients([y], [x], target_gradients=[None, None])


def test_operators_of_later_paddle_versions_have_no_gradient() -> None:
    from paddlelike.framework.codec.schema import messages

    message = messages().ProgramDesc()
    block = message.blocks.add(idx=0, parent_idx=-1)
    for name in ("x", "y"):
        variable = block.vars.add(name=name)
        variable.type.type = 7
        variable.type.lod_tensor.tensor.data_type = 5
        variable.type.lod_tensor.tensor.dims.append(1)
    op = block.ops.add(type="warp_drive")
    op.inputs.add(parameter="X", arguments=["x"])
    op.outputs.add(parameter="Out", arguments=["y"])
    program = fluid.Program.parse_from_string(message.SerializeToString())
    with pytest.raises(GraphError, match="'warp_drive' cannot be differentiated"):
        fluid.backward.append_backward(program.global_block().var("y"))


def read_later_program(*ops: tuple[str, str, str], flags: Sequence[str] = ()) -> fluid.Program:
    """Return a program that Paddle 2.6 may have saved, of operators from X to Out.

    ``flags``: attributes of the first operator that are True.
    """
    from paddlelike.framework.codec.schema import messages

    message = messages().ProgramDesc()
    message.version.version = 2_006_002
    block = message.blocks.add(idx=0, parent_idx=-1)
    for name in "xyz":
        variable = block.vars.add(name=name)
        variable.type.type = 7
        variable.type.lod_tensor.tensor.data_type = 5
        variable.type.lod_tensor.tensor.dims.append(1)
    for type, source, result in ops:
        op = block.ops.add(type=type)
        op.inputs.add(parameter="X", arguments=[source])
        op.outputs.add(parameter="Out", arguments=[result])
    for flag in flags:
        block.ops[0].attrs.add(name=flag, type=int(AttrType.BOOLEAN), b=True)
    return fluid.Program.parse_from_string(message.SerializeToString())


def test_a_backward_pass_through_a_cumsum_of_all_elements_is_refused() -> None:
    program = read_later_program(("cumsum", "x", "y"), ("square", "y", "z"), flags=["flatten"])
    x, z = (program.global_block().var(name) for name in "xz")
    with pytest.raises(UnsupportedError, match=r"'cumsum' with flatten=True .*\n.*to \[-1\]"):
        fluid.gradients([z], [x])


def test_a_backward_pass_through_an_operator_without_its_gradient_is_refused() -> None:
    program = read_later_program(("acosh", "x", "y"), ("square", "y", "z"))
    x, y, z = (program.global_block().var(name) for name in "xyz")
    with pytest.raises(UnsupportedError, match="'acosh' of Paddle 2 has no gradient here") as refused:
        fluid.gradients([z], [x])
    assert "stop_gradient = True on 'y'" in str(refused.value)
    y.stop_gradient = True  # what the hint says
    assert not any(one is not None for one in fluid.gradients([z], [x]))


@pytest.mark.parametrize("type", ["acosh", "bernoulli"])
def test_a_layer_over_operators_without_gradients_is_trained(type: str) -> None:
    program = read_later_program(("square", "x", "y"), (type, "y", "z"))
    block = program.global_block()
    with fluid.program_guard(program):
        x, z = block.var("x"), block.var("z")
        weight = fluid.layers.create_parameter([1], "float32", "weight")
        pairs = fluid.backward.append_backward(fluid.layers.reduce_sum(z * weight))
        assert [(one.name, gradient.name) for one, gradient in pairs] == [("weight", "weight@GRAD")]
        assert not block.has_var("y@GRAD")
        loss = fluid.layers.reduce_sum(z * weight)
        if type == "bernoulli":  # Paddle 2.6.2 has no gradient of it either
            assert fluid.gradients([loss], [x]) == []
            return
        for checkpoints in (None, [z]):
            with pytest.raises(UnsupportedError, match="'acosh' of Paddle 2 has no gradient here"):
                fluid.backward.append_backward(loss, parameter_list=["x"], checkpoints=checkpoints)


def test_gradients_are_summed_before_the_operator_that_reads_the_total() -> None:
    x, y = fluid.data("x", [3]), fluid.data("y", [3])
    x.stop_gradient = False
    layers = fluid.layers
    square, alike = x * x, layers.cast(layers.equal(y, y), "float32")
    fluid.backward.append_backward(layers.reduce_sum(square * (alike / layers.reduce_sum(alike))))
    added = [op.type for op in fluid.default_main_program().global_block().ops][8:]
    # Fluid 1.8.5's: the first sum is read by the gradient of cast, which is left out, for nothing reads it
    reads = ["reduce_sum_grad", "elementwise_mul_grad", "elementwise_div_grad", "reduce_sum_grad"]
    assert added == [*reads, "sum", "elementwise_mul_grad", "sum"]


def test_a_loss_in_a_branch_may_be_declared_with_a_larger_shape() -> None:
    """Fluid 1.8.5 declares the shape of the branch that is not taken here, and computes 6 and 3."""
    weight = fluid.layers.create_parameter(
        [1], "float32", default_initializer=fluid.initializer.Constant(2.0)
    )
    switch = fluid.data("switch", [1])
    loss = fluid.layers.cond(
        switch > 1.0, lambda: weight * 3.0, lambda: fluid.layers.concat([weight, weight])
    )
    assert loss.shape == (2,)
    ((_, gradient),) = fluid.backward.append_backward(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    found = exe.run(feed={"switch": np.array([2.0], "float32")}, fetch_list=[loss, gradient])
    np.testing.assert_array_equal(found, [[6.0], [3.0]])


@pytest.mark.parametrize(("taken", "moved"), [(0, 0.002), (1, 0.02), (2, 0.2)])  # as in Fluid 1.8.5
def test_minimize_of_an_outer_loss_in_branches_updates_only_in_the_taken_branch(
    taken: int, moved: float
) -> None:
    start = fluid.ParamAttr("w", initializer=fluid.initializer.Constant(1.0))
    loss = L.mean(L.fc(fluid.data("x", [None, 1]), 1, param_attr=start, bias_attr=False))
    step, zero, one = (L.fill_constant([1], "float32", float(value)) for value in (taken, 0, 1))

    def train_by(rate: float) -> Callable[[], None]:
        return lambda: fluid.optimizer.SGD(rate).minimize(loss) and None

    L.case([(L.equal(step, zero), train_by(0.001)), (L.equal(step, one), train_by(0.01))], train_by(0.1))
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    for _ in range(2):
        exe.run(feed={"x": np.ones((1, 1), "float32")})
    found = np.array(fluid.global_scope().find_var("w").get_tensor())
    np.testing.assert_allclose(1 - found, [[moved]], rtol=1e-4)  # float32 beside 1
