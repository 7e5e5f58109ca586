"""Models in another layout: merged into one file, split into many, or pruned to some outputs.

Values are copied bit for bit, and programs byte for byte unless they are pruned. Files that differ from their
manifest are refused.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from paddlelike.errors import GraphError, LoadError, SaveError
from paddlelike.formats.entry import LeftOut
from paddlelike.formats.paddle.combined import CombinedFile
from paddlelike.formats.paddle.directory import encode_value, make_facts
from paddlelike.foundation.near_names import suggest_names
from paddlelike.framework import Program
from paddlelike.framework.codec.encode import encode_program
from paddlelike.interop.content import Content, Held, list_persistables, open_content
from paddlelike.interop.damage import refuse_damage
from paddlelike.io.export.program import check_feeds, find_ports, make_inference_program
from paddlelike.storage.interfaces import Writing
from paddlelike.storage.location import locate

Path = str | os.PathLike[str]
_MODEL: Final = "__model__"
_CHUNK: Final = 1 << 22  # bytes


class Repacked(NamedTuple):
    """The result of a merge, split or prune.

    Attributes
    ----------
    unread
        The names of files that were copied byte for byte without being understood, each with the reason.
    left_out
        Contents of the source that no variable can hold.
    """

    directory: str
    files: tuple[str, ...]
    unread: dict[str, str]
    left_out: tuple[LeftOut, ...]


def merge(source: Path, target: Path, filename: str = "__params__", *, verify: bool = True) -> Repacked:
    """Write the variables of a directory into one combined file in another, beside its other files.

    Parameters
    ----------
    verify
        Compare the files with their manifest first, if there is one. If False, copy damaged values, too.

    Raises
    ------
    LoadError
        The source holds no variables, or SelectedRows, which a combined file cannot hold; or the names of its
        variables are not known; or its files differ from the save.
    SaveError
        ``target`` exists, or cannot be written.

    >>> import tempfile
    >>> import paddlelike as fluid
    >>> main, startup = fluid.Program(), fluid.Program()
    >>> with fluid.unique_name.guard(), fluid.program_guard(main, startup):
    ...     out = fluid.layers.fc(fluid.data("x", [None, 4]), 3)
    >>> exe, home = fluid.Executor(fluid.CPUPlace()), tempfile.mkdtemp()
    >>> with fluid.scope_guard(fluid.Scope()):
    ...     exe.run(startup)
    ...     report = fluid.io.save_persistables(exe, home + "/a", main)
    []
    >>> merge(home + "/a", home + "/b").files
    ('__params__',)
    >>> split(home + "/b", home + "/c").files
    ('fc_0.b_0', 'fc_0.w_0')
    """
    _check_absent(target)
    refuse_damage(os.fspath(source), verify=verify)
    with open_content(source) as content:
        held = [one for _, one in sorted(_check_variables(content).items())]
        if content.unnamed:  # the order of a combined file is that of the names
            raise _make_unnamed(content, "copy the program (__model__ or .pdmodel) beside it")
        sparse = [one.name for one in held if one.entry.height is not None]
        if sparse:
            raise LoadError(
                f"a combined file cannot hold SelectedRows: {', '.join(sparse)}",
                hint=f"load {content.path} as it is, or write a file per variable: paddlelike split",
            )
        writing = locate(target).begin()
        _copy(content, content.programs, writing)
        buffers = CombinedFile().write({one.name: content.read(one) for one in held})
        facts = [[one.name, one.entry.dtype.name, list(one.entry.shape)] for one in held]
        writing.add(filename, buffers, {"kind": "combined", "variables": facts})
        return _commit(content, writing)


def split(source: Path, target: Path, names: Sequence[str] | None = None, *, verify: bool = True) -> Repacked:
    """Write every variable of a combined file into a file of its own, beside the other files.

    Parameters
    ----------
    names
        The variables, if neither a manifest nor a program beside the file names them; they are in the file
        in sorted order.
    verify
        Compare the files with their manifest first, if there is one. If False, copy damaged values, too.

    Raises
    ------
    LoadError
        The source holds no variables, or their names are not known; or its files differ from the save.
    SaveError
        ``target`` exists, or cannot be written.
    """
    _check_absent(target)
    refuse_damage(os.fspath(source), verify=verify)
    with open_content(source) as content:
        held = list(_check_variables(content).values())
        if content.unnamed and names is None:
            raise _make_unnamed(
                content, "copy the program (__model__ or .pdmodel) beside it, or pass the names"
            )
        if names is not None:
            if len(names) != len(held):
                raise LoadError(f"{content.path} holds {len(held)} variables, {len(names)} names were given")
            held = [one._replace(name=name) for one, name in zip(held, sorted(names), strict=True)]
        writing = locate(target).begin()
        _copy(content, content.programs, writing)
        for one in held:
            _add_variable(content, one, writing)
        return _commit(content, writing)


def prune(
    source: Path, target: Path, feeds: Iterable[str] | None, fetches: Iterable[str], *, verify: bool = True
) -> Repacked:
    """Write the part of a model that computes some variables from some feeds, with a file per parameter.

    Unknown files are copied.

    Parameters
    ----------
    feeds
        The names of the feeds. None means the feeds of the model that are still needed.
    verify
        Compare the files with their manifest first, if there is one. If False, copy damaged values, too.

    Raises
    ------
    GraphError
        A name is not a variable of the program, or a feed is missing or unused.
    LoadError
        The source does not hold exactly one program, or lacks a needed parameter; or its files differ from
        the save.
    SaveError
        ``target`` exists, or cannot be written.
    """
    _check_absent(target)
    refuse_damage(os.fspath(source), verify=verify)
    with open_content(source) as content:
        program = content.get_program()
        wanted = list(fetches)
        block = program.global_block()
        unknown = [name for name in wanted if not block.has_var(name)]
        if unknown:
            raise GraphError(
                f"the program has no variable {', '.join(map(repr, unknown))}",
                hint=suggest_names(unknown[0], block.vars) or "paddlelike graph shows the variables",
            )
        given = list(feeds) if feeds is not None else _find_needed_feeds(program, wanted)
        check_feeds(program, given, [block.var(name) for name in wanted])
        pruned = make_inference_program(program, given, wanted)
        needed = {one.name for one in list_persistables(pruned)}
        held = content.index_variables()
        missing = sorted(needed - held.keys())
        if missing and held:
            raise LoadError(f"{content.path} holds no {', '.join(missing)}, which the pruned program needs")
        writing = locate(target).begin()
        writing.add(_MODEL, [encode_program(pruned)])
        for name in sorted(needed & held.keys()):
            _add_variable(content, held[name], writing)
        return _commit(content, writing)


def _find_needed_feeds(program: Program, wanted: list[str]) -> list[str]:
    """Return the feeds of a model that some of its variables depend on.

    In a program without feed operators these are the variables that no operator computes.
    """
    from paddlelike.framework.passes.views import find_needed_ops

    feeds, _ = find_ports(program, "the program")
    block = program.global_block()
    if not feeds:
        written = {name for op in block.ops for name in op.output_arg_names}
        feeds = [name for name, one in block.vars.items() if not one.persistable and name not in written]
    needed = find_needed_ops(block, targets=set(wanted), fed=set(feeds))
    read = {name for index in needed for name in block.ops[index].input_arg_names}
    return [name for name in feeds if name in read]


def _check_absent(target: Path) -> None:
    where = locate(target)
    if where.exists() and where.list_names():
        raise SaveError(f"{where.path} exists and holds files", hint="choose another path")


def _check_variables(content: Content) -> dict[str, Held]:
    if not content.variables:
        raise LoadError(f"{content.path} holds no variables", hint=content.explain_unread())
    for file in content.files:  # the copy would lack them
        if file.problem is not None and "not supported" not in file.problem:
            raise LoadError(f"{file.name} of {content.path} cannot be read: {file.problem}", hint=file.hint)
    return content.index_variables()


def _make_unnamed(content: Content, hint: str) -> LoadError:
    names = ", ".join(content.unnamed)
    return LoadError(f"{names} stores no names, and no file beside it names its values", hint=hint)


def _copy(content: Content, names: Iterable[str], writing: Writing) -> None:
    for name in names:
        writing.add(name, _read_chunks(content, name))


def _read_chunks(content: Content, name: str) -> Iterator[bytes]:
    with content.where.open_file(name) as file:
        for start in range(0, file.size, _CHUNK):
            yield bytes(file.read_at(start, min(_CHUNK, file.size - start)))


def _commit(content: Content, writing: Writing) -> Repacked:
    """Copy the files that are not understood as well, then commit."""
    unread = content.list_unread()
    _copy(content, unread, writing)
    done = writing.commit()
    left_out = tuple(one for some in content.left_out.values() for one in some)
    return Repacked(done.directory, tuple(sorted(done.files)), unread, left_out)


def _add_variable(content: Content, held: Held, writing: Writing) -> None:
    entry = held.entry
    facts = make_facts(held.name, entry.dtype.name, entry.shape, entry.lod, entry.height)
    writing.add(held.name, encode_value(content.read(held)), facts)
