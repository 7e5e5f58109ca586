"""Fluid's modules below ``fluid.layers`` and the names that each lists.

Here the layers are in folders by family. ``layers.nn``, ``layers.control_flow`` and the other modules with
a name of Fluid's list what Fluid 1.8 lists there, as far as it is here: ``fluid_modules.txt``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Final

from paddlelike.foundation.text_tables import read_sections
from paddlelike.left_out import make_attribute_error
from paddlelike.left_out.imported import find_imported

__all__ = ["LISTED", "UNLISTED", "make_fluid_module"]


def _read_names() -> dict[str, tuple[str, ...]]:
    sections = read_sections("paddlelike.layers", "fluid_modules.txt")
    return {module: tuple(names) for module, *names in map(str.split, sections)}


#: Names by module, in Fluid's own order; those that are not here are left out of the module's list.
LISTED: Final[Mapping[str, tuple[str, ...]]] = _read_names()

#: Names that can be imported from one of Fluid's modules without being listed there: where each is defined.
UNLISTED: Final[Mapping[str, Mapping[str, str]]] = {
    "control_flow": {
        "ConditionalBlock": "paddlelike.layers.control.sub_blocks",
        "array_to_lod_tensor": "paddlelike.layers.control.rank_table",
        "lod_rank_table": "paddlelike.layers.control.rank_table",
        "lod_tensor_to_array": "paddlelike.layers.control.rank_table",
        "max_sequence_len": "paddlelike.layers.control.rank_table",
        "merge_lod_tensor": "paddlelike.layers.control.masked_rows",
        "select_input": "paddlelike.layers.control.sub_blocks",
        "shrink_memory": "paddlelike.layers.control.rank_table",
        "split_lod_tensor": "paddlelike.layers.control.masked_rows",
    },
    "detection": {"detection_map": "paddlelike.layers.detection.average_precision"},
    "distributions": {"Distribution": "paddlelike.layers.random.distributions"},
    "nn": dict.fromkeys(("_pull_sparse", "_pull_sparse_v2"), "paddlelike.distributed.fleet.pslib"),
}


def make_fluid_module(module: str) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return ``__getattr__``, which also finds ``__all__``, and ``__dir__`` for Fluid's ``layers.<module>``.

    For any other name ``__getattr__`` raises AttributeError. Both look names up in :mod:`paddlelike.layers`
    when they are called, because that package imports the module before it has all of its names.
    """

    def names() -> list[str]:
        layers = vars(sys.modules["paddlelike.layers"])
        return [name for name in LISTED[module] if name in layers]

    def get(name: str) -> object:
        if name == "__all__":
            return names()
        if name in UNLISTED.get(module, {}):
            return getattr(import_module(UNLISTED[module][name]), name)
        if name in names():
            return getattr(sys.modules["paddlelike.layers"], name)
        found = find_imported(name)
        if found is not None:
            return found
        raise make_attribute_error(f"paddlelike.layers.{module}", name, names())

    return get, names
