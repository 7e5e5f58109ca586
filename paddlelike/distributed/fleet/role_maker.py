"""Role makers: determine the role of this process from the environment or from the script."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from paddlelike.distributed.fleet.role_maker_base import Role, RoleMakerBase
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


class _EnvironmentRoleMaker(RoleMakerBase):
    """Reads the role from the environment, in the spellings of every generation."""

    _is_collective = False

    def generate_role(self) -> None:
        """Read the environment. Raises RoleError that lists everything missing or contradictory."""
        self._fill(read_role())

    def _fill(self, role: ProcessRole) -> None:
        if role.kind == "local":
            raise RoleError(
                f"{type(self).__name__}: no environment variable defines the role of this process",
                hint="start it by python -m paddlelike.distributed.launch, or set TRAINING_ROLE, "
                "PADDLE_PSERVERS_IP_PORT_LIST and PADDLE_TRAINERS_NUM",
            )
        if self._is_collective is not (role.kind == "worker"):
            asked, found = ("no servers", "servers") if self._is_collective else ("servers", "none")
            raise RoleError(
                f"{type(self).__name__} needs a job with {asked}, but the environment names {found}",
                hint="PaddleCloudRoleMaker(is_collective=True) is for jobs without servers, which the "
                "launcher starts with --run_mode collective",
            )
        self._role = Role.SERVER if role.kind == "server" else Role.WORKER
        self._current_id = role.index
        self._server_endpoints = list(role.servers)
        self._worker_endpoints = list(role.trainer_endpoints)
        self._trainers_num = role.trainers
        self._role_is_generated = True


class PaddleCloudRoleMaker(_EnvironmentRoleMaker):
    """Reads the role that PaddleCloud or a launcher put into the environment.

    Parameters
    ----------
    is_collective
        Whether the job has workers and no servers, for ``incubate.fleet.collective``. Without environment
        variables this process is then the only worker, as in Fluid.

    Raises
    ------
    RoleError
        ``fleet.init`` finds no role in the environment, or a role of another kind of job.

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
        self._is_collective = bool(is_collective)

    def _fill(self, role: ProcessRole) -> None:
        if self._is_collective and role.kind == "local":
            role = ProcessRole("worker", trainer_endpoints=("127.0.0.1:6170",))
        super()._fill(role)


class GeneralRoleMaker(_EnvironmentRoleMaker):
    """Reads the role as PaddleCloudRoleMaker does; a server's index may also come from PADDLE_PSERVER_ID.

    Parameters
    ----------
    **kwargs
        Settings of gloo (``path``, ``hdfs_name``, ``hdfs_ugi``, ``http_ip_port``, ``init_timeout_seconds``,
        ``run_timeout_seconds``). They have no effect.

    Raises
    ------
    TypeError
        Another argument is given.
    UnsupportedError
        A barrier or a reduction between several processes is called: it needs gloo.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__()
        known = {
            "hdfs_name", "hdfs_ugi", "path", "init_timeout_seconds", "run_timeout_seconds", "http_ip_port",
        }  # fmt: skip
        if unknown := sorted(set(kwargs) - known):
            raise TypeError(f"GeneralRoleMaker has no arguments {unknown}; it takes {sorted(known)}")

    def get_local_endpoint(self) -> str:
        """Return this process's endpoint. Raises RoleError for a trainer that the job does not list."""
        endpoints = self.get_pserver_endpoints() if self.is_server() else self.get_trainer_endpoints()
        if not endpoints:
            raise RoleError(
                "the endpoints of the trainers are not known", hint="set PADDLE_TRAINER_ENDPOINTS"
            )
        return endpoints[self._current_id]

    def _warn_no_effect(self, name: str) -> None:
        raise UnsupportedError(
            f"GeneralRoleMaker.{name}() among {self.worker_num()} trainers needs the servers of a fleet",
            hint="call it after fleet.init(...) and fleet.distributed_optimizer(...).minimize(loss)",
        )


