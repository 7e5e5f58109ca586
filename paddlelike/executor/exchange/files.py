"""The files of a run: its operators save to and load from them in one transaction.

The caller of the executor may provide them as the service ``"files"`` and commit them itself, as
:mod:`paddlelike.io` does. Otherwise the hook ``open_files`` opens them before the run of a program with such
operators, and they are committed when the run ends without an error.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from paddlelike.core.scope import Scope
from paddlelike.executor.plans.run_plan import Plan
from paddlelike.hooks import Hook

_open_files: Final[Hook[..., Any]] = Hook("open_files")


@contextmanager
def provide_files(plan: Plan, scope: Scope, services: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the services of a run, files included; commit these at the end unless the caller gave them."""
    if not plan.uses_files or "files" in services:
        yield dict(services)
        return
    files = _open_files.function(plan.file_ops, alone=plan.is_batch)
    yield {**services, "files": files}
    files.commit()
