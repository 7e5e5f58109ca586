"""LoDTensor and SelectedRows: values, sequences, what is refused."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.core import SelectedRows
from paddlelike.errors import EnforceNotMet, FeedError

PLACE = fluid.CPUPlace()


def tensor(rows: int = 5) -> fluid.LoDTensor:
    made = fluid.LoDTensor()
    made.set(np.arange(rows, dtype="float32"), PLACE)
    return made


def test_an_empty_tensor_reads_as_an_empty_array() -> None:
    empty = fluid.LoDTensor()
    assert (np.array(empty).shape, np.array(empty).dtype.name, empty.shape()) == ((0,), "float64", [0])
    assert (empty.lod(), empty.recursive_sequence_lengths()) == ([], [])
    assert repr(empty) == "LoDTensor(empty)"


def test_tensor_set_copies_into_the_same_memory_if_it_fits() -> None:
    source = np.ones(4, "float32")
    made = fluid.LoDTensor()
    made.set(source, PLACE)
    source[:] = 9
    assert np.array(made).tolist() == [1, 1, 1, 1]
    memory = np.asarray(made).ctypes.data
    made.set(np.zeros(4, "float32"), PLACE)
    assert np.asarray(made).ctypes.data == memory
    made.set(np.zeros((2, 3), "int64"), PLACE)
    assert (made.shape(), np.array(made).dtype.name) == ([2, 3], "int64")


def test_arrays_of_a_tensor_are_copies_or_read_only() -> None:
    made = tensor()
    copy = np.array(made)
    copy[:] = 9
    assert np.array(made)[1] == 1
    assert not np.asarray(made).flags.writeable
    assert np.asarray(made, "float64").dtype.name == "float64"


@pytest.mark.parametrize("dtype", ["uint32", "uint64", "U3", "O"])
def test_types_that_paddle_does_not_have_are_refused(dtype: str) -> None:
    with pytest.raises(TypeError, match=r"LoDTensor\.set"):
        fluid.LoDTensor().set(np.ones(2).astype(dtype), PLACE)


def test_offsets_and_lengths_describe_the_same_lod() -> None:
    made = tensor(6)
    made.set_recursive_sequence_lengths([[2, 1], [1, 2, 3]])
    assert made.lod() == [[0, 2, 3], [0, 1, 3, 6]]
    made.set_lod([[0, 4, 6]])
    assert made.recursive_sequence_lengths() == [[4, 2]]
    made.lod()[0][1] = 99
    assert made.lod() == [[0, 4, 6]]
    made.set_lod([])
    assert made.lod() == []


@pytest.mark.parametrize(
    ("lod", "words"),
    [
        ([[0, 2, 4]], "ends level 0 at 4, but there are 5 rows"),
        ([[0, 3, 2, 5]], "falling offsets in level 0"),
        ([[1, 5]], "must start every level with 0"),
        ([[0]], "hold one sequence at least"),
        ([[0, 3], [0, 2, 5]], "ends level 0 at 3, but there are 2 sequences of the next level"),
    ],
    ids=["short", "falling", "start", "none", "levels"],
)
def test_invalid_offsets_are_refused_and_change_nothing(lod: list[list[int]], words: str) -> None:
    made = tensor()
    made.set_lod([[0, 5]])
    version = made.version
    with pytest.raises(EnforceNotMet, match=words):
        made.set_lod(lod)
    assert (made.lod(), made.version) == ([[0, 5]], version)


def test_an_array_with_another_number_of_rows_may_invalidate_a_lod() -> None:
    made = tensor()
    made.set_lod([[0, 5]])
    assert made.has_valid_recursive_sequence_lengths()
    made.set(np.ones(3, "float32"), PLACE)
    assert not made.has_valid_recursive_sequence_lengths()


def test_tensors_are_made_of_lists_arrays_and_tensors() -> None:
    made = fluid.create_lod_tensor([[1, 2], [3, 4, 5]], [[2, 3]], PLACE)
    assert (np.array(made).tolist(), made.lod()) == ([[1], [2], [3], [4], [5]], [[0, 2, 5]])
    assert np.array(made).dtype.name == "int64"
    again = fluid.create_lod_tensor(made, [[1, 4]], PLACE)
    assert (again.lod(), made.lod()) == ([[0, 1, 5]], [[0, 2, 5]])
    nested = fluid.create_lod_tensor(np.ones((3, 2), "float32"), [[1, 1], [2, 1]], PLACE)
    assert nested.lod() == [[0, 1, 2], [0, 2, 3]]
    with pytest.raises(FeedError, match=r"lists have lengths \[2, 1\]"):
        fluid.create_lod_tensor([[1, 2], [3]], [[2, 2]], PLACE)
    with pytest.raises(EnforceNotMet):
        fluid.create_lod_tensor(np.ones((5, 2)), [[2, 2]], PLACE)
    with pytest.raises(TypeError, match="list of lists"):
        fluid.create_lod_tensor(3, [[1]], PLACE)


def test_random_integers_include_both_bounds() -> None:
    made = fluid.create_random_int_lodtensor([[20, 30]], [2], PLACE, 3, 5)
    values = np.array(made)
    assert (values.shape, values.dtype.name, made.lod()) == ((50, 2), "int64", [[0, 20, 50]])
    assert set(values.ravel()) == {3, 4, 5}


def test_selected_rows_are_rows_of_a_tall_matrix() -> None:
    rows = SelectedRows([7, 0, 7], 10, np.arange(6, dtype="float32").reshape(3, 2))
    assert (rows.rows(), rows.height()) == ([7, 0, 7], 10)
    dense = rows.to_dense()
    assert dense.shape == (10, 2)
    assert dense[[0, 7]].tolist() == [[2, 3], [4, 6]]
    merged = rows.merge()
    assert merged.rows() == [0, 7]
    np.testing.assert_array_equal(merged.to_dense(), dense)
    assert rows.rows() == [7, 0, 7]


def test_an_array_from_a_pickle_gets_the_standard_dtype_object() -> None:
    array = pickle.loads(pickle.dumps(np.arange(3, dtype=np.float32)))
    assert array.dtype is not np.dtype(np.float32), "numpy itself does so: nothing is left to do"
    tensor = fluid.LoDTensor()
    tensor.set(array)
    assert tensor.array is not None
    assert tensor.array.dtype is np.dtype(np.float32)
    assert tensor.array.tolist() == [0.0, 1.0, 2.0]


def test_arrays_returned_by_a_tensor_are_read_only_or_tracked() -> None:
    tensor = fluid.LoDTensor(np.zeros((2, 3), "float32"))
    rows = SelectedRows([1, 2], 5, np.zeros((2, 3), "float32"))
    for value in (tensor.array, np.asarray(tensor), tensor.__array__(), rows.array, rows.get_tensor().array):
        assert value is not None
        with pytest.raises(ValueError, match="read-only"):
            value[...] = 1
        with pytest.raises(ValueError, match="read-only"):
            value[1:].reshape(-1)[0] = 1
    before = tensor.version
    with tensor.writing() as array:
        array[...] = 7
        assert tensor.version > before  # a save that begins here is not the last one of this value
        before = tensor.version
    assert tensor.version > before
    assert np.asarray(tensor).tolist() == [[7.0] * 3] * 2


def test_writes_do_not_change_an_array_that_was_handed_out_read_only() -> None:
    theirs = np.zeros(3, "float32")
    theirs.flags.writeable = False
    tensor = fluid.LoDTensor(theirs)
    with tensor.writing() as array:
        array[0] = 1
    assert (theirs[0], np.asarray(tensor)[0]) == (0.0, 1.0)
    with pytest.raises(EnforceNotMet, match="holds no value"), fluid.LoDTensor().writing():
        pass
