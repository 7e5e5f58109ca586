"""Losses as objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from paddlelike import layers
from paddlelike.core import VarType
from paddlelike.errors import GraphError
from paddlelike.fluid.dygraph.nn.built import BuiltLayer
from paddlelike.framework import Variable
from paddlelike.layers.emit import INTEGERS, WIDE_FLOATS, check_choice, check_variable, emit_all
from paddlelike.layers.loss.sampled import SAMPLERS, create_alias_parameters

if TYPE_CHECKING:
    from collections.abc import Sequence

    from paddlelike.core import DtypeLike
    from paddlelike.param_attr import ParamAttrLike

__all__ = ["NCE", "BCELoss", "L1Loss", "MSELoss", "NLLLoss"]

_REDUCTIONS: Final = ("sum", "mean", "none")


class _Loss(BuiltLayer):
    """A loss whose elements are summed, averaged or returned unchanged."""

    def __init__(self, reduction: str = "mean") -> None:
        check_choice(type(self).__name__, "reduction", reduction, _REDUCTIONS)
        super().__init__()
        self.reduction = reduction

    def _reduce(self, loss: Variable) -> Variable:
        if self.reduction == "none":
            return loss
        return layers.reduce_sum(loss) if self.reduction == "sum" else layers.reduce_mean(loss)

    def _check(self, input: Variable, label: Variable, dtypes: Sequence[VarType]) -> None:  # noqa: A002
        for argument, value in (("input", input), ("label", label)):
            check_variable(type(self).__name__, argument, value, dtypes)


class MSELoss(_Loss):
    """The square of ``input - label`` (operator ``square``).

    Parameters
    ----------
    reduction
        "mean", "sum", or "none" for the loss of each element.

    See Also
    --------
    fluid.dygraph.BCELoss, fluid.dygraph.L1Loss, fluid.dygraph.NLLLoss

    >>> import paddlelike as fluid
    >>> MSELoss()(fluid.data("mse_x", [None, 4]), fluid.data("mse_y", [None, 4])).shape
    (1,)
    """

    def forward(self, input: Variable, label: Variable) -> Variable:  # noqa: A002  (Fluid's name)
        """Return the loss."""
        self._check(input, label, (VarType.FP32,))
        return self._reduce(layers.square(layers.elementwise_sub(input, label)))


class L1Loss(_Loss):
    """The absolute value of ``input - label`` (operators ``elementwise_sub``, ``abs``).

    Parameters
    ----------
    reduction
        "mean", "sum", or "none" for the loss of each element.

    See Also
    --------
    fluid.dygraph.BCELoss, fluid.dygraph.MSELoss, fluid.dygraph.NLLLoss

    >>> import paddlelike as fluid
    >>> L1Loss()(fluid.data("l1_x", [None, 4]), fluid.data("l1_y", [None, 4])).shape
    (1,)
    """

    def forward(self, input: Variable, label: Variable) -> Variable:  # noqa: A002
        """Return the loss."""
        self._check(input, label, (*WIDE_FLOATS, *INTEGERS))
        return self._reduce(layers.elementwise_sub(input, label, act="abs"))


class BCELoss(_Loss):
    """The binary cross entropy of probabilities and labels between 0 and 1, times the variable ``weight``
    (operator ``bce_loss``).

    Parameters
    ----------
    weight
        A factor for each element; None for 1.
    reduction
        "mean", "sum", or "none" for the loss of each element.

    See Also
    --------
    fluid.dygraph.L1Loss, fluid.dygraph.MSELoss, fluid.dygraph.NLLLoss

    >>> import paddlelike as fluid
    >>> BCELoss()(fluid.data("bce_x", [None, 1]), fluid.data("bce_y", [None, 1])).shape
    (1,)
    """

    def __init__(self, weight: Variable | None = None, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.weight = weight

    def forward(self, input: Variable, label: Variable) -> Variable:  # noqa: A002
        """Return the loss."""
        self._check(input, label, WIDE_FLOATS)
        out = self._emit("bce_loss", {"X": input, "Label": label}, {}, dtype=input.dtype)
        if self.weight is not None:
            out = layers.elementwise_mul(out, check_variable("BCELoss", "weight", self.weight), axis=-1)
        return self._reduce(out)


class NLLLoss(BuiltLayer):
    """The negative log likelihood of the label, from log probabilities (operator ``nll_loss``); ``weight``
    has one number per class.

    Parameters
    ----------
    weight
        A factor for each class, (C,); None for 1.
    reduction
        "mean", "sum", or "none" for the loss of each label.
    ignore_index
        A label that adds nothing.

    Raises
    ------
    GraphError
        ``reduction`` is another text.

    See Also
    --------
    fluid.dygraph.BCELoss, fluid.dygraph.L1Loss, fluid.dygraph.MSELoss

    >>> import paddlelike as fluid
    >>> NLLLoss()(fluid.data("nll_x", [None, 3]), fluid.data("nll_y", [None], "int64")).shape
    (1,)
    """

    def __init__(
        self, weight: Variable | None = None, reduction: str = "mean", ignore_index: int = -100
    ) -> None:
        super().__init__()
        check_choice("NLLLoss", "reduction", reduction, _REDUCTIONS)
        self.weight = weight
        self.reduction = reduction
        self.ignore_index = ignore_index

    def forward(self, input: Variable, label: Variable) -> Variable:  # noqa: A002
        """Return the loss of ``input`` (N, C, ...) and ``label`` (N, ...). Raises GraphError for an ``input``
        of one dim.
        """
        check_variable("NLLLoss", "input", input, WIDE_FLOATS)
        check_variable("NLLLoss", "label", label, (VarType.INT64,))
        shape = list(input.shape)
        if len(shape) < 2:
            raise GraphError(f"NLLLoss: input {input.name!r} has the shape {shape}, expected (N, C, ...)")
        folded = len(shape) not in (2, 4)
        if folded:
            input = layers.reshape(input, [shape[0], shape[1], 1, -1])  # noqa: A001
            label = layers.reshape(label, [shape[0], 1, -1])
        inputs = {"X": input, "Label": label, "Weight": self.weight}
        slots = dict.fromkeys(("Out", "Total_weight"), input.dtype)
        attrs = {"reduction": self.reduction, "ignore_index": self.ignore_index}
        out, _ = emit_all("nll_loss", inputs, slots, attrs, helper=self._helper)
        return layers.reshape(out, [shape[0], *shape[2:]]) if folded and self.reduction == "none" else out


class NCE(BuiltLayer):
    """The loss of noise-contrastive estimation; see :func:`paddlelike.layers.nce`.

    As in Fluid, there is a bias only where ``bias_attr`` is given.

    Parameters
    ----------
    dim
        The width of the input.

    Raises
    ------
    GraphError
        ``sampler`` is another text, or its distribution is missing.

    See Also
    --------
    fluid.layers.nce

    >>> import paddlelike as fluid
    >>> x, label = fluid.data("nce_x", [None, 4]), fluid.data("nce_label", [None, 1], "int64")
    >>> NCE(num_total_classes=20, dim=4)(x, label).shape
    (-1, 1)
    """

    def __init__(
        self,
        num_total_classes: int,
        dim: int,
        sample_weight: Variable | None = None,
        param_attr: ParamAttrLike = None,
        bias_attr: ParamAttrLike = None,
        num_neg_samples: int | None = None,
        sampler: str = "uniform",
        custom_dist: Sequence[float] | None = None,
        seed: int = 0,
        is_sparse: bool = False,
        dtype: DtypeLike = "float32",
    ) -> None:
        super().__init__()
        check_choice("NCE", "sampler", sampler, SAMPLERS)
        self._dtype = dtype
        self._inputs: dict[str, Any] = {}
        if sampler == "custom_dist":
            self._inputs |= create_alias_parameters(self._helper, custom_dist, num_total_classes)
        self._attrs = {
            "num_total_classes": int(num_total_classes),
            "num_neg_samples": 10 if num_neg_samples is None else int(num_neg_samples),
            "seed": seed,
            "sampler": SAMPLERS.index(sampler),
            "is_sparse": is_sparse,
            "remote_prefetch": is_sparse,
        }
        self.weight = self.create_parameter([num_total_classes, dim], param_attr, dtype)
        self.bias = self.create_parameter([num_total_classes, 1], bias_attr or False, dtype, is_bias=True)

    def forward(
        self,
        input: Variable,
        label: Variable,
        sample_weight: Variable | None = None,  # noqa: A002
    ) -> Variable:
        """Return the loss of each row, (N, 1)."""
        check_variable("NCE", "input", input, WIDE_FLOATS)
        check_variable("NCE", "label", label, (VarType.INT64,))
        inputs = {
            **self._inputs,
            "Bias": self.bias,
            "Weight": self.weight,
            "Input": input,
            "Label": label,
            "SampleWeight": sample_weight,
        }
        slots = {"Cost": input.dtype, "SampleLogits": input.dtype, "SampleLabels": label.dtype}
        cost, *_ = emit_all("nce", inputs, slots, self._attrs, helper=self._helper)
        return cost / (self._attrs["num_neg_samples"] + 1)
