"""Growing tables: ``sparse_embedding``, the entries that admit its ids, their counters, and ``shrink``.

A growing table has no fixed height: it makes a row at the first look-up of an id, and forgets rows that are
no longer used. The names are from Paddle 2.x (``paddle.static.nn``, ``paddle.distributed``, ``fleet``). The
tables are in the scope of this process, or on servers. With servers, trainer 0 calls them; in other trainers
these functions do nothing and return None or an empty dict.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from paddlelike.core import VarType, global_scope
from paddlelike.distributed.checkpoint.partitions import find_endpoint, find_placement
from paddlelike.distributed.placement import Kind
from paddlelike.errors import EnforceNotMet, GraphError, LoadError
from paddlelike.formats.paddle.directory import VariableDirectory
from paddlelike.formats.paddle.server_tables import ServerTables
from paddlelike.foundation.warn import warn_user
from paddlelike.framework import Program, Variable, default_main_program
from paddlelike.initializer import Constant
from paddlelike.io.load.load import load_vars
from paddlelike.io.save.save import save_vars
from paddlelike.layers import lod_reset, squeeze
from paddlelike.layers.emit import check_variable
from paddlelike.layers.helper import LayerHelper
from paddlelike.ops.kernels.growing_rows import GrowingRows, edit_table
from paddlelike.ops.nn.sparse_embedding import COUNTS
from paddlelike.storage.local.transaction import write_all
from paddlelike.storage.location import Location, locate

if TYPE_CHECKING:
    from paddlelike.core import DtypeLike
    from paddlelike.distributed.client.client import Client
    from paddlelike.executor.run import Executor
    from paddlelike.interop.convert import ConvertReport
    from paddlelike.interop.onnx.models import ModelReport
    from paddlelike.io.asynchronous import PendingSave
    from paddlelike.io.report import LoadReport, SaveReport
    from paddlelike.param_attr import ParamAttrLike

Answer = TypeVar("Answer")


class CountFilterEntry:
    """Admits an id once it was looked up ``count_filter`` times.

    Raises ValueError unless that is an integer of at least 0.

    >>> CountFilterEntry(10)._to_attr()
    'count_filter_entry:10'
    """

    def __init__(self, count_filter: int) -> None:
        if not isinstance(count_filter, int) or count_filter < 0:
            raise ValueError(f"count_filter must be an integer of at least 0, got {count_filter!r}")
        self._count_filter = count_filter

    def _to_attr(self) -> str:
        return f"count_filter_entry:{self._count_filter}"


class ProbabilityEntry:
    """Admits a share of all ids, in (0, 1). The choice depends on the id alone.

    Raises ValueError for another share.
    """

    def __init__(self, probability: float) -> None:
        if not isinstance(probability, float) or not 0 < probability < 1:
            raise ValueError(f"probability must be a float in (0, 1), got {probability!r}")
        self._probability = probability

    def _to_attr(self) -> str:
        return f"probability_entry:{self._probability}"


class ShowClickEntry:
    """Counts shows and clicks, which two variables give for each row of ids; admits all ids.

    With "" as a name, an id is shown at every look-up, and never clicked.

    Raises ValueError unless both names are texts.
    """

    def __init__(self, show_name: str, click_name: str) -> None:
        if not isinstance(show_name, str) or not isinstance(click_name, str):
            raise ValueError(f"show_name and click_name must be str, got {show_name!r} and {click_name!r}")
        self.names = show_name, click_name

    def _to_attr(self) -> str:
        return ":".join(["show_click_entry", *self.names])


def sparse_embedding(
    input: Variable,
    size: Sequence[int],
    padding_idx: int | None = None,
    is_test: bool = False,
    entry: CountFilterEntry | ProbabilityEntry | ShowClickEntry | None = None,
    table_class: str = "MemorySparseTable",
    param_attr: ParamAttrLike = None,
    dtype: DtypeLike = "float32",
    slot: int | None = None,
) -> Variable:
    """Return the rows of a growing table at any int64 ids.

    A row is made at the first look-up of its id that ``entry`` admits; its values depend on the initializer
    and the id alone. Until then, and with ``is_test``, it is zeros. Paddle's operator is ``lookup_table``.

    Parameters
    ----------
    input
        int64 ids, (...) or (..., 1).
    size
        ``[rows, width]``; the rows only set the initializer's default bounds.
    padding_idx
        An id whose row stays zeros; None for none.
    is_test
        Whether look-ups add no rows.
    entry
        The rule that admits new ids, such as ``CountFilterEntry(3)``; None for all ids.
    table_class
        "SSDSparseTable" moves rows that were not used for long to the disk. Other
        classes change nothing.
    param_attr
        The table: a :class:`~paddlelike.ParamAttr` or a name, with a constant, uniform or normal
        initializer.
    dtype
        The element type of the rows.
    slot
        It has no effect, as in Paddle.

    Returns
    -------
    Variable
        The rows, (..., width).

    Raises
    ------
    TypeError
        ``input`` is not an int64 variable.
    GraphError
        ``entry`` or the initializer has another kind.

    See Also
    --------
    fluid.embedding

    >>> import paddlelike as fluid
    >>> ids = fluid.data("ids", [None, 2], "int64")
    >>> sparse_embedding(ids, [1, 8], entry=CountFilterEntry(3)).shape
    (-1, 2, 8)
    """
    check_variable("sparse_embedding", "input", input, (VarType.INT64,))
    if entry is not None and not isinstance(entry, CountFilterEntry | ProbabilityEntry | ShowClickEntry):
        raise GraphError(
            f"sparse_embedding: entry is {entry!r}",
            hint="expected CountFilterEntry, ProbabilityEntry or ShowClickEntry of this module, or None",
        )
    helper = LayerHelper("sparse_embedding")
    table = helper.create_parameter(param_attr, size, dtype, type=VarType.SELECTED_ROWS)
    counts = find_counts(helper, table)
    is_stored = table_class == "SSDSparseTable"
    block = helper.main_program.global_block()
    for op in helper.startup_program.global_block().ops if is_stored else ():
        if op.type == "make_sparse_table" and op.output("Out")[0] in (table.name, counts.name):
            op._set_attr("is_stored", True)
    inputs: dict[str, Any] = {"W": table, "Counts": counts, "Ids": input}
    if isinstance(entry, ShowClickEntry):
        inputs |= {
            slot: block.var(one) for slot, one in zip(("Show", "Click"), entry.names, strict=True) if one
        }
    out = helper.create_variable_for_type_inference(dtype)
    attrs = {
        "padding_idx": -1 if padding_idx is None else padding_idx,
        "is_test": is_test,
        "entry": "none" if entry is None else entry._to_attr(),
    }
    helper.append_op(type="sparse_embedding", inputs=inputs, outputs={"Out": out}, attrs=attrs)
    if len(input.shape) == 1 or input.shape[-1] != 1:
        return out
    flat = squeeze(out, [len(input.shape) - 1])
    return lod_reset(flat, input) if input.lod_level else flat


def find_counts(helper: LayerHelper, table: Variable) -> Variable:
    """Return the counters of a table, creating missing ones."""
    name, block = f"{table.name}_counts", helper.main_program.global_block()
    if block.has_var(name):
        return block.var(name)
    counts = helper.create_global_variable(
        name=name,
        shape=[table.shape[0], len(COUNTS)],
        dtype="float32",
        type=VarType.SELECTED_ROWS,
        persistable=True,
    )
    counts.stop_gradient = True
    helper.set_variable_initializer(counts, Constant(0.0))
    return counts


def shrink(
    threshold: float | None = None,
    program: Program | None = None,
    *,
    show_click_decay_rate: float = 0.98,
    delete_after_unseen_days: float = 30,
    nonclk_coeff: float = 0.1,
    click_coeff: float = 1.0,
    days: float = 1,
    table: str | None = None,
) -> dict[str, int]:
    """End a day: remove ids that are old or have a low score; return how many were removed, by table.

    All tables are shrunk, or ``table`` alone. Each call adds ``days`` to the ages of ids that were not seen
    since, and multiplies shows and clicks by ``show_click_decay_rate``. An id is forgotten, with its row,
    state and counters, when it was not seen for more than ``delete_after_unseen_days``, or when its score is
    below ``threshold`` (None means never). The score is ``nonclk_coeff`` times shows without a click plus
    ``click_coeff`` times clicks. The coefficients, and the order of decay and score, are those of Paddle's
    accessors (``CtrCommonAccessor::Shrink`` in ``distributed/ps/table/ctr_accessor.cc``).
    """
    answers = _edit_tables(
        program,
        "shrink",
        table,
        threshold=threshold,
        show_click_decay_rate=show_click_decay_rate,
        delete_after_unseen_days=delete_after_unseen_days,
        nonclk_coeff=nonclk_coeff,
        click_coeff=click_coeff,
        days=days,
    )
    return {name: int(answer["forgotten"]) for name, answer in answers.items()}


def age(program: Program | None = None) -> None:
    """Add a day to the age of all ids not seen since, and remove nothing."""
    _edit_tables(program, "age")


def clear(program: Program | None = None, table: str | None = None) -> None:
    """Remove all rows, optimizer state and counters of all tables, or of one."""
    _edit_tables(program, "clear", table)


def print_table_stat(program: Program | None = None, table: str | None = None) -> dict[str, dict[str, float]]:
    """Print and return statistics of every table, or one: rows, counted ids, shows, clicks, bytes."""
    found = _edit_tables(program, "count")
    found = {name: answer for name, answer in found.items() if table in (None, name)}
    for name, answer in found.items():
        del answer["forgotten"]
        text = ", ".join(f"{key} {value:.15g}" for key, value in answer.items())
        print(f"{name}: {text}")  # noqa: T201  (what it is for)
    return found


def save_one_table(
    executor: Executor,
    name: str,
    path: str,
    program: Program | None = None,
    *,
    format: str | ServerTables | None = None,  # noqa: A002  (the field's word)
    **options: Any,
) -> SaveReport | PendingSave | ConvertReport | ModelReport | bytes | None:
    """Save a table, its counters and its optimizer state to a directory of Paddle's SelectedRows streams.

    ``format="server_tables"`` writes the text that Paddle 2's servers load; for other servers than the
    default use ``ServerTables(shards=...)`` with their ``shard_num``.
    """
    variables = _list_variables(name, program)
    found: SaveReport | PendingSave | bytes | None
    if format is None:
        found = save_vars(executor, path, program, vars=variables, **options)
        return found
    from paddlelike.interop.convert import convert

    with tempfile.TemporaryDirectory() as folder:
        found = save_vars(executor, folder, program, vars=variables + _list_powers(name, program))
        return None if found is None else convert(folder, path, format, overwrite=True, **options)


def load_one_table(
    executor: Executor, name: str, path: str, program: Program | None = None
) -> LoadReport | None:
    """Load a table that :func:`save_one_table` or ``save_persistables`` saved; run the startup program
    before.

    With a trainer's program the servers load it, each its rows, from a directory that they may write into.
    Saves of Paddle 2's servers (``DIR`` or ``DIR/000``) are read too: rows, counters, and the state of this
    program's optimizer. A warning names other state, such as Adam's powers of each row.
    """
    program = default_main_program() if program is None else program
    variables, where = _list_variables(name, program), locate(path)
    if not (where.exists() and ServerTables().sniff(where)):
        return _load_table(executor, path, program, variables)
    beside = Path(path).absolute().parent if _is_on_servers(program) else None
    with tempfile.TemporaryDirectory(dir=beside) as folder:
        held = _copy_table(where, folder, name, variables, list_tables(program))
        return _load_table(executor, folder, program, held)


def _load_table(
    executor: Executor, path: str, program: Program, variables: list[Variable]
) -> LoadReport | None:
    if _is_on_servers(program):
        names = [one.name for one in variables]
        return _ask_servers(program, lambda client: client.load_table(path, names))
    return load_vars(executor, path, program, vars=variables)


def _is_on_servers(program: Program) -> bool:
    return find_placement(program) is not None and find_endpoint(program) is None


def _copy_table(
    where: Location, folder: str, name: str, variables: list[Variable], tables: list[str]
) -> list[Variable]:
    """Convert a table saved by Paddle 2's servers to streams with our names; return its variables."""
    rows = next(one for one in variables if one.name == name)
    read = ServerTables(width=rows.shape[1]).read_all(where)
    found = sorted(key.removesuffix("_counts") for key in read if key.endswith("_counts"))
    if len(found) not in (1, len(tables)):
        raise LoadError(
            f"{where.path} holds the tables {', '.join(found)}, the program {', '.join(tables)}",
            hint=f"name the folder of the table, such as {where.path}/{found[0]}",
        )
    mine = found[tables.index(name) if len(found) > 1 else 0]
    values = {name + key.removeprefix(mine): value for key, value in read.items() if key.startswith(mine)}
    held = [one for one in variables if one.name in values]
    left = [key.removeprefix(name) for key in sorted(values.keys() - {one.name for one in held})]
    absent = [one.name.removeprefix(name) for one in variables if one.name not in values]
    if left := [end for end in left if end != "_stats"] + absent:
        warn_user(
            f"load_one_table: the state {', '.join(left)} of {name!r} is only in the file or only in "
            "the program: the program's values are unchanged"
        )
    files = VariableDirectory().write({one.name: values[one.name] for one in held})
    write_all(folder, dict(files))
    return held


