"""Registration and look-up of operators: check a class, derive its gradient, find it by type."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from types import CodeType, MethodType
from typing import Final, TypeVar

from paddlelike.core import AttrType
from paddlelike.errors import EnforceNotMet, GraphError
from paddlelike.framework.environment import PADDLE2_VERSION, PADDLE3_VERSION
from paddlelike.framework.opdef.attributes import COMMON_ATTRS, AttrTable
from paddlelike.framework.opdef.definition import OPERATORS, Kernel, OpDef
from paddlelike.framework.opdef.gradient import OWN, Gradient
from paddlelike.framework.opdef.slots import GRAD, Slot, grad_name
from paddlelike.left_out.reasons import OPERATORS as LEFT_OUT

#: Suffix in the table for the form that Paddle 2.x gave to an operator of Fluid 1.8.
LATER: Final = "@2"
#: The same for Paddle 3.x.
LATEST: Final = "@3"

OpClass = TypeVar("OpClass", bound="type[OpDef]")


def register(cls: OpClass) -> OpClass:
    """Check an operator class and put it, and its ``<type>_grad``, into the table.

    Raises GraphError when the type is taken, or a function's arguments do not fit slots and attributes.
    """
    complete(cls)
    OPERATORS.register(cls.type, cls)
    if cls.gradient is not None and "backward" in _list_functions(cls):
        grad = _derive_grad(cls, cls.gradient)
        OPERATORS.register(grad.type, grad)
    return cls


def complete(cls: type[OpDef]) -> None:
    """Check an operator class and fill in what is derived from its declaration.

    Raises GraphError when a function's arguments do not fit the slots and attributes.
    """
    cls.input_slots = tuple(Slot.parse(text) for text in cls.inputs)
    cls.output_slots = tuple(Slot.parse(text) for text in cls.outputs)
    cls.attr_order = (cls.fluid_order.split() if cls.since == "1" else []) or list(cls.attrs)
    plain = (name for name, attr in cls.attrs.items() if attr.type not in (AttrType.BLOCK, AttrType.BLOCKS))
    cls.plain_attrs = frozenset([*plain, *COMMON_ATTRS])
    have = _list_functions(cls)
    count = len(cls.input_slots)
    if "forward" in have:
        cls.context = _takes_context(cls.forward)
    cls.infer_attrs, _ = _check_keywords(cls, cls.infer, count) if "infer" in have else ((), False)
    cls.forward_attrs, cls.takes_wanted = (
        _check_keywords(cls, cls.forward, count + cls.context) if "forward" in have else ((), False)
    )


def find(type: str) -> type[OpDef]:
    """Return the operator called ``type``; raise EnforceNotMet when there is none."""
    found = OPERATORS.get(type)
    if found is None:
        raise EnforceNotMet(
            f"operator {type!r} is not known here" + (f": {LEFT_OUT[type].why}" if type in LEFT_OUT else ""),
            hint="a program that holds it can be printed, pruned, converted and saved, but not run",
        )
    return found


def find_or_none(type: str) -> type[OpDef] | None:
    """Return the operator called ``type``, or None without one."""
    return OPERATORS.get(type)


def find_for_version(type: str, version: int) -> type[OpDef] | None:
    """Return the operator ``type`` as a given version of Paddle defines it, or None without one."""
    for mark, since in ((LATEST, PADDLE3_VERSION), (LATER, PADDLE2_VERSION)):
        if version >= since and (later := OPERATORS.get(type + mark)) is not None:
            return later
    return OPERATORS.get(type)


def all_ops() -> Mapping[str, type[OpDef]]:
    """Return every operator by type, gradients included (a copy)."""
    return OPERATORS.all()


def _takes_context(function: Kernel) -> bool:
    """Return whether the first parameter of a kernel is ``ctx``."""
    code: CodeType = inspect.unwrap(function).__code__
    first = code.co_varnames[isinstance(function, MethodType) :][:1]  # without cls
    return first == ("ctx",) and code.co_argcount > 0


def _list_functions(cls: type) -> set[str]:
    return {n for n in ("infer", "forward", "backward") if callable(getattr(cls, n, None))}


def _check_keywords(cls: type[OpDef], function: Kernel, expected: int) -> tuple[tuple[str, ...], bool]:
    """Return the attributes that a function takes, and whether it takes the keyword ``wanted``.

    Raises GraphError unless it takes that many arrays and only attributes of the operator.
    """
    # Read from the code object: inspect.signature takes 100 times as long.
    code: CodeType = inspect.unwrap(function).__code__
    keywords = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    positional = code.co_argcount - isinstance(function, MethodType)  # without cls
    variadic = bool(code.co_flags & inspect.CO_VARARGS)
    if not variadic and positional != expected:
        raise GraphError(
            f"operator {cls.type!r}: {function.__name__} takes {positional} positional "
            f"arguments, but its slots need {expected}"
        )
    known = ("attrs",) if isinstance(cls.attrs, AttrTable) else tuple(cls.attrs)
    if code.co_flags & inspect.CO_VARKEYWORDS:
        return known, False
    unknown = [name for name in keywords if name not in known and name != "wanted"]
    if unknown:
        raise GraphError(f"operator {cls.type!r}: {function.__name__} needs the unknown attributes {unknown}")
    return tuple(name for name in keywords if name != "wanted"), "wanted" in keywords


def _derive_grad(cls: type[OpDef], gradient: Gradient) -> type[OpDef]:
    """Return ``<type>_grad`` with the kernel ``backward``; a gradient has the shape of its variable."""
    marks = {slot.name: text for slot, text in zip(cls.input_slots, cls.inputs, strict=True)}
    marks |= {slot.name: text for slot, text in zip(cls.output_slots, cls.outputs, strict=True)}

    def marked(name: str) -> str:
        slot = name.rstrip("*?")
        base = slot.removesuffix(GRAD)
        return slot + (name[len(slot) :] or marks[base][len(base) :])

    outputs = gradient.outputs
    if outputs is None:
        outputs = tuple(grad_name(slot.name) for slot in cls.input_slots)
    grad = type(
        cls.__name__ + "Grad",
        (OpDef,),
        {
            "__doc__": f"Gradient of ``{cls.type}``.",
            "__module__": cls.__module__,
            "type": cls.type + "_grad",
            "inputs": tuple(marked(name) for name in gradient.inputs),
            "outputs": tuple(marked(name) for name in outputs),
            "attrs": cls.attrs,
            "external": cls.external,
            "any_order": cls.any_order,
            "by_element": cls.by_element,
            "lods_only": cls.lods_only,
            "traceable": cls.traceable and gradient.traceable,
            "shapes_of": gradient.shapes_of,
            "reorders": cls.reorders,
            "lod": _find_lod_sources(gradient, outputs),
            "views": cls.views if gradient.views is None else gradient.views,
            "forward": staticmethod(cls.backward),
            "specialize": cls.specialize_grad,
            "make_overwriting_kernel": cls.make_overwriting_grad_kernel,
            "forward_of": cls,
        },
    )
    complete(grad)
    return grad


def _find_lod_sources(gradient: Gradient, outputs: Sequence[str]) -> Mapping[str, str] | None:
    """Return for each gradient the input slot whose LoD it gets."""
    slots = [name.rstrip("*?") for name in outputs]
    read = {name.rstrip("*?") for name in gradient.inputs}
    own = gradient.lod_in_run == OWN
    found = {slot: slot.removesuffix(GRAD) if own else gradient.lod_in_run for slot in slots}
    return {slot: source for slot, source in found.items() if source in read} or None
