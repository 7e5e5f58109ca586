"""The known stores by URL scheme: HDFS, stores of installed packages, registered stores, otherwise fsspec.

Another package offers a store by an entry point of the group ``paddlelike.stores``, whose name is the scheme
and whose value is a function that takes a URL and returns the store and the path in it::

    [project.entry-points."paddlelike.stores"]
    toy = "toy_package.stores:open_toy"

Modules of stores are imported when a URL of their scheme is first opened.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Final

from paddlelike.errors import PaddlelikeError, StorageError
from paddlelike.storage.remote.base import Store

Opener = Callable[[str], tuple[Store, str]]

GROUP: Final = "paddlelike.stores"
_BUILT_IN: Final = {
    "hdfs": "paddlelike.storage.remote.hdfs:open_url",
}
_FALLBACK: Final = "paddlelike.storage.remote.fsspec_store:open_url"


class _Registry:
    """Functions that open stores, by scheme."""

    def __init__(self) -> None:
        self.targets = dict(_BUILT_IN)
        self.openers: dict[str, Opener] = {}
        self._has_searched = False

    def search(self) -> None:
        """Add the entry points of installed packages, once."""
        if self._has_searched:
            return
        from importlib.metadata import entry_points  # slow to import, and rarely needed

        for point in entry_points(group=GROUP):
            self.targets.setdefault(point.name, point.value)
        self._has_searched = True  # last, so that other threads search, too, rather than miss some


_registry: Final = _Registry()


def register(scheme: str, opener: Opener) -> None:
    """Make ``opener`` open the URLs of a scheme in this process.

    Raises
    ------
    StorageError
        The scheme has a store already.
    """
    _registry.search()
    if scheme in _registry.targets or scheme in _registry.openers:
        raise StorageError(f"a store for {scheme}:// is registered already")
    _registry.openers[scheme] = opener


def all_schemes() -> list[str]:
    """Return the schemes with a store of their own, sorted; fsspec supports further ones.

    >>> "hdfs" in all_schemes()
    True
    """
    _registry.search()
    return sorted({*_registry.targets, *_registry.openers})


def open_store(url: str) -> tuple[Store, str]:
    """Return the store of a URL, and the path in it.

    Raises
    ------
    ExtraMissingError
        A package that reaches the URL is not installed.
    StorageError
        The URL has no store or names no directory, or the package of the store cannot be used.
    """
    scheme = url.partition(":")[0]
    if scheme not in _BUILT_IN:
        _registry.search()
    opener = _registry.openers.get(scheme)
    target = _registry.targets.get(scheme)
    if opener is None:
        opener = _load(target or _FALLBACK, scheme)
    try:
        return opener(url)
    except PaddlelikeError:
        raise
    except Exception as error:  # any error of another package
        raise StorageError(f"{url} cannot be opened by its store: {error!r}") from error


def _load(target: str, scheme: str) -> Opener:
    module, _, name = target.partition(":")
    try:
        opener: Opener = getattr(import_module(module), name)
    except Exception as error:  # any error at the import of another package
        raise StorageError(
            f"the store for {scheme}:// ({target}) cannot be used: {error!r}",
            hint="upgrade or remove the package that offers it; other stores are not affected",
        ) from error
    return opener
