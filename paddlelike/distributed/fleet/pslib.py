"""``fluid.incubate.fleet.parameter_server.pslib``: the face of Baidu's own servers, on those of this package.

Sparse tables are growing tables; training is asynchronous, by the optimizer that the script gives, for
the tables as well.

Counters follow pslib's accessors (``distributed/table/downpour_accessor.cc`` of Paddle): each id of a batch
counts a show, and a click where the label of its sample is 1. The label is the variable of
``fleet_embedding(click_name=...)``, or else the one named ``click`` (``label_var_name`` in 1.8.5's
``device_worker.py``). ``shrink_sparse_table`` multiplies shows and clicks, then forgets what scores too
little or was not seen for too many days. A save with ``mode=3`` ends a day: what was not seen since is a
day older.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from paddlelike.core.dtypes import VarType
from paddlelike.core.scope import Scope, scope_guard
from paddlelike.core.tensor import SelectedRows
from paddlelike.distributed import growing_tables
from paddlelike.distributed.fleet.base import Mode
from paddlelike.distributed.fleet.optimizer import TranspilerOptimizer
from paddlelike.distributed.fleet.parameter_server import DistributedTranspiler
from paddlelike.distributed.fleet.role_maker import PaddleCloudRoleMaker
from paddlelike.distributed.fleet.strategy import AsyncStrategy
from paddlelike.distributed.growing_tables import ShowClickEntry, sparse_embedding
from paddlelike.errors import GraphError, UnsupportedError
from paddlelike.executor import Executor
from paddlelike.formats.paddle.directory import VariableDirectory
from paddlelike.foundation.warn import warn_user
from paddlelike.framework.graph.guards import default_main_program, default_startup_program, program_guard
from paddlelike.framework.graph.program import Program
from paddlelike.framework.graph.variable import Variable
from paddlelike.initializer import insert_table
from paddlelike.io import load_vars, save_persistables, save_vars
from paddlelike.layers import cast, elementwise_add, lod_reset, mean, scale, sequence_expand_as, unsqueeze
from paddlelike.layers.helper import LayerHelper
from paddlelike.storage.location import locate

if TYPE_CHECKING:
    from paddlelike.distributed.fleet.role_maker_base import RoleMakerBase
    from paddlelike.framework.graph.block import Block
    from paddlelike.io.report import SaveReport
    from paddlelike.optimizer.base import Optimizer

_CLICK: Final = "click"  # label_var_name
_LOOKUPS: Final = ("lookup_table", "lookup_table_v2")
#: By ``mode`` of pslib's saves: all, the difference, a base, all.
_MODES: Final[dict[int, dict[str, Any]]] = {0: {}, 1: {"delta": True}, 2: {"delta": "base"}, 3: {}}
_END_OF_DAY: Final = 3
#: By the key of a strategy, the argument of ``shrink`` and pslib's own value.
_ACCESSOR: Final = {
    "sparse_delete_threshold": ("threshold", 0.8),
    "sparse_show_click_decay_rate": ("show_click_decay_rate", 0.98),
    "sparse_delete_after_unseen_days": ("delete_after_unseen_days", 30),
    "sparse_nonclk_coeff": ("nonclk_coeff", 0.1),
    "sparse_click_coeff": ("click_coeff", 1.0),
}


#: Settings of pslib's trainers that would change numbers, or write files.
_WITHOUT_EFFECT: Final = {
    "adjust_ins_weight", "check_nan_var_names", "dump_fields", "dump_param", "scale_datanorm", "use_cvm",
}  # fmt: skip


class DownpourOptimizer(TranspilerOptimizer):
    """An optimizer whose ``minimize`` makes the programs of asynchronous training with servers.

    ``sparse_delete_threshold``, ``sparse_show_click_decay_rate``, ``sparse_delete_after_unseen_days``,
    ``sparse_nonclk_coeff`` and ``sparse_click_coeff`` say what is forgotten: of the dict of a table in the
    dict ``strategy``, or else of ``strategy`` itself.
    """

    def __init__(self, optimizer: Optimizer, strategy: Mapping[str, Any] | None = None) -> None:
        super().__init__(fleet, optimizer, AsyncStrategy())
        fleet._accessor = dict(strategy or {})
        if unknown := sorted(key for key in fleet._accessor.keys() & _WITHOUT_EFFECT if fleet._accessor[key]):
            warn_user(f"fleet.distributed_optimizer: pslib's {', '.join(unknown)} have no effect here")

    def minimize(  # type: ignore[override]
        self, losses: Any, scopes: Any = None, startup_programs: Any = None, *args: Any, **how: Any
    ) -> Any:
        """See :meth:`.TranspilerOptimizer.minimize`; lists of one are taken. The training's scope counts.

        Without a startup program it is the one of the ``program_guard`` in which the network was built.
        Raises UnsupportedError for several losses, otherwise as that method.
        """
        several = [one for one in (losses, scopes, startup_programs) if isinstance(one, list | tuple)]
        if any(len(one) != 1 for one in several):
            raise UnsupportedError(
                f"fleet.minimize: {max(map(len, several))} losses at once are not supported",
                hint="train their sum, or each by a job of its own that goes on from the other's saves",
            )
        loss, scope, startup = (
            one[0] if isinstance(one, list | tuple) else one for one in (losses, scopes, startup_programs)
        )
        program = loss.block.program
        startup = startup or program._startup or default_startup_program()
        fleet._scope = scope
        copies = _Copies(fleet._accessor.get("copy_table") or {})
        with program_guard(program, startup):
            loss = copies.keep_targets(loss)
        _grow_tables(program, startup)
        made = list(super().minimize(loss, scope, startup, *args, **how))
        fleet._opt_info = _describe(program, made[1], fleet._accessor)
        main = fleet.main_program
        if main is not None and copies.config.get("need_copy"):
            main._before_batch = copies.copy
        return made


class _Copies:
    """What ``copy_table`` of a strategy copies before each ``batch_num`` batches of ``train_from_dataset``.

    Tables are copied whole on the servers, variables in this trainer (``DownpourWorker::CopySparseTable`` and
    ``CopyDenseVars`` in ``framework/downpour_worker.cc``).
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        self.config = config
        self.tables = self._pair("sparse_tables")
        self.variables = self._pair("var_list")
        if self._pair("dense_tables"):
            raise UnsupportedError(
                "fleet.minimize: copy_table copies the dense table of one loss to that of another, and there "
                "is one loss here",
                hint="name the parameters: src_var_list and dest_var_list",
            )

    def _pair(self, what: str) -> list[tuple[Any, Any]]:
        """Return the sources and targets of a kind; a value that is not a list is a list of one."""
        both = [self.config.get(f"{side}_{what}", []) for side in ("src", "dest")]
        source, target = ([one] if not isinstance(one, list) else one for one in both)
        if len(source) != len(target):
            names = f"src_{what} has {len(source)} entries, dest_{what} {len(target)}"
            raise ValueError(f"fleet.minimize: copy_table: {names}")
        return list(zip(source, target, strict=True))

    def keep_targets(self, loss: Variable) -> Variable:
        """Return a loss with zeros as gradients of the targets: servers keep tables that are trained."""
        block, targets = loss.block, {target for _, target in self.tables}
        for op in [op for op in block.ops if op.type in _LOOKUPS and op.input("W")[0] in targets]:
            out = block.var(op.output("Out")[0])
            rows = block.create_var(dtype=out.dtype, shape=out.shape, lod_level=out.lod_level)
            inputs = {slot: op.input(slot) for slot in ("W", "Ids")}
            block.append_op(type=op.type, inputs=inputs, outputs={"Out": rows}, attrs=dict(op.attrs))
            loss = elementwise_add(loss, scale(mean(rows), 0.0))
        return loss

    def copy(self, program: Program, count: int, scope: Scope) -> None:
        """Copy, if a batch after so many others is one to copy before."""
        if count % self.config.get("batch_num", 100):
            return
        for source, target in self.variables:
            scope.var(target).get_tensor().set(np.array(scope.var(source).get_tensor()))
        for source, target in self.tables if fleet.is_first_worker() else ():
            with scope_guard(scope):
                growing_tables.copy_table(_find(source, program), _find(target, program), program)


