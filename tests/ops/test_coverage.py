"""Every operator of Paddle 1.8.5 is here, or is left out for a reason.

The pytest summary says how many there are (`operators: N of 437`), and lists the rest.
"""

from __future__ import annotations

from collections.abc import Callable

from paddlelike.framework.opdef import registry
from tests.helpers.golden_data import table

REAL = table("operators185")

#: What is not here, by reason.
LEFT_OUT = {
    "compressed gradients, and learning on devices of users": """
        dgc_clip_by_norm dgc_momentum fl_listen_and_serv
    """,
    "simulated or real int8 arithmetic, written by slim or by passes of the C++ engine": """
        dequantize quantize requantize
    """,
    "tables inside Baidu's own servers (pslib, BoxPS)": """
        pull_box_sparse pull_sparse pull_sparse_v2 push_dense
    """,
    "written into a running program by the C++ executor, never saved": """
        coalesce_tensor delete_var get_places run_program
    """,
    "layers of fluid.contrib that are not here yet": """
        pyramid_hash rank_attention
    """,
}


def find_missing() -> set[str]:
    return set(REAL) - set(registry.all_ops())


def test_every_operator_exists_or_has_a_reason_to_be_absent(
    record_property: Callable[[str, object], None],
) -> None:
    missing = find_missing()
    lines = [f"operators: {len(REAL) - len(missing)} of {len(REAL)}"]
    for reason, names in LEFT_OUT.items():
        lines.append(f"  {reason}: {', '.join(name for name in names.split() if name in missing)}")
    record_property("summary", "\n".join(lines))
    listed = [name for names in LEFT_OUT.values() for name in names.split()]
    assert len(listed) == len(set(listed))
    assert missing - set(listed) == set()
    assert set(listed) - missing == set(), "these are here now"
