"""The operators. Importing this package fills the table in :mod:`paddlelike.framework.registry`."""

import importlib
import pkgutil

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")
