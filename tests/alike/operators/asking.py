"""One operator in a program of its own, with its gradient, on the real system or here (Python 3.7 too).

A case is plain data: ``type``, ``inputs`` (``{slot: [array, ...]}``), ``outputs`` (``{slot: [dtype, ...]}``),
``attrs``, ``wrt`` and ``through`` (slots); ``inplace`` (``{output slot: input slot}``) where both are one
variable. An array is ``[dtype, dims, bytes in hex, LoD]``; a fifth element says how it lies in the memory
that is fed, or holds the rows and the height of SelectedRows. An outcome is ``{"refused": stage}``, or the
arrays of the outputs (``out``) and of the gradients of the inputs (``grad``), None where the operator left a
variable alone.
"""

from __future__ import annotations

import zlib

import numpy as np

__all__ = ["ask", "decode", "encode"]


def encode(array, lod=()):
    """Return an array and its LoD as plain data."""
    array = np.asarray(array)
    return [array.dtype.name, list(array.shape), array.tobytes().hex(), [list(level) for level in lod]]


def decode(record):
    """Return the array of plain data, which may be written."""
    dtype, dims, data = record[:3]
    return np.frombuffer(bytes.fromhex(data), dtype).reshape(dims).copy()


def lay_out(array, way):
    """Return an array of the same numbers that lies otherwise in memory."""
    if way == "big-endian":
        return array.astype(array.dtype.newbyteorder(">"))
    if way == "turned":
        return np.ascontiguousarray(array.T).T
    wide = np.zeros([2 * dim for dim in array.shape], array.dtype)
    part = wide[tuple(slice(None, None, 2 if way == "gaps" else 1) for _ in array.shape)]
    part = part[tuple(slice(dim) for dim in array.shape)]
    part[...] = array
    return part


def ask(fluid, case):
    """Return what the system ``fluid`` makes of a case."""
    stage = "build"
    try:
        asked = _Asked(fluid, case)
        stage = "run"
        found = asked.run(list(asked.outputs))
        outcome = {"out": found}
        through = [name for name in asked.through if found[name] is not None]
        if asked.targets and through:
            stage = "gradient"
            outcome["grad"] = asked.differentiate(through, found)
    except Exception as error:
        return {"refused": stage, "why": type(error).__name__ + ": " + str(error)[-300:]}
    return outcome


class _Asked:
    """A program of one operator, and what it was fed."""

    def __init__(self, fluid, case):
        self.fluid = fluid
        self.program = fluid.Program()
        self.program.random_seed = 7
        self.block = self.program.global_block()
        self.feed, self.rows = {}, {}
        self.targets, self.through, self.outputs = [], [], {}
        inputs, outputs = {}, {}
        for slot, records in sorted(case["inputs"].items()):
            inputs[slot] = [self.data(f"{slot}_{i}", one) for i, one in enumerate(records)]
            if slot in case["wrt"]:
                self.targets += inputs[slot]
        for slot, dtypes in sorted(case["outputs"].items()):
            outputs[slot] = []
            overwritten = inputs.get(case.get("inplace", {}).get(slot), ())
            for i, dtype in enumerate(dtypes):
                name, kept = f"{slot}_{i}_out", bool(self.rows)
                new = None if overwritten else self.block.create_var(name=name, dtype=dtype, persistable=kept)
                variable = overwritten[i] if new is None else new
                outputs[slot].append(variable)
                self.outputs[variable.name] = variable
                if slot in case["through"]:
                    self.through.append(variable.name)
        self.block.append_op(type=case["type"], inputs=inputs, outputs=outputs, attrs=dict(case["attrs"]))

    def data(self, name, record):
        array, lod = decode(record), record[3]
        if len(record) > 4 and isinstance(record[4], list):
            self.rows[name] = array, *record[4]
            kind = self.fluid.core.VarDesc.VarType.SELECTED_ROWS
            dims = [record[4][1], *array.shape[1:]]
            return self.block.create_var(name=name, shape=dims, dtype=record[0], type=kind, persistable=True)
        tensor = self.fluid.LoDTensor()
        tensor.set(array, self.fluid.CPUPlace())
        if lod:
            tensor.set_lod(lod)
        self.feed[name] = tensor if len(record) == 4 or lod else lay_out(array, record[4])
        dims = [-1, *array.shape[1:]] if lod else list(array.shape)
        stopped = array.dtype.kind != "f"
        variable = self.block.create_var(
            name=name, shape=dims, dtype=record[0], lod_level=len(lod), stop_gradient=stopped
        )
        variable.persistable = bool(self.rows)
        return variable

    def run(self, names):
        """Return variables by name; None where nothing was written into one, which is an error here."""
        with self.fluid.scope_guard(self.fluid.Scope()):
            exe = self.fluid.Executor(self.fluid.CPUPlace())
            if self.rows:
                return self.run_with_rows(exe, names)
            try:
                return self.fetch(exe, names)
            except Exception as error:
                if type(error).__name__ != "NotInitializedError":
                    raise
            found = {}
            for name in names:
                try:
                    found.update(self.fetch(exe, [name]))
                except Exception as error:
                    if type(error).__name__ != "NotInitializedError":
                        raise
                    found[name] = None
            return found

    def run_with_rows(self, exe, names):
        """Return variables by name, which may be SelectedRows, and so cannot be fetched."""
        scope = self.fluid.global_scope()
        for name, (values, rows, height) in self.rows.items():
            sparse = scope.var(name).get_selected_rows()
            sparse.set_height(height)
            sparse.set_rows(rows)
            sparse.get_tensor().set(values, self.fluid.CPUPlace())
        exe.run(self.program, self.feed)
        return {name: _read(scope, name) for name in names}

    def fetch(self, exe, names):
        found = exe.run(self.program, self.feed, names, return_numpy=False) if names else []
        return {name: _record(one) for name, one in zip(names, found)}  # noqa: B905  (Python 3.7)

    def differentiate(self, through, found):
        above = []
        for name in through:
            dtype, dims, _, lod = found[name]
            rng = np.random.RandomState(zlib.crc32(name.encode()) % 2**31)
            values = rng.uniform(-1, 1, dims).astype(dtype)
            above.append(self.data("above_" + name, encode(values, lod)))
            above[-1].desc.set_shape(list(self.outputs[name].shape))
        grads = self.fluid.gradients([self.outputs[name] for name in through], self.targets, above)
        named = [(v.name, g) for v, g in zip(self.targets, grads)]  # noqa: B905  (Python 3.7)
        values = self.run([g.name for _, g in named if g is not None])
        return {name: None if g is None else values[g.name] for name, g in named}


def _read(scope, name):
    """Return what a variable of the scope holds."""
    found = scope.find_var(name)
    if found is None:
        return None
    try:
        return _record(found.get_tensor())
    except Exception:
        sparse = found.get_selected_rows()
        record = _record(sparse.get_tensor())
        return record and [*record, [list(sparse.rows()), sparse.height()]]


def _record(tensor):
    if tensor is None or not tensor._is_initialized():
        return None
    return encode(np.array(tensor), tensor.lod())
