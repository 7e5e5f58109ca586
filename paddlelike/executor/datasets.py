"""Running a program over every batch of a dataset, printing fetched values now and then."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from paddlelike.core.scope import Scope
from paddlelike.core.tensor import LoDTensor
from paddlelike.framework.graph.variable import Variable

__all__ = ["FetchHandler", "run_over"]


class FetchHandler:
    """Gets values of variables from time to time while a dataset is run; subclass it.

    Parameters
    ----------
    var_dict
        Variables by the names the handler gets them under.
    period_secs
        The least number of seconds from one call to the next.
    """

    def __init__(self, var_dict: Mapping[str, Variable] | None = None, period_secs: float = 60) -> None:
        if var_dict is None:
            raise ValueError("a FetchHandler needs var_dict, the variables it is to get")
        self.var_dict = var_dict
        self.period_secs = period_secs

    def handler(self, res_dict: dict[str, Any]) -> None:
        """What to do with the values; this one prints them."""
        for name, value in res_dict.items():
            print(f"{name}: {value}")  # noqa: T201  (what it is for)


def run_over(
    executor: Any,
    program: Any,
    dataset: Any,
    scope: Scope | None,
    fetch_list: Sequence[Any] | None,
    fetch_info: Sequence[str] | None,
    print_period: int,
    fetch_handler: FetchHandler | None,
) -> None:
    """Run ``program`` once for each batch of ``dataset``; every ``print_period`` runs print the fetches."""
    if dataset is None:
        raise RuntimeError("there is no dataset: pass one of fluid.DatasetFactory().create_dataset()")
    fetches = list(fetch_list or ())
    titles = [getattr(one, "name", one) for one in fetches] if fetch_info is None else list(fetch_info)
    if len(titles) != len(fetches):
        raise ValueError(f"fetch_info holds {len(titles)} texts for {len(fetches)} variables of fetch_list")
    due = time.monotonic()
    for number, feed in enumerate(dataset.feeds(), 1):
        shown = fetches if fetches and number % print_period == 0 else []
        handled = fetch_handler if fetch_handler is not None and time.monotonic() >= due else None
        asked = [] if handled is None else list(handled.var_dict.values())
        values = executor.run(program, feed, [*shown, *asked], scope=scope, return_numpy=False)
        for title, value in zip(titles, values[: len(shown)], strict=bool(shown)):
            print(f"batch {number}: {title}: {_text(value)}")  # noqa: T201  (what fetch_list is for)
        if handled is not None:
            arrays = [np.array(value) for value in values[len(shown) :]]
            handled.handler(dict(zip(handled.var_dict, arrays, strict=True)))
            due = time.monotonic() + handled.period_secs


def _text(value: Any) -> str:
    if not isinstance(value, LoDTensor):
        return str(value)
    lod = f" lod {value.lod()}" if value.lod() else ""
    return np.array2string(np.asarray(value), separator=", ") + lod
