"""``fluid.incubate.fleet.parameter_server.pslib``: pslib's interface on the servers of this package.

Sparse tables are growing tables. Training is asynchronous; the script's optimizer updates the tables too.

Counters follow pslib's accessors (``distributed/table/downpour_accessor.cc`` of Paddle): each id of a batch
counts a show, and a click where the label of its sample is 1. The label is the variable of
``fleet_embedding(click_name=...)``, or else the one named ``click`` (``label_var_name`` in 1.8.5's
``device_worker.py``). ``shrink_sparse_table`` multiplies shows and clicks, then forgets ids with a low score
and ids not seen for too many days. A save with ``mode=3`` ends a day: ids not seen since become a day older.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from paddlelike.core import Scope, SelectedRows, scope_guard
from paddlelike.distributed import growing_tables
from paddlelike.distributed.fleet.base import Mode
from paddlelike.distributed.fleet.optimizer import TranspilerOptimizer
from paddlelike.distributed.fleet.parameter_server import DistributedTranspiler
from paddlelike.distributed.fleet.pslib_settings import REPEATED, Settings
from paddlelike.distributed.fleet.pslib_tables import (
    find_lookups,
    fleet_embedding as fleet_embedding,
    grow_tables,
    keep_frozen,
)
from paddlelike.distributed.fleet.role_maker import MPISymetricRoleMaker
from paddlelike.distributed.fleet.strategy import AsyncStrategy
from paddlelike.errors import FormatError, UnsupportedError
from paddlelike.executor import Executor
from paddlelike.formats.paddle.directory import VariableDirectory
from paddlelike.foundation.warn import warn_user
from paddlelike.framework import Program, Variable, default_startup_program, program_guard
from paddlelike.io import load_vars, save_persistables, save_vars
from paddlelike.storage.location import locate

if TYPE_CHECKING:
    from paddlelike.distributed.fleet.role_maker_base import RoleMakerBase
    from paddlelike.io.report import SaveReport
    from paddlelike.optimizer.base import Optimizer

#: By ``mode`` of pslib's saves: all, the difference, a base, all.
_MODES: Final[dict[int, dict[str, Any]]] = {0: {}, 1: {"delta": True}, 2: {"delta": "base"}, 3: {}}
_END_OF_DAY: Final = 3
_SCORE: Final = ("show_click_decay_rate", "delete_after_unseen_days", "nonclk_coeff", "click_coeff")


#: Settings of pslib's trainers that would change numbers, or write files.
_WITHOUT_EFFECT: Final = {
    "adjust_ins_weight", "check_nan_var_names", "dump_fields", "dump_param", "scale_datanorm", "use_cvm",
}  # fmt: skip


class DownpourOptimizer(TranspilerOptimizer):
    """An optimizer whose ``minimize`` makes the programs of asynchronous training with servers.

    ``sparse_delete_threshold``, ``sparse_show_click_decay_rate``, ``sparse_delete_after_unseen_days``,
    ``sparse_nonclk_coeff`` and ``sparse_click_coeff`` decide which ids are forgotten. They come from the dict
    of a table in the dict ``strategy``, or else from ``strategy`` itself.
    """

    def __init__(self, optimizer: Optimizer, strategy: Mapping[str, Any] | None = None) -> None:
        alone = AsyncStrategy()
        alone.set_program_config({"wait_port": False})  # init_worker waits for the servers
        super().__init__(fleet, optimizer, alone)
        self._how = dict(strategy or {})
        _warn_without_effect("distributed_optimizer", self._how, {})

    def minimize(  # type: ignore[override]
        self, losses: Any, scopes: Any = None, startup_programs: Any = None, *args: Any, **how: Any
    ) -> Any:
        """See :meth:`.TranspilerOptimizer.minimize`; lists with one item are accepted.

        Without ``startup_program``, the startup program of the ``program_guard`` around the network is
        used. Raises UnsupportedError for several losses, and the errors of that method.
        """
        several = [one for one in (losses, scopes, startup_programs) if isinstance(one, list | tuple)]
        if any(len(one) != 1 for one in several):
            raise UnsupportedError(
                f"fleet.minimize: {max(map(len, several))} losses at once are not supported",
                hint="train their sum; or train one loss per job, each from the previous job's files",
            )
        loss, scope, startup = (
            one[0] if isinstance(one, list | tuple) else one for one in (losses, scopes, startup_programs)
        )
        program = loss.block.program
        startup = startup or program._startup or default_startup_program()
        fleet._scope = scope
        copies = _Copies(self._how.get("copy_table") or {})
        settings = fleet._settings = Settings(self._how, find_lookups(program))
        with program_guard(program, startup):
            loss = keep_frozen(loss)
        grow_tables(program, startup, settings)
        made = list(super().minimize(loss, scope, startup, *args, **how))
        main = fleet.main_program
        others = () if main is None else (main,)
        fleet._opt_info = program._fleet_opt = settings.describe(program, others, made[1])
        if main is not None and copies.config.get("need_copy"):
            main._before_batch = copies.copy
        return made


def _warn_without_effect(call: str, settings: Mapping[str, Any], known: Mapping[str, Any]) -> None:
    """Warn of settings without effect, unless they have the known values."""
    found = [
        key for key in _WITHOUT_EFFECT & settings.keys() if settings[key] and settings[key] != known.get(key)
    ]
    if found:
        warn_user(f"fleet.{call}: pslib's {', '.join(sorted(found))} have no effect here")


class _Copies:
    """The copies that a strategy's ``copy_table`` requests, made every ``batch_num`` batches of
    ``train_from_dataset``.

    Servers copy whole tables, this trainer copies variables (``DownpourWorker::CopySparseTable`` and
    ``CopyDenseVars`` in ``framework/downpour_worker.cc``).
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        self.config = config
        self.tables = self._pair("sparse_tables")
        self.variables = self._pair("var_list")
        if self._pair("dense_tables"):
            raise UnsupportedError(
                "fleet.minimize: copy_table copies the dense table of one loss to another loss, but there "
                "is only one loss",
                hint="name the parameters: src_var_list and dest_var_list",
            )

    def _pair(self, what: str) -> list[tuple[Any, Any]]:
        """Return the sources and targets of a kind; a single value is treated as a list of one."""
        both = [self.config.get(f"{side}_{what}", []) for side in ("src", "dest")]
        source, target = ([one] if not isinstance(one, list) else one for one in both)
        if len(source) != len(target):
            names = f"src_{what} has {len(source)} entries, dest_{what} {len(target)}"
            raise ValueError(f"fleet.minimize: copy_table: {names}")
        return list(zip(source, target, strict=True))

    def copy(self, program: Program, count: int, scope: Scope) -> None:
        """Copy if it is due after this number of batches."""
        if count % self.config.get("batch_num", 100):
            return
        for source, target in self.variables:
            scope.var(target).get_tensor().set(np.array(scope.var(source).get_tensor()))
        for source, target in self.tables if fleet.is_first_worker() else ():
            with scope_guard(scope):
                growing_tables.copy_table(_find(source, program), _find(target, program), program)


