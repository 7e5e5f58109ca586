"""Growing tables train as those with one, begin by the id alone, forget, and are saved as Paddle's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.core.rows import RowIndex
from paddlelike.distributed import growing_tables as tables
from paddlelike.errors import EnforceNotMet, GraphError
from paddlelike.ops.kernels.growing_rows import GrowingRows, RowRule

_IDS = 50
_FAR = np.int64(1) << 61


class Job:
    """A network on a table of width 4, whose scope and programs it keeps."""

    def __init__(self, optimizer: Callable[[], Any], *, sized: bool = False, **keywords: Any) -> None:
        self.main, startup, self.scope = fluid.Program(), fluid.Program(), fluid.Scope()
        self.startup, self.exe = startup, fluid.Executor()
        start = keywords.pop("start", fluid.initializer.Constant(0.1))
        with fluid.program_guard(self.main, startup), fluid.unique_name.guard():
            ids = fluid.data("ids", [None, 3], "int64")
            y, *_ = [fluid.data(name, [None, 1]) for name in ("y", "shown", "clicked")]
            attr = fluid.ParamAttr(name="emb", initializer=start)
            if sized:
                found = fluid.embedding(ids, [_IDS, 4], param_attr=attr, is_sparse=True)
            else:
                found = tables.sparse_embedding(ids, [1, 4], param_attr=attr, **keywords)
            self.found = found
            flat = fluid.layers.reshape(found, [-1, 12])
            out = fluid.layers.fc(flat, 1, param_attr=fluid.initializer.Constant(0.3))
            self.loss = fluid.layers.mean(fluid.layers.square_error_cost(out, y))
            self.test = self.main.clone(for_test=True)
            optimizer().minimize(self.loss)
        self.run(startup)

    def run(self, program: fluid.Program, *fetch: Any, **feed: Any) -> Any:
        with fluid.scope_guard(self.scope):
            return self.exe.run(program, feed=feed, fetch_list=list(fetch))

    def train(
        self, steps: int, seed: int = 0, transform: Callable[[Any], Any] = lambda ids: ids
    ) -> list[float]:
        rng, losses = np.random.default_rng(seed), []
        for _ in range(steps):
            ids = transform(rng.integers(0, _IDS, (8, 3)))
            y = rng.normal(size=(8, 1)).astype("float32")
            ones = np.ones((8, 1), "float32")
            (loss,) = self.run(self.main, self.loss, ids=ids, y=y, shown=ones, clicked=ones * 0.5)
            losses.append(loss.item())
        return losses

    def look_up(self, ids: Any) -> Any:
        ids = np.asarray(ids, np.int64).reshape(-1, 3)
        ones = np.ones((len(ids), 1), "float32")
        return self.run(self.test, self.found, ids=ids, y=ones, shown=ones, clicked=ones)[0]

    def call(self, function: Callable[..., Any], *args: Any, **keywords: Any) -> Any:
        with fluid.scope_guard(self.scope):
            return function(*args, program=self.main, **keywords)


_OPTIMIZERS = {
    "sgd": lambda: fluid.optimizer.SGD(0.1),
    "adagrad": lambda: fluid.optimizer.Adagrad(0.1, initial_accumulator_value=0.2),
    "momentum": lambda: fluid.optimizer.Momentum(0.1, 0.9),
    "lazy_adam": lambda: fluid.optimizer.Adam(0.1, lazy_mode=True),
    "ftrl": lambda: fluid.optimizer.Ftrl(0.1),
    "rmsprop": lambda: fluid.optimizer.RMSProp(0.1),
}


def _far(ids: Any) -> Any:
    return (ids - 20) * (_FAR // 40)


@pytest.mark.parametrize("optimizer", _OPTIMIZERS.values(), ids=_OPTIMIZERS)
def test_growing_tables_train_with_the_same_bits_as_fixed_tables(optimizer: Callable[[], Any]) -> None:
    expected = Job(optimizer, sized=True).train(6)
    assert Job(optimizer).train(6) == expected
    assert Job(optimizer).train(6, transform=_far) == expected


def test_rows_begin_with_the_same_bits_in_any_order() -> None:
    kind, rng = np.dtype("float32"), np.random.default_rng(1)
    ids = rng.permutation(np.unique(rng.integers(-_FAR, _FAR, 500)))
    for name in ("uniform_random", "gaussian_random"):
        rule = RowRule(name, -0.5, 0.5, seed=3)
        whole = rule.make(ids, 40, kind)
        for cut in (1, 100, 499):
            parts = (
                rule.make(ids[cut:], 40, np.dtype("float32")),
                rule.make(ids[:cut], 40, np.dtype("float32")),
            )
            np.testing.assert_array_equal(np.concatenate(parts[::-1]), whole)
        assert len(np.unique(whole)) > 0.99 * whole.size


def test_new_rows_have_the_distribution_of_their_initializer() -> None:
    ids = np.arange(20_000)
    even = RowRule("uniform_random", -1.0, 3.0).make(ids, 4, np.dtype("float64"))
    normal = RowRule("gaussian_random", 2.0, 0.5).make(ids, 4, np.dtype("float64"))
    # Five deviations of the mean of 80,000 numbers.
    assert abs(even.mean() - 1) < 5 * even.std() / 80_000**0.5
    assert even.min() >= -1
    assert even.max() < 3
    assert abs(even.std() - 4 / 12**0.5) < 0.01
    assert abs(normal.mean() - 2) < 5 * 0.5 / 80_000**0.5
    assert abs(normal.std() - 0.5) < 0.01
    assert np.abs(np.corrcoef(even.T) - np.eye(4)).max() < 0.04  # five deviations of a correlation


def test_an_index_finds_the_same_rows_as_a_dict() -> None:
    rng = np.random.default_rng(2)
    index, expected = RowIndex(np.empty(0, np.int64)), {}
    for count in (1, 5, 0, 300, 2, 40, 1, 1000, 3):
        ids = rng.permutation(np.setdiff1d(rng.integers(-2000, 2000, count), list(expected)))
        index.add(ids)
        expected.update(zip(ids.tolist(), range(len(expected), len(expected) + len(ids)), strict=True))
        asked = rng.integers(-2500, 2500, 700)
        assert index.find(asked).tolist() == [expected.get(one, -1) for one in asked.tolist()]


def test_a_follower_table_repeats_the_additions_removals_and_loads_of_its_leader() -> None:
    make = lambda fill: GrowingRows(1, np.dtype("float64"), RowRule("fill_constant", fill))
    leader, follower = make(0.0), make(7.0)
    leader.add_rows([5, 3, 9])
    follower.follow(leader)
    held = follower.held_array
    assert held is not None
    held[:, 0] = [50, 30, 90]
    leader.add_rows([4])
    leader.keep(np.array([3, 2, 0]))
    leader.add_rows([8])
    follower.follow(leader)
    assert follower.rows() == [4, 9, 5, 8] == leader.rows()
    assert np.asarray(follower.array).ravel().tolist() == [7, 90, 50, 7]
    leader.adopt(np.array([8, 1, 9]), np.zeros((3, 1)))
    follower.follow(leader)
    assert np.asarray(follower.array).ravel().tolist() == [7, 7, 90]


def test_an_id_is_admitted_once_it_was_seen_often_enough() -> None:
    job = Job(_OPTIMIZERS["sgd"], entry=tables.CountFilterEntry(3))
    ones = np.ones((1, 1), "float32")
    seen = []
    for _ in range(4):
        feed = {"ids": np.array([[7, -7, -7]]), "y": ones, "shown": ones, "clicked": ones}
        (found,) = job.run(job.main, job.found, **feed)
        seen.append((found[0].any(1)).tolist())
    assert seen == [[False] * 3, [False, True, True], [True] * 3, [True] * 3]
    assert not job.look_up([1, 2, 3]).any()


def test_a_fraction_of_the_ids_is_admitted_in_any_order() -> None:
    admitted = []
    for order in (1, -1):
        job = Job(_OPTIMIZERS["sgd"], entry=tables.ProbabilityEntry(0.5))
        job.train(12, transform=lambda ids, order=order: (ids * 977)[::order])
        admitted.append(sorted(job.scope.find_var("emb").value.rows()))
    assert admitted[0] == admitted[1]
    assert 10 < len(admitted[0]) < 40


def test_shows_and_clicks_are_counted_and_old_or_low_scored_ids_removed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    job = Job(_OPTIMIZERS["adagrad"], entry=tables.ShowClickEntry("shown", "clicked"))
    job.train(6)
    stat = job.call(tables.print_table_stat)["emb"]
    assert (stat["shows"], stat["clicks"]) == (144, 72)
    assert "emb: rows 47, ids 47, shows 144" in capsys.readouterr().out
    counts = job.scope.find_var("emb_counts").value
    score = np.asarray(counts.array)[:, :2] @ [0.1, 0.9] * 0.98
    expected = {row for row, one in zip(counts.rows(), score, strict=True) if one >= 1.5}
    assert job.call(tables.shrink, 1.5) == {"emb": 47 - len(expected)}
    states = [name for name in job.scope.local_var_names() if name.startswith("emb")]
    assert len(states) == 3
    assert all(set(job.scope.find_var(name).value.rows()) == expected for name in states)
    job.train(2, transform=lambda ids: ids % 5)
    for _ in range(3):
        job.call(tables.shrink, delete_after_unseen_days=2)
    assert job.call(tables.print_table_stat)["emb"]["rows"] == 0
    job.train(1)
    job.call(tables.clear)
    assert not job.look_up([1, 2, 3]).any()


def test_a_year_of_daily_shrinks_removes_the_ids_that_pslib_removes() -> None:
    """Against its formulas by hand: shrink decays, then scores; a save of mode 3 makes ids a day older."""
    job = Job(lambda: fluid.optimizer.SGD(0.1), entry=tables.ShowClickEntry("shown", "clicked"))
    rng, held, forgotten = np.random.default_rng(5), {}, 0
    rates = {"threshold": 0.3, "show_click_decay_rate": 0.9, "nonclk_coeff": 0.2, "click_coeff": 0.7}
    for _ in range(40):
        ids = rng.integers(0, _IDS, (4, 3)) ** 2
        clicked = rng.integers(0, 2, (4, 1)).astype("float32")
        job.run(job.main, ids=ids, y=clicked, shown=np.ones((4, 1), "float32"), clicked=clicked)
        for row, click in zip(ids.tolist(), clicked[:, 0].tolist(), strict=True):
            for one in row:
                show, clicks, _ = held.get(one, (0.0, 0.0, 0))
                held[one] = show + 1, clicks + click, 0
        with fluid.scope_guard(job.scope):
            found = tables.shrink(program=job.main, table="emb", days=0, delete_after_unseen_days=5, **rates)
            tables.age(job.main)
        decayed = {one: (0.9 * show, 0.9 * click, unseen) for one, (show, click, unseen) in held.items()}
        held = {
            one: (show, click, unseen + 1)
            for one, (show, click, unseen) in decayed.items()
            if 0.2 * (show - click) + 0.7 * click >= 0.3 and unseen <= 5
        }
        assert found == {"emb": len(decayed) - len(held)}
        forgotten += found["emb"]
    assert forgotten > 100
    counts = job.scope.find_var("emb_counts").value
    assert set(counts.rows()) == held.keys() == set(job.scope.find_var("emb").value.rows())
    expected = [held[one] for one in counts.rows()]
    np.testing.assert_allclose(np.asarray(counts.held_array), expected, rtol=1e-5)  # float32


def test_training_continues_from_a_save_with_the_same_bits(tmp_path: Path) -> None:
    start = fluid.initializer.Normal(0.0, 0.1, seed=3)
    job, other = (Job(_OPTIMIZERS["adagrad"], start=start, entry=tables.CountFilterEntry(2)) for _ in "ab")
    job.train(4, transform=_far)
    other.train(1, seed=9)
    for one, function in ((job, fluid.io.save_persistables), (other, fluid.io.load_persistables)):
        with fluid.scope_guard(one.scope):
            function(one.exe, str(tmp_path / "all"), one.main)
    expected = job.train(4, seed=5, transform=_far)
    assert other.train(4, seed=5, transform=_far) == expected
    for name in ("emb", "emb_counts"):
        ours, theirs = (one.scope.find_var(name).value for one in (job, other))
        np.testing.assert_array_equal(ours.row_array, theirs.row_array)
        np.testing.assert_array_equal(ours.array, theirs.array)


def test_a_single_growing_table_is_saved_and_loaded(tmp_path: Path) -> None:
    job, other = Job(_OPTIMIZERS["adagrad"]), Job(_OPTIMIZERS["adagrad"])
    job.train(4)
    for one, function in ((job, tables.save_one_table), (other, tables.load_one_table)):
        with fluid.scope_guard(one.scope):
            function(one.exe, "emb", str(tmp_path / "one"), program=one.main)
    assert len([path for path in (tmp_path / "one").iterdir() if path.name.startswith("emb")]) == 3
    ids = np.arange(48)
    np.testing.assert_array_equal(other.look_up(ids), job.look_up(ids))
    with pytest.raises(GraphError, match="no table 'fc'"):
        job.call(tables.save_one_table, job.exe, "fc", str(tmp_path))


def test_padding_ids_give_zeros_and_get_no_row() -> None:
    job = Job(_OPTIMIZERS["sgd"], padding_idx=4)
    job.train(6)
    assert 4 not in job.scope.find_var("emb").value.rows()
    assert not job.look_up([4, 4, 4]).any()


def test_training_before_startup_and_optimizers_of_whole_arrays_are_errors(tmp_path: Path) -> None:
    job = Job(_OPTIMIZERS["sgd"])
    job.train(1)
    with fluid.scope_guard(job.scope):
        fluid.io.save_persistables(job.exe, str(tmp_path / "all"), job.main)
    job.scope = fluid.Scope()
    with fluid.scope_guard(job.scope):
        fluid.io.load_persistables(job.exe, str(tmp_path / "all"), job.main)
    with pytest.raises(EnforceNotMet, match="were not made by the startup program"):
        job.train(1)
    assert job.look_up([1, 2, 3]).shape == (1, 3, 4)
    with pytest.raises(GraphError, match="truncated_gaussian_random cannot make single rows"):
        Job(_OPTIMIZERS["sgd"], start=fluid.initializer.TruncatedNormal())


def test_optimizers_without_growing_tables_refuse_them() -> None:
    with pytest.raises(GraphError, match="LambOptimizer: 'emb' is a growing table"):
        Job(lambda: fluid.optimizer.Lamb(0.1))


@pytest.mark.slow
def test_thirty_days_of_training_keep_memory_and_quality_constant() -> None:
    """1 % of the ids are replaced daily, for ever; AUC of the last ten days beside a table that keeps all."""
    sizes, quality = {}, {}
    for forgets in (True, False):
        main, startup, rng = fluid.Program(), fluid.Program(), np.random.default_rng(0)
        with fluid.program_guard(main, startup), fluid.unique_name.guard(), fluid.scope_guard(fluid.Scope()):
            ids, y = fluid.data("ids", [None, 4], "int64"), fluid.data("y", [None, 1])
            attr = fluid.ParamAttr(name="emb", initializer=fluid.initializer.Uniform(-0.01, 0.01))
            found = tables.sparse_embedding(ids, [1, 1], param_attr=attr)
            logit = fluid.layers.reduce_sum(found, 1)
            loss = fluid.layers.mean(fluid.layers.sigmoid_cross_entropy_with_logits(logit, y))
            fluid.optimizer.Adagrad(0.3).minimize(loss)
            exe = fluid.Executor()
            exe.run(startup)
            active, scores, labels = np.arange(2000), [], []
            sizes[forgets] = []
            for day in range(30):
                active = np.concatenate([active[20:], 2000 + day * 20 + np.arange(20)])
                for _ in range(20):
                    batch = rng.choice(active, (256, 4))
                    weight = np.sin(batch * 12.9898) * 1.5  # of each id, once and for all
                    label = (rng.random(256) < 1 / (1 + np.exp(-weight.sum(1)))).astype("float32")[:, None]
                    score, _ = exe.run(main, feed={"ids": batch, "y": label}, fetch_list=[logit, loss])
                    if day >= 20:
                        scores.append(score)
                        labels.append(label)
                if forgets:
                    tables.shrink(program=main, delete_after_unseen_days=2)
                sizes[forgets].append(tables.print_table_stat(main)["emb"]["bytes"])
        order = np.concatenate(scores).ravel().argsort(kind="stable")
        hit = np.concatenate(labels).ravel()[order]
        ranks = np.arange(1, len(hit) + 1)[hit == 1].sum()
        count = hit.sum()
        quality[forgets] = (ranks - count * (count + 1) / 2) / (count * (len(hit) - count))
    assert max(sizes[True][5:]) <= 1.03 * min(sizes[True][5:])
    assert sizes[False][-1] > 1.2 * sizes[False][0]
    assert quality[True] > 0.75
    assert abs(quality[True] - quality[False]) < 0.001


def _impressions(day: int, count: int) -> tuple[Any, Any]:
    """Ids of 2,000 users, of whom 1% are new each day, 0.1% are any that ever came, and their clicks."""
    rng = np.random.default_rng(day)
    users = rng.integers(0, 2000, count) + 20 * day
    back = rng.random(count) < 0.001
    users[back] = rng.integers(0, 20 * day + 1, count)[back]
    odds = 1.6 * np.sin(users * 12.9898) - 0.5
    clicks = (rng.random(count) < 1 / (1 + np.exp(-odds))).astype("float32")
    return (users * np.int64(0x1E3779B97F4A7C15)).reshape(-1, 1), clicks.reshape(-1, 1)


def _rank(scores: Any, clicks: Any) -> float:
    """The chance that a click has a higher score than an impression without one."""
    ranks = np.empty(len(scores))
    ranks[np.argsort(scores, kind="stable")] = np.arange(1, len(scores) + 1)
    yes = clicks > 0
    return float((ranks[yes].sum() - yes.sum() * (yes.sum() + 1) / 2) / (yes.sum() * (~yes).sum()))


def _train_days(unseen: int) -> tuple[list[float], list[int]]:
    """The areas under the curve of 30 days before they are learned, and the rows of the evenings."""
    main, startup = fluid.Program(), fluid.Program()
    with fluid.scope_guard(fluid.Scope()), fluid.program_guard(main, startup), fluid.unique_name.guard():
        ids, clicks = fluid.data("ids", [None, 1], "int64"), fluid.data("clicks", [None, 1])
        attr = fluid.ParamAttr(name="emb", initializer=fluid.initializer.Normal(0.0, 0.05, seed=1))
        found = fluid.layers.reshape(tables.sparse_embedding(ids, [1, 8], param_attr=attr), [-1, 8])
        logit = fluid.layers.fc(found, 1, param_attr=fluid.initializer.Constant(0.3))
        loss = fluid.layers.mean(fluid.layers.sigmoid_cross_entropy_with_logits(logit, clicks))
        test = main.clone(for_test=True)
        fluid.optimizer.Adagrad(0.2).minimize(loss)
        exe, areas, rows = fluid.Executor(), [], []
        exe.run(startup)
        for day in range(30):
            users, clicked = _impressions(day, 20_000)
            feed = {"ids": users, "clicks": clicked}
            (scores,) = exe.run(test, feed=feed, fetch_list=[logit])
            areas.append(_rank(scores[:, 0], clicked[:, 0]))
            for at in range(0, len(users), 500):
                exe.run(main, feed={name: one[at : at + 500] for name, one in feed.items()})
            tables.shrink(program=main, delete_after_unseen_days=unseen)
            rows.append(len(fluid.global_scope().find_var("emb").value.rows()))
        return areas, rows


@pytest.mark.slow
def test_a_month_of_new_ids_needs_no_more_memory_and_costs_no_quality() -> None:
    (areas, rows), (whole, every) = _train_days(5), _train_days(1000)
    assert abs(np.mean(areas[10:]) - np.mean(whole[10:])) < 0.001
    assert max(rows[10:]) < 1.1 * min(rows[10:])
    assert every[-1] > 1.1 * max(rows)
    assert np.mean(areas[10:]) > 0.7