class _Pointer:
    """``fleet._fleet_ptr``: what pslib's client does, by the trainer that asks, while no other waits.

    Raises UnsupportedError for what only pslib's own servers know.
    """

    def __getattr__(self, name: str) -> Any:
        found = _POINTED.get(name)
        if found is None:
            raise UnsupportedError(
                f"fleet._fleet_ptr.{name} is not supported",
                hint=f"it knows pull_dense, {', '.join(_POINTED)}",
            )
        return lambda *args: fleet._ask(lambda program: found(program, *args))

    def pull_dense(self, scope: Scope, table_id: int, names: Sequence[str]) -> None:
        """Set variables of a scope to what the servers have of them."""
        main, local = fleet.main_program, fleet._origin_program
        assert main is not None
        assert local is not None
        with tempfile.TemporaryDirectory() as folder, scope_guard(scope):
            chosen = [local.global_block().var(name) for name in names]
            save_vars(fleet._executor, folder, main, vars=chosen)
            load_vars(fleet._executor, folder, local, vars=chosen)


def _find(table: int | str, program: Program) -> str:
    return growing_tables.find_name(table, program)


#: Methods of pslib's client, given the program and their own arguments.
_POINTED: Final[dict[str, Callable[..., Any]]] = {
    "client_flush": lambda program: None,
    "save_model": lambda program, path, mode=0: fleet._save(program, path, mode),
    "load_model": lambda program, path, mode=0: growing_tables.load_all(path, program),
    "save_model_one_table": lambda program, table, path, mode=0: growing_tables.save_one_table(
        fleet._executor, _find(table, program), path, program
    ),
    "load_model_one_table": lambda program, table, path, mode=0: growing_tables.load_one_table(
        fleet._executor, _find(table, program), path, program
    ),
    "save_model_with_whitelist": lambda program, table, path, mode, whitelist: _save_listed(
        _find(table, program), path, whitelist, program
    ),
    "load_table_with_whitelist": lambda program, table, path, mode=0: growing_tables.load_one_table(
        fleet._executor, _find(table, program), path, program
    ),
    "shrink_sparse_table": lambda program, table: fleet._shrink(program, only=_find(table, program)),
    "clear_one_table": lambda program, table: growing_tables.clear(program, _find(table, program)),
    "clear_model": lambda program: growing_tables.clear(program),
    "print_table_stat": lambda program, table: growing_tables.print_table_stat(
        program, _find(table, program)
    ),
}


