"""The files of a run: its operators save to and load from them in one transaction.

The caller of the executor may provide them as the service ``"files"`` and commit them itself, as
:mod:`paddlelike.io` does. Otherwise the hook ``open_files`` opens them before the run of a program with such
operators, and they are committed when the run ends without an error.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from paddlelike.core.scope import Scope
from paddlelike.errors import UnsupportedError
from paddlelike.executor.plans.run_plan import Plan
from paddlelike.hooks import find_provider

__all__ = ["provide_files"]


@contextmanager
def provide_files(plan: Plan, scope: Scope, services: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the services of a run, files included; commit these at the end unless the caller provided them.

    Raises UnsupportedError when the program reads or writes files and nothing provides them.
    """
    if not plan.uses_files or "files" in services:
        yield dict(services)
        return
    open_files = find_provider("open_files")
    if open_files is None:
        raise UnsupportedError(
            "the program reads or writes files, but nothing provides them", hint="import paddlelike"
        )
    files = open_files(plan.file_ops, alone=plan.is_batch)
    yield {**services, "files": files}
    files.commit()
