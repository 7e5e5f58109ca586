"""data_norm: rows normalized by the statistics of all data seen so far.

Parameters
----------
input
    (N, C).
epsilon
    Added to the sums of squares.
in_place
    Whether the result is written to ``input``.
moving_mean_name, moving_variance_name, do_model_average_for_mean_and_var
    Not read, as in Fluid.
slot_dim
    The width of a slot whose first number is a count of shows; -1 for no slots.
sync_stats
    Recorded in the operator. It has no effect on one device.
summary_decay_rate
    The share of the sums that a run keeps.
enable_scale_and_shift
    Whether each column gets a scale and a bias.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from paddlelike.framework.graph.variable import Variable
from paddlelike.initializer import Constant
from paddlelike.layers.checks import WIDE_FLOATS, check_variable
from paddlelike.layers.helper import LayerHelper
from paddlelike.param_attr import ParamAttr

if TYPE_CHECKING:
    from paddlelike.param_attr import ParamAttrLike

__all__ = ["data_norm"]


def data_norm(
    input: Variable,
    act: str | None = None,
    epsilon: float = 1e-05,
    param_attr: ParamAttrLike = None,
    data_layout: str = "NCHW",
    in_place: bool = False,
    name: str | None = None,
    moving_mean_name: str | None = None,
    moving_variance_name: str | None = None,
    do_model_average_for_mean_and_var: bool = True,
    slot_dim: int = -1,
    sync_stats: bool = False,
    summary_decay_rate: float = 0.9999999,
    enable_scale_and_shift: bool = False,
) -> Variable:
    """Return (N, C) normalized by the statistics of all data seen so far (operator ``data_norm``).

    The statistics are parameters ``<name>.batch_size``, ``.batch_sum`` and ``.batch_square_sum``, whose
    gradients carry the statistics of the batch; ``param_attr`` is a dict of their initial values. Raises
    TypeError unless ``input`` is a variable of a supported dtype.

    ``slot_dim`` is the width of a slot of which the first number is a count: slots without counts stay
    zero, and ``epsilon`` is added to the squares. ``enable_scale_and_shift`` adds a scale and a
    bias for each column. Each run keeps ``summary_decay_rate`` of the sums. With ``in_place`` the result
    is ``input`` itself. ``moving_mean_name``, ``moving_variance_name`` and
    ``do_model_average_for_mean_and_var`` are not read, as in Fluid; ``sync_stats`` is an attribute.

    Parameters
    ----------
    param_attr
        A dict of the initial values ``batch_size``, ``batch_sum`` and ``batch_square``; None for the
        defaults.

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 4])
    >>> fluid.layers.data_norm(x).shape
    (-1, 4)
    """
    check_variable("data_norm", "input", input, WIDE_FLOATS)
    helper = LayerHelper("data_norm", name=name, act=act)
    first = {"batch_size": 1e4, "batch_sum": 0.0, "batch_square": 1e4, "scale_w": 1.0, "bias": 0.0}
    first |= param_attr if isinstance(param_attr, dict) else {}  # as in Fluid, a ParamAttr says nothing
    shape = [input.shape[1 if data_layout == "NCHW" else -1]]
    prefix = "dn" if name is None else name

    def parameter(suffix: str, key: str) -> Variable:
        attr = ParamAttr(f"{prefix}.{suffix}", Constant(float(first[key])))
        created: Variable = helper.create_parameter(attr, shape, input.dtype)
        return created

    inputs = {"X": input}
    if enable_scale_and_shift:
        inputs["scale_w"] = parameter("scale_w", "scale_w")
        inputs["bias"] = parameter("bias", "bias")
    inputs["BatchSize"] = parameter("batch_size", "batch_size")
    inputs["BatchSum"] = parameter("batch_sum", "batch_sum")
    inputs["BatchSquareSum"] = parameter("batch_square_sum", "batch_square")
    means = helper.create_variable(dtype=input.dtype, stop_gradient=True)
    scales = helper.create_variable(dtype=input.dtype, stop_gradient=True)
    out = input if in_place else helper.create_variable(dtype=input.dtype)
    helper.append_op(
        type="data_norm",
        inputs=inputs,
        outputs={"Y": out, "Means": means, "Scales": scales},
        attrs={
            "epsilon": epsilon,
            "slot_dim": slot_dim if slot_dim > 0 else None,
            "sync_stats": sync_stats,
            "summary_decay_rate": summary_decay_rate,
            "enable_scale_and_shift": enable_scale_and_shift or None,
        },
    )
    return helper.append_activation(out)
