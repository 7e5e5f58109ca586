"""Values that do not depend on feeds: sizes, axes and indexes that nodes compute from other constants.

Dims that are only known at run time are NaN in an array of float64, so that the other dims stay known: in
``[N, 3, 8, 8]``, for example, or when it is cut to ``[3, 8, 8]``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, NoReturn

import numpy as np

from paddlelike.core import Array, numpy_dtype
from paddlelike.errors import FormatError
from paddlelike.interop.onnx.importer.file import ELEMENT_TYPES, read_array
from paddlelike.interop.onnx.importer.node import Node
from paddlelike.interop.reader_tables import InexpressibleError
from paddlelike.ops.reduction.reduce import REDUCTIONS

_LARGEST: Final = 1 << 16  # elements: sizes and indices, no weights
Formula = Callable[..., Array]


def fold(node: Node) -> bool:
    """Record the known part of a node's output. Return whether all is known, so that no operator is
    needed.
    """
    if node.type == "Constant" and not node.proto.domain:
        node.graph.known[node.proto.output[0]] = _read_constant(node)
        return True
    formula = _FORMULAS.get(node.type)
    if formula is None or node.proto.domain or len(node.proto.output) != 1:
        return False
    try:
        arrays = _read_shape(node) if node.type == "Shape" else _read_inputs(node)
        if arrays is None or sum(0 if one is None else one.size for one in arrays) > _LARGEST:
            return False
        with np.errstate(all="ignore"):
            found = np.asarray(formula(node, *arrays))
    except (ArithmeticError, InexpressibleError, LookupError, TypeError, ValueError):
        return False  # the node's own function has the better message
    if _counts(node) and found.dtype == np.float64:
        if np.isnan(found).any():
            node.graph.partial[node.proto.output[0]] = found
            return False
        found = found.astype(np.int64)
    node.graph.known[node.proto.output[0]] = found
    return True


def compute(node: Node, name: str) -> Array | None:
    """Return a value computed from constants, such as reshaped weights, or None if it depends on feeds."""
    producer = node.graph.producers.get(name)
    if name in node.graph.known or producer is None:
        return node.graph.known.get(name)
    maker = Node(node.graph, producer)
    formula = _FORMULAS.get(maker.type)
    if producer.domain or maker.type == "Shape" or (formula is None and maker.type != "Split"):
        return None
    arrays = [compute(node, each) if each else None for each in producer.input]
    if any(array is None for array, each in zip(arrays, producer.input, strict=True) if each):
        return None
    with np.errstate(all="ignore"):
        if formula is not None:
            return np.asarray(formula(maker, *arrays))
        sizes = maker.numbers(1, "split")
        parts = len(producer.output) if sizes is None else np.cumsum(sizes)[:-1]
        assert arrays[0] is not None
        return np.split(arrays[0], parts, axis=maker.attr("axis", 0))[list(producer.output).index(name)]


def _counts(node: Node) -> bool:
    """Return whether the inputs are dims; an unknown dim is NaN."""
    return any(name in node.graph.partial for name in node.proto.input) or node.type == "Shape"


def _read_constant(node: Node) -> Array:
    """Return the value of a Constant."""
    for name in ("value", "sparse_value", "value_string", "value_strings"):
        if node.attr(name) is not None:
            if name != "value":
                node.refuse(f"its value is a {name}")
            return read_array(node.attr(name), None)
    for name, dtype in (("float", np.float32), ("int", np.int64)):
        for plural in ("", "s"):
            value = node.attr(f"value_{name}{plural}")
            if value is not None:
                return np.array(value, dtype)
    raise FormatError(f"node {node.proto.name!r:.60} (Constant) has no value")


def _read_inputs(node: Node) -> list[Array | None] | None:
    """Return the known parts of the inputs, or None if one is unknown."""
    found: list[Array | None] = []
    for name in node.proto.input:
        if not name:
            found.append(None)
        elif name in node.graph.known:
            array = node.graph.known[name]
            if array.size > _LARGEST or (array.dtype.kind == "f" and array.size > 1):
                return None  # weights stay parameters under their names
            found.append(array)
        elif name in node.graph.partial:
            found.append(node.graph.partial[name])
        else:
            return None
    return found


def _read_shape(node: Node) -> list[Array | None] | None:
    name = node.proto.input[0]
    if name in node.graph.known:
        dims: tuple[int, ...] = node.graph.known[name].shape
    else:
        typed = node.graph.typed.get(name)
        dims = node.dims() if typed is None or typed.dims is None else typed.dims
    return [np.array([math.nan if dim < 0 else dim for dim in dims], np.float64)]


def _whole(array: Array) -> Array:
    if np.isnan(array).any():
        raise ValueError("not known")
    return array.astype(np.int64)


def _check_count(dims: Array) -> list[int]:
    """Return the dims of a small array. Raises ValueError for a large array."""
    found = [int(dim) for dim in _whole(dims).reshape(-1)]
    if any(dim < 0 for dim in found) or math.prod(found) > _LARGEST:
        raise ValueError("too large")
    return found


def _gather(node: Node, x: Array, index: Array) -> Array:
    return np.take(x, _whole(index), axis=node.attr("axis", 0))


def _slice(node: Node, x: Array, *given: Array | None) -> Array:
    rows = [None if one is None else _whole(one).reshape(-1).tolist() for one in given]
    if not rows:
        rows = [node.attr("starts"), node.attr("ends"), node.attr("axes")]
    starts, ends = rows[:2]
    assert starts is not None
    assert ends is not None
    axes = rows[2] if len(rows) > 2 and rows[2] is not None else list(range(len(starts)))
    steps = rows[3] if len(rows) > 3 and rows[3] is not None else [1] * len(starts)
    cuts = [slice(None)] * x.ndim
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        stop = None if step < 0 and end < -x.shape[axis] else end
        cuts[axis] = slice(start, stop, step)
    return x[tuple(cuts)]


def _cast(node: Node, x: Array) -> Array:
    dtype = numpy_dtype(ELEMENT_TYPES[node.attr("to")])
    if x.dtype == np.float64 and np.isnan(x).any():
        if dtype.kind != "i":
            raise ValueError("not known")
        return x
    return x.astype(dtype)


def _axes(node: Node, given: tuple[Array, ...]) -> list[int] | None:
    if given:
        return [int(axis) for axis in _whole(given[0]).reshape(-1)]
    found = node.attr("axes")
    return None if found is None else list(found)


def _unsqueeze(node: Node, x: Array, *given: Array) -> Array:
    return np.expand_dims(x, tuple(_axes(node, given) or ()))


def _squeeze(node: Node, x: Array, *given: Array) -> Array:
    axes = _axes(node, given)
    return np.squeeze(x, None if axes is None else tuple(axes))


def _divide(node: Node, x: Array, y: Array) -> Array:
    if x.dtype.kind == "i":
        return (np.abs(x) // np.abs(y)) * np.sign(x) * np.sign(y)
    return np.trunc(x / y) if _counts(node) else x / y


def _reshape(node: Node, x: Array, shape: Array) -> Array:
    dims = _whole(shape).tolist()
    return x.reshape([x.shape[i] if dim == 0 else dim for i, dim in enumerate(dims)])


def _range(node: Node, start: Array, end: Array, step: Array) -> Array:
    if abs((float(end) - float(start)) / float(step)) > _LARGEST or any(
        np.isnan(float(one)) for one in (start, end, step)
    ):
        raise ValueError("too large")
    return np.arange(start.item(), end.item(), step.item()).astype(start.dtype)


def _fill(node: Node, dims: Array) -> Array:
    value = node.attr("value")
    filling = np.zeros(1, np.float32) if value is None else read_array(value, None)
    return np.full(_check_count(dims), filling.item(), filling.dtype)


def _expand(node: Node, x: Array, dims: Array) -> Array:
    _check_count(np.maximum(dims, 1))
    return np.asarray(x * np.ones(_whole(dims).tolist(), x.dtype)) if x.dtype.kind in "if" else _fail()


def _reduce(node: Node, x: Array, *given: Array) -> Array:
    axes, function = _axes(node, given), _REDUCTIONS[node.type]
    over = None if axes is None else tuple(axes)
    return np.asarray(function(x, axis=over, keepdims=bool(node.attr("keepdims", 1))), x.dtype)


def _shape(node: Node, dims: Array) -> Array:
    return dims[node.attr("start", 0) : node.attr("end")]


def _fail() -> NoReturn:
    raise ValueError("not known")


def _known(function: Callable[..., Array]) -> Formula:
    """Return a formula that is used only if all inputs are known, since NaN compares as false."""

    def compute(node: Node, *arrays: Array) -> Array:
        if any(one.dtype == np.float64 and np.isnan(one).any() for one in arrays):
            raise ValueError("not known")
        return function(*arrays)

    return compute


def _where(node: Node, condition: Array, x: Array, y: Array) -> Array:
    return np.where(condition.astype(bool), x, y)


_REDUCTIONS: Final = {row.onnx: row.formula for row in REDUCTIONS.values() if row.slope}
_FORMULAS: Final[dict[str, Formula]] = {
    "Abs": lambda node, x: np.abs(x),
    "Add": lambda node, x, y: x + y,
    "And": _known(np.logical_and),
    "Cast": _cast,
    "Ceil": lambda node, x: np.ceil(x),
    "Concat": lambda node, *parts: np.concatenate(parts, axis=node.attr("axis")),
    "ConstantOfShape": _fill,
    "Div": _divide,
    "Equal": _known(np.equal),
    "Expand": _expand,
    "Floor": lambda node, x: np.floor(x),
    "Gather": _gather,
    "Greater": _known(np.greater),
    "GreaterOrEqual": _known(np.greater_equal),
    "Identity": lambda node, x: x,
    "Less": _known(np.less),
    "LessOrEqual": _known(np.less_equal),
    "Max": lambda node, *parts: np.maximum.reduce(np.broadcast_arrays(*parts)),
    "Min": lambda node, *parts: np.minimum.reduce(np.broadcast_arrays(*parts)),
    "Mod": lambda node, x, y: np.fmod(x, y) if node.attr("fmod", 0) else np.mod(x, y),
    "Mul": lambda node, x, y: x * y,
    "Neg": lambda node, x: -x,
    "Not": _known(np.logical_not),
    "Or": _known(np.logical_or),
    "Pow": lambda node, x, y: np.power(x, y).astype(x.dtype),
    "Range": _range,
    **dict.fromkeys(_REDUCTIONS, _reduce),
    "Reshape": _reshape,
    "Shape": _shape,
    "Size": lambda node, x: np.asarray(x.size, np.int64),
    "Slice": _slice,
    "Sqrt": lambda node, x: np.sqrt(x),
    "Squeeze": _squeeze,
    "Sub": lambda node, x, y: x - y,
    "Tile": lambda node, x, repeats: np.tile(x, _check_count(np.append(_whole(repeats), x.size))[:-1]),
    "Transpose": lambda node, x: np.transpose(x, node.attr("perm")),
    "Unsqueeze": _unsqueeze,
    "Where": _where,
}
