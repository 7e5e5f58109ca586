"""``fluid.contrib.quantize.QuantizeTranspiler``: training with the rounding errors of small integers.

Inputs and weights of ``conv2d``, ``depthwise_conv2d`` and ``mul`` pass through ``fake_quantize_*`` and
``fake_dequantize_max_abs``. A frozen program has weights of whole numbers, and one
``fake_dequantize_max_abs`` after each of these operators. The programs equal Fluid 1.8.5's.

Jacob et al., Quantization and training of neural networks for integer-arithmetic-only inference, 2018.

Parameters
----------
program
    The program to change in place; None is the default one.
startup_program
    The startup program of ``program``.
place
    The place that the network runs on: a CPU.
scope
    The scope with the values; None is the global scope.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from paddlelike import layers, unique_name
from paddlelike.core import Place, Scope, VarType, global_scope
from paddlelike.fluid.contrib.slim.quantization.base import count_steps, find_source
from paddlelike.framework import (
    Block,
    Operator,
    Program,
    Variable,
    default_main_program,
    default_startup_program,
    program_guard,
)
from paddlelike.initializer import Constant
from paddlelike.layers.helper import LayerHelper
from paddlelike.param_attr import ParamAttr

__all__ = ["QuantizeTranspiler"]

_QUANTIZED: Final = ("conv2d", "depthwise_conv2d", "mul")
_WAYS: Final = ("abs_max", "range_abs_max", "moving_average_abs_max")


class QuantizeTranspiler:
    """Puts fake quantization into a training program, and removes it for inference.

    Parameters
    ----------
    weight_bits
        The bits of weights.
    activation_bits
        The bits of the activations that the layers read.
    activation_quantize_type
        How their scale is found: ``"abs_max"`` in each step, ``"range_abs_max"`` of the last ``window_size``
        steps, ``"moving_average_abs_max"``.
    weight_quantize_type
        The same for weights.
    window_size
        The steps of ``"range_abs_max"``.
    moving_rate
        The share that a moving average keeps.

    Raises
    ------
    ValueError
        A type is another text.

    See Also
    --------
    fluid.io.save_inference_model

    >>> transpiler = QuantizeTranspiler(activation_quantize_type="range_abs_max")
    """

    def __init__(
        self,
        weight_bits: int = 8,
        activation_bits: int = 8,
        activation_quantize_type: str = "abs_max",
        weight_quantize_type: str = "abs_max",
        window_size: int = 10000,
        moving_rate: float = 0.9,
    ) -> None:
        given = {
            "activation_quantize_type": activation_quantize_type,
            "weight_quantize_type": weight_quantize_type,
        }
        for name, way in given.items():
            if way not in _WAYS:
                raise ValueError(f"{name} is {way!r}, expected one of {', '.join(_WAYS)}")
        self.weight_bits, self.activation_bits = weight_bits, activation_bits
        self.weight_quantize_type = weight_quantize_type
        self.activation_quantize_type = activation_quantize_type
        self.window_size, self.moving_rate = window_size, moving_rate
        self.global_step: Variable | None = None

    def training_transpile(
        self, program: Program | None = None, startup_program: Program | None = None
    ) -> None:
        """Quantize the inputs of a training program's layers, so that gradients use the rounded numbers."""
        program = default_main_program() if program is None else program
        startup = default_startup_program() if startup_program is None else startup_program
        weights = {parameter.name for parameter in program.global_block().all_parameters()}
        with program_guard(program, startup):
            if "range_abs_max" in (self.weight_quantize_type, self.activation_quantize_type):
                self.global_step = layers.autoincreased_step_counter()
            for block in program.blocks:
                rounded: dict[str, Variable] = {}
                for op in list(block.ops):
                    if op.type in _QUANTIZED:
                        self._round_inputs(block, op, weights, rounded)
                    elif op.type.removesuffix("_grad") in _QUANTIZED:
                        known = [name for name in op.input_arg_names if name in rounded]
                        if not known:
                            raise ValueError(f"{op.type} reads nothing that its forward operator rounded")
                        for name in known:
                            op._rename_input(name, rounded[name].name)

    def _round_inputs(
        self, block: Block, op: Operator, weights: set[str], rounded: dict[str, Variable]
    ) -> None:
        index = block.ops.index(op)
        for name in [name for slot in sorted(op.input_names) for name in op.input(slot)]:  # as Fluid goes
            if name not in rounded:
                is_weight = name in weights
                bits = self.weight_bits if is_weight else self.activation_bits
                way = self.weight_quantize_type if is_weight else self.activation_quantize_type
                whole, scale = self._insert_rounding(block, index, block.var(name), bits, way)
                rounded[name] = _insert_inverse(block, index + 1, whole, scale, float(count_steps(bits)))
            op._rename_input(name, rounded[name].name)

    def _insert_rounding(
        self, block: Block, index: int, variable: Variable, bits: int, way: str
    ) -> tuple[Variable, Variable]:
        """Insert ``fake_quantize_*`` for a variable; return the rounded integers and their scale."""
        whole = _create_like(block, variable, f"{variable.name}.quantized")
        inputs: dict[str, Variable] = {"X": variable}
        attrs: dict[str, Any] = {"bit_length": bits}
        if way == "abs_max":
            scale = _create_like(block, variable, f"{variable.name}.scale")
            outputs = {"Out": whole, "OutScale": scale}
        else:
            helper = LayerHelper("QuantizeTranspiler")
            kept: dict[str, Variable] = {}
            if way == "moving_average_abs_max":
                for slot in ("State", "Accum"):
                    kept[slot] = _create_state(helper, slot.lower(), variable, [1], 1)
            attr = ParamAttr(f"{variable.name}.scale", initializer=Constant(0.001), trainable=False)
            scale = helper.create_parameter(attr, [1], variable.dtype)
            scale.stop_gradient = True
            inputs["InScale"] = scale
            outputs = {"Out": whole, "OutScale": scale}
            attrs["is_test"] = False
            if way == "range_abs_max":
                assert self.global_step is not None
                inputs["Iter"] = self.global_step
                outputs["OutScales"] = _create_state(helper, "scales", variable, [self.window_size], 0)
                attrs["window_size"] = self.window_size
            else:
                inputs |= {f"In{slot}": one for slot, one in kept.items()}
                outputs |= {f"Out{slot}": one for slot, one in kept.items()}
                attrs["moving_rate"] = self.moving_rate
        block._insert_op(index, f"fake_quantize_{way}", inputs, outputs, attrs)
        return whole, scale

    def freeze_program(self, program: Program, place: Place, scope: Scope | None = None) -> None:
        """Turn the weights of a trained program into integers, and rescale the results of its layers."""
        scope = global_scope() if scope is None else scope
        persistables = {variable.name for variable in program.list_vars() if variable.persistable}
        for block in program.blocks:
            before: dict[str, str] = {}  # by rounded value, the weight or input it was made from
            behind: dict[str, str] = {}  # results of layers, divided
            scales: dict[str, Any] = {}
            for op in list(block.ops):
                for name in op.input_arg_names:
                    if name in behind:
                        op._rename_input(name, behind[name])
                if op.type in {f"fake_quantize_{way}" for way in _WAYS}:
                    (source,), (scale,) = op.input("X"), op.output("OutScale")
                    if source in persistables:
                        scales[source] = self._freeze_weight(scope, place, source, scale)
                        _remove(block, op, before)
                    else:
                        scales[find_source(source)] = block.var(scale)
                elif op.type == "fake_dequantize_max_abs":
                    _remove(block, op, before)
                elif op.type in _QUANTIZED:
                    self._divide(block, op, before, behind, scales, persistables)
        _remove_unused(program)

    def _freeze_weight(self, scope: Scope, place: Place, name: str, scale_name: str) -> float:
        """Turn a weight into integers; return its scale."""
        tensor = scope.find_var(name).get_tensor()  # type: ignore[union-attr] # a persistable that ran
        values = np.array(tensor)
        if self.weight_quantize_type == "abs_max":
            scale = float(np.abs(values).max())
        else:
            scale = float(np.array(scope.find_var(scale_name).get_tensor()).item())  # type: ignore[union-attr] # too
        tensor.set(np.round(values / np.float32(scale) * count_steps(self.weight_bits)), place)
        return scale

    def _divide(
        self,
        block: Block,
        op: Operator,
        before: dict[str, str],
        behind: dict[str, str],
        scales: dict[str, Any],
        persistables: set[str],
    ) -> None:
        """Let a layer read integers, and divide its result by the scales of both inputs."""
        ranges = count_steps(self.weight_bits) * count_steps(self.activation_bits)
        max_range, scale = None, None
        for name in op.input_arg_names:
            if name in before:
                op._rename_input(name, before[name])
            source = find_source(name)
            if source in persistables:
                max_range = ranges / scales[source]
            else:
                scale = scales[source]
        if max_range is None or scale is None or len(op.output_arg_names) != 1:
            raise ValueError(f"{op.type} {op.output_arg_names} has no weight, no input, or several outputs")
        out = block.var(op.output_arg_names[0])
        divided = _insert_inverse(block, block.ops.index(op) + 1, out, scale, float(max_range))
        behind[out.name] = divided.name

    def convert_to_int8(self, program: Program, place: Place, scope: Scope | None = None) -> None:
        """Give the layers of a frozen program weights of int8, named ``<name>.int8``, for saving."""
        scope = global_scope() if scope is None else scope
        made: dict[str, str] = {}
        for block in program.blocks:
            for op in block.ops:
                for name in op.input_arg_names if op.type in _QUANTIZED else ():
                    variable = block.var(name)
                    if not variable.persistable:
                        continue
                    if name not in made:
                        made[name] = f"{name}.int8"
                        program.global_block().create_parameter(
                            name=made[name], type=variable.type, dtype=VarType.INT8, shape=variable.shape
                        )
                        values = np.array(scope.find_var(name).get_tensor())  # type: ignore[union-attr] # too
                        scope.var(made[name]).get_tensor().set(values.astype(np.int8), place)
                    op._rename_input(name, made[name])
        _remove_unused(program)


