"""Every exception paddlelike raises on purpose, in one tree.

PaddlelikeError
├── EnforceNotMet            what Fluid's core refuses under this name (``fluid.core.EnforceNotMet``)
│   ├── ShapeError           shapes or dtypes that do not fit an operator
│   ├── OperatorError        an operator failed in a run: names it, its variables and the user's line
│   ├── NotInitializedError  a variable that holds no value yet
│   ├── UnsupportedError     an operator that a program may hold, but that this package cannot run
│   ├── UntrustedError       a program from bytes that holds operators which reach outside of it
│   ├── OutOfMemoryError     a value or a file that is larger than the memory there is
│   ├── FormatError          bytes that are not what a format says they are
│   │   └── FrameError       a message between processes that is cut, too large or malformed
│   ├── LoadError            a load that was refused; nothing was changed
│   │   └── MissingFileError a file that a load needs is not there
│   └── SaveError            a save that was refused or failed; the earlier files are as they were
├── GraphError               a program that cannot be built or changed as asked
├── FeedError                a feed that does not fit its data variables
├── StorageError             a directory or file that cannot be used
├── EndpointError            a host:port that cannot be served or called as asked
├── RemoteError              a call to another process that failed; names its endpoint and the verb
│   ├── UnreachableError     nobody answers there, or the connection broke: may be tried again
│   ├── DeadlineError        no answer in the given time: may be tried again
│   └── RejectedError        the other side refused the call, or failed in it: final
├── RoleError                environment variables that do not say which part a process plays
├── ExtraMissingError        an optional package that is not installed
├── FaultError               a distributed job that cannot go on: names the endpoint or the trainers
│   └── RoundRolledBack      the servers went back to a checkpoint; training goes on from its step
└── EOFException             a reader that has no more batches (Fluid's name: ``fluid.core.EOFException``)

Some errors are also the built-in kind that Fluid raises in the same place (ValueError, TypeError,
RuntimeError), so that scripts which catch those go on working.
"""

from __future__ import annotations

__all__ = [
    "DeadlineError",
    "EOFException",
    "EndpointError",
    "EnforceNotMet",
    "ExtraMissingError",
    "FaultError",
    "FeedError",
    "FormatError",
    "FrameError",
    "GraphError",
    "LoadError",
    "MissingFileError",
    "NotInitializedError",
    "OperatorError",
    "OutOfMemoryError",
    "PaddlelikeError",
    "RejectedError",
    "RemoteError",
    "RoleError",
    "RoundRolledBack",
    "SaveError",
    "ShapeError",
    "StorageError",
    "UnreachableError",
    "UnsupportedError",
    "UntrustedError",
]


class PaddlelikeError(Exception):
    """Base of the tree; catch it to catch everything the package raises on purpose.

    >>> print(PaddlelikeError("3 names, 2 arrays", hint="pass one array per name"))
    3 names, 2 arrays
      hint: pass one array per name
    """

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message if hint is None else f"{message}\n  hint: {hint}")
        self.message = message  # without the hint, for whoever puts a name or a path in front of it
        self.hint = hint


class EnforceNotMet(PaddlelikeError):  # noqa: N818  (Fluid's name)
    """An operator refused its inputs, or a file was refused."""


class ShapeError(EnforceNotMet, ValueError):
    """Shapes or dtypes that do not fit an operator."""


class OperatorError(EnforceNotMet):
    """An operator failed while a program ran."""


class NotInitializedError(EnforceNotMet):
    """A variable is read before anything was written to it."""


class UntrustedError(EnforceNotMet):
    """A program from bytes that holds operators which reach outside of it: files, processes, the terminal."""


class OutOfMemoryError(EnforceNotMet, MemoryError):
    """A value or a file that is larger than the memory there is."""


class UnsupportedError(EnforceNotMet, NotImplementedError):
    """An operator or option that Paddle has and this package does not run."""


class GraphError(PaddlelikeError, ValueError):
    """A program that cannot be built or changed as asked."""


class FeedError(PaddlelikeError, ValueError):
    """A feed that does not fit its data variables."""


class FormatError(EnforceNotMet, ValueError):
    """Bytes that are not what a format says they are."""


class FrameError(FormatError):
    """A message between processes that is cut, too large or malformed."""


class LoadError(EnforceNotMet, RuntimeError):
    """A load that was refused; the scope is as it was."""


class MissingFileError(LoadError, FileNotFoundError):
    """A file that a load needs is not there."""


class SaveError(EnforceNotMet, RuntimeError):
    """A save that was refused or failed; what was saved before is as it was."""


class StorageError(PaddlelikeError, OSError):
    """A directory or file that cannot be used as asked."""


class EndpointError(PaddlelikeError, OSError):
    """A ``host:port`` that cannot be served or called as asked."""


class RemoteError(PaddlelikeError):
    """A call to another process failed.

    Attributes
    ----------
    endpoint, verb
        Whom the call was for, and what it asked.
    retryable
        Whether the same call may succeed later. Only the caller knows whether it may be repeated.
    """

    retryable = False

    def __init__(self, endpoint: str, verb: str, message: str, *, hint: str | None = None) -> None:
        super().__init__(f"{verb} to {endpoint}: {message}", hint=hint)
        self.endpoint = endpoint
        self.verb = verb


class UnreachableError(RemoteError, ConnectionError):
    """Nobody answers at the endpoint, or the connection broke."""

    retryable = True


class DeadlineError(RemoteError, TimeoutError):
    """No answer came in the given time."""

    retryable = True


class RejectedError(RemoteError):
    """The other side refused the call, or failed in it; the same call would end the same way."""


class RoleError(PaddlelikeError, ValueError):
    """Environment variables that do not say which part of a job this process plays."""


class ExtraMissingError(PaddlelikeError, ImportError):
    """An optional package that this call needs is not installed."""


class FaultError(PaddlelikeError, RuntimeError):
    """A distributed job lost a process, or this process lost its place in the job.

    A script that does not catch it ends with ``exit_code``, by which a launcher knows that starting the job
    again from its last save is the cure (75 is ``EX_TEMPFAIL`` of sysexits.h).
    """

    exit_code = 75


class RoundRolledBack(FaultError):  # noqa: N818  (an event more than an error)
    """The servers went back to the checkpoint of an earlier step, from which the training loop goes on."""

    def __init__(self, message: str, *, step: int, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.step = step  # the next step to train


class EOFException(PaddlelikeError):  # noqa: N818  (Fluid's name)
    """A reader has no more batches."""
