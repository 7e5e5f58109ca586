"""Models for prediction between directories of Fluid and ONNX files, in one call."""

from __future__ import annotations

import os
from typing import Final

from paddlelike.core import Scope, scope_guard
from paddlelike.errors import SaveError
from paddlelike.executor.run import Executor
from paddlelike.formats.entry import LeftOut
from paddlelike.foundation.amounts import format_count
from paddlelike.foundation.display import Displayed
from paddlelike.interop.onnx.exporter.export import export_onnx
from paddlelike.interop.onnx.importer.build import import_onnx
from paddlelike.io.export.load import load_inference_model
from paddlelike.io.export.save import save_inference_model
from paddlelike.lazy import dataclass
from paddlelike.storage.options import Durability, SaveOptions
from paddlelike.storage.problems import is_file, is_there

Path = str | os.PathLike[str]

_SUFFIX: Final = ".onnx"


@dataclass(frozen=True, repr=False)
class ModelReport(Displayed):
    """The result of a conversion of a model.

    Attributes
    ----------
    lacking
        Operators that the system of the target once had, and no longer runs.
    left_out
        Contents of the source's directory that are not in the target: values that the program does not read,
        other programs, and files that are not understood. The report is false where it lists any.
    """

    source: str
    target: str
    operators: dict[str, int]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    lacking: tuple[str, ...] = ()
    left_out: tuple[LeftOut, ...] = ()

    def __repr__(self) -> str:
        return f"<ModelReport: {str(self).partition(chr(10))[0]}>"

    def __str__(self) -> str:
        ports = f"{', '.join(self.inputs)} -> {', '.join(self.outputs)}"
        count = sum(self.operators.values())
        line = (
            f"converted a model of {format_count(count, 'operator')}, {ports}: {self.source} -> {self.target}"
        )
        line += f"\n  Paddle 2.6 has no kernel of {', '.join(self.lacking)}" * bool(self.lacking)
        return line + f"\n  left out: {', '.join(map(str, self.left_out))}" * bool(self.left_out)

    def __bool__(self) -> bool:
        """Whether everything in the source is in the target."""
        return not any(one.is_value for one in self.left_out)


def is_model_conversion(source: Path, target: Path) -> bool:
    """Return whether a conversion turns a program into an ONNX file, or an ONNX file into a directory.

    >>> is_model_conversion("model.onnx", "model"), is_model_conversion("model.onnx", "values.npz")
    (True, False)
    """
    here, there = os.fspath(source), os.fspath(target)
    return there.endswith(_SUFFIX) or (here.endswith(_SUFFIX) and not os.path.splitext(there)[1])


def find_values(path: str) -> str | None:
    """Return the name of the file with the values of a program beside it, if there is one."""
    beside = f"{os.path.splitext(path)[0]}.pdiparams"
    return os.path.basename(beside) if is_file(beside) and os.path.getsize(beside) else None


def convert_model(
    source: Path,
    target: Path,
    directory: str | None = None,
    model_filename: str | None = None,
    params_filename: str | None = None,
    *,
    opset: int = 18,
    overwrite: bool = False,
    verify: bool = True,
    durability: Durability = SaveOptions.durability,
) -> ModelReport:
    """Convert a model for prediction to an ONNX file, or an ONNX file to a directory with a model.

    ``source`` is a directory, a ``.pdmodel`` or ``.json`` beside its parameters, or an ONNX file.

    Parameters
    ----------
    opset
        Version of ONNX's operators in the file that is written.
    directory
        The location of the model that becomes an ONNX file; ``source`` if None.
    model_filename, params_filename
        Files of the directory, as ``load_inference_model`` and ``save_inference_model`` take them.
    overwrite
        Allow ``target`` to exist.
    verify
        Compare the files of a directory with their manifest, if any. If False, copy damaged files, too.

    Raises
    ------
    SaveError
        ``target`` exists, or cannot be written.
    UnsupportedError
        Operators that the other side cannot express; it lists all of them, and nothing is written.
    LoadError, FormatError
        The source is damaged, or no model.
    """
    here, there = os.fspath(source), os.fspath(target)
    if not overwrite and is_there(there):
        raise SaveError(f"{there} exists", hint="remove it, choose another path, or pass overwrite=True")
    if there.endswith(_SUFFIX):
        if here.endswith(_SUFFIX):
            raise SaveError(
                f"{here} is an ONNX file already",
                hint="use onnx.version_converter to change its opset, or pass format='onnx' for its "
                "values alone",
            )
        where = directory or here
        with scope_guard(scope := Scope()):
            names = (model_filename, params_filename)
            program = load_inference_model(where, Executor(), *names, verify=verify)[0]
        report = export_onnx(program, there, opset=opset, scope=scope, durability=durability)
        return ModelReport(here, there, report.operators, tuple(report.inputs), tuple(report.outputs))
    scope = Scope()
    program, feeds, fetches = import_onnx(here, scope=scope)
    counts: dict[str, int] = {}
    for op in program.global_block().ops:
        if op.type not in ("feed", "fetch"):
            counts[op.type] = counts.get(op.type, 0) + 1
    with scope_guard(scope):
        outputs = save_inference_model(
            there,
            feeds,
            fetches,
            Executor(),
            program,
            model_filename,
            params_filename,
            durability=durability,
        )
    return ModelReport(here, there, counts, tuple(feeds), tuple(outputs))
