"""Tiny files in the formats of the original data sets, and what readers make of them.

Run by the real 1.8.5 this file writes golden.json:  path/to/python3.7 tests/dataset/dump_real.py
"""

import gzip
import io
import json
import pickle
import struct
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

import numpy as np


def gzipped(data):
    out = io.BytesIO()
    with gzip.GzipFile(fileobj=out, mode="wb", mtime=0) as file:
        file.write(data)
    return out.getvalue()


def tarred(files, mode="w:gz"):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as tar:
        for name, data in files:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


def zipped(files):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, data in files:
            archive.writestr(name, data)
    return out.getvalue()


def mnist_files():
    rng = np.random.RandomState(0)
    files = {}
    for split, count in (("train", 200), ("t10k", 100)):
        images = rng.randint(0, 256, (count, 28, 28)).astype("uint8")
        labels = rng.randint(0, 10, count).astype("uint8")
        files[split + "-images-idx3-ubyte.gz"] = gzipped(
            struct.pack(">IIII", 2051, count, 28, 28) + images.tobytes()
        )
        files[split + "-labels-idx1-ubyte.gz"] = gzipped(struct.pack(">II", 2049, count) + labels.tobytes())
    return files


def cifar_files():
    rng = np.random.RandomState(1)

    def batch(count, labels, classes):
        content = {
            b"data": rng.randint(0, 256, (count, 3072)).astype("uint8"),
            labels: [int(x) for x in rng.randint(0, classes, count)],
            b"batch_label": b"a batch",
        }
        return pickle.dumps(content, protocol=2)

    ten = [("cifar-10-batches-py/data_batch_%d" % i, batch(3, b"labels", 10)) for i in (1, 2)]
    ten += [("cifar-10-batches-py/test_batch", batch(2, b"labels", 10))]
    hundred = [("cifar-100-python/%s" % name, batch(2, b"fine_labels", 100)) for name in ("train", "test")]
    return {"cifar-10-python.tar.gz": tarred(ten), "cifar-100-python.tar.gz": tarred(hundred)}


def uci_housing_files():
    rows = np.random.RandomState(2).uniform(0, 100, (10, 14))
    return {"housing.data": "\n".join(" ".join("%.4f" % x for x in row) for row in rows).encode()}


REVIEWS = [
    ("aclImdb/train/pos/0_9.txt", b"A good, GOOD film.<br />I saw it twice!\n"),
    ("aclImdb/train/neg/0_2.txt", b"A bad film. Bad, bad; I left.\r\n"),
    ("aclImdb/test/pos/0_8.txt", b"good it was"),
    ("aclImdb/test/neg/0_1.txt", b"bad it was, unheard of"),
    ("aclImdb/train/unsup/0_0.txt", b"not counted"),
]


def imdb_files():
    return {"imdb%2FaclImdb_v1.tar.gz": tarred(REVIEWS)}


def imikolov_files():
    train = b" the cat <unk> the dog\n the cat sat\n\n a dog\n"
    valid = b" the dog sat on a mat the end the\n"
    folder = "./simple-examples/data/ptb."
    return {
        "imikolov%2Fsimple-examples.tgz": tarred(
            [(folder + "train.txt", train), (folder + "valid.txt", valid)]
        )
    }


def movielens_files():
    movies = "1::Toy Story (1995)::Animation|Comedy\n2::The Caf\xe9 Story (1996)::Drama\n"
    users = "1::F::1::10::48067\n2::M::56::16::70072\n3::M::25::15::55117\n"
    ratings = "".join("%d::%d::%d::97830%04d\n" % (i % 3 + 1, i % 2 + 1, i % 5 + 1, i) for i in range(40))
    files = [
        ("ml-1m/%s.dat" % n, t.encode("latin1"))
        for n, t in (("movies", movies), ("users", users), ("ratings", ratings))
    ]
    return {"movielens%2Fml-1m.zip": zipped(files)}


def conll05_files():
    words = "The\ncat\nsat\ndown\n\nDogs\nsee\nmen\nrun\n\n"
    props = "- (A0*\n- *)\nsit (V*)\n- (A1*)\n\n- (A0*) *\nsee (V*) *\n- (A1*) (A0*)\nrun * (V*)\n\n"
    folder = "conll05st-release/test.wsj/"
    return {
        "conll05st-tests.tar.gz": tarred(
            [
                (folder + "words/test.wsj.words.gz", gzipped(words.encode())),
                (folder + "props/test.wsj.props.gz", gzipped(props.encode())),
            ]
        ),
        "conll05st%2FwordDict.txt": b"<unk>\nThe\ncat\nsat\ndown\nsee\nmen\nbos\neos\n",
        "conll05st%2FverbDict.txt": b"sit\nsee\nrun\n",
        "conll05st%2FtargetDict.txt": b"B-A0\nI-A0\nB-A1\nI-A1\nB-V\nI-V\nO\n",
        "conll05st%2Femb": b"vectors",
    }


