"""Models for prediction between Fluid 1.8, Paddle 2.x and Paddle 3: a program, and a file of all values.

Paddle 2.x reads the programs of 1.8, so these are written byte for byte; the report names the operators that
Paddle 2.6 no longer has. The values are in the order of their names.
"""

from __future__ import annotations

import os
from collections import Counter
from typing import Any, Final

from paddlelike.core import Scope, scope_guard
from paddlelike.errors import LoadError, SaveError, UnsupportedError
from paddlelike.executor.run import Executor
from paddlelike.formats.paddle.combined import CombinedFile
from paddlelike.formats.paddle.recognize import is_pir, is_program
from paddlelike.formats.sources import Buffer
from paddlelike.framework import Program
from paddlelike.framework.codec.encode import encode_program
from paddlelike.interop.content import list_persistables, open_content
from paddlelike.interop.damage import refuse_damage
from paddlelike.interop.fluid18 import make_fluid18
from paddlelike.interop.onnx.models import ModelReport, find_values
from paddlelike.interop.paddle3.write import write_pir
from paddlelike.io.export.load import load_inference_model
from paddlelike.io.export.program import find_ports
from paddlelike.io.load.model_files import find_model
from paddlelike.storage.local.transaction import write_all
from paddlelike.storage.options import Durability, SaveOptions
from paddlelike.storage.problems import is_there

Path = str | os.PathLike[str]

SUFFIX: Final = ".pdmodel"
_VALUES: Final = ".pdiparams"
_PIR: Final = ".json"
_HEAD: Final = 64
#: Operators of Paddle 3 that Paddle 2.6.2 does not have, nor others that compute the same.
_NEW: Final = frozenset({
    "binomial", "bitwise_left_shift", "bitwise_right_shift", "copysign", "fractional_max_pool2d",
    "fractional_max_pool3d", "fused_rms_norm_quant", "gammaincc", "lu_solve", "matrix_rank_atol_rtol",
    "median", "standard_gamma",
})  # fmt: skip

#: Operators of Fluid 1.8 that Paddle 2.6.2 does not have, or has no CPU kernel of.
_GONE: Final = frozenset({
    "allreduce", "center_loss", "checkpoint_notify", "conv_shift", "cos_sim", "diag", "equal_reduce",
    "expand_as", "filter_by_instag", "fl_listen_and_serv", "flatten", "gaussian_random_batch_size_like",
    "inplace_abn", "isfinite", "lookup_sparse_table", "lstm_unit", "lstmp", "margin_rank_loss",
    "mean_iou", "merge_ids", "one_hot", "pad2d", "pad_constant_like", "prefetch", "proximal_adagrad",
    "prroi_pool", "random_crop", "recv", "recv_save", "ref_by_trainer_id", "rnn_memory_helper",
    "roi_perspective_transform", "sample_logits", "sequence_topk_avg_pooling", "sigmoid_focal_loss",
    "smooth_l1_loss", "space_to_depth", "split_byref", "split_ids", "split_selected_rows",
    "squared_l2_distance", "squeeze", "target_assign", "tree_conv", "unsqueeze",
})  # fmt: skip

#: Attributes that Paddle 2.6.2 ignores: the values with which it computes the same.
_LATER: Final[dict[tuple[str, str], Any]] = {
    ("kldiv_loss", "log_target"): False,
    ("nanmedian", "mode"): "avg",
    ("round", "decimals"): 0,
    ("quantize_linear", "qmin"): -128,
    ("quantize_linear", "qmax"): 127,
    ("dequantize_linear", "qmin"): -128,
    ("dequantize_linear", "qmax"): 127,
}


def is_arrangement(source: Path, target: Path) -> bool:
    """Return whether a conversion is one to the files of Paddle 2.x or 3, or of these to a directory."""
    here, there = os.fspath(source), os.fspath(target)
    if there.endswith((SUFFIX, _PIR)) or os.path.splitext(there)[1]:
        return there.endswith((SUFFIX, _PIR))
    return _is_program_file(here) or (os.path.isdir(here) and find_model(here) is not None)


