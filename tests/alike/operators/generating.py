"""Generate cases of odd shapes, values, types, LoDs and attributes from the cases of ``tests/ops``.

Every case begins as one that an operator is tested at, which fits together, and is changed in one to three
ways. The changes keep sizes that are equal equal, so that many of the results still fit; the rest show what
is refused.
"""

from __future__ import annotations

import functools
import itertools
import math
import zlib
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

from paddlelike.core import LoDTensor, SelectedRows
from paddlelike.framework.opdef import ABSENT, GRAD, REQUIRED, OpDef, registry
from tests.alike.operators.asking import decode, encode
from tests.ops.harness import contract
from tests.ops.harness.collect import CASES, LATER

__all__ = ["generate_cases", "list_types", "tame", "to_contract"]

Plain = dict[str, Any]
Random = np.random.Generator

#: Operators that read files, other processes or blocks, and those that draw in an order of their own.
LEFT_OUT: Final = frozenset(
    [
        "gaussian_random",
        "uniform_random",
        "truncated_gaussian_random",
        "uniform_random_batch_size_like",
        "random_crop",
        "randint",
        "randperm",
        "gaussian_random_batch_size_like",
        "sampling_id",
        "shuffle_batch",
        "tdm_sampler",
        "dropout",
        "nce",
        "sample_logits",
        "seed",
        "py_func",
        "generate_proposal_labels",
        "generate_mask_labels",
        "rpn_target_assign",
        "retinanet_target_assign",
        "dpsgd",
        "print",
        "assert",
        "generate_proposals",
        "average_accumulates",
    ]
)
_LARGEST: Final = 20_000  # elements of one input
_FLOATS: Final = [
    np.nan,
    np.inf,
    -np.inf,
    -0.0,
    0.0,
    1e-40,
    -1e-40,
    3e38,
    -3e38,
    1.0,
    -1.0,
    0.5,
    2.5,
    -1.5,
    88.0,
    -104.0,
]


@functools.cache
def list_types() -> dict[str, list[contract.Case]]:
    """Return the cases to begin with, by the type of the operator."""
    from tests.compiled.harness.recorded import RECORDED

    found: dict[str, list[contract.Case]] = {}
    for case in [*CASES, *RECORDED.values()]:
        op = registry.find(case.type)
        if op.since != "1" or op.external or case.type in LATER or case.type in LEFT_OUT:
            continue
        found.setdefault(case.type, []).append(case)
    return dict(sorted(found.items()))


def generate_cases(type: str, count: int, seed: int = 0, *, small: bool = False) -> Iterator[Plain]:
    """Yield so many cases of an operator; the same ones for a seed, and the first of a greater count.

    ``small``: of eighths, which compress well, and without limits of integers, at which the real one dies.
    """
    begin = list_types()[type]
    for index in range(count):
        rng = np.random.default_rng([seed, zlib.crc32(type.encode()), index])
        case = begin[index % len(begin)]
        plain = _to_plain(case)
        changes = [one for one in _CHANGES if one[0] != "limits"] if small else _CHANGES
        names = []
        if small:
            _coarsen(plain)
        for _ in range(int(rng.integers(1, 4)) if index >= len(begin) else 0):
            name, change = changes[rng.integers(len(changes))]
            change(rng, plain)
            names.append(name)
        if rng.random() < 0.75:
            _narrow(rng, plain)
        plain["name"] = f"{type}-{index}-{'-'.join(names)}"
        yield plain


