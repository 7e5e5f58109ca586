"""Operators of images in Fluid's interface, for Fluid 1.8.5 (Python 3.7) and for this package."""

import importlib

import numpy as np
from cases import measure_output

STATISTICS = {
    "epsilon": 1e-5,
    "momentum": 0.9,
    "is_test": False,
    "data_layout": "NCHW",
    "use_global_stats": False,
}


def build(case, both, library):
    """Return a function that runs an operator, with its gradients if ``both``, and the sum of its result."""
    fluid = importlib.import_module("paddle.fluid" if library == "fluid" else "paddlelike")
    main, scope, rng = fluid.Program(), fluid.core.Scope(), np.random.RandomState(0)
    block = main.global_block()

    def create(name, shape, value=None):
        variable = block.create_var(name=name, shape=shape, dtype="float32", persistable=value is not None)
        if value is not None:
            variable.stop_gradient = False
            scope.var(name).get_tensor().set(value, fluid.CPUPlace())
        return variable

    def draw(name, shape):
        return create(name, shape, rng.standard_normal(shape).astype("float32"))

    out = create("out", measure_output(case))
    inputs, outputs, attrs = APPEND[case.op.split("_")[0]](case, create, draw, out)
    kind = case.op
    if "Filter" in inputs and case.groups == case.x[1] > 1:
        kind = "depthwise_" + kind
    block.append_op(type=kind, inputs=inputs, outputs=outputs, attrs=attrs)
    result = "out"
    if both:
        sources = [inputs[slot][0] for slot in ("X", "Input", "Filter", "Scale", "Bias") if slot in inputs]
        result = fluid.gradients([out], sources, [draw("d_out", measure_output(case))])[0].name
    exe = fluid.Executor(fluid.CPUPlace())

    def step(fetches=()):
        return exe.run(main, fetch_list=list(fetches), scope=scope, use_program_cache=True)

    return step, float(np.abs(step([result])[0]).sum())


def _convolve(case, create, draw, out):
    attrs = {
        "strides": list(case.stride),
        "paddings": list(case.pad),
        "dilations": list(case.dilation),
        "groups": case.groups,
        "use_cudnn": False,
    }
    return {"Input": [draw("x", case.x)], "Filter": [draw("w", case.w)]}, {"Output": [out]}, attrs


def _pool(case, create, draw, out):
    attrs = {
        "pooling_type": case.kind,
        "ksize": [case.kernel] * 2,
        "strides": [case.stride] * 2,
        "paddings": [case.pad] * 2,
        "global_pooling": case.mode == "global",
        "adaptive": case.mode == "adaptive",
        "exclusive": True,
    }
    return {"X": [draw("x", case.x)]}, {"Out": [out]}, attrs


def _normalize(case, create, draw, out):
    shape = (case.x[1],)
    ones = {
        slot: create(slot, shape, np.ones(shape, "float32")) for slot in ("Scale", "Bias", "Mean", "Variance")
    }
    saved = {slot: [create(slot, shape)] for slot in ("SavedMean", "SavedVariance")}
    inputs = dict({slot: [variable] for slot, variable in ones.items()}, X=[draw("x", case.x)])
    return inputs, dict(saved, Y=[out], MeanOut=[ones["Mean"]], VarianceOut=[ones["Variance"]]), STATISTICS


APPEND = {"conv2d": _convolve, "conv3d": _convolve, "pool2d": _pool, "batch": _normalize}
