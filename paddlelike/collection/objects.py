"""``save`` and ``load``: lists of parameters, builders and a user's own objects, in a pair of files.

``BASENAME.data`` is a text file with the parameters. ``BASENAME.meta`` is a sequence of pickles, one for each
object::

    ("Parameters", "/w")                       a parameter, by its full name
    ("LookupParameters", "/_1")                a lookup table
    (VanillaLSTMBuilder, (2, 3, 4), "/lstm/")  the class, its spec, the full name of its collection

Nothing in the pickles is executed: classes and functions are looked up in a table, to which the caller may
add classes. Files name them like DyNet, ``_dynet.VanillaLSTMBuilder``, so that DyNet reads them.

Parameters
----------
basename
    The path without ``.data`` and ``.meta``.
"""

from __future__ import annotations

import operator
import os
import reprlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from paddlelike.collection import builders, expressions, files, functions
from paddlelike.collection.collection import ParameterCollection
from paddlelike.collection.lookup import LookupParameters
from paddlelike.collection.parameters import Parameters
from paddlelike.errors import FormatError, GraphError, LoadError, SaveError
from paddlelike.formats.dynet import Block, encode
from paddlelike.formats.state import pickles
from paddlelike.formats.state.pickle_writer import Reference, encode_plain
from paddlelike.foundation.warn import warn_user
from paddlelike.storage.local.transaction import write_all

__all__ = ["load", "load_generator", "save"]

Path = str | os.PathLike[str]
Classes = Mapping[str, Any] | Sequence[Any]

_BUILDERS: Final = {
    "VanillaLSTMBuilder": builders.VanillaLSTMBuilder,
    "LSTMBuilder": builders.LSTMBuilder,
    "CompactVanillaLSTMBuilder": builders.CompactVanillaLSTMBuilder,
    "CoupledLSTMBuilder": builders.CoupledLSTMBuilder,
    "GRUBuilder": builders.GRUBuilder,
    "SimpleRNNBuilder": builders.SimpleRNNBuilder,
    "SparseLSTMBuilder": builders.SparseLSTMBuilder,
    "BiRNNBuilder": builders.BiRNNBuilder,
}
_FUNCTIONS: Final = {
    name: getattr(expressions, name)
    for name in ("tanh", "logistic", "rectify", "softmax", "log_softmax", "cmult")
} | {name: getattr(functions, name) for name in functions.__all__}
_KNOWN: Final[dict[str, Any]] = {f"_dynet.{name}": value for name, value in (_BUILDERS | _FUNCTIONS).items()}
_NAMES: Final = {id(value): name for name, value in reversed(_KNOWN.items())}


class _Record(NamedTuple):
    """One object of a ``.meta`` file."""

    kind: str | Reference | type  # "Parameters", "LookupParameters" or a class
    spec: Any  # None for a parameter
    name: str


def save(basename: Path, objects: Iterable[Any]) -> None:
    """Save objects as ``BASENAME.data`` and ``BASENAME.meta``, DyNet's files: both or neither.

    Parameters
    ----------
    objects
        Parameters, lookup tables, builders, and objects with ``param_collection()``, a ``spec`` of plain
        values, and ``from_spec(spec, collection)``. The order is kept.

    Raises
    ------
    SaveError
        An object cannot be saved, or two would have the same name in the file. The error lists all such
        objects; the two files are unchanged.

    >>> import os, tempfile
    >>> import paddlelike.collection as dy
    >>> _ = dy.renew_cg()
    >>> home = tempfile.mkdtemp()
    >>> dy.save(f"{home}/model", [dy.ParameterCollection().add_parameters((2, 3))])
    >>> sorted(os.listdir(home))
    ['model.data', 'model.meta']
    """
    blocks: list[Block] = []
    records: list[bytes] = []
    problems: list[str] = []
    advice = None
    for index, one in enumerate(objects):
        try:
            record = _to_record(one)
            is_parameter = isinstance(record.kind, str)
            records.append(encode_plain((record.kind, record.name) if is_parameter else tuple(record)))
        except SaveError as error:
            problems.append(f"objects[{index}]: {error.message}")
            advice = error.hint
            continue
        blocks += _to_blocks(one)
    for kind, name in _find_doubled(blocks):
        problems.append(f"two objects hold a {kind.strip('#')} {name}")
        advice = "names come from collections: objects of one file need collections below one root"
    if problems:
        raise SaveError(
            f"nothing was saved to {os.fspath(basename)}:\n  " + "\n  ".join(problems), hint=advice
        )
    try:
        data = list(encode(blocks))
    except FormatError as error:
        raise SaveError(f"nothing was saved: {error.message}", hint=error.hint) from None
    directory, name = os.path.split(os.fspath(basename))
    write_all(directory or ".", {f"{name}.data": data, f"{name}.meta": records})


