"""Matching of true boxes with anchors, and the targets and hard negatives that follow from it.

Liu et al., SSD: single shot multibox detector, 2016.
"""

from __future__ import annotations

import numpy as np

from paddlelike.core import VarType
from paddlelike.errors import EnforceNotMet, ShapeError
from paddlelike.framework.opdef import (
    NO_LOD,
    Array,
    Attrs,
    Context,
    Float,
    Int,
    OpDef,
    Spec,
    String,
    register,
)
from paddlelike.ops.kernels.fast import boxes as fast
from paddlelike.ops.kernels.lod import make_lod, read_last_level
from paddlelike.ops.kernels.sorting import argsort_unstable

MANY = 130  # rows from which Paddle matches by another algorithm
NEAR = 1e-6  # the smallest distance that counts below that


@register
class BipartiteMatch(OpDef):
    """Match columns (anchors) of DistMat with rows (true boxes), the greatest distance first.

    DistMat is ``(K, M)`` with one sequence of rows per image. ColToRowMatchIndices ``(N, M)`` int32 is the
    row matched with each column, counted within the image, or -1. ColToRowMatchDist is the distance of the
    match, or 0. Each row is matched at most once. ``match_type`` "per_prediction" then matches every
    remaining column with the row of its greatest distance, if that is at least ``dist_threshold``.
    """

    type = "bipartite_match"
    inputs = ("DistMat",)
    outputs = ("ColToRowMatchIndices", "ColToRowMatchDist")
    attrs = {"match_type": String("bipartite"), "dist_threshold": Float(0.5)}

    @staticmethod
    def infer(matrix: Spec, *, match_type: str) -> tuple[Spec, Spec]:
        if len(matrix.shape) != 2:
            raise ShapeError(f"bipartite_match: DistMat has shape {matrix.shape}; it needs (rows, columns)")
        if match_type not in ("bipartite", "per_prediction"):
            raise ShapeError(
                f"bipartite_match: match_type is {match_type!r}", hint="take 'bipartite' or 'per_prediction'"
            )
        # As Paddle declares it; the first dim is the number of images.
        return Spec(matrix.shape, VarType.INT32, NO_LOD), Spec(matrix.shape, matrix.dtype, NO_LOD)

    @staticmethod
    def forward(
        ctx: Context, matrix: Array, *, match_type: str, dist_threshold: float
    ) -> tuple[Array, Array]:
        lod = ctx.lod("DistMat")
        starts = read_last_level(ctx, "DistMat", len(matrix)) if lod else np.array([0, len(matrix)])
        indices = np.full((len(starts) - 1, matrix.shape[1]), -1, np.int32)
        for index, low, high in zip(indices, starts[:-1], starts[1:], strict=True):
            _match_greedily(matrix[low:high], index)
            if match_type == "per_prediction":
                _match_rest(matrix[low:high], index, matrix.dtype.type(np.float32(dist_threshold)))
        matched = indices >= 0
        distances = np.zeros(indices.shape, matrix.dtype)
        image, column = np.nonzero(matched)
        distances[matched] = matrix[starts[image] + indices[matched], column]
        return indices, distances


def _match_greedily(matrix: Array, index: Array) -> None:
    """Write the row of each column into ``index``, by the greatest remaining distance until no column is
    left.

    Among equal distances the first column wins, then the first row.
    """
    if (kernel := fast.match_greedily.choose(matrix.size, matrix)) is not None:
        number = matrix.dtype.type
        least = np.nextafter(number(0), number(1)) if len(matrix) >= MANY else number(NEAR)
        kernel(matrix, least, index)
        return
    counts = matrix > 0 if len(matrix) >= MANY else matrix >= matrix.dtype.type(NEAR)
    left = np.where(counts, matrix, -np.inf).T.copy()  # a row per column, so that one is contiguous
    if not left.size:
        return
    rows = left.argmax(1)
    best = left[np.arange(len(left)), rows]
    for _ in range(len(matrix)):
        column = int(best.argmax())
        if best[column] == -np.inf:
            break
        row = rows[column]
        index[column] = row
        best[column] = -np.inf
        left[column] = -np.inf
        left[:, row] = -np.inf
        again = np.flatnonzero((rows == row) & (best > -np.inf))
        rows[again] = left[again].argmax(1)
        best[again] = left[again, rows[again]]


