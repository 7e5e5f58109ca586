"""Logits for a sample of very many classes, for a softmax over the sample alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from paddlelike.core import VarType
from paddlelike.errors import EnforceNotMet, ShapeError
from paddlelike.framework.opdef import Array, Attrs, Bool, Context, Gradient, Int, OpDef, Spec, register
from paddlelike.ops.kernels.class_sampling import draw_log_uniform, log_uniform_probability


class SampleLogitsAttrs(Attrs):
    """Attributes of sample_logits."""

    num_samples: int = Int()
    use_customized_samples: bool = Bool(False)
    remove_accidental_hits: bool = Bool(True)
    seed: int = Int(0)


@register
class SampleLogits(OpDef):
    """The logits of the true classes and of ``num_samples`` sampled classes, for a softmax over these alone.

    ``SampledLogits = Logits[Samples] - log(Probabilities)``, where Probabilities are the expected counts of
    the classes. All rows share the drawn classes, each drawn once. With ``remove_accidental_hits``, a drawn
    class that is a true class of a row is made impossible there. Jean et al. 2014.
    """

    type = "sample_logits"
    until = "1"
    inputs = ("Logits", "Labels", "CustomizedSamples?", "CustomizedProbabilities?")
    outputs = ("Samples", "Probabilities", "LogitsDim", "LabelsDim", "SampledLogits", "SampledLabels")
    fluid_order = "use_customized_samples uniq remove_accidental_hits num_samples seed"
    attrs = SampleLogitsAttrs.table(uniq=Bool(True))
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
            samples, chances = _draw_shared_samples(ctx, labels, logits, attrs)
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


def _draw_shared_samples(
    ctx: Context, labels: Array, logits: Array, attrs: SampleLogitsAttrs
) -> tuple[Array, Array]:
    """Return true and sampled classes, and the expected number of draws of each.

    Raises EnforceNotMet when ``num_samples`` exceeds the number of classes.
    """
    count, num_samples = logits.shape[1], attrs.num_samples
    if num_samples > count:
        raise EnforceNotMet(f"sample_logits: num_samples is {num_samples}, there are {count} classes")
    drawn, tries = draw_shared_classes(ctx.random(attrs.seed), count, num_samples, attrs.seed)
    samples = np.concatenate([labels, np.tile(drawn, (len(labels), 1))], axis=1)
    chance = log_uniform_probability(samples, count + 1)
    expected = chance * num_samples if tries == num_samples else -np.expm1(tries * np.log1p(-chance))
    return samples, expected.astype(logits.dtype)


def draw_shared_classes(generator: Any, count: int, num_samples: int, seed: int = 0) -> tuple[Array, int]:
    """Draw different classes below ``count``. Return the classes and the number of draws."""
    drawn: dict[int, None] = {}
    tries = 0
    seeded = draw_log_uniform(None, count + 1, 64 * num_samples, seed) if seed else None
    while len(drawn) < num_samples:
        if seeded is not None and tries == len(seeded):
            seeded = draw_log_uniform(None, count + 1, 2 * tries, seed)
        one = draw_log_uniform(generator, count + 1, 1)[0] if seeded is None else seeded[tries]
        drawn[int(one)] = None
        tries += 1
    return np.fromiter(drawn, np.int64, num_samples), tries
