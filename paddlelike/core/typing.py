"""Types of the values that arguments take, for annotations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from paddlelike.core.dtypes import VarType
from paddlelike.core.places import Place
from paddlelike.core.tensor import LoDTensor, LoDTensorArray, SelectedRows

#: An element type: what :func:`~paddlelike.core.dtypes.convert_dtype` takes.
DtypeLike: TypeAlias = VarType | str | np.dtype[Any] | type[np.generic | bool | int | float]

#: One size for all dims, or one for each.
Ints: TypeAlias = int | Sequence[int]

#: The padding of an image: ``"SAME"``, ``"VALID"``, sizes, or a pair for each axis.
PaddingLike: TypeAlias = str | Ints | Sequence[Sequence[int]]

#: A number of Python or numpy.
Number: TypeAlias = int | float | np.number[Any]

#: A number, or an array of them.
Numbers: TypeAlias = Number | np.ndarray[Any, Any]

#: Devices of batches: a place for each.
Places: TypeAlias = Place | Sequence[Place] | None

#: A value that a run is fed.
FedValue: TypeAlias = (
    np.ndarray[Any, Any] | LoDTensor | LoDTensorArray | SelectedRows | int | float | np.generic
)

#: A value that a run returns with ``return_numpy=False``.
