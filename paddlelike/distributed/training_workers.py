"""The distributed job for ``paddlelike.training``: this process's programs, and the other trainers."""

from __future__ import annotations

from typing import NamedTuple

from paddlelike.core import global_scope
from paddlelike.distributed.client.client import Client
from paddlelike.distributed.client.trainers import find_client, find_trainer_id
from paddlelike.distributed.roles import read_role
from paddlelike.distributed.transpiler import DistributeTranspiler
from paddlelike.errors import UnsupportedError
from paddlelike.executor.run import Executor
from paddlelike.framework import Program


class Share(NamedTuple):
    """The part of a distributed training that this process runs."""

    program: Program
    startup: Program
    is_server: bool


class TrainerWorkers:
    """The trainers of a job, connected through its servers."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.rank = client.trainer
        self.size = client.driver.state.trainers

    def exchange(self, text: str) -> list[str]:
        """Exchange a text with all trainers; return all texts by trainer id. Raises as the client does."""
        return self._client.exchange(text)


def connect_workers(program: Program, executor: Executor) -> TrainerWorkers:
    """Return the trainers that share the servers of a trainer's program (the hook of that name)."""
    block = program.global_block()
    return TrainerWorkers(find_client(global_scope(), find_trainer_id(block), block))


def distribute_training(program: Program, startup: Program, *, sync_mode: bool) -> Share | None:
    """Return this process's share of a network with its optimizer, by the role in its environment.

    Return None for a process without a job. It is the hook of the same name.

    Raises
    ------
    RoleError
        The environment does not define a role.
    UnsupportedError
        The job has no servers.
    """
    role = read_role()
    if role.kind == "local":
        return None
    if role.kind == "worker":
        raise UnsupportedError(
            "paddlelike.training trains with parameter servers, and this job has none",
            hint="fluid.incubate.fleet.collective trains without servers",
        )
    transpiler = DistributeTranspiler()
    transpiler.transpile(
        role.index if role.kind == "trainer" else 0,
        program=program,
        pservers=",".join(role.servers),
        trainers=role.trainers,
        sync_mode=sync_mode,
        startup_program=startup,
        current_endpoint=role.servers[0] if role.endpoint is None else role.endpoint,
    )
    if role.endpoint is None:
        return Share(transpiler.get_trainer_program(), startup, is_server=False)
    main = transpiler.get_pserver_program(role.endpoint)
    return Share(main, transpiler.get_startup_program(role.endpoint, main), is_server=True)
