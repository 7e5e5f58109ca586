"""Compare operators in programs of Paddle 2.6.2 and 3.3.1 with both.

    python -m tests.alike.operators.dump_versions --count 8 --seed 11 [--types T] [--record]

``PADDLELIKE_PADDLE262_PYTHON`` and ``PADDLELIKE_PADDLE331_PYTHON`` name their interpreters. Cases begin as
those of ``tests/ops`` and as the operators of the models of ``tests/golden/layers262.tar.xz``, with what they
were given.
"""

from __future__ import annotations

import io
import json
import lzma
import re
import tempfile
import warnings
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import paddlelike as fluid
from paddlelike.framework.opdef import registry
from tests.alike.operators import generating
from tests.alike.operators.asking import decode, encode
from tests.alike.operators.comparing import differ, find_reason
from tests.alike.operators.dump import ask_real, read_options
from tests.alike.operators.generating import Plain, Random
from tests.alike.operators.versions import GOLDEN, VERSIONS, ask
from tests.compiled.harness.recorded import RECORDED
from tests.models.archive import _make_tensor, find_names, read_archive, write_files
from tests.ops.harness.collect import CASES

_LARGEST = 64  # elements of the inputs of a recorded case
_PLAIN = (bool, int, float, str)
_RESULTS = ("Out", "Y", "Output", "Loss")


def list_begins() -> dict[str, list[Plain]]:
    """Return the cases to begin with, by operator."""
    found: dict[str, list[Plain]] = {}
    for case in [*CASES, *RECORDED.values()]:
        if case.type not in generating.LEFT_OUT and not registry.find(case.type).external:
            plain = generating._to_plain(case)
            if all(map(_is_plain, plain["attrs"].values())):
                found.setdefault(case.type, []).append(plain)
    for name, files in read_archive("layers262").items():
        if name != "operators":
            for plain in _list_operators(files):
                found.setdefault(plain["type"], []).append(plain)
    return {type: cases for type, cases in sorted(found.items()) if registry.find_or_none(type)}


def _is_plain(value: object) -> bool:
    return all(type(one) in _PLAIN for one in (value if isinstance(value, list) else [value]))


def _list_operators(files: dict[str, bytes]) -> Iterator[Plain]:
    """Yield the operators of a recorded model with what they are given there."""
    with tempfile.TemporaryDirectory() as folder, fluid.scope_guard(fluid.Scope()):
        write_files(files, Path(folder))
        exe = fluid.Executor()
        program, feeds, _ = fluid.io.load_inference_model(folder, exe, *find_names(files))
        with np.load(io.BytesIO(files["io.npz"])) as file:
            feed = {name: _make_tensor(dict(file), f"in{i}") for i, name in enumerate(feeds)}
        ops = [op for op in program.global_block().ops if op.type not in ("feed", "fetch")]
        if len(program.blocks) > 1 or len(ops) > 60:
            return
        values = dict(feed)
        for name in sorted({name for op in ops for name in op.output_arg_names}):
            try:
                found = exe.run(program, feed=feed, fetch_list=[name], return_numpy=False)[0]
            except Exception:  # an output that nothing writes
                continue
            if isinstance(found, fluid.LoDTensor):
                values[name] = found
        scope = fluid.global_scope()
        for op in ops:
            known = {n: values.get(n) or scope.find_var(n) for n in op.input_arg_names}
            attrs = {n: v for n in op.attr_names if _is_plain(v := op.attr(n))}
            if all(value is not None for value in known.values()):
                yield _describe(op, known, values, attrs)


def _describe(op: Any, known: dict[str, Any], values: dict[str, Any], attrs: dict[str, Any]) -> Plain:
    def convert(value: Any) -> list[Any]:
        tensor = value if isinstance(value, fluid.LoDTensor) else value.get_tensor()
        return encode(np.array(tensor), tensor.lod())

    inputs = {slot: [convert(known[n]) for n in op.input(slot)] for slot in op.input_names if op.input(slot)}
    outputs = {
        slot: [np.array(values[n]).dtype.name if n in values else "float32" for n in op.output(slot)]
        for slot in op.output_names
        if op.output(slot)
    }
    common = ("op_role", "op_device", "op_namescope", "with_quant_attr", "use_mkldnn", "use_cudnn")
    return {
        "type": op.type,
        "inputs": inputs,
        "outputs": outputs,
        "attrs": {name: value for name, value in attrs.items() if not name.startswith(common)},
        "wrt": sorted(slot for slot, records in inputs.items() if records[0][0].startswith("float")),
        "through": [slot for slot in outputs if slot in ("Out", "Y", "Output", "Loss")][:1]
        or list(outputs)[:1],
        "inplace": {},
    }


