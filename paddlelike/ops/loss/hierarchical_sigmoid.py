"""The softmax over very many classes as a path through a binary tree (Morin & Bengio 2005)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from paddlelike.core import SelectedRows, VarType
from paddlelike.core.rows import sum_rows
from paddlelike.errors import EnforceNotMet, ShapeError
from paddlelike.framework.opdef import OWN, Array, Bool, Gradient, Int, Longs, OpDef, Spec, Strings, register
from paddlelike.ops.kernels.linalg import place_rows, sum_multiples


class _Paths(NamedTuple):
    """The inner nodes on the path to each row's class, and the branch taken at each; (N, depth)."""

    nodes: Array
    right: Array
    on_path: Array


def _find_paths(label: Array, table: Array | None, code: Array | None, num_classes: int) -> _Paths:
    """Return the given paths, or the paths of a complete tree whose leaves are the classes."""
    if table is not None and code is not None:
        on_path = np.logical_and.accumulate(table >= 0, axis=1)
        return _Paths(np.where(on_path, table, 0), on_path & (code != 0), on_path)
    label = label.reshape(-1, 1)
    wrong = label[(label < 0) | (label >= num_classes)]
    if wrong.size:
        raise EnforceNotMet(
            f"hierarchical_sigmoid: Label holds {int(wrong[0])}, there are {num_classes} classes"
        )
    leaf = label + num_classes
    bits = np.arange((num_classes - 1).bit_length())
    nodes = (leaf >> (bits + 1)) - 1
    on_path = nodes >= 0
    return _Paths(np.where(on_path, nodes, 0), on_path & ((leaf >> bits) & 1 == 1), on_path)


@register
class HierarchicalSigmoid(OpDef):
    """``Out = sum over the path of log(1 + exp(z)) - right * z`` with ``z = X . W[node] + Bias[node]``.

    ``z`` is clipped to [-40, 40]; PreOut holds ``log(1 + exp(z))``. As in Paddle, a path that is shorter
    than the longest possible one costs ``log(2)`` for each node it lacks.
    """

    type = "hierarchical_sigmoid"
    inputs = ("X", "W", "Label", "PathTable?", "PathCode?", "Bias?")
    outputs = ("Out", "PreOut", "W_Out")
    attrs = {
        "num_classes": Int(2),
        "remote_prefetch": Bool(False),
        "trainer_id": Int(0),
        "height_sections": Longs([]),
        "epmap": Strings([]),
        "table_names": Strings([]),
        "is_sparse": Bool(False),
    }
    lod = {"Out": "X"}
    gradient = Gradient(
        "X",
        "W",
        "Label",
        "PathTable",
        "PathCode",
        "Bias",
        "PreOut",
        "Out@GRAD",
        outputs=("X@GRAD", "W@GRAD", "Bias@GRAD"),
        lod=OWN,
    )

    @staticmethod
    def infer(
        x: Spec, w: Spec, label: Spec, table: Spec | None, code: Spec | None, bias: Spec | None
    ) -> tuple[Spec, None, None]:
        if len(x.shape) != 2 or len(w.shape) != 2 or x.shape[1] != w.shape[1]:
            raise ShapeError(
                f"hierarchical_sigmoid: X has shape {x.shape}, W {w.shape}; expected (N, D) and (nodes, D)"
            )
        return Spec((x.shape[0], 1), x.dtype), None, None

    @staticmethod
    def forward(
        x: Array,
        w: Array,
        label: Array,
        table: Array | None,
        code: Array | None,
        bias: Array | None,
        *,
        num_classes: int,
    ) -> tuple[Array, Array, None]:
        paths = _find_paths(label, table, code, num_classes)
        z = (w.take(paths.nodes, axis=0) @ x[:, :, None])[:, :, 0]
        if bias is not None:
            z += bias.reshape(-1)[paths.nodes]
        z *= paths.on_path
        np.clip(z, -40, 40, out=z)
        soft = np.log1p(np.exp(z))
        return (soft - paths.right * z).sum(axis=1, keepdims=True), soft, None

    @staticmethod
    def backward(
        x: Array,
        w: Array,
        label: Array,
        table: Array | None,
        code: Array | None,
        bias: Array | None,
        soft: Array,
        d_out: Array,
        *,
        num_classes: int,
        is_sparse: bool,
        wanted: tuple[bool, bool, bool],
    ) -> tuple[Array | None, Array | SelectedRows | None, Array | None]:
        paths = _find_paths(label, table, code, num_classes)
        d_z = (1 - np.exp(-soft) - paths.right) * d_out * paths.on_path
        d_x = (d_z[:, None] @ w.take(paths.nodes, axis=0))[:, 0] if wanted[0] else None
        d_w: Array | SelectedRows | None = None
        if wanted[1]:
            owners, _ = np.nonzero(paths.on_path)
            nodes, factors = paths.nodes[paths.on_path], d_z[paths.on_path]
            ids, d_rows = sum_multiples(nodes, factors, owners, x, len(w))
            d_w = SelectedRows(ids, len(w), d_rows) if is_sparse else place_rows(ids, d_rows, len(w))
        d_bias = None
        if wanted[2] and bias is not None:
            d_bias = sum_rows(paths.nodes.reshape(-1), d_z.reshape(-1, 1), len(bias)).reshape(bias.shape)
        return d_x, d_w, d_bias

    @staticmethod
    def infer_grad(slot: str, spec: Spec, attrs: dict[str, Any]) -> Spec:
        """Return the spec of a gradient; a sparse gradient of the weight is SelectedRows."""
        if slot == "W@GRAD" and attrs["is_sparse"]:
            return spec._replace(kind=VarType.SELECTED_ROWS)
        return spec
