"""The contents of saved files: kind, versions, variables with types, sizes and statistics, programs."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, field
from typing import Any, NamedTuple

from paddlelike.core import Array, LoDTensor, SelectedRows, VarType
from paddlelike.core.dtypes import widen_bfloat16
from paddlelike.errors import PaddlelikeError
from paddlelike.formats.base import Value
from paddlelike.formats.entry import LeftOut
from paddlelike.formats.paddle.server_tables import ServerTables
from paddlelike.foundation.amounts import format_count
from paddlelike.foundation.display import Displayed
from paddlelike.framework import Program
from paddlelike.inspection.statistics import Histogram, Sample, Statistics, count_bins, summarize, take_sample
from paddlelike.interop.content import Content, FileFacts, Held, list_persistables, open_content
from paddlelike.lazy import dataclass
from paddlelike.storage.problems import raises_own_errors

__all__ = ["FileFacts", "Inspection", "ProgramFacts", "VariableFacts", "array_of", "inspect"]


class VariableFacts(NamedTuple):
    """A variable in a file.

    Attributes
    ----------
    role
        "parameter", "optimizer state", "learning rate", "counter" or "state", guessed from Fluid's names of
        accumulators, because files do not record it.
    dtype
        Paddle's name, such as "FP32".
    height
        The height of the whole matrix, for SelectedRows. None means a dense tensor.
    problem
        Why the elements cannot be read.
    histogram, sample
        Only on request.
    """

    name: str
    file: str
    role: str
    dtype: str
    shape: tuple[int, ...]
    nbytes: int
    lod_levels: int = 0
    height: int | None = None
    statistics: Statistics | None = None
    problem: str | None = None
    histogram: Histogram | None = None
    sample: Sample | None = None


class ProgramFacts(NamedTuple):
    """A program in a file: its contents, feeds and fetches, and the variables that need files."""

    file: str
    version: int
    blocks: int
    operators: dict[str, int]
    feeds: tuple[str, ...]
    fetches: tuple[str, ...]
    persistables: tuple[str, ...]


@dataclass(frozen=True, repr=False)
class Inspection(Displayed):
    """The contents of a path.

    Attributes
    ----------
    title
        The kind of the whole.
    library, saved
        The program that wrote the manifest, and the time (UTC); None without a manifest.
    unnamed
        Combined files whose variables are called by position, because their names are not known.
    left_out
        The contents of each file beside variables: numbers and texts in a pickle, arrays of types that no
        variable has, and the like.
    """

    path: str
    title: str
    files: tuple[FileFacts, ...]
    variables: tuple[VariableFacts, ...]
    programs: tuple[ProgramFacts, ...]
    library: str | None = None
    saved: str | None = None
    unnamed: tuple[str, ...] = ()
    left_out: dict[str, tuple[LeftOut, ...]] = field(default_factory=dict)

    @property
    def nbytes(self) -> int:
        """The size of all elements."""
        return sum(variable.nbytes for variable in self.variables)

    @property
    def flagged(self) -> list[VariableFacts]:
        """The variables with NaN or infinite elements, or that cannot be read."""
        return [
            one
            for one in self.variables
            if one.problem or (one.statistics is not None and (one.statistics.nan or one.statistics.inf))
        ]

    def __bool__(self) -> bool:
        """Whether there are contents that can all be read and are finite."""
        if any(one.is_value and not one.is_plain for some in self.left_out.values() for one in some):
            return False
        known = any(file.kind != "other" for file in self.files)
        return known and not self.flagged and not any(file.problem for file in self.files)

    def __repr__(self) -> str:
        flagged = f", {len(self.flagged)} flagged" if self.flagged else ""
        return f"<Inspection: {self.path}: {self.title}, {len(self.variables)} variables{flagged}>"

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, for JSON."""
        plain = asdict(self)
        plain["files"] = [file._asdict() for file in self.files]
        plain["left_out"] = {k: [one._asdict() for one in some] for k, some in self.left_out.items()}
        plain["programs"] = [program._asdict() for program in self.programs]
        plain["variables"] = [
            {
                **one._asdict(),
                "statistics": one.statistics and asdict(one.statistics),
                "histogram": one.histogram and one.histogram._asdict(),
                "sample": one.sample and one.sample._asdict(),
            }
            for one in self.variables
        ]
        return {**plain, "nbytes": self.nbytes, "fine": bool(self)}


