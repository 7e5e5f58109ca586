"""fluid.profiler: the time that runs spend in each operator, as a table and a file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from paddlelike.errors import UnsupportedError
from paddlelike.executor import profile

__all__ = ["cuda_profiler", "profiler", "reset_profiler", "start_profiler", "stop_profiler"]


def start_profiler(state: str, tracer_option: str = "Default") -> None:
    """Start timing operators.

    Parameters
    ----------
    state
        "CPU", "GPU" or "All"; each means the CPU.
    tracer_option
        "Default", "OpDetail" or "AllOpDetail"; all three give the same table.

    Raises
    ------
    ValueError
        ``state`` or ``tracer_option`` is another text.

    See Also
    --------
    fluid.profiler.profiler, fluid.profiler.stop_profiler, fluid.profiler.reset_profiler
    fluid.profiler.cuda_profiler, fluid.Executor.explain

    >>> start_profiler("CPU")
    >>> reset_profiler()
    """
    if state not in ("CPU", "GPU", "All"):
        raise ValueError(f"state must be 'CPU', 'GPU' or 'All', got {state!r}")
    if tracer_option not in ("Default", "OpDetail", "AllOpDetail"):
        raise ValueError(
            f"tracer_option must be 'Default', 'OpDetail' or 'AllOpDetail', got {tracer_option!r}"
        )
    if profile.current is None:
        profile.start()


def stop_profiler(sorted_key: str | None = None, profile_path: str = "/tmp/profile") -> None:  # noqa: S108
    """Stop timing, print the table, and write it to a file.

    Parameters
    ----------
    sorted_key
        How the table is sorted: "calls", "total", "max", "min", "ave" or "default" (the order of execution).
        None means "default".
    profile_path
        The file of the table. A second file, with ``.json`` added to its name, holds a trace of every
        operator for chrome://tracing and ui.perfetto.dev.

    Raises
    ------
    ValueError
        ``sorted_key`` is another text.

    See Also
    --------
    fluid.profiler.profiler, fluid.profiler.start_profiler, fluid.profiler.reset_profiler
    fluid.profiler.cuda_profiler, fluid.Executor.explain

    >>> import tempfile
    >>> start_profiler("CPU")
    >>> with tempfile.TemporaryDirectory() as home:
    ...     stop_profiler("total", f"{home}/table")
    <BLANKLINE>
    ...
    """
    key = "default" if sorted_key is None else sorted_key
    if key not in profile.ORDERS:
        raise ValueError(f"sorted_key must be one of {', '.join(profile.ORDERS)}, got {sorted_key!r}")
    finished = profile.stop()
    table = finished.format_table(key)
    print(table)  # noqa: T201  (what it is for)
    Path(profile_path).write_text(table + "\n", encoding="utf-8")
    Path(profile_path + ".json").write_text(finished.format_trace() + "\n", encoding="utf-8")


def reset_profiler() -> None:
    """Drop the times measured so far.

    See Also
    --------
    fluid.profiler.profiler, fluid.profiler.start_profiler, fluid.profiler.stop_profiler
    fluid.profiler.cuda_profiler, fluid.Executor.explain

    >>> start_profiler("CPU")
    >>> reset_profiler()
    """
    if profile.current is not None:
        profile.start()


@contextmanager
def profiler(
    state: str,
    sorted_key: str | None = None,
    profile_path: str = "/tmp/profile",  # noqa: S108  (Fluid's default)
    tracer_option: str = "Default",
) -> Iterator[None]:
    """Time the runs inside the ``with`` block.

    Parameters
    ----------
    state, tracer_option
        The same as for :func:`start_profiler`.
    sorted_key, profile_path
        The same as for :func:`stop_profiler`.

    Raises
    ------
    ValueError
        ``state``, ``sorted_key`` or ``tracer_option`` is a text that those functions do not know.

    See Also
    --------
    fluid.profiler.start_profiler, fluid.profiler.stop_profiler, fluid.profiler.reset_profiler
    fluid.profiler.cuda_profiler, fluid.Executor.explain

    >>> import paddlelike as fluid
    >>> import tempfile, numpy as np
    >>> _ = fluid.layers.relu(fluid.data("x", [None, 1]))
    >>> with tempfile.TemporaryDirectory() as home:
    ...     with fluid.profiler.profiler("CPU", "total", f"{home}/table"):  # doctest: +ELLIPSIS
    ...         _ = fluid.Executor().run(feed={"x": np.ones((1, 1), "float32")}, fetch_list=["x"])
    <BLANKLINE>
    ...
    """
    start_profiler(state, tracer_option)
    try:
        yield
    finally:
        stop_profiler(sorted_key, profile_path)


def cuda_profiler(*args: object, **kwargs: object) -> None:
    """Raise UnsupportedError: there are no GPU kernels.

    Raises
    ------
    UnsupportedError
        Always; :func:`profiler` times the operators on a CPU.

    See Also
    --------
    fluid.profiler.profiler, fluid.profiler.start_profiler, fluid.profiler.stop_profiler
    fluid.profiler.reset_profiler, fluid.Executor.explain

    >>> cuda_profiler("prof.txt")
    Traceback (most recent call last):
    paddlelike.errors.UnsupportedError: ...
    """
    raise UnsupportedError("there are no GPU kernels to profile", hint="use profiler.profiler('CPU')")
