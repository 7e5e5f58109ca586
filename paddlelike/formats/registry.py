"""The known formats: from this package, from other installed packages, and registered by a program.

Another package offers a format by an entry point of the group ``paddlelike.formats``, whose value is the
format's class or an instance of it::

    [project.entry-points."paddlelike.formats"]
    toy = "toy_package.formats:Toy"

Modules of formats are imported on first use. If the import fails, a look-up of that format by name is an
error, and a look-up of all formats warns.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Final, NamedTuple

from paddlelike.errors import FormatError
from paddlelike.formats.base import SNIFF_BYTES, FileFormat, FolderFormat
from paddlelike.formats.sources import Folder, Readable, as_source, is_folder
from paddlelike.foundation.warn import warn_user

AnyFormat = FileFormat | FolderFormat

GROUP: Final = "paddlelike.formats"
#: In the order of sniffing, the surest signature first.
_BUILT_IN: Final = {
    "hdf5": "paddlelike.formats.hdf5:Hdf5",
    "torch": "paddlelike.formats.torch:Torch",
    "npz": "paddlelike.formats.npz:Npz",
    "theano": "paddlelike.formats.npz:TheanoBundle",
    "safetensors": "paddlelike.formats.safetensors:Safetensors",
    "cntk": "paddlelike.formats.cntk.file:CntkFile",
    "state": "paddlelike.formats.state.format:StateFile",
    "dynet": "paddlelike.formats.dynet:DynetFile",
    "onnx": "paddlelike.formats.onnx:OnnxFile",
    "combined": "paddlelike.formats.paddle.combined:CombinedFile",
    "fluid_save": "paddlelike.formats.state.fluid_save:FluidSave",
    "paddle_distributed": "paddlelike.formats.state.sharded:PaddleDistributed",
    "safetensors_folder": "paddlelike.formats.safetensors:SafetensorsFolder",
    "directory": "paddlelike.formats.paddle.directory:VariableDirectory",
}


class _Declared(NamedTuple):
    """A format that is known by name but not imported yet."""

    target: str  # module:attribute
    package: str | None = None

    def load(self) -> object:
        """Import the module and return the attribute."""
        module, _, attribute = self.target.partition(":")
        found: object = import_module(module)
        for part in attribute.split("."):
            found = getattr(found, part)
        return found


class Registry:
    """Formats by name, in the order of sniffing; each is loaded on first use."""

    def __init__(self) -> None:
        self._declared = {name: _Declared(target) for name, target in _BUILT_IN.items()}
        self._loaded: dict[str, AnyFormat] = {}
        self._failed: dict[str, FormatError] = {}
        self._searched = False

    def register(self, format: AnyFormat | type[AnyFormat]) -> None:  # noqa: A002
        """Add a format.

        Raises
        ------
        FormatError
            It is not a format, or another one has its name.
        """
        instance = _instance(format, "register()")
        self._search()
        if instance.name in self._declared or instance.name in self._loaded:
            raise FormatError(f"a format named {instance.name!r} is registered already")
        self._loaded[instance.name] = instance

    def find(self, name: str) -> AnyFormat:
        """Return the format called ``name``.

        Raises
        ------
        FormatError
            There is none, or its package cannot be imported.
        """
        if name not in self._declared and name not in self._loaded:
            self._search()
        if name in self._declared or name in self._loaded:
            return self._load(name)
        known = ", ".join(sorted({*self._declared, *self._loaded}))
        raise FormatError(f"no format is called {name!r}", hint=f"use one of the known formats: {known}")

    def all(self) -> list[AnyFormat]:
        """Return every format in the order of sniffing. Warns of formats that cannot be imported."""
        self._search()
        found = []
        for name in list(dict.fromkeys((*self._declared, *self._loaded))):
            reported = name in self._failed
            try:
                found.append(self._load(name))
            except FormatError as error:
                if not reported:
                    warn_user(str(error), RuntimeWarning)
        return found

    def _search(self) -> None:
        """Add the entry points of installed packages, once."""
        if self._searched:
            return
        from importlib.metadata import entry_points  # 20 ms that no program needs at its start

        for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
            package = None if point.dist is None else point.dist.name
            self._declared.setdefault(point.name, _Declared(point.value, package))
        self._searched = True  # at the end: other threads search, too, rather than miss some

    def _load(self, name: str) -> AnyFormat:
        if name in self._loaded:
            return self._loaded[name]
        if name in self._failed:
            raise self._failed[name]
        declared = self._declared[name]
        try:
            found = _instance(declared.load(), declared.target)
            if found.name != name:
                raise FormatError(f"the format calls itself {found.name!r}")
        except Exception as error:  # whatever another package's module raises when it is imported
            package = "" if declared.package is None else f" of package {declared.package}"
            self._failed[name] = FormatError(
                f"format {name!r} ({declared.target}{package}) cannot be used: {error!r}",
                hint="upgrade or remove that package; other formats are not affected",
            )
            raise self._failed[name] from error
        self._loaded[name] = found
        return found


_registry: Final = Registry()


def register(format: AnyFormat | type[AnyFormat]) -> None:  # noqa: A002
    """Add a format for this process.

    Raises
    ------
    FormatError
        It is not a format, or another one has its name.
    """
    _registry.register(format)


def find(name: str) -> AnyFormat:
    """Return the format called ``name``.

    Raises
    ------
    FormatError
        There is none, or its package cannot be imported.

    >>> find("combined").title
    'a combined file of Paddle variables'
    """
    return _registry.find(name)


def all_formats() -> dict[str, AnyFormat]:
    """Return every known format by name, in the order of sniffing.

    >>> [name for name in all_formats() if name in ("state", "combined", "fluid_save", "directory")]
    ['state', 'combined', 'fluid_save', 'directory']
    """
    return {format.name: format for format in _registry.all()}


def sniff(source: Readable | Folder) -> AnyFormat | None:
    """Return the first format that recognizes a file or folder, or None if none does.

    >>> sniff(b"hello") is None
    True
    """
    if is_folder(source):
        for format in _registry.all():  # noqa: A001
            if isinstance(format, FolderFormat) and _recognizes(format, partial(format.sniff, source)):
                return format
        return None
    file = as_source(source)  # type: ignore[arg-type]  # TypeGuard does not narrow the other branch
    return sniff_head(bytes(file.read_at(0, SNIFF_BYTES)), file.size)


def sniff_head(head: bytes, size: int) -> FileFormat | None:
    """Return the first format that recognizes a file of ``size`` bytes by its first bytes, or None if none
    does.
    """
    for format in _registry.all():  # noqa: A001
        if isinstance(format, FileFormat) and _recognizes(format, partial(format.sniff, head, size)):
            return format
    return None


def _recognizes(format: AnyFormat, sniff: Callable[[], bool]) -> bool:  # noqa: A002
    """Return the result of ``sniff``; warn if the format of another package raises."""
    try:
        return bool(sniff())
    except OSError:  # of a file that the system refuses to read, which says nothing of its format
        raise
    except Exception as error:
        warn_user(
            f"format {format.name!r} failed to recognize a file: {type(error).__name__}: {error}",
            RuntimeWarning,
        )
        return False


def _instance(format: object, what: str) -> AnyFormat:  # noqa: A002
    """Return ``format``, or an instance if it is a class. Raises FormatError if it is not a format."""
    instance = format() if isinstance(format, type) else format
    if not isinstance(instance, AnyFormat):
        raise FormatError(f"{what} is a {type(instance).__name__}, not a FileFormat or FolderFormat")
    if not instance.name.isidentifier():
        raise FormatError(f"{what} is named {instance.name!r}; a name must be an identifier")
    return instance