class _Pointer:
    """``fleet._fleet_ptr``: calls of pslib's client that one trainer makes without waiting for the others.

    Raises UnsupportedError for methods that need pslib's own servers.
    """

    def __getattr__(self, name: str) -> Callable[..., Any]:
        found = _POINTED.get(name)
        if found is None:
            raise UnsupportedError(
                f"fleet._fleet_ptr.{name} is not supported",
                hint=f"supported are pull_dense, {', '.join(_POINTED)}",
            )
        return lambda *args: fleet._ask(lambda program: found(program, *args))

    def pull_dense(self, scope: Scope, table_id: int, names: Sequence[str]) -> None:
        """Set variables of a scope to the servers' values."""
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
    "copy_table": lambda program, source, target: growing_tables.copy_table(
        _find(source, program), _find(target, program), program
    ),
    "print_table_stat": lambda program, table: growing_tables.print_table_stat(
        program, _find(table, program)
    ),
}


def _save_listed(table: str, path: str, whitelist: str, program: Program) -> None:
    """Save the rows whose ids a file lists, one per line, with their counters and optimizer state."""
    try:
        lines = Path(whitelist).read_text(encoding="utf-8").split()
        ids = np.array([int(one) for one in lines], np.uint64).view(np.int64)
    except (ValueError, OverflowError) as error:
        raise FormatError(
            f"{whitelist}: {error}", hint="it has an id, an unsigned number, on each line"
        ) from error
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


