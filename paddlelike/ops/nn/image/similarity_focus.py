"""similarity_focus: a mask of the greatest similarities, one for each row and column.

He and Lin, Pairwise word interaction modeling with deep neural networks for semantic similarity, 2016.
"""

from __future__ import annotations

import numpy as np

from paddlelike.errors import ShapeError
from paddlelike.framework.opdef import Array, Int, Ints, OpDef, Spec, register
from paddlelike.ops.kernels.sorting import argsort_unstable


@register
class SimilarityFocus(OpDef):
    """``Out``: 1 at the chosen positions, along all of ``axis``, else 0; of the shape of X.

    X ``(N, A, B, C)``. In each matrix ``X[n]`` at one of ``indexes`` along ``axis`` (1, 2 or 3) the greatest
    numbers are chosen, one in each row and column: a number is left out when its row or column has one.
    """

    type = "similarity_focus"
    lod = "X"
    attrs = {"axis": Int(), "indexes": Ints()}

    @staticmethod
    def infer(x: Spec, *, axis: int, indexes: list[int]) -> Spec:
        if len(x.shape) != 4 or axis not in (1, 2, 3) or not indexes:
            raise ShapeError(
                f"similarity_focus: X has shape {x.shape}, axis is {axis} and indexes {list(indexes)}; "
                "expected 4 dims, an axis of 1, 2 or 3, and an index or more"
            )
        if x.shape[axis] >= 0 and not all(0 <= i < x.shape[axis] for i in indexes):
            raise ShapeError(
                f"similarity_focus: indexes is {list(indexes)}, dim {axis} of X {x.shape} has {x.shape[axis]}"
            )
        return Spec(x.shape, x.dtype)

    @staticmethod
    def forward(x: Array, *, axis: int, indexes: list[int]) -> Array:
        out = np.zeros_like(x)
        for image, mask in zip(np.moveaxis(x, axis, 1), np.moveaxis(out, axis, 1), strict=True):
            for index in indexes:
                rows, columns = _choose(image[index])
                mask[:, rows, columns] = 1
        return out


def _choose(matrix: Array) -> tuple[list[int], list[int]]:
    """Return the rows and columns of the greatest numbers; no two share a row or column."""
    height, width = matrix.shape
    rows: list[int] = []
    columns: list[int] = []
    free_rows, free_columns = [True] * height, [True] * width
    for place in argsort_unstable(matrix.reshape(-1)).tolist():
        row, column = divmod(place, width)
        if free_rows[row] and free_columns[column]:
            free_rows[row] = free_columns[column] = False
            rows.append(row)
            columns.append(column)
            if len(rows) == min(height, width):
                break
    return rows, columns
