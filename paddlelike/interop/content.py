"""The contents of a path: its files, the variables and programs in them, and how to read the values."""

from __future__ import annotations

import os
from collections.abc import Container
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from paddlelike.core import Scope, VarType
from paddlelike.errors import FormatError, LoadError, MissingFileError, PaddlelikeError, StorageError
from paddlelike.formats import registry
from paddlelike.formats.base import SNIFF_BYTES, FileFormat, FolderFormat, Value
from paddlelike.formats.entry import Entry, LeftOut, list_left_out
from paddlelike.formats.explain import REMOVE, explain, explain_name, explain_names
from paddlelike.formats.paddle.combined import CombinedFile
from paddlelike.formats.paddle.directory import VariableDirectory
from paddlelike.formats.paddle.recognize import find_dense_part, is_program, is_selected_rows
from paddlelike.formats.paddle.server_tables import ServerTables
from paddlelike.formats.state.sharded import PaddleDistributed
from paddlelike.foundation.amounts import format_count
from paddlelike.framework import Program
from paddlelike.framework.codec.decode import decode_program
from paddlelike.io.asynchronous import wait_for_pending
from paddlelike.io.contents.interface import Held as Looked, Want
from paddlelike.io.deltas.chain import Broken, Chain, find_chains, parse_path
from paddlelike.io.deltas.contents import open_directory
from paddlelike.io.load.misplaced import explain_prefix
from paddlelike.io.load.model_files import PROGRAMS, find_model
from paddlelike.storage.location import Location, find_near_file, locate, locate_prefix
from paddlelike.storage.manifest import RESTORE, Manifest
from paddlelike.storage.names import MANIFEST

if TYPE_CHECKING:
    from paddlelike.storage.interfaces import File

_LARGEST_MODEL: Final = 1 << 28  # bytes of an ONNX file up to which its program is read
_NOTES: Final = ".pdiparams.info"
_NO_ARRAYS: Final = ", which holds no arrays"
_STATES: Final = (
    ".pdparams",
    ".pdopt",
)  # of fluid.save, which writes them for programs without variables, too
_LARGEST_PROGRAM: Final = 1 << 31  # bytes: what protobuf reads


class FileFacts(NamedTuple):
    """The kind and content of one file.

    Attributes
    ----------
    kind
        "variable", "link" (of a chain of deltas), "combined", "program", "manifest", the name of another
        format, or "other".
    problem, hint
        Why it cannot be read, and the next step if one is known. None means that it can be read.
    """

    name: str
    kind: str
    title: str
    size: int
    problem: str | None = None
    hint: str | None = None

    @property
    def is_beside(self) -> bool:
        """Whether the file is a text or a picture, or holds no arrays, so that no value is left out."""
        return self.problem is None and (REMOVE in self.title or self.title.endswith(_NO_ARRAYS))

    def explain(self) -> tuple[str, str]:
        """Return why a file cannot be read, and the next step ("" if unknown)."""
        if self.problem is not None:
            return self.problem, self.hint or "copy or save it again"
        what, _, advice = self.title.removeprefix("this is ").partition(": ")
        return what, advice


class _ChainedDirectory(VariableDirectory):
    """A directory in which changed rows lie in separate files."""

    def read(self, source: Any, entry: Entry, *, into: Any = None) -> Value:
        contents = open_directory(source, only=[entry.name])
        held = contents.look(entry.name, entry.kind)
        if not isinstance(held, Looked):
            raise FormatError(f"the chain of {entry.name!r} was replaced while it was read")
        return contents.read([Want(held, None, into)]).values[0]


class Held(NamedTuple):
    """A variable in a file."""

    name: str
    entry: Entry
    file: str
    format: FileFormat | FolderFormat