def _create_like(block: Block, variable: Variable, name: str) -> Variable:
    return block.create_var(name=name, type=variable.type, shape=variable.shape, dtype=variable.dtype)


def _create_state(helper: LayerHelper, name: str, like: Variable, shape: list[int], value: int) -> Variable:
    name = unique_name.generate(name)
    state = helper.create_global_variable(name=name, persistable=True, dtype=like.dtype, shape=shape)
    helper.set_variable_initializer(state, Constant(value))
    return state


def _insert_inverse(block: Block, index: int, whole: Variable, scale: Variable, max_range: float) -> Variable:
    """Insert ``fake_dequantize_max_abs``, the inverse of the rounding; return its result."""
    out = _create_like(block, whole, f"{whole.name}.dequantized")
    inputs, attrs = {"X": whole, "Scale": scale}, {"max_range": max_range}
    block._insert_op(index, "fake_dequantize_max_abs", inputs, {"Out": out}, attrs)
    return out


def _remove(block: Block, op: Operator, before: dict[str, str]) -> None:
    """Remove an operator of one input; its readers read the input."""
    (source,), (out,) = op.input("X"), op.output("Out")
    before[out] = before.get(source, source)
    block._remove_op(block.ops.index(op))


def _remove_unused(program: Program) -> None:
    """Remove variables that no operator of their block names."""
    for block in program.blocks:
        used = {name for op in block.ops for name in (*op.input_arg_names, *op.output_arg_names)}
        for name in [name for name in block.vars if name not in used]:
            block._remove_var(name)
