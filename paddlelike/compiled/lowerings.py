"""The table of lowerings: for each type of operator a function of ``jax.numpy``.

A lowering takes arrays by position, one per input slot, as kernels do (a list for a slot of several
variables, None for an absent one), and the attributes that it names as keywords; with the keyword ``ctx`` it
gets the :class:`~paddlelike.compiled.tracing.context.OpContext` as well. It returns one result per output
slot.

    @lowers("relu")
    def relu(x):
        return jnp.maximum(x, 0)

The gradient operator of a lowering is its ``jax.vjp``, unless ``<type>_grad`` has a row of its own. An
operator whose kernel is one expression of numpy functions needs no row: JAX evaluates the expressions of the
operator and of its gradient. Operators whose kernels JAX cannot evaluate say ``traceable = False``.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import jax.numpy as jnp
import numpy as np

from paddlelike.compiled import lowering
from paddlelike.compiled.formulas import translate
from paddlelike.framework.opdef import OpDef, registry

#: The results of a lowering of several outputs.
Results = tuple[Any, ...]

_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


class Lowering(NamedTuple):
    """The lowering of an operator.

    Attributes
    ----------
    function
        Takes a context, the arguments by slot, and the operator.
    handles_sequences
        Whether it takes sequences with padding (:class:`~paddlelike.compiled.values.Packed`) itself.
    draws
        Whether it uses random values, which the host draws.
    by_vjp
        Whether it is the derivative of the forward operator's lowering.
    without
        Input slots that the gradient operator does not get and whose values it does not depend on, each with
        a slot of the same shape.
    takes_constants
        Whether numbers that are known during tracing are passed to it as numpy arrays.
    traces_gradient
        Whether the gradient operator is computed by the formula of its kernel instead.
    """

    function: Callable[..., Any]
    handles_sequences: bool = False
    draws: bool = False
    by_vjp: bool = False
    without: Mapping[str, str] = _NOTHING
    takes_constants: bool = False
    traces_gradient: bool = False


_ROWS: Final[dict[str, Lowering]] = {}
_ACROSS: Final[dict[str, Lowering]] = {}


def lowers(
    *types: str,
    sequences: bool = False,
    draws: bool = False,
    constants: bool = False,
    across_rows: bool = False,
    without: Mapping[str, str] = _NOTHING,
    traces_gradient: bool = False,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that puts a function into the table, for operators of these types.

    ``across_rows`` says that the lowering takes sequences; it is for operators that do not work on each
    row alone.
    """

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        parameters = inspect.signature(function).parameters.values()
        names = [one.name for one in parameters if one.kind is inspect.Parameter.KEYWORD_ONLY]
        attributes = [name for name in names if name != "ctx"]
        takes_context = "ctx" in names

        def call(ctx: Any, args: list[Any], cls: type[OpDef], given: Mapping[str, Any]) -> Any:
            keywords = {name: given.get(name, cls.attrs[name].fallback) for name in attributes}
            if takes_context:
                keywords["ctx"] = ctx
            return function(*args, **keywords)

        row = Lowering(
            call,
            sequences or across_rows,
            draws,
            without=without,
            takes_constants=constants,
            traces_gradient=traces_gradient,
        )
        add_rows(types, row, across_rows=across_rows)
        return function

    return register


def add_rows(types: Iterable[str], row: Lowering, *, across_rows: bool = False) -> None:
    """Put a lowering into the table, for operators of these types; ``across_rows``: see :func:`lowers`."""
    table = _ACROSS if across_rows else _ROWS
    for type in types:
        assert type not in table, type
        table[type] = row


@functools.cache
def load_lowerings() -> Mapping[str, Lowering]:
    """Return the rows of all families."""
    for module in pkgutil.walk_packages(lowering.__path__, f"{lowering.__name__}."):
        importlib.import_module(module.name)
    return _ROWS


def find_lowering(cls: type[OpDef]) -> Lowering | None:
    """Return the lowering of an operator, or None without one."""
    found = load_lowerings().get(cls.type)
    if found is not None:
        return found
    sees_the_run = cls.external or (cls.context and not cls.lods_only)
    has_formula = cls.traceable and hasattr(cls, "forward") and not sees_the_run
    base = find_forward(cls)
    forward = None if base is None else find_lowering(base)
    if base is not None and (forward is None or not (has_formula and forward.traces_gradient)):
        return forward and forward._replace(by_vjp=True)
    return Lowering(evaluate_kernel, takes_constants=True, traces_gradient=True) if has_formula else None


def find_across_rows(cls: type[OpDef]) -> Lowering | None:
    """Return the lowering of an operator that mixes the rows of sequences, or None for other operators."""
    load_lowerings()
    return _ACROSS.get(cls.type)


def find_forward(cls: type[OpDef]) -> type[OpDef] | None:
    """Return the operator that ``cls`` is the gradient of, or None if ``cls`` is not a gradient."""
    return cls.forward_of


def evaluate_kernel(ctx: Any, args: list[Any], cls: type[OpDef], given: Mapping[str, Any]) -> Any:
    """Evaluate the formula of an operator's kernel for arrays of JAX."""
    keywords = cls.make_forward_keywords(given, ctx.op.outputs)
    kernel = translate(cls.forward)
    args = [_leave_integers(arg) for arg in args]
    return kernel(ctx, *args, **keywords) if cls.context else kernel(*args, **keywords)


def _leave_integers(arg: Any) -> object:
    """Convert an argument to JAX. Integer constants, which are sizes and axes, stay arrays of numpy."""
    if isinstance(arg, list):
        return [_leave_integers(one) for one in arg]
    return jnp.asarray(arg) if isinstance(arg, np.ndarray) and arg.dtype.kind != "i" else arg


def knows_no_lod(cls: type[OpDef]) -> bool:
    """Return whether an operator treats sequences like an array of the same rows, without a LoD."""
    return not cls.context or (bool((cls.forward_of or cls).by_row) and find_across_rows(cls) is None)


def list_lowered() -> list[str]:
    """Return the types of all operators that have a lowering."""
    return [type for type, cls in registry.all_ops().items() if find_lowering(cls) is not None]
