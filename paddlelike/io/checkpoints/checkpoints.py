"""Checkpoints of a training: numbered directories, each complete or not there, the old ones removed.

``root/step-00000012`` holds the persistables after step 12; its manifest, beside it, holds the step, the
metric, the state of the random generator and what the user gave. A checkpoint is there from the one moment in
which its directory gets its name, so what a killed process leaves is never taken for one.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Literal, NamedTuple

from paddlelike.core.random import Generator
from paddlelike.core.scope import global_scope
from paddlelike.errors import FormatError, LoadError, MissingFileError, SaveError, StorageError
from paddlelike.executor.run import Executor
from paddlelike.io import asynchronous
from paddlelike.io.calls import check_executor, warn_user
from paddlelike.io.checkpoints.store import open_store
from paddlelike.io.incremental import ledger
from paddlelike.io.load.load import load_persistables
from paddlelike.io.report import SaveReport
from paddlelike.io.save.save import save_chosen
from paddlelike.io.select import get_program_persistable_vars, program_of
from paddlelike.storage.location import locate
from paddlelike.storage.manifest import Manifest
from paddlelike.storage.options import SaveOptions

__all__ = ["Checkpoint", "Checkpoints"]


class Checkpoint(NamedTuple):
    """A checkpoint that is complete."""

    step: int
    path: str
    metric: float | None = None
    state: Mapping[str, Any] = {}  # what the user gave
    random: int | None = None  # the state of the scope's random generator
    time: str | None = None  # when it was saved


Listing = list[Checkpoint]


class Checkpoints:
    """The checkpoints below a directory.

    Several processes may read them while one saves: a checkpoint that is being read is not removed.

    Parameters
    ----------
    root
        The directory; made when missing. What else lies in it is left alone. It may be a URL such as
        ``s3://bucket/run``; nobody is noticed there who reads, so the files of a checkpoint that is removed
        stay until the next save.
    keep_last
        How many of the newest stay; None: all.
    keep_best
        How many of those with the best metric stay besides.
    every
        Steps between two checkpoints: :meth:`save` does nothing at a step that is no multiple of it.
    best
        Whether the best metric is the "smallest" or the "largest".
    options
        The fields of :class:`~paddlelike.storage.options.SaveOptions`.

    >>> import tempfile
    >>> import paddlelike as fluid
    >>> loss = fluid.layers.mean(fluid.layers.fc(fluid.data("x", [None, 2]), 1))
    >>> exe = fluid.Executor()
    >>> _ = exe.run(fluid.default_startup_program())
    >>> with tempfile.TemporaryDirectory() as root:
    ...     checkpoints = fluid.io.Checkpoints(root, keep_last=2)
    ...     for step in range(1, 5):
    ...         _ = checkpoints.save(exe, fluid.default_main_program(), step, state={"epoch": 0})
    ...     print([checkpoint.step for checkpoint in checkpoints.list()])
    ...     print(checkpoints.restore(exe, fluid.default_main_program()))
    [3, 4]
    {'epoch': 0, 'step': 4}
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        keep_last: int | None = 5,
        keep_best: int = 0,
        every: int = 1,
        *,
        best: Literal["smallest", "largest"] = "smallest",
        **options: Any,
    ) -> None:
        limits = ("keep_last", keep_last, 1), ("keep_best", keep_best, 0), ("every", every, 1)
        for what, number, least in limits:
            if number is not None and number < least:
                raise ValueError(f"Checkpoints: {what} is {least} at least, not {number}")
        if best not in ("smallest", "largest"):
            raise ValueError(f'Checkpoints: best is "smallest" or "largest", not {best!r}')
        self._checkpoints = open_store(root)
        self.root = self._checkpoints.root
        self._keep_last = keep_last
        self._keep_best = keep_best
        self._every = every
        self._sign = 1.0 if best == "smallest" else -1.0
        self._options = SaveOptions.from_keywords(options, "Checkpoints")
        self._base: str | None = None  # the checkpoint that this process knows, to share files with

    def save(
        self,
        executor: Executor,
        program: Any,
        step: int,
        metric: float | None = None,
        state: Mapping[str, Any] | None = None,
        *,
        force: bool = False,
    ) -> SaveReport | asynchronous.PendingSave | None:
        """Save the persistables of ``program`` as the checkpoint after ``step`` steps, and remove old ones.

        Parameters
        ----------
        metric
            What :meth:`best` and ``keep_best`` go by.
        state
            Whatever JSON can say, such as the epoch; :meth:`restore` gives it back.
        force
            Save also at a step that is no multiple of ``every``.

        Returns
        -------
        What :func:`~paddlelike.io.save.save_persistables` returns; None at a step that is passed over.

        Raises
        ------
        SaveError
            It could not be saved, and the checkpoints before are as they were; or it was saved, which the
            message says, and older ones could not be removed.
        """
        check_executor(executor, "Checkpoints.save")
        if step < 0:
            raise ValueError(f"Checkpoints.save: step is a number from 0 on, not {step}")
        if step % self._every and not force:
            return None
        asynchronous.check_pending()
        program = program_of(program)
        path = self._checkpoints.path(step)
        self._checkpoints.reserve(path)
        entry = {
            "step": step,
            "metric": None if metric is None else float(metric),
            "random": global_scope().generator.state,
            "user": json.loads(_json({} if state is None else dict(state))),
        }
        options = self._options
        holding = contextlib.ExitStack()  # of the base, as long as the save goes on
        if self._base not in (None, path) and holding.enter_context(self._checkpoints.held(self._base)):
            options = replace(options, base=self._base)

        def afterwards() -> None:
            self._base = path
            try:
                self._tidy(step)
            except (OSError, StorageError) as error:
                raise SaveError(
                    f"checkpoint {path} was saved, but older ones cannot be listed or removed: {error}",
                    hint="the checkpoint is complete and can be restored",
                ) from error

        return save_chosen(
            program,
            get_program_persistable_vars(program),
            path,
            executor=executor,
            state={"checkpoint": entry},
            holding=holding,
            afterwards=afterwards,
            options=options,
        )

    def list(self) -> Listing:
        """All checkpoints that are complete, by their steps."""
        asynchronous.wait_for_pending()
        found = [self._read(path) for path in self._checkpoints.paths()]
        return sorted((checkpoint for checkpoint in found if checkpoint is not None), key=lambda c: c.step)

    def latest(self) -> Checkpoint | None:
        """The checkpoint of the highest step, or None."""
        found = self.list()
        return found[-1] if found else None

    def best(self) -> Checkpoint | None:
        """The checkpoint of the best metric, the latest of equals, or None."""
        ranked = self._ranked(self.list())
        return ranked[0] if ranked else None

    def restore(
        self, executor: Executor, program: Any = None, step: int | None = None
    ) -> dict[str, Any] | None:
        """Load a checkpoint into the current scope, with the state of its random generator.

        Without ``step`` the latest one; when its files are damaged, the one before it, with a warning.

        Returns
        -------
        The user's state with the ``"step"``; None when there is no checkpoint yet.

        Raises
        ------
        LoadError
            The checkpoint does not fit the program, or there is none of that step, or all are damaged.
        """
        asynchronous.wait_for_pending()
        damaged = []
        candidates = self.list()[::-1]
        if step is not None:
            candidates = [checkpoint for checkpoint in candidates if checkpoint.step == step]
            if not candidates:
                raise MissingFileError(
                    f"there is no checkpoint of step {step} in {self.root}",
                    hint=f"there are those of {[checkpoint.step for checkpoint in self.list()]}",
                )
        for checkpoint in candidates:
            with self._checkpoints.held(checkpoint.path) as there:
                if not there:
                    continue  # removed at this moment
                try:
                    load_persistables(executor, checkpoint.path, program)
                except (LoadError, FormatError, StorageError):
                    damage = _damage(checkpoint.path)
                    if step is not None or not damage:
                        raise
                    damaged.append(damage)
                    warn_user(
                        f"checkpoint {checkpoint.path} is damaged, the one before it is taken: {damage}"
                    )
                    continue
            if checkpoint.random is not None:
                global_scope().generator.state = checkpoint.random
            self._base = checkpoint.path
            return {**checkpoint.state, "step": checkpoint.step}
        if damaged:
            raise LoadError(f"no checkpoint in {self.root} can be loaded:\n  " + "\n  ".join(damaged))
        return None

    @contextlib.contextmanager
    def reading(self, checkpoint: Checkpoint) -> Iterator[str]:
        """The path of a checkpoint, which no process removes inside the ``with``.

        Raises
        ------
        MissingFileError
            It was removed already.
        """
        with self._checkpoints.held(checkpoint.path) as there:
            if not there:
                raise MissingFileError(f"checkpoint {checkpoint.path} was removed", hint="ask latest() again")
            yield checkpoint.path

    def _read(self, path: str) -> Checkpoint | None:
        """The checkpoint in a directory; None when it holds none of ours."""
        try:
            found = self._checkpoints.manifest(path)
            return None if found is None else _parsed(found, path)
        except (FormatError, StorageError, SaveError, LookupError, TypeError, ValueError, OverflowError):
            return None

    def _ranked(self, checkpoints: Listing) -> Listing:
        """Those with a metric, the best first."""
        known = [c for c in checkpoints if c.metric is not None and not math.isnan(c.metric)]
        return sorted(known, key=lambda c: (self._sign * (c.metric or 0.0), -c.step))

    def _tidy(self, newest: int) -> None:
        """Remove checkpoints that need not stay, and what killed processes left."""
        found = self.list()
        if self._keep_last is not None:
            kept = {c.step for c in [*found[-self._keep_last :], *self._ranked(found)[: self._keep_best]]}
            kept.add(newest)
            for checkpoint in found:
                if checkpoint.step not in kept:
                    self._checkpoints.remove(checkpoint.path)
                    ledger.forget_location(locate(checkpoint.path).key)
        self._checkpoints.sweep()


def _parsed(found: Manifest, path: str) -> Checkpoint:
    entry = found.state["checkpoint"]
    step, metric, user, random = (entry[key] for key in ("step", "metric", "user", "random"))
    if type(step) is not int or not isinstance(user, dict):
        raise TypeError("a step is a number, a state a dict")
    if random is not None:
        Generator(1).state = random  # raises ValueError
    return Checkpoint(step, path, None if metric is None else float(metric), user, random, found.time)


def _json(state: Mapping[str, Any]) -> str:
    try:
        return json.dumps(state)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"Checkpoints.save: state is kept as JSON, which cannot say {dict(state)!r}: {error}"
        ) from None


def _damage(path: str) -> str:
    """What is wrong with the files of a checkpoint, or ''."""
    try:
        found = locate(path).verify()
    except StorageError as error:
        return error.message
    return str(found) if found.problem or found.missing or found.cut or found.changed else ""