class Content:
    """Files that are being examined; a context manager that closes them.

    Attributes
    ----------
    is_file, is_directory
        Whether the path is one file, or a directory; else it is a prefix of files.
    programs
        The programs by file name. They are decoded and never run.
    unnamed
        Combined files without known names; their values are numbered.
    left_out
        The contents that cannot be variables, by file.
    """

    def __init__(
        self, path: str, where: Location, *, is_file: bool = False, is_directory: bool = False
    ) -> None:
        self.path = path
        self.is_directory = is_directory
        self.where = where
        self.is_file = is_file
        self.files: list[FileFacts] = []
        self.variables: list[Held] = []
        self.programs: dict[str, Program] = {}
        self.manifest: Manifest | None = where.manifest()
        self._persistables: dict[str, list[Any]] = {}  # of each program, by name
        self.unnamed: list[str] = []
        self.left_out: dict[str, tuple[LeftOut, ...]] = {}
        self._stack = ExitStack()
        self._opened: dict[str, Any] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def read(self, held: Held) -> Value:
        """Read a value.

        Raises
        ------
        FormatError, StorageError
            Its file is damaged, or cannot be read.
        """
        if isinstance(held.format, FolderFormat):
            return held.format.read(self.where, held.entry)
        if held.file not in self._opened:
            self._opened[held.file] = self._stack.enter_context(self.where.open_file(held.file))
        return held.format.read(self._opened[held.file], held.entry)

    @property
    def is_empty(self) -> bool:
        """Whether no file holds a value or a program that can be read."""
        return not (self.variables or self.programs)

    def list_unread(self) -> dict[str, str]:
        """Return the facts of each file that could not be read, by its name."""
        return {one.name: one.problem or one.title for one in self.files if one.kind == "other"}

    def index_variables(self) -> dict[str, Held]:
        """Return the variables by name.

        Raises
        ------
        LoadError
            Two files hold one of the same name.
        """
        found: dict[str, Held] = {}
        for one in self.variables:
            if (other := found.setdefault(one.name, one)) is not one:
                raise LoadError(
                    f"{other.file} and {one.file} hold {one.name!r}",
                    hint=f"take one of them out of {self.path}, or convert the file alone",
                )
        return found

    def list_left_out(self, wanted: Container[str], program: str | None = None) -> tuple[LeftOut, ...]:
        """Return everything in a directory except a program and the variables that it needs.

        Parameters
        ----------
        program
            The name of its file. None means the first one.
        """
        if not self.is_directory:
            return ()
        used = program or next(iter(self.programs), None)
        others = {one.name: f"a variable in {one.file}" for one in self.variables if one.name not in wanted}
        others |= {name: "another program" for name in self.programs if name != used}
        others |= {one.name: one.explain()[0] for one in self.files if one.kind == "other"}
        inner = [one for some in self.left_out.values() for one in some]
        return (*inner, *(LeftOut(name, what) for name, what in others.items()))

    def explain_unread(self) -> str | None:
        """Return a description of the files that could not be read, with advice, or None if all were read."""
        unread = self.list_unread()
        if self.is_file:
            return next(iter(unread.values()), None)
        if not self.files:
            return "the directory is empty: its save was interrupted or never made; name another one"
        texts = [f"{name}: {text}" for name, text in list(unread.items())[:3]]
        more = f"; and {len(unread) - 3} more files" if len(unread) > 3 else ""
        return "; ".join(texts) + more or None

    def get_program(self) -> Program:
        """Return the program, if there is exactly one.

        Raises
        ------
        LoadError
            There is none, or there are several.
        """
        if not self.programs:
            unread = self.explain_unread()
            raise LoadError(
                f"{self.path} holds no program",
                hint=unread or "name a __model__, .pdmodel or .json file, or a directory with one",
            )
        if len(self.programs) > 1:
            names = ", ".join(os.path.join(self.path, name) for name in self.programs)
            raise LoadError(f"{self.path} holds {len(self.programs)} programs", hint=f"name one of {names}")
        return next(iter(self.programs.values()))

    def add(self, name: str) -> None:
        """Examine a file."""
        try:
            name.encode()
        except UnicodeEncodeError:
            self.files.append(FileFacts(name, "other", "a file whose name is not UTF-8: rename it", 0))
            return
        try:
            file = self.where.open_file(name)
        except (StorageError, OSError) as error:
            if self.is_file:
                raise
            why = getattr(error, "message", None) or str(error)
            hint = getattr(error, "hint", None)
            self.files.append(FileFacts(name, "other", "a file that cannot be read", 0, why, hint))
            return
        with file:
            size, count = file.size, len(self.variables)
            try:
                kind, title = self._add_contents(name, file, bytes(file.read_at(0, SNIFF_BYTES)))
                if kind not in ("program", "manifest") and name not in self.programs:
                    empty = len(self.variables) == count and not name.endswith(_STATES)
                    kind, title = ("other", f"{title}{_NO_ARRAYS}") if empty else (kind, title)
                self.files.append(FileFacts(name, kind, title, size))
            except _UnknownError as unknown:
                self.files.append(FileFacts(name, "other", str(unknown) or explain_name(name), size))
            except (FormatError, MemoryError) as error:
                why = getattr(error, "message", None) or "it is larger than the memory"
                part = explain_names([os.path.basename(name)]) if self.is_file else None
                title = part or "a file that cannot be read"
                hint = None if part else getattr(error, "hint", None)
                self.files.append(FileFacts(name, "other", title, size, None if part else why, hint))

    def add_folder(self, form: FolderFormat, names: list[str]) -> None:
        """Examine all files of a directory that together are one item of a format."""
        problem = None
        try:
            entries = form.entries(self.where)
        except FormatError as error:  # of one file, where the message names it
            problem = error.message
            named = [name for name in names if name in problem] or names
        else:
            self.variables += [Held(entry.name, entry, entry.file, form) for entry in entries]
            if left_out := list_left_out(entries):
                self.left_out["."] = left_out
        for name in names:
            with self.where.open_file(name) as file:
                why = problem if problem is not None and name in named else None
                self.files.append(FileFacts(name, form.name, form.title, file.size, why))

    def name_foreign(self, names: list[str]) -> None:
        """Treat a directory of another system as one item, unless a file in it was read."""
        foreign = explain_names(names)
        pieces = [held for held in self.variables if not held.file.endswith(".distcp")]
        if foreign is None or pieces or self.programs:
            return
        self.variables, self.left_out = [], {}
        name = os.path.basename(os.path.abspath(self.path))
        self.files = [FileFacts(name, "other", foreign, sum(file.size for file in self.files))]

    def add_chain(self, name: str, chain: Chain | Broken) -> None:
        """Examine a chain of deltas."""
        if isinstance(chain, Broken):
            self.files.append(FileFacts(name, "other", "a broken chain of deltas", 0, *chain))
            return
        path = chain.path(0)
        try:
            with self.where.open_file(path) as file:
                entry = VariableDirectory().read_entry(name, file, chain.kind)
        except (FormatError, StorageError) as error:
            size = chain.records[0].size
            self.files.append(FileFacts(path, "other", "link 0 of a chain", size, error.message, RESTORE))
            return
        if entry.height is not None:  # after all links
            row = entry.nbytes // max(entry.shape[0], 1)
            entry = entry._replace(shape=chain.shape, nbytes=row * chain.shape[0])
        self.variables.append(Held(name, entry, path, _ChainedDirectory()))
        for at, (path, record) in enumerate(zip(chain.paths, chain.records, strict=True)):
            rows = record.facts["shape"][0]
            title = (
                f"link {at} of {len(chain.records) - 1} of {name}, {rows} rows" if at else f"{name}, whole"
            )
            self.files.append(FileFacts(path, "link", title, record.size))

    def _add_contents(self, name: str, file: File, head: bytes) -> tuple[str, str]:
        """Add the contents of a file; return its kind and title."""
        if name.endswith(".pdmanifest"):
            return "manifest", "a manifest"
        if name.endswith(".meta") and self.where.has(name.removesuffix("meta") + "data"):
            return "manifest", "the classes of a pair of files of DyNet"
        if is_program(head):
            self.programs[name] = program = decode_program(file.read(_LARGEST_PROGRAM), trusted=True)
            count = sum(len(block.ops) for block in program.blocks)
            return "program", f"a program of {format_count(count, 'operator')}"
        known = registry.sniff_head(head, file.size)
        if known is None or isinstance(known, CombinedFile):
            return self._add_streams(name, file, head)
        entries = known.entries(file)
        self.variables += [Held(entry.name, entry, name, known) for entry in entries]
        if left_out := list_left_out(entries):
            self.left_out[name] = left_out
        if name.endswith(_NOTES):
            self.left_out[name] = tuple(one._replace(is_value=False) for one in left_out)
            return "manifest", "what paddle.jit.save notes of parameters"
        if known.name == "onnx":
            self._add_onnx(name, file)
        return known.name, known.title

    def _add_onnx(self, name: str, file: File) -> None:
        """Add the program of an ONNX model, if it can be imported."""
        from paddlelike.interop.onnx import import_onnx

        if file.size > _LARGEST_MODEL:
            return
        with suppress(PaddlelikeError):  # operators without a counterpart, or the extra is not installed
            self.programs[name] = import_onnx(bytes(file.read(_LARGEST_MODEL)), scope=Scope())[0]

    def _add_streams(self, name: str, file: File, head: bytes) -> tuple[str, str]:
        """Add the variables of a file of Paddle's streams."""
        if find_dense_part(head) is None and not is_selected_rows(head, file):
            raise _UnknownError(explain(head, file.size) or "")
        directory = VariableDirectory()
        entry = directory.read_entry(name, file)
        if not entry.surplus:
            alone = self._find_names(name, [entry])  # a combined file of one value
            if alone is None or self.where.has(alone[0]):
                self.variables.append(Held(name, entry, name, directory))
                return "variable", "a Paddle variable"
        combined = CombinedFile()
        entries = combined.entries(file)
        names = self._find_names(name, entries)
        if names is None:
            self.unnamed.append(name)
            names = [f"{name}[{index}]" for index in range(len(entries))]
        for each, one in zip(names, entries, strict=True):
            self.variables.append(Held(each, one, name, combined))
        return "combined", combined.title

    def _find_names(self, name: str, entries: list[Entry]) -> list[str] | None:
        """Return the names of the values of a combined file, from the manifest or a program; None if both
        lack them.
        """
        facts = [(entry.dtype, tuple(entry.shape)) for entry in entries]
        record = None if self.manifest is None else self.manifest.files.get(name)
        listed = record.facts.get("variables") if record is not None else None
        try:
            saved = [(str(one), VarType[dtype], tuple(shape)) for one, dtype, shape in listed or ()]
        except (KeyError, TypeError, ValueError):
            saved = []
        if saved and [one[1:] for one in saved] == facts:
            return [one[0] for one in saved]
        for key, program in self.programs.items():
            if key not in self._persistables:  # listed once, not for each file
                self._persistables[key] = sorted(list_persistables(program), key=lambda one: one.name)
            wanted = self._persistables[key]
            if len(wanted) == len(facts) and [(one.dtype, one.shape) for one in wanted] == facts:
                return [one.name for one in wanted]
        return None


