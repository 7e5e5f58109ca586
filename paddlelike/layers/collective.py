"""``fluid.layers.collective``: layers that exchange values with the other workers of a job.

Scripts seldom call these layers: the transpilers put the operators into the program. Every worker runs them
at the same place of its program.
"""

from __future__ import annotations

from typing import Any, Final

from paddlelike import unique_name
from paddlelike.errors import ShapeError
from paddlelike.framework import Variable
from paddlelike.layers.helper import LayerHelper

_REDUCE_TYPES: Final = ("sum", "prod", "max", "min")  # in the order of the attribute of ``allreduce``


def _allreduce(
    x: Variable, out: Variable | None = None, reduce_type: str = "sum", sync_mode: bool = False
) -> Variable:
    """Append ``allreduce`` and return its output. Raises TypeError for any other ``reduce_type``."""
    _check_type(reduce_type)
    helper = LayerHelper("allreduce")
    if out is None:
        out = _create_like(helper, x, "tmp", x.shape, stop_gradient=True)
    attrs = {"reduce_type": _REDUCE_TYPES.index(reduce_type), "sync_mode": sync_mode}
    helper.append_op(type="allreduce", inputs={"X": [x]}, outputs={"Out": [out]}, attrs=attrs)
    return out


def _broadcast(x: Variable, root: int, sync_mode: bool = False) -> Variable:
    """Append ``broadcast``, which gives ``x`` the value of worker ``root``; return ``x``."""
    return _append(LayerHelper("broadcast"), x, x, {"sync_mode": sync_mode, "root": root})


def _c_allreduce(
    x: Variable,
    out: Variable | None = None,
    reduce_type: str = "sum",
    ring_id: int = 0,
    use_calc_stream: bool = False,
) -> Variable:
    """Append ``c_allreduce_<reduce_type>`` and return its output. Raises TypeError for another type.

    (Fluid 1.8.5 misspells ``prod``, so that a script cannot name it.)
    """
    _check_type(reduce_type)
    helper = LayerHelper("c_allreduce")
    type = f"c_allreduce_{reduce_type}"  # noqa: A001  (the name of the argument)
    if out is None:
        out = _create_like(helper, x, type, x.shape)
    return _append(helper, x, out, {"ring_id": ring_id, "use_calc_stream": use_calc_stream}, type)


def _c_broadcast(x: Variable, root: int = 0, ring_id: int = 0, use_calc_stream: bool = False) -> Variable:
    """Append ``c_broadcast``, which gives ``x`` the value of worker ``root``; return ``x``."""
    attrs = {"root": root, "ring_id": ring_id, "use_calc_stream": use_calc_stream}
    return _append(LayerHelper("c_broadcast"), x, x, attrs)


def _c_allgather(x: Variable, nranks: int, ring_id: int = 0, use_calc_stream: bool = False) -> Variable:
    """Append ``c_allgather`` and return the rows of all workers, ``nranks`` times as many."""
    helper = LayerHelper("c_allgather")
    rows = x.shape[0] * nranks if x.shape[0] > 0 else x.shape[0]
    out = _create_like(helper, x, "c_allgather", (rows, *x.shape[1:]))
    attrs = {"nranks": nranks, "ring_id": ring_id, "use_calc_stream": use_calc_stream}
    return _append(helper, x, out, attrs)


def _c_reducescatter(x: Variable, nranks: int, ring_id: int = 0, use_calc_stream: bool = False) -> Variable:
    """Append ``c_reducescatter`` and return this worker's rows of the sum.

    Raises TypeError unless ``x`` is a variable, ShapeError when its rows cannot be cut into ``nranks`` parts.
    """
    if not isinstance(x, Variable):
        raise TypeError(f"_c_reducescatter: x must be a variable, got {x!r}")
    if x.shape[0] > 0 and x.shape[0] % nranks:
        raise ShapeError(
            f"_c_reducescatter: x has {x.shape[0]} rows, which {nranks} workers cannot share equally"
        )
    helper = LayerHelper("c_reducescatter")
    rows = x.shape[0] // nranks if x.shape[0] > 0 else x.shape[0]
    out = _create_like(helper, x, "c_reducescatter", (rows, *x.shape[1:]))
    attrs = {"nranks": nranks, "ring_id": ring_id, "use_calc_stream": use_calc_stream}
    return _append(helper, x, out, attrs)


def _c_sync_calc_stream(x: Variable) -> Variable:
    """Append ``c_sync_calc_stream``; return ``x``."""
    return _append(LayerHelper("c_sync_calc_stream"), x, x, {})


def _c_sync_comm_stream(x: Variable, ring_id: int) -> Variable:
    """Append ``c_sync_comm_stream``, which waits for the exchanges before it; return ``x``."""
    return _append(LayerHelper("c_sync_comm_stream"), x, x, {"ring_id": ring_id})


def _check_type(reduce_type: str) -> None:
    if reduce_type not in _REDUCE_TYPES:
        raise TypeError(f"reduce_type is {reduce_type!r}, expected one of {', '.join(_REDUCE_TYPES)}")


def _create_like(helper: LayerHelper, x: Variable, suffix: str, shape: Any, **more: Any) -> Variable:
    return helper.create_variable(
        name=unique_name.generate(f"{x.name}.{suffix}"),
        shape=shape,
        dtype=x.dtype,
        type=x.type,
        persistable=x.persistable,
        **more,
    )


def _append(
    helper: LayerHelper, x: Variable, out: Variable, attrs: dict[str, Any], type: str | None = None
) -> Variable:
    op = helper.layer_type if type is None else type
    helper.append_op(type=op, inputs={"X": [x]}, outputs={"Out": [out]}, attrs=attrs)
    return out
