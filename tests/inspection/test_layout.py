"""Positions of nodes, and the levels of a program."""

from __future__ import annotations

import itertools
import random
import re
from pathlib import Path

import pytest

import paddlelike as fluid
from paddlelike.inspection.flow import list_levels
from paddlelike.inspection.layout import Box, place_nodes, rank_by_longest_path


def make_graph(seed: int) -> tuple[list[Box], list[tuple[int, int]]]:
    rng = random.Random(seed)
    boxes = [Box(rng.randint(20, 200), 30, rng.randint(0, 1)) for _ in range(60)]
    edges = {tuple(sorted(rng.sample(range(60), 2))) for _ in range(110)}
    return boxes, sorted(edges)


@pytest.mark.parametrize("seed", range(5))
def test_nodes_neither_overlap_nor_leave_the_drawing(seed: int) -> None:
    boxes, edges = make_graph(seed)
    found = place_nodes(boxes, edges, rank_by_longest_path(60, edges))
    for (box, (x, y)), (other, (u, v)) in itertools.combinations(zip(boxes, found.centers, strict=True), 2):
        assert abs(x - u) >= (box.width + other.width) / 2 or abs(y - v) >= (box.height + other.height) / 2
    for box, (x, y) in zip(boxes, found.centers, strict=True):
        # positions are sums of floats: a millionth of a pixel
        assert x - box.width / 2 >= -1e-6
        assert x + box.width / 2 <= found.width + 1e-6
        assert y - box.height / 2 >= -1e-6
        assert y + box.height / 2 <= found.height + 1e-6


@pytest.mark.parametrize("seed", range(5))
def test_edges_end_on_the_borders_of_their_nodes(seed: int) -> None:
    boxes, edges = make_graph(seed)
    found = place_nodes(boxes, edges, rank_by_longest_path(60, edges))
    for edge, path in zip(edges, found.paths, strict=True):
        for node, (x, y) in zip(edge, (path[0], path[-1]), strict=True):
            assert (x, abs(y - found.centers[node][1])) == (found.centers[node][0], boxes[node].height / 2)
    assert found == place_nodes(boxes, edges, rank_by_longest_path(60, edges))


@pytest.mark.parametrize("seed", range(20))
def test_no_edge_runs_behind_a_node(seed: int) -> None:
    boxes, edges = make_graph(seed)
    found = place_nodes(boxes, edges, rank_by_longest_path(60, edges))
    for path in found.paths:
        for (x, y), (to_x, to_y) in itertools.pairwise(path):
            for t in (one / 20 for one in range(1, 20)):  # the curve of the pictures: vertical at both ends
                share = t * t * (3 - 2 * t)
                u, v = x + (to_x - x) * share, y + (to_y - y) * (1.5 * t * (1 - t) + t**3)
                for box, center in zip(boxes, found.centers, strict=True):
                    assert abs(u - center[0]) >= box.width / 2 or abs(v - center[1]) >= box.height / 2


def test_a_deep_network_is_as_wide_as_one_of_its_blocks() -> None:
    block = [(0, 1), (0, 2), (0, 3), (1, 4), (2, 4), (4, 5), (3, 5), (5, 6), (0, 6)]
    widths = []
    for count in (1, 50):
        edges = [(source + 6 * at, target + 6 * at) for at in range(count) for source, target in block]
        boxes = [Box(60.0 + 30 * (node % 3), 30) for node in range(6 * count + 1)]
        widths.append(place_nodes(boxes, edges, rank_by_longest_path(len(boxes), edges)).width)
    assert widths[1] < 1.5 * widths[0]


def test_a_block_repeated_400_times_is_one_node() -> None:
    main = fluid.Program()
    with fluid.unique_name.guard(), fluid.program_guard(main, fluid.Program()):
        x = fluid.layers.sigmoid(fluid.data("x", [None, 4]))
        for _ in range(400):
            x = fluid.layers.tanh(fluid.layers.softmax(fluid.layers.scale(fluid.layers.relu(x), 2.0)))
    (first, *_, last) = list_levels(main.global_block())["blocks"].nodes
    assert (first.label, last.label[:6], len(last.operators)) == ("x", "400 x ", 1600)


