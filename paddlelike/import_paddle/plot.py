"""``paddle.utils.Ploter``: curves that grow while a script trains. Needs matplotlib."""

from __future__ import annotations

import os
from typing import Any

from paddlelike.errors import ExtraMissingError

__all__ = ["PlotData", "Ploter"]


class PlotData:
    """The points of a curve."""

    def __init__(self) -> None:
        self.step: list[Any] = []
        self.value: list[Any] = []

    def append(self, step: float, value: float) -> None:
        """Add a point."""
        self.step.append(step)
        self.value.append(value)

    def reset(self) -> None:
        """Drop all points."""
        self.step, self.value = [], []


class Ploter:
    """Curves with the given titles. Raises ExtraMissingError without matplotlib.

    With ``DISABLE_PLOT=True`` in the environment nothing is drawn, and matplotlib is not needed.
    """

    def __init__(self, *args: str) -> None:
        self._curves = {title: PlotData() for title in args}
        self._disabled = os.environ.get("DISABLE_PLOT") == "True"
        self._plt: Any = None
        if not self._disabled:
            try:
                import matplotlib.pyplot as plt
            except ImportError as error:
                raise ExtraMissingError(
                    "paddle.utils.Ploter needs the package matplotlib",
                    hint="pip install matplotlib, or set DISABLE_PLOT=True in the environment",
                ) from error
            self._plt = plt

    def append(self, title: str, step: float, value: float) -> None:
        """Add a point to a curve. Raises KeyError for an unknown title."""
        self._curves[title].append(step, value)

    def plot(self, path: str | None = None) -> None:
        """Draw the curves into the file ``path``, or on the screen."""
        if self._disabled:
            return
        shown = {title: curve for title, curve in self._curves.items() if curve.step}
        for curve in shown.values():
            self._plt.plot(curve.step, curve.value)
        self._plt.legend(list(shown), loc="upper left")
        if path is None:
            self._plt.show(block=False)
        else:
            self._plt.savefig(path)
        self._plt.gcf().clear()

    def reset(self) -> None:
        """Drop the points of all curves."""
        for curve in self._curves.values():
            curve.reset()
