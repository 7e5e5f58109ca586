"""fleet for parameter servers: programs, serving and saving of one process by its role."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from paddlelike.core import Scope, global_scope, scope_guard
from paddlelike.distributed import growing_tables
from paddlelike.distributed.communicator import Communicator
from paddlelike.distributed.fleet.base import Fleet, Mode
from paddlelike.distributed.fleet.optimizer import TranspilerOptimizer
from paddlelike.distributed.fleet.strategy import (
    AsyncStrategy,
    DistributedStrategy,
    GeoStrategy,
    HalfAsyncStrategy,
    StrategyFactory,
    SyncStrategy,
    TrainerRuntimeConfig,
    strategy_for,
)
from paddlelike.distributed.transpiler import DistributeTranspiler, DistributeTranspilerConfig
from paddlelike.errors import GraphError
from paddlelike.executor import Executor
from paddlelike.foundation.warn import warn_user
from paddlelike.framework import Program, Variable
from paddlelike.io import (
    get_program_persistable_vars,
    load_persistables,
    save_inference_model,
    save_persistables,
)
from paddlelike.io.export.program import make_inference_program
from paddlelike.io.save.chosen import SaveRequest, save_chosen
from paddlelike.storage.location import locate

if TYPE_CHECKING:
    from paddlelike.io.report import SaveReport
    from paddlelike.optimizer.base import Optimizer

__all__ = [
    "AsyncStrategy",
    "DistributeTranspilerConfig",
    "DistributedStrategy",
    "DistributedTranspiler",
    "GeoStrategy",
    "HalfAsyncStrategy",
    "StrategyFactory",
    "SyncStrategy",
    "TrainerRuntimeConfig",
    "TranspilerOptimizer",
    "fleet",
]


Answer = TypeVar("Answer")

#: By ``mode`` of Paddle's saves: a whole save, a base of chains of deltas, a delta.
_DELTAS: dict[int, dict[str, Any]] = {0: {}, 1: {"delta": "base"}, 2: {"delta": True}}


class TableFleet(Fleet):
    """A fleet whose servers work on growing tables, given by name or index.

    Every trainer calls these methods at the same place. Trainer 0 calls the servers; the others wait for it.
    """

    main_program: Program | None
    _executor: Executor
    _scope: Scope | None = None  # of the training; None: the global one

    def _join_trainers(self, program: Program) -> None:
        """Let the role maker's barriers and reductions run through the servers."""
        from paddlelike.distributed.client.trainers import find_client, find_trainer_id  # late: needs a wire

        block = program.global_block()
        self._role._exchange_texts = lambda text: find_client(
            self._scope or global_scope(), find_trainer_id(block), block
        ).exchange(text)

    def shrink(self, threshold: float | None = None, **how: Any) -> dict[str, int]:
        """End a day: see :func:`paddlelike.distributed.growing_tables.shrink`."""
        return self._together(lambda program: growing_tables.shrink(threshold, program, **how)) or {}

    def clear_model(self) -> None:
        """Forget all rows of all tables."""
        self._together(growing_tables.clear)

    def print_table_stat(self, table: int | str) -> dict[str, float]:
        """Print and return the statistics of a table on the servers."""
        name = self._name(table)
        found = self._together(lambda program: growing_tables.print_table_stat(program, name))
        return (found or {}).get(name, {})

    def save_one_table(self, table: int | str, path: str, mode: int = 0) -> None:
        """Save a table with its counters and its state."""
        save = growing_tables.save_one_table
        self._together(
            lambda program: save(self._executor, self._name(table), path, program, **_DELTAS[mode])
        )

    def load_one_table(self, table: int | str, path: str, mode: int = 0) -> None:
        """Let the servers load a table that ``save_one_table`` or ``save_persistables`` saved."""
        load = growing_tables.load_one_table
        self._together(lambda program: load(self._executor, self._name(table), path, program))

    def _together(self, ask: Callable[[Program], Answer]) -> Answer | None:
        """Return the servers' answer to trainer 0; the other trainers wait and get None."""
        if self.main_program is None:
            raise GraphError(
                "fleet has no programs yet", hint="fleet.distributed_optimizer(...).minimize(loss) makes them"
            )
        self.barrier_worker()
        try:
            return self._ask(ask) if self.is_first_worker() else None
        finally:
            self.barrier_worker()

    def _ask(self, ask: Callable[[Program], Answer]) -> Answer:
        assert self.main_program is not None
        with scope_guard(self._scope or global_scope()):
            return ask(self.main_program)

    def _name(self, table: int | str) -> str:
        assert self.main_program is not None
        return growing_tables.find_name(table, self.main_program)