def test_ranks_follow_the_edges() -> None:
    _, edges = make_graph(3)
    ranks = rank_by_longest_path(60, edges)
    assert all(ranks[source] < ranks[target] for source, target in edges)


def test_many_nodes_without_edges_become_a_block() -> None:
    found = place_nodes([Box(50, 20)] * 400, [], [0] * 400)
    assert len({y for _, y in found.centers}) == 20
    assert 0.2 < found.width / found.height < 5


def make_residual_network() -> fluid.Program:
    main = fluid.Program()
    with fluid.unique_name.guard(), fluid.program_guard(main, fluid.Program()):
        x = fluid.data("x", [None, 4])
        y = fluid.layers.fc(fluid.layers.scale(fluid.layers.fc(x, 4, act="relu"), 2.0), 4)
        fluid.optimizer.Adam(0.1).minimize(fluid.layers.mean(fluid.layers.elementwise_add(x, y)))
    return main


def test_a_node_of_a_layer_contains_its_gradients_and_updates() -> None:
    block = make_residual_network().global_block()
    levels = list_levels(block)
    for flow in levels.values():
        members = sorted(index for node in flow.nodes for index in node.operators)
        assert members == list(range(len(block.ops)))
    layers = {node.label: node for node in levels["layers"].nodes}
    types = [block.ops[index].type for index in layers["fc_0"].operators]
    assert types[:3] == ["mul", "elementwise_add", "relu"]
    assert {"mul_grad", "elementwise_add_grad", "relu_grad", "adam"} <= set(types)
    assert types.count("adam") == 2
    named = [(levels["layers"].nodes[a].label, levels["layers"].nodes[b].label)
             for a, b in levels["layers"].edges]  # fmt: skip
    assert named == [("x", "fc_0"), ("fc_0", "scale_0"), ("scale_0", "fc_1"), ("x", "elementwise_add_0"),
                     ("fc_1", "elementwise_add_0"), ("elementwise_add_0", "mean_0")]  # fmt: skip


def test_a_chain_of_layers_without_matrices_is_one_node() -> None:
    levels = list_levels(make_residual_network().global_block())
    assert [node.label for node in levels["chains"].nodes] == [
        "x",
        "fc_0 … scale_0",
        "fc_1",
        "elementwise_add_0 … mean_0",
    ]


def test_a_gradient_is_drawn_beside_its_operator() -> None:
    block = make_residual_network().global_block()
    flow = list_levels(block)["operators"]
    ranks = {(node.label, node.role): rank for node, rank in zip(flow.nodes, flow.ranks, strict=True)}
    for name in ("scale", "mean"):
        assert ranks[name, "forward"] == ranks[f"{name}_grad" if name == "mean" else "scale", "backward"]


def test_a_program_without_operators_has_no_nodes() -> None:
    flow = list_levels(fluid.Program().global_block())["operators"]
    assert (flow.nodes, flow.ranks) == ((), [])
    assert place_nodes([], [], []).centers == ()


def test_the_gradient_of_the_loss_is_drawn_beside_the_loss() -> None:
    text = make_residual_network().plot()._format_svg()
    found = re.findall(r'<text x="[\d.]+" y="([\d.]+)">(mean_grad|mean|mean_0.tmp_0@GRAD)<', text)
    height = {name: float(y) for y, name in found}
    assert height["mean"] == height["mean_grad"]
    assert abs(height["mean_0.tmp_0@GRAD"] - height["mean_grad"]) < 150  # two rows at most


def test_a_damaged_fetch_is_drawn_as_an_operator(tmp_path: Path) -> None:
    main = fluid.Program()
    exe = fluid.Executor()
    with fluid.program_guard(main, fluid.Program()), fluid.scope_guard(fluid.Scope()):
        out = fluid.layers.relu(fluid.data("x", [None, 4]))
        fluid.io.save_inference_model(str(tmp_path), ["x"], [out], exe, main)
        program, _, _ = fluid.io.load_inference_model(str(tmp_path), exe)
    (fetch,) = (op for op in program.global_block().ops if op.type == "fetch")
    fetch.inputs["X"] = []
    levels = list_levels(program.global_block())
    assert "fetch" in [node.label for level in levels.values() for node in level.nodes]
