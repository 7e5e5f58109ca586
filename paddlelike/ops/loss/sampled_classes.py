"""Losses over samples of very many classes: nce, sample_logits.

Classes are drawn uniformly, log-uniformly (small numbers, frequent words, more often), or by Walker's
alias method from a given distribution.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from paddlelike.core.dtypes import VarType
from paddlelike.core.rows import sum_rows
from paddlelike.core.tensor import SelectedRows
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

__all__ = ["Nce", "NceAttrs", "SampleLogits"]

_UNIFORM, _LOG_UNIFORM, _CUSTOM = range(3)


class _Classes(NamedTuple):
    """A distribution from which classes are drawn."""

    sampler: int
    total: int
    probs: Array | None = None
    alias: Array | None = None
    alias_probs: Array | None = None

    def probability(self, classes: Array, dtype: Any) -> Array:
        """Return the probability of each class to be drawn."""
        if self.sampler == _UNIFORM:
            return np.full(classes.shape, 1.0 / self.total, dtype)
        if self.sampler == _LOG_UNIFORM:
            return _log_uniform(classes, self.total).astype(dtype)
        assert self.probs is not None
        return self.probs[classes].astype(dtype)

    def draw(self, generator: Any, shape: tuple[int, int]) -> Array:
        """Return classes, int64."""
        if self.sampler == _UNIFORM:
            found: Array = generator.integers(0, self.total, shape)
            return found
        if self.sampler == _LOG_UNIFORM:
            return _draw_log_uniform(generator, self.total, shape)
        assert self.alias is not None
        assert self.alias_probs is not None
        first = generator.integers(0, self.total, shape)
        kept = generator.uniform(shape, 0.0, 1.0) <= self.alias_probs[first]
        other = self.alias[first]
        return np.where(kept | (other < 0), first, other).astype(np.int64)


def _log_uniform(classes: Array, count: int) -> Array:
    return np.log1p(1.0 / (classes + 1.0)) / math.log(count)


def _draw_log_uniform(generator: Any, count: int, shape: tuple[int, int]) -> Array:
    u = generator.uniform(shape, 0.0, 1.0).astype(np.float64)
    drawn = np.exp(u * math.log(count)).astype(np.int64) - 1
    return drawn % max(count - 1, 1)


class NceAttrs(Attrs):
    """Attributes of nce."""

    num_total_classes: int = Int()
    num_neg_samples: int = Int(10)
    sampler: int = Int(_UNIFORM)
    seed: int = Int(0)
    is_sparse: bool = Bool(False)
    custom_neg_classes: list[int] = Ints([])


@register
class Nce(OpDef):
    """Noise-contrastive estimation (Gutmann & Hyvarinen 2010).

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
    attrs = NceAttrs.table(
        remote_prefetch=Bool(False),
        trainer_id=Int(0),
        height_sections=Longs([]),
        epmap=Strings([]),
        table_names=Strings([]),
    )
    context = True
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
        classes = _Classes(attrs.sampler, attrs.num_total_classes, probs, alias, alias_probs)
        if attrs.custom_neg_classes:
            drawn = np.tile(np.array(attrs.custom_neg_classes, np.int64), (len(x), 1))
        else:
            drawn = classes.draw(ctx.random(attrs.seed), (len(x), attrs.num_neg_samples))
        labels = np.concatenate([true, drawn], axis=1)
        scores = np.einsum("nd,nkd->nk", x, weight[labels])
        if bias is not None:
            scores += bias.reshape(-1)[labels]
        o = 1 / (1 + np.exp(-scores))
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
            _Classes(attrs.sampler, attrs.num_total_classes, probs).probability(labels, x.dtype)
            * attrs.num_neg_samples
        )
        d_scores = o * (1 - o) / (o + b)
        d_scores[:, :true] = (b * (o - 1) / (o + b))[:, :true]
        d_scores *= d_cost
        if sample_weight is not None:
            d_scores *= sample_weight.reshape(-1, 1)
        rows = labels.reshape(-1)
        d_x = np.einsum("nk,nkd->nd", d_scores, weight[labels]) if wanted[0] else None
        d_weight: Array | SelectedRows | None = None
        if wanted[1]:
            d_rows = (d_scores[..., None] * x[:, None, :]).reshape(len(rows), -1)
            height = len(weight)
            d_weight = (
                SelectedRows(rows, height, d_rows).merge()
                if attrs.is_sparse
                else sum_rows(rows, d_rows, height)
            )
        d_bias = None
        if wanted[2] and bias is not None:
            d_bias = sum_rows(rows, d_scores.reshape(-1, 1), len(bias)).reshape(bias.shape)
        return d_x, d_weight, d_bias

    @staticmethod
    def infer_grad(slot: str, spec: Spec, attrs: dict[str, Any]) -> Spec:
        """Return the spec of a gradient: that of the weight is SelectedRows when it is sparse."""
        if slot == "Weight@GRAD" and attrs["is_sparse"]:
            return spec._replace(kind=VarType.SELECTED_ROWS)
        return spec


