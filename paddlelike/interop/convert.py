"""Convert tensors from any known file format to any other, exactly and in little memory."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, NoReturn, cast

from paddlelike.core import TENSOR_DTYPES, Array, LoDTensor
from paddlelike.errors import FormatError, LoadError, MissingFileError, SaveError
from paddlelike.formats import registry
from paddlelike.formats.base import Capabilities, FileFormat, FolderFormat, Value, Values, get_array
from paddlelike.formats.entry import Entry, LeftOut, Listing, check_entries, list_left_out
from paddlelike.formats.explain import explain, explain_names
from paddlelike.formats.paddle.server_tables import ServerTables
from paddlelike.formats.sources import Buffer, Folder
from paddlelike.formats.state.fluid_save import PrefixedFolder
from paddlelike.formats.state.format import StateFile
from paddlelike.formats.state.pickle_writer import encode_item
from paddlelike.foundation.amounts import format_count, format_size
from paddlelike.foundation.display import Displayed
from paddlelike.foundation.progress import show_progress
from paddlelike.interop.content import (
    Content,
    Held,
    make_missing_error,
    open_content,
)
from paddlelike.interop.damage import refuse_damage
from paddlelike.interop.renaming import Recipe, arrange
from paddlelike.interop.spool import Spool
from paddlelike.io.deltas.chain import FOLDER
from paddlelike.io.load import model_files
from paddlelike.io.rules.rules import Rules
from paddlelike.storage.local.transaction import write_all
from paddlelike.storage.location import locate, locate_prefix
from paddlelike.storage.options import Durability, SaveOptions
from paddlelike.storage.problems import is_directory, is_there, raises_own_errors

if TYPE_CHECKING:
    from paddlelike.core import DtypeLike
    from paddlelike.interop.onnx.models import ModelReport

Path = str | os.PathLike[str]
Rename = Mapping[str, str] | Callable[[str], str]
AnyFormat = FileFormat | FolderFormat

_HEAD: Final = 1024
_LISTED: Final = 20
_NAMED: Final = 200  # in a report
_UNKNOWN: Final = "its first bytes are not those of a known kind of file"
_SHARED: Final = ".model"  # the suffix of CNTK's files and of DyNet's, whose names begin with a slash


@dataclass(frozen=True, repr=False)
class ConvertReport(Displayed):
    """The result of a conversion; prints as one line.

    Attributes
    ----------
    names
        The names in the target, in its order of writing.
    nbytes
        The bytes of the elements.
    without_lod
        The names whose LoD was left out.
    left_out
        Contents of the source that are not in the target: numbers and texts in a pickle, arrays of types that
        no variable has, and the like.
    """

    source: str
    source_format: str
    target: str
    target_format: str
    names: tuple[str, ...]
    nbytes: int
    seconds: float
    without_lod: tuple[str, ...] = ()
    left_out: tuple[LeftOut, ...] = ()

    def __repr__(self) -> str:
        return f"<ConvertReport: {str(self).partition(chr(10))[0]}>"

    def __str__(self) -> str:
        line = (
            f"converted {format_count(len(self.names), 'variable')}, {format_size(self.nbytes)}, "
            f"in {self.seconds:.2f} s: "
            f"{self.source} ({self.source_format}) -> {self.target} ({self.target_format})"
        )
        for label, names in (
            ("their LoD was left out", self.without_lod),
            ("left out", [str(one) for one in sorted(self.left_out, key=lambda one: one.is_plain)]),
        ):
            if names:
                more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
                line += f"\n  {label}: {', '.join(names[:_NAMED])}{more}"
        return line

    def __bool__(self) -> bool:
        """Whether all values of the source are in the target."""
        return not any(one.is_value for one in self.left_out)


@raises_own_errors
def convert(
    src: Path,
    dst: Path,
    format: str | AnyFormat | None = None,  # noqa: A002  (the field's word)
    rename: Rename | None = None,
    dtype: DtypeLike | None = None,
    *,
    rules: Iterable[Rules | Recipe] | Rules | Recipe | None = None,
    names: Iterable[str] | None = None,
    overwrite: bool = False,
    verify: bool = True,
    drop_lod: bool = False,
    progress: Callable[[int, int], None] | bool | None = None,
    durability: Durability = SaveOptions.durability,
) -> ConvertReport | ModelReport:
    """Convert a file or directory of tensors to another format, or a model to another system's.

    A model is a program with its values. It becomes a model of ONNX, Paddle 2.x or Paddle 3 if ``dst`` ends
    in ``.onnx``, ``.pdmodel`` or ``.json`` and ``format`` is None. A ``.pdmodel``, ``.json`` or ``.onnx``
    becomes a directory of Fluid 1.8 if ``dst`` has no suffix; so does a directory with one ``.pdmodel`` or
    ``.json``. Only ``overwrite``, ``verify`` and ``durability`` of the arguments below apply to models;
    ``rename``, ``dtype`` and ``names`` are refused. The rest of this text is about files of values.

    Values in the dicts and lists of a pickle are named by their paths, ``model/linear_0.w_0``; ``rename`` and
    ``rules`` take these names. Values that the target cannot hold are listed in ``left_out`` of the report,
    which is then false. They are numbers, texts and objects in a pickle, and arrays of types that variables
    cannot have. A pickle as target keeps plain values, such as the state of a schedule.

    Elements are copied bit for bit. Memory stays below the largest variable plus a constant: elements that
    have the same bytes in the source as in memory are mapped, others go through a temporary file. But files
    of DyNet and of CNTK are read as a whole, to check that they are complete.

    Parameters
    ----------
    src
        A file, a directory, or the prefix of ``fluid.save``. Its format is recognized.
    dst
        The path of the result, which is written as a whole or not at all.
    format
        The target's format, a name of ``paddlelike.formats.registry.all_formats()``: "directory", "combined",
        "state", "npz", "safetensors", "hdf5", "torch", "dynet", "cntk", ... None to choose by the suffix of
        ``dst``: without a suffix, a directory with one file per variable; ".model" is DyNet's if all names
        begin with "/", else CNTK's. "server_tables" are growing tables as Paddle 2's servers load them. Or a
        format object with options of its own: ``Safetensors(metadata=(("made_by", "me"),))``,
        ``Hdf5(attributes=(("epoch", 3),))``.
    rename
        New names: a function, or a mapping; names that it lacks stay as they are.
    dtype
        Convert floating-point elements to this type; None for exact copies.
    rules
        :class:`~paddlelike.io.Rules` of renaming, skipping, transposing, joining and cutting into equal
        parts, or several of them, applied one after another. Or functions that return such rules for the
        names in the source. ``paddlelike.interop.recipes`` has rules for PyTorch's names.
    names
        The variables of a combined file, which stores no names, in the order of the file: sorted by name.
    overwrite
        Allow ``dst`` to exist.
    verify
        Whether to compare the files with their manifest first, if there is one. False also copies damaged
        values.
    drop_lod
        Leave out the LoD of variables if the target's format has none; the report names these variables.
    progress
        A function that is called now and then with the bytes done and the total. With None, a line on
        standard error shows them if it is a terminal and the call takes over a second; with False, nothing
        does.
    durability
        ``"atomic"``: after a power cut, the new files or the earlier ones are there, whole; ``"process"``:
        this holds only when a process dies; ``"power"``: the new files are on the disk when the call
        returns.

    Returns
    -------
    ConvertReport or ModelReport
        A report of what was written and left out, a ModelReport for models; true when nothing was left out.

    Raises
    ------
    FormatError
        The source is damaged or of no known format, or the target format cannot hold some variables: the
        error lists them. Nothing is written.
    LoadError
        ``names`` or ``rules`` do not fit, a model is converted with ``rename``, ``dtype`` or ``names``, two
        variables would get the same name, or a file differs from its manifest.
    SaveError
        ``dst`` exists, or cannot be written. It is unchanged.

    >>> import tempfile, numpy as np, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> np.savez(folder / "model.npz", w=np.ones((2, 3), "float32"))
    >>> report = convert(folder / "model.npz", folder / "model.safetensors")
    >>> report.target_format, report.names
    ('safetensors', ('w',))
    """
    begin = time.perf_counter()
    options = SaveOptions(durability=durability)
    source, target = os.fspath(src), os.fspath(dst)
    prefixed = find_prefixed(source)
    if prefixed is not None and prefixed.program is not None:
        source = os.path.join(prefixed.directory, prefixed.program)
    if format is None and not rules:
        from paddlelike.interop.model_versions import convert_arrangement, convert_onnx, is_arrangement
        from paddlelike.interop.onnx.models import is_model_conversion

        is_model = is_arrangement(source, target) or is_model_conversion(source, target)
        given = {"rename": rename, "dtype": dtype, "names": names}
        if is_model and (unused := [name for name, value in given.items() if value is not None]):
            raise LoadError(
                f"{source} is converted as a model: {' and '.join(unused)} cannot be applied",
                hint="to convert the values alone, pass a format, for example format='directory'",
            )
        if is_arrangement(source, target):
            return convert_arrangement(
                source, target, overwrite=overwrite, verify=verify, durability=durability
            )
        if is_model_conversion(source, target):
            return convert_onnx(source, target, overwrite=overwrite, verify=verify, durability=durability)
    target_format = _find_target(target, format)
    if not overwrite and is_there(target):
        raise SaveError(f"{target} exists", hint="remove it, choose another path, or pass overwrite=True")
    refuse_damage(source, verify=verify)
    if is_directory(os.path.join(source, FOLDER)):
        raise LoadError(
            f"{source} holds variables in chains of deltas ({FOLDER})",
            hint=f"`paddlelike compact {source}` writes them whole; or save it without delta=",
        )
    with ExitStack() as stack:
        source_format, opened, listed = _open_named(source, names, stack)
        entries, left_out = _split_foreign(listed)
        if (
            not (entries or left_out)
            and not source.endswith((".pdparams", ".pdopt"))
            and source_format.name != "fluid_save"
        ):
            raise FormatError(f"{source} is {source_format.title}, and holds no arrays")
        renamed = _rename([entry.name for entry in entries], rename)
        if format is None and target.endswith(_SHARED) and renamed and all(one[:1] == "/" for one in renamed):
            target_format = registry.find("dynet")
        spool = stack.enter_context(Spool())
        values = {
            new: spool.convert(spool.value(source_format, opened, entry), dtype)
            for new, entry in zip(renamed, entries, strict=True)
        }
        for each in (rules,) if isinstance(rules, Rules) or callable(rules) else rules or ():
            values = arrange(values, each, spool.store)
        without_lod: list[str] = []
        if drop_lod and not target_format.holds.lod:
            without_lod = [new for new, one in values.items() if isinstance(one, LoDTensor) and one.lod()]
            values |= {new: LoDTensor(get_array(values[new])) for new in without_lod}
        target_format, left_out = _keep_plain(target_format, listed, left_out, values)
        if left_out and not values:
            raise LoadError(
                f"{source} holds no value that a variable can hold; it holds "
                f"{', '.join(map(str, left_out[:_LISTED]))}"
            )
        if target_format.holds.names is False:
            values = dict(sorted(values.items()))
        written = target_format.write(values)  # checks everything before the first byte
        total = sum(get_array(value).nbytes for value in values.values())
        wanted = progress is None or progress is True
        stack.enter_context(show_progress(f"{source} -> {target}" if wanted else None, (total,)))
        report_bytes = _Progress(progress if callable(progress) else None, total)
        _write(target, target_format, written, spool, report_bytes, options)
    return ConvertReport(
        source,
        source_format.name,
        target,
        target_format.name,
        tuple(values),
        total,
        time.perf_counter() - begin,
        tuple(without_lod),
        tuple(left_out),
    )


def find_prefixed(path: str) -> model_files.Model | None:
    """Return the model of Paddle 2 or 3 for a prefix or program file; None for other paths."""
    is_other = os.path.isfile(path) and not path.endswith(model_files.PROGRAMS)
    return None if is_other or os.path.isdir(path) else model_files.find_model(path)


def _split_foreign(listed: list[Entry]) -> tuple[list[Entry], list[LeftOut]]:
    """Return the entries that variables can hold, and the other contents of the source."""
    known = [entry for entry in listed if entry.dtype in TENSOR_DTYPES]
    foreign = [entry for entry in listed if entry.dtype not in TENSOR_DTYPES]
    others = [LeftOut(one.name, f"an array of {one.dtype.name.lower()}") for one in foreign]
    return known, [*list_left_out(listed), *others]


def _keep_plain(
    target: AnyFormat, listed: list[Entry], left_out: list[LeftOut], values: Mapping[str, Value]
) -> tuple[AnyFormat, list[LeftOut]]:
    """Make a target that is a pickle keep the plain values of the source; return the values left out."""
    if not isinstance(target, StateFile) or not isinstance(listed, Listing):
        return target, left_out
    kept = {}
    for name, value in listed.plain.items():
        if name in values:
            continue
        with suppress(SaveError):  # a set, or bytes
            encode_item(value)
            kept[name] = value
    inside = tuple(f"{name}/" for name in kept)
    rest = [one for one in left_out if one.name not in kept and not one.name.startswith(inside)]
    return replace(target, plain=(*target.plain, *kept.items())), rest


# The source


def _open_source(path: str, stack: ExitStack) -> tuple[AnyFormat, Any]:
    """Return the format of a path, and the file or folder opened. Raises when there is none."""
    where = locate(path)
    if where.exists():
        found = ServerTables() if ServerTables().sniff(where) else registry.sniff(where)
        if found is None:
            with open_content(path) as content:
                raise FormatError(
                    f"{path} is a directory of no known format: no file in it is a Paddle variable",
                    hint=content.explain_unread(),
                )
        return found, where
    folder, name = locate_prefix(path)
    if folder.has(name):
        file = stack.enter_context(folder.open_file(name))
        head = bytes(file.read_at(0, _HEAD))
        known = registry.sniff_head(head, file.size)
        if known is not None:
            return known, file
        what = explain(head, file.size) or explain_names([name]) or _UNKNOWN
        raise FormatError(f"the format of {path} is not known: {what}")
    if not folder.has(f"{name}.pdparams"):
        raise make_missing_error(path)
    return registry.find("fluid_save"), PrefixedFolder(folder, name)


class _Mixed(FolderFormat):
    """All values of a directory, whatever the formats of its files."""

    title = "a directory of several files"
    holds = Capabilities(lod=True, selected_rows=True)

    def __init__(self, content: Content) -> None:
        self._content = content
        self.name = ", ".join(sorted({one.format.name for one in content.variables}))  # type: ignore[misc]

    def sniff(self, folder: Folder) -> bool:  # noqa: ARG002
        return True

    def entries(self, source: Folder) -> list[Entry]:  # noqa: ARG002
        held = self._content.variables
        named = [one.entry._replace(name=one.name, file=one.file, payload=one) for one in held]
        return check_entries(
            named,
            sum(one.size for one in self._content.files),
            self._content.list_left_out({one.name for one in held}),
        )

    def read(self, source: Folder, entry: Entry, *, into: Array | None = None) -> Value:  # noqa: ARG002
        return self._content.read(cast("Held", entry.payload))

    def write(self, values: Values) -> NoReturn:
        raise SaveError("a directory of several formats is only read")


def _open_named(
    source: str, names: Iterable[str] | None, stack: ExitStack
) -> tuple[AnyFormat, Any, list[Entry]]:
    """Return the format, the opened source and its entries; a program beside a combined file names the
    values.
    """
    model = find_prefixed(source)
    if model is not None and model.values is not None:
        source = os.path.join(model.directory, model.values)
    try:
        form, opened = _open_source(source, stack)
        return form, opened, _name_entries(form.entries(opened), form, source, names)
    except MissingFileError:
        raise
    except (FormatError, LoadError) as error:
        content = stack.enter_context(open_content(source))
        damaged = any(one.problem for one in content.files)
        if names is not None or content.unnamed or damaged or not content.variables:
            raise
        if content.files[0].kind == "variable" and source.endswith(model_files.VALUES):  # of which name?
            raise
        for one in content.files:
            if one.kind == "other" and not one.is_beside:
                raise FormatError(f"{one.name} of {source} cannot be read: {one.title}") from error
        mixed = _Mixed(content)
        return mixed, content.where, mixed.entries(content.where)


def _name_entries(
    entries: list[Entry], source_format: AnyFormat, source: str, names: Iterable[str] | None
) -> list[Entry]:
    """Return the entries with names, which the caller gives where the format stores none."""
    if source_format.holds.names and names is None:
        for entry in (entry for entry in entries if entry.surplus):
            raise LoadError(
                f"{entry.file} in {source} holds {entry.surplus} bytes after its variable: a combined file?",
                hint="then convert the file alone, with the names=[...] of its variables",
            )
        return entries
    if source_format.holds.names:
        raise LoadError(f"{source} is {source_format.title}, with names: names= is for combined files")
    if names is None:
        raise LoadError(
            f"{source} is {source_format.title}, which stores no names",
            hint="pass names=[...], for example [v.name for v in program.list_vars() if v.persistable]",
        )
    given = sorted(names)
    if len(given) != len(entries):
        raise LoadError(f"{source} holds {len(entries)} variables, names= has {len(given)}")
    return [entry._replace(name=name) for name, entry in zip(given, entries, strict=True)]


def _rename(names: list[str], rename: Rename | None) -> list[str]:
    if rename is None:
        return names
    new = [rename(name) if callable(rename) else rename.get(name, name) for name in names]
    doubled = sorted({name for name in new if new.count(name) > 1}) if len(set(new)) < len(new) else []
    if doubled:
        raise LoadError(f"rename gives two variables the name {', '.join(map(repr, doubled[:_LISTED]))}")
    if not callable(rename):
        unknown = sorted(set(rename) - set(names))
        if unknown:
            raise LoadError(
                f"rename has names that the source does not: {', '.join(map(repr, unknown[:_LISTED]))}"
            )
    return new


# The target


def _find_target(path: str, wanted: str | AnyFormat | None) -> AnyFormat:
    """Return the target's format. Raises FormatError for an unknown name or suffix."""
    if isinstance(wanted, str):
        return ServerTables() if wanted == ServerTables.name else registry.find(wanted)
    if wanted is not None:
        if not isinstance(wanted, AnyFormat):
            raise FormatError(f"format={wanted!r:.80} is neither the name of a format nor a format")
        return wanted
    suffix = os.path.splitext(path)[1].lower()
    if not suffix:
        return registry.find("directory")
    for known in registry.all_formats().values():
        if suffix in known.suffixes:
            return known
    suffixes = sorted({one for known in registry.all_formats().values() for one in known.suffixes})
    raise FormatError(
        f"no format has the suffix {suffix!r}", hint=f"pass format=; known suffixes: {', '.join(suffixes)}"
    )


def _write(
    path: str, target: AnyFormat, written: Any, spool: Spool, progress: _Progress, options: SaveOptions
) -> None:
    files = {"": written} if isinstance(target, FileFormat) else dict(written)
    if isinstance(target, FileFormat) or target.name == "fluid_save":  # files whose names begin with the path
        directory, prefix = os.path.split(path)
        named = {prefix + name: spool.release(progress.count(buffers)) for name, buffers in files.items()}
        write_all(directory or ".", named, durability=options.durability)
        return
    where = locate(path)
    if where.exists():
        target.check_room(where, files)
    transaction = where.begin(options)
    for name, buffers in files.items():
        transaction.add(name, spool.release(progress.count(buffers)))
    transaction.commit()


class _Progress:
    """Counts the written bytes and reports them to the caller."""

    def __init__(self, report: Callable[[int, int], None] | None, total: int) -> None:
        self._report = report
        self._total = total
        self._done = 0

    def count(self, buffers: Iterable[Buffer]) -> Iterator[Buffer]:
        for buffer in buffers:
            yield buffer
            self._done += memoryview(buffer).nbytes
            if self._report is not None:
                self._report(min(self._done, self._total), self._total)
