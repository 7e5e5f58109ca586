"""The operators, one folder per family, imported by the table of operators when it looks them up."""

import functools
import importlib
import pkgutil

from paddlelike.foundation.text_tables import read_table

__all__ = ["load_operator", "load_operators"]

_GRADIENT = "_grad"
_LATER = "@"  # before the version of a later form, see paddlelike.framework.opdef.registry


def load_operators() -> None:
    """Import every module of this package; each registers its operators.

    See Also
    --------
    fluid.framework.load_op_library, fluid.ops.load_operator

    >>> load_operators()
    """
    for module in pkgutil.walk_packages(__path__, f"{__name__}."):
        importlib.import_module(module.name)


def load_operator(type: str) -> bool:
    """Import the modules that register an operator; return False if ``operators.txt`` does not list it.

    A gradient is listed only where it is registered elsewhere than its operator.

    Parameters
    ----------
    type
        The operator's name in Paddle, such as "mul".

    Returns
    -------
    bool
        Whether such an operator is known.

    See Also
    --------
    fluid.framework.load_op_library, fluid.ops.load_operators

    >>> load_operator("relu"), load_operator("rellu")
    (True, False)
    """
    modules = _read_index().get(type)
    if modules is None and type.endswith(_GRADIENT):
        modules = _read_index().get(type.removesuffix(_GRADIENT))
    if modules is None:
        return _LATER in type  # ``operators.txt`` lists every later form
    for module in modules:
        importlib.import_module(f"{__name__}.{module}")
    return True


@functools.cache
def _read_index() -> dict[str, list[str]]:
    """Return the modules by operator."""
    found: dict[str, list[str]] = {}
    for line in read_table(__name__, "operators.txt").splitlines()[2:]:
        module, *types = line.split()
        for type in types:
            found.setdefault(type, []).append(module)
    return found
