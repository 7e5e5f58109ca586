"""Role makers: who this process is in a job, by the environment or by what the script says."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from enum import IntEnum
from typing import Any, NoReturn

from paddlelike.distributed.roles import ProcessRole, read_role
from paddlelike.errors import RoleError, UnsupportedError

__all__ = [
    "GeneralRoleMaker",
    "MPISymetricRoleMaker",
    "PaddleCloudRoleMaker",
    "Role",
    "RoleMakerBase",
    "UserDefinedCollectiveRoleMaker",
    "UserDefinedRoleMaker",
]


class Role(IntEnum):
    """The parts that a process can play."""

    WORKER = 1
    SERVER = 2


class RoleMakerBase:
    """What fleet asks a role maker; derive from it and fill the role in ``generate_role``.

    That sets ``_role``, ``_current_id``, ``_server_endpoints``, ``_worker_endpoints`` and ``_trainers_num``.
    """

    def __init__(self) -> None:
        self._role: Role | None = None
        self._current_id = -1
        self._server_endpoints: list[str] = []
        self._worker_endpoints: list[str] = []
        self._trainers_num = 0
        self._role_is_generated = False

    def generate_role(self) -> None:
        """Find out the role; called once, by ``fleet.init`` or by the first question."""
        raise NotImplementedError(f"{type(self).__name__} has no generate_role()")

    def _known(self) -> RoleMakerBase:
        if not self._role_is_generated:
            self.generate_role()
            self._role_is_generated = True
        return self

    def is_worker(self) -> bool:
        """Whether this process is a trainer."""
        return self._known()._role == Role.WORKER

    def is_server(self) -> bool:
        """Whether this process is a server."""
        return self._known()._role == Role.SERVER

    def is_first_worker(self) -> bool:
        """Whether this process is trainer 0, the one that saves."""
        return self.is_worker() and self._current_id == 0

    def worker_index(self) -> int:
        """The number of this trainer; on a server, its own number."""
        return self._known()._current_id

    def server_index(self) -> int:
        """The number of this server; on a trainer, its own number."""
        return self._known()._current_id

    def worker_num(self) -> int:
        """How many trainers there are."""
        return self._known()._trainers_num

    def server_num(self) -> int:
        """How many servers there are."""
        return len(self._known()._server_endpoints)

    def get_trainer_endpoints(self) -> list[str]:
        """The trainers' endpoints, if the job names them."""
        return self._known()._worker_endpoints

    def get_pserver_endpoints(self) -> list[str]:
        """The servers' endpoints."""
        return self._known()._server_endpoints

    def to_string(self) -> str:
        """All of it, in Fluid's words."""
        return (
            f"role: {self._role}, current_id: {self._current_id}, "
            f"worker_endpoints: {self._worker_endpoints}, server_endpoints: {self._server_endpoints}"
        )

    def barrier_worker(self) -> None:
        """Does not wait, and says so: trainers meet at the servers, round by round."""
        self._does_nothing("barrier_worker")

    def barrier_all(self) -> None:
        """Does not wait, and says so."""
        self._does_nothing("barrier_all")

    def all_gather(self, input: Any) -> Any:  # noqa: A002  (Fluid's name)
        """Gathers nothing, and says so."""
        self._does_nothing("all_gather")

    def all_reduce_worker(self, input: Any, output: Any, mode: str = "sum") -> None:  # noqa: A002
        """Reduces nothing, and says so."""
        self._does_nothing("all_reduce_worker")

    def _does_nothing(self, name: str) -> None:
        warnings.warn(
            f"{type(self).__name__}.{name}() does nothing: processes meet at the parameter servers only",
            stacklevel=3,
        )


