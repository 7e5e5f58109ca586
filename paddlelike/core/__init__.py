"""Values: element types, places, tensors, scopes, random numbers.

These are the names of ``fluid.core``.
"""

from paddlelike.core.dtypes import AttrType, VarType, convert_dtype, numpy_dtype
from paddlelike.core.places import CPUPlace, CUDAPinnedPlace, CUDAPlace, is_compiled_with_cuda
from paddlelike.core.scope import Scope, global_scope, scope_guard
from paddlelike.core.tensor import LoDTensor, LoDTensorArray, SelectedRows
from paddlelike.errors import EnforceNotMet, EOFException

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
    """Fluid's name for the enum of types: ``fluid.core.VarDesc.VarType.FP32``."""

    VarType = VarType


def get_cuda_device_count() -> int:
    """Return 0: there are no GPU kernels."""
    return 0
