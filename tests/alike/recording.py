"""The outcome of a case as plain JSON data, the same for both systems (runs on Python 3.7 too)."""

from __future__ import annotations

import contextlib
import os
import tempfile
import warnings
from pathlib import Path

import numpy as np


class Refused:
    """That a call was refused, and with what kinds of error."""

    def __init__(self, error):
        self.kinds = [kind.__name__ for kind in type(error).__mro__[:-1]]


def refused(call, *args, **kwargs):
    """Refused, or what the call returned."""
    try:
        return call(*args, **kwargs)
    except Exception as error:
        return Refused(error)


@contextlib.contextmanager
def warned(texts):
    """Collect the kinds of warnings given inside."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    texts.extend(w.category.__name__ for w in caught if not issubclass(w.category, DeprecationWarning))


def record(fluid, canonical, case):
    """Run a case on new programs in a new directory; its outcome as plain data."""
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 11
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        try:
            guards = fluid.scope_guard(fluid.core.Scope()), fluid.program_guard(main, startup)
            with fluid.unique_name.guard(), guards[0], guards[1]:
                return plain(fluid, canonical, case(fluid))
        finally:
            os.chdir(here)


def plain(fluid, canonical, value):
    """Plain data from what a case returns."""

    def convert(one):
        if isinstance(one, Refused):
            return {"refused": one.kinds}
        if isinstance(one, fluid.Program):
            return {"program": canonical(one)}
        if isinstance(one, fluid.framework.Variable):
            return {"variable": one.name}
        if isinstance(one, fluid.LoDTensor):
            return {"tensor": convert(np.array(one)), "lod": one.lod()}
        if isinstance(one, (np.ndarray, np.generic)):
            array = np.asarray(one)
            return {"dtype": array.dtype.name, "shape": list(array.shape), "values": array.ravel().tolist()}
        if isinstance(one, dict):
            return {str(key): convert(item) for key, item in sorted(one.items())}
        if isinstance(one, (list, tuple)):
            return [convert(item) for item in one]
        if one is None or isinstance(one, (bool, int, float, str)):
            return one
        if isinstance(one, bytes):
            return {"bytes": len(one)}
        return {"kind": type(one).__name__}

    return convert(value)
