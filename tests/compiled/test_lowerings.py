"""Every operator's lowering gives what its kernel gives; what has none is listed with the reason."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

pytest.importorskip("jax", reason="the extra `jax` is not installed", exc_type=ImportError)

from paddlelike.compiled.lowerings import find_lowering, list_lowered, load_lowerings
from paddlelike.compiled.packing import RefusedError
from paddlelike.framework.opdef import registry
from tests.compiled.harness.recorded import RECORDED
from tests.compiled.harness.sweep import DifferenceError, check_case
from tests.compiled.left_out import LEFT_OUT
from tests.ops.harness.collect import CASES
from tests.ops.harness.contract import Case

pytestmark = pytest.mark.slow

FORWARD = {type: op for type, op in registry.all_ops().items() if op.forward_of is None and op.since == "1"}

#: Cases that a lowering refuses at run time, so that numpy runs them, by part of the reason.
REFUSED = (
    "before the run",  # a size, a factor or an axis comes from a variable
    "is a variable",
    "SparseRows",
    "holds only some rows",
    "no LoD",
    "takes no sequences",
    "X has a LoD",
    "uneven sizes",
    "its input is a padded batch",
    "it computes the mean of integers",
    "the shape depends on",
    "TracerArrayConversionError",  # a kernel that writes into arrays of numpy in some cases
    "the number of elements depends on values",
    "known at run time",
    "Fluid has another gradient for short sequences",
    "it reads sequences of sequences",
    "its sequences are nested",
    "unstable sort",
    "its boxes are polygons, or separate for every class",
)
#: The host draws their masks; see test_state.py.
DRAWN = {"dropout"}


#: Cases of one operator that are compared; compiling each takes about a second.
EACH = 3
PARTS = 8  #: of all operators, so that several processes share them
ALL = slice(None)


def compared(each: int = EACH, part: slice = ALL) -> list[Case]:
    """Return so many cases of each operator: with a second formula, else some that were recorded."""
    lowered = list_lowered()
    cases = [case for case in CASES if case.type in lowered and case.type not in DRAWN]
    known = {case.type for case in cases} | DRAWN
    by_type: dict[str, list[Case]] = {}
    for case in [*cases, *(case for case in RECORDED.values() if case.type not in known)]:
        if case.type in lowered:
            by_type.setdefault(case.type, []).append(case)
    return [case for several in list(by_type.values())[part] for case in several[:each]]


@pytest.mark.parametrize("part", range(PARTS))
def test_lowerings_give_the_results_of_the_kernels(part: int) -> None:
    equal: set[str] = set()
    refused: dict[str, str] = {}
    different: dict[str, str] = {}
    alone: set[str] = set()
    for case in compared(part=slice(part, None, PARTS)):
        try:
            equal.update(check_case(case, alone=case.type not in alone))
        except RefusedError as error:
            refused[case.id] = error.reason
        except DifferenceError as error:
            different[case.id] = str(error)
        alone.add(case.type)
    unknown = {name: why for name, why in refused.items() if not any(part in why for part in REFUSED)}
    assert different == {}
    assert unknown == {}
    assert len(equal) > 350 / PARTS


def test_the_compiled_yolo_box_matches_each_version_on_a_wide_grid() -> None:
    x = np.random.default_rng(0).standard_normal((1, 14, 2, 3)).astype("float32")
    attrs = {"anchors": [10, 13, 16, 30], "class_num": 2, "conf_thresh": 0.1, "downsample_ratio": 32}
    inputs = {"X": x, "ImgSize": np.array([[64, 96]], "int32")}
    for type in ("yolo_box", "yolo_box@2"):
        assert check_case(Case(type, inputs, lambda: None, attrs, wrt=())) == [type]


def test_operators_without_a_lowering_are_listed_with_a_reason(
    record_property: Callable[[str, object], None],
) -> None:
    without = {type for type, op in FORWARD.items() if find_lowering(op) is None and not op.external}
    assert sorted(without - LEFT_OUT.keys()) == []
    assert sorted(LEFT_OUT.keys() - without) == [], "these have a lowering now"
    count = len(FORWARD) - sum(op.external for op in FORWARD.values())
    record_property("summary", f"jax: {count - len(without)} of {count} operators")


def test_every_lowering_belongs_to_a_known_operator() -> None:
    assert sorted(set(load_lowerings()) - registry.all_ops().keys()) == []
