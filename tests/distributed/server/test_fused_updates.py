"""Updates in one pass have the bits of the block's operators, run one after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.core import SelectedRows
from paddlelike.distributed.server import fused_updates
from paddlelike.distributed.server.fused_updates import find_fused_update
from paddlelike.framework.opdef.registry import find

WIDTH = 70  # elements of the parameter: 70 x 3
OPTIMIZERS: dict[str, Callable[[], Any]] = {
    "sgd": lambda: fluid.optimizer.SGD(0.3),
    "momentum": lambda: fluid.optimizer.Momentum(0.3, 0.9),
    "nesterov": lambda: fluid.optimizer.Momentum(0.3, 0.9, use_nesterov=True),
    "adam": lambda: fluid.optimizer.Adam(0.3),
    "adagrad": lambda: fluid.optimizer.Adagrad(0.3),
    "decayed adagrad": lambda: fluid.optimizer.DecayedAdagrad(0.3),
    "rmsprop": lambda: fluid.optimizer.RMSProp(0.3, momentum=0.5),
    "centered rmsprop": lambda: fluid.optimizer.RMSProp(0.3, centered=True),
    "ftrl": lambda: fluid.optimizer.Ftrl(0.3, l1=0.01, l2=0.01),
}


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the 210 elements of the parameter be three parts and a shorter one."""
    monkeypatch.setattr(fused_updates, "PART", 64)


class Values(dict[str, Any]):
    """The context of a block: its variables by name, and the names that were written."""

    def __init__(self, values: dict[str, Any]) -> None:
        super().__init__({name: np.copy(value) for name, value in values.items()})
        self.written: set[str] = set()

    def read(self, name: str) -> Any:
        return self.get(name)

    def write(self, name: str, value: Any) -> None:
        self[name] = value
        self.written.add(name)

    def run(self, block: Any) -> None:
        """Run the operators of a block one after the other, each by its kernel."""
        for op in block.ops:
            cls = find(op.type)
            taken = [[self.get(name) for name in op.input(slot.name)] for slot in cls.input_slots]
            slots = zip(cls.input_slots, taken, strict=True)
            arrays = [
                [one for one in given if one is not None] if slot.several else (given or [None])[0]
                for slot, given in slots
            ]
            results = cls.forward(*arrays, **cls.make_forward_keywords(op.attrs))
            outputs = [op.output(slot.name) for slot in cls.output_slots]
            for names, value in zip(outputs, results if len(outputs) > 1 else [results], strict=True):
                for name in names:
                    self[name] = value


def make_block(optimizer: Callable[[], Any], trainers: int) -> tuple[Any, dict[str, Any]]:
    """The block of one parameter on a server, and values of all that it reads, gradients of all trainers."""
    x = fluid.data("x", [None, WIDTH])
    loss = fluid.layers.mean(fluid.layers.fc(x, 3, bias_attr=False))
    optimizer().minimize(loss)
    config = fluid.DistributeTranspilerConfig()
    config.slice_var_up = False
    t = fluid.DistributeTranspiler(config)
    t.transpile(0, pservers="127.0.0.1:6174", trainers=trainers)
    main, startup = t.get_pserver_programs("127.0.0.1:6174")
    fluid.Executor().run(startup)
    (block,) = (one for one in main.blocks[1:] if any("Param" in op.inputs for op in one.ops))
    random = np.random.default_rng(7)
    values = {}
    for name in dict.fromkeys(name for op in block.ops for name in op.input_arg_names):
        held = fluid.global_scope().find_var(name)
        if name.startswith("fc_0.w_0@GRAD"):
            values[name] = random.standard_normal((WIDTH, 3), np.float32)
        elif held is not None and held.value is not None:
            values[name] = np.array(held.get_tensor())
    return block, values


@pytest.mark.parametrize("trainers", [2, 3])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_fused_update_has_the_same_bits_as_separate_operators(name: str, trainers: int) -> None:
    block, values = make_block(OPTIMIZERS[name], trainers)
    plain, found = Values(values), Values(values)
    update = find_fused_update(block)
    assert update is not None
    for _ in range(3):  # the state of one round is the start of the next
        for one in (plain, found):
            one.update({key: np.copy(values[key]) for key in values if "trainer_" in key})
        plain.run(block)
        assert update.run(found)  # type: ignore[arg-type]
    outputs = {name for slot in block.ops[-1].output_names for name in block.ops[-1].output(slot)}
    assert found.written == outputs
    for output in outputs:
        assert found[output].tobytes() == plain[output].tobytes(), output
    (parameter,) = block.ops[-1].input("Param")
    assert found[parameter].tobytes() != values[parameter].tobytes()


def test_a_departed_trainer_contributes_nothing() -> None:
    block, values = make_block(OPTIMIZERS["adam"], 3)
    gone = next(name for name in values if name.endswith("trainer_1"))
    del values[gone]
    plain, found = Values(values), Values(values)
    plain.run(block)
    update = find_fused_update(block)
    assert update is not None
    assert update.run(found)  # type: ignore[arg-type]
    (parameter,) = block.ops[-1].input("Param")
    assert found[parameter].tobytes() == plain[parameter].tobytes()


def test_selected_rows_and_gradients_of_another_shape_are_left_to_the_operators() -> None:
    block, values = make_block(OPTIMIZERS["momentum"], 2)
    update = find_fused_update(block)
    assert update is not None
    for other in (SelectedRows([1], WIDTH, np.ones((1, 3), np.float32)), np.ones((WIDTH, 4), np.float32)):
        found = Values(values)
        found[update.gradients[1]] = other
        assert not update.run(found)  # type: ignore[arg-type]
        for name, value in values.items():
            if "trainer_" not in name:
                assert found[name].tobytes() == value.tobytes()
        assert not found.written


def test_the_mean_over_one_trainer_is_its_gradient() -> None:
    block, values = make_block(OPTIMIZERS["adam"], 1)
    plain, found = Values(values), Values(values)
    plain.run(block)
    update = find_fused_update(block)
    assert update is not None
    assert update.run(found)  # type: ignore[arg-type]
    (parameter,) = block.ops[-1].input("Param")
    assert found[parameter].tobytes() == plain[parameter].tobytes()


def test_an_update_that_takes_a_norm_of_the_whole_parameter_is_left_to_its_operator() -> None:
    block, _ = make_block(lambda: fluid.optimizer.LarsMomentum(0.3, 0.9), 2)
    assert find_fused_update(block) is None
