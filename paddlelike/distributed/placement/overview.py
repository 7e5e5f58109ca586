"""The placement under the names of Fluid 1.8's own table (``program._parameters_on_pservers``)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from paddlelike.core import VarType
from paddlelike.distributed.placement.placement import Placement
from paddlelike.distributed.placement.slices import Slice


class VarStruct(NamedTuple):
    """A variable in the form of Fluid's table."""

    name: str
    shape: tuple[int, ...]
    dtype: VarType
    type: VarType
    lod_level: int
    persistable: bool


class DistributedVar(NamedTuple):
    """A slice in the form of Fluid's table; ``offset`` is in elements."""

    origin: VarStruct
    slice: VarStruct
    is_slice: bool
    block_id: int
    offset: int
    vtype: str
    endpoint: str

    def __str__(self) -> str:
        def describe(var: VarStruct) -> str:
            return f"{var.name} : fluid.{var.type}.shape{var.shape}.astype({var.dtype})"

        where = f".slice({self.is_slice}).block({self.block_id}).offset({self.offset})"
        return (
            f"var owned: {self.vtype}, origin var: ( {describe(self.origin)} ), "
            f"slice var: ( {describe(self.slice)}{where} ), endpoint: {self.endpoint} "
        )


class Overview(Placement):
    """A :class:`Placement` with the methods of Fluid's ``VarsDistributed``.

    Like Fluid's table, these methods leave out tables sharded by id, averages and learning rates. They return
    slices in the order in which they were given.
    """

    def __init__(self, slices: Iterable[Slice], *, endpoints: Sequence[str], trainers: int = 1) -> None:
        self._given = tuple(slices)
        super().__init__(self._given, endpoints=endpoints, trainers=trainers)

    @property
    def distributed_vars(self) -> list[DistributedVar]:
        """The whole table of Fluid."""
        return [_view(s, s.vtype) for s in self._given if s.vtype is not None]

    def get_distributed_var_by_slice(self, var_name: str) -> DistributedVar | None:
        """Return the first slice that servers call ``var_name``, or None without one."""
        return next((v for v in self.distributed_vars if v.slice.name == var_name), None)

    def get_distributed_var_by_origin_and_ep(
        self, origin_var_name: str, endpoint: str
    ) -> DistributedVar | None:
        """Return the slice of a variable on one server, or None without one."""
        found = (
            v for v in self.distributed_vars if (v.origin.name, v.endpoint) == (origin_var_name, endpoint)
        )
        return next(found, None)

    def get_distributed_vars_by_vtypes(
        self, vtypes: Iterable[str], groupby: bool = False
    ) -> list[DistributedVar] | dict[str, list[DistributedVar]]:
        """Return the slices of kinds ``Param``, ``RemotePrefetch``, ``Optimizer``, on request by variable."""
        wanted = set(vtypes)
        found = [v for v in self.distributed_vars if v.vtype in wanted]
        if not groupby:
            return found
        groups: dict[str, list[DistributedVar]] = {}
        for var in found:
            groups.setdefault(var.origin.name, []).append(var)
        return groups

    def get_distributed_vars_by_ep(self, endpoint: str, vtype: str | None = None) -> list[DistributedVar]:
        """Return the slices on one server."""
        return [v for v in self.distributed_vars if v.endpoint == endpoint and vtype in (None, v.vtype)]

    def overview(self) -> str:
        """Return the table as text, a line for each slice."""
        return "\n".join(str(var) for var in self.distributed_vars)


def _view(one: Slice, vtype: str) -> DistributedVar:
    def struct(name: str, shape: tuple[int, ...], *, persistable: bool) -> VarStruct:
        return VarStruct(name, shape, one.dtype, VarType.LOD_TENSOR, 0, persistable)

    is_whole_name = one.name == one.origin
    return DistributedVar(
        struct(one.origin, one.whole, persistable=True),
        struct(one.name, one.shape, persistable=is_whole_name),
        one.is_slice,
        one.block,
        one.offset,
        vtype,
        one.endpoint,
    )
