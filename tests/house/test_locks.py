"""Locks and descriptors are held in one way in the whole package, see :mod:`paddlelike.foundation.locks`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PROJECT = Path(__file__).parent.parent.parent

#: Where locks and threads are made of Python's, and where others' rules or the file lock need it.
EXCEPTIONS = {
    "paddlelike/foundation/locks.py",
    "paddlelike/foundation/threads.py",
    "paddlelike/distributed/wire/server.py",  # gRPC takes a pool of concurrent.futures
    "paddlelike/testing/stores.py",  # runs in tests alone
}
#: Files whose lock is that of a directory, a file, which has methods of its own.
LOCK_FILES = "paddlelike/storage/"
PYTHONS = {
    "threading": "Lock RLock Condition Event Semaphore BoundedSemaphore Barrier Timer".split(),  # noqa: SIM905
    "_thread": ["allocate_lock", "allocate", "RLock", "LockType"],
    "queue": ["Queue", "LifoQueue", "PriorityQueue"],
    "concurrent.futures": ["ThreadPoolExecutor", "Future", "wait", "as_completed"],
}
NAMES = {"acquire", "Thread", "open"}.union(*PYTHONS.values())  #: of the attributes that are looked at


def find_faults(tree: ast.Module) -> Iterator[str]:
    """Yield the lines of a module that hold a lock or a descriptor in another way."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in NAMES:
            if node.attr in PYTHONS.get(ast.unparse(node.value), ()):
                yield f"{node.lineno}: {ast.unparse(node)}"
        elif isinstance(node, ast.ImportFrom):
            found = [one.name for one in node.names if one.name in PYTHONS.get(node.module or "", ())]
            yield from (f"{node.lineno}: {node.module}.{name}" for name in found)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in NAMES:
            if node.func.attr == "acquire" or ast.unparse(node.func) in ("threading.Thread", "os.open"):
                yield f"{node.lineno}: {ast.unparse(node.func)}"
        elif isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr):
            if node.value is not None and is_key(node.value):
                yield f"{node.lineno}: a key has a name, by which a frame keeps it"
        elif isinstance(node, ast.With):
            keys = [item for item in node.items if is_key(item.context_expr)]
            if any(item.optional_vars is not None for item in keys):
                yield f"{node.lineno}: a key has a name, by which a frame keeps it"
            if keys and any(map(yields, node.body)):
                yield f"{node.lineno}: a key is held across a yield, by a generator that others may keep"


def is_key(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and (node.func.attr == "hold_within" or (node.func.attr == "hold" and not node.args))
    )


def yields(node: ast.AST) -> bool:
    """Return whether a statement yields, in this function."""
    if isinstance(node, ast.FunctionDef | ast.Lambda | ast.AsyncFunctionDef | ast.ClassDef):
        return False
    return isinstance(node, ast.Yield | ast.YieldFrom) or any(map(yields, ast.iter_child_nodes(node)))


def test_modules_hold_locks_only_in_the_allowed_form() -> None:
    faults, files = [], 0
    for path in sorted((PROJECT / "paddlelike").rglob("*.py")):
        name = path.relative_to(PROJECT).as_posix()
        if name in EXCEPTIONS:
            continue
        files += 1
        found = find_faults(ast.parse(path.read_text("utf-8")))
        if name.startswith(LOCK_FILES):
            found = (fault for fault in found if not fault.endswith(".acquire"))
        faults += [f"{name}:{fault}" for fault in found]
    assert not faults
    assert files > 500


@pytest.mark.parametrize(
    "text",
    [
        "import threading\nlock = threading.Lock()",
        "from threading import Condition",
        "import queue\nitems = queue.Queue(2)",
        "from concurrent.futures import ThreadPoolExecutor",
        "lock.acquire()",
        "threading.Thread(target=print).start()",
        "key = lock.hold()",
        "fd = os.open(path, os.O_RDONLY)",
        "with lock.hold() as key:\n    pass",
        "def f():\n    with lock.hold():\n        for x in y:\n            yield x",
    ],
)
def test_holding_a_lock_in_another_form_is_reported(text: str) -> None:
    assert list(find_faults(ast.parse(text)))


def test_the_allowed_form_of_a_lock_is_not_reported() -> None:
    text = "def f():\n    with lock.hold():\n        def g():\n            yield\n        lists.append(g)"
    assert not list(find_faults(ast.parse(text)))
