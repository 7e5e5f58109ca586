"""fleet for collective training: every worker has all parameters, and their gradients are added up.

Fluid's name is ``incubate.fleet.collective``. :mod:`paddlelike.distributed.collective`
does the exchanges.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from paddlelike.distributed.collective.data_parallel import share_out
from paddlelike.distributed.fleet.base import Fleet, Mode
from paddlelike.distributed.fleet.checkpoints import (
    FileSystem,
    TrainStatus,
    delete_checkpoints,
    find_last_checkpoint,
    read_checkpoint,
    write_checkpoint,
)
from paddlelike.distributed.fleet.optimizer import DistributedOptimizer
from paddlelike.distributed.transpiler import DistributeTranspiler, DistributeTranspilerConfig
from paddlelike.errors import UnsupportedError
from paddlelike.executor import BuildStrategy, CompiledProgram, ExecutionStrategy, Executor
from paddlelike.foundation.near_names import suggest_names
from paddlelike.foundation.warn import warn_user
from paddlelike.framework import Program, default_startup_program
from paddlelike.hooks import Hook
from paddlelike.io import save_inference_model, save_persistables
from paddlelike.optimizer import RecomputeOptimizer

if TYPE_CHECKING:
    from paddlelike.framework import Operator, Parameter, Variable
    from paddlelike.io.report import SaveReport
    from paddlelike.optimizer.base import Optimizer
    from paddlelike.optimizer.state import ParamGrads

__all__ = [
    "Collective",
    "CollectiveOpBasedOptimizer",
    "CollectiveOptimizer",
    "DistFCConfig",
    "DistributedStrategy",
    "LambConfig",
    "TrainStatus",
    "fleet",
]

_decorate_optimizer: Final[Hook[..., Any]] = Hook("decorate_optimizer")


class LambConfig:
    """Fluid's options of LAMB; there are none."""


class DistFCConfig:
    """Fluid's options for dividing a fully connected layer among workers; this is not supported."""


class DistributedStrategy(BuildStrategy):
    """How workers train together.

    Attributes
    ----------
    mode
        ``"nccl2"``: the compilation of the program adds gradients up. ``"collective"``: operators do.
    collective_mode
        In the mode collective: ``"grad_allreduce"`` or ``"local_sgd"``.
    use_local_sgd
        The same as ``"collective"`` with ``"local_sgd"``.
    forward_recompute, recompute_checkpoints
        Compute the activations between these again in the backward pass.
    use_amp, amp_loss_scaling
        Mixed precision, by ``contrib.mixed_precision.decorate``, which trains in float32 and warns of
        that.
    nccl_comm_num, use_hierarchical_allreduce, hierarchical_allreduce_inter_nranks
        Kept in the programs; one connection carries everything.
    sync_batch_norm
        Normalize by the batches of all workers, in the mode nccl2.
    exec_strategy
        Options for ``CompiledProgram``.
    use_dist_fc, dist_fc_config
        These options are not supported.
    """

    nccl_comm_num: int
    use_hierarchical_allreduce: bool
    hierarchical_allreduce_inter_nranks: int
    recompute_checkpoints: list[Variable | str]
    exec_strategy: ExecutionStrategy
    trainers_endpoints: list[str]

    mode = "nccl2"
    collective_mode: str | None = None
    use_local_sgd = use_dist_fc = forward_recompute = use_amp = _ut4grad_allreduce = False
    dist_fc_config: DistFCConfig | None = None
    amp_loss_scaling: float = 2**15

    def __init__(self) -> None:
        super().__init__()
        self.__dict__.update(recompute_checkpoints=[], exec_strategy=ExecutionStrategy())

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an option. An unknown name is kept with a warning: Fluid's own scripts set some."""
        if not hasattr(self, name):
            near = suggest_names(name, dir(self), lead="; ")
            warn_user(f"DistributedStrategy has no option {name!r}: it has no effect{near}")
        self.__dict__[name] = value


