"""Normalization, dropout and softmax."""

from __future__ import annotations

import math

from paddlelike.interop.cntk.reading.readers import reads
from paddlelike.interop.cntk.reading.step import Step, Value
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
    """With the running mean and variance; in training with those of the minibatch.

    CNTK's running averages forget by samples, Fluid's by minibatches: which is the same for one size of them.
    """
    value = step.value()
    scale, bias, mean, variance = (step.value(index) for index in range(1, 5))
    if not value.dynamic or value.rank not in (1, 3):
        step.refuse(f"its input has {value.rank} dims")
    if not step.attr("spatial", bool) and value.rank > 1:
        step.refuse("it normalizes each pixel by itself")
    dtype, count = value.variable.dtype, value.shape[0]
    attrs = {"epsilon": step.attr("epsilon", float), "data_layout": "NCHW"}
    inputs = {
        slot: step.reshape(one, [count])
        for slot, one in (("Scale", scale), ("Bias", bias), ("Mean", mean), ("Variance", variance))
    }
    names = ("Y", "SavedMean", "SavedVariance")
    outputs = {slot: step.create(f"{step.node.uid}.{slot}", dtype) for slot in names}
    if step.batch is None:
        attrs |= {"is_test": True, "use_global_stats": True}
    else:
        attrs |= {"is_test": False, "momentum": _find_momentum(step, step.batch)}
        if inputs["Mean"] is not mean.variable or inputs["Variance"] is not variance.variable:
            step.refuse("its running averages have more than one dim: it is not trained here")
    outputs |= {"MeanOut": inputs["Mean"], "VarianceOut": inputs["Variance"]}
    block = value.variable.block
    block.append_op(type="batch_norm", inputs={"X": value.variable, **inputs}, outputs=outputs, attrs=attrs)
    return step.give(outputs["Y"])


def _find_momentum(step: Step, batch: float) -> float:
    """Return the momentum of the running averages, for one minibatch."""
    constant = step.attr("normalizationTimeConstant", float)
    if constant < 0 or step.attr("blendTimeConstant", float, 0.0) != 0:
        step.refuse("its running averages are those of all samples: it is not trained here")
    return math.exp(-batch / constant) if constant else 0.0
