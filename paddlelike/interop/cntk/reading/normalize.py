"""Normalization, dropout and softmax."""

from __future__ import annotations

from paddlelike.interop.cntk.reading.step import Step, Value
from paddlelike.interop.cntk.reading.table import reads
from paddlelike.layers.emit import emit_all


@reads("Softmax", "LogSoftmax")
def _read_softmax(step: Step) -> Value:
    """Over the whole sample; with an axis CNTK saves simpler operations."""
    value = step.value()
    flat = step.reshape(value, [-1]) if value.rank != 1 else value.variable
    if step.kind == "Softmax":
        out = step.unary("softmax", flat, axis=int(value.dynamic))
    else:
        out = step.binary("elementwise_sub", flat, step.log_sum(flat, [int(value.dynamic)]))
    return step.give(step.reshape(value._replace(variable=out, rank=1), value.shape))


@reads("Dropout")
def _read_dropout(step: Step) -> Value:
    """In training, what is kept is divided by its share; in prediction nothing happens."""
    value = step.value()
    attrs = {
        "dropout_prob": step.attr("dropoutRate", float),
        "dropout_implementation": "upscale_in_train",
        "is_test": not step.training,
        "fix_seed": False,
        "seed": 0,
    }
    dtype = value.variable.dtype
    out, _ = emit_all("dropout", {"X": value.variable}, {"Out": dtype, "Mask": "uint8"}, attrs)
    return step.give(out)


@reads("BatchNormalization")
def _read_batch_norm(step: Step) -> Value:
    """With the running mean and variance. CNTK's average by samples seen is no momentum: not trained here."""
    value = step.value()
    if step.training and step.attr("normalizationTimeConstant", float) >= 0:
        step.refuse("its running averages depend on the number of samples: it is not trained here")
    scale, bias, mean, variance = (step.value(index) for index in range(1, 5))
    if not value.dynamic or value.rank not in (1, 3):
        step.refuse(f"its input has {value.rank} dims")
    if not step.attr("spatial", bool) and value.rank > 1:
        step.refuse("it normalizes each pixel by itself")
    dtype, count = value.variable.dtype, value.shape[0]
    inputs = {
        slot: step.reshape(one, [count])
        for slot, one in (("Scale", scale), ("Bias", bias), ("Mean", mean), ("Variance", variance))
    }
    outputs = dict.fromkeys(("Y", "MeanOut", "VarianceOut", "SavedMean", "SavedVariance"), dtype)
    attrs = {"epsilon": step.attr("epsilon", float), "is_test": True, "use_global_stats": True}
    out, *_ = emit_all("batch_norm", {"X": value.variable, **inputs}, outputs, attrs)
    return step.give(out)
