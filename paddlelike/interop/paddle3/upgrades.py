"""Operators of Fluid 1.8 that Paddle 3 lacks, replaced by operators of Paddle 2 that it has."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from paddlelike.core import VarType
from paddlelike.errors import UnsupportedError
from paddlelike.foundation.warn import warn_user
from paddlelike.framework import Operator, Program, Variable
from paddlelike.interop.fluid18 import find_uneven
from paddlelike.interop.paddle3.block_writer import Writer, get_attr


class Draft:
    """The operators that replace one operator, in a separate program."""

    def __init__(self, writer: Writer, op: Operator) -> None:
        self.op, self.ops = op, list[Operator]()
        self.block = Program().global_block()
        self._writer = writer
        for name in [*op.input_arg_names, *op.output_arg_names]:
            var = writer.find_var(name)
            self.make(var, var.shape, name=name)

    def make(self, like: Variable, shape: Any, dtype: VarType | None = None, name: str | None = None) -> str:
        name = name or f"{self.op.output_arg_names[0]}.form_{len(self.block.vars)}"
        return self.block.create_var(
            name=name, shape=list(shape), dtype=like.dtype if dtype is None else dtype, type=like.type
        ).name

    def var(self, slot: str) -> Variable:
        """Return the variable of an input."""
        return self.block.var(self.op.input(slot)[0])

    def attr(self, name: str) -> Any:
        return get_attr(self.op, name)

    @property
    def out(self) -> str:
        """The variable of the output slot Out."""
        return self.op.output("Out")[0]

    def add(
        self,
        type_: str,
        inputs: str | Mapping[str, Sequence[str]],
        out: str | dict[str, list[str]],
        **attrs: Any,
    ) -> None:
        """Append an operator. A single variable belongs to the slot X, or to the slot Out."""
        named: Mapping[str, Sequence[str]] = {"X": inputs} if isinstance(inputs, str) else inputs
        given = {slot: [name] if isinstance(name, str) else [*name] for slot, name in named.items()}
        outputs = {"Out": [out]} if isinstance(out, str) else out
        self.ops.append(Operator(self.block, type_, given, outputs, attrs))

    def join(self, kind: str, x: str, y: str, out: str) -> None:
        """Append an operator of two variables that broadcast from the last dim: ``"add"``."""
        self.add(f"elementwise_{kind}", {"X": x, "Y": y}, out, axis=-1)

    def rename(self, type_: str, **attrs: Any) -> None:
        """Append the operator itself under another type."""
        self.ops.append(
            Operator(
                self.block, type_, dict(self.op.inputs), dict(self.op.outputs), {**self.op.attrs, **attrs}
            )
        )


Form = Callable[[Draft], None]


def _renamed(type_: str, **attrs: Any) -> Form:
    return lambda draft: draft.rename(type_, **attrs)


def _squeeze_ids(draft: Draft, slot: str) -> str:
    """Return ids without their last dim, which is 1."""
    ids = draft.var(slot)
    squeezed = draft.make(ids, ids.shape[:-1])
    draft.add("squeeze2", ids.name, squeezed, axes=[-1])
    return squeezed


def _lookup(draft: Draft) -> None:
    inputs = {"W": draft.op.input("W"), "Ids": _squeeze_ids(draft, "Ids")}
    padding = draft.attr("padding_idx")
    draft.add("lookup_table_v2", inputs, draft.out, padding_idx=padding)


def _one_hot(draft: Draft) -> None:
    inputs = {"X": _squeeze_ids(draft, "X"), "depth_tensor": draft.op.input("depth_tensor")}
    draft.add("one_hot_v2", inputs, draft.out, depth=draft.attr("depth"))


def _gather(draft: Draft) -> None:
    index = draft.op.input("Index")[0]
    if len(draft.var("Index").shape) == 2:
        index = _squeeze_ids(draft, "Index")
    draft.add("gather", {"X": draft.op.input("X"), "Index": index}, draft.out, axis=0)


def _arg(draft: Draft) -> None:
    dtype = draft.attr("dtype")
    draft.rename(draft.op.type, flatten=False, dtype=int(VarType.INT64) if dtype < 0 else dtype)


def _matmul(draft: Draft) -> None:
    if min(len(draft.var(slot).shape) for slot in "XY") < 2:
        raise UnsupportedError("operator 'matmul' of vectors cannot be written for Paddle 3")
    out, alpha = draft.out, draft.attr("alpha")
    product = draft.make(draft.block.var(out), draft.block.var(out).shape) if alpha != 1 else out
    transposed = {f"trans_{one.lower()}": draft.attr(f"transpose_{one}") for one in "XY"}
    draft.add("matmul_v2", {slot: draft.op.input(slot) for slot in "XY"}, product, **transposed)
    if alpha != 1:
        draft.add("scale", product, out, scale=alpha, bias=0.0, bias_after_scale=True)


def _flatten(draft: Draft) -> None:
    x, axis, out = draft.var("X"), draft.attr("axis"), draft.out
    if axis in (0, len(x.shape)):
        draft.add("reshape2", x.name, out, shape=[1, -1] if axis == 0 else [-1, 1])
        return
    first = x.name
    if axis > 1:
        first = draft.make(x, [-1, *x.shape[axis:]])
        draft.add("flatten_contiguous_range", x.name, first, start_axis=0, stop_axis=axis - 1)
    draft.add("flatten_contiguous_range", first, out, start_axis=1, stop_axis=-1)


def _reduce(draft: Draft) -> None:
    x, out = draft.var("X"), draft.out
    rank = len(x.shape)
    dims = {dim % max(rank, 1) for dim in draft.attr("dim")}
    whole = draft.attr("reduce_all") or len(dims) == rank
    if not whole or draft.attr("keep_dim"):
        draft.rename(draft.op.type)
        return
    number = draft.make(draft.block.var(out), [])
    draft.add(draft.op.type, x.name, number, dim=[], reduce_all=True, keep_dim=False)
    draft.add("reshape2", number, out, shape=[1])


def _reshape_numbers(draft: Draft) -> None:
    """Reshape a result of one number, which has a dim in Fluid 1.8."""
    numbers = {
        name: draft.make(var, [])
        for name in draft.op.output_arg_names
        if (var := draft.block.var(name)).shape == (1,)
    }
    outputs = {slot: [numbers.get(name, name) for name in names] for slot, names in draft.op.outputs.items()}
    draft.add(draft.op.type, draft.op.inputs, outputs, **draft.op.attrs)
    for name, number in numbers.items():
        draft.add("reshape2", number, name, shape=[1])


def _test_elements(test: str, reduce: str) -> Form:
    def write(draft: Draft) -> None:
        x, out = draft.var("X"), draft.out
        tested, number = draft.make(x, x.shape, VarType.BOOL), draft.make(x, [], VarType.BOOL)
        draft.add(test, x.name, tested)
        draft.add(reduce, tested, number, dim=[], reduce_all=True, keep_dim=False)
        draft.add("reshape2", number, out, shape=[1])
        draft.block.var(out).dtype = VarType.BOOL  # whatever the program declares

    return write


def _expand(draft: Draft) -> None:
    times = draft.attr("expand_times")
    if not times:
        raise UnsupportedError("operator 'expand' with computed times cannot be written for Paddle 3")
    draft.add("tile", {"X": draft.op.input("X")}, draft.out, repeat_times=times)


def _interpolate(draft: Draft) -> None:
    scale = draft.attr("scale")
    draft.rename(f"{draft.op.type}_v2", scale=[scale, scale] if scale > 0 else [])


def _zeros(draft: Draft) -> None:
    x = draft.var("X")
    draft.add("fill_any_like", x.name, draft.out, value=0.0, dtype=int(x.dtype))


def _norm(draft: Draft) -> None:
    x, axis = draft.var("X"), draft.attr("axis")
    (norm,), out = draft.op.output("Norm"), draft.out
    shape = draft.block.var(norm).shape
    square, total, moved = draft.make(x, x.shape), draft.make(x, shape), draft.make(x, shape)
    draft.add("square", x.name, square)
    draft.add("reduce_sum", square, total, dim=[axis], keep_dim=True, reduce_all=False)
    draft.add("scale", total, moved, scale=1.0, bias=draft.attr("epsilon"), bias_after_scale=True)
    draft.add("sqrt", moved, norm)
    draft.join("div", x.name, norm, out)


def _cos_sim(draft: Draft) -> None:
    x, y, out = draft.var("X"), draft.var("Y"), draft.out
    norms = [draft.op.output(slot)[0] for slot in ("XNorm", "YNorm")]
    for var, norm in zip((x, y), norms, strict=True):
        square, total = draft.make(var, var.shape), draft.make(var, [var.shape[0], 1])
        draft.add("square", var.name, square)
        draft.add("reduce_sum", square, total, dim=[1], keep_dim=True, reduce_all=False)
        draft.add("sqrt", total, norm)
    product, total = draft.make(x, x.shape), draft.make(x, [x.shape[0], 1])
    both = draft.make(x, [x.shape[0], 1])
    draft.join("mul", x.name, y.name, product)
    draft.add("reduce_sum", product, total, dim=[1], keep_dim=True, reduce_all=False)
    draft.join("mul", norms[0], norms[1], both)
    draft.join("div", total, both, out)


def _data_norm(draft: Draft) -> None:
    size, total, squares = (draft.var(slot) for slot in ("BatchSize", "BatchSum", "BatchSquareSum"))
    means, scales = draft.op.output("Means")[0], draft.op.output("Scales")[0]
    x, (out,) = draft.var("X"), draft.op.output("Y")
    ratio, moved = draft.make(size, size.shape), draft.make(x, x.shape)
    draft.join("div", total.name, size.name, means)
    draft.join("div", size.name, squares.name, ratio)
    draft.add("sqrt", ratio, scales)
    draft.join("sub", x.name, means, moved)
    draft.join("mul", moved, scales, out)


def _pad2d(draft: Draft) -> None:
    x, out, last = draft.var("X"), draft.out, draft.attr("data_format") == "NHWC"
    axis, mode = 1 if last else 2, draft.attr("mode")
    top, bottom, left, right = draft.attr("paddings")
    if draft.op.input("Paddings"):
        raise UnsupportedError("operator 'pad2d' with computed paddings cannot be written for Paddle 3")
    deep, padded = ([*shape[:axis], 1, *shape[axis:]] for shape in (x.shape, draft.block.var(out).shape))
    before, after = draft.make(x, deep), draft.make(x, padded)
    draft.add("unsqueeze2", x.name, before, axes=[axis])
    draft.add(
        "pad3d", before, after, paddings=[left, right, top, bottom, 0, 0],
        value=draft.attr("pad_value"), mode="replicate" if mode == "edge" else mode,
        data_format="NDHWC" if last else "NCDHW",
    )  # fmt: skip
    draft.add("squeeze2", after, out, axes=[axis])


def _fill_alike(draft: Draft) -> None:
    text = draft.attr("str_value")
    value = float(text) if text else draft.attr("value")
    draft.rename(draft.op.type, value=value, str_value="")


def _suppress(draft: Draft) -> None:
    """Suppress boxes. The number of boxes per image, a LoD in Fluid, is lost: Paddle 3 has no LoD."""
    warn_user(
        f"{draft.op.output('Out')[0]!r} has no LoD in Paddle 3: the boxes of all images follow each other, "
        "and where nothing is found there is no row (Fluid gives one row of -1)"
    )
    out = draft.out
    var = draft.block.var(out)
    index, counts = draft.make(var, [-1, 1], VarType.INT32), draft.make(var, [-1], VarType.INT32)
    outputs = {"Out": [out], "Index": [index], "NmsRoisNum": [counts]}
    inputs = {slot: draft.op.input(slot) for slot in ("BBoxes", "Scores")}
    draft.add("multiclass_nms3", inputs, outputs, **draft.op.attrs)


def _pool(draft: Draft) -> None:
    for why in find_uneven(draft.op):
        raise UnsupportedError(
            f"Paddle 3 counts other elements in {draft.op.type} with exclusive=False and {why}"
        )
    draft.rename(draft.op.type)


def _write(form: Form) -> Callable[[Writer, Operator], None]:
    def write(writer: Writer, op: Operator) -> None:
        if writer.is_later:
            writer.write_row(op)
            return
        draft = Draft(writer, op)
        form(draft)
        writer.write_draft(draft.block, draft.ops)

    return write


_REDUCTIONS: Final = ("sum", "mean", "max", "min", "prod", "all", "any")
_TRANSPOSED: Final = ("conv2d_transpose", "depthwise_conv2d_transpose", "conv3d_transpose")
FORMS: Final = {
    type_: _write(form)
    for type_, form in {
        **{f"reduce_{one}": _reduce for one in _REDUCTIONS},
        **{one: _renamed(f"{one}2") for one in ("reshape", "squeeze", "transpose", "unsqueeze")},
        **{one: _renamed(one, output_padding=[]) for one in _TRANSPOSED},
        **{one: _renamed(one) for one in ("equal", "not_equal", "grid_sampler", "pixel_shuffle")},
        **dict.fromkeys(("pool2d", "pool3d"), _pool),
        **dict.fromkeys(("accuracy", "kldiv_loss", "mean"), _reshape_numbers),
        "arg_max": _arg,
        "arg_min": _arg,
        "bilinear_interp": _interpolate,
        "cos_sim": _cos_sim,
        "cumsum": _renamed("cumsum", flatten=False),
        "data_norm": _data_norm,
        "expand": lambda draft: draft.add(
            "tile",
            {"X": draft.op.input("X")},
            draft.out,
            repeat_times=draft.attr("expand_times"),
        ),
        "fill_constant_batch_size_like": _fill_alike,
        "fill_zeros_like": _zeros,
        "flatten": _flatten,
        "flatten2": _flatten,
        "gather": _gather,
        "isfinite": _test_elements("isfinite_v2", "reduce_all"),
        "isinf": _test_elements("isinf_v2", "reduce_any"),
        "isnan": _test_elements("isnan_v2", "reduce_any"),
        "lookup_table": _lookup,
        "matmul": _matmul,
        "multiclass_nms": _suppress,
        "multiclass_nms2": _suppress,
        "nearest_interp": _interpolate,
        "norm": _norm,
        "one_hot": _one_hot,
        "pad2d": _pad2d,
        "softplus": _renamed("softplus", beta=1.0, threshold=20.0),
        "top_k": _renamed("top_k_v2", axis=-1, largest=True, sorted=True),
    }.items()
}
