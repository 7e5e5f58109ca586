"""gRPC's method handlers: read a call, give it to its verb, send the answer or a status.

Each verb has two methods: ``Verb`` answers with one message, ``Verb.stream`` with as many as needed. Both
read a stream, so that our own code also bounds the wait for the first message.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from paddlelike.distributed.wire import frames, health
from paddlelike.distributed.wire.frames import Header
from paddlelike.distributed.wire.idle import IdleWatch
from paddlelike.distributed.wire.options import load_grpc
from paddlelike.distributed.wire.parts import Part
from paddlelike.distributed.wire.security import Security
from paddlelike.distributed.wire.verbs import Refused, Verb
from paddlelike.errors import FrameError

if TYPE_CHECKING:
    import grpc

STREAM = ".stream"  # behind the name of a verb: the answer is a stream
_LONGEST_TEXT = 1000  # characters of an error, which travels in gRPC's metadata

_log = logging.getLogger("paddlelike.distributed")


class Handlers:
    """The method handlers of one server.

    Parameters
    ----------
    security
        Decides which calls hold the job's token.
    watch
        Bounds the waits for peers.
    """

    def __init__(self, security: Security, watch: IdleWatch) -> None:
        self._grpc = load_grpc()
        self._security = security
        self._watch = watch

    def verb_methods(self, verbs: Mapping[str, Verb]) -> dict[str, Any]:
        """Return two method handlers for every verb."""
        methods = {}
        for name, verb in verbs.items():
            methods[name] = self._grpc.stream_unary_rpc_method_handler(self._answer_whole(name, verb))
            streaming = self._grpc.stream_stream_rpc_method_handler(self._answer_streamed(name, verb))
            methods[name + STREAM] = streaming
        return methods

    def health_methods(self) -> dict[str, Any]:
        """Return the method handlers of gRPC's health check."""
        return health.health_methods(
            lambda incoming, context: self._read_message(incoming, context, is_started=False)
        )

    def _answer_whole(self, name: str, verb: Verb) -> Callable[[Iterator[bytes], Any], bytes]:
        def handle(incoming: Iterator[bytes], context: grpc.ServicerContext) -> bytes:
            answer = self._answer(name, verb, incoming, context)
            message = next(answer)
            if next(answer, None) is not None:
                text = (
                    f"the answer of {name} needs more than {frames.WHOLE} bytes, but no stream was requested"
                )
                context.abort(self._grpc.StatusCode.FAILED_PRECONDITION, text)
            return message

        return handle

    def _answer_streamed(self, name: str, verb: Verb) -> Callable[[Iterator[bytes], Any], Iterator[bytes]]:
        def handle(incoming: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
            for message in self._answer(name, verb, incoming, context):
                wait = self._watch.begin_wait(context.cancel, is_started=True)  # until gRPC has sent it
                try:
                    yield message
                finally:
                    self._watch.end_wait(wait)

        return handle

    def _answer(
        self, name: str, verb: Verb, incoming: Iterator[bytes], context: grpc.ServicerContext
    ) -> Iterator[bytes]:
        if not self._security.accepts(context.invocation_metadata()):
            context.abort(self._grpc.StatusCode.UNAUTHENTICATED, "the job token is missing or another job's")
        try:
            header, parts = self._perform(verb, incoming, context)
            yield from frames.messages(header, parts)
        except self._grpc.RpcError:
            raise  # the caller is gone
        except FrameError as error:
            self._abort(context, self._grpc.StatusCode.INVALID_ARGUMENT, str(error))
        except Exception as error:
            _log.exception("%s failed", name)
            self._abort(context, self._grpc.StatusCode.ABORTED, f"{type(error).__name__}: {error}")

    def _perform(
        self, verb: Verb, incoming: Iterator[bytes], context: grpc.ServicerContext
    ) -> tuple[Header, Iterable[Part]]:
        head, body = frames.split(self._read_message(incoming, context, is_started=False))
        try:
            receiver = verb.begin(head)
            intake = frames.Intake(receiver)
            if body:
                intake.take(body)
            while not body and not intake.ended:
                intake.take(self._read_message(incoming, context, is_started=True))
            return verb.end(head, receiver)
        except Refused as refused:
            return refused.header, ()

    def _read_message(
        self, incoming: Iterator[bytes], context: grpc.ServicerContext, *, is_started: bool
    ) -> bytes:
        """Return the next message of a call. Raises FrameError if the call has ended."""
        wait = self._watch.begin_wait(context.cancel, is_started=is_started)
        try:
            message = next(incoming, None)
        finally:
            self._watch.end_wait(wait)
        if message is None:
            raise FrameError("the call broke off before its end")
        return message

    def _abort(self, context: grpc.ServicerContext, code: grpc.StatusCode, text: str) -> NoReturn:
        context.abort(code, text[:_LONGEST_TEXT])
        raise AssertionError
