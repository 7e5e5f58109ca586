"""Variables of a new operator: slots as lists of names, and shape inference for outputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from paddlelike.core import convert_dtype
from paddlelike.errors import GraphError, ShapeError
from paddlelike.framework.graph.operator import Operator
from paddlelike.framework.graph.variable import Variable
from paddlelike.framework.opdef import GRAD, NO_LOD, OWN, OpDef, Spec, make_arguments, name_results


class Names(Protocol):
    """The block of an operator, used to look up its variables by name."""

    def _find_var_recursive(self, name: str) -> Variable | None: ...

    def _var_recursive(self, name: str) -> Variable: ...


def infer_outputs(block: Names, op: Operator, cls: type[OpDef]) -> list[tuple[str, Spec]]:
    """Return the names of the outputs of ``op`` with the specs that its shape rule gives them.

    Raises ShapeError when the inputs do not fit; shape rules also raise EnforceNotMet.
    """
    infer = getattr(cls, "infer", None)
    if infer is None:
        return [] if cls.forward_of is None else _infer_grad(block, op, cls)
    specs = make_arguments(cls.input_slots, op.inputs, lambda name: _find_spec(block, name))
    try:
        results = infer(*specs, **cls.make_infer_keywords(op.attrs))
    except (IndexError, ZeroDivisionError, AttributeError) as error:
        shapes = {n: list(block._var_recursive(n).shape) for n in op.input_arg_names}
        raise ShapeError(f"operator {cls.type!r} does not fit its inputs {shapes}: {error}") from error
    found = []
    for slot, name, spec in name_results(cls.output_slots, op.outputs, results):
        if spec.lod_level is None:
            source = op.inputs.get(cls.find_lod_source(slot.name) or "")
            spec = spec._replace(lod_level=block._var_recursive(source[0]).lod_level if source else None)
        elif spec.lod_level == NO_LOD:
            spec = spec._replace(lod_level=None)
        found.append((name, spec))
    return found


def _infer_grad(block: Names, op: Operator, cls: type[OpDef]) -> list[tuple[str, Spec]]:
    """Return the specs of gradients: the specs of the forward variables, unless the operator has a rule."""
    assert cls.forward_of is not None
    rule = getattr(cls.forward_of, "infer_grad", None)
    attrs = {name: attr.fallback for name, attr in cls.forward_of.attrs.items()} | op.attrs if rule else {}
    found = []
    for slot, names in op.outputs.items():
        for index, name in enumerate(names):
            base = name.split("@GRAD")[0]
            source = op.inputs.get(slot.removesuffix("@GRAD")) or ()
            forward = block._find_var_recursive(source[index] if index < len(source) else base)
            if forward is None:
                continue
            spec = _describe(forward)._replace(lod_level=_infer_grad_lod(block, op, cls.forward_of, forward))
            if rule is not None:
                spec = rule(slot, spec, attrs)
            found.append((name, spec))
    return found


def _infer_grad_lod(block: Names, op: Operator, cls: type[OpDef], forward: Variable) -> int | None:
    """Return the LoD level of the gradient of ``forward``, or None when the operator does not set it."""
    source = cls.gradient.lod if cls.gradient is not None else None
    if source == OWN:
        return forward.lod_level
    names = op.inputs.get(source) if source is not None else None
    return block._var_recursive(names[0]).lod_level if names else None


def _find_spec(block: Names, name: str) -> Spec:
    """Return the spec of an input; for a gradient that a loop creates later, the spec of its variable."""
    if GRAD in name and block._find_var_recursive(name) is None:
        name = name.split(GRAD)[0]
    return _describe(block._var_recursive(name))


def _describe(variable: Variable) -> Spec:
    return Spec(variable.shape, variable.dtype, variable.lod_level, variable.type)


def apply_spec(variable: Variable, spec: Spec) -> None:
    """Give a variable the shape, dtype, LoD level and kind of ``spec``."""
    variable.shape = tuple(int(dim) for dim in spec.shape)
    variable.dtype = convert_dtype(spec.dtype)
    if spec.lod_level is not None:
        variable.lod_level, variable.declares_lod_level = spec.lod_level, True
    if spec.kind is not None:
        variable.type = spec.kind


def _collect_names(given: object) -> list[str]:
    """Return the names of the variables given for a slot."""
    if given is None:
        return []
    if isinstance(given, Variable):
        return [given.name]
    if isinstance(given, str):
        return [given]
    if isinstance(given, bytes):
        return [given.decode()]
    if isinstance(given, list | tuple):
        return [name for one in given for name in _collect_names(one)]
    raise TypeError(f"a slot takes variables or their names, not {given!r}")


def collect_input_names(cls: type[OpDef], given: Mapping[str, Any] | None) -> dict[str, list[str]]:
    """Return names by input slot. As in Paddle, all slots of the operator are present if any input is given.

    Raises GraphError for a missing input or several variables in a slot for one, TypeError for anything but
    variables and names.
    """
    if given is None and not any(not slot.optional for slot in cls.input_slots):
        return {}
    slots = {}
    for slot in cls.input_slots:
        names = _collect_names((given or {}).get(slot.name))
        if not names and not slot.optional and not (slot.several and slot.name in (given or {})):
            raise GraphError(f"operator {cls.type!r} needs its input {slot.name!r}")
        if len(names) > 1 and not slot.several:
            raise GraphError(
                f"operator {cls.type!r} takes one variable in {slot.name!r}, got {len(names)}: {names}"
            )
        slots[slot.name] = names
    return slots


def collect_output_names(cls: type[OpDef], given: Mapping[str, Any] | None) -> dict[str, list[str]]:
    """Return names by output slot. Raises GraphError for a missing output."""
    slots = {}
    for slot in cls.output_slots:
        if slot.name not in (given or {}):
            if slot.optional:
                continue
            raise GraphError(f"operator {cls.type!r} needs its output {slot.name!r}")
        slots[slot.name] = _collect_names((given or {})[slot.name])
    return slots
