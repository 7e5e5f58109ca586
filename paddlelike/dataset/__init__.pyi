"""The names of ``paddle.dataset`` and of ``fluid.dataset``, and where each is defined."""

from paddlelike.dataset import (
    cifar as cifar,
    common as common,
    conll05 as conll05,
    flowers as flowers,
    image as image,
    imdb as imdb,
    imikolov as imikolov,
    mnist as mnist,
    movielens as movielens,
    mq2007 as mq2007,
    sentiment as sentiment,
    uci_housing as uci_housing,
    voc2012 as voc2012,
    wmt14 as wmt14,
    wmt16 as wmt16,
)
from paddlelike.reader.dataset import (
    DatasetFactory as DatasetFactory,
    InMemoryDataset as InMemoryDataset,
    QueueDataset as QueueDataset,
)