class _EnvironmentRoleMaker(RoleMakerBase):
    """Reads the role from the environment, in the spellings of every generation."""

    def generate_role(self) -> None:
        """Read the environment. Raises RoleError that names all that is missing or contradictory."""
        self._fill(read_role())

    def _fill(self, role: ProcessRole) -> None:
        if role.kind == "local":
            raise RoleError(
                f"{type(self).__name__}: no variable of the environment says what this process is to do",
                hint="start it by python -m paddlelike.distributed.launch, or set TRAINING_ROLE, "
                "PADDLE_PSERVERS_IP_PORT_LIST and PADDLE_TRAINERS_NUM",
            )
        self._role = Role.SERVER if role.kind == "server" else Role.WORKER
        self._current_id = role.index
        self._server_endpoints = list(role.servers)
        self._worker_endpoints = list(role.trainer_endpoints)
        self._trainers_num = role.trainers
        self._role_is_generated = True


class PaddleCloudRoleMaker(_EnvironmentRoleMaker):
    """The role as PaddleCloud and launchers put it into the environment.

    Parameters
    ----------
    is_collective
        Must be False; see Raises.

    Raises
    ------
    UnsupportedError
        For collective training.
    RoleError
        By ``fleet.init``, if the environment does not say the role.

    Examples
    --------
    >>> import os
    >>> from unittest.mock import patch
    >>> job = {"PADDLE_PSERVERS_IP_PORT_LIST": "127.0.0.1:6174", "PADDLE_TRAINERS_NUM": "2"}
    >>> role = PaddleCloudRoleMaker()
    >>> with patch.dict(os.environ, job | {"TRAINING_ROLE": "TRAINER", "PADDLE_TRAINER_ID": "1"}):
    ...     role.generate_role()
    >>> role.is_worker(), role.worker_index(), role.get_pserver_endpoints()
    (True, 1, ['127.0.0.1:6174'])
    """

    def __init__(self, is_collective: bool = False) -> None:
        super().__init__()
        if is_collective:
            _refuse_collective("PaddleCloudRoleMaker(is_collective=True)")


class GeneralRoleMaker(_EnvironmentRoleMaker):
    """The role as PaddleCloudRoleMaker reads it, with the number of a server from PADDLE_PSERVER_ID as well.

    Parameters
    ----------
    **kwargs
        Where gloo's processes would meet (``path``, ``hdfs_name``, ``hdfs_ugi``, ``http_ip_port``,
        ``init_timeout_seconds``, ``run_timeout_seconds``): accepted, and not needed.

    Raises
    ------
    TypeError
        For other arguments.
    UnsupportedError
        By barriers and reductions between several processes, which need gloo.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__()
        known = {
            "hdfs_name", "hdfs_ugi", "path", "init_timeout_seconds", "run_timeout_seconds", "http_ip_port",
        }  # fmt: skip
        if unknown := sorted(set(kwargs) - known):
            raise TypeError(f"GeneralRoleMaker has no arguments {unknown}; it takes {sorted(known)}")

    def get_local_endpoint(self) -> str:
        """This process's own endpoint. Raises RoleError for a trainer whose job does not name it."""
        endpoints = self.get_pserver_endpoints() if self.is_server() else self.get_trainer_endpoints()
        if not endpoints:
            raise RoleError("trainers have no endpoints here", hint="set PADDLE_TRAINER_ENDPOINTS")
        return endpoints[self._current_id]

    def all_gather(self, input: Any) -> Any:  # noqa: A002
        """``[input]`` in a job of one process."""
        self._alone("all_gather", self.worker_num() + self.server_num())
        return [input]

    def all_reduce_worker(self, input: Any, output: Any, mode: str = "sum") -> None:  # noqa: A002
        """Copy ``input`` to ``output`` in a job of one trainer."""
        if self.is_worker():
            self._alone("all_reduce_worker", self.worker_num())
            output[:] = input

    def barrier_worker(self) -> None:
        """Return, in a job of one trainer."""
        if self.is_worker():
            self._alone("barrier_worker", self.worker_num())

    def barrier_all(self) -> None:
        """Not here; see Raises of the class."""
        self._alone("barrier_all", self.worker_num() + self.server_num())

    def _alone(self, name: str, processes: int) -> None:
        if processes > 1:
            raise UnsupportedError(
                f"GeneralRoleMaker.{name}() among {processes} processes needs gloo, which is not here",
                hint="in synchronous training every exe.run of a trainer ends with a barrier at the servers",
            )


