"""Pickles of Theano with a GPU, files that are not pickles, and names that the numpy of Theano knows."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import pickle
import pickletools
import zipfile

import numpy as np
import pytest

from paddlelike import bundle
from paddlelike.errors import FormatError

#: ``_reduce`` of theano/gpuarray/type.py and theano/sandbox/cuda/type.py: the function, then the array.
FUNCTIONS = {
    "theano.sandbox.cuda.type\nCudaNdarray_unpickler": b"\x85",
    "theano.gpuarray.type\nGpuArray_unpickler": b"N\x86",
    "theano.sandbox.gpuarray.type\nGpuArray_unpickler": b"N\x86",
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_gpu_array_in_a_pickle_is_read_as_a_numpy_array(name: str) -> None:
    array = np.arange(6, dtype="f4").reshape(2, 3)
    inner = pickle.dumps(array, 2)[2:-1]
    data = b"\x80\x02]c" + name.encode() + b"\n" + inner + FUNCTIONS[name] + b"Ra."
    (found,) = bundle.load(io.BytesIO(data))
    np.testing.assert_array_equal(found, array)
    with pytest.raises(FormatError, match="the pickle makes a GPU array of a int"):
        bundle.load(io.BytesIO(data.replace(inner, b"K\x01")))


@pytest.mark.parametrize(
    ("data", "hint"),
    [
        (gzip.compress(b"[]"), r"gzip archive .*gzip\.open"),
        (bz2.compress(b"[]"), r"bzip2 archive.*bz2\.open"),
        (lzma.compress(b"[]"), r"xz archive.*lzma\.open"),
        (b"<!DOCTYPE html><html>404</html>", "web page"),
        (b"", "the file is empty"),
    ],
    ids=["gzip", "bzip2", "xz", "page", "empty"],
)
def test_the_error_names_the_kind_of_a_file_of_another_system(data: bytes, hint: str) -> None:
    with pytest.raises(FormatError, match=f"(?s)this is not a pickle.*{hint}"):
        bundle.load(io.BytesIO(data))


def test_numbers_of_numpy_are_pickled_under_the_names_of_numpy_1() -> None:
    file = io.BytesIO()
    bundle.dump({"w": np.ones(2), "best": np.float64(0.5)}, file)
    data = zipfile.ZipFile(file).read("pkl")
    named = [argument for opcode, argument, _ in pickletools.genops(data) if opcode.name == "GLOBAL"]
    assert "numpy.core.multiarray scalar" in named
    assert not any(str(name).startswith("numpy._core") for name in named)
    assert bundle.load(io.BytesIO(file.getvalue()))["best"] == 0.5
