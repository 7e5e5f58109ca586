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

_face = _sys.modules["paddlelike"]
__all__ = list(_face.__all__)


def __getattr__(name: str) -> object:
    """Return the module of that name, or the attribute of ``paddlelike``; AttributeError says why none."""
    if not name.startswith("_") and _find_spec(f"{__name__}.{name}") is not None:
        return _import_module(f"{__name__}.{name}")
    found = globals()[name] = getattr(_face, name)
    return found


def __dir__() -> list[str]:
    return __all__
