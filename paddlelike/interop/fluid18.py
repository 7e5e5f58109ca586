"""Programs of Paddle 2.x as programs of Fluid 1.8, for operators that compute the same in both.

An operator stays if 1.8.5 has its type, inputs and attributes (or computes the same without them), and if
1.8.5's shape rule gives the same output shapes. Other operators are refused by name. A value without dims in
Paddle 2.x becomes one element in one dim, like every number in Fluid.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterator, Sequence
from typing import Any, Final

from paddlelike.core import VarType
from paddlelike.errors import EnforceNotMet, ShapeError, UnsupportedError
from paddlelike.framework import Block, Operator, Program, Variable
from paddlelike.framework.environment import PADDLE2_VERSION, PADDLE3_VERSION
from paddlelike.framework.graph.attributes import complete_attrs
from paddlelike.framework.graph.inference import infer_outputs
from paddlelike.framework.opdef import OpDef, registry
from paddlelike.framework.opdef.attributes import COMMON_ATTRS
from paddlelike.framework.passes.clone import copy

#: Attributes that choose kernels and do not change results.
_IGNORED: Final = frozenset({"mkldnn_data_type", "place_type", "use_mkldnn", "with_quant_attr"})
#: Values of attributes that 1.8.5 lacks, with which it computes the same; other attributes must be empty,
#: zero or False.
_MEANT: Final[dict[tuple[str, str], Any]] = {
    ("affine_grid", "align_corners"): True,
    ("flatten2", "stop_axis"): -1,
    ("grid_sampler", "align_corners"): True,
    ("grid_sampler", "mode"): "bilinear",
    ("grid_sampler", "padding_mode"): "zeros",
    ("linspace", "dtype"): int(VarType.FP32),
    ("pixel_shuffle", "data_format"): "NCHW",
    ("prelu", "data_format"): "NCHW",
    ("softmax_with_cross_entropy", "use_softmax"): True,
    ("softplus", "beta"): 1.0,
    ("softplus", "threshold"): 20.0,
    ("temporal_shift", "data_format"): "NCHW",
    ("top_k", "axis"): -1,
    ("top_k", "largest"): True,
    ("top_k", "sorted"): True,
    ("unpool", "data_format"): "NCHW",
    ("yolo_box", "iou_aware_factor"): 0.5,  # without iou_aware
}
_RENAMED: Final = {
    ("expand", "repeat_times"): "expand_times",
    ("flatten2", "start_axis"): "axis",
    ("flip", "axis"): "dims",
    ("matmul", "trans_x"): "transpose_X",
    ("matmul", "trans_y"): "transpose_Y",
    ("roll", "axis"): "dims",
    ("trace", "axis1"): "dim1",
    ("trace", "axis2"): "dim2",
}
_LARGEST: Final = 2**31 - 1  # a start that Paddle 2 writes where x[::-1] names none
#: The element types in framework.proto of 1.8.5: its parser refuses a program with any other.
_DTYPES: Final = frozenset(map(VarType, (*range(7), VarType.UINT8, VarType.INT8)))
#: Sizes and places that 1.8.5 takes as int32 only.
_SMALL: Final[dict[str, tuple[str, ...]]] = {
    "expand": ("ExpandTimes", "expand_times_tensor"),
    "reshape2": ("Shape", "ShapeTensor"),
    **dict.fromkeys(
        ("bicubic_interp", "bilinear_interp", "nearest_interp", "trilinear_interp"), ("OutSize", "SizeTensor")
    ),
    **dict.fromkeys(
        ("slice", "strided_slice"),
        tuple(f"{way}{form}" for way in ("Starts", "Ends", "Strides") for form in ("Tensor", "TensorList")),
    ),
}
#: Operators that 1.8.5 has no kernel of truth values for.
_WITHOUT_TRUTHS: Final = frozenset({
    "concat", "equal", "flatten2", "gather", "not_equal", "pad", "reshape2", "roll", "scale", "shape",
    "slice", "split", "squeeze2", "stack", "strided_slice", "sum", "transpose2", "tril_triu", "unsqueeze2",
    "unstack",
})  # fmt: skip
#: 1.8.5 rounds negative integer quotients towards zero; its ``unique`` does not sort.
_OTHER_NUMBERS: Final = frozenset({"elementwise_floordiv", "elementwise_mod", "unique"})
#: Types of 1.8.5 that compute the same as some of Paddle 2.
_SAME: Final = {
    "bicubic_interp_v2": "bicubic_interp", "bilinear_interp_v2": "bilinear_interp",
    "flatten_contiguous_range": "flatten2", "matmul_v2": "matmul", "nearest_interp_v2": "nearest_interp",
    "silu": "swish", "tile": "expand", "top_k_v2": "top_k", "trilinear_interp_v2": "trilinear_interp",
}  # fmt: skip


def make_fluid18(program: Program) -> Program:
    """Return a program of Paddle 2.x as a program of Fluid 1.8; an older program is returned unchanged.

    Raises
    ------
    UnsupportedError
        Operators that Fluid 1.8 does not have in this form; it lists all of them.
    """
    if program.paddle_version < PADDLE2_VERSION:
        return program
    clone = copy(program)
    clone.encoded, clone.is_versioned = None, True
    numbers = [one for one in clone.list_vars() if one.type == VarType.LOD_TENSOR and not one.shape]
    for variable in clone.list_vars():
        variable.encoded = None
    for variable in numbers:
        variable.shape = (1,)
    for block in clone.blocks:
        for op in list(block.ops):
            _cast(op)
    ops = [op for block in clone.blocks for op in block.ops]
    read = {name for op in ops for name in op.input_arg_names}
    refused = {found for op in ops for found in _change(op, read)}
    refused |= {f"{one.name}, a value without dims" for one in numbers if one.persistable}
    refused |= {
        f"{one.name}, of {one.dtype.name}"
        for one in clone.list_vars()
        if one.type == VarType.LOD_TENSOR and one.dtype not in _DTYPES
    }
    if refused:
        raise UnsupportedError(
            f"Fluid 1.8 lacks these operators, or this form of them: {'; '.join(sorted(refused))}",
            hint="a .pdmodel or .json as the target keeps the operators of Paddle 2",
        )
    return clone


def _cast(op: Operator) -> None:
    """Cast inputs whose types 1.8.5 does not accept, such as sizes of int64 or triangles of bools."""
    block, first = op.block, op.output_arg_names[0] if op.output_arg_names else ""
    for slot in _SMALL.get(_SAME.get(op.type, op.type), ()):
        for place, name in enumerate(op.inputs.get(slot, ())):
            given = block._var_recursive(name)
            if given.dtype == VarType.INT64:
                made = block.create_var(name=f"{first}.{slot}.{place}", shape=given.shape, dtype="int32")
                _insert_cast(block, block.ops.index(op), given, made)
                op.inputs[slot][place] = made.name
    if _SAME.get(op.type, op.type) in _WITHOUT_TRUTHS:
        _compute_truths(op, first)


def _compute_truths(op: Operator, first: str) -> None:
    """Make an operator compute with int32 in place of bool."""
    block = op.block
    for names, kind in ((op.inputs, "in"), (op.outputs, "out")):
        for slot, given in names.items():
            for place, name in enumerate(given):
                variable = block._var_recursive(name)
                if variable.dtype != VarType.BOOL or (kind == "out" and op.type in ("equal", "not_equal")):
                    continue
                made = block.create_var(
                    name=f"{first}.{kind}.{slot}.{place}", shape=variable.shape, dtype="int32"
                )
                if kind == "in":
                    _insert_cast(block, block.ops.index(op), variable, made)
                else:
                    _insert_cast(block, block.ops.index(op) + 1, made, variable)
                given[place] = made.name


def _insert_cast(block: Block, index: int, given: Variable, made: Variable) -> None:
    types = {"in_dtype": int(given.dtype), "out_dtype": int(made.dtype)}
    block._insert_op(index, type="cast", inputs={"X": [given]}, outputs={"Out": [made]}, attrs=types)


def _change(op: Operator, read: Container[str]) -> Iterator[str]:
    """Convert an operator to its form in 1.8.5, and yield the reasons why that is impossible."""
    op.encoded, op.encoded_types, later = None, {}, op.type
    op.type = _SAME.get(op.type, op.type)
    if op.type == "stack" and len(op.block._var_recursive(op.output("Y")[0]).shape) == 1:  # of numbers
        op.type, op.outputs, op.attrs = "concat", {"Out": op.output("Y")}, {"axis": 0}
    if later == "flatten_contiguous_range":
        _reshape_flat(op)
    if op.type == "expand_v2":
        _repeat(op)
    known = registry.find_or_none(op.type)
    if op.type == "round" and op.block.program.paddle_version >= PADDLE3_VERSION:
        yield f"{later}, which rounds halves to the even number"
        return
    if known is None or known.since != "1" or op.type in _OTHER_NUMBERS:
        yield later
        return
    slots = {slot.name for slot in known.input_slots}
    yield from (f"{later} with {slot}" for slot, names in op.inputs.items() if names and slot not in slots)
    op.inputs = {slot: names for slot, names in op.inputs.items() if slot in slots}
    _complete_outputs(op, known)
    op.attrs = {_RENAMED.get((op.type, name), name): value for name, value in op.attrs.items()}
    yield from _find_lacking(op, later)
    _fit_values(op)
    for name, value in op.attrs.items():
        if not (name in known.attrs or name in COMMON_ATTRS or name in _IGNORED):
            meant = _MEANT.get((op.type, name))
            if value != meant if meant is not None else value:
                yield f"{later} with {name}={value!r}"
    if op.type == "roll" and not op.attrs.get("dims"):
        yield "roll with axis=[]"
    try:
        op.attrs = complete_attrs(known, op.attrs)
        for name, spec in infer_outputs(op.block, op, known):
            declared = op.block._var_recursive(name).shape
            carried = op.type == "assign"  # carried by a loop, which may change its shape
            if name in read and not carried and not _agree(declared, spec.shape):
                yield f"{later} of shape {list(declared)}, in Fluid {list(spec.shape)}"
    except (EnforceNotMet, ShapeError) as error:
        yield f"{later} ({str(error).splitlines()[0]})"


def _find_lacking(op: Operator, later: str) -> Iterator[str]:
    """Yield the restrictions of 1.8.5's operator that its attributes do not show."""
    if op.type == "cast" and op.block._var_recursive(op.input("X")[0]).dtype in (VarType.INT8, VarType.INT16):
        yield f"{later} of {op.block._var_recursive(op.input('X')[0]).dtype.name}"
    value = op.attrs.get("value")
    if op.type == "fill_any_like" and isinstance(value, float) and not math.isfinite(value):
        yield f"{later} of {value}"
    if op.type in ("pool2d", "pool3d"):
        yield from (f"{later} with exclusive=False and {one}" for one in find_uneven(op))
    for place, reach in find_backward(op):
        starts, ends = (op.attrs.get(one) or [0] * (place + 1) for one in ("starts", "ends"))
        step, version = op.attrs["strides"][place], op.block.program.paddle_version
        if reach:
            starts[place], ends[place] = reach[0], reach[-1] - 1
        elif reach is not None or step < -1:
            yield f"{later} in steps of {step}"
        elif version < PADDLE3_VERSION and ends[place] < -1:  # perhaps before the first element
            yield f"{later} in steps of {step} to an end of {ends[place]}"
        elif starts[place] == _LARGEST:
            starts[place] = -1


