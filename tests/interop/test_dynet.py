"""The real DyNet loads what we save and computes the same, and we load what it saves."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

import paddlelike as fluid
import paddlelike.collection as dy
from tests.interop.real import RealSystem

DYNET = RealSystem("PADDLELIKE_DYNET_PYTHON", "dyNET38 2.2")
pytestmark = DYNET.needed

XS = np.random.default_rng(3).standard_normal((4, 3)).astype("float32")


def compute(one: object) -> np.ndarray:
    if isinstance(one, dy.Parameters):
        return one.as_array()
    dy.renew_cg()
    begin = one if isinstance(one, dy.BiRNNBuilder) else one.initial_state()  # type: ignore[attr-defined]
    return np.array([y.npvalue() for y in begin.transduce([dy.inputVector(x) for x in XS])])


def test_each_system_loads_the_files_of_the_other(tmp_path: Path) -> None:  # D02, D20, D36
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.scope_guard(fluid.Scope()):
        m = dy.ParameterCollection()
        objects = {
            "E": m.add_lookup_parameters((6, 3)),
            "vanilla": dy.VanillaLSTMBuilder(2, 3, 4, m, False, 0.5),
            "gru": dy.GRUBuilder(1, 3, 4, m),
            "simple": dy.SimpleRNNBuilder(2, 3, 4, m),
            "coupled": dy.CoupledLSTMBuilder(1, 3, 4, m),
            "sparse": dy.SparseLSTMBuilder(1, 3, 4, m),
            "birnn": dy.BiRNNBuilder(2, 3, 8, m, dy.GRUBuilder),
            "W": m.add_parameters((5, 3)),
        }
        whole = dy.ParameterCollection()
        whole.add_parameters((2, 3), name="w")
        whole.add_lookup_parameters((4, 2))
        whole.save(tmp_path / "whole")
        dy.save(tmp_path / "ours", objects.values())
        dy.save(tmp_path / "normalized", [dy.VanillaLSTMBuilder(2, 3, 4, m, True)])  # D44
        names = ("ours", "whole", "theirs", "found", "normalized")
        job = {name: str(tmp_path / name) for name in names} | {"xs": XS.tolist(), "names": list(objects)}
        DYNET.run("driver_dynet.py", job, tmp_path)

        found = json.loads((tmp_path / "found").read_text())
        for name, one in objects.items():
            np.testing.assert_allclose(compute(one), found[name], rtol=0, atol=1e-6, err_msg=name)
        for ours, real in zip(
            [*whole.parameters_list(), *whole.lookup_parameters_list()], found["whole"], strict=True
        ):
            np.testing.assert_array_equal(ours.as_array(), np.float32(real))
        assert (tmp_path / "whole.real").read_bytes() == (tmp_path / "whole").read_bytes()
        again = dy.load(tmp_path / "theirs", dy.ParameterCollection())
        for (name, one), other in zip(objects.items(), again, strict=True):
            np.testing.assert_array_equal(compute(other), compute(one), err_msg=name)