class UserDefinedRoleMaker(RoleMakerBase):
    """The role as the script itself says it.

    Parameters
    ----------
    current_id
        The number of this process among those of its role.
    role
        ``Role.WORKER`` or ``Role.SERVER``.
    worker_num
        How many trainers there are, at least 1.
    server_endpoints
        The list of all servers' endpoints.

    Raises
    ------
    TypeError, ValueError
        For what cannot be a role.

    Examples
    --------
    >>> role = UserDefinedRoleMaker(1, Role.SERVER, worker_num=2, server_endpoints=["a:6174", "b:6174"])
    >>> role.is_server(), role.server_index(), role.worker_num()
    (True, 1, 2)
    """

    def __init__(
        self,
        current_id: int = 0,
        role: Role = Role.WORKER,
        worker_num: int = 0,
        server_endpoints: Sequence[str] | None = None,
    ) -> None:
        super().__init__()
        endpoints = _endpoint_list(server_endpoints)
        if role not in (Role.WORKER, Role.SERVER):
            raise TypeError(f"role is Role.WORKER or Role.SERVER, not {role!r}")
        _check_number("current_id", current_id, 0)
        if role == Role.SERVER and current_id >= len(endpoints):
            raise ValueError(
                f"current_id is {current_id}, but the {len(endpoints)} servers are numbered from 0"
            )
        _check_number("worker_num", worker_num, 1)
        if role == Role.WORKER and current_id >= worker_num:
            raise ValueError(f"current_id is {current_id}, but the {worker_num} workers are numbered from 0")
        self._role = Role(role)
        self._current_id = current_id
        self._trainers_num = worker_num
        self._server_endpoints = endpoints

    def generate_role(self) -> None:
        """Nothing: everything is said."""


class UserDefinedCollectiveRoleMaker(RoleMakerBase):
    """For collective training, which is not here. Raises UnsupportedError."""

    def __init__(self, current_id: int = 0, worker_endpoints: Sequence[str] | None = None) -> None:
        _refuse_collective("UserDefinedCollectiveRoleMaker")


class MPISymetricRoleMaker(RoleMakerBase):
    """For processes that mpirun starts, which is not here. Raises UnsupportedError."""

    def __init__(self) -> None:
        raise UnsupportedError(
            "MPISymetricRoleMaker: under MPI the loss of one process ends the job; roles by MPI are not here",
            hint="PaddleCloudRoleMaker() with python -m paddlelike.distributed.launch",
        )


def _endpoint_list(endpoints: Sequence[str] | None) -> list[str]:
    if not isinstance(endpoints, list):
        raise TypeError(f"server_endpoints is a list of 'host:port', not {endpoints!r}")
    if not endpoints:
        raise ValueError("server_endpoints is empty: name at least one server")
    if strange := [endpoint for endpoint in endpoints if not isinstance(endpoint, str)]:
        raise TypeError(f"server_endpoints is a list of 'host:port', not of {strange[0]!r}")
    if len(set(endpoints)) < len(endpoints):
        raise ValueError(f"server_endpoints names one twice: {endpoints}")
    return list(endpoints)


def _check_number(name: str, value: int, least: int) -> None:
    if not isinstance(value, int):
        raise TypeError(f"{name} is an int, not {value!r}")
    if value < least:
        raise ValueError(f"{name} is {value}, expected {least} or more")


def _refuse_collective(what: str) -> NoReturn:
    raise UnsupportedError(
        f"{what}: collective training (nccl2, all-reduce) is not here",
        hint="train with parameter servers: PaddleCloudRoleMaker() and "
        "incubate.fleet.parameter_server.distribute_transpiler",
    )
