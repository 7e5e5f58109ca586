"""Layers as objects: attributes, names, hooks, lists, and what belongs to the dynamic graph alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import paddlelike.fluid as fluid
from paddlelike.errors import GraphError, LeftOutError

D = fluid.dygraph


class Net(D.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.hidden = D.Linear(4, 3, act="relu")
        self.out = D.Sequential(("first", D.Linear(3, 3)), ("last", D.Linear(3, 2, bias_attr=False)))
        self.scale = self.create_parameter([2], attr=fluid.ParamAttr(name="scale"))
        self.size = 5

    def forward(self, x: Any) -> Any:
        return self.out(self.hidden(x)) * self.scale


@pytest.fixture
def net() -> Any:
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.unique_name.guard():
        yield Net()


def test_a_layer_lists_its_parameters_by_path(net: Any) -> None:
    assert {path: p.name for path, p in net.named_parameters()} == {
        "scale": "scale",
        "hidden.weight": "linear_0.w_0",
        "hidden.bias": "linear_0.b_0",
        "out.first.weight": "linear_1.w_0",
        "out.first.bias": "linear_1.b_0",
        "out.last.weight": "linear_2.w_0",
    }
    assert list(net.state_dict()) == [path for path, _ in net.named_parameters()]
    assert [layer.full_name() for layer in net.sublayers()] == [
        "linear_0", "sequential_0", "linear_1", "linear_2",
    ]  # fmt: skip


def test_a_network_of_layers_computes_and_a_second_call_shares_its_weights(net: Any) -> None:
    x, y = fluid.data("x", [None, 4]), fluid.data("y", [None, 4])
    outs = [net(x), net(y)]
    exe, scope = fluid.Executor(fluid.CPUPlace()), fluid.core.Scope()
    a = np.random.RandomState(0).uniform(-1, 1, (5, 4)).astype("float32")
    with fluid.scope_guard(scope):
        exe.run(fluid.default_startup_program())
        first, second = exe.run(feed={"x": a, "y": a}, fetch_list=outs)
        value = {path: np.array(scope.find_var(p.name).get_tensor()) for path, p in net.named_parameters()}
    hidden = np.maximum(a @ value["hidden.weight"] + value["hidden.bias"], 0)
    inner = hidden @ value["out.first.weight"] + value["out.first.bias"]
    np.testing.assert_allclose(first, inner @ value["out.last.weight"] * value["scale"], rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(first, second)


def test_hooks_change_inputs_and_outputs_until_they_are_removed(net: Any) -> None:
    x = fluid.data("x", [None, 4])
    seen = []
    before = net.register_forward_pre_hook(lambda layer, inputs: inputs[0] * 2)
    after = net.register_forward_post_hook(lambda layer, inputs, out: seen.append(inputs[0].name) or [out])
    (out,) = net(x)
    assert seen != ["x"]
    assert out.shape == (-1, 2)
    before.remove()
    after.remove()
    assert net(x).shape == (-1, 2)
    assert len(seen) == 1


def test_a_parameter_or_layer_is_replaced_only_by_one_of_its_kind_or_by_none(net: Any) -> None:
    with pytest.raises(TypeError, match=r"Net.hidden is a Layer; expected another one or None"):
        net.hidden = 3
    net.hidden = None
    net.size = 7
    del net.scale
    assert (net.hidden, net.size, hasattr(net, "scale")) == (None, 7, False)
    with pytest.raises(AttributeError, match="'Net' object has no attribute 'nothing'"):
        net.nothing  # noqa: B018


def test_a_subclass_that_does_not_initialize_its_base_is_refused(net: Any) -> None:
    class Forgets(D.Layer):
        def __init__(self) -> None:
            self.part = net

    with pytest.raises(ValueError, match=r"call super\(\).__init__\(\) of Forgets before you set 'part'"):
        Forgets()


def test_containers_hold_lists_of_layers_and_parameters(net: Any) -> None:
    a, b, c = (D.Linear(2, 2) for _ in range(3))
    layers = D.LayerList([a, b])
    layers.insert(1, c)
    assert list(layers) == [a, c, b]
    assert list(layers[1:]) == [c, b]
    del layers[0]
    layers.append(a)
    layers[0] = b
    assert (list(layers), len(layers)) == ([b, b, a], 3)
    with pytest.raises(IndexError, match="insert at 9: the index must be at least 0 and below 3"):
        layers.insert(9, a)
    parameters = D.ParameterList([a.weight]).append(b.weight)
    assert [p.name for p in parameters] == [a.weight.name, parameters[1].name]
    rows = D.Sequential(a, b)
    del rows[0]
    assert (rows["1"], len(rows)) == (b, 1)
    with pytest.raises(TypeError, match="expected a Layer"):
        layers.append(3)


@pytest.mark.parametrize("method", ["train", "eval", "clear_gradients"])
def test_methods_of_the_dynamic_graph_raise_with_a_hint(net: Any, method: str) -> None:
    with pytest.raises(
        LeftOutError, match=f"Net.{method} is not here: it belongs to the dynamic graph"
    ) as caught:
        getattr(net, method)()
    assert caught.value.hint
    with pytest.raises(LeftOutError) as caught:
        net.set_dict({})
    assert "set_program_state" in str(caught.value.hint)


def test_dygraph_mode_is_always_off() -> None:
    @D.no_grad
    def double(x: int) -> int:
        return 2 * x

    with D.no_grad():
        assert double(3) == 6
    fluid.disable_dygraph()
    assert not D.enabled()
    with pytest.raises(LeftOutError, match=r"fluid.dygraph.to_variable is not here"):
        D.to_variable(3)


def test_the_environment_of_a_job_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PADDLE_TRAINERS_NUM", "4")
    monkeypatch.setenv("PADDLE_TRAINER_ID", "2")
    monkeypatch.setenv("PADDLE_TRAINER_ENDPOINTS", "a:1,b:2")
    env = D.parallel.Env()
    assert (env.nranks, env.local_rank, env.trainer_endpoints) == (4, 2, ["a:1", "b:2"])


@pytest.mark.parametrize(
    ("build", "said"),
    [
        (lambda: D.Conv2D(3, 4, 3, groups=2), "3 channels cannot be divided into 2 groups"),
        (lambda: D.Conv2D(3, 4, 3, param_attr=False), "Conv2D: param_attr must not be False"),
        (lambda: D.Pool2D(), "Pool2D needs pool_size, or global_pooling=True"),
        (lambda: D.Dropout(1.5), "p is 1.5, expected a probability"),
        (lambda: D.LayerNorm(4)(fluid.data("x", [None, 3])), r"expected one that ends in \[4\]"),
        (lambda: D.MSELoss("average"), "reduction is 'average', expected one of 'sum', 'mean', 'none'"),
        (lambda: D.Embedding([5, 2])(fluid.data("x", [None, 3])), "input is variable 'x' of dtype FP32"),
        (lambda: D.Linear(3, 2, act=len)(fluid.data("x", [None, 3])), "expected an activation's name"),
    ],
    ids=["groups", "no-weight", "pool", "probability", "norm", "reduction", "dtype", "act"],
)
def test_bad_arguments_are_named(build: Any, said: str, net: Any) -> None:
    with pytest.raises((TypeError, GraphError), match=said):
        build()
