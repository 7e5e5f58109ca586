"""The names of ``paddle.dataset`` and of ``fluid.dataset``, and where each is defined."""

from paddlelike.dataset import (
    cifar,
    common,
    conll05,
    flowers,
    image,
    imdb,
    imikolov,
    mnist,
    movielens,
    mq2007,
    sentiment,
    uci_housing,
    voc2012,
    wmt14,
    wmt16,
)
from paddlelike.reader.dataset import DatasetFactory, InMemoryDataset, QueueDataset

__all__ = [
    "DatasetFactory",
    "InMemoryDataset",
    "QueueDataset",
    "cifar",
    "common",
    "conll05",
    "flowers",
    "image",
    "imdb",
    "imikolov",
    "mnist",
    "movielens",
    "mq2007",
    "sentiment",
    "uci_housing",
    "voc2012",
    "wmt14",
    "wmt16",
]
