"""``paddle.fluid``: Fluid's module paths over the modules of this package.

``import paddlelike.fluid as fluid`` has the names of ``import paddlelike as fluid``, and both have the same
objects. The modules of this folder are those that Fluid has and that are made only for its scripts.

>>> import paddlelike.fluid as fluid
>>> from paddlelike.fluid.layers import nn
>>> nn.fc is fluid.layers.fc
True
"""

import sys as _sys
from importlib import import_module as _import_module
from importlib.util import find_spec as _find_spec

from paddlelike.lazy import add_function_module as _add_function_module

_face = _sys.modules["paddlelike"]
__all__ = list(_face.__all__)


_add_function_module(f"{__name__}.data")


def __getattr__(name: str) -> object:
    """Return the module of that name, or the attribute of ``paddlelike``. Raises AttributeError."""
    path = f"{__name__}.{name}"
    if not name.startswith("_") and path not in _sys.modules and _find_spec(path) is not None:
        return _import_module(path)
    found = globals()[name] = getattr(_face, name)
    return found


def __dir__() -> list[str]:
    return __all__