def _save_listed(table: str, path: str, whitelist: str, program: Program) -> None:
    """Save the rows of the ids that a file lists, one a line: of a table, its counters and its state."""
    lines = Path(whitelist).read_text().split()
    ids = np.array([int(one) for one in lines], np.uint64).view(np.int64)
    with tempfile.TemporaryDirectory() as folder:
        growing_tables.save_one_table(fleet._executor, table, folder, program)
        values = {}
        for name, value in VariableDirectory().read_all(locate(folder)).items():
            assert isinstance(value, SelectedRows)
            keep = np.isin(value.row_array, ids)
            values[name] = SelectedRows(
                value.row_array[keep], value.height(), np.asarray(value.held_array)[keep]
            )
    transaction = locate(path).begin()
    for name, buffers in VariableDirectory().write(values).items():
        transaction.add(name, buffers)
    transaction.commit()


def _describe(program: Program, updates: Any, strategy: Mapping[str, Any]) -> dict[str, Any]:
    """Return what pslib keeps of ``minimize`` as ``fleet._opt_info``: tables, their ids and their variables.

    Growing tables come first, then a table of all dense parameters, and one of data_norm's sums.
    """
    main = fleet.main_program if fleet.main_program is not None else program
    tables = growing_tables.list_tables(program)
    pairs = [(one.name, gradient.name) for one, gradient in updates if one.name not in tables]
    sums = [one for one in pairs if one[0].endswith((".batch_size", ".batch_square_sum", ".batch_sum"))]
    dense = [one for one in (sorted(set(pairs) - set(sums)), sorted(sums)) if one]
    worker = SimpleNamespace(
        sparse_table=[SimpleNamespace(table_id=at, name=name) for at, name in enumerate(tables)],
        dense_table=[
            SimpleNamespace(
                table_id=len(tables) + at,
                dense_variable_name=[name for name, _ in some],
                dense_gradient_variable_name=[name for _, name in some],
            )
            for at, some in enumerate(dense)
        ],
        skip_op=["lookup_table", "lookup_table_grad"],
    )
    client = SimpleNamespace(
        uri=strategy.get("fs_uri", "hdfs://your_hdfs_uri"),
        user=strategy.get("fs_user", "your_hdfs_user"),
        passwd=strategy.get("fs_passwd", "your_hdfs_passwd"),
        hadoop_bin=strategy.get("fs_hadoop_bin", "$HADOOP_HOME/bin/hadoop"),
    )
    sparse_ids, dense_ids = (
        [one.table_id for one in some] for some in (worker.sparse_table, worker.dense_table)
    )
    config = {
        "pull_sparse": sparse_ids,
        "push_sparse": sparse_ids,
        "pull_dense": dense_ids,
        "push_dense": dense_ids,
    }
    return {
        "trainer": "DistMultiTrainer",
        "device_worker": strategy.get("device_worker", "DownpourSGD"),
        "optimizer": "DownpourSGD",
        "fleet_desc": SimpleNamespace(trainer_param=[worker], fs_client_param=client),
        "worker_skipped_ops": worker.skip_op,
        "program_configs": {str(id(one)): config for one in (program, main)},
        "program_id_to_worker": {
            str(id(one)): SimpleNamespace(get_desc=lambda: worker) for one in (program, main)
        },
        **{key: strategy.get(key, first) for key, first in _SETTINGS.items()},
    }