@raises_own_errors
def inspect(
    path: str | os.PathLike[str],
    *,
    statistics: bool = True,
    histograms: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> Inspection:
    """Look into a directory, a file, or the files of ``fluid.save`` under a prefix, of any known format.

    Parameters
    ----------
    statistics
        Read every value; else only headers are read.
    histograms
        Count the elements of every value in bins, too.
    progress
        Called with the bytes of elements done and all bytes.

    Raises
    ------
    MissingFileError
        There is nothing under the path.
    StorageError
        The directory cannot be listed.

    >>> import tempfile, numpy as np
    >>> home = tempfile.mkdtemp()
    >>> np.savez(home + "/net.npz", w=np.float32([[1, np.nan]]))
    >>> found = inspect(home + "/net.npz")
    >>> found.title, [(one.name, one.dtype, one.shape) for one in found.variables], bool(found)
    ('an npz file of numpy', [('w', 'FP32', (1, 2))], False)
    """
    with open_content(path) as content:
        return inspect_content(content, statistics=statistics, histograms=histograms, progress=progress)


def inspect_content(
    content: Content,
    *,
    statistics: bool = True,
    histograms: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> Inspection:
    """Return the report of :func:`inspect` for open contents."""
    total, done = sum(held.entry.nbytes for held in content.variables), 0
    variables = []
    for held in content.variables:
        variables.append(_describe(content, held, statistics=statistics, histogram=histograms))
        done += held.entry.nbytes
        if progress is not None:
            progress(done, total)
    found = content.manifest
    return Inspection(
        content.path,
        _make_title(content),
        tuple(_list_files(content)),
        tuple(variables),
        tuple(_describe_program(name, program) for name, program in content.programs.items()),
        None if found is None else found.library,
        None if found is None else found.time,
        tuple(content.unnamed),
        content.left_out,
    )


def _list_files(content: Content) -> Iterator[FileFacts]:
    """Yield the files. An unreadable file that a program or the manifest needs gets a problem."""
    needed = {one.name for program in content.programs.values() for one in list_persistables(program)}
    needed |= set() if content.manifest is None else content.manifest.files.keys()
    for file in content.files:
        if file.kind == "other" and file.problem is None and file.name in needed:
            what, advice = file.explain()
            file = file._replace(title="a file that cannot be read", problem=what, hint=advice or None)
        yield file


def array_of(value: Value) -> Array:
    """Return the elements of a value as an array."""
    array = value.held_array if isinstance(value, LoDTensor | SelectedRows) else value
    assert array is not None
    return array


def numbers_of(value: Value, dtype: VarType) -> Array:
    """Return the elements of a value as numbers: bfloat16, which numpy lacks, as float32."""
    array = array_of(value)
    return widen_bfloat16(array) if dtype == VarType.BF16 else array


_ACCUMULATORS = (
    "_moment_0", "_moment1_0", "_moment2_0", "_velocity_0", "_inf_norm_0", "_squared_0", "_linear_0",
    "_mean_square_0", "_mean_grad_0", "_momentum_0", "__avg_squared_grad_0", "__avg_squared_update_0",
    "_beta1_pow_acc_0", "_beta2_pow_acc_0", "_slow_0", "_ema_0",
)  # fmt: skip


def guess_role(name: str) -> str:
    """Guess the role of a variable in a network of Fluid from its name.

    >>> [guess_role(name) for name in ("fc_0.w_0", "fc_0.w_0_moment1_0", "learning_rate_0")]
    ['parameter', 'optimizer state', 'learning rate']
    """
    last = name.rpartition("/")[2]  # of a file below the directory
    if last.startswith("learning_rate_"):
        return "learning rate"
    if last.endswith(_ACCUMULATORS):
        return "optimizer state"
    return "counter" if last.startswith("@") else "parameter"


def _describe(content: Content, held: Held, *, statistics: bool, histogram: bool) -> VariableFacts:
    entry = held.entry
    summary = problem = bins = sample = None
    if statistics:
        try:
            array = numbers_of(content.read(held), entry.dtype)
            summary = summarize(array) if array.dtype.kind in "fiub" else None
            if histogram and summary is not None:
                bins, sample = count_bins(array, summary), take_sample(array)
        except (PaddlelikeError, OSError, MemoryError) as error:
            problem = getattr(error, "message", None) or str(error) or "it is larger than the memory"
    return VariableFacts(
        held.name,
        held.file,
        guess_role(held.name),
        entry.dtype.name,
        tuple(entry.shape),
        entry.nbytes,
        len(entry.lod),
        entry.height,
        summary,
        problem,
        bins,
        sample,
    )


def _describe_program(name: str, program: Program) -> ProgramFacts:
    operators = [op for block in program.blocks for op in block.ops]
    return ProgramFacts(
        name,
        program._version,
        len(program.blocks),
        dict(Counter(op.type for op in operators).most_common()),
        tuple(one for op in operators if op.type == "feed" for one in op.output_arg_names),
        tuple(one for op in operators if op.type == "fetch" for one in op.input_arg_names),
        tuple(sorted(one.name for one in list_persistables(program))),
    )


def _make_title(content: Content) -> str:
    """Return a title for the whole path."""
    kinds = Counter(file.kind for file in content.files)
    if content.is_file:
        return content.files[0].title
    if not content.files:
        return "an empty directory"
    if kinds[ServerTables.name]:
        return ServerTables.title
    inner = sorted({file.name.split("/")[0] for file in content.files if "/" in file.name})
    if inner and all("/" in file.name for file in content.files):
        more = ", ..." if len(inner) > 5 else ""
        return f"a directory of {format_count(len(inner), 'directory')}: {', '.join(inner[:5])}{more}"
    if kinds["program"] and (kinds["combined"] or kinds["variable"]):
        parts = "a combined file of its parameters" if kinds["combined"] else "a file for each parameter"
        operators = [op for one in content.programs.values() for block in one.blocks for op in block.ops]
        is_exported = any(op.type == "fetch" for op in operators) or not operators
        return f"a model for prediction: a program and {parts}" if is_exported else f"a program and {parts}"
    if kinds["state"]:
        return "the files of fluid.save"
    if kinds["link"]:
        return "a directory of Paddle variables, some in chains of deltas"
    if kinds["variable"]:
        return "a directory of Paddle variables"
    if kinds["combined"]:
        return "a directory with a combined file of Paddle variables"
    rest = [file for file in content.files if file.kind != "manifest"]
    return rest[0].title if len({file.title for file in rest}) == 1 else "a directory of files"