class Collective(Fleet):
    """The fleet of a job of workers alone.

    Attributes
    ----------
    main_program, startup_program
        The programs that this worker runs, after ``minimize`` of the distributed optimizer. The first is a
        CompiledProgram in the mode nccl2.

    Examples
    --------
    >>> from paddlelike import layers, optimizer
    >>> from paddlelike.distributed.fleet.role_maker import UserDefinedCollectiveRoleMaker
    >>> from paddlelike.input import data
    >>> fleet = Collective()
    >>> fleet.init(UserDefinedCollectiveRoleMaker(1, ["127.0.0.1:6170", "127.0.0.1:6171"]))
    >>> loss = layers.mean(layers.fc(data("x", [None, 4]), 1))
    >>> strategy = DistributedStrategy()
    >>> strategy.mode, strategy.collective_mode = "collective", "grad_allreduce"
    >>> _ = fleet.distributed_optimizer(optimizer.SGD(0.1), strategy).minimize(loss)
    >>> [op.type for op in fleet.main_program.global_block().ops][-4:]
    ['c_allreduce_sum', 'c_sync_comm_stream', 'sgd', 'sgd']
    """

    def __init__(self) -> None:
        super().__init__(Mode.COLLECTIVE)
        self.main_program: Program | CompiledProgram | None = None
        self.startup_program: Program | None = None
        self._origin_program: Program | None = None
        self._transpiled_program: Program | None = None
        self._optimizer: CollectiveOptimizer | None = None

    def distributed_optimizer(
        self, optimizer: Optimizer, strategy: DistributedStrategy | None = None
    ) -> CollectiveOptimizer:
        """Return an optimizer whose ``minimize`` also makes the programs of this worker.

        Raises
        ------
        RoleError
            It is called before ``init``.
        TypeError
            ``optimizer`` or ``strategy`` is something else.
        """
        _ = self._role
        self._optimizer = CollectiveOptimizer(optimizer, strategy, owner=self)
        return self._optimizer

    def init_worker(self) -> None:
        """Do nothing except warn: workers join the job in the startup program."""
        _warn_no_effect("init_worker")

    def run_worker(self, main_programs: object = None, scopes: object = None) -> None:
        """Do nothing except warn: workers join the job in the startup program."""
        _warn_no_effect("run_worker")

    def init_server(self, model_dir: str | None = None) -> None:
        """Do nothing except warn: workers join the job in the startup program."""
        _warn_no_effect("init_server")

    def run_server(self) -> None:
        """Do nothing except warn: workers join the job in the startup program."""
        _warn_no_effect("run_server")

    def stop_worker(self) -> None:
        """Do nothing except warn: workers join the job in the startup program."""
        _warn_no_effect("stop_worker")

    def save_persistables(
        self,
        executor: Executor,
        dirname: str,
        main_program: Program | None = None,
        filename: str | None = None,
    ) -> SaveReport | None:
        """Save all persistables, on worker 0: all workers have the same parameters.

        Parameters
        ----------
        executor
            Any executor of this process.
        dirname, filename
            The same as for ``fluid.io.save_persistables``.
        main_program
            A Program. None means the program of ``minimize``, before it was transpiled.

        Raises
        ------
        TypeError
            ``executor`` is not an Executor, or ``main_program`` is not a Program.
        GraphError
            It is called before ``minimize``.
        SaveError
            The save failed; the earlier files are unchanged.
        """
        program = self._check("save_persistables", executor, main_program, self._origin_program)
        if not self._is_saving(dirname):
            return None
        return save_persistables(executor, dirname, program, filename)

    def save_inference_model(
        self,
        executor: Executor,
        dirname: str,
        feeded_var_names: Sequence[str] | None = None,
        target_vars: Sequence[Variable] | None = None,
        main_program: Program | None = None,
        export_for_deployment: bool = True,
    ) -> list[str]:
        """Save an inference model, on worker 0. Arguments and errors: ``fluid.io.save_inference_model``."""
        program = self._check("save_inference_model", executor, main_program, self._origin_program)
        targets = [program.global_block().var(variable.name) for variable in target_vars or ()]
        if not self._is_saving(dirname):
            return [target.name for target in targets]
        return save_inference_model(
            dirname, list(feeded_var_names or ()), targets, executor, program,
            export_for_deployment=export_for_deployment,
        )  # fmt: skip

    def save_check_point(
        self,
        executor: Executor,
        path: str,
        train_status: TrainStatus,
        main_program: Program | None = None,
        fs: FileSystem | None = None,
        local_cache_path: str = ".cache",
        remain_all_checkpoint: bool = True,
    ) -> None:
        """Save all persistables and the epoch below ``path``, as the next checkpoint; on worker 0.

        Parameters
        ----------
        executor, main_program
            The same as for :meth:`save_persistables`; a ``main_program`` of None is the program that was
            transpiled.
        path
            The directory of the checkpoints ``__paddle_fleet_checkpoint__.N``.
        train_status
            The epoch that was completed.
        fs
            The file system of ``path``, of ``paddle.distributed.fs_wrapper``. None means this machine's.
        local_cache_path
            The directory that the checkpoint is written to before ``fs`` uploads it.
        remain_all_checkpoint
            Keep the earlier checkpoints; else only the new one stays.

        Raises
        ------
        SaveError
            The save failed; the earlier checkpoints are unchanged.
        """
        program = self._check("save_check_point", executor, main_program, self._transpiled_program)
        if not self._is_saving(path):
            return
        write_checkpoint(executor, path, train_status, program, fs, local_cache_path)
        if not remain_all_checkpoint:
            self.clean_redundant_check_points(path, fs)

    def load_check_point(
        self,
        executor: Executor,
        path: str,
        trainer_id: int,
        main_program: Program | None = None,
        fs: FileSystem | None = None,
        local_cache_path: str = ".cache",
        ignore_empty: bool = True,
    ) -> TrainStatus | None:
        """Load the newest checkpoint below ``path``, on every worker; return its position in training.

        Without a checkpoint, return None unless ``ignore_empty`` is False. Files downloaded by ``fs`` are
        kept below ``local_cache_path`` during the load, by ``trainer_id``.

        Raises
        ------
        LoadError
            There is no checkpoint and ``ignore_empty`` is False, or it does not fit the program.
        """
        program = self._check("load_check_point", executor, main_program, self._transpiled_program)
        cache = f"{local_cache_path}/load_cache.{trainer_id}"
        return read_checkpoint(executor, path, program, fs, cache, ignore_empty=ignore_empty)

    @staticmethod
    def clean_redundant_check_points(
        root_path: str, fs: FileSystem | None = None, checkpoint_num: int = 1
    ) -> None:
        """Delete all but the newest ``checkpoint_num`` checkpoints."""
        delete_checkpoints(root_path, fs, max(checkpoint_num, 1))

    @staticmethod
    def _get_last_checkpoint_no(root_path: str, fs: FileSystem | None = None) -> int:
        """Return the number of the newest checkpoint, -1 where there is none. Scripts call it."""
        return find_last_checkpoint(root_path, fs)

    def _is_saving(self, dirname: str) -> bool:
        if not self.is_first_worker():
            warn_user(f"nothing was saved into {dirname}: worker 0 saves for all workers")
        return self.is_first_worker()


