"""All cases of operators: ``tests/ops/<family>/cases_<module>.py`` hold them.

Such a module has ``CASES`` and, where it adds operators that Paddle 1.8.5 does not have, ``LATER``:
``{operator: the first version of Paddle that has it}``. The layer of such an operator has its name.
"""

from __future__ import annotations

import importlib
import pkgutil

from tests import ops
from tests.ops.contract import Case

__all__ = ["CASES", "LATER", "MODULES"]

MODULES = [
    importlib.import_module(module.name)
    for module in pkgutil.walk_packages(ops.__path__, f"{ops.__name__}.")
    if module.name.rpartition(".")[2].startswith("cases_")
]
CASES: list[Case] = [case for module in MODULES for case in module.CASES]
LATER: dict[str, str] = {name: since for m in MODULES for name, since in getattr(m, "LATER", {}).items()}
