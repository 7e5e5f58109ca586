"""``x[...]`` on a variable, as slice, strided_slice and reverse operators."""

from __future__ import annotations

from typing import Any, Final

from paddlelike import unique_name
from paddlelike.core import VarType
from paddlelike.errors import GraphError
from paddlelike.framework.graph.variable import Variable

_END: Final = 10_000_000  # Paddle's "to the end"


def getitem(variable: Variable, item: Any) -> Variable:
    """Append the operators for the part ``item`` of ``variable``; as in numpy, an integer drops its dim.

    Raises GraphError for more indexes than dims, and for an index that is not an integer, slice or variable.
    """
    items = list(item) if isinstance(item, tuple) else [item]
    items = _expand_ellipsis(items, len(variable.shape))
    if len(items) > len(variable.shape):
        raise GraphError(
            f"variable {variable.name!r} of shape {list(variable.shape)}: got {len(items)} indexes, "
            f"expected at most {len(variable.shape)}"
        )
    axes: list[int] = []
    starts: list[Any] = []
    ends: list[Any] = []
    strides: list[int] = []
    drop: list[int] = []
    backwards: list[int] = []
    for axis, one in enumerate(items):
        if isinstance(one, slice):
            if one.step is None and one.start is None and one.stop is None:
                continue
            if one.step == -1 and one.start is None and one.stop is None:
                backwards.append(axis)
                continue
            axes.append(axis)
            starts.append(0 if one.start is None else one.start)
            ends.append(_END if one.stop is None else one.stop)
            strides.append(1 if one.step is None else one.step)
        elif _is_index(one):
            axes.append(axis)
            drop.append(axis)
            starts.append(one)
            ends.append(_next_index(one))
            strides.append(1)
        else:
            raise GraphError(
                f"variable {variable.name!r} cannot be indexed by {one!r}",
                hint="use integers, slices and integer variables; layers.gather takes index lists",
            )
    out = variable
    if axes:
        out = _slice(variable, axes, starts, ends, strides, drop)
    if backwards:
        out = _append(out, "reverse", variable.name + "_slice_reverse", {"X": [out]}, {"axis": backwards})
    if out is variable:  # x[:]
        out = _append(out, "assign", variable.name + "_slice", {"X": [out]}, {})
    return out


def _expand_ellipsis(items: list[Any], rank: int) -> list[Any]:
    where = [i for i, item in enumerate(items) if item is Ellipsis]
    if not where:
        return items
    fill = [slice(None)] * (rank - len(items) + 1)
    return items[: where[0]] + fill + items[where[0] + 1 :]


def _is_index(item: object) -> bool:
    return isinstance(item, Variable) or (hasattr(item, "__index__") and not isinstance(item, bool))


def _next_index(index: Any) -> object:
    """Return the end of a slice with one element that starts at ``index``."""
    if not isinstance(index, Variable):
        return _END if int(index) == -1 else int(index) + 1
    block = index.block.program.current_block()
    one, after = (block.create_var(dtype=index.dtype) for _ in range(2))
    block.append_op(
        type="fill_constant",
        inputs={},
        outputs={"Out": [one]},
        attrs={"shape": [1], "dtype": int(index.dtype), "value": 1.0, "force_cpu": True},
    )
    block.append_op(
        type="elementwise_add",
        inputs={"X": [index], "Y": [one]},
        outputs={"Out": [after]},
        attrs={"axis": -1},
    )
    return after


def _slice(
    variable: Variable,
    axes: list[int],
    starts: list[Any],
    ends: list[Any],
    strides: list[int],
    drop: list[int],
) -> Variable:
    inputs: dict[str, Any] = {"Input": [variable]}
    attrs: dict[str, Any] = {"axes": axes}
    flags = [1] * len(axes)
    for name, values in (("Starts", starts), ("Ends", ends)):
        if any(isinstance(v, Variable) for v in values):
            inputs[f"{name}TensorList"] = [_as_variable(variable, v) for v in values]
            flags = [-1 if isinstance(v, Variable) else f for v, f in zip(values, flags, strict=True)]
        attrs[name.lower()] = [-1 if isinstance(v, Variable) else int(v) for v in values]
    attrs["infer_flags"] = flags
    attrs["decrease_axis"] = drop
    kind = "slice"
    if any(stride != 1 for stride in strides):
        kind, attrs["strides"] = "strided_slice", strides
    return _append(variable, kind, variable.name + "_slice", inputs, attrs)


def _as_variable(like: Variable, value: Any) -> Variable:
    if isinstance(value, Variable):
        return value
    block = like.block.program.current_block()
    out = block.create_var(dtype=VarType.INT32)
    block.append_op(
        type="fill_constant",
        inputs={},
        outputs={"Out": [out]},
        attrs={"shape": [1], "dtype": int(VarType.INT32), "value": float(value), "force_cpu": True},
    )
    out.stop_gradient = True
    return out


def _append(like: Variable, type: str, key: str, inputs: dict[str, Any], attrs: dict[str, Any]) -> Variable:
    # As in Fluid, use the block of the variable, also inside a step or loop: a memory may start from the
    # part. If an index is a variable of the step, use the step's block.
    indexed = any(slot.endswith("TensorList") for slot in inputs)
    block = like.block.program.current_block() if indexed else like.block
    out = block.create_var(name=unique_name.generate(key), dtype=like.dtype)
    block.append_op(type=type, inputs=inputs, outputs={"Out": [out]}, attrs=attrs)
    return out
