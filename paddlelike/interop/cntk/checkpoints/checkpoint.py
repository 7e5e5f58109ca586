"""Read a checkpoint of CNTK's trainer, continue its training here, and write it back for CNTK.

``FILE`` is the trainer's function: a tuple of the model, its loss and metric, and their sums. ``FILE.ckp`` is
a dictionary: the learners, and the state of the script and the readers.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from paddlelike.core import Array, Scope, global_scope
from paddlelike.errors import FormatError, LoadError, MissingFileError, SaveError
from paddlelike.formats.cntk.dictionary import SizeT, decode
from paddlelike.framework import Program, Variable
from paddlelike.interop.cntk.checkpoints.learner import CntkLearner, read_learner, write_learner
from paddlelike.interop.cntk.checkpoints.schedule import follow_schedule
from paddlelike.interop.cntk.checkpoints.tree import (
    LOSS,
    METRIC,
    as_external,
    find_counts,
    find_differences,
    find_sum,
    order_parameters,
)
from paddlelike.interop.cntk.checkpoints.updates import (
    Update,
    check_kinds,
    check_learner,
    collect_updates,
    convert_rate,
    count_updates,
    decode_state,
    encode_state,
    list_rates,
    read_value,
)
from paddlelike.interop.cntk.function import read_function
from paddlelike.interop.cntk.load import put_values, read_bytes
from paddlelike.interop.cntk.origin import renew_leaf
from paddlelike.interop.cntk.reading.build import build_program
from paddlelike.interop.cntk.save import write_files
from paddlelike.lazy import dataclass
from paddlelike.storage.problems import raises_own_errors

Path = str | os.PathLike[str]


@dataclass
class CntkCheckpoint:
    """A checkpoint of CNTK's trainer.

    Attributes
    ----------
    program
        Computes the model, the loss and the metric; its dropout is on, as in training.
    startup_program
        Receives from ``minimize`` the operators for initial values.
    feeds
        The names of the inputs: features and labels.
    outputs
        The model's outputs.
    loss, metric
        Means over a minibatch; ``metric`` is None where the trainer had none.
    learner
        The state of the learner.
    batch_size
        The samples of the minibatch that the learner's state was converted for.
    differences
        The differences between training here and in CNTK: random numbers, and running variances.
    external_state, distributed_state
        The state of the script and the readers, and of each worker.
    """

    program: Program
    startup_program: Program
    feeds: list[str]
    outputs: list[Variable]
    loss: Variable
    metric: Variable | None
    learner: CntkLearner
    batch_size: float
    differences: list[str]
    external_state: dict[str, Any]
    distributed_state: dict[str, Any]
    _tree: dict[str, Any]
    _state: dict[str, Any]
    _follows: bool = False  # whether the program computes the rates of the schedule
    _unit_gain: bool = True

    def restore(self, scope: Scope | None = None, *, unit_gain: bool = True) -> None:
        """Give the optimizer, whose operators ``minimize`` has appended, the state of the learner.

        The learning rate comes from the checkpoint, as in CNTK, unless the program computes it. If its
        schedule still changes, operators are added to the program that count samples and follow the schedule.
        For the same steps, the rate here is ``learning_rate * (1 - mu)`` for momentum and ``learning_rate /
        batch_size`` for Adam. The script sets the decay rates; CNTK's default for Adam's second one is
        ``0.9999986111120757 ** batch_size``.

        Parameters
        ----------
        scope
            Holds the values. None means the current scope.
        unit_gain
            Whether the learner had CNTK's default, momentum with unit gain.

        Raises
        ------
        LoadError
            The optimizer has another kind, or trains other parameters; nothing changes.
        NotInitializedError
            The startup program was not run.
        """
        values = global_scope() if scope is None else scope
        updates = collect_updates(self.program)
        if set(updates) != set(self.learner.arrays):
            raise LoadError(
                f"the program updates {_list(updates)}, the checkpoint {_list(self.learner.arrays)}",
                hint="call minimize(checkpoint.loss, checkpoint.startup_program) first",
            )
        check_kinds(updates, LoadError)
        batch = self.batch_size
        written = {name for op in self.program.global_block().ops for name in op.output_arg_names}
        new: dict[str, Array] = {}
        free: dict[str, list[Update]] = {}  # the rates that the program does not compute, and their readers
        reference = self.learner.reference

        def convert(op: Update, rate: float) -> float:
            return convert_rate(op, rate, batch=batch, reference=reference, unit_gain=unit_gain)

        for name, variable, rate in list_rates(updates, values):
            op = updates[name]
            if variable not in written or self._follows:
                rate = convert(op, self.learner.learning_rate)
                new[variable] = np.full_like(read_value(values, variable), rate)
                free.setdefault(variable, []).append(op)
            count = self.learner.smoothed_count
            new |= decode_state(
                op, self.learner.arrays[name], count, rate=rate, batch=batch, unit_gain=unit_gain
            )
        check_learner(updates, self.learner.arrays, self.learner.smoothed_count)
        for name in new:
            read_value(values, name)  # before the first one is set
        schedule = follow_schedule(self.loss, free, self.learner, convert) if free else {}
        self._follows, self._unit_gain = self._follows or bool(schedule), unit_gain
        for name, array in (new | schedule).items():
            values.var(name).get_tensor().set(array)

    def save(
        self,
        file: Path,
        external_state: Mapping[str, Any] | None = None,
        *,
        samples: int = 0,
        minibatches: int = 0,
        scope: Scope | None = None,
    ) -> None:
        """Write a checkpoint from which CNTK's trainer continues; both files or none are written.

        Parameters
        ----------
        file
            The name of the first file; the second is ``<file>.ckp``.
        external_state
            The state of the script and the readers. None means the state that was read.
        samples, minibatches
            The numbers of samples and minibatches since the checkpoint was read.
        scope
            Holds the values. None means the current scope.

        Raises
        ------
        FormatError
            ``external_state`` holds a type that CNTK's dictionaries do not have.
        SaveError
            The optimizer has a kind that CNTK does not have, or a file cannot be written.
        """
        values = global_scope() if scope is None else scope
        tree = copy.copy(self._tree)
        counts = find_counts(tree)
        tree["inputs"] = [
            renew_leaf(one, values, samples if one["uid"] in counts else 0) for one in tree["inputs"]
        ]
        updates = collect_updates(self.program)
        check_kinds(updates, SaveError)
        rates = {name: rate for name, _, rate in list_rates(updates, values)}
        batch = self.batch_size
        arrays = dict(self.learner.arrays)
        for name in arrays.keys() & updates.keys():
            arrays[name] = encode_state(
                updates[name], values, rate=rates[name], batch=batch, unit_gain=self._unit_gain
            )
        learner = replace(
            self.learner,
            sample_count=self.learner.sample_count + samples,
            minibatch_count=self.learner.minibatch_count + minibatches,
            smoothed_count=count_updates(updates, values) if updates else self.learner.smoothed_count,
            arrays=arrays,
        )
        state = dict(self._state)
        entry = state["Learners"][0]
        written = {**write_learner(learner)}
        if "localLearners" in entry:
            total = entry["totalNumberOfSamplesSeen"] + samples
            written = {**entry, "localLearners": written, "totalNumberOfSamplesSeen": SizeT(total)}
        state["Learners"] = [written]
        if external_state is not None:
            state["ExternalState"] = as_external(external_state)
        write_files(file, tree, state)


@raises_own_errors
def import_cntk_checkpoint(
    file: Path, *, batch_size: int | None = None, scope: Scope | None = None
) -> CntkCheckpoint:
    """Read a checkpoint of CNTK's trainer: ``file`` and ``<file>.ckp``.

    Parameters go into the scope under their uids, all or none. To train on like CNTK, ``minimize`` the loss
    with the optimizer that corresponds to the learner, run the startup program, and call
    :meth:`CntkCheckpoint.restore`.

    Parameters
    ----------
    file
        The first file, such as ``myModel.dnn``.
    batch_size
        The samples of a minibatch. None means the average of those before the checkpoint. Adam's steps and
        the running averages of batch normalization depend on it in CNTK.
    scope
        The scope that receives the values; None for the current one.

    Returns
    -------
    CntkCheckpoint
        The program, its optimizer's state and the position in the training.

    Raises
    ------
    MissingFileError
        One of the files is not there.
    FormatError
        A file is damaged.
    UnsupportedError
        The model has operations that programs do not express, or that are not trained here; all are listed.

    See Also
    --------
    fluid.export_cntk, fluid.export_cntk_checkpoint, fluid.import_cntk, fluid.import_onnx
    fluid.export_onnx

    >>> import paddlelike as fluid, tempfile
    >>> main, startup = fluid.Program(), fluid.Program()
    >>> with fluid.unique_name.guard(), fluid.program_guard(main, startup):
    ...     x, y = fluid.data("x", [None, 4]), fluid.data("y", [None, 2])
    ...     out = fluid.layers.fc(x, 2)
    ...     loss = fluid.layers.mean(fluid.layers.square_error_cost(out, y))
    ...     _ = fluid.optimizer.SGD(0.1).minimize(loss)
    >>> with fluid.scope_guard(fluid.Scope()), tempfile.TemporaryDirectory() as home:
    ...     _ = fluid.Executor().run(startup)
    ...     _ = fluid.export_cntk_checkpoint(main, f"{home}/my.dnn", ["x", "y"], [out], loss)
    ...     found = fluid.import_cntk_checkpoint(f"{home}/my.dnn")
    >>> found.feeds, round(found.learner.learning_rate, 6)
    (['x', 'y'], 0.1)
    """
    path = os.fspath(file)
    tree = decode(read_bytes(path))
    try:
        state = decode(read_bytes(f"{path}.ckp"))
    except MissingFileError as error:
        raise MissingFileError(
            f"{error.message}: {path} alone is not a checkpoint",
            hint="import_cntk opens it as a model, without the state of training",
        ) from None
    function = read_function(tree)
    _check_state(state, f"{path}.ckp")
    learner = read_learner(state["Learners"][0], order_parameters(tree, function), f"{path}.ckp: the learner")
    batch = find_batch(learner, batch_size)
    built = build_program(function, batch=batch, title=path)
    sums = {name: find_sum(function, name) for name in (LOSS, METRIC)}
    at = sums[LOSS]
    if at is None or at < 1:
        raise FormatError(f"{path} has no output {LOSS}: it is a model without a trainer's loss")
    loss = _mean(built.outputs[at - 1], "loss")
    spot = sums[METRIC]
    metric = None if spot is None else _mean(built.outputs[spot - 1], "metric")
    put_values(built, scope)
    return CntkCheckpoint(
        built.program,
        built.startup,
        built.feeds,
        built.outputs[: at - 1],
        loss,
        metric,
        learner,
        batch,
        find_differences(function),
        state["ExternalState"],
        state["DistributedState"],
        tree,
        state,
    )


def find_batch(learner: CntkLearner, given: int | None) -> float:
    """Return the number of samples in a minibatch: the given one, or the average before the checkpoint."""
    if given is not None:
        return float(given)
    return learner.sample_count / max(learner.minibatch_count, 1) or 1.0


def _mean(per_sample: Variable, name: str) -> Variable:
    """Append to a variable's program the mean over the minibatch."""
    block = per_sample.block
    while block.has_var(name):
        name += "_"
    mean = block.create_var(name=name, dtype=per_sample.dtype)
    block.append_op(type="mean", inputs={"X": per_sample}, outputs={"Out": mean})
    return mean


def _check_state(state: Mapping[str, Any], where: str) -> None:
    kinds = {"Version": int, "Learners": list, "ExternalState": dict, "DistributedState": dict}
    bad = [key for key, kind in kinds.items() if not isinstance(state.get(key), kind)]
    if bad:
        raise FormatError(f"{where} lacks {', '.join(bad)}", hint="copy or save it again")
    if len(state["Learners"]) != 1:
        raise FormatError(
            f"{where} has {len(state['Learners'])} learners",
            hint="use paddlelike.convert for the arrays; a checkpoint has one learner for all parameters",
        )


def _list(names: Iterable[str]) -> str:
    found = sorted(names)
    return ", ".join(found[:8]) + ", ..." * (len(found) > 8) if found else "no parameters"
