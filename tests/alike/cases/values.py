"""Values: scopes, tensors with LoD, selected rows, tensors made from lists."""

from __future__ import annotations

import numpy as np

from tests.alike.recording import Refused, refused


def tensors(fluid):
    tensor = fluid.LoDTensor()
    place = fluid.CPUPlace()
    empty = [np.array(tensor).shape, np.array(tensor).dtype.name, tensor.shape(), tensor.lod()]
    tensor.set(np.arange(5, dtype="float32"), place)
    tensor.set_lod([[0, 2, 5]])
    return {
        "empty": empty,
        "lod": [tensor.lod(), tensor.recursive_sequence_lengths()],
        "valid": tensor.has_valid_recursive_sequence_lengths(),
        "shape": tensor.shape(),
        "array": np.array(tensor),
    }


def lengths(fluid):
    tensor = fluid.LoDTensor()
    tensor.set(np.arange(6, dtype="int64").reshape(6, 1), fluid.CPUPlace())
    tensor.set_recursive_sequence_lengths([[2, 1], [1, 2, 3]])
    return [tensor.lod(), tensor.recursive_sequence_lengths()]


def wrong_lods(fluid):
    def put(lod):
        tensor = fluid.LoDTensor()
        tensor.set(np.arange(5, dtype="float32"), fluid.CPUPlace())
        tensor.set_lod(lod)
        return tensor.lod()

    return [refused(put, lod) for lod in ([[0, 2, 4]], [[0, 3, 2, 5]], [[1, 5]], [[0, 2], [0, 2, 5]], [])]


def dtypes(fluid):
    def put(dtype):
        tensor = fluid.LoDTensor()
        tensor.set(np.ones(2, dtype), fluid.CPUPlace())
        return np.array(tensor)

    names = "bool float16 float32 float64 int8 int16 int32 int64 uint8"
    return {name: refused(put, name) for name in names.split()}


def scopes(fluid):
    scope = fluid.core.Scope()
    made = scope.var("x")
    made.get_tensor().set(np.ones(2, "float32"), fluid.CPUPlace())
    kid = scope.new_scope()
    found = [
        kid.find_var("x") is not None,
        scope.find_var("y"),
        kid.var("y") is not None,
        scope.find_var("y"),
    ]
    scope.drop_kids()
    again = scope.var("x").get_tensor()
    return [*found, np.array(again)]


def guarded_scopes(fluid):
    outer, inner = fluid.global_scope(), fluid.core.Scope()
    outer.var("a")
    with fluid.scope_guard(inner):
        seen = [fluid.global_scope().find_var("a"), fluid.global_scope().var("b") is not None]
    return [*seen, fluid.global_scope().find_var("b"), fluid.global_scope().find_var("a") is not None]


def selected_rows(fluid):
    scope = fluid.core.Scope()
    rows = scope.var("rows").get_selected_rows()
    rows.set_height(10)
    rows.set_rows([7, 0, 7])
    rows.get_tensor().set(np.arange(6, dtype="float32").reshape(3, 2), fluid.CPUPlace())
    return [rows.height(), list(rows.rows()), np.array(rows.get_tensor())]


def one_kind_only(fluid):
    scope = fluid.core.Scope()
    scope.var("x").get_tensor()
    return refused(scope.find_var("x").get_selected_rows)


def arrays_of_tensors(fluid):
    array = fluid.LoDTensorArray()
    tensor = fluid.LoDTensor()
    tensor.set(np.ones(2, "float32"), fluid.CPUPlace())
    array.append(tensor)
    return [len(array), np.array(array[0])]


def from_lists(fluid):
    make, place = fluid.create_lod_tensor, fluid.CPUPlace()
    again = make([[1, 2], [3, 4, 5]], [[2, 3]], place)
    return [
        again,
        make(again, [[1, 4]], place),
        make(np.ones((5, 2), "float32"), [[2, 3]], place),
        make(np.ones((3, 2), "float32"), [[1, 1], [2, 1]], place),
        refused(make, [[1, 2], [3]], [[2, 2]], place),
        refused(make, np.ones((5, 2), "float32"), [[2, 2]], place),
        refused(make, 3, [[1]], place),
    ]


def random_integers(fluid):
    return fluid.create_random_int_lodtensor([[2, 3]], [2], fluid.CPUPlace(), 4, 4)


def names_of_dtypes(fluid):
    convert = fluid.framework.convert_np_dtype_to_dtype_
    names = "bool float16 float32 float64 int8 int16 int32 int64 uint8"
    return [int(convert(np.dtype(name))) for name in names.split()]


def fed_afterwards(fluid):
    scope = fluid.core.Scope()
    tensor = scope.var("x").get_tensor()
    source = np.arange(4, dtype="float32")
    tensor.set(source, fluid.CPUPlace())
    source[:] = 9
    return np.array(tensor)


def parts_of_tensors(fluid):
    tensor = fluid.LoDTensor()
    empty = [tensor._get_dims(), tensor._is_initialized()]
    tensor.set(np.arange(12, dtype="float32").reshape(4, 3), fluid.CPUPlace())
    tensor.set_lod([[0, 1, 4]])
    parts = [tensor[0], tensor[1:3], tensor[::2], tensor[::-1], tensor[:, 1], tensor[1, 2], tensor[1:, :2]]
    wrong = [refused(lambda item=item: np.array(tensor[item])) for item in (4, (0, 0, 0), (Ellipsis, 1))]
    tensor._set_float_element(4, 9.0)
    tensor._set_dims([2, 6])
    return {
        "empty": empty,
        "parts": [np.array(part) for part in parts],
        "wrong": [isinstance(one, Refused) for one in wrong],
        "now": [tensor._get_dims(), tensor._is_initialized(), tensor._get_float_element(4)],
        "array": np.array(tensor),
    }
