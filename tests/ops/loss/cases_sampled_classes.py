"""Cases of nce, sample_logits and hierarchical_sigmoid."""

from typing import Any

import numpy as np

from tests.ops.harness.contract import Case

_rng = np.random.default_rng(8)
X = _rng.standard_normal((3, 2))
W = _rng.standard_normal((6, 2))
B = _rng.standard_normal((6, 1))
LABEL = np.array([[0], [3], [4]])
WEIGHT = np.array([[1.0], [2.0], [0.5]])


def _nce(probability: Any) -> Any:
    """The costs of the classes 0 and 5 as drawn ones, row by row."""

    def cost(
        Input: Any, Label: Any, Weight: Any, Bias: Any = None, SampleWeight: Any = None, **_: Any
    ) -> Any:
        bias = np.zeros(6) if Bias is None else Bias[:, 0]
        rows = []
        for i, x in enumerate(Input):
            total = 0.0
            for k, c in enumerate([*Label[i], 0, 5]):
                o = 1 / (1 + np.exp(-(Weight[c] @ x + bias[c])))
                b = probability(c) * 4
                total -= np.log((o if k < Label.shape[1] else b) / (o + b))
            rows.append([total * (1 if SampleWeight is None else SampleWeight[i, 0])])
        return np.array(rows)

    return cost


def _log_uniform(c: int) -> float:
    return float(np.log((c + 2) / (c + 1)) / np.log(6))


def _tree(
    X: Any, W: Any, Label: Any, PathTable: Any = None, PathCode: Any = None, Bias: Any = None, **_: Any
) -> Any:
    """Walk the path of each row."""
    out = []
    for i, x in enumerate(X):
        if PathTable is None:
            leaf = int(Label[i, 0]) + 5
            path = [((leaf >> (k + 1)) - 1, (leaf >> k) & 1) for k in range(leaf.bit_length() - 1)]
            depth = 3
        else:
            path = [(n, c) for n, c in zip(PathTable[i], PathCode[i], strict=True) if n >= 0]
            depth = PathTable.shape[1]
        total = (depth - len(path)) * np.log(2)
        for node, right in path:
            z = W[node] @ x + (0 if Bias is None else Bias[node, 0])
            total += np.log1p(np.exp(z)) - right * z
        out.append([total])
    return np.array(out)


TABLE = np.array([[0, 2, -1], [5, -1, -1], [1, 3, 4]])
CODE = np.array([[1, 0, -1], [0, -1, -1], [1, 1, 0]])
CHANCES = np.array([[0.5, 0.2, 0.1], [0.4, 0.2, 0.1], [0.3, 0.2, 0.1]])
SAMPLES = np.array([[0, 1, 2], [3, 1, 3], [4, 5, 2]])


def _picked(Logits: Any, CustomizedSamples: Any, CustomizedProbabilities: Any) -> Any:
    wanted = np.stack([row[at] for row, at in zip(Logits, CustomizedSamples, strict=True)])
    return {"SampledLogits": wanted - np.log(CustomizedProbabilities)}


def _sample(Logits: Any, Labels: Any, CustomizedSamples: Any, CustomizedProbabilities: Any) -> Any:
    wanted = _picked(Logits, CustomizedSamples, CustomizedProbabilities)["SampledLogits"]
    wanted[1, 2] = -1e20  # class 3 was drawn although it is the true one
    return {"SampledLogits": wanted, "SampledLabels": np.zeros((3, 1), int)}


CUSTOM = {"num_total_classes": 6, "num_neg_samples": 4, "custom_neg_classes": [0, 5]}
SAMPLED = {"Logits": _rng.standard_normal((3, 6)), "Labels": LABEL}
GIVEN = {"CustomizedSamples": SAMPLES, "CustomizedProbabilities": CHANCES}

CASES = [
    Case(
        "nce",
        {"Input": X, "Label": LABEL, "Weight": W, "Bias": B, "SampleWeight": WEIGHT},
        _nce(lambda c: 1 / 6),
        CUSTOM,
        through=("Cost",),
        check_shape=False,  # custom_neg_classes are fewer than num_neg_samples
    ),
    Case(
        "nce",
        {"Input": X, "Label": np.array([[0, 1], [3, 2], [4, 4]]), "Weight": W},
        _nce(_log_uniform),
        {**CUSTOM, "sampler": 1, "is_sparse": True},
        through=("Cost",),
        note="log-uniform-sparse",
    ),
    Case(
        "sample_logits",
        SAMPLED | GIVEN,
        _sample,
        {"num_samples": 2, "use_customized_samples": True},
        wrt=(),  # -1e20 drowns all differences
        note="hits",
    ),
    Case(
        "sample_logits",
        SAMPLED | GIVEN,
        _picked,
        {"num_samples": 2, "use_customized_samples": True, "remove_accidental_hits": False},
        wrt=("Logits",),
        through=("SampledLogits",),
    ),
    Case(
        "hierarchical_sigmoid",
        {"X": X, "W": W[:4], "Label": LABEL, "Bias": B[:4]},
        _tree,
        {"num_classes": 5},
        through=("Out",),
    ),
    Case(
        "hierarchical_sigmoid",
        {"X": X, "W": W, "Label": LABEL, "PathTable": TABLE, "PathCode": CODE},
        _tree,
        {"num_classes": 6, "is_sparse": True},
        through=("Out",),
        note="own-tree",
    ),
]
