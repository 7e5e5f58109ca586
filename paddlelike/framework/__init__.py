"""Programs: the graph as plain data, declarations of operators, and passes and codecs for the graph."""

from typing import TYPE_CHECKING

from paddlelike.core import (
    convert_dtype as convert_np_dtype_to_dtype_,
    empty_var_name,
    grad_var_suffix,
    is_compiled_with_cuda,
    temp_var_name,
)
from paddlelike.core.places import cpu_places, cuda_pinned_places, cuda_places
from paddlelike.framework.environment import (
    _current_expected_place as _current_expected_place,
    _dygraph_tracer as _dygraph_tracer,
    in_dygraph_mode,
    load_op_library,
    require_version,
)
from paddlelike.framework.flags import get_flags, set_flags
from paddlelike.framework.graph.block import Block
from paddlelike.framework.graph.guards import (
    _get_var as _get_var,
    default_main_program,
    default_startup_program,
    device_guard,
    name_scope,
    program_guard,
    switch_main_program,
    switch_startup_program,
)
from paddlelike.framework.graph.operator import NAME_SCOPE, Operator, OpRole
from paddlelike.framework.graph.program import Program
from paddlelike.framework.graph.variable import Parameter, Variable, variable_kind
from paddlelike.framework.opdef import grad_name as grad_var_name
from paddlelike.framework.quirks import follows_fluid as follows_fluid, warn_quirk as warn_quirk
from paddlelike.left_out import make_getattr

__all__ = [
    "Block",
    "OpRole",
    "Operator",
    "Parameter",
    "Program",
    "Variable",
    "convert_np_dtype_to_dtype_",
    "cpu_places",
    "cuda_pinned_places",
    "cuda_places",
    "default_main_program",
    "default_startup_program",
    "device_guard",
    "get_flags",
    "grad_var_name",
    "in_dygraph_mode",
    "is_compiled_with_cuda",
    "load_op_library",
    "name_scope",
    "program_guard",
    "require_version",
    "set_flags",
    "switch_main_program",
    "switch_startup_program",
    "variable_kind",
]


EMPTY_VAR_NAME, TEMP_VAR_NAME, GRAD_VAR_SUFFIX = empty_var_name(), temp_var_name(), grad_var_suffix()


def _cpu_num() -> int:
    """Return the default number of copies that a parallel program runs: CPU_NUM, or 1."""
    return len(cpu_places())


def _cuda_ids() -> list[int]:
    """Return the GPUs that a parallel program runs on, which is an empty list."""
    return []


def _full_name_scope() -> str:
    """Return the path of the current name scopes, such as ``encoder/layer/``."""
    return NAME_SCOPE.get().path.removeprefix("/")


def generate_control_dev_var_name() -> str:
    """Return a new name for a variable without a value, which orders operators that exchange with servers."""
    from random import random  # late: it takes long

    return f"__control_var@{random()}"  # noqa: S311  (no secret)


if not TYPE_CHECKING:
    _find_other = make_getattr(__name__, "framework")

    def __getattr__(name):
        if not name.startswith("Ir"):
            return _find_other(name)
        from paddlelike.framework.passes.ir_graph import find_name  # few scripts rewrite graphs

        return find_name(name)
