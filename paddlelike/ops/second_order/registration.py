"""Registration of gradients for gradient operators."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from paddlelike.framework.opdef import Attr, GradOp, OpView, grad_names, register, registry
from paddlelike.ops.later import make_class

#: Slots of the new operator, by slots of the gradient operator that it belongs to. An input that stands for
#: an output of that operator is the gradient of this output, or with "=" in front the output itself. An
#: output is the gradient of an input.
Slots = Mapping[str, str]


def register_second_order(
    type: str,
    inputs: Slots,
    outputs: Slots,
    kernel: Callable[..., Any],
    needs: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> None:
    """Register ``<type>_grad_grad`` as the gradient of ``<type>_grad``.

    ``kernel`` takes the inputs by position, None for absent ones. ``needs`` maps an output to inputs; without
    any of these inputs the output would be zero, and is left out.
    """
    forward = registry.find(type)
    name = f"{type}_grad_grad"
    body = {
        "__doc__": f"Gradient of ``{type}_grad``.",
        "__module__": kernel.__module__,
        "type": name,
        "inputs": tuple(f"{slot}?" for slot in inputs),
        "outputs": tuple(f"{slot}?" for slot in outputs),
        "attrs": forward.attrs,
        "forward": staticmethod(kernel),
    }
    register(make_class(name, body))
    _set_maker(type, name, inputs, outputs, forward.attrs, needs)


def register_repeated(type: str, inputs: Slots, outputs: Slots) -> None:
    """Declare that the gradient of ``<type>_grad`` is the operator ``type`` itself.

    Linear functions have this property.
    """
    _set_maker(type, type, inputs, outputs, registry.find(type).attrs)


def _set_maker(
    type: str,
    name: str,
    inputs: Slots,
    outputs: Slots,
    attrs: Mapping[str, Attr],
    needs: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> None:
    def make_grad(cls: Any, op: OpView) -> list[GradOp]:
        written = {slot.name for slot in cls.output_slots}
        reads = {}
        for slot, source in inputs.items():
            if source in written:
                reads[slot] = grad_names(op.output(source))
            else:
                reads[slot] = list(op.output(source[1:]) if source.startswith("=") else op.input(source))
        writes = {}
        for slot, source in outputs.items():
            is_zero = slot in needs and not any(reads[each] for each in needs[slot])
            writes[slot] = [] if is_zero else grad_names(op.input(source))
        return [GradOp(name, reads, writes, {key: op.attrs[key] for key in attrs if key in op.attrs})]

    registry.find(f"{type}_grad").make_grad = classmethod(make_grad)  # type: ignore[method-assign, assignment]