def load_all(path: str, program: Program) -> None:
    """Let running servers load all their variables from a directory that they may write into."""
    _ask_servers(program, lambda client: client.load_table(path, None))


def copy_table(source: str, target: str, program: Program) -> None:
    """Copy the rows of one table on servers to another; counters stay, optimizer state starts from zero."""
    _ask_servers(program, lambda client: client.edit_tables("copy", source, to=target))


def list_tables(program: Program) -> list[str]:
    """Return the names of a program's tables, in the order of their first look-ups."""
    looked_up = [name for op in program.global_block().ops for name in op.inputs.get("W", ())]
    return sorted(_find_tables(program), key=lambda name: looked_up.index(name) if name in looked_up else -1)


def find_name(table: int | str, program: Program) -> str:
    """Return the name of a table, given its name or its index among the program's tables."""
    names = list_tables(program)
    if isinstance(table, int) and 0 <= table < len(names):
        return names[table]
    if table not in names:
        raise GraphError(
            f"the program has no table {table!r}", hint=f"use one of its tables: {', '.join(names) or 'none'}"
        )
    return str(table)


def _edit_tables(
    program: Program | None, do: str, only: str | None = None, **how: Any
) -> dict[str, dict[str, float]]:
    """Call an action for every table, here or on the servers; return the sums of the results."""
    program = default_main_program() if program is None else program
    if find_placement(program) is not None:
        return _add_up(_ask_servers(program, lambda client: client.edit_tables(do, only, **how)) or ())
    return {
        name: edit_table(do, table, counts, states, **how)
        for name, others in _find_tables(program).items()
        if only in (None, name)
        for table, counts, *states in [[_find_rows(one) for one in others]]
    }


