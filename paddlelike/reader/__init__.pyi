"""The names of ``fluid.reader``, and where each is defined."""

from paddlelike.reader import data_generator as data_generator
from paddlelike.reader.dataset import (
    DatasetFactory as DatasetFactory,
    InMemoryDataset as InMemoryDataset,
    QueueDataset as QueueDataset,
)
from paddlelike.reader.feeder import DataFeeder as DataFeeder
from paddlelike.reader.loader import DataLoader as DataLoader, PyReader as PyReader
from paddlelike.reader.readers import (
    ComposeNotAligned as ComposeNotAligned,
    batch as batch,
    buffered as buffered,
    cache as cache,
    chain as chain,
    compose as compose,
    firstn as firstn,
    map_readers as map_readers,
    multiprocess_reader as multiprocess_reader,
    shuffle as shuffle,
    xmap_readers as xmap_readers,
)
from paddlelike.reader.sequences import (
    create_lod_tensor as create_lod_tensor,
    create_random_int_lodtensor as create_random_int_lodtensor,
)
