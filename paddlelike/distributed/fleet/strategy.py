"""Strategies for fleet's distributed optimizer: how trainers synchronize."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, TypeVar

from paddlelike.distributed.transpiler.config import (
    DistributedMode,
    DistributeTranspilerConfig,
    thread_counts,
)
from paddlelike.executor import BuildStrategy, ExecutionStrategy

T = TypeVar("T")

#: The settings of Fluid's trainers and their defaults; ``None`` stands for CPU_NUM.
_TRAINER: Mapping[str, str | None] = {
    "communicator_max_merge_var_num": None,
    "communicator_send_queue_size": None,
    "communicator_independent_recv_thread": "1",
    "communicator_min_send_grad_num_before_recv": None,
    "communicator_thread_pool_size": "5",
    "communicator_send_wait_times": "5",
    "communicator_is_sgd_optimizer": "1",
    "rpc_deadline": "180000",
    "rpc_retry_times": "3",
}


class TrainerRuntimeConfig:
    """The settings of asynchronous trainers: see :class:`~paddlelike.distributed.communicator.Communicator`.

    ``runtime_configs`` is initialized from the FLAGS_ of the environment. The queue, the threads and the
    settings of calls have no effect.
    """

    def __init__(self) -> None:
        self.mode: DistributedMode | None = None
        threads = os.getenv("CPU_NUM", "1")
        self.runtime_configs = {
            name: os.getenv(f"FLAGS_{name}", threads if default is None else default)
            for name, default in _TRAINER.items()
        }

    def get_communicator_flags(self) -> dict[str, str]:
        """Return the settings as text."""
        return {name: str(value) for name, value in self.runtime_configs.items()}

    def __repr__(self) -> str:
        return f"TrainerRuntimeConfig({self.get_communicator_flags()})"


class ServerRuntimeConfig:
    """Thread counts of Fluid's servers. They have no effect: the number of trainers decides the threads
    here.
    """

    def __init__(self) -> None:
        for name, threads in thread_counts().items():
            setattr(self, f"_{name}", threads)


class DistributedStrategy:
    """The base of strategies, which ``StrategyFactory`` makes.

    The setters take an object of the right class or a dict of attributes to change. They raise TypeError for
    another type, and ValueError for an attribute that the object does not have.
    """

    def __init__(self) -> None:
        self._program_config = DistributeTranspilerConfig()
        self._trainer_runtime_config = TrainerRuntimeConfig()
        self._server_runtime_config = ServerRuntimeConfig()
        self._execute_strategy = ExecutionStrategy()
        self._build_strategy = BuildStrategy()
        self._debug_opt: dict[str, Any] = {}
        self.check_program_config()

    def check_program_config(self) -> None:
        """Set the attributes of the transpiler's configuration that define this strategy.

        Raises NotImplementedError in this base class.
        """
        raise NotImplementedError("make a strategy by StrategyFactory.create_sync_strategy() and the like")

    def get_program_config(self) -> DistributeTranspilerConfig:
        """Return the transpiler's configuration."""
        return self._program_config

    def set_program_config(self, config: DistributeTranspilerConfig | dict[str, Any]) -> None:
        """Set the transpiler's configuration, except the attributes that define this strategy.

        Raises TypeError or ValueError; see the class.
        """
        self._program_config = _update(self._program_config, config)
        self.check_program_config()

    def get_trainer_runtime_config(self) -> TrainerRuntimeConfig:
        """Return the settings of trainers."""
        return self._trainer_runtime_config

    def set_trainer_runtime_config(self, config: TrainerRuntimeConfig | dict[str, Any]) -> None:
        """Set the settings of trainers. Raises TypeError or ValueError; see the class."""
        if isinstance(config, TrainerRuntimeConfig):
            self._trainer_runtime_config = config
            return
        if not isinstance(config, dict):
            raise TypeError(
                f"set_trainer_runtime_config: expected a TrainerRuntimeConfig or a dict, not {config!r}"
            )
        settings = self._trainer_runtime_config.runtime_configs
        if unknown := sorted(set(config) - set(settings)):
            raise ValueError(f"TrainerRuntimeConfig has no {unknown}; it has {sorted(settings)}")
        settings.update(config)

    def get_server_runtime_config(self) -> ServerRuntimeConfig:
        """Return the settings of servers."""
        return self._server_runtime_config

    def set_server_runtime_config(self, config: ServerRuntimeConfig | dict[str, Any]) -> None:
        """Set the settings of servers. Raises TypeError or ValueError; see the class."""
        self._server_runtime_config = _update(self._server_runtime_config, config)

    def get_execute_strategy(self) -> ExecutionStrategy:
        """Return how a compiled program runs."""
        return self._execute_strategy

    def set_execute_strategy(self, config: ExecutionStrategy | dict[str, Any]) -> None:
        """Set how a compiled program runs. Raises TypeError or ValueError; see the class."""
        self._execute_strategy = _update(self._execute_strategy, config)

    def get_build_strategy(self) -> BuildStrategy:
        """Return how a program is compiled."""
        return self._build_strategy

    def set_build_strategy(self, config: BuildStrategy | dict[str, Any]) -> None:
        """Set how a program is compiled. Raises TypeError or ValueError; see the class."""
        self._build_strategy = _update(self._build_strategy, config)

    def set_debug_opt(self, opt_info: dict[str, Any]) -> None:
        """Set the variables that a dataset's trainer would dump. This has no effect."""
        self._debug_opt = dict(opt_info)

    def get_debug_opt(self) -> dict[str, Any]:
        """Return the options set by ``set_debug_opt``."""
        return dict(self._debug_opt)