def wmt14_files():
    words = "<s>\n<e>\n<unk>\nthe\ncat\nsat\n"
    long = " ".join(["the"] * 90)
    pairs = "the cat\tle chat\nthe dog sat\tle chien\nno pair\n%s\tle\n" % long
    return {
        "wmt14.tgz": tarred(
            [
                ("wmt14/src.dict", words.encode()),
                ("wmt14/trg.dict", b"<s>\n<e>\n<unk>\nle\nchat\nchien\n"),
                ("wmt14/train/train", pairs.encode()),
                ("wmt14/test/test", b"cat\tchat\n"),
                ("wmt14/gen/gen", b"sat the\tle\n"),
            ]
        )
    }


def wmt16_files():
    train = "a man eats\tein Mann isst\na man\tein Mann\nno pair\na dog\tein H\u00fcndchen\n"
    return {
        "wmt16.tar.gz": tarred(
            [
                ("wmt16/train", train.encode()),
                ("wmt16/test", b"a dog eats\tein Hund isst\n"),
                ("wmt16/val", b"man\tMann\n"),
            ]
        )
    }


def sentiment_files():
    files = [("movie_reviews/README", b"texts")]
    for i in range(3):
        files.append(
            ("movie_reviews/neg/cv%03d_1.txt" % i, b"a bad film , isn't it ?\nbad number %d .\n" % i)
        )
        files.append(("movie_reviews/pos/cv%03d_2.txt" % i, b"a good film !\nso good ... %d\n" % i))
    return {"movie_reviews.zip": zipped(files)}


def mq2007_files():
    rng = np.random.RandomState(3)
    lines = []
    for query, scores in ((10, (0, 2, 1)), (11, (0, 0)), (12, (1, 0))):
        for score in scores:
            features = " ".join("%d:%.3f" % (i + 1, x) for i, x in enumerate(rng.uniform(0, 1, 46)))
            lines.append("%d qid:%d %s #docid = %d\n" % (score, query, features, len(lines)))
    folder = "MQ2007/MQ2007/Fold1/"
    return {folder + "train.txt": "".join(lines).encode(), folder + "test.txt": "".join(lines[5:]).encode()}


FILES = {
    "mnist": mnist_files,
    "cifar": cifar_files,
    "uci_housing": uci_housing_files,
    "imdb": imdb_files,
    "imikolov": imikolov_files,
    "movielens": movielens_files,
    "conll05st": conll05_files,
    "wmt14": wmt14_files,
    "wmt16": wmt16_files,
    "corpora": sentiment_files,
    "MQ2007": mq2007_files,
}


def write_files(home, folders):
    """Write the files of some data sets below a cache folder."""
    for folder in folders:
        for name, data in FILES[folder]().items():
            path = Path(home) / folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)


def take(samples, count=4):
    """The first samples, and how many there are."""
    samples = list(samples)
    return [len(samples), samples[:count]]


def mnist(data):
    return [take(part()()) for part in (data.mnist.train, data.mnist.test)]


def cifar(data):
    parts = (data.cifar.train10, data.cifar.test10, data.cifar.train100, data.cifar.test100)
    return [take(part()(), 5) for part in parts]


def uci_housing(data):
    return [
        take(data.uci_housing.train()()),
        take(data.uci_housing.test()()),
        data.uci_housing.predict_reader(),
    ]


def imdb(data):
    import re

    words = data.imdb.build_dict(re.compile("aclImdb/train/.*"), 0)
    return [list(words.items()), take(data.imdb.train(words)()), take(data.imdb.test(words)())]


def imikolov(data):
    words = data.imikolov.build_dict(min_word_freq=0)
    out = [list(words.items())]
    for kind in (data.imikolov.DataType.NGRAM, data.imikolov.DataType.SEQ):
        for n in (2, 5):
            out.append(take(data.imikolov.train(words, n, kind)(), 20))
            out.append(take(data.imikolov.test(words, n, kind)(), 20))
    return out


