"""Kernels that numba compiles when they are first used, and the rule that decides whether to use them.

A kernel is a plain Python function of arrays. It is used if ``FLAGS_use_fast_kernels`` is on (the default),
numba is installed and the arrays are large enough; numba is not imported before that.

numba takes about a second to start, and a second more for every few kernels not yet in its cache. So a kernel
with numpy's bits is used only after some work was done without it, unless the flag was set to True. A kernel
with other bits is chosen by size alone, so that equal runs give equal bits.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import os
import re
import stat
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, field
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from paddlelike.errors import UnsupportedError
from paddlelike.foundation.locks import RLock
from paddlelike.framework.flags import flag, is_set
from paddlelike.lazy import dataclass

if TYPE_CHECKING:
    from pathlib import Path

Array = np.ndarray[Any, Any]
Number = Any  # a scalar in the type of the arrays

FLAG: Final = "FLAGS_use_fast_kernels"
_FLOATS: Final = (np.dtype(np.float32), np.dtype(np.float64))
_PAYS: Final = 1 << 29  # elements that exact kernels leave to numpy first: about the time of numba's start
_LONGS: Final = (np.dtype(np.int64),)
_LONG: Final = 2.0  # seconds of compiling after which the user gets a message
_lock: Final = RLock()


@dataclass(eq=False)
class FastKernel:
    """A function that numba compiles for each type of numbers when it is first chosen for that type.

    Attributes
    ----------
    name
        The module and name of the function.
    function
        The function in Python: correct and slow.
    signature
        Numba's signature, with ``T`` for the type of the numbers: ``"void(T[::1], T)"``.
    dtypes
        The dtypes of the arrays: float32 and float64, or int64 where the signature has no ``T``.
    least
        The least size of the work, usually elements, for which the kernel is chosen.
    asked
        The least size when the flag was set to True, since the time to start numba does not matter then.
        By default ``least``.
    exact
        Whether it gives the same bits as the numpy kernel it replaces. Other kernels differ by rounding.
    reorder
        Whether sums may be taken in any order, and products fused with additions.
    helpers
        The functions of the same file that it calls.
    text
        The source of the function, when it was not read from a file.
    calls
        The number of times it was chosen.
    """

    function: Callable[..., Any]
    signature: str
    _: KW_ONLY
    least: int
    asked: int | None = None
    exact: bool = True
    reorder: bool = False
    helpers: Sequence[Callable[..., Any]] = ()
    text: str = ""
    calls: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self.name = f"{self.function.__module__.rpartition('.')[2]}.{self.function.__name__}"
        self.dtypes = _FLOATS if re.search(r"\bT\b", self.signature) else _LONGS
        self.exact = self.exact and not self.reorder
        self._compiled: dict[np.dtype[Any], Callable[..., Any]] = {}
        self.__doc__ = self.function.__doc__

    def choose(self, size: int, *arrays: Array) -> Callable[..., Any] | None:
        """Return the compiled function for work of this size on ``arrays``, or None for numpy.

        The arrays must be of one of the kernel's types, contiguous in C order, aligned and in writable
        memory. Read-only views of such memory will do: parameters are such views while a save reads them.
        """
        if size < self.least and (self.asked is None or size < self.asked or not is_set(FLAG)):
            return None
        if on_request.active and not is_set(FLAG):
            return None
        if not is_on() or (self.exact and not _pays(size)):
            return None
        dtype = arrays[0].dtype
        if dtype not in self.dtypes:
            return None
        are_open = True
        for array in arrays:
            # Compiled programs evaluate kernels with arrays of JAX.
            if not isinstance(array, np.ndarray) or array.dtype != dtype:
                return None
            if not array.flags.carray:
                if not array.flags.c_contiguous or not array.flags.aligned or _open(array) is None:
                    return None
                are_open = False
        try:
            found = self.get_compiled(dtype)
        except Exception as error:  # of any version of numba
            _give_up(f"numba cannot compile {self.name}: {error}")
            is_on()  # raises if the flag insists
            return None
        self.calls += 1
        return found if are_open else functools.partial(_run_opened, found)

    def get_compiled(self, dtype: np.dtype[Any]) -> Callable[..., Any]:
        """Return the compiled function for one dtype, and compile it at the first call."""
        found = self._compiled.get(dtype)
        if found is not None:
            return found
        with _lock.hold():
            if dtype not in self._compiled:
                signature = re.sub(r"\bT\b", dtype.name, self.signature)
                self._compiled[dtype] = compile_function(
                    self.function, signature, reorder=self.reorder, helpers=self.helpers, text=self.text
                )
            return self._compiled[dtype]


def _open(array: Array) -> Array | None:
    """Return a writable view, which numba requires; None if the memory is not writable."""
    view = array.view()
    try:
        view.flags.writeable = True
    except ValueError:
        return None
    return view


def _run_opened(kernel: Callable[..., object], *arguments: object) -> object:
    """Run a kernel that only reads its arrays; some of them are read-only."""
    return kernel(*(_open(one) if isinstance(one, np.ndarray) else one for one in arguments))


class _OnRequest(threading.local):
    """Whether this thread uses compiled kernels only if the flag was explicitly set to True.

    Predictors set this: their first answer would wait for numba, and later answers gain little.
    """

    active = False


on_request: Final = _OnRequest()
_work = [0]  # elements that exact kernels have left to numpy


def _pays(size: int) -> bool:
    """Return whether it is worth starting numba for kernels with the same bits as numpy's."""
    if _work[0] >= _PAYS:
        return True
    _work[0] = _PAYS if is_set(FLAG) or "numba.core.registry" in sys.modules else _work[0] + size
    return _work[0] >= _PAYS


