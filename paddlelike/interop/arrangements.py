"""Models for prediction of Fluid 1.8 as the two files that Paddle 2.x opens.

Paddle 2.x reads the programs of 1.8, and so the program is written byte for byte, and the values of all
parameters in one file, in the order of their names. Whether Paddle 2.x still has an operator is its matter.
"""

from __future__ import annotations

import os
from collections import Counter
from typing import Final

from paddlelike.errors import LoadError, SaveError
from paddlelike.formats.paddle.combined import CombinedFile
from paddlelike.formats.sources import Buffer
from paddlelike.interop.content import list_persistables, open_content
from paddlelike.interop.damage import refuse_damage
from paddlelike.interop.onnx.models import ModelReport
from paddlelike.io.export.program import find_ports
from paddlelike.storage.local.transaction import write_all
from paddlelike.storage.options import Durability, SaveOptions

__all__ = ["SUFFIX", "convert_arrangement"]

Path = str | os.PathLike[str]

SUFFIX: Final = ".pdmodel"
_VALUES: Final = ".pdiparams"


def convert_arrangement(
    source: Path,
    target: Path,
    *,
    overwrite: bool = False,
    verify: bool = True,
    durability: Durability = SaveOptions.durability,
) -> ModelReport:
    """Write the model of a directory as ``target``, a ``.pdmodel``, and the ``.pdiparams`` beside it.

    Both files are written, or none.

    Parameters
    ----------
    source
        A directory with one program and the values of its parameters.
    overwrite
        Allow the two files to exist.
    verify
        Compare the files with their manifest first, if there is one. False: copy damaged values, too.

    Raises
    ------
    SaveError
        A file of the target exists, or cannot be written.
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
    values_name = name.removesuffix(SUFFIX) + _VALUES
    for one in (name, values_name):
        if not overwrite and os.path.lexists(os.path.join(directory, one)):
            raise SaveError(
                f"{os.path.join(directory, one)} exists",
                hint="remove it, choose another path, or pass overwrite=True",
            )
    refuse_damage(here, verify=verify)
    with open_content(here) as content:
        program = content.get_program()
        feeds, fetches = find_ports(program, here)
        held = {one.name: one for one in content.variables}
        wanted = sorted(one.name for one in list_persistables(program))
        missing = [one for one in wanted if one not in held]
        if missing:
            raise LoadError(
                f"{here} holds no values of {', '.join(missing[:5])}, which its program needs",
                hint="give the directory of the model, and copy the files of the parameters into it",
            )
        with content.where.open_file(next(iter(content.programs))) as file:
            files: dict[str, list[Buffer]] = {name: [file.read()]}
        if wanted:
            files[values_name] = list(CombinedFile().write({one: content.read(held[one]) for one in wanted}))
        write_all(directory or ".", files, durability=durability)
    counts = Counter(op.type for op in program.global_block().ops if op.type not in ("feed", "fetch"))
    return ModelReport(here, there, dict(counts), tuple(feeds), tuple(fetches))
