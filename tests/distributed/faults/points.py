"""Fault injection: the points at which a process of a test job can be killed or stopped.

FAULT holds JSON: ``{"at": point, "number": round, "server": index, "do": "kill" | "stop"}`` (the inner two
may be left out), or ``{"lose": 7}``: every seventh answer to this trainer is lost after its work was done.

====================  ======================================================================
trainer.<verb>        before the call; the last Complete is called leave
trainer.<verb>.mid    when part of its payload is sent
trainer.<verb>.done   when it is answered
server.apply          before a round is applied
server.apply.mid      when it is applied in part
server.apply.done     when it is applied, before anybody knows
server.<verb>         when the request has come, before it is worked on
server.<verb>.done    when the answer is made, before it is sent
server.load           before a saved directory is loaded
server.write          in a save, before this server writes rows or reports its position
====================  ======================================================================

A trainer also reports what its state machine is told: ``{"failed": server}`` for a call without a reply,
``{"missing": [...]}`` and ``{"silent": [...]}`` for the trainers that a server waits for.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from paddlelike.distributed.client.calls import Calls
from paddlelike.distributed.protocol.messages import Request, Waiting
from paddlelike.distributed.protocol.trainer import TrainerState
from paddlelike.distributed.server.grouped_updates import GroupedUpdate
from paddlelike.distributed.server.service import Service
from paddlelike.distributed.settings import Settings
from paddlelike.distributed.wire import Channel
from paddlelike.errors import UnreachableError
from paddlelike.executor.plans.context import StepContext

FAULT: dict[str, Any] = {}
_SIGNALS = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP}
_once = threading.Lock()


def reach(point: str, number: int | None = None, server: int | None = None) -> None:
    """Kill or stop this process if the fault is planned for this point."""
    if FAULT.get("at") != point:
        return
    planned = FAULT.get("number")
    if planned is not None and (number is None or number < planned):
        return  # a later one is as good: asynchronous updates that begin in one round skip the next number
    if FAULT.get("server", server) != server:
        return
    if _once.acquire(blocking=False):
        os.kill(os.getpid(), _SIGNALS[FAULT["do"]])


def install() -> None:
    """Read FAULT and wrap the methods that the points are in."""
    FAULT.update(json.loads(os.environ["FAULT"]))
    _poll_often()
    if FAULT.get("lose"):
        _lose_answers(FAULT["lose"])
    _wrap_calls()
    _report_replies()
    _wrap_rounds()
    _wrap_verbs()


def _poll_often() -> None:
    """Let calls that wait for others report who is missing every two seconds instead of ten."""
    read = Settings.from_environment

    def polling() -> Settings:
        found = read()
        return replace(found, limits=replace(found.limits, poll=min(found.limits.poll, 2.0)))

    Settings.from_environment = staticmethod(polling)  # type: ignore[assignment, method-assign]


def _number(request: Any) -> int | None:
    for name in ("number", "round", "version"):
        value = getattr(request, name, None)
        if isinstance(value, int):
            return value
    return None


def _lose_answers(each: int) -> None:
    start, count = Channel.start_direct, iter(range(1, 1 << 30))

    def losing(channel: Channel, direct: Any, verb: str, *args: Any) -> Callable[[], Any]:
        finish = start(channel, direct, verb, *args)

        def finish_and_lose() -> Any:
            answer = finish()
            if next(count) % each == 0:
                raise UnreachableError(channel.endpoint, verb, "lost on purpose")
            return answer

        return finish_and_lose

    Channel.start_direct = losing  # type: ignore[method-assign]


def _wrap_calls() -> None:
    start, send = Calls.start_call, Channel.start_direct
    current = threading.local()

    def pointed(calls: Calls, step: Any, direct: Any) -> Callable[[], Any]:
        verb, number = step.request.verb.lower(), _number(step.request)
        verb = "leave" if getattr(step.request, "last", False) else verb
        current.where = (verb, number, step.server)
        reach(f"trainer.{verb}", number, step.server)
        finish = start(calls, step, direct)

        def finish_and_reach() -> Any:
            reply = finish()
            if reply.kind == "ok":
                reach(f"trainer.{verb}.done", number, step.server)
            return reply

        return finish_and_reach

    def cut(parts: Iterable[Any], where: tuple[Any, ...]) -> Iterator[Any]:
        for count, part in enumerate(parts):
            if count == 1:
                reach(f"trainer.{where[0]}.mid", *where[1:])
            yield part

    def sending(channel: Channel, direct: Any, verb: str, head: Any, parts: Any, *args: Any) -> Any:
        where = getattr(current, "where", None)
        if where is not None and where[0] == verb.lower():
            parts = cut(parts, where)
        return send(channel, direct, verb, head, parts, *args)

    Calls.start_call = pointed  # type: ignore[method-assign]
    Channel.start_direct = sending  # type: ignore[method-assign]


def _report_replies() -> None:
    """Report failed calls and waits, each once until it changes, for tests to wait for."""
    fail_call, take_reply = TrainerState.fail_call, TrainerState.take_reply
    reported: dict[str, Any] = {}

    def report(key: str, value: Any) -> None:
        if reported.get(key) != value:
            reported[key] = value
            sys.stdout.write(json.dumps({key: value}) + "\n")
            sys.stdout.flush()

    def failing(state: TrainerState, call: Any, why: str, now: float) -> None:
        report("failed", call.server)
        fail_call(state, call, why, now)

    def taking(state: TrainerState, call: Any, reply: Any, now: float) -> None:
        if isinstance(reply, Waiting) and reply.missing:
            report("missing", list(reply.missing))
            report("silent", list(reply.silent))
        take_reply(state, call, reply, now)

    TrainerState.fail_call = failing  # type: ignore[method-assign]
    TrainerState.take_reply = taking  # type: ignore[method-assign]


def _wrap_rounds() -> None:
    apply, write, run_block = Service._apply, Service._write, StepContext.run_block
    run_group = GroupedUpdate.run
    of_thread = threading.local()  # `under_way`: the round, once for every block of it

    def list_under_way() -> list[int]:
        found: list[int] = of_thread.__dict__.setdefault("under_way", [])
        return found

    def applying(service: Service, work: Any) -> None:
        reach("server.apply", work.round)
        list_under_way()[:] = [work.round]
        apply(service, work)
        list_under_way().clear()
        reach("server.apply.done", work.round)

    def running(context: StepContext, block: Any) -> Any:
        under_way = list_under_way()
        if len(under_way) == 2:
            reach("server.apply.mid", under_way[0])
        under_way.extend(under_way[:1])
        return run_block(context, block)

    def grouping(group: GroupedUpdate, *args: Any) -> bool:
        kernel = group._kernel

        def update_in_parts(members: Any) -> bool:
            if not kernel(members[:1]):
                return False
            if under_way := list_under_way():
                reach("server.apply.mid", under_way[0])
            return len(members) == 1 or kernel(members[1:])

        group._kernel = update_in_parts
        try:
            return run_group(group, *args)
        finally:
            group._kernel = kernel

    def writing(service: Service, request: Any) -> Any:
        reach("server.write", request.version)
        return write(service, request)

    Service._apply = applying  # type: ignore[method-assign]
    Service._write = writing  # type: ignore[method-assign]
    StepContext.run_block = running  # type: ignore[method-assign]
    GroupedUpdate.run = grouping  # type: ignore[method-assign]


def _wrap_verbs() -> None:
    hear, ask, ask_until = Service.hear, Service.ask, Service.ask_until

    def heard(service: Service, request: Request) -> None:
        reach(f"server.{request.verb.lower()}", _number(request))
        hear(service, request)

    def asked(service: Service, request: Request) -> Any:
        return answered(request, ask(service, request))

    def asked_until(service: Service, request: Request, patience: float) -> Any:
        return answered(request, ask_until(service, request, patience))

    def answered(request: Request, reply: Any) -> Any:
        if reply.kind == "ok":
            reach(f"server.{request.verb.lower()}.done", _number(request))
        return reply

    Service.hear = heard  # type: ignore[method-assign]
    Service.ask = asked  # type: ignore[method-assign]
    Service.ask_until = asked_until  # type: ignore[method-assign]
