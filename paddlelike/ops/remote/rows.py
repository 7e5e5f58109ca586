"""Operators that distribute rows and ids over parameter servers, and join them again.

By blocks, server j keeps ``height_sections[j]`` consecutive rows (split_byref, split_selected_rows). By ids,
server j of n keeps the rows with ``id % n == j`` (split_ids, merge_ids).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from paddlelike.core import SelectedRows, VarType
from paddlelike.core.rows import unique_rows
from paddlelike.errors import EnforceNotMet, ShapeError
from paddlelike.framework.opdef import (
    Array,
    Context,
    GradOp,
    Int,
    Ints,
    Longs,
    OpDef,
    OpView,
    Spec,
    grad_name,
    register,
)


@register
class SplitByref(OpDef):
    """``Out``: X cut along its rows into ``sections``, or ``num`` equal parts; nothing is copied."""

    type = "split_byref"
    until = "1"
    outputs = ("Out*",)
    attrs = {"sections": Ints(()), "num": Int(0)}
    views = True

    @classmethod
    def make_grad(cls, op: OpView) -> list[GradOp]:
        return [_make_join("concat", cls, op)]

    @staticmethod
    def infer(x: Spec, *, num: int, sections: Sequence[int]) -> list[Spec]:
        return [Spec((rows, *x.shape[1:]), x.dtype) for rows in _find_heights(x.shape[0], num, sections)]

    @staticmethod
    def forward(x: Array, *, num: int, sections: Sequence[int]) -> list[Array]:
        ends = list(itertools.accumulate(_find_heights(len(x), num, sections)))
        if ends[-1] != len(x):
            raise ShapeError(
                f"split_byref: X has {len(x)} rows, but sections {list(sections)} need {ends[-1]}"
            )
        return [x[start:end] for start, end in itertools.pairwise([0, *ends])]


def _find_heights(rows: int, num: int, sections: Sequence[int]) -> list[int]:
    if num < 1 and not sections:
        raise ShapeError("split_byref: neither num nor sections is given")
    if not num:
        return list(sections)
    if rows >= 0 and rows % num:
        raise ShapeError(f"split_byref: {rows} rows cannot be cut into {num} equal parts")
    return [rows // num if rows >= 0 else -1] * num


@register
class SplitSelectedRows(OpDef):
    """``Out[j]``: the rows of X in the j-th of ``height_sections``, counted from the section's first row."""

    type = "split_selected_rows"
    until = "1"
    traceable = False
    outputs = ("Out*",)
    attrs = {"height_sections": Longs(())}

    @classmethod
    def make_grad(cls, op: OpView) -> list[GradOp]:
        return [_make_join("sum", cls, op)]

    @staticmethod
    def infer(x: Spec, *, height_sections: Sequence[int]) -> list[Spec]:
        return [Spec((h, *x.shape[1:]), x.dtype, 0, VarType.SELECTED_ROWS) for h in height_sections]

    @staticmethod
    def forward(x: SelectedRows, *, height_sections: Sequence[int]) -> list[SelectedRows]:
        rows, value = x.row_array, x.held_array
        assert value is not None
        starts = np.cumsum([0, *height_sections])
        outside = rows[(rows < 0) | (rows >= starts[-1])]
        if outside.size:
            raise EnforceNotMet(
                f"split_selected_rows: X holds row {int(outside[0])}, but the height_sections "
                f"{list(height_sections)} have {int(starts[-1])} rows together"
            )
        of = np.searchsorted(starts, rows, side="right") - 1
        return [
            SelectedRows(rows[of == j] - starts[j], height, value[of == j])
            for j, height in enumerate(height_sections)
        ]


