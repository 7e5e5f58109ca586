"""The toy format: b"TOY1", then a line and the elements of every tensor."""

import math
from dataclasses import dataclass

from paddlelike.core import VarType
from paddlelike.errors import FormatError
from paddlelike.formats.base import Capabilities, FileFormat
from paddlelike.formats.elements import view_elements
from paddlelike.formats.entry import Entry
from paddlelike.formats.sources import as_source


@dataclass(frozen=True)
class Toy(FileFormat):
    name = "toy"
    title = "a toy file"
    suffixes = (".toy",)
    holds = Capabilities(dtypes=frozenset({VarType.FP32}))

    def sniff(self, head, size):
        return head.startswith(b"TOY1")

    def entries(self, source):
        file = as_source(source)
        if bytes(file.read_at(0, 4)) != b"TOY1":
            raise FormatError("no toy file")
        found, at = [], 4
        while at < file.size:
            line = bytes(file.read_at(at, 200)).partition(b"\n")[0]
            try:
                name, *dims = line.decode().split(" ")
                shape = tuple(int(dim) for dim in dims)
            except ValueError as error:
                raise FormatError(f"offset {at}: no line of name and dims") from error
            at += len(line) + 1
            found.append(Entry(name, VarType.FP32, shape, offset=at, nbytes=4 * math.prod(shape)))
            at += found[-1].nbytes
        return found

    def refuse_name(self, name):
        bad = name.split() != [name] or len(name) > 40
        return "a name with blanks, or of more than 40 letters" if bad else super().refuse_name(name)

    def write(self, values):
        self.check(values)
        return self._encode(values)

    def _encode(self, values):
        yield b"TOY1"
        for name, value in values.items():
            array = getattr(value, "array", value)
            yield " ".join([name, *map(str, array.shape)]).encode() + b"\n"
            yield view_elements(array)
