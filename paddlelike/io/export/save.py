"""Save a model for prediction: a pruned program with its parameters, in a directory."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from paddlelike.executor.run import Executor
from paddlelike.foundation.warn import warn_user
from paddlelike.framework import Program, Variable
from paddlelike.framework.codec.encode import build_message
from paddlelike.framework.environment import PADDLE_VERSION, add_operator_versions
from paddlelike.io import asynchronous
from paddlelike.io.calls import check_executor, fingerprint, get_program, get_program_persistable_vars
from paddlelike.io.export.program import (
    append_scales,
    check_feeds,
    clear_devices,
    make_inference_program,
    warn_of_metrics,
    warn_of_updated_feeds,
)
from paddlelike.io.partition import get_partition
from paddlelike.io.save.chosen import add_to
from paddlelike.io.save.encoded import no_value_explained
from paddlelike.storage.location import locate
from paddlelike.storage.options import Durability, SaveOptions

if TYPE_CHECKING:
    from paddlelike.framework.typing import ProgramLike


def save_inference_model(
    dirname: str | os.PathLike[str],
    feeded_var_names: Sequence[str] | str,
    target_vars: Sequence[Variable] | Variable,
    executor: Executor,
    main_program: ProgramLike | None = None,
    model_filename: str | None = None,
    params_filename: str | None = None,
    export_for_deployment: bool = True,
    program_only: bool = False,
    *,
    durability: Durability = SaveOptions.durability,
) -> list[str]:
    """Save the part of a program that computes ``target_vars``, in the form of Paddle's inference tools.

    As in Fluid, each call appends one ``scale`` operator per target to ``main_program``. The name of its
    output is the name under which the target is fetched.

    The program and its parameters replace the files of an earlier export in one transaction; files that only
    the earlier export had are not deleted.

    Parameters
    ----------
    executor
        The executor that saves the values of the current scope.
    main_program
        The program; None for the default main program.
    dirname
        The directory, made when missing; or a URL such as ``s3://bucket/model``, see the extra "remote".
    feeded_var_names
        The names of the variables that are fed when the model runs.
    target_vars
        The variables that the model computes.
    model_filename
        The file of the program; None for ``__model__``.
    params_filename
        One file for all parameters; None for one file each.
    export_for_deployment
        False to save the whole program, as ``<model>.main_program``, and all its persistables; the feeds are
        then ignored, as in Fluid.
    program_only
        Whether to save the program without values.
    durability
        ``"atomic"``: after a power cut, the new files or the earlier ones are there, whole; ``"process"``:
        this holds only when a process dies; ``"power"``: the new files are on the disk when the call
        returns.

    Returns
    -------
    list
        The names under which the targets are fetched, in their order.

    Raises
    ------
    GraphError
        A feed is missing, unknown or unused.
    SaveError
        A file cannot be written; the earlier export is unchanged.
    NotInitializedError
        A variable holds no value.
    TypeError, ValueError
        An argument has another type or a value that is not allowed, or lists no variables or names.

    >>> import os
    >>> import tempfile
    >>> import paddlelike as fluid
    >>> main, startup = fluid.Program(), fluid.Program()
    >>> with fluid.unique_name.guard(), fluid.program_guard(main, startup):
    ...     out = fluid.layers.fc(fluid.data("x", [None, 4]), 3)
    >>> exe, home = fluid.Executor(fluid.CPUPlace()), tempfile.mkdtemp()
    >>> with fluid.scope_guard(fluid.Scope()):
    ...     exe.run(startup)
    ...     names = fluid.io.save_inference_model(home, ["x"], [out], exe, main)
    []
    >>> sorted(os.listdir(home))
    ['__manifest__', '__model__', 'fc_0.b_0', 'fc_0.w_0']
    """
    check_executor(executor, "save_inference_model")
    feeds = _list_feeds(feeded_var_names)
    targets = _list_targets(target_vars)
    program = get_program(main_program)
    if dirname is None:
        raise TypeError("save_inference_model: dirname is a path, not None")
    options = SaveOptions(durability=durability)
    where = locate(dirname)
    asynchronous.check_pending()
    partition = get_partition(program)
    idle = (
        None if partition is None else partition.plan_save(executor, [], where.path, "params", options).idle
    )
    if export_for_deployment:
        check_feeds(program, feeds, targets)
    if idle is not None:
        warn_user(idle)
        return [f"save_infer_model/scale_{index}.tmp_0" for index in range(len(targets))]
    warn_of_metrics(program)
    clear_devices(program)
    outputs = append_scales(program, targets)
    names = [v.name for v in outputs]
    model = os.path.basename(model_filename) if model_filename else "__model__"
    params = os.path.basename(params_filename) if params_filename else None
    if not export_for_deployment:
        model += ".main_program"
    exported = program
    if export_for_deployment:
        plain = program if partition is None else partition.localize(program)
        warn_of_updated_feeds(plain, feeds, names)
        exported = make_inference_program(plain, feeds, names)
    part = None if program_only else "export"
    writing = where.begin(options, program=fingerprint(exported), part=part)
    writing.add(model, [_encode(exported)])
    if not program_only:
        chosen = get_program_persistable_vars(exported)
        with no_value_explained(program, chosen):
            add_to(executor, writing, where, chosen, params, partition)
    writing.commit()
    return names


def _list_feeds(given: str | Sequence[str]) -> list[str]:
    names = [given] if isinstance(given, str) else list(given)
    if not all(isinstance(name, str) for name in names):
        wanted = [one.name if isinstance(one, Variable) else one for one in names]
        raise ValueError(f"feeded_var_names holds names (str), not {names!r}\n  hint: pass {wanted!r}")
    return names


def _list_targets(given: Variable | Sequence[Variable]) -> list[Variable]:
    targets = [given] if isinstance(given, Variable) else list(given)
    if not targets or not all(isinstance(target, Variable) for target in targets):
        raise ValueError(
            f"target_vars holds variables, at least one, not {given!r}\n  hint: the variable that a layer "
            "returned; by its name, program.global_block().var(name)"
        )
    return targets


def _encode(program: Program) -> bytes:
    message = build_message(program)
    message.version.version = max(message.version.version, PADDLE_VERSION)  # a model of Paddle 2 stays one
    add_operator_versions(message)
    return bytes(message.SerializeToString(deterministic=True))