def _ask_servers(program: Program, ask: Callable[[Client], Answer]) -> Answer | None:
    """Return the servers' answer to trainer 0, or None to the others."""
    if not program._is_chief:
        return None
    from paddlelike.distributed.client.trainers import find_client, find_trainer_id  # late: needs a wire

    block = program.global_block()
    return ask(find_client(global_scope(), find_trainer_id(block), block))


def _add_up(answers: Iterable[dict[str, dict[str, float]]]) -> dict[str, dict[str, float]]:
    total: dict[str, dict[str, float]] = {}
    for answer in answers:
        for name, numbers in answer.items():
            into = total.setdefault(name, dict.fromkeys(numbers, 0))
            for key, value in numbers.items():
                into[key] += value
    return total


def _find_tables(program: Program) -> dict[str, list[str]]:
    """Return the names of the variables of each table: its rows, its counts and its optimizer state."""
    placement = find_placement(program)
    if placement is not None:
        growing = [one for one in placement if one.kind == Kind.GROWING]
        tables = dict.fromkeys(one.origin for one in growing if not one.owner)
        owned = [(one.owner, one.origin) for one in growing]
        return {name: [name, *dict.fromkeys(o for owner, o in owned if owner == name)] for name in tables}
    found: dict[str, list[str]] = {}
    ops = program.global_block().ops
    for op in ops:
        if op.type == "sparse_embedding":
            name = op.input("W")[0]
            found.setdefault(name, [name, op.input("Counts")[0]])
    for op in ops:
        for name in found.keys() & set(op.outputs.get("ParamOut", ())):
            state = {one for one in op.output_arg_names if one not in found[name]}
            found[name] += sorted(one for one in state if _is_table(program, one))
    return found


