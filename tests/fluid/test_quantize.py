"""``fluid.contrib.quantize`` beside Fluid 1.8.5: losses of training and of the frozen program."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike import layers
from paddlelike.fluid.contrib.quantize import QuantizeTranspiler

#: The losses of five steps and of the frozen program, by real Fluid 1.8.5.
REAL = {
    "abs_max": ([1.4007329, 1.3306633, 1.2603049, 1.1918501, 1.1048450], 1.0359733),
    "range_abs_max": ([1.4007329, 1.3297032, 1.2584049, 1.1892050, 1.1054116], 1.0368406),
    "moving_average_abs_max": ([1.4045655, 1.3344585, 1.2670286, 1.2044989, 1.1268240], 1.0641705),
}
CPU = fluid.CPUPlace()


def build(activation: str = "relu") -> Any:
    x, label = layers.data("x", [1, 8, 8]), layers.data("y", [1], dtype="int64")
    hidden = layers.pool2d(layers.conv2d(x, 3, 3, act="relu"), 2, "max", 2)
    hidden = layers.conv2d(hidden, 4, 2, act=activation, bias_attr=False)
    return layers.mean(layers.cross_entropy(layers.fc(hidden, 4, act="softmax"), label))


def make_programs(way: str, **options: Any) -> tuple[Any, ...]:
    main, startup = fluid.Program(), fluid.Program()
    with fluid.unique_name.guard():
        with fluid.program_guard(main, startup):
            loss = build(**options)
            test = main.clone(for_test=True)
            fluid.optimizer.SGD(0.1).minimize(loss)
        transpiler = QuantizeTranspiler(activation_quantize_type=way, window_size=4)
        transpiler.training_transpile(main, startup)
        transpiler.training_transpile(test, startup)
    return main, startup, test, loss, transpiler


def fill(main: Any) -> dict[str, Any]:
    for parameter in main.all_parameters():
        if not parameter.name.endswith(".scale"):
            random = np.random.RandomState(sum(map(ord, parameter.name)) % 1000)
            value = random.uniform(-0.5, 0.5, parameter.shape).astype("float32")
            fluid.global_scope().find_var(parameter.name).get_tensor().set(value, CPU)
    random = np.random.RandomState(3)
    x = random.uniform(-1, 1, (6, 1, 8, 8)).astype("float32")
    return {"x": x, "y": random.randint(0, 4, (6, 1)).astype("int64")}


@pytest.mark.parametrize("way", REAL)
def test_training_and_the_frozen_program_give_the_losses_of_fluid(way: str) -> None:
    main, startup, test, loss, transpiler = make_programs(way)
    with fluid.scope_guard(fluid.Scope()):
        exe = fluid.Executor(CPU)
        exe.run(startup)
        feed = fill(main)
        losses = [exe.run(main, feed, [loss])[0].item() for _ in range(5)]
        transpiler.freeze_program(test, CPU)
        frozen = exe.run(test, feed, [loss.name])[0].item()
        whole = np.array(fluid.global_scope().find_var("conv2d_0.w_0").get_tensor())
        transpiler.convert_to_int8(test, CPU)
        small = np.array(fluid.global_scope().find_var("conv2d_0.w_0.int8").get_tensor())
    np.testing.assert_allclose(losses, REAL[way][0], rtol=1e-5)
    np.testing.assert_allclose(frozen, REAL[way][1], rtol=1e-5)
    assert small.dtype == np.int8
    assert np.abs(whole).max() == 127
    np.testing.assert_array_equal(small, whole)


def test_a_frozen_program_has_one_dequantization_per_layer() -> None:
    main, startup, test, _, transpiler = make_programs("abs_max")
    with fluid.scope_guard(fluid.Scope()):
        fluid.Executor(CPU).run(startup)
        fill(main)
        transpiler.freeze_program(test, CPU)
    count = Counter(op.type for op in test.global_block().ops)
    assert (count["fake_quantize_abs_max"], count["fake_dequantize_max_abs"]) == (3, 3)
    (product,) = (op for op in test.global_block().ops if op.type == "mul")
    assert product.input("Y") == ["fc_0.w_0"]
    (slope,) = (op for op in main.global_block().ops if op.type == "mul_grad")
    assert slope.attr("op_role_var") == ["fc_0.w_0.quantized.dequantized", "fc_0.w_0@GRAD"]
    assert "conv2d_0.w_0.quantized" not in test.global_block().vars


def test_a_quantized_layer_directly_after_another_can_be_frozen() -> None:
    main, startup, test, loss, transpiler = make_programs("abs_max", activation=None)
    with fluid.scope_guard(fluid.Scope()):
        exe = fluid.Executor(CPU)
        exe.run(startup)
        feed = fill(main)
        before = exe.run(test, feed, [loss.name])[0].item()
        transpiler.freeze_program(test, CPU)
        np.testing.assert_allclose(exe.run(test, feed, [loss.name])[0].item(), before, rtol=1e-5)


def test_an_unknown_quantization_type_lists_the_valid_ones() -> None:
    with pytest.raises(ValueError, match="weight_quantize_type is 'channel', expected one of abs_max"):
        QuantizeTranspiler(weight_quantize_type="channel")
