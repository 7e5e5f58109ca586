"""Lines of text as samples, in Paddle's MultiSlot format: for every variable a count and as many values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from paddlelike.core.dtypes import VarType, numpy_dtype
from paddlelike.core.tensor import LoDTensor
from paddlelike.errors import FeedError
from paddlelike.framework.graph.variable import Variable

Sample = list[np.ndarray[Any, Any]]  # the values of one line, an array for each variable


def parse_sample(line: str, variables: Sequence[Variable], texts: Sequence[str], where: str) -> Sample:
    """Return the values of one line.

    ``texts`` names what comes before them: a count of 1 and one word each. Raises FeedError for a line that
    does not fit; ``where`` is for its message.
    """
    words = line.split()
    sample, at = [], 0
    for text in texts:
        if words[at : at + 1] != ["1"] or len(words) < at + 2:
            raise _bad_line(where, f"no 1 and {text}, which the dataset was told to read")
        at += 2
    for variable in variables:
        try:
            end = at + 1 + int(words[at])
            values = _parse_values(words[at + 1 : end], numpy_dtype(variable.dtype))
        except (IndexError, ValueError, OverflowError) as error:
            raise _bad_line(where, f"no count and values for {variable.name!r}: {error}") from None
        if end > len(words):
            raise _bad_line(where, f"{variable.name!r} needs {words[at]} values, {len(values)} are left")
        _check_size(variable, values, where)
        sample.append(values)
        at = end
    if at < len(words):
        raise _bad_line(where, f"{len(words) - at} values are left over")
    return sample


def _parse_values(words: list[str], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Return numbers; 64-bit ids from 2^63 to 2^64 - 1 as the int64 of the same bits, as Paddle does."""
    try:
        return np.array(words, dtype)
    except OverflowError:
        numbers = list(map(int, words))
        if dtype != np.int64 or min(numbers) < -(1 << 63):
            raise
        return np.array([one + (one < 0) * (1 << 64) for one in numbers], np.uint64).view(dtype)


def drop_zeros(variable: Variable, values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Drop the zeros of a variable with a LoD, but keep one value; return others as they are."""
    kept = values[(values >= 1e-6) | (values <= -1e-6)]
    return values if not variable.lod_level else kept if len(kept) else values[:1] * 0


def describe_slot(variable: Variable) -> list[str]:
    """Return the lines that describe one variable."""
    kind = "float" if variable.dtype == VarType.FP32 else "uint64"
    name = [f'name: "{variable.name}"', f'type: "{kind}"']
    if variable.lod_level:
        return [*name, "is_used: true"]
    return [*name, "is_dense: true", "is_used: true", *(f"shape: {dim}" for dim in variable.shape)]


def _count_elements(variable: Variable) -> int:
    """Return the count of elements of one sample of a variable without LoD."""
    return math.prod(dim for dim in variable.shape[1:] if dim > 0)


def _check_size(variable: Variable, values: np.ndarray[Any, Any], where: str) -> None:
    if not variable.lod_level and len(values) != _count_elements(variable):
        raise _bad_line(
            where, f"{variable.name!r} has shape {list(variable.shape)}, the line holds {len(values)} values"
        )


def _bad_line(where: str, what: str) -> FeedError:
    return FeedError(
        f"dataset: {where}: {what}",
        hint="a line holds, for each variable of set_use_var in order, a count and as many values",
    )


def stack_slot(variable: Variable, column: list[np.ndarray[Any, Any]]) -> LoDTensor:
    """Return the values of one variable in a batch of samples."""
    if not variable.lod_level:
        return LoDTensor(np.stack(column).reshape(len(column), *variable.shape[1:]))
    tensor = LoDTensor(np.concatenate(column).reshape(-1, 1))
    tensor.set_recursive_sequence_lengths([[len(values) for values in column]])
    return tensor