def find_backward(op: Operator) -> Iterator[tuple[int, range | None]]:
    """Yield the index of each negative step, and the elements that Paddle 2 selects; None if sizes decide.

    Fluid 1.8.5 differs: it takes the elements forward, from the element after the end, refuses the largest
    start, and includes element 0 if the end is before element 0.
    """
    if op.type != "strided_slice":
        return
    dims = op.block._var_recursive(op.input("Input")[0]).shape
    computed = any(names for slot, names in op.inputs.items() if slot != "Input")
    for place, (axis, step) in enumerate(zip(op.attrs["axes"], op.attrs.get("strides") or (), strict=False)):
        if step < 0 and (computed or dims[axis] < 0):
            yield place, None
        elif step < 0:
            dim, start, end = dims[axis], op.attrs["starts"][place], op.attrs["ends"][place]
            first = min(start + dim if start < 0 else start, dim - 1)
            yield place, range(first, max(end, -dim) + dim if end < -1 else end, step)


def takes_others(op: Operator) -> Iterator[str]:
    """Yield the steps with which a slice selects other elements in Paddle 2 than in 1.8.5."""
    for place, reach in find_backward(op):
        step, end = op.attrs["strides"][place], op.attrs["ends"][place] if reach else 0
        if reach is None:
            differs = step < -1
        else:
            dim = op.block._var_recursive(op.input("Input")[0]).shape[op.attrs["axes"][place]]
            after = max(end + dim if end < -1 else end, -1) + 1  # the element that 1.8.5 begins with
            differs = not reach or reach[-1] != after
        if differs:
            yield f"steps of {step}"


