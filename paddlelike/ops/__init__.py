"""The operators. Importing this package fills the table in :mod:`paddlelike.framework.opdef.registry`."""

import importlib
import pkgutil

for _module in pkgutil.walk_packages(__path__, f"{__name__}."):
    importlib.import_module(_module.name)
