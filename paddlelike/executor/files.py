"""The files of a run: where its operators save to and load from, as one transaction.

Whoever calls the executor may lend a run its files (:mod:`paddlelike.io` does, to commit them by itself).
An ordinary program with such operators gets files of its own: they are opened by the hook ``open_files``
before the run and committed when it has ended without an error.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from paddlelike.core.scope import Scope
from paddlelike.errors import UnsupportedError
from paddlelike.executor.plan import Plan
from paddlelike.hooks import find_provider

__all__ = ["run_files"]


@contextmanager
def run_files(plan: Plan, scope: Scope, services: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the services of a run with its files among them; commit these at the end unless they are lent.

    Raises UnsupportedError when the program reads or writes files and nothing provides them.
    """
    if not plan.uses_files or "files" in services:
        yield dict(services)
        return
    open_files = find_provider("open_files")
    if open_files is None:
        raise UnsupportedError(
            "this program reads or writes files, and nothing provides them", hint="import paddlelike"
        )
    files = open_files(plan.file_ops, alone=plan.is_batch)
    yield {**services, "files": files}
    files.commit()
