"""Readers give what those of Fluid 1.8.5 gave for the same files (golden.json), and refuse damaged ones."""

from __future__ import annotations

import gzip
import io
import json
import pickle
import struct
import tarfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paddlelike import dataset
from paddlelike.dataset import common
from paddlelike.errors import FormatError, MissingFileError
from tests.dataset.dump_real import CASES, plain, tarred, write_files

GOLDEN = json.loads((Path(__file__).parent / "golden.json").read_text())


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder."""
    monkeypatch.setattr(common, "DATA_HOME", str(tmp_path))
    monkeypatch.delenv("PADDLELIKE_SYNTHETIC_DATA", raising=False)
    return tmp_path


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_readers_give_the_samples_of_fluid(home: Path, case: Callable[[Any], Any]) -> None:
    write_files(home, CASES[case])
    with warnings.catch_warnings():  # the tiny files are not the originals
        warnings.filterwarnings("ignore", message=".*is not the original file")
        assert json.loads(json.dumps(plain(case(dataset)))) == GOLDEN[case.__name__]


def test_a_file_that_is_not_the_original_is_read_with_a_warning(home: Path) -> None:
    write_files(home, ["uci_housing"])
    with pytest.warns(UserWarning, match="is not the original file, whose MD5 is d4accdce"):
        assert len(list(dataset.uci_housing.train()())) == 8
    assert len(dataset.uci_housing.UCI_TRAIN_DATA) == 8 == len(dataset.uci_housing.UCI_TEST_DATA) * 4


def test_a_file_may_have_the_name_that_a_browser_gives_it(home: Path) -> None:
    write_files(home, ["imdb"])
    (home / "imdb" / "imdb%2FaclImdb_v1.tar.gz").rename(home / "imdb" / "aclImdb_v1.tar.gz")
    with pytest.warns(UserWarning, match="not the original"):
        assert Path(common.download(dataset.imdb.URL, "imdb", "0")).name == "aclImdb_v1.tar.gz"


@pytest.mark.parametrize(
    "use",
    [
        lambda: dataset.mnist.train(),
        lambda: dataset.cifar.test100(),
        lambda: dataset.uci_housing.test(),
        lambda: dataset.imdb.word_dict(),
        lambda: dataset.imikolov.build_dict(),
        lambda: dataset.movielens.max_user_id(),
        lambda: dataset.conll05.test(),
        lambda: dataset.wmt14.train(5),
        lambda: dataset.wmt16.get_dict("en", 5),
        lambda: dataset.flowers.train(),
        lambda: dataset.voc2012.val(),
        lambda: dataset.sentiment.train(),
        lambda: next(dataset.mq2007.train()),
    ],
    ids=[
        "mnist",
        "cifar",
        "uci",
        "imdb",
        "imikolov",
        "movielens",
        "conll05",
        "wmt14",
        "wmt16",
        "flowers",
        "voc",
        "sentiment",
        "mq2007",
    ],
)
def test_a_missing_file_is_an_error_that_says_what_to_do(home: Path, use: Callable[[], Any]) -> None:
    with pytest.raises(MissingFileError) as caught:
        use()
    text = str(caught.value)
    assert f"is not in {home}/" in text
    assert "get it from http" in text
    assert "PADDLELIKE_SYNTHETIC_DATA=1" in text


class Evil:
    """Its pickle would run a command."""

    def __reduce__(self) -> tuple[Any, ...]:
        return print, ("executed",)


def test_a_hostile_pickle_is_refused(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (home / "cifar").mkdir()
    archive = tarred([("cifar-10-batches-py/data_batch_1", pickle.dumps({"data": Evil(), "labels": []}))])
    (home / "cifar" / "cifar-10-python.tar.gz").write_bytes(archive)
    with pytest.warns(UserWarning, match="not the original"):
        reader = dataset.cifar.train10()
    with pytest.raises(FormatError, match="print"):
        list(reader())
    assert "executed" not in capsys.readouterr().out


def image_file(header: bytes, count: int) -> bytes:
    return gzip.compress(header + bytes(count))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (image_file(b"", 3), "3 bytes are less than the header"),
        (image_file(struct.pack(">IIII", 2049, 1, 28, 28), 784), "magic number 0x801, expected 0x803"),
        (image_file(struct.pack(">IIII", 2051, 2, 28, 28), 784), "needs 1568 bytes, the file has 784"),
        (image_file(struct.pack(">IIII", 2051, 1, 28, 28), 784), "1 images, but 200 labels"),
    ],
    ids=["cut", "magic", "short", "counts"],
)
def test_a_damaged_image_file_is_refused(home: Path, content: bytes, said: str) -> None:
    write_files(home, ["mnist"])
    (home / "mnist" / "train-images-idx3-ubyte.gz").write_bytes(content)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*is not the original file")
        reader = dataset.mnist.train()
    with pytest.raises(FormatError, match=said):
        list(reader())


def test_flowers_and_voc2012_read_images(home: Path) -> None:
    cv2 = pytest.importorskip("cv2", reason="OpenCV is in the extra 'datasets'")
    scio = pytest.importorskip("scipy.io", reason="scipy is in the extra 'datasets'")
    pytest.importorskip("PIL", reason="Pillow is in the extra 'datasets'")
    pictures = [np.full((300, 260, 3), 40 * i, np.uint8) for i in range(1, 5)]
    encoded = [cv2.imencode(".png", picture)[1].tobytes() for picture in pictures]
    (home / "flowers").mkdir()
    names = [f"jpg/image_{i:05d}.jpg" for i in range(1, 5)]
    (home / "flowers" / "102flowers.tgz").write_bytes(tarred(list(zip(names, encoded, strict=True))))
    scio.savemat(home / "flowers" / "imagelabels.mat", {"labels": [[9, 8, 7, 6]]})
    scio.savemat(home / "flowers" / "setid.mat", {"tstid": [[1, 3]], "trnid": [[2]], "valid": [[4]]})
    label = np.zeros((300, 260), np.uint8)
    label[5, 6] = 255
    folder = "VOCdevkit/VOC2012/"
    (home / "voc2012").mkdir()
    (home / "voc2012" / "VOCtrainval_11-May-2012.tar").write_bytes(
        tarred(
            [
                (f"{folder}ImageSets/Segmentation/val.txt", b"2007_1\n"),
                (f"{folder}JPEGImages/2007_1.jpg", encoded[0]),
                (f"{folder}SegmentationClass/2007_1.png", cv2.imencode(".png", label)[1].tobytes()),
            ],
            "w",
        )
    )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*is not the original file")
        samples = list(dataset.flowers.test(use_xmap=False)()) + list(dataset.flowers.valid()())
        both = sorted(kind for _, kind in dataset.flowers.train()())
        ((image, classes),) = dataset.voc2012.val()()
    mean = np.array([103.94, 116.78, 123.68], np.float32)
    for (flat, kind), value, wanted in zip(samples, (80, 160), (7, 5), strict=True):
        assert (flat.shape, flat.dtype, kind) == ((3 * 224 * 224,), np.float32, wanted)
        np.testing.assert_array_equal(flat.reshape(3, -1), (value - mean)[:, None].repeat(224 * 224, 1))
    assert both == [6, 8]
    np.testing.assert_array_equal(image, pictures[0])
    np.testing.assert_array_equal(classes, label)


def test_samples_are_divided_among_trainers(home: Path) -> None:
    common.split(lambda: iter(range(7)), 3, suffix=str(home / "%05d.pickle"))
    assert sorted(path.name for path in home.iterdir()) == ["00000.pickle", "00001.pickle"]
    shares = [list(common.cluster_files_reader(str(home / "*.pickle"), 2, i)()) for i in range(2)]
    assert shares == [[0, 1, 2, 3], [4, 5, 6]]
    with pytest.raises(TypeError, match="dumper must be a function"):
        common.split(lambda: iter(()), 3, dumper=3)  # type: ignore[arg-type]


def test_samples_of_images_are_written_into_batch_files(home: Path) -> None:
    names = [f"{i}.jpg" for i in range(5)]
    (home / "images.tar").write_bytes(tarred([(name, name.encode()) for name in names], "w"))
    labels = {name: index for index, name in enumerate(names) if index != 2}
    listing = dataset.image.batch_images_from_tar(str(home / "images.tar"), "train", labels, 3)
    batches = [common.load_pickle(Path(path).read_bytes()) for path in Path(listing).read_text().split()]
    assert [batch["label"] for batch in batches] == [[0, 1, 3], [4]]
    assert [len(batch["data"]) for batch in batches] == [3, 1]
    assert dataset.image.batch_images_from_tar(str(home / "images.tar"), "train", {}, 3) == listing


def test_tar_archives_with_a_missing_file_are_refused(home: Path) -> None:
    write_files(home, ["wmt16"])
    out = io.BytesIO()
    tarfile.open(fileobj=out, mode="w:gz").close()
    (home / "wmt16" / "wmt16.tar.gz").write_bytes(out.getvalue())
    with pytest.warns(UserWarning, match="not the original"):
        reader = dataset.wmt16.train(5, 5)
    with pytest.raises(FormatError, match="has no file wmt16/train"):
        list(reader())


def test_reader_creator_of_mnist_reads_given_files(home: Path) -> None:
    write_files(home, ["mnist"])
    files = [str(home / "mnist" / f"t10k-{name}-ubyte.gz") for name in ("images-idx3", "labels-idx1")]
    with pytest.warns(UserWarning, match="not the original file"):
        wanted = list(dataset.mnist.test()())
    given = list(dataset.mnist.reader_creator(*files, 100)())
    assert len(given) == len(wanted) == 100
    assert all(np.array_equal(a[0], b[0]) and a[1] == b[1] for a, b in zip(given, wanted, strict=True))