class SampleLogitsAttrs(Attrs):
    """Attributes of sample_logits."""

    num_samples: int = Int()
    use_customized_samples: bool = Bool(False)
    remove_accidental_hits: bool = Bool(True)
    seed: int = Int(0)


@register
class SampleLogits(OpDef):
    """The logits of the true classes and of ``num_samples`` drawn ones, for a softmax over these alone.

    ``SampledLogits = Logits[Samples] - log(Probabilities)`` with the expected counts of the classes as
    Probabilities; a drawn class that is a true one of its row is made impossible when
    ``remove_accidental_hits``. All rows share the drawn classes, each drawn once. Jean et al. 2014.
    """

    type = "sample_logits"
    inputs = ("Logits", "Labels", "CustomizedSamples?", "CustomizedProbabilities?")
    outputs = ("Samples", "Probabilities", "LogitsDim", "LabelsDim", "SampledLogits", "SampledLabels")
    attrs = SampleLogitsAttrs.table(uniq=Bool(True))
    context = True
    gradient = Gradient("LogitsDim", "LabelsDim", "Samples", "SampledLogits@GRAD", outputs=("Logits@GRAD",))

    @staticmethod
    def infer(
        logits: Spec, labels: Spec, samples: Spec | None, chances: Spec | None, *, attrs: SampleLogitsAttrs
    ) -> tuple[Spec, Spec, Spec, Spec, Spec, Spec]:
        if len(logits.shape) != 2 or len(labels.shape) != 2:
            raise ShapeError(
                f"sample_logits: Logits has shape {logits.shape}, Labels {labels.shape}; "
                "expected (N, classes) and (N, true classes)"
            )
        shape = (labels.shape[0], labels.shape[1] + attrs.num_samples)
        return (
            Spec(shape, VarType.INT64),
            Spec(shape, logits.dtype),
            Spec((*logits.shape, 0), logits.dtype),
            Spec((*labels.shape, 0), labels.dtype),
            Spec(shape, logits.dtype),
            Spec(labels.shape, VarType.INT64),
        )

    @staticmethod
    def forward(
        ctx: Context,
        logits: Array,
        labels: Array,
        samples: Array | None,
        chances: Array | None,
        *,
        attrs: SampleLogitsAttrs,
    ) -> tuple[Array, Array, Array, Array, Array, Array]:
        rows, true = labels.shape
        if not attrs.use_customized_samples:
            samples, chances = _shared_samples(ctx.random(attrs.seed), labels, logits, attrs.num_samples)
        assert samples is not None
        assert chances is not None
        picked = np.take_along_axis(logits, samples, axis=1)
        if attrs.remove_accidental_hits:
            hits = (samples[:, true:, None] == labels[:, None, :]).any(axis=2)
            picked[:, true:][hits] -= 1e20
        with np.errstate(divide="ignore"):
            picked -= np.log(chances).astype(logits.dtype, copy=False)
        np.clip(picked, -1e20, 1e20, out=picked)
        places = np.tile(np.arange(true, dtype=np.int64), (rows, 1))
        return (
            samples,
            chances,
            np.empty((*logits.shape, 0), logits.dtype),
            np.empty((*labels.shape, 0), labels.dtype),
            picked,
            places,
        )

    @staticmethod
    def backward(
        ctx: Context, logits_dim: Array, labels_dim: Array, samples: Array, d_picked: Array
    ) -> Array:
        d_logits = np.zeros(logits_dim.shape[:2], d_picked.dtype)
        np.add.at(d_logits, (np.arange(len(samples))[:, None], samples), d_picked)
        return d_logits


def _shared_samples(generator: Any, labels: Array, logits: Array, num_samples: int) -> tuple[Array, Array]:
    """True classes and drawn ones, and how often each is expected among the draws that were needed."""
    count = logits.shape[1]
    if num_samples > count:
        raise EnforceNotMet(f"sample_logits: num_samples is {num_samples}, there are {count} classes")
    drawn: dict[int, None] = {}
    tries = 0
    while len(drawn) < num_samples:
        tries += 1
        drawn[int(_draw_log_uniform(generator, count + 1, (1, 1))[0, 0])] = None
    shared = np.tile(np.fromiter(drawn, np.int64, num_samples), (len(labels), 1))
    samples = np.concatenate([labels, shared], axis=1)
    chance = _log_uniform(samples, count + 1)
    expected = chance * num_samples if tries == num_samples else -np.expm1(tries * np.log1p(-chance))
    return samples, expected.astype(logits.dtype)
