"""Metrics that keep their state in persistables of the program."""

from __future__ import annotations

import numpy as np


def _run_auc(fluid, **options):
    probability = fluid.data("p", [None, 2])
    label = fluid.data("l", [None, 1], "int64")
    area, of_batch, states = fluid.layers.auc(probability, label, **options)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    rng = np.random.RandomState(0)
    areas = []
    for _ in range(4):
        scores = rng.uniform(0, 1, (16, 2)).astype("float32")
        feed = {"p": scores, "l": rng.randint(0, 2, (16, 1))}
        areas.append(exe.run(feed=feed, fetch_list=[area, of_batch]))
    held = [np.array(fluid.global_scope().find_var(state.name).get_tensor()) for state in states]
    return {
        "areas": areas,
        "declared": [list(state.shape) for state in states],
        "held": [[str(one.dtype), list(one.shape), int(one.sum())] for one in held],
    }


def auc_without_a_window(fluid):
    return _run_auc(fluid, slide_steps=0)


def auc_without_a_window_few_thresholds(fluid):
    return _run_auc(fluid, slide_steps=0, num_thresholds=20)


def auc_of_three_steps(fluid):
    return _run_auc(fluid, slide_steps=3)


def auc_under_a_pr_curve(fluid):
    return _run_auc(fluid, curve="PR", slide_steps=0)


def _sequences(fluid, rows, lengths):
    array = np.array(rows, "int64").reshape(-1, 1)
    return fluid.create_lod_tensor(array, [lengths], fluid.CPUPlace())


def _evaluate(fluid, evaluator, batches, feeds):
    """The metrics of each batch, the states after it and the result; twice, with a reset in between."""
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    outcome = [[state.name for state in evaluator.states], fluid.default_main_program()]
    for _ in range(2):
        evaluator.reset(exe)
        for batch in batches:
            feed = dict(zip(feeds, batch))  # noqa: B905  (Python 3.7)
            outcome.append(exe.run(feed=feed, fetch_list=list(evaluator.metrics)))
        outcome.append(list(evaluator.eval(exe)))
    return outcome


def evaluator_of_edit_distances(fluid):
    guess = fluid.data("g", [None, 1], "int64", lod_level=1)
    label = fluid.data("l", [None, 1], "int64", lod_level=1)
    evaluator = fluid.evaluator.EditDistance(guess, label, ignored_tokens=[0])
    batches = [
        (_sequences(fluid, [1, 2, 3, 4, 5], [3, 2]), _sequences(fluid, [1, 2, 2, 4, 5], [3, 2])),
        (_sequences(fluid, [7, 0, 8], [1, 2]), _sequences(fluid, [7, 8, 8], [1, 2])),
    ]
    return _evaluate(fluid, evaluator, batches, "gl")


def evaluator_of_chunks(fluid):
    guess = fluid.data("g", [None, 1], "int64", lod_level=1)
    label = fluid.data("l", [None, 1], "int64", lod_level=1)
    evaluator = fluid.evaluator.ChunkEvaluator(guess, label, "IOB", 3)
    batches = [
        (_sequences(fluid, [0, 1, 2, 6, 4], [3, 2]), _sequences(fluid, [0, 1, 6, 2, 4], [3, 2])),
        (_sequences(fluid, [4, 5, 0], [3]), _sequences(fluid, [4, 5, 0], [3])),
    ]
    return _evaluate(fluid, evaluator, batches, "gl")
