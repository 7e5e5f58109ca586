"""Cases of bpr_loss, nll_loss and center_loss."""

import numpy as np

from tests.ops.harness.contract import Case

_rng = np.random.default_rng(15)
X = _rng.standard_normal((4, 3))
IMAGES = _rng.standard_normal((2, 3, 2, 2))
IMAGE_LABEL = _rng.integers(0, 3, (2, 2, 2))
LABEL = np.array([[1], [0], [2], [1]])
SOME = np.array([1, -100, 2, 1])
WEIGHT = np.array([0.5, 2.0, 3.0])
CENTERS = _rng.standard_normal((3, 3))


def _bpr(X, Label):
    rows = []
    for x, (label,) in zip(X, Label, strict=True):
        rows.append([np.mean([np.log1p(np.exp(v - x[label])) for j, v in enumerate(x) if j != label])])
    return np.array(rows)


def _nll(X, Label, reduction, Weight=None):
    weight = np.ones(3) if Weight is None else Weight
    rows = X.reshape(len(X), 3, -1).transpose(0, 2, 1).reshape(-1, 3)
    picked = [
        (-weight[k] * row[k], weight[k]) if k >= 0 else (0.0, 0.0)
        for row, k in zip(rows, Label.ravel(), strict=True)
    ]
    loss, used = np.array(picked).T
    total = np.array([used.sum()])
    if reduction == "none":
        return {"Out": loss.reshape(Label.shape), "Total_weight": np.zeros(1)}
    out = loss.sum(keepdims=True)
    return {"Out": out / total if reduction == "mean" else out, "Total_weight": total}


def _center(X, Label, Centers, CenterUpdateRate, need_update):
    centers = Centers.copy()
    for k in range(3):
        mine = [x - Centers[k] for x, (label,) in zip(X, Label, strict=True) if label == k]
        if need_update and mine:
            centers[k] += CenterUpdateRate[0] * sum(mine) / (1 + len(mine))
    diff = X - Centers[Label[:, 0]]
    loss = 0.5 * np.einsum("ij,ij->i", diff, diff)[:, None]
    return {"CentersOut": centers, "SampleCenterDiff": diff, "Loss": loss}


CASES = [
    Case("bpr_loss", {"X": X, "Label": LABEL}, _bpr),
    *(
        Case(
            "nll_loss",
            {"X": X, "Label": SOME, **({"Weight": WEIGHT} if weighted else {})},
            _nll,
            {"reduction": reduction},
            wrt=["X"],
            through=["Out"],
            note=f"{reduction}{'-weighted' if weighted else ''}",
        )
        for reduction in ("none", "mean", "sum")
        for weighted in (False, True)
    ),
    *(
        Case(
            "nll_loss",
            {"X": IMAGES, "Label": IMAGE_LABEL},
            _nll,
            {"reduction": reduction},
            through=["Out"],
            note=f"images-{reduction}",
        )
        for reduction in ("none", "mean")
    ),
    *(
        Case(
            "center_loss",
            {"X": X, "Label": LABEL, "Centers": CENTERS, "CenterUpdateRate": np.array([0.3])},
            _center,
            {"cluster_num": 3, "need_update": need_update},
            wrt=["X"],
            through=["Loss"],
            note="update" if need_update else "fixed",
        )
        for need_update in (True, False)
    ),
]