class _UnknownError(Exception):
    """Raised for a file of unknown format; the text says what it is, if that is known."""


def list_persistables(program: Program) -> list[Any]:
    """Return the saved variables of a program: persistables except feed and fetch lists."""
    kinds = (VarType.LOD_TENSOR, VarType.SELECTED_ROWS)
    return [one for one in program.list_vars() if one.persistable and one.type in kinds]


def open_content(path: str | os.PathLike[str]) -> Content:
    """Open a directory, a file, the files of ``fluid.save`` under a prefix, or a model of Paddle 2 or 3.

    The path of the program of a Paddle 2 or 3 model also gives access to the model's values.

    Raises
    ------
    MissingFileError
        The path does not exist.
    StorageError
        The directory cannot be listed.
    """
    wait_for_pending()
    text = os.fspath(path)
    where = locate(text)
    is_directory = where.exists()
    if is_directory:
        content = Content(text, where, is_directory=True)
        names = where.list_names()
    else:
        model = find_model(text) if text.endswith(PROGRAMS) else None
        whole = model is not None and model.values is not None
        where, name = locate_prefix(os.path.splitext(text)[0] if whole else text)
        is_file = not whole and bool(name) and where.has(name)
        names = [name] if is_file else _list_under(where, name, os.path.splitext(text)[1] if whole else "")
        if not names:
            raise make_missing_error(text)
        content = Content(text, where, is_file=is_file)
        if is_file:  # other files of its directory may name its values
            names = [*_find_companions(where, name), name]
            content.manifest = locate(os.path.dirname(text) or ".").manifest()
    try:
        records = None if content.manifest is None else content.manifest.files
        chains = find_chains(records, names) if is_directory else {}
        for form in (ServerTables(), PaddleDistributed()) if is_directory else ():
            if names and form.sniff(where):
                content.add_folder(form, [name for name in names if name != MANIFEST])
                names = []
        for name in sorted(names, key=_order):
            if not is_directory or parse_path(name) is None:
                content.add(name)
        for name, chain in chains.items():
            content.add_chain(name, chain)
        if is_directory:
            content.name_foreign(names)
    except BaseException:
        content.__exit__()
        raise
    if content.is_file:
        content.files = content.files[-1:]
        content.variables = [held for held in content.variables if held.file == names[-1]]
        content.programs = {k: v for k, v in content.programs.items() if k == names[-1]}
        content.left_out = {k: v for k, v in content.left_out.items() if k == names[-1]}
    return content


