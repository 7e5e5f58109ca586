"""Fluid's Communicator: asynchronous training that sends gradients while the next step is computed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from paddlelike.core import global_scope
from paddlelike.errors import RoleError
from paddlelike.framework import Program

if TYPE_CHECKING:
    from paddlelike.distributed.client.client import Client
    from paddlelike.distributed.client.geo import Geo

__all__ = ["Communicator"]


class Communicator:
    """Sends a trainer's gradients in a thread, between :meth:`start` and :meth:`stop`.

    Without one, every step of asynchronous training sends its gradients and waits for new parameters. With
    one, steps continue with the parameters they have; the gradients of several steps are summed and sent
    together. A save and ``exe.close()`` first send the remaining sums.

    As in Fluid, the settings come from ``envs``, or else from ``FLAGS_communicator_...`` in the environment.
    fleet passes the options of its strategy.

    - ``max_merge_var_num`` (20): the largest number of steps that are summed before the next one waits.
    - ``send_wait_times`` (0): a smaller sum is sent after so many hundredths of a second without a further
      step.
    - ``min_send_grad_num_before_recv`` (0): new parameters are received when more steps were sent since.
    - ``independent_recv_thread`` (1): 0 receives them after each sum.
    - ``is_sgd_optimizer`` (1): 0 sends the mean of the steps.

    Parameters
    ----------
    program
        The trainer's program. Its startup program may have been run, or is run next, in any scope.
    mode, kwargs, envs
        As in Fluid; the program decides how trainers and servers work together. For geo-SGD, ``kwargs`` has
        ``push_nums`` (the steps between two exchanges) and ``trainers``.

    Raises
    ------
    TypeError
        ``program`` is not a Program.

    See Also
    --------
    fluid.distributed.connect_remote, fluid.distributed.find_partition
    fluid.distributed.resumable_steps, fluid.DistributeTranspiler

    >>> import paddlelike as fluid
    >>> communicator = Communicator(fluid.Program())
    >>> communicator.is_running()
    False
    """

    def __init__(
        self,
        program: Program,
        mode: int | None = None,
        kwargs: Mapping[str, Any] | None = None,
        envs: Mapping[str, Any] | None = None,
    ) -> None:
        if not isinstance(program, Program):
            raise TypeError(f"Communicator takes a trainer's Program, not {program!r}")
        self._program = program
        self._geo = dict(kwargs or {})
        self._envs = dict(envs or {})
        self._client: Client | None = None
        self._exchange: Geo | None = None

    def start(self) -> None:
        """Start the thread; in synchronous training do nothing.

        Raises
        ------
        FaultError
            A server does not answer in time; names its endpoint.
        RoleError
            A flag is not a number.
        """
        from paddlelike.distributed.checkpoint.partitions import find_placement
        from paddlelike.distributed.client.background import Background
        from paddlelike.distributed.client.geo import Geo, exchanges
        from paddlelike.distributed.client.trainers import find_client, find_scope, find_trainer_id

        block = self._program.global_block()
        trainer = find_trainer_id(block)
        client = find_client(find_scope(trainer, block), trainer, block)
        if client.mode == "sync" or self.is_running():
            return
        placement = find_placement(self._program)
        if placement is not None and placement.is_geo:
            trainers = self._geo.get("trainers", placement.trainers)
            nums = self._geo.get("push_nums", 100)
            self._exchange = exchanges[client] = Geo(client, placement, trainers=trainers, push_nums=nums)
            self._client = client
            return
        unseen = self._flag("min_send_grad_num_before_recv", 0)
        thread = Background(
            most=max(self._flag("max_merge_var_num", 20), 1),
            average=not self._flag("is_sgd_optimizer", 1),
            waits=self._flag("send_wait_times", 0),
            unseen=unseen if self._flag("independent_recv_thread", 1) else 0,
        )
        client.run_in_background(thread)
        self._client = client

    def stop(self) -> None:
        """Send the remaining gradients and end the thread. Raises the error that ended it earlier, if any."""
        client, self._client = self._client, None
        if client is not None and self._exchange is not None:
            from paddlelike.distributed.client.geo import exchanges

            self._exchange.exchange(global_scope())
            del exchanges[client]
            self._exchange = None
        elif client is not None:
            client.run_in_background(None)

    def is_running(self) -> bool:
        """Return whether the thread is running."""
        return self._client is not None

    def _flag(self, name: str, default: int) -> int:
        name = f"communicator_{name}"
        text = str(self._envs.get(name, os.environ.get(f"FLAGS_{name}", default)))
        words = {"true": 1, "false": 0}
        try:
            return words[text.lower()] if text.lower() in words else int(text)
        except ValueError:
            raise RoleError(f"FLAGS_{name} is {text!r}; expected a number") from None