class DistributedTranspiler(TableFleet):
    """The fleet of a job on parameter servers.

    Attributes
    ----------
    main_program, startup_program
        The programs of this process's role, after ``minimize`` of the distributed optimizer.

    Examples
    --------
    >>> from paddlelike import layers, optimizer
    >>> from paddlelike.distributed.fleet.role_maker import Role, UserDefinedRoleMaker
    >>> from paddlelike.input import data
    >>> fleet = DistributedTranspiler()
    >>> fleet.init(UserDefinedRoleMaker(0, Role.SERVER, worker_num=2, server_endpoints=["127.0.0.1:6174"]))
    >>> loss = layers.mean(layers.fc(data("x", [None, 4]), 1))
    >>> _ = fleet.distributed_optimizer(optimizer.SGD(0.1)).minimize(loss)
    >>> [op.type for op in fleet.main_program.global_block().ops]
    ['listen_and_serv']
    """

    _in_background: tuple[type[DistributedStrategy], ...] = (AsyncStrategy, GeoStrategy)

    def __init__(self) -> None:
        super().__init__(Mode.TRANSPILER)
        self.main_program: Program | None = None
        self.startup_program: Program | None = None
        self._origin_program: Program | None = None
        self._strategy: DistributedStrategy | None = None
        self._transpiler: DistributeTranspiler | None = None
        self._communicator: Communicator | None = None

    def distributed_optimizer(
        self, optimizer: Optimizer, strategy: DistributedStrategy | DistributeTranspilerConfig | None = None
    ) -> TranspilerOptimizer:
        """Return an optimizer whose ``minimize`` also makes the programs of this process's role.

        Parameters
        ----------
        optimizer
            Any optimizer.
        strategy
            A strategy of StrategyFactory, or a DistributeTranspilerConfig. None means synchronous rounds.

        Raises
        ------
        RoleError
            It is called before ``init``.
        TypeError
            ``optimizer`` or ``strategy`` is something else.
        """
        _ = self._role
        return TranspilerOptimizer(self, optimizer, strategy_for(strategy))

    def init_worker(self) -> None:
        """Wait until every server listens, and start the Communicator of asynchronous training or geo-SGD.

        Raises
        ------
        DeadlineError
            Some servers do not listen in time; the error names them.
        GraphError
            It is called before ``minimize``.
        """
        main, _ = self._programs()
        from paddlelike.distributed.settings import Settings
        from paddlelike.distributed.wire import wait_for_servers  # late: most scripts need no wire

        window = Settings.from_environment().limits.window
        wait_for_servers(self._role.get_pserver_endpoints(), window)
        assert self._strategy is not None
        if isinstance(self._strategy, self._in_background):
            config, runtime = self._strategy.get_program_config(), self._strategy.get_trainer_runtime_config()
            how = {"push_nums": config.geo_sgd_need_push_nums, "trainers": self.worker_num()}
            self._communicator = Communicator(main, runtime.mode, how, runtime.get_communicator_flags())
            self._communicator.start()

    def init_server(self, model_dir: str | None = None) -> None:
        """Initialize the parameters, or load those that trainer 0 saved.

        Parameters
        ----------
        model_dir
            A complete directory of ``save_persistables``; this server reads its rows of it.

        Raises
        ------
        LoadError
            The directory does not fit this server's program; the error names the endpoint.
        GraphError
            It is called before ``minimize``.
        """
        main, startup = self._programs()
        self._executor.run(startup)
        if model_dir:
            load_persistables(self._executor, model_dir, main)

    def run_server(self) -> None:
        """Serve until every trainer has left. Raises OperatorError, which names the endpoint, if that
        fails.
        """
        self._executor.run(self._programs()[0])

    def stop_worker(self) -> None:
        """Leave the job; servers end when all trainers have left. Raises FaultError for a lost job."""
        from paddlelike.distributed.client.trainers import leave_jobs

        if self._communicator is not None:
            self._communicator.stop()
            self._communicator = None
        leave_jobs()
        self._role._exchange_texts = lambda text: [text]  # nobody is left to be waited for
        self._executor.close()

    def save_persistables(
        self, executor: Executor, dirname: str, main_program: Program | None = None, mode: int = 0
    ) -> SaveReport | None:
        """Save all persistables on trainer 0, including those that only the servers have.

        Parameters
        ----------
        executor
            Any executor of this process.
        dirname
            The directory.
        main_program
            The trainer's program. None means fleet's program.
        mode
            0 saves everything, 1 a base for deltas, 2 only the changed rows of large variables, like
            ``delta=True``.

        Raises
        ------
        TypeError
            ``executor`` is not an Executor, or ``main_program`` is not a Program.
        ValueError
            ``mode`` is another number.
        GraphError
            The program was not transpiled.
        SaveError
            The save failed; the earlier files are as they were.
        """
        program = self._check("save_persistables", executor, main_program, self.main_program)
        if mode not in _DELTAS:
            raise ValueError(f"fleet: mode is 0 (whole), 1 (base) or 2 (delta), not {mode!r}")
        if not program._is_distributed:
            raise GraphError(
                "fleet.save_persistables: the program was not transpiled",
                hint="pass fleet.main_program, or use fluid.io.save_persistables",
            )
        report: SaveReport = save_persistables(executor, dirname, program, None, **_DELTAS[mode])
        return report

    def save_inference_model(
        self,
        executor: Executor,
        dirname: str,
        feeded_var_names: Sequence[str],
        target_vars: Sequence[Variable],
        main_program: Program | None = None,
        export_for_deployment: bool = True,
    ) -> list[str]:
        """Save an inference model on trainer 0, including tables that only the servers have.

        Parameters
        ----------
        executor
            Any executor of this process.
        dirname
            The directory.
        feeded_var_names, target_vars
            The inputs and outputs of the model.
        main_program
            A program to prune. None means the network before it was transpiled.
        export_for_deployment
            The same as for ``fluid.io.save_inference_model``.

        Returns
        -------
        list of str
            The names of the target variables.

        Raises
        ------
        TypeError
            ``executor`` is not an Executor, or ``main_program`` is not a Program.
        SaveError
            The save failed; the earlier files are as they were.
        """
        origin = self._check("save_inference_model", executor, main_program, self._origin_program)
        if main_program is not None:
            return save_inference_model(
                dirname, feeded_var_names, target_vars, executor, origin,
                export_for_deployment=export_for_deployment,
            )  # fmt: skip
        distributed, _ = self._programs()
        targets = [origin.global_block().var(variable.name) for variable in target_vars]
        if not self.is_first_worker():
            warn_user(f"nothing was saved into {dirname}: trainer 0 saves for all trainers")
            return [target.name for target in targets]
        names = save_inference_model(
            dirname, feeded_var_names, targets, executor, origin,
            export_for_deployment=export_for_deployment, program_only=True,
        )  # fmt: skip
        # The values of the model's variables as the servers have them.
        needed = origin
        if export_for_deployment:
            needed = make_inference_program(origin, list(feeded_var_names), names)
        variables = [
            distributed.global_block().var(variable.name)
            for variable in get_program_persistable_vars(needed)
            if distributed.global_block().has_var(variable.name)
        ]
        save_chosen(executor, SaveRequest(distributed, variables, locate(dirname), part="params"))
        return names

    def _programs(self) -> tuple[Program, Program]:
        if self.main_program is None or self.startup_program is None:
            raise GraphError(
                "fleet has no programs yet", hint="fleet.distributed_optimizer(...).minimize(loss) makes them"
            )
        return self.main_program, self.startup_program

    def _transpile(self, program: Program, startup: Program, strategy: DistributedStrategy) -> None:
        """Make the programs of this role from a network with its updates."""
        config = strategy.get_program_config()
        self._origin_program = program.clone()
        self._strategy = strategy
        self._transpiler = DistributeTranspiler(config)
        servers = self._role.get_pserver_endpoints()
        own = {"current_endpoint": servers[self.server_index()]} if self.is_server() else {}
        self._transpiler.transpile(
            trainer_id=self.worker_index(),
            program=program,
            pservers=",".join(servers),
            trainers=self.worker_num(),
            sync_mode=config.sync_mode,
            startup_program=startup,
            **own,
        )
        if self.is_server():
            endpoint = servers[self.server_index()]
            self.main_program, self.startup_program = self._transpiler.get_pserver_programs(endpoint)
        else:
            self.main_program = self._transpiler.get_trainer_program(wait_port=config.wait_port)
            self.startup_program = startup
            self._join_trainers(self.main_program)


fleet = DistributedTranspiler()
