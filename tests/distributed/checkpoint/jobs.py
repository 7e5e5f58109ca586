"""Jobs that save, and jobs that resume from a save, all in the threads of one test."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import paddlelike as fluid
from tests.distributed.jobs import SEED, Feed, Job, Network, Programs
from tests.helpers.fresh import fresh_programs

Feeds = Callable[[int, int], Feed]


class SavingJob(Job):
    """A job whose servers may load a directory, and whose trainer 0 may save one.

    Parameters
    ----------
    loaded
        What every server loads between its startup and its main program.
    form
        Which of a server's programs the load is given: ``"main"`` or ``"startup"``.
    """

    def __init__(
        self,
        network: Network,
        *,
        servers: int = 2,
        trainers: int = 2,
        loaded: Path | str | None = None,
        form: str = "main",
        **choices: Any,
    ) -> None:
        super().__init__(network, servers=servers, trainers=trainers)
        self.loaded = loaded
        self.form = form
        self.choices = choices
        self.reports: dict[str, Any] = {}
        self.saved: Any = None

    def __enter__(self) -> SavingJob:
        for endpoint in self.endpoints:
            self.serve(endpoint)
        return self

    def serve(self, endpoint: str, values: Any = None) -> None:
        programs, scope = self.server(endpoint), fluid.Scope()
        executor = fluid.Executor()
        with fluid.scope_guard(scope):
            executor.run(programs.startup)
            if self.loaded is not None:
                program = programs.main if self.form == "main" else programs.startup
                report = fluid.io.load_persistables(executor, str(self.loaded), program, **self.choices)
                self.reports[endpoint] = report
        self.scopes[endpoint] = scope
        future = self._pool.submit(lambda: executor.run(programs.main, scope=scope))
        self._serving.append((executor, future))  # type: ignore[arg-type]

    def go(
        self,
        feeds: Feeds,
        start: int,
        stop: int,
        *,
        save: tuple[int, Path | str] | None = None,
        **options: Any,
    ) -> list[list[float]]:
        """The losses of steps ``start`` to ``stop``; ``save``: before which step, and where to."""
        programs = [self.trainer(number) for number in range(self.trainers)]
        others = [
            self._pool.submit(self._steps, number, one, feeds, start, stop, None, options)
            for number, one in enumerate(programs)
            if number
        ]
        with fluid.scope_guard(fluid.Scope()):
            first = self._steps(0, programs[0], feeds, start, stop, save, options)
        return [first, *(one.result(timeout=120) for one in others)]

    def _steps(
        self,
        number: int,
        programs: Programs,
        feeds: Feeds,
        start: int,
        stop: int,
        save: tuple[int, Path | str] | None,
        options: dict[str, Any],
    ) -> list[float]:
        scope = self.scopes[f"trainer {number}"] = fluid.Scope() if number else fluid.global_scope()
        executor = fluid.Executor()
        losses = []
        try:
            executor.run(programs.startup, scope=scope)
            for step in range(start, stop):
                if save is not None and save[0] == step:
                    self.saved = fluid.io.save_persistables(executor, str(save[1]), programs.main, **options)
                values = executor.run(
                    programs.main, feed=feeds(step, number), fetch_list=[programs.loss.name], scope=scope
                )
                losses.append(float(values[0]))
        finally:
            executor.close()
        return losses

    def on_servers(self) -> dict[str, Any]:
        """What the servers hold, tables in shards left out, by the names of the user's program."""
        main = self.server(self.endpoints[0]).main
        found = {}
        for origin in main._parameters_on_pservers.origins():
            slices = main._parameters_on_pservers.of(origin)
            if slices[0].is_selected_rows:
                continue
            arrays = [self.values(one.endpoint)[one.name] for one in slices]
            found[origin] = np.concatenate(arrays) if slices[0].is_slice else arrays[0]
        return found


def alone(network: Network, feeds: Callable[[int], Feed], start: int, stop: int, loaded: Path) -> Any:
    """The losses of one process without servers that resumes from a directory, and its variables."""
    with fresh_programs(SEED) as (main, startup):
        loss = network.build()
        network.optimizer().minimize(loss)
        executor = fluid.Executor()
        executor.run(startup)
        fluid.io.load_persistables(executor, str(loaded), main)
        losses = [float(executor.run(main, feed=feeds(s), fetch_list=[loss])[0]) for s in range(start, stop)]
        persistables = [v.name for v in main.list_vars() if fluid.io.is_persistable(v)]
        values = {name: np.array(fluid.global_scope().find_var(name).get_tensor()) for name in persistables}
    return losses, values
