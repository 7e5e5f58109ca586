"""Optimizers: they append the backward pass and the operators that update the parameters."""

from types import ModuleType as _ModuleType

from paddlelike.foundation.docstrings import (
    complete_docstring as _complete_docstring,
    read_entries as _read_entries,
    show_related as _show_related,
)
from paddlelike.optimizer.adagrad import *
from paddlelike.optimizer.adam import *
from paddlelike.optimizer.averages import *
from paddlelike.optimizer.base import *
from paddlelike.optimizer.sgd import *
from paddlelike.optimizer.wrapping import *

__all__ = sorted(
    name
    for name, value in globals().items()
    if not name.startswith("_") and not isinstance(value, _ModuleType)
)

for _class in {value for value in map(globals().get, __all__) if isinstance(value, type)}:
    if issubclass(_class, Optimizer):  # noqa: F405
        _complete_docstring(_class, _read_entries(Optimizer))  # noqa: F405
_show_related(__name__)
