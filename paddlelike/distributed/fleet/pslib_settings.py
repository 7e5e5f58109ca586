"""The settings of pslib's servers and trainers: ``fleet_desc``, a ``PSParameter`` of Paddle's ``ps.proto``.

Tables and their defaults are as in 1.8.5's ``incubate/fleet/parameter_server/pslib`` (``node.py``,
``optimizer_factory.py``); ``ps.txt`` has the messages.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from enum import IntEnum
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, NamedTuple

from paddlelike.errors import FormatError
from paddlelike.foundation.protobuf import Message, MessageClass, make_classes
from paddlelike.foundation.text_tables import read_table
from paddlelike.framework import Program

_VALUES_ONLY: Final = "DownpourSparseValueAccessor"
_UNIT: Final = "DownpourUnitAccessor"
_RULES: Final = {"naive", "adagrad", "adam"}
_SUMS: Final = (".batch_size", ".batch_square_sum", ".batch_sum")  # of data_norm
_FILE_SYSTEM: Final = {
    "uri": "hdfs://your_hdfs_uri", "user": "your_hdfs_user", "passwd": "your_hdfs_passwd",
    "hadoop_bin": "$HADOOP_HOME/bin/hadoop",
}  # fmt: skip
#: Settings of a strategy that ``fleet._opt_info`` repeats.
REPEATED: Final[dict[str, Any]] = {
    "use_cvm": False, "no_cvm": False, "scale_datanorm": -1, "stat_var_names": [], "local_tables": [],
    "async_tables": [], "check_nan_var_names": [], "dump_fields": [], "dump_file_num": 16,
    "dump_fields_path": "", "dump_param": [], "adjust_ins_weight": {}, "copy_table": {}, "loss_names": [],
    "device_worker": "DownpourSGD",
}  # fmt: skip


class Lookup(NamedTuple):
    """A look-up in a growing table: the names of its table, of its ids and of its rows."""

    table: str
    ids: str
    rows: str


class _TableType(IntEnum):
    PS_SPARSE_TABLE = 0
    PS_DENSE_TABLE = 1


class _FsApiType(IntEnum):
    HDFS = 0
    AFS = 1


@lru_cache(maxsize=1)
def _message() -> MessageClass:
    table = read_table("paddlelike.distributed.fleet", "ps.txt")
    enums = {"TableType": _TableType, "FsClientParameter.FsApiType": _FsApiType}
    return make_classes(table, "paddle", "proto2", enums)("PSParameter")


class Settings:
    """What a strategy and its ``fleet_desc_file`` say of the tables that a program looks up.

    ``message`` is the ``PSParameter``. Raises FormatError where the file is not one.
    """

    def __init__(self, strategy: Mapping[str, Any], lookups: list[Lookup]) -> None:
        from google.protobuf import text_format

        self.message: Message = _message()()
        self.strategy, self._lookups = strategy, lookups
        file = strategy.get("fleet_desc_file")
        if file is not None:
            try:
                text_format.Parse(Path(file).read_text(encoding="utf-8"), self.message)
            except (text_format.ParseError, UnicodeDecodeError) as problem:
                raise FormatError(
                    f"fleet.minimize: {file} does not describe a job of pslib: {problem}",
                    hint='str(program._fleet_opt["fleet_desc"]) gives an example',
                ) from None
        self.tables = list(dict.fromkeys(one.table for one in lookups))
        server = self.message.server_param.downpour_server_param
        if file is None:
            _fill(server.service_param, {})
        self._given = {one.table_id for one in server.downpour_table_param}
        for table_id, name in enumerate(self.tables):
            if table_id not in self._given:
                own = {key: value for key, value in strategy.items() if key.startswith("sparse_")}
                own |= strategy.get(name) or {}
                _add_sparse_table(server.downpour_table_param.add(table_id=table_id), own)
                if "sparse_embedx_dim" in own:
                    self._given.add(table_id)

    @property
    def has_counts(self) -> bool:
        """Whether the network gets all columns of a row, including show and click."""
        kind = self.find_accessor(0).accessor_class if self.tables else ""
        return bool(self.strategy.get("use_cvm") or self.strategy.get("no_cvm")) or kind == _VALUES_ONLY

    def find_accessor(self, table_id: int) -> Message:
        """Return the settings of the rows of a table."""
        return _find(self.message.server_param.downpour_server_param.downpour_table_param, table_id).accessor

    def find_width(self, name: str) -> int | None:
        """Return how many columns of a table the network gets, or None if no setting tells."""
        table_id = self.tables.index(name)
        fewer = 0 if self.has_counts else 2
        return self.find_accessor(table_id).fea_dim - fewer if table_id in self._given else None

    def set_width(self, name: str, width: int) -> None:
        """Set the width of a table without settings from the number of columns that the network gets."""
        table_id = self.tables.index(name)
        if table_id not in self._given:
            accessor = self.find_accessor(table_id)
            fea_dim = width + (0 if self.has_counts else 2)
            more = 0 if accessor.accessor_class == _VALUES_ONLY else 3
            if fea_dim >= more:
                accessor.fea_dim, accessor.embedx_dim = fea_dim, fea_dim - more

    def describe(self, program: Program, others: Iterable[Program], updates: Any) -> dict[str, Any]:
        """Return pslib's ``fleet._opt_info`` of ``minimize``, and complete the message.

        Growing tables come first, then a table of all dense parameters, and one of data_norm's sums.
        """
        block, message = program.global_block(), self.message
        pairs = [(one.name, gradient.name) for one, gradient in updates if one.name not in self.tables]
        sums = sorted(one for one in pairs if one[0].endswith(_SUMS))
        server = message.server_param.downpour_server_param
        worker = message.trainer_param[0] if message.trainer_param else message.trainer_param.add()
        for table_id, name in enumerate(self.tables):
            if _find(worker.sparse_table, table_id) is None:
                found = [one for one in self._lookups if one.table == name]
                found.sort(key=lambda one: not block.has_var(f"{one.rows}@GRAD"))
                worker.sparse_table.add(
                    table_id=table_id,
                    slot_key=[one.ids for one in found],
                    slot_value=[one.rows for one in found],
                    slot_gradient=[f"{one.rows}@GRAD" for one in found if block.has_var(f"{one.rows}@GRAD")],
                )
        dense = {"dense": sorted(set(pairs) - set(sums))} | ({"datanorm": sums} if sums else {})
        for table_id, (kind, some) in enumerate(dense.items(), len(self.tables)):
            table = _find(server.downpour_table_param, table_id)
            if table is None:
                table = server.downpour_table_param.add(table_id=table_id)
                _add_dense_table(table, kind, self.strategy.get(f"{kind}_table") or {})
            table.accessor.fea_dim = sum(abs(math.prod(block.var(name).shape)) for name, _ in some)
            if _find(worker.dense_table, table_id) is None:
                names, gradients = ([one[at] for one in some] for at in (0, 1))
                worker.dense_table.add(
                    table_id=table_id, dense_variable_name=names, dense_gradient_variable_name=gradients
                )
        if not worker.skip_op:
            worker.skip_op.extend(["lookup_table", "lookup_table_grad"])
        client = message.fs_client_param
        for key, value in _FILE_SYSTEM.items():
            setattr(client, key, self.strategy.get(f"fs_{key}") or getattr(client, key) or value)
        ids = list(range(len(self.tables) + len(dense)))
        sparse_ids, dense_ids = ids[: len(self.tables)], ids[len(self.tables) :]
        config = {
            "pull_sparse": sparse_ids,
            "push_sparse": sparse_ids,
            "pull_dense": dense_ids,
            "push_dense": dense_ids,
        }
        first = server.downpour_table_param[0].accessor.accessor_class
        info = {key: self.strategy.get(key, value) for key, value in REPEATED.items()}
        programs = [str(id(one)) for one in (program, *others)]
        return info | {
            "trainer": "DistMultiTrainer",
            "optimizer": "DownpourSGD",
            "fleet_desc": message,
            "worker_skipped_ops": list(worker.skip_op),
            "program_configs": dict.fromkeys(programs, config),
            "program_id_to_worker": dict.fromkeys(programs, SimpleNamespace(get_desc=lambda: worker)),
            "no_cvm": info["no_cvm"] or first == _VALUES_ONLY,
            "dump_slot": first in {"DownpourCtrAccessor", "DownpourCtrDoubleAccessor", _UNIT},
            "dump_converter": "",
        }


def _find(tables: Iterable[Message], table_id: int) -> Message:
    return next((one for one in tables if one.table_id == table_id), None)


def _fill(message: Message, own: Mapping[str, Any], prefix: str = "") -> None:
    """Set every plain field of a message to the value in ``own``, else to its default."""
    for field in message.DESCRIPTOR.fields:
        if field.name == "weight_bounds":
            message.weight_bounds.extend(own.get(f"{prefix}weight_bounds", (-10, 10)))
        elif not field.message_type:
            setattr(message, field.name, own.get(prefix + field.name, field.default_value))


def _add_sparse_table(table: Message, own: Mapping[str, Any]) -> None:
    table.type = _TableType.PS_SPARSE_TABLE
    table.table_class = own.get("sparse_table_class", "DownpourSparseTable")
    table.shard_num = own.get("sparse_shard_num", 1000)
    table.compress_in_save = own.get("sparse_compress_in_save", True)
    table.enable_sparse_table_cache = own.get("sparse_enable_cache", True)
    table.sparse_table_cache_rate = own.get("sparse_cache_rate", 0.00055)
    table.sparse_table_cache_file_num = own.get("sparse_cache_file_num", 16)
    accessor = table.accessor
    kind = accessor.accessor_class = own.get("sparse_accessor_class", "DownpourCtrAccessor")
    accessor.embedx_dim = own.get("sparse_embedx_dim", 8)
    accessor.fea_dim = accessor.embedx_dim + (0 if kind == _VALUES_ONLY else 3)
    for param in (1, 2):
        accessor.table_accessor_save_param.add(
            param=param,
            converter=own.get("sparse_converter", "(scripts/xbox_compressor_mf.py | bin/xbox_pb_converter)"),
            deconverter=own.get(
                "sparse_deconverter", "(bin/xbox_pb_deconverter | scripts/xbox_decompressor_mf.awk)"
            ),
        )
    rules = {
        _VALUES_ONLY: {"": "sparse_commonsgd_param"},
        _UNIT: {f"{one}_": f"{one}_sgd_param" for one in ("embed", "embedx")},
    }
    for prefix, name in rules.get(kind, {}).items():
        rule = getattr(accessor, name)
        rule.name = own.get(f"{prefix}sparse_optimizer", "adam")
        if rule.name in _RULES:
            _fill(getattr(rule, rule.name), own, f"{prefix}sparse_")
    if kind == _VALUES_ONLY:
        return
    accessor.embedx_threshold = own.get("sparse_embedx_threshold", 10)
    _fill(accessor.downpour_accessor_param, own, "sparse_")
    if kind == _UNIT:
        accessor.downpour_accessor_param.ClearField("ssd_unseenday_threshold")
    else:
        _fill(accessor.sparse_sgd_param, own, "sparse_")


def _add_dense_table(table: Message, kind: str, own: Mapping[str, Any]) -> None:
    table.type = _TableType.PS_DENSE_TABLE
    table.table_class = own.get(f"{kind}_table_class", "DownpourDenseTable")
    table.compress_in_save = own.get(f"{kind}_compress_in_save", True)
    table.accessor.accessor_class = own.get(f"{kind}_accessor_class", "DownpourDenseValueAccessor")
    rule = table.accessor.dense_sgd_param
    if kind == "datanorm":
        rule.name = own.get("datanorm_operation", "summary")
        rule.summary.summary_decay_rate = own.get("datanorm_decay_rate", 0.999999)
    else:
        rule.name = own.get("dense_optimizer", "adam")
        _fill(
            rule.adam, {key.replace("_decay", "_decay_rate"): value for key, value in own.items()}, "dense_"
        )
        rule.naive.learning_rate = own.get("dense_naive_lr", 0.0002)
