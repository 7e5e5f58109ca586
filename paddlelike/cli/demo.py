"""``paddlelike demo``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from paddlelike.cli.output import Json, end, escape, exits, print_json, say


def command(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="A new directory for saves.")] = Path(
        "paddlelike-demo"
    ),
    json: bool = Json,
) -> None:
    """Train, save and continue; leave files to look into.

    A small network learns the sum of 13 numbers for one day, then for a second day from the first day's save.
    It takes about a second.
    """
    if directory.exists():
        say(f"paddlelike: {escape(directory)} exists\n  hint: choose another path")
        end(2)
    directory.mkdir(parents=True)
    models = [str(directory / "day_1"), str(directory / "day_2")]
    with exits():
        first_day = _train(None, models[0])
        second_day = _train(models[0], models[1], export=str(directory / "model"))
    if json:
        print_json({"saved": models, "model": str(directory / "model"), "losses": [first_day, second_day]})
        return
    (begin, end_1), (again, end_2) = first_day, second_day
    typer.echo(f"day 1: loss {begin:.4f} -> {end_1:.4f}, saved to {models[0]}")
    typer.echo(f"day 2: loaded {models[0]}, loss {again:.4f} -> {end_2:.4f}, saved to {models[1]}")
    typer.echo(f"a model for prediction is in {directory / 'model'}. Now try:")
    for line in (
        f"inspect {models[1]}",
        f"diff {models[0]} {models[1]}",
        f"verify {models[1]}",
        f"plan {models[1]} --program {directory / 'model'}",
        f"graph {directory / 'model'} -o {directory / 'model.svg'}",
        f"doctor {directory / 'model'}",
        f"view {directory / 'model'} -o {directory / 'model.html'}",
    ):
        typer.echo(f"    paddlelike {line}")


def _train(start: str | None, target: str, export: str | None = None) -> tuple[float, float]:
    """Train a hundred steps, from saved values if there are any; return the first and the last loss."""
    import numpy as np

    from paddlelike import layers, unique_name
    from paddlelike.core import CPUPlace, Scope, scope_guard
    from paddlelike.executor.run import Executor
    from paddlelike.framework import Program, program_guard
    from paddlelike.input import data
    from paddlelike.io.export.save import save_inference_model
    from paddlelike.io.load.load import load_persistables
    from paddlelike.io.save.save import save_persistables
    from paddlelike.optimizer import Adam

    main, startup = Program(), Program()
    with unique_name.guard(), program_guard(main, startup):
        x, y = data("x", [None, 13]), data("y", [None, 1])
        predicted = layers.fc(x, 1)
        loss = layers.mean(layers.square_error_cost(predicted, y))
        test = main.clone(for_test=True)
        Adam(0.05).minimize(loss)
    exe, rng = Executor(CPUPlace()), np.random.default_rng(0)
    with scope_guard(Scope()):
        exe.run(startup)
        if start is not None:
            load_persistables(exe, start, main)
        losses = []
        for _ in range(100):
            features = rng.uniform(-1, 1, (64, 13)).astype("float32")
            batch = {"x": features, "y": features.sum(1, keepdims=True)}
            losses.append(float(exe.run(main, feed=batch, fetch_list=[loss])[0][0]))
        save_persistables(exe, target, main)
        if export is not None:
            save_inference_model(export, ["x"], [test.global_block().var(predicted.name)], exe, test)
    return losses[0], losses[-1]
