"""fluid.DataFeedDesc: a file that describes the slots of text lines (Paddle's ``data_feed.proto``)."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

from paddlelike.errors import FormatError
from paddlelike.foundation.near_names import suggest_names
from paddlelike.foundation.protobuf import MessageClass, make_classes
from paddlelike.foundation.text_tables import read_table


@lru_cache(maxsize=1)
def _message() -> MessageClass:
    table = read_table("paddlelike.reader", "data_feed.txt")
    return make_classes(table, "paddle.framework", "proto2", {})("DataFeedDesc")


class DataFeedDesc:
    """The description in a file, in protobuf's text format; ``proto_desc`` is the message.

    It has no effect here: a dataset (``fluid.DatasetFactory``) reads the same lines, and its ``set_use_var``
    replaces ``set_use_slots``.

    Parameters
    ----------
    proto_file
        The path of the file.

    Raises
    ------
    FormatError
        The file is not a description of a data feed.

    See Also
    --------
    fluid.DatasetFactory, fluid.data_feeder.data_generator.DataGenerator
    fluid.data_feeder.data_generator.MultiSlotDataGenerator
    fluid.data_feeder.data_generator.MultiSlotStringDataGenerator

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "data.proto"
    >>> text = 'name: "MultiSlotDataFeed" multi_slot_desc { slots { name: "words" type: "uint64" } }'
    >>> _ = file.write_text(text)
    >>> feed = DataFeedDesc(str(file))
    >>> feed.set_use_slots(["words"])
    >>> feed.proto_desc.multi_slot_desc.slots[0].is_used, feed.proto_desc.batch_size
    (True, 32)
    """

    def __init__(self, proto_file: str) -> None:
        from google.protobuf import text_format

        self.proto_desc: Any = _message()()
        try:
            text_format.Parse(Path(proto_file).read_text(encoding="utf-8"), self.proto_desc)
        except (text_format.ParseError, UnicodeDecodeError) as problem:
            raise FormatError(
                f"DataFeedDesc: {proto_file} is not a description of a data feed: {problem}",
                hint='it begins with name: "MultiSlotDataFeed"; dataset.desc() gives an example',
            ) from None
        self.proto_desc.pipe_command = self.proto_desc.pipe_command or "cat"

    def set_batch_size(self, batch_size: int) -> None:
        """Set the number of samples in a batch."""
        self.proto_desc.batch_size = batch_size

    def set_dense_slots(self, dense_slots_name: list[str]) -> None:
        """Mark slots as dense, which have the same number of values in every sample. Raises ValueError for
        unknown slots.
        """
        for name in dense_slots_name:
            self._find_slot("set_dense_slots", name).is_dense = True

    def set_use_slots(self, use_slots_name: list[str]) -> None:
        """Mark slots as used. Raises ValueError for a slot that the description does not have."""
        for name in use_slots_name:
            self._find_slot("set_use_slots", name).is_used = True

    def desc(self) -> str:
        """Return the description as text."""
        from google.protobuf import text_format

        return text_format.MessageToString(self.proto_desc)

    def _find_slot(self, asked: str, name: str) -> Any:
        if self.proto_desc.name != "MultiSlotDataFeed":
            raise ValueError(
                f"{asked}: the data feed is {self.proto_desc.name!r}, expected MultiSlotDataFeed"
            )
        slots = {slot.name: slot for slot in self.proto_desc.multi_slot_desc.slots}
        if name not in slots:
            raise ValueError(f"{asked}: there is no slot {name!r}{suggest_names(name, slots, lead='; ')}")
        return slots[name]
