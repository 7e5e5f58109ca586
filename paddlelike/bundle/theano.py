"""Stand-ins for the classes of Theano and of scipy's sparse matrices, so that files open without them.

A shared variable becomes a :class:`SharedVariable` with name, value and type, a sparse matrix a
:class:`SparseMatrix`. Other objects of Theano (types, containers, expressions) become a :class:`Placeholder`
with the name of their class and their state.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from paddlelike.errors import UnsupportedError

Array = np.ndarray[Any, Any]

_SHARED: Final = frozenset(
    f"{kind}SharedVariable" for kind in ("Tensor", "Scalar", "GpuArray", "CudaNdarray")
)


class Placeholder:
    """An object of a class that is not installed: ``class_name`` and ``state``."""

    class_name = ""

    def __init__(self, *args: object) -> None:
        self.arguments = args
        self.state: object = None

    def __setstate__(self, state: object) -> None:
        self.state = state

    def __getattr__(self, name: str) -> Any:
        state = self.__dict__.get("state")
        if isinstance(state, dict) and name in state:
            return state[name]
        raise AttributeError(f"{type(self).class_name} has no {name!r}")

    def __repr__(self) -> str:
        return f"<{type(self).class_name}, whose class is not here>"


class SharedVariable:
    """A shared variable of Theano: a named array.

    Attributes
    ----------
    name
        The name; None for a variable without one.

    >>> from paddlelike import bundle
    >>> bundle.SharedVariable().name is None
    True
    """

    def __init__(self) -> None:
        self.name: str | None = None
        self.state: dict[str, Any] = {}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.state = state
        self.name = state.get("name")

    def get_value(self, borrow: bool = False) -> Array:
        """Return the array; a copy unless ``borrow``."""
        container = self.state.get("container")
        storage = container.storage if isinstance(container, Placeholder) else [np.empty(0)]
        value = np.asarray(storage[0])
        return value if borrow else value.copy()

    def __repr__(self) -> str:
        value = self.get_value(borrow=True)
        return f"<SharedVariable {self.name}: {value.dtype} {value.shape}>"


class SparseMatrix(Placeholder):
    """A sparse matrix of scipy, with scipy's own ``data``, ``indices``, ``indptr`` (or ``row``, ``col``)."""

    @property
    def shape(self) -> tuple[int, int]:
        rows, columns = self._shape
        return int(rows), int(columns)

    def toarray(self) -> Array:
        """Return a sparse matrix (csr, csc or coo) as a dense array."""
        form = type(self).class_name.rpartition(".")[2][:3]
        if form == "coo":
            row, column = self.coords if hasattr(self, "coords") else (self.row, self.col)
        elif form in ("csr", "csc"):
            outer = np.repeat(np.arange(len(self.indptr) - 1), np.diff(self.indptr))
            row, column = (outer, self.indices) if form == "csr" else (self.indices, outer)
        else:
            raise UnsupportedError(f"{self!r} is neither csr, csc nor coo")
        dense = np.zeros(self.shape, self.data.dtype)
        np.add.at(dense, (row, column), self.data)  # an element that is given twice counts twice
        return dense

    def __repr__(self) -> str:
        return f"<{type(self).class_name} of shape {self.shape}>"


def stand_in(module: str, name: str) -> type | None:
    """Return the class that replaces ``module.name`` of Theano or scipy, or None for other modules.

    Each class gets its own placeholder class, which shows the original class.
    """
    if module.startswith("scipy.sparse") and name.endswith(("_matrix", "_array")):
        return make_stand_in(f"{module}.{name}", SparseMatrix)
    if module.split(".")[0] != "theano":
        return None
    if name in _SHARED:
        return SharedVariable
    return make_stand_in(f"{module}.{name}")


def make_stand_in(class_name: str, base: type[Placeholder] = Placeholder) -> type[Placeholder]:
    """Return a new class of placeholders for the class of that name."""
    return type(base.__name__, (base,), {"class_name": class_name})