def make_missing_error(text: str) -> MissingFileError:
    """Return the error for a path that is neither a file nor a directory."""
    if os.path.islink(text) and not os.path.exists(text):
        return MissingFileError(f"{text} is a link to {os.readlink(text)!r}, which does not exist")
    if os.path.lexists(text):
        return MissingFileError(f"{text} is neither a file nor a directory")
    hint = explain_prefix(text) or find_near_file(text)
    return MissingFileError(f"no such file or directory: {text}", hint=hint)


def _order(name: str) -> tuple[int, str]:
    """Return a sort key that puts programs first, since they name the values of other files."""
    base = os.path.basename(name)
    return (0 if base.startswith("__model__") or base.endswith((".pdmodel", ".json")) else 1), name


def _list_under(where: Location, prefix: str, program: str) -> list[str]:
    """Return the files under a prefix: of ``fluid.save``, or of a model whose program has a suffix."""
    programs = (program,) if program else PROGRAMS
    ends = (".pdparams", ".pdopt", *programs, ".pdiparams", ".pdmanifest")
    return [prefix + end for end in ends if prefix and where.has(prefix + end)]


def _find_companions(where: Location, name: str) -> list[str]:
    """Return the programs beside a file, if the file is not a program itself."""
    if not _order(name)[0]:
        return []
    stem = os.path.splitext(name)[0]
    return [one for one in ("__model__", f"{stem}.pdmodel", f"{stem}.json") if where.has(one)]
