"""The servers of a job, for a save on trainer 0."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from paddlelike.core import Array, global_scope
from paddlelike.distributed.client.geo import exchanges
from paddlelike.errors import SaveError
from paddlelike.foundation.locks import Lock
from paddlelike.framework import Program

if TYPE_CHECKING:
    from paddlelike.distributed.wire import Receiver

Wanted = tuple[str, str]  # endpoint, name of the variable there


class Servers(Protocol):
    """The verbs of :class:`~paddlelike.distributed.client.client.Client` that a save needs.

    Between two steps of synchronous training the servers' variables do not change.
    """

    def pull(self, wanted: Sequence[Wanted]) -> list[Array]:
        """Pull whole variables of servers into arrays of their own."""

    def stream(self, wanted: Wanted, receiver: Callable[[], Receiver]) -> None:
        """Pull the bytes of one variable into a sink; a repeated call uses a new sink."""

    def row_ids(self, wanted: Wanted) -> Array:
        """Pull the ids in a server's shard of a table, (n,) int64, in the order of its rows."""

    def save(self, directory: str, names: Sequence[str]) -> dict[str, Mapping[str, Any]]:
        """Have every server write its rows of these files of a directory; return their answers by endpoint.

        See :func:`paddlelike.distributed.server.writing.write_rows`.
        Without names they only report their training position.
        """


class OneByOne:
    """Servers called by one thread at a time: several threads write files, but a client allows only one."""

    def __init__(self, servers: Servers) -> None:
        self._servers = servers
        self._lock = Lock()

    def pull(self, wanted: Sequence[Wanted]) -> list[Array]:
        with self._lock.hold():
            return self._servers.pull(wanted)

    def stream(self, wanted: Wanted, receiver: Callable[[], Receiver]) -> None:
        with self._lock.hold():
            self._servers.stream(wanted, receiver)

    def row_ids(self, wanted: Wanted) -> Array:
        with self._lock.hold():
            return self._servers.row_ids(wanted)

    def save(self, directory: str, names: Sequence[str]) -> dict[str, Mapping[str, Any]]:
        with self._lock.hold():
            return self._servers.save(directory, names)


def connect_servers(executor: Any, program: Program) -> Servers:
    """Return the servers of a trainer's program; connect to them if ``executor`` has not done so.

    With geo-SGD, the steps since this trainer's last exchange are sent too.

    Raises
    ------
    FaultError
        A server does not answer in time; names its endpoint.
    """
    client = executor._remote.open().client(global_scope(), program.global_block())
    if client in exchanges:
        exchanges[client].exchange_pending(global_scope())
    return OneByOne(client)


def read_positions(servers: Servers, *, is_synchronous: bool) -> dict[str, Any]:
    """Ask every server for its training position; return them by endpoint, for the manifest of a save.

    Raises
    ------
    SaveError
        The servers of synchronous training are at different rounds, so that no common state exists to be
        saved.
    """
    answers = {endpoint: dict(one.get("position", {})) for endpoint, one in servers.save("", []).items()}
    rounds = {endpoint: one.get("round") for endpoint, one in answers.items()}
    if is_synchronous and len(set(rounds.values())) > 1:
        each = ", ".join(f"{endpoint}: {round}" for endpoint, round in rounds.items())
        raise SaveError(f"the servers are at different rounds ({each})", hint="save between two steps")
    return answers