def _to_plain(case: contract.Case) -> Plain:
    op = registry.find(case.type)
    inputs: dict[str, list[Any]] = {}
    for slot, value in case.inputs.items():
        if value is not None:
            inputs[slot] = [_encode(one) for one in (value if isinstance(value, list) else [value])]
    attrs = {name: _plain_attr(value) for name, value in case.attrs.items()}
    plain = {"type": case.type, "inputs": inputs, "attrs": attrs}
    plain["outputs"] = _list_outputs(op, case, plain)
    floats = {slot for slot, records in inputs.items() if records and records[0][0].startswith("float")}
    wanted = (
        set() if op.gradient is None else {name.removesuffix(GRAD) for name in op.gradient.outputs or floats}
    )
    plain["wrt"] = sorted(
        floats & wanted if case.wrt is None else floats & set(case.wrt) & (wanted or floats)
    )
    read = set(op.gradient.inputs) if op.gradient else set()
    plain["through"] = [slot for slot in plain["outputs"] if slot + GRAD in read] or list(plain["outputs"])[
        :1
    ]
    plain["inplace"] = {}
    if any(len(one) > 4 for one in _each(plain)):
        plain["wrt"] = []
        plain["inplace"] = {out: slot for out, slot in op.inplace.items() if slot in inputs}
    if not op.has_gradient(contract.View(case.type, {s: [s] for s in inputs}, {}, case.attrs)):
        plain["wrt"] = []
    return plain


def _encode(value: Any) -> list[Any]:
    if isinstance(value, SelectedRows):
        return [*encode(np.array(value.held_array)), [value.rows(), value.height()]]
    return encode(np.array(value), value.lod() if isinstance(value, LoDTensor) else ())


def _plain_attr(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_plain_attr(one) for one in value]
    return (
        value.item()
        if isinstance(value, np.generic)
        else int(value)
        if type(value).__name__ == "VarType"
        else value
    )


def _list_outputs(op: type[OpDef], case: contract.Case, plain: Plain) -> dict[str, list[str]]:
    """Return how many outputs each slot has; their dtypes are those that the kernel gives."""
    view, values, lods = contract._named(case)
    try:
        with np.errstate(all="ignore"):
            contract.run(view, values, lods)
    except Exception:
        values = {}
    found = {}
    for slot in op.output_slots:
        names = view.output(slot.name)
        arrays = [values.get(name) for name in names]
        found[slot.name] = [a.dtype.name if isinstance(a, np.ndarray) else "float32" for a in arrays]
    return found


def _each(plain: Plain) -> Iterator[list[Any]]:
    return itertools.chain.from_iterable(plain["inputs"].values())


def _replace(record: list[Any], array: np.ndarray[Any, Any]) -> None:
    record[:3] = encode(array)[:3]


def _choose(rng: Random, plain: Plain, kind: str) -> list[Any] | None:
    records = [one for one in _each(plain) if np.dtype(one[0]).kind in kind and math.prod(one[1])]
    return records[rng.integers(len(records))] if records else None


def _sprinkle(rng: Random, plain: Plain) -> None:
    """Put odd numbers among the elements: NaN, infinities, -0.0, denormals, limits."""
    record = _choose(rng, plain, "f")
    if record is not None:
        array = decode(record)
        some = _FLOATS if rng.random() < 0.5 else [_FLOATS[rng.integers(len(_FLOATS))]]
        where = rng.random(array.shape) < rng.choice([0.1, 0.3, 1.0])
        array[where] = rng.choice(some, int(where.sum()))
        _replace(record, array)


def _tie(rng: Random, plain: Plain) -> None:
    """Leave few different numbers."""
    record = _choose(rng, plain, "f")
    if record is not None:
        array = decode(record)
        levels = rng.choice(array.reshape(-1), int(rng.integers(1, 4)))
        _replace(record, rng.choice(levels, array.shape).astype(array.dtype))


def _shuffle(rng: Random, plain: Plain) -> None:
    """Take other elements of an input in the place of each, so that ids are repeated and left out."""
    record = _choose(rng, plain, "iufb")
    if record is not None:
        array = decode(record)
        _replace(record, rng.choice(array.reshape(-1), array.shape))


def _limit(rng: Random, plain: Plain) -> None:
    """Put negative integers and limits of their type among the elements."""
    record = _choose(rng, plain, "i")
    if record is not None:
        array = decode(record)
        limits = np.iinfo(array.dtype)
        where = rng.random(array.shape) < 0.3
        array[where] = rng.choice([-1, 0, limits.min, limits.max, -7], int(where.sum()))
        _replace(record, array)