def _is_table(program: Program, name: str) -> bool:
    return program.global_block().var(name).type == VarType.SELECTED_ROWS


def _list_variables(name: str, program: Program | None) -> list[Variable]:
    """Return the variables of a table. A trainer's program has no optimizer state: only servers do."""
    program = default_main_program() if program is None else program
    tables = _find_tables(program)
    find_name(name, program)
    placement, block, others = find_placement(program), program.global_block(), Program().global_block()
    slices = {} if placement is None else {one.origin: one for one in placement}
    return [
        block.var(one)
        if block.has_var(one)
        else others.create_var(name=one, persistable=True, type=VarType.SELECTED_ROWS, **slices[one].like)
        for one in tables[name]
    ]


def _list_powers(name: str, program: Program | None) -> list[Variable]:
    """Return the variables of the powers of Adam's betas, if the table's optimizer has them."""
    block = (default_main_program() if program is None else program).global_block()
    ends = ("_beta1_pow_acc_0", "_beta2_pow_acc_0")
    return [block.var(name + end) for end in ends if block.has_var(name + end)]


def _find_rows(name: str) -> GrowingRows:
    holder = global_scope().find_var(name)
    if holder is None or not isinstance(holder.value, GrowingRows):
        raise EnforceNotMet(
            f"the scope has no table {name!r}", hint="run the startup program; is it the right scope_guard?"
        )
    return holder.value
