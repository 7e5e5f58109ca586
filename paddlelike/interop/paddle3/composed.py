"""Operators of Paddle 3 that become several operators of a ProgramDesc."""

from __future__ import annotations

import math
from typing import Any, Final

from paddlelike.core import VarType
from paddlelike.errors import FormatError
from paddlelike.interop.paddle3.block_reader import Block, Constant, Read
from paddlelike.interop.paddle3.json_values import Type, get, get_operand, read_attributes
from paddlelike.interop.paddle3.row_reader import read_row


class _Call:
    """An operator that is being read, with its operands, attributes and first result."""

    def __init__(self, block: Block, op: dict[str, Any]) -> None:
        self.block, self.attrs = block, read_attributes(op)
        self._nodes = get(op, "I", list)
        self.out, *self.rest = [name for node in get(op, "O", list) for name in block.make_results(node)]

    def read(self, index: int) -> str:
        """Return the variable of an operand."""
        return self.block.find_one(get(self._nodes, index, dict))

    def has(self, index: int) -> bool:
        return index < len(self._nodes) and self.block.find(self._nodes[index]) is not None

    def type(self, name: str) -> Type:
        return self.block.find_type(name)

    def make(self, type_: str, inputs: str | dict[str, Any], out: str | Type, **attrs: Any) -> str:
        """Append an operator. Return its result: the given variable, or a new one of the given type.

        A single input belongs to the slot X.
        """
        inputs = {"X": inputs} if isinstance(inputs, str) else inputs
        name = out if isinstance(out, str) else self.block.declare_new(out)
        given = {slot: [one] if isinstance(one, str) else one for slot, one in inputs.items()}
        self.block.emit(type_, given, {"Y" if type_ == "stack" else "Out": [name]}, attrs)
        return name

    def join(self, kind: str, x: str, y: str, out: str | Type) -> str:
        """Append an operator of two variables that broadcast from the last dim: ``"add"``."""
        return self.make(f"elementwise_{kind}", {"X": x, "Y": y}, out, axis=-1)

    def scale(self, name: str, factor: float) -> str:
        return self.make("scale", name, self.type(name), scale=factor, bias=0.0, bias_after_scale=True)

    def cast(self, name: str, out: str | Type) -> str:
        kinds = self.type(name).dtype, (self.type(out) if isinstance(out, str) else out).dtype
        return self.make("cast", name, out, in_dtype=int(kinds[0]), out_dtype=int(kinds[1]))

    def refuse(self, why: str) -> None:
        raise FormatError(f"operator {self.block.kind!r} of Paddle 3 {why}, which is not supported")


def _swiglu(call: _Call) -> None:
    """Return silu(x) * y; without y, the last dim of x holds both."""
    x, kind = call.read(0), call.type(call.out)
    if call.has(1):
        y = call.read(1)
    else:
        parts = [call.block.declare_new(kind) for _ in range(2)]
        call.block.emit(
            "split", {"X": [x]}, {"Out": parts}, {"axis": len(kind.shape) - 1, "num": 2, "sections": []}
        )
        x, y = parts
    call.join("mul", call.make("silu", x, kind), y, call.out)


def _fill_alike(call: _Call) -> None:
    """Return zeros where Paddle 3 leaves memory uninitialized."""
    call.make("fill_any_like", call.read(0), call.out, value=0.0, dtype=call.attrs["dtype"])


def _masked_softmax(call: _Call) -> None:
    x, mask = call.read(0), call.read(1)
    total = call.join("add", x, mask, call.type(x))
    call.make("softmax", total, call.out, axis=-1)


def _fill_masked(call: _Call) -> None:
    names, kind = [call.read(index) for index in (1, 2, 0)], call.type(call.read(0))
    mask, value, x = (
        name
        if call.type(name).shape == kind.shape
        else call.make(
            "expand_as_v2", {"X": name, "Y": names[2]}, kind._replace(dtype=call.type(name).dtype),
            target_shape=kind.shape,
        )
        for name in names
    )  # fmt: skip
    call.make("where", {"Condition": mask, "X": value, "Y": x}, call.out)