class PSLib(DistributedTranspiler):
    """The fleet of pslib's scripts, where each step waits until the servers have its gradients."""

    _in_background = ()

    def __init__(self) -> None:
        super().__init__()
        self._mode = Mode.PSLIB
        self._settings = Settings({}, [])
        self._is_started = False
        self._opt_info: dict[str, Any] | None = None
        self._fleet_ptr = _Pointer()

    def init(self, role_maker: RoleMakerBase | Executor | None = None) -> None:
        """Set the role; for None, or an executor as in older scripts, read it from the environment."""
        given = None if isinstance(role_maker, Executor) else role_maker
        super().init(MPISymetricRoleMaker() if given is None else given)

    def distributed_optimizer(self, optimizer: Optimizer, strategy: Any = None) -> DownpourOptimizer:
        """Return a :class:`DownpourOptimizer`."""
        _ = self._role
        return DownpourOptimizer(optimizer, strategy)

    def init_worker(self) -> None:
        """See :meth:`.DistributedTranspiler.init_worker`; warns of settings without effect."""
        _warn_without_effect("init_worker", self._opt_info or {}, {**REPEATED, **self._settings.strategy})
        super().init_worker()

    def init_server(self, model_dir: str | None = None, **how: Any) -> None:
        """Initialize this server. A trainer calls it, as in pslib, to let the servers load a directory."""
        if self.is_server():
            super().init_server(model_dir)
            self._is_started = True
        elif model_dir:
            self.load_model(model_dir, **how)

    def run_server(self) -> None:
        """Serve until every trainer has left, beginning with the initial values or with loaded ones."""
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
        """Save all variables. ``mode`` 1 saves changes, 2 a base for changes, 3 all at the end of a day."""
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
        """Save the rows of table ``table_id`` (default 0) whose ids a file lists, one per line."""
        self._together(
            lambda program: _save_listed(self._name(how.get("table_id", 0)), dirname, whitelist_path, program)
        )

    def load_pslib_whitelist(self, table_id: int | str, model_path: str, **_: Any) -> None:
        """Load a model saved by :meth:`save_model_with_whitelist`."""
        self.load_one_table(table_id, model_path)

    def save_model(self, model_dir: str, mode: int = 0, **_: Any) -> None:
        """Save variables as :meth:`save_persistables` does."""
        self.save_persistables(None, model_dir, mode=mode)

    def load_model(self, model_dir: str, mode: int = 0, **_: Any) -> None:
        """Let the servers load a saved model, with its deltas."""
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
        """Save table ``table_id`` (default 0) with all its rows; return their count."""
        table = how.get("table_id", 0)
        self.save_one_table(table, dirname)
        return int(self.print_table_stat(table).get("rows", -1))

    def shrink_sparse_table(self) -> dict[str, int]:
        """Decay the counters of all tables and forget ids, each table by its part of the strategy."""
        return self._together(self._shrink) or {}

    def _shrink(self, program: Program, only: str | None = None) -> dict[str, int]:
        forgotten: dict[str, int] = {}
        for table_id, name in enumerate(growing_tables.list_tables(program)):
            if only in (None, name):
                own = self._settings.find_accessor(table_id).downpour_accessor_param
                how = {key: getattr(own, key) for key in _SCORE}
                forgotten |= growing_tables.shrink(own.delete_threshold, program, table=name, days=0, **how)
        return forgotten

    def shrink_dense_table(self, decay: float, *_: Any, **__: Any) -> None:
        """Do nothing, with a warning: here every trainer has its own sums of data_norm."""
        warn_user("fleet.shrink_dense_table: servers keep no sums of data_norm here, so nothing decays")

    def clear_one_table(self, table: int | str) -> None:
        """Forget all rows of a table."""
        self._together(lambda program: growing_tables.clear(program, self._name(table)))

    def set_pull_local_thread_num(self, thread_num: int) -> None:
        """Do nothing: there are no such threads here."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name in ("confirm", "revert"):
            raise UnsupportedError(
                f"fleet.{name} of pslib is not supported",
                hint="save before a pass; load_model goes back to that save",
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


fleet: PSLib = PSLib()