def _match_rest(matrix: Array, index: Array, threshold: np.generic) -> None:
    """Match each free column with the row of the greatest distance, if that reaches the threshold."""
    if not len(matrix):
        return
    counts = (matrix >= matrix.dtype.type(NEAR)) & (matrix >= threshold)
    distances = np.where(counts, matrix, -np.inf)
    rows = distances.argmax(0)
    found = (index == -1) & (distances[rows, np.arange(len(rows))] > -np.inf)
    index[found] = rows[found]


@register
class TargetAssign(OpDef):
    """``Out[i, j]``: the row of X that anchor j of image i is matched with, or ``mismatch_value``.

    X is ``(rows, P, K)`` with one sequence of rows per image; P is M, the number of anchors, or a divisor of
    M. MatchIndices ``(N, M)`` is the matched row, counted within the image, or -1. Out is ``(N, M, K)``.
    OutWeight ``(N, M, 1)`` is 1 for matched anchors and for the background anchors in NegIndices ``(rows,
    1)``, which has one sequence per image.
    """

    type = "target_assign"
    until = "1"
    inputs = ("X", "MatchIndices", "NegIndices?")
    outputs = ("Out", "OutWeight")
    attrs = {"mismatch_value": Int(0)}

    @staticmethod
    def infer(x: Spec, match: Spec, negative: Spec | None) -> tuple[Spec, Spec]:
        if len(x.shape) != 3 or len(match.shape) != 2:
            raise ShapeError(
                f"target_assign: X has shape {x.shape}, MatchIndices {match.shape}; they need "
                "(rows, P, K) and (N, M)"
            )
        dims = match.shape
        return Spec((*dims, x.shape[2]), x.dtype, NO_LOD), Spec((*dims, 1), VarType.FP32, NO_LOD)

    @staticmethod
    def forward(
        ctx: Context, x: Array, match: Array, negative: Array | None, *, mismatch_value: int
    ) -> tuple[Array, Array]:
        starts = read_last_level(ctx, "X", len(x))
        if len(starts) != len(match) + 1:
            raise EnforceNotMet(
                f"target_assign: X has {len(starts) - 1} sequences, MatchIndices {len(match)} rows; "
                "expected one sequence for each image"
            )
        out = np.full((*match.shape, x.shape[2]), mismatch_value, x.dtype)
        weight = np.zeros((*match.shape, 1), np.float32)
        image, anchor = np.nonzero(match > -1)
        out[image, anchor] = x[starts[image] + match[image, anchor], anchor % x.shape[1]]
        weight[image, anchor] = 1
        if negative is not None:
            counts = np.diff(read_last_level(ctx, "NegIndices", len(negative)))
            image, anchor = np.repeat(np.arange(len(counts)), counts), negative.reshape(-1)
            out[image, anchor] = mismatch_value
            weight[image, anchor] = 1
        return out, weight


class MiningAttrs(Attrs):
    """Attributes of mine_hard_examples."""

    neg_pos_ratio: float = Float(1.0)
    neg_dist_threshold: float = Float(0.5)
    sample_size: int = Int(0)
    mining_type: str = String("max_negative")


