"""ParameterCollection: parameters under hierarchical names, saved and loaded by DyNet's rules."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from paddlelike.collection import files
from paddlelike.collection.lookup import LookupParameters
from paddlelike.collection.parameters import Parameters, create
from paddlelike.errors import GraphError, LoadError
from paddlelike.formats.dynet import LOOKUP_PARAMETER, PARAMETER, Block
from paddlelike.initializer import ConstantInitializer, Initializer, NumpyArrayInitializer, XavierInitializer

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["Model", "ParameterCollection"]

Path = str | os.PathLike[str]


class ParameterCollection:
    """Parameters, lookup tables and subcollections under hierarchical names.

    A root collection is ``/``, a subcollection ``/name/``, a parameter ``/name/w``. Parameters without a name
    become ``_0``, ``_1``, ...; a name that is used again gets the suffix ``_1``, ``_2``. Every parameter is
    also a parameter of the default main program, so that optimizers and Fluid's saves see it.

    >>> import paddlelike as fluid
    >>> with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.scope_guard(fluid.Scope()):
    ...     collection = ParameterCollection()
    ...     w = collection.add_parameters((3, 5), name="w")
    ...     encoder = collection.add_subcollection("enc")
    ...     table = encoder.add_lookup_parameters((10, 4))
    >>> w.name(), encoder.name(), table.name()
    ('/w', '/enc/', '/enc/_0')
    """

    def __init__(self) -> None:
        self._path = "/"
        self._names: Counter[str] = Counter()
        self._subcollections: Counter[str] = Counter()
        self._order: list[Parameters] = []
        self._ancestors: list[ParameterCollection] = []

    # Adding

    def add_parameters(
        self,
        dim: int | Sequence[int],
        init: Initializer | ArrayLike | None = None,
        name: str = "",
        *,
        device: str = "",
    ) -> Parameters:
        """Add a parameter.

        Parameters
        ----------
        dim
            The shape; a number makes a vector.
        init
            The initial value: an Initializer, a number or an array; None for the uniform one of Glorot &
            Bengio (2010).
        name
            The name of the parameter, without ``/`` and ``_``; empty for ``_0``, ``_1``, ...
        device
            Accepted for DyNet's scripts; there is one device.

        Raises
        ------
        GraphError
            The name holds ``/`` or ``_``, or the shape has a dim below 1.
        """
        return self._add(Parameters, dim, init, name)

    def add_lookup_parameters(
        self,
        dim: Sequence[int],
        init: Initializer | ArrayLike | None = None,
        name: str = "",
        *,
        device: str = "",
    ) -> LookupParameters:
        """Add a lookup table of shape ``(rows, dims...)``, in the same way as :meth:`add_parameters`."""
        added = self._add(LookupParameters, dim, init, name)
        assert isinstance(added, LookupParameters)
        return added

    def add_subcollection(self, name: str = "") -> ParameterCollection:
        """Add a collection below this one. Raises GraphError when the name holds ``/`` or ``_``."""
        child = ParameterCollection()
        child._path = f"{self._path}{_next_name(self._subcollections, name, 'subcollection')}/"
        child._ancestors = [*self._ancestors, self]
        return child

    # Looking

    def name(self) -> str:
        """Return the full name: ``/``, ``/enc/``, ..."""
        return self._path

    def parameters_list(self) -> list[Parameters]:
        """Return the parameters, including parameters of subcollections, in order of creation."""
        return [one for one in self._order if one.kind == PARAMETER]

    def lookup_parameters_list(self) -> list[LookupParameters]:
        """Return the lookup tables, including tables of subcollections, in order of creation."""
        return [one for one in self._order if isinstance(one, LookupParameters)]

    def parameter_count(self) -> int:
        """Return the number of numbers in all parameters and tables."""
        return sum(int(np.prod(one.shape())) for one in self._order)

    def param_collection(self) -> ParameterCollection:
        """Return this collection; builders have the same method."""
        return self

    # Files

    def save(self, filename: Path, name: str = "", append: bool = False) -> None:
        """Write every parameter, then every lookup table, into a text file.

        Parameters
        ----------
        name
            Replaces the full name of this collection in the file; starts with ``/``. Empty to keep the full
            name.
        append
            Add to the file instead of replacing it.

        Raises
        ------
        ValueError
            ``name`` holds white space or ``#``, or does not start with ``/``.
        SaveError
            The file would hold a name twice, or cannot be written. It is unchanged.
        """
        files.check_key(name, of_collection=True)
        files.write(filename, self.to_blocks(name), append=append)

    def to_blocks(self, name: str = "") -> list[Block]:
        """Return the blocks of a text file, with ``name`` in place of this collection's full name."""
        prefix = self._path if not name else name if name.endswith("/") else name + "/"
        ordered = [*self.parameters_list(), *self.lookup_parameters_list()]
        return [one.to_block(prefix + one.name().removeprefix(self._path)) for one in ordered]

    def populate(self, filename: Path, key: str = "", *, strict_names: bool = False) -> None:
        """Fill the parameters of this collection from a text file, in their order.

        The i-th parameter takes the i-th parameter block below ``key``; lookup tables likewise. Names are
        compared only with ``strict_names``. If shapes or counts differ, no value changes.

        Raises
        ------
        LoadError
            Counts, shapes or (with ``strict_names``) names differ; the error lists every difference.
        FormatError
            The file is damaged.
        """
        blocks = files.blocks_below(files.read(filename), key or "/")
        self.take_blocks(blocks, filename, key or "/", strict_names=strict_names)

    def take_blocks(
        self, blocks: list[Block], filename: Path, key: str, *, strict_names: bool = False
    ) -> None:
        """Fill the parameters from blocks that were read below ``key``; see :meth:`populate`."""
        for parameter, block in self._match(blocks, filename, key, strict_names):
            parameter.take_block(block)

    def load_param(self, filename: Path, key: str) -> Parameters:
        """Add the parameter ``key`` of a text file with its value.

        Raises LoadError when the file has no such parameter.
        """
        return self._load(Parameters, filename, key)

    def load_lookup_param(self, filename: Path, key: str) -> LookupParameters:
        """Add the lookup table ``key`` of a text file with its value; errors as in :meth:`load_param`."""
        loaded = self._load(LookupParameters, filename, key)
        assert isinstance(loaded, LookupParameters)
        return loaded

    # Private

    def _add(
        self,
        kind: type[Parameters],
        dim: int | Sequence[int],
        init: Initializer | ArrayLike | None,
        name: str,
    ) -> Parameters:
        shape = (int(dim),) if isinstance(dim, int | np.integer) else tuple(int(n) for n in dim)
        if not shape or min(shape) < 1:
            raise GraphError(f"a parameter of shape {shape}: every dim must be at least 1")
        initializer = _to_initializer(init, shape)
        full = self._path + _next_name(self._names, name, "parameter")
        return self._register(create(kind, full, shape, initializer))

    def _register(self, parameter: Parameters) -> Parameters:
        for collection in (*self._ancestors, self):
            collection._order.append(parameter)
        return parameter

    def _load(self, kind: type[Parameters], filename: Path, key: str) -> Parameters:
        block = files.find(filename, kind.kind, key)
        parameter = create(kind, block.name, block.values.shape, ConstantInitializer(0.0))
        parameter.take_block(block)
        return self._register(parameter)

    def _match(
        self, blocks: list[Block], filename: Path, key: str, strict_names: bool
    ) -> list[tuple[Parameters, Block]]:
        """Match parameters with blocks. Raises LoadError with every difference."""
        pairs: list[tuple[Parameters, Block]] = []
        problems: list[str] = []
        for kind, mine in (
            (PARAMETER, self.parameters_list()),
            (LOOKUP_PARAMETER, self.lookup_parameters_list()),
        ):
            theirs = [block for block in blocks if block.kind == kind]
            if len(theirs) != len(mine):
                problems.append(f"{kind.strip('#')}: the file has {len(theirs)}, the collection {len(mine)}")
            pairs += zip(mine, theirs, strict=False)
        for parameter, block in pairs:
            try:
                parameter.check_block(block)
            except LoadError as error:
                problems.append(error.message)
            tail = parameter.name().removeprefix(self._path)
            if strict_names and block.name.removeprefix(key.rstrip("/") + "/") != tail:
                problems.append(f"{block.name} in the file, {parameter.name()} in the collection")
        if problems:
            raise LoadError(
                f"nothing was loaded: {os.fspath(filename)} (blocks below {key}) does not fit the collection "
                f"{self._path}:\n  " + "\n  ".join(problems),
                hint="build the collection with the same calls, in the same order, as the one that was saved",
            )
        return pairs


Model = ParameterCollection  # DyNet's older name


def _next_name(counter: Counter[str], name: str, what: str) -> str:
    """Return the name with its count: ``w``, ``w_1``; without a name ``_0``, ``_1``."""
    if "/" in name or "_" in name:
        raise GraphError(
            f"the {what} name {name!r} may not contain '/' or '_': these join the parts of full names"
        )
    count = counter[name]
    counter[name] += 1
    return f"{name}_{count}" if count or not name else name


def _to_initializer(init: Initializer | ArrayLike | None, shape: tuple[int, ...]) -> Initializer:
    if init is None:
        return XavierInitializer()
    if isinstance(init, Initializer):
        return init
    if isinstance(init, int | float):
        return ConstantInitializer(float(init))
    array = np.asarray(init, dtype=np.float32)
    if array.shape != shape:
        raise GraphError(f"init has shape {array.shape}, the parameter {shape}")
    return NumpyArrayInitializer(array)
