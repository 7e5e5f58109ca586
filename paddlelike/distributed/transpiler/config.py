"""The configuration of a transpiler, and the checked arguments of ``transpile``."""

from __future__ import annotations

import os
from enum import IntEnum

from paddlelike.distributed.transpiler.slicing import PSDispatcher, RoundRobin
from paddlelike.errors import UnsupportedError
from paddlelike.foundation.near_names import suggest_names
from paddlelike.foundation.warn import warn_user
from paddlelike.lazy import dataclass

MIN_BLOCK_SIZE = 8192  # elements; Fluid's own lower bound


class DistributedMode(IntEnum):
    """When a server applies gradients (attribute ``distributed_mode`` of listen_and_serv)."""

    SYNC = 0  # when those of all trainers have arrived
    ASYNC = 1  # each as it arrives, merged by the trainer before sending
    HALF_ASYNC = 2  # each as it arrives
    GEO = 3  # differences of parameters, each as it arrives


class DistributeTranspilerConfig:
    """How variables are cut and placed on servers, and how trainers synchronize.

    Attributes
    ----------
    slice_var_up : bool
        Cut variables into blocks of rows, at most one per server.
    min_block_size : int
        The least number of elements of a block; 8192 or more.
    split_method : type
        RoundRobin (also when None), HashName, or a subclass of PSDispatcher.
    sync_mode, runtime_split_send_recv : bool
        Whether servers wait for the gradients of all trainers; whether trainers cut gradients while they send
        them, which is possible only without ``sync_mode``.
    half_async, completely_not_async : bool
        Whether trainers are half-asynchronous; whether servers wait for all trainers in asynchronous
        programs.
    mode : str
        ``pserver``; or, without servers, ``nccl2`` (gradients are added up by
        ``CompiledProgram.with_data_parallel`` with ``num_trainers``) or ``collective`` (by operators).
    collective_mode : str
        In the mode collective: ``grad_allreduce``, ``local_sgd`` or ``single_process_multi_thread``.
    nccl_comm_num, use_hierarchical_allreduce, hierarchical_allreduce_inter_nranks
        Stored in the programs, without an effect: one connection carries all data.
    geo_sgd_mode, geo_sgd_need_push_nums
        Whether trainers update parameters themselves, and a Communicator sends the differences; the number of
        steps between two sends.
    enable_dc_asgd, ...
        Options for ways of training that are not supported; see Raises.
    print_log, wait_port
        No effect in the transpiler; fleet waits for the servers unless ``wait_port`` is False.

    Raises
    ------
    ValueError
        ``runtime_split_send_recv`` and ``sync_mode`` are set together. An unknown option gives a warning.
    UnsupportedError
        ``DistributeTranspiler`` raises it when the configuration requests DC-ASGD.

    >>> config = DistributeTranspilerConfig()
    >>> config.sync_mode = False
    >>> config.runtime_split_send_recv = True
    >>> config.min_block_size
    8192
    """

    slice_var_up = True
    split_method: type[PSDispatcher] | None = None
    min_block_size = MIN_BLOCK_SIZE
    enable_dc_asgd = False
    mode = "pserver"
    print_log = False
    wait_port = True
    half_async = False
    completely_not_async = False
    geo_sgd_mode = False
    geo_sgd_need_push_nums = 100
    nccl_comm_num = 1
    use_hierarchical_allreduce = False
    hierarchical_allreduce_inter_nranks = 0
    collective_mode: str | None = None
    _runtime_split_send_recv = False
    _sync_mode = True

    def __setattr__(self, name: str, value: object) -> None:
        if not hasattr(type(self), name):
            options = [one for one in dir(type(self)) if one[0] != "_"]
            near = suggest_names(name, options, lead="; ", count=1)
            warn_user(f"DistributeTranspilerConfig has no option {name!r}{near}")
        super().__setattr__(name, value)

    @property
    def runtime_split_send_recv(self) -> bool:
        """Whether trainers cut gradients while they send them; only without sync_mode.

        Raises
        ------
        ValueError
            It is set to None, or to True while ``sync_mode`` is True.

        >>> import paddlelike as fluid
        >>> config = fluid.DistributeTranspilerConfig()
        >>> config.sync_mode = False
        >>> config.runtime_split_send_recv = True
        """
        return self._runtime_split_send_recv

    @runtime_split_send_recv.setter
    def runtime_split_send_recv(self, value: bool) -> None:
        if value is None:
            raise ValueError("runtime_split_send_recv is True or False, not None")
        if value and self._sync_mode:
            raise ValueError("runtime_split_send_recv needs config.sync_mode = False, set before it")
        self._runtime_split_send_recv = value

    @property
    def sync_mode(self) -> bool:
        """Whether servers wait for the gradients of all trainers.

        Raises
        ------
        ValueError
            It is set to None, or to True while ``runtime_split_send_recv`` is True.

        >>> import paddlelike as fluid
        >>> config = fluid.DistributeTranspilerConfig()
        >>> config.sync_mode
        True
        """
        return self._sync_mode

    @sync_mode.setter
    def sync_mode(self, value: bool) -> None:
        if value is None:
            raise ValueError("sync_mode is True or False, not None")
        if value and self._runtime_split_send_recv:
            raise ValueError("sync_mode needs config.runtime_split_send_recv = False, set before it")
        self._sync_mode = value

    @property
    def _distributed_mode(self) -> DistributedMode:
        if self.sync_mode or self.completely_not_async:
            return DistributedMode.SYNC
        return DistributedMode.ASYNC if self.runtime_split_send_recv else DistributedMode.HALF_ASYNC


