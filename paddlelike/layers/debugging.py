"""Looking into a program while it runs, and calling Python from it."""

from __future__ import annotations

from paddlelike.framework.variable import Variable
from paddlelike.layers.checks import check_choice, check_variable
from paddlelike.layers.helper import LayerHelper

__all__ = ["Print"]


def Print(  # noqa: N802  (Fluid's name)
    input: Variable,
    first_n: int = -1,
    message: str | None = None,
    summarize: int = 20,
    print_tensor_name: bool = True,
    print_tensor_type: bool = True,
    print_tensor_shape: bool = True,
    print_tensor_lod: bool = True,
    print_phase: str = "both",
) -> Variable:
    """``input`` itself, printed when the program gets to it (operator ``print``).

    The first ``first_n`` times (-1: always), ``summarize`` numbers of it (-1: all), with ``message`` in
    front; ``print_phase`` is ``"forward"``, ``"backward"`` (its gradient) or ``"both"``.
    """
    check_variable("Print", "input", input)
    check_choice("Print", "print_phase", print_phase.upper(), ("FORWARD", "BACKWARD", "BOTH"))
    helper = LayerHelper(f"print_{input.name}")
    out = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op(
        type="print",
        inputs={"In": input},
        outputs={"Out": out},
        attrs={
            "first_n": first_n,
            "summarize": summarize,
            "message": message or "",
            "print_tensor_name": print_tensor_name,
            "print_tensor_type": print_tensor_type,
            "print_tensor_shape": print_tensor_shape,
            "print_tensor_lod": print_tensor_lod,
            "print_phase": print_phase.upper(),
        },
    )
    return out
