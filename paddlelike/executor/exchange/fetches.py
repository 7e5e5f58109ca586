"""Read the items of a fetch_list, and get their values after a run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeGuard, overload

import numpy as np

from paddlelike.core import LoDTensor, LoDTensorArray, Scope, SelectedRows, global_scope
from paddlelike.errors import EnforceNotMet, NotInitializedError
from paddlelike.executor.plans.frame import Frame
from paddlelike.executor.plans.run_plan import Plan
from paddlelike.foundation.amounts import describe
from paddlelike.framework import Operator, OpRole, Program, Variable, warn_quirk

if TYPE_CHECKING:
    from paddlelike.core import Array
    from paddlelike.framework.typing import FetchList, Minimized


def read_fetch_list(fetch_list: FetchList | None) -> tuple[list[str], list[Operator]]:
    """Return the names to fetch and the update operators to run. Raises TypeError for anything else."""
    if type(fetch_list) is list:
        names = []
        for one in fetch_list:
            if isinstance(one, Variable):
                names.append(one.name)
            elif type(one) is str:
                names.append(one)
            else:
                break
        else:  # the usual case
            return names, []
    return collect_names(fetch_list), collect_updates(fetch_list)


def collect_names(fetch_list: FetchList | None) -> list[str]:
    """Return the variable names in a fetch_list, which may be nested or a single item.

    Update operators, which ``minimize`` returns, are left out. Raises TypeError for anything else.
    """
    if fetch_list is None:
        return []
    if isinstance(fetch_list, Variable):
        return [fetch_list.name]
    if isinstance(fetch_list, str):
        return [fetch_list]
    if isinstance(fetch_list, Operator) or _is_minimize_result(fetch_list):
        return []
    if isinstance(fetch_list, list | tuple):
        if any(one is None for one in fetch_list):
            raise TypeError(
                f"fetch_list holds None, expected variables or names: {fetch_list!r}\n"
                "  hint: did the function that made the variable return it?"
            )
        return [name for one in fetch_list for name in collect_names(one)]
    name = getattr(fetch_list, "name", None)
    if name and isinstance(name, str):
        return [name]
    hint = ""
    if isinstance(fetch_list, dict):
        hint = "\n  hint: feed comes first: exe.run(program, feed={...}, fetch_list=[...])"
        if fetch_list and all(isinstance(one, Variable) for one in fetch_list.values()):
            hint = "\n  hint: pass its values: list(fetches.values()); the results have their order"
    raise TypeError(f"fetch_list holds {describe(fetch_list)}, expected variables or names{hint}")


def collect_updates(fetch_list: FetchList | None) -> list[Operator]:
    """Return the update operators in a fetch_list."""
    if isinstance(fetch_list, Operator):
        return [fetch_list]
    if _is_minimize_result(fetch_list):
        return list(fetch_list[0])
    if isinstance(fetch_list, list | tuple):
        return [op for one in fetch_list for op in collect_updates(one)]
    return []


def _fetch_var(name: str, scope: Scope | None = None, return_numpy: bool = True) -> Any:
    """Return the value of a variable of the scope, by default of the global one.

    Scripts import it although Fluid does not list it. Raises NotInitializedError when there is none.
    """
    variable = (global_scope() if scope is None else scope).find_var(name)
    if variable is None:
        raise NotInitializedError(
            f"the scope has no variable {name!r}",
            hint="only persistable variables outlive a run; fetch others: exe.run(fetch_list=[variable])",
        )
    tensor = variable.get_tensor()
    return as_numpy(tensor) if return_numpy else tensor


def holds_value(scope: Scope, name: str) -> bool:
    """Return whether a variable of the scope, or of one above it, has a value."""
    variable = scope.find_var(name)
    return variable is not None and variable.value is not None


def find_others(program: Program, fetches: Iterable[str], scope: Scope) -> set[str]:
    """Return the fetched names that are not in the program but have a value in the scope."""
    block = program.global_block()
    return {name for name in fetches if not block.has_var(name) and holds_value(scope, name)}


def copy_value(scope: Scope, name: str, return_numpy: bool) -> Any:
    """Return the value of a variable of the scope, as an array or a tensor that later runs do not change."""
    found = _fetch_var(name, scope, return_numpy)
    return found if return_numpy else LoDTensor(np.array(found), found.lod())


def _is_minimize_result(item: object) -> TypeGuard[Minimized]:
    """Return whether an item is a result of ``minimize``: operators, and pairs of parameter and gradient."""
    return (
        isinstance(item, tuple)
        and len(item) == 2
        and isinstance(item[0], list)
        and all(isinstance(op, Operator) for op in item[0])
        and isinstance(item[1], list)
        and all(isinstance(pair, tuple) for pair in item[1])
    )


def find_updates(program: Program) -> list[Operator]:
    """Return the operators of a program that update parameters."""
    return [op for op in program.global_block().ops if op.attrs.get("op_role", 0) & OpRole.Optimize]


def get_fetched(plan: Plan, frame: Frame, name: str, position: int, return_numpy: bool) -> object:
    """Return the value of a fetched variable, as an array that later runs do not change.

    Raises NotInitializedError when there is none, EnforceNotMet for SelectedRows, RuntimeError when
    ``return_numpy`` would drop a LoD.
    """
    value = frame.values[position] if position < len(frame.values) else None
    if type(value) is np.ndarray and return_numpy and not frame.lods and name in plan.fetches_of_their_own:
        if not value.flags.c_contiguous:
            value = np.asarray(value, order="C")
        return view_fetched(value) if value.size else _fetch_empty(value)
    if value is None:
        raise NotInitializedError(
            f"fetch_list contains {name!r}, which holds no value after the run",
            hint="persistables get values from the startup program or a load, temporaries from an operator",
        )
    if isinstance(value, SelectedRows):
        raise EnforceNotMet(
            f"fetch_list contains {name!r}, which holds SelectedRows (a sparse gradient), not a tensor",
            hint="use layers.get_tensor_from_selected_rows, or is_sparse=False",
        )
    if isinstance(value, LoDTensorArray):
        return as_numpy(value) if return_numpy else value
    if not isinstance(value, np.ndarray | np.generic):
        return value
    shared = name not in plan.fetches_of_their_own
    lod = frame.lods.get(position)
    if return_numpy and lod:
        raise RuntimeError(
            f"fetch_list contains {name!r}, which has a LoD: numpy arrays cannot hold sequences\n"
            "  hint: exe.run(..., return_numpy=False) returns LoDTensors; numpy.array(tensor) gives the rows"
        )
    array = np.array(value, order="C") if shared else np.asarray(value, order="C")
    if not return_numpy:
        return LoDTensor(array, lod)
    return view_fetched(array) if array.size else _fetch_empty(array)


def _fetch_empty(array: Array) -> Array | None:
    """Return the fetched value of an array without elements: None, as in Fluid."""
    return None if warn_quirk("empty_fetch") else view_fetched(array)


@overload
def as_numpy(tensor: LoDTensor) -> Array: ...
@overload
def as_numpy(tensor: list[LoDTensor]) -> list[Array]: ...
def as_numpy(tensor: LoDTensor | list[LoDTensor]) -> Array | list[Array]:
    """Return a copy of a tensor, or of each tensor in a list, as numpy array.

    Parameters
    ----------
    tensor
        A tensor, or a list of them.

    Returns
    -------
    numpy.ndarray or list
        The values, in the shape and dtype of the tensor; a list for a list.

    Raises
    ------
    RuntimeError
        A tensor has a LoD, which an array cannot hold.

    See Also
    --------
    fluid.compiler.has_feed_operators, fluid.compiler.has_fetch_operators, fluid.Executor.run

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> tensor = fluid.create_lod_tensor(np.ones((2, 3), "float32"), [], fluid.CPUPlace())
    >>> fluid.compiler.as_numpy(tensor).shape
    (2, 3)
    """
    if isinstance(tensor, list):
        return [as_numpy(one) for one in tensor]
    if isinstance(tensor, LoDTensor) and tensor._lod:
        raise RuntimeError("this tensor has a LoD, which a numpy array cannot hold; use numpy.array(tensor)")
    return view_fetched(np.array(tensor, order="C"))


class _EqualToNdarray(type):
    """Compare equal to ``numpy.ndarray``: scripts test ``type(loss) == np.ndarray``."""

    def __eq__(cls, other: object) -> bool:
        return other is cls or other is np.ndarray

    def __hash__(cls) -> int:
        return hash(np.ndarray)


class FetchedArray(np.ndarray[Any, Any], metaclass=_EqualToNdarray):
    """A fetched array whose rows have one element each, so that it and its rows convert to numbers.

    Fluid scripts print losses as ``"%f" % exe.run(...)[0]`` and predictions (N, 1) row by row; numpy from 2.4
    on converts only arrays without dims.
    """

    def __float__(self) -> float:
        return float(self.item() if self.size == 1 else np.asarray(self))

    def __int__(self) -> int:
        return int(self.item() if self.size == 1 else np.asarray(self))

    def __repr__(self) -> str:
        return repr(np.asarray(self))

    def __reduce__(self) -> str | tuple[Any, ...]:
        return np.asarray(self).__reduce__()


def view_fetched(array: Array) -> Array:
    """Return an array as a FetchedArray if its rows have one element each, else itself."""
    if array.ndim and array.size == len(array):
        return array.view(FetchedArray)
    return array