def find_uneven(op: Operator) -> Iterator[str]:
    """Yield why the means of a pool count other elements in 1.8.5 than in Paddle 2."""
    whole = any(op.attrs.get(one, one == "exclusive") for one in ("exclusive", "global_pooling", "adaptive"))
    if whole or op.attrs.get("pooling_type") != "avg":
        return
    kernel = op.attrs["ksize"]
    steps = op.attrs.get("strides") or [1] * len(kernel)
    pads = op.attrs.get("paddings") or [0] * len(kernel)
    ends = [*zip(pads[::2], pads[1::2], strict=True)] if len(pads) > len(kernel) else [(n, n) for n in pads]
    if op.attrs.get("padding_algorithm") == "SAME" or any(low != high for low, high in ends):
        yield "uneven padding"
    shape = op.block._var_recursive(op.input("X")[0]).shape
    sizes = shape[1:-1] if op.attrs.get("data_format", "").endswith("C") else shape[2:]
    fits = all(
        step == 1 or (n >= 0 and (n + low + high - width) % step == 0)
        for n, (low, high), width, step in zip(sizes, ends, kernel, steps, strict=True)
    )
    if op.attrs.get("ceil_mode") and not fits:
        yield "ceil_mode=True"


def _reshape_flat(op: Operator) -> None:
    """Replace a flatten by a reshape, if sizes are known and it flattens other dims than all from the
    second on.
    """
    dims = op.block._var_recursive(op.input("X")[0]).shape
    first, last = (op.attrs.get(f"{end}_axis", 1) % max(len(dims), 1) for end in ("start", "stop"))
    if (first, last) != (1, len(dims) - 1) and -1 not in dims[last + 1 :]:
        op.type, op.attrs = "reshape2", {"shape": [*[0] * first, -1, *dims[last + 1 :]]}


