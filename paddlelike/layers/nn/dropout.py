"""dropout."""

from __future__ import annotations

from paddlelike.core import VarType
from paddlelike.framework import Variable
from paddlelike.layers.emit import FLOATS, check_choice, check_variable, emit_all
from paddlelike.layers.helper import LayerHelper

__all__ = ["dropout"]


def dropout(
    x: Variable,
    dropout_prob: float,
    is_test: bool = False,
    seed: int | None = None,
    name: str | None = None,
    dropout_implementation: str = "downgrade_in_infer",
) -> Variable:
    """Return ``x`` with each element set to 0 with probability ``dropout_prob`` (operator ``dropout``).

    Parameters
    ----------
    x
        A variable of any shape. The result has the same shape.
    dropout_prob
        The probability, 0 to 1.
    seed
        With a seed every run drops the same elements; with None each run draws new ones.
    dropout_implementation
        ``"downgrade_in_infer"`` multiplies by ``1 - dropout_prob`` in test programs. ``"upscale_in_train"``
        divides by it in training, and changes nothing in test programs.

    Returns
    -------
    Variable
        In the shape and dtype of ``x``.

    Raises
    ------
    GraphError
        ``dropout_implementation`` is another text.
    TypeError
        ``x`` is not a variable of float16, float32 or float64.

    >>> import paddlelike as fluid
    >>> ones = fluid.layers.ones([2, 3], "float32")
    >>> tested = fluid.layers.dropout(ones, dropout_prob=0.25, is_test=True)
    >>> fluid.Executor().run(fetch_list=[tested])
    [array([[0.75, 0.75, 0.75],
           [0.75, 0.75, 0.75]], dtype=float32)]
    """
    check_variable("dropout", "x", x, FLOATS)
    check_choice(
        "dropout",
        "dropout_implementation",
        dropout_implementation,
        ("downgrade_in_infer", "upscale_in_train"),
    )
    helper = LayerHelper("dropout", name=name)
    if not seed and helper.main_program.random_seed != 0:
        seed = helper.main_program.random_seed
    outputs = {"Out": x.dtype, "Mask": VarType.UINT8}
    attrs = {
        "dropout_prob": dropout_prob,
        "is_test": is_test,
        "fix_seed": seed is not None,
        "seed": seed or 0,
        "dropout_implementation": dropout_implementation,
    }
    out, _ = emit_all("dropout", {"X": [x]}, outputs, attrs, helper=helper, constant=("Mask",))
    return out