def _add_products(call: _Call) -> None:
    product = call.make("bmm", {"X": call.read(1), "Y": call.read(2)}, call.type(call.out))
    terms = call.scale(call.read(0), call.attrs["beta"]), call.scale(product, call.attrs["alpha"])
    call.join("add", terms[1], terms[0], call.out)


def _reduce_as(call: _Call) -> None:
    shape, wanted = call.type(call.read(0)).shape, call.type(call.out).shape
    lead = len(shape) - len(wanted)
    dims = [i for i, size in enumerate(shape) if i < lead or (wanted[i - lead] == 1 and size != 1)]
    if -1 in wanted or lead < 0:
        call.refuse(f"sums to {wanted}")
    kind = call.type(call.read(0))
    if dims:
        attrs = {
            "dim": dims,
            "keep_dim": False,
            "reduce_all": len(dims) == len(shape),
            "in_dtype": -1,
            "out_dtype": -1,
        }
        total = call.make(
            "reduce_sum",
            call.read(0),
            kind._replace(shape=[n for i, n in enumerate(shape) if i not in dims]),
            **attrs,
        )
    else:
        total = call.read(0)
    call.make("reshape2", total, call.out, shape=wanted)


def _pool_norms(call: _Call) -> None:
    """Compute the p-norm of each window, from the mean of powers."""
    attrs = dict(call.attrs)
    norm, ksize = attrs.pop("norm_type"), attrs.pop("kernel_size")
    is_plain = not attrs["ceil_mode"] and len(attrs["paddings"]) == len(ksize)
    if (
        attrs["adaptive"]
        or attrs["global_pooling"]
        or not (is_plain or attrs["padding_algorithm"] == "EXPLICIT")
    ):
        call.refuse("pools uneven windows")
    attrs |= {"pooling_type": "avg", "exclusive": False, "ksize": ksize}
    kind = call.type(call.out)
    powers = call.make("pow", call.read(0), call.type(call.read(0)), factor=norm)
    if not is_plain:  # zeros around: Paddle's own pools have smaller windows at the edges
        pads = attrs["paddings"]
        pads = [pad for one in pads for pad in (one, one)] if len(pads) == len(ksize) else list(pads)
        more = [attrs["ceil_mode"] * (step - 1) for step in attrs["strides"]]
        pads[1::2] = [pad + one for pad, one in zip(pads[1::2], more, strict=True)]
        pads = [0, 0, *pads, 0, 0] if attrs["data_format"].endswith("C") else [0, 0, 0, 0, *pads]
        wide = call.type(powers)
        sums = zip(wide.shape, pads[::2], pads[1::2], strict=True)
        wide = wide._replace(shape=[size if size < 0 else size + low + high for size, low, high in sums])
        powers = call.make("pad", powers, wide, paddings=pads, pad_value=0.0)
        attrs |= {"ceil_mode": False, "paddings": [0] * len(ksize)}
    mean = call.make(
        "pool2d", powers, kind, **{name: value for name, value in attrs.items() if value is not None}
    )
    call.make("pow", {"X": call.scale(mean, float(math.prod(ksize)))}, call.out, factor=1 / norm)


def _count_numbers(call: _Call) -> None:
    """Count numbers. The last index of a computed length is counted once more, with weight 0."""
    wide = Type(VarType.LOD_TENSOR, VarType.FP64, [-1])
    x, kind = call.read(0), call.type(call.read(0))
    if call.has(1):
        weights = call.cast(call.read(1), wide)
    else:
        weights = call.make("fill_any_like", x, wide, value=1.0, dtype=int(VarType.FP64))
    none = call.make(
        "fill_constant", {}, wide._replace(shape=[1]), shape=[1], value=0.0, dtype=int(wide.dtype)
    )
    length = call.cast(call.read(2), kind._replace(shape=[1]))
    last = call.make("scale", length, kind._replace(shape=[1]), scale=1.0, bias=-1.0)
    last = call.make("reshape2", last, kind._replace(shape=[1]), shape=[1])
    xs, all_weights = (
        call.make("concat", {"X": pair}, call.type(pair[0])._replace(shape=[-1]), axis=0)
        for pair in ([x, last], [weights, none])
    )
    counts = call.make("bincount", {"X": xs, "Weights": all_weights}, wide, minlength=0)
    call.cast(counts, call.out)