def movielens(data):
    lens = data.movielens
    category = {index: name for name, index in lens.movie_categories().items()}
    word = {index: name for name, index in lens.get_movie_title_dict().items()}

    def name(sample):  # ids follow from the order of a set there
        return [*sample[:5], [category[i] for i in sample[5]], [word[i] for i in sample[6]], *sample[7:]]

    return [
        take(map(name, lens.train()())),
        take(map(name, lens.test()()), 10),
        [lens.max_user_id(), lens.max_movie_id(), lens.max_job_id(), lens.age_table],
        sorted(category.values()),
        sorted(word.values()),
        [repr(lens.movie_info()[2]), repr(lens.user_info()[1]), lens.user_info()[1].value()],
    ]


def conll05(data):
    words, verbs, labels = data.conll05.get_dict()
    label = {index: name for name, index in labels.items()}
    samples = [(*sample[:8], [label[i] for i in sample[8]]) for sample in data.conll05.test()()]
    return [words, verbs, sorted(labels), samples, Path(data.conll05.get_embedding()).name]


def wmt14(data):
    readers = (data.wmt14.train, data.wmt14.test, data.wmt14.gen)
    out = [take(reader(size)()) for reader in readers for size in (4, 6)]
    return [*out, data.wmt14.get_dict(5, reverse=False), list(data.wmt14.get_dict(5)[1].items())]


def wmt16(data):
    readers = (data.wmt16.train, data.wmt16.test, data.wmt16.validation)
    out = [take(reader(6, 7, lang)()) for reader in readers for lang in ("en", "de")]
    return [*out, data.wmt16.get_dict("en", 6), list(data.wmt16.get_dict("de", 6, reverse=True).items())]


def sentiment(data):
    return [data.sentiment.get_word_dict(), take(data.sentiment.train(), 6), take(data.sentiment.test())]


def mq2007(data):
    kinds = ("pairwise", "listwise", "pointwise", "plain_txt")
    return [take(data.mq2007.train(format=kind)) for kind in kinds] + [take(data.mq2007.test())]


def image(data):
    rng = np.random.RandomState(4)
    colour, grey = (rng.randint(0, 256, shape).astype("uint8") for shape in ((12, 17, 3), (9, 6)))
    out = [data.image.center_crop(colour, 6), data.image.center_crop(grey, 5, is_color=False)]
    out += [data.image.left_right_flip(colour)[:2], data.image.to_chw(colour)[:, :2, :2]]
    np.random.seed(7)
    return out + [data.image.random_crop(colour, 5) for _ in range(3)]


CASES = {
    mnist: ["mnist"],
    cifar: ["cifar"],
    uci_housing: ["uci_housing"],
    imdb: ["imdb"],
    imikolov: ["imikolov"],
    movielens: ["movielens"],
    conll05: ["conll05st"],
    wmt14: ["wmt14"],
    wmt16: ["wmt16"],
    sentiment: ["corpora"],
    mq2007: ["MQ2007"],
    image: [],
}


def plain(value):
    """A value as JSON has it, with its types; of long arrays a part."""
    if isinstance(value, np.ndarray):
        return [
            "array",
            str(value.dtype),
            list(value.shape),
            value.ravel()[:: max(1, value.size // 40)].tolist(),
        ]
    if isinstance(value, np.generic):
        return [type(value).__name__, value.item()]
    if isinstance(value, bytes):
        return ["bytes", value.decode("latin1")]
    if isinstance(value, dict):
        return ["dict", *sorted([plain(k), plain(v)] for k, v in value.items())]
    if isinstance(value, (list, tuple)):
        return [type(value).__name__] + [plain(one) for one in value]
    return value


if __name__ == "__main__":
    import importlib

    import matplotlib

    matplotlib.use("Agg")
    from paddle import dataset

    home = tempfile.mkdtemp()
    common = dataset.common
    common.DATA_HOME = home

    def find(url, module_name, md5sum, save_name=None):
        return str(Path(home) / module_name / (save_name or url.split("/")[-1]))

    for module in ("common", "flowers", "voc2012", "mq2007"):
        importlib.import_module("paddle.dataset." + module).download = find
    dataset.mq2007.__dict__["__initialize_meta_info__"] = lambda: home + "/MQ2007"
    import os

    os.chdir(home)
    write_files(home, FILES)
    golden = {case.__name__: plain(case(dataset)) for case in CASES}
    Path(sys.argv[1]).write_text(json.dumps(golden))