#: Every kernel by name, once its module is imported.
KERNELS: Final[dict[str, FastKernel]] = {}


def compile_late(signature: str, **options: Any) -> Callable[[Callable[..., Any]], FastKernel]:
    """Return a decorator that turns a function into a :class:`FastKernel` and adds it to :data:`KERNELS`."""

    def decorate(function: Callable[..., Any]) -> FastKernel:
        kernel = FastKernel(function, signature, **options)
        KERNELS[kernel.name] = kernel
        return kernel

    return decorate


def is_on() -> bool:
    """Return whether compiled kernels may be chosen: numba works, and the flag is not False.

    Raises UnsupportedError when the flag was set to True and numba does not work.
    """
    if not flag(FLAG):
        return False
    fault = find_fault()
    if fault is None:
        return True
    if is_set(FLAG):
        raise UnsupportedError(
            f"{FLAG} is True, but {fault}",
            hint='pip install "paddlelike[fast]", or leave the flag unset: numpy computes the same',
        )
    return False


def check_flag() -> None:
    """Raise UnsupportedError when the flag requires compiled kernels and numba is not installed."""
    if is_set(FLAG):
        is_on()


def find_fault() -> str | None:
    """Return why numba cannot be used, or None; numba itself is imported only once a kernel is compiled."""
    return _faults[0] if _faults else _look_for_numba()


_faults: list[str] = []  # what went wrong when numba was used


def _give_up(fault: str) -> None:
    """Record and report a failure of numba. Afterwards numpy computes everything."""
    _faults.append(fault)
    _warn(f"{fault}; numpy is used instead")


@functools.cache
def _look_for_numba() -> str | None:
    if importlib.util.find_spec("numba") is None:
        return "numba is not installed"
    if os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"):
        return "NUMBA_DISABLE_JIT is set"
    return None