def _read_counts(block: Block, op: dict[str, Any]) -> None:
    length = block.find(get_operand(op, 2))
    if isinstance(length, Constant):
        read_row(block, op)
    else:
        _count_numbers(_Call(block, op))


def _weigh_entropy(call: _Call) -> None:
    """Return the cross entropy with weighted positive labels: ``x (1 - label) + w softplus(-x)``."""
    if not call.has(2):
        call.block.emit(
            "sigmoid_cross_entropy_with_logits", {"X": [call.read(0)], "Label": [call.read(1)]},
            {"Out": [call.out]}, call.attrs,
        )  # fmt: skip
        return
    if call.attrs["normalize"] or call.attrs["ignore_index"] != -100:
        call.refuse("has weights, and ignores labels")
    x, kind = call.read(0), call.type(call.out)
    soft = call.make("softplus", {"X": call.scale(x, -1.0)}, kind, beta=1.0, threshold=20.0)
    positive = call.join("mul", soft, call.read(2), kind)
    labelled = call.join("mul", x, call.read(1), kind)
    rest = call.join("sub", x, labelled, kind)
    call.join("add", rest, positive, call.out)


def _draw(call: _Call, kind: Type, low: float) -> str:
    """Return uniform numbers from ``low`` to 1, one for each element of the first operand."""
    sizes = Type(VarType.LOD_TENSOR, VarType.INT32, [len(kind.shape)])
    shape = call.block.declare_new(sizes)
    call.block.emit("shape", {"Input": [call.read(0)]}, {"Out": [shape]}, {})
    attrs = {"min": low, "max": 1.0, "seed": 0, "dtype": int(kind.dtype), "shape": []}
    return call.make("uniform_random", {"ShapeTensor": shape}, kind, **attrs)


def _draw_truth(call: _Call) -> None:
    """Draw 1 with the probability in the operand, otherwise 0 (Bernoulli)."""
    kind = call.type(call.read(0))
    bools = kind._replace(dtype=VarType.BOOL)
    drawn = _draw(call, kind, 0.0)
    hit = call.make("less_than", {"X": drawn, "Y": call.read(0)}, bools, axis=-1)
    call.make("cast", hit, call.out, in_dtype=int(VarType.BOOL), out_dtype=int(kind.dtype))


def _draw_softmax(call: _Call) -> None:
    """Return the softmax of the operand plus Gumbel noise ``-ln(-ln u)``, as one-hot rows if ``hard``."""
    kind, axis = call.type(call.read(0)), call.attrs["axis"]
    noise = _draw(call, kind, 1e-20)
    for _ in range(2):
        noise = call.scale(call.make("log", noise, kind), -1.0)
    total = call.join("add", call.read(0), noise, kind)
    total = call.scale(total, 1 / call.attrs["temperature"])
    if not call.attrs["hard"]:
        call.make("softmax", total, call.out, axis=axis)
        return
    axis %= len(kind.shape)
    shape = [size for at, size in enumerate(kind.shape) if at != axis]
    if kind.shape[axis] < 1:
        call.refuse(f"takes hard samples along axis {axis} of unknown size")
    indices = Type(VarType.LOD_TENSOR, VarType.INT64, shape)
    attrs = {"axis": axis, "keepdims": False, "flatten": False, "dtype": int(VarType.INT64)}
    place = call.make("arg_max", total, indices, **attrs)
    last = axis == len(shape)
    hot = call.out if last else kind._replace(shape=[*shape, kind.shape[axis]])
    hot = call.make("one_hot_v2", place, hot, depth=kind.shape[axis], dtype=int(kind.dtype))
    if not last:
        order = [*range(axis), len(shape), *range(axis, len(shape))]
        call.make("transpose2", hot, call.out, axis=order)


