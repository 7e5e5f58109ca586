"""``fluid.incubate.fleet.utils.fleet_util``: functions for scripts of pslib around a pass over their data.

As in Fluid, saves go below ``output_path``: all to ``DAY/PASS``, models to serve to ``DAY/delta-PASS`` and
``DAY/base``. Done files are read and written by Hadoop's command.
"""

from __future__ import annotations

import json
import logging
import math
import os
import re
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from paddlelike.core import Array, Scope, global_scope, scope_guard
from paddlelike.distributed.fleet import parameter_server, pslib
from paddlelike.distributed.fleet.hdfs import HDFSClient
from paddlelike.errors import SaveError
from paddlelike.executor import Executor
from paddlelike.framework import Program, Variable
from paddlelike.io import load_vars, save_inference_model, save_vars
from paddlelike.ops.kernels.areas import compute_roc_area

_logger = logging.getLogger(__name__)
_BUCKET_SPAN, _BUCKET_ERROR = 0.01, 0.05  # Fluid's
_HADOOP = "$HADOOP_HOME"


class FleetUtil:
    """Functions for the trainers of a ``fleet``: of pslib or, with ``mode="transpiler"``, of the transpiler.

    Every trainer calls these methods at the same place. Raises ValueError for another mode.
    """

    def __init__(self, mode: str = "pslib") -> None:
        fleets: dict[str, Any] = {"pslib": pslib.fleet, "transpiler": parameter_server.fleet}
        if mode not in fleets:
            raise ValueError(f"FleetUtil: mode is pslib or transpiler, not {mode!r}")
        self._fleet = fleets[mode]

    def rank0_print(self, s: object) -> None:
        """Print something in trainer 0."""
        if self._fleet.worker_index() == 0:
            print(s, flush=True)  # noqa: T201  (what it is for)

    def rank0_info(self, s: object) -> None:
        """Log something in trainer 0."""
        if self._fleet.worker_index() == 0:
            _logger.info("%s", s)

    def rank0_error(self, s: object) -> None:
        """Log an error in trainer 0."""
        if self._fleet.worker_index() == 0:
            _logger.error("%s", s)

    # Metrics

    def set_zero(
        self, var_name: str, scope: Scope | None = None, place: Any = None, param_type: str = "int64"
    ) -> None:
        """Set a variable to zeros of a type."""
        tensor = _scope(scope).var(var_name).get_tensor()
        tensor.set(np.zeros(tensor.shape(), param_type), place)

    def get_global_auc(
        self,
        scope: Scope | None = None,
        stat_pos: str = "_generated_var_2",
        stat_neg: str = "_generated_var_3",
    ) -> float | None:
        """Return the AUC of all trainers by the buckets of ``layers.auc``; None where there are none."""
        sums = self._sum_buckets(_scope(scope), stat_pos, stat_neg)
        return None if sums is None else _find_auc(*sums)

    def print_global_auc(
        self,
        scope: Scope | None = None,
        stat_pos: str = "_generated_var_2",
        stat_neg: str = "_generated_var_3",
        print_prefix: str = "",
    ) -> None:
        """Print :meth:`get_global_auc` in trainer 0."""
        self.rank0_print(f"{print_prefix} global auc = {self.get_global_auc(scope, stat_pos, stat_neg)}")

    def get_global_metrics(
        self,
        scope: Scope | None = None,
        stat_pos_name: str = "_generated_var_2",
        stat_neg_name: str = "_generated_var_3",
        sqrerr_name: str = "sqrerr",
        abserr_name: str = "abserr",
        prob_name: str = "prob",
        q_name: str = "q",
        pos_ins_num_name: str = "pos",
        total_ins_num_name: str = "total",
    ) -> list[Any]:
        """Return AUC, bucket error, MAE, RMSE, actual and predicted CTR, COPC, mean q and count.

        They cover all trainers. Where a variable is missing, all nine are None.
        """
        scope = _scope(scope)
        names = (sqrerr_name, abserr_name, prob_name, q_name, pos_ins_num_name, total_ins_num_name)
        if missing := [name for name in names if scope.find_var(name) is None]:
            self.rank0_print(f"not found {', '.join(missing)}")
            return [None] * 9
        buckets = self._sum_buckets(scope, stat_pos_name, stat_neg_name)
        if buckets is None:
            return [None] * 9
        square, absolute, chance, q, clicks, total = (self._sum(scope, name).ravel()[0] for name in names)
        actual, predicted = clicks / total, chance / total
        copc = actual / predicted if predicted > 1e-6 else 0.0
        error = _find_bucket_error(*buckets)
        errors = [_find_auc(*buckets), error, absolute / total, float(np.sqrt(square / total))]
        return [*errors, actual, predicted, copc, q / total, int(total)]

    def print_global_metrics(self, *args: Any, print_prefix: str = "", **how: Any) -> None:
        """Print :meth:`get_global_metrics` in trainer 0."""
        if len(args) > 9:
            *args, print_prefix = args  # type: ignore[assignment]
        found = self.get_global_metrics(*args, **how)
        if found[0] is not None:
            text = (
                "%s global AUC=%.6f BUCKET_ERROR=%.6f MAE=%.6f RMSE=%.6f Actural_CTR=%.6f Predicted_CTR=%.6f "
                "COPC=%.6f MEAN Q_VALUE=%.6f Ins number=%s"
            )
            self.rank0_print(text % (print_prefix, *found))

    def _sum(self, scope: Scope, name: str) -> Array:
        mine = np.array(scope.var(name).get_tensor())
        total = np.zeros_like(mine)
        self._fleet._role_maker._all_reduce(mine, total)
        return total

    def _sum_buckets(self, scope: Scope, positive: str, negative: str) -> tuple[Array, Array] | None:
        if scope.find_var(positive) is None or scope.find_var(negative) is None:
            self.rank0_print("not found auc bucket")
            return None
        first, second = (self._sum(scope, name) for name in (positive, negative))
        return first.reshape(-1, first.shape[-1])[0], second.reshape(-1, second.shape[-1])[0]

    # Saves and loads

    def load_fleet_model_one_table(self, table_id: int, path: str) -> None:
        """Let the servers load a table."""
        self._fleet.load_one_table(table_id, path)

    def load_fleet_model(self, path: str, mode: int = 0) -> None:
        """Let the servers load a save."""
        self._fleet.init_server(path, mode=mode)

    def save_fleet_model(self, path: str, mode: int = 0) -> None:
        """Save all variables, or the part that ``mode`` selects, as pslib's ``save_persistables`` does."""
        self._fleet.save_persistables(None, path, mode=mode)

    def load_model(self, output_path: str, day: int | str, pass_id: int | str) -> None:
        """Let the servers load ``DAY/PASS``."""
        self.load_fleet_model(f"{output_path}/{day}/{pass_id}/")

    def save_model(self, output_path: str, day: int | str, pass_id: int | str) -> None:
        """Save all variables to ``DAY/PASS``."""
        self._save(f"{output_path}/{day}/{pass_id}/", 0)

    def save_batch_model(self, output_path: str, day: int | str) -> None:
        """Save all variables to ``DAY/0``."""
        self._save(f"{output_path}/{day}/0/", 3)

    def save_delta_model(self, output_path: str, day: int | str, pass_id: int | str) -> None:
        """Save the changes of the tables to ``DAY/delta-PASS``."""
        self._save(f"{output_path}/{day}/delta-{pass_id}/", 1)

    def save_xbox_base_model(self, output_path: str, day: int | str) -> None:
        """Save to ``DAY/base``."""
        self._save(f"{output_path}/{day}/base/", 2)

    def save_cache_model(
        self, output_path: str, day: int | str, pass_id: int | str, mode: int = 1, **how: Any
    ) -> int:
        """Save a table to ``DAY/delta-PASS/000_cache``; return the number of its rows."""
        path = f"{output_path.rstrip('/')}/{_folder(day, pass_id)}/{how.get('table_id', 0):03}_cache"
        return int(self._fleet.save_cache_model(None, path, mode=mode, **how))

    def save_cache_base_model(self, output_path: str, day: int | str, **how: Any) -> int:
        """Save a table to ``DAY/base/000_cache``; return the number of its rows."""
        return self.save_cache_model(output_path, day, -1, 2, **how)

    def pull_all_dense_params(self, scope: Scope, program: Program) -> None:
        """Wait for all trainers; then saves contain the servers' parameters after the last steps."""
        self._fleet.barrier_worker()

    def save_paddle_params(
        self,
        executor: Executor,
        scope: Scope,
        program: Program,
        model_name: str,
        output_path: str,
        day: int | str,
        pass_id: int | str,
        hadoop_fs_name: str,
        hadoop_fs_ugi: str,
        hadoop_home: str = _HADOOP,
        var_names: Sequence[str] | None = None,
        save_combine: bool = True,
    ) -> None:
        """Save variables as the servers have them, and upload them to ``dnn_plugin`` of the pass."""
        chosen = [program.global_block().var(name) for name in var_names or ()]
        where = (".", model_name) if save_combine else (model_name, None)

        def save() -> None:
            local = program if self._fleet._origin_program is None else self._fleet._origin_program
            if program._is_distributed:  # which writes a file for each variable
                with tempfile.TemporaryDirectory(dir=".") as folder:
                    save_vars(executor, folder, program, vars=chosen)
                    load_vars(executor, folder, local, vars=chosen)
            save_vars(executor, where[0], local, vars=chosen, filename=where[1])

        self._save_dense(save, scope, model_name, output_path, day, pass_id,
                         _client(hadoop_home, hadoop_fs_name, hadoop_fs_ugi))  # fmt: skip

    def save_paddle_inference_model(
        self,
        executor: Executor,
        scope: Scope,
        program: Program,
        feeded_vars: Sequence[Variable],
        target_vars: Sequence[Variable],
        output_path: str,
        day: int | str,
        pass_id: int | str,
        hadoop_fs_name: str,
        hadoop_fs_ugi: str,
        hadoop_home: str = _HADOOP,
        save_combine: bool = True,
    ) -> None:
        """Save an inference model, and upload it to ``dnn_plugin`` of the pass."""
        names = [one.name for one in feeded_vars]

        def save() -> None:
            name, file = "inference_model", "params" if save_combine else None
            if program is self._fleet.main_program:
                self._fleet.save_inference_model(executor, name, names, target_vars)
            else:
                save_inference_model(name, names, target_vars, executor, program, params_filename=file)

        self._save_dense(save, scope, "inference_model", output_path, day, pass_id,
                         _client(hadoop_home, hadoop_fs_name, hadoop_fs_ugi))  # fmt: skip

    def _save(self, path: str, mode: int) -> None:
        self.rank0_print(f"going to save {path}")
        self._fleet.save_persistables(None, path, mode=mode)
        self.rank0_print(f"saved {path}")

    def _save_dense(
        self,
        save: Callable[[], None],
        scope: Scope,
        name: str,
        output_path: str,
        day: int | str,
        pass_id: int | str,
        client: HDFSClient,
    ) -> None:
        self._fleet.barrier_worker()
        if self._fleet.worker_index() == 0:
            with scope_guard(scope):
                save()
            where = f"{output_path}/{_folder(day, pass_id)}/dnn_plugin/"
            if Path(name).is_dir():
                _check(client.makedirs(where) and client.upload_dir(where, name), name, where)
            else:
                _check(client.makedirs(where) and client.upload(where, name), name, where)
        self._fleet.barrier_worker()

    # Done files

    def write_model_donefile(
        self,
        output_path: str,
        day: int | str,
        pass_id: int | str,
        xbox_base_key: int | str,
        hadoop_fs_name: str,
        hadoop_fs_ugi: str,
        hadoop_home: str = _HADOOP,
        donefile_name: str = "donefile.txt",
    ) -> None:
        """Record in ``donefile.txt`` that a pass was saved, unless it is recorded already."""
        path = f"{output_path.rstrip('/')}/{day}/{0 if str(pass_id) == '-1' else pass_id}/"
        line = f"{day}\t{int(xbox_base_key)}\t{path}\t{pass_id}\t0"

        def is_new(lines: list[str]) -> bool:
            return all((row[0], row[3]) != (str(day), str(pass_id)) for row in map(_split, lines))

        self._append(
            _client(hadoop_home, hadoop_fs_name, hadoop_fs_ugi), output_path, donefile_name, line, is_new
        )

    def write_xbox_donefile(
        self,
        output_path: str,
        day: int | str,
        pass_id: int | str,
        xbox_base_key: int | str,
        data_path: str | Sequence[str],
        hadoop_fs_name: str,
        hadoop_fs_ugi: str,
        monitor_data: Mapping[str, Any] | None = None,
        hadoop_home: str = _HADOOP,
        donefile_name: str | None = None,
    ) -> None:
        """Record in ``xbox_patch_done.txt`` or ``xbox_base_done.txt`` that a pass can be served."""
        is_base = str(pass_id) == "-1"
        path = f"{output_path.rstrip('/')}/{_folder(day, pass_id)}/"
        found = {
            "id": str(xbox_base_key if is_base else int(time.time())),
            "key": str(xbox_base_key),
            "input": hadoop_fs_name + path.removeprefix("hdfs:").removeprefix("afs:").rstrip("/") + "/000",
            "record_count": "111111",
            "partition_type": "2",
            "job_name": "default_job_name",
            "ins_tag": "feasign",
            "ins_path": data_path if isinstance(data_path, str) else ",".join(data_path),
            "job_id": os.environ.get("JOB_ID", ""),
            "monitor_data": "",
            "monitor_path": f"{output_path.rstrip('/')}/monitor/{day}.txt",
            "mpi_size": str(self._fleet.worker_num()),
        }

        def is_new(lines: list[str]) -> bool:
            if not lines:
                return True
            last = json.loads(lines[-1])["input"].split("/")
            return (int(last[-3]), _pass_of(last[-2])) < (int(day), int(pass_id))

        name = donefile_name or f"xbox_{'base' if is_base else 'patch'}_done.txt"
        client = _client(hadoop_home, hadoop_fs_name, hadoop_fs_ugi)
        self._append(client, output_path, name, json.dumps(found), is_new)

    def write_cache_donefile(
        self,
        output_path: str,
        day: int | str,
        pass_id: int | str,
        key_num: int | str,
        hadoop_fs_name: str,
        hadoop_fs_ugi: str,
        hadoop_home: str = _HADOOP,
        donefile_name: str = "sparse_cache.meta",
        **how: Any,
    ) -> None:
        """Write a file with the number of rows beside a cache, unless the file exists."""
        path = f"{output_path.rstrip('/')}/{_folder(day, pass_id)}/{how.get('table_id', 0):03}_cache"
        text = f"file_prefix:part\npart_num:{how.get('file_num', 16)}\nkey_num:{int(key_num)}"
        client = _client(hadoop_home, hadoop_fs_name, hadoop_fs_ugi)
        self._append(client, path, donefile_name, text, lambda lines: not lines)

    def get_last_save_model(
        self, output_path: str, hadoop_fs_name: str, hadoop_fs_ugi: str, hadoop_home: str = _HADOOP
    ) -> list[Any]:
        """Return day, pass, path and key of the last save; if there is none, -1, -1, "" and the current
        time.
        """
        client = _client(hadoop_home, hadoop_fs_name, hadoop_fs_ugi)
        if not (lines := _read(client, f"{output_path}/donefile.txt")):
            return [-1, -1, "", int(time.time())]
        day, key, path, pass_id, *_ = _split(lines[-1])
        return [int(day), int(pass_id), path, int(key)]

    def get_last_save_xbox(
        self, output_path: str, hadoop_fs_name: str, hadoop_fs_ugi: str, hadoop_home: str = _HADOOP
    ) -> list[Any]:
        """Return day, pass, path and key of the last patch; if there is none, -1, -1, "" and the current
        time.
        """
        client = _client(hadoop_home, hadoop_fs_name, hadoop_fs_ugi)
        if not (lines := _read(client, f"{output_path}/xbox_patch_done.txt")):
            return [-1, -1, "", int(time.time())]
        parts = (found := json.loads(lines[-1]))["input"].split("/")
        return [int(parts[-3]), _pass_of(parts[-2]), "/".join(parts[:-1]), int(found["key"])]

    def get_last_save_xbox_base(
        self, output_path: str, hadoop_fs_name: str, hadoop_fs_ugi: str, hadoop_home: str = _HADOOP
    ) -> list[Any]:
        """Return day, path and key of the last base; if there is none, -1, -1 and the current time."""
        client = _client(hadoop_home, hadoop_fs_name, hadoop_fs_ugi)
        if not (lines := _read(client, f"{output_path}/xbox_base_done.txt")):
            return [-1, -1, int(time.time())]
        parts = (found := json.loads(lines[-1]))["input"].split("/")
        return [int(parts[-3]), "/".join(parts[:-1]), int(found["key"])]

    def get_online_pass_interval(
        self,
        days: str,
        hours: str,
        split_interval: int | str,
        split_per_pass: int | str,
        is_data_hourly_placed: bool,
    ) -> list[list[str]]:
        """Return the parts of each pass of a day, such as "0005"; a part has ``split_interval`` minutes.

        ``hours`` has a shell's form: "{0..23}", "{0,6,12}" or "6 7 8". Its first and last number are used.
        ``days`` has no effect. Raises ValueError for other ``hours``.
        """
        if re.fullmatch(r"(\s*+(\d++|\{\d+(\.\.\d+|(,\d+)*)\}))+\s*", hours) is None:
            raise ValueError(
                f"hours={hours!r}: expected numbers, {{0..23}} or {{0,6,12}}, with spaces between"
            )
        first, *_, last = [*map(int, re.findall(r"\d+", hours))] * 2
        minutes = range(0, 24 * 60, int(split_interval))
        form = "{:02}" if is_data_hourly_placed else "{:02}{:02}"
        parts = [form.format(*divmod(one, 60)) for one in minutes if first <= one // 60 <= last]
        step = int(split_per_pass)
        return [parts[at : at + step] for at in range(0, len(parts) - step + 1, step)]

    def _append(
        self, client: HDFSClient, folder: str, name: str, line: str, is_new: Callable[[list[str]], bool]
    ) -> None:
        """Let trainer 0 add a line to a file of Hadoop, unless the file already has it."""
        if self._fleet.worker_index() == 0:
            lines = _read(client, f"{folder}/{name}")
            if is_new(lines):
                Path(name).write_text("\n".join([*lines, line, ""]))
                _check(client.makedirs(folder) and client.upload(folder, name, overwrite=True), name, folder)
            self.rank0_info(f"{name}: {line if is_new(lines) else 'is there already'}")
        self._fleet.barrier_worker()


def _scope(given: Scope | None) -> Scope:
    return global_scope() if given is None else given


def _folder(day: int | str, pass_id: int | str) -> str:
    return f"{day}/base" if str(pass_id) == "-1" else f"{day}/delta-{pass_id}"


def _pass_of(folder: str) -> int:
    return -1 if folder == "base" else int(folder.rpartition("-")[2])


def _split(line: str) -> list[str]:
    return line.split("\t")


def _client(home: str, name: str, ugi: str) -> HDFSClient:
    return HDFSClient(home, {"fs.default.name": name, "hadoop.job.ugi": ugi})


def _read(client: HDFSClient, path: str) -> list[str]:
    return client.cat(path).splitlines()


def _check(done: bool, name: str, folder: str) -> None:
    if not done:
        raise SaveError(f"{name} was not copied to {folder}", hint="the log has hadoop's messages")


def _find_auc(positive: Array, negative: Array) -> float:
    """Return the area under the ROC curve of buckets by rising prediction; 0.5 where one class is missing."""
    if not (positive.any() and negative.any()):
        return 0.5
    return compute_roc_area(positive.astype(np.int64), negative.astype(np.int64))


def _find_bucket_error(positive: Array, negative: Array) -> float:
    """Return the error of the predicted CTR over groups of buckets with enough clicks."""
    last, shows, chances, clicks, errors, counted = -1.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for index, (hit, miss) in enumerate(zip(positive.tolist(), negative.tolist(), strict=True)):
        chance = index / len(positive)
        if abs(chance - last) > _BUCKET_SPAN:
            last, shows, chances, clicks = chance, 0.0, 0.0, 0.0
        shows, chances, clicks = shows + hit + miss, chances + chance * (hit + miss), clicks + hit
        expected = chances / shows if shows else 0.0
        if expected and math.sqrt((1 - expected) / (expected * shows)) < _BUCKET_ERROR:
            errors += abs(clicks / shows / expected - 1) * shows
            counted, last = counted + shows, -1.0
    return errors / counted if counted else 0.0