class SyncStrategy(DistributedStrategy):
    """Servers apply the mean of all trainers' gradients, round by round."""

    def check_program_config(self) -> None:
        """Configure as ``transpile(sync_mode=True)``."""
        self._program_config.runtime_split_send_recv = False
        self._program_config.sync_mode = True
        self._trainer_runtime_config.mode = DistributedMode.SYNC


class AsyncStrategy(DistributedStrategy):
    """Servers apply each trainer's gradients as they arrive."""

    def check_program_config(self) -> None:
        """Configure as ``transpile(sync_mode=False)``."""
        self._program_config.sync_mode = False
        self._program_config.runtime_split_send_recv = True
        self._program_config.half_async = False
        self._trainer_runtime_config.mode = DistributedMode.ASYNC


class HalfAsyncStrategy(DistributedStrategy):
    """Trainers sum the gradients of several batches before sending, and do not wait for each other."""

    def check_program_config(self) -> None:
        """Configure the transpiler's ``half_async``."""
        self._program_config.sync_mode = False
        self._program_config.runtime_split_send_recv = True
        self._program_config.half_async = True
        self._trainer_runtime_config.mode = DistributedMode.HALF_ASYNC


class GeoStrategy(DistributedStrategy):
    """Geo-SGD: trainers update parameters, and exchange differences with the servers.

    Parameters
    ----------
    update_frequency
        The number of batches after which a trainer exchanges.
    """

    def __init__(self, update_frequency: int = 100) -> None:
        self._update_frequency = update_frequency
        super().__init__()

    def check_program_config(self) -> None:
        """Configure the transpiler's ``geo_sgd_mode``."""
        self._program_config.sync_mode = False
        self._program_config.runtime_split_send_recv = True
        self._program_config.geo_sgd_mode = True
        self._program_config.geo_sgd_need_push_nums = self._update_frequency
        self._trainer_runtime_config.mode = DistributedMode.GEO


class StrategyFactory:
    """Makes strategies.

    >>> StrategyFactory.create_sync_strategy().get_program_config().sync_mode
    True
    """

    @staticmethod
    def create_sync_strategy() -> SyncStrategy:
        """Return a strategy of synchronous rounds."""
        return SyncStrategy()

    @staticmethod
    def create_async_strategy() -> AsyncStrategy:
        """Return a strategy of asynchronous updates."""
        return AsyncStrategy()

    @staticmethod
    def create_half_async_strategy() -> HalfAsyncStrategy:
        """Return a strategy of asynchronous updates, each with the sum of several batches."""
        return HalfAsyncStrategy()

    @staticmethod
    def create_geo_strategy(update_frequency: int = 100) -> GeoStrategy:
        """Return a strategy of geo-SGD."""
        return GeoStrategy(update_frequency)


def strategy_for(strategy: DistributedStrategy | DistributeTranspilerConfig | None) -> DistributedStrategy:
    """Return the strategy for a script's argument: a strategy, a transpiler's configuration, or None.

    Raises TypeError for another type.
    """
    if strategy is None:
        return SyncStrategy()
    if isinstance(strategy, DistributedStrategy):
        return strategy
    if not isinstance(strategy, DistributeTranspilerConfig):
        raise TypeError(
            "a strategy is a DistributeTranspilerConfig, or a SyncStrategy, AsyncStrategy, HalfAsyncStrategy "
            f"or GeoStrategy of StrategyFactory, not {strategy!r}"
        )
    result: DistributedStrategy
    if strategy.sync_mode:
        result = SyncStrategy()
    elif strategy.geo_sgd_mode:
        result = GeoStrategy(strategy.geo_sgd_need_push_nums)
    elif strategy.half_async or not strategy.runtime_split_send_recv:
        result = HalfAsyncStrategy()
    else:
        result = AsyncStrategy()
    result.set_program_config(strategy)
    return result


def _update(current: T, config: T | dict[str, Any]) -> T:
    """Return the given object, or change the current one by the attributes in a dict and return it."""
    if isinstance(config, type(current)):
        return config
    if not isinstance(config, dict):
        raise TypeError(f"strategy: expected a {type(current).__name__} or a dict, not {config!r}")
    for name in config:
        if not hasattr(current, name):
            raise ValueError(f"{type(current).__name__} has no {name}")
    for name, value in config.items():
        setattr(current, name, value)
    return current
