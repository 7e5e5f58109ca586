"""Made-up data: shapes, dtypes and dictionaries of the originals, reproducible, and learnable."""

from __future__ import annotations

import itertools
import subprocess
import sys
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paddlelike import dataset
from paddlelike.dataset import common

pytestmark = pytest.mark.filterwarnings("ignore:.*these samples are made up")


@pytest.fixture(autouse=True)
def synthetic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No files, and the variable that asks for made-up data."""
    monkeypatch.setattr(common, "DATA_HOME", str(tmp_path))
    monkeypatch.setenv("PADDLELIKE_SYNTHETIC_DATA", "1")
    common._announce.cache_clear()
    yield
    common._announce.cache_clear()


def test_made_up_data_is_announced_once_per_data_set() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        dataset.mnist.train()
        dataset.mnist.test()
        dataset.uci_housing.train()
    said = [str(one.message) for one in caught]
    assert [text.partition(":")[0] for text in said] == ["mnist", "uci_housing"]
    assert "these samples are made up (PADDLELIKE_SYNTHETIC_DATA is set, " in said[0]


def test_setting_the_variable_to_zero_turns_synthetic_data_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PADDLELIKE_SYNTHETIC_DATA", "0")
    with pytest.raises(FileNotFoundError):
        dataset.mnist.train()


@pytest.mark.parametrize(
    ("reader", "shape", "low", "high", "classes"),
    [
        (dataset.mnist.train, (784,), -1, 1, 10),
        (dataset.cifar.train10, (3072,), 0, 1, 10),
        (dataset.cifar.test100, (3072,), 0, 1, 100),
        (dataset.flowers.test, (150528,), -124, 152, 102),
    ],
    ids=["mnist", "cifar10", "cifar100", "flowers"],
)
def test_made_up_images_have_the_shapes_and_labels_of_the_originals(
    reader: Any, shape: tuple[int], low: float, high: float, classes: int
) -> None:
    samples = list(itertools.islice(reader()(), 150))
    for image, label in samples:
        assert (image.shape, image.dtype, type(label)) == (shape, np.float32, int)
        assert low <= image.min() < image.max() <= high
        assert 0 <= label < classes


def test_synthetic_images_of_one_digit_resemble_each_other() -> None:
    """The nearest mean of the training images tells the digit of most test images."""
    images, labels = map(np.array, zip(*dataset.mnist.train()(), strict=True))
    means = np.array([images[labels == digit].mean(axis=0) for digit in range(10)])
    tests, wanted = map(np.array, zip(*dataset.mnist.test()(), strict=True))
    found = ((tests[:, None] - means) ** 2).sum(axis=2).argmin(axis=1)
    assert (found == wanted).mean() > 0.95


def test_prices_of_synthetic_housing_are_linear_in_the_features() -> None:
    x, y = (np.array(part) for part in zip(*dataset.uci_housing.train()(), strict=True))
    assert (x.shape, x.dtype, y.shape) == ((404, 13), np.float64, (404, 1))
    design = np.column_stack([x, np.ones(len(x))])
    residual = y - design @ np.linalg.lstsq(design, y, rcond=None)[0]
    assert residual.std() < 0.2 * y.std()
    assert len(list(dataset.uci_housing.test()())) == 102


def test_reviews_differ_by_their_words() -> None:
    words = dataset.imdb.word_dict()
    assert len(words) == 5147
    assert words["<unk>"] == 5146
    counts: dict[int, Counter[int]] = defaultdict(Counter)
    for ids, label in dataset.imdb.train(words)():
        counts[label].update(ids)

    def score(ids: list[int]) -> float:
        return sum(np.log((counts[1][i] + 1) / (counts[0][i] + 1)) for i in ids)

    tests = list(dataset.imdb.test(words)())
    assert np.mean([(score(ids) > 0) == label for ids, label in tests]) > 0.9
    assert max(max(ids) for ids, _ in tests) < 5147
    sentences = list(itertools.islice(dataset.sentiment.train(), 50))
    assert {label for _, label in sentences} == {0, 1}
    assert len(dataset.sentiment.get_word_dict()) == 39768


def test_each_synthetic_word_depends_on_the_word_before() -> None:
    words = dataset.imikolov.build_dict()
    assert len(words) == 2074
    grams = list(dataset.imikolov.train(words, 5)())
    assert all(len(gram) == 5 for gram in grams)
    followers: dict[int, Counter[int]] = defaultdict(Counter)
    for gram in grams:
        followers[gram[-2]][gram[-1]] += 1
    tests = list(dataset.imikolov.test(words, 2)())
    right = [followers[a].most_common(1)[0][0] == b for a, b in tests if followers[a]]
    assert np.mean(right) > 0.5
    source, target = next(iter(dataset.imikolov.train(words, 0, dataset.imikolov.DataType.SEQ)()))
    assert source[1:] == target[:-1]


def test_translations_are_word_by_word() -> None:
    for reader, sizes in ((dataset.wmt14.train(3000), (3000, 3000)), (dataset.wmt16.train(99, 77), (99, 77))):
        meaning: dict[int, int] = {}
        for source, target, following in reader():
            assert target[1:] == following[:-1]
            assert (source[0], source[-1], target[0], following[-1]) == (0, 1, 0, 1)
            assert max(source) < sizes[0]
            assert max(target) < sizes[1]
            for a, b in zip(source[1:-1], following[:-1], strict=True):
                assert meaning.setdefault(a, b) == b
    assert len(dataset.wmt16.get_dict("de", 10**6)) == 19220


def test_synthetic_vocabularies_have_the_sizes_of_the_originals() -> None:
    lens = dataset.movielens
    assert (lens.max_user_id(), lens.max_movie_id(), lens.max_job_id()) == (6040, 3952, 20)
    assert (len(lens.movie_categories()), len(lens.get_movie_title_dict())) == (18, 5175)
    user, gender, age, job, film, kinds, title, rating = next(iter(lens.train()()))
    assert (0 < user <= 6040, gender in (0, 1), 0 <= age < 7, 0 <= job <= 20) == (True,) * 4
    assert 0 < film <= 3952
    assert len(set(kinds)) == len(kinds) <= 3
    assert title
    assert -3 <= rating[0] <= 5
    words, verbs, labels = dataset.conll05.get_dict()
    assert (len(words), len(verbs), len(labels)) == (44068, 3162, 59)
    vectors = Path(dataset.conll05.get_embedding()).read_bytes()
    assert len(vectors) == 16 + 44068 * 32 * 4
    sample = next(iter(dataset.conll05.test()()))
    assert len(sample) == 9
    assert len({len(one) for one in sample}) == 1


def test_made_up_documents_and_segments_have_the_types_of_the_originals() -> None:
    label, better, worse = next(dataset.mq2007.train())
    assert (label.tolist(), better.shape, worse.shape) == ([1], (46,), (46,))
    labels, documents = next(dataset.mq2007.test(format="listwise"))
    assert documents.shape == (len(labels), 46)
    image, classes = next(iter(dataset.voc2012.train()()))
    assert (image.dtype, classes.dtype, image.shape[:2]) == (np.uint8, np.uint8, classes.shape)
    assert set(np.unique(classes)) <= set(range(21))


def test_other_processes_get_the_same_samples(tmp_path: Path) -> None:
    """Not so when a rule would depend on Python's seed of hashes."""
    script = """
import warnings; warnings.simplefilter("ignore")
from paddlelike.dataset import mnist, movielens, imdb, wmt14
import itertools, zlib
words = {"<unk>": 9, **dict.fromkeys(range(50), 1)}
readers = mnist.test(), movielens.train(), imdb.test(words), wmt14.train(50)
print([zlib.crc32(repr([list(map(repr, s)) for s in itertools.islice(r(), 20)]).encode()) for r in readers])
"""
    runs = [
        subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=True, env=environment
        ).stdout
        for seed in "12"
        for environment in [
            {"PYTHONPATH": ":".join(sys.path), "PYTHONHASHSEED": seed, "HOME": str(tmp_path)}
            | {"PADDLELIKE_SYNTHETIC_DATA": "1", "OPENBLAS_NUM_THREADS": "1"}
        ]
    ]
    assert runs[0] == runs[1]
    assert runs[0].startswith("[")
