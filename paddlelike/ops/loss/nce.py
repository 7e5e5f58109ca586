"""Noise-contrastive estimation: a loss over samples of very many classes."""

from __future__ import annotations

from typing import Any

import numpy as np

from paddlelike.core import SelectedRows, VarType
from paddlelike.core.rows import sum_rows
from paddlelike.errors import EnforceNotMet, ShapeError
from paddlelike.framework.opdef import (
    Array,
    Attrs,
    Bool,
    Context,
    Gradient,
    Int,
    Ints,
    Longs,
    OpDef,
    Spec,
    Strings,
    register,
)
from paddlelike.ops.kernels.class_sampling import UNIFORM, ClassDistribution
from paddlelike.ops.kernels.linalg import place_rows, sum_multiples
from paddlelike.ops.kernels.special import sigmoid


class NceAttrs(Attrs):
    """Attributes of nce."""

    num_total_classes: int = Int()
    num_neg_samples: int = Int(10)
    sampler: int = Int(UNIFORM)
    seed: int = Int(0)
    is_sparse: bool = Bool(False)
    custom_neg_classes: list[int] = Ints([])


@register
class Nce(OpDef):
    """The loss of noise-contrastive estimation (Gutmann & Hyvarinen 2010).

    With ``o`` the sigmoid of ``Input . Weight[class] + Bias[class]`` and ``b`` the probability of the class
    times ``num_neg_samples``, a true class costs ``-log(o / (o + b))``, a drawn one ``-log(b / (o + b))``.
    SampleLogits holds the sigmoids, SampleLabels the classes: the true ones, then the drawn ones.
    """

    type = "nce"
    inputs = (
        "Input",
        "Label",
        "Weight",
        "Bias?",
        "SampleWeight?",
        "CustomDistProbs?",
        "CustomDistAlias?",
        "CustomDistAliasProbs?",
    )
    outputs = ("Cost", "SampleLogits", "SampleLabels")
    fluid_order = (
        "num_total_classes num_neg_samples sampler seed is_sparse remote_prefetch trainer_id "
        "height_sections epmap table_names custom_neg_classes"
    )
    attrs = NceAttrs.table(
        remote_prefetch=Bool(False),
        trainer_id=Int(0),
        height_sections=Longs([]),
        epmap=Strings([]),
        table_names=Strings([]),
    )
    gradient = Gradient(
        "Input",
        "Label",
        "Weight",
        "Bias",
        "SampleWeight",
        "CustomDistProbs",
        "CustomDistAlias",
        "CustomDistAliasProbs",
        "SampleLogits",
        "SampleLabels",
        "Cost@GRAD",
        outputs=("Input@GRAD", "Weight@GRAD", "Bias@GRAD"),
    )

    @staticmethod
    def infer(
        x: Spec,
        label: Spec,
        weight: Spec,
        bias: Spec | None,
        sample_weight: Spec | None,
        probs: Spec | None,
        alias: Spec | None,
        alias_probs: Spec | None,
        *,
        attrs: NceAttrs,
    ) -> tuple[Spec, Spec, Spec]:
        if len(x.shape) != 2 or len(weight.shape) != 2 or x.shape[1] != weight.shape[1]:
            raise ShapeError(
                f"nce: Input has shape {x.shape}, Weight {weight.shape}; expected (N, D) and (classes, D)"
            )
        if weight.shape[0] != attrs.num_total_classes:
            raise ShapeError(
                f"nce: Weight has shape {weight.shape}, num_total_classes is {attrs.num_total_classes}"
            )
        true = label.shape[1] if len(label.shape) == 2 else 1
        width = true + (len(attrs.custom_neg_classes) or attrs.num_neg_samples)
        rows = x.shape[0]
        return Spec((rows, 1), x.dtype), Spec((rows, width), x.dtype), Spec((rows, width), VarType.INT64)

    @staticmethod
    def forward(
        ctx: Context,
        x: Array,
        label: Array,
        weight: Array,
        bias: Array | None,
        sample_weight: Array | None,
        probs: Array | None,
        alias: Array | None,
        alias_probs: Array | None,
        *,
        attrs: NceAttrs,
    ) -> tuple[Array, Array, Array]:
        true = label.reshape(len(x), -1)
        wrong = true[(true < 0) | (true >= attrs.num_total_classes)]
        if wrong.size:
            raise EnforceNotMet(
                f"nce: Label holds {int(wrong[0])}, there are {attrs.num_total_classes} classes"
            )
        classes = ClassDistribution(attrs.sampler, attrs.num_total_classes, probs, alias, alias_probs)
        if attrs.custom_neg_classes:
            drawn = np.tile(np.array(attrs.custom_neg_classes, np.int64), (len(x), 1))
        else:
            drawn = classes.draw(ctx.random(attrs.seed), (len(x), attrs.num_neg_samples), attrs.seed)
        labels = np.concatenate([true, drawn], axis=1)
        scores = (weight.take(labels, axis=0) @ x[:, :, None])[:, :, 0]
        if bias is not None:
            scores += bias.reshape(-1)[labels]
        o = sigmoid(scores)
        b = classes.probability(labels, x.dtype) * attrs.num_neg_samples
        costs = np.log(o + b)
        costs[:, : true.shape[1]] -= np.log(o[:, : true.shape[1]])
        costs[:, true.shape[1] :] -= np.log(b[:, true.shape[1] :])
        cost = costs.sum(axis=1, keepdims=True)
        if sample_weight is not None:
            cost *= sample_weight.reshape(-1, 1)
        return cost, o, labels

    @staticmethod
    def backward(
        ctx: Context,
        x: Array,
        label: Array,
        weight: Array,
        bias: Array | None,
        sample_weight: Array | None,
        probs: Array | None,
        alias: Array | None,
        alias_probs: Array | None,
        o: Array,
        labels: Array,
        d_cost: Array,
        *,
        attrs: NceAttrs,
        wanted: tuple[bool, bool, bool],
    ) -> tuple[Array | None, Array | SelectedRows | None, Array | None]:
        true = label.size // len(x)
        b = (
            ClassDistribution(attrs.sampler, attrs.num_total_classes, probs).probability(labels, x.dtype)
            * attrs.num_neg_samples
        )
        d_scores = o * (1 - o) / (o + b)
        d_scores[:, :true] = (b * (o - 1) / (o + b))[:, :true]
        d_scores *= d_cost
        if sample_weight is not None:
            d_scores *= sample_weight.reshape(-1, 1)
        rows = labels.reshape(-1)
        d_x = (d_scores[:, None] @ weight.take(labels, axis=0))[:, 0] if wanted[0] else None
        d_weight: Array | SelectedRows | None = None
        if wanted[1]:
            owners, height = np.repeat(np.arange(len(x)), labels.shape[1]), len(weight)
            ids, d_rows = sum_multiples(rows, d_scores.reshape(-1), owners, x, height)
            d_weight = (
                SelectedRows(ids, height, d_rows) if attrs.is_sparse else place_rows(ids, d_rows, height)
            )
        d_bias = None
        if wanted[2] and bias is not None:
            d_bias = sum_rows(rows, d_scores.reshape(-1, 1), len(bias)).reshape(bias.shape)
        return d_x, d_weight, d_bias

    @staticmethod
    def infer_grad(slot: str, spec: Spec, attrs: dict[str, Any]) -> Spec:
        """Return the spec of a gradient; a sparse gradient of the weight is SelectedRows."""
        if slot == "Weight@GRAD" and attrs["is_sparse"]:
            return spec._replace(kind=VarType.SELECTED_ROWS)
        return spec
