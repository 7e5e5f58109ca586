"""One save or load of a workload by one library: run by ``bench_peers`` in the interpreter that has the library.

    python peer.py LIBRARY save|load DIRECTORY SHAPES.json

It prints the processor and the wall seconds of the save or load alone, as JSON. Python 3.7 runs it, for Fluid
1.8.5, and nothing but the library and numpy is imported.
"""

import json
import os
import sys
import tempfile
import time

import numpy as np


class Limit:
    """The bytes of every array in a file, by one call of the system."""

    def save(self, arrays, directory):
        os.mkdir(directory)
        for name, array in arrays.items():
            rest = memoryview(array).cast("B")
            fd = os.open(os.path.join(directory, name), os.O_WRONLY | os.O_CREAT | os.O_EXCL)
            while rest:
                rest = rest[os.write(fd, rest) :]
            os.close(fd)

    def load(self, shapes, directory):
        found = {}
        for name, shape in shapes.items():
            fd = os.open(os.path.join(directory, name), os.O_RDONLY)
            found[name] = np.empty(shape, np.float32)
            rest = memoryview(found[name]).cast("B")
            while rest:
                rest = rest[os.readv(fd, [rest]) :]
            os.close(fd)
        return found


class Numpy:
    def save(self, arrays, directory):
        os.mkdir(directory)
        for name, array in arrays.items():
            np.save(os.path.join(directory, name + ".npy"), array)

    def load(self, shapes, directory):
        return {name: np.load(os.path.join(directory, name + ".npy")) for name in shapes}


class Safetensors:
    def __init__(self):
        from safetensors import numpy

        self.library = numpy

    def save(self, arrays, directory):
        os.mkdir(directory)
        self.library.save_file(arrays, os.path.join(directory, "all"))

    def load(self, shapes, directory):
        return self.library.load_file(os.path.join(directory, "all"))


class Torch:
    def __init__(self):
        import torch

        self.library = torch

    def save(self, arrays, directory):
        os.mkdir(directory)
        tensors = {name: self.library.from_numpy(array) for name, array in arrays.items()}
        self.library.save(tensors, os.path.join(directory, "all"))

    def load(self, shapes, directory):
        return self.library.load(os.path.join(directory, "all"))


class Fluid:
    """Fluid's interface, of Fluid itself or of this package."""

    def __init__(self, module, **options):
        self.library = __import__(module, fromlist=["fluid"])
        self.options = options
        self.exe = self.library.Executor(self.library.CPUPlace())

    def program(self, shapes):
        program = self.library.Program()
        for name, shape in shapes.items():
            program.global_block().create_var(name=name, shape=shape, dtype="float32", persistable=True)
        return program

    def prepare(self, arrays):
        """Put the arrays into the scope, and import what the first save and load import."""
        for name, array in arrays.items():
            self.library.global_scope().var(name).get_tensor().set(array, self.library.CPUPlace())
        self.library.global_scope().var("warm").get_tensor().set(
            np.ones(1, "float32"), self.library.CPUPlace()
        )
        with tempfile.TemporaryDirectory() as home:
            self.library.io.save_persistables(self.exe, home, self.program({"warm": (1,)}))
            self.library.io.load_persistables(self.exe, home, self.program({"warm": (1,)}))
        self.built = self.program({name: array.shape for name, array in arrays.items()})

    def save(self, arrays, directory):
        self.library.io.save_persistables(self.exe, directory, self.built, **self.options)

    def load(self, shapes, directory):
        self.library.io.load_persistables(self.exe, directory, self.built, **self.options)


LIBRARIES = {
    "limit": Limit,
    "np.save": Numpy,
    "safetensors": Safetensors,
    "torch.save": Torch,
    "fluid185": lambda: Fluid("paddle.fluid"),
    "paddlelike": lambda: Fluid("paddlelike"),
    "paddlelike, verify=False": lambda: Fluid("paddlelike", verify=False),
}


def warm_pages(nbytes, path):
    """Leave the system with free pages that were in use a moment ago: those of a guest cost more at first."""
    piece = bytes(16 << 20)
    with open(path, "wb") as file:
        for _ in range(nbytes // len(piece) + 4):
            file.write(piece)
        file.truncate(0)


def main():
    name, what, directory, shapes = sys.argv[1:]
    with open(shapes) as file:
        shapes = {name: tuple(shape) for name, shape in json.load(file).items()}
    library = LIBRARIES[name]()
    arrays = {}
    if what == "save":
        arrays = {
            each: np.full(shape, index, np.float32) for index, (each, shape) in enumerate(shapes.items())
        }
    if isinstance(library, Fluid):
        library.prepare(arrays)
        library.built = library.program(shapes)
    warm_pages(sum(4 * int(np.prod(shape)) for shape in shapes.values()), directory + ".warm")
    wall, cpu = time.perf_counter(), time.process_time()
    kept = library.save(arrays, directory) if what == "save" else library.load(shapes, directory)
    print(json.dumps({"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall}))
    del kept


if __name__ == "__main__":
    main()
