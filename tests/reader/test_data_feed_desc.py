"""Descriptions of data feeds. The texts are what real Paddle Fluid 1.8.5 prints for the same calls."""

from __future__ import annotations

from pathlib import Path

import pytest

import paddlelike as fluid
from paddlelike.errors import FormatError

GIVEN = """name: "MultiSlotDataFeed"
batch_size: 2
multi_slot_desc {
    slots { name: "words" type: "uint64" is_dense: false is_used: false }
    slots { name: "label" type: "float" is_dense: false is_used: true }
}
"""
CHANGED = """name: "MultiSlotDataFeed"
batch_size: 128
multi_slot_desc {
  slots {
    name: "words"
    type: "uint64"
    is_dense: false
    is_used: true
  }
  slots {
    name: "label"
    type: "float"
    is_dense: true
    is_used: true
  }
}
pipe_command: "cat"
"""


def describe(path: Path, text: str) -> fluid.DataFeedDesc:
    path.write_text(text)
    return fluid.DataFeedDesc(str(path))


def test_a_data_feed_description_is_read_and_printed_as_in_fluid(tmp_path: Path) -> None:
    desc = describe(tmp_path / "data.proto", GIVEN)
    desc.set_batch_size(128)
    desc.set_dense_slots(["label"])
    desc.set_use_slots(["words"])
    assert desc.desc() == CHANGED


def test_the_description_of_a_dataset_is_read_back(tmp_path: Path) -> None:
    dataset = fluid.DatasetFactory().create_dataset("QueueDataset")
    dataset.set_batch_size(7)
    dataset.set_use_var([fluid.data("words", [None, 1], "int64", lod_level=1), fluid.data("y", [None, 3])])
    found = describe(tmp_path / "data.proto", dataset.desc()).proto_desc
    assert (found.batch_size, [slot.name for slot in found.multi_slot_desc.slots]) == (7, ["words", "y"])


@pytest.mark.parametrize("text", ["words: 1", "name: ", "\x89PNG"], ids=["field", "cut", "picture"])
def test_a_file_of_another_kind_is_a_format_error(tmp_path: Path, text: str) -> None:
    with pytest.raises(FormatError, match="not a description of a data feed"):
        describe(tmp_path / "data.proto", text)


def test_a_missing_slot_is_named_with_the_nearest_name(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"no slot 'word'.*words"):
        describe(tmp_path / "data.proto", GIVEN).set_use_slots(["word"])
    with pytest.raises(ValueError, match="expected MultiSlotDataFeed"):
        describe(tmp_path / "data.proto", 'name: "Other"').set_dense_slots(["words"])