def _halve(rng: Random, plain: Plain) -> None:
    """Leave halves of integers."""
    record = generating._choose(rng, plain, "f")
    if record is not None:
        array = decode(record)
        generating._replace(record, (np.round(array * 4) / 2 + rng.choice([0, 0.5])).astype(array.dtype))


def _negate(rng: Random, plain: Plain) -> None:
    record = generating._choose(rng, plain, "if")
    if record is not None:
        array = decode(record)
        generating._replace(record, np.where(rng.random(array.shape) < 0.5, -array, array))


def _drop_dims(rng: Random, plain: Plain) -> None:
    """Give an input of one element no dims."""
    records = [one for one in generating._each(plain) if np.prod(one[1]) == 1 and not one[3]]
    if records:
        records[rng.integers(len(records))][1] = []


_NAMES = {"odd", "tied", "shuffled", "sized", "attr", "typed"}
_CHANGES = [one for one in generating._CHANGES if one[0] in _NAMES]
_CHANGES += [("halves", _halve), ("negative", _negate), ("negative", _negate), ("0-d", _drop_dims)]


def generate(type: str, begins: list[Plain], count: int, seed: int) -> Iterator[Plain]:
    """Yield the cases to begin with, and so many changed ones; the same ones for a seed."""
    for index in range(len(begins) + count):
        rng = np.random.default_rng([seed, zlib.crc32(type.encode()), index])
        plain = json.loads(json.dumps(begins[index % len(begins)]))
        names = []
        for _ in range(int(rng.integers(1, 4)) if index >= len(begins) else 0):
            name, change = _CHANGES[rng.integers(len(_CHANGES))]
            change(rng, plain)
            names.append(name)
        if all(len(one) == 4 for one in generating._each(plain)):
            yield {**plain, "name": f"{type}-{index}-{'-'.join(names)}"}


def main() -> None:
    given = read_options(__doc__, count=8)
    cases = [
        case
        for type, begins in list_begins().items()
        if re.search(given.types, type)
        for case in generate(type, begins, given.count, given.seed)
    ]
    real = {}
    for name in VERSIONS:
        with tempfile.TemporaryDirectory() as folder:
            real[name] = ask_real(cases, Path(folder), python=f"PADDLELIKE_PADDLE{name}_PYTHON")
    record([(case, {name: real[name][i] for name in VERSIONS}) for i, case in enumerate(cases)], given.record)


def record(answers: list[tuple[Plain, dict[str, Plain]]], write: bool) -> None:
    """Print what differs; write small ones that are alike: two of an operator, and telling ones."""
    counts: Counter[str] = Counter()
    kept, of_type = [], Counter[str]()
    for case, wants in answers:
        alike = 0
        for name, want in wants.items():
            if "died" in want or "refused" in want:
                counts[f"{name}: {'died' if 'died' in want else 'refused'}"] += 1
                continue
            text = differ(ask(case, VERSIONS[name], want), want, case["type"])
            alike += not text
            counts[f"{name}: {'differs' if text else 'alike'}"] += 1
            if text:
                print(name, case["name"], "|", " ".join(text.split()), "|", find_reason(case, text))
        size = sum(decode(one).size for one in generating._each(case))
        is_wanted = of_type[case["type"]] < 2 or differ(*wants.values(), case["type"])
        if alike == len(wants) and size <= _LARGEST and is_wanted:
            of_type[case["type"]] += 1
            kept.append([case, wants])
    print(*sorted(counts.items()), len(kept), sep="\n")
    if write:
        GOLDEN.write_bytes(lzma.compress(json.dumps(kept, separators=(",", ":")).encode()))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
