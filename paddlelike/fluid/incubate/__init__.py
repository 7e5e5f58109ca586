"""``fluid.incubate``: the generators of samples, and fleet under Fluid's module paths.

The modules are the same as in ``paddlelike.reader`` and ``paddlelike.distributed.fleet``; the table of names
is in ``paddlelike/__init__.py``.
"""

from __future__ import annotations

from paddlelike.left_out import make_getattr

__all__ = ["data_generator", "fleet"]

__getattr__ = make_getattr(__name__, "incubate", {name: f"{__name__}.{name}" for name in __all__})


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