def _repeat(op: Operator) -> None:
    """Replace an expansion by repeating dims of size 1; the counts may be computed."""
    block, out, dims = op.block, op.output("Out")[0], op.block._var_recursive(op.input("X")[0]).shape
    given, shape = op.input("Shape") or op.input("expand_shapes_tensor"), op.attrs.get("shape") or []
    if (
        not given
        and len(shape) == len(dims)
        and all(n in (-1, d) or d == 1 for d, n in zip(dims, shape, strict=True))
    ):
        op.type = "expand"
        op.attrs = {"expand_times": [n if d == 1 and n > 0 else 1 for d, n in zip(dims, shape, strict=True)]}
    if (
        not given
        or -1 in dims
        or (op.input("Shape") and block._var_recursive(given[0]).shape != (len(dims),))
    ):
        return

    def insert(kind: str, inputs: dict[str, list[str]], attrs: dict[str, Any]) -> str:
        made = block.create_var(name=f"{out}.{kind}", shape=(len(dims),), dtype="int32")
        index = block.ops.index(op)
        block._insert_op(index, type=kind, inputs=inputs, outputs={"Out": [made.name]}, attrs=attrs)
        return made.name

    sizes = insert("concat", {"X": given}, {"axis": 0}) if len(given) > 1 else given[0]
    kinds = {"in_dtype": int(block._var_recursive(given[0]).dtype), "out_dtype": int(VarType.INT32)}
    sizes = insert("cast", {"X": [sizes]}, kinds)
    ones = {"shape": [len(dims)], "dtype": int(VarType.INT32), "int32_values": [int(n == 1) for n in dims]}
    mask = insert("assign_value", {}, ones)
    times = insert("elementwise_mul", {"X": [sizes], "Y": [mask]}, {"axis": -1})
    one = insert("fill_constant", {}, {"shape": [1], "dtype": int(VarType.INT32), "value": 1.0})
    times = insert("elementwise_max", {"X": [times], "Y": [one]}, {"axis": -1})  # where nothing is repeated
    op.type, op.attrs = "expand", {"expand_times": []}
    op.inputs = {"X": op.input("X"), "ExpandTimes": [times]}


def _fit_values(op: Operator) -> None:
    """Convert the values of attributes that have the same name but another meaning in 1.8.5."""
    attrs = op.attrs
    if op.type == "flatten2" and attrs.get("stop_axis") == len(op.block.var(op.input("X")[0]).shape) - 1:
        attrs["stop_axis"] = -1
    if op.type.startswith("reduce_") and (attrs.get("reduce_all") or not attrs.get("dim")):
        attrs |= {"dim": [0], "reduce_all": True}
    if attrs.get("shape") == [] and not (op.input("ShapeTensor") or op.input("ShapeTensorList")):
        attrs["shape"] = [1]
    if not math.isfinite(float(attrs.get("str_value") or 0)):  # 1.8.5 would read 0
        attrs["str_value"] = ""
    scale = attrs.get("scale")
    if isinstance(scale, list) and len(set(scale)) <= 1:  # of each dim
        attrs["scale"] = scale[0] if scale else 0.0


def _complete_outputs(op: Operator, known: type[OpDef]) -> None:
    """Create the outputs that 1.8.5 insists on, which Paddle 2 leaves out of models; drop those it lacks."""
    first = op.output_arg_names[0] if op.output_arg_names else ""
    op.outputs = {slot.name: list(op.outputs.get(slot.name, ())) for slot in known.output_slots}
    for slot in known.output_slots:
        if not op.outputs[slot.name] and not slot.optional and first:
            made = op.block.create_var(name=f"{first}.{slot.name}", dtype=op.block.var(first).dtype)
            op.outputs[slot.name] = [made.name]


def _agree(declared: Sequence[int], inferred: Sequence[int]) -> bool:
    """Return whether the known dims of two shapes agree."""
    if not inferred:
        return True
    return len(declared) == len(inferred) and all(
        a == b or -1 in (a, b) for a, b in zip(declared, inferred, strict=True)
    )
