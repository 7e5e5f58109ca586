"""A store in one dict, and the function that opens it."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping

from paddlelike.storage.remote.base import Info, Store


class ToyStore:
    """A store in one dict, as another package might offer it."""

    files: dict[str, tuple[bytes, int]] = {}
    counter = itertools.count()

    def is_same(self, other: Store) -> bool:
        return isinstance(other, ToyStore)

    def find(self, folder: str) -> dict[str, Info]:
        begin = folder + "/"
        return {
            p[len(begin) :]: Info(len(d), str(n)) for p, (d, n) in self.files.items() if p.startswith(begin)
        }

    def read(self, path: str, start: int = 0, stop: int | None = None) -> bytes:
        if path not in self.files:
            raise FileNotFoundError(path)
        return self.files[path][0][start:stop]

    def fetch(self, folder: str, names: Iterable[str]) -> dict[str, bytes]:
        return {}

    def write(self, folder: str, files: Mapping[str, Iterable[bytes]]) -> None:
        for name, buffers in files.items():
            self.put(f"{folder}/{name}", b"".join(bytes(buffer) for buffer in buffers))

    def put(self, path: str, data: bytes) -> None:
        self.files[path] = data, next(self.counter)

    def create(self, path: str, data: bytes) -> bool:
        entry = data, next(self.counter)
        return self.files.setdefault(path, entry) is entry

    def list_prefix(self, front: str) -> dict[str, Info | None]:
        above, _, begin = front.rpartition("/")
        found: dict[str, Info | None] = {}
        for path, info in self.find(above).items():
            name, _, rest = path.partition("/")
            if name.startswith(begin):
                found[name] = None if rest else info
        return found

    def move(self, source: str, target: str, names: Iterable[str]) -> None:
        for name in names:
            entry = self.files.pop(f"{source}/{name}", None)
            if entry is not None:
                self.files[f"{target}/{name}"] = entry

    def copy(self, source: str, target: str, names: Iterable[str]) -> None:
        for name in names:
            self.files[f"{target}/{name}"] = self.files[f"{source}/{name}"]

    def remove(self, folder: str, names: Iterable[str]) -> None:
        for name in names:
            self.files.pop(f"{folder}/{name}", None)


def open_toy(url: str) -> tuple[Store, str]:
    return ToyStore(), url.removeprefix("toy://")
