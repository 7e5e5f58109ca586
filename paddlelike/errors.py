"""Every exception paddlelike raises on purpose, in one tree.

PaddlelikeError
├── EnforceNotMet            what Fluid's core refuses under this name (``fluid.core.EnforceNotMet``)
│   ├── ShapeError           shapes or dtypes that do not fit an operator
│   ├── OperatorError        an operator failed in a run: names it, its variables and the user's line
│   ├── NotInitializedError  a variable that holds no value yet
│   ├── UnsupportedError     an operator that a program may hold, but that this package cannot run
│   ├── FormatError          bytes that are not what a format says they are
│   ├── LoadError            a load that was refused; nothing was changed
│   │   └── MissingFileError a file that a load needs is not there
│   └── SaveError            a save that was refused or failed; the earlier files are as they were
├── GraphError               a program that cannot be built or changed as asked
├── FeedError                a feed that does not fit its data variables
├── StorageError             a directory or file that cannot be used
├── ExtraMissingError        an optional package that is not installed
└── EOFException             a reader that has no more batches (Fluid's name: ``fluid.core.EOFException``)

Some errors are also the built-in kind that Fluid raises in the same place (ValueError, TypeError,
RuntimeError), so that scripts which catch those go on working.
"""

from __future__ import annotations

__all__ = [
    "EOFException",
    "EnforceNotMet",
    "ExtraMissingError",
    "FeedError",
    "FormatError",
    "GraphError",
    "LoadError",
    "MissingFileError",
    "NotInitializedError",
    "OperatorError",
    "PaddlelikeError",
    "SaveError",
    "ShapeError",
    "StorageError",
    "UnsupportedError",
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


class UnsupportedError(EnforceNotMet, NotImplementedError):
    """An operator or option that Paddle has and this package does not run."""


class GraphError(PaddlelikeError, ValueError):
    """A program that cannot be built or changed as asked."""


class FeedError(PaddlelikeError, ValueError):
    """A feed that does not fit its data variables."""


class FormatError(EnforceNotMet, ValueError):
    """Bytes that are not what a format says they are."""


class LoadError(EnforceNotMet, RuntimeError):
    """A load that was refused; the scope is as it was."""


class MissingFileError(LoadError, FileNotFoundError):
    """A file that a load needs is not there."""


class SaveError(EnforceNotMet, RuntimeError):
    """A save that was refused or failed; what was saved before is as it was."""


class StorageError(PaddlelikeError, OSError):
    """A directory or file that cannot be used as asked."""


class ExtraMissingError(PaddlelikeError, ImportError):
    """An optional package that this call needs is not installed."""


class EOFException(PaddlelikeError):  # noqa: N818  (Fluid's name)
    """A reader has no more batches."""