def check_config(config: DistributeTranspilerConfig) -> None:
    """Check a configuration.

    Raises
    ------
    UnsupportedError
        The configuration requests DC-ASGD.
    ValueError, TypeError
        ``mode`` is unknown, ``min_block_size`` is too small, or ``split_method`` is not a dispatcher.
    """
    if config.mode not in ("pserver", "nccl2", "collective"):
        raise ValueError(f"config.mode is {config.mode!r}, expected 'pserver', 'nccl2' or 'collective'")
    if config.enable_dc_asgd:
        raise UnsupportedError(
            "config.enable_dc_asgd: DC-ASGD, which corrects late gradients, is not supported",
            hint="leave it False; to train asynchronously without it, set config.sync_mode = False and "
            "pass sync_mode=False to transpile()",
        )
    if config.min_block_size < MIN_BLOCK_SIZE:
        raise ValueError(
            f"config.min_block_size is {config.min_block_size}, expected {MIN_BLOCK_SIZE} or more"
        )
    method = config.split_method
    if method is not None and not (isinstance(method, type) and issubclass(method, PSDispatcher)):
        raise TypeError(
            f"config.split_method is {method!r}, expected RoundRobin, HashName or another PSDispatcher"
        )


@dataclass(frozen=True)
class Job:
    """The checked arguments of ``transpile``."""

    config: DistributeTranspilerConfig
    trainer_id: int
    trainers: int
    endpoints: tuple[str, ...]
    current_endpoint: str
    sync: bool

    @property
    def dispatcher(self) -> type[PSDispatcher]:
        """The dispatcher that places blocks on servers."""
        return self.config.split_method or RoundRobin

    @property
    def merges(self) -> bool:
        """Whether servers sum the gradients of all trainers, which arrive as ``NAME.trainer_<i>``."""
        return self.sync or (self.config.completely_not_async and self.trainers > 1)

    @property
    def is_geo(self) -> bool:
        """Whether trainers update parameters themselves."""
        return self.config.geo_sgd_mode

    @property
    def suffix(self) -> str:
        """The suffix of the names of this trainer's gradients."""
        return f".trainer_{self.trainer_id}" if self.sync and self.trainers > 1 else ""


def thread_counts() -> dict[str, int]:
    """Return the thread counts among listen_and_serv's attributes, from the environment.

    Raises ValueError for a variable that is not an integer.
    """
    names = ("rpc_send_thread_num", "rpc_get_thread_num", "rpc_prefetch_thread_num")
    return {name: int(os.getenv(f"FLAGS_{name}", "12")) for name in names}
