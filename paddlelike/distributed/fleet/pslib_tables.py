"""Lookups of pslib's programs, in growing tables that count clicks."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from paddlelike.core import VarType
from paddlelike.distributed import growing_tables
from paddlelike.distributed.fleet.pslib_settings import Lookup, Settings
from paddlelike.distributed.growing_tables import ShowClickEntry, sparse_embedding
from paddlelike.errors import GraphError
from paddlelike.framework import Program, Variable, default_main_program, program_guard
from paddlelike.initializer import insert_table
from paddlelike.layers import cast, elementwise_add, lod_reset, mean, scale, sequence_expand_as, unsqueeze
from paddlelike.layers.helper import LayerHelper

if TYPE_CHECKING:
    from paddlelike.framework import Block, Operator

_CLICK: Final = "click"  # label_var_name
LOOKUPS: Final = ("lookup_table", "lookup_table_v2")


def find_lookups(program: Program) -> list[Lookup]:
    """Return all look-ups in growing tables, in the order of the program."""
    return [
        Lookup(op.input("W")[0], op.input("Ids")[0], op.output("Out")[0])
        for op in program.global_block().ops
        if op.type == "sparse_embedding" or _is_distributed(op)
    ]


def _is_distributed(op: Operator) -> bool:
    return op.type in LOOKUPS and bool(op.attrs.get("is_distributed"))


def keep_frozen(loss: Variable) -> Variable:
    """Return a loss with zero gradients for tables that are not trained: servers keep only trained ones."""
    block = loss.block
    for op in [op for op in block.ops if _is_distributed(op)]:
        out = block.var(op.output("Out")[0])
        if out.stop_gradient:
            rows = block.create_var(dtype=out.dtype, shape=out.shape, lod_level=out.lod_level)
            inputs = {slot: op.input(slot) for slot in ("W", "Ids")}
            block.append_op(type=op.type, inputs=inputs, outputs={"Out": rows}, attrs=dict(op.attrs))
            loss = elementwise_add(loss, scale(mean(rows), 0.0))
    return loss


def grow_tables(program: Program, startup: Program, settings: Settings) -> None:
    """Turn look-ups with ``is_distributed`` into growing tables: pslib ignores table heights."""
    block, first = program.global_block(), startup.global_block()
    clicks: dict[str, str] = {}  # by the name of ids, the variable with a click for each
    for old in [op for op in block.ops if _is_distributed(op)]:
        (name,), (ids,), (out,) = old.input("W"), old.input("Ids"), old.output("Out")
        table = block.var(name)
        if table.type != VarType.SELECTED_ROWS:
            makes = [op for op in first.ops if name in op.output_arg_names]
            if not makes:
                raise GraphError(
                    f"fleet: the startup program does not make the table {name!r}",
                    hint="pass startup_programs=[...], the one that was current when the network was built",
                )
            first._remove_op(first.ops.index(makes[-1]))
            width = settings.find_width(name)
            if width is None:
                width = table.shape[1] if settings.has_counts else _find_width(table)
                settings.set_width(name, width)
            table.shape = first.var(name).shape = (1, width)
            table.type = first.var(name).type = VarType.SELECTED_ROWS
            insert_table(first.var(name), first, makes[-1].type, makes[-1].attrs)
        index = block.ops.index(old)
        block._remove_op(index)
        flat = old.type == "lookup_table"
        shape = (*block.var(ids).shape, table.shape[1])
        rows = (
            block.create_var(name=f"{out}@ROWS", dtype=table.dtype, shape=shape) if flat else block.var(out)
        )
        padding = max(old.attrs.get("padding_idx", -1), 0)  # pslib's servers have zeros for id 0
        with program_guard(program, startup):
            counts = growing_tables.find_counts(LayerHelper("sparse_embedding"), table)
        given = {"W": table, "Counts": counts, "Ids": ids}
        if block.has_var(_CLICK) and block.var(_CLICK).is_data:
            if ids not in clicks:
                clicks[ids], index = _insert_clicks(block, index, block.var(ids))
            given["Click"] = clicks[ids]
        block._insert_op(index, "sparse_embedding", given, {"Out": rows}, {"padding_idx": padding})
        if flat:
            squeezed = block.create_var(name=f"{out}@FLAT", dtype=table.dtype)
            where = {"Out": squeezed, "XShape": block.create_var(name=f"{out}@SHAPE", dtype=table.dtype)}
            block._insert_op(index + 1, "squeeze2", {"X": rows}, where, {"axes": [len(shape) - 2]})
            block._insert_op(index + 2, "lod_reset", {"X": squeezed, "Y": ids}, {"Out": out})


def _find_width(table: Variable) -> int:
    """Return how many columns a table has besides show and click, if no setting tells.

    Some scripts declare a width that counts show and click. A reshape of the network then fits only a table
    with two columns fewer.
    """
    block, width = table.block, table.shape[1]
    for op in block.ops:
        if op.type == "reshape2" and 0 not in op.attrs["shape"]:
            shapes = block.var(op.input("X")[0]).shape, op.attrs["shape"]
            size, wanted = (abs(math.prod(shape)) for shape in shapes)
            if size % wanted and wanted % size:
                return width - 2
    return width


def _insert_clicks(block: Block, index: int, ids: Variable) -> tuple[str, int]:
    """Insert operators that repeat the click of each sample for all ids or sequences of the sample.

    Return the name of the clicks, and the index after the operators.
    """
    like = {"dtype": "float32", "shape": (-1, 1), "stop_gradient": True}
    found, click = block.create_var(name=f"{ids.name}@CLICK", **like), block.var(_CLICK)
    attrs = {"in_dtype": click.dtype, "out_dtype": found.dtype}
    block._insert_op(index, "cast", {"X": click}, {"Out": found}, attrs)
    if not ids.lod_level:
        return found.name, index + 1
    spread = block.create_var(name=f"{ids.name}@CLICKS", lod_level=ids.lod_level, **like)
    block._insert_op(index + 1, "sequence_expand_as", {"X": found, "Y": ids}, {"Out": spread})
    return spread.name, index + 2


def _pull_sparse(
    input: Variable,
    size: int,
    table_id: int,
    accessor_class: str,
    name: str = "embedding",
    ctr_label_name: str = "",
    padding_id: int = 0,
    dtype: str = "float32",
    scale_sparse_grad: bool = True,
) -> Variable:
    """Return the rows of ids in the growing table ``name``, which counts shows and, from a variable, clicks.

    The result lacks the last dim of ids, which is 1; :func:`_pull_sparse_v2` keeps it.
    """
    entry = None
    if ctr_label_name:
        click = default_main_program().global_block().var(ctr_label_name)
        if input.lod_level:  # a click for each id of a sequence
            click = sequence_expand_as(cast(click, "float32"), input)
            click.stop_gradient = True
        entry = ShowClickEntry("", click.name)
    return sparse_embedding(input, [1, size], padding_id, entry=entry, param_attr=name, dtype=dtype)


def _pull_sparse_v2(input: Variable, *args: Any, **how: Any) -> Variable:
    return _keep_dim(_pull_sparse(input, *args, **how), input)


def _keep_dim(found: Variable, ids: Variable) -> Variable:
    """Return looked-up rows whose shape keeps the last dim of the ids."""
    wide = unsqueeze(found, [len(ids.shape) - 1]) if ids.shape[-1] == 1 else found
    return lod_reset(wide, ids) if ids.lod_level else wide


def _embed_flat(
    input: Variable,
    size: Sequence[int],
    is_sparse: bool = False,
    is_distributed: bool = False,
    padding_idx: int | None = None,
    param_attr: Any = None,
    dtype: str = "float32",
) -> Variable:
    if getattr(param_attr, "name", None) is None or not isinstance(size, list | tuple):
        raise ValueError("fleet_embedding: param_attr must have a name, and size must be a list or tuple")
    if not (is_sparse and is_distributed) or dtype != "float32":
        raise ValueError("fleet_embedding: is_sparse and is_distributed must be True, and dtype float32")
    name, click = param_attr.name, fleet_embedding.click_name
    return _pull_sparse(input, size[-1], 0, "DownpourCtrAccessor", name, click, padding_idx or 0)


def _embed(input: Variable, *args: Any, **how: Any) -> Variable:
    return _keep_dim(_embed_flat(input, *args, **how), input)


class fleet_embedding:  # noqa: N801  (pslib's name)
    """Inside a ``with``, ``fluid.layers.embedding`` and ``fluid.embedding`` look rows up in servers' tables.

    ``click_name`` is the variable with a click for each sample; None counts no clicks. ``scale_sparse_grad``
    has no effect: gradients are not scaled.
    """

    click_name = ""

    def __init__(self, click_name: str | None, scale_sparse_grad: bool = True) -> None:
        self._click_name = click_name or ""
        self._old: list[tuple[ModuleType, Callable[..., Variable]]] = []

    def __enter__(self) -> None:
        fleet_embedding.click_name = self._click_name
        for name, embed in ((".layers", _embed_flat), (".fluid", _embed), ("", _embed)):
            module = import_module(f"paddlelike{name}")
            self._old.append((module, module.embedding))
            module.__dict__["embedding"] = embed

    def __exit__(self, *_: object) -> None:
        fleet_embedding.click_name = ""
        for module, embed in self._old:
            module.__dict__["embedding"] = embed
        self._old.clear()
