"""Conversion of models for prediction between Fluid 1.8, Paddle 2.x and 3, and ONNX: a program, and one file
of all values.

Paddle 2.x reads programs of 1.8, so these are copied byte for byte; the report names operators that Paddle
2.6 no longer has. The values are in the order of their names.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace
from typing import Any, Final, NamedTuple

from paddlelike.core import Scope, scope_guard
from paddlelike.errors import LoadError, MissingFileError, SaveError, UnsupportedError
from paddlelike.executor.run import Executor
from paddlelike.formats.entry import LeftOut
from paddlelike.formats.paddle.combined import CombinedFile
from paddlelike.formats.paddle.recognize import is_pir, is_program
from paddlelike.formats.sources import Buffer
from paddlelike.framework import Operator, Program
from paddlelike.framework.codec.encode import encode_program
from paddlelike.framework.environment import PADDLE2_VERSION
from paddlelike.framework.opdef import OpDef, registry
from paddlelike.interop.content import list_persistables, open_content
from paddlelike.interop.damage import refuse_damage
from paddlelike.interop.fluid18 import find_uneven, make_fluid18, takes_others
from paddlelike.interop.onnx.models import ModelReport, convert_model, find_values
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
_ONNX: Final = ".onnx"
_HEAD: Final = 64
#: The operator of Fluid 1.8 that Paddle 2.6.2 does not have, and that is not here.
_GONE: Final = "fl_listen_and_serv"

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
    """Return whether a conversion is to the files of Paddle 2.x or 3, or from these to a directory."""
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
        Compare the files with their manifest first, if there is one. If False, copy damaged values, too.

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
    with open_content(here) as content:
        left_out = content.list_left_out({one.name for one in list_persistables(program)})
    lacking: set[str] = set()
    counts = Counter(op.type for op in program.global_block().ops if op.type not in ("feed", "fetch"))
    if name.endswith(_PIR):
        data = write_pir(program)
    elif not name.endswith(SUFFIX):
        data = encode_program(make_fluid18(program))
    else:
        _check_known(program)
        data = _complete_types(program, data)
        lacking = {op.type for op in _list_ops(program) if op.type == _GONE or _find(op).until}
    files: dict[str, list[Buffer]] = {name: [data]}
    if values:
        files[values_name] = list(CombinedFile().write(values))
    write_all(directory or ".", files, durability=durability)
    return ModelReport(
        here, there, dict(counts), tuple(feeds), tuple(fetches), tuple(sorted(lacking)), left_out
    )


class ModelFiles(NamedTuple):
    """The directory of a model, and the names of its program and its combined file, each perhaps None."""

    directory: str
    program: str | None
    values: str | None


def find_model_files(path: str | os.PathLike[str]) -> ModelFiles:
    """Return the location of a model, given its directory, its program, or the prefix of both its files.

    In a directory, a name is None if no file or several files fit.

    Raises
    ------
    MissingFileError
        The path does not exist.
    LoadError
        The model holds no program.
    """
    text = os.fspath(path)
    with open_content(path) as content:
        if not content.programs:
            unread = content.explain_unread() if content.is_empty else None
            hint = "name a __model__, .pdmodel or .json file, or a directory with one"
            raise LoadError(f"{text} holds no program", hint=unread or hint)
        kinds = [file.kind for file in content.files]
        programs = list(content.programs)
        combined = [file.name for file in content.files if file.kind == "combined"]
        directory = text
        if not content.is_directory:
            directory = os.path.dirname(text) or "."
        if content.is_file and programs:  # its values are beside it
            beside = f"{os.path.splitext(programs[0])[0]}.pdiparams"
            combined = [beside] if content.where.has(beside) else []
    model = programs[0] if len(programs) == 1 else None
    values = combined[0] if len(combined) == 1 and "variable" not in kinds else None
    return ModelFiles(directory, model, values)


def convert_onnx(
    source: str,
    target: str,
    model_filename: str | None = None,
    params_filename: str | None = None,
    *,
    opset: int = 18,
    overwrite: bool = False,
    verify: bool = True,
    durability: Durability = SaveOptions.durability,
) -> ModelReport:
    """Convert a model to an ONNX file, or an ONNX file to a directory: ``convert_model`` of any source.

    Raises
    ------
    LoadError
        The source holds no program, or a file differs from its manifest.
    """
    refuse_damage(source, verify=verify)
    found = ModelFiles(source, model_filename, params_filename)
    left_out: tuple[LeftOut, ...] = ()
    if target.endswith(_ONNX) and not source.endswith(_ONNX):
        model = _find_model(source)
        found = ModelFiles(model.directory, model_filename or model.program, params_filename or model.values)
        with open_content(source) as content:
            program = content.programs.get(found.program or "__model__")
            read = {one.name for one in list_persistables(program)} if program else ()
            left_out = content.list_left_out(read, found.program)
    directory, *files = found
    report = convert_model(
        source,
        target,
        directory,
        *files,
        opset=opset,
        overwrite=overwrite,
        verify=verify,
        durability=durability,
    )
    return replace(report, left_out=left_out)


def _find_model(source: str) -> ModelFiles:
    """Return the location of a model for an ONNX file. Raises LoadError if it holds no program."""
    try:
        return find_model_files(source)
    except MissingFileError:
        raise
    except LoadError as error:
        message = f"{error.message}, but an ONNX model is made from a program"
        raise LoadError(message, hint=f"{error.hint}; format='onnx' writes values alone") from error


def _list_ops(program: Program) -> list[Operator]:
    return [op for block in program.blocks for op in block.ops]


def _find(op: Operator) -> type[OpDef]:
    """Return the definition of an operator, or an empty one."""
    return registry.find_or_none(op.type) or OpDef


def _check_known(program: Program) -> None:
    """Raise UnsupportedError for operators of Paddle 3, and for attributes that 2.6.2 silently ignores."""
    ops = _list_ops(program)
    later = sorted({op.type for op in ops if _find(op).since == "3"})
    if later:
        raise UnsupportedError(
            f"Paddle 2.6 has no {', '.join(later)}, nor operators that compute the same",
            hint="convert to a .json, which Paddle 3 opens",
        )
    uneven = {
        f"{op.type} with exclusive=False and {why}"
        for op in ops
        if program.paddle_version < PADDLE2_VERSION
        for why in find_uneven(op)
    }
    if uneven:
        raise UnsupportedError(
            f"{', '.join(sorted(uneven))}: Paddle 2 averages over other elements",
            hint="exclusive=True computes the same in both, and so do sizes that the windows fill",
        )
    backward = {
        f"strided_slice in {why}"
        for op in ops
        if program.paddle_version < PADDLE2_VERSION
        for why in takes_others(op)
    }
    if backward:
        raise UnsupportedError(
            f"Paddle 2 selects other elements in {', '.join(sorted(backward))}",
            hint="a slice with steps above zero, then layers.reverse, computes the same in both",
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


def _complete_types(program: Program, data: bytes) -> bytes:
    """Return the encoded program, with the ``dtype`` that Paddle 2 needs of linspace; Fluid 1.8 has none."""
    lines = [op for op in _list_ops(program) if op.type == "linspace"]
    if program.paddle_version >= PADDLE2_VERSION or not lines:
        return data
    for op in lines:
        op._set_attr("dtype", int(op.block._var_recursive(op.output("Out")[0]).dtype))
    return encode_program(program)


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
        held = content.index_variables()
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
