"""Weight normalization: a weight kept as direction and length (Salimans & Kingma 2016).

``w = g * v / ||v||``; ``g`` and ``v`` are the parameters, ``<name>_g`` and ``<name>_v``. ``g`` starts as
``||v||``, so that ``w`` starts as ``v``.
"""

from __future__ import annotations

import copy
from typing import Any

from paddlelike import unique_name
from paddlelike.core import VarType
from paddlelike.framework import Block, Variable
from paddlelike.layers.elementwise.binary import elementwise_div, elementwise_mul
from paddlelike.layers.helper import LayerHelper
from paddlelike.layers.tensor.reshape import reshape
from paddlelike.param_attr import ParamAttr, WeightNormParamAttr


def create_weight_normalized(
    helper: LayerHelper, attr: WeightNormParamAttr, shape: list[int], dtype: VarType
) -> Variable:
    """Create ``g`` and ``v``, and return the weight computed from them."""
    dim = attr.dim
    length_shape = [1] * len(shape)
    if dim is not None:
        length_shape[dim] = shape[dim]
    startup = helper.startup_program.global_block()
    shared = f"{attr.name}_g" in startup.vars
    length = helper._make_parameter(_part(attr, "g", _initialize_nothing), length_shape, dtype)
    direction = helper._make_parameter(_part(attr, "v", attr.initializer), shape, dtype)
    if not shared:
        first = startup.var(length.name)
        _norm(helper, startup, startup.var(direction.name), dim, first)
        _reshape(startup, first, first, length_shape)
    main = helper.main_program.global_block()
    norm = _norm(helper, main, direction, dim)
    ratio = elementwise_div(length, norm)
    if dim is None:
        return elementwise_mul(direction, ratio)
    return elementwise_mul(direction, reshape(ratio, [shape[dim]]), axis=dim)


def _part(attr: WeightNormParamAttr, suffix: str, initializer: Any) -> ParamAttr:
    """Return the parameter attribute of ``g`` or ``v``."""
    part = copy.copy(attr)
    part.name, part.initializer = f"{attr.name}_{suffix}", initializer
    return part


def _initialize_nothing(var: Variable, block: Block) -> None:
    """Initialize nothing: ``g`` is computed from ``v`` afterwards."""


def _norm(
    helper: LayerHelper, block: Block, x: Variable, dim: int | None, out: Variable | None = None
) -> Variable:
    """Return the L2 norm of ``x``, or of each slice along ``dim``; the other dims are 1."""
    if out is None:
        out = _temporary(helper, block, "norm", x)
    if dim is None:
        return _flat_norm(helper, block, x, None, out)
    if dim == 0:
        flat = _reshape(block, x, _temporary(helper, block, "reshape", x), [x.shape[0], -1])
        norm = _flat_norm(helper, block, flat, 1, _temporary(helper, block, "norm", x))
        return _reshape(block, norm, out, [x.shape[0]] + [1] * (len(x.shape) - 1))
    if dim == len(x.shape) - 1:
        flat = _reshape(block, x, _temporary(helper, block, "reshape", x), [-1, x.shape[dim]])
        norm = _flat_norm(helper, block, flat, 0, _temporary(helper, block, "norm", x))
        return _reshape(block, norm, out, [1] * (len(x.shape) - 1) + [x.shape[dim]])
    swap = [*range(len(x.shape))]
    swap[0], swap[dim] = dim, 0
    turned = _temporary(helper, block, "transpose", x)
    _append(block, "transpose", x, turned, {"axis": swap})
    flat = _temporary(helper, block, "reshape", x)
    _reshape(block, turned, flat, [x.shape[dim], -1])
    norm = _flat_norm(helper, block, flat, 1, _temporary(helper, block, "norm", x))
    unturned = _temporary(helper, block, "reshape", x)
    _reshape(block, norm, unturned, [x.shape[dim]] + [1] * (len(x.shape) - 1))
    return _append(block, "transpose", unturned, out, {"axis": swap})


def _flat_norm(helper: LayerHelper, block: Block, x: Variable, dim: int | None, out: Variable) -> Variable:
    """Return ``sum(|x| ** 2) ** 0.5`` along ``dim``, or over all elements."""
    size = _append(block, "abs", x, _temporary(helper, block, "abs", x), {})
    squared = _append(block, "pow", size, _temporary(helper, block, "pow", x), {"factor": 2.0})
    attrs = {"dim": None if dim is None else [dim], "keep_dim": False, "reduce_all": dim is None}
    total = _append(block, "reduce_sum", squared, _temporary(helper, block, "sum", x), attrs)
    return _append(block, "pow", total, out, {"factor": 0.5})


def _temporary(helper: LayerHelper, block: Block, step: str, like: Variable) -> Variable:
    name = unique_name.generate(f"{helper.name}.weight_norm_{step}")
    return block.create_var(name=name, dtype=like.dtype, persistable=False)


def _reshape(block: Block, x: Variable, out: Variable, shape: list[int]) -> Variable:
    return _append(block, "reshape", x, out, {"shape": shape})


def _append(block: Block, type: str, x: Variable, out: Variable, attrs: dict[str, Any]) -> Variable:
    block.append_op(type=type, inputs={"X": x}, outputs={"Out": out}, attrs=attrs)
    return out
