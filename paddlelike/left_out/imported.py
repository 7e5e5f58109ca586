"""Names that Fluid's modules import, and that scripts use from there.

``from paddle.fluid.optimizer import Program`` and ``fluid.framework.core`` work in Fluid, although these
modules do not define the names.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

#: A line for each module of ours: the names that it answers for.
_NAMES: Final = """
    fluid: backward compiler core executor framework initializer io layers optimizer param_attr unique_name
    import_paddle: compat
    layers: control_flow detection nn ops tensor utils assign cast concat equal fill_constant square zeros
    backward: append_backward
    clip: GradientClipBase GradientClipByNorm append_gradient_clip_ops error_clip_callback
    core: VarDesc
    executor: BuildStrategy CompiledProgram ExecutionStrategy Executor ParallelExecutor global_scope
    fluid.checks: check_dtype check_type check_variable_and_dtype convert_dtype
    fluid.wrapped_decorator: signature_safe_contextmanager wrap_decorator
    framework: Block Operator Parameter Program Variable convert_np_dtype_to_dtype_ cpu_places cuda_places
    framework: default_main_program default_startup_program device_guard grad_var_name in_dygraph_mode
    framework: name_scope program_guard
    initializer: Constant Initializer Normal NumpyArrayInitializer Xavier
    layers.helper: LayerHelper
    layers.layer_function_generator: autodoc templatedoc
    param_attr: ParamAttr
    reader: DataFeeder
    regularizer: WeightDecayRegularizer append_regularization_ops
"""
_ORIGINS: Final = {
    name: line.split(":")[0] for line in _NAMES.split("\n    ")[1:] for name in line.split()[1:]
}


def find_imported(name: str) -> Any:
    """Return the object that Fluid's modules import under that name, or None for other names.

    >>> find_imported("program_guard").__name__
    'program_guard'
    """
    return getattr(import_module(f"paddlelike.{_ORIGINS[name]}"), name) if name in _ORIGINS else None
