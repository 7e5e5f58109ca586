"""The base of every kind of fleet: queries of the role, and the split of files."""

from __future__ import annotations

import random
from enum import IntEnum
from typing import TYPE_CHECKING, Any

import numpy as np

from paddlelike.core import CPUPlace
from paddlelike.distributed.fleet.optimizer import DistributedOptimizer
from paddlelike.distributed.fleet.role_maker_base import RoleMakerBase
from paddlelike.errors import GraphError, RoleError
from paddlelike.executor import Executor
from paddlelike.framework import Program

if TYPE_CHECKING:
    from paddlelike.core import Array

__all__ = ["DistributedOptimizer", "Fleet", "Mode"]


class Mode(IntEnum):
    """Kinds of fleet."""

    TRANSPILER = 1
    PSLIB = 2
    COLLECTIVE = 3


class Fleet:
    """The role of this process in a job; available after ``init``.

    Raises
    ------
    RoleError
        A query comes before ``init``.
    """

    def __init__(self, mode: Mode) -> None:
        self._mode = mode
        self._is_initialized = False
        self._role_maker: RoleMakerBase | None = None
        self._executor = Executor(CPUPlace())

    def init(self, role_maker: RoleMakerBase | None = None) -> None:
        """Determine the role of this process.

        Parameters
        ----------
        role_maker
            A role maker of ``incubate.fleet.base.role_maker``, or a subclass of its RoleMakerBase.

        Raises
        ------
        TypeError
            ``role_maker`` is something else.
        RoleError
            The environment does not define the role.
        """
        if not isinstance(role_maker, RoleMakerBase):
            raise TypeError(
                f"fleet.init takes a role maker such as role_maker.PaddleCloudRoleMaker(), not {role_maker!r}"
            )
        role_maker._generated()
        self._executor = Executor(CPUPlace())
        self._role_maker = role_maker
        self._is_initialized = True

    @property
    def _role(self) -> RoleMakerBase:
        if self._role_maker is None:
            raise RoleError("fleet has no role yet", hint="call fleet.init(role_maker) first")
        return self._role_maker

    def is_worker(self) -> bool:
        """Return whether this process is a trainer. Raises RoleError before ``init``."""
        return self._role.is_worker()

    def is_server(self) -> bool:
        """Return whether this process is a server. Raises RoleError before ``init``."""
        return self._role.is_server()

    def is_first_worker(self) -> bool:
        """Return whether this process is trainer 0, which saves. Raises RoleError before ``init``."""
        return self._role.is_first_worker()

    def worker_index(self) -> int:
        """Return the id of this trainer. Raises RoleError before ``init``."""
        return self._role.worker_index()

    def worker_num(self) -> int:
        """Return the number of trainers. Raises RoleError before ``init``."""
        return self._role.worker_num()

    def server_index(self) -> int:
        """Return the index of this server. Raises RoleError before ``init``."""
        return self._role.server_index()

    def server_num(self) -> int:
        """Return the number of servers. Raises RoleError before ``init``."""
        return len(self._role.get_pserver_endpoints())

    def worker_endpoints(self, to_string: bool = False) -> list[str] | str:
        """Return the trainers' endpoints if the job names them, as a list or joined by commas.

        Raises RoleError before ``init``.
        """
        endpoints = self._role.get_trainer_endpoints()
        return ",".join(endpoints) if to_string else endpoints

    def server_endpoints(self, to_string: bool = False) -> list[str] | str:
        """Return the servers' endpoints, as a list or joined by commas. Raises RoleError before ``init``."""
        endpoints = self._role.get_pserver_endpoints()
        return ",".join(endpoints) if to_string else endpoints

    def split_files(self, files: list[str]) -> list[str]:
        """Return this trainer's share of a list: consecutive items; the first trainers take one more if
        uneven.

        With five files and two trainers, the first one gets three. (Fluid 1.8.5 fails here in Python 3: it
        divides with ``/``.)

        Raises
        ------
        TypeError
            ``files`` is not a list.
        RoleError
            It is called before ``init``.
        """
        if not isinstance(files, list):
            raise TypeError(f"fleet.split_files: files is a list of names, not a {type(files).__name__}")
        trainer, trainers = self.worker_index(), self.worker_num()
        share, more = divmod(len(files), trainers)
        begin = trainer * share + min(trainer, more)
        return files[begin : begin + share + (trainer < more)]

    def barrier_worker(self) -> None:
        """Call :meth:`.RoleMakerBase.barrier_worker` of the role maker, and raise that method's errors."""
        self._role.barrier_worker()

    def all_reduce_worker(self, input: Array, output: Array) -> None:  # noqa: A002  (Fluid's name)
        """Call :meth:`.RoleMakerBase.all_reduce_worker` of the role maker, and raise that method's errors."""
        self._role.all_reduce_worker(input, output)

    def _check(self, name: str, executor: object, program: Any, default: Program | None) -> Program:
        """Return the program to save: the given one, or else one of the fleet."""
        if not isinstance(executor, Executor):
            raise TypeError(f"fleet.{name} takes a fluid.Executor, not {type(executor).__name__}")
        found = default if program is None else program
        if found is None:
            raise GraphError(
                "fleet has no programs yet", hint="fleet.distributed_optimizer(...).minimize(loss) makes them"
            )
        if not isinstance(found, Program):
            raise TypeError(f"fleet.{name} takes a fluid.Program, not {type(found).__name__}")
        return found

    def _spread(self, samples: list[list[Array]]) -> list[list[Array]]:
        """Distribute samples among trainers at random, and return this trainer's."""
        parts: list[list[Any]] = [[] for _ in range(self.worker_num())]
        for sample in samples:
            random.choice(parts).append([(one.dtype.str, one.tolist()) for one in sample])  # noqa: S311
        found = self._role.all_gather(parts)
        if found is None or len(parts) == 1:
            return samples
        mine = [sample for one in found for sample in one[self.worker_index()]]
        return [[np.array(values, dtype) for dtype, values in sample] for sample in mine]

    def _add_up(self, count: int) -> int:
        """Return the sum of one number over all trainers."""
        return sum(self._role.all_gather(count) or [count])
