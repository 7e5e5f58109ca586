"""The directories that a server writes into, below the directories given at its start.

Any process with the job's token may request a save. Without a limit, such a request could name any directory
that the server's user can write.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from paddlelike.errors import SaveError


def check_save_directory(directory: str, roots: Sequence[str], endpoint: str) -> None:
    """Raise SaveError unless a directory is one of ``roots`` or below one, with all links resolved.

    A save into a root itself has its staging directory beside that root; this is allowed too.
    """
    asked = Path(os.path.realpath(directory))
    if not any(_is_below(asked, Path(os.path.realpath(root))) for root in roots):
        allowed = " or ".join(roots) or "any directory: it was started in / without PADDLELIKE_CHECKPOINT_DIR"
        raise SaveError(
            f"the server at {endpoint} does not write into {directory}, which is not below {allowed}",
            hint="start the server with PADDLELIKE_CHECKPOINT_DIR=DIR and save below DIR; or save without "
            "by_servers=, then trainer 0 writes everything",
        )


def _is_below(directory: Path, root: Path) -> bool:
    if directory.is_relative_to(root):
        return True
    if not directory.is_relative_to(root.parent):
        return False
    first = directory.relative_to(root.parent).parts[:1]
    return bool(first) and first[0].removeprefix(".").startswith(f"{root.name}.saving")
