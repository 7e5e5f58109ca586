"""The operators of Fluid's own save programs: recv_save and checkpoint_notify.

``fluid.io.save_persistables`` does not use them, since it writes everything in one transaction; they are for
programs that hold them. Each replaces its files as a whole.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from paddlelike.core import convert_dtype
from paddlelike.distributed.checkpoint.gather import Gathering, gather_files
from paddlelike.distributed.checkpoint.servers import OneByOne, Servers
from paddlelike.distributed.placement import TABLE_FOLDER, Kind, Placement, Slice
from paddlelike.errors import EnforceNotMet, SaveError
from paddlelike.storage.local.transaction import write_all


def recv_save(servers: Servers, attrs: Mapping[str, Any]) -> None:
    """Gather the slices that a ``recv_save`` operator names into its file.

    Raises
    ------
    SaveError
        The file exists and the operator may not overwrite it.
    """
    path = Path(attrs["file_path"])
    if not attrs["overwrite"] and path.exists():
        raise SaveError(
            f"recv_save: {path} exists, and overwrite is false",
            hint="set overwrite=True or another file_path",
        )
    whole = tuple(attrs["shape"])
    placement = Placement(_slices(path.name, whole, attrs), endpoints=list(dict.fromkeys(attrs["endpoints"])))
    (extra,) = gather_files(OneByOne(servers), placement, [path.name], Gathering(None))
    write_all(path.parent, {path.name: extra.buffers})


def _slices(name: str, whole: tuple[int, ...], attrs: Mapping[str, Any]) -> list[Slice]:
    """Return the slices of each variable, by rows; small state, such as powers of beta, is whole on each
    server.
    """
    dtype = convert_dtype(attrs["dtype"])
    shapes = [tuple(int(dim) for dim in text.split(",") if dim) for text in attrs["slice_shapes"]]
    slices = []
    first = 0
    for block, (server, remote, shape) in enumerate(
        zip(attrs["endpoints"], attrs["remote_varnames"], shapes, strict=True)
    ):
        is_whole = math.prod(shape) == math.prod(whole)
        row = 0 if is_whole else first
        slices.append(Slice(name, remote, server, block, row, shape, whole, dtype, Kind.OPTIMIZER))
        first += shape[0]
    return slices


def checkpoint_notify(servers: Servers, attrs: Mapping[str, Any], placement: Placement | None) -> None:
    """Write every server's shard of the table of a ``checkpoint_notify`` operator below its directory.

    Raises
    ------
    EnforceNotMet
        The program has no such table.
    """
    table, directory = attrs["lookup_table"], Path(attrs["dir"])
    if placement is None or table not in placement.origins(Kind.TABLE):
        raise EnforceNotMet(f"checkpoint_notify: {table!r} is not a table that is sharded by id")
    extras = gather_files(OneByOne(servers), placement, [table], Gathering(None))
    write_all(directory, {extra.name.removeprefix(TABLE_FOLDER + "/"): extra.buffers for extra in extras})
