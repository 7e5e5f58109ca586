"""Run a program once for every batch of a dataset, and report fetched values periodically."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from paddlelike.core import LoDTensor, Scope, global_scope
from paddlelike.framework import Variable

if TYPE_CHECKING:
    from paddlelike.framework.typing import Feed, ProgramLike


class Batches(Protocol):
    """The batches that a program runs over: a dataset of ``fluid.DatasetFactory``."""

    def feeds(self) -> Iterable[Feed]:
        """Return the batches as feeds."""
        ...


class FetchHandler:
    """Receives values of variables periodically while a program runs over a dataset; subclass it.

    Parameters
    ----------
    var_dict
        Variables by the names under which the handler receives them.
    period_secs
        The least time from one call to the next, in seconds.

    Raises
    ------
    ValueError
        There is no ``var_dict``.

    See Also
    --------
    fluid.Executor.train_from_dataset

    >>> FetchHandler({}, period_secs=1).handler({"loss": 0.5})
    loss: 0.5
    """

    def __init__(self, var_dict: Mapping[str, Variable] | None = None, period_secs: float = 60) -> None:
        if var_dict is None:
            raise ValueError("FetchHandler: var_dict is None, expected variables by name: {'loss': loss}")
        self.var_dict = var_dict
        self.period_secs = period_secs

    def handler(self, res_dict: dict[str, Any]) -> None:
        """Handle the values; by default, print them."""
        for name, value in res_dict.items():
            print(f"{name}: {value}")  # noqa: T201  (Fluid prints here)


def run_dataset(
    executor: Any,
    program: ProgramLike | None,
    dataset: Batches | None,
    scope: Scope | None,
    fetch_list: Sequence[Variable | str] | None,
    fetch_info: Sequence[str] | None,
    print_period: int,
    fetch_handler: FetchHandler | None,
) -> None:
    """Run ``program`` once for each batch of ``dataset``; print the fetches every ``print_period`` batches.

    Raises RuntimeError without a dataset, ValueError when ``fetch_info`` has another length than
    ``fetch_list``, and the errors of :meth:`Executor.run`.
    """
    if dataset is None:
        raise RuntimeError(
            "Executor.train_from_dataset: dataset is None, expected a dataset\n"
            '  hint: fluid.DatasetFactory().create_dataset("QueueDataset") makes one'
        )
    fetches = list(fetch_list or ())
    titles = [getattr(one, "name", one) for one in fetches] if fetch_info is None else list(fetch_info)
    if len(titles) != len(fetches):
        raise ValueError(f"fetch_info holds {len(titles)} texts for {len(fetches)} variables of fetch_list")
    next_call = time.monotonic()
    prepare = getattr(program, "_before_batch", None)
    for count, feed in enumerate(dataset.feeds(), 1):
        shown = fetches if fetches and count % print_period == 0 else []
        handler = fetch_handler if fetch_handler is not None and time.monotonic() >= next_call else None
        extra = [] if handler is None else list(handler.var_dict.values())
        if prepare is not None:
            prepare(program, count - 1, global_scope() if scope is None else scope)
        values = executor.run(program, feed, [*shown, *extra], scope=scope, return_numpy=False)
        for title, value in zip(titles, values[: len(shown)], strict=bool(shown)):
            print(f"batch {count}: {title}: {_format(value)}")  # noqa: T201  (Fluid prints here)
        if handler is not None:
            arrays = [np.array(value) for value in values[len(shown) :]]
            handler.handler(dict(zip(handler.var_dict, arrays, strict=True)))
            next_call = time.monotonic() + handler.period_secs


def _format(value: object) -> str:
    if not isinstance(value, LoDTensor):
        return str(value)
    lod = f" lod {value.lod()}" if value.lod() else ""
    return np.array2string(np.asarray(value), separator=", ") + lod
