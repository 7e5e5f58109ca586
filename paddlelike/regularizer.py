"""Weight decay: terms that are added to the gradients before the update."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from paddlelike.core import VarType, Versioned
from paddlelike.foundation.docstrings import complete_docstring, read_entries, show_related
from paddlelike.foundation.keyword_options import NearKeywords
from paddlelike.framework import name_scope

if TYPE_CHECKING:
    from paddlelike.framework import Block, Parameter, Variable

__all__ = [
    "L1Decay",
    "L1DecayRegularizer",
    "L2Decay",
    "L2DecayRegularizer",
    "WeightDecayRegularizer",
    "append_regularization_ops",
]


class WeightDecayRegularizer(NearKeywords, Versioned):
    """Base class of the regularizers, as in Fluid.

    A call with parameter, gradient and block appends and returns the term to add. The regularizer of a
    parameter (``ParamAttr(regularizer=...)``) replaces the regularizer of the optimizer.

    Parameters
    ----------
    regularization_coeff
        The factor of the penalty.

    >>> import paddlelike as fluid
    >>> isinstance(fluid.regularizer.L2Decay(0.01), fluid.regularizer.WeightDecayRegularizer)
    True
    """

    def __init_subclass__(cls) -> None:
        complete_docstring(cls, read_entries(WeightDecayRegularizer))
        if "__init__" not in vars(cls):  # Python before 3.11.4 would show the parameters of ``__new__``
            cls.__init__ = cls.__init__  # type: ignore[method-assign]

    def __init__(self, regularization_coeff: float = 0.0) -> None:
        self._regularization_coeff = regularization_coeff

    def __call__(self, param: Parameter, grad: Variable, block: Block) -> Variable:
        """Append the operators that compute the term, and return it."""
        raise NotImplementedError

    def __str__(self) -> str:
        name = self.__class__.__name__.removesuffix("Regularizer")
        return f"{name}, regularization_coeff={self._regularization_coeff:f}"


class L2DecayRegularizer(WeightDecayRegularizer):
    """Adds ``coeff * parameter`` to the gradient (operator ``scale``).

    >>> str(L2Decay(0.001))
    'L2Decay, regularization_coeff=0.001000'
    """

    def __call__(self, param: Parameter, grad: Variable, block: Block) -> Variable:
        """Append ``scale``, and return its output."""
        decay = _term(param, block)
        _scale(block, param, decay, self._regularization_coeff)
        return decay


class L1DecayRegularizer(WeightDecayRegularizer):
    """Adds ``coeff * sign(parameter)`` to the gradient (operators ``sign`` and ``scale``).

    >>> import paddlelike as fluid
    >>> optimizer = fluid.optimizer.SGD(0.1, regularization=fluid.regularizer.L1Decay(0.001))
    """

    def __call__(self, param: Parameter, grad: Variable, block: Block) -> Variable:
        """Append ``sign`` and ``scale``, and return the output."""
        decay = _term(param, block)
        block.append_op(type="sign", inputs={"X": param}, outputs={"Out": decay})
        _scale(block, decay, decay, self._regularization_coeff)
        return decay


def append_regularization_ops(
    parameters_and_grads: Iterable[tuple[Parameter, Variable]],
    regularization: WeightDecayRegularizer | None = None,
) -> list[tuple[Parameter, Variable]]:
    """Append weight decay for every parameter that has it, as Fluid's optimizers do; return parameters and
    their new gradients.

    Parameters
    ----------
    parameters_and_grads
        Pairs of a parameter and its gradient.
    regularization
        The regularizer of parameters without one of their own; None for no decay.

    Returns
    -------
    list
        Pairs of a parameter and its gradient with the term added, in the order given.

    Raises
    ------
    TypeError
        A regularizer is not callable.

    >>> import paddlelike as fluid
    >>> loss = fluid.layers.mean(fluid.layers.fc(fluid.data("x", [None, 3]), 1))
    >>> pairs = fluid.backward.append_backward(loss)
    >>> pairs = fluid.regularizer.append_regularization_ops(pairs, fluid.regularizer.L2Decay(0.01))
    >>> len(pairs)
    2
    """
    with name_scope("regularization"):
        return [(param, _add_decay(param, grad, regularization)) for param, grad in parameters_and_grads]


def _add_decay(param: Parameter, grad: Variable, regularization: WeightDecayRegularizer | None) -> Variable:
    """Return the gradient with the term of the parameter's regularizer added."""
    regularizer = regularization if param.regularizer is None else param.regularizer
    if regularizer is None or grad is None:
        return grad
    block = grad.block
    with block.program._optimized_guard([param, grad]):
        if not callable(regularizer):
            raise TypeError(
                f"regularization of {param.name!r} is {regularizer!r}, expected a regularizer\n"
                "  hint: fluid.regularizer.L2Decay(0.01)"
            )
        decay = regularizer(param, grad, block)
        total = grad
        if grad.type == VarType.SELECTED_ROWS:  # a sparse gradient and a dense term give a dense sum
            total = block.create_var(
                name=grad.name + "@NEWGRAD@", dtype=param.dtype, shape=param.shape, lod_level=param.lod_level
            )
        block.append_op(type="sum", inputs={"X": [grad, decay]}, outputs={"Out": total})
    return total


def _term(param: Parameter, block: Block) -> Variable:
    return block.create_var(dtype=param.dtype, shape=param.shape, lod_level=param.lod_level)


def _scale(block: Block, x: Variable, out: Variable, scale: float) -> None:
    block.append_op(type="scale", inputs={"X": x}, outputs={"Out": out}, attrs={"scale": scale})


L2Decay = L2DecayRegularizer
L1Decay = L1DecayRegularizer

show_related(__name__)
