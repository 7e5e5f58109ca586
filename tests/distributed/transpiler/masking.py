"""The canonical form in which transpiled programs are compared.

Real Fluid names its control variables by random numbers, and keeps some lists in the order of hashes: the
former are renamed in the order of the operators, the latter sorted.
"""

from __future__ import annotations

from typing import Any

from tests.helpers.canonical import Canonical, canonical

_PREFIX = "__control_var@"


def mask_program(program: Any) -> Canonical:
    """Return the canonical form of a program (or of its bytes) without its random parts."""
    form = canonical(program)
    for block in form["blocks"]:
        names = _Names()
        for op in block["ops"]:
            for slots in (op["inputs"], op["outputs"]):
                for slot, args in slots.items():
                    slots[slot] = [names.of(arg) for arg in args]
            for name in ("grad_to_block_id", "sparse_grad_to_param"):
                if name in op["attrs"]:
                    op["attrs"][name][1].sort()
        unused = [name for name in block["vars"] if name.startswith(_PREFIX) and name not in names.known]
        for name in unused:
            names.of(name)
        block["vars"] = {names.of(name): var for name, var in block["vars"].items()}
        _sort_fake_tables(block["ops"])
    return form


class _Names:
    def __init__(self) -> None:
        self.known: dict[str, str] = {}

    def of(self, name: str) -> str:
        if not name.startswith(_PREFIX):
            return name
        return self.known.setdefault(name, f"{_PREFIX}{len(self.known)}")


def _sort_fake_tables(ops: list[Any]) -> None:
    at = [i for i, op in enumerate(ops) if op["type"] == "fake_init"]
    fakes = sorted((ops[i] for i in at), key=lambda op: op["outputs"]["Out"])
    for i, op in zip(at, fakes, strict=True):
        ops[i] = op
