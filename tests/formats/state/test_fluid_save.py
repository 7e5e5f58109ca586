"""The files of ``fluid.save`` as one format: real ones, and the split into parameters and the rest."""

from __future__ import annotations

import numpy as np
import pytest

from paddlelike.errors import FormatError
from paddlelike.formats.state import decode
from paddlelike.formats.state.fluid_save import FluidSave, PrefixedFolder
from paddlelike.storage.location import LocalDirectory
from paddlelike.testing.formats import FormatContract, MemoryFolder
from tests.formats.state.test_format import ONE
from tests.helpers.golden_data import GOLDEN


class TestFluidSave(FormatContract):
    format = FluidSave()
    golden_values = {"w": np.float32([1, -0.0])}
    golden_files = {".pdopt": b"\x80\x02}q\x00.", ".pdparams": ONE}


def test_fluid_save_writes_parameters_and_other_variables_to_two_files() -> None:
    values = {"w": np.ones(2), "w_velocity_0": np.zeros(2)}
    written = FluidSave(parameters=frozenset({"w"})).write(values)
    files = {name: b"".join(buffers) for name, buffers in written.items()}
    assert {name: list(decode(data).arrays) for name, data in files.items()} == {
        ".pdparams": ["w"],
        ".pdopt": ["w_velocity_0"],
    }
    entries = FluidSave().entries(MemoryFolder(files))
    assert [(entry.name, entry.file) for entry in entries] == [("w", ".pdparams"), ("w_velocity_0", ".pdopt")]


def test_real_files_of_fluid_save_are_found_by_their_prefix() -> None:
    folder = PrefixedFolder(LocalDirectory(GOLDEN / "fit_a_line/fluid_save"), "model")
    assert folder.list_names() == [".pdopt", ".pdparams"]
    assert FluidSave().sniff(folder)
    values = FluidSave().read_all(folder)
    assert sorted(values) == ["fc_0.b_0", "fc_0.w_0", "learning_rate_0"]
    real = (GOLDEN / "fit_a_line/persistables/fc_0.w_0").read_bytes()
    assert real.endswith(values["fc_0.w_0"].array.tobytes())


def test_a_folder_without_either_file_is_refused() -> None:
    assert [entry.name for entry in FluidSave().entries(MemoryFolder({".pdopt": ONE}))] == ["w"]
    with pytest.raises(FormatError, match=r"there is neither \.pdparams nor \.pdopt"):
        FluidSave().entries(MemoryFolder({".pdmodel": ONE}))
