"""Every exception paddlelike raises on purpose, in one tree.

PaddlelikeError
├── EnforceNotMet            errors of Fluid's core (``fluid.core.EnforceNotMet``)
│   ├── ShapeError           shapes or dtypes that do not fit an operator
│   ├── OperatorError        an operator failed in a run: names it, its variables and the user's line
│   ├── NotInitializedError  a variable that holds no value yet
│   ├── UnsupportedError     an operator or option of Paddle that this package does not support
│   │   └── LeftOutError     a name of Fluid's that is left out here
│   ├── UntrustedError       a program from bytes that holds operators which reach outside of it
│   ├── OutOfMemoryError     a value or a file that is larger than the available memory
│   ├── FormatError          bytes that do not follow their format
│   │   └── FrameError       a message between processes that is cut, too large or malformed
│   ├── LoadError            a load that was refused; nothing has changed
│   │   └── MissingFileError a file that a load needs is not there
│   └── SaveError            a save that was refused or failed; the earlier files are unchanged
├── GraphError               a program that cannot be built or changed as requested
├── FeedError                a feed that does not fit its data variables
├── SourceError              a minibatch source whose data or position is not what it was or should be
├── StorageError             a directory or file that cannot be used
├── EndpointError            a host:port that cannot be served or called as requested
├── RemoteError              a call to another process that failed; names its endpoint and the verb
│   ├── UnreachableError     nothing answers there, or the connection broke: may be retried
│   ├── DeadlineError        no answer in the given time: may be retried
│   └── RejectedError        the other side refused the call, or failed in it: final
├── ImportPaddleError             a script that cannot be run with paddlelike in the place of Paddle
├── RoleError                environment variables that do not define the role of a process
├── ExtraMissingError        an optional package that is not installed
├── FaultError               a distributed job that cannot continue: names the endpoint or the trainers
│   └── RoundRolledBack      the servers rolled back to a checkpoint; training continues from its step
└── EOFException             a reader that has no more batches (Fluid's name: ``fluid.core.EOFException``)

Some errors are also of the built-in class that Fluid raises in the same place (ValueError, TypeError,
RuntimeError), so that scripts that catch those keep working.
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
    "ImportPaddleError",
    "LeftOutError",
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
    "SourceError",
    "StorageError",
    "UnreachableError",
    "UnsupportedError",
    "UntrustedError",
]


class PaddlelikeError(Exception):
    """Base class of all errors that this package raises on purpose.

    Attributes
    ----------
    errno, path
        The error number of a failed system call, such as ``errno.ENOSPC``, and the path that it was
        called for; None for other errors.

    >>> print(PaddlelikeError("3 names, 2 arrays", hint="pass one array per name"))
    3 names, 2 arrays
      hint: pass one array per name
    """

    errno: int | None
    path: str | None = None

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message if hint is None else f"{message}\n  hint: {hint}")
        self.errno = None
        self.message = message  # without the hint, for callers that prepend a name or a path
        self.hint = hint


class EnforceNotMet(PaddlelikeError):  # noqa: N818  (Fluid's name)
    """An operator or a file violates a condition of Paddle."""


class ShapeError(EnforceNotMet, ValueError):
    """Shapes or dtypes that do not fit an operator."""


class OperatorError(EnforceNotMet):
    """An operator failed while a program ran."""


class NotInitializedError(EnforceNotMet):
    """A variable is read before anything was written to it."""


class UntrustedError(EnforceNotMet):
    """A program read from bytes contains operators that access files, processes or the terminal."""


class OutOfMemoryError(EnforceNotMet, MemoryError):
    """A value or a file that is larger than the available memory."""


class UnsupportedError(EnforceNotMet, NotImplementedError):
    """An operator or option of Paddle that this package does not support."""


class LeftOutError(UnsupportedError, AttributeError):
    """A name of Fluid that this package leaves out; ``hasattr`` returns False for it."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.name, self.obj = "", None  # Python would append "Did you mean" and a name that looks alike


class GraphError(PaddlelikeError, ValueError):
    """A program that cannot be built or changed as requested."""


class FeedError(PaddlelikeError, ValueError):
    """A feed that does not fit its data variables."""


class SourceError(PaddlelikeError, ValueError):
    """A minibatch source whose data or position has changed or is invalid."""


class FormatError(EnforceNotMet, ValueError):
    """Bytes that do not follow their format."""


class FrameError(FormatError):
    """A message between processes that is cut, too large or malformed."""


class LoadError(EnforceNotMet, RuntimeError):
    """A load that was refused; the scope is unchanged."""


class MissingFileError(LoadError, FileNotFoundError):
    """A file that a load needs does not exist."""


class SaveError(EnforceNotMet, RuntimeError):
    """A save that was refused or failed; the earlier files are unchanged."""


class StorageError(PaddlelikeError, OSError):
    """A directory or file that cannot be used as requested."""


class EndpointError(PaddlelikeError, OSError):
    """A ``host:port`` that cannot be served or called as requested."""


class RemoteError(PaddlelikeError):
    """A call to another process failed.

    Attributes
    ----------
    endpoint, verb
        The called process, and the called function.
    retryable
        Whether the same call may succeed later. Only the caller knows whether it may be repeated.
    """

    retryable = False

    def __init__(self, endpoint: str, verb: str, message: str, *, hint: str | None = None) -> None:
        super().__init__(f"{verb} to {endpoint}: {message}", hint=hint)
        self.endpoint = endpoint
        self.verb = verb


class UnreachableError(RemoteError, ConnectionError):
    """Nothing answers at the endpoint, or the connection broke."""

    retryable = True


class DeadlineError(RemoteError, TimeoutError):
    """No answer came in the given time."""

    retryable = True


class RejectedError(RemoteError):
    """The other side refused the call, or failed in it; the same call would fail again."""


class ImportPaddleError(PaddlelikeError, RuntimeError):
    """A script that cannot run with paddlelike in place of Paddle."""


class RoleError(PaddlelikeError, ValueError):
    """Environment variables that do not define the role of this process."""


class ExtraMissingError(PaddlelikeError, ImportError):
    """An optional package that this call needs is not installed.

    >>> print(ExtraMissingError("HDF5 files need h5py", extra="hdf5"))
    HDF5 files need h5py
      hint: pip install "paddlelike[hdf5]"
    """

    def __init__(self, message: str, *, hint: str | None = None, extra: str = "", instead: str = "") -> None:
        super().__init__(message, hint=f'pip install "paddlelike[{extra}]"{instead}' if extra else hint)


class FaultError(PaddlelikeError, RuntimeError):
    """A distributed job lost a process, or this process was removed from the job.

    A script that does not catch it ends with ``exit_code``, which tells a launcher to restart the job from
    its last save (75 is ``EX_TEMPFAIL`` of sysexits.h).
    """

    exit_code = 75


class RoundRolledBack(FaultError):  # noqa: N818  (an event more than an error)
    """The servers rolled back to an earlier checkpoint; the training loop continues from its step."""

    def __init__(self, message: str, *, step: int, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.step = step  # the next step to train


class EOFException(PaddlelikeError):  # noqa: N818  (Fluid's name)
    """A reader has no more batches."""


class QuirkWarning(UserWarning):
    """Warning that a layer or optimizer has an odd result, as in Fluid 1.8.5 (see :func:`fluid.quirks`)."""