def load(basename: Path, collection: ParameterCollection, classes: Classes = ()) -> list[Any]:
    """Load objects that :func:`save`, or DyNet's ``save``, has written; return them in their order.

    Parameters
    ----------
    collection
        The collection that the parameters are added to, under new names.
    classes
        Classes and functions of the caller that the file may name: a list, compared by module and name, or a
        mapping from the name in the file (``"__main__.OneLayerMLP"``) where a class has moved.

    Returns
    -------
    list
        The objects that were saved, in their order, under names in ``collection``.

    Raises
    ------
    MissingFileError
        One of the two files is not there.
    FormatError
        A file is damaged, or names a class that is neither DyNet's nor in ``classes``.
    LoadError
        The specs and the data do not fit each other.

    >>> import tempfile
    >>> import paddlelike.collection as dy
    >>> _ = dy.renew_cg()
    >>> home = tempfile.mkdtemp()
    >>> m = dy.ParameterCollection()
    >>> dy.save(f"{home}/model", [m.add_parameters((2, 3), init=1.0)])
    >>> (w,) = dy.load(f"{home}/model", dy.ParameterCollection())
    >>> w.as_array().shape
    (2, 3)
    """
    return list(load_generator(basename, collection, classes))


def load_generator(basename: Path, collection: ParameterCollection, classes: Classes = ()) -> Iterator[Any]:
    """Yield the objects of :func:`load` one by one; both files are read and checked before the first.

    Parameters
    ----------
    basename
        The path without ``.data`` and ``.meta``.
    collection
        The collection that the parameters are added to.
    classes
        Classes of your own that the file may name.

    Returns
    -------
    Iterator
        The objects that were saved, in their order.

    Raises
    ------
    MissingFileError, FormatError, LoadError
        The same errors as :func:`load`, at the first object.

    >>> import tempfile
    >>> import paddlelike.collection as dy
    >>> _ = dy.renew_cg()
    >>> home = tempfile.mkdtemp()
    >>> m = dy.ParameterCollection()
    >>> dy.save(f"{home}/model", [m.add_parameters(3), m.add_parameters(2)])
    >>> [w.as_array().shape for w in dy.load_generator(f"{home}/model", dy.ParameterCollection())]
    [(3,), (2,)]
    """
    records = list(_read_records(f"{os.fspath(basename)}.meta", _build_allow_list(classes)))
    data = f"{os.fspath(basename)}.data"
    blocks = files.read(data)
    names = {(block.kind.strip("#"), block.name) for block in blocks}
    for record in records:
        kind = record.kind.removesuffix("s") if isinstance(record.kind, str) else None
        if kind is not None and (kind, record.name) not in names:
            raise LoadError(f"{data} has no {kind} {record.name}, which the .meta file names")
    for record in records:
        if record.kind == "Parameters":
            yield collection.load_param(data, record.name)
        elif record.kind == "LookupParameters":
            yield collection.load_lookup_param(data, record.name)
        else:
            one = _from_spec(record, collection, blocks, data)
            _populate(one, blocks, data, record.name)
            yield one


def _to_record(one: Any) -> _Record:
    """Return the record of an object. Raises SaveError for what cannot be saved."""
    if isinstance(one, Parameters):
        return _Record(
            "LookupParameters" if isinstance(one, LookupParameters) else "Parameters", None, one.name()
        )
    missing = [name for name in ("param_collection", "spec", "from_spec") if not hasattr(one, name)]
    if missing:
        hint = "; save a collection with its own save()" if isinstance(one, ParameterCollection) else ""
        raise SaveError(f"a {type(one).__name__} has no {', '.join(missing)}{hint}")
    return _Record(_to_reference(type(one)), _plain_spec(one.spec), one.param_collection().name())


def _to_blocks(one: Any) -> list[Block]:
    """Return the blocks of an object; gains and biases of layer normalization have a separate path."""
    if isinstance(one, Parameters):
        return [one.to_block(one.name())]
    blocks: list[Block] = one.param_collection().to_blocks()
    apart = {p.name() for p in one.normalization} if isinstance(one, builders.VanillaLSTMBuilder) else set()
    path = one.param_collection().name()
    return [
        replace(block, name=_apart(path) + block.name.removeprefix(path)) if block.name in apart else block
        for block in blocks
    ]


def _populate(one: Any, blocks: list[Block], data: str, path: str) -> None:
    """Fill the parameters of an object from the blocks below its two paths."""
    found = _find_below(blocks, path)
    if isinstance(one, builders.VanillaLSTMBuilder) and one.ln_lstm:
        apart = [block for block in blocks if block.name.startswith(_apart(path))]
        if not apart and len(found) == len(one.param_collection().to_blocks()) - len(one.normalization):
            warn_user(
                f"{data} holds no gains and biases of the layer normalization of {path}, which DyNet "
                "does not save with a builder: they keep their initial values. To save them, save the "
                "whole collection"
            )
            apart = [parameter.to_block(parameter.name()) for parameter in one.normalization]
        found = _order_layers(one, found, apart)
    one.param_collection().take_blocks(found, data, path)


