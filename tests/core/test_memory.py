"""Memory for arrays, and what is said when there is none."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import numpy as np
import pytest

from paddlelike.core import memory
from paddlelike.errors import OutOfMemoryError, PaddlelikeError


@pytest.mark.parametrize("shape", [(2**59, 8), (2**60, 8), (2**70,)], ids=str)
@pytest.mark.parametrize("make", [memory.empty, memory.Arena(2**62).empty], ids=["empty", "arena"])
def test_an_allocation_beyond_the_memory_of_the_machine_is_an_error(make, shape):
    with pytest.raises(OutOfMemoryError, match="bytes of memory cannot be allocated") as caught:
        make(shape, np.dtype("uint8"))
    assert isinstance(caught.value, MemoryError)
    assert isinstance(caught.value, PaddlelikeError)


_COUNT_FAULTS = """
import resource
import numpy as np
from paddlelike.core import memory

def count(size):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    np.ones(size, np.uint8)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

memory.keep_freed_memory()
memory.keep_freed_block(96 << 20)
memory.keep_freed_block(1 << 20)  # takes nothing back
count(64 << 20)
print(count(64 << 20), count(128 << 20))
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries are not asked")
@pytest.mark.parametrize("keeps", [True, False])
def test_a_kept_block_of_memory_is_reused(keeps):
    environment = os.environ | {"PADDLELIKE_KEEP_MEMORY": str(int(keeps))}
    command = [sys.executable, "-c", _COUNT_FAULTS]
    told = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    again, larger = map(int, told.split())
    pages = (64 << 20) // 4096 // 512  # huge ones: numpy asks for them
    assert (again < pages) is keeps
    assert larger >= pages
