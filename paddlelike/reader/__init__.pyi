"""The names of ``fluid.reader``, and where each is defined."""

from paddlelike.reader import data_generator
from paddlelike.reader.dataset import DatasetFactory, InMemoryDataset, QueueDataset
from paddlelike.reader.feeder import DataFeeder
from paddlelike.reader.loader import DataLoader, PyReader
from paddlelike.reader.readers import (
    ComposeNotAligned,
    batch,
    buffered,
    cache,
    chain,
    compose,
    firstn,
    map_readers,
    multiprocess_reader,
    shuffle,
    xmap_readers,
)
from paddlelike.reader.sequences import create_lod_tensor, create_random_int_lodtensor

__all__ = [
    "ComposeNotAligned",
    "DataFeeder",
    "DataLoader",
    "DatasetFactory",
    "InMemoryDataset",
    "PyReader",
    "QueueDataset",
    "batch",
    "buffered",
    "cache",
    "chain",
    "compose",
    "create_lod_tensor",
    "create_random_int_lodtensor",
    "data_generator",
    "firstn",
    "map_readers",
    "multiprocess_reader",
    "shuffle",
    "xmap_readers",
]