class CollectiveOpBasedOptimizer(DistributedOptimizer):
    """The base of Fluid's optimizers that put operators of collectives into a program themselves.

    Raises TypeError unless ``strategy`` is a DistributedStrategy.
    """

    def __init__(self, optimizer: Optimizer, strategy: DistributedStrategy | None = None) -> None:
        if not isinstance(strategy, DistributedStrategy):
            raise TypeError(f"strategy must be a DistributedStrategy, got {strategy!r}")
        super().__init__(optimizer, strategy)


class CollectiveOptimizer(DistributedOptimizer):
    """An optimizer whose ``minimize`` also makes the programs of this worker.

    Raises TypeError where ``optimizer`` is not an optimizer or ``strategy`` is not a DistributedStrategy,
    ValueError where the recomputed checkpoints are not a list.
    """

    _strategy: DistributedStrategy

    def __init__(
        self,
        optimizer: Optimizer,
        strategy: DistributedStrategy | None = None,
        *,
        owner: Collective | None = None,
    ) -> None:
        strategy = DistributedStrategy() if strategy is None else strategy
        if not isinstance(strategy, DistributedStrategy):
            raise TypeError(
                "fleet.distributed_optimizer: strategy is a DistributedStrategy of "
                f"incubate.fleet.collective, not {strategy!r}"
            )
        super().__init__(optimizer, strategy)
        if not isinstance(strategy.recompute_checkpoints, list):
            raise ValueError(
                f"strategy.recompute_checkpoints is {strategy.recompute_checkpoints!r}, expected a list"
            )
        self._owner = fleet if owner is None else owner
        self.print_config = False

    def minimize(
        self,
        loss: Variable,
        startup_program: Program | None = None,
        parameter_list: Sequence[Parameter | str] | None = None,
        no_grad_set: Iterable[Variable | str] | None = None,
    ) -> tuple[list[Operator], ParamGrads]:
        """Append the training step, then make ``fleet.main_program`` and ``fleet.startup_program`` of it.

        Returns the update operators, and pairs of parameters and gradients.

        Raises
        ------
        ValueError
            Options of the strategy contradict each other.
        UnsupportedError
            The strategy sets ``use_dist_fc``.
        GraphError
            The program cannot be transpiled.
        """
        strategy = self._strategy
        optimizer: Any = self._optimizer
        if strategy.use_dist_fc:
            raise UnsupportedError(
                "strategy.use_dist_fc: a fully connected layer that workers share is not supported",
                hint="leave it False; a large embedding fits parameter servers",
            )
        _check_modes(strategy)
        if strategy.forward_recompute:
            optimizer = _recompute(optimizer, strategy)
        if strategy.use_amp:
            optimizer = _decorate_optimizer.function(
                optimizer, init_loss_scaling=strategy.amp_loss_scaling, use_dynamic_loss_scaling=True
            )
        main = loss.block.program
        startup = default_startup_program() if startup_program is None else startup_program
        found = optimizer.minimize(loss, startup, parameter_list, no_grad_set)
        owner = self._owner
        owner.startup_program = startup
        owner._origin_program, owner._transpiled_program = main.clone(), main
        owner.main_program = self._make_main_program(loss, main, startup)
        return found[0], found[1]

    def _make_main_program(
        self, loss: Variable, main: Program, startup: Program
    ) -> Program | CompiledProgram:
        strategy, owner = self._strategy, self._owner
        endpoints, rank = owner._role.get_trainer_endpoints(), owner.worker_index()
        hosts = {endpoint.rpartition(":")[0] for endpoint in endpoints}
        if len(hosts) == 1 or strategy.sync_batch_norm:  # as Fluid, which says so in its log
            strategy.nccl_comm_num = 1
            strategy.use_hierarchical_allreduce = False
        config = DistributeTranspilerConfig()
        config.mode, config.collective_mode = strategy.mode, strategy.collective_mode
        config.nccl_comm_num = strategy.nccl_comm_num
        config.use_hierarchical_allreduce = strategy.use_hierarchical_allreduce
        config.hierarchical_allreduce_inter_nranks = strategy.hierarchical_allreduce_inter_nranks
        DistributeTranspiler(config).transpile(
            rank,
            program=main,
            trainers=",".join(endpoints),
            startup_program=startup,
            current_endpoint=endpoints[rank],
        )
        if strategy.mode == "collective":
            if strategy.sync_batch_norm:
                raise UnsupportedError(
                    "strategy.sync_batch_norm is for the mode nccl2, in which the program is compiled",
                    hint='strategy.mode = "nccl2"',
                )
            return main
        strategy.num_trainers, strategy.trainer_id = len(endpoints), rank
        strategy.trainers_endpoints = endpoints
        if strategy.reduce_strategy == strategy.ReduceStrategy.Reduce and len(endpoints) > 1:
            share_out(main, len(endpoints))
            if owner._origin_program is not None:
                owner._origin_program._sharding = main._sharding
        return CompiledProgram(main).with_data_parallel(
            loss_name=loss.name, build_strategy=strategy, exec_strategy=strategy.exec_strategy
        )


