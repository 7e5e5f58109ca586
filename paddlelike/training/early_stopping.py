"""The end of a training that does not become better."""

from __future__ import annotations

from typing import Literal


class EarlyStopping:
    """Ends a training whose cross validation was not better for ``patience`` times: the callback of a
    :class:`CrossValidationConfig`.

    A training that is resumed counts anew. :class:`CheckpointConfig` keeps the best (``keep_best=1``).

    Parameters
    ----------
    patience
        Cross validations without a better metric that are waited for.
    least
        How much better one must be to count.
    best
        Whether the best metric is the "smallest" or the "largest".

    >>> stop = EarlyStopping(patience=2)
    >>> [stop(index, average, 8, 1) for index, average in enumerate([3.0, 2.0, 2.5, 2.0])]
    [True, True, True, False]
    """

    def __init__(
        self, patience: int = 3, least: float = 0.0, best: Literal["smallest", "largest"] = "smallest"
    ) -> None:
        if patience < 1 or best not in ("smallest", "largest"):
            raise ValueError(
                f"EarlyStopping: patience={patience} is below 1, or best={best!r} not smallest or largest"
            )
        self.patience, self.least = patience, least
        self.best_average: float | None = None
        self._sign = 1.0 if best == "smallest" else -1.0
        self._waited = 0

    def __call__(
        self, index: int, average_error: float, cv_num_samples: int, cv_num_minibatches: int
    ) -> bool:
        """Take the metric of a cross validation; return whether the training goes on."""
        if self.best_average is None or self._sign * (self.best_average - average_error) > self.least:
            self.best_average, self._waited = average_error, 0
        else:
            self._waited += 1
        return self._waited < self.patience