def _resize(rng: Random, plain: Plain) -> None:
    """Change one size wherever it occurs: in the dims of inputs, in LoDs it cuts, in lists of sizes."""
    sizes = sorted({size for one in _each(plain) for size in one[1]})
    if not sizes or any(len(one) > 4 for one in _each(plain)):
        return
    old = int(rng.choice(sizes))
    new = int(rng.choice([0, 1, 2, old + 1, 2 * old, 17, 33, 64]))
    for record in _each(plain):
        if old in record[1]:
            dims = [new if size == old else size for size in record[1]]
            if math.prod(dims) > _LARGEST:
                return
            array = decode(record)
            if array.size == 0:
                _replace(record, np.zeros(dims, array.dtype))
            else:
                for axis, size in enumerate(dims):
                    array = (
                        array.take(np.arange(size) % array.shape[axis], axis) if array.shape[axis] else array
                    )
                _replace(record, array)
            if record[3] and record[3][-1][-1] != dims[0]:
                record[3] = [*record[3][:-1], _cut(rng, len(record[3][-1]) - 1, dims[0])]


def _cut(rng: Random, sequences: int, rows: int) -> list[int]:
    """Return the offsets of sequences that share the rows, some of them empty."""
    inner = sorted(int(one) for one in rng.integers(0, rows + 1, max(sequences - 1, 0)))
    return [0, *inner, rows] if sequences else [0]


def tame(plain: Plain) -> Plain:
    """Return a case with ordinary numbers in the place of those that are not finite, huge or tiny."""
    found = {**plain, "inputs": {slot: [list(one) for one in each] for slot, each in plain["inputs"].items()}}
    for record in _each(found):
        array = decode(record)
        if array.dtype.kind == "f":
            size = np.abs(array)
            is_odd = ~np.isfinite(array) | (size > 1e30) | ((size < 1e-30) & (size > 0))
            array[is_odd] = np.resize([1.5, -0.25, 0.75], int(is_odd.sum()))
            _replace(record, array)
    return found


def _recut(rng: Random, plain: Plain) -> None:
    """Cut the rows at other places, alike in inputs that were cut alike."""
    lods = [one[3] for one in _each(plain) if one[3]]
    if lods:
        old = lods[rng.integers(len(lods))]
        rows, count = old[-1][-1], len(old[-1]) - 1
        new = [*old[:-1], _cut(rng, count, rows)]
        for record in _each(plain):
            if record[3] == old:
                record[3] = new


def _add_lod(rng: Random, plain: Plain) -> None:
    """Cut the rows of one input, or of all with as many rows, into sequences; in two levels now and then."""
    records = [one for one in _each(plain) if one[1] and not one[3] and len(one) == 4]
    if records:
        first = records[rng.integers(len(records))]
        rows = first[1][0]
        lod = [_cut(rng, int(rng.integers(1, 4)), rows)]
        if rng.random() < 0.3:
            lod.insert(0, _cut(rng, 2, len(lod[0]) - 1))
        several = rng.random() < 0.5
        for record in records:
            if record is first or (several and record[1][0] == rows):
                record[3] = lod


def _flatten_lod(rng: Random, plain: Plain) -> None:
    for record in _each(plain):
        record[3] = record[3][-1:] if rng.random() < 0.5 else []


def _lay_out(rng: Random, plain: Plain) -> None:
    """Feed an input that lies otherwise in memory."""
    records = [one for one in _each(plain) if len(one) == 4 and one[1] and not one[3]]
    if records:
        records[rng.integers(len(records))].append(str(rng.choice(["gaps", "turned", "big-endian"])))


def _make_sparse(rng: Random, plain: Plain) -> None:
    """Give an update the rows of a gradient, some of them twice, and let it overwrite what it updates."""
    op = registry.find(plain["type"])
    grad = plain["inputs"].get("Grad")
    if "Param" in plain["inputs"] and grad and op.inplace:
        plain["inplace"] = {out: slot for out, slot in op.inplace.items() if plain["inputs"].get(slot)}
        height, count = grad[0][1][0], int(rng.integers(0, 2 * grad[0][1][0] + 1))
        if rng.random() < 0.7 and height and len(grad[0]) == 4 and not grad[0][3]:
            rows = [int(one) for one in rng.integers(0, height, count)]
            grad[0][:] = [*encode(decode(grad[0])[np.arange(count) % height]), [rows, height]]


