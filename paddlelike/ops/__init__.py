"""The operators, one folder per family. :func:`load_operators` puts them all into the table of operators."""

import importlib
import pkgutil

__all__ = ["load_operators"]


def load_operators() -> None:
    """Import every module of this package; each registers its operators.

    The table of operators calls it at the first look-up, through the hook of that name.
    """
    for module in pkgutil.walk_packages(__path__, f"{__name__}."):
        importlib.import_module(module.name)