def _order_layers(one: builders.VanillaLSTMBuilder, weights: list[Block], apart: list[Block]) -> list[Block]:
    """Return the blocks in the order of the parameters, each layer's weights before its gains and biases."""
    gains = {parameter.name() for parameter in one.normalization}
    queues = {True: list(apart), False: list(weights)}
    names = [parameter.name() for parameter in one.param_collection().parameters_list()]
    ordered = [queues[name in gains].pop(0) for name in names if queues[name in gains]]
    return ordered + queues[False] + queues[True]


def _find_below(blocks: list[Block], path: str) -> list[Block]:
    return [block for block in blocks if block.name.startswith(f"{path.rstrip('/')}/")]


def _apart(path: str) -> str:
    return f"{path.rstrip('/')}-ln/"


def _plain_spec(value: Any) -> object:
    """Return a spec with references in place of classes and functions."""
    if isinstance(value, tuple | list):
        return type(value)(_plain_spec(item) for item in value)
    if isinstance(value, dict):
        return {key: _plain_spec(item) for key, item in value.items()}
    return _to_reference(value) if callable(value) else value


def _to_reference(value: object) -> Reference:
    known = _NAMES.get(id(value))
    if known is not None:
        return Reference(*known.split("."))
    name = getattr(value, "__qualname__", "<lambda>")
    if "<" in name:
        raise SaveError(f"the spec holds {value!r}, which has no name that a file could refer to")
    return Reference(value.__module__, name)


def _find_doubled(blocks: list[Block]) -> list[tuple[str, str]]:
    names = [(block.kind, block.name) for block in blocks]
    return sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []


def _build_allow_list(classes: Classes) -> dict[str, Any]:
    """Return the classes and functions that a file may refer to, by ``module.name``."""
    if not isinstance(classes, Mapping):
        classes = {f"{one.__module__}.{one.__qualname__}": one for one in classes}
    return {
        **_KNOWN,
        **{name.replace("_dynet.", "dynet."): value for name, value in _KNOWN.items()},
        **classes,
    }


def _read_records(path: str, allowed: Mapping[str, Any]) -> Iterator[_Record]:
    """Yield the records of a ``.meta`` file."""
    data = files.read_bytes(path)
    references = {tuple(name.rsplit(".", 1)): Reference(*name.rsplit(".", 1)) for name in allowed}
    try:
        for value in pickles.load_all(data, references)[0]:  # type: ignore[arg-type]
            yield _parse_record(_resolve(value, allowed, {}))
    except FormatError as error:
        raise FormatError(
            f"{path}: {error.message}",
            hint="pass classes=[...] with the classes of your own that it may name",
        ) from None


def _parse_record(value: object) -> _Record:
    if isinstance(value, tuple) and len(value) == 2 and value[0] in ("Parameters", "LookupParameters"):
        return _Record(value[0], None, str(value[1]))
    if isinstance(value, tuple) and len(value) == 3 and callable(value[0]):
        return _Record(value[0], value[1], str(value[2]))
    raise FormatError(f"a record {reprlib.repr(value)[:80]} is neither a parameter nor (class, spec, name)")


def _resolve(value: Any, allowed: Mapping[str, Any], known: dict[int, object]) -> object:
    """Return a value with the classes and functions that its references name.

    ``known`` holds the resolved objects by identity, so that a tuple in many places is resolved once.
    """
    if isinstance(value, Reference):
        return allowed[f"{value.module}.{value.name}"]
    if id(value) not in known and isinstance(value, tuple | list):
        known[id(value)] = type(value)(_resolve(item, allowed, known) for item in value)
    if id(value) not in known and isinstance(value, dict):
        known[id(value)] = {key: _resolve(item, allowed, known) for key, item in value.items()}
    return known.get(id(value), value)


def _from_spec(record: _Record, collection: ParameterCollection, blocks: list[Block], data: str) -> Any:
    """Make an object; ``from_spec`` is a static method, a class method or a plain function of the class.

    Raises LoadError for an invalid spec of a DyNet builder, or a spec larger than the data.
    """
    kind: Any = record.kind
    make: Callable[..., Any] = kind.from_spec
    if kind not in _BUILDERS.values():
        return make(record.spec, collection)
    held = [block.values.size for block in _find_below(blocks, record.name)]
    try:
        layers, input_dim, hidden_dim = map(operator.index, record.spec[:3])
        fits = layers <= len(held) and hidden_dim * max(2 * input_dim, hidden_dim) <= 2 * sum(held)
        if fits:
            return make(record.spec, collection)
    except (TypeError, ValueError, IndexError, GraphError) as error:
        raise LoadError(f"the spec of {record.name} makes no {kind.__name__} ({error!s:.200})") from error
    raise LoadError(f"{data} lacks parameters of {record.name} that its spec needs")