def _set_attr(rng: Random, plain: Plain) -> None:
    """Give one attribute another legal value, or one beyond."""
    op = registry.find(plain["type"])
    attrs = {n: a.default for n, a in op.attrs.items() if a.default not in (REQUIRED, ABSENT)}
    attrs |= plain["attrs"]  # of a later Paddle, names may be its own
    names = [
        name
        for name, value in attrs.items()
        if isinstance(value, (bool, int, float, list)) and name not in _FIXED
    ]
    if not names:
        return
    name = names[rng.integers(len(names))]
    value = attrs[name]
    plain["attrs"][name] = (
        [_turn(rng, one) for one in value] if isinstance(value, list) else _turn(rng, value)
    )


#: Attributes that choose libraries or element types.
_FIXED: Final = frozenset(
    ["dtype", "out_dtype", "in_dtype", "use_mkldnn", "use_cudnn", "is_test", "exhaustive_search"]
)


def _turn(rng: Random, value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return int(rng.choice([value, value + 1, value - 1, 0, 1, -1, -value, 2]))
    if isinstance(value, float):
        return float(rng.choice([value, 0.0, 1.0, -value, value / 2, value * 3]))
    return value


def _coarsen(plain: Plain) -> None:
    for record in _each(plain):
        if record[0].startswith("float"):
            array = decode(record)
            if np.abs(array).max(initial=0) > 0.5:  # small numbers may be shares, which must not vanish
                _replace(record, np.round(array * 8) / 8)


def _narrow(rng: Random, plain: Plain) -> None:
    """Make float64 float32, in all inputs, and the outputs that are float64."""
    for record in _each(plain):
        if record[0] == "float64":
            _replace(record, decode(record).astype("float32"))
    for dtypes in plain["outputs"].values():
        dtypes[:] = ["float32" if one == "float64" else one for one in dtypes]


def _retype(rng: Random, plain: Plain) -> None:
    """Make floats integers, or integers of another width."""
    old = str(rng.choice([one[0] for one in _each(plain)] or ["float64"]))
    new = str(rng.choice(["int32", "int64"] if old != "int64" else ["int32", "float32"]))
    if old == "bool":
        return
    for record in _each(plain):
        if record[0] == old:
            with np.errstate(all="ignore"):
                _replace(record, decode(record).astype(new))
    for dtypes in plain["outputs"].values():
        dtypes[:] = [new if one == old else one for one in dtypes]


_CHANGES: Final[list[tuple[str, Callable[[Random, Plain], None]]]] = [
    ("odd", _sprinkle),
    ("odd", _sprinkle),
    ("tied", _tie),
    ("shuffled", _shuffle),
    ("limits", _limit),
    ("sized", _resize),
    ("sized", _resize),
    ("cut", _recut),
    ("lod", _add_lod),
    ("flat", _flatten_lod),
    ("attr", _set_attr),
    ("attr", _set_attr),
    ("typed", _retype),
    ("laid", _lay_out),
    ("sparse", _make_sparse),
]


def to_contract(plain: Plain) -> contract.Case:
    """Return a case as the sweep of lowerings takes it."""
    op = registry.find(plain["type"])

    def convert(record: list[Any]) -> Any:
        return LoDTensor(decode(record), record[3]) if record[3] else decode(record)

    inputs: dict[str, Any] = {}
    for slot in op.input_slots:
        records = plain["inputs"].get(slot.name)
        if records is not None:
            inputs[slot.name] = [convert(one) for one in records] if slot.several else convert(records[0])
    outputs = dict(plain["outputs"])
    return contract.Case(plain["type"], inputs, lambda: outputs, plain["attrs"], note=plain["name"])
