"""The first values of parameters on servers, as Paddle 1.8.5 gives them.

Each server draws its slice by an operator of the slice's shape with the seed of the whole, so that slices
start alike, and otherwise than the parameter of one process (``transpiler/distribute_transpiler.py``).
"""

from __future__ import annotations

import numpy as np
import pytest

import paddlelike as fluid

_SERVERS = ["127.0.0.1:6170", "127.0.0.1:6171"]
#: Of 1.8.5 with the seed 7: the first three elements, and the sum, of each slice and of the whole.
_SLICE = ([-0.054004181176424026, 0.01028856635093689, -0.031389735639095306], -5.167331416159868)
_WHOLE = ([-0.054004181176424026, 0.01028856635093689, -0.031389735639095306], -11.689205331727862)
_TABLE = ([-0.054645836353302, 0.010410808026790619, -0.03176269680261612], -11.58262762054801)


def _build() -> tuple[fluid.Program, fluid.Program]:
    main, startup = fluid.Program(), fluid.Program()
    startup.random_seed = main.random_seed = 7
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        ids = fluid.data("ids", [None, 1], "int64")
        rows = fluid.layers.embedding(ids, [2000, 8], is_sparse=True, param_attr="emb")
        out = fluid.layers.fc(fluid.layers.reshape(rows, [-1, 8]), 2048, param_attr="w", bias_attr=False)
        fluid.optimizer.SGD(0.1).minimize(fluid.layers.mean(out))
    return main, startup


def _start(startup: fluid.Program, *names: str) -> list[np.ndarray]:
    scope = fluid.Scope()
    with fluid.scope_guard(scope):
        fluid.Executor().run(startup)
        return [np.array(scope.var(name).get_tensor()) for name in names]


def test_slices_on_two_servers_are_initialized_as_in_fluid() -> None:
    (whole, table) = _start(_build()[1], "w", "emb")
    main, startup = _build()
    transpiler = fluid.DistributeTranspiler()
    transpiler.transpile(0, main, ",".join(_SERVERS), 1, startup_program=startup)
    programs = [transpiler.get_pserver_programs(one)[1] for one in _SERVERS]
    second, served = _start(programs[0], "w.block1", "emb")
    (first,) = _start(programs[1], "w.block0")
    for array, (begin, total) in (
        (whole, _WHOLE),
        (table, _TABLE),
        (served, _TABLE),
        (first, _SLICE),
        (second, _SLICE),
    ):
        np.testing.assert_array_equal(array.ravel()[:3], np.float32(begin))
        assert array.sum(dtype="float64") == pytest.approx(total, rel=1e-12)
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(whole, np.concatenate([first, second]))
