"""The placement of variables on parameter servers: kinds, slices, a job's placement, a server's table."""

from __future__ import annotations

from paddlelike.distributed.placement.overview import DistributedVar, Overview
from paddlelike.distributed.placement.placement import Placement
from paddlelike.distributed.placement.server_table import (
    DELTA,
    SEEN,
    TRAINER_SUFFIX,
    Entry,
    ServerTable,
    base_name,
    rows_at,
    values_at,
)
from paddlelike.distributed.placement.slices import TABLE_FOLDER, Kind, Slice, shard_name

__all__ = [
    "DELTA",
    "SEEN",
    "TABLE_FOLDER",
    "TRAINER_SUFFIX",
    "DistributedVar",
    "Entry",
    "Kind",
    "Overview",
    "Placement",
    "ServerTable",
    "Slice",
    "base_name",
    "rows_at",
    "shard_name",
    "values_at",
]