def convert_arrangement(
    source: Path,
    target: Path,
    *,
    overwrite: bool = False,
    verify: bool = True,
    durability: Durability = SaveOptions.durability,
) -> ModelReport:
    """Write a model as a ``.pdmodel``, or as a ``.json`` of Paddle 3, with the ``.pdiparams`` beside it.

    A directory as ``target`` gets ``__model__`` and ``__params__``, which Fluid 1.8 opens. Both files are
    written, or none.

    Parameters
    ----------
    source
        A directory with one program and the values of its parameters, or a ``.pdmodel``, or an
        ``inference.json`` of Paddle 3, beside its values.
    overwrite
        Allow the two files to exist.
    verify
        Compare the files with their manifest first, if there is one. False: copy damaged values, too.

    Raises
    ------
    SaveError
        A file of the target exists, or cannot be written.
    UnsupportedError
        Paddle 3, or Fluid 1.8, lacks an operator or attribute, or it is not written here; it is named.
    LoadError, FormatError
        The source is damaged, holds no program or several, or lacks values.

    >>> import tempfile
    >>> import paddlelike as fluid
    >>> main, startup = fluid.Program(), fluid.Program()
    >>> with fluid.unique_name.guard(), fluid.program_guard(main, startup):
    ...     out = fluid.layers.fc(fluid.data("x", [None, 4]), 3)
    >>> exe, home = fluid.Executor(fluid.CPUPlace()), tempfile.mkdtemp()
    >>> with fluid.scope_guard(fluid.Scope()):
    ...     exe.run(startup)
    ...     names = fluid.io.save_inference_model(home + "/old", ["x"], [out], exe, main)
    []
    >>> convert_arrangement(home + "/old", home + "/new.pdmodel").operators
    {'mul': 1, 'elementwise_add': 1, 'scale': 1}
    >>> sorted(one for one in os.listdir(home) if one != "old")
    ['new.pdiparams', 'new.pdmodel']
    """
    here, there = os.fspath(source), os.fspath(target)
    directory, name = os.path.split(there)
    values_name = os.path.splitext(name)[0] + _VALUES
    if not name.endswith((SUFFIX, _PIR)):
        directory, name, values_name = there, "__model__", "__params__"
    for one in (name, values_name):
        if not overwrite and is_there(os.path.join(directory, one)):
            raise SaveError(
                f"{os.path.join(directory, one)} exists",
                hint="remove it, choose another path, or pass overwrite=True",
            )
    refuse_damage(here, verify=verify)
    program, data, values = _read_model(here)
    feeds, fetches = find_ports(program, here)
    lacking: set[str] = set()
    counts = Counter(op.type for op in program.global_block().ops if op.type not in ("feed", "fetch"))
    if name.endswith(_PIR):
        data = write_pir(program)
    elif not name.endswith(SUFFIX):
        data = encode_program(make_fluid18(program))
    else:
        _check_known(program)
        lacking = {op.type for block in program.blocks for op in block.ops} & _GONE
    files: dict[str, list[Buffer]] = {name: [data]}
    if values:
        files[values_name] = list(CombinedFile().write(values))
    write_all(directory or ".", files, durability=durability)
    return ModelReport(here, there, dict(counts), tuple(feeds), tuple(fetches), tuple(sorted(lacking)))


def _check_known(program: Program) -> None:
    """Raise UnsupportedError for operators of Paddle 3, and attributes that 2.6.2 passes over in silence."""
    ops = [op for block in program.blocks for op in block.ops]
    later = sorted({op.type for op in ops} & _NEW)
    if later:
        raise UnsupportedError(
            f"Paddle 2.6 has no {', '.join(later)}, nor operators that compute the same",
            hint="convert to a .json, which Paddle 3 opens",
        )
    found = [
        f"{type} with {name}={op.attrs[name]!r}"
        for (type, name), meant in _LATER.items()
        for op in ops
        if op.type == type and op.attrs.get(name, meant) != meant
    ]
    if found:
        raise UnsupportedError(
            f"Paddle 2.6 has no {', '.join(found)}, and would compute something else",
            hint="convert to a .json, which Paddle 3 opens",
        )


def _is_program_file(path: str) -> bool:
    if not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        return is_program(file.read(_HEAD))


def _read_model(path: str) -> tuple[Program, bytes, dict[str, Any]]:
    """Return the program of a model, its ProgramDesc, and its values in the order of their names."""
    if _is_program_file(path):
        folder, name = os.path.split(path)
        with scope_guard(scope := Scope()):
            program = load_inference_model(folder or ".", Executor(), name, find_values(path))[0]
        names = sorted(one.name for one in list_persistables(program))
        return program, encode_program(program), {one: scope.var(one).get_tensor() for one in names}
    with open_content(path) as content:
        program = content.get_program()
        held = {one.name: one for one in content.variables}
        wanted = sorted(one.name for one in list_persistables(program))
        missing = [one for one in wanted if one not in held]
        if missing:
            raise LoadError(
                f"{path} holds no values of {', '.join(missing[:5])}, which its program needs",
                hint="give the directory of the model, and copy the files of the parameters into it",
            )
        with content.where.open_file(next(iter(content.programs))) as file:
            data = file.read()
        data = encode_program(program) if is_pir(data) else data
        return program, data, {one: content.read(held[one]) for one in wanted}