#: Settings of a strategy that ``fleet._opt_info`` repeats.
_SETTINGS: Final[dict[str, Any]] = {
    "use_cvm": False, "no_cvm": False, "scale_datanorm": -1, "stat_var_names": [], "local_tables": [],
    "async_tables": [], "check_nan_var_names": [], "dump_fields": [], "dump_file_num": 16,
    "dump_fields_path": "", "dump_param": [],
    "dump_converter": "", "dump_slot": True, "adjust_ins_weight": {}, "copy_table": {}, "loss_names": [],
}  # fmt: skip


class PSLib(DistributedTranspiler):
    """The fleet of pslib's scripts."""

    def __init__(self) -> None:
        super().__init__()
        self._mode = Mode.PSLIB
        self._accessor: dict[str, Any] = {}
        self._is_started = False
        self._opt_info: dict[str, Any] | None = None
        self._fleet_ptr = _Pointer()

    def init(self, role_maker: RoleMakerBase | Executor | None = None) -> None:
        """Take a role; None, or an executor as older scripts pass: from the environment."""
        given = None if isinstance(role_maker, Executor) else role_maker
        super().init(PaddleCloudRoleMaker() if given is None else given)

    def distributed_optimizer(self, optimizer: Optimizer, strategy: Any = None) -> DownpourOptimizer:
        """Return a :class:`DownpourOptimizer`."""
        _ = self._role
        return DownpourOptimizer(optimizer, strategy)

    def init_server(self, model_dir: str | None = None, **how: Any) -> None:
        """Initialize this server; called by trainers, as in pslib: let the servers load a directory."""
        if self.is_server():
            super().init_server(model_dir)
            self._is_started = True
        elif model_dir:
            self.load_model(model_dir, **how)

    def run_server(self) -> None:
        """Serve until every trainer has left, with the values that the server begins with or has loaded."""
        if not self._is_started:
            self.init_server()
        super().run_server()

    def save_persistables(
        self,
        executor: Executor | None,
        dirname: str,
        main_program: Program | None = None,
        mode: int = 0,
        **_: Any,
    ) -> SaveReport | None:
        """Save all; ``mode`` 1: what changed, 2: a base of that, 3: all, at the end of a day."""
        if mode not in _MODES:
            raise ValueError(f"fleet: mode is 0 or 3 (all), 1 (delta) or 2 (base), not {mode!r}")

        return self._together(lambda program: self._save(main_program or program, dirname, mode))

    def _save(self, program: Program, dirname: str, mode: int) -> SaveReport | None:
        report: SaveReport | None = save_persistables(self._executor, dirname, program, **_MODES[mode])
        if mode == _END_OF_DAY:
            growing_tables.age(program)
        return report

    def save_model_with_whitelist(
        self,
        executor: Executor | None,
        dirname: str,
        whitelist_path: str,
        main_program: Program | None = None,
        **how: Any,
    ) -> None:
        """Save of table ``table_id`` (0) the rows of the ids that a file lists, one a line."""
        self._together(
            lambda program: _save_listed(self._name(how.get("table_id", 0)), dirname, whitelist_path, program)
        )

    def load_pslib_whitelist(self, table_id: int | str, model_path: str, **_: Any) -> None:
        """Load what :meth:`save_model_with_whitelist` saved."""
        self.load_one_table(table_id, model_path)

    def save_model(self, model_dir: str, mode: int = 0, **_: Any) -> None:
        """Do as :meth:`save_persistables`."""
        self.save_persistables(None, model_dir, mode=mode)

    def load_model(self, model_dir: str, mode: int = 0, **_: Any) -> None:
        """Let the servers load what a save wrote, with its deltas."""
        self._together(lambda program: growing_tables.load_all(model_dir, program))

    def save_inference_model(
        self,
        executor: Executor,
        dirname: str,
        feeded_var_names: Sequence[str] | None = None,
        target_vars: Sequence[Variable] | None = None,
        main_program: Program | None = None,
        export_for_deployment: bool = True,
    ) -> Any:
        """Save an inference model; without names save all, as pslib does."""
        if feeded_var_names is None or target_vars is None:
            return self.save_persistables(executor, dirname)
        return super().save_inference_model(
            executor, dirname, feeded_var_names, target_vars, main_program, export_for_deployment
        )

    def save_cache_model(
        self, executor: Executor | None, dirname: str, main_program: Program | None = None, **how: Any
    ) -> int:
        """Save table ``table_id`` (0), with all its rows; return their count."""
        table = how.get("table_id", 0)
        self.save_one_table(table, dirname)
        return int(self.print_table_stat(table).get("rows", -1))

    def shrink_sparse_table(self) -> dict[str, int]:
        """Decay the counters of all tables and forget ids, each table by its part of the strategy."""
        return self._together(self._shrink) or {}

    def _shrink(self, program: Program, only: str | None = None) -> dict[str, int]:
        forgotten: dict[str, int] = {}
        for name in growing_tables.list_tables(program) if only is None else [only]:
            own = self._accessor.get(name)
            given = {**self._accessor, **(own if isinstance(own, Mapping) else {})}
            how = {key: given.get(theirs, value) for theirs, (key, value) in _ACCESSOR.items()}
            forgotten |= growing_tables.shrink(program=program, table=name, days=0, **how)
        return forgotten

    def shrink_dense_table(self, decay: float, *_: Any, **__: Any) -> None:
        """Do nothing, with a warning: the sums of data_norm are the trainers' own here."""
        warn_user("fleet.shrink_dense_table: servers keep no sums of data_norm here, so that none decay")

    def clear_one_table(self, table: int | str) -> None:
        """Forget all rows of a table."""
        self._together(lambda program: growing_tables.clear(program, self._name(table)))

    def set_pull_local_thread_num(self, thread_num: int) -> None:
        """Do nothing: the wire has no such threads."""

    def __getattr__(self, name: str) -> Any:
        if name in ("confirm", "revert"):
            raise UnsupportedError(
                f"fleet.{name} of pslib is not supported",
                hint="save before a pass; load_model goes back to that save",
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


fleet: PSLib = PSLib()


def _grow_tables(program: Program, startup: Program) -> None:
    """Let look-ups with ``is_distributed`` read growing tables: pslib takes no heed of their heights."""
    block, first = program.global_block(), startup.global_block()
    clicks: dict[str, str] = {}  # by the name of ids, the variable with a click for each
    read = {name for op in block.ops for name in op.input_arg_names}
    for old in [op for op in block.ops if op.type in _LOOKUPS and op.attrs.get("is_distributed")]:
        (name,), (ids,), (out,) = old.input("W"), old.input("Ids"), old.output("Out")
        table = block.var(name)
        if out not in read and block.var(out).stop_gradient:  # a table that only ``copy_table`` fills
            block._remove_op(block.ops.index(old))
            continue
        if table.type != VarType.SELECTED_ROWS:
            makes = [op for op in first.ops if name in op.output_arg_names]
            if not makes:
                raise GraphError(
                    f"fleet: the startup program does not make the table {name!r}",
                    hint="pass startup_programs=[...], the one that was current when the network was built",
                )
            first._remove_op(first.ops.index(makes[-1]))
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


def _insert_clicks(block: Block, index: int, ids: Variable) -> tuple[str, int]:
    """Insert operators that give each id, or each sequence of ids, the click of its sample.

    Return the name of the clicks, and the index behind the operators.
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
    """Return the rows of ids in the table ``name``, which counts shows, and clicks by a variable's name.

    Without the last dim of ids, which is 1; :func:`_pull_sparse_v2` keeps it.
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
    """Return rows with all dims of their ids."""
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

    ``click_name``: the variable with a click for each sample; None: clicks are not counted.
    ``scale_sparse_grad`` is taken, and gradients are those of the loss as it is.
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
