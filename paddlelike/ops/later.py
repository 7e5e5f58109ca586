"""Registration of Paddle 2.x kernels as operators, each by a function and one line of text for its slots.

These operators run models that Paddle 2.x saved for prediction. They have no shape rules; their values are
compared with real Paddle 2.6.2's (``tests/models/``). New forms of Fluid's operators use the gradients of
Fluid's forms; a backward pass through operators that Fluid lacks is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

import numpy as np

from paddlelike.framework.opdef import Attr, GradOp, OpDef, OpView, register, registry
from paddlelike.framework.opdef.registry import LATER

Function = TypeVar("Function", bound=Callable[..., Any])

#: The integer dtypes of numpy, by the number in an attribute ``dtype``.
INTEGERS: Final[dict[int, np.dtype[Any]]] = {2: np.dtype(np.int32), 3: np.dtype(np.int64)}


def register_kernel(
    type: str,
    slots: str,
    attrs: Mapping[str, Attr] | None = None,
    *,
    changed: bool = False,
    mark: str = LATER,
    **facts: object,
) -> Callable[[Function], Function]:
    """Return a decorator that registers a function as the kernel of the operator ``type``.

    Parameters
    ----------
    slots
        The input and output slots, as ``"X Y? -> Out"``.
    changed
        Fluid 1.8 has an operator of this type too, which computes something else: this is its form in
        programs of Paddle 2.x, or, with the mark ``LATEST``, in programs of Paddle 3.x.
    facts
        Attributes of the class: see :class:`~paddlelike.framework.opdef.OpDef`.
    """
    inputs, _, outputs = slots.partition("->")

    def decorate(function: Function) -> Function:
        body = {
            "__doc__": function.__doc__,
            "__module__": function.__module__,
            "type": type + mark * changed,
            "since": "2",
            "inputs": tuple(inputs.split()),
            "outputs": tuple(outputs.split()),
            "attrs": {} if attrs is None else attrs,
            "forward": staticmethod(function),
            **facts,
        }
        register(make_class(type, body))
        return function

    return decorate


def keep_attrs(cls: type[OpDef], op: OpView) -> list[GradOp]:
    """Return gradient operators in Fluid's form that keep the attributes of the operator; a ``make_grad``."""
    grads = registry.find(cls.type.partition(LATER[0])[0]).make_grad(op)
    kept = {name: op.attrs[name] for name in cls.attrs if name in op.attrs}
    return [grad._replace(attrs=kept | grad.attrs) for grad in grads]


def make_class(name: str, body: dict[str, Any]) -> type[OpDef]:
    """Return the class of an operator."""
    return type(name.title().replace("_", ""), (OpDef,), body)