@register
class SplitIds(OpDef):
    """``Out[j]``: the part of Ids that belongs to server j of ``len(Out)``.

    Tensors of ids give a tensor (n, 1) of the distinct ids, sorted. SelectedRows (a gradient) give
    SelectedRows whose rows keep their indices.
    """

    type = "split_ids"
    until = "1"
    traceable = False
    inputs = ("Ids*",)
    outputs = ("Out*",)
    attrs = {}

    @staticmethod
    def infer(ids: list[Spec]) -> None:
        """Leave the shape of ``Out`` unknown: the number of ids per server is only known at run time."""

    @staticmethod
    def forward(
        ids: list[Array | SelectedRows], *, wanted: tuple[tuple[bool, ...], ...]
    ) -> list[Array] | list[SelectedRows]:
        count = len(wanted[0])
        grads = [one for one in ids if isinstance(one, SelectedRows)]
        if not grads:
            unique = unique_rows(np.concatenate([np.asarray(one).reshape(-1) for one in ids]))
            owners = unique.astype(np.uint64) % count  # as Fluid: ids below 0 count as very large ones
            return [unique[owners == j].reshape(-1, 1) for j in range(count)]
        if len(ids) > 1:
            raise EnforceNotMet(
                f"split_ids: Ids hold {len(ids)} variables, SelectedRows are split one by one"
            )
        rows, value = grads[0].row_array, grads[0].held_array
        assert value is not None
        mine = [rows % count == j for j in range(count)]
        return [SelectedRows(rows[m], grads[0].height(), value[m]) for m in mine]


@register
class MergeIds(OpDef):
    """``Out[k][i]``: the row of id ``Ids[k][i]``, where ``X[j]`` are the rows of the ids ``Rows[j]``."""

    type = "merge_ids"
    until = "1"
    inputs = ("Ids*", "Rows*", "X*")
    outputs = ("Out*",)
    attrs = {}

    @staticmethod
    def infer(ids: list[Spec], rows: list[Spec], x: list[Spec]) -> None:
        """Leave ``Out`` as declared by the replaced lookup."""

    @staticmethod
    def forward(ctx: Context, ids: list[Array], rows: list[Array], x: list[Array]) -> list[Array]:
        known = np.concatenate([one.reshape(-1) for one in rows])
        values = np.concatenate(x)
        order = np.argsort(known, kind="stable")
        outs = []
        for index, one in enumerate(ids):
            asked = one.reshape(-1)
            at = order.take(np.searchsorted(known, asked, sorter=order), mode="clip") if order.size else asked
            missing = asked[known[at] != asked] if order.size else asked
            if missing.size:
                raise EnforceNotMet(f"merge_ids: Ids hold {int(missing[0])}, which none of Rows holds")
            shape = one.shape[:-1] if one.shape[-1] == 1 else one.shape
            outs.append(values[at].reshape(*shape, values.shape[1]))
            ctx.set_lod("Out", ctx.lod("Ids", index), index)
        return outs


@register
class RefByTrainerId(OpDef):
    """``Out = X[TrainerId]``."""

    type = "ref_by_trainer_id"
    until = "1"
    traceable = False
    inputs = ("X*", "TrainerId")
    attrs = {}
    views = True

    @staticmethod
    def infer(x: list[Spec], trainer_id: Spec) -> Spec:
        return Spec(x[0].shape, x[0].dtype)

    @staticmethod
    def forward(x: list[Array], trainer_id: Array) -> Array:
        index = int(trainer_id.reshape(-1)[0])
        if not 0 <= index < len(x):
            raise EnforceNotMet(f"ref_by_trainer_id: TrainerId is {index}, X holds {len(x)} variables")
        return x[index]


def _make_join(type_: str, cls: type[OpDef], op: OpView) -> GradOp:
    """Return the operator that joins the gradients of the parts."""
    d_out = [grad_name(name) for name in op.output("Out")]
    d_x = [grad_name(name) for name in op.input("X")]
    attrs = {name: op.attrs[name] for name in cls.attrs if name in op.attrs}
    return GradOp(type_, {"X": d_out}, {"Out": d_x}, attrs)