def compile_function(
    function: Callable[..., Any],
    signature: str,
    *,
    reorder: bool,
    helpers: Sequence[Callable[..., Any]],
    text: str,
) -> Callable[..., Any]:
    """Return a function compiled for one signature, read from the user's cache if possible.

    ``reorder``, ``helpers``, ``text``: see :class:`FastKernel`.
    """
    numba = importlib.import_module("numba")
    import logging  # late: it takes long

    logger = logging.getLogger("numba")
    if not logger.level:  # a script that logs at DEBUG wants its own lines, not the compiler's
        logger.setLevel(logging.WARNING)
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
    if reorder:
        options["fastmath"] = {"reassoc", "contract", "nsz"}
    # numba looks up names in the function's module, so the function gets a module with compiled helpers.
    names = dict(function.__globals__)
    names.update((each.__name__, numba.njit(**options)(_copy_with(each, names))) for each in helpers)
    folder = find_cache()
    before = numba.config.CACHE_DIR
    start = time.process_time()
    try:
        if folder is not None:
            # read when the function is made; the rest of the process keeps its own setting
            checked = "-checked" if numba.config.BOUNDSCHECK else ""  # NUMBA_BOUNDSCHECK=1, as tests set it
            made_by = f"numba-{numba.__version__}{checked}"
            numba.config.CACHE_DIR = str(folder / made_by / hash_source(function, text))
        compiled: Callable[..., Any] = numba.njit(signature, cache=folder is not None, **options)(
            _copy_with(function, names)
        )
    finally:
        numba.config.CACHE_DIR = before
    _tell_if_long(time.process_time() - start, folder)
    return compiled


def hash_source(function: Callable[..., Any], text: str = "") -> str:
    """Return a hash of a function's file and of its text, as numba compares only the file's date and size."""
    import hashlib  # late: it takes long

    try:
        with open(function.__code__.co_filename, "rb") as file:
            source = file.read()
    except OSError:  # no file of its own
        source = b""
    return hashlib.blake2b(source + text.encode(), digest_size=8).hexdigest()


def _copy_with(function: Callable[..., Any], names: dict[str, Any]) -> FunctionType:
    """Return a function with the same code and other global names."""
    copied = FunctionType(function.__code__, names, function.__name__)
    copied.__module__, copied.__qualname__ = function.__module__, function.__qualname__
    return copied


_spent = [0.0, 0.0]  # seconds of compiling so far; 1 once the user got the message


def _tell_if_long(seconds: float, folder: Path | None) -> None:
    _spent[0] += seconds
    if _spent[0] >= _LONG and not _spent[1]:
        _spent[1] = 1
        kept = (
            "they are not kept: no folder of the user's is writable"
            if folder is None
            else f"kept in {folder}"
        )
        _warn(f"compiled kernels for {_spent[0]:.0f} s ({kept}); FLAGS_use_fast_kernels=0 turns them off")


def _warn(text: str) -> None:
    import logging  # late: it takes long

    logging.getLogger(__name__).warning("paddlelike: %s", text)


def find_cache() -> Path | None:
    """Return the folder for compiled kernels, which is created if needed; None if no folder is writable.

    It is ``NUMBA_CACHE_DIR`` if set, else ``paddlelike/kernels`` in ``XDG_CACHE_HOME`` or ``~/.cache``. A
    folder that others can write to or replace is not used, because its code is executed.
    """
    from pathlib import Path  # late: it takes long

    given = os.environ.get("NUMBA_CACHE_DIR")
    try:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        folder = Path(given) if given else base / "paddlelike" / "kernels"
        for one in (folder,) if given else (folder.parent, folder):
            one.mkdir(mode=0o700, parents=True, exist_ok=True)
            found = one.stat()
            own = found.st_uid == os.getuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
            if not (own or given):
                return None
    except (OSError, RuntimeError):  # no home
        return None
    return folder if os.access(folder, os.W_OK | os.X_OK) else None


def describe() -> str:
    """Describe whether compiled kernels are used, why, and where numba keeps them."""
    if not flag(FLAG):
        return f"off: {FLAG} is False"
    fault = find_fault()
    if fault is not None:
        return f"none: {fault}"
    folder = find_cache()
    return f"by numba on large arrays; kept {'nowhere' if folder is None else f'in {folder}'}"


def count_calls() -> dict[str, int]:
    """Return how often each kernel was chosen so far, by name."""
    return {name: kernel.calls for name, kernel in KERNELS.items()}
