"""Record elementwise expressions, and write them as numpy calls in place or as one loop for numba.

A function is called once with values that record their operations. Two functions are written from the list of
operations. The one for numpy gives each operation an array to write into: one that is no longer read, or the
array of the result. The one for numba does all operations on one element, then on the next. Both do the same
operations in the same order, so the results have the same bits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from paddlelike.ops.kernels.fast.late import FastKernel, compile_late

LEAST: Final = 1 << 12  # elements from which a call of a compiled loop is worth its cost

_SYMBOLS: Final[dict[Any, str]] = {
    np.add: "+",
    np.subtract: "-",
    np.multiply: "*",
    np.divide: "/",
    np.greater: ">",
}
_BY_KEYWORD: Final = (np.maximum, np.minimum)  # numpy refuses their third argument
_INEXACT: Final = (np.power,)  # numpy has its own version of these


class _Nothing:
    """A missing gradient: products with it are missing too, sums return the other operand."""

    __array_ufunc__ = None  # numpy leaves the operators to this class

    def __mul__(self, other: Any) -> object:
        return self

    def __add__(self, other: Any) -> object:
        return other

    __rmul__ = __truediv__ = __mul__
    __radd__ = __add__


NOTHING: Final = _Nothing()


class _Operation(NamedTuple):
    """One operation; its result and its arguments by name."""

    name: str
    function: Any
    args: tuple[str, ...]


class _Value(np.lib.mixins.NDArrayOperatorsMixin):
    """An argument or a result in a function that is being recorded."""

    def __init__(self, name: str, operations: list[_Operation], constants: dict[str, float]) -> None:
        self.name, self._operations, self._constants = name, operations, constants

    def __array_ufunc__(self, function: Any, method: str, *args: Any) -> _Value:
        return self._record(function, args)

    def __array_function__(self, function: Any, types: Any, args: Any, keywords: Any) -> _Value:
        return self._record(function, args)

    def _record(self, function: Any, args: Sequence[Any]) -> _Value:
        names = tuple(arg.name if isinstance(arg, _Value) else self._name_constant(arg) for arg in args)
        operation = _Operation(f"t{len(self._operations)}", function, names)
        self._operations.append(operation)
        return _Value(operation.name, self._operations, self._constants)

    def _name_constant(self, value: float) -> str:
        name = f"c{len(self._constants)}"
        self._constants[name] = value
        return name


class Recording(NamedTuple):
    """The operations of a function on arrays of one shape and numbers.

    Attributes
    ----------
    evaluate
        Takes the arrays and the numbers; writes the results over the arrays.
    constants
        Further numbers, after those that the function takes.
    dense
        The same as a compiled loop, or None; takes flat arrays.
    by_row
        The same for some rows of matrices, or None: takes the rows, the gradient's matrix, and the others.
    """

    evaluate: Callable[..., None]
    constants: tuple[float, ...]
    dense: FastKernel | None
    by_row: FastKernel | None


def record(function: Callable[..., Any], flags: Mapping[str, Any], *, gradient: bool = True) -> Recording:
    """Record a function called with these keywords.

    Its positional-only parameters are arrays of one shape: the parameter, the gradient, the state. Its other
    parameters are numbers. It returns the new values of all arrays except the gradient. Without ``gradient``
    the function gets :data:`NOTHING`, and ``evaluate`` takes no gradient.
    """
    code = function.__code__
    arrays, others = code.co_varnames[: code.co_posonlyargcount], code.co_varnames[code.co_posonlyargcount :]
    numbers = others[: code.co_argcount - code.co_posonlyargcount]
    operations: list[_Operation] = []
    constants: dict[str, float] = {}
    given: list[Any] = [_Value(name, operations, constants) for name in (*arrays, *numbers)]
    if not gradient:
        given[1] = NOTHING
    found = function(*given, **flags)
    results = [one.name for one in (found if isinstance(found, tuple) else (found,))]
    targets = dict(zip((arrays[0], *arrays[2:]), results, strict=True))
    assert all(result == array or result not in arrays for array, result in targets.items())
    numbers = (*numbers, *constants)
    name = "_".join([function.__name__, *(flag for flag, value in flags.items() if value)])
    taken = arrays if gradient else (arrays[0], *arrays[2:])
    names = {f"_{one.function.__name__}": one.function for one in operations}
    calls = _write_calls(operations, taken, targets)
    evaluate, _ = _define(function.__module__, name, (*taken, *numbers), calls, names)
    loops: tuple[FastKernel | None, FastKernel | None] = None, None
    if gradient and not any(one.function in _INEXACT for one in operations):
        loops = _make_loops(function.__module__, name, arrays, numbers, _write_scalars(operations, targets))
    return Recording(evaluate, tuple(constants.values()), *loops)


def _make_loops(
    module: str, name: str, arrays: Sequence[str], numbers: Sequence[str], lines: Sequence[str]
) -> tuple[FastKernel, FastKernel]:
    """Return the lines for one element inside a loop over flat arrays, and inside a loop over rows of
    matrices.
    """
    param, grad, *state = arrays
    kept = (param, *state)
    places = [f"all_{array}" for array in arrays]
    read = [f"{array} = all_{array}[at]" for array in arrays]
    body = [f"for at in range({places[0]}.size):", *_indent([*read, *lines])]
    loop, text = _define(module, name, (*places, *numbers), body, {"np": np})
    types = ["T"] * len(numbers)
    signature = ", ".join(["T[::1]"] * len(arrays) + types)
    dense = compile_late(f"void({signature})", least=LEAST, text=text)(loop)

    inner = [
        line.replace(f"all_{grad}[at]", f"all_{grad}[i, j]").replace("[at]", "[row, j]")
        for line in (*read, *lines)
    ]
    inner = ["row = rows[i]", f"for j in range(all_{grad}.shape[1]):", *_indent(inner)]
    body = ["for i in range(rows.size):", *_indent(inner)]
    given = ("rows", f"all_{grad}", *(f"all_{array}" for array in kept), *numbers)
    loop, text = _define(module, f"{name}_rows", given, body, {"np": np})
    signature = ", ".join(["int64[::1]"] + ["T[:, ::1]"] * len(arrays) + types)
    return dense, compile_late(f"void({signature})", least=LEAST, text=text)(loop)


def _indent(lines: Sequence[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def _define(
    module: str, name: str, given: Sequence[str], lines: Sequence[str], names: Mapping[str, Any]
) -> tuple[Callable[..., None], str]:
    """Return a function of these lines, and its text; ``module`` is its declared module."""
    text = "\n".join([f"def {name}({', '.join(given)}):", *_indent(lines or ["pass"])])
    namespace: dict[str, Any] = {**names, "__name__": module}
    exec(compile(text, __file__, "exec"), namespace)  # noqa: S102 - of our own words
    return namespace[name], text


def _write_calls(
    operations: list[_Operation], arrays: Sequence[str], targets: Mapping[str, str]
) -> list[str]:
    """Return the lines of numpy. Each writes over an array that nothing reads any more, or makes a new
    one.
    """
    last = {name: index for index, one in enumerate(operations) for name in one.args}
    last |= dict.fromkeys(set(targets.values()) - set(arrays), len(operations))
    places = _find_targets(operations, last, targets)
    lines: list[str] = []
    spare: set[str] = set()
    free: list[str] = []
    for index, (name, function, args) in enumerate(operations):
        given = ", ".join(places.get(arg, arg) for arg in args)
        free += sorted({places.get(arg, arg) for arg in args if last[arg] == index} & spare - set(free))
        is_new = name not in places and (_is_predicate(function) or not free)
        if is_new:
            places[name] = name
            if not _is_predicate(function):
                spare.add(name)
        elif name not in places:
            places[name] = free.pop()
        if is_new or not isinstance(function, np.ufunc):
            lines.append(f"{places[name]}{'' if is_new else '[...]'} = _{function.__name__}({given})")
        else:
            keyword = "out=" if function in _BY_KEYWORD else ""
            lines.append(f"_{function.__name__}({given}, {keyword}{places[name]})")
    moved = [(array, places.get(result, result)) for array, result in targets.items()]
    return lines + [f"{array}[...] = {place}" for array, place in moved if array != place]


def _find_targets(
    operations: list[_Operation], last: Mapping[str, int], targets: Mapping[str, str]
) -> dict[str, str]:
    """Choose the array that each result is written into: one whose value is no longer read.

    The target may be an operand that nothing else reads: both operations of ``v * mu + g`` write over v.
    """
    indexes = {one.name: index for index, one in enumerate(operations)}
    uses = Counter(name for one in operations for name in one.args)
    places: dict[str, str] = {}

    def fits(name: str, array: str) -> bool:
        index = indexes.get(name)
        return index is not None and name not in places and last.get(array, -1) <= index

    for array, result in targets.items():
        name: str | None = result
        while name is not None and fits(name, array):
            places[name] = array
            args = operations[indexes[name]].args
            name = next(
                (
                    arg
                    for arg in args
                    if fits(arg, array)
                    and uses[arg] == 1
                    and last[arg] < len(operations)
                    and not _is_predicate(operations[indexes[arg]].function)
                ),
                None,
            )
    return places


def _is_predicate(function: Any) -> bool:
    """Return whether results are booleans, which cannot be stored in arrays of numbers."""
    return isinstance(function, np.ufunc) and all(types.endswith("?") for types in function.types)


def _write_scalars(operations: list[_Operation], targets: Mapping[str, str]) -> list[str]:
    """Return the lines for one element, in variables named like the arrays; ``all_p`` is array ``p``."""
    lines = []
    for name, function, args in operations:
        if function in _SYMBOLS:
            lines.append(f"{name} = {args[0]} {_SYMBOLS[function]} {args[1]}")
        elif function is np.where:
            lines.append(f"{name} = {args[1]} if {args[0]} else {args[2]}")
        else:
            lines.append(f"{name} = np.{function.__name__}({', '.join(args)})")
    return lines + [f"all_{array}[at] = {result}" for array, result in targets.items() if result != array]
