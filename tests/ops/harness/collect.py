"""All cases of operators: ``tests/ops/<family>/cases_<module>.py`` hold them.

Such a module has ``CASES`` and, where it adds operators that Paddle 1.8.5 does not have, ``LATER``:
``{operator: the first version of Paddle that has it}``. The layer of such an operator has its name.
"""

from __future__ import annotations

import importlib
import pkgutil

from paddlelike.framework.opdef import registry
from tests import ops
from tests.ops.harness.contract import Case

__all__ = ["CASES", "LATER", "MODULES", "PADDLE2"]

MODULES = [
    importlib.import_module(module.name)
    for module in pkgutil.walk_packages(ops.__path__, f"{ops.__name__}.")
    if module.name.rpartition(".")[2].startswith("cases_")
]
CASES: list[Case] = [case for module in MODULES for case in module.CASES]
LATER: dict[str, str] = {name: since for m in MODULES for name, since in getattr(m, "LATER", {}).items()}
#: Operators of Paddle 2.x for models it saved; those of ``tests/models`` have their values.
PADDLE2: list[str] = [name for name, op in registry.all_ops().items() if op.since != "1"]
