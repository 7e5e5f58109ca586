"""Values: element types, places, tensors, scopes, random numbers.

These are the names of ``fluid.core``.
"""

from typing import TYPE_CHECKING, Any, Final

from paddlelike.core.dtypes import (
    TENSOR_DTYPES as TENSOR_DTYPES,
    AttrType,
    VarType,
    convert_dtype,
    dtype_row as dtype_row,
    numpy_dtype,
)
from paddlelike.core.places import CPUPlace, CUDAPinnedPlace, CUDAPlace, Place as Place, is_compiled_with_cuda
from paddlelike.core.random import Generator as Generator
from paddlelike.core.roles import OpRole
from paddlelike.core.scope import Scope, ScopeVariable as ScopeVariable, global_scope, scope_guard
from paddlelike.core.tensor import Array as Array, LoD as LoD, LoDTensor, LoDTensorArray, SelectedRows
from paddlelike.core.typing import DtypeLike as DtypeLike
from paddlelike.core.versioned import Versioned as Versioned
from paddlelike.errors import EnforceNotMet, EOFException
from paddlelike.hooks import Hook
from paddlelike.left_out import make_getattr

__all__ = [
    "AttrType",
    "CPUPlace",
    "CUDAPinnedPlace",
    "CUDAPlace",
    "EOFException",
    "EnforceNotMet",
    "LoDTensor",
    "LoDTensorArray",
    "Scope",
    "SelectedRows",
    "VarDesc",
    "VarType",
    "convert_dtype",
    "get_cuda_device_count",
    "global_scope",
    "is_compiled_with_cuda",
    "numpy_dtype",
    "scope_guard",
]


class VarDesc:
    """Fluid's name for the enum of types: ``fluid.core.VarDesc.VarType.FP32``.

    See Also
    --------
    fluid.core.convert_dtype

    >>> VarDesc.VarType.FP32.name
    'FP32'
    """

    VarType = VarType


class op_proto_and_checker_maker:  # noqa: N801  (Fluid's name)
    """The class in which Fluid keeps roles: ``core.op_proto_and_checker_maker.OpRole.Backward``."""

    OpRole = OpRole

    @staticmethod
    def kOpRoleAttrName() -> str:  # noqa: N802
        """Return the name of the attribute that holds the role."""
        return "op_role"

    @staticmethod
    def kOpRoleVarAttrName() -> str:  # noqa: N802
        """Return the name of the attribute that holds parameter and gradient."""
        return "op_role_var"

    @staticmethod
    def kOpDeviceAttrName() -> str:  # noqa: N802
        """Return the name of the attribute that holds the device."""
        return "op_device"


def is_compiled_with_mkldnn() -> bool:
    """Return False: the kernels are numpy functions."""
    return False


is_compiled_with_brpc = is_compiled_with_dist = is_compiled_with_mkldnn


Tensor = LoDTensor  # Fluid's name of its base class


def grad_var_suffix() -> str:
    """Return the suffix of gradients' names."""
    return "@GRAD"


def empty_var_name() -> str:
    """Return the name that marks an unwanted variable."""
    return "@EMPTY@"


def temp_var_name() -> str:
    """Return the placeholder name of temporary variables."""
    return "@TEMP@"


# Fluid's names.
kGradVarSuffix, kEmptyVarName, kTempVarName = grad_var_suffix, empty_var_name, temp_var_name  # noqa: N816


def avx_supported() -> bool:
    """Return whether the processor has AVX, as far as the system says."""
    try:
        with open("/proc/cpuinfo") as file:
            return "avx" in file.read()
    except OSError:
        return False


def _set_eager_deletion_mode(threshold: float, fraction: float, fast: bool) -> None:
    """Do nothing: temporaries are always dropped after their last reader."""


def save_op_compatible_info(desc: Any) -> bool:
    """Add the table of operator versions to an encoded ``program.desc``. Return True."""
    desc.add_operator_versions()
    return True


def get_cuda_device_count() -> int:
    """Return 0: there are no GPU kernels.

    Returns
    -------
    int
        0.

    See Also
    --------
    fluid.is_compiled_with_cuda, fluid.cuda_places

    >>> get_cuda_device_count()
    0
    """
    return 0


#: Names of Paddle's inference engine, which are in ``paddlelike.inference``.
_PREDICTOR_NAMES: Final = (
    "AnalysisConfig",
    "AnalysisPredictor",
    "NativeConfig",
    "PaddleBuf",
    "PaddleDType",
    "PaddlePlace",
    "PaddlePredictor",
    "PaddleTensor",
    "ZeroCopyTensor",
    "create_paddle_predictor",
    "paddle_dtype_size",
    "paddle_tensor_to_bytes",
)
#: The names that higher floors define, and who finds them.
_OF_HIGHER_FLOORS: Final[dict[str, Hook[[str], Any]]] = {
    **dict.fromkeys(_PREDICTOR_NAMES, Hook("find_predictor_name")),
    **dict.fromkeys(("Graph", "Node"), Hook("find_graph_name")),
}

if not TYPE_CHECKING:
    _find_left_out = make_getattr(__name__, "core")

    def __getattr__(name):
        hook = _OF_HIGHER_FLOORS.get(name)
        return _find_left_out(name) if hook is None else hook.function(name)
