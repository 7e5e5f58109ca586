"""Points at which operators are compared with what real Fluid 1.8.5 computed there.

A module of cases has a table ``CASES`` that :func:`add_case` fills; ``tests/interop/dumps/dump_cases.py``
asks the real system, ``replay.py`` runs the operator here. This file runs under Python 3.7 as well.
"""

import zlib
from collections import namedtuple

import numpy as np

__all__ = ["Case", "add_case", "add_level", "name_outputs", "weights"]

#: ``inputs`` by slot: arrays, (array, offsets by level), or lists of them. ``outputs`` by slot: a dtype, or a
#: list of dtypes for a slot of several variables. ``ignore``: outputs whose values are not compared.
Case = namedtuple("Case", "type inputs attrs outputs wrt through ignore")


def add_case(cases, type, inputs, outputs, wrt="", note="", through=None, ignore=(), **attrs):
    """Add a case to ``cases``, named after the operator and the note.

    ``wrt``: slots to differentiate by; ``through``: output slots the gradient comes from (the first).
    """
    name = type + ("-" + note if note else "")
    assert name not in cases, name
    through = [next(iter(outputs))] if through is None else through
    cases[name] = Case(type, inputs, attrs, outputs, wrt.split(), through, ignore)


def add_level(case):
    """The case whose inputs have one level, but for parameters, which have no rows."""
    inputs = {
        slot: items
        if slot in ("Weight", "Bias")
        else [(array, [[0, len(array)]]) for array in (items if isinstance(items, list) else [items])]
        for slot, items in case.inputs.items()
    }
    return case._replace(inputs=inputs)


def name_outputs(slot, dtypes):
    """What the variables of an output slot are called, without the ending ``_out``."""
    return [slot] if isinstance(dtypes, str) else [f"{slot}{i}" for i in range(len(dtypes))]


def weights(name, slot, out):
    """The gradient that comes from above, for an output of a case."""
    rng = np.random.RandomState(zlib.crc32((name + slot).encode()) % 2**31)
    return rng.uniform(-1, 1, out.shape).astype(out.dtype)