def _draw_between(call: _Call) -> None:
    """Draw integers from ``from`` up to ``to``, exclusive, in the type of the operand."""
    kind, low = call.type(call.read(0)), call.attrs["from"]
    wide = kind._replace(dtype=VarType.FP32)
    attrs = {"scale": float(call.attrs["to"] - low), "bias": 0.0, "bias_after_scale": True}
    drawn = call.make("scale", {"X": _draw(call, wide, 0.0)}, wide, **attrs)
    whole = call.make("floor", drawn, wide)
    attrs |= {"scale": 1.0, "bias": float(low)}
    shifted = call.make("scale", whole, wide, **attrs)
    call.make("cast", shifted, call.out, in_dtype=int(VarType.FP32), out_dtype=int(kind.dtype))


def _reduce_loss(call: _Call) -> None:
    """Return the sum (0), the mean (1), or the operand itself, by the attribute ``reduction``."""
    kinds = {0: "reduce_sum", 1: "reduce_mean"}
    reduced = kinds.get(call.attrs["reduction"])
    if reduced is None:
        call.make("assign", call.read(0), call.out)
    else:
        attrs = {"dim": [0], "keep_dim": False, "reduce_all": True, "in_dtype": -1, "out_dtype": -1}
        call.make(reduced, call.read(0), call.out, **attrs)


def _norm_residual(call: _Call) -> None:
    """Return the layer normalization of ``x + bias + residual_alpha * residual``, and that sum."""
    if call.attrs["quant_scale"] > 0:
        call.refuse("quantizes its normalized output")
    total, kind = call.read(0), call.type(call.read(0))
    terms = [call.read(1)] if call.has(1) else []
    if call.has(2):
        terms.append(call.scale(call.read(2), call.attrs["residual_alpha"]))
    for term in terms:
        total = call.join("add", total, term, kind)
    given = {"Scale": 3, "Bias": 4}
    inputs = {"X": [total]} | {slot: [call.read(at)] for slot, at in given.items() if call.has(at)}
    residual, mean, deviation = call.rest
    variance = call.block.declare_new(call.type(deviation))
    attrs = {name: call.attrs[name] for name in ("epsilon", "begin_norm_axis")}
    outputs = {"Y": [call.out], "Mean": [mean], "Variance": [variance]}
    call.block.emit("layer_norm", inputs, outputs, attrs)
    shifted = {"scale": 1.0, "bias": attrs["epsilon"], "bias_after_scale": True}
    call.make("rsqrt", {"X": call.make("scale", variance, call.type(deviation), **shifted)}, deviation)
    call.make("assign", total, residual)


def _read(compose: Any) -> Read:
    return lambda block, op: compose(_Call(block, op))


COMPOSED: Final[dict[str, Read]] = {
    "baddbmm": _read(_add_products),
    "bernoulli": _read(_draw_truth),
    "bincount": _read_counts,
    "empty_like": _read(_fill_alike),
    "fused_bias_residual_layernorm": _read(_norm_residual),
    "fused_softmax_mask": _read(_masked_softmax),
    "identity_loss": _read(_reduce_loss),
    "gumbel_softmax": _read(_draw_softmax),
    "lp_pool2d": _read(_pool_norms),
    "masked_fill": _read(_fill_masked),
    "random": _read(_draw_between),
    "random_": _read(_draw_between),
    "reduce_as": _read(_reduce_as),
    "sigmoid_cross_entropy_with_logits": _read(_weigh_entropy),
    "swiglu": _read(_swiglu),
}
