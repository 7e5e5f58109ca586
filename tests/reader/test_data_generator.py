"""Scripts that make the lines of a dataset, alone and as its command."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid


class Counted(fluid.data_generator.MultiSlotDataGenerator):
    """Words as numbers, with their count as label; batches come out backwards."""

    def generate_sample(self, line: str | None) -> Callable[[], Iterator[Any]]:
        def samples() -> Iterator[Any]:
            for text in [line] if line is not None else ["0 1", "1 2", "2 3"]:
                words = [int(word) for word in text.split()]
                yield [("words", words), ("label", [len(words)])] if words else None

        return samples

    def generate_batch(self, samples: list[Any]) -> Callable[[], Iterator[Any]]:
        return lambda: reversed(samples)


def test_samples_are_generated_without_input(capsys: pytest.CaptureFixture[str]) -> None:
    generator = Counted()
    generator.set_batch(2)
    generator.run_from_memory()
    assert capsys.readouterr().out.splitlines() == ["2 1 2 1 2", "2 0 1 1 2", "2 2 3 1 2"]


def test_each_line_of_the_input_becomes_samples(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("1 2 3\n4 5\n\n6\n"))
    generator = Counted()
    generator.set_batch(2)
    generator.run_from_stdin()
    assert capsys.readouterr().out.splitlines() == ["2 4 5 1 2", "3 1 2 3 1 3", "1 6 1 1"]


@pytest.mark.parametrize(
    ("sample", "words"),
    [
        ([("w", [])], "slot 'w' is empty"),
        ([("w", "7")], "a slot must be a name and a list"),
        ([(3, [7])], "a slot must be a name and a list"),
        ({"w": [7]}, "a sample must be a list of slots"),
        ([("v", [7])], r"has the slots \['v'\], the first sample has \['w'\]"),
    ],
    ids=["empty", "text", "number", "dict", "other"],
)
def test_samples_that_do_not_fit_are_refused(sample: Any, words: str) -> None:
    generator = Counted()
    generator._gen_str([("w", [1])])
    with pytest.raises(ValueError, match=words):
        generator._gen_str(sample)


def test_a_script_is_the_command_of_a_dataset(tmp_path: Path) -> None:
    script = tmp_path / "words.py"
    script.write_text(
        f"import sys; sys.path.insert(0, {str(Path(fluid.__file__).parent.parent)!r})\n"
        "from paddlelike.data_generator import MultiSlotDataGenerator\n"
        "class Mine(MultiSlotDataGenerator):\n"
        "    def generate_sample(self, line):\n"
        "        return lambda: iter([[('x', [float(word) for word in line.split(',')])]])\n"
        "Mine().run_from_stdin()\n"
    )
    (tmp_path / "data.csv").write_text("1.5,2\n3,4.25\n")
    dataset = fluid.DatasetFactory().create_dataset("QueueDataset")
    dataset.set_use_var([fluid.data("x", [None, 2])])
    dataset.set_batch_size(2)
    dataset.set_filelist([str(tmp_path / "data.csv")])
    dataset.set_pipe_command(f"{sys.executable} {script}")
    ((feed),) = dataset.feeds()
    assert np.array(feed["x"]).tolist() == [[1.5, 2.0], [3.0, 4.25]]


def test_samples_may_be_zip_objects_as_in_python_2_scripts() -> None:
    sample: Any = zip(["words", "label"], [[7, 8], [1]], strict=True)
    assert fluid.data_generator.MultiSlotDataGenerator()._gen_str(sample) == "2 7 8 1 1\n"


def test_a_string_sample_is_read_as_a_list_of_characters() -> None:
    write = fluid.data_generator.MultiSlotStringDataGenerator()._gen_str
    assert write([("words", ["71", "8"]), ("label", "1"), ("year", "26")]) == "2 71 8 1 1 2 2 6\n"
