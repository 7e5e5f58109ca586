"""DistributeTranspiler: turns a training program into a trainer's program and one for each server.

:meth:`DistributeTranspiler.transpile` makes every decision. The other methods only return programs; they may
be called in any order, any number of times.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from paddlelike.distributed.collective.modes import transpile_collective
from paddlelike.distributed.placement import Overview
from paddlelike.distributed.transpiler.config import (
    DistributedMode,
    DistributeTranspilerConfig,
    Job,
    check_config,
)
from paddlelike.distributed.transpiler.geo import (
    add_geo_traffic,
    make_geo_server,
    send_start,
    turn_into_differences,
)
from paddlelike.distributed.transpiler.placing import place_all
from paddlelike.distributed.transpiler.schedule import count_asynchronously
from paddlelike.distributed.transpiler.server import make_server_program
from paddlelike.distributed.transpiler.sparse import declare_table_gradients, shard_table
from paddlelike.distributed.transpiler.split_plan import Plan, make_plan
from paddlelike.distributed.transpiler.startup import (
    check_startup,
    fake_tables,
    make_server_startup,
    receive_initial_values,
)
from paddlelike.distributed.transpiler.trainer import add_traffic, remove_updates
from paddlelike.distributed.transpiler.training import Training, find_table, find_training
from paddlelike.errors import GraphError, UnsupportedError
from paddlelike.foundation.warn import warn_user
from paddlelike.framework import Program, default_main_program, default_startup_program
from paddlelike.lazy import dataclass


@dataclass
class _Transpiled:
    """The result of ``transpile``."""

    job: Job
    plan: Plan
    main: Program  # the trainer's; holds its updates until get_trainer_program
    startup: Program
    main_training: Training  # the training operators of main
    source: Program  # a copy of main, from which servers' programs are made
    source_startup: Program
    source_training: Training  # the training operators of source
    placement: Overview


class DistributeTranspiler:
    """Turns a training program into programs for trainers and parameter servers.

    Trainers compute gradients, send them to the servers and receive parameters; servers update their rows.
    Learning-rate schedules and regularization move to the servers, clipping remains with the
    trainers. Tables of ``embedding(is_sparse=True)`` stay on the servers, and trainers fetch the rows they
    look up; ``is_distributed=True`` shards a table by id.

    Parameters
    ----------
    config
        How variables are cut and placed; by default in blocks, on the servers in turn.

    Notes
    -----
    The programs equal the programs of Fluid 1.8.5 (``DistributeTranspiler``) if Fluid's can run. The
    following fail in Fluid and work here:

    - the methods in any order; one trainer alone; ``transpile(sync_mode=False)`` with a default config;
    - ``split_method=HashName``; ``is_distributed=True``; ``grad_clip`` of optimizers;
    - adadelta, lamb; moving averages of parameters that are cut; betas of Adam that are variables; schedules
      whose branches have variables of their own (``linear_lr_warmup``);
    - cut parameters that are initialized by arrays or by several operators (weight normalization);
    - sparse ``nce``; ids of one dim; lookups in one table with different ``padding_idx``, or that depend on
      each other; sparse tables that are read by other operators too, or not trained.

    Raises
    ------
    UnsupportedError
        The config requests DC-ASGD, or geo-SGD with a growing table.

    >>> import paddlelike as fluid
    >>> x, y = fluid.data("x", [None, 13]), fluid.data("y", [None, 1])
    >>> loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(x, 1), y))
    >>> _ = fluid.optimizer.SGD(0.01).minimize(loss)
    >>> transpiler = fluid.DistributeTranspiler()
    >>> transpiler.transpile(trainer_id=0, pservers="127.0.0.1:6174,127.0.0.1:6175", trainers=2)
    >>> server = transpiler.get_pserver_program("127.0.0.1:6174")
    >>> [op.type for block in server.blocks for op in block.ops]
    ['listen_and_serv', 'sum', 'scale', 'sgd']
    >>> trainer = transpiler.get_trainer_program(wait_port=False)
    >>> [op.type for op in trainer.global_block().ops][-5:]
    ['send', 'send_barrier', 'recv', 'recv', 'fetch_barrier']
    """

    def __init__(self, config: DistributeTranspilerConfig | None = None) -> None:
        self.config = DistributeTranspilerConfig() if config is None else config
        check_config(self.config)
        self._result: _Transpiled | None = None

    def transpile(
        self,
        trainer_id: int,
        program: Program | None = None,
        pservers: str = "127.0.0.1:6174",
        trainers: int | str | Sequence[str] = 1,
        sync_mode: bool = True,
        startup_program: Program | None = None,
        current_endpoint: str = "127.0.0.1:6174",
    ) -> None:
        """Place the variables on servers; turn ``program`` and ``startup_program`` into a trainer's programs.

        Parameters
        ----------
        trainer_id
            0 to ``trainers - 1``; servers may pass any.
        program, startup_program
            The network with its updates, and its initializers; the default programs when None. Both are
            changed.
        pservers
            The endpoints of all servers, with commas between them, equal in all processes.
        trainers
            The number of trainers; in the modes nccl2 and collective, the endpoints of all of them.
        sync_mode
            Whether servers wait for the gradients of all trainers; give the config's ``sync_mode`` the same
            value.
        current_endpoint
            This process's endpoint, if it is a server; in the modes nccl2 and collective, this trainer's.

        Raises
        ------
        GraphError
            The program was transpiled before, or holds no updates, or updates that cannot be moved; or
            ``startup_program`` does not initialize it. Both programs are unchanged.
        TypeError, ValueError
            Another argument is wrong.
        UnsupportedError
            The config requests a way of training that is not supported.

        >>> import paddlelike as fluid
        >>> loss = fluid.layers.mean(fluid.layers.fc(fluid.data("x", [None, 3]), 1))
        >>> _ = fluid.optimizer.SGD(0.1).minimize(loss)
        >>> transpiler = fluid.DistributeTranspiler()
        >>> transpiler.transpile(trainer_id=0, pservers="127.0.0.1:6174,127.0.0.1:6175", trainers=2)
        >>> [op.type for op in fluid.default_main_program().global_block().ops][-5:]
        ['sgd', 'send_barrier', 'recv', 'recv', 'fetch_barrier']
        """
        main = default_main_program() if program is None else program
        startup = default_startup_program() if startup_program is None else startup_program
        if self.config.mode != "pserver":
            check_config(self.config)
            transpile_collective(self.config, main, startup, trainer_id, trainers, current_endpoint)
            return
        job = self._job(trainer_id, pservers, trainers, sync_mode, current_endpoint)
        if main._is_distributed:
            raise GraphError(
                "this program was transpiled before",
                hint="build the network again, in a program of its own, to transpile it differently",
            )
        source, source_startup = main.clone(), startup.clone()
        source_training, plan = _rewrite(
            source, source_startup, job
        )  # main and startup are unchanged if this fails
        placement = place_all(source, source_startup, source_training, plan)
        with warnings.catch_warnings(action="ignore"):  # the same warnings again
            main_training, _ = _rewrite(main, startup, job)
        result = _Transpiled(
            job, plan, main, startup, main_training, source, source_startup, source_training, placement
        )
        for one in (main, startup):
            self._mark(one, job.current_endpoint, result)
        self._result = result

    def get_trainer_program(self, wait_port: bool = True) -> Program:
        """Return the trainer's program: the one that was transpiled, without its updates.

        Parameters
        ----------
        wait_port
            Whether to wait until all servers listen, for at most ``FLAGS_rpc_deadline``.

        Returns
        -------
        Program
            The trainer's program. It sends gradients and receives parameters.

        Raises
        ------
        GraphError
            ``transpile`` was not called before, or its ``trainer_id`` does not belong to a trainer.
        DeadlineError
            Some servers do not listen in time; the error names them.

        >>> import paddlelike as fluid
        >>> loss = fluid.layers.mean(fluid.layers.fc(fluid.data("x", [None, 3]), 1))
        >>> _ = fluid.optimizer.SGD(0.1).minimize(loss)
        >>> transpiler = fluid.DistributeTranspiler()
        >>> transpiler.transpile(trainer_id=0, pservers="127.0.0.1:6174", trainers=1)
        >>> trainer = transpiler.get_trainer_program(wait_port=False)
        >>> "sgd" in [op.type for op in trainer.global_block().ops]  # the server updates
        False
        """
        result = _require(self._result)
        if result.job.trainer_id >= result.job.trainers:
            raise GraphError(
                f"there is no trainer {result.job.trainer_id}: transpile() has "
                f"trainers={result.job.trainers}",
                hint=f"trainers are numbered from 0 to {result.job.trainers - 1}",
            )
        if not result.job.is_geo:
            remove_updates(result.main, result.startup, result.main_training)
            fake_tables(result.startup, result.plan)
        if wait_port:
            _wait_for(result.job.endpoints)
        return result.main

    def get_pserver_program(self, endpoint: str) -> Program:
        """Return the program of the server at ``endpoint``; it runs until all trainers have left.

        Parameters
        ----------
        endpoint
            The server's ``host:port``.

        Returns
        -------
        Program
            A program with the operator ``listen_and_serv``.

        Raises
        ------
        GraphError
            ``transpile`` was not called before, or ``endpoint`` is not one of the servers.

        >>> import paddlelike as fluid
        >>> loss = fluid.layers.mean(fluid.layers.fc(fluid.data("x", [None, 3]), 1))
        >>> _ = fluid.optimizer.SGD(0.1).minimize(loss)
        >>> transpiler = fluid.DistributeTranspiler()
        >>> transpiler.transpile(trainer_id=0, pservers="127.0.0.1:6174", trainers=1)
        >>> server = transpiler.get_pserver_program("127.0.0.1:6174")
        >>> [op.type for op in server.global_block().ops]
        ['listen_and_serv']
        """
        result = _require(self._result)
        result.placement.on(endpoint)
        make = make_geo_server if result.job.is_geo else make_server_program
        program = make(result.source, result.source_training, result.plan, endpoint)
        self._mark(program, endpoint, result)
        return program

    def get_pserver_programs(self, endpoint: str) -> tuple[Program, Program]:
        """Return the program of the server at ``endpoint`` and its startup program.

        Parameters
        ----------
        endpoint
            The server's ``host:port``.

        Returns
        -------
        main : Program
            The program of the server.
        startup : Program
            The program that initializes the server's rows; run it first.

        Raises
        ------
        GraphError
            The same as in :meth:`get_pserver_program`.

        >>> import paddlelike as fluid
        >>> loss = fluid.layers.mean(fluid.layers.fc(fluid.data("x", [None, 3]), 1))
        >>> _ = fluid.optimizer.SGD(0.1).minimize(loss)
        >>> transpiler = fluid.DistributeTranspiler()
        >>> transpiler.transpile(trainer_id=0, pservers="127.0.0.1:6174", trainers=1)
        >>> server, startup = transpiler.get_pserver_programs("127.0.0.1:6174")
        >>> sorted(op.type for op in startup.global_block().ops)
        ['fill_constant', 'fill_constant', 'uniform_random']
        """
        program = self.get_pserver_program(endpoint)
        return program, self.get_startup_program(endpoint, program)

    def get_startup_program(
        self, endpoint: str, pserver_program: Program | None = None, startup_program: Program | None = None
    ) -> Program:
        """Return the startup program of the server at ``endpoint``: the initializers of its rows.

        Parameters
        ----------
        endpoint
            The server's ``host:port``.
        pserver_program
            The server's program; None to make it again.
        startup_program
            The startup program that was transpiled; None for the one passed to :meth:`transpile`.

        Returns
        -------
        Program
            The initializers of the variables, or rows of them, that are on this server.

        Raises
        ------
        GraphError
            The same as in :meth:`get_pserver_program`.

        >>> import paddlelike as fluid
        >>> loss = fluid.layers.mean(fluid.layers.fc(fluid.data("x", [None, 3]), 1))
        >>> _ = fluid.optimizer.SGD(0.1).minimize(loss)
        >>> transpiler = fluid.DistributeTranspiler()
        >>> transpiler.transpile(trainer_id=0, pservers="127.0.0.1:6174", trainers=1)
        >>> server = transpiler.get_pserver_program("127.0.0.1:6174")
        >>> startup = transpiler.get_startup_program("127.0.0.1:6174", server)
        >>> sorted(name for op in startup.global_block().ops for name in op.output_arg_names)
        ['fc_0.b_0', 'fc_0.w_0', 'learning_rate_0']
        """
        result = _require(self._result)
        if pserver_program is None:
            pserver_program = self.get_pserver_program(endpoint)
        result.placement.on(endpoint)
        program = make_server_startup(result.source_startup, pserver_program, result.plan, endpoint)
        self._mark(program, endpoint, result)
        return program

    def _job(
        self,
        trainer_id: int,
        pservers: str,
        trainers: int | str | Sequence[str],
        sync_mode: bool,
        current_endpoint: str,
    ) -> Job:
        if not isinstance(trainers, int) or isinstance(trainers, bool) or trainers < 1:
            raise TypeError(f"trainers is {trainers!r}, expected the number of trainers, 1 or more")
        if not isinstance(trainer_id, int) or trainer_id < 0:
            raise ValueError(f"trainer_id is {trainer_id!r}, expected 0 to {trainers - 1}")
        if not isinstance(pservers, str):
            raise TypeError(
                f"pservers is {pservers!r}, expected one text: 'host:port,host:port'\n"
                "  hint: ','.join(endpoints)"
            )
        endpoints = tuple(part.strip() for part in pservers.split(","))
        if any(":" not in one for one in endpoints) or len(set(endpoints)) < len(endpoints):
            raise ValueError(
                f"pservers is {pservers!r}, expected different endpoints host:port with commas between them"
            )
        check_config(self.config)  # it may have changed since __init__
        sync_mode = sync_mode and not self.config.geo_sgd_mode
        if sync_mode and self.config._distributed_mode != DistributedMode.SYNC:
            warn_user(
                "config.sync_mode is False but transpile() has sync_mode=True: servers will not wait for all "
                "trainers, as in Fluid; pass sync_mode=False, or leave config.sync_mode True"
            )
        return Job(self.config, trainer_id, trainers, endpoints, current_endpoint, bool(sync_mode))

    def _mark(self, program: Program, endpoint: str, result: _Transpiled) -> None:
        """Set the attributes of a program that saving and loading read."""
        program._is_distributed = True
        program._is_chief = result.job.trainer_id == 0
        program._endpoints = list(result.job.endpoints)
        program._ps_endpoint = endpoint
        program._distributed_lookup_table = result.plan.table
        program._parameters_on_pservers = result.placement


class GeoSgdTranspiler(DistributeTranspiler):
    """The transpiler with ``config.geo_sgd_mode``: trainers update parameters and send the changes."""

    def __init__(self, config: DistributeTranspilerConfig | None = None) -> None:
        super().__init__(config)
        self.config.sync_mode = False
        self.config.geo_sgd_mode = True


def _rewrite(main: Program, startup: Program, job: Job) -> tuple[Training, Plan]:
    """Turn a network into a trainer's programs, which still include the updates."""
    training = find_training(main)
    if job.is_geo:
        return training, _rewrite_geo(main, startup, training, job)
    table = find_table(main)
    plan = make_plan(main, training, job, table)
    grads = [] if table is None else declare_table_gradients(main, plan)
    counter = None if job.sync else count_asynchronously(main, startup, job)
    add_traffic(main, plan, counter)
    check_startup(startup, plan)
    receive_initial_values(startup, main, plan)
    if table is not None:
        shard_table(main, plan, grads)
    return training, plan


def _rewrite_geo(main: Program, startup: Program, training: Training, job: Job) -> Plan:
    plan = make_plan(main, training, job, None)
    if plan.growing:
        raise UnsupportedError(
            "geo-SGD with a growing table (sparse_embedding), which trainers do not have whole",
            hint="train it synchronously or asynchronously, or use embedding(is_sparse=True) with a size",
        )
    turn_into_differences(main, plan)
    add_geo_traffic(main, plan)
    check_startup(startup, plan)
    receive_initial_values(startup, main, plan)
    send_start(startup, plan)
    return plan


def _require(result: _Transpiled | None) -> _Transpiled:
    if result is None:
        raise GraphError("no program was transpiled yet", hint="call transpile() first")
    return result


def _wait_for(endpoints: tuple[str, ...]) -> None:
    from paddlelike.distributed.settings import Settings
    from paddlelike.distributed.wire import wait_for_servers

    wait_for_servers(endpoints, Settings.from_environment().limits.window)
