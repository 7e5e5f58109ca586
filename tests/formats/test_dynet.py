"""DyNet's text format: golden bytes, and damage."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paddlelike.errors import FormatError
from paddlelike.formats.dynet import Block, DynetFile, encode, read_blocks
from paddlelike.testing import FormatContract

GOLDEN = Path(__file__).parent.parent / "golden" / "dynet"
FILES = sorted(p.name for p in GOLDEN.iterdir() if p.suffix in (".model", ".data") and p.stem != "nonfinite")


class TestDynetFile(FormatContract):
    format = DynetFile()
    golden_values = {"/w": np.float32([[1], [-2.5]])}
    golden_files = {"": b"#Parameter# /w {2,1} 33 ZERO_GRAD\n+1.00000000e+00 -2.50000000e+00 \n"}

    @classmethod
    def sample(cls) -> dict[str, Any]:
        values = super().sample()
        del values["shape.none"]  # DyNet's dims are never empty
        return {**values, "shape.one": np.ones(1, "float32")}


@pytest.mark.parametrize(
    ("value", "why"),
    [(np.ones((), "float32"), "an array without dims"), (np.float32([np.nan]), "inf or nan")],
    ids=["scalar", "nan"],
)
def test_values_that_the_text_cannot_hold_are_refused(value: np.ndarray, why: str) -> None:
    with pytest.raises(FormatError, match=f"'/w': {why}"):
        DynetFile().write({"/w": value})


def test_two_blocks_of_one_name_are_refused() -> None:
    with pytest.raises(FormatError, match="two blocks have the name '/w'"):
        DynetFile().entries(TestDynetFile.golden_files[""] * 2)


@pytest.mark.parametrize("name", FILES)
def test_every_file_of_dynet_is_read_and_written_back_byte_for_byte(name: str) -> None:
    data = (GOLDEN / name).read_bytes()
    assert b"".join(encode(read_blocks(data))) == data


def test_a_small_block_has_the_bytes_of_dynet() -> None:
    table = Block("#LookupParameter#", "/t", np.float32([[1, 2], [3, 4], [5, 6]]))
    numbers = [f"{n:+.8e} " for n in (1, 2, 3, 4, 5, 6)]  # rows are contiguous
    assert (
        b"".join(encode([table]))
        == ("#LookupParameter# /t {2,3} 97 ZERO_GRAD\n" + "".join(numbers) + "\n").encode()
    )
    matrix = Block("#Parameter#", "/m", np.float32([[1, 2], [3, 4]]))
    assert b"+1.00000000e+00 +3.00000000e+00 +2" in b"".join(encode([matrix]))  # column-major


def test_a_file_of_an_old_version_has_four_fields_and_always_has_gradients() -> None:
    (block,) = read_blocks(b"#Parameter# /w {2} 13\n1 2.5\n-3e0 4\n")
    assert block.values.tolist() == [1, 2.5]
    assert block.gradients is not None
    assert block.gradients.tolist() == [-3, 4]


GOOD = b"#Parameter# /w {2,2} 65 ZERO_GRAD\n" + b"+1.00000000e+00 " * 4 + b"\n"


@pytest.mark.parametrize("length", range(1, len(GOOD)))
def test_a_file_that_is_cut_is_refused(length: int) -> None:
    with pytest.raises(FormatError):
        list(read_blocks(GOOD[:length]))


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (GOOD.replace(b"{2,2}", b"{2,3}"), "need 6 numbers, the line has 4"),
        (GOOD.replace(b"{2,2}", b"{200000000,200000000}"), "its body has 65 bytes"),
        (GOOD.replace(b"{2,2}", b"{0,9999999999,9999999999}"), "an array cannot have the dims"),
        (GOOD.replace(b"{2,2}", b"{2,2" + b",1" * 31 + b"}"), "an array cannot have the dims"),
        (GOOD.replace(b"+1.00000000e+00 ", b"+1_0.000000e+00 ", 1), "not numbers"),
        (b"#Parameter# /w {999} 6000 ZERO_GRAD\n" + b"1 " * 998 + b"1" * 4003 + b"\n", "not numbers"),
        (GOOD.replace(b"65", b"64"), "block /w"),
        (GOOD.replace(b"65", b"99999999999999999"), "the file is cut"),
        (GOOD.replace(b"+1.00000000e+00 ", b"+1.0000x000e+00 ", 1), "not numbers"),
        (GOOD.replace(b"#Parameter#", b"#Parameters"), "not a header"),
        (GOOD.replace(b"ZERO", b"HALF"), "not a header"),
        (b"\x89PNG\r\n" + b"\0" * 100, "not a header"),
    ],
    ids=[
        "fewer",
        "huge",
        "zero",
        "dims",
        "underscore",
        "long",
        "size",
        "beyond",
        "word",
        "kind",
        "mark",
        "png",
    ],
)
def test_damage_is_named(data: bytes, text: str) -> None:
    with pytest.raises(FormatError, match=text):
        list(read_blocks(data))