def _check_modes(strategy: DistributedStrategy) -> None:
    """Set the modes that the options select. Raises ValueError for contradictory modes."""
    for option, mode in (("use_local_sgd", "local_sgd"), ("_ut4grad_allreduce", "grad_allreduce")):
        if getattr(strategy, option):
            strategy.mode, strategy.collective_mode = "collective", mode
    if strategy.collective_mode in ("local_sgd", "grad_allreduce") and strategy.mode != "collective":
        raise ValueError(
            f"strategy.collective_mode is {strategy.collective_mode!r}, but strategy.mode is "
            f"{strategy.mode!r}: it needs 'collective'"
        )


def _recompute(optimizer: Any, strategy: DistributedStrategy) -> RecomputeOptimizer:
    if not strategy.recompute_checkpoints:
        raise ValueError(
            "strategy.forward_recompute needs strategy.recompute_checkpoints, a list of variables"
        )
    if isinstance(optimizer, RecomputeOptimizer):
        raise ValueError(
            "strategy.forward_recompute is True, but the optimizer is a RecomputeOptimizer already"
        )
    wrapped = RecomputeOptimizer(optimizer)
    wrapped._set_checkpoints(strategy.recompute_checkpoints)
    return wrapped


def _warn_no_effect(name: str) -> None:
    warn_user(f"fleet.{name}() has no effect in collective training, which has no servers")


fleet = Collective()
