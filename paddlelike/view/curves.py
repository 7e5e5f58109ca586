"""The curves of a training log as a picture, by matplotlib."""

from __future__ import annotations

import io
import os
from typing import Any

from paddlelike.errors import ExtraMissingError
from paddlelike.io.training_log import TrainingLog


def plot_log(log: TrainingLog, path: str | os.PathLike[str]) -> None:
    """Write the curves as a picture; see :meth:`TrainingLog.plot`."""
    _draw(log).savefig(path)


def format_svg(log: TrainingLog) -> str:
    """Return the curves as an SVG element. Raises ExtraMissingError without matplotlib."""
    text = io.StringIO()
    _draw(log).savefig(text, format="svg")
    return text.getvalue()[text.getvalue().index("<svg") :]


def _draw(log: TrainingLog) -> Any:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ExtraMissingError(
            "the picture of a TrainingLog needs the package matplotlib",
            hint="pip install matplotlib; log.curves() returns the values",
        ) from error
    curves = log.curves()
    figure = Figure(figsize=(7, 2.2 * max(1, len(curves))), layout="constrained")
    for index, (name, curve) in enumerate(curves.items()):
        axes = figure.add_subplot(len(curves), 1, index + 1)
        axes.plot(curve.steps, curve.values, marker="." if len(curve.steps) < 50 else "")
        axes.set_title(name.replace("$", r"\$"), loc="left")  # not a formula
        axes.set_xlabel("step")
        for step in log.restarts():
            axes.axvline(step, color="gray", linestyle=":")
    return figure