@register
class MineHardExamples(OpDef):
    """Choose the anchors with the greatest loss as examples of the background.

    ClsLoss, LocLoss, MatchDist are ``(N, M)``, MatchIndices ``(N, M)`` int32 with -1 for anchors without a
    match. NegIndices ``(rows, 1)`` int32 holds the chosen anchors in ascending order, one sequence for
    each image.

    "max_negative" considers anchors without a match whose distance is below ``neg_dist_threshold``, and takes
    ``neg_pos_ratio`` for each matched anchor. "hard_example" takes the ``sample_size`` anchors with the
    greatest sum of both losses, matched or not; matched anchors that are not taken are -1 in
    UpdatedMatchIndices.
    """

    type = "mine_hard_examples"
    inputs = ("ClsLoss", "LocLoss?", "MatchIndices", "MatchDist")
    outputs = ("NegIndices", "UpdatedMatchIndices")
    attrs = MiningAttrs.table()

    @staticmethod
    def infer(
        cls_loss: Spec, loc_loss: Spec | None, match: Spec, distance: Spec, *, attrs: MiningAttrs
    ) -> tuple[Spec, Spec]:
        given = {"ClsLoss": cls_loss, "LocLoss": loc_loss, "MatchIndices": match, "MatchDist": distance}
        for slot, spec in given.items():
            # Dims are compared when it runs: ssd_loss declares others while the program is built.
            if spec is not None and len(spec.shape) != 2:
                raise ShapeError(
                    f"mine_hard_examples: {slot} has shape {spec.shape}; it needs (images, anchors)"
                )
        _check_mining(attrs)
        return Spec((-1, 1), VarType.INT32, NO_LOD), Spec(match.shape, VarType.INT32, NO_LOD)

    @staticmethod
    def forward(
        ctx: Context,
        cls_loss: Array,
        loc_loss: Array | None,
        match: Array,
        distance: Array,
        *,
        attrs: MiningAttrs,
    ) -> tuple[Array, Array]:
        given = {"ClsLoss": cls_loss, "LocLoss": loc_loss, "MatchDist": distance}
        for slot, array in given.items():
            if array is not None and array.shape != match.shape:
                raise EnforceNotMet(
                    f"mine_hard_examples: {slot} has shape {array.shape}, MatchIndices {match.shape}; they "
                    "must be the same"
                )
        hard = attrs.mining_type == "hard_example"
        updated, chosen = match.copy(), []
        threshold = distance.dtype.type(np.float32(attrs.neg_dist_threshold))
        loss = cls_loss if loc_loss is None or not hard else cls_loss + loc_loss
        for i, index in enumerate(match):
            if hard:
                taken = _take_greatest(loss[i], np.arange(len(index)), attrs.sample_size)
                updated[i, np.setdiff1d(np.flatnonzero(index > -1), taken)] = -1
                chosen.append(taken[index[taken] <= -1])
            else:
                able = np.flatnonzero((index == -1) & (distance[i] < threshold))
                positive = np.float32(np.count_nonzero(index != -1))
                chosen.append(_take_greatest(loss[i], able, int(positive * np.float32(attrs.neg_pos_ratio))))
        ctx.set_lod("NegIndices", [make_lod(np.array([len(one) for one in chosen], np.int64))])
        return np.concatenate(chosen).astype(np.int32).reshape(-1, 1), updated


def _take_greatest(loss: Array, able: Array, count: int) -> Array:
    """Return the ``count`` anchors of ``able`` with the greatest loss, in ascending order."""
    if count >= len(able):
        return able
    ranked = loss[able].astype(np.float32)  # as Paddle compares them
    cut = np.partition(ranked, len(able) - count - 1)[len(able) - count - 1]  # the greatest that is left out
    taken = ranked > cut
    if np.count_nonzero(taken) != count:  # several have that loss: Paddle's unstable sort decides
        return np.sort(able[argsort_unstable(ranked)[:count]])
    return able[taken]


def _check_mining(attrs: MiningAttrs) -> None:
    op = "mine_hard_examples"
    if attrs.mining_type == "max_negative":
        if not attrs.neg_pos_ratio > 0:
            raise ShapeError(f"{op}: neg_pos_ratio is {attrs.neg_pos_ratio}; it must be above 0")
        if not 0 < attrs.neg_dist_threshold < 1:
            raise ShapeError(
                f"{op}: neg_dist_threshold is {attrs.neg_dist_threshold}; it must be between 0 and 1"
            )
    elif attrs.mining_type != "hard_example":
        raise ShapeError(
            f"{op}: mining_type is {attrs.mining_type!r}", hint="take 'max_negative' or 'hard_example'"
        )
    elif attrs.sample_size <= 0:
        raise ShapeError(f"{op}: sample_size is {attrs.sample_size}; it must be above 0")
