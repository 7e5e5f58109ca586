"""Cases of average_accumulates: one step from given sums."""

import numpy as np

from tests.ops.harness.contract import Case
from tests.ops.update.arrays import G, P, V, Z


def _average(window_full: bool, moved: bool):
    def expected(param, in_sum_1, in_sum_2, in_sum_3, in_num_accumulates, in_num_updates):
        one, two, count = in_sum_1 + param, in_sum_2, in_num_accumulates + 1
        if moved:
            one, two = 0 * one, one + two
        out = {"out_sum_1": one, "out_sum_2": two, "out_sum_3": in_sum_3}
        out |= {"out_num_accumulates": count, "out_num_updates": in_num_updates + 1}
        if window_full:
            out |= {"out_sum_1": 0 * one, "out_sum_2": 0 * two, "out_sum_3": one + two}
            out |= {"out_num_accumulates": 0 * count, "out_old_num_accumulates": count}
        return out

    return expected


def _average_case(accumulated: int, updates: int, note: str, **happens: bool) -> Case:
    count = lambda value: np.array([value], np.int64)
    sums = {"in_sum_1": G, "in_sum_2": V, "in_sum_3": Z}
    inputs = {"param": P, **sums, "in_num_accumulates": count(accumulated)}
    inputs |= {"in_old_num_accumulates": count(4), "in_num_updates": count(updates)}
    attrs = {"average_window": 0.5, "max_average_window": 12, "min_average_window": 4}
    return Case("average_accumulates", inputs, _average(**happens), attrs, note=note)


CASES = [
    _average_case(2, 6, "window-open", window_full=False, moved=False),
    _average_case(4, 9, "window-full", window_full=True, moved=False),
    _average_case(2, 16383, "moves-sums", window_full=False, moved=True),
]  # fmt: skip