class UserDefinedRoleMaker(RoleMakerBase):
    """A role that the script states.

    Parameters
    ----------
    current_id
        The trainer id, or the index of the server.
    role
        ``Role.WORKER`` or ``Role.SERVER``.
    worker_num
        The number of trainers, at least 1.
    server_endpoints
        The endpoints of all servers.

    Raises
    ------
    TypeError, ValueError
        An argument has a wrong type, or a value out of range.

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
            raise TypeError(f"UserDefinedRoleMaker: role is Role.WORKER or Role.SERVER, not {role!r}")
        _check_integer("current_id", current_id, 0)
        if role == Role.SERVER and current_id >= len(endpoints):
            raise ValueError(
                f"UserDefinedRoleMaker: current_id is {current_id}, expected 0 to {len(endpoints) - 1} for "
                f"{len(endpoints)} servers"
            )
        _check_integer("worker_num", worker_num, 1)
        if role == Role.WORKER and current_id >= worker_num:
            raise ValueError(
                f"UserDefinedRoleMaker: current_id is {current_id}, expected 0 to {worker_num - 1} for "
                f"{worker_num} workers"
            )
        self._role = Role(role)
        self._current_id = current_id
        self._trainers_num = worker_num
        self._server_endpoints = endpoints

    def generate_role(self) -> None:
        """Do nothing: the role was given."""


class UserDefinedCollectiveRoleMaker(RoleMakerBase):
    """The role of a worker in collective training, stated by the script.

    Parameters
    ----------
    current_id
        The index of this worker.
    worker_endpoints
        The endpoints of all workers.

    Raises
    ------
    TypeError, ValueError
        An argument has a wrong type, or a value out of range.

    Examples
    --------
    >>> role = UserDefinedCollectiveRoleMaker(1, ["127.0.0.1:6170", "127.0.0.1:6171"])
    >>> role.is_worker(), role.worker_index(), role.worker_num()
    (True, 1, 2)
    """

    def __init__(self, current_id: int = 0, worker_endpoints: Sequence[str] | None = None) -> None:
        super().__init__()
        endpoints = _endpoint_list(worker_endpoints, "worker")
        _check_integer("current_id", current_id, 0)
        if current_id >= len(endpoints):
            raise ValueError(
                f"UserDefinedCollectiveRoleMaker: current_id is {current_id}, expected 0 to "
                f"{len(endpoints) - 1} for {len(endpoints)} workers"
            )
        self._role = Role.WORKER
        self._current_id = current_id
        self._worker_endpoints = endpoints
        self._trainers_num = len(endpoints)

    def generate_role(self) -> None:
        """Do nothing: the role was given."""


class MPISymetricRoleMaker(PaddleCloudRoleMaker):
    """Reads the role as PaddleCloudRoleMaker does; a launcher starts the processes in place of mpirun.

    Of MPI's own calls, ``_node_type_comm.Allreduce`` adds the arrays of all trainers.
    """

    def __init__(self) -> None:
        super().__init__()
        self._node_type_comm = SimpleNamespace(Allreduce=self.all_reduce_worker)


def _endpoint_list(endpoints: Sequence[str] | None, kind: str = "server") -> list[str]:
    if not isinstance(endpoints, list):
        raise TypeError(f"{kind}_endpoints must be a list of 'host:port' texts, got {endpoints!r}")
    if not endpoints:
        raise ValueError(f"{kind}_endpoints is empty: name at least one {kind}")
    if strange := [endpoint for endpoint in endpoints if not isinstance(endpoint, str)]:
        raise TypeError(f"{kind}_endpoints must be a list of 'host:port' texts, got {strange[0]!r} in it")
    if len(set(endpoints)) < len(endpoints):
        raise ValueError(f"{kind}_endpoints names an endpoint twice: {endpoints}")
    return list(endpoints)


def _check_integer(name: str, value: int, least: int) -> None:
    if not isinstance(value, int):
        raise TypeError(f"{name} must be an int, got {value!r}")
    if value < least:
        raise ValueError(f"{name} is {value}, expected {least} or more")
