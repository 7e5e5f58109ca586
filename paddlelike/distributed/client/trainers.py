"""The clients of this process by scope: a scope's parameters belong to one job, for all executors."""

from __future__ import annotations

import functools
import itertools
import weakref
from collections.abc import Iterator
from typing import Final

from paddlelike.core import Scope, global_scope
from paddlelike.distributed.client.client import Client
from paddlelike.framework import Block

#: Has the clients of Communicators that started before a program ran.
_STARTED: Final = Scope()

_clients: weakref.WeakKeyDictionary[Scope, dict[int, Client]] = weakref.WeakKeyDictionary()


def find_client(scope: Scope, trainer: int, block: Block) -> Client:
    """Return the client of trainer ``trainer`` (an id) whose parameters are in ``scope``.

    A client that is not connected, or was interrupted in a call, connects to the servers that the operators
    of ``block`` name. After an interrupt it continues like a restarted trainer.

    Raises
    ------
    FaultError
        A server does not answer in time; names its endpoint.
    """
    mine = _clients.setdefault(root_scope(scope), {})
    started = None if trainer in mine else _clients.get(_STARTED, {}).get(trainer)
    if started is not None and not set(_endpoints(block)).isdisjoint(started.endpoints):
        mine[trainer] = started
        del _clients[_STARTED][trainer]
    before = mine.get(trainer)
    if before is None or before.is_closed:
        if before is not None:
            before.abandon()
        connect = functools.partial(Client, trainer, _endpoints(block), before=before)
        connected = itertools.starmap(connect, ((),))
        mine.update(zip((trainer,), connected, strict=True))  # in one statement: an interrupt cannot lose it
    return mine[trainer]


def find_scope(trainer: int, block: Block) -> Scope:
    """Return the scope whose client :func:`find_client` would use; :data:`_STARTED` if no program has run."""
    endpoints = tuple(_endpoints(block))
    found = [
        (client.is_closed, scope)
        for scope, mine in _clients.items()
        if (client := mine.get(trainer)) is not None and client.endpoints == endpoints
    ]
    return min(found, key=lambda one: one[0], default=(False, _STARTED))[1]


def close_client(scope: Scope, trainer: int) -> None:
    """Close a client of this process, if it is still open. Raises the errors of :meth:`Client.close`."""
    client = _clients.get(scope, {}).pop(trainer, None)
    if client is not None:
        client.close()


def leave_jobs() -> None:
    """Close every client of this process, whichever executor ran it. Raises the errors of
    :meth:`Client.close`.
    """
    for clients in list(_clients.values()):
        while clients:
            clients.popitem()[1].close()


def resumable_steps(steps: int, scope: Scope | None = None) -> Iterator[int]:
    """See :func:`paddlelike.distributed.resumable_steps`."""
    clients = _clients.get(root_scope(global_scope() if scope is None else scope), {})
    if not clients:
        yield from range(steps)
        return
    (client,) = clients.values()
    client.run_in_background(None)  # each step is an update of its own, which the servers count
    client.follows_rollbacks = True
    try:
        while (step := client.round) < steps:
            client.step_discarded = client.parameters_stale  # a step that only receives
            yield step
    finally:
        client.follows_rollbacks = False


def find_trainer_id(block: Block) -> int:
    """Return the trainer id in the operators of a program; 0 if they name none, as in real Fluid's sends."""
    return max((op.attrs.get("trainer_id", 0) for op in block.ops), default=0)


def root_scope(scope: Scope) -> Scope:
    """Return the outermost scope around ``scope``."""
    while scope.parent is not None:
        scope = scope.parent
    return scope


def _endpoints(block: Block) -> list[str]:
    """Return every server that the operators name, in the order of the program's barriers if it has any."""
    ops = sorted(block.ops, key=lambda op: not op.type.endswith("_barrier"))
    named = (op.attrs.get(attribute, ()) for op in ops for attribute in ("epmap", "endpoints"))
    return list(dict.fromkeys(itertools.chain.from_iterable(named)))
