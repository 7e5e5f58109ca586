"""Cross entropies: cross_entropy, cross_entropy2, softmax_with_cross_entropy.

A hard label is the index of a class. Elements with the label ``ignore_index`` have loss 0 and no gradient
(one quirk excepted). A soft label is a distribution over the classes.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from paddlelike.errors import EnforceNotMet, ShapeError
from paddlelike.framework import follows_fluid
from paddlelike.framework.opdef import (
    OWN,
    Array,
    Bool,
    Gradient,
    GradOp,
    Int,
    Kernel,
    OpDef,
    OpView,
    Spec,
    grad_names,
    register,
    spares_first,
)
from paddlelike.ops.kernels.nn.softmax import LOWEST, softmax_rows
from paddlelike.ops.kernels.special import keep_number
from paddlelike.ops.operands import can_be_equal, normalize_axis

_LARGEST = 1e20  # Paddle's number for an infinite logarithm


def flatten_labels(
    op: str, label: Array, classes: int, ignore_index: int | None = None
) -> tuple[Array, Array | None]:
    """Return the labels as one row, with ignored labels replaced by 0, and a mask of these (None means no
    label is ignored).

    Raises EnforceNotMet when a label is not a class or not an integer.
    """
    if label.dtype.kind == "f":
        raise EnforceNotMet(
            f"{op}: Label holds {label.dtype}, expected int64",
            hint="declare and feed the labels as int64; probabilities need soft_label=True",
        )
    flat = label.reshape(-1)
    if flat.size == 0 or _are_classes(flat, classes, ignore_index):
        return flat, None
    ignored = None
    if ignore_index is not None and (flat == ignore_index).any():
        ignored = flat == ignore_index
        flat = np.where(ignored, 0, flat)
    if flat.min() < 0 or flat.max() >= classes:
        wrong = int(np.flatnonzero((flat < 0) | (flat >= classes))[0])
        raise EnforceNotMet(
            f"{op}: Label holds {int(flat[wrong])} (element {wrong} of {flat.size}), "
            f"but there are {classes} classes",
            hint=f"labels go from 0 to {classes - 1}"
            + ("" if ignore_index is None else f"; only {ignore_index} is left out"),
        )
    return flat, ignored


def _are_classes(labels: Array, classes: int, ignore_index: int | None) -> bool:
    """Return whether all labels are certainly valid classes and not ignored, by one call of numpy."""
    if ignore_index is not None and 0 <= ignore_index < classes:
        return False
    if type(labels) is not np.ndarray or labels.dtype != np.int64:
        return False
    return bool(np.maximum.reduce(labels.view(np.uint64)) < classes)  # negative ones are large there


def check_label(op: str, x: Spec, label: Spec, *, soft: bool, may_drop: bool = True) -> None:
    """Raise ShapeError unless Label has the dims of X, except the last.

    If it is hard, its last dim is 1 or (with ``may_drop``) absent.
    """
    last = x.shape[-1] if soft else 1
    fits = [(*x.shape[:-1], last)] + ([x.shape[:-1]] if may_drop and not soft else [])
    if not any(len(label.shape) == len(want) and all(map(can_be_equal, label.shape, want)) for want in fits):
        raise ShapeError(
            f"{op}: Label has shape {label.shape} and X {x.shape}; "
            f"expected Label of shape {' or '.join(map(str, fits))}",
            hint=None if soft else "a distribution per element needs soft_label=True",
        )


def _negative_log(x: Array) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        y = np.log(x)
    np.negative(y, out=y)
    return np.minimum(y, keep_number(_LARGEST, y.dtype), out=y)


def _divide(x: Array, y: Array) -> Array:
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return x / y


def _place_labels(labels: Array, classes: int) -> Array:
    """Return the flat indices of the elements at the labels, one in each row of a matrix."""
    places = np.arange(0, len(labels) * classes, classes)
    return np.add(places, labels, out=places, casting="unsafe")


@register
class CrossEntropy(OpDef):
    """``Y = -log X[Label]``, or ``-sum(Label * log X)`` for soft labels; X are probabilities."""

    type = "cross_entropy"
    keeps_dtype = True
    pairs_rows = True
    by_row = True
    inputs = ("X", "Label")
    outputs = ("Y",)
    attrs = {"soft_label": Bool(False), "ignore_index": Int(-100)}
    lod = "X"
    gradient = Gradient("Y@GRAD", "X", "Label", outputs=("X@GRAD",), lod=OWN)

    @staticmethod
    def infer(x: Spec, label: Spec, *, soft_label: bool) -> Spec:
        check_label("cross_entropy", x, label, soft=soft_label)
        same_rank = len(label.shape) == len(x.shape)
        return Spec((*label.shape[:-1], 1) if same_rank else label.shape, x.dtype)

    @staticmethod
    def forward(x: Array, label: Array, *, soft_label: bool, ignore_index: int) -> Array:
        if soft_label:
            return (label * _negative_log(x)).sum(-1, keepdims=True)
        flat, ignored = flatten_labels("cross_entropy", label, x.shape[-1], ignore_index)
        y = _negative_log(x.reshape(-1)[_place_labels(flat, x.shape[-1])])
        if ignored is not None:
            y[ignored] = 0
        return y.reshape(label.shape)

    @staticmethod
    def backward(d_y: Array, x: Array, label: Array, *, soft_label: bool, ignore_index: int) -> Array:
        if soft_label:
            return -_divide(d_y * label, x)
        flat, ignored = flatten_labels("cross_entropy", label, x.shape[-1], ignore_index)
        picked = x.reshape(-1)[_place_labels(flat, x.shape[-1])]
        return _scatter_labels(-_divide(d_y.reshape(-1), picked), flat, ignored, x.shape)


def _scatter_labels(values: Array, labels: Array, ignored: Array | None, shape: Sequence[int]) -> Array:
    """Return zeros of ``shape`` with ``values`` at the labels that are not ignored."""
    out = np.zeros(len(labels) * shape[-1], values.dtype)
    out[_place_labels(labels, shape[-1])] = values if ignored is None else np.where(ignored, 0, values)
    return out.reshape(shape)


@register
class CrossEntropy2(OpDef):
    """``Y = -log X[Label]``; MatchX is ``X[Label]``, XShape has the shape ``[*X.shape, 0]``."""

    type = "cross_entropy2"
    keeps_dtype = True
    pairs_rows = True
    by_row = True
    inputs = ("X", "Label")
    outputs = ("Y", "XShape", "MatchX")
    attrs = {"ignore_index": Int(-100)}
    lod = {"Y": "X", "XShape": "X"}
    gradient = Gradient("Y@GRAD", "MatchX", "Label", "XShape", outputs=("X@GRAD",), lod=OWN)

    @classmethod
    def make_grad(cls, op: OpView) -> list[GradOp]:
        inputs = {slot: op.output(slot) for slot in ("MatchX", "XShape")}
        inputs |= {"Label": op.input("Label"), "Y@GRAD": grad_names(op.output("Y"))}
        outputs = {"X@GRAD": grad_names(op.input("X"))}
        return [GradOp(CrossEntropyGrad2.type, inputs, outputs, dict(op.attrs))]

    @staticmethod
    def infer(x: Spec, label: Spec) -> tuple[Spec, Spec, Spec]:
        y = CrossEntropy.infer(x, label, soft_label=False)
        x_shape = Spec((*x.shape, 0), x.dtype, x.lod_level)
        return y, x_shape, Spec((*x.shape[:-1], 1), x.dtype)

    @staticmethod
    def forward(x: Array, label: Array, *, ignore_index: int) -> tuple[Array, Array, Array]:
        flat, ignored = flatten_labels("cross_entropy2", label, x.shape[-1], ignore_index)
        match = x.reshape(-1)[_place_labels(flat, x.shape[-1])]
        y = _negative_log(match)
        if ignored is not None:
            y[ignored] = 0
            match[ignored] = 0
        x_shape = np.empty((*x.shape, 0), x.dtype)
        return y.reshape(label.shape), x_shape, match.reshape(*x.shape[:-1], 1)


@register
class CrossEntropyGrad2(OpDef):
    """Gradient of ``cross_entropy2``: ``dX[Label] = -dY / MatchX``."""

    type = "cross_entropy_grad2"
    by_row = True
    inputs = ("Y@GRAD", "MatchX", "Label", "XShape")
    outputs = ("X@GRAD",)
    attrs = CrossEntropy2.attrs
    forward_of = CrossEntropy2
    lod = "XShape"

    @staticmethod
    def forward(d_y: Array, match: Array, label: Array, x_shape: Array, *, ignore_index: int) -> Array:
        shape = x_shape.shape[:-1]
        flat, ignored = flatten_labels("cross_entropy2", label, shape[-1], ignore_index)
        values = -_divide(d_y.reshape(-1), match.reshape(-1))
        return _scatter_labels(values, flat, ignored, shape)


@register
class SoftmaxWithCrossEntropy(OpDef):
    """``Loss``: the cross entropy of ``Softmax = softmax(Logits)`` and Label, along ``axis``.

    As in Paddle, logits more than 64 below the largest count as 64 below it. An ignored element costs 0; its
    gradient is the quirk ``ignored_labels``.
    """

    type = "softmax_with_cross_entropy"
    pairs_rows = True
    by_row = spares_first("axis")
    inputs = ("Logits", "Label")
    outputs = ("Softmax", "Loss")
    attrs = {
        "soft_label": Bool(False),
        "numeric_stable_mode": Bool(True),
        "ignore_index": Int(-100),
        "axis": Int(-1),
    }
    lod = "Logits"
    gradient = Gradient("Loss@GRAD", "Softmax", "Label", outputs=("Logits@GRAD",))

    @staticmethod
    def infer(logits: Spec, label: Spec, *, soft_label: bool, axis: int) -> tuple[Spec, Spec]:
        op = "softmax_with_cross_entropy"
        axis = normalize_axis(op, axis, len(logits.shape))
        last = Spec((*_drop_axis(logits.shape, axis), logits.shape[axis]), logits.dtype)
        if len(label.shape) != len(logits.shape):
            raise ShapeError(
                f"{op}: Label has shape {label.shape} and Logits {logits.shape}; "
                f"expected equally many dims, and {'equal sizes' if soft_label else 'size 1'} of dim {axis}"
            )
        label_last = Spec((*_drop_axis(label.shape, axis), label.shape[axis]), label.dtype)
        check_label(op, last, label_last, soft=soft_label, may_drop=False)
        loss = (*logits.shape[:axis], 1, *logits.shape[axis + 1 :])
        return logits._replace(lod_level=None), Spec(loss, logits.dtype)

    @staticmethod
    def forward(
        logits: Array, label: Array, *, soft_label: bool, ignore_index: int, axis: int
    ) -> tuple[Array, Array]:
        if axis in (-1, logits.ndim - 1):
            softmax = softmax_rows(logits)
        else:
            softmax = np.subtract(logits, logits.max(axis, keepdims=True))
            np.maximum(softmax, LOWEST, out=softmax)
            np.exp(softmax, out=softmax)
            softmax /= softmax.sum(axis, keepdims=True)
        if soft_label:
            return softmax, -(label * np.log(softmax)).sum(axis, keepdims=True)
        last, label = _move_axis_last(softmax, axis), _move_axis_last(label, axis)
        loss = CrossEntropy.forward(last, label, soft_label=False, ignore_index=ignore_index)
        return softmax, _move_axis_back(loss, axis)

    @staticmethod
    def backward(
        d_loss: Array, softmax: Array, label: Array, *, soft_label: bool, ignore_index: int, axis: int
    ) -> Array:
        if soft_label:
            return (softmax - label) * d_loss
        last = _move_axis_last(label, axis)
        classes = softmax.shape[axis]
        d_last = _move_axis_last(d_loss, axis).reshape(-1)
        flat, d_last, d_label = _scale_gradient(last, classes, ignore_index, d_last)
        rows = _move_axis_last(softmax, axis).reshape(-1, classes)
        d_logits = np.multiply(rows, d_last[:, None], order="C")
        d_logits.reshape(-1)[_place_labels(flat, classes)] -= d_label
        return _move_axis_back(d_logits.reshape(*last.shape[:-1], classes), axis)

    @classmethod
    def make_overwriting_grad_kernel(cls, keywords: Mapping[str, Any]) -> Kernel | None:
        if keywords["soft_label"]:
            return None
        return functools.partial(_write_gradient, keywords["ignore_index"], keywords["axis"])


def _write_gradient(
    ignore_index: int, axis: int, out: Array, d_loss: Array, softmax: Array, label: Array
) -> bool:
    """Write the gradient of the logits over the softmax, with classes along the last axis."""
    in_rows = axis in (-1, softmax.ndim - 1) and softmax.flags.c_contiguous
    if out is not softmax or not in_rows or d_loss.dtype is not softmax.dtype:
        return False
    classes = softmax.shape[-1]
    flat, scale, d_label = _scale_gradient(label, classes, ignore_index, d_loss.reshape(-1))
    rows = softmax.reshape(-1, classes)
    np.multiply(rows, scale[:, None], out=rows)
    rows.reshape(-1)[_place_labels(flat, classes)] -= d_label
    return True


def _scale_gradient(
    label: Array, classes: int, ignore_index: int, d_loss: Array
) -> tuple[Array, Array, Array]:
    """Return the labels, the factor of each row's softmax, and the amount to subtract at its label.

    Fluid's gradient kernel also subtracts at ignored labels (see ``ignored_labels``). With a label that is
    not a class it writes outside of the row; here such a label is ignored.
    """
    flat, ignored = flatten_labels("softmax_with_cross_entropy", label, classes, ignore_index)
    if ignored is None:
        return flat, d_loss, d_loss
    counted = np.where(ignored, 0, d_loss).astype(d_loss.dtype, copy=False)
    if not follows_fluid("ignored_labels"):
        return flat, counted, counted
    if 0 <= ignore_index < classes:
        return label.reshape(-1), d_loss, d_loss
    return flat, d_loss, counted


def _move_axis_last(x: Array, axis: int) -> Array:
    return x if axis in (-1, x.ndim - 1) else np.moveaxis(x, axis, -1)


def _move_axis_back(x: Array, axis: int) -> Array:
    return x if axis in (-1, x.ndim - 1) else np.moveaxis(x, -1, axis)


def _drop_axis(shape: Sequence[int], axis: int) -> tuple[int, ...]:
    return (*shape[:axis], *shape[axis + 1 :])
