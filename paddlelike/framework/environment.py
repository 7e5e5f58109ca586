"""Fluid's version, and functions for Fluid's modes that this package lacks."""

from __future__ import annotations

from typing import Any, Final

from paddlelike.errors import UnsupportedError

FLUID_VERSION: Final = "1.8.5"  # the version of Fluid's API and files
PADDLE_VERSION: Final = 1008005  # 1.8.5, as programs built here record it
PADDLE3_VERSION: Final = 3_000_000  # Paddle 3.0.0, likewise
PADDLE2_VERSION: Final = 2_000_000  # Paddle 2.0.0; from it on, operators of the same type may differ


def in_dygraph_mode() -> bool:
    """Return False: as in Fluid's static mode, programs are built first and run afterwards.

    See Also
    --------
    fluid.dygraph.no_grad, fluid.dygraph.ParallelEnv

    Returns
    -------
    bool
        False.

    >>> in_dygraph_mode()
    False
    """
    return False


def _dygraph_tracer() -> None:
    """Return None, since nothing is traced."""


def _current_expected_place() -> None:
    """Return None, as Fluid does without a dynamic graph."""


def require_version(min_version: str, max_version: str | None = None) -> None:
    """Check that Fluid's version, 1.8.5, is at least ``min_version`` and at most ``max_version``.

    Parameters
    ----------
    min_version
        The lowest version, as text.
    max_version
        The highest version; None for no limit.

    Raises
    ------
    RuntimeError
        1.8.5 is not in this range.
    TypeError, ValueError
        A version is not a text, or not a version.

    >>> require_version("1.6.0")
    """
    here = _parse_version(FLUID_VERSION)
    if _parse_version(min_version) > here or (max_version is not None and _parse_version(max_version) < here):
        wanted = f"{min_version} or newer" if max_version is None else f"{min_version} to {max_version}"
        raise RuntimeError(
            f"this script requires Fluid {wanted}; this package has the API of {FLUID_VERSION}"
        )


def _parse_version(version: str) -> tuple[int, ...]:
    if not isinstance(version, str):
        raise TypeError(f"a version is a string like '1.8.5', not {version!r}")
    parts = version.split(".")
    if not parts or not all(part.isdigit() for part in parts):
        raise ValueError(f"a version is integers separated by dots, like '1.8.5', not {version!r}")
    return tuple(int(part) for part in parts) + (0,) * (4 - len(parts))


def memory_optimize(
    input_program: object,
    skip_opt_set: object = None,
    print_log: bool = False,
    level: int = 0,
    skip_grads: bool = True,
) -> None:
    """Do nothing: memory is always released after its last use.

    Parameters
    ----------
    input_program
        The program, which stays as it is.
    skip_opt_set, print_log, level, skip_grads
        They have no effect, as in Fluid.

    See Also
    --------
    fluid.release_memory, fluid.disable_dygraph

    >>> import paddlelike as fluid
    >>> memory_optimize(fluid.default_main_program())
    """


def release_memory(input_program: object, skip_opt_set: object = None) -> None:
    """Do nothing: memory is always released after its last use.

    Parameters
    ----------
    input_program
        The program, which stays as it is.
    skip_opt_set
        They have no effect, as in Fluid.

    See Also
    --------
    fluid.memory_optimize, fluid.disable_dygraph

    >>> import paddlelike as fluid
    >>> release_memory(fluid.default_main_program())
    """


def load_op_library(lib_filename: str) -> None:
    """Raise UnsupportedError: libraries of C++ operators cannot be loaded.

    Parameters
    ----------
    lib_filename
        The path of the library, for the message.

    Raises
    ------
    UnsupportedError
        Libraries of operators cannot be loaded here.

    See Also
    --------
    fluid.ops.load_operator, fluid.ops.load_operators

    >>> load_op_library("my_ops.so")
    Traceback (most recent call last):
    paddlelike.errors.UnsupportedError: ...
    """
    raise UnsupportedError(
        f"load_op_library: {lib_filename} cannot be loaded; paddlelike runs no C++ operators",
        hint="write the operator in Python: a subclass of paddlelike.framework.opdef.OpDef",
    )


_DEFAULT_VERSION: Final = "1.5.0"
_CHANGED_IN: Final = "1.6.0"

# Compatibility of operators since version 1.6.0: framework.proto, CompatibleInfo.Type.
_DEFINITELY_NOT: Final = (
    "center_loss coalesce_tensor crop_tensor deformable_conv deformable_conv_v1 dpsgd eye fill_any_like "
    "filter_by_instag gather_nd hard_swish instance_norm lookup_table_v2 match_matrix_tensor "
    "multiclass_nms2 one_hot_v2 prroi_pool pull_box_sparse scatter_nd_add sequence_pad "
    "sequence_topk_avg_pooling sequence_unpad shard_index size strided_slice trilinear_interp unfold "
    "unique unique_with_counts var_conv_2d"
)
_POSSIBLE: Final = (
    "bilinear_interp chunk_eval conditional_block conditional_block_infer conv2d conv2d_transpose conv3d "
    "conv3d_transpose crf_decoding ctc_align data_norm depthwise_conv2d depthwise_conv2d_transpose "
    "edit_distance expand fc fused_embedding_seq_pool group_norm hash leaky_relu linear_chain_crf "
    "lod_reset matmul mul nearest_interp one_hot pow prior_box reshape2 slice uniform_random "
    "uniform_random_batch_size_like warpctc"
)
_BUG_FIX: Final = "layer_norm"


def add_operator_versions(message: Any) -> None:
    """Fill the ``op_compatible_map`` of a ProgramDesc, unless it has one or Paddle 2 wrote the program."""
    if message.op_compatible_map.pair or message.version.version >= PADDLE2_VERSION:
        return
    table = message.op_compatible_map
    groups = ((1, _DEFINITELY_NOT), (2, _POSSIBLE), (3, _BUG_FIX))
    kinds = {name: kind for kind, names in groups for name in names.split()}
    table.default_required_version = _DEFAULT_VERSION
    for name, kind in sorted(kinds.items()):
        pair = table.pair.add()
        pair.op_name = name
        pair.compatible_info.version = _CHANGED_IN
        pair.compatible_info.type = kind
