"""Networks that are saved, by the functions that users call, while the saver is killed."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any
from unittest import mock

import numpy as np

import paddlelike as fluid
from paddlelike.storage.local import generation
from tests.crash.models import FOREIGN, Model, refuse

__all__ = ["NETWORKS", "Paddle", "digest"]

Arrays = dict[str, np.ndarray]
Act = Callable[["Net", fluid.Executor, str], object]
ONLY = "fc_1.w_0"  # what changes where little does
TABLE = "fc_0.w_0"  # where some of its rows do


@dataclass(frozen=True)
class Paddle:
    """How real Paddle reads what was saved.

    Attributes
    ----------
    form
        "directory" (a file each), "everything" (whatever lies in the directory), "all" (one file of that
        name), "pickles" (``net.pdparams`` and ``net.pdopt``) or "export" (``load_inference_model``).
    shapes
        The variables; they are not requested in "everything" and "export".
    digests
        Of the values of each set, see :func:`digest`.
    """

    form: str
    shapes: Mapping[str, tuple[int, ...]]
    digests: list[int]


@dataclass
class Net:
    """A network and three sets of values for it; ``wide``: each set belongs to another network."""

    program: fluid.Program
    values: list[Arrays]
    out: list[tuple[fluid.Program, str]] = field(default_factory=list)
    scope: fluid.Scope = field(default_factory=fluid.Scope)


def digest(values: Mapping[str, np.ndarray]) -> int:
    """A number by which values are known: the crc32 of all bytes, in the order of the names."""
    crc = 0
    for name in sorted(values):
        crc = zlib.crc32(np.ascontiguousarray(values[name]).tobytes(), crc)
    return crc


def _built(width: int) -> tuple[fluid.Program, fluid.Program, str]:
    main, startup = fluid.Program(), fluid.Program()
    with fluid.unique_name.guard(), fluid.program_guard(main, startup):
        x = fluid.data("x", [None, 520])
        out = fluid.layers.fc(fluid.layers.fc(x, width), 3)
        infer = main.clone(for_test=True)
        fluid.optimizer.Momentum(0.1, 0.9).minimize(fluid.layers.mean(out))
    return main, infer, out.name


def _values(program: fluid.Program, dice: np.random.Generator) -> Arrays:
    wanted = {v.name: v.shape for v in program.list_vars() if fluid.io.is_persistable(v)}
    return {name: dice.standard_normal(shape).astype("float32") for name, shape in wanted.items()}


def _net(seed: int, how: str) -> Net:
    """A network of more than a megabyte; ``how``: "alike", "kept" (little changes), "rows" or "shrinks"."""
    dice = np.random.default_rng(seed)
    main, infer, out = _built(513)
    net = Net(main, [_values(main, dice) for _ in range(3)], [(infer, out)] * 3)
    if how == "kept":
        net.values[1:] = [net.values[0] | {ONLY: values[ONLY]} for values in net.values[1:]]
    if how == "rows":
        for number, values in enumerate(net.values):
            values[TABLE] = net.values[0][TABLE].copy()
            values[TABLE][number : 3 * number] += 1
    if how == "shrinks":  # every set belongs to another network
        built = [_built(width) for width in (513, 514, 515)]
        net.out = [(infer, out) for _, infer, out in built]
        net.values = [_values(infer, dice) for _, infer, _ in built]
    return net


def _fluid(
    name: str,
    seed: int,
    *,
    write: Act,
    read: Act,
    form: str,
    how: str = "alike",
    foreign: bool = False,
    fresh: bool = False,
    one_step: bool = True,
    stays: frozenset[str] = frozenset(),
) -> Model:
    net = _net(seed, how)
    exe = fluid.Executor(fluid.CPUPlace())

    def save(directory: str, number: int) -> None:
        scope = net.scope if how in ("kept", "rows") else fluid.Scope()
        with fluid.scope_guard(scope):
            for each, array in net.values[number].items():
                holder = scope.find_var(each)
                if holder is None or not np.array_equal(np.array(holder.get_tensor()), array):
                    scope.var(each).get_tensor().set(array, fluid.CPUPlace())
            write(replace(net, out=[net.out[number]]), exe, directory)

    def load(directory: str) -> int:
        with fluid.scope_guard(fluid.Scope()):
            if form == "pickles":
                for each, array in net.values[2].items():
                    fluid.global_scope().var(each).get_tensor().set(array * 0, fluid.CPUPlace())
            read(net, exe, directory)
            found = {
                each: np.array(holder.get_tensor())
                for each in net.values[0]
                if (holder := fluid.global_scope().find_var(each)) is not None
            }
        return [digest(values) for values in net.values].index(digest(found))

    shapes = {each: array.shape for each, array in net.values[0].items()}
    paddle = Paddle(form, shapes, [digest(values) for values in net.values])
    mine = dict(FOREIGN) if foreign else {}
    return Model(name, [], save, load, mine, fresh, one_step, stays=stays, paddle=paddle)


def _persistables(**options: Any) -> Act:
    return lambda net, exe, path: fluid.io.save_persistables(exe, path, net.program, **options)


def _without_exchange(act: Act) -> Act:
    def acted(net: Net, exe: fluid.Executor, path: str) -> object:
        with mock.patch.object(generation, "exchange", refuse):
            return act(net, exe, path)

    return acted


def _export(net: Net, exe: fluid.Executor, path: str) -> object:
    program, out = net.out[0]
    clone = program.clone(for_test=True)
    return fluid.io.save_inference_model(path, ["x"], [clone.global_block().var(out)], exe, clone)


def _in_thread(net: Net, exe: fluid.Executor, path: str) -> object:
    pending = fluid.io.save_persistables(exe, path, net.program, blocking=False)
    assert isinstance(pending, fluid.io.PendingSave)
    return pending.wait()


def _read(net: Net, exe: fluid.Executor, path: str) -> object:
    return fluid.io.load_persistables(exe, path, net.program)


def _read_all(net: Net, exe: fluid.Executor, path: str) -> object:
    return fluid.io.load_persistables(exe, path, net.program, filename="all")


def _read_pickles(net: Net, exe: fluid.Executor, path: str) -> object:
    return fluid.load(net.program, f"{path}/net", exe)


def _read_export(net: Net, exe: fluid.Executor, path: str) -> object:
    return fluid.io.load_inference_model(path, exe)


def _save_pickles(net: Net, exe: fluid.Executor, path: str) -> object:
    return fluid.save(net.program, f"{path}/net")


def _save_compacted(net: Net, exe: fluid.Executor, path: str) -> object:
    """Save what changed, and give each variable one file again."""
    fluid.io.save_persistables(exe, path, net.program, delta=True)
    return fluid.io.compact(path)


_SPARE = frozenset({".set.saving-directory"})
_DIRECTORY = {"write": _persistables(), "read": _read, "form": "everything"}

#: All models of networks, by name: functions of a seed.
NETWORKS: Mapping[str, Callable[[int], Model]] = {
    name: partial(_fluid, name, **_DIRECTORY | options)
    for name, options in {
        "fluid-new": {"fresh": True},
        "fluid-over": {"form": "directory", "foreign": True},
        "fluid-alone": {},
        "fluid-kept": {"how": "kept"},
        "fluid-deltas": {
            "write": _persistables(delta=True),
            "how": "rows",
            "foreign": True,
            "form": "chains",
        },
        "fluid-base": {"write": _persistables(delta="base"), "how": "rows", "form": "chains"},
        "fluid-compact": {"write": _save_compacted, "how": "rows", "form": "chains"},
        "fluid-deltas-journal": {
            "write": _without_exchange(_persistables(delta=True)),
            "how": "rows",
            "form": "chains",
            "one_step": False,
        },
        "fluid-power": {"write": _persistables(durability="power")},
        "fluid-thread": {"write": _in_thread},
        "fluid-spare": {"write": _persistables(keep_generation=True), "stays": _SPARE},
        "fluid-combined": {
            "write": _persistables(filename="all"),
            "read": _read_all,
            "form": "all",
            "foreign": True,
        },
        "fluid-export": {"write": _export, "read": _read_export, "form": "export", "how": "shrinks"},
        "fluid-pickles": {
            "write": _save_pickles,
            "read": _read_pickles,
            "form": "pickles",
            "one_step": False,
        },
        "fluid-journal": {"write": _without_exchange(_persistables()), "one_step": False},
    }.items()
}
