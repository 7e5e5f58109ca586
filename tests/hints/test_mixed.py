"""The advice of errors of layers and operators, followed to the letter: the result is right."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike import bundle
from tests.hints.advice import ROWS, Advice, read_rows, run

layers = fluid.layers


def read_array(element: int) -> Any:
    place = layers.fill_constant([1], "int64", 0)
    array = layers.array_write(layers.assign(ROWS), place)
    return run(layers.array_read(array, layers.fill_constant([1], "int64", element)))


def encode(**options: bool) -> Any:
    return run(layers.one_hot(layers.assign(np.array([[0], [3]], "int64")), 2, **options))


def differentiate_dropout(for_test: bool) -> Any:
    x = read_rows()
    x.stop_gradient = False
    out = layers.mean(layers.dropout(x, 0.0))
    program = fluid.default_main_program()
    if for_test:
        program = program.clone(for_test=True)
    with fluid.program_guard(program):
        block = program.global_block()
        (gradient,) = fluid.gradients([block.var(out.name)], [block.var("x")])
        return run(gradient, {"x": ROWS}, program)


def multiply(transpose_y: bool) -> Any:
    return run(layers.matmul(read_rows(), layers.assign(ROWS), transpose_y=transpose_y), {"x": ROWS})


def split_for_places(drop_last: bool) -> int:
    feeder = fluid.DataFeeder([read_rows()], fluid.CPUPlace())
    reader = feeder.decorate_reader(
        lambda: iter([[(row,) for row in ROWS]] * 3), multi_devices=True, num_places=2, drop_last=drop_last
    )
    return len(list(reader()))


def read_loader(by_program: bool) -> Any:
    x = read_rows()
    loader: Any = fluid.io.DataLoader.from_generator([x], capacity=2)
    loader.set_batch_generator(lambda: iter([[ROWS]]), fluid.CPUPlace())
    if by_program:
        loader.start()
    out = layers.scale(x, 2.0)
    return np.concatenate([run(out, feed) for feed in loader()])


def dump(path: Path, mode: str) -> object:
    with path.open(mode) as file:
        bundle.dump([1, 2], file)
    return bundle.load(path)


def look_up(ids: Any) -> Any:
    return run(layers.gather(read_rows(), layers.assign(np.array(ids, "int64"))), {"x": ROWS})


ADVICE: dict[str, Advice] = {
    "an element that was not written": Advice(
        lambda: read_array(1),
        "write the element first with layers.array_write",
        lambda: read_array(0),
        ROWS,
    ),
    "an array without elements": Advice(
        lambda: run(layers.array_read(layers.create_array("float32"), layers.fill_constant([1], "int64", 0))),
        "write the element first with layers.array_write",
        lambda: read_array(0),
        ROWS,
    ),
    "an id beyond the depth": Advice(
        encode,
        "with allow_out_of_range=True such rows are zeros",
        lambda: encode(allow_out_of_range=True),
        [[1, 0], [0, 0]],
    ),
    "a list of rows as an index": Advice(
        lambda: read_rows()[[1, 0]],  # type: ignore[index]
        "use integers, slices and integer variables; layers.gather takes index lists",
        lambda: look_up([1, 0]),
        ROWS[[1, 0]],
    ),
    "an array added to a variable": Advice(
        lambda: read_rows() + ROWS,
        "use a variable or a number; layers.assign makes a variable of a numpy array",
        lambda: run(read_rows() + layers.assign(ROWS), {"x": ROWS}),
        2 * ROWS,
    ),
    "matrices that do not fit": Advice(
        lambda: layers.matmul(fluid.data("x", [2, 4]), layers.assign(ROWS)),
        "transpose one of them, or reshape it",
        lambda: multiply(transpose_y=True),
        ROWS @ ROWS.T,
    ),
    "a range in the wrong direction": Advice(
        lambda: run(layers.range(0, 4, -1, "int64")),
        "the step leads from start to end: positive if end is larger",
        lambda: run(layers.range(0, 4, 1, "int64")),
        np.arange(4),
    ),
    "batches that are left over": Advice(
        lambda: split_for_places(drop_last=False),
        "use drop_last=True",
        lambda: split_for_places(drop_last=True),
        1,
    ),
    "a loader that the program does not read": Advice(
        lambda: read_loader(by_program=True),
        "this one is iterated over: for feed in loader(): exe.run(feed=feed, ...)",
        lambda: read_loader(by_program=False),
        2 * ROWS,
    ),
    "a shape of another size": Advice(
        lambda: run(layers.reshape(layers.assign(ROWS), [3, -1])),
        "the number of elements stays the same; 0 copies a dim of X, one dim may be -1",
        lambda: run(layers.reshape(layers.assign(ROWS), [0, -1])),
        ROWS,
    ),
    "the gradient of a test program": Advice(
        lambda: differentiate_dropout(for_test=True),
        "take the gradient of the training program, not of its clone(for_test=True)",
        lambda: differentiate_dropout(for_test=False),
        np.full((2, 4), 1 / 8),
    ),
}


@pytest.mark.parametrize("advice", ADVICE.values(), ids=ADVICE)
def test_following_a_hint_of_an_operator_gives_the_right_result(advice: Advice) -> None:
    advice.follow()


def test_the_hint_for_a_file_opened_as_text_works(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="open it with mode 'wb'"):
        dump(tmp_path / "rows", "w")
    assert dump(tmp_path / "rows", "wb") == [1, 2]
