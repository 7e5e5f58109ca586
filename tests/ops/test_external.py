"""Operators that reach outside of a run declare it, and no other operator does so."""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Any

from paddlelike.framework.opdef import OpDef, all_ops

EXTERNAL = {
    "allreduce",
    "broadcast",
    "c_allgather",
    "c_allreduce_max",
    "c_allreduce_min",
    "c_allreduce_prod",
    "c_allreduce_sum",
    "c_broadcast",
    "c_comm_init",
    "c_comm_init_all",
    "c_gen_nccl_id",
    "c_reducescatter",
    "c_sync_comm_stream",
    "checkpoint_notify",
    "create_double_buffer_reader",
    "create_py_reader",
    "distributed_lookup_table",
    "distributed_sparse_embedding",
    "fetch_barrier",
    "gather_from_owners",
    "gen_nccl_id",
    "listen_and_serv",
    "load",
    "load_combine",
    "prefetch",
    "print",
    "py_func",
    "read",
    "recv",
    "recv_save",
    "reduce_to_owners",
    "save",
    "save_combine",
    "send",
    "send_barrier",
    "sync_batch_norm",
    "sync_batch_norm_grad",
}

#: External operators that reach outside by a value: a reader in the scope, a function given to py_func.
BY_VALUE = {"create_double_buffer_reader", "create_py_reader", "py_func", "read"}

#: The functions of an operator that an executor or a block calls.
FUNCTIONS = ("infer", "forward", "forward_many", "backward")

#: Names by which code would reach outside of the variables of a run.
OUTSIDE_NAMES = {"open", "find_remote", "service", "__import__", "import_module", "exec", "eval", "compile"}
#: Modules that an operator which only computes has no business with.
OUTSIDE_MODULES = (
    "builtins.open", "ctypes", "http", "io", "multiprocessing", "os", "pathlib", "paddlelike.formats",
    "paddlelike.framework.opdef.remote", "paddlelike.storage", "pickle", "shutil", "socket", "subprocess",
    "sys", "tempfile", "urllib",
)  # fmt: skip


def test_the_external_operators_are_listed() -> None:
    assert {name for name, op in all_ops().items() if op.external} == EXTERNAL


def test_all_other_operators_have_no_external_effects() -> None:
    found = {name: outside_references(op) for name, op in all_ops().items() if name not in EXTERNAL}
    assert {name: outside for name, outside in found.items() if outside} == {}


def test_the_search_for_external_effects_finds_the_known_ones() -> None:
    found = {name for name in EXTERNAL if outside_references(all_ops()[name])}
    assert found == EXTERNAL - BY_VALUE


def outside_references(op: type[OpDef]) -> set[str]:
    """Return the outside names and modules that an operator's functions, and those they call, refer to."""
    seen: set[int] = set()
    found: set[str] = set()
    waiting: list[Any] = [getattr(op, name) for name in FUNCTIONS if hasattr(op, name)]
    while waiting:
        function = waiting.pop()
        function = getattr(function, "__func__", function)
        if id(function) in seen:
            continue
        seen.add(id(function))
        used, scope = set(find_names(function.__code__)), function.__globals__
        found |= {name for name in used if name in OUTSIDE_NAMES and name not in scope}
        values = [cell.cell_contents for cell in function.__closure__ or ()]
        values += [scope[name] for name in used if name in scope]
        for value in values:
            is_module = isinstance(value, types.ModuleType)
            where = value.__name__ if is_module else getattr(value, "__module__", None) or ""
            if is_outside(where):
                found.add(where)
            elif is_module and where.startswith("paddlelike.ops"):
                waiting += [f for n, f in vars(value).items() if n in used and is_function(f)]
            elif is_function(value) and where.startswith("paddlelike.ops"):
                waiting.append(value)
    return found


def is_function(value: Any) -> bool:
    return isinstance(value, types.FunctionType)


def is_outside(module: str) -> bool:
    return any(module == one or module.startswith(one + ".") for one in OUTSIDE_MODULES)


def find_names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from find_names(constant)
